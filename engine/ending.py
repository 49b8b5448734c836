"""What is said when a run ends before every reply is there: how far it came, why replies failed, how it goes on.

A resumed run asks exactly what the run was started with, so the hint to resume stands alone only where that can help;
elsewhere it says what to change first. Hints speak of flags for a judge of one's own, of eval.json for the others.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import Counter
from typing import Any

import commands
import evidence
import generate
import messages
import trust

# === Constants ===

# Codes of a stop after which the same request would be refused again, unless the server is changed.
SAME_AGAIN = ("not_found", "bad_request", "wrong_model", "redirect", "event_stream", "bad_body")
# Flags of a command that its run does not keep.
PACE = ("rpm", "concurrency", "by_item", "timeout", "key_file", "max_usd", "quiet")
# What an entry of eval.json is called on the command line.
FLAGS = (
    (
        r'name the variable that holds the key as "key_env" in the arm',
        "name the variable that holds the key: --key-env VAR",
    ),
    (r'"omit": \["(\w+)"\]', r"--omit \1"),
    (r'"rename": \{"(\w+)": "(\w+)"\}', r"--rename \1=\2"),
    (r'"output_mode": "(\w+)"', r"--output-mode \1"),
    (r'"format": "(\w+)"', r"--api-format \1"),
    (r'"strict": true', "--strict"),
    (r'"(omit|rename|strict)"', r"--\1"),
    (r'"output_mode"', "--output-mode"),
    (r'"extra_body"', "--extra-body"),
    (r"\bthe arm\b", "the command"),
)


# === Why replies failed ===


def failures(journal: str, runs: dict[str, generate.ArmRun]) -> tuple[Counter[str], str]:
    """(reason code -> failed replies that are not made good, the words of the last of them)."""
    counts: Counter[str] = Counter()
    last = (-1, "")
    if not os.path.exists(journal):
        return counts, ""
    with evidence.open_file(journal) as stream:
        for run in runs.values():
            for state, offset in zip(run.state, run.offsets):
                if state != generate.FAILED or offset < 0:
                    continue
                kept = generate.entry_at(stream, offset)["evidence"]
                counts[kept["code"] or "unknown"] += 1
                last = max(last, (offset, (kept["error"] or {}).get("text") or ""))
    return counts, last[1]


def failed_text(counts: dict[str, int], last: str) -> str:
    """' (http_500 2; the last: HTTP 500: down)', '' when nothing failed."""
    if not counts:
        return ""
    codes = ", ".join(f"{code} {count}" for code, count in sorted(counts.items()))
    return f" ({codes}; the last: {last})" if last else f" ({codes})"


# === How it goes on ===


def in_flags(hint: str | None, frozen: bool) -> str | None:
    """The client's hint, which speaks of an arm's entry, in flags for a judge of one's own."""
    if hint is None or frozen:
        return hint
    for pattern, flag in FLAGS:
        hint = re.sub(pattern, flag, hint)
    return hint


def asks_the_same(code: str | None) -> bool:
    """Whether a stop is about the request itself, which a resumed run sends again as it is."""
    return code in SAME_AGAIN or (code or "").startswith("http_4")


def enough_usd(runs: dict[str, generate.ArmRun], limit: float) -> float:
    """A limit under which a run that the last one stopped should come to its end.

    By what its replies cost so far, a tenth more, and room for the dearest single request; rounded up to two digits.
    Twice the last limit while that says too little.
    """
    whole = 0.0
    for run in runs.values():
        counts = run.progress.counts
        cost = run.progress.cost + generate.unknown_tries(run) * generate.worst_cost(run)
        done = sum(counts) - counts[generate.MISSING] - counts[generate.FAILED]
        whole += cost * sum(counts) / done if done else cost
    enough = whole * 1.1 + max(map(generate.worst_cost, runs.values()))
    if not whole or enough <= limit:
        enough = max(enough, 2 * limit)
    digits = 1 - math.floor(math.log10(enough))
    return float(round(math.ceil(round(enough * 10.0**digits, 6)) / 10.0**digits, max(digits, 0)))


def more_usd(problem: Any, runs: dict[str, generate.ArmRun], limit: float | None) -> float | None:
    """A higher limit on money where that limit ended the run, else None. problem: NotComplete, or None."""
    spent = problem is not None and str(problem).startswith("--max-usd")
    return enough_usd(runs, limit) if spent and limit is not None else None


def same_pace(options: Any, max_usd: float | None = None) -> str:
    """The flags of pace and limits that a command was given, to be given again. max_usd: in the place of its own."""
    words = []
    for name in PACE:
        value = getattr(options, name, None)
        value = max_usd if name == "max_usd" and max_usd is not None else value
        if value:
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}"))
    return "".join(f" {word}" for word in words)


def way_on(evaluation: Any, folder: str, arm: Any, code: str | None, pace: str = "", resume: str | None = None) -> str:
    """How the run goes on.

    arm: the one that a stop was about, if it was about one. pace: flags to be given again. resume: the command without
    them, where more than the folder has to be said.
    """
    bare = commands.command(evaluation.folder, "--resume", folder)
    resume = (resume or bare) + pace
    if arm is None or not (code == "auth" or asks_the_same(code)):
        return f"resume with: {resume}"
    if code == "auth" and not arm.frozen:
        return (
            f"resume with a key that is accepted: {bare}{pace}{trust.said_again(arm, None, 'VAR') or ' --key-env VAR'}"
        )
    if code == "auth" and arm.settings.get("key_env"):
        return f"put a key that is accepted into {arm.settings['key_env']}, then resume with: {resume}"
    change = f"change arms.{arm.name} in eval.json, --freeze" if arm.frozen else "change the command"
    return f"a resumed run asks the same: {change} and start again, or resume once the server is changed: {resume}"


def not_complete(evaluation: Any, folder: str, runs: dict[str, generate.ArmRun], problem: Any, options: Any) -> None:
    """Say how far a run has come, why it stopped and how it goes on. problem: NotComplete, or None."""
    arm = runs[problem.arm].arm if problem is not None and problem.arm in runs else None
    voice = messages.Voice("run_eval")
    if problem is not None:
        voice.error(str(problem), in_flags(problem.hint, arm is None or arm.frozen))
    missing, ok, invalid, failed = (sum(run.progress.counts[state] for run in runs.values()) for state in range(4))
    total = missing + ok + invalid + failed
    why = failed_text(*failures(os.path.join(folder, "journal.jsonl"), runs))
    voice.error(f"{folder}: {ok + invalid} of {total} replies on disk, {failed} failed{why}; the run is not complete")
    pace = same_pace(options, more_usd(problem, runs, options.max_usd))
    code, arms = problem.code if problem is not None else None, [run.arm for run in runs.values()]
    resume = trust.resume_command(evaluation.folder, folder, arms, getattr(options, "key_file", None))
    messages.say("hint: " + way_on(evaluation, folder, arm, code, pace, resume))
