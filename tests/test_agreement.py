"""Tests of the statistics: published figures, golden cases, slow definitions, properties, edges."""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
import unittest
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

import golden  # noqa: E402  (the line above makes it findable however the tests are started)

agreement: Any = golden.agreement
SHARED_GOLDEN = TESTS.parent.parent / "shared" / "golden" / "golden_public.json"
LABELS = ("A", "B", "equal", "invalid")
RELABEL = {"A": "B", "B": "A"}

# === Made-up data ===


def expand(table: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of a table whose last column is a count, each written out that often."""
    return [tuple(row[:-1]) for row in table for _ in range(row[-1])]


JUDGE = [("A", "A", 40), ("A", "B", 8), ("A", "equal", 3), ("B", "A", 8), ("B", "B", 40), ("B", "equal", 1)]
BASELINE = [("A", "A", 38), ("A", "B", 10), ("A", "equal", 3), ("B", "A", 7), ("B", "B", 41), ("B", "equal", 1)]
PEOPLE = [("A", "A", 43), ("A", "B", 6), ("B", "A", 8), ("B", "B", 43)]


def columns(table: Sequence[tuple[Any, ...]]) -> tuple[list[str], list[str]]:
    """Gold and predictions of a count table."""
    rows = expand(table)
    return [row[0] for row in rows], [row[1] for row in rows]


def random_rows(seed: int, n: int, n_questions: int) -> list[tuple[str, str, str, int]]:
    """(gold, judge 1, judge 2, question) rows; judge 1 is the better one."""
    rng = random.Random(seed)
    rows = []
    for index in range(n):
        gold = rng.choice(LABELS[:3])
        first = gold if rng.random() < 0.8 else rng.choice(LABELS)
        second = gold if rng.random() < 0.6 else rng.choice(LABELS)
        rows.append((gold, first, second, index % n_questions))
    return rows


def sampler_of(rows: Sequence[tuple[str, str, str, Any]], **options: Any) -> Any:
    """A sampler of two arms, 'one' and 'two'."""
    sampler = agreement.Resampler(**{"seed": 7, "name": "test", "n_resamples": 2000, **options})
    for gold, first, second, question in rows:
        sampler.add(gold, {"one": first, "two": second}, cluster=question)
    return sampler


# === Labels ===


class LabelTests(unittest.TestCase):
    def test_both_orders_give_one_decision_in_the_items_own_letters(self) -> None:
        cases = [
            ("A", "B", "A"),
            ("B", "A", "B"),
            ("A", "A", "equal"),
            ("B", "B", "equal"),
            ("A", "equal", "equal"),
            ("equal", "A", "equal"),
            ("tie", "C", "equal"),
            ("A", "invalid", "invalid"),
            ("invalid", "equal", "invalid"),
            ("A", None, None),
            (None, "invalid", None),
            ("first", "second", "A"),
        ]
        for original, swapped, expected in cases:
            with self.subTest(original=original, swapped=swapped):
                self.assertEqual(agreement.resolve(original, swapped), expected)

    def test_one_choice_of_the_swapped_order_is_mapped_back(self) -> None:
        swapped = [agreement.decision_from_choice(label, True) for label in (*LABELS, None)]
        self.assertEqual(swapped, ["B", "A", "equal", "invalid", None])
        self.assertEqual(agreement.decision_from_choice("A", False), "A")

    def test_every_alias_of_equal_is_read(self) -> None:
        for alias in ("equal", "tie", "draw", "C", "tie (inconsistent)"):
            with self.subTest(alias=alias):
                self.assertEqual(agreement.canonical(alias), "equal")

    def test_an_unknown_label_is_an_error_not_a_category(self) -> None:
        for label in ("a", "", "X", 1, ["A"]):
            with self.subTest(label=label), self.assertRaisesRegex(ValueError, "expected one of A, B, equal, invalid"):
                agreement.canonical(label)

    def test_majority_does_not_depend_on_order_and_is_symmetric_in_a_and_b(self) -> None:
        for labels in itertools.product((*LABELS, None), repeat=4):
            expected = agreement.majority(sorted(labels, key=str))
            self.assertEqual(agreement.majority(labels), expected)
            turned = agreement.majority([RELABEL.get(x, x) if x else x for x in labels])
            self.assertEqual(turned, RELABEL.get(expected, expected))

    def test_votes_without_a_unique_plurality_have_no_consensus(self) -> None:
        self.assertIsNone(agreement.gold_from_votes(["A", "B"]))
        self.assertIsNone(agreement.gold_from_votes([]))
        self.assertIsNone(agreement.gold_from_votes([None, "invalid"]))
        self.assertEqual(agreement.gold_from_votes(["A", "B", "tie", "tie"]), "equal")
        self.assertEqual(agreement.gold_from_votes(["A", "B"], draw="equal"), "equal")

    def test_the_majority_class_ignores_items_without_gold(self) -> None:
        self.assertEqual(agreement.majority_class(["B", "B", "A", None]), "B")
        self.assertIsNone(agreement.majority_class([None]))


# === Published figures ===


class PublishedTests(unittest.TestCase):
    def test_kappa_of_the_published_tables(self) -> None:
        for table, value, po in ((JUDGE, 0.6154, 0.80), (BASELINE, 0.5966, 0.79), (PEOPLE, 0.7201, 0.86)):
            with self.subTest(value=value):
                found = agreement.kappa(*columns(table))
                self.assertEqual(round(found.value, 4), value)
                self.assertEqual(round(found.po, 4), po)

    def test_right_per_gold_class(self) -> None:
        self.assertEqual(agreement.raw_agreement(*columns(JUDGE)).per_gold, {"A": (40, 51), "B": (40, 49)})

    def test_share_of_human_kappa(self) -> None:
        human = agreement.kappa(*columns(PEOPLE)).value
        judge = agreement.kappa(*columns(JUDGE)).value
        self.assertEqual(round(agreement.share_of_ceiling(judge, human), 4), 0.8546)
        self.assertIsNone(agreement.share_of_ceiling(judge, 0.0))

    def test_sign_tests(self) -> None:
        self.assertEqual(agreement.sign_test(8, 7), 1.0)
        self.assertEqual(round(agreement.sign_test(4, 9), 4), 0.2668)

    def test_wilson_intervals(self) -> None:
        for k, low, high in ((80, 0.7112, 0.8666), (79, 0.7002, 0.8583), (100, 0.9630, 1.0)):
            interval = agreement.wilson(k, 100)
            self.assertEqual((round(interval.low, 4), round(interval.high, 4)), (low, high))

    def test_alpha_follows_from_fleiss_at_500_ratings(self) -> None:
        ratings = [["A"] * 5] * 46 + [["B"] * 5] * 40 + [["A", "A", "A", "B", "B"]] * 7
        ratings += [["A", "A", "A", "A", "B"]] * 4 + [["A", "A", "equal", "A", "A"]] * 3
        fleiss, alpha = agreement.fleiss_kappa(ratings), agreement.krippendorff_alpha(ratings)
        self.assertAlmostEqual(1 - alpha.value, (1 - fleiss.value) * 499 / 500, places=12)
        self.assertEqual(round(1 - (1 - 0.87284) * 499 / 500, 4), 0.8731)

    def test_ac1_of_the_published_table_rises_with_the_size_of_the_label_set(self) -> None:
        gold, predicted = columns(JUDGE)
        self.assertEqual(round(agreement.gwet_ac1(gold, predicted, 3).value, 4), 0.7298)
        self.assertEqual(round(agreement.gwet_ac1(gold, predicted, 4).value, 4), 0.7581)

    def test_published_interval_of_the_kappa_difference(self) -> None:
        cells = [
            ("A", "A", "A", 32),
            ("A", "A", "B", 6),
            ("A", "A", "equal", 2),
            ("A", "B", "A", 3),
            ("A", "B", "B", 4),
            ("A", "B", "equal", 1),
            ("A", "equal", "A", 3),
            ("B", "A", "A", 7),
            ("B", "A", "B", 1),
            ("B", "B", "B", 40),
            ("B", "equal", "equal", 1),
        ]
        sampler = sampler_of([(*row, None) for row in expand(cells)], n_resamples=10_000)
        found = sampler.estimates([("one", "two", "kappa")])["one", "two", "kappa"]
        self.assertEqual(round(found.value, 4), 0.0188)
        self.assertAlmostEqual(found.interval.low, -0.1170, delta=0.011)
        self.assertAlmostEqual(found.interval.high, 0.1556, delta=0.011)

    def test_detectable_differences(self) -> None:
        table = {
            100: (0.088, 0.107, 0.124, 0.152),
            300: (0.051, 0.062, 0.072, 0.088),
            910: (0.029, 0.036, 0.041, 0.051),
            2000: (0.020, 0.024, 0.028, 0.034),
        }
        for n, row in table.items():
            for psi, expected in zip((0.10, 0.15, 0.20, 0.30), row):
                self.assertEqual(round(agreement.detectable_difference(n, psi), 3), expected)


# === Golden cases ===


class GoldenTests(unittest.TestCase):
    def check(self, path: Path) -> None:
        failed = {name: lines for name, lines in golden.failures(json.loads(path.read_text("utf-8"))).items() if lines}
        self.assertEqual(failed, {})

    def test_own_small_cases_pass(self) -> None:
        self.check(TESTS / "golden_small.json")

    @unittest.skipUnless(SHARED_GOLDEN.exists(), "no ../shared/golden beside the checkout")
    def test_every_public_golden_case_passes(self) -> None:
        self.check(SHARED_GOLDEN)

    def test_the_comparison_notices_each_kind_of_difference(self) -> None:
        cases = [
            ({"p": 0.5}, {"p": 0.5001}),
            ({"p": None}, {"p": 0.0}),
            ({"p": 0.0}, {"p": None}),
            ({"p": 1.0}, {}),
            ({"labels": ["A"]}, {"labels": ["A", "B"]}),
            ({"verdict": "tie"}, {"verdict": "win"}),
            ({"passes": True}, {"passes": False}),
            ({"n": 1}, {"n": True}),
            ({"lo": {"target": 0.1, "min": 0.0, "max": 0.2}}, {"lo": 0.21}),
            ({"lo": {"target": 0.1, "min": 0.0, "max": 0.2}}, {"lo": None}),
        ]
        for expected, got in cases:
            with self.subTest(expected=expected, got=got):
                self.assertTrue(list(golden.differences(expected, got, 1e-9)))

    def test_a_case_that_crashes_is_a_failed_case(self) -> None:
        case = {"id": "x", "estimator": "cohen_kappa", "input": {"gold": ["A"], "pred": ["?"]}, "expect": {}, "tol": 0}
        self.assertEqual(len(golden.failures({"cases": [case]})["x"]), 1)


# === Slow definitions ===


def slow_kappa(pairs: Sequence[tuple[str, str]]) -> Fraction | None:
    """Kappa by its definition in exact fractions."""
    n = len(pairs)
    po = Fraction(sum(g == p for g, p in pairs), n)
    pe = sum(Fraction(sum(g == x for g, _ in pairs) * sum(p == x for _, p in pairs), n * n) for x in LABELS)
    return None if pe == 1 else (po - pe) / (1 - pe)


def slow_alpha(ratings: Sequence[Sequence[Any]], level: str) -> float | None:
    """Alpha from all ordered pairs of values, within items and over everything."""
    rows = [[v for v in row if v is not None] for row in ratings]
    rows = [row for row in rows if len(row) > 1]
    values = [v for row in rows for v in row]
    counts = Counter(values)

    def squared(a: Any, b: Any) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return float((a - b) ** 2)
        between = sum(count for value, count in counts.items() if min(a, b) <= value <= max(a, b))
        return float((between - (counts[a] + counts[b]) / 2) ** 2) if a != b else 0.0

    observed = sum(squared(a, b) / (len(row) - 1) for row in rows for a, b in itertools.permutations(row, 2))
    expected = sum(squared(a, b) for a, b in itertools.permutations(values, 2)) / max(1, len(values) - 1)
    return 1 - observed / expected if expected else None


def slow_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Longest common subsequence by the table of the textbook."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


class DefinitionTests(unittest.TestCase):
    def setUp(self) -> None:
        self.rng = random.Random(self.id())

    def random_pairs(self) -> list[tuple[str, str]]:
        labels = LABELS[: self.rng.randint(1, 4)]
        return [(self.rng.choice(labels[:3]), self.rng.choice(labels)) for _ in range(self.rng.randint(1, 12))]

    def test_kappa_equals_its_definition_in_fractions(self) -> None:
        for _ in range(300):
            pairs = self.random_pairs()
            found = agreement.kappa(*zip(*pairs))
            expected = slow_kappa(pairs)
            if expected is None:
                self.assertEqual((found.value, found.reason), (None, "single_label"))
            else:
                self.assertAlmostEqual(found.value, float(expected), places=14)

    def test_alpha_equals_the_sum_over_all_pairs_at_every_level(self) -> None:
        for level in ("nominal", "ordinal", "interval"):
            for _ in range(60):
                ratings = [[self.rng.choice((1, 2, 2, 5, None)) for _ in range(3)] for _ in range(5)]
                expected, found = slow_alpha(ratings, level), agreement.krippendorff_alpha(ratings, level)
                if expected is None:
                    self.assertIn(found.reason, ("single_label", "too_few_ratings"))
                else:
                    self.assertAlmostEqual(found.value, expected, places=12)

    def test_sign_flip_p_equals_the_enumeration_of_all_patterns(self) -> None:
        for _ in range(60):
            sums = [self.rng.randint(-4, 4) for _ in range(self.rng.randint(1, 9))]
            patterns = itertools.product((1, -1), repeat=len(sums))
            hits = sum(abs(sum(s * x for s, x in zip(signs, sums))) >= abs(sum(sums)) for signs in patterns)
            self.assertAlmostEqual(agreement.sign_flip_test(sums).p, hits / 2 ** len(sums), places=14)

    def test_sign_flip_with_one_item_per_question_is_the_sign_test(self) -> None:
        for better, worse in ((8, 7), (4, 9), (0, 0), (20, 3)):
            found = agreement.sign_flip_test([1] * better + [-1] * worse + [0] * 5)
            self.assertAlmostEqual(found.p, agreement.sign_test(better, worse), places=14)

    def test_random_sign_patterns_come_near_the_exact_p(self) -> None:
        sums = [2.0, 1.0, 3.0, -1.0, 2.0, 2.0, -3.0, 1.0]
        near = agreement.sign_flip_test([x + 0.25 * (i == 0) - 0.25 * (i == 1) for i, x in enumerate(sums)])
        self.assertFalse(near.exact)
        self.assertAlmostEqual(near.p, agreement.sign_flip_test(sums).p, delta=0.05)

    def test_correlations_equal_their_definitions(self) -> None:
        for _ in range(100):
            x = [self.rng.choice((1, 2, 3.4, 5)) for _ in range(7)]
            y = [self.rng.choice((1, 2.2, 3, 5)) for _ in range(7)]
            ranks = [[sum(w < v for w in z) + (sum(w == v for w in z) + 1) / 2 for v in z] for z in (x, y)]
            for found, (a, b) in ((agreement.pearson(x, y), (x, y)), (agreement.spearman(x, y), ranks)):
                mean_a, mean_b = sum(a) / 7, sum(b) / 7
                cross = sum((u - mean_a) * (v - mean_b) for u, v in zip(a, b))
                scale = math.sqrt(sum((u - mean_a) ** 2 for u in a) * sum((v - mean_b) ** 2 for v in b))
                if len(set(a)) == 1 or len(set(b)) == 1:
                    self.assertIsNone(found)
                else:
                    self.assertAlmostEqual(found, cross / scale, places=12)

    def test_weighted_kappa_equals_the_disagreement_table(self) -> None:
        for _ in range(60):
            x = [self.rng.randint(1, 5) for _ in range(8)]
            y = [self.rng.randint(1, 5) for _ in range(8)]
            observed = sum((a - b) ** 2 for a, b in zip(x, y)) / 8
            expected = sum((a - b) ** 2 for a in x for b in y) / 64
            found = agreement.grade_agreement(x, y).qwk
            self.assertAlmostEqual(found, 1 - observed / expected, places=12)

    def test_subsequence_and_run_equal_the_textbook(self) -> None:
        for _ in range(200):
            a, b = ("".join(self.rng.choice("ab c") for _ in range(self.rng.randint(0, 9))) for _ in "12")
            self.assertEqual(agreement.common_subsequence(a, b), slow_subsequence(a, b))
            runs = {b[i:j] for i in range(len(b)) for j in range(i + 1, len(b) + 1)}
            self.assertEqual(agreement.longest_run(a, b, ""), max((len(run) for run in runs if run in a), default=0))

    def test_student_t_equals_closed_forms(self) -> None:
        for t in (-30.0, -2.5, -0.3, 0.0, 0.7, 4.0):
            self.assertAlmostEqual(agreement.student_t_cdf(t, 1), 0.5 + math.atan(t) / math.pi, places=12)
            self.assertAlmostEqual(agreement.student_t_cdf(t, 2), 0.5 + t / (2 * math.sqrt(2 + t * t)), places=12)

    def test_normal_probabilities_equal_the_library_and_its_inverse(self) -> None:
        for x in (-30.0, -6.5, -1.96, -0.2, 0.0, 1e-9, 0.7, 3.0, 6.5, 100.0):
            self.assertAlmostEqual(agreement.normal_cdf(x), 0.5 * math.erfc(-x / math.sqrt(2)), places=14)

    def test_binomial_tail_is_exact(self) -> None:
        self.assertEqual(agreement.binomial_upper_tail(2, 3, 1, 3), 7 / 27)

    def test_quantiles_interpolate_as_type_7(self) -> None:
        self.assertEqual(agreement.quantile([1.0, 2.0, 4.0, 8.0], 0.5), 3.0)
        self.assertEqual(agreement.quantile([1.0, 2.0, 4.0, 8.0], 0.25), 1.75)
        self.assertEqual(agreement.quantile([3.0], 0.9), 3.0)
        self.assertEqual(agreement.quantile([1.0, 5.0], 1.0), 5.0)

    def test_leave_one_out_equals_its_definition(self) -> None:
        for _ in range(60):
            votes = [{w: self.rng.choice("ABC") for w in "xyz" if self.rng.random() < 0.8} for _ in range(6)]
            judge = [self.rng.choice(("A", "B", "invalid", None)) for _ in votes]
            human = machine = total = 0
            for row, label in zip(votes, judge):
                for who, vote in row.items():
                    counts = Counter(v for w, v in row.items() if w != who).most_common()
                    if label is None or not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
                        continue
                    total += 1
                    human += vote == counts[0][0]
                    machine += label == counts[0][0]
            found = agreement.human_ceiling(votes, judge)
            expected = (total, human / total if total else None, machine / total if total else None)
            self.assertEqual((found.loo_n, found.human_loo, found.judge_loo), expected)


# === Random draws ===


class DrawTests(unittest.TestCase):
    def test_binomial_draws_follow_the_binomial_distribution(self) -> None:
        rng = random.Random("binomial draws")
        for n, successes, trials in ((7, 1, 3), (45, 2, 5), (2_100, 1, 300), (40_000, 1, 8_000)):
            sampler, draws = agreement.BinomialSampler(successes, trials), 20_000
            seen = Counter(sampler.draw(n, rng.random) for _ in range(draws))
            p, chi, cells, rest, rest_seen = successes / trials, 0.0, 0, 0.0, 0
            for k in range(min(n, 120) + 1):
                log_term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
                expected = draws * math.exp(log_term + k * math.log(p) + (n - k) * math.log1p(-p))
                if expected >= 8:
                    chi += (seen[k] - expected) ** 2 / expected
                    cells += 1
                else:
                    rest += expected
                    rest_seen += seen[k]
            chi += (rest_seen - rest) ** 2 / max(rest, 1)
            with self.subTest(n=n):
                self.assertEqual(sum(seen.values()), draws)
                self.assertLess(chi, cells + 5 * math.sqrt(2 * cells))

    def test_resamples_have_the_mean_and_covariance_of_a_multinomial(self) -> None:
        counts = [30, 25, 5, 5, 1, 1]  # two heavy patterns, four drawn one by one
        units = [(1 << (16 * index), count) for index, count in enumerate(counts)]
        total, draws = sum(counts), 20_000
        rows = agreement.unpack(list(agreement.resampled_totals(units, draws, random.Random(5))), len(counts), "H")
        columns = [rows[index :: len(counts)] for index in range(len(counts))]
        self.assertTrue(all(sum(row) == total for row in zip(*columns)))
        means = [sum(column) / draws for column in columns]
        for i, j in itertools.combinations_with_replacement(range(len(counts)), 2):
            variances = [counts[k] * (1 - counts[k] / total) for k in (i, j)]
            expected = variances[0] if i == j else -counts[i] * counts[j] / total
            found = sum(a * b for a, b in zip(columns[i], columns[j])) / draws - means[i] * means[j]
            with self.subTest(i=i, j=j):
                self.assertAlmostEqual(found, expected, delta=6 * math.sqrt(2 * variances[0] * variances[1] / draws))
                self.assertAlmostEqual(means[i], counts[i], delta=5 * math.sqrt(variances[0] / draws))

    def test_more_units_than_table_slots_are_still_drawn_evenly(self) -> None:
        units = [(1, 1)] * 40_000 + [(1 << 32, 1)] * 40_000
        for total in agreement.resampled_totals(units, 3, random.Random(1)):
            self.assertEqual((total & 0xFFFFFFFF) + (total >> 32), 80_000)
            self.assertAlmostEqual(total >> 32, 40_000, delta=1_000)

    def test_the_global_random_state_is_left_alone(self) -> None:
        random.seed(4)
        before = random.getstate()
        sampler_of(random_rows(1, 60, 20)).estimates([("one", "kappa")], bca=True)
        agreement.sign_flip_test([0.5, 0.25, -0.1])
        self.assertEqual(random.getstate(), before)


# === Bootstrap ===

BOTH = ("one", "two", "kappa")
MANY: list[tuple[str, ...]] = [(arm, metric) for arm in ("one", "two") for metric in agreement.TABLE_METRICS]
MANY += [("one", "two", metric) for metric in agreement.TABLE_METRICS]


class BootstrapTests(unittest.TestCase):
    def test_intervals_equal_the_enumeration_of_every_resample(self) -> None:
        rows = random_rows(3, 15, 5)
        values = []
        for picked in itertools.product(range(5), repeat=5):
            drawn = [row for question in picked for row in rows if row[3] == question]
            values.append(sum(row[0] == row[1] for row in drawn) / len(drawn))
        found = sampler_of(rows, n_resamples=20_000).intervals([("one", "agreement")])["one", "agreement"]
        values.sort()
        self.assertAlmostEqual(found.low, agreement.quantile(values, 0.025), delta=0.02)
        self.assertAlmostEqual(found.high, agreement.quantile(values, 0.975), delta=0.02)

    def test_point_values_equal_the_plain_functions(self) -> None:
        rows = random_rows(4, 90, 30)
        gold, first, second = ([row[i] for row in rows] for i in range(3))
        found = sampler_of(rows).estimates(MANY)
        per_gold = agreement.raw_agreement(gold, first).per_gold
        expected = {
            "kappa": agreement.kappa(gold, first).value,
            "agreement": agreement.raw_agreement(gold, first).value,
            "ac1": agreement.gwet_ac1(gold, first, 4).value,
            "valid_output": sum(label != "invalid" for label in first) / 90,
            **{f"recall_{x}": per_gold[x][0] / per_gold[x][1] for x in ("A", "B", "equal")},
        }
        self.assertEqual(set(expected), set(agreement.TABLE_METRICS))
        for metric, value in expected.items():
            self.assertAlmostEqual(found["one", metric].value, value, places=14)
        difference = agreement.kappa(gold, first).value - agreement.kappa(gold, second).value
        self.assertAlmostEqual(found[BOTH].value, difference, places=14)
        self.assertEqual((found[BOTH].n, found[BOTH].n_units), (90, 30))

    def test_row_order_and_question_names_do_not_matter(self) -> None:
        rows = random_rows(5, 120, 24)
        first = sampler_of(rows).estimates(MANY, bca=True)
        renamed = [(*row[:3], f"q{97 * row[3] % 24}") for row in rows]
        random.Random(1).shuffle(renamed)
        self.assertEqual(sampler_of(renamed).estimates(MANY, bca=True), first)

    def test_asking_for_more_does_not_move_a_number(self) -> None:
        rows = random_rows(6, 120, 24)
        self.assertEqual(sampler_of(rows).estimates(MANY)[BOTH], sampler_of(rows).estimates([BOTH])[BOTH])

    def test_seed_and_name_choose_the_stream(self) -> None:
        rows = random_rows(7, 120, 24)
        intervals = {
            sampler_of(rows, **options).intervals([BOTH])[BOTH] for options in ({}, {"seed": 8}, {"name": "other"})
        }
        self.assertEqual(len(intervals), 3)
        self.assertEqual(sampler_of(rows).intervals([BOTH]), sampler_of(rows).intervals([BOTH]))

    def test_every_python_version_gets_the_same_ends(self) -> None:
        clustered = sampler_of(random_rows(8, 300, 60)).estimates([BOTH], bca=True)[BOTH]
        alone = sampler_of([(*row[:3], None) for row in random_rows(8, 3000, 60)]).estimates([BOTH], bca=True)[BOTH]
        self.assertEqual(clustered.interval[:2], (0.057709900100640574, 0.27039986333373656))
        self.assertEqual(clustered.bca[:2], (0.0627053613349834, 0.27784807063005573))
        self.assertEqual(alone.interval[:2], (0.17514673212943815, 0.2335813622416046))
        self.assertEqual(alone.bca[:2], (0.17655897233502038, 0.23490318452208628))

    def test_swapping_arms_turns_the_signs(self) -> None:
        rows = random_rows(9, 120, 24)
        found = sampler_of(rows).estimates([BOTH, ("two", "one", "kappa")])
        one, other = found[BOTH], found["two", "one", "kappa"]
        self.assertAlmostEqual(one.value, -other.value, places=14)
        self.assertAlmostEqual(one.interval.low, -other.interval.high, places=12)

    def test_relabelling_a_and_b_keeps_every_value(self) -> None:
        rows = random_rows(10, 120, 24)
        turned = [(RELABEL.get(g, g), RELABEL.get(one, one), RELABEL.get(two, two), q) for g, one, two, q in rows]
        found, other = (sampler_of(data).estimates(MANY) for data in (rows, turned))
        for key in MANY:
            mirrored = (*key[:-1], {"recall_A": "recall_B", "recall_B": "recall_A"}.get(key[-1], key[-1]))
            self.assertAlmostEqual(found[key].value, other[mirrored].value, places=14)

    def test_ignoring_questions_gives_a_different_interval_for_clustered_data(self) -> None:
        rng = random.Random(3)
        rows: list[tuple[str, str, str, Any]] = []
        for question in range(30):
            right = rng.random() < 0.5
            rows += [(gold, gold if right else RELABEL[gold], gold, question) for gold in "ABABABAB"]
        widths = []
        unclustered: list[tuple[str, str, str, Any]] = [(*row[:3], None) for row in rows]
        for data in (rows, unclustered):
            interval = sampler_of(data).intervals([("one", "kappa")])["one", "kappa"]
            widths.append(interval.high - interval.low)
        self.assertGreater(widths[0], 2 * widths[1])

    def test_a_difference_uses_the_items_both_arms_have(self) -> None:
        sampler = agreement.Resampler(seed=1, name="gaps", n_resamples=200)
        for index, row in enumerate(random_rows(11, 60, 60)):
            sampler.add(row[0], {"one": row[1], "two": row[2] if index % 3 else None})
        kept = [row for index, row in enumerate(random_rows(11, 60, 60)) if index % 3]
        found = sampler.estimates([BOTH, ("one", "agreement"), ("two", "agreement")])
        values = [agreement.kappa([r[0] for r in kept], [r[i] for r in kept]).value for i in (1, 2)]
        self.assertAlmostEqual(found[BOTH].value, values[0] - values[1], places=14)
        self.assertEqual([found[key].n for key in found], [40, 60, 40])

    def test_ratios_share_the_resamples_and_may_be_negative(self) -> None:
        sampler = agreement.Resampler(seed=1, name="ratios", n_resamples=500)
        rng = random.Random(2)
        counts = [(rng.randint(-1, 1), 1) for _ in range(50)]
        for count in counts:
            sampler.add(None, {}, ratios={("one", "excess"): count, ("two", "excess"): (-count[0], 1)})
        found = sampler.estimates([("one", "excess"), ("two", "excess"), ("one", "two", "excess")], bca=True)
        value = sum(numerator for numerator, _ in counts) / 50
        one, two, difference = found.values()
        self.assertEqual([e.value for e in found.values()], [value, -value, 2 * value])
        self.assertAlmostEqual(one.interval.low, -two.interval.high, places=12)
        self.assertAlmostEqual(difference.interval.high, 2 * one.interval.high, places=12)

    def test_a_ratio_that_is_missing_everywhere_is_undefined_not_an_error(self) -> None:
        sampler = agreement.Resampler(seed=1, name="x", n_resamples=10)
        for _ in range(3):
            sampler.add("A", {"judge": None}, ratios={("judge", "consistency"): None}, groups=("all",))
        for found in (
            sampler.estimates([("judge", "consistency")]),
            sampler.by_group([("judge", "consistency")])["all"],
        ):
            self.assertEqual((None, "no_items"), found["judge", "consistency"][:2])

    def test_groups_are_resampled_on_their_own(self) -> None:
        sampler = agreement.Resampler(seed=1, name="all", n_resamples=300)
        rows = random_rows(12, 80, 20)
        for index, row in enumerate(rows):
            sampler.add(row[0], {"one": row[1]}, cluster=row[3], groups=(f"category={index % 2}", "everything"))
        key = ("one", "agreement")
        found = sampler.by_group([key])
        self.assertEqual(sorted(found), ["category=0", "category=1", "everything"])
        self.assertEqual([found[group][key].n for group in sorted(found)], [40, 40, 80])
        self.assertEqual(found["everything"][key].value, sampler.estimates([key])[key].value)
        half = [row for index, row in enumerate(rows) if index % 2 == 0]
        self.assertEqual(found["category=0"][key].value, sum(r[0] == r[1] for r in half) / 40)

    def test_strata_narrow_an_interval_when_they_explain_the_differences(self) -> None:
        widths = {}
        for name in ("none", "strata"):
            sampler = agreement.Resampler(seed=1, name="strata", n_resamples=1000)
            for index in range(80):
                stratum = index % 2
                right = (index // 2) % 20 < (19 if stratum else 4)
                sampler.add("A", {"one": "A" if right else "B"}, stratum=stratum if name == "strata" else None)
            found = sampler.estimates([("one", "agreement")], bca=True)["one", "agreement"]
            widths[name] = found.interval.high - found.interval.low
            self.assertEqual(found.bca is None, name == "strata")
        self.assertLess(widths["strata"], 0.8 * widths["none"])

    def test_undefined_intervals_say_why(self) -> None:
        perfect = [("A", "A", "A", None), ("B", "B", "B", None)] * 20
        one_question = [(*row[:3], 1) for row in random_rows(1, 9, 9)]
        cases: dict[str, Any] = {
            "no_items": ([], ("one", "agreement")),
            "single_label": ([("A", "A", "A", None)] * 9, ("one", "kappa")),
            "too_few_clusters": (one_question, ("one", "agreement")),
            "degenerate_resamples": (perfect, ("one", "agreement")),
            "too_many_undefined": ([("A", "A", "A", None)] * 5 + [("B", "B", "B", None)], ("one", "kappa")),
        }
        for reason, (rows, key) in cases.items():
            with self.subTest(reason=reason):
                found = sampler_of(rows).estimates([key], bca=True)[key]
                self.assertEqual(found.interval[:3], (None, None, reason))
                self.assertEqual(found.bca[:3], (None, None, reason))

    def test_identical_arms_have_no_interval_of_their_difference(self) -> None:
        rows = [(row[0], row[1], row[1], row[3]) for row in random_rows(13, 60, 20)]
        found = sampler_of(rows).estimates([BOTH])[BOTH]
        self.assertEqual((found.value, found.interval.reason), (0.0, "degenerate_resamples"))

    def test_a_few_undefined_resamples_are_counted_not_fatal(self) -> None:
        rows = [("A", "A", "A", None)] * 37 + [("B", "B", "A", None)] * 3 + [("A", "B", "A", None)] * 3
        found = sampler_of(rows, n_resamples=10_000).intervals([("one", "recall_B")])["one", "recall_B"]
        self.assertEqual(found.reason, "degenerate_resamples")
        expected = (40 / 43) ** 43 * 10_000
        self.assertAlmostEqual(found.undefined, expected, delta=6 * math.sqrt(expected))

    def test_bca_of_a_symmetric_statistic_is_near_the_percentile_interval(self) -> None:
        rows = [(*row[:3], None) for row in random_rows(14, 400, 400)]
        found = sampler_of(rows, n_resamples=5000).estimates([("one", "agreement")], bca=True)["one", "agreement"]
        self.assertAlmostEqual(found.bca.low, found.interval.low, delta=0.01)
        self.assertNotEqual(found.bca, found.interval)

    def test_bad_requests_are_refused(self) -> None:
        sampler = sampler_of(random_rows(1, 9, 9))
        for key in (("one", "kapa"), ("kappa",), ("one", "two", "three", "kappa")):
            with self.subTest(key=key), self.assertRaisesRegex(ValueError, "expected \\(arm, metric\\)"):
                sampler.estimates([key])
        for ratio in ((1, -1), (0.5, 1), (1, None)):
            with self.subTest(ratio=ratio), self.assertRaisesRegex(ValueError, "whole numbers"):
                sampler.add("A", {}, ratios={("one", "x"): ratio})


# === Everything else ===


class GradeTests(unittest.TestCase):
    def test_a_kind_judge_keeps_rank_correlation_and_loses_weighted_kappa(self) -> None:
        human = [1, 2, 3, 4, 1, 2, 3, 4]
        found = agreement.grade_agreement(human, [x + 1 for x in human])
        self.assertAlmostEqual(found.spearman, 1.0)
        self.assertEqual((found.bias, found.exact, found.within1), (1.0, 0.0, 1.0))
        self.assertLess(found.qwk, 0.75)

    def test_fractional_scores_within_one_point_are_not_lost_to_rounding(self) -> None:
        self.assertEqual(agreement.grade_agreement([3.4, 1.2], [4.4, 2.2]).within1, 1.0)

    def test_intervals_of_grades_hold_the_point_values_and_follow_the_arms(self) -> None:
        rng = random.Random(3)
        human = [rng.randint(1, 5) for _ in range(60)]
        judges: dict[str, list[Any]] = {
            arm: [min(5, max(1, x + rng.choice(steps))) for x in human] for arm, steps in STEPS.items()
        }
        judges["far"][0], judges["far"][1] = "invalid", None
        keys = [("near", "qwk"), ("far", "exact"), ("near", "far", "spearman"), ("far", "near", "spearman")]
        options: dict[str, Any] = {"seed": 1, "name": "grades", "n_resamples": 400, "bca": True}
        clusters = [index // 3 for index in range(60)]
        found = agreement.grade_estimates(human, judges, keys, clusters=clusters, **options)
        whole = {arm: agreement.grade_agreement(human, judges[arm]) for arm in judges}
        self.assertAlmostEqual(found["near", "qwk"].value, whole["near"].qwk, places=12)
        self.assertAlmostEqual(found["far", "exact"].value, whole["far"].exact, places=12)
        self.assertEqual([found[key].n for key in keys], [60, 59, 58, 58])
        self.assertAlmostEqual(found[keys[2]].interval.low, -found[keys[3]].interval.high, places=12)
        self.assertTrue(all(e.interval.low < e.value < e.interval.high for e in found.values()))
        self.assertTrue(all(e.bca.low < e.bca.high and e.n_units == 20 for e in found.values()))
        again = agreement.grade_estimates(
            human[::-1], {a: s[::-1] for a, s in judges.items()}, keys, clusters=clusters[::-1], **options
        )
        self.assertEqual(again, found)

    def test_no_grades_give_no_interval(self) -> None:
        found = agreement.grade_estimates([], {"x": []}, [("x", "qwk")], seed=1, name="none")
        self.assertEqual((found["x", "qwk"].value, found["x", "qwk"].interval.reason), (None, "no_items"))


STEPS = {"near": (-1, 0, 0, 0, 1), "far": (-2, -1, 0, 1, 2)}


class OrderAndLengthTests(unittest.TestCase):
    def test_an_always_equal_judge_is_consistent_and_shown_to_be_nothing_else(self) -> None:
        found = agreement.position_bias([("equal", "equal")] * 10)
        self.assertEqual((found.pc, found.consistent_equal, found.consistent_decisive), (1.0, 10, 0))
        self.assertIsNone(found.first_slot_rate)

    def test_a_judge_that_always_picks_the_first_is_primacy_itself(self) -> None:
        found = agreement.position_bias([("A", "A")] * 8)
        self.assertEqual((found.pc, found.preference_fairness, found.first_slot_rate), (0.0, -1.0, 1.0))

    def test_swapping_first_and_second_turns_the_bias(self) -> None:
        rng = random.Random(6)
        pairs = [(rng.choice(LABELS), rng.choice(LABELS)) for _ in range(80)]
        turned = [(RELABEL.get(v, v), RELABEL.get(w, w)) for v, w in pairs]
        one, other = agreement.position_bias(pairs), agreement.position_bias(turned)
        self.assertEqual((one.pc, one.pc_valid, one.p), (other.pc, other.pc_valid, other.p))
        self.assertEqual((one.k_first, one.preference_fairness), (other.k_second, -other.preference_fairness))

    def test_the_position_test_counts_an_item_once(self) -> None:
        items = [[("A", "A")] * 5] * 6
        self.assertEqual(agreement.position_test(items).p, agreement.sign_test(6, 0))
        self.assertEqual(agreement.position_test(items, [1, 1, 1, 2, 2, 2]).p, 0.5)
        self.assertEqual(agreement.position_counts(items[0]), (0, 5))
        self.assertIsNone(agreement.position_counts([("A", None)]))

    def test_length_counts_add_up_to_the_excess(self) -> None:
        rng = random.Random(8)
        rows = [(rng.randint(1, 3), rng.randint(1, 3), rng.choice(LABELS), rng.choice(LABELS[:3])) for _ in range(90)]
        counts = [agreement.length_counts(*row) for row in rows]
        found = agreement.length_bias(rows)
        self.assertEqual(sum(d for _, d in counts), found.n_both)
        self.assertAlmostEqual(sum(n for n, _ in counts) / found.n_both, found.excess)
        self.assertIsNone(agreement.length_counts(1, 2, None, "A"))


class TwoJudgesTests(unittest.TestCase):
    def test_shared_questions_make_the_flip_test_the_reported_one(self) -> None:
        gold, first, second = ["A"] * 8, ["A"] * 8, ["B"] * 8
        found = agreement.paired(gold, first, second, [1, 1, 1, 1, 2, 2, 2, 2])
        self.assertEqual((found.better, found.p, found.test), (8, 0.5, "sign-flip test by question"))
        alone = agreement.paired(gold, first, second, range(8))
        self.assertEqual((alone.p, alone.test), (2 / 256, "sign test (exact McNemar)"))

    def test_missing_items_leave_the_comparison(self) -> None:
        found = agreement.paired(["A", None, "A"], ["A", "A", None], ["B", "A", "A"])
        self.assertEqual((found.better, found.tie, found.worse, found.n, found.n_missing), (1, 0, 0, 1, 2))

    def test_each_condition_of_the_verdict_can_stop_a_win(self) -> None:
        good: dict[str, Any] = {
            "low": 0.01,
            "high": 0.2,
            "range1": (0.8, 0.9),
            "range2": (0.6, 0.7),
            "adjusted_p": 0.01,
        }
        self.assertEqual(agreement.verdict(**good).verdict, "win")
        changes: dict[str, Any] = {
            "no interval": {"low": None},
            "not repeated": {"range2": None},
            "the interval of the difference includes 0": {"low": 0.0},
            "the ranges over the repeats overlap": {"range2": (0.6, 0.8)},
            "the adjusted p is above 0.05": {"adjusted_p": 0.06},
        }
        for reason, change in changes.items():
            with self.subTest(reason=reason):
                self.assertEqual(agreement.verdict(**{**good, **change}), ("tie", reason))
        self.assertEqual(agreement.verdict(-0.2, -0.1, (0.1, 0.2), (0.3, 0.4)).verdict, "loss")

    def test_adjusted_p_values_are_ordered_and_bounded(self) -> None:
        rng = random.Random(9)
        for _ in range(50):
            p = [rng.random() ** 2 for _ in range(6)]
            holm, bh, by = (agreement.adjust(p, method) for method in ("holm", "bh", "by"))
            self.assertTrue(all(x <= y + 1e-12 and y <= 1 for x, y in zip(p, bh)))
            self.assertTrue(all(y <= z + 1e-12 and z <= 1 for y, z in zip(bh, by)))
            self.assertTrue(all(y <= z + 1e-12 and z <= 1 for y, z in zip(bh, holm)))
        with self.assertRaisesRegex(ValueError, "expected holm, bh or by"):
            agreement.adjust([0.1], "bonferroni")


class PeopleTests(unittest.TestCase):
    def test_leave_one_out_with_two_votes_is_pairwise_agreement(self) -> None:
        rng = random.Random(10)
        votes = [{"x": rng.choice("AB"), "y": rng.choice("AB")} for _ in range(30)]
        found = agreement.human_ceiling(votes, ["A"] * 30)
        self.assertEqual(found.human_loo, found.pairwise)
        expected = agreement.kappa([row["x"] for row in votes], [row["y"] for row in votes]).value
        self.assertEqual(found.kappa, expected)

    def test_a_judge_that_copies_an_annotator_passes_and_a_broken_one_fails(self) -> None:
        rng = random.Random(11)
        truth = [rng.choice("AB") for _ in range(80)]
        humans = {w: {i: x if rng.random() < 0.8 else RELABEL[x] for i, x in enumerate(truth)} for w in "uvw"}
        copy = agreement.alt_test(humans["u"], {w: humans[w] for w in "vw"}, eps=0.1)
        broken = agreement.alt_test(dict.fromkeys(range(80), "invalid"), humans, eps=0.1)
        self.assertEqual((copy.passes, broken.passes), (True, False))
        self.assertEqual(broken.winning_rate, 0.0)

    def test_scores_are_compared_by_their_distance(self) -> None:
        humans = {w: {i: 3 + (i + k) % 2 for i in range(40)} for k, w in enumerate("uvw")}
        close = agreement.alt_test(dict.fromkeys(range(40), 3.5), humans, scoring="rmse")
        far = agreement.alt_test(dict.fromkeys(range(40), 1), humans, scoring="rmse")
        self.assertGreater(close.rho, 0.5)
        self.assertEqual(far.rho, 0.0)

    def test_annotators_with_few_items_are_skipped_and_named(self) -> None:
        found = agreement.alt_test({1: "A"}, {"u": {1: "A"}, "v": {1: "A"}})
        self.assertEqual((found.reason, found.skipped), ("too_few_annotations", {"u": 1, "v": 1}))


class SetupTests(unittest.TestCase):
    def vote(self, judge: Any, winner: str, turned: bool = False, turn: int = 1) -> dict[str, Any]:
        models = ("m2", "m1") if turned else ("m1", "m2")
        names = dict(zip(("model_a", "model_b"), models))
        return {"question_id": 1, **names, "winner": winner, "judge": judge, "turn": turn}

    def test_votes_count_once_each_and_ties_leave_the_second_setup(self) -> None:
        votes = [
            self.vote(["gpt-4", "pair-v2"], "model_a"),
            self.vote("expert_1", "model_b", turned=True),
            self.vote("expert_2", "tie"),
            self.vote("expert_3", "model_b"),
            self.vote("author_1", "model_b"),
        ]
        found = agreement.mtbench_agreement(votes)
        self.assertEqual(found[1, "with_tie", "gpt4-pair_human"], (1, 3))
        self.assertEqual(found[1, "without_tie", "gpt4-pair_human"], (1, 2))
        self.assertEqual(found[1, "with_tie", "human_human"], (0, 3))
        self.assertEqual(found[1, "without_tie", "human_human"], (0, 1))

    def test_an_inconsistent_tie_is_a_tie_and_an_error_never_agrees(self) -> None:
        tie = [self.vote(["gpt-4", "pair-v2"], "tie (inconsistent)"), self.vote("expert_1", "tie")]
        error = [self.vote(["gpt-4", "pair-v2"], "error"), self.vote("expert_1", "model_a")]
        self.assertEqual(agreement.mtbench_agreement(tie)[1, "with_tie", "gpt4-pair_human"], (1, 1))
        self.assertEqual(agreement.mtbench_agreement(tie)[1, "without_tie", "gpt4-pair_human"], (0, 0))
        self.assertEqual(agreement.mtbench_agreement(error)[1, "without_tie", "gpt4-pair_human"], (0, 1))

    def test_two_verdicts_of_gpt_4_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "expected one GPT-4 verdict, got 2"):
            agreement.setup_counts([self.vote(["gpt-4", "pair-v2"], "tie")] * 2)


class CorrectionTests(unittest.TestCase):
    def test_both_corrections_refuse_without_the_statement_about_the_sample(self) -> None:
        for function in (agreement.rogan_gladen, agreement.ppi_mean):
            with self.subTest(function=function.__name__), self.assertRaisesRegex(ValueError, "random sample"):
                function([1, 0], [1, 0], [1, 1], labelled_is_random_sample=False)

    def test_a_perfect_judge_needs_no_correction(self) -> None:
        labels = [1, 0] * 30
        found = agreement.rogan_gladen(labels, labels, [1, 1, 1, 0] * 20, labelled_is_random_sample=True)
        self.assertAlmostEqual(found.theta, 0.75)
        powered = agreement.ppi_mean(labels, labels, [1, 0] * 200, labelled_is_random_sample=True)
        self.assertLess(powered.high - powered.low, powered.human_only[2] - powered.human_only[1])

    def test_a_judge_without_information_leaves_the_human_only_interval(self) -> None:
        found = agreement.ppi_mean([1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1], labelled_is_random_sample=True)
        self.assertEqual(found.lam, 0.0)
        self.assertEqual((found.theta, found.low, found.high), found.human_only)

    def test_too_little_data_is_undefined_with_a_reason(self) -> None:
        cases = {"no_items": ([], [], [1, 0]), "too_few_clusters": ([1], [1], [1, 0])}
        for reason, (y, f, rest) in cases.items():
            found = agreement.ppi_mean(y, f, rest, labelled_is_random_sample=True)
            self.assertEqual((found.theta, found.reason), (None, reason))

    def test_a_shrunk_judge_without_information_has_a_value_and_no_interval(self) -> None:
        labels, judged = [0] + [1] * 100, [0] + [1] * 10 + [0] * 90
        found = agreement.rogan_gladen(labels, judged, [1, 0], labelled_is_random_sample=True)
        self.assertIsNotNone(found.theta)
        self.assertEqual((found.low, found.reason), (None, "judge_not_informative"))


class PlanningTests(unittest.TestCase):
    def test_size_and_detectable_difference_are_inverse(self) -> None:
        for n in (50, 400, 3000):
            delta = agreement.detectable_difference(n, 0.2)
            self.assertAlmostEqual(agreement.sample_size_paired(delta, 0.2), n, delta=1)

    def test_impossible_differences_have_no_size(self) -> None:
        self.assertIsNone(agreement.sample_size_paired(0.3, 0.2))
        self.assertIsNone(agreement.sample_size_paired(0, 0.2))
        self.assertIsNone(agreement.detectable_difference(4, 0.1))

    def test_the_published_comparison_needed_far_more_pairs(self) -> None:
        self.assertAlmostEqual(agreement.sample_size_paired(0.01, 0.15), 11_800, delta=50)

    def test_shared_questions_cost_items(self) -> None:
        self.assertEqual(agreement.design_effect(1, 0.5), 1)
        self.assertAlmostEqual(math.sqrt(agreement.design_effect(11, 0.21)), 1.76, places=2)

    def test_pairs_to_settle_grow_with_the_square_of_the_closeness(self) -> None:
        interval = agreement.Interval(0.5, 0.8, None, "percentile")
        self.assertEqual(agreement.pairs_to_settle(100, 0.65, interval, 0.60), 900)
        self.assertEqual(agreement.pairs_to_settle(100, 0.65, interval, 0.40), 100)
        self.assertIsNone(agreement.pairs_to_settle(100, 0.65, interval, 0.65))


class RankingTests(unittest.TestCase):
    def test_two_models_have_the_log_odds(self) -> None:
        found = agreement.bradley_terry([("x", "y", "A")] * 3 + [("x", "y", "B"), ("x", "y", "invalid")])
        self.assertAlmostEqual(found.strength["x"], math.log(3) / 2, places=10)
        self.assertEqual(found.n_games, 4)

    def test_order_of_the_sides_does_not_matter(self) -> None:
        games = [("x", "y", "a"), ("y", "z", "a"), ("z", "x", "a"), ("x", "z", "tie")]
        turned = [(b, a, {"a": "b", "tie": "tie"}[w]) for a, b, w in games]
        one, other = (agreement.bradley_terry(data).strength for data in (games, turned))
        self.assertTrue(all(math.isclose(one[m], other[m], abs_tol=1e-9) for m in one))

    def test_intervals_hold_the_strengths_and_count_disconnected_resamples(self) -> None:
        rng = random.Random(12)
        games = [(*rng.sample("uvw", 2), rng.choice(("a", "a", "b", "tie"))) for _ in range(60)]
        found = agreement.bradley_terry_estimates(games, seed=1, name="rank", n_resamples=100)
        self.assertTrue(all(e.interval.low < e.value < e.interval.high for e in found.values()))
        rare = agreement.bradley_terry_estimates([("u", "v", "a"), ("u", "v", "b")], seed=1, name="r", n_resamples=400)
        self.assertEqual(rare["u"].interval.reason, "too_many_undefined")
        self.assertAlmostEqual(rare["u"].interval.undefined, 200, delta=50)

    def test_no_finite_ranking_is_undefined(self) -> None:
        self.assertEqual(agreement.bradley_terry([]).reason, "no_items")
        self.assertEqual(agreement.bradley_terry([("x", "y", "a")]).reason, "disconnected")


class OverlapTests(unittest.TestCase):
    def test_words_of_any_script_count(self) -> None:
        found = agreement.overlap("Опишите утро в Токио", "опишите утро в Токио!")
        self.assertEqual((found.rouge_l_f1, found.run_tokens), (1.0, 4))

    def test_runs_that_the_model_was_shown_do_not_count(self) -> None:
        target, shown = "the quick brown fox jumps high", "look at the quick brown fox"
        self.assertEqual(agreement.overlap(target, "the quick brown fox sleeps").run_tokens, 4)
        self.assertEqual(agreement.overlap(target, "the quick brown fox sleeps", shown).run_tokens, 0)
        self.assertEqual(agreement.overlap(target, "brown fox jumps", shown).run_tokens, 3)

    def test_flags_need_length(self) -> None:
        long = " ".join(f"word{i}" for i in range(14))
        self.assertEqual(
            agreement.overlap_flags(agreement.overlap(long, long)), ("exact", "near_exact", "verbatim_run")
        )
        self.assertEqual(agreement.overlap_flags(agreement.overlap("two words", "Two  words")), ("exact",))
        half = " ".join(long.split()[:11]) + " and then nothing that was there before it"
        self.assertEqual(agreement.overlap_flags(agreement.overlap(long, half)), ("verbatim_run",))

    def test_questions_are_split_after_half_the_words(self) -> None:
        words = [f"w{i}" for i in range(17)]
        self.assertEqual(agreement.split_question(" ".join(words)), (" ".join(words[:9]), " ".join(words[9:])))
        self.assertIsNone(agreement.split_question(" ".join(words[:15])))

    def test_mismatched_targets_stay_in_their_category_and_are_used_once(self) -> None:
        ids, categories = list("abcdef"), ["x", "x", "x", "y", "y", "z"]
        found = agreement.derangement(ids, categories)
        self.assertEqual(found, {"a": "b", "b": "c", "c": "a", "d": "e", "e": "d", "f": None})

    def test_mean_and_difference_have_intervals_and_reasons(self) -> None:
        rng = random.Random(13)
        values, fresh = ([rng.gauss(mean, 0.2) for _ in range(40)] for mean in (0.5, 0.1))
        options: dict[str, Any] = {"seed": 1, "name": "overlap", "n_resamples": 500}
        one = agreement.mean_estimate(values, [i // 2 for i in range(40)], **options)
        self.assertTrue(one.interval.low < sum(values) / 40 < one.interval.high)
        self.assertEqual(one.n_units, 20)
        gap = agreement.difference_of_means(values, fresh, **options)
        self.assertGreater(gap.interval.low, 0.2)
        self.assertEqual(agreement.mean_estimate([], **options).interval.reason, "no_items")
        self.assertEqual(agreement.mean_estimate([1.0], **options).interval.reason, "too_few_clusters")

    def test_the_label_probe_is_measured_against_the_majority_class(self) -> None:
        gold = ["A"] * 6 + ["B"] * 4
        found = agreement.label_probe(gold, gold)
        self.assertEqual((found.k, found.base_rate), (10, 0.6))
        self.assertAlmostEqual(found.p, 0.6**10, places=12)
        self.assertIsNone(agreement.label_probe([], []).p)

    def test_each_finding_is_reached(self) -> None:
        above, around = (agreement.Interval(low, 0.3, None, "percentile") for low in (0.1, -0.1))
        cases = [
            ((1, 0, 0, around, around), "recall"),
            ((0, 2, 0, around, around), "recall"),
            ((1, 0, 1, above, above), "elevated"),
            ((0, 1, 0, above, around), "formulaic"),
            ((0, 0, 0, around, around), "nothing"),
        ]
        for inputs, code in cases:
            with self.subTest(code=code, inputs=inputs[:3]):
                self.assertEqual(agreement.contamination_finding(*inputs)[0], code)


class StreamTests(unittest.TestCase):
    def test_a_stream_is_that_of_its_text_and_half_a_sign_has_one_too(self) -> None:
        for name in ("headline", "é 北京"):
            self.assertEqual(random.Random(f"7:{name}").random(), agreement.stream_of(7, name).random())
        values = [float(i % 3) for i in range(12)]
        found = agreement.mean_estimate(values, seed=7, name="c\ud800", n_resamples=50)
        self.assertIsNotNone(found.interval.low)


class UndefinedTests(unittest.TestCase):
    def test_nothing_in_gives_none_with_a_reason_never_a_number(self) -> None:
        self.assertEqual(agreement.raw_agreement([], []).reason, "no_items")
        self.assertEqual(agreement.gwet_ac1([], []).reason, "no_items")
        self.assertEqual(agreement.position_bias([]).reason, "no_items")
        self.assertEqual(agreement.length_bias([]).reason, "no_items")
        self.assertEqual(agreement.stability([]).reason, "too_few_ratings")
        self.assertEqual(agreement.human_ceiling([], []).reason, "too_few_ratings")
        self.assertEqual(agreement.wilson(0, 0).reason, "no_items")

    def test_a_constant_side_is_named_beside_its_zero_kappa(self) -> None:
        found = agreement.kappa(["A"] * 10, ["A"] * 9 + ["B"])
        self.assertEqual((found.value, found.constant_side), (0.0, "gold"))
        self.assertEqual(agreement.kappa(["A", "B"], ["A", "A"]).constant_side, "judge")

    def test_one_repeat_has_no_sd_and_an_undefined_one_leaves_the_range(self) -> None:
        one = agreement.repeat_summary(["A", "B"], [["A", "A"]]).kappa
        self.assertEqual((one.values, one.mean, one.sd), ((0.0,), 0.0, None))
        gappy = agreement.repeat_summary(["A", "A"], [["A", "A"], ["A", "B"]]).kappa
        self.assertEqual((gappy.values, gappy.min, gappy.max), ((None, 0.0), 0.0, 0.0))

    def test_a_label_set_smaller_than_the_labels_in_use_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "at least the 3 labels"):
            agreement.gwet_ac1(["A", "B"], ["A", "equal"], 2)

    def test_unequal_lengths_are_refused(self) -> None:
        for function in (agreement.kappa, agreement.raw_agreement, agreement.grade_agreement):
            with self.subTest(function=function.__name__), self.assertRaisesRegex(ValueError, "equal lengths"):
                function([1, 2] if function is agreement.grade_agreement else ["A", "B"], ["A"])


class ManySigns(unittest.TestCase):
    """Tests over thousands of signs, against the exact ones that they stand in for."""

    def test_the_floating_sum_is_the_exact_sign_test(self) -> None:
        for n, last in ((1000, 500), (1000, 475), (1000, 50), (5000, 2400), (5000, 0)):
            exact, found = agreement.sign_test(last, n - last), agreement.many_signs_p(n, last)
            self.assertAlmostEqual(1.0, found / exact, 9, (n, last)) if exact > 1e-300 else self.assertGreater(found, 0)

    def test_the_limit_for_many_questions_is_within_a_ten_thousandth_of_the_exact_p(self) -> None:
        rng = random.Random(4)
        for kinds in ((1, 2), (1, 2, 3, 4), (2, 4), (1, 1, 1, 4)):
            sizes = sorted(rng.choice(kinds) for _ in range(500))
            for share in (0.2, 1.0, 2.0, 3.0, 5.0):
                observed = int(share * math.sqrt(sum(size * size for size in sizes)))
                observed -= (observed - sum(sizes)) % (2 * math.gcd(*sizes))
                exact = agreement.exact_flip_p(sizes, observed)
                self.assertAlmostEqual(exact, agreement.many_flips_p(sizes, observed), delta=1e-4)

    def test_clusters_of_one_size_get_the_sign_test_whatever_the_size(self) -> None:
        for size in (1, 3):
            found = agreement.sign_flip_test([size] * 30 + [-size] * 18 + [0] * 5)
            self.assertEqual((agreement.sign_test(30, 18), 53, 48, True), tuple(found))
            self.assertAlmostEqual(agreement.exact_flip_p([size] * 48, 12 * size), found.p)

    def test_a_hundred_thousand_questions_take_no_time_to_speak_of(self) -> None:
        found = agreement.sign_flip_test([1, 2, -1, -2, 1] * 20_000)
        self.assertFalse(found.exact)
        self.assertLess(0, found.p)


if __name__ == "__main__":
    unittest.main()
