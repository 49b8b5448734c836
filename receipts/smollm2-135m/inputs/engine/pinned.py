"""Run the recipe and check that a receipt pins, on request, in a process of their own, and compare them with ours.

This is the one place where code of a stranger runs, and only with --run-pinned-code. The process is `python3 -I` with
an empty environment, limits on time, memory and files, and an audit hook that refuses every file, connection and child
process (see pinned_child.py). It gets the kept replies on its standard input and writes verdicts and scores as JSON.
A hook is no wall against a determined attacker: run it where you would run any script of the same person.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import audit
import evidence
import foreign
import rows
import verify as verifying

# === Constants ===

TIME_LIMIT_S = 120
MAX_ANSWERS = 512 * foreign.MIB  # bytes the process may write


# === Talk to the process ===


def child_environment() -> dict[str, str]:
    """Nothing; on Windows the one variable without which Python does not start."""
    root = os.environ.get("SYSTEMROOT")
    return {"SYSTEMROOT": root} if root and os.name == "nt" else {}


def answers(child: str, messages: Iterable[dict[str, Any]], folder: str) -> Iterator[Any]:
    """What the process says to each message, in order. Raises: ForeignError when it fails or takes too long."""
    import subprocess

    text = b"".join(evidence.row_bytes(message) for message in messages)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", child],
            input=text,
            capture_output=True,
            env=child_environment(),
            cwd=folder,
            timeout=TIME_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise foreign.ForeignError(f"pinned code: did not finish within {TIME_LIMIT_S} s") from None
    if done.returncode != 0 or len(done.stdout) > MAX_ANSWERS:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise foreign.ForeignError(f"pinned code: ended with {done.returncode}: {foreign.shown(last)}")
    for number, line in enumerate(done.stdout.split(b"\n"), 1):
        if line:
            yield foreign.parse(line, f"pinned code: answer {number}")


def start_message(recipe: bytes, check: bytes, config: dict[str, Any]) -> dict[str, Any]:
    """The first message: the code, and the settings it is run with."""
    return {"recipe": recipe.decode("utf-8", "replace"), "check": check.decode("utf-8", "replace"), "config": config}


def child_path() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "pinned_child.py")


# === Our receipts ===


def receipt_messages(state: verifying.State) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(message, expected answer) of every row: its replies to parse, its recorded choices to score."""
    found, opened = verifying.need_audit(state), verifying.need(state)
    for _, _, row in opened.folder.rows("raw.jsonl.gz"):
        config = found.configs[row["arm"]]
        mode = config.get("output_mode", "tool")
        replies = {order: rows.reply_of(kept) for order, kept in row["replies"].items() if kept["error"] is None}
        said = {order: row["tool_arguments"][order] for order in replies}
        item = found.item(row)
        message = {"replies": replies, "mode": mode, "item": item, "arguments": row["tool_arguments"]}
        yield message, {"said": said, "score": found.score(item, row["tool_arguments"], config)}


def check_receipt(state: verifying.State) -> verifying.Outcome:
    """The pinned recipe and check of a receipt of ours against ours, row by row."""
    folder = state.folder
    code = folder.read("inputs/recipe.py"), folder.read("inputs/check.py")
    config = verifying.need(state).config
    return compared(state.folder.path, start_message(*code, config), list(receipt_messages(state)))


def compared(
    folder: str, start: dict[str, Any], pairs: list[tuple[dict[str, Any], dict[str, Any]]]
) -> verifying.Outcome:
    """Outcome of running the pinned code over some messages: every difference from the expected answers."""
    findings = audit.Findings()
    given = answers(child_path(), [start, *(message for message, _ in pairs)], os.path.abspath(folder))
    count = 0
    for answer, (message, expected) in zip(given, pairs):
        count += 1
        where = foreign.shown(message["item"].get("item_id"), 60)
        for found in verifying.differences(expected, answer):
            findings.add("pinned", f"{where}: {found.line()} from the pinned code")
    if count < len(pairs):
        findings.add("pinned", f"expected {len(pairs)} answers, got {count}")
    if findings.counts["pinned"]:
        return verifying.Outcome(verifying.FAIL, f"{findings.counts['pinned']} differ", findings.lines("pinned"))
    return verifying.passed(f"{count} rows: the pinned recipe and check say what ours say")


# === Published receipts ===


def check_published(state: Any) -> verifying.Outcome:
    """The pinned checker of a published receipt against ours; there are no replies for its recipe to parse."""
    found = state.read
    pairs = []
    for _, _, row in state.folder.rows(state.evidence):
        if row.get("item_id") not in found.places:
            continue
        item = found.items[found.places[row["item_id"]]]
        message = {"replies": {}, "mode": "tool", "item": item, "arguments": row["tool_arguments"]}
        score = {key: row[key] for key in ("gold", "prediction", "secondary")}
        pairs.append((message, {"said": {}, "score": score}))
    code = [
        state.folder.read(state.by_hash[digest])
        for digest in (state.receipt["recipe_sha256"], state.config["checker_sha256"])
    ]
    return compared(state.folder.path, start_message(code[0], code[1], state.config), pairs)
