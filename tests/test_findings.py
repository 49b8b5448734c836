"""FINDINGS.md: every figure of the text is in its table of claims, and every claim comes out of runs made anew."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made
from test_mt_bench_run import copy_toolkit

RELEASE = ("items.jsonl", "questions.jsonl", "reference_answers_gpt4.jsonl", "judge_prompts.jsonl")
RECORDED = os.path.join(made.SHARED, "replies_gpt4_pair.jsonl")
HAVE_SHARED = all(os.path.exists(os.path.join(made.SHARED, name)) for name in (*RELEASE, RECORDED))
findings = made.module(os.path.join(made.ROOT, "evals", "mt-bench", "findings.py"), "mtbench_findings")
with open(os.path.join(made.ROOT, "FINDINGS.md"), encoding="utf-8", newline="\n") as stream:
    TEXT = stream.read()
FLAT = " ".join(findings.text_before_claims(TEXT).split())
CLAIMS = findings.claims_of(TEXT)
# What looks like a figure and is none of a run: the level of the intervals, the paper's title figure, a test's margin.
NO_CLAIM = ("95% interval", 'in 85%"', "published 85%", "a grace of 0.15")
FIGURE = re.compile(r"\d\.\d|\d%|\d{3}|\d of \d")


class Text(unittest.TestCase):
    def test_every_claim_stands_in_the_text_once_with_its_figure(self) -> None:
        for claim in CLAIMS:
            with self.subTest(claim.key):
                self.assertEqual(FLAT.count(f"({claim.key})"), 1)
                self.assertIn(f"{claim.figure} ({claim.key})", FLAT)

    def test_no_name_stands_for_two_claims(self) -> None:
        names = [claim.key for claim in CLAIMS]
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_every_figure_of_the_text_is_a_claim(self) -> None:
        rest = re.sub(r"`[^`]*`", "", FLAT)
        for claim in CLAIMS:
            rest = rest.replace(f"{claim.figure} ({claim.key})", "")
        for known in (*NO_CLAIM, "of 2023", "python3"):
            rest = rest.replace(known, "")
        self.assertEqual([rest[max(0, hit.start() - 40) : hit.end() + 10] for hit in FIGURE.finditer(rest)], [])


class Claims(unittest.TestCase):
    SUMMARY = {
        "turn-1": {
            "share": {"k": 3, "n": 4, "value": 0.75, "low": 0.5, "high": 0.9},
            "more": {"value": -0.1, "low": -0.2, "high": 0.01},
            "list": [{"n": 1234}],
            "p": 0.00001,
        }
    }

    def check(self, figure: str, path: str, slack: float = 0.0, times: int = 1) -> str | None:
        claim = findings.Claim("X1", figure, (("turn-1", path),) * times)
        got: str | None = findings.check_claim(claim, self.SUMMARY, slack)
        return got

    def test_a_figure_comes_out_in_each_of_its_forms(self) -> None:
        cases = [
            ("0.750 [0.500, 0.900], 3 of 4", "share"),
            ("0.750 [0.500, 0.900]", "share"),
            ("3 of 4", "share"),
            ("-0.100 [-0.200, +0.010]", "more"),
            ("1,234", "list / 0 / n"),
            ("<0.0001", "p"),
        ]
        for figure, path in cases:
            with self.subTest(figure):
                self.assertIsNone(self.check(figure, path))

    def test_a_figure_that_differs_in_any_part_does_not_come_out(self) -> None:
        cases = [
            ("0.751 [0.500, 0.900], 3 of 4", "share"),
            ("0.750 [0.501, 0.900], 3 of 4", "share"),
            ("0.750 [0.500, 0.900], 3 of 5", "share"),
            ("0.100 [-0.200, +0.010]", "more"),
            ("1,235", "list / 0 / n"),
            ("0.0001", "p"),
        ]
        for figure, path in cases:
            with self.subTest(figure):
                self.assertIsNotNone(self.check(figure, path))

    def test_slack_is_for_the_ends_of_intervals_alone(self) -> None:
        self.assertIsNone(self.check("0.750 [0.520, 0.890]", "share", slack=0.1))
        self.assertIsNotNone(self.check("0.750 [0.400, 0.890]", "share", slack=0.1))
        self.assertIsNotNone(self.check("0.751 [0.500, 0.900]", "share", slack=0.1))

    def test_several_places_are_added_up(self) -> None:
        self.assertIsNone(self.check("2,468", "list / 0 / n", times=2))
        self.assertIsNone(self.check("6 of 8", "share", times=2))
        with self.assertRaisesRegex(findings.FindingError, "only whole numbers"):
            self.check("0.1", "p", times=2)

    def test_a_place_that_is_not_there_is_named(self) -> None:
        for path in ("shares", "list / 1 / n", "share / k / x"):
            with self.subTest(path), self.assertRaisesRegex(findings.FindingError, f"nothing at '{path}'"):
                self.check("1", path)

    def test_a_table_without_claims_or_with_an_unknown_run_is_refused(self) -> None:
        for text in ("no table", "## Table of claims\n| `A1` | 1 | `turn-9: items` |\n"):
            with self.subTest(text), self.assertRaises(findings.FindingError):
                findings.claims_of(text)


@unittest.skipUnless(HAVE_SHARED, "the public release is not there: ../shared/data/mt_bench")
class Recomputed(unittest.TestCase):
    """The release, GPT-4's recorded replies and the figures, by the commands a reader would use."""

    folder: str
    out: str

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = scratch.name
        copy_toolkit(cls.folder)
        shutil.copy(os.path.join(made.ROOT, "FINDINGS.md"), cls.folder)
        items, *prompts = (os.path.join(made.SHARED, name) for name in RELEASE)
        for turn in ("1", "2"):
            cls.script("mt-bench/build.py", "--from", items, "--prompts", *prompts, "--turn", turn)
        cls.script("mt-bench-100/build.py")
        given = ("--out", os.path.join(cls.folder, "runs"), "--bootstrap", "500", "--slack", "0.1")
        cls.out = cls.script("mt-bench/findings.py", RECORDED, *given)

    @classmethod
    def script(cls, name: str, *arguments: str) -> str:
        command = [sys.executable, "-I", os.path.join(cls.folder, "evals", name), *arguments]
        done = subprocess.run(command, cwd=tempfile.gettempdir(), capture_output=True)
        out = done.stdout.decode("utf-8")
        if done.returncode:
            wrong = [line for line in out.split("\n") if ": does not; it is" in line]
            raise AssertionError("\n".join([f"{name}: exit {done.returncode}", *wrong, done.stderr.decode("utf-8")]))
        return out

    def summary(self, name: str) -> Any:
        """The summary of the run with both arms."""
        (path,) = glob.glob(os.path.join(self.folder, "runs", name, "*", "*", "summary.json"))
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)

    def test_every_figure_comes_out_of_runs_made_anew(self) -> None:
        """Counts and values to the digit; the ends of intervals, from fewer resamples, within a tenth of the width."""
        self.assertIn(f"{len(CLAIMS)} of {len(CLAIMS)} figures come out", self.out)

    def test_gpt_4_comes_out_as_published_on_both_turns(self) -> None:
        published = {
            "turn-1": {"S1": ((886, 1343), (454, 721)), "S2": ((726, 859), (388, 479))},
            "turn-2": {"S1": ((871, 1325), (471, 707)), "S2": ((731, 867), (388, 474))},
        }
        changed = invalid = 0
        for turn, expected in published.items():
            result = self.summary(turn)
            setups = result["tables"]["figures"]["setups"][findings.ARM]
            found = {
                setup: tuple((shown[who]["k"], shown[who]["n"]) for who in ("judge", "people"))
                for setup, shown in setups.items()
            }
            self.assertEqual(found, expected)
            position = result["position"][findings.ARM]
            changed += position["n"] - position["consistent"]
            invalid += result["arms"][findings.ARM]["counts"]["invalid"]
        self.assertEqual((changed, invalid), (292, 2))
        first = self.summary("turn-1")
        self.assertEqual((first["items"], first["no_consensus"], first["human"]["votes"]), (910, 105, 1689))


if __name__ == "__main__":
    unittest.main()
