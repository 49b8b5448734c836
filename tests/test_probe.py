"""--probe: an output mode counts as honoured only when the server enforces it against the words of the prompt."""

from __future__ import annotations

import contextlib
import io
import json
import unittest
from typing import Any

import fault_server
from fault_server import FaultServer, Json, Request
from rooms import ROOT, options_of, room

run_eval, modes, probe, client = room("run_eval"), room("modes"), room("probe"), room("client")
for needed in ("recipe", "check"):
    room(needed)
CONFIG, INPUTS = run_eval.verified(str(ROOT))
VERDICT = {"choice": "A", "reason": "an even number"}
GREETING = "Good morning, reader."
FORM = "response_format"


def is_contrary(body: dict[str, Any]) -> bool:
    return "Greet the reader" in json.dumps(body["messages"])


def chat(content: str | None = None, arguments: str | None = None, finish: str = "stop") -> Json:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if arguments is not None:
        message["tool_calls"] = [{"type": "function", "function": {"name": "grade", "arguments": arguments}}]
    return Json({"choices": [{"message": message, "finish_reason": finish}], "model": "m"})


def refusal(param: str, text: str = "not supported", status: int = 400) -> Json:
    return Json({"error": {"message": text, "param": param, "code": "unsupported_parameter"}}, status)


def obedient(body: dict[str, Any]) -> Json:
    """A judge that follows the words alone: what a server does that ignores every output field."""
    if is_contrary(body):
        return chat(GREETING)
    if body.get("tools"):
        return chat(arguments=json.dumps(VERDICT))
    if body.get(FORM):
        return chat(json.dumps(VERDICT))
    return chat("A is even.\n[[A]]")


def talker(body: dict[str, Any]) -> Json:
    return chat(GREETING)


def forcing(body: dict[str, Any]) -> Json:
    """A server that enforces tools and schemas, whatever the words say."""
    if body.get("tools"):
        return chat(arguments=json.dumps(VERDICT))
    if (body.get(FORM) or {}).get("type") == "json_schema":
        return chat(json.dumps(VERDICT))
    return obedient(body)


def loose(body: dict[str, Any]) -> Json:
    """Forces the tool, but follows its schema only where the tool is strict."""
    if body.get("tools"):
        strict = body["tools"][0]["function"].get("strict")
        return chat(arguments=json.dumps(VERDICT) if strict else "[1]")
    return talker(body)


def object_refusing(body: dict[str, Any]) -> Json:
    """Refuses a tool_choice that is an object, and json_object."""
    if isinstance(body.get("tool_choice"), dict):
        return Json({"error": "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}, 400)
    if (body.get(FORM) or {}).get("type") == "json_object":
        return refusal(FORM)
    return forcing(body)


def picky(body: dict[str, Any]) -> Json:
    """Refuses two fields by name, one after the other, as reasoning models do."""
    if "max_tokens" in body:
        return refusal("max_tokens", "use max_completion_tokens")
    return refusal("reasoning_effort") if "reasoning_effort" in body else forcing(body)


def locked(body: dict[str, Any]) -> Json:
    return Json({"error": {"message": "no such key"}}, 401)


class Probing(unittest.TestCase):
    def run_probe(self, answer: Any, *more: str, expect: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """(what --probe --format json says of the arm, the requests that were sent)."""
        asked: list[dict[str, Any]] = []

        def behave(request: Request) -> Any:
            asked.append(request.json())
            return answer(asked[-1])

        with FaultServer(behave) as server:
            given = ["--probe", "--arms", "custom", "--base-url", server.base, "--model", "m", "--format", "json"]
            options = options_of(*given, *more)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = modes.main(options, str(ROOT), CONFIG, INPUTS)
        self.assertEqual(code, expect, out.getvalue())
        found: dict[str, Any] = json.loads(out.getvalue())["custom"]
        return found, asked

    def states(self, found: dict[str, Any]) -> dict[str, str]:
        return {one["mode"] + ("+strict" if one["strict"] else ""): one["state"] for one in found["modes"]}

    def test_a_server_that_ignores_every_field_is_not_taken_for_one_that_forces(self) -> None:
        found, _ = self.run_probe(obedient)
        self.assertEqual(set(self.states(found).values()), {"works"})
        self.assertEqual(found["entry"]["output_mode"], "tool")

    def test_one_request_is_enough_where_a_mode_is_forced(self) -> None:
        found, asked = self.run_probe(forcing)
        expected = {"tool": "forced", "required": "forced", "json_schema": "forced", "json_object": "works"}
        self.assertEqual(self.states(found), {**expected, "text": "works"})
        self.assertEqual([one["requests"] for one in found["modes"]], [1, 1, 1, 2, 1])
        self.assertEqual(len(asked), 6)

    def test_a_judge_that_only_talks_has_no_mode(self) -> None:
        found, _ = self.run_probe(talker, expect=1)
        self.assertEqual((set(self.states(found).values()), found["entry"]), ({"ignored"}, None))
        self.assertIn("no_tool_call: 'Good morning, reader.'", found["modes"][0]["text"])

    def test_calls_that_do_not_follow_the_schema_are_tried_again_with_strict(self) -> None:
        found, _ = self.run_probe(loose)
        self.assertEqual(self.states(found)["tool"], "ignored")
        self.assertEqual(self.states(found)["tool+strict"], "forced")
        self.assertEqual((found["entry"]["output_mode"], found["entry"]["strict"]), ("tool", True))

    def test_a_mode_that_is_refused_says_why_and_the_others_are_still_tried(self) -> None:
        found, _ = self.run_probe(object_refusing)
        expected = {"tool": "refused", "required": "forced", "json_schema": "forced", "json_object": "refused"}
        self.assertEqual(self.states(found), {**expected, "text": "works"})
        self.assertIn("Supported string values", found["modes"][0]["text"])
        self.assertEqual(found["entry"]["output_mode"], "required")

    def test_refused_fields_become_quirks_of_the_entry_once(self) -> None:
        found, asked = self.run_probe(picky)
        entry = found["entry"]
        self.assertEqual(entry["rename"], {"max_tokens": "max_completion_tokens"})
        self.assertEqual(entry["omit"], ["reasoning_effort"])
        self.assertEqual([one["requests"] for one in found["modes"]], [3, 1, 1, 2, 1])
        self.assertEqual(len([body for body in asked if "max_tokens" in body]), 1)

    def test_a_wrong_key_costs_one_request(self) -> None:
        found, asked = self.run_probe(locked, expect=3)
        self.assertEqual((self.states(found), len(asked)), ({"tool": "unreachable"}, 1))
        self.assertIn("key_env", found["modes"][0]["text"])

    def test_the_other_dialects_are_probed_in_their_own_words(self) -> None:
        for form, count in (("anthropic", 4), ("responses", 5)):
            with self.subTest(form):
                whole = fault_server.judge(lambda prompt: "A")
                sent: list[Request] = []

                def behave(request: Request, whole: Any = whole, sent: list[Request] = sent) -> Any:
                    sent.append(request)
                    return whole(request)

                with FaultServer(behave) as server:
                    given = ["--probe", "--arms", "custom", "--base-url", server.base, "--model", "m"]
                    options = options_of(*given, "--api-format", form)
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out):
                        self.assertEqual(modes.main(options, str(ROOT), CONFIG, INPUTS), 0)
                self.assertEqual(len(sent), count)
                self.assertIn("use the mode tool", out.getvalue())

    def test_requests_are_tiny(self) -> None:
        _, asked = self.run_probe(obedient)
        for body in asked:
            self.assertLess(len(json.dumps(body)), 2500)
            self.assertLessEqual(body["max_tokens"], probe.MAX_TOKENS)

    def test_an_endpoint_that_is_not_there_ends_with_exit_3(self) -> None:
        given = ["--probe", "--arms", "custom", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"]
        options = options_of(*given)
        before = probe.LIMITS
        probe.LIMITS = before._replace(max_retries=0)
        self.addCleanup(setattr, probe, "LIMITS", before)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(modes.main(options, str(ROOT), CONFIG, INPUTS), 3)
        self.assertIn("unreachable", out.getvalue())

    def test_controls_have_nothing_to_probe(self) -> None:
        options = options_of("--probe", "--arms", "control-first")
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(modes.main(options, str(ROOT), CONFIG, INPUTS), 3)
        self.assertIn("nothing to probe", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
