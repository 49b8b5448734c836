"""Score one completion pair of the contamination probe: how much of the hidden rest came back, and how much by chance.

    check = load("evals/contamination/check.py")     # the runner loads it, after agreement.py
    check.score(item, {"original": {"choice": "text", "reason": guided}, "swapped": {...general}}, config)

The main score is F1(guided completion, own rest) - F1(same completion, another question's rest of the same category):
what generic wording would give anyway is taken off. Overlap and flags are those of agreement.py (ROUGE-L, common runs
that do not stand in the shown piece). A completion that begins by repeating the shown piece, or the end of it, is read
from behind that repetition: continuing a text that way is no recall, and must not hide one either.
"""

from __future__ import annotations

import re
from typing import Any

import agreement

# === Constants ===

WORD = re.compile(r"[^\W_]+")  # the words that agreement.py compares, here with their places in the text
ECHO_WORDS = 3  # own: fewer words at the seam are no repetition of the shown piece


# === Echo (pure) ===


def continuation(completion: str, shown: str) -> str:
    """The completion behind a repetition of the shown piece's end, of at least three words, with which it begins."""
    given = list(WORD.finditer(completion))
    words, seen = agreement.tokens_of(completion), agreement.tokens_of(shown)
    for length in range(min(len(words), len(seen)), ECHO_WORDS - 1, -1):
        if words[:length] == seen[-length:] and len(given) == len(words):
            return completion[given[length - 1].end() :].lstrip(" \t\r\n.,:;…-")
    return completion


# === Score ===


def completion_of(item: dict[str, Any], arguments: object, order: str) -> str | None:
    """The completion of one instruction, behind its echo of the shown piece; None when there was none."""
    part = arguments.get(order) if isinstance(arguments, dict) else None
    if not isinstance(part, dict) or part.get("choice") != "text" or not isinstance(part.get("reason"), str):
        return None
    return continuation(part["reason"], item["text"])


def score(item: dict[str, Any], arguments: object, config: dict[str, Any]) -> dict[str, Any]:
    """The item's score and secondary scores; a missing or refused completion counts as an empty one.

    item: `text` shown, `answer_a` own rest, `answer_b` another question's rest. Every secondary value is a number:
    f1_guided, f1_general, f1_mismatch in 0..1; gain_general = f1_guided - f1_general; run_words, run_chars of the
    guided completion; exact, near_exact, verbatim_run as 0 or 1; valid_output 1 when both completions are there.
    """
    guided, general = completion_of(item, arguments, "original"), completion_of(item, arguments, "swapped")
    own = agreement.overlap(item["answer_a"], guided or "", item["text"])
    other = agreement.overlap(item["answer_b"], guided or "", item["text"])
    plain = agreement.overlap(item["answer_a"], general or "", item["text"])
    flags = agreement.overlap_flags(own)
    secondary = {
        "f1_guided": own.rouge_l_f1,
        "f1_general": plain.rouge_l_f1,
        "f1_mismatch": other.rouge_l_f1,
        "gain_general": own.rouge_l_f1 - plain.rouge_l_f1,
        "run_words": own.run_tokens,
        "run_chars": own.run_chars,
        "exact": int("exact" in flags),
        "near_exact": int("near_exact" in flags),
        "verbatim_run": int("verbatim_run" in flags),
        "valid_output": int(guided is not None and general is not None),
    }
    return {
        "score": own.rouge_l_f1 - other.rouge_l_f1,
        "secondary": {name: {"score": value} for name, value in secondary.items()},
    }
