"""A person's labels: which items are asked, in which order and on which side, and the file that keeps each answer.

A labels file is JSONL, one label a line, appended and on disk before the next item is shown. Nothing in it is ever
changed: a correction is a later line, and the last line of a person about an item is the one that counts. Several
people may write to one file. Pure but for `LabelBook`, which reads and appends that file. No network.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import agreement
import evidence

# === Constants ===

SCORES = (1, 2, 3, 4, 5)
PAIR_LABELS = ("A", "B", "equal")
KINDS = ("score", "pair")
ORDERS = ("original", "swapped")
# Steps of this fraction of a circle leave no large gap after any number of steps: any prefix is spread evenly.
GOLDEN_STEP = (math.sqrt(5) - 1) / 2
MAX_COMMENT = 10_000  # characters; a comment is a remark, not a document
MAX_NAME = 80
BLANK = b"\xef\xbb\xbf \t\r\n"
BEGINNING = b'{"time":"'  # of every line that is written here
CONTENT_DIGITS = 16  # of the sha256 that ties a label to the texts that were shown


class LabelError(Exception):
    """A labels file or an answer that is not what it has to be; the text names file, line, field, expected, got."""


# === Records ===


class Task(NamedTuple):
    """One item to be labelled.

    kind: 'score' (one answer, 1 to 5) or 'pair' (two answers, A, B or equal). panels: (title, text) shown above the
    answers. answers: the one answer, or the item's own A and B. judge: the judge's score, the judge's decision in the
    item's own A/B, 'invalid', or None without one; hidden until the end. why: the judge's reason. cluster: the
    question, None = a question of its own. panel: (judge, its verdict) for each judge where there were several.
    name: what to show instead of the id.
    """

    item: str
    kind: str
    panels: tuple[tuple[str, str], ...]
    answers: tuple[str, ...]
    category: str = ""
    judge: int | str | None = None
    why: str = ""
    cluster: str | None = None
    panel: tuple[tuple[str, int | str | None], ...] = ()
    name: str = ""

    @property
    def title(self) -> str:
        """What is shown as the item's name: its id, unless that would say whose answers these are."""
        return self.name or self.item

    @property
    def content(self) -> str:
        """A short hash of everything the person sees: labels of other texts under the same id are told apart."""
        seen = [self.kind, [list(panel) for panel in self.panels], list(self.answers)]
        return evidence.sha256(evidence.canonical(seen))[:CONTENT_DIGITS]


class Label(NamedTuple):
    """One line of a labels file.

    label: 1 to 5, or 'A' | 'B' | 'equal' in the item's own A/B; None = skipped. shown: which order a pair was seen in
    ('swapped' = the item's B stood first), None for a score. seconds: from showing the item to the answer.
    """

    time: str
    annotator: str
    kind: str
    item: str
    label: int | str | None
    shown: str | None
    comment: str
    seconds: float | None
    content: str


# === Sample ===


def digest_key(*parts: object) -> bytes:
    """A seeded, order-free random key of an item."""
    return hashlib.sha256(":".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def even_order(n: int, start: float) -> list[int]:
    """0 … n-1 in an order of which every prefix is spread evenly over the range.

    start in [0, 1): with a uniformly random one, every place is equally likely to be among the first k, for every k.
    Steps of the golden ratio around a circle of n equal arcs; a place is listed when its arc is first hit.
    """
    found: dict[int, None] = {}
    position = start
    while len(found) < n:
        found.setdefault(min(int(position * n), n - 1))
        position = (position + GOLDEN_STEP) % 1.0
    return list(found)


def stratified(tasks: Sequence[Task], seed: int) -> list[Task]:
    """All tasks in sampling order: the first k of them are the sample of size k.

    The tasks are laid out by the judge's label, then category, in random order within; even steps over that line
    give every label and category its share. Every item is equally likely to be drawn, a larger sample holds the
    smaller one, and the order of the file does not matter.
    """
    ranked = sorted(tasks, key=lambda task: (str(task.judge), task.category, digest_key(seed, task.item)))
    start = random.Random(f"{seed}:sample").random()
    return [ranked[place] for place in even_order(len(ranked), start)]


def presentation(tasks: Sequence[Task], n: int | None, seed: int, annotator: str) -> list[Task]:
    """The sample of n tasks (None = all) in this person's own random order."""
    chosen = stratified(tasks, seed)[:n]
    return sorted(chosen, key=lambda task: digest_key(seed, "order", annotator, task.item))


def shown_order(task: Task, seed: int, annotator: str) -> str | None:
    """Which side the item's A stands on for this person: 'original' (first) or 'swapped'; None for a score."""
    if task.kind != "pair":
        return None
    return ORDERS[digest_key(seed, "side", annotator, task.item)[0] & 1]


# === Read ===


def field(row: Mapping[str, Any], name: str, kinds: tuple[type, ...], where: str) -> Any:
    """One field of a label line. Raises: LabelError."""
    if name not in row:
        raise LabelError(f"{where}: field '{name}' is missing")
    value = row[name]
    if not isinstance(value, kinds) or isinstance(value, bool):
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise LabelError(f"{where}: field '{name}': expected {names}, got {str(value)[:60]!r}")
    return value


def one_of(value: Any, allowed: Sequence[Any], name: str, where: str) -> Any:
    """A value of a fixed list. Raises: LabelError."""
    if value not in allowed or isinstance(value, bool):
        expected = ", ".join("null" if one is None else str(one) for one in allowed)
        raise LabelError(f"{where}: field '{name}': expected one of {expected}, got {value!r}")
    return value


def parse_label(row: Any, where: str) -> Label:
    """The label that one line holds; unknown fields are ignored. Raises: LabelError naming file, line and field."""
    if not isinstance(row, dict):
        raise LabelError(f"{where}: expected a JSON object, got {type(row).__name__}")
    kind = one_of(field(row, "kind", (str,), where), KINDS, "kind", where)
    allowed: tuple[Any, ...] = (*(SCORES if kind == "score" else PAIR_LABELS), None)
    shown = one_of(row.get("shown"), ORDERS if kind == "pair" else (None,), "shown", where)
    seconds = row.get("seconds")
    return Label(
        time=field(row, "time", (str,), where),
        annotator=field(row, "annotator", (str,), where),
        kind=kind,
        item=field(row, "item", (str,), where),
        label=one_of(field(row, "label", (int, str, type(None)), where), allowed, "label", where),
        shown=shown,
        comment=str(row.get("comment") or ""),
        seconds=seconds if agreement.is_number(seconds) else None,
        content=str(row.get("content") or ""),
    )


def read_labels(path: str) -> list[Label]:
    """Every label of a file, corrections included, in the order given; [] for a file that is not there.

    Raises: LabelError, EvidenceError naming file and line. A last line without its end is read if it is whole.
    """
    if not os.path.exists(path):
        return []
    found = []
    for number, line in evidence.read_lines(path):
        if line.strip(BLANK):
            found.append(parse_label(evidence.parse_json(line, f"{path}:{number}"), f"{path}:{number}"))
    return found


def read_unfinished(path: str) -> tuple[list[Label], int]:
    """Every label of a plain file, and the bytes of a last line that a killed process did not finish (0 = whole).

    Raises: LabelError, EvidenceError for a file that holds anything else.
    """
    if path.endswith(".gz"):
        raise LabelError(f"{path}: labels are appended to a plain file, expected a name without .gz")
    found: list[Label] = []
    for number, line in evidence.read_lines(path) if os.path.exists(path) else ():
        if line.strip(BLANK):
            where = f"{path}:{number}"
            try:
                row = evidence.parse_json(line, where)
            except evidence.EvidenceError:
                begun = b"".join(line.split())[: len(BEGINNING)]
                if line.endswith(b"\n") or not (found or BEGINNING.startswith(begun)):
                    raise
                problem = evidence.tail_problem(line)
                if problem:
                    raise LabelError(f"{where}: no unfinished last line ({problem}); put the line feeds back") from None
                return found, len(line)
            found.append(parse_label(row, where))
    return found, 0


def standing(labels: Iterable[Label]) -> dict[tuple[str, str], Label]:
    """(annotator, item) -> the last label given, skips included."""
    return {(label.annotator, label.item): label for label in labels}


def revisions(labels: Iterable[Label]) -> int:
    """How many lines changed an earlier label of the same person on the same item (a new comment alone does not)."""
    last: dict[tuple[str, str], int | str | None] = {}
    changed = 0
    for label in labels:
        key = (label.annotator, label.item)
        changed += last.get(key) is not None and last[key] != label.label
        last[key] = label.label
    return changed


def check_content(labels: Iterable[Label], tasks: Iterable[Task], path: str, source: str) -> list[str]:
    """Refuse labels of other texts; returns the ids that have labels and are not among the tasks.

    Raises: LabelError when an item's texts or kind are not those that were labelled.
    """
    known = {task.item: task for task in tasks}
    foreign: dict[str, None] = {}
    for (_, item), label in standing(labels).items():
        task = known.get(item)
        if task is None:
            foreign.setdefault(item)
        elif label.kind != task.kind:
            raise LabelError(f"{path}: item {item!r}: labelled as a {label.kind}, but {source} asks for a {task.kind}")
        elif label.content and label.content != task.content:
            raise LabelError(
                f"{path}: item {item!r}: was labelled with other texts than {source} holds under this id "
                f"(content expected {task.content}, got {label.content})\n"
                "hint: keep these labels for the file they were made with, and name another one with --labels"
            )
    return list(foreign)


# === Write ===


class LabelBook:
    """The labels file of a session: what stands in it, and how a line is added. Only adding a line changes the file."""

    def __init__(self, path: str) -> None:
        """Raises: LabelError, EvidenceError for a file that holds anything but labels."""
        self.path = path
        self.labels, self.unfinished_bytes = read_unfinished(path)
        self.journal: evidence.Journal | None = None

    def append(self, label: Label) -> None:
        """Add one label; it is on disk when this returns.

        Raises: OSError when it cannot be kept; LabelError, EvidenceError when the file is no labels file any more.
        """
        if self.journal is None:
            os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
            read_unfinished(self.path)  # what stands there by now: nothing is cut off a file that is not ours
            path = os.path.realpath(self.path)  # a link that somebody set up for labels of their own is meant
            evidence.drop_torn_tail(path)
            self.journal = evidence.Journal(path)
        self.journal.append(evidence.row_bytes(label._asdict()))
        self.labels.append(label)

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None


# === Session ===


class Session:
    """One person going through the tasks: what is labelled, what is open, and how an answer is kept."""

    def __init__(
        self,
        tasks: Sequence[Task],
        annotator: str,
        book: LabelBook,
        *,
        seed: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """tasks: in the order of presentation. clock: POSIX time in seconds."""
        self.tasks, self.annotator, self.book, self.clock = list(tasks), annotator, book, clock
        self.shown = [shown_order(task, seed, annotator) for task in self.tasks]
        self.given = {item: label for (who, item), label in standing(book.labels).items() if who == annotator}

    def label(self, place: int) -> Label | None:
        """What stands for the task at a place; its `label` is None for a skipped one."""
        return self.given.get(self.tasks[place].item)

    def choice(self, place: int) -> int | str | None:
        """The label in shown positions: 'A' is the answer that stands first on the screen."""
        found = self.label(place)
        return None if found is None else to_side(found.label, self.shown[place])

    def answers(self, place: int) -> tuple[str, ...]:
        """The answers in shown order."""
        answers = self.tasks[place].answers
        return tuple(reversed(answers)) if self.shown[place] == "swapped" else answers

    def give(self, place: int, choice: int | str | None, comment: str = "", seconds: float | None = None) -> Label:
        """Keep an answer in shown positions (None = skip); it is on disk when this returns.

        Raises: LabelError for an answer that the task does not allow, OSError when it cannot be written.
        """
        task = self.tasks[place]
        allowed: tuple[Any, ...] = (*(SCORES if task.kind == "score" else PAIR_LABELS), None)
        one_of(choice, allowed, "label", f"item {task.item!r}")
        label = Label(
            time=evidence.utc_stamp(self.clock()),
            annotator=self.annotator,
            kind=task.kind,
            item=task.item,
            label=to_side(choice, self.shown[place]),
            shown=self.shown[place],
            comment=comment.strip()[:MAX_COMMENT],
            seconds=None if seconds is None else round(max(0.0, seconds), 1),
            content=task.content,
        )
        self.book.append(label)
        self.given[task.item] = label
        return label

    def next_open(self, after: int = -1) -> int | None:
        """The first place behind `after` without an answer, then from the start; None when nothing is open."""
        places = [*range(after + 1, len(self.tasks)), *range(after + 1)]
        return next((place for place in places if self.label(place) is None), None)

    def counts(self) -> Counter[str]:
        """How many of the tasks are 'labelled', 'skipped' and 'open'."""
        found = Counter({"labelled": 0, "skipped": 0, "open": 0})
        for place in range(len(self.tasks)):
            label = self.label(place)
            found["open" if label is None else "skipped" if label.label is None else "labelled"] += 1
        return found


def to_side(label: int | str | None, shown: str | None) -> int | str | None:
    """A pair label carried between the item's own A/B and shown positions (the same exchange both ways)."""
    return agreement.SWAPPED.get(label, label) if shown == "swapped" and isinstance(label, str) else label
