"""Workers that ask endpoints until nothing is missing: their keys, their number, their progress, and how they stop.

What run_eval.py and judge.py both need between parsed options and a running `generate.Generation`. Keys are read from
the environment here, checked, and handed to the client only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import client
import evaluation as evaluations
import evidence
import generate
import keys
import messages
import plan
import providers

# === Constants ===

GRACE_S = 10.0  # how long requests in flight may still answer after the first Ctrl-C
DEFAULT_CONCURRENCY = 4
SECONDS_A_CALL = 20.0  # a slow judge's reply: what the default number of workers is worked out for


# === Settings from flags ===


def price_of(text: str) -> dict[str, float]:
    """'2,0.1,10' as a price entry. Raises: SettingError."""
    try:
        fresh, cached, output = (float(part) for part in text.split(","))
    except ValueError:
        raise evaluations.UsageError(f"--price: expected IN,CACHED,OUT in US dollars, got {text!r}") from None
    return {"input": fresh, "cached": cached, "output": output}


def quirks_of(options: Any) -> dict[str, Any]:
    """What --omit, --rename and --extra-body add to an arm. Raises: SettingError."""
    settings: dict[str, Any] = {}
    if options.omit:
        settings["omit"] = options.omit.split(",")
    if options.rename:
        settings["rename"] = dict(pair.partition("=")[::2] for pair in options.rename)
    if options.extra_body:
        try:
            extra = evidence.parse_json(options.extra_body.encode("utf-8"), "--extra-body")
        except evidence.EvidenceError as problem:
            raise evaluations.UsageError(str(problem)) from None
        if not isinstance(extra, dict):
            raise evaluations.UsageError(f"--extra-body: expected a JSON object, got {type(extra).__name__}")
        settings["extra_body"] = extra
    return settings


def refuse_unpriced(arms: list[evaluations.Arm], options: Any) -> None:
    """A limit in dollars needs the price of every arm that asks a model. Raises: UsageError."""
    unpriced = [arm for arm in arms if not arm.control and arm.settings.get("price_usd_per_mtok") is None]
    if options.max_usd is None or not unpriced:
        return
    arm = unpriced[0]
    how = '"price_usd_per_mtok" of the arm in eval.json' if arm.frozen else "--price IN,CACHED,OUT"
    raise evaluations.UsageError(
        f"--max-usd {options.max_usd:g}: the price of arm {arm.name} is unknown, so nothing could stop it; give {how}"
    )


# === Keys ===


def key_of(arm: evaluations.Arm, environment: Mapping[str, str]) -> str | None:
    """The key an arm's variable holds; None for an arm that names none. Raises: SettingError without showing it."""
    variable = arm.settings.get("key_env")
    if not variable:
        return None
    return checked_key(arm.name, f"environment variable {variable}", environment.get(variable, ""))


def checked_key(arm: str, source: str, key: str) -> str:
    """The key. Raises: SettingError that says what is wrong with it without showing it."""
    trouble = client.key_problem(key)
    if trouble:
        raise evaluations.SettingError(f"arm {arm}: {source}: {trouble}")
    return key


def refuse_keys_in_settings(arms: list[evaluations.Arm], found: Mapping[str, str | None]) -> None:
    """Refuse arms whose stored settings hold a key in use. Raises: SettingError naming the field, never showing it."""
    for owner, key in found.items():
        scrub = keys.Scrubber(key)
        for arm in arms:
            if scrub.holds(arm.name):
                raise evaluations.SettingError(
                    f"an arm's name holds the API key of arm {scrub(owner)}; take it out first"
                )
            for name, value in arm.settings.items():
                if name != "key_env" and scrub.holds({name: value}):
                    raise evaluations.SettingError(
                        f"arm {arm.name}: field {scrub(name)!r}: holds the API key of arm {owner}; take it out first"
                    )


# === Callers ===


def live_caller(
    arm: evaluations.Arm,
    options: Any,
    stop: threading.Event,
    key: str | None,
    allowed: frozenset[str] = client.RECIPE_KEYS,
    permit: Callable[[int], bool] | None = None,
) -> Callable[..., Any]:
    """A caller that asks the arm's endpoint, paced for all its workers together. permit: asked before further tries."""
    pace = client.Pace(options.rpm or arm.settings.get("rpm"), arm.settings.get("tpm"), clock=time.monotonic)
    timeouts = client.Timeouts()
    if options.timeout:
        timeouts = timeouts._replace(total_s=options.timeout)
    judge = client.Client(
        arm.settings,
        key,
        pace=pace,
        stop=stop,
        timeouts=timeouts,
        allowed=allowed,
        permit=permit,
        name=arm.name,
    )

    def call(payload: dict[str, Any], item: dict[str, Any], order: str, repeat: int) -> client.Outcome:
        return judge.call(payload)

    return call


def workers_of(arms: list[evaluations.Arm], options: Any) -> dict[str, int]:
    """How many requests of each arm may be in flight: as asked, else what its pace can keep busy."""
    found = {}
    for arm in arms:
        rpm = options.rpm or arm.settings.get("rpm")
        suited = DEFAULT_CONCURRENCY if rpm is None else max(1, min(64, round(rpm / 60 * SECONDS_A_CALL + 0.5)))
        if providers.is_loopback(host_of(arm.settings.get("endpoint", ""))):
            suited = 1  # most local servers answer one request at a time, and a queue there only times out
        found[arm.name] = 1 if arm.control else options.concurrency or arm.settings.get("concurrency") or suited
    return found


def host_of(endpoint: str) -> str:
    """The host of a base URL; '' for what is none."""
    from urllib.parse import urlsplit

    return urlsplit(endpoint).hostname or ""


# === Watching a run ===


def leave_terminal() -> None:
    """Send what would be printed on a terminal that is gone to nowhere: writing there is an error."""
    for descriptor in (1, 2):
        if os.isatty(descriptor):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextlib.contextmanager
def interruptible(stop: threading.Event, received: list[int], voice: messages.Voice) -> Iterator[None]:
    """SIGINT, SIGTERM and a closed terminal set `stop`; a second one ends the process, with everything on disk kept."""

    def handle(number: int, _: Any) -> None:
        if received:
            os._exit(130)
        received.append(number)
        stop.set()
        if number not in (signal.SIGINT, signal.SIGTERM):
            leave_terminal()
        messages.say(f"\n{voice.program}: stopping: requests in flight may still answer; again to stop at once")

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup means: go on
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait(
    threads: list[threading.Thread],
    work: generate.Generation,
    options: Any,
    received: list[int],
    voice: messages.Voice,
) -> None:
    """Until all workers are done, showing progress; after a signal no longer than the grace time."""
    shown = plan.ProgressLine(sys.stderr, time.monotonic, options.quiet, work.started, work.done_before)
    deadline: float | None = None
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.05 if thread.is_alive() else 0)
            if thread.is_alive():
                break
        work.watch_time()
        voice.warn(work.take_warnings())
        shown.update(work.runs)
        if received and deadline is None:
            deadline = time.monotonic() + GRACE_S
        if deadline is not None and time.monotonic() > deadline:
            break
    shown.close(work.runs)
    voice.warn(work.take_warnings())
