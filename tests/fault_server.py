"""A loopback HTTP(S) server for tests and benchmarks: a judge that answers deterministically, and every kind of fault.

    with FaultServer() as server:                      # the standard judge
        ...  server.base  ...                          # "http://127.0.0.1:PORT/v1"
    with FaultServer(script([Raw(b"..."), Close()])) as server:   # first and second request, then the judge
    python3 tests/fault_server.py --port 0 --delay-ms 200         # a process of its own, prints its base URL

A behaviour is a function from a Request to what happens: Raw, Json, Drip, Wait, Close, Reset, Hang or Chunked.
It is made for speed (a small parser over sockets, one thread per connection), so it asks of its clients what the
toolkit's client does: HTTP/1.1 and Content-Length.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

# === What a behaviour is asked, and what it may answer ===


class Request(NamedTuple):
    """One request. number: from 1, over all connections; connection: from 1; headers: lower-case names."""

    number: int
    connection: int
    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Raw(NamedTuple):
    """These very bytes; the connection is closed afterwards unless `keep`."""

    data: bytes
    keep: bool = False


class Json(NamedTuple):
    """A JSON body with a status; the connection is kept."""

    value: Any
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()


class Chunked(NamedTuple):
    """A JSON body in chunks of `size` bytes."""

    value: Any
    size: int = 16


class Drip(NamedTuple):
    """`head` at once, then `piece` every `every_s` seconds, `times` times."""

    head: bytes
    piece: bytes
    every_s: float
    times: int = 1000


class Wait(NamedTuple):
    """A pause before another action."""

    seconds: float
    then: Any


class Close(NamedTuple):
    """The connection is closed after `data`."""

    data: bytes = b""


class Reset(NamedTuple):
    """The connection is reset (RST) after `data`."""

    data: bytes = b""


class Hang(NamedTuple):
    """`data`, then nothing more until the server is closed."""

    data: bytes = b""


Behaviour = Callable[[Request], Any]


# === The standard judge ===


def chosen(prompt: str) -> str:
    """A, B or equal, from a hash of the prompt: the same for the same pair in the same order."""
    return ("A", "B", "equal", "A", "B")[hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()[0] % 5]


def prompt_of(body: dict[str, Any]) -> str:
    """The last user message of a request in any dialect."""
    messages = body.get("messages") or body.get("input") or []
    return str(messages[-1].get("content", "")) if isinstance(messages, list) and messages else str(messages)


def judge(choose: Callable[[str], str] = chosen) -> Behaviour:
    """The standard judge: answers a request in its dialect and output mode with choose(prompt)."""

    def answer(request: Request) -> Any:
        body = request.json()
        prompt = prompt_of(body)
        verdict = {"choice": choose(prompt), "reason": f"judged {len(prompt)} characters"}
        path = request.path.partition("?")[0]
        if path.endswith("/messages"):
            return Json(messages_reply(body, verdict, prompt))
        if path.endswith("/responses"):
            return Json(responses_reply(body, verdict, prompt))
        return Json(chat_reply(body, verdict, prompt))

    return answer


def chat_reply(body: dict[str, Any], verdict: dict[str, str], prompt: str) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if body.get("tools"):
        call = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps(verdict)}
        message["tool_calls"] = [{"id": f"call_{tag(prompt)}", "type": "function", "function": call}]
    else:
        message["content"] = as_text(verdict, bool(body.get("response_format")))
    usage = {"prompt_tokens": len(prompt) // 4 + 60, "completion_tokens": 12, "total_tokens": len(prompt) // 4 + 72}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    reply = {"id": f"chatcmpl-{tag(prompt)}", "object": "chat.completion", "model": body.get("model")}
    return {**reply, "choices": [choice], "usage": usage}


def messages_reply(body: dict[str, Any], verdict: dict[str, str], prompt: str) -> dict[str, Any]:
    """A reply of Anthropic's Messages."""
    block: dict[str, Any] = {"type": "text", "text": as_text(verdict, "output_config" in body)}
    if body.get("tools"):
        block = {"type": "tool_use", "id": f"toolu_{tag(prompt)}", "name": body["tools"][0]["name"], "input": verdict}
    usage = {"input_tokens": len(prompt) // 4 + 60, "output_tokens": 12, "cache_read_input_tokens": 0}
    stop_reason = "tool_use" if body.get("tools") else "end_turn"
    reply = {"id": f"msg_{tag(prompt)}", "type": "message", "role": "assistant", "model": body.get("model")}
    return {**reply, "content": [block], "stop_reason": stop_reason, "usage": usage}


def responses_reply(body: dict[str, Any], verdict: dict[str, str], prompt: str) -> dict[str, Any]:
    """A reply of OpenAI's Responses."""
    part = {"type": "output_text", "text": as_text(verdict, bool(body.get("text"))), "annotations": []}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
    if body.get("tools"):
        item = {"type": "function_call", "call_id": f"call_{tag(prompt)}", "name": body["tools"][0]["name"]}
        item.update(status="completed", arguments=json.dumps(verdict))
    usage = {"input_tokens": len(prompt) // 4 + 60, "output_tokens": 12, "total_tokens": len(prompt) // 4 + 72}
    reply = {"id": f"resp_{tag(prompt)}", "object": "response", "status": "completed", "model": body.get("model")}
    return {**reply, "error": None, "output": [item], "usage": usage}


def as_text(verdict: dict[str, str], wants_json: bool) -> str:
    """A verdict as the content of a message: an object, or a mark on its own line."""
    mark = {"A": "[[A]]", "B": "[[B]]", "equal": "[[C]]"}.get(verdict["choice"], "[[?]]")
    return json.dumps(verdict) if wants_json else f"{verdict['reason']}\n\n{mark}"


def tag(prompt: str) -> str:
    """A short id that follows from the prompt."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# === Behaviours ===


def script(actions: Iterable[Any], then: Behaviour | None = None) -> Behaviour:
    """The nth request gets the nth action; later ones get `then` (the standard judge)."""
    listed, rest = list(actions), then or judge()

    def answer(request: Request) -> Any:
        return listed[request.number - 1] if request.number <= len(listed) else rest(request)

    return answer


def always(action: Any) -> Behaviour:
    """Every request gets the same action."""
    return lambda request: action


def http(status_line: str, body: bytes = b"", *headers: str) -> bytes:
    """A raw HTTP/1.1 response."""
    lines = [f"HTTP/1.1 {status_line}", *headers, f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def json_bytes(action: Json) -> bytes:
    """The response for a Json action."""
    body = json.dumps(action.value).encode("utf-8")
    given = [f"{name}: {value}" for name, value in action.headers]
    return http(f"{action.status} Status", body, "Content-Type: application/json", *given)


def chunked_bytes(action: Chunked) -> bytes:
    """The response for a Chunked action."""
    body = json.dumps(action.value).encode("utf-8")
    parts = [body[at : at + action.size] for at in range(0, len(body), action.size)]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


# === The server ===


class FaultServer:
    """A server on 127.0.0.1, in threads of this process. `requests` is the log, in order of arrival."""

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        *,
        delay_s: float = 0.0,
        certificate: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        keep_log: bool = True,
        idle_close_s: float | None = None,
    ) -> None:
        self.behaviour = behaviour or judge()
        self.delay_s = delay_s
        self.keep_log = keep_log
        self.idle_close_s = idle_close_s  # closes a kept connection that stays silent for this long
        self.requests: list[Request] = []
        self.count = 0
        self.connections = 0
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.open: set[socket.socket] = set()
        self.context: ssl.SSLContext | None = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        self.listener = socket.create_server((host, port), backlog=512)
        self.host, self.port = self.listener.getsockname()[:2]
        self.thread = threading.Thread(target=self.accept, daemon=True)

    @property
    def base(self) -> str:
        """The base URL of the OpenAI dialect."""
        return f"{'https' if self.context else 'http'}://{self.host}:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops listening and closes every connection."""
        self.closing.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            left = list(self.open)
        for sock in left:
            quietly_close(sock)

    def accept(self) -> None:
        """Takes connections until closed; each gets a thread."""
        while not self.closing.is_set():
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
                self.open.add(sock)
            threading.Thread(target=self.serve, args=(sock, number), daemon=True).start()

    def serve(self, sock: socket.socket, connection: int) -> None:
        """Requests on one connection until either side ends it."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                with self.lock:
                    self.open.discard(sock)
                sock = self.context.wrap_socket(sock, server_side=True)
                with self.lock:
                    self.open.add(sock)
            rest = b""
            while not self.closing.is_set():
                sock.settimeout(self.idle_close_s)
                request, rest = self.read(sock, connection, rest)
                sock.settimeout(None)
                if request is None or not self.act(sock, self.behaviour(request)):
                    return
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(sock)
            quietly_close(sock)

    def read(self, sock: socket.socket, connection: int, data: bytes) -> tuple[Request | None, bytes]:
        """The next request and the bytes behind it; None at the end of the connection."""
        while (end := data.find(b"\r\n\r\n")) < 0:
            piece = sock.recv(65536)
            if not piece:
                return None, b""
            data += piece
        lines = data[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        size = int(headers.get("content-length", "0"))
        body = data[end + 4 :]
        while len(body) < size:
            piece = sock.recv(65536)
            if not piece:
                return None, b""
            body += piece
        method, path, _ = lines[0].split(" ", 2)
        with self.lock:
            self.count += 1
            request = Request(self.count, connection, time.monotonic(), method, path, headers, body[:size])
            if self.keep_log:
                self.requests.append(request)
        return request, body[size:]

    def act(self, sock: socket.socket, action: Any) -> bool:
        """Does one action; True when the connection stays open."""
        if self.delay_s:
            time.sleep(self.delay_s)
        while isinstance(action, Wait):
            self.closing.wait(action.seconds)
            action = action.then
        if isinstance(action, Json):
            sock.sendall(json_bytes(action))
            return True
        if isinstance(action, Chunked):
            sock.sendall(chunked_bytes(action))
            return True
        if isinstance(action, Raw):
            sock.sendall(action.data)
            return action.keep
        return self.break_off(sock, action)

    def break_off(self, sock: socket.socket, action: Any) -> bool:
        """The actions that end a connection in some bad way; always False."""
        if isinstance(action, Drip):
            sock.sendall(action.head)
            for _ in range(action.times):
                if self.closing.wait(action.every_s):
                    break
                sock.sendall(action.piece)
            return False
        if action.data:
            sock.sendall(action.data)
        if isinstance(action, Hang):
            self.closing.wait(60)
        if isinstance(action, Reset):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def quietly_close(sock: socket.socket) -> None:
    """Ends a connection; a thread that waits on it wakes up."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    try:
        sock.close()
    except OSError:
        pass


# === TLS ===


def make_certificate(folder: str, *names: str) -> str | None:
    """A self-signed certificate with its key in one PEM file, made with the openssl command; None without it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    path = os.path.join(folder, "server.pem")
    listed = ",".join(names or ("IP:127.0.0.1", "DNS:localhost"))
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", path + ".key", "-out", path + ".crt", "-days", "2", "-subj", "/CN=judge test"]
    command += ["-addext", f"subjectAltName={listed}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
    if done.returncode != 0:
        return None
    with open(path, "wb") as whole:
        for part in (".key", ".crt"):
            with open(path + part, "rb") as file:
                whole.write(file.read())
    return path


# === Command line ===


def main(argv: list[str] | None = None) -> int:
    """Serves the standard judge until standard input ends or the time is up."""
    parser = argparse.ArgumentParser(description="A deterministic judge on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--tls", action="store_true", help="with a self-signed certificate, whose path is printed")
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this long")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(folder) if args.tls else None
        if args.tls and certificate is None:
            print("fault_server: error: no openssl command", file=sys.stderr)
            return 3
        server = FaultServer(delay_s=args.delay_ms / 1000, certificate=certificate, port=args.port, keep_log=False)
        with server:
            print(server.base, f"{certificate}.crt" if certificate else "", flush=True)
            threading.Timer(args.seconds, server.close).start()
            sys.stdin.read()
            os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
