"""A run that is scored with other inputs than it was made with says so, field by field."""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import runner


class Drift(unittest.TestCase):
    work: tempfile.TemporaryDirectory[str]
    top: Path
    evaluation: Path
    run_made: Path
    kept: dict[Path, bytes]

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = tempfile.TemporaryDirectory()
        cls.top = Path(cls.work.name)
        cls.evaluation = runner.make_evaluation(cls.top / "e", [runner.item(number) for number in range(6)])
        made = runner.cli(cls.evaluation, "--generate", "--arms", "control-longer", cwd=cls.top)
        assert made.returncode == 0, made.stderr
        cls.run_made = runner.run_folder(cls.top)
        cls.kept = {path: path.read_bytes() for path in cls.evaluation.iterdir()}

    @classmethod
    def tearDownClass(cls) -> None:
        cls.work.cleanup()

    def tearDown(self) -> None:
        for path, data in self.kept.items():
            path.write_bytes(data)

    def settings(self, **changed: Any) -> None:
        path = self.evaluation / "eval.json"
        config = {**json.loads(path.read_text(encoding="utf-8")), **changed}
        path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    def pairs(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        path = self.evaluation / "fixture.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)), encoding="utf-8")
        runner.freeze(self.evaluation)

    def said(self) -> str:
        done = runner.cli(self.evaluation, "--rescore", self.run_made, cwd=self.top)
        return done.stderr

    def test_of_a_run_that_is_scored_as_it_was_made_nothing_is_said(self) -> None:
        self.assertEqual("", self.said())
        runner.freeze(self.evaluation)
        self.assertEqual("", self.said())

    def test_changed_settings_are_named(self) -> None:
        self.settings(decision="original", prompt="{text} {answer_a} {answer_b}")
        self.assertIn("than the run was made with: eval.json (prompt, decision); the run's own are in ", self.said())

    def test_changed_pairs_are_counted_by_field(self) -> None:
        def relabel(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            other = [{**row, "gold": "equal", "text": row["text"] + "!"} for row in rows[:2]]
            return [*other, *({**row, "gold": "equal"} for row in rows[2:4]), *rows[4:]]

        self.pairs(relabel)
        self.assertIn("fixture.jsonl (gold of 4 pairs, text of 2 pairs)", self.said())

    def test_more_and_fewer_pairs_are_counted(self) -> None:
        self.pairs(lambda rows: [*rows[1:], {**rows[0], "item_id": "another"}, {**rows[0], "item_id": "a third"}])
        self.assertIn("fixture.jsonl (2 pairs more, 1 pair fewer)", self.said())

    def test_where_the_runs_copy_is_gone_the_file_alone_is_named(self) -> None:
        self.pairs(lambda rows: [{**rows[0], "gold": "equal"}, *rows[1:]])
        copy = self.run_made / "inputs" / "fixture.jsonl"
        data = copy.read_bytes()
        self.addCleanup(copy.write_bytes, data)
        copy.unlink()
        self.assertIn("than the run was made with: fixture.jsonl; the run's own", self.said())


if __name__ == "__main__":
    unittest.main()
