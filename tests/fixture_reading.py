"""Small readers for the proofs of the fixture: words, sentences and items of an answer, and a question's source text.

    from fixture_reading import count_words, quoted_source
    count_words("It's a well-kept bridge.")      # 4
    quoted_source("extraction-16")               # the text that the question quotes

Reads fixture.jsonl once, writes nothing.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from rooms import ROOT

# === Constants ===

# Words by which a text speaks to whoever grades it. Guarantees nothing about a new text: tests/test_fixture.py checks
# that it is found in every answer with a planted instruction or flattery and in no other answer of the set.
ADDRESSES = re.compile(
    r"\b(?:evaluators?|graders?|evaluating)\b|\b(?:to the judge|grades this)\b|^judge:|<!--"
    r"|\bweigh(?:ed by|s this answer|s every word)\b",
    re.IGNORECASE | re.MULTILINE,
)

# === The set ===


@functools.lru_cache(maxsize=1)
def pairs() -> dict[str, dict[str, Any]]:
    """All pairs of fixture.jsonl by item_id, in file order."""
    lines = (ROOT / "fixture.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    items = [json.loads(line) for line in lines]
    return {item["item_id"]: item for item in items}


def better_and_worse(item: dict[str, Any]) -> tuple[str, str]:
    """(the answer that gold names, the answer with the planted fault)."""
    answers = (item["answer_a"], item["answer_b"])
    return answers if item["gold"] == "A" else (answers[1], answers[0])


def question(item_id: str) -> str:
    """The question of a pair, as a judge sees it."""
    return str(pairs()[item_id]["text"])


def quoted_source(item_id: str) -> str:
    """The longest text in double quotes in a question: the letter, note or report that the answers must keep to."""
    quotes: list[str] = re.findall(r'"([^"]+)"', question(item_id))
    return max(quotes, key=len)


# === Reading an answer ===


def words(text: str) -> list[str]:
    """The words in lower case: runs of letters and digits, joined by an inner apostrophe or hyphen."""
    return re.findall(r"[^\W_]+(?:['-][^\W_]+)*", text.lower())


def count_words(text: str) -> int:
    """Number of words as `words` cuts them."""
    return len(words(text))


def sentences(text: str) -> list[str]:
    """Sentences of plain prose: cut after . ! or ? before white space."""
    return [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]


def numbered_items(text: str) -> list[str]:
    """Texts of the numbered list items, one line each."""
    return re.findall(r"(?m)^\d+\. (.+)$", text)


def items(text: str) -> list[str]:
    """Texts of all list items: lines that begin with -, * or a number and a full stop."""
    return re.findall(r"(?m)^\s*(?:[-*]|\d+\.) +(.*)$", text)


def integers(text: str) -> list[int]:
    """All whole numbers in reading order."""
    return [int(item) for item in re.findall(r"\d+", text)]


def figures(text: str) -> set[str]:
    """All figures as they are written, clock times and thousands commas kept together."""
    return set(re.findall(r"\d+(?:[,:]\d+)*", text))


def bold_text(text: str) -> str:
    """The last bold span, where worked answers put their result; empty if there is none."""
    spans: list[str] = re.findall(r"\*\*(.+?)\*\*", text, flags=re.DOTALL)
    return spans[-1] if spans else ""


def has_all(text: str, patterns: tuple[str, ...]) -> bool:
    """True when every pattern is found, in any case of letters."""
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def addresses_the_judge(text: str) -> bool:
    """Whether a text speaks to whoever grades it, with an order or with praise."""
    return ADDRESSES.search(text) is not None
