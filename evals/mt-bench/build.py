"""Build the MT-Bench fixture from the public release of people's votes, byte for byte the same for everyone.

    python3 -I evals/mt-bench/build.py --download --prompts FASTCHAT/fastchat/llm_judge/data
    python3 -I evals/mt-bench/build.py --from human.parquet --prompts question.jsonl gpt-4.jsonl judge_prompts.jsonl
    python3 -I evals/mt-bench/build.py --from rows.jsonl --prompts FASTCHAT/fastchat/llm_judge/data --turn 2

--download fetches the rows page by page from the data set's rows service; pages already here are kept, so the same
command goes on where it stopped. --from reads rows as JSON, JSONL or pages of that service, the release's parquet file
(with pyarrow installed), or one line per pair with its votes. --prompts takes FastChat's question, reference-answer and
judge-prompt files in any order, told apart by what is in them, or the folder of a FastChat checkout that holds them.

Needs beside it: eval.json (pins), release.json (what the release must hold), ../../agreement.py. Writes fixture.jsonl,
prompts.jsonl and questions.jsonl into this folder (--turn 2: into ../mt-bench-turn2), never anything that does not
match: what differs from the pins is named, question by question. Only --download opens a connection.
Exit codes: 0 built as pinned; 1 a file or the result is not the expected one; 2 usage; 3 could not read, write, fetch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# === Constants ===

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS_URL = (
    "https://datasets-server.huggingface.co/rows?dataset=lmsys%2Fmt_bench_human_judgments&config=default&split=human"
)
PAGE_ROWS = 100  # the service's own maximum
PAGE_BYTES = 32 * 2**20  # a page of 100 rows is about 0.5 MB; more than this is not that service
ATTEMPTS = 6  # per page, before the build stops and can be resumed
LONGEST_WAIT_S = 60.0

FOLDERS = {1: "", 2: os.path.join("..", "mt-bench-turn2")}  # where the fixture of each turn belongs
REFERENCE_CATEGORIES = ("math", "reasoning", "coding")  # FastChat judges these against a reference answer
PAIR_PROMPTS = ("pair-v2", "pair-v2-multi-turn", "pair-math-v1", "pair-math-v1-multi-turn")
KINDS = ("questions", "references", "prompts")
FASTCHAT_FILES = ("judge_prompts.jsonl", "mt_bench/question.jsonl", "mt_bench/reference_answer/gpt-4.jsonl")
WINNERS = {"model_a": "A", "model_b": "B", "tie": "equal"}
SHORT_LABELS = {"A": "A", "B": "B", "tie": "equal", "equal": "equal"}
EXCHANGED = {"A": "B", "B": "A", "equal": "equal"}


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


agreement = load(os.path.join(HERE, "..", "..", "agreement.py"), "agreement")


# === Errors ===


class BuildError(Exception):
    """Something the user can mend; `status` is the exit code, `hint` the next step."""

    def __init__(self, text: str, status: int = 1, hint: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.hint = hint


def unreadable(path: str, error: object, hint: str = "") -> BuildError:
    return BuildError(f"{path}: cannot be read: {error}", 3, hint)


# === Records ===


class Vote(NamedTuple):
    """One person's label, with the models in alphabetical order."""

    question: int
    turn: int
    model_a: str
    model_b: str
    judge: str
    label: str  # "A" | "B" | "equal", of (model_a, model_b)


class Release:
    """What the rows hold: votes, and every text once, checked against each later row that repeats it."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.votes: list[Vote] = []
        self.texts: dict[tuple[int, str, int], str] = {}  # (question id, model or "user", turn) -> text

    def keep(self, where: str, key: tuple[int, str, int], text: str) -> None:
        """Remember a text. Raises: BuildError when an earlier row had another one in its place."""
        known = self.texts.setdefault(key, text)
        if known != text:
            raise BuildError(f"{where}: question {key[0]}, {key[1]}, turn {key[2]}: two rows hold different texts")


class Prompts(NamedTuple):
    """FastChat's three files, reduced to what is used."""

    questions: dict[int, dict[str, Any]]  # id -> {"question_id", "category", "turns"}
    references: dict[int, list[str]]  # id -> reference answer per turn
    prompts: list[dict[str, str]]  # the pairwise ones: name, system_prompt, prompt_template


# === Bytes and JSON ===


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def line_of(value: Any) -> bytes:
    """One JSON line: default separators, not ASCII-escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def digest_of(value: Any) -> str:
    """sha256 over the canonical JSON of a value: equal content, equal digest, however the file was laid out."""
    return sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8"))


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise unreadable(path, error.strerror or error) from None


def decoded(path: str, data: bytes) -> str:
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BuildError(f"{path}: expected UTF-8 text, got byte {data[error.start]:#04x} at {error.start}") from None


def json_lines(path: str, text: str) -> Iterator[tuple[str, Any]]:
    """('path:line', value) of a JSONL text, split on line feed only. Raises: BuildError naming the line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"{path}:{number}", json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BuildError(f"{path}:{number}: not JSON, cut off or another format: {error}") from None


def field(where: str, row: Any, key: str, kind: type) -> Any:
    """A field of the expected type. Raises: BuildError with expected and got."""
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        got = "nothing" if value is None else type(value).__name__
        raise BuildError(f"{where}: field {key!r}: expected {kind.__name__}, got {got}")
    return value


def write_atomic(path: str, data: bytes) -> None:
    """Write beside and rename, so that a broken build never leaves half a file. Raises: BuildError."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path + ".part", "wb") as stream:
            stream.write(data)
        os.replace(path + ".part", path)
    except OSError as error:
        raise BuildError(f"{path}: cannot be written: {error.strerror or error}", 3) from None


def json_value(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{path}: not JSON: {error}", 3) from None


def read_object(path: str) -> dict[str, Any]:
    """A JSON object from a file; {} when there is no such file. Raises: BuildError."""
    if not os.path.exists(path):
        return {}
    value = json_value(path, decoded(path, read_bytes(path)))
    if not isinstance(value, dict):
        raise BuildError(f"{path}: expected a JSON object, got {type(value).__name__}", 3)
    return value


# === Rows of the release ===


def rows_in(where: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plain rows in a JSON value: a row, a list of rows, or a page of the rows service."""
    if isinstance(value, list):
        for number, part in enumerate(value, 1):
            yield from rows_in(f"{where}: row {number}", part)
    elif isinstance(value, dict) and isinstance(value.get("rows"), list):
        yield from rows_in(where, value["rows"])
    elif isinstance(value, dict) and isinstance(value.get("row"), dict):
        if value.get("truncated_cells"):
            raise BuildError(f"{where}: expected whole cells, got cut ones: {', '.join(value['truncated_cells'])}")
        yield where, value["row"]
    elif isinstance(value, dict):
        yield where, value
    else:
        raise BuildError(f"{where}: expected a row, got {type(value).__name__}")


def parquet_rows(path: str, data: bytes, pinned: str | None) -> list[dict[str, Any]]:
    """The rows of the release's parquet file. Raises: BuildError for another file or a missing pyarrow."""
    if pinned and sha256(data) != pinned:
        raise BuildError(f"{path}: sha256: expected {pinned} (the release's human split), got {sha256(data)}")
    try:
        import io

        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        hint = "use --download, which needs nothing installed, or install pyarrow for this Python"
        raise BuildError(
            f"{path}: a parquet file can only be read with pyarrow, which is not installed", 3, hint
        ) from None
    found: list[dict[str, Any]] = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
    return found


def rows_of_file(path: str, facts: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """('path:line', row) of one --from file, whichever of the accepted forms it has."""
    data = read_bytes(path)
    if data[:4] == b"PAR1":
        yield from rows_in(path, parquet_rows(path, data, facts.get("parquet_sha256")))
        return
    text = decoded(path, data)
    if not text.strip():
        raise BuildError(f"{path}: expected rows of the release, got an empty file")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):  # many values one after the other: JSONL, or a file that was cut
        for where, value in json_lines(path, text):
            yield from rows_in(where, value)
    else:
        yield from rows_in(path, whole)


def keep_conversation(release: Release, where: str, question: int, turn: int, model: str, messages: Any) -> None:
    """Check one side's conversation and remember its questions and answers."""
    if not isinstance(messages, list) or len(messages) < 2 * turn or len(messages) % 2:
        got = len(messages) if isinstance(messages, list) else "none"
        raise BuildError(f"{where}: conversation of {model}: expected {2 * turn} or more messages in pairs, got {got}")
    for place, message in enumerate(messages):
        role = field(where, message, "role", str)
        if role != ("user", "assistant")[place % 2]:
            raise BuildError(f"{where}: conversation of {model}: message {place + 1}: unexpected role {role!r}")
        speaker = "user" if role == "user" else model
        release.keep(where, (question, speaker, place // 2 + 1), field(where, message, "content", str))


def take_vote(release: Release, where: str, row: dict[str, Any]) -> None:
    """Add one row of the release: one person's vote on two conversations."""
    question, turn = field(where, row, "question_id", int), field(where, row, "turn", int)
    first, second = field(where, row, "model_a", str), field(where, row, "model_b", str)
    judge, winner = field(where, row, "judge", str), field(where, row, "winner", str)
    if turn not in (1, 2) or first == second:
        raise BuildError(f"{where}: expected turn 1 or 2 and two different models, got {turn}, {first}, {second}")
    if judge.startswith(("gpt4", "gpt-4")):
        raise BuildError(f"{where}: expected people's votes (the split 'human'), got a vote by {judge!r}")
    if winner not in WINNERS:
        raise BuildError(f"{where}: field 'winner': expected model_a, model_b or tie, got {winner!r}")
    for side, model in (("conversation_a", first), ("conversation_b", second)):
        keep_conversation(release, where, question, turn, model, row.get(side))
    release.votes.append(vote_in_order(question, turn, first, second, judge, WINNERS[winner]))


def vote_in_order(question: int, turn: int, first: str, second: str, judge: str, label: str) -> Vote:
    """The vote with its models in alphabetical order: each voter saw them in an order of their own."""
    if first < second:
        return Vote(question, turn, first, second, judge, label)
    return Vote(question, turn, second, first, judge, EXCHANGED[label])


def take_pair(release: Release, where: str, row: dict[str, Any]) -> None:
    """Add one line of the other layout: a pair with its texts, earlier turns and all its votes."""
    question, turn = field(where, row, "question_id", int), field(where, row, "turn", int)
    first, second = field(where, row, "model_a", str), field(where, row, "model_b", str)
    earlier = [(where, part) for part in field(where, row, "prior_turns", list)]
    asked = [field(where, part, "user", str) for _, part in earlier] + [field(where, row, "question", str)]
    if turn not in (1, 2) or len(asked) != turn or first == second:
        raise BuildError(f"{where}: expected turn 1 or 2 with {turn - 1} earlier turns and two different models")
    for number, text in enumerate(asked, 1):
        release.keep(where, (question, "user", number), text)
    for side, model in (("answer_a", first), ("answer_b", second)):
        answers = [field(where, part, side, str) for _, part in earlier] + [field(where, row, side, str)]
        for number, text in enumerate(answers, 1):
            release.keep(where, (question, model, number), text)
    for vote in field(where, row, "votes", list):
        winner = field(where, vote, "winner", str)
        if winner not in SHORT_LABELS:
            raise BuildError(f"{where}: field 'winner': expected A, B or tie, got {winner!r}")
        judge, label = field(where, vote, "judge", str), SHORT_LABELS[winner]
        release.votes.append(vote_in_order(question, turn, first, second, judge, label))


def read_release(rows: Iterator[tuple[str, dict[str, Any]]]) -> Release:
    """Everything the rows hold. Raises: BuildError naming the row that does not fit."""
    release = Release()
    for where, row in rows:
        if "conversation_a" in row:
            take_vote(release, where, row)
        elif "votes" in row and "answer_a" in row:
            take_pair(release, where, row)
        else:
            keys = ", ".join(sorted(map(str, row))[:8]) or "nothing"
            raise BuildError(f"{where}: expected a row with conversation_a, winner, judge, turn; got one with {keys}")
        release.n_rows += 1
    return release


# === FastChat's files ===


def kind_of(path: str, text: str) -> str:
    """Which of the three files a text is, by the fields of its first line."""
    where, first = next(json_lines(path, text), (path, None))
    keys = set(first) if isinstance(first, dict) else set()
    if "prompt_template" in keys:
        return "prompts"
    if "choices" in keys:
        return "references"
    if {"question_id", "turns", "category"} <= keys:
        return "questions"
    raise BuildError(f"{where}: expected FastChat's questions, reference answers or judge prompts, got something else")


def used_questions(path: str, text: str) -> dict[int, dict[str, Any]]:
    """question id -> question_id, category, turns, in order of id."""
    found: dict[int, dict[str, Any]] = {}
    for where, row in json_lines(path, text):
        turns = field(where, row, "turns", list)
        if len(turns) != 2 or not all(isinstance(turn, str) for turn in turns):
            raise BuildError(f"{where}: field 'turns': expected two texts, got {len(turns)} values")
        key = field(where, row, "question_id", int)
        found[key] = {"question_id": key, "category": field(where, row, "category", str), "turns": turns}
    return dict(sorted(found.items()))


def used_references(path: str, text: str) -> dict[int, list[str]]:
    """question id -> the reference answer of each turn, in order of id."""
    found: dict[int, list[str]] = {}
    for where, row in json_lines(path, text):
        choices = field(where, row, "choices", list)
        turns = field(where, choices[0] if choices else None, "turns", list)
        if len(turns) != 2 or not all(isinstance(turn, str) for turn in turns):
            raise BuildError(f"{where}: field 'turns': expected two texts, got {len(turns)} values")
        found[field(where, row, "question_id", int)] = turns
    return dict(sorted(found.items()))


def used_prompts(path: str, text: str) -> list[dict[str, str]]:
    """The four pairwise prompts, word for word. Raises: BuildError when one is missing."""
    keys = ("name", "system_prompt", "prompt_template")
    rows = [{key: field(where, row, key, str) for key in keys} for where, row in json_lines(path, text)]
    by_name = {row["name"]: row for row in rows}
    missing = [name for name in PAIR_PROMPTS if name not in by_name]
    if missing:
        raise BuildError(f"{path}: expected the prompts {', '.join(PAIR_PROMPTS)}; missing: {', '.join(missing)}")
    return [by_name[name] for name in PAIR_PROMPTS]


def prompt_paths(given: list[str]) -> list[str]:
    """The files meant by --prompts: a folder stands for the three of FastChat's files in it."""
    paths: list[str] = []
    for path in given:
        if os.path.isdir(path):
            paths += [os.path.join(path, *name.split("/")) for name in FASTCHAT_FILES]
        else:
            paths.append(path)
    return paths


def check_pinned(path: str, kind: str, data: bytes, content: Any, facts: dict[str, Any]) -> None:
    """Refuse a file that is neither the pinned one nor holds the same content."""
    pin = facts.get("files", {}).get(kind)
    if pin is None or sha256(data) == pin["sha256"]:
        return
    if digest_of(content) == pin["content_sha256"]:
        return  # another layout of the same texts
    raise BuildError(
        f"{path}: not the pinned {kind} file: expected sha256 {pin['sha256']}, got {sha256(data)}"
        + (f"; {pin['entries']} entries, got {len(content)}" if len(content) != pin["entries"] else "; a text differs"),
        hint=f"meant is {pin['name']} of a current FastChat checkout; older commits have other wordings",
    )


def read_prompts(given: list[str], facts: dict[str, Any]) -> tuple[Prompts, dict[str, dict[str, Any]]]:
    """FastChat's three files, checked, and their pins as found. Raises: BuildError naming what lacks or differs."""
    readers: dict[str, Callable[[str, str], Any]] = {
        "questions": used_questions,
        "references": used_references,
        "prompts": used_prompts,
    }
    found: dict[str, Any] = {}
    pins: dict[str, dict[str, Any]] = {}
    for path in prompt_paths(given):
        data = read_bytes(path)
        text = decoded(path, data)
        kind = kind_of(path, text)
        found[kind] = readers[kind](path, text)
        check_pinned(path, kind, data, found[kind], facts)
        pins[kind] = {
            "name": FASTCHAT_FILES[("prompts", "questions", "references").index(kind)],
            "sha256": sha256(data),
            "content_sha256": digest_of(found[kind]),
            "entries": len(found[kind]),
        }
    missing = [kind for kind in KINDS if kind not in found]
    if missing:
        raise BuildError(f"--prompts: expected FastChat's {', '.join(KINDS)} files; missing: {', '.join(missing)}", 2)
    return Prompts(found["questions"], found["references"], found["prompts"]), pins


# === Fixture (pure) ===


def judge_key(vote: Vote) -> tuple[str, int, str]:
    """Sort key of a vote: authors, then experts, by number; the order in the release is not kept by every source."""
    name, _, number = vote.judge.rpartition("_")
    return (name, int(number), vote.label) if number.isdigit() else (vote.judge, -1, vote.label)


def check_questions(release: Release, questions: dict[int, dict[str, Any]]) -> None:
    """Every question asked in the rows is FastChat's, word for word. Raises: BuildError naming the question."""
    for (question, speaker, turn), text in release.texts.items():
        if speaker == "user" and (question not in questions or questions[question]["turns"][turn - 1] != text):
            raise BuildError(f"question {question}, turn {turn}: the rows and the question file differ")


def fixture_row(
    key: tuple[int, str, str], turn: int, votes: list[Vote], release: Release, files: Prompts
) -> dict[str, Any]:
    """One pair as a fixture row; `votes` are the people's votes on it."""
    question, model_a, model_b = key
    asked, texts = files.questions[question], release.texts
    row: dict[str, Any] = {
        "item_id": f"q{question}-t{turn}-{model_a}-{model_b}",
        "split": "test",
        "text": asked["turns"][turn - 1],
        "answer_a": texts[question, model_a, turn],
        "answer_b": texts[question, model_b, turn],
        "gold": agreement.gold_from_votes(vote.label for vote in votes),
        "category": asked["category"],
        "cluster": f"q{question}",
        "turn": turn,
        "model_a": model_a,
        "model_b": model_b,
        "votes": [{"judge": vote.judge, "label": vote.label} for vote in sorted(votes, key=judge_key)],
    }
    if turn == 2:
        row["prior_turns"] = [
            {
                "text": asked["turns"][0],
                "answer_a": texts[question, model_a, 1],
                "answer_b": texts[question, model_b, 1],
            }
        ]
    if asked["category"] in REFERENCE_CATEGORIES:
        row["reference"] = files.references[question][:turn]
    return row


def fixture_of(release: Release, files: Prompts, turn: int) -> list[dict[str, Any]]:
    """All pairs of one turn, ordered by question and model names."""
    check_questions(release, files.questions)
    pairs: dict[tuple[int, str, str], list[Vote]] = {}
    for vote in release.votes:
        if vote.turn == turn:
            pairs.setdefault((vote.question, vote.model_a, vote.model_b), []).append(vote)
    lacking = {
        key[0]
        for key in pairs
        if files.questions[key[0]]["category"] in REFERENCE_CATEGORIES and key[0] not in files.references
    }
    if lacking:
        raise BuildError(f"reference answers: expected one for each question, none for {sorted(lacking)}")
    return [fixture_row(key, turn, votes, release, files) for key, votes in sorted(pairs.items())]


def counts_of(rows: list[dict[str, Any]]) -> dict[str, int]:
    """The facts that are checked first, because they say what is wrong in plain numbers."""
    judges = {vote["judge"] for row in rows for vote in row["votes"]}
    return {
        "pairs": len(rows),
        "votes": sum(len(row["votes"]) for row in rows),
        "judges": len(judges),
        "questions": len({row["cluster"] for row in rows}),
        "without_consensus": sum(row["gold"] is None for row in rows),
    }


def question_digests(rows: list[dict[str, Any]]) -> dict[str, str]:
    """question -> first 12 hex digits of the sha256 over its fixture lines, so that a difference can be named."""
    lines: dict[str, bytes] = {}
    for row in rows:
        lines[row["cluster"]] = lines.get(row["cluster"], b"") + line_of(row)
    return {question: sha256(data)[:12] for question, data in lines.items()}


# === Comparison with the pins ===


def differences(rows: list[dict[str, Any]], facts: dict[str, Any]) -> list[str]:
    """What differs from the release's known facts, most telling first; empty when nothing does."""
    got = counts_of(rows)
    found = [
        f"{name}: expected {facts['counts'][name]}, got {got[name]}"
        for name in facts.get("counts", {})
        if facts["counts"][name] != got.get(name)
    ]
    known, here = facts.get("question_sha256", {}), question_digests(rows)
    found += [f"{key}: is missing" for key in known if key not in here]
    found += [f"{key}: is not in the release" for key in here if known and key not in known]
    found += [
        f"{key}: expected {known[key]}, got {here[key]}" for key in known if key in here and known[key] != here[key]
    ]
    return found


def check_result(name: str, data: bytes, pinned: str | None, named: list[str]) -> None:
    """Refuse a built file whose hash is not the pinned one, with the differences that were found."""
    if pinned is None or sha256(data) == pinned:
        return
    shown = "; ".join(named[:8]) + (f"; and {len(named) - 8} more" if len(named) > 8 else "")
    raise BuildError(
        f"{name}: expected sha256 {pinned}, got {sha256(data)}" + (f": {shown}" if named else ""),
        hint="nothing was written; --unpinned builds from another release on purpose",
    )


# === Download ===


def page_url(base: str, offset: int) -> str:
    return f"{base}&offset={offset}&length={PAGE_ROWS}"


def check_rows_url(url: str) -> None:
    """https anywhere, plain http only to this machine. Raises: BuildError."""
    import urllib.parse

    parts = urllib.parse.urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise BuildError(f"--rows-url: expected https (or http to this machine), got {url!r}", 2)


def opener_for(url: str) -> Any:
    """A urllib opener that follows no redirect and sends nothing for this machine through a proxy."""
    import urllib.parse
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args: Any, **kwargs: Any) -> None:
            return None

    handlers: list[Any] = [NoRedirect()]
    if urllib.parse.urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost"):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def check_page(where: str, data: bytes, offset: int) -> tuple[int, int]:
    """(rows in the page, rows in all) of a sound page. Raises: BuildError naming expected and got."""
    try:
        page = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{where}: not JSON, perhaps cut off: {error}", 3) from None
    rows, total = field(where, page, "rows", list), field(where, page, "num_rows_total", int)
    if page.get("partial"):
        raise BuildError(f"{where}: expected the whole split, got a service that holds part of it only ('partial')")
    expected = list(range(offset, min(offset + PAGE_ROWS, total)))
    got = [row.get("row_idx") for row in rows if isinstance(row, dict)]
    if got != expected:
        raise BuildError(f"{where}: expected rows {offset} to {offset + len(expected) - 1}, got {len(got)} others", 3)
    for _ in rows_in(where, rows):  # cut cells and odd shapes are found before the page is kept
        pass
    return len(rows), total


def wait_of(error: Any, attempt: int, first_wait_s: float) -> float:
    """Seconds to wait before the next attempt: the service's Retry-After, else doubling, at most a minute."""
    headers = getattr(error, "headers", None)
    asked = headers.get("Retry-After", "") if headers is not None else ""
    if isinstance(asked, str) and asked.isdigit():
        return min(float(asked), LONGEST_WAIT_S)
    return float(min(first_wait_s * 2**attempt, LONGEST_WAIT_S))


def fetch_once(opener: Any, url: str, timeout_s: float) -> bytes:
    """The body of one page. Raises: OSError, http.client.HTTPException, BuildError for an oversized body."""
    with opener.open(url, timeout=timeout_s) as response:
        data: bytes = response.read(PAGE_BYTES + 1)
    if len(data) > PAGE_BYTES:
        raise BuildError(f"{url}: expected a page of at most {PAGE_BYTES} bytes, got more")
    return data


def fetch_page(url: str, offset: int, opener: Any, sleep: Callable[[float], None], first_wait_s: float) -> bytes:
    """A sound page, asked for again a few times. Raises: BuildError when it does not come or is refused."""
    import http.client
    import urllib.error

    problem: object = ""
    for attempt in range(ATTEMPTS):
        error: Any = None
        try:
            data = fetch_once(opener, page_url(url, offset), timeout_s=60.0)
            check_page(f"rows from {offset}", data, offset)
            return data
        except urllib.error.HTTPError as caught:
            if caught.code < 500 and caught.code not in (408, 429):
                raise BuildError(f"rows from {offset}: the service answered {caught.code} {caught.reason}", 3) from None
            error, problem = caught, f"{caught.code} {caught.reason}"
        except (OSError, http.client.HTTPException) as caught:
            problem = f"{type(caught).__name__}: {caught}"
        except BuildError as caught:
            if caught.status != 3:  # a sound answer that says something else is not asked for again
                raise
            problem = caught
        if attempt + 1 < ATTEMPTS:
            sleep(wait_of(error, attempt, first_wait_s))
    hint = "run the same command again: the pages that came are kept"
    raise BuildError(f"rows from {offset}: no sound page in {ATTEMPTS} attempts: {problem}", 3, hint)


def kept_page(path: str, offset: int) -> bytes | None:
    """A page from an earlier run, if it is there and sound."""
    if not os.path.exists(path):
        return None
    data = read_bytes(path)
    try:
        check_page(path, data, offset)
    except BuildError:
        return None
    return data


def download(
    url: str, folder: str, expected: int | None, sleep: Callable[[float], None], first_wait_s: float
) -> list[str]:
    """Fetch all pages into `folder`, keeping those already there; returns their paths. Raises: BuildError."""
    check_rows_url(url)
    opener, paths, offset, total = opener_for(url), [], 0, None
    while total is None or offset < total:
        path = os.path.join(folder, f"rows-{offset:06d}.json")
        data = kept_page(path, offset)
        word = "kept" if data is not None else "fetched"
        if data is None:
            data = fetch_page(url, offset, opener, sleep, first_wait_s)
            write_atomic(path, data)
        n_rows, total = check_page(path, data, offset)
        if expected is not None and total != expected:
            raise BuildError(f"{url}: expected {expected} rows in the split, got {total}")
        paths.append(path)
        print(f"build: {word} rows {offset + 1} to {offset + n_rows} of {total}", file=sys.stderr)
        offset += PAGE_ROWS
    return paths


# === Commands ===


class Built(NamedTuple):
    """What a build produced, before anything is written."""

    rows: list[dict[str, Any]]
    files: dict[str, bytes]  # file name -> bytes
    pins: dict[str, dict[str, Any]]  # of FastChat's files
    n_rows: int


def build(paths: list[str], prompts: list[str], turn: int, facts: dict[str, Any]) -> Built:
    """Read everything and make the files of one turn in memory. Raises: BuildError."""
    files, pins = read_prompts(prompts, facts)
    release = read_release(pair for path in paths for pair in rows_of_file(path, facts))
    rows = fixture_of(release, files, turn)
    written = {
        "fixture.jsonl": b"".join(line_of(row) for row in rows),
        "prompts.jsonl": b"".join(line_of(prompt) for prompt in files.prompts),
        "questions.jsonl": b"".join(line_of(question) for question in files.questions.values()),
    }
    return Built(rows, written, pins, release.n_rows)


def check_built(built: Built, turn: int, facts: dict[str, Any], config: dict[str, Any]) -> None:
    """Compare with what the release must hold and with the pins of eval.json. Raises: BuildError."""
    named = differences(built.rows, facts.get("turns", {}).get(str(turn), {}))
    check_result("fixture.jsonl", built.files["fixture.jsonl"], config.get("fixture_sha256"), named)
    for name, pinned in config.get("inputs_sha256", {}).items():
        check_result(name, built.files.get(name, b""), pinned, [])
    if named:  # nothing pinned the hash, the facts still do
        raise BuildError("fixture.jsonl: " + "; ".join(named[:8]), hint="nothing was written")


def pin(built: Built, turn: int, facts: dict[str, Any], config_path: str) -> None:
    """Write release.json and the pins in eval.json anew from what was built."""
    facts = {**facts, "files": built.pins}
    turns = dict(facts.get("turns", {}))
    turns[str(turn)] = {"counts": counts_of(built.rows), "question_sha256": question_digests(built.rows)}
    facts["turns"] = turns
    write_atomic(os.path.join(HERE, "release.json"), json.dumps(facts, indent=1).encode("utf-8") + b"\n")
    text = decoded(config_path, read_bytes(config_path))
    for key, name in [("fixture_sha256", "fixture.jsonl"), ("prompts.jsonl", "prompts.jsonl")]:
        text = re.sub(rf'("{re.escape(key)}": ")[0-9a-f]*"', rf'\g<1>{sha256(built.files[name])}"', text, count=1)
    write_atomic(config_path, text.encode("utf-8"))


def write_files(built: Built, folder: str, turn: int) -> None:
    """Write fixture and prompts of the turn, and, once for both, the questions; print one line for each."""
    names = ("fixture.jsonl", "prompts.jsonl") + (("questions.jsonl",) if turn == 1 else ())
    for name in names:
        path = os.path.join(folder, name)
        write_atomic(path, built.files[name])
        print(f"{sha256(built.files[name])}  {os.path.normpath(path)}")
    print("  ".join(f"{name} {value}" for name, value in counts_of(built.rows).items()))


def run(options: argparse.Namespace) -> None:
    """The whole build. Raises: BuildError."""
    facts = {} if options.unpinned else read_object(os.path.join(HERE, "release.json"))
    target = os.path.normpath(os.path.join(HERE, FOLDERS[options.turn]))
    config_path = os.path.join(target, "eval.json")
    config = {} if options.unpinned else read_object(config_path)
    paths = options.files
    if options.download:
        paths = download(options.rows_url, options.cache, facts.get("rows"), time.sleep, options.retry_wait)
    built = build(paths, options.prompts, options.turn, {} if options.pin else facts)
    if options.pin:
        pin(built, options.turn, facts, config_path)
    else:
        check_built(built, options.turn, facts, config)
    write_files(built, options.out or target, options.turn)


# === Command line ===


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--download", action="store_true", help="fetch the rows from the data set's rows service")
    source.add_argument("--from", dest="files", nargs="+", metavar="FILE", help="rows already here (see above)")
    parser.add_argument(
        "--prompts", nargs="+", required=True, metavar="FILE", help="FastChat's three files, or the folder with them"
    )
    parser.add_argument("--turn", type=int, choices=(1, 2), default=1, help="which turn's votes (default: 1)")
    parser.add_argument("--out", metavar="DIR", help="write there instead of the evaluation's own folder")
    parser.add_argument("--cache", metavar="DIR", default=os.path.join(HERE, "download"), help="pages of --download")
    parser.add_argument("--rows-url", metavar="URL", default=ROWS_URL, help="another rows service of the same kind")
    parser.add_argument(
        "--retry-wait", type=float, default=1.0, metavar="S", help="first wait between attempts, seconds"
    )
    parser.add_argument("--unpinned", action="store_true", help="compare with no pin: for another release on purpose")
    parser.add_argument("--pin", action="store_true", help="write release.json and the pins anew from what was built")
    return parser


def main(argv: list[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    try:
        run(options)
    except BuildError as error:
        print(f"build: error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("build: stopped; the pages that came are kept, run the same command again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main())
