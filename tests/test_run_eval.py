"""run_eval.py as people run it: pins, exit codes, messages, what is written and what is not, offline enforced."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import runner
from fault_server import FaultServer
from parallel import beside
from rooms import ROOT, room

PINNED = ["fixture.jsonl", "recipe.py", "check.py", "agreement.py", "client.py", "run_eval.py", "engine/tables.py"]
TOOLKIT = ("recipe.py", "check.py", "agreement.py", "client.py", "run_eval.py", "eval.json", "fixture.jsonl")


def copy_toolkit(folder: Path) -> Path:
    """The files that the docstring names, and nothing else."""
    folder.mkdir(parents=True)
    for name in TOOLKIT:
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "engine", folder / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = Path(temporary.name)

    def run_in(self, toolkit: Path, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
        """The copy's run_eval.py from this test's folder."""
        line = [sys.executable, "-I", str(toolkit / "run_eval.py"), *map(str, words)]
        env = runner.environment(**more.pop("env", {}))
        return subprocess.run(
            line, cwd=self.work, env=env, capture_output=True, encoding="utf-8", timeout=120, check=False, **more
        )

    def left(self) -> list[str]:
        return sorted(os.listdir(self.work))


class Demo(InFolder):
    def test_the_demo_needs_nothing_but_the_named_files_and_shows_three_controls(self) -> None:
        done = self.run_in(copy_toolkit(self.work / "kit"), "--demo", "--bootstrap", 200, "--format", "json")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        found = json.loads(done.stdout)
        first, longer = found["arms"]["control-first"], found["arms"]["control-longer"]
        self.assertEqual(
            (0.0, 0.0), (first["metrics"]["position_consistency"]["value"], first["metrics"]["kappa"]["value"])
        )
        self.assertEqual(1.0, longer["metrics"]["position_consistency"]["value"])
        folder = runner.run_folder(self.work, "planted-faults")
        names = {"manifest.json", "raw.jsonl.gz", "scored.jsonl.gz", "summary.json", "inputs"}
        self.assertLessEqual(names, set(os.listdir(folder)))
        self.assertFalse((folder / "journal.jsonl").exists() or (folder / "lock").exists())
        words = [sys.executable, "-I", str(ROOT / "check.py"), str(folder / "scored.jsonl.gz")]
        checked = subprocess.run(words, cwd=self.work, capture_output=True, encoding="utf-8", timeout=60, check=False)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)

    def test_equal_runs_give_equal_rows_and_summaries_in_any_locale_and_time_zone(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n, text="Größe? 北京") for n in range(8)])
        found = []
        for name, env in (("one", {}), ("two", {"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Pacific/Kiritimati"})):
            (self.work / name).mkdir()
            done = runner.cli(evaluation, "--demo", cwd=self.work / name, env=env)
            self.assertEqual(0, done.returncode, done.stderr)
            folder = runner.run_folder(self.work / name)
            found.append(
                (runner.timeless(folder), (folder / "summary.json").read_bytes(), done.stdout.partition("\nrun:")[0])
            )
        self.assertEqual(found[0], found[1])


class Pins(InFolder):
    def test_one_changed_byte_in_a_pinned_file_is_refused_with_expected_and_got(self) -> None:
        kit = copy_toolkit(self.work / "kit")
        for name in PINNED:
            path = kit / name
            sound = path.read_bytes()
            path.write_bytes(sound.replace(b"e", b"E", 1) if name == "fixture.jsonl" else sound + b"\n")
            done = self.run_in(kit, "--plan")
            path.write_bytes(sound)
            with self.subTest(name):
                self.assertEqual((1, ""), (done.returncode, done.stdout), done.stderr)
                self.assertRegex(
                    done.stderr, rf"error: \S*{re.escape(name)}: sha256 expected [0-9a-f]{{64}}, got [0-9a-f]{{64}}"
                )
        self.assertEqual(["kit"], self.left())

    def test_every_mode_refuses_a_changed_file_before_it_does_anything(self) -> None:
        kit = copy_toolkit(self.work / "kit")
        with open(kit / "check.py", "ab") as stream:
            stream.write(b"\n")
        own = ["--import-replies", "x", "--arm-label", "y"]
        modes = (["--demo"], ["--plan"], ["--generate"], ["--resume", "x"], ["--rescore", "x"], own, ["--prune", "0"])
        for words in modes:
            done = self.run_in(kit, *words)
            with self.subTest(words[0]):
                self.assertEqual(1, done.returncode)
                self.assertIn("check.py: sha256 expected", done.stderr)
                self.assertIn("--freeze", done.stderr)
        self.assertEqual(["kit"], self.left())

    def test_the_code_that_runs_is_the_code_that_was_hashed(self) -> None:
        kit = copy_toolkit(self.work / "kit")
        for module in ("recipe", "check", "client", "evidence", "json"):
            (self.work / f"{module}.py").write_text("raise SystemExit('a stranger')", encoding="utf-8")
        done = self.run_in(kit, "--plan", "--limit", 1, env={"PYTHONPATH": str(self.work)})
        self.assertEqual(0, done.returncode, done.stderr)

    def test_a_missing_or_foreign_engine_file_is_refused(self) -> None:
        kit = copy_toolkit(self.work / "kit")
        (kit / "engine" / "extra.py").write_text("", encoding="utf-8")
        self.assertIn("extra.py: sha256 expected None", self.run_in(kit, "--plan").stderr)
        (kit / "engine" / "extra.py").unlink()
        (kit / "engine" / "rows.py").unlink()
        self.assertIn("engine/rows.py: is pinned and missing", self.run_in(kit, "--plan").stderr)

    def test_freeze_pins_anew_shows_what_changed_and_is_quiet_the_second_time(self) -> None:
        kit = copy_toolkit(self.work / "kit")
        with open(kit / "check.py", "ab") as stream:
            stream.write(b"\n")
        first = self.run_in(kit, "--freeze")
        self.assertRegex(first.stdout, r"1 pins changed\n  check.py: [0-9a-f]{64} -> [0-9a-f]{64}\n")
        self.assertIn("0 pins changed", self.run_in(kit, "--freeze").stdout)
        self.assertEqual(0, self.run_in(kit, "--plan", "--limit", 1).returncode)

    def test_freeze_refuses_what_no_run_could_use_and_pins_nothing(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(3)])
        settings = (evaluation / "eval.json").read_bytes()
        good = (evaluation / "fixture.jsonl").read_bytes()
        (evaluation / "check.py").write_text("def score(:\n", encoding="utf-8")
        unusable = settings.replace(b'"decision": "both"', b'"decision": "most"')
        code = re.sub(rb'"check": "[^"]*"', b'"check": "check.py"', settings)
        for fixture, config, words in (
            (good.replace(b'"gold": "A"', b'"gold": "a"'), settings, "fixture.jsonl:1: .*'gold': expected A, B, equal"),
            (good + b"{bad\n", settings, "fixture.jsonl:4: .*not JSON"),
            (good, unusable, "eval.json: field 'decision': expected both or original, got 'most'"),
            (good, code, "check.py: no Python: "),
        ):
            (evaluation / "fixture.jsonl").write_bytes(fixture)
            (evaluation / "eval.json").write_bytes(config)
            done = runner.cli(evaluation, "--freeze", cwd=self.work)
            with self.subTest(words):
                self.assertEqual((1, ""), (done.returncode, done.stdout))
                self.assertRegex(done.stderr, words)
                self.assertIn("nothing was pinned", done.stderr)
                self.assertEqual(config, (evaluation / "eval.json").read_bytes())

    def test_freeze_is_refused_while_a_run_is_incomplete_unless_forced(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(4)])
        with FaultServer() as server:
            runner.cli(evaluation, "--generate", *runner.judge_at(server.base, max_requests=1), cwd=self.work)
        refused = runner.cli(evaluation, "--freeze", cwd=self.work)
        self.assertEqual(3, refused.returncode)
        self.assertIn("is incomplete", refused.stderr)
        self.assertEqual(0, runner.cli(evaluation, "--freeze", "--force", cwd=self.work).returncode)

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_in_place_of_a_manifest_is_no_incomplete_run(self) -> None:
        folder = self.work / "runs" / "small" / "x"
        folder.mkdir(parents=True)
        os.mkfifo(folder / "manifest.json")
        self.assertEqual([], room("run_eval").incomplete_runs(str(self.work / "runs"), "small"))

    def test_a_freeze_that_cannot_write_names_eval_json(self) -> None:
        evaluation, run_eval = runner.make_evaluation(self.work / "e", [runner.item(1)]), room("run_eval")
        (evaluation / "check.py").write_bytes((ROOT / "check.py").read_bytes() + b"\n")
        config = json.loads((evaluation / "eval.json").read_text(encoding="utf-8"))
        config["files"]["check"] = "check.py"
        (evaluation / "eval.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        refusal = mock.patch("os.replace", side_effect=PermissionError(13, "Permission denied", "eval.json.tmp.7"))
        with refusal, self.assertRaises(run_eval.PinError) as caught:
            run_eval.freeze_config(str(evaluation))
        self.assertEqual(f"{evaluation / 'eval.json'}: cannot be written: Permission denied", str(caught.exception))

    def test_an_evaluation_cannot_name_files_outside_the_toolkit(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(1)])
        config = json.loads((evaluation / "eval.json").read_text(encoding="utf-8"))
        config["files"]["recipe"] = "/etc/hostname"
        (evaluation / "eval.json").write_text(json.dumps(config), encoding="utf-8")
        done = runner.cli(evaluation, "--plan", cwd=self.work)
        self.assertEqual(1, done.returncode)
        self.assertIn("files.recipe: expected a path inside", done.stderr)


class BeforeAnythingIsSent(InFolder):
    """Mistakes that are found at once: one message, exit 2 or 3, no folder."""

    def setUp(self) -> None:
        super().setUp()
        self.evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(4)])

    def refused(self, code: int, words: str, *options: object, **more: Any) -> str:
        done = runner.cli(self.evaluation, *options, cwd=self.work, **more)
        self.assertEqual((code, ""), (done.returncode, done.stdout), done.stderr)
        self.assertRegex(done.stderr, words)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(["e"], self.left())
        return done.stderr

    def test_a_missing_key_is_one_line_that_names_the_variable_with_exit_3(self) -> None:
        err = self.refused(3, "UNBIASED_API_KEY is not set", "--generate", "--arms", "pareto")
        self.assertEqual(1, err.count("error:"))

    def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(self) -> None:
        custom = runner.judge_at("http://127.0.0.1:9/v1")
        for key in ("secret-\nnewline", "secret-\u201dquote", "Bearer secret-word", "secret-key\n"):
            err = self.refused(3, runner.KEY_ENV, "--generate", *custom, env={runner.KEY_ENV: key})
            self.assertNotIn("secret", err)

    def test_a_key_in_use_that_stands_in_a_setting_is_refused_without_showing_it(self) -> None:
        base, key = "http://127.0.0.1:9/v1", runner.CANARY
        for field, words in (
            ("extra_body", ["--extra-body", json.dumps({"user": {"name": key}})]),
            ("endpoint", ["--base-url", f"{base}/{key}"]),
            ("model", ["--model", key]),
            ("name", ["--arm-label", key]),
        ):
            with self.subTest(field):
                err = self.refused(3, f"{field}.*holds the API key", "--generate", *runner.judge_at(base), *words)
                self.assertNotIn(key, err)

    def test_wrong_arms_and_addresses_are_refused_by_name(self) -> None:
        self.refused(2, "unknown arm 'nobody'", "--generate", "--arms", "nobody")
        self.refused(2, "needs --base-url and --model", "--generate", "--arms", "custom")
        self.refused(2, "http", "--generate", *runner.judge_at("http://judge.example/v1"))
        self.refused(2, "--extra-body", "--generate", *runner.judge_at("http://127.0.0.1:9/v1"), "--extra-body", "[1]")
        self.refused(2, "--price", "--generate", *runner.judge_at("http://127.0.0.1:9/v1"), "--price", "cheap")

    def test_wrong_flags_give_exit_2(self) -> None:
        for words in (
            ["--plan", "--limit", "0"],
            ["--plan", "--rpm", "-1"],
            ["--plan", "--rpm", "nan"],
            ["--shard", "1/2"],
        ):
            self.refused(2, "usage:", *words)
        self.refused(2, "--shard: expected I/N", "--plan", "--shard", "3/2")
        self.refused(2, "allowed with|not allowed", "--plan", "--demo")

    def test_a_faulty_fixture_is_refused_with_every_faulty_line(self) -> None:
        runner.write_fixture(self.evaluation, [runner.item(1), runner.item(2, answer_a=None), runner.item(3, gold="C")])
        runner.freeze(self.evaluation)
        err = self.refused(3, "fixture.jsonl:2: .*'answer_a'", "--plan")
        self.assertRegex(err, "fixture.jsonl:3: .*'gold': expected A, B, equal or null, got 'C'")

    def test_a_split_without_pairs_is_refused(self) -> None:
        self.refused(3, "no item in split 'dev'", "--generate", "--arms", "control-first", "--split", "dev")

    def test_what_is_no_run_is_refused(self) -> None:
        self.refused(3, "no such run", "--rescore", "nowhere")
        self.refused(3, "is missing; .* is not a run", "--resume", self.evaluation)

    def test_an_endpoint_that_is_not_there_stops_the_run_with_its_address(self) -> None:
        options = runner.judge_at("http://127.0.0.1:9/v1", max_requests=1)
        done = runner.cli(self.evaluation, "--generate", *options, cwd=self.work)
        self.assertEqual(3, done.returncode)
        self.assertIn("127.0.0.1", done.stderr)
        self.assertIn("0 of 8 replies on disk", done.stderr)


class Plan(InFolder):
    def test_the_plan_prints_the_same_bytes_twice_and_writes_nothing(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(4)])
        for form in ("table", "json"):
            first, second = (
                runner.cli(evaluation, "--plan", "--arms", "pareto,control-first", "--format", form, cwd=self.work)
                for _ in range(2)
            )
            self.assertEqual((0, first.stdout), (first.returncode, second.stdout))
            self.assertTrue(first.stdout)
        self.assertEqual(["e"], self.left())


class Offline(InFolder):
    def test_an_offline_mode_cannot_open_a_connection_whoever_asks(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(2)])
        attempts = (
            "import socket; socket.create_connection(('127.0.0.1', 9))",
            "import socket; socket.getaddrinfo('localhost', 9)",
            "import os; os.system('true')",
            "import subprocess; subprocess.Popen(['true'])",
        )
        config = json.loads((evaluation / "eval.json").read_text(encoding="utf-8"))
        config["files"] = {"check": str(ROOT / "check.py")}
        (evaluation / "eval.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        for attempt in attempts:
            (evaluation / "recipe.py").write_text(attempt, encoding="utf-8")
            runner.freeze(evaluation)
            done = runner.cli(evaluation, "--plan", cwd=self.work)
            with self.subTest(attempt):
                self.assertNotEqual(0, done.returncode)
                self.assertIn("this mode is offline", done.stderr)


class Live(InFolder):
    def test_a_run_against_an_endpoint_is_measured_end_to_end(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(12)])
        with FaultServer() as server:
            options = runner.judge_at(server.base, concurrency=3, price="1,0.1,10", repeats=2)
            done = runner.cli(evaluation, "--generate", *options, cwd=self.work)
            self.assertEqual(0, done.returncode, done.stderr)
            asked = server.requests
        self.assertEqual(48, len(asked))
        self.assertEqual({f"Bearer {runner.CANARY}"}, {request.headers["authorization"] for request in asked})
        self.assertFalse([request for request in asked if "temperature" in request.json()])
        folder = Path(self.work, done.stdout.strip())
        shown = runner.cli(evaluation, "--rescore", folder, "--format", "json", cwd=self.work)
        result = json.loads(shown.stdout)
        self.assertEqual(0, shown.returncode, shown.stderr)
        self.assertEqual({"ok": 24, "invalid": 0, "failed": 0, "missing": 0}, result["arms"]["custom"]["counts"])
        self.assertGreater(result["cost_usd"]["custom"]["value"], 0)
        self.assertFalse(result["arms"]["custom"]["listed"])
        self.assertEqual([], runner.holders(self.work, runner.CANARY))

    def test_names_of_gates_and_fields_are_refused_before_a_result_is_shown(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n, difficulty="hard") for n in range(3)])
        runner.cli(evaluation, "--demo", cwd=self.work)
        folder = runner.run_folder(self.work)
        for option, value, words in (
            ("--gate", "kapa>=0.5", "no metric 'kapa'; there are kappa, "),
            ("--gate", "nobody:kappa>=0.5", "no judge 'nobody'; there are control-longer, "),
            ("--gate", "kappa>=0.5 @90", "are 95%"),
            ("--by", "nope", "--by: no pair has a field 'nope'; there are category, "),
        ):
            done = runner.cli(evaluation, "--rescore", folder, option, value, cwd=self.work)
            self.assertEqual((2, ""), (done.returncode, done.stdout), done.stderr)
            self.assertIn(words, done.stderr)
        flat = ("--by", "category,difficulty", "--gate", "control-longer:consistent>=0.5")
        done = runner.cli(evaluation, "--rescore", folder, *flat, cwd=self.work)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("--by difficulty: no table: the field is 'hard' in every pair here", done.stderr)
        self.assertIn("By category", done.stdout)

    def test_a_recorded_choice_that_its_reply_does_not_say_is_a_mismatch(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(3)])
        runner.cli(evaluation, "--demo", cwd=self.work)
        folder = runner.run_folder(self.work)
        rows = runner.rows_of(folder)
        rows[0]["tool_arguments"]["original"]["choice"] = "equal"
        room("evidence").write_rows(str(folder / "raw.jsonl.gz"), rows)
        done = runner.cli(evaluation, "--rescore", folder, cwd=self.work)
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, "raw.jsonl.gz: sha256 expected")
        self.assertRegex(done.stderr, r"raw.jsonl.gz:1: original: recorded .*'equal'.*, the kept reply says")

    def test_ids_and_texts_of_any_script_never_break_the_output(self) -> None:  # C08
        rows = [runner.item(n, item_id=f"北京-{n}\u2713", category="Größe") for n in range(4)]
        evaluation = runner.make_evaluation(self.work / "e", rows)
        for encoding in ("cp1252", "ascii"):
            done = runner.cli(
                evaluation, "--demo", "--disagreements", cwd=self.work, env={"PYTHONIOENCODING": encoding}
            )
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("北京-0", done.stdout)

    @unittest.skipUnless(shutil.which("head"), "no head command")
    def test_a_reader_that_goes_away_gives_no_traceback(self) -> None:  # C09
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(3)])
        runner.cli(evaluation, "--demo", cwd=self.work)
        words = runner.command(evaluation, "--rescore", runner.run_folder(self.work), "--format", "json")
        process = subprocess.Popen(words, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        err = process.stderr.read().decode()
        process.stderr.close()
        self.assertIn(process.wait(60), (0, 141))
        self.assertNotIn("Traceback", err)
        self.assertNotIn("Exception ignored", err)

    def test_two_shards_together_ask_exactly_what_one_run_asks(self) -> None:
        evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(7)])
        found = []
        for shard in (None, "1/2", "2/2"):
            words = ["--shard", shard] if shard else []
            done = runner.cli(evaluation, "--generate", "--arms", "control-longer", *words, cwd=self.work)
            self.assertEqual(0, done.returncode, done.stderr)
            found.append([row["item_id"] for row in runner.rows_of(runner.run_folder(self.work))])
        self.assertEqual((4, 3), (len(found[1]), len(found[2])))
        self.assertEqual(found[0], sorted(found[1] + found[2]))


class Prune(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(2)])
        runner.cli(self.evaluation, "--generate", "--arms", "control-first", cwd=self.work)
        self.top = self.work / "runs" / "small"
        first = runner.run_folder(self.work)
        for number in range(3):
            shutil.copytree(first, self.top / f"9000-01-0{number + 1}T00-00-00-000000Z")
        self.runs = sorted(self.top.iterdir())

    def prune(self, keep: int, answer: str) -> tuple[int, list[Path], str]:
        done = runner.cli(self.evaluation, "--prune", keep, cwd=self.work, stdin=answer)
        return done.returncode, sorted(path for path in self.top.iterdir() if path.is_dir()), done.stdout

    def test_only_an_explicit_yes_removes_and_only_the_oldest(self) -> None:
        for answer in ("", "no\n", "y\n"):
            self.assertEqual((3, self.runs), self.prune(1, answer)[:2])
        self.assertEqual((0, self.runs[2:]), self.prune(2, "yes\n")[:2])

    def test_incomplete_and_receipted_runs_and_what_is_no_run_are_kept(self) -> None:
        manifest = self.runs[0] / "manifest.json"
        manifest.write_text(manifest.read_text("utf-8").replace('"complete"', '"incomplete"'), encoding="utf-8")
        (self.runs[1] / "receipt").mkdir()
        (self.runs[1] / "receipt" / "receipt.json").write_text("{}", encoding="utf-8")
        (self.top / "notes").mkdir()
        code, left, out = self.prune(0, "yes\n")
        self.assertEqual((0, [*self.runs[:2], self.top / "notes"]), (code, left), out)
        self.assertIn("kept: incomplete", out)
        self.assertIn("kept: a receipt rests on it", out)

    def test_a_run_that_a_published_receipt_names_is_kept(self) -> None:
        prune = room("prune")
        digest = runner.manifest_of(self.runs[0])["raw_sha256"]
        (self.work / "receipts").mkdir()
        (self.work / "receipts" / "receipt.json").write_text(json.dumps({"raw": digest}), encoding="utf-8")
        receipted = prune.receipted_hashes(str(self.work / "receipts"))
        removable, _ = prune.choose(str(self.top), "small", 0, receipted)
        self.assertNotIn(str(self.runs[0]), removable)

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_among_the_receipts_is_refused_and_not_waited_for(self) -> None:
        os.mkfifo(self.work / "receipt.json")
        with self.assertRaisesRegex(OSError, "expected a regular file"):
            room("prune").receipted_hashes(str(self.work))


class Start(unittest.TestCase):
    def test_help_loads_none_of_the_heavy_modules(self) -> None:
        heavy = ["ssl", "http.client", "concurrent.futures", "gzip", "html", "urllib.request", "json", "hashlib"]
        probe = (
            "import runpy, sys\n"
            f"sys.argv = [{str(ROOT / 'run_eval.py')!r}, '--help']\n"
            "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\nexcept SystemExit: pass\n"
            f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
        )
        words = [sys.executable, "-I", "-c", probe]
        done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=60, check=False)
        self.assertEqual("[]", done.stderr.strip())
        self.assertIn("python3 -I run_eval.py --demo", done.stdout)

    def test_a_room_is_executed_once_and_when_it_is_first_used_whoever_is_first(self) -> None:
        name, lock, found = "a_room_of_this_test", threading.RLock(), []
        self.addCleanup(sys.modules.pop, name, None)
        code = b"import time\ntimes = [1]\ntime.sleep(0.05)\ndef answer():\n    return last\nlast = 42\n"
        room("run_eval").load_later("nowhere.py", name, code, lock)
        module = sys.modules[name]
        self.assertNotIn("times", vars(module))
        threads = [threading.Thread(target=lambda: found.append(module.answer())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([42] * 8, found)
        self.assertEqual("module", type(module).__name__)
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nothing'"):
            _ = module.nothing

    def test_the_loader_is_the_same_text_wherever_it_is_repeated(self) -> None:
        pattern = re.compile(r"def load\(path.*?return module\n", re.DOTALL)
        found = {}
        for path in [*ROOT.glob("*.py"), *ROOT.glob("evals/*/*.py")]:
            text = path.read_text(encoding="utf-8")
            for match in pattern.findall(text):
                found[path.name] = match
        self.assertIn("run_eval.py", found)
        self.assertEqual(1, len(set(found.values())), list(found))

    def test_rows_are_written_with_the_same_bytes_as_any_gzip_reads(self) -> None:
        data = b"".join(room("evidence").gzip_pieces([b"one\n", b"two\n"]))
        self.assertEqual(b"one\ntwo\n", gzip.decompress(data))


load_tests = beside("test_run_eval")


if __name__ == "__main__":
    unittest.main()
