"""Evidence in the published format, made from its description: a schema 2 receipt with everything it names by hash.

The figures it leads to are chosen so that they are those of the published page: 100 pairs with gold 51 A and 49 B, five
repeats, two arms whose folded predictions give kappa 0.6154 and 0.5966, and a second label that gives 0.7201.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import Any

PROMPT = "Pick the better answer."
CHOICE = {"type": "function", "function": {"name": "grade"}}
REPEATS = 5
SWAP = {"A": "B", "B": "A", "equal": "equal", "invalid": "invalid"}
IDENTITY = {
    "pareto": ("pareto", "pareto-26.10", "https://api.unbiased.ai/v1", "Unbiased"),
    "baseline": ("gpt-6.1-sol", "gpt-6.1-sol-2026-09-01", "https://api.openai.com/v1", "OpenAI"),
}
# Folded predictions: right on A, right on B, wrong on gold A as B, wrong on gold B as A; the rest is 'equal'.
FOLDED = {"pareto": (40, 40, 8, 8), "baseline": (38, 41, 10, 7)}
SECOND = (43, 43)  # pairs on which the second label is the first, gold A and gold B


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def pretty(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"


def fixture_rows() -> list[dict[str, Any]]:
    """100 test pairs: gold A for the first 51, B for the others; the second label differs on the last of each class."""
    made: list[dict[str, Any]] = []
    for number in range(100):
        gold, place = ("A", number) if number < 51 else ("B", number - 51)
        same = place < SECOND[0 if gold == "A" else 1]
        row = {"item_id": f"pair-{number:03}", "split": "test", "text": f"Question {number}", "answer_a": "One"}
        made.append({**row, "answer_b": "Two!", "gold": gold, "second_label": gold if same else SWAP[gold]})
    return made


def folded(arm: str, item: dict[str, Any]) -> str:
    """The prediction that most repeats of an arm make on a pair."""
    number = int(item["item_id"][-3:])
    right_a, right_b, turned_a, turned_b = FOLDED[arm]
    place, right, turned = (number, right_a, turned_a) if number < 51 else (number - 51, right_b, turned_b)
    return str(item["gold"]) if place < right else SWAP[item["gold"]] if place < right + turned else "equal"


def scored_row(arm: str, item: dict[str, Any], repeat: int) -> dict[str, Any]:
    """One published scored row; the reason's words vary with the repeat, as they do."""
    model, served, endpoint, provider = IDENTITY[arm]
    original = folded(arm, item)
    number = int(item["item_id"][-3:])
    swapped = original if number % 10 == 0 and original != "equal" else SWAP[original]  # follows the position
    at = f"2026-10-2{repeat}T10:{number // 60:02}:{number % 60:02}.{'000001' if arm == 'pareto' else '000002'}Z"
    arguments = {
        "original": {"choice": original, "reason": f"Seen {repeat % 2} ways."},
        "swapped": {"choice": swapped, "reason": "Seen again."},
    }
    consistent = original != "invalid" and swapped == SWAP[original]
    return {
        "item_id": item["item_id"],
        "arm": arm,
        "repeat": repeat,
        "request_model": model,
        "response_model": served,
        "endpoint": endpoint,
        "provider_served": provider,
        "allow_fallbacks": False,
        "reasoning_effort": "medium",
        "max_tokens": 1024,
        "tool_choice": CHOICE,
        "tool_arguments": arguments,
        "finish_reason": "stop",
        "tokens": {"input": 500, "output": 60, "cached": 100, "reasoning": 20},
        "response_id": f"{arm}-{number}-{repeat}-a,{arm}-{number}-{repeat}-b",
        "started_at": at,
        "errors": 0,
        "invalid_tool_calls": 0,
        "retries": 0,
        "latency_ms": 900,
        "gold": item["gold"],
        "prediction": original,
        "secondary": {
            "agreement": {"gold": item["gold"], "prediction": original},
            "position_consistency": {"score": int(consistent)},
            "valid_output": {"score": 1},
        },
    }


def settings(files: dict[str, bytes]) -> dict[str, Any]:
    """eval.json of the published format."""
    return {
        "fixture_sha256": sha(files["fixture.jsonl"]),
        "recipe_sha256": sha(files["recipe.py"]),
        "checker_sha256": sha(files["check.py"]),
        "runner_sha256": "0" * 64,
        "prompt": PROMPT,
        "tool_choice": CHOICE,
        "max_tokens": 1024,
        "reasoning_effort": "medium",
        "repeats": REPEATS,
        "aggregation": "majority_label",
        "headline": {"metric": "kappa"},
        "secondary": [
            {"id": "agreement", "aggregation": "majority_label"},
            {"id": "position_consistency", "aggregation": "median"},
            {"id": "valid_output", "aggregation": "median"},
        ],
        "seed": 7,
        "unit": "answer pair",
        "fixture_source": {"license": "CC BY 4.0"},
        "bootstrap": {"resamples": 50},
    }


def repeat_entry(made: list[dict[str, Any]], repeat: int) -> dict[str, Any]:
    """One entry of `arms.<arm>.runs`."""
    mine = [row for row in made if row["repeat"] == repeat]
    return {
        "repeat": repeat,
        "tokens": {
            kind: sum(row["tokens"][kind] for row in mine) for kind in ("input", "output", "cached", "reasoning")
        },
        "errors": sum(row["errors"] for row in mine),
        "invalid_tool_calls": sum(row["invalid_tool_calls"] for row in mine),
        "retries": sum(row["retries"] for row in mine),
        "truncations": sum(row["finish_reason"] == "length" for row in mine),
        "response_ids_sha": sha(compact([row["response_id"] for row in mine])),
    }


def arm_entry(arm: str, made: list[dict[str, Any]]) -> dict[str, Any]:
    model, served, endpoint, provider = IDENTITY[arm]
    mine = [row for row in made if row["arm"] == arm]
    runs = [repeat_entry(mine, repeat) for repeat in range(1, REPEATS + 1)]
    entry: dict[str, Any] = {"model": model, "endpoint": endpoint, "max_tokens": 1024, "runs": runs}
    if arm == "pareto":
        return {**entry, "response_model": served}
    return {**entry, "label": "GPT", "provider_served": provider, "reasoning_effort": "medium"}


def receipt(
    files: dict[str, bytes], made: list[dict[str, Any]], arms: tuple[str, ...], scored: bytes
) -> dict[str, Any]:
    """receipt.json, schema 2, in its key order."""
    config = json.loads(files["eval.json"])
    fixture = {"path": "data/use-case-evals/pairs/fixture.jsonl", "sha256": sha(files["fixture.jsonl"])}
    counted = {"items": files["fixture.jsonl"].count(b'"test"'), "dev_items": 0, "split": "test"}
    document = {
        "schema": 2,
        "runner": "scripts/evals/pairs/run_eval.py",
        "pareto_release": IDENTITY["pareto"][1],
        "fixture": {**fixture, **counted, **config["fixture_source"]},
        "prompt_sha256": sha(config["prompt"].encode()),
        "recipe_sha256": sha(files["recipe.py"]),
        "eval_json_sha256": sha(files["eval.json"]),
        "freeze_sha": "f" * 40,
        **{key: config[key] for key in ("repeats", "seed", "unit", "aggregation", "headline", "secondary")},
        "arms": {arm: arm_entry(arm, made) for arm in sorted(arms)},
        "variants": {},
        "raw": {"path": "data/use-case-evals/pairs/runs/x/raw.jsonl.gz", "sha256": sha(scored)},
    }
    if len(arms) == 1:
        document["baseline_status"] = "pending"
    date = max(row["started_at"] for row in made)[:10]
    return {"date": date, "result": "pass", "eval": document}


def rows_of(arms: tuple[str, ...], arm_after_arm: bool) -> list[dict[str, Any]]:
    """All rows, in either order that published evidence comes in."""
    keys = [(repeat, item, arm) for repeat in range(1, REPEATS + 1) for item in fixture_rows() for arm in arms]
    if arm_after_arm:
        keys.sort(key=lambda key: arms.index(key[2]))
    return [scored_row(arm, item, repeat) for repeat, item, arm in keys]


def write(folder: str, arms: tuple[str, ...] = ("pareto", "baseline"), arm_after_arm: bool = False) -> str:
    """Published evidence in a new folder, laid out as the repository does, away from the paths the receipt names."""
    files = {
        "fixture.jsonl": b"".join(compact(row) + b"\n" for row in fixture_rows()),
        "recipe.py": b'def parse(reply):\n    return {"choice": "invalid", "reason": "none"}\n',
        "check.py": CHECK.encode(),
    }
    files["eval.json"] = pretty(settings(files))
    made = rows_of(arms, arm_after_arm)
    place(folder, files, made, arms)
    return folder


def place(folder: str, files: dict[str, bytes], made: list[dict[str, Any]], arms: tuple[str, ...]) -> None:
    """Write the files of a published evaluation."""
    scored = gzip.compress(b"".join(compact(row) + b"\n" for row in made), mtime=0)
    document = pretty(receipt(files, made, arms, scored))
    placed = {"receipt.json": document, "runs/one/raw.jsonl.gz": scored}
    placed.update({f"scripts/{name}" if name != "fixture.jsonl" else name: data for name, data in files.items()})
    for name, data in placed.items():
        path = Path(folder, *name.split("/"))
        os.makedirs(path.parent, exist_ok=True)
        path.write_bytes(data)


# A checker as the published contract describes one, in other words than ours.
CHECK = """
OTHER = {"A": "B", "B": "A", "equal": "equal"}


def score(item, arguments, config):
    first, second = arguments["original"]["choice"], arguments["swapped"]["choice"]
    answer = first if first in OTHER else "invalid"
    return {
        "gold": item["gold"],
        "prediction": answer,
        "secondary": {
            "agreement": {"gold": item["gold"], "prediction": answer},
            "position_consistency": {"score": int(OTHER.get(first) == second)},
            "valid_output": {"score": int(first in OTHER and second in OTHER)},
        },
    }
"""
