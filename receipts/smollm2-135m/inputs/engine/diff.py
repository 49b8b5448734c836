"""Two runs side by side: whether they asked the same, which decisions changed, and how far they agree.

Two runs with equal config hashes are reproductions of each other; for others every setting that differs is named.
Changes are listed reply by reply and decision by decision; then the runs' agreement with each other, and, where there
is gold, who was right more often (exact McNemar, or by question). Reads runs and receipts, also two repeats of one run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import agreement
import audit
import evaluation as evaluations
import evidence
import foreign
import rows
import summary as summaries
import tables
import verdicts

# === Constants ===

AT_REPEAT = re.compile(r"(.+)@([1-9]\d{0,3})")
SETTINGS = ("prompt", "tool_choice", "max_tokens", "reasoning_effort", "output_mode")  # of eval.json: decide a request
BESIDE = ("decision", "repeats", "seed", "labels", "aggregation", "headline", "bootstrap")  # decide a figure only
MAX_SHOWN = 40
CSV_HEAD = ("arm_a", "arm_b", "item_id", "repeat_a", "repeat_b", "what", "before", "after")
Label = agreement.MaybeLabel


# === Two sides ===


@dataclass(frozen=True)
class Side:
    """One run to compare: where it is, its choices, and the one repeat of it that is meant, if only one is."""

    path: str
    opened: foreign.Opened
    arms: dict[str, verdicts.ArmTable]
    repeat: int | None
    findings: list[str]

    def repeats(self) -> list[int]:
        return [self.repeat] if self.repeat is not None else list(range(1, self.opened.manifest["repeats"] + 1))


def open_side(text: str, ours: Any, exists: Any) -> Side:
    """A run or receipt, with '@2' behind it one repeat of it. exists: tells whether a path is there.

    Raises: EvidenceError, SettingError when there is no sound, complete run.
    """
    found = None if exists(text) else AT_REPEAT.fullmatch(text)
    path, repeat = (found[1], int(found[2])) if found else (text, None)
    opened = foreign.open_run(path)
    if opened.manifest["status"] != "complete":
        raise foreign.ForeignError(f"{foreign.shown(path)}: the run is not complete")
    if repeat is not None and repeat > opened.manifest["repeats"]:
        raise foreign.ForeignError(f"{foreign.shown(path)}: repeat {repeat}: it has {opened.manifest['repeats']}")
    read = audit.Audit(opened, ours.recipe, ours.check.score).run(scored=False)
    lines = [f"{foreign.shown(path)}: {line}" for check in ("rows", "replies") for line in read.findings.lines(check)]
    return Side(path, opened, read.reader.tables, repeat, lines)


def pair_arms(first: Side, second: Side, asked: list[str] | None) -> list[tuple[str, str]]:
    """Which arm is compared with which: as asked, else those of one name, else the only one of each.

    Raises: SettingError when nothing can be paired.
    """
    names = list(first.arms), list(second.arms)
    if asked:
        wanted = (asked[0], asked[-1])
        for side, name in zip((first, second), wanted):
            if name not in side.arms:
                has = ", ".join(foreign.shown(each, 60) for each in side.arms)
                raise evaluations.SettingError(f"--arms: {side.path} has no arm {name!r}; it has {has}")
        return [wanted]
    common = [(name, name) for name in names[0] if name in names[1]]
    if common:
        return common
    if len(names[0]) == len(names[1]) == 1:
        return [(names[0][0], names[1][0])]
    listed = [", ".join(foreign.shown(each, 60) for each in part) for part in names]
    raise evaluations.SettingError(f"no arm of one name in both: {listed[0]} | {listed[1]}; say --arms ONE,OTHER")


# === Settings ===


def deciding(side: Side, name: str) -> dict[str, Any]:
    """Everything that decides the requests of one arm, as far as it has a name."""
    opened, manifest = side.opened, side.opened.manifest
    arm = evaluations.Arm(name, manifest["arm_settings"][name])
    files = {
        f"file {plain}": digest
        for plain, digest in manifest["hashes"].items()
        if plain not in evaluations.SCORING_FILES and not plain.startswith("engine/")
    }
    settings = {key: opened.config.get(key) for key in SETTINGS}
    identity = {f"arm {key}": value for key, value in arm.identity.items()}
    return {**files, **settings, **identity, "split": manifest["split"], "pairs": opened.items.ids}


def beside(side: Side) -> dict[str, Any]:
    """What decides figures but no request."""
    manifest = side.opened.manifest
    code = {f"file {plain}": digest for plain, digest in manifest["hashes"].items() if plain != "eval.json"}
    code = {key: part for key, part in code.items() if key[5:].startswith("engine/") or key[5:].endswith(".py")}
    return {**{key: side.opened.config.get(key) for key in BESIDE}, **code}


def setting_differences(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, Any]]:
    """Each named setting that is not the same on both sides; of pairs only how many differ."""
    found = []
    for key in {**first, **second}:
        before, after = first.get(key), second.get(key)
        if before == after:
            continue
        if key == "pairs":
            only = len(set(before or []) - set(after or [])), len(set(after or []) - set(before or []))
            before, after = f"{len(before or [])} ({only[0]} only here)", f"{len(after or [])} ({only[1]} only here)"
        found.append({"setting": key, "a": before, "b": after})
    return found


# === Replies ===


def reply_marks(side: Side, name: str) -> dict[tuple[str, int, str], bytes]:
    """(item, repeat from the side's first, order) -> a mark of the reply and all that was kept of its call."""
    marks = {}
    first = side.repeats()[0]
    for _, _, row in side.opened.folder.rows("raw.jsonl.gz"):
        if not rows.row_problems(row, evaluations.ORDERS) and row["arm"] == name and row["repeat"] in side.repeats():
            for order, kept in row["replies"].items():
                mark = hashlib.blake2b(evidence.canonical(kept), digest_size=8).digest()
                marks[row["item_id"], row["repeat"] - first, order] = mark
    return marks


def same_replies(first: Side, second: Side, arms: tuple[str, str]) -> dict[str, int]:
    """How many replies of both sides are one and the same, of those that both have: a copy proves nothing anew."""
    one, other = reply_marks(first, arms[0]), reply_marks(second, arms[1])
    both = [key for key in one if key in other]
    return {"k": sum(one[key] == other[key] for key in both), "n": len(both)}


# === Decisions ===


def decision(pair: tuple[Label, Label], rule: str) -> Label:
    """One repeat's decision, None when a reply it needs is missing."""
    return agreement.resolve(*pair) if rule == "both" else pair[0]


class Compared:
    """Two arms over the pairs that both runs have."""

    def __init__(self, first: Side, second: Side, arms: tuple[str, str]) -> None:
        self.first, self.second, self.arms = first, second, arms
        self.rule = first.opened.config.get("decision", "original")
        places = {item_id: place for place, item_id in enumerate(second.opened.items.ids)}
        ids = first.opened.items.ids
        self.places = [(place, places[item_id]) for place, item_id in enumerate(ids) if item_id in places]
        self.repeats = list(zip(first.repeats(), second.repeats()))
        self.tables = first.arms[arms[0]], second.arms[arms[1]]
        self.changes: list[dict[str, Any]] = []
        self.counts = {what: [0, 0] for what in ("original", "swapped", "decision", "pair")}
        self.labels: tuple[list[Label], list[Label]] = ([], [])
        for before, after in self.places:
            self.pair(ids[before], before, after)

    def note(
        self, what: str, item_id: str, repeats: tuple[int | None, int | None], before: Label, after: Label
    ) -> None:
        """Count one comparison, and list it when the two sides differ."""
        if before is None and after is None:
            return
        self.counts[what][1] += 1
        if before != after:
            self.counts[what][0] += 1
            self.changes.append(
                {
                    "item_id": item_id,
                    "repeat_a": repeats[0],
                    "repeat_b": repeats[1],
                    "what": what,
                    "before": before,
                    "after": after,
                }
            )

    def pair(self, item_id: str, before: int, after: int) -> None:
        """Every reply, decision and the folded decision of one pair."""
        folded: tuple[list[Label], list[Label]] = ([], [])
        for repeats in self.repeats:
            pairs = self.tables[0].pair(repeats[0], before), self.tables[1].pair(repeats[1], after)
            for order, one, other in zip(evaluations.ORDERS, *pairs):
                self.note(order, item_id, repeats, one, other)
            decided = decision(pairs[0], self.rule), decision(pairs[1], self.rule)
            self.note("decision", item_id, repeats, *decided)
            folded[0].append(decided[0])
            folded[1].append(decided[1])
        labels = agreement.majority(folded[0]), agreement.majority(folded[1])
        self.note("pair", item_id, (None, None), *labels)
        self.labels[0].append(labels[0])
        self.labels[1].append(labels[1])

    def result(self) -> dict[str, Any]:
        """Everything that is known of these two arms."""
        one, other = deciding(self.first, self.arms[0]), deciding(self.second, self.arms[1])
        same = same_replies(self.first, self.second, self.arms) if one == other else None
        hashes = [side.opened.manifest["config_hash"][arm] for side, arm in zip((self.first, self.second), self.arms)]
        raw = agreement.raw_agreement(self.labels[0], self.labels[1])
        span = agreement.wilson(raw.k, raw.n) if raw.n else None
        kappa = agreement.kappa(self.labels[0], self.labels[1])
        return {
            "a": self.arms[0],
            "b": self.arms[1],
            "config_hash": hashes,
            "same_config": hashes[0] == hashes[1],
            "same_replies": same,
            "settings": setting_differences(one, other),
            "beside": setting_differences(beside(self.first), beside(self.second)),
            "pairs": len(self.places),
            "repeats": [list(pair) for pair in self.repeats],
            "rule": self.rule,
            "changed": {what: {"k": k, "n": n} for what, (k, n) in self.counts.items()},
            "agreement": {
                "k": raw.k,
                "n": raw.n,
                "value": raw.k / raw.n if raw.n else None,
                "low": span.low if span else None,
                "high": span.high if span else None,
            },
            "kappa": {"value": kappa.value, "reason": kappa.reason},
            "correct": self.correct(),
            "changes": self.changes,
        }

    def correct(self) -> dict[str, Any] | None:
        """Who was right more often, on pairs with gold; None without any."""
        items = [self.first.opened.items[place] for place, _ in self.places]
        gold = [item.get("gold") for item in items]
        if not any(gold):
            return None
        found = agreement.paired(gold, *self.labels, [summaries.cluster_of(item) or item["item_id"] for item in items])
        return {
            "a_only": found.better,
            "b_only": found.worse,
            "both_or_neither": found.tie,
            "n": found.n,
            "mcnemar_p": found.sign_p,
            "p": found.p,
            "test": found.test,
        }


def compare(first: Side, second: Side, asked: list[str] | None) -> dict[str, Any]:
    """The whole comparison, for --format json. Raises: SettingError."""
    found = [Compared(first, second, arms).result() for arms in pair_arms(first, second, asked)]
    if not any(part["pairs"] for part in found):
        raise evaluations.SettingError("the two runs have no pair in common")
    return {
        "a": first.path,
        "b": second.path,
        "repeat_a": first.repeat,
        "repeat_b": second.repeat,
        "arms": summaries.rounded(found),
        "warnings": first.findings + second.findings,
    }


# === Show ===


def setting_lines(part: dict[str, Any]) -> Iterator[str]:
    same = part["same_replies"] or {"k": 0, "n": 0}
    if part["same_config"]:
        text = f"same config hash {part['config_hash'][0][:16]}…: "
        if same["k"] == 0:
            yield text + "the second is a reproduction of the first"
        elif same["k"] == same["n"]:
            yield text + f"the same {same['n']} replies on both sides, down to their times; nothing was reproduced"
        else:
            yield text + f"{same['k']} of {same['n']} replies are the same on both sides, the others a reproduction"
    else:
        yield f"different config hashes {part['config_hash'][0][:16]}… and {part['config_hash'][1][:16]}…:"
    for found in part["settings"]:
        yield f"  {found['setting']}: {foreign.shown(found['a'], 60)} -> {foreign.shown(found['b'], 60)}"
    if part["beside"]:
        names = [found["setting"] for found in part["beside"]]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        yield f"  differs and decides no request: {foreign.shown(', '.join(names[:8]), 300)}{more}"


def change_rows(part: dict[str, Any], limit: int) -> list[tuple[str, ...]]:
    """Changed decisions first, each with the replies behind it."""
    order = {"pair": 0, "decision": 1, "original": 2, "swapped": 3}
    ranked = sorted(part["changes"], key=lambda change: order[change["what"]])
    shown: list[tuple[str, ...]] = []
    for change in ranked[:limit]:
        repeats = [change["repeat_a"], change["repeat_b"]]
        which = (
            "all"
            if repeats[0] is None
            else str(repeats[0])
            if repeats[0] == repeats[1]
            else f"{repeats[0]}/{repeats[1]}"
        )
        before, after = (str(change[side] or "no reply") for side in ("before", "after"))
        shown.append((foreign.shown(change["item_id"], 60), which, change["what"], before, after))
    return shown


def part_lines(part: dict[str, Any], table: Any) -> Iterator[str]:
    """The comparison of one pair of arms."""
    names = part["a"] if part["a"] == part["b"] else f"{part['a']} -> {part['b']}"
    repeats = f"{len(part['repeats'])} {tables.plural('repeat', len(part['repeats']))}"
    yield f"{foreign.shown(names)}: {part['pairs']} pairs in common, {repeats} compared"
    yield from setting_lines(part)
    changed = part["changed"]
    yield (
        f"changed: {counted(changed['pair'])} pairs by majority, {counted(changed['decision'])} decisions, "
        f"{counted(changed['original'])} replies in the original order, {counted(changed['swapped'])} swapped"
    )
    found = part["agreement"]
    yield (
        f"agreement of the two: {found['k']}/{found['n']} {tables.number(found['value'])} {tables.interval(found)}, "
        f"kappa {tables.number(part['kappa']['value'], 3, part['kappa']['reason'])}"
    )
    correct = part["correct"]
    if correct is not None:
        yield (
            f"right against gold: only the first on {correct['a_only']}, only the second on {correct['b_only']}, "
            f"both or neither on {correct['both_or_neither']}; {tables.p_value(correct['p'])} ({correct['test']})"
        )
    if part["changes"]:
        yield from table(("pair", "repeat", "what", "before", "after"), change_rows(part, MAX_SHOWN))
        if len(part["changes"]) > MAX_SHOWN:
            yield f"… and {len(part['changes']) - MAX_SHOWN} more changes (--format csv lists all)"


def counted(found: dict[str, int]) -> str:
    return f"{found['k']}/{found['n']}"


def as_csv(result: dict[str, Any]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    for part in result["arms"]:
        for change in part["changes"]:
            writer.writerow((part["a"], part["b"], *(change[key] for key in CSV_HEAD[2:])))
    return stream.getvalue()


def render(result: dict[str, Any], form: str) -> str:
    """The comparison in the form asked for."""
    if form == "json":
        return json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    if form == "csv":
        return as_csv(result)
    table = tables.markdown if form == "markdown" else tables.columns
    sides = [
        foreign.shown(result[key]) + (f", repeat {result[f'repeat_{key}']}" if result[f"repeat_{key}"] else "")
        for key in ("a", "b")
    ]
    lines = [f"first:  {sides[0]}", f"second: {sides[1]}"]
    for part in result["arms"]:
        lines += ["", *part_lines(part, table)]
    return "\n".join([*lines, *(f"warning: {line}" for line in result["warnings"])]) + "\n"
