"""Runs whole test files in processes of their own beside the others, so that the suite ends in half the time.

A file whose tests start many processes ends with `load_tests = beside("its name")`. Discovered with the others, it is
started at once in a pool and reported here as one entry that counts and fails as its tests do; named alone
(`python3 -m unittest test_x` in this folder) it runs as any other file.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import unittest
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
POOL = ThreadPoolExecutor(max(2, os.cpu_count() or 2))  # these files wait for servers and terminals half of their time
RAN = re.compile(r"^Ran (\d+) tests?", re.MULTILINE)
ENDED = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
TIMEOUT_S = 600
RUNNING: list[subprocess.Popen[str]] = []


def run_file(name: str) -> tuple[int, str]:
    """Exit code and output of one test file in a process of its own."""
    command = [sys.executable, "-m", "unittest", name]
    process = subprocess.Popen(
        command,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    RUNNING.append(process)
    output, _ = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, output


def stop_all() -> None:
    """Leave no process behind when the suite ends early."""
    POOL.shutdown(wait=False, cancel_futures=True)
    for process in RUNNING:
        if process.poll() is None:
            process.kill()


atexit.register(stop_all)


class WholeFile(unittest.TestCase):
    """All tests of one file, run elsewhere."""

    def __init__(self, name: str, found: Future[tuple[int, str]]) -> None:
        super().__init__("runTest")
        self.name, self.found = name, found

    def id(self) -> str:
        return f"{self.name} (in a process of its own)"

    __str__ = id

    def run(self, result: Any = None) -> Any:
        done = super().run(result)
        ran = RAN.search(self.found.result()[1]) if self.found.done() and not self.found.cancelled() else None
        if result is not None and ran:
            result.testsRun += int(ran.group(1)) - 1
        return done

    def runTest(self) -> None:
        code, output = self.found.result(TIMEOUT_S)
        ended = ENDED.search(output)
        if code or ended is None:
            self.fail(f"{self.name} ended with {code}:\n{output}")
        if ended.group(1):
            self.skipTest(f"{ended.group(1)} of {self.name}")


def beside(name: str) -> Callable[..., Any]:
    """A load_tests function that runs the named file in a process of its own when it is discovered."""

    def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
        if pattern is None or pattern != "test*.py":
            return tests
        return unittest.TestSuite([WholeFile(name, POOL.submit(run_file, name))])

    return load_tests
