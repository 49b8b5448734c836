"""Whether the summary of a judged or compared file says what its own items say.

Whatever can be counted again from verdicts and answers is: counts, means, shares, correlations. Intervals by resampling
are not, as a file does not say how often was drawn. A figure that a file leaves out is no contradiction. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import judged
import page_judged_tables
import results
import tables

# === Constants ===

ONE_DRAW = SimpleNamespace(seed=0, bootstrap=1)  # the intervals are not looked at
ORDERS = ("original", "swapped")
CHOICES = ("A", "B", "equal")
STATES = ("invalid", "failed", "missing")
TOLERANCE = 0.0051  # half of the last digit that some figures are kept with
COUNTED_GRADE = (
    *("graded", "judge_mean", "judge_mean_interval", "scores", "by_category", "by_category_interval"),
    *("mean_words_by_score", "length", "by_check"),
)
COUNTED_COMPARE = (
    *("compared", "wins_a", "wins_b", "ties", "order_flips", "flip_rate", "judge_failures", "flips_first"),
    *("flips_second", "flips_p", "invalid", "failed", "missing", "win_rate", "sign_test_p", "by_category", "length"),
)
TITLE = "Summary and items of the file contradict each other"
NOTE = "figures elsewhere are the summary's; one of the two was changed after judging: judge again to know which"
RESAMPLED = ("judge_mean_interval", "by_category_interval", "win_rate")  # of these value and n alone


class Contradiction(NamedTuple):
    """One figure of a summary that the items of its file do not bear out."""

    figure: str
    summary: str
    items: str


# === Compare figures ===


def words(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, (int, float)) else str(value)


def same(stored: Any, counted: Any) -> bool:
    """Whether two figures are one; a count of 0 may be left out."""
    if stored is None or counted is None:
        return (stored or 0) == (counted or 0)
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (stored, counted))
    return abs(stored - counted) <= TOLERANCE if numbers else bool(stored == counted)


def without_draws(value: Any) -> Any:
    """A figure, or figures by name, without what was drawn for its interval."""
    if not isinstance(value, dict):
        return value
    if "value" in value:
        return {key: value[key] for key in ("value", "n") if key in value}
    return {key: without_draws(one) for key, one in value.items()}


def differing(stored: Any, counted: Any, name: str) -> Iterator[Contradiction]:
    """Every figure below `name` that differs; what stands on neither side in figures is passed over."""
    if isinstance(stored, dict) and isinstance(counted, dict):
        figure = "n" in counted or "value" in counted  # of one figure only what is counted
        known = counted if figure else {**counted, **stored}
        for key in (key for key in known if key not in ("unit", "reason")):
            yield from differing(stored.get(key), counted.get(key), f"{name}.{key}")
    elif isinstance(stored, dict) or isinstance(counted, dict):
        yield Contradiction(name, *("-" if one is None else "figures" for one in (stored, counted)))
    elif not same(stored, counted):
        yield Contradiction(name, words(stored), words(counted))


def compared_with(stored: dict[str, Any], counted: dict[str, Any], names: tuple[str, ...], where: str) -> Any:
    """The contradictions of one summary; a figure it does not hold is none."""
    for name in names:
        if stored.get(name) is not None:
            pair = [without_draws(one[name]) if name in RESAMPLED else one[name] for one in (stored, counted)]
            yield from differing(pair[0], pair[1], f"{where}{name}")


def where_of(name: str, judges: dict[str, Any]) -> str:
    """What the figures of one judge of several are called by."""
    return "" if len(judges) == 1 else f"{name}: "


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def run_of(value: Any) -> dict[str, Any]:
    """What a file says of a run, with null for what it does not say, or not in a text."""
    run = results.whole_run(value if isinstance(value, dict) else {})
    return {**run, "model": text_of(run["model"]) or None}


def plain_item(item: dict[str, Any]) -> dict[str, Any]:
    """What a summary is counted from, beside the verdict."""
    checks = item.get("checks")
    texts = {key: text_of(item.get(key)) for key in ("category", "answer", "answer_a", "answer_b")}
    return {"id": str(item.get("id")), **texts, "checks": checks if isinstance(checks, dict) else None}


# === Grade ===


def verdict_of(item: dict[str, Any], name: str, panel: bool) -> dict[str, Any]:
    """order -> verdict of one judge, or of a panel, as `judged` takes it; {} without a score."""
    inner = item.get("judges")
    alone = name == page_judged_tables.PANEL or not panel
    found = item.get("judge") if alone else inner.get(name) if isinstance(inner, dict) else None
    score = found.get("score") if isinstance(found, dict) else None
    if score not in results.SCORES or isinstance(score, bool):
        return {}
    return {"original": {"state": "ok", "choice": str(int(score)), "reason": "", "code": None}}


def of_grade(data: dict[str, Any]) -> Iterator[Contradiction]:
    """The contradictions of a graded file."""
    judges = page_judged_tables.judges_of(data["judge"])
    items, run = [plain_item(item) for item in data["results"]], run_of(data.get("run"))
    for name, stored in judges.items():
        given = [verdict_of(item, name, len(judges) > 1) for item in data["results"]]
        verdicts = {item["id"]: verdict for item, verdict in zip(items, given)}
        counted = judged.grade_summary(run, items, verdicts, name, ONE_DRAW)
        yield from compared_with(stored, counted, COUNTED_GRADE, where_of(name, judges))
        yield from of_states(stored, len(items) - counted["graded"], where_of(name, judges))
    if len(judges) > 1:
        for item in data["results"]:
            scores = [verdict_of(item, name, True) for name in judges if name != page_judged_tables.PANEL]
            said = judged.panel_score([int(each["original"]["choice"]) for each in scores if each])
            held = verdict_of(item, page_judged_tables.PANEL, True)
            own = int(held["original"]["choice"]) if held else None
            if own != said:
                yield Contradiction(f"{item.get('id')}: judge.score", words(own), words(said))


def of_states(stored: dict[str, Any], without: int, where: str) -> Iterator[Contradiction]:
    """How many answers have no verdict, where a summary says what became of each of them."""
    counts = [stored.get(name) for name in STATES]
    if all(type(count) is int for count in counts) and sum(map(int, counts)) != without:  # type: ignore[arg-type]
        yield Contradiction(f"{where}{' + '.join(STATES)}", str(sum(map(int, counts))), str(without))  # type: ignore[arg-type]


# === Compare ===


def reply_of(said: Any) -> dict[str, Any] | None:
    """One kept reply as `judged` takes it; None where none came."""
    if not isinstance(said, dict):
        return None
    state, choice = said.get("state", "ok"), said.get("choice")
    if state not in ("failed", "invalid") and choice not in CHOICES:
        state = "invalid"
    return {"state": state, "choice": choice if state == "ok" else "invalid", "reason": "", "code": ""}


def replies_of(found: dict[str, Any]) -> dict[str, Any]:
    """order -> reply of one judge on one pair."""
    replies = {order: reply_of(found.get(order)) for order in ORDERS}
    return {order: reply for order, reply in replies.items() if reply is not None}


def said_of(pair: dict[str, Any], name: str) -> dict[str, Any]:
    """What one judge said of a pair: the pair itself where there is one judge; {} for nothing."""
    inner = pair.get("judges")
    found = inner.get(name) if isinstance(inner, dict) else pair
    return found if isinstance(found, dict) else {}


def pairs_of(data: dict[str, Any], a: str, b: str) -> list[dict[str, Any]]:
    """The pairs of two of the runs; more than two are told apart by the ids, as `compare` writes them."""
    if not data.get("pairings"):
        return list(data["pairs"])
    return [pair for pair in data["pairs"] if str(pair.get("id")).endswith(f" [{a} / {b}]")]


def of_compare(data: dict[str, Any]) -> Iterator[Contradiction]:
    """The contradictions of a compared file: of its lead, which is of the first two runs, and of every two runs."""
    pairings = page_judged_tables.pairings_of(data)
    a, b, _ = pairings[0]
    yield from of_pairing(data, (a, b), page_judged_tables.judges_of(data["judge"]), "")
    for a, b, judges in pairings if data.get("pairings") else ():
        yield from of_pairing(data, (a, b), judges, f"{a} / {b}: ")
    names = [name for name in pairings[0][2] if name != page_judged_tables.PANEL]
    for pair in data["pairs"]:
        yield from of_pair(pair, names)


def of_pairing(
    data: dict[str, Any], names: tuple[str, str], judges: dict[str, dict[str, Any]], where: str
) -> Iterator[Contradiction]:
    """Each judge's summary of two runs. Where replies are not kept, or of a panel, decisions are all there is."""
    pairs = pairs_of(data, *names)
    runs = [run_of(data["runs"].get(one)) for one in names]
    work = [{**plain_item(pair), "item_id": str(pair.get("id")), "task": str(pair.get("id"))} for pair in pairs]
    for name, stored in judges.items():
        label = where + where_of(name, judges)
        panel = name == page_judged_tables.PANEL and len(judges) > 1
        said = [pair if panel else said_of(pair, name) for pair in pairs]
        if panel or not all(any(order in one for order in ORDERS) for one in said):
            yield from of_decisions(said, stored, label)
            continue
        verdicts = {one["item_id"]: replies_of(each) for one, each in zip(work, said)}
        counted = judged.compare_summary(runs[0], runs[1], work, verdicts, name, 0, ONE_DRAW)
        yield from compared_with(stored, counted, COUNTED_COMPARE, label)


def of_decisions(said: list[dict[str, Any]], stored: dict[str, Any], where: str) -> Iterator[Contradiction]:
    """Wins and losses against the decisions of some pairs; an equal pair may be one whose orders disagree."""
    counts = Counter(str(one.get("decision")) for one in said)
    decided = counts["A"] + counts["B"] + counts["equal"]
    share = (2 * counts["A"] + counts["equal"]) / (2 * decided) if decided else None
    counted = {"compared": decided, "wins_a": counts["A"], "wins_b": counts["B"], "win_rate": {"value": share}}
    yield from compared_with(stored, counted, tuple(counted), where)


def of_pair(pair: dict[str, Any], names: list[str]) -> Iterator[Contradiction]:
    """The decision on a pair against the replies it was taken from, and a panel's against those of its judges."""
    where = f"{pair.get('id')}: "
    for name in names:
        own = said_of(pair, name)
        if any(order in own for order in ORDERS):
            kind = judged.pair_kind(replies_of(own))
            said = {"flip": "equal", "failed": None, "missing": None}.get(kind, kind)
            if own.get("decision") != said:
                label = f"{where}{name}: " if own is not pair else where
                yield Contradiction(f"{label}decision", words(own.get("decision")), words(said))
    if isinstance(pair.get("judges"), dict):
        said = judged.panel_decision([said_of(pair, name).get("decision") for name in names])
        if pair.get("decision") != said:
            yield Contradiction(f"{where}decision", words(pair.get("decision")), words(said))


# === A file ===


def section_of(data: dict[str, Any]) -> list[tables.Section]:
    """The contradictions of a file as a table of its own; [] where there are none."""
    found = contradictions(data)
    head = ("figure", "the summary says", "the items say")
    return [(TITLE, head, found, [NOTE])] if found else []


def contradictions(data: dict[str, Any]) -> list[Contradiction]:
    """Every figure of a graded or compared file that its items do not bear out; [] for people's labels."""
    kind = page_judged_tables.kind_of_file(data)
    if kind == "grade":
        return list(of_grade(data))
    return list(of_compare(data)) if kind == "compare" else []
