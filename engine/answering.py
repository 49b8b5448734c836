"""`judge.py answer`: every task of a file put to a model, its checks made, a results file written.

The same road as judging: a journal beside --out, resumed by the same command, paced and bounded alike. An answer that
never came leaves the command incomplete; a reply without text is written as an empty answer with its reason.
"""

from __future__ import annotations

import sys
from typing import Any

import checks
import evaluation as evaluations
import evidence
import grading
import judging
import messages
import results

# === Constants ===

VOICE = messages.Voice("judge")


# === Answer ===


def main_answer(options: Any) -> int:
    return VOICE.guard(judging.HANDLED, answer, options)


def answer(options: Any) -> int:
    if options.model.startswith(judging.CONTROL_PREFIX):
        raise evaluations.SettingError("--model: a control judges answers; it has none of its own")
    data = results.read_tasks(options.tasks)
    work = judging.Work({"item_id": task["id"], "prompt": task["prompt"]} for task in data["tasks"])
    config = {
        "output_mode": "text",
        "system": options.system,
        **{key: getattr(options, key) for key in ("max_tokens", "temperature", "seed")},
    }
    results.check_out(options.out, options.tasks)
    inputs = {"tasks": evidence.sha256(results.read_bytes(options.tasks))}
    job = judging.Job(options.out, grading.Answer(sys.modules["recipe"]), work, config, inputs, (options.tasks,))
    arms = judging.judges_of([options.model], options)
    code, done = judging.ask(job, arms, options, VOICE)
    if code:
        return code
    found = judging.verdicts(job, done["runs"][options.model])
    rows = [answered(task, found[task["id"]]["original"]) for task in data["tasks"]]
    whole = {"run": run_of(data, rows, options, done["manifest"]), "results": rows}
    judging.write_out(options.out, results.published(whole))
    show(whole, options)
    return 0


def answered(task: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """One result: the task as read, the answer, and what its checks found."""
    text = said["reason"] if said["state"] == "ok" else ""
    row = {key: value for key, value in task.items() if key != "checks"}
    row.update(answer=text, checks=checks.outcome(text, task.get("checks", [])))
    if said["state"] != "ok":
        row["answer_problem"] = said["code"]
    elif said.get("hint"):
        row["answer_problem"] = said["hint"]
    return row


def run_of(data: dict[str, Any], rows: list[dict[str, Any]], options: Any, manifest: dict[str, Any]) -> dict[str, Any]:
    """The `run` of a results file."""
    settings = {"max_tokens": options.max_tokens, "temperature": options.temperature, "seed": options.seed}
    told = " ".join(f"{key}={value}" for key, value in settings.items() if value is not None)
    return {
        "model": options.model,
        "quant": options.quant,
        "engine": options.engine,
        "engine_version": options.engine_version,
        "settings": options.settings or told,
        "task_set": data["task_set"],
        "task_set_version": data["task_set_version"],
        "checks_passed": sum(row["checks"]["passed"] is True for row in rows),
        "checks_made": sum(row["checks"]["passed"] is not None for row in rows),
        "tasks": len(rows),
        "seconds": manifest["seconds"],
        "date": manifest["started_at"][:10],
    }


def show(whole: dict[str, Any], options: Any) -> None:
    """What came out, on stdout."""
    run = whole["run"]
    if options.format == "json":
        messages.show_form(evidence.pretty(run).decode("utf-8"), "json")
        return
    silent = [row["id"] for row in whole["results"] if not row["answer"]]
    counts = f"{run['tasks']} answers, checks passed {run['checks_passed']} of {run['checks_made']}"
    messages.show(f"{run['model']}: {counts}\n")
    if silent:
        messages.show(f"without text: {', '.join(silent)}\n")
    print(f"\nwritten: {options.out}")
