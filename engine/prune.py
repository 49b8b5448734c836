"""Remove old runs of one evaluation, after asking: the only place of the toolkit where evidence is deleted.

Kept are the newest complete runs, every incomplete one, every run that a receipt rests on, whatever is no run of ours,
and all other evaluations. A run that another process works on is kept too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import evidence

# === Choose ===


def receipted_hashes(top: str) -> set[str]:
    """raw_sha256 of every run that a receipt below `top` names, as text found in its JSON files."""
    found: set[str] = set()
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith(".json"):
                with evidence.open_file(os.path.join(folder, name)) as stream:
                    text = stream.read(evidence.MAX_LINE).decode("utf-8", "replace")
                found.update(evidence.SHA256_TEXT.findall(text))
    return found


def runs_of(top: str, slug: str) -> list[tuple[str, dict[str, Any]]]:
    """(folder, manifest) of every run of one evaluation, oldest first; other folders and files are passed over."""
    found = []
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else []:
        folder = os.path.join(top, name)
        if os.path.islink(folder):
            continue
        try:
            manifest = evidence.read_manifest(folder)
        except evidence.EvidenceError:
            continue
        if manifest.get("slug") == slug:
            found.append((folder, manifest))
    return found


def why_kept(folder: str, manifest: dict[str, Any], receipted: set[str]) -> str | None:
    """Why a run is never removed, or None."""
    if manifest.get("status") != "complete" or os.path.exists(os.path.join(folder, "journal.jsonl")):
        return "incomplete"
    places = (folder, os.path.join(folder, "receipt"))
    if (
        any(os.path.exists(os.path.join(place, "receipt.json")) for place in places)
        or manifest.get("raw_sha256") in receipted
    ):
        return "a receipt rests on it"
    return None


def choose(top: str, slug: str, keep: int, receipted: set[str]) -> tuple[list[str], list[str]]:
    """(folders to remove, lines that say what is kept and why)."""
    removable, kept = [], []
    for folder, manifest in runs_of(top, slug):
        why = why_kept(folder, manifest, receipted)
        if why is None:
            removable.append(folder)
        else:
            kept.append(f"{folder}: kept: {why}")
    last = max(0, len(removable) - keep)
    return removable[:last], kept + [f"{folder}: kept: among the newest {keep}" for folder in removable[last:]]


# === Remove ===


def remove(folders: list[str], say: Callable[[str], None]) -> list[str]:
    """Delete runs, each under its lock; returns one line for each that could not be."""
    problems = []
    for folder in folders:
        try:
            with evidence.Lock(folder):
                shutil.rmtree(folder)
        except (OSError, evidence.EvidenceError) as error:
            problems.append(f"{folder}: not removed: {error}")
        else:
            say(f"{folder}: removed")
    return problems


def agreed(stream: Any) -> bool:
    """Whether the next line of input is 'yes'; no input is no."""
    return str(stream.readline()).strip().lower() == "yes"
