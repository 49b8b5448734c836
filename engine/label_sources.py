"""What a person is asked to label: a judged file's answers, pairs of a fixture, a comparison, or two results files.

Every form becomes the same tasks; pairs also keep a row in the fixture's shape, from which `--make-fixture` makes an
evaluation. Files are checked as a whole before the first item is shown. Reads files; writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import evidence
import fixtures
import label_results
import labels
import results
import sheets

# === Constants ===

ALIASES = {"id": "item_id", "prompt": "text"}  # names that other tools' pairs use
# Names that only count where no other name of that field stands in the file.
SECOND_ALIASES = {"question": "text", "response_a": "answer_a", "response_b": "answer_b", "winner": "gold"}
GOLD_WORDS = {  # and how they spell a label
    **dict.fromkeys(("a", "model_a", "answer_a", "response_a"), "A"),
    **dict.fromkeys(("b", "model_b", "answer_b", "response_b"), "B"),
    **dict.fromkeys(("equal", "tie", "draw", "tie (bothbad)"), "equal"),
}
ANSWERS = ("answer_a", "answer_b")
PANEL_TITLES = {"text": "Question", "rubric": "What a good answer does", "reference": "Reference answer"}


class Source(NamedTuple):
    """What a file gives.

    kind: 'score' or 'pair'. tasks: everything that may be labelled. rows: for pairs, item -> its fixture row. judge:
    the name of what the labels are set against. model: whose answers. notes: what was left out, one line each.
    """

    kind: str
    name: str
    tasks: list[labels.Task]
    rows: dict[str, dict[str, Any]]
    judge: str
    model: str
    notes: list[str]


# === Scores ===


def panels_of(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """What is shown above the answers: question, rubric, reference, where there are such texts."""
    found = ((title, row.get(key)) for key, title in PANEL_TITLES.items())
    return tuple((title, text) for title, text in found if isinstance(text, str) and text.strip())


def score_of(verdict: Any) -> int | None:
    return verdict.get("score") if isinstance(verdict, dict) else None


def score_task(item: dict[str, Any]) -> labels.Task:
    """The task of one graded answer."""
    verdict, panel = item["judge"], item.get("judges")
    return labels.Task(
        item=item["id"],
        kind="score",
        panels=panels_of({**item, "text": item["prompt"]}),
        answers=(item["answer"],),
        category=text_of(item.get("category")),
        judge=score_of(verdict),
        why=text_of(verdict.get("why")) if isinstance(verdict, dict) else "",
        panel=tuple((name, score_of(one)) for name, one in panel.items()) if isinstance(panel, dict) else (),
    )


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def from_judged(path: str) -> Source:
    """The judged answers of a file of `grade`, or the pairs of one of `compare`. Raises: FileProblem."""
    value = results.read_judged(path)
    head = value["judge"]
    if head.get("mode") == "compare":
        return from_compared(path, value)
    tasks = [score_task(item) for item in value["results"]]
    judged = [task for task in tasks if task.judge is not None]
    if not judged:
        raise results.FileProblem(f"{path}: no judged results", "grade the file first, with a judge that answers")
    left = len(tasks) - len(judged)
    notes = [f"{left} answers without a score of the judge are not asked"] if left else []
    run = value.get("run")
    model = text_of(run.get("model")) if isinstance(run, dict) else ""
    return Source("score", path, judged, {}, str(head.get("judge_model", "the judge")), model, notes)


# === Pairs ===


def pair_task(row: dict[str, Any], judge: Any, why: str = "") -> labels.Task:
    """The task of one pair; judge: what its labels are set against, in the row's own A/B."""
    return labels.Task(
        item=row["item_id"],
        kind="pair",
        panels=panels_of(row),
        answers=(row["answer_a"], row["answer_b"]),
        category=text_of(row.get("category")),
        judge=judge,
        why=why,
        cluster=row.get("cluster"),
    )


def from_compared(path: str, value: dict[str, Any]) -> Source:
    """The pairs of a file of `compare`, with the judge's decisions kept back.

    Where more than two runs were compared, an id names its two models; the person is shown the task's name instead.
    """
    head = value["judge"]
    names = list(value["runs"]) if isinstance(value.get("runs"), dict) else []
    sides = [head.get(side) for side in ("a", "b")]
    first_two = [text_of(side.get("model")) if isinstance(side, dict) else "" for side in sides]
    tasks, rows = [], {}
    for found in value["pairs"]:
        models = models_in(found["id"], names) or first_two
        repeated = text_of(found.get("task")) if found.get("task") != found["id"] else ""
        row = joined_row({**found, "cluster": repeated}, found, models)
        rows[found["id"]] = row
        task = pair_task(row, found["decision"], reasons_of(found))
        tasks.append(task._replace(name=repeated, panel=panel_of(found)))
    models = names if len(names) > 2 else first_two
    return Source("pair", path, tasks, rows, str(head.get("judge_model", "the judge")), " vs ".join(models), [])


def models_in(item: str, names: Sequence[str]) -> list[str]:
    """The two models that an id ends with, as `compare` writes it for more than two runs; [] without them."""
    pairs = ([one, other] for one in names for other in names if item.endswith(f" [{one} / {other}]"))
    return next(pairs, [])


def reasons_of(found: dict[str, Any]) -> str:
    """What the judge said in each order, or each judge's decision."""
    orders = {order: found[order] for order in ("original", "swapped") if isinstance(found.get(order), dict)}
    said = [f"{order}: {text}" for order, one in orders.items() if (text := text_of(one.get("why")))]
    return " · ".join(said or [f"{name}: {decision}" for name, decision in panel_of(found)]) or text_of(
        found.get("why")
    )


def panel_of(found: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """(judge, its decision) where there were several."""
    judges = found.get("judges")
    if not isinstance(judges, dict):
        return ()
    return tuple((name, one.get("decision")) for name, one in judges.items() if isinstance(one, dict))


def joined_row(task: dict[str, Any], answers: dict[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """A fixture row of one task with two answers."""
    row: dict[str, Any] = {"item_id": task["id"], "split": "test", "text": task["prompt"]}
    row.update(answer_a=answers["answer_a"], answer_b=answers["answer_b"], gold=None)
    for key in ("category", "rubric", "reference", "cluster"):
        if isinstance(task.get(key), str) and task[key]:
            row[key] = task[key]
    return {**row, **{key: name for key, name in zip(("model_a", "model_b"), models) if name}}


def from_results(path_a: str, path_b: str) -> Source:
    """The tasks that two results files share, one answer from each. Raises: FileProblem.

    Left out and said: ids that only one file has, and tasks with the same answer in both.
    """
    runs = [results.read_results(path, results.COMPARE) for path in (path_a, path_b)]
    first, second = ({item["id"]: item for item in run["results"]} for run in runs)
    models = [str(run["run"]["model"] or "") for run in runs]
    notes = []
    for path, own, other in ((path_a, first, second), (path_b, second, first)):
        alone = [name for name in own if name not in other]
        if alone:
            notes.append(f"only in {path}, left out: {', '.join(alone)}")
    rows, same = {}, []
    for name, item in first.items():
        if name in second:
            check_same_task(name, item, second[name], path_a, path_b)
            answers = {"answer_a": item["answer"], "answer_b": second[name]["answer"]}
            texts = {key: text or second[name].get(key) for key, text in item.items()}
            rows[name] = joined_row({**texts, "prompt": item["prompt"] or second[name]["prompt"]}, answers, models)
            same += [name] if answers["answer_a"] == answers["answer_b"] else []
    if same:
        notes.append(f"the same answer in both files, left out: {', '.join(same)}")
    tasks = [pair_task(row, None) for name, row in rows.items() if name not in same]
    if not tasks:
        raise results.FileProblem(f"{path_a}, {path_b}: have no task in common with different answers")
    return Source("pair", f"{path_a}, {path_b}", tasks, rows, "", " vs ".join(filter(None, models)), notes)


def check_same_task(name: str, one: dict[str, Any], other: dict[str, Any], path_a: str, path_b: str) -> None:
    """Refuse one id for two different questions. Raises: FileProblem."""
    if one["prompt"] and other["prompt"] and one["prompt"] != other["prompt"]:
        raise results.FileProblem(
            f"{path_b}: item {name!r}: field 'prompt': expected the prompt of {path_a}, got another"
        )


def from_pairs(path: str) -> Source:
    """Pairs in the fixture's shape, one JSON object a line (`gold` and `split` may be missing); or a comparison.

    Raises: FileProblem, EvidenceError naming file, line and field.
    """
    if not sheets.is_sheet(path) and is_one_value(results.read_bytes(path)):
        return from_judged(path)
    rows: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for number, given in pair_rows(path):
        where = f"{path}:{number}"
        row = with_defaults(given) if isinstance(given, dict) else given
        found = fixtures.row_problems(row) or later_turn(row)
        problems += [f"{where}: {text}" for text in found]
        if not found:
            problems += [f"{where}: item_id {row['item_id']!r} stands twice"] if row["item_id"] in rows else []
            rows[row["item_id"]] = row
    results.refuse(problems)
    if not rows:
        raise results.FileProblem(f"{path}: holds no pairs")
    known = any(row["gold"] is not None for row in rows.values())
    tasks = [pair_task(row, row["gold"], text_of(row.get("why"))) for row in rows.values()]
    return Source("pair", path, tasks, rows, label_results.FILE_LABELS if known else "", models_of(rows.values()), [])


def is_one_value(data: bytes) -> bool:
    """Whether a file is one JSON value (a comparison), not a line a pair."""
    first = next((data[start:end] for _, start, end in fixtures.line_spans(data)), b"")
    try:
        value = evidence.parse_json(first, "")
    except evidence.EvidenceError:
        return first.lstrip(b"\xef\xbb\xbf \t")[:1] in (b"{", b"[") and first.strip() in (b"{", b"[", b"\xef\xbb\xbf{")
    return not isinstance(value, dict) or "pairs" in value or "results" in value


def pair_rows(path: str) -> Iterator[tuple[int, Any]]:
    """(line, row under the fixture's names) of a file of pairs: a table with a header, or one JSON object a line.

    Raises: FileProblem, EvidenceError.
    """
    rows: list[tuple[int, Any]]
    if sheets.is_sheet(path):
        rows = [(row.line, row.cells) for row in sheets.read_sheet(path)]
    else:
        data = results.read_bytes(path)
        spans = fixtures.line_spans(data)
        rows = [(number, evidence.parse_json(data[start:end], f"{path}:{number}")) for number, start, end in spans]
    names = names_of([row for _, row in rows if isinstance(row, dict)])
    for number, row in rows:
        named = with_names(row, names) if isinstance(row, dict) else row
        if sheets.is_sheet(path):  # an empty cell says nothing, but an empty answer is one
            named = {name: text for name, text in named.items() if text or name in ANSWERS}
        yield number, named


def names_of(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What the names that rows have besides the fixture's stand for, the same for all rows of a file."""
    there = {name for row in rows for name in row}
    taken = {ALIASES.get(name, name) for name in there}
    second = {name: field for name, field in SECOND_ALIASES.items() if name in there and field not in taken}
    if "winner" in second and not any(label_of(row.get("winner")) in fixtures.GOLD_LABELS for row in rows):
        del second["winner"]  # the name of a model, say
    return {**ALIASES, **second}


def with_names(row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """A row under the fixture's names; where it has the fixture's own name too, the other is a field of its own."""
    return {names.get(key, key) if names.get(key, key) not in row else key: value for key, value in row.items()}


def label_of(value: Any) -> Any:
    """A gold label as the fixture spells it; what is none stays as it is."""
    return GOLD_WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def with_defaults(row: dict[str, Any]) -> dict[str, Any]:
    """A pair with the fixture's spelling of labels, no consensus and the test split where it does not say."""
    found = {"split": "test", "gold": None, **row}
    if type(found.get("item_id")) is int:
        found["item_id"] = str(found["item_id"])
    return {**found, "gold": label_of(found["gold"])}


def later_turn(row: dict[str, Any]) -> list[str]:
    """Pairs of a later turn hold answers that are not shown here."""
    return ["field 'prior_turns': pairs of a later turn cannot be labelled here"] if row.get("prior_turns") else []


def models_of(rows: Iterable[dict[str, Any]]) -> str:
    """The models of some pairs, by name."""
    found = {row[key] for row in rows for key in ("model_a", "model_b") if key in row}
    return ", ".join(sorted(found))
