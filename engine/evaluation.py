"""One evaluation as frozen: its settings, its arms, and what identifies a run of it.

Everything here is worked out from eval.json and the command line before the first request: which arms are judged, with
which request settings, and the hash that two runs share exactly when they would send the same requests. Pure, but for
the names of environment variables that must be set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import evidence
import fixtures

# === Constants ===

SLUG = evidence.SLUG
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,59}")
ORDERS = ("original", "swapped")
AGGREGATIONS = ("majority_label", "median")
DECISIONS = ("both", "original")
OUTPUT_MODES = ("tool", "required", "json_schema", "json_object", "text")
MAX_REPEATS = 1000
MAX_TOKENS = 10_000_000
MAX_RESAMPLES = 1_000_000
MAX_CONCURRENCY = 10_000  # threads of one arm
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

    exit_code = 3

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.hint = hint


class UsageError(SettingError):
    """The same for a word of the command line."""

    exit_code = 2


# === Records ===


@dataclass(frozen=True)
class Evaluation:
    """The frozen inputs of one evaluation, verified against their pins."""

    folder: str
    config: dict[str, Any]
    items: fixtures.Items
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


def is_number(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def is_whole(value: object, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def is_texts(value: object, least: int = 0, most: int = 1000) -> bool:
    """Whether a value is a list of different texts."""
    right = isinstance(value, list) and least <= len(value) <= most and all(map(is_text, value))
    return right and isinstance(value, list) and len(set(value)) == len(value)


def is_texts_by_name(value: object) -> bool:
    return isinstance(value, dict) and all(map(is_text, value.values()))


Rule = tuple[str, str, Callable[[Any], bool]]  # field (a.b is b in the object a), what is expected, whether it is that
TEXT: tuple[str, Callable[[Any], bool]] = ("a non-empty text", is_text)
# What may be left out of eval.json, and has to be right where it is given.
OPTIONAL: tuple[Rule, ...] = (
    ("title", *TEXT),
    ("unit", *TEXT),
    ("build_hint", *TEXT),
    ("seed", "a whole number or a text", lambda value: value is None or type(value) in (int, str)),
    ("output_mode", f"one of {', '.join(OUTPUT_MODES)}", lambda value: is_text(value) and value in OUTPUT_MODES),
    ("strict", "true or false", lambda value: type(value) is bool),
    ("labels", "a list of 2 to 10 different texts", lambda value: is_texts(value, 2, 10)),
    ("dimensions", "a list of different texts", is_texts),
    ("default_arms", "a list of different texts", is_texts),
    ("bootstrap", "an object", lambda value: isinstance(value, dict)),
    ("bootstrap.resamples", f"1 to {MAX_RESAMPLES}", lambda value: is_whole(value, 1, MAX_RESAMPLES)),
    ("bootstrap.level", "a number between 0 and 1", lambda value: is_number(value, 1e-6, 1 - 1e-6)),
    ("planning", "an object", lambda value: isinstance(value, dict)),
    ("planning.output_tokens", f"a number from 0 to {MAX_TOKENS}", lambda value: is_number(value, 0, MAX_TOKENS)),
    ("planning.discordant_share", "a number from 0 to 1", lambda value: is_number(value, 0, 1)),
    ("planning.agreement", "a number from 0.01 to 0.99", lambda value: is_number(value, 0.01, 0.99)),
    ("planning.power", "a number from 0.01 to 0.9999", lambda value: is_number(value, 0.01, 0.9999)),
    ("files", "an object of paths", is_texts_by_name),
    ("inputs_sha256", "an object of sha256 texts", is_texts_by_name),
    ("fixture_source", "an object", lambda value: isinstance(value, dict)),
)
# The same for an arm, whatever kind it is.
OF_ARM: tuple[Rule, ...] = (
    ("recorded", "true or false", lambda value: type(value) is bool),
    ("provider_name", *TEXT),
    ("note", *TEXT),
    ("weekly_tokens", "a number above 0", lambda value: is_between(value, 1e18)),
    ("concurrency", f"1 to {MAX_CONCURRENCY}", lambda value: is_whole(value, 1, MAX_CONCURRENCY)),
)


def rule_problems(settings: dict[str, Any], rules: Sequence[Rule], label: Callable[[str], str]) -> list[str]:
    """One line for each given field that is not what its rule expects. label: a field's place in words."""
    lines = []
    for name, expected, is_right in rules:
        outer, _, inner = name.rpartition(".")
        owner = settings.get(outer) if outer else settings
        if isinstance(owner, dict) and inner in owner and not is_right(owner[inner]):
            lines.append(f"{label(name)}: expected {expected}, got {shortened(owner[inner])}")
    return lines


def shortened(value: Any) -> str:
    """A value in ASCII on one line, cut: it may hold anything."""
    text = ascii(value) if not isinstance(value, int) or abs(value) < 1 << 200 else "a number of very many digits"
    return text if len(text) <= 60 else text[:59] + "…"


def optional_problems(config: dict[str, Any], where: str) -> list[str]:
    """What is wrong with the settings that eval.json may leave out."""
    return rule_problems(config, OPTIONAL, lambda name: f"{where}: field '{name}'")


def check_config(config: dict[str, Any], where: str) -> None:
    """Refuse an eval.json that would fail only after money was spent. Raises: SettingError."""
    slug = want(config, "slug", str, where)
    if not SLUG.fullmatch(slug):
        raise SettingError(f"{where}: field 'slug': expected lower-case words joined by '-', got {shortened(slug)}")
    for key in ("prompt", "reasoning_effort"):
        want(config, key, str, where)
    for key, most in (("max_tokens", MAX_TOKENS), ("repeats", MAX_REPEATS)):
        if not is_whole(want(config, key, int, where), 1, most):
            raise SettingError(f"{where}: field '{key}': expected 1 to {most}, got {shortened(config[key])}")
    refuse_other(config.get("decision", "original"), DECISIONS, f"{where}: field 'decision'")
    refuse_other(want(config, "aggregation", str, where), AGGREGATIONS, f"{where}: field 'aggregation'")
    metrics = ("kappa", "agreement", "ac1") if config["aggregation"] == "majority_label" else ("mean",)
    refuse_other(want(config, "headline", dict, where).get("metric"), metrics, f"{where}: field 'headline.metric'")
    if "tool_choice" not in config:
        raise SettingError(f"{where}: field 'tool_choice' is missing (null for a text recipe)")
    for entry in want(config, "secondary", list, where):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise SettingError(f"{where}: field 'secondary': expected objects with an id, got {shortened(entry)}")
    check_tool_choice(config["tool_choice"], where)
    check_discount(config, where)
    check_oddities(config.get("known_oddities", {}), where)
    problems = optional_problems(config, where)
    if problems:
        raise SettingError("\n".join(problems))
    for name, settings in want(config, "arms", dict, where).items():
        if not LABEL.fullmatch(name):
            raise SettingError(f"{where}: field 'arms': a name: {label_problem(name)}")
        check_arm(name, settings, where)


def refuse_other(value: Any, allowed: Sequence[str], where: str) -> None:
    """Raises: SettingError unless a value is one of a few words."""
    if value not in list(allowed):
        raise SettingError(f"{where}: expected {' or '.join(allowed)}, got {shortened(value)}")


def check_tool_choice(choice: Any, where: str) -> None:
    """null, or the forced function by name. Raises: SettingError."""
    if choice is None:
        return
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict) or choice.get("type") != "function" or not isinstance(function.get("name"), str):
        expected = '{"type": "function", "function": {"name": …}} or null'
        raise SettingError(f"{where}: field 'tool_choice': expected {expected}, got {shortened(choice)}")


def check_oddities(known: Any, where: str) -> None:
    """How many oddities of each kind the fixture holds, or nothing. Raises: SettingError."""
    if not isinstance(known, dict):
        raise SettingError(f"{where}: field 'known_oddities': expected an object, got {type(known).__name__}")
    for kind, count in known.items():
        if kind not in fixtures.ODDITIES or type(count) is not int or count < 0:
            expected = f"{', '.join(fixtures.ODDITIES)} with a number from 0"
            raise SettingError(
                f"{where}: field 'known_oddities': expected {expected}, got {kind!a}: {shortened(count)}"
            )


def check_arm(name: str, settings: Any, where: str) -> None:
    """Refuse an arm entry with an unknown or ill-typed key. Raises: SettingError."""
    label = f"{where}: arms.{name}"
    if not isinstance(settings, dict):
        raise SettingError(f"{label}: expected an object, got {type(settings).__name__}")
    unknown = sorted(set(settings) - set(ARM_KEYS))
    if unknown:
        raise SettingError(f"{label}: unknown key {unknown[0]!r}; known are {', '.join(ARM_KEYS)}")
    problems = rule_problems(settings, OF_ARM, lambda key: f"{label}.{key}")
    if problems:
        raise SettingError("\n".join(problems))
    if "control" in settings:
        refuse_other(settings["control"], ("longer", "first", "random"), f"{label}.control")
        return
    if settings.get("recorded"):
        return
    for key in ("endpoint", "model"):
        if not isinstance(settings.get(key), str) or not settings[key]:
            got = type(settings.get(key)).__name__ if settings.get(key) != "" else "an empty one"  # it may hold a key
            raise SettingError(f"{label}.{key}: expected a non-empty text, got {got}")
    refuse_other(settings.get("output_mode", "tool"), OUTPUT_MODES, f"{label}.output_mode")
    for key in ("rpm", "tpm"):
        value = settings.get(key)
        if value is not None and not is_between(value, 1e9):
            raise SettingError(f"{label}.{key}: expected a number above 0, got {shortened(value)}")
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
    numbers = kinds and all(is_number(value, 0, 1e6) for value in price.values())
    if not numbers or not {"input", "output"} <= kinds <= {"input", "cached", "output"}:
        raise SettingError(f"{where}: expected {{input, cached, output}} in US dollars, got {shortened(price)}")


def check_discount(settings: dict[str, Any], where: str) -> None:
    """What a batch costs less, as a share: 0.5 is half price. Raises: SettingError."""
    discount = settings.get("batch_discount")
    if discount is not None and not is_between(discount, 1):
        raise SettingError(f"{where}.batch_discount: expected a share between 0 and 1, got {shortened(discount)}")


# === Oddities of the fixture ===


def oddity_lines(found: Sequence[fixtures.Oddity], known: dict[str, int]) -> tuple[list[str], list[str]]:
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


def label_problem(label: str) -> str | None:
    """What keeps a text from being a judge's name in rows, tables, gates and file names; None when nothing does."""
    if not LABEL.fullmatch(label):
        return f"expected letters, digits and . _ + @ -, at most 60 of them, got {label!r}"
    return "names with control- are those of the controls" if label.startswith("control-") else None


def custom_name(config: dict[str, Any], label: str | None) -> str:
    """What the judge of the command line is called: its label, else custom. Raises: UsageError."""
    if label is None:
        return "custom"
    problem = label_problem(label)
    if label in config["arms"]:
        problem = "eval.json lists an arm of this name"
    if problem:
        raise UsageError(f"--arm-label {label}: {problem}")
    return label


def choose_arms(
    config: dict[str, Any], wanted: list[str], custom: dict[str, Any] | None, label: str | None = None
) -> list[Arm]:
    """The arms named on the command line, in that order. label: what the custom one is called. Raises: UsageError."""
    known = config["arms"]
    if len(set(wanted)) < len(wanted):
        raise UsageError(f"--arms: an arm stands twice in {','.join(wanted)}")
    arms = []
    for name in wanted:
        if name == "custom":
            if custom is None:
                raise UsageError("--arms custom needs --base-url and --model")
            called = custom_name(config, label)
            check_arm(called, custom, "command line")
            arms.append(Arm(called, custom, frozen=False))
        elif name in known:
            arms.append(Arm(name, known[name]))
        else:
            raise UsageError(f"--arms: unknown arm {name!r}; eval.json lists {', '.join(known)}, and custom")
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
