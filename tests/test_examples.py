"""EXAMPLES.md: its commands have options that exist, and its road through a batch leads from export to result."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

import batch_service as service
from rooms import ROOT, options_of

EXAMPLES = (ROOT / "EXAMPLES.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN_EVAL = "python3 -I run_eval.py "


def commands(text: str) -> Iterator[str]:
    """Every command of run_eval.py in the sh blocks, on one line, without what the shell does with its output."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").split("\n"):
            found = re.search(re.escape(RUN_EVAL) + r"(.*)$", line)
            if found:
                yield found.group(1).removesuffix(")")


class Examples(unittest.TestCase):
    def test_every_command_has_options_that_exist_and_go_together(self) -> None:
        found = list(commands(EXAMPLES))
        self.assertGreater(len(found), 12)
        for line in found:
            with self.subTest(line):
                options_of(*shlex.split(line, comments=True))

    def test_lines_fit_a_screen(self) -> None:
        self.assertEqual([line for line in EXAMPLES.split("\n") if len(line) > 135], [])

    @unittest.skipUnless(shutil.which("bash") and shutil.which("split"), "needs bash and split")
    def test_the_cluster_s_road_works_with_a_stand_in_for_vllm(self) -> None:
        section = EXAMPLES[EXAMPLES.index("## A cluster: Slurm") : EXAMPLES.index("## A cluster: Ray")]
        first, last = BLOCK.findall(section)
        small = " --limit 6 --repeats 1)"
        export = first.replace("reasoning_effort)", "reasoning_effort" + small).replace("sbatch judge.sbatch\n", "")
        self.assertNotEqual(export, first)
        bring_in = last.split("\n")[0] + '\npython3 -I run_eval.py --rescore "$RUN" --bootstrap 50'
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            out = self.bash(folder, export + 'echo "$RUN" > run.txt')
            for piece in sorted(folder.glob("piece.*")):
                service.write(folder / f"results.{piece.name[6:]}.jsonl", service.answer(piece))
            self.assertEqual(len(list(folder.glob("results.*.jsonl"))), 16)
            out = self.bash(folder, "RUN=$(cat run.txt)\n" + bring_in)
            self.assertIn("6/0/0", out)

    def bash(self, folder: Path, text: str) -> str:
        """The output of some lines of the examples, with this Python and this checkout's run_eval.py."""
        program = f"{shlex.quote(sys.executable)} -I {shlex.quote(str(ROOT / 'run_eval.py'))} "
        command = ["bash", "-euc", text.replace(RUN_EVAL, program)]
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.decode("utf-8")


if __name__ == "__main__":
    unittest.main()
