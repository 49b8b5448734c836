"""Scale of runs without a model: generating, rescoring, memory, start-up. Prints figures; asserts nothing.

    python3 tests/bench_rescore.py                   # 100,000 pairs, three controls: 300,000 rows; some minutes
    python3 tests/bench_rescore.py --pairs 5000      # seconds

Rates stand beside that of a bare loop over the same rows which only unpacks and decodes each line: the least that any
rescoring has to do. Start-up stands beside the bare interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import runner
from rooms import ROOT

CONTROLS = "control-longer,control-first,control-random"


class Cost(NamedTuple):
    """What one command took: wall and CPU seconds, peak resident memory."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def measured(words: list[str], cwd: Path) -> Cost:
    """Run a command to its end and measure it alone."""
    began = time.monotonic()
    with open(cwd / "printed", "wb") as out:
        process = subprocess.Popen(words, cwd=cwd, stdout=out, stderr=out, env=runner.environment())
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((cwd / "printed").read_text(encoding="utf-8"))
    return Cost(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def decode_cost(raw: Path) -> Cost:
    """A loop that only unpacks and decodes each line, in a process of its own."""
    loop = "import gzip, json, sys\nfor line in gzip.open(sys.argv[1]): json.loads(line)"
    return measured([sys.executable, "-I", "-c", loop, str(raw)], raw.parent)


def show_run(work: Path, pairs: int) -> None:
    """Generate, rescore and plan a control run of so many pairs."""
    rows = [runner.item(number, cluster=f"q{number // 2}") for number in range(pairs)]
    evaluation = runner.make_evaluation(work / "e", rows, bootstrap={"resamples": 10_000, "level": 0.95})
    made = measured(runner.command(evaluation, "--generate", "--arms", CONTROLS), work)
    replies = 6 * pairs
    print(f"generate: {replies:,} control replies in {made.wall_s:.1f} s, {replies / made.wall_s:,.0f}/s, "
          f"{made.cpu_s / replies * 1e6:.0f} us CPU a reply, peak {made.peak_mb:.0f} MB")  # fmt: skip
    folder = runner.run_folder(work)
    bare = decode_cost(folder / "raw.jsonl.gz")
    scored = measured(runner.command(evaluation, "--rescore", folder), work)
    rate = 3 * pairs / scored.wall_s
    spent = f"{3 * pairs:,} rows in {scored.wall_s:.1f} s (CPU {scored.cpu_s:.1f} s), peak {scored.peak_mb:.0f} MB"
    print(f"rescore with summary: {spent}, {rate:,.0f} rows/s")
    rate = 3 * pairs / bare.wall_s
    print(f"a loop that only unpacks and decodes: {rate:,.0f} rows/s, CPU {bare.cpu_s:.1f} s")
    print(f"rescoring takes {scored.wall_s / bare.wall_s:.2f}x its time, {scored.cpu_s / bare.cpu_s:.2f}x its CPU")
    planned = measured(runner.command(evaluation, "--plan", "--arms", "pareto"), work)
    print(f"plan: {planned.wall_s:.1f} s, peak {planned.peak_mb:.0f} MB")


def show_start(rounds: int) -> None:
    """--help against the bare interpreter, in turns; and memory when --help ends."""
    commands = {"bare python3": ["-c", "pass"], "run_eval.py --help": [str(ROOT / "run_eval.py"), "--help"]}
    commands["check.py --help"] = [str(ROOT / "check.py"), "--help"]
    times: dict[str, list[float]] = {name: [] for name in commands}
    peaks: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as work:
        for _ in range(rounds):
            for name, words in commands.items():
                cost = measured([sys.executable, "-I", *words], Path(work))
                times[name].append(cost.wall_s)
                peaks[name] = cost.peak_mb
    bare = statistics.median(times["bare python3"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name}: {middle * 1000:.0f} ms, {middle / bare:.2f}x of bare, peak {peaks[name]:.1f} MB")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=21)
    args = parser.parse_args(argv)
    print(json.dumps({"python": sys.version.split()[0], "cpus": os.cpu_count()}))
    show_start(args.rounds)
    with tempfile.TemporaryDirectory() as work:
        show_run(Path(work), args.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
