"""Verify evidence in the published format: a schema 2 receipt with its scored rows, fixture, eval.json and recipe.

Files are found by their hash within the given folder; no path that stands in the receipt is opened. All checks are run:
 1 folder       regular files only, within bounds; links are refused
 2 receipt      receipt.json has schema 2's fields, each of its kind
 3 files        fixture, eval.json, recipe, checker and evidence are there, by hash, and pinned
 4 settings     what receipt.json copies from eval.json and counts in the fixture is so
 5 conditions   both arms (one while pending), whole test split, repeats as configured
 6 rows         every row there once, in order, in the canonical form, with no other key
 7 identity     every row has the frozen request settings and its arm's endpoint, model and provider
 8 scores       every score follows from choices and gold label, by our check
 9 totals       tokens, errors, retries, cut replies and response ids of each repeat add up
10 identities   different response ids, one served model an arm, the one the receipt names
11 times        plausible, and the receipt's date is the day of the last row
12 sameness     in each arm at least one pair was answered in other words in another repeat
13 figures      worked out from the rows; with --expect compared at their printed precision
14 replies      not checked: the published rows do not hold them
15 freeze       not checked: needs the publisher's repository
16 pinned code  with --run-pinned-code: the pinned recipe and checker agree with ours
17 labels       pairs and gold labels are those of an evaluation of this name here, where there is one
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from types import SimpleNamespace
from typing import Any

import agreement
import audit
import evaluation as evaluations
import evidence
import fixtures
import foreign
import receipt as receipts
import rows
import summary as summaries
import verdicts
import verify as verifying

# === Constants ===

RUN_FORMAT = "uc-eval-run-v1"
CHOICES = ("A", "B", "equal", "invalid")
SCORES = ("gold", "prediction", "secondary")
# What the published runner allows of its two arms.
ARMS: dict[str, dict[str, str]] = {
    "pareto": {
        "model": "pareto",
        "endpoint": "https://api.unbiased.ai/v1",
        "served": r"pareto-\d{2}\.\d{1,2}",
        "provider": "Unbiased",
    },
    "baseline": {
        "model": "gpt-6.1-sol",
        "endpoint": "https://api.openai.com/v1",
        "served": r"gpt-6\.1-sol(-\d{4}-\d{2}-\d{2})?",
        "provider": "OpenAI",
    },
}
EVAL_FIELDS: dict[str, Any] = {
    "schema": int,
    "runner": str,
    "fixture": dict,
    "prompt_sha256": str,
    "recipe_sha256": str,
    "eval_json_sha256": str,
    "repeats": int,
    "aggregation": str,
    "headline": dict,
    "secondary": list,
    "arms": dict,
    "variants": dict,
    "raw": dict,
}
COPIED = ("repeats", "seed", "unit", "aggregation", "headline", "secondary")
ROW_SHAPE = {key: kinds for key, kinds in rows.ROW_SHAPE.items() if key != "replies"}
SCORE_SHAPE: dict[str, tuple[type, ...]] = {"gold": rows.ANY, "prediction": rows.ANY, "secondary": (dict,)}

Outcome = verifying.Outcome
NeedsEarlier = verifying.NeedsEarlier
judged, not_checked = verifying.judged, verifying.not_checked


@dataclass
class State:
    """What the checks hand on to each other."""

    folder: foreign.Folder
    ours: Any
    now: float
    expected: list[tuple[str, str]]
    pinned: Callable[[Any], Outcome] | None
    by_hash: dict[str, str] = field(default_factory=dict)
    receipt: dict[str, Any] | None = None  # the object under `eval`
    date: str = ""
    config: dict[str, Any] | None = None
    fixture: fixtures.Items | None = None
    items: fixtures.Items | None = None
    evidence: str | None = None  # name of the scored rows' file
    read: Rows | None = None
    fresh: dict[str, Any] | None = None
    done: dict[str, verifying.Check] = field(default_factory=dict)


def needed(value: Any, check: str) -> Any:
    if value is None:
        raise NeedsEarlier(f"rests on check {check}")
    return value


# === 1 to 5: documents ===


def receipt_name(folder: foreign.Folder) -> str | None:
    """The receipt of a folder: receipt.json itself, or the only file of that name below."""
    names = [name for name in folder.files if name.rpartition("/")[2] == "receipt.json"]
    return "receipt.json" if "receipt.json" in names else names[0] if len(names) == 1 else None


def check_folder(state: State) -> Outcome:
    return verifying.check_folder(state)  # type: ignore[arg-type]


def check_receipt(state: State) -> Outcome:
    name = receipt_name(state.folder)
    if name is None:
        return verifying.failed(["receipt.json: expected one in the folder, got none or several"])
    value = state.folder.object(name)
    lines = foreign.field_problems(value, {"date": str, "result": str, "eval": dict}, name)
    if lines:
        return verifying.failed(lines)
    found = value["eval"]
    lines = foreign.field_problems(found, EVAL_FIELDS, f"{name}: eval")
    if not lines and found["schema"] != receipts.SCHEMA:
        lines.append(f"{name}: field 'eval.schema': expected {receipts.SCHEMA}, got {found['schema']}")
    if value["result"] != "pass":
        lines.append(f"{name}: field 'result': expected pass, got {foreign.shown(value['result'])}")
    if found.get("baseline_status", "pending") != "pending":
        lines.append(f"{name}: field 'baseline_status': expected pending or nothing")
    if not lines:
        lines += arm_shape_problems(found, name)
        state.receipt, state.date = found, value["date"]
    return judged(lines, f"schema 2, {len(found['arms'])} arms")


def arm_shape_problems(found: dict[str, Any], name: str) -> list[str]:
    lines = []
    for arm, entry in found["arms"].items():
        if not isinstance(entry, dict) or not isinstance(entry.get("runs"), list):
            lines.append(f"{name}: arms.{foreign.shown(arm, 60)}: expected an object with runs")
    if not 1 <= found["repeats"] <= foreign.MAX_REPEATS:
        lines.append(f"{name}: field 'repeats': expected 1 to {foreign.MAX_REPEATS}, got {found['repeats']}")
    return lines


def check_files(state: State) -> Outcome:
    """Each file the receipt names by hash, and the pins in eval.json."""
    receipt = needed(state.receipt, "2 receipt")
    state.by_hash = {state.folder.sha256(name): name for name in sorted(state.folder.files)}
    wanted = {
        "fixture": receipt["fixture"].get("sha256"),
        "eval.json": receipt["eval_json_sha256"],
        "recipe": receipt["recipe_sha256"],
        "scored rows": receipt["raw"].get("sha256"),
    }
    lines = [
        f"{what}: no file here has sha256 {foreign.shown(digest)}"
        for what, digest in wanted.items()
        if not isinstance(digest, str) or digest not in state.by_hash
    ]
    if wanted["eval.json"] in state.by_hash:
        state.config = state.folder.object(state.by_hash[wanted["eval.json"]])
        lines += pin_lines(state, wanted)
    if wanted["fixture"] in state.by_hash:
        name = state.by_hash[wanted["fixture"]]
        state.fixture = foreign.load_fixture(state.folder.read(name), name)
        state.items = fixtures.select(state.fixture, "test", None, None)
    state.evidence = state.by_hash.get(wanted["scored rows"])
    return judged(lines, "fixture, eval.json, recipe, checker and scored rows, found by hash")


def pin_lines(state: State, wanted: dict[str, Any]) -> list[str]:
    """Whether eval.json pins the same fixture and recipe, and its checker is here; its runner need not be."""
    config, lines = needed(state.config, "3 files"), []
    for key, what in (("fixture_sha256", "fixture"), ("recipe_sha256", "recipe")):
        if config.get(key) != wanted[what]:
            lines.append(
                f"eval.json: {key}: expected {foreign.shown(wanted[what])}, got {foreign.shown(config.get(key))}"
            )
    if config.get("checker_sha256") not in state.by_hash:
        lines.append(f"checker: no file here has sha256 {foreign.shown(config.get('checker_sha256'))}")
    return lines


def check_settings(state: State) -> Outcome:
    receipt, config = needed(state.receipt, "2 receipt"), needed(state.config, "3 files")
    fixture = needed(state.fixture, "3 files")
    lines = [] if isinstance(config.get("prompt"), str) else ["eval.json: field 'prompt' is missing"]
    prompt = evidence.sha256(evidence.encode(str(config.get("prompt"))))
    splits = Counter(item["split"] for item in fixture)
    expected: dict[str, Any] = {key: config.get(key) for key in COPIED}
    expected.update(variants=config.get("variants", {}), prompt_sha256=prompt)
    got = {key: receipt.get(key) for key in expected}
    counted = {"items": splits["test"], "dev_items": splits["dev"], "split": "test"}
    source = config.get("fixture_source")
    source = source if isinstance(source, dict) else {}
    expected["fixture"] = {**source, **counted}
    got["fixture"] = {key: part for key, part in receipt["fixture"].items() if key not in ("path", "sha256")}
    lines += [f"receipt.json: {found.line()}" for found in verifying.differences(expected, got)]
    lines += foreign.config_problems({**config, "arms": {}}, "eval.json")
    return judged(lines, "as eval.json and the fixture say")


def check_conditions(state: State) -> Outcome:
    receipt, config = needed(state.receipt, "2 receipt"), needed(state.config, "3 files")
    pending = receipt.get("baseline_status") == "pending"
    wanted, lines = ["pareto"] if pending else ["baseline", "pareto"], []
    if list(receipt["arms"]) != wanted:
        lines.append(f"arms: expected {', '.join(wanted)}, got {foreign.shown(list(receipt['arms']))}")
    if receipt["repeats"] != config.get("repeats") or receipt["repeats"] < 3:
        got = f"{receipt['repeats']} (eval.json: {foreign.shown(config.get('repeats'))})"
        lines.append(f"repeats: expected as configured, and 3 or more, got {got}")
    return judged(
        lines, f"{' and '.join(receipt['arms'])}, {receipt['repeats']} repeats" + (", pending" if pending else "")
    )


# === Rows ===


class Rows:
    """One pass over the published scored rows: findings by check, and what the totals are made of."""

    def __init__(self, state: State) -> None:
        receipt = needed(state.receipt, "2 receipt")
        self.config, self.items = needed(state.config, "3 files"), needed(state.items, "3 files")
        self.check = state.ours.check.score
        self.names = [name for name in ("pareto", "baseline") if name in receipt["arms"]] or list(receipt["arms"])
        self.repeats = receipt["repeats"]
        self.findings = audit.Findings()
        self.places = {item_id: place for place, item_id in enumerate(self.items.ids)}
        if len(self.items) * self.repeats * len(self.names) > foreign.MAX_ROWS:
            raise foreign.ForeignError(f"more than {foreign.MAX_ROWS} rows")
        self.seen: set[tuple[int, int, int]] = set()
        self.last = [(-1, -1, -1), (-1, -1, -1)]  # in the two orders that published evidence comes in
        self.in_order = [True, True]
        self.tables = {name: verdicts.ArmTable(len(self.items), self.repeats) for name in self.names}
        self.sums = {name: [audit.RepeatSums() for _ in range(self.repeats)] for name in self.names}
        self.ids: set[tuple[str, str]] = set()
        self.models: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.providers: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        self.words: dict[tuple[str, int], set[bytes]] = {}
        self.latest = ""
        self.count = 0
        self.scores: dict[str, dict[str, dict[int, list[Any]]]] = {name: {} for name in self.names}

    def read(self, folder: foreign.Folder, name: str) -> Rows:
        try:
            for number, line, row in folder.rows(name):
                self.count += 1
                self.row(f"{foreign.shown(name)}:{number}", line, row)
        except foreign.ForeignError as error:
            self.findings.add("rows", str(error))
        if not any(self.in_order):
            self.findings.add("rows", "rows are out of order (repeat, then pair, then arm; or arm after arm)")
        wanted = len(self.items) * self.repeats * len(self.names)
        if len(self.seen) < wanted:
            self.findings.add(
                "rows", f"{wanted - len(self.seen)} of {wanted} rows are missing; first {self.first_missing()}"
            )
        return self

    def first_missing(self) -> str:
        for repeat in range(1, self.repeats + 1):
            for place, item_id in enumerate(self.items.ids):
                for arm, name in enumerate(self.names):
                    if (repeat, place, arm) not in self.seen:
                        return f"{item_id} {name} repeat {repeat}"
        return "none"

    def row(self, where: str, line: bytes, row: dict[str, Any]) -> None:
        problems = row_problems(row)
        if not problems and (row["item_id"] not in self.places or row["arm"] not in self.names):
            problems = [f"not of this run: {row['item_id']} {row['arm']}"]
        if not problems and not 1 <= row["repeat"] <= self.repeats:
            problems = [f"repeat: expected 1 to {self.repeats}, got {row['repeat']}"]
        if problems:
            for text in problems:
                self.findings.add("rows", f"{where}: {text}")
            return
        where = f"{where}: {row['item_id']} {row['arm']} repeat {row['repeat']}"
        if self.take_place(where, row):
            if evidence.row_bytes(row) != line:
                self.findings.add("rows", f"{where}: not written in the canonical form")
            self.identity(where, row)
            self.score(where, row)
            self.collect(where, row)

    def take_place(self, where: str, row: dict[str, Any]) -> bool:
        """Whether a row stands here for the first time; notes whether it is in order."""
        place, arm = self.places[row["item_id"]], self.names.index(row["arm"])
        key = (row["repeat"], place, arm)
        if key in self.seen:
            self.findings.add("rows", f"{where}: row stands twice")
            return False
        self.seen.add(key)
        for number, rank in enumerate((key, (arm, row["repeat"], place))):
            self.in_order[number] = self.in_order[number] and rank > self.last[number]
            self.last[number] = rank
        return True

    def identity(self, where: str, row: dict[str, Any]) -> None:
        """Frozen settings, and what the runner allows of the arm."""
        wanted: dict[str, Any] = {
            key: self.config.get(key) for key in ("reasoning_effort", "max_tokens", "tool_choice")
        }
        wanted.update(allow_fallbacks=False, errors=0)
        allowed = ARMS.get(row["arm"])
        if allowed is not None:
            wanted.update(
                request_model=allowed["model"], endpoint=allowed["endpoint"], provider_served=allowed["provider"]
            )
            if not re.fullmatch(allowed["served"], str(row["response_model"])[: audit.MAX_PATTERN]):
                got = foreign.shown(row["response_model"], 60)
                self.findings.add("identity", f"{where}: response_model: expected {allowed['served']}, got {got}")
        for key, value in wanted.items():
            if row[key] != value:
                expected, got = foreign.shown(value, 60), foreign.shown(row[key], 60)
                self.findings.add("identity", f"{where}: {key}: expected {expected}, got {got}")
        if row["invalid_tool_calls"] > 1 or (
            row["invalid_tool_calls"] and row["tool_arguments"]["swapped"]["choice"] != "invalid"
        ):
            self.findings.add("identity", f"{where}: invalid_tool_calls: the last call's choice is valid")

    def score(self, where: str, row: dict[str, Any]) -> None:
        item = self.items[self.places[row["item_id"]]]
        fresh = self.check(item, row["tool_arguments"], self.config)
        for key in SCORES:
            if row[key] != fresh[key]:
                expected, got = foreign.shown(fresh[key], 80), foreign.shown(row[key], 80)
                self.findings.add("scores", f"{where}: {key}: expected {expected}, got {got}")

    def collect(self, where: str, row: dict[str, Any]) -> None:
        name, place = row["arm"], self.places[row["item_id"]]
        self.sums[name][row["repeat"] - 1].add(row)
        if (name, row["response_id"]) in self.ids:
            self.findings.add("ids", f"{where}: response id {foreign.shown(row['response_id'], 60)} stands twice")
        self.ids.add((name, row["response_id"]))
        self.models[name][str(row["response_model"])] += 1
        self.words.setdefault((name, place), set()).add(evidence.canonical(row["tool_arguments"]))
        table = self.tables[name]
        for order in evaluations.ORDERS:
            choice = row["tool_arguments"][order]["choice"]
            table.set(row["repeat"], place, order, choice)
            table.replies["invalid" if choice == "invalid" else "ok"] += 1
        for metric in ("position_consistency", "valid_output"):
            score = object_part(row["secondary"], metric).get("score")
            if type(score) in (int, float):
                self.scores[name].setdefault(metric, {}).setdefault(place, []).append(score)
        if audit.moment_of(row["started_at"]) is None:
            self.findings.add(
                "times", f"{where}: started_at: {foreign.shown(row['started_at'], 60)} is no UTC time stamp"
            )
        else:
            self.latest = max(self.latest, row["started_at"])


def object_part(value: Any, key: str) -> dict[str, Any]:
    part = value.get(key) if isinstance(value, dict) else None
    return part if isinstance(part, dict) else {}


def row_problems(row: dict[str, Any]) -> list[str]:
    """What is wrong with the shape of one published scored row."""
    lines = rows.shape_problems(row, {**ROW_SHAPE, **SCORE_SHAPE}, {}, "")
    if lines:
        return lines
    said = row["tool_arguments"]
    for order in evaluations.ORDERS:
        part = said.get(order)
        if not isinstance(part, dict) or set(part) != {"choice", "reason"} or part["choice"] not in CHOICES:
            lines.append(f"tool_arguments.{order}: expected choice {', '.join(CHOICES)} and reason")
    if set(said) != set(evaluations.ORDERS):
        lines.append("tool_arguments: expected original and swapped")
    counts = row["tokens"]
    if set(counts) != set(rows.TOKEN_KINDS) or not all(rows.token_count(part) is not None for part in counts.values()):
        lines.append("tokens: expected input, output, cached and reasoning as counts")
    elif counts["cached"] > counts["input"] or counts["reasoning"] > counts["output"]:
        lines.append("tokens: more cached than input, or more reasoning than output")
    return lines


def read_rows(state: State) -> Rows:
    """The pass over the rows, made once."""
    if state.read is None:
        name = needed(state.evidence, "3 files")
        state.read = Rows(state).read(state.folder, name)
    return state.read


def row_check(name: str, text: str) -> Callable[[State], Outcome]:
    def check(state: State) -> Outcome:
        found = read_rows(state)
        if found.findings.counts[name]:
            return Outcome(verifying.FAIL, f"{found.findings.counts[name]} found", found.findings.lines(name))
        return verifying.passed(text.format(rows=found.count))

    return check


def rest_on(state: State, names: tuple[str, ...]) -> None:
    """Raises: NeedsEarlier when one of some earlier checks did not pass."""
    bad = [state.done[name] for name in names if state.done[name].status != verifying.OK]
    if bad:
        raise NeedsEarlier("rests on check " + ", ".join(f"{check.number} {check.name}" for check in bad))


def check_scores(state: State) -> Outcome:
    if needed(state.config, "3 files").get("aggregation") != "majority_label":
        return not_checked("our check scores labels only")
    return row_check("scores", "{rows} rows scored again by our check")(state)


# === 9 to 13 ===


def check_totals(state: State) -> Outcome:
    found, receipt = read_rows(state), needed(state.receipt, "2 receipt")
    rest_on(state, ("rows",))
    lines = []
    for name in found.names:
        fresh = [sums.as_dict(repeat) for repeat, sums in enumerate(found.sums[name], 1)]
        for difference in verifying.differences(fresh, receipt["arms"][name]["runs"], f"arms.{name}.runs"):
            lines.append(difference.line())
    return judged(lines, "each repeat of each arm")


def check_identities(state: State) -> Outcome:
    found, receipt = read_rows(state), needed(state.receipt, "2 receipt")
    lines = found.findings.lines("ids")
    for name in found.names:
        entry, served = receipt["arms"][name], list(found.models[name])
        named = entry.get("response_model", receipt.get("pareto_release")) if name == "pareto" else None
        if (
            len(served) != 1
            or (named is not None and served != [named])
            or (name == "pareto" and receipt.get("pareto_release") != named)
        ):
            lines.append(f"arm {name}: served model: expected {foreign.shown(named)}, got {foreign.shown(served)}")
        allowed = ARMS.get(name, {})
        expected = {
            "model": allowed.get("model"),
            "endpoint": allowed.get("endpoint"),
            "max_tokens": found.config.get("max_tokens"),
        }
        if name == "baseline":
            expected.update(provider_served=allowed["provider"], reasoning_effort=found.config.get("reasoning_effort"))
        got = {key: entry.get(key) for key in expected}
        lines += [f"arms.{name}.{difference.line()}" for difference in verifying.differences(expected, got)]
    return judged(lines, f"{len(found.ids)} different response ids, one served model an arm")


def check_times(state: State) -> Outcome:
    found = read_rows(state)
    rest_on(state, ("rows",))
    lines = found.findings.lines("times")
    if found.latest > evidence.utc_stamp(state.now + verifying.DAY_S):
        lines.append(f"the last row, of {found.latest}, is in the future")
    if state.date != found.latest[:10]:
        lines.append(f"receipt.json: date: expected {found.latest[:10]}, got {foreign.shown(state.date)}")
    return judged(lines, f"last row of {found.latest}")


def check_sameness(state: State) -> Outcome:
    found, lines = read_rows(state), []
    for name in found.names:
        if found.repeats > 1 and not any(len(said) > 1 for (arm, _), said in found.words.items() if arm == name):
            lines.append(f"arm {name}: expected some pair answered in other words in another repeat, got none")
    return judged(lines, "answers vary over the repeats")


def published_figures(found: Rows) -> dict[str, Any]:
    """arm -> metric -> value by the published definitions: one folded label or median per pair, then over pairs."""
    gold = [item.get("gold") for item in found.items]
    shown: dict[str, Any] = {}
    for name, table in found.tables.items():
        folded = [agreement.majority(pair[0] for pair in table.pairs(place)) for place in range(len(gold))]
        raw = agreement.raw_agreement(gold, folded)
        shown[name] = {"kappa": agreement.kappa(gold, folded).value, "agreement": raw.k / raw.n if raw.n else None}
        for metric, by_place in found.scores[name].items():
            values = [median(scores) for scores in by_place.values()]
            shown[name][metric] = sum(values) / len(values)
    return shown


def human_figures(found: Rows) -> dict[str, Any]:
    """How far the second label agrees with the first, where there is one."""
    pairs = [(item.get("gold"), item["second_label"]) for item in found.items if item.get("second_label") is not None]
    if not pairs:
        return {}
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    raw = agreement.raw_agreement(first, second)
    return {"kappa": agreement.kappa(first, second).value, "agreement": raw.k / raw.n if raw.n else None}


def check_figures(state: State) -> Outcome:
    """Our own figures of the rows; with --expect compared with those a page quotes."""
    found = read_rows(state)
    rest_on(state, ("settings", "rows", "scores"))
    seed = found.config.get("seed")
    options = SimpleNamespace(seed=seed if type(seed) is int else 0, bootstrap=None, level=None, bca=False, by=None)
    manifest = {
        "slug": "published",
        "status": "complete",
        "split": "test",
        "repeats": found.repeats,
        "arm_settings": {name: {"model": ARMS.get(name, {}).get("model")} for name in found.names},
        "provenance": dict.fromkeys(found.names, "live"),
        "hashes": {},
        "config_hash": {},
    }
    result = summaries.summarise(found.items, found.tables, manifest, found.config, options)
    result["published"] = summaries.rounded(published_figures(found))
    result["human"] = {**(result["human"] or {}), **summaries.rounded(human_figures(found))}
    state.fresh = result
    lines = verifying.expected_lines(result, state.expected)
    text = f"{len(state.expected)} as expected" if state.expected else "worked out; compare quoted ones with --expect"
    return judged(lines, text + "; intervals are ours, the published ones are not in the evidence")


def check_replies(_: State) -> Outcome:
    return not_checked("the published rows do not hold the replies, so choices are taken as recorded")


def check_freeze(state: State) -> Outcome:
    commit = foreign.shown(needed(state.receipt, "2 receipt").get("freeze_sha"), 60)
    return not_checked(f"that inputs were frozen in commit {commit} needs the publisher's repository")


def check_pinned_code(state: State) -> Outcome:
    if state.pinned is None:
        return not_checked("nothing of a receipt is executed without --run-pinned-code")
    read_rows(state)
    return state.pinned(state)


def check_labels(state: State) -> Outcome:
    """Each pair against the one of the same id here. The publisher's hashes say that labels are theirs, not right."""
    config, fixture = needed(state.config, "3 files"), needed(state.fixture, "3 files")
    name = foreign.shown(config.get("slug") or "this evaluation")
    if config.get("slug") != state.ours.slug or "fixture.jsonl" not in state.ours.hashes:
        return verifying.not_checked(f"no pairs of {name} here to compare with: figures rest on the publisher's labels")
    lines = verifying.pair_problems(fixture, state.ours.items)
    return judged(lines, f"{len(fixture)} pairs, equal to those here")


CHECKS: tuple[tuple[str, Callable[[State], Outcome]], ...] = (
    ("folder", check_folder),
    ("receipt", check_receipt),
    ("files", check_files),
    ("settings", check_settings),
    ("conditions", check_conditions),
    ("rows", row_check("rows", "{rows} rows, each there once, in order")),
    ("identity", row_check("identity", "{rows} rows with the frozen settings and their arm's identity")),
    ("scores", check_scores),
    ("totals", check_totals),
    ("identities", check_identities),
    ("times", check_times),
    ("sameness", check_sameness),
    ("figures", check_figures),
    ("replies", check_replies),
    ("freeze", check_freeze),
    ("pinned code", check_pinned_code),
    ("labels", check_labels),
)


def is_published(folder: foreign.Folder) -> bool:
    """Whether a folder holds evidence in the published format, not ours: a receipt without our part, no run of ours."""
    if "manifest.json" in folder:
        try:
            if folder.object("manifest.json").get("format") != RUN_FORMAT:
                return False
        except foreign.ForeignError:
            return False
    name = receipt_name(folder)
    try:
        return name is not None and "receipt" not in folder.object(name)
    except foreign.ForeignError:
        return name is not None


def verify(path: str, ours: Any, now: float, expected: list[tuple[str, str]], pinned: Any = None) -> State:
    """Verify published evidence; `done` of the state returned holds all checks. Raises: ForeignError (no folder)."""
    state = State(foreign.Folder(path), ours, now, expected, pinned)
    verifying.run_checks(state, CHECKS)
    return state
