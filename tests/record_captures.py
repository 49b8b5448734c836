"""Records what a real server answers to this toolkit's requests: how the files of tests/captures/ were made.

    python3 tests/record_captures.py http://127.0.0.1:8080/v1 MODEL NAME [KEY]     # writes tests/captures/NAME.jsonl

One line per request: {"name", "format", "mode", "status", "body"}; the body is the text as received. The pair, the
prompts and the limits are small, so a file stays small. A development tool: no test runs it.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from rooms import ROOT, room

recipe, providers = room("recipe"), room("providers")

# === What is asked ===

PAIR = {
    "text": "Name a prime number between 20 and 30.",
    "answer_a": "23 is a prime number.",
    "answer_b": "21, since it is odd.",
}
CONFIG: dict[str, Any] = {
    "prompt": "Compare the answers A and B to the question. Call grade with your choice and one short reason.",
    "tool_choice": {"type": "function", "function": {"name": "grade"}},
    "max_tokens": 100,
    "reasoning_effort": "low",
}
MODES = ("tool", "required", "json_schema", "json_object", "text")
LONG = {**PAIR, "answer_a": "23 is prime. " * 4000}


def arm_of(base: str, model: str, form: str) -> dict[str, Any]:
    return {"endpoint": base, "model": model, "format": form, "omit": ["reasoning_effort"]}


def requests(base: str, model: str) -> Iterator[tuple[str, str, str, str, bytes]]:
    """(name, format, mode, url, body) of every request."""
    for form in ("openai", "anthropic", "responses"):
        arm = arm_of(base, model, form)
        for mode in MODES if form == "openai" else ("tool", "json_schema", "text"):
            payload = recipe.request(PAIR, {**CONFIG, "output_mode": mode})
            wire = providers.build(arm, payload)
            yield f"{form}-{mode}", form, mode, wire.url, wire.body
    yield from odd_requests(base, model)


def odd_requests(base: str, model: str) -> Iterator[tuple[str, str, str, str, bytes]]:
    """Requests that are cut off, too long, or wrong in one place."""
    arm = arm_of(base, model, "openai")
    for name, pair, mode, change in (
        ("strict", PAIR, "tool", {"strict": True}),
        ("swapped", PAIR, "json_schema", {"swapped": True}),
        ("cut-tool", PAIR, "tool", {"max_tokens": 6}),
        ("cut-schema", PAIR, "json_schema", {"max_tokens": 6}),
        ("cut-text", PAIR, "text", {"max_tokens": 3}),
        ("too-long", LONG, "tool", {}),
        ("effort", PAIR, "tool", {"effort": True}),
    ):
        config = {**CONFIG, "output_mode": mode, "strict": bool(change.get("strict"))}
        config["max_tokens"] = change.get("max_tokens", CONFIG["max_tokens"])
        asked = {**arm, "omit": []} if change.get("effort") else arm
        wire = providers.build(asked, recipe.request(pair, config, swapped=bool(change.get("swapped"))))
        yield name, "openai", mode, wire.url, wire.body
    wire = providers.build(arm, recipe.request(PAIR, CONFIG))
    body = json.loads(wire.body)
    yield "no-such-model", "openai", "tool", wire.url, json.dumps({**body, "model": "no-such-model"}).encode()
    yield "bad-choice", "openai", "tool", wire.url, json.dumps({**body, "tool_choice": "grade"}).encode()
    yield "no-messages", "openai", "tool", wire.url, json.dumps({"model": model, "max_tokens": 5}).encode()
    yield "not-json", "openai", "tool", wire.url, wire.body[:40]
    yield "wrong-path", "openai", "tool", wire.url + "/none", wire.body


# === Send ===


def send(url: str, body: bytes, key: str | None) -> tuple[int, bytes]:
    """(status, body) of one POST, whatever the status."""
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    if key:
        headers.update({"Authorization": f"Bearer {key}", "x-api-key": key})
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def main(arguments: list[str]) -> int:
    base, model, name = arguments[:3]
    key = arguments[3] if len(arguments) > 3 else None
    path = ROOT / "tests" / "captures" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        for label, form, mode, url, body in requests(base, model):
            status, reply = send(url, body, key)
            line = {"name": label, "format": form, "mode": mode, "status": status}
            line["body"] = reply.decode("utf-8", "backslashreplace")
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            print(f"{name} {label}: {status}, {len(reply)} bytes", flush=True)
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
