"""The `human` command: a person labels answers or pairs, and the judge is measured against these labels.

Options become a source of tasks, a sample, a session in the terminal or on a local page, and at the end a result on
stdout. Labels are the only thing written, but for --labbook and --make-fixture. Connections are refused; the page's
server may listen on this machine's own address and nothing else.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import commands
import evidence
import label_fixture
import label_results
import label_sources
import label_terminal
import labels
import messages
import results

# === Constants ===

PROGRAM = "judge"
LAB = "judge.py"
DEFAULT_SAMPLE = 8
DEFAULT_SEED = 7
DEFAULT_RESAMPLES = 10_000
WEB_ROOMS = ("label_markdown", "label_page", "label_web")  # loaded when a page is asked for: they bring a web server
NOT_IN_LABBOOK = ("disagreements", "cells")  # long; the published line has big_disagreements
REFUSED = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "subprocess.", "os.system")
REFUSED_TOO = ("os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.fork")
HANDLED = (evidence.EvidenceError, labels.LabelError, label_fixture.FixtureError)
DESCRIPTION = """Label answers (1 to 5) or pairs (A, B, equal) without seeing the judge, and measure the judge by it.

    python3 -I judge.py human --judged judged.json --sample 20
    python3 -I judge.py human --pairs fixture.jsonl --annotator ana --web
    python3 -I judge.py human --results-a a.json --results-b b.json --annotator ana
    python3 -I judge.py human --pairs fixture.jsonl --labels votes.jsonl --make-fixture my-eval
    python3 -I judge.py human --pairs labelled.jsonl --make-fixture my-eval

Every label is on disk the moment it is given; the same command goes on where it was left. Several people use the same
--labels file, each with a name of their own. A correction is a later line; nothing is ever removed.

The sample is random: every item has the same chance to be in it, and it is spread evenly over categories and over what
the labels are set against. --make-fixture takes the votes as gold; a pair that nobody labelled keeps the gold it came
with, so that pairs with gold become an evaluation without labelling any."""


# === Command line ===


def whole(text: str) -> int:
    """A whole number from 1 up, for argparse."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def port(text: str) -> int:
    """A port number, for argparse; 0 = any free one."""
    value = int(text)
    if not 0 <= value < 65536:
        raise ValueError
    return value


def name(text: str) -> str:
    """A person's name, for argparse."""
    value = text.strip()
    if not value or len(value) > labels.MAX_NAME or not value.isprintable():
        raise ValueError
    return value


def add_human(commands: Any, load: Any = None) -> None:
    """The parser of `human`, added to judge.py's commands; load: the entry script's loader, for what few runs need."""
    import argparse

    parser = commands.add_parser(
        "human",
        help="label answers or pairs yourself, in the terminal or a local page",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = parser.add_argument_group("what is labelled (default: --judged judged.json)")
    what.add_argument("--judged", metavar="FILE", help="answers or pairs of a file of grade or compare")
    what.add_argument("--pairs", metavar="FILE", help="pairs, as in fixture.jsonl, or a file of compare")
    what.add_argument("--results-a", metavar="FILE", help="with --results-b: the answers of two results files")
    what.add_argument("--results-b", metavar="FILE")
    what.add_argument("--sample", type=whole, metavar="N", help="how many (default: 8 answers, or all pairs)")
    what.add_argument("--seed", type=int, metavar="N", default=DEFAULT_SEED, help="of sample and sides (default: 7)")
    who = parser.add_argument_group("labelling")
    who.add_argument("--labels", metavar="FILE", help="where labels are kept (default: beside the file, .labels.jsonl)")
    who.add_argument(
        "--annotator", type=name, metavar="NAME", default="annotator", help="who labels (default: annotator)"
    )
    who.add_argument("--web", action="store_true", help="label on a page in the browser, served to this machine alone")
    who.add_argument("--port", type=port, metavar="N", default=0, help="of the page (default: any free one)")
    after = parser.add_argument_group("result")
    after.add_argument("--result", action="store_true", help="only the result of the labels there are")
    after.add_argument(
        "--make-fixture", metavar="OUT", help="make an evaluation folder (or a .jsonl) of labelled pairs"
    )
    after.add_argument("--labbook", metavar="FILE", help="append the result as one JSON line")
    after.add_argument("--bootstrap", type=whole, metavar="N", default=DEFAULT_RESAMPLES, help="(default: 10000)")
    after.add_argument("--format", choices=("table", "json"), default="table")
    parser.set_defaults(load=load)


def usage_problem(options: Any) -> str | None:
    """What does not go together, or None."""
    if bool(options.results_a) != bool(options.results_b):
        return "--results-a and --results-b go together"
    given = [bool(options.judged), bool(options.pairs), bool(options.results_a)]
    if sum(given) > 1:
        return "give one of --judged, --pairs, and --results-a with --results-b"
    if options.web and (options.result or options.make_fixture):
        return "--web goes without --result and --make-fixture"
    if options.port and not options.web:
        return "--port needs --web"
    return None


# === Network lock ===


def lock_network(serves: bool) -> None:
    """From here on no connection leaves this process and no child process starts; a page may be served on 127.0.0.1."""

    def refuse(event: str, given: Any) -> None:
        if event.startswith(REFUSED) or event.startswith(REFUSED_TOO):
            raise PermissionError(f"this command is offline: {event} refused")
        if event == "socket.bind" and not (serves and given[1][0] == "127.0.0.1"):
            raise PermissionError(f"this command is offline: {event} refused")

    sys.addaudithook(refuse)


# === Parts ===


def read_source(options: Any) -> label_sources.Source:
    """What is to be labelled. Raises: EvidenceError naming file, item and field."""
    if options.pairs:
        return label_sources.from_pairs(options.pairs)
    if options.results_a:
        return label_sources.from_results(options.results_a, options.results_b)
    return label_sources.from_judged(options.judged or "judged.json")


def labels_path(options: Any) -> str:
    """Where labels are kept: as told, or beside the labelled file."""
    if options.labels:
        return str(options.labels)
    base = options.pairs or options.results_a or options.judged or "judged.json"
    for ending in (".gz", ".jsonl", ".json"):
        base = base.removesuffix(ending)
    return f"{base}.labels.jsonl"


def sample_size(options: Any, source: label_sources.Source) -> int | None:
    """How many items are asked; None = all."""
    if options.sample is not None:
        return int(options.sample)
    return DEFAULT_SAMPLE if source.kind == "score" else None


def work_out(
    source: label_sources.Source, given: list[labels.Label], options: Any, clock: Callable[[], float]
) -> dict[str, Any]:
    """The summary of the labels given so far."""
    setting = label_results.Setting(
        lab=LAB,
        judge=source.judge,
        model=source.model,
        date=time.strftime("%Y-%m-%d", time.gmtime(clock())),
        source=source.name,
        seed=options.seed,
        n_resamples=options.bootstrap,
    )
    worked = label_results.score_result if source.kind == "score" else label_results.pair_result
    return worked(source.tasks, given, setting)


def published(found: dict[str, Any]) -> None:
    """The result on stdout is the last thing a session does."""
    messages.show("\n".join(label_results.as_text(found)).rstrip("\n") + "\n")


def loaded(names: tuple[str, ...], load: Any) -> Any:
    """The last of some rooms, loaded now if they are not yet."""
    engine = os.path.dirname(os.path.abspath(__file__))
    for room in names:
        sys.modules.get(room) or load(os.path.join(engine, f"{room}.py"), room)
    return sys.modules[names[-1]]


# === Command ===


def main_human(options: Any, clock: Callable[[], float] = time.time) -> int:
    """Label, then say how far the judge agrees. Exit code 0, 2 usage, 3 no result or unusable file, 130 stopped."""
    voice = messages.Voice(PROGRAM)
    problem = usage_problem(options)
    if problem:
        voice.error(problem, "python3 -I judge.py human --help")
        return 2
    lock_network(options.web)
    try:
        return labelled(options, voice, clock)
    except HANDLED as error:
        text, _, hint = str(error).partition("\nhint: ")
        voice.error(text, getattr(error, "hint", None) or hint or None)
    except OSError as error:
        voice.error(f"{error.filename or 'labels'}: {error.strerror or error}")
    return 3


def labelled(options: Any, voice: Any, clock: Callable[[], float]) -> int:
    """One run of the command with readable options. Raises: what HANDLED lists, OSError."""
    source = read_source(options)
    path = labels_path(options)
    given = (source.name, options.pairs, options.results_a, options.results_b, options.judged)
    results.check_labbook(options.labbook, *given, path, options.make_fixture)
    voice.warn(source.notes)
    if options.make_fixture and source.kind != "pair":
        voice.error("--make-fixture needs pairs: scores of single answers are no pairs")
        return 2
    book = labels.LabelBook(path)
    if book.unfinished_bytes:
        voice.warn([f"{path}: left out: {book.unfinished_bytes} bytes of a last line that was never finished"])
    foreign = labels.check_content(book.labels, source.tasks, path, source.name)
    if foreign:
        voice.warn([f"{path}: {len(foreign)} labelled items are not in {source.name} and stay untouched"])
    try:
        if not (options.result or options.make_fixture):
            stopped = ask(source, book, options, voice, clock)
            if stopped:
                return stopped
        return conclude(source, book, options, voice, clock)
    finally:
        book.close()


def ask(
    source: label_sources.Source, book: labels.LabelBook, options: Any, voice: Any, clock: Callable[[], float]
) -> int:
    """The labelling itself; 0 when the result is to follow, else the exit code."""
    tasks = labels.presentation(source.tasks, sample_size(options, source), options.seed, options.annotator)
    session = labels.Session(tasks, options.annotator, book, seed=options.seed, clock=clock)
    if options.web:
        label_web = loaded(WEB_ROOMS, options.load)

        def result() -> dict[str, Any]:
            return label_results.as_page(work_out(source, book.labels, options, clock), session)

        title = "Score answers" if source.kind == "score" else "Compare answers"
        label_web.serve(session, title, result, options.port, messages.say)
        return 0
    try:
        label_terminal.run(session)
    except KeyboardInterrupt:
        counts = session.counts()
        messages.say(f"stopped; {counts['labelled']} labels are kept in {book.path}; the same command goes on")
        return 130
    return 0


def conclude(
    source: label_sources.Source, book: labels.LabelBook, options: Any, voice: Any, clock: Callable[[], float]
) -> int:
    """Print the result, and write what was asked for."""
    found = work_out(source, book.labels, options, clock)
    made = make_fixture(source, book, options, found) if options.make_fixture else []
    if not any(one["labelled"] for one in found["annotators"].values()):
        code = 0 if made else nothing_labelled(found, book, options)
        say_made(made, options)
        return code
    if options.format == "json":
        print(json.dumps(found, ensure_ascii=True, indent=2, allow_nan=False))
    else:
        published(found)
    if options.labbook:
        results.append_line(options.labbook, {key: value for key, value in found.items() if key not in NOT_IN_LABBOOK})
    say_made(made, options)
    return 0


def nothing_labelled(found: dict[str, Any], book: labels.LabelBook, options: Any) -> int:
    """Say that there is no label yet. Exit code 0 after a look around, 3 where a result was asked for."""
    skipped = sum(one["skipped"] for one in found["annotators"].values())
    messages.say(f"no labels yet in {book.path}" + (f" ({skipped} skipped)" if skipped else ""))
    return 3 if options.result or options.format == "json" else 0


def say_made(made: list[str], options: Any) -> None:
    """Name the files of a fixture, and how to go on."""
    for path in made:
        messages.say(f"wrote {path}")
    if len(made) > 1:
        messages.say(f"hint: {commands.script('run_eval.py')} {shlex.quote(options.make_fixture)} --demo")


def make_fixture(
    source: label_sources.Source, book: labels.LabelBook, options: Any, found: dict[str, Any]
) -> list[str]:
    """Turn votes and gold into a fixture; returns the files written. Raises: FixtureError, OSError."""
    rows = label_fixture.fixture_rows(source.rows, source.tasks, book.labels)
    messages.say(label_fixture.origin_line(rows, source.rows))
    if options.make_fixture.endswith(".jsonl"):
        return label_fixture.make_file(options.make_fixture, rows)
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    runner = sys.modules.get("run_eval") or options.load(os.path.join(home, "run_eval.py"), "run_eval")
    here = label_fixture.labelled_here(rows, source.rows)
    return label_fixture.make(options.make_fixture, rows, found, home, runner, here)
