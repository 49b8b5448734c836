"""What a server's error says: the words to show, whose fault it is, and how long to wait.

    facts = refusals.read_error(body)
    refusals.rule(429, facts, headers)          # Ruling("slow", "http_429")
    refusals.wait_s(headers, facts, now)        # 1.5, or None when the server names no time

Pure functions: no clock, network or file. A decision rests on status numbers and on the fields that are made for
machines (code, type, status, quotaId), never on the wording of a message; wording only ever picks a hint.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

# === Constants ===

TEXT_LIMIT = 300  # characters of a provider's words that are shown
BODY_LIMIT = 200  # characters of a body that holds no known field
WALK_DEPTH = 6  # an error object nested deeper says nothing a person needs
WALK_NODES = 400
MAX_DEPTH = 64  # levels of an error body that are read at all, as of a reply

CONTENT_FILTER = frozenset(
    {
        "content_filter",
        "content_filtered",
        "content_policy_violation",
        "content_policy",
        "responsibleaipolicyviolation",
        "contentpolicyviolationerror",
        "moderation_blocked",
        "data_inspection_failed",
    }
)
CONTEXT_LENGTH = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",  # llama.cpp
        "contextwindowexceedederror",  # LiteLLM's class name
        "string_above_max_length",
        "request_too_large",  # Anthropic, with status 413
        "model_context_window_exceeded",
    }
)
CONTEXT_PARAMS = frozenset({"input_tokens"})  # vLLM names the field and gives no code
NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "insufficient_balance",
        "credit_exhausted",
        "payment_required",
    }
)
OVERLOADED = frozenset({"overloaded_error", "overloaded", "engine_overloaded", "server_overloaded"})
# A machine field that names a day as its window ("GenerateRequestsPerDayPerProject", "free-models-per-day").
DAILY = re.compile(r"per[-_ ]?day|daily", re.IGNORECASE)

STOP_CODES = {401: "auth", 402: "no_credit", 403: "auth", 404: "not_found", 405: "not_found", 407: "proxy_auth"}
RETRY_STATUSES = frozenset({408, 409, 425})

CODE_KEYS = ("code", "type", "status", "error_type", "reason", "quotaId", "error_code")
INSIDE = ("error", "errors", "detail", "details", "message", "metadata", "innererror", "inner_error", "violations")
# LiteLLM puts its exception class, which is a code, in front of the message: "litellm.BadRequestError: litellm.X: …".
LITELLM_CLASSES = re.compile(r"(?:litellm\.)?([A-Z]\w+Error): ")
FREE_DAILY = re.compile(r"\bfree-models-per-day\b")  # OpenRouter's name of its limit, given only inside the message

# Unsigned decimal in ASCII digits: float() alone would also take "nan", "1_000" and digits of other scripts.
NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,12})?")
DURATION_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|us|µs|ns|d|h|m|s)")
UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
EPOCH_S = 1e9  # a reset above this is a point in time, not a length of time
EPOCH_MS = 1e12

LIMIT_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")


# === Records ===


class ErrorFacts(NamedTuple):
    """What an error body holds. text: the most specific words, whole and unscrubbed, '' when there are none."""

    text: str
    codes: frozenset[str]  # machine fields, lower case
    params: tuple[str, ...]  # names of refused request fields, as far as the server gives them
    headers: Mapping[str, str]  # rate-limit headers repeated inside the body (OpenRouter), lower-case names
    retry_delay: str | None = None  # Google's RetryInfo, for example "37s"


class Ruling(NamedTuple):
    """kind: retry | slow (retry, and everybody slows down) | row (invalid) | refused (stop unless a request has
    worked before, else this row failed) | final (failed, not retried) | stop. code: for the record."""

    kind: str
    code: str


class Limit(NamedTuple):
    """One rate limit from the headers. remaining, limit: counts or None; reset_s: seconds until it is whole again."""

    kind: str
    limit: float | None
    remaining: float | None
    reset_s: float | None


# === The words of an error ===


def printable(text: str, limit: int = TEXT_LIMIT) -> str:
    """One line of at most `limit` characters: runs of blanks joined, control and invisible characters escaped."""
    out: list[str] = []
    for char in " ".join(text[: limit * 40].split()):
        point = ord(char)
        hidden = point < 32 or 0x7F <= point < 0xA0 or 0x200B <= point <= 0x200F or 0x2028 <= point <= 0x202E
        hidden = hidden or 0x2060 <= point <= 0x2069 or point == 0xFEFF or 0xD800 <= point <= 0xDFFF
        out.append(f"\\u{point:04x}" if hidden else char)
        if len(out) > limit:
            return "".join(out[: limit - 1]) + "…"
    shown = "".join(out)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def words_of(value: Any, depth: int = 0) -> str:
    """The most specific message inside an error value, '' when there is none."""
    if isinstance(value, str):
        return value.strip()
    if depth > WALK_DEPTH:
        return ""
    if isinstance(value, list):
        found = (words_of(part, depth + 1) for part in value[:5])
        return "; ".join(words for words in found if words)
    if not isinstance(value, dict):
        return ""
    metadata = value.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw:
        return words_of(unwrapped(raw), depth + 1) or words_of(raw)
    if isinstance(value.get("msg"), str):  # FastAPI: one failed field of the request
        place = ".".join(str(part) for part in loc_of(value))
        return f"{place}: {value['msg']}" if place else str(value["msg"])
    error, message = words_of(value.get("error"), depth + 1), words_of(value.get("message"), depth + 1)
    if error and message and isinstance(value.get("error"), str):
        return f"{error}: {message}"
    others = (words_of(value.get(key), depth + 1) for key in ("detail", "errors", "error_description", "title"))
    return error or message or next((words for words in others if words), "")


def loc_of(detail: dict[str, Any]) -> list[Any]:
    """FastAPI's path to a field, [] when absent."""
    loc = detail.get("loc")
    if isinstance(loc, str):
        return loc.split(".")
    return loc if isinstance(loc, list) else []


def unwrapped(raw: Any) -> Any:
    """JSON held inside a string (a gateway repeating its upstream's body), else the value itself."""
    if isinstance(raw, str) and raw.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            return raw
    return raw


def body_text(body: bytes) -> str:
    """The body as text, whatever its encoding; nothing is refused, since it is only shown."""
    encoding = "utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return body.decode(encoding, "replace").strip()


def read_error(body: bytes) -> ErrorFacts:
    """Everything of use in an error body of any shape; never raises."""
    text = body_text(body)
    try:
        parsed = json.loads(text) if text[:1] in ("{", "[", '"') else None
    except (ValueError, RecursionError):
        parsed = None
    if parsed is None or too_deep(parsed):
        return ErrorFacts(printable(text, BODY_LIMIT) if text[:1] == "<" else text, frozenset(), (), {})
    return facts_of(parsed)


def too_deep(value: Any) -> bool:
    """Whether a parsed body is nested deeper than MAX_DEPTH: Pythons differ in how deep they parse, we must not."""
    waiting = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return True
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting.extend((part, depth + 1) for part in inside if isinstance(part, (dict, list)))
    return False


def facts_of(parsed: Any) -> ErrorFacts:
    """The facts of an error that has been parsed already."""
    codes: set[str] = set()
    params: list[str] = []
    headers: dict[str, str] = {}
    delay: list[str] = []
    for found in error_objects(parsed):
        codes.update(codes_in(found))
        params.extend(params_in(found))
        held = found.get("headers")
        if isinstance(held, dict):
            headers.update({str(name).lower(): str(value) for name, value in list(held.items())[:50]})
        if isinstance(found.get("retryDelay"), str):
            delay.append(found["retryDelay"])
    text = words_of(parsed)
    codes.update(name.lower() for name in LITELLM_CLASSES.findall(text[:300]) if text.startswith("litellm."))
    if FREE_DAILY.search(text):
        codes.add("free-models-per-day")
    shown = text or printable(compact(parsed), BODY_LIMIT)
    return ErrorFacts(shown, frozenset(codes), tuple(dict.fromkeys(params)), headers, delay[0] if delay else None)


def compact(value: Any) -> str:
    """JSON without blanks; '' for what cannot be written."""
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return ""


def error_objects(parsed: Any) -> Iterable[dict[str, Any]]:
    """The objects of an error body that may carry fields for machines; echoes of the request are not entered."""
    waiting: list[tuple[Any, int]] = [(parsed, 0)]
    seen = 0
    while waiting and seen < WALK_NODES:
        value, depth = waiting.pop(0)
        seen += 1
        if isinstance(value, list):
            waiting.extend((part, depth + 1) for part in value[:20] if depth < WALK_DEPTH)
        elif isinstance(value, dict):
            yield value
            if depth < WALK_DEPTH:
                waiting.extend((value[key], depth + 1) for key in INSIDE if isinstance(value.get(key), (dict, list)))


def codes_in(found: dict[str, Any]) -> Iterable[str]:
    """The machine fields of one error object, lower case."""
    for key in CODE_KEYS:
        value = found.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and len(str(value)) < 200:
            yield str(value).lower()
    if "flagged_input" in found:  # OpenRouter's mark of a moderated prompt, sent with a 403
        yield "content_filter"


def params_in(found: dict[str, Any]) -> Iterable[str]:
    """Names of request fields that one error object refuses."""
    param = found.get("param")
    if isinstance(param, str) and param not in ("", "None"):
        yield param.removeprefix("body.")
    names = [str(part) for part in loc_of(found) if part != "body"]
    if names:
        yield names[0]


def error_text(body: bytes, status: int | None = None, reason: str = "", clean: Callable[[str], str] = str) -> str:
    """'HTTP 400: the server's words', at most 300 characters of them.

    clean: takes secrets out; it sees the whole text, before anything is cut off, so no half of a key is left over.
    """
    head = status_text(status, reason)
    words = printable(clean(read_error(body).text))
    return f"{head}: {words}" if head and words else head or words


def status_text(status: int | None, reason: str = "") -> str:
    """'HTTP 503 Service Unavailable', '' without a status."""
    if status is None:
        return ""
    shown = printable(reason, 60)
    return f"HTTP {status} {shown}".rstrip()


# === Whose fault it is ===


def rule(status: int, facts: ErrorFacts, headers: Mapping[str, str]) -> Ruling:
    """What follows from an error reply. headers: lower-case names."""
    code = f"http_{status}"
    if facts.codes & NO_CREDIT:
        return Ruling("stop", "no_credit")
    if facts.codes & CONTENT_FILTER:
        return Ruling("row", "content_filter")
    if facts.codes & CONTEXT_LENGTH or (status == 400 and set(facts.params) & CONTEXT_PARAMS):
        return Ruling("row", "context_length")
    if facts.codes & OVERLOADED:
        return Ruling("slow", code)
    if 300 <= status < 400:
        return Ruling("stop", "redirect")
    if status in STOP_CODES:
        return Ruling("stop", STOP_CODES[status])
    if status == 429:
        return (
            Ruling("stop", "no_credit") if any(map(DAILY.search, facts.codes)) else unless_told(headers, "slow", code)
        )
    if status in RETRY_STATUSES or status >= 500:
        return unless_told(headers, "slow" if status in (503, 529) else "retry", code)
    return Ruling("refused", code)


def unless_told(headers: Mapping[str, str], kind: str, code: str) -> Ruling:
    """A retry, unless the server says that another try is of no use."""
    told = headers.get("x-should-retry", "").strip().lower()
    return Ruling("final" if told == "false" else kind, code)


# === How long to wait ===


def number(text: str | None) -> float | None:
    """An unsigned decimal number, None for anything else (a sign, nan, inf, other scripts' digits)."""
    return float(text.strip()) if text is not None and NUMBER.fullmatch(text.strip()) else None


def duration_s(text: str | None, now: float) -> float | None:
    """Seconds named by a reset field: '6m0s', '100ms', '2.5', an epoch in s or ms, or an RFC 3339 time.

    now: Unix time. Points in time that have passed are 0. None when it is none of these.
    """
    if text is None:
        return None
    text = text.strip()
    plain = number(text)
    if plain is not None:
        if plain >= EPOCH_MS:
            return max(0.0, plain / 1000 - now)
        return max(0.0, plain - now) if plain >= EPOCH_S else plain
    parts = DURATION_PART.findall(text)
    if parts and "".join(value + unit for value, unit in parts) == text:
        return sum(float(value) * UNIT_S[unit] for value, unit in parts)
    return until_s(text, now)


def until_s(text: str, now: float) -> float | None:
    """Seconds until an RFC 3339 or HTTP date, 0 when it has passed, None when it is no date."""
    from datetime import datetime, timezone
    from email.utils import parsedate_to_datetime

    try:
        if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", text):
            moment = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))
        else:
            moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def wait_s(headers: Mapping[str, str], facts: ErrorFacts, now: float) -> float | None:
    """Seconds the server asks to wait before the next try; None when it names none, or a time already past.

    Order: retry-after-ms, retry-after (seconds or date), the body's retryDelay, the reset of an exhausted limit.
    """
    merged = {**facts.headers, **headers}
    milliseconds = number(merged.get("retry-after-ms"))
    if milliseconds:
        return milliseconds / 1000
    after = merged.get("retry-after")
    for text in (after, facts.retry_delay):
        plain = number(text)
        asked = plain if plain is not None else duration_s(text, now)
        if asked and math.isfinite(asked):
            return asked
    resets = [one.reset_s for one in limits(merged, now) if one.remaining == 0 and one.reset_s]
    return max(resets) if resets else None


def limits(headers: Mapping[str, str], now: float) -> list[Limit]:
    """The rate limits named by the headers of OpenAI and its kin, of Anthropic, and the plain three of OpenRouter."""
    if not any("ratelimit" in name for name in headers):
        return []
    found = []
    for kind in LIMIT_KINDS:
        for pattern in ("x-ratelimit-{}-" + kind, "anthropic-ratelimit-" + kind + "-{}"):
            found.append(limit_at(headers, pattern, kind, now))
    found.append(limit_at(headers, "x-ratelimit-{}", "requests", now))
    return [one for one in found if one.remaining is not None]


def limit_at(headers: Mapping[str, str], pattern: str, kind: str, now: float) -> Limit:
    """One limit whose three header names follow `pattern`."""
    limit, remaining = (number(headers.get(pattern.format(word))) for word in ("limit", "remaining"))
    return Limit(kind, limit, remaining, duration_s(headers.get(pattern.format("reset")), now))


def room_in_s(headers: Mapping[str, str], now: float, tokens: int) -> float:
    """Seconds until the limits of a good reply have room for one more request of about `tokens` tokens; 0 for now.

    A reset says when the whole limit is back, so one request waits for its share of it only.
    """
    waits = [0.0]
    for one in limits(headers, now):
        if one.remaining != 0 or not one.reset_s:
            continue
        need = 1.0 if one.kind == "requests" else float(tokens)
        share = min(1.0, need / one.limit) if one.limit else 1.0
        waits.append(one.reset_s * share)
    return max(waits)


# === What to change ===

RENAME = '"rename": {"max_tokens": "max_completion_tokens"}'
FIELD_HINTS = {
    "max_tokens": f"this model takes the other name of the limit; put {RENAME} into the arm",
    "max_completion_tokens": f"this server takes max_tokens; take {RENAME} out of the arm",
    "max_output_tokens": 'raise max_tokens, or put "omit": ["max_tokens"] into the arm',
    "temperature": 'this model allows only its default temperature; put "omit": ["temperature"] into the arm',
    "seed": 'this server knows no seed; put "omit": ["seed"] into the arm',
    "parallel_tool_calls": 'put "omit": ["parallel_tool_calls"] into the arm',
    "reasoning_effort": 'put "omit": ["reasoning_effort"] into the arm, or "format": "responses" if that is served',
    "reasoning": 'put "omit": ["reasoning_effort"] into the arm',
    "tool_choice": 'put another "output_mode" into the arm: "required", "json_schema" or "text"',
    "tools": 'put "output_mode": "json_schema" or "text" into the arm',
    "response_format": 'put another "output_mode" into the arm: "tool", "json_schema", "json_object" or "text"',
    "strict": 'take "strict": true out of the arm',
    "model": "check the arm's model name against the provider's list",
}
FIELD_WORD = re.compile(r"[a-z]+(?:_[a-z]+)*")


def field_named(facts: ErrorFacts) -> str | None:
    """The request field an error is about, from its param or, for the hint only, from its words."""
    for param in facts.params:
        name = param.split(".")[0].split("[")[0]
        if name in FIELD_HINTS:
            return name
    named = [word for word in FIELD_WORD.findall(facts.text.lower()) if "_" in word and word in FIELD_HINTS]
    return named[0] if named else None


def hint(ruling: Ruling, status: int, facts: ErrorFacts, url: str, key_env: str | None) -> str:
    """One sentence that says what to change after a reply that stops the run."""
    if ruling.code == "no_credit":
        return "the account has no credit or its quota is used up; what is on disk stays, resume when there is room"
    if ruling.code == "auth":
        if not key_env:
            return 'name the variable that holds the key as "key_env" in the arm'
        return f"check the key in {key_env}, and whether it may use this model at {url}"
    if status in (404, 405):
        tried = "the address was " + url
        return f"{tried}; check the model name, try the base with /v1, and for Azure the deployment and ?api-version="
    if status == 407:
        return "the proxy wants a login: write it into HTTPS_PROXY as http://user:password@host:port"
    field = field_named(facts)
    if field:
        return FIELD_HINTS[field]
    words = facts.text.lower()
    if "tool" in words and ("think" in words or "reason" in words):
        return 'turn thinking off by "extra_body" in the arm, or choose "output_mode": "json_schema" or "text"'
    return 'the request itself was refused: see "omit", "rename", "extra_body" and "output_mode" of the arm'
