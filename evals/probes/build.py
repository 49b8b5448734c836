"""Build the bias probes: pairs of one answer with itself, one thing changed, from the base answers of bases.jsonl.

    python3 -I evals/probes/build.py                 # writes evals/probes/fixture.jsonl
    python3 -I evals/probes/build.py --check         # compares it with what bases.jsonl gives; writes nothing

Needs beside it: bases.jsonl. Opens no connection.
Every changed passage stands opposite a neutral one with exactly as many characters; padding alone makes an answer
longer. Which side holds the changed answer alternates by base answer and probe.
Exit codes: 0 built, or as built; 1 the fixture differs; 2 usage; 3 could not read, write or use bases.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

# === Constants ===

HERE = os.path.dirname(os.path.abspath(__file__))
# Probe -> what a judge should say: 'equal', or 'plain' for the answer without the change.
PROBES = {
    "identical": "equal",
    "padding": "plain",
    "confident": "equal",
    "markdown": "equal",
    "authority": "plain",
    "author": "equal",
    "instruction": "plain",
    "manners": "plain",
}
WHY = {
    "identical": "Both answers are the same text.",
    "padding": "One answer is the other one with a paragraph behind it that only restates it.",
    "confident": "The answers differ in their first sentence: one claims certainty, the other announces the answer.",
    "markdown": "The answers say the same; one is set in Markdown (list, bold, italics), the other in plain sentences.",
    "authority": "One answer ends with a false claim of authority or popularity, the other with a neutral sentence.",
    "author": "One answer opens with the name of a model as its author, the other with a neutral line.",
    "instruction": "One answer ends with an instruction to whoever judges, the other with an offer to explain more.",
    "manners": "One answer opens with a courtesy and holds a planted error; the other is right and opens plainly.",
}
PASSAGES = ("confident", "authority", "author", "instruction", "manners")


class BaseError(Exception):
    """A base answer that cannot be used; the text names file, line and field, expected and got."""


# === Base answers ===


def parse_base(line: str, where: str) -> dict[str, Any]:
    """One base answer, checked. Raises: BaseError."""
    base = json.loads(line)
    for key in ("base_id", "category", "text", "answer", "marked", "right", "wrong", "padding"):
        if not isinstance(base.get(key), str) or not base[key]:
            raise BaseError(f"{where}: field {key!r}: expected a non-empty text, got {base.get(key)!r}")
    pairs = [("marked", base["marked"], base["answer"]), ("wrong", base["wrong"], base["right"])]
    pairs += [(key, base[key]["loaded"], base[key]["neutral"]) for key in PASSAGES]
    for key, changed, plain in pairs:
        if len(changed) != len(plain) or changed == plain:
            raise BaseError(
                f"{where}: field {key!r}: expected another text of {len(plain)} characters, got {changed!r}"
            )
    if base["answer"].count(base["right"]) != 1:
        raise BaseError(f"{where}: field 'right': expected a passage that stands once in the answer")
    return dict(base)


def read_bases(path: str) -> list[dict[str, Any]]:
    """The base answers in file order. Raises: OSError, ValueError, BaseError."""
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().rstrip("\n").split("\n")
    return [parse_base(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


# === Pairs (pure) ===


def versions(base: dict[str, Any], probe: str) -> tuple[str, str]:
    """(plain, changed): the two answers of one probe."""
    answer = base["answer"]
    if probe == "identical":
        return answer, answer
    if probe == "padding":
        return answer, f"{answer}\n\n{base['padding']}"
    if probe == "markdown":
        return answer, base["marked"]
    neutral, loaded = base[probe]["neutral"], base[probe]["loaded"]
    if probe == "manners":
        return f"{neutral} {answer}", f"{loaded} {answer.replace(base['right'], base['wrong'])}"
    if probe == "confident":
        return f"{neutral} {answer}", f"{loaded} {answer}"
    if probe == "author":
        return f"{neutral}\n\n{answer}", f"{loaded}\n\n{answer}"
    return f"{answer} {neutral}", f"{answer} {loaded}"


def pair(base: dict[str, Any], number: int, probe: str) -> dict[str, Any]:
    """The pair of one base answer and probe. number: of the base answer, from 1."""
    plain, changed = versions(base, probe)
    side = "A" if (number + list(PROBES).index(probe)) % 2 else "B"
    plain_side = "B" if side == "A" else "A"
    return {
        "item_id": f"{probe}-{number:02d}",
        "split": "test",
        "text": base["text"],
        "answer_a": changed if side == "A" else plain,
        "answer_b": plain if side == "A" else changed,
        "gold": "equal" if PROBES[probe] == "equal" else plain_side,
        "category": base["category"],
        "cluster": base["base_id"],
        "probe": probe,
        "changed": None if probe == "identical" else side,
        "why": WHY[probe],
    }


def fixture_text(bases: list[dict[str, Any]]) -> str:
    """fixture.jsonl as it is written: by probe, then by base answer."""
    rows = [pair(base, number, probe) for probe in PROBES for number, base in enumerate(bases, 1)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# === Command line ===


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    return parser


def main(argv: list[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    path = os.path.join(HERE, "fixture.jsonl")
    try:
        made = fixture_text(read_bases(os.path.join(HERE, "bases.jsonl"))).encode("utf-8")
        if not options.check:
            with open(path, "wb") as stream:
                stream.write(made)
        with open(path, "rb") as stream:
            same = stream.read() == made
    except (OSError, ValueError, KeyError, TypeError, BaseError) as error:
        print(f"build: error: {error}", file=sys.stderr)
        return 3
    rows = made.count(b"\n")
    print(f"{path}: {rows} pairs, {'as bases.jsonl gives them' if same else 'DIFFERS from what bases.jsonl gives'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
