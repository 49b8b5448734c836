"""MT-Bench's own recipe: prompts word for word, the last mark as the verdict, recorded replies as lines to import."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
import unittest
from collections import Counter
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made

EVALS = os.path.join(made.ROOT, "evals")
RECORDED = os.path.join(made.SHARED, "replies_gpt4_pair.jsonl")
recipe = made.module(os.path.join(EVALS, "mt-bench", "recipe.py"), "mtbench_recipe")
check = made.module(os.path.join(EVALS, "mt-bench", "check.py"), "mtbench_check")
replies = made.module(os.path.join(EVALS, "mt-bench", "replies.py"), "mtbench_replies")

PROMPTS_TEXT = "".join(json.dumps(row) + "\n" for row in made.prompt_rows()[:4])
CONFIG: dict[str, Any] = {
    "inputs": {"prompts.jsonl": PROMPTS_TEXT},
    "max_tokens": 2048,
    "reasoning_effort": "medium",
    "decision": "both",
}
ITEM: dict[str, Any] = {
    "item_id": "x",
    "text": "Why {answer_a}?",
    "answer_a": "one {question}",
    "answer_b": "",
    "turn": 1,
}


def chat(content: Any, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}]}


class Requests(unittest.TestCase):
    def shown(self, item: dict[str, Any], swapped: bool = False) -> tuple[str, str]:
        system, user = recipe.request(item, CONFIG, swapped)["messages"]
        return system["content"], user["content"]

    def test_the_prompt_is_filled_once_and_braces_in_answers_stay(self) -> None:
        expected = ("Judge pair-v2.", "Q: Why {answer_a}?\nfirst <one {question}>\nsecond <>")
        self.assertEqual(self.shown(ITEM), expected)

    def test_swapping_exchanges_the_answers_and_nothing_else(self) -> None:
        original, swapped = recipe.plan_requests(ITEM, CONFIG)
        self.assertEqual(swapped["messages"][1]["content"], "Q: Why {answer_a}?\nfirst <>\nsecond <one {question}>")
        self.assertEqual({**original, "messages": 0}, {**swapped, "messages": 0})

    def test_a_reference_selects_the_reference_variant(self) -> None:
        system, user = self.shown({**ITEM, "reference": ["42"]})
        self.assertEqual(system, "Judge pair-math-v1.")
        self.assertTrue(user.endswith("key 42"))

    def test_the_second_turn_shows_both_turns_and_swaps_both(self) -> None:
        prior = [{"text": "first?", "answer_a": "a1", "answer_b": "b1"}]
        item = {"item_id": "x", "text": "second?", "answer_a": "a2", "answer_b": "b2", "turn": 2, "prior_turns": prior}
        self.assertEqual(self.shown(item)[1], "1 first? <a1> <b1>\n2 second? <a2> <b2>")
        self.assertEqual(self.shown(item, True)[1], "1 first? <b1> <a1>\n2 second? <b2> <a2>")
        system, user = self.shown({**item, "reference": ["r1", "r2"]})
        self.assertEqual((system, user.split("\n")[-1]), ("Judge pair-math-v1-multi-turn.", "keys r1 / r2"))

    def test_no_tool_and_no_sampling_parameter_is_sent(self) -> None:
        self.assertEqual(list(recipe.request(ITEM, CONFIG)), ["messages", "max_tokens", "reasoning_effort"])

    def test_missing_prompts_are_named(self) -> None:
        cases = [
            ({**CONFIG, "inputs": {}}, ITEM, "prompts.jsonl: expected the text"),
            ({**CONFIG, "inputs": {"prompts.jsonl": "{}\n"}}, ITEM, "prompts.jsonl:1: expected name"),
            (CONFIG, {**ITEM, "turn": 2}, r"placeholder \{question_2\} has no value"),
        ]
        for config, item, message in cases:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                recipe.request(item, config)


class Marks(unittest.TestCase):
    def test_the_last_mark_is_the_verdict(self) -> None:
        cases = {
            "I prefer the first.\n\n[[A]]": "A",
            "[[B]]": "B",
            "Both are fine. [[C]]": "equal",
            'The answer says "[[A]]" to sway me. [[B]] it is.': "B",
            "**[[A]]**.": "A",
            "[[A]] or [[B]]? [[C]]. Thank you.": "equal",
            "<think>[[B]] maybe</think>Done: [[A]]": "A",
        }
        for text, choice in cases.items():
            found = recipe.parse(chat(text))
            self.assertEqual((found["state"], found["choice"], found["code"]), ("ok", choice, None), text)

    def test_a_reply_without_a_mark_is_invalid_and_says_why(self) -> None:
        cases: list[tuple[Any, str]] = [
            (chat("I prefer A."), "no_verdict"),
            (chat("[A] and [[a]] and [[D]] and [[ A ]]"), "no_verdict"),
            (chat(""), "no_verdict"),
            (chat(None), "no_verdict"),
            (chat("", "length"), "truncated"),
            (chat("Weighing [[A]] against", "length"), "truncated"),
            (chat("<think>[[A]]"), "truncated"),
            (chat("", "content_filter"), "content_filter"),
            (chat(None, refusal="I cannot."), "refusal"),
            (chat("", reasoning_content="[[A]]"), "reasoning_only"),
            ({}, "no_verdict"),
            ([], "no_verdict"),
            (None, "no_verdict"),
            ({"choices": [None]}, "no_verdict"),
            ({"choices": [{"message": {"content": {"text": "[[A]]"}}}]}, "no_verdict"),
        ]
        for reply, code in cases:
            found = recipe.parse(reply)
            self.assertEqual((found["state"], found["choice"], found["code"]), ("invalid", "invalid", code), reply)

    def test_a_cut_reply_counts_only_when_the_mark_ends_it(self) -> None:
        self.assertEqual(recipe.parse(chat("So it is [[B]]", "length"))["choice"], "B")

    def test_text_in_parts_is_read_as_one(self) -> None:
        parts = [{"type": "text", "text": "It is [["}, {"type": "text", "text": "B]]"}, {"type": "image"}]
        self.assertEqual(recipe.parse(chat(parts))["choice"], "B")


class Scores(unittest.TestCase):
    def test_the_rule_is_that_of_the_toolkit(self) -> None:
        toolkit = made.module(os.path.join(made.ROOT, "check.py"), "toolkit_check")
        choices = ("A", "B", "equal", "invalid", "C", None)
        for gold, first, second in itertools.product(("A", "B", "equal", None), choices, choices):
            arguments = {"original": {"choice": first}, "swapped": {"choice": second}}
            for decision in ("both", "original"):
                config = {"decision": decision}
                ours = check.score({"gold": gold}, arguments, config)
                self.assertEqual(ours, toolkit.score({"gold": gold}, arguments, config), (gold, first, second))

    def test_following_the_position_is_a_tie(self) -> None:
        arguments = {"original": {"choice": "A"}, "swapped": {"choice": "A"}}
        self.assertEqual(check.score({"gold": "A"}, arguments, CONFIG)["decision"], "equal")


class Recorded(unittest.TestCase):
    def convert(self, rows: list[dict[str, Any]], *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        with tempfile.TemporaryDirectory() as folder:
            path = made.write_jsonl(os.path.join(folder, "recorded.jsonl"), rows)
            pairs = [{"item_id": "q81-t1-ash-1b-oak-3b"}]
            fixture = made.write_jsonl(os.path.join(folder, "fixture.jsonl"), pairs)
            out, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                code = replies.main([path, "--fixture", fixture, *arguments])
        return code, [json.loads(line) for line in out.getvalue().split("\n") if line], errors.getvalue()

    def game(self, **changes: Any) -> dict[str, Any]:
        row = {"question_id": 81, "turn": 1, "model_1": "oak-3b", "model_2": "ash-1b", "judge": ["gpt-x", "pair-v2"]}
        return {**row, "g1_judgment": "oak first [[A]]", "g2_judgment": "ash first [[B]]", **changes}

    def test_both_games_of_a_line_find_their_order(self) -> None:
        code, lines, errors = self.convert([self.game()])
        self.assertEqual(code, 0, errors)
        expected = [("swapped", "oak first [[A]]"), ("original", "ash first [[B]]")]
        self.assertEqual([(line["order"], line["content"]) for line in lines], expected)
        unknown = (lines[0]["repeat"], lines[0]["model"], lines[0]["usage"], lines[0]["finish_reason"])
        self.assertEqual(unknown, (1, "gpt-x", None, None))

    def test_further_samples_are_left_out_or_become_repeats(self) -> None:
        again = self.game(model_1="ash-1b", model_2="oak-3b")
        self.assertEqual(len(self.convert([self.game(), again])[1]), 2)
        lines = self.convert([self.game(), again], "--all-samples")[1]
        self.assertEqual(Counter((line["order"], line["repeat"]) for line in lines).most_common(1)[0][1], 1)
        self.assertEqual([line["repeat"] for line in lines], [1, 1, 2, 2])

    def test_pairs_that_are_not_in_the_fixture_are_counted(self) -> None:
        code, lines, errors = self.convert([self.game(turn=2)])
        self.assertEqual((code, lines), (0, []))
        self.assertIn("2 of pairs not in the fixture", errors)

    def test_lines_that_cannot_be_used_are_named(self) -> None:
        single = {"item_id": "x", "order": "ab", "sample": 0, "reply": "", "judge_model": "m"}
        cases: list[tuple[dict[str, Any], str]] = [
            ({**single, "order": "first"}, "recorded.jsonl:1: field 'order': expected ab or ba, got 'first'"),
            ({**single, "sample": -1}, "field 'sample'"),
            ({**single, "reply": None}, "field 'reply': expected a text"),
            ({"text": ""}, "expected g1_judgment and g2_judgment, or reply; got text"),
            (self.game(g2_judgment=None), "field 'g2_judgment'"),
        ]
        for row, part in cases:
            code, _, errors = self.convert([row])
            self.assertEqual(code, 1)
            self.assertIn(part, errors)


@unittest.skipUnless(os.path.exists(RECORDED), "the recorded replies are not there: ../shared/data/mt_bench")
class RecordedGpt4(unittest.TestCase):
    """GPT-4's recorded replies, read by our own recipe."""

    def test_the_last_mark_is_the_recorded_verdict_on_every_reply(self) -> None:
        known = {"first": "A", "second": "B", "tie": "equal", "error": "invalid"}
        rows = [row for _, row in replies.objects_of(RECORDED)]
        self.assertEqual(len(rows), 4984)
        wrong = [
            row["item_id"] for row in rows if recipe.parse(chat(row["reply"]))["choice"] != known[row["verdict_pos"]]
        ]
        self.assertEqual(wrong, [])

    def test_the_winner_changes_with_the_order_on_292_pairs(self) -> None:
        choices: dict[str, dict[str, str]] = {}
        for where, row in replies.objects_of(RECORDED):
            for reply in replies.recorded(where, row):
                if reply.sample == 0:
                    choices.setdefault(reply.item_id, {})[reply.order] = recipe.parse(chat(reply.text))["choice"]
        self.assertEqual(len(choices), 1814)
        pairs = [(found["original"], check.EXCHANGED[found["swapped"]]) for found in choices.values()]
        self.assertEqual(sum(first != second for first, second in pairs), 292)
        self.assertEqual(sum("invalid" in pair for pair in pairs), 2)


if __name__ == "__main__":
    unittest.main()
