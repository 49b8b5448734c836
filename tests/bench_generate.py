"""Speed of whole runs against a loopback server, beside a bare loop. Prints figures; asserts nothing.

    python3 tests/bench_generate.py                  # all parts; several minutes
    python3 tests/bench_generate.py rows pace        # some of: rows growth latency pace kill

rows: 5,000 rows against a bare loop that sends the same requests and fsyncs one line per reply, and the bytes written.
growth: time per row of a run ten times as long. latency: a 200 ms server at 50 and 200 in flight against the ideal.
pace: what 600 requests a minute come to. kill: how much is sent again after SIGKILL with 4 in flight.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fault_server
import runner
from rooms import room


class Server:
    """The loopback judge as a process of its own, so that it does not share this one's interpreter."""

    def __init__(self, delay_ms: float = 0.0) -> None:
        words = [sys.executable, fault_server.__file__, "--delay-ms", str(delay_ms)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def __enter__(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()[0]

    def __exit__(self, *_: object) -> None:
        self.process.communicate("")


def timed(words: list[str], cwd: Path) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and bytes written (as last seen, 0 where the system does not tell) of one command."""
    began, written, found = time.monotonic(), 0, 0
    out = subprocess.DEVNULL
    process = subprocess.Popen(words, cwd=cwd, env=runner.environment(), stdout=out, stderr=out)
    while not found:
        written = bytes_written(process.pid) or written
        time.sleep(0.005)
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {words}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, written


def bytes_written(pid: int) -> int:
    """Bytes that a running process has handed to the system to write."""
    try:
        text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.partition("wchar: ")[2].partition("\n")[0] or 0)


def bare_loop(base: str, evaluation: Path, path: Path) -> float:
    """Seconds of a loop that sends a run's requests over one kept connection and fsyncs each reply as a line."""
    recipe, config = room("recipe"), json.loads((evaluation / "eval.json").read_text(encoding="utf-8"))
    place = urlsplit(base)
    began = time.monotonic()
    wire = http.client.HTTPConnection(place.hostname or "", place.port)
    with open(evaluation / "fixture.jsonl", "rb") as rows, open(path, "wb") as kept:
        for line in rows:
            for payload in recipe.plan_requests(json.loads(line), config):
                body = json.dumps({"model": "judge-1", **payload}).encode()
                wire.request("POST", f"{place.path}/chat/completions", body, {"Content-Type": "application/json"})
                reply = json.loads(wire.getresponse().read())
                kept.write(json.dumps(reply).encode() + b"\n")
                kept.flush()
                os.fsync(kept.fileno())
    return time.monotonic() - began


def evaluation_of(work: Path, pairs: int) -> Path:
    return runner.make_evaluation(work / f"e{pairs}", [runner.item(number) for number in range(pairs)])


def generate(evaluation: Path, base: str, work: Path, **options: Any) -> tuple[float, float, int]:
    options = {"quiet": True, **options}
    return timed(runner.command(evaluation, "--generate", *runner.judge_at(base, **options)), work)


# === Parts ===


def show_rows(work: Path) -> None:
    """One pair is one row here: 5,000 rows are 10,000 replies."""
    evaluation = evaluation_of(work, 5000)
    with Server() as base:
        bare = bare_loop(base, evaluation, work / "bare.jsonl")
        for concurrency in (1, 4):
            took, cpu, written = generate(evaluation, base, work, concurrency=concurrency)
            folder = runner.run_folder(work)
            packed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            plain = packed + len(gzip.decompress((folder / "raw.jsonl.gz").read_bytes()))
            print(f"rows: 5,000 rows at {concurrency} in flight: {took:.1f} s, CPU {cpu:.1f} s", end="; ")
            print(f"the bare loop {bare:.1f} s, ratio {took / bare:.2f}")
            print(f"rows: written {written / 1e6:.1f} MB; final {packed / 1e6:.1f} MB, unpacked {plain / 1e6:.1f} MB")
    journal = (work / "bare.jsonl").stat().st_size
    print(f"rows: the bare loop's file {journal / 1e6:.1f} MB")


def show_growth(work: Path) -> None:
    with Server() as base:
        per_row = {}
        for pairs in (5000, 50_000):
            took, cpu, _ = generate(evaluation_of(work, pairs), base, work, concurrency=4)
            per_row[pairs] = (took / pairs, cpu / pairs)
            print(f"growth: {pairs:,} rows: {took / pairs * 1e3:.3f} ms a row, {cpu / pairs * 1e3:.3f} ms CPU a row")
    ratios = [large / small for small, large in zip(per_row[5000], per_row[50_000])]
    print(f"growth: time per row {ratios[0]:.2f}x, CPU per row {ratios[1]:.2f}x")


def show_latency(work: Path) -> None:
    for concurrency, pairs in ((50, 1500), (200, 4000)):
        evaluation = evaluation_of(work, pairs)
        with Server(200) as base:
            idle, idle_cpu, _ = generate(evaluation, base, work, concurrency=concurrency, limit=1)
            took, cpu, _ = generate(evaluation, base, work, concurrency=concurrency)
        replies, ideal = 2 * pairs, concurrency / 0.2
        rate = (replies - 2) / (took - idle)
        print(f"latency: 200 ms x {concurrency}: {rate:.0f} requests/s of the ideal {ideal:.0f} ({rate / ideal:.0%}), "
              f"CPU {(cpu - idle_cpu) / replies * 1e3:.2f} s per 1,000 requests, start-up taken off")  # fmt: skip


def show_pace(work: Path) -> None:
    evaluation = evaluation_of(work, 400)
    with fault_server.FaultServer() as server:
        options = runner.judge_at(server.base, concurrency=4, rpm=600, quiet=True)
        process = runner.start(evaluation, "--generate", *options, cwd=work)
        while not server.requests:
            time.sleep(0.01)
        first = server.requests[0].at
        time.sleep(max(0.0, first + 62 - time.monotonic()))
        runner.stop(process)
        sent = sum(request.at < first + 60 for request in server.requests)
    print(f"pace: 600 a minute sent {sent} requests in the first 60 s")


def show_kill(work: Path) -> None:
    evaluation = evaluation_of(work, 30)
    with fault_server.FaultServer(delay_s=0.2) as server:
        options = runner.judge_at(server.base, concurrency=4, quiet=True)
        process = runner.start(evaluation, "--generate", *options, cwd=work)
        while len(server.requests) < 32:
            time.sleep(0.005)
        runner.stop(process)
        done = runner.cli(evaluation, "--resume", runner.run_folder(work), "--concurrency", 4, cwd=work)
    again = len(server.requests) - 60
    print(f"kill: 60 calls, killed half-way with 4 in flight: {again} sent again, exit {done.returncode}")


PARTS = {"rows": show_rows, "growth": show_growth, "latency": show_latency, "pace": show_pace, "kill": show_kill}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    args = parser.parse_args(argv)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    for name in args.parts or PARTS:
        with tempfile.TemporaryDirectory() as work:
            PARTS[name](Path(work))
    return 0


if __name__ == "__main__":
    sys.exit(main())
