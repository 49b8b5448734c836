"""client.py: every way a call can end, over real connections to a server that misbehaves on purpose.

Time is simulated (the client's clock and sleep are the test's), so waits of minutes are checked in milliseconds.
Names that begin with h01, q01 … are cases of known trouble with judges' servers.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import threading
import time
import unittest
from typing import Any

from fault_server import (
    Chunked,
    Close,
    Drip,
    FaultServer,
    Hang,
    Json,
    Raw,
    Request,
    Reset,
    always,
    chat_reply,
    http,
    judge,
    script,
)
from rooms import room

client = room("client")
transport = room("transport")

LITELLM = "litellm.BadRequestError: litellm.ContentPolicyViolationError: the prompt was refused"
CANARY = "sk-canary-3vK9/w+Q=zz81hT"
GRADE = {"name": "grade", "description": "Record it.", "parameters": {"type": "object", "properties": {}}}
PAYLOAD: dict[str, Any] = {
    "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Which is better?"}],
    "tools": [{"type": "function", "function": GRADE}],
    "tool_choice": {"type": "function", "function": {"name": "grade"}},
    "parallel_tool_calls": False,
    "max_tokens": 64,
    "reasoning_effort": "low",
}
QUICK = transport.Timeouts(2.0, 0.3, 0.6)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 5000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Run:
    """One call, or several, against one behaviour; everything the client said is searched for the key."""

    def __init__(self, behaviour: Any, calls: int = 1, arm: dict[str, Any] | None = None, **kw: Any) -> None:
        self.time = Time()
        self.notices: list[str] = []
        with FaultServer(behaviour) as server:
            self.base = server.base
            settings = {"endpoint": server.base, "model": "m", "key_env": "JUDGE_KEY", **(arm or {})}
            kw.setdefault("rng", random.Random(1))
            kw.setdefault("timeouts", QUICK)
            judge = client.Client(
                settings,
                CANARY,
                clock=self.time.clock,
                sleep=self.time.sleep,
                wall=self.time.wall,
                notice=self.notices.append,
                **kw,
            )
            self.outcomes = [judge.call(PAYLOAD) for _ in range(calls)]
            judge.close()
            self.sent = server.requests
        self.last = self.outcomes[-1]
        self.said = repr(self.outcomes) + repr(self.notices)

    @property
    def waited(self) -> float:
        return sum(self.time.slept)


def error(status: str, body: Any, *headers: str) -> Raw:
    data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8")
    return Raw(http(status, data, "Content-Type: application/json", *headers), keep=True)


def ok(**fields: Any) -> dict[str, Any]:
    """A good chat completion with some fields replaced."""
    return {**chat_reply({**PAYLOAD, "model": "m"}, {"choice": "A", "reason": "r"}, "p"), **fields}


class ClientTest(unittest.TestCase):
    def check(self, run: Run, state: str, code: str | None = None, requests: int | None = None) -> None:
        self.assertEqual((run.last.state, run.last.code), (state, code), run.last)
        if requests is not None:
            self.assertEqual(len(run.sent), requests)
        for part in (CANARY, CANARY[:12], "canary"):
            self.assertNotIn(part, run.said)

    def mentions(self, run: Run, *words: str) -> None:
        for word in words:
            self.assertIn(word, run.last.text + " | " + run.last.hint)


class GoodReplies(ClientTest):
    def test_a_reply_comes_back_with_when_it_was_sent_and_how_long_it_took(self) -> None:
        run = Run(judge())
        self.check(run, "reply", None, 1)
        self.assertEqual(run.last.reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "grade")
        self.assertRegex(run.last.started_at, r"^2027-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(
            (run.last.retries, run.last.maybe_billed, run.last.http_status, run.last.text), (0, 0, 200, "")
        )

    def test_the_wire_body_is_the_payload_with_the_model_last(self) -> None:
        run = Run(judge())
        expected = json.dumps({**PAYLOAD, "model": "m"}, indent=2, ensure_ascii=False) + "\n"
        self.assertEqual(run.sent[0].body.decode("utf-8"), expected)
        self.assertEqual(run.sent[0].headers["authorization"], f"Bearer {CANARY}")

    def test_h22_a_compressed_reply_is_read(self) -> None:
        body = gzip.compress(json.dumps(ok()).encode())
        self.assertEqual(Run(always(Raw(http("200 OK", body, "Content-Encoding: gzip")))).last.state, "reply")
        self.assertEqual(Run(judge()).sent[0].headers["accept-encoding"], "identity")

    def test_r36_r37_r39_what_servers_put_before_the_json_is_skipped(self) -> None:
        body = json.dumps(ok()).encode()
        for before in (
            b"\n\n \n\n",
            b": PROCESSING\n\n: PROCESSING\n\n",
            b"\xef\xbb\xbf",
            b"\xef\xbb\xbf\n: x\r\n\r\n",
        ):
            with self.subTest(before):
                self.check(Run(always(Raw(http("200 OK", before + body)))), "reply", None, 1)

    def test_a_chunked_reply_is_read(self) -> None:
        self.check(Run(always(Chunked(ok(), 7))), "reply", None, 1)

    def test_d01_half_a_surrogate_pair_travels_as_an_escape(self) -> None:
        half = {**PAYLOAD, "messages": [{"role": "user", "content": "Hi \ud83d"}]}
        with FaultServer() as server:
            with client.Client({"endpoint": server.base, "model": "m"}, None) as judge:
                outcome = judge.call(half)
            body = server.requests[0].body
        self.assertEqual(outcome.state, "reply")
        self.assertIn(b"\\ud83d", body)
        self.assertEqual(json.loads(body)["messages"], half["messages"])

    def test_no_key_means_no_header(self) -> None:
        with FaultServer() as server:
            with client.Client({"endpoint": server.base, "model": "m"}, None) as judge:
                judge.call(PAYLOAD)
            self.assertNotIn("authorization", server.requests[0].headers)

    def test_headers_worth_keeping_are_kept(self) -> None:
        headers = (("X-Request-Id", "r1"), ("x-ratelimit-limit-requests", "9"), ("Set-Cookie", "c"))
        seen = Run(always(Json(ok(), 200, headers))).last.headers_seen
        self.assertEqual(dict(seen), {"x-request-id": "r1", "x-ratelimit-limit-requests": "9"})


class BodiesThatAreNoReply(ClientTest):
    CASES: tuple[tuple[str, bytes], ...] = (
        ("r34 choices null", json.dumps({"id": "x", "choices": None}).encode()),
        ("choices empty", json.dumps({"choices": []}).encode()),
        ("choices missing", b"{}"),
        ("choices of the wrong type", b'{"choices": {"0": {}}}'),
        ("a choice that is none", b'{"choices": [null]}'),
        ("a choice without message and reason", b'{"choices": [{"index": 0}]}'),
        ("a stream chunk as JSON", b'{"choices": [{"delta": {"content": "A"}, "finish_reason": null}]}'),
        ("empty", b""),
        ("blank", b" \n "),
        ("null", b"null"),
        ("a number", b"17"),
        ("a string", b'"ok"'),
        ("a list", b"[]"),
        ("cut JSON", json.dumps(ok()).encode()[:-20]),
        ("words", b"upstream connect error"),
        ("deep", b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        ("deeper than any reply", json.dumps(ok()).encode()[:-1] + b', "x": ' + b"[" * 80 + b"]" * 80 + b"}"),
        ("binary", bytes(range(256))),
        ("two replies", json.dumps(ok()).encode() * 2),
    )

    def test_each_is_tried_again_a_bounded_number_of_times_and_ends_as_failed(self) -> None:
        for name, body in self.CASES:
            with self.subTest(name):
                run = Run(always(Raw(http("200 OK", body), keep=True)))
                self.check(run, "failed", "bad_body", 3)
                self.assertEqual((run.last.retries, run.last.maybe_billed), (2, 3))
                self.assertLess(len(run.last.text), 400)

    def test_the_text_shows_the_beginning_of_the_body(self) -> None:
        self.mentions(Run(always(Raw(http("200 OK", b'{"id": "zzz"}')))), '{"id": "zzz"}')

    def test_one_bad_body_is_forgotten_when_the_next_reply_is_good(self) -> None:
        run = Run(script([Raw(http("200 OK", b"{}"), keep=True)]))
        self.check(run, "reply", None, 2)
        self.assertEqual((run.last.retries, run.last.maybe_billed), (1, 1))

    def test_r38_an_event_stream_stops_the_run_at_once(self) -> None:
        for body in (b'data: {"choices": []}\n\ndata: [DONE]\n\n', b": hi\n\nevent: message\ndata: {}\n\n"):
            run = Run(always(Raw(http("200 OK", body, "Content-Type: text/event-stream"))))
            self.check(run, "stop", "event_stream", 1)
            self.mentions(run, "event stream")

    def test_a_web_page_stops_a_run_that_never_worked_and_fails_a_row_later(self) -> None:
        page = Raw(http("200 OK", b"<!DOCTYPE html><title>Sign in</title>"), keep=True)
        run = Run(always(page))
        self.check(run, "stop", "bad_body", 3)
        self.mentions(run, "web page", "base URL")
        self.check(Run(script([Json(ok())], always(page)), calls=2), "failed", "bad_body", 4)

    def test_odd_but_usable_replies_are_replies(self) -> None:
        message = ok()["choices"][0]
        odd: dict[str, dict[str, Any]] = {
            "r32 usage null": ok(usage=None),
            "usage a list": ok(usage=[1]),
            "r33 no ids": {"choices": [{"message": {"tool_calls": message["message"]["tool_calls"]}}]},
            "r35 empty message": {"choices": [{"message": {}, "finish_reason": "MALFORMED_FUNCTION_CALL"}]},
            "no message but a reason": {"choices": [{"finish_reason": "content_filter"}]},
            "error null": ok(error=None),
            "error empty": ok(error={}),
            "id a number": ok(id=7),
        }
        for name, body in odd.items():
            with self.subTest(name):
                run = Run(always(Json(body)))
                self.check(run, "reply", None, 1)
                self.assertIsInstance(run.last.reply["usage"], (dict, type(None)))

    def test_nan_and_huge_numbers_around_a_verdict_do_not_lose_it(self) -> None:
        body = json.dumps(ok()).encode()[:-1] + b', "t": NaN, "u": -Infinity, "v": 1e999, "w": ' + b"9" * 9999 + b"}"
        run = Run(always(Raw(http("200 OK", body))))
        self.check(run, "reply", None, 1)
        json.dumps(run.last.reply, allow_nan=False)

    def test_bytes_that_are_not_utf_8_are_kept_as_they_are(self) -> None:
        body = (
            json.dumps(ok(), ensure_ascii=False).encode().replace(b'\\"reason\\": \\"r', b'\\"reason\\": \\"\xe9\xff')
        )
        self.assertIn(b"\xff", body)
        run = Run(always(Raw(http("200 OK", body))))
        self.check(run, "reply", None, 1)
        self.assertIn("\udcff", run.last.reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])

    def test_utf_16_is_read(self) -> None:
        self.check(Run(always(Raw(http("200 OK", json.dumps(ok()).encode("utf-16"))))), "reply", None, 1)


class ErrorsInGoodReplies(ClientTest):
    def test_h11_an_error_in_a_200_is_ruled_by_its_own_code(self) -> None:
        metadata = {"raw": "connection lost upstream", "error_type": "provider_unavailable"}
        body = {"error": {"code": 502, "message": "generic", "metadata": metadata}}
        run = Run(script([Json(body)]))
        self.check(run, "reply", None, 2)
        self.mentions(run, "502", "connection lost upstream")
        self.assertIn("connection lost upstream", run.notices[0])

    def test_each_code_has_the_effect_of_its_status(self) -> None:
        for code, state, given in (
            (401, "stop", "auth"),
            ("429", "failed", "http_429"),
            (400, "stop", "http_400"),
            ("content_filter", "invalid", "content_filter"),
            ("context_length_exceeded", "invalid", "context_length"),
            (None, "failed", "http_502"),
            ("insufficient_quota", "stop", "no_credit"),
            (-1, "failed", "http_502"),
        ):
            with self.subTest(code):
                self.check(Run(always(Json({"error": {"code": code, "message": "m"}}))), state, given)

    def test_an_error_beside_or_inside_a_choice_wins_over_half_an_answer(self) -> None:
        half = {"index": 0, "message": {"content": "[[A]] but"}, "finish_reason": "error"}
        inside = {"choices": [{**half, "finish_reason": "stop", "error": {"code": 504, "message": "upstream"}}]}
        for body in ({"choices": [half]}, inside, ok(error={"message": "cut"}), [{"error": {"code": 503}}]):
            with self.subTest(str(body)[:60]):
                self.check(Run(script([Json(body)])), "reply", None, 2)

    def test_a_failed_response_is_no_reply(self) -> None:
        body = {"object": "response", "status": "failed", "error": {"code": "server_error", "message": "boom"}}
        run = Run(always(Json(body)), arm={"format": "responses"})
        self.check(run, "failed", "http_502", 5)
        self.mentions(run, "boom")


class RefusedRequests(ClientTest):
    def refused(self, status: str, body: Any) -> Run:
        run = Run(always(error(status, body)))
        self.check(run, "stop", f"http_{status[:3]}", 1)
        return run

    def test_q01_max_tokens(self) -> None:
        body = {"error": {"message": "wants the other limit", "param": "max_tokens", "code": "unsupported_parameter"}}
        self.mentions(self.refused("400 Bad Request", body), "max_tokens", "max_completion_tokens", "rename", "400")

    def test_q02_max_completion_tokens_in_a_validation_list(self) -> None:
        body = {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"], "msg": "no"}]}
        self.mentions(self.refused("422 Unprocessable Entity", body), "422", "max_completion_tokens")

    def test_q03_temperature(self) -> None:
        body = {"error": {"message": "only the default", "param": "temperature", "code": "unsupported_value"}}
        self.mentions(self.refused("400 Bad Request", body), "temperature", "omit")

    def test_q04_seed_under_message_detail(self) -> None:
        detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "no"}]
        body = {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "param": None}
        self.mentions(self.refused("422 Unprocessable Entity", body), "seed", "omit")

    def test_q05_parallel_tool_calls(self) -> None:
        body = {"error": {"message": "no", "param": "parallel_tool_calls", "code": "unsupported_parameter"}}
        self.mentions(self.refused("400 Bad Request", body), '"omit": ["parallel_tool_calls"]')

    def test_q08_forced_tool_and_thinking(self) -> None:
        body = {"error": {"message": "this tool choice does not go with thinking", "param": None}}
        self.mentions(self.refused("400 Bad Request", body), "tool choice", "thinking", "extra_body", "json_schema")

    def test_q10_response_format_in_an_error_that_is_a_string(self) -> None:
        body = {"error": "response_format.type must be text"}
        self.mentions(self.refused("400 Bad Request", body), "400", "response_format", "output_mode")

    def test_q14_h26_a_404_shows_the_address_and_is_not_tried_again(self) -> None:
        run = Run(always(error("404 Not Found", {"error": {"code": "404", "message": "model j does not exist"}})))
        self.check(run, "stop", "not_found", 1)
        self.mentions(run, "404", "model j does not exist", run.base + "/chat/completions", "/v1", "api-version")

    def test_once_a_request_has_worked_a_refusal_concerns_its_row_only(self) -> None:
        run = Run(script([Json(ok()), error("400 Bad Request", {"error": {"message": "odd item"}})]), calls=3)
        self.assertEqual([one.state for one in run.outcomes], ["reply", "failed", "reply"])
        self.assertEqual((run.outcomes[1].code, len(run.sent)), ("http_400", 3))

    def test_a_key_that_is_refused_later_stops_all_the_same(self) -> None:
        for status in ("401 Unauthorized", "403 Forbidden", "404 Not Found"):
            run = Run(script([Json(ok())], always(error(status, {"error": "Unauthorized"}))), calls=2)
            self.assertEqual((run.last.state, len(run.sent)), ("stop", 2))

    def test_an_error_that_echoes_the_key_is_shown_without_it(self) -> None:
        for body in (
            {"error": {"message": f"Incorrect API key provided: {CANARY}."}},
            {"error": {"message": f"Incorrect API key provided: {CANARY[:16]}..."}},
            {"detail": f"Authorization: Bearer {CANARY}", "headers": {"authorization": CANARY}},
            f"bad key {CANARY}".encode(),
            json.dumps({"e": CANARY}).replace("/", "\\/").encode(),
            {"error": {"message": "x" * 270 + CANARY}},
        ):
            run = Run(always(error("401 Unauthorized", body)))
            self.check(run, "stop", "auth", 1)
            self.mentions(run, "HTTP 401", "JUDGE_KEY")

    def test_a_reply_or_header_that_echoes_the_key_is_kept_without_it(self) -> None:
        run = Run(always(Json(ok(id=f"echo {CANARY}"), 200, (("x-request-id", f"r {CANARY}"),))))
        self.check(run, "reply", None, 1)
        self.assertIn("removed", run.last.reply["id"])

    def test_no_credit(self) -> None:
        body = {"error": {"message": "no credit left", "type": "insufficient_quota", "code": "insufficient_quota"}}
        for status in ("429 Too Many Requests", "403 Forbidden", "402 Payment Required"):
            run = Run(always(error(status, body)))
            self.check(run, "stop", "no_credit", 1)
            self.mentions(run, status[:3], "no credit left", "resume")


class RowsWithoutAVerdict(ClientTest):
    CASES = (
        ("h24", "content_filter", "400 Bad", {"error": {"code": "content_filter", "type": None, "param": "prompt"}}),
        ("h24 inner", "content_filter", "400 Bad", {"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
        ("flagged", "content_filter", "403 No", {"error": {"code": 403, "metadata": {"flagged_input": "x"}}}),
        ("litellm", "content_filter", "400 Bad", {"error": {"message": LITELLM}}),
        ("h25", "context_length", "400 Bad", {"error": {"code": "context_length_exceeded", "param": "messages"}}),
        ("llama.cpp", "context_length", "400 Bad", {"error": {"code": 400, "type": "exceed_context_size_error"}}),
        ("vllm", "context_length", "400 Bad", {"error": {"code": 400, "param": "input_tokens"}}),
        ("anthropic", "context_length", "413 Big", {"type": "error", "error": {"type": "request_too_large"}}),
    )  # fmt: skip

    def test_filters_and_long_prompts_concern_one_row_and_are_not_tried_again(self) -> None:
        for name, code, status, body in self.CASES:
            with self.subTest(name):
                run = Run(script([error(status, body)]), calls=2)
                first = run.outcomes[0]
                self.assertEqual((first.state, first.code, first.retries), ("invalid", code, 0))
                self.check(run, "reply", None, 2)

    def test_the_words_of_a_message_decide_nothing(self) -> None:
        body = {"error": {"message": "content_filter context_length_exceeded insufficient_quota"}}
        run = Run(script([Json(ok()), error("400 Bad Request", body)]), calls=2)
        self.check(run, "failed", "http_400", 2)


class TryingAgain(ClientTest):
    def test_h01_429_without_a_time_waits_with_jitter(self) -> None:
        waits = {
            round(Run(script([error("429 Too Many Requests", {})]), rng=random.Random(n)).waited, 3) for n in range(4)
        }
        self.assertGreater(len(waits), 2)
        self.assertTrue(all(0.5 <= wait <= 1.0 for wait in waits), waits)

    def test_waits_grow_and_attempts_are_bounded(self) -> None:
        run = Run(always(error("500 Internal Server Error", {"error": "boom"})))
        self.check(run, "failed", "http_500", 5)
        self.assertEqual(run.last.retries, 4)
        self.assertTrue(all(later > earlier for earlier, later in zip(run.time.slept, run.time.slept[1:])))
        self.assertLess(run.waited, 20)

    def test_the_total_time_is_bounded_too(self) -> None:
        limits = client.Limits(max_slow=1000, total_s=100.0)
        run = Run(always(error("429 Too Many Requests", {}, "Retry-After: 30")), limits=limits)
        self.check(run, "failed", "http_429", 4)

    def test_h02_h03_every_form_of_retry_after(self) -> None:
        for header, low, high in (
            ("Retry-After: 7", 7.0, 8.0),
            ("Retry-After: 0.5", 0.5, 1.0),
            ("retry-after-ms: 1500", 1.5, 2.5),
            ("Retry-After: 90\r\nretry-after-ms: 1500", 1.5, 2.5),
            ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", 0.5, 1.0),
            ("Retry-After: Fri, 15 Jan 2027 09:24:00 GMT", 39.0, 41.0),
            ("Retry-After: soon", 0.5, 1.0),
            ("Retry-After: -5", 0.5, 1.0),
            ("Retry-After: nan", 0.5, 1.0),
            ("Retry-After: inf", 0.5, 1.0),
            ("Retry-After: 0", 0.5, 1.0),
            ("x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 20s", 20.0, 21.0),
            ("x-ratelimit-remaining-requests: 5\r\nx-ratelimit-reset-requests: 20s", 0.5, 1.0),
        ):
            with self.subTest(header):
                run = Run(script([error("429 Too Many Requests", {}, header)]))
                self.check(run, "reply", None, 2)
                self.assertTrue(low <= run.waited <= high, run.waited)

    def test_h04_a_wait_of_a_day_stops_and_says_how_to_go_on(self) -> None:
        for header in ("Retry-After: 86400", "Retry-After: 999999999", "retry-after-ms: 86400000"):
            run = Run(always(error("429 Too Many Requests", {"error": {"message": "daily limit"}}, header)))
            self.check(run, "stop", "retry_after", 1)
            self.assertEqual(run.waited, 0.0)
            self.mentions(run, "daily limit", "resume")
        self.mentions(Run(always(error("503 Busy", {}, "Retry-After: 86400"))), "86400")

    def test_h06_a_daily_quota_stops_at_once(self) -> None:
        quota = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
        details = [{"@type": "type.example/QuotaFailure", "violations": [quota]}]
        body = [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "used up", "details": details}}]
        self.check(Run(always(error("429 Too Many Requests", body))), "stop", "no_credit", 1)

    def test_h07_the_word_quota_alone_does_not_stop(self) -> None:
        body = {"status": 429, "error": "INSUFFICIENT QUOTA", "message": "too many at once"}
        run = Run(script([error("429 Too Many Requests", body)]))
        self.check(run, "reply", None, 2)
        self.mentions(run, "too many at once")

    def test_h08_h09_h27_what_is_tried_again(self) -> None:
        page = b"<!DOCTYPE html><html><title>h.example | 524: A timeout occurred</title></html>"
        for status, body in (
            ("529 ", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
            ("400 Bad Request", {"error": {"type": "overloaded_error"}}),
            ("524 ", page),
            ("520 ", page),
            ("500 Internal", b"Internal Server Error"),
            ("502 Bad Gateway", b""),
            ("503 Loading", {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
            ("504 ", {}),
            ("599 Odd", {}),
            ("408 Request Timeout", {}),
            ("409 Conflict", {}),
            ("425 Too Early", {}),
        ):
            with self.subTest(status):
                run = Run(script([error(status, body)]))
                self.check(run, "reply", None, 2)
                self.mentions(run, f"HTTP {status[:3]}")
                self.assertEqual(run.last.maybe_billed, 0)

    def test_h27_a_server_that_says_no_retry_is_obeyed(self) -> None:
        run = Run(always(error("500 Internal", {"error": "final"}, "x-should-retry: false")))
        self.check(run, "failed", "http_500", 1)

    def test_h12_h14_broken_connections(self) -> None:
        cut = b'HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n{"choices":[{"mess'
        for action in (
            Raw(cut),
            Close(),
            Reset(),
            Close(b"HTTP/1.1 200 OK\r\nConte"),
            Reset(cut),
            Raw(b"garbage\r\n\r\n"),
        ):
            with self.subTest(action):
                run = Run(script([action]))
                self.check(run, "reply", None, 2)
                self.assertEqual((run.last.retries, run.last.maybe_billed), (1, 1))

    def test_broken_for_good_ends_as_failed_and_counts_what_may_have_been_billed(self) -> None:
        run = Run(always(Close()))
        self.check(run, "failed", "connection", 3)
        self.assertEqual((run.last.retries, run.last.maybe_billed), (2, 3))

    def test_h15_h16_silence_and_dripping_end_as_failed_rows(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"
        drip = Drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n\n\r\n", 0.05)
        limits = client.Limits(max_unsure=1, base_s=0.05)
        short = transport.Timeouts(2.0, 0.2, 0.4)
        for action in (Hang(head), drip):
            began = time.monotonic()
            run = RealTime(always(action), timeouts=short, limits=limits)
            self.assertEqual((run.outcome.state, run.outcome.code), ("failed", "timeout"))
            self.assertIn("timeout", run.outcome.text)
            self.assertLess(time.monotonic() - began, 6.0)
        run = RealTime(script([Hang(head)]), timeouts=short, limits=limits)
        self.assertEqual((run.outcome.state, run.outcome.maybe_billed), ("reply", 1))

    def test_h17_redirects_are_named_and_not_followed(self) -> None:
        with FaultServer() as other:
            for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"):
                place = f"Location: {other.base}/chat/completions?k={CANARY}"
                run = Run(always(Raw(http(status, b"", place))))
                self.check(run, "stop", "redirect", 1)
                self.mentions(run, status[:3], other.base, "base URL")
            self.assertEqual(other.count, 0)
        self.check(Run(always(Raw(http("304 Not Modified")))), "stop", "redirect", 1)

    def test_an_unknown_content_coding_stops_with_its_name(self) -> None:
        run = Run(always(Raw(http("200 OK", b"abc", "Content-Encoding: br"))))
        self.check(run, "stop", "bad_encoding", 1)
        self.mentions(run, "'br'")

    def test_a_reply_that_is_too_large_is_not_asked_for_again(self) -> None:
        huge = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        self.check(Run(script([Json(ok())], always(huge)), calls=2), "failed", "too_large", 2)

    def test_an_endpoint_that_was_never_reached_stops_after_a_few_tries(self) -> None:
        with FaultServer() as server:
            base = server.base
        clock = Time()
        judge = client.Client({"endpoint": base, "model": "m"}, None, clock=clock.clock, sleep=clock.sleep)
        outcome = judge.call(PAYLOAD)
        self.assertEqual((outcome.state, outcome.code, outcome.retries), ("stop", "connection", 4))
        self.assertIn("refused", outcome.text)
        self.assertEqual(outcome.maybe_billed, 0)


class RealTime:
    """One call with real waiting, for the cases where the server's time is the point."""

    def __init__(self, behaviour: Any, **kw: Any) -> None:
        with FaultServer(behaviour) as server:
            with client.Client({"endpoint": server.base, "model": "m"}, CANARY, **kw) as judge:
                self.outcome = judge.call(PAYLOAD)


class WhoServedIt(ClientTest):
    def test_r40_another_model_or_provider_than_the_arm_allows_stops(self) -> None:
        arm = {"response_model": r"judge-\d", "provider": "HostA"}
        for fields, state in (
            ({"model": "judge-1", "provider": "hosta"}, "reply"),
            ({"model": "judge-1"}, "reply"),
            ({"model": None}, "reply"),
            ({"model": "judge-10"}, "stop"),
            ({"model": "judge-1", "provider": "HostB"}, "stop"),
        ):
            with self.subTest(fields):
                run = Run(always(Json(ok(**fields))), arm=arm)
                self.check(run, state, None if state == "reply" else "wrong_model", 1)

    def test_without_a_rule_any_name_is_accepted_and_kept(self) -> None:
        reply = Run(always(Json(ok(model="other/x", provider="HostB")))).last.reply
        self.assertEqual((reply["model"], reply["provider"]), ("other/x", "HostB"))


class ManyWorkers(ClientTest):
    def run_many(self, behaviour: Any, workers: int, calls: int, **kw: Any) -> tuple[list[Any], list[Request]]:
        found: list[Any] = []
        with FaultServer(behaviour) as server:
            judge = client.Client({"endpoint": server.base, "model": "m"}, CANARY, **kw)

            def work() -> None:
                for _ in range(calls):
                    found.append(judge.call(PAYLOAD))

            threads = [threading.Thread(target=work) for _ in range(workers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            judge.close()
            return found, list(server.requests)

    def test_a_wrong_key_costs_one_request_however_many_workers_there_are(self) -> None:
        stop = threading.Event()

        def refuse(request: Request) -> Any:
            stop.set()
            return error("401 Unauthorized", {"error": "Unauthorized"})

        found, sent = self.run_many(refuse, 20, 1, stop=stop)
        self.assertEqual(len(sent), 1)
        self.assertEqual(sorted({one.state for one in found}), ["cancelled", "stop"])

    def test_after_the_first_reply_all_workers_run_at_once(self) -> None:
        most, now, lock = [0], [0], threading.Lock()

        def slow(request: Request) -> Any:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.05)
            with lock:
                now[0] -= 1
            return Json(ok())

        found, _ = self.run_many(slow, 8, 4)
        self.assertEqual({one.state for one in found}, {"reply"})
        self.assertGreaterEqual(most[0], 6)

    def test_after_a_429_nobody_sends_until_the_time_is_up(self) -> None:
        refused_at: list[float] = []

        def limited(request: Request) -> Any:
            if request.number == 12:
                refused_at.append(time.monotonic())
                return error("429 Too Many Requests", {}, "retry-after-ms: 1000")
            time.sleep(0.02)
            return Json(ok())

        found, sent = self.run_many(limited, 6, 6)
        self.assertEqual({one.state for one in found}, {"reply"})
        under_way_s, asked_s = 0.5, 0.95  # requests sent before the refusal arrived are none of its business
        early = [one.at - refused_at[0] for one in sent if under_way_s < one.at - refused_at[0] < asked_s]
        self.assertEqual(early, [])
        self.assertGreater(max(one.at for one in sent) - refused_at[0], asked_s)

    def test_the_pace_is_kept_by_all_workers_together(self) -> None:
        pace = client.Pace(2400, clock=time.monotonic)
        found, sent = self.run_many(always(Json(ok())), 5, 6, pace=pace)
        times = sorted(one.at for one in sent)
        self.assertEqual(len(times), 30)
        self.assertGreaterEqual(times[-1] - times[0], 29 * 0.025 - 0.4)  # the log may see the first one late


class Stopping(ClientTest):
    def test_nothing_is_sent_once_the_run_stops(self) -> None:
        stop = threading.Event()
        stop.set()
        run = Run(judge(), stop=stop)
        self.check(run, "cancelled", "cancelled", 0)

    def test_a_wait_ends_when_the_run_stops_and_the_row_counts_as_failed(self) -> None:
        stop = threading.Event()
        with FaultServer(always(error("429 Too Many Requests", {}, "Retry-After: 60"))) as server:
            threading.Timer(0.2, stop.set).start()
            began = time.monotonic()
            with client.Client({"endpoint": server.base, "model": "m"}, None, stop=stop) as judge:
                outcome = judge.call(PAYLOAD)
        self.assertLess(time.monotonic() - began, 5.0)
        self.assertEqual((outcome.state, outcome.code), ("failed", "http_429"))


class WhatMayBeSent(unittest.TestCase):
    def test_only_listed_fields_and_text_are_sent(self) -> None:
        image = [{"type": "image_url", "image_url": {"url": "http://x"}}]
        for change, word in (
            ({"temperature": 0}, "temperature"),
            ({"stream": True}, "stream"),
            ({"model": "x"}, "model"),
            ({"messages": []}, "messages"),
            ({"messages": [{"role": "user", "content": image}]}, "content"),
            ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
            ({"messages": [{"role": "user", "content": "x", "audio": 1}]}, "messages[0]"),
            ({"messages": ["hi"]}, "messages[0]"),
        ):
            with self.subTest(word), FaultServer() as server:
                judge = client.Client({"endpoint": server.base, "model": "m"}, None)
                outcome = judge.call({**PAYLOAD, **change})
                self.assertEqual((outcome.state, outcome.code, server.count), ("stop", "bad_request", 0))
                self.assertIn(word, outcome.text)

    def test_sampling_fields_are_sent_for_callers_that_allow_them(self) -> None:
        with FaultServer() as server:
            allowed = client.RECIPE_KEYS | client.SAMPLING_KEYS
            with client.Client({"endpoint": server.base, "model": "m"}, None, allowed=allowed) as judge:
                self.assertEqual(judge.call({**PAYLOAD, "temperature": 0, "seed": 7}).state, "reply")
            self.assertEqual(json.loads(server.requests[0].body)["seed"], 7)

    def test_a_key_or_arm_that_cannot_work_is_refused_before_anything_else(self) -> None:
        for arm, key, word in (
            ({"endpoint": "https://h.example/v1", "model": "m"}, "sk-secret\nX: y", "line break"),
            ({"endpoint": "https://h.example/v1", "model": "m"}, "\u201csk-secret\u201d", "curly quote"),
            ({"endpoint": "http://h.example/v1", "model": "m"}, "sk-secret", "plain http"),
        ):
            with self.subTest(word), self.assertRaises(ValueError) as caught:
                client.Client(arm, key)
            self.assertIn(word, str(caught.exception))
            self.assertNotIn("secret", str(caught.exception))


class Light(unittest.TestCase):
    def test_loading_the_client_does_not_load_the_network_libraries(self) -> None:
        import subprocess

        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); from rooms import room; room('client');"
            "print([m for m in ('ssl', 'http.client', 'urllib.request', 'gzip', 'email') if m in sys.modules])"
        )
        tests = str(room.__globals__["ROOT"] / "tests")
        done = subprocess.run([sys.executable, "-I", "-c", code, tests], capture_output=True, text=True, timeout=30)
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)


class AnythingAtAll(ClientTest):
    def test_2000_mutated_replies_each_end_in_a_known_state_and_none_raises(self) -> None:
        rng = random.Random(20261027)
        good = [json.dumps(ok(), ensure_ascii=False).encode()]
        good.append(json.dumps({"error": {"message": "m", "code": 400, "param": "seed"}}).encode())
        states: dict[str, int] = {}
        for number in range(2000):
            body = mutated(rng, rng.choice(good))
            status = rng.choice([200, 200, 200, 200, 400, 429, 500, 302, 204, 418])
            headers = rng.choice([{}, {"retry-after": "1"}, {"content-type": "text/html"}, {"location": "x"}])
            clock = Time()
            answer = transport.Answer(status, "x", dict(headers), body)
            judge = client.Client(
                {"endpoint": "http://127.0.0.1:9/v1", "model": "m"},
                CANARY,
                transport=lambda *_, answer=answer: answer,
                clock=clock.clock,
                sleep=clock.sleep,
            )
            outcome = judge.call(PAYLOAD)
            states[outcome.state] = states.get(outcome.state, 0) + 1
            self.assertEqual(outcome.state == "reply", outcome.reply is not None, number)
            if outcome.reply is not None:
                json.dumps(outcome.reply, allow_nan=False)
        self.assertLessEqual(set(states), {"reply", "invalid", "failed", "stop"})
        self.assertGreater(states["reply"], 100)


def mutated(rng: random.Random, body: bytes) -> bytes:
    """A body with one to three random changes: bytes flipped, cut, doubled, replaced by odd JSON."""
    odd = [
        b"null",
        b"[]",
        b"{}",
        b"NaN",
        b"1e999",
        b"-1",
        b'"\\ud83d"',
        b"true",
        b"[" * 90,
        b'""',
        b"\xff",
        b"\x00",
        b"\xef\xbb\xbf",
    ]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, to = sorted((rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)))
        kind = rng.choice((0, 0, 1, 2, 3, 4, 4))
        if kind == 0:
            body = body[:at] + rng.choice(odd) + body[at:]
        elif kind == 1:
            body = body[:at] + body[min(to, at + 30) :]
        elif kind == 2:
            body = body[:at] + body[at:to] + body[at:]
        elif kind == 3:
            body = body[:at]
        else:
            parts = body.split(b'"')
            parts[rng.randrange(len(parts))] = rng.choice([b"choices", b"error", b"x", b""])
            body = b'"'.join(parts)
    return body


if __name__ == "__main__":
    unittest.main()
