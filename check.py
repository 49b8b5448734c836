"""Score one judged pair against its gold label, and re-check a file of judged pairs offline.

    python3 -I check.py runs/planted-faults/…/scored.jsonl.gz
    python3 -I check.py scored.jsonl.gz --fixture fixture.jsonl --disagreements
    python3 -I check.py raw.jsonl.gz                     # nothing stored to compare: scores are computed and counted

Needs beside it: eval.json and fixture.jsonl (or --fixture; eval.json is then looked for beside that file).
Reads rows, fixture, and a manifest.json beside the rows when there is one; writes nothing, opens no connection.
Every row is scored again from its recorded choices. Errors, all of them reported: an empty file, a row that is not
JSON, an unknown item, a row that stands twice, a row that is missing, an unscored row in a scored file, a stored
score that differs from the recomputed one.
Exit codes: 0 all rows agree; 1 something does not; 2 usage; 3 a file could not be read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

# === Constants ===

LABELS = ("A", "B", "equal", "invalid")
SWAP = {"A": "B", "B": "A", "equal": "equal", "invalid": "invalid"}  # a shown position, read in the other order
SCORE_KEYS = ("gold", "prediction", "secondary", "decision")
MAX_REPEATS = 10_000
MANIFEST = {  # what the fields of a manifest are that say which rows there must be
    "arms": "a list of names",
    "repeats": f"a whole number from 1 to {MAX_REPEATS - 1}",
    "split": "dev or test",
    "limit": "a whole number from 1 or null",
    "shard": "'i/n' or null",
}
MAX_LISTED = 20  # problems of one kind shown in full; the rest is counted


class CheckError(Exception):
    """A file that cannot be checked at all; the text names file, line and field."""


# === Score (pure) ===


def choice_of(arguments: object, order: str) -> str:
    """The recorded choice of one order in shown positions; anything unknown is 'invalid'."""
    part = arguments.get(order) if isinstance(arguments, dict) else None
    choice = part.get("choice") if isinstance(part, dict) else None
    return choice if isinstance(choice, str) and choice in LABELS else "invalid"


def decide(original: str, swapped: str) -> str:
    """The decision of both orders in the item's own A/B.

    original, swapped: choices in shown positions ('A' is the answer shown first). An answer wins only when both
    orders pick it; any other valid combination is 'equal'; 'invalid' when either order is.
    Source: the conservative swap rule of Zheng et al. 2023 (MT-Bench).
    """
    if "invalid" in (original, swapped):
        return "invalid"
    return original if original == SWAP[swapped] else "equal"


def score(item: dict[str, Any], arguments: object, config: dict[str, Any]) -> dict[str, Any]:
    """Score one item's recorded choices against its gold label.

    item: needs `gold` ('A' | 'B' | 'equal' | None for no consensus). arguments: {"original": {"choice", ...},
    "swapped": {...}} in shown positions. config: `decision` is "both" or "original" (the meaning of a missing key).
    Returns: gold, prediction (by the configured rule), secondary {agreement, position_consistency, valid_output},
    decision (of both orders, whatever the rule).
    """
    original, swapped = choice_of(arguments, "original"), choice_of(arguments, "swapped")
    decision = decide(original, swapped)
    prediction = decision if config.get("decision") == "both" else original
    valid = "invalid" not in (original, swapped)
    consistent = original != "invalid" and original == SWAP[swapped]
    return {
        "gold": item.get("gold"),
        "prediction": prediction,
        "secondary": {
            "agreement": {"gold": item.get("gold"), "prediction": prediction},
            "position_consistency": {"score": int(consistent)},
            "valid_output": {"score": int(valid)},
        },
        "decision": decision,
    }


# === Read ===


def lines_of(path: str) -> Iterator[tuple[int, bytes]]:
    """Numbered non-blank lines of a file, split on line feed only; `.gz` by name. Raises: CheckError."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise CheckError(f"{path}: expected a regular file")
    try:
        import gzip

        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if line.strip():
                    yield number, line
    except (OSError, EOFError) as error:
        raise CheckError(f"{path}: cannot be read: {error}") from None
    except Exception as error:  # zlib.error has no common base with the two above
        if type(error).__name__ != "error":
            raise
        raise CheckError(f"{path}: not a sound gzip file: {error}") from None


def objects_of(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered JSON objects of a JSONL file. Raises: CheckError naming file and line."""
    for number, line in lines_of(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CheckError(f"{path}:{number}: not a JSON object: {error}") from None
        if not isinstance(value, dict):
            raise CheckError(f"{path}:{number}: expected a JSON object, got {type(value).__name__}")
        yield number, value


def read_items(path: str) -> dict[str, dict[str, Any]]:
    """item_id -> gold, split and position of every fixture row. Raises: CheckError."""
    items: dict[str, dict[str, Any]] = {}
    for number, row in objects_of(path):
        key = row.get("item_id")
        if not isinstance(key, str) or not key:
            raise CheckError(f"{path}:{number}: field 'item_id': expected a non-empty text, got {key!r}")
        if key in items:
            raise CheckError(f"{path}:{number}: item_id {key!r} stands twice")
        items[key] = {"gold": row.get("gold"), "split": row.get("split")}
    if not items:
        raise CheckError(f"{path}: holds no items")
    return items


def read_json(path: str) -> dict[str, Any]:
    """A JSON object from a file. Raises: CheckError."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            value = json.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise CheckError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


# === Check ===


class Report:
    """Problems by kind and counts of one checked file."""

    def __init__(self) -> None:
        self.problems: dict[str, list[str]] = {}
        self.rows = self.differing = 0
        self.disagreements: list[str] = []

    def add(self, kind: str, text: str) -> None:
        self.problems.setdefault(kind, []).append(text)

    @property
    def n_problems(self) -> int:
        return sum(len(found) for found in self.problems.values())


def check_row(
    where: str, row: dict[str, Any], item: dict[str, Any], config: dict[str, Any], raw: bool, report: Report
) -> None:
    """Score one row again and compare what is stored with it."""
    fresh = score(item, row.get("tool_arguments"), config)
    present = [key for key in SCORE_KEYS if key in row]
    if not present and not raw:
        report.add("unscored", f"{where}: row is not scored")
    for key in SCORE_KEYS:
        if key in row and row[key] != fresh[key]:
            report.add("differs", f"{where}: {key}: expected {json.dumps(fresh[key])}, got {json.dumps(row[key])}")
        elif present and key not in row and key != "decision":  # the published form has no `decision`
            report.add("unscored", f"{where}: score key {key!r} is missing")
    if item["gold"] is not None and fresh["prediction"] != item["gold"]:
        report.differing += 1
        report.disagreements.append(f"{where} expected {item['gold']} got {fresh['prediction']}")


def check_rows(path: str, items: dict[str, dict[str, Any]], config: dict[str, Any], raw: bool, report: Report) -> Any:
    """Check every row of a file; returns the set of (item_id, arm, repeat) seen."""
    seen: set[tuple[str, str, int]] = set()
    for number, row in objects_of(path):
        report.rows += 1
        key = (row.get("item_id"), row.get("arm"), row.get("repeat"))
        if not isinstance(key[0], str) or not isinstance(key[1], str) or type(key[2]) is not int:
            report.add("malformed", f"{path}:{number}: item_id, arm or repeat is missing or of the wrong type")
            continue
        where = f"{path}:{number}: {key[0]} {key[1]} repeat {key[2]}:"
        if key in seen:
            report.add("duplicate", f"{where} row stands twice")
        elif key[0] not in items:
            report.add("unknown", f"{where} item is not in the fixture")
        else:
            check_row(where, row, items[key[0]], config, raw, report)
        seen.add((key[0], key[1], key[2]))
    return seen


def checked_manifest(path: str) -> dict[str, Any]:
    """The manifest of a run, each field that says which rows there must be of the right kind. Raises: CheckError."""
    manifest = read_json(path)
    arms, repeats, limit = manifest.get("arms"), manifest.get("repeats"), manifest.get("limit")
    split, shard = manifest.get("split"), manifest.get("shard")
    wrong = {
        "arms": not isinstance(arms, list) or not arms or not all(isinstance(arm, str) for arm in arms),
        "repeats": type(repeats) is not int or not 1 <= repeats < MAX_REPEATS,
        "split": split not in ("dev", "test"),
        "limit": limit is not None and (type(limit) is not int or limit < 1),
        "shard": shard is not None and (not isinstance(shard, str) or not is_shard(shard)),
    }
    for field, found in wrong.items():
        if found:
            raise CheckError(f"{path}: field '{field}': expected {MANIFEST[field]}, got {manifest.get(field)!a:.60}")
    return manifest


def is_shard(text: str) -> bool:
    """Whether a text is 'i/n' with 1 <= i <= n."""
    index, _, count = text.partition("/")
    return (index + count).isascii() and index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)


def expected_items(items: dict[str, dict[str, Any]], manifest: dict[str, Any] | None, seen: Any) -> list[str]:
    """The ids that must be judged: by the manifest's split, shard and limit, else all of the splits seen."""
    if manifest is None:
        splits = {items[key[0]]["split"] for key in seen if key[0] in items}
        return [key for key, item in items.items() if item["split"] in splits]
    chosen = [key for key, item in items.items() if item["split"] == manifest.get("split")]
    limit, shard = manifest.get("limit"), manifest.get("shard")
    chosen = chosen[:limit] if limit is not None else chosen
    if shard is not None:  # "2/3": every third item of the selection, from the second on
        index, _, count = shard.partition("/")
        chosen = chosen[int(index) - 1 :: int(count)]
    return chosen


def check_complete(
    path: str, items: dict[str, dict[str, Any]], manifest: dict[str, Any] | None, seen: Any, report: Report
) -> None:
    """Report every (item, arm, repeat) that should be there and is not."""
    arms = sorted({key[1] for key in seen})
    repeats = sorted({key[2] for key in seen})
    if manifest is not None:
        arms, repeats = manifest["arms"], list(range(1, manifest["repeats"] + 1))
    for repeat in repeats:
        for item_id in expected_items(items, manifest, seen):
            for arm in arms:
                if (item_id, arm, repeat) not in seen:
                    report.add("missing", f"{path}: {item_id} {arm} repeat {repeat}: row is missing")


def check_file(path: str, fixture: str, config: dict[str, Any], raw: bool) -> Report:
    """Everything of the module docstring for one file. Raises: CheckError when a file cannot be read at all."""
    report = Report()
    items = read_items(fixture)
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), "manifest.json")
    manifest = checked_manifest(beside) if os.path.exists(beside) else None
    seen = check_rows(path, items, config, raw, report)
    if not report.rows:
        report.add("empty", f"{path}: holds no rows")
    check_complete(path, items, manifest, seen, report)
    return report


# === Command line ===


def printable(text: str) -> str:
    """One line of text with every character that a terminal would act on shown by its number."""
    return "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in text)


def hint_of(report: Report, path: str) -> str | None:
    """What to try where the rows are of other pairs altogether."""
    if not report.rows:
        return None
    if len(report.problems.get("malformed", ())) == report.rows:
        return "these are no rows of a run; a labels file is read by judge.py human --result"
    if len(report.problems.get("unknown", ())) < report.rows:
        return None
    beside = os.path.join(os.path.dirname(path), "inputs", "fixture.jsonl")
    own = beside if os.path.isfile(beside) else "PATH"
    return f"these rows are of other pairs; name theirs with --fixture {own}"


def show(report: Report, path: str, raw: bool, disagreements: bool) -> None:
    """Print disagreements if asked for, problems by kind, and one last line with the counts."""
    if disagreements:
        for line in report.disagreements:
            print(printable(line))
    for kind, found in report.problems.items():
        for line in found[:MAX_LISTED]:
            print(printable(f"{kind}: {line}"))
        if len(found) > MAX_LISTED:
            print(f"{kind}: … and {len(found) - MAX_LISTED} more")
    hint = hint_of(report, path)
    if hint:
        print(printable(f"hint: {hint}"))
    verdict = "ok" if not report.n_problems else "FAIL"
    kind = "raw rows, nothing stored to compare" if raw else "rows"
    print(
        f"{verdict}: {printable(path)}: {report.rows} {kind}, {report.differing} predictions differ from gold, "
        f"{report.n_problems} problems"
    )


def build_parser() -> Any:
    import argparse

    parser = argparse.ArgumentParser(
        prog="check.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE", help="raw or scored rows, .jsonl or .jsonl.gz")
    parser.add_argument("--fixture", metavar="PATH", help="labelled pairs (default: fixture.jsonl beside this script)")
    parser.add_argument("--raw", action="store_true", help="the rows are not scored yet (files named raw.* are not)")
    parser.add_argument("--disagreements", action="store_true", help="list each row whose prediction is not gold")
    return parser


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # a process may be started with closed ones
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    options = build_parser().parse_args(argv)
    fixture = options.fixture or os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixture.jsonl")
    raw = options.raw or os.path.basename(options.file).startswith("raw.")
    try:
        config = read_json(os.path.join(os.path.dirname(os.path.abspath(fixture)), "eval.json"))
        report = check_file(options.file, fixture, config, raw)
    except CheckError as error:
        print(f"check: error: {printable(str(error))}", file=sys.stderr)
        return 3
    try:
        show(report, options.file, raw, options.disagreements)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # the reader went away, or the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 141
        print(f"check: error: stdout: {error.strerror or error}", file=sys.stderr)
        return 3
    return 1 if report.n_problems else 0


if __name__ == "__main__":
    sys.exit(main())
