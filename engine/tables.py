"""The result of a run as text: a table for people, markdown for a page, CSV for a spreadsheet, JSON for programs.

Shows what `summary.py` worked out and computes nothing of its own; every figure stands with its counts. Pure.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import sentences

# === Constants ===

RULES = {
    "both": "an answer wins only if both orders pick it",
    "original": "the original order alone decides",
}
# A comparison that could not have a winner, whatever its figures.
NO_VERDICT = {"not repeated": "undecided: a verdict takes 2 repeats or more", "no interval": "undecided: no interval"}
NAMES = {"kappa": "Cohen's kappa", "agreement": "raw agreement", "ac1": "Gwet's AC1", "mean": "mean score"}
MAX_IDS = 20
CSV_HEAD = ("group", "judge", "metric", "value", "low", "high", "k", "n", "reason")


# === Figures ===


def number(value: float | None, digits: int = 3, reason: str | None = None) -> str:
    """A figure, or why there is none."""
    if value is None:
        return f"undefined ({reason})" if reason else "-"
    text = f"{value:.{digits}f}"
    return text.replace("-", "", 1) if float(text) == 0 else text


def p_value(p: float | None) -> str:
    return "-" if p is None else "p <0.0001" if p < 0.0001 else f"p {p:.4f}"


def interval(shown: dict[str, Any], digits: int = 3) -> str:
    """'[0.412, 0.633]', or why there is no interval."""
    if shown.get("low") is None:
        reason = (shown.get("interval") or {}).get("reason") or shown.get("reason")
        return f"[{reason}]" if reason else ""
    return f"[{number(shown['low'], digits)}, {number(shown['high'], digits)}]"


def with_interval(shown: dict[str, Any], digits: int = 3) -> str:
    if shown["value"] is None:
        return number(None, digits, shown.get("reason"))
    return f"{number(shown['value'], digits)} {interval(shown, digits)}".rstrip()


def share(shown: dict[str, Any]) -> str:
    """'84/160 0.525'."""
    if shown.get("value") is None:
        return number(None, 3, shown.get("reason"))
    return f"{shown['k']}/{shown['n']} {number(shown['value'])}"


# === Layout ===


def columns(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """A plain table: the first column to the left, the others as wide as they need to be."""
    table = [list(head), *[list(row) for row in body]]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """The same as a markdown table; bars in a cell are escaped."""
    table = [head, ["---"] * len(head), *body]
    return ["| " + " | ".join(markdown_cell(cell) for cell in row) + " |" for row in table]


def markdown_cell(text: str) -> str:
    """A cell in which a name from a file is no markup: bars escaped, angle brackets as entities, one line."""
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(sign, written)
    return text


Section = tuple[str, Sequence[str], Sequence[Sequence[str]], list[str]]  # title, head, body, notes below


# === Sections ===


def head_section(result: dict[str, Any]) -> list[str]:
    """What was judged, by which rule, and what the leading number is."""
    bootstrap, level = result["bootstrap"], result["bootstrap"]["level"]
    gold = f", {result['no_consensus']} without gold" if result["no_consensus"] else ""
    questions = f" in {result['questions']} questions" if result["questions"] != result["items"] else ""
    status = "" if result["status"] == "complete" else "INCOMPLETE RUN: figures are of the replies that are there\n"
    return [
        f"{status}{result['slug']}: {result['items']} pairs{questions} of split {result['split']}{gold}, "
        f"shown in both orders, {result['repeats_run']} {plural('repeat', result['repeats_run'])}",
        f"decision: {RULES[result['decision']]}; majority over the repeats",
        f"headline: {NAMES[result['headline']]} against gold; brackets: {100 * level:g}% intervals, "
        f"{bootstrap['resamples']:,} resamples of questions, seed {result['seed']}"
        + ("" if questions else "; of shares Wilson's"),
    ]


def plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"


def judges_section(result: dict[str, Any]) -> Section:
    """One line per judge: the headline first, what bounds its meaning right beside it."""
    head = ("judge", "kappa", "agreement", "consistent", "first/second", "ok/invalid/failed", "cost US $")
    body = []
    for name, arm in result["arms"].items():
        metrics, position, counts = arm["metrics"], result["position"][name], arm["counts"]
        states = f"{counts['ok']}/{counts['invalid']}/{counts['failed']}"
        body.append(
            (
                judge_text(name, arm),
                with_interval(metrics["kappa"]),
                f"{share(metrics['agreement'])} {interval(metrics['agreement'])}",
                number(position["pc"]),
                f"{position['k_first']}/{position['k_second']}",
                states + (f" +{counts['missing']} missing" if counts["missing"] else ""),
                cost_text(result["cost_usd"][name], arm),
            )
        )
    real = [name for name, arm in result["arms"].items() if arm["provenance"] != "control"]
    notes = [
        f"{name}: {sentences.judgement(result, name)}; {sentences.order_words(result['position'][name])}"
        for name in real
    ]
    notes += baseline_notes(result)
    return "Judges against gold", head, body, notes


def judge_text(name: str, arm: dict[str, Any]) -> str:
    """A judge's name; of one that is not on the frozen list also its model, which nothing else tells."""
    if arm["listed"]:
        return name
    model = arm["model"]
    return f"{name} ({model + ', ' if model and model != name else ''}not on the frozen list)"


def cost_text(cost: dict[str, Any], arm: dict[str, Any]) -> str:
    if arm["provenance"] == "control":
        return "0 (no model)"
    if cost["replies_without"] and not cost["value"]:
        return "unknown"
    return number(cost["value"], 4) + (f" + {cost['replies_without']} unpriced" if cost["replies_without"] else "")


def baseline_notes(result: dict[str, Any]) -> list[str]:
    """What a judge that reads nothing reaches, and how small a difference the set can show."""
    constant, longer = result["baselines"]["majority_class"], result["baselines"]["longer_answer"]
    lines = [
        f"a judge that reads nothing: always {constant['label']} is right on {constant['k']}/{constant['n']}, "
        f"the longer answer on {longer['k']}/{longer['n']} (kappa {number(longer['kappa'])})",
        "first/second: pairs judged, once a repeat, that lean to the answer shown first, or second, whichever that is",
    ]
    found = result["detectable"]
    if found["agreement"] is not None:
        basis = "as these judges do" if found["seen"] else "as assumed"
        lines.append(
            f"this set can detect differences in agreement of at least {number(found['agreement'])} "
            f"({found['n']} pairs, power {found['power']}, judges differing on {found['discordant_share']:.0%} {basis})"
        )
    elif found["n"] and found["discordant_share"]:
        share = f"{found['discordant_share']:.0%}"
        lines.append(
            f"{found['n']} pairs are too few to show a difference between judges that differ on {share} of them"
        )
    return lines


def beside_section(result: dict[str, Any]) -> Section:
    """The other decision rule, AC1, each gold class."""
    other = "original" if result["decision"] == "both" else "both"
    head = (
        "judge",
        f"kappa, rule '{other}'",
        "AC1",
        "valid by majority",
        "right per gold class",
        "decisions A/B/equal/invalid",
    )
    body = []
    for name, arm in result["arms"].items():
        metrics = arm["metrics"]
        classes = ", ".join(f"{label} {part['k']}/{part['n']}" for label, part in arm["per_gold"].items())
        labels = "/".join(str(arm["labels"].get(label, 0)) for label in ("A", "B", "equal", "invalid"))
        body.append(
            (
                name,
                with_interval(metrics[f"kappa_{other}"]),
                f"{with_interval(metrics['ac1'])} (q={metrics['ac1']['q']})",
                number(metrics["valid_output"]["value"]),
                classes,
                labels,
            )
        )
    return "Beside the headline", head, body, []


def bias_section(result: dict[str, Any]) -> Section:
    """Position and length: what the judge follows besides the answers."""
    head = (
        "judge",
        "consistent, decisive/equal",
        "of valid",
        "share first",
        "first slot",
        "length excess",
        "longer: judge/gold",
    )
    body = []
    for name in result["arms"]:
        position, length = result["position"][name], result["length"][name]
        lean = position["k_first"] + position["k_second"]
        first = f"{position['k_first']}/{lean} {p_value(position['item_p'])}" if lean else "none inconsistent"
        body.append(
            (
                name,
                f"{position['consistent']}/{position['n']} = "
                f"{position['consistent_decisive']}+{position['consistent_equal']}",
                number(position["pc_valid"]),
                first,
                number(position["first_slot_rate"]),
                f"{number(length['excess'])} ({length['b']} against {length['c']}; {p_value(length['mcnemar_p'])})",
                f"{number(length['judge_longer'])}/{number(length['human_longer'])}",
            )
        )
    notes = [
        "consistent: pairs judged on which both orders decide alike; of valid: of those with two verdicts; share "
        "first: of the pairs that lean, those to the first shown; first slot: of all picks, the first shown",
        "length excess: how much more often than gold the judge picks the longer answer; 0 is no bias",
    ]
    return "Position and length", head, body, notes


def repeats_section(result: dict[str, Any]) -> Section | None:
    """How the judge's own repeats differ."""
    shown = {name: found for name, found in result["repeats"].items() if found["repeats"] > 1}
    if not shown:
        return None
    head = ("judge", "kappa: mean, sd, range over repeats", "Fleiss kappa", "alpha", "same decision in two repeats")
    body = []
    for name, found in shown.items():
        spread = found["kappa"]
        body.append(
            (
                name,
                f"{number(spread['mean'])}, {number(spread['sd'])}, {number(spread['min'])}..{number(spread['max'])}",
                number(found["fleiss_kappa"]["value"], 3, found["fleiss_kappa"]["reason"]),
                number(found["krippendorff_alpha"]["value"], 3, found["krippendorff_alpha"]["reason"]),
                number(found["stability"]["pairwise"]),
            )
        )
    return "Repeats (consistency, not correctness)", head, body, []


def comparison_section(result: dict[str, Any]) -> Section | None:
    """Judges against each other on the same pairs."""
    if not result["comparisons"]:
        return None
    head = ("judges", "difference", "right: first alone/both or none/second alone", "p of that", "verdict")
    body = []
    for entry in result["comparisons"]:
        p = entry.get("holm_p", entry["p"])
        body.append(
            (
                f"{entry['a']} - {entry['b']}",
                f"{entry['metric']} {with_interval(entry['differences'][entry['metric']])}",
                f"{entry['better']}/{entry['tie']}/{entry['worse']}",
                p_value(p) + (" (Holm)" if "holm_p" in entry else ""),
                NO_VERDICT.get(entry["why"]) or f"{entry['verdict']}: {entry['why']}",
            )
        )
    return "Judges against each other", head, body, ["tie: not separated by this data, never 'equal'"]


def compared_level_sections(result: dict[str, Any]) -> list[Section]:
    """Where two judges differ; exploratory."""
    found: list[Section] = []
    for entry in result["comparisons"]:
        for dimension, levels in entry.get("by", {}).items():
            body = [
                (
                    level,
                    f"{shown['better']}/{shown['tie']}/{shown['worse']}",
                    number(shown["difference"]),
                    p_value(shown["p_bh"]),
                )
                for level, shown in levels.items()
            ]
            head = (
                *(dimension, "right: first alone/both or none/second alone"),
                *("difference in agreement", "p, BH-adjusted"),
            )
            found.append((f"{entry['a']} - {entry['b']} by {dimension} (exploratory)", head, body, []))
    return found


def by_sections(result: dict[str, Any]) -> list[Section]:
    """Everything that is broken down by category and the like."""
    return level_sections(result) + compared_level_sections(result)


def stand_in(test: dict[str, Any]) -> str:
    """The alternative annotator test of one judge in words, or why there is none."""
    if test["reason"]:
        return str(test["reason"])
    tested = len(test["p"])
    for_whom = f"could stand in for {test['winning_rate'] * tested:.0f} of {tested} tested"
    return f"{'passes' if test['passes'] else 'does not pass'}: {for_whom}, advantage {number(test['rho'], 2)}"


def people_section(result: dict[str, Any]) -> Section | None:
    """How far people agree, and each judge on the same terms."""
    human = result["human"]
    if human is None:
        return None
    head = ("judge", "judge = the other votes", "people = the other votes", "alternative annotator test")
    body = []
    for name, found in human["arms"].items():
        test = found["alt_test"]
        body.append(
            (name, number(found["judge_loo"]), f"{number(found['human_loo'])} ({found['loo_n']} votes)", stand_in(test))
        )
    notes = [
        f"people agree on {human['pair_agree']}/{human['pair_total']} pairs of votes = {number(human['pairwise'])}; "
        f"alpha {number(human['alpha'])}; {human['votes']} votes of {human['annotators']} people",
        "alternative annotator test: passes if the judge could stand in for half of the people who have enough votes; "
        "advantage: how often it is at least as close to the other people as they are, ties counted, so 0.5 is no draw",
    ]
    return "People", head, body, notes


def level_sections(result: dict[str, Any]) -> list[Section]:
    """One table per dimension; exploratory, so it holds no verdicts."""
    found: list[Section] = []
    for dimension, levels in result["by"].items():
        names, people = list(result["arms"]), result.get("people_by", {}).get(dimension)
        body = []
        for level, arms in levels.items():
            cells = [level_cell(arms[name]) for name in names]
            cells += [share(people[level])] if people else []
            body.append((level, str(arms[names[0]]["agreement"]["n"]), str(arms[names[0]]["n_questions"]), *cells))
        head = (dimension, "pairs", "questions", *[f"{name}: right, kappa" for name in names])
        head += ("people: vote = vote",) if people else ()
        resamples = result["bootstrap"].get("level_resamples", result["bootstrap"]["resamples"])
        notes = ["kappa stands last, where a level has 30 pairs with gold and gold of both kinds"]
        found.append((f"By {dimension} (exploratory; intervals of {resamples:,} resamples)", head, body, notes))
    return found


def level_cell(arm: dict[str, Any]) -> str:
    metric = arm["agreement"]
    if "value" not in metric:
        return f"{metric['k']}/{metric['n']}"
    text = f"{share(metric)} {interval(metric, 2)}"
    return text + (f", {number(arm['kappa']['value'], 2)}" if "kappa" in arm else "")


def own_sections(result: dict[str, Any]) -> list[Section]:
    """The tables that the evaluation itself brings."""
    own = (result.get("tables") or {}).get("sections", [])
    return [(part["title"], part["head"], part["rows"], part["notes"]) for part in own]


def score_section(result: dict[str, Any]) -> Section:
    """One line per judge of an evaluation that scores numbers: every mean with its interval."""
    names = list(result["arms"])
    metrics = list(dict.fromkeys(metric for arm in result["arms"].values() for metric in arm["metrics"]))
    body = []
    for metric in metrics:
        shown = [result["arms"][name]["metrics"].get(metric) for name in names]
        body.append((NAMES.get(metric, metric), *[with_interval(part) if part else "-" for part in shown]))
    counts = [(name, result["arms"][name]["counts"]) for name in names]
    notes = [f"{name}: {c['ok']} ok, {c['invalid']} invalid, {c['failed']} failed" for name, c in counts]
    return "Mean over items", ("score", *names), body, notes


def score_levels(result: dict[str, Any]) -> list[Section]:
    """The main score by each dimension."""
    found: list[Section] = []
    for dimension, levels in result["by"].items():
        names = list(result["arms"])
        body = []
        for level, arms in levels.items():
            shown = [arms.get(name, {}).get("mean") for name in names]
            n = next((str(part["n"]) for part in shown if part), "0")
            body.append((level, n, *[with_interval(part) if part else "-" for part in shown]))
        found.append((f"By {dimension}", (dimension, "items", *names), body, []))
    return found


def score_head(result: dict[str, Any]) -> list[str]:
    """What was scored and how the intervals are made."""
    bootstrap = result["bootstrap"]
    status = "" if result["status"] == "complete" else "INCOMPLETE RUN: figures are of the replies that are there\n"
    return [
        f"{status}{result['slug']}: {result['items']} items of split {result['split']}, "
        f"{result['repeats_run']} {plural('repeat', result['repeats_run'])}",
        f"brackets: {100 * bootstrap['level']:g}% intervals, {bootstrap['resamples']:,} resamples of questions, "
        f"seed {result['seed']}",
    ]


def sections(result: dict[str, Any], by: bool) -> list[Section]:
    """All tables of a result, in the order in which they matter; by: also those by category and the like."""
    if result["headline"] == "mean":
        return [*own_sections(result), score_section(result), *(score_levels(result) if by else [])]
    found = [judges_section(result), comparison_section(result), people_section(result)]
    found += [bias_section(result), beside_section(result), repeats_section(result)]
    return [part for part in found if part] + own_sections(result) + (by_sections(result) if by else [])


# === Forms ===


def counted(kinds: dict[str, int]) -> str:
    """'http_500 2, timeout 1'."""
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items())


def counts_lines(result: dict[str, Any]) -> list[str]:
    """Per judge what happened to its replies, wherever that is not simply 'ok'."""
    lines = []
    for name, arm in result["arms"].items():
        replies = arm["replies"]
        if replies["invalid"] or replies["failed"] or replies["missing"] or arm["repaired"]:
            codes = counted(arm["invalid_codes"])
            failed = counted(arm["failed_codes"])
            repairs = counted(arm["repaired"])
            lines.append(
                f"{name}: replies {replies['ok']} ok, {replies['invalid']} invalid, {replies['failed']} failed, "
                f"{replies['missing']} missing"
                + (f"; {codes}" if codes else "")
                + (f"; failed: {failed}; the last: {arm['last_failure'] or 'no words'}" if failed else "")
                + (f"; repaired: {repairs}" if repairs else "")
            )
    return lines


def as_text(result: dict[str, Any], table: Any, mark: str, by: bool) -> list[str]:
    """The whole result with a given table maker; mark precedes each title."""
    lines = score_head(result) if result["headline"] == "mean" else head_section(result)
    for title, head, body, notes in sections(result, by):
        lines += ["", mark + title, *([""] if mark else []), *table(head, body), *([""] if mark and notes else [])]
        lines += [f"  {note}" if not mark else f"- {note}" for note in notes]
    counts = counts_lines(result)
    lines += ["", *counts] if counts else []
    lines += [f"warning: {text}" for text in result["warnings"]]
    return lines


def csv_rows(result: dict[str, Any]) -> Iterable[Sequence[Any]]:
    """Every metric of every judge, overall and by level, one a row."""
    yield CSV_HEAD
    groups: list[tuple[str, dict[str, Any]]] = [("all", {name: arm["metrics"] for name, arm in result["arms"].items()})]
    for dimension, levels in result["by"].items():
        groups += [(f"{dimension}={level}", arms) for level, arms in levels.items()]
    for group, arms in groups:
        for name, metrics in arms.items():
            for metric, shown in metrics.items():
                if isinstance(shown, dict):
                    figures = [shown.get(key) for key in ("value", "low", "high", "k", "n", "reason")]
                    yield (group, name, metric, *figures)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def as_csv(result: dict[str, Any]) -> str:
    return csv_text(csv_rows(result))


def disagreement_lines(result: dict[str, Any]) -> list[str]:
    lines = []
    for name, ids in result["disagreements"].items():
        lines.append(f"{name}: {len(ids)} pairs decided other than gold: {' '.join(ids)}".rstrip(": "))
    return lines


def render(result: dict[str, Any], options: Any) -> str:
    """The result in the form asked for."""
    if options.format == "json":
        return json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    if options.format == "csv":
        return as_csv(result)
    by = options.by is not None
    table, mark = (markdown, "## ") if options.format == "markdown" else (columns, "")
    lines = as_text(result, table, mark, by)
    if not by and result["by"]:
        lines += ["", f"also: --by {','.join(result['by'])}, --disagreements, --format json|csv|markdown"]
    if options.disagreements and "disagreements" in result:
        lines += ["", *disagreement_lines(result)]
    return "\n".join(lines) + "\n"
