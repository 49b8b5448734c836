"""Loads the project's files for tests the way the entry scripts do: from their bytes, under their plain names."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"  # development data beside the checkout, where there is one


def place(name: str) -> Path | None:
    """Where a file of the toolkit lies: the top level or engine/; None for a name that is none of ours."""
    return next((path for path in (ROOT / f"{name}.py", ROOT / "engine" / f"{name}.py") if path.exists()), None)


def imported_names(node: ast.stmt) -> list[str]:
    """The modules that one statement of a file's top level imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module else []
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def room(name: str) -> Any:
    """The module `name`, with what it imports of the toolkit loaded before it."""
    path = place(name)
    if path is None:
        raise ModuleNotFoundError(f"{name}: neither {name}.py nor engine/{name}.py is there")
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    data = path.read_bytes()
    for node in ast.parse(data).body:
        for needed in imported_names(node):
            if place(needed) is not None:
                room(needed)
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(data, str(path), "exec"), module.__dict__)
    return module


def options_of(*arguments: str) -> Any:
    """The options of one command line of run_eval.py, checked as the command checks them; without a look at git."""
    run_eval = room("run_eval")
    parser = run_eval.build_parser()
    options = parser.parse_args(arguments)
    run_eval.check_options(parser, options)
    options.out_given, options.out, options.git_history = options.out, options.out or "runs", None
    return options
