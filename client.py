"""One checked request to one judge's endpoint, and its outcome as a value.

    judge = Client(arm, key, pace=Pace(60, clock=time.monotonic))
    outcome = judge.call(payload)          # Outcome(state="reply", reply={...}, ...)

`payload` is a request in chat-completions words without `model`, as recipe.request builds it; `arm` is an entry of
`arms` in eval.json. One Client serves all worker threads of an arm. It paces, retries within bounds, refuses
redirects, keeps the key out of every text, and never raises for anything a server or a network does: an outcome's
state is `reply`, `invalid` (this row has no verdict), `failed` (no reply, ask again later), `stop` (nothing will
work until something is changed; `text` and `hint` say what) or `cancelled` (nothing was sent).

Reads no file and no environment variable, except that proxies and SSL_CERT_FILE are honoured as Python's library
does. Beside it must lie engine/keys.py, pacing.py, providers.py,
refusals.py, http_reply.py and transport.py.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

if __name__ == "__main__":  # run by itself: what it is for, before the rooms it needs are missed
    print((__doc__ or "").partition("\n\n")[0])
    raise SystemExit

import keys
import pacing
import providers
import refusals
import transport as wires

# === Constants ===

RECIPE_KEYS = providers.RECIPE_KEYS
SAMPLING_KEYS = providers.SAMPLING_KEYS  # sent only by callers that add them to `allowed`
MESSAGE_KEYS = frozenset(("role", "content", "name"))
ROLES = ("system", "developer", "user", "assistant")

KEPT_HEADERS = ("request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry", "cf-ray", "server")
KEPT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")

MAX_SCRUBBED = 20_000  # characters; far more than are ever shown of a text
CHARS_PER_TOKEN = 4  # a rough count for the token pace; the tokens really used replace it afterwards
GATE_PATIENCE_S = 60.0
GATE_STEP_S = 0.05

Timeouts = wires.Timeouts
Pace = pacing.Pace
key_problem = keys.key_problem
token_warnings = keys.token_warnings
arm_problems = providers.arm_problems
usage_of = providers.usage_of


# === Records ===


class Outcome(NamedTuple):
    """What became of one call.

    state: reply | invalid | failed | stop | cancelled. reply: chat-completions shape, for state reply only.
    code: content_filter | context_length (invalid); timeout | connection | http_<n> | bad_body | … (failed, stop).
    text: the provider's scrubbed words; for a reply after retries, why the last try before it failed; else ''.
    retries: attempts after the first. started_at: UTC of the last attempt. latency_ms: of the last attempt alone.
    maybe_billed: attempts without a usable reply that the server may have carried out and charged all the same.
    headers_seen: request ids and rate limits of the last answer, scrubbed.
    """

    state: str
    reply: dict[str, Any] | None = None
    code: str | None = None
    text: str = ""
    hint: str = ""
    http_status: int | None = None
    retries: int = 0
    started_at: str | None = None
    latency_ms: int | None = None
    maybe_billed: int = 0
    headers_seen: Mapping[str, str] = {}


class Limits(NamedTuple):
    """Bounds of one call's retries."""

    max_retries: int = 4  # after a 5xx, 408, 409 or a connection that was never made
    max_slow: int = 8  # after a 429: nothing was billed, and the wait is shared
    max_unsure: int = 2  # after a try that may have been billed
    base_s: float = 1.0  # first wait, doubled each time
    cap_s: float = 60.0
    ceiling_s: float = 120.0  # a longer Retry-After stops the run instead of sleeping
    total_s: float = 600.0  # no new attempt starts later than this after the first one


DEFAULT_LIMITS = Limits()


class Stop(Protocol):
    """A threading.Event, or what looks like one."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Random(Protocol):
    """A random.Random, or what looks like one."""

    def random(self) -> float: ...


class Step(NamedTuple):
    """What one attempt led to. kind: done, or retry | slow with `outcome` for the case that it is given up."""

    kind: str
    outcome: Outcome
    asked_s: float | None = None  # how long the server asks to wait
    unsure: bool = False  # it may have been carried out and billed


class Tally:
    """Counts over the attempts of one call."""

    def __init__(self, first_at: float) -> None:
        self.first_at = first_at
        self.retries = 0
        self.slow = 0
        self.unsure = 0
        self.resent = 0  # on a new connection at once, since a kept one was closed: no retry of ours, but maybe billed
        self.last: Outcome | None = None


# === Checking a payload ===


def payload_problem(payload: Any, allowed: frozenset[str] = RECIPE_KEYS) -> str | None:
    """What keeps a payload from being sent, None when nothing does: unknown fields, or anything but text."""
    if not isinstance(payload, dict):
        return f"request: expected an object, got {type(payload).__name__}"
    unknown = [key for key in payload if key not in allowed]
    if unknown:
        return f"request: field {unknown[0]!r} is not on the list of fields that may be sent"
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return "request: field 'messages' must be a non-empty list"
    for place, message in enumerate(messages):
        problem = message_problem(message)
        if problem:
            return f"request: messages[{place}]: {problem}"
    return None


def message_problem(message: Any) -> str | None:
    """What is wrong with one message; only text is ever sent."""
    if not isinstance(message, dict) or any(key not in MESSAGE_KEYS for key in message):
        return f"expected an object of {', '.join(sorted(MESSAGE_KEYS))}"
    if message.get("role") not in ROLES:
        return f"field 'role': expected one of {', '.join(ROLES)}, got {message.get('role')!r}"
    if message.get("content") is not None and not isinstance(message["content"], str):
        return f"field 'content': expected text, got {type(message['content']).__name__}"
    return None


def planned_tokens(body: bytes, payload: Mapping[str, Any]) -> int:
    """About how many tokens a request may cost: its length, and the most it may answer."""
    most = payload.get("max_tokens")
    return len(body) // CHARS_PER_TOKEN + (most if isinstance(most, int) else 0)


# === One call at first ===


class Gate:
    """Lets calls through one by one until one has worked, so that a wrong key or a refused field costs one request.

    A first call that takes longer than GATE_PATIENCE_S no longer holds the others up.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.open = False
        self.busy = False

    def enter(self, stop: Stop) -> bool:
        """Waits for a turn; False when the run stops meanwhile."""
        if self.open:
            return True
        with self.changed:
            for _ in range(int(GATE_PATIENCE_S / GATE_STEP_S)):
                if self.open or not self.busy or stop.is_set():
                    break
                self.changed.wait(GATE_STEP_S)
            self.busy = True
        return not stop.is_set()

    def leave(self, worked: bool) -> None:
        """The call that went through has ended."""
        if self.open:
            return
        with self.changed:
            self.open = self.open or worked
            self.busy = False
            self.changed.notify_all()


# === The client ===


class Client:
    """Calls one arm's endpoint. Raises ValueError at once for an arm or a key that cannot be used.

    arm: entry of eval.json. key: None for a server that wants none. pace: shared by the arm's workers, built from the
    arm's rpm and tpm when absent. stop: set to end waits and start nothing new. sleep(seconds) must return early once
    `stop` is set; the default does. transport: callable(url, headers, body) -> transport.Answer, raises Fault.
    notice: called with one line before each wait. permit: asked before each try after a call's first, with how many of
    its tries may have been billed; False ends the call as failed. allowed: fields a payload may have.
    """

    def __init__(
        self,
        arm: Mapping[str, Any],
        key: str | None,
        *,
        pace: pacing.Pace | None = None,
        stop: Stop | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        rng: Random | None = None,
        transport: Callable[[str, Mapping[str, str], bytes], wires.Answer] | None = None,
        timeouts: wires.Timeouts = wires.DEFAULT_TIMEOUTS,
        limits: Limits = DEFAULT_LIMITS,
        wall: Callable[[], float] = time.time,
        allowed: frozenset[str] = RECIPE_KEYS,
        notice: Callable[[str], None] | None = None,
        permit: Callable[[int], bool] | None = None,
        name: str = "custom",
    ) -> None:
        problems = providers.arm_problems(name, arm)
        problem = keys.key_problem(key) if key is not None else None
        if problems or problem:
            raise ValueError("; ".join(problems) or f"arm {name!r}: {problem}")
        self.arm, self.limits, self.allowed, self.notice, self.permit = arm, limits, allowed, notice, permit
        self.clock, self.wall = clock, wall
        self.stop: Stop = stop if stop is not None else threading.Event()
        self.sleep = sleep if sleep is not None else self.stop.wait
        self.rng: Random = rng if rng is not None else random.Random()
        self.pace = pace if pace is not None else pacing.Pace(arm.get("rpm"), arm.get("tpm"), clock=clock)
        if "timeout_s" in arm:
            timeouts = timeouts._replace(read_s=float(arm["timeout_s"]), total_s=float(arm["timeout_s"]))
        self.own = wires.Transport(timeouts, clock=clock) if transport is None else None
        self.transport = transport if transport is not None else self.own
        self.scrub = keys.Scrubber(key)
        self.key_header = providers.key_header(arm, key)
        self.gate = Gate()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes kept connections; a call under way in another thread ends as failed."""
        if self.own is not None:
            self.own.close()

    # --- One call ---

    def call(self, payload: dict[str, Any]) -> Outcome:
        """Sends one request, again if need be, and says what became of it."""
        problem = payload_problem(payload, self.allowed) or providers.build_problem(self.arm, payload)
        if problem:
            hint = 'see "omit", "format" and "output_mode" of the arm'
            return Outcome("stop", code="bad_request", text=problem, hint=hint)
        wire = providers.build(self.arm, payload)
        if not self.gate.enter(self.stop):
            return Outcome("cancelled", code="cancelled")
        outcome = Outcome("failed")
        try:
            outcome = self.attempts(wire, planned_tokens(wire.body, payload))
            return outcome
        finally:
            self.gate.leave(outcome.state == "reply")

    def taken(self, answer: wires.Answer) -> Outcome:
        """The outcome of an answer that came by another road than `call`, as a line of a batch's results does.

        Nothing is sent, paced or tried again: what would be is `failed`, and so is what would stop a run, but for a
        reply of another model or provider than the arm allows. When it was made is unknown.
        """
        self.gate.leave(worked=True)
        outcome = self.after_answer(answer, "the batch", 0).outcome
        if outcome.state == "stop" and outcome.code != "wrong_model":
            outcome = outcome._replace(state="failed", hint="")
        return outcome

    def attempts(self, wire: providers.Wire, planned: int) -> Outcome:
        """Attempts until one is final or the bounds are reached."""
        tally = Tally(self.clock())
        while True:
            if not self.turn(planned):
                return self.ended(tally.last or Outcome("cancelled", code="cancelled"), tally)
            step = self.attempt(wire, planned, tally)
            tally.last = step.outcome
            tally.unsure += step.unsure
            if step.kind == "done":
                return self.ended(step.outcome, tally)
            wait_s = self.wait_before_next(step, tally)
            if isinstance(wait_s, Outcome):
                return self.ended(wait_s, tally)
            if self.permit and not self.permit(tally.unsure):
                return self.ended(step.outcome, tally)
            self.wait(step, wait_s, tally)

    def ended(self, outcome: Outcome, tally: Tally) -> Outcome:
        """The outcome with the counts of the whole call."""
        return outcome._replace(retries=tally.retries + tally.resent, maybe_billed=tally.unsure + tally.resent)

    def turn(self, planned: int) -> bool:
        """Waits for this request's start; False when the run stops meanwhile."""
        while not self.stop.is_set():
            turn = self.pace.reserve(planned)
            wait_s = turn.at - self.clock()
            if wait_s > 0:
                self.sleep(wait_s)
            if self.pace.holds(turn) and not self.stop.is_set():
                return True
        return False

    def wait_before_next(self, step: Step, tally: Tally) -> float | Outcome:
        """Seconds until the next attempt, or the outcome when there is none."""
        bounds, asked_s = self.limits, step.asked_s
        if asked_s is not None and asked_s > bounds.ceiling_s:
            text = f"the server asks to wait {asked_s:.0f} s: {step.outcome.text}"
            hint = "run the same command later to resume"
            return step.outcome._replace(state="stop", code="retry_after", text=text, hint=hint)
        spent = tally.slow >= bounds.max_slow if step.kind == "slow" else tally.retries >= bounds.max_retries
        if spent or tally.unsure > bounds.max_unsure:
            return step.outcome
        wait_s = asked_s if asked_s is not None else min(bounds.cap_s, bounds.base_s * 2.0**tally.retries) / 2
        wait_s += self.rng.random() * min(wait_s, 1.0 if asked_s is not None else bounds.cap_s)
        if self.clock() - tally.first_at + wait_s > bounds.total_s:
            return step.outcome
        return wait_s

    def wait(self, step: Step, wait_s: float, tally: Tally) -> None:
        """Waits before the next attempt: all workers together after a 'slow down', else this one alone."""
        tally.retries += 1
        if self.notice:
            self.notice(f"{step.outcome.text}; trying again in {wait_s:.1f} s")
        if step.kind == "slow":
            tally.slow += 1
            self.pace.hold(wait_s, self.clock() - (step.outcome.latency_ms or 0) / 1000)
        else:
            self.sleep(wait_s)

    def shown(self, text: str, limit: int = refusals.TEXT_LIMIT) -> str:
        """A text from outside as one short line without the key; the key goes first, so that no half of it is left."""
        return refusals.printable(self.scrub(text[:MAX_SCRUBBED]), limit)

    # --- One attempt ---

    def attempt(self, wire: providers.Wire, planned: int, tally: Tally) -> Step:
        """One request and what follows from its answer."""
        assert self.transport is not None
        started_at, began = utc(self.wall()), self.clock()
        try:
            answer = self.transport(wire.url, {**wire.headers, **self.key_header}, wire.body)
        except wires.Fault as fault:
            tally.resent += fault.resent
            step = self.after_fault(fault)
        else:
            tally.resent += answer.resent
            step = self.after_answer(answer, wire.url, planned)
        text = step.outcome.text or (tally.last.text if tally.last else "")
        latency_ms = round((self.clock() - began) * 1000)
        return step._replace(outcome=step.outcome._replace(started_at=started_at, latency_ms=latency_ms, text=text))

    def after_fault(self, fault: wires.Fault) -> Step:
        """What follows when no answer came."""
        text, hint = self.shown(fault.text), self.shown(fault.hint)
        state = "failed" if self.gate.open or fault.sent else "stop"  # an endpoint that was never reached
        outcome = Outcome(state, code=fault.kind, text=text, hint=hint)
        if fault.kind in ("certificate", "proxy"):
            return Step("done", outcome._replace(state="stop"))
        if fault.kind in ("too_large", "bad_encoding"):
            known = "failed" if self.gate.open else "stop"
            return Step("done", outcome._replace(state=known), unsure=True)
        return Step("retry", outcome, unsure=fault.sent)

    def after_answer(self, answer: wires.Answer, url: str, planned: int) -> Step:
        """What follows from an answer of any status."""
        if not 200 <= answer.status < 300:
            facts = refusals.read_error(answer.body)
            return self.after_error(answer, answer.status, facts, url)
        try:
            reply = providers.read_reply(self.arm, answer.body)
        except providers.BadReply as bad:
            return self.after_bad_reply(answer, bad, url)
        if self.scrub.may_hold(answer.body):
            reply = self.scrub.value(reply)
        return self.after_reply(answer, reply, planned)

    def after_reply(self, answer: wires.Answer, reply: dict[str, Any], planned: int) -> Step:
        """What follows from a usable reply."""
        usage = providers.usage_of(reply) or {}
        used = [usage.get("input"), usage.get("output")]
        self.pace.worked(planned, sum(used) if None not in used else None)  # type: ignore[arg-type]
        room_s = refusals.room_in_s(answer.headers, self.wall(), planned)
        if room_s > 0:
            self.pace.wait_for_room(min(room_s, self.limits.cap_s))
        problem = providers.served_problem(self.arm, reply)
        seen = self.headers_of(answer)
        if problem:
            hint = 'if that is meant, change "response_model" or "provider" in the arm'
            text = self.shown(problem)
            outcome = Outcome("stop", None, "wrong_model", text, hint, answer.status, headers_seen=seen)
            return Step("done", outcome, unsure=True)
        return Step("done", Outcome("reply", reply, http_status=answer.status, headers_seen=seen))

    def after_bad_reply(self, answer: wires.Answer, bad: providers.BadReply, url: str) -> Step:
        """What follows from a 2xx answer that holds no reply."""
        if bad.kind == "error":
            facts = refusals.facts_of(bad.error)
            return self.after_error(answer, bad.status or 502, facts, url)
        text = self.shown(bad.text)
        outcome = Outcome("failed", None, "bad_body", text, "", answer.status, headers_seen=self.headers_of(answer))
        if bad.kind == "event_stream" or answer.headers.get("content-type", "").startswith("text/event-stream"):
            hint = "a proxy or the server streams always; use an address that answers with one JSON object"
            return Step("done", outcome._replace(state="stop", code="event_stream", hint=hint), unsure=True)
        if bad.kind == "html" and not self.gate.open:
            hint = f"the address was {self.scrub(url)}; check the base URL"
            outcome = outcome._replace(state="stop", hint=hint)
        return Step("retry", outcome, unsure=True)

    def after_error(self, answer: wires.Answer, status: int, facts: refusals.ErrorFacts, url: str) -> Step:
        """What follows from an error, whether it came with its own status or inside a 200 reply."""
        ruling = refusals.rule(status, facts, answer.headers)
        reason = answer.reason if status == answer.status else ""
        words = self.shown(facts.text)
        text = ": ".join(part for part in (refusals.status_text(status, self.shown(reason, 60)), words) if part)
        seen = self.headers_of(answer)
        outcome = Outcome("failed", None, ruling.code, text, "", status, headers_seen=seen)
        if ruling.code == "redirect":
            return Step("done", self.redirected(outcome, answer))
        if ruling.kind in ("retry", "slow"):
            return Step(ruling.kind, outcome, refusals.wait_s(answer.headers, facts, self.wall()))
        if ruling.kind == "row":
            return Step("done", outcome._replace(state="invalid"))
        if ruling.kind == "final" or (ruling.kind == "refused" and self.gate.open):
            return Step("done", outcome)
        hint = self.scrub(refusals.hint(ruling, status, facts, url, self.arm.get("key_env")))
        return Step("done", outcome._replace(state="stop", hint=hint))

    def redirected(self, outcome: Outcome, answer: wires.Answer) -> Outcome:
        """The outcome of an answer that points elsewhere; the key never goes there."""
        place = self.shown(answer.headers.get("location", "(no address given)"))
        text = f"HTTP {outcome.http_status}: the server redirects to {place}; redirects are not followed"
        return outcome._replace(
            state="stop", text=text, hint="if that address is the right one, use it as the base URL"
        )

    def headers_of(self, answer: wires.Answer) -> dict[str, str]:
        """Request ids and rate limits of an answer, scrubbed and short."""
        return {
            name: self.shown(value, 200)
            for name, value in answer.headers.items()
            if name in KEPT_HEADERS or name.startswith(KEPT_PREFIXES)
        }


def utc(unix_s: float) -> str:
    """Unix time as UTC ISO 8601 with microseconds and Z."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(unix_s, timezone.utc).isoformat(timespec="microseconds")[:-6] + "Z"
