"""From the rows of a run to its result, for evaluations of either kind.

Every kept reply is parsed and scored again; what was recorded beside it is only compared. The scored rows and the
summary are written beside the raw rows, and can be made again from them at any time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any

import crew
import evidence
import generate
import scores
import summary
import verdicts

# === Constants ===

BLOCK_ROWS = 512  # rows scored and packed at a time; the scored file is one gzip member for each such block
SHARED_ITEMS = 20_000  # pairs from which a copy of this process works out part of the summary meanwhile
SHARED_FROM = 20_000  # rows from which starting copies of this process is worth it

# === Raw rows ===


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


# === Scored rows ===


def blocks_of(source: Iterable[Any]) -> Iterator[list[Any]]:
    """The same rows in blocks of a fixed number; without any row one empty block."""
    rows = iter(source)
    yield list(islice(rows, BLOCK_ROWS))
    while block := list(islice(rows, BLOCK_ROWS)):
        yield block


def scored_member(block: Iterable[verdicts.Line], reader: verdicts.Reader, evaluation: Any, name: str) -> bytes:
    """A block's scored rows, packed: quickly, for they can be made again from the raw rows at any time."""
    lines = verdicts.scored_lines(block, reader, reader.items, evaluation.check.score, name)
    return evidence.gzip_member(b"".join(lines))


def share_of(
    number: int, copies: int, path: str, most: int, reader: verdicts.Reader, evaluation: Any
) -> Generator[bytes, None, bytes]:
    """What one of several copies of this process scores: every n-th block of the raw file; then what it counted."""
    lines = evidence.at_most(evidence.read_lines(path), most, path)
    for block in islice(blocks_of(lines), number, None, copies):
        rows = ((evidence.own_row(line, f"{path}:{at}"), line) for at, line in block)
        yield scored_member(rows, reader, evaluation, path)
    return reader.said()


def shared_pieces(path: str, most: int, reader: verdicts.Reader, evaluation: Any) -> Iterator[bytes]:
    """The scored file of a complete run, made by copies of this process. Raises: CrewError when one must do it alone,
    which is also the case where anything is wrong with a row: only one who reads all of them can say what.
    """
    copies = crew.copies_here()
    if copies < 2 or most < SHARED_FROM:
        raise crew.CrewError("not worth it")
    team = crew.Crew(copies, lambda number: share_of(number, copies, path, most, reader, evaluation))
    yield from team.pieces()
    if not all(reader.absorb(said) for said in team.last_words) or reader.problems:
        raise crew.CrewError("a row is not as it should be")


def write_scored(
    path: str, evaluation: Any, folder: str, manifest: dict[str, Any], items: Any, arms: list[Any]
) -> verdicts.Reader:
    """Write a run's scored rows; returns the reader that went through all of them. Raises: EvidenceError."""
    configs = {arm.name: arm.overlay(evaluation.config) for arm in arms}
    settings = {arm.name: arm.settings for arm in arms}

    def fresh_reader() -> verdicts.Reader:
        return verdicts.Reader(items, settings, configs, manifest["repeats"], evaluation.recipe)

    if manifest["status"] == "complete":
        most, reader = len(items) * len(arms) * manifest["repeats"], fresh_reader()
        with contextlib.suppress(crew.CrewError):
            raw = os.path.join(folder, "raw.jsonl.gz")
            evidence.write_atomic(path, shared_pieces(raw, most, reader, evaluation))
            return reader
    reader = fresh_reader()
    lines = verdicts.scored_lines(
        raw_source(folder, manifest, evaluation, items, arms), reader, items, evaluation.check.score, "raw.jsonl.gz"
    )
    evidence.write_atomic(path, (evidence.gzip_member(b"".join(block)) for block in blocks_of(lines)))
    return reader


# === Result ===


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
        large = len(items) >= SHARED_ITEMS and crew.copies_here() > 1
        aside = crew.aside if large else summary.when_asked
        result = summary.summarise(items, tables, manifest, evaluation.config, options, aside)
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
    problems = check_raw(folder, manifest)
    with place_for(folder) as place, no_collector():
        path = os.path.join(place, "scored.jsonl.gz")
        reader = write_scored(path, evaluation, folder, manifest, items, arms)
        problems += missing_rows(manifest, reader.tables)
        result = result_of(evaluation, items, reader.tables, lambda: evidence.read_rows(path), manifest, options)
        evidence.write_atomic(os.path.join(place, "summary.json"), evidence.pretty(result))
    return result, problems + reader.problems


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Without the search for cycles: rows and tables are trees, and it would walk all of them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def is_receipt(folder: str) -> bool:
    """Whether a folder is published evidence, which stays as it is."""
    return os.path.exists(os.path.join(folder, "receipt.json"))


def place_for(folder: str) -> contextlib.AbstractContextManager[str]:
    """Where scored rows and summary go: into the run; for a receipt into a folder that is gone afterwards."""
    return tempfile.TemporaryDirectory() if is_receipt(folder) else contextlib.nullcontext(folder)
