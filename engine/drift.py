"""What a run was made with, against what it is scored with now.

A run keeps a copy of its inputs. Its replies stay what they are when pairs, labels or settings change afterwards, but
the figures worked out of them do not: whoever rescores such a run is told, field by field. Only reads.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import commands
import evidence
import fixtures
import tables

# === Constants ===

TOOLKIT = ("agreement.py", "client.py", "run_eval.py")  # besides engine/; a newer toolkit changes no input
MAX_FIELDS = 6  # named of one file


def lines_of(folder: str, manifest: dict[str, Any], evaluation: Any) -> list[str]:
    """One line that names what differs, with fields and counts where the run's own copy is still there; or nothing."""
    then, now = manifest.get("hashes") or {}, evaluation.hashes
    parts = []
    for name in sorted(set(then) | set(now)):
        if then.get(name) == now.get(name) or name.startswith("engine/") or name in TOOLKIT:
            continue
        if name == "check.py" and is_toolkits(name, now.get(name)):
            continue
        what = difference(os.path.join(folder, "inputs", name), name, then.get(name), evaluation)
        if what != "":
            parts.append(name if what is None else f"{name} ({what})")
    if not parts:
        return []
    copies = os.path.join(folder, "inputs")
    own = f"; the run's own are in {copies}" if os.path.isdir(copies) else ""
    return [f"{folder}: scored with other inputs than the run was made with: {', '.join(parts)}{own}"]


def is_toolkits(name: str, digest: str | None) -> bool:
    """Whether an evaluation's file is the toolkit's own, and no file of the evaluation."""
    try:
        return evidence.sha256_file(os.path.join(commands.toolkit_home(), name)) == digest
    except OSError:
        return False


def difference(path: str, name: str, manifest_hash: str | None, evaluation: Any) -> str | None:
    """How the run's own copy of a file differs; '' = in nothing but pins, None = there is nothing to say or to read."""
    if name not in ("eval.json", "fixture.jsonl"):
        return None
    try:
        if evidence.sha256_file(path) != manifest_hash:
            return "the run's copy of it was changed since"
        if name == "eval.json":
            return ", ".join(settings_changed(evidence.read_object(path), evaluation.config))
        with evidence.open_file(path) as stream:
            before, _ = fixtures.load_items(stream.read(), path)
        return ", ".join(pairs_changed(before, evaluation.items))
    except (OSError, evidence.EvidenceError):
        return None


def settings_changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The settings of two eval.json that differ, pins left out."""
    names = [
        name
        for name in dict.fromkeys([*before, *after])
        if not name.endswith("_sha256") and name != "inputs" and before.get(name) != after.get(name)
    ]
    return at_most(names)


def pairs_changed(before: fixtures.Items, after: fixtures.Items) -> list[str]:
    """'gold of 20 pairs', 'text of 1 pair', '3 pairs more': how two sets of pairs differ."""
    places = {item_id: place for place, item_id in enumerate(after.ids)}
    counts: Counter[str] = Counter()
    for item_id, item in zip(before.ids, before):
        other = after[places[item_id]] if item_id in places else item
        counts.update(key for key in dict.fromkeys([*item, *other]) if item.get(key) != other.get(key))
    found = at_most([f"{name} of {pairs_text(count)}" for name, count in counts.most_common()])
    more, fewer = len(set(after.ids) - set(before.ids)), len(set(before.ids) - set(after.ids))
    found += [f"{pairs_text(count)} {word}" for count, word in ((more, "more"), (fewer, "fewer")) if count]
    return found or ["the order or the spelling of its rows"]


def pairs_text(count: int) -> str:
    return f"{count} {tables.plural('pair', count)}"


def at_most(names: list[str]) -> list[str]:
    return names if len(names) <= MAX_FIELDS else [*names[:MAX_FIELDS], f"{len(names) - MAX_FIELDS} more"]
