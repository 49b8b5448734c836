"""engine/rows.py: evidence of one reply, the raw row of both orders, and its cost; unknown numbers stay null."""

from __future__ import annotations

import json
import unittest
from typing import Any

from rooms import room

rows, client, evidence = room("rows"), room("client"), room("evidence")
REPLY: dict[str, Any] = {
    "id": "r1",
    "model": "judge-1-0626",
    "provider": "Azure",
    "choices": [
        {
            "message": {"content": None, "tool_calls": [{"id": "c", "function": {"name": "grade", "arguments": "{}"}}]},
            "finish_reason": "stop",
        }
    ],
}
VERDICT: dict[str, Any] = {"state": "ok", "choice": "A", "reason": "", "code": None, "repaired": [], "hint": None}
USAGE = {"input": 100, "output": 10, "cached": 40, "reasoning": None}


def kept(**changes: Any) -> dict[str, Any]:
    outcome = client.Outcome("reply", reply=REPLY, started_at="2026-01-01T00:00:00.000000Z", latency_ms=7, retries=1)
    found: dict[str, Any] = rows.evidence_of(outcome, rows.reply_parts(outcome.reply), USAGE, VERDICT)
    return {**found, **changes}


def row(first: dict[str, Any], second: dict[str, Any], **settings: Any) -> dict[str, Any]:
    entries = {
        "original": rows.journal_entry("i", "arm", 1, "original", VERDICT, first),
        "swapped": rows.journal_entry("i", "arm", 1, "swapped", VERDICT, second),
    }
    config = {"max_tokens": 9, "reasoning_effort": "low", "tool_choice": None}
    found: dict[str, Any] = rows.raw_row({"model": "judge-1", **settings}, config, "arm", "i", 1, entries)
    return found


class Evidence(unittest.TestCase):
    def test_the_parts_a_verdict_is_read_from_are_kept(self) -> None:
        found = kept()
        self.assertEqual([{"name": "grade", "arguments": "{}"}], found["tool_calls"])
        self.assertEqual(
            ("ok", "r1", "judge-1-0626", "Azure"), tuple(found[k] for k in ("state", "id", "model", "provider"))
        )

    def test_an_outcome_without_a_reply_is_failed_with_its_error(self) -> None:
        outcome = client.Outcome("failed", code="timeout", text="no answer in 60 s", http_status=None)
        found = rows.evidence_of(outcome, rows.reply_parts(outcome.reply), None, None)
        self.assertEqual(("failed", "timeout", None), (found["state"], found["code"], found["usage"]))
        self.assertEqual({"code": "timeout", "status": None, "text": "no answer in 60 s"}, found["error"])

    def test_a_row_refused_by_the_provider_is_invalid_not_failed(self) -> None:
        outcome = client.Outcome("invalid", code="content_filter", http_status=400)
        self.assertEqual("invalid", rows.evidence_of(outcome, rows.reply_parts(outcome.reply), None, None)["state"])

    def test_values_that_strict_json_cannot_hold_are_kept_as_a_note(self) -> None:
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        odd: list[Any] = [float("nan"), deep, {1, 2}]
        for value in odd:
            self.assertTrue(str(rows.storable(value)).startswith("not storable"))
        while deep:  # taken apart level by level, since freeing it in one go recurses too
            deep = deep[0]

    def test_token_counts_that_are_no_counts_are_null(self) -> None:
        odd: list[Any] = [None, -1, 1.5, True, "7", 1 << 60, [], float("inf")]
        for value in odd:
            self.assertIsNone(rows.token_count(value), value)
        self.assertEqual(0, rows.token_count(0))

    def test_usage_without_any_count_is_null(self) -> None:
        self.assertIsNone(rows.clean_usage({"input": None, "output": "many"}))
        self.assertIsNone(rows.clean_usage(None))

    def test_every_evidence_is_one_line_of_strict_json(self) -> None:
        odd = kept(content="half \ud83d, \u2028 and \x00", finish_reason="ODD")
        line = evidence.row_bytes(rows.journal_entry("i", "arm", 1, "original", None, odd))
        self.assertEqual(1, line.count(b"\n"))
        self.assertEqual("half \ud83d, \u2028 and \x00", json.loads(line)["evidence"]["content"])


class JournalLine(unittest.TestCase):
    """A line leaves out what says nothing, and the entry read from it is the one that was written, key for key."""

    def entry(self, **changes: Any) -> dict[str, Any]:
        found: dict[str, Any] = rows.journal_entry("i", "judge", 1, "original", VERDICT, {**kept(), **changes})
        return found

    def read_again(self, entry: dict[str, Any]) -> Any:
        return rows.entry_of(json.loads(evidence.row_bytes(rows.journal_line(entry))))

    def test_every_part_comes_back_in_its_place(self) -> None:
        thoughts = dict(list(kept().items())[:11] + [("reasoning_content", "hm")] + list(kept().items())[11:])
        failed = {"state": "failed", "code": "timeout", "tool_calls": None, "usage": None, "id": None, "model": None}
        for changes in (
            {},
            failed,
            {"repaired": ["fence"], "tool_calls": [], "content": [], "retries": 0},
            {"usage": {"input": 0, "output": None, "cached": None, "reasoning": None}},
            {"retries": None, "attempts_maybe_billed": None, "via": "batch"},
        ):
            with self.subTest(changes=changes):
                entry = self.entry(**changes)
                self.assertEqual(evidence.row_bytes(entry), evidence.row_bytes(self.read_again(entry)))
        entry = {**self.entry(), "evidence": thoughts}
        self.assertEqual(evidence.row_bytes(entry), evidence.row_bytes(self.read_again(entry)))

    def test_a_line_with_every_part_written_out_reads_the_same(self) -> None:
        entry = self.entry(usage=None)
        self.assertEqual(evidence.row_bytes(entry), evidence.row_bytes(rows.entry_of(entry)))

    def test_what_says_nothing_is_not_written(self) -> None:
        line = rows.journal_line(self.entry(usage={"input": 3, "output": None, "cached": None, "reasoning": None}))
        self.assertEqual({"input": 3}, line["evidence"]["usage"])
        self.assertNotIn("refusal", line["evidence"])
        self.assertNotIn("repaired", line["evidence"])

    def test_an_unknown_part_stays_for_the_check_of_its_shape(self) -> None:
        found = rows.entry_of({**self.entry(), "evidence": {**kept(), "more": 1}})
        self.assertEqual(["evidence: field 'more' is unknown"], rows.entry_problems(found))


class RawRow(unittest.TestCase):
    def test_the_keys_are_the_published_ones_in_order_with_replies_behind(self) -> None:
        expected = (
            "item_id arm repeat request_model response_model endpoint provider_served allow_fallbacks reasoning_effort "
            "max_tokens tool_choice tool_arguments finish_reason tokens response_id started_at errors "
            "invalid_tool_calls retries latency_ms replies"
        )
        self.assertEqual(expected.split(), list(row(kept(), kept())))

    def test_token_totals_are_unknown_when_one_part_is(self) -> None:
        found = row(kept(), kept(usage={**USAGE, "output": None}))
        self.assertEqual({"input": 200, "output": None, "cached": 80, "reasoning": None}, found["tokens"])

    def test_length_in_either_order_is_the_row_s_finish_reason(self) -> None:
        self.assertEqual("length", row(kept(finish_reason="length"), kept())["finish_reason"])

    def test_failed_and_invalid_replies_are_counted_apart(self) -> None:
        found = row(kept(state="failed"), kept(state="invalid"))
        self.assertEqual((1, 1), (found["errors"], found["invalid_tool_calls"]))

    def test_an_invalid_first_order_is_counted_too(self) -> None:
        self.assertEqual(1, row(kept(state="invalid"), kept())["invalid_tool_calls"])

    def test_missing_ids_leave_empty_places(self) -> None:
        self.assertEqual(",r1", row(kept(id=None), kept())["response_id"])


class Cost(unittest.TestCase):
    PRICE = {"input": 2.0, "cached": 0.5, "output": 10.0}

    def test_cached_tokens_cost_their_own_price(self) -> None:
        self.assertAlmostEqual((60 * 2 + 40 * 0.5 + 10 * 10) / 1e6, rows.cost_usd(USAGE, self.PRICE))

    def test_more_cached_than_input_tokens_never_make_a_negative_cost(self) -> None:
        self.assertAlmostEqual((100 * 0.5 + 100) / 1e6, rows.cost_usd({**USAGE, "cached": 500}, self.PRICE))

    def test_unknown_counts_or_prices_give_an_unknown_cost(self) -> None:
        for usage, price in ((None, self.PRICE), (USAGE, None), ({**USAGE, "output": None}, self.PRICE)):
            self.assertIsNone(rows.cost_usd(usage, price))


if __name__ == "__main__":
    unittest.main()
