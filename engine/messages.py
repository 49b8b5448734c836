"""What a program says on stderr: errors, warnings, hints, one line each, under its own name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

# === Constants ===

MAX_WARNINGS = 10
# Characters that draw instead of showing: terminal controls, and marks that turn the reading order around.
DRAWING = (
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
WRITTEN_OUT = {code: f"<U+{code:04X}>" for code in DRAWING}
ESCAPED = {code: f"\\u{code:04x}" for code in DRAWING}


# === Messages ===


def open_streams() -> None:
    """UTF-8 on stdout and stderr; a process that was started with a closed one gets an empty one in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (open until the end)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")  # type: ignore[union-attr]


def ending(program: str, function: Callable[[Any], int], options: Any) -> int:
    """The exit code of function(options), once all it printed is out: 141 when the reader went away, 3 for a full disk.

    What is left to print then goes nowhere, so that Python has nothing to complain of at its own end.
    """
    try:
        code = function(options)
        sys.stdout.flush()
        return code
    except OSError as problem:
        if problem.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(problem, BrokenPipeError):
            return 141
        say(f"{program}: error: stdout: {problem.strerror or problem}")
        return 3


def plain(text: str) -> str:
    """Text in which names and words from files can draw nothing on a terminal; line feeds and tabs are kept."""
    return text.translate(WRITTEN_OUT)


def show(text: str) -> None:
    """A result for people, to stdout."""
    print(plain(text), end="")


def show_form(text: str, form: str) -> None:
    """A result in one of its forms, to stdout; what could draw is marked, but no program gets other data for it.

    form: json (such characters are escaped, which is the same JSON), csv (as it is, marked on a terminal alone), or
    any other, which is for people.
    """
    if form == "json":
        print(text.translate(ESCAPED), end="")
    else:
        print(text if form == "csv" and not sys.stdout.isatty() else plain(text), end="")


def say(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)


class Voice:
    """One program's messages."""

    def __init__(self, program: str) -> None:
        self.program = program

    def error(self, text: str, hint: str | None = None) -> None:
        for line in text.split("\n"):
            say(f"{self.program}: error: {line}")
        if hint:
            say(f"hint: {hint}")

    def warn(self, lines: list[str]) -> None:
        for line in lines[:MAX_WARNINGS]:
            say(f"{self.program}: warning: {line}")
        if len(lines) > MAX_WARNINGS:
            say(f"{self.program}: warning: … and {len(lines) - MAX_WARNINGS} more")

    def guard(self, handled: tuple[type[Exception], ...], function: Callable[[Any], int], options: Any) -> int:
        """function(options), with every foreseen problem as one message; exit code 3, 2 for a word of the command."""
        try:
            return function(options)
        except BrokenPipeError:
            raise
        except handled as problem:
            self.error(str(problem), getattr(problem, "hint", None))
            return getattr(problem, "exit_code", 3)
        except OSError as problem:
            self.error(f"{problem.filename or ''}: {problem.strerror or problem}".lstrip(": "))
        return 3
