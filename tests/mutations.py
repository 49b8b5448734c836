"""Changes to reply bodies of the kind that servers, proxies and models make: seeded, and never in favour of a verdict.

    for name, body in mutations(rng, capture.body):  ...          # endless: (what was done, bytes)

A field is dropped, nulled, retyped, nested, doubled, renamed or cut, the text is re-encoded or cut, in the body itself
and in the JSON that it holds inside a string (a tool's arguments, a content). No change writes a label where another
stood alone; a second label that contradicts the first may be added, since a reader has to notice that.

    python3 tests/mutations.py [N [SEED]]        # N bodies (20,000) through client, parser and evidence; prints counts
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rooms import ROOT, room

batch = room("batch")
client = room("client")
evaluations = room("evaluation")
evidence = room("evidence")
generate = room("generate")
providers = room("providers")
recipe = room("recipe")
rows = room("rows")
transport = room("transport")

CAPTURES = ROOT / "tests" / "captures"
AGAINST = "double against"  # the last change of its body: after another one only the second copy might be left
OTHER = {"A": "B", "B": "A", "equal": "A"}

# === Bodies to start from ===


class Capture(NamedTuple):
    """A recorded reply, and the dialect and output mode it was asked in."""

    source: str
    format: str
    mode: str
    status: int
    body: str


def captures() -> list[Capture]:
    """Every recorded reply of tests/captures/."""
    found = []
    for path in sorted(CAPTURES.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                one = json.loads(line)
                source = f"{path.stem} {one['name']}"
                found.append(Capture(source, one["format"], one["mode"], one["status"], one["body"]))
    return found + made_up()


def made_up() -> list[Capture]:
    """Good replies of the dialects that no recorded server answered well in, with each label."""
    from fault_server import chat_reply, messages_reply, responses_reply

    found = []
    for choice in ("A", "B", "equal"):
        verdict = {"choice": choice, "reason": "the other one is wrong"}
        for form, reply in (("openai", chat_reply), ("anthropic", messages_reply), ("responses", responses_reply)):
            for mode, body in request_bodies(form).items():
                text = json.dumps(reply(body, verdict, "a prompt"))
                found.append(Capture(f"made up {form} {mode} {choice}", form, mode, 200, text))
    return found


def request_bodies(form: str) -> dict[str, dict[str, Any]]:
    """What the made-up judge is asked, by output mode."""
    item = {"text": "q", "answer_a": "x", "answer_b": "y"}
    config: dict[str, Any] = {"prompt": "p", "tool_choice": {"type": "function", "function": {"name": "grade"}}}
    config.update({"max_tokens": 100, "reasoning_effort": "low"})
    arm = {"endpoint": "http://127.0.0.1:9/v1", "model": "m", "format": form}
    found = {}
    for mode in ("tool", "json_schema", "text"):
        payload = recipe.request(item, {**config, "output_mode": mode})
        found[mode] = json.loads(providers.build(arm, payload).body)
        if form == "responses" and mode == "tool":
            found[mode]["tools"] = [{"name": "grade", "function": {"name": "grade"}}]
    return found


# === A JSON value with doubled keys ===


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a key can stand in it twice."""


class Deep(NamedTuple):
    """A value inside so many lists or objects that only its text can be written, not its levels one by one."""

    value: Any
    levels: int
    opening: str
    closing: str


def to_pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return Pairs((key, to_pairs(part)) for key, part in value.items())
    return [to_pairs(part) for part in value] if isinstance(value, list) else value


def text_of(value: Any) -> str:
    """The JSON text of a value with Pairs."""
    if isinstance(value, Pairs):
        return "{" + ",".join(json.dumps(key) + ":" + text_of(part) for key, part in value) + "}"
    if isinstance(value, Deep):
        return value.opening * value.levels + text_of(value.value) + value.closing * value.levels
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return json.dumps(value)


def places(value: Any) -> Iterator[tuple[Any, int]]:
    """(container, index) of every value inside a value."""
    if isinstance(value, Pairs):
        for index, (_, part) in enumerate(value):
            yield value, index
            yield from places(part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield value, index
            yield from places(part)


def get(holder: Any, index: int) -> Any:
    return holder[index][1] if isinstance(holder, Pairs) else holder[index]


def put(holder: Any, index: int, value: Any) -> None:
    holder[index] = (holder[index][0], value) if isinstance(holder, Pairs) else value


# === Changes of one place ===


def opposed(value: Any) -> Any:
    """The value with every label in it exchanged: what a contradicting second copy says."""
    if isinstance(value, Pairs):
        return Pairs(
            (key, OTHER.get(part, "B") if key == "choice" and isinstance(part, str) else opposed(part))
            for key, part in value
        )
    if isinstance(value, list):
        return [opposed(part) for part in value]
    if isinstance(value, str):
        for label, other in OTHER.items():
            for form in ('"choice": "%s"', '"choice":"%s"', '\\"choice\\": \\"%s\\"'):
                if form % label in value:
                    return value.replace(form % label, form % other)
    return value


def drop(rng: random.Random, holder: Any, index: int) -> None:
    del holder[index]


def null(rng: random.Random, holder: Any, index: int) -> None:
    put(holder, index, None)


def retype(rng: random.Random, holder: Any, index: int) -> None:
    value = get(holder, index)
    odd = [
        0,
        -1,
        1.5,
        True,
        False,
        [],
        Pairs(),
        "",
        "null",
        10**30,
        float("nan"),
        float("inf"),
        [value],
        text_of(value),
    ]
    put(holder, index, rng.choice(odd))


def nest(rng: random.Random, holder: Any, index: int) -> None:
    value = get(holder, index)
    opening, closing = rng.choice((("[", "]"), ('{"value":', "}")))
    put(holder, index, Deep(value, rng.choice((1, 1, 2, 70, 5000)), opening, closing))


def double(rng: random.Random, holder: Any, index: int) -> None:
    """The same again, or the same with the opposite label behind it."""
    value = get(holder, index)
    again = opposed(value) if rng.random() < 0.5 else value
    if not isinstance(holder, Pairs) and isinstance(value, Pairs) and {"message", "finish_reason"} & dict(value).keys():
        again = value  # a second choice of another opinion is legitimate: the first is the one that was asked for
    holder.insert(index + 1, (holder[index][0], again) if isinstance(holder, Pairs) else again)


def rename(rng: random.Random, holder: Any, index: int) -> None:
    if isinstance(holder, Pairs):
        key, value = holder[index]
        holder[index] = (rng.choice((key.upper(), key + "_", key[:-1], "", "x", key.replace("_", ""))), value)
    else:
        drop(rng, holder, index)


def cut(rng: random.Random, holder: Any, index: int) -> None:
    """A shorter text; never one that ends a sentence about another label, so a mark is dropped with what follows it."""
    value = get(holder, index)
    if isinstance(value, str) and value:
        value = value[: rng.randrange(len(value))]
        put(holder, index, value)
    else:
        null(rng, holder, index)


def respell(rng: random.Random, holder: Any, index: int) -> None:
    """The same text in another spelling."""
    value = get(holder, index)
    if not isinstance(value, str):
        return retype(rng, holder, index)
    forms: list[Callable[[str], str]] = [
        str.upper,
        str.lower,
        lambda text: f" {text}\n",
        lambda text: "\ufeff" + text + "\u200b",
        lambda text: json.dumps(text),
        lambda text: "".join(f"\\u{ord(char):04x}" if ord(char) < 65536 else char for char in text),
        lambda text: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode(),
        lambda text: text.encode("utf-8", "surrogatepass").decode("latin-1"),
        lambda text: text + "\ud83d",
        lambda text: text.replace('"', "'"),
        lambda text: text + "\x00",
        lambda text: f"```json\n{text}\n```",
        lambda text: f"<think>{text}</think>",
        lambda text: f"<think>{text}",
        lambda text: text + text,
        lambda text: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text),
    ]
    put(holder, index, rng.choice(forms)(value))
    return None


CHANGES: tuple[Callable[[random.Random, Any, int], None], ...] = (
    drop,
    null,
    retype,
    nest,
    double,
    rename,
    cut,
    respell,
)


def inner_json(value: Any) -> Any:
    """The value of a text that is itself a JSON object, else None."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return to_pairs(json.loads(value))
        except (ValueError, RecursionError):
            return None
    return None


# === Changes of a whole body ===


def changed_value(rng: random.Random, value: Any) -> str:
    """Change one place of a value, or of the JSON that a text in it holds; returns what was done."""
    found = list(places(value))
    if not found:
        return "nothing"
    holder, index = rng.choice(found)
    inner = [(one, at) for one, at in found if inner_json(get(one, at)) is not None]
    if inner and rng.random() < 0.4:
        holder, index = rng.choice(inner)
        held = inner_json(get(holder, index))
        done = changed_value(rng, held)
        put(holder, index, text_of(held))
        return f"inside: {done}"
    change = rng.choice(CHANGES)
    before = text_of(get(holder, index))
    change(rng, holder, index)
    return AGAINST if change is double and text_of(get(holder, index + 1)) != before else change.__name__


def changed_bytes(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """Change the bytes of a body: cut, re-encode, put something before or behind it."""
    text = data.decode("utf-8", "surrogatepass")
    ways: list[tuple[str, Callable[[], bytes]]] = [
        ("cut bytes", lambda: data[: rng.randrange(len(data) + 1)]),
        ("utf-16", lambda: text.encode("utf-16", "surrogatepass")),
        ("utf-32", lambda: text.encode("utf-32-le", "surrogatepass")),
        ("mark", lambda: b"\xef\xbb\xbf" + data),
        ("latin-1", lambda: text.encode("latin-1", "replace")),
        ("blanks", lambda: b"\n\n \r\n" + data + b"\n\x00"),
        ("comment", lambda: b": PROCESSING\n\n" + data),
        ("stream", lambda: b"data: " + data + b"\n\ndata: [DONE]\n\n"),
        ("gzip", lambda: gzip.compress(data)),
        ("base64", lambda: base64.b64encode(data)),
        ("in a string", lambda: json.dumps(text).encode()),
        ("in a list", lambda: b"[" + data + b"]"),
        ("twice", lambda: data + data),
        ("page", lambda: b"<!doctype html><pre>" + data),
        ("bad byte", lambda: replaced(rng, data)),
        ("flipped bit", lambda: flipped(rng, data)),
    ]
    name, way = rng.choice(ways)
    return name, way()


def replaced(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + b"\xff\xfe" + data[at + 1 :]


def flipped(rng: random.Random, data: bytes) -> bytes:
    """One bit of one byte changed, but not of a byte whose change could write another label."""
    at = rng.randrange(len(data)) if data else 0
    if not data or data[at : at + 1] in (b"A", b"B", b"C", b"a", b"b", b"e"):
        return data
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def mutated(rng: random.Random, body: str) -> tuple[str, bytes]:
    """(what was done, the body) after one to three changes."""
    names: list[str] = []
    data = body.encode("utf-8", "surrogatepass")
    try:
        value = to_pairs(json.loads(body))
    except ValueError:
        value = None
    if value is not None:
        holder = [value]
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            names.append(changed_value(rng, holder))
            if AGAINST in names[-1]:
                break
        data = text_of(holder[0] if holder else None).encode("utf-8", "surrogatepass")
    if value is None or (AGAINST not in names[-1] and rng.random() < 0.2):
        name, data = changed_bytes(rng, data)
        names.append(name)
    return ", ".join(names), data


# === Through the toolkit ===


class Road:
    """One arm per dialect and mode, with what a live call and a batch's result go through."""

    def __init__(self) -> None:
        self.judges: dict[tuple[str, str], Any] = {}
        self.runs: dict[tuple[str, str], Any] = {}

    def arm(self, one: Capture) -> tuple[Any, Any]:
        key = one.format, one.mode
        if key not in self.judges:
            settings = {
                "endpoint": "http://127.0.0.1:9/v1",
                "model": "m",
                "format": one.format,
                "output_mode": one.mode,
            }
            self.judges[key] = client.Client(settings, None, transport=lambda *_: None)
            arm = evaluations.Arm("one", settings)
            self.runs[key] = generate.arm_runs([arm], {"max_tokens": 100}, 1, 1)["one"]
        return self.judges[key], self.runs[key]

    def entry(self, one: Capture, data: bytes) -> dict[str, Any]:
        """The journal entry that a body leads to."""
        judge, run = self.arm(one)
        outcome = judge.taken(transport.Answer(one.status, "", {}, data))
        return self.kept(run, outcome)

    def kept(self, run: Any, outcome: Any) -> dict[str, Any]:
        task = generate.Task(0, 0, "original", 1)
        found: dict[str, Any] = generate.entry_of(
            recipe, providers.usage_of, run, task, "i", outcome, {"messages": [{"content": "p"}]}
        )
        return found

    def batch_entry(self, one: Capture, data: bytes) -> dict[str, Any] | None:
        """The journal entry that the same body leads to as a line of a batch's results; None for an unusable line."""
        judge, run = self.arm(one)
        if one.format == "anthropic":
            line = b'{"custom_id":"x","result":{"type":"succeeded","message":' + data + b"}}"
        else:
            wrapped = b'{"custom_id":"x","response":{"status_code":%d,"body":' % one.status
            line = wrapped + data + b'},"error":null}'
        try:
            result = batch.read_result(line)
        except batch.BadLine:
            return None
        if result.answer is None:
            return self.kept(run, client.Outcome("failed", code=result.code, text=result.text))
        return self.kept(run, judge.taken(result.answer))


def problem_of(entry: dict[str, Any], mode: str, before: str) -> str | None:
    """What is wrong with an entry; before: the verdict of the body that was not changed."""
    kept, said = entry["evidence"], entry["said"]
    if kept["state"] not in ("ok", "invalid", "failed"):
        return f"state {kept['state']!r}"
    if kept["state"] != "ok" and not (isinstance(kept["code"], str) and kept["code"]):
        return f"{kept['state']} without a reason"
    if (kept["state"] == "ok") != (said["choice"] in ("A", "B", "equal")):
        return f"state {kept['state']} with choice {said['choice']!r}"
    again = json.loads(evidence.row_bytes(entry))
    if again["evidence"]["state"] != "failed" and not again["evidence"]["error"]:
        reread = recipe.parse(rows.reply_of(again["evidence"]), mode)
        if (reread["choice"], reread["reason"]) != (again["said"]["choice"], again["said"]["reason"]):
            return f"read again it says {reread['choice']!r}, not {said['choice']!r}"
    if before in OTHER and kept["state"] == "ok" and said["choice"] != before:
        return f"{before} became {said['choice']}"
    return None


def check(count: int, seed: int, given: list[Capture] | None = None) -> tuple[Counter[str], list[str]]:
    """`count` changed bodies (of `given`, else of all captures); (states, problems)."""
    rng, road, bodies = random.Random(seed), Road(), given or captures()
    verdicts = {one: road.entry(one, one.body.encode("utf-8"))["said"]["choice"] for one in bodies}
    states: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(count):
        one = bodies[number % len(bodies)]
        name, data = mutated(rng, one.body)
        roads = {"live": road.entry(one, data)}
        held = road.batch_entry(one, data) if number % 4 == 0 else None
        if held is not None:
            roads["batch"] = held
        for label, entry in roads.items():
            states[f"{label} {entry['evidence']['state']}"] += 1
            problem = problem_of(entry, one.mode, verdicts[one])
            if problem:
                problems.append(f"{number} {one.source} [{name}] {label}: {problem}: {data[:300]!r}")
    return states, problems


def main(arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else 20_000
    seed = int(arguments[1]) if len(arguments) > 1 else 20261027
    states, problems = check(count, seed)
    print(f"{count} changed bodies of {len(captures())} replies, seed {seed}")
    for state, number in sorted(states.items()):
        print(f"  {state:<14} {number}")
    print(f"  problems       {len(problems)}")
    for line in problems[:20]:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main(sys.argv[1:]))
