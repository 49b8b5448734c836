"""engine/http_reply.py: one HTTP reply out of a stream of pieces, however they are cut and whatever they hold."""

from __future__ import annotations

import gzip
import random
import time
import unittest
import zlib
from collections.abc import Iterable
from typing import Any

from rooms import room

http_reply = room("http_reply")
OK = b"HTTP/1.1 200 OK\r\n"


def read(*pieces: bytes, max_bytes: int = 10_000) -> Any:
    """The reply in these pieces, with the stream's end behind them."""
    left = iter(pieces)
    return http_reply.read_reply(lambda: next(left, b""), max_bytes)


def with_body(body: bytes, *headers: bytes) -> bytes:
    return OK + b"".join(header + b"\r\n" for header in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


class GoodReplies(unittest.TestCase):
    def test_a_reply_is_the_same_however_its_bytes_are_cut(self) -> None:
        chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2;x=y\r\nef\r\n0\r\nTrailer: 1\r\n\r\n"
        for whole, body in ((with_body(b'{"a": 1}'), b'{"a": 1}'), (chunked, b"abcdef")):
            expected = read(whole)
            self.assertEqual((expected.status, expected.body, expected.keep), (200, body, True))
            for size in (1, 2, 3, 7, 50):
                pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
                with self.subTest(body=body, size=size):
                    self.assertEqual(read(*pieces), expected)

    def test_bare_line_feeds_folded_lines_and_repeated_headers_are_understood(self) -> None:
        reply = read(b"HTTP/1.1 429 \nRetry-After: 3\nX-A: one\n two\nVia: a\nVia: b\nVia\nContent-Length: 2\n\nok")
        self.assertEqual((reply.status, reply.reason, reply.body), (429, "", b"ok"))
        self.assertEqual(reply.headers["retry-after"], "3")
        self.assertEqual((reply.headers["x-a"], reply.headers["via"]), ("one two", "a, b"))

    def test_interim_replies_are_skipped(self) -> None:
        reply = read(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", with_body(b"x"))
        self.assertEqual((reply.status, reply.body), (200, b"x"))

    def test_a_reply_without_a_body_needs_no_length(self) -> None:
        for status in (b"204 No Content", b"304 Not Modified"):
            self.assertEqual(read(b"HTTP/1.1 " + status + b"\r\n\r\n").body, b"")

    def test_a_reply_without_a_length_ends_with_the_connection(self) -> None:
        reply = read(OK + b"\r\nab", b"cd")
        self.assertEqual((reply.body, reply.keep), (b"abcd", False))


class KeepingTheConnection(unittest.TestCase):
    CASES = (
        ("HTTP/1.1 keeps", b"HTTP/1.1", b"X: 1", b"", True),
        ("close is obeyed", b"HTTP/1.1", b"Connection: Close", b"", False),
        ("HTTP/1.0 closes", b"HTTP/1.0", b"X: 1", b"", False),
        ("HTTP/1.0 with keep-alive", b"HTTP/1.0", b"Connection: keep-alive", b"", True),
        ("bytes behind the reply", b"HTTP/1.1", b"X: 1", b"HTTP/1.1 200 OK\r\n\r\n", False),
        ("one stray byte", b"HTTP/1.1", b"X: 1", b"\n", False),
    )

    def test_a_connection_is_kept_only_where_the_end_of_the_reply_is_certain(self) -> None:
        for name, version, header, behind, keep in self.CASES:
            with self.subTest(name):
                self.assertEqual(
                    read(version + b" 200 OK\r\n" + header + b"\r\nContent-Length: 1\r\n\r\nx" + behind).keep, keep
                )

    def test_a_length_beside_chunks_is_not_trusted_for_the_next_reply(self) -> None:
        reply = read(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
        self.assertEqual((reply.body, reply.keep), (b"a", False))


class BrokenReplies(unittest.TestCase):
    CASES: Iterable[tuple[str, str, bytes]] = (
        ("nothing", "cut", b""),
        ("cut in the head", "cut", b"HTTP/1.1 200 OK\r\nContent-"),
        ("cut in the body", "cut", OK + b"Content-Length: 400\r\n\r\n{"),
        ("cut in a chunk", "cut", OK + b"Transfer-Encoding: chunked\r\n\r\n8\r\nabc"),
        ("cut before the last chunk", "cut", OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
        ("cut in the trailer", "cut", OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n"),
        ("another protocol", "bad_http", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("HTTP/2 preface", "bad_http", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"),
        ("HTTP/0.9 page", "bad_http", b"<html>hello</html>"),
        ("no status", "bad_http", b"HTTP/1.1 abc\r\n\r\n"),
        ("status of two digits", "bad_http", b"HTTP/1.1 20 OK\r\n\r\n"),
        ("two lengths", "bad_http", OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        ("negative length", "bad_http", OK + b"Content-Length: -1\r\n\r\nab"),
        ("length with an underscore", "bad_http", OK + b"Content-Length: 1_0\r\n\r\n0123456789"),
        ("chunk size no number", "bad_http", OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ("negative chunk", "bad_http", OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n"),
        ("chunk longer than said", "bad_http", OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n"),
        ("endless size line", "bad_http", OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 5000),
        ("endless head", "bad_http", OK + b"X: " + b"a" * 70_000),
        ("only interim replies", "bad_http", b"HTTP/1.1 100 Continue\r\n\r\n" * 20),
        ("length above the bound", "too_large", OK + b"Content-Length: 10001\r\n\r\n"),
        ("chunks above the bound", "too_large", OK + b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n"),
        ("stream above the bound", "too_large", OK + b"\r\n" + b"a" * 10_001),
        ("unknown transfer coding", "bad_encoding", OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ("unknown content coding", "bad_encoding", with_body(b"abc", b"Content-Encoding: br")),
        ("not what it is said to be", "bad_encoding", with_body(b"abc", b"Content-Encoding: gzip")),
    )

    def test_each_ends_with_its_own_kind_of_problem(self) -> None:
        for name, kind, data in self.CASES:
            for size in (len(data) or 1, 5):
                pieces = [data[at : at + size] for at in range(0, len(data), size)]
                with self.subTest(name, size=size), self.assertRaises(http_reply.HttpProblem) as caught:
                    read(*pieces)
                self.assertEqual(caught.exception.kind, kind, caught.exception.text)


class ContentCodings(unittest.TestCase):
    TEXT = b'{"choice": "A"}' * 20

    def test_h22_compressed_bodies_are_unpacked_whoever_asked_for_them(self) -> None:
        raw = zlib.compressobj(9, zlib.DEFLATED, -15)
        cases = {
            b"gzip": gzip.compress(self.TEXT),
            b"X-GZIP": gzip.compress(self.TEXT),
            b"deflate": zlib.compress(self.TEXT),
            b"Deflate ": raw.compress(self.TEXT) + raw.flush(),
            b"identity": self.TEXT,
            b"gzip, identity": gzip.compress(self.TEXT),
            b"deflate, gzip": gzip.compress(zlib.compress(self.TEXT)),
        }
        for coding, body in cases.items():
            with self.subTest(coding):
                self.assertEqual(read(with_body(body, b"Content-Encoding: " + coding)).body, self.TEXT)

    def test_several_gzip_members_are_one_body_and_padding_behind_them_is_left_out(self) -> None:
        body = gzip.compress(self.TEXT) + gzip.compress(b"more") + b"\0" * 8
        self.assertEqual(read(with_body(body, b"Content-Encoding: gzip")).body, self.TEXT + b"more")

    def test_a_body_of_very_many_gzip_members_is_refused_at_once(self) -> None:
        trap, began = gzip.compress(b"") * 200_000 + gzip.compress(b"{}"), time.monotonic()
        with self.assertRaises(http_reply.HttpProblem) as caught:
            read(with_body(trap, b"Content-Encoding: gzip"), max_bytes=16_000_000)
        self.assertLess(time.monotonic() - began, 3)
        self.assertEqual("bad_encoding", caught.exception.kind)
        self.assertIn("more than 100 members", caught.exception.text)

    def test_a_body_packed_over_and_over_is_refused_and_identity_counts_for_nothing(self) -> None:
        packed = gzip.compress(gzip.compress(b"x"))
        names = b", ".join([b"gzip", b"identity", b"gzip", *[b"identity"] * 50])
        self.assertEqual(b"x", read(with_body(packed, b"Content-Encoding: " + names)).body)
        with self.assertRaisesRegex(http_reply.HttpProblem, "more than 4 times"):
            read(with_body(packed, b"Content-Encoding: " + b", ".join([b"gzip"] * 5)))

    def test_cut_compressed_data_is_a_cut_reply(self) -> None:
        with self.assertRaises(http_reply.HttpProblem) as caught:
            read(with_body(gzip.compress(self.TEXT)[:-9], b"Content-Encoding: gzip"))
        self.assertEqual(caught.exception.kind, "cut")

    def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(self) -> None:
        bomb = gzip.compress(b"\0" * 5_000_000)
        self.assertLess(len(bomb), 10_000)
        with self.assertRaises(http_reply.HttpProblem) as caught:
            read(with_body(bomb, b"Content-Encoding: gzip"))
        self.assertEqual(caught.exception.kind, "too_large")


class AnythingAtAll(unittest.TestCase):
    def test_3000_mutated_replies_are_read_or_refused(self) -> None:
        rng = random.Random(11)
        chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2;x=y\r\nef\r\n0\r\nT: 1\r\n\r\n"
        packed = with_body(gzip.compress(b"x" * 50), b"Content-Encoding: gzip")
        ends = {"reply": 0, "refused": 0}
        for _ in range(3000):
            data = bytearray(rng.choice([chunked, packed, with_body(b'{"a": 1}', b"Connection: keep-alive")]))
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(data))
                data[at : at + rng.randint(0, 6)] = rng.choice([b"", b"\r\n", b"9999999", b"-", b"\xff", b": ", b"0"])
            try:
                reply = read(bytes(data))
                ends["reply"] += 1
                self.assertTrue(200 <= reply.status <= 999)
            except http_reply.HttpProblem:
                ends["refused"] += 1
        self.assertGreater(min(ends.values()), 300, ends)


if __name__ == "__main__":
    unittest.main()
