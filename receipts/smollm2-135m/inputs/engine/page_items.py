"""The items of a page as data: every text once, per item and judge what was said in each order and repeat, and flags.

The page's script shows one item at a time from this; it counts and decides nothing. Decisions are made by the same
functions of `agreement.py` as the summary's. A page stays below a size: first reasons are cut, then pairs left out, and
the page says so. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import agreement
from page_parts import Markup, embedded, tag

# === Constants ===

BUDGET = 12_000_000  # bytes of items in one page; with everything around it a page stays under 15 MB
NOSCRIPT_ROWS = 2000  # items of the plain table for readers without script
REPLY_SIZE = 24  # bytes one reply takes beside its text
REASON_LIMITS = (1_000_000, 4000, 1500, 600, 200)  # characters of one reason, tried in this order
BLOCK = 700_000  # characters in one data block: parsed only when an item of it is opened
OTHER_SIDE = {"A": "B", "B": "A"}
FLAGS = {
    "wrong": "decision is not gold",
    "reversed": "every reply picks the worse answer",
    "unanimous": "contradicts unanimous people",
    "inconsistent": "the two orders disagree",
    "unstable": "repeats disagree",
    "invalid": "a reply without a verdict",
    "failed": "a reply is missing",
    "longer": "wrong, and picks the longer answer",
}
# Fields of a fixture row that the page shows in places of their own; any other plain field is listed as it is.
OWN_FIELDS = (
    *("item_id", "split", "text", "answer_a", "answer_b", "gold", "votes", "category", "fault", "model_a", "model_b"),
    *("prior_turns", "reference", "why", "cluster", "second_label"),
)


# === Texts ===


class Texts:
    """Texts by number, each kept once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.size = 0

    def number(self, text: str) -> int:
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.numbers)
            self.size += len(text.encode("utf-8", "surrogatepass")) + 3
        return found

    def blocks(self) -> Iterator[list[str]]:
        """All texts in order, in blocks of about BLOCK characters."""
        block: list[str] = []
        size = 0
        for text in self.numbers:
            block.append(text)
            size += len(text)
            if size >= BLOCK:
                yield block
                block, size = [], 0
        if block:
            yield block


# === One judge on one item ===


def answer_of(choice: str | None, order: str) -> str | None:
    """The item's own answer behind a choice in shown positions; equal and invalid as they are."""
    return OTHER_SIDE.get(choice, choice) if choice is not None and order == "swapped" else choice


def read_order(row: dict[str, Any], order: str) -> dict[str, Any]:
    """One reply: the choice as shown (c), the answer it picks (d), the judge's words or a reason code (r)."""
    kept = (row.get("replies") or {}).get(order) or {}
    said = (row.get("tool_arguments") or {}).get(order) or {}
    choice = said.get("choice")
    if kept.get("state") == "failed":
        return {"c": "failed", "d": None, "r": str(kept.get("code") or "failed")}
    found = {"c": choice, "d": answer_of(choice, order), "r": said.get("reason") or ""}
    if choice == "invalid":
        found["r"] = str(kept.get("code") or said.get("reason") or "invalid")
        found["t"] = reply_text(kept)
    return found


def reply_text(kept: dict[str, Any]) -> str:
    """What an unreadable reply held, as far as it is text."""
    calls = kept.get("tool_calls") or []
    parts = [kept.get("content"), kept.get("refusal")]
    parts += [call.get("arguments") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def choice_pair(orders: dict[str, dict[str, Any]]) -> tuple[str | None, str | None]:
    """(original, swapped) choices as the summary reads them: None where there is no reply."""
    first, second = (None if found["c"] == "failed" else found["c"] for found in (orders["o"], orders["s"]))
    return first, second


def flags_of(item: dict[str, Any], label: str | None, repeats: list[dict[str, Any]], rule: str) -> list[str]:
    """What is worth looking at in one judge's verdicts on one item; names as in FLAGS."""
    pairs = [choice_pair(orders) for orders in repeats]
    gold, longer = item.get("gold"), longer_answer(item)
    votes = [vote["label"] for vote in item.get("votes", [])]
    found = []
    if gold is not None and label is not None and label != gold:
        found.append("wrong")
        if gold in OTHER_SIDE and all(answers(orders) == {OTHER_SIDE[gold]} for orders in repeats):
            found.append("reversed")
        if label == longer:
            found.append("longer")
    if len(votes) > 1 and len(set(votes)) == 1 and label is not None and label != votes[0]:
        found.append("unanimous")
    if any(None not in pair and agreement.lean(str(pair[0]), str(pair[1])) in ("first", "second") for pair in pairs):
        found.append("inconsistent")
    decisions = {agreement.resolve(*pair) if rule == "both" else pair[0] for pair in pairs}
    if len(decisions - {None}) > 1:
        found.append("unstable")
    if any("invalid" in pair for pair in pairs):
        found.append("invalid")
    if any(None in pair for pair in pairs):
        found.append("failed")
    return found


def answers(orders: dict[str, dict[str, Any]]) -> set[str | None]:
    return {orders["o"]["d"], orders["s"]["d"]}


def longer_answer(item: dict[str, Any]) -> str | None:
    a, b = len(item["answer_a"]), len(item["answer_b"])
    return None if a == b else "A" if a > b else "B"


def judged(item: dict[str, Any], repeats: list[dict[str, Any]], rule: str) -> dict[str, Any]:
    """One judge's verdicts on one item: majority decision (l), flags (f), replies by repeat (r)."""
    pairs = [choice_pair(orders) for orders in repeats]
    label = agreement.majority(agreement.resolve(*pair) if rule == "both" else pair[0] for pair in pairs)
    return {"l": label, "f": flags_of(item, label, repeats, rule), "r": repeats}


# === Rows to items ===


def collect(rows: Iterable[dict[str, Any]], arms: list[str]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """item_id -> arm -> replies by repeat, from scored rows in any order."""
    found: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    wanted = set(arms)
    for row in rows:
        if row.get("arm") in wanted:
            orders = {"o": read_order(row, "original"), "s": read_order(row, "swapped")}
            found.setdefault(str(row["item_id"]), {}).setdefault(row["arm"], {})[row["repeat"]] = orders
    return {
        item_id: {arm: [by_repeat[number] for number in sorted(by_repeat)] for arm, by_repeat in judges.items()}
        for item_id, judges in found.items()
    }


def turn_texts(turn: Any, texts: Texts) -> list[int]:
    """One earlier turn as text numbers: the question, and both answers to it where the turn holds them."""
    if not isinstance(turn, dict):
        return [texts.number(str(turn))]
    words = turn.get("text", turn.get("content"))
    sides = [turn[key] for key in ("answer_a", "answer_b") if isinstance(turn.get(key), str)]
    return [texts.number(text) for text in (str(words), *sides)]


def more_fields(item: dict[str, Any]) -> dict[str, str]:
    """Plain fields of the row that have no place of their own."""
    kinds = (str, int, float, bool)
    return {
        key: str(value)
        for key, value in item.items()
        if key not in OWN_FIELDS and isinstance(value, kinds) and len(str(value)) <= 200
    }


def item_entry(item: dict[str, Any], judges: list[dict[str, Any] | None], texts: Texts) -> dict[str, Any]:
    """One item as the script reads it; long texts by number."""
    turns = item.get("prior_turns") or []
    reference = item.get("reference")
    votes = [[vote["judge"], vote["label"]] for vote in item.get("votes", [])]
    if not votes and item.get("second_label") and item.get("gold"):
        votes = [["first annotator", item["gold"]], ["second annotator", item["second_label"]]]
    entry = {
        "id": item["item_id"],
        "g": item.get("gold"),
        "c": item.get("category"),
        "m": [item.get("model_a"), item.get("model_b")] if item.get("model_a") or item.get("model_b") else None,
        "x": item.get("fault"),
        "w": item.get("why"),
        "q": texts.number(item["text"]),
        "p": [turn_texts(turn, texts) for turn in turns] if isinstance(turns, list) else [],
        "ref": texts.number(reference) if isinstance(reference, str) and reference else None,
        "a": texts.number(item["answer_a"]),
        "b": texts.number(item["answer_b"]),
        "n": [len(item["answer_a"]), len(item["answer_b"])],
        "v": votes,
        "e": more_fields(item),
        "j": judges,
    }
    return {key: value for key, value in entry.items() if value not in (None, [], {})}


def with_words(judge: dict[str, Any], texts: Texts, limit: int) -> dict[str, Any]:
    """A judge's verdicts with its words as text numbers, cut to a limit."""

    def cut(text: str) -> int:
        return texts.number(text if len(text) <= limit else text[:limit] + " … (cut)")

    repeats = []
    for orders in judge["r"]:
        kept = {}
        for order, found in orders.items():
            # a verdict is a list to keep the page small: choice, answer picked, words, unreadable reply
            kept[order] = [found["c"], found["d"], cut(found["r"]), *([cut(found["t"])] if found.get("t") else [])]
        repeats.append(kept)
    texts.size += REPLY_SIZE * 2 * len(repeats)
    return {"l": judge["l"], "f": judge["f"], "r": repeats}


# === All items ===


class ItemData:
    """Everything the item view needs. left_out: pairs without a place; cut: characters of a reason, None = whole."""

    def __init__(self, entries: list[dict[str, Any]], texts: Texts, left_out: int, cut: int | None) -> None:
        self.entries, self.texts, self.left_out, self.cut = entries, texts, left_out, cut

    def embedded(
        self, arms: list[dict[str, Any]], lead: int, kind: str = "pairs", twins: list[tuple[int, int]] | None = None
    ) -> Markup:
        """The data blocks: an index, and the texts in blocks that are parsed when needed.

        kind: pairs | scores. twins: places of arms that are one judge in two runs.
        """
        blocks = list(self.texts.blocks())
        starts, start = [], 0
        for block in blocks:
            starts.append(start)
            start += len(block)
        index = {
            "kind": kind,
            "twins": twins or [],
            "arms": arms,
            "lead": lead,
            "flags": FLAGS,
            "starts": starts,
            "items": self.entries,
        }
        parts = [embedded("items", index)]
        parts += [embedded(f"texts-{number}", block) for number, block in enumerate(blocks)]
        return Markup("".join(parts))


def build(items: list[dict[str, Any]], judges: list[list[dict[str, Any] | None]]) -> ItemData:
    """Item data under the size budget. judges: per item one entry per arm, None where an arm has no row of it."""
    for limit in REASON_LIMITS:
        data = attempt(items, judges, limit, strict=False)
        if data.texts.size <= BUDGET:
            return data
    return attempt(items, judges, REASON_LIMITS[-1], strict=True)


def attempt(
    items: list[dict[str, Any]], judges: list[list[dict[str, Any] | None]], limit: int, strict: bool
) -> ItemData:
    """Item data with reasons of at most `limit` characters; strict: leave out pairs once the budget is used."""
    texts, entries, left_out = Texts(), [], 0
    for item, found in zip(items, judges):
        if texts.size > BUDGET:
            if not strict:
                break
            left_out += 1
            continue
        worded = [None if judge is None else with_words(judge, texts, limit) for judge in found]
        entries.append(item_entry(item, worded, texts))
    return ItemData(entries, texts, left_out, None if limit == REASON_LIMITS[0] else limit)


# === Frame ===


def frame(controls: Markup) -> Markup:
    """The empty view that the script fills: filters, count, keys, list, one item. Hidden without script."""
    keys = tag(
        "span",
        *[tag("kbd", "j"), " ", tag("kbd", "k"), " next and previous, ", tag("kbd", "r"), " a random disagreement, "],
        *[tag("kbd", "/"), " search"],
        class_="screen",
    )
    desk = tag(
        "div",
        tag("ul", id="item-list", class_="list", aria_label="Items"),
        tag("article", id="item", class_="item", aria_label="The chosen item"),
        class_="desk",
        id="desk",
    )
    count = tag("p", tag("span", "", id="item-count", role="status"), keys, class_="counts small soft")
    return tag("div", controls, count, desk, class_="needs-script hide")
