"""FORMATS.md: its examples are accepted by the code that reads such files, its tables say what that code requires."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooms import ROOT, room

evidence, fixtures = room("evidence"), room("fixtures")
evaluations = room("evaluation")
imported = room("imported")
label_sources = room("label_sources")
labels = room("labels")
recipe = room("recipe")
results = room("results")

FORMATS = (ROOT / "FORMATS.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(json|jsonl)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PINS = ("fixture_sha256", "recipe_sha256", "checker_sha256", "agreement_sha256", "client_sha256", "runner_sha256")


def section(start: str) -> str:
    """The text under the heading that starts so."""
    found = {title: str(body) for title, body in SECTION.findall(FORMATS)}
    return next(body for title, body in found.items() if title.startswith(start))


def examples(start: str) -> list[Any]:
    """Every example object of a section, strict JSON as the toolkit reads it."""
    texts = [text for _, body in BLOCK.findall(section(start)) for text in body.split("\n") if text]
    return [evidence.parse_json(text.encode("utf-8"), "FORMATS.md") for text in texts]


def fields(start: str, table: int = 0) -> dict[str, str]:
    """field -> what its `required` cell says, from one of a section's tables; 'a, b' in one cell are two fields."""
    tables = re.findall(r"^\| \w+ \| type \| required \|.*?\n\|[-|]+\n((?:\|.*\n)+)", section(start), re.MULTILINE)
    found = {}
    for line in tables[table].split("\n")[:-1]:
        cells = re.split(r" \| ", line.strip("| "))
        found.update(dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[2]))
    return found


def required(start: str) -> list[str]:
    return [name for name, said in fields(start).items() if said.startswith("yes")]


class FormatCase(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def written(self, value: Any) -> str:
        path = self.folder / "file.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return str(path)

    def assert_required(self, example: Any, names: list[str], read: Callable[[Any], Any]) -> None:
        """The example is read whole, and refused, naming the field, without any of the names."""
        read(example)
        for name in names:
            with self.subTest(name):
                less = copy.deepcopy(example)
                place = less
                for part in re.findall(r"\w+(?=\[\]\.)", name):
                    place = place[part][0]
                del place[name.rpartition(".")[2]]
                with self.assertRaises(Exception) as caught:
                    read(less)
                self.assertIsInstance(
                    caught.exception, (evidence.EvidenceError, evaluations.SettingError, labels.LabelError)
                )
                self.assertIn(f"{name.rpartition('.')[2]}", str(caught.exception))


class Pairs(FormatCase):
    def read(self, row: dict[str, Any]) -> Any:
        return fixtures.load_items(evidence.row_bytes(row), "fixture.jsonl")[0]

    def test_the_example_is_a_fixture_and_every_required_field_is_required(self) -> None:
        self.assert_required(examples("Labelled")[0], required("Labelled"), self.read)

    def test_fields_of_the_wrong_kind_are_refused_where_the_table_gives_them_a_kind(self) -> None:
        row = examples("Labelled")[0]
        for name in ("cluster", "category", "fault", "model_a", "model_b", "votes"):
            self.assertIn(name, fields("Labelled"))
            with self.subTest(name), self.assertRaises(evidence.EvidenceError):
                self.read({**row, name: 3})

    def test_the_short_form_is_labelled_or_made_into_an_evaluation(self) -> None:
        path = self.folder / "pairs.jsonl"
        path.write_bytes(evidence.row_bytes(examples("Labelled")[1]))
        (row,) = label_sources.from_pairs(str(path)).rows.values()
        self.assertEqual([], fixtures.row_problems(row))
        self.assertEqual(("q1", "test", "B"), (row["item_id"], row["split"], row["gold"]))


class Settings(FormatCase):
    def test_the_smallest_settings_are_accepted_and_every_required_field_is_required(self) -> None:
        smallest = examples("Settings")[1]
        names = [name for name in required("Settings") if not name.endswith("_sha256") and name != "reasoning_effort"]
        self.assert_required(smallest, names, lambda value: evaluations.check_config(value, "eval.json"))
        self.assertEqual(set(smallest), {*names, "reasoning_effort"})

    def test_the_recipe_needs_reasoning_effort(self) -> None:
        smallest, item = examples("Settings")[1], examples("Labelled")[0]
        recipe.request(item, smallest)
        del smallest["reasoning_effort"]
        self.assertRaises(KeyError, recipe.request, item, smallest)

    def test_a_folder_of_the_two_examples_can_be_pinned(self) -> None:
        files = {name: str(ROOT / f"{name}.py") for name in ("recipe", "check")}
        pins = {**dict.fromkeys(PINS, ""), "engine_sha256": {}}
        self.assertLessEqual(set(pins), set(fields("Settings")))
        value = {**examples("Settings")[1], "files": files, **pins}
        (self.folder / "eval.json").write_text(json.dumps(value), encoding="utf-8")
        (self.folder / "fixture.jsonl").write_bytes(evidence.row_bytes(examples("Labelled")[0]))
        command = [sys.executable, "-I", str(ROOT / "run_eval.py"), str(self.folder), "--freeze"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_arm_is_accepted_and_all_keys_of_an_arm_are_listed(self) -> None:
        evaluations.check_arm("mine", examples("Settings")[0], "eval.json")
        self.assertEqual([], room("providers").arm_problems("mine", examples("Settings")[0]))
        self.assertEqual(set(fields("Settings", 1)) - {"length"}, set(evaluations.ARM_KEYS) - {"control"})

    def test_every_setting_of_the_evaluations_that_come_with_the_toolkit_is_listed(self) -> None:
        own = {"dataset", "dataset_split", "instructions"}  # of one recipe, which says what they are
        for path in [ROOT / "eval.json", *sorted((ROOT / "evals").glob("*/eval.json"))]:
            with self.subTest(path.parent.name):
                self.assertEqual(set(evidence.read_object(str(path))) - set(fields("Settings")) - own, set())


class RecordedReplies(FormatCase):
    def test_each_example_is_read_as_a_verdict_in_its_output_mode(self) -> None:
        for line, mode, choice in zip(examples("Recorded"), ("tool", "text"), ("B", "A"), strict=True):
            imported.check_line(line, "FORMATS.md")
            entry = imported.entry_of(line, "big", recipe, mode)
            self.assertEqual((entry["evidence"]["state"], entry["said"]["choice"]), ("ok", choice))

    def test_what_is_required_is_required(self) -> None:
        self.assert_required(examples("Recorded")[0], required("Recorded"), lambda line: imported.check_line(line, "f"))
        for line in examples("Recorded"):
            less = {key: value for key, value in line.items() if key not in ("content", "tool_calls", "refusal")}
            self.assertRaises(evidence.EvidenceError, imported.check_line, less, "f")

    def test_every_text_that_is_checked_is_listed(self) -> None:
        self.assertLessEqual(set(imported.TEXTS), set(fields("Recorded")))


class FilesOfJudge(FormatCase):
    def test_a_results_file(self) -> None:
        (example,) = examples("Results")
        self.assert_required(
            example, required("Results"), lambda value: results.read_results(self.written(value), results.COMPARE)
        )
        self.assert_required(
            example, ["results[].prompt"], lambda value: results.read_results(self.written(value), results.GRADE)
        )
        listed = {name.rpartition(".")[2] for name in fields("Results")}
        self.assertLessEqual({*results.RUN_FIELDS, *results.ITEM_TEXTS}, listed)

    def test_a_tasks_file(self) -> None:
        (example,) = examples("Tasks")
        self.assert_required(example, required("Tasks"), lambda value: results.read_tasks(self.written(value)))
        for kind in results.CHECK_KINDS:
            self.assertIn(f'{{"type": "{kind}"', section("Tasks"))

    def test_judged_and_compared_files_are_read_by_judge_and_page(self) -> None:
        for start, name in (("Judged", "results[].judge"), ("Compared", "pairs[].decision")):
            with self.subTest(start):
                (example,) = examples(start)
                self.assert_required(example, ["judge", name], lambda value: results.read_judged(self.written(value)))
                (data,) = room("page_source").read_judged([self.written(example)])
                self.assertIn(b"</html>", room("page_judged").page_of([data]))
                self.assertEqual(1, len(label_sources.from_judged(self.written(example)).tasks))

    def test_the_labels_are_read_and_every_field_of_one_is_listed(self) -> None:
        for example in examples("Labels"):
            self.assert_required(example, required("Labels"), lambda row: labels.parse_label(row, "f"))
        self.assertEqual(set(labels.Label._fields), set(fields("Labels")))


class Folders(FormatCase):
    def test_the_files_of_a_run_and_of_a_receipt_are_those_that_are_made(self) -> None:
        run, receipt = self.made()
        listed = set(re.findall(r"`([\w.]+/?)`", "".join(re.findall(r"^\| (.*?) \|", section("Run"), re.MULTILINE))))
        self.assertEqual(run, listed - {"journal.jsonl", "lock"})
        listed = set(
            re.findall(r"`([\w.]+/?)`", "".join(re.findall(r"^\| (.*?) \|", section("Receipt"), re.MULTILINE)))
        )
        self.assertEqual(receipt, listed)

    def made(self) -> tuple[set[str], set[str]]:
        """Names in the folder of a demo of four pairs, and in its receipt."""
        pairs = self.folder / "pairs.jsonl"
        pairs.write_bytes(
            b"".join(evidence.row_bytes({**examples("Labelled")[1], "id": f"q{number}"}) for number in range(4))
        )
        self.command("judge.py", "human", "--pairs", "pairs.jsonl", "--make-fixture", "mine")
        self.command("run_eval.py", "mine", "--demo", "--bootstrap", "100", "--out", "runs")
        (run,) = (self.folder / "runs" / "mine").iterdir()
        self.command("run_eval.py", "mine", "--receipt", str(run), "--out", "receipt")
        return names_in(run), names_in(self.folder / "receipt")

    def command(self, script: str, *words: str) -> None:
        command = [sys.executable, "-I", str(ROOT / script), *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


def names_in(folder: Path) -> set[str]:
    return {entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir()}


class Words(unittest.TestCase):
    def test_every_link_of_the_list_leads_to_a_heading(self) -> None:
        headings = re.findall(r"^## (.*)$", FORMATS, re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}
        self.assertEqual(set(re.findall(r"\]\(#([^)]+)\)", FORMATS)), anchors)

    def test_the_commands_have_options_that_exist(self) -> None:
        judge = room("judge")
        parser = judge.build_parser("human")
        parser.parse_args(["human", "--pairs", "labelled.jsonl", "--make-fixture", "my-eval"])
        self.assertIn("python3 -I judge.py human --pairs labelled.jsonl --make-fixture my-eval", FORMATS)


if __name__ == "__main__":
    unittest.main()
