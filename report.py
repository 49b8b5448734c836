"""One page that shows where judge and people part: runs, receipts or judged files as one self-contained HTML file.

    python3 -I report.py runs/planted-faults/…            # writes report.html into the run
    python3 -I report.py RUN_A RUN_B --out compare.html   # two runs side by side, and what changed
    python3 -I report.py RUN --format markdown            # the same tables for a paper or a pull request

Needs beside it: agreement.py and the folder engine/. Reads manifest.json, summary.json, scored.jsonl.gz and
inputs/fixture.jsonl of a run (score it first with run_eval.py --rescore). Writes one file and nothing else, opens no
connection, executes nothing of the run. Equal evidence gives equal bytes.
The page loads nothing and opens anywhere; without JavaScript all figures, tables and pictures stay.
Exit codes: 0 done; 2 usage; 3 something could not be read or written.
"""

from __future__ import annotations

import sys
from typing import Any

# === Constants ===

PROGRAM = "report"
FORMATS = ("html", "markdown", "csv", "json")


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


def text_form(sources: list[Any], form: str) -> str:
    """All tables of the runs as markdown, CSV, or their summaries as JSON."""
    import json

    tables, page_tables, page = (sys.modules[name] for name in ("tables", "page_tables", "page"))
    if form == "json":
        found = [source.summary for source in sources]
        return json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False) + "\n"
    result = page.view_of(sources).result
    return str(tables.as_csv(result) if form == "csv" else page_tables.as_markdown(result))


# === Command line ===


def build_parser() -> Any:
    import argparse

    parser = argparse.ArgumentParser(
        prog="report.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", metavar="RUN", help="run folders")
    parser.add_argument("--out", metavar="FILE", help="where to write (default: report.html in the run; text: stdout)")
    parser.add_argument("--format", choices=FORMATS, default="html")
    return parser


def default_out(paths: list[str]) -> str:
    import os

    return os.path.join(paths[0], "report.html") if len(paths) == 1 else "report.html"


def run(options: Any) -> int:
    """Read, make, write. Raises: EvidenceError, OSError."""
    page = load_room("page")
    evidence, page_source = sys.modules["evidence"], sys.modules["page_source"]
    sources = [page_source.read_source(path) for path in options.paths]
    if options.format == "html":
        data = page.page_of(sources)
    else:
        data = evidence.encode(text_form(sources, options.format))
    if options.format != "html" and options.out is None:
        sys.stdout.write(data.decode("utf-8"))
        return 0
    path = options.out or default_out(options.paths)
    evidence.write_atomic(path, data)
    print(path)
    return 0


def report_error(text: str) -> None:
    for line in text.split("\n"):
        print(line if line.startswith("hint: ") else f"{PROGRAM}: error: {line}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    options = build_parser().parse_args(argv)
    try:
        return run(options)
    except OSError as error:
        report_error(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        return 3
    except Exception as error:
        if type(error).__name__ != "EvidenceError":
            raise
        report_error(str(error))
        return 3


if __name__ == "__main__":
    sys.exit(main())
