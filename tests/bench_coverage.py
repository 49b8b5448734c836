"""How often a nominal 95% interval holds the true value when pairs share questions, measured by simulation.

    python3 tests/bench_coverage.py [--data-sets 300] [--resamples 1000] [--questions 80] [--pairs 11]

Each made-up data set has questions of several pairs; a question makes both judges more or less often right (a normal
effect on the logit scale, plus, in the last designs, one of its own for each judge). Printed per design: the
intra-question correlation of correctness, the coverage of the item and of the cluster bootstrap for kappa and for the
difference of two equal judges, and how often the item-level sign test and the sign-flip test by question reject that
true null at 0.05. The truth is kappa at the design's mean accuracy, integrated numerically. Asserts nothing.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


def load_agreement() -> ModuleType:
    """The agreement module of this checkout, executed from its own bytes."""
    path = Path(__file__).resolve().parent.parent / "agreement.py"
    module = ModuleType("agreement")
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


agreement: Any = load_agreement()

ACCURACY_LOGIT = math.log(0.8 / 0.2)
KAPPA = ("one", "kappa")
DIFFERENCE = ("one", "two", "kappa")

# === Made-up data ===


class Design(NamedTuple):
    """Standard deviations of the shared and of the judge-specific question effect, on the logit scale."""

    name: str
    shared: float
    own: float


DESIGNS = (
    Design("no question effect", 0.0, 0.0),
    Design("shared, moderate", 0.65, 0.0),
    Design("shared, strong", 1.26, 0.0),
    Design("shared and each judge's own", 0.65, 0.8),
    Design("shared and each judge's own, strong", 0.65, 1.5),
)


def chance_right(effect: float) -> float:
    """Probability of a right decision at a question effect."""
    return 1 / (1 + math.exp(-ACCURACY_LOGIT - effect))


def moments(design: Design) -> tuple[float, float]:
    """(mean accuracy, intra-question correlation of correctness) over the normal effect, by the midpoint rule."""
    sd, steps = math.hypot(design.shared, design.own), 4000
    if sd == 0:
        return chance_right(0.0), 0.0
    nodes = [-8 + 16 * (i + 0.5) / steps for i in range(steps)]
    weights = [math.exp(-z * z / 2) for z in nodes]
    rights = [chance_right(sd * z) for z in nodes]
    total = sum(weights)
    mean = sum(map(float.__mul__, weights, rights)) / total
    square = sum(w * p * p for w, p in zip(weights, rights)) / total
    return mean, (square - mean * mean) / (mean * (1 - mean))


def made_up_rows(design: Design, questions: int, pairs: int, rng: random.Random) -> Iterator[tuple[str, str, str, int]]:
    """(gold, judge 1, judge 2, question): gold A or B at even odds, both judges equally good."""
    other = {"A": "B", "B": "A"}
    for question in range(questions):
        shared = rng.gauss(0, design.shared)
        first, second = (chance_right(shared + rng.gauss(0, design.own)) for _ in "12")
        for _ in range(pairs):
            gold = rng.choice("AB")
            labels = (gold if rng.random() < right else other[gold] for right in (first, second))
            yield gold, next(labels), next(labels), question


# === Measuring ===


class Counts(NamedTuple):
    """One data set's outcome, 1 or 0 each: intervals that hold the truth, tests that reject the true null."""

    kappa_item: int
    kappa_cluster: int
    difference_item: int
    difference_cluster: int
    sign_rejects: int
    flip_rejects: int


def holds(interval: Any, truth: float) -> int:
    """1 if the interval exists and contains the truth."""
    return int(interval.low is not None and interval.low <= truth <= interval.high)


def one_data_set(rows: Sequence[tuple[str, str, str, int]], truth: float, resamples: int, seed: str) -> Counts:
    """Both bootstraps and both tests on one data set."""
    found = {}
    for unit in ("item", "question"):
        sampler = agreement.Resampler(seed=seed, name=unit, n_resamples=resamples)
        for gold, first, second, question in rows:
            sampler.add(gold, {"one": first, "two": second}, cluster=question if unit == "question" else None)
        found[unit] = sampler.intervals([KAPPA, DIFFERENCE])
    tests = agreement.paired(*(list(column) for column in zip(*rows)))
    return Counts(
        holds(found["item"][KAPPA], truth),
        holds(found["question"][KAPPA], truth),
        holds(found["item"][DIFFERENCE], 0.0),
        holds(found["question"][DIFFERENCE], 0.0),
        int(tests.sign_p <= 0.05),
        int(tests.flip.p <= 0.05),
    )


def measure(design: Design, options: argparse.Namespace) -> tuple[float, list[float]]:
    """(intra-question correlation, the share of each outcome) of one design."""
    accuracy, correlation = moments(design)
    truth = 2 * accuracy - 1  # gold is even and independent of correctness, so chance agreement is one half
    outcomes = []
    for index in range(options.data_sets):
        rng = random.Random(f"{options.seed}:{design.name}:{index}")
        rows = list(made_up_rows(design, options.questions, options.pairs, rng))
        outcomes.append(one_data_set(rows, truth, options.resamples, f"{options.seed}:{index}"))
    return correlation, [sum(column) / len(outcomes) for column in zip(*outcomes)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate the designs and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    for name, value in (("data-sets", 300), ("resamples", 1000), ("questions", 80), ("pairs", 11), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args(arguments)
    print(f"{options.data_sets} data sets of {options.questions} questions x {options.pairs} pairs, 95% nominal;")
    print(f"Monte-Carlo sd of a coverage near 95%: {math.sqrt(0.95 * 0.05 / options.data_sets):.3f}")
    print("design | ICC | kappa: item / cluster | difference: item / cluster | false rejections: sign / flip")
    for design in DESIGNS:
        correlation, shares = measure(design, options)
        shown = [f"{first:.3f} / {second:.3f}" for first, second in zip(shares[::2], shares[1::2])]
        print(" | ".join([design.name, f"{correlation:.2f}", *shown]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
