"""The statistics of judge-human agreement: labels in, results out.

Everything here is a pure function or a small record: no file, no clock, no network, no global random state. Random
numbers come from a seed that is passed in, as `random.Random(f"{seed}:{name}")`, one stream per analysis, so that
adding an analysis does not move the numbers of another. This file loads no sibling; other files load it.

    sampler = Resampler(seed=1, name="headline")
    sampler.add("A", {"judge": "A", "baseline": "B"}, cluster="question-17")
    ...
    sampler.intervals([("judge", "kappa"), ("judge", "baseline", "kappa")])

Words. A *label* is 'A', 'B', 'equal' or 'invalid'; None is missing (never run, or the call failed). `invalid` is a
judge's answer without a verdict: it is a label and stays in every denominator. Missing is left out and counted.
A *choice* is a label in shown positions ('A' = shown first), a *decision* one in the item's own A and B.

Undefined is None with a reason code, never 0, 1 or NaN. The codes: no_items, single_label (expected agreement is 1),
constant_scores, too_few_ratings (no item with two), too_few_clusters (fewer than two resampling units),
degenerate_resamples (all resampled values equal), too_many_undefined (over 5% of the resamples),
one_class_only, judge_not_informative, too_few_annotations, disconnected.
"""

from __future__ import annotations

import math
import random
import re
import sys
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations, repeat
from operator import add, mul, sub
from statistics import NormalDist
from typing import Any, NamedTuple

# === Labels ===

LABELS = ("A", "B", "equal", "invalid")
GOLD_LABELS = ("A", "B", "equal")
ALIASES = {"tie": "equal", "draw": "equal", "C": "equal", "tie (inconsistent)": "equal"}
SLOT_ALIASES = {"first": "A", "second": "B"}
SWAPPED = {"A": "B", "B": "A"}

Label = str
MaybeLabel = str | None


def canonical(label: MaybeLabel) -> MaybeLabel:
    """The label under its one name, or None for a missing one.

    label: 'A', 'B', 'equal', 'invalid', an alias of equal ('tie', 'draw', 'C', 'tie (inconsistent)'), or None.
    Raises: ValueError for anything else, so that a typing error never becomes a category of its own.
    """
    if label is None or label in LABELS:
        return label
    try:
        return ALIASES[label]
    except (KeyError, TypeError):
        raise ValueError(f"label: expected one of {', '.join(LABELS)} or an alias of equal, got {label!r}") from None


def canonical_choice(choice: MaybeLabel) -> MaybeLabel:
    """A choice in shown positions under its one name; also reads 'first' and 'second'. Raises: ValueError."""
    return canonical(SLOT_ALIASES.get(choice, choice) if choice is not None else None)


def decision_from_choice(choice: MaybeLabel, swapped: bool) -> MaybeLabel:
    """One choice mapped to the item's own A and B; swapped says that B was shown first."""
    label = canonical_choice(choice)
    return SWAPPED.get(label, label) if swapped and label is not None else label


def resolve(original: MaybeLabel, swapped: MaybeLabel) -> MaybeLabel:
    """The one decision from the choices of both orders, in the item's own A and B.

    original, swapped: choices in shown positions ('A' = the answer shown first), None where no reply came.
    A or B only if both orders pick that answer; invalid if either is invalid; equal in every other valid case
    (a winner in one order and equal in the other is equal). None if either is missing: half an item is never scored.
    Source: the conservative swap rule of Zheng et al. 2023, arXiv 2306.05685, with invalid kept instead of dropped.
    """
    first, second = decision_from_choice(original, False), decision_from_choice(swapped, True)
    if first is None or second is None:
        return None
    if "invalid" in (first, second):
        return "invalid"
    return first if first == second else "equal"


def majority(labels: Iterable[MaybeLabel]) -> MaybeLabel:
    """The plurality label of an item's repeats, or None if no repeat is present.

    invalid votes like any label. A draw at the top drops invalid from the drawn labels; if one label is left it wins,
    otherwise the result is equal. Symmetric in A and B and independent of the order of the repeats.
    """
    votes = Counter(label for label in map(canonical, labels) if label is not None)
    if not votes:
        return None
    most = max(votes.values())
    top = {label for label, count in votes.items() if count == most}
    if len(top) > 1:
        top.discard("invalid")
    return top.pop() if len(top) == 1 else "equal"


def gold_from_votes(votes: Iterable[MaybeLabel], draw: MaybeLabel = None) -> MaybeLabel:
    """The unique plurality of the human votes; without one (no consensus, no vote) the value of `draw`.

    votes: labels of people; None and invalid are no votes. draw: None leaves the item out of gold-based measures,
    'equal' makes it a tie, which charges the judge for the people's disagreement.
    """
    counts = Counter(label for label in map(canonical, votes) if label not in (None, "invalid"))
    if not counts:
        return None
    most = max(counts.values())
    top = [label for label, count in counts.items() if count == most]
    return top[0] if len(top) == 1 else draw


def as_rating(value: Any) -> Any:
    """A rating as stored: a known label under its one name, anything else (a score) unchanged."""
    return ALIASES.get(value, value) if isinstance(value, str) else value


# === Numerics ===

Z95 = 1.959963984540054
EPSILON = 1e-12  # kappas are ratios of counts: differences below this are rounding, not data
MAX_UNDEFINED_SHARE = 0.05
MAX_EXACT_SIGNS = 20_000  # signs up to which a sign test is summed in whole numbers: some 50 ms
MAX_EXACT_BYTES = 300_000_000  # moved by an exact sign-flip test of several sizes, some 100 ms


class Interval(NamedTuple):
    """One confidence interval.

    low, high: its ends, None when undefined, with `reason` saying why. method: 'percentile', 'bca', 'wilson',
    'normal'. resamples: how many were drawn (0 for a formula); undefined: how many of them had no value.
    """

    low: float | None
    high: float | None
    reason: str | None
    method: str
    resamples: int = 0
    undefined: int = 0


def z_value(level: float) -> float:
    """The two-sided normal quantile of a confidence level in (0, 1); exactly Z95 at 0.95."""
    return Z95 if level == 0.95 else NormalDist().inv_cdf(0.5 + level / 2)


def normal_cdf(x: float) -> float:
    """P(Z <= x) of the standard normal, by its power series; the library's rounds differently between versions."""
    if abs(x) > 8:  # beyond the digits of a float
        return float(x > 0)
    term = total = x
    k = 1
    while total + term != total or k < 3:
        k += 2
        term *= x * x / k
        total += term
    return min(1.0, max(0.0, 0.5 + total * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)))


def sample_sd(values: Sequence[float]) -> float:
    """Sample standard deviation (n - 1) of two or more values; the library's rounds differently between versions."""
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def wilson(k: int, n: int, level: float = 0.95) -> Interval:
    """Wilson score interval of a share k of n, for independent items. Source: Wilson 1927, JASA 22:209.

    Exactly 0 at k = 0 and exactly 1 at k = n for that end. n = 0: None, no_items.
    """
    if n == 0:
        return Interval(None, None, "no_items", "wilson")
    z, share = z_value(level), k / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half, None, "wilson")


def sign_test(better: int, worse: int) -> float:
    """Exact two-sided sign test, which is the exact McNemar test: p in (0, 1]; 1 when both counts are 0.

    Beyond MAX_EXACT_SIGNS signs the sum is taken in floating point, to about nine digits.

    Source: McNemar 1947; equals a two-sided binomial test at 1/2.
    """
    n, last = better + worse, min(better, worse)
    if n > MAX_EXACT_SIGNS:
        return many_signs_p(n, last)
    term, tail = 1, 0
    for i in range(last + 1):
        tail += term
        term = term * (n - i) // (i + 1)
    return min(1.0, 2 * tail / (1 << n))


def many_signs_p(n: int, last: int) -> float:
    """2 P(X <= last) for X ~ Binomial(n, 1/2), last <= n / 2, from the largest term down; p > 0."""
    log_term = math.lgamma(n + 1) - math.lgamma(last + 1) - math.lgamma(n - last + 1) - n * math.log(2)
    ratios, ratio, i = [1.0], 1.0, last
    while i > 0 and ratio > 1e-18:
        ratio *= i / (n - i + 1)
        ratios.append(ratio)
        i -= 1
    return min(1.0, max(2 * math.fsum(ratios) * math.exp(log_term), 2.0**-1000))


def binomial_upper_tail(k: int, n: int, p_numerator: int, p_denominator: int) -> float:
    """P(X >= k) for X ~ Binomial(n, p_numerator / p_denominator), exact in integers."""
    q = p_denominator - p_numerator
    terms = (math.comb(n, i) * p_numerator**i * q ** (n - i) for i in range(k, n + 1))
    return float(sum(terms) / p_denominator**n)


def quantile(ordered: Sequence[float], q: float) -> float:
    """Quantile q in [0, 1] of sorted values by linear interpolation (type 7, the default of numpy and R)."""
    h = (len(ordered) - 1) * q
    low = min(int(h), len(ordered) - 2) if len(ordered) > 1 else 0
    step = ordered[low + 1] - ordered[low] if len(ordered) > 1 else 0.0
    return ordered[low] + (h - low) * step


def student_t_cdf(t: float, df: int) -> float:
    """P(T <= t) of Student's t with df >= 1 degrees of freedom, by the regularised incomplete beta function."""
    tail = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t))
    return tail if t < 0 else 1 - tail


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for x in [0, 1]."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the continued fraction converges fast only below this point
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * beta_fraction(a, b, x))


def beta_fraction(a: float, b: float, x: float) -> float:
    """The denominator of the incomplete beta's continued fraction, by the modified method of Lentz."""
    tiny = 1e-300  # stands in for an exact zero, as Lentz's method prescribes
    value, c, d = 1.0, 1.0, 0.0
    for i in range(1, 1000):
        m = i // 2
        if i % 2:
            coefficient = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            coefficient = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        c = 1 + coefficient / c or tiny
        d = 1 / (1 + coefficient * d or tiny)
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def mean_of(values: Sequence[float]) -> float | None:
    """The mean, or None for no values."""
    return math.fsum(values) / len(values) if values else None


# === Agreement with gold ===


class Agreement(NamedTuple):
    """Raw agreement: value = k / n over items with gold and prediction, invalid included.

    per_gold: gold label -> (right, all). wilson: for independent items only. reason: no_items or None.
    """

    value: float | None
    k: int
    n: int
    n_missing: int
    n_invalid: int
    per_gold: dict[Label, tuple[int, int]]
    wilson: Interval
    reason: str | None


class Kappa(NamedTuple):
    """Cohen's kappa with its observed and expected agreement.

    constant_side: 'gold' or 'judge' when only that side used a single label; kappa is then 0 whatever the agreement.
    """

    value: float | None
    po: float | None
    pe: float | None
    n: int
    n_missing: int
    n_invalid: int
    constant_side: str | None
    reason: str | None


class AC1(NamedTuple):
    """Gwet's AC1 with its expected agreement and the size q of the label set it was computed for."""

    value: float | None
    pe: float | None
    q: int
    n: int
    n_missing: int
    reason: str | None


def present_pairs(gold: Sequence[MaybeLabel], predicted: Sequence[MaybeLabel]) -> Counter[tuple[Label, Label]]:
    """How often each (gold, prediction) occurs with both present, canonical.

    Labels are counted as given and named afterwards: there are millions of pairs and a handful of labels.
    Raises: ValueError if the lengths differ, or for an unknown label.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"gold and predictions: expected equal lengths, got {len(gold)} and {len(predicted)}")
    try:
        given = Counter(zip(gold, predicted))
    except TypeError:  # a label that is no text at all: naming the labels one by one says which
        given = Counter(zip(map(canonical, gold), map(canonical, predicted)))
    found: Counter[tuple[Label, Label]] = Counter()
    for (g, p), count in given.items():
        first, second = canonical(g), canonical(p)
        if first is not None and second is not None:
            found[first, second] += count
    return found


def margins(pairs: Counter[tuple[Label, Label]]) -> tuple[Counter[Label], Counter[Label]]:
    """How often each label is gold, and how often it is predicted, in counted pairs."""
    gold: Counter[Label] = Counter()
    predicted: Counter[Label] = Counter()
    for (g, p), count in pairs.items():
        gold[g] += count
        predicted[p] += count
    return gold, predicted


def hits_of(pairs: Counter[tuple[Label, Label]]) -> int:
    """How many of some counted pairs agree."""
    return sum(pairs[label, label] for label in LABELS)


def kappa_value(n: int, hits: int, chance: int) -> float | None:
    """Kappa from counts: chance = sum over labels of gold count x predicted count. None if chance = n x n.

    Integers keep "undefined" an exact test.
    """
    return (n * hits - chance) / (n * n - chance) if n * n != chance else None


def ac1_value(n: int, hits: int, spread: int, q: int) -> float | None:
    """AC1 from counts: spread = sum over labels of s(2n - s), s = gold + predicted count. None if n = 0."""
    scale = 4 * n * n * (q - 1)
    return (4 * n * (q - 1) * hits - spread) / (scale - spread) if n else None


def ratio_value(numerator: int, denominator: int) -> float | None:
    """numerator / denominator, or None for an empty denominator."""
    return numerator / denominator if denominator else None


def raw_agreement(gold: Sequence[MaybeLabel], predicted: Sequence[MaybeLabel], level: float = 0.95) -> Agreement:
    """Share of items whose prediction equals gold, with Wilson interval and counts per gold class.

    gold, predicted: labels or None, one per item. Invalid predictions stay in n; missing items leave it.
    """
    pairs = present_pairs(gold, predicted)
    totals, predictions = margins(pairs)
    right = {label: pairs[label, label] for label in LABELS}
    k, n = sum(right.values()), sum(totals.values())
    per_gold = {label: (right[label], totals[label]) for label in LABELS if totals[label]}
    invalid = predictions["invalid"]
    reason = None if n else "no_items"
    return Agreement(ratio_value(k, n), k, n, len(gold) - n, invalid, per_gold, wilson(k, n, level), reason)


def kappa(gold: Sequence[MaybeLabel], predicted: Sequence[MaybeLabel]) -> Kappa:
    """Cohen's kappa over the union of labels seen in gold or prediction.

    value in [-1, 1]; None only when both sides used one and the same label (single_label) or there is no item
    (no_items). Invalid predictions add nothing to expected agreement, so print their rate beside kappa.
    Source: Cohen 1960, Educational and Psychological Measurement 20:37.
    """
    pairs = present_pairs(gold, predicted)
    golds, preds = margins(pairs)
    n, hits = sum(golds.values()), hits_of(pairs)
    chance = sum(golds[label] * preds[label] for label in golds)
    value = kappa_value(n, hits, chance)
    reason = None if value is not None else "single_label" if n else "no_items"
    sides = [side for side, counts in (("gold", golds), ("judge", preds)) if len(counts) == 1]
    constant = sides[0] if len(sides) == 1 else None
    expected = ratio_value(chance, n * n)
    return Kappa(value, ratio_value(hits, n), expected, n, len(gold) - n, preds["invalid"], constant, reason)


def gwet_ac1(gold: Sequence[MaybeLabel], predicted: Sequence[MaybeLabel], q: int | None = None) -> AC1:
    """Gwet's AC1, chance-corrected agreement that stays defined with one label.

    q: size of the declared label set, the same for every judge compared; None takes the observed number (at least 2),
    with which a single invalid answer can raise AC1. Raises: ValueError if q is smaller than the labels seen or 2.
    Source: Gwet 2008, British Journal of Mathematical and Statistical Psychology 61:29.
    """
    pairs = present_pairs(gold, predicted)
    golds, preds = margins(pairs)
    n, sums = sum(golds.values()), golds + preds
    size = max(2, len(sums)) if q is None else q
    if size < max(2, len(sums)):
        raise ValueError(f"q: expected at least the {max(2, len(sums))} labels in use, got {q}")
    spread = sum(s * (2 * n - s) for s in sums.values())
    value = ac1_value(n, hits_of(pairs), spread, size)
    expected = ratio_value(spread, 4 * n * n * (size - 1))
    return AC1(value, expected, size, n, len(gold) - n, None if n else "no_items")


def majority_class(gold: Iterable[MaybeLabel]) -> MaybeLabel:
    """The most frequent gold label (the first of LABELS on a draw): the answer of a judge that reads nothing."""
    counts = Counter(label for label in map(canonical, gold) if label is not None)
    return max(LABELS, key=lambda label: (counts[label], -LABELS.index(label))) if counts else None


# === Repeats ===


class Spread(NamedTuple):
    """A measure over the repeats: one value each (None = undefined), mean, sample sd, smallest, largest."""

    values: tuple[float | None, ...]
    mean: float | None
    sd: float | None
    min: float | None
    max: float | None


class RepeatSummary(NamedTuple):
    """Agreement and kappa of each repeat against gold."""

    agreement: Spread
    kappa: Spread


class Fleiss(NamedTuple):
    """Fleiss' kappa; generalised is True when items have different numbers of ratings (Gwet's form)."""

    value: float | None
    pa: float | None
    pe: float | None
    n_items: int
    n_ratings: int
    generalised: bool
    reason: str | None


class Alpha(NamedTuple):
    """Krippendorff's alpha over the items with at least two ratings."""

    value: float | None
    observed: float | None
    expected: float | None
    n_items: int
    n_ratings: int
    reason: str | None


class Stability(NamedTuple):
    """How alike the repeats of an item are: modal share, agreeing pairs, unanimous items, flip rate = 1 - pairwise."""

    modal: float | None
    pairwise: float | None
    unanimous: float | None
    flip_rate: float | None
    n_items: int
    reason: str | None


def spread_of(values: Sequence[float | None]) -> Spread:
    """Mean, sample sd (n - 1) and range of the defined values; sd is None below two of them."""
    defined = [value for value in values if value is not None]
    if not defined:
        return Spread(tuple(values), None, None, None, None)
    sd = sample_sd(defined) if len(defined) > 1 else None
    return Spread(tuple(values), math.fsum(defined) / len(defined), sd, min(defined), max(defined))


def repeat_summary(gold: Sequence[MaybeLabel], repeats: Sequence[Sequence[MaybeLabel]]) -> RepeatSummary:
    """Agreement and kappa of every repeat, with mean, sample sd and range.

    repeats: one list of labels per repeat, each as long as gold. The range shows the judge's own randomness; it says
    nothing about which items were drawn, which is what the intervals are for.
    """
    agreements = [raw_agreement(gold, labels).value for labels in repeats]
    kappas = [kappa(gold, labels).value for labels in repeats]
    return RepeatSummary(spread_of(agreements), spread_of(kappas))


def rating_counts(ratings: Iterable[Iterable[Any]], smallest: int) -> list[Counter[Any]]:
    """Label counts of each item with at least `smallest` ratings present."""
    rows = (Counter(as_rating(value) for value in row if value is not None) for row in ratings)
    return [row for row in rows if sum(row.values()) >= smallest]


def pair_agreement(counts: Counter[Any]) -> float:
    """Share of an item's rating pairs that agree; needs two ratings."""
    n = sum(counts.values())
    return sum(c * (c - 1) for c in counts.values()) / (n * (n - 1))


def fleiss_kappa(ratings: Iterable[Iterable[Any]]) -> Fleiss:
    """Fleiss' kappa of several ratings per item, also with gaps.

    ratings: one row per item of labels, None = missing. Observed agreement is over items with two ratings or more,
    label shares over items with one or more. None: too_few_ratings (no item with two), single_label.
    Source: Fleiss 1971, Psychological Bulletin 76:378; with gaps the form of Gwet (irrCAC, `CAC.fleiss`).
    """
    rated = rating_counts(ratings, 1)
    pairable = [row for row in rated if sum(row.values()) >= 2]
    sizes = {sum(row.values()) for row in rated}
    n_ratings = sum(sum(row.values()) for row in rated)
    if not pairable:
        return Fleiss(None, None, None, 0, n_ratings, False, "too_few_ratings")
    pa = math.fsum(map(pair_agreement, pairable)) / len(pairable)
    labels = {label: None for row in rated for label in row}
    shares = [math.fsum(row[label] / sum(row.values()) for row in rated) / len(rated) for label in labels]
    pe = math.fsum(share * share for share in shares)
    if len(labels) == 1:
        return Fleiss(None, pa, 1.0, len(pairable), n_ratings, len(sizes) > 1, "single_label")
    return Fleiss((pa - pe) / (1 - pe), pa, pe, len(pairable), n_ratings, len(sizes) > 1, None)


def squared_distances(totals: Mapping[Any, int], level: str) -> Callable[[Any, Any], float]:
    """Krippendorff's squared difference of two values, for pairable value totals and a level of measurement."""
    if level == "nominal":
        return lambda a, b: float(a != b)
    if level == "interval":
        return lambda a, b: float((a - b) ** 2)
    if level != "ordinal":
        raise ValueError(f"level: expected nominal, ordinal or interval, got {level!r}")
    middles, below = {}, 0
    for value in sorted(totals):
        middles[value] = below + totals[value] / 2  # mid-rank: the difference of two is the sum between them
        below += totals[value]
    return lambda a, b: (middles[a] - middles[b]) ** 2


def krippendorff_alpha(ratings: Iterable[Iterable[Any]], level: str = "nominal") -> Alpha:
    """Krippendorff's alpha of several ratings per item, with gaps, at a level of measurement.

    ratings: one row per item; labels for 'nominal', numbers for 'ordinal' and 'interval' (anything else counts as
    missing there). Only items with two ratings count. None: too_few_ratings, single_label.
    Source: Krippendorff 2011, Computing Krippendorff's alpha-reliability.
    """
    if level != "nominal":
        ratings = ([value if is_number(value) else None for value in row] for row in ratings)
    rows = rating_counts(ratings, 2)
    totals: Counter[Any] = Counter()
    for row in rows:
        totals.update(row)
    n = sum(totals.values())
    if not rows:
        return Alpha(None, None, None, 0, 0, "too_few_ratings")
    if len(totals) == 1:
        return Alpha(None, 0.0, 0.0, len(rows), n, "single_label")
    distance = squared_distances(totals, level)
    observed = math.fsum(
        2 * row[a] * row[b] * distance(a, b) / (sum(row.values()) - 1) for row in rows for a, b in combinations(row, 2)
    )
    expected = math.fsum(2 * totals[a] * totals[b] * distance(a, b) for a, b in combinations(totals, 2)) / (n - 1)
    return Alpha(1 - observed / expected, observed, expected, len(rows), n, None)


def stability(ratings: Iterable[Iterable[Any]]) -> Stability:
    """Repetition stability over items with two ratings or more. It measures consistency, not correctness.

    Give one row per (item, order), and again one row per item of resolved labels. The modal share of r repeats is at
    least 1/r even for noise; pairwise is the unbiased one. None: too_few_ratings.
    Source: Shi et al. 2024, arXiv 2406.07791 (modal share).
    """
    rows = rating_counts(ratings, 2)
    if not rows:
        return Stability(None, None, None, None, 0, "too_few_ratings")
    modal = math.fsum(max(row.values()) / sum(row.values()) for row in rows) / len(rows)
    pairwise = math.fsum(map(pair_agreement, rows)) / len(rows)
    unanimous = sum(len(row) == 1 for row in rows) / len(rows)
    return Stability(modal, pairwise, unanimous, 1 - pairwise, len(rows), None)


def is_number(value: object) -> bool:
    """Whether a score is a finite number (True and False are not scores)."""
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


# === Order of the answers ===


class PositionBias(NamedTuple):
    """What the order of the answers did to the judge.

    n: (item, repeat) pairs run in both orders, invalid included; consistent = consistent_decisive + consistent_equal
    (equal in both orders, shown apart: an always-equal judge is consistent and useless). pc, pc_valid: consistent
    share of all and of valid pairs. k_first, k_second: pairs leaning to the first or second shown answer; flips_*
    those that picked the same place twice. share_first = k_first / (k_first + k_second) with Wilson interval and
    exact binomial p at 1/2. preference_fairness in [-1, 1], positive = recency, negative = primacy.
    first_slot_rate: first / (first + second) over all single choices; 0.5 without bias.
    """

    n: int
    n_missing: int
    invalid: int
    consistent: int
    consistent_decisive: int
    consistent_equal: int
    pc: float | None
    pc_valid: float | None
    k_first: int
    k_second: int
    flips_first: int
    flips_second: int
    share_first: float | None
    wilson: Interval
    p: float
    preference_fairness: float | None
    first_slot_rate: float | None
    n_slots: int
    reason: str | None


class FlipTest(NamedTuple):
    """A sign-flip test: p in (0, 1], clusters seen, those with a non-zero sum, and whether p is exact."""

    p: float
    clusters: int
    nonzero: int
    exact: bool


def lean(original: Label, swapped: Label) -> str:
    """How a pair of choices of both orders leans: 'none' (consistent), 'first', 'second' or 'invalid'."""
    if "invalid" in (original, swapped):
        return "invalid"
    if original == swapped:
        return {"A": "first", "B": "second", "equal": "none"}[original]
    if "equal" not in (original, swapped):
        return "none"
    return "first" if "A" in (original, swapped) else "second"


def position_bias(pairs: Iterable[tuple[MaybeLabel, MaybeLabel]], level: float = 0.95) -> PositionBias:
    """Position consistency and bias of (original, swapped) choices, one pair per item and repeat.

    pairs: choices in shown positions ('A' or 'first' = the answer shown first). Pairs with a missing side are counted
    in n_missing only. With repeats the pooled counts are descriptive: test with `position_test`.
    Source: Zheng et al. 2023 (pc), Shi et al. 2024, arXiv 2406.07791 (pc_valid, preference fairness),
    Wang et al. 2023, arXiv 2305.17926 (conflict rate = 1 - pc).
    """
    given = Counter(map(tuple, pairs))
    both: Counter[tuple[Label, Label]] = Counter()
    for (original, swapped), count in given.items():
        first_choice, second_choice = canonical_choice(original), canonical_choice(swapped)
        if first_choice is not None and second_choice is not None:
            both[first_choice, second_choice] += count
    leans: Counter[str] = Counter()
    for (v, w), count in both.items():
        leans[lean(v, w)] += count
    in_original, in_swapped = margins(both)
    slots = in_original + in_swapped
    n, first, second = sum(both.values()), leans["first"], leans["second"]
    equal, chosen = both["equal", "equal"], slots["A"] + slots["B"]
    return PositionBias(
        n=n,
        n_missing=sum(given.values()) - n,
        invalid=leans["invalid"],
        consistent=leans["none"],
        consistent_decisive=leans["none"] - equal,
        consistent_equal=equal,
        pc=ratio_value(leans["none"], n),
        pc_valid=ratio_value(leans["none"], n - leans["invalid"]),
        k_first=first,
        k_second=second,
        flips_first=both["A", "A"],
        flips_second=both["B", "B"],
        share_first=ratio_value(first, first + second),
        wilson=wilson(first, first + second, level),
        p=sign_test(first, second),
        preference_fairness=ratio_value(second - first, n),
        first_slot_rate=ratio_value(slots["A"], chosen),
        n_slots=chosen,
        reason=None if n else "no_items",
    )


def leans_of(pairs: Iterable[tuple[MaybeLabel, MaybeLabel]]) -> list[str]:
    """The lean of every pair that was run in both orders."""
    read = ((canonical_choice(v), canonical_choice(w)) for v, w in pairs)
    return [lean(v, w) for v, w in read if v is not None and w is not None]


def position_counts(pairs: Iterable[tuple[MaybeLabel, MaybeLabel]]) -> tuple[int, int] | None:
    """(consistent, run) over one item's repeats, for `Resampler.add`; None if no pair was run in both orders."""
    leans = leans_of(pairs)
    return (leans.count("none"), len(leans)) if leans else None


def net_lean(pairs: Iterable[tuple[MaybeLabel, MaybeLabel]]) -> int:
    """Sign of an item's lean over its repeats: 1 towards the first shown answer, -1 the second, 0 neither."""
    leans = leans_of(pairs)
    first, second = leans.count("first"), leans.count("second")
    return (first > second) - (first < second)


def position_test(
    items: Sequence[Iterable[tuple[MaybeLabel, MaybeLabel]]], clusters: Sequence[Hashable] | None = None
) -> FlipTest:
    """Test of position bias on items, each with its pairs of choices over the repeats.

    The decisions of one item are not independent, so an item counts once, by the sign of its net lean; items that
    share a question flip together. With one item per question this is the sign test.
    """
    return sign_flip_test([net_lean(pairs) for pairs in items], clusters)


def sign_flip_test(
    differences: Sequence[float], clusters: Sequence[Hashable] | None = None, *, seed: int = 0, n_random: int = 10_000
) -> FlipTest:
    """Two-sided randomisation test of "no difference" that flips the sign of each cluster's sum.

    differences: one per item (for example right1 - right2), None of them missing. clusters: the question of each item,
    None = every item its own. Whole-number sums give the exact p over all sign patterns, which with one item per
    question is the sign test; other sums use n_random random patterns and (hits + 1) / (n_random + 1).
    """
    totals = cluster_sums(differences, clusters)
    sizes = sorted(abs(total) for total in totals if total != 0)
    if all(size.is_integer() for size in sizes):
        p, exact = whole_flip_p([int(size) for size in sizes], abs(int(math.fsum(totals))))
        return FlipTest(p, len(totals), len(sizes), exact)
    rng = stream_of(seed, "sign_flip")
    limit = abs(math.fsum(totals)) - EPSILON * math.fsum(sizes)
    hits = sum(abs(math.fsum(random_signs(sizes, rng))) >= limit for _ in range(n_random))
    return FlipTest((hits + 1) / (n_random + 1), len(totals), len(sizes), False)


def cluster_sums(differences: Sequence[float], clusters: Sequence[Hashable] | None) -> list[float]:
    """The exact sum of each cluster's differences, correctly rounded. Raises: ValueError if the lengths differ."""
    keys = range(len(differences)) if clusters is None else clusters
    if all(type(value) is int for value in differences):
        whole: defaultdict[Hashable, int] = defaultdict(int)
        for key, value in zip(keys, differences, strict=True):
            whole[key] += int(value)
        return [float(total) for total in whole.values()]
    sums: defaultdict[Hashable, list[float]] = defaultdict(list)
    for key, value in zip(keys, differences, strict=True):
        sums[key].append(value)
    return [math.fsum(values) for values in sums.values()]


def random_signs(sizes: Sequence[float], rng: random.Random) -> Iterator[float]:
    """The sizes with independent random signs."""
    bits = rng.getrandbits(len(sizes)) if sizes else 0
    return (size if bits >> i & 1 else -size for i, size in enumerate(sizes))


def whole_flip_p(sizes: Sequence[int], observed: int) -> tuple[float, bool]:
    """(p, whether it is exact) for whole-number sums: the sign test when all are of one size, else all sign patterns.

    Thousands of questions of several sizes would take minutes, so those get the limit for many questions.
    """
    if not sizes or observed == 0:
        return 1.0, True
    if sizes[0] == sizes[-1]:
        minority = (len(sizes) - observed // sizes[0]) // 2
        return sign_test(len(sizes) - minority, minority), len(sizes) <= MAX_EXACT_SIGNS
    if len(sizes) ** 2 // 16 * sum(sizes) <= MAX_EXACT_BYTES:
        return exact_flip_p(sizes, observed), True
    return many_flips_p(sizes, observed), False


def many_flips_p(sizes: Sequence[int], observed: int) -> float:
    """P(|sum of +-sizes| >= observed) for many sizes: the normal limit with its first correction, p > 0.

    The sum moves in steps of twice the sizes' common divisor, so half a step is taken off (continuity). The correction
    is the Edgeworth term of the fourth cumulant, the first one that a symmetric sum has.
    Source: Feller 1971, An Introduction to Probability Theory II, XVI.4.
    """
    variance = math.fsum(size * size for size in sizes)
    z = (observed - math.gcd(*sizes)) / math.sqrt(variance)
    fourth = -2 * math.fsum(size**4 for size in sizes) / variance**2
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    p = math.erfc(z / math.sqrt(2)) + 2 * density * (z**3 - 3 * z) * fourth / 24
    return min(1.0, max(p, 2.0 ** -min(len(sizes), 1000)))


def exact_flip_p(sizes: Sequence[int], observed: int) -> float:
    """P(|sum of +-sizes| >= observed) over all sign patterns, by the generating function product(1 + x^size).

    The polynomial is one big integer with a field per power, so each cluster is one shift and one addition.
    """
    if observed == 0:
        return 1.0
    width = len(sizes) // 8 + 1  # bytes per coefficient: none exceeds 2 ** len(sizes)
    ways = 1
    for size in sizes:
        ways += ways << (8 * width * size)
    last = (sum(sizes) - observed) // 2  # a subset sum s stands for the signed sum 2s - total
    fields = ways.to_bytes(width * (sum(sizes) + 1), "little")
    tail = sum(int.from_bytes(fields[i * width : (i + 1) * width], "little") for i in range(last + 1))
    return min(1.0, 2 * tail / (1 << len(sizes)))


# === Length of the answers ===


class LengthBias(NamedTuple):
    """Whether the judge favours the longer answer more than people do.

    n_len: pairs of unequal length. judge_longer, human_longer: share of the decisive picks for the longer answer
    (descriptive: longer may be better, so 0.5 is not the null). On pairs decisive for both: b = judge longer and human
    shorter, c the reverse, excess = (b - c) / n_both with exact McNemar p; the headline. eo_gap: the judge's error rate
    where people prefer the shorter minus that where they prefer the longer.
    """

    n_len: int
    n_equal_length: int
    judge_n: int
    judge_longer: float | None
    judge_wilson: Interval
    human_n: int
    human_longer: float | None
    human_wilson: Interval
    n_both: int
    b: int
    c: int
    both_longer: int
    both_shorter: int
    excess: float | None
    mcnemar_p: float
    eo_gap: float | None
    reason: str | None


class LengthRow(NamedTuple):
    """One pair: the lengths of A and B in one declared unit, the judge's decision, the people's label."""

    len_a: float
    len_b: float
    judge: MaybeLabel
    human: MaybeLabel


def picks_longer(row: LengthRow, label: MaybeLabel) -> bool | None:
    """Whether a label picks the longer answer; None for equal, invalid, missing or equal lengths."""
    decision = canonical(label)
    if decision not in ("A", "B") or row.len_a == row.len_b:
        return None
    return (decision == "A") == (row.len_a > row.len_b)


def length_bias(rows: Iterable[tuple[float, float, MaybeLabel, MaybeLabel]], level: float = 0.95) -> LengthBias:
    """Length (verbosity) bias over rows of (length of A, length of B, judge's decision, human label).

    Pairs of equal length leave; equal, invalid and missing labels leave the rates.
    Source: McNemar 1947; the equal-opportunity gap of Saito et al. 2023, arXiv 2310.10076.
    """
    read = [((a > b) - (a < b), judge_label, human_label) for a, b, judge_label, human_label in rows]
    try:
        given = Counter(read)
    except TypeError:  # a label that is no text at all: naming the labels one by one says which
        given = Counter((longer, canonical(one), canonical(other)) for longer, one, other in read)
    picks: Counter[tuple[bool | None, bool | None]] = Counter()
    for (longer, judge_label, human_label), count in given.items():
        row = LengthRow(longer, 0, judge_label, human_label)
        if longer:
            picks[picks_longer(row, row.judge), picks_longer(row, row.human)] += count
    n_len = sum(picks.values())
    judge = [sum(count for (j, _), count in picks.items() if j is side) for side in (True, False)]
    human = [sum(count for (_, h), count in picks.items() if h is side) for side in (True, False)]
    b, c, ll, ss = picks[True, False], picks[False, True], picks[True, True], picks[False, False]
    both = b + c + ll + ss
    return LengthBias(
        n_len=n_len,
        n_equal_length=sum(given.values()) - n_len,
        judge_n=sum(judge),
        judge_longer=ratio_value(judge[0], sum(judge)),
        judge_wilson=wilson(judge[0], sum(judge), level),
        human_n=sum(human),
        human_longer=ratio_value(human[0], sum(human)),
        human_wilson=wilson(human[0], sum(human), level),
        n_both=both,
        b=b,
        c=c,
        both_longer=ll,
        both_shorter=ss,
        excess=ratio_value(b - c, both),
        mcnemar_p=sign_test(b, c),
        eo_gap=b / (b + ss) - c / (c + ll) if b + ss and c + ll else None,
        reason=None if both else "no_items",
    )


def length_counts(len_a: float, len_b: float, judge: MaybeLabel, human: MaybeLabel) -> tuple[int, int] | None:
    """(excess, decisive for both) of one item, for `Resampler.add`: 1 judge longer and human shorter, -1 reversed.

    None when the judge's decision is missing; (0, 0) for an item that leaves the rate.
    """
    row = LengthRow(len_a, len_b, judge, human)
    if judge is None:
        return None
    by_judge, by_human = picks_longer(row, judge), picks_longer(row, human)
    return (0, 0) if by_judge is None or by_human is None else (by_judge - by_human, 1)


# === Bootstrap: drawing units ===

HEAVY = 20  # a pattern shared by this many units is drawn by one binomial, rarer ones unit by unit: the cheaper way
DIGIT_BITS = 6  # binomial tables are cached per base-128 digit of the number of trials, the third digit unbounded
DIGIT, TOP_SHIFT = 1 << DIGIT_BITS, 2 * DIGIT_BITS


Units = list[tuple[int, int]]  # (packed counters of a resampling unit, how many units look exactly so)


def stream_of(seed: object, name: str) -> random.Random:
    """The random numbers of one analysis: those of the text "seed:name", which may hold half a surrogate pair."""
    return random.Random(f"{seed}:{name}".encode("utf-8", "surrogatepass"))


class BinomialSampler:
    """Draws from Binomial(n, p) for one fixed p and any n.

    n is cut into its base-128 digits; each block of trials has a cached inverse distribution function, so a draw costs
    one uniform number and one bisection per digit. Only additions, products and quotients enter the tables: every
    platform and Python version gets the same draws.
    """

    def __init__(self, successes: int, trials: int) -> None:
        """p = successes / trials."""
        self.odds = successes / (trials - successes) if successes < trials else math.inf
        self.share = successes / trials
        self.tables: dict[int, tuple[int, list[float]]] = {}

    def table(self, n: int) -> tuple[int, list[float]]:
        """(first value, cumulative probabilities) of Binomial(n, p), cut where terms fall below rounding."""
        mode = min(n, int((n + 1) * self.share))
        right = [1.0]
        for k in range(mode, n):
            right.append(right[-1] * (n - k) / (k + 1) * self.odds)
            if right[-1] < 1e-18:
                break
        left = [1.0]
        for k in range(mode, 0, -1):
            left.append(left[-1] * k / (n - k + 1) / self.odds)
            if left[-1] < 1e-18:
                break
        terms = left[:0:-1] + right
        total = math.fsum(terms)
        return mode - len(left) + 1, [value / total for value in accumulate(terms)][:-1]

    def draw(self, n: int, uniform: Callable[[], float]) -> int:
        """One draw of Binomial(n, p)."""
        if self.odds == math.inf:
            return n
        successes, shift, tables = 0, 0, self.tables
        while n:
            size = n % DIGIT << shift if shift < TOP_SHIFT else n << shift
            n = n // DIGIT if shift < TOP_SHIFT else 0
            shift += DIGIT_BITS
            if size:
                if size not in tables:
                    tables[size] = self.table(size)
                first, cumulative = tables[size]
                successes += first + bisect_right(cumulative, uniform())
        return successes


class UniformSums:
    """Sums of packed units drawn with equal chances, with replacement.

    Sixteen random bits pick a slot of a table that holds every unit equally often; what is left over holds nothing.
    Each unit carries a mark above its counters, so the sum tells how many draws fell on nothing and are drawn again.
    """

    SLOTS = 1 << 16

    def __init__(self, units: Sequence[int], most: int, rng: random.Random) -> None:
        """units: packed counters; most: the largest number of draws that will be asked for at once."""
        self.rng = rng
        self.shift = (most * max(units, default=0)).bit_length()
        self.mask = (1 << self.shift) - 1
        self.units = [packed | 1 << self.shift for packed in units]
        times, rest = divmod(self.SLOTS, len(units)) if units else (0, 0)
        self.pick = (self.units * times + [0] * rest).__getitem__ if times else None

    def draw(self, k: int) -> int:
        """The sum of k units."""
        total = 0
        if self.pick is not None:
            slots = array("H", self.rng.randbytes(2 * k))
            if sys.byteorder == "big":  # the same draws on every machine
                slots.byteswap()
            total = sum(map(self.pick, slots))
            k -= total >> self.shift
        if k:
            total += sum(self.rng.choices(self.units, k=k))
        return total & self.mask


def resampled_totals(units: Units, n_resamples: int, rng: random.Random) -> Iterator[int]:
    """Sums of G units drawn with replacement from G units, n_resamples times.

    units: (packed counters, how many units look so), G = the sum of the latter. Adding two packed integers adds all
    their counters at once. Frequent patterns are drawn by conditional binomials, the rest one by one, which together
    is exactly the multinomial draw.
    """
    heavy = sorted((unit for unit in units if unit[1] >= HEAVY), key=lambda unit: -unit[1])
    everything = left = sum(count for _, count in units)
    draws: list[tuple[int, Callable[[int, Callable[[], float]], int]]] = []
    for packed, count in heavy:
        draws.append((packed, BinomialSampler(count, left).draw))
        left -= count
    uniform = rng.random
    tail = UniformSums([packed for packed, count in units if count < HEAVY for _ in range(count)], everything, rng)
    for _ in range(n_resamples):
        left, total = everything, 0
        for packed, draw in draws:
            k = draw(left, uniform)
            total += k * packed
            left -= k
        yield total + tail.draw(left) if left else total


# === Bootstrap: intervals ===

Values = list[float | None]


class Estimate(NamedTuple):
    """A measure with its intervals.

    value: the point estimate, None with `reason`. n: items behind it, n_units: resampling units (questions).
    interval: percentile; bca: the BCa interval or None when not asked for or not available (strata).
    """

    value: float | None
    reason: str | None
    n: int
    n_units: int
    interval: Interval
    bca: Interval | None


def percentile_interval(values: Sequence[float | None], level: float = 0.95) -> Interval:
    """The percentile interval of resampled values (None = undefined): type-7 quantiles of the defined ones.

    None: too_many_undefined (over 5% undefined), degenerate_resamples (all equal).
    """
    defined = sorted(value for value in values if value is not None)
    undefined = len(values) - len(defined)
    reason = resamples_reason(defined, undefined)
    if reason:
        return Interval(None, None, reason, "percentile", len(values), undefined)
    tail = (1 - level) / 2
    low, high = quantile(defined, tail), quantile(defined, 1 - tail)
    return Interval(low, high, None, "percentile", len(values), undefined)


def resamples_reason(ordered: Sequence[float], undefined: int) -> str | None:
    """Why sorted resampled values give no interval, or None."""
    if undefined > MAX_UNDEFINED_SHARE * (undefined + len(ordered)):
        return "too_many_undefined"
    return "degenerate_resamples" if not ordered or ordered[-1] - ordered[0] <= EPSILON else None


def bca_interval(
    value: float, values: Sequence[float | None], jackknife: Sequence[tuple[float | None, int]], level: float = 0.95
) -> Interval:
    """The bias-corrected and accelerated interval of resampled values.

    value: the point estimate. jackknife: (value without one unit, how many units give it). None besides the reasons
    of the percentile interval: degenerate_resamples when the bias or the acceleration cannot be formed,
    too_many_undefined when the value without some unit is undefined.
    Source: Efron 1987, JASA 82:171; equal values are counted half, as scipy does.
    """
    defined = sorted(v for v in values if v is not None)
    undefined = len(values) - len(defined)
    reason = resamples_reason(defined, undefined)
    ends: tuple[float, float] | None = None
    if reason is None and any(v is None for v, _ in jackknife):
        reason = "too_many_undefined"
    if reason is None:
        below = bisect_right(defined, value - EPSILON)
        share = (below + bisect_right(defined, value + EPSILON)) / (2 * len(defined))
        ends = bca_levels(share, acceleration([(v, c) for v, c in jackknife if v is not None]), level)
        reason = None if ends else "degenerate_resamples"
    if ends is None:
        return Interval(None, None, reason, "bca", len(values), undefined)
    return Interval(quantile(defined, ends[0]), quantile(defined, ends[1]), None, "bca", len(values), undefined)


def acceleration(jackknife: Sequence[tuple[float, int]]) -> float | None:
    """BCa's acceleration from (value without one unit, count); None when the values are all equal."""
    n = sum(count for _, count in jackknife)
    centre = math.fsum(value * count for value, count in jackknife) / n
    squares = math.fsum(count * (centre - value) ** 2 for value, count in jackknife)
    cubes = math.fsum(count * (centre - value) ** 3 for value, count in jackknife)
    if max(value for value, _ in jackknife) - min(value for value, _ in jackknife) <= EPSILON:
        return None
    return cubes / (6 * squares * math.sqrt(squares))


def bca_levels(share: float, accelerate: float | None, level: float) -> tuple[float, float] | None:
    """The two quantile levels of the BCa interval, or None when they cannot be formed."""
    if accelerate is None or not 0 < share < 1:
        return None
    bias = NormalDist().inv_cdf(share)
    ends = []
    for z in (-z_value(level), z_value(level)):
        bend = 1 - accelerate * (bias + z)
        if bend <= 0:
            return None
        ends.append(normal_cdf(bias + (bias + z) / bend))
    return ends[0], ends[1]


def estimate(
    value: float | None,
    reason: str,
    n: int,
    n_units: int,
    drawn: Values | None,
    knife: Sequence[tuple[float | None, int]] | None,
    level: float,
) -> Estimate:
    """An Estimate from the point value, its resampled values (None = fewer than two units) and, for BCa, jackknife.

    reason: why value is None, if it is; the intervals then carry it too.
    """
    if value is None or drawn is None:
        none = Interval(None, None, reason if value is None else "too_few_clusters", "percentile")
        bca = None if knife is None else none._replace(method="bca")
        return Estimate(value, reason if value is None else None, n, n_units, none, bca)
    corrected = None if knife is None else bca_interval(value, drawn, knife, level)
    return Estimate(value, None, n, n_units, percentile_interval(drawn, level), corrected)


def unpack(totals: Sequence[int], n_fields: int, code: str) -> array[int]:
    """Packed integers as one flat array of their counters, n_fields each, of an array type."""
    flat: array[int] = array(code)
    size = flat.itemsize * n_fields
    flat.frombytes(b"".join(total.to_bytes(size, "little") for total in totals))
    if sys.byteorder == "big":
        flat.byteswap()
    return flat


def minus(a: float | None, b: float | None) -> float | None:
    """a - b, None if either is undefined."""
    return None if a is None or b is None else a - b


# === Bootstrap: one pass over all arms and metrics ===

Key = tuple[str, ...]  # (arm, metric) or (arm 1, arm 2, metric): the difference arm 1 - arm 2
Field = tuple[str, str, str, str]  # what is counted: (kind, arm, paired with arm or "", label or ratio name)
Column = Sequence[int]  # one counter over all resamples
Decisions = tuple[tuple[str, MaybeLabel], ...]
Ratios = tuple[tuple[tuple[str, str], tuple[int, int]], ...]


class Pattern(NamedTuple):
    """Everything an item contributes; equal patterns are counted, not stored again."""

    gold: MaybeLabel
    decisions: Decisions
    ratios: Ratios


class Item(NamedTuple):
    """One registered item: its question (None = alone), stratum, pattern number, and the groups it belongs to."""

    cluster: Hashable
    stratum: Hashable
    pattern: int
    groups: tuple[Hashable, ...]


class Table(NamedTuple):
    """Columns of one arm's decisions against gold: items, right ones, and counts per label (absent = all zero)."""

    n: Column
    hits: Column
    gold: dict[Label, Column]
    predicted: dict[Label, Column]
    right: dict[Label, Column]


def column_sum(columns: Iterable[Column], size: int) -> Column:
    """Columns added up, zeros if there are none."""
    total: Iterable[int] = repeat(0, size)
    for column in columns:
        total = map(add, total, column)
    return list(total)


def kappa_column(table: Table, q: int) -> Values:
    """Kappa of every resample."""
    products = [list(map(mul, table.gold[x], table.predicted[x])) for x in table.gold if x in table.predicted]
    return list(map(kappa_value, table.n, table.hits, column_sum(products, len(table.n))))


def agreement_column(table: Table, q: int) -> Values:
    """Raw agreement of every resample."""
    return list(map(ratio_value, table.hits, table.n))


def ac1_column(table: Table, q: int) -> Values:
    """AC1 of every resample for a label set of size q."""
    spreads: list[Column] = []
    for label in {**table.gold, **table.predicted}:
        sides = [side[label] for side in (table.gold, table.predicted) if label in side]
        spreads.append([s * (2 * n - s) for s, n in zip(column_sum(sides, len(table.n)), table.n)])
    return list(map(ac1_value, table.n, table.hits, column_sum(spreads, len(table.n)), repeat(q)))


def valid_column(table: Table, q: int) -> Values:
    """Share of decisions that are not invalid, of every resample."""
    invalid = table.predicted.get("invalid", [0] * len(table.n))
    return list(map(ratio_value, map(sub, table.n, invalid), table.n))


def recall_column(label: Label) -> Callable[[Table, int], Values]:
    """The column function of the share decided right among items with that gold label."""

    def column(table: Table, q: int) -> Values:
        zeros = [0] * len(table.n)
        return list(map(ratio_value, table.right.get(label, zeros), table.gold.get(label, zeros)))

    return column


TABLE_METRICS: dict[str, Callable[[Table, int], Values]] = {
    "kappa": kappa_column,
    "agreement": agreement_column,
    "ac1": ac1_column,
    "valid_output": valid_column,
    "recall_A": recall_column("A"),
    "recall_B": recall_column("B"),
    "recall_equal": recall_column("equal"),
}


def check_ratios(ratios: Ratios) -> None:
    """Raises: ValueError for a ratio that is not whole / whole and not negative."""
    for key, value in ratios:
        numerator, denominator = value
        if not (isinstance(numerator, int) and isinstance(denominator, int) and denominator >= 0):
            raise ValueError(f"ratio {key!r}: expected whole numbers and a denominator >= 0, got {value!r}")


class Resampler:
    """A paired cluster bootstrap that gives every arm, metric and difference from one pass.

    Register items with `add`, then ask with `intervals` or `estimates`. A resample draws G questions with replacement
    from the G observed ones and takes all their items; an item without a cluster is a question of its own. All arms
    and metrics see the same resamples (common random numbers). A difference uses the items that both arms have.
    Results depend on the seed, the name and the set of registered items, not on their order, not on cluster names,
    and not on which other metrics are asked for.
    Source: Field & Welsh 2007, JRSS B 69:369 (cluster bootstrap); sufficient statistics packed in one integer per unit.
    """

    def __init__(
        self, *, seed: int | str, name: str, n_resamples: int = 10_000, level: float = 0.95, q: int = len(LABELS)
    ) -> None:
        """name: of the analysis; it selects the random stream. q: size of the declared label set, for AC1."""
        self.seed, self.name, self.n_resamples, self.level, self.q = seed, name, n_resamples, level, q
        self.patterns: dict[Pattern, int] = {}
        self.items: list[Item] = []
        self.ratio_names: set[str] = set()  # also of ratios that are missing everywhere: asked for, they are undefined
        self.known: dict[Hashable, int] = {}  # rows as given -> pattern number

    def add(
        self,
        gold: MaybeLabel,
        decisions: Mapping[str, MaybeLabel],
        *,
        cluster: Hashable = None,
        ratios: Mapping[tuple[str, str], tuple[int, int] | None] | None = None,
        stratum: Hashable = None,
        groups: Sequence[Hashable] = (),
    ) -> None:
        """Register one item.

        gold: its label or None. decisions: arm -> majority label (or one repeat's, under an arm name of its own), None
        or absent = missing. ratios: (arm, name) -> (numerator, denominator) in whole numbers, numerators may be
        negative; None or absent = missing. cluster: its question. stratum: fixed by the design, all or none.
        groups: names for `by_group`, for example ("category=math",).
        """
        seen = (gold, tuple(decisions.items()), tuple(ratios.items()) if ratios else ())
        number = self.known.get(seen)
        if number is None:
            number = self.known[seen] = self.pattern(gold, decisions, ratios or {})
        self.add_pattern(number, cluster, stratum, tuple(groups))

    def add_pattern(
        self, number: int, cluster: Hashable = None, stratum: Hashable = None, groups: tuple[Hashable, ...] = ()
    ) -> None:
        """Register one item whose number is known from `pattern`: for who has many items and few patterns of them."""
        self.items.append(Item(cluster, stratum, number, groups))

    def pattern(
        self,
        gold: MaybeLabel,
        decisions: Mapping[str, MaybeLabel],
        ratios: Mapping[tuple[str, str], tuple[int, int] | None],
    ) -> int:
        """The number of an item's pattern, canonical: aliases, missing entries and the order of arms are gone.

        Arguments as in `add`.
        """
        self.ratio_names.update(name for _, name in ratios or {})
        labels = tuple(sorted((arm, canonical(label)) for arm, label in decisions.items() if label is not None))
        counts = tuple(sorted((key, value) for key, value in ratios.items() if value is not None))
        check_ratios(counts)
        return self.patterns.setdefault(Pattern(canonical(gold), labels, counts), len(self.patterns))

    def intervals(self, keys: Iterable[Key]) -> dict[Key, Interval]:
        """Key -> percentile interval; a key is (arm, metric) or (arm 1, arm 2, metric) for the difference."""
        return {key: estimate.interval for key, estimate in self.estimates(keys).items()}

    def estimates(self, keys: Iterable[Key], *, bca: bool = False) -> dict[Key, Estimate]:
        """Key -> value with percentile interval, and BCa interval if asked for and no strata are used.

        Metrics: kappa, agreement, ac1, valid_output, recall_A, recall_B, recall_equal, or the name of a ratio.
        Raises: ValueError for an unknown metric or a malformed key.
        """
        wanted = list(dict.fromkeys(keys))
        strata = self.units()
        layout = Layout(self, wanted, strata)
        units = [unit for stratum in layout.units for unit in stratum]
        apart, counts = layout.columns([packed for packed, _ in units]), [count for _, count in units]
        point = layout.columns([layout.total])
        drawn = layout.columns(list(layout.draw(self.rng()))) if layout.drawable else None
        left_out = None
        if bca and len(strata) <= 1:
            left_out = layout.columns([layout.total - packed for packed, _ in units])
        result = {}
        for key in wanted:
            value, n = self.series(key, point)[0], self.size(key, point)[0]
            reason = "single_label" if n and key[-1] == "kappa" else "no_items"
            n_units = sum(count for size, count in zip(self.size(key, apart), counts) if size)
            values = None if drawn is None or n_units < 2 else self.series(key, drawn)
            knife = None
            if left_out is not None:
                knife = list(zip(self.series(key, left_out), counts))
            result[key] = estimate(value, reason, n, n_units, values, knife, self.level)
        return result

    def by_group(
        self, keys: Iterable[Key], *, bca: bool = False, n_resamples: int | None = None
    ) -> dict[Hashable, dict[Key, Estimate]]:
        """Group -> estimates of the items registered under it, each group with a random stream of its own.

        n_resamples: for tables with many groups; None = as many as for the whole.
        """
        members: defaultdict[Hashable, list[Item]] = defaultdict(list)
        for item in self.items:
            for group in item.groups:
                members[group].append(item)
        wanted = list(keys)
        result: dict[Hashable, dict[Key, Estimate]] = {}
        for group in sorted(members, key=repr):
            part = Resampler(
                seed=self.seed,
                name=f"{self.name}:{group}",
                n_resamples=n_resamples or self.n_resamples,
                level=self.level,
                q=self.q,
            )
            part.patterns, part.items, part.ratio_names = self.patterns, members[group], self.ratio_names
            result[group] = part.estimates(wanted, bca=bca)
        return result

    def rng(self) -> random.Random:
        """The analysis's own random stream, from its start."""
        return stream_of(self.seed, self.name)

    def units(self) -> list[list[tuple[tuple[int, ...], int]]]:
        """Per stratum: (pattern numbers of a question's items, how many questions look so), in canonical order.

        The order follows the contents alone, so neither row order nor names reach the random draws.
        """
        used = {item.pattern for item in self.items}
        idle = {number for p, number in self.patterns.items() if not p.ratios and (p.gold is None or not p.decisions)}
        contents = sorted((repr(pattern), number) for pattern, number in self.patterns.items() if number in used)
        rank = {number: index for index, (_, number) in enumerate(contents)}
        questions: defaultdict[tuple[Hashable, Hashable], list[int]] = defaultdict(list)
        strata: defaultdict[Hashable, Counter[tuple[int, ...]]] = defaultdict(Counter)
        for cluster, stratum, number, _ in self.items:
            if number in idle:  # nothing is known of it: missing, not a question that was asked
                continue
            if cluster is None:
                strata[stratum][number,] += 1
            else:
                questions[stratum, cluster].append(number)
        for (stratum, _), numbers in questions.items():
            strata[stratum][tuple(sorted(numbers, key=rank.__getitem__))] += 1
        ranked = [sorted(c.items(), key=lambda unit: [rank[number] for number in unit[0]]) for c in strata.values()]
        return sorted(ranked, key=lambda units: [([rank[x] for x in numbers], count) for numbers, count in units])

    def series(self, key: Key, columns: Columns) -> Values:
        """The metric of a key on every resample in columns."""
        if len(key) == 3:
            first, second, metric = key
            one = self.one_arm(first, second, metric, columns)
            return list(map(minus, one, self.one_arm(second, first, metric, columns)))
        return self.one_arm(key[0], "", key[1], columns)

    def one_arm(self, arm: str, partner: str, metric: str, columns: Columns) -> Values:
        """One arm's metric on every resample, over the items it has (with a partner: that both have)."""
        if metric in TABLE_METRICS:
            return TABLE_METRICS[metric](columns.table(arm, partner), self.q)
        return list(map(ratio_value, columns.numerator(arm, partner, metric), columns.get("den", arm, partner, metric)))

    def size(self, key: Key, columns: Columns) -> Column:
        """How many items (for a ratio: how large a denominator) stand behind a key's value, per row of columns."""
        arm, metric, partner = key[0], key[-1], key[1] if len(key) == 3 else ""
        if metric in TABLE_METRICS:
            return columns.table(arm, partner).n
        return columns.get("den", arm, partner, metric)


def pattern_fields(pattern: Pattern, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[Field, int]]:
    """The counters an item adds to, for the asked (arm, partner) pairs; partner '' = whatever the others did."""
    decisions, ratios, gold = dict(pattern.decisions), dict(pattern.ratios), pattern.gold
    for arm, partner in pairs:
        label = decisions.get(arm)
        if gold is not None and label is not None and (not partner or decisions.get(partner) is not None):
            yield ("gold", arm, partner, gold), 1
            yield ("pred", arm, partner, label), 1
            if label == gold:
                yield ("right", arm, partner, label), 1
    for (arm, name), (numerator, denominator) in ratios.items():
        for partner in {p for a, p in pairs if a == arm}:
            if not partner or (partner, name) in ratios:
                yield ("num" if numerator >= 0 else "neg", arm, partner, name), abs(numerator)
                yield ("den", arm, partner, name), denominator


class Columns:
    """Counters of many resamples, by field. Fields that are zero everywhere are not stored."""

    def __init__(self, size: int, places: Mapping[Field, int], values: Sequence[Column]) -> None:
        """places: field -> index into values."""
        self.size, self.places, self.values = size, places, values

    def get(self, kind: str, arm: str, partner: str, what: str) -> Column:
        """One counter over all resamples, zeros if it never counted anything."""
        place = self.places.get((kind, arm, partner, what))
        return [0] * self.size if place is None else self.values[place]

    def labels(self, kind: str, arm: str, partner: str) -> dict[Label, Column]:
        """Label -> counter, for the labels that occur."""
        fields = [(label, self.places.get((kind, arm, partner, label))) for label in LABELS]
        return {label: self.values[place] for label, place in fields if place is not None}

    def table(self, arm: str, partner: str) -> Table:
        """The counters of one arm's decisions against gold."""
        gold, predicted, right = (self.labels(kind, arm, partner) for kind in ("gold", "pred", "right"))
        n, hits = column_sum(gold.values(), self.size), column_sum(right.values(), self.size)
        return Table(n, hits, gold, predicted, right)

    def numerator(self, arm: str, partner: str, name: str) -> Column:
        """A ratio's numerator, whose negative part is counted apart."""
        return list(map(sub, self.get("num", arm, partner, name), self.get("neg", arm, partner, name)))


class Layout:
    """Where each counter sits in the packed integers, the packed units, and the way back to columns."""

    def __init__(self, sampler: Resampler, keys: Sequence[Key], strata: Sequence[Sequence[tuple[Any, int]]]) -> None:
        """Pack the sampler's units with the counters that the keys need. Raises: ValueError for a bad key."""
        used = sorted({item.pattern for item in sampler.items})
        by_number = {number: pattern for pattern, number in sampler.patterns.items()}
        self.n_resamples = sampler.n_resamples
        self.check(keys, sampler.ratio_names)
        pairs = sorted({pair for key in keys for pair in self.arm_pairs(key)})
        entries: defaultdict[Field, array[int]] = defaultdict(lambda: array("Q"))
        largest = 1
        for number in used:
            for field, value in pattern_fields(by_number[number], pairs):
                if value:
                    entries[field].extend((number, value))
                    largest = max(largest, value)
        places: dict[bytes, int] = {}  # equal columns (gold of two arms without gaps) share one counter
        self.places = {field: places.setdefault(entries[field].tobytes(), len(places)) for field in sorted(entries)}
        n_units = sum(count for units in strata for _, count in units)
        most = max((len(numbers) for units in strata for numbers, _ in units), default=1)
        self.code, self.width = self.counter_type(largest * most * max(1, n_units))
        packed = self.pack_patterns(places)
        self.units = [[(sum(packed.get(x, 0) for x in numbers), count) for numbers, count in s] for s in strata]
        self.total = sum(value * count for units in self.units for value, count in units)
        self.drawable = bool(strata) and all(sum(count for _, count in units) >= 2 for units in strata)

    @staticmethod
    def check(keys: Sequence[Key], ratio_names: set[str]) -> None:
        """Raises: ValueError for a key that is not (arm, metric) or (arm, arm, metric) with a known metric."""
        for key in keys:
            if len(key) not in (2, 3) or not (key[-1] in TABLE_METRICS or key[-1] in ratio_names):
                known = ", ".join([*TABLE_METRICS, *sorted(ratio_names)])
                raise ValueError(f"key: expected (arm, metric) or (arm, arm, metric), metric of {known}; got {key!r}")

    @staticmethod
    def arm_pairs(key: Key) -> list[tuple[str, str]]:
        """The (arm, partner) tables that a key needs."""
        return [(key[0], "")] if len(key) == 2 else [(key[0], key[1]), (key[1], key[0])]

    @staticmethod
    def counter_type(bound: int) -> tuple[str, int]:
        """The smallest array type (code, bytes) whose counters cannot overflow below bound."""
        for code in "HIQ":
            width = array(code).itemsize
            if bound < 1 << (8 * width):
                return code, width
        raise ValueError(f"ratios: counters up to {bound} do not fit; scale them down")

    def pack_patterns(self, places: Mapping[bytes, int]) -> dict[int, int]:
        """Pattern number -> its counters in one integer."""
        packed: defaultdict[int, int] = defaultdict(int)
        for content, place in places.items():
            column = array("Q", content)
            for number, value in zip(column[::2], column[1::2]):
                packed[number] += value << (8 * self.width * place)
        return packed

    def draw(self, rng: random.Random) -> Iterator[int]:
        """Totals of every resample: questions drawn within each stratum."""
        streams = [resampled_totals(units, self.n_resamples, rng) for units in self.units]
        return streams[0] if len(streams) == 1 else map(sum, zip(*streams))

    def columns(self, totals: Sequence[int]) -> Columns:
        """Packed totals as one column per counter."""
        n_fields = max(self.places.values(), default=-1) + 1
        flat = unpack(totals, n_fields, self.code)
        return Columns(len(totals), self.places, [flat[place::n_fields].tolist() for place in range(n_fields)])


# === Grades ===

GRADE_MEASURES = ("qwk", "spearman", "pearson", "mae", "rmse", "bias", "exact", "within1")
Grade = float | None  # a judge's score, None = invalid


class Grades(NamedTuple):
    """A judge's scores against people's.

    n: items with both scores; n_total: items with a human score that the judge was asked (invalid included);
    n_missing: the rest. qwk, spearman, pearson in [-1, 1]; mae, rmse, bias in score points, bias positive = the judge
    is kinder; exact, within1 = share of n_total. reasons: measure -> why it is None.
    """

    n: int
    n_total: int
    n_missing: int
    n_invalid: int
    reasons: dict[str, str]
    qwk: float | None
    spearman: float | None
    pearson: float | None
    mae: float | None
    rmse: float | None
    bias: float | None
    exact: float | None
    within1: float | None


def read_grades(human: Sequence[Any], judge: Sequence[Any]) -> list[tuple[float, Grade] | None]:
    """(human score, judge score or None for invalid) per item; None where either is missing.

    A human score that is not a finite number is missing; a judge's is invalid. Raises: ValueError, unequal lengths.
    """
    if len(human) != len(judge):
        raise ValueError(f"human and judge scores: expected equal lengths, got {len(human)} and {len(judge)}")
    rows = zip(human, judge)
    return [(float(x), float(y) if is_number(y) else None) if is_number(x) and y is not None else None for x, y in rows]


def grade_agreement(human: Sequence[Any], judge: Sequence[Any]) -> Grades:
    """All grade measures of a judge's scores against people's.

    human: scores, None = missing (several people: their mean). judge: scores, 'invalid' (or any other text) = an answer
    without a score, None = missing. An invalid score leaves the numeric measures and stays in exact and within1.
    Quadratic weighted kappa is 1 - mean (x - y)^2 / (var x + var y + (mean x - mean y)^2), exact for any scale and for
    fractional scores; equal to Lin's concordance correlation. None: constant_scores, no_items.
    Source: Cohen 1968, Psychological Bulletin 70:213; Lin 1989, Biometrics 45:255.
    """
    rows = [row for row in read_grades(human, judge) if row is not None]
    cells = Counter(rows)
    values = GradeCells(list(cells)).measures(list(cells.values()))
    n = sum(y is not None for _, y in rows)
    reasons = {name: grade_reason(n) for name, value in values.items() if value is None}
    return Grades(
        n, len(rows), len(human) - len(rows), len(rows) - n, reasons, *(values[name] for name in GRADE_MEASURES)
    )


def grade_reason(n: int) -> str:
    """Why a grade measure over n valid pairs is None."""
    return "constant_scores" if n else "no_items"


class GradeCells:
    """Distinct (human, judge) score pairs, prepared so that all measures follow from how often each was seen."""

    def __init__(self, cells: Sequence[tuple[float, Grade]]) -> None:
        """cells: distinct pairs, judge None = invalid."""
        pairs = [(x, y) for x, y in cells if y is not None]
        self.valid = [index for index, (_, y) in enumerate(cells) if y is not None]
        centre = pairs[0][0] if pairs else 0.0  # sums of squares around a score of the scale lose no digits
        self.x = [x - centre for x, _ in pairs]
        self.y = [y - centre for _, y in pairs]
        self.x_squared, self.y_squared = list(map(mul, self.x, self.x)), list(map(mul, self.y, self.y))
        self.product = list(map(mul, self.x, self.y))
        self.difference = [y - x for x, y in pairs]
        self.absolute = list(map(abs, self.difference))
        self.squared = list(map(mul, self.difference, self.difference))
        self.exact = [size < 1e-9 for size in self.absolute]
        self.within = [size <= 1 + 1e-9 for size in self.absolute]  # a fifth is not a whole binary fraction
        self.x_place, self.y_place = places_of(self.x), places_of(self.y)

    def measures(self, weights: Sequence[int]) -> dict[str, float | None]:
        """Measure -> value when cell i was seen weights[i] times."""
        values: dict[str, float | None] = dict.fromkeys(GRADE_MEASURES)
        w, total = [weights[index] for index in self.valid], sum(weights)
        n = sum(w)
        if total:
            values["exact"] = sum(map(mul, w, self.exact)) / total
            values["within1"] = sum(map(mul, w, self.within)) / total
        if n:
            squared = weighted_sum(w, self.squared) / n
            values["mae"] = weighted_sum(w, self.absolute) / n
            values["rmse"] = math.sqrt(squared)
            values["bias"] = weighted_sum(w, self.difference) / n
            values.update(self.correlations(w, n, squared))
        return values

    def correlations(self, w: Sequence[int], n: int, squared: float) -> dict[str, float | None]:
        """qwk, pearson and spearman of n valid pairs with that mean squared difference; left out where undefined."""
        x_totals, y_totals = totals_by_place(self.x_place, w), totals_by_place(self.y_place, w)
        x_varies, y_varies = (sum(map(bool, totals)) > 1 for totals in (x_totals, y_totals))
        if not (x_varies or y_varies):
            return {"qwk": 0.0 if squared > 0 else None}
        mean_x, mean_y = weighted_sum(w, self.x) / n, weighted_sum(w, self.y) / n
        var_x = weighted_sum(w, self.x_squared) / n - mean_x * mean_x
        var_y = weighted_sum(w, self.y_squared) / n - mean_y * mean_y
        qwk = 1 - squared / (var_x + var_y + (mean_x - mean_y) ** 2)
        if not (x_varies and y_varies):
            return {"qwk": qwk}
        cross = weighted_sum(w, self.product) / n - mean_x * mean_y
        rank_x, rank_y = double_ranks(x_totals), double_ranks(y_totals)
        centre = n * (n + 1) ** 2  # doubled mid-ranks are whole numbers with mean n + 1
        rank_xx = sum(c * r * r for c, r in zip(x_totals, rank_x)) - centre
        rank_yy = sum(c * r * r for c, r in zip(y_totals, rank_y)) - centre
        rank_xy = sum(c * rank_x[i] * rank_y[j] for c, i, j in zip(w, self.x_place, self.y_place)) - centre
        spearman = rank_xy / math.sqrt(rank_xx * rank_yy)
        return {"qwk": qwk, "pearson": cross / math.sqrt(var_x * var_y), "spearman": spearman}


def weighted_sum(weights: Sequence[int], values: Sequence[float]) -> float:
    """Sum of weight x value, rounded once."""
    return math.fsum(map(mul, weights, values))


def places_of(values: Sequence[float]) -> list[int]:
    """The rank (from 0) of each value among the distinct ones."""
    order = {value: place for place, value in enumerate(sorted(set(values)))}
    return [order[value] for value in values]


def totals_by_place(places: Sequence[int], weights: Sequence[int]) -> list[int]:
    """How often each distinct value was seen."""
    totals = [0] * (max(places) + 1)
    for place, weight in zip(places, weights):
        totals[place] += weight
    return totals


def double_ranks(totals: Sequence[int]) -> list[int]:
    """Twice the mid-rank of each distinct value, in order, for values seen so often."""
    ranks, below = [], 0
    for total in totals:
        ranks.append(2 * below + total + 1)
        below += total
    return ranks


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation; None if either side is constant or n < 2."""
    return GradeCells(list(zip(x, y))).measures([1] * len(x))["pearson"]


def spearman(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's rank correlation with mid-ranks; None if either side is constant or n < 2."""
    return GradeCells(list(zip(x, y))).measures([1] * len(x))["spearman"]


def spearman_interval(rho: float | None, n: int, level: float = 0.95) -> Interval:
    """The interval of Spearman's correlation of n independent items, by Fisher's z with the spread it has for ranks.

    None: no_items for an undefined rho or fewer than 4 items, degenerate_resamples at -1 and 1.
    Source: Bonett & Wright 2000, Psychometrika 65:23.
    """
    if rho is None or n < 4:
        return Interval(None, None, "no_items", "fisher")
    if abs(rho) >= 1 - EPSILON:
        return Interval(None, None, "degenerate_resamples", "fisher")
    half = z_value(level) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    return Interval(math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), None, "fisher")


JointCell = tuple[tuple[float, Grade] | None, ...]  # one item's (human, judge) scores for every arm, None = missing


def grade_units(rows: Sequence[JointCell], clusters: Sequence[Hashable] | None) -> tuple[list[JointCell], Units]:
    """(distinct cells, packed units): per question how often each cell occurs, in canonical order."""
    cells = sorted(set(rows), key=repr)
    place = {cell: index for index, cell in enumerate(cells)}
    sums: defaultdict[Hashable, int] = defaultdict(int)
    for index, row in enumerate(rows):
        sums[index if clusters is None else clusters[index]] += 1 << (32 * place[row])
    return cells, sorted(Counter(sums.values()).items())


def grade_estimates(
    human: Sequence[Any],
    judges: Mapping[str, Sequence[Any]],
    keys: Iterable[Key],
    *,
    seed: int | str,
    name: str,
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = 10_000,
    level: float = 0.95,
    bca: bool = False,
) -> dict[Key, Estimate]:
    """Key -> grade measure with its cluster bootstrap interval, all from one pass.

    human, judges (arm -> scores): as `grade_agreement`. keys: (arm, measure) or (arm 1, arm 2, measure) for the
    difference over the items that both have. clusters: the question of each item, None = every item its own.
    Raises: ValueError for an unknown measure or arm.
    """
    wanted = list(dict.fromkeys(keys))
    for key in wanted:
        if len(key) not in (2, 3) or key[-1] not in GRADE_MEASURES or not set(key[:-1]) <= set(judges):
            raise ValueError(f"key: expected (arm, measure) or (arm, arm, measure), got {key!r}")
    arms = sorted(judges)
    cells, units = grade_units(list(zip(*(read_grades(human, judges[arm]) for arm in arms))), clusters)
    n_units, total = sum(c for _, c in units), sum(packed * c for packed, c in units)
    totals = [total, *(total - packed for packed, _ in units)]
    if n_units > 1:
        totals.extend(resampled_totals(units, n_resamples, stream_of(seed, name)))
    counts = unpack(totals, len(cells), "I")
    rows = [counts[i * len(cells) : (i + 1) * len(cells)] for i in range(len(totals))]
    tables: dict[tuple[str, ...], list[dict[str, float | None]]] = {}
    result = {}
    for key in wanted:
        values, n = grade_series(key, arms, cells, rows, tables), grade_size(key, arms, cells, rows)
        knife = list(zip(values[1:], (c for _, c in units))) if bca else None
        drawn = values[1 + len(units) :] if n_units > 1 else None
        result[key] = estimate(values[0], grade_reason(n), n, n_units, drawn, knife, level)
    return result


def grade_cells_of(key: Key, arms: Sequence[str], cells: Sequence[JointCell]) -> list[int]:
    """The cells of items that every arm of a key has."""
    wanted = [arms.index(arm) for arm in key[:-1]]
    return [i for i, cell in enumerate(cells) if all(cell[a] is not None for a in wanted)]


def grade_size(key: Key, arms: Sequence[str], cells: Sequence[JointCell], rows: Sequence[Sequence[int]]) -> int:
    """How many items stand behind a key's value: all asked ones for exact and within1, else those with valid scores."""
    kept = grade_cells_of(key, arms, cells)
    if key[-1] not in ("exact", "within1"):
        wanted = [arms.index(arm) for arm in key[:-1]]
        kept = [i for i in kept if all((cells[i][a] or (0, None))[1] is not None for a in wanted)]
    return sum(rows[0][i] for i in kept) if kept else 0


def grade_series(
    key: Key,
    arms: Sequence[str],
    cells: Sequence[JointCell],
    rows: Sequence[Sequence[int]],
    tables: dict[tuple[str, ...], list[dict[str, float | None]]],
) -> Values:
    """The measure of a key for every row of cell counts; tables keeps what one key computed for the next."""
    kept = grade_cells_of(key, arms, cells)
    columns = []
    for arm in key[:-1]:
        place = (arm, *map(str, kept))
        if place not in tables:
            prepared = GradeCells([cell for i in kept if (cell := cells[i][arms.index(arm)]) is not None])
            tables[place] = [prepared.measures([row[i] for i in kept]) for row in rows]
        columns.append([measures[key[-1]] for measures in tables[place]])
    return columns[0] if len(columns) == 1 else list(map(minus, *columns))


# === Two judges on the same items ===


class Paired(NamedTuple):
    """Judge 1 against judge 2 on the items both have.

    better: judge 1 right and judge 2 wrong; worse: the reverse; tie: the rest. sign_p: sign test = exact McNemar over
    items. flip: the sign-flip test by question. p: the one to report, flip's when any question holds several items.
    """

    better: int
    tie: int
    worse: int
    n: int
    n_missing: int
    sign_p: float
    flip: FlipTest
    p: float
    test: str


class Verdict(NamedTuple):
    """'win', 'loss' or 'tie' of judge 1 with the reason; a tie means not separated by this data, never equal."""

    verdict: str
    reason: str


def paired(
    gold: Sequence[MaybeLabel],
    predicted1: Sequence[MaybeLabel],
    predicted2: Sequence[MaybeLabel],
    clusters: Sequence[Hashable] | None = None,
) -> Paired:
    """Better, tie and worse of two judges, with the exact tests by item and by question.

    gold, predicted1, predicted2: labels or None; items with any of them missing leave. clusters: question per item.
    Source: McNemar 1947; for clustered pairs a randomisation test by question (Obuchowski 1998, Durkalski 2003).
    """
    rows = list(zip(map(canonical, gold), map(canonical, predicted1), map(canonical, predicted2), strict=True))
    kept = [i for i, row in enumerate(rows) if None not in row]
    differences = [(rows[i][1] == rows[i][0]) - (rows[i][2] == rows[i][0]) for i in kept]
    better, worse = differences.count(1), differences.count(-1)
    questions = kept if clusters is None else [clusters[i] for i in kept]
    flip = sign_flip_test(differences, questions)
    clustered = flip.clusters < len(kept)
    p = sign_test(better, worse)
    name = "sign-flip test by question" if clustered else "sign test (exact McNemar)"
    tie = len(kept) - better - worse
    missing = len(rows) - len(kept)
    return Paired(better, tie, worse, len(kept), missing, p, flip, flip.p if clustered else p, name)


def verdict(
    low: float | None,
    high: float | None,
    range1: tuple[float, float] | None,
    range2: tuple[float, float] | None,
    adjusted_p: float | None = None,
) -> Verdict:
    """Whether judge 1 wins, loses or is not separated from judge 2.

    low, high: interval of metric 1 - metric 2. range1, range2: (min, max) of the same metric over each judge's repeats,
    None below two repeats. adjusted_p: with several declared comparisons, the Holm-adjusted p, which must be <= 0.05.
    Win: the interval lies strictly above 0 and every repeat of judge 1 beats every repeat of judge 2; loss mirrored.
    """
    if low is None or high is None:
        return Verdict("tie", "no interval")
    if range1 is None or range2 is None:
        return Verdict("tie", "not repeated")
    if low <= 0 <= high:
        return Verdict("tie", "the interval of the difference includes 0")
    above = low > 0
    if (range1[0] <= range2[1]) if above else (range1[1] >= range2[0]):
        return Verdict("tie", "the ranges over the repeats overlap")
    if adjusted_p is not None and adjusted_p > 0.05:
        return Verdict("tie", "the adjusted p is above 0.05")
    side = "above" if above else "below"
    return Verdict("win" if above else "loss", f"the interval lies {side} 0 and the ranges over the repeats are apart")


# === Many comparisons ===


def adjust(p_values: Sequence[float], method: str) -> list[float]:
    """Adjusted p-values in the given order; reject where the adjusted p is at most the level.

    method: 'holm' (family-wise, for declared comparisons), 'bh' (false discovery rate, for exploratory tables) or 'by'
    (the same under any dependence). Raises: ValueError for another method.
    Source: Holm 1979; Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001.
    """
    if method not in ("holm", "bh", "by"):
        raise ValueError(f"method: expected holm, bh or by, got {method!r}")
    m = len(p_values)
    order = sorted(range(m), key=p_values.__getitem__)
    adjusted = [0.0] * m
    if method == "holm":
        running = 0.0
        for rank, index in enumerate(order):
            running = max(running, min(1.0, (m - rank) * p_values[index]))
            adjusted[index] = running
        return adjusted
    penalty = math.fsum(1 / i for i in range(1, m + 1)) if method == "by" else 1.0
    running = 1.0
    for rank in range(m, 0, -1):
        index = order[rank - 1]
        running = min(running, p_values[index] * m * penalty / rank)
        adjusted[index] = running
    return adjusted


# === People ===

Votes = Sequence[Mapping[str, MaybeLabel]]  # per item: annotator -> label


class HumanCeiling(NamedTuple):
    """How well people agree, and the judge on the same terms.

    pairwise = pair_agree / pair_total over all vote pairs of an item. alpha: nominal, over all votes. kappa: Cohen's,
    only with exactly two annotators. Over loo_n left-out votes with a unique plurality of the others as reference:
    human_loo the share of votes that equal it, judge_loo the share of the judge's labels that do. The last two are the
    fair comparison; human agreement is a yardstick, not an upper bound.
    """

    pair_agree: int
    pair_total: int
    pairwise: float | None
    alpha: float | None
    kappa: float | None
    n_annotators: int
    loo_n: int
    human_loo: float | None
    judge_loo: float | None
    reason: str | None


class LooCounts(NamedTuple):
    """One item's left-out votes: those equal to the plurality of the others, the judge's equal ones, all."""

    human: int
    judge: int
    n: int


def read_votes(votes: Votes) -> list[dict[str, Label]]:
    """The votes of each item, canonical, without missing and invalid ones."""
    rows = ({who: canonical(label) for who, label in row.items()} for row in votes)
    return [{who: label for who, label in row.items() if label is not None and label != "invalid"} for row in rows]


def loo_counts(votes: Votes, judge: Sequence[MaybeLabel]) -> list[LooCounts]:
    """Per item: how often a left-out vote, and the judge, equal the unique plurality of the item's other votes.

    Votes without a unique plurality of the others, and items that the judge misses, are skipped. Feed the Resampler
    with ratios (human, n) and (judge, n) to get the interval of the difference.
    """
    result = []
    for row, label in zip(read_votes(votes), map(canonical, judge), strict=True):
        references = [gold_from_votes(v for w, v in row.items() if w != who) for who in row]
        pairs = [(vote, ref) for vote, ref in zip(row.values(), references) if ref is not None and label is not None]
        hits = sum(vote == ref for vote, ref in pairs)
        result.append(LooCounts(hits, sum(label == ref for _, ref in pairs), len(pairs)))
    return result


def human_ceiling(votes: Votes, judge: Sequence[MaybeLabel]) -> HumanCeiling:
    """Human-human agreement, and the leave-one-out ceiling with the judge against the same references.

    votes: per item annotator -> label. judge: one decision per item, None = missing. reason: too_few_ratings when no
    item has two votes (then no ceiling can be estimated).
    """
    rows = read_votes(votes)
    pairs = [pair for row in rows for pair in combinations(row.values(), 2)]
    agree = sum(a == b for a, b in pairs)
    annotators = sorted({who for row in rows for who in row})
    between_two = None
    if len(annotators) == 2:
        between_two = kappa(*([row.get(who) for row in rows] for who in annotators)).value
    loo = loo_counts(votes, judge)
    n = sum(item.n for item in loo)
    return HumanCeiling(
        agree,
        len(pairs),
        ratio_value(agree, len(pairs)),
        krippendorff_alpha(row.values() for row in rows).value,
        between_two,
        len(annotators),
        n,
        ratio_value(sum(item.human for item in loo), n),
        ratio_value(sum(item.judge for item in loo), n),
        None if pairs else "too_few_ratings",
    )


def share_of_ceiling(judge_kappa: float | None, human_kappa: float | None) -> float | None:
    """The judge's kappa as a share of human-human kappa; None unless the latter is above 0. It can exceed 1."""
    return (
        judge_kappa / human_kappa if judge_kappa is not None and human_kappa is not None and human_kappa > 0 else None
    )


class AltTest(NamedTuple):
    """The alternative annotator test.

    winning_rate: share of annotators the judge may replace; passes: that it is >= 0.5. rho: mean advantage probability,
    the measure to rank judges by. p, adjusted, rho_by, n_by: per usable annotator. skipped: annotator -> usable items.
    """

    winning_rate: float | None
    rho: float | None
    passes: bool | None
    p: dict[str, float]
    adjusted: dict[str, float]
    rho_by: dict[str, float]
    n_by: dict[str, int]
    skipped: dict[str, int]
    reason: str | None


def alignment(value: Any, others: Sequence[Any], scoring: str) -> float:
    """How well one annotation fits the others': the share that equals it, or minus the root mean squared error."""
    if scoring == "accuracy":
        return sum(value == other for other in others) / len(others) if value != "invalid" else 0.0
    if not is_number(value):
        return -math.inf
    return -math.sqrt(math.fsum((value - other) ** 2 for other in others) / len(others))


def alt_test(
    judge: Mapping[Hashable, Any],
    humans: Mapping[str, Mapping[Hashable, Any]],
    *,
    eps: float = 0.2,
    q: float = 0.05,
    fdr: str = "by",
    scoring: str = "accuracy",
    min_items: int = 30,
) -> AltTest:
    """Whether the judge represents the annotators at least as well as each of them does the others.

    judge: item -> label or score; humans: annotator -> (item -> label or score); None = missing. eps: the cost-benefit
    allowance (0.2 experts, 0.15 skilled, 0.1 crowd). scoring: 'accuracy' for labels, 'rmse' for scores. An annotator
    needs min_items items that also have another vote and the judge's. None: too_few_annotations.
    The t-test takes items as independent, and fewer than three annotators mean little: say so beside the result.
    Source: Calderon, Reichart & Dror 2025, arXiv 2501.10970; `fdr='bh'` deviates from it and must be said.
    """
    votes = {who: {i: as_rating(v) for i, v in row.items() if v is not None} for who, row in humans.items()}
    labels = {item: as_rating(value) for item, value in judge.items() if value is not None}
    by_item: defaultdict[Hashable, dict[str, Any]] = defaultdict(dict)
    for who, row in votes.items():
        for item, value in row.items():
            by_item[item][who] = value
    p, rho_by, n_by, skipped = {}, {}, {}, {}
    for who, row in votes.items():
        items = [item for item in row if item in labels and len(by_item[item]) >= 2]
        if len(items) < max(2, min_items):
            skipped[who] = len(items)
            continue
        wins, differences = [], []
        for item in items:
            others = [value for other, value in by_item[item].items() if other != who]
            ours, theirs = (alignment(value, others, scoring) for value in (labels[item], row[item]))
            wins.append(ours >= theirs)
            differences.append((theirs >= ours) - (ours >= theirs))
        p[who], rho_by[who], n_by[who] = alt_test_p(differences, eps), sum(wins) / len(wins), len(wins)
    if not p:
        return AltTest(None, None, None, p, {}, rho_by, n_by, skipped, "too_few_annotations")
    adjusted = dict(zip(p, adjust(list(p.values()), fdr)))
    rate = sum(value <= q for value in adjusted.values()) / len(p)
    rho = math.fsum(rho_by.values()) / len(rho_by)
    return AltTest(rate, rho, rate >= 0.5, p, adjusted, rho_by, n_by, skipped, None)


def alt_test_p(differences: Sequence[int], eps: float) -> float:
    """One-sided p of "mean difference below eps" by Student's t; without variance 0 if it is below, else 1."""
    n, centre = len(differences), sum(differences) / len(differences)
    if len(set(differences)) == 1:
        return 0.0 if centre < eps else 1.0
    return student_t_cdf((centre - eps) / (sample_sd(differences) / math.sqrt(n)), n - 1)


# === MT-Bench's two setups ===

SetupKey = tuple[int, str, str]  # (turn, 'with_tie' (S1) or 'without_tie' (S2), 'gpt4-pair_human' or 'human_human')


def vote_source(judge: Any) -> str:
    """Whose vote a row is: 'gpt4-pair', 'human' (experts), 'author', or the name itself."""
    if isinstance(judge, (list, tuple)):
        return "gpt4-pair" if judge[0] == "gpt-4" and str(judge[1]).startswith("pair") else "/".join(map(str, judge))
    return next((kind for start, kind in (("expert", "human"), ("author", "author")) if judge.startswith(start)), judge)


def mtbench_votes(votes: Iterable[Mapping[str, Any]]) -> dict[tuple[int, Any, str, str], dict[str, list[str]]]:
    """(turn, question, model, model) -> source -> winners, models in alphabetical order, winners turned with them."""
    turned = {"model_a": "model_b", "model_b": "model_a"}
    result: defaultdict[tuple[int, Any, str, str], defaultdict[str, list[str]]]
    result = defaultdict(lambda: defaultdict(list))
    for row in votes:
        a, b, winner = row["model_a"], row["model_b"], row["winner"]
        if not a < b:
            a, b, winner = b, a, turned.get(winner, winner)
        winner = "tie" if "tie" in winner else winner  # "tie (inconsistent)" is a tie; "error" stays and never agrees
        result[row["turn"], row["question_id"], a, b][vote_source(row["judge"])].append(winner)
    return {key: dict(sources) for key, sources in result.items()}


def setup_counts(votes: Iterable[Mapping[str, Any]]) -> dict[SetupKey, dict[Any, tuple[int, int]]]:
    """(turn, setup, who) -> question -> (agreeing, counted) vote pairs, as MT-Bench counts them.

    votes: rows with question_id, model_a, model_b, winner, judge, turn. 'with_tie' (S1) counts all; 'without_tie' (S2)
    skips pairs with a tie on either side, which is conditional on a decisive judge: print the share kept beside it.
    Each human vote counts once, without a majority step. Feed the Resampler with the sums for an interval.
    Raises: ValueError if an item has two GPT-4 verdicts.
    Source: Zheng et al. 2023; FastChat `compute_agreement.py` (commit 0e6d3e4b).
    """
    pairs: defaultdict[SetupKey, defaultdict[Any, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for (turn, question, *models), sources in mtbench_votes(votes).items():
        humans, judge = sources.get("human", []), sources.get("gpt4-pair", [])
        if len(judge) > 1:
            raise ValueError(
                f"question {question!r}, {models}, turn {turn}: expected one GPT-4 verdict, got {len(judge)}"
            )
        couples = {
            "gpt4-pair_human": [(j, h) for j in judge for h in humans],
            "human_human": list(combinations(humans, 2)),
        }
        for who, compared in couples.items():
            for a, b in compared:
                for setup in ("with_tie",) if "tie" in (a, b) else ("with_tie", "without_tie"):
                    counts = pairs[turn, setup, who][question]
                    counts[0] += a == b
                    counts[1] += 1
    return {key: {q: (agree, total) for q, (agree, total) in by.items()} for key, by in pairs.items()}


def mtbench_agreement(votes: Iterable[Mapping[str, Any]]) -> dict[SetupKey, tuple[int, int]]:
    """(turn, setup, who) -> (agreeing, counted) over all questions; every setup of the turns seen, (0, 0) if empty."""
    rows = list(votes)
    counts = setup_counts(rows)
    keys = [
        (turn, setup, who)
        for turn in sorted({row["turn"] for row in rows})
        for setup in ("with_tie", "without_tie")
        for who in ("gpt4-pair_human", "human_human")
    ]
    sums = {key: tuple(map(sum, zip(*counts[key].values()))) if key in counts else (0, 0) for key in keys}
    return {key: (agree, total) for key, (agree, total) in sums.items()}


# === Win rates corrected with few human labels ===


class CorrectedRate(NamedTuple):
    """A corrected rate: theta with its interval, in [0, 1] after clipping; None with a reason.

    p: the judge's rate on the unlabelled set; q1, q0: P(judge 1 | human 1), P(judge 0 | human 0) on the labelled one.
    """

    theta: float | None
    low: float | None
    high: float | None
    p: float | None
    q0: float | None
    q1: float | None
    n_labelled: int
    n_unlabelled: int
    reason: str | None


class PredictionPowered(NamedTuple):
    """A prediction-powered mean with its interval, and the human-only one beside it (theta, low, high).

    lam in [0, 1]: the weight of the judge; 0 is the human-only interval, 1 plain prediction-powered inference.
    Ends are not clipped to the range of the scores.
    """

    theta: float | None
    low: float | None
    high: float | None
    lam: float | None
    human_only: tuple[float | None, float | None, float | None]
    n_labelled: int
    n_unlabelled: int
    reason: str | None


def demand_random_sample(labelled_is_random_sample: bool) -> None:
    """Raises: ValueError unless the caller states that the labelled items are a random sample of all items."""
    if labelled_is_random_sample is not True:
        raise ValueError("labelled items: a corrected rate holds only if they are a random sample; say so or label one")


def clip01(value: float) -> float:
    """The value moved into [0, 1]."""
    return max(0.0, min(1.0, value))


def rogan_gladen(
    labels: Sequence[int],
    judged: Sequence[int],
    unlabelled: Sequence[int],
    *,
    labelled_is_random_sample: bool,
    level: float = 0.95,
) -> CorrectedRate:
    """A win rate corrected for the judge's error rates, for a 0/1 outcome.

    labels, judged: human and judge outcome of the labelled items; unlabelled: judge outcomes of the rest. Assumes the
    same error rates in both sets. None: no_items, one_class_only (a human class without items),
    judge_not_informative (q0 + q1 <= 1). Raises: ValueError without the statement about the sample.
    Source: Rogan & Gladen 1978, Am J Epidemiology 107:71; interval of Lee et al. 2025, arXiv 2511.21140.
    """
    demand_random_sample(labelled_is_random_sample)
    pairs = list(zip(labels, judged, strict=True))
    ones, zeros = [j for h, j in pairs if h == 1], [j for h, j in pairs if h == 0]
    q1, q0 = ratio_value(sum(ones), len(ones)), ratio_value(len(zeros) - sum(zeros), len(zeros))
    n, m1, m0 = len(unlabelled), len(ones), len(zeros)
    p = ratio_value(sum(unlabelled), n)
    if p is None or not pairs:
        return CorrectedRate(None, None, None, p, q0, q1, len(pairs), n, "no_items")
    if q0 is None or q1 is None:
        return CorrectedRate(None, None, None, p, q0, q1, len(pairs), n, "one_class_only")
    if (len(zeros) - sum(zeros)) * m1 + sum(ones) * m0 <= m0 * m1:
        return CorrectedRate(None, None, None, p, q0, q1, len(pairs), n, "judge_not_informative")
    theta = clip01((p + q0 - 1) / (q0 + q1 - 1))
    low, high = rogan_gladen_interval(p, n, q0, m0, q1, m1, z_value(level))
    return CorrectedRate(
        theta, low, high, p, q0, q1, len(pairs), n, None if low is not None else "judge_not_informative"
    )


def rogan_gladen_interval(
    p: float, n: int, q0: float, m0: int, q1: float, m1: int, z: float
) -> tuple[float | None, float | None]:
    """The interval of Lee et al.: all rates shrunk first, clipped ends; None if the shrunk judge knows nothing."""
    p, total = (n * p + z * z / 2) / (n + z * z), n + z * z
    q0, q1 = (m0 * q0 + 1) / (m0 + 2), (m1 * q1 + 1) / (m1 + 2)
    informed = q0 + q1 - 1
    if informed <= 0:
        return None, None
    theta = (p + q0 - 1) / informed
    v0, v1 = q0 * (1 - q0) / (m0 + 2), q1 * (1 - q1) / (m1 + 2)
    centre = theta + 2 * z * z * (theta * v1 - (1 - theta) * v0)
    error = math.sqrt(p * (1 - p) / total + (1 - theta) ** 2 * v0 + theta**2 * v1) / informed
    return clip01(centre - z * error), clip01(centre + z * error)


def variance(values: Sequence[float]) -> float:
    """Population variance."""
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / len(values)


def ppi_lambda(y: Sequence[float], f: Sequence[float], unlabelled: Sequence[float]) -> float:
    """The weight of the judge that minimises the variance, in [0, 1]; 0 if the judge's scores never vary."""
    n, pooled = len(y), [*f, *unlabelled]
    spread = variance(pooled) * len(pooled) / (len(pooled) - 1)
    mean_y, mean_f = math.fsum(y) / n, math.fsum(f) / n
    covariance = math.fsum((a - mean_y) * (b - mean_f) for a, b in zip(y, f)) / n
    return clip01(covariance / ((1 + n / len(unlabelled)) * spread)) if spread > 0 else 0.0


def ppi_mean(
    y: Sequence[float],
    f: Sequence[float],
    unlabelled: Sequence[float],
    *,
    labelled_is_random_sample: bool,
    lam: float | None = None,
    level: float = 0.95,
) -> PredictionPowered:
    """A mean score from few human and many judge scores: PPI++, the preferred correction.

    y, f: human and judge score of the labelled items (win 1, equal 0.5, loss 0; an invalid judge output any fixed
    value, say 0.5); unlabelled: judge scores of the rest. lam: None = tuned. None: no_items, too_few_clusters (fewer
    than two of either). Raises: ValueError without the statement about the sample.
    Source: Angelopoulos et al. 2023, Science 382:669 and arXiv 2311.01453.
    """
    demand_random_sample(labelled_is_random_sample)
    n, rest, z = len(y), len(unlabelled), z_value(level)
    if len(f) != n:
        raise ValueError(f"y and f: expected equal lengths, got {n} and {len(f)}")
    alone: tuple[float | None, float | None, float | None] = (mean_of(y), None, None)
    if n >= 2:
        centre, half = math.fsum(y) / n, z * math.sqrt(variance(y) / n)
        alone = (centre, centre - half, centre + half)
    if n < 2 or rest < 2:
        reason = "no_items" if not (n and rest) else "too_few_clusters"
        return PredictionPowered(None, None, None, None, alone, n, rest, reason)
    weight = ppi_lambda(y, f, unlabelled) if lam is None else lam
    rectified = [a - weight * b for a, b in zip(y, f)]
    theta = weight * math.fsum(unlabelled) / rest + math.fsum(rectified) / n
    half = z * math.sqrt(weight**2 * variance(unlabelled) / rest + variance(rectified) / n)
    return PredictionPowered(theta, theta - half, theta + half, weight, alone, n, rest, None)


# === Planning ===


def design_effect(pairs_per_question: float, correlation: float) -> float:
    """How many times more items are needed when m pairs share a question with that correlation of correctness."""
    return 1 + (pairs_per_question - 1) * correlation


def sample_size_rate(p: float, half: float, level: float = 0.95) -> int:
    """Items needed so that a rate near p has an interval of +- half."""
    return math.ceil(z_value(level) ** 2 * p * (1 - p) / half**2)


def sample_size_kappa(po: float, pe: float, half: float, level: float = 0.95) -> int:
    """Items needed so that kappa has an interval of +- half. Source: Cohen's 1960 standard error."""
    return math.ceil(z_value(level) ** 2 * po * (1 - po) / ((1 - pe) ** 2 * half**2))


def half_width_rate(n: int, p: float, level: float = 0.95) -> float:
    """Half the interval of a rate near p over n items, n at least 1: what `sample_size_rate` asks for, turned round."""
    return z_value(level) * math.sqrt(p * (1 - p) / n)


def half_width_kappa(n: int, po: float, pe: float, level: float = 0.95) -> float:
    """The same of kappa, as `sample_size_kappa`; pe below 1."""
    return half_width_rate(n, po, level) / (1 - pe)


def paired_size(delta: float, psi: float, level: float, power: float) -> float:
    """Items, not rounded, by Connor's formula; delta in (0, psi]."""
    z_power = NormalDist().inv_cdf(power)
    return (z_value(level) * math.sqrt(psi) + z_power * math.sqrt(psi - delta * delta)) ** 2 / delta**2


def sample_size_paired(delta: float, psi: float, level: float = 0.95, power: float = 0.8) -> int | None:
    """Items needed to detect a difference delta of agreement; None if delta is 0 or above psi (impossible).

    psi: discordant share (better + worse) / n. For a difference of kappa multiply it by 1 - pe first. The exact sign
    test wants 1 / delta items more. Source: Connor 1987, Biometrics 43:207.
    """
    delta = abs(delta)
    return math.ceil(paired_size(delta, psi, level, power)) if 0 < delta <= psi else None


def detectable_difference(n: int, psi: float, level: float = 0.95, power: float = 0.8) -> float | None:
    """The smallest difference of agreement that n items can detect at discordant share psi, in (0, psi].

    None if even a difference of psi would need more items. For kappa divide it by 1 - pe. Source: as above.
    """
    if not 0 < psi <= 1 or n < 1 or paired_size(psi, psi, level, power) > n:
        return None
    low, high = 0.0, psi
    while (middle := (low + high) / 2) not in (low, high):
        if paired_size(middle, psi, level, power) > n:
            low = middle
        else:
            high = middle
    return high


def pairs_to_settle(n: int, value: float, interval: Interval, threshold: float) -> int | None:
    """How many pairs in all would put the threshold at the edge of the interval if the value stayed as it is.

    The half width shrinks with the square root of n. None if there is no interval or the value is the threshold.
    """
    if interval.low is None or interval.high is None or value == threshold:
        return None
    half = value - interval.low if threshold < value else interval.high - value
    return max(n, math.ceil(n * (half / (value - threshold)) ** 2))


# === Ranking answer models: Bradley-Terry ===

Game = tuple[str, str, MaybeLabel]  # (model a, model b, 'a' | 'b' | equal or an alias | invalid or None = leaves)
WINNERS = {"a": "A", "b": "B", "model_a": "A", "model_b": "B"}


class BradleyTerry(NamedTuple):
    """Mean-zero log strengths by model; None with reason no_items or disconnected."""

    strength: dict[str, float] | None
    n_games: int
    reason: str | None


def game_points(game: Game) -> tuple[int, int] | None:
    """(points of a, points of b) in halves of a win: 2-0, 0-2, or 1-1; None for a game that leaves."""
    winner = canonical(WINNERS.get(game[2], game[2]) if game[2] is not None else None)
    return {"A": (2, 0), "B": (0, 2), "equal": (1, 1)}.get(winner or "")


def reaches_all(points: Mapping[tuple[str, str], int], models: Sequence[str], forward: bool) -> bool:
    """Whether every model is reached from the first one along "has beaten or tied" (or its reverse)."""
    seen, todo = {models[0]}, [models[0]]
    while todo:
        here = todo.pop()
        for model in models:
            if model not in seen and points.get((here, model) if forward else (model, here)):
                seen.add(model)
                todo.append(model)
    return len(seen) == len(models)


def fit_strengths(
    points: Mapping[tuple[str, str], int], models: Sequence[str], start: Mapping[str, float], tolerance: float
) -> dict[str, float] | None:
    """Mean-zero log strengths by Hunter's MM iteration, or None if no finite estimate exists."""
    if not (reaches_all(points, models, True) and reaches_all(points, models, False)):
        return None
    wins = {a: sum(points.get((a, b), 0) for b in models) for a in models}
    games = {a: [(b, points.get((a, b), 0) + points.get((b, a), 0)) for b in models if b != a] for a in models}
    strength = {a: math.exp(start[a]) for a in models}
    change = math.inf
    while change >= tolerance:
        fresh = {a: wins[a] / math.fsum(n / (strength[a] + strength[b]) for b, n in games[a] if n) for a in models}
        shift = math.exp(math.fsum(map(math.log, fresh.values())) / len(models))
        fresh = {a: value / shift for a, value in fresh.items()}
        change = max(abs(math.log(fresh[a] / strength[a])) for a in models)
        strength = fresh
    return {a: math.log(value) for a, value in strength.items()}


def bradley_terry(games: Iterable[Game]) -> BradleyTerry:
    """Log strengths of models from judged pairs; a tie is half a win each way. Not an agreement measure.

    Each model must have beaten or tied, and lost to or tied, the rest through some chain, else disconnected.
    Source: Bradley & Terry 1952; MM iteration of Hunter 2004, Annals of Statistics 32:384.
    """
    points: Counter[tuple[str, str]] = Counter()
    n = 0
    for game in games:
        score = game_points(game)
        if score is not None:
            n += 1
            points[game[0], game[1]] += score[0]
            points[game[1], game[0]] += score[1]
    models = sorted({model for pair in points for model in pair})
    if not n:
        return BradleyTerry(None, 0, "no_items")
    strength = fit_strengths(points, models, dict.fromkeys(models, 0.0), 1e-13)
    return BradleyTerry(strength, n, None if strength else "disconnected")


def bradley_terry_estimates(
    games: Sequence[Game],
    *,
    clusters: Sequence[Hashable] | None = None,
    seed: int | str,
    name: str,
    n_resamples: int = 1_000,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Model -> log strength with its cluster bootstrap interval; a disconnected resample counts as undefined.

    games: as `bradley_terry`. clusters: the question of each game. Each resample is an iterative fit, hence 1,000.
    """
    kept = [(i, game, score) for i, game in enumerate(games) if (score := game_points(game)) is not None]
    models = sorted({model for _, game, _ in kept for model in game[:2]})
    pairs = [(a, b) for a in models for b in models]
    place = {pair: index for index, pair in enumerate(pairs)}
    sums: defaultdict[Hashable, int] = defaultdict(int)
    for i, (a, b, _), (for_a, for_b) in kept:
        unit = i if clusters is None else clusters[i]
        sums[unit] += (for_a << (32 * place[a, b])) + (for_b << (32 * place[b, a]))
    whole = bradley_terry(games)
    start = whole.strength or dict.fromkeys(models, 0.0)
    fits: list[dict[str, float] | None] | None = None
    if len(sums) > 1 and whole.strength:
        units = sorted(Counter(sums.values()).items())
        totals = list(resampled_totals(units, n_resamples, stream_of(seed, name)))
        counts = unpack(totals, len(pairs), "I")
        rows = (counts[i * len(pairs) : (i + 1) * len(pairs)] for i in range(n_resamples))
        fits = [fit_strengths(dict(zip(pairs, row)), models, start, 1e-9) for row in rows]
    result = {}
    for model in models:
        values: Values | None = None if fits is None else [None if fit is None else fit[model] for fit in fits]
        value = whole.strength[model] if whole.strength else None
        result[model] = estimate(value, whole.reason or "", len(kept), len(sums), values, None, level)
    return result


# === Contamination: how much of a hidden text comes back ===

NEAR_EXACT_F1 = 0.75
NEAR_EXACT_TOKENS = 10
VERBATIM_CHARS = 50  # the substring length of the GPT-4 report
MIN_TARGET_WORDS = 8


class Overlap(NamedTuple):
    """Overlap of a completion with the hidden target.

    rouge_l_*: longest common subsequence of tokens over the completion's (precision) and the target's (recall) length.
    run_tokens, run_chars: longest common run, runs that also occur in the shown text left out.
    """

    rouge_l_precision: float
    rouge_l_recall: float
    rouge_l_f1: float
    run_tokens: int
    run_chars: int
    n_target_tokens: int
    exact: bool


def tokens_of(text: str) -> list[str]:
    """Words and numbers of a text in any script, lower case, without underscores and punctuation."""
    return re.findall(r"[^\W_]+", text.lower())


def plain(text: str) -> str:
    """The text in lower case with white space collapsed."""
    return " ".join(text.lower().split())


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, a bit of one big integer per element of a."""
    masks: defaultdict[str, int] = defaultdict(int)
    for index, token in enumerate(a):
        masks[token] |= 1 << index
    row, everything = 0, (1 << len(a)) - 1
    for token in b:
        matches = masks.get(token, 0) | row
        row = matches & ~(matches - ((row << 1) | 1)) & everything
    return row.bit_count()


def runs_of(sequence: Sequence[str] | str, length: int) -> set[Sequence[str] | str]:
    """All runs of that length, as texts or tuples."""
    starts = range(len(sequence) - length + 1)
    if isinstance(sequence, str):
        return {sequence[start : start + length] for start in starts}
    return {tuple(sequence[start : start + length]) for start in starts}


def longest_run(a: Sequence[str] | str, b: Sequence[str] | str, shown: Sequence[str] | str) -> int:
    """Length of the longest run that a and b share and that the shown text does not contain."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # a shared run of some length contains shared runs of every smaller length
        middle = (low + high + 1) // 2
        if runs_of(a, middle) & runs_of(b, middle):
            low = middle
        else:
            high = middle - 1
    while low and shown and not (runs_of(a, low) & runs_of(b, low)) - runs_of(shown, low):
        low -= 1
    return low


def overlap(target: str, completion: str, shown: str = "") -> Overlap:
    """How much of the hidden target a completion repeats; all 0 for an empty text.

    shown: the piece and the prompt the model saw: a run that occurs there proves nothing.
    Source: ROUGE-L of Lin 2004, here with tokens of any script and no stemming.
    """
    ours, theirs = tokens_of(completion), tokens_of(target)
    common = common_subsequence(theirs, ours)
    precision = common / len(ours) if ours else 0.0
    recall = common / len(theirs) if theirs else 0.0
    f1 = 2 * precision * recall / (precision + recall) if common else 0.0
    run_chars = longest_run(plain(completion), plain(target), plain(shown))
    run_tokens = longest_run(ours, theirs, tokens_of(shown))
    exact = plain(completion) == plain(target) and bool(theirs)
    return Overlap(precision, recall, f1, run_tokens, run_chars, len(theirs), exact)


def overlap_flags(found: Overlap) -> tuple[str, ...]:
    """Which of 'exact', 'near_exact' and 'verbatim_run' an item earns.

    near_exact: F1 of at least 0.75 and a run of at least 10 tokens. verbatim_run: a run of at least 50 characters, or
    of at least 10 tokens covering half the target.
    """
    long_run = found.run_tokens >= NEAR_EXACT_TOKENS
    near = found.rouge_l_f1 >= NEAR_EXACT_F1 and long_run
    verbatim = found.run_chars >= VERBATIM_CHARS or (long_run and 2 * found.run_tokens >= found.n_target_tokens)
    flags = (("exact", found.exact), ("near_exact", near), ("verbatim_run", verbatim))
    return tuple(name for name, earned in flags if earned)


def split_question(text: str) -> tuple[str, str] | None:
    """(shown first half, hidden target) after half the words, rounded up; None below eight target words."""
    words = text.split()
    middle = (len(words) + 1) // 2
    return (" ".join(words[:middle]), " ".join(words[middle:])) if len(words) - middle >= MIN_TARGET_WORDS else None


def derangement(ids: Sequence[str], categories: Sequence[str]) -> dict[str, str | None]:
    """Item -> another item of its category, each used once: the next in sorted order. None for a lone item."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for item, category in sorted(zip(ids, categories, strict=True)):
        groups[category].append(item)
    shifted = {item: group[i - len(group) + 1] for group in groups.values() for i, item in enumerate(group)}
    return {item: other if other != item else None for item, other in shifted.items()}


def mean_draws(
    values: Sequence[float], clusters: Sequence[Hashable] | None, n_resamples: int, rng: random.Random
) -> tuple[list[tuple[float, int]], list[float]]:
    """((sum, items) per question, resampled means) of the cluster bootstrap of a mean of any numbers."""
    groups: defaultdict[Hashable, list[float]] = defaultdict(list)
    for index, value in enumerate(values):
        groups[index if clusters is None else clusters[index]].append(value)
    units = sorted((math.fsum(group), len(group)) for group in groups.values())
    draws = (rng.choices(units, k=len(units)) for _ in range(n_resamples)) if len(units) > 1 else iter(())
    return units, [math.fsum(s for s, _ in drawn) / sum(n for _, n in drawn) for drawn in draws]


def mean_estimate(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int | str,
    name: str,
    n_resamples: int = 10_000,
    level: float = 0.95,
) -> Estimate:
    """The mean of any numbers with its cluster bootstrap interval, for example overlap minus mismatched overlap."""
    units, drawn = mean_draws(values, clusters, n_resamples, stream_of(seed, name))
    return estimate(mean_of(values), "no_items", len(values), len(units), list(drawn) or None, None, level)


def difference_of_means(
    values1: Sequence[float],
    values2: Sequence[float],
    *,
    seed: int | str,
    name: str,
    clusters1: Sequence[Hashable] | None = None,
    clusters2: Sequence[Hashable] | None = None,
    n_resamples: int = 10_000,
    level: float = 0.95,
) -> Estimate:
    """mean 1 - mean 2 of two independent sets (benchmark and fresh items), from two independent bootstraps."""
    units1, drawn1 = mean_draws(values1, clusters1, n_resamples, stream_of(seed, f"{name}:1"))
    units2, drawn2 = mean_draws(values2, clusters2, n_resamples, stream_of(seed, f"{name}:2"))
    drawn: Values = list(map(minus, drawn1, drawn2))
    value = minus(mean_of(values1), mean_of(values2))
    n, n_units = len(values1) + len(values2), min(len(units1), len(units2))
    return estimate(value, "no_items", n, n_units, drawn or None, None, level)


class LabelProbe(NamedTuple):
    """How often a model names the human winner without seeing the answers; p: P(that many or more at the base rate)."""

    k: int
    n: int
    share: float | None
    base_rate: float | None
    p: float | None
    reason: str | None


def label_probe(gold: Sequence[MaybeLabel], guessed: Sequence[MaybeLabel]) -> LabelProbe:
    """Guesses of the human label against the majority-class rate, exact one-sided binomial test.

    Above the base rate may still be knowledge of which model is good: repeat it with names swapped or masked.
    """
    pairs = present_pairs(gold, guessed)
    golds, _ = margins(pairs)
    n, k = sum(golds.values()), hits_of(pairs)
    if not n:
        return LabelProbe(0, 0, None, None, None, "no_items")
    most = max(golds.values())
    return LabelProbe(k, n, k / n, most / n, binomial_upper_tail(k, n, most, n), None)


def contamination_finding(
    n_exact: int, n_near: int, fresh_flagged: int, effect: Interval, against_fresh: Interval
) -> tuple[str, str]:
    """(code, what may be said) of a contamination check.

    n_exact, n_near: flagged benchmark items; fresh_flagged: exact or near-exact fresh items. effect: interval of the
    guided overlap minus the mismatched one on the benchmark; against_fresh: of that effect minus the fresh items'.
    """
    above = effect.low is not None and effect.low > 0
    more_than_fresh = against_fresh.low is not None and against_fresh.low > 0
    if (n_exact >= 1 or n_near >= 2) and not fresh_flagged:
        return "recall", "verbatim recall of benchmark text: evidence of contamination"
    if above and more_than_fresh:
        return "elevated", "elevated overlap: suspicion; list the items"
    if above:
        return "formulaic", "overlap no larger than on fresh items: formulaic wording, not evidence"
    return "nothing", "no verbatim recall found; this is not evidence of a clean model"


if __name__ == "__main__":  # loaded by other files; run by itself it says what it is for
    print((__doc__ or "").partition("\n\n")[0])
