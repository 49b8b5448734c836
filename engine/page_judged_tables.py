"""The tables of a judged, compared or human result of judge.py: for the page, for markdown, for a spreadsheet.

Figures are those of the file's own summaries. Files of other tools in the same published layout lack some of them;
what is not there is shown as '-'. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tables

# === Constants ===

SCORES = ("1", "2", "3", "4", "5")
PANEL = "panel"
MEASURES = {
    "exact": "same score",
    "within1": "within one",
    "qwk": "kappa, quadratic weights",
    "bias": "bias: judge minus people",
    "spearman": "rank correlation",
    "mae": "mean distance",
    "agreement": "same label",
    "kappa": "Cohen's kappa",
    "ac1": "Gwet's AC1",
    "recall_A": "right where people say A",
    "recall_B": "right where people say B",
    "recall_equal": "right where people say equal",
}


# === What a file holds ===


def kind_of_file(data: Any) -> str | None:
    """'grade', 'compare' or 'human' of a parsed file of judge.py; None for anything else."""
    if not isinstance(data, dict):
        return None
    if str(data.get("mode", "")).startswith("human-"):
        return "human"
    summary = data.get("judge")
    if isinstance(data.get("pairs"), list) and isinstance(summary, dict) and isinstance(data.get("runs"), dict):
        return "compare"
    if isinstance(data.get("results"), list) and isinstance(summary, dict) and isinstance(data.get("run"), dict):
        return "grade"
    return None


def judges_of(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Judge -> summary; of a panel the panel first, then each judge."""
    inner = summary.get("judges")
    if isinstance(inner, dict) and inner:
        return {PANEL: summary, **inner}
    return {str(summary.get("judge_model")): summary}


def pairings_of(data: dict[str, Any]) -> list[tuple[str, str, dict[str, dict[str, Any]]]]:
    """(a, b, judge -> summary) of every two runs compared."""
    names = list(data["runs"])
    if data.get("pairings"):
        return [(one["a"], one["b"], one["judges"]) for one in data["pairings"]]
    return [(names[0], names[1], judges_of(data["judge"]))]


def mean_of(summary: dict[str, Any]) -> dict[str, Any]:
    """The mean score as a figure, without interval where the file has none."""
    plain = {"value": summary.get("judge_mean"), "low": None, "high": None, "n": summary.get("graded"), "reason": None}
    found: dict[str, Any] = summary.get("judge_mean_interval") or plain
    return found


def category_means(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Mean score by category as figures."""
    plain = {
        name: {"value": value, "low": None, "high": None, "n": None, "reason": None}
        for name, value in (summary.get("by_category") or {}).items()
    }
    found: dict[str, dict[str, Any]] = summary.get("by_category_interval") or plain
    return found


def counts_of(data: dict[str, Any], name: str, summary: dict[str, Any]) -> dict[str, int]:
    """How often each score was given: as summarised, or counted in the file where the summary does not say."""
    if isinstance(summary.get("scores"), dict):
        return {score: int(summary["scores"].get(score, 0)) for score in SCORES}
    given = [str(score_of(item, name)) for item in data["results"]]
    return {score: given.count(score) for score in SCORES}


def score_of(item: dict[str, Any], name: str) -> Any:
    """One judge's score of one answer; None without a verdict."""
    judges = item.get("judges")
    verdict = judges.get(name) if isinstance(judges, dict) and name in judges else item.get("judge")
    return verdict.get("score") if isinstance(verdict, dict) else None


def shown_count(summary: dict[str, Any], key: str) -> str:
    value = summary.get(key)
    return "-" if value is None else str(value)


# === Grade ===


def grade_sections(data: dict[str, Any]) -> list[tables.Section]:
    judges = judges_of(data["judge"])
    return [
        mean_section(judges),
        scores_section(data, judges),
        words_section(judges),
        category_section(judges),
        *check_section(judges),
        *panel_section(data["judge"]),
    ]


def mean_section(judges: dict[str, dict[str, Any]]) -> tables.Section:
    head = ("judge", "mean score", "graded", "invalid", "failed", "missing", "words and score (Spearman)")
    body = []
    for name, summary in judges.items():
        length = summary.get("length")
        rho = tables.with_interval({**length, "value": length["spearman"]}, 2) if isinstance(length, dict) else "-"
        states = [shown_count(summary, key) for key in ("invalid", "failed", "missing")]
        mean = tables.with_interval(mean_of(summary), 2)
        body.append((name, mean, shown_count(summary, "graded"), *states, rho))
    return (
        "Scores",
        head,
        body,
        ["longer may be better: a correlation of words and score is a hint, not a proof of bias"],
    )


def scores_section(data: dict[str, Any], judges: dict[str, dict[str, Any]]) -> tables.Section:
    body = []
    for name, summary in judges.items():
        counts = counts_of(data, name, summary)
        body.append((name, *[str(counts[score]) for score in SCORES]))
    return "How often each score was given", ("judge", *SCORES), body, []


def words_section(judges: dict[str, dict[str, Any]]) -> tables.Section:
    body = []
    for name, summary in judges.items():
        words = summary.get("mean_words_by_score") or {}
        body.append((name, *[f"{words[score]:g}" if score in words else "-" for score in SCORES]))
    return "Mean words of the answers by the score they got", ("judge", *SCORES), body, []


def category_section(judges: dict[str, dict[str, Any]]) -> tables.Section:
    levels = sorted({level for summary in judges.values() for level in category_means(summary)})
    body = []
    for level in levels:
        shown = [category_means(summary).get(level) for summary in judges.values()]
        n = next((str(figure["n"]) for figure in shown if figure and figure["n"] is not None), "-")
        body.append((level, n, *[tables.with_interval(figure, 2) if figure else "-" for figure in shown]))
    return "Mean score by category", ("category", "answers", *judges), body, []


def check_section(judges: dict[str, dict[str, Any]]) -> list[tables.Section]:
    """Mean score of the answers that passed their own checks, and of the others."""
    body = [
        (name, kind.replace("_", " "), f"{found['mean']:.2f}", str(found["n"]))
        for name, summary in judges.items()
        for kind, found in (summary.get("by_check") or {}).items()
    ]
    return (
        [("Score by the answers' own checks", ("judge", "checks", "mean score", "answers"), body, [])] if body else []
    )


def panel_section(summary: dict[str, Any]) -> list[tables.Section]:
    """How far the judges of a panel agree."""
    between = summary.get("panel_agreement")
    if not between:
        return []
    body = [(name, tables.share(found)) for name, found in between["exact"].items()]
    alpha = tables.number(between["alpha"], 3, between["reason"])
    return [
        (
            "Judges among themselves",
            ("judges", "same verdict"),
            body,
            [f"Krippendorff's alpha {alpha}, n {between['n']}"],
        )
    ]


# === Compare ===


def compare_sections(data: dict[str, Any]) -> list[tables.Section]:
    found: list[tables.Section] = []
    for a, b, judges in pairings_of(data):
        found += [pairing_section(a, b, judges), rates_section(a, b, judges)]
    found += panel_section(data["judge"])
    for name, strengths in (data.get("strengths") or {}).items():
        body = [(run, tables.with_interval(figure)) for run, figure in strengths.items()]
        found.append((f"Bradley-Terry strengths by {name} (mean 0)", ("run", "strength"), body, []))
    return [section for section in found if section[2]]


def pairing_section(a: str, b: str, judges: dict[str, dict[str, Any]]) -> tables.Section:
    head = (
        "judge",
        f"{a} wins",
        f"{b} wins",
        "equal",
        "order decides",
        "first/second",
        "no verdict",
        f"win rate of {a}",
    )
    body = []
    for name, summary in judges.items():
        lean = f"{shown_count(summary, 'flips_first')}/{shown_count(summary, 'flips_second')}"
        counts = [shown_count(summary, key) for key in ("wins_a", "wins_b", "ties", "order_flips")]
        rate = tables.with_interval({"low": None, "reason": None, **(summary.get("win_rate") or {"value": None})})
        body.append((name, *counts, lean, shown_count(summary, "judge_failures"), rate))
    notes = ["a pair is won only if both orders pick the same answer; where they do not, the order decides"]
    return f"{a} against {b}", head, body, notes


def rates_section(a: str, b: str, judges: dict[str, dict[str, Any]]) -> tables.Section:
    levels = sorted({level for summary in judges.values() for level in summary.get("by_category") or {}})
    body = []
    for level in levels:
        shown = [(summary.get("by_category") or {}).get(level) for summary in judges.values()]
        cells = [f"{tables.number(one['win_rate'])} (n {one['n']})" if one else "-" for one in shown]
        body.append((level, *cells))
    return f"Win rate of {a} against {b} by category", ("category", *judges), body, []


# === People ===


def human_sections(data: dict[str, Any]) -> list[tables.Section]:
    judges = data.get("judges") or {str(data.get("judge_model")): data.get("metrics") or {}}
    names = list(dict.fromkeys(name for shown in judges.values() for name in shown))
    body = [
        (
            MEASURES.get(name, name),
            *[tables.with_interval(shown[name]) if name in shown else "-" for shown in judges.values()],
        )
        for name in names
    ]
    if not body:  # the published layout has these alone
        keys = ("scored", "exact_agreement", "within_one", "mean_human", "mean_judge")
        body = [(key.replace("_", " "), shown_count(data, key)) for key in keys]
    found: list[tables.Section] = [("Judge against people", ("measure", *judges), body, [])]
    differing = disagreements_of(data)
    rows = [
        (str(one["id"]), str(one["human"]), str(one["judge"]), str(one.get("why") or ""), str(one.get("comment") or ""))
        for one in differing
    ]
    if rows:
        head = ("item", "people", "judge", "the judge's reason", "comment")
        found.append((f"Where people and judge differ ({len(rows)})", head, rows, []))
    return found


def disagreements_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data.get("disagreements") or data.get("big_disagreements") or []
    return found


# === Forms ===

SECTIONS = {"grade": grade_sections, "compare": compare_sections, "human": human_sections}


def sections_of(files: list[dict[str, Any]]) -> list[tables.Section]:
    return [section for data in files for section in SECTIONS[str(kind_of_file(data))](data)]


def as_markdown(files: list[dict[str, Any]], before: Sequence[tables.Section] = ()) -> str:
    """All tables of some files. before: tables that stand above them."""
    lines: list[str] = []
    for title, head, body, notes in [*before, *sections_of(files)]:
        lines += ["", f"## {title}", "", *tables.markdown(head, body)]
        lines += ["", *[f"- {note}" for note in notes]] if notes else []
    return "\n".join(lines[1:]) + "\n"


def as_csv(files: list[dict[str, Any]], before: Sequence[tables.Section] = ()) -> str:
    """All tables as one: table, row, column, cell. before: tables that stand above the files' own."""
    rows: list[tuple[str, ...]] = [("table", "row", "column", "cell")]
    for title, head, body, _ in [*before, *sections_of(files)]:
        rows += [(title, row[0], name, cell) for row in body for name, cell in zip(head[1:], row[1:])]
    return tables.csv_text(rows)
