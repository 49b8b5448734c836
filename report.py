"""One page that shows where judge and people part: runs, receipts or judged files as one self-contained HTML file.

    python3 -I report.py runs/planted-faults/…            # writes report.html into the run
    python3 -I report.py RUN_A RUN_B --out compare.html   # two runs side by side, and what changed
    python3 -I report.py judged.json human.json           # answers graded by judge.py, people's labels beside them
    python3 -I report.py RUN judged.json                  # how far to trust the judge, and what it said of your answers
    python3 -I report.py RUN --format markdown            # the same tables for a paper or a pull request

Needs beside it: agreement.py and the folder engine/. Reads manifest.json, summary.json, scored.jsonl.gz and
inputs/fixture.jsonl of a run or receipt (score a run first with run_eval.py --rescore), and what judge.py grade,
compare and human (--format json) wrote. Figures are shown as these files have them; where the summary of a judged file
is not what its own answers or pairs add up to, page, tables and stderr say so.
Writes one file and nothing else: report.html in a run, NAME.html beside NAME.json, otherwise report.html here. It
replaces a page of its own, another file only with --overwrite, and never what it reads. Opens no connection, executes
nothing that it reads. Equal evidence gives equal bytes.
The page loads nothing and opens anywhere; without JavaScript all figures, tables and pictures stay.
Exit codes: 0 done; 2 usage; 3 something could not be read or written.
"""

from __future__ import annotations

import sys
from typing import Any

# === Constants ===

PROGRAM = "report"
FORMATS = ("html", "markdown", "csv", "json")
HEAD = 1024  # bytes of a page that hold its generator tag


# === Loading ===


def load(path: str, name: str, data: bytes | None = None) -> Any:
    """Execute a file's bytes as module `name`: the very bytes that were hashed, never a cached or foreign module."""
    import types

    if data is None:
        with open(path, "rb") as stream:
            data = stream.read()
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(data, path, "exec"), module.__dict__)
    return module


def load_room(name: str) -> Any:
    """A file of engine/ or the top level as a module, after those of ours that it imports."""
    import os
    import re

    home = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(home, "engine", f"{name}.py"), os.path.join(home, f"{name}.py")]
    path = next((place for place in places if os.path.isfile(place)), None)
    if path is None or name in sys.modules:
        return sys.modules.get(name)
    with open(path, "rb") as stream:
        data = stream.read()
    for needed in re.findall(rb"^(?:import|from) (\w+)", data, re.MULTILINE):
        load_room(needed.decode())
    return load(path, name, data)


# === Forms ===


def runs_page(paths: list[str], judged: list[str], form: str) -> bytes:
    """Runs or receipts as a page, or all their tables as markdown, CSV, or their summaries as JSON.

    judged: files of judge.py that stand behind the runs.
    """
    page, source = load_room("page"), sys.modules["page_source"]
    sources, files = [source.read_source(path) for path in paths], source.read_judged(judged)
    before = contradictions(judged, files)
    if form == "html":
        return bytes(page.page_of(sources, files))
    if form == "json":
        return json_bytes([one.summary for one in sources] + [data.get("judge", data) for data in files])
    result = page.view_of(sources).result
    if form == "csv":
        return csv_bytes(sys.modules["tables"].as_csv(result))
    own = sys.modules["page_judged_tables"].as_markdown(files, before) if files else ""
    text = sys.modules["page_tables"].as_markdown(result) + (own and f"\n{own}")
    text += "\n" + "".join(f"- {line}\n" for one in sources for line in source.notes_of(one))
    return markdown_bytes(text)


def judged_page(paths: list[str], form: str) -> bytes:
    """Files of judge.py in the same forms."""
    page, source = load_room("page_judged"), load_room("page_source")
    files = source.read_judged(paths)
    before = contradictions(paths, files)
    if form == "html":
        return bytes(page.page_of(files))
    if form == "json":
        return json_bytes([data.get("judge", data) for data in files])
    forms = sys.modules["page_judged_tables"]
    if form == "csv":
        return csv_bytes(forms.as_csv(files, before))
    return markdown_bytes(forms.as_markdown(files, before))


def contradictions(paths: list[str], files: list[dict[str, Any]]) -> list[Any]:
    """The tables of what in files of judge.py their own items do not bear out; each figure is said on stderr too."""
    voice, found = sys.modules["messages"].Voice(PROGRAM), []
    for path, data in zip(paths, files):
        for section in sys.modules["judged_check"].section_of(data):
            voice.warn(
                [f"{path}: {figure}: summary {stored}, items {counted}" for figure, stored, counted in section[2]]
            )
            found.append(section)
    return found


def csv_bytes(text: str) -> bytes:
    """UTF-8; half a surrogate pair as an escape."""
    return text.encode("utf-8", "backslashreplace")


def markdown_bytes(text: str) -> bytes:
    """The same for markdown, which is read on terminals too: what could draw there stands as a visible mark."""
    return csv_bytes(sys.modules["messages"].plain(text))


def json_bytes(found: list[dict[str, Any]]) -> bytes:
    return bytes(sys.modules["evidence"].pretty(found[0] if len(found) == 1 else found))


# === Command line ===


def build_parser() -> Any:
    import argparse

    parser = argparse.ArgumentParser(
        prog="report.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="run or receipt folders, or files of judge.py")
    parser.add_argument("--out", metavar="FILE", help="where to write (default: see above; text forms: stdout)")
    parser.add_argument("--format", choices=FORMATS, default="html")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is no page made by this program")
    return parser


def default_out(paths: list[str]) -> str:
    """Into a single run; beside a judged file under its name; else report.html here."""
    import os

    if any(map(os.path.isdir, paths)):
        alone = len(paths) == 1 and not os.path.exists(os.path.join(paths[0], "receipt.json"))
        return os.path.join(paths[0], "report.html") if alone else "report.html"
    return os.path.splitext(paths[0])[0] + ".html"


def target_problem(path: str, inputs: list[str], overwrite: bool) -> str | None:
    """Why a file must not be written there, or None: only a page of ours is replaced unasked, what is read never."""
    import os

    if not os.path.lexists(path):
        return None
    if os.path.exists(path) and not os.path.isfile(path):
        return f"{path}: expected a file to write, got something else"
    ours = False
    if os.path.exists(path):
        with open(path, "rb") as stream:
            ours = load_room("page_parts").GENERATOR.encode("ascii") in stream.read(HEAD)
    real = os.path.realpath(path)
    for given in inputs:
        inside = os.path.isdir(given) and real.startswith(os.path.join(os.path.realpath(given), "")) and not ours
        if inside or (os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given)):
            return f"{path}: expected a file to write, got one that belongs to {given}, which is read"
    if not (ours or overwrite):
        return f"{path}: exists and is no page made by this program\nhint: another --out, or --overwrite to replace it"
    return None


def run(options: Any) -> int:
    """Read, make, write. Raises: EvidenceError, OSError."""
    import os

    folders = [path for path in options.paths if os.path.isdir(path)]
    files = [path for path in options.paths if path not in folders]
    evidence = load_room("evidence")
    if folders and files and options.format == "csv":
        raise evidence.EvidenceError("--format csv: the columns of runs and of judged files differ; one call for each")
    path = options.out or (default_out(options.paths) if options.format == "html" else None)
    problem = path and target_problem(path, options.paths, options.overwrite)
    if problem:
        raise evidence.EvidenceError(problem)
    data = made(options, folders, files)
    if path is None:
        sys.modules["messages"].show_form(data.decode("utf-8"), options.format)
        return 0
    evidence.write_atomic(path, data)
    print(path)
    return 0


def made(options: Any, folders: list[str], files: list[str]) -> bytes:
    """The bytes of the form that was asked for. Raises: EvidenceError, also for what is not laid out as ours is."""
    try:
        return runs_page(folders, files, options.format) if folders else judged_page(files, options.format)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, StopIteration) as error:
        where = ", ".join(options.paths)
        what = f"field {error} is missing" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        text = f"{where}: not laid out as this toolkit writes it: {what}"
        raise sys.modules["evidence"].EvidenceError(text) from error


def report_error(text: str) -> None:
    for line in text.split("\n"):
        sys.modules["messages"].say(line if line.startswith("hint: ") else f"{PROGRAM}: error: {line}")


def main(argv: list[str] | None = None) -> int:
    messages = load_room("messages")
    messages.open_streams()
    options = build_parser().parse_args(argv)
    code: int = messages.ending(PROGRAM, guarded, options)
    return code


def guarded(options: Any) -> int:
    """`run` with every foreseen problem as a message; what is wrong with stdout is left to the caller."""
    try:
        return run(options)
    except OSError as error:
        if error.filename is None:
            raise
        report_error(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        return 3
    except load_room("evidence").EvidenceError as error:
        hint = getattr(error, "hint", None)
        report_error(f"{error}\nhint: {hint}" if hint else str(error))
        return 3


if __name__ == "__main__":
    sys.exit(main())
