"""The page of a run: what was judged by whom, how far to believe it, where judge and people part, every pair to read.

`view_of` puts one or several runs on common terms, `page_of` makes the HTML of it. Every figure is read from
`summary.json`; the tables behind the pictures are those of `tables.py`. Equal evidence gives equal bytes: no clock, no
path of the reader. Pure, but for `write_report`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import agreement
import evidence
import page_intro
import page_items
import page_judged
import page_scores
import page_sections as sections
import page_source
import page_tables
import tables
from page_parts import Markup, document, folded, joined, table, tag
from page_sections import choices, counted, kind_of, level_filter
from page_view import View, letter, twins_of, view_of

# === Constants ===

EXAMPLES = 10  # pairs of the lead judge shown in full on the first pages

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


def item_controls(view: View, items: list[dict[str, Any]]) -> Markup:
    arms = [(str(place), shown) for place, (shown, _, _) in enumerate(view.places)]
    arms.sort(key=lambda entry: entry[1] != view.lead)
    shows = [("all", "all pairs"), *page_items.FLAGS.items(), ("right", "decision is gold")]
    shows += [("differ", "judges decide differently")] if len(arms) > 1 else []
    shows += [("changed", "decision changed between the runs")] if twins_of(view) else []
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
        for item, verdicts in list(zip(items, judges))[: page_items.NOSCRIPT_ROWS]
    ]
    cut = f" The first {page_items.NOSCRIPT_ROWS:,} are listed." if len(items) > page_items.NOSCRIPT_ROWS else ""
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
    return tag(
        "section",
        tag("h2", "Every pair"),
        *[tag("p", note, class_="reading") for note in notes],
        page_items.frame(item_controls(view, items)),
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
    known = [by_id[item_id] for item_id in ids if item_id in by_id]
    ranked = sorted(known, key=lambda entry: unity(entry[0]), reverse=True)
    united = ", those first on which people are most united" if any(item.get("votes") for item, _ in known) else ""
    reading = (
        f"On {counted(len(ids), 'pair', 'pairs')} every reply of {view.lead}, in both orders and all repeats, picks "
        f"the answer that gold calls worse. Shown here: {min(EXAMPLES, len(ranked))}{united}."
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
    tally = ", ".join(f"{label} {votes.count(label)}" for label in agreement.GOLD_LABELS if label in votes)
    folk = f"; votes {tally}" if votes else ""
    kind = ", ".join(page_tables.plain(str(item[key])) for key in ("category", "fault") if item.get(key))
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
            tag("h3", "Question"),
            tag("div", item["text"], class_="text", dir="auto", tabindex="0", role="group", aria_label="question"),
            class_="asked",
        ),
        tag("div", *boxes, class_="answers"),
        tag(
            "div",
            tag("h3", "What the judge said, answer A shown first"),
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
        f"Intervals: {bootstrap['level']:.0%}, {bootstrap['resamples']:,} bootstrap resamples of {bootstrap['unit']}s, "
        f"seed {view.result['seed']}; raw agreement of pairs that share no question has Wilson's interval. "
        f"Run started {source.manifest.get('started_at')}, Python {source.manifest.get('python')}, "
        f"tool {source.manifest.get('tool_version')}."
    )
    return [
        tag("p", words),
        page_intro.glossary() if page_tables.is_pairwise(view.result) else None,
        folded("Configuration hash of each judge", table(("judge", "configuration hash"), settings)),
        folded("sha256 of every input", table(("file", "sha256"), hashes)),
    ]


def parts_of(
    view: View, items: list[dict[str, Any]], judges: list[Any]
) -> list[tuple[str, str, str, list[Markup | None]]]:
    """The sections between first screen and items: (anchor, name in the bar, title, content)."""
    result = view.result
    found = [("judges", "Judges", "Judges against gold", sections.judges_part(view))]
    if len(view.sources) > 1:
        found.append(("changed", "What changed", "What changed between the runs", sections.changed_part(view, judges)))
    if result["human"]:
        found.append(("people", "People", "People as the measure", sections.people_part(view)))
    found.append(("wrong", "Confidently wrong", "Where it is confidently wrong", examples_part(view, items, judges)))
    if result["by"]:
        found.append(("levels", "Breakdown", "Where it is right and wrong", sections.level_part(view)))
    found.append(("position", "Order", "Does the order of the answers decide?", sections.position_part(view)))
    found.append(("length", "Length", "Does length decide?", sections.length_part(view)))
    found.append(("confusion", "Confusion", "Which decisions are confused", sections.confusion_part(view)))
    if any(each["repeats"] > 1 for each in result["repeats"].values()):
        found.append(("repeats", "Repeats", "Does it say the same twice?", sections.repeats_part(view)))
    if result.get("models"):
        found.append(("models", "Models", "Would it rank the models as gold does?", sections.models_part(view)))
    if len([name for name in sections.priced_arms(result) if kind_of(result, name) == "judge"]) > 1:
        found.append(("cost", "Cost", "What does agreement cost?", sections.cost_part(view)))
    if len(view.sources) == 1 and tables.own_sections(result):
        shown = [page_scores.section_table(section) for section in tables.own_sections(result)]
        found.append(("own", "Findings", "What this evaluation adds", list(shown)))
    return found


def page_of(sources: Sequence[page_source.Source], files: Sequence[dict[str, Any]] = ()) -> bytes:
    """The whole page of one or several runs of one evaluation, judged files of your own behind it.

    Raises: EvidenceError.
    """
    view = view_of(sources)
    pairwise = page_tables.is_pairwise(view.result)
    nav, main, data = pairs_content(view) if pairwise else page_scores.content(view)
    if files:
        name, own = page_judged.beside(list(files), judges_measured(sources))
        nav.append(("own", name))
        main += own
    main.append(tag("section", tag("h2", "What the figures rest on"), *foundations(view), id="evidence"))
    title = f"{view.lead} on {view.result['slug']} \u2014 judge report"
    foot = "One file, nothing loaded, nothing sent. Every figure is in summary.json of the run."
    return document(title, [*nav, ("evidence", "Evidence")], main, foot, data)


def judges_measured(sources: Sequence[page_source.Source]) -> set[str]:
    """Names and models of the judges of some runs."""
    names = {name for source in sources for name in source.manifest.get("arms", [])}
    settings = [each for source in sources for each in (source.manifest.get("arm_settings") or {}).values()]
    return names | {each["model"] for each in settings if isinstance(each.get("model"), str)}


def pairs_content(view: View) -> tuple[list[tuple[str, str]], list[Markup], Markup]:
    """(links of the bar, sections, data blocks) of a run of pairs."""
    items, judges = item_lists(view)
    data = page_items.build(items, judges)
    parts = parts_of(view, items, judges)
    main = [page_intro.intro(view)]
    main += [tag("section", tag("h2", title), *content, id=anchor) for anchor, _, title, content in parts]
    main.append(items_part(view, data, items, judges))
    nav = [("overview", "Overview"), *[(anchor, name) for anchor, name, _, _ in parts], ("pairs", "Every pair")]
    arms = [{"name": shown, "control": kind_of(view.result, shown) == "control"} for shown, _, _ in view.places]
    lead = [shown for shown, _, _ in view.places].index(view.lead)
    return nav, main, data.embedded(arms, lead, "pairs", twins_of(view))


def write_report(folder: str) -> str:
    """Write report.html into a run that has been scored; returns its path. Raises: EvidenceError, OSError."""
    path = os.path.join(folder, "report.html")
    evidence.write_atomic(path, page_of([page_source.read_source(folder)]))
    return path
