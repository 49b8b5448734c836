"""How one answer pair becomes two judge requests, and how a judge's reply becomes a choice.

    recipe = load("recipe.py")                       # the runner loads it; it loads nothing itself
    original, swapped = recipe.plan_requests(item, config)
    recipe.parse(reply)                              # {"state": "ok", "choice": "A", "reason": ..., ...}

Pure functions: no file, clock, network or random source. `parse` never raises: whatever a server sent becomes
`ok` with a choice in shown positions ("A" is the answer shown first), or `invalid` with one reason code.
Only lossless repairs are made, and each is recorded by name; nothing is guessed, completed or mined from prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

# === Constants ===

TOOL_NAME = "grade"
CHOICES = {"a": "A", "b": "B", "equal": "equal"}  # compared case-insensitively, whole string only
MARKS = {"A": "A", "B": "B", "C": "equal"}
MODES = ("tool", "required", "json_schema", "json_object", "text")

EMPTY_ANSWER = "[this answer is empty]"  # an explicit mark, so that an empty side is not read as a formatting slip

JSON_INSTRUCTION = (
    ' Reply with one JSON object and nothing else: {"choice": "A", "B" or "equal", "reason": the sentence}.'
)
TEXT_INSTRUCTION = (
    " Write the reason first, then end with a line that holds only your verdict:"
    " [[A]] if A is better, [[B]] if B is better, [[C]] if they are equally good."
)

# Zero-width characters and the byte order mark: models put them around a label, they carry no meaning.
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"

# A fence that encloses the whole text; an info word such as "json" may follow the opening fence.
WHOLE_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n?(.*?)\r?\n?[ \t]*```", re.DOTALL)
FENCE_MARK = re.compile(r"```[A-Za-z0-9_-]*")
THINK = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
THINK_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
MAX_DEPTH = 100  # levels of a verdict object; where a parser gives up by itself differs between Python versions
TOOL_CALL_TEXT = r'<tool_call>|<function[=_]|"name"\s*:\s*"{name}"'  # a call that was written out as text


# === Records ===


class Verdict(NamedTuple):
    """What one reply says: choice in shown positions, or why there is none."""

    choice: str  # "A" | "B" | "equal" | "invalid"
    reason: str  # the judge's own words; for an invalid reply the reason code again
    code: str | None = None  # None when ok, else a fixed reason code
    repaired: tuple[str, ...] = ()
    hint: str | None = None

    def as_dict(self) -> dict[str, Any]:
        state = "invalid" if self.choice == "invalid" else "ok"
        return {
            "state": state,
            "choice": self.choice,
            "reason": self.reason,
            "code": self.code,
            "repaired": list(self.repaired),
            "hint": self.hint,
        }


class Form(NamedTuple):
    """What a verdict looks like: the tool that takes it, the decisive key, how its object is read, its text marks.

    read: object -> (choice, the judge's words, repairs); raises Unusable. marks: text between [[ and ]] -> choice.
    """

    tool: str
    key: str
    read: Callable[[dict[str, Any]], tuple[str, str, tuple[str, ...]]]
    marks: dict[str, str]

    def mark(self) -> str:
        """A pattern for one mark anywhere."""
        return r"\[\[(" + "|".join(self.marks) + r")\]\]"


class Unusable(Exception):
    """A reply without a usable verdict; `code` is the fixed reason code."""

    def __init__(self, code: str, hint: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.hint = hint


# === Build ===


def grade_tool(strict: bool = False) -> dict[str, Any]:
    """The one closed function a judge is made to call; its schema uses no keyword that servers refuse."""
    function: dict[str, Any] = {
        "name": TOOL_NAME,
        "description": "Record which of the two answers serves the question better.",
        "parameters": verdict_schema(),
    }
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def verdict_schema() -> dict[str, Any]:
    """The closed object {choice, reason}, both required."""
    return {
        "type": "object",
        "properties": {
            "choice": {
                "type": "string",
                "enum": ["A", "B", "equal"],
                "description": "A or B for the better answer, equal when neither is better.",
            },
            "reason": {"type": "string", "description": "One short sentence that names the deciding difference."},
        },
        "required": ["choice", "reason"],
        "additionalProperties": False,
    }


def shown_pair(item: dict[str, Any], swapped: bool) -> str:
    """The user message: a JSON text of question, A and B, so that no answer can break out of its place."""
    first, second = item["answer_a"] or EMPTY_ANSWER, item["answer_b"] or EMPTY_ANSWER
    if swapped:
        first, second = second, first
    return json.dumps({"question": item["text"], "A": first, "B": second}, ensure_ascii=False)


def request(item: dict[str, Any], config: dict[str, Any], swapped: bool = False) -> dict[str, Any]:
    """The chat request (without `model`) that shows `item`'s answers in one order.

    config: eval.json's object, overlaid with the arm's `output_mode` (default "tool") and `strict`.
    No sampling parameter is ever part of it. Raises: ValueError for an unknown output mode.
    """
    mode = config.get("output_mode", "tool")
    if mode not in MODES:
        raise ValueError(f"output_mode: expected one of {', '.join(MODES)}, got {mode!r}")
    system = config["prompt"] + {"json_object": JSON_INSTRUCTION, "text": TEXT_INSTRUCTION}.get(mode, "")
    payload: dict[str, Any] = {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": shown_pair(item, swapped)}]
    }
    payload.update(output_fields(mode, config))
    payload["max_tokens"] = config["max_tokens"]
    payload["reasoning_effort"] = config["reasoning_effort"]
    return payload


def output_fields(mode: str, config: dict[str, Any]) -> dict[str, Any]:
    """The request fields that ask for the verdict in the given output mode."""
    if mode in ("tool", "required"):
        choice = config["tool_choice"] if mode == "tool" else "required"
        tools = [grade_tool(bool(config.get("strict")))]
        return {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False}
    if mode == "json_schema":
        schema = {"name": TOOL_NAME, "strict": True, "schema": verdict_schema()}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {}


def plan_requests(item: dict[str, Any], config: dict[str, Any]) -> list[dict[str, Any]]:
    """The two requests of one item: answers as they are, then exchanged."""
    return [request(item, config), request(item, config, swapped=True)]


# === JSON that a model wrote ===


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a key stands in it twice: then which value was meant is a guess."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Unusable("duplicate_key")
        found[key] = value
    return found


def no_constant(name: str) -> Any:
    """NaN and Infinity are not JSON; a reply that holds one is refused."""
    raise Unusable("bad_json")


STRICT = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=no_constant)
LENIENT = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=no_constant, strict=False)


def objects_in(text: str, start: int) -> tuple[list[Any], str, tuple[str, ...]]:
    """All JSON values written one after the other from `start`, the text behind them, and the repairs made.

    Raises: json.JSONDecodeError when the first value does not parse, Unusable for what is never repaired.
    """
    found: list[Any] = []
    repaired: tuple[str, ...] = ()
    position = start
    while position < len(text) and (not found or text[position] in "{["):
        try:
            value, end = STRICT.raw_decode(text, position)
        except json.JSONDecodeError as error:
            if "control character" not in error.msg:
                raise
            value, end = LENIENT.raw_decode(text, position)
            repaired = ("control_char",)
        found.append(value)
        position = end + len(text[end:]) - len(text[end:].lstrip())
    return found, text[position:], repaired


def too_deep(text: str) -> bool:
    """Whether brackets outside of strings nest deeper than any verdict does."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = deepest = 0
    for char in JSON_STRING.sub("", text):
        depth += (char in "{[") - (char in "}]")
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH


def cut_off(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text ends in the middle of a value, as a reply does that hit its token limit."""
    return error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())


def read_object(text: str, finish: object, key: str = "choice") -> tuple[dict[str, Any], tuple[str, ...]]:
    """The one object that a model's text holds, and the repairs made to find it; key: what repeated ones must share.

    Raises: Unusable with bad_json, truncated, duplicate_key or multiple_verdicts.
    """
    text = text.strip().lstrip("\ufeff")
    start = text.find("{")
    if start < 0 and not text.startswith('"'):
        raise Unusable("truncated" if finish == "length" else "bad_json")
    start = 0 if text.startswith('"') else start
    if too_deep(text):
        raise Unusable("bad_json")
    try:
        values, rest, repaired = objects_in(text, start)
    except json.JSONDecodeError as error:
        raise Unusable("truncated" if finish == "length" or cut_off(text, error) else "bad_json") from None
    except (RecursionError, ValueError, MemoryError):
        raise Unusable("bad_json") from None
    return one_object(values, text[:start], rest, repaired, key)


def one_object(
    values: list[Any], before: str, rest: str, repaired: tuple[str, ...], key: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The single object meant by the values found and the text around them; see `read_object`."""
    if isinstance(values[0], str) and len(values) == 1 and not before and not rest:
        inner = read_object(values[0], None, key) if values[0].lstrip().startswith("{") else None
        if inner is None or inner[1]:
            raise Unusable("bad_json")
        return inner[0], (*repaired, "double_encoded")
    if not all(isinstance(value, dict) for value in values):
        raise Unusable("bad_json")
    if len(values) > 1:
        if any(value.get(key) != values[0].get(key) for value in values):
            raise Unusable("multiple_verdicts")
        repaired = (*repaired, "repeated_object")
    around = before + rest
    if "{" in around or "}" in around:
        raise Unusable("bad_json")
    if around.strip():
        only_fence = not FENCE_MARK.sub("", around).strip()
        repaired = (*repaired, "fence" if only_fence else "outer_text")
    return values[0], repaired


def read_choice(arguments: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """Choice, reason and repairs of a parsed verdict object. Raises: Unusable(missing_key | bad_label)."""
    if "choice" not in arguments:
        raise Unusable("missing_key")
    label = arguments["choice"]
    if not isinstance(label, str):
        raise Unusable("bad_label")
    choice = CHOICES.get(label.strip().strip(INVISIBLE).strip().lower())
    if choice is None:
        raise Unusable("bad_label")
    reason = arguments.get("reason")
    repaired = () if label == choice else ("label_form",)
    if set(arguments) - {"choice", "reason"}:
        repaired = (*repaired, "extra_key")
    return choice, reason if isinstance(reason, str) else "", repaired


CHOICE_FORM = Form(TOOL_NAME, "choice", read_choice, MARKS)


# === Parts of a reply ===


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


def why_silent(message: dict[str, Any], finish: object, otherwise: str) -> str:
    """The reason code of a reply in which no verdict was found."""
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
    return otherwise


def without_thoughts(text: str) -> tuple[str, tuple[str, ...]]:
    """The text behind one leading think block. Raises: Unusable(truncated) when the block never closes."""
    opening = THINK.match(text)
    if not opening:
        return text, ()
    closing = THINK_END.search(text, opening.end())
    if not closing:
        raise Unusable("truncated")
    return text[closing.end() :], ("think_block",)


# === Parse ===


def parse_tool(message: dict[str, Any], finish: object, form: Form) -> Verdict:
    """The verdict of the calls of the form's tool in a message; calls under another name are not read."""
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    functions = [call.get("function") for call in calls if isinstance(call, dict)]
    grades = [f for f in functions if isinstance(f, dict) and f.get("name") == form.tool]
    if not grades:
        if calls:
            raise Unusable("wrong_tool")
        written_out = re.search(TOOL_CALL_TEXT.format(name=form.tool), content_text(message), re.IGNORECASE)
        hint = "tool_call_in_content" if written_out else None
        raise Unusable(why_silent(message, finish, "no_tool_call"), hint)
    verdicts = [parse_arguments(call.get("arguments"), finish, form) for call in grades]
    if len({verdict.choice for verdict in verdicts}) > 1:
        raise Unusable("multiple_verdicts")
    repaired = verdicts[0].repaired + (("repeated_call",) if len(grades) > 1 else ())
    if len(calls) > len(grades):
        repaired = (*repaired, "other_call_ignored")
    return verdicts[0]._replace(repaired=repaired)


def parse_arguments(arguments: object, finish: object, form: Form) -> Verdict:
    """The verdict in one call's arguments: an object as it is, or a text that holds one."""
    repaired: tuple[str, ...] = ()
    if isinstance(arguments, str):
        arguments, repaired = read_object(arguments, finish, form.key)
    if not isinstance(arguments, dict):
        raise Unusable("bad_json")
    choice, reason, more = form.read(arguments)
    return Verdict(choice, reason, None, repaired + more)


def parse_json(message: dict[str, Any], finish: object, form: Form) -> Verdict:
    """The verdict in a message whose content is the JSON object itself."""
    text, repaired = without_thoughts(content_text(message))
    if not text.strip():
        raise Unusable(why_silent(message, finish, "no_verdict"))
    fence = WHOLE_FENCE.fullmatch(text.strip())
    if fence:
        text, repaired = fence.group(1), (*repaired, "fence")
    if "{" not in text:
        raise Unusable(why_silent(message, finish, "no_verdict"))
    arguments, more = read_object(text, finish, form.key)
    choice, reason, last = form.read(arguments)
    return Verdict(choice, reason, None, repaired + more + last)


def parse_text(message: dict[str, Any], finish: object, form: Form) -> Verdict:
    """The verdict mark of a text reply: alone on the last line, or the only mark there is.

    Alone means beside nothing but emphasis, blanks and a full stop: "**[[B]]**." is, "not [[B]]" is not.
    """
    text, repaired = without_thoughts(content_text(message))
    lines = [line for line in text.split("\n") if line.strip()]
    alone = re.fullmatch(r"[\s*_`#>]*" + form.mark() + r"[\s*_`.]*", lines[-1]) if lines else None
    marks = set(re.findall(form.mark(), text))
    if alone:
        return Verdict(form.marks[alone.group(1)], text.strip(), None, repaired)
    if not marks or finish == "length":  # a reply that was cut may only have been weighing the mark it names
        raise Unusable(why_silent(message, finish, "no_verdict"))
    if len(marks) > 1:
        raise Unusable("conflicting_verdicts")
    return Verdict(form.marks[marks.pop()], text.strip(), None, repaired)


def parse(reply: object, mode: str = "tool", form: Form = CHOICE_FORM) -> dict[str, Any]:
    """What a judge's reply says, in shown positions; never raises.

    reply: a chat completion as decoded JSON, whatever it really is.
    Returns: {"state": "ok" | "invalid", "choice": "A" | "B" | "equal" | "invalid", "reason": str,
    "code": None | reason code, "repaired": [repair names], "hint": None | str}.
    """
    reader = {"tool": parse_tool, "required": parse_tool, "text": parse_text}.get(mode, parse_json)
    try:
        message, finish = message_of(reply)
        return reader(message, finish, form).as_dict()
    except Unusable as problem:
        return Verdict("invalid", problem.code, problem.code, (), problem.hint).as_dict()
    except RecursionError:
        return Verdict("invalid", "bad_json", "bad_json").as_dict()
