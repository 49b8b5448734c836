"""The first screen of a run's page: what was judged by whom, the headline, what it means and what it does not.

Counts of replies and the state of the evidence stand beside it, with the command that recomputes everything. Pure.
"""

from __future__ import annotations

from typing import Any

import page_source
import pictures
import sentences
import tables
from page_parts import Markup, folded, joined, listed, tag
from page_sections import axis_for, ceiling_of, counted, interval_text, legend, metric_row, share_text, signed
from page_view import View, letter
from pictures import Dot, Row

# === Constants ===

STATE_WORDS = {
    "ok": "with a verdict in both orders",
    "invalid": "with a reply that holds no verdict (counts as wrong)",
    "failed": "with a call that never answered",
    "missing": "not asked yet",
}

# What stands on the page or in its tables and is not said where it stands.
GLOSSARY = (
    ("pair judged", "one pair in one repeat: two replies, one with each answer shown first"),
    ("kappa", "Cohen's: agreement above what the frequencies of the labels give by chance; 0 is chance, 1 is perfect"),
    (
        "AC1 (q=…)",
        "Gwet's: chance worked out from q possible labels, whatever their frequencies. It stays defined where kappa is "
        "not, and lies above kappa for a judge that rarely says equal: never read it without kappa",
    ),
    ("consistent", "share of pairs decided alike in both orders; of valid: among pairs with a verdict in both"),
    ("first/second, share first", "of the pairs the order decides: how many lean to the answer shown first"),
    ("first slot", "share of all single replies with a winner that pick the answer shown first; 0.5 is no lean"),
    ("alpha", "Krippendorff's: under Repeats of the judge's own repeats, under People of people among themselves"),
    ("length excess", "how much more often than gold the judge picks the longer answer"),
    ("single_label", "kappa is undefined: gold and judge use one label only, so chance agreement is 1"),
    ("degenerate_resamples", "no interval: every resample gives the same value"),
    ("too_few_clusters, too_many_undefined", "no interval: too few questions, or too few resamples with a value"),
    ("not on the frozen list", "the judge was given on the command line, not in the pinned eval.json"),
    ("inputs", "every file and text the run pins by its sha256: pairs, settings, code"),
)

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
    return joined((legend(result, entries), pictures.dot_plot(axis, rows, ceiling)))


def hero(view: View) -> Markup:
    """The one number, and where it stands."""
    result, metric = view.result, view.result["headline"]
    shown, level = result["arms"][view.lead]["metrics"][metric], result["bootstrap"]["level"]
    value = "\u2013" if shown["value"] is None else signed(shown["value"])
    left = tag(
        "div",
        tag("div", f"{tables.NAMES[metric]} against gold", class_="soft small"),
        tag("div", value, class_="figure-big", data_figure=f"arms.{view.lead}.metrics.{metric}.value"),
        tag("div", view.lead, class_="hero-name"),
        tag(
            "div",
            f"{100 * level:g}% interval {interval_text(shown)}".replace("interval no", "interval: no"),
            class_="hero-range",
        ),
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
    lines.insert(0, f"By kappa and its interval, {name}: {sentences.judgement(result, name)}.")
    lines.append(sentences.as_sentence(sentences.order_words(result["position"][name])))
    return lines


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
            f"{100 * found['agreement']:.1f} percentage points cannot be told apart reliably."
        )
    return lines


def facts(view: View) -> Markup:
    """Counts of replies, and what was checked."""
    return tag("div", counts_box(view), *[evidence_box(view, n) for n in range(len(view.sources))], class_="facts")


def counts_box(view: View) -> Markup:
    """The lead judge's pairs by state, never folded into each other, and its single replies beside them."""
    arm = view.result["arms"][view.lead]
    counts = arm["counts"]
    used = [(state, counts[state]) for state in STATE_WORDS if counts[state] or state != "missing"]
    states = [tag("li", tag("b", f"{count:,}"), tag("span", state, class_="small")) for state, count in used]
    words = "; ".join(f"{state}: {STATE_WORDS[state]}" for state, _ in used)
    single = ", ".join(f"{count:,} {state}" for state, count in arm.get("replies", {}).items() if count)
    words += f". Each repeat of a pair counts, and takes two replies: {single}" if single else ""
    return tag(
        "div",
        tag("h2", f"Pairs judged by {view.lead}"),
        tag("ul", *states, class_="states"),
        tag("p", words + ".", class_="soft small"),
        class_="fact",
    )


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


def glossary() -> Markup:
    """The words of the page and its tables, folded."""
    return folded("Words of this page", listed(joined((tag("b", word), f": {text}.")) for word, text in GLOSSARY))
