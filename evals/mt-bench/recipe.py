"""MT-Bench's pairwise judge: its own prompts word for word, a text reply, and the last mark in it as the verdict.

    recipe = load("evals/mt-bench/recipe.py")        # the runner loads it; it loads nothing itself
    original, swapped = recipe.plan_requests(item, config)
    recipe.parse(reply)                              # {"state": "ok", "choice": "B", "reason": ..., ...}

The prompts are not in this file: `build.py` writes them to prompts.jsonl from FastChat's judge_prompts.jsonl, eval.json
pins the hash, and the runner hands the text over as `config["inputs"]["prompts.jsonl"]`. An item that carries
`reference` (math, reasoning, coding) gets the reference-answer variant, an item of turn 2 the multi-turn one.
Pure functions: no file, clock, network or random source. `parse` never raises: a reply without a mark is `invalid`.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

# === Constants ===

PROMPTS = "prompts.jsonl"
TEMPLATES = {  # (turn, has a reference answer): name in FastChat's file
    (1, False): "pair-v2",
    (1, True): "pair-math-v1",
    (2, False): "pair-v2-multi-turn",
    (2, True): "pair-math-v1-multi-turn",
}
MARKS = {"A": "A", "B": "B", "C": "equal"}

# Exactly FastChat's three marks: upper case, double brackets, nothing between. "[A]" and "[[a]]" pass by unread.
MARK = re.compile(r"\[\[([ABC])\]\]")
# A mark that ends the text, behind it only emphasis, blanks and a full stop.
MARK_AT_END = re.compile(r"\[\[[ABC]\]\][\s*_`.]*\Z")
# Names in braces, lower case, as FastChat's templates use them; braces inside an answer are never looked at.
PLACEHOLDER = re.compile(r"\{([a-z_0-9]+)\}")
THINK = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


# === Prompts ===


@functools.lru_cache(maxsize=4)
def prompts_of(text: str) -> dict[str, tuple[str, str]]:
    """name -> (system prompt, user template) of a prompts file's text. Raises: ValueError naming the line."""
    found: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            found[row["name"]] = (row["system_prompt"], row["prompt_template"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{PROMPTS}:{number}: expected name, system_prompt, prompt_template: {error!r}") from None
    return found


def prompt_for(item: dict[str, Any], config: dict[str, Any]) -> tuple[str, str]:
    """System prompt and user template of one item. Raises: ValueError when the prompts file lacks the variant."""
    text = config.get("inputs", {}).get(PROMPTS)
    if not isinstance(text, str):
        raise ValueError(f"config: inputs: {PROMPTS}: expected the text of the built prompts file, got nothing")
    name = TEMPLATES[(2 if item.get("turn") == 2 else 1, bool(item.get("reference")))]
    found = prompts_of(text)
    if name not in found:
        raise ValueError(f"{PROMPTS}: expected a prompt named {name!r}, got {', '.join(sorted(found)) or 'none'}")
    return found[name]


# === Build ===


def fill(template: str, values: dict[str, str]) -> str:
    """The template with every placeholder replaced once; a value is never searched for placeholders itself.

    Raises: ValueError for a placeholder without a value.
    """

    def value_of(match: re.Match[str]) -> str:
        if match.group(1) not in values:
            raise ValueError(f"{PROMPTS}: placeholder {match.group(0)} has no value in this item")
        return values[match.group(1)]

    return PLACEHOLDER.sub(value_of, template)


def values_of(item: dict[str, Any], swapped: bool) -> dict[str, str]:
    """Placeholder values of one item in one order: question and answers, by turn and alone, and references."""
    first, second = ("answer_b", "answer_a") if swapped else ("answer_a", "answer_b")
    values = {"question": item["text"], "answer_a": item[first], "answer_b": item[second]}
    turns = [*(item.get("prior_turns") or []), {"text": item["text"], **{side: item[side] for side in (first, second)}}]
    for number, turn in enumerate(turns, 1):
        values[f"question_{number}"] = turn["text"]
        values[f"answer_a_{number}"], values[f"answer_b_{number}"] = turn[first], turn[second]
    for number, reference in enumerate(item.get("reference") or [], 1):
        values[f"ref_answer_{number}"] = reference
    return values


def request(item: dict[str, Any], config: dict[str, Any], swapped: bool = False) -> dict[str, Any]:
    """The chat request (without `model`) that shows `item`'s answers in one order, in MT-Bench's own words.

    No tool and no sampling parameter is part of it. Raises: ValueError when prompt and item do not fit.
    """
    system, template = prompt_for(item, config)
    return {
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": fill(template, values_of(item, swapped))},
        ],
        "max_tokens": config["max_tokens"],
        "reasoning_effort": config["reasoning_effort"],
    }


def plan_requests(item: dict[str, Any], config: dict[str, Any]) -> list[dict[str, Any]]:
    """The two requests of one item: answers as they are, then exchanged."""
    return [request(item, config), request(item, config, swapped=True)]


# === Parse ===


def message_of(reply: object) -> tuple[dict[str, Any], object]:
    """The first choice's message and finish reason; an empty message for any other shape."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return {}, None
    message = first.get("message")
    return (message if isinstance(message, dict) else {}), first.get("finish_reason")


def content_text(message: dict[str, Any]) -> str:
    """The message's text; a list of text parts is joined, anything else is no text."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def why_silent(message: dict[str, Any], finish: object) -> str:
    """The reason code of a reply in which no mark counts."""
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return "refusal"
    if finish == "content_filter":
        return "content_filter"
    if finish == "length":
        return "truncated"
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    if not content_text(message).strip() and isinstance(thoughts, str) and thoughts.strip():
        return "reasoning_only"
    return "no_verdict"


def visible(text: str) -> tuple[str | None, list[str]]:
    """The text behind one leading think block and the repair made; None when that block never closes."""
    opening = THINK.match(text)
    if not opening:
        return text, []
    closing = THINK_END.search(text, opening.end())
    return (text[closing.end() :], ["think_block"]) if closing else (None, [])


def last_mark(text: str, finish: object) -> str | None:
    """The last of [[A]], [[B]], [[C]] as 'A' | 'B' | 'equal'; None without one.

    In a reply cut at its token limit only a mark at the very end counts: an earlier one may only have been weighed.
    Source: MT-Bench (Zheng et al. 2023). FastChat's code takes [[A]] if it stands anywhere, then [[B]], then [[C]];
    the two differ when a judge quotes a mark before giving its own.
    """
    marks = MARK.findall(text)
    if not marks or (finish == "length" and not MARK_AT_END.search(text)):
        return None
    return MARKS[marks[-1]]


def parse(reply: object, mode: str = "text") -> dict[str, Any]:
    """What a judge's reply says, in shown positions; never raises.

    reply: a chat completion as decoded JSON, whatever it really is. mode: accepted for the runner's sake; this recipe
    knows text only. Returns: {"state": "ok" | "invalid", "choice": "A" | "B" | "equal" | "invalid", "reason": the
    judge's text or the code, "code": None | reason code, "repaired": [repair names], "hint": None}.
    """
    message, finish = message_of(reply)
    text, repaired = visible(content_text(message))
    choice = None if text is None else last_mark(text, finish)
    if text is None or choice is None:
        code = "truncated" if text is None else why_silent(message, finish)
        return {"state": "invalid", "choice": "invalid", "reason": code, "code": code, "repaired": [], "hint": None}
    reason = text.strip()
    return {"state": "ok", "choice": choice, "reason": reason, "code": None, "repaired": repaired, "hint": None}
