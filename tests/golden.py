"""Runs a file of golden values through the statistics and says how many pass.

    python3 tests/golden.py GOLDEN.json

Reads the one file named; prints each failing case and then `N passed, N failed`. Exit code 0 if none failed, 1
otherwise. The schema is `judge-agreement-golden/1`: cases of {id, estimator, input, expect, tol}. Only the keys in
`expect` are compared: numbers within `tol`, a bootstrap end {target, min, max} by its bounds, null with null.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

# === The statistics, loaded from the bytes beside this folder ===


def load_agreement() -> ModuleType:
    """The agreement module of this checkout, executed from its own bytes."""
    path = Path(__file__).resolve().parent.parent / "agreement.py"
    module = ModuleType("agreement")
    module.__file__ = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


agreement: Any = load_agreement()

Case = Mapping[str, Any]
Result = dict[str, Any]
SHARE_TOLERANCE = 0.02  # an undefined share is itself a Monte-Carlo figure: four sd at 10,000 resamples

# === From golden inputs to our functions and back ===


def tie(label: Any) -> Any:
    """A label as the golden files write it."""
    return "tie" if label == "equal" else label


def raw_agreement(case: Case) -> Result:
    """agreement, k, n, wilson_lo, wilson_hi, per_gold"""
    found = agreement.raw_agreement(case["gold"], case["pred"])
    per_gold = {tie(label): list(counts) for label, counts in found.per_gold.items()}
    low, high = found.wilson.low, found.wilson.high
    return {
        **found._asdict(),
        "agreement": found.value,
        "wilson_lo": low,
        "wilson_hi": high,
        "per_gold": per_gold,
    }


def cohen_kappa(case: Case) -> Result:
    """kappa, po, pe"""
    found = agreement.kappa(case["gold"], case["pred"])
    return {**found._asdict(), "kappa": found.value}


def gwet_ac1(case: Case) -> Result:
    """ac1, pe, q"""
    found = agreement.gwet_ac1(case["gold"], case["pred"], case.get("q"))
    return {**found._asdict(), "ac1": found.value}


def grade_agreement(case: Case) -> Result:
    """qwk, spearman, pearson, mae, bias, rmse, exact, within1, n, n_total"""
    found = agreement.grade_agreement(case["human"], case["judge"])
    return {**found._asdict(), "reason": found.reasons.get("qwk")}


def majority(case: Case) -> Result:
    """labels"""
    return {"labels": [tie(agreement.majority(labels)) for labels in case["repeats"]]}


def fleiss_kappa(case: Case) -> Result:
    """kappa, pa, pe"""
    found = agreement.fleiss_kappa(case["ratings"])
    return {**found._asdict(), "kappa": found.value}


def krippendorff_alpha(case: Case) -> Result:
    """alpha"""
    found = agreement.krippendorff_alpha(case["ratings"], case.get("level") or "nominal")
    return {**found._asdict(), "alpha": found.value}


def stability(case: Case) -> Result:
    """modal, pairwise, unanimous, flip_rate"""
    found = agreement.stability(case["ratings"])
    return dict(found._asdict())


def repeat_summary(case: Case) -> Result:
    """agreement, kappa: values, mean, sd, min, max each"""
    found = agreement.repeat_summary(case["gold"], case["repeats"])
    return {name: dict(spread._asdict()) for name, spread in found._asdict().items()}


def position(case: Case) -> Result:
    """pc, pc_valid, k_*, flips_*, share_first, wilson_*, binom_p, preference_fairness, first_slot_rate"""
    found = agreement.position_bias(case["verdicts"])
    return {**found._asdict(), "wilson_lo": found.wilson.low, "wilson_hi": found.wilson.high, "binom_p": found.p}


def length_bias(case: Case) -> Result:
    """judge_longer, human_longer, b, c, excess, mcnemar_p, eo_gap, judge_wilson, human_wilson, counts"""
    rows = [(row["len_a"], row["len_b"], row.get("judge"), row.get("human")) for row in case["rows"]]
    found = agreement.length_bias(rows)
    ends = {name: [getattr(found, name).low, getattr(found, name).high] for name in ("judge_wilson", "human_wilson")}
    return {**found._asdict(), **ends}


def paired(case: Case) -> Result:
    """better, tie, worse, sign_p"""
    found = agreement.paired(case["gold"], case["pred1"], case["pred2"], case.get("clusters"))
    return {**found._asdict(), "flip_p": found.flip.p}


def sign_test(case: Case) -> Result:
    """p"""
    return {"p": agreement.sign_test(case["better"], case["worse"])}


def signflip(case: Case) -> Result:
    """p, clusters, nonzero"""
    return dict(agreement.sign_flip_test(case["d"], case.get("clusters"))._asdict())


def verdict(case: Case) -> Result:
    """verdict"""
    return dict(agreement.verdict(case["lo"], case["hi"], case["range1"], case["range2"])._asdict())


def human_ceiling(case: Case) -> Result:
    """pairwise, pair_agree, pair_total, alpha, kappa, loo_n, human_loo, judge_loo"""
    return dict(agreement.human_ceiling(case["votes"], case["judge"])._asdict())


def alt_test(case: Case) -> Result:
    """winning_rate, rho, passes, p, rho_by"""
    names = ("eps", "fdr", "scoring", "min_items", "q")
    options = {name: case[name] for name in names if case.get(name) is not None}
    if "rmse" in str(options.get("scoring", "")):
        options["scoring"] = "rmse"
    return dict(agreement.alt_test(case["llm"], case["humans"], **options)._asdict())


def adjust(case: Case) -> Result:
    """adjusted"""
    return {"adjusted": agreement.adjust(case["p"], case["method"].removeprefix("fdr_"))}


def rogan_gladen(case: Case) -> Result:
    """theta, lo, hi, p, q0, q1"""
    sets = (case["test_labels"], case["test_preds"], case["unlabeled_preds"])
    found = agreement.rogan_gladen(*sets, labelled_is_random_sample=True)
    return {**found._asdict(), "lo": found.low, "hi": found.high}


def ppi_mean(case: Case) -> Result:
    """theta, lo, hi, lam"""
    sets = (case["y"], case["yhat"], case["yhat_unlabeled"])
    found = agreement.ppi_mean(*sets, labelled_is_random_sample=True, lam=case.get("lam"))
    return {**found._asdict(), "lo": found.low, "hi": found.high}


def planning(case: Case) -> Result:
    """n or mde, by kind"""
    kind = case["kind"]
    options = {name: case[name] for name in ("power", "level") if name in case}
    if "alpha" in case:
        options["level"] = 1 - case["alpha"]
    if kind == "n_paired":
        return {"n": agreement.sample_size_paired(case["delta"], case["psi"], **options)}
    if kind == "mde_paired":
        return {"mde": agreement.detectable_difference(case["n"], case["psi"], **options)}
    if kind == "n_proportion":
        return {"n": agreement.sample_size_rate(case["p"], case["half"], **options)}
    if kind == "n_kappa":
        return {"n": agreement.sample_size_kappa(case["po"], case["pe"], case["half"], **options)}
    raise ValueError(f"planning: unknown kind {kind!r}")


def bradley_terry(case: Case) -> Result:
    """strength"""
    return dict(agreement.bradley_terry([tuple(game) for game in case["games"]])._asdict())


def overlap(case: Case) -> Result:
    """rouge_l_precision, rouge_l_recall, rouge_l_f1, run_tokens, run_chars"""
    return dict(agreement.overlap(case["target"], case["prediction"], case.get("shown", ""))._asdict())


def mtbench_agreement(case: Case) -> Result:
    """turnT_SETUP_WHO: [agreeing, total]"""
    found = agreement.mtbench_agreement(case["votes"])
    empty = {f"turn{t}_{s}_{w}": [0, 0] for t in (1, 2) for s in SETUPS for w in ("gpt4-pair_human", "human_human")}
    return {**empty, **{f"turn{turn}_{setup}_{who}": list(counts) for (turn, setup, who), counts in found.items()}}


SETUPS = ("with_tie", "without_tie")


def bootstrap_rows(case: Case) -> Iterable[tuple[Any, Sequence[Any], Any, Any]]:
    """(gold, one prediction per judge, cluster, stratum) of a bootstrap case."""
    if "cells" in case:
        return [(cell[0], cell[1:-1], None, None) for cell in case["cells"] for _ in range(cell[-1])]
    n = len(case["gold"])
    clusters, strata = (case.get(name) or [None] * n for name in ("clusters", "strata"))
    return zip(case["gold"], list(zip(*case["preds"])), clusters, strata)


def bootstrap(case: Case) -> Result:
    """estimate, units, lo, hi, bca_lo, bca_hi, undefined_share"""
    rows = [row for row in bootstrap_rows(case) if row[0] is not None and None not in row[1]]
    seen = {agreement.canonical(label) for gold, labels, *_ in rows for label in (gold, *labels)}
    sampler = agreement.Resampler(seed=case.get("seed", 1), name="golden", q=case.get("q") or max(2, len(seen)))
    for gold, labels, cluster, stratum in rows:
        sampler.add(gold, {f"judge{i}": label for i, label in enumerate(labels)}, cluster=cluster, stratum=stratum)
    n_judges = len(case["cells"][0]) - 2 if "cells" in case else len(case["preds"])
    key = (*(f"judge{i}" for i in range(n_judges)), case.get("metric") or "kappa")
    found = sampler.estimates([key], bca=True)[key]
    bca = found.bca
    return {
        "estimate": found.value,
        "units": found.n_units,
        "lo": found.interval.low,
        "hi": found.interval.high,
        "bca_lo": bca.low if bca else None,
        "bca_hi": bca.high if bca else None,
        "undefined_share": found.interval.undefined / (found.interval.resamples or 1),
        "reason": found.interval.reason,
    }


ESTIMATORS: dict[str, Callable[[Case], Result]] = {
    function.__name__: function
    for function in (
        raw_agreement,
        cohen_kappa,
        gwet_ac1,
        grade_agreement,
        majority,
        fleiss_kappa,
        krippendorff_alpha,
        stability,
        repeat_summary,
        position,
        length_bias,
        paired,
        sign_test,
        signflip,
        verdict,
        human_ceiling,
        alt_test,
        adjust,
        rogan_gladen,
        ppi_mean,
        planning,
        bradley_terry,
        overlap,
        mtbench_agreement,
        bootstrap,
    )
}


def evaluate(estimator: str, input: Case) -> Result:
    """Our results for one golden case, under the golden file's names. Raises: KeyError for an unknown estimator."""
    return ESTIMATORS[estimator](input)


# === Comparing ===


def differences(expected: Any, got: Any, tolerance: float, where: str = "") -> Iterable[str]:
    """What does not match, one line each."""
    if isinstance(expected, dict) and {"target", "min", "max"} <= set(expected):
        if not isinstance(got, float) or not expected["min"] <= got <= expected["max"]:
            yield f"{where}: expected within {expected['min']}..{expected['max']}, got {got!r}"
    elif isinstance(expected, dict):
        for key, value in expected.items():
            if not isinstance(got, Mapping) or key not in got:
                yield f"{where}{key}: expected {value!r}, got nothing"
            else:
                yield from differences(value, got[key], SHARE_TOLERANCE if key == "undefined_share" else tolerance, key)
    elif isinstance(expected, list):
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            yield f"{where}: expected {expected!r}, got {got!r}"
            return
        for index, (one, other) in enumerate(zip(expected, got)):
            yield from differences(one, other, tolerance, f"{where}[{index}]")
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        if (
            isinstance(got, bool)
            or not isinstance(got, (int, float))
            or not math.isclose(expected, got, rel_tol=0, abs_tol=tolerance)
        ):
            yield f"{where}: expected {expected!r}, got {got!r}"
    elif expected != got:
        yield f"{where}: expected {expected!r}, got {got!r}"


def case_failures(case: Mapping[str, Any]) -> list[str]:
    """What does not match in one case; a crash is a mismatch, so that the other cases still run."""
    try:
        return list(differences(case["expect"], evaluate(case["estimator"], case["input"]), case["tol"]))
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"]


def failures(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Case id -> what does not match, for every case of a golden file; empty lists for the passing ones."""
    return {case["id"]: case_failures(case) for case in document["cases"]}


def main(arguments: Sequence[str]) -> int:
    """Print the failing cases and the count of both kinds."""
    if len(arguments) != 1:
        print("usage: python3 tests/golden.py GOLDEN.json", file=sys.stderr)
        return 2
    found = failures(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    failed = {name: lines for name, lines in found.items() if lines}
    for name, lines in failed.items():
        print(f"FAIL {name}", *lines, sep="\n    ")
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
