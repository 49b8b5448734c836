"""Two runs side by side: same or not and why, what changed, and how far they agree."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
import unittest
from typing import Any

import receipt_folders as small
from rooms import room

diff, evaluations, evidence = room("diff"), room("evaluation"), room("evidence")


class DiffCase(unittest.TestCase):
    def setUp(self) -> None:
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        self.evaluation = small.small_evaluation()
        self.first = small.write_run(os.path.join(self.top, "first"), self.evaluation)

    def again(self, change: Any = None, **changes: Any) -> str:
        """A second run, with one raw row's reply in the original order replaced by `change`'s choice."""
        evaluation = small.small_evaluation(**changes) if changes else self.evaluation
        folder = small.write_run(os.path.join(self.top, "second"), evaluation)
        if change is not None:
            item_id, repeat, choice = change
            made = small.read_rows(folder)
            for row in made:
                if (row["item_id"], row["repeat"], row["arm"]) == (item_id, repeat, "pareto"):
                    said = {"choice": choice, "reason": "changed"}
                    row["replies"]["original"]["tool_calls"][0]["arguments"] = json.dumps(said)
                    row["tool_arguments"]["original"] = said
            small.write_rows(folder, made)
        return folder

    def compared(self, first: str, second: str, arms: str | None = None) -> Any:
        sides = [diff.open_side(text, self.evaluation, os.path.exists) for text in (first, second)]
        return diff.compare(sides[0], sides[1], arms.split(",") if arms else None)

    def part(self, first: str, second: str, arms: str | None = "pareto") -> Any:
        return self.compared(first, second, arms)["arms"][0]


class Same(DiffCase):
    def test_a_run_and_a_copy_of_it_are_the_same_replies_and_no_reproduction(self) -> None:
        copy = os.path.join(self.top, "copy")
        shutil.copytree(self.first, copy)
        found = self.compared(self.first, copy)
        self.assertEqual([{"k": 32, "n": 32}] * 2, [part["same_replies"] for part in found["arms"]])
        shown = diff.render(found, "table")
        self.assertIn("the same 32 replies on both sides, down to their times; nothing was reproduced", shown)
        self.assertNotIn("reproduction", shown)

    def test_a_run_made_again_is_a_reproduction(self) -> None:
        again = self.again()
        made = small.read_rows(again)
        for row in made:
            for kept in row["replies"].values():
                kept["started_at"] = kept["started_at"].replace("Z", "")[:-1] + "9Z"
        small.write_rows(again, made)
        found = self.compared(self.first, again, "pareto")
        self.assertEqual(0, found["arms"][0]["same_replies"]["k"])
        self.assertIn("the second is a reproduction of the first", diff.render(found, "table"))

    def test_two_repeats_of_one_run_are_no_copies(self) -> None:
        self.assertEqual(0, self.part(f"{self.first}@1", f"{self.first}@2")["same_replies"]["k"])


class Settings(DiffCase):
    def test_of_two_runs_of_the_same_are_said_to_be_reproductions(self) -> None:
        found = self.part(self.first, self.again())
        self.assertEqual((True, [], []), (found["same_config"], found["settings"], found["changes"]))
        self.assertEqual(1.0, found["agreement"]["value"])

    def test_that_differ_are_named(self) -> None:
        found = self.part(self.first, self.again(max_tokens=77, decision="original"))
        self.assertFalse(found["same_config"])
        self.assertEqual([{"setting": "max_tokens", "a": 2048, "b": 77}], found["settings"])
        self.assertIn("decision", [each["setting"] for each in found["beside"]])

    def test_of_an_arm_are_named(self) -> None:
        second = self.again()
        small.edit_json(second, "manifest.json", lambda v: v["arm_settings"]["pareto"].update(model="pareto-2"))
        found = self.part(self.first, second)
        self.assertEqual([{"setting": "arm model", "a": "pareto", "b": "pareto-2"}], found["settings"])


class Changes(DiffCase):
    def test_are_listed_with_pair_repeat_order_before_and_after(self) -> None:
        found = self.part(self.first, self.again(("pair-0", 2, "B")))
        listed = [tuple(change.values()) for change in found["changes"]]
        wanted = [
            ("pair-0", 2, 2, "original", "A", "B"),
            ("pair-0", 2, 2, "decision", "A", "equal"),
            ("pair-0", None, None, "pair", "A", "equal"),
        ]
        self.assertEqual(wanted, listed)
        self.assertEqual({"k": 1, "n": 16}, found["changed"]["decision"])
        self.assertEqual({"k": 1, "n": 8}, found["changed"]["pair"])

    def test_have_their_agreement_and_their_correctness_counted(self) -> None:
        found = self.part(self.first, self.again(("pair-0", 2, "B")))
        self.assertEqual((7, 8), (found["agreement"]["k"], found["agreement"]["n"]))
        correct = found["correct"]
        self.assertEqual(
            (1, 0, 7, 1.0), (correct["a_only"], correct["b_only"], correct["both_or_neither"], correct["p"])
        )

    def test_between_two_repeats_of_one_run_are_told(self) -> None:
        second = self.again(("pair-0", 2, "B"))
        found = self.part(second + "@1", second + "@2")
        self.assertEqual([[1, 2]], found["repeats"])
        self.assertEqual({"k": 1, "n": 8}, found["changed"]["original"])

    def test_between_two_arms_are_told_when_asked(self) -> None:
        found = self.part(self.first, self.first, "pareto,control-first")
        self.assertEqual(("pareto", "control-first"), (found["a"], found["b"]))
        self.assertGreater(found["changed"]["pair"]["k"], 0)

    def test_come_as_csv_one_a_line(self) -> None:
        result = self.compared(self.first, self.again(("pair-0", 2, "B")))
        lines = list(csv.reader(io.StringIO(diff.render(result, "csv"))))
        self.assertEqual(["pareto", "pareto", "pair-0", "2", "2", "original", "A", "B"], lines[1])
        self.assertEqual(4, len(lines))


class Refusals(DiffCase):
    def test_name_what_is_not_there(self) -> None:
        for text, arms, expected in (
            (self.first + "@9", None, "repeat 9"),
            (os.path.join(self.top, "nowhere"), None, "no such folder"),
            (self.first, "other", "no arm 'other'"),
        ):
            with (
                self.subTest(expected),
                self.assertRaises((evidence.EvidenceError, evaluations.SettingError)) as caught,
            ):
                self.compared(text, self.first, arms)
            self.assertIn(expected, str(caught.exception))


class Shown(DiffCase):
    def test_in_every_form(self) -> None:
        result = self.compared(self.first, self.again(("pair-0", 2, "B")))
        text = diff.render(result, "table")
        for part in ("same config hash", "1/8 pairs by majority", "7/8 0.875", "p 1.0000"):
            self.assertIn(part, text)
        self.assertIn("| pair-0 |", diff.render(result, "markdown"))
        self.assertEqual(result["arms"], json.loads(diff.render(result, "json"))["arms"])


if __name__ == "__main__":
    unittest.main()
