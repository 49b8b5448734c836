"""One or several runs on common terms: arms under names that differ, figures side by side.

A view is laid out as `summary.json` is, so that one page serves one run and several. Where runs have different levels,
models or cells, only what all of them have is put side by side. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import evidence
import page_source
import page_tables

# === Constants ===

PER_ARM_OF_SCORES = ("arms", "usage", "cost_usd", "config_hash")
PER_ARM = (*PER_ARM_OF_SCORES, "position", "length", "repeats", "disagreements", "confidently_wrong")


class View(NamedTuple):
    """One or several runs on common terms: `result` is laid out as summary.json, arms under names that differ."""

    result: dict[str, Any]
    sources: list[page_source.Source]
    places: list[tuple[str, int, str]]  # per arm: name shown, number of its source, name in that source
    lead: str


# === Runs on common terms ===


def arm_places(sources: Sequence[page_source.Source]) -> list[tuple[str, int, str]]:
    """A name for every arm of every run: its own, with the run's letter where several runs have it."""
    own = [(number, name) for number, source in enumerate(sources) for name in source.summary["arms"]]
    names = [name for _, name in own]
    return [(name if names.count(name) == 1 else f"{name} (run {letter(n)})", n, name) for n, name in own]


def letter(number: int) -> str:
    return chr(ord("A") + number)


def merged(sources: Sequence[page_source.Source], places: list[tuple[str, int, str]]) -> dict[str, Any]:
    """The first run's summary with the arms of the others beside its own, wherever a figure is per arm."""
    result = dict(sources[0].summary)
    for key in PER_ARM if page_tables.is_pairwise(result) else PER_ARM_OF_SCORES:
        result[key] = {shown: sources[n].summary[key][name] for shown, n, name in places}
    if len(sources) == 1:
        return result
    result["warnings"] = [
        f"run {letter(n)}: {text}" for n, source in enumerate(sources) for text in source.summary["warnings"]
    ]
    result["by"] = common_levels(sources, places)
    if not page_tables.is_pairwise(result):
        return result
    result["comparisons"] = [
        {**entry, "a": named(places, n, entry["a"]), "b": named(places, n, entry["b"])}
        for n, source in enumerate(sources)
        for entry in source.summary["comparisons"]
    ]
    result["models"] = common_models(sources, places)
    result["cross"] = common_cross(sources, places)
    humans = [source.summary["human"] for source in sources]
    result["human"] = None
    if all(humans):
        result["human"] = {**humans[0], "arms": {shown: humans[n]["arms"][name] for shown, n, name in places}}
    return result


def named(places: list[tuple[str, int, str]], number: int, name: str) -> str:
    return next(shown for shown, n, own in places if (n, own) == (number, name))


def common_levels(sources: Sequence[page_source.Source], places: list[tuple[str, int, str]]) -> dict[str, Any]:
    """`by` of the levels that all runs have."""
    found: dict[str, Any] = {}
    first, *others = [source.summary["by"] for source in sources]
    for dimension, levels in first.items():
        shared = [level for level in levels if all(level in other.get(dimension, {}) for other in others)]
        if shared:
            found[dimension] = {
                level: {shown: sources[n].summary["by"][dimension][level][name] for shown, n, name in places}
                for level in shared
            }
    return found


def common_models(sources: Sequence[page_source.Source], places: list[tuple[str, int, str]]) -> dict[str, Any]:
    all_models = [source.summary.get("models") or {} for source in sources]
    shared = [model for model in all_models[0] if all(model in models for models in all_models)]
    return {
        model: {
            "gold": all_models[0][model]["gold"],
            "arms": {shown: all_models[n][model]["arms"][name] for shown, n, name in places},
        }
        for model in shared
    }


def common_cross(sources: Sequence[page_source.Source], places: list[tuple[str, int, str]]) -> dict[str, Any] | None:
    crosses = [source.summary.get("cross") for source in sources]
    first = crosses[0]
    if not first or any(not other or other["cells"].keys() != first["cells"].keys() for other in crosses):
        return None
    same = all(
        other["cells"][row].keys() == cells.keys()
        for other in crosses
        if other
        for row, cells in first["cells"].items()
    )
    if not same:
        return None
    cells = {
        row: {
            column: {shown: crosses[n]["cells"][row][column][name] for shown, n, name in places}  # type: ignore[index]
            for column in columns
        }
        for row, columns in first["cells"].items()
    }
    return {**first, "cells": cells}


def view_of(sources: Sequence[page_source.Source]) -> View:
    """Runs put on common terms; the lead judge is the first that is no control. Raises: EvidenceError."""
    kinds = {(source.summary["slug"], page_tables.is_pairwise(source.summary)) for source in sources}
    if len(kinds) > 1:
        named_ = ", ".join(sorted(str(slug) for slug, _ in kinds))
        raise evidence.EvidenceError(
            f"one page shows runs of one evaluation, got runs of {named_} (run_eval.py --diff compares those)"
        )
    places = arm_places(sources)
    result = merged(sources, places)
    real = [shown for shown, _, _ in places if result["arms"][shown]["provenance"] != "control"]
    return View(result, list(sources), places, (real or [shown for shown, _, _ in places])[0])


def twins_of(view: View) -> list[tuple[int, int]]:
    """Places of the arms that are one judge in the first run and in another."""
    first = {name: place for place, (_, number, name) in enumerate(view.places) if number == 0}
    return [(first[name], place) for place, (_, number, name) in enumerate(view.places) if number and name in first]
