"""The one place that turns a run's rows into its result.

Everything that is printed, gated, published in a receipt, verified or drawn comes from the object made here
(`summary.json`): counts first, then for every arm the headline and the metrics beside it with their intervals,
position, length, repeats, comparisons of arms, people where there are votes, tables by category. All numbers come
from `agreement.py`; equal rows give equal bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeVar

import agreement
import verdicts

# === Constants ===

Result = TypeVar("Result")
DIMENSIONS = ("category", "fault", "difficulty")
CROSSED = (("model_pair", "category"), ("fault", "category"), ("difficulty", "category"))  # the first that varies
LEVEL_RESAMPLES = 2_000  # of each level of an exploratory table: there are dozens, and nothing is decided by them
KAPPA_FLOOR = 30  # pairs below which a level shows no kappa
QUESTION_FLOOR = 5  # questions below which a level shows counts only
WARN_CLUSTERS = 15  # questions below which a cluster interval covers too little
CONTROL_BASELINE = "longer"  # the control whose agreement stands beside every judge's
DIGITS = 10  # of figures in summary.json: enough for any use, and free of last-bit noise between Python versions
ALT_TEST_EPSILON = 0.15  # skilled annotators, as the test's authors set it
LONGER = {1: "A", -1: "B", 0: "equal"}  # the verdict of who always takes the longer answer
OTHER_RULE = {"both": "original", "original": "both"}


# === Small shapes ===


def rounded(value: Any) -> Any:
    """Figures at a fixed precision, everywhere in a nested result."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [part if type(part) is str else rounded(part) for part in value]  # ids by the hundred thousand
    return value


def figure(value: float | None, n: int, reason: str | None, interval: Any = None, **more: Any) -> dict[str, Any]:
    """One metric: value, interval, counts, and why anything of it is undefined."""
    low, high = (interval.low, interval.high) if interval is not None else (None, None)
    shown = {"value": value, "low": low, "high": high, "n": n, "reason": reason}
    if interval is not None:
        shown["interval"] = {"method": interval.method, "reason": interval.reason, "undefined": interval.undefined}
    return {**shown, **more}


def of_estimate(estimate: Any, **more: Any) -> dict[str, Any]:
    """A metric from the bootstrap's estimate, with the BCa interval beside it where it was asked for."""
    shown = figure(estimate.value, estimate.n, estimate.reason, estimate.interval, n_units=estimate.n_units, **more)
    if estimate.bca is not None:
        shown["bca"] = {"low": estimate.bca.low, "high": estimate.bca.high, "reason": estimate.bca.reason}
    return shown


def with_wilson(shown: dict[str, Any], k: int, n: int, level: float) -> dict[str, Any]:
    """Raw agreement of pairs that do not share questions gets Wilson's interval; a degenerate bootstrap too."""
    interval = agreement.wilson(k, n, level)
    return {
        **shown,
        "k": k,
        "low": interval.low,
        "high": interval.high,
        "interval": {"method": "wilson", "reason": None},
    }


# === What an item brings ===


def cluster_of(item: dict[str, Any]) -> str | None:
    """The question an item belongs to; None for an item on its own."""
    return item.get("cluster")


def levels_of(item: dict[str, Any], dimension: str) -> tuple[str, ...]:
    """The levels of one dimension that an item counts under; `model` counts under both of its models."""
    if dimension not in ("model", "model_pair"):
        value = item.get(dimension)
        return () if value is None else (str(value),)
    models = (item.get("model_a"), item.get("model_b"))
    if dimension == "model":
        return tuple(model for model in dict.fromkeys(models) if model)
    return (" vs ".join(sorted(str(model) for model in models)),) if all(models) else ()


def fields_behind(dimension: str) -> tuple[str, ...]:
    """The fields of an item that `levels_of` reads for a dimension."""
    return ("model_a", "model_b") if dimension in ("model", "model_pair") else (dimension,)


def dimensions_of(config: dict[str, Any], asked: str | None) -> list[str]:
    """The dimensions a result is broken down by."""
    return list(dict.fromkeys(asked.split(",") if asked else config.get("dimensions", DIMENSIONS)))


NOT_FIELDS = ("item_id", "text", "answer_a", "answer_b")  # of their own in every pair


def fields_of(items: Any) -> list[str]:
    """What some pairs can be broken down by: their plain fields, and the models where they are named."""
    found: dict[str, None] = {}
    for item in items:
        found.update(
            (key, None) for key, part in item.items() if isinstance(part, (str, int)) and key not in NOT_FIELDS
        )
    models = ("model", "model_pair") if {"model_a", "model_b"} <= set(found) else ()
    return sorted({*found, *models})


def asked_dimensions(asked: str | None) -> list[str]:
    return asked.split(",") if asked is not None else []


def unknown_dimensions(items: Any, asked: str | None) -> list[str]:
    """Which of --by's fields no pair of a fixture has."""
    unknown = asked_dimensions(asked)
    for item in items if unknown else ():
        unknown = [dimension for dimension in unknown if not levels_of(item, dimension)]
        if not unknown:
            break
    return unknown


def flat_dimensions(items: Any, asked: str | None, found: dict[str, Any]) -> list[str]:
    """One line for each of --by's fields that a result has no table of, and why. found: its tables by dimension."""
    lines = []
    for dimension in asked_dimensions(asked):
        if dimension in found:
            continue
        levels = sorted({level for item in items for level in levels_of(item, dimension)})
        why = f"is {levels[0]!r} in every pair here" if levels else "stands in no pair here"
        lines.append(f"--by {dimension}: no table: the field {why}")
    return lines


def bootstrap_settings(config: dict[str, Any], options: Any) -> dict[str, Any]:
    """Seed, resamples and level of the intervals: as frozen, or as asked for on the command line."""
    settings = rules_of(config)["bootstrap"]
    seed = config.get("seed", 0) if options.seed is None else options.seed
    level = settings["level"] if options.level is None else options.level / 100
    return {"seed": seed, "resamples": options.bootstrap or settings["resamples"], "level": level}


def rules_of(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that figures are worked out by, defaults filled in; repeats and seed are a run's own matter."""
    return {
        "decision": config.get("decision", "original"),
        "labels": list(config.get("labels", agreement.GOLD_LABELS)),
        "headline": config.get("headline", {}).get("metric", "kappa"),
        "bootstrap": {"resamples": 10_000, "level": 0.95, **config.get("bootstrap", {})},
    }


class People:
    """The votes of one fixture, item by item, and the labels made of them."""

    def __init__(self) -> None:
        self.votes: list[list[tuple[str, str]]] = []

    def add(self, item: dict[str, Any]) -> None:
        """Take in one item's votes; two annotators' labels without names are two votes."""
        votes = [(vote["judge"], vote["label"]) for vote in item.get("votes", [])]
        if not votes and item.get("second_label") in agreement.GOLD_LABELS and item.get("gold"):
            votes = [("first annotator", item["gold"]), ("second annotator", item["second_label"])]
        self.votes.append(votes)

    @property
    def several(self) -> bool:
        return any(len(votes) > 1 for votes in self.votes)

    @property
    def n_annotators(self) -> int:
        return len({who for votes in self.votes for who, _ in votes})

    def by_annotator(self) -> list[dict[str, str]]:
        """Per item annotator -> label; a second vote by one person counts as another annotator's."""
        found = []
        for votes in self.votes:
            row: dict[str, str] = {}
            for who, label in votes:
                row[who if who not in row else f"{who} (vote {len(row) + 1})"] = label
            found.append(row)
        return found


# === The pass over all items ===


Pairs = tuple[verdicts.Pair, ...]  # an item's choices (original, swapped), one pair a repeat


class Kind(NamedTuple):
    """What one arm's choices on an item come to; all items with the same choices are of one kind."""

    number: int
    pairs: Pairs
    main: str | None  # the majority label by the leading decision rule
    other: str | None  # and by the other one
    consistent: tuple[int, int] | None  # repeats that are consistent, and all that were run
    lean: int  # 1 towards the answer shown first, -1 the second, 0 neither
    picked: str | None  # the answer that every reply picks, in both orders and all repeats


class Standing(NamedTuple):
    """Where an item stands: its levels in every dimension, and the names of the groups it is broken down under."""

    levels: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]


def pairs_of(kinds: Iterable[Kind]) -> Iterable[verdicts.Pair]:
    """The choices of both orders, item by item and repeat by repeat."""
    return chain.from_iterable(kind.pairs for kind in kinds)


class Pass:
    """Labels of every item and arm, registered once for one bootstrap over all arms and metrics.

    There are many items and few kinds of them: whatever follows from an item's choices alone is worked out once a kind.
    """

    def __init__(self, items: Any, tables: dict[str, verdicts.ArmTable], config: dict[str, Any], options: Any) -> None:
        self.tables, self.config = tables, config
        rules = rules_of(config)
        self.rule, self.headline = rules["decision"], rules["headline"]
        settings = bootstrap_settings(config, options)
        self.level, self.seed, self.resamples = settings["level"], settings["seed"], settings["resamples"]
        self.q = len(rules["labels"]) + 1
        self.bca = bool(options.bca)
        self.dimensions = dimensions_of(config, options.by)
        self.sampler = agreement.Resampler(
            seed=self.seed, name="summary", n_resamples=self.resamples, level=self.level, q=self.q
        )
        known: dict[tuple[int, ...], Kind] = {}
        self.kinds = {
            name: [self.kind(codes, known) for codes in table.choice_codes()] for name, table in tables.items()
        }
        self.known = list(known.values())  # by number
        self.labels = {name: [kind.main for kind in kinds] for name, kinds in self.kinds.items()}
        self.gold: list[str | None] = []
        self.clusters: list[str | None] = []
        self.every = list(dict.fromkeys([*self.dimensions, *(dimension for pair in CROSSED for dimension in pair)]))
        self.fields = list(dict.fromkeys(field for dimension in self.every for field in fields_behind(dimension)))
        self.longer: list[int] = []  # 1 where answer A is the longer one, -1 where B is, 0 where neither
        self.models: list[tuple[str | None, str | None]] = []
        self.people = People()
        self.patterns: dict[tuple[Any, ...], int] = {}
        self.standings: dict[bytes, Standing] = {}
        standings = [self.add(item, kinds) for item, *kinds in zip(items, *self.kinds.values())]
        columns = zip(*(standing.levels for standing in standings)) if standings else ((),) * len(self.every)
        self.levels = {dimension: list(column) for dimension, column in zip(self.every, columns)}

    def kind(self, codes: tuple[int, ...], known: dict[tuple[int, ...], Kind]) -> Kind:
        """The kind of an item with these choices; known: the kinds seen so far."""
        if codes not in known:
            pairs = verdicts.ArmTable.pairs_of(codes)
            picked = [answer for answer in ("A", "B") if all(pair == picks(answer) for pair in pairs)]
            known[codes] = Kind(
                number=len(known),
                pairs=pairs,
                main=self.label(pairs, self.rule),
                other=self.label(pairs, OTHER_RULE[self.rule]),
                consistent=agreement.position_counts(pairs),
                lean=agreement.net_lean(pairs),
                picked=picked[0] if picked else None,
            )
        return known[codes]

    def label(self, pairs: Pairs, rule: str) -> str | None:
        """The majority label of an item's repeats under one decision rule."""
        return agreement.majority(self.decision(pair, rule) for pair in pairs)

    @staticmethod
    def decision(pair: tuple[str | None, str | None], rule: str) -> str | None:
        """One repeat's decision under a rule; None when a reply it needs is missing."""
        return agreement.resolve(*pair) if rule == "both" else pair[0]

    def add(self, item: dict[str, Any], kinds: Sequence[Kind]) -> Standing:
        """Register one item with all its arms, metrics and groups; returns where it stands. kinds: one for each arm."""
        gold, cluster = item.get("gold"), cluster_of(item)
        lengths = len(item["answer_a"]), len(item["answer_b"])
        longer = (lengths[0] > lengths[1]) - (lengths[0] < lengths[1])
        key = (gold, longer, *(kind.number for kind in kinds))
        if key not in self.patterns:
            self.patterns[key] = self.pattern(gold, longer, kinds)
        standing = self.standing(item)
        self.sampler.add_pattern(self.patterns[key], cluster, groups=standing.groups)
        self.gold.append(gold)
        self.clusters.append(cluster)
        self.longer.append(longer)
        self.models.append((item.get("model_a"), item.get("model_b")))
        self.people.add(item)
        return standing

    def standing(self, item: dict[str, Any]) -> Standing:
        """Where an item stands; items alike in all fields that decide it share one."""
        key = verdicts.alike([item.get(field) for field in self.fields])
        if key not in self.standings:
            levels = {dimension: levels_of(item, dimension) for dimension in self.every}
            named = ((dimension, levels[dimension]) for dimension in self.dimensions)
            groups = tuple(f"{dimension}={level}" for dimension, found in named for level in found)
            self.standings[key] = Standing(tuple(levels.values()), groups)
        return self.standings[key]

    def pattern(self, gold: str | None, longer: int, kinds: Sequence[Kind]) -> int:
        """The sampler's number of all items with this gold label, this longer answer and these kinds of choices."""
        decisions: dict[str, str | None] = {}
        ratios: dict[tuple[str, str], tuple[int, int] | None] = {}
        for name, kind in zip(self.tables, kinds):
            decisions[name], decisions[name + OTHER] = kind.main, kind.other
            ratios[name, "position_consistency"] = kind.consistent
            ratios[name, "length_excess"] = agreement.length_counts(longer, 0, kind.main, gold)
        return self.sampler.pattern(gold, decisions, ratios)

    @cached_property
    def places(self) -> dict[str, dict[str, list[int]]]:
        """dimension -> level, in order -> the places of its items."""
        found: dict[str, dict[str, list[int]]] = {}
        for dimension, column in self.levels.items():
            places: dict[str, list[int]] = {}
            for place, levels in enumerate(column):
                for level in levels:
                    places.setdefault(level, []).append(place)
            found[dimension] = dict(sorted(places.items()))
        return found

    def estimates(self) -> dict[Any, Any]:
        """Every arm's metrics and every compared pair's differences, from one pass."""
        keys: list[tuple[str, ...]] = []
        for name in self.tables:
            keys += [(name, metric) for metric in METRICS]
            keys += [(name + OTHER, metric) for metric in ("kappa", "agreement")]
        for first, second in self.compared():
            keys += [(first, second, metric) for metric in COMPARED]
        return self.sampler.estimates(keys, bca=self.bca)

    def compared(self) -> list[tuple[str, str]]:
        """The pairs of arms that are compared: all of them but control against control."""
        names = list(self.tables)
        pairs = [(first, second) for i, first in enumerate(names) for second in names[i + 1 :]]
        return [pair for pair in pairs if not all(name.startswith("control-") for name in pair)]

    @cached_property
    def judged(self) -> Sequence[int]:
        """The places of the items with a label of any arm; all of them where there is none at all."""
        labels = zip(*self.labels.values())
        found = [place for place, each in enumerate(labels) if any(label is not None for label in each)]
        return found or range(len(self.gold))

    @cached_property
    def questions(self) -> list[str | int]:
        """The question of every item; an item without one is a question of its own."""
        return [cluster if cluster is not None else place for place, cluster in enumerate(self.clusters)]

    @cached_property
    def shares_questions(self) -> bool:
        return len(set(self.questions)) < len(self.clusters)


OTHER = "|other rule"  # the same arm read by the decision rule that does not lead
METRICS = (
    "kappa",
    "agreement",
    "ac1",
    "valid_output",
    "recall_A",
    "recall_B",
    "recall_equal",
    "position_consistency",
    "length_excess",
)
COMPARED = ("kappa", "agreement", "position_consistency")


def metric_names(config: dict[str, Any]) -> list[str]:
    """The metrics that every arm of a pairwise result has, as summary.json names them."""
    other = OTHER_RULE[rules_of(config)["decision"]]
    return [metric for metric in METRICS if not metric.startswith("recall_")] + [f"kappa_{other}", f"agreement_{other}"]


# === One arm ===


def hits(gold: list[str | None], labels: list[str | None]) -> tuple[int, int]:
    """(right, all) over items with gold and a label."""
    found = agreement.raw_agreement(gold, labels)
    return found.k, found.n


def arm_metrics(work: Pass, name: str, estimates: dict[Any, Any]) -> dict[str, Any]:
    """The metrics of one arm, the other decision rule's beside the leading one's."""
    shown = {metric: of_estimate(estimates[name, metric]) for metric in METRICS}
    k, n = hits(work.gold, work.labels[name])
    shown["agreement"]["k"] = k
    if n and not work.shares_questions:
        shown["agreement"] = with_wilson(shown["agreement"], k, n, work.level)
    for metric in ("kappa", "agreement"):
        rule = OTHER_RULE[work.rule]
        shown[f"{metric}_{rule}"] = of_estimate(estimates[name + OTHER, metric], rule=rule)
    shown["kappa"]["constant_side"] = agreement.kappa(work.gold, work.labels[name]).constant_side
    shown["ac1"]["q"] = work.q
    for label in agreement.GOLD_LABELS:
        del shown[f"recall_{label}"]
    return shown


def per_gold(work: Pass, name: str) -> dict[str, Any]:
    """Right and all per gold class, with Wilson interval."""
    found = agreement.raw_agreement(work.gold, work.labels[name], work.level)
    shown = {}
    for label, (k, n) in found.per_gold.items():
        interval = agreement.wilson(k, n, work.level)
        shown[label] = {"k": k, "n": n, "value": k / n, "low": interval.low, "high": interval.high}
    return shown


def confusion(work: Pass, name: str) -> dict[str, dict[str, int]]:
    """gold -> decision -> pairs."""
    cells = Counter((g, p) for g, p in zip(work.gold, work.labels[name]) if g is not None and p is not None)
    return {
        gold: {label: cells[gold, label] for label in agreement.LABELS}
        for gold in agreement.GOLD_LABELS
        if any(cells[gold, label] for label in agreement.LABELS)
    }


def reply_figures(table: verdicts.ArmTable, name: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """What one arm is, and what became of its replies."""
    settings = manifest["arm_settings"][name]
    total = 2 * table.n_items * table.repeats
    replies = {state: table.replies[state] for state in ("ok", "invalid", "failed")}
    return {
        "model": settings.get("model") or (f"control: {settings['control']}" if settings.get("control") else None),
        "provenance": manifest["provenance"][name],
        "listed": name not in manifest.get("unlisted_arms", []),
        "output_mode": settings.get("output_mode", "tool"),
        "counts": table.counts(),
        "replies": {**replies, "missing": total - sum(replies.values())},
        "invalid_codes": dict(sorted(table.codes.items())),
        "failed_codes": dict(sorted(table.failed_codes.items())),
        "last_failure": table.last_failure,
        "truncated": {"at_limit": table.truncated[True], "elsewhere": table.truncated[False]},
        "repaired": dict(sorted(table.repaired.items())),
        "hints": dict(sorted(table.hints.items())),
        "served_models": dict(sorted(table.served.items())),
        "served_providers": dict(sorted(table.providers.items())),
    }


def arm_result(work: Pass, name: str, manifest: dict[str, Any], estimates: dict[Any, Any]) -> dict[str, Any]:
    """Everything of one arm that is counted over its own replies and labels."""
    labels = Counter(work.labels[name])
    return {
        **reply_figures(work.tables[name], name, manifest),
        "labels": {label: labels[label] for label in (*agreement.LABELS, None) if label or labels[None]},
        "metrics": arm_metrics(work, name, estimates),
        "per_gold": per_gold(work, name),
        "confusion": confusion(work, name),
    }


def position_result(work: Pass, name: str, estimates: dict[Any, Any]) -> dict[str, Any]:
    """What the order of the answers did to one arm."""
    kinds = work.kinds[name]
    found = agreement.position_bias(pairs_of(kinds), work.level)
    test = agreement.sign_flip_test([kind.lean for kind in kinds], work.questions)
    shown = {**found._asdict(), "wilson": [found.wilson.low, found.wilson.high]}
    interval = estimates[name, "position_consistency"].interval
    return {**shown, "pc_low": interval.low, "pc_high": interval.high, "item_p": test.p, "item_nonzero": test.nonzero}


def length_result(work: Pass, name: str, estimates: dict[Any, Any]) -> dict[str, Any]:
    """Whether one arm favours the longer answer more than the gold labels do. Lengths are in characters."""
    found = agreement.length_bias(zip(work.longer, repeat(0), work.labels[name], work.gold), work.level)
    shown = found._asdict()
    for key in ("judge_wilson", "human_wilson"):
        shown[key] = [shown[key].low, shown[key].high]
    interval = estimates[name, "length_excess"].interval
    return {**shown, "unit": "characters", "excess_low": interval.low, "excess_high": interval.high}


def repeats_result(work: Pass, name: str) -> dict[str, Any]:
    """How much one arm's repeats differ: consistency, not correctness."""
    table = work.tables[name]
    if table.repeats < 2:
        return {"repeats": table.repeats, "reason": "too_few_ratings"}
    of_kind = [[work.decision(pair, work.rule) for pair in kind.pairs] for kind in work.known]
    ratings = [of_kind[kind.number] for kind in work.kinds[name]]
    by_repeat = [list(column) for column in zip(*ratings)]
    summary = agreement.repeat_summary(work.gold, by_repeat)
    fleiss, alpha = agreement.fleiss_kappa(ratings), agreement.krippendorff_alpha(ratings)
    stability = agreement.stability(ratings)
    return {
        "repeats": table.repeats,
        "kappa": summary.kappa._asdict(),
        "agreement": summary.agreement._asdict(),
        "fleiss_kappa": {"value": fleiss.value, "reason": fleiss.reason},
        "krippendorff_alpha": {"value": alpha.value, "reason": alpha.reason},
        "stability": stability._asdict(),
    }


# === Baselines ===


def baselines(work: Pass) -> dict[str, Any]:
    """What a judge that reads nothing would score on the same pairs: the most frequent gold, and the longer answer."""
    places = work.judged
    gold = [work.gold[place] for place in places]
    constant = agreement.majority_class(gold)
    longer: list[str | None] = [LONGER[work.longer[place]] for place in places]
    found = {}
    for name, labels in (("majority_class", [constant] * len(gold)), ("longer_answer", longer)):
        k, n = hits(gold, labels)
        value = agreement.kappa(gold, labels)
        found[name] = {"k": k, "n": n, "agreement": k / n if n else None, "kappa": value.value, "reason": value.reason}
    found["majority_class"]["label"] = constant
    return found


# === Two arms ===


def comparison(
    work: Pass, first: str, second: str, estimates: dict[Any, Any], result: dict[str, Any]
) -> dict[str, Any]:
    """Two arms on the same items: the difference, the items behind it, the test, and the verdict with its reason."""
    metric = work.headline
    paired = agreement.paired(work.gold, work.labels[first], work.labels[second], work.questions)
    shown = {name: of_estimate(estimates[first, second, name]) for name in COMPARED}
    key = metric if metric in COMPARED else "kappa"
    ranges = [spread_of(result["repeats"][arm], key) for arm in (first, second)]
    interval = estimates[first, second, key].interval
    verdict = agreement.verdict(interval.low, interval.high, ranges[0], ranges[1])
    return {
        "a": first,
        "b": second,
        "metric": key,
        "differences": shown,
        "better": paired.better,
        "tie": paired.tie,
        "worse": paired.worse,
        "n": paired.n,
        "sign_p": paired.sign_p,
        "p": paired.p,
        "test": paired.test,
        "clusters": paired.flip.clusters,
        "ranges": ranges,
        "verdict": verdict.verdict,
        "why": verdict.reason,
        "by": compared_by_level(work, first, second),
    }


def spread_of(repeats: dict[str, Any], metric: str) -> tuple[float, float] | None:
    """(min, max) over an arm's repeats, None when there are fewer than two with a value."""
    spread = repeats.get(metric) or {}
    return None if spread.get("min") is None or repeats["repeats"] < 2 else (spread["min"], spread["max"])


def comparisons(work: Pass, estimates: dict[Any, Any], result: dict[str, Any]) -> list[dict[str, Any]]:
    """All compared pairs; several of them are corrected together (Holm), and a verdict needs the corrected p too."""
    found = [comparison(work, first, second, estimates, result) for first, second in work.compared()]
    if len(found) < 2:
        return found
    corrected = agreement.adjust([entry["p"] for entry in found], "holm")
    for entry, p in zip(found, corrected):
        difference = entry["differences"][entry["metric"]]
        first, second = entry["ranges"]
        verdict = agreement.verdict(difference["low"], difference["high"], first, second, p)
        entry.update(holm_p=p, verdict=verdict.verdict, why=verdict.reason)
    return found


def compared_by_level(work: Pass, first: str, second: str) -> dict[str, Any]:
    """dimension -> level -> how two arms differ there; exploratory, so p is adjusted (BH) and no winner is named."""
    found: dict[str, Any] = {}
    for dimension in work.dimensions:
        shown = {level: compared_at(work, first, second, places) for level, places in work.places[dimension].items()}
        adjusted = agreement.adjust([entry["p"] for entry in shown.values()], "bh")
        for entry, p in zip(shown.values(), adjusted):
            entry["p_bh"] = p
        if len(shown) > 1:
            found[dimension] = shown
    return found


def compared_at(work: Pass, first: str, second: str, places: list[int]) -> dict[str, Any]:
    """Two arms on the pairs of one level: better, tie, worse, difference in agreement, p."""
    columns = [[column[place] for place in places] for column in (work.gold, work.labels[first], work.labels[second])]
    paired = agreement.paired(columns[0], columns[1], columns[2], [work.questions[place] for place in places])
    difference = (paired.better - paired.worse) / paired.n if paired.n else None
    counts = {"better": paired.better, "tie": paired.tie, "worse": paired.worse, "n": paired.n}
    return {**counts, "difference": difference, "p": paired.p}


# === By category and the like ===


def level_figures(work: Pass, places: list[int], estimates: dict[Any, Any]) -> dict[str, Any]:
    """One level of one dimension, per arm: counts always, kappa only where there are pairs enough for it."""
    gold = [work.gold[place] for place in places]
    questions = len({work.questions[place] for place in places if work.gold[place] is not None})
    both = len({label for label in gold if label in ("A", "B")}) == 2
    shown: dict[str, Any] = {}
    for name in work.tables:
        labels = [work.labels[name][place] for place in places]
        k, n = hits(gold, labels)
        arm: dict[str, Any] = {"agreement": {**of_estimate(estimates[name, "agreement"]), "k": k}}
        if n and not work.shares_questions:
            arm["agreement"] = with_wilson(arm["agreement"], k, n, work.level)
        arm["position_consistency"] = of_estimate(estimates[name, "position_consistency"])
        if n >= KAPPA_FLOOR and both:
            arm["kappa"] = of_estimate(estimates[name, "kappa"])
        arm["n_questions"] = questions
        if questions < QUESTION_FLOOR:
            arm = {"agreement": {"k": k, "n": n}, "n_questions": questions}
        arm["position"] = position_counts(work, name, places)
        shown[name] = arm
    return shown


def position_counts(work: Pass, name: str, places: list[int]) -> dict[str, int]:
    """Pairs (item and repeat) of some items by what the order did to them."""
    kinds = work.kinds[name]
    found = agreement.position_bias(pairs_of(kinds[place] for place in places))
    return {
        "n": found.n,
        "first": found.k_first,
        "consistent": found.consistent,
        "second": found.k_second,
        "invalid": found.invalid,
    }


def by_dimension(work: Pass) -> dict[str, Any]:
    """dimension -> level -> arm -> metric; exploratory, so no verdict stands in it."""
    keys = [(name, metric) for name in work.tables for metric in ("agreement", "kappa", "position_consistency")]
    groups = work.sampler.by_group(keys, n_resamples=min(work.resamples, LEVEL_RESAMPLES))
    found: dict[str, Any] = {}
    for dimension in work.dimensions:
        levels = work.places[dimension]
        if len(levels) > 1:
            found[dimension] = {
                level: level_figures(work, places, groups[f"{dimension}={level}"]) for level, places in levels.items()
            }
    return found


def crossed(work: Pass) -> dict[str, Any] | None:
    """Right and all per arm in every cell of two dimensions; None where none of the pairs of dimensions varies."""
    for rows, columns in CROSSED:
        if len(work.places[rows]) < 2 or len(work.places[columns]) < 2:
            continue
        places: dict[tuple[str, str], list[int]] = {}
        for place, (own_rows, own_columns) in enumerate(zip(work.levels[rows], work.levels[columns])):
            for row in own_rows:
                for column in own_columns:
                    places.setdefault((row, column), []).append(place)
        cells: dict[str, dict[str, Any]] = {}
        for row, column in sorted(places):
            chosen = places[row, column]
            gold = [work.gold[place] for place in chosen]
            counts = {name: hits(gold, [labels[place] for place in chosen]) for name, labels in work.labels.items()}
            cells.setdefault(row, {})[column] = {name: {"k": k, "n": n} for name, (k, n) in counts.items()}
        return {"rows": rows, "columns": columns, "cells": cells}
    return None


# === Models ===


def standing(wins: Counter[str]) -> dict[str, Any]:
    """Wins, ties, losses of one model, and its win rate with a tie as half a win; None without any of them."""
    n = wins["won"] + wins["tied"] + wins["lost"]
    rate = (wins["won"] + wins["tied"] / 2) / n if n else None
    return {"won": wins["won"], "tied": wins["tied"], "lost": wins["lost"], "n": n, "rate": rate}


def models_result(work: Pass) -> dict[str, Any]:
    """model -> how it stands by gold, and by each arm on the same pairs; empty where no models are named."""
    labels = {"gold": work.gold, **work.labels}
    tallies: dict[str, dict[str, Counter[str]]] = {}
    for place, models in enumerate(work.models if any(map(any, work.models)) else ()):
        for model, side, other in zip(models, "AB", "BA"):
            if not model or work.gold[place] is None:
                continue
            outcome = {side: "won", other: "lost", "equal": "tied"}
            tally = tallies.setdefault(model, {name: Counter() for name in labels})
            for name, column in labels.items():
                tally[name][outcome.get(str(column[place]), "none")] += 1
    found = {}
    for model, tally in sorted(tallies.items()):
        gold = standing(tally.pop("gold"))
        found[model] = {"gold": gold, "arms": {name: standing(wins) for name, wins in tally.items()}}
    return found


# === People ===


def people_result(work: Pass) -> dict[str, Any] | None:
    """How far people agree with each other, and each arm with the same people; None without several votes an item."""
    people = work.people
    if not people.several:
        return None
    votes = people.by_annotator()
    humans: dict[str, dict[Any, str]] = {}
    for place, row in enumerate(votes):
        for who, label in row.items():
            humans.setdefault(who, {})[place] = label
    found: dict[str, Any] = {
        "votes": sum(len(each) for each in people.votes),
        "annotators": people.n_annotators,
        "arms": {},
    }
    for name, labels in work.labels.items():
        ceiling = agreement.human_ceiling(votes, labels)._asdict()
        test = agreement.alt_test(dict(enumerate(labels)), humans, eps=ALT_TEST_EPSILON)
        found["arms"][name] = {
            "judge_loo": ceiling.pop("judge_loo"),
            "human_loo": ceiling.pop("human_loo"),
            "loo_n": ceiling.pop("loo_n"),
            "alt_test": {**test._asdict(), "epsilon": ALT_TEST_EPSILON},
        }
        found.update(ceiling)
    return found


def people_by_level(work: Pass) -> dict[str, Any]:
    """dimension -> level -> agreeing pairs of votes and all of them: the ceiling beside each level's figures."""
    found: dict[str, Any] = {}
    for dimension in work.dimensions if work.people.several else []:
        for levels, votes in zip(work.levels[dimension], work.people.votes):
            labels = [label for _, label in votes]
            same = sum(math.comb(count, 2) for count in Counter(labels).values())
            for level in levels:
                shown = found.setdefault(dimension, {}).setdefault(level, {"k": 0, "n": 0})
                shown["k"] += same
                shown["n"] += math.comb(len(labels), 2)
    for shown in (shown for levels in found.values() for shown in levels.values()):
        shown["value"] = shown["k"] / shown["n"] if shown["n"] else None
        shown["reason"] = None if shown["n"] else "too_few_ratings"
    return found


# === Disagreements ===


def disagreements(work: Pass, ids: list[str]) -> dict[str, list[str]]:
    """Per arm the ids whose majority decision is not gold."""
    return {
        name: [
            item_id
            for item_id, gold, label in zip(ids, work.gold, labels)
            if gold is not None and label is not None and gold != label
        ]
        for name, labels in work.labels.items()
    }


def confidently_wrong(work: Pass, ids: list[str]) -> dict[str, list[str]]:
    """Per arm the ids where every reply, in both orders and all repeats, picks the answer that gold says is worse."""
    wrong = {("A", "B"), ("B", "A")}  # (gold, picked)
    return {
        name: [item_id for item_id, gold, kind in zip(ids, work.gold, kinds) if (gold, kind.picked) in wrong]
        for name, kinds in work.kinds.items()
    }


def picks(answer: str) -> tuple[str, str]:
    """The choices in shown positions, (original, swapped), of a judge that picks one answer in both orders."""
    return ("A", "B") if answer == "A" else ("B", "A")


# === The whole result ===


def usage_of(table: verdicts.ArmTable) -> dict[str, Any]:
    """Tokens by kind, for how many replies they are unknown, retries and the calls' own time."""
    waits = sorted(table.latencies)
    return {
        "tokens": {kind: table.tokens[kind] for kind in ("input", "output", "cached", "reasoning")},
        "replies_without": dict(sorted(table.tokens_unknown.items())),
        "retries": table.retries,
        "attempts_maybe_billed": table.maybe_billed,
        "batch_replies": table.batched,
        "latency_ms": {"median": waits[len(waits) // 2], "max": waits[-1]} if waits else None,
    }


def when_asked(work: Callable[[], Result]) -> Callable[[], Result]:
    """No meanwhile: what is asked for is worked out then."""
    return work


def summarise(
    items: Any,
    tables: dict[str, verdicts.ArmTable],
    manifest: dict[str, Any],
    config: dict[str, Any],
    options: Any,
    aside: Callable[[Callable[[], Any]], Callable[[], Any]] = when_asked,
) -> dict[str, Any]:
    """The result of a pairwise run: see the module docstring; its layout is what summary.json promises.

    aside: takes a piece of the work that nothing else waits for, and returns what gives its result.
    """
    work = Pass(items, tables, config, options)
    broken_down = aside(lambda: (by_dimension(work), crossed(work)))
    estimates = work.estimates()
    result: dict[str, Any] = {
        "slug": manifest["slug"],
        "title": manifest.get("title"),
        "status": manifest["status"],
        "split": manifest["split"],
        "items": len(items),
        "questions": len(set(work.questions)),
        "no_consensus": sum(gold is None for gold in work.gold),
        "repeats_run": manifest["repeats"],
        "decision": work.rule,
        "headline": work.headline,
        "seed": work.seed,
        "bootstrap": {
            "resamples": work.resamples,
            "level_resamples": min(work.resamples, LEVEL_RESAMPLES),
            "level": work.level,
            "unit": "question",
        },
        "arms": {name: arm_result(work, name, manifest, estimates) for name in tables},
        "baselines": baselines(work),
        "position": {name: position_result(work, name, estimates) for name in tables},
        "length": {name: length_result(work, name, estimates) for name in tables},
        "repeats": {name: repeats_result(work, name) for name in tables},
    }
    result["comparisons"] = comparisons(work, estimates, result)
    result["human"] = people_result(work)
    result["by"], result["cross"] = broken_down()
    result["models"] = models_result(work)
    result["people_by"] = people_by_level(work)
    result["detectable"] = detectable(work, result["comparisons"], config)
    result["usage"] = {name: usage_of(table) for name, table in tables.items()}
    result["cost_usd"] = {
        name: {"value": table.cost, "replies_without": table.cost_unknown} for name, table in tables.items()
    }
    result["hashes"] = manifest["hashes"]
    result["config_hash"] = manifest["config_hash"]
    result["disagreements"] = disagreements(work, items.ids)
    result["confidently_wrong"] = confidently_wrong(work, items.ids)
    result["warnings"] = warnings_of(work, result)
    return dict(rounded(result))


def detectable(work: Pass, compared: list[dict[str, Any]], config: dict[str, Any]) -> dict[str, Any]:
    """The smallest difference this set can show: at the discordant share seen, or the planned one."""
    n = sum(work.gold[place] is not None for place in work.judged)
    planning = config.get("planning", {})
    shares = [(entry["better"] + entry["worse"]) / n for entry in compared if n]
    share = max(shares) if shares else planning.get("discordant_share", 0.15)
    power = planning.get("power", 0.8)
    value = agreement.detectable_difference(n, share, power=power) if n and share else None
    return {"n": n, "discordant_share": share, "seen": bool(shares), "power": power, "agreement": value}


def replies_text(count: int) -> str:
    return "1 reply" if count == 1 else f"{count} replies"


def truncated_lines(cut: dict[str, int]) -> list[str]:
    """What to think of replies that break off, at the token limit or before it."""
    lines = []
    if cut["at_limit"]:
        remedy = "raise max_tokens in eval.json, --freeze and run again"
        lines.append(f"{replies_text(cut['at_limit'])} hit the token limit; {remedy}")
    if cut["elsewhere"]:
        why = "cut on the way, or written so by the model"
        lines.append(f"{replies_text(cut['elsewhere'])} broke off before the token limit: {why}")
    return lines


def warnings_of(work: Pass, result: dict[str, Any]) -> list[str]:
    """What a reader of the table has to know and would not see in it."""
    found = []
    if result["questions"] < WARN_CLUSTERS:
        found.append(f"only {result['questions']} questions: intervals of so few cover too little")
    for name, arm in result["arms"].items():
        if len(arm["served_models"]) > 1:
            found.append(f"{name}: served by several models: {', '.join(arm['served_models'])}")
        if len(arm["served_providers"]) > 1:
            found.append(f"{name}: served by several providers: {', '.join(arm['served_providers'])}")
        if arm["metrics"]["kappa"].get("constant_side") == "gold":
            found.append(f"{name}: gold has a single label here, so kappa is 0 whatever the agreement")
        found += [f"{name}: {line}" for line in truncated_lines(arm["truncated"])]
        maybe = arm["hints"].get("prompt_maybe_cut", 0)
        if maybe:
            found.append(f"{name}: {maybe} prompts may have been cut short by the server")
    return found
