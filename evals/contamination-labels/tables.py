"""The label probe's own table: does a model know people's votes without seeing the answers, and how could it?

    tables = load("evals/contamination-labels/tables.py")   # the runner loads it, after agreement.py
    tables.tables(items, rows, config, settings)            # {"figures": {...}, "sections": [...]}

Pure: fixture rows and scored rows in, figures and printable sections out. Per judge and condition the right guesses
against the majority-class rate (exact binomial), and `named` minus `names` pair by pair: what the question adds to the
models' reputation. A guess is the decision of both orders; an inconsistent or invalid one is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import agreement

# === Constants ===

CONDITIONS = ("named", "names", "masked")
MAY_BE_SAID = (
    ("named no better than names", "no knowledge of votes beyond the models' reputation was found"),
    (
        "named better than names",
        "the question adds something: suspicion, not proof; a model can guess who is good at what",
    ),
    ("names above the base rate", "the model knows which models are good; that is reputation, not recalled votes"),
    (
        "masked above the base rate",
        "suspicion of recalled votes or a flaw of the probe: nothing shown can tell the winner",
    ),
)


# === Figures ===


def guesses_of(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """arm -> item_id -> decision by majority over repeats."""
    repeats: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if "decision" in row:
            repeats.setdefault(row["arm"], {}).setdefault(row["item_id"], []).append(row["decision"])
    return {
        arm: {key: str(agreement.majority(labels)) for key, labels in by_item.items()}
        for arm, by_item in repeats.items()
    }


def condition_figures(items: Sequence[dict[str, Any]], guesses: dict[str, str]) -> dict[str, Any]:
    """condition -> right guesses, base rate and p."""
    found = {}
    for condition in CONDITIONS:
        here = [item for item in items if item["condition"] == condition]
        probe = agreement.label_probe([item["gold"] for item in here], [guesses.get(item["item_id"]) for item in here])
        found[condition] = probe._asdict()
    return found


def added_by_question(items: Sequence[dict[str, Any]], guesses: dict[str, str]) -> dict[str, Any]:
    """named against names on the pairs that have both: better, tie, worse, and p by sign flips of questions."""
    right: dict[str, dict[str, bool]] = {}
    clusters = {}
    for item in items:
        if item["item_id"] in guesses:
            right.setdefault(item["pair"], {})[item["condition"]] = guesses[item["item_id"]] == item["gold"]
            clusters[item["pair"]] = item["cluster"]
    both = [pair for pair, found in right.items() if {"named", "names"} <= set(found)]
    differences = [right[pair]["named"] - right[pair]["names"] for pair in both]
    test = agreement.sign_flip_test(differences, [clusters[pair] for pair in both]) if both else None
    return {
        "pairs": len(both),
        "better": differences.count(1),
        "worse": differences.count(-1),
        "difference": sum(differences) / len(both) if both else None,
        "p": test.p if test else None,
    }


# === Sections ===


def share(probe: dict[str, Any]) -> str:
    if probe["share"] is None:
        return f"undefined ({probe['reason']})"
    return f"{probe['k']}/{probe['n']} {probe['share']:.3f} (base rate {probe['base_rate']:.3f}, p {probe['p']:.4f})"


def tables(
    items: Sequence[dict[str, Any]], rows: Iterable[dict[str, Any]], config: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """All of it; `settings` is not needed, every test here is exact."""
    items = list(items)
    figures, body = {}, []
    for arm, guesses in guesses_of(rows).items():
        conditions, added = condition_figures(items, guesses), added_by_question(items, guesses)
        figures[arm] = {"conditions": conditions, "named_minus_names": added}
        difference = "-" if added["difference"] is None else f"{added['difference']:+.3f}, p {added['p']:.4f}"
        text = f"{difference} (better {added['better']}, worse {added['worse']} of {added['pairs']})"
        body.append([arm, *(share(conditions[condition]) for condition in CONDITIONS), text])
    head = ["judge", *CONDITIONS, "named - names"]
    notes = ["named: question and model names; names: model names alone; masked: question alone; answers never shown"]
    said = [list(pair) for pair in MAY_BE_SAID]
    sections = [
        {"title": "People's votes guessed without the answers", "head": head, "rows": body, "notes": notes},
        {"title": "What may be said", "head": ["seen", "may be said"], "rows": said, "notes": []},
    ]
    return {"figures": figures, "sections": sections}
