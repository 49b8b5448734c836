"""Copies of one process that share a stream of pieces, and what --rescore makes with them: the same bytes as alone."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import runner
from parallel import beside
from rooms import room

crew, evidence, evaluations, modes, rescore = map(room, ("crew", "evidence", "evaluation", "modes", "rescore"))
HERE = sys.platform.startswith("linux")
WHY = "copies are only made on Linux"


def counting(total: int, copies: int) -> Callable[[int], Generator[bytes, None, bytes]]:
    """Copies that say the numbers below a total in turns."""

    def share(number: int) -> Generator[bytes, None, bytes]:
        for piece in range(number, total, copies):
            yield str(piece).encode() * 1000
        return f"copy {number}".encode()

    return share


@unittest.skipUnless(HERE, WHY)
class Copies(unittest.TestCase):
    def tearDown(self) -> None:
        with self.assertRaises(ChildProcessError, msg="a copy was left behind"):
            os.waitpid(-1, os.WNOHANG)

    def test_say_their_pieces_in_order_and_their_last_words(self) -> None:
        for total in (0, 1, 2, 3, 100, 101):
            with self.subTest(total):
                team = crew.Crew(3, counting(total, 3))
                said = [int(piece[: len(piece) // 1000]) for piece in team.pieces()]
                self.assertEqual(list(range(total)), said)
                self.assertEqual([b"copy 0", b"copy 1", b"copy 2"], team.last_words)

    def test_that_end_early_are_noticed(self) -> None:
        def fails(number: int) -> Generator[bytes, None, bytes]:
            yield b"one"
            if number == 1:
                raise ValueError("no")
            yield b"two"
            return b""

        def is_killed(number: int) -> Generator[bytes, None, bytes]:
            yield b"x" * 100_000
            if number == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            yield b"two"
            return b""

        def ends_sooner(number: int) -> Generator[bytes, None, bytes]:
            for _ in range(2 + 2 * number):
                yield b"piece"
            return b""

        for share in (fails, is_killed, ends_sooner):
            with self.subTest(share.__name__), self.assertRaises(crew.CrewError):
                list(crew.Crew(2, share).pieces())

    def test_that_nobody_listens_to_any_more_are_ended(self) -> None:
        pieces = crew.Crew(2, counting(100_000, 2)).pieces()
        next(pieces)
        pieces.close()

    def test_cannot_be_made_where_forking_is_refused(self) -> None:
        open_before = len(os.listdir("/proc/self/fd"))
        with mock.patch("os.fork", side_effect=PermissionError("offline")), self.assertRaises(crew.CrewError):
            crew.Crew(2, counting(1, 2))
        self.assertEqual(open_before, len(os.listdir("/proc/self/fd")))

    def test_can_work_out_one_thing_meanwhile(self) -> None:
        result = crew.aside(lambda: {"from": os.getpid(), "big": "x" * 1_000_000})
        found = result()
        self.assertNotEqual(os.getpid(), found["from"])
        self.assertEqual(1_000_000, len(found["big"]))

    def test_that_fail_at_it_leave_it_to_this_process(self) -> None:
        here = os.getpid()

        def work() -> int:
            if os.getpid() != here:
                raise ValueError("not there")
            return here

        self.assertEqual(here, crew.aside(work)())
        with mock.patch("os.fork", side_effect=PermissionError("offline")):
            self.assertEqual(here, crew.aside(work)())

    def test_print_nothing_that_this_process_had_not_printed_yet(self) -> None:
        code = (
            "import sys; sys.path[:0] = sys.argv[1:]; import crew\n"
            "print('once', end='')\n"
            "def share(n):\n    yield b'x'\n    return b''\n"
            "print(len(list(crew.Crew(2, share).pieces())))\n"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, str(Path(crew.__file__).parent)], capture_output=True, timeout=60
        )
        self.assertEqual(b"once2\n", done.stdout, done.stderr)


class Opened(NamedTuple):
    """A run with all that scoring needs of it."""

    folder: str
    evaluation: Any
    manifest: dict[str, Any]
    items: Any
    arms: list[Any]


@unittest.skipUnless(HERE, WHY)
class SharedScoring(unittest.TestCase):
    """A run of 30 pairs and two controls, scored in blocks of 4 rows by two copies, and alone."""

    top: Path
    opened: Opened

    @classmethod
    def setUpClass(cls) -> None:
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.top = Path(work.name)
        folder = runner.make_evaluation(cls.top / "e", [runner.item(number) for number in range(30)], repeats=2)
        done = runner.cli(folder, "--generate", "--arms", "control-longer,control-random", cwd=cls.top)
        assert done.returncode == 0, done.stderr
        run = runner.run_folder(cls.top)
        config = json.loads((folder / "eval.json").read_text(encoding="utf-8"))
        read = {name: (folder / name).read_bytes() for name in ("fixture.jsonl",)}
        with mock.patch.dict(sys.modules, recipe=room("recipe"), check=room("check")):
            evaluation = modes.build_evaluation(str(folder), config, read)
        manifest = runner.manifest_of(run)
        cls.opened = Opened(
            str(run), evaluation, manifest, modes.run_items(manifest, evaluation), modes.manifest_arms(manifest)
        )

    def scored(self, folder: str, copies: int) -> tuple[bytes, dict[str, Any], list[str]]:
        """The scored file, the tables and the problems, with so many copies; 1 = alone."""
        path = os.path.join(folder, "scored.test.gz")
        _, evaluation, manifest, items, arms = self.opened
        small = mock.patch.multiple(rescore, BLOCK_ROWS=4, SHARED_FROM=1)
        with small, mock.patch.object(crew, "copies_here", return_value=copies):
            reader = rescore.write_scored(path, evaluation, folder, manifest, items, arms)
        tables = {name: vars(table) for name, table in reader.tables.items()}
        return Path(path).read_bytes(), tables, reader.problems

    def outcome(self, folder: str, copies: int) -> Any:
        """The same, or the words of the error."""
        try:
            return self.scored(folder, copies)
        except evidence.EvidenceError as error:
            return str(error)

    def test_is_the_same_as_alone(self) -> None:
        alone = self.scored(self.opened.folder, 1)
        for copies in (2, 3):
            with self.subTest(copies), mock.patch.object(rescore, "raw_source", side_effect=AssertionError("alone")):
                self.assertEqual(alone, self.scored(self.opened.folder, copies))
        self.assertEqual(120, len(gzip.decompress(alone[0]).splitlines()))
        self.assertEqual([], alone[2])

    def test_of_a_damaged_run_says_what_it_would_alone(self) -> None:
        lines = gzip.decompress((Path(self.opened.folder) / "raw.jsonl.gz").read_bytes()).splitlines(keepends=True)
        changes: dict[str, list[bytes]] = {
            "a row twice in one block": [*lines[:1], *lines[:1], *lines[2:]],
            "a row twice, far apart": [*lines[:-1], lines[0]],
            "a row too many": [*lines, lines[0]],
            "another judge": [*lines[:50], lines[50].replace(b'"control-', b'"uncontrol-', 1), *lines[51:]],
            "a choice of its own": [*lines[:9], lines[9].replace(b'"choice":"', b'"choice":"x', 1), *lines[10:]],
            "no JSON": [*lines[:77], b"{nothing\n", *lines[78:]],
            "a part is missing": [*lines[:21], lines[21].replace(b'"code":', b'"cod":', 1), *lines[22:]],
            "rows are missing": lines[:100],
            "no row at all": [],
        }
        for name, changed in changes.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "raw.jsonl.gz").write_bytes(gzip.compress(b"".join(changed)))
                alone, shared = self.outcome(folder, 1), self.outcome(folder, 2)
                self.assertEqual(alone, shared)
                if name not in ("rows are missing", "no row at all"):
                    self.assertNotEqual([], alone if isinstance(alone, str) else alone[2])

    def test_keeps_the_words_of_the_last_failure_whoever_read_it(self) -> None:
        verdicts = room("verdicts")
        tables = [verdicts.ArmTable(4, 1) for _ in range(2)]
        tables[0].note_failure((3, 1, "original"), "the last one")
        tables[1].note_failure((2, 1, "swapped"), "an earlier one")
        self.assertTrue(tables[1].absorb(tables[0]))
        self.assertEqual("the last one", tables[1].last_failure)

    def test_leaves_no_half_file_when_the_disk_is_full(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError):
            (Path(folder) / "raw.jsonl.gz").write_bytes((Path(self.opened.folder) / "raw.jsonl.gz").read_bytes())
            with mock.patch("os.fsync", side_effect=OSError(28, "No space left on device")):
                self.outcome(folder, 2)
            self.assertEqual(["raw.jsonl.gz"], os.listdir(folder))


class WholeCommand(unittest.TestCase):
    def test_the_lock_lets_copies_through_and_nothing_else(self) -> None:
        code = (
            "import importlib.util, os, sys\n"
            "spec = importlib.util.spec_from_file_location('run_eval', sys.argv[1])\n"
            "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
            "module.lock_offline(copies=True)\n"
            "pid = os.fork()\n"
            "refused = 0\n"
            "import socket, subprocess\n"
            "run, replace = lambda: subprocess.run(['true']), lambda: os.execv('/bin/true', ['true'])\n"
            "for attempt in (socket.socket, run, replace):\n"
            "    try: attempt()\n"
            "    except PermissionError: refused += 1\n"
            "if pid == 0: os._exit(refused)\n"
            "print(refused, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )
        if not HERE:
            self.skipTest(WHY)
        words = [sys.executable, "-I", "-c", code, runner.RUN_EVAL]
        done = subprocess.run(words, capture_output=True, timeout=60, encoding="utf-8")
        self.assertEqual("3 3\n", done.stdout, done.stderr)


load_tests = beside("test_crew")


if __name__ == "__main__":
    unittest.main()
