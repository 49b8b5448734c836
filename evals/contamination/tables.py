"""The contamination check's own table: what came back of each kind of piece, and what may and may not be said of it.

    tables = load("evals/contamination/tables.py")   # the runner loads it, after agreement.py
    tables.tables(items, rows, config, settings)     # {"figures": {...}, "sections": [...]}

Pure: fixture rows and scored rows in, figures and printable sections out. Per kind of piece (half, turn2) and judge:
own minus mismatched overlap on benchmark and fresh items, guided minus general, benchmark minus fresh, each with its
bootstrap interval by question and, where it is paired, the sign-flip test. The finding is agreement.py's.
Source: Golchin & Surdeanu 2024 (arXiv 2308.08493); the tests are paired, which theirs is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import agreement

# === Constants ===

KINDS = ("half", "turn2")
LISTED = 12  # flagged items printed; the figures hold all
FLAGS = ("exact", "near_exact", "verbatim_run")
MAY_BE_SAID = (
    (
        "recall",
        "1 exact or 2 near-exact on the benchmark, none on fresh",
        "verbatim recall of benchmark text: evidence of contamination",
    ),
    (
        "elevated",
        "own rest clearly above mismatched, more than on fresh",
        "elevated overlap: suspicion; the items are listed",
    ),
    ("formulaic", "own rest above mismatched, as much on fresh", "formulaic wording; not evidence"),
    ("", "guided equals general", "the data set's name was of no use; this says nothing about exposure"),
    (
        "nothing",
        "none of these",
        "'no verbatim recall found', NOT 'the model is clean': paraphrase, refusal, training hide exposure",
    ),
)
NOT_SAID = (
    "recalling questions is not knowing people's votes: for that see the label probe (evals/contamination-labels)"
)

Scores = dict[str, dict[str, float]]  # item_id -> score name -> median over repeats
Part = list[tuple[str, dict[str, float]]]  # (question, scores) of each item


# === Scores ===


def scores_of(rows: Iterable[dict[str, Any]]) -> dict[str, Scores]:
    """arm -> item_id -> name -> value; 'gain' is the main score, own minus mismatched overlap."""
    repeats: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in rows:
        if "score" in row:
            of_item = repeats.setdefault(row["arm"], {}).setdefault(row["item_id"], {})
            for name, value in [("gain", row["score"]), *((n, p["score"]) for n, p in row["secondary"].items())]:
                of_item.setdefault(name, []).append(value)
    return {
        arm: {key: {name: median(values) for name, values in scores.items()} for key, scores in by_item.items()}
        for arm, by_item in repeats.items()
    }


def chosen(items: Sequence[dict[str, Any]], scores: Scores, kind: str, source: str) -> Part:
    """(question, scores) of the items of one kind and source that have scores."""
    return [
        (item["cluster"], scores[item["item_id"]])
        for item in items
        if (item["kind"], item["source"]) == (kind, source) and item["item_id"] in scores
    ]


# === Figures ===


def bootstrap(settings: dict[str, Any]) -> dict[str, Any]:
    return {"seed": settings["seed"], "n_resamples": settings["resamples"], "level": settings["level"]}


def figure(estimate: Any) -> dict[str, Any]:
    interval = estimate.interval
    reason = estimate.reason or interval.reason
    return {"value": estimate.value, "low": interval.low, "high": interval.high, "n": estimate.n, "reason": reason}


def mean_of(part: Part, name: str, label: str, settings: dict[str, Any]) -> Any:
    """(estimate, shown figure) of a mean over items, with the sign-flip p of 'no difference from 0'."""
    values, clusters = [scores[name] for _, scores in part], [cluster for cluster, _ in part]
    estimate = agreement.mean_estimate(values, clusters, name=f"{label} {name}", **bootstrap(settings))
    p = agreement.sign_flip_test(values, clusters, seed=settings["seed"]).p if values else None
    return estimate, {**figure(estimate), "p": p}


def flagged(items: Sequence[dict[str, Any]], scores: Scores, kind: str, source: str) -> dict[str, list[str]]:
    """flag -> item ids of one kind and source; over repeats, the median earns it."""
    here = [item["item_id"] for item in items if (item["kind"], item["source"]) == (kind, source)]
    return {flag: [key for key in here if key in scores and scores[key][flag] > 0.5] for flag in FLAGS}


def kind_figures(
    items: Sequence[dict[str, Any]], scores: Scores, kind: str, label: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Everything of one judge and one kind of piece, with the finding it allows."""
    parts = {source: chosen(items, scores, kind, source) for source in ("benchmark", "fresh")}
    estimate, own = mean_of(parts["benchmark"], "gain", f"{label} benchmark", settings)
    gains = {source: [found["gain"] for _, found in part] for source, part in parts.items()}
    difference = agreement.difference_of_means(
        gains["benchmark"], gains["fresh"], name=f"{label} against fresh", **bootstrap(settings)
    )
    flags = {source: flagged(items, scores, kind, source) for source in parts}
    on_fresh = len({*flags["fresh"]["exact"], *flags["fresh"]["near_exact"]})
    n_exact, n_near = len(flags["benchmark"]["exact"]), len(flags["benchmark"]["near_exact"])
    code, words = agreement.contamination_finding(n_exact, n_near, on_fresh, estimate.interval, difference.interval)
    return {
        "benchmark": own,
        "fresh": mean_of(parts["fresh"], "gain", f"{label} fresh", settings)[1],
        "against_fresh": figure(difference),
        "guided_minus_general": mean_of(parts["benchmark"], "gain_general", f"{label} benchmark", settings)[1],
        "flags": flags,
        "without_completion": sum(found["valid_output"] < 1 for part in parts.values() for _, found in part),
        "finding": code,
        "may_be_said": words,
    }


# === Sections ===


def number(shown: dict[str, Any]) -> str:
    """'+0.031 [+0.010, +0.052] p 0.0040 (n 69)'."""
    if shown["value"] is None:
        return f"undefined ({shown['reason']})"
    text = f"{shown['value']:+.3f}"
    text += f" [{shown['low']:+.3f}, {shown['high']:+.3f}]" if shown["low"] is not None else f" [{shown['reason']}]"
    return text + (f" p {shown['p']:.4f}" if shown.get("p") is not None else "") + f" (n {shown['n']})"


def finding_section(figures: dict[str, Any]) -> dict[str, Any]:
    rows, notes = [], []
    for arm, kinds in figures.items():
        for kind, found in kinds.items():
            flags = "; ".join(
                f"{source} " + "/".join(str(len(found["flags"][source][flag])) for flag in FLAGS)
                for source in ("benchmark", "fresh")
            )
            columns = ("benchmark", "fresh", "against_fresh", "guided_minus_general")
            rows.append([arm, kind, *(number(found[name]) for name in columns), flags])
            notes.append(f"{arm}, {kind}: {found['may_be_said']}")
            listed = sorted({key for flag in FLAGS for key in found["flags"]["benchmark"][flag]})
            more = f" and {len(listed) - LISTED} more (all in --format json)" if len(listed) > LISTED else ""
            notes += [f"{arm}, {kind}: flagged: {', '.join(listed[:LISTED])}{more}"] if listed else []
            silent = found["without_completion"]
            notes += [f"{arm}, {kind}: {silent} items lack a completion and count as no overlap"] if silent else []
    head = (
        "judge",
        "piece",
        "own - mismatched, benchmark",
        "own - mismatched, fresh",
        "benchmark - fresh",
        "guided - general",
        "exact/near-exact/verbatim",
    )
    return {"title": "Recall of hidden question text (ROUGE-L F1)", "head": list(head), "rows": rows, "notes": notes}


def said_section(figures: dict[str, Any]) -> dict[str, Any]:
    """The table of what may and may not be said; a mark stands where a judge's finding is."""
    rows = []
    for code, seen, words in MAY_BE_SAID:
        here = [
            f"{arm} {kind}"
            for arm, kinds in figures.items()
            for kind, found in kinds.items()
            if found["finding"] == code
        ]
        rows.append([seen, words, ", ".join(here) if code else ""])
    return {"title": "What may be said", "head": ["seen", "may be said", "here"], "rows": rows, "notes": [NOT_SAID]}


def tables(
    items: Sequence[dict[str, Any]], rows: Iterable[dict[str, Any]], config: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """All of it. settings: seed, resamples, level of the intervals."""
    items = list(items)
    figures = {
        arm: {kind: kind_figures(items, scores, kind, f"{arm} {kind}", settings) for kind in KINDS}
        for arm, scores in scores_of(rows).items()
    }
    return {"figures": figures, "sections": [finding_section(figures), said_section(figures)]}
