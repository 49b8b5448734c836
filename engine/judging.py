"""The work of grade, compare and answer: who is asked, what is on disk already, and asking for what is missing.

Beside the file a command writes (`--out FILE`) lies the folder FILE.work/ with `manifest.json` (what decides the
requests), `journal.jsonl` (every reply, on disk as it arrives) and, while a process works there, `lock`. The same
command again asks only what is missing or failed; a command that would ask for something else is refused, so nothing
that was paid for is mixed or lost. Network only for judges that are no controls.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import calling
import client
import controls
import ending
import evaluation as evaluations
import evidence
import generate
import keys
import messages
import providers
import results
import rows

# === Constants ===

WORK_FORMAT = "judge-work-v1"
OVERWRITE_HINT = "choose another --out, or put the earlier work aside with --overwrite"
DEFAULT_BASE_URL = "http://127.0.0.1:8080/v1"
CONTROL_PREFIX = "control-"
KEY_FLAGS = ("api_key", "key_env")  # what says where the key is
ALLOWED = client.RECIPE_KEYS | client.SAMPLING_KEYS
OFFLINE = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile")
HANDLED = (evidence.EvidenceError, evaluations.SettingError, generate.JournalError, generate.NotComplete)
# Which flag goes with a word in a server's refusal, first match first.
FLAGS = (
    (r"max_completion_tokens", "try: --rename max_tokens=max_completion_tokens"),
    (r"max_tokens", "try another --max-tokens, or: --rename max_tokens=max_completion_tokens"),
    (r"\btemperature\b", "this server takes no such temperature: --temperature none"),
    (r"\bseed\b", "this server takes no seed: --omit seed"),
    (r"\bstrict\b", "this server takes no `strict`: --no-strict"),
    (r"\b(minimum|maximum|enum)\b", "this server takes no such bounds in a schema: --score-range none"),
    (r"\breasoning_effort\b", "leave out --reasoning-effort"),
    (r"response_format|json_schema|json_object|grammar", "try another --output-mode: tool, json_object or text"),
    (r"tool_choice|\btools?\b", "try another --output-mode: json_schema, required or text"),
)


# === Network lock ===


def lock_offline() -> None:
    """From here on no connection, name look-up or child process: the interpreter itself refuses, whoever asks."""

    def refuse(event: str, _: Any) -> None:
        if event.startswith(OFFLINE):
            raise PermissionError(f"this command is offline: {event} refused")

    sys.addaudithook(refuse)


# === Records ===


class Work(list[dict[str, Any]]):
    """The items a command asks about, each with its own `item_id`."""

    @property
    def ids(self) -> list[str]:
        return [item["item_id"] for item in self]


@dataclass(frozen=True)
class Job:
    """What a command asks: `recipe` is one of grading's classes, `inputs` the sha256 of every file it read.

    files: their names.
    """

    out: str
    recipe: Any
    items: Work
    config: dict[str, Any]
    inputs: dict[str, str]
    files: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return self.out + ".work"

    @property
    def journal(self) -> str:
        return os.path.join(self.folder, "journal.jsonl")


# === Judges ===


def one_of(given: list[str] | None, place: int, otherwise: str | None) -> str | None:
    """The place-th of some values, or the one value meant for all."""
    if not given:
        return otherwise
    return given[place] if len(given) > 1 else given[0]


def judges_of(models: list[str], options: Any) -> list[evaluations.Arm]:
    """The judges named on the command line, checked. Raises: SettingError."""
    arms, problems = [], []
    for place, model in enumerate(models):
        if model.startswith(CONTROL_PREFIX):
            arms.append(evaluations.Arm(model, {"control": control_kind(model)}))
            continue
        settings: dict[str, Any] = {"endpoint": one_of(options.base_url, place, DEFAULT_BASE_URL), "model": model}
        for key, flag in (("format", options.api_format), ("key_env", options.key_env)):
            if flag:
                settings[key] = one_of(flag, place, None)
        if options.price:
            settings["price_usd_per_mtok"] = calling.price_of(str(one_of(options.price, place, None)))
        settings.update(calling.quirks_of(options))
        problems += providers.arm_problems(model, settings)
        arms.append(evaluations.Arm(model, settings, frozen=False))
    if problems:
        raise evaluations.SettingError("\n".join(problems))
    return arms


def control_kind(name: str) -> str:
    """'longer' of 'control-longer'. Raises: SettingError."""
    kind = name.removeprefix(CONTROL_PREFIX)
    if kind not in controls.KINDS:
        known = ", ".join(CONTROL_PREFIX + each for each in controls.KINDS)
        raise evaluations.SettingError(f"unknown control judge {name!r}; there are {known}")
    return kind


def request_warnings(arms: list[evaluations.Arm], config: dict[str, Any]) -> list[str]:
    """What is set and will not be sent, because the dialect of a judge's endpoint has no such field."""
    lines = []
    for arm in arms:
        dialect = arm.settings.get("format", "openai")
        unsent = {"anthropic": ("seed",), "responses": ("seed",)}.get(dialect, ())
        named = [key for key in unsent if config.get(key) is not None and key not in arm.settings.get("omit", [])]
        lines += [f"{arm.name}: {key} is not sent: the {dialect} format has none" for key in named]
    return lines


# === Callers ===


def control_caller(job: Job, kind: str, clock: Callable[[], float]) -> Callable[..., client.Outcome]:
    """A caller that answers as a control judge does, without a network."""
    mode, seed = job.config["output_mode"], job.config.get("seed")

    def call(payload: dict[str, Any], item: dict[str, Any], order: str, repeat: int) -> client.Outcome:
        reply = job.recipe.control_reply(kind, item, order, seed, mode)
        return client.Outcome("reply", reply=reply, started_at=evidence.utc_stamp(clock()), latency_ms=0)

    return call


def callers_of(
    job: Job,
    arms: list[evaluations.Arm],
    options: Any,
    stop: threading.Event,
    meter: generate.Meter,
    voice: messages.Voice,
) -> dict[str, Callable[..., client.Outcome]]:
    """One caller per judge; keys are read and checked here, before anything is written. Raises: SettingError."""
    problems = evaluations.missing_keys(arms, dict(os.environ))
    if problems:
        raise generate.NotComplete("\n".join(problems), "export the variable, or name another with --key-env")
    if options.api_key:
        trouble = client.key_problem(options.api_key)
        if trouble:
            raise evaluations.SettingError(f"--api-key: {trouble}")
        voice.warn(["--api-key: other users of this machine can read it in the process list; --key-env VAR is safe"])
    found = {arm.name: options.api_key or calling.key_of(arm, os.environ) for arm in arms if not arm.control}
    calling.refuse_keys_in_settings(arms, found)
    refuse_keys_in(job, options, found)
    callers = {}
    for arm in arms:
        if arm.control:
            callers[arm.name] = control_caller(job, arm.control, time.time)
        else:
            permit = meter.permit(arm.name)
            callers[arm.name] = calling.live_caller(arm, options, stop, found[arm.name], ALLOWED, permit)
    return callers


def refuse_keys_in(job: Job, options: Any, found: dict[str, str | None]) -> None:
    """Refuse flags and files that hold a key in use: they would be sent, and stored with the result.

    Raises: SettingError naming the flag, or the file and its line, never showing the key.
    """
    for judge, key in found.items():
        scrub = keys.Scrubber(key)
        if not scrub.secret:
            continue
        for name, value in vars(options).items():
            given = list(value) if isinstance(value, (list, tuple)) else [value]
            if name not in KEY_FLAGS and scrub.holds(given):
                flag = "--" + name.replace("_", "-")
                raise evaluations.SettingError(f"{flag}: holds the API key of {judge}; take it out first")
        for path in job.files:
            line = scrub.line_in(results.read_bytes(path))
            if line is not None:
                raise evaluations.SettingError(f"{path}:{line}: holds the API key of {judge}; take it out first")
        if scrub.holds(list(job.items)):  # a spelling that only the parsed texts have
            where = " or ".join(job.files)
            raise evaluations.SettingError(f"{where}: holds the API key of {judge}; take it out first")


# === What is on disk ===


def decides(job: Job, arms: list[evaluations.Arm]) -> dict[str, Any]:
    """Everything that decides the requests: equal here means that the replies on disk answer this very command."""
    return {
        "command": job.recipe.name,
        "inputs": job.inputs,
        "config": job.config,
        "prompt_sha256": evidence.sha256(job.recipe.prompt.encode("utf-8")),
        "judges": {arm.name: arm.identity for arm in arms},
        "items": len(job.items),
    }


def open_work(job: Job, arms: list[evaluations.Arm], overwrite: bool) -> dict[str, Any]:
    """The manifest of the work beside --out, taken up or begun. Raises: FileProblem when it belongs to other work."""
    wanted = decides(job, arms)
    path = os.path.join(job.folder, "manifest.json")
    paid = os.path.exists(job.journal) and os.path.getsize(job.journal) > 0
    if os.path.exists(path) and not overwrite:
        manifest = evidence.read_object(path)
        if manifest.get("format") == WORK_FORMAT and manifest.get("decides") == wanted:
            refuse_edited(job, manifest)
            return manifest
        if paid:
            raise results.FileProblem(difference(job, manifest.get("decides") or {}, wanted), OVERWRITE_HINT)
    if os.path.exists(job.out) and not overwrite:
        raise results.FileProblem(f"{job.out}: exists and was not made by this command", OVERWRITE_HINT)
    if paid or os.path.exists(job.out):
        put_aside(job)
    os.makedirs(job.folder, exist_ok=True)
    manifest = {"format": WORK_FORMAT, "decides": wanted, "started_at": evidence.utc_stamp(time.time()), "seconds": 0.0}
    evidence.write_manifest(job.folder, manifest)
    return manifest


def refuse_edited(job: Job, manifest: dict[str, Any]) -> None:
    """Raises: FileProblem when the file under --out is not what this command wrote: its edits would be lost."""
    written = manifest.get("out_sha256")
    known = written if isinstance(written, list) else []
    if known and os.path.exists(job.out) and evidence.sha256_file(job.out) not in known:
        hint = "move it away: the same command makes it again from the replies that are kept, and asks nothing"
        raise results.FileProblem(f"{job.out}: was changed since this command wrote it", hint)


def write_out(out: str, data: bytes) -> None:
    """Write the file under --out, after a note beside its replies of what is written.

    What stood there before stays noted too: this process may end between the two.
    """
    folder = f"{out}.work"
    manifest = evidence.read_object(os.path.join(folder, "manifest.json"))
    before = manifest.get("out_sha256")
    known = [*(before[-1:] if isinstance(before, list) else []), evidence.sha256(data)]
    evidence.write_manifest(folder, {**manifest, "out_sha256": list(dict.fromkeys(known))})
    evidence.write_atomic(out, data)


def difference(job: Job, before: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Which part of the earlier command differs."""
    changed = [key for key in wanted if before.get(key) != wanted[key]]
    return f"{job.folder}: holds replies to another command (different: {', '.join(changed) or 'format'})"


def put_aside(job: Job) -> None:
    """Rename what lies under --out and its folder to the first free FILE.1, FILE.2, …; nothing is deleted.

    Raises: InUse when a process works there.
    """
    if os.path.isdir(job.folder):
        with evidence.Lock(job.folder):
            pass
    number = 1
    while any(os.path.exists(f"{job.out}.{number}{tail}") for tail in ("", ".work")):
        number += 1
    for tail in ("", ".work"):
        if os.path.exists(job.out + tail):
            os.rename(job.out + tail, f"{job.out}.{number}{tail}")


def taken_up(job: Job, runs: dict[str, generate.ArmRun]) -> list[str]:
    """Read the journal into the task tables; returns warnings."""
    if not os.path.exists(job.journal):
        return []
    torn = evidence.drop_torn_tail(job.journal)
    warnings = [f"{job.journal}: an unfinished last line of {torn} bytes is dropped"] if torn else []
    places = {item_id: place for place, item_id in enumerate(job.items.ids)}
    return warnings + generate.read_journal(job.journal, runs, places)


# === Asking ===


def ask(job: Job, arms: list[evaluations.Arm], options: Any, voice: messages.Voice) -> tuple[int, dict[str, Any]]:
    """Ask for everything that is missing. Returns the exit code and {"runs", "manifest"}.

    Raises: one of HANDLED, before anything is sent or written.
    """
    if all(arm.control for arm in arms):
        lock_offline()
        options.quiet = True  # done before a line could be read
    stop, meter = threading.Event(), generate.Meter(options.max_requests)
    callers = callers_of(job, arms, options, stop, meter, voice)
    voice.warn(request_warnings(arms, job.config))
    parent = os.path.dirname(os.path.abspath(job.out))
    if not os.path.isdir(parent):
        raise results.FileProblem(f"{parent}: no such folder (for --out)")
    manifest = open_work(job, arms, options.overwrite)
    with evidence.Lock(job.folder):
        runs = {
            arm.name: generate.ArmRun(arm, arm.overlay(job.config), len(job.items), 1, job.recipe.orders)
            for arm in arms
        }
        voice.warn(taken_up(job, runs))
        code = work_off(job, runs, callers, manifest, options, stop, meter, voice)
    return code, {"runs": runs, "manifest": manifest}


def work_off(
    job: Job,
    runs: dict[str, generate.ArmRun],
    callers: dict[str, Any],
    manifest: dict[str, Any],
    options: Any,
    stop: threading.Event,
    meter: generate.Meter,
    voice: messages.Voice,
) -> int:
    """Send what is missing; the exit code says whether every reply is there."""
    if not open_replies(runs):
        return 0
    received: list[int] = []
    budget = generate.Budget(options.max_usd, options.max_minutes)
    if budget.usd is not None:
        for run in runs.values():
            run.config["_longest_request_bytes"] = generate.longest_request(job, job.items, run.config)
    journal = evidence.Journal(job.journal)
    work = generate.Generation(
        job, job.items, runs, callers, journal, providers.usage_of, time.monotonic, stop, budget, meter
    )
    work.mode_advice = "try another --output-mode: json_schema, json_object, tool or text"
    began = time.monotonic()
    with calling.interruptible(stop, received, voice):
        workers = calling.workers_of([run.arm for run in runs.values()], options)
        calling.wait(work.start(workers, False), work, options, received, voice)
        with contextlib.suppress(OSError):
            journal.close()
    if work.bug is not None:
        raise work.bug
    manifest["seconds"] = round(manifest["seconds"] + time.monotonic() - began, 1)
    evidence.write_manifest(job.folder, manifest)
    return settle(job, runs, work, bool(received), voice, options.overwrite)


def open_replies(runs: dict[str, generate.ArmRun]) -> int:
    """Replies that are missing or failed."""
    counts = [run.progress.counts for run in runs.values()]
    return sum(each[generate.MISSING] + each[generate.FAILED] for each in counts)


def settle(
    job: Job,
    runs: dict[str, generate.ArmRun],
    work: generate.Generation,
    interrupted: bool,
    voice: messages.Voice,
    overwrite: bool,
) -> int:
    """Say what is missing and how to go on. overwrite: the command began anew, and given again would do so again."""
    left = open_replies(runs)
    if not left:
        return 0
    total = sum(len(run.state) for run in runs.values())
    failed = sum(run.progress.counts[generate.FAILED] for run in runs.values())
    if work.problem is not None:
        voice.error(str(work.problem), flag_hint(str(work.problem), work.problem.hint))
    why = ending.failed_text(*ending.failures(job.journal, runs))
    voice.error(f"{job.folder}: {total - left} of {total} replies on disk, {failed} failed{why}; not complete")
    usd = ending.more_usd(work.problem, runs, work.budget.usd)
    more = " without --overwrite" * overwrite + (f" with --max-usd {usd}" if usd is not None else "")
    messages.say(f"hint: the same command again{more} asks only what is missing")
    return 130 if interrupted else 3


def flag_hint(text: str, hint: str | None) -> str | None:
    """The client's hint in terms of this program's flags: it speaks of entries of eval.json, which is not read here."""
    hint = hint or ""
    if "arm" not in hint.split() and not re.search(r'"(omit|rename|output_mode|key_env|strict|extra_body)"', hint):
        return hint.replace("--resume continues with", "the same command continues with") or None
    if '"key_env"' in hint:
        return "name the variable that holds the key: --key-env VAR"
    for pattern, flag in FLAGS:
        if re.search(pattern, text.partition(": ")[2] or text):
            return flag
    named = re.search(r'"omit": \["(\w+)"\]', hint)
    if named:
        return f"leave it out: --omit {named.group(1)}"
    if "max_completion_tokens" in hint:
        return FLAGS[0][1]
    return "see --omit, --rename, --extra-body, --no-strict, --score-range and --output-mode"


# === Verdicts ===


def verdicts(job: Job, run: generate.ArmRun) -> dict[str, dict[str, dict[str, Any]]]:
    """item_id -> order -> what the kept reply says, parsed again: {"state", "choice", "reason", "code", …}.

    A reply that failed has state 'failed'; one that was never asked for is left out.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {item_id: {} for item_id in job.items.ids}
    if not os.path.exists(job.journal):
        return found
    mode = run.config["output_mode"]
    with evidence.open_file(job.journal) as stream:
        for index, offset in enumerate(run.offsets):
            if offset >= 0:
                task = run.task(index)
                kept = generate.entry_at(stream, offset)["evidence"]
                found[job.items[task.place]["item_id"]][task.order] = said(job, kept, mode)
    return found


def said(job: Job, kept: dict[str, Any], mode: str) -> dict[str, Any]:
    """The verdict of one kept reply; its state and code alone when there was no reply to read."""
    if kept["state"] == "failed" or kept.get("error"):
        text = (kept.get("error") or {}).get("text")
        return {"state": kept["state"], "choice": "invalid", "reason": text or kept["code"], "code": kept["code"]}
    found: dict[str, Any] = job.recipe.parse(rows.reply_of(kept), mode)
    return {**found, "model": kept["model"], "usage": kept["usage"], "latency_ms": kept["latency_ms"]}
