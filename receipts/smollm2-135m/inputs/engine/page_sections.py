"""The sections of a run's page between its first screen and its items: one picture each, with the table behind it.

Every function takes the view and gives the parts of one section. Figures come from the summary, tables from
`tables.py`, drawings from `pictures.py`; nothing is computed here but what stands in what order. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import agreement
import commands
import page_tables
import pictures
import tables
from page_parts import Markup, folded, joined, listed, table, tag
from page_view import View, letter, twins_of
from pictures import Dot, Part, Row

# === Constants ===

LEAN_KEY = (
    ("first", "leans to the answer shown first"),
    ("none", "same answer in both orders"),
    ("second", "leans to the answer shown second"),
    ("unread", "no verdict in one order"),
)

# === Small words ===


def kind_of(result: dict[str, Any], name: str) -> str:
    return "control" if result["arms"][name]["provenance"] == "control" else "judge"


def legend(result: dict[str, Any], entries: list[tuple[str, str]]) -> Markup:
    """What the marks of a picture mean, without the kinds of judge that did not run."""
    absent = {"judge", "control"} - {kind_of(result, name) for name in result["arms"]}
    return pictures.key([entry for entry in entries if entry[0] not in absent])


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


def signed(value: float | None) -> str:
    """A figure with a true minus sign."""
    return "undefined" if value is None else tables.number(value).replace("-", "\u2212")


def interval_text(shown: dict[str, Any]) -> str:
    """'0.510 to 0.634', or that there is no interval; the reason stands in the table behind the picture."""
    if shown.get("low") is None:
        return "no interval" if shown["value"] is not None else ""
    return f"{signed(shown['low'])} to {signed(shown['high'])}"


def metric_title(name: str, metric: dict[str, Any]) -> str:
    return f"{name}: {tables.with_interval(metric)}"


def ceiling_of(human: dict[str, Any] | None) -> tuple[float | None, str]:
    """What people reach among themselves on the kappa scale, and its name."""
    if not human:
        return None, ""
    if human.get("kappa") is not None:
        return human["kappa"], "kappa of the two annotators"
    return human.get("alpha"), "Krippendorff's alpha of people among themselves"


def axis_for(metric: str, values: list[float | None]) -> pictures.Axis:
    return pictures.SHARES if metric == "agreement" else pictures.kappa_axis(values)


def metric_row(result: dict[str, Any], name: str, shown: dict[str, Any], lead: bool) -> Row:
    """One judge's metric with its interval."""
    mark = Dot(shown["value"], shown["low"], shown["high"], kind_of(result, name), metric_title(name, shown))
    figure = joined((tag("b", signed(shown["value"])), " ", interval_text(shown)))
    return Row(name, None, (mark,), figure, lead)


def choices(name: str, label: str, options: Sequence[tuple[str, str]]) -> Markup:
    made = [tag("option", words, value=value) for value, words in options]
    return tag("label", label, tag("select", *made, id=name))


def level_filter(name: str, label: str, levels: set[str]) -> Markup | None:
    """A filter over the levels of a field; none where it does not vary."""
    if len(levels) < 2:
        return None
    return choices(name, label, [("", "all"), *[(level, page_tables.plain(level)) for level in sorted(levels)]])


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
    entries = [("judge", "judge"), ("control", "control or rule that reads nothing")]
    entries += [("ceiling", "how far people agree with each other")] if result["human"] else []
    words = (
        "Dots with their intervals. Kappa is agreement beyond chance: 0 is what the label counts of judge and gold "
        "alone would give, 1 is perfect."
    )
    return [
        tag("p", words, class_="reading"),
        legend(result, entries),
        tag("div", *found, class_="pair"),
        tabled(tables.judges_section(result)),
        tabled(tables.beside_section(result), "Other decision rule, AC1, each gold class"),
        differences_figure(result),
    ]


def differences_figure(result: dict[str, Any]) -> Markup | None:
    """Every compared pair of judges: the difference in the headline metric with its interval, and the verdict."""
    if not result["comparisons"]:
        return None
    rows = []
    for entry in result["comparisons"]:
        shown = entry["differences"][entry["metric"]]
        name = f"{entry['a']} \u2212 {entry['b']}"
        kind = "control" if "control" in (kind_of(result, entry["a"]), kind_of(result, entry["b"])) else "judge"
        mark = Dot(shown["value"], shown["low"], shown["high"], kind, metric_title(name, shown))
        words = joined((tag("b", signed(shown["value"])), f" {interval_text(shown)}, {entry['verdict']}"))
        rows.append(Row(name, f"better {entry['better']}, worse {entry['worse']}", (mark,), words))
    axis = pictures.Axis(-1.0, 1.0, (-1.0, -0.5, 0.0, 0.5, 1.0))
    reading = (
        "Difference on the same pairs. A tie means that this data does not separate the two, never that they are equal."
    )
    title = f"Judges against each other: difference in {result['comparisons'][0]['metric']}"
    plot = pictures.dot_plot(axis, rows)
    return joined((pictures.figure(title, reading, plot), tabled(tables.comparison_section(result))))


def share_dot(name: str, value: float | None, bounds: Sequence[float | None], kind: str) -> Dot:
    """A mark on an axis of shares; people are a diamond."""
    low, high = bounds
    return Dot(value, low, high, kind, f"{name}: {share_text(value)}", diamond=kind == "people")


def baseline_rows(result: dict[str, Any], metric: str) -> list[Row]:
    """The two rules that read nothing."""
    rows = []
    constant, longer = result["baselines"]["majority_class"], result["baselines"]["longer_answer"]
    for name, found in ((f"always {constant['label']}", constant), ("the longer answer", longer)):
        value = found["kappa"] if metric == "kappa" else found["agreement"]
        mark = Dot(value, None, None, "control", f"{name}: {tables.number(value)}", hollow=True)
        rows.append(Row(f"rule: {name}", None, (mark,), tag("b", signed(value))))
    return rows


def people_part(view: View) -> list[Markup | None]:
    """Each judge and a person against the same votes."""
    human = view.result["human"]
    if not human:
        return []
    rows = []
    for name, found in human["arms"].items():
        judge = share_dot(name, found["judge_loo"], (None, None), kind_of(view.result, name))
        people = share_dot("people", found["human_loo"], (None, None), "people")
        value = joined((tag("b", share_text(found["judge_loo"])), f" / {share_text(found['human_loo'])}"))
        rows.append(Row(name, None, (judge, people), value, name == view.lead, stem=True))
    reading = (
        "One person is left out in turn; judge and person are both compared with the votes of the others. "
        f"{human['votes']:,} votes of {human['annotators']:,} people; two people agree on "
        f"{human['pair_agree']:,} of {human['pair_total']:,} pairs of votes ({share_text(human['pairwise'])})."
    )
    plot = pictures.dot_plot(pictures.SHARES, rows)
    key = legend(view.result, [("judge", "judge"), ("people", "a person"), ("control", "control")])
    return [
        pictures.figure("Judge and person against the same votes", reading, key, plot),
        tabled(tables.people_section(view.result)),
    ]


def level_part(view: View) -> list[Markup | None]:
    """Agreement by every dimension, and the shaded table of two dimensions."""
    found: list[Markup | None] = []
    for dimension, levels in view.result["by"].items():
        rows = level_rows(view, levels, (view.result.get("people_by") or {}).get(dimension, {}))
        title = f"Agreement of {view.lead} with gold, by {page_tables.plain(dimension)}"
        plot = pictures.figure(title, None, pictures.dot_plot(pictures.SHARES, rows))
        section = next((part for part in tables.level_sections({**view.result, "by": {dimension: levels}})), None)
        found.append(tag("div", plot, tabled(section, "The numbers, all judges")))
    return [
        tag("p", "Exploratory: many small groups, so some will look special by chance.", class_="reading"),
        level_key(view) if view.result.get("people_by") else None,
        tag("div", *found, class_="columns"),
        cross_figure(view),
    ]


def level_key(view: View) -> Markup:
    lead = (kind_of(view.result, view.lead), f"{view.lead} with gold")
    return pictures.key([lead, ("people", "two people with each other")])


def level_rows(view: View, levels: dict[str, Any], people: dict[str, Any]) -> list[Row]:
    """One row per level: the lead judge with interval, and how often two people agree where several voted."""
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
        each = (people.get(level) or {}).get("value")
        folk = [share_dot("two people", each, (None, None), "people")] if each is not None else []
        rows.append(Row(page_tables.plain(level), None, (mark, *folk), words))
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
        rows.append((page_tables.plain(row), made))
    title = f"{view.lead}: right of all, {page_tables.plain(cross['rows'])} by {page_tables.plain(cross['columns'])}"
    reading = "The stronger the colour, the more often right; the counts show how little stands behind some cells."
    others = [name for name in view.result["arms"] if name != view.lead]
    more = [tabled(page_tables.crossed_section(view.result, name), f"The same for {name}") for name in others]
    return pictures.figure(title, reading, pictures.heat(page_tables.plain(cross["rows"]), columns, rows, title), *more)


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
    reading = (
        "Each pair is shown twice, with the answers exchanged. "
        "A judge that follows the answers picks the same one both times."
    )
    shown = [pictures.figure("Per judge", None, pictures.bar_plot(bars))]
    by = list(result["by"])
    for dimension in by[:1]:
        levels = []
        for level, arms in result["by"][dimension].items():
            found = arms[view.lead]["position"]
            parts = lean_parts(found["first"], found["consistent"], found["second"], found["invalid"])
            levels.append((page_tables.plain(level), None, parts, f"{found['consistent']}/{found['n']}", False))
        title = f"{view.lead}, by {page_tables.plain(dimension)}"
        shown.append(pictures.figure(title, None, pictures.bar_plot(levels)))
    return [
        tag("p", reading, class_="reading"),
        pictures.key(LEAN_KEY),
        tag("div", *shown, class_="pair"),
        tabled(tables.bias_section(result)),
        *[
            tabled(page_tables.leaning_section(result, level), f"By {page_tables.plain(level)}, all judges")
            for level in by
        ],
    ]


def length_part(view: View) -> list[Markup | None]:
    """How often judge and gold prefer the longer answer."""
    result, rows = view.result, []
    for name, found in result["length"].items():
        judge = share_dot(name, found["judge_longer"], found["judge_wilson"], kind_of(result, name))
        gold = share_dot("gold", found["human_longer"], found["human_wilson"], "people")
        value = joined((tag("b", share_text(found["judge_longer"])), f" / {share_text(found['human_longer'])}"))
        rows.append(
            Row(name, f"{found['judge_n']:,} decisive picks", (judge, gold), value, name == view.lead, stem=True)
        )
    lead = result["length"][view.lead]
    reading = (
        "Share of decisive picks that go to the longer answer. Longer answers may be better, so what counts is the gap "
        "to gold, not the distance from one half."
    )
    excess = (
        f"On the pairs both decide, {view.lead} prefers the longer answer against gold "
        f"{counted(lead['b'], 'time', 'times')} and the shorter {counted(lead['c'], 'time', 'times')} "
        f"({tables.p_value(lead['mcnemar_p'])})."
    )
    key = legend(result, [("judge", "judge"), ("control", "control"), ("people", "gold, on the same pairs")])
    return [tag("p", reading, class_="reading"), key, pictures.dot_plot(pictures.SHARES, rows), tag("p", excess)]


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
    key = tabled(page_tables.confusion_section(view.result))
    return [tag("p", words, class_="reading"), tag("div", *made, class_="multiples"), key]


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
    reading = (
        "One ring per repeat: kappa against gold when that repeat alone is counted. On the right, how often two "
        "repeats decide a pair alike. Steady is not the same as right."
    )
    return [tag("p", reading, class_="reading"), pictures.dot_plot(axis, rows), tabled(tables.repeats_section(result))]


def models_part(view: View) -> list[Markup | None]:
    """Win rate of every answering model by gold and by the lead judge."""
    result, rows = view.result, []
    found = sorted(result["models"].items(), key=lambda entry: (-(entry[1]["gold"]["rate"] or 0), entry[0]))
    for model, standing in found:
        gold, judge = standing["gold"]["rate"], standing["arms"][view.lead]["rate"]
        dots = (
            share_dot(view.lead, judge, (None, None), kind_of(result, view.lead)),
            share_dot("gold", gold, (None, None), "people"),
        )
        value = joined((tag("b", share_text(judge)), f" / {share_text(gold)}"))
        rows.append(Row(model, None, dots, value, stem=True))
    key = pictures.key([(kind_of(result, view.lead), view.lead), ("people", "gold")])
    reading = "Win rate of each answering model on its pairs with gold, a tie as half a win, in the order gold gives."
    return [
        tag("p", reading, class_="reading"),
        key,
        pictures.dot_plot(pictures.SHARES, rows),
        tabled(page_tables.models_section(result)),
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


def changed_part(view: View, judges: list[Any]) -> list[Markup | None]:
    """Two runs or more: inputs, configuration and decisions that differ. judges: per item every arm's verdicts."""
    heads: list[object] = ["run", *[f"run {letter(n)}" for n in range(len(view.sources))]]
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
    return [tag("p", same), table(heads, body), *configuration_lines(view), *decision_lines(view, judges)]


def decision_lines(view: View, judges: list[Any]) -> list[Markup]:
    """For judges of one name: on how many of the pairs both runs hold they decide differently."""
    lines = []
    for first, second in twins_of(view):
        both = [(found[first]["l"], found[second]["l"]) for found in judges if found[first] and found[second]]
        changed = sum(before != after for before, after in both)
        name = view.places[first][2]
        lines.append(tag("p", f"{name}: {changed:,} of {len(both):,} pairs are decided differently."))
    paths = [source.path for source in view.sources[:2]]
    again = commands.command_anywhere(view.sources[0].summary.get("slug"), "--diff", *paths)
    command = tag("code", again, class_="command", tabindex="0")
    return [*lines, tag("p", "The pairs themselves, and how often repeats alone would differ:"), command]


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
