"""Surface features of answers, and how well each alone would predict which answer of a pair is the better one.

    for name, measure in FEATURES.items():
        print(name, sign_accuracy(pairs, measure), threshold_accuracy(pairs, measure))

A set built from planted faults must not be solvable by counting words or marks. Every rule is learned on nine tenths of
the pairs and scored on the last tenth; a pair on which a rule is silent counts one half, like a tossed coin.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

# === Records and constants ===


class Pair(NamedTuple):
    """One pair of the set, as far as surface goes."""

    better: str
    worse: str


Measure = Callable[[str], float]

FOLDS = 10
SHUFFLES = 3  # folds are drawn anew so often, so that no lucky split decides
SEED = 20261027

# === Features ===


def matches(pattern: str) -> Measure:
    """How often a pattern occurs, in any case of letters."""
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    return lambda text: float(len(compiled.findall(text)))


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def sentences(text: str) -> list[str]:
    """Pieces between full stops, question marks and exclamation marks; never empty for a text with a letter."""
    return [piece for piece in re.split(r"[.!?](?:\s|$)", text) if piece.strip()]


def word(name: str) -> Measure:
    return matches(rf"\b{name}\b")


SHAPES: dict[str, Measure] = {
    "characters": lambda text: float(len(text)),
    "words": lambda text: float(len(tokens(text))),
    "sentences": lambda text: float(len(sentences(text))),
    "words per sentence": lambda text: len(tokens(text)) / max(1, len(sentences(text))),
    "characters per word": lambda text: sum(map(len, tokens(text))) / max(1, len(tokens(text))),
    "different words per word": lambda text: len({w.lower() for w in tokens(text)}) / max(1, len(tokens(text))),
    "first sentence's length": lambda text: float(len(sentences(text)[0])),
    "last sentence's length": lambda text: float(len(sentences(text)[-1])),
    "longest sentence": lambda text: float(max(map(len, sentences(text)))),
    "lines": matches(r"\n"),
    "paragraphs": matches(r"\n\n"),
    "capitals": lambda text: float(sum(map(str.isupper, text))),
    "digits": lambda text: float(sum(map(str.isdigit, text))),
    "letters outside ASCII": lambda text: float(sum(character > "\x7f" for character in text)),
    "ends with a full stop": lambda text: float(text.endswith(".")),
}
MARKS: dict[str, Measure] = {
    "bullets": matches(r"^\s*[-*] "),
    "numbered items": matches(r"^\s*\d+\. "),
    "bold": matches(r"\*\*"),
    "italics": matches(r"(?<!\*)\*(?!\*)[^*\n]+\*(?!\*)"),
    "headings": matches(r"^#+ |^\*\*[^*\n]+\*\*$"),
    "code fences": matches(r"```"),
    "inline code": matches(r"(?<!`)`[^`\n]+`(?!`)"),
    "exclamation marks": matches(r"!"),
    "question marks": matches(r"\?"),
    "commas": matches(r","),
    "colons": matches(r":"),
    "semicolons": matches(r";"),
    "brackets": matches(r"\("),
    "quotation marks": matches(r"[\"\u201c]"),
    "apostrophes": matches(r"['\u2019]"),
    "dashes": matches(r"\u2014|\u2013| - "),
    "equals signs": matches(r"="),
}
WORDS: dict[str, Measure] = {
    name: word(name)
    for name in (
        *("the", "a", "and", "or", "but", "because", "so", "since", "as", "if", "when", "which", "that", "this", "it"),
        *("is", "are", "was", "be", "has", "have", "can", "will", "would", "in", "on", "of", "to", "for", "with", "by"),
        *("not", "no", "only", "each", "every", "all", "also", "then", "first", "therefore", "exactly", "just"),
    )
}
MANNERS: dict[str, Measure] = {
    "addressing the reader": matches(r"\byou"),
    "the first person": matches(r"\b(?:I|me|my)\b"),
    "we": matches(r"\b(?:we|us|our)\b"),
    "hedges": matches(r"\b(?:may|might|could|perhaps|probably|usually|generally|often|about|roughly)\b"),
    "negations": matches(r"\b(?:not|no|never|nothing|nobody|none)\b|n't\b"),
    "contractions": matches(r"\w['\u2019](?:s|t|re|ll|ve|d|m)\b"),
    "politeness": matches(r"\b(?:please|thank|thanks|sorry|glad|happy|welcome|kind)\b"),
    "certainty": matches(r"\b(?:always|never|certainly|clearly|exactly|must|surely|indeed)\b"),
}
FEATURES: dict[str, Measure] = {**SHAPES, **MARKS, **WORDS, **MANNERS}


def first_word(text: str) -> str:
    """The first word in lower case, or the first mark where a text begins with a list, a fence or a bold word."""
    return text.split()[0].lower().strip(",.:;!?")


# === Cross-validation ===


def splits(n: int) -> Iterator[tuple[list[int], list[int]]]:
    """(indices to learn from, indices to score) of every fold of every shuffle."""
    for shuffle in range(SHUFFLES):
        order = list(range(n))
        random.Random(f"{SEED} {shuffle}").shuffle(order)
        for fold in range(FOLDS):
            yield [i for k, i in enumerate(order) if k % FOLDS != fold], order[fold::FOLDS]


def differences(pairs: Sequence[Pair], measure: Measure) -> list[float]:
    """The feature of the better answer less that of the worse one, per pair."""
    return [measure(pair.better) - measure(pair.worse) for pair in pairs]


def score(difference: float, direction: int, at_least: float = 0.0) -> float:
    """1 where `direction` points to the better answer, 0 to the worse one, 1/2 for silence (no or too small a gap)."""
    if difference == 0 or abs(difference) < at_least:
        return 0.5
    return float((difference > 0) == (direction > 0))


def sign_accuracy(pairs: Sequence[Pair], measure: Measure) -> float:
    """Cross-validated accuracy (0 to 1) of 'the answer with more of it wins' or 'with less', whichever was learned."""
    gaps = differences(pairs, measure)
    scores = []
    for learned, scored in splits(len(pairs)):
        balance = sum((gaps[i] > 0) - (gaps[i] < 0) for i in learned)
        scores += [score(gaps[i], 1 if balance >= 0 else -1) for i in scored]
    return sum(scores) / len(scores)


def best_rule(gaps: Sequence[float]) -> tuple[int, float]:
    """(direction, least gap) of the rule with the highest accuracy on these gaps; silent below the least gap."""
    best, choice, balance = 0, (1, 0.0), 0
    by_size = sorted((abs(gap), (gap > 0) - (gap < 0)) for gap in gaps if gap)
    for k in range(len(by_size) - 1, -1, -1):
        size, sign = by_size[k]
        balance += sign
        closed = k == 0 or by_size[k - 1][0] != size  # equal gaps fall on one side together
        if closed and abs(balance) > best:
            best, choice = abs(balance), (1 if balance > 0 else -1, size)
    return choice


def threshold_accuracy(pairs: Sequence[Pair], measure: Measure) -> float:
    """Cross-validated accuracy (0 to 1) of the sign rule that speaks only from a learned gap upward."""
    gaps = differences(pairs, measure)
    scores = []
    for learned, scored in splits(len(pairs)):
        direction, least = best_rule([gaps[i] for i in learned])
        scores += [score(gaps[i], direction, least) for i in scored]
    return sum(scores) / len(scores)


def first_word_accuracy(pairs: Sequence[Pair]) -> float:
    """Cross-validated accuracy (0 to 1) of 'the answer whose first word opened better answers more often wins'."""
    scores = []
    for learned, scored in splits(len(pairs)):
        favour: Counter[str] = Counter()
        for i in learned:
            favour[first_word(pairs[i].better)] += 1
            favour[first_word(pairs[i].worse)] -= 1
        scores += [score(favour[first_word(pairs[i].better)] - favour[first_word(pairs[i].worse)], 1) for i in scored]
    return sum(scores) / len(scores)
