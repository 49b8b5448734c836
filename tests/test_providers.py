"""engine/providers.py: checked arms, wire bodies of three dialects, replies in one shape, and nothing made up."""

from __future__ import annotations

import copy
import json
import random
import unittest
from typing import Any

from rooms import SHARED, room

providers = room("providers")

PARAMETERS = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": ["A", "B", "equal"]}, "reason": {"type": "string"}},
    "required": ["choice", "reason"],
    "additionalProperties": False,
}
FUNCTION = {"name": "grade", "description": "Record which answer is better.", "parameters": PARAMETERS}
PAYLOAD: dict[str, Any] = {
    "messages": [{"role": "system", "content": "Compare."}, {"role": "user", "content": '{"question": "é"}'}],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "grade"}},
    "parallel_tool_calls": False,
    "max_tokens": 300,
    "reasoning_effort": "medium",
}
SCHEMA_PAYLOAD: dict[str, Any] = {
    "messages": PAYLOAD["messages"],
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "grade", "strict": True, "schema": PARAMETERS},
    },
    "max_tokens": 300,
}
ARM = {"endpoint": "https://h.example/v1", "model": "m"}


def arm(**fields: Any) -> dict[str, Any]:
    return {**ARM, **fields}


def body_of(settings: dict[str, Any], payload: dict[str, Any] = PAYLOAD) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(providers.build(settings, payload).body)
    return found


def read(value: Any, settings: dict[str, Any] = ARM) -> dict[str, Any]:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode("utf-8")
    found: dict[str, Any] = providers.read_reply(settings, raw)
    return found


def chat(message: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "[[A]]"}, "finish_reason": "stop"}
    return {"id": "c1", "model": "m", "choices": [choice], **fields}


def call(arguments: Any) -> dict[str, Any]:
    function = {"name": "grade", "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "t", "type": "function", "function": function}]}


class Addresses(unittest.TestCase):
    def test_q13_the_base_is_taken_literally_and_the_path_added_once(self) -> None:
        for base, url in (
            ("https://h.example/v1", "https://h.example/v1/chat/completions"),
            ("https://h.example/v1/", "https://h.example/v1/chat/completions"),
            ("https://h.example/api/v1//", "https://h.example/api/v1/chat/completions"),
            ("https://h.example/v1/chat/completions", "https://h.example/v1/chat/completions"),
            ("https://h.example/v1/chat/completions/", "https://h.example/v1/chat/completions"),
            ("https://h.example/v1beta/openai/", "https://h.example/v1beta/openai/chat/completions"),
            ("https://h.example", "https://h.example/chat/completions"),
            (
                "https://h.example/openai/deployments/d1?api-version=2024-10-21",
                "https://h.example/openai/deployments/d1/chat/completions?api-version=2024-10-21",
            ),
            ("https://h.example/v1/?a=1&b=2", "https://h.example/v1/chat/completions?a=1&b=2"),
        ):
            with self.subTest(base):
                self.assertEqual(providers.endpoint_url(arm(endpoint=base)), url)

    def test_the_other_dialects_have_their_own_paths(self) -> None:
        for base, dialect, url in (
            ("https://api.anthropic.com", "anthropic", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", "anthropic", "https://api.anthropic.com/v1/messages"),
            ("https://h.example/v1/messages", "anthropic", "https://h.example/v1/messages"),
            ("https://h.example/anthropic", "anthropic", "https://h.example/anthropic/v1/messages"),
            ("https://api.openai.com/v1", "responses", "https://api.openai.com/v1/responses"),
            ("https://api.openai.com/v1/responses", "responses", "https://api.openai.com/v1/responses"),
        ):
            with self.subTest(base):
                self.assertEqual(providers.endpoint_url(arm(endpoint=base, format=dialect)), url)

    def test_query_fields_of_the_arm_are_added(self) -> None:
        settings = arm(endpoint="https://h.example/v1?x=1", query={"api-version": "2024 10"})
        self.assertEqual(
            providers.endpoint_url(settings), "https://h.example/v1/chat/completions?x=1&api-version=2024+10"
        )


class Arms(unittest.TestCase):
    def test_good_arms_have_no_problems(self) -> None:
        for settings in (
            ARM,
            arm(endpoint="HTTPS://H.example/v1"),
            arm(endpoint="http://127.0.0.1:8080/v1"),
            arm(endpoint="http://localhost:8080/v1"),
            arm(endpoint="http://[::1]:8080/v1"),
            arm(omit=["parallel_tool_calls"], rename={"max_tokens": "max_completion_tokens"}, rpm=18, tpm=1e6),
            arm(extra_body={"provider": {"order": ["azure"], "allow_fallbacks": False}}, provider="Azure"),
            arm(format="anthropic", key_header="x-api-key", headers={"anthropic-beta": "x-1"}),
            arm(response_model=r"m-\d+", output_mode="json_schema", strict=True, key_env="A_KEY", query={"a": "1"}),
            {"control": "longer"},
        ):
            with self.subTest(settings):
                self.assertEqual(providers.arm_problems("x", settings), [])

    def test_each_mistake_is_named(self) -> None:
        for settings, word in (
            ({"model": "m"}, "'endpoint' is missing"),
            ({"endpoint": "https://h.example"}, "'model' is missing"),
            (arm(endpoint="h.example/v1"), "must start with http:// or https://"),
            (arm(endpoint="ftp://h.example"), "must start with http:// or https://"),
            (arm(endpoint="https://"), "expected a host"),
            (arm(endpoint="https://h.example:99999/v1"), "not an address"),
            (arm(endpoint="https://h.example/v 1"), "blanks"),
            (arm(endpoint="https://h.exämple/v1"), "non-ASCII"),
            (arm(endpoint="https://h.example/v1\nX: 1"), "blanks"),
            (arm(endpoint="https://user:pw@h.example/v1"), "key_env"),
            (arm(endpoint="https://h.example/v1#x"), "#"),
            (arm(endpoint="https://h.example/v1?key=AIzaXYZ"), "key_env"),
            (arm(endpoint="http://h.example/v1"), "plain http"),
            (arm(endpoint="http://10.0.0.7:8000/v1"), "plain http"),
            (arm(endpoint="http://127.0.0.1.evil.example/v1"), "plain http"),
            (arm(endpoint="http://0.0.0.0:8000/v1"), "127.0.0.1"),
            (arm(model=""), "'model'"),
            (arm(model=7), "'model'"),
            (arm(format="gemini"), "openai, anthropic, responses"),
            (arm(key_header="cookie"), "'key_header'"),
            (arm(key_env="sk-ant-secret"), "'key_env'"),
            (arm(output_mode="yaml"), "'output_mode'"),
            (arm(format="anthropic", output_mode="json_object"), "json_object"),
            (arm(strict="yes"), "'strict'"),
            (arm(timeout_s="5"), "'timeout_s'"),
            (arm(rpm=0), "'rpm'"),
            (arm(rpm=float("nan")), "'rpm'"),
            (arm(rpm=True), "'rpm'"),
            (arm(response_model="("), "regular expression"),
            (arm(omit="seed"), "'omit'"),
            (arm(omit=["messages"]), "'omit'"),
            (arm(omit=["max_token"]), "'omit'"),
            (arm(rename={"max_tokens": "model"}), "'rename'"),
            (arm(rename={"max_tokens": 3}), "'rename'"),
            (arm(rename={"max_tokens": "x", "seed": "x"}), "'rename'"),
            (arm(extra_body={"messages": []}), "'messages'"),
            (arm(extra_body={"stream": True}), "'stream'"),
            (arm(extra_body={"temperature": 0}), "'temperature'"),
            (arm(extra_body=[]), "'extra_body'"),
            (arm(extra_body={"provider": [{"api-Key": "x"}]}), "key_env"),
            (arm(extra_body={"Authorization": "x"}), "key_env"),
            (arm(query={"sig": "x"}), "key_env"),
            (arm(endpoint="https://h.example/v1?code=x"), "key_env"),
            (arm(endpoint="http://127.0.0.1%2eevil.example/v1"), "plain http"),
            (arm(endpoint="http://127.0.0.1%25x/v1"), "plain http"),
            (arm(headers={"X-Goog-Api-Key": "x"}), "key_env"),
            (arm(query={"a": 1}), "'query'"),
            (arm(query={"api_key": "x"}), "key_env"),
            (arm(headers={"Authorization": "Bearer x"}), "key_env"),
            (arm(headers={"Bad Name": "x"}), "header name"),
            (arm(headers={"X-A": "a\r\nB: c"}), "latin-1"),
            (arm(headers={"X-A": "\u201cx\u201d"}), "latin-1"),
            (arm(ommit=["seed"]), "'ommit'"),
            ({"control": "longer", "bogus": 1}, "'bogus'"),
            ("x", "expected an object"),
        ):
            with self.subTest(settings):
                found = providers.arm_problems("x", settings)
                self.assertTrue(any(word in line for line in found), found)
                self.assertTrue(all(line.startswith("arm 'x': ") for line in found))

    def test_values_that_may_be_secrets_are_not_shown(self) -> None:
        for settings in (
            arm(key_env="sk-secret"),
            arm(headers={"Authorization": "sk-secret"}),
            arm(headers={"X-A": "sk-secret\n"}),
            arm(endpoint="https://u:sk-secret@h.example/v1"),
            arm(endpoint="https://h.example/v1?api_key=sk-secret"),
            arm(endpoint=["https://u:sk-secret@h.example/v1"]),
            arm(headers="Authorization: sk-secret"),
            arm(extra_body="sk-secret"),
            arm(query={"a": ["sk-secret"]}),
            *(arm(endpoint=address) for address in self.ADDRESSES),
        ):
            with self.subTest(settings):
                found = " ".join(providers.arm_problems("x", settings))
                self.assertNotEqual("", found)
                self.assertNotIn("sk-secret", found)

    ADDRESSES = (
        "http://user:sk-secret@h.example:99999/v1",
        "ftp://user:sk-secret@h.example/v1",
        "https://user:sk-secret@h e/v1",
        "https://h.example:sk-secret/v1",
        "https://h.example/v1?x=sk-secret&a b",
        "https://user:a/sk-secret@h e/v1",
        "https://user:a?sk-secret@h.example/v1",
        "https://user:sk-secret@[::1",
        "https:// user:sk-secret@h.example",
        "http://h.example/v1?x=sk-secret",
        "http://h.example/v1#sk-secret",
        "http:/user:sk-secret@h.example/v1",
        "user:sk-secret@h.example/v1",
        "sk-secret",
        "https://h.ex\u00e4mple/v1?x=sk-secret",
    )

    def test_of_an_address_that_is_refused_the_harmless_part_is_shown(self) -> None:
        for endpoint, shown in (
            ("http://user:sk-secret@h.example:8000/v1?a=b", ""),
            ("ftp://user:pw@h.example/v1", "endpoint 'ftp://h.example/v1': "),
            ("http://h.example:80/v1?x=y", "endpoint 'http://h.example:80/v1': "),
            ("https://h.example:99999", "endpoint 'https://h.example:99999': "),
            ("h.example/v1", "endpoint: "),
        ):
            with self.subTest(endpoint):
                self.assertIn(shown, providers.arm_problems("x", arm(endpoint=endpoint))[0])


class ChatBodies(unittest.TestCase):
    def test_the_body_is_the_payload_in_its_order_with_the_model_last(self) -> None:
        wire = providers.build(ARM, PAYLOAD)
        expected = json.dumps({**PAYLOAD, "model": "m"}, indent=2, ensure_ascii=False) + "\n"
        self.assertEqual(wire.body.decode("utf-8"), expected)
        self.assertEqual(wire.headers["Content-Type"], "application/json")
        self.assertNotIn("authorization", map(str.lower, wire.headers))

    def test_any_payload_is_written_as_the_json_library_writes_it(self) -> None:
        rng = random.Random(3)
        for _ in range(200):
            payload = {**PAYLOAD, "messages": [{"role": "user", "content": odd_text(rng)}], "x": odd_value(rng, 4)}
            expected = json.dumps({**payload, "model": "m"}, indent=2, ensure_ascii=False) + "\n"
            self.assertEqual(providers.build(ARM, payload).body.decode("utf-8"), expected)

    def test_half_a_surrogate_pair_makes_the_body_ascii(self) -> None:
        payload = {**PAYLOAD, "messages": [{"role": "user", "content": "é \ud83d"}]}
        body = providers.build(ARM, payload).body
        self.assertTrue(body.isascii())
        self.assertEqual(json.loads(body)["messages"][0]["content"], "é \ud83d")

    def test_quirks_change_what_the_arm_says_and_nothing_else(self) -> None:
        changed = body_of(
            arm(
                omit=["parallel_tool_calls", "reasoning_effort"],
                rename={"max_tokens": "max_completion_tokens"},
                extra_body={"provider": {"order": ["azure"]}},
            )
        )
        names = ["messages", "tools", "tool_choice", "max_completion_tokens", "provider", "model"]
        self.assertEqual(list(changed), names)
        self.assertEqual(changed["max_completion_tokens"], 300)

    def test_the_payload_and_the_arm_are_left_alone(self) -> None:
        before, settings = copy.deepcopy(PAYLOAD), arm(omit=["max_tokens"], extra_body={"a": 1})
        providers.build(settings, PAYLOAD)
        self.assertEqual((PAYLOAD, settings["extra_body"]), (before, {"a": 1}))

    def test_a_field_that_the_dialect_does_not_have_is_named_and_never_dropped_silently(self) -> None:
        seeded = {**PAYLOAD, "seed": 7}
        self.assertIsNone(providers.build_problem(ARM, seeded))
        for dialect in ("anthropic", "responses"):
            self.assertIn("'seed'", providers.build_problem(arm(format=dialect), seeded))
            self.assertIsNone(providers.build_problem(arm(format=dialect, omit=["seed"]), seeded))
        plain = {**SCHEMA_PAYLOAD, "response_format": {"type": "json_object"}}
        self.assertIn("json_object", providers.build_problem(arm(format="anthropic"), plain))
        self.assertIsNone(providers.build_problem(arm(format="responses"), plain))

    def test_the_key_travels_in_the_header_of_the_dialect(self) -> None:
        for settings, header in (
            (ARM, {"authorization": "Bearer K"}),
            (arm(format="responses"), {"authorization": "Bearer K"}),
            (arm(format="anthropic"), {"x-api-key": "K"}),
            (arm(key_header="api-key"), {"api-key": "K"}),
            (arm(format="anthropic", key_header="authorization"), {"authorization": "Bearer K"}),
        ):
            self.assertEqual(providers.key_header(settings, "K"), header)
            self.assertEqual(providers.key_header(settings, None), {})

    def test_static_headers_are_sent(self) -> None:
        headers = providers.build(arm(format="anthropic", headers={"anthropic-beta": "b"}), PAYLOAD).headers
        self.assertEqual((headers["anthropic-beta"], headers["anthropic-version"]), ("b", "2023-06-01"))


class AnthropicBodies(unittest.TestCase):
    settings = arm(format="anthropic")

    def test_a_forced_tool(self) -> None:
        self.assertEqual(
            body_of(self.settings),
            {
                "system": "Compare.",
                "messages": [{"role": "user", "content": '{"question": "é"}'}],
                "tools": [{"name": "grade", "description": FUNCTION["description"], "input_schema": PARAMETERS}],
                "tool_choice": {"type": "tool", "name": "grade", "disable_parallel_tool_use": True},
                "max_tokens": 300,
                "output_config": {"effort": "medium"},
                "model": "m",
            },
        )

    def test_required_strict_schema_and_omitted_fields(self) -> None:
        strict = {**PAYLOAD, "tools": [{"type": "function", "function": {**FUNCTION, "strict": True}}]}
        body = body_of(arm(format="anthropic", omit=["reasoning_effort"]), {**strict, "tool_choice": "required"})
        self.assertEqual(body["tool_choice"], {"type": "any", "disable_parallel_tool_use": True})
        self.assertTrue(body["tools"][0]["strict"])
        self.assertNotIn("output_config", body)
        schema = body_of(self.settings, SCHEMA_PAYLOAD)
        self.assertEqual(schema["output_config"], {"format": {"type": "json_schema", "schema": PARAMETERS}})
        self.assertNotIn("tools", schema)


class ResponsesBodies(unittest.TestCase):
    settings = arm(format="responses")

    def test_a_forced_tool_together_with_reasoning(self) -> None:
        self.assertEqual(
            body_of(self.settings),
            {
                "instructions": "Compare.",
                "input": [{"role": "user", "content": '{"question": "é"}'}],
                "tools": [{"type": "function", **FUNCTION, "strict": False}],
                "tool_choice": {"type": "function", "name": "grade"},
                "parallel_tool_calls": False,
                "max_output_tokens": 300,
                "reasoning": {"effort": "medium"},
                "store": False,
                "model": "m",
            },
        )

    def test_schema_object_and_required(self) -> None:
        schema = body_of(self.settings, SCHEMA_PAYLOAD)["text"]["format"]
        self.assertEqual(schema, {"type": "json_schema", "name": "grade", "strict": True, "schema": PARAMETERS})
        plain = {**SCHEMA_PAYLOAD, "response_format": {"type": "json_object"}}
        self.assertEqual(body_of(self.settings, plain)["text"], {"format": {"type": "json_object"}})
        self.assertEqual(body_of(self.settings, {**PAYLOAD, "tool_choice": "required"})["tool_choice"], "required")


class ChatReplies(unittest.TestCase):
    def test_a_reply_is_handed_on_as_received(self) -> None:
        value = chat(call('{"choice": "A"}'), usage={"prompt_tokens": 3}, system_fingerprint="f", extra={"a": [1]})
        self.assertEqual(read(value), value)

    def test_r04_an_arguments_object_stays_one(self) -> None:
        reply = read(chat(call({"choice": "B", "reason": "x"})))
        arguments = reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        self.assertEqual(arguments, {"choice": "B", "reason": "x"})

    def test_arguments_that_json_cannot_hold_become_their_text(self) -> None:
        for written in (
            '{"choice": "A", "n": NaN}',
            '{"choice": "A", "n": [-Infinity]}',
            '{"choice": "A", "choice": "B"}',
        ):
            raw = json.dumps(chat(call("HERE"))).replace('"HERE"', written).encode()
            reply = read(raw)
            self.assertEqual(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], written)
            json.dumps(reply, allow_nan=False)

    def test_numbers_that_are_none_become_null_elsewhere(self) -> None:
        raw = json.dumps(chat(usage={"prompt_tokens": 5, "x": "HERE"}, t=["HERE"])).replace('"HERE"', "NaN").encode()
        reply = read(raw)
        self.assertEqual((reply["usage"], reply["t"]), ({"prompt_tokens": 5, "x": None}, [None]))

    def test_the_word_nan_in_a_text_changes_nothing(self) -> None:
        value = chat({"content": "NaN and Infinity and 1e999: [[A]]", "tool_calls": [{"id": "NaN"}]})
        self.assertEqual(read(value), {**value, "usage": None})

    def test_a_verdict_given_twice_with_different_values_is_no_reply(self) -> None:
        function = '{"name": "grade", "arguments": "{}", "arguments": "[]"}'
        for raw in (
            '{"choices": [{"message": {"content": "[[A]]", "content": "[[B]]"}, "finish_reason": "stop"}]}',
            '{"choices": [{"message": {"content": "[[A]]"}, "message": {"content": "[[B]]"}}]}',
            '{"choices": [{"message": {"content": "[[A]]"}}], "choices": [{"message": {"content": "[[B]]"}}]}',
            '{"choices": [{"message": {"tool_calls": [{"function": FUNCTION}]}}]}'.replace("FUNCTION", function),
        ):
            with self.subTest(raw), self.assertRaises(providers.BadReply) as caught:
                read(raw.encode())
            self.assertEqual(caught.exception.kind, "bad_body")

    def test_a_deep_value_under_a_key_given_twice_is_counted_like_any_other(self) -> None:
        for levels in (70, 400, 900):
            deep = "[" * levels + "]" * levels
            arguments = '{"choice": "A", "more": ' + deep + ', "more": 1}'
            call = '{"function": {"name": "grade", "arguments": ' + arguments + "}}"
            body = '{"choices": [{"message": {"tool_calls": [' + call + "]}}]}"
            with self.subTest(levels=levels), self.assertRaises(providers.BadReply) as caught:
                providers.read_reply({"endpoint": "http://127.0.0.1/v1", "model": "m"}, body.encode())
            self.assertEqual(caught.exception.kind, "bad_body")

    def test_a_key_given_twice_with_the_same_value_or_elsewhere_is_no_matter(self) -> None:
        raw = (
            '{"id": "a", "id": "b", "choices": [{"message": {"content": "x", "content": "x"}, "index": 0, "index": 1}]}'
        )
        self.assertEqual(read(raw.encode())["choices"][0]["message"]["content"], "x")

    def test_every_choice_is_kept(self) -> None:
        value = chat()
        value["choices"].append({"index": 1, "message": {"content": "[[B]]"}})
        self.assertEqual(len(read(value)["choices"]), 2)


class AnthropicReplies(unittest.TestCase):
    settings = arm(format="anthropic")

    def reply(self, *blocks: Any, **fields: Any) -> dict[str, Any]:
        value = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": list(blocks)}
        return read({**value, "stop_reason": "end_turn", **fields}, self.settings)

    def test_a_tool_call_with_thinking_and_usage(self) -> None:
        reply = self.reply(
            {"type": "thinking", "thinking": "hm"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "So: "},
            {"type": "tool_use", "id": "t1", "name": "grade", "input": {"choice": "A", "reason": "r"}},
            stop_reason="tool_use",
            usage={
                "input_tokens": 5,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 5,
                "output_tokens": 7,
            },
        )
        message = reply["choices"][0]["message"]
        self.assertEqual(
            message["tool_calls"],
            [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "grade", "arguments": {"choice": "A", "reason": "r"}},
                }
            ],
        )
        self.assertEqual((message["content"], message["reasoning_content"]), ("So: ", "hm"))
        self.assertEqual(reply["choices"][0]["finish_reason"], "tool_calls")
        self.assertEqual(providers.usage_of(reply), {"input": 100, "output": 7, "cached": 90, "reasoning": None})

    def test_stop_reasons(self) -> None:
        text = {"type": "text", "text": "x"}
        for reason, finish in (
            ("end_turn", "stop"), ("stop_sequence", "stop"), ("tool_use", "tool_calls"), ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"), ("pause_turn", "pause_turn"), (None, None), (7, None),
        ):  # fmt: skip
            self.assertEqual(self.reply(text, stop_reason=reason)["choices"][0]["finish_reason"], finish)

    def test_a_refusal_is_one_even_without_words(self) -> None:
        for blocks, refusal in (([], "refusal"), ([{"type": "text", "text": "I can't."}], "I can't.")):
            reply = self.reply(*blocks, stop_reason="refusal")
            self.assertEqual(reply["choices"][0]["message"]["refusal"], refusal)
        self.assertIsNone(self.reply({"type": "text", "text": "x"})["choices"][0]["message"]["refusal"])

    def test_what_is_not_said_stays_unknown(self) -> None:
        reply = self.reply()
        message = reply["choices"][0]["message"]
        self.assertEqual((reply["usage"], message["content"], message["tool_calls"]), (None, None, None))
        partial = self.reply(usage={"input_tokens": None, "output_tokens": "7", "cache_read_input_tokens": 3})
        self.assertEqual(providers.usage_of(partial), {"input": None, "output": None, "cached": 3, "reasoning": None})

    def test_odd_blocks_are_passed_over_and_odd_input_kept(self) -> None:
        call = {"type": "tool_use", "name": "grade"}
        inputs: list[Any] = ['{"choice": "A"}', None, [], {"n": 1}]
        for given in inputs:
            reply = self.reply(None, "x", 3, {}, {"type": "text", "text": 5}, {**call, "input": given})
            function = reply["choices"][0]["message"]["tool_calls"][0]["function"]
            self.assertEqual(function, {"name": "grade", "arguments": given})
        self.assertNotIn("arguments", self.reply(call)["choices"][0]["message"]["tool_calls"][0]["function"])

    def test_other_shapes_are_no_reply(self) -> None:
        for value in ({"type": "message"}, {"content": "text"}, chat(), {"type": "error", "error": {"type": "x"}}):
            with self.subTest(value), self.assertRaises(providers.BadReply):
                read(value, self.settings)


class ResponsesReplies(unittest.TestCase):
    settings = arm(format="responses")

    def reply(self, *items: Any, **fields: Any) -> dict[str, Any]:
        value = {"id": "resp_1", "object": "response", "model": "gpt", "status": "completed", "error": None}
        return read({**value, "output": list(items), **fields}, self.settings)

    def test_a_function_call_with_reasoning_and_usage(self) -> None:
        reply = self.reply(
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "weighing"}]},
            {"type": "function_call", "call_id": "c1", "name": "grade", "arguments": '{"choice": "A"}'},
            usage={
                "input_tokens": 50,
                "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 9,
                "output_tokens_details": {"reasoning_tokens": 4},
                "total_tokens": 59,
            },
        )
        message = reply["choices"][0]["message"]
        function = {"name": "grade", "arguments": '{"choice": "A"}'}
        self.assertEqual(message["tool_calls"], [{"id": "c1", "type": "function", "function": function}])
        self.assertEqual((message["content"], message["reasoning_content"]), (None, "weighing"))
        self.assertEqual(reply["choices"][0]["finish_reason"], "tool_calls")
        self.assertEqual(providers.usage_of(reply), {"input": 50, "output": 9, "cached": 40, "reasoning": 4})

    def test_text_and_refusal(self) -> None:
        parts = [{"type": "output_text", "text": "[[A"}, {"type": "output_text", "text": "]]"}]
        message = self.reply({"type": "message", "content": parts})["choices"][0]["message"]
        self.assertEqual((message["content"], message["refusal"]), ("[[A]]", None))
        refused = self.reply({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]})
        self.assertEqual(refused["choices"][0]["message"]["refusal"], "No.")

    def test_how_it_ended(self) -> None:
        for fields, finish in (
            ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
            ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
            ({"status": "incomplete", "incomplete_details": None}, "length"),
            ({"status": "completed"}, "stop"),
            ({"status": "cancelled"}, "cancelled"),
            ({"status": None}, None),
        ):
            self.assertEqual(self.reply(**fields)["choices"][0]["finish_reason"], finish)

    def test_other_shapes_are_no_reply(self) -> None:
        others: list[dict[str, Any]] = [
            {"object": "response", "status": "queued", "output": []},
            {"object": "response", "status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []},
            {"object": "response", "status": "failed", "error": None, "output": []},
            {"output": None},
            chat(),
        ]
        for value in others:
            with self.subTest(value), self.assertRaises(providers.BadReply):
                read(value, self.settings)


class Usage(unittest.TestCase):
    def test_r32_unknown_counts_stay_unknown(self) -> None:
        for usage, expected in (
            (None, None),
            ([], None),
            ({}, (None, None, None, None)),
            (
                {"prompt_tokens": 10, "completion_tokens": None, "completion_tokens_details": None},
                (10, None, None, None),
            ),
            ({"prompt_tokens": "10", "completion_tokens": True}, (None, None, None, None)),
            ({"prompt_tokens": -1, "completion_tokens": 10**30}, (None, None, None, None)),
            ({"prompt_tokens": 10.0, "completion_tokens": 2.5}, (10, None, None, None)),
            ({"prompt_tokens": 0, "completion_tokens": 0}, (0, 0, None, None)),
            ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, (5, None, None, None)),
            ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 9}}, (9, None, 9, None)),
            ({"completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 8}}, (None, 3, None, 8)),
        ):
            with self.subTest(usage):
                found = providers.usage_of(read(chat(usage=usage)))
                self.assertEqual(tuple(found.values()) if found else found, expected)

    def test_usage_of_anything_is_none_or_counts(self) -> None:
        replies: list[Any] = [{}, {"usage": 3}, {"usage": {"prompt_tokens_details": []}}, []]
        for reply in replies:
            found = providers.usage_of(reply)
            self.assertTrue(found is None or set(found.values()) == {None})


class NoReplies(unittest.TestCase):
    def test_each_kind_is_told_apart(self) -> None:
        for raw, kind in (
            (b"data: {}\n\n", "event_stream"),
            (b"event: ping\n\n", "event_stream"),
            (b": x\n\ndata: {}\n", "event_stream"),
            (b"<html>", "html"),
            (b"\xef\xbb\xbf <!DOCTYPE html>", "html"),
            (b"", "bad_body"),
            (b"{", "bad_body"),
            (b'{"choices": [}', "bad_body"),
            (b'"' + b"x" * 10**6, "bad_body"),
            (b"[" * 10**6, "bad_body"),
            (b'{"error": {"code": 503}}', "error"),
            (b'[{"error": {"code": 503}}]', "error"),
            (b'{"object": "error", "message": "m", "code": 40401}', "error"),
        ):
            with self.subTest(raw[:40]), self.assertRaises(providers.BadReply) as caught:
                read(raw)
            self.assertEqual(caught.exception.kind, kind)
            self.assertLess(len(caught.exception.text), 500)

    def test_the_number_inside_an_error_is_a_status_or_nothing(self) -> None:
        for code, status in (
            (502, 502),
            ("429", 429),
            ("x", None),
            (200, None),
            (1502, None),
            (True, None),
            (None, None),
        ):
            with self.assertRaises(providers.BadReply) as caught:
                read({"error": {"code": code}})
            self.assertEqual(caught.exception.status, status)


class Served(unittest.TestCase):
    def test_only_a_name_that_is_given_can_contradict_the_arm(self) -> None:
        rule = arm(response_model=r"gpt-6(-\d{4})?", provider="Azure")
        for reply, fine in (
            ({"model": "gpt-6"}, True),
            ({"model": "gpt-6-2026", "provider": "azure"}, True),
            ({}, True),
            ({"model": "xgpt-6"}, False),
            ({"model": "gpt-6-mini"}, False),
            ({"model": "gpt-6", "provider": "OpenAI"}, False),
        ):
            self.assertEqual(providers.served_problem(rule, reply) is None, fine, reply)


class RealServers(unittest.TestCase):
    """Bodies that real servers sent, where the recordings lie beside the checkout."""

    def test_every_recorded_body_is_read_or_refused_without_an_exception_of_another_kind(self) -> None:
        folder = SHARED / "cases" / "captures"
        if not folder.is_dir():
            self.skipTest("no recordings beside this checkout")
        seen = {"reply": 0, "refused": 0}
        for path in sorted(folder.glob("*.json")):
            record = json.loads(path.read_bytes())
            response, url = record["response"], record["request"]["url"]
            value = response["body_json"]
            raw = json.dumps(value).encode() if value is not None else (response["body_text"] or "").encode()
            dialect = {"messages": "anthropic", "responses": "responses"}.get(url.rsplit("/", 1)[1], "openai")
            try:
                reply = read(raw, arm(format=dialect))
                seen["reply"] += 1
                self.assertEqual(response["status"], 200, path.name)
                self.assertTrue(reply["choices"][0]["message"], path.name)
                self.assertIsNotNone(providers.usage_of(reply)["input"], path.name)
            except providers.BadReply:
                seen["refused"] += 1
        self.assertGreater(seen["reply"], 150)
        self.assertGreater(seen["refused"], 50)


def odd_text(rng: random.Random) -> str:
    return "".join(rng.choice('aé"\\\n\t/\u2028\U0001f600\x00{}[],: ') for _ in range(rng.randrange(30)))


def odd_value(rng: random.Random, depth: int) -> Any:
    """A random JSON value."""
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return [odd_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {odd_text(rng): odd_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return [None, True, -7, 2.5, odd_text(rng), ""][kind]


if __name__ == "__main__":
    unittest.main()
