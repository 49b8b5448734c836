"""The road past one machine: a run's missing requests as batch files, and a batch's results back into the run.

Export and import work on an ordinary incomplete run, so they mix freely with --generate and --resume: what has a reply
is not exported, what is imported is not asked again, and the run is finished by whichever comes last. A control arm
needs no batch; it is answered on export. Nothing is sent from here.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import batch
import client
import commands
import controls
import evaluation as evaluations
import evidence
import fixtures
import generate
import modes
import providers
import refusals
import rows
import transport
import trust

# === Constants ===

SHOWN_LINES = 5  # unreadable lines of a file that are named one by one


# === The run ===


def open_run(evaluation: evaluations.Evaluation, folder: str, mode: str) -> dict[str, Any]:
    """The manifest of an incomplete run of this evaluation on unchanged inputs. Raises: SettingError, EvidenceError."""
    manifest = modes.own_manifest(evaluation, folder, mode)
    if manifest["status"] == "complete":
        raise evaluations.SettingError(f"{folder}: the run is complete; every request has its reply")
    changed = modes.changed_inputs(manifest, evaluation)
    if changed:
        raise evaluations.SettingError("\n".join(changed))
    return manifest


def new_run(evaluation: evaluations.Evaluation, options: Any) -> tuple[str, dict[str, Any]]:
    """A new run's folder and manifest. Raises: SettingError before anything is written."""
    arms = modes.chosen_arms(evaluation, options, list(evaluation.config.get("default_arms", [])))
    check_payloads(evaluation, [arm for arm in arms if not arm.control], modes.selected(evaluation, options))
    manifest = modes.new_manifest(evaluation, options, arms, modes.selected(evaluation, options))
    folder = evidence.new_run(options.out, evaluation.slug, time.time())
    evidence.write_manifest(folder, manifest)
    modes.write_inputs(folder, evaluation.inputs)
    return folder, manifest


def check_payloads(evaluation: evaluations.Evaluation, arms: list[evaluations.Arm], items: fixtures.Items) -> None:
    """Refuse an arm whose dialect has no word for what the recipe asks. Raises: SettingError."""
    for arm in arms:
        payload = evaluation.recipe.request(items[0], arm.overlay(evaluation.config))
        problem = client.payload_problem(payload) or providers.build_problem(arm.settings, payload)
        if problem:
            raise evaluations.SettingError(f"arm {arm.name}: {problem}")


class Intake:
    """Puts outcomes that did not come from a live call into a run's journal."""

    def __init__(
        self,
        evaluation: evaluations.Evaluation,
        items: fixtures.Items,
        runs: dict[str, generate.ArmRun],
        journal: evidence.Journal,
    ) -> None:
        self.evaluation, self.items, self.runs, self.journal = evaluation, items, runs, journal

    def payload(self, run: generate.ArmRun, task: generate.Task) -> dict[str, Any]:
        item = self.items[task.place]
        found: dict[str, Any] = self.evaluation.recipe.request(item, run.config, swapped=task.order == "swapped")
        return found

    def put(self, run: generate.ArmRun, task: generate.Task, outcome: client.Outcome, via: str | None) -> str:
        """Keep one outcome; returns the state of its evidence."""
        item_id, recipe = self.items.ids[task.place], self.evaluation.recipe
        payload = self.payload(run, task)
        entry = generate.entry_of(recipe, providers.usage_of, run, task, item_id, outcome, payload)
        kept = entry["evidence"]
        if via:
            kept.update(retries=None, attempts_maybe_billed=None, via=via)  # nobody told
        offset = self.journal.append(evidence.row_bytes(rows.journal_line(entry)), durable=False)
        run.record(task.number, generate.STATES.index(kept["state"]), offset)
        generate.take_totals(run, kept)
        return str(kept["state"])

    def answer_controls(self) -> None:
        """Answer what control arms have not answered yet: they ask no model."""
        config = self.evaluation.config
        for run in self.runs.values():
            if run.arm.control is None:
                continue
            mode = "text" if config.get("tool_choice") is None else run.config.get("output_mode", "tool")
            for task in list(run.todo(by_item=False)):
                item = self.items[task.place]
                reply = controls.reply(run.arm.control, item, task.order, task.repeat, config.get("seed"), mode)
                stamp = evidence.utc_stamp(time.time())
                self.put(run, task, client.Outcome("reply", reply=reply, started_at=stamp, latency_ms=0), None)


# === Export ===


def lines_of(intake: Intake, run: generate.ArmRun, tag: str, url: str, options: Any) -> Iterator[tuple[int, bytes]]:
    """(task, line) of every request of one arm that has no reply."""
    for task in islice(run.todo(options.by_item), options.max_requests):
        name = batch.custom_id(tag, task)
        yield task.number, batch.request_line(run.arm.settings, name, intake.payload(run, task), url)


def refuse_existing(paths: list[str]) -> None:
    """An export never writes over a file: it may have been submitted. Raises: SettingError."""
    for path in paths:
        if os.path.exists(path):
            raise evaluations.SettingError(f"{path}: exists already; choose another name for --export-batch")
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise evaluations.SettingError(f"{path}: the folder does not exist")


def export_arm(
    intake: Intake, manifest: dict[str, Any], run: generate.ArmRun, path: str, label: str | None, options: Any
) -> list[dict[str, Any]]:
    """Write one arm's files; returns what the manifest keeps of each. Raises: SettingError."""
    settings, tag = run.arm.settings, batch.run_tag(manifest, run.arm.name)
    url = options.batch_url or batch.url_of(settings)
    lines = lines_of(intake, run, tag, url, options)
    cut = batch.Splitter(lines, batch.limit_of(settings), batch.is_anthropic(settings))
    written: list[dict[str, Any]] = []
    while not cut.done:
        place = batch.part_path(path, label, len(written) + 1)
        refuse_existing([place])
        try:
            evidence.write_atomic(place, cut.part())
        except batch.BadLine as problem:
            raise evaluations.SettingError(f"arm {run.arm.name}: {problem}") from None
        about = f"arm {run.arm.name}, model {settings['model']}"
        modes.say(f"{place}: {len(cut.indexes)} requests, {cut.size / 1e6:.1f} MB, {about}")
        entry = {"file": place, "arm": run.arm.name, "sha256": evidence.sha256_file(place)}
        entry["requests"] = len(cut.indexes)
        entry.update(exported_at=evidence.utc_stamp(time.time()), tasks=batch.ranges_of(sorted(cut.indexes)))
        written.append(entry)
    return written


def exported_arms(runs: dict[str, generate.ArmRun], options: Any) -> list[generate.ArmRun]:
    """The arms whose requests are exported: all that ask a model, or those of --arms. Raises: SettingError."""
    wanted = options.arms.split(",") if options.arms else list(runs)
    unknown = [name for name in wanted if name not in runs]
    if unknown:
        raise evaluations.UsageError(f"--arms: the run has no arm {unknown[0]!r}; it has {', '.join(runs)}")
    chosen = [runs[name] for name in wanted if not runs[name].arm.control]
    if not chosen:
        raise evaluations.SettingError("no arm that asks a model: controls need no batch")
    return chosen


def main_export_batch(evaluation: evaluations.Evaluation, options: Any) -> int:
    """A run's requests without a reply as batch files; a new run unless --run names one."""
    refuse_existing([options.export_batch])
    if options.run:
        folder, manifest = options.run, open_run(evaluation, options.run, "--export-batch FILE --run")
    else:
        modes.warn(evaluation.warnings)
        folder, manifest = new_run(evaluation, options)
    arms, items = modes.manifest_arms(manifest), modes.run_items(manifest, evaluation)
    with evidence.Lock(folder):
        runs, warnings = modes.taken_up(folder, arms, evaluation, items, manifest["repeats"])
        chosen = exported_arms(runs, options)
        modes.warn(warnings + batch.outstanding(manifest, runs))
        journal = evidence.Journal(os.path.join(folder, "journal.jsonl"))
        try:
            intake = Intake(evaluation, items, runs, journal)
            intake.answer_controls()
            written: list[dict[str, Any]] = []
            for run in chosen:
                label = run.arm.name if len(chosen) > 1 else None
                written += export_arm(intake, manifest, run, options.export_batch, label, options)
        finally:
            journal.close()
        manifest = {**manifest, "batches": manifest.get("batches", []) + written}
        evidence.write_manifest(folder, manifest)
    print(folder)
    modes.say(f"hint: bring the results back with: {again(evaluation, folder)}")
    return 0


def again(evaluation: evaluations.Evaluation, folder: str) -> str:
    return commands.command(evaluation.folder, "--import-batch RESULTS… --run", folder)


# === Import ===


class Importer:
    """Takes results files into a run, and counts what became of their lines."""

    def __init__(self, intake: Intake, manifest: dict[str, Any]) -> None:
        self.intake, self.runs = intake, intake.runs
        live = {name: run for name, run in intake.runs.items() if not run.arm.control}
        self.tags = {batch.run_tag(manifest, name): name for name in live}
        self.judges = {
            name: client.Client(run.arm.settings, None, transport=never, name=name) for name, run in live.items()
        }
        self.counts: Counter[str] = Counter()
        self.bad: list[str] = []
        self.arms: set[str] = set()

    def read(self, path: str) -> None:
        """Take in one file. Raises: EvidenceError for a file that cannot be read or is of another run."""
        before = self.counts["foreign"], sum(self.counts.values())
        for number, line in evidence.read_lines(path):
            try:
                result = batch.read_result(line)
            except batch.BadLine as problem:
                self.bad.append(f"{path}:{number}: {problem}; the line is passed over")
                continue
            found = batch.index_of(result.custom_id, self.runs, self.tags)
            if found is None:
                self.counts["foreign"] += 1
                continue
            self.counts[self.take(*found, result, f"{path}:{number}")] += 1
        foreign, total = self.counts["foreign"] - before[0], sum(self.counts.values()) - before[1]
        if foreign and foreign == total:
            raise evidence.EvidenceError(f"{path}: all {foreign} results belong to another run or evaluation")

    def take(self, run: generate.ArmRun, index: int, result: batch.Result, where: str) -> str:
        """Put one result into the run; returns what it is counted as."""
        if run.state[index] in (generate.OK, generate.INVALID):
            return "known"
        outcome = self.outcome(run.arm.name, result)
        if outcome.state == "stop":
            raise evaluations.SettingError(f"{where}: arm {run.arm.name}: {outcome.text}\n{outcome.hint}")
        if outcome.state == "failed" and run.state[index] == generate.FAILED:
            return "failed"
        self.arms.add(run.arm.name)
        return self.intake.put(run, run.task(index), outcome, rows.BATCH)

    def outcome(self, arm: str, result: batch.Result) -> client.Outcome:
        """What a result is for its request: the same as if the answer had come over the network."""
        if result.answer is not None:
            return self.judges[arm].taken(result.answer)
        return client.Outcome("failed", code=result.code, text=refusals.printable(result.text, batch.TEXT_LIMIT))

    def lines(self) -> list[str]:
        """Warnings about lines that were not used."""
        more = len(self.bad) - SHOWN_LINES
        found = self.bad[:SHOWN_LINES] + ([f"{more} more lines are no results and are passed over"] if more > 0 else [])
        if self.counts["foreign"]:
            found.append(f"{self.counts['foreign']} results belong to another run and are passed over")
        if self.counts["known"]:
            found.append(f"{self.counts['known']} results are of requests that have a reply already; the first is kept")
        return found


def never(url: str, headers: Any, body: bytes) -> transport.Answer:
    raise AssertionError("an import sends nothing")


def main_import_batch(evaluation: evaluations.Evaluation, options: Any) -> int:
    """Results of batches into the run they were exported from; finishes it when every reply is there."""
    folder, manifest = options.run, open_run(evaluation, options.run, "--import-batch RESULTS… --run")
    arms, items = modes.manifest_arms(manifest), modes.run_items(manifest, evaluation)
    with evidence.Lock(folder):
        runs, warnings = modes.taken_up(folder, arms, evaluation, items, manifest["repeats"])
        journal = evidence.Journal(os.path.join(folder, "journal.jsonl"))
        intake = Intake(evaluation, items, runs, journal)
        importer = Importer(intake, manifest)
        try:
            intake.answer_controls()
            for path in options.import_batch:
                importer.read(path)
        finally:
            journal.close()
            modes.warn(warnings + importer.lines())
            provenance = {**manifest["provenance"], **dict.fromkeys(importer.arms, "batch")}
            manifest = {**manifest, "provenance": provenance}
            evidence.write_manifest(folder, {**manifest, "totals": generate.totals(runs)})
        return settle(evaluation, folder, manifest, items, runs, importer)


def settle(
    evaluation: evaluations.Evaluation,
    folder: str,
    manifest: dict[str, Any],
    items: fixtures.Items,
    runs: dict[str, generate.ArmRun],
    importer: Importer,
) -> int:
    """Finish the run, or say what is missing and how to go on."""
    counts = importer.counts
    taken = ", ".join(f"{counts[state]} {state}" for state in ("ok", "invalid", "failed"))
    modes.say(f"{modes.PROGRAM}: imported {taken}")
    print(folder)
    missing, failed = (sum(run.progress.counts[state] for run in runs.values()) for state in (0, generate.FAILED))
    if not missing and not failed:
        generate.finish(folder, manifest, items, runs, time.time())
        modes.say("hint: see the result with: " + commands.command(evaluation.folder, "--rescore", folder))
        return 0
    modes.error(f"{folder}: {missing} replies missing, {failed} failed; the run is not complete")
    modes.say(f"hint: more results: {again(evaluation, folder)}")
    modes.say(
        f"hint: or a batch of the rest: {commands.command(evaluation.folder, '--export-batch FILE --run', folder)}"
    )
    resume = trust.resume_command(evaluation.folder, folder, [run.arm for run in runs.values()])
    modes.say(f"hint: or ask the rest directly: {resume}")
    return 3
