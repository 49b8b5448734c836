"""MT-Bench's own tables: S1 and S2, every vote, whom the judge favours, when it is wrong, where people are unanimous.

    tables = load("evals/mt-bench/tables.py")        # the runner loads it, after agreement.py
    tables.tables(items, rows, config, settings)     # {"figures": {...}, "sections": [...]}

Pure: fixture rows and scored rows in, figures and printable sections out. A judge's decision on a pair is the majority
over its repeats of the both-orders decision. Every interval is the cluster bootstrap of agreement.py, by question.
Source of S1 and S2: Zheng et al. 2023, as counted by FastChat's compute_agreement.py (see agreement.setup_counts).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import agreement

# === Constants ===

WINNERS = {"A": "model_a", "B": "model_b", "equal": "tie", "invalid": "error"}
SETUPS = (("S1", "with_tie"), ("S2", "without_tie"))
JUDGE, PEOPLE = "gpt4-pair_human", "human_human"  # agreement.py's names of the two comparisons, for any judge
SCORES = {"A": 2, "equal": 1, "B": 0}  # of A, in halves of a win
DIMENSIONS = ("category", "model", "model_pair")
KINDS = ("right", "reversed", "missed", "invented")  # what a decision can be to gold; an invalid one is none of them
LISTED = 20  # contradictions printed; the figures hold all

Repeats = dict[str, dict[str, list[tuple[str, bool]]]]  # arm -> item_id -> (decision, both orders say it) per repeat
Decisions = dict[str, dict[str, str]]  # arm -> item_id -> 'A' | 'B' | 'equal' | 'invalid'


# === Decisions ===


def repeats_of(rows: Iterable[dict[str, Any]]) -> Repeats:
    """Each arm's decisions per item, one a repeat, and whether both orders say it; a failed reply gives none."""
    found: Repeats = {}
    for row in rows:
        if "decision" in row:
            said = (row["decision"], row["secondary"]["position_consistency"]["score"] == 1)
            found.setdefault(row["arm"], {}).setdefault(row["item_id"], []).append(said)
    return found


def decisions_of(repeats: Repeats) -> Decisions:
    """Each arm's decision per item, by majority over repeats."""
    return {
        arm: {item_id: str(agreement.majority([label for label, _ in said])) for item_id, said in by_item.items()}
        for arm, by_item in repeats.items()
    }


def labels_of(item: dict[str, Any]) -> list[str]:
    return [vote["label"] for vote in item["votes"]]


# === S1 and S2 ===


def vote_rows(item: dict[str, Any], decision: str | None) -> list[dict[str, Any]]:
    """An item's votes, and the judge's decision if there is one, as the rows that agreement.py counts."""
    voters = [(vote["judge"], vote["label"]) for vote in item["votes"]]
    if decision is not None:
        voters.append(("gpt4-pair", decision))
    base = {key: item[key] for key in ("model_a", "model_b", "turn")}
    return [{**base, "question_id": item["cluster"], "judge": who, "winner": WINNERS[label]} for who, label in voters]


def setup_ratios(item: dict[str, Any], decision: str | None) -> dict[tuple[str, str], tuple[int, int]]:
    """(setup, comparison) -> (agreeing, counted) of one item."""
    counts = agreement.setup_counts(vote_rows(item, decision))
    found = {}
    for name, setup in SETUPS:
        for who in (JUDGE, PEOPLE):
            by_question = counts.get((item["turn"], setup, who), {})
            found[name, who] = by_question.get(item["cluster"], (0, 0))
    return found


def setups(items: Sequence[dict[str, Any]], decisions: Decisions, settings: dict[str, Any]) -> dict[str, Any]:
    """arm -> setup -> comparison -> {k, n, value, low, high}; and the share of S1's votes that S2 keeps."""
    sampler = agreement.Resampler(seed=settings["seed"], name="mt-bench setups", **bootstrap(settings))
    sums: dict[tuple[str, str, str], list[int]] = {}
    for item in items:
        ratios: dict[tuple[str, str], tuple[int, int]] = {}
        for arm, labels in decisions.items():
            for (name, who), counted in setup_ratios(item, labels.get(item["item_id"])).items():
                ratios[arm, f"{name} {who}"] = counted
                total = sums.setdefault((arm, name, who), [0, 0])
                total[0] += counted[0]
                total[1] += counted[1]
        sampler.add(None, {}, cluster=item["cluster"], ratios=ratios)
    estimates = sampler.estimates([(arm, f"{name} {who}") for arm, name, who in sums])
    found: dict[str, Any] = {}
    for (arm, name, who), (k, n) in sums.items():
        shown = figure(estimates[arm, f"{name} {who}"], k, n)
        found.setdefault(arm, {}).setdefault(name, {})["judge" if who == JUDGE else "people"] = shown
    for by_setup in found.values():
        all_votes = by_setup["S1"]["judge"]["n"]
        by_setup["S2"]["kept"] = by_setup["S2"]["judge"]["n"] / all_votes if all_votes else None
    return found


# === Every vote ===


def vote_counts(item: dict[str, Any], decision: str | None) -> tuple[int, int] | None:
    """(votes equal to the judge's decision, votes), authors' votes and ties included; None without a decision."""
    labels = labels_of(item)
    return None if decision is None else (labels.count(decision), len(labels))


def people_counts(item: dict[str, Any]) -> tuple[int, int]:
    """(agreeing pairs of votes, pairs of votes) of one item."""
    labels = labels_of(item)
    same = sum(math.comb(labels.count(label), 2) for label in set(labels))
    return same, math.comb(len(labels), 2)


def against_others(item: dict[str, Any], decision: str | None) -> tuple[int, int] | None:
    """(judge right minus person right, persons), where right is what the other people on the item say by plurality."""
    if decision is None:
        return None
    found = agreement.loo_counts([{vote["judge"]: vote["label"] for vote in item["votes"]}], [decision])
    return sum(each.judge - each.human for each in found), sum(each.n for each in found)


def levels_of(item: dict[str, Any]) -> list[str]:
    """The groups an item is counted under: everything, its category, each of its models, its pair of models."""
    models = (item["model_a"], item["model_b"])
    return ["all", f"category={item['category']}", *(f"model={m}" for m in models), f"model_pair={' vs '.join(models)}"]


class Tally:
    """Shares by group, each with counts and interval: the resampler of one analysis and the sums beside it."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.sampler = agreement.Resampler(seed=settings["seed"], name=name, **bootstrap(settings))
        self.sums: dict[tuple[str, tuple[str, str]], list[int]] = {}

    def add(
        self, item: dict[str, Any], ratios: dict[tuple[str, str], tuple[int, int] | None], groups: list[str]
    ) -> None:
        """Count one item under its groups. ratios: (arm, name) -> (k, n), None = missing."""
        self.sampler.add(None, {}, cluster=item["cluster"], ratios=ratios, groups=groups)
        for group in groups:
            for key, counted in ratios.items():
                total = self.sums.setdefault((group, key), [0, 0])
                total[0] += counted[0] if counted else 0
                total[1] += counted[1] if counted else 0

    def figures(self, keys: Sequence[tuple[str, str]]) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
        """group -> key -> {k, n, value, low, high, reason}."""
        return {
            str(group): {key: figure(estimates[key], *self.sums[str(group), key]) for key in keys}
            for group, estimates in self.sampler.by_group(keys).items()
        }


def every_vote(items: Sequence[dict[str, Any]], decisions: Decisions, settings: dict[str, Any]) -> dict[str, Any]:
    """group -> {pairs, people: figure, arms: {arm: figure}, beyond: {arm: figure}}: agreement with single votes.

    people: their agreement with each other. beyond: how much more often than a person the judge says what the other
    people on the pair say by plurality, a difference of two shares over the same votes.
    """
    tally = Tally("mt-bench votes", settings)
    pairs: dict[str, int] = {}
    for item in items:
        given = {arm: labels.get(item["item_id"]) for arm, labels in decisions.items()}
        ratios = {(arm, "votes"): vote_counts(item, label) for arm, label in given.items()}
        ratios |= {(arm, "beyond"): against_others(item, label) for arm, label in given.items()}
        tally.add(item, {**ratios, ("people", "votes"): people_counts(item)}, levels_of(item))
        for group in levels_of(item):
            pairs[group] = pairs.get(group, 0) + 1
    keys = [(arm, name) for arm in decisions for name in ("votes", "beyond")] + [("people", "votes")]
    return {
        group: {
            "pairs": pairs[group],
            "people": shown["people", "votes"],
            "arms": {arm: shown[arm, "votes"] for arm in decisions},
            "beyond": {arm: shown[arm, "beyond"] for arm in decisions},
        }
        for group, shown in tally.figures(keys).items()
    }


# === When the judge departs from gold ===


def kind_of(gold: str, decision: str) -> str | None:
    """right, reversed (the answer that gold says is worse), missed (a tie for a winner), invented (a winner for a tie).

    None for an invalid decision, which is wrong and none of these.
    """
    if decision == gold:
        return "right"
    if decision == "invalid":
        return None
    if gold == "equal":
        return "invented"
    return "missed" if decision == "equal" else "reversed"


def people_group(item: dict[str, Any]) -> str:
    """How sure the people are of a pair that has gold."""
    labels = labels_of(item)
    if len(labels) == 1:
        return "people: one vote"
    return "people: two or more, all of one mind" if len(set(labels)) == 1 else "people: two or more, divided"


def length_group(item: dict[str, Any]) -> str:
    """Which answer gold picks, by its length in characters."""
    more = len(item["answer_a"]) - len(item["answer_b"])
    if item["gold"] == "equal":
        return "gold: a tie"
    if more == 0:
        return "gold: one of two equally long"
    return "gold: the longer answer" if (more > 0) == (item["gold"] == "A") else "gold: the shorter answer"


def order_group(said: Sequence[tuple[str, bool]]) -> str:
    """What the order of the answers did to the judge's verdict on a pair, over all repeats."""
    if "invalid" in [label for label, _ in said]:
        return "judge: a reply without a verdict"
    if not all(same for _, same in said):
        return "judge: its verdict changes with the order"
    return "judge: a tie in both orders" if said[0][0] == "equal" else "judge: the same winner in both orders"


def kind_counts(gold: str, decision: str) -> dict[str, tuple[int, int]]:
    """Of one pair with gold: for every kind whether the decision is it; and whether a winner is the wrong one."""
    kind = kind_of(gold, decision)
    counts = {name: (int(kind == name), 1) for name in KINDS}
    both = gold != "equal" and decision in ("A", "B")
    return {**counts, "wrong_winner": (int(kind == "reversed"), int(both))}


def when(
    items: Sequence[dict[str, Any]], repeats: Repeats, decisions: Decisions, settings: dict[str, Any]
) -> dict[str, Any]:
    """arm -> group -> kind -> figure, over pairs with gold; people: their agreement on the same pairs.

    Kinds are those of kind_of, each out of all pairs of the group; wrong_winner is out of those on which both gold and
    the judge name a winner. Groups: how sure the people are, which length they prefer, what the order did to the judge.
    """
    found: dict[str, Any] = {}
    for arm, labels in decisions.items():
        tally = Tally(f"mt-bench when {arm}", settings)
        for item in items:
            decision = labels.get(item["item_id"])
            if item["gold"] is None or decision is None:
                continue
            counts: dict[tuple[str, str], tuple[int, int] | None] = {
                (arm, name): counted for name, counted in kind_counts(item["gold"], decision).items()
            }
            counts["people", "votes"] = people_counts(item)
            order = order_group(repeats[arm][item["item_id"]])
            tally.add(item, counts, ["all", people_group(item), length_group(item), order])
        keys = [*((arm, name) for name in (*KINDS, "wrong_winner")), ("people", "votes")]
        found[arm] = {
            group: {"people" if key[0] == "people" else key[1]: shown[key] for key in keys}
            for group, shown in tally.figures(keys).items()
        }
    return found


def asked_again(items: Sequence[dict[str, Any]], repeats: Repeats, settings: dict[str, Any]) -> dict[str, Any]:
    """arm -> {pairs, same: figure}: how often two repeats on a pair give the same decision; arms with repeats only."""
    found = {}
    for arm, by_item in repeats.items():
        tally, pairs = Tally(f"mt-bench again {arm}", settings), 0
        for item in items:
            labels = [label for label, _ in by_item.get(item["item_id"], [])]
            same = sum(math.comb(labels.count(label), 2) for label in set(labels))
            tally.add(item, {(arm, "same"): (same, math.comb(len(labels), 2))}, ["all"])
            pairs += len(labels) > 1
        if pairs:
            found[arm] = {"pairs": pairs, "same": tally.figures([(arm, "same")])["all"][arm, "same"]}
    return found


# === Whom the judge favours ===


def people_score(labels: list[str]) -> tuple[int, int]:
    """A's mean score over the votes as a fraction: (halves of a win, twice the votes)."""
    return sum(SCORES[label] for label in labels), 2 * len(labels)


def favour(items: Sequence[dict[str, Any]], decisions: Decisions, settings: dict[str, Any]) -> dict[str, Any]:
    """arm -> {models: {model: {pairs, people, judge, difference}}, spearman, n_models}.

    Win rates are means over a model's pairs (win 1, tie 1/2, loss 0; a pair's votes are averaged first); pairs on which
    the judge is invalid or missing are left out of both. difference: judge minus people, with interval.
    """
    scale = math.lcm(*(2 * len(item["votes"]) for item in items)) if items else 1
    found: dict[str, Any] = {}
    for arm, labels in decisions.items():
        sampler = agreement.Resampler(seed=settings["seed"], name=f"mt-bench favour {arm}", **bootstrap(settings))
        for item in items:
            decision = labels.get(item["item_id"])
            if decision in SCORES:
                halves, whole = people_score(labels_of(item))
                people, judge = halves * scale // whole, SCORES[decision] * scale // 2
                for model, turn in ((item["model_a"], False), (item["model_b"], True)):
                    shares = [scale - part if turn else part for part in (people, judge)]
                    add_favour(sampler, item["cluster"], model, shares[0], shares[1], scale)
        found[arm] = favour_figures(sampler)
    return found


def add_favour(sampler: Any, cluster: str, model: str, people: int, judge: int, scale: int) -> None:
    """Register one pair from one model's side; shares in units of 1/scale."""
    ratios = {("a", "people"): (people, scale), ("a", "judge"): (judge, scale), ("a", "more"): (judge - people, scale)}
    sampler.add(None, {}, cluster=cluster, ratios=ratios, groups=[model])


def favour_figures(sampler: Any) -> dict[str, Any]:
    """The figures of one arm from its filled resampler."""
    estimates = sampler.by_group([("a", name) for name in ("people", "judge", "more")])
    pairs: dict[Any, int] = {}
    for added in sampler.items:
        pairs[added.groups[0]] = pairs.get(added.groups[0], 0) + 1
    models = {}
    for model, found in estimates.items():
        more = found["a", "more"]
        models[str(model)] = {
            "pairs": pairs[model],
            "people": found["a", "people"].value,
            "judge": found["a", "judge"].value,
            "difference": {"value": more.value, "low": more.interval.low, "high": more.interval.high},
        }
    rates = [(shown["people"], shown["judge"]) for shown in models.values()]
    spearman = agreement.spearman([people for people, _ in rates], [judge for _, judge in rates])
    return {"models": models, "spearman": spearman, "n_models": len(models)}


def sided(items: Sequence[dict[str, Any]], decisions: Decisions, settings: dict[str, Any]) -> dict[str, Any]:
    """arm -> model -> {lifted, dropped}: figures of the wrong winners from one model's side.

    lifted: of the pairs that the model lost by gold, those on which the judge names it the winner; dropped: of the
    pairs that it won by gold, those on which the judge names the other one.
    """
    found: dict[str, Any] = {}
    for arm, labels in decisions.items():
        tally = Tally(f"mt-bench sided {arm}", settings)
        for item in items:
            decision = labels.get(item["item_id"])
            if item["gold"] in ("A", "B") and decision is not None:
                wrong = int(kind_of(item["gold"], decision) == "reversed")
                for side, model in (("A", item["model_a"]), ("B", item["model_b"])):
                    won = item["gold"] == side
                    counts = {"dropped": (wrong, 1) if won else None, "lifted": None if won else (wrong, 1)}
                    tally.add(item, {(arm, name): counted for name, counted in counts.items()}, [model])
        shown = tally.figures([(arm, "lifted"), (arm, "dropped")])
        found[arm] = {model: {name: each[arm, name] for name in ("lifted", "dropped")} for model, each in shown.items()}
    return found


# === Where people are unanimous ===


def contradictions(items: Sequence[dict[str, Any]], decisions: Decisions) -> dict[str, Any]:
    """arm -> {unanimous, contradicted, items}: pairs on which two or more people all pick one answer.

    contradicted: the judge picks the other answer, in both orders. items: most votes first.
    """
    unanimous = []
    for item in items:
        labels = labels_of(item)
        if len(labels) > 1 and set(labels) in ({"A"}, {"B"}):
            unanimous.append((item["item_id"], labels[0], len(labels), item["category"]))
    found = {}
    for arm, decided in decisions.items():
        against = [
            {"item_id": key, "people": label, "judge": decided[key], "votes": n, "category": category}
            for key, label, n, category in unanimous
            if decided.get(key) in ("A", "B") and decided[key] != label
        ]
        against.sort(key=lambda entry: (-int(str(entry["votes"])), entry["item_id"]))
        found[arm] = {"unanimous": len(unanimous), "contradicted": len(against), "items": against}
    return found


# === Figures ===


def bootstrap(settings: dict[str, Any]) -> dict[str, Any]:
    return {"n_resamples": settings["resamples"], "level": settings["level"]}


def figure(estimate: Any, k: int, n: int) -> dict[str, Any]:
    """A share with its counts and interval; value None, with the reason, without anything to count."""
    interval = estimate.interval
    reason = estimate.reason or interval.reason
    return {"k": k, "n": n, "value": estimate.value, "low": interval.low, "high": interval.high, "reason": reason}


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def share(shown: dict[str, Any]) -> str:
    """'886/1343 0.660 [0.612, 0.702]'; the counts alone where there is no interval."""
    if shown["value"] is None:
        return f"undefined ({shown['reason']})"
    low, high = number(shown["low"]), number(shown["high"])
    return f"{shown['k']}/{shown['n']} {number(shown['value'])}" + (
        f" [{low}, {high}]" if shown["low"] is not None else ""
    )


def signed(shown: dict[str, Any]) -> str:
    """'+0.004 [-0.035, +0.045]'; a difference of two shares."""
    if shown["value"] is None:
        return "-"
    span = f" [{shown['low']:+.3f}, {shown['high']:+.3f}]" if shown["low"] is not None else ""
    return f"{shown['value']:+.3f}{span}"


# === Sections ===


def section(title: str, head: Sequence[str], rows: list[list[str]], notes: Sequence[str] = ()) -> dict[str, Any]:
    return {"title": title, "head": list(head), "rows": rows, "notes": list(notes)}


def contradiction_section(found: dict[str, Any]) -> dict[str, Any]:
    rows, notes = [], []
    for arm, shown in found.items():
        rows += [
            [
                arm,
                entry["item_id"],
                entry["category"],
                f"{entry['people']} ({entry['votes']} of {entry['votes']})",
                entry["judge"],
            ]
            for entry in shown["items"][:LISTED]
        ]
        more = shown["contradicted"] - LISTED
        notes.append(
            f"{arm}: on {shown['contradicted']} of {shown['unanimous']} pairs with two or more votes, all for one "
            "answer, the judge picks the other one" + (f" ({more} more in the figures)" if more > 0 else "")
        )
    head = ("judge", "pair", "category", "people", "judge picks")
    return section("A consistent judge against unanimous people", head, rows, notes)


def setup_section(found: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for arm, by_setup in found.items():
        for name, shown in by_setup.items():
            kept = f"{shown['kept']:.0%}" if shown.get("kept") is not None else "100%"
            rows.append([arm, name, share(shown["judge"]), share(shown["people"]), kept])
    notes = [
        "experts' votes, each counted once; S1 counts ties (chance 1/3), S2 leaves out every pair with a tie on either "
        "side (chance 1/2): it looks only where the judge is decisive in both orders, so read the share kept with it",
    ]
    return section(
        "S1 and S2, as the paper counts them",
        ("judge", "setup", "judge = person", "person = person", "kept"),
        rows,
        notes,
    )


def vote_section(found: dict[str, Any], dimension: str, arms: list[str]) -> dict[str, Any]:
    prefix = f"{dimension}="
    rows = []
    for group, shown in found.items():
        if group == "all" or group.startswith(prefix):
            cells = [text for arm in arms for text in (share(shown["arms"][arm]), signed(shown["beyond"][arm]))]
            rows.append([group.removeprefix(prefix), str(shown["pairs"]), *cells, share(shown["people"])])
    rows.sort(key=lambda row: (row[0] != "all", row[0]))
    names = [text for arm in arms for text in (f"{arm} = vote", "beyond a person")]
    notes = ["beyond a person: agreement with the other people's plurality, judge minus the person left out"]
    head = (dimension, "pairs", *names, "vote = vote (people)")
    return section(f"Every vote, by {dimension} (exploratory)", head, rows, notes)


def when_section(found: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    rows = [
        [arm, group, *[share(shown[name]) for name in KINDS], share(shown["wrong_winner"]), share(shown["people"])]
        for arm, groups in found.items()
        for group, shown in sorted(groups.items(), key=lambda pair: (pair[0] != "all", pair[0]))
    ]
    notes = [
        "out of all pairs of the row that have gold: right; reversed: it names the answer that gold says is worse; "
        "missed: a tie where gold has a winner; invented: a winner where gold is a tie",
        "wrong winner: reversed, out of the pairs on which gold and the judge both name a winner",
    ]
    notes += [
        f"{arm}: asked twice about {shown['pairs']} pairs, the same decision on {share(shown['same'])}"
        for arm, shown in again.items()
    ]
    head = ("judge", "pairs", *KINDS, "wrong winner", "vote = vote (people)")
    return section("When the judge departs from gold (exploratory)", head, rows, notes)


def favour_section(found: dict[str, Any], by_side: dict[str, Any]) -> dict[str, Any]:
    rows, notes = [], []
    for arm, shown in found.items():
        for model, rates in sorted(shown["models"].items(), key=lambda pair: -pair[1]["people"]):
            more = rates["difference"]
            text = f"{more['value']:+.3f}" + (
                f" [{more['low']:+.3f}, {more['high']:+.3f}]" if more["low"] is not None else ""
            )
            sides = by_side.get(arm, {}).get(model)
            cells = [share(sides[name]) if sides else "-" for name in ("lifted", "dropped")]
            rows.append(
                [arm, model, str(rates["pairs"]), number(rates["people"]), number(rates["judge"]), text, *cells]
            )
        notes.append(
            f"{arm}: rank correlation of the two win rates {number(shown['spearman'])} over {shown['n_models']} models"
        )
    notes.append("win rate over a model's pairs: win 1, tie 1/2, loss 0; difference: judge minus people")
    notes.append(
        "lost, judge: won: of the pairs that the model lost by gold, those the judge gives to it; and mirrored"
    )
    head = ("judge", "model", "pairs", "win rate, people", "win rate, judge", "difference")
    return section("Whom the judge favours", (*head, "lost, judge: won", "won, judge: lost"), rows, notes)


def tables(
    items: Sequence[dict[str, Any]], rows: Iterable[dict[str, Any]], config: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """All of it. settings: seed, resamples, level of the intervals."""
    items, repeats = list(items), repeats_of(rows)
    decisions = decisions_of(repeats)
    figures = {
        "contradictions": contradictions(items, decisions),
        "when": when(items, repeats, decisions, settings),
        "again": asked_again(items, repeats, settings),
        "setups": setups(items, decisions, settings),
        "votes": every_vote(items, decisions, settings),
        "favour": favour(items, decisions, settings),
        "sided": sided(items, decisions, settings),
    }
    sections = [
        contradiction_section(figures["contradictions"]),
        when_section(figures["when"], figures["again"]),
        setup_section(figures["setups"]),
        *[vote_section(figures["votes"], dimension, list(decisions)) for dimension in DIMENSIONS],
        favour_section(figures["favour"], figures["sided"]),
    ]
    return {"figures": figures, "sections": sections}
