"""From the rows of a run to its result, for evaluations of either kind.

Every kept reply is parsed and scored again; what was recorded beside it is only compared. The scored rows and the
summary are written beside the raw rows, and can be made again from them at any time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import evidence
import generate
import scores
import summary
import verdicts

# === Rescore ===


def raw_source(
    folder: str, manifest: dict[str, Any], evaluation: Any, items: Any, arms: Any
) -> Iterable[tuple[dict[str, Any], bytes]]:
    """(raw row, its line) of a run, from its raw file, or from the journal of one that is not complete."""
    path = os.path.join(folder, "raw.jsonl.gz")
    if manifest["status"] == "complete":
        most = len(items) * len(arms) * manifest["repeats"]
        return evidence.at_most(evidence.read_own_rows(path), most, path)
    runs = generate.arm_runs(arms, evaluation.config, len(items), manifest["repeats"])
    journal = os.path.join(folder, "journal.jsonl")
    if not os.path.exists(journal):
        return []
    places = {item_id: place for place, item_id in enumerate(items.ids)}
    generate.read_journal(journal, runs, places)
    return ((row, evidence.row_bytes(row)) for row in generate.raw_rows(journal, items, runs, partial=True))


def check_raw(folder: str, manifest: dict[str, Any]) -> list[str]:
    """Whether the raw file is the one that the manifest names."""
    if manifest["status"] != "complete":
        return []
    path = os.path.join(folder, "raw.jsonl.gz")
    got = evidence.sha256_file(path)
    expected = manifest.get("raw_sha256")
    return [] if got == expected else [f"{path}: sha256 expected {expected}, got {got}"]


def missing_rows(manifest: dict[str, Any], tables: dict[str, verdicts.ArmTable]) -> list[str]:
    """One line for every judge of a complete run whose rows are not all there, unless it never had them (imported)."""
    if manifest["status"] != "complete" or manifest.get("sparse"):
        return []
    counts = {name: table.choices["original"].count(verdicts.MISSING) for name, table in tables.items()}
    return [f"raw.jsonl.gz: {name}: {count} rows are missing" for name, count in counts.items() if count]


def result_of(
    evaluation: Any,
    items: Any,
    tables: dict[str, verdicts.ArmTable],
    scored: Callable[[], Iterable[dict[str, Any]]],
    manifest: dict[str, Any],
    options: Any,
) -> dict[str, Any]:
    """The result of a run of either kind, with the evaluation's own tables where there are some. scored: the rows."""
    if evaluation.is_pairwise:
        result = summary.summarise(items, tables, manifest, evaluation.config, options)
    else:
        result = scores.summarise(items, scored(), tables, manifest, evaluation.config, options)
    if evaluation.tables is not None:
        settings = summary.bootstrap_settings(evaluation.config, options)
        result["tables"] = summary.rounded(evaluation.tables.tables(items, scored(), evaluation.config, settings))
    return result


def rescore(
    evaluation: Any, folder: str, manifest: dict[str, Any], items: Any, arms: list[Any], options: Any
) -> tuple[dict[str, Any], list[str]]:
    """Parse and score every kept reply again, write scored rows and summary; returns the result and what mismatched.

    Nothing is written into a receipt, whose files are what its sums say.
    """
    configs = {arm.name: arm.overlay(evaluation.config) for arm in arms}
    settings = {arm.name: arm.settings for arm in arms}
    reader = verdicts.Reader(items, settings, configs, manifest["repeats"], evaluation.recipe)
    problems = check_raw(folder, manifest)
    source = raw_source(folder, manifest, evaluation, items, arms)
    scored = verdicts.scored_lines(source, reader, items, evaluation.check.score, "raw.jsonl.gz")
    with place_for(folder) as place:
        path = os.path.join(place, "scored.jsonl.gz")
        evidence.write_lines(path, scored, evidence.QUICK_LEVEL)
        problems += missing_rows(manifest, reader.tables)
        result = result_of(evaluation, items, reader.tables, lambda: evidence.read_rows(path), manifest, options)
        evidence.write_atomic(os.path.join(place, "summary.json"), evidence.pretty(result))
    return result, problems + reader.problems


def is_receipt(folder: str) -> bool:
    """Whether a folder is published evidence, which stays as it is."""
    return os.path.exists(os.path.join(folder, "receipt.json"))


def place_for(folder: str) -> contextlib.AbstractContextManager[str]:
    """Where scored rows and summary go: into the run; for a receipt into a folder that is gone afterwards."""
    return tempfile.TemporaryDirectory() if is_receipt(folder) else contextlib.nullcontext(folder)
