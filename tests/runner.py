"""For tests of whole commands: small evaluations in a temporary folder, run_eval.py as a process, rows read back."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from rooms import ROOT, room

RUN_EVAL = str(ROOT / "run_eval.py")
CANARY = "canary-5f3e9a7c1b2d4860"
KEY_ENV = "ENDURE_TEST_KEY"
TIMES = ("started_at", "latency_ms")  # what two runs that got the same replies may differ in


# === Evaluations ===


def item(number: int, **fields: Any) -> dict[str, Any]:
    """One pair with short texts of its own."""
    return {
        "item_id": f"pair-{number:05d}",
        "split": "test",
        "text": f"What is {number} plus {number}?",
        "answer_a": f"It is {2 * number}.",
        "answer_b": f"It is {2 * number + 1}, as far as I know.",
        "gold": "AB"[number % 2],
        "category": f"c{number % 3}",
        **fields,
    }


def write_fixture(folder: Path, rows: list[dict[str, Any]]) -> None:
    """fixture.jsonl of an evaluation folder, in UTF-8 with line feeds."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "fixture.jsonl").write_bytes(text.encode("utf-8"))


def make_evaluation(folder: Path, rows: list[dict[str, Any]], **settings: Any) -> Path:
    """An evaluation folder with its own fixture and the toolkit's recipe and check, pinned."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))
    files = {"recipe": str(ROOT / "recipe.py"), "check": str(ROOT / "check.py")}
    config.update(slug="small", title="small", repeats=1, files=files, bootstrap={"resamples": 200, "level": 0.95})
    config.update(settings)
    (folder / "eval.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    write_fixture(folder, rows)
    freeze(folder)
    return folder


def freeze(folder: Path) -> None:
    """Pin an evaluation folder as it is now."""
    room("run_eval").freeze_config(str(folder))


# === Commands ===


def environment(**more: str) -> dict[str, str]:
    """This process's environment without anything that could reach out or change texts."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith(("_proxy", "_api_key"))}
    return {**kept, KEY_ENV: CANARY, **more}


def command(*words: object) -> list[str]:
    return [sys.executable, "-I", RUN_EVAL, *map(str, words)]


def cli(*words: object, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run run_eval.py to its end. more: env (further variables), stdin (text)."""
    return subprocess.run(
        command(*words),
        cwd=cwd,
        env=environment(**more.get("env", {})),
        input=more.get("stdin", ""),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def start(*words: object, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    """Start run_eval.py; its output is read with communicate()."""
    return subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **more,
    )


def judge_at(base: str, **options: object) -> list[str]:
    """The options of a judge of one's own at a base URL, with the canary as its key."""
    words = ["--arms", "custom", "--base-url", base, "--model", "judge-1", "--key-env", KEY_ENV]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words


def stop(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> tuple[str, str]:
    """Send a signal and take what was printed."""
    process.send_signal(number)
    return process.communicate(timeout=60)


# === What a run left ===


def run_folder(cwd: Path, slug: str = "small") -> Path:
    """The newest run below ./runs."""
    return sorted((cwd / "runs" / slug).iterdir())[-1]


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return found


def journal_keys(folder: Path, *states: str) -> list[tuple[str, str, int, str]]:
    """(arm, item, repeat, order) of every complete journal line, of the given states where any are given."""
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    entries = [json.loads(line) for line in lines]
    chosen = [entry for entry in entries if not states or entry["evidence"]["state"] in states]
    return [(entry["arm"], entry["item_id"], entry["repeat"], entry["order"]) for entry in chosen]


def rows_of(folder: Path, name: str = "raw.jsonl.gz") -> list[dict[str, Any]]:
    lines = gzip.decompress((folder / name).read_bytes()).split(b"\n")
    return [json.loads(line) for line in lines if line]


def timeless(folder: Path) -> bytes:
    """The raw rows as bytes, without the fields that two runs with the same replies may differ in."""
    rows = rows_of(folder)
    for part in [part for row in rows for part in (row, *row["replies"].values())]:
        for name in TIMES:
            part[name] = None
    return b"".join(room("evidence").row_bytes(row) for row in rows)


def holders(top: Path, secret: str) -> list[str]:
    """Files below a folder that hold a text, packed or not."""
    found = []
    for path in top.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            if secret.encode() in data:
                found.append(str(path))
    return found
