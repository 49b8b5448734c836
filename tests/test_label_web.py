"""The labelling server over real sockets: who gets an answer, what it says, and what it keeps back."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import unittest
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from rooms import room

label_web = room("label_web")
labels = room("labels")

TOKEN = "a-token-of-the-test"


def tasks(kind: str, n: int = 4) -> list[Any]:
    answers = ("own A", "own B") if kind == "pair" else ("an answer <b>x</b>",)
    judge = "A" if kind == "pair" else 5
    panel = (("Question", "# What?"),)
    return [labels.Task(f"item-{i}", kind, panel, answers, "cat", judge, "SECRET-REASON") for i in range(n)]


class ServerCase(unittest.TestCase):
    kind = "pair"

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = str(Path(temporary.name) / "labels.jsonl")
        book = labels.LabelBook(self.path)
        self.addCleanup(book.close)
        self.session = labels.Session(tasks(self.kind), "ana", book, seed=7)
        site = label_web.LabelSite(self.session, "Label", lambda: {"title": "Result", "judge": "SECRET-REASON"})
        self.server = label_web.LabelServer(site, token=TOKEN)
        self.addCleanup(self.server.server_close)
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.host = f"127.0.0.1:{self.server.port}"
        self.origin = {"Origin": f"http://{self.host}"}

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read(), {name.lower(): value for name, value in reply.getheaders()}
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, body, _ = self.ask("GET", f"/{TOKEN}/{path}")
        self.assertEqual(status, 200, path)
        return json.loads(body)

    def post(self, path: str, value: Any, expected: int = 200) -> Any:
        status, body, _ = self.ask("POST", f"/{TOKEN}/{path}", json.dumps(value).encode(), self.origin)
        self.assertEqual(status, expected, body)
        return json.loads(body)


class WhoMayAsk(ServerCase):
    def test_without_the_token_every_address_gives_nothing(self) -> None:
        for path in (
            "/",
            "/state",
            "/page.js",
            "//state",
            f"/{TOKEN[:-1]}/state",
            f"/{TOKEN}x/",
            "/%2e%2e/",
            "/%c3%a9",
        ):
            with self.subTest(path):
                status, body, _ = self.ask("GET", path)
                self.assertEqual((status, body), (404, b""))
        status, body, _ = self.ask("POST", "/label", b'{"place": 0, "choice": "A"}', self.origin)
        self.assertEqual((status, body), (404, b""))

    def test_a_wrong_host_gives_nothing_even_with_the_token(self) -> None:
        for host in ("evil.example", f"evil.example:{self.server.port}", "127.0.0.1", "127.0.0.1:1", ""):
            with self.subTest(host):
                status, body, _ = self.ask("GET", f"/{TOKEN}/state", None, {"Host": host})
                self.assertEqual((status, body), (403, b""))

    def test_a_foreign_origin_gives_nothing_even_with_the_token(self) -> None:
        port = self.server.port
        foreign = (
            "http://evil.example",
            "null",
            f"https://127.0.0.1:{port}",
            "http://127.0.0.1:1",
            f"http://localhost:{port}",
        )
        for origin in foreign:
            for method in ("GET", "POST"):
                with self.subTest(origin, method=method):
                    body = b'{"place": 0, "choice": "A"}' if method == "POST" else None
                    path = f"/{TOKEN}/label" if method == "POST" else f"/{TOKEN}/state"
                    status, said, _ = self.ask(method, path, body, {"Origin": origin})
                    self.assertEqual((status, said), (403, b""))
        self.assertIsNone(self.session.label(0))

    def test_a_label_without_an_origin_is_refused(self) -> None:
        status, body, _ = self.ask("POST", f"/{TOKEN}/label", b'{"place": 0, "choice": "A"}')
        self.assertEqual((status, body), (403, b""))

    def test_a_page_of_another_site_gives_nothing_as_the_browser_says_so(self) -> None:
        for site in ("cross-site", "same-site"):
            status, body, _ = self.ask("GET", f"/{TOKEN}/", None, {"Sec-Fetch-Site": site})
            self.assertEqual((status, body), (403, b""))

    def test_doubled_headers_match_nothing(self) -> None:
        for line in (f"Host: {self.host}", f"Origin: http://{self.host}"):
            request = (
                f"GET /{TOKEN}/state HTTP/1.1\r\nHost: {self.host}\r\nOrigin: http://{self.host}\r\n{line}\r\n\r\n"
            )
            self.assertTrue(self.raw(request.encode()).startswith(b"HTTP/1.1 403 "))

    def raw(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def test_malformed_requests_get_a_status_and_no_word_more(self) -> None:
        host = f"Host: {self.host}\r\nOrigin: http://{self.host}\r\n"
        for request in (
            "GARBAGE\r\n\r\n",
            f"GET /{TOKEN}/state HTTP/9.9\r\n\r\n",
            "GET /\u00e9/ HTTP/1.1\r\n" + host + "\r\n",
            f"DELETE /{TOKEN}/state HTTP/1.1\r\n{host}\r\n",
            f"POST /{TOKEN}/label HTTP/1.1\r\n{host}Content-Length: 99999999\r\n\r\n",
            f"POST /{TOKEN}/label HTTP/1.1\r\n{host}Content-Length: {'9' * 5000}\r\n\r\n",
            f"POST /{TOKEN}/label HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n",
            f"POST /{TOKEN}/label HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            f"GET /{TOKEN}/" + "x" * 70_000 + " HTTP/1.1\r\n\r\n",
        ):
            with self.subTest(request[:40]):
                reply = self.raw(request.encode())
                self.assertRegex(reply, rb"^HTTP/1\.1 (4|5)\d\d ")
                self.assertEqual(reply.partition(b"\r\n\r\n")[2], b"")
        self.assertEqual(self.get("state")["annotator"], "ana")

    def test_the_server_listens_on_this_machine_alone_and_its_token_is_new_each_time(self) -> None:
        self.assertEqual(self.server.server_address[0], "127.0.0.1")
        other = label_web.LabelServer(label_web.LabelSite(self.session, "x", dict))
        self.addCleanup(other.server_close)
        third = label_web.LabelServer(label_web.LabelSite(self.session, "x", dict))
        self.addCleanup(third.server_close)
        self.assertGreaterEqual(len(other.token), 32)
        self.assertNotEqual(other.token, third.token)


class WhatIsSaid(ServerCase):
    def test_every_reply_carries_the_policy(self) -> None:
        for path in (f"/{TOKEN}/", f"/{TOKEN}/page.js", f"/{TOKEN}/state", "/nothing"):
            _, _, headers = self.ask("GET", path)
            self.assertIn("default-src 'none'", headers["content-security-policy"])
            self.assertNotIn("unsafe", headers["content-security-policy"])
            self.assertEqual(headers["cache-control"], "no-store")
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertNotIn("server", headers)

    def test_the_page_names_nothing_outside_and_carries_no_inline_script_or_style(self) -> None:
        _, body, _ = self.ask("GET", f"/{TOKEN}/")
        text = body.decode("utf-8")
        self.assertNotIn("//", text.replace("<!doctype", ""))
        self.assertNotRegex(text, r"<style|style=|<script>|\son\w+=|javascript:")
        script = self.ask("GET", f"/{TOKEN}/page.js")[1].decode("utf-8")
        self.assertNotRegex(script, r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|https?:")

    def test_the_judge_is_kept_back_until_the_result(self) -> None:
        seen = self.ask("GET", f"/{TOKEN}/state")[1] + self.ask("GET", f"/{TOKEN}/item/0")[1]
        self.assertNotIn(b"SECRET-REASON", seen)
        self.assertNotIn(b"judge", seen)
        self.assertEqual(self.post("result", {})["judge"], "SECRET-REASON")

    def test_labels_are_closed_once_the_result_was_shown(self) -> None:
        self.post("label", {"place": 0, "choice": "A", "comment": ""})
        self.post("result", {})
        said = self.post("label", {"place": 0, "choice": "B", "comment": ""}, 409)
        self.assertIn("the result was shown", said["error"])
        self.assertEqual(len(labels.read_labels(self.path)), 1)

    def test_a_label_is_on_disk_in_the_items_own_sides_when_the_page_hears_of_it(self) -> None:
        for place in range(4):
            first = self.get(f"item/{place}")["answers"][0]["raw"]
            kept = self.post("label", {"place": place, "choice": "A", "comment": " c ", "seconds": 2})
            self.assertEqual((kept["choice"], kept["comment"]), ("A", "c"))
            line = labels.read_labels(self.path)[-1]
            self.assertEqual(f"own {line.label}", first)
        self.assertIsNone(kept["open"])

    def test_answers_that_are_none_are_refused_and_not_kept(self) -> None:
        values: tuple[Any, ...] = (
            [],
            {"place": 0},
            {"place": 0, "choice": "C", "comment": ""},
            {"place": 0, "choice": 3, "comment": ""},
            {"place": 0, "choice": ["A"], "comment": ""},
            {"place": 0, "choice": "A", "comment": 7},
        )
        for value in values:
            with self.subTest(str(value)):
                self.post("label", value, 400)
        for place in (-1, 4, "x", None, True, 1.5):
            with self.subTest(str(place)):
                self.post("label", {"place": place, "choice": "A", "comment": ""}, 404)
        for odd in (float("inf"), -5, 1e300, "x"):
            self.post("label", {"place": 1, "choice": "A", "comment": "", "seconds": odd})
        self.assertIsNone(self.session.label(0))
        self.assertEqual([one.seconds for one in labels.read_labels(self.path)], [None, 0.0, 1e7, None])

    def test_a_full_disk_is_said_and_the_item_stays_open(self) -> None:
        def full(_: object) -> None:
            raise OSError(28, "No space left on device")

        self.session.book.append = full
        said = self.post("label", {"place": 0, "choice": "A", "comment": ""}, 507)
        self.assertIn("No space left", said["error"])
        self.assertEqual(self.get("state")["open"], 0)

    def test_many_requests_at_once_keep_every_label(self) -> None:
        def work(place: int) -> None:
            for choice in ("A", "B", "equal"):
                self.post("label", {"place": place, "choice": choice, "comment": ""})

        threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = labels.read_labels(self.path)
        self.assertEqual(len(kept), 12)
        self.assertEqual({one.label for one in labels.standing(kept).values()}, {"equal"})


class Scores(ServerCase):
    kind = "score"

    def test_scores_have_their_scale_and_texts_come_raw_and_as_blocks(self) -> None:
        state = self.get("state")
        self.assertEqual([one["value"] for one in state["scale"]], [1, 2, 3, 4, 5])
        item = self.get("item/0")
        self.assertEqual(item["panels"][0]["blocks"][0]["kind"], "heading")
        self.assertEqual(item["answers"][0]["raw"], "an answer <b>x</b>")
        self.post("label", {"place": 0, "choice": 4, "comment": ""})
        self.post("label", {"place": 1, "choice": None, "comment": ""})
        self.assertEqual([one["choice"] for one in self.get("state")["items"]], [4, None, None, None])
        self.post("label", {"place": 0, "choice": 0, "comment": ""}, 400)


if __name__ == "__main__":
    unittest.main()
