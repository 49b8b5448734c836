"""The page of a run: what was judged by whom, how far to believe it, where judge and people part, every pair to read.

`view_of` puts one or several runs on common terms, `page_of` makes the HTML of it. Every figure is read from
`summary.json`; the tables behind the pictures are those of `tables.py`. Equal evidence gives equal bytes: no clock, no
path of the reader. Pure, but for `write_report`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import agreement
import evidence
import page_items
import page_source
import pictures
import tables
from page_parts import Markup, document, folded, joined, listed, table, tag
from pictures import Dot, Part, Row

# === Constants ===

EXAMPLES = 10  # pairs of the lead judge shown in full on the first pages
NOSCRIPT_ROWS = 2000
PER_ARM = ("arms", "position", "length", "repeats", "usage", "cost_usd", "config_hash", "disagreements")
STATE_WORDS = {
    "ok": "read in both orders",
    "invalid": "with a reply that holds no verdict (counts as wrong)",
    "failed": "with a call that never answered",
    "missing": "not asked yet",
}
LEAN_KEY = (
    ("first", "leans to the answer shown first"),
    ("none", "same answer in both orders"),
    ("second", "leans to the answer shown second"),
    ("unread", "no verdict in one order"),
)


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
    for key in PER_ARM:
        result[key] = {shown: sources[n].summary[key][name] for shown, n, name in places}
    result["confidently_wrong"] = {
        shown: sources[n].summary.get("confidently_wrong", {}).get(name, []) for shown, n, name in places
    }
    if len(sources) == 1:
        return result
    result["comparisons"] = [
        {**entry, "a": named(places, n, entry["a"]), "b": named(places, n, entry["b"])}
        for n, source in enumerate(sources)
        for entry in source.summary["comparisons"]
    ]
    result["by"] = common_levels(sources, places)
    result["models"] = common_models(sources, places)
    result["cross"] = common_cross(sources, places)
    humans = [source.summary["human"] for source in sources]
    result["human"] = None
    if all(humans):
        result["human"] = {**humans[0], "arms": {shown: humans[n]["arms"][name] for shown, n, name in places}}
    result["warnings"] = [
        f"run {letter(n)}: {text}" for n, source in enumerate(sources) for text in source.summary["warnings"]
    ]
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
    """Runs put on common terms; the lead judge is the first that is no control."""
    places = arm_places(sources)
    result = merged(sources, places)
    real = [shown for shown, _, _ in places if result["arms"][shown]["provenance"] != "control"]
    return View(result, list(sources), places, (real or [shown for shown, _, _ in places])[0])


# === Small words ===


def kind_of(result: dict[str, Any], name: str) -> str:
    return "control" if result["arms"][name]["provenance"] == "control" else "judge"


def tabled(section: tables.Section | None, summary: str = "The numbers") -> Markup | None:
    """A section of tables.py, folded away below its picture."""
    if section is None:
        return None
    title, head, body, notes = section
    return folded(summary, table(head, body, title), listed(notes) if notes else None)


def counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def share_text(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1%}"


def metric_title(name: str, metric: dict[str, Any]) -> str:
    return f"{name}: {tables.with_interval(metric)}"


# === First screen ===


def eyebrow(result: dict[str, Any]) -> Markup:
    parts = [result["slug"], f"{result['split']} split", counted(result["items"], "pair", "pairs")]
    if result["questions"] != result["items"]:
        parts.append(counted(result["questions"], "question", "questions"))
    parts += ["both orders", counted(result["repeats_run"], "repeat", "repeats")]
    return tag("p", " \u00b7 ".join(parts), class_="eyebrow")


def who_judged(view: View) -> str:
    """Who judged, in one sentence."""
    arms = view.result["arms"]
    real = [name for name, arm in arms.items() if arm["provenance"] != "control"]
    controls = [name for name in arms if name not in real]
    origin = {"recorded": "recorded replies", "batch": "batch replies", "live": "live replies"}
    words = []
    for name in real:
        arm = arms[name]
        listed_ = "" if arm["listed"] else ", not on the evaluation's frozen list of judges"
        words.append(f"{name} ({arm['model'] or 'model not named'}; {origin.get(arm['provenance'], '?')}{listed_})")
    if not words:
        return f"Judged by {counted(len(controls), 'control', 'controls')} only: rules that read nothing, the floor every model has to beat."
    beside = f", beside {counted(len(controls), 'control', 'controls')} that need no model" if controls else ""
    return "Judged by " + "; ".join(words) + beside + "."


def ceiling_of(human: dict[str, Any] | None) -> tuple[float | None, str]:
    """What people reach among themselves on the kappa scale, and its name."""
    if not human:
        return None, ""
    if human.get("kappa") is not None:
        return human["kappa"], "kappa of the two annotators"
    return human.get("alpha"), "people among themselves (Krippendorff's alpha)"


def headline_plot(view: View) -> Markup:
    """All judges and the human ceiling on the axis of the headline metric."""
    result, metric = view.result, view.result["headline"]
    ceiling, ceiling_name = ceiling_of(result["human"]) if metric == "kappa" else (None, "")
    found = {name: arm["metrics"][metric] for name, arm in result["arms"].items()}
    axis = axis_for(metric, [value for shown in found.values() for value in (shown["value"], shown["low"])])
    order = [view.lead, *[name for name in found if name != view.lead]]
    rows = [metric_row(result, name, found[name], name == view.lead) for name in order]
    if ceiling is not None:
        title = f"{ceiling_name}: {tables.number(ceiling)}"
        mark = Dot(ceiling, None, None, "people", title, diamond=True)
        rows.append(Row("people", ceiling_name, (mark,), tag("b", tables.number(ceiling))))
    entries = [("judge", "judge, with interval"), ("control", "control: reads nothing")]
    used = {kind_of(result, name) for name in found}
    legend = [entry for entry in entries if entry[0] in used] + ([("people", "people")] if ceiling is not None else [])
    return joined((pictures.key(legend), pictures.dot_plot(axis, rows, ceiling)))


def axis_for(metric: str, values: list[float | None]) -> pictures.Axis:
    return pictures.SHARES if metric == "agreement" else pictures.kappa_axis(values)


def metric_row(result: dict[str, Any], name: str, shown: dict[str, Any], lead: bool) -> Row:
    """One judge's metric with its interval."""
    mark = Dot(shown["value"], shown["low"], shown["high"], kind_of(result, name), metric_title(name, shown))
    figure = joined((tag("b", tables.number(shown["value"], 3, shown["reason"])), " ", tables.interval(shown)))
    return Row(name, None, (mark,), figure, lead)


def hero(view: View) -> Markup:
    """The one number, and where it stands."""
    result, metric = view.result, view.result["headline"]
    shown, level = result["arms"][view.lead]["metrics"][metric], result["bootstrap"]["level"]
    value = "\u2013" if shown["value"] is None else tables.number(shown["value"]).replace("-", "\u2212")
    left = tag(
        "div",
        tag("div", f"{tables.NAMES[metric]} against gold", class_="soft small"),
        tag("div", value, class_="figure-big", data_figure=f"arms.{view.lead}.metrics.{metric}.value"),
        tag("div", view.lead, class_="hero-name"),
        tag("div", f"{level:.0%} interval {tables.interval(shown) or 'undefined'}", class_="hero-range"),
    )
    return tag("div", left, tag("div", headline_plot(view)), class_="hero")


def meaning(view: View) -> Markup:
    """What the headline says and what it does not, in sentences."""
    says = [tag("h2", "What it means"), *[tag("p", line) for line in means(view)]]
    denies = [tag("h2", "What it does not mean"), *[tag("p", line) for line in means_not(view)]]
    return tag("div", tag("div", *says), tag("div", *denies), class_="meaning")


def means(view: View) -> list[str]:
    result, name = view.result, view.lead
    right = result["arms"][name]["metrics"]["agreement"]
    floor = result["baselines"]["longer_answer"]
    lines = []
    if right["value"] is None:
        return [f"No pair has both a gold label and a decision of {name}, so nothing can be said."]
    lines.append(
        f"{name} decides as gold does on {right['k']:,} of {right['n']:,} pairs ({share_text(right['value'])}). "
        f"Picking the longer answer, without reading, is right on {floor['k']:,} of {floor['n']:,}."
    )
    people = (result["human"] or {}).get("arms", {}).get(name)
    if people and people["loo_n"]:
        lines.append(
            f"Measured alike, against the other people's votes: the judge matches {share_text(people['judge_loo'])}, "
            f"a person {share_text(people['human_loo'])} ({people['loo_n']:,} votes)."
        )
    lines.append(order_sentence(result["position"][name], name))
    return lines


def order_sentence(position: dict[str, Any], name: str) -> str:
    """What exchanging the two answers did."""
    changed = position["n"] - position["consistent"] - position["invalid"]
    text = f"Exchanging the two answers changes its verdict on {changed:,} of {position['n']:,} readings"
    lean = [(position["k_first"], "first"), (position["k_second"], "second")]
    if position["k_first"] == position["k_second"]:
        return text + "."
    count, side = max(lean)
    return f"{text}; {count:,} of these lean to the answer shown {side}."


def means_not(view: View) -> list[str]:
    result = view.result
    rule = "An answer wins only if both orders pick it; otherwise the pair counts as equal."
    if result["decision"] == "original":
        rule = "The original order alone decides; the other order is shown beside it."
    lines = [
        "It does not say that gold is right, nor how this judge does on other questions, other models or another prompt.",
        rule + " Replies without a verdict stay in every denominator and count as wrong.",
    ]
    found = result["detectable"]
    if found["agreement"] is not None:
        lines.append(
            f"With {found['n']:,} pairs, two judges whose agreement differs by less than "
            f"{share_text(found['agreement'])} cannot be told apart reliably."
        )
    return lines


def facts(view: View) -> Markup:
    """Counts of replies, and what was checked."""
    counts = view.result["arms"][view.lead]["counts"]
    used = [(state, counts[state]) for state in STATE_WORDS if counts[state] or state != "missing"]
    states = [tag("li", tag("b", f"{count:,}"), tag("span", state, class_="small")) for state, count in used]
    words = "; ".join(f"{state}: {STATE_WORDS[state]}" for state, _ in used)
    left = tag(
        "div",
        tag("h2", f"Readings of {view.lead} (pairs times repeats)"),
        tag("ul", *states, class_="states"),
        tag("p", words + ".", class_="soft small"),
        class_="fact",
    )
    return tag("div", left, *[evidence_box(view, n) for n in range(len(view.sources))], class_="facts")


def evidence_box(view: View, number: int) -> Markup:
    """What was compared with the manifest of one run, and the command that recomputes it."""
    source = view.sources[number]
    title = "Evidence" if len(view.sources) == 1 else f"Evidence of run {letter(number)}"
    classes = {page_source.FAILED: "no", page_source.OPEN: "open", page_source.PASSED: None}
    checks = [tag("li", check.text, class_=classes[check.state]) for check in source.checks]
    return tag(
        "div",
        tag("h2", title),
        tag("ul", *checks, class_="checks"),
        tag("code", source.again, class_="command", tabindex="0"),
        class_="fact",
    )


def alerts(view: View) -> list[Markup]:
    """What a reader must know before any figure."""
    found = []
    if any(source.summary["status"] != "complete" for source in view.sources):
        found.append(tag("p", "Incomplete run: the figures are of the replies that are there.", class_="alert wide"))
    if any(check.state == page_source.FAILED for source in view.sources for check in source.checks):
        found.append(tag("p", "Some evidence does not match its manifest; see below.", class_="alert wide"))
    return found


def intro(view: View) -> Markup:
    result = view.result
    title = result["title"] or result["slug"]
    return tag(
        "section",
        eyebrow(result),
        tag("h1", title),
        tag("p", who_judged(view), class_="lede"),
        *alerts(view),
        hero(view),
        meaning(view),
        facts(view),
        tag("div", listed(result["warnings"]), class_="note") if result["warnings"] else None,
        class_="intro",
        id="overview",
    )


# === Pictures ===


def judges_part(view: View) -> list[Markup | None]:
    """Kappa and agreement of all judges, baselines and people."""
    result = view.result
    names = list(result["arms"])
    found = []
    for metric, title in (("kappa", "Cohen's kappa"), ("agreement", "Raw agreement with gold")):
        shown = {name: result["arms"][name]["metrics"][metric] for name in names}
        values = [value for each in shown.values() for value in (each["value"], each["low"])]
        axis = axis_for(metric, values)
        rows = [metric_row(result, name, shown[name], name == view.lead) for name in names]
        rows += baseline_rows(result, metric)
        ceiling = ceiling_of(result["human"])[0] if metric == "kappa" else (result["human"] or {}).get("pairwise")
        found.append(pictures.figure(title, None, pictures.dot_plot(axis, rows, ceiling)))
    legend = [("judge", "judge"), ("control", "control or rule that reads nothing")]
    legend += [("ceiling", "how far people agree with each other")] if result["human"] else []
    words = "Dots with their intervals. Kappa is agreement beyond chance: 0 is what the judge's and gold's label counts alone would give, 1 is perfect."
    return [
        tag("p", words, class_="reading"),
        pictures.key(legend),
        tag("div", *found, class_="pair"),
        tabled(tables.judges_section(result)),
        tabled(tables.beside_section(result), "Other decision rule, AC1, each gold class"),
        tabled(tables.comparison_section(result), "Judges against each other"),
    ]


def baseline_rows(result: dict[str, Any], metric: str) -> list[Row]:
    """The two rules that read nothing."""
    rows = []
    constant, longer = result["baselines"]["majority_class"], result["baselines"]["longer_answer"]
    for name, found in ((f"always {constant['label']}", constant), ("the longer answer", longer)):
        value = found["kappa"] if metric == "kappa" else found["agreement"]
        mark = Dot(value, None, None, "control", f"{name}: {tables.number(value)}", hollow=True)
        rows.append(Row(name, "rule", (mark,), tag("b", tables.number(value))))
    return rows


def people_part(view: View) -> list[Markup | None]:
    """Each judge and a person against the same votes."""
    human = view.result["human"]
    if not human:
        return []
    rows = []
    for name, found in human["arms"].items():
        judge = Dot(
            found["judge_loo"], None, None, kind_of(view.result, name), f"{name}: {share_text(found['judge_loo'])}"
        )
        people = Dot(
            found["human_loo"], None, None, "people", f"people: {share_text(found['human_loo'])}", diamond=True
        )
        value = joined((tag("b", share_text(found["judge_loo"])), f" / {share_text(found['human_loo'])}"))
        rows.append(Row(name, None, (judge, people), value, name == view.lead, stem=True))
    reading = (
        "One person is left out in turn; judge and person are both compared with the votes of the others. "
        f"{human['votes']:,} votes of {human['annotators']:,} people; two people agree on "
        f"{human['pair_agree']:,} of {human['pair_total']:,} pairs of votes ({share_text(human['pairwise'])})."
    )
    plot = pictures.dot_plot(pictures.SHARES, rows)
    legend = pictures.key([("judge", "judge"), ("people", "a person"), ("control", "control")])
    return [
        pictures.figure("Judge and person against the same votes", reading, legend, plot),
        tabled(tables.people_section(view.result)),
    ]


def level_part(view: View) -> list[Markup | None]:
    """Agreement by every dimension, and the shaded table of two dimensions."""
    found: list[Markup | None] = []
    for dimension, levels in view.result["by"].items():
        rows = level_rows(view, levels)
        title = f"Agreement of {view.lead} with gold, by {tables.plain(dimension)}"
        plot = pictures.figure(title, None, pictures.dot_plot(pictures.SHARES, rows, None))
        section = next((part for part in tables.level_sections({**view.result, "by": {dimension: levels}})), None)
        found.append(tag("div", plot, tabled(section, "The numbers, all judges")))
    return [
        tag("p", "Exploratory: many small groups, so some will look special by chance.", class_="reading"),
        tag("div", *found, class_="pair"),
        cross_figure(view),
    ]


def level_rows(view: View, levels: dict[str, Any]) -> list[Row]:
    """One row per level: the lead judge with interval, the longer-answer control as a hollow mark where it ran."""
    rows = []
    for level, arms in levels.items():
        shown = arms[view.lead]["agreement"]
        value = shown.get("value")
        mark = Dot(
            value,
            shown.get("low"),
            shown.get("high"),
            kind_of(view.result, view.lead),
            f"{level}: {shown['k']}/{shown['n']}",
        )
        words = joined((tag("b", f"{shown['k']}/{shown['n']}"), "" if value is None else f" {value:.0%}"))
        rows.append(Row(tables.plain(level), None, (mark,), words))
    return rows


def cross_figure(view: View) -> Markup | None:
    """Shaded table of the lead judge's agreement in two dimensions, counts in every cell."""
    cross = view.result.get("cross")
    if not cross:
        return None
    columns = sorted({column for row in cross["cells"].values() for column in row})
    rows = []
    for row, cells in cross["cells"].items():
        made = []
        for column in columns:
            cell = cells.get(column, {}).get(view.lead)
            share = cell["k"] / cell["n"] if cell and cell["n"] else None
            made.append(
                pictures.heat_cell(
                    share, f"{share:.0%}" if share is not None else "", cell and f"{cell['k']}/{cell['n']}"
                )
            )
        rows.append((tables.plain(row), made))
    title = f"{view.lead}: right of all, {tables.plain(cross['rows'])} by {tables.plain(cross['columns'])}"
    reading = "Darker is more often right; the counts show how little stands behind some cells."
    others = [name for name in view.result["arms"] if name != view.lead]
    more = [tabled(tables.crossed_section(view.result, name), f"The same for {name}") for name in others]
    return pictures.figure(title, reading, pictures.heat(tables.plain(cross["rows"]), columns, rows, title), *more)


def lean_parts(first: int, consistent: int, second: int, unread: int) -> list[Part]:
    names = dict(LEAN_KEY)
    counts = (("first", first), ("none", consistent), ("second", second), ("unread", unread))
    return [Part(count, kind, names[kind]) for kind, count in counts]


def position_part(view: View) -> list[Markup | None]:
    """Bars of what the order did: per judge, and per category for the lead judge."""
    result = view.result
    bars: list[tuple[str, str | None, list[Part], str, bool]] = []
    for name, found in result["position"].items():
        parts = lean_parts(found["k_first"], found["consistent"], found["k_second"], found["invalid"])
        words = f"{share_text(found['pc'])} consistent"
        bars.append((name, None, parts, words, name == view.lead))
    reading = "Each pair is shown twice, with the answers exchanged. A judge that follows the answers picks the same one both times."
    shown = [pictures.figure("Per judge", None, pictures.bar_plot(bars))]
    dimension = next(iter(result["by"]), None)
    if dimension:
        levels = []
        for level, arms in result["by"][dimension].items():
            found = arms[view.lead]["position"]
            parts = lean_parts(found["first"], found["consistent"], found["second"], found["invalid"])
            levels.append((tables.plain(level), None, parts, f"{found['consistent']}/{found['n']}", False))
        shown.append(pictures.figure(f"{view.lead}, by {tables.plain(dimension)}", None, pictures.bar_plot(levels)))
    return [
        tag("p", reading, class_="reading"),
        pictures.key(LEAN_KEY),
        tag("div", *shown, class_="pair"),
        tabled(tables.bias_section(result)),
        tabled(tables.leaning_section(result, dimension)) if dimension else None,
    ]


def length_part(view: View) -> list[Markup | None]:
    """How often judge and gold prefer the longer answer."""
    result, rows = view.result, []
    for name, found in result["length"].items():
        judge = Dot(
            found["judge_longer"],
            *found["judge_wilson"],
            kind_of(result, name),
            f"{name}: {share_text(found['judge_longer'])}",
        )
        gold = Dot(
            found["human_longer"],
            *found["human_wilson"],
            "people",
            f"gold: {share_text(found['human_longer'])}",
            diamond=True,
        )
        value = joined((tag("b", share_text(found["judge_longer"])), f" / {share_text(found['human_longer'])}"))
        rows.append(
            Row(name, f"{found['judge_n']:,} decisive picks", (gold, judge), value, name == view.lead, stem=True)
        )
    lead = result["length"][view.lead]
    reading = "Share of decisive picks that go to the longer answer. Longer answers may be better, so what counts is the gap to gold, not the distance from one half."
    excess = (
        f"On the pairs both decide, {view.lead} prefers the longer answer against gold {lead['b']:,} times and the shorter "
        f"{lead['c']:,} times ({tables.p_value(lead['mcnemar_p'])})."
    )
    legend = pictures.key([("judge", "judge"), ("control", "control"), ("people", "gold, on the same fixture")])
    return [tag("p", reading, class_="reading"), legend, pictures.dot_plot(pictures.SHARES, rows), tag("p", excess)]


def confusion_part(view: View) -> list[Markup | None]:
    """Gold by decision, one shaded table per judge; the cells on the diagonal are right."""
    made = []
    for name, arm in view.result["arms"].items():
        labels = [
            label
            for label in agreement.LABELS
            if any(cells[label] for cells in arm["confusion"].values()) or label != "invalid"
        ]
        rows = []
        for gold, cells in arm["confusion"].items():
            total = sum(cells.values())
            row = [
                pictures.heat_cell(cells[label] / total if total else None, str(cells[label]), None, gold == label)
                for label in labels
            ]
            rows.append((f"gold {gold}", row))
        title = f"{name}: gold by decision"
        made.append(
            tag("div", tag("h3", name), pictures.heat("", [f"decides {label}" for label in labels], rows, title))
        )
    words = "Rows are gold, columns the judge's decision. Outlined cells are right; shading is the share of the row."
    return [tag("p", words, class_="reading"), tag("div", *made, class_="multiples")]


def repeats_part(view: View) -> list[Markup | None]:
    """Kappa of every repeat, and how often two repeats decide alike."""
    result, rows = view.result, []
    shown = {name: found for name, found in result["repeats"].items() if found["repeats"] > 1}
    values = [value for found in shown.values() for value in found["kappa"]["values"]]
    axis = pictures.kappa_axis(values)
    for name, found in shown.items():
        dots = [
            Dot(value, None, None, kind_of(result, name), f"repeat {number}: {tables.number(value)}", hollow=True)
            for number, value in enumerate(found["kappa"]["values"], 1)
        ]
        alike = joined((tag("b", share_text(found["stability"]["pairwise"])), " decide alike"))
        rows.append(Row(name, counted(found["repeats"], "repeat", "repeats"), dots, alike, name == view.lead))
    reading = "One ring per repeat: kappa against gold when that repeat alone is counted. On the right, how often two repeats decide a pair alike. Steady is not the same as right."
    return [tag("p", reading, class_="reading"), pictures.dot_plot(axis, rows), tabled(tables.repeats_section(result))]


def models_part(view: View) -> list[Markup | None]:
    """Win rate of every answering model by gold and by the lead judge."""
    result, rows = view.result, []
    found = sorted(result["models"].items(), key=lambda entry: (-(entry[1]["gold"]["rate"] or 0), entry[0]))
    for model, standing in found:
        gold, judge = standing["gold"]["rate"], standing["arms"][view.lead]["rate"]
        dots = (
            Dot(gold, None, None, "people", f"gold: {share_text(gold)}", diamond=True),
            Dot(judge, None, None, kind_of(result, view.lead), f"{view.lead}: {share_text(judge)}"),
        )
        value = joined((tag("b", share_text(judge)), f" / {share_text(gold)}"))
        rows.append(Row(model, None, dots, value, stem=True))
    legend = pictures.key([(kind_of(result, view.lead), view.lead), ("people", "gold")])
    reading = "Win rate of each answering model on its pairs with gold, a tie as half a win, in the order gold gives."
    return [
        tag("p", reading, class_="reading"),
        legend,
        pictures.dot_plot(pictures.SHARES, rows),
        tabled(tables.models_section(result)),
    ]


def cost_part(view: View) -> list[Markup | None]:
    """Kappa against cost, where the cost of two judges or more is known."""
    result = view.result
    priced = priced_arms(result)
    top = max(result["cost_usd"][name]["value"] for name in priced)
    ticks = pictures.nice_ticks(0.0, top)
    digits = 0 if ticks[1] >= 1 else 2 if ticks[1] >= 0.01 else 4
    x = pictures.Axis(0.0, ticks[-1], ticks, digits, None)
    y = pictures.kappa_axis([result["arms"][name]["metrics"]["kappa"]["value"] for name in priced])
    spots = [
        pictures.Spot(
            result["cost_usd"][name]["value"],
            result["arms"][name]["metrics"]["kappa"]["value"],
            7,
            kind_of(result, name),
            name,
            f"{name}: US $ {tables.cost_text(result['cost_usd'][name], result['arms'][name])}",
        )
        for name in priced
    ]
    words = "Kappa against cost in US dollars: " + "; ".join(
        f"{spot.title}, kappa {tables.number(spot.y)}" for spot in spots
    )
    picture = pictures.scatter(spots, x, y, ("cost of the run, US $", "kappa"), words)
    body = [usage_row(result, name) for name in result["arms"]]
    head = ("judge", "cost US $", "kappa", "input tokens", "output tokens", "median wait ms", "retries")
    return [picture, folded("The numbers", table(head, body, "Cost and tokens"))]


def priced_arms(result: dict[str, Any]) -> list[str]:
    """Judges whose cost and kappa are known."""
    return [
        name
        for name, cost in result["cost_usd"].items()
        if (cost["value"] or kind_of(result, name) == "control")
        and result["arms"][name]["metrics"]["kappa"]["value"] is not None
    ]


def usage_row(result: dict[str, Any], name: str) -> Sequence[object]:
    usage = result["usage"][name]
    unknown = usage["replies_without"]
    tokens = [
        f"{usage['tokens'][kind]:,}" + (f" (unknown for {unknown[kind]:,} replies)" if unknown.get(kind) else "")
        for kind in ("input", "output")
    ]
    wait = usage["latency_ms"]["median"] if usage["latency_ms"] else "-"
    kappa = tables.number(result["arms"][name]["metrics"]["kappa"]["value"])
    return (
        name,
        tables.cost_text(result["cost_usd"][name], result["arms"][name]),
        kappa,
        *tokens,
        wait,
        usage["retries"],
    )


# === What changed between runs ===


def changed_part(view: View) -> list[Markup | None]:
    """Two runs or more: inputs and configuration that differ."""
    heads = ["", *[f"run {letter(n)}" for n in range(len(view.sources))]]
    body: list[list[object]] = [["folder", *[source.path for source in view.sources]]]
    body.append(["started", *[str(source.manifest.get("started_at")) for source in view.sources]])
    body.append(["judges", *[", ".join(source.summary["arms"]) for source in view.sources]])
    body.append(["pairs", *[str(source.summary["items"]) for source in view.sources]])
    body.append(["repeats", *[str(source.summary["repeats_run"]) for source in view.sources]])
    names = sorted({name for source in view.sources for name in source.manifest["hashes"]})
    differ = [name for name in names if len({source.manifest["hashes"].get(name) for source in view.sources}) > 1]
    for name in differ:
        body.append([name, *[(source.manifest["hashes"].get(name) or "absent")[:12] for source in view.sources]])
    same = (
        "All inputs are equal byte for byte."
        if not differ
        else f"{counted(len(differ), 'input differs', 'inputs differ')}; hashes below."
    )
    return [tag("p", same), table(heads, body), *configuration_lines(view)]


def configuration_lines(view: View) -> list[Markup]:
    """For judges of one name: whether the runs asked the same."""
    lines = []
    names = dict.fromkeys(name for _, _, name in view.places)
    for name in names:
        hashes = [source.summary["config_hash"][name] for source in view.sources if name in source.summary["arms"]]
        if len(hashes) > 1:
            same = len(set(hashes)) == 1
            words = "asked exactly the same: a reproduction" if same else "asked something different"
            lines.append(
                tag("p", f"{name}: the runs {words} (configuration hash {' / '.join(each[:12] for each in hashes)}).")
            )
    return lines


# === Items ===


def item_lists(view: View) -> tuple[list[dict[str, Any]], list[list[dict[str, Any] | None]]]:
    """All items of all runs, and per item every judge's verdicts; equal items are one, others of one id stand apart."""
    rules = [source.summary["decision"] for source in view.sources]
    collected = [page_items.collect(source.rows, list(source.summary["arms"])) for source in view.sources]
    items: dict[str, dict[str, Any]] = {}
    owners: dict[str, dict[int, str]] = {}
    for number, source in enumerate(view.sources):
        for item in source.items:
            key = item["item_id"]
            if key in items and any(items[key][part] != item[part] for part in ("text", "answer_a", "answer_b")):
                key = f"{key} (run {letter(number)})"
            items.setdefault(key, {**item, "item_id": key})
            owners.setdefault(key, {})[number] = item["item_id"]
    judges = []
    for key, item in items.items():
        found: list[dict[str, Any] | None] = []
        for _, number, name in view.places:
            replies = collected[number].get(owners[key].get(number, ""), {}).get(name)
            found.append(page_items.judged(item, replies, rules[number]) if replies else None)
        judges.append(found)
    return list(items.values()), judges


def choices(name: str, label: str, options: Sequence[tuple[str, str]]) -> Markup:
    made = [tag("option", words, value=value) for value, words in options]
    return tag("label", label, tag("select", *made, id=name))


def level_filter(name: str, label: str, levels: set[str]) -> Markup | None:
    """A filter over the levels of a field; none where it does not vary."""
    if len(levels) < 2:
        return None
    return choices(name, label, [("", "all"), *[(level, tables.plain(level)) for level in sorted(levels)]])


def item_controls(view: View, items: list[dict[str, Any]]) -> Markup:
    arms = [(str(place), shown) for place, (shown, _, _) in enumerate(view.places)]
    arms.sort(key=lambda entry: entry[1] != view.lead)
    shows = [("all", "all pairs"), *page_items.FLAGS.items(), ("right", "decision is gold")]
    shows += [("differ", "judges decide differently")] if len(arms) > 1 else []
    shows += [("nogold", "no gold label")]
    sorts = [
        ("file", "fixture order"),
        ("flags", "most flags first"),
        ("people", "people most united"),
        ("length", "length difference"),
    ]
    models = {model for item in items for model in (item.get("model_a"), item.get("model_b")) if model}
    search = tag("input", id="f-text", type="search", autocomplete="off", spellcheck="false")
    return tag(
        "div",
        choices("f-arm", "Judge", arms),
        choices("f-show", "Show", shows),
        level_filter("f-category", "Category", {item["category"] for item in items if item.get("category")}),
        level_filter("f-model", "Answered by", models),
        level_filter("f-fault", "Planted fault", {item["fault"] for item in items if item.get("fault")}),
        choices("f-sort", "Sort", sorts),
        tag("label", "Text contains", search),
        tag("button", "Random disagreement", type="button", id="b-random"),
        class_="controls",
        role="search",
        aria_label="Filter the pairs",
    )


def plain_items(view: View, items: list[dict[str, Any]], judges: list[list[dict[str, Any] | None]]) -> Markup:
    """The decisions on every pair as a table, for readers without script."""
    head = ("pair", "category", "gold", *[shown for shown, _, _ in view.places])
    body = [
        (
            item["item_id"],
            item.get("category") or "",
            item.get("gold") or "none",
            *[(found or {}).get("l") or "-" for found in verdicts],
        )
        for item, verdicts in list(zip(items, judges))[:NOSCRIPT_ROWS]
    ]
    cut = f" The first {NOSCRIPT_ROWS:,} are listed." if len(items) > NOSCRIPT_ROWS else ""
    words = "Reading the texts, filtering and sorting need JavaScript; these are the decisions on every pair." + cut
    return tag("noscript", tag("p", words), table(head, body, "Decisions"))


def items_part(view: View, data: page_items.ItemData, items: list[dict[str, Any]], judges: list[Any]) -> Markup:
    """The frame of the item view; the script fills it."""
    notes = []
    if data.cut:
        notes.append(
            f"To keep the page small, judges' words are cut to {data.cut:,} characters; the run holds them whole."
        )
    if data.left_out:
        notes.append(
            f"{data.left_out:,} pairs are left out of this list for size; every figure above counts all pairs."
        )
    keys = tag(
        "p",
        tag("kbd", "j"),
        " / ",
        tag("kbd", "k"),
        " next and previous, ",
        tag("kbd", "r"),
        " a random disagreement, ",
        tag("kbd", "/"),
        " search",
        class_="soft small screen",
    )
    desk = tag(
        "div",
        tag("ul", id="item-list", class_="list", aria_label="Pairs"),
        tag("article", id="item", class_="item", aria_label="The chosen pair"),
        class_="desk",
        id="desk",
    )
    script = tag(
        "div",
        item_controls(view, items),
        tag("p", "", id="item-count", role="status", class_="small soft"),
        desk,
        keys,
        class_="needs-script hide",
    )
    return tag(
        "section",
        tag("h2", "Every pair"),
        *[tag("p", note, class_="reading") for note in notes],
        script,
        plain_items(view, items, judges),
        id="pairs",
    )


def examples_part(view: View, items: list[dict[str, Any]], judges: list[Any]) -> list[Markup | None]:
    """Up to ten pairs where every reply of the lead judge picks the worse answer, to read at once."""
    ids = view.result["confidently_wrong"][view.lead]
    if not ids:
        return [tag("p", f"There is no pair on which every reply of {view.lead} picks the answer gold calls worse.")]
    place = [shown for shown, _, _ in view.places].index(view.lead)
    by_id = {item["item_id"]: (item, found[place]) for item, found in zip(items, judges)}
    ranked = sorted((by_id[item_id] for item_id in ids if item_id in by_id), key=lambda entry: unity(entry[0]), reverse=True)
    reading = (
        f"On {counted(len(ids), 'pair', 'pairs')} every reply of {view.lead}, in both orders and all repeats, picks the answer that "
        f"gold calls worse. Shown here: {min(EXAMPLES, len(ranked))}, those first on which people are most united."
    )
    made = [example(item, judge, place_ == 0) for place_, (item, judge) in enumerate(ranked[:EXAMPLES])]
    return [tag("p", reading, class_="reading"), tag("div", *made, class_="examples")]


def unity(item: dict[str, Any]) -> tuple[float, int]:
    """How united people are on an item's gold: share and number of votes for it; used for order only."""
    votes = [vote["label"] for vote in item.get("votes", [])]
    return (votes.count(item["gold"]) / len(votes), len(votes)) if votes else (0.0, 0)


def example(item: dict[str, Any], judge: Any, first: bool) -> Markup:
    """One pair in full, with the judge's words in the original order."""
    votes = [vote["label"] for vote in item.get("votes", [])]
    folk = (
        ""
        if not votes
        else f"; votes {', '.join(f'{label} {votes.count(label)}' for label in agreement.GOLD_LABELS if label in votes)}"
    )
    kind = ", ".join(tables.plain(str(item[key])) for key in ("category", "fault") if item.get(key))
    summary = joined(
        (
            tag("b", item["item_id"]),
            f" \u2014 {kind + ': ' if kind else ''}gold {item['gold']}{folk}; judge {judge['l']}",
        )
    )
    boxes = [answer_box(item, side, judge) for side in ("A", "B")]
    said = judge["r"][0]["o"]["r"]
    return tag(
        "details",
        tag("summary", summary),
        tag("p", tag("strong", "Why gold: "), item["why"], class_="wide") if item.get("why") else None,
        tag(
            "div",
            tag("h4", "Question"),
            tag("div", item["text"], class_="text", dir="auto", tabindex="0", role="group", aria_label="question"),
            class_="asked",
        ),
        tag("div", *boxes, class_="answers"),
        tag(
            "div",
            tag("h4", "What the judge said, answer A shown first"),
            tag("p", said or "(no reason given)", class_="wide said", dir="auto"),
            class_="asked",
        ),
        open_=first,
    )


def answer_box(item: dict[str, Any], side: str, judge: Any) -> Markup:
    text, model = item[f"answer_{side.lower()}"], item.get(f"model_{side.lower()}")
    marks = [tag("span", "gold", class_="badge folk")] if item["gold"] == side else []
    marks += [tag("span", "judge's pick", class_="badge pick")] if judge["l"] == side else []
    head = tag("header", tag("strong", f"Answer {side}" + (f" \u2014 {model}" if model else "")), *marks)
    body = tag(
        "div", text or "(empty)", class_="text", dir="auto", tabindex="0", role="group", aria_label=f"answer {side}"
    )
    return tag("div", head, body, class_="box")


# === Page ===


def foundations(view: View) -> list[Markup | None]:
    """Every hash and setting that the figures rest on."""
    source = view.sources[0]
    hashes = [(name, digest) for name, digest in source.manifest["hashes"].items()]
    settings = [(name, view.result["config_hash"][name]) for name in view.result["config_hash"]]
    bootstrap = view.result["bootstrap"]
    words = (
        f"Intervals: {bootstrap['level']:.0%}, {bootstrap['resamples']:,} bootstrap resamples of {bootstrap['unit']}s, seed "
        f"{view.result['seed']}; raw agreement of pairs that share no question has Wilson's interval. "
        f"Run started {source.manifest.get('started_at')}, Python {source.manifest.get('python')}, tool {source.manifest.get('tool_version')}."
    )
    return [
        tag("p", words),
        folded("Configuration hash of each judge", table(("judge", "configuration hash"), settings)),
        folded("sha256 of every input", table(("file", "sha256"), hashes)),
    ]


def parts_of(
    view: View, items: list[dict[str, Any]], judges: list[Any]
) -> list[tuple[str, str, str, list[Markup | None]]]:
    """The sections between first screen and items: (anchor, name in the bar, title, content)."""
    result = view.result
    found = [("judges", "Judges", "Judges against gold", judges_part(view))]
    if len(view.sources) > 1:
        found.append(("changed", "What changed", "What changed between the runs", changed_part(view)))
    if result["human"]:
        found.append(("people", "People", "People as the measure", people_part(view)))
    found.append(("wrong", "Confidently wrong", "Where it is confidently wrong", examples_part(view, items, judges)))
    if result["by"]:
        found.append(("levels", "Breakdown", "Where it is right and wrong", level_part(view)))
    found.append(("position", "Order", "Does the order of the answers decide?", position_part(view)))
    found.append(("length", "Length", "Does length decide?", length_part(view)))
    found.append(("confusion", "Confusion", "Which decisions are confused", confusion_part(view)))
    if any(each["repeats"] > 1 for each in result["repeats"].values()):
        found.append(("repeats", "Repeats", "Does it say the same twice?", repeats_part(view)))
    if result.get("models"):
        found.append(("models", "Models", "Would it rank the models as gold does?", models_part(view)))
    if len([name for name in priced_arms(result) if kind_of(result, name) == "judge"]) > 1:
        found.append(("cost", "Cost", "What does agreement cost?", cost_part(view)))
    return found


def page_of(sources: Sequence[page_source.Source]) -> bytes:
    """The whole page of one or several runs."""
    view = view_of(sources)
    items, judges = item_lists(view)
    data = page_items.build(items, judges)
    parts = parts_of(view, items, judges)
    main = [intro(view)]
    main += [tag("section", tag("h2", title), *content, id=anchor) for anchor, _, title, content in parts]
    main.append(items_part(view, data, items, judges))
    main.append(tag("section", tag("h2", "What the figures rest on"), *foundations(view), id="evidence"))
    nav = [
        ("overview", "Overview"),
        *[(anchor, name) for anchor, name, _, _ in parts],
        ("pairs", "Every pair"),
        ("evidence", "Evidence"),
    ]
    arms = [{"name": shown, "control": kind_of(view.result, shown) == "control"} for shown, _, _ in view.places]
    lead = [shown for shown, _, _ in view.places].index(view.lead)
    title = f"{view.lead} on {view.result['slug']} \u2014 judge report"
    foot = "One file, nothing loaded, nothing sent. Every figure is in summary.json of the run."
    return document(title, nav, main, foot, data.embedded(arms, lead))


def write_report(folder: str) -> str:
    """Write report.html into a run that has been scored; returns its path. Raises: EvidenceError, OSError."""
    path = os.path.join(folder, "report.html")
    evidence.write_atomic(path, page_of([page_source.read_source(folder)]))
    return path
