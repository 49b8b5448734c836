"""Ask every judge about every pair in both orders, and lose nothing that was paid for.

One journal line per reply, on disk before the next request of that worker starts. Arms run side by side, each with its
own pace and workers. Stops by itself when a budget would be passed, a server says stop, or replies fail in a row; stops
cleanly on Ctrl-C and SIGTERM. What is on disk is never asked again. A finished journal becomes raw rows in canonical
order (repeat, item, arm), however the replies arrived. Clock, sleep and callers come in as arguments.

The raw rows of a resumed run equal those of an undisturbed one that got the same replies, byte for byte, but for the
fields that tell of the calls themselves: started_at and latency_ms, and where a call had to be tried again retries and
attempts_maybe_billed; in the manifest the times and totals.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import evaluation as evaluations
import evidence
import keys
import rows

# === Constants ===

MISSING, OK, INVALID, FAILED = range(4)
STATES = ("missing", "ok", "invalid", "failed")
SAME_SILENCE = 5  # replies in a row without a verdict call before one warning says that the server ignores the mode
BREAKER = 10  # replies in a row that all failed: the endpoint is down, stop and keep the rest for a resume
BUDGET_STEP_S = 0.02  # how often a worker that waits for the budget looks again
LARGER_LIMIT = "what is on disk is kept; --resume continues with a larger limit"
EXTRA_TOKENS = 40  # what a chat template adds around a request, for the worst case of a budget
SILENT_CODES = ("no_tool_call", "no_verdict", "reasoning_only")


class JournalError(Exception):
    """A journal line that cannot be what it has to be; the text names the line."""


class NotComplete(Exception):
    """The run stopped before every reply was there; it can be resumed. code, arm: of the reply that stopped it."""

    def __init__(self, text: str, hint: str | None = None, code: str | None = None, arm: str | None = None) -> None:
        super().__init__(text)
        self.hint, self.code, self.arm = hint, code, arm


# === Records ===


class Task(NamedTuple):
    """One request: which item, in which order, in which repeat."""

    number: int
    place: int
    order: str
    repeat: int


@dataclass(frozen=True)
class Budget:
    """Limits besides the number of requests (see Meter) that a run stops before it passes; None is no limit."""

    usd: float | None = None
    minutes: float | None = None


@dataclass
class Progress:
    """What one arm has so far."""

    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    sent: int = 0
    retries: int = 0
    cost: float = 0.0
    unpriced: int = 0  # replies whose cost is unknown
    maybe_billed: int = 0  # tries without a usable reply that the server may have charged all the same
    in_flight: int = 0
    failed_in_a_row: int = 0
    silent_in_a_row: int = 0
    served: dict[str, int] = field(default_factory=dict)


class Meter:
    """Counts the requests that all arms send, further tries included, and lets no more go than allowed."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.sent, self.lock = most, 0, threading.Lock()
        self.afford: Callable[[str, int], bool] | None = None  # set by a run with a limit on money

    def take(self) -> bool:
        """Whether one more request may be sent; counts it."""
        with self.lock:
            if self.most is not None and self.sent >= self.most:
                return False
            self.sent += 1
            return True

    def permit(self, arm: str) -> Callable[[int], bool]:
        """What an arm's caller asks before a further try, with how many of the call's tries may have been billed."""
        return lambda unsure: (self.afford is None or self.afford(arm, unsure)) and self.take()


class ArmRun:
    """The tasks of one arm: which are done, and where in the journal their replies stand."""

    def __init__(self, arm: Any, config: dict[str, Any], n_items: int, repeats: int, orders: tuple[str, ...]) -> None:
        self.arm, self.config, self.n_items, self.repeats, self.orders = arm, config, n_items, repeats, orders
        total = n_items * repeats * len(orders)
        self.state = bytearray(total)
        self.offsets = array("q", [-1]) * total
        self.progress = Progress()
        self.progress.counts[MISSING] = total

    def index(self, place: int, order: str, repeat: int) -> int:
        return ((repeat - 1) * self.n_items + place) * len(self.orders) + self.orders.index(order)

    def task(self, index: int) -> Task:
        rest, order = divmod(index, len(self.orders))
        repeat, place = divmod(rest, self.n_items)
        return Task(index, place, self.orders[order], repeat + 1)

    def record(self, index: int, state: int, offset: int) -> None:
        self.progress.counts[self.state[index]] -= 1
        self.progress.counts[state] += 1
        self.state[index], self.offsets[index] = state, offset

    def todo(self, by_item: bool) -> Iterator[Task]:
        """Tasks without a reply, repeat by repeat, or item by item (which serves prompt caches)."""
        width = len(self.orders)
        indexes: Any = range(len(self.state))
        if by_item:
            span = self.n_items * width
            indexes = (r * span + k for k in range(span) for r in range(self.repeats))
        for index in indexes:
            if self.state[index] in (MISSING, FAILED):
                yield self.task(index)


# === Journal ===


def read_journal(path: str, runs: dict[str, ArmRun], places: dict[str, int]) -> list[str]:
    """Take up what a journal holds; returns warnings. Raises: JournalError naming the damaged line."""
    doubled = 0
    for number, offset, line in evidence.journal_lines(path):
        run, index, kept = journal_reply(line, f"{path}:{number}", runs, places)
        if run.state[index] in (OK, INVALID):
            doubled += 1  # the first complete reply counts, for every reader alike
            continue
        run.record(index, STATES.index(kept["state"]), offset)
        take_totals(run, kept)
    return [f"{path}: {doubled} duplicate replies; the first of each is used"] if doubled else []


def journal_reply(
    line: bytes, where: str, runs: dict[str, ArmRun], places: dict[str, int]
) -> tuple[ArmRun, int, dict[str, Any]]:
    """The arm, task and evidence of one journal line. Raises: JournalError."""
    try:
        entry = rows.entry_of(evidence.parse_json(line, where))
        run = runs[entry["arm"]]
        if type(entry["repeat"]) is not int or not 1 <= entry["repeat"] <= run.repeats:
            raise ValueError(f"repeat: expected 1 to {run.repeats}, got {entry['repeat']!r}")
        index = run.index(places[entry["item_id"]], entry["order"], entry["repeat"])
        if STATES.index(entry["evidence"]["state"]) == MISSING:
            raise ValueError(f"state: expected ok, invalid or failed, got {entry['evidence']['state']!r}")
        problems = rows.entry_problems(entry)
    except evidence.EvidenceError as error:
        raise JournalError(f"{error} (only an unfinished last line can be dropped)") from None
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"{where}: not a reply of this run: {type(error).__name__}: {error}") from None
    if problems:
        raise JournalError(f"{where}: {problems[0]}")
    return run, index, entry["evidence"]


def take_totals(run: ArmRun, kept: dict[str, Any]) -> None:
    """Count one reply's cost, retries and served model."""
    progress = run.progress
    progress.retries += kept["retries"] or 0
    progress.maybe_billed += kept["attempts_maybe_billed"] or 0
    if kept["state"] == "failed":
        return
    if kept["model"]:
        progress.served[kept["model"]] = progress.served.get(kept["model"], 0) + 1
    price = rows.price_for(run.arm.settings, run.config, kept)
    cost = 0.0 if run.arm.control else rows.cost_usd(kept["usage"], price)
    if cost is None:
        progress.unpriced += 1
    else:
        progress.cost += cost


def entry_of(
    recipe: Any,
    usage_of: Callable[[Any], Any],
    run: ArmRun,
    task: Task,
    item_id: str,
    outcome: Any,
    payload: dict[str, Any],
) -> dict[str, Any]:
    """The journal entry of one outcome, whichever road the reply came by."""
    usage = usage_of(outcome.reply) if outcome.state == "reply" else None
    mode = run.config.get("output_mode", "tool")
    verdict, parts = None, rows.reply_parts(outcome.reply)
    if outcome.state == "reply":
        verdict = recipe.parse(rows.reply_of(parts), mode)
    kept = rows.evidence_of(outcome, parts, usage, verdict)
    if kept["hint"] is None and rows.prompt_was_cut(payload, kept["usage"]):
        kept["hint"] = "prompt_maybe_cut"
    return rows.journal_entry(item_id, run.arm.name, task.repeat, task.order, verdict, kept)


# === The run ===


class Generation:
    """All arms of a run at work: tasks out, replies into the journal."""

    def __init__(
        self,
        evaluation: Any,
        items: Any,
        runs: dict[str, ArmRun],
        callers: dict[str, Callable[..., Any]],
        journal: evidence.Journal,
        usage_of: Callable[[Any], Any],
        clock: Callable[[], float],
        stop: threading.Event,
        budget: Budget,
        meter: Meter | None = None,
    ) -> None:
        self.evaluation, self.items, self.runs, self.callers = evaluation, items, runs, callers
        self.journal, self.usage_of, self.clock, self.stop = journal, usage_of, clock, stop
        self.budget, self.meter = budget, meter or Meter()
        self.unsure: dict[int, float] = {}  # by worker: the most that the tries of its call so far may have cost
        if budget.usd is not None:
            self.meter.afford = self.affordable
        self.lock = threading.Lock()
        self.started = clock()
        self.done_before = sum(len(run.state) - run.progress.counts[MISSING] for run in runs.values())
        self.problem: NotComplete | None = None
        self.bug: BaseException | None = None
        self.warnings: list[str] = []
        self.mode_advice = "try --output-mode json_schema or text (--probe tells which work)"

    # --- stopping ---

    def halt(self, text: str, hint: str | None = None, code: str | None = None, arm: str | None = None) -> None:
        """Stop all arms; the first cause is the one that is told."""
        with self.lock:
            if self.problem is None:
                self.problem = NotComplete(text, hint, code, arm)
        self.stop.set()

    def budget_left(self, worst_usd: float) -> str | None:
        """Why the next request must not be sent ('' = not now, but perhaps later), or None. Called with the lock."""
        limit, late = self.budget, self.out_of_time()
        if late:
            return late
        if limit.usd is not None:
            spent, unknown = self.spent(), [unknown_tries(run) for run in self.runs.values()]
            if spent + worst_usd > limit.usd:
                costs = f"spent {spent:.4f}, the next costs up to {worst_usd:.4f}"
                if any(unknown):
                    costs += f"; {sum(unknown)} tries of unknown cost are counted at the most they can cost"
                return f"--max-usd {limit.usd:g} would be passed ({costs})"
            if spent + worst_usd + self.reserved() > limit.usd:
                return ""
        return None if self.meter.take() else f"--max-requests {self.meter.most} reached"

    def spent(self) -> float:
        """What all replies have cost, tries of unknown cost at the most they can have. Called with the lock."""
        return sum(run.progress.cost + unknown_tries(run) * worst_cost(run) for run in self.runs.values())

    def reserved(self) -> float:
        """What is on its way may cost, and what the calls under way may have cost so far. Called with the lock."""
        on_the_way = sum(run.progress.in_flight * worst_cost(run) for run in self.runs.values())
        return on_the_way + sum(self.unsure.values())

    def affordable(self, arm: str, unsure: int) -> bool:
        """Whether a worker's call may try again. unsure: tries of the call that may have been billed."""
        with self.lock:
            self.unsure[threading.get_ident()] = unsure * worst_cost(self.runs[arm])
            return self.budget.usd is None or self.spent() + self.reserved() <= self.budget.usd

    def out_of_time(self) -> str | None:
        """Why the run has to end by now, or None."""
        minutes = self.budget.minutes
        late = minutes is not None and (self.clock() - self.started) / 60 >= minutes
        return f"--max-minutes {minutes:g} reached" if late else None

    def watch_time(self) -> None:
        """End waits between tries too once the time is up; requests in flight may still answer."""
        late = self.out_of_time()
        if late and not self.stop.is_set():
            self.halt(late, LARGER_LIMIT)

    def take_warnings(self) -> list[str]:
        """The warnings since the last call."""
        with self.lock:
            found, self.warnings = self.warnings, []
        return found

    # --- one task ---

    def take(self, run: ArmRun, tasks: Iterator[Task]) -> Task | None:
        """The next task of an arm, unless the run has to stop."""
        with self.lock:
            task = None if self.stop.is_set() else next(tasks, None)
        while task is not None and not self.stop.is_set():
            with self.lock:
                why = self.budget_left(worst_cost(run))
                if why is None:
                    run.progress.sent += 1
                    run.progress.in_flight += 1
                    return task
            if why:
                self.halt(why, LARGER_LIMIT)
            self.stop.wait(BUDGET_STEP_S)  # replies in flight may turn out cheaper than the worst case
        return None

    def judge(self, run: ArmRun, task: Task) -> None:
        """Send one request, read the verdict, put both on disk."""
        item = self.items[task.place]
        config = run.config
        payload = self.evaluation.recipe.request(item, config, swapped=task.order == "swapped")
        outcome = self.callers[run.arm.name](payload, item, task.order, task.repeat)
        if outcome.state == "cancelled":
            return
        if outcome.state == "stop":
            self.halt(f"arm {run.arm.name}: {outcome.text}", outcome.hint, outcome.code, run.arm.name)
            return
        entry = self.entry(run, task, item["item_id"], outcome, payload)
        line, kept = evidence.row_bytes(rows.journal_line(entry)), entry["evidence"]
        offset = self.journal.append(line, durable=not run.arm.control)
        with self.lock:
            self.warnings += content_warnings(run, item["item_id"], kept, line)
            run.record(task.number, STATES.index(kept["state"]), offset)
            take_totals(run, kept)
        self.watch(run, kept)

    def entry(self, run: ArmRun, task: Task, item_id: str, outcome: Any, payload: dict[str, Any]) -> dict[str, Any]:
        """The journal entry of one outcome."""
        return entry_of(self.evaluation.recipe, self.usage_of, run, task, item_id, outcome, payload)

    def watch(self, run: ArmRun, kept: dict[str, Any]) -> None:
        """Warn once when a server ignores the output mode; stop when everything fails."""
        progress, name = run.progress, run.arm.name
        with self.lock:
            failed = kept["state"] == "failed"
            progress.failed_in_a_row = progress.failed_in_a_row + 1 if failed else 0
            silent = kept["state"] == "invalid" and kept["code"] in SILENT_CODES
            progress.silent_in_a_row = progress.silent_in_a_row + 1 if silent else 0
            if progress.silent_in_a_row == SAME_SILENCE:
                self.warnings.append(
                    f"arm {name}: {SAME_SILENCE} replies in a row without a verdict ({kept['code']}): the server seems "
                    f"to ignore the output mode; {self.mode_advice}"
                )
        if progress.failed_in_a_row >= BREAKER:
            text = (kept["error"] or {}).get("text")
            self.halt(f"arm {name}: the last {BREAKER} requests all failed; the last one: {text}")

    # --- workers ---

    def work(self, run: ArmRun, tasks: Iterator[Task]) -> None:
        """One worker: task after task until none is left or the run stops."""
        while True:
            task = self.take(run, tasks)
            if task is None:
                return
            try:
                self.judge(run, task)
            except OSError as error:
                self.halt(f"{self.journal.path}: cannot be written: {error.strerror or error}")
            except BaseException as error:
                self.bug = self.bug or error
                self.halt(f"arm {run.arm.name}: {type(error).__name__}")
            finally:
                with self.lock:
                    run.progress.in_flight -= 1
                    self.unsure.pop(threading.get_ident(), None)

    def start(self, workers: dict[str, int], by_item: bool) -> list[threading.Thread]:
        """Start every arm's workers; they are daemons, so that a second Ctrl-C can end the process at once."""
        threads = []
        for name, run in self.runs.items():
            tasks = run.todo(by_item)
            for number in range(workers[name]):
                thread = threading.Thread(target=self.work, args=(run, tasks), name=f"{name}-{number}", daemon=True)
                thread.start()
                threads.append(thread)
        return threads


def content_warnings(run: ArmRun, item_id: str, kept: dict[str, Any], line: bytes) -> list[str]:
    """What one reply brings that people should hear of while the run goes on: another model, somebody's token.

    line: the reply's journal line. Called before the reply is counted.
    """
    if run.arm.control:
        return []
    name, found = run.arm.name, served_warning(run, kept["model"])
    kinds = keys.token_warnings(line.decode("utf-8"))
    if kinds:
        found.append(f"arm {name}: item {item_id}: the reply holds what looks like a token ({', '.join(kinds)})")
    return found


def served_warning(run: ArmRun, served: str | None) -> list[str]:
    """A line the first time an arm is served by a model of another name than asked for, or than before."""
    before, asked = run.progress.served, run.arm.settings.get("model")
    if served is None or served in before:
        return []
    if before:
        return [f"arm {run.arm.name}: now served by {served!r}, before by {', '.join(map(repr, before))}"]
    named = served != asked and "response_model" not in run.arm.settings
    return [f"arm {run.arm.name}: asked for {asked!r}, served by {served!r}"] if named else []


def unknown_tries(run: ArmRun) -> int:
    """Tries that may have been billed, and replies that do not say what they cost."""
    return run.progress.maybe_billed + run.progress.unpriced


def worst_cost(run: ArmRun) -> float:
    """The most one request of an arm can cost: one token a byte in, the output limit out. 0 without a price."""
    price = run.arm.settings.get("price_usd_per_mtok")
    if price is None or run.arm.control:
        return 0.0
    longest = run.config.get("_longest_request_bytes", 0) + EXTRA_TOKENS
    return float(longest * price["input"] + run.config["max_tokens"] * price["output"]) / 1e6


def longest_request(evaluation: Any, items: Any, config: dict[str, Any]) -> int:
    """Bytes of the largest request of a selection."""
    longest = 0
    for item in items:
        for payload in evaluation.recipe.plan_requests(item, config):
            longest = max(longest, len(evidence.encode(json.dumps(payload, ensure_ascii=False))))
    return longest


# === Raw rows ===


def entry_at(stream: Any, offset: int) -> dict[str, Any]:
    stream.seek(offset)
    return rows.entry_of(json.loads(stream.readline()))


def raw_rows(journal: str, items: Any, runs: dict[str, ArmRun], partial: bool = False) -> Iterator[dict[str, Any]]:
    """Rows in canonical order: repeat, item, arm. partial: leave out rows of which an order is missing."""
    repeats = max(run.repeats for run in runs.values())
    with evidence.open_file(journal) as stream:
        for repeat in range(1, repeats + 1):
            for place, item_id in enumerate(items.ids):
                for name, run in runs.items():
                    offsets = {order: run.offsets[run.index(place, order, repeat)] for order in run.orders}
                    if min(offsets.values()) < 0:
                        if partial:
                            continue
                        raise JournalError(f"{journal}: no reply for {item_id} {name} repeat {repeat}")
                    entries = {order: entry_at(stream, offset) for order, offset in offsets.items()}
                    yield rows.raw_row(run.arm.settings, run.config, name, item_id, repeat, entries)


def totals(runs: dict[str, ArmRun]) -> dict[str, Any]:
    """What the manifest says of each arm's replies."""
    found = {}
    for name, run in runs.items():
        progress = run.progress
        counts = dict(zip(STATES, progress.counts))
        found[name] = {
            **{state: counts[state] for state in ("ok", "invalid", "failed", "missing")},
            "retries": progress.retries,
            "attempts_maybe_billed": progress.maybe_billed,
            "cost_usd": round(progress.cost, 6),
            "replies_without_cost": progress.unpriced,
            "served_models": dict(sorted(progress.served.items())),
        }
    return found


def finish(folder: str, manifest: dict[str, Any], items: Any, runs: dict[str, ArmRun], now: float) -> dict[str, Any]:
    """Turn the journal of a run with every reply into raw rows; the journal goes only after they are in place."""
    journal = os.path.join(folder, "journal.jsonl")
    raw = os.path.join(folder, "raw.jsonl.gz")
    digest = evidence.write_rows(raw, raw_rows(journal, items, runs, partial=manifest.get("sparse", False)))
    manifest = {
        **manifest,
        "status": "complete",
        "ended_at": evidence.utc_stamp(now),
        "raw_sha256": evidence.sha256_file(raw),
        "raw_rows_sha256": digest,
        "totals": totals(runs),
    }
    evidence.write_manifest(folder, manifest)
    os.unlink(journal)
    return manifest


def arm_runs(arms: list[Any], config: dict[str, Any], n_items: int, repeats: int) -> dict[str, ArmRun]:
    """The task tables of all arms, nothing done yet."""
    orders = evaluations.ORDERS
    return {arm.name: ArmRun(arm, arm.overlay(config), n_items, repeats, orders) for arm in arms}
