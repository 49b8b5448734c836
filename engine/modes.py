"""What each mode of run_eval.py does, from parsed options to exit code.

The rooms do the work; here they are put together: settings are checked, the run folder is made, workers are started and
watched, results are printed. Every check that can be made beforehand is made before the first request and before
anything is written.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any

import batch
import callers
import calling
import commands
import drift
import ending
import evaluation as evaluations
import evidence
import fixtures
import foreign
import gates
import generate
import imported
import messages
import plan
import providers
import prune
import receipt_modes
import rescore as rescoring
import summary
import tables
import trust

# === Constants ===

PROGRAM = "run_eval"
VOICE = messages.Voice(PROGRAM)
say, error, warn = messages.say, VOICE.error, VOICE.warn
MAX_CATEGORIES = 4  # named in a line
HANDLED = (
    evidence.EvidenceError,
    gates.GateError,
    evaluations.SettingError,
    generate.JournalError,
    generate.NotComplete,
)


# === Put together ===


def build_evaluation(folder: str, config: dict[str, Any], inputs: dict[str, bytes]) -> evaluations.Evaluation:
    """The evaluation of some verified bytes; without pairs where the fixture is not built and not needed.

    Raises: SettingError, EvidenceError.
    """
    where = os.path.join(folder, "eval.json")
    evaluations.check_config(config, where)
    built = "fixture.jsonl" in inputs  # an evaluation whose fixture is not built here may still read evidence
    no_pairs: tuple[fixtures.Items, list[fixtures.Oddity]] = (fixtures.no_items(), [])
    items, oddities = fixtures.load_items(inputs["fixture.jsonl"], "fixture.jsonl") if built else no_pairs
    warnings, notes = evaluations.oddity_lines(oddities, config.get("known_oddities", {}) if built else {})
    texts = {name: inputs[name].decode("utf-8") for name in dict(config.get("inputs_sha256") or {}) if name in inputs}
    config = {**config, "inputs": texts} if texts else config
    return evaluations.Evaluation(
        folder=folder,
        config=config,
        items=items,
        warnings=warnings,
        notes=tuple(notes),
        recipe=sys.modules["recipe"],
        check=sys.modules["check"],
        hashes={name: evidence.sha256(data) for name, data in inputs.items()},
        inputs=inputs,
        tables=sys.modules.get("evaluation_tables"),
    )


def custom_settings(options: Any) -> dict[str, Any] | None:
    """The arm entry of a judge given on the command line. Raises: SettingError."""
    if not options.base_url:
        return None
    settings: dict[str, Any] = {"endpoint": options.base_url, "model": options.model}
    if options.api_format not in (None, "openai"):
        settings["format"] = options.api_format
    if options.key_env:
        settings["key_env"] = options.key_env
    if options.output_mode:
        settings["output_mode"] = options.output_mode
    if options.strict:
        settings["strict"] = True
    settings.update(calling.quirks_of(options))
    if options.price:
        settings["price_usd_per_mtok"] = calling.price_of(options.price)
    return settings


def chosen_arms(evaluation: evaluations.Evaluation, options: Any, default: list[str]) -> list[evaluations.Arm]:
    """The arms a run is asked for, each checked with its provider's rules. Raises: SettingError."""
    wanted = options.arms.split(",") if options.arms else default
    arms = evaluations.choose_arms(evaluation.config, wanted, custom_settings(options), options.arm_label)
    problems, of_flags = [], True
    for arm in arms:
        found = [] if arm.control else providers.arm_problems(arm.name, arm.settings)
        if arm.control and not evaluation.is_pairwise:
            found = [f"arm {arm.name}: a control only makes sense where answers are compared"]
        problems += found
        of_flags = of_flags and not (found and arm.frozen)
    if problems:
        raise (evaluations.UsageError if of_flags else evaluations.SettingError)("\n".join(problems))
    return arms


def selected(evaluation: evaluations.Evaluation, options: Any) -> fixtures.Items:
    """The pairs a run is about. Raises: SettingError when there are none."""
    items = fixtures.select(evaluation.items, options.split, options.limit, options.shard)
    if not items:
        raise evaluations.SettingError(f"fixture.jsonl: no item in split {options.split!r} for this selection")
    warn(one_sided(evaluation, items, options))
    return items


def one_sided(evaluation: evaluations.Evaluation, items: fixtures.Items, options: Any) -> list[str]:
    """A line when --limit takes the first pairs of a set that is ordered by category, so that they are no sample."""
    if options.limit is None:
        return []
    everything = fixtures.select(evaluation.items, options.split, None, None)
    there, taken = (
        {item["category"] for item in each if item.get("category") is not None} for each in (everything, items)
    )
    if len(taken) >= min(len(there), len(items)):
        return []
    shown = ", ".join(sorted(taken)[:MAX_CATEGORIES]) + (", …" if len(taken) > MAX_CATEGORIES else "")
    first = f"--limit {options.limit} takes the first pairs, of {len(taken)} of {len(there)} categories"
    return [f"{first} ({shown}): no sample of the set" if taken else first]


# === Manifest ===


def new_manifest(
    evaluation: evaluations.Evaluation, options: Any, arms: list[evaluations.Arm], items: fixtures.Items
) -> dict[str, Any]:
    """The manifest of a run that starts now."""
    hashes = {arm.name: evaluations.config_hash(evaluation, arm, options.split, items.ids) for arm in arms}
    return {
        "format": evidence.RUN_FORMAT,
        "slug": evaluation.slug,
        "title": evaluation.config.get("title", evaluation.slug),
        "status": "incomplete",
        "split": options.split,
        "limit": options.limit,
        "shard": options.shard,
        "arms": [arm.name for arm in arms],
        "arm_settings": {arm.name: arm.settings for arm in arms},
        "unlisted_arms": [arm.name for arm in arms if not arm.frozen],
        "provenance": {arm.name: arm.provenance for arm in arms},
        "repeats": options.repeats or evaluation.config["repeats"],
        "items": len(items),
        "hashes": evaluation.hashes,
        "config_hash": hashes,
        "tool_version": evidence.TOOL_VERSION,
        "python": evidence.python_version(),
        "started_at": evidence.utc_stamp(time.time()),
    }


def write_inputs(folder: str, inputs: dict[str, bytes]) -> None:
    """Copies of every pinned file, so that the run explains itself."""
    for name, data in inputs.items():
        path = os.path.join(folder, "inputs", *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        evidence.write_atomic(path, data)


def manifest_arms(manifest: dict[str, Any]) -> list[evaluations.Arm]:
    """The arms of a run as its manifest names them. Raises: SettingError."""
    arms = []
    for name in manifest["arms"]:
        settings = manifest["arm_settings"][name]
        evaluations.check_arm(name, settings, "manifest.json")
        arms.append(evaluations.Arm(name, settings, frozen=name not in manifest.get("unlisted_arms", [])))
    return arms


# === Asking ===


def ask_all(
    evaluation: evaluations.Evaluation,
    folder: str,
    manifest: dict[str, Any],
    items: fixtures.Items,
    runs: dict[str, generate.ArmRun],
    ask: callers.Callers,
    options: Any,
) -> int:
    """Send what is missing and finish the run when every reply is there; the exit code says which."""
    received: list[int] = []
    budget = generate.Budget(options.max_usd, options.max_minutes)
    if budget.usd is not None:
        for run in runs.values():
            run.config["_longest_request_bytes"] = generate.longest_request(evaluation, items, run.config)
    journal = evidence.Journal(os.path.join(folder, "journal.jsonl"))
    work = generate.Generation(
        evaluation, items, runs, ask.by_arm, journal, providers.usage_of, time.monotonic, ask.stop, budget, ask.meter
    )
    lost = False
    with calling.interruptible(ask.stop, received, VOICE):
        workers = calling.workers_of([run.arm for run in runs.values()], options)
        calling.wait(work.start(workers, options.by_item), work, options, received, VOICE)
        try:
            journal.close()
        except OSError as problem:
            work.halt(f"{journal.path}: cannot be written: {problem.strerror or problem}")
            lost = True  # what the tables say may not be on disk, so this process does not finish the run
    if work.bug is not None:
        raise work.bug
    billed = sum(run.progress.maybe_billed for run in runs.values())
    if billed:
        warn([f"{billed} tries brought no usable reply after they were sent; they may have been billed twice"])
    code = 3 if lost else complete(folder, manifest, items, runs)
    if code:
        with contextlib.suppress(OSError):  # the totals are for readers; nothing depends on them
            evidence.write_manifest(folder, {**manifest, "totals": generate.totals(runs)})
        ending.not_complete(evaluation, folder, runs, work.problem, options)
    return 130 if code and received else code


def complete(folder: str, manifest: dict[str, Any], items: fixtures.Items, runs: dict[str, generate.ArmRun]) -> int:
    """Turn the journal into raw rows when every reply is there; 0 when that was done, else 3."""
    if any(run.progress.counts[state] for run in runs.values() for state in (generate.MISSING, generate.FAILED)):
        return 3
    try:
        generate.finish(folder, manifest, items, runs, time.time())
    except OSError as problem:  # the journal stays, and a resume finishes from it
        error(f"{problem.filename or folder}: cannot be written: {problem.strerror or problem}")
        return 3
    return 0


# === Modes ===


def generate_run(evaluation: evaluations.Evaluation, options: Any, default: list[str]) -> tuple[int, str]:
    """A new run: everything checked, then the folder, then the calls. Returns exit code and folder."""
    arms = chosen_arms(evaluation, options, default)
    items = selected(evaluation, options)
    ask = callers.callers_of(arms, evaluation, options)
    warn(evaluation.warnings + callers.token_lines(arms, items))
    for note in evaluation.notes:
        say(f"run_eval: {note}")
    if options.generate:
        receipt_modes.warn_before(evaluation, options)
    manifest = new_manifest(evaluation, options, arms, items)
    folder = evidence.new_run(options.out, evaluation.slug, time.time())
    with evidence.Lock(folder):
        write_inputs(folder, evaluation.inputs)
        evidence.write_manifest(folder, manifest)
        runs = generate.arm_runs(arms, evaluation.config, len(items), manifest["repeats"])
        code = ask_all(evaluation, folder, manifest, items, runs, ask, options)
    return code, folder


def main_generate(evaluation: evaluations.Evaluation, options: Any) -> int:
    code, folder = generate_run(evaluation, options, list(evaluation.config.get("default_arms", [])))
    print(folder)
    if code == 0:
        say("hint: see the result with: " + commands.command(evaluation.folder, "--rescore", folder))
    return code


def changed_inputs(manifest: dict[str, Any], evaluation: evaluations.Evaluation) -> list[str]:
    """One line for every input that is not what it was when the run started."""
    then, now = manifest.get("hashes", {}), evaluation.hashes
    names = sorted(set(then) | set(now))
    return [
        f"{name} changed since the run started: expected {then.get(name)}, got {now.get(name)}"
        for name in names
        if then.get(name) != now.get(name)
    ]


def run_items(manifest: dict[str, Any], evaluation: evaluations.Evaluation) -> fixtures.Items:
    return fixtures.select(evaluation.items, manifest["split"], manifest.get("limit"), manifest.get("shard"))


def own_manifest(evaluation: evaluations.Evaluation, folder: str, mode: str) -> dict[str, Any]:
    """The manifest of a run of this very evaluation. Raises: SettingError with the command that names the right one."""
    manifest = foreign.checked_manifest(folder)
    if manifest["slug"] != evaluation.slug:
        text = f"{folder}: is a run of {manifest['slug']!r}, not of {evaluation.slug!r}"
        hint = f"name the folder of {manifest['slug']!r}: {commands.command_for(folder, mode)}"
        raise evaluations.SettingError(text, hint)
    return manifest


def with_own_flags(manifest: dict[str, Any], options: Any) -> dict[str, Any]:
    """A run's manifest with another key variable or price for the judge of the command line: neither decides a request.

    Raises: UsageError when the run has no such judge.
    """
    given: dict[str, Any] = {"key_env": options.key_env} if options.key_env else {}
    if options.price:
        given["price_usd_per_mtok"] = calling.price_of(options.price)
    if not given:
        return manifest
    settings = manifest["arm_settings"]
    own = [name for name in manifest.get("unlisted_arms", []) if settings[name].get("endpoint")]
    if not own:
        text = f"--key-env, --price: the run has no judge of the command line, only {', '.join(manifest['arms'])}"
        raise evaluations.UsageError(text, "what eval.json says of an arm is changed there")
    return {**manifest, "arm_settings": {**settings, **{name: {**settings[name], **given} for name in own}}}


def main_resume(evaluation: evaluations.Evaluation, options: Any) -> int:
    folder = options.resume
    manifest = own_manifest(evaluation, folder, "--resume")
    if manifest["status"] == "complete":
        say(f"{PROGRAM}: {folder}: the run is complete; nothing to resume")
        print(folder)
        say("hint: see the result with: " + commands.command(evaluation.folder, "--rescore", folder))
        return 0
    changed = changed_inputs(manifest, evaluation)
    if changed:
        hint = "undo the change, or rescore what is there; a run on new inputs is a new run"
        raise evaluations.SettingError("\n".join(changed), hint)
    arms, items = manifest_arms(manifest), run_items(manifest, evaluation)
    trust.refuse_other_judges(folder, manifest, evaluation, items, options)
    manifest = with_own_flags(manifest, options)
    arms = manifest_arms(manifest)
    with evidence.Lock(folder):
        ask = callers.callers_of(arms, evaluation, options)
        evidence.drop_leftovers(folder)
        runs, warnings = taken_up(folder, arms, evaluation, items, manifest["repeats"])
        warn(warnings + batch.outstanding(manifest, runs))
        say(f"{PROGRAM}: resuming {folder}: " + plan.counts_text(runs))
        code = ask_all(evaluation, folder, manifest, items, runs, ask, options)
    print(folder)
    return code


def taken_up(
    folder: str, arms: list[evaluations.Arm], evaluation: evaluations.Evaluation, items: fixtures.Items, repeats: int
) -> tuple[dict[str, generate.ArmRun], list[str]]:
    """The state of an incomplete run, read from its journal."""
    runs = generate.arm_runs(arms, evaluation.config, len(items), repeats)
    path = os.path.join(folder, "journal.jsonl")
    if not os.path.exists(path):
        return runs, []
    torn = evidence.drop_torn_tail(path)
    warnings = [f"{path}: an unfinished last line of {torn} bytes is dropped"] if torn else []
    places = {item_id: place for place, item_id in enumerate(items.ids)}
    return runs, warnings + generate.read_journal(path, runs, places)


def main_rescore(evaluation: evaluations.Evaluation, options: Any) -> int:
    published = rescoring.is_receipt(options.rescore)
    if options.report and published:
        text = f"--report: {options.rescore} is a receipt, and nothing is written into one"
        raise evaluations.UsageError(
            text, f"make the page with: {commands.script('report.py')} {options.rescore} --out page.html"
        )
    code = rescore(evaluation, options.rescore, options)
    if published:
        say(f"{PROGRAM}: {options.rescore} is a receipt: its figures are worked out again, its files left as they are")
    if options.report:
        say(f"report: {write_report(options.rescore)}")
    return code


def write_report(folder: str) -> str:
    """Write report.html into a scored run; returns its path. The room is only loaded for commands that make a page."""
    path: str = sys.modules["page"].write_report(folder)
    return path


def rescore(
    evaluation: evaluations.Evaluation, folder: str, options: Any, recorded: dict[str, Any] | None = None
) -> int:
    """Parse and score a run's replies again, write scored rows and summary, print the result.

    recorded: judges of verified receipts, shown in the same tables and written nowhere.
    """
    manifest = own_manifest(evaluation, folder, "--rescore")
    items, arms = run_items(manifest, evaluation), manifest_arms(manifest)
    wanted = [gates.parse_gate(text) for text in options.gate or []]
    gates.refuse_unknown_judges(wanted, manifest["arms"])
    result, problems = rescoring.rescore(evaluation, folder, manifest, items, arms, options)
    code, lines = gates.check(result, wanted)  # before the result is shown: a gate may name what it does not have
    text = tables.render(receipt_modes.with_recorded(result, recorded or {}), options)
    messages.show_form(text, options.format)
    warn(problems + drift.lines_of(folder, manifest, evaluation))
    warn(summary.flat_dimensions(items, options.by, result["by"]))
    for line in lines:
        say(f"{PROGRAM}: {line}")
    silent = [name for name, arm in result["arms"].items() if not arm["counts"]["ok"]]
    for name in silent:
        error(f"{name}: not one pair has a usable verdict; nothing was measured")
    if manifest["status"] != "complete":
        priced = any(arm.settings.get("price_usd_per_mtok") for arm in arms)
        limit = " (--max-usd is not kept: give it again)" if priced else ""
        resume = trust.resume_command(evaluation.folder, folder, arms)
        error(f"{folder}: the run is not complete", f"resume with: {resume}{limit}")
        return 3
    return 1 if problems or silent else code


def main_demo(evaluation: evaluations.Evaluation, options: Any) -> int:
    options.quiet = True
    controls_here = [name for name in gates.CONTROLS if name in evaluation.config["arms"]]
    code, folder = generate_run(evaluation, options, controls_here)
    if code:
        return code
    judges, notes, problems = receipt_modes.recorded_judges(
        evaluation, os.path.join(commands.toolkit_home(), "receipts")
    )
    code = rescore(evaluation, folder, options, judges)
    path = write_report(folder)
    warn(problems)
    if options.format == "table":
        messages.show("\n".join(["", *(f"recorded: {line}" for line in notes), f"run: {folder}", f"page: {path}", ""]))
    return code or int(bool(problems))


def main_import(evaluation: evaluations.Evaluation, options: Any) -> int:
    """Recorded replies become a complete run; every line is checked before anything is written."""
    items = selected(evaluation, options)
    places = {item_id: place for place, item_id in enumerate(items.ids)}
    lines = list(imported.read_lines(options.import_replies, places, set(evaluation.items.ids)))
    if not lines:
        raise evaluations.SettingError(f"{options.import_replies}: no reply to a pair of split {options.split!r}")
    arm = imported.recorded_arm(evaluation.config, options.arm_label, lines, options.output_mode)
    manifest = new_manifest(evaluation, options, [arm], items)
    manifest["repeats"] = max(line.get("repeat", 1) for line in lines)
    folder = evidence.new_run(options.out, evaluation.slug, time.time())
    with evidence.Lock(folder):
        write_inputs(folder, evaluation.inputs)
        evidence.write_manifest(folder, manifest)
        imported.write_run(folder, manifest, items, arm, lines, evaluation)
    say(f"{PROGRAM}: " + imported.counts_text(lines, len(items) * manifest["repeats"]))
    print(folder)
    say("hint: see the result with: " + commands.command(evaluation.folder, "--rescore", folder))
    return 0


def main_prune(evaluation: evaluations.Evaluation, options: Any) -> int:
    """Remove all complete runs but the newest few, once the answer is yes."""
    if options.prune < 0:
        raise evaluations.UsageError(f"--prune: expected 0 or more, got {options.prune}")
    top = os.path.join(options.out, evaluation.slug)
    receipted = prune.receipted_hashes(os.path.join(commands.toolkit_home(), "receipts"))
    folders, kept = prune.choose(top, evaluation.slug, options.prune, receipted)
    print("\n".join([*kept, *(f"{folder}: would be removed" for folder in folders)] or [f"{top}: holds no run"]))
    if not folders:
        return 0
    say(f"remove these {len(folders)} runs for good? Type yes:")
    if not prune.agreed(sys.stdin):
        say("nothing was removed")
        return 3
    problems = prune.remove(folders, print)
    for line in problems:
        error(line)
    return 3 if problems else 0


def main_plan(evaluation: evaluations.Evaluation, options: Any) -> int:
    default = list(evaluation.config.get("default_arms", []))
    arms = chosen_arms(evaluation, options, default or list(evaluation.config["arms"]))
    estimate = plan.estimate(evaluation, arms, selected(evaluation, options), options)
    estimate["no_receipt"] = receipt_modes.planned_obstacles(evaluation, options)
    messages.show(plan.render(estimate, options.format))
    return 0


def refuse_unknown(evaluation: evaluations.Evaluation, options: Any) -> None:
    """Refuse names of --gate and --by that this evaluation does not have, before anything is made of them.

    Raises: GateError, UsageError.
    """
    wanted = [gates.parse_gate(text) for text in options.gate or []]
    if evaluation.is_pairwise:
        gates.refuse_unknown_metrics(wanted, summary.metric_names(evaluation.config))
    unknown = summary.unknown_dimensions(evaluation.items, options.by)
    if unknown:
        known = ", ".join(summary.fields_of(evaluation.items))
        raise evaluations.UsageError(f"--by: no pair has a field {unknown[0]!r}; there are {known}")


def main(options: Any, folder: str, config: dict[str, Any], inputs: dict[str, bytes]) -> int:
    """Do what the mode says; every foreseen problem becomes one message and an exit code."""
    modes = {
        "demo": main_demo,
        "plan": main_plan,
        "generate": main_generate,
        "resume": main_resume,
        "rescore": main_rescore,
        "import_replies": main_import,
        "prune": main_prune,
        "receipt": receipt_modes.main_receipt,
        "merge": receipt_modes.main_merge,
        "verify": receipt_modes.main_verify,
        "diff": receipt_modes.main_diff,
        # rooms that are only loaded for their own mode
        "probe": lambda *given: sys.modules["probe"].main_probe(*given),
        "export_batch": lambda *given: sys.modules["batch_modes"].main_export_batch(*given),
        "import_batch": lambda *given: sys.modules["batch_modes"].main_import_batch(*given),
    }
    mode = next(name for name in modes if getattr(options, name) is not None and getattr(options, name) is not False)
    try:
        evaluation = build_evaluation(folder, config, inputs)
        refuse_unknown(evaluation, options)
        return modes[mode](evaluation, options)
    except HANDLED as problem:
        error(str(problem), getattr(problem, "hint", None))
        return getattr(problem, "exit_code", 3)
    except BrokenPipeError:
        raise  # whoever read our output has gone; that is no problem of a file
    except OSError as problem:
        error(f"{problem.filename or ''}: {problem.strerror or problem}".lstrip(": "))
        return 3
