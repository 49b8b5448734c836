"""The choices of a whole run as small tables, filled row by row from raw rows that are parsed and scored again.

A row's verdict is read from its kept replies, never from what was recorded beside them; where the two differ, that is a
problem that is reported. One byte holds one choice, so a hundred thousand pairs in five repeats cost a few megabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import evidence
import rows

# === Constants ===

# A byte's meaning; None = no reply at all; "text" = a completion, of an evaluation that scores numbers.
CODES = (None, "A", "B", "equal", "invalid", "failed", "text")
CODE_OF = {label: code for code, label in enumerate(CODES)}
MISSING, FAILED = 0, CODE_OF["failed"]
ORDERS = ("original", "swapped")
MAX_PROBLEMS = 1000
CACHED_PARSES = 4096  # verdicts by reply text: judges repeat themselves, and controls always do


# === Tables ===


class ArmTable:
    """One arm's choices in shown positions: [repeat][item] per order, and what its replies cost and were."""

    def __init__(self, n_items: int, repeats: int) -> None:
        self.n_items, self.repeats = n_items, repeats
        self.choices = {order: bytearray(n_items * repeats) for order in ORDERS}
        self.codes: Counter[str] = Counter()  # reason codes of invalid replies
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
        self.latencies: list[int] = []

    def set(self, repeat: int, place: int, order: str, label: str) -> None:
        self.choices[order][(repeat - 1) * self.n_items + place] = CODE_OF[label]

    def pair(self, repeat: int, place: int) -> tuple[str | None, str | None]:
        """The two choices of one item in one repeat; None where there is no reply (not sent, or failed)."""
        at = (repeat - 1) * self.n_items + place
        first, second = (CODES[self.choices[order][at]] for order in ORDERS)
        return (None if first == "failed" else first), (None if second == "failed" else second)

    def pairs(self, place: int) -> Iterator[tuple[str | None, str | None]]:
        """The choices of one item over the repeats."""
        return (self.pair(repeat, place) for repeat in range(1, self.repeats + 1))

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
    """Parses and scores raw rows again, fills the tables, and collects whatever does not match."""

    def __init__(
        self, items: Any, arms: dict[str, dict[str, Any]], configs: dict[str, dict[str, Any]], repeats: int, recipe: Any
    ) -> None:
        """arms: name -> settings; configs: name -> eval settings overlaid with the arm's."""
        self.items, self.arms, self.configs, self.recipe = items, arms, configs, recipe
        self.places = {item_id: place for place, item_id in enumerate(items.ids)}
        self.repeats = repeats
        self.tables = {name: ArmTable(len(items), repeats) for name in arms}
        self.problems: list[str] = []
        self.cache: dict[Any, dict[str, Any]] = {}

    def problem(self, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(text)

    def known(self, row: dict[str, Any], where: str) -> bool:
        """Whether a row belongs to this run and stands in it for the first time."""
        arm, item_id, repeat = row.get("arm"), row.get("item_id"), row.get("repeat")
        if arm not in self.tables or item_id not in self.places:
            self.problem(f"{where}: unknown arm or item: {arm!r}, {item_id!r}")
            return False
        if type(repeat) is not int or not 1 <= repeat <= self.repeats:
            self.problem(f"{where}: repeat: expected 1 to {self.repeats}, got {repeat!r}")
            return False
        at = (repeat - 1) * len(self.items) + self.places[item_id]
        if self.tables[arm].choices["original"][at] != MISSING:
            self.problem(f"{where}: {item_id} {arm} repeat {repeat} stands twice")
            return False
        return True

    def verdict(self, kept: dict[str, Any], mode: str) -> dict[str, Any]:
        """The verdict of one kept reply, parsed again; the same reply text is parsed once."""
        calls = kept.get("tool_calls")
        key = None
        if isinstance(calls, list) and len(calls) == 1 and isinstance(calls[0].get("arguments"), str):
            key = (calls[0]["arguments"], calls[0].get("name"), kept.get("finish_reason"), mode)
            try:
                if key in self.cache:
                    return self.cache[key]
            except TypeError:  # a name that is no text
                key = None
        found: dict[str, Any] = self.recipe.parse(rows.reply_of(kept), mode)
        if key is not None and len(self.cache) < CACHED_PARSES:
            self.cache[key] = found
        return found

    def read(self, row: dict[str, Any], where: str) -> dict[str, Any] | None:
        """Take one raw row in; returns the tool_arguments as parsed again, or None when it is not of this run."""
        if not self.known(row, where):
            return None
        table, mode = self.tables[row["arm"]], self.configs[row["arm"]].get("output_mode", "tool")
        place, fresh = self.places[row["item_id"]], {}
        for order, kept in row["replies"].items():
            said = self.reread(kept, mode)
            label = said["choice"] if kept["state"] != "failed" else "failed"
            if order in table.choices and label in CODE_OF:
                table.set(row["repeat"], place, order, label)
            fresh[order] = said
            recorded = (row.get("tool_arguments") or {}).get(order)
            if recorded != said:
                self.problem(f"{where}: {order}: recorded {short(recorded)}, the kept reply says {short(said)}")
            self.count(table, kept, self.arms[row["arm"]], self.configs[row["arm"]])
        return fresh

    def reread(self, kept: dict[str, Any], mode: str) -> dict[str, Any]:
        """{"choice", "reason"} of one kept reply; the reason code for one that never came."""
        if kept["state"] == "failed" or kept.get("error"):
            return {"choice": "invalid", "reason": kept["code"]}
        said = self.verdict(kept, mode)
        return {"choice": said["choice"], "reason": said["reason"]}

    def count(self, table: ArmTable, kept: dict[str, Any], settings: dict[str, Any], config: dict[str, Any]) -> None:
        """Add one reply's state, tokens, cost and origin to the arm's totals."""
        table.replies[kept["state"]] += 1
        if kept["code"]:
            table.codes[kept["code"]] += 1
        if kept["hint"]:
            table.hints[kept["hint"]] += 1
        table.repaired.update(kept["repaired"])
        table.retries += kept["retries"] or 0
        table.maybe_billed += kept["attempts_maybe_billed"] or 0
        if kept["state"] == "failed":
            return
        table.served[kept["model"] or "not said"] += 1
        if kept["provider"]:
            table.providers[kept["provider"]] += 1
        if kept["latency_ms"] is not None:
            table.latencies.append(kept["latency_ms"])
        table.batched += kept.get("via") == rows.BATCH
        price = {} if settings.get("control") else rows.price_for(settings, config, kept)
        self.count_tokens(table, kept["usage"] or {}, price)

    def count_tokens(self, table: ArmTable, usage: dict[str, Any], price: dict[str, float] | None) -> None:
        """Add one reply's tokens and cost. price: None when unknown, {} for a control, which costs nothing."""
        for kind in rows.TOKEN_KINDS:
            if usage.get(kind) is None:
                table.tokens_unknown[kind] += 1
            else:
                table.tokens[kind] += usage[kind]
        if price == {}:
            return
        cost = rows.cost_usd(usage, price)
        if cost is None:
            table.cost_unknown += 1
        else:
            table.cost += cost


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


Line = tuple[dict[str, Any], bytes]  # a raw row, and the bytes it was read from


def scored(
    raw: Iterable[Line], reader: Reader, items: Any, score: Callable[..., dict[str, Any]], name: str
) -> Iterator[tuple[dict[str, Any], bytes, dict[str, Any]]]:
    """(raw row, its line, its fresh scores) in the order read; no scores for a row with a failed reply."""
    for number, (row, line) in enumerate(raw, 1):
        fresh = reader.read(row, f"{name}:{number}")
        if fresh is None:
            continue
        if row["errors"]:
            yield row, line, {}
            continue
        yield row, line, score(items[reader.places[row["item_id"]]], fresh, reader.configs[row["arm"]])


def scored_rows(
    raw: Iterable[dict[str, Any]], reader: Reader, items: Any, score: Callable[..., dict[str, Any]], name: str
) -> Iterator[dict[str, Any]]:
    """Every raw row with its fresh scores behind it."""
    pairs = ((row, b"") for row in raw)
    return ({**row, **scores} for row, _, scores in scored(pairs, reader, items, score, name))


def scored_lines(
    raw: Iterable[Line], reader: Reader, items: Any, score: Callable[..., dict[str, Any]], name: str
) -> Iterator[bytes]:
    """The same as lines: what stands in a raw row's line already is not written anew."""
    for _, line, scores in scored(raw, reader, items, score, name):
        body = line.rstrip(b"\r\n")
        yield body[:-1] + b"," + evidence.row_bytes(scores)[1:] if scores else body + b"\n"
