"""Files that others load, run by themselves: they say what they are for and do nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest

from rooms import ROOT


class Alone(unittest.TestCase):
    def test_each_prints_the_first_paragraph_of_its_docstring_and_ends_well(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("client.py", "agreement.py"):
                for arguments in ([], ["--help"]):
                    with self.subTest(name, arguments=arguments):
                        command = [sys.executable, "-I", str(ROOT / name), *arguments]
                        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
                        expected = (ROOT / name).read_text(encoding="utf-8")[3:].partition("\n\n")[0]
                        self.assertEqual(done.stdout, expected + "\n")


if __name__ == "__main__":
    unittest.main()
