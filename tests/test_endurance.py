"""Whole runs that are killed, interrupted, starved of disk, doubled or fed every fault: nothing paid for is lost."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import endurance
import fault_server
import runner
from fault_server import FaultServer
from parallel import beside

POSIX = os.name == "posix"


class Runs(unittest.TestCase):
    """A temporary folder with a small evaluation."""

    pairs = 10

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = Path(temporary.name)
        self.evaluation = runner.make_evaluation(self.work / "e", [runner.item(n) for n in range(self.pairs)])

    def serve(self, behaviour: fault_server.Behaviour | None = None, **options: Any) -> FaultServer:
        server = FaultServer(behaviour, **options)
        server.__enter__()
        self.addCleanup(server.close)
        return server

    def generate(self, server: FaultServer, *words: object, **options: object) -> Any:
        judge = runner.judge_at(server.base, **options)
        return runner.cli(self.evaluation, "--generate", *judge, *words, cwd=self.work)

    def resume(self, *words: object) -> Any:
        return runner.cli(self.evaluation, "--resume", self.folder, *words, cwd=self.work)

    @property
    def folder(self) -> Path:
        return runner.run_folder(self.work)

    def wait_for_lines(self, count: int) -> None:
        """Until the run's journal holds so many lines."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            runs = list((self.work / "runs").glob("small/*"))
            if runs and len(runner.journal_keys(max(runs))) >= count:
                return
            time.sleep(0.005)
        self.fail("the journal did not grow")


@unittest.skipUnless(POSIX, "SIGKILL is POSIX")
class Killed(unittest.TestCase):
    def test_a_run_killed_again_and_again_loses_and_repeats_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            found = endurance.series(Path(work), kills=5, pairs=40, seed=3)
        self.assertEqual((0, 0, True, 0), (found.lost, found.repeated, found.same_bytes, found.secrets), found)
        self.assertLessEqual(found.requests, found.replies + 4 * found.kills)

    def test_a_mix_of_all_faults_ends_complete_with_states_that_add_up(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            found = endurance.mixed(Path(work), replies=200, seed=5)
        self.assertEqual(200, found.states["ok"] + found.states["invalid"], found)
        self.assertEqual((0, 0, 0), (found.missing_rows, found.tracebacks, found.secrets), found)


@unittest.skipUnless(POSIX, "signals as sent here are POSIX")
class Interrupted(Runs):
    def test_ctrl_c_ends_soon_with_130_keeps_what_arrives_and_says_how_to_resume(self) -> None:  # C01
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                continue  # as nohup has it, and so it stays
            server = self.serve(delay_s=0.25)
            options = runner.judge_at(server.base, concurrency=2)
            process = runner.start(self.evaluation, "--generate", *options, cwd=self.work)
            self.wait_for_lines(1)
            began = time.monotonic()
            _, err = runner.stop(process, number)
            self.assertLess(time.monotonic() - began, 10)
            self.assertEqual(130, process.returncode)
            self.assertEqual(len(server.requests), len(runner.journal_keys(self.folder)))
            self.assertIn(f"--resume {self.folder.relative_to(self.work)}", err)
            self.assertEqual("incomplete", runner.manifest_of(self.folder)["status"])
            self.assertEqual(0, self.resume("--concurrency", 8).returncode)
            self.assertEqual(20, len(server.requests))

    def test_a_second_ctrl_c_ends_at_once_and_loses_nothing_on_disk(self) -> None:
        count = itertools.count()
        judge, hang = fault_server.judge(), fault_server.Hang()
        server = self.serve(lambda request: judge(request) if next(count) < 3 else hang)
        process = runner.start(self.evaluation, "--generate", *runner.judge_at(server.base), cwd=self.work)
        self.wait_for_lines(3)
        while len(server.requests) < 4:  # the one that will never be answered is on its way
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        began = time.monotonic()
        runner.stop(process, signal.SIGINT)
        self.assertLess(time.monotonic() - began, 8)
        self.assertEqual((130, 3), (process.returncode, len(runner.journal_keys(self.folder))))


@unittest.skipUnless(sys.platform == "linux", "another process's limits can be set on Linux only")
class FullDisk(Runs):
    pairs = 30

    def test_a_file_that_may_not_grow_stops_the_run_and_keeps_what_stands_in_it(self) -> None:
        import resource

        server = self.serve(delay_s=0.01)
        options = runner.judge_at(server.base, quiet=True)
        process = runner.start(self.evaluation, "--generate", *options, cwd=self.work)
        self.wait_for_lines(5)
        most = os.path.getsize(self.folder / "journal.jsonl") + 5000
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        _, err = process.communicate(timeout=60)
        self.assertEqual(3, process.returncode, err)
        self.assertIn("journal.jsonl: cannot be written: File too large", err)
        self.assertIn("hint: resume with", err)
        kept = runner.journal_keys(self.folder)
        self.assertGreater(len(kept), 5)
        done = self.resume("--concurrency", 4)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("an unfinished last line", done.stderr)
        self.assertEqual(60, len(runner.rows_of(self.folder)) * 2)
        self.assertLessEqual(len(server.requests), 60 + 1)


class Doubled(Runs):
    def test_a_second_process_on_one_run_is_refused_and_the_first_ends_well(self) -> None:  # C07
        count, judge, released = itertools.count(), fault_server.judge(), threading.Event()
        server = self.serve(lambda request: judge(request) if next(count) < 4 or released.wait(60) else None)
        options = runner.judge_at(server.base, concurrency=2)
        process = runner.start(self.evaluation, "--generate", *options, cwd=self.work)
        self.wait_for_lines(1)
        second = self.resume()
        self.assertEqual(3, second.returncode)
        self.assertIn(f"in use by process {process.pid} on ", second.stderr)
        released.set()
        process.communicate(timeout=60)
        self.assertEqual((0, 20), (process.returncode, len(server.requests)))


class OutOfTime(Runs):
    def test_max_minutes_ends_the_waits_between_tries_too(self) -> None:
        server = self.serve(
            fault_server.always(fault_server.Raw(fault_server.http("429 Slow", b"{}", "Retry-After: 20")))
        )
        began = time.monotonic()
        done = self.generate(server, max_minutes=0.03)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(3, done.returncode, done.stderr)
        self.assertIn("--max-minutes 0.03 reached", done.stderr)


class Resumed(Runs):
    def stopped(self, requests: int = 7) -> FaultServer:
        """A run that stopped after some requests, and its server."""
        server = self.serve()
        done = self.generate(server, max_requests=requests)
        self.assertEqual((3, requests), (done.returncode, len(runner.journal_keys(self.folder))), done.stderr)
        return server

    def test_the_finished_rows_equal_those_of_an_undisturbed_run_but_for_times(self) -> None:
        server = self.stopped()
        done = self.resume("--concurrency", 3)
        self.assertIn("7 ok, 0 invalid, 0 failed, 13 missing", done.stderr)
        first = runner.timeless(self.folder)
        self.assertEqual(20, len(server.requests))
        self.assertEqual(0, self.generate(server, concurrency=5).returncode)
        self.assertEqual(first, runner.timeless(self.folder))

    def test_of_a_complete_run_has_nothing_to_do_and_ends_well(self) -> None:
        server = self.serve()
        self.generate(server)
        asked = len(server.requests)
        done = self.resume()
        self.assertEqual((0, asked), (done.returncode, len(server.requests)), done.stderr)
        self.assertEqual(str(self.folder), done.stdout.strip())
        self.assertIn("the run is complete; nothing to resume", done.stderr)

    def test_changed_inputs_are_refused_by_name_and_nothing_is_sent(self) -> None:  # C12
        server = self.stopped()
        changes = {"fixture.jsonl": [runner.item(n, text="Other?") for n in range(10)]}
        runner.write_fixture(self.evaluation, changes["fixture.jsonl"])
        runner.freeze(self.evaluation)
        done = self.resume()
        self.assertEqual((3, 7), (done.returncode, len(server.requests)))
        for name in ("fixture.jsonl", "eval.json"):
            self.assertRegex(done.stderr, f"{name} changed since the run started: expected [0-9a-f]+, got [0-9a-f]+")
        self.assertNotIn("recipe.py changed", done.stderr)

    def test_a_damaged_line_in_the_middle_is_named_and_nothing_is_sent(self) -> None:
        server = self.stopped()
        path = self.folder / "journal.jsonl"
        lines = path.read_bytes().split(b"\n")
        lines[3] = lines[3][:50]
        path.write_bytes(b"\n".join(lines))
        done = self.resume()
        self.assertEqual((3, 7), (done.returncode, len(server.requests)))
        self.assertIn("journal.jsonl:4: ", done.stderr)

    def test_an_incomplete_run_can_be_rescored_and_says_that_it_is_incomplete(self) -> None:
        self.stopped()
        done = runner.cli(self.evaluation, "--rescore", self.folder, cwd=self.work)
        self.assertEqual(3, done.returncode)
        self.assertIn("INCOMPLETE RUN", done.stdout)
        self.assertIn("resume with", done.stderr)

    def test_older_runs_and_stray_files_are_left_alone(self) -> None:
        server = self.stopped()
        stray = self.work / "runs" / "small" / "notes.txt"
        stray.write_text("mine", encoding="utf-8")
        before = {path: path.read_bytes() for path in (self.work / "runs").rglob("*") if path.is_file()}
        self.assertEqual(0, self.generate(server).returncode)
        self.assertEqual(before, {path: path.read_bytes() for path in before})


class Failing(Runs):
    def test_nothing_judged_gives_exit_3_with_the_counts(self) -> None:  # C10
        down = fault_server.http("500 Error", b'{"error": {"message": "down"}}', "Retry-After-Ms: 1")
        server = self.serve(lambda request: fault_server.Raw(down))
        done = self.generate(server)
        self.assertEqual(3, done.returncode)
        self.assertRegex(done.stderr, "0 of 20 replies on disk, 10 failed")
        self.assertIn("the last 10 requests all failed", done.stderr)

    def test_a_refused_key_stops_after_one_request_and_is_not_shown(self) -> None:
        body = json.dumps({"error": {"message": f"Incorrect API key provided: {runner.CANARY}."}}).encode()
        server = self.serve(lambda request: fault_server.Raw(fault_server.http("401 Unauthorized", body)))
        done = self.generate(server, concurrency=8)
        self.assertEqual((3, 1), (done.returncode, len(server.requests)), done.stderr)
        self.assertIn("Incorrect API key provided", done.stderr)
        self.assertIn(runner.KEY_ENV, done.stderr)
        self.assertNotIn(runner.CANARY, done.stdout + done.stderr)
        self.assertEqual([], runner.holders(self.work, runner.CANARY))

    def test_a_try_that_broke_off_after_sending_is_counted_as_maybe_billed_twice(self) -> None:
        server = self.serve(fault_server.script([fault_server.Json({}, 200), fault_server.Close()]))
        first = fault_server.judge()
        server.behaviour = lambda request: fault_server.Close() if request.number == 2 else first(request)
        done = self.generate(server)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stderr, "warning: 1 tries .* may have been billed twice")
        self.assertEqual(1, runner.manifest_of(self.folder)["totals"]["custom"]["attempts_maybe_billed"])
        self.assertEqual(
            1,
            sum(
                part["attempts_maybe_billed"] for row in runner.rows_of(self.folder) for part in row["replies"].values()
            ),
        )

    def test_tries_count_towards_the_most_requests(self) -> None:
        judge = fault_server.judge()
        down = fault_server.Raw(fault_server.http("503 Busy", b"{}", "Retry-After-Ms: 1"))
        server = self.serve(lambda request: judge(request) if request.number % 2 else down)
        done = self.generate(server, max_requests=8)
        self.assertEqual((3, 8), (done.returncode, len(server.requests)), done.stderr)


load_tests = beside("test_endurance")


if __name__ == "__main__":
    unittest.main()
