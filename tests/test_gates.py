"""Gates: a result turned into an exit code."""

from __future__ import annotations

import unittest
from typing import Any

from rooms import room

gates = room("gates")


def result(value: float | None, low: float | None = None, high: float | None = None, n: int = 100) -> dict[str, Any]:
    """A result with one real judge, one control and their difference, all with the same kappa."""
    kappa = {"value": value, "low": low, "high": high, "n": n, "n_units": n, "reason": None if value else "no_items"}
    arms = {
        "judge": {"provenance": "live", "metrics": {"kappa": kappa}},
        "control-first": {"provenance": "control", "metrics": {"kappa": {**kappa, "value": 0.0}}},
    }
    difference = {"a": "judge", "b": "control-first", "differences": {"kappa": kappa}}
    return {"bootstrap": {"level": 0.95}, "arms": arms, "comparisons": [difference]}


def code(text: str, shown: dict[str, Any]) -> int:
    found: int = gates.check(shown, [gates.parse_gate(text)])[0]
    return found


class GateTest(unittest.TestCase):
    def test_a_value_passes_or_fails_by_itself(self) -> None:
        for text, expected in (("kappa>=0.6", 0), ("kappa>0.6", 1), ("kappa<=0.6", 0), ("kappa<0.6", 1)):
            with self.subTest(text):
                self.assertEqual(code(text, result(0.6)), expected)

    def test_an_interval_passes_above_fails_below_and_is_inconclusive_across(self) -> None:
        for low, high, expected in ((0.61, 0.8, 0), (0.4, 0.59, 1), (0.5, 0.7, 4)):
            with self.subTest(low=low):
                self.assertEqual(code("kappa>=0.6 @95", result((low + high) / 2, low, high)), expected)

    def test_an_inconclusive_gate_says_how_many_more_pairs_would_settle_it(self) -> None:
        _, lines = gates.check(result(0.65, 0.55, 0.75), [gates.parse_gate("kappa>=0.6 @95")])
        self.assertIn("about 300 more pairs would settle it", lines[0])

    def test_who_would_need_many_times_the_pairs_is_not_told_to_add_some(self) -> None:
        _, lines = gates.check(result(0.601, 0.55, 0.75), [gates.parse_gate("kappa>=0.6 @95")])
        self.assertRegex(lines[0], r"at this value about \d+ pairs would settle it, 2601 times those here")

    def test_an_end_on_the_threshold_is_no_matter_of_zero_more_pairs(self) -> None:
        _, lines = gates.check(result(0.1, 0.0, 0.2), [gates.parse_gate("kappa>0 @95")])
        self.assertIn("an end of the interval is the threshold itself", lines[0])

    def test_where_questions_are_drawn_questions_are_counted(self) -> None:
        shown = result(0.65, 0.55, 0.75)
        shown["arms"]["judge"]["metrics"]["kappa"]["n_units"] = 50
        _, lines = gates.check(shown, [gates.parse_gate("kappa>=0.6 @95")])
        self.assertIn("about 150 more questions would settle it", lines[0])

    def test_a_control_that_was_not_asked_comes_with_the_way_to_ask_it(self) -> None:
        with self.assertRaisesRegex(gates.GateError, "--arms judge,control-longer, or join a run of it with --merge"):
            gates.refuse_unknown_judges([gates.parse_gate("judge vs control-longer:kappa>0 @95")], ["judge"])

    def test_an_undefined_figure_never_passes(self) -> None:
        self.assertEqual(code("kappa>=0", result(None)), 1)
        self.assertEqual(code("kappa>=0 @95", result(None)), 4)

    def test_a_defined_value_without_an_interval_is_inconclusive(self) -> None:
        self.assertEqual(code("kappa>=0.6 @95", result(1.0)), 4)

    def test_controls_are_left_out_unless_they_are_named(self) -> None:
        self.assertEqual(code("kappa>=0.6", result(0.7)), 0)
        self.assertEqual(code("control-first:kappa>=0.6", result(0.7)), 1)

    def test_a_failed_gate_outweighs_an_inconclusive_one(self) -> None:
        both = [gates.parse_gate("kappa>=0.6 @95"), gates.parse_gate("kappa>=0.9")]
        self.assertEqual(gates.check(result(0.65, 0.5, 0.8), both)[0], 1)

    def test_a_difference_turns_its_sign_with_the_order_of_the_judges(self) -> None:
        self.assertEqual(code("judge vs control-first:kappa>0 @95", result(0.2, 0.1, 0.3)), 0)
        self.assertEqual(code("control-first vs judge:kappa>0 @95", result(0.2, 0.1, 0.3)), 1)

    def test_the_words_of_the_tables_name_the_same_metrics(self) -> None:
        for text, metric in (
            ("consistent>=0.5", "position_consistency"),
            ("valid>.9", "valid_output"),
            ("AC1>0", "ac1"),
        ):
            self.assertEqual(metric, gates.parse_gate(text.replace(">.", ">0.")).metric)

    def test_unknown_metrics_and_judges_are_refused_without_a_result(self) -> None:
        names = room("summary").metric_names({"decision": "both"})
        known = [gates.parse_gate(f"{name}>=0.5") for name in names]
        gates.refuse_unknown_metrics(known, names)
        with self.assertRaisesRegex(
            gates.GateError, "no metric 'kapa'; there are kappa, agreement, ac1, valid_output, "
        ):
            gates.refuse_unknown_metrics([gates.parse_gate("kapa>=0.5")], names)
        gates.refuse_unknown_judges(
            [gates.parse_gate("one vs two:kappa>0"), gates.parse_gate("kappa>0")], ["one", "two"]
        )
        with self.assertRaisesRegex(gates.GateError, "no judge 'three'; there are one, two"):
            gates.refuse_unknown_judges([gates.parse_gate("one vs three:kappa>0")], ["one", "two"])

    def test_what_cannot_be_read_or_found_is_named(self) -> None:
        cases = (
            ("kappa=0.6", "expected [JUDGE:]METRIC"),
            ("kappa>=0.6 @0", "expected a level"),
            ("nobody:kappa>=0.6", "no judge 'nobody'"),
            ("accuracy>=0.6", "no metric 'accuracy'"),
            ("judge vs nobody:kappa>0", "no such comparison"),
            ("kappa>=0.6 @90", "are 95%"),
        )
        for text, words in cases:
            with self.subTest(text), self.assertRaises(gates.GateError) as caught:
                code(text, result(0.6, 0.5, 0.7))
            self.assertIn(words, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
