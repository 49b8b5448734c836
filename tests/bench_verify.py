"""How long verification takes, against a baseline measured in the same run: python3 tests/bench_verify.py [ROWS]

Baseline: unpacking, hashing and decoding the receipt's raw and scored rows once, without checking anything. The receipt
has two arms, five repeats and the intervals of the default evaluation (10,000 resamples).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import receipt_folders as small
from rooms import room

receipts, verify = room("receipt"), room("verify")


def seconds(function: Callable[[], Any]) -> float:
    """The least processor time of three calls."""
    found = []
    for _ in range(3):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def read_only(folder: str) -> None:
    for name in ("raw.jsonl.gz", "scored.jsonl.gz"):
        packed = Path(folder, name).read_bytes()
        hashlib.sha256(packed).hexdigest()
        for line in gzip.decompress(packed).split(b"\n"):
            if line:
                json.loads(line)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    fixture = small.lines_of(small.items(rows // 10))
    evaluation = small.small_evaluation(fixture, repeats=5, bootstrap={"resamples": 10_000, "level": 0.95})
    top = tempfile.mkdtemp()
    try:
        run = small.write_run(os.path.join(top, "run"), evaluation)
        target = os.path.join(top, "receipt")
        receipts.publish([run], target, evaluation, None, False)
        state = verify.verify(target, evaluation, small.START + 7200, [])
        failing = [check.name for check in state.done.values() if check.status == verify.FAIL]
        base = seconds(lambda: read_only(target))
        full = seconds(lambda: verify.verify(target, evaluation, small.START + 7200, []))
        print(f"{rows} rows: verified in {full:.3f} s, read alone in {base:.3f} s, ratio {full / base:.1f}")
        print(f"failing checks: {failing or 'none'}")
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    main()
