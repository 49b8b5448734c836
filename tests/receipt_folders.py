"""A small run of a small evaluation, made in memory by the toolkit's own rooms: what receipts are made of in tests."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rooms import ROOT, room

evidence, rows, evaluations, controls = room("evidence"), room("rows"), room("evaluation"), room("controls")
fixtures = room("fixtures")
client, generate, foreign, audit = room("client"), room("generate"), room("foreign"), room("audit")
receipts, modes, recipe, check = room("receipt"), room("modes"), room("recipe"), room("check")

START = 1_760_000_000.0  # some moment; rows follow it second by second
REPEATS = 2
SERVED = "pareto-26.10"


def items(count: int = 8) -> list[dict[str, Any]]:
    """Test pairs and one dev pair; gold A and B in turn."""
    made = []
    for number in range(count + 1):
        made.append(
            {
                "item_id": f"pair-{number}",
                "split": "test" if number < count else "dev",
                "text": f"Question {number}?",
                "answer_a": "A short answer." + " More." * (number % 3),
                "answer_b": "Another answer." + " More." * ((number + 1) % 3),
                "gold": "AB"[number % 2],
                "category": ["facts", "style"][number // 4 % 2],
                "second_label": "AB"[(number // 3) % 2],
            }
        )
    return made


def lines_of(values: list[dict[str, Any]]) -> bytes:
    return b"".join(evidence.row_bytes(value) for value in values)


def inputs_of(fixture: bytes, **changes: Any) -> dict[str, bytes]:
    """The pinned files of the small evaluation; rooms that decide nothing here are stand-ins of one line."""
    files = {
        "fixture.jsonl": fixture,
        "recipe.py": (ROOT / "recipe.py").read_bytes(),
        "check.py": (ROOT / "check.py").read_bytes(),
    }
    files.update({f"{name}.py": f"# {name}\n".encode() for name in ("agreement", "client", "run_eval")})
    files["engine/rows.py"] = b"# rows\n"
    config = json.loads((ROOT / "eval.json").read_bytes())
    config.update(slug="small-pairs", title="Small pairs", repeats=REPEATS, bootstrap={"resamples": 60, "level": 0.95})
    for name, pin in foreign.PIN_NAMES.items():
        config[pin] = evidence.sha256(files[name])
    config["engine_sha256"] = {"rows.py": evidence.sha256(files["engine/rows.py"])}
    config.update(changes)
    return {"eval.json": evidence.pretty(config), **files}


def small_evaluation(fixture: bytes | None = None, **changes: Any) -> Any:
    """The small evaluation, as the runner would have loaded it."""
    inputs = inputs_of(lines_of(items()) if fixture is None else fixture, **changes)
    config = json.loads(inputs["eval.json"])
    evaluations.check_config(config, "eval.json")
    return evaluations.Evaluation(
        folder="small",
        config=config,
        items=fixtures.load_items(inputs["fixture.jsonl"], "fixture.jsonl")[0],
        warnings=[],
        recipe=recipe,
        check=check,
        hashes={name: evidence.sha256(data) for name, data in inputs.items()},
        inputs=inputs,
    )


def options_of(**changes: Any) -> Any:
    base = {"split": "test", "limit": None, "shard": None, "repeats": None}
    return SimpleNamespace(**{**base, **changes})


def judge_reply(item: dict[str, Any], order: str, repeat: int) -> dict[str, Any]:
    """What the fake judge says: the gold answer in most pairs, the first shown in some, with words that vary."""
    number = int(item["item_id"].partition("-")[2])
    right = item["gold"] if order == "original" else {"A": "B", "B": "A"}[item["gold"]]
    choice = "A" if number % 4 == 3 else right
    said = json.dumps({"choice": choice, "reason": f"Better on point {number + repeat}."})
    return {
        "id": f"reply-{item['item_id']}-{order}-{repeat}",
        "model": SERVED,
        "choices": [
            {"message": {"tool_calls": [{"function": {"name": "grade", "arguments": said}}]}, "finish_reason": "stop"}
        ],
    }


def kept_entry(arm: Any, config: dict[str, Any], item: dict[str, Any], order: str, repeat: int, moment: float) -> Any:
    """The journal entry of one reply of the fake judge or of a control."""
    if arm.control:
        reply = controls.reply(arm.control, item, order, repeat, config["seed"], "tool")
        usage = {"input": 0, "output": 0, "cached": None, "reasoning": None}
    else:
        reply, usage = judge_reply(item, order, repeat), {"input": 300, "output": 20, "cached": 100, "reasoning": 5}
    outcome = client.Outcome("reply", reply=reply, started_at=evidence.utc_stamp(moment), latency_ms=250)
    parts = rows.reply_parts(reply)
    verdict = recipe.parse(rows.reply_of(parts), "tool")
    kept = rows.evidence_of(outcome, parts, usage, verdict)
    return rows.journal_entry(item["item_id"], arm.name, repeat, order, verdict, kept)


def raw_rows(evaluation: Any, arms: list[Any], chosen: Any, repeats: int) -> list[dict[str, Any]]:
    """Rows in canonical order; times depend on pair, arm and repeat alone, so that shards have the same ones."""
    made = []
    for repeat in range(1, repeats + 1):
        for item in chosen:
            for arm in arms:
                moment = START + 60 + 100 * repeat + 5 * int(item["item_id"].partition("-")[2]) + bool(arm.control)
                entries = {
                    order: kept_entry(arm, arm.overlay(evaluation.config), item, order, repeat, moment)
                    for order in evaluations.ORDERS
                }
                config = arm.overlay(evaluation.config)
                made.append(rows.raw_row(arm.settings, config, arm.name, item["item_id"], repeat, entries))
    return made


def write_run(
    folder: str, evaluation: Any, names: tuple[str, ...] = ("pareto", "control-first"), **changes: Any
) -> str:
    """A complete run of the small evaluation in a new folder; changes: split, limit, shard, repeats."""
    options = options_of(**changes)
    arms = evaluations.choose_arms(evaluation.config, list(names), None)
    chosen = fixtures.select(evaluation.items, options.split, options.limit, options.shard)
    manifest = modes.new_manifest(evaluation, options, arms, chosen)
    os.makedirs(folder)
    modes.write_inputs(folder, evaluation.inputs)
    path = os.path.join(folder, "raw.jsonl.gz")
    made = raw_rows(evaluation, arms, chosen, manifest["repeats"])
    digest = evidence.write_rows(path, made)
    manifest.update(
        status="complete",
        started_at=evidence.utc_stamp(START),
        ended_at=evidence.utc_stamp(START + 3600),
        python="3.11.0",
        raw_sha256=evidence.sha256_file(path),
        raw_rows_sha256=digest,
        totals={arm.name: totals_of(arm, made) for arm in arms},
    )
    evidence.write_manifest(folder, manifest)
    return folder


def totals_of(arm: Any, made: list[dict[str, Any]]) -> dict[str, Any]:
    """What the manifest says of an arm; all replies here are good ones, 200 fresh, 100 cached, 20 written tokens."""
    mine = [row for row in made if row["arm"] == arm.name]
    count, served = 2 * len(mine), mine[0]["response_model"]
    price = arm.settings.get("price_usd_per_mtok")
    each = 0.0 if price is None else (200 * price["input"] + 100 * price["cached"] + 20 * price["output"]) / 1e6
    totals = {"ok": count, "invalid": 0, "failed": 0, "missing": 0, "retries": 0, "cost_usd": round(count * each, 6)}
    return {**totals, "replies_without_cost": 0, "served_models": {served: count}}


# === Change what is there ===


def read_rows(folder: str, name: str = "raw.jsonl.gz") -> list[dict[str, Any]]:
    with gzip.open(os.path.join(folder, name), "rb") as stream:
        return [json.loads(line) for line in stream.read().split(b"\n") if line]


def write_rows(folder: str, made: list[dict[str, Any]], name: str = "raw.jsonl.gz") -> None:
    evidence.write_rows(os.path.join(folder, name), made)


def edit_json(folder: str, name: str, change: Callable[[Any], None]) -> None:
    """Change one JSON document in place, in the form it is written in."""
    path = Path(folder, name)
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(evidence.pretty(value))


def refresh(folder: str) -> None:
    """All hashes made to fit what is there now, as a forger would: pins, manifest, receipt.json, SHA256SUMS."""
    pin_anew(folder)
    listed = foreign.Folder(folder)
    kept = ("receipt.json", receipts.SUMS)
    files = {name: listed.sha256(name) for name in sorted(listed.files) if name not in kept}

    def fix(value: Any) -> None:
        value["receipt"]["files"] = files
        value["receipt"]["raw_rows_sha256"] = receipts.rows_sha256(listed)
        value["receipt"]["scored_rows_sha256"] = receipts.rows_sha256(listed, "scored.jsonl.gz")
        value["eval"]["raw"]["sha256"] = files["scored.jsonl.gz"]
        value["eval"]["fixture"]["sha256"] = files["inputs/fixture.jsonl"]
        value["eval"]["eval_json_sha256"] = files["inputs/eval.json"]
        value["eval"]["recipe_sha256"] = files["inputs/recipe.py"]
        manifest = json.loads(Path(folder, "manifest.json").read_bytes())
        value["receipt"]["config_hash"] = manifest["config_hash"]

    edit_json(folder, "receipt.json", fix)
    sums(folder)


def sums(folder: str) -> None:
    """SHA256SUMS made to fit."""
    listed = foreign.Folder(folder)
    files = {name: listed.sha256(name) for name in listed.files if name != receipts.SUMS}
    Path(folder, receipts.SUMS).write_bytes(receipts.sums_text(files))


def pin_anew(folder: str) -> None:
    """Pins in eval.json, hashes and config hashes in the manifest made to fit the inputs; summary.json follows."""
    listed = foreign.Folder(folder)
    hashes = {name[7:]: listed.sha256(name) for name in listed.files if name.startswith("inputs/")}

    def pin(config: Any) -> None:
        config.update({key: hashes[name] for name, key in foreign.PIN_NAMES.items() if name in hashes})
        config["engine_sha256"] = {name[7:]: digest for name, digest in hashes.items() if name.startswith("engine/")}

    edit_json(folder, "inputs/eval.json", pin)
    hashes["eval.json"] = foreign.Folder(folder).sha256("inputs/eval.json")

    def name_them(manifest: Any) -> None:
        manifest["hashes"] = {name: hashes[name] for name in manifest["hashes"] if name in hashes}
        manifest["raw_sha256"] = listed.sha256("raw.jsonl.gz")
        manifest["raw_rows_sha256"] = receipts.rows_sha256(listed)

    edit_json(folder, "manifest.json", name_them)
    opened = foreign.open_run(folder)
    evaluation = receipts.evaluation_of(opened)
    found = {
        arm.name: evaluations.config_hash(evaluation, arm, opened.manifest["split"], opened.items.ids)
        for arm in opened.arms
    }
    edit_json(folder, "manifest.json", lambda manifest: manifest.update(config_hash=found, items=len(opened.items)))

    def follow(summary: Any) -> None:
        summary.update(hashes=opened.manifest["hashes"], config_hash=found)

    edit_json(folder, "summary.json", follow)


def retotal(manifest: Any, result: Any) -> None:
    """The manifest's totals made to fit a result."""
    for name, arm in result["arms"].items():
        cost = round(result["cost_usd"][name]["value"], 6)
        manifest["totals"][name].update(arm["replies"], served_models=arm["served_models"], cost_usd=cost)


def remake(folder: str, evaluation: Any) -> None:
    """Everything derived made again from rows and inputs by our own code, without looking at any condition."""
    pin_anew(folder)
    opened = foreign.open_run(folder)
    found = audit.Audit(opened, evaluation.recipe, evaluation.check.score).run(scored=False)
    digest = evidence.write_rows(os.path.join(folder, "scored.jsonl.gz"), receipts.scored_rows(opened, found))
    result = receipts.result_of(opened, found, evaluation, receipts.frozen_options())
    Path(folder, "summary.json").write_bytes(evidence.pretty(result))
    edit_json(folder, "manifest.json", lambda manifest: retotal(manifest, result))
    opened = foreign.open_run(folder)
    listed = foreign.Folder(folder)
    kept = ("receipt.json", receipts.SUMS)
    files = {name: listed.sha256(name) for name in sorted(listed.files) if name not in kept}
    freeze = receipts.Freeze(None, None, "no_repository")
    hashes = {"raw_rows_sha256": receipts.rows_sha256(listed), "scored_rows_sha256": digest}
    made = receipts.document(opened, found, result, files, freeze, pending=False, **hashes)
    Path(folder, "receipt.json").write_bytes(evidence.pretty(made))
    sums(folder)
