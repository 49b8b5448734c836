"""Evidence that somebody else made, read as data and nothing else.

A folder is listed once, without following a link; only what stood in that list is opened, and only as a regular file.
Sizes, nesting, numbers, keys and the growth of packed files are bounded, so that a gzip bomb, a million columns or a
number of a million digits ends in one clear message instead of a full memory. Nothing that is read is ever executed,
and no path found in a file is ever opened: files are found by their own name or by their hash. Writes nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import evaluation as evaluations
import evidence
import fixtures

# === Constants ===

MIB = 1 << 20
MAX_FILES = 2000  # files of one folder; a receipt has about fifty
MAX_LEVELS = 8  # folders in folders
MAX_FOLDER = 1024 * MIB  # bytes of all files of a folder together
MAX_DOCUMENT = 64 * MIB  # bytes of one JSON document or fixture
MAX_ROW = 4 * MIB  # bytes of one row; real ones have two thousand
MAX_UNPACKED = 1024 * MIB  # bytes that one packed file may grow to
ALWAYS_UNPACKED = 64 * MIB  # what any packed file may grow to, however small it is
MAX_RATIO = 400  # growth beyond which a packed file is a bomb; rows of a control grow to 40 times
MAX_BLANK = 1000  # blank lines of one file; ours have none, and a file of nothing else costs hours
MAX_DEPTH = 64  # brackets in brackets
MAX_KEYS = 5000  # keys of one JSON object
MAX_NUMBER = 40  # characters of one number
MAX_REPEATS = 10_000
MAX_ROWS = 5_000_000
MAX_RESAMPLES = evaluations.MAX_RESAMPLES
MAX_TEXT = 160  # characters of foreign text in one message
STAMP = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z")
HEX = re.compile(r"[0-9a-f]{64}")
SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")
# eval.json's pin of each plain file name.
PIN_NAMES = {
    "fixture.jsonl": "fixture_sha256",
    "recipe.py": "recipe_sha256",
    "check.py": "checker_sha256",
    "agreement.py": "agreement_sha256",
    "client.py": "client_sha256",
    "run_eval.py": "runner_sha256",
}


class ForeignError(evidence.EvidenceError):
    """Evidence that cannot be read within the bounds; the text names file, place, expected and got."""


# === Text of strangers in our messages ===


def shown(value: object, limit: int = MAX_TEXT) -> str:
    """A foreign value for a message: as JSON, cut to `limit` characters, nothing in it that steers a terminal."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


# === JSON within bounds ===


def bounded_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        raise ValueError(f"an object has {len(pairs)} keys, expected at most {MAX_KEYS}")
    return evidence.no_duplicates(pairs)


def bounded_int(text: str) -> int:
    if len(text) > MAX_NUMBER:
        raise ValueError(f"a number has {len(text)} characters, expected at most {MAX_NUMBER}")
    return int(text)


def bounded_float(text: str) -> float:
    value = float(text) if len(text) <= MAX_NUMBER else math.inf
    if not math.isfinite(value):
        raise ValueError(f"number {text[:MAX_NUMBER]} is out of range or longer than {MAX_NUMBER} characters")
    return value


DECODER = json.JSONDecoder(
    object_pairs_hook=bounded_pairs,
    parse_int=bounded_int,
    parse_float=bounded_float,
    parse_constant=evidence.no_constant,
)


def depth_of(value: Any) -> int:
    """How deep containers are nested in a value, counted without recursion and no further than the bound."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        depth, level = depth + 1, [part for part in inner if isinstance(part, (dict, list))]
    return depth


def parse(data: bytes, where: str) -> Any:
    """The value of strict JSON text, within the bounds above. Raises: ForeignError naming `where`."""
    try:
        value = DECODER.decode(data.decode("utf-8-sig"))
        if data.count(b"[") + data.count(b"{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
            raise ForeignError(f"{where}: JSON is nested more than {MAX_DEPTH} deep")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise ForeignError(f"{where}: not valid UTF-8 (byte 0x{byte:02x} at offset {error.start})") from None
    except (RecursionError, MemoryError):
        raise ForeignError(f"{where}: JSON is nested too deeply") from None
    except ValueError as error:
        raise ForeignError(f"{where}: not JSON: {shown(str(error))}") from None
    return value


def parse_object(data: bytes, where: str) -> dict[str, Any]:
    """The same for an object. Raises: ForeignError."""
    value = parse(data, where)
    if not isinstance(value, dict):
        raise ForeignError(f"{where}: expected a JSON object, got {type(value).__name__}")
    return value


# === A folder ===


class Folder:
    """The regular files of a folder, as listed once; `problems` says what was refused."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, int] = {}  # name with '/' -> bytes
        self.problems: list[str] = []
        self.full = False  # more files than are listed
        if not os.path.isdir(path):
            raise ForeignError(f"{shown(path)}: no such folder")
        self.list("", 0)
        total = sum(self.files.values())
        if total > MAX_FOLDER:
            self.problems.append(f"{total} bytes in all, expected at most {MAX_FOLDER}")
            self.files = {}

    def list(self, under: str, level: int) -> None:
        """Take in the files of one folder and, down to a bounded depth, of those in it."""
        try:
            with os.scandir(os.path.join(self.path, *under.split("/")) if under else self.path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.problems.append(f"{shown(under)}: cannot be listed: {error.strerror}")
            return
        for entry in entries:
            name = f"{under}/{entry.name}" if under else entry.name
            if entry.is_symlink():
                self.problems.append(f"{shown(name)}: is a link; links are not followed")
            elif entry.is_dir(follow_symlinks=False):
                if self.full:
                    return
                if level >= MAX_LEVELS:
                    self.problems.append(f"{shown(name)}: folders are nested more than {MAX_LEVELS} deep")
                else:
                    self.list(name, level + 1)
            elif not entry.is_file(follow_symlinks=False):
                self.problems.append(f"{shown(name)}: is no regular file")
            elif len(self.files) >= MAX_FILES:
                self.problems += [] if self.full else [f"more than {MAX_FILES} files"]
                self.full = True
                return
            else:
                self.files[name] = entry.stat(follow_symlinks=False).st_size

    def __contains__(self, name: object) -> bool:
        return name in self.files

    def open(self, name: str) -> Any:
        """A listed file for reading. Raises: ForeignError."""
        if name not in self.files:
            raise ForeignError(f"{shown(name)}: is missing")
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(os.path.join(self.path, *name.split("/")), flags)
        except OSError as error:
            raise ForeignError(f"{shown(name)}: cannot be read: {error.strerror}") from None
        stream = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            stream.close()
            raise ForeignError(f"{shown(name)}: is no regular file")
        return stream

    def read(self, name: str, limit: int = MAX_DOCUMENT) -> bytes:
        """A whole file. Raises: ForeignError when it is missing or larger than `limit`."""
        with self.open(name) as stream:
            data: bytes = stream.read(limit + 1)
        if len(data) > limit:
            raise ForeignError(f"{shown(name)}: is larger than {limit} bytes")
        return data

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.open(name) as stream:
            for piece in iter(lambda: stream.read(MIB), b""):
                digest.update(piece)
        return digest.hexdigest()

    def object(self, name: str) -> dict[str, Any]:
        """The JSON object a file holds. Raises: ForeignError."""
        return parse_object(self.read(name), name)

    def lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Numbered lines of a `.jsonl.gz` or `.jsonl` file, blank ones too, one at a time.

        Raises: ForeignError for a damaged file, a line that is too long, or one that unpacks out of all proportion.
        """
        budget = min(MAX_UNPACKED, max(ALWAYS_UNPACKED, MAX_RATIO * self.files.get(name, 0)))
        taken = blank = 0
        with self.open(name) as stream:
            packed = name.endswith(".gz")
            source = io.BufferedReader(evidence.Unpacking(stream), evidence.BLOCK) if packed else stream
            try:
                for number, line in enumerate(iter(lambda: source.readline(MAX_ROW + 1), b""), 1):
                    taken += len(line)
                    blank += len(line) < 3
                    if len(line) > MAX_ROW:
                        raise ForeignError(f"{shown(name)}:{number}: line is longer than {MAX_ROW} bytes")
                    if taken > budget or blank > MAX_BLANK:
                        bound = f"{budget} bytes" if taken > budget else f"{MAX_BLANK} blank lines"
                        raise ForeignError(f"{shown(name)}: unpacks to more than {bound}; refused as a bomb")
                    yield number, line
            except (OSError, EOFError, zlib.error, evidence.TooManyMembers) as error:
                raise ForeignError(f"{shown(name)}: cannot be unpacked: {shown(str(error))}") from None

    def rows(self, name: str) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Number, bytes and value of every non-blank line. Raises: ForeignError naming file and line."""
        for number, line in self.lines(name):
            if line.strip():
                yield number, line, parse_object(line, f"{shown(name)}:{number}")


# === Manifest and settings of a run ===


def field_problems(value: dict[str, Any], wanted: dict[str, Any], where: str) -> list[str]:
    """One line for each field that is missing or of another type; wanted: name -> type or types."""
    lines = []
    for name, kinds in wanted.items():
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        if name not in value:
            lines.append(f"{where}: field '{name}' is missing")
        elif type(value[name]) not in kinds:
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            lines.append(f"{where}: field '{name}': expected {names}, got {shown(value[name], 60)}")
    return lines


MANIFEST = {
    "format": str,
    "slug": str,
    "status": str,
    "split": str,
    "limit": (int, type(None)),
    "shard": (str, type(None)),
    "arms": list,
    "arm_settings": dict,
    "unlisted_arms": list,
    "provenance": dict,
    "repeats": int,
    "items": int,
    "hashes": dict,
    "config_hash": dict,
    "tool_version": str,
    "python": str,
    "started_at": str,
}


def manifest_problems(manifest: dict[str, Any]) -> list[str]:
    """What is wrong with a manifest: fields, types, ranges."""
    where = "manifest.json"
    lines = field_problems(manifest, MANIFEST, where)
    if lines:
        return lines
    if manifest["format"] != evidence.RUN_FORMAT:
        lines.append(f"{where}: field 'format': expected {evidence.RUN_FORMAT}, got {shown(manifest['format'])}")
    if not evidence.SLUG.fullmatch(manifest["slug"]):
        lines.append(f"{where}: field 'slug': expected lower-case words joined by '-', got {shown(manifest['slug'])}")
    if manifest["split"] not in fixtures.SPLITS:
        lines.append(f"{where}: field 'split': expected dev or test, got {shown(manifest['split'])}")
    if not 1 <= manifest["repeats"] <= MAX_REPEATS:
        lines.append(f"{where}: field 'repeats': expected 1 to {MAX_REPEATS}, got {manifest['repeats']}")
    if manifest["limit"] is not None and manifest["limit"] < 1:
        lines.append(f"{where}: field 'limit': expected 1 or more, got {manifest['limit']}")
    shard = manifest["shard"] and SHARD.fullmatch(manifest["shard"])
    if manifest["shard"] is not None and not (shard and int(shard[1]) <= int(shard[2])):
        lines.append(f"{where}: field 'shard': expected I/N, got {shown(manifest['shard'])}")
    return lines + arm_problems(manifest, where) + total_problems(manifest.get("totals", {}), where)


def total_problems(totals: Any, where: str) -> list[str]:
    """What is wrong with a manifest's totals: arm -> name -> count; served_models: model -> count."""
    if not isinstance(totals, dict):
        return [f"{where}: field 'totals': expected an object, got {shown(totals, 60)}"]
    lines = []
    for name, part in totals.items():
        if not isinstance(part, dict):
            lines.append(f"{where}: field 'totals.{shown(name, 60)}': expected counts, got {shown(part, 60)}")
            continue
        for key, count in part.items():
            counts = count if key == "served_models" else {key: count}
            if not isinstance(counts, dict) or not all(is_number(each, 0, 1e18) for each in counts.values()):
                label = f"totals.{shown(name, 60)}.{shown(key, 60)}"
                lines.append(f"{where}: field '{label}': expected counts, got {shown(count, 60)}")
    return lines


def checked_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a run, every field of it usable. Raises: EvidenceError naming file and field."""
    manifest = evidence.read_manifest(folder)
    problems = manifest_problems(manifest)
    if problems:
        raise evidence.EvidenceError("\n".join(os.path.join(folder, line) for line in problems))
    return manifest


def arm_problems(manifest: dict[str, Any], where: str) -> list[str]:
    """What is wrong with the arms a manifest names."""
    arms = manifest["arms"]
    if not arms or not all(isinstance(name, str) and name for name in arms) or len(set(arms)) < len(arms):
        return [f"{where}: field 'arms': expected different names, got {shown(arms)}"]
    lines = []
    if not all(isinstance(name, str) and name in arms for name in manifest["unlisted_arms"]):
        got = shown(manifest["unlisted_arms"])
        lines.append(f"{where}: field 'unlisted_arms': expected some of {', '.join(map(shown, arms))}, got {got}")
    for name in arms:
        settings = manifest["arm_settings"].get(name)
        try:
            evaluations.check_arm(name, settings, where)
        except (evaluations.SettingError, TypeError) as error:
            lines.append(shown(str(error), 300))
        for field, kind in (("provenance", str), ("config_hash", str)):
            if not isinstance(manifest[field].get(name), kind):
                lines.append(f"{where}: field '{field}.{name}' is missing")
    for name, digest in manifest["hashes"].items():
        if not isinstance(digest, str) or not HEX.fullmatch(digest):
            lines.append(f"{where}: field 'hashes': {shown(name)}: expected a sha256, got {shown(digest)}")
    return lines


def is_number(value: object, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def config_problems(config: dict[str, Any], where: str) -> list[str]:
    """What in an eval.json would make the figures impossible or endless to work out."""
    lines = evaluations.optional_problems(config, where)
    for name, settings in config.get("arms", {}).items():
        lines += price_problems(settings, f"{where}: arms.{shown(name)}")
    if not is_number(config.get("batch_discount", 0), 0, 1):
        lines.append(f"{where}: field 'batch_discount': expected a share from 0 to 1")
    return lines


def price_problems(settings: dict[str, Any], where: str) -> list[str]:
    """What is wrong with an arm's prices."""
    lines = []
    for field in ("price_usd_per_mtok", "batch_price_usd_per_mtok"):
        price = settings.get(field)
        if price is None:
            continue
        good = isinstance(price, dict) and {"input", "output"} <= set(price)
        parts = [price[name] for name in ("input", "output", "cached") if name in price] if good else []
        if not good or not all(is_number(part, 0, 1e6) for part in parts):
            lines.append(f"{where}.{field}: expected {{input, cached, output}} in US dollars, got {shown(price, 60)}")
    if not is_number(settings.get("batch_discount", 0), 0, 1):
        lines.append(f"{where}.batch_discount: expected a share from 0 to 1")
    return lines


# === A run, opened ===


@dataclass(frozen=True)
class Opened:
    """A run or receipt whose documents are sound: what its rows are read against."""

    folder: Folder
    manifest: dict[str, Any]
    config: dict[str, Any]  # the eval.json the run was made with
    fixture: fixtures.Items  # all pairs of its fixture
    items: fixtures.Items  # the pairs of its selection

    @property
    def arms(self) -> list[evaluations.Arm]:
        outside = self.manifest["unlisted_arms"]
        settings = self.manifest["arm_settings"]
        return [evaluations.Arm(name, settings[name], frozen=name not in outside) for name in self.manifest["arms"]]

    @property
    def is_receipt(self) -> bool:
        return "receipt.json" in self.folder


def load_fixture(data: bytes, name: str) -> fixtures.Items:
    """The pairs of a fixture, each line within the bounds. Raises: EvidenceError that lists the faulty lines."""
    for number, start, end in fixtures.line_spans(data):
        parse(data[start:end], f"{name}:{number}")
    return fixtures.load_items(data, name)[0]


def open_config(folder: Folder, manifest: dict[str, Any], name: str) -> dict[str, Any]:
    """The settings a run was made with. Raises: ForeignError, SettingError."""
    config = folder.object(name)
    evaluations.check_config(config, name)
    problems = config_problems(config, name)
    for arm, settings in manifest["arm_settings"].items():
        problems += price_problems(settings, f"manifest.json: arm_settings.{shown(arm)}")
    if problems:
        raise ForeignError("\n".join(problems))
    texts = dict(config.get("inputs_sha256") or {})
    if texts:
        config["inputs"] = {plain: folder.read(f"inputs/{plain}").decode("utf-8", "replace") for plain in texts}
    return config


def open_run(path: str) -> Opened:
    """A run or receipt folder with sound documents. Raises: EvidenceError, SettingError listing what is wrong."""
    folder = Folder(path)
    return open_folder(folder)


def open_folder(folder: Folder) -> Opened:
    """The same for a folder that is listed already."""
    manifest = folder.object("manifest.json")
    problems = manifest_problems(manifest)
    if problems:
        raise ForeignError("\n".join(problems))
    config = open_config(folder, manifest, "inputs/eval.json")
    fixture = load_fixture(folder.read("inputs/fixture.jsonl"), "inputs/fixture.jsonl")
    items = fixtures.select(fixture, manifest["split"], manifest["limit"], manifest["shard"])
    if not items:
        raise ForeignError(f"inputs/fixture.jsonl: no pair in split {manifest['split']} for this selection")
    if len(items) * manifest["repeats"] * len(manifest["arms"]) > MAX_ROWS:
        raise ForeignError(f"manifest.json: more than {MAX_ROWS} rows")
    return Opened(folder, manifest, config, fixture, items)


def hash_problems(folder: Folder, wanted: dict[str, Any], where: str) -> list[str]:
    """One line for each named file that is missing or has another sha256."""
    lines = []
    for name, digest in wanted.items():
        if name not in folder:
            lines.append(f"{shown(name)}: named in {where}, is missing")
            continue
        got = folder.sha256(name)
        if got != digest:
            lines.append(f"{shown(name)}: sha256 expected {shown(digest)} ({where}), got {got}")
    return lines


def unlisted(folder: Folder, listed: Iterable[str]) -> list[str]:
    """The files of a folder that a list does not name."""
    return sorted(set(folder.files) - set(listed))
