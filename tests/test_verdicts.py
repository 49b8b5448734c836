"""engine/verdicts.py: rows are parsed again, what does not match is told, states are never folded into each other."""

from __future__ import annotations

import copy
import json
import unittest
from collections import Counter
from typing import Any

import runner
from rooms import ROOT, room

verdicts, evidence, recipe, check, rows = (room(n) for n in ("verdicts", "evidence", "recipe", "check", "rows"))
fixtures = room("fixtures")
CONFIG: dict[str, Any] = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))
PRICE = {"input": 1.0, "cached": 0.5, "output": 10.0}


def kept(choice: str = "A", **changes: Any) -> dict[str, Any]:
    """The evidence of one reply; choice 'failed' is one that never came, 'invalid' one without a call."""
    calls = [{"name": "grade", "arguments": json.dumps({"choice": choice, "reason": "r"})}]
    usage = {"input": 100, "output": 10, "cached": None, "reasoning": 0}
    base: dict[str, Any] = {
        "state": "ok", "code": None, "repaired": [], "hint": None, "id": "x", "model": "judge-1", "provider": None,
        "finish_reason": "stop", "content": None, "tool_calls": calls, "refusal": None, "usage": usage,
        "started_at": None, "latency_ms": 7, "retries": 0, "attempts_maybe_billed": 0, "error": None,
    }  # fmt: skip
    if choice == "invalid":
        base.update(state="invalid", code="no_tool_call", tool_calls=[])
    if choice == "failed":
        error = {"code": "timeout", "status": None, "text": ""}
        base.update(state="failed", code="timeout", tool_calls=None, usage=None, model=None, error=error)
    return {**base, **changes}


def row(number: int, original: Any, swapped: Any, repeat: int = 1) -> dict[str, Any]:
    replies = {"original": original, "swapped": swapped}
    replies = {order: kept(each) if isinstance(each, str) else each for order, each in replies.items()}
    said = {}
    for order, part in replies.items():
        found = (
            recipe.parse(rows.reply_of(part))
            if part["error"] is None
            else {"choice": "invalid", "reason": part["code"]}
        )
        said[order] = {"choice": found["choice"], "reason": found["reason"]}
    errors = sum(part["state"] == "failed" for part in replies.values())
    base = {"item_id": f"pair-{number:05d}", "arm": "judge", "repeat": repeat, "errors": errors}
    return {**base, "tool_arguments": said, "replies": replies}


def reader(pairs: int = 6, repeats: int = 1) -> Any:
    items, _ = fixtures.load_items(b"".join(evidence.row_bytes(runner.item(n)) for n in range(pairs)), "f")
    return verdicts.Reader(items, {"judge": {"price_usd_per_mtok": PRICE}}, {"judge": CONFIG}, repeats, recipe)


class Reading(unittest.TestCase):
    def test_pairs_are_counted_by_state_and_never_folded(self) -> None:
        found = reader()
        pairs = [("A", "B"), ("A", "invalid"), ("failed", "invalid"), ("invalid", "invalid"), ("B", "failed")]
        for number, pair in enumerate(pairs):
            self.assertIsNotNone(found.read(row(number, *pair), "raw:1"))
        table = found.tables["judge"]
        self.assertEqual({"ok": 1, "invalid": 2, "failed": 2, "missing": 1}, table.counts())
        self.assertEqual(Counter(ok=4, invalid=4, failed=2), table.replies)
        self.assertEqual((Counter(no_tool_call=4), Counter(timeout=2)), (table.codes, table.failed_codes))
        self.assertEqual([], found.problems)

    def test_a_failed_reply_is_no_choice_and_an_invalid_one_is(self) -> None:
        found = reader(repeats=2)
        found.read(row(2, "failed", "invalid"), "x")
        found.read(row(2, "A", "equal", repeat=2), "x")
        self.assertEqual(((None, "invalid"), ("A", "equal")), found.tables["judge"].pairs(2))
        self.assertEqual(("A", "equal"), found.tables["judge"].pair(2, 2))
        self.assertEqual(((None, None), (None, None)), found.tables["judge"].pairs(0))

    def test_each_part_that_does_not_follow_from_the_reply_is_a_problem(self) -> None:
        for change in ({"choice": "B", "reason": "r"}, {"choice": "A", "reason": "other"}, None, "A"):
            found, changed = reader(), row(0, "A", "B")
            changed["tool_arguments"]["original"] = change
            self.assertEqual("A", found.read(changed, "raw:7")["original"]["choice"])
            self.assertRegex(found.problems[0], "^raw:7: original: recorded .*, the kept reply says ")

    def test_rows_of_no_item_arm_or_repeat_and_doubled_rows_are_problems(self) -> None:
        cases: list[dict[str, Any]] = [{"item_id": "x"}, {"arm": "other"}]
        cases += [{"repeat": value} for value in (0, 2, True, None)]
        for case in cases:
            found = reader()
            self.assertIsNone(found.read({**row(0, "A", "B"), **case}, "raw:3"))
            self.assertEqual(1, len(found.problems), case)
        found = reader()
        found.read(row(0, "A", "B"), "raw:1")
        self.assertIsNone(found.read(row(0, "B", "A"), "raw:2"))
        self.assertIn("raw:2: pair-00000 judge repeat 1 stands twice", found.problems)
        self.assertEqual((("A", "B"),), found.tables["judge"].pairs(0))

    def test_tokens_cost_and_latency_are_sums_over_replies_that_came(self) -> None:
        found = reader()
        found.read(row(0, kept(usage=None), kept(latency_ms=9, model="judge-2", retries=2)), "x")
        found.read(row(1, "failed", kept(provider="Azure", attempts_maybe_billed=1)), "x")
        table = found.tables["judge"]
        self.assertEqual((200, 20, 0), (table.tokens["input"], table.tokens["output"], table.tokens["reasoning"]))
        self.assertEqual(Counter(input=1, output=1, cached=3, reasoning=1), table.tokens_unknown)
        self.assertAlmostEqual(2 * (100 + 100) / 1e6, table.cost)
        self.assertEqual(
            (1, 2, 1, [7, 9, 7]), (table.cost_unknown, table.retries, table.maybe_billed, list(table.latencies))
        )
        self.assertEqual(({"judge-1": 2, "judge-2": 1}, {"Azure": 1}), (dict(table.served), dict(table.providers)))

    def test_asking_for_the_tables_twice_counts_nothing_twice(self) -> None:
        found = reader()
        found.read(row(0, "A", "B"), "x")
        first = copy.deepcopy(vars(found.tables["judge"]))
        self.assertEqual(first, vars(found.tables["judge"]))

    def test_a_reply_of_another_form_is_parsed_and_not_taken_from_the_cache(self) -> None:
        found = reader()
        call = {"name": "grade", "arguments": json.dumps({"choice": "A", "reason": "r"})}
        same: dict[str, Any] = {"tool_calls": [call]}
        other: dict[str, Any] = {"tool_calls": [{**call, "name": ["grade"]}]}
        for number, part in enumerate((kept(**same), kept(**same), kept(**other), kept(tool_calls=[None]))):
            changed = row(number, part, "B")
            found.read(changed, "x")
        self.assertEqual([], found.problems)
        self.assertEqual(
            [("A", "B"), ("A", "B"), ("invalid", "B"), ("invalid", "B")],
            [found.tables["judge"].pairs(n)[0] for n in range(4)],
        )


class Scoring(unittest.TestCase):
    def test_scored_lines_are_the_scored_rows(self) -> None:
        raw = [
            row(n, *pair)
            for n, pair in enumerate([("A", "B"), ("B", "B"), ("failed", "A"), ("invalid", "A"), ("A", "B")])
        ]
        lines = [(each, evidence.row_bytes(each)) for each in raw]
        first, second = reader(), reader()
        written = list(verdicts.scored_lines(lines, first, first.items, check.score, "raw"))
        expected = list(verdicts.scored_rows(raw, second, second.items, check.score, "raw"))
        self.assertEqual(expected, [json.loads(line) for line in written])
        self.assertEqual([evidence.row_bytes(each) for each in expected], written)

    def test_a_row_with_a_failed_reply_carries_no_scores(self) -> None:
        found = reader()
        (scored,) = verdicts.scored_rows([row(0, "A", "failed")], found, found.items, check.score, "raw")
        self.assertFalse(set(check.SCORE_KEYS) & set(scored))


if __name__ == "__main__":
    unittest.main()
