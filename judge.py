"""Grade your own results with a judge, compare two runs in both orders, and measure how far to trust that judge.

    python3 -I judge.py grade --results examples/results-a.json --judge-model control-longer --out judged.json
    python3 -I judge.py compare --results-a examples/results-a.json --results-b examples/results-b.json \\
        --judge-model control-first --out compared.json
    python3 -I judge.py grade --results results.json --base-url http://127.0.0.1:8080/v1 --judge-model NAME
    python3 -I judge.py human --judged judged.json

Needs beside it: recipe.py, agreement.py, client.py and the folder engine/.
Reads the files named on the command line. Writes --out, and beside it <out>.work/ with every reply as it arrives: the
same command again asks only what is missing. Nothing is overwritten that cannot be made again without asking.
Only grade, compare and answer use the network, and only the given --base-url; with control judges alone, and in every
other command, connections are refused. Keys come from the variable named by --key-env, and appear nowhere.
Exit codes: 0 done; 1 not one usable verdict; 2 usage; 3 could not run or not complete (resumable); 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Any

# === Constants ===

PROGRAM = "judge"
# Where each command is done; what a room imports is loaded before it.
MAIN = {
    "grade": ("judge_modes", "main_grade"),
    "compare": ("judge_modes", "main_compare"),
    "answer": ("answering", "main_answer"),
    "correct": ("correcting", "main_correct"),
    "import": ("importers", "main_import"),
    "human": ("human", "main_human"),
}
FORMATS = ("inspect", "promptfoo", "deepeval", "lm-eval", "openai-evals", "csv", "jsonl")
API_FORMATS = ("openai", "anthropic", "responses")
OUTPUT_MODES = ("json_schema", "tool", "required", "json_object", "text")
DEFAULT_BASE_URL = "http://127.0.0.1:8080/v1"


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


def home() -> str:
    import os

    return os.path.dirname(os.path.abspath(__file__))


def room(name: str) -> Any:
    """A module of the toolkit, from this folder or engine/, with what it imports of the toolkit loaded before it."""
    import os
    import re

    paths = {os.path.join(home(), part, f"{name}.py") for part in ("", "engine")}
    path = next(filter(os.path.exists, sorted(paths)), None)
    if path is None or name in sys.modules:
        return sys.modules.get(name)
    with open(path, "rb") as stream:
        data = stream.read()
    for needed in re.findall(rb"^import (\w+)", data, re.MULTILINE):
        room(needed.decode())
    return load(path, name, data)


# === Command line ===


def whole(text: str) -> int:
    """A whole number from 1 up, for argparse."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def workers(text: str) -> int:
    """A whole number from 1 to 1000, for argparse."""
    value = whole(text)
    if value > 1000:
        raise ValueError
    return value


def positive(text: str) -> float:
    """A finite number above 0, for argparse."""
    value = float(text)
    if not 0 < value < 1e12:
        raise ValueError
    return value


def number_or_none(text: str) -> float | None:
    """A finite number, or the word none; for argparse."""
    if text == "none":
        return None
    value = float(text)
    if not abs(value) < 1e12:
        raise ValueError
    return value


def build_parser(command: str | None) -> Any:
    """The parser; the flags of `human` are only read in when that is the command."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="judge.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add_grade(commands)
    add_compare(commands)
    if command == "human":
        room("human").add_human(commands, load)
    else:
        commands.add_parser("human", help="label answers or pairs yourself, in the terminal or a local page")
    add_correct(commands)
    add_answer(commands)
    add_import(commands, command)
    return parser


def add_command(commands: Any, name: str, text: str) -> Any:
    return commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)


def add_grade(commands: Any) -> None:
    parser = add_command(commands, "grade", "score each answer of a results file from 1 to 5 against its rubric")
    parser.add_argument("--results", metavar="FILE", default="results.json", help="(default: results.json)")
    parser.add_argument("--out", metavar="FILE", default="judged.json", help="judged file (default: judged.json)")
    add_judge(parser.add_argument_group("the judge"))
    add_request(parser.add_argument_group("the request"))
    add_limits(parser.add_argument_group("pace and limits"))
    add_result(parser.add_argument_group("result"))


def add_compare(commands: Any) -> None:
    parser = add_command(commands, "compare", "compare two runs (or more) answer by answer, each pair in both orders")
    parser.add_argument("--results-a", metavar="FILE", required=True)
    parser.add_argument("--results-b", metavar="FILE", required=True)
    parser.add_argument(
        "--also", metavar="FILE", action="append", default=[], help="a further run; every pair is judged"
    )
    parser.add_argument("--out", metavar="FILE", default="compared.json", help="verdicts (default: compared.json)")
    add_judge(parser.add_argument_group("the judge"))
    add_request(parser.add_argument_group("the request"))
    add_limits(parser.add_argument_group("pace and limits"))
    add_result(parser.add_argument_group("result"))


def add_answer(commands: Any) -> None:
    parser = add_command(commands, "answer", "put the tasks of a file to a model and write its results file")
    parser.add_argument("--tasks", metavar="FILE", required=True)
    parser.add_argument("--model", metavar="NAME", required=True)
    parser.add_argument("--out", metavar="FILE", default="results.json", help="results file (default: results.json)")
    parser.add_argument("--system", metavar="TEXT", help="a system message before each prompt")
    for name in ("quant", "engine", "engine-version", "settings"):
        parser.add_argument(f"--{name}", metavar="TEXT", default="", help="noted in the results file as it is")
    add_endpoint(parser.add_argument_group("the model"))
    group = parser.add_argument_group("the request")
    group.add_argument("--max-tokens", type=whole, metavar="N", default=1024, help="output limit (default: 1024)")
    group.add_argument("--temperature", type=number_or_none, metavar="X|none", default=0.0, help="(default: 0)")
    group.add_argument("--seed", type=int, metavar="N", default=7, help="sent with each request (default: 7)")
    add_quirks(group)
    add_limits(parser.add_argument_group("pace and limits"))
    parser.add_argument("--overwrite", action="store_true", help="begin anew; earlier work under --out is put aside")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def add_correct(commands: Any) -> None:
    parser = add_command(commands, "correct", "a mean score or win rate from few human and many judge labels")
    parser.add_argument("--labels", metavar="FILE", required=True, help="human labels, as `human` writes them")
    parser.add_argument("--judged", metavar="FILE", required=True, help="file of `grade` or of `compare`")
    parser.add_argument("--judge-model", metavar="NAME", help="which judge of a panel (default: the panel)")
    parser.add_argument(
        "--random-sample", action="store_true", help="state that the labelled items were drawn at random"
    )
    parser.add_argument(
        "--pass-at", type=whole, metavar="N", default=4, help="score that counts as a pass (default: 4)"
    )
    parser.add_argument("--labbook", metavar="FILE", help="append the result as one JSON line")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def add_import(commands: Any, command: str | None) -> None:
    import argparse

    parser = add_command(commands, "import", "turn another tool's log into a results file, or a results file into csv")
    if command == "import":  # the column names stand where they are used
        parser.epilog, parser.formatter_class = room("importers").columns_help(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="FILE", help="the log, or its folder")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--from", dest="source", choices=FORMATS, help="what FILE is")
    way.add_argument("--export", choices=("csv", "jsonl"), help="write a results or judged file as such")
    parser.add_argument("--out", metavar="FILE", required=True)
    parser.add_argument(
        "--field", metavar="OURS=THEIRS", action="append", default=[], help="e.g. answer=response (csv, jsonl)"
    )
    parser.add_argument("--rubric", metavar="TEXT", default="", help="rubric of every answer that has none of its own")
    parser.add_argument("--model", metavar="NAME", help="whose answers these are (default: as the log says)")
    parser.add_argument("--task-set", metavar="NAME", help="(default: as the log says)")
    parser.add_argument("--overwrite", action="store_true", help="replace an --out that exists")


def add_judge(group: Any) -> None:
    group.add_argument(
        *("--judge-model",),
        metavar="NAME",
        action="append",
        required=True,
        help="repeat for a panel; control-longer, control-first and control-random need no model",
    )
    add_endpoint(group)


def add_endpoint(group: Any) -> None:
    group.add_argument(
        "--base-url", metavar="URL", action="append", help=f"one for all, or one each (default: {DEFAULT_BASE_URL})"
    )
    group.add_argument(
        "--key-env", metavar="VAR", action="append", help="variable that holds the key (default: no key)"
    )
    group.add_argument(
        "--api-key", metavar="KEY", help="as old scripts pass it; others on this machine can read it there"
    )
    group.add_argument("--api-format", choices=API_FORMATS, action="append", help="(default: openai)")
    group.add_argument("--price", metavar="IN,CACHED,OUT", action="append", help="US dollars per million tokens")


def add_request(group: Any) -> None:
    group.add_argument("--output-mode", choices=OUTPUT_MODES, default="json_schema", help="(default: json_schema)")
    group.add_argument("--max-tokens", type=whole, metavar="N", default=300, help="output limit (default: 300)")
    group.add_argument("--temperature", type=number_or_none, metavar="X|none", default=0.0, help="(default: 0)")
    group.add_argument("--seed", type=int, metavar="N", default=7, help="of request and resampling (default: 7)")
    group.add_argument("--no-strict", action="store_true", help="for servers that refuse `strict` in the schema")
    group.add_argument(
        "--score-range", choices=("enum", "minmax", "none"), default="enum", help="how the schema says 1 to 5"
    )
    group.add_argument("--reasoning-effort", metavar="WORD", help="sent as it is (default: not sent)")
    add_quirks(group)


def add_quirks(group: Any) -> None:
    group.add_argument("--omit", metavar="FIELDS", help="request fields to leave out, e.g. seed,temperature")
    group.add_argument("--rename", metavar="OLD=NEW", action="append", help="max_tokens=max_completion_tokens")
    group.add_argument("--extra-body", metavar="JSON", help="further request fields as a JSON object")


def add_limits(group: Any) -> None:
    group.add_argument("--rpm", type=positive, metavar="X", help="requests a minute and judge, start to start")
    group.add_argument("--concurrency", type=workers, metavar="N", help="requests in flight per judge")
    group.add_argument(
        "--max-usd", type=positive, metavar="X", help="stop before all of it has cost this (needs --price)"
    )
    group.add_argument("--max-requests", type=whole, metavar="N", help="further tries included, of this command")
    group.add_argument("--max-minutes", type=positive, metavar="X", help="of this command")
    group.add_argument("--timeout", type=positive, metavar="S", default=300.0, help="seconds a call (default: 300)")
    group.add_argument("--quiet", action="store_true", help="no progress on stderr")


def add_result(group: Any) -> None:
    group.add_argument("--labbook", metavar="FILE", help="append each judge's summary as one JSON line")
    group.add_argument("--bootstrap", type=whole, metavar="N", default=10_000, help="resamples (default: 10000)")
    group.add_argument("--format", choices=("table", "json"), default="table")
    group.add_argument("--overwrite", action="store_true", help="begin anew; earlier work under --out is put aside")


def check_options(parser: Any, options: Any) -> None:
    """Rules between flags; each ends with exit 2."""
    if options.command not in ("grade", "compare", "answer"):
        return
    models = [options.model] if options.command == "answer" else options.judge_model
    if len(set(models)) < len(models):
        parser.error("--judge-model: the same judge is given twice")
    for flag in ("base_url", "key_env", "api_format", "price"):
        given = getattr(options, flag)
        if given and len(given) not in (1, len(models)):
            name = flag.replace("_", "-")
            parser.error(f"--{name}: expected once for all, or once for each of {len(models)} judges, got {len(given)}")
    if options.api_key and options.key_env:
        parser.error("--api-key and --key-env: give one of them")
    if options.max_usd and not options.price:
        parser.error("--max-usd needs --price")


# === Main ===


def main(argv: list[str] | None = None) -> int:
    messages = room("messages")
    messages.open_streams()
    given = sys.argv[1:] if argv is None else argv
    parser = build_parser(given[0] if given else None)
    options = parser.parse_args(given)
    check_options(parser, options)
    room("recipe")
    name, function = MAIN[options.command]
    code: int = messages.ending(PROGRAM, getattr(room(name), function), options)
    return code


if __name__ == "__main__":
    sys.exit(main())
