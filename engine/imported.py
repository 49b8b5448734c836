"""Recorded judge replies become a run like any other: same evidence, same parsing, rescored and compared offline.

One JSON line per reply: item_id, order ("original" or "swapped"), repeat (from 1; default 1), and what the judge said:
content (text), or tool_calls ([{"name", "arguments"}]). Known or null: model, provider, finish_reason, usage ({"input",
"output", "cached", "reasoning"}), started_at, latency_ms, id. What was not recorded stays unknown; nothing is made up.
Pairs without both replies are counted as missing. Every line is checked before anything is written.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import client
import evaluation as evaluations
import evidence
import fixtures
import generate
import rows

# === Constants ===

ORDERS = {"original": "original", "swapped": "swapped", "ab": "original", "ba": "swapped"}
MAX_REPEATS = 1000  # a larger number is a misread column, not a repeat
TEXTS = ("content", "model", "provider", "finish_reason", "refusal", "started_at", "id")


# === One line ===


def refuse(where: str, field: str, expected: str, got: Any) -> evidence.EvidenceError:
    return evidence.EvidenceError(f"{where}: field '{field}': expected {expected}, got {str(got)[:60]!r}")


def check_line(line: Any, where: str) -> None:
    """Refuse a line whose fields are of the wrong kind. Raises: EvidenceError."""
    if not isinstance(line, dict):
        raise evidence.EvidenceError(f"{where}: expected a JSON object, got {type(line).__name__}")
    if not isinstance(line.get("item_id"), str):
        raise refuse(where, "item_id", "a text", line.get("item_id"))
    if not isinstance(line.get("order"), str) or line["order"] not in ORDERS:
        raise refuse(where, "order", "original or swapped", line.get("order"))
    repeat = line.get("repeat", 1)
    if type(repeat) is not int or not 1 <= repeat <= MAX_REPEATS:
        raise refuse(where, "repeat", f"a number from 1 to {MAX_REPEATS}", repeat)
    for field in TEXTS:
        if line.get(field) is not None and not isinstance(line[field], str):
            raise refuse(where, field, "a text or null", line[field])
    check_calls(line.get("tool_calls"), where)
    check_counts(line, where)
    if line.get("content") is None and line.get("tool_calls") is None and line.get("refusal") is None:
        raise evidence.EvidenceError(f"{where}: expected content, tool_calls or refusal: the line holds no reply")


def check_calls(calls: Any, where: str) -> None:
    """Refuse tool calls that are no list of objects. Raises: EvidenceError."""
    if calls is None:
        return
    if not isinstance(calls, list):
        raise refuse(where, "tool_calls", "a list or null", calls)
    for place, call in enumerate(calls):
        if not isinstance(call, dict):
            raise refuse(where, f"tool_calls[{place}]", "an object with name and arguments", call)


def check_counts(line: dict[str, Any], where: str) -> None:
    """Refuse a time or token counts that are no whole numbers from 0. Raises: EvidenceError."""
    usage = line.get("usage")
    if usage is not None and not isinstance(usage, dict):
        raise refuse(where, "usage", "an object or null", usage)
    counts = {f"usage.{kind}": (usage or {}).get(kind) for kind in rows.TOKEN_KINDS}
    for field, count in {**counts, "latency_ms": line.get("latency_ms")}.items():
        if count is not None and rows.token_count(count) is None:
            raise refuse(where, field, "a whole number from 0 to below 2**53, or null", count)


def reply_of(line: dict[str, Any]) -> dict[str, Any]:
    """The recorded reply in chat shape."""
    message: dict[str, Any] = {key: line[key] for key in ("content", "refusal") if line.get(key) is not None}
    calls = line.get("tool_calls")
    if calls is not None:
        message["tool_calls"] = [call if "function" in call else {"function": call} for call in calls]
    reply: dict[str, Any] = {key: line[key] for key in ("id", "model", "provider") if line.get(key) is not None}
    return {**reply, "choices": [{"message": message, "finish_reason": line.get("finish_reason")}]}


def entry_of(line: dict[str, Any], name: str, recipe: Any, mode: str) -> dict[str, Any]:
    """The journal entry of one recorded reply, parsed as a live one is."""
    reply = reply_of(line)
    started_at, latency_ms = line.get("started_at"), line.get("latency_ms")
    outcome = client.Outcome("reply", reply=reply, started_at=started_at, latency_ms=latency_ms)
    parts = rows.reply_parts(reply)
    verdict = recipe.parse(rows.reply_of(parts), mode)
    kept = rows.evidence_of(outcome, parts, line.get("usage"), verdict)
    kept.update(retries=None, attempts_maybe_billed=None)  # nobody recorded them
    return rows.journal_entry(line["item_id"], name, line.get("repeat", 1), ORDERS[line["order"]], verdict, kept)


# === The file ===


def read_lines(path: str, places: dict[str, int], known: set[str]) -> Iterator[dict[str, Any]]:
    """The lines of the selection, each checked. Raises: EvidenceError naming the line.

    places: items of the selection; known: all items of the fixture (an item of another split is passed over).
    """
    seen: dict[tuple[str, str, int], int] = {}
    for number, data in evidence.read_lines(path):
        where = f"{path}:{number}"
        line = evidence.parse_json(data, where)
        check_line(line, where)
        if line["item_id"] not in known:
            raise evidence.EvidenceError(f"{where}: item {line['item_id']!r} is not in the fixture")
        key = (line["item_id"], ORDERS[line["order"]], line.get("repeat", 1))
        if key in seen:
            raise evidence.EvidenceError(f"{where}: {' '.join(map(str, key))} stands twice, first in line {seen[key]}")
        seen[key] = number
        if line["item_id"] in places:
            yield line


def counts_text(lines: list[dict[str, Any]], pairs: int) -> str:
    """How many replies there are of each order, and of how many pairs both. pairs: of the run, times its repeats."""
    by_order = Counter(ORDERS[line["order"]] for line in lines)
    by_pair = Counter((line["item_id"], line.get("repeat", 1)) for line in lines)
    both = sum(count == len(by_order) == 2 for count in by_pair.values())
    orders = ", ".join(f"{by_order[order]} {order}" for order in ("original", "swapped"))
    hint = "" if both else ": no pair is judged in both orders, and a decision takes both"
    return f"{len(lines)} replies read ({orders}); {both} of {pairs} pairs have both orders{hint}"


def recorded_arm(config: dict[str, Any], label: str, lines: list[dict[str, Any]], mode: str | None) -> evaluations.Arm:
    """The arm of recorded replies: its model is the one they name, when they name a single one.

    config: eval.json, none of whose arms may be called so. Raises: UsageError, SettingError.
    """
    models = {line["model"] for line in lines if line.get("model")}
    settings: dict[str, Any] = {"recorded": True, "model": models.pop() if len(models) == 1 else label}
    if mode:
        settings["output_mode"] = mode
    evaluations.custom_name(config, label)
    evaluations.check_arm(label, settings, "--arm-label")
    return evaluations.Arm(label, settings, frozen=False)


def journal_of(
    lines: list[dict[str, Any]], arm: evaluations.Arm, evaluation: evaluations.Evaluation
) -> Iterator[bytes]:
    """The journal lines of all replies."""
    mode = arm.overlay(evaluation.config).get("output_mode", "tool")
    for line in lines:
        yield evidence.row_bytes(entry_of(line, arm.name, evaluation.recipe, mode))


def write_run(
    folder: str,
    manifest: dict[str, Any],
    items: fixtures.Items,
    arm: evaluations.Arm,
    lines: list[dict[str, Any]],
    evaluation: evaluations.Evaluation,
) -> dict[str, Any]:
    """Journal and raw rows of the recorded replies; returns the finished manifest."""
    path = os.path.join(folder, "journal.jsonl")
    evidence.write_atomic(path, journal_of(lines, arm, evaluation))
    runs = generate.arm_runs([arm], evaluation.config, len(items), manifest["repeats"])
    generate.read_journal(path, runs, {item_id: place for place, item_id in enumerate(items.ids)})
    missing = runs[arm.name].progress.counts[generate.MISSING]
    return generate.finish(folder, {**manifest, "sparse": bool(missing)}, items, runs, time.time())
