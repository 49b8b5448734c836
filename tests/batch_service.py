"""A batch service for tests: reads a batch file, answers each request as the standard judge does, writes results.

    results = answer(path, judge())           # one results line per request, in the input's order
    write(path, results)

It knows the two formats as their services describe them, and the lines that vLLM's run-batch writes for failures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fault_server import Behaviour, Json, Request, judge

# === Reading ===


def requests_of(path: str | Path) -> list[dict[str, Any]]:
    """The requests of a batch file of either format."""
    text = Path(path).read_text(encoding="utf-8")
    if text.startswith('{"requests"'):
        found: list[dict[str, Any]] = json.loads(text)["requests"]
        return found
    return [json.loads(line) for line in text.split("\n") if line]


# === Answering ===


def answer(path: str | Path, behaviour: Behaviour | None = None) -> list[dict[str, Any]]:
    """One results line per request, in the input's order."""
    behave = behaviour or judge()
    return [answer_one(behave, number, line) for number, line in enumerate(requests_of(path), 1)]


def answer_one(behave: Behaviour, number: int, line: dict[str, Any]) -> dict[str, Any]:
    """The results line of one request, in the format it was asked in."""
    body = line.get("params", line.get("body"))
    path = line.get("url", "/v1/messages")
    reply = behave(Request(number, 1, 0.0, "POST", path, {}, json.dumps(body).encode("utf-8")))
    assert isinstance(reply, Json), reply
    if "params" in line:
        kind = "succeeded" if reply.status == 200 else "errored"
        return {"custom_id": line["custom_id"], "result": {"type": kind, anthropic_field(kind): reply.value}}
    response = {"status_code": reply.status, "request_id": f"req_{number}", "body": reply.value}
    return {"id": f"batch_req_{number}", "custom_id": line["custom_id"], "response": response, "error": None}


def anthropic_field(kind: str) -> str:
    return "message" if kind == "succeeded" else "error"


def write(path: str | Path, results: list[dict[str, Any]]) -> str:
    """Write results, one a line; returns the path."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in results)
    Path(path).write_text(text, encoding="utf-8")
    return str(path)


# === Lines of requests that were not answered ===


def expired(line: dict[str, Any]) -> dict[str, Any]:
    """What OpenAI's error file holds for a request that the window closed on."""
    error = {"code": "batch_expired", "message": "This request could not be executed before the batch expired."}
    return {"id": line.get("id"), "custom_id": line["custom_id"], "response": None, "error": error}


def vllm_failed(line: dict[str, Any], status: int, error: Any) -> dict[str, Any]:
    """What vLLM's run-batch writes for a request that it refused: a status, no body, the error beside it."""
    response = {"status_code": status, "request_id": "vllm-batch-1", "body": None}
    return {"id": "vllm-1", "custom_id": line["custom_id"], "response": response, "error": error}
