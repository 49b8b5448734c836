"""What a page is made of: a run folder read back, its hashes compared, nothing recomputed.

`summary.json` gives every figure, the scored rows give what was said, `inputs/fixture.jsonl` the pairs. What was
compared with the manifest is listed as checks, and what was not compared is listed as open. Offline; writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import commands
import evidence
import fixtures
import page_judged_tables
import results

# === Constants ===

NEEDED = ("position", "length", "repeats", "cross", "models", "confidently_wrong")  # of a result of pairs
NUMBERS = ("value", "low", "high", "k", "n")  # of a figure: numbers or null
# What the fields of a summary hold, where they are there and not null: a kind, or what stands in the object: under "*"
# whatever its names are, else under names it must have. FIGURE: numbers or null, `value` and both bounds or none.
FIGURE = object()
SHARE = {"value": float, "k": float, "n": float}
RUN_SHAPE: dict[str, Any] = {
    **dict.fromkeys(("arms", "baselines", "position", "length", "repeats", "cross", "models", "people_by"), dict),
    **dict.fromkeys(("detectable", "usage", "cost_usd", "hashes", "bootstrap", "confidently_wrong", "by"), dict),
    **dict.fromkeys(("comparisons", "warnings"), list),
    **dict.fromkeys(("items", "questions", "no_consensus", "repeats_run"), float),
    **dict.fromkeys(("slug", "title", "decision", "headline", "split", "status"), str),
}
JUDGE_SHAPE: dict[str, Any] = {
    **dict.fromkeys(("graded", "judge_mean", "compared", "wins_a", "wins_b", "ties", "order_flips"), float),
    **dict.fromkeys(("flip_rate", "judge_failures", "flips_first", "flips_second"), float),
    **dict.fromkeys(("invalid", "failed", "missing", "unguided"), float),
    **dict.fromkeys(("scores", "mean_words_by_score", "codes"), {"*": int}),
    **dict.fromkeys(("judge_mean_interval", "win_rate"), FIGURE),
    "by_category_interval": {"*": {"value": float, "low": float, "high": float, "n": float}},
    "by_check": {"*": {"mean": int, "n": int}},
    "panel_agreement": {"exact": {"*": SHARE}, "alpha": float, "n": float, "reason": str},
    "kinship": {"*": dict},
    "judges": {"*": dict},
}
GRADE_SHAPE = {**JUDGE_SHAPE, "by_category": {"*": float}, "length": {"spearman": float, "low": float, "high": float}}
COMPARE_SHAPE = {**JUDGE_SHAPE, "by_category": {"*": {"win_rate": int, "n": int}}, "length": dict}
FILE_SHAPE: dict[str, Any] = {
    "run": dict,
    "runs": {"*": dict},
    "metrics": {"*": FIGURE},
    "judges": {"*": {"*": FIGURE}},
    **dict.fromkeys(("pairings", "identical", "cells", "disagreements", "big_disagreements"), list),
    "strengths": {"*": {"*": FIGURE}},
}
CELL_SHAPE = {"human": int, "judge": int, "n": int}
KIND_WORDS: dict[Any, str] = {
    dict: "an object",
    list: "a list",
    float: "a number or null",
    int: "a number",
    str: "a text",
}
FAILED, OPEN, PASSED = "no", "open", "yes"


@dataclass(frozen=True)
class Check:
    """One comparison of files: what was compared, and whether it held; open: it was not made here."""

    state: str  # yes | no | open
    text: str


@dataclass(frozen=True)
class Source:
    """One run as the page shows it. `path` is where to find it again, without the reader's own folders."""

    path: str
    summary: dict[str, Any]
    manifest: dict[str, Any]
    items: list[dict[str, Any]]
    rows: list[dict[str, Any]] = field(repr=False)
    checks: list[Check]
    again: str  # the command that recomputes every figure

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


# === Read ===


def found_file(folder: str, *names: str) -> str | None:
    """The first of some names that exists in a folder, as a path; links that lead out of the folder do not count."""
    top = os.path.realpath(folder)
    for name in names:
        path = os.path.join(folder, *name.split("/"))
        if os.path.isfile(path) and os.path.commonpath([os.path.realpath(path), top]) == top:
            return path
    return None


def short_path(folder: str) -> str:
    """The last parts of a run's path: the same on every machine that holds the run."""
    parts = os.path.realpath(folder).replace(os.sep, "/").split("/")
    return "/".join(parts[-3:] if len(parts) > 2 and parts[-3] in ("runs", "receipts") else parts[-2:])


def needed(folder: str, name: str, hint: str) -> str:
    """The path of a file a page cannot do without. Raises: EvidenceError with the command that makes it."""
    path = found_file(folder, name)
    if path is None:
        raise evidence.EvidenceError(f"{os.path.join(folder, name)}: is missing\nhint: {hint}")
    return path


def read_source(folder: str) -> Source:
    """A run folder or receipt folder. Raises: EvidenceError naming the file that is missing or unreadable."""
    manifest = evidence.read_manifest(folder)
    hint = f"score the run first: {commands.command_for(folder, '--rescore')}"
    summary = evidence.read_object(needed(folder, "summary.json", hint))
    if not isinstance(summary.get("arms"), dict):
        raise evidence.EvidenceError(f"{folder}/summary.json: field 'arms': expected an object\nhint: {hint}")
    missing = [key for key in NEEDED if "decision" in summary and key not in summary]
    if missing:
        text = f"{os.path.join(folder, 'summary.json')}: field {missing[0]!r} is missing: an earlier version wrote it"
        raise evidence.EvidenceError(f"{text}\nhint: {hint}")
    check_run_shape(summary, os.path.join(folder, "summary.json"))
    fixture = needed(folder, "inputs/fixture.jsonl", "a run holds a copy of its fixture; this folder is not whole")
    with evidence.open_file(fixture) as stream:
        items, _ = fixtures.load_items(stream.read(), fixture)
    chosen = fixtures.select(items, manifest["split"], manifest.get("limit"), manifest.get("shard"))
    scored = needed(folder, "scored.jsonl.gz", hint)
    most = len(chosen) * len(manifest["arms"]) * manifest["repeats"]
    rows = list(evidence.at_most(evidence.read_rows(scored), most, scored))
    path = short_path(folder)
    checks = checks_of(folder, manifest, summary)
    again = commands.command_anywhere(manifest["slug"], "--verify", path)
    return Source(path, summary, manifest, list(chosen), rows, checks, again)


# === Files of judge.py ===


def read_judged(paths: list[str]) -> list[dict[str, Any]]:
    """Files of `judge.py grade`, `compare` or `human`, at most one of each kind. Raises: EvidenceError."""
    files: dict[str, dict[str, Any]] = {}
    for path in paths:
        data = results.read_value(path)
        kind = page_judged_tables.kind_of_file(data)
        if kind is None:
            raise evidence.EvidenceError(f"{path}: expected a file that judge.py grade, compare or human wrote")
        if kind in files or (kind != "human" and set(files) - {"human"}):
            raise evidence.EvidenceError(
                f"{path}: a page shows one graded or compared file, and one of people's labels"
            )
        if kind != "human":
            results.checked_judged(data, path)
        check_judged_shape(data, path)
        files[kind] = data
    return list(files.values())


def check_judged_shape(data: dict[str, Any], path: str) -> None:
    """Refuse a file whose summaries cannot be shown. Raises: EvidenceError naming the fields."""
    shape = COMPARE_SHAPE if isinstance(data.get("pairs"), list) else GRADE_SHAPE
    problems = list(field_problems(data, FILE_SHAPE, ""))
    summaries = {"judge": data["judge"]} if "judge" in data else {}
    for name in ("pairings", "cells", "disagreements", "big_disagreements"):
        for place, one in enumerate(data[name] if isinstance(data.get(name), list) else []):
            where = f"{name}[{place}]"
            needs = {"pairings": {"a": str, "b": str, "judges": {"*": dict}}, "cells": CELL_SHAPE}
            differs = {"id": None, "human": None, "judge": None}
            problems += part_problems(one, needs.get(name, differs), where)
            summaries.update(inner_of(one, where) if name == "pairings" else {})
    summaries.update(inner_of(data.get("judge"), "judge"))
    for name, summary in summaries.items():
        if isinstance(summary, dict):
            problems += field_problems(summary, shape, f"{name}.")
    problems += figure_problems({key: value for key, value in data.items() if key not in ("results", "pairs")})
    results.refuse([f"{path}: {problem}" for problem in dict.fromkeys(problems)])


def inner_of(summary: Any, where: str) -> dict[str, Any]:
    """Field -> summary of each judge that a summary holds."""
    judges = summary.get("judges") if isinstance(summary, dict) else None
    return {f"{where}.judges.{name}": one for name, one in judges.items()} if isinstance(judges, dict) else {}


# === Shape of a summary ===


def check_run_shape(summary: dict[str, Any], path: str) -> None:
    """Refuse a run's summary that cannot be shown. Raises: EvidenceError naming the fields."""
    problems = [*field_problems(summary, RUN_SHAPE, ""), *figure_problems(summary)]
    results.refuse([f"{path}: {problem}" for problem in dict.fromkeys(problems)])


def field_problems(value: dict[str, Any], shape: dict[str, Any], where: str) -> Iterator[str]:
    """One line for each field that is there and not null, and not of its shape."""
    for key, part in value.items():
        if key in shape and part is not None:
            yield from part_problems(part, shape[key], f"{where}{key}")


def part_problems(part: Any, shape: Any, name: str) -> Iterator[str]:
    """What is wrong with one part of a summary; a shape of None is anything."""
    if isinstance(shape, dict) or shape is FIGURE:
        if not isinstance(part, dict):
            yield f"field '{name}': expected an object, got {results.kind_of(part)}"
            return
        if shape is FIGURE:
            bounds = ("low", "high") if "low" in part or "high" in part else ()
            shape = dict.fromkeys(("value", *bounds), float)
        for key in part if "*" in shape else shape:
            if key in part:
                yield from part_problems(part[key], shape.get(key, shape.get("*")), f"{name}.{key}")
            else:
                yield f"field '{name}.{key}' is missing"
    elif shape is not None and not fits(part, shape):
        yield f"field '{name}': expected {KIND_WORDS[shape]}, got {results.kind_of(part)}"


def fits(part: Any, kind: Any) -> bool:
    """Whether a value is of a kind; of numbers and texts null is, which says that there is none."""
    if kind in (int, float):
        number = isinstance(part, (int, float)) and not isinstance(part, bool)
        return number or (kind is float and part is None)
    return isinstance(part, kind) or (kind is str and part is None)


def figure_problems(summary: dict[str, Any]) -> list[str]:
    """One line for each part of a figure (an object with `value` and a count or bound) that is no number and not null.

    Goes down level by level, however deep a file is nested.
    """
    problems = []
    level: list[tuple[str, Any]] = [("", summary)]
    while level:
        below: list[tuple[str, Any]] = []
        for where, value in level:
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            figure = isinstance(value, dict) and "value" in value and any(key in value for key in NUMBERS[1:])
            for key, part in parts:
                name = f"{where}.{key}" if where else str(key)
                below += [(name, part)] if isinstance(part, (dict, list)) else []
                problems += list(part_problems(part, float, name)) if figure and key in NUMBERS else []
        level = below
    return problems


# === Checks ===


def checks_of(folder: str, manifest: dict[str, Any], summary: dict[str, Any]) -> list[Check]:
    """What can be compared without computing anything again."""
    found = [raw_check(folder, manifest), inputs_check(folder, manifest)]
    same = summary.get("hashes") == manifest.get("hashes") and summary.get("config_hash") == manifest.get("config_hash")
    found.append(
        Check(PASSED, "the summary names the same inputs and configuration as the manifest")
        if same
        else Check(FAILED, "the summary names other inputs or another configuration than the manifest")
    )
    other = manifest.get("slug") != commands.DEFAULT_SLUG
    place = f" ({commands.UNKNOWN}: the folder of {manifest.get('slug')})" if other else ""
    again = f"figures are shown as summary.json has them; this recomputes every one from the replies{place}:"
    found.append(Check(OPEN, again))
    return found


def notes_of(source: Source) -> list[str]:
    """Where tables come from, what of it does not hold, and how to recompute it; for tables that travel alone."""
    failed = [f"{source.path}: {check.text}" for check in source.checks if check.state == FAILED]
    return [f"{source.path}: figures as its summary.json has them; recomputed by `{source.again}`", *failed]


def raw_check(folder: str, manifest: dict[str, Any]) -> Check:
    expected, path = manifest.get("raw_sha256"), found_file(folder, "raw.jsonl.gz")
    if expected is None or path is None:
        return Check(OPEN, "no finished file of raw replies to compare")
    got = evidence.sha256_file(path)
    if got == expected:
        return Check(PASSED, f"the raw replies are the manifest's (sha256 {got[:12]}…)")
    return Check(FAILED, f"the raw replies are not the manifest's: expected {expected}, got {got}")


def inputs_check(folder: str, manifest: dict[str, Any]) -> Check:
    """Whether the kept copies of all inputs have the hashes the manifest names."""
    wrong, missing, hashes = [], [], dict(manifest.get("hashes") or {})
    for name, expected in hashes.items():
        path = found_file(folder, f"inputs/{name}")
        if path is None:
            missing.append(name)
        elif evidence.sha256_file(path) != expected:
            wrong.append(name)
    if wrong:
        return Check(FAILED, f"inputs that are not the manifest's: {', '.join(wrong)}")
    if missing:
        return Check(
            OPEN, f"{len(hashes) - len(missing)} of {len(hashes)} inputs compared; the others are not kept here"
        )
    return Check(PASSED, f"all {len(hashes)} inputs (fixture, prompt and settings, code) are the manifest's")
