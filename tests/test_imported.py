"""Recorded replies that become a run: what the command says of them."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import runner


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


if __name__ == "__main__":
    unittest.main()
