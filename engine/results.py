"""The files of judge.py: results, judged and task files read and checked as a whole before anything is asked.

    results.read_results("results.json", results.GRADE)     # {"run": {...}, "results": [...]}
    results.read_judged("judged.json")                      # the same with "judge", as `grade` or `compare` wrote it

Only what a command needs is required: what else a file leaves out is filled in when it is read, texts of an answer as
"", fields of `run` as null. A file may be gzipped, may start with a byte order mark and may end its lines in CR LF.
Every problem names file, item and field; all are listed (the first 20 in full). Extra fields pass untouched.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from typing import Any

import evidence

# === Constants ===

RUN_FIELDS = (
    *("model", "quant", "engine", "engine_version", "settings", "task_set", "task_set_version"),
    *("checks_passed", "tasks"),
)
ITEM_TEXTS = ("id", "category", "prompt", "rubric", "reference", "answer")
TASK_TEXTS = ITEM_TEXTS[:-1]
GRADE = ("id", "prompt", "answer")  # what each answer must hold; every other text may be missing or null
COMPARE = ("id", "answer")
SCORES = (1, 2, 3, 4, 5)
DECISIONS = ("A", "B", "equal", "invalid")
MAX_BYTES = 1 << 30  # unpacked size of one file; a results file of a million answers is below that
MAX_DEPTH = 200  # brackets in brackets; what is read here is written again, one call of Python's in another
GZIP_MAGIC = b"\x1f\x8b"
IMPORTED = {"csv": "csv", "tsv": "csv", "jsonl": "jsonl", "ndjson": "jsonl", "eval": "inspect"}  # ending -> --from
CHECK_KINDS = ("exact", "contains", "regex", "number", "json")


class FileProblem(evidence.EvidenceError):
    """A file that cannot be used; the text has one line per problem, each naming file, item and field."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


# === Bytes ===


def read_bytes(path: str) -> bytes:
    """A file's bytes, unpacked when it is gzipped. Raises: FileProblem."""
    try:
        with evidence.open_file(path) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileProblem(f"{path}: cannot be read: {error.strerror}") from None
    if data.startswith(GZIP_MAGIC):
        data = unpacked(data, path)
    if len(data) > MAX_BYTES:
        raise FileProblem(f"{path}: is larger than {MAX_BYTES} bytes")
    return data


def unpacked(data: bytes, path: str) -> bytes:
    """The content of gzip bytes, one member after the other, never more than MAX_BYTES + 1. Raises: FileProblem."""
    found, left = [], MAX_BYTES + 1
    stream = evidence.Unpacking(io.BytesIO(data))
    try:
        while left > 0 and (piece := stream.piece(left)):
            found.append(piece)
            left -= len(piece)
    except (zlib.error, EOFError) as error:
        raise FileProblem(f"{path}: damaged gzip file: {error}") from None
    except evidence.TooManyMembers as problem:
        raise FileProblem(f"{path}: {problem}") from None
    return b"".join(found)


def read_value(path: str, data: bytes | None = None) -> Any:
    """The JSON value a file holds. Raises: FileProblem with the likely cause as hint."""
    data = read_bytes(path) if data is None else data
    if not data.strip(b" \t\r\n\xef\xbb\xbf"):
        raise FileProblem(f"{path}: is empty")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or data[1:2] == b"\0" or data[:1] == b"\0":
        raise FileProblem(f"{path}: expected UTF-8, got UTF-16 or UTF-32", "save the file as UTF-8")
    try:
        return parsed(data, path)
    except evidence.EvidenceError as error:
        lines = [line for line in data.split(b"\n") if line.strip()]
        many = len(lines) > 1 and lines[0].strip().endswith(b"}")
        raise FileProblem(str(error), import_hint(path, "jsonl" if many else None)) from None


def parsed(data: bytes, where: str) -> Any:
    """The value of strict JSON text that is nested no deeper than MAX_DEPTH. Raises: EvidenceError naming `where`."""
    value = evidence.parse_json(data, where)
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deep(value):
        raise FileProblem(f"{where}: JSON is nested more than {MAX_DEPTH} deep")
    return value


def is_deep(value: Any) -> bool:
    """Whether lists and objects stand in each other more than MAX_DEPTH deep; counted level by level."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inside = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, (dict, list))]
        level, depth = [one for part in inside for one in part if isinstance(one, (dict, list))], depth + 1
    return bool(level)


def import_hint(path: str, form: str | None = None) -> str | None:
    """How a file that `import` reads becomes a results file; form: what it is when its name does not say."""
    import os
    import shlex

    base, ending = os.path.splitext(path.removesuffix(".gz"))
    form = IMPORTED.get(ending[1:].lower(), form)
    if form is None:
        return None
    names = f"{shlex.quote(path)} --from {form} --out {shlex.quote(base + '.results.json')}"
    return f"turn it into a results file first: python3 -I judge.py import {names}"


def refuse(problems: list[str], hint: str | None = None) -> None:
    """Raise one error that lists the problems, if there are any."""
    if problems:
        more = len(problems) - evidence.MAX_LISTED
        shown = problems[: evidence.MAX_LISTED] + ([f"… and {more} more problems"] if more > 0 else [])
        raise FileProblem("\n".join(shown), hint)


def kind_of(value: Any) -> str:
    """A JSON value's kind in the words of an error."""
    if value is None:
        return "null"
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), type(value).__name__)


# === Results ===


def read_results(path: str, need: tuple[str, ...]) -> dict[str, Any]:
    """A results file whose answers hold all texts of `need`, the others filled in. Raises: FileProblem."""
    value = read_value(path)
    top_problems(value, path)
    run = value.get("run") or {}
    problems = [*run_problems(run, path), *item_problems(value["results"], need, path, ITEM_TEXTS)]
    problems += [text for place, item in enumerate(value["results"]) for text in checks_problems(item, place, path)]
    refuse(problems)
    return {**value, "run": whole_run(run), "results": [filled(item, ITEM_TEXTS) for item in value["results"]]}


def filled(item: dict[str, Any], texts: tuple[str, ...]) -> dict[str, Any]:
    """An item with every text that it leaves out as "", and a rubric or reference of null as it is."""
    missing = {key: "" for key in texts if item.get(key) is None and key not in ("rubric", "reference")}
    return {**item, **missing, **{key: "" for key in ("rubric", "reference") if key in texts and key not in item}}


def whole_run(run: dict[str, Any]) -> dict[str, Any]:
    """`run` with null for what it does not say."""
    return {**run, **{key: None for key in RUN_FIELDS if key not in run}}


def top_problems(value: Any, path: str) -> None:
    """Refuse what is no results file, and say what it is instead. Raises: FileProblem."""
    if not isinstance(value, dict):
        hint = import_hint(path, "jsonl" if isinstance(value, list) else None)
        raise FileProblem(f"{path}: expected an object with 'run' and 'results', got {kind_of(value)}", hint)
    if "tasks" in value and "results" not in value:
        hint = "answer the tasks first: judge.py answer --tasks FILE --model NAME --out results.json"
        raise FileProblem(f"{path}: is a task file, expected a results file", hint)
    if "judge" in value:
        raise FileProblem(
            f"{path}: field 'judge': this is a judged file, expected a results file", "give the file it was made from"
        )
    if "results" not in value:
        raise FileProblem(f"{path}: field 'results' is missing", import_hint(path))
    if not isinstance(value["results"], list):
        raise FileProblem(f"{path}: field 'results': expected a list, got {kind_of(value['results'])}")
    if not isinstance(value.get("run"), (dict, type(None))):
        raise FileProblem(f"{path}: field 'run': expected an object, got {kind_of(value['run'])}")
    if not value["results"]:
        raise FileProblem(f"{path}: field 'results': holds no answers")


def run_problems(run: dict[str, Any], path: str) -> list[str]:
    """What is wrong with `run`: a model's name, where there is one, is a text; nothing else of it is used."""
    model = run.get("model")
    if model is None or (isinstance(model, str) and model):
        return []
    return [f"{path}: field 'run.model': expected a non-empty text, got {model!r}"]


def item_label(item: Any, place: int, path: str) -> str:
    """Where a problem is: the file, the item's place from 1, and its id where it has one."""
    name = item.get("id") if isinstance(item, dict) else None
    return f"{path}: item {place + 1}" + (f" ({name!r})" if isinstance(name, str) and name else "")


def item_problems(items: list[Any], need: tuple[str, ...], path: str, texts: tuple[str, ...] = ()) -> list[str]:
    """What is wrong with the items: a missing or ill-typed field, an id that is empty or stands twice.

    need: texts that every item must hold; texts: those that may be missing or null, but nothing else.
    """
    problems: list[str] = []
    seen: dict[str, int] = {}
    for place, item in enumerate(items):
        label = item_label(item, place, path)
        if not isinstance(item, dict):
            problems.append(f"{label}: expected an object, got {kind_of(item)}")
            continue
        for key in dict.fromkeys((*need, *texts)):
            if key in need and key not in item:
                problems.append(f"{label}: field '{key}' is missing")
            elif not isinstance(item.get(key), str) and (key in need or item.get(key) is not None):
                problems.append(f"{label}: field '{key}': expected a text, got {kind_of(item[key])}")
        name = item.get("id")
        if name == "":
            problems.append(f"{label}: field 'id': expected a non-empty text, got ''")
        elif isinstance(name, str) and name in seen:
            problems.append(f"{label}: field 'id': stands twice (items {seen[name]} and {place + 1})")
        if isinstance(name, str):
            seen.setdefault(name, place + 1)
    return problems


def checks_problems(item: Any, place: int, path: str) -> list[str]:
    """What is wrong with an answer's `checks`, and with a verdict that a results file must not hold."""
    if not isinstance(item, dict):
        return []
    label = item_label(item, place, path)
    if "judge" in item:
        return [f"{label}: field 'judge': this is a judged file, expected a results file"]
    checks = item.get("checks")
    if checks is None:
        return []
    if not isinstance(checks, dict):
        return [f"{label}: field 'checks': expected an object, got {kind_of(checks)}"]
    passed = checks.get("passed")
    if passed is not None and not isinstance(passed, bool):
        return [f"{label}: field 'checks.passed': expected true or false, got {passed!r}"]
    return []


# === Judged files ===


def read_judged(path: str) -> dict[str, Any]:
    """A judged file of `grade` or of `compare`. `judge.mode` says which. Raises: FileProblem."""
    return checked_judged(read_value(path), path)


def checked_judged(value: Any, path: str) -> dict[str, Any]:
    """The same of a value that was read from `path`. Raises: FileProblem."""
    if isinstance(value, dict) and "results" in value and "judge" not in value:
        hint = "grade it first: judge.py grade --results FILE --judge-model NAME"
        raise FileProblem(f"{path}: field 'judge' is missing: this is a results file, expected a judged file", hint)
    if not isinstance(value, dict) or not isinstance(value.get("judge"), dict):
        raise FileProblem(f"{path}: expected a judged file, an object with 'judge' and its items, got {kind_of(value)}")
    refuse([f"{path}: {text}" for text in head_problems(value["judge"])])
    compared = value["judge"].get("mode") == "compare"
    key = "pairs" if compared else "results"
    if not isinstance(value.get(key), list) or not value[key]:
        raise FileProblem(f"{path}: field '{key}': expected a list of items, got {kind_of(value.get(key))}")
    need = ("id", "answer_a", "answer_b") if compared else ("id", "answer")
    problems = item_problems(value[key], need, path, ("prompt",))
    for place, item in enumerate(value[key]):
        if isinstance(item, dict):
            found = decision_problems(item) if compared else score_problems(item)
            problems += [f"{item_label(item, place, path)}: {text}" for text in found]
    refuse(problems)
    return {**value, key: [filled(item, ("prompt",)) for item in value[key]]}


def head_problems(head: dict[str, Any]) -> list[str]:
    """What is wrong with the summary of a judged file: its texts, and the summaries of a panel's judges."""
    problems = []
    for key in ("mode", "judge_model"):
        if not isinstance(head.get(key), (str, type(None))):
            problems.append(f"field 'judge.{key}': expected a text, got {kind_of(head[key])}")
    panel = head.get("judges")
    if panel is not None and not isinstance(panel, dict):
        return [*problems, f"field 'judge.judges': expected an object, got {kind_of(panel)}"]
    for name, each in (panel or {}).items():
        if not isinstance(each, dict):
            problems.append(f"field 'judge.judges.{name}': expected an object, got {kind_of(each)}")
    return problems


def panel_of(item: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(what each judge of a panel said of an item, what is wrong with the field that holds it)."""
    panel = item.get("judges")
    if panel is None or isinstance(panel, dict):
        return panel or {}, []
    return {}, [f"field 'judges': expected an object, got {kind_of(panel)}"]


def score_problems(item: dict[str, Any]) -> list[str]:
    """What is wrong with the verdict of a graded answer, and with those of a panel's judges."""
    if "judge" not in item:
        return ["field 'judge' is missing (write null for an answer without a verdict)"]
    panel, problems = panel_of(item)
    verdicts = {"judge": item["judge"], **{f"judges.{name}": verdict for name, verdict in panel.items()}}
    for where, verdict in verdicts.items():
        if verdict is None:
            continue
        score = verdict.get("score") if isinstance(verdict, dict) else None
        if not isinstance(verdict, dict):
            problems.append(f"field '{where}': expected an object or null, got {kind_of(verdict)}")
        elif isinstance(score, bool) or score not in SCORES:
            problems.append(f"field '{where}.score': expected a whole number from 1 to 5, got {score!r}")
    return problems


def choice_problems(each: Any, where: str) -> list[str]:
    """What is wrong with the choices of one judge's replies to a pair, where the file keeps them."""
    said = {order: each.get(order) for order in ("original", "swapped")} if isinstance(each, dict) else {}
    choices = {order: reply.get("choice") for order, reply in said.items() if isinstance(reply, dict)}
    return [
        f"field '{where}{order}.choice': expected a text, got {kind_of(choice)}"
        for order, choice in choices.items()
        if not isinstance(choice, (str, type(None)))
    ]


def decision_problems(item: dict[str, Any]) -> list[str]:
    """What is wrong with the decision on a pair, and with those of a panel's judges."""
    if "decision" not in item:
        return ["field 'decision' is missing (write null for a pair that was not judged)"]
    panel, problems = panel_of(item)
    decisions = {"decision": item["decision"]}
    for name, each in panel.items():
        problems += choice_problems(each, f"judges.{name}.")
        if isinstance(each, dict):
            decisions[f"judges.{name}.decision"] = each.get("decision")
        elif each is not None:
            problems.append(f"field 'judges.{name}': expected an object or null, got {kind_of(each)}")
    problems += choice_problems(item, "")
    for where, decision in decisions.items():
        if decision is not None and decision not in DECISIONS:
            problems.append(f"field '{where}': expected A, B, equal, invalid or null, got {decision!r}")
    return problems


# === Tasks ===


def read_tasks(path: str) -> dict[str, Any]:
    """A task file: {"tasks": [{"id", "prompt", …}], …}, with the texts a task leaves out filled in.

    Raises: FileProblem.
    """
    value = read_value(path)
    if isinstance(value, dict) and "results" in value and "tasks" not in value:
        raise FileProblem(f"{path}: is a results file, expected a task file")
    if not isinstance(value, dict) or not isinstance(value.get("tasks"), list):
        raise FileProblem(f"{path}: expected an object with a list 'tasks', got {kind_of(value)}")
    problems = []
    for key in ("task_set", "task_set_version"):
        if not isinstance(value.get(key), (str, type(None))):
            problems.append(f"{path}: field '{key}': expected a text, got {kind_of(value.get(key))}")
    if not value["tasks"]:
        problems.append(f"{path}: field 'tasks': holds no tasks")
    problems += item_problems(value["tasks"], ("id", "prompt"), path, TASK_TEXTS)
    for place, task in enumerate(value["tasks"]):
        if isinstance(task, dict):
            problems += [f"{item_label(task, place, path)}: {text}" for text in check_list_problems(task)]
    refuse(problems)
    head = {key: value.get(key) for key in ("task_set", "task_set_version")}
    return {**value, **head, "tasks": [filled(task, TASK_TEXTS) for task in value["tasks"]]}


def check_list_problems(task: dict[str, Any]) -> list[str]:
    """What is wrong with the checks of a task."""
    checks = task.get("checks", [])
    if not isinstance(checks, list):
        return [f"field 'checks': expected a list, got {kind_of(checks)}"]
    problems = []
    for place, check in enumerate(checks):
        problem = check_problem(check)
        if problem:
            problems.append(f"field 'checks[{place}]{problem}")
    return problems


def check_problem(check: Any) -> str | None:
    """What is wrong with one check; starts with the rest of the field's name."""
    import re

    if not isinstance(check, dict) or check.get("type") not in CHECK_KINDS:
        got = check.get("type") if isinstance(check, dict) else check
        return f".type': expected one of {', '.join(CHECK_KINDS)}, got {got!r}"
    kind, value = check["type"], check.get("value")
    if kind == "number":
        for key in ("value", "tolerance"):
            given = check.get(key, 0 if key == "tolerance" else None)
            if isinstance(given, bool) or not isinstance(given, (int, float)):
                return f".{key}': expected a number, got {kind_of(given)}"
    elif kind != "json" and not isinstance(value, str):
        return f".value': expected a text, got {kind_of(value)}"
    if kind == "regex":
        try:
            re.compile(str(value))
        except re.error as error:
            return f".value': not a regular expression ({error})"
    return None


# === Written forms ===


def published(value: Any) -> bytes:
    """A results or judged file: two blanks a level, everything beyond ASCII escaped, as the published format has it."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode("ascii")


def check_out(out: str, *read: str) -> None:
    """Refuse to write over a file that the same command reads, whatever else was asked for. Raises: FileProblem."""
    if not os.path.exists(out):
        return
    for path in read:
        if os.path.exists(path) and os.path.samefile(path, out):
            raise FileProblem(f"{out}: --out: expected another file than {path}, which is read")


def check_labbook(path: str | None, *others: str | None) -> None:
    """Whether a line can be added to this labbook, before any work is done for it.

    others: what the command reads and writes; a labbook is none of them and lies in none of them. Raises: FileProblem.
    """
    if path is None:
        return
    real = os.path.realpath(path)
    for other in filter(None, others):
        own = os.path.realpath(other)
        same = os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
        if same or real == own or real.startswith(os.path.join(own, "")):
            raise FileProblem(f"{path}: --labbook: expected a file of its own, got {other}, which this command uses")
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        raise FileProblem(f"{path}: --labbook: expected an existing folder, got {folder}, which is not there")
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise FileProblem(f"{path}: --labbook: expected a file, got something else")
    try:
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip() and not isinstance(evidence.parse_json(line, f"{path}:{number}"), dict):
                    raise FileProblem(f"{path}:{number}: expected a JSON object")
                if not line.endswith(b"\n"):
                    raise FileProblem(f"{path}:{number}: expected a line feed at the end of the last line, got none")
    except evidence.EvidenceError as problem:
        raise FileProblem(str(problem), "--labbook adds to a file of JSON lines and to no other") from None


def append_line(path: str, value: Any) -> None:
    """Add one JSON line to a labbook, in a single write."""
    with open(path, "ab") as stream:
        stream.write((json.dumps(value, allow_nan=False) + "\n").encode("ascii"))
