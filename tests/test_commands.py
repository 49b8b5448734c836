"""The commands that messages give to paste: they name the evaluation's folder, and they work."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import runner
from rooms import ROOT, room

commands = room("commands")


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = Path(temporary.name).resolve()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.work)

    def run_of(self, slug: str, place: str = "runs") -> str:
        """A folder that looks like a run of an evaluation, seen from here."""
        folder = Path(place, slug, "2026-11-29T00-00-00-000000Z")
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"slug": slug}), encoding="utf-8")
        return str(folder)

    def evaluation(self, place: str, slug: str) -> None:
        Path(place).mkdir(parents=True, exist_ok=True)
        Path(place, "eval.json").write_text(json.dumps({"slug": slug}), encoding="utf-8")

    def test_the_default_evaluation_is_not_named(self) -> None:
        run = self.run_of(commands.DEFAULT_SLUG)
        self.assertEqual(f"{commands.script('run_eval.py')} --rescore {run}", commands.command_for(run, "--rescore"))

    def test_the_default_slug_is_that_of_the_evaluation_here(self) -> None:
        found = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))["slug"]
        self.assertEqual(commands.DEFAULT_SLUG, found)

    def test_an_evaluation_is_found_here_and_beside_the_runs(self) -> None:
        self.evaluation("mine", "one")
        self.evaluation("elsewhere/evals/two", "two")
        for slug, place, expected in (("one", "runs", "mine"), ("two", "elsewhere/runs", "elsewhere/evals/two")):
            run = self.run_of(slug, place)
            self.assertEqual(
                f"{commands.script('run_eval.py')} {expected} --resume {run}", commands.command_for(run, "--resume")
            )

    def test_an_evaluation_that_is_not_found_is_left_open(self) -> None:
        run = self.run_of("gone")
        self.assertEqual(
            f"{commands.script('run_eval.py')} DIR --rescore {run}", commands.command_for(run, "--rescore")
        )

    def test_a_page_names_the_folder_whatever_it_finds_around_it(self) -> None:
        self.evaluation("mine", "one")
        for slug, words in ((commands.DEFAULT_SLUG, []), ("one", ["DIR"])):
            found = commands.command_anywhere(slug, "--diff", "a b", "c")
            self.assertTrue(found.startswith("python3 -I run_eval.py "))
            self.assertEqual([*words, "--diff", "a b", "c"], shlex.split(found)[3:])

    def test_names_with_blanks_are_quoted(self) -> None:
        found = commands.command(str(self.work / "my eval"), "--resume", "my runs/x")
        self.assertEqual(["my eval", "--resume", "my runs/x"], shlex.split(found)[3:])

    def test_what_is_no_json_has_no_slug(self) -> None:
        for number, text in enumerate(("", "{", "[]", '{"slug": 3}', "[" * 100_000)):
            path = self.work / f"{number}.json"
            path.write_text(text, encoding="utf-8")
            self.assertIsNone(commands.slug_in(str(path)))
        self.assertIsNone(commands.slug_in("nowhere"))

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_has_no_slug_and_is_not_waited_for(self) -> None:
        os.mkfifo("eval.json")
        self.assertIsNone(commands.slug_in("eval.json"))


class Pasted(unittest.TestCase):
    """Hints of an evaluation of one's own, printed by the scripts and pasted into a shell as they are."""

    work: Path
    made: subprocess.CompletedProcess[str]
    run_path: str

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.work = Path(temporary.name).resolve()
        runner.make_evaluation(cls.work / "my-eval", [runner.item(n) for n in range(4)], slug="my-eval")
        cls.made = runner.cli("my-eval", "--generate", "--arms", "control-first", cwd=cls.work)
        cls.run_path = cls.made.stdout.strip()

    def hinted(self, text: str) -> str:
        """The command in the last hint."""
        hints = [line for line in text.split("\n") if line.startswith("hint: ") and "run_eval.py" in line]
        return hints[-1][hints[-1].index("python3 -I ") :]

    def command(self, words: str) -> str:
        """The command with these words, as it has to be called from the working folder."""
        return f"python3 -I {os.path.relpath(ROOT / 'run_eval.py', self.work)} {words}"

    def paste(self, line: str) -> Any:
        words = [sys.executable, *shlex.split(line)[1:]]
        return subprocess.run(words, cwd=self.work, env=runner.environment(), capture_output=True, encoding="utf-8")

    def test_1_the_page_says_how_the_run_is_scored_first(self) -> None:
        words = [sys.executable, "-I", str(ROOT / "report.py"), self.run_path]
        done = subprocess.run(words, cwd=self.work, capture_output=True, encoding="utf-8")
        self.assertEqual(3, done.returncode)
        self.assertEqual(self.command(f"my-eval --rescore {self.run_path}"), self.hinted(done.stderr))
        self.assertEqual(0, self.paste(self.hinted(done.stderr)).returncode)

    def test_a_run_of_another_evaluation_names_its_folder(self) -> None:
        for mode in ("--rescore", "--resume"):
            done = runner.cli(mode, self.run_path, cwd=self.work)
            self.assertEqual(3, done.returncode)
            self.assertEqual(self.command(f"my-eval {mode} {self.run_path}"), self.hinted(done.stderr))
            self.assertEqual(0, self.paste(self.hinted(done.stderr)).returncode)

    def test_the_hint_to_see_a_result_and_the_one_of_a_merge_name_it_too(self) -> None:
        self.assertEqual(self.command(f"my-eval --rescore {self.run_path}"), self.hinted(self.made.stderr))
        other = runner.cli("my-eval", "--generate", "--arms", "control-longer", cwd=self.work).stdout.strip()
        done = runner.cli("my-eval", "--merge", self.run_path, other, cwd=self.work)
        self.assertEqual(0, self.paste(self.hinted(done.stderr)).returncode)

    def test_a_receipt_is_verified_by_the_command_it_prints(self) -> None:
        done = runner.cli("my-eval", "--receipt", self.run_path, "--out", "receipt", cwd=self.work)
        self.assertEqual(self.command("my-eval --verify receipt"), self.hinted(done.stderr))
        self.assertEqual(0, self.paste(self.hinted(done.stderr)).returncode)

    def test_a_changed_file_is_pinned_by_the_command_that_the_refusal_prints(self) -> None:
        runner.make_evaluation(self.work / "changed", [runner.item(1)], slug="changed")
        runner.write_fixture(self.work / "changed", [runner.item(2)])
        done = runner.cli("changed", "--plan", cwd=self.work)
        self.assertEqual(1, done.returncode)
        self.assertEqual(self.command("changed --freeze"), self.hinted(done.stderr))
        self.assertEqual(0, self.paste(self.hinted(done.stderr)).returncode)
        self.assertEqual(0, runner.cli("changed", "--plan", cwd=self.work).returncode)


if __name__ == "__main__":
    unittest.main()
