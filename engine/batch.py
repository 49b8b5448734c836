"""Requests as lines of a batch file, and lines of a batch's results as answers: the formats, without files or network.

OpenAI's Batch JSONL (`custom_id, method, url, body`) is also what Azure, Groq, Together and `vllm run-batch` read; it
serves arms of the formats openai and responses. Anthropic's Message Batches take one JSON object with the list
`requests`; it serves arms of the format anthropic. A custom id names the run, the arm and the request, in letters that
both services accept, so that results may come in any order, in pieces, and from several files.
Source: OpenAI's and Anthropic's API references (limits, line formats); vLLM's run_batch for what it does otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import evidence
import generate
import providers
import transport

# === Constants ===

MAX_DEPTH = providers.MAX_DEPTH + 8  # levels of a results line: those of a reply and its wrapping
TOO_DEEP = "nested too deeply to be a result"  # said on every Python alike, however deep it parses
TAG_LENGTH = 12  # hexadecimal digits that tell runs and arms apart; 64 characters are Anthropic's limit for an id
TASKS = re.compile(r"(\d{1,12}(-\d{1,12})?(,\d{1,12}(-\d{1,12})?)*)?", re.ASCII)  # as ranges_of writes them
CUSTOM_ID = re.compile(r"([0-9a-f]{12})-r([0-9]{1,6})-i([0-9]{1,9})-([a-z]{1,20})")
# Anthropic's error types and the status each has when it is sent as a reply of its own.
ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
NO_STATUS = 500  # an error without any number: asked again, like a server's own fault
CODE = re.compile(r"[a-z][a-z0-9_]{0,39}")
TEXT_LIMIT = 300  # characters of a service's words that are kept


class Limit(NamedTuple):
    """How much one batch file may hold."""

    requests: int
    size: int  # bytes


OPENAI_LIMIT = Limit(50_000, 200_000_000)
ANTHROPIC_LIMIT = Limit(100_000, 256_000_000)


class BadLine(Exception):
    """A line that is no result of a batch; the text says what it is instead."""


# === Custom ids ===


def run_tag(manifest: dict[str, Any], arm: str) -> str:
    """What marks one arm's requests of one run: another run's results are never taken for this one's."""
    named = [manifest["slug"], manifest["started_at"], arm, manifest["config_hash"][arm]]
    return evidence.sha256(evidence.canonical(named))[:TAG_LENGTH]


def custom_id(tag: str, task: generate.Task) -> str:
    """For example 3f09c2a1b7d4-r1-i17-swapped: repeat 1, item 17 (from 0) of the run, shown swapped."""
    return f"{tag}-r{task.repeat}-i{task.place}-{task.order}"


def index_of(text: str, runs: dict[str, generate.ArmRun], tags: dict[str, str]) -> tuple[generate.ArmRun, int] | None:
    """The arm and task a custom id stands for, None when it is of another run. tags: tag -> arm."""
    found = CUSTOM_ID.fullmatch(text)
    if found is None or found.group(1) not in tags:
        return None
    run = runs[tags[found.group(1)]]
    repeat, place, order = int(found.group(2)), int(found.group(3)), found.group(4)
    if not 1 <= repeat <= run.repeats or place >= run.n_items or order not in run.orders:
        return None
    return run, run.index(place, order, repeat)


# === Writing ===


def is_anthropic(settings: dict[str, Any]) -> bool:
    return providers.format_of(settings) == "anthropic"


def limit_of(settings: dict[str, Any]) -> Limit:
    return ANTHROPIC_LIMIT if is_anthropic(settings) else OPENAI_LIMIT


def url_of(settings: dict[str, Any]) -> str:
    """The path a batch names as its endpoint; the host is the service's own."""
    return "/v1" + providers.PATHS[providers.format_of(settings)]


def request_line(settings: dict[str, Any], name: str, payload: dict[str, Any], url: str) -> bytes:
    """One request of a batch, ended by a line feed; the same body as a direct request has. name: its custom id."""
    body = providers.body_of(settings, payload)
    if is_anthropic(settings):
        return evidence.row_bytes({"custom_id": name, "params": body})
    return evidence.row_bytes({"custom_id": name, "method": "POST", "url": url, "body": body})


class Splitter:
    """Cuts a stream of (task index, line) into parts that keep a service's limits.

    Each call of `part` gives the next part's bytes; `indexes` then holds its tasks. `done` once nothing is left.
    """

    def __init__(self, lines: Iterable[tuple[int, bytes]], limit: Limit, anthropic: bool) -> None:
        self.lines, self.limit = iter(lines), limit
        self.head, self.comma, self.tail = (b'{"requests":[\n', b",", b"]}\n") if anthropic else (b"", b"", b"")
        self.indexes: list[int] = []
        self.size = 0
        self.waiting = next(self.lines, None)

    @property
    def done(self) -> bool:
        return self.waiting is None

    def part(self) -> Iterator[bytes]:
        """The pieces of the next part. Raises: BadLine for one request that is larger than a whole file may be."""
        self.indexes, self.size = [], len(self.head) + len(self.tail)
        yield self.head
        while self.waiting is not None and len(self.indexes) < self.limit.requests:
            index, line = self.waiting
            piece = (self.comma if self.indexes else b"") + line
            if self.size + len(piece) > self.limit.size:
                if not self.indexes:
                    raise BadLine(f"one request has {len(line)} bytes; a batch file may have {self.limit.size}")
                break
            yield piece
            self.indexes.append(index)
            self.size += len(piece)
            self.waiting = next(self.lines, None)
        yield self.tail


def part_path(path: str, arm: str | None, number: int) -> str:
    """Where part `number` (from 1) goes: FILE, FILE-2, …; with the arm's name where there are several arms."""
    stem, dot, suffix = path.rpartition(".")
    if not dot or "/" in suffix or not stem:
        stem, dot, suffix = path, "", ""
    middle = ([arm] if arm else []) + ([str(number)] if number > 1 else [])
    return "-".join([stem, *middle]) + dot + suffix


# === What was exported ===


def ranges_of(indexes: Iterable[int]) -> str:
    """'0-99,105,107-200' of ascending task numbers: a million of them mostly take a few characters."""
    spans: list[list[int]] = []
    for index in indexes:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


def in_ranges(text: str) -> Iterator[int]:
    """The task numbers that `ranges_of` wrote."""
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def batch_problem(entry: Any, runs: dict[str, generate.ArmRun]) -> str:
    """What is wrong with one entry of a manifest's batches, '' when nothing is."""
    if not isinstance(entry, dict):
        return f"': expected an object, got {type(entry).__name__}"
    if not isinstance(entry.get("arm"), str) or entry["arm"] not in runs:
        return f".arm': expected one of {', '.join(runs)}, got {ascii(entry.get('arm'))[:60]}"
    for name in ("file", "exported_at", "tasks"):
        if not isinstance(entry.get(name), str):
            return f".{name}': expected a text, got {type(entry.get(name)).__name__}"
    most, tasks = len(runs[entry["arm"]].state), entry["tasks"]
    ends = [end for part in tasks.split(",") if tasks for end in part.split("-")]
    if not TASKS.fullmatch(tasks) or any(int(end) >= most for end in ends):
        return f".tasks': expected ranges of tasks below {most}, got {ascii(tasks)[:60]}"
    return ""


def outstanding(manifest: dict[str, Any], runs: dict[str, generate.ArmRun]) -> list[str]:
    """One line for each exported file with requests that have no reply yet: asking them again pays for them twice.

    Raises: EvidenceError for a manifest whose list of batches is none.
    """
    lines = []
    entries = manifest.get("batches", [])
    if not isinstance(entries, list):
        raise evidence.EvidenceError(f"manifest.json: field 'batches': expected a list, got {ascii(entries)[:60]}")
    for number, entry in enumerate(entries):
        problem = batch_problem(entry, runs)
        if problem:
            raise evidence.EvidenceError(f"manifest.json: field 'batches[{number}]{problem}")
        state = runs[entry["arm"]].state
        waiting = sum(state[index] == generate.MISSING for index in in_ranges(entry["tasks"]))
        if waiting:
            lines.append(
                f"{waiting} requests of arm {entry['arm']} were exported to {entry['file']} on {entry['exported_at']} "
                "and have no reply yet: if that batch was submitted, they are asked and paid for a second time"
            )
    return lines


# === Reading ===


class Result(NamedTuple):
    """One line of a batch's results: an answer, or why there is none."""

    custom_id: str
    answer: transport.Answer | None
    code: str = ""
    text: str = ""


def parse_line(line: bytes) -> dict[str, Any]:
    """The object of one results line; NaN and doubled keys below its response are kept as `providers.loads` does.

    Raises: BadLine.
    """
    try:
        value, _ = providers.loads(providers.reply_text(line))
    except ValueError:
        raise BadLine("not JSON") from None
    except RecursionError:
        raise BadLine(TOO_DEEP) from None
    if providers.depth_of(value) > MAX_DEPTH:
        raise BadLine(TOO_DEEP)
    if not isinstance(value, dict):
        raise BadLine(f"expected a JSON object, got {type(value).__name__}")
    for part in (value, value.get("response"), value.get("result")):
        if isinstance(part, providers.Doubled):
            raise BadLine("a field stands twice with different values")
    if not isinstance(value.get("custom_id"), str):
        raise BadLine("field 'custom_id' is missing: not a line of a batch's results")
    if "params" in value or ("body" in value and "response" not in value and "error" not in value):
        raise BadLine("a line of a batch's input, not of its results")
    return value


def read_result(line: bytes) -> Result:
    """One line of results in OpenAI's, vLLM's or Anthropic's shape. Raises: BadLine."""
    value = parse_line(line)
    name, result = value["custom_id"], value.get("result")
    if isinstance(result, dict):
        return anthropic_result(name, result)
    response = value.get("response")
    if isinstance(response, dict):
        status = response.get("status_code")
        status = status if isinstance(status, int) and 100 <= status <= 599 else None
        body = response.get("body")
        if status is None and value.get("error") is None and body is not None:
            status = 200
        if body is None and value.get("error") is not None:
            return without_body(name, status, value["error"])
        return Result(name, answer_of(status or NO_STATUS, body))
    if value.get("error") is None:
        return Result(name, None, "bad_body", "the line has neither a response nor an error")
    return without_body(name, None, value["error"])


def without_body(name: str, status: int | None, error: Any) -> Result:
    """A line that only has an error: a request that never ran (code and message), or vLLM's words for a failed one."""
    if status is not None and status >= 400:
        return Result(name, answer_of(status, {"error": error} if isinstance(error, str) else error))
    inner = error if isinstance(error, dict) else {"message": error}
    inner = inner["error"] if isinstance(inner.get("error"), dict) else inner
    if isinstance(inner.get("code"), int) and 400 <= inner["code"] <= 599:
        return Result(name, answer_of(inner["code"], {"error": inner}))
    code = inner.get("code") or inner.get("type")
    text = inner.get("message")
    return Result(name, None, named_code(code), text if isinstance(text, str) else "")


def anthropic_result(name: str, result: dict[str, Any]) -> Result:
    """A result of a Message Batch: succeeded, errored, canceled or expired."""
    kind = result.get("type")
    if kind == "succeeded":
        return Result(name, answer_of(200, result.get("message")))
    if kind == "errored":
        error = result.get("error")
        inner = error.get("error") if isinstance(error, dict) and isinstance(error.get("error"), dict) else error
        about = inner.get("type") if isinstance(inner, dict) else None
        status = ANTHROPIC_STATUS.get(about, NO_STATUS) if isinstance(about, str) else NO_STATUS
        return Result(name, answer_of(status, {"type": "error", "error": inner}))
    return Result(name, None, named_code(f"batch_{kind}"), "the service did not carry the request out")


def named_code(code: Any) -> str:
    """A service's own code where it can be one, else batch_error."""
    return code if isinstance(code, str) and CODE.fullmatch(code) else "batch_error"


def answer_of(status: int, body: Any) -> transport.Answer:
    """A result's body as the answer that a direct request would have had; a body given as text is taken literally."""
    if isinstance(body, str):
        data = body.encode("utf-8", "surrogateescape" if has_bytes(body) else "surrogatepass")
    elif has_odd(body):
        data = providers.written(body).encode("ascii")
    else:
        data = json.dumps(body).encode("ascii")
    return transport.Answer(status, "", {}, data)


def has_bytes(text: str) -> bool:
    """Whether a text holds bytes that were not UTF-8, and no other half of a surrogate pair."""
    halves = [char for char in text if "\ud800" <= char <= "\udfff"]
    return bool(halves) and all("\udc80" <= char <= "\udcff" for char in halves)


def has_odd(value: Any) -> bool:
    return isinstance(value, (dict, list)) and providers.is_odd(value)
