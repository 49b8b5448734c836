"""Build the contamination probe and the label probe from the built MT-Bench files and this project's own questions.

    python3 -I evals/mt-bench/build.py --download --prompts FASTCHAT/fastchat/llm_judge/data
    python3 -I evals/contamination/build.py

Two kinds of piece: `half` (a first question cut after half of its words, rounded up; the rest is asked for) and `turn2`
(the first question of a conversation is shown, the second asked for); rests of fewer than 8 words are left out.
Benchmark pieces come from ../mt-bench/questions.jsonl. Fresh ones, the control: questions of the project's own fixture
(up to 10 a category, ordered by the sha256 of "contamination item_id"), and fresh_turns.jsonl for `turn2`.
Every item also holds the rest of another question of its set, kind and category (the next in order of id).
The label probe, written to ../contamination-labels, takes pairs with gold A or B from ../mt-bench/fixture.jsonl (up to
3 a question, ordered by the sha256 of "contamination-labels item_id"), each under three conditions: `named` (question
and model names), `names` (names alone), `masked` (question alone).

Needs beside it: fresh_turns.jsonl, eval.json, ../contamination-labels/eval.json (pins), ../../agreement.py, the files
named above. Writes the two fixture.jsonl, nothing else; opens no connection.
Exit codes: 0 built as pinned; 1 the result is not what was expected; 2 usage; 3 could not read or write.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from typing import Any

# === Constants ===

HERE = os.path.dirname(os.path.abspath(__file__))
LABELS = os.path.normpath(os.path.join(HERE, "..", "contamination-labels"))
MT_BENCH = os.path.normpath(os.path.join(HERE, "..", "mt-bench"))
OWN_FIXTURE = os.path.normpath(os.path.join(HERE, "..", "..", "fixture.jsonl"))
FRESH_EACH = 10  # fresh first questions per category, as many as the benchmark has
PAIRS_EACH = 3  # label-probe pairs per question
CONDITIONS = ("named", "names", "masked")
WITHHELD = "(withheld)"


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


# === Pieces (pure) ===


def rank(text: str) -> str:
    """Where a text stands in an order that nothing in its content influences."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def piece(kind: str, source: str, question: dict[str, Any], shown: str, rest: str) -> dict[str, Any]:
    """One item without its mismatch yet."""
    name = str(question["name"])
    return {
        "item_id": f"{kind}-{name}",
        "split": "test",
        "text": shown,
        "answer_a": rest,
        "answer_b": "",
        "gold": None,
        "category": question["category"],
        "cluster": name,
        "kind": kind,
        "source": source,
        "mismatch": "",
    }


def pieces_of(kind: str, source: str, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of one kind and source; questions: name, category, turns. Rests that are too short are left out."""
    found = []
    for question in questions:
        turns = question["turns"]
        cut = agreement.split_question(turns[0]) if kind == "half" else (turns[0], turns[1])
        if cut is not None and len(cut[1].split()) >= agreement.MIN_TARGET_WORDS:
            found.append(piece(kind, source, question, *cut))
    return found


def add_mismatches(items: list[dict[str, Any]]) -> None:
    """Give every item the rest of another one of its category. Raises: BuildError for a category with a single item."""
    rests = {item["item_id"]: item["answer_a"] for item in items}
    others = agreement.derangement(list(rests), [item["category"] for item in items])
    for item in items:
        other = others[item["item_id"]]
        if other is None:
            where = f"{item['kind']}, {item['source']}, {item['category']}"
            raise BuildError(f"{where}: expected 2 or more items, got 1")
        item["answer_b"], item["mismatch"] = rests[other], other


def fresh_questions(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Up to ten questions of the project's own fixture per category, in file order."""
    chosen: set[str] = set()
    for category in sorted({row["category"] for row in rows}):
        ids = [row["item_id"] for row in rows if row["category"] == category and agreement.split_question(row["text"])]
        chosen.update(sorted(ids, key=lambda key: rank(f"contamination {key}"))[:FRESH_EACH])
    return [
        {"name": f"fresh-{row['item_id']}", "category": row["category"], "turns": [row["text"], ""]}
        for row in rows
        if row["item_id"] in chosen
    ]


def probe(
    benchmark: list[dict[str, Any]], own: list[dict[str, Any]], fresh: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """All completion items: benchmark and fresh, halves and second turns."""
    known = [{**row, "name": f"q{row['question_id']}"} for row in benchmark]
    turns = [{**row, "name": row["question_id"]} for row in fresh]
    groups = [
        pieces_of("half", "benchmark", known),
        pieces_of("half", "fresh", fresh_questions(own)),
        pieces_of("turn2", "benchmark", known),
        pieces_of("turn2", "fresh", turns),
    ]
    for group in groups:
        add_mismatches(group)
    return [item for group in groups for item in group]


# === Label probe (pure) ===


def label_item(item: dict[str, Any], condition: str) -> dict[str, Any]:
    """One pair under one condition; the two answers' places hold what is known of them instead of their text."""
    names = (item["model_a"], item["model_b"]) if condition != "masked" else (WITHHELD, WITHHELD)
    return {
        "item_id": f"{condition}-{item['item_id']}",
        "split": "test",
        "text": WITHHELD if condition == "names" else item["text"],
        "answer_a": f"model: {names[0]}",
        "answer_b": f"model: {names[1]}",
        "gold": item["gold"],
        "category": item["category"],
        "cluster": item["cluster"],
        "condition": condition,
        "pair": item["item_id"],
        "model_a": item["model_a"],
        "model_b": item["model_b"],
    }


def label_probe(fixture: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The label items: chosen pairs in file order, condition after condition."""
    clear = [item for item in fixture if item["gold"] in ("A", "B")]
    by_question: dict[str, list[str]] = {}
    for item in clear:
        by_question.setdefault(item["cluster"], []).append(item["item_id"])
    chosen = {
        key
        for ids in by_question.values()
        for key in sorted(ids, key=lambda key: rank(f"contamination-labels {key}"))[:PAIRS_EACH]
    }
    pairs = [item for item in clear if item["item_id"] in chosen]
    return [label_item(item, condition) for condition in CONDITIONS for item in pairs]


# === Files ===


def read_rows(path: str, keys: tuple[str, ...], hint: str = "") -> list[dict[str, Any]]:
    """The rows of a JSONL file, each with the given keys. Raises: BuildError naming file, line and field."""
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as stream:
            lines = stream.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"{path}: cannot be read: {error}", 3, hint) from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BuildError(f"{path}:{number}: not JSON: {error}", 3) from None
        lacking = [key for key in keys if not isinstance(row, dict) or key not in row]
        if lacking:
            raise BuildError(f"{path}:{number}: field {lacking[0]!r} is missing", 3)
        rows.append(row)
    return rows


def write_atomic(path: str, data: bytes) -> None:
    try:
        with open(path + ".part", "wb") as stream:
            stream.write(data)
        os.replace(path + ".part", path)
    except OSError as error:
        raise BuildError(f"{path}: cannot be written: {error.strerror or error}", 3) from None


def emit(folder: str, rows: list[dict[str, Any]], pin: bool) -> None:
    """Compare with the folder's pin (or write it), then write its fixture. Raises: BuildError."""
    data = b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n" for row in rows)
    digest = hashlib.sha256(data).hexdigest()
    config_path = os.path.join(folder, "eval.json")
    try:
        with open(config_path, encoding="utf-8") as stream:
            text = stream.read()
        pinned = json.loads(text).get("fixture_sha256", "")
    except (OSError, ValueError, AttributeError) as error:
        raise BuildError(f"{config_path}: cannot be read: {error}", 3) from None
    path = os.path.join(folder, "fixture.jsonl")
    if pin:
        text = re.sub(r'("fixture_sha256": ")[0-9a-f]*"', rf'\g<1>{digest}"', text, count=1)
        write_atomic(config_path, text.encode("utf-8"))
    elif pinned and pinned != digest:
        hint = "nothing was written there; is the own fixture or the MT-Bench fixture another one?"
        raise BuildError(f"{path}: expected sha256 {pinned}, got {digest}", hint=hint)
    write_atomic(path, data)
    counts: dict[str, int] = {}
    for row in rows:
        name = f"{row['source']} {row['kind']}" if "kind" in row else row["condition"]
        counts[name] = counts.get(name, 0) + 1
    print(f"{digest}  {path}\n" + "  ".join(f"{name} {count}" for name, count in counts.items()))


# === Command line ===


def run(options: argparse.Namespace) -> None:
    """Build both probes. Raises: BuildError."""
    hint = "build it first: python3 -I evals/mt-bench/build.py --help"
    benchmark = read_rows(os.path.join(options.mt_bench, "questions.jsonl"), ("question_id", "category", "turns"), hint)
    fixture = read_rows(
        os.path.join(options.mt_bench, "fixture.jsonl"), ("item_id", "gold", "cluster", "model_a", "model_b"), hint
    )
    own = read_rows(options.own, ("item_id", "text", "category"))
    fresh = read_rows(os.path.join(HERE, "fresh_turns.jsonl"), ("question_id", "category", "turns"))
    emit(HERE, probe(benchmark, own, fresh), options.pin)
    emit(LABELS, label_probe(fixture), options.pin)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mt-bench", metavar="DIR", default=MT_BENCH, help="folder with questions and fixture")
    parser.add_argument("--own", metavar="FILE", default=OWN_FIXTURE, help="the project's own, fresh questions")
    parser.add_argument("--pin", action="store_true", help="write the pins in both eval.json anew from what was built")
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
    return 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main())
