"""One pass over the rows of a run: what does not follow from the frozen settings, the kept replies and the labels.

Receipts are made only of rows in which nothing is found, and verified by finding nothing again: both by this one pass.
Raw and scored rows are read side by side, one at a time, so memory does not grow with the size of the replies. A row
is compared with the row that our own code makes of its kept replies. Reads through `foreign`; executes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import controls
import evaluation as evaluations
import evidence
import foreign
import rows
import verdicts

# === Constants ===

LISTED = 5  # findings of one kind that are told in full
IDENTITY_FIELDS = (
    *("request_model", "endpoint", "provider_served", "allow_fallbacks"),
    *("reasoning_effort", "max_tokens", "tool_choice"),
)
REFUSED_CODES = ("content_filter", "context_length")  # refusals without a reply that count as an answer
OWN_HINTS = ("prompt_maybe_cut",)  # hints the runner adds to those of the recipe
RANGES = re.compile(r"[*+]|\{\d*,")  # repeats of no fixed number
MAX_RANGES, MAX_CHOICES = 2, 6
MAX_PATTERN = 200
LOOPS = re.compile(r"\)[*+{]|[*+}][*+{]")  # what makes a pattern's matching time explode


SLACK = timedelta(seconds=2)  # the clock is read, and rounded, at different moments
MAX_LATENCY_MS = 1 << 40


def moment_of(stamp: object) -> datetime | None:
    """The moment of a time stamp as our files write it; None for anything else."""
    if not isinstance(stamp, str) or not foreign.STAMP.fullmatch(stamp):
        return None
    try:
        return datetime.fromisoformat(stamp[:-1])
    except ValueError:
        return None


class Findings:
    """What is wrong, by check: counted in full, told in part."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.told: dict[str, list[str]] = {}

    def add(self, check: str, text: str) -> None:
        self.counts[check] += 1
        if self.counts[check] <= LISTED:
            self.told.setdefault(check, []).append(foreign.shown(text, 400))

    def lines(self, check: str) -> list[str]:
        """The first findings of a check, and how many more there are."""
        more = self.counts[check] - LISTED
        return self.told.get(check, []) + ([f"… and {more} more"] if more > 0 else [])


# === Patterns of strangers ===


def safe_pattern(pattern: object) -> re.Pattern[str] | None:
    """A model pattern compiled, or None for one that could take forever to match."""
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN or LOOPS.search(pattern):
        return None
    ranges, choices = len(RANGES.findall(pattern)), pattern.count("?") + pattern.count("|")
    if ranges > MAX_RANGES or choices > MAX_CHOICES:  # each multiplies the ways to match, nested or in a row
        return None
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


# === The pass ===


class Audit:
    """Reads all rows of an opened run once; afterwards `findings`, the filled tables, and what was seen."""

    def __init__(self, opened: foreign.Opened, recipe: Any, score: Callable[..., dict[str, Any]]) -> None:
        self.opened, self.score = opened, score
        manifest = opened.manifest
        self.names = list(manifest["arms"])
        self.settings = {arm.name: arm.settings for arm in opened.arms}
        self.configs = {arm.name: arm.overlay(opened.config) for arm in opened.arms}
        self.repeats = manifest["repeats"]
        self.reader = verdicts.Reader(opened.items, self.settings, self.configs, self.repeats, recipe)
        self.findings = Findings()
        self.seen = bytearray(len(opened.items) * self.repeats * len(self.names))
        self.last = -1
        self.rows = self.scored_rows = 0
        self.ids: dict[str, set[str]] = {name: set() for name in self.names}
        self.without_id: Counter[str] = Counter()
        self.models: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.patterns = {name: safe_pattern(found.get("response_model")) for name, found in self.settings.items()}
        self.runs = {name: [RepeatSums() for _ in range(self.repeats)] for name in self.names}
        self.first = self.latest = ""
        ends = moment_of(manifest["started_at"]), moment_of(manifest.get("ended_at"))
        self.span = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
        self.said: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.varied: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.scored: Iterator[tuple[int, bytes]] | None = None
        self.cached: tuple[int, dict[str, Any]] = (-1, {})

    def add(self, check: str, text: str) -> None:
        self.findings.add(check, text)

    # --- driving ---

    def run(self, scored: bool = True) -> Audit:
        """Read the raw rows, and with `scored` the scored rows beside them. Findings, never exceptions."""
        folder = self.opened.folder
        if scored:
            self.scored = folder.lines("scored.jsonl.gz")
        try:
            for number, line, row in folder.rows("raw.jsonl.gz"):
                self.rows += 1
                self.row(f"raw.jsonl.gz:{number}", line, row)
        except foreign.ForeignError as error:
            self.add("rows", str(error))
        if scored:
            self.leftover()
        self.missing()
        return self

    def leftover(self) -> None:
        """Scored rows beyond the raw ones."""
        while (line := self.next_scored()) is not None:
            start = foreign.shown(line[:80].decode("utf-8", "replace"))
            self.add("scores", f"scored.jsonl.gz: a row more than raw.jsonl.gz has: {start}")

    def next_scored(self) -> bytes | None:
        """The next scored line; None after the last, or when the file cannot be read on."""
        if self.scored is None:
            return None
        try:
            for _, line in self.scored:
                if line.strip():
                    self.scored_rows += 1
                    return line
        except foreign.ForeignError as error:
            self.add("scores", str(error))
        self.scored = None
        return None

    def missing(self) -> None:
        """Rows that should be there and are not."""
        if self.opened.manifest.get("sparse"):
            return
        at = self.seen.find(0)
        while at >= 0:
            item_id, name, repeat = self.place(at)
            self.add("rows", f"raw.jsonl.gz: {item_id} {name} repeat {repeat}: row is missing")
            at = self.seen.find(0, at + 1)

    # --- one row ---

    def rank(self, row: dict[str, Any]) -> int | None:
        """Where a row stands in canonical order; None for a row that is not of this run."""
        place = self.reader.places.get(row["item_id"])
        if place is None or row["arm"] not in self.names or not 1 <= row["repeat"] <= self.repeats:
            return None
        before: int = (row["repeat"] - 1) * len(self.opened.items) + place
        return before * len(self.names) + self.names.index(row["arm"])

    def place(self, rank: int) -> tuple[str, str, int]:
        rest, arm = divmod(rank, len(self.names))
        repeat, place = divmod(rest, len(self.opened.items))
        return self.opened.items.ids[place], self.names[arm], repeat + 1

    def row(self, where: str, line: bytes, row: dict[str, Any]) -> None:
        """Everything about one row, check by check."""
        scored = self.next_scored()
        problems = rows.row_problems(row, evaluations.ORDERS)
        if problems:
            for text in problems:
                self.add("rows", f"{where}: {text}")
            return
        rank = self.rank(row)
        if rank is None:
            self.add("rows", f"{where}: {row['item_id']} {row['arm']} repeat {row['repeat']}: not of this run")
            return
        where = f"{where}: {row['item_id']} {row['arm']} repeat {row['repeat']}"
        if self.seen[rank]:
            self.add("rows", f"{where}: row stands twice")
            return
        if rank < self.last:
            self.add("rows", f"{where}: row is out of order (repeat, then pair, then arm)")
        self.seen[rank], self.last = 1, max(self.last, rank)
        self.compare_row(where, line, row)
        self.compare_replies(where, row)
        self.compare_scores(where, row, scored)
        self.collect(where, row)

    def compare_row(self, where: str, line: bytes, row: dict[str, Any]) -> None:
        """The row against the one our code makes of its kept replies and the frozen settings."""
        name = row["arm"]
        entries = {
            order: {"evidence": kept, "said": row["tool_arguments"][order]} for order, kept in row["replies"].items()
        }
        fresh = rows.raw_row(self.settings[name], self.configs[name], name, row["item_id"], row["repeat"], entries)
        if evidence.row_bytes(fresh) == line:
            return
        differing = [key for key in fresh if evidence.canonical(fresh[key]) != evidence.canonical(row[key])]
        for key in differing:
            check = "settings" if key in IDENTITY_FIELDS else "sums"
            expected, got = foreign.shown(fresh[key], 60), foreign.shown(row[key], 60)
            self.add(check, f"{where}: {key}: expected {expected}, got {got}")
        if not differing:
            self.add("rows", f"{where}: not written in the canonical form")

    def compare_replies(self, where: str, row: dict[str, Any]) -> None:
        """What is recorded of each reply against what our recipe reads in it; fills the tables."""
        if self.settings[row["arm"]].get("control"):
            self.compare_control(where, row)
        mode = self.configs[row["arm"]].get("output_mode", "tool")
        before = len(self.reader.problems)
        self.reader.read(row, where)
        for text in self.reader.problems[before:]:
            self.add("replies", text)
        del self.reader.problems[before:]
        for order, kept in row["replies"].items():
            if kept["state"] == "failed":
                self.add("failed", f"{where}: {order}: no reply ({foreign.shown(kept['code'], 60)})")
            elif kept["error"] is not None:
                if kept["state"] != "invalid" or kept["code"] not in REFUSED_CODES:
                    self.add("replies", f"{where}: {order}: no reply, yet recorded as {kept['state']} {kept['code']}")
            else:
                self.compare_verdict(f"{where}: {order}", kept, self.reader.verdict(kept, mode))

    def compare_control(self, where: str, row: dict[str, Any]) -> None:
        """What a control said against what its rule, the seed and the pair make it say: that needs no model."""
        name, item = row["arm"], self.item(row)
        kind, config = self.settings[name]["control"], self.configs[name]
        mode, seed = config.get("output_mode", "tool"), config.get("seed")
        for order, kept in row["replies"].items():
            fresh = rows.reply_parts(controls.reply(kind, item, order, row["repeat"], seed, mode))
            for key in (key for key in fresh if kept[key] != fresh[key]):
                expected, got = foreign.shown(fresh[key], 80), foreign.shown(kept[key], 80)
                self.add("replies", f"{where}: {order}: {key}: the control '{kind}' says {expected}, recorded is {got}")

    def compare_verdict(self, where: str, kept: dict[str, Any], verdict: dict[str, Any]) -> None:
        """State, code and repairs of one reply as recorded and as parsed again."""
        for key in ("state", "code", "repaired", "hint"):
            if kept[key] != verdict[key] and not (key == "hint" and kept[key] in OWN_HINTS):
                expected, got = foreign.shown(verdict[key], 60), foreign.shown(kept[key], 60)
                self.add("replies", f"{where}: {key}: the reply says {expected}, recorded is {got}")

    def item(self, row: dict[str, Any]) -> dict[str, Any]:
        """The fixture's pair of a row; the last one is kept, as its arms follow each other."""
        place = self.reader.places[row["item_id"]]
        if self.cached[0] != place:
            self.cached = (place, self.opened.items[place])
        return self.cached[1]

    def scored_row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A raw row with the scores of its recorded choices; one with a failed reply stays unscored."""
        if row["errors"]:
            return row
        return {**row, **self.score(self.item(row), row["tool_arguments"], self.configs[row["arm"]])}

    def compare_scores(self, where: str, row: dict[str, Any], line: bytes | None) -> None:
        """The scored row against the raw row, scored by our check from the recorded choices and the gold label."""
        if line is None:
            if self.scored is not None:
                self.add("scores", f"{where}: scored row is missing")
            return
        fresh = self.scored_row(row)
        if evidence.row_bytes(fresh) == line:
            return
        where = where.replace("raw.", "scored.", 1)
        try:
            stored = foreign.parse_object(line, where)
        except foreign.ForeignError as error:
            self.add("scores", str(error))
            return
        differing = [key for key in {**fresh, **stored} if key not in fresh or fresh[key] != stored.get(key, self)]
        for key in differing or ["form"]:
            expected, got = foreign.shown(fresh.get(key), 60), foreign.shown(stored.get(key), 60)
            self.add("scores", f"{where}: {foreign.shown(key, 60)}: expected {expected}, got {got}")

    # --- what is seen over many rows ---

    def collect(self, where: str, row: dict[str, Any]) -> None:
        """Ids, models, times, sums and sameness."""
        name = row["arm"]
        self.runs[name][row["repeat"] - 1].add(row)
        for order, kept in row["replies"].items():
            label = f"{where}: {order}"
            if kept["id"] is None:
                self.without_id[name] += 1
            elif kept["id"] in self.ids[name]:
                self.add("ids", f"{label}: response id {foreign.shown(kept['id'], 60)} stands twice")
            else:
                self.ids[name].add(kept["id"])
            self.collect_model(label, name, kept)
            self.collect_time(label, name, kept)
            self.reasons[name][foreign.shown(row["tool_arguments"][order]["reason"] or "")] += 1
        self.collect_sameness(row)

    def collect_model(self, label: str, name: str, kept: dict[str, Any]) -> None:
        if kept["state"] == "failed" or kept["model"] is None:
            return
        self.models[name][kept["model"]] += 1
        pattern = self.patterns[name]
        if pattern is not None and not pattern.fullmatch(kept["model"][:MAX_PATTERN]):
            expected, got = self.settings[name]["response_model"], foreign.shown(kept["model"], 60)
            self.add("models", f"{label}: served model: expected {foreign.shown(expected, 60)}, got {got}")
        wanted = self.settings[name].get("provider")
        if wanted is not None and kept["provider"] is not None and kept["provider"].lower() != str(wanted).lower():
            got = foreign.shown(kept["provider"], 60)
            self.add("settings", f"{label}: provider: expected {foreign.shown(wanted, 60)}, got {got}")

    def collect_time(self, label: str, name: str, kept: dict[str, Any]) -> None:
        """Recorded replies may be of any time; those of this run lie within it."""
        manifest, stamp = self.opened.manifest, kept["started_at"]
        if manifest["provenance"][name] not in ("live", "control"):
            return
        if moment_of(stamp) is None:
            self.add("times", f"{label}: started_at: expected a UTC time stamp, got {foreign.shown(stamp, 60)}")
            return
        self.first, self.latest = min(self.first or stamp, stamp), max(self.latest, stamp)
        begin = moment_of(stamp)
        if self.span is None or begin is None:
            return  # the manifest's own times are a matter of the check that reports `times`
        end = begin + timedelta(milliseconds=min(kept["latency_ms"] or 0, MAX_LATENCY_MS))
        if begin < self.span[0] or end > self.span[1] + SLACK:
            span = f"{manifest['started_at']} to {manifest['ended_at']}"
            got = f"{stamp} and {foreign.shown(kept['latency_ms'], 40)} ms"
            self.add("times", f"{label}: started_at: expected within {span}, got {got}")

    def collect_sameness(self, row: dict[str, Any]) -> None:
        """Whether any pair's words differ between repeats: the first repeat is remembered, as a hash."""
        key = (row["arm"], self.reader.places[row["item_id"]])
        words = hash(evidence.canonical(row["tool_arguments"]))
        if row["repeat"] == 1:
            self.said[key] = (words,)
        elif key in self.said and self.said[key] != (words,):
            self.varied[row["arm"]] += 1


class RepeatSums:
    """What a receipt says of one repeat of one arm."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.unknown: set[str] = set()
        self.errors = self.invalid_tool_calls = self.retries = self.truncations = 0
        self.ids: list[str] = []

    def add(self, row: dict[str, Any]) -> None:
        for kind in rows.TOKEN_KINDS:
            count = rows.token_count(row["tokens"].get(kind))
            if count is None:
                self.unknown.add(kind)
            else:
                self.tokens[kind] += count
        self.errors += row["errors"]
        self.invalid_tool_calls += row["invalid_tool_calls"]
        self.retries += row["retries"] or 0
        self.truncations += row["finish_reason"] == "length"
        self.ids.append(row["response_id"])

    def as_dict(self, repeat: int) -> dict[str, Any]:
        """The entry of `arms.<arm>.runs`; a token kind that any row does not know is null, not a sum of the rest."""
        return {
            "repeat": repeat,
            "tokens": {kind: None if kind in self.unknown else self.tokens[kind] for kind in rows.TOKEN_KINDS},
            "errors": self.errors,
            "invalid_tool_calls": self.invalid_tool_calls,
            "retries": self.retries,
            "truncations": self.truncations,
            "response_ids_sha": evidence.sha256(ids_text(self.ids)),
        }


def ids_text(ids: list[str]) -> bytes:
    """The compact JSON list that `response_ids_sha` is taken of."""
    import json

    return evidence.encode(json.dumps(ids, ensure_ascii=False, separators=(",", ":")))
