"""FINDINGS.md: every figure of the text is in its table of claims, and every claim comes out of runs made anew."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made
from test_mt_bench_run import HAVE_SHARED, RECORDED, RELEASE, copy_toolkit

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
    def test_every_figure_comes_out_of_runs_made_anew(self) -> None:
        """Counts and values to the digit; the ends of intervals, from fewer resamples, within a tenth of the width."""
        with tempfile.TemporaryDirectory() as folder:
            copy_toolkit(folder)
            shutil.copy(os.path.join(made.ROOT, "FINDINGS.md"), folder)
            items, *prompts = (os.path.join(made.SHARED, name) for name in RELEASE)
            for turn in ("1", "2"):
                self.run_script(
                    folder, "build.py", "--from", items, "--prompts", *prompts, "--turn", turn, evaluation="mt-bench"
                )
            self.run_script(folder, "build.py", evaluation="mt-bench-100")
            out = self.run_script(
                *(folder, "findings.py", RECORDED, "--out", os.path.join(folder, "runs")),
                *("--bootstrap", "300", "--slack", "0.1"),
                evaluation="mt-bench",
            )
            self.assertIn(f"{len(CLAIMS)} of {len(CLAIMS)} figures come out", out)

    def run_script(self, folder: str, script: str, *arguments: str, evaluation: str) -> str:
        path = os.path.join(folder, "evals", evaluation, script)
        done = subprocess.run([sys.executable, "-I", path, *arguments], cwd=tempfile.gettempdir(), capture_output=True)
        out = done.stdout.decode("utf-8")
        wrong = [line for line in out.split("\n") if ": does not; it is" in line]
        self.assertEqual((done.returncode, wrong), (0, []), done.stderr.decode("utf-8")[-2000:])
        return out


if __name__ == "__main__":
    unittest.main()
