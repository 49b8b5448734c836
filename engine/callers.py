"""Who answers the requests of a run's arms: a control, or the arm's endpoint with a checked key.

Keys come from the environment variable an arm names, or from a key file that nobody but its owner may read. A key is
checked before anything is written, is never part of a message, and a run is refused when one stands in a file that
would be sent or copied.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import calling
import client
import controls
import evaluation as evaluations
import evidence
import fixtures
import generate
import keys

# === Constants ===

MAX_KEY_FILE = 64 * 1024  # bytes
NAMED = re.compile(r"[:=]")  # what stands between a name and a key
# The name of a variable; a key that is filled up with '=' signs has letters of both cases.
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*")
ONLY_KEY = ""  # name under which a key file's lone key stands
OTHERS = stat.S_IRWXG | stat.S_IRWXO  # permission bits of group and others


# === Keys ===


def check_key_file(path: str, status: os.stat_result) -> None:
    """Refuse a key file that others could read. Raises: SettingError."""
    if os.name == "posix" and status.st_mode & OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise evaluations.SettingError(
            f"--key-file {path}: may be used by others (mode {mode:04o}); expected 0600 or 0400: chmod 600 {path}"
        )


def key_file_lines(path: str) -> list[str]:
    """Lines of a key file without blanks and comments; their text is never part of a message. Raises: SettingError."""
    try:
        with evidence.open_file(path) as stream:
            check_key_file(path, os.fstat(stream.fileno()))
            data = stream.read(MAX_KEY_FILE + 1)
        if len(data) > MAX_KEY_FILE:
            raise evaluations.SettingError(f"--key-file {path}: is larger than {MAX_KEY_FILE} bytes")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise evaluations.SettingError(f"--key-file {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise evaluations.SettingError(f"--key-file {path}: not UTF-8 text") from None
    lines = [line.strip() for line in text.split("\n")]
    return [line for line in lines if line and not line.startswith("#")]


def read_key_file(path: str) -> dict[str, str]:
    """Variable name -> key of a file of NAME=KEY lines; a file with one lone key gives it under ONLY_KEY.

    Raises: SettingError naming the line, never showing it.
    """
    lines = key_file_lines(path)
    if len(lines) == 1 and not is_assignment(lines[0]):
        trouble = lone_key_problem(lines[0])
        if trouble:
            raise evaluations.SettingError(f"--key-file {path}: {trouble}")
        return {ONLY_KEY: lines[0]}
    found = {}
    for number, line in enumerate(lines, 1):
        if not is_assignment(line):
            raise evaluations.SettingError(f"--key-file {path}: entry {number}: expected NAME=KEY, or one key alone")
        name, _, value = line.removeprefix("export ").partition("=")
        found[name.strip()] = value.strip()
    if not found:
        raise evaluations.SettingError(f"--key-file {path}: holds no key")
    return found


def is_assignment(line: str) -> bool:
    """Whether a line is NAME=KEY; a lone key may end in '=' signs, but its start is no variable name in capitals."""
    name, sign, value = line.removeprefix("export ").partition("=")
    return bool(sign and value.strip("= ")) and name.strip().isidentifier() and name.strip() == name.strip().upper()


def lone_key_problem(line: str) -> str | None:
    """Why a file's one line is no key alone, None for a bare token; its text is never part of the answer.

    A token may end in the '=' signs that base64 fills up with; any other '=' or ':' has a name before it, and with
    the name the key would be sent.
    """
    trouble = keys.key_problem(line)
    if trouble:
        return trouble
    token = line.rstrip("=")
    filled = len(line) - len(token)
    if NAMED.search(token) or (filled and (filled > 2 or len(line) % 4 or VARIABLE.fullmatch(token))):
        return "may be a name with ':' or '=' and no key; write NAME=KEY, NAME being the variable of the arm's key_env"
    return None


def arm_keys(arms: list[evaluations.Arm], path: str | None, environment: dict[str, str]) -> dict[str, str | None]:
    """The key of every arm that asks an endpoint, None where it wants none.

    A key file goes before the environment. Raises: SettingError, NotComplete for a key that is not there.
    """
    given = read_key_file(path) if path else {}
    live = [arm for arm in arms if not arm.control]
    if ONLY_KEY in given and len(live) != 1:
        raise evaluations.SettingError(
            f"--key-file {path}: holds one lone key, which suits one arm that asks a model, not {len(live)}"
        )
    known = {**environment, **given}
    if ONLY_KEY in given:
        known[live[0].settings.get("key_env", ONLY_KEY)] = given[ONLY_KEY]
    problems = evaluations.missing_keys(arms, known)
    if problems:
        raise generate.NotComplete("\n".join(problems), "export the variable, or choose other --arms")
    found = {arm.name: calling.key_of(arm, known) for arm in live}
    for arm in live:
        if found[arm.name] is None and ONLY_KEY in given:
            found[arm.name] = calling.checked_key(arm.name, "the key of --key-file", given[ONLY_KEY])
    return found


def refuse_keys_in(inputs: dict[str, bytes], found: dict[str, str | None]) -> None:
    """Refuse inputs that hold a key in use: they would be sent, and copied into the run. Raises: SettingError."""
    for arm, key in found.items():
        scrub = keys.Scrubber(key)
        for name, data in inputs.items():
            line = scrub.line_in(data)
            if line is not None:
                raise evaluations.SettingError(f"{name}:{line}: holds the API key of arm {arm}; take it out first")


# === Callers ===


def control_caller(kind: str, seed: object, mode: str, clock: Callable[[], float]) -> Callable[..., Any]:
    """A caller that answers as a control judge does, without a network."""

    def call(payload: dict[str, Any], item: dict[str, Any], order: str, repeat: int) -> client.Outcome:
        reply = controls.reply(kind, item, order, repeat, seed, mode)
        return client.Outcome("reply", reply=reply, started_at=evidence.utc_stamp(clock()), latency_ms=0)

    return call


@dataclass(frozen=True)
class Callers:
    """What answers each arm's requests; `stop` ends their waits, `meter` counts what they send."""

    by_arm: dict[str, Callable[..., Any]]
    stop: threading.Event
    meter: generate.Meter


def callers_of(arms: list[evaluations.Arm], evaluation: evaluations.Evaluation, options: Any) -> Callers:
    """One caller per arm; keys are read and checked here, before anything is written.

    Raises: SettingError, NotComplete.
    """
    calling.refuse_unpriced(arms, options)
    config, stop, meter = evaluation.config, threading.Event(), generate.Meter(options.max_requests)
    found = arm_keys(arms, options.key_file, dict(os.environ))
    refuse_keys_in(evaluation.inputs, found)
    calling.refuse_keys_in_settings(arms, found)
    by_arm = {}
    for arm in arms:
        if arm.control:
            mode = arm.overlay(config).get("output_mode", "tool")
            mode = "text" if config.get("tool_choice") is None else mode
            by_arm[arm.name] = control_caller(arm.control, config.get("seed"), mode, time.time)
        else:
            by_arm[arm.name] = calling.live_caller(arm, options, stop, found[arm.name], permit=meter.permit(arm.name))
    return Callers(by_arm, stop, meter)


def token_lines(arms: list[evaluations.Arm], items: fixtures.Items) -> list[str]:
    """One line for each pair whose texts hold what looks like a provider's token, when pairs are sent anywhere."""
    if all(arm.control for arm in arms):
        return []
    lines = []
    for item_id, text in zip(items.ids, items.texts()):
        kinds = keys.token_warnings(text)
        if kinds:
            lines.append(f"{item_id}: holds what looks like a token ({', '.join(kinds)}); it is sent as it stands")
    return lines
