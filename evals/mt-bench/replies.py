"""Turn recorded judge replies into lines for `run_eval.py --import-replies`, one for each reply.

    python3 -I evals/mt-bench/replies.py gpt-4_pair.jsonl > recorded.jsonl
    python3 -I evals/mt-bench/replies.py gpt-4_pair.jsonl --turn 2 --all-samples > recorded.jsonl
    python3 -I run_eval.py evals/mt-bench --import-replies recorded.jsonl --arm-label gpt-4-recorded

Reads FastChat's model_judgment/gpt-4_pair.jsonl (both games of a pair in one line), or one line per reply with item_id,
order ab or ba, sample, reply and judge_model. A pair that was judged twice: the first time is repeat 1, the second is
left out unless --all-samples makes it repeat 2. Lines of the other turn are counted and left out. Writes the lines to
stdout and the counts to stderr, nothing else; opens no connection.

Needs beside it: nothing; --fixture (default fixture.jsonl here) says which pairs exist.
Exit codes: 0 done; 1 a line cannot be used; 2 usage; 3 a file could not be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

# === Constants ===

HERE = os.path.dirname(os.path.abspath(__file__))
ORDERS = {"ab": "original", "ba": "swapped", "original": "original", "swapped": "swapped"}


class ReplyError(Exception):
    """A line or file that cannot be used; `status` is the exit code."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Recorded(NamedTuple):
    """One reply as it was recorded."""

    item_id: str
    order: str  # "original" | "swapped"
    sample: int | None  # 0 the first time a pair was judged; None when only the file's order tells
    text: str
    model: str


# === Lines ===


def objects_of(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """('path:line', object) of a JSONL file. Raises: ReplyError."""
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        raise ReplyError(f"{path}:{number}: expected an object, got {type(value).__name__}")
                    yield f"{path}:{number}", value
    except FileNotFoundError:
        build = "\nhint: build the pairs first: python3 -I evals/mt-bench/build.py --help"
        hint = build if os.path.basename(path) == "fixture.jsonl" else ""
        raise ReplyError(f"{path}: is not there{hint}", 3) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ReplyError(f"{path}: cannot be read: {error}", 3) from None
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"{path}: a line is not JSON, perhaps cut off: {error}") from None


def text_of(where: str, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ReplyError(f"{where}: field {key!r}: expected a text, got {type(value).__name__}")
    return value


def single(where: str, row: dict[str, Any]) -> Iterator[Recorded]:
    """The reply of a line that holds one."""
    order, sample = text_of(where, row, "order"), row.get("sample")
    if order not in ORDERS:
        raise ReplyError(f"{where}: field 'order': expected ab or ba, got {order!r}")
    if sample is not None and (not isinstance(sample, int) or isinstance(sample, bool) or sample < 0):
        raise ReplyError(f"{where}: field 'sample': expected a number from 0, got {sample!r}")
    texts = [text_of(where, row, key) for key in ("item_id", "reply", "judge_model")]
    yield Recorded(texts[0], ORDERS[order], sample, texts[1], texts[2])


def games(where: str, row: dict[str, Any]) -> Iterator[Recorded]:
    """The two replies of a FastChat line: game 1 shows model_1 first, game 2 model_2."""
    first, second = text_of(where, row, "model_1"), text_of(where, row, "model_2")
    judge = row.get("judge")
    model = judge[0] if isinstance(judge, list) and judge and isinstance(judge[0], str) else "unknown"
    names = sorted((first, second))
    item_id = f"q{row.get('question_id')}-t{row.get('turn')}-{names[0]}-{names[1]}"
    orders = ("original", "swapped") if first < second else ("swapped", "original")
    for order, key in zip(orders, ("g1_judgment", "g2_judgment")):
        yield Recorded(item_id, order, None, text_of(where, row, key), model)


def recorded(where: str, row: dict[str, Any]) -> Iterator[Recorded]:
    """The replies of one line in either layout. Raises: ReplyError."""
    if "g1_judgment" in row:
        yield from games(where, row)
    elif "reply" in row:
        yield from single(where, row)
    else:
        raise ReplyError(f"{where}: expected g1_judgment and g2_judgment, or reply; got {', '.join(sorted(row)[:6])}")


# === Convert ===


def convert(replies: Iterator[Recorded], known: set[str], all_samples: bool) -> tuple[list[dict[str, Any]], int, int]:
    """(lines to import, replies of pairs not in `known`, further samples left out), in the order read."""
    lines, elsewhere, further = [], 0, 0
    seen: dict[tuple[str, str], int] = {}
    for reply in replies:
        key = (reply.item_id, reply.order)
        sample = seen.get(key, 0) if reply.sample is None else reply.sample
        seen[key] = seen.get(key, 0) + 1
        if reply.item_id not in known:
            elsewhere += 1
        elif sample and not all_samples:
            further += 1
        else:
            lines.append(import_line(reply, sample + 1))
    return lines, elsewhere, further


def import_line(reply: Recorded, repeat: int) -> dict[str, Any]:
    """One line of --import-replies; what was not recorded is null, never a guess."""
    return {
        "item_id": reply.item_id,
        "order": reply.order,
        "repeat": repeat,
        "content": reply.text,
        "model": reply.model,
        "finish_reason": None,
        "usage": None,
    }


# === Command line ===


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="replies.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="recorded replies, JSONL")
    parser.add_argument("--turn", type=int, choices=(1, 2), default=1, help="whose fixture to use (default: 1)")
    parser.add_argument("--fixture", metavar="FILE", help="the pairs (default: the built fixture of the turn)")
    parser.add_argument("--all-samples", action="store_true", help="keep further judgements of a pair as repeats")
    return parser


def main(argv: list[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    folder = HERE if options.turn == 1 else os.path.join(HERE, "..", "mt-bench-turn2")
    fixture = options.fixture or os.path.normpath(os.path.join(folder, "fixture.jsonl"))
    try:
        known = {text_of(where, row, "item_id") for where, row in objects_of(fixture)}
        replies = (reply for where, row in objects_of(options.file) for reply in recorded(where, row))
        lines, elsewhere, further = convert(replies, known, options.all_samples)
    except ReplyError as error:
        print(f"replies: error: {error}", file=sys.stderr)
        return error.status
    for line in lines:
        print(json.dumps(line, ensure_ascii=False))
    left_out = f"{elsewhere} of pairs not in the fixture and {further} further samples left out"
    print(f"replies: {len(lines)} lines; {left_out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main())
