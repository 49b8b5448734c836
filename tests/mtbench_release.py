"""A small made-up release in the shape of MT-Bench's, and a rows service on loopback that can be told to fail."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import sys
import threading
import types
import urllib.parse
from collections.abc import Callable
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "data", "mt_bench")
MODELS = ("ash-1b", "birch-2b", "oak-3b")
CATEGORIES = {81: "writing", 82: "roleplay", 101: "reasoning", 111: "math", 121: "coding", 127: "stem"}
VOTES_EACH = (1, 4, 7, 2, 6, 9)  # people per pair, by question: some pairs have one vote, some have many


def module(path: str, name: str) -> Any:
    """A script of the toolkit as a module, executed from the bytes on disk (no cached code)."""
    with open(path, "rb") as stream:
        data = stream.read()
    made = types.ModuleType(name)
    made.__file__ = path
    sys.modules[name] = made
    exec(compile(data, path, "exec"), made.__dict__)
    return made


# === Made-up texts and votes ===


def question_turns(question: int) -> list[str]:
    return [
        f"Task {question}: describe the {CATEGORIES[question]} corner of a small library in a few plain words.",
        f"Now shorten your text about task {question} to half, keep every {{brace}} as it is, and name one shelf.",
    ]


def long_questions() -> list[dict[str, Any]]:
    """Questions long enough to be cut in halves, two of a category, no word in two of them or twice in one."""
    rows = []
    for number in range(12):
        turns = [" ".join(f"word{number}{name}{k}" for k in range(n)) for name, n in (("first", 24), ("second", 12))]
        rows.append({"question_id": 81 + number, "category": "abcdef"[number % 6], "turns": turns})
    return rows


def answer(question: int, model: str, turn: int) -> str:
    """Texts with what real ones hold: braces, line separators, non-Latin script, an empty one, two identical ones."""
    if (question, model, turn) == (127, "birch-2b", 1):
        return ""
    if question == 121 and turn == 1 and model != "oak-3b":
        return "for shelf in shelves:\n    print(shelf)"
    size = 1 + (question + len(model) * turn) % 4
    return f"{model} on {question}.{turn}: " + "shelf {question} \u2028 полка 棚 [[A]] " * size


def conversation(question: int, model: str) -> list[dict[str, str]]:
    turns = question_turns(question)
    return [
        message
        for turn in (1, 2)
        for message in (
            {"role": "user", "content": turns[turn - 1]},
            {"role": "assistant", "content": answer(question, model, turn)},
        )
    ]


def release_row(question: int, turn: int, first: str, second: str, judge: str, winner: str) -> dict[str, Any]:
    return {
        "question_id": question,
        "model_a": first,
        "model_b": second,
        "winner": winner,
        "judge": judge,
        "conversation_a": conversation(question, first),
        "conversation_b": conversation(question, second),
        "turn": turn,
    }


def release_rows() -> list[dict[str, Any]]:
    """All votes of both turns, one row each; the models' order changes from voter to voter as in the release."""
    rows = []
    for place, question in enumerate(CATEGORIES):
        for turn in (1, 2):
            for pair in (MODELS[:2], MODELS[1:], (MODELS[0], MODELS[2])):
                for number in range(VOTES_EACH[place]):
                    swap = (number + turn) % 2 == 1
                    first, second = (pair[1], pair[0]) if swap else pair
                    winner = ("model_a", "model_b", "tie", "tie")[(number * number + question * 5 + len(pair[1])) % 4]
                    judge = f"expert_{(number * 5 + place) % 11}" if number else f"author_{place}"
                    rows.append(release_row(question, turn, first, second, judge, winner))
    # one person votes twice on one pair, the models the other way round the second time
    rows.append(release_row(82, 1, "ash-1b", "birch-2b", "expert_30", "model_a"))
    rows.append(release_row(82, 1, "birch-2b", "ash-1b", "expert_30", "model_a"))
    return rows


def pair_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same votes in the other layout: one line per pair, models in alphabetical order, votes inside."""
    pairs: dict[tuple[int, int, str, str], dict[str, Any]] = {}
    for row in rows:
        names = sorted((row["model_a"], row["model_b"]))
        question, turn = row["question_id"], row["turn"]
        key = (question, turn, names[0], names[1])
        texts = {side: [answer(question, name, t) for t in (1, 2)] for side, name in zip("ab", names)}
        pair = pairs.setdefault(
            key,
            {
                "item_id": f"q{question}-t{turn}-{names[0]}-{names[1]}",
                "question_id": question,
                "turn": turn,
                "question": question_turns(question)[turn - 1],
                "prior_turns": [
                    {"user": question_turns(question)[0], "answer_a": texts["a"][0], "answer_b": texts["b"][0]}
                ][: turn - 1],
                "answer_a": texts["a"][turn - 1],
                "answer_b": texts["b"][turn - 1],
                "model_a": names[0],
                "model_b": names[1],
                "votes": [],
            },
        )
        label = {"model_a": row["model_a"], "model_b": row["model_b"]}.get(row["winner"])
        winner = "tie" if label is None else "A" if label == names[0] else "B"
        pair["votes"].append({"judge": row["judge"], "winner": winner})
    return list(pairs.values())


# === Files ===


def write_jsonl(path: str, rows: list[Any]) -> str:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def prompt_rows() -> list[dict[str, str]]:
    """Four pairwise prompts under the names FastChat uses, in words of our own, and one that is not pairwise."""
    single = "Q: {question}\nfirst <{answer_a}>\nsecond <{answer_b}>"
    multi = "1 {question_1} <{answer_a_1}> <{answer_b_1}>\n2 {question_2} <{answer_a_2}> <{answer_b_2}>"
    bodies = {
        "pair-v2": single,
        "pair-v2-multi-turn": multi,
        "pair-math-v1": single + "\nkey {ref_answer_1}",
        "pair-math-v1-multi-turn": multi + "\nkeys {ref_answer_1} / {ref_answer_2}",
    }
    rows = [{"name": name, "system_prompt": f"Judge {name}.", "prompt_template": body} for name, body in bodies.items()]
    return [*rows, {"name": "single-v1", "system_prompt": "Rate.", "prompt_template": "{question} {answer}"}]


def write_prompts(folder: str) -> list[str]:
    """Made-up stand-ins for FastChat's three files; returns their paths."""
    questions = [
        {"question_id": key, "category": name, "turns": question_turns(key)} for key, name in CATEGORIES.items()
    ]
    references = [
        {"question_id": key, "choices": [{"index": 0, "turns": [f"key {key} one", f"key {key} two"]}]}
        for key, name in CATEGORIES.items()
        if name in ("math", "reasoning", "coding")
    ]
    return [
        write_jsonl(os.path.join(folder, "question.jsonl"), questions),
        write_jsonl(os.path.join(folder, "gpt-4.jsonl"), references),
        write_jsonl(os.path.join(folder, "judge_prompts.jsonl"), prompt_rows()),
    ]


def copy_evaluations(folder: str) -> str:
    """The committed files of the MT-Bench evaluations, copied into `folder`/evals, with pins of the made-up release."""
    target = os.path.join(folder, "evals")
    shutil.copy(os.path.join(ROOT, "agreement.py"), folder)
    ignored = shutil.ignore_patterns(
        "fixture.jsonl", "prompts.jsonl", "questions.jsonl", "download", "runs", "__pycache__"
    )
    for name in ("mt-bench", "mt-bench-turn2", "mt-bench-100", "contamination", "contamination-labels"):
        shutil.copytree(os.path.join(ROOT, "evals", name), os.path.join(target, name), ignore=ignored)
    with open(os.path.join(target, "mt-bench", "release.json"), "w", encoding="utf-8") as stream:
        json.dump({"rows": len(release_rows())}, stream)
    return target


# === Rows service ===

Fault = Callable[[Any, int, bytes], bool]  # (handler, offset, sound body) -> whether it answered itself


class RowsService:
    """A loopback server that answers like the data set's rows service; `faults` are used up one a request."""

    def __init__(self, rows: list[dict[str, Any]], faults: list[Fault | None] | None = None) -> None:
        self.rows = rows
        self.faults = list(faults or [])
        self.asked: list[int] = []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.answer(self)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/rows?dataset=made-up&config=default&split=human"

    def page(self, offset: int, length: int) -> dict[str, Any]:
        rows = [
            {"row_idx": offset + number, "row": row, "truncated_cells": []}
            for number, row in enumerate(self.rows[offset : offset + length])
        ]
        return {
            "features": [],
            "rows": rows,
            "num_rows_total": len(self.rows),
            "num_rows_per_page": 100,
            "partial": False,
        }

    def answer(self, handler: Any) -> None:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(handler.path).query)
        offset, length = int(query["offset"][0]), int(query["length"][0])
        self.asked.append(offset)
        body = json.dumps(self.page(offset, length)).encode("utf-8")
        fault = self.faults.pop(0) if self.faults else None
        if fault is None or not fault(handler, offset, body):
            send(handler, 200, body)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def send(handler: Any, status: int, body: bytes, headers: dict[str, str] | None = None) -> bool:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
    return True


def status(code: int, headers: dict[str, str] | None = None) -> Fault:
    return lambda handler, offset, body: send(handler, code, b"no", headers)


def cut(handler: Any, offset: int, body: bytes) -> bool:
    """Half of the body under a header that promises all of it, then the connection closes."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True
    return True


def half_json(handler: Any, offset: int, body: bytes) -> bool:
    return send(handler, 200, body[: len(body) // 2])


def changed(change: Callable[[dict[str, Any]], Any]) -> Fault:
    """A sound page after `change` was applied to it."""

    def fault(handler: Any, offset: int, body: bytes) -> bool:
        page = json.loads(body)
        change(page)
        return send(handler, 200, json.dumps(page).encode("utf-8"))

    return fault
