"""The tables of a report: those of the result, and those that stand behind the pictures.

They serve the page and its text forms alike, for a paper, a pull request, a spreadsheet. Pure.
"""

from __future__ import annotations

from typing import Any

import tables

# === Tables behind pictures ===


def plain(name: str) -> str:
    return name.replace("_", " ")


def confusion_section(result: dict[str, Any]) -> tables.Section:
    """Gold against decision, one line per judge and gold class."""
    labels = ("A", "B", "equal", "invalid")
    body = []
    for name, arm in result["arms"].items():
        for gold, cells in arm["confusion"].items():
            body.append((name, gold, *[str(cells[label]) for label in labels]))
    return "Gold against decision", ("judge", "gold", *[f"decides {label}" for label in labels]), body, []


def models_section(result: dict[str, Any]) -> tables.Section | None:
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
    return f"{tables.number(found['rate'])} ({found['won']}/{found['tied']}/{found['lost']})"


def crossed_section(result: dict[str, Any], name: str) -> tables.Section | None:
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


def leaning_section(result: dict[str, Any], dimension: str) -> tables.Section | None:
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


# === All tables ===


def is_pairwise(result: dict[str, Any]) -> bool:
    """Whether a result is of labels; a result of numbers has neither gold nor decisions."""
    return "decision" in result


def all_sections(result: dict[str, Any]) -> list[tables.Section]:
    """Every table of a report: those of the result, by every dimension, and what stands behind the pictures."""
    found: list[tables.Section | None] = [*tables.sections(result, True)]
    if is_pairwise(result):
        found += [confusion_section(result), models_section(result)]
        found += [leaning_section(result, dimension) for dimension in result["by"]]
        found += [crossed_section(result, name) for name in result["arms"]]
    return [part for part in found if part and part[2]]


def as_markdown(result: dict[str, Any]) -> str:
    """Every table of a report as markdown."""
    lines = tables.head_section(result) if is_pairwise(result) else tables.score_head(result)
    for title, head, body, notes in all_sections(result):
        lines += ["", f"## {title}", "", *tables.markdown(head, body)]
        lines += ["", *[f"- {note}" for note in notes]] if notes else []
    lines += ["", *tables.counts_lines(result)] if is_pairwise(result) else []
    lines += ["", *[f"warning: {text}" for text in result["warnings"]]] if result["warnings"] else []
    return "\n".join(lines) + "\n"
