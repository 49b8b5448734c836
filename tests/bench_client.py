"""Speed of the client against a bare loop in the same run. Prints figures; asserts nothing.

    python3 tests/bench_client.py              # about a minute; --quick for a few seconds
    python3 tests/bench_client.py --workers 50 --delay-ms 200 --requests 2500

The server is a process of its own on 127.0.0.1. For each setting three clients send the same requests: urllib's
plain opener (a connection per request), one kept http.client connection per worker, and this toolkit's Client.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rooms import room

HERE = Path(__file__).resolve().parent
QUESTION = "Which planet of the solar system has the longest day, and how long is it? " * 4
ANSWER = "Venus turns once in about 243 Earth days, so its day is the longest of all planets. " * 6


class Figure(NamedTuple):
    """One measurement. cpu_s: seconds of this process's CPU time per 1,000 requests."""

    name: str
    per_s: float
    cpu_s: float
    failed: int


def payload(number: int) -> dict[str, Any]:
    """A request as the default recipe shapes it, about 2.5 kB on the wire."""
    shown = json.dumps({"question": f"{number}: {QUESTION}", "A": ANSWER, "B": ANSWER[::-1]}, ensure_ascii=False)
    properties = {"choice": {"type": "string", "enum": ["A", "B", "equal"]}, "reason": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["choice", "reason"]}
    function = {"name": "grade", "description": "Record which answer is better.", "parameters": schema}
    return {
        "messages": [{"role": "system", "content": "You compare two answers."}, {"role": "user", "content": shown}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "grade"}},
        "parallel_tool_calls": False,
        "max_tokens": 2048,
        "reasoning_effort": "medium",
    }


# === Three ways to send ===


def bare_urllib(base: str, cafile: str | None) -> Callable[[int], bool]:
    """urllib as most scripts use it."""
    context = ssl.create_default_context(cafile=cafile) if cafile else None
    handlers: list[Any] = [urllib.request.ProxyHandler({})]
    if context:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    opener = urllib.request.build_opener(*handlers)

    def send(number: int) -> bool:
        body = json.dumps({**payload(number), "model": "bench"}, indent=2, ensure_ascii=False).encode("utf-8")
        headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
        request = urllib.request.Request(base + "/chat/completions", body, headers)
        with opener.open(request, timeout=60) as response:
            return bool(json.loads(response.read())["choices"])

    return send


def kept_http_client(base: str, cafile: str | None) -> Callable[[int], bool]:
    """http.client with a connection that each worker keeps."""
    context = ssl.create_default_context(cafile=cafile) if cafile else None
    address = base.split("//")[1].split("/")[0]
    local = threading.local()

    def send(number: int) -> bool:
        if not hasattr(local, "connection"):
            local.connection = (
                http.client.HTTPSConnection(address, timeout=60, context=context)
                if context
                else http.client.HTTPConnection(address, timeout=60)
            )
        body = json.dumps({**payload(number), "model": "bench"}, indent=2, ensure_ascii=False).encode("utf-8")
        headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
        local.connection.request("POST", "/v1/chat/completions", body, headers)
        return bool(json.loads(local.connection.getresponse().read())["choices"])

    return send


def the_client(base: str, cafile: str | None) -> Callable[[int], bool]:
    """The toolkit's client, one for all workers."""
    if cafile:
        os.environ["SSL_CERT_FILE"] = cafile
    judge = room("client").Client({"endpoint": base, "model": "bench"}, "bench-key-0123456789")
    return lambda number: bool(judge.call(payload(number)).state == "reply")


# === Measuring ===


def measure(name: str, send: Callable[[int], bool], workers: int, requests: int) -> Figure:
    """Sends `requests` requests from `workers` threads."""
    numbers, failed, lock = iter(range(requests)), [0], threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                good = send(number)
            except (OSError, http.client.HTTPException):
                good = False
            if not good:
                with lock:
                    failed[0] += 1

    send(-1)  # imports and the first connection are not what is measured
    threads = [threading.Thread(target=work) for _ in range(workers)]
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figure(name, requests / wall_s, cpu_s * 1000 / requests, failed[0])


def compare(workers: int, delay_ms: float, requests: int, tls: bool) -> None:
    """Prints one block: each client's figures, and their ratio to bare urllib and to the ideal."""
    command = [sys.executable, str(HERE / "fault_server.py"), "--delay-ms", str(delay_ms), *(["--tls"] if tls else [])]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdin is not None
    base, _, cafile = server.stdout.readline().strip().partition(" ")
    if not base:
        print("no server: the openssl command is needed for TLS")
        return
    ideal = workers * 1000 / delay_ms if delay_ms else None
    print(f"\n{'TLS' if tls else 'plain'}, {workers} workers, {delay_ms:g} ms, {requests} requests", end="")
    print(f", ideal {ideal:.0f}/s" if ideal else "")
    ways = {"bare urllib": bare_urllib, "kept http.client": kept_http_client, "Client": the_client}
    first: Figure | None = None
    for name, make in ways.items():
        figure = measure(name, make(base, cafile or None), workers, requests)
        first = first or figure
        share = f"{figure.per_s / ideal:6.1%} of ideal" if ideal else f"{figure.per_s / first.per_s:5.2f}x urllib"
        print(
            f"  {name:<17} {figure.per_s:7.1f}/s {share}   CPU {figure.cpu_s:.3f} s per 1,000"
            f" ({figure.cpu_s / first.cpu_s:.2f}x urllib)   failed {figure.failed}"
        )
    server.stdin.close()
    server.wait(timeout=10)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a fifth of the requests")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--delay-ms", type=float, default=200.0)
    parser.add_argument("--requests", type=int, default=2500)
    parser.add_argument("--tls", action="store_true")
    args = parser.parse_args(argv)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if args.workers:
        compare(args.workers, args.delay_ms, args.requests, args.tls)
        return 0
    for tls in (False, True):
        for workers, delay_ms, requests in ((1, 0.0, 2000), (50, 200.0, 2500), (200, 200.0, 6000)):
            compare(workers, delay_ms, requests // 5 if args.quick else requests, tls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
