"""The README's commands: each console block is run in a fresh copy and has to print what stands below it.

In a ```console block a line that starts with "$ " is a command; the lines after it are its output, where "…" stands for
any text within a line and a line "…" alone for any number of lines. Commands in ```sh blocks need a judge's endpoint or
a person; of these the options are checked against the parsers.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rooms import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TESTS = "python3 -m unittest discover -s tests"  # running it here would never end


def blocks(kind: str) -> list[str]:
    return [body for found, body in BLOCK.findall(README) if found == kind]


def steps(block: str) -> Iterator[tuple[str, list[str]]]:
    """(command, expected output lines) of a console block."""
    command, expected = "", list[str]()
    for line in block.split("\n")[:-1]:
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line[2:], []
        else:
            expected.append(line)
    if command:
        yield command, expected


def pattern_of(expected: list[str]) -> str:
    """A regular expression of expected lines with their ellipses."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(".*?".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ \t]*\n")
    return "".join(parts)


def parser_of(script: str, command: str) -> Any:
    """The argument parser of one of the entry scripts; judge.py has one per command."""
    import types

    path = ROOT / script
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module.build_parser(command) if script == "judge.py" else module.build_parser()


class ReadmeTest(unittest.TestCase):
    def test_console_blocks_print_what_they_say(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            leave = shutil.ignore_patterns(".git", "runs", "__pycache__", "*.pyc", ".mypy_cache", ".ruff_cache")
            shutil.copytree(ROOT, copy, ignore=leave)
            environment = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "LC_ALL": "C"}
            for block in blocks("console"):
                for command, expected in steps(block):
                    if command == TESTS:
                        continue
                    with self.subTest(command):
                        line = re.sub(r"^python3 ", f"{shlex.quote(sys.executable)} ", command)
                        done = subprocess.run(
                            line, shell=True, cwd=copy, env=environment, capture_output=True, timeout=120
                        )
                        output = (done.stdout + done.stderr).decode("utf-8").replace("\r\n", "\n")
                        self.assertRegex(output, r"\A" + pattern_of(expected) + r"\Z" if expected else "")
                        self.assertNotIn("Traceback", output)

    def test_commands_that_need_a_judge_have_options_that_exist(self) -> None:
        for block in blocks("sh"):
            for line in block.replace("\\\n", " ").split("\n"):
                words = shlex.split(line, comments=True)
                while words and "=" in words[0] and not words[0].startswith("-"):
                    words.pop(0)
                if words[:2] != ["python3", "-I"] or not (ROOT / words[2]).exists():
                    continue
                with self.subTest(line), contextlib.redirect_stderr(io.StringIO()):
                    parser_of(words[2], words[3]).parse_args(words[3:])

    def test_the_two_set_up_commands_are_there(self) -> None:
        self.assertIn("python3 -I run_eval.py --demo", README)
        self.assertIn(TESTS, README)


if __name__ == "__main__":
    unittest.main()
