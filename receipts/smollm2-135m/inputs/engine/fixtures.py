"""The labelled pairs of an evaluation: fixture.jsonl read, every row of it checked, the pairs of a run chosen.

A row that cannot be used is an error that names file, line, field, expected and got; one that is legitimate and still
worth knowing (an empty answer, say) is an oddity. Pairs stay bytes until they are asked for. Pure.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import evidence

# === Constants ===

SPLITS = ("dev", "test")
GOLD_LABELS = ("A", "B", "equal")
ODDITIES = ("empty_answer", "nul", "same_text")  # what row_oddities may find in a row

# === Items ===


class Items(Sequence[dict[str, Any]]):
    """Labelled pairs, parsed when asked for: a hundred thousand of them cost the file's own bytes and no more."""

    def __init__(self, data: bytes, starts: array[int], ends: array[int], ids: list[str], splits: bytes) -> None:
        """splits: one byte an item, its place in SPLITS."""
        self.data, self.starts, self.ends, self.ids, self.splits = data, starts, ends, ids, splits

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.chosen(range(len(self))[place])
        text = self.data[self.starts[place] : self.ends[place]].decode("utf-8")
        row: dict[str, Any] = evidence.PLAIN.decode(text[1:] if text[0] == "\ufeff" else text)
        return row

    def texts(self) -> Iterator[str]:
        """The items' lines as they stand in the file, one after the other."""
        return (self.data[start:end].decode("utf-8") for start, end in zip(self.starts, self.ends))

    def chosen(self, places: Iterable[int]) -> Items:
        """The items at the given places, over the same bytes."""
        chosen = list(places)
        starts, ends = array("q", (self.starts[i] for i in chosen)), array("q", (self.ends[i] for i in chosen))
        splits = bytes(self.splits[i] for i in chosen)
        return Items(self.data, starts, ends, [self.ids[i] for i in chosen], splits)


def no_items() -> Items:
    """The pairs of a fixture that is not there."""
    return Items(b"", array("q"), array("q"), [], b"")


def row_problems(row: Any) -> list[str]:
    """What is wrong with one fixture row, each naming the field, expected and got."""
    if not isinstance(row, dict):
        return [f"expected a JSON object, got {type(row).__name__}"]
    problems = []
    for field in ("item_id", "split", "text", "answer_a", "answer_b"):
        if field not in row:
            problems.append(f"field '{field}' is missing")
        elif not isinstance(row[field], str):
            problems.append(f"field '{field}': expected a text, got {type(row[field]).__name__}")
    if row.get("item_id") == "":
        problems.append("field 'item_id': expected a non-empty text, got ''")
    if isinstance(row.get("split"), str) and row["split"] not in SPLITS:
        problems.append(f"field 'split': expected dev or test, got {row['split']!r}")
    return problems + label_problems(row)


def label_problems(row: dict[str, Any]) -> list[str]:
    """What is wrong with gold, votes, category and cluster of one fixture row."""
    problems = []
    if "gold" not in row:
        problems.append("field 'gold' is missing (write null for an item without consensus)")
    elif row["gold"] is not None and row["gold"] not in GOLD_LABELS:
        problems.append(f"field 'gold': expected A, B, equal or null, got {row['gold']!r}")
    for field in ("category", "cluster", "fault", "model_a", "model_b"):
        if field in row and not isinstance(row[field], str):
            problems.append(f"field '{field}': expected a text, got {type(row[field]).__name__}")
    votes = row.get("votes", [])
    if not isinstance(votes, list):
        return [*problems, f"field 'votes': expected a list, got {type(votes).__name__}"]
    for place, vote in enumerate(votes):
        label = vote.get("label") if isinstance(vote, dict) else None
        if not isinstance(vote, dict) or label not in GOLD_LABELS or not isinstance(vote.get("judge"), str):
            problems.append(f"field 'votes[{place}]': expected {{judge, label A|B|equal}}, got {str(vote)[:60]}")
    return problems


class Oddity(NamedTuple):
    """Something in one row that is legitimate and still worth knowing."""

    kind: str  # one of ODDITIES
    text: str  # "item: what"


def row_oddities(row: dict[str, Any]) -> list[Oddity]:
    """The oddities of one row: an empty answer, a NUL, one text twice where gold has a winner or nothing."""
    found, item_id = [], row["item_id"]
    for field in ("answer_a", "answer_b"):
        if not row[field]:
            found.append(Oddity("empty_answer", f"{item_id}: {field} is empty (it is shown as an empty answer)"))
        if "\0" in row[field]:
            found.append(Oddity("nul", f"{item_id}: {field} holds U+0000 (sent unchanged; servers may cut there)"))
    if row["answer_a"] == row["answer_b"] and row.get("gold") != "equal":  # a pair with gold equal may be meant so
        found.append(Oddity("same_text", f"{item_id}: both answers are the same text"))
    return found


def line_spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(line number, start, end) of every non-blank line, split on line feed only."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        if data[start:end].strip(b" \t\r\n\xef\xbb\xbf"):
            yield number, start, end
        start = end + 1


def load_items(data: bytes, name: str) -> tuple[Items, list[Oddity]]:
    """Check every row of a fixture's bytes; returns the items and their oddities.

    Raises: EvidenceError that lists all faulty lines (the first 20 in full).
    """
    starts, ends, ids, splits = array("q"), array("q"), [], bytearray()
    lines: dict[str, int] = {}
    problems: list[str] = []
    oddities: list[Oddity] = []
    for number, start, end in line_spans(data):
        try:
            row = evidence.parse_json(data[start:end], f"{name}:{number}")
        except evidence.EvidenceError as error:
            problems.append(str(error).replace(f"{name}:{number}:", f"{name}:{number}: line {number}:", 1))
            continue
        found = row_problems(row)
        item_id = str(row.get("item_id", "")) if isinstance(row, dict) else ""
        label = f"{name}:{number}: " + (f"item {item_id!r}: " if item_id else "")
        problems += [label + text for text in found]
        if found:
            continue
        if item_id in lines:
            problems.append(f"{name}:{number}: item_id {item_id!r} stands twice (line {lines[item_id]} and {number})")
        lines[item_id] = number
        oddities += row_oddities(row)
        starts.append(start)
        ends.append(end)
        ids.append(item_id)
        splits.append(SPLITS.index(row["split"]))
    refuse(problems, name, bool(ids))
    return Items(data, starts, ends, ids, bytes(splits)), oddities


def refuse(problems: list[str], name: str, any_items: bool) -> None:
    """Raise one error that lists the problems; an empty fixture is one."""
    if not problems and not any_items:
        problems = [f"{name}: holds no items"]
    if problems:
        more = (
            [f"… and {len(problems) - evidence.MAX_LISTED} more problems"]
            if len(problems) > evidence.MAX_LISTED
            else []
        )
        raise evidence.EvidenceError("\n".join(problems[: evidence.MAX_LISTED] + more))


def select(items: Items, split: str, limit: int | None, shard: str | None) -> Items:
    """The items of a run: those of the split, the first `limit` of them, every n-th from the i-th for shard 'i/n'."""
    wanted = SPLITS.index(split)
    places = [place for place, code in enumerate(items.splits) if code == wanted]
    places = places[:limit] if limit is not None else places
    if shard is not None:
        index, _, count = shard.partition("/")
        places = places[int(index) - 1 :: int(count)]
    return items.chosen(places)
