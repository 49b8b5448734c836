"""What people's labels say about a judge: agreement with intervals, bias, and where the two differ.

Scores are set against the judge's scores, pairs against its decisions; several people's labels of one item become
their mean score or their plurality. The summaries keep the published fields and add metrics as the runner names them.
Pure; every figure comes from `agreement.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import agreement
import labels
import summary as summaries
import tables

# === Constants ===

SCORE_MEASURES = ("exact", "within1", "qwk", "bias", "spearman", "mae")
PAIR_MEASURES = ("agreement", "kappa", "ac1", "recall_A", "recall_B", "recall_equal")
FILE_LABELS = "gold of the file"  # what labels are set against where no judge is, but the pairs have gold
BIG = 2  # score points: the published meaning of a big disagreement
FEW = 30  # labelled items below which the intervals are too wide to lean on
MAX_SHOWN = 20  # disagreements printed; the JSON has all
MEASURE_WORDS = {
    "exact": "same score",
    "within1": "within one",
    "qwk": "kappa, quadratic weights",
    "bias": "bias (judge minus people)",
    "spearman": "rank correlation",
    "mae": "mean distance",
    "agreement": "same label",
    "kappa": "kappa",
    "ac1": "AC1",
    "recall_A": "right where people say A",
    "recall_B": "right where people say B",
    "recall_equal": "right where people say equal",
}


class Setting(NamedTuple):
    """What a result is worked out with.

    lab: the fixed text of a labbook line. judge: the judge's name (or what else the labels are set against). model:
    whose answers they are. date: when. source: the labelled file. seed, n_resamples: of the bootstrap and the sample.
    """

    lab: str
    judge: str
    model: str
    date: str
    source: str
    seed: int
    n_resamples: int = 10_000


# === Who labelled what ===


def by_item(tasks: Iterable[labels.Task], given: Iterable[labels.Label]) -> dict[str, dict[str, labels.Label]]:
    """item -> annotator -> the label that stands, skips included; only items of the tasks."""
    found: dict[str, dict[str, labels.Label]] = {task.item: {} for task in tasks}
    for (who, item), label in labels.standing(given).items():
        if item in found:
            found[item][who] = label
    return found


def annotators(rows: dict[str, dict[str, labels.Label]]) -> dict[str, Any]:
    """Per person how many items they labelled and skipped, and their median seconds an item."""
    found: dict[str, Any] = {}
    for who in sorted({who for row in rows.values() for who in row}):
        own = [row[who] for row in rows.values() if who in row]
        seconds = sorted(label.seconds for label in own if label.seconds is not None and label.label is not None)
        found[who] = {
            "labelled": sum(label.label is not None for label in own),
            "skipped": sum(label.label is None for label in own),
            "median_seconds": agreement.quantile(seconds, 0.5) if seconds else None,
        }
    return found


def work_of(tasks: Sequence[labels.Task], given: Sequence[labels.Label], setting: Setting) -> dict[str, Any]:
    """What stands in every summary about the labels themselves."""
    rows = by_item(tasks, given)
    inside = [label for label in given if label.item in rows]
    return {
        "source": setting.source,
        "items": len(tasks),
        "annotators": annotators(rows),
        "revised": labels.revisions(inside),
        "comments": sum(bool(label.comment) for row in rows.values() for label in row.values()),
        "not_in_file": sorted({label.item for label in given} - set(rows)),
        "seed": setting.seed,
        "resamples": setting.n_resamples,
    }


def clusters_of(tasks: Iterable[labels.Task]) -> list[str] | None:
    """The question of each item; None when every item is its own, as independent items are."""
    own = [task.cluster for task in tasks]
    found = [f"item {place}" if cluster is None else f"question {cluster}" for place, cluster in enumerate(own)]
    return found if len(set(found)) < len(found) else None


def comment_of(row: dict[str, labels.Label]) -> str:
    """The comments on one item, with names when several people wrote one."""
    said = {who: label.comment for who, label in row.items() if label.comment}
    return next(iter(said.values())) if len(said) == 1 else " · ".join(f"{who}: {text}" for who, text in said.items())


# === Scores ===


def mean_score(row: dict[str, labels.Label]) -> float | int | None:
    """The people's score of one item: their mean; None when nobody gave one."""
    scores = [label.label for label in row.values() if isinstance(label.label, int)]
    if not scores:
        return None
    mean = sum(scores) / len(scores)
    return int(mean) if mean == int(mean) else mean


def all_judges(tasks: Sequence[labels.Task], setting: Setting) -> dict[str, list[Any]]:
    """Judge -> its label of each task: the one that leads, then the members of a panel."""
    found: dict[str, list[Any]] = {setting.judge: [task.judge for task in tasks]}
    for name in dict.fromkeys(name for task in tasks for name, _ in task.panel):
        found.setdefault(name, [dict(task.panel).get(name) for task in tasks])
    return found


def score_metrics(
    human: Sequence[Any], judges: dict[str, list[Any]], clusters: list[str] | None, setting: Setting
) -> dict[str, dict[str, Any]]:
    """Judge -> measure -> figure; shares of independent items have Wilson's interval."""
    keys = [(name, measure) for name in judges for measure in SCORE_MEASURES]
    estimates = agreement.grade_estimates(
        human, judges, keys, seed=setting.seed, name="human", clusters=clusters, n_resamples=setting.n_resamples
    )
    found: dict[str, dict[str, Any]] = {name: {} for name in judges}
    for (name, measure), estimate in estimates.items():
        shown = summaries.of_estimate(estimate)
        if measure in ("exact", "within1") and estimate.value is not None and clusters is None:
            shown = summaries.with_wilson(shown, round(estimate.value * estimate.n), estimate.n, 0.95)
        found[name][measure] = shown
    return found


def people_scores(rows: Iterable[dict[str, labels.Label]]) -> dict[str, Any] | None:
    """How far people agree with each other on scores; None when no item has two."""
    ratings = [[label.label for label in row.values() if label.label is not None] for row in rows]
    alpha = agreement.krippendorff_alpha(ratings, "ordinal")
    if not alpha.n_items:
        return None
    pairs = [(a, b) for row in ratings for place, a in enumerate(row) for b in row[place + 1 :]]
    same = sum(a == b for a, b in pairs)
    return {
        "items": alpha.n_items,
        "pairs": len(pairs),
        "exact": same / len(pairs),
        "within1": sum(abs(a - b) <= 1 for a, b in pairs if isinstance(a, int) and isinstance(b, int)) / len(pairs),
        "alpha": alpha.value,
        "reason": alpha.reason,
    }


def score_result(tasks: Sequence[labels.Task], given: Sequence[labels.Label], setting: Setting) -> dict[str, Any]:
    """The summary of scores: the published fields, then metrics, people, disagreements."""
    rows = by_item(tasks, given)
    asked = [task for task in tasks if mean_score(rows[task.item]) is not None]
    human = [mean_score(rows[task.item]) for task in asked]
    judges = all_judges(asked, setting)
    metrics = score_metrics(human, judges, clusters_of(asked), setting)
    both = [(x, task.judge) for x, task in zip(human, asked) if x is not None and isinstance(task.judge, int)]
    lead = agreement.grade_agreement([x for x, _ in both], [y for _, y in both])
    differing = score_disagreements(asked, rows)
    found = {
        "lab": setting.lab,
        "mode": "human-agreement",
        "judge_model": setting.judge,
        "model": setting.model,
        "scored": len(both),
        "exact_agreement": short(lead.exact),
        "within_one": short(lead.within1),
        "mean_human": short(agreement.mean_of([x for x, _ in both])),
        "mean_judge": short(agreement.mean_of([y for _, y in both])),
        "big_disagreements": [
            {"id": one["id"], "human": one["human"], "judge": one["judge"]}
            for one in differing
            if isinstance(one["judge"], int) and abs(one["human"] - one["judge"]) >= BIG
        ],
        "date": setting.date,
        "metrics": metrics[setting.judge],
        "judges": metrics if len(metrics) > 1 else {},
        "judge_invalid": sum(task.judge == "invalid" for task in asked),
        "judge_missing": sum(task.judge is None for task in asked),
        "cells": score_cells(both),
        "people": people_scores(rows.values()),
        **work_of(tasks, given, setting),
        "disagreements": differing,
    }
    return dict(summaries.rounded(found))


def short(value: float | None) -> float | None:
    """A figure at the two decimals of the published summary."""
    return None if value is None else round(value, 2)


def score_cells(both: Sequence[tuple[float, int]]) -> list[dict[str, Any]]:
    """How often each (people's score, judge's score) occurred."""
    counts = Counter(both)
    return [{"human": x, "judge": y, "n": n} for (x, y), n in sorted(counts.items())]


def score_disagreements(asked: Sequence[labels.Task], rows: dict[str, dict[str, labels.Label]]) -> list[dict[str, Any]]:
    """Every item on which people and judge differ, the furthest apart first; without a score of the judge last."""
    found = []
    for task in asked:
        human = mean_score(rows[task.item])
        if human is not None and task.judge is not None and human != task.judge:
            distance = abs(human - task.judge) if isinstance(task.judge, int) else -1.0
            row = rows[task.item]
            entry = {"id": task.item, "human": human, "judge": task.judge, "why": task.why, "comment": comment_of(row)}
            found.append((-distance, entry))
    return [entry for _, entry in sorted(found, key=lambda pair: (pair[0], pair[1]["id"]))]


# === Pairs ===


def votes_of(row: dict[str, labels.Label]) -> dict[str, str]:
    """annotator -> A | B | equal, skips left out."""
    return {who: str(label.label) for who, label in row.items() if label.label is not None}


def side_lean(rows: Iterable[dict[str, labels.Label]]) -> dict[str, Any]:
    """How often people picked the answer shown first and second, and the exact two-sided p that sides do not matter."""
    shown = Counter(
        labels.to_side(label.label, label.shown) for row in rows for label in row.values() if label.label is not None
    )
    first, second = shown["A"], shown["B"]
    return {
        "first": first,
        "second": second,
        "equal": shown["equal"],
        "p": agreement.sign_test(first, second) if first + second else None,
    }


def pair_metrics(
    gold: Sequence[str | None], judges: dict[str, list[Any]], clusters: list[str] | None, setting: Setting
) -> dict[str, dict[str, Any]]:
    """Judge -> measure -> figure of its decisions against the people's plurality."""
    work = agreement.Resampler(seed=setting.seed, name="human", n_resamples=setting.n_resamples)
    for place, label in enumerate(gold):
        decisions = {name: labelled[place] for name, labelled in judges.items()}
        work.add(label, decisions, cluster=None if clusters is None else clusters[place])
    estimates = work.estimates([(name, measure) for name in judges for measure in PAIR_MEASURES])
    found: dict[str, dict[str, Any]] = {name: {} for name in judges}
    for (name, measure), estimate in estimates.items():
        found[name][measure] = summaries.of_estimate(estimate)
    for name, labelled in judges.items():
        raw = agreement.raw_agreement(gold, labelled)
        if raw.n and clusters is None:
            found[name]["agreement"] = summaries.with_wilson(found[name]["agreement"], raw.k, raw.n, 0.95)
    return found


def pair_result(tasks: Sequence[labels.Task], given: Sequence[labels.Label], setting: Setting) -> dict[str, Any]:
    """The summary of pairs: what people said, how far they agree, and the judge against their plurality."""
    rows = by_item(tasks, given)
    asked = [task for task in tasks if votes_of(rows[task.item])]
    votes = [votes_of(rows[task.item]) for task in asked]
    gold = [agreement.gold_from_votes(row.values()) for row in votes]
    judges = all_judges(asked, setting)
    judge = judges[setting.judge]
    ceiling = agreement.human_ceiling(votes, judge)
    any_judge = any(label is not None for label in judge)
    metrics = pair_metrics(gold, judges, clusters_of(asked), setting) if any_judge else {}
    found = {
        "lab": setting.lab,
        "mode": "human-pairs",
        "judge_model": setting.judge if any_judge else None,
        "model": setting.model,
        "labelled": len(asked),
        "votes": sum(len(row) for row in votes),
        "labels": {label: gold.count(label) for label in labels.PAIR_LABELS},
        "no_consensus": gold.count(None),
        "date": setting.date,
        "metrics": metrics.get(setting.judge, {}),
        "judges": metrics if len(metrics) > 1 else {},
        "judge_invalid": judge.count("invalid"),
        "judge_missing": judge.count(None),
        "people": ceiling._asdict() if ceiling.pair_total else None,
        "sides": side_lean(rows[task.item] for task in asked),
        **work_of(tasks, given, setting),
        "disagreements": pair_disagreements(asked, gold, rows),
    }
    return dict(summaries.rounded(found))


def pair_disagreements(
    asked: Sequence[labels.Task], gold: Sequence[str | None], rows: dict[str, dict[str, labels.Label]]
) -> list[dict[str, Any]]:
    """Every pair on which the people's plurality and the judge differ, opposite winners first."""
    found = []
    for task, label in zip(asked, gold):
        if label is not None and task.judge is not None and label != task.judge:
            row = rows[task.item]
            entry = {"id": task.item, "human": label, "judge": task.judge, "why": task.why, "comment": comment_of(row)}
            found.append(({label, task.judge} != {"A", "B"}, entry))
    return [entry for _, entry in sorted(found, key=lambda pair: (pair[0], pair[1]["id"]))]


# === Shown ===

Section = dict[str, Any]  # {"title", "head": [text], "rows": [[text]], "notes": [text]}


def section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> Section:
    return {"title": title, "head": list(head), "rows": [list(row) for row in rows], "notes": list(notes)}


def agreement_section(found: dict[str, Any]) -> Section:
    """The judge against the people, with what limits the figures."""
    if not found["metrics"]:
        return section("Labels", ("label", "items"), [(label, str(n)) for label, n in found["labels"].items()])
    scores = found["mode"] == "human-agreement"
    judges = found.get("judges") or {str(found["judge_model"]): found["metrics"]}
    head = ("measure", *judges)
    names = [name for name in found["metrics"] if any(shown[name]["value"] is not None for shown in judges.values())]
    names += [name for name in found["metrics"] if name not in names and not name.startswith("recall")]
    rows = [(MEASURE_WORDS[name], *(tables.with_interval(shown[name]) for shown in judges.values())) for name in names]
    if scores:
        means = (found["mean_human"], found["mean_judge"])
        rows.append(
            ("mean of people, of judge", ", ".join(tables.number(mean, 2) for mean in means), *[""] * (len(judges) - 1))
        )
    n = found["scored"] if scores else sum(found["labels"].values())
    what = tables.plural("score" if scores else "pair", n)
    title = f"{found['judge_model']} against people, {n} {what}{'' if scores else ' with a clear majority'}"
    return section(title, head, rows, agreement_notes(found, n))


def whose(found: dict[str, Any]) -> str:
    """What the labels are set against, in words."""
    judge = found["judge_model"]
    return "the labels the file came with" if judge == FILE_LABELS else "the judge's labels"


def agreement_notes(found: dict[str, Any], n: int) -> list[str]:
    """What a reader has to know beside the figures."""
    notes = ["95% intervals."]
    if n < found["items"]:
        notes[0] += (
            f" {n} of {found['items']} items: a random sample, in which every item had the same chance, spread evenly "
            f"over categories and {whose(found)}."
        )
    if n < FEW:
        notes.append(f"Only {n} items: the intervals are wide; {FEW} or more say much more (--sample).")
    if found["judge_invalid"]:
        notes.append(
            f"{found['judge_invalid']} of the labelled items have no usable verdict; they count as not agreeing."
        )
    if found["judge_missing"]:
        notes.append(f"{found['judge_missing']} of the labelled items were not judged and are left out.")
    if found.get("no_consensus"):
        notes.append(f"{found['no_consensus']} pairs have no single most frequent label and are left out.")
    return notes


def people_section(found: dict[str, Any]) -> Section:
    """Who labelled, how far people agree, and whether a side was preferred."""
    rows = []
    for who, one in found["annotators"].items():
        pace = "-" if one["median_seconds"] is None else f"{one['median_seconds']:.0f} s"
        rows.append((who, str(one["labelled"]), str(one["skipped"]), pace))
    notes = []
    people = found["people"]
    if people and found["mode"] == "human-agreement":
        alpha = tables.number(people["alpha"], 3, people["reason"])
        notes.append(
            f"People with each other, {people['pairs']} pairs of scores: same {people['exact']:.3f}, "
            f"within one {people['within1']:.3f}, Krippendorff's alpha (ordinal) {alpha}."
        )
    elif people:
        kappa = "" if people["kappa"] is None else f", Cohen's kappa {tables.number(people['kappa'])}"
        notes.append(
            f"People with each other: same label in {people['pair_agree']} of {people['pair_total']} vote pairs "
            f"({people['pairwise']:.3f}), Krippendorff's alpha {tables.number(people['alpha'])}{kappa}."
        )
        if people["loo_n"] and people["judge_loo"] is not None:
            notes.append(
                f"Against the other people's majority ({people['loo_n']} votes): a person {people['human_loo']:.3f}, "
                f"{'the labels of the file' if found['judge_model'] == FILE_LABELS else 'the judge'} "
                f"{people['judge_loo']:.3f}."
            )
    sides = found.get("sides")
    if sides:
        notes.append(
            f"Sides: the first answer shown was picked {sides['first']} times, the second {sides['second']} "
            f"({tables.p_value(sides['p'])} if sides do not matter)."
        )
    if found["revised"]:
        notes.append(f"{found['revised']} labels were changed by their author; the last one counts.")
    if found["not_in_file"]:
        notes.append(f"{len(found['not_in_file'])} labelled items are not in the file and are left out.")
    return section("People", ("who", "labelled", "skipped", "median time"), rows, notes)


def sections(found: dict[str, Any]) -> list[Section]:
    return [agreement_section(found), people_section(found)]


def word(label: Any) -> str:
    """A label or score as it is shown."""
    return str(tables.number(label, 2)) if isinstance(label, float) else str(label)


def as_text(found: dict[str, Any]) -> list[str]:
    """The result for a terminal."""
    lines: list[str] = []
    for one in sections(found):
        lines += [one["title"], ""]
        lines += [f"  {line}" for line in tables.columns(one["head"], one["rows"])] if one["rows"] else []
        lines += ["", *one["notes"], ""] if one["notes"] else [""]
    differing = found["disagreements"]
    if differing:
        scores = found["mode"] == "human-agreement"
        lines += [f"Where people and {found['judge_model']} differ ({len(differing)})", ""]
        rows = [
            (
                one_line(one["id"]),
                word(one["human"]),
                word(one["judge"]),
                one_line(one["why"]),
                one_line(one["comment"]),
            )
            for one in differing[:MAX_SHOWN]
        ]
        lines += [
            f"  {line}"
            for line in tables.columns(
                ("item", "people", "judge" if scores else found["judge_model"], "reason", "comment"), rows
            )
        ]
        if len(differing) > MAX_SHOWN:
            lines.append(f"  … and {len(differing) - MAX_SHOWN} more (--format json lists all)")
    return lines


def one_line(text: str, length: int = 80) -> str:
    """A text on one line, cut for a table."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def as_page(found: dict[str, Any], session: labels.Session) -> dict[str, Any]:
    """The result for the labelling page; A and B as this person saw them, so that they fit the texts beside them."""
    places = {task.item: place for place, task in enumerate(session.tasks)}
    orders = {item: session.shown[place] for item, place in places.items()}
    shown = [
        {
            "item": one["id"],
            "human": word(labels.to_side(one["human"], orders.get(one["id"]))),
            "judge": word(labels.to_side(one["judge"], orders.get(one["id"]))),
            "against": FILE_LABELS if found["judge_model"] == FILE_LABELS else "judge",
            "why": one["why"],
            "comment": one["comment"],
            "place": places.get(one["id"]),
        }
        for one in found["disagreements"]
    ]
    against = f"the {FILE_LABELS if found['judge_model'] == FILE_LABELS else 'judge'}"
    return {"title": "Result", "against": against, "sections": sections(found), "disagreements": shown}
