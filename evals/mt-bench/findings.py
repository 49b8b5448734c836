"""Recompute the figures of FINDINGS.md from the release and GPT-4's recorded replies, and say which differ.

    python3 -I evals/mt-bench/findings.py gpt-4_pair.jsonl                     # make the runs, check every figure
    python3 -I evals/mt-bench/findings.py gpt-4_pair.jsonl --only K1,K2        # some of them
    python3 -I evals/mt-bench/findings.py gpt-4_pair.jsonl --report            # write each run's page too

gpt-4_pair.jsonl: the recorded replies, in either layout that replies.py reads. Needs ../../FINDINGS.md, the toolkit,
and the built fixtures of mt-bench, mt-bench-turn2 and mt-bench-100 (see their SOURCE.md). Each step is a command that
is printed as it is run. Writes below --out (default ./runs/findings), nothing else; opens no connection.
Exit codes: 0 every figure comes out; 1 one does not; 2 usage; 3 a step could not be run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

# === Constants ===

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.dirname(os.path.dirname(HERE))
ARM = "gpt-4-recorded"
INTERVAL = re.compile(r"\[([^\]]+)\]")


class FindingError(Exception):
    """A claim that cannot be read or a step that cannot be run; `status` is the exit code."""

    def __init__(self, text: str, status: int = 3) -> None:
        super().__init__(text)
        self.status = status


class Claim(NamedTuple):
    """One line of the table of claims."""

    key: str  # "K1"
    figure: str  # as it stands in the text
    places: tuple[tuple[str, str], ...]  # (run, path in its summary.json); several are added up


class Run(NamedTuple):
    """How one run is made: evaluation, which replies, which control is judged on the same pairs and merged.

    kept: a file of recorded replies beside the evaluation, ready to be imported, instead of GPT-4's.
    """

    folder: str
    replies: tuple[str, ...]
    imports: tuple[str, ...] = ()
    control: bool = True
    kept: str | None = None
    arm: str = ARM


RUNS = {
    "turn-1": Run("mt-bench", ()),
    "turn-2": Run("mt-bench-turn2", ("--turn", "2")),
    "twice-1": Run("mt-bench", ("--all-samples",), control=False),
    "twice-2": Run("mt-bench-turn2", ("--turn", "2", "--all-samples"), control=False),
    "hundred": Run("mt-bench-100", (), ("--output-mode", "text")),
    "small": Run("mt-bench-100", (), kept="smollm2-135m.jsonl", arm="smollm2-135m"),
}

# === Claims ===


def claims_of(text: str) -> list[Claim]:
    """The table of claims at the end of FINDINGS.md. Raises: FindingError."""
    claims = []
    for line in text.partition("## Table of claims")[2].split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 3 or not re.fullmatch(r"`[A-Z]+\d+[a-z]?`", cells[0]):
            continue
        places = re.findall(r"`([a-z0-9-]+): ([^`]+)`", cells[2])
        if not places or {run for run, _ in places} - set(RUNS):
            raise FindingError(f"FINDINGS.md: claim {cells[0]}: expected `run: path`, got {cells[2]!r}", 1)
        claims.append(Claim(cells[0].strip("`"), cells[1], tuple(places)))
    if not claims:
        raise FindingError("FINDINGS.md: expected a table of claims, got none", 1)
    return claims


def text_before_claims(text: str) -> str:
    """What a reader reads: everything above the table of claims."""
    return text.partition("## Table of claims")[0]


# === Figures ===


def value_at(summary: Any, path: str) -> Any:
    """What stands at a path of a summary, its keys joined by ' / '. Raises: FindingError."""
    found = summary
    for key in path.split(" / "):
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
            continue
        if not isinstance(found, dict) or key not in found:
            raise FindingError(f"summary.json: nothing at {path!r}: no {key!r}", 1)
        found = found[key]
    return found


def total(values: Sequence[Any]) -> Any:
    """One value, or the sum of several numbers or of several counts {k, n}. Raises: FindingError."""
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, dict) for value in values):
        return {key: sum(value[key] for value in values) for key in ("k", "n")}
    if all(isinstance(value, int) for value in values):
        return sum(values)
    raise FindingError("only whole numbers and counts can be added up", 1)


def wordings(value: Any) -> list[str]:
    """Every form in which FINDINGS.md may state a value: '0.722 [0.680, 0.762], 581 of 805', '+0.100 […]', '1,689'."""
    if isinstance(value, int):
        return [f"{value:,}"]
    if isinstance(value, float):
        return [f"{value:.3f}", f"{value:.4f}" if value >= 0.0001 else "<0.0001", f"{value:.0%}"]
    forms = []
    if value.get("n") is not None and value.get("k") is not None:
        forms.append(f"{value['k']:,} of {value['n']:,}")
    if value.get("value") is not None and value.get("low") is not None:
        for sign in ("", "+"):
            numbers = (format(value[key], f"{sign}.3f") for key in ("value", "low", "high"))
            forms.append("{} [{}, {}]".format(*numbers))
        forms += [f"{form}, {forms[0]}" for form in forms[1:2] if len(forms) == 3]
    return forms


def ends_of(figure: str) -> list[float]:
    """The ends of the interval in a figure; empty without one."""
    found = INTERVAL.search(figure)
    return [float(end) for end in found[1].split(",")] if found else []


def same(stated: str, wording: str, slack: float) -> bool:
    """Whether a stated figure is this wording; with slack, interval ends may differ by that part of its width."""
    if not slack:
        return stated == wording
    if INTERVAL.sub("[]", stated) != INTERVAL.sub("[]", wording):
        return False
    ends, others = ends_of(stated), ends_of(wording)
    return all(abs(one - other) <= slack * (ends[1] - ends[0]) + 0.0005 for one, other in zip(ends, others))


def check_claim(claim: Claim, summaries: dict[str, Any], slack: float) -> str | None:
    """None when the claim comes out, else what comes out instead."""
    forms = wordings(total([value_at(summaries[run], path) for run, path in claim.places]))
    return None if any(same(claim.figure, form, slack) for form in forms) else " or ".join(forms)


# === Runs ===


def command(*arguments: str, into: str | None = None) -> str:
    """Run one of the toolkit's commands, its output into a file if wanted; returns what it printed."""
    print("$ python3 -I " + " ".join(arguments) + (f" > {into}" if into else ""), file=sys.stderr, flush=True)
    script, *rest = arguments
    done = subprocess.run([sys.executable, "-I", os.path.join(HOME, script), *rest], capture_output=True)
    if done.returncode:
        raise FindingError(f"{script}: exit {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()}")
    if into:
        with open(into, "wb") as stream:
            stream.write(done.stdout)
    return done.stdout.decode("utf-8").strip()


def make_run(name: str, recorded: str, out: str, more: Sequence[str]) -> Any:
    """The summary of one run, made from the recorded replies by the toolkit's own commands."""
    made = RUNS[name]
    evaluation, fixture = f"evals/{made.folder}", os.path.join(HOME, "evals", made.folder, "fixture.jsonl")
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    lines = os.path.join(HOME, evaluation, made.kept) if made.kept else os.path.join(folder, "replies.jsonl")
    if not made.kept:
        given = () if "--turn" in made.replies else ("--fixture", fixture)
        command("evals/mt-bench/replies.py", recorded, *made.replies, *given, into=lines)
    target = os.path.join(HOME, evaluation)
    imported = ("--import-replies", lines, "--arm-label", made.arm, *made.imports, "--out", folder)
    run = command("run_eval.py", target, *imported)
    if made.control:
        asked = ("--generate", "--arms", "control-longer", "--repeats", "1", "--quiet", "--out", folder)
        run = command("run_eval.py", target, "--merge", run, command("run_eval.py", target, *asked), "--out", folder)
    command("run_eval.py", target, "--rescore", run, *more)
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as stream:
        return json.load(stream)


def make_runs(names: Sequence[str], recorded: str, out: str, more: Sequence[str]) -> dict[str, Any]:
    """name -> summary, two runs at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(lambda name: make_run(name, recorded, out, more), names)))


# === Command line ===


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="findings.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="GPT-4's recorded replies, JSONL")
    parser.add_argument("--only", metavar="A,B", help="these claims only")
    parser.add_argument("--out", metavar="DIR", default=os.path.join("runs", "findings"), help="where runs are written")
    parser.add_argument("--bootstrap", metavar="N", help="resamples (default: as frozen; fewer need --slack)")
    parser.add_argument(
        "--slack", type=float, default=0.0, metavar="X", help="let interval ends differ by X of the width (default: 0)"
    )
    parser.add_argument("--report", action="store_true", help="write report.html into each run")
    return parser


def check_all(options: argparse.Namespace) -> int:
    """Make what is needed and compare; returns how many claims do not come out. Raises: FindingError."""
    with open(os.path.join(HOME, "FINDINGS.md"), encoding="utf-8", newline="\n") as stream:
        claims = claims_of(stream.read())
    wanted = options.only.split(",") if options.only else [claim.key for claim in claims]
    if unknown := sorted(set(wanted) - {claim.key for claim in claims}):
        raise FindingError(f"--only: no claim {', '.join(unknown)}", 2)
    chosen = [claim for claim in claims if claim.key in wanted]
    more = ("--bootstrap", options.bootstrap) if options.bootstrap else ()
    names = [name for name in RUNS if any(run == name for claim in chosen for run, _ in claim.places)]
    summaries = make_runs(names, options.file, options.out, (*more, *(("--report",) if options.report else ())))
    wrong = 0
    for claim in chosen:
        got = check_claim(claim, summaries, options.slack)
        wrong += got is not None
        print(f"{claim.key}: {claim.figure}: " + ("comes out" if got is None else f"does not; it is {got}"))
    print(f"{len(chosen) - wrong} of {len(chosen)} figures come out")
    return wrong


def main(argv: list[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    try:
        return 1 if check_all(options) else 0
    except FindingError as error:
        print(f"findings: error: {error}", file=sys.stderr)
        return error.status
    except OSError as error:
        print(f"findings: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main())
