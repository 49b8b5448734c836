"""The machine checks of the fixture in one place: which pairs have a proof, and the proof of each.

    proofs()["math-07"](answer)      # True exactly on an answer that is right in the planted respect

A proof runs the code of an answer, recomputes its result, counts its words or items, parses it, or looks its claims up
in the question's source text. The checks lie by category in tests/fixture_proofs_<category>.py.
"""

from __future__ import annotations

from collections.abc import Callable

import fixture_proofs_coding
import fixture_proofs_extraction
import fixture_proofs_humanities
import fixture_proofs_math
import fixture_proofs_reasoning
import fixture_proofs_roleplay
import fixture_proofs_stem
import fixture_proofs_writing

Proof = Callable[[str], bool]

PREFIX = "proof_"  # proof_math_07 belongs to math-07
ROOMS = (
    fixture_proofs_writing,
    fixture_proofs_roleplay,
    fixture_proofs_reasoning,
    fixture_proofs_math,
    fixture_proofs_coding,
    fixture_proofs_extraction,
    fixture_proofs_stem,
    fixture_proofs_humanities,
)


def proofs() -> dict[str, Proof]:
    """item_id -> its proof, over all categories."""
    return {
        name.removeprefix(PREFIX).replace("_", "-"): check
        for module in ROOMS
        for name, check in vars(module).items()
        if name.startswith(PREFIX)
    }
