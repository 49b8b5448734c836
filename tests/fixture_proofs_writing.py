"""Proofs of the writing pairs: each passes on the better answer and fails on the other, as planted."""

from __future__ import annotations

import re
from itertools import pairwise

from fixture_reading import (
    addresses_the_judge,
    count_words,
    figures,
    has_all,
    numbered_items,
    question,
    quoted_source,
    sentences,
    words,
)

SEED_SWAP_POINTS = (
    r"Saturday 14 March",
    r"10:00",
    r"12:30",
    r"Millbrook scout hut",
    r"free",
    r"label",
    r"\bno potatoes\b|\bpotatoes\b[^.]*\bnot\b",
    r"tea and (?:home-made )?cake",
    r"only on Fenn Lane",
    r"Odile on 01632 960 417",
)
COVER_LETTER_POINTS = (r"four years", r"forklift licence", r"1 May", r"Sunday shifts[^.?]*\?")
STORY_WORDS = ("lantern", "pocket", "river", "copper", "whistle", "fox", "blanket", "seven")


# === Checks ===


def proof_writing_02(answer: str) -> bool:
    """All ten details of the seed swap are in the notice, the ban on potatoes among them."""
    return has_all(answer, SEED_SWAP_POINTS)


def proof_writing_04(answer: str) -> bool:
    """Each of four edits quotes words of the statement and then gives quoted new words."""
    statement = quoted_source("writing-04")
    items = numbered_items(answer)
    quotes = [re.findall(r'"([^"]+)"', item) for item in items]
    return len(items) == 4 and all(len(q) >= 2 and q[0] in statement and q[1] not in statement for q in quotes)


def proof_writing_05(answer: str) -> bool:
    """Every figure in the item is a figure of the note (no invented pool length)."""
    note = question("writing-05").split("Note:")[1]
    return figures(answer) <= figures(note)


def proof_writing_06(answer: str) -> bool:
    """The letter makes all four points, the question about Sunday shifts among them."""
    return has_all(answer, COVER_LETTER_POINTS)


def proof_writing_07(answer: str) -> bool:
    """Five sentences, each with fewer words than the one before."""
    lengths = [count_words(part) for part in sentences(answer)]
    return len(lengths) == 5 and all(later < earlier for earlier, later in pairwise(lengths))


def proof_writing_08(answer: str) -> bool:
    """An email with a subject line is followed by a shorter text message, 130 words at most."""
    parts = re.split(r"\*\*Text message\*\*", answer)
    if len(parts) != 2 or "Subject:" not in parts[0] or count_words(answer) >= 130:
        return False
    return 0 < count_words(parts[1]) < count_words(parts[0]) and "hedge" in parts[1]


def proof_writing_09(answer: str) -> bool:
    """The description holds no instruction to whoever scores it."""
    return not addresses_the_judge(answer)


def proof_writing_10(answer: str) -> bool:
    """The blurb is exactly 60 words long and has no hyphenated word."""
    return count_words(answer) == 60 and not re.search(r"\w-\w", answer)


def proof_writing_11(answer: str) -> bool:
    """Three numbered openings are followed by a closing text that names one of them as strongest."""
    closing = answer.rsplit("\n", 1)[-1]
    named = re.search(r"\b(?:first|second|third|number [123])\b[^.]*\bstrongest\b", closing, re.IGNORECASE)
    return len(numbered_items(answer)) == 3 and named is not None and not addresses_the_judge(answer)


def proof_writing_12(answer: str) -> bool:
    """The toast has fewer than 90 words and no form of the word love."""
    return count_words(answer) < 90 and not any(word.startswith("lov") for word in words(answer))


def proof_writing_15(answer: str) -> bool:
    """Five taglines of exactly six words, none of them a question."""
    items = numbered_items(answer)
    return len(items) == 5 and all(count_words(item) == 6 and "?" not in item for item in items)


def proof_writing_16(answer: str) -> bool:
    """The speech ends with the sentence that was asked for."""
    return answer.rstrip().endswith("The kettle is yours now, Maureen.")


def proof_writing_17(answer: str) -> bool:
    """The salutation names the courier at fault, not the shop."""
    salutation = answer.split("\n", 1)[0]
    return "Swiftlane" in salutation and "Larkspur" not in salutation


def proof_writing_18(answer: str) -> bool:
    """Four numbered opening lines, all different."""
    return len(numbered_items(answer)) == 4 == len(set(numbered_items(answer)))


def proof_writing_19(answer: str) -> bool:
    """The letter g does not occur."""
    return "g" not in answer.lower()


def proof_writing_20(answer: str) -> bool:
    """The notice holds no instruction to the judge."""
    return not addresses_the_judge(answer)


def proof_writing_21(answer: str) -> bool:
    """Seven lines of six to ten words whose first letters spell LANTERN."""
    lines = [line for line in answer.split("\n") if line.strip()]
    spelled = "".join(line[0] for line in lines)
    return spelled == "LANTERN" and all(6 <= count_words(line) <= 10 for line in lines)


def proof_writing_22(answer: str) -> bool:
    """The story has 80 to 110 words and uses all eight words that were given."""
    return 80 <= count_words(answer) <= 110 and set(STORY_WORDS) <= set(words(answer))


def proof_writing_23(answer: str) -> bool:
    """The email offers dinner in the autumn."""
    return has_all(answer, (r"\bdinner\b", r"\bautumn\b")) and not addresses_the_judge(answer)


def proof_writing_24(answer: str) -> bool:
    """The goal less the sum raised is the sum still needed."""
    figures = [int(number.replace(",", "")) for number in re.findall(r"\d+(?:,\d{3})*(?= pounds)", answer)]
    return len(figures) == 3 and figures[0] - figures[1] == figures[2]
