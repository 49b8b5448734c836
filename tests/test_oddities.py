"""The oddities of a fixture: what is told of them, and what eval.json may expect of them."""

from __future__ import annotations

import json
import os
import sys
import unittest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rooms import ROOT, room

evidence, fixtures = room("evidence"), room("fixtures")
evaluations = room("evaluation")


def lines_of(*rows: tuple[str, str, str | None]) -> bytes:
    """A fixture of (answer_a, answer_b, gold)."""
    items = [
        {"item_id": f"i{n}", "split": "test", "text": "q", "answer_a": a, "answer_b": b, "gold": gold}
        for n, (a, b, gold) in enumerate(rows)
    ]
    return b"".join(json.dumps(item).encode("utf-8") + b"\n" for item in items)


def told(known: dict[str, int], *rows: tuple[str, str, str | None]) -> tuple[list[str], list[str]]:
    found: tuple[list[str], list[str]] = evaluations.oddity_lines(
        fixtures.load_items(lines_of(*rows), "fixture.jsonl")[1], known
    )
    return found


class Oddities(unittest.TestCase):
    EMPTY, SAME, PLAIN = ("", "x", "B"), ("x", "x", None), ("x", "y", "A")

    def test_without_expectations_each_oddity_is_a_warning_of_its_own(self) -> None:
        warnings, notes = told({}, self.EMPTY, self.SAME, self.PLAIN, ("a\0", "b", "A"))
        self.assertEqual(notes, [])
        self.assertEqual([line.split(":")[0] for line in warnings], ["i0", "i1", "i3"])

    def test_as_many_as_expected_are_one_counted_note_and_no_warning(self) -> None:
        warnings, notes = told({"empty_answer": 2, "same_text": 1}, self.EMPTY, self.EMPTY, self.SAME, self.PLAIN)
        self.assertEqual(warnings, [])
        self.assertEqual(notes, ["oddities of the pairs, as many as eval.json expects: 2 empty_answer, 1 same_text"])

    def test_a_kind_that_is_there_more_or_less_often_is_counted_and_listed_the_others_are_not(self) -> None:
        for expected in (1, 3):
            with self.subTest(expected):
                warnings, notes = told({"empty_answer": expected, "same_text": 1}, self.EMPTY, self.EMPTY, self.SAME)
                self.assertEqual(warnings[0], f"known_oddities.empty_answer: expected {expected}, got 2")
                self.assertEqual([line.split(":")[0] for line in warnings[1:]], ["i0", "i1"])
                self.assertEqual(notes, ["oddities of the pairs, as many as eval.json expects: 1 same_text"])

    def test_expected_ones_that_are_gone_are_a_warning(self) -> None:
        self.assertEqual(told({"nul": 1}, self.PLAIN), (["known_oddities.nul: expected 1, got 0"], []))

    def test_one_text_twice_with_a_tie_as_gold_is_no_oddity(self) -> None:
        self.assertEqual(told({}, ("x", "x", "equal")), ([], []))


class KnownOddities(unittest.TestCase):
    def config(self, known: Any) -> dict[str, Any]:
        return {**json.loads((ROOT / "eval.json").read_bytes()), "known_oddities": known}

    def test_counts_by_kind_are_accepted(self) -> None:
        evaluations.check_config(self.config({"empty_answer": 4, "same_text": 0}), "eval.json")

    def test_anything_else_is_refused_by_name(self) -> None:
        refused: list[Any] = [[], {"empty": 1}, {"nul": -1}, {"nul": True}, {"nul": "1"}, {"nul": 1.0}]
        for known in refused:
            with self.subTest(known), self.assertRaisesRegex(evaluations.SettingError, "'known_oddities': expected"):
                evaluations.check_config(self.config(known), "eval.json")


if __name__ == "__main__":
    unittest.main()
