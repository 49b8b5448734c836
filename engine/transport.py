"""One HTTP POST on a connection that each worker thread keeps open, bounded in time and in bytes.

    transport = Transport(Timeouts(), clock=time.monotonic)
    answer = transport(url, headers, body)       # Answer(status, reason, headers, body, proxied), or raises Fault
    transport.close()

Nothing is retried, judged or logged here. Redirects are handed back, not followed. Loopback hosts never go through a
proxy; for other hosts urllib's own rules (environment, NO_PROXY, system settings) decide. Every socket operation has
a time limit, and so has the whole call, so that a server that sends a byte now and then cannot hold a worker.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import http_reply
import keys
import providers

if TYPE_CHECKING:
    import ssl

# === Constants ===

MAX_REPLY_BYTES = 16 * 1024 * 1024  # a judge's reply has a few kB; this only keeps memory bounded
PIECE_BYTES = 65536  # asked for at once; holds a whole reply as a rule
MAX_REASON = 2000  # characters of a proxy's refusal that are looked at
IDLE_S = 60.0  # a kept connection older than this is not trusted: servers and middleboxes drop them silently
CERTIFICATE_HINT = (
    "set SSL_CERT_FILE to a file with the certificates to trust; with python.org's Python on macOS run "
    "'Install Certificates.command' once"
)
PROXY_PLACE = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5})?)?")
PROXY_HINT = "write http://host:port, or http://user:password@host:port with %40 for an @ in them"
OTHER_PROXIES = ("socks", "socks4", "socks4a", "socks5", "socks5h", "ftp")
LOGIN_REMOVED = "[proxy login removed]"


# === Records ===


class Timeouts(NamedTuple):
    """Seconds. read_s bounds one socket operation, total_s one whole attempt."""

    connect_s: float = 15.0
    read_s: float = 180.0  # a reply that is not streamed sends nothing until it has been thought out
    total_s: float = 300.0


DEFAULT_TIMEOUTS = Timeouts()


class Answer(NamedTuple):
    """What came back. headers: lower-case names, repeated ones joined by a comma; body: decoded."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    proxied: bool = False
    resent: bool = False  # a kept connection turned out closed, so the request was sent twice


class Fault(Exception):
    """No answer. kind: timeout | connection | tls | certificate | bad_http | too_large | bad_encoding | proxy.

    sent: whether request bytes may have reached the server, so that the call may have been carried out and billed.
    """

    def __init__(self, kind: str, text: str, sent: bool, hint: str = "") -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.sent = sent
        self.hint = hint
        self.resent = False  # see Answer


class Route(NamedTuple):
    """Where a URL leads. proxy: (host, port, Proxy-Authorization or None), None for a direct connection."""

    secure: bool
    host: str
    port: int
    target: str  # path and query, as sent in the request line
    proxy: tuple[str, int, str | None] | None


# === The way there ===


def route_to(url: str) -> Route:
    """The route to a URL. Raises: Fault for a proxy of a kind that Python's library does not speak."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    proxy = None if providers.is_loopback(host) else proxy_for(url)
    return Route(secure, host, parts.port or (443 if secure else 80), target, proxy)


def proxy_for(url: str) -> tuple[str, int, str | None] | None:
    """The proxy that urllib's rules choose for a URL, None for a direct connection. Raises: Fault for a bad setting."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    address = getproxies().get(parts.scheme)
    if not address or proxy_bypass(parts.netloc):
        return None
    setting, marked = setting_of(parts.scheme), "://" in address
    scheme, rest = address.split("://", 1) if marked else ("http", address)
    if scheme.lower() not in ("http", "https"):
        kind = f"kind {scheme}" if scheme.lower() in OTHER_PROXIES else "another kind"
        raise Fault("proxy", f"{setting}: a proxy of {kind} is not supported", sent=False, hint=PROXY_HINT)
    end = rest.find("/", rest.find("@") + 1)  # a password may hold a slash
    place = rest if end < 0 else rest[:end]
    login, _, host_and_port = place.rpartition("@")
    found = host_and_port_of(host_and_port)
    if found is None or ("/" in rest.rstrip("/") and not marked):
        text = f"{setting}: expected http://host:port, got something else (not shown, it may hold a password)"
        raise Fault("proxy", text, sent=False, hint=PROXY_HINT)
    return *found, basic_login(login)


def setting_of(scheme: str) -> str:
    """The name of the environment variable that names the proxy for a kind of address."""
    import os

    names = [name for name in os.environ if name.lower() == f"{scheme}_proxy" and os.environ[name]]
    return min(names, key=lambda name: name != name.lower(), default="the proxy setting of the system")


def host_and_port_of(text: str) -> tuple[str, int] | None:
    """The host and port of a proxy, whose port is 80 where none is given; None for what is neither."""
    from urllib.parse import unquote

    found = PROXY_PLACE.fullmatch(unquote(text))
    port = int(found[3] or 80) if found else 0
    return (found[1] or found[2], port) if found and 0 < port < 65536 else None


def basic_login(login: str) -> str | None:
    """The value of Proxy-Authorization for a user and password as an address has them; None without one of the two."""
    from base64 import b64encode
    from urllib.parse import unquote

    user, _, password = login.partition(":")
    if not (user and password):
        return None
    return "Basic " + b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode("ascii")


def without_login(text: str, authorization: str | None) -> str:
    """A proxy's words without the login that it was sent, in any spelling."""
    from base64 import b64decode
    from urllib.parse import quote

    if authorization is None:
        return text
    coded = authorization.removeprefix("Basic ")
    login = b64decode(coded).decode("utf-8")
    user, _, password = login.partition(":")
    for secret in (coded, login, password, quote(password, safe=""), user):
        text = keys.Scrubber(secret, LOGIN_REMOVED)(text)
    return text


# === A socket with a deadline ===


class Timed:
    """A socket whose every operation is bounded by `read_s` and by one deadline for the whole call."""

    def __init__(self, sock: socket.socket, read_s: float, clock: Callable[[], float]) -> None:
        self.sock = sock
        self.read_s = read_s
        self.clock = clock
        self.deadline = 0.0
        self.received = 0
        self.limit_s: float | None = None  # as set on the socket; setting it again would cost a system call

    def allow(self) -> None:
        """Sets the time limit of the next operation. Raises: TimeoutError when the call's time is up."""
        left_s = self.deadline - self.clock()
        if left_s <= 0:
            raise TimeoutError("the time for the whole call is up")
        limit_s = min(self.read_s, left_s)
        if limit_s != self.limit_s:
            self.sock.settimeout(limit_s)
            self.limit_s = limit_s

    def sendall(self, data: bytes) -> None:
        self.allow()
        self.sock.sendall(data)

    def receive(self) -> bytes:
        """The next bytes, b"" at the end."""
        self.allow()
        data = self.sock.recv(PIECE_BYTES)
        self.received += len(data)
        return data

    def receive_one(self) -> bytes:
        """The next byte alone."""
        self.allow()
        return self.sock.recv(1)


class Kept:
    """A connection between two calls."""

    def __init__(self, route: Route, timed: Timed) -> None:
        self.route = route
        self.timed = timed
        self.idle_since: float | None = None  # None until a first reply has been read to its end
        self.anything_to_read = reader_of(timed.sock)

    def usable(self, route: Route, now: float) -> bool:
        """Whether the next request may go out on it: same place, young, and nothing waiting to be read.

        Data or an end before any request was sent means that the server has given the connection up.
        """
        if self.route != route or self.idle_since is None or now - self.idle_since > IDLE_S:
            return False
        return not self.anything_to_read() or (self.route.secure and self.only_tls_talk())

    def only_tls_talk(self) -> bool:
        """Whether what can be read on a TLS connection is no data, for example a late session ticket."""
        from ssl import SSLWantReadError

        self.timed.limit_s = 0.0
        self.timed.sock.settimeout(0.0)
        try:
            self.timed.sock.recv(1)
        except SSLWantReadError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        try:
            self.timed.sock.close()
        except OSError:
            pass


def reader_of(sock: socket.socket) -> Callable[[], bool]:
    """A function that says, without waiting, whether anything can be read from a socket."""
    import select

    if hasattr(select, "poll"):
        poller = select.poll()  # unlike select() it takes any file number
        poller.register(sock, select.POLLIN)
        return lambda: bool(poller.poll(0))
    return lambda: bool(select.select([sock], [], [], 0)[0])


# === Sending ===


class Transport:
    """Callable: one POST. Safe to share between threads; each keeps a connection of its own."""

    def __init__(
        self,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        *,
        clock: Callable[[], float],
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.timeouts = timeouts
        self.clock = clock
        self.max_bytes = max_bytes
        self.local = threading.local()
        self.lock = threading.Lock()
        self.open: set[Kept] = set()
        self.routes: dict[str, Route] = {}
        self.context: ssl.SSLContext | None = None

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One request and its answer, whatever its status. Raises: Fault."""
        route = self.route(url)
        deadline = self.clock() + self.timeouts.total_s
        request = request_bytes(route, headers, body)
        kept = getattr(self.local, "kept", None)
        if kept is not None and not kept.usable(route, self.clock()):
            self.drop(kept)
            kept = None
        reused = kept is not None
        try:
            return self.exchange(kept or self.connect(route, deadline), request, deadline)
        except Stale:
            if not reused:
                raise gone() from None
        try:  # the kept connection had been closed: the same request once more, on a new one
            return self.exchange(self.connect(route, deadline), request, deadline)._replace(resent=True)
        except Stale:
            fault = gone()
        except Fault as again:
            fault = again
        fault.resent = True
        raise fault

    def route(self, url: str) -> Route:
        """The route to a URL, found once: the proxy settings of a run do not change under way."""
        found = self.routes.get(url)
        if found is None:
            found = self.routes[url] = route_to(url)
        return found

    def exchange(self, kept: Kept, request: bytes, deadline: float) -> Answer:
        """Sends and reads on one connection, which is kept afterwards if the server allows it. Raises: Fault, Stale."""
        timed = kept.timed
        timed.deadline, timed.received = deadline, 0
        keep = False
        try:
            try:
                timed.sendall(request)
            except ConnectionError:
                pass  # a server that refuses a request early closes its end, but its words may still be there to read
            reply = http_reply.read_reply(timed.receive, self.max_bytes)
            keep = reply.keep
        except http_reply.HttpProblem as problem:
            if not timed.received:
                raise Stale from None
            raise Fault("connection" if problem.kind == "cut" else problem.kind, problem.text, sent=True) from None
        except (OSError, ValueError) as error:
            raise fault_of(error, timed.received) from None
        finally:
            if keep:
                kept.idle_since = self.clock()
            else:
                self.drop(kept)
        proxied = kept.route.proxy is not None
        return Answer(reply.status, reply.reason, reply.headers, reply.body, proxied)

    def drop(self, kept: Kept) -> None:
        """Closes a connection and forgets it."""
        kept.close()
        with self.lock:
            self.open.discard(kept)
        if getattr(self.local, "kept", None) is kept:
            self.local.kept = None

    def close(self) -> None:
        """Closes every connection; a call under way in another thread ends with a fault."""
        with self.lock:
            left, self.open = self.open, set()
        for kept in left:
            try:
                kept.timed.sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in recv
            except OSError:
                pass
            kept.close()

    # --- Connecting ---

    def connect(self, route: Route, deadline: float) -> Kept:
        """A new connection, through the proxy and TLS where the route asks for them. Raises: Fault."""
        limit = min(self.timeouts.connect_s, deadline - self.clock())
        place = (route.proxy[0], route.proxy[1]) if route.proxy else (route.host, route.port)
        sock: socket.socket | None = None
        try:
            sock = socket.create_connection(place, timeout=max(0.001, limit))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            timed = Timed(sock, self.timeouts.connect_s, self.clock)
            timed.deadline = deadline
            if route.proxy:
                open_tunnel(timed, route)
            if route.secure:
                sock = timed.sock = self.tls().wrap_socket(sock, server_hostname=route.host)
        except (OSError, ValueError) as error:
            if sock is not None:
                sock.close()
            raise connect_fault(error, place) from None
        except Fault:
            if sock is not None:
                sock.close()
            raise
        kept = Kept(route, timed)
        timed.read_s = self.timeouts.read_s
        self.local.kept = kept
        with self.lock:
            self.open.add(kept)
        return kept

    def tls(self) -> ssl.SSLContext:
        """One verifying context for all connections: loading the certificates takes longer than a handshake."""
        import ssl

        with self.lock:
            if self.context is None:
                self.context = ssl.create_default_context()
                self.context.set_alpn_protocols(["http/1.1"])
            return self.context


class Stale(Exception):
    """The connection ended before a byte of the reply."""


def gone() -> Fault:
    return Fault("connection", "the server closed the connection without a reply", sent=True)


def request_bytes(route: Route, headers: Mapping[str, str], body: bytes) -> bytes:
    """The request as sent, in one piece: a head and a body in two packets would cost a round of system calls."""
    host = f"[{route.host}]" if ":" in route.host else route.host
    if route.port != (443 if route.secure else 80):
        host += f":{route.port}"
    lines = [f"POST {route.target} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header or the address holds a line break")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def open_tunnel(timed: Timed, route: Route) -> None:
    """Asks the proxy for a connection to the route's host. Raises: Fault, OSError."""
    assert route.proxy is not None
    host = f"[{route.host}]" if ":" in route.host else route.host
    lines = [f"CONNECT {host}:{route.port} HTTP/1.1", f"Host: {host}:{route.port}"]
    if route.proxy[2]:
        lines.append(f"Proxy-Authorization: {route.proxy[2]}")
    timed.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
    try:  # byte by byte: what follows the head belongs to the tunnel
        head = http_reply.read_final_head(http_reply.Stream(timed.receive_one))
    except http_reply.HttpProblem as problem:
        raise Fault("connection", f"the proxy {route.proxy[0]}:{route.proxy[1]}: {problem.text}", sent=False) from None
    if head.status >= 300:
        hint = "it may not know or allow that host; NO_PROXY names hosts that are reached directly"
        if head.status == 407:
            hint = "it wants a login: write it into HTTPS_PROXY as http://user:password@host:port"
        place = f"{route.proxy[0]}:{route.proxy[1]}"
        reason = without_login(head.reason[:MAX_REASON], route.proxy[2])
        text = f"the proxy {place} refused a connection to {host}: HTTP {head.status} {reason}"
        raise Fault("connection" if head.status >= 500 else "proxy", text, sent=False, hint=hint)


# === What went wrong ===


def fault_of(error: Exception, received: int) -> Exception:
    """The fault, or Stale, behind an exception while sending or reading. received: bytes of the reply so far."""
    if isinstance(error, TimeoutError):
        state = "the reply was not complete" if received else "no reply"
        return Fault("timeout", f"timeout: {state} in time", sent=True)
    # A TLS connection that was closed under way fails on sending with an error class of its own.
    if isinstance(error, ConnectionError) or type(error).__name__ in ("SSLEOFError", "SSLZeroReturnError"):
        return Fault("connection", "the connection was reset in the middle of the reply", True) if received else Stale()
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return Fault("connection", f"the connection failed: {reason}", sent=True)


def connect_fault(error: Exception, place: tuple[str, int]) -> Fault:
    """The fault behind an exception while connecting: nothing of the request was sent."""
    import ssl

    where = f"{place[0]}:{place[1]}"
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"certificate not trusted: {where}: {error.verify_message}"
        return Fault("certificate", text, sent=False, hint=CERTIFICATE_HINT)
    if isinstance(error, ssl.SSLError):
        plain = "WRONG_VERSION_NUMBER" in str(error) or "HTTP_REQUEST" in str(error)
        hint = "the server seems to speak plain http, not https" if plain else ""
        return Fault(
            "tls", f"no TLS connection to {where}: {error.reason or type(error).__name__}", sent=False, hint=hint
        )
    if isinstance(error, TimeoutError):
        return Fault("timeout", f"timeout: no connection to {where} in time", sent=False)
    if isinstance(error, socket.gaierror):
        return Fault("connection", f"the name {place[0]} cannot be resolved", sent=False, hint="check the base URL")
    if isinstance(error, ConnectionRefusedError):
        hint = "is a server running there? write 127.0.0.1 for this machine" if providers.is_loopback(place[0]) else ""
        return Fault("connection", f"connection refused by {where}", sent=False, hint=hint)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return Fault("connection", f"no connection to {where}: {reason}", sent=False)
