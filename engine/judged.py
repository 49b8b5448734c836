"""From verdicts to what judge.py reports: a judge's summary of one run, of two runs compared, and of a panel.

Means and win rates carry a bootstrap interval by task, rank correlations one by Fisher's z. A reply without a verdict
(`invalid`) and a reply that never came (`failed`) are counted apart and never become a score, a tie or a loss.
Undefined is null with a reason. Pure: the same verdicts give the same summary.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import agreement

# === Constants ===

NO_CATEGORY = "(none)"
LAB = "judge.py"  # the fixed text of every labbook line
COUNT_BITS = 40  # of a packed sum: room for the points of 10^12 items below it
MOST_DRAWS = 20_000_000  # items drawn in one bootstrap of rare patterns; more resamples than that change no digit shown
FEWEST_RESAMPLES = 200
# Names by which a model's family is known; first match wins.
FAMILIES = (
    ("openai", r"gpt|chatgpt|\bo[1-9]\b|davinci"),
    ("anthropic", r"claude"),
    ("google", r"gemini|gemma|palm|bison"),
    ("meta", r"llama"),
    ("qwen", r"qwen|qwq"),
    ("mistral", r"mi[sx]tral|ministral|magistral|codestral|devstral"),
    ("deepseek", r"deepseek"),
    ("microsoft", r"\bphi\b|phi-?[1-9]"),
    ("cohere", r"command-|\baya\b"),
    ("xai", r"grok"),
    ("zhipu", r"\bglm"),
    ("moonshot", r"kimi|moonshot"),
    ("minimax", r"minimax"),
    ("huggingface", r"smollm|zephyr"),
    ("ibm", r"granite"),
    ("nvidia", r"nemotron"),
    ("ai2", r"olmo|tulu"),
    ("amazon", r"\bnova\b|titan"),
)

Verdicts = dict[str, dict[str, dict[str, Any]]]  # item_id -> order -> verdict


# === Means with intervals ===


def rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def mean_with_interval(
    points: Sequence[int], clusters: Sequence[Hashable], scale: int, seed: object, name: str, resamples: int
) -> dict[str, Any]:
    """The mean of points / scale with its percentile bootstrap interval by cluster: {value, low, high, n, reason}.

    points: whole numbers from 0. reason: why value, or else the interval, is null.
    """
    sums: defaultdict[Hashable, int] = defaultdict(int)
    for cluster, point in zip(clusters, points):
        sums[cluster] += (1 << COUNT_BITS) + point
    units = sorted(Counter(sums.values()).items())
    n_units = sum(count for _, count in units)
    value = sum(points) / len(points) / scale if points else None
    drawn: list[float | None] | None = None
    if n_units > 1:
        rounds = max(min(resamples, FEWEST_RESAMPLES), min(resamples, MOST_DRAWS // n_units))
        rng = agreement.stream_of(seed, name)
        low = (1 << COUNT_BITS) - 1
        totals = agreement.resampled_totals(units, rounds, rng)
        drawn = [(total & low) / (total >> COUNT_BITS) / scale for total in totals]
    found = agreement.estimate(value, "no_items", len(points), n_units, drawn, None, 0.95)
    return shown_estimate(found)


def shown_estimate(found: agreement.Estimate, digits: int = 4) -> dict[str, Any]:
    """An estimate as JSON."""
    return {
        "value": rounded(found.value, digits),
        "low": rounded(found.interval.low, digits),
        "high": rounded(found.interval.high, digits),
        "n": found.n,
        "reason": found.reason or found.interval.reason,
    }


# === Who judges whom ===


def plain_name(model: str) -> str:
    """A model's name without provider prefix, date and case: what is compared to detect a judge of its own answers."""
    last = model.strip().lower().replace("_", "-").rsplit("/", 1)[-1]
    return re.sub(r"(-20\d{2}-?\d{2}-?\d{2}|:\w+|\.gguf|-latest)+$", "", last)


def family_of(model: str) -> str | None:
    """The family a model's name belongs to; None when no known name stands in it."""
    name = model.lower().replace("_", "-")
    return next((family for family, pattern in FAMILIES if re.search(pattern, name)), None)


def kinship(judge: str, model: str | None) -> dict[str, Any]:
    """Whether a judge grades its own answers, or those of its family; null where the model is not named."""
    if not model:
        return {"self_judged": None, "same_family": None}
    same = plain_name(judge) == plain_name(model)
    family = family_of(judge)
    shared = family is not None and family == family_of(model)
    return {"self_judged": same, "same_family": family if shared or same else None}


# === Grade ===


def word_count(text: str) -> int:
    return len(text.split())


def verdict_of_grade(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """{"score", "why"} of a reply; None for an answer without a verdict."""
    if found is None or found["state"] != "ok":
        return None
    return {"score": int(found["choice"]), "why": found["reason"]}


def state_counts(verdicts: Verdicts, ids: Sequence[str], orders: Sequence[str]) -> Counter[str]:
    """Items by state: failed or missing if any order is, else invalid if any is, else ok."""
    counts: Counter[str] = Counter()
    for item_id in ids:
        states = [verdicts[item_id].get(order, {"state": "missing"})["state"] for order in orders]
        counts[next((state for state in ("missing", "failed", "invalid") if state in states), "ok")] += 1
    return counts


def codes_of(verdicts: Verdicts, ids: Sequence[str]) -> dict[str, int]:
    """How often each reason code stands with a reply that gave no verdict."""
    codes = Counter(
        str(found["code"]) for item_id in ids for found in verdicts[item_id].values() if found["state"] != "ok"
    )
    return dict(sorted(codes.items()))


def grade_summary(
    run: dict[str, Any], items: Sequence[dict[str, Any]], verdicts: Verdicts, judge: str, options: Any
) -> dict[str, Any]:
    """One judge's summary of a graded run; without `seconds` and `date`, which the caller knows."""
    ids = [item["id"] for item in items]
    graded = [(item, verdict) for item in items if (verdict := verdict_of_grade(verdicts[item["id"]].get("original")))]
    counts = state_counts(verdicts, ids, ("original",))
    scores = [verdict["score"] for _, verdict in graded]
    named = [str(item["id"]) for item, _ in graded]
    mean = mean_with_interval(scores, named, 1, options.seed, f"grade:{judge}", options.bootstrap)
    return {
        "lab": LAB,
        "mode": "grade",
        **{key: run[key] for key in ("model", "quant", "engine", "engine_version", "settings")},
        **{key: run[key] for key in ("task_set", "task_set_version")},
        "judge_model": judge,
        "graded": len(graded),
        "judge_mean": rounded(sum(scores) / len(scores), 2) if scores else None,
        "checks_passed": run["checks_passed"],
        "tasks": run["tasks"],
        "by_category": category_means(graded),
        "mean_words_by_score": words_by_score(graded),
        **kinship(judge, run["model"]),
        "judge_mean_interval": mean,
        "by_category_interval": category_intervals(graded, judge, options),
        "scores": {str(score): scores.count(score) for score in (1, 2, 3, 4, 5)},
        "invalid": counts["invalid"],
        "failed": counts["failed"],
        "missing": counts["missing"],
        "codes": codes_of(verdicts, ids),
        "length": length_of_scores(graded),
        "by_check": check_means(graded),
    }


def by_category(graded: Sequence[tuple[dict[str, Any], Any]]) -> dict[str, list[tuple[dict[str, Any], Any]]]:
    """category -> its items; those without one stand under NO_CATEGORY, or nowhere when no item has one."""
    groups: defaultdict[str, list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    for item, verdict in graded:
        groups[item["category"] or NO_CATEGORY].append((item, verdict))
    return {} if set(groups) == {NO_CATEGORY} else dict(sorted(groups.items()))


def category_means(graded: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, float]:
    """Mean score by category, 2 decimals."""
    groups = by_category(graded)
    return {name: round(sum(v["score"] for _, v in group) / len(group), 2) for name, group in groups.items()}


def category_intervals(
    graded: Sequence[tuple[dict[str, Any], dict[str, Any]]], judge: str, options: Any
) -> dict[str, dict[str, Any]]:
    """Mean score by category with its interval."""
    return {
        name: mean_with_interval(
            [verdict["score"] for _, verdict in group],
            [str(item["id"]) for item, _ in group],
            1,
            options.seed,
            f"grade:{judge}:{name}",
            options.bootstrap,
        )
        for name, group in by_category(graded).items()
    }


def words_by_score(graded: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, float]:
    """Mean words of the answers that got each score, 1 decimal."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for item, verdict in graded:
        groups[verdict["score"]].append(word_count(item["answer"]))
    return {str(score): round(sum(words) / len(words), 1) for score, words in sorted(groups.items())}


def length_of_scores(graded: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """Spearman's correlation of words and score. Longer may be better: it is a hint, not a proof of bias."""
    words = [float(word_count(item["answer"])) for item, _ in graded]
    scores = [float(verdict["score"]) for _, verdict in graded]
    rho = agreement.spearman(words, scores) if graded else None
    found = agreement.spearman_interval(rho, len(graded))
    reason = ("constant_scores" if len(graded) > 1 else "no_items") if rho is None else found.reason
    return {
        "unit": "words",
        "spearman": rounded(rho, 4),
        "low": rounded(found.low, 4),
        "high": rounded(found.high, 4),
        "n": len(graded),
        "reason": reason,
    }


def check_means(graded: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Mean score of the answers that passed their checks, and of those that did not; {} when none has checks."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for item, verdict in graded:
        passed = (item.get("checks") or {}).get("passed")
        if passed is not None:
            groups["passed" if passed else "not_passed"].append(verdict["score"])
    return {
        name: {"mean": round(sum(scores) / len(scores), 2), "n": len(scores)} for name, scores in sorted(groups.items())
    }


# === Compare ===


def choices_of(found: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, str | None]:
    """The two choices of a pair in shown positions; None where no reply came."""
    first, second = (found.get(order) for order in ("original", "swapped"))
    return tuple(None if v is None or v["state"] == "failed" else v["choice"] for v in (first, second))  # type: ignore[return-value]


def pair_kind(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What became of a pair: A, B, equal, flip, invalid, failed or missing."""
    states = [found.get(order, {"state": "missing"})["state"] for order in ("original", "swapped")]
    for state in ("missing", "failed", "invalid"):
        if state in states:
            return state
    original, swapped = choices_of(found)
    if agreement.lean(str(original), str(swapped)) != "none":
        return "flip"
    return str(agreement.resolve(original, swapped))


def rate_points(kinds: Sequence[str]) -> list[int]:
    """Half points for a: 2 a win, 1 an equal pair or one whose orders disagree, 0 a loss."""
    return [{"A": 2, "B": 0}.get(kind, 1) for kind in kinds]


def compare_summary(
    run_a: dict[str, Any],
    run_b: dict[str, Any],
    pairs: Sequence[dict[str, Any]],
    verdicts: Verdicts,
    judge: str,
    identical: int,
    options: Any,
) -> dict[str, Any]:
    """One judge's summary of a against b; without `seconds` and `date`.

    The flips are split by direction: leaning to the answer shown first, or to the one shown second.
    """
    kinds = {pair["item_id"]: pair_kind(verdicts[pair["item_id"]]) for pair in pairs}
    counts = Counter(kinds.values())
    judged = [pair for pair in pairs if kinds[pair["item_id"]] in ("A", "B", "equal", "flip")]
    said = [kinds[pair["item_id"]] for pair in judged]
    names = [pair["task"] for pair in judged]
    bias = agreement.position_bias(choices_of(verdicts[pair["item_id"]]) for pair in pairs)
    label = f"compare:{judge}:{run_a['model']}:{run_b['model']}"
    rate = mean_with_interval(rate_points(said), names, 2, options.seed, label, options.bootstrap)
    return {
        "lab": LAB,
        "mode": "compare",
        "a": {key: run_a[key] for key in ("model", "quant", "settings")},
        "b": {key: run_b[key] for key in ("model", "quant", "settings")},
        "judge_model": judge,
        "compared": len(judged),
        "wins_a": counts["A"],
        "wins_b": counts["B"],
        "ties": counts["equal"],
        "order_flips": counts["flip"],
        "flip_rate": rounded(counts["flip"] / len(judged), 3) if judged else None,
        "judge_failures": counts["invalid"] + counts["failed"] + counts["missing"],
        "flips_first": bias.k_first,
        "flips_second": bias.k_second,
        "flips_p": rounded(bias.p, 4),
        "invalid": counts["invalid"],
        "failed": counts["failed"],
        "missing": counts["missing"],
        "codes": codes_of(verdicts, [pair["item_id"] for pair in pairs]),
        "identical": identical,
        "win_rate": rate,
        "win_rate_with_identical": whole_rate(said, identical),
        "sign_test_p": rounded(agreement.sign_test(counts["A"], counts["B"]), 4),
        "by_category": category_rates(judged, kinds),
        "length": length_of_wins(judged, kinds),
        "kinship": {"a": kinship(judge, run_a["model"]), "b": kinship(judge, run_b["model"])},
    }


def whole_rate(said: Sequence[str], identical: int) -> float | None:
    """a's win rate when the pairs that were not sent, because both answers are the same text, count as equal."""
    n = len(said) + identical
    return rounded((sum(rate_points(said)) + identical) / (2 * n), 4) if n else None


def category_rates(judged: Sequence[dict[str, Any]], kinds: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Win rate of a by category."""
    groups = {
        name: [kinds[pair["item_id"]] for pair, _ in group]
        for name, group in by_category([(pair, None) for pair in judged]).items()
    }
    return {
        name: {
            "win_rate": round(sum(rate_points(group)) / (2 * len(group)), 4),
            **{key: group.count(kind) for key, kind in (("wins_a", "A"), ("wins_b", "B"))},
            "n": len(group),
        }
        for name, group in groups.items()
    }


def length_of_wins(judged: Sequence[dict[str, Any]], kinds: Mapping[str, str]) -> dict[str, Any]:
    """How often the longer answer (in words) won a decided pair, with Wilson's interval. 50% is not the null."""
    longer = total = 0
    for pair in judged:
        kind = kinds[pair["item_id"]]
        gap = word_count(pair["answer_a"]) - word_count(pair["answer_b"])
        if kind in ("A", "B") and gap:
            total += 1
            longer += (gap > 0) == (kind == "A")
    found = agreement.wilson(longer, total)
    share = rounded(longer / total, 4) if total else None
    return {
        "unit": "words",
        "longer_won": share,
        "low": rounded(found.low, 4),
        "high": rounded(found.high, 4),
        "k": longer,
        "n": total,
        "reason": found.reason,
    }


def strengths(games: Sequence[tuple[str, str, str | None]], tasks: Sequence[str], options: Any) -> dict[str, Any]:
    """Bradley-Terry log strengths of three runs or more, with intervals by task."""
    found = agreement.bradley_terry_estimates(
        games, clusters=tasks, seed=options.seed, name="strengths", n_resamples=min(1000, options.bootstrap)
    )
    return {name: shown_estimate(estimate) for name, estimate in found.items()}


# === Panel ===


def panel_score(scores: Sequence[int]) -> int | None:
    """A panel's score: the one most judges gave; without one, the median (of two in the middle the lower)."""
    if not scores:
        return None
    counts = Counter(scores)
    most = max(counts.values())
    top = [score for score, count in counts.items() if count == most]
    return top[0] if len(top) == 1 else sorted(scores)[(len(scores) - 1) // 2]


def panel_decision(decisions: Sequence[str | None]) -> str | None:
    """A panel's decision: the plurality of the judges' decisions; a draw is equal."""
    return agreement.majority(decisions)


def panel_agreement(ratings: Sequence[Sequence[Any]], judges: Sequence[str], level: str) -> dict[str, Any]:
    """How far the judges of a panel agree with each other: alpha over all, exact agreement for each two of them.

    ratings: one row per item, one entry per judge, None where it gave none.
    """
    alpha = agreement.krippendorff_alpha(ratings, level)
    exact = {}
    for i, first in enumerate(judges):
        for j in range(i + 1, len(judges)):
            both = [(row[i], row[j]) for row in ratings if row[i] is not None and row[j] is not None]
            same = sum(a == b for a, b in both)
            exact[f"{first} / {judges[j]}"] = {
                "k": same,
                "n": len(both),
                "value": rounded(same / len(both), 4) if both else None,
            }
    return {
        "alpha": rounded(alpha.value, 4),
        "level": level,
        "n": alpha.n_items,
        "reason": alpha.reason,
        "exact": exact,
    }
