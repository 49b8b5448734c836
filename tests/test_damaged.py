"""Runs and output places that are not what they should be, met by whole commands: one clear line, never a wait.

Every case changes one thing of a good control run, or starts the command with a broken stdout.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import runner
from parallel import beside
from rooms import ROOT, room

FIFOS = hasattr(os, "mkfifo")
FULL = "/dev/full"


def set_field(**fields: Any) -> Callable[[Path], None]:
    """A change of some fields of the manifest."""

    def change(run: Path) -> None:
        text = json.dumps({**runner.manifest_of(run), **fields})
        (run / "manifest.json").write_text(text, encoding="utf-8")

    return change


def set_rows(change: Callable[[list[dict[str, Any]]], list[Any]]) -> Callable[[Path], None]:
    """A change of the raw rows, with the manifest's sums made to match."""

    def apply(run: Path) -> None:
        rows = change(runner.rows_of(run))
        data = gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        set_raw(data)(run)

    return apply


def second_row(shape: Callable[[dict[str, Any]], Any]) -> Callable[[list[dict[str, Any]]], list[Any]]:
    """A change of the second row alone."""
    return lambda rows: [rows[0], shape(rows[1]), *rows[2:]]


def set_raw(data: bytes) -> Callable[[Path], None]:
    """Other bytes as the raw file, with the manifest's sum made to match."""

    def apply(run: Path) -> None:
        (run / "raw.jsonl.gz").write_bytes(data)
        set_field(raw_sha256=room("evidence").sha256(data))(run)

    return apply


def as_pipe(name: str) -> Callable[[Path], None]:
    """A named pipe in the place of a file."""

    def apply(run: Path) -> None:
        (run / name).unlink()
        os.mkfifo(run / name)

    return apply


class DamagedRun(unittest.TestCase):
    """--rescore and --plan --calibrate of a run that was changed in one place."""

    work: tempfile.TemporaryDirectory[str]
    top: Path
    evaluation: Path
    good: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = tempfile.TemporaryDirectory()
        cls.top = Path(cls.work.name)
        cls.evaluation = runner.make_evaluation(cls.top / "e", [runner.item(number) for number in range(6)])
        made = runner.cli(cls.evaluation, "--generate", "--arms", "control-first", cwd=cls.top)
        assert made.returncode == 0, made.stderr
        cls.good = runner.run_folder(cls.top)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.work.cleanup()

    def said(self, change: Callable[[Path], None], *mode: str, code: int = 3) -> str:
        """What a command says of a changed copy of the run."""
        with tempfile.TemporaryDirectory() as place:
            run = Path(place) / "run"
            shutil.copytree(self.good, run)
            change(run)
            found = runner.cli(self.evaluation, *mode, run, cwd=self.top, timeout=60)
        self.assertEqual(code, found.returncode, found.stderr)
        self.assertNotIn("Traceback", found.stderr)
        return found.stderr

    def test_a_wrong_field_of_the_manifest_is_named(self) -> None:
        for field, changes in (
            ("repeats", {"repeats": "one"}),
            ("arms", {"arms": {}}),
            ("totals.control-first", {"totals": {"control-first": 5}}),
            ("totals.control-first.served_models", {"totals": {"control-first": {"served_models": 5}}}),
        ):
            with self.subTest(field=field):
                self.assertIn(f"manifest.json: field '{field}'", self.said(set_field(**changes), "--rescore"))

    def test_rows_that_are_missing_from_a_complete_run_are_a_mismatch(self) -> None:
        said = self.said(set_rows(lambda rows: rows[:-2]), "--rescore", code=1)
        self.assertIn("raw.jsonl.gz: control-first: 2 rows are missing", said)

    def test_more_rows_than_the_run_can_have_end_the_reading(self) -> None:
        for mode in (("--rescore",), ("--plan", "--arms", "pareto", "--calibrate")):
            with self.subTest(mode=mode):
                said = self.said(set_rows(lambda rows: rows * 2), *mode)
                self.assertIn("expected at most 6 rows, got more", said)

    def test_a_row_of_another_shape_is_named_with_its_line(self) -> None:
        shapes: tuple[Callable[[dict[str, Any]], Any], ...] = (
            lambda row: {**row, "replies": []},
            lambda row: {**row, "replies": {**row["replies"], "original": {"state": "ok"}}},
            lambda row: {key: value for key, value in row.items() if key != "errors"},
        )
        plan = ("--plan", "--arms", "pareto", "--calibrate")
        for number, (shape, mode) in enumerate((*((shape, ("--rescore",)) for shape in shapes), (shapes[0], plan))):
            with self.subTest(number=number, mode=mode):
                said = self.said(set_rows(second_row(shape)), *mode)
                self.assertRegex(said, r"raw\.jsonl\.gz:2: .*field '")

    def test_a_packed_file_of_blank_lines_is_not_read_to_its_end(self) -> None:
        bomb = gzip.compress(b"\n" * 3_000_000)
        self.assertLess(len(bomb), 4_000)
        for mode in (("--rescore",), ("--plan", "--arms", "pareto", "--calibrate")):
            with self.subTest(mode=mode):
                self.assertIn("lines are blank", self.said(set_raw(bomb), *mode))

    @unittest.skipUnless(FIFOS, "no named pipes on this system")
    def test_a_pipe_in_the_place_of_a_file_is_refused_not_waited_for(self) -> None:
        for name in ("manifest.json", "raw.jsonl.gz"):
            with self.subTest(name=name):
                self.assertIn("expected a regular file", self.said(as_pipe(name), "--rescore"))

    @unittest.skipUnless(FIFOS, "no named pipes on this system")
    def test_a_pipe_in_the_place_of_an_input_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            evaluation = Path(place) / "e"
            shutil.copytree(self.evaluation, evaluation)
            as_pipe("fixture.jsonl")(evaluation)
            found = runner.cli(evaluation, "--plan", "--arms", "pareto", cwd=self.top, timeout=60)
        self.assertEqual(1, found.returncode, found.stderr)
        self.assertIn("fixture.jsonl: expected a regular file", found.stderr)


class BrokenStdout(unittest.TestCase):
    """A full disk behind stdout is exit 3 and one line; a closed stdout or stderr changes nothing else."""

    COMMANDS = (
        ("run_eval.py", "--plan", "--arms", "pareto"),
        ("check.py", str(ROOT / "receipts" / "controls" / "scored.jsonl.gz")),
        ("report.py", str(ROOT / "receipts" / "controls"), "--format", "csv"),
    )

    @unittest.skipUnless(os.path.exists(FULL), f"no {FULL} on this system")
    def test_a_full_disk_is_said(self) -> None:
        for program, *words in self.COMMANDS:
            with self.subTest(program=program), open(FULL, "w") as full:
                found = subprocess.run(
                    [sys.executable, "-I", str(ROOT / program), *words],
                    stdout=full,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                )
                self.assertEqual(3, found.returncode, found.stderr)
                self.assertRegex(found.stderr, r"^\w+: error: stdout: No space left on device\n$")

    @unittest.skipUnless(os.name == "posix", "closes file descriptors as a POSIX shell does")
    def test_a_closed_stream_is_no_error(self) -> None:
        for number in (1, 2):
            for program, *words in self.COMMANDS:
                with self.subTest(program=program, closed=number):
                    found = subprocess.run(
                        ["/bin/sh", "-c", f'exec "$@" {number}>&-', "sh", sys.executable, "-I", str(ROOT / program)]
                        + words,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        encoding="utf-8",
                    )
                    self.assertEqual(0, found.returncode, found.stdout)
                    self.assertNotIn("Traceback", found.stdout)


load_tests = beside("test_damaged")


if __name__ == "__main__":
    unittest.main()
