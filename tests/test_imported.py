"""Recorded replies that become a run: what the command says of them."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import runner
from rooms import room

imported = room("imported")
evidence = room("evidence")


class Counts(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = Path(temporary.name)
        self.evaluation = runner.make_evaluation(self.top / "e", [runner.item(number) for number in range(3)])

    def reply(self, number: int, order: str) -> dict[str, Any]:
        arguments = json.dumps({"choice": "A", "reason": "it is right"})
        call = {"name": "grade", "arguments": arguments}
        return {"item_id": runner.item(number)["item_id"], "order": order, "tool_calls": [call]}

    def imported(self, *replies: dict[str, Any]) -> str:
        path = self.top / "replies.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in replies), encoding="utf-8")
        done = runner.cli(self.evaluation, "--import-replies", path, "--arm-label", "old", cwd=self.top)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stderr

    def test_pairs_with_both_orders_are_counted(self) -> None:
        said = self.imported(self.reply(0, "ab"), self.reply(0, "ba"), self.reply(1, "ab"))
        self.assertIn("3 replies read (2 original, 1 swapped); 1 of 3 pairs have both orders\n", said)

    def test_replies_in_one_order_alone_are_no_surprise_later(self) -> None:
        said = self.imported(self.reply(0, "ab"), self.reply(1, "ab"))
        self.assertIn(
            "0 of 3 pairs have both orders: no pair is judged in both orders, and a decision takes both", said
        )

    def test_recorded_replies_take_no_name_of_a_judge_that_eval_json_lists(self) -> None:
        path = self.top / "replies.jsonl"
        path.write_text(json.dumps(self.reply(0, "ab")) + "\n", encoding="utf-8")
        for label in ("pareto", "control-mine", "../x", ""):
            with self.subTest(label):
                done = runner.cli(self.evaluation, "--import-replies", path, "--arm-label", label, cwd=self.top)
                self.assertEqual(2, done.returncode, done.stderr)
                self.assertFalse((self.top / "runs").exists())


class Lines(unittest.TestCase):
    """Every field that is taken over is checked in the line it stands in, before anything is written."""

    def refused(self, **fields: Any) -> str:
        line = {"item_id": "a", "order": "original", "content": "[[A]]", **fields}
        with self.assertRaises(evidence.EvidenceError) as caught:
            imported.check_line(line, "replies.jsonl:3")
        return str(caught.exception)

    def test_a_field_of_another_kind_or_range_is_named(self) -> None:
        cases: list[tuple[str, list[Any], str]] = [
            ("item_id", [None, 7, ["a"]], "a text"),
            ("order", [None, 7, ["original"], {"a": 1}], "original or swapped"),
            ("repeat", [None, 0, 1001, True, "1", 1.0], "a number from 1 to 1000"),
            ("latency_ms", [-5, 1.5, True, "12", 1 << 53, []], "a whole number from 0"),
            ("usage", [5, "x", []], "an object or null"),
            ("tool_calls", ["x", {"name": "grade"}, 5], "a list or null"),
        ]
        cases += [(name, [7, True, ["x"], {}], "a text or null") for name in imported.TEXTS]
        for field, values, expected in cases:
            for value in values:
                with self.subTest(field, value=value):
                    said = self.refused(**{field: value})
                    self.assertIn(f"replies.jsonl:3: field '{field}': expected {expected}", said)

    def test_what_stands_inside_a_field_is_named_too(self) -> None:
        for kind in ("input", "output", "cached", "reasoning"):
            for value in (-1, "5", True, 1.5, 1 << 53):
                self.assertIn(f"field 'usage.{kind}': expected a whole number", self.refused(usage={kind: value}))
        self.assertIn("field 'tool_calls[1]': expected an object", self.refused(tool_calls=[{}, "x"]))

    def test_null_says_that_a_field_is_not_known(self) -> None:
        names = ("latency_ms", "usage", "tool_calls", "model", "provider", "id", "finish_reason", "started_at")
        line = {"item_id": "a", "order": "ba", "content": "x", **dict.fromkeys(names), "usage": {"input": None}}
        imported.check_line(line, "x:1")

    def test_a_refused_line_leaves_no_run_behind(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            evaluation = runner.make_evaluation(top / "e", [runner.item(0)])
            line = {"item_id": runner.item(0)["item_id"], "order": "ab", "content": "x", "latency_ms": -5}
            (top / "r.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
            words = ("--import-replies", "r.jsonl", "--arm-label", "old", "--out", "runs")
            done = runner.cli(evaluation, *words, cwd=top)
            self.assertEqual(3, done.returncode, done.stderr)
            self.assertIn("r.jsonl:1: field 'latency_ms': expected a whole number from 0", done.stderr)
            self.assertFalse((top / "runs").exists())


if __name__ == "__main__":
    unittest.main()
