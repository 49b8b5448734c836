"""The result of an evaluation whose items get a number instead of a label, such as the overlap of a completion.

An item's value is the median of its repeats; a judge's is the mean over items, with the cluster bootstrap by question.
Counts, usage and cost are those of every run; there is no gold, no order of answers and no kappa here.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

import agreement
import summary
import verdicts

# === Values ===

Values = dict[str, dict[str, dict[str, float]]]  # arm -> metric -> item_id -> median over repeats


def values_of(rows: Iterable[dict[str, Any]]) -> Values:
    """The median of every score of every item; rows with a failed reply carry none."""
    repeats: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in rows:
        if "score" not in row:
            continue
        found = {"mean": row["score"], **{name: part["score"] for name, part in row["secondary"].items()}}
        for metric, value in found.items():
            repeats.setdefault(row["arm"], {}).setdefault(metric, {}).setdefault(row["item_id"], []).append(value)
    return {
        arm: {metric: {key: median(each) for key, each in by_item.items()} for metric, by_item in metrics.items()}
        for arm, metrics in repeats.items()
    }


def figures(
    values: dict[str, dict[str, float]], items: list[dict[str, Any]], name: str, options: dict[str, Any]
) -> dict[str, Any]:
    """metric -> mean with interval, over the given items that have a value. options: seed, resamples, level."""
    found = {}
    for metric, by_item in values.items():
        present = [item for item in items if item["item_id"] in by_item]
        estimate = agreement.mean_estimate(
            [by_item[item["item_id"]] for item in present],
            [summary.cluster_of(item) or item["item_id"] for item in present],
            seed=options["seed"],
            name=f"{name} {metric}",
            n_resamples=options["resamples"],
            level=options["level"],
        )
        found[metric] = summary.of_estimate(estimate)
    return found


# === The whole result ===


def by_dimension(
    values: Values, items: list[dict[str, Any]], config: dict[str, Any], asked: str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """dimension -> level -> arm -> figure of the main score."""
    main = {arm: {"mean": metrics["mean"]} for arm, metrics in values.items()}
    found: dict[str, Any] = {}
    for dimension in summary.dimensions_of(config, asked):
        levels: dict[str, list[dict[str, Any]]] = {}
        for item in items:
            for level in summary.levels_of(item, dimension):
                levels.setdefault(level, []).append(item)
        if len(levels) > 1:
            found[dimension] = {
                level: {arm: figures(of_arm, members, f"{arm} {level}", settings) for arm, of_arm in main.items()}
                for level, members in sorted(levels.items())
            }
    return found


def summarise(
    items: Any,
    rows: Iterable[dict[str, Any]],
    tables: dict[str, verdicts.ArmTable],
    manifest: dict[str, Any],
    config: dict[str, Any],
    options: Any,
) -> dict[str, Any]:
    """The result of a run of numbers, in the layout of summary.json."""
    values, rows_of = values_of(rows), list(items)
    settings = summary.bootstrap_settings(config, options)
    result: dict[str, Any] = {
        "slug": manifest["slug"],
        "title": manifest.get("title"),
        "status": manifest["status"],
        "split": manifest["split"],
        "items": len(rows_of),
        "questions": len({summary.cluster_of(item) or item["item_id"] for item in rows_of}),
        "repeats_run": manifest["repeats"],
        "headline": "mean",
        "seed": settings["seed"],
        "bootstrap": {"resamples": settings["resamples"], "level": settings["level"], "unit": "question"},
        "arms": {},
    }
    for name, table in tables.items():
        metrics = figures(values.get(name, {}), rows_of, name, settings)
        result["arms"][name] = {**summary.reply_figures(table, name, manifest), "metrics": metrics}
    result["by"] = by_dimension(values, rows_of, config, options.by, settings)
    result["usage"] = {name: summary.usage_of(table) for name, table in tables.items()}
    result["cost_usd"] = {
        name: {"value": table.cost, "replies_without": table.cost_unknown} for name, table in tables.items()
    }
    result["hashes"], result["config_hash"] = manifest["hashes"], manifest["config_hash"]
    result["warnings"] = []
    return dict(summary.rounded(result))
