"""Score one MT-Bench pair: an answer wins only if both orders pick it, gold is the people's plurality or nothing.

    check = load("evals/mt-bench/check.py")          # the runner loads it; it loads nothing itself
    check.score(item, {"original": {"choice": "A"}, "swapped": {"choice": "B"}}, config)

The rule is that of the toolkit's own check.py (a test compares the two on every combination), whose command line
re-checks a scored file of this evaluation too: python3 -I check.py SCORED --fixture evals/mt-bench/fixture.jsonl
A pair without consensus among people keeps gold None: it is scored, counted, and left out of gold-based measures.
"""

from __future__ import annotations

from typing import Any

# === Constants ===

EXCHANGED = {"A": "B", "B": "A", "equal": "equal", "invalid": "invalid"}  # a shown position, read in the other order

# === Score ===


def choice_of(arguments: object, order: str) -> str:
    """The recorded choice of one order in shown positions; anything unknown is 'invalid'."""
    part = arguments.get(order) if isinstance(arguments, dict) else None
    choice = part.get("choice") if isinstance(part, dict) else None
    return choice if isinstance(choice, str) and choice in EXCHANGED else "invalid"


def decide(original: str, swapped: str) -> str:
    """Both orders' decision: the answer both pick, else 'equal' (position-following is a tie); 'invalid' if either is.

    Source: the conservative swap rule of Zheng et al. 2023. FastChat drops unparsable pairs; here they stay, counted.
    """
    if "invalid" in (original, swapped):
        return "invalid"
    return original if original == EXCHANGED[swapped] else "equal"


def score(item: dict[str, Any], arguments: object, config: dict[str, Any]) -> dict[str, Any]:
    """gold, prediction, secondary and decision of one item; see the module docstring.

    item: needs `gold` ('A' | 'B' | 'equal' | None). arguments: {"original": {"choice", ...}, "swapped": {...}} in shown
    positions. config: `decision` "both" predicts by both orders, "original" (or none) by the first order alone.
    """
    original, swapped = choice_of(arguments, "original"), choice_of(arguments, "swapped")
    decision = decide(original, swapped)
    prediction = decision if config.get("decision") == "both" else original
    consistent = original != "invalid" and original == EXCHANGED[swapped]
    return {
        "gold": item.get("gold"),
        "prediction": prediction,
        "secondary": {
            "agreement": {"gold": item.get("gold"), "prediction": prediction},
            "position_consistency": {"score": int(consistent)},
            "valid_output": {"score": int("invalid" not in (original, swapped))},
        },
        "decision": decision,
    }
