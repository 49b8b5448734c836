"""Judges that need no model: what any real judge has to beat.

`longer` picks the answer with more characters, `first` whatever is shown first, `random` a seeded coin.
A control answers like a server, with a reply in the chat-completions shape and in the arm's output mode, and takes the
same road from there to the raw row. Pure; the coin depends on seed, item, order and repeat alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

# === Constants ===

KINDS = ("longer", "first", "random")
WORDS = {
    "longer": "Control: the longer answer in characters, equal when they are of one length.",
    "first": "Control: always the answer shown first.",
    "random": "Control: a seeded coin.",
}
MARKS = {"A": "[[A]]", "B": "[[B]]", "equal": "[[C]]"}


# === Choice ===


def hashed(key: str) -> bytes:
    """The bytes a coin or die is read from; text that is no UTF-8 has them too."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def choose(kind: str, first: str, second: str, coin_key: str) -> str:
    """The shown position a control picks: 'A' (first), 'B' (second) or 'equal'."""
    if kind == "first":
        return "A"
    if kind == "random":
        return "A" if hashed(coin_key)[0] & 1 else "B"
    if len(first) == len(second):
        return "equal"
    return "A" if len(first) > len(second) else "B"


# === Reply ===


def reply(kind: str, item: dict[str, Any], order: str, repeat: int, seed: object, mode: str) -> dict[str, Any]:
    """A chat completion that holds the control's verdict on one item in one order, in the given output mode."""
    first, second = item["answer_a"], item["answer_b"]
    if order == "swapped":
        first, second = second, first
    key = json.dumps([seed, item["item_id"], order, repeat])
    choice = choose(kind, first, second, key)
    return spoken(
        kind, key, "grade", {"choice": choice, "reason": WORDS[kind]}, f"{WORDS[kind]}\n\n{MARKS[choice]}", mode
    )


def spoken(kind: str, key: str, tool: str, verdict: dict[str, Any], text: str, mode: str) -> dict[str, Any]:
    """A chat completion that says a verdict in an output mode: by the tool, as JSON, or as the given text."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if mode in ("tool", "required"):
        message["tool_calls"] = [{"type": "function", "function": {"name": tool, "arguments": json.dumps(verdict)}}]
    else:
        message["content"] = text if mode == "text" else json.dumps(verdict)
    return {
        "id": f"control-{hashed(f'{kind} {key}').hex()[:20]}",
        "model": f"control-{kind}",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0},  # a control reads no token, so zero is the true count
    }
