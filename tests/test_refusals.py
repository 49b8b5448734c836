"""engine/refusals.py: what an error says, whose fault it is, how long to wait."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any

from rooms import room

refusals = room("refusals")
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def facts(body: Any) -> Any:
    return refusals.read_error(body if isinstance(body, bytes) else json.dumps(body).encode("utf-8"))


def wait(headers: dict[str, str], body: Any = b"") -> Any:
    return refusals.wait_s(headers, facts(body), NOW)


class Words(unittest.TestCase):
    def test_h23_the_most_specific_words_are_found_in_every_shape(self) -> None:
        for body, shown in (
            ({"error": {"message": "M1"}}, "M1"),
            ({"error": "M2"}, "M2"),
            ({"object": "error", "message": "M3", "code": 400}, "M3"),
            ({"detail": "M4"}, "M4"),
            ({"detail": [{"loc": ["body", "seed"], "msg": "M5"}]}, "body.seed: M5"),
            ({"detail": [{"loc": ["body", "a", 0], "msg": "x"}, {"msg": "y"}]}, "body.a.0: x; y"),
            ({"error": {"message": "generic", "metadata": {"raw": "M6"}}}, "M6"),
            ({"error": {"message": "generic", "metadata": {"raw": '{"error": {"message": "M7"}}'}}}, "M7"),
            ({"error": {"message": "generic", "metadata": {"raw": "{broken"}}}, "{broken"),
            ({"message": {"detail": [{"loc": ["body", "seed"], "msg": "M8"}]}}, "body.seed: M8"),
            ([{"error": {"code": 400, "message": "M9"}}], "M9"),
            ({"errors": [{"message": "M10"}]}, "M10"),
            ({"error": "Unauthorized", "message": "key expired"}, "Unauthorized: key expired"),
            ({"error": "invalid_grant", "error_description": "M11"}, "invalid_grant"),
            (b"not json at all", "not json at all"),
            (b"", ""),
            ([], "[]"),
            ({}, "{}"),
            ({"status": 500}, '{"status":500}'),
            (b'\xef\xbb\xbf{"error": "with a mark"}', "with a mark"),
            ('{"error": "wide"}'.encode("utf-16"), "wide"),
            (b"\xff\xfe\xfa broken", None),
        ):
            with self.subTest(body):
                if shown is not None:
                    self.assertEqual(facts(body).text, shown)
                else:
                    self.assertIsInstance(facts(body).text, str)

    def test_the_line_shown_has_status_words_and_a_bounded_length(self) -> None:
        self.assertEqual(refusals.error_text(b"", 503, "Busy"), "HTTP 503 Busy")
        self.assertEqual(refusals.error_text(b'{"error": "x"}', 400), "HTTP 400: x")
        self.assertEqual(refusals.error_text(b'{"error": "x"}'), "x")
        self.assertLessEqual(len(refusals.error_text(b"a" * 100_000)), 300)

    def test_the_text_is_cleaned_before_it_is_cut(self) -> None:
        body = json.dumps({"error": "x" * 295 + "SECRET-SECRET"}).encode()
        shown = refusals.error_text(body, clean=lambda text: text.replace("SECRET-SECRET", "*"))
        self.assertNotIn("SECRET", shown)

    def test_control_and_invisible_characters_are_escaped(self) -> None:
        shown = refusals.printable("a\x1b[31mred\x00\u202eevil\ufeff\ud83d b\tc\n d")
        self.assertEqual(shown, "a\\u001b[31mred\\u0000\\u202eevil\\ufeff\\ud83d b c d")
        self.assertTrue(refusals.printable("".join(map(chr, range(0x3000)))[:250]).isprintable())

    def test_deep_or_endless_errors_are_cut_short(self) -> None:
        deep: Any = "end"
        for _ in range(50):
            deep = {"error": deep}
        self.assertIsInstance(facts(deep).text, str)
        self.assertIsInstance(facts(b'{"error":' * 50_000).text, str)
        self.assertLessEqual(len(refusals.printable(facts({"errors": [{"message": "x" * 500}] * 500}).text)), 300)

    def test_a_body_nested_too_deeply_is_read_on_no_python_version(self) -> None:
        for levels, codes in ((20, {"content_filter"}), (80, set()), (800, set()), (4000, set())):
            body = '{"error": {"code": "content_filter", "more": ' + "[" * levels + "]" * levels + "}}"
            with self.subTest(levels=levels):
                self.assertEqual(set(refusals.read_error(body.encode()).codes), codes)

    def test_an_echo_of_the_request_is_not_searched_for_codes(self) -> None:
        echo = {"type": "missing", "loc": ["body", "model"], "msg": "x", "input": {"code": "content_filter"}}
        self.assertNotIn("content_filter", facts({"detail": [echo]}).codes)


class Rulings(unittest.TestCase):
    def rule(self, status: int, body: Any = b"", **headers: str) -> tuple[str, str]:
        ruling = refusals.rule(status, facts(body), headers)
        return ruling.kind, ruling.code

    def test_status_numbers(self) -> None:
        for status, kind, code in (
            (301, "stop", "redirect"), (304, "stop", "redirect"), (308, "stop", "redirect"),
            (400, "refused", "http_400"), (401, "stop", "auth"), (402, "stop", "no_credit"), (403, "stop", "auth"),
            (404, "stop", "not_found"), (405, "stop", "not_found"), (407, "stop", "proxy_auth"),
            (408, "retry", "http_408"), (409, "retry", "http_409"), (413, "refused", "http_413"),
            (422, "refused", "http_422"), (425, "retry", "http_425"), (429, "slow", "http_429"),
            (500, "retry", "http_500"), (501, "retry", "http_501"), (502, "retry", "http_502"),
            (503, "slow", "http_503"), (504, "retry", "http_504"), (524, "retry", "http_524"),
            (529, "slow", "http_529"), (599, "retry", "http_599"),
        ):  # fmt: skip
            with self.subTest(status):
                self.assertEqual(self.rule(status), (kind, code))

    def test_machine_fields_win_over_the_status(self) -> None:
        for status, body, kind, code in (
            (400, {"error": {"code": "content_filter"}}, "row", "content_filter"),
            (400, {"error": {"inner_error": {"code": "ResponsibleAIPolicyViolation"}}}, "row", "content_filter"),
            (500, {"error": {"code": "context_length_exceeded"}}, "row", "context_length"),
            (400, {"error": {"type": "overloaded_error"}}, "slow", "http_400"),
            (429, {"error": {"code": "insufficient_quota"}}, "stop", "no_credit"),
            (429, {"error": {"type": "insufficient_quota"}}, "stop", "no_credit"),
            (429, {"error": "insufficient quota"}, "slow", "http_429"),
            (429, {"error": {"message": "Rate limit exceeded: free-models-per-day"}}, "stop", "no_credit"),
            (429, {"error": {"message": "tokens per day used up"}}, "slow", "http_429"),
            (400, {"error": {"code": "billing_error"}}, "stop", "no_credit"),
        ):
            with self.subTest(body):
                self.assertEqual(self.rule(status, body), (kind, code))

    def test_a_server_that_forbids_another_try_is_obeyed(self) -> None:
        for status in (429, 500, 408):
            self.assertEqual(self.rule(status, **{"x-should-retry": "false"})[0], "final")
        self.assertEqual(self.rule(500, **{"x-should-retry": "true"})[0], "retry")

    def test_anything_else_gets_a_ruling_too(self) -> None:
        rng = random.Random(7)
        for _ in range(500):
            body = bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
            kind, _ = self.rule(rng.randrange(300, 600), body)
            self.assertIn(kind, ("stop", "refused", "retry", "slow", "row", "final"))


class Waits(unittest.TestCase):
    def test_h02_h03_retry_after(self) -> None:
        for headers, seconds in (
            ({"retry-after": "7"}, 7.0),
            ({"retry-after": " 2.5 "}, 2.5),
            ({"retry-after": "0"}, None),
            ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
            ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
            ({"retry-after": "2m30s"}, 150.0),
            ({"retry-after-ms": "1500"}, 1.5),
            ({"retry-after-ms": "1500", "retry-after": "90"}, 1.5),
            ({"retry-after-ms": "0", "retry-after": "90"}, 90.0),
            ({"retry-after": "999999999"}, 999999999.0),
        ):
            with self.subTest(headers):
                self.assertEqual(wait(headers), seconds)

    def test_what_is_no_time_is_ignored(self) -> None:
        for text in (
            "",
            "-1",
            "nan",
            "inf",
            "1e5",
            "1_000",
            "١٢",
            "soon",
            "0x10",
            "9" * 40,
            "Mon, 99 Foo 2026",
            "12:00",
        ):
            with self.subTest(text):
                self.assertIsNone(wait({"retry-after": text}))

    def test_times_given_in_the_body(self) -> None:
        google = [{"error": {"code": 429, "details": [{"@type": "x/RetryInfo", "retryDelay": "37s"}]}}]
        self.assertEqual(wait({}, google), 37.0)
        reset_ms = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int((NOW + 90) * 1000))}
        self.assertEqual(wait({}, {"error": {"code": 429, "metadata": {"headers": reset_ms}}}), 90.0)

    def test_the_reset_of_an_exhausted_limit_counts_where_nothing_else_is_said(self) -> None:
        for headers, seconds in (
            ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
            ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "100ms"}, 0.1),
            ({"x-ratelimit-remaining-tokens": "3", "x-ratelimit-reset-tokens": "100ms"}, None),
            ({"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "5"}, None),
            (
                {
                    "anthropic-ratelimit-input-tokens-remaining": "0",
                    "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:12Z",
                },
                12.0,
            ),
            ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW + 45))}, 45.0),
        ):
            with self.subTest(headers):
                self.assertEqual(wait(headers), seconds)

    def test_a_good_reply_waits_only_for_the_share_that_one_request_needs(self) -> None:
        requests = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}
        requests["x-ratelimit-reset-requests"] = "60s"
        self.assertEqual(refusals.room_in_s(requests, NOW, 500), 1.0)
        tokens = {"x-ratelimit-limit-tokens": "10000", "x-ratelimit-remaining-tokens": "0"}
        tokens["x-ratelimit-reset-tokens"] = "30s"
        self.assertEqual(refusals.room_in_s(tokens, NOW, 5000), 15.0)
        self.assertEqual(refusals.room_in_s({"x-ratelimit-remaining-requests": "4"}, NOW, 5), 0.0)
        self.assertEqual(refusals.room_in_s({}, NOW, 5), 0.0)


class Hints(unittest.TestCase):
    def hint(self, status: int, body: Any, key_env: str | None = "K") -> str:
        found = facts(body)
        return str(refusals.hint(refusals.rule(status, found, {}), status, found, "https://h.example/v1/x", key_env))

    def test_each_refused_field_names_what_to_write_into_the_arm(self) -> None:
        for field in refusals.FIELD_HINTS:
            with self.subTest(field):
                self.assertEqual(
                    self.hint(400, {"error": {"param": field, "message": "no"}}), refusals.FIELD_HINTS[field]
                )

    def test_a_field_named_only_in_the_words_is_found_for_the_hint(self) -> None:
        text = "Function tools are not supported unless reasoning_effort is none"
        self.assertIn("responses", self.hint(400, {"error": {"message": text}}))
        self.assertIn("output_mode", self.hint(400, {"error": "Invalid tool_choice type: 'object'"}))

    def test_everything_else_gets_a_hint_too(self) -> None:
        self.assertIn("key_env", self.hint(401, {}, None))
        self.assertIn("K", self.hint(401, {}))
        self.assertIn("api-version", self.hint(404, {}))
        self.assertIn("HTTPS_PROXY", self.hint(407, {}))
        self.assertIn("omit", self.hint(418, {}))


if __name__ == "__main__":
    unittest.main()
