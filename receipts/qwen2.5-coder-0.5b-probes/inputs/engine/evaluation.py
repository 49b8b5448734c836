"""One evaluation as frozen: its settings, its arms, and what identifies a run of it.

Everything here is worked out from eval.json and the command line before the first request: which arms are judged, with
which request settings, and the hash that two runs share exactly when they would send the same requests. Pure, but for
the names of environment variables that must be set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import evidence

# === Constants ===

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ORDERS = ("original", "swapped")
AGGREGATIONS = ("majority_label", "median")
DECISIONS = ("both", "original")
OUTPUT_MODES = ("tool", "required", "json_schema", "json_object", "text")
# What of an arm decides a request; keys, prices, pace and time limits do not.
IDENTITY = (
    "control",
    "format",
    "endpoint",
    "model",
    "output_mode",
    "strict",
    "omit",
    "rename",
    "extra_body",
    "headers",
    "provider",
    "response_model",
)
ARM_KEYS = (
    *IDENTITY,
    "key_env",
    "key_header",
    "rpm",
    "tpm",
    "concurrency",
    "price_usd_per_mtok",
    "batch_price_usd_per_mtok",
    "batch_discount",
    "weekly_tokens",
    "provider_name",
    "note",
    "recorded",
)

# Files that score, count, show or send, but do not decide what is asked.
SCORING_FILES = ("eval.json", "check.py", "agreement.py", "client.py", "run_eval.py", "tables.py")


class SettingError(Exception):
    """A setting that is not what it has to be; the text names file, field, expected and got."""


# === Records ===


@dataclass(frozen=True)
class Evaluation:
    """The frozen inputs of one evaluation, verified against their pins."""

    folder: str
    config: dict[str, Any]
    items: evidence.Items
    warnings: list[str]  # what is odd in the fixture and not expected of it
    recipe: Any
    check: Any
    hashes: dict[str, str]  # plain file name -> sha256, every pinned input
    inputs: dict[str, bytes]  # plain file name -> bytes, what `inputs/` of a run holds
    notes: tuple[str, ...] = ()  # what is odd in it, as eval.json says
    tables: Any = None  # the evaluation's own tables.py, where it has one
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        return str(self.config["slug"])

    @property
    def is_pairwise(self) -> bool:
        return bool(self.config.get("aggregation", "majority_label") == "majority_label")


@dataclass(frozen=True)
class Arm:
    """A judge under test: its name, eval.json's entry (or the command line's), and whether it is on the frozen list."""

    name: str
    settings: dict[str, Any]
    frozen: bool = True

    @property
    def control(self) -> str | None:
        return self.settings.get("control")

    @property
    def provenance(self) -> str:
        if self.control:
            return "control"
        return "recorded" if self.settings.get("recorded") else "live"

    @property
    def identity(self) -> dict[str, Any]:
        """What of the arm decides a request, in a fixed order."""
        return {key: self.settings[key] for key in IDENTITY if self.settings.get(key) is not None}

    def overlay(self, config: dict[str, Any]) -> dict[str, Any]:
        """The evaluation's settings with the arm's own request settings on top: what the recipe is given."""
        own = {key: self.settings[key] for key in ("output_mode", "strict") if self.settings.get(key) is not None}
        return {**config, **own}


# === Check settings ===


def want(config: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """A required setting of the given type. Raises: SettingError."""
    value = config.get(key)
    if key not in config:
        raise SettingError(f"{where}: field '{key}' is missing")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SettingError(f"{where}: field '{key}': expected {kind.__name__}, got {type(value).__name__}")
    return value


def check_config(config: dict[str, Any], where: str) -> None:
    """Refuse an eval.json that would fail only after money was spent. Raises: SettingError."""
    slug = want(config, "slug", str, where)
    if not SLUG.fullmatch(slug):
        raise SettingError(f"{where}: field 'slug': expected lower-case words joined by '-', got {slug!r}")
    want(config, "prompt", str, where)
    for key in ("max_tokens", "repeats"):
        if want(config, key, int, where) < 1:
            raise SettingError(f"{where}: field '{key}': expected 1 or more, got {config[key]}")
    if config.get("decision", "original") not in DECISIONS:
        raise SettingError(f"{where}: field 'decision': expected both or original, got {config['decision']!r}")
    if want(config, "aggregation", str, where) not in AGGREGATIONS:
        expected = " or ".join(AGGREGATIONS)
        raise SettingError(f"{where}: field 'aggregation': expected {expected}, got {config['aggregation']!r}")
    headline = want(config, "headline", dict, where).get("metric")
    metrics = ("kappa", "agreement", "ac1") if config["aggregation"] == "majority_label" else ("mean",)
    if headline not in metrics:
        raise SettingError(f"{where}: field 'headline.metric': expected {' or '.join(metrics)}, got {headline!r}")
    if "tool_choice" not in config:
        raise SettingError(f"{where}: field 'tool_choice' is missing (null for a text recipe)")
    for entry in want(config, "secondary", list, where):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise SettingError(f"{where}: field 'secondary': expected objects with an id, got {entry!r}")
    check_tool_choice(config["tool_choice"], where)
    check_discount(config, where)
    check_oddities(config.get("known_oddities", {}), where)
    for name, settings in want(config, "arms", dict, where).items():
        check_arm(name, settings, where)


def check_tool_choice(choice: Any, where: str) -> None:
    """null, or the forced function by name. Raises: SettingError."""
    if choice is None:
        return
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict) or choice.get("type") != "function" or not isinstance(function.get("name"), str):
        expected = '{"type": "function", "function": {"name": …}} or null'
        raise SettingError(f"{where}: field 'tool_choice': expected {expected}, got {choice!r}")


def check_oddities(known: Any, where: str) -> None:
    """How many oddities of each kind the fixture holds, or nothing. Raises: SettingError."""
    if not isinstance(known, dict):
        raise SettingError(f"{where}: field 'known_oddities': expected an object, got {type(known).__name__}")
    for kind, count in known.items():
        if kind not in evidence.ODDITIES or type(count) is not int or count < 0:
            expected = f"{', '.join(evidence.ODDITIES)} with a number from 0"
            raise SettingError(f"{where}: field 'known_oddities': expected {expected}, got {kind!r}: {count!r}")


def check_arm(name: str, settings: Any, where: str) -> None:
    """Refuse an arm entry with an unknown or ill-typed key. Raises: SettingError."""
    label = f"{where}: arms.{name}"
    if not isinstance(settings, dict):
        raise SettingError(f"{label}: expected an object, got {type(settings).__name__}")
    unknown = sorted(set(settings) - set(ARM_KEYS))
    if unknown:
        raise SettingError(f"{label}: unknown key {unknown[0]!r}; known are {', '.join(ARM_KEYS)}")
    if "control" in settings:
        if settings["control"] not in ("longer", "first", "random"):
            raise SettingError(f"{label}.control: expected longer, first or random, got {settings['control']!r}")
        return
    if settings.get("recorded"):
        return
    for key in ("endpoint", "model"):
        if not isinstance(settings.get(key), str) or not settings[key]:
            raise SettingError(f"{label}.{key}: expected a non-empty text, got {settings.get(key)!r}")
    mode = settings.get("output_mode", "tool")
    if mode not in OUTPUT_MODES:
        raise SettingError(f"{label}.output_mode: expected one of {', '.join(OUTPUT_MODES)}, got {mode!r}")
    for key in ("rpm", "tpm"):
        value = settings.get(key)
        if value is not None and not is_between(value, 1e9):
            raise SettingError(f"{label}.{key}: expected a number above 0, got {value!r}")
    for key in ("price_usd_per_mtok", "batch_price_usd_per_mtok"):
        check_price(settings.get(key), f"{label}.{key}")
    check_discount(settings, label)


def is_between(value: Any, most: float) -> bool:
    """Whether a value is a number above 0 and below `most`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < most


def check_price(price: Any, where: str) -> None:
    """US dollars per million tokens by kind: input and output, cached where it differs. Raises: SettingError."""
    if price is None:
        return
    kinds = set(price) if isinstance(price, dict) else set()
    numbers = kinds and all(value == 0 or is_between(value, 1e6) for value in price.values())
    if not numbers or not {"input", "output"} <= kinds <= {"input", "cached", "output"}:
        raise SettingError(f"{where}: expected {{input, cached, output}} in US dollars, got {price!r}")


def check_discount(settings: dict[str, Any], where: str) -> None:
    """What a batch costs less, as a share: 0.5 is half price. Raises: SettingError."""
    discount = settings.get("batch_discount")
    if discount is not None and not is_between(discount, 1):
        raise SettingError(f"{where}.batch_discount: expected a share between 0 and 1, got {discount!r}")


# === Oddities of the fixture ===


def oddity_lines(found: Sequence[evidence.Oddity], known: dict[str, int]) -> tuple[list[str], list[str]]:
    """(warnings, notes): each oddity in full, but one counted note for all kinds that are there as often as expected.

    known: eval.json's known_oddities, kind -> how many; of a kind that is not in it none is expected.
    """
    counts = Counter(oddity.kind for oddity in found)
    wrong = {kind for kind in {**counts, **known} if counts[kind] != known.get(kind, 0)}
    warnings = [f"known_oddities.{kind}: expected {known[kind]}, got {counts[kind]}" for kind in known if kind in wrong]
    warnings += [oddity.text for oddity in found if oddity.kind in wrong]
    right = [f"{known[kind]} {kind}" for kind in known if kind not in wrong and known[kind]]
    return warnings, [f"oddities of the pairs, as many as eval.json expects: {', '.join(right)}"] if right else []


# === Choose arms ===


def choose_arms(config: dict[str, Any], wanted: list[str], custom: dict[str, Any] | None) -> list[Arm]:
    """The arms named on the command line, in that order. Raises: SettingError."""
    known = config["arms"]
    if len(set(wanted)) < len(wanted):
        raise SettingError(f"--arms: an arm stands twice in {','.join(wanted)}")
    arms = []
    for name in wanted:
        if name == "custom":
            if custom is None:
                raise SettingError("--arms custom needs --base-url and --model")
            check_arm("custom", custom, "command line")
            arms.append(Arm("custom", custom, frozen=False))
        elif name in known:
            arms.append(Arm(name, known[name]))
        else:
            raise SettingError(f"--arms: unknown arm {name!r}; eval.json lists {', '.join(known)}, and custom")
    return arms


def missing_keys(arms: list[Arm], environment: dict[str, str]) -> list[str]:
    """One line per arm whose key variable is not set."""
    lines = []
    for arm in arms:
        variable = arm.settings.get("key_env")
        if variable and not arm.control and not environment.get(variable):
            lines.append(f"arm {arm.name}: environment variable {variable} is not set (it holds the API key)")
    return lines


# === Identity ===


def config_hash(evaluation: Evaluation, arm: Arm, split: str, item_ids: list[str]) -> str:
    """sha256 over everything that decides the requests of one arm: equal hashes are reproductions of each other."""
    config = evaluation.config
    settings = {
        key: config.get(key) for key in ("prompt", "tool_choice", "max_tokens", "reasoning_effort", "output_mode")
    }
    if arm.control == "random":
        settings["seed"] = config.get("seed")
    asked = {
        name: digest
        for name, digest in sorted(evaluation.hashes.items())
        if name not in SCORING_FILES and not name.startswith("engine/")
    }
    decides = {"inputs": asked, "settings": settings, "arm": arm.identity, "split": split, "items": item_ids}
    return evidence.sha256(evidence.canonical(decides))
