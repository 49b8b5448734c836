"""Reading one HTTP/1.1 reply from a stream of bytes, strictly and within bounds.

    reply = http_reply.read_reply(receive, max_bytes=16_000_000)   # Reply(status, reason, headers, body, keep)

`receive()` gives the next bytes of the connection and b"" at its end. Pure otherwise: no socket, clock or file, so
that every broken reply can be tested as a list of pieces. Where a reply's end is in doubt, or bytes follow it, `keep`
is False: a connection that has slipped by one reply would hand the next row somebody else's verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# === Constants ===

MAX_HEAD_BYTES = 65536
MAX_LINE_BYTES = 4096  # a chunk's size line
MAX_INTERIM = 8  # replies of status 1xx before the real one

STATUS_LINE = re.compile(r"HTTP/1\.([01])[ \t]+([1-9][0-9]{2})(?:[ \t]+(.*))?")
LENGTH = re.compile(r"[0-9]{1,15}")
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,12}")
BLANK_LINE = re.compile(rb"\r?\n\r?\n")
CODINGS = ("gzip", "x-gzip", "deflate", "identity", "")
MAX_CODINGS = 4  # one upon the other; real replies have one
MAX_MEMBERS = 100  # gzip members of one body; real ones have one, and what stands behind one is copied each time


# === Records ===


class Reply(NamedTuple):
    """headers: lower-case names, repeated ones joined by a comma. body: decoded. keep: the connection may be reused."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    keep: bool


class Head(NamedTuple):
    minor: int  # of HTTP/1.x
    status: int
    reason: str
    headers: dict[str, str]


class HttpProblem(Exception):
    """kind: cut | bad_http | too_large | bad_encoding."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


# === A buffer over the stream ===


class Stream:
    """Bytes that have arrived and not been used yet."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self.receive = receive
        self.data = b""

    def more(self) -> bool:
        """Adds the next piece; False at the end of the stream."""
        piece = self.receive()
        self.data += piece
        return bool(piece)

    def take(self, size: int) -> bytes:
        """The next `size` bytes. Raises: HttpProblem when the stream ends before."""
        if len(self.data) < size:
            pieces, got = [self.data], len(self.data)
            while got < size:
                piece = self.receive()
                if not piece:
                    raise HttpProblem("cut", f"the reply ends after {got} of {size} bytes")
                pieces.append(piece)
                got += len(piece)
            self.data = b"".join(pieces)
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def line(self) -> bytes:
        """The next line without its end. Raises: HttpProblem."""
        while (end := self.data.find(b"\n", 0, MAX_LINE_BYTES)) < 0:
            if len(self.data) > MAX_LINE_BYTES:
                raise HttpProblem("bad_http", "a line of the chunked reply is too long")
            if not self.more():
                raise HttpProblem("cut", "the chunked reply ends too early")
        line, self.data = self.data[:end], self.data[end + 1 :]
        return line.removesuffix(b"\r")


# === The head ===


def read_head(stream: Stream) -> Head:
    """Status line and headers. Raises: HttpProblem."""
    searched = 0
    while True:
        if stream.data and not b"HTTP/1.".startswith(stream.data[:7]):
            raise HttpProblem("bad_http", "the server does not answer in HTTP/1")
        end = BLANK_LINE.search(stream.data, max(0, searched - 3))  # a head in thousands of pieces is searched once
        if end:
            break
        searched = len(stream.data)
        if searched > MAX_HEAD_BYTES:
            raise HttpProblem("bad_http", "the head of the reply is too long")
        if not stream.more():
            raise HttpProblem("cut", "the connection ended in the head of the reply")
    text, stream.data = stream.data[: end.start()].decode("latin-1"), stream.data[end.end() :]
    lines = text.split("\n")
    status = STATUS_LINE.fullmatch(lines[0].removesuffix("\r"))
    if status is None:
        raise HttpProblem("bad_http", "the status line of the reply is not HTTP/1")
    return Head(int(status[1]), int(status[2]), status[3] or "", headers_in(lines[1:]))


def read_final_head(stream: Stream) -> Head:
    """The next head that is not an interim reply's. Raises: HttpProblem."""
    for _ in range(MAX_INTERIM):
        head = read_head(stream)
        if head.status >= 200:
            return head
    raise HttpProblem("bad_http", "the server sends nothing but interim replies")


def headers_in(lines: list[str]) -> dict[str, str]:
    """Header fields by lower-case name. Raises: HttpProblem when two lengths contradict each other."""
    found: dict[str, str] = {}
    last = ""
    for line in lines:
        if line[:1] in (" ", "\t") and last:  # a folded line continues the one before it
            found[last] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if not colon:
            continue
        last, value = name.strip().lower(), value.strip()
        before = found.get(last)
        if before is not None and before != value:
            if last == "content-length":
                raise HttpProblem("bad_http", "the reply gives two lengths")
            value = f"{before}, {value}"
        found[last] = value
    return found


# === The body ===


def read_reply(receive: Callable[[], bytes], max_bytes: int) -> Reply:
    """The next reply, interim ones skipped. Raises: HttpProblem, and whatever `receive` raises."""
    stream = Stream(receive)
    head = read_final_head(stream)
    body, ended = read_body(stream, head, max_bytes)
    keep = ended and not stream.data and keeps_open(head)
    decoded = decode_body(body, head.headers.get("content-encoding", ""), max_bytes)
    return Reply(head.status, head.reason, head.headers, decoded, keep)


def keeps_open(head: Head) -> bool:
    """Whether the server means to keep the connection."""
    told = head.headers.get("connection", "").lower()
    if "transfer-encoding" in head.headers and "content-length" in head.headers:
        return False  # two ways to find the end: one of the two sides may believe the other one
    return "close" not in told and (head.minor == 1 or "keep-alive" in told)


def read_body(stream: Stream, head: Head, max_bytes: int) -> tuple[bytes, bool]:
    """The body as sent, and whether its end was marked. Raises: HttpProblem."""
    if head.status in (204, 304):
        return b"", True
    transfer = head.headers.get("transfer-encoding", "identity").lower()
    if transfer == "chunked":
        return read_chunks(stream, max_bytes), True
    if transfer != "identity":
        raise HttpProblem("bad_encoding", f"the transfer coding {transfer[:40]!r} is not known here")
    length = head.headers.get("content-length")
    if length is not None:
        if not LENGTH.fullmatch(length):
            raise HttpProblem("bad_http", "the length of the reply is not a number")
        if int(length) > max_bytes:
            raise too_large(max_bytes)
        return stream.take(int(length)), True
    pieces, size = [stream.data], len(stream.data)
    while size <= max_bytes and (piece := stream.receive()):
        pieces.append(piece)
        size += len(piece)
    if size > max_bytes:
        raise too_large(max_bytes)
    stream.data = b""
    return b"".join(pieces), False


def read_chunks(stream: Stream, max_bytes: int) -> bytes:
    """A chunked body without its frames. Raises: HttpProblem."""
    pieces: list[bytes] = []
    total = 0
    while True:
        size_text = stream.line().partition(b";")[0].strip()
        if not CHUNK_SIZE.fullmatch(size_text):
            raise HttpProblem("bad_http", "the size of a chunk is not a number")
        size = int(size_text, 16)
        total += size
        if total > max_bytes:
            raise too_large(max_bytes)
        if size == 0:
            break
        pieces.append(stream.take(size))
        if stream.line():
            raise HttpProblem("bad_http", "a chunk is longer than it says")
    for _ in range(100):
        if not stream.line():  # trailer fields end with an empty line
            return b"".join(pieces)
    raise HttpProblem("bad_http", "the reply has too many trailer fields")


def too_large(max_bytes: int) -> HttpProblem:
    return HttpProblem("too_large", f"the reply is larger than {max_bytes} bytes")


# === Content codings ===


def decode_body(body: bytes, coding: str, max_bytes: int) -> bytes:
    """The body without its content coding. Raises: HttpProblem for an unknown coding, broken data or too much of it."""
    if not coding:
        return body
    names = [name for name in (name.strip().lower() for name in coding.split(",")) if name not in ("identity", "")]
    unknown = next((name for name in reversed(names) if name not in CODINGS), None)
    if unknown is not None:
        text = f"the content coding {unknown[:40]!r} was not asked for and is not known here"
        raise HttpProblem("bad_encoding", text)
    if len(names) > MAX_CODINGS:
        raise HttpProblem("bad_encoding", f"the body is packed more than {MAX_CODINGS} times over")
    for name in reversed(names):
        if body:
            body = inflate(body, name, max_bytes)
    return body


def inflate(body: bytes, name: str, max_bytes: int) -> bytes:
    """gzip or deflate data unpacked, never beyond `max_bytes`. Raises: HttpProblem."""
    import zlib

    wrapped = name != "deflate" or (len(body) > 1 and body[0] & 15 == 8 and (body[0] * 256 + body[1]) % 31 == 0)
    pieces: list[bytes] = []
    size = 0
    try:
        while body:
            if len(pieces) == MAX_MEMBERS:
                raise HttpProblem("bad_encoding", f"the {name} data has more than {MAX_MEMBERS} members")
            # 47 takes zlib and gzip, told apart by their first bytes; -15 is deflate without either.
            unpacker = zlib.decompressobj(47 if wrapped else -15)
            piece = unpacker.decompress(body, max_bytes - size + 1)
            size += len(piece)
            if size > max_bytes:
                raise too_large(max_bytes)
            if not unpacker.eof:
                raise HttpProblem("cut", f"the {name} data is cut off")
            pieces.append(piece)
            body = unpacker.unused_data if unpacker.unused_data[:2] == b"\x1f\x8b" else b""  # further gzip members
    except zlib.error:
        raise HttpProblem("bad_encoding", f"the body is not the {name} data it is said to be") from None
    return b"".join(pieces)
