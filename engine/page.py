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
import page_items
import page_sections as sections
import page_source
import page_tables
import pictures
import tables
from page_parts import Markup, document, folded, joined, listed, table, tag
from page_sections import axis_for, ceiling_of, counted, kind_of, metric_row, share_text
from page_view import View, letter, view_of
from pictures import Dot, Row

# === Constants ===

EXAMPLES = 10  # pairs of the lead judge shown in full on the first pages
NOSCRIPT_ROWS = 2000
STATE_WORDS = {
    "ok": "read in both orders",
    "invalid": "with a reply that holds no verdict (counts as wrong)",
    "failed": "with a call that never answered",
    "missing": "not asked yet",
}

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
        many = counted(len(controls), "control", "controls")
        return f"Judged by {many} only: rules that read nothing, the floor every model has to beat."
    many = counted(len(controls), "control that needs", "controls that need")
    beside = f", beside {many} no model" if controls else ""
    return "Judged by " + "; ".join(words) + beside + "."


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
    entries += [("people", "people")] if ceiling is not None else []
    return joined((sections.legend(result, entries), pictures.dot_plot(axis, rows, ceiling)))


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
        "It does not say that gold is right, nor how this judge does on other questions, other answers or other words.",
        rule + " Replies without a verdict stay in every denominator and count as wrong.",
    ]
    if ceiling_of(result["human"])[0] is not None:
        lines.insert(
            1,
            "A judge above the dashed line is not better than people: the line is one person against another, gold is "
            "what most of them say, and that is easier to match.",
        )
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
    return choices(name, label, [("", "all"), *[(level, page_tables.plain(level)) for level in sorted(levels)]])


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
        found.append(("changed", "What changed", "What changed between the runs", sections.changed_part(view)))
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
