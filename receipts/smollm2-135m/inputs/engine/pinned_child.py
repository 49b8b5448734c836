"""The process that --run-pinned-code starts: runs a pinned recipe and check over replies, and can do nothing else.

Reads JSON lines from standard input (first the code and its settings, then one row each) and writes one JSON line a
row. Before the pinned code is executed, limits are set; a hook refuses files, connections, processes and native code.
Never imported by the toolkit; started as `python3 -I -S pinned_child.py` with an empty environment.
"""

from __future__ import annotations

import json
import sys
import types
from typing import Any

# === Constants ===

CPU_S = 100
MEMORY = 2 << 30
# Events of the interpreter that are needed to run plain code; everything else is refused.
ALLOWED = (
    *("compile", "exec", "object.__getattr__", "object.__setattr__", "object.__delattr__", "code.__new__"),
    *("sys._getframe", "import", "builtins.id", "array.__new__"),
)
# Modules a recipe or check may use; loaded before the lock, since afterwards no file can be opened.
MODULES = (
    *("__future__", "argparse", "collections", "collections.abc", "copy", "dataclasses", "datetime", "decimal"),
    *("difflib", "enum", "fractions", "functools", "gzip", "hashlib", "itertools", "json", "math", "numbers"),
    *("operator", "os", "random", "re", "statistics", "string", "sys", "textwrap", "types", "typing", "unicodedata"),
)


# === Lock ===


def limit() -> None:
    """Time, memory and file size, where the system can limit them."""
    try:
        import resource
    except ImportError:
        return
    for name, value in (("RLIMIT_CPU", CPU_S), ("RLIMIT_AS", MEMORY), ("RLIMIT_FSIZE", 0), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, name), (value, value))
        except (ValueError, OSError, AttributeError):
            continue


def lock() -> None:
    """From here on only plain computation."""

    def refuse(event: str, arguments: Any) -> None:
        if event == "import" and (arguments[0] in sys.modules or arguments[0] in MODULES):
            return
        if event not in ALLOWED or event == "import":
            raise PermissionError(f"pinned code may not: {event}")

    sys.addaudithook(refuse)


# === Work ===


def execute(source: str, name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = f"{name}.py"
    sys.modules[name] = module
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def parsed(recipe: Any, reply: Any, mode: str) -> dict[str, Any]:
    """What a recipe reads in a reply; recipes of the published format take the reply alone."""
    try:
        found = recipe.parse(reply, mode)
    except TypeError:
        found = recipe.parse(reply)
    return {"choice": found["choice"], "reason": found["reason"]}


def answer(recipe: Any, check: Any, config: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    said = {order: parsed(recipe, reply, message["mode"]) for order, reply in message["replies"].items()}
    return {"said": said, "score": check.score(message["item"], message["arguments"], config)}


def main() -> int:
    for name in MODULES:
        __import__(name)
    stream, out = sys.stdin.buffer, sys.stdout.buffer
    first = json.loads(stream.readline())
    limit()
    lock()
    recipe, check = execute(first["recipe"], "recipe"), execute(first["check"], "check")
    for line in stream:
        found = answer(recipe, check, first["config"], json.loads(line))
        out.write(json.dumps(found, separators=(",", ":")).encode("ascii") + b"\n")
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
