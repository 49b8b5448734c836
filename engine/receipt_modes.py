"""The modes that make, join, verify and compare evidence: --receipt, --merge, --verify, --diff; the demo's receipts.

Here options become calls and findings become output and exit codes; the work is done in the rooms named after it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import evaluation as evaluations
import foreign
import receipt as receipts
import verify as verifying

# === Constants ===

DEMO_RECEIPTS = 20  # receipts of receipts/ that the demo looks at


# === Receipt ===


def main_receipt(evaluation: evaluations.Evaluation, options: Any) -> int:
    """--receipt RUN [--merge-baseline RUN …] [--pending] [--out DIR]."""
    sources = [options.receipt, *(options.merge_baseline or [])]
    target = options.out_given or os.path.join(options.receipt, "receipt")
    made = receipts.publish(sources, target, evaluation, options.git_history, options.pending)
    ours = made["receipt"]
    print(target)
    for name in ours["outside_the_frozen_list"]:
        note(f"arm {name} is outside the frozen list; the receipt says so")
    if ours["freeze"]["reason"] == "not_committed":
        note("eval.json as the run used it is in no commit; the receipt names no freeze")
    hint = f"anybody can verify it with: python3 -I run_eval.py --verify {target}"
    print(f"hint: {hint}", file=sys.stderr)
    return 0


def note(text: str) -> None:
    print(f"run_eval: warning: {text}", file=sys.stderr)


def main_merge(evaluation: evaluations.Evaluation, options: Any) -> int:
    """--merge RUN RUN …: a new run under --out."""
    if len(options.merge) < 2:
        raise evaluations.SettingError("--merge: expected two runs or more, got one")
    folder = receipts.merge(options.merge, options.out, time.time())
    print(folder)
    print(f"hint: see the result with: python3 -I run_eval.py --rescore {folder}", file=sys.stderr)
    return 0


# === Verify ===


def evidence_folder(path: str) -> str:
    """The folder of what --verify was given: itself, or that of a receipt.json. Raises: ForeignError."""
    if os.path.isdir(path):
        return path
    if not os.path.exists(path):
        raise foreign.ForeignError(f"{path}: no such file or folder")
    if os.path.basename(path) != "receipt.json":
        raise foreign.ForeignError(f"{path}: expected a receipt folder, a receipt.json or a run folder")
    return os.path.dirname(path) or "."


def main_verify(evaluation: evaluations.Evaluation, options: Any) -> int:
    try:
        expected = verifying.parse_expected(options.expect or [])
    except ValueError as error:
        raise evaluations.SettingError(str(error)) from None
    folder = evidence_folder(options.verify)
    state = verifying.verify(folder, evaluation, time.time(), expected)
    checks = list(state.done.values())
    title = f"verify {options.verify}"
    figures = state.fresh
    if options.format == "json":
        print(json.dumps(verifying.as_json(options.verify, checks, figures), indent=2, ensure_ascii=False))
    else:
        print(verifying.render(title, checks, figure_lines(figures)), end="")
    return 1 if any(check.status == verifying.FAIL for check in checks) else 0


def figure_lines(result: dict[str, Any] | None) -> list[str]:
    """The headline of each judge as recomputed, so that a reader sees what was verified."""
    lines = []
    for name, arm in (result or {}).get("arms", {}).items():
        shown = []
        for metric in ("kappa", "agreement", "position_consistency", "mean"):
            found = arm["metrics"].get(metric)
            if found and found["value"] is not None:
                span = f" [{found['low']:.3f}, {found['high']:.3f}]" if found["low"] is not None else ""
                shown.append(f"{metric} {found['value']:.4f}{span}")
        lines.append(f"{foreign.shown(name, 60)}: {', '.join(shown)}")
    return lines
