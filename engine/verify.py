"""Verify a receipt or a run that somebody else made: offline, executing nothing of it, recomputing every figure.

All checks are run and reported, in this order; one that cannot be made says why:
 1 folder       regular files only, within bounds; links are refused
 2 hashes       SHA256SUMS and receipt.json name every file, each with its sha256
 3 documents    receipt, manifest, summary, settings and fixture are strict JSON of the right shape
 4 pins         inputs/ are the files the run was made with, as its manifest and its eval.json pin them
 5 code         pinned files that differ from the ones here are named; figures are recomputed all the same
 6 labels       pairs and gold labels are those of the fixture here, and the rules of scoring those of eval.json here
 7 conditions   complete; for a receipt also the whole test split, in as many repeats as frozen
 8 config_hash  the hash over everything that decides a request, worked out again
 9 rows         every row there once, in order, in the canonical form
10 settings     every row has the frozen request settings, the arm's identity and its provider
11 replies      what is recorded of each reply is what our recipe reads in it
12 scores       every scored row is its raw row, scored by our check from choices and gold label
13 sums         row totals, usage and cost add up
14 figures      every figure of summary.json, worked out again from the rows, equal at the stored precision
15 identities   different response ids, one served model an arm, no failed reply
16 times        within the run, not in the future, after the freeze that the receipt names
17 sameness     replies that repeat themselves over all repeats are reported
18 receipt      receipt.json says what the other files say
19 expected     figures given with --expect, at their printed precision
20 pinned code  with --run-pinned-code: the pinned recipe and check, in a process of their own, agree with ours
A check that rests on rows which an earlier check refuses is not checked, and says which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from types import SimpleNamespace
from typing import Any, NamedTuple

import audit
import evaluation as evaluations
import evidence
import foreign
import gates
import receipt as receipts
import summary as summaries

# === Constants ===

OK, FAIL, NOT_CHECKED = "ok", "FAIL", "not checked"
LISTED = 5
# What hostile values still can do behind the shape checks; anything else is a bug and keeps its traceback.
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError)
# Places of summary.json, as patterns, that an earlier version of the toolkit lacked or worded otherwise; a receipt made
# by it stays good. Whoever adds or rewords such a place adds it here: anything else that differs is a difference.
EARLIER: tuple[str, ...] = ()
FIGURE_CODE = ("agreement.py", "check.py", "engine/summary.py", "engine/verdicts.py", "engine/rows.py")
ROW_CHECKS = ("rows", "replies")  # figures rest on these
TOTAL_CHECKS = ("rows", "settings", "replies", "scores", "sums")  # receipt.json's totals rest on these
# Parts of receipt.json that are worked out from the rows.
FROM_ROWS = ("date", "eval.arms", "eval.pareto_release", "receipt.rows", "receipt.raw_rows", "receipt.scored_rows")
COST_TOLERANCE = 2e-6  # US dollars: totals are added up in the order of arrival, and rounded to six digits
DAY_S = 86_400.0


class Outcome(NamedTuple):
    """What one check found: 'ok', 'FAIL' or 'not checked', one line on it, and details."""

    status: str
    text: str
    lines: list[str]


class Check(NamedTuple):
    """One check as reported."""

    number: int
    name: str
    status: str
    text: str
    lines: list[str]


def passed(text: str, lines: list[str] | None = None) -> Outcome:
    return Outcome(OK, text, lines or [])


def failed(lines: list[str], text: str | None = None) -> Outcome:
    more = len(lines) - LISTED
    shown = lines[:LISTED] + ([f"… and {more} more"] if more > 0 else [])
    return Outcome(FAIL, text or f"{len(lines)} found", shown)


def not_checked(why: str, lines: list[str] | None = None) -> Outcome:
    return Outcome(NOT_CHECKED, why, lines or [])


def judged(lines: list[str], text: str) -> Outcome:
    """FAIL with the lines, or ok with the text when there are none."""
    return failed(lines) if lines else passed(text)


@dataclass
class State:
    """What the checks hand on to each other."""

    folder: foreign.Folder
    ours: Any  # the evaluation here
    now: float
    expected: list[tuple[str, str]] = field(default_factory=list)
    pinned: Callable[[State], Outcome] | None = None
    receipt: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None
    opened: foreign.Opened | None = None
    audit: audit.Audit | None = None
    fresh: dict[str, Any] | None = None
    done: dict[str, Check] = field(default_factory=dict)

    def refused(self, names: tuple[str, ...]) -> str | None:
        """Which of some earlier checks did not pass, as text."""
        bad = [self.done[name] for name in names if name in self.done and self.done[name].status != OK]
        return ", ".join(f"{check.number} {check.name}" for check in bad) or None


# === Compare figures ===


class Difference(NamedTuple):
    """One place where a stored result and a fresh one differ; kind: 'differs', 'lacks' or 'unknown'."""

    path: str
    kind: str
    expected: Any
    got: Any

    def line(self) -> str:
        if self.kind == "unknown":
            return f"{self.path}: is no figure of ours: {foreign.shown(self.got, 60)}"
        expected, got = foreign.shown(self.expected, 80), foreign.shown(self.got, 80)
        return f"{self.path}: expected {expected}, got {got if self.kind == 'differs' else 'nothing'}"


def differences(fresh: Any, stored: Any, path: str = "") -> Iterator[Difference]:
    """Every leaf where two JSON values differ. Numbers are equal when their stored digits are."""
    if isinstance(fresh, dict) and isinstance(stored, dict):
        for key in {**fresh, **stored}:
            inner = f"{path}.{foreign.shown(key, 60)}" if path else foreign.shown(key, 60)
            if key not in stored:
                yield Difference(inner, "lacks", fresh[key], None)
            elif key not in fresh:
                yield Difference(inner, "unknown", None, stored[key])
            else:
                yield from differences(fresh[key], stored[key], inner)
    elif isinstance(fresh, list) and isinstance(stored, list) and len(fresh) == len(stored):
        for place, (first, second) in enumerate(zip(fresh, stored)):
            yield from differences(first, second, f"{path}[{place}]")
    elif fresh != stored or isinstance(fresh, bool) != isinstance(stored, bool):
        yield Difference(path, "differs", fresh, stored)


def counted(count: int, word: str) -> str:
    """'1 arm', '2 arms'."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


# === 1 to 4: what is there ===


def check_folder(state: State) -> Outcome:
    size = sum(state.folder.files.values())
    return judged(state.folder.problems, f"{len(state.folder.files)} files, {size:,} bytes, no links")


def sums_of(folder: foreign.Folder) -> tuple[dict[str, str], list[str]]:
    """name -> sha256 as SHA256SUMS says, and what is wrong with its lines."""
    named: dict[str, str] = {}
    lines = []
    text = folder.read(receipts.SUMS).decode("utf-8", "backslashreplace")
    for number, line in enumerate(text.split("\n"), 1):
        digest, blank, name = line.partition("  ")
        if not line:
            continue
        if not blank or not foreign.HEX.fullmatch(digest) or name in named:
            lines.append(f"{receipts.SUMS}:{number}: expected a sha256, two blanks and a new name")
        else:
            named[name] = digest
    return named, lines


def check_hashes(state: State) -> Outcome:
    """SHA256SUMS and receipt.json; for a run the manifest's hash of the raw rows."""
    folder = state.folder
    if "receipt.json" not in folder and receipts.SUMS not in folder:
        return run_hashes(folder)
    named, lines = sums_of(folder)
    lines += foreign.hash_problems(folder, named, receipts.SUMS)
    lines += [
        f"{foreign.shown(n)}: {receipts.SUMS} does not name it"
        for n in foreign.unlisted(folder, named)
        if n != receipts.SUMS
    ]
    try:
        ours = folder.object("receipt.json").get("receipt")
        files = ours.get("files") if isinstance(ours, dict) else None
    except foreign.ForeignError:
        files = None
    if isinstance(files, dict):
        lines += [
            f"{foreign.shown(name)}: receipt.json names another sha256 than {receipts.SUMS}"
            for name in {**files, **named}
            if files.get(name) != named.get(name) and name != "receipt.json"
        ]
    lines += manifest_hash_problems(folder)
    return judged(lines, f"{len(named)} files as {receipts.SUMS} names them")


def run_hashes(folder: foreign.Folder) -> Outcome:
    """The hashes that a run's manifest has of its rows."""
    if folder.object("manifest.json").get("raw_sha256") is None:
        return not_checked("the run is not complete, so nothing names its rows yet")
    return judged(manifest_hash_problems(folder), "raw.jsonl.gz is the one that the manifest names")


def manifest_hash_problems(folder: foreign.Folder) -> list[str]:
    """Whether raw.jsonl.gz, packed and unpacked, is the one that the manifest names."""
    try:
        manifest = folder.object("manifest.json")
        found = {"raw_sha256": folder.sha256("raw.jsonl.gz"), "raw_rows_sha256": receipts.rows_sha256(folder)}
    except foreign.ForeignError as error:
        return [str(error)]
    return [
        f"raw.jsonl.gz: {name}: expected {foreign.shown(manifest[name])} (manifest.json), got {got}"
        for name, got in found.items()
        if name in manifest and manifest[name] != got
    ] + [f"manifest.json: field '{name}' is missing" for name in found if name not in manifest]


def check_documents(state: State) -> Outcome:
    """Read every document; what can be opened is handed on."""
    lines = []
    for name, kind in (("receipt.json", "receipt"), ("summary.json", "summary")):
        try:
            if name in state.folder or "receipt.json" in state.folder:
                setattr(state, kind, state.folder.object(name))
        except foreign.ForeignError as error:
            lines.append(str(error))
    if state.receipt is not None:
        lines += receipt_problems(state.receipt)
    try:
        state.opened = foreign.open_folder(state.folder)
    except (evidence.EvidenceError, evaluations.SettingError) as error:
        lines += [foreign.shown(line, 300) for line in str(error).split("\n")]
    return judged(
        lines, "receipt, manifest, summary, settings, fixture" if state.receipt else "manifest, settings, fixture"
    )


def receipt_problems(value: dict[str, Any]) -> list[str]:
    """What is wrong with the outer shape of receipt.json."""
    lines = foreign.field_problems(value, {"date": str, "result": str, "eval": dict, "receipt": dict}, "receipt.json")
    if lines:
        return lines
    schema, form = value["eval"].get("schema"), value["receipt"].get("format")
    if schema != receipts.SCHEMA:
        lines.append(f"receipt.json: field 'eval.schema': expected {receipts.SCHEMA}, got {foreign.shown(schema)}")
    if form != receipts.RECEIPT_FORMAT:
        lines.append(
            f"receipt.json: field 'receipt.format': expected {receipts.RECEIPT_FORMAT}, got {foreign.shown(form)}"
        )
    return lines


def check_pins(state: State) -> Outcome:
    opened = need(state)
    return judged(receipts.pin_problems(opened), f"{len(opened.manifest['hashes'])} pinned files as used")


class NeedsEarlier(Exception):
    """A check cannot be made because of an earlier one."""


def need(state: State) -> foreign.Opened:
    if state.opened is None:
        raise NeedsEarlier("rests on check 3 documents")
    return state.opened


def need_audit(state: State) -> audit.Audit:
    """The pass over the rows, made once."""
    opened = need(state)
    if opened.manifest["status"] != "complete":
        raise NeedsEarlier("the run is not complete")
    if state.audit is None:
        found = audit.Audit(opened, state.ours.recipe, state.ours.check.score)
        state.audit = found.run(scored="scored.jsonl.gz" in state.folder or opened.is_receipt)
    return state.audit


# === 5 to 8: what was judged ===


def differing_code(state: State) -> list[str]:
    """The pinned files that are not the ones here."""
    theirs, ours = need(state).manifest["hashes"], state.ours.hashes
    return sorted(name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name))


def check_code(state: State) -> Outcome:
    opened, differing = need(state), differing_code(state)
    notes = []
    if opened.manifest["slug"] != state.ours.slug:
        slug = foreign.shown(opened.manifest["slug"])
        notes.append(f"no evaluation {slug} here: read with recipe and check of {state.ours.slug}")
    if not differing:
        return passed("all pinned files are the ones here", notes)
    differing.sort(key=lambda name: name.startswith("engine/"))  # what decides requests and labels comes first
    names = ", ".join(foreign.shown(name, 60) for name in differing[:12]) + (" …" if len(differing) > 12 else "")
    return passed(f"{len(differing)} pinned files differ from the ones here: {names}; recomputed with ours", notes)


def rule_problems(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """One line for every rule of scoring in which two eval.json differ: figures by other rules are other figures."""
    here, there = summaries.rules_of(ours), summaries.rules_of(theirs)
    return [
        f"eval.json: field '{name}': expected {foreign.shown(here[name])} (eval.json here), "
        f"got {foreign.shown(there[name])}"
        for name in here
        if there[name] != here[name]
    ]


def check_labels(state: State) -> Outcome:
    """Each pair of the run against the pair of the same id in the fixture here, and the rules of scoring."""
    opened = need(state)
    if opened.manifest["slug"] != state.ours.slug:
        return not_checked(f"no evaluation {foreign.shown(opened.manifest['slug'])} here to compare with")
    lines = rule_problems(opened.config, state.ours.config)
    if "fixture.jsonl" not in state.ours.hashes:
        return failed(lines) if lines else not_checked("the fixture of this evaluation is not built here")
    if state.folder.sha256("inputs/fixture.jsonl") == state.ours.hashes["fixture.jsonl"]:
        return judged(lines, f"{len(opened.items)} pairs of the very fixture that is here")
    return judged(
        lines + pair_problems(opened.fixture, state.ours.items), f"{len(opened.items)} pairs, equal to those here"
    )


def pair_problems(theirs: Iterable[dict[str, Any]], ours: Any) -> list[str]:
    """One line for every pair that differs from the one of its id here. ours: the items here."""
    places = {item_id: place for place, item_id in enumerate(ours.ids)}
    lines = []
    for item in theirs:
        place = places.pop(item["item_id"], None)
        mine = None if place is None else ours[place]
        if mine is None:
            lines.append(f"{foreign.shown(item['item_id'], 60)}: is not in the fixture here")
        else:
            lines += [foreign.shown(f"{item['item_id']}: {found.line()}", 300) for found in differences(mine, item)]
    return lines + [f"{item_id}: is in the fixture here only" for item_id in places]


def check_conditions(state: State) -> Outcome:
    opened = need(state)
    manifest = opened.manifest
    lines = (
        []
        if manifest["status"] == "complete"
        else [f"status: expected complete, got {foreign.shown(manifest['status'])}"]
    )
    if manifest["items"] != len(opened.items):
        lines.append(f"items: expected {len(opened.items)}, got {manifest['items']}")
    if not opened.is_receipt:
        return judged(lines, "complete (a run: split, limit and repeats are free)")
    lines += [obstacle.text for obstacle in receipts.whole_obstacles(manifest, opened.config)]
    return judged(
        lines,
        f"complete, whole test split ({len(opened.items)} pairs), {counted(manifest['repeats'], 'repeat')} as frozen",
    )


def check_config_hash(state: State) -> Outcome:
    opened = need(state)
    evaluation = receipts.evaluation_of(opened)
    lines = []
    for arm in opened.arms:
        expected = evaluations.config_hash(evaluation, arm, opened.manifest["split"], opened.items.ids)
        got = opened.manifest["config_hash"][arm.name]
        if got != expected:
            lines.append(f"arm {foreign.shown(arm.name, 60)}: expected {expected}, got {foreign.shown(got)}")
    lines += outside_problems(opened)
    return judged(lines, counted(len(opened.arms), "arm"))


def outside_problems(opened: foreign.Opened) -> list[str]:
    """Whether each arm is what eval.json lists under its name, or said to be outside the list."""
    lines = []
    for arm in opened.arms:
        listed = opened.config["arms"].get(arm.name) == arm.settings
        if arm.frozen and not listed:
            lines.append(
                f"arm {foreign.shown(arm.name, 60)}: is not the one on the frozen list, and not said to be outside"
            )
    return lines


# === 9 to 13: rows ===


def row_check(name: str, text: str) -> Callable[[State], Outcome]:
    """A check that the pass over the rows has made."""

    def check(state: State) -> Outcome:
        found = need_audit(state)
        if found.findings.counts[name]:
            return Outcome(FAIL, f"{found.findings.counts[name]} found", found.findings.lines(name))
        return passed(text.format(rows=found.rows))

    return check


def check_scores(state: State) -> Outcome:
    found = need_audit(state).findings.lines("scores")
    if "scored.jsonl.gz" not in state.folder and not need(state).is_receipt:
        return not_checked("scored.jsonl.gz is not there; --rescore makes it")
    if state.refused(("rows",)):
        return not_checked(f"rests on check {state.refused(('rows',))}", found)
    return row_check("scores", "{rows} scored rows follow from choices and gold labels")(state)


def recomputed(state: State) -> dict[str, Any]:
    """The result worked out from the rows by our code, with the settings the stored one was made with."""
    if state.fresh is None:
        found, opened = need_audit(state), need(state)
        options = receipts.frozen_options() if opened.is_receipt else stored_options(state.summary or {}, opened.config)
        result = receipts.result_of(opened, found, state.ours, options)
        state.fresh = json.loads(evidence.pretty(result))  # as a file holds it: a key of None is "null"
    return state.fresh


def stored_options(summary: dict[str, Any], config: dict[str, Any]) -> Any:
    """The options that a run's summary was made with, as far as they are within bounds."""
    resamples = summary.get("bootstrap", {}).get("resamples")
    known = type(resamples) is int and 1 <= resamples <= foreign.MAX_RESAMPLES
    seed, level = summary.get("seed"), summary.get("bootstrap", {}).get("level")
    by = list(summary.get("by") or {})
    bca = any("bca" in arm["metrics"]["kappa"] for arm in summary.get("arms", {}).values() if "kappa" in arm["metrics"])
    return SimpleNamespace(
        seed=seed if type(seed) is int else None,
        bootstrap=resamples if known else None,
        level=100 * level if foreign.is_number(level, 1e-6, 1 - 1e-6) else None,
        bca=bca,
        by=",".join(by) if by and not set(by) <= set(summaries.dimensions_of(config, None)) else None,
    )


def result_differences(state: State, usage: bool) -> tuple[list[Difference], list[Difference]]:
    """(what does not match, what only the other version of the toolkit words or knows) of summary.json."""
    parts = ("usage", "cost_usd")
    fresh = {key: part for key, part in recomputed(state).items() if (key in parts) == usage}
    stored = {key: part for key, part in (state.summary or {}).items() if (key in parts) == usage}
    other_code = any(name in FIGURE_CODE for name in differing_code(state))
    wrong: list[Difference] = []
    other: list[Difference] = []
    for found in differences(fresh, stored):
        known = other_code and any(re.fullmatch(place, found.path) for place in EARLIER)
        (other if known else wrong).append(found)
    return wrong, other


def compared(state: State, usage: bool, text: str) -> Outcome:
    """A part of summary.json against the recomputed one; not checked when the rows do not stand."""
    need_audit(state)
    if state.summary is None:
        return not_checked("summary.json is not there; --rescore makes it")
    wrong, other = result_differences(state, usage)
    bad = state.refused(ROW_CHECKS)
    if bad:
        return not_checked(f"rests on check {bad}; {len(wrong)} figures differ from these rows")
    if wrong:
        return failed([found.line() for found in wrong])
    notes = [f"not in both versions of the toolkit: {found.path}" for found in other[:LISTED]]
    return passed(text, notes)


def check_sums(state: State) -> Outcome:
    """Totals of each row, and usage and cost over all of them."""
    found = need_audit(state)
    lines = found.findings.lines("sums")
    if not state.refused(ROW_CHECKS):
        lines += totals_problems(state)
    return failed(lines) if lines else compared(state, True, "row totals, usage and cost add up")


def totals_problems(state: State) -> list[str]:
    """The manifest's totals, added up while the replies came in, against those of the rows.

    Retries are left out: those of calls that failed and were asked again stand in the totals and in no row.
    """
    opened, result = need(state), recomputed(state)
    totals = opened.manifest.get("totals")  # of the right form, or the documents had been refused
    if totals is None:
        return ["manifest.json: field 'totals' is missing"] if opened.is_receipt else []
    lines = [
        f"manifest.json: totals: {foreign.shown(name, 60)} is no arm" for name in totals if name not in result["arms"]
    ]
    for name, arm in result["arms"].items():
        said, cost = totals.get(name, {}), result["cost_usd"][name]["value"]
        label = f"manifest.json: totals.{foreign.shown(name, 60)}"
        served = {model: count for model, count in arm["served_models"].items() if model != "not said"}
        fresh = {**arm["replies"], "served_models": served}
        lines += [f"{label}.{key}: is missing" for key in (*fresh, "cost_usd") if key not in said]
        for key in (key for key in fresh if key in said):
            lines += [each.line() for each in differences(fresh[key], said[key], f"{label}.{key}")]
        if "cost_usd" in said and not abs(said["cost_usd"] - cost) <= COST_TOLERANCE:
            lines.append(f"{label}.cost_usd: expected {cost:.6f}, got {foreign.shown(said['cost_usd'], 40)}")
    return lines


def leaves(value: Any) -> int:
    """How many numbers a nested result holds."""
    if isinstance(value, dict):
        return sum(leaves(part) for part in value.values())
    if isinstance(value, list):
        return sum(leaves(part) for part in value)
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def check_figures(state: State) -> Outcome:
    return compared(state, False, f"{leaves(state.summary):,} figures, worked out again from the rows")


# === 15 to 18 ===


def check_identities(state: State) -> Outcome:
    found = need_audit(state)
    lines = [line for check in ("ids", "models", "failed") for line in found.findings.lines(check)]
    notes = []
    for name, served in found.models.items():
        if len(served) > 1:
            names = ", ".join(foreign.shown(model, 60) for model in served)
            lines.append(f"arm {name}: expected one served model, got {names}")
        if found.without_id[name]:
            notes.append(f"arm {name}: {found.without_id[name]} replies came without an id")
        pattern = found.settings[name].get("response_model")
        if pattern is not None and found.patterns[name] is None:
            notes.append(f"arm {name}: its model pattern is too intricate to be tried")
    if lines:
        return failed(lines)
    total = sum(len(ids) for ids in found.ids.values())
    return passed(f"{total} different response ids, one served model an arm, no failed reply", notes)


def check_times(state: State) -> Outcome:
    found, manifest = need_audit(state), need(state).manifest
    lines = found.findings.lines("times")
    start, end = manifest["started_at"], manifest.get("ended_at")
    if found.span is None or found.span[0] > found.span[1]:
        lines.append(
            f"manifest.json: started_at, ended_at: expected two times in order, got {foreign.shown([start, end])}"
        )
    elif str(end) > evidence.utc_stamp(state.now + DAY_S):
        lines.append(f"manifest.json: ended_at: {end} is in the future")
    freeze = (state.receipt or {}).get("receipt", {}).get("freeze")
    committed = freeze.get("committed_at") if isinstance(freeze, dict) else None
    if committed is None:
        return judged(lines, "within the run; it names no freeze commit to compare with")
    if audit.moment_of(committed) is None or (found.first and found.first <= committed):
        lines.append(f"freeze of {foreign.shown(committed)}: expected before the first row, of {found.first}")
    commit = foreign.shown(freeze.get("commit"), 60)
    return judged(lines, f"within the run, after its freeze {commit} of {committed} (as the receipt says)")


def check_sameness(state: State) -> Outcome:
    """Reported, never refused: a judge may well be that constant, and a cache looks like one."""
    found = need_audit(state)
    notes = []
    for name in found.names:
        replies = sum(found.reasons[name].values())
        if found.repeats > 1 and not found.varied[name]:
            notes.append(
                f"arm {foreign.shown(name, 60)}: every reply has the same words in all {found.repeats} repeats"
            )
        if replies:
            reason, count = found.reasons[name].most_common(1)[0]
            if count * 2 > replies > 2:
                notes.append(f"arm {foreign.shown(name, 60)}: {count} of {replies} reasons are the same: {reason}")
    if found.repeats == 1 and not notes:
        return passed("one repeat: there is nothing that could repeat itself")
    return passed("see below" if notes else "replies vary over the repeats", notes)


def two_files_line(found: Difference) -> str:
    """One difference; a figure stands in two files, and which of them is wrong is for check 14 to say."""
    if not found.path.startswith("receipt.figures.") or found.kind != "differs":
        return found.line()
    values = foreign.shown(found.got, 80), foreign.shown(found.expected, 80)
    return f"{found.path}: receipt.json says {values[0]}, summary.json says {values[1]}"


def check_receipt(state: State) -> Outcome:
    """receipt.json against the document that our code makes of the other files."""
    if not need(state).is_receipt:
        return not_checked("a run, not a receipt")
    found, value = need_audit(state), state.receipt
    if value is None or state.summary is None or not isinstance(value.get("receipt"), dict):
        raise NeedsEarlier("rests on check 3 documents")
    ours = value["receipt"]
    freeze = receipts.Freeze(*[dict(ours["freeze"]).get(key) for key in receipts.Freeze._fields])
    fresh = receipts.document(
        need(state),
        found,
        state.summary,
        dict(ours["files"]),
        freeze,
        pending=value["eval"].get("baseline_status") == "pending",
        raw_rows_sha256=receipts.rows_sha256(state.folder),
        scored_rows_sha256=receipts.rows_sha256(state.folder, "scored.jsonl.gz"),
    )
    wrong = list(differences(fresh, value))
    bad = state.refused(TOTAL_CHECKS)
    rest = [found for found in wrong if not (bad and found.path.startswith(FROM_ROWS))]
    if rest:
        return failed([two_files_line(found) for found in rest])
    if bad:
        return not_checked(f"its totals rest on check {bad}; all else is as the files say")
    return passed("schema 2 fields, hashes, identities and figures as the other files say")


# === 19, 20: on request ===


def decimals(text: str) -> int:
    return len(text.partition(".")[2]) if "." in text else 0


def matches(value: object, printed: str) -> bool:
    """Whether a figure rounds to what is printed, at the printed number of digits."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    half = Decimal(5).scaleb(-decimals(printed) - 1)
    return abs(Decimal(repr(value)) - Decimal(printed)) <= half + Decimal("1e-9")


def parse_expected(texts: list[str]) -> list[tuple[str, str]]:
    """'kappa=0.6154' as (name, printed number). Raises: ValueError naming the text."""
    found = []
    for text in texts:
        name, _, printed = text.partition("=")
        try:
            good = Decimal(printed).is_finite() and len(printed) <= foreign.MAX_NUMBER and "e" not in printed.lower()
        except InvalidOperation:
            good = False
        if not name or not good:
            raise ValueError(f"--expect: expected FIGURE=NUMBER, e.g. kappa=0.6154, got {text!r}")
        found.append((name.strip(), printed.strip()))
    return found


def figure(result: dict[str, Any], name: str) -> tuple[Any, str | None]:
    """(a figure by name, or None and why). name: metric, arm.metric, arm:metric, or a dotted path of summary.json.

    A metric may have the name that it has in the tables.
    """
    arms = {arm: figures_of(result, arm) for arm in result["arms"]}
    who, _, metric = name.rpartition(":")
    name = gates.ALIASES.get(name, name) if not who else name
    name = f"{who}.{gates.ALIASES.get(metric, metric)}" if who in arms else name
    if any(name in found for found in arms.values()):
        if len(arms) > 1:
            return None, f"name the judge too: {', '.join(f'{foreign.shown(arm, 60)}.{name}' for arm in arms)}"
        return next(iter(arms.values()))[name], None
    for arm, found in arms.items():
        if name.startswith(f"{arm}.") and name[len(arm) + 1 :] in found:
            return found[name[len(arm) + 1 :]], None
    value: Any = result
    for part in name.split("."):
        if isinstance(value, list) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        return value, None
    known = ", ".join(dict.fromkeys(metric for found in arms.values() for metric in found))
    judges = f" of {', '.join(foreign.shown(arm, 60) for arm in arms)}, as JUDGE.FIGURE" if len(arms) > 1 else ""
    return None, f"there is no such figure; there are {known}{judges}, and paths of summary.json"


def figures_of(result: dict[str, Any], arm: str) -> dict[str, Any]:
    """metric -> value of one arm; `published` has the figures whose definition is the published page's."""
    found = {metric: part["value"] for metric, part in result["arms"][arm]["metrics"].items()}
    for metric, part in result.get("repeats", {}).get(arm, {}).items():
        if isinstance(part, dict) and "value" in part:
            found[metric] = part["value"]
    return {**found, **result.get("published", {}).get(arm, {})}


def expected_lines(result: dict[str, Any], expected: list[tuple[str, str]]) -> list[str]:
    """One line for each expected figure that the result does not have at its printed precision."""
    lines = []
    for name, printed in expected:
        value, why = figure(result, name)
        if why is not None or not matches(value, printed):
            lines.append(f"{foreign.shown(name)}: expected {printed}, got {why or foreign.shown(value)}")
    return lines


def check_expected(state: State) -> Outcome:
    if not state.expected:
        return not_checked("no --expect given")
    return judged(
        expected_lines(recomputed(state), state.expected), f"{counted(len(state.expected), 'figure')} as expected"
    )


def check_pinned_code(state: State) -> Outcome:
    if state.pinned is None:
        return not_checked("nothing of a receipt is executed without --run-pinned-code")
    need_audit(state)
    return state.pinned(state)


CHECKS: tuple[tuple[str, Callable[[State], Outcome]], ...] = (
    ("folder", check_folder),
    ("hashes", check_hashes),
    ("documents", check_documents),
    ("pins", check_pins),
    ("code", check_code),
    ("labels", check_labels),
    ("conditions", check_conditions),
    ("config_hash", check_config_hash),
    ("rows", row_check("rows", "{rows} rows, each there once, in order")),
    ("settings", row_check("settings", "{rows} rows with the frozen settings and their arm's identity")),
    ("replies", row_check("replies", "{rows} rows say what their kept replies say")),
    ("scores", check_scores),
    ("sums", check_sums),
    ("figures", check_figures),
    ("identities", check_identities),
    ("times", check_times),
    ("sameness", check_sameness),
    ("receipt", check_receipt),
    ("expected", check_expected),
    ("pinned code", check_pinned_code),
)


# === Run all checks ===


def guarded(check: Callable[[Any], Outcome], state: Any) -> Outcome:
    """One check; evidence that no shape check foresaw is a FAIL that says so, never a traceback."""
    try:
        return check(state)
    except NeedsEarlier as error:
        return not_checked(str(error))
    except (evidence.EvidenceError, evaluations.SettingError) as error:
        return failed([foreign.shown(line, 300) for line in str(error).split("\n")])
    except MALFORMED as error:
        return failed([f"malformed evidence: {type(error).__name__}: {foreign.shown(str(error))}"])


def run_checks(state: Any, checks: tuple[tuple[str, Callable[[Any], Outcome]], ...]) -> list[Check]:
    """All checks in their order."""
    for number, (name, check) in enumerate(checks, 1):
        state.done[name] = Check(number, name, *guarded(check, state))
    return list(state.done.values())


def verify(path: str, ours: Any, now: float, expected: list[tuple[str, str]], pinned: Any = None) -> State:
    """Verify a receipt or run of ours; `done` of the state returned holds all checks. Raises: ForeignError."""
    state = State(foreign.Folder(path), ours, now, expected, pinned)
    run_checks(state, CHECKS)
    return state


# === Report ===


def summary_line(checks: list[Check]) -> str:
    counts = {status: sum(check.status == status for check in checks) for status in (OK, FAIL, NOT_CHECKED)}
    verdict = "FAIL" if counts[FAIL] else "ok"
    return f"{verdict}: {counts[OK]} checks ok, {counts[FAIL]} failed, {counts[NOT_CHECKED]} not checked"


def render(title: str, checks: list[Check], more: list[str]) -> str:
    """The report for people, the verdict in its last line."""
    width = max(len(check.name) for check in checks)
    lines = [title]
    for check in checks:
        lines.append(f"{check.number:>2} {check.status:<11} {check.name:<{width}}  {check.text}")
        lines += [f"{'':15}{line}" for line in check.lines]
    return "\n".join([*lines, *more, summary_line(checks)]) + "\n"


def as_json(title: str, checks: list[Check], figures: Any) -> dict[str, Any]:
    """The report for programs."""
    return {
        "verified": title,
        "result": "FAIL" if any(check.status == FAIL for check in checks) else "ok",
        "checks": [check._asdict() for check in checks],
        "figures": figures,
    }
