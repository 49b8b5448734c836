"""engine/summary.py on small judged sets whose figures can be counted by hand, and the promised layout."""

from __future__ import annotations

import json
import unittest
from collections import Counter
from types import SimpleNamespace
from typing import Any

import runner
from rooms import ROOT, room

summary, verdicts, evidence, agreement = room("summary"), room("verdicts"), room("evidence"), room("agreement")
fixtures = room("fixtures")
CONFIG: dict[str, Any] = {
    **json.loads((ROOT / "eval.json").read_text(encoding="utf-8")),
    "bootstrap": {"resamples": 300, "level": 0.95},
}


def options(**changes: Any) -> SimpleNamespace:
    base = {"seed": None, "bootstrap": None, "level": None, "bca": False, "by": None, "disagreements": False}
    return SimpleNamespace(**{**base, "format": "table", **changes})


def judged(
    arms: dict[str, list[list[tuple[str | None, str | None]]]], rows: list[dict[str, Any]], **changes: Any
) -> dict[str, Any]:
    """The result of arms given as choices[repeat][item] = (original, swapped) in shown positions, None for no reply."""
    items, _ = fixtures.load_items(b"".join(evidence.row_bytes(row) for row in rows), "f")
    repeats = len(next(iter(arms.values())))
    tables = {name: verdicts.ArmTable(len(rows), repeats) for name in arms}
    for name, choices in arms.items():
        for repeat, pairs in enumerate(choices, 1):
            for place, pair in enumerate(pairs):
                for order, label in zip(("original", "swapped"), pair):
                    if label is not None:
                        tables[name].set(repeat, place, order, label)
                        state = label if label in ("invalid", "failed") else "ok"
                        tables[name].replies[state] += 1
    manifest = {
        "slug": "small", "title": "small", "status": "complete", "split": "test", "repeats": repeats,
        "arm_settings": {name: {"model": "m"} for name in arms}, "provenance": dict.fromkeys(arms, "live"),
        "unlisted_arms": [], "hashes": {}, "config_hash": {}, "shard": None, "limit": None,
    }  # fmt: skip
    config = {**CONFIG, **changes.pop("config", {})}
    found: dict[str, Any] = summary.summarise(items, tables, manifest, config, options(**changes))
    return found


def pairs(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Gold B, A, B, A, …"""
    return [runner.item(number, **fields) for number in range(count)]


Pair = tuple[str | None, str | None]
RIGHT: dict[str, Pair] = {"A": ("A", "B"), "B": ("B", "A")}
WRONG: dict[str, Pair] = {"A": ("B", "A"), "B": ("A", "B")}


class Figures(unittest.TestCase):
    def setUp(self) -> None:
        """Twelve pairs: 5 right, 2 wrong, 2 first/first, 1 second/second, 1 invalid, 1 failed."""
        self.rows = pairs(12)
        gold = [row["gold"] for row in self.rows]
        choices: list[Any] = [RIGHT[g] for g in gold[:5]] + [WRONG[g] for g in gold[5:7]]
        choices += [("A", "A"), ("A", "A"), ("B", "B"), ("A", "invalid"), ("failed", "A")]
        self.gold, self.result = gold, judged({"judge": [choices]}, self.rows)
        self.arm = self.result["arms"]["judge"]

    def test_states_are_counted_apart(self) -> None:
        self.assertEqual({"ok": 10, "invalid": 1, "failed": 1, "missing": 0}, self.arm["counts"])
        self.assertEqual({"ok": 22, "invalid": 1, "failed": 1, "missing": 0}, self.arm["replies"])

    def test_an_invalid_pair_is_in_the_denominator_and_a_failed_one_is_not(self) -> None:
        metric = self.arm["metrics"]["agreement"]
        self.assertEqual((5, 11), (metric["k"], metric["n"]))
        self.assertAlmostEqual(5 / 11, metric["value"])
        self.assertAlmostEqual(10 / 11, self.arm["metrics"]["valid_output"]["value"])

    def test_kappa_is_that_of_the_decisions_counted_by_hand(self) -> None:
        decisions = self.gold[:5] + [{"A": "B", "B": "A"}[g] for g in self.gold[5:7]] + ["equal"] * 3 + ["invalid"]
        self.assertAlmostEqual(agreement.kappa(self.gold[:11], decisions).value, self.arm["metrics"]["kappa"]["value"])
        cells = Counter(zip(self.gold, decisions))
        for gold, row in self.arm["confusion"].items():
            self.assertEqual({label: cells[gold, label] for label in row}, row)

    def test_position_counts_are_those_of_the_pairs(self) -> None:
        found = self.result["position"]["judge"]
        self.assertEqual((2, 1, 7), (found["k_first"], found["k_second"], found["consistent"]))
        self.assertAlmostEqual(7 / 11, found["pc"])  # an invalid reply makes a pair not consistent
        self.assertAlmostEqual(7 / 10, found["pc_valid"])

    def test_the_other_decision_rule_stands_beside_the_leading_one(self) -> None:
        other = self.arm["metrics"]["agreement_original"]
        first = self.gold[:5] + [WRONG[g][0] for g in self.gold[5:7]] + ["A", "A", "B", "A"]
        right = sum(a == b for a, b in zip(self.gold[:11], first))
        self.assertAlmostEqual(right / 11, other["value"])
        self.assertEqual("original", other["rule"])

    def test_disagreements_are_the_ids_whose_decision_is_not_gold(self) -> None:
        self.assertEqual([f"pair-{n:05d}" for n in range(5, 11)], self.result["disagreements"]["judge"])

    def test_every_promised_part_is_there(self) -> None:
        parts = "arms by comparisons position length repeats human usage cost_usd hashes seed baselines disagreements"
        self.assertLessEqual(set(parts.split()), set(self.result))
        for metric in ("kappa", "agreement", "ac1", "valid_output", "position_consistency"):
            self.assertLessEqual({"value", "low", "high", "n", "reason"}, set(self.arm["metrics"][metric]))

    def test_no_figure_is_nan_and_every_undefined_one_has_a_reason(self) -> None:
        json.dumps(self.result, allow_nan=False)
        alone = judged({"judge": [[("A", "B")] * 3]}, [runner.item(n, gold="A") for n in range(3)])
        metric = alone["arms"]["judge"]["metrics"]["kappa"]
        self.assertTrue(metric["value"] is not None or metric["reason"])

    def test_equal_choices_give_equal_bytes(self) -> None:
        again = judged({"judge": [[RIGHT["B"], RIGHT["A"]] * 3]}, pairs(6))
        once = judged({"judge": [[RIGHT["B"], RIGHT["A"]] * 3]}, pairs(6))
        self.assertEqual(evidence.pretty(once), evidence.pretty(again))


class Broken(unittest.TestCase):
    """What is said of replies that break off, and of fields that give no table."""

    def test_only_replies_at_the_limit_are_said_to_have_hit_it(self) -> None:
        verdicts = room("verdicts")
        for finish, output, expected in (
            ("length", None, True),
            ("tool_calls", 2048, True),
            ("tool_calls", 20, False),
            (None, None, False),
        ):
            kept = {"finish_reason": finish, "usage": {"output": output}}
            self.assertIs(expected, verdicts.at_limit(kept, 2048))
        self.assertFalse(verdicts.at_limit({"finish_reason": None, "usage": None}, None))

    def test_each_kind_has_its_own_words(self) -> None:
        self.assertEqual([], summary.truncated_lines({"at_limit": 0, "elsewhere": 0}))
        limit, other = summary.truncated_lines({"at_limit": 2, "elsewhere": 3})
        self.assertRegex(limit, "^2 replies hit the token limit; raise max_tokens in eval.json, --freeze")
        self.assertRegex(other, "^3 replies broke off before the token limit")

    def test_a_field_that_no_pair_has_is_unknown_and_one_that_never_varies_gives_no_table(self) -> None:
        items = [{"item_id": str(n), "text": "t", "category": "math", "level": n, "votes": []} for n in range(3)]
        self.assertEqual(["nope"], summary.unknown_dimensions(items, "category,nope,level"))
        self.assertEqual([], summary.unknown_dimensions(items, None))
        self.assertEqual(["category", "level"], summary.fields_of(items))
        self.assertEqual(
            ["--by category: no table: the field is 'math' in every pair here"],
            summary.flat_dimensions(items, "category,level", {"level": {}}),
        )

    def test_models_are_fields_where_both_are_named(self) -> None:
        items = [{"item_id": "1", "model_a": "x", "model_b": "y"}]
        self.assertEqual(["model", "model_a", "model_b", "model_pair"], summary.fields_of(items))
        self.assertEqual([], summary.unknown_dimensions(items, "model,model_pair"))


class Kinds(unittest.TestCase):
    def test_an_always_first_judge_has_consistency_and_kappa_zero(self) -> None:  # S07
        result = judged({"judge": [[("A", "A")] * 20]}, pairs(20))
        metrics = result["arms"]["judge"]["metrics"]
        self.assertEqual((0.0, 0.0), (metrics["position_consistency"]["value"], metrics["kappa"]["value"]))
        self.assertEqual(10, round(20 * metrics["agreement_original"]["value"]))

    def test_an_always_equal_judge_is_consistent_and_shown_as_never_decisive(self) -> None:
        result = judged({"judge": [[("equal", "equal")] * 20]}, pairs(20))
        found = result["position"]["judge"]
        self.assertEqual((20, 0, 20), (found["consistent"], found["consistent_decisive"], found["consistent_equal"]))

    def test_pairs_without_gold_leave_agreement_and_stay_in_consistency(self) -> None:
        rows = pairs(6) + [runner.item(number, gold=None) for number in range(6, 10)]
        result = judged({"judge": [[RIGHT[row["gold"] or "A"] for row in rows]]}, rows)
        self.assertEqual(4, result["no_consensus"])
        self.assertEqual(6, result["arms"]["judge"]["metrics"]["agreement"]["n"])
        self.assertEqual(10, result["position"]["judge"]["n"])

    def test_a_strict_majority_over_repeats_decides_and_a_split_is_no_win(self) -> None:  # S11
        rows = pairs(2)
        right = [RIGHT[row["gold"]] for row in rows]
        wrong = [WRONG[row["gold"]] for row in rows]
        result = judged({"judge": [right, [right[0], wrong[1]], [wrong[0], wrong[1]]]}, rows)
        self.assertEqual(["pair-00001"], result["disagreements"]["judge"])

    def test_two_judges_are_compared_on_the_same_pairs_and_controls_not_with_each_other(self) -> None:
        rows = pairs(30)
        good = [RIGHT[row["gold"]] for row in rows]
        poor = [WRONG[row["gold"]] if n % 3 else RIGHT[row["gold"]] for n, row in enumerate(rows)]
        arms: dict[str, list[list[Pair]]] = {
            "good": [good],
            "poor": [poor],
            "control-first": [[("A", "A")] * 30],
            "control-random": [poor],
        }
        result = judged(arms, rows)
        names = [(entry["a"], entry["b"]) for entry in result["comparisons"]]
        self.assertEqual(5, len(names))
        self.assertNotIn(("control-first", "control-random"), names)
        first = result["comparisons"][0]
        self.assertEqual((20, 10, 0), (first["better"], first["tie"], first["worse"]))
        self.assertGreaterEqual(first["holm_p"], first["p"])

    def test_levels_hold_every_pair_of_theirs_once(self) -> None:
        rows = pairs(60)
        result = judged({"judge": [[RIGHT[row["gold"]] for row in rows]]}, rows, by="category")
        levels = result["by"]["category"]
        self.assertEqual(["c0", "c1", "c2"], sorted(levels))
        self.assertEqual(60, sum(level["judge"]["agreement"]["n"] for level in levels.values()))

    def test_a_level_of_few_questions_shows_counts_only(self) -> None:
        rows = [runner.item(number, category="rare" if number < 3 else "often") for number in range(20)]
        result = judged({"judge": [[RIGHT[row["gold"]] for row in rows]]}, rows, by="category")
        self.assertEqual({"k": 3, "n": 3}, result["by"]["category"]["rare"]["judge"]["agreement"])

    def test_a_majority_judge_and_a_longer_answer_judge_stand_as_baselines(self) -> None:
        found = judged({"judge": [[("A", "B")] * 9]}, pairs(9))["baselines"]
        self.assertEqual(("A", 5, 9), tuple(found["majority_class"][key] for key in ("label", "k", "n")))
        self.assertEqual(4, found["longer_answer"]["k"])  # the second answer is the longer one of every pair

    def test_votes_of_several_people_give_the_ceiling_beside_the_judge(self) -> None:
        votes = [{"judge": who, "label": label} for who, label in (("ann", "A"), ("bob", "A"), ("cat", "B"))]
        result = judged({"judge": [[("A", "B")] * 8]}, [runner.item(n, gold="A", votes=votes) for n in range(8)])
        self.assertEqual((8, 24), (result["human"]["pair_agree"], result["human"]["pair_total"]))
        self.assertEqual((24, 3), (result["human"]["votes"], result["human"]["annotators"]))

    def test_few_questions_are_warned_of(self) -> None:
        result = judged({"judge": [[("A", "B")] * 4]}, pairs(4))
        self.assertTrue(any("only 4 questions" in line for line in result["warnings"]))

    def test_several_served_models_or_providers_are_warned_of(self) -> None:  # R40
        metrics: dict[str, Any] = {"kappa": {}}
        base = {
            "served_models": {"m": 1},
            "served_providers": {},
            "metrics": metrics,
            "truncated": {"at_limit": 0, "elsewhere": 0},
            "hints": {},
        }
        for key, count in (("served_models", 1), ("served_providers", 1)):
            arm = {**base, key: {"one": 3, "two": 1}}
            lines = summary.warnings_of(None, {"questions": 99, "arms": {"judge": arm}})
            self.assertEqual(count, len(lines))
            self.assertRegex(lines[0], "judge: served by several (models|providers): one, two")


class Dimensions(unittest.TestCase):
    def test_one_that_is_asked_for_twice_counts_once(self) -> None:
        self.assertEqual(["category", "fault"], room("summary").dimensions_of({}, "category,fault,category"))


if __name__ == "__main__":
    unittest.main()
