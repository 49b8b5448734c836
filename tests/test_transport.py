"""engine/transport.py: connections that are kept and replaced, time limits, TLS, proxies."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import tempfile
import threading
import time
import unittest
from typing import Any
from unittest import mock

from fault_server import (
    Close,
    Drip,
    FaultServer,
    Hang,
    Json,
    Raw,
    Request,
    Reset,
    always,
    http,
    make_certificate,
    script,
)
from rooms import room

transport = room("transport")
OK = Json({"ok": True})
QUICK = transport.Timeouts(connect_s=2.0, read_s=0.4, total_s=0.8)


def environment(**settings: str) -> Any:
    """The environment without any proxy setting but the given ones."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return mock.patch.dict(os.environ, {**kept, **settings}, clear=True)


def make(**kw: Any) -> Any:
    return transport.Transport(kw.pop("timeouts", QUICK), clock=time.monotonic, **kw)


def post(sender: Any, server: FaultServer, body: bytes = b"{}") -> Any:
    return sender(server.base + "/chat/completions", {"Authorization": "Bearer canary"}, body)


class KeptConnections(unittest.TestCase):
    def test_one_worker_keeps_one_connection(self) -> None:
        with FaultServer(always(OK)) as server:
            sender = make()
            for _ in range(5):
                self.assertEqual(post(sender, server).status, 200)
            sender.close()
            self.assertEqual((server.count, server.connections), (5, 1))

    def test_each_worker_keeps_its_own(self) -> None:
        with FaultServer(always(OK)) as server:
            sender, barrier = make(), threading.Barrier(4)

            def work() -> None:
                for _ in range(3):
                    post(sender, server)
                barrier.wait(5)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            sender.close()
            self.assertEqual((server.count, server.connections), (12, 4))

    def test_a_connection_that_the_server_closed_meanwhile_is_replaced_before_anything_is_sent(self) -> None:
        with FaultServer(always(OK), idle_close_s=0.05) as server:
            sender = make()
            post(sender, server)
            time.sleep(0.3)
            answer = post(sender, server)
            sender.close()
            self.assertEqual((answer.status, answer.resent), (200, False))
            self.assertEqual((server.count, server.connections), (2, 2))

    def test_a_kept_connection_closed_without_a_byte_of_reply_is_replaced_once_and_said(self) -> None:
        for breaking in (Close(), Reset()):
            with self.subTest(breaking), FaultServer(script([OK, breaking], always(OK))) as server:
                sender = make()
                post(sender, server)
                answer = post(sender, server)
                sender.close()
                self.assertEqual((answer.status, answer.resent), (200, True))
                self.assertEqual((server.count, server.connections), (3, 2))

    def test_a_new_connection_closed_without_a_reply_is_a_fault_and_nothing_is_resent(self) -> None:
        for breaking in (Close(), Reset()):
            with self.subTest(breaking), FaultServer(always(breaking)) as server:
                sender = make()
                with self.assertRaises(transport.Fault) as caught:
                    post(sender, server)
                sender.close()
                self.assertEqual((caught.exception.kind, caught.exception.sent, server.count), ("connection", True, 1))

    def test_a_kept_connection_is_replaced_once_only(self) -> None:
        with FaultServer(script([OK, Close()], always(Close()))) as server:
            sender = make()
            post(sender, server)
            with self.assertRaises(transport.Fault) as caught:
                post(sender, server)
            sender.close()
            self.assertEqual((caught.exception.resent, server.count), (True, 3))

    def test_a_reply_that_arrives_late_is_never_taken_for_the_next_one(self) -> None:
        late = http("200 OK", b'{"late": true}')
        doubled = Raw(http("200 OK", b'{"first": true}') + late, keep=True)
        with FaultServer(script([doubled], always(OK))) as server:
            sender = make()
            self.assertIn(b"first", post(sender, server).body)
            self.assertIn(b"ok", post(sender, server).body)
            sender.close()
            self.assertEqual(server.connections, 2)

    def test_an_early_refusal_of_a_large_request_is_still_read(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def refuse() -> None:
                sock, _ = listener.accept()
                sock.recv(100)
                sock.sendall(http("413 Too Large", b'{"error": "too large"}', "Connection: close"))
                sock.shutdown(socket.SHUT_WR)
                time.sleep(0.3)
                sock.close()

            thread = threading.Thread(target=refuse)
            thread.start()
            sender = make()
            answer = sender(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", {}, b"x" * 100_000)
            thread.join()
            sender.close()
        self.assertEqual(answer.status, 413)


class TimeLimits(unittest.TestCase):
    def fault(self, action: Any, timeouts: Any = QUICK) -> tuple[Any, float]:
        with FaultServer(always(action)) as server:
            sender, began = make(timeouts=timeouts), time.monotonic()
            with self.assertRaises(transport.Fault) as caught:
                post(sender, server)
            sender.close()
            return caught.exception, time.monotonic() - began

    def test_h15_silence_ends_with_the_time_of_one_operation(self) -> None:
        for action in (Hang(), Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{")):
            with self.subTest(action):
                fault, took_s = self.fault(action)
                self.assertEqual((fault.kind, fault.sent), ("timeout", True))
                self.assertLess(took_s, 3.0)

    def test_h16_bytes_now_and_then_do_not_hold_a_worker(self) -> None:
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for head, piece in ((chunked, b"1\r\n\n\r\n"), (b"HTTP/1.1 200 OK\r\n", b"X"), (b"", b"H")):
            with self.subTest(head):
                fault, took_s = self.fault(Drip(head, piece, 0.1))
                self.assertIn(fault.kind, ("timeout", "bad_http"))
                self.assertLess(took_s, 3.0)

    def test_closing_ends_a_call_under_way(self) -> None:
        with FaultServer(always(Hang())) as server:
            sender = make(timeouts=transport.Timeouts(2.0, 30.0, 30.0))
            threading.Timer(0.2, sender.close).start()
            began = time.monotonic()
            with self.assertRaises(transport.Fault):
                post(sender, server)
            self.assertLess(time.monotonic() - began, 5.0)

    def test_a_large_reply_is_refused_before_it_is_read(self) -> None:
        with FaultServer(always(Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"))) as server:
            sender = make()
            with self.assertRaises(transport.Fault) as caught:
                post(sender, server)
            sender.close()
        self.assertEqual(caught.exception.kind, "too_large")


class Connecting(unittest.TestCase):
    def test_h21_a_name_with_two_addresses_is_tried_at_both(self) -> None:
        both = [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
        ]

        def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
            return [(*one[:4], (one[4][0], port, *one[4][2:])) for one in both]

        with FaultServer(always(OK)) as server, mock.patch("socket.getaddrinfo", resolve):
            sender = make()
            answer = sender(f"http://localhost:{server.port}/v1", {}, b"{}")
            sender.close()
        self.assertEqual(answer.status, 200)

    def test_h21_a_refused_connection_names_the_place_and_nothing_was_sent(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with self.assertRaises(transport.Fault) as caught:
            make()(f"http://localhost:{port}/v1", {}, b"{}")
        fault = caught.exception
        self.assertEqual((fault.kind, fault.sent), ("connection", False))
        self.assertIn(f"refused by localhost:{port}", fault.text)
        self.assertIn("127.0.0.1", fault.hint)

    def test_a_name_that_does_not_exist_is_named(self) -> None:
        error = socket.gaierror(-2, "Name or service not known")
        with mock.patch("socket.getaddrinfo", side_effect=error), environment():
            with self.assertRaises(transport.Fault) as caught:
                make()("https://judge.invalid/v1", {}, b"{}")
        self.assertIn("judge.invalid", caught.exception.text)
        self.assertFalse(caught.exception.sent)

    def test_a_line_break_never_reaches_the_head_of_a_request(self) -> None:
        with FaultServer(always(OK)) as server:
            with self.assertRaises(ValueError):
                make()(server.base, {"X": "a\r\nEvil: 1"}, b"{}")
            self.assertEqual(server.count, 0)


class Tls(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    certificate: str | None

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate = make_certificate(cls.folder.name, "IP:127.0.0.1", "DNS:localhost", "DNS:judge.example")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def setUp(self) -> None:
        if self.certificate is None:
            self.skipTest("no openssl command to make a certificate with")

    def trusted(self) -> Any:
        return environment(SSL_CERT_FILE=f"{self.certificate}.crt")

    def test_h20_an_untrusted_certificate_is_a_fault_that_says_what_to_set(self) -> None:
        with FaultServer(always(OK), certificate=self.certificate) as server, environment():
            with self.assertRaises(transport.Fault) as caught:
                post(make(), server)
            self.assertEqual(server.count, 0)
        fault = caught.exception
        self.assertEqual((fault.kind, fault.sent), ("certificate", False))
        self.assertIn("certificate not trusted", fault.text)
        self.assertIn("SSL_CERT_FILE", fault.hint)
        self.assertIn("Install Certificates.command", fault.hint)

    def test_a_trusted_certificate_works_and_its_connection_is_kept(self) -> None:
        with FaultServer(always(OK), certificate=self.certificate) as server, self.trusted():
            sender = make()
            for _ in range(4):
                self.assertEqual(post(sender, server).status, 200)
            sender.close()
            self.assertEqual((server.count, server.connections), (4, 1))

    def test_a_stale_tls_connection_is_replaced(self) -> None:
        with FaultServer(always(OK), certificate=self.certificate, idle_close_s=0.05) as server, self.trusted():
            sender = make()
            post(sender, server)
            time.sleep(0.3)
            self.assertEqual(post(sender, server).status, 200)
            sender.close()
            self.assertEqual((server.count, server.connections), (2, 2))

    def test_a_certificate_for_another_name_is_not_trusted(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            other = make_certificate(folder, "DNS:other.example")
            with FaultServer(always(OK), certificate=other) as server:
                with environment(SSL_CERT_FILE=f"{other}.crt"):
                    with self.assertRaises(transport.Fault) as caught:
                        post(make(), server)
        self.assertEqual(caught.exception.kind, "certificate")

    def test_plain_http_behind_an_https_address_is_named(self) -> None:
        def answer_in_http(listener: socket.socket) -> None:
            sock, _ = listener.accept()
            sock.recv(65536)
            sock.sendall(http("400 Bad Request"))
            sock.close()

        with socket.create_server(("127.0.0.1", 0)) as listener, environment():
            thread = threading.Thread(target=answer_in_http, args=(listener,))
            thread.start()
            with self.assertRaises(transport.Fault) as caught:
                make()(f"https://127.0.0.1:{listener.getsockname()[1]}/v1", {}, b"{}")
            thread.join()
        self.assertEqual(caught.exception.kind, "tls")
        self.assertIn("plain http", caught.exception.hint)

    def test_a_remote_host_is_reached_through_the_proxy_with_the_key_inside_the_tunnel(self) -> None:
        with FaultServer(always(OK), certificate=self.certificate) as server, Tunnel(server.port) as proxy:
            settings = {"HTTPS_PROXY": f"http://user:p%40ss@127.0.0.1:{proxy.port}"}
            with self.trusted(), mock.patch.dict(os.environ, settings):
                sender = make()
                for _ in range(2):
                    answer = sender("https://judge.example/v1/x", {"Authorization": "Bearer canary"}, b"{}")
                sender.close()
            self.assertTrue(answer.proxied)
            self.assertEqual(server.requests[0].headers["authorization"], "Bearer canary")
            self.assertEqual(server.requests[0].headers["host"], "judge.example")
            self.assertIn(b"CONNECT judge.example:443", proxy.heads[0])
            self.assertIn(b"Proxy-Authorization: Basic dXNlcjpwQHNz", proxy.heads[0])
            self.assertNotIn(b"canary", b"".join(proxy.heads))
            self.assertEqual(len(proxy.heads), 1)

    def test_verification_is_never_off(self) -> None:
        context = make().tls()
        self.assertEqual((context.verify_mode, context.check_hostname), (ssl.CERT_REQUIRED, True))


class Tunnel:
    """A proxy that answers CONNECT and passes bytes to a local port; `heads` is what it was told."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.heads: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> Tunnel:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        for sock in (self.listener, *self.sockets):
            sock.close()

    def serve(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.heads.append(near.recv(65536))
            far = socket.create_connection(("127.0.0.1", self.target))
            self.sockets += [near, far]
            near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass


class Proxies(unittest.TestCase):
    def test_h18_this_machine_is_never_reached_through_a_proxy(self) -> None:
        bad = always(Raw(http("502 Bad Gateway", b"proxy")))
        with FaultServer(bad) as proxy, FaultServer(always(OK)) as server:
            with environment(HTTP_PROXY=f"http://127.0.0.1:{proxy.port}", http_proxy=f"http://127.0.0.1:{proxy.port}"):
                sender = make()
                answer = post(sender, server)
                sender.close()
            self.assertEqual((answer.status, answer.proxied, proxy.count), (200, False, 0))

    def test_h19_the_library_decides_which_hosts_go_direct(self) -> None:
        with environment(https_proxy="http://proxy.example:3128", no_proxy=".corp.example,10.0.0.5:8443"):
            for url, proxied in (
                ("https://llm.corp.example/v1", False),
                ("https://api.example/v1", True),
                ("https://10.0.0.5:8443/v1", False),
                ("https://10.0.0.5:9999/v1", True),
                ("https://127.0.0.1:1/v1", False),
                ("https://localhost:1/v1", False),
                ("https://[::1]:1/v1", False),
            ):
                with self.subTest(url):
                    self.assertEqual(transport.route_to(url).proxy is not None, proxied)
            self.assertEqual(transport.route_to("https://api.example/v1").proxy, ("proxy.example", 3128, None))

    def test_a_refusal_by_the_proxy_says_that_it_was_the_proxy(self) -> None:
        for status, kind in (("502 Bad Gateway", "connection"), ("403 Forbidden", "proxy"), ("407 Login", "proxy")):
            with self.subTest(status), FaultServer(always(Raw(http(status)))) as proxy:
                with environment(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}"):
                    with self.assertRaises(transport.Fault) as caught:
                        make()("https://judge.example/v1", {"Authorization": "Bearer canary"}, b"{}")
                fault = caught.exception
                self.assertEqual((fault.kind, fault.sent), (kind, False))
                self.assertIn(f"the proxy 127.0.0.1:{proxy.port} refused", fault.text)
                self.assertNotIn("canary", str(proxy.requests))

    def test_a_refusal_that_echoes_the_login_does_not_show_it(self) -> None:
        coded = base64.b64encode(b"someone:p@ssw0rd").decode()
        for echo in (f"Proxy-Authorization: Basic {coded}", coded[:-6], "someone:p@ssw0rd", "p@ssw0rd for someone",
                     "p%40ssw0rd", coded.encode().hex(), b"p@ssw0rd".hex(":")):  # fmt: skip
            reply = always(Raw(http(f"403 denied {echo}")))
            with self.subTest(echo), FaultServer(reply) as proxy:
                with environment(HTTPS_PROXY=f"http://someone:p%40ssw0rd@127.0.0.1:{proxy.port}"):
                    with self.assertRaises(transport.Fault) as caught:
                        make()("https://judge.example/v1", {}, b"{}")
                text = caught.exception.text
                self.assertIn("HTTP 403 denied", text)
                self.assertIn(transport.LOGIN_REMOVED, text)
                for part in (coded[:10], "ssw0rd", "someone", echo):
                    self.assertNotIn(part, text)

    def test_a_setting_that_names_no_proxy_is_a_fault_that_does_not_show_it(self) -> None:
        for name in ("HTTPS_PROXY", "https_proxy"):
            for address in (
                *(
                    "http:/user:secret@h.example",
                    "http://user:secret@h.example:port",
                    "http://user:secret@h.example:99999",
                ),
                *(
                    "http://user:secret@[::1",
                    "http://user:secret@",
                    "http://user:secret@h e:80",
                    "http://h:0",
                    "http:secret",
                ),
                *("secret://user:secret@h.example", "user:secret@h.example:80/x", "http://secret@h.example:80:80"),
            ):
                with self.subTest(address), environment(**{name: address}):
                    with self.assertRaises(transport.Fault) as caught:
                        make()("https://judge.example/v1", {}, b"{}")
                    fault = caught.exception
                    self.assertEqual(("proxy", False), (fault.kind, fault.sent))
                    self.assertIn(f"{name}: ", fault.text)
                    self.assertNotIn("secret", fault.text + fault.hint)
                with environment(**{name: address, "NO_PROXY": "judge.example"}):
                    self.assertIsNone(transport.route_to("https://judge.example/v1").proxy)

    def test_the_forms_in_which_a_proxy_may_be_named(self) -> None:
        for address, expected in (
            ("proxy.example:3128", ("proxy.example", 3128, None)),
            ("http://proxy.example", ("proxy.example", 80, None)),
            ("HTTP://proxy.example:/", ("proxy.example", 80, None)),
            ("http://user@proxy.example:8080/path", ("proxy.example", 8080, None)),
            ("http://[::1]:8080", ("::1", 8080, None)),
            ("user:a%2Fb@proxy.example:1", ("proxy.example", 1, "Basic dXNlcjphL2I=")),
            ("http://user:a/b@proxy.example:1", ("proxy.example", 1, "Basic dXNlcjphL2I=")),
        ):
            with self.subTest(address), environment(HTTPS_PROXY=address):
                self.assertEqual(expected, transport.route_to("https://judge.example/v1").proxy)

    def test_an_interim_reply_of_the_proxy_is_no_refusal(self) -> None:
        replies = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 Connection established\r\n\r\n", b"rest"]
        stream, route = iter(b"".join(replies)), transport.Route(True, "h", 443, "/", ("p", 80, None))
        timed = mock.Mock(receive_one=lambda: bytes([next(stream)]))
        transport.open_tunnel(timed, route)
        self.assertEqual(b"rest", bytes(stream))

    def test_a_proxy_of_another_kind_is_refused_by_name(self) -> None:
        with environment(HTTPS_PROXY="socks5://127.0.0.1:1080"):
            with self.assertRaises(transport.Fault) as caught:
                make()("https://judge.example/v1", {}, b"{}")
        self.assertIn("socks5", caught.exception.text)


class WhatIsSent(unittest.TestCase):
    def test_the_request_is_one_plain_post(self) -> None:
        seen: list[Request] = []

        def answer(request: Request) -> Any:
            seen.append(request)
            return OK

        with FaultServer(answer) as server:
            sender = make()
            sender(server.base + "/x?api-version=1", {"Content-Type": "application/json"}, "{é}".encode())
            sender.close()
            self.assertEqual((seen[0].method, seen[0].path), ("POST", "/v1/x?api-version=1"))
            self.assertEqual(seen[0].body, "{é}".encode())
            self.assertEqual(seen[0].headers["host"], f"127.0.0.1:{server.port}")


if __name__ == "__main__":
    unittest.main()
