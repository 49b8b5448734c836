"""Thousands of changed replies: each ends ok, invalid or failed with a reason, and no verdict turns into another."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any

import mutations
from rooms import room

recipe = room("recipe")

COUNT = 2000  # `python3 tests/mutations.py` runs 20,000


class Changed(unittest.TestCase):
    def test_each_ends_in_a_state_with_a_reason_and_no_verdict_becomes_another(self) -> None:
        states, problems = mutations.check(COUNT, seed=7)
        self.assertEqual(problems, [])
        live = {state: states[f"live {state}"] for state in ("ok", "invalid", "failed")}
        self.assertEqual(sum(live.values()), COUNT)
        self.assertGreater(min(live.values()), COUNT // 10)
        self.assertGreater(states["batch ok"], COUNT // 40)

    def test_the_changes_reach_every_reason_there_is_for_a_reply_that_cannot_be_read(self) -> None:
        rng, road, codes = random.Random(11), mutations.Road(), set()
        bodies = mutations.captures()
        for number in range(COUNT):
            one = bodies[number % len(bodies)]
            codes.add(road.entry(one, mutations.mutated(rng, one.body)[1])["evidence"]["code"])
        expected = (
            "bad_body bad_json bad_label duplicate_key missing_key multiple_verdicts no_tool_call no_verdict truncated"
        )
        self.assertLessEqual({*expected.split(), "wrong_tool"}, codes)

    def test_equal_seeds_make_equal_bodies(self) -> None:
        body = mutations.captures()[0].body
        made = [mutations.mutated(random.Random(3), body) for _ in range(2)]
        self.assertEqual(made[0], made[1])


class TheCheckItself(unittest.TestCase):
    def entry(self, **changes: Any) -> dict[str, Any]:
        one = next(one for one in mutations.captures() if one.source == "made up openai tool A")
        found = mutations.Road().entry(one, one.body.encode())
        found["evidence"].update(changes.pop("evidence", {}))
        found["said"].update(changes.pop("said", {}))
        return found

    def test_it_notices_each_kind_of_fault(self) -> None:
        self.assertIsNone(mutations.problem_of(self.entry(), "tool", "A"))
        for entry, before, said in (
            (self.entry(), "B", "B became A"),
            (self.entry(said={"choice": "B"}), "B", "read again it says 'A', not 'B'"),
            (self.entry(evidence={"state": "lost"}), "A", "state 'lost'"),
            (self.entry(evidence={"state": "invalid", "code": None}), "A", "invalid without a reason"),
            (self.entry(evidence={"state": "invalid", "code": "x"}), "A", "state invalid with choice 'A'"),
        ):
            with self.subTest(said):
                self.assertEqual(mutations.problem_of(entry, "tool", before), said)

    def test_a_parser_that_took_the_last_of_two_labels_would_be_caught(self) -> None:
        text = json.dumps({"choice": "A", "reason": "r"})
        doubled = mutations.text_of(mutations.Pairs([("choice", "A"), ("choice", "B")]))
        self.assertEqual(json.loads(doubled), {"choice": "B"})
        reply = {"choices": [{"message": {"tool_calls": [{"function": {"name": "grade", "arguments": doubled}}]}}]}
        self.assertEqual(recipe.parse(reply)["code"], "duplicate_key")
        self.assertEqual(mutations.opposed(text), json.dumps({"choice": "B", "reason": "r"}))


if __name__ == "__main__":
    unittest.main()
