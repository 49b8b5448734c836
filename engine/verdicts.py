"""The choices of a whole run as small tables, filled row by row from raw rows that are parsed and scored again.

A row's verdict is read from its kept replies, never from what was recorded beside them; where the two differ, that is a
problem that is reported. One byte holds one choice, so a hundred thousand pairs in five repeats cost a few megabytes.
"""

from __future__ import annotations

import marshal
import math
import pickle
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

import evidence
import rows

# === Constants ===

# A byte's meaning; None = no reply at all; "text" = a completion, of an evaluation that scores numbers.
CODES = (None, "A", "B", "equal", "invalid", "failed", "text")
CODE_OF = {label: code for code, label in enumerate(CODES)}
MISSING, FAILED = 0, CODE_OF["failed"]
ORDERS = ("original", "swapped")
Pair = tuple[str | None, str | None]  # the choices of both orders
# The pair that two bytes stand for; a failed reply is no reply.
PAIRS: list[list[Pair]] = [[(None if a == "failed" else a, None if b == "failed" else b) for b in CODES] for a in CODES]
FILLED = bytes([0] + [1] * 255)  # translates a choice's byte: whether there is a reply at all
MAX_PROBLEMS = 1000
CACHED_PARSES = 4096  # verdicts by reply text: judges repeat themselves, and controls always do


# === Tables ===


class ArmTable:
    """One arm's choices in shown positions: [repeat][item] per order, and what its replies cost and were."""

    def __init__(self, n_items: int, repeats: int) -> None:
        self.n_items, self.repeats = n_items, repeats
        self.choices = {order: bytearray(n_items * repeats) for order in ORDERS}
        self.codes: Counter[str] = Counter()  # reason codes of invalid replies
        self.failed_codes: Counter[str] = Counter()
        self.last_failure: str | None = None  # the provider's words on the last reply that failed
        self.failed_at = (-1, 0, "")  # and which reply that was
        self.truncated: Counter[bool] = Counter()  # replies that break off: whether at the token limit
        self.repaired: Counter[str] = Counter()
        self.hints: Counter[str] = Counter()
        self.served: Counter[str] = Counter()
        self.providers: Counter[str] = Counter()
        self.replies: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.tokens_unknown: Counter[str] = Counter()
        self.retries = self.maybe_billed = 0
        self.batched = 0  # replies that came as lines of a batch's results
        self.cost = 0.0
        self.cost_unknown = 0
        self.latencies: array[int] = array("q")

    def set(self, repeat: int, place: int, order: str, label: str) -> None:
        self.choices[order][(repeat - 1) * self.n_items + place] = CODE_OF[label]

    def note_failure(self, at: tuple[int, int, str], text: str | None) -> None:
        """Keep the words of a reply that failed when no later one had any. at: repeat, item's place, order."""
        if text and at >= self.failed_at:
            self.failed_at, self.last_failure = at, text

    def absorb(self, other: ArmTable) -> bool:
        """Take in what another, unfolded table of the same judge was filled with. False where both have a reply."""
        for order, mine in self.choices.items():
            both = [int.from_bytes(each.translate(FILLED), "little") for each in (mine, other.choices[order])]
            if both[0] & both[1]:
                return False
            merged = int.from_bytes(mine, "little") | int.from_bytes(other.choices[order], "little")
            self.choices[order] = bytearray(merged.to_bytes(len(mine), "little"))
        self.truncated.update(other.truncated)
        self.note_failure(other.failed_at, other.last_failure)
        self.latencies.extend(other.latencies)
        return True

    def pair(self, repeat: int, place: int) -> Pair:
        """The two choices of one item in one repeat."""
        return self.pairs(place)[repeat - 1]

    def pairs(self, place: int) -> tuple[Pair, ...]:
        """The two choices of one item in every repeat; None where there is no reply (not sent, or failed)."""
        first, second = (self.choices[order][place :: self.n_items] for order in ORDERS)
        return tuple(PAIRS[a][b] for a, b in zip(first, second))

    def choice_codes(self) -> Iterator[tuple[int, ...]]:
        """Item by item the codes of its choices: original and swapped of the first repeat, of the second, and so on."""
        starts = range(0, self.n_items * self.repeats, self.n_items)
        return zip(*(self.choices[order][start : start + self.n_items] for start in starts for order in ORDERS))

    @staticmethod
    def pairs_of(codes: tuple[int, ...]) -> tuple[Pair, ...]:
        """The two choices of every repeat that an item's codes stand for; as `pairs`."""
        return tuple(PAIRS[a][b] for a, b in zip(codes[::2], codes[1::2]))

    def counts(self) -> dict[str, int]:
        """Pairs (item and repeat) by state: ok, invalid, failed, missing. Never folded into each other."""
        both = Counter(zip(*(self.choices[order] for order in ORDERS)))
        found = dict.fromkeys(("ok", "invalid", "failed", "missing"), 0)
        for (first, second), count in both.items():
            if MISSING in (first, second):
                state = "missing"
            elif FAILED in (first, second):
                state = "failed"
            else:
                state = "invalid" if CODE_OF["invalid"] in (first, second) else "ok"
            found[state] += count
        return found


# === Read rows ===


class Reader:
    """Parses and scores raw rows again, fills the tables, and collects whatever does not match.

    Replies that look alike in all that is counted are counted together and folded into the tables when those are
    asked for: a run has few kinds of them, and a reply costs two look-ups instead of twenty.
    """

    def __init__(
        self, items: Any, arms: dict[str, dict[str, Any]], configs: dict[str, dict[str, Any]], repeats: int, recipe: Any
    ) -> None:
        """arms: name -> settings; configs: name -> eval settings overlaid with the arm's."""
        self.items, self.arms, self.configs, self.recipe = items, arms, configs, recipe
        self.modes = {name: config.get("output_mode", "tool") for name, config in configs.items()}
        self.places = {item_id: place for place, item_id in enumerate(items.ids)}
        self.repeats = repeats
        self.filled = {name: ArmTable(len(items), repeats) for name in arms}
        self.kinds: dict[str, Counter[Kind]] = {name: Counter() for name in arms}
        self.usages: dict[str, Counter[Usage]] = {name: Counter() for name in arms}
        self.problems: list[str] = []
        self.cache: dict[Any, dict[str, Any]] = {}

    @property
    def tables(self) -> dict[str, ArmTable]:
        """The arms' tables with all rows read so far counted."""
        for name, table in self.filled.items():
            fold_kinds(table, self.kinds[name])
            fold_usages(table, self.usages[name], self.arms[name], self.configs[name])
            self.kinds[name].clear()
            self.usages[name].clear()
        return self.filled

    def said(self) -> bytes:
        """All that was read so far, for `absorb` of another reader of the same run in another process."""
        return pickle.dumps((self.filled, self.kinds, self.usages, self.problems))

    def absorb(self, said: bytes) -> bool:
        """Take in what another reader read of other rows. False where a row would stand twice."""
        filled, kinds, usages, problems = pickle.loads(said)  # from a copy of this very process
        for name, table in self.filled.items():
            if not table.absorb(filled[name]):
                return False
            self.kinds[name].update(kinds[name])
            self.usages[name].update(usages[name])
        self.problems += problems
        return True

    def problem(self, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)

    def place(self, row: dict[str, Any], where: str) -> int | None:
        """The place of a row's item when the row belongs to this run and stands in it for the first time."""
        arm, item_id, repeat = row.get("arm"), row.get("item_id"), row.get("repeat")
        if arm not in self.filled or item_id not in self.places:
            self.problem(f"{where}: unknown arm or item: {arm!r}, {item_id!r}")
            return None
        if type(repeat) is not int or not 1 <= repeat <= self.repeats:
            self.problem(f"{where}: repeat: expected 1 to {self.repeats}, got {repeat!r}")
            return None
        place: int = self.places[item_id]
        if self.filled[arm].choices["original"][(repeat - 1) * len(self.places) + place] != MISSING:
            self.problem(f"{where}: {item_id} {arm} repeat {repeat} stands twice")
            return None
        return place

    def verdict(self, kept: dict[str, Any], mode: str) -> dict[str, Any]:
        """The verdict of one kept reply, parsed again; the same reply text is parsed once."""
        calls = kept.get("tool_calls")
        if not isinstance(calls, list) or len(calls) != 1:
            return dict(self.recipe.parse(rows.reply_of(kept), mode))
        try:
            key = (calls[0]["arguments"], calls[0]["name"], kept["finish_reason"], mode)
            found: dict[str, Any] | None = self.cache.get(key)
        except (LookupError, TypeError):  # a call without them, or with a name that is no text
            return dict(self.recipe.parse(rows.reply_of(kept), mode))
        if found is None:
            found = dict(self.recipe.parse(rows.reply_of(kept), mode))
            if len(self.cache) < CACHED_PARSES and isinstance(key[0], str):
                self.cache[key] = found
        return found

    def read(self, row: dict[str, Any], where: str) -> dict[str, Any] | None:
        """Take one raw row in; returns the tool_arguments as parsed again, or None when it is not of this run."""
        place = self.place(row, where)
        if place is None:
            return None
        name, fresh = row["arm"], {}
        table, mode, kinds, usages = self.filled[name], self.modes[name], self.kinds[name], self.usages[name]
        recorded = row.get("tool_arguments") or {}
        slot = (row["repeat"] - 1) * len(self.places) + place
        for order, kept in row["replies"].items():
            said = self.reread(kept, mode)
            failed = kept["state"] == "failed"
            label = "failed" if failed else said["choice"]
            if order in table.choices and label in CODE_OF:
                table.choices[order][slot] = CODE_OF[label]
            fresh[order] = said
            if recorded.get(order) != said:
                shown = short(recorded.get(order))
                self.problem(f"{where}: {order}: recorded {shown}, the kept reply says {short(said)}")
            kinds[kind_of(kept)] += 1
            if kept["code"] == "truncated":
                table.truncated[at_limit(kept, self.configs[name].get("max_tokens"))] += 1
            if failed:
                table.note_failure((row["repeat"], place, order), (kept["error"] or {}).get("text"))
                continue
            usages[usage_of(kept)] += 1
            if kept["latency_ms"] is not None:
                table.latencies.append(kept["latency_ms"])
        return fresh

    def reread(self, kept: dict[str, Any], mode: str) -> dict[str, str]:
        """{"choice", "reason"} of one kept reply; the reason code for one that never came."""
        if kept["state"] == "failed" or kept.get("error"):
            return {"choice": "invalid", "reason": kept["code"]}
        said = self.verdict(kept, mode)
        return {"choice": said["choice"], "reason": said["reason"]}


# === Counting replies that look alike ===

Kind = tuple[tuple[str, ...], tuple[Any, ...]]  # repairs, and the parts that KIND_KEYS names
Usage = tuple[tuple[Any, ...], str | None]  # token counts as rows.TOKEN_KINDS, None where unknown; how the reply came


KIND_KEYS = ("state", "code", "hint", "model", "provider", "retries", "attempts_maybe_billed")
kind_parts, usage_parts = itemgetter(*KIND_KEYS), itemgetter(*rows.TOKEN_KINDS)
NO_USAGE = dict.fromkeys(rows.TOKEN_KINDS)


def kind_of(kept: dict[str, Any]) -> Kind:
    return tuple(kept["repaired"]), kind_parts(kept)


def at_limit(kept: dict[str, Any], most: int | None) -> bool:
    """Whether a reply ended because it had no tokens left, as far as the server tells."""
    written = (kept["usage"] or {}).get("output")
    return kept["finish_reason"] == "length" or (written is not None and most is not None and written >= most)


def usage_of(kept: dict[str, Any]) -> Usage:
    usage = kept["usage"] or NO_USAGE
    try:
        return usage_parts(usage), kept.get("via")
    except KeyError:  # an imported usage that leaves out what is unknown
        return tuple(map(usage.get, rows.TOKEN_KINDS)), kept.get("via")


def fold_kinds(table: ArmTable, kinds: Counter[Kind]) -> None:
    """Add counted replies to an arm's totals: states, codes, repairs, retries, and who served the ones that came."""
    for (repaired, (state, code, hint, model, provider, retries, maybe_billed)), count in kinds.items():
        table.replies[state] += count
        if code:
            (table.failed_codes if state == "failed" else table.codes)[code] += count
        if hint:
            table.hints[hint] += count
        for repair in repaired:
            table.repaired[repair] += count
        table.retries += (retries or 0) * count
        table.maybe_billed += (maybe_billed or 0) * count
        if state != "failed":
            table.served[model or "not said"] += count
            if provider:
                table.providers[provider] += count


def fold_usages(table: ArmTable, usages: Counter[Usage], settings: dict[str, Any], config: dict[str, Any]) -> None:
    """Add counted token usages to an arm's totals, and their cost where the arm has a price."""
    costs = [table.cost]
    for (counts, via), times in usages.items():
        usage = dict(zip(rows.TOKEN_KINDS, counts))
        for kind, tokens in usage.items():
            if tokens is None:
                table.tokens_unknown[kind] += times
            else:
                table.tokens[kind] += tokens * times
        table.batched += times * (via == rows.BATCH)
        if settings.get("control"):
            continue
        cost = rows.cost_usd(usage, rows.price_for(settings, config, {"via": via}))
        if cost is None:
            table.cost_unknown += times
        else:
            costs.append(cost * times)
    table.cost = math.fsum(costs)


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


Line = tuple[dict[str, Any], bytes]  # a raw row, and the bytes it was read from


def scored(
    raw: Iterable[Line], reader: Reader, items: Any, score: Callable[..., dict[str, Any]], name: str
) -> Iterator[tuple[dict[str, Any], bytes, dict[str, Any]]]:
    """(raw row, its line, its fresh scores) in the order read; no scores for a row with a failed reply."""
    item: dict[str, Any] = {}  # the last one used: all arms' rows of one item stand together
    for number, (row, line) in enumerate(raw, 1):
        try:
            fresh, failed = reader.read(row, f"{name}:{number}"), row["errors"]
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            problems = rows.row_problems(row, rows.orders_of(row)) or [f"{type(error).__name__}: {error}"]
            raise evidence.EvidenceError(f"{name}:{number}: {problems[0]}") from error
        if fresh is None:
            continue
        if failed:
            yield row, line, {}
            continue
        if item.get("item_id") != row["item_id"]:
            item = items[reader.places[row["item_id"]]]
        yield row, line, score(item, fresh, reader.configs[row["arm"]])


def scored_rows(
    raw: Iterable[dict[str, Any]], reader: Reader, items: Any, score: Callable[..., dict[str, Any]], name: str
) -> Iterator[dict[str, Any]]:
    """Every raw row with its fresh scores behind it."""
    pairs = ((row, b"") for row in raw)
    return ({**row, **scores} for row, _, scores in scored(pairs, reader, items, score, name))


def alike(value: Any) -> bytes:
    """Equal bytes only for values that are written alike: 1, 1.0 and true differ."""
    try:
        return marshal.dumps(value, 2)  # the last version whose bytes depend on the value alone
    except ValueError:
        return repr(value).encode("utf-8", "backslashreplace")


def scored_lines(
    raw: Iterable[Line], reader: Reader, items: Any, score: Callable[..., dict[str, Any]], name: str
) -> Iterator[bytes]:
    """The same as lines: what stands in a raw row's line already is not written anew, nor are equal scores."""
    written: dict[bytes, bytes] = {}
    for _, line, scores in scored(raw, reader, items, score, name):
        if not line.endswith(b"}\n"):
            line = line.rstrip(b"\r\n") + b"\n"
        if not scores:
            yield line
            continue
        key = alike(scores)
        tail = written.get(key)
        if tail is None:
            tail = b"," + evidence.row_bytes(scores)[1:]
            if len(written) < CACHED_PARSES:
                written[key] = tail
        yield line[:-2] + tail
