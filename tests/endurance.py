"""Kills a run at random moments, resumes it, and checks that no reply on disk is lost or asked again.

    python3 tests/endurance.py --kills 30            # about a minute; prints what was found

A run of 400 replies against the loopback judge is killed with SIGKILL again and again. After every kill the complete
journal lines are noted; from then on no request for any of them may reach the server, and all must stand in the
finished raw file, which has to equal an undisturbed run's but for the times.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import fault_server
import runner


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
    recipe, config = runner.room("recipe"), json.loads((evaluation / "eval.json").read_text(encoding="utf-8"))
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


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as work:
        found = series(Path(work), args.kills, args.pairs, args.seed)
    print(found)
    return 0 if (found.lost, found.repeated, found.same_bytes, found.secrets) == (0, 0, True, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
