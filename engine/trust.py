"""What a run's folder may decide when the run goes on: never whom a key is sent to.

A run is a folder that somebody may have been given. Its manifest names addresses and variables, so before a key is read
the judges of the frozen list have to be those of eval.json, and of a judge of one's own with a key for another machine
address and variable have to be said again; the hint that a run ends with says them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import commands
import evaluation as evaluations
import fixtures
import providers

# === Going on with a run ===


def refuse_other_judges(
    folder: str, manifest: dict[str, Any], evaluation: Any, items: fixtures.Items, options: Any
) -> None:
    """Raises: SettingError for a manifest whose judges are not what they were when the run began, or are to be said."""
    unlisted, problems = manifest.get("unlisted_arms", []), []
    for name in manifest["arms"]:
        settings, where = manifest["arm_settings"][name], f"{folder}/manifest.json: arm {name}"
        frozen = name not in unlisted
        if frozen and settings != evaluation.config["arms"].get(name):
            problems.append(f"{where}: expected the arm of eval.json, got another")
            continue
        arm = evaluations.Arm(name, settings, frozen=frozen)
        wrong = [] if arm.control else providers.arm_problems(name, settings)
        if wrong:
            problems += [f"{folder}/manifest.json: {line}" for line in wrong]
            continue
        expected = evaluations.config_hash(evaluation, arm, manifest["split"], items.ids)
        if manifest["config_hash"].get(name) != expected:
            problems.append(f"{where}: config_hash expected {expected}, got {manifest['config_hash'].get(name)}")
    if problems:
        raise evaluations.SettingError("\n".join(problems), "a run goes on as it began; to ask anew, start a new one")
    own = [manifest["arm_settings"][name].get("endpoint") for name in unlisted]
    if options.base_url and options.base_url not in own:
        asked = ", ".join(shown(endpoint) for endpoint in own if endpoint) or "no judge of the command line"
        raise evaluations.SettingError(f"--base-url {shown(options.base_url)}: the run asks {asked}")
    for name in unlisted:
        refuse_unsaid(folder, evaluations.Arm(name, manifest["arm_settings"][name], frozen=False), options)


def refuse_unsaid(folder: str, arm: Any, options: Any) -> None:
    """Raises: SettingError when a judge of one's own would get a key without its address and variable being said."""
    variable = options.key_env or arm.settings.get("key_env")
    if not is_elsewhere(arm) or not (variable or options.key_file):
        return
    endpoint = arm.settings["endpoint"]
    if options.base_url == endpoint and (options.key_env or options.key_file):
        return
    text = f"{folder}: would ask {shown(endpoint)} with the key in {variable or 'the key file'}"
    raise evaluations.SettingError(text, f"if that is meant, say so: give{said_again(arm, options.key_file, variable)}")


def shown(endpoint: str) -> str:
    """An address without what may follow its path."""
    return providers.bare_address(endpoint) or "another address"


def is_elsewhere(arm: Any) -> bool:
    """Whether a judge is one of the command line, on another machine."""
    endpoint = arm.settings.get("endpoint")
    if arm.frozen or not endpoint:
        return False
    try:
        return not providers.is_loopback(urlsplit(endpoint).hostname or "")
    except ValueError:
        return True


def resume_command(evaluation: Any, folder: str, arms: Iterable[Any], key_file: str | None = None) -> str:
    """The command that goes on with a run, as `refuse_other_judges` takes it.

    evaluation: its folder, None where it is not known.
    """
    said = "".join(said_again(arm, key_file) for arm in arms)
    return commands.command(evaluation, "--resume", folder) + said


def said_again(arm: Any, key_file: str | None = None, variable: str | None = None) -> str:
    """' --base-url URL --key-env VAR' for a judge whose key goes to another machine, '' for any other.

    key_file: given for keys, so that no variable has to be named. variable: to name instead of the judge's own.
    """
    variable = variable or arm.settings.get("key_env")
    if not is_elsewhere(arm) or not (variable or key_file):
        return ""
    named = f" --key-env {shlex.quote(variable)}" if variable else ""
    return f" --base-url {shlex.quote(arm.settings['endpoint'])}{named}"
