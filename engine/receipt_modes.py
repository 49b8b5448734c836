"""The modes that make, join, verify and compare evidence: --receipt, --merge, --verify, --diff; the demo's receipts.

Here options become calls and findings become output and exit codes; the work is done in the rooms named after it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from typing import Any

import commands
import diff as differing
import evaluation as evaluations
import foreign
import gates
import messages
import pinned
import published
import receipt as receipts
import verify as verifying

# === Constants ===

RUNS = "runs"  # what --out is when it was not given
RUN_FILES = ("receipt.json", "manifest.json")  # one of them is in every folder of ours
DEMO_RECEIPTS = 20  # receipts of receipts/ that the demo looks at


# === Receipt ===


def main_receipt(evaluation: evaluations.Evaluation, options: Any) -> int:
    """--receipt RUN [--merge-baseline RUN …] [--pending] [--out DIR]."""
    sources = [options.receipt, *(options.merge_baseline or [])]
    target = options.out if options.out != RUNS else os.path.join(options.receipt, "receipt")
    made = receipts.publish(sources, target, evaluation, options.git_history, options.pending)
    ours = made["receipt"]
    print(target)
    for name in ours["outside_the_frozen_list"]:
        note(f"arm {name} is outside the frozen list; the receipt says so")
    if ours["freeze"]["reason"] == "not_committed":
        note("eval.json as the run used it is in no commit; the receipt names no freeze")
    again = commands.command(evaluation.folder, "--verify", target)
    print(f"hint: anybody can verify it with: {again}", file=sys.stderr)
    return 0


def note(text: str) -> None:
    messages.say(f"run_eval: warning: {text}")


def main_merge(evaluation: evaluations.Evaluation, options: Any) -> int:
    """--merge RUN RUN …: a new run under --out."""
    if len(options.merge) < 2:
        raise evaluations.UsageError("--merge: expected two runs or more, got one")
    folder = receipts.merge(options.merge, options.out, time.time())
    print(folder)
    print(f"hint: see the result with: {commands.command_for(folder, '--rescore')}", file=sys.stderr)
    return 0


# === Verify ===


def evidence_folder(path: str) -> str:
    """The folder of what --verify was given: itself, or that of a receipt.json. Raises: ForeignError."""
    if os.path.isdir(path):
        return path
    if not os.path.exists(path):
        raise foreign.ForeignError(f"{path}: no such file or folder")
    if os.path.basename(path) != "receipt.json":
        raise foreign.ForeignError(f"{path}: expected a receipt folder, a receipt.json or a run folder")
    return os.path.dirname(path) or "."


def examined(folder: str, evaluation: evaluations.Evaluation, expected: list[tuple[str, str]], run_code: bool) -> Any:
    """All checks on a folder, by the format it is in. Raises: ForeignError when there is no evidence in it."""
    found = foreign.Folder(folder)
    room = published if published.is_published(found) else verifying
    if room is verifying and not any(name in found for name in (*RUN_FILES, receipts.SUMS)):
        raise foreign.ForeignError(f"{folder}: is no receipt and no run: no {' or '.join(RUN_FILES)} is in it")
    check = pinned.check_published if room is published else pinned.check_receipt
    return room.verify(folder, evaluation, time.time(), expected, check if run_code else None)


def main_verify(evaluation: evaluations.Evaluation, options: Any) -> int:
    try:
        expected = verifying.parse_expected(options.expect or [])
    except ValueError as error:
        raise evaluations.UsageError(str(error)) from None
    wanted = [gates.parse_gate(text) for text in options.gate or []]
    state = examined(evidence_folder(options.verify), evaluation, expected, options.run_pinned_code)
    checks = list(state.done.values())
    if options.format == "json":
        found = verifying.as_json(options.verify, checks, state.fresh)
        messages.show_form(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "json")
    else:
        arms = state.opened.arms if isinstance(state, verifying.State) and state.opened else []
        more = figure_lines(state.fresh) + judge_lines(arms)
        messages.show(verifying.render(f"verify {options.verify}", checks, more))
    if any(check.status == verifying.FAIL for check in checks):
        return 1
    return gate_code(state.fresh, wanted)


def gate_code(result: dict[str, Any] | None, wanted: list[gates.Gate]) -> int:
    """Gates on a result as recomputed, said on stderr; 3 when there is none to check. Raises: GateError."""
    if not wanted:
        return 0
    if result is None or "level" not in result.get("bootstrap", {}):
        messages.say("run_eval: error: --gate: expected a result to recompute, got none with intervals here")
        return 3
    gates.refuse_unknown_judges(wanted, list(result["arms"]))
    code, lines = gates.check(result, wanted)
    for line in lines:
        messages.say(f"run_eval: {line}")
    return code


def judge_lines(arms: list[evaluations.Arm]) -> list[str]:
    """Who was asked where, as the evidence says: that these replies came from there is nothing it can prove."""
    lines = []
    for arm in arms:
        if arm.control:
            continue
        listed = "on the frozen list" if arm.frozen else "not on the frozen list"
        asked = f"{arm.settings.get('model') or 'an unnamed model'} at {arm.settings.get('endpoint') or 'no endpoint'}"
        shown = f"recorded replies of {arm.name}" if arm.provenance == "recorded" else asked
        lines.append(f"{foreign.shown(arm.name, 60)}: {foreign.shown(shown, 160)}, {listed}")
    return [*lines, "who wrote the replies is what the evidence says, not what it proves"] if lines else []


def rule_lines(result: dict[str, Any]) -> list[str]:
    """The rules by which the figures were worked out: other rules make other figures of the same rows."""
    bootstrap, rule = result.get("bootstrap") or {}, result.get("decision")
    if "level" not in bootstrap or "resamples" not in bootstrap:
        return []
    words = [f"{100 * bootstrap['level']:g}% intervals of {bootstrap['resamples']:,} resamples"]
    words = [f"decision by rule '{foreign.shown(rule, 20)}'", *words] if rule else words
    return [f"figures: {', '.join(words)}"]


def figure_lines(result: dict[str, Any] | None) -> list[str]:
    """The headline of each judge as recomputed, so that a reader sees what was verified."""
    lines = rule_lines(result) if result else []
    for name, arm in (result or {}).get("arms", {}).items():
        shown = []
        for metric in ("kappa", "agreement", "position_consistency", "mean"):
            found = arm["metrics"].get(metric)
            if found and found["value"] is not None:
                why = (found.get("interval") or {}).get("reason")
                span = f" [{why}]" if why else ""
                span = f" [{found['low']:.3f}, {found['high']:.3f}]" if found["low"] is not None else span
                shown.append(f"{metric} {found['value']:.4f}{span}")
        lines.append(f"{foreign.shown(name, 60)}: {', '.join(shown)}")
    return lines


# === Diff ===


def main_diff(evaluation: evaluations.Evaluation, options: Any) -> int:
    """--diff A B: two runs or receipts, each with '@2' behind it for one repeat, each read by its own evaluation."""
    sides = [
        differing.open_side(text, dataclasses.replace(evaluation, recipe=recipe, check=check), os.path.exists)
        for text, (recipe, check) in zip(options.diff, options.readers)
    ]
    result = differing.compare(sides[0], sides[1], options.arms.split(",") if options.arms else None)
    messages.show(differing.render(result, options.format))
    return 0


# === Warn before a run ===


def planned_obstacles(evaluation: evaluations.Evaluation, options: Any) -> list[str]:
    """Why a run with these options could not become a receipt; empty when it could."""
    freeze = receipts.freeze_of(options.git_history, evaluation.inputs["eval.json"])
    return receipts.planned_obstacles(options, evaluation.config, freeze)


def warn_before(evaluation: evaluations.Evaluation, options: Any) -> None:
    """One warning on stderr when the run that starts now could not become a receipt."""
    lines = planned_obstacles(evaluation, options)
    if lines:
        note("this run could not become a receipt: " + "; ".join(lines))


# === The demo's receipts ===


def recorded_judges(evaluation: evaluations.Evaluation, top: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """The judges of every receipt in a folder: (name -> (arm, its receipt's result), notes, problems).

    Only receipts of this evaluation's very pairs count, only those whose every check holds, and of them only real
    judges: the controls run live beside them.
    """
    judges: dict[str, Any] = {}
    notes, problems = [], []
    names = sorted(os.listdir(top)) if os.path.isdir(top) else []
    folders = [os.path.join(top, name) for name in names if os.path.isfile(os.path.join(top, name, "receipt.json"))]
    folders = [each for each in folders if commands.slug_in(os.path.join(each, "manifest.json")) == evaluation.slug]
    for folder in folders[:DEMO_RECEIPTS]:
        state = verifying.verify(folder, evaluation, time.time(), [])
        folder = os.path.relpath(folder)
        bad = [check.name for check in state.done.values() if check.status == verifying.FAIL]
        if bad:
            problems.append(f"{folder}: does not verify: {', '.join(bad)} (see --verify {folder})")
            continue
        counts = [sum(check.status == status for check in state.done.values()) for status in ("ok", "not checked")]
        own = f"; its own tables: --rescore {folder}" if evaluation.tables is not None else ""
        notes.append(f"{folder}: verified, {counts[0]} checks ok, {counts[1]} not checked{own}")
        judges.update(judges_of(state, os.path.basename(folder), judges))
    return judges, notes, problems


def judges_of(state: verifying.State, folder: str, taken: dict[str, Any]) -> dict[str, Any]:
    """The real judges of one verified receipt, each under a name not taken yet."""
    found: dict[str, Any] = {}
    for name, arm in (state.fresh or {}).get("arms", {}).items():
        if arm["provenance"] == "control":
            continue
        model = os.path.basename(str(arm["model"] or name))
        shown = foreign.shown(name if arm["listed"] else model, 60)
        label = f"{shown} (recorded)"
        found[label if label not in taken else f"{shown} ({foreign.shown(folder, 60)})"] = (name, state.fresh)
    return found


def with_recorded(result: dict[str, Any], judges: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """A result to be shown with the recorded judges in its tables, in front of the live ones."""
    if not judges:
        return result
    shown = dict(result)
    for part in ("arms", "position", "length", "repeats", "usage", "cost_usd", "disagreements"):
        recorded = {label: found[part][name] for label, (name, found) in judges.items()}
        shown[part] = {**recorded, **result[part]}
    for label in judges:
        shown["arms"][label] = {**shown["arms"][label], "listed": True}  # the receipt said so; here the name does
    shown["by"] = {}
    for dimension, levels in result["by"].items():
        known = {label: found["by"].get(dimension, {}) for label, (_, found) in judges.items()}
        if all(level in part for part in known.values() for level in levels):
            shown["by"][dimension] = {
                level: {**{label: known[label][level][name] for label, (name, _) in judges.items()}, **arms}
                for level, arms in levels.items()
            }
    return shown
