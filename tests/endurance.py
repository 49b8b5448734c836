"""Kills a run at random moments, or feeds it every fault there is, and checks that nothing is lost, doubled or leaked.

    python3 tests/endurance.py --kills 30            # about half a minute; prints what was found
    python3 tests/endurance.py --mix 2000            # requests against a server that mixes all kinds of faults

Killed: a run of 400 replies against the loopback judge is killed with SIGKILL again and again. After every kill the
complete journal lines are noted; from then on no request for any of them may reach the server, and all must stand in
the finished raw file, which has to equal an undisturbed run's but for the times.
Mixed: about a third of all answers are faults, among them echoes of the key; the run is resumed until it is complete.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import fault_server
import runner
from rooms import room

# === Killed again and again ===


class Found(NamedTuple):
    """What one series of kills showed."""

    kills: int
    replies: int
    requests: int
    lost: int  # complete journal lines that a later journal or the raw file no longer had
    repeated: int  # requests for a reply that stood on disk before they were sent
    same_bytes: bool
    secrets: int  # places in which the key was found


def asked(request: fault_server.Request) -> str:
    """Which reply a request is for: the user message differs from reply to reply."""
    return str(request.json()["messages"][-1]["content"])


def prompts(evaluation: Path) -> dict[tuple[str, str], str]:
    """(item, order) -> user message."""
    recipe, config = room("recipe"), json.loads((evaluation / "eval.json").read_text(encoding="utf-8"))
    found = {}
    for line in (evaluation / "fixture.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        row = json.loads(line)
        for order, payload in zip(("original", "swapped"), recipe.plan_requests(row, config)):
            found[row["item_id"], order] = payload["messages"][-1]["content"]
    return found


def kill_after(process: subprocess.Popen[str], folder: Path, lines: int, late_s: float) -> str:
    """SIGKILL once the journal has grown by some lines, or a moment later; '' when the run ended by itself."""
    before = len(runner.journal_keys(folder)) if folder.is_dir() else 0
    until = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < until:
        runs = sorted(folder.parent.iterdir()) if folder.parent.is_dir() else []
        at = folder if folder.is_dir() else (runs[-1] if runs else folder)
        if len(runner.journal_keys(at)) >= before + lines:
            break
        time.sleep(0.002)
    time.sleep(late_s)
    return "".join(runner.stop(process))


def series(work: Path, kills: int, pairs: int, seed: int, concurrency: int = 4, delay_s: float = 0.015) -> Found:
    """One run that is killed `kills` times, compared with one that is not."""
    rng = random.Random(seed)
    evaluation = runner.make_evaluation(work / "evaluation", [runner.item(number) for number in range(pairs)])
    messages = prompts(evaluation)
    with fault_server.FaultServer(delay_s=delay_s) as server:
        options = runner.judge_at(server.base, concurrency=concurrency)
        quiet = work / "undisturbed"
        quiet.mkdir()
        done = runner.cli(evaluation, "--generate", *options, cwd=quiet)
        assert done.returncode == 0, done.stderr
        server.requests.clear()
        hard = work / "killed"
        hard.mkdir()
        words, folder, printed = ["--generate", *options], hard / "runs" / "small" / "none", ""
        on_disk: dict[str, int] = {}  # user message -> how many requests the server had seen when it stood on disk
        lost = 0
        for _ in range(kills):
            process = runner.start(evaluation, *words, cwd=hard)
            grown = rng.randrange(0, max(1, 2 * pairs // (kills + 1)) + 1)
            printed += kill_after(process, folder, grown, rng.random() * 0.02)
            if not (hard / "runs" / "small").is_dir() or not any((hard / "runs" / "small").iterdir()):
                continue
            folder = runner.run_folder(hard)
            if not (folder / "manifest.json").exists():
                continue
            if runner.manifest_of(folder)["status"] == "complete":
                break
            words = ["--resume", str(folder), "--concurrency", str(concurrency)]
            now = {messages[item_id, order] for _, item_id, _, order in runner.journal_keys(folder)}
            lost += len(set(on_disk) - now) if (folder / "journal.jsonl").exists() else 0
            for message in now:
                on_disk.setdefault(message, len(server.requests))
        if not folder.is_dir() or runner.manifest_of(folder)["status"] != "complete":
            last = runner.cli(evaluation, *words, cwd=hard)
            printed += last.stdout + last.stderr
            assert last.returncode == 0, last.stderr
            folder = runner.run_folder(hard)
        repeated = sum(at >= on_disk.get(asked(request), 1 << 60) for at, request in enumerate(server.requests))
        rows = Counter((row["item_id"], order) for row in runner.rows_of(folder) for order in row["replies"])
        lost += sum(count != 1 for count in rows.values()) + abs(len(rows) - len(messages))
        same = runner.timeless(folder) == runner.timeless(runner.run_folder(quiet))
        secrets = len(runner.holders(work, runner.CANARY)) + printed.count(runner.CANARY)
        return Found(kills, 2 * pairs, len(server.requests), lost, repeated, same, secrets)


# === Every fault there is ===


def fine(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The standard judge's reply with some parts changed."""
    prompt = fault_server.prompt_of(body)
    given = fault_server.chat_reply(body, {"choice": fault_server.chosen(prompt), "reason": "r"}, prompt)
    return {**given, **changes}


def message(**parts: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "message": {"role": "assistant", **parts}, "finish_reason": "stop"}]


def raw(body: bytes, *headers: str, status: str = "200 OK") -> fault_server.Raw:
    return fault_server.Raw(fault_server.http(status, body, *headers))


def error(status: str, text: str, *headers: str, **fields: Any) -> fault_server.Raw:
    """An error in JSON; servers that ask to wait for a millisecond keep the test short."""
    body = json.dumps({"error": {"message": text, **fields}}).encode("utf-8")
    return raw(body, "Content-Type: application/json", "Retry-After-Ms: 1", *headers, status=status)


Fault = Callable[[dict[str, Any], str], Any]  # (request body, authorization header) -> action
QUICK: list[Fault] = [  # answered at once with a reply of some kind, or retried at once
    lambda body, key: error("500 Error", f"down; your key was {key}"),
    lambda body, key: error("502 Bad Gateway", "<html>bad</html>"),
    lambda body, key: error("503 Unavailable", "busy", f"X-Request-Id: {key}"),
    lambda body, key: error("400 Bad Request", f"filtered {key}", code="content_filter"),
    lambda body, key: error("400 Bad Request", "too long", code="context_length_exceeded"),
    lambda body, key: error("422 Unprocessable", f"odd pair, said {key}"),
    lambda body, key: fault_server.Json(fine(body, usage=None)),
    lambda body, key: fault_server.Json(fine(body, usage={"prompt_tokens": None, "completion_tokens": -4})),
    lambda body, key: fault_server.Json(fine(body, id=["odd"], model=None)),
    lambda body, key: fault_server.Json(fine(body, id="same", provider={"name": 1})),
    lambda body, key: fault_server.Json(fine(body, choices=message(content=f"I was sent {key}"))),
    lambda body, key: fault_server.Json(fine(body, choices=message(content=None, refusal="no"))),
    lambda body, key: fault_server.Json(fine(body, choices=message(tool_calls=[None, 3, {"function": 7}]))),
    lambda body, key: fault_server.Json(fine(body, choices=message(content="half \ud83d \u2028 \x00"))),
    lambda body, key: fault_server.Json(fine(body, choices=[{"message": None}])),
    lambda body, key: fault_server.Chunked(fine(body), 7),
    lambda body, key: raw(b'{"choices": [{"message": {"content": "\xe9"}}]}', "Content-Type: application/json"),
    lambda body, key: raw(b'{"choices": [{"message": {"content": NaN}}]}'),
    lambda body, key: raw(b"\xef\xbb\xbf" + json.dumps(fine(body)).encode()),
    lambda body, key: raw(b": waiting\n\n" + json.dumps(fine(body)).encode()),
    lambda body, key: raw(gzip.compress(json.dumps(fine(body)).encode()), "Content-Encoding: gzip"),
    lambda body, key: fault_server.Json(fine(body, choices=message(content="x" * 1_000_000))),
    lambda body, key: fault_server.Wait(0.05, fault_server.Json(fine(body))),
]
SLOW: list[Fault] = [  # tried again only after a second or so
    lambda body, key: fault_server.Close(),
    lambda body, key: fault_server.Reset(),
    lambda body, key: fault_server.Close(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"),
    lambda body, key: fault_server.Reset(b"HTTP/1.1 200 OK\r\nContent-Le"),
    lambda body, key: raw(b"<html><body>login</body></html>", "Content-Type: text/html"),
    lambda body, key: raw(b'{"error": {"message": "overloaded", "code": 502}}'),
    lambda body, key: raw(b'{"choices": []}'),
    lambda body, key: raw(b"[" * 200_000),
    lambda body, key: raw(b""),
    lambda body, key: error("429 Too Many", "slow down"),
]


def mixing(seed: int, slow_share: float = 0.02) -> fault_server.Behaviour:
    """A judge of which a third of the answers are faults; the first one is sound, as a server that works gives it."""
    standard, rng, lock = fault_server.judge(), random.Random(seed), threading.Lock()

    def answer(request: fault_server.Request) -> Any:
        with lock:
            luck, quick, slow = rng.random(), rng.choice(QUICK), rng.choice(SLOW)
        if request.number == 1 or luck > 0.33:
            return standard(request)
        return (slow if luck < slow_share else quick)(request.json(), request.headers.get("authorization", ""))

    return answer


class Mixed(NamedTuple):
    """What a run through all faults showed. states: replies by state, as the last manifest counts them."""

    requests: int
    rounds: int  # commands until the run was complete
    states: dict[str, int]
    missing_rows: int
    tracebacks: int
    secrets: int


def mixed(work: Path, replies: int, seed: int) -> Mixed:
    """One run through the mix, resumed until it is complete."""
    evaluation = runner.make_evaluation(work / "evaluation", [runner.item(n) for n in range(replies // 2)])
    printed, lines, rounds = "", "", 0
    with fault_server.FaultServer(mixing(seed), keep_log=False) as server:
        words = ["--generate", *runner.judge_at(server.base, concurrency=32)]
        while rounds < 20:
            rounds += 1
            process = runner.start(evaluation, *words, cwd=work)
            lines += command_line(process.pid)
            printed += "".join(process.communicate(timeout=300))
            if process.returncode == 0:
                break
            words = ["--resume", str(runner.run_folder(work)), "--concurrency", "32"]
        folder = runner.run_folder(work)
        rescored = runner.cli(evaluation, "--rescore", folder, cwd=work)
        printed += rescored.stdout + rescored.stderr
        requests = server.count
    totals = runner.manifest_of(folder)["totals"]["custom"]
    states = {state: totals[state] for state in ("ok", "invalid", "failed", "missing")}
    rows = runner.rows_of(folder)
    missing = replies // 2 - len({row["item_id"] for row in rows})
    secrets = len(runner.holders(work, runner.CANARY)) + (printed + lines).count(runner.CANARY)
    return Mixed(requests, rounds, states, missing, printed.count("Traceback"), secrets)


def command_line(pid: int) -> str:
    """What other processes can read of a process's command line, where the system shows it as a file."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


# === Command line ===


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--mix", type=int, default=0, metavar="REPLIES")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as work:
        if args.mix:
            shown = mixed(Path(work), args.mix, args.seed)
            print(shown)
            return 0 if (shown.missing_rows, shown.tracebacks, shown.secrets) == (0, 0, 0) else 1
        found = series(Path(work), args.kills, args.pairs, args.seed)
    print(found)
    return 0 if (found.lost, found.repeated, found.same_bytes, found.secrets) == (0, 0, True, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
