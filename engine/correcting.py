"""`judge.py correct`: a mean score or a win rate from few human and many judge labels.

Prediction-powered inference (PPI++) first, Rogan and Gladen's correction of a 0/1 outcome beside it, and always the
interval from the human labels alone, which is the honest baseline. All of them hold only if the labelled items are a
random sample of all items: nothing is printed without the statement that they are. Offline.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import agreement
import evidence
import judged
import labels
import messages
import results
import tables

# === Constants ===

VOICE = messages.Voice("judge")
POINTS = {"A": 1.0, "equal": 0.5, "B": 0.0, "invalid": 0.5}  # of a pair, for a; an invalid verdict gets a fixed value
SAMPLE_HINT = (
    "a corrected figure holds only if the labelled items were drawn at random from all of them (as `human --sample N` "
    "does): say so with --random-sample"
)


class NoSample(evidence.EvidenceError):
    """The statement that the labels are a random sample was not made."""

    hint = SAMPLE_HINT


# === Read ===


def human_points(found: list[labels.Label], kind: str) -> dict[str, float]:
    """item -> the people's mean: of their scores, or of points for a. Skipped items have none."""
    given: defaultdict[str, list[float]] = defaultdict(list)
    for (_, item), label in labels.standing(found).items():
        if label.label is not None and label.kind == kind:
            given[item].append(float(label.label) if kind == "score" else POINTS[str(label.label)])
    return {item: sum(values) / len(values) for item, values in given.items()}


def judge_points(whole: dict[str, Any], judge: str | None) -> dict[str, float | None]:
    """item -> the judge's score or points for a; None without a verdict."""
    compared = whole["judge"].get("mode") == "compare"
    points: dict[str, float | None] = {}
    for item in whole["pairs" if compared else "results"]:
        verdict = item if judge is None else (item.get("judges") or {}).get(judge)
        if compared:
            decision = (verdict or {}).get("decision")
            points[item["id"]] = None if decision is None else POINTS[decision]
        else:
            score = (item["judge"] if judge is None else verdict) or {}
            points[item["id"]] = float(score["score"]) if "score" in score else None
    return points


def check_judge(whole: dict[str, Any], judge: str | None, path: str) -> str:
    """The name of the judge whose verdicts are used. Raises: FileProblem for one that is not in the file."""
    known = whole["judge"].get("judges") or {}
    if judge is not None and judge != whole["judge"].get("judge_model") and judge not in known:
        names = ", ".join([str(whole["judge"].get("judge_model")), *known])
        raise results.FileProblem(f"{path}: holds no judge {judge!r}; it holds {names}")
    return judge or str(whole["judge"].get("judge_model"))


# === Correct ===


def corrected(
    human: dict[str, float], judge: dict[str, float | None], scale: tuple[float, float], pass_at: float
) -> dict[str, Any]:
    """Every estimate, as JSON. scale: lowest and highest value; pass_at: from where on a value counts as 1 of 0/1.

    An item without a verdict gets the middle of the scale, a fixed value that is valid for PPI, and is counted.
    """
    middle = (scale[0] + scale[1]) / 2
    filled = {item: middle if value is None else value for item, value in judge.items()}
    both = [item for item in filled if item in human]
    rest = [item for item in filled if item not in human]
    ppi = agreement.ppi_mean(
        [human[item] for item in both],
        [filled[item] for item in both],
        [filled[item] for item in rest],
        labelled_is_random_sample=True,
    )
    rogan = agreement.rogan_gladen(
        [int(human[item] >= pass_at) for item in both],
        [int(filled[item] >= pass_at) for item in both],
        [int(filled[item] >= pass_at) for item in rest],
        labelled_is_random_sample=True,
    )
    alone = dict(zip(("value", "low", "high"), ppi.human_only))
    return {
        "n_labelled": len(both),
        "n_unlabelled": len(rest),
        "no_verdict": sum(value is None for value in judge.values()),
        "judge_only": judged.rounded(agreement.mean_of(list(filled.values())), 4),
        "human_only": rounded_all({**alone, "n": len(both), "reason": None if both else "no_items"}),
        "ppi": rounded_all(
            {"value": ppi.theta, "low": ppi.low, "high": ppi.high, "lambda": ppi.lam, "reason": ppi.reason}
        ),
        "rogan_gladen": rounded_all(
            {"value": rogan.theta, "low": rogan.low, "high": rogan.high, "judge_rate": rogan.p}
            | {"q0": rogan.q0, "q1": rogan.q1, "reason": rogan.reason, "pass_at": pass_at}
        ),
    }


def rounded_all(found: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()}


# === Main ===


def main_correct(options: Any) -> int:
    return VOICE.guard((evidence.EvidenceError, labels.LabelError), correct, options)


def correct(options: Any) -> int:
    whole = results.read_judged(options.judged)
    results.check_labbook(options.labbook, options.judged, options.labels)
    compared = whole["judge"].get("mode") == "compare"
    name = check_judge(whole, options.judge_model, options.judged)
    panel = whole["judge"].get("judges") or {}
    points = judge_points(whole, name if name in panel else None)
    found = labels.read_labels(options.labels)
    human = human_points(found, "pair" if compared else "score")
    foreign = [item for item in human if item not in points]
    if foreign:
        VOICE.warn(
            [f"{options.labels}: labels of items that {options.judged} does not hold: {', '.join(foreign[:20])}"]
        )
    human = {item: value for item, value in human.items() if item in points}
    if not human:
        kind = "pairs" if compared else "scores"
        raise results.FileProblem(f"{options.labels}: holds no labels ({kind}) of items of {options.judged}")
    if not options.random_sample:
        raise NoSample(f"{options.labels}: nothing says that its items are a random sample")
    scale, pass_at = ((0.0, 1.0), 1.0) if compared else ((1.0, 5.0), float(options.pass_at))
    summary = {"lab": judged.LAB, "mode": "correct", "of": "win rate of a" if compared else "mean score"}
    summary = {**summary, "judge_model": name, **corrected(human, points, scale, pass_at)}
    if options.labbook:
        results.append_line(options.labbook, summary)
    messages.show((json.dumps(summary, indent=2) if options.format == "json" else table(summary)) + "\n")
    return 0


def table(summary: dict[str, Any]) -> str:
    """The estimates as text."""
    rogan = summary["rogan_gladen"]
    what = "share of wins of a" if summary["of"] != "mean score" else f"share of scores from {rogan['pass_at']:g} up"
    lam = tables.number(summary["ppi"]["lambda"], 2)
    rows = [
        ("people alone", tables.with_interval(summary["human_only"]) + f", n {summary['n_labelled']}"),
        ("judge alone", f"{tables.number(summary['judge_only'])} (uncorrected: a biased judge moves it)"),
        ("corrected (PPI++)", f"{tables.with_interval(summary['ppi'])}, weight of the judge {lam}"),
        (f"{what} (Rogan-Gladen)", tables.with_interval(rogan)),
    ]
    width = max(len(name) for name, _ in rows)
    n = summary["n_labelled"] + summary["n_unlabelled"]
    counts = f"{summary['n_labelled']} of {n} items labelled by people"
    middle = 3 if summary["of"] == "mean score" else 0.5
    silent = f", {summary['no_verdict']} without a verdict of the judge (taken as {middle})" * bool(
        summary["no_verdict"]
    )
    head = f"{summary['of']}, judge {summary['judge_model']}: {counts}{silent}"
    return "\n".join([head, *(f"  {name.ljust(width)}  {text}" for name, text in rows)])
