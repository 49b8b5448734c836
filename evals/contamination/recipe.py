"""The contamination probe: show the first piece of a question, ask for the rest, with and without its set's name.

    recipe = load("evals/contamination/recipe.py")   # the runner loads it; it loads nothing itself
    guided, general = recipe.plan_requests(item, config)
    recipe.parse(reply)                              # {"state": "ok", "choice": "text", "reason": the completion, ...}

The runner's two orders carry the two instructions: "original" is the guided one, "swapped" the general one.
Items: `text` is the piece shown, `answer_a` the true rest, `answer_b` another question's rest of the same category;
neither rest is ever shown. Instructions and names are frozen in eval.json. Pure functions; `parse` never raises.
"""

from __future__ import annotations

import re
from typing import Any

# === Constants ===

LONGEST_KEPT = 4000  # characters of a completion; the longest rest asked for has under 1,500
PLACEHOLDER = re.compile(r"\{(dataset|split|shown)\}")
THINK = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


# === Build ===


def request(item: dict[str, Any], config: dict[str, Any], swapped: bool = False) -> dict[str, Any]:
    """The chat request (without `model`): guided, or, as the second of the two, general.

    config: `prompt` (system message), `instructions` {kind: {"guided", "general"}}, `dataset`, `dataset_split`.
    Source: Golchin & Surdeanu 2024 (guided and general instruction); the wording is our own.
    """
    template = config["instructions"][item["kind"]]["general" if swapped else "guided"]
    values = {"dataset": config["dataset"], "split": config["dataset_split"], "shown": item["text"]}
    user = PLACEHOLDER.sub(lambda match: values[match.group(1)], template)
    return {
        "messages": [{"role": "system", "content": config["prompt"]}, {"role": "user", "content": user}],
        "max_tokens": config["max_tokens"],
        "reasoning_effort": config["reasoning_effort"],
    }


def plan_requests(item: dict[str, Any], config: dict[str, Any]) -> list[dict[str, Any]]:
    """The two requests of one item: guided, then general."""
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


def visible(text: str) -> tuple[str, list[str]]:
    """The text behind one leading think block and the repair made; nothing when that block never closes."""
    opening = THINK.match(text)
    if not opening:
        return text, []
    closing = THINK_END.search(text, opening.end())
    return (text[closing.end() :], ["think_block"]) if closing else ("", [])


def why_silent(message: dict[str, Any], finish: object) -> str:
    """The reason code of a reply without a completion."""
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return "refusal"
    if finish == "content_filter":
        return "content_filter"
    if finish == "length":
        return "truncated"
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    return "reasoning_only" if isinstance(thoughts, str) and thoughts.strip() else "no_verdict"


def parse(reply: object, mode: str = "text") -> dict[str, Any]:
    """The completion in a reply; never raises. A completion cut at its limit is kept: its start can still be recall.

    Returns: {"state": "ok" | "invalid", "choice": "text" | "invalid", "reason": the completion (at most 4,000
    characters) or the code, "code": None | reason code, "repaired": [repair names], "hint": None}.
    """
    message, finish = message_of(reply)
    text, repaired = visible(content_text(message))
    if not text.strip():
        code = why_silent(message, finish)
        return {"state": "invalid", "choice": "invalid", "reason": code, "code": code, "repaired": [], "hint": None}
    kept = text.strip()[:LONGEST_KEPT]
    return {"state": "ok", "choice": "text", "reason": kept, "code": None, "repaired": repaired, "hint": None}
