"""The end of a run that is not complete: why replies failed, what to change, and a resume that takes the change."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fault_server
import runner
from fault_server import FaultServer
from rooms import room

ending, evaluations = room("ending"), room("evaluation")
EVALUATION = SimpleNamespace(folder=room("commands").toolkit_home())


def way_on(code: str | None, frozen: bool = False, **settings: Any) -> str:
    arm = evaluations.Arm("judge", settings, frozen=frozen)
    found: str = ending.way_on(EVALUATION, "RUN", arm if code else None, code)
    return found


class Words(unittest.TestCase):
    def test_a_run_that_stopped_by_itself_is_simply_resumed(self) -> None:
        for code in (None, "connection", "no_credit", "retry_after", "certificate", "http_503"):
            self.assertEqual(f"resume with: {room('commands').script('run_eval.py')} --resume RUN", way_on(code))

    def test_pace_and_limits_are_named_again_with_a_higher_limit_where_the_money_is_spent(self) -> None:
        given = SimpleNamespace(rpm=30.0, concurrency=8, by_item=True, timeout=None, key_file="a b", max_usd=5.0)
        words = " --rpm 30.0 --concurrency 8 --by-item --key-file 'a b'"
        self.assertEqual(words + " --max-usd 5.0", ending.same_pace(given))
        self.assertEqual(words + " --max-usd 12.0", ending.same_pace(given, 12.0))
        self.assertEqual("", ending.same_pace(None))

    def test_the_higher_limit_is_what_the_whole_run_should_cost(self) -> None:
        generate = room("generate")
        arm = evaluations.Arm("judge", {"price_usd_per_mtok": {"input": 1, "cached": 1, "output": 1}})
        for done, cost, limit, expected in (
            (25, 0.0731, 0.1, 0.33),  # a quarter done: 4 x 0.0731 x 1.1 = 0.3217, and a request of 0.001
            (0, 0.0, 0.1, 0.2),
            (100, 0.05, 0.1, 0.2),  # already enough by this reckoning: tries that failed were billed as well
            (50, 800.0, 1000.0, 1800.0),
        ):
            run = generate.ArmRun(
                arm, {"max_tokens": 900, "_longest_request_bytes": 100}, 50, 1, ("original", "swapped")
            )
            run.progress.counts, run.progress.cost = [100 - done, done, 0, 0], cost
            with self.subTest(done=done):
                self.assertEqual(expected, ending.enough_usd({"judge": run}, limit))
        run.progress.counts, run.progress.cost, run.progress.maybe_billed = [96, 4, 0, 0], 0.004, 20
        # 25 x (0.004 + 20 x 0.00104) x 1.1 = 0.682, and a request of 0.00104
        self.assertEqual(0.69, ending.enough_usd({"judge": run}, 0.02))

    def test_a_refused_key_is_changed_where_it_stands(self) -> None:
        self.assertTrue(way_on("auth").endswith("--resume RUN --key-env VAR"))
        self.assertTrue(way_on("auth", key_env="K").endswith("--resume RUN --key-env VAR"))
        self.assertIn("into K, then resume with: ", way_on("auth", frozen=True, key_env="K"))
        self.assertIn("change arms.judge in eval.json", way_on("auth", frozen=True))

    def test_a_refused_request_is_not_simply_resumed(self) -> None:
        for code in ("not_found", "bad_request", "http_400", "http_422", "redirect"):
            self.assertIn("a resumed run asks the same: change the command and start again", way_on(code))
            self.assertIn("change arms.judge in eval.json", way_on(code, frozen=True))

    def test_hints_speak_of_flags_for_a_judge_of_the_command_line(self) -> None:
        refusals = room("refusals")
        for field, expected in (
            ("seed", "this server knows no seed; put --omit seed into the command"),
            ("max_tokens", "put --rename max_tokens=max_completion_tokens into the command"),
            ("tools", "put --output-mode json_schema or "),
            ("strict", "take --strict out of the command"),
        ):
            hint = refusals.FIELD_HINTS[field]
            self.assertIn(expected, ending.in_flags(hint, False))
            self.assertEqual(hint, ending.in_flags(hint, True))

    def test_reasons_are_counted_and_the_last_words_shown(self) -> None:
        self.assertEqual("", ending.failed_text({}, ""))
        found = ending.failed_text({"timeout": 1, "http_500": 2}, "HTTP 500: down")
        self.assertEqual(" (http_500 2, timeout 1; the last: HTTP 500: down)", found)


class Names(unittest.TestCase):
    def test_a_label_that_would_be_misread_is_refused(self) -> None:
        for label in ("control-mine", "pareto", "a:b", "a b", "a,b", "../x", "-x", "x" * 61, ""):
            with self.subTest(label), self.assertRaisesRegex(evaluations.UsageError, "--arm-label"):
                evaluations.custom_name({"arms": {"pareto": {}}}, label)

    def test_a_judge_of_ones_own_has_its_label_or_is_called_custom(self) -> None:
        for label, expected in ((None, "custom"), ("qwen2.5-7b", "qwen2.5-7b")):
            self.assertEqual(expected, evaluations.custom_name({"arms": {}}, label))


class Ended(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = Path(temporary.name)
        self.evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(3)])

    def serve(self, behaviour: fault_server.Behaviour | None = None) -> FaultServer:
        server = FaultServer(behaviour)
        server.__enter__()
        self.addCleanup(server.close)
        return server

    def cli(self, *words: object, **more: Any) -> Any:
        done = runner.cli(self.evaluation, *words, "--quiet", cwd=self.work, **more)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def custom(self, server: FaultServer, *words: object) -> Any:
        base = ("--arms", "custom", "--base-url", server.base, "--model", "judge-1")
        return self.cli("--generate", *base, *words)

    def locked(self, key: str) -> fault_server.Behaviour:
        """A judge that answers only who brings the key."""
        judge, refusal = fault_server.judge(), fault_server.http("401 Unauthorized", b'{"error": "no key"}')

        def behave(request: Any) -> Any:
            good = request.headers.get("authorization") == f"Bearer {key}"
            return judge(request) if good else fault_server.Raw(refusal)

        return behave

    def test_a_run_without_its_key_is_resumed_with_one(self) -> None:
        server = self.serve(self.locked("key-of-mine-12345"))
        done = self.custom(server)
        self.assertEqual((3, 1), (done.returncode, len(server.requests)))
        self.assertIn("hint: name the variable that holds the key: --key-env VAR\n", done.stderr)
        run = runner.run_folder(self.work)
        resumed = done.stderr.rstrip("\n").split("hint: resume with a key that is accepted: ")[1]
        self.assertTrue(resumed.endswith(" --key-env VAR"), resumed)
        done = self.cli("--resume", run, "--key-env", "MINE", env={"MINE": "key-of-mine-12345"})
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual("MINE", runner.manifest_of(run)["arm_settings"]["custom"]["key_env"])
        self.assertEqual(0, self.cli("--rescore", run).returncode)

    def test_a_resume_with_a_key_file_sends_its_key(self) -> None:
        server = self.serve(self.locked("key-of-mine-12345"))
        self.custom(server)
        path = self.work / "keys"
        path.write_text("key-of-mine-12345\n", encoding="utf-8")
        path.chmod(0o600)
        done = self.cli("--resume", runner.run_folder(self.work), "--key-file", path)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_a_key_variable_is_refused_for_a_run_of_listed_judges(self) -> None:
        options = SimpleNamespace(key_env="K", price=None)
        manifest = {"arms": ["pareto"], "arm_settings": {"pareto": {"endpoint": "https://x"}}, "unlisted_arms": []}
        with self.assertRaises(evaluations.UsageError) as caught:
            room("modes").with_own_flags(manifest, options)
        self.assertIn("only pareto", str(caught.exception))

    def test_the_reasons_of_failed_replies_are_told_at_the_end_and_in_the_result(self) -> None:
        down = fault_server.http("400 Bad", b'{"error": {"message": "kaputt"}}')
        judge = fault_server.judge()
        server = self.serve(lambda request: judge(request) if request.number < 4 else fault_server.Raw(down))
        done = self.custom(server)
        self.assertEqual(3, done.returncode)
        reasons = "http_400 3; the last: HTTP 400 Bad: kaputt"
        self.assertIn(f"3 of 6 replies on disk, 3 failed ({reasons}); the run is not complete", done.stderr)
        shown = self.cli("--rescore", runner.run_folder(self.work))
        self.assertEqual(3, shown.returncode)
        self.assertIn(f"custom: replies 3 ok, 0 invalid, 3 failed, 0 missing; failed: {reasons}\n", shown.stdout)

    def test_a_receipt_of_it_says_that_it_is_not_complete_and_how_to_resume(self) -> None:
        server = self.serve()
        self.custom(server, "--max-requests", 2)
        run = runner.run_folder(self.work)
        done = self.cli("--receipt", run)
        self.assertEqual((3, ""), (done.returncode, done.stdout))
        self.assertRegex(
            done.stderr, r"the run is not complete\nhint: resume with: python3 -I \S+run_eval.py e --resume \S+\n$"
        )

    def test_a_limit_in_dollars_without_a_price_is_refused_before_anything_is_sent(self) -> None:
        server = self.serve()
        done = self.custom(server, "--max-usd", 5)
        self.assertEqual((2, ["e"]), (done.returncode, [path.name for path in self.work.iterdir()]))
        self.assertIn("--price IN,CACHED,OUT", done.stderr)
        self.assertEqual(0, self.custom(server, "--max-usd", 5, "--price", "1,1,1").returncode)

    def test_two_judges_of_ones_own_are_told_apart_and_merged(self) -> None:
        server = self.serve()
        made = [self.custom(server, "--arm-label", label).stdout.strip() for label in ("small-one", "big.one")]
        done = self.cli("--merge", *made)
        self.assertEqual(0, done.returncode, done.stderr)
        shown = self.cli("--rescore", done.stdout.strip()).stdout
        for label in ("small-one", "big.one"):
            self.assertIn(f"{label} (judge-1, not on the frozen list)", shown)
        self.assertIn("small-one - big.one", shown)
        rows = runner.rows_of(self.work / done.stdout.strip())
        self.assertEqual({"small-one", "big.one"}, {row["arm"] for row in rows})


if __name__ == "__main__":
    unittest.main()
