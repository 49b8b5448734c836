"""Wrong values in eval.json and manifest.json end in one line, never in a traceback or in a file lost."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import runner
from rooms import ROOT, room

evaluation, evidence, foreign = room("evaluation"), room("evidence"), room("foreign")
HUGE = 10**30
SHA = "0" * 64
ARM = {"endpoint": "https://judge.example/v1", "model": "judge-1", "rpm": 60}
# field -> values that are refused; a.b is b in the object a, arm.x is x of one more arm.
WRONG: dict[str, tuple[Any, ...]] = {
    "slug": ("", "../EVIL", "/tmp/x", "\x1b[31m", 5, None),
    "title": (5, "", []),
    "unit": (5, ["pair"]),
    "seed": (1.5, [], {}, True),
    "prompt": (None, 5),
    "reasoning_effort": (None, 5),
    "output_mode": ("nosuch", 5, []),
    "max_tokens": (0, -1, 1.5, True, HUGE, 10_000_001),
    "repeats": (0, "3", True, HUGE, 1001),
    "decision": ("nosuch", [], {}),
    "aggregation": ("mode", []),
    "headline": ({"metric": []}, {"metric": "f1"}),
    "labels": ([], "", "AB", ["A"], ["A", "A"], [1, 2], {}),
    "bootstrap": ([], 5),
    "bootstrap.resamples": (0, -1, 2.5, "9", True, HUGE, 1_000_001),
    "bootstrap.level": (0, 1, 95, "0.95", None, []),
    "planning": ([], 5),
    "planning.power": (0, 1, "x", None),
    "planning.discordant_share": (-0.1, 2, []),
    "planning.output_tokens": (-1, "250", None, HUGE),
    "dimensions": ("category", 5, [5], ["a", "a"], [[]]),
    "default_arms": ("pareto", [5], {}),
    "known_oddities": ([], {"nul": -1}, {"nosuch": 1}),
    "inputs_sha256": (True, 5, "x", [None], {"a.txt": 5}, {"../x": SHA}, {"recipe.py": SHA}, {"modes.py": SHA}),
    "files": (5, [], {"fixture": 5}, {"fixture": "a\0b"}, {"engine/modes.py": "recipe.py"}, {"fixture.jsonl": "x"}),
    "secondary": ({}, [5], [{}]),
    "arms": ([], {"a,b": ARM}, {"": ARM}, {"\x1b[31m": ARM}, {"a": 5}),
    "arm.weekly_tokens": (0, -1, "x", [], {}, True),
    "arm.provider_name": (5, [], ""),
    "arm.recorded": ("x", 1, []),
    "arm.concurrency": (0, 1.5, 10**400, "x"),
    "arm.rpm": (0, -1, 10**400, "x"),
    "arm.output_mode": ("x", [], {}),
    "arm.control": ("shorter", [], {}),
    "arm.price_usd_per_mtok": (5, {"input": 1}, {"input": -1, "output": 1}, {"input": 1, "output": True}),
    "arm.batch_discount": (1, -1, 10**400, "x"),
}  # fmt: skip
CASES = [(field, value) for field, values in WRONG.items() for value in values]
AS_COMMANDS = [(field, values[0]) for field, values in WRONG.items()][::4]  # the others in this process


def with_value(config: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """Settings with one value changed."""
    outer, _, inner = field.rpartition(".")
    if outer == "arm":
        return {**config, "arms": {**config["arms"], "more": {**ARM, inner: value}}}
    return {**config, outer: {**config[outer], inner: value}} if outer else {**config, field: value}


class Settings(unittest.TestCase):
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp())
        runner.make_evaluation(cls.folder / "e", [runner.item(1), runner.item(2)])

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.folder)

    def plan_of(self, name: str, text: str) -> tuple[int, str]:
        """Exit code and stderr of a plan with this eval.json."""
        place = self.folder / name
        shutil.copytree(self.folder / "e", place)
        (place / "eval.json").write_text(text, encoding="utf-8")
        done = runner.cli(place, "--plan", "--arms", "control-first", cwd=self.folder)
        return done.returncode, done.stderr

    def test_every_wrong_value_is_one_line_that_names_the_field(self) -> None:
        config = json.loads((self.folder / "e" / "eval.json").read_text(encoding="utf-8"))
        texts = [json.dumps(with_value(config, *case)) for case in AS_COMMANDS]
        self.assertGreater(len(AS_COMMANDS), 7)
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            found = list(pool.map(self.plan_of, map(str, range(len(texts))), texts))
        for (field, value), (code, err) in zip(AS_COMMANDS, found):
            with self.subTest(field, value=str(value)[:40]):
                self.assertIn(code, (1, 3), err)
                self.assertNotIn("Traceback", err)
                self.assertNotIn("\x1b", err)
                self.assertEqual(1, len(err.splitlines()), err)
                self.assertRegex(err, "^run_eval: error: .*eval.json.*" + field.rpartition(".")[2])
                self.assertRegex(err, "expected .*got ")

    def test_every_further_wrong_value_is_refused_too(self) -> None:
        config = json.loads((self.folder / "e" / "eval.json").read_text(encoding="utf-8"))
        place = self.folder / "further"
        place.mkdir()
        for field, value in CASES:
            with self.subTest(field, value=str(value)[:40]):
                (place / "eval.json").write_text(json.dumps(with_value(config, field, value)), encoding="utf-8")
                with self.assertRaises((room("run_eval").PinError, evaluation.SettingError)) as caught:
                    evaluation.check_config(room("run_eval").read_config(str(place))[0], "eval.json")
                self.assertRegex(str(caught.exception), "expected .*got ")

    def test_a_key_that_stands_twice_and_nan_are_refused(self) -> None:
        text = (self.folder / "e" / "eval.json").read_text(encoding="utf-8")
        for place, (old, new, words) in enumerate((
            ('"slug": "small"', '"slug": "small", "slug": "other"', "key 'slug' stands twice"),
            ('"level": 0.95', '"level": NaN', "NaN is not JSON"),
        )):  # fmt: skip
            self.assertIn(old, text)
            code, err = self.plan_of(f"text-{place}", text.replace(old, new))
            self.assertEqual(1, code, err)
            self.assertIn(words, err)

    def test_the_frozen_evaluations_pass(self) -> None:
        for path in (ROOT / "eval.json", *ROOT.glob("evals/*/eval.json")):
            with self.subTest(path.parent.name):
                config, _ = room("run_eval").read_config(str(path.parent))
                evaluation.check_config(config, str(path))

    def test_an_input_is_written_nowhere_but_into_its_run(self) -> None:
        outside = self.folder / "precious"
        outside.write_text("PRECIOUS", encoding="utf-8")
        names = ("../../precious", str(outside), "a\\b", "engine/modes.py", "engine", "Recipe.py", "..", "tables.py")
        for name in names:
            with self.subTest(name):
                lines = room("run_eval").name_problems({"inputs_sha256": {name: SHA}})
                self.assertEqual(1, len(lines))
        self.assertEqual(
            [], room("run_eval").name_problems({"inputs_sha256": {"prompts.jsonl": SHA, "größe 2.txt": SHA}})
        )


class Slugs(unittest.TestCase):
    def test_a_slug_is_checked_before_it_becomes_a_path(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            for slug in ("../../EVIL", "/tmp/x", "", "\x1b[31m", None, 5, "a\n"):
                with self.subTest(slug=slug):
                    manifest = {"format": evidence.RUN_FORMAT, "slug": slug}
                    (Path(name) / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
                    with self.assertRaisesRegex(evidence.EvidenceError, "field 'slug': expected lower-case words"):
                        evidence.read_manifest(name)
            with self.assertRaisesRegex(evidence.EvidenceError, "slug"):
                evidence.new_run(name, "../EVIL", 0.0)
            self.assertEqual(["manifest.json"], os.listdir(name))

    def test_a_foreign_manifest_is_read_by_the_same_rule(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = runner.make_evaluation(Path(name) / "e", [runner.item(1)])
            done = runner.cli(folder, "--generate", "--arms", "control-first", cwd=Path(name))
            path = Path(name) / done.stdout.strip()
            manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
            self.assertEqual([], foreign.manifest_problems(manifest))
            (path / "manifest.json").write_text(json.dumps({**manifest, "slug": "../../EVIL"}), encoding="utf-8")
            merged = runner.cli(folder, "--merge", path, path, "--out", "a/b", cwd=Path(name))
            self.assertIn("field 'slug'", merged.stderr)
            self.assertNotEqual(0, merged.returncode)
            self.assertEqual({"e", "runs"}, set(os.listdir(name)))


class Gates(unittest.TestCase):
    def test_a_gate_decides_the_exit_code_of_every_mode_that_shows_a_result(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            folder = runner.make_evaluation(work / "e", [runner.item(n) for n in range(1, 9)])
            done = runner.cli(folder, "--generate", "--arms", "control-first", cwd=work)
            run = done.stdout.strip()
            gates = {"control-first:agreement>=0": 0, "control-first:agreement>0.99": 1, "nosuch:kappa>0": 2}
            for words in (("--rescore", run), ("--verify", run), ("--demo",)):
                for gate, code in gates.items():
                    with self.subTest(words=words, gate=gate):
                        told = runner.cli(folder, *words, "--gate", gate, cwd=work)
                        self.assertEqual(code, told.returncode, told.stdout + told.stderr)
                        self.assertIn("gate", told.stderr)


if __name__ == "__main__":
    unittest.main()
