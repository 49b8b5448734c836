"""What a result says of one judge, in sentences: the same words in the terminal and on the page. Pure.

Words follow intervals: what an interval does not exclude is "not told apart", whatever the value is.
"""

from __future__ import annotations

from typing import Any

# === Constants ===

LONGER = "control-longer"  # the control whose difference to a judge is put into words where both ran


# === One judge ===


def against_chance(shown: dict[str, Any]) -> str:
    """What kappa says of a judge. shown: the figure of summary.json."""
    if shown["value"] is None:
        return f"kappa is undefined ({shown['reason']})"
    if shown["low"] is None:
        return "kappa has no interval here, so nothing is sure"
    if shown["low"] > 0:
        return "agrees with gold beyond chance"
    return "agrees with gold less than chance would" if shown["high"] < 0 else "not told apart from chance"


def against_longer(result: dict[str, Any], name: str) -> str | None:
    """How a judge stands to who always picks the longer answer, where the run holds both."""
    for entry in result["comparisons"]:
        if LONGER not in (entry["a"], entry["b"]) or name not in (entry["a"], entry["b"]):
            continue
        shown = entry["differences"]["kappa"]
        low, high = (shown["low"], shown["high"]) if entry["a"] == name else (shown["high"], shown["low"])
        if low is None or high is None:
            return None
        low, high = (low, high) if entry["a"] == name else (-low, -high)
        if low > 0:
            return "better than picking the longer answer"
        return "worse than picking the longer answer" if high < 0 else "not told apart from picking the longer answer"
    return None


def order_words(position: dict[str, Any]) -> str:
    """What exchanging the two answers did."""
    changed = position["n"] - position["consistent"] - position["invalid"]
    text = f"exchanging the two answers changes its verdict on {changed:,} of {position['n']:,} pairs judged"
    lean = [(position["k_first"], "first"), (position["k_second"], "second")]
    if position["k_first"] == position["k_second"]:
        return text
    count, side = max(lean)
    return f"{text}; {count:,} of these lean to the answer shown {side}"


def judgement(result: dict[str, Any], name: str) -> str:
    """'not told apart from chance, better than picking the longer answer'."""
    parts = [against_chance(result["arms"][name]["metrics"]["kappa"]), against_longer(result, name)]
    return ", ".join(part for part in parts if part)


def as_sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
