"""What a result says of a judge in words: only what the intervals exclude is told apart."""

from __future__ import annotations

import unittest
from typing import Any

from rooms import room

sentences = room("sentences")


def figure(low: float | None, high: float | None, value: float | None = 0.1) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "reason": None if value is not None else "no_items"}


def result(chance: dict[str, Any], longer: dict[str, Any] | None = None, turned: bool = False) -> dict[str, Any]:
    names = ("control-longer", "judge") if turned else ("judge", "control-longer")
    entry = {"a": names[0], "b": names[1], "differences": {"kappa": longer}}
    return {"arms": {"judge": {"metrics": {"kappa": chance}}}, "comparisons": [entry] if longer else []}


class Words(unittest.TestCase):
    def test_follow_the_interval_and_not_the_value(self) -> None:
        for shown, words in (
            (figure(0.01, 0.2), "agrees with gold beyond chance"),
            (figure(0.0, 0.2), "not told apart from chance"),
            (figure(-0.1, 0.2), "not told apart from chance"),
            (figure(-0.3, -0.1), "agrees with gold less than chance would"),
            (figure(None, None), "kappa has no interval here, so nothing is sure"),
            (figure(None, None, None), "kappa is undefined (no_items)"),
        ):
            with self.subTest(words):
                self.assertEqual(words, sentences.judgement(result(shown), "judge"))

    def test_turn_a_difference_with_the_order_of_its_judges(self) -> None:
        for low, high, words in (
            (0.1, 0.3, "better than picking the longer answer"),
            (-0.3, -0.1, "worse than picking the longer answer"),
            (-0.1, 0.2, "not told apart from picking the longer answer"),
        ):
            for shown, turned in ((figure(low, high), False), (figure(-high, -low), True)):
                with self.subTest(words, turned=turned):
                    self.assertEqual(words, sentences.against_longer(result(figure(0.1, 0.2), shown, turned), "judge"))

    def test_say_nothing_of_a_difference_without_an_interval(self) -> None:
        self.assertIsNone(sentences.against_longer(result(figure(0.1, 0.2), figure(None, None)), "judge"))

    def test_name_the_place_that_the_order_favours(self) -> None:
        position = {"n": 10, "consistent": 4, "invalid": 1, "k_first": 4, "k_second": 1}
        expected = (
            "exchanging the two answers changes its verdict on 5 of 10 pairs judged; "
            "4 of these lean to the answer shown first"
        )
        self.assertEqual(expected, sentences.order_words(position))
        self.assertNotIn("lean", sentences.order_words({**position, "k_first": 2, "k_second": 2}))


if __name__ == "__main__":
    unittest.main()
