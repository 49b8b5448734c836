"""The results of `judge.py grade` and `compare` as text for people. Computes nothing of its own; pure."""

from __future__ import annotations

from typing import Any

import tables

# === Parts ===


def block(lines: list[tuple[str, str]]) -> list[str]:
    """Two columns, names to the left."""
    width = max((len(name) for name, _ in lines), default=0)
    return [f"  {name.ljust(width)}  {text}" for name, text in lines]


def share_with_interval(shown: dict[str, Any]) -> str:
    """'7/10 0.700 [0.397, 0.892]', or why there is no share."""
    return tables.share(shown) + (f" {tables.interval(shown)}" if shown["value"] is not None else "")


def judges_in(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Judge -> summary: of a panel each judge, then the panel itself where it has the same figures."""
    inner: dict[str, dict[str, Any]] | None = summary.get("judges")
    return inner if inner else {summary["judge_model"]: summary}


def failures(summary: dict[str, Any]) -> str:
    """'2 invalid (truncated 2), 1 failed, 0 missing'."""
    codes = ", ".join(f"{code} {count}" for code, count in summary.get("codes", {}).items())
    why = f" ({codes})" if codes else ""
    return f"{summary['invalid']} invalid, {summary['failed']} failed, {summary['missing']} missing{why}"


def panel_lines(summary: dict[str, Any]) -> list[str]:
    """How far the judges of a panel agree."""
    between = summary.get("panel_agreement")
    if not between:
        return []
    pairs = [(name, tables.share(found)) for name, found in between["exact"].items()]
    alpha = tables.number(between["alpha"], 3, between["reason"])
    head = f"the judges among themselves: Krippendorff's alpha ({between['level']}) {alpha}, n {between['n']}"
    return ["", head, *block([(name, f"same verdict on {text}") for name, text in pairs])]


def incomplete_lines(judges: dict[str, dict[str, Any]]) -> list[str]:
    """A line in front of figures that not all replies stand behind, or nothing."""
    open_of = {name: (each.get("failed") or 0) + (each.get("missing") or 0) for name, each in judges.items()}
    counts = ", ".join(f"{name} {count}" for name, count in open_of.items() if count)
    return [f"INCOMPLETE: figures are of the replies that are there; none yet: {counts}"] if counts else []


# === Grade ===


def grade_lines(name: str, summary: dict[str, Any]) -> list[str]:
    """One judge's figures."""
    length = {**summary["length"], "value": summary["length"]["spearman"]}
    given = "  ".join(f"{score}: {count}" for score, count in summary["scores"].items())
    words = "  ".join(f"{score}: {count:g}" for score, count in summary["mean_words_by_score"].items())
    lines = [
        ("mean score", f"{tables.with_interval(summary['judge_mean_interval'], 2)}, {summary['graded']} graded"),
        ("scores given", given),
        ("without a verdict", failures(summary)),
        ("words by score", words or "-"),
        ("length and score", f"Spearman {tables.with_interval(length, 2)} (longer may be better: a hint, no proof)"),
    ]
    for kind, found in summary["by_check"].items():
        lines.append((f"checks {kind.replace('_', ' ')}", f"mean {found['mean']:.2f}, n {found['n']}"))
    for category, found in summary["by_category_interval"].items():
        lines.append((f"category {category}", f"{tables.with_interval(found, 2)}, n {found['n']}"))
    return ["", f"judge {name}", *block(lines)]


def title_of(summary: dict[str, Any], n_answers: int) -> str:
    """'model: task set 1, 14 answers', without what is not known."""
    task_set = " ".join(str(summary[key]) for key in ("task_set", "task_set_version") if summary.get(key))
    what = ", ".join(part for part in (task_set, f"{n_answers} {tables.plural('answer', n_answers)}") if part)
    return f"{summary['model']}: {what}" if summary.get("model") else what


def grade_table(whole: dict[str, Any]) -> str:
    """A graded run as text."""
    summary = whole["judge"]
    lines = [*incomplete_lines(judges_in(summary)), title_of(summary, len(whole["results"]))]
    for name, each in judges_in(summary).items():
        lines += grade_lines(name, each)
    if "judges" in summary:
        lines += grade_lines("panel (the score most judges gave, else the median)", summary)
    return "\n".join([*lines, *panel_lines(summary), ""])


# === Compare ===


def compare_lines(name: str, summary: dict[str, Any]) -> list[str]:
    """One judge's figures on one pairing."""
    length = {**summary["length"], "value": summary["length"]["longer_won"]}
    flips = f"{summary['order_flips']} of {summary['compared']} (flip rate {tables.number(summary['flip_rate'])})"
    leaning = f"{summary['flips_first']} to the first shown, {summary['flips_second']} to the second"
    both = (
        f"a {summary['wins_a']}, b {summary['wins_b']}, equal {summary['ties']}, order decides {summary['order_flips']}"
    )
    lines = [
        ("both orders agree on", both),
        ("win rate of a", f"{tables.with_interval(summary['win_rate'])} over {summary['compared']} pairs"),
        ("sign test a against b", tables.p_value(summary["sign_test_p"])),
        ("order flips", f"{flips}: {leaning}, {tables.p_value(summary['flips_p'])}"),
        ("without a verdict", failures(summary)),
        (
            "same text, not sent",
            f"{summary['identical']} (win rate with them {tables.number(summary['win_rate_with_identical'])})",
        ),
        ("longer answer won", share_with_interval(length)),
    ]
    for category, found in summary["by_category"].items():
        lines.append((f"category {category}", f"win rate of a {found['win_rate']:.3f}, n {found['n']}"))
    return ["", f"judge {name}", *block(lines)]


def compare_table(whole: dict[str, Any]) -> str:
    """Two runs or more compared, as text."""
    summary = whole["judge"]
    names = list(whole["runs"])
    pairings = whole.get("pairings") or [{"a": names[0], "b": names[1], "judges": judges_in(summary)}]
    lines: list[str] = ["", *incomplete_lines(judges_in(summary))]
    for pairing in pairings:
        lines += ["", f"a = {pairing['a']}, b = {pairing['b']}"]
        for name, each in pairing["judges"].items():
            lines += compare_lines(name, each)
    if "judges" in summary:
        text = f"a {summary['wins_a']}, b {summary['wins_b']}, equal {summary['ties']} of {summary['compared']}"
        lines += ["", f"panel (majority of the judges' decisions, {names[0]} against {names[1]}): {text}"]
    lines += panel_lines(summary)
    for name, strengths in whole.get("strengths", {}).items():
        body = [(run, tables.with_interval(found)) for run, found in strengths.items()]
        lines += ["", f"Bradley-Terry strengths (mean 0) by {name}", *block(body)]
    return "\n".join([*lines[1 if lines[1] else 2 :], ""])
