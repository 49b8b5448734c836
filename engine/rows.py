"""From one reply to its evidence, from the evidence of both orders to one raw row, and back to the verdict.

The evidence keeps what the verdict was read from, so that anybody can parse it again offline: a verdict is always read
from the evidence, never from anything that is not kept. Unknown numbers are null, never zero. Pure.
"""

from __future__ import annotations

import json
from typing import Any

# === Constants ===

BATCH = "batch"  # evidence's `via` of a reply that came as a line of a batch's results; others have no such key
TOKEN_KINDS = ("input", "output", "cached", "reasoning")
MESSAGE_TEXTS = ("content", "refusal", "reasoning_content")
# Fewer than one token for twelve characters of plain text: a server that cut the prompt short without a word.
CHARACTERS_A_TOKEN = 12


# === Evidence ===


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def storable(value: Any) -> Any:
    """The value if strict JSON can hold it, else its text: evidence must never fail to be written."""
    if isinstance(value, str):
        return value
    try:
        json.dumps(value, allow_nan=False)
        return value
    except (ValueError, TypeError, RecursionError):
        return "not storable: " + type(value).__name__


def tool_calls_of(message: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Name and argument text of every tool call as received; None when there is no list of calls."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return None
    found = []
    for call in calls:
        function = object_or_empty(object_or_empty(call).get("function"))
        found.append({"name": storable(function.get("name")), "arguments": storable(function.get("arguments"))})
    return found


def content_of(message: dict[str, Any]) -> Any:
    """The content as text, or as the list of parts it came in."""
    content = message.get("content")
    return storable(content) if isinstance(content, (str, list)) else None


def object_or_empty(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def reply_parts(reply: object) -> dict[str, Any]:
    """The parts of a chat-shaped reply that are kept, whatever its real shape."""
    reply = object_or_empty(reply)
    choices = reply.get("choices")
    first = object_or_empty(choices[0] if isinstance(choices, list) and choices else None)
    message = object_or_empty(first.get("message"))
    parts = {
        "id": text_or_none(reply.get("id")),
        "model": text_or_none(reply.get("model")),
        "provider": text_or_none(reply.get("provider")),
        "finish_reason": text_or_none(first.get("finish_reason")),
        "content": content_of(message),
        "tool_calls": tool_calls_of(message),
        "refusal": text_or_none(message.get("refusal")),
    }
    thoughts = text_or_none(message.get("reasoning_content")) or text_or_none(message.get("reasoning"))
    return {**parts, "reasoning_content": thoughts} if thoughts else parts


def reply_of(kept: dict[str, Any]) -> dict[str, Any]:
    """A chat-shaped reply made again from evidence: what `parse` is given, at the time and on every rescoring."""
    message: dict[str, Any] = {key: kept[key] for key in MESSAGE_TEXTS if kept.get(key) is not None}
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = [{"function": call} for call in calls]
    return {"choices": [{"message": message, "finish_reason": kept.get("finish_reason")}]}


def token_count(value: object) -> int | None:
    """A count a server reported, if it can be one."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return int(value) if good else None  # type: ignore[call-overload]


def clean_usage(usage: object) -> dict[str, int | None] | None:
    """Token counts by kind, unknown ones null; null when the server reported nothing."""
    if not isinstance(usage, dict):
        return None
    counts = {kind: token_count(usage.get(kind)) for kind in TOKEN_KINDS}
    return counts if any(count is not None for count in counts.values()) else None


def prompt_was_cut(payload: dict[str, Any] | None, usage: dict[str, int | None] | None) -> bool:
    """Whether the server counted far fewer prompt tokens than the plain text sent can have."""
    tokens = (usage or {}).get("input")
    if payload is None or not tokens:
        return False
    texts = [str(message.get("content")) for message in payload.get("messages", [])]
    length = sum(len(text) for text in texts if text.isascii())
    return length > 12_000 and tokens < length / CHARACTERS_A_TOKEN


def evidence_of(outcome: Any, parts: dict[str, Any], usage: object, verdict: dict[str, Any] | None) -> dict[str, Any]:
    """The record of one call.

    parts: `reply_parts` of `outcome.reply`. verdict: `parse`'s answer for it, None when there was no reply.
    """
    state = verdict["state"] if verdict else ("invalid" if outcome.state == "invalid" else "failed")
    error = None
    if verdict is None:
        error = {"code": outcome.code, "status": outcome.http_status, "text": outcome.text}
    return {
        "state": state,
        "code": verdict["code"] if verdict else outcome.code,
        "repaired": verdict["repaired"] if verdict else [],
        "hint": verdict["hint"] if verdict else outcome.hint,
        **parts,
        "usage": clean_usage(usage),
        "started_at": outcome.started_at,
        "latency_ms": outcome.latency_ms,
        "retries": outcome.retries,
        "attempts_maybe_billed": outcome.maybe_billed,
        "error": error,
    }


# === Journal line ===


def journal_entry(
    item_id: str, arm: str, repeat: int, order: str, verdict: Any, kept: dict[str, Any]
) -> dict[str, Any]:
    """One line of the journal: which call it was, what it said, what that was read from."""
    said = {"choice": "invalid", "reason": kept["code"]} if verdict is None else verdict
    argument = {"choice": said["choice"], "reason": said["reason"]}
    return {"item_id": item_id, "arm": arm, "repeat": repeat, "order": order, "said": argument, "evidence": kept}


EVIDENCE_KEYS = (
    *("state", "code", "repaired", "hint", "id", "model", "provider", "finish_reason", "content", "tool_calls"),
    *("refusal", "reasoning_content", "usage", "started_at", "latency_ms", "retries", "attempts_maybe_billed"),
    *("error", "via"),
)  # in the order in which evidence holds them


def journal_line(entry: dict[str, Any]) -> dict[str, Any]:
    """A journal entry as its line holds it: without what is null or an empty list of repairs.

    A reply is written twice, here and in its raw row; `entry_of` puts back what this leaves out.
    """
    kept = {key: value for key, value in entry["evidence"].items() if value is not None}
    if not kept["repaired"]:
        del kept["repaired"]
    if "usage" in kept:
        kept["usage"] = {kind: count for kind, count in kept["usage"].items() if count is not None}
    return {**entry, "evidence": kept}


def entry_of(line: dict[str, Any]) -> dict[str, Any]:
    """The journal entry of a line, every part of its evidence in its place; what has no such place stays behind."""
    kept = line["evidence"]
    if not isinstance(kept, dict):
        return line
    full: dict[str, Any] = {}
    for key in EVIDENCE_KEYS:
        if key in kept or key not in OPTIONAL_EVIDENCE:
            full[key] = kept.get(key, [] if key == "repaired" else None)
    if isinstance(full["usage"], dict):
        full["usage"] = {**dict.fromkeys(TOKEN_KINDS), **full["usage"]}
    return {**line, "evidence": {**full, **kept, "usage": full["usage"]}}


# === Raw row ===


def joined(values: list[Any]) -> str:
    return ",".join("" if value is None else str(value) for value in values)


def total_or_none(values: list[int | None]) -> int | None:
    """A sum, unknown when any part is: a made-up zero would read as a free call."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def token_totals(replies: list[dict[str, Any]]) -> dict[str, int | None]:
    usages = [kept.get("usage") or {} for kept in replies]
    return {kind: total_or_none([usage.get(kind) for usage in usages]) for kind in TOKEN_KINDS}


def raw_row(
    settings: dict[str, Any], config: dict[str, Any], name: str, item_id: str, repeat: int, entries: dict[str, Any]
) -> dict[str, Any]:
    """One row (item, arm, repeat) from the journal entries of its orders, keys as the published format has them."""
    kept = {order: entry["evidence"] for order, entry in entries.items()}
    replies = list(kept.values())
    finishes = [part["finish_reason"] for part in replies]
    return {
        "item_id": item_id,
        "arm": name,
        "repeat": repeat,
        "request_model": settings.get("model") or replies[-1]["model"],
        "response_model": replies[-1]["model"],
        "endpoint": settings.get("endpoint"),
        "provider_served": replies[-1]["provider"] or settings.get("provider_name"),
        "allow_fallbacks": False,
        "reasoning_effort": config.get("reasoning_effort"),
        "max_tokens": config.get("max_tokens"),
        "tool_choice": config.get("tool_choice"),
        "tool_arguments": {order: entry["said"] for order, entry in entries.items()},
        "finish_reason": "length" if "length" in finishes else finishes[-1],
        "tokens": token_totals(replies),
        "response_id": joined([part["id"] for part in replies]),
        "started_at": replies[0]["started_at"],
        "errors": sum(part["state"] == "failed" for part in replies),
        "invalid_tool_calls": int(any(part["state"] == "invalid" for part in replies)),
        "retries": total_or_none([part["retries"] for part in replies]),
        "latency_ms": total_or_none([part["latency_ms"] for part in replies]),
        "replies": kept,
    }


# === Shape of a raw row ===

NULL = type(None)
ANY = (str, int, float, bool, dict, list, NULL)
ROW_SHAPE: dict[str, tuple[type, ...]] = {
    "item_id": (str,),
    "arm": (str,),
    "repeat": (int,),
    "request_model": (str, NULL),
    "response_model": (str, NULL),
    "endpoint": (str, NULL),
    "provider_served": (str, NULL),
    "allow_fallbacks": (bool,),
    "reasoning_effort": ANY,
    "max_tokens": (int, NULL),
    "tool_choice": (dict, str, NULL),
    "tool_arguments": (dict,),
    "finish_reason": (str, NULL),
    "tokens": (dict,),
    "response_id": (str,),
    "started_at": (str, NULL),
    "errors": (int,),
    "invalid_tool_calls": (int,),
    "retries": (int, NULL),
    "latency_ms": (int, NULL),
    "replies": (dict,),
}
EVIDENCE_SHAPE: dict[str, tuple[type, ...]] = {
    "state": (str,),
    "code": (str, NULL),
    "repaired": (list,),
    "hint": (str, NULL),
    "id": (str, NULL),
    "model": (str, NULL),
    "provider": (str, NULL),
    "finish_reason": (str, NULL),
    "content": (str, list, NULL),
    "tool_calls": (list, NULL),
    "refusal": (str, NULL),
    "usage": (dict, NULL),
    "started_at": (str, NULL),
    "latency_ms": (int, NULL),
    "retries": (int, NULL),
    "attempts_maybe_billed": (int, NULL),
    "error": (dict, NULL),
}
OPTIONAL_EVIDENCE: dict[str, tuple[type, ...]] = {"reasoning_content": (str,), "via": (str,)}
MAX_COUNT = 1 << 53  # counts from here on are no counts, and no exact numbers in most languages


def shape_problems(
    value: dict[str, Any], shape: dict[str, tuple[type, ...]], optional: dict[str, tuple[type, ...]], where: str
) -> list[str]:
    """What an object has too much, too little, or of another type or range than `shape` says."""
    lines = [f"{where}field '{key}' is missing" for key in shape if key not in value]
    for key, part in value.items():
        kinds = shape.get(key) or optional.get(key)
        if kinds is None:
            lines.append(f"{where}field {key[:60]!r} is unknown")
        elif type(part) not in kinds:
            lines.append(f"{where}field '{key}': a {type(part).__name__} is not expected")
        elif type(part) is int and not 0 <= part < MAX_COUNT:
            lines.append(f"{where}field '{key}': expected 0 to 2**53, got {part}")
    return lines


def orders_of(row: dict[str, Any]) -> tuple[str, ...]:
    """The orders in which a row holds replies, whatever the row is."""
    replies = row.get("replies")
    return tuple(replies) if isinstance(replies, dict) else ()


def row_problems(row: dict[str, Any], orders: tuple[str, ...]) -> list[str]:
    """What is wrong with the shape of one raw row; a row without problems is safe to read for every room."""
    lines = shape_problems(row, ROW_SHAPE, {}, "")
    if lines:
        return lines
    for field in ("tool_arguments", "replies"):
        if tuple(row[field]) != orders:
            lines.append(f"field '{field}': expected {' and '.join(orders)}, in this order")
    if lines:
        return lines
    for order in orders:
        said, kept = row["tool_arguments"][order], row["replies"][order]
        if not is_said(said):
            lines.append(f"{order}: field 'tool_arguments': expected choice and reason")
        if not isinstance(kept, dict):
            return [*lines, f"{order}: the kept reply is no object"]
        lines += reply_problems(kept, f"{order}: ")
    return lines


def is_said(said: Any) -> bool:
    """Whether a value has the form of what a reply was read as."""
    return isinstance(said, dict) and set(said) == {"choice", "reason"} and isinstance(said["choice"], str)


def entry_problems(entry: dict[str, Any]) -> list[str]:
    """What is wrong with the shape of what one journal line keeps; a line without problems is safe to read."""
    if not isinstance(entry["evidence"], dict):
        return ["field 'evidence': expected an object"]
    lines = [] if is_said(entry["said"]) else ["field 'said': expected choice and reason"]
    return lines + reply_problems(entry["evidence"], "evidence: ")


def reply_problems(kept: dict[str, Any], where: str) -> list[str]:
    """What is wrong with the shape of one kept reply."""
    lines = shape_problems(kept, EVIDENCE_SHAPE, OPTIONAL_EVIDENCE, where)
    if lines:
        return lines
    if kept["state"] not in ("ok", "invalid", "failed"):
        lines.append(f"{where}field 'state': expected ok, invalid or failed, got {kept['state'][:60]!r}")
    if not all(isinstance(name, str) for name in kept["repaired"]):
        lines.append(f"{where}field 'repaired': expected a list of names")
    for call in kept["tool_calls"] or []:
        if not isinstance(call, dict) or set(call) != {"name", "arguments"}:
            lines.append(f"{where}field 'tool_calls': expected objects with name and arguments")
    usage = kept["usage"] or dict.fromkeys(TOKEN_KINDS)
    if set(usage) != set(TOKEN_KINDS) or any(part is not None and token_count(part) is None for part in usage.values()):
        lines.append(f"{where}field 'usage': expected {', '.join(TOKEN_KINDS)} as counts or null")
    if kept.get("via", BATCH) != BATCH:
        lines.append(f"{where}field 'via': expected {BATCH}, got {kept['via'][:60]!r}")
    if kept["error"] is not None and set(kept["error"]) != {"code", "status", "text"}:
        lines.append(f"{where}field 'error': expected code, status and text")
    return lines


# === Cost ===


def price_for(settings: dict[str, Any], config: dict[str, Any], kept: dict[str, Any]) -> dict[str, float] | None:
    """The frozen price of one kept reply, None when unknown.

    For a batch's reply: the arm's batch price, else its price less `batch_discount` (a share of it; the arm's own, else
    eval.json's).
    """
    price: dict[str, float] | None = settings.get("price_usd_per_mtok")
    if kept.get("via") != BATCH:
        return price
    own: dict[str, float] | None = settings.get("batch_price_usd_per_mtok")
    discount = settings.get("batch_discount", config.get("batch_discount"))
    if own is not None or price is None or discount is None:
        return own
    return {kind: dollars * (1 - discount) for kind, dollars in price.items()}


def cost_usd(usage: dict[str, int | None] | None, price: dict[str, Any] | None) -> float | None:
    """What one reply cost at the arm's frozen price; None when price or token counts are unknown."""
    if price is None or usage is None or usage.get("input") is None or usage.get("output") is None:
        return None
    cached = min(usage.get("cached") or 0, usage["input"] or 0)
    fresh = (usage["input"] or 0) - cached
    cached_price = price.get("cached", price["input"])
    dollars = fresh * price["input"] + cached * cached_price + (usage["output"] or 0) * price["output"]
    return float(dollars) / 1e6
