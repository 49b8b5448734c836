"""How long 10,000 requests take through a batch: export, answers by a stand-in service, import, finished rows.

    python3 tests/bench_batch.py [REQUESTS]

Prints seconds and, beside them, the ratio to a baseline measured in the same run: parsing and writing the same lines
with the standard library's json alone. The service's own time is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import batch_service as service
from fault_server import judge
from rooms import ROOT


def run(folder: str, *arguments: str) -> tuple[float, str]:
    """(seconds, last line of stdout) of one command as a process of its own."""
    command = [sys.executable, "-I", str(ROOT / "run_eval.py"), *arguments]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - began, done.stdout.decode("utf-8").strip().split("\n")[-1]


def answers(folder: str) -> list[dict[str, Any]]:
    """A results line for every request, from one reply that only differs in its id: the service's time is not ours."""
    requests = service.requests_of(os.path.join(folder, "batch.jsonl"))
    first = service.answer_one(judge(), 1, requests[0])
    return [{**first, "custom_id": line["custom_id"]} for line in reversed(requests)]


def baseline(folder: str) -> float:
    """Seconds to read and write the lines of both files again with json alone."""
    began = time.perf_counter()
    for name in ("batch.jsonl", "out.jsonl"):
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            lines = [json.loads(line) for line in stream]
        with open(os.path.join(folder, "again.jsonl"), "w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)
    return time.perf_counter() - began


def main(arguments: list[str]) -> int:
    wanted = int(arguments[0]) if arguments else 10_000
    items = 40
    repeats = max(1, wanted // (2 * items))
    with tempfile.TemporaryDirectory() as folder:
        base = ("--arms", "custom", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
        size = ("--limit", str(items), "--repeats", str(repeats), "--quiet")
        export_s, name = run(folder, "--export-batch", "batch.jsonl", *base, *size)
        service.write(os.path.join(folder, "out.jsonl"), answers(folder))
        import_s, name = run(folder, "--import-batch", "out.jsonl", "--run", name)
        json_s = baseline(folder)
        status = json.loads(Path(folder, name, "manifest.json").read_text(encoding="utf-8"))["status"]
    total = export_s + import_s
    print(f"{2 * items * repeats} requests, run {status}")
    print(f"export  {export_s:6.2f} s")
    print(f"import  {import_s:6.2f} s  (finished rows included)")
    print(f"both    {total:6.2f} s, {total / json_s:.1f} times json alone ({json_s:.2f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
