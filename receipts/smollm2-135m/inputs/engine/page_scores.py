"""The page of a run whose items get numbers instead of labels: means with intervals, own tables, every reply.

There is no gold and no order of answers here, so nothing is said about either. Pure.
"""

from __future__ import annotations

from typing import Any

import page_intro
import page_items
import pictures
import scores
import tables
from page_parts import Markup, folded, listed, table, tag
from page_sections import choices, counted, kind_of, level_filter, metric_row
from page_view import View

# === Constants ===

SHOWS = (("all", "all items"), ("none", "no score"), ("differ", "judges differ"))
SORTS = (("file", "fixture order"), ("low", "lowest score first"), ("high", "highest score first"))


LONG_TABLE = 10  # rows; a longer one is folded away
# === First screen ===


def axis_of(values: list[float | None]) -> pictures.Axis:
    """Round limits around all values, zero among them."""
    known = [value for value in values if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    if low == high:
        high = low + 1.0
    ticks = pictures.nice_ticks(low, high)
    return pictures.Axis(ticks[0], ticks[-1], ticks, 2)


def metric_figure(view: View, metric: str) -> Markup:
    """One mean of every judge with its interval."""
    shown = {name: arm["metrics"][metric] for name, arm in view.result["arms"].items() if metric in arm["metrics"]}
    axis = axis_of([value for each in shown.values() for value in (each["value"], each["low"], each["high"])])
    rows = [metric_row(view.result, name, each, name == view.lead) for name, each in shown.items()]
    return pictures.figure(tables.NAMES.get(metric, metric), None, pictures.dot_plot(axis, rows))


def intro(view: View) -> Markup:
    """What was scored by whom, and the mean."""
    result = view.result
    parts = [result["slug"], f"{result['split']} split", counted(result["items"], "item", "items")]
    boxes = [page_intro.counts_box(view), *[page_intro.evidence_box(view, n) for n in range(len(view.sources))]]
    return tag(
        "section",
        tag("p", " \u00b7 ".join(parts), class_="eyebrow"),
        tag("h1", result["title"] or result["slug"]),
        tag("p", page_intro.who_judged(view), class_="lede"),
        *page_intro.alerts(view),
        metric_figure(view, "mean"),
        tag("div", *boxes, class_="facts"),
        tag("div", listed(result["warnings"]), class_="note") if result["warnings"] else None,
        class_="intro",
        id="overview",
    )


# === Sections ===


def parts_of(view: View) -> list[tuple[str, str, str, list[Markup | None]]]:
    """The evaluation's own tables, then every mean and level: (anchor, name in the bar, title, content)."""
    own = tables.own_sections(view.result) if len(view.sources) == 1 else []
    found: list[tuple[str, str, str, list[Markup | None]]] = []
    if own:
        shown: list[Markup | None] = [section_table(section) for section in own]
        found.append(("findings", "Findings", "What the evaluation says", shown))
    metrics = list(dict.fromkeys(name for arm in view.result["arms"].values() for name in arm["metrics"]))
    figures = tag("div", *[metric_figure(view, metric) for metric in metrics], class_="columns")
    found.append(("means", "Means", "Means over items", [figures, section_table(tables.score_section(view.result))]))
    levels = tables.score_levels(view.result)
    if levels:
        found.append(("levels", "Breakdown", "By level", [section_table(section) for section in levels]))
    return found


def section_table(section: tables.Section) -> Markup:
    title, head, body, notes = section
    made = table(head, body, title)
    if len(body) > LONG_TABLE:
        made = folded(f"{title} ({len(body)} rows)", made)
    return tag("div", made, tag("div", listed(notes), class_="note") if notes else None)


# === Items ===


def item_entries(view: View) -> tuple[list[dict[str, Any]], page_items.Texts]:
    """Items as the script reads them: text, own and other rest, every reply with the score its item got."""
    texts = page_items.Texts()
    values = [scores.values_of(source.rows) for source in view.sources]
    replies = [page_items.collect(source.rows, list(source.summary["arms"])) for source in view.sources]
    found = []
    for item in view.sources[0].items:
        key = item["item_id"]
        verdicts = []
        for _, number, name in view.places:
            value = values[number].get(name, {}).get("mean", {}).get(key)
            said = replies[number].get(key, {}).get(name, [])
            words = "\n\n".join(orders[order]["r"] for orders in said for order in ("o", "s"))
            verdicts.append({"l": None if value is None else round(value, 3), "w": texts.number(words)})
        entry = {
            "id": key,
            "c": item.get("category"),
            "q": texts.number(item["text"]),
            "a": texts.number(item["answer_a"]),
        }
        entry.update({"n": [len(item["answer_a"])], "e": page_items.more_fields(item), "j": verdicts})
        found.append({name: value for name, value in entry.items() if value is not None})
    return found, texts


def items_section(view: View, entries: list[dict[str, Any]]) -> Markup:
    names = [shown for shown, _, _ in view.places]
    controls = tag(
        "div",
        choices("f-arm", "Judge", [(str(place), name) for place, name in enumerate(names)]),
        choices("f-show", "Show", SHOWS),
        level_filter("f-category", "Category", {entry["c"] for entry in entries if entry.get("c")}),
        choices("f-sort", "Sort", SORTS),
        tag("label", "Text contains", tag("input", id="f-text", type="search", autocomplete="off", spellcheck="false")),
        tag("button", "Random disagreement", type="button", id="b-random"),
        class_="controls",
        role="search",
        aria_label="Filter the items",
    )
    body = [(entry["id"], *[str(found["l"]) for found in entry["j"]]) for entry in entries[: page_items.NOSCRIPT_ROWS]]
    plain = tag("noscript", table(("item", *names), body, "Score of every item"))
    return tag("section", tag("h2", "Every item"), page_items.frame(controls), plain, id="pairs")


def content(view: View) -> tuple[list[tuple[str, str]], list[Markup], Markup]:
    """(links of the bar, sections, data blocks) of the page."""
    parts = parts_of(view)
    entries, texts = item_entries(view)
    main = [intro(view)]
    main += [tag("section", tag("h2", title), *shown, id=anchor) for anchor, _, title, shown in parts]
    main.append(items_section(view, entries))
    arms = [{"name": name, "control": kind_of(view.result, name) == "control"} for name, _, _ in view.places]
    data = page_items.ItemData(entries, texts, 0, None).embedded(arms, 0, "scores")
    nav = [("overview", "Overview"), *[(anchor, name) for anchor, name, _, _ in parts], ("pairs", "Every item")]
    return nav, main, data
