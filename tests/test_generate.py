"""engine/generate.py with callers that need no network: budgets, stopping, warnings, the journal and raw rows."""

from __future__ import annotations

import base64
import itertools
import json
import os
import random
import tempfile
import threading
import unittest
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import runner
from rooms import ROOT, room

generate, evidence, client = room("generate"), room("evidence"), room("client")
fixtures = room("fixtures")
callers, calling = room("callers"), room("calling")
evaluation, providers, recipe = room("evaluation"), room("providers"), room("recipe")
CONFIG: dict[str, Any] = {**json.loads((ROOT / "eval.json").read_text(encoding="utf-8")), "max_tokens": 100}
ARM = {"endpoint": "http://127.0.0.1:1/v1", "model": "judge-1"}
PRICED = {**ARM, "price_usd_per_mtok": {"input": 1.0, "cached": 1.0, "output": 10.0}}
ORDERS = ("original", "swapped")
TOKEN = "ghp_" + "a1B2" * 9  # the form of a token, of nobody


def reply(choice: str = "A", model: str = "judge-1", **message: Any) -> Any:
    """An outcome as the client gives it, with a verdict."""
    call = {"function": {"name": "grade", "arguments": json.dumps({"choice": choice, "reason": "r"})}}
    shown = {"content": None, "tool_calls": [call], **message}
    body = {"id": "x", "model": model, "choices": [{"message": shown, "finish_reason": "stop"}]}
    return client.Outcome("reply", {**body, "usage": {"prompt_tokens": 100, "completion_tokens": 10}}, latency_ms=1)


FAILED = client.Outcome("failed", code="timeout", text="no answer")
Answer = Callable[[dict[str, Any], str, int], Any]


class Work:
    """One run in a temporary folder whose judge is a function of (item, order, repeat)."""

    def __init__(self, folder: str, pairs: int = 3, repeats: int = 1, arms: dict[str, Any] | None = None) -> None:
        data = b"".join(evidence.row_bytes(runner.item(number)) for number in range(pairs))
        self.items, _ = fixtures.load_items(data, "fixture.jsonl")
        self.arms = [evaluation.Arm(name, settings) for name, settings in (arms or {"judge": ARM}).items()]
        self.frozen = evaluation.Evaluation(".", CONFIG, self.items, [], recipe, None, {}, {})
        self.path, self.repeats = os.path.join(folder, "journal.jsonl"), repeats
        self.folder, self.now = folder, 0.0
        self.asked: list[tuple[str, str, str, int]] = []

    def runs(self) -> dict[str, Any]:
        """Task tables filled from the journal, as a resume fills them."""
        found: dict[str, Any] = generate.arm_runs(self.arms, CONFIG, len(self.items), self.repeats)
        self.warned = []
        if os.path.exists(self.path):
            self.warned = generate.read_journal(self.path, found, {key: n for n, key in enumerate(self.items.ids)})
        return found

    def go(self, answer: Answer, workers: int = 1, **limits: Any) -> Any:
        """Ask until nothing is left or the run stops; returns the Generation."""
        by_item, requests = limits.pop("by_item", False), limits.pop("requests", None)

        def caller(name: str) -> Callable[..., Any]:
            def call(payload: dict[str, Any], item: dict[str, Any], order: str, repeat: int) -> Any:
                self.asked.append((name, item["item_id"], order, repeat))
                return answer(item, order, repeat)

            return call

        runs, journal = self.runs(), evidence.Journal(self.path)
        asking = {arm.name: caller(arm.name) for arm in self.arms}
        for run in runs.values():
            run.config["_longest_request_bytes"] = 1000
        self.meter = generate.Meter(requests)
        work = generate.Generation(
            self.frozen, self.items, runs, asking, journal, providers.usage_of, lambda: self.now,
            threading.Event(), generate.Budget(**limits), self.meter,
        )  # fmt: skip
        for thread in work.start({arm.name: workers for arm in self.arms}, by_item):
            thread.join(30)
        journal.close()
        return work

    def finished(self) -> list[dict[str, Any]]:
        """The raw rows of the finished run."""
        generate.finish(self.folder, {"status": "incomplete"}, self.items, self.runs(), 0.0)
        return runner.rows_of(Path(self.folder))


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name


class Asking(InFolder):
    def test_every_pair_is_asked_in_both_orders_in_every_repeat_once(self) -> None:
        work = Work(self.folder, pairs=4, repeats=3)
        work.go(lambda item, order, repeat: reply(), workers=5)
        expected = itertools.product(["judge"], work.items.ids, ORDERS, (1, 2, 3))
        self.assertEqual(Counter(expected), Counter(work.asked))

    def test_repeats_run_one_after_the_other_unless_asked_item_by_item(self) -> None:
        for by_item in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                work = Work(folder, pairs=2, repeats=2)
                work.go(lambda item, order, repeat: reply(), by_item=by_item)
                repeats = [repeat for _, _, _, repeat in work.asked]
                self.assertEqual([1, 2] * 4 if by_item else [1] * 4 + [2] * 4, repeats)

    def test_raw_rows_are_in_the_same_order_however_replies_arrive(self) -> None:
        found = []
        for seed in range(3):
            with tempfile.TemporaryDirectory() as folder:
                rng, gate = random.Random(seed), threading.Event()
                work = Work(folder, pairs=6, repeats=2, arms={"one": ARM, "two": ARM})

                def slow(item: dict[str, Any], order: str, repeat: int) -> Any:
                    gate.wait(rng.random() * 0.005)  # noqa: B023
                    return reply("AB"[len(item["item_id"] + order) % 2])

                work.go(slow, workers=4)
                found.append([(row["repeat"], row["item_id"], row["arm"]) for row in work.finished()])
        self.assertEqual(sorted(found[0]), found[0])
        self.assertEqual([found[0]] * 3, found)

    def test_failed_replies_are_asked_again_and_invalid_ones_are_kept(self) -> None:  # C03
        work = Work(self.folder, pairs=2)
        odd = {("pair-00000", "original"): FAILED, ("pair-00001", "swapped"): reply(tool_calls=[])}
        first = work.go(lambda item, order, repeat: odd.get((item["item_id"], order)) or reply())
        self.assertEqual([0, 2, 1, 1], first.runs["judge"].progress.counts)
        work.asked.clear()
        again = work.go(lambda item, order, repeat: reply("B"))
        self.assertEqual([("judge", "pair-00000", "original", 1)], work.asked)
        self.assertEqual([0, 3, 1, 0], again.runs["judge"].progress.counts)
        self.assertEqual(0, sum(row["errors"] for row in work.finished()))

    def test_a_cancelled_call_leaves_nothing_in_the_journal(self) -> None:
        work = Work(self.folder)
        found = work.go(lambda item, order, repeat: client.Outcome("cancelled", code="cancelled"))
        self.assertEqual((0, 6), (os.path.getsize(work.path), found.runs["judge"].progress.counts[0]))


class Stopping(InFolder):
    def test_a_stop_ends_all_arms_with_the_first_cause(self) -> None:
        work = Work(self.folder, pairs=50, arms={"one": ARM, "two": ARM})
        stop = client.Outcome("stop", code="auth", text="HTTP 401: no", hint="check the key")
        found = work.go(lambda item, order, repeat: stop, workers=3)
        self.assertLessEqual(len(work.asked), 6)
        self.assertRegex(str(found.problem), "arm (one|two): HTTP 401")
        self.assertEqual("check the key", found.problem.hint)

    def test_ten_failures_in_a_row_stop_the_run(self) -> None:
        work = Work(self.folder, pairs=50)
        found = work.go(lambda item, order, repeat: FAILED)
        self.assertEqual(10, len(work.asked))
        self.assertIn("the last 10 requests all failed; the last one: no answer", str(found.problem))

    def test_failures_between_replies_do_not_stop_the_run(self) -> None:
        work = Work(self.folder, pairs=50)
        count = itertools.count()
        found = work.go(lambda item, order, repeat: reply() if next(count) % 10 == 9 else FAILED)
        self.assertIsNone(found.problem)

    def test_no_more_requests_are_sent_than_allowed_with_any_number_of_workers(self) -> None:
        for workers in (1, 8):
            with tempfile.TemporaryDirectory() as folder:
                work = Work(folder, pairs=20)
                found = work.go(lambda item, order, repeat: reply(), workers=workers, requests=7)
                self.assertEqual(7, len(work.asked))
                self.assertIn("--max-requests 7", str(found.problem))

    def test_the_cost_never_passes_the_limit_even_at_the_worst_price(self) -> None:
        # a reply costs 0.0002 $; the worst one 1,040 tokens in and 100 out, 0.00204 $
        for workers in (1, 6):
            with tempfile.TemporaryDirectory() as folder:
                work = Work(folder, pairs=50, arms={"judge": PRICED})
                found = work.go(lambda item, order, repeat: reply(), workers=workers, usd=0.005)
                self.assertIn("--max-usd 0.005", str(found.problem))
                self.assertLess(0.002, found.runs["judge"].progress.cost)
                self.assertLessEqual(found.runs["judge"].progress.cost, 0.005)

    def test_replies_that_do_not_say_what_they_cost_count_at_the_worst_price(self) -> None:
        work = Work(self.folder, pairs=50, arms={"judge": PRICED})
        silent = client.Outcome("reply", {key: value for key, value in reply().reply.items() if key != "usage"})
        found = work.go(lambda item, order, repeat: silent, usd=0.005)
        self.assertEqual(2, len(work.asked))
        self.assertRegex(
            str(found.problem), r"--max-usd 0.005 would be passed \(spent 0.00\d\d, .*; 2 tries of unknown cost"
        )

    def test_a_call_tries_again_only_while_the_money_reaches(self) -> None:
        # the worst request costs 0.00204 $: with 0.005 there is room for the first try and one further one
        work = Work(self.folder, pairs=1, arms={"judge": PRICED})
        allowed: list[bool] = []

        def tries(item: dict[str, Any], order: str, repeat: int) -> Any:
            permit = work.meter.permit("judge")
            allowed.extend(permit(unsure) for unsure in (1, 2, 3))
            return reply()

        work.go(tries, usd=0.005)
        self.assertEqual([True, False, False], allowed[:3])

    def test_tries_that_may_have_been_billed_count_at_the_worst_price(self) -> None:
        work = Work(self.folder, pairs=50, arms={"judge": PRICED})
        work.go(lambda item, order, repeat: reply()._replace(maybe_billed=2), usd=0.005)
        self.assertEqual(1, len(work.asked))

    def test_the_cost_of_an_earlier_part_of_the_run_counts(self) -> None:
        work = Work(self.folder, pairs=50, arms={"judge": PRICED})
        work.go(lambda item, order, repeat: reply(), usd=0.005)
        work.asked.clear()
        work.go(lambda item, order, repeat: reply(), usd=0.005)
        self.assertEqual([], work.asked)

    def test_minutes_are_counted_on_the_given_clock(self) -> None:
        work = Work(self.folder, pairs=50)

        def answer(item: dict[str, Any], order: str, repeat: int) -> Any:
            work.now += 30
            return reply()

        found = work.go(answer, minutes=2)
        self.assertEqual(4, len(work.asked))
        self.assertIn("--max-minutes 2", str(found.problem))

    def test_a_bug_in_a_worker_is_kept_and_stops_the_others(self) -> None:
        work = Work(self.folder, pairs=50)

        def answer(item: dict[str, Any], order: str, repeat: int) -> Any:
            raise ZeroDivisionError

        found = work.go(answer, workers=3)
        self.assertIsInstance(found.bug, ZeroDivisionError)
        self.assertLessEqual(len(work.asked), 3)


class Warnings(InFolder):
    def warned(self, answer: Answer, **settings: Any) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            work = Work(folder, pairs=10, arms={"judge": {**ARM, **settings}})
            return list(work.go(answer).take_warnings())

    def test_five_replies_without_a_call_in_a_row_give_one_warning(self) -> None:  # R03
        lines = self.warned(lambda item, order, repeat: reply(tool_calls=[]))
        self.assertEqual(1, len(lines))
        self.assertRegex(lines[0], "no_tool_call.*json_schema or text")

    def test_a_model_of_another_name_is_told_once(self) -> None:
        lines = self.warned(lambda item, order, repeat: reply(model="judge-1-0626"))
        self.assertEqual(["arm judge: asked for 'judge-1', served by 'judge-1-0626'"], lines)

    def test_a_second_served_model_is_told_when_it_appears(self) -> None:
        count = itertools.count()
        lines = self.warned(lambda item, order, repeat: reply(model="judge-1" if next(count) < 7 else "judge-2"))
        self.assertEqual(["arm judge: now served by 'judge-2', before by 'judge-1'"], lines)

    def test_a_name_that_the_arm_expects_is_no_warning(self) -> None:
        lines = self.warned(lambda item, order, repeat: reply(model="judge-1-0626"), response_model="judge-1-\\d+")
        self.assertEqual([], lines)

    def test_a_token_in_a_reply_is_told_with_the_item_and_never_shown(self) -> None:
        said = json.dumps({"choice": "A", "reason": f"it leaks {TOKEN}"})

        def answer(item: dict[str, Any], order: str, repeat: int) -> Any:
            leak = item["item_id"] == "pair-00003" and order == "swapped"
            return reply(tool_calls=[{"function": {"name": "grade", "arguments": said}}]) if leak else reply()

        lines = self.warned(answer)
        self.assertEqual(["arm judge: item pair-00003: the reply holds what looks like a token (github)"], lines)

    def test_words_that_merely_begin_like_a_key_are_no_warning(self) -> None:
        text = "see sk-learn-pipeline-example and risk-adjusted returns"
        self.assertEqual([], self.warned(lambda item, order, repeat: reply(content=text)))

    def test_a_token_in_a_pair_is_told_only_when_the_pair_is_sent_somewhere(self) -> None:
        items, _ = fixtures.load_items(evidence.row_bytes(runner.item(1, answer_a=f"key {TOKEN}")), "fixture.jsonl")
        live, control = evaluation.Arm("judge", ARM), evaluation.Arm("c", {"control": "first"})
        (line,) = callers.token_lines([control, live], items)
        self.assertIn("pair-00001", line)
        self.assertNotIn(TOKEN, line)
        self.assertEqual([], callers.token_lines([control], items))


class ReadingTheJournal(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.work = Work(self.folder, pairs=2)
        self.work.go(lambda item, order, repeat: reply())
        self.lines = Path(self.work.path).read_bytes().split(b"\n")[:-1]

    def write(self, lines: list[bytes]) -> None:
        Path(self.work.path).write_bytes(b"".join(line + b"\n" for line in lines))

    def refused(self, place: int, line: bytes, words: str) -> None:
        self.write([*self.lines[:place], line, *self.lines[place + 1 :]])
        with self.assertRaisesRegex(generate.JournalError, rf"journal.jsonl:{place + 1}.*{words}"):
            self.work.runs()

    def test_a_damaged_line_in_the_middle_is_an_error_that_names_it(self) -> None:
        cases = (b"{", b"", b"[]", b"\xff", self.lines[1][:-3], self.lines[1].replace(b'"judge"', b'"other"'))
        for line in cases:
            self.refused(1, line, "")

    def test_a_line_of_another_run_is_an_error(self) -> None:
        changes: list[tuple[str, Any]] = [
            ("repeat", 2),
            ("repeat", 0),
            ("order", "both"),
            ("item_id", "x"),
            ("repeat", "1"),
        ]
        for key, value in changes:
            entry = {**json.loads(self.lines[2]), key: value}
            self.refused(2, json.dumps(entry).encode(), "not a reply of this run")

    def test_a_field_of_another_type_is_named_before_anything_is_asked(self) -> None:
        for key, value in (
            ("model", -1),
            ("usage", True),
            ("usage", {"input": []}),
            ("latency_ms", []),
            ("retries", {}),
            ("attempts_maybe_billed", "x"),
            ("tool_calls", [1]),
        ):
            entry = json.loads(self.lines[2])
            entry["evidence"][key] = value
            self.refused(2, json.dumps(entry).encode(), f"evidence: field '{key}'")
        self.refused(2, json.dumps({**json.loads(self.lines[2]), "said": []}).encode(), "field 'said'")

    def test_of_two_lines_for_one_reply_the_first_counts_for_every_reader(self) -> None:  # C02
        second = json.loads(self.lines[0])
        second["said"]["choice"] = second["evidence"]["id"] = "B"
        self.write([*self.lines, json.dumps(second).encode()])
        self.work.asked.clear()
        self.work.go(lambda item, order, repeat: reply())
        self.assertEqual([], self.work.asked)
        self.assertRegex(self.work.warned[0], "1 duplicate")
        self.assertEqual("A", self.work.finished()[0]["tool_arguments"]["original"]["choice"])

    def test_a_failed_line_gives_way_to_a_later_reply_and_not_the_other_way_round(self) -> None:
        failed = json.loads(self.lines[0])
        failed["evidence"]["state"] = "failed"
        bad = json.dumps(failed).encode()
        for lines in ([bad, *self.lines], [*self.lines, bad]):
            self.write(lines)
            self.assertEqual([0, 4, 0, 0], self.work.runs()["judge"].progress.counts)

    def test_rows_of_a_run_that_is_not_complete_leave_out_half_judged_pairs(self) -> None:
        self.write(self.lines[:3])
        found = list(generate.raw_rows(self.work.path, self.work.items, self.work.runs(), partial=True))
        self.assertEqual(["pair-00000"], [row["item_id"] for row in found])
        with self.assertRaisesRegex(generate.JournalError, "no reply for pair-00001"):
            list(generate.raw_rows(self.work.path, self.work.items, self.work.runs()))

    def test_the_journal_goes_only_after_the_raw_rows_are_in_place(self) -> None:
        rows = self.work.finished()
        manifest = runner.manifest_of(Path(self.folder))
        self.assertEqual((2, "complete"), (len(rows), manifest["status"]))
        self.assertEqual(evidence.sha256_file(os.path.join(self.folder, "raw.jsonl.gz")), manifest["raw_sha256"])
        self.assertFalse(os.path.exists(self.work.path))


class Keys(InFolder):
    """engine/callers.py: where keys come from and what is refused."""

    def write(self, text: str, mode: int = 0o600) -> str:
        path = os.path.join(self.folder, "keys")
        Path(path).write_text(text, encoding="utf-8")
        os.chmod(path, mode)
        return path

    def keys(self, text: str, *arms: dict[str, Any], mode: int = 0o600) -> dict[str, Any]:
        listed = [evaluation.Arm(f"arm{number}", settings) for number, settings in enumerate(arms)]
        found: dict[str, Any] = callers.arm_keys(listed, self.write(text, mode), {"ONE_KEY": "from-environment"})
        return found

    def test_a_key_file_names_its_variables_and_goes_before_the_environment(self) -> None:
        text = "# two keys\nONE_KEY=first-key==\nexport TWO_KEY=second-key\n"
        found = self.keys(text, {**ARM, "key_env": "ONE_KEY"}, {**ARM, "key_env": "TWO_KEY"}, {"control": "first"})
        self.assertEqual({"arm0": "first-key==", "arm1": "second-key"}, found)

    def test_one_lone_key_suits_one_arm(self) -> None:
        self.assertEqual({"arm0": "lone-key-1=="}, self.keys("lone-key-1==\n", ARM, {"control": "first"}))
        with self.assertRaisesRegex(evaluation.SettingError, "one lone key"):
            self.keys("lone-key-1\n", ARM, ARM)

    @unittest.skipUnless(os.name == "posix", "file modes are POSIX")
    def test_a_key_file_that_others_may_read_is_refused_with_what_to_do(self) -> None:
        for mode in (0o644, 0o640, 0o604, 0o660):
            with self.assertRaisesRegex(evaluation.SettingError, "chmod 600"):
                self.keys("some-key\n", ARM, mode=mode)

    def test_what_is_wrong_with_a_key_file_is_said_without_showing_it(self) -> None:
        for text in ("", "ONE_KEY=a-secret\nanother-secret\n", "sec\u201dret-secret\n", "a secret\n"):
            with self.assertRaises(evaluation.SettingError) as caught:
                self.keys(text, ARM)
            self.assertNotIn("secret", str(caught.exception))

    def test_a_line_that_is_no_bare_key_is_refused_without_showing_it(self) -> None:
        names = ("ONE_KEY=", "one_key=", "ONE_KEY==", "ONE_KEY:secret", "one=secret", "secret=x", "Bearer:secret")
        others = ('{"ONE_KEY":"secret"}', '["secret"]', "ONE_KEY=TWO_KEY=secret", "ONE_KEY: secret", "s3cret===")
        for text in (*names, *others):
            with self.subTest(text):
                with self.assertRaises(evaluation.SettingError) as caught:
                    self.keys(text + "\n", {**ARM, "key_env": "ONE_KEY"})
                self.assertIn("key", str(caught.exception).replace("--key-file", ""))
                self.assertNotIn("cret", str(caught.exception))
        self.assertEqual({"arm0": "id:part"}, self.keys("ONE_KEY=id:part\n", {**ARM, "key_env": "ONE_KEY"}))

    def test_a_key_file_that_is_too_long_is_not_cut(self) -> None:
        with self.assertRaisesRegex(evaluation.SettingError, "larger than"):
            self.keys("# " + "x" * callers.MAX_KEY_FILE + "\nlone-key-1\n", ARM)

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_in_place_of_a_key_file_is_refused_and_not_waited_for(self) -> None:
        path = os.path.join(self.folder, "pipe")
        os.mkfifo(path, 0o600)
        with self.assertRaisesRegex(evaluation.SettingError, "expected a regular file"):
            callers.read_key_file(path)

    def test_a_key_in_another_spelling_or_in_capitals_is_found_in_an_input(self) -> None:
        key = "Zq8Rt5Yw/Lk9Mn3P"
        for text in (key, key.upper(), json.dumps(key).replace("/", "\\/"), "\\u005a" + key[1:], key.encode().hex(":"),
                     base64.b32encode(key.encode()).decode()):  # fmt: skip
            with (
                self.subTest(text),
                self.assertRaisesRegex(evaluation.SettingError, "^f:2: holds the API key of arm j"),
            ):
                callers.refuse_keys_in({"f": b"{}\n" + text.encode()}, {"j": key})

    def test_a_run_is_refused_when_an_input_holds_the_key_in_use(self) -> None:
        inputs = {"eval.json": b"{}", "fixture.jsonl": b'{"a": 1}\n{"b": "the-key-in-use-4711"}\n'}
        with self.assertRaises(evaluation.SettingError) as caught:
            callers.refuse_keys_in(inputs, {"judge": "the-key-in-use-4711"})
        self.assertIn("fixture.jsonl:2: holds the API key of arm judge", str(caught.exception))
        self.assertNotIn("the-key-in-use-4711", str(caught.exception))
        callers.refuse_keys_in(inputs, {"judge": "another-key", "local": "EMPTY", "none": None})


class Workers(unittest.TestCase):
    def workers(self, settings: dict[str, Any], **options: Any) -> int:
        chosen = type("Options", (), {"rpm": None, "concurrency": None, **options})
        return int(calling.workers_of([evaluation.Arm("judge", settings)], chosen)["judge"])

    def test_the_default_keeps_a_pace_busy_within_bounds(self) -> None:
        remote = {"endpoint": "https://judge.example/v1", "model": "m"}
        self.assertEqual([4, 6, 64], [self.workers({**remote, "rpm": rpm}) for rpm in (None, 18, 6000)])

    def test_a_local_server_gets_one_request_at_a_time_unless_asked(self) -> None:
        self.assertEqual([1, 9], [self.workers(ARM), self.workers(ARM, concurrency=9)])

    def test_a_control_has_one_worker_whatever_is_asked(self) -> None:
        self.assertEqual(1, self.workers({"control": "first"}, concurrency=50))

    def test_more_workers_than_threads_can_be_are_refused(self) -> None:
        for value in (1001, 10**400, 2.5):
            (line,) = providers.arm_problems("x", {**ARM, "concurrency": value})
            self.assertIn("expected a whole number from 1 to 1000", line)
        self.assertEqual([], providers.arm_problems("x", {**ARM, "concurrency": 1000}))


if __name__ == "__main__":
    unittest.main()
