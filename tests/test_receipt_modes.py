"""The commands around receipts, run for real: from another folder, offline, with exit codes and messages."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import published_evidence
import receipt_folders as small
from parallel import beside
from rooms import ROOT, room

pinned, receipts, verify, modes = room("pinned"), room("receipt"), room("verify"), room("receipt_modes")
foreign = room("foreign")
KEPT = ("recipe.py", "check.py", "agreement.py", "client.py", "run_eval.py", "engine")
TEST_PAIRS = 12


def small_toolkit(folder: str) -> None:
    """The toolkit in a folder of its own, with a fixture of a few pairs, frozen; no repository, no receipts."""
    os.makedirs(folder)
    for name in KEPT:
        source, target = ROOT / name, os.path.join(folder, name)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    config = json.loads((ROOT / "eval.json").read_bytes())
    config.update(repeats=2, bootstrap={"resamples": 100, "level": 0.95})
    Path(folder, "eval.json").write_bytes(small.evidence.pretty(config))
    made = [
        {**item, "split": "test", "item_id": f"pair-{n}"} for n, item in enumerate([*small.items(), *small.items()])
    ]
    Path(folder, "fixture.jsonl").write_bytes(small.lines_of(made[:TEST_PAIRS]))
    os.makedirs(os.path.join(folder, "receipts"))


class CommandCase(unittest.TestCase):
    """One demo run of a small toolkit, and one receipt of it, for the tests of this file."""

    top = ""
    home = ""
    run_folder = ""
    receipt = ""

    @classmethod
    def command(cls, *arguments: str, home: str | None = None) -> Any:
        program = os.path.join(home or cls.home, "run_eval.py")
        environment = {**os.environ, "LC_ALL": "C", "TZ": "Asia/Kathmandu"}
        return subprocess.run(
            [sys.executable, "-I", program, *arguments], cwd=cls.top, env=environment, capture_output=True, text=True
        )


def setUpModule() -> None:
    case = CommandCase
    case.top = tempfile.mkdtemp()
    unittest.addModuleCleanup(shutil.rmtree, case.top)
    case.home = os.path.join(case.top, "toolkit")
    small_toolkit(case.home)
    case.command("--freeze")
    case.run_folder = re.findall(r"^run: (.*)$", case.command("--demo").stdout, re.MULTILINE)[0]
    case.receipt = os.path.join(case.top, "receipt")
    made = case.command("--receipt", case.run_folder, "--out", case.receipt)
    assert made.returncode == 0, made.stderr


class Verifying(CommandCase):
    def test_a_good_receipt_exits_0_with_the_verdict_last(self) -> None:
        for path in (self.receipt, os.path.join(self.receipt, "receipt.json"), self.run_folder):
            with self.subTest(path):
                done = self.command("--verify", path)
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                self.assertTrue(done.stdout.rstrip("\n").split("\n")[-1].startswith("ok: "), done.stdout)

    def test_a_broken_receipt_exits_1_and_names_the_check(self) -> None:
        broken = os.path.join(self.top, "broken")
        shutil.copytree(self.receipt, broken)
        small.edit_json(broken, "summary.json", lambda v: v.update(items=3))
        done = self.command("--verify", broken, "--format", "json")
        self.assertEqual(1, done.returncode)
        failing = [check["name"] for check in json.loads(done.stdout)["checks"] if check["status"] == "FAIL"]
        self.assertEqual(["hashes", "figures", "receipt"], failing)

    def test_the_published_format_is_verified_by_the_same_command(self) -> None:
        published = published_evidence.write(os.path.join(self.top, "published"))
        done = self.command("--verify", published)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertTrue(done.stdout.rstrip("\n").split("\n")[-1].startswith("ok: "), done.stdout)

    def test_a_rescore_leaves_a_receipt_as_it_is(self) -> None:
        copy = os.path.join(self.top, "copy")
        shutil.copytree(self.receipt, copy)
        before = {path.name: path.read_bytes() for path in Path(copy).glob("*") if path.is_file()}
        done = self.command("--rescore", copy, "--bootstrap", "50")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("is a receipt: its figures are worked out again, its files left as they are", done.stderr)
        refused = self.command("--rescore", copy, "--report")
        self.assertEqual(2, refused.returncode)
        self.assertIn("report.py", refused.stderr)
        after = {path.name: path.read_bytes() for path in Path(copy).glob("*") if path.is_file()}
        self.assertEqual(before, after)

    def test_quoted_figures_decide_the_exit_code(self) -> None:
        self.assertEqual(
            0, self.command("--verify", self.receipt, "--expect", "control-first.agreement=0.00").returncode
        )
        self.assertEqual(
            1, self.command("--verify", self.receipt, "--expect", "control-first.agreement=0.01").returncode
        )
        self.assertEqual(2, self.command("--verify", self.receipt, "--expect", "kappa").returncode)

    def test_a_figure_of_several_judges_is_asked_for_by_judge_and_an_unknown_one_lists_what_there_is(self) -> None:
        for name, words in (("kappa", "name the judge too: "), ("kapa", "there are kappa, agreement, ")):
            done = self.command("--verify", self.receipt, "--expect", f"{name}=0.00")
            self.assertEqual(1, done.returncode)
            self.assertIn(words, done.stdout)
        for name in ("control-first:agreement", "control-first.agreement", "control-first:consistent"):
            done = self.command("--verify", self.receipt, "--expect", f"{name}=0.00")
            self.assertEqual(0, done.returncode, done.stdout)

    def test_a_figure_that_two_files_tell_differently_is_shown_with_both(self) -> None:
        broken = os.path.join(self.top, "forged")
        shutil.copytree(self.receipt, broken)
        found = json.loads(Path(broken, "summary.json").read_text("utf-8"))["arms"]["control-longer"]["metrics"][
            "kappa"
        ]
        small.edit_json(
            broken, "summary.json", lambda v: v["arms"]["control-longer"]["metrics"]["kappa"].update(value=0.77)
        )
        done = self.command("--verify", broken)
        path = "arms.control-longer.metrics.kappa.value"
        self.assertIn(f"{path}: expected {found['value']}, got 0.77", done.stdout)
        self.assertIn(
            f"receipt.figures.{path}: receipt.json says {found['value']}, summary.json says 0.77", done.stdout
        )
        self.assertNotIn("expected 0.77", done.stdout)

    def test_a_folder_that_holds_no_evidence_is_one_short_error(self) -> None:
        other = os.path.join(self.top, "other", "deep")
        os.makedirs(other)
        Path(other, "notes.txt").write_text("mine", encoding="utf-8")
        done = self.command("--verify", os.path.dirname(other))
        self.assertEqual((3, "", 1), (done.returncode, done.stdout, done.stderr.count("\n")), done.stderr)
        self.assertIn("is no receipt and no run", done.stderr)

    def test_what_is_no_evidence_exits_3_with_one_message(self) -> None:
        for path in (os.path.join(self.top, "nowhere"), os.path.join(self.home, "check.py")):
            with self.subTest(path):
                done = self.command("--verify", path)
                self.assertEqual(3, done.returncode)
                self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_pinned_code_agrees_with_ours(self) -> None:
        done = self.command("--verify", self.receipt, "--run-pinned-code")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("72 rows: the pinned recipe and check say what ours say", done.stdout)


class OtherModes(CommandCase):
    def test_a_run_that_cannot_become_a_receipt_is_warned_of_before_and_refused_after(self) -> None:
        done = self.command("--generate", "--arms", "control-first", "--limit", "3", "--quiet")
        self.assertIn("could not become a receipt: limit", done.stderr)
        refused = self.command("--receipt", done.stdout.strip(), "--out", os.path.join(self.top, "none"))
        self.assertEqual(3, refused.returncode)
        self.assertIn("run it without --limit", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.top, "none")))

    def test_the_plan_says_so_too(self) -> None:
        done = self.command("--plan", "--arms", "control-first", "--split", "test", "--repeats", "1")
        self.assertIn("could not become a receipt: repeats", done.stdout)
        whole = self.command("--plan", "--arms", "control-first", "--format", "json")
        self.assertEqual([], json.loads(whole.stdout)["no_receipt"])

    def test_shards_of_two_processes_are_merged_and_become_a_receipt(self) -> None:
        parts = []
        for number in ("1/2", "2/2"):
            done = self.command("--generate", "--arms", "control-random", "--shard", number, "--quiet")
            parts.append(done.stdout.strip())
        merged = self.command("--merge", *parts)
        self.assertEqual(0, merged.returncode, merged.stderr)
        target = os.path.join(self.top, "merged-receipt")
        done = self.command("--receipt", merged.stdout.strip(), "--out", target)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(0, self.command("--verify", target).returncode)

    def test_a_pending_receipt_is_completed_with_its_baseline(self) -> None:
        first = self.command("--generate", "--arms", "control-first", "--quiet").stdout.strip()
        second = self.command("--generate", "--arms", "control-longer", "--quiet").stdout.strip()
        pending, target = os.path.join(self.top, "pending"), os.path.join(self.top, "both")
        self.assertEqual(0, self.command("--receipt", first, "--pending", "--out", pending).returncode)
        done = self.command("--receipt", pending, "--merge-baseline", second, "--out", target)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(0, self.command("--verify", target).returncode)

    def test_two_runs_are_compared(self) -> None:
        done = self.command("--diff", self.run_folder, self.receipt)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("same config hash", done.stdout)

    def test_flags_that_need_another_exit_2(self) -> None:
        runner = room("run_eval")
        for arguments in (["--demo", "--pending"], ["--demo", "--expect", "kappa=1"], ["--plan", "--run-pinned-code"]):
            parser = runner.build_parser()
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()):
                with self.assertRaises(SystemExit) as caught:
                    runner.check_options(parser, parser.parse_args(arguments))
                self.assertEqual(2, caught.exception.code)


class Freezing(CommandCase):
    def test_is_refused_while_a_run_on_the_old_pins_is_incomplete(self) -> None:
        folder = os.path.join(self.top, "runs", "planted-faults", "2026-01-01T00-00-00-000000Z")
        os.makedirs(folder)
        self.addCleanup(shutil.rmtree, folder)
        Path(folder, "manifest.json").write_text('{"status": "incomplete"}', encoding="utf-8")
        done = self.command("--freeze")
        self.assertEqual(3, done.returncode)
        self.assertIn("is incomplete", done.stderr)
        self.assertEqual(0, self.command("--freeze", "--force").returncode)

    def test_shows_what_changed_and_makes_the_change_count(self) -> None:
        home = os.path.join(self.top, "changed")
        small_toolkit(home)
        self.command("--freeze", home=home)
        with open(os.path.join(home, "check.py"), "a", encoding="utf-8") as stream:
            stream.write("# a remark\n")
        self.assertEqual(1, self.command("--plan", home=home).returncode)
        done = self.command("--freeze", home=home)
        self.assertIn("1 pins changed", done.stdout)
        self.assertIn("check.py: ", done.stdout)
        self.assertEqual(0, self.command("--plan", "--arms", "control-first", home=home).returncode)


class OurPins(unittest.TestCase):
    def test_are_current(self) -> None:
        done = subprocess.run(
            [sys.executable, "-I", str(ROOT / "run_eval.py"), "--plan", "--arms", "control-first", "--limit", "1"],
            capture_output=True,
            text=True,
            cwd=tempfile.gettempdir(),
        )
        self.assertEqual(0, done.returncode, done.stderr)

    def test_have_the_names_that_verification_reads(self) -> None:
        self.assertEqual(room("run_eval").PINS, foreign.PIN_NAMES)


class OurReceipts(unittest.TestCase):
    def test_all_verify(self) -> None:
        folders = sorted(path.parent for path in (ROOT / "receipts").glob("*/receipt.json"))
        if not folders:
            self.skipTest("no receipts in the repository yet")
        for folder in folders:
            with self.subTest(folder.name):
                done = subprocess.run(
                    [sys.executable, "-I", str(ROOT / "run_eval.py"), "--verify", str(folder)],
                    capture_output=True,
                    text=True,
                    cwd=tempfile.gettempdir(),
                )
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)


class TheDemosReceipts(unittest.TestCase):
    """The first table a newcomer sees holds the recorded real judge, when there is a receipt of one."""

    def setUp(self) -> None:
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        self.evaluation = small.small_evaluation()
        run = small.write_run(os.path.join(self.top, "run"), self.evaluation)
        self.receipts = os.path.join(self.top, "receipts")
        os.makedirs(self.receipts)
        receipts.publish([run], os.path.join(self.receipts, "real"), self.evaluation, None, False)

    def test_are_verified_and_only_their_real_judges_are_shown(self) -> None:
        judges, notes, problems = modes.recorded_judges(self.evaluation, self.receipts)
        self.assertEqual((["pareto (recorded)"], []), (list(judges), problems))
        self.assertIn("verified", notes[0])

    def test_stand_in_front_of_the_live_controls_in_every_table(self) -> None:
        judges, _, _ = modes.recorded_judges(self.evaluation, self.receipts)
        state = verify.verify(os.path.join(self.receipts, "real"), self.evaluation, small.START + 7200, [])
        live = state.fresh
        shown = modes.with_recorded(live, judges)
        self.assertEqual(["pareto (recorded)", "pareto", "control-first"], list(shown["arms"]))
        self.assertEqual(live["position"]["pareto"], shown["position"]["pareto (recorded)"])
        options = SimpleNamespace(format="table", by="category", disagreements=True)
        text = room("tables").render(shown, options)
        self.assertLess(text.index("pareto (recorded)"), text.index("control-first"))

    def test_that_do_not_verify_are_told_and_not_shown(self) -> None:
        small.edit_json(os.path.join(self.receipts, "real"), "summary.json", lambda v: v.update(items=3))
        judges, _, problems = modes.recorded_judges(self.evaluation, self.receipts)
        self.assertEqual({}, judges)
        self.assertIn("does not verify", problems[0])


class PinnedCode(unittest.TestCase):
    """Code of a stranger gets replies and gives answers; everything else is refused."""

    GOOD = b"def parse(reply, mode):\n    return {'choice': 'A', 'reason': mode}\n"
    CHECK = b"def score(item, arguments, config):\n    return {'gold': item['gold']}\n"
    MESSAGE = {"replies": {"original": {}}, "mode": "tool", "item": {"gold": "B"}, "arguments": {}}

    def answers(self, recipe: bytes) -> list[Any]:
        start = pinned.start_message(recipe, self.CHECK, {})
        return list(pinned.answers(pinned.child_path(), [start, self.MESSAGE], tempfile.gettempdir()))

    def test_that_only_computes_is_run(self) -> None:
        self.assertEqual(
            [{"said": {"original": {"choice": "A", "reason": "tool"}}, "score": {"gold": "B"}}], self.answers(self.GOOD)
        )

    def test_that_does_anything_else_is_refused(self) -> None:
        cases = {
            "reads a file": "open('/etc/passwd').read()",
            "writes a file": "open('left-behind', 'w')",
            "lists a folder": "import os; os.listdir('/')",
            "starts a process": "import os; os.system('true')",
            "forks": "import os; os.fork()",
            "connects": "import socket; socket.socket()",
            "loads native code": "import ctypes",
            "imports from disk": "import xmlrpc.client",
        }
        for name, code in cases.items():
            with self.subTest(name), self.assertRaisesRegex(foreign.ForeignError, "pinned code may not|No module"):
                self.answers(code.encode() + b"\n" + self.GOOD)

    def test_sees_no_environment(self) -> None:
        os.environ["A_SECRET_OF_OURS"] = "x"
        self.addCleanup(os.environ.pop, "A_SECRET_OF_OURS")
        code = b"import os\ndef parse(reply, mode):\n    return {'choice': 'A', 'reason': sorted(os.environ)}\n"
        seen = self.answers(code)[0]["said"]["original"]["reason"]
        self.assertLessEqual(set(seen), {"LC_CTYPE", "SYSTEMROOT"})  # Python sets the first by itself

    def test_that_ends_early_or_answers_too_much_is_refused(self) -> None:
        with self.assertRaisesRegex(foreign.ForeignError, "ended with"):
            self.answers(b"raise ValueError('no')\n")


load_tests = beside("test_receipt_modes")


if __name__ == "__main__":
    unittest.main()
