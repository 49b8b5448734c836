"""How far the plan's token estimate is from o200k_base on the fixture's requests, and how far below its upper bound.

    python3 tests/bench_plan.py                 # with tiktoken and its vocabulary on this machine
    python3 tests/bench_plan.py --node DIR      # with the npm package gpt-tokenizer installed in DIR

Prints, per category, estimate / true count over all requests, the extremes of single requests, and bound / true count.
Run by hand: it judges nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rooms import ROOT, room

plan, recipe = room("plan"), room("recipe")
SCRIPT = """
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { readFileSync } from 'fs';
for (const text of JSON.parse(readFileSync(0, 'utf8'))) console.log(encode(text).length);
"""


def node_counts(texts: list[str], folder: str) -> list[int]:
    """True counts by the npm package."""
    command = ["node", "--input-type=module", "-e", SCRIPT]
    done = subprocess.run(command, input=json.dumps(texts), cwd=folder, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def true_counts(texts: list[str], folder: str | None) -> list[int]:
    """True o200k_base counts. Raises: SystemExit when no tokenizer is at hand."""
    if folder:
        return node_counts(texts, folder)
    count: Callable[[str], int] | None = plan.cached_tokenizer(dict(os.environ))
    if count is None:
        raise SystemExit("tiktoken with a cached o200k_base is not on this machine; see --node")
    return [count(text) for text in texts]


def requests() -> list[tuple[str, str]]:
    """(category, request text) of every pair of the fixture."""
    config: dict[str, Any] = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))
    lines = (ROOT / "fixture.jsonl").read_bytes().split(b"\n")
    items = [json.loads(line) for line in lines if line.strip()]
    return [(item["category"], json.dumps(recipe.request(item, config), ensure_ascii=False)) for item in items]


def show(name: str, rows: list[tuple[int, int, int]]) -> None:
    """One line: totals and extremes. rows: (estimate, true, bytes) per request."""
    estimate, true, size = (sum(column) for column in zip(*rows))
    ratios = sorted(row[0] / row[1] for row in rows)
    print(
        f"{name:<11} {len(rows):>4} requests  {true:>7} tokens  estimate/true {estimate / true:.3f} "
        f"(single {ratios[0]:.3f} to {ratios[-1]:.3f})  bound/true {size / true:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", metavar="DIR", help="folder in which gpt-tokenizer is installed")
    pairs = requests()
    texts = [text for _, text in pairs]
    true = true_counts(texts, parser.parse_args().node)
    rows = [(plan.estimate_tokens(text), count, len(text.encode())) for text, count in zip(texts, true)]
    for category in dict.fromkeys(name for name, _ in pairs):
        show(category, [row for row, (name, _) in zip(rows, pairs) if name == category])
    show("all", rows)


if __name__ == "__main__":
    main()
