"""How fast the bootstrap is, as ratios to numpy measured in the same run.

    python3 tests/bench_agreement.py [--repeats 5] [--skip-large]

numpy is used if it can be imported (install it for the benchmark only); without it the seconds stand alone. Prints
one line per task; asserts nothing, because times depend on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

numpy: Any
try:
    numpy = importlib.import_module("numpy")
except ImportError:
    numpy = None

N_RESAMPLES = 10_000
LABELS = ("A", "B", "equal", "invalid")
Row = tuple[str, str, str, int]  # gold, judge 1, judge 2, question


def load_agreement() -> ModuleType:
    """The agreement module of this checkout, executed from its own bytes."""
    path = Path(__file__).resolve().parent.parent / "agreement.py"
    module = ModuleType("agreement")
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


agreement: Any = load_agreement()

# === Data ===


def made_up_rows(n: int, n_questions: int, seed: int = 1) -> list[Row]:
    """Gold with ties, two judges right on about four in five, n pairs over n_questions."""
    rng = random.Random(f"{seed}:bench")
    rows = []
    for index in range(n):
        gold = rng.choices(LABELS[:3], (45, 45, 10))[0]
        first, second = (gold if rng.random() < 0.78 else rng.choices(LABELS, (4, 4, 2, 1))[0] for _ in range(2))
        rows.append((gold, first, second, index % n_questions))
    return rows


def seconds(task: Callable[[], object], repeats: int) -> float:
    """The fastest of several runs, in seconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - start)
    return best


# === Ours ===


def our_difference(rows: Sequence[Row]) -> object:
    """Percentile interval of the kappa difference, registration included."""
    sampler = agreement.Resampler(seed=1, name="bench", n_resamples=N_RESAMPLES)
    for gold, first, second, question in rows:
        sampler.add(gold, {"one": first, "two": second}, cluster=question)
    return sampler.intervals([("one", "two", "kappa")])


def our_single(rows: Sequence[Row]) -> object:
    """Percentile and BCa interval of one kappa over unclustered pairs, registration included."""
    sampler = agreement.Resampler(seed=1, name="bench", n_resamples=N_RESAMPLES)
    for gold, first, _, _ in rows:
        sampler.add(gold, {"one": first})
    return sampler.estimates([("one", "kappa")], bca=True)


def our_everything(n: int, n_questions: int | None) -> tuple[float, int]:
    """(seconds, patterns) of every metric and difference of two arms with percentile and BCa intervals, one pass."""
    rng = random.Random("1:everything")
    data = [
        (*row[:3], [rng.choice((0, 2)), *(min(5, int(rng.expovariate(1.2))) for _ in "12")])
        for row in made_up_rows(n, n)
    ]
    start = time.perf_counter()
    sampler = agreement.Resampler(seed=1, name="bench", n_resamples=N_RESAMPLES)
    for index, (gold, first, second, (length, *consistent)) in enumerate(data):
        ratios = {}
        for arm, label, count in zip(("one", "two"), (first, second), consistent):
            ratios[arm, "position_consistency"] = (count, 5)
            ratios[arm, "length_excess"] = agreement.length_counts(1, length, label, gold)
        cluster = None if n_questions is None else index % n_questions
        sampler.add(gold, {"one": first, "two": second}, cluster=cluster, ratios=ratios)
    metrics = [*agreement.TABLE_METRICS, "position_consistency", "length_excess"]
    keys = [(arm, metric) for arm in ("one", "two") for metric in metrics] + [("one", "two", m) for m in metrics]
    sampler.estimates(keys, bca=True)
    return time.perf_counter() - start, len(sampler.patterns)


# === numpy, vectorised ===


def unit_table(rows: Sequence[Row]) -> Any:
    """One row per question: gold counts, each judge's label counts, each judge's hits."""
    table = numpy.zeros((1 + max(row[3] for row in rows), 14), dtype=numpy.float64)
    for gold, first, second, question in rows:
        table[question, LABELS.index(gold)] += 1
        table[question, 4 + LABELS.index(first)] += 1
        table[question, 8 + LABELS.index(second)] += 1
        table[question, 12] += first == gold
        table[question, 13] += second == gold
    return table


def numpy_kappa(totals: Any, judge: int) -> Any:
    """Kappa of every resample from summed tables."""
    gold, predicted = totals[:, :4], totals[:, 4 + 4 * judge : 8 + 4 * judge]
    n, chance = gold.sum(axis=1), (gold * predicted).sum(axis=1)
    return (n * totals[:, 12 + judge] - chance) / (n * n - chance)


def numpy_difference(rows: Sequence[Row]) -> object:
    """The same interval by multinomial weights times tables, table building included."""
    table = unit_table(rows)
    rng = numpy.random.default_rng(1)
    weights = rng.multinomial(len(table), numpy.full(len(table), 1 / len(table)), size=N_RESAMPLES)
    totals = weights @ table
    return numpy.percentile(numpy_kappa(totals, 0) - numpy_kappa(totals, 1), [2.5, 97.5])


# === Report ===


def compare(name: str, ours: float, theirs: float | None) -> None:
    """One line: seconds and the ratio."""
    ratio = "numpy not installed" if theirs is None else f"numpy {theirs:.3f} s, ratio {ours / theirs:.2f}"
    print(f"{name}: {ours:.3f} s, {ratio}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5, help="runs per task, the fastest counts")
    parser.add_argument("--skip-large", action="store_true", help="leave out the 100,000-pair tasks")
    options = parser.parse_args(arguments)
    print(f"{N_RESAMPLES} resamples, Python {sys.version.split()[0]}, numpy {numpy and numpy.__version__}")
    for n, questions in ((100, 80), (910, 80), (10_000, 800)):
        rows = made_up_rows(n, questions)
        ours = seconds(lambda rows=rows: our_difference(rows), options.repeats)  # type: ignore[misc]
        theirs = seconds(lambda rows=rows: numpy_difference(rows), options.repeats) if numpy else None  # type: ignore[misc]
        compare(f"kappa difference, {n} pairs in {questions} questions", ours, theirs)
    rows = made_up_rows(10_000, 10_000)
    compare(
        "one kappa, percentile and BCa, 10000 unclustered", seconds(lambda: our_single(rows), options.repeats), None
    )
    for n_questions in () if options.skip_large else (8_000, None):
        took, patterns = our_everything(100_000, n_questions)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        where = f"{n_questions} questions" if n_questions else "no questions"
        print(f"all metrics, 100000 pairs, {where}, {patterns} patterns: {took:.1f} s, peak {peak_mb:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
