"""Labelling in a browser: a page served to this machine alone, with everything it needs inside the toolkit.

The server listens on 127.0.0.1 only. Each address carries a random token; a request without it, with a foreign Host
or from a foreign page gets an empty refusal and no word of the texts. Texts leave as JSON and reach the page as text
nodes under a policy that runs no script and loads no style but the page's own, so nothing in an answer can act.
The judge's verdict is not sent until the person asks for the result, and from then on no label can be changed.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import socketserver
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, NamedTuple

import agreement
import label_markdown
import label_page
import label_terminal
import labels

# === Constants ===

HOST = "127.0.0.1"
TOKEN_BYTES = 24
MAX_BODY = 64 * 1024  # bytes of one answer with its comment
LENGTH = re.compile(r"[0-9]{1,15}")  # what a body's length may look like
MAX_SECONDS = 1e7
READ_TIMEOUT_S = 30  # a request that takes longer to arrive is dropped
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # The address holds the token; it must not leave as a referrer, and answers must still say where they come from.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Reply(NamedTuple):
    """What one request gets."""

    status: int
    kind: str = ""
    body: bytes = b""


class Refused(Exception):
    """A request that is understood and not done: HTTP status and one line for the person."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


# === Who may ask ===


def may_ask(method: str, path: str, headers: Mapping[str, str], token: str, port: int) -> int:
    """200 for a request of our own page, else the status of an empty refusal.

    403: a Host that is not this server (a name rebound to 127.0.0.1), or a page of another origin. 404: no token.
    """
    hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    host = headers.get("Host", "")
    if host not in hosts:
        return 403
    origin = headers.get("Origin")
    if (origin is None and method != "GET") or (origin is not None and origin != f"http://{host}"):
        return 403
    if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return 403
    given = path.split("/")[1] if path.startswith("/") else ""
    return 200 if secrets.compare_digest(given.encode("utf-8", "replace"), token.encode("ascii")) else 404


# === What the page asks for ===


class LabelSite:
    """The answers to the page's requests; one at a time touches the session."""

    def __init__(self, session: labels.Session, title: str, result: Callable[[], dict[str, Any]]) -> None:
        """result: works out what to show at the end, called once, when the person asks for it."""
        self.session, self.title, self.result = session, title, result
        self.lock = threading.Lock()
        self.closed = False
        self.stop: Callable[[], None] = lambda: None

    def get(self, path: str) -> Reply:
        """What a GET below the token gives."""
        if path == "":
            return Reply(200, "text/html; charset=utf-8", label_page.HTML.encode("utf-8"))
        if path == "page.js":
            return Reply(200, "text/javascript; charset=utf-8", label_page.SCRIPT.encode("utf-8"))
        if path == "page.css":
            return Reply(200, "text/css; charset=utf-8", label_page.STYLE.encode("utf-8"))
        if path == "icon.svg":
            return Reply(200, "image/svg+xml", label_page.ICON.encode("utf-8"))
        with self.lock:
            if path == "state":
                return as_json(self.state())
            if path.startswith("item/"):
                return as_json(self.item(self.place(path.removeprefix("item/"))))
        return Reply(404)

    def post(self, path: str, body: bytes) -> Reply:
        """What a POST below the token does. Raises: Refused."""
        try:
            given = json.loads(body.decode("utf-8")) if body else {}
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise Refused(400, "expected a JSON object")
        with self.lock:
            if path == "label":
                return as_json(self.keep(given))
            if path == "result":
                self.closed = True
                return as_json(self.result())
        if path == "stop":
            self.stop()
            return as_json({"stopped": True})
        return Reply(404)

    def place(self, value: object) -> int:
        """An item's place, from the address or an answer. Raises: Refused."""
        with contextlib.suppress(TypeError, ValueError):
            place = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else -1
            if 0 <= place < len(self.session.tasks):
                return place
        raise Refused(404, "there is no such item")

    def state(self) -> dict[str, Any]:
        """Progress and settings; nothing of the judge."""
        kind = self.session.tasks[0].kind
        scale = [{"value": score, "word": word} for score, word in label_terminal.SCALE]
        return {
            "title": self.title,
            "annotator": self.session.annotator,
            "kind": kind,
            "scale": scale if kind == "score" else [],
            "items": [self.standing(place) for place in range(len(self.session.tasks))],
            "open": self.session.next_open(),
            "closed": self.closed,
            "file": self.session.book.path,
        }

    def standing(self, place: int) -> dict[str, Any]:
        """What the person has said about one item, in shown positions."""
        given = self.session.label(place)
        return {
            "done": given is not None,
            "choice": self.session.choice(place),
            "comment": given.comment if given else "",
        }

    def item(self, place: int) -> dict[str, Any]:
        """The texts of one item, each raw and as blocks; model names and verdicts stay here."""
        task = self.session.tasks[place]
        return {
            "place": place,
            "item": label_terminal.harmless(task.title),
            "category": label_terminal.harmless(task.category),
            "panels": [both_forms(title, text) for title, text in task.panels if text.strip()],
            "answers": [both_forms("", text) for text in self.session.answers(place)],
            **self.standing(place),
        }

    def keep(self, given: dict[str, Any]) -> dict[str, Any]:
        """Keep one answer; it is on disk when the page hears so. Raises: Refused."""
        if self.closed:
            raise Refused(409, "the result was shown, so labels are closed; start again to change one")
        place = self.place(given.get("place"))
        comment, seconds = given.get("comment", ""), given.get("seconds")
        if not isinstance(comment, str) or "choice" not in given:
            raise Refused(400, "expected place, choice and a text as comment")
        seconds = min(float(seconds or 0), MAX_SECONDS) if agreement.is_number(seconds) else None
        try:
            self.session.give(place, given["choice"], comment, seconds)
        except labels.LabelError as error:
            raise Refused(400, str(error)) from None
        except OSError as error:
            raise Refused(507, f"the label could not be written: {error.strerror}") from None
        return {"place": place, **self.standing(place), "open": self.session.next_open(place)}


def both_forms(title: str, text: str) -> dict[str, Any]:
    """A text as it is, made harmless to the eye, and as blocks to be shown."""
    shown = label_terminal.harmless(text)
    return {"title": title, "raw": shown, "blocks": label_markdown.blocks(shown)}


def as_json(value: Any) -> Reply:
    """ASCII JSON, so that even half a surrogate pair reaches the page."""
    return Reply(200, "application/json", json.dumps(value, allow_nan=False).encode("ascii"))


# === Server ===


class Handler(BaseHTTPRequestHandler):
    """One connection: who asks is settled before anything is looked at."""

    protocol_version = "HTTP/1.1"
    timeout = READ_TIMEOUT_S
    server: LabelServer

    def do_GET(self) -> None:
        self.answer("GET")

    def do_POST(self) -> None:
        self.answer("POST")

    def answer(self, method: str) -> None:
        """Refuse with nothing, or do what is asked."""
        body = self.body()
        status = may_ask(method, self.path, self.single_headers(), self.server.token, self.server.port)
        if body is None or status != 200:
            self.close_connection = True
            self.reply(Reply(status if status != 200 else 413))
            return
        path = self.path.partition("?")[0].removeprefix(f"/{self.server.token}").removeprefix("/")
        try:
            self.reply(self.server.site.get(path) if method == "GET" else self.server.site.post(path, body))
        except Refused as error:
            text = json.dumps({"error": str(error)}).encode("ascii")
            self.reply(Reply(error.status, "application/json", text))

    def single_headers(self) -> dict[str, str]:
        """The headers that count; one that is sent twice has its values joined, so that it matches nothing."""
        names = ("Host", "Origin", "Sec-Fetch-Site")
        found = {name: self.headers.get_all(name) for name in names}
        return {name: ", ".join(values) for name, values in found.items() if values}

    def body(self) -> bytes | None:
        """The request's body; None when it is too large or of unknown length."""
        length = self.headers.get("Content-Length", "0")
        if not LENGTH.fullmatch(length) or int(length) > MAX_BODY or "Transfer-Encoding" in self.headers:
            return None
        return self.rfile.read(int(length))

    def reply(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if reply.kind:
            self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A malformed request gets a status and nothing else."""
        self.close_connection = True
        self.request_version = "HTTP/1.1"  # what could not be read may have left an older one, which has no status line
        self.reply(Reply(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the address holds the token."""

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()


class LabelServer(ThreadingHTTPServer):
    """The page's server on a free (or the given) port of 127.0.0.1."""

    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, site: LabelSite, port: int = 0, token: str | None = None) -> None:
        """Raises: OSError when the port is taken."""
        self.site, self.token = site, token or secrets.token_urlsafe(TOKEN_BYTES)
        super().__init__((HOST, port), Handler)
        self.port: int = self.server_address[1]
        site.stop = self.stop_soon

    def server_bind(self) -> None:
        """Bind without the look-up of this machine's name that the library adds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    def stop_soon(self) -> None:
        """End `serve_forever` once the reply that asked for it is on its way."""
        threading.Timer(0.2, self.shutdown).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off is no news; anything else keeps its traceback."""
        import sys

        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            HTTPServer.handle_error(self, request, client_address)


def serve(session: labels.Session, title: str, result: Callable[[], dict[str, Any]], port: int, say: Any) -> bool:
    """Serve the page until the person closes it or presses Ctrl-C; True when nothing was left open.

    say: prints a line for the person. Raises: OSError when the port is taken.
    """
    with LabelServer(LabelSite(session, title, result), port) as server:
        say(f"open {server.address}")
        say("the address works on this machine only and until Ctrl-C; labels are kept as they are given")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.1)
    return session.next_open() is None
