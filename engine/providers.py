"""The dialects that judges' endpoints speak: checks of an arm, the wire body of a request, the reply in one shape.

    providers.arm_problems("claude", arm)        # [] or what is wrong with the entry
    wire = providers.build(arm, payload)         # Wire(url, headers, body)
    reply = providers.read_reply(arm, body)      # chat-completions shape, whatever the dialect
    providers.usage_of(reply)                    # {"input": 812, "output": 40, "cached": None, "reasoning": None}

An arm's `format` is `openai` (Chat Completions, the default), `anthropic` (Messages) or `responses` (OpenAI's
Responses). A server's quirks are declared by the arm (`omit`, `rename`, `extra_body`, `headers`, `key_header`,
`query`) and never guessed. Pure functions: no clock, network, file or environment. What a server did not say stays
None here; nothing is made up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

# === Constants ===

FORMATS = ("openai", "anthropic", "responses")
PATHS = {"openai": "/chat/completions", "anthropic": "/messages", "responses": "/responses"}
KEY_HEADERS = ("authorization", "x-api-key", "api-key")
OUTPUT_MODES = ("tool", "required", "json_schema", "json_object", "text")
ANTHROPIC_VERSION = "2023-06-01"
USER_AGENT = "judge-eval/1"

# Fields of a request, in chat-completions words. The second set is sent only for callers that ask for it.
RECIPE_KEYS = frozenset(
    ("messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "reasoning_effort", "response_format")
)
SAMPLING_KEYS = frozenset(("temperature", "seed", "top_p"))

ARM_TEXTS = ("endpoint", "model", "format", "key_env", "response_model", "provider", "key_header", "label", "note")
ARM_NUMBERS = ("rpm", "tpm", "concurrency", "timeout_s", "batch_discount")
MAX_CONCURRENCY = 1000  # one thread each
ARM_OBJECTS = ("rename", "extra_body", "headers", "query", "price_usd_per_mtok", "batch_price_usd_per_mtok")
ARM_OTHERS = ("omit", "output_mode", "strict", "control", "recorded", "weekly_tokens", "provider_name")
ARM_KEYS = frozenset((*ARM_TEXTS, *ARM_NUMBERS, *ARM_OBJECTS, *ARM_OTHERS, "prices", "source"))
# `extra_body` may add what a provider needs, but not undo what the run is about.
EXTRA_FORBIDDEN = RECIPE_KEYS | frozenset(
    (
        "model",
        "stream",
        "stream_options",
        "n",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "system",
        "input",
        "instructions",
        "max_completion_tokens",
        "max_output_tokens",
    )
)
# Headers that the client sets itself, or that would carry the key elsewhere.
HEADERS_FORBIDDEN = frozenset(
    (
        "authorization",
        "x-api-key",
        "api-key",
        "proxy-authorization",
        "x-goog-api-key",
        "ocp-apim-subscription-key",
        "x-auth-token",
        "x-access-token",
        "cookie",
        "host",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "accept-encoding",
        "te",
        "upgrade",
        "expect",
    )
)
# Names of fields that hold a secret, in lower case and without - and _: in an address, a query, or a request's body.
KEY_NAMES = frozenset(
    (
        *("key", "apikey", "accesskey", "secretkey", "subscriptionkey", "authkey", "privatekey", "sig", "signature"),
        *("token", "accesstoken", "authtoken", "bearertoken", "idtoken", "sastoken", "code", "secret", "clientsecret"),
        *("password", "passwd", "pwd", "auth", "authorization", "bearer", "credential", "credentials", "cookie"),
    )
)
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]{0,2000}")  # no line break, nothing outside latin-1
# Scheme, host, port and path of an address, between which a user's name and password may stand.
ADDRESS = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]{0,9}://)(?:[^/?#@\s]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
    r"(?=[/?#]|$)(/[A-Za-z0-9._~/-]*)?"
)
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")

# Made once: json.dumps makes a new encoder for each call that has options.
COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
VARYING = ("messages", "input")  # the fields that differ from request to request
MAX_DEPTH = 64  # levels of a reply: far above any real one, far below where Python's own stack ends
MAX_COUNT = 10**12  # tokens; more is not a count
# NaN, Infinity, or a number with an exponent so large that it becomes infinity; may be found inside a string too.
NO_NUMBER = re.compile(r"NaN|Infinity|[0-9][eE]\+?[0-9]{3}")
# Keys that carry the verdict: two different values under one of them leave open which was meant.
DECISIVE = frozenset(
    (
        "choices",
        "message",
        "tool_calls",
        "function",
        "arguments",
        "content",
        "finish_reason",
        "refusal",
        "output",
        "text",
        "input",
        "name",
    )
)


# === Records ===


class Wire(NamedTuple):
    """One request as it is sent. headers: without the key."""

    url: str
    headers: dict[str, str]
    body: bytes


class BadReply(Exception):
    """A body that is no reply. kind: bad_body | event_stream | html | error (then `error` is the parsed error)."""

    def __init__(self, kind: str, text: str, error: Any = None, status: int | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.error = error
        self.status = status  # what an error inside a 200 reply gives as its number, None without one


class Doubled(dict[str, Any]):
    """A JSON object in which a key stood twice; `pairs` is what was written."""

    pairs: list[tuple[str, Any]]


# === Checking an arm ===


def arm_problems(name: str, arm: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with one entry of `arms`, one line each; [] when it can be used."""
    if not isinstance(arm, Mapping):
        return [f"arm {name!r}: expected an object, got {type(arm).__name__}"]
    found = [f"unknown key {key!r}" for key in arm if key not in ARM_KEYS]
    if "control" in arm:
        return [f"arm {name!r}: {text}" for text in found]
    found += list(type_problems(arm))
    if not found:
        found += [*endpoint_problems(arm), *choice_problems(arm), *quirk_problems(arm), *header_problems(arm)]
    return [f"arm {name!r}: {text}" for text in found]


def type_problems(arm: Mapping[str, Any]) -> Iterable[str]:
    """Fields that are missing or of the wrong type."""
    for key in ("endpoint", "model"):
        if key not in arm:
            yield f"field {key!r} is missing"
    for key in ARM_TEXTS:
        if key in arm and (not isinstance(arm[key], str) or not arm[key].strip()):
            yield f"field {key!r}: expected a non-empty text, got {kind_of(arm[key])}"
    for key in ARM_NUMBERS:
        value = arm.get(key)
        usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf
        if value is not None and not usable:
            yield f"field {key!r}: expected a number above 0, got {value!r}"
        elif key == "concurrency" and value is not None and not (isinstance(value, int) and value <= MAX_CONCURRENCY):
            yield f"field {key!r}: expected a whole number from 1 to {MAX_CONCURRENCY}, got {value!r}"
    for key in ARM_OBJECTS:
        if key in arm and not isinstance(arm[key], dict):
            yield f"field {key!r}: expected an object, got {kind_of(arm[key])}"  # a text there may hold a key
    if "strict" in arm and not isinstance(arm["strict"], bool):
        yield f"field 'strict': expected true or false, got {arm['strict']!r}"


def kind_of(value: object) -> str:
    """A value by its kind: what it says may be a secret in the wrong place."""
    return "an empty text" if isinstance(value, str) and not value.strip() else type(value).__name__


def endpoint_problems(arm: Mapping[str, Any]) -> Iterable[str]:
    """What is wrong with the address; what of it may be a secret is never shown."""
    from urllib.parse import urlsplit

    base = arm["endpoint"]
    where = f"endpoint {shown_address(base)}".rstrip()
    if not re.match(r"https?://", base, re.IGNORECASE):
        yield f"{where}: the base URL must start with http:// or https://"
        return
    try:
        parts = urlsplit(base)
        host, _port = parts.hostname, parts.port
    except ValueError:
        yield f"{where}: not an address: expected https://host/path, or https://host:port/path with a port up to 65535"
        return
    if parts.username is not None or parts.password is not None:
        yield "endpoint: a user name or password in the address is refused; name the key's variable in key_env"
    elif any(holds_key(name) for name in query_names(parts.query)):
        yield "endpoint: a key in the address would be stored with the run; name its variable in key_env"
    elif not host or not base.isascii() or re.search(r"[\s\x00-\x1f\x7f\\]", base):
        yield f"{where}: expected a host and no blanks or non-ASCII characters"
    elif parts.fragment:
        yield f"{where}: an address with # is refused"
    elif parts.scheme.lower() == "http" and not is_loopback(host):
        local = " (write 127.0.0.1 for this machine)" if host in ("0.0.0.0", "::") else ""
        yield f"{where}: plain http is allowed to this machine only; use https{local}"


def bare_address(base: str) -> str:
    """Scheme, host, port and path of an address: without user, query and whatever else may be a secret.

    '' for what is not plainly an address with a host.
    """
    found = ADDRESS.match(base)
    if found is None or "@" in base[found.end() :]:
        return ""
    return "".join(part for part in found.groups() if part)


def shown_address(base: str) -> str:
    """An address as an error may show it, quoted; '' where there is none to show."""
    bare = bare_address(base)
    return repr(bare) if bare else ""


def query_names(query: str) -> list[str]:
    """The names of an address's query fields."""
    return [part.partition("=")[0] for part in query.split("&") if part]


def holds_key(name: str) -> bool:
    """Whether a field of this name holds a secret."""
    return name.lower().replace("-", "").replace("_", "") in KEY_NAMES


def inner_names(value: object) -> Iterable[str]:
    """The names of all fields of a JSON value, at every depth."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from inner_names(part)
    elif isinstance(value, list):
        for part in value:
            yield from inner_names(part)


def choice_problems(arm: Mapping[str, Any]) -> Iterable[str]:
    """Fields that must be one of a few words, or a pattern."""
    for key, allowed in (("format", FORMATS), ("key_header", KEY_HEADERS), ("output_mode", OUTPUT_MODES)):
        if key in arm and arm[key] not in allowed:
            yield f"field {key!r}: expected one of {', '.join(allowed)}, got {arm[key]!r}"
    if format_of(arm) == "anthropic" and arm.get("output_mode") == "json_object":
        yield "field 'output_mode': the anthropic dialect has no json_object; use tool, required, json_schema or text"
    if "key_env" in arm and not ENV_NAME.fullmatch(arm["key_env"]):
        yield "field 'key_env': expected the name of an environment variable, not a key"  # the value may be a key
    if "response_model" in arm:
        try:
            re.compile(arm["response_model"])
        except re.error as error:
            yield f"field 'response_model': not a regular expression ({error})"


def quirk_problems(arm: Mapping[str, Any]) -> Iterable[str]:
    """What is wrong with omit, rename, extra_body and query."""
    omit = arm.get("omit", [])
    known = RECIPE_KEYS | SAMPLING_KEYS
    if not isinstance(omit, list) or any(key not in known or key == "messages" for key in omit):
        names = ", ".join(sorted(known - {"messages"}))
        yield f"field 'omit': expected a list of request fields ({names}), got {omit!r}"
    targets = list(arm.get("rename", {}).values())
    for source, target in arm.get("rename", {}).items():
        usable = isinstance(target, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", target)
        if not usable or target in ("model", "messages", "stream") or targets.count(target) > 1:
            yield f"field 'rename': {source!r} cannot become {target!r}"
    for key in arm.get("extra_body", {}):
        if key in EXTRA_FORBIDDEN:
            yield f"field 'extra_body': {key!r} is decided by the run and cannot be set here"
    for name in inner_names(arm.get("extra_body", {})):
        if holds_key(name):
            yield f"field 'extra_body': {name!r} would store a key with the run; name its variable in key_env"
    for key, value in arm.get("query", {}).items():
        if holds_key(key):
            yield f"field 'query': {key!r} would store a key with the run; name its variable in key_env"
        elif not isinstance(value, str):
            yield f"field 'query': {key!r}: expected a text, got {kind_of(value)}"


def header_problems(arm: Mapping[str, Any]) -> Iterable[str]:
    """What is wrong with the static headers; values are not shown, one may be a secret put there by mistake."""
    for key, value in arm.get("headers", {}).items():
        if not HEADER_NAME.fullmatch(key):
            yield f"field 'headers': {key!r} is not a header name"
        elif key.lower() in HEADERS_FORBIDDEN:
            yield f"field 'headers': {key!r} is set by the client; a key goes into the variable named by key_env"
        elif not isinstance(value, str) or not HEADER_VALUE.fullmatch(value):
            yield f"field 'headers': {key!r}: expected one line of latin-1 text"


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    import ipaddress

    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = host.strip("[]")
        plain = address.split("%")[0] if ":" in address else address  # only an IPv6 address has a zone behind a %
        return ipaddress.ip_address(plain).is_loopback
    except ValueError:
        return False


# === Building a request ===


def format_of(arm: Mapping[str, Any]) -> str:
    """The arm's dialect."""
    return str(arm.get("format", "openai"))


def endpoint_url(arm: Mapping[str, Any]) -> str:
    """The address requests go to: the base taken literally, its slashes trimmed, the path added once, a query kept."""
    return address_of(arm["endpoint"], format_of(arm), tuple(arm.get("query", {}).items()))


@lru_cache(maxsize=64)
def address_of(endpoint: str, dialect: str, query: tuple[tuple[str, str], ...]) -> str:
    """See endpoint_url; kept, since every request of a run asks for the same one."""
    from urllib.parse import urlencode

    base, _, own = endpoint.partition("?")
    base, path = base.rstrip("/"), PATHS[dialect]
    if dialect == "anthropic" and not re.search(r"/v[0-9]+(/messages)?$", base):
        path = "/v1" + path
    url = base if base.endswith(PATHS[dialect]) else base + path
    joined = "&".join(part for part in (own, urlencode(query)) if part)
    return f"{url}?{joined}" if joined else url


def key_header(arm: Mapping[str, Any], key: str | None) -> dict[str, str]:
    """The one header that carries the key; {} without a key."""
    if not key:
        return {}
    name = arm.get("key_header", "x-api-key" if format_of(arm) == "anthropic" else "authorization")
    return {name: f"Bearer {key}" if name == "authorization" else key}


def build_problem(arm: Mapping[str, Any], payload: Mapping[str, Any]) -> str | None:
    """What the arm's dialect has no word for in this payload: it must be omitted by the arm, not silently here."""
    left_out, dialect = arm.get("omit", []), format_of(arm)
    if dialect != "openai" and "seed" in payload and "seed" not in left_out:
        return f"the {dialect} dialect has no field 'seed'"
    wanted = payload.get("response_format") if "response_format" not in left_out else None
    if dialect == "anthropic" and isinstance(wanted, Mapping) and wanted.get("type") not in ("json_schema", "text"):
        return f"the anthropic dialect has no response format {wanted.get('type')!r}"
    return None


def body_of(arm: Mapping[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the request for one payload (chat-completions words, without `model`), in the arm's dialect."""
    left_out = set(arm.get("omit", []))
    kept = {key: value for key, value in payload.items() if key not in left_out}
    words = {"anthropic": anthropic_fields, "responses": responses_fields}
    fields = words[format_of(arm)](kept) if format_of(arm) in words else kept
    rename = arm.get("rename", {})
    body = {rename.get(key, key): value for key, value in fields.items()}
    body.update(arm.get("extra_body", {}))
    body["model"] = arm["model"]
    return body


def build(arm: Mapping[str, Any], payload: Mapping[str, Any]) -> Wire:
    """The request for one payload, ready to be sent but for the key."""
    body = body_of(arm, payload)
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    headers["User-Agent"] = USER_AGENT
    if format_of(arm) == "anthropic":
        headers["anthropic-version"] = ANTHROPIC_VERSION
    headers.update(arm.get("headers", {}))
    return Wire(endpoint_url(arm), headers, json_bytes(body))


def json_bytes(body: Mapping[str, Any]) -> bytes:
    """Indented UTF-8 JSON with a newline; escaped to ASCII only where half a surrogate pair leaves no other way."""
    fields = [f"{COMPACT(key)}: {field_text(key, value)}" for key, value in body.items()]
    text = "{\n  " + ",\n  ".join(fields) + "\n}\n"
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return (json.dumps(body, indent=2, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def field_text(key: str, value: Any) -> str:
    """One field's value as json.dumps(indent=2) writes it inside an object."""
    if key in VARYING:
        return indented(value, "  ")
    return settled_text(COMPACT(value)) if isinstance(value, (dict, list)) else COMPACT(value)


def indented(value: Any, margin: str) -> str:
    """A value as json.dumps(indent=2) writes it behind `margin`; the library's own way takes four times as long."""
    if isinstance(value, dict) and value:
        inner = margin + "  "
        parts = [f"{inner}{COMPACT(key)}: {indented(part, inner)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + margin + "}"
    if isinstance(value, list) and value:
        inner = margin + "  "
        return "[\n" + ",\n".join([inner + indented(part, inner) for part in value]) + "\n" + margin + "]"
    return COMPACT(value)


@lru_cache(maxsize=64)
def settled_text(compact: str) -> str:
    """The indented form of a field that is the same in every request (tools, tool_choice): indenting is slow."""
    return indented(json.loads(compact), "  ")


def split_system(messages: Iterable[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The system text, and the other messages as {role, content}."""
    system = [str(one["content"]) for one in messages if one["role"] in ("system", "developer") and one.get("content")]
    others = [one for one in messages if one["role"] not in ("system", "developer")]
    return "\n\n".join(system), [{"role": one["role"], "content": one.get("content") or ""} for one in others]


def schema_of(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """The json_schema part of response_format, None in another mode."""
    wanted = payload.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        return dict(wanted["json_schema"])
    return None


def anthropic_fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload in the words of Messages. Source: Anthropic's API reference, version 2023-06-01."""
    system, messages = split_system(payload["messages"])
    body: dict[str, Any] = {"system": system} if system else {}
    body["messages"] = messages
    if payload.get("tools"):
        body["tools"] = [anthropic_tool(tool["function"]) for tool in payload["tools"]]
    if payload.get("tool_choice") is not None:
        body["tool_choice"] = anthropic_choice(payload["tool_choice"], payload.get("parallel_tool_calls"))
    if "max_tokens" in payload:
        body["max_tokens"] = payload["max_tokens"]
    output: dict[str, Any] = {}
    if "reasoning_effort" in payload:
        output["effort"] = payload["reasoning_effort"]
    schema = schema_of(payload)
    if schema is not None:
        output["format"] = {"type": "json_schema", "schema": schema["schema"]}
    if output:
        body["output_config"] = output
    body.update({key: payload[key] for key in ("temperature", "top_p") if key in payload})
    return body


def anthropic_tool(function: Mapping[str, Any]) -> dict[str, Any]:
    """One tool in the words of Messages."""
    tool = {"name": function["name"], "description": function.get("description", "")}
    tool["input_schema"] = function["parameters"]
    if function.get("strict"):
        tool["strict"] = True
    return tool


def anthropic_choice(choice: Any, parallel: Any) -> dict[str, Any]:
    """tool_choice in the words of Messages; one call only when parallel calls are switched off."""
    named = {"required": "any", "auto": "auto", "none": "none"}
    found = {"type": "tool", "name": choice["function"]["name"]} if isinstance(choice, Mapping) else None
    wire: dict[str, Any] = found or {"type": named[choice]}
    if parallel is False and wire["type"] != "none":
        wire["disable_parallel_tool_use"] = True
    return wire


def responses_fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload in the words of Responses. `store` is off: the judged texts are not to be kept by the provider."""
    system, messages = split_system(payload["messages"])
    body: dict[str, Any] = {"instructions": system} if system else {}
    body["input"] = messages
    if payload.get("tools"):
        # Responses takes a tool as strict unless told otherwise, so the word is always sent.
        body["tools"] = [
            {"type": "function", **tool["function"], "strict": bool(tool["function"].get("strict"))}
            for tool in payload["tools"]
        ]
    choice = payload.get("tool_choice")
    if choice is not None:
        body["tool_choice"] = (
            {"type": "function", "name": choice["function"]["name"]} if isinstance(choice, Mapping) else choice
        )
    same = ("parallel_tool_calls", "temperature", "top_p")
    body.update({key: payload[key] for key in same if key in payload})
    if "max_tokens" in payload:
        body["max_output_tokens"] = payload["max_tokens"]
    if "reasoning_effort" in payload:
        body["reasoning"] = {"effort": payload["reasoning_effort"]}
    schema = schema_of(payload)
    if schema is not None:
        body["text"] = {"format": {"type": "json_schema", **schema}}
    elif payload.get("response_format"):
        body["text"] = {"format": dict(payload["response_format"])}
    body["store"] = False
    return body


# === Reading a body ===


def read_reply(arm: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The body of a 2xx reply in chat-completions shape: choices (at least one object), usage or None, id, model.

    Raises: BadReply for anything else (no JSON, a web page, an event stream, an error, no choices).
    """
    parsed, odd = parse_body(body)
    if isinstance(parsed, list) and parsed and isinstance(parsed[0], dict) and "error" in parsed[0]:
        parsed = parsed[0]  # Gemini's layer wraps its errors in an array
    if not isinstance(parsed, dict):
        raise BadReply("bad_body", f"expected a JSON object, got {shown(body)}")
    raise_error(parsed)
    if format_of(arm) == "anthropic":
        reply = from_anthropic(parsed)
    elif format_of(arm) == "responses":
        reply = from_responses(parsed)
    else:
        reply = from_chat(parsed, odd)
    if reply is None:
        raise BadReply("bad_body", f"the reply holds no answer: {shown(body)}")
    return reply


def shown(body: bytes) -> str:
    """The first 200 characters of a body."""
    text = body[:800].decode("utf-8", "replace")
    return text[:200] + ("…" if len(text) > 200 else "")


def reply_text(body: bytes) -> str:
    """The body as text without byte order mark, leading blanks and the ':' lines that keep a connection alive.

    Bytes that are not UTF-8 become lone surrogates, which loses nothing and leaves the rest readable.
    """
    encoding = json.detect_encoding(body)
    if not encoding.startswith("utf-8"):
        text = body.decode(encoding, "replace").lstrip("\ufeff")
    else:
        text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    text = text.lstrip()
    while text.startswith(":"):
        text = text.partition("\n")[2].lstrip()
    return text.removeprefix("\ufeff")


def parse_body(body: bytes) -> tuple[Any, bool]:
    """The JSON value of a body, bounded in depth, and whether it may hold what strict JSON cannot. Raises: BadReply."""
    text = reply_text(body)
    if text.startswith(("data:", "event:")):
        raise BadReply("event_stream", "the server answered with an event stream although no streaming was asked for")
    if text.startswith("<"):
        raise BadReply("html", f"the server answered with a web page: {shown(text.encode('utf-8', 'replace'))}")
    if not text:
        raise BadReply("bad_body", "the body is empty")
    try:
        parsed, odd = loads(text)
    except RecursionError:
        raise BadReply("bad_body", "the JSON is nested too deeply") from None
    except ValueError as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "a number is too long"
        raise BadReply("bad_body", f"not JSON ({problem}): {shown(body)}") from None
    if (text.count("{") + text.count("[")) > MAX_DEPTH and depth_of(parsed) > MAX_DEPTH:
        raise BadReply("bad_body", f"the JSON is nested deeper than {MAX_DEPTH} levels")
    return parsed, odd


def loads(text: str) -> tuple[Any, bool]:
    """The JSON value of a text, and whether it may hold NaN, infinity or a doubled key.

    NaN stays a float, a doubled key makes its object a Doubled, an integer of absurd length becomes NaN.
    """
    doubled: list[Doubled] = []

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs) or all(found[key] == value for key, value in pairs):
            return found
        doubled.append(Doubled(found))
        doubled[-1].pairs = pairs
        return doubled[-1]

    try:
        parsed = json.loads(text, object_pairs_hook=object_of)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer of more digits than Python converts
        return json.loads(text, object_pairs_hook=object_of, parse_int=short_int), True
    return parsed, bool(doubled) or NO_NUMBER.search(text) is not None


def short_int(digits: str) -> float | int:
    """An integer, NaN when it is longer than any count or time could be."""
    return int(digits) if len(digits) < 100 else math.nan


def depth_of(value: Any) -> int:
    """Levels of nesting, counted without recursion; of a key that stands twice, both values."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(one, Doubled):
            inside: Iterable[Any] = [part for _, part in one.pairs]
        else:
            inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting.extend((part, depth + 1) for part in inside if isinstance(part, (dict, list)))
    return deepest


def raise_error(parsed: dict[str, Any]) -> None:
    """Raises BadReply for an error inside a 2xx body: at the top, in the first choice, or a failed response."""
    error = parsed.get("error")
    first = parsed["choices"][0] if isinstance(parsed.get("choices"), list) and parsed["choices"] else None
    if not error and isinstance(first, dict) and (first.get("error") or first.get("finish_reason") == "error"):
        error = first.get("error") or "the provider stopped with an error"
    if not error and (parsed.get("type") == "error" or parsed.get("object") == "error"):
        error = parsed
    if not error and parsed.get("object") == "response" and parsed.get("status") == "failed":
        error = "the response failed"
    if not error:
        return
    whole = parsed if parsed.get("error") else {"error": error}
    code = error.get("code") if isinstance(error, dict) else None
    raise BadReply("error", "the reply holds an error", whole, status_in(code))


def status_in(code: Any) -> int | None:
    """An HTTP status given as a number or as a text of three digits, else None."""
    digits = str(code) if isinstance(code, (int, str)) and not isinstance(code, bool) else ""
    return int(digits) if re.fullmatch(r"[3-5][0-9]{2}", digits) else None


# === Replies in one shape ===


def from_chat(parsed: dict[str, Any], odd: bool) -> dict[str, Any] | None:
    """A chat completion as received, but for what could not be stored as JSON; None when it has no choice."""
    choices = parsed.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None
    first = choices[0]
    if not isinstance(first.get("message"), dict) and not isinstance(first.get("finish_reason"), str):
        return None
    usage = parsed.get("usage")
    if not odd:
        return {**parsed, "usage": usage if isinstance(usage, dict) else None}
    refuse_doubled([parsed, first, first.get("message")])
    reply: dict[str, Any] = {key: storable(value) for key, value in parsed.items() if key != "choices"}
    reply["choices"] = [chat_choice(one) for one in choices]
    reply["usage"] = reply.get("usage") if isinstance(usage, dict) else None
    return reply


def chat_choice(choice: Any) -> Any:
    """One choice whose tool calls can be written as JSON again."""
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("tool_calls"), list):
        return storable(choice)
    calls = [storable_call(call) for call in message["tool_calls"]]
    return {**storable({**choice, "message": {**message, "tool_calls": None}}), "message": with_calls(message, calls)}


def with_calls(message: dict[str, Any], calls: list[Any]) -> dict[str, Any]:
    """A message whose other fields are storable, with these tool calls."""
    return {key: calls if key == "tool_calls" else storable(value) for key, value in message.items()}


def storable_call(call: Any) -> Any:
    """A tool call whose arguments, if an object that JSON could not hold again, are its text instead.

    That text (NaN, a doubled key) is what the judge wrote; whoever parses it sees the fault and calls it bad JSON.
    """
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return storable(call)
    refuse_doubled([call, function])
    named = {key: arguments_of(value) if key == "arguments" else storable(value) for key, value in function.items()}
    return {key: named if key == "function" else storable(value) for key, value in call.items()}


def arguments_of(value: Any) -> Any:
    """Arguments as received, or as text when they hold what JSON cannot: NaN, infinity, a doubled key."""
    return written(value) if is_odd(value) else value


def is_odd(value: Any) -> bool:
    """Whether a parsed value (at most MAX_DEPTH deep) holds a number that is none, or a doubled key."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Doubled):
        return True
    if isinstance(value, dict):
        return any(is_odd(part) for part in value.values())
    return isinstance(value, list) and any(is_odd(part) for part in value)


def written(value: Any) -> str:
    """JSON text of a parsed value, doubled keys and NaN included, as they were sent."""
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, Doubled) else value.items()
        return "{" + ", ".join(f"{json.dumps(key)}: {written(part)}" for key, part in pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def storable(value: Any) -> Any:
    """A value that strict JSON can hold: numbers that are none become None, doubled keys keep their last value."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: storable(part) for key, part in value.items()}
    return [storable(part) for part in value] if isinstance(value, list) else value


def refuse_doubled(objects: Iterable[Any]) -> None:
    """Raises BadReply when one of these objects holds a verdict-carrying key twice with different values."""
    for one in objects:
        if isinstance(one, Doubled):
            seen: dict[str, Any] = {}
            for key, value in one.pairs:
                if key in DECISIVE and key in seen and seen[key] != value:
                    raise BadReply("bad_body", f"the key {key!r} stands twice in the reply, with different values")
                seen[key] = value


def from_anthropic(parsed: dict[str, Any]) -> dict[str, Any] | None:
    """A Messages reply in chat-completions shape; None when it has no content list."""
    blocks = parsed.get("content")
    if not isinstance(blocks, list):
        return None
    refuse_doubled([parsed, *blocks])
    parts = [block for block in blocks if isinstance(block, dict)]
    texts = [block["text"] for block in parts if block.get("type") == "text" and isinstance(block.get("text"), str)]
    thoughts = [block.get("thinking") for block in parts if block.get("type") == "thinking"]
    calls = [anthropic_call(block) for block in parts if block.get("type") == "tool_use"]
    reason = parsed.get("stop_reason")
    refusal = ("".join(texts) or "refusal") if reason == "refusal" else None
    message = message_of("".join(texts) if texts else None, calls, refusal, thoughts)
    finish = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
    finish["model_context_window_exceeded"] = "length"
    return completion(parsed, message, finish.get(reason, reason) if isinstance(reason, str) else None, anthropic_usage)


def anthropic_call(block: dict[str, Any]) -> dict[str, Any]:
    """A tool_use block as a tool call; its input object becomes the arguments as it is."""
    function = {"name": storable(block.get("name"))}
    if "input" in block:
        function["arguments"] = arguments_of(block["input"])
    return {"id": storable(block.get("id")), "type": "function", "function": function}


def from_responses(parsed: dict[str, Any]) -> dict[str, Any] | None:
    """A Responses reply in chat-completions shape; None when it has no output list, or is still being made."""
    items = parsed.get("output")
    if not isinstance(items, list) or parsed.get("status") in ("queued", "in_progress"):
        return None
    refuse_doubled([parsed, *items])
    items = [item for item in items if isinstance(item, dict)]
    parts = [part for item in items if item.get("type") == "message" for part in list_of(item.get("content"))]
    refuse_doubled(parts)
    texts = [part["text"] for part in parts if part.get("type") == "output_text" and isinstance(part.get("text"), str)]
    refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    thoughts = [
        part.get("text")
        for item in items
        if item.get("type") == "reasoning"
        for part in list_of(item.get("summary")) + list_of(item.get("content"))
    ]
    calls = [responses_call(item) for item in items if item.get("type") == "function_call"]
    message = message_of("".join(texts) if texts else None, calls, "".join(refusals) if refusals else None, thoughts)
    return completion(parsed, message, responses_finish(parsed, bool(calls)), responses_usage)


def list_of(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; [] for anything else."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def responses_call(item: dict[str, Any]) -> dict[str, Any]:
    """A function_call item as a tool call."""
    function = {"name": storable(item.get("name"))}
    if "arguments" in item:
        function["arguments"] = arguments_of(item["arguments"])
    return {"id": storable(item.get("call_id", item.get("id"))), "type": "function", "function": function}


def responses_finish(parsed: dict[str, Any], called: bool) -> str | None:
    """finish_reason of a Responses reply: its status, and why it is incomplete."""
    status, details = parsed.get("status"), parsed.get("incomplete_details")
    if status == "incomplete":
        reason = details.get("reason") if isinstance(details, dict) else None
        return {"max_output_tokens": "length"}.get(reason, reason) if isinstance(reason, str) else "length"
    if status == "completed":
        return "tool_calls" if called else "stop"
    return status if isinstance(status, str) else None


def message_of(content: str | None, calls: list[Any], refusal: str | None, thoughts: list[Any]) -> dict[str, Any]:
    """An assistant message in chat-completions shape."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "tool_calls": calls or None, "refusal": refusal}
    said = [thought for thought in thoughts if isinstance(thought, str) and thought]
    if said:
        message["reasoning_content"] = "\n".join(said)
    return message


def completion(parsed: dict[str, Any], message: dict[str, Any], finish: str | None, usage: Any) -> dict[str, Any]:
    """A chat completion with one choice; id, model and provider as received."""
    reply: dict[str, Any] = {key: storable(parsed[key]) for key in ("id", "model", "provider") if key in parsed}
    reply["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    reply["usage"] = usage(parsed.get("usage"))
    return reply


# === Usage ===


def count(value: Any) -> int | None:
    """A token count, None for anything that is not one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT
    return value if usable else None


def anthropic_usage(usage: Any) -> dict[str, Any] | None:
    """Messages' usage under chat-completions names. Its input_tokens leave cached ones out, prompt_tokens hold all."""
    if not isinstance(usage, dict):
        return None
    read, made = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    fresh = count(usage.get("input_tokens"))
    found: dict[str, Any] = {
        "prompt_tokens": None if fresh is None else fresh + (read or 0) + (made or 0),
        "completion_tokens": count(usage.get("output_tokens")),
    }
    if read is not None:
        found["prompt_tokens_details"] = {"cached_tokens": read}
    if made is not None:
        found["cache_creation_input_tokens"] = made
    return found


def responses_usage(usage: Any) -> dict[str, Any] | None:
    """Responses' usage under chat-completions names."""
    if not isinstance(usage, dict):
        return None
    found: dict[str, Any] = {
        "prompt_tokens": count(usage.get("input_tokens")),
        "completion_tokens": count(usage.get("output_tokens")),
    }
    pairs = (
        ("input_tokens_details", "prompt_tokens_details", "cached_tokens"),
        ("output_tokens_details", "completion_tokens_details", "reasoning_tokens"),
    )
    for theirs, ours, name in pairs:
        details = usage.get(theirs)
        if isinstance(details, dict) and count(details.get(name)) is not None:
            found[ours] = {name: details[name]}
    return found


def usage_of(reply: Mapping[str, Any]) -> dict[str, int | None] | None:
    """{"input", "output", "cached", "reasoning"} of a chat-shaped reply, each a count or None; None without usage.

    cached is None when it exceeds input: then the two cannot both be counts of one prompt.
    """
    usage = reply.get("usage") if isinstance(reply, Mapping) else None
    if not isinstance(usage, dict):
        return None
    cached, reasoning = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    found = {
        "input": count(usage.get("prompt_tokens")),
        "output": count(usage.get("completion_tokens")),
        "cached": count(cached.get("cached_tokens")) if isinstance(cached, dict) else None,
        "reasoning": count(reasoning.get("reasoning_tokens")) if isinstance(reasoning, dict) else None,
    }
    if found["cached"] is not None and found["input"] is not None and found["cached"] > found["input"]:
        found["cached"] = None
    return found


# === Who served it ===


def served_problem(arm: Mapping[str, Any], reply: Mapping[str, Any]) -> str | None:
    """What contradicts the arm's `response_model` pattern or `provider`; None when nothing does.

    A name that the reply does not give contradicts nothing.
    """
    model, provider = reply.get("model"), reply.get("provider")
    pattern, wanted = arm.get("response_model"), arm.get("provider")
    if pattern is not None and isinstance(model, str) and not re.fullmatch(pattern, model):
        return f"the reply came from model {model!r}, the arm expects {pattern!r}"
    if wanted is not None and isinstance(provider, str) and provider.lower() != str(wanted).lower():
        return f"the reply was served by {provider!r}, the arm expects {wanted!r}"
    return None
