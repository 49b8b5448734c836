"""The result of a run as text: a table for people, markdown for a page, CSV for a spreadsheet, JSON for programs.

Shows what `summary.py` worked out and computes nothing of its own; every figure stands with its counts. Pure.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

# === Constants ===

RULES = {
    "both": "an answer wins only if both orders pick it",
    "original": "the original order alone decides",
}
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
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]


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
        f"headline: {NAMES[result['headline']]} against gold; brackets: {level:.0%} intervals, "
        f"{bootstrap['resamples']:,} resamples of questions, seed {result['seed']}",
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
                name + ("" if arm["listed"] else " (not on the frozen list)"),
                with_interval(metrics["kappa"]),
                f"{share(metrics['agreement'])} {interval(metrics['agreement'])}",
                number(position["pc"]),
                f"{position['k_first']}/{position['k_second']}",
                states + (f" +{counts['missing']} missing" if counts["missing"] else ""),
                cost_text(result["cost_usd"][name], arm),
            )
        )
    notes = baseline_notes(result)
    return "Judges against gold", head, body, notes


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
        "first/second: replies of a pair that lean to the answer shown first, or second, whichever answer that is",
    ]
    found = result["detectable"]
    if found["agreement"] is not None:
        basis = "as these judges do" if found["seen"] else "as assumed"
        lines.append(
            f"this set can detect differences in agreement of at least {number(found['agreement'])} "
            f"({found['n']} pairs, power {found['power']}, judges differing on {found['discordant_share']:.0%} {basis})"
        )
    return lines


def beside_section(result: dict[str, Any]) -> Section:
    """The other decision rule, AC1, each gold class."""
    other = "original" if result["decision"] == "both" else "both"
    head = (
        "judge",
        f"kappa, rule '{other}'",
        "AC1",
        "valid pairs",
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
    notes = ["length excess: how much more often than gold the judge picks the longer answer; 0 is no bias"]
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
    head = ("judges", "difference", "better/tie/worse", "p", "verdict")
    body = []
    for entry in result["comparisons"]:
        p = entry.get("holm_p", entry["p"])
        body.append(
            (
                f"{entry['a']} - {entry['b']}",
                f"{entry['metric']} {with_interval(entry['differences'][entry['metric']])}",
                f"{entry['better']}/{entry['tie']}/{entry['worse']}",
                p_value(p) + (" (Holm)" if "holm_p" in entry else ""),
                f"{entry['verdict']}: {entry['why']}",
            )
        )
    return "Judges against each other", head, body, ["tie: not separated by this data, never 'equal'"]


def people_section(result: dict[str, Any]) -> Section | None:
    """How far people agree, and each judge on the same terms."""
    human = result["human"]
    if human is None:
        return None
    head = ("judge", "judge = the other votes", "people = the other votes", "alternative annotator test")
    body = []
    for name, found in human["arms"].items():
        test = found["alt_test"]
        outcome = test["reason"] or f"rate {number(test['winning_rate'], 2)}, advantage {number(test['rho'], 2)}"
        body.append(
            (name, number(found["judge_loo"]), f"{number(found['human_loo'])} ({found['loo_n']} votes)", outcome)
        )
    notes = [
        f"people agree on {human['pair_agree']}/{human['pair_total']} pairs of votes = {number(human['pairwise'])}; "
        f"alpha {number(human['alpha'])}; {human['votes']} votes of {human['annotators']} people",
    ]
    return "People", head, body, notes


def level_sections(result: dict[str, Any]) -> list[Section]:
    """One table per dimension; exploratory, so it holds no verdicts."""
    found: list[Section] = []
    for dimension, levels in result["by"].items():
        names = list(result["arms"])
        body = []
        for level, arms in levels.items():
            cells = [level_cell(arms[name]) for name in names]
            body.append((level, str(arms[names[0]]["agreement"]["n"]), str(arms[names[0]]["n_questions"]), *cells))
        head = (dimension, "pairs", "questions", *[f"{name}: right, kappa" for name in names])
        found.append((f"By {dimension} (exploratory)", head, body, []))
    return found


def level_cell(arm: dict[str, Any]) -> str:
    metric = arm["agreement"]
    if "value" not in metric:
        return f"{metric['k']}/{metric['n']}"
    text = f"{share(metric)} {interval(metric, 2)}"
    return text + (f", {number(arm['kappa']['value'], 2)}" if "kappa" in arm else "")


def confusion_section(result: dict[str, Any]) -> Section:
    """Gold against decision, one line per judge and gold class."""
    labels = ("A", "B", "equal", "invalid")
    body = []
    for name, arm in result["arms"].items():
        for gold, cells in arm["confusion"].items():
            body.append((name, gold, *[str(cells[label]) for label in labels]))
    return "Gold against decision", ("judge", "gold", *[f"decides {label}" for label in labels]), body, []


def models_section(result: dict[str, Any]) -> Section | None:
    """How each answering model stands by gold and by each judge, on the same pairs."""
    if not result.get("models"):
        return None
    names = list(result["arms"])
    body = [
        (model, standing_cell(found["gold"]), *[standing_cell(found["arms"][name]) for name in names])
        for model, found in result["models"].items()
    ]
    notes = ["win rate, a tie as half a win; in brackets won/tied/lost on pairs with gold"]
    return "Models by gold and by each judge", ("model", "gold", *names), body, notes


def standing_cell(found: dict[str, Any]) -> str:
    return f"{number(found['rate'])} ({found['won']}/{found['tied']}/{found['lost']})"


def crossed_section(result: dict[str, Any], name: str) -> Section | None:
    """Right and all of one judge in every cell of two dimensions."""
    cross = result.get("cross")
    if not cross:
        return None
    columns_ = sorted({column for row in cross["cells"].values() for column in row})
    body = []
    for row, cells in cross["cells"].items():
        counts = [cells[column][name] if column in cells else None for column in columns_]
        body.append((row, *[f"{cell['k']}/{cell['n']}" if cell else "" for cell in counts]))
    title = f"{name}: right of all, {plain(cross['rows'])} by {plain(cross['columns'])}"
    return title, (plain(cross["rows"]), *columns_), body, []


def leaning_section(result: dict[str, Any], dimension: str) -> Section | None:
    """What the order did, by one dimension."""
    levels = result["by"].get(dimension)
    if not levels:
        return None
    head = ("judge", plain(dimension), "pairs run", "first-leaning", "consistent", "second-leaning", "invalid")
    body = []
    for name in result["arms"]:
        for level, arms in levels.items():
            found = arms[name]["position"]
            counts = [found[key] for key in ("n", "first", "consistent", "second", "invalid")]
            body.append((name, level, *[str(count) for count in counts]))
    return f"Order of the answers by {plain(dimension)}", head, body, []


def plain(name: str) -> str:
    return name.replace("_", " ")


def all_sections(result: dict[str, Any]) -> list[Section]:
    """Every table of a report: those of the result, by every dimension, and what stands behind the pictures."""
    found: list[Section | None] = [*sections(result, True), confusion_section(result), models_section(result)]
    found += [leaning_section(result, dimension) for dimension in result["by"]]
    found += [crossed_section(result, name) for name in result["arms"]]
    return [part for part in found if part and part[2]]


def sections(result: dict[str, Any], by: bool) -> list[Section]:
    """All tables of a result, in the order in which they matter; by: also those by category and the like."""
    found = [judges_section(result), comparison_section(result), people_section(result)]
    found += [bias_section(result), beside_section(result), repeats_section(result)]
    return [part for part in found if part] + (level_sections(result) if by else [])


# === Forms ===


def counts_lines(result: dict[str, Any]) -> list[str]:
    """Per judge what happened to its replies, wherever that is not simply 'ok'."""
    lines = []
    for name, arm in result["arms"].items():
        replies = arm["replies"]
        if replies["invalid"] or replies["failed"] or replies["missing"] or arm["repaired"]:
            codes = ", ".join(f"{code} {count}" for code, count in arm["invalid_codes"].items())
            repairs = ", ".join(f"{kind} {count}" for kind, count in arm["repaired"].items())
            lines.append(
                f"{name}: replies {replies['ok']} ok, {replies['invalid']} invalid, {replies['failed']} failed, "
                f"{replies['missing']} missing"
                + (f"; {codes}" if codes else "")
                + (f"; repaired: {repairs}" if repairs else "")
            )
    return lines


def as_text(result: dict[str, Any], table: Any, mark: str, by: bool) -> list[str]:
    """The whole result with a given table maker; mark precedes each title."""
    lines = head_section(result)
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


def as_csv(result: dict[str, Any]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(csv_rows(result))
    return stream.getvalue()


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
    if options.disagreements:
        lines += ["", *disagreement_lines(result)]
    return "\n".join(lines) + "\n"


def as_report(result: dict[str, Any]) -> str:
    """Every table of a report as markdown."""
    lines = head_section(result)
    for title, head, body, notes in all_sections(result):
        lines += [
            "",
            f"## {title}",
            "",
            *markdown(head, body),
            *([""] if notes else []),
            *[f"- {note}" for note in notes],
        ]
    lines += ["", *counts_lines(result)] if counts_lines(result) else []
    lines += [f"warning: {text}" for text in result["warnings"]]
    return "\n".join(lines) + "\n"
