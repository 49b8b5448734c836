"""Requests as batch lines, results as replies: formats, custom ids, limits, and every odd line of the services."""

from __future__ import annotations

import json
import math
import unittest
from typing import Any

from rooms import SHARED, room

recipe = room("recipe")
evaluations = room("evaluation")
generate = room("generate")
batch = room("batch")
client = room("client")
providers = room("providers")
rows = room("rows")

CONFIG = {
    "prompt": "Pick the better answer.",
    "tool_choice": {"type": "function", "function": {"name": "grade"}},
    "max_tokens": 300,
    "reasoning_effort": "low",
}
ITEM = {"item_id": "p1", "text": "Which is larger?", "answer_a": "Seven \u2028 halves", "answer_b": "Three"}
OPENAI = {"endpoint": "https://api.example/v1", "model": "judge-1"}
CLAUDE = {**OPENAI, "format": "anthropic"}
MANIFEST = {"slug": "s", "started_at": "2026-11-01T00:00:00.000000Z", "config_hash": {"one": "11", "two": "22"}}
CHOSEN = {"choice": "A", "reason": "larger"}
CHAT: dict[str, Any] = {
    "id": "c-1",
    "model": "judge-1",
    "choices": [
        {
            "message": {
                "content": None,
                "tool_calls": [{"function": {"name": "grade", "arguments": json.dumps(CHOSEN)}}],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 90, "completion_tokens": 9},
}


def line(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8") + b"\n"


def outcome_of(value: Any, settings: dict[str, Any] = OPENAI) -> Any:
    """What a results line becomes, given as an object or as bytes."""
    result = batch.read_result(value if isinstance(value, bytes) else line(value))
    if result.answer is None:
        return client.Outcome("failed", code=result.code, text=result.text)
    judge = client.Client(settings, None, transport=lambda *_: None, name="one")
    return judge.taken(result.answer)


def runs(n_items: int = 4, repeats: int = 2) -> Any:
    arms = [evaluations.Arm(name, OPENAI) for name in ("one", "two")]
    return generate.arm_runs(arms, CONFIG, n_items, repeats)


class CustomIds(unittest.TestCase):
    def test_every_task_has_an_id_of_its_own_that_maps_back(self) -> None:
        found, made = runs(), set()
        tags = {batch.run_tag(MANIFEST, name): name for name in found}
        for name, run in found.items():
            for index in range(len(run.state)):
                text = batch.custom_id(batch.run_tag(MANIFEST, name), run.task(index))
                made.add(text)
                self.assertEqual(batch.index_of(text, found, tags), (run, index))
        self.assertEqual(len(made), 2 * 4 * 2 * 2)

    def test_an_id_has_only_letters_that_both_services_take(self) -> None:
        task = generate.Task(0, 999_999_999, "swapped", 999_999)
        self.assertRegex(batch.custom_id(batch.run_tag(MANIFEST, "one"), task), r"^[a-zA-Z0-9_-]{1,64}$")

    def test_another_run_arm_setting_or_evaluation_has_other_ids(self) -> None:
        changed = [
            {**MANIFEST, "slug": "t"},
            {**MANIFEST, "started_at": "2026-11-01T00:00:00.000001Z"},
            {**MANIFEST, "config_hash": {"one": "12"}},
        ]
        tags = {batch.run_tag(manifest, "one") for manifest in (MANIFEST, *changed)} | {batch.run_tag(MANIFEST, "two")}
        self.assertEqual(len(tags), 5)

    def test_what_is_no_id_of_the_run_maps_to_nothing(self) -> None:
        found = runs()
        tag = batch.run_tag(MANIFEST, "one")
        for text in (
            "",
            "request-1",
            f"{tag}-r0-i0-original",
            f"{tag}-r3-i0-original",
            f"{tag}-r1-i4-original",
            f"{tag}-r1-i0-reversed",
            f"{tag}-r1-i0-original ",
            f"{tag}-r1-i0-original\n",
            f"{tag}-r1-i\u0661-original",
            f"{'0' * 12}-r1-i0-original",
        ):
            with self.subTest(text=text):
                self.assertIsNone(batch.index_of(text, found, {tag: "one"}))


class Lines(unittest.TestCase):
    def body(self, settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """(the batch line, the body that a direct request has)."""
        payload = recipe.request(ITEM, CONFIG)
        data = batch.request_line(settings, "id-1", payload, batch.url_of(settings))
        self.assertEqual(data.count(b"\n"), 1)
        return json.loads(data), json.loads(providers.build(settings, payload).body)

    def test_the_body_is_the_one_a_direct_request_has_in_every_dialect_and_with_quirks(self) -> None:
        quirks = {
            "rename": {"max_tokens": "max_completion_tokens"},
            "omit": ["reasoning_effort"],
            "extra_body": {"x": 1},
        }
        for settings, url in (
            (OPENAI, "/v1/chat/completions"),
            ({**OPENAI, **quirks}, "/v1/chat/completions"),
            ({**OPENAI, "format": "responses"}, "/v1/responses"),
        ):
            with self.subTest(settings=settings):
                got, direct = self.body(settings)
                self.assertEqual(got, {"custom_id": "id-1", "method": "POST", "url": url, "body": direct})
                self.assertEqual(list(got), ["custom_id", "method", "url", "body"])

    def test_message_batches_have_params(self) -> None:
        got, direct = self.body(CLAUDE)
        self.assertEqual(got, {"custom_id": "id-1", "params": direct})

    def test_half_a_surrogate_pair_travels_as_an_escape(self) -> None:
        payload = recipe.request({**ITEM, "answer_a": "half \ud83d pair"}, CONFIG)
        data = batch.request_line(OPENAI, "id-1", payload, "/v1/chat/completions")
        shown = json.loads(json.loads(data)["body"]["messages"][1]["content"])
        self.assertEqual((data.isascii(), shown["A"]), (True, "half \ud83d pair"))


class Parts(unittest.TestCase):
    def parts(
        self, lines: list[bytes], limit: tuple[int, int], anthropic: bool = False
    ) -> list[tuple[bytes, list[int]]]:
        cut = batch.Splitter(enumerate(lines), batch.Limit(*limit), anthropic)
        found = []
        while not cut.done:
            data = b"".join(cut.part())
            self.assertEqual(len(data), cut.size)
            found.append((data, cut.indexes))
        return found

    def test_files_are_cut_at_the_number_of_requests(self) -> None:
        found = self.parts([b"{}\n"] * 7, (3, 1000))
        self.assertEqual([indexes for _, indexes in found], [[0, 1, 2], [3, 4, 5], [6]])

    def test_files_are_cut_before_the_size_is_passed(self) -> None:
        found = self.parts([b"x" * 39 + b"\n"] * 5, (100, 80))
        self.assertEqual([len(data) for data, _ in found], [80, 80, 40])

    def test_a_message_batch_is_one_object_within_its_limits(self) -> None:
        lines = [line({"custom_id": str(number)}) for number in range(5)]
        found = self.parts(lines, (2, 1000), anthropic=True)
        ids = [[one["custom_id"] for one in json.loads(data)["requests"]] for data, _ in found]
        self.assertEqual(ids, [["0", "1"], ["2", "3"], ["4"]])
        size = len(lines[0])
        for data, _ in self.parts(lines, (100, 2 * size + 19), anthropic=True):
            self.assertLessEqual(len(data), 2 * size + 19)

    def test_a_request_larger_than_a_whole_file_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(batch.BadLine, "90 bytes; a batch file may have 80"):
            self.parts([b"x" * 90], (10, 80))

    def test_no_requests_make_no_file(self) -> None:
        self.assertEqual(self.parts([], (10, 80)), [])

    def test_the_services_limits(self) -> None:
        self.assertEqual(batch.limit_of(OPENAI), (50_000, 200_000_000))
        self.assertEqual(batch.limit_of(CLAUDE), (100_000, 256_000_000))

    def test_names_of_parts(self) -> None:
        for given, arm, number, expected in (
            ("b.jsonl", None, 1, "b.jsonl"),
            ("b.jsonl", None, 2, "b-2.jsonl"),
            ("b.jsonl", "claude", 1, "b-claude.jsonl"),
            ("b.jsonl", "claude", 3, "b-claude-3.jsonl"),
            ("a.b/batch", None, 2, "a.b/batch-2"),
            ("./batch", "x", 1, "./batch-x"),
        ):
            with self.subTest(given=given, number=number):
                self.assertEqual(batch.part_path(given, arm, number), expected)


class Exported(unittest.TestCase):
    def test_ranges_say_which_tasks_in_few_characters(self) -> None:
        for indexes, text in (([], ""), ([4], "4"), ([0, 1, 2], "0-2"), ([0, 2, 3, 9], "0,2-3,9")):
            with self.subTest(text=text):
                self.assertEqual(batch.ranges_of(indexes), text)
                self.assertEqual(list(batch.in_ranges(text)), indexes)

    def test_only_requests_without_a_reply_are_outstanding(self) -> None:
        found = runs()
        entry = {"file": "b.jsonl", "arm": "one", "exported_at": "2026-11-01", "tasks": "0-3"}
        manifest = {**MANIFEST, "batches": [entry]}
        self.assertIn("4 requests of arm one were exported to b.jsonl", batch.outstanding(manifest, found)[0])
        found["one"].state[0:3] = bytes([generate.OK, generate.INVALID, generate.FAILED])
        self.assertIn("1 requests", batch.outstanding(manifest, found)[0])
        found["one"].state[3] = generate.OK
        self.assertEqual(batch.outstanding(manifest, found), [])


class OpenAIResults(unittest.TestCase):
    def wrapped(self, status: Any, body: Any, error: Any = None) -> dict[str, Any]:
        response = {"status_code": status, "request_id": "r", "body": body}
        return {"id": "b", "custom_id": "x", "response": response, "error": error}

    def test_a_good_line_is_the_reply_itself(self) -> None:
        got = outcome_of(self.wrapped(200, CHAT))
        self.assertEqual((got.state, got.reply, got.http_status), ("reply", CHAT, 200))
        self.assertEqual((got.started_at, got.latency_ms), (None, None))

    def test_each_line_without_a_verdict_gets_a_state_and_a_reason(self) -> None:
        overflow = {
            "error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
        }
        filtered = {"error": {"message": "no", "code": "content_filter"}}
        for name, value, state, code in (
            (
                "expired",
                {"custom_id": "x", "response": None, "error": {"code": "batch_expired"}},
                "failed",
                "batch_expired",
            ),
            ("too long", self.wrapped(400, overflow), "invalid", "context_length"),
            ("filtered", self.wrapped(400, filtered), "invalid", "content_filter"),
            ("refused", self.wrapped(400, {"error": {"message": "bad", "param": "tools"}}), "failed", "http_400"),
            ("auth", self.wrapped(401, {"error": {"message": "no"}}), "failed", "auth"),
            ("credit", self.wrapped(429, {"error": {"code": "insufficient_quota"}}), "failed", "no_credit"),
            ("slow", self.wrapped(429, {"error": {"message": "later"}}), "failed", "http_429"),
            ("down", self.wrapped(503, "<html>busy</html>"), "failed", "http_503"),
            ("no body", self.wrapped(200, None), "failed", "bad_body"),
            ("empty body", self.wrapped(200, {}), "failed", "bad_body"),
            ("no choices", self.wrapped(200, {"choices": []}), "failed", "bad_body"),
            (
                "error in a 200",
                self.wrapped(200, {"error": {"code": 502, "message": "upstream"}}),
                "failed",
                "http_502",
            ),
            (
                "error as text",
                {"custom_id": "x", "response": None, "error": "unsupported url"},
                "failed",
                "batch_error",
            ),
            ("odd code", {"custom_id": "x", "error": {"code": "No Such!"}}, "failed", "batch_error"),
            ("neither", {"custom_id": "x", "response": None, "error": None}, "failed", "bad_body"),
            (
                "vllm object",
                self.wrapped(400, None, {"error": {"message": "bad tool", "code": 400}}),
                "failed",
                "http_400",
            ),
            ("vllm text", self.wrapped(404, None, "no such url"), "failed", "http_404"),
            ("odd status", self.wrapped("200", None, {"code": 429}), "failed", "http_429"),
        ):
            with self.subTest(name):
                got = outcome_of(value)
                if code == "http_404":
                    self.assertEqual(got.state, "failed")
                else:
                    self.assertEqual((got.state, got.code), (state, code), got)

    def test_a_reply_of_another_model_than_the_arm_allows_stops(self) -> None:
        got = outcome_of(self.wrapped(200, CHAT), {**OPENAI, "response_model": "judge-2.*"})
        self.assertEqual((got.state, got.code), ("stop", "wrong_model"))

    def test_a_body_given_as_text_is_read(self) -> None:
        self.assertEqual(outcome_of(self.wrapped(200, json.dumps(CHAT))).reply, CHAT)

    def test_fields_of_null_that_vllm_writes_do_no_harm(self) -> None:
        message = {**CHAT["choices"][0]["message"], "refusal": None, "audio": None, "reasoning": None}
        body = {**CHAT, "choices": [{**CHAT["choices"][0], "message": message, "token_ids": None}], "metrics": None}
        got = outcome_of(self.wrapped(200, body))
        self.assertEqual(recipe.parse(got.reply)["choice"], "A")

    def test_nan_and_doubled_keys_reach_the_parser_as_a_direct_reply_would(self) -> None:
        for text, code in (('{"choice":"A","x":NaN}', "bad_json"), ('{"choice":"A","choice":"B"}', "duplicate_key")):
            body = json.dumps(CHAT).replace(json.dumps(json.dumps(CHOSEN)), text)
            data = b'{"custom_id":"x","response":{"status_code":200,"body":' + body.encode() + b'},"error":null}\n'
            got = recipe.parse(outcome_of(data).reply)
            self.assertEqual((got["state"], got["code"]), ("invalid", code))

    def test_lines_that_are_no_results_are_named(self) -> None:
        for data, said in (
            (b'{"custom_id": "x", "resp', "not JSON"),
            (b"[1]", "expected a JSON object, got list"),
            (b'{"id": "b"}', "custom_id"),
            (b'{"custom_id": 7}', "custom_id"),
            (line({"custom_id": "x", "method": "POST", "url": "/v1", "body": {}}), "input"),
            (line({"custom_id": "x", "params": {}}), "input"),
            (b"[" * 100_000, "not JSON|nested"),
            (b'{"custom_id": "x", "custom_id": "y", "response": {}}', "stands twice"),
            (b'{"custom_id": "x", "response": {"body": {}}, "response": {"body": {"a": 1}}}', "stands twice"),
            (b'{"custom_id": "x", "response": {"status_code": 200, "status_code": 500}}', "stands twice"),
        ):
            with self.subTest(said=said):
                with self.assertRaisesRegex(batch.BadLine, said):
                    batch.read_result(data)

    def test_a_line_nested_too_deeply_is_no_result_on_any_python(self) -> None:
        for levels in (100, 900, 5000):
            deep = b'{"custom_id":"x","response":{"status_code":200,"body":' + b"[" * levels + b"]" * levels + b"}}"
            with self.subTest(levels=levels), self.assertRaisesRegex(batch.BadLine, "nested too deeply"):
                batch.read_result(deep)


class AnthropicResults(unittest.TestCase):
    MESSAGE = {
        "id": "m",
        "type": "message",
        "model": "judge-1",
        "content": [{"type": "tool_use", "name": "grade", "input": CHOSEN}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 80, "output_tokens": 20},
    }

    def test_each_type_of_result(self) -> None:
        for result, state, code in (
            ({"type": "succeeded", "message": self.MESSAGE}, "reply", None),
            (
                {"type": "errored", "error": {"type": "error", "error": {"type": "invalid_request_error"}}},
                "failed",
                "http_400",
            ),
            ({"type": "errored", "error": {"type": "overloaded_error", "message": "busy"}}, "failed", "http_529"),
            (
                {"type": "errored", "error": {"type": "error", "error": {"type": "request_too_large"}}},
                "invalid",
                "context_length",
            ),
            ({"type": "errored", "error": None}, "failed", "http_500"),
            ({"type": "canceled"}, "failed", "batch_canceled"),
            ({"type": "expired"}, "failed", "batch_expired"),
            ({"type": ["?"]}, "failed", "batch_error"),
            ({"type": "succeeded"}, "failed", "bad_body"),
        ):
            with self.subTest(result=result):
                got = outcome_of({"custom_id": "x", "result": result}, CLAUDE)
                self.assertEqual((got.state, got.code), (state, code), got)

    def test_the_verdict_and_the_usage_are_read(self) -> None:
        got = outcome_of({"custom_id": "x", "result": {"type": "succeeded", "message": self.MESSAGE}}, CLAUDE)
        self.assertEqual(recipe.parse(got.reply)["choice"], "A")
        self.assertEqual(providers.usage_of(got.reply), {"input": 80, "output": 20, "cached": None, "reasoning": None})


class Prices(unittest.TestCase):
    PRICE = {"input": 2.0, "cached": 0.5, "output": 8.0}

    def test_a_batch_reply_has_the_batch_price_and_any_other_the_full_one(self) -> None:
        arm, eval_wide = {"price_usd_per_mtok": self.PRICE}, {"batch_discount": 0.25}
        own = {**arm, "batch_price_usd_per_mtok": {"input": 0.9, "output": 4.0}}
        half = {"input": 1.0, "cached": 0.25, "output": 4.0}
        for settings, config, kept, expected in (
            (arm, eval_wide, {}, self.PRICE),
            (own, {}, {}, self.PRICE),
            (own, eval_wide, {"via": "batch"}, own["batch_price_usd_per_mtok"]),
            ({**arm, "batch_discount": 0.5}, eval_wide, {"via": "batch"}, half),
            (arm, {"batch_discount": 0.5}, {"via": "batch"}, half),
            (arm, {}, {"via": "batch"}, None),
            ({}, eval_wide, {"via": "batch"}, None),
        ):
            with self.subTest(settings=settings, config=config, kept=kept):
                self.assertEqual(rows.price_for(settings, config, kept), expected)

    def test_prices_and_discounts_that_cannot_be_are_refused(self) -> None:
        for key, value in (
            ("batch_discount", 50),
            ("batch_discount", 0),
            ("batch_discount", True),
            ("batch_price_usd_per_mtok", {"input": 1}),
            ("batch_price_usd_per_mtok", {"input": 1, "output": -1}),
            ("batch_price_usd_per_mtok", 3),
            ("price_usd_per_mtok", {"input": 1, "output": math.nan}),
        ):
            with self.subTest(key=key, value=value):
                with self.assertRaisesRegex(evaluations.SettingError, key):
                    evaluations.check_arm("one", {**OPENAI, key: value}, "eval.json")


@unittest.skipUnless((SHARED / "cases" / "captures" / "batch").is_dir(), "no ../shared/cases/captures/batch here")
class RealLines(unittest.TestCase):
    def test_every_line_that_vllm_wrote_is_read_as_a_reply_or_a_failure(self) -> None:
        folder = SHARED / "cases" / "captures" / "batch"
        states = []
        for data in (folder / "batch_out.jsonl").read_bytes().split(b"\n"):
            if data:
                states.append(outcome_of(data).state)
        self.assertIn("reply", states)
        self.assertLessEqual(set(states), {"reply", "failed", "invalid"})


if __name__ == "__main__":
    unittest.main()
