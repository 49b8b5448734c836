"""Whether every eval.json of the repository pins its files as they are: exit 1 and one line for each that does not.

    python3 -I .ci/check_pins.py

What an evaluation builds (a fixture or prompts that are not in the repository) is checked where it is built.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    runner = types.ModuleType("run_eval")
    runner.__file__ = str(ROOT / "run_eval.py")
    exec(compile((ROOT / "run_eval.py").read_bytes(), runner.__file__, "exec"), runner.__dict__)
    problems = []
    for folder in runner.evaluation_folders():
        config, _ = runner.read_config(folder)
        found = runner.pin_problems(runner.read_inputs(folder, config, skip_unbuilt=True), config)
        problems += found
        print(f"{folder}: {'ok' if not found else 'FAIL'}")
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
