"""What a page is made of: a run folder read back, its hashes compared, nothing recomputed.

`summary.json` gives every figure, the scored rows give what was said, `inputs/fixture.jsonl` the pairs. What was
compared with the manifest is listed as checks, and what was not compared is listed as open. Offline; writes nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import commands
import evidence
import fixtures
import page_judged_tables

# === Constants ===

NEEDED = ("position", "length", "repeats", "cross", "models", "confidently_wrong")  # of a result of pairs
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
        data = evidence.read_object(path)
        kind = page_judged_tables.kind_of_file(data)
        if kind is None:
            raise evidence.EvidenceError(f"{path}: expected a file that judge.py grade, compare or human wrote")
        if kind in files or (kind != "human" and set(files) - {"human"}):
            raise evidence.EvidenceError(
                f"{path}: a page shows one graded or compared file, and one of people's labels"
            )
        check_rows(data, kind, path)
        files[kind] = data
    return list(files.values())


def check_rows(data: dict[str, Any], kind: str, path: str) -> None:
    """Refuse items that are no objects. Raises: EvidenceError naming the place."""
    name = {"grade": "results", "compare": "pairs"}.get(kind)
    for place, row in enumerate(data[name] if name else []):
        if not isinstance(row, dict):
            raise evidence.EvidenceError(f"{path}: {name}[{place}]: expected an object, got {type(row).__name__}")


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
