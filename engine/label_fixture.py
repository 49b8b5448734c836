"""Labelled pairs made into an evaluation folder that `run_eval.py` runs: your own labelled set in an evening.

The folder gets a `fixture.jsonl` with the people's votes and their plurality as gold (a pair that nobody labelled here
keeps the gold or the votes it came with), an `eval.json` with the toolkit's prompt, settings and arms, pinned, that
refers to the toolkit's own recipe.py and check.py, and a SOURCE.md that says where the labels come from. Nothing that
exists is overwritten. No network.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import agreement
import evidence
import label_results
import label_sources
import labels

# === Constants ===

SHARED_FILES = ("recipe", "check")  # used where they are; only the fixture is the folder's own
EMPTY_PINS = ("fixture_sha256", "recipe_sha256", "checker_sha256", "agreement_sha256", "client_sha256", "runner_sha256")
# Of the toolkit's eval.json, what does not hold for another set of pairs.
NOT_TAKEN_OVER = ("inputs_sha256", "tables_sha256", "build_hint", "files", "dimensions")


class FixtureError(Exception):
    """The folder cannot be made; the text says why and what to do."""


# === Rows ===


def vote_rows(given: Mapping[str, labels.Label]) -> list[dict[str, Any]]:
    """One vote per person who labelled an item, with the order it was seen in and the comment."""
    votes = []
    for who, label in sorted(given.items()):
        if label.label is not None:
            vote = {"judge": who, "label": label.label, "shown": label.shown, "comment": label.comment}
            votes.append({key: value for key, value in vote.items() if value})
    return votes


def question_of(row: Mapping[str, Any]) -> str:
    """The text a judge is shown: all that the person was shown above the answers."""
    panels = label_sources.panels_of(dict(row))
    if len(panels) < 2:
        return str(row["text"])
    (_, question), *rest = panels
    return "\n\n".join([question, *(f"{title}:\n{text}" for title, text in rest)])


def fixture_row(row: dict[str, Any], given: Mapping[str, labels.Label]) -> dict[str, Any] | None:
    """A fixture row with the people's votes, or None for a pair without a vote and without gold.

    Earlier votes by others stay; gold is the plurality of all votes, null where there is none. Gold that came with the
    pair stays gold where nobody voted here, and is kept as `earlier_gold` where somebody did. Rubric and reference
    become part of the question, as the judge must see what the person saw. A pair is its own question unless it says
    otherwise.
    """
    new = vote_rows(given)
    names = {vote["judge"] for vote in new}
    votes = [vote for vote in row.get("votes", []) if vote["judge"] not in names] + new
    if not votes and row["gold"] is None:
        return None
    made = {**row, "text": question_of(row), **({"votes": votes} if votes else {})}
    if new or row["gold"] is None:
        made["gold"] = agreement.gold_from_votes(vote["label"] for vote in votes)
    if made["text"] != row["text"]:
        made["parts"] = {
            key: made.pop(key) if key != "text" else row["text"] for key in label_sources.PANEL_TITLES if key in row
        }
    if new and row["gold"] is not None and "earlier_gold" not in row:
        made["earlier_gold"] = row["gold"]
    if new:
        made.pop("second_label", None)  # votes say the same and more
    return {**made, "cluster": made.get("cluster", made["item_id"])}


def fixture_rows(
    rows: Mapping[str, dict[str, Any]], tasks: Sequence[labels.Task], given: Iterable[labels.Label]
) -> list[dict[str, Any]]:
    """The rows of all pairs with a label, given here or brought along, in the file's order."""
    by_item = label_results.by_item(tasks, given)
    made = (fixture_row(row, by_item.get(item, {})) for item, row in rows.items())
    return [row for row in made if row is not None]


def labelled_here(rows: Sequence[dict[str, Any]], before: Mapping[str, dict[str, Any]]) -> int:
    """How many rows hold a vote that their pair did not come with."""
    return sum(row.get("votes", []) != before[row["item_id"]].get("votes", []) for row in rows)


def origin_line(rows: Sequence[dict[str, Any]], before: Mapping[str, dict[str, Any]]) -> str:
    """Where the labels of the rows come from, and what is left out, in one line."""
    here = labelled_here(rows, before)
    brought = [row for row in rows if row.get("votes", []) == before[row["item_id"]].get("votes", [])]
    with_gold = sum(before[row["item_id"]]["gold"] is not None for row in brought)
    by_votes = sum(row["gold"] is not None for row in brought) - with_gold
    split = len(brought) - with_gold - by_votes
    parts = [f"{here} labelled here"] if here else []
    parts += [f"{with_gold} with the gold they came with"] if with_gold else []
    parts += [f"{by_votes} with the plurality of the votes they came with"] if by_votes else []
    parts += [f"{split} whose votes have no plurality (gold null)"] if split else []
    parts += [f"{len(before) - len(rows)} without any label left out"] if len(before) > len(rows) else []
    return f"{len(rows)} of {len(before)} pairs: {', '.join(parts)}"


# === Settings ===


def slug_of(folder: str) -> str:
    """A folder's name as lower-case words joined by '-'."""
    words = re.findall(r"[a-z0-9]+", os.path.basename(os.path.abspath(folder)).lower())
    return "-".join(words) or "labelled-pairs"


def reference_to(home: str, folder: str, plain: str) -> str:
    """How eval.json names a file of the toolkit: relative to the folder, absolute across drives."""
    path = os.path.join(home, plain)
    try:
        return os.path.relpath(path, os.path.realpath(folder)).replace(os.sep, "/")
    except ValueError:
        return path


def settings(base: dict[str, Any], folder: str, home: str, title: str, notes: str) -> dict[str, Any]:
    """eval.json of the made evaluation, pins still empty: the toolkit's own settings with another name and fixture."""
    kept = {key: value for key, value in base.items() if key not in NOT_TAKEN_OVER}
    files = {name: reference_to(home, folder, f"{name}.py") for name in SHARED_FILES}
    source = {"license": "as the sources' own", "labels": notes, "notes": "SOURCE.md"}
    made: dict[str, Any] = {"slug": slug_of(folder), "title": title, "files": files}
    made.update(dict.fromkeys(EMPTY_PINS, ""))
    made["engine_sha256"] = {}
    made.update({key: value for key, value in kept.items() if key not in made})
    return {**made, "decision": base.get("decision", "both"), "fixture_source": source}


def source_text(found: dict[str, Any], rows: Sequence[dict[str, Any]], here: int) -> str:
    """SOURCE.md: where pairs and labels come from, in figures. here: how many rows were labelled by `human`."""
    golds = [row["gold"] for row in rows]
    counts = ", ".join(f"{label} {golds.count(label)}" for label in labels.PAIR_LABELS)
    models = f" Answers by {found['model']}." if found["model"] else ""
    name = "`, `".join(os.path.basename(path) for path in found["source"].split(", "))
    return f"""# Source

{len(rows)} pairs from `{name}`: {here} labelled by people with `judge.py human`, {len(rows) - here} with the gold they
came with.{models}

{label_lines(found, here)}- Gold in all: {counts}, no consensus {golds.count(None)} (null).
- Licence and origin of the texts are those of the file above; nothing here changes them.
"""


def label_lines(found: dict[str, Any], here: int) -> str:
    """What SOURCE.md says of labels given by `human`; nothing where there are none."""
    if not here:
        return ""
    who = ", ".join(f"{name} ({one['labelled']})" for name, one in found["annotators"].items())
    return f"""- Labelled by: {who}. Sides were shuffled by seed {found["seed"]}, no judge's verdict was shown.
- Gold of these pairs is the single most frequent label of all votes of a pair; gold they came with is `earlier_gold`.
- Every vote stands in `votes`, with the order in which it was given (`shown`) and its comment.
"""


# === Folder ===


def check_folder(folder: str) -> None:
    """Refuse a place where something would be overwritten. Raises: FixtureError."""
    if os.path.isfile(folder) or (os.path.isdir(folder) and os.listdir(folder)):
        raise FixtureError(
            f"{folder}: exists and is not an empty folder\nhint: name another one; nothing is overwritten"
        )


def make(
    folder: str, rows: Sequence[dict[str, Any]], found: dict[str, Any], home: str, runner: Any, here: int
) -> list[str]:
    """Write the evaluation folder; returns one line per file. Raises: FixtureError, OSError.

    home: the toolkit's folder. runner: run_eval.py as a module, whose --freeze sets the pins. here: how many of the
    rows were labelled by `human`, not before.
    """
    check_folder(folder)
    need_rows(rows)
    base = evidence.read_object(os.path.join(home, "eval.json"))
    made = settings(base, folder, home, *title_and_labels(rows, len(found["annotators"]), here))
    files = {
        "fixture.jsonl": b"".join(map(evidence.row_bytes, rows)),
        "eval.json": evidence.pretty(made),
        "SOURCE.md": source_text(found, rows, here).encode("utf-8", "backslashreplace"),
    }
    paths = [os.path.join(folder, name) for name in files]
    new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    try:
        for path, data in zip(paths, files.values()):
            evidence.write_atomic(path, data)
        freeze(folder, runner)
    except BaseException:
        take_back(paths, folder if new else None)
        raise
    return paths


def freeze(folder: str, runner: Any) -> None:
    """Set the pins. Raises: FixtureError for a file of the toolkit that cannot be pinned."""
    try:
        runner.freeze_config(folder)
    except runner.PinError as error:
        raise FixtureError(str(error)) from None


def take_back(paths: Iterable[str], folder: str | None) -> None:
    """Remove the files of a folder that could not be finished, and the folder where it is ours and empty."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
    if folder is not None:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def need_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Refuse a fixture of nothing. Raises: FixtureError."""
    if not rows:
        hint = 'label some first, or give each pair its "gold": "A", "B" or "equal"'
        raise FixtureError(f"no pair has a label, so there is nothing to make a fixture of\nhint: {hint}")


def title_and_labels(rows: Sequence[dict[str, Any]], n_voters: int, here: int) -> tuple[str, str]:
    """eval.json's title, and what its fixture_source says of the labels."""
    people = f"{n_voters} {'person' if n_voters == 1 else 'people'}"
    if here == len(rows):
        return f"{here} pairs labelled by {people}", f"people's votes, {here} pairs labelled by {people}"
    title = f"{len(rows)} pairs with gold labels"
    return title, f"{here} by votes of {people}, {len(rows) - here} as they came" if here else "as they came"


def make_file(path: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Write the fixture alone. Raises: FixtureError, OSError."""
    if os.path.exists(path):
        raise FixtureError(f"{path}: exists\nhint: name another file; nothing is overwritten")
    need_rows(rows)
    evidence.write_atomic(path, map(evidence.row_bytes, rows))
    return [path]
