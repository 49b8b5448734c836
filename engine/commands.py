"""Where an evaluation lies, and the command of run_eval.py that goes on with a run, to paste.

A command names the evaluation's folder whenever that is not the toolkit's own. A run knows its evaluation by its slug
only, so the folder is looked for in a few places nearby: eval.json files are read there, nothing is executed.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator

# === Constants ===

DEFAULT_SLUG = "planted-faults"  # of the evaluation in the toolkit's own folder, which needs no naming
UNKNOWN = "DIR"  # stands in a command for an evaluation's folder that was not found, as in the usage line
MAX_FOLDERS = 200  # subfolders of one place that are looked into
MAX_BYTES = 1 << 24  # of an eval.json or manifest.json that is read here


# === Folders ===


def toolkit_home() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def slug_in(path: str) -> str | None:
    """The slug that an eval.json or manifest.json names; None when there is no such file or it names none."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_BYTES:
            return None
        with open(path, "rb") as stream:
            found = json.loads(stream.read())
    except (OSError, ValueError, RecursionError):
        return None
    slug = found.get("slug") if isinstance(found, dict) else None
    return slug if isinstance(slug, str) else None


def subfolders(top: str) -> list[str]:
    try:
        names = sorted(os.listdir(top))[:MAX_FOLDERS]
    except OSError:
        return []
    return [os.path.join(top, name) for name in names]


def candidates(run: str) -> Iterator[str]:
    """Folders in which the evaluation of a run may lie: the toolkit's, here, and beside the folder that holds runs/."""
    above = os.path.abspath(run)
    for _ in range(3):
        above = os.path.dirname(above)
    for top in dict.fromkeys((toolkit_home(), os.getcwd(), above)):
        yield top
        yield from subfolders(top)
        yield from subfolders(os.path.join(top, "evals"))


def evaluation_of(run: str) -> str | None:
    """The folder of the evaluation that a run or receipt is of; None when it is not found."""
    slug = slug_in(os.path.join(run, "manifest.json"))
    if slug is None:
        return None
    return next((place for place in candidates(run) if slug_in(os.path.join(place, "eval.json")) == slug), None)


# === Commands ===


def script(name: str) -> str:
    """'python3 -I run_eval.py', with the way to it from the folder one is in."""
    path = os.path.join(toolkit_home(), name)
    return f"python3 -I {shlex.quote(os.path.relpath(path))}"


def command(folder: str | None, mode: str, *targets: str) -> str:
    """'python3 -I run_eval.py [DIR] MODE TARGET…'. folder: the evaluation's; None when it is not known."""
    return command_by(script("run_eval.py"), folder, mode, *targets)


def command_by(start: str, folder: str | None, mode: str, *targets: str) -> str:
    """The same, begun by words that are given."""
    words = [start]
    if folder is None:
        words.append(UNKNOWN)
    elif os.path.realpath(folder) != os.path.realpath(toolkit_home()):
        words.append(shlex.quote(os.path.relpath(folder)))
    return " ".join([*words, mode, *map(shlex.quote, targets)])


def command_for(run: str, mode: str) -> str:
    """The command for a run or receipt whose evaluation's folder was not given."""
    return command(evaluation_of(run), mode, run)


def command_anywhere(slug: object, mode: str, *targets: str) -> str:
    """The same for a page, which must not depend on the folder it is made in: it rests on the run's slug alone."""
    return command_by("python3 -I run_eval.py", toolkit_home() if slug == DEFAULT_SLUG else None, mode, *targets)
