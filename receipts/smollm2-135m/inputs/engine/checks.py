"""Checks of an answer that need no judge: exact text, contained text, pattern, number with tolerance, JSON. Pure."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# === Constants ===

# A number as people write it: sign, digits with or without thousands commas, a fraction, an exponent.
NUMBER = re.compile(r"[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```", re.DOTALL)
EPSILON = 1e-9  # of a number without a tolerance: decimal fractions are no binary ones


# === Kinds ===


def last_number(text: str) -> float | None:
    """The last number in a text, which is where an answer with its working ends; None without one."""
    found = NUMBER.findall(text)
    return float(found[-1].replace(",", "").replace("\u2212", "-")) if found else None


def number_matches(text: str, value: float, tolerance: float) -> bool:
    """Whether the last number of a text is the value, give or take the tolerance."""
    found = last_number(text)
    return found is not None and math.isfinite(found) and abs(found - value) <= tolerance + EPSILON * abs(value)


def json_matches(text: str, check: dict[str, Any]) -> bool:
    """Whether a text is JSON, alone or in one fence, and equals `value` where the check has one."""
    fenced = FENCED.fullmatch(text.strip())
    try:
        found = json.loads(fenced.group(1) if fenced else text)
    except (ValueError, RecursionError):
        return False
    return "value" not in check or same_json(found, check["value"])


def same_json(a: Any, b: Any) -> bool:
    """Equality of JSON values in which true is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def passes(answer: str, check: dict[str, Any]) -> bool:
    """Whether an answer passes one check (as results.check_problem allows it)."""
    kind, value = check["type"], check.get("value")
    if kind == "exact":
        return answer.strip() == str(value).strip()
    if kind == "contains":
        return str(value) in answer
    if kind == "regex":
        return re.search(str(value), answer) is not None
    if kind == "number":
        return number_matches(answer, float(check["value"]), float(check.get("tolerance", 0)))
    return json_matches(answer, check)


def outcome(answer: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """{"passed": all of them, "each": [{"type", "passed"}]} of an answer; passed is null without checks."""
    each = [{"type": check["type"], "passed": passes(answer, check)} for check in checks]
    return {"passed": all(one["passed"] for one in each) if each else None, "each": each}
