"""A result turned into an exit code: pass, fail, or inconclusive when the interval straddles the threshold.

    kappa>=0.6                     the value alone, of every judge that is not a control
    'kappa>=0.6 @95'               the 95% interval: pass above, fail below, else inconclusive
    'pareto:valid_output>=0.99'    one judge
    'pareto vs baseline:kappa>0 @95'    the difference of two judges

Metrics are named as in summary.json; the tables' column words are taken too (consistent, valid). An undefined figure
never passes: without an interval asked for it fails, with one it is inconclusive. Pure.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import agreement

# === Constants ===

GATE = re.compile(
    r"(?:(?P<who>[^:]+?)\s*:\s*)?(?P<metric>[A-Za-z][A-Za-z0-9_]*)\s*(?P<sign>>=|<=|>|<)\s*"
    r"(?P<threshold>-?\d+(?:\.\d+)?)(?:\s*@\s*(?P<level>\d+(?:\.\d+)?)%?)?"
)
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
ALIASES = {"consistent": "position_consistency", "valid": "valid_output", "AC1": "ac1"}  # what the tables call them
PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
EXIT = {PASS: 0, FAIL: 1, INCONCLUSIVE: 4}
CONTROLS = ("control-longer", "control-first", "control-random")
HOPELESS = 20  # times the pairs at hand: who would need more than that is not told to add some


class GateError(Exception):
    """A gate that cannot be read or names what the result does not have."""

    exit_code = 2


class Gate(NamedTuple):
    """One condition; who: judge, 'A vs B', or None for all that are no controls; level in (0, 1) or None."""

    text: str
    who: str | None
    metric: str
    sign: str
    threshold: float
    level: float | None


class Outcome(NamedTuple):
    """What became of one gate for one judge: pass, fail or inconclusive, and why in words."""

    verdict: str
    text: str


# === Read ===


def parse_gate(text: str) -> Gate:
    """One gate from its text. Raises: GateError."""
    found = GATE.fullmatch(text.strip())
    if found is None:
        raise GateError(f"--gate {text!r}: expected [JUDGE:]METRIC>=NUMBER [@LEVEL], e.g. 'kappa>=0.6 @95'")
    level = float(found["level"]) / 100 if found["level"] else None
    if level is not None and not 0 < level < 1:
        raise GateError(f"--gate {text!r}: expected a level between 0 and 100, got {found['level']}")
    metric = ALIASES.get(found["metric"], found["metric"])
    return Gate(text.strip(), found["who"], metric, found["sign"], float(found["threshold"]), level)


# === Names ===


def refuse_unknown_metrics(gates: list[Gate], names: Iterable[str]) -> None:
    """Raises: GateError for the first gate on a metric that no result of the evaluation can have."""
    known = list(names)
    for gate in gates:
        if gate.metric not in known:
            raise no_metric(gate, known)


def no_metric(gate: Gate, known: Iterable[str]) -> GateError:
    return GateError(f"--gate {gate.text!r}: no metric {gate.metric!r}; there are {', '.join(known)}")


def refuse_unknown_judges(gates: list[Gate], names: list[str]) -> None:
    """Raises: GateError for the first gate on a judge that the run does not have."""
    for gate in gates:
        for who in gate.who.split(" vs ") if gate.who else []:
            if who not in names:
                text = f"--gate {gate.text!r}: no judge {who!r}; there are {', '.join(names)}"
                both = f"; ask both in one run, --arms {names[0]},{who}, or join a run of it with --merge"
                raise GateError(text + (both if who in CONTROLS else ""))


# === Find the figures ===


def figures(result: dict[str, Any], gate: Gate) -> Iterator[tuple[str, dict[str, Any]]]:
    """(who, figure) of everything a gate speaks of. Raises: GateError naming what there is."""
    if gate.who is not None and " vs " in gate.who:
        yield gate.who, difference(result, gate)
        return
    arms = result["arms"]
    if gate.who is not None and gate.who not in arms:
        raise GateError(f"--gate {gate.text!r}: no judge {gate.who!r}; there are {', '.join(arms)}")
    real = [name for name, arm in arms.items() if arm.get("provenance") != "control"]
    for name in [gate.who] if gate.who else real or list(arms):
        metrics = arms[name]["metrics"]
        if gate.metric not in metrics:
            raise no_metric(gate, metrics)
        yield name, metrics[gate.metric]


def difference(result: dict[str, Any], gate: Gate) -> dict[str, Any]:
    """The figure of 'A vs B', its sign turned when the result holds 'B vs A'. Raises: GateError."""
    first, _, second = str(gate.who).partition(" vs ")
    for entry in result.get("comparisons", []):
        shown = entry["differences"].get(gate.metric)
        if shown is not None and (entry["a"], entry["b"]) == (first, second):
            return dict(shown)
        if shown is not None and (entry["a"], entry["b"]) == (second, first):
            ends = [None if shown[end] is None else -shown[end] for end in ("value", "high", "low")]
            return {**shown, "value": ends[0], "low": ends[1], "high": ends[2]}
    raise GateError(f"--gate {gate.text!r}: no such comparison of judges in this result")


# === Decide ===


def decide(gate: Gate, shown: dict[str, Any], level: float) -> Outcome:
    """Whether one figure passes. level: that of the result's intervals. Raises: GateError for another level."""
    value = shown.get("value")
    if gate.level is not None and abs(gate.level - level) > 1e-9:
        raise GateError(
            f"--gate {gate.text!r}: the intervals of this result are {100 * level:g}% (change with --level)"
        )
    if value is None:
        verdict = FAIL if gate.level is None else INCONCLUSIVE
        return Outcome(verdict, f"{gate.metric} is undefined ({shown.get('reason')})")
    holds = SIGNS[gate.sign]
    if gate.level is None:
        return Outcome(PASS if holds(value, gate.threshold) else FAIL, f"{gate.metric} {value:.4f}")
    low, high = shown.get("low"), shown.get("high")
    if low is None or high is None:
        reason = (shown.get("interval") or {}).get("reason") or "no interval"
        return Outcome(INCONCLUSIVE, f"{gate.metric} {value:.4f}, no interval ({reason})")
    ends = {holds(low, gate.threshold), holds(high, gate.threshold)}
    text = f"{gate.metric} {value:.4f} [{low:.4f}, {high:.4f}]"
    if len(ends) == 1:
        return Outcome(PASS if ends.pop() else FAIL, text)
    return Outcome(INCONCLUSIVE, text + more_pairs(gate, shown, value, low, high))


def more_pairs(gate: Gate, shown: dict[str, Any], value: float, low: float, high: float) -> str:
    """How many further pairs would settle it if the value stayed as it is."""
    n = shown.get("n_units") or shown.get("n") or 0
    needed = agreement.pairs_to_settle(n, value, agreement.Interval(low, high, None, "percentile"), gate.threshold)
    if needed is None or n == 0:
        return ""
    if needed <= n:
        return "; an end of the interval is the threshold itself, and more pairs may leave it there"
    unit = "pairs" if shown.get("n_units", n) == shown.get("n", n) else "questions"
    if needed > HOPELESS * n:
        return f"; at this value about {needed} {unit} would settle it, {needed / n:.0f} times those here"
    return f"; about {needed - n} more {unit} would settle it at this value"


def check(result: dict[str, Any], gates: list[Gate]) -> tuple[int, list[str]]:
    """Exit code and one line per gate and judge: 1 if any fails, else 4 if any is inconclusive, else 0."""
    lines, verdicts = [], []
    level = result["bootstrap"]["level"]
    for gate in gates:
        for who, shown in figures(result, gate):
            outcome = decide(gate, shown, level)
            verdicts.append(outcome.verdict)
            named = gate.text if gate.who else f"{who}: {gate.text}"
            lines.append(f"gate {outcome.verdict}: {named}: {outcome.text}")
    worst = next((verdict for verdict in (FAIL, INCONCLUSIVE) if verdict in verdicts), PASS)
    return EXIT[worst], lines
