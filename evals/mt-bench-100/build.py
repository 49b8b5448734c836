"""Choose the 100 pairs of the published form from the built MT-Bench fixture, by a rule anyone can repeat.

    python3 -I evals/mt-bench/build.py --download --prompts FASTCHAT/fastchat/llm_judge/data
    python3 -I evals/mt-bench-100/build.py

The rule: pairs of turn 1 on which exactly two different people voted, each for A or for B. The two people are ordered
by the sha256 of "item_id judge"; the first one's label is gold, the other's is second_label. Pairs are ordered by the
sha256 of "mt-bench-100 item_id"; the first 50 with gold A and the first 50 with gold B are the test split, the next 5
of each the dev split. The file keeps the order of the full fixture. No label decides who is first or which pair is in.

Needs beside it: eval.json (pin); reads ../mt-bench/fixture.jsonl (or --from), writes fixture.jsonl here, nothing else.
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
TEST_EACH, DEV_EACH = 50, 5  # pairs per gold label


class BuildError(Exception):
    """Something the user can mend; `status` is the exit code, `hint` the next step."""

    def __init__(self, text: str, status: int = 1, hint: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.hint = hint


# === Rule (pure) ===


def rank(text: str) -> str:
    """Where a text stands in an order that no label influences."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def two_annotators(item: dict[str, Any]) -> tuple[str, str] | None:
    """(gold, second label) of a pair on which exactly two people gave a clear label; else None."""
    votes = item["votes"]
    if len(votes) != 2 or votes[0]["judge"] == votes[1]["judge"]:
        return None
    if any(vote["label"] not in ("A", "B") for vote in votes):
        return None
    first, second = sorted(votes, key=lambda vote: rank(f"{item['item_id']} {vote['judge']}"))
    return first["label"], second["label"]


def choose(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chosen pairs as fixture rows, in the order of `items`. Raises: BuildError when there are too few."""
    labelled = {item["item_id"]: two_annotators(item) for item in items}
    splits: dict[str, str] = {}
    for gold in ("A", "B"):
        ids = [key for key, labels in labelled.items() if labels and labels[0] == gold]
        ids.sort(key=lambda key: rank(f"mt-bench-100 {key}"))
        if len(ids) < TEST_EACH + DEV_EACH:
            raise BuildError(
                f"gold {gold}: expected {TEST_EACH + DEV_EACH} or more pairs to choose from, got {len(ids)}"
            )
        splits.update((key, "test") for key in ids[:TEST_EACH])
        splits.update((key, "dev") for key in ids[TEST_EACH : TEST_EACH + DEV_EACH])
    rows = []
    for item in items:
        labels = labelled[item["item_id"]]
        if labels and item["item_id"] in splits:
            rows.append(row_of(item, splits[item["item_id"]], labels))
    return rows


def row_of(item: dict[str, Any], split: str, labels: tuple[str, str]) -> dict[str, Any]:
    """One chosen pair with its two labels; votes stay, so that the human ceiling can be recomputed."""
    row = {"item_id": item["item_id"], "split": split}
    row.update({key: item[key] for key in ("text", "answer_a", "answer_b")})
    row.update(gold=labels[0], second_label=labels[1])
    row.update({key: item[key] for key in ("category", "cluster", "turn", "model_a", "model_b", "votes")})
    return row


# === Files ===


def read_items(path: str) -> list[dict[str, Any]]:
    """The rows of the full fixture. Raises: BuildError naming file and line."""
    try:
        with open(path, encoding="utf-8", newline="\n") as stream:
            lines = stream.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        hint = "build it first: python3 -I evals/mt-bench/build.py --help"
        raise BuildError(f"{path}: cannot be read: {error}", 3, hint) from None
    items = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            two_annotators(item)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BuildError(f"{path}:{number}: not a row of the MT-Bench fixture: {error!r}", 3) from None
        items.append(item)
    return items


def pinned_hash(path: str) -> tuple[str, str]:
    """The text of eval.json and the hash of the fixture that it pins, '' when it pins none. Raises: BuildError."""
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        return text, str(json.loads(text).get("fixture_sha256", ""))
    except (OSError, ValueError, AttributeError) as error:
        raise BuildError(f"{path}: cannot be read: {error}", 3) from None


def write_atomic(path: str, data: bytes) -> None:
    try:
        with open(path + ".part", "wb") as stream:
            stream.write(data)
        os.replace(path + ".part", path)
    except OSError as error:
        raise BuildError(f"{path}: cannot be written: {error.strerror or error}", 3) from None


# === Command line ===


def run(options: argparse.Namespace) -> None:
    """Choose, compare with the pin, write. Raises: BuildError."""
    rows = choose(read_items(options.source))
    data = b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n" for row in rows)
    digest = hashlib.sha256(data).hexdigest()
    config_path = os.path.join(HERE, "eval.json")
    text, pinned = pinned_hash(config_path)
    if options.pin:
        text = re.sub(r'("fixture_sha256": ")[0-9a-f]*"', rf'\g<1>{digest}"', text, count=1)
        write_atomic(config_path, text.encode("utf-8"))
    elif pinned and pinned != digest:
        hint = "nothing was written; check the full fixture: python3 -I evals/mt-bench/build.py --help"
        raise BuildError(f"fixture.jsonl: expected sha256 {pinned}, got {digest}", hint=hint)
    path = os.path.join(HERE, "fixture.jsonl")
    write_atomic(path, data)
    test = [row for row in rows if row["split"] == "test"]
    same = sum(row["gold"] == row["second_label"] for row in test)
    print(f"{digest}  {path}")
    print(f"test {len(test)}  dev {len(rows) - len(test)}  second annotator agrees on {same} of {len(test)}")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.path.normpath(os.path.join(HERE, "..", "mt-bench", "fixture.jsonl"))
    parser.add_argument("--from", dest="source", metavar="FILE", default=default, help="the full fixture of turn 1")
    parser.add_argument("--pin", action="store_true", help="write the pin in eval.json anew from what was built")
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
