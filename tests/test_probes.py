"""The bias probes: what is changed and what is not, the table's effects, and what the controls must show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made
from rooms import ROOT, room

FOLDER = os.path.join(str(ROOT), "evals", "probes")
room("agreement")
build = made.module(os.path.join(FOLDER, "build.py"), "probes_build")
tables = made.module(os.path.join(FOLDER, "tables.py"), "probes_tables")

BASES: list[dict[str, Any]] = build.read_bases(os.path.join(FOLDER, "bases.jsonl"))
with open(os.path.join(FOLDER, "fixture.jsonl"), encoding="utf-8") as stream:
    ITEMS: list[dict[str, Any]] = [json.loads(line) for line in stream.read().rstrip("\n").split("\n")]
SETTINGS = {"seed": 1, "resamples": 200, "level": 0.95}
LIST_WORDS = {"first", "second", "third"}


def plain_and_changed(item: dict[str, Any]) -> tuple[str, str]:
    a, b = item["answer_a"], item["answer_b"]
    return (b, a) if item["changed"] == "A" else (a, b)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command of the toolkit, from another folder."""
    command = [sys.executable, "-I", *arguments]
    return subprocess.run(command, cwd=tempfile.gettempdir(), capture_output=True, encoding="utf-8", timeout=120)


class Pairs(unittest.TestCase):
    def test_the_fixture_is_what_the_base_answers_give(self) -> None:
        done = run(os.path.join(FOLDER, "build.py"), "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("96 pairs, as bases.jsonl gives them", done.stdout)

    def test_eight_probes_have_the_same_twelve_base_answers(self) -> None:
        self.assertEqual(list(tables.PROBES), list(build.PROBES))
        for probe in build.PROBES:
            clusters = [item["cluster"] for item in ITEMS if item["probe"] == probe]
            self.assertEqual(clusters, [base["base_id"] for base in BASES], probe)
        self.assertEqual((len(build.PROBES), len(BASES)), (8, 12))

    def test_only_padding_changes_the_length(self) -> None:
        for item in ITEMS:
            plain, changed = plain_and_changed(item)
            with self.subTest(item["item_id"]):
                if item["probe"] == "padding":
                    self.assertTrue(1.7 <= len(changed) / len(plain) <= 2.3)
                else:
                    self.assertEqual(len(changed), len(plain))

    def test_the_same_answer_twice_is_the_same_text_and_nothing_else_is(self) -> None:
        for item in ITEMS:
            same = item["answer_a"] == item["answer_b"]
            self.assertEqual(same, item["probe"] == "identical", item["item_id"])
            self.assertEqual(item["changed"] is None, same, item["item_id"])

    def test_the_change_stands_on_each_side_equally_often(self) -> None:
        for probe in [name for name in build.PROBES if name != "identical"]:
            sides = [item["changed"] for item in ITEMS if item["probe"] == probe]
            self.assertEqual((sides.count("A"), sides.count("B")), (6, 6), probe)

    def test_gold_is_equal_or_the_answer_without_the_change(self) -> None:
        for item in ITEMS:
            other = {"A": "B", "B": "A"}.get(item["changed"], "equal")
            wanted = "equal" if build.PROBES[item["probe"]] == "equal" else other
            self.assertEqual(item["gold"], wanted, item["item_id"])

    def test_but_for_the_one_passage_both_answers_are_the_base_answer(self) -> None:
        for item in ITEMS:
            base = next(base for base in BASES if base["base_id"] == item["cluster"])
            for text, key in zip(plain_and_changed(item), ("neutral", "loaded")):
                if item["probe"] in build.PASSAGES:
                    passage = base[item["probe"]][key]
                    self.assertEqual(text.count(passage), 1, item["item_id"])
                    text = text.replace(passage, "").strip()
                    if item["probe"] == "manners" and key == "loaded":
                        self.assertNotIn(base["right"], text)
                        text = text.replace(base["wrong"], base["right"])
                elif item["probe"] != "identical" and key == "loaded":
                    continue
                self.assertEqual(text, base["answer"], item["item_id"])

    def test_markdown_keeps_every_word_but_those_that_count_the_list(self) -> None:
        for base in BASES:
            plain = [word for word in words(base["answer"]) if word not in LIST_WORDS]
            marked = [word for word in words(re.sub(r"(?m)^\d\. ", "", base["marked"])) if word not in LIST_WORDS]
            self.assertEqual(marked, plain, base["base_id"])
            self.assertRegex(base["marked"], r"(?m)^(?:- |1\. )")

    def test_padding_brings_no_figure_of_its_own(self) -> None:
        for base in BASES:
            self.assertNotRegex(base["padding"], r"\d", base["base_id"])

    def test_the_planted_errors_that_can_be_computed_are_errors(self) -> None:
        by_id = {base["base_id"]: base for base in BASES}
        minutes = 14 * 60 + 35 + 2 * 60 + 50
        gap = round(1000 * (1.05**2 - 1.1), 2)
        sums = [a + b for a in range(1, 7) for b in range(1, 7)]
        right = {
            "base-02": f"{minutes // 60}:{minutes % 60:02d}",
            "base-04": str(list(dict.fromkeys([3, 1, 3, 2]))),
            "base-07": f"only {gap:.2f} euros",
            "base-09": f"68 are {round((68 - 32) * 5 / 9)}",
            "base-12": {6: "one in six"}[len(sums) // sums.count(7)],
        }
        for base_id, text in right.items():
            self.assertIn(text, by_id[base_id]["right"])
            self.assertNotIn(text, by_id[base_id]["wrong"])


class Refusals(unittest.TestCase):
    def refused(self, base: dict[str, Any]) -> str:
        with self.assertRaises(build.BaseError) as caught:
            build.parse_base(json.dumps(base), "bases.jsonl:1")
        return str(caught.exception)

    def test_a_loaded_passage_of_another_length_is_refused(self) -> None:
        for key in build.PASSAGES:
            longer = {**BASES[0], key: {**BASES[0][key], "loaded": BASES[0][key]["loaded"] + "!"}}
            self.assertIn(f"bases.jsonl:1: field {key!r}: expected another text of", self.refused(longer))

    def test_a_missing_text_and_an_error_that_is_not_in_the_answer_are_refused(self) -> None:
        self.assertIn("field 'padding'", self.refused({**BASES[0], "padding": ""}))
        elsewhere = {**BASES[0], "right": "x" * 5, "wrong": "y" * 5}
        self.assertIn("stands once in the answer", self.refused(elsewhere))


def pair(probe: str, number: int, changed: str | None) -> dict[str, Any]:
    return {"item_id": f"{probe}-{number}", "cluster": f"b{number}", "probe": probe, "changed": changed}


def row(item: dict[str, Any], original: str, swapped: str, repeat: int = 1) -> dict[str, Any]:
    said = {"original": {"choice": original}, "swapped": {"choice": swapped}}
    return {"arm": "j", "item_id": item["item_id"], "repeat": repeat, "decision": "-", "tool_arguments": said}


def shown(items: list[dict[str, Any]], rows: list[dict[str, Any]], probe: str) -> Any:
    return tables.tables(items, rows, {}, SETTINGS)["figures"]["probes"][probe]["j"]


class Effects(unittest.TestCase):
    def test_each_combination_of_choices_counts_as_defined(self) -> None:
        cases = [
            ("A", "A", "B", 1.0, "changed"),
            ("B", "A", "B", -1.0, "plain"),
            ("A", "A", "A", 0.0, "mixed"),
            ("A", "A", "equal", 0.5, "mixed"),
            ("B", "equal", "A", 0.5, "mixed"),
            ("A", "equal", "equal", 0.0, "equal"),
        ]
        for changed, original, swapped, effect, kind in cases:
            with self.subTest(changed=changed, original=original, swapped=swapped):
                items = [pair("padding", n, changed) for n in range(3)]
                found = shown(items, [row(item, original, swapped) for item in items], "padding")
                self.assertEqual(found["effect"], effect)
                self.assertEqual(found["counts"][kind], 3)

    def test_for_the_same_answer_twice_the_effect_is_the_lean_to_the_first(self) -> None:
        items = [pair("identical", n, None) for n in range(12)]
        for choices, effect in ((("A", "A"), 1.0), (("B", "B"), -1.0), (("A", "B"), 0.0), (("equal", "equal"), 0.0)):
            found = shown(items, [row(item, *choices) for item in items], "identical")
            self.assertEqual(found["effect"], effect, choices)

    def test_an_invalid_order_takes_the_pair_out_of_the_effect_and_is_counted(self) -> None:
        items = [pair("author", n, "A") for n in range(3)]
        rows = [row(items[0], "A", "B"), row(items[1], "A", "B"), row(items[2], "A", "invalid")]
        found = shown(items, rows, "author")
        self.assertEqual((found["effect"], found["bases"], found["counts"]["invalid"]), (1.0, 2, 1))

    def test_without_a_valid_reply_there_is_no_effect_but_a_reason(self) -> None:
        items = [pair("author", 1, "A")]
        found = tables.tables(items, [row(items[0], "invalid", "A")], {}, SETTINGS)
        figure = found["figures"]["probes"]["author"]["j"]
        self.assertEqual((figure["effect"], figure["finding"], figure["p"]), (None, None, None))
        self.assertIsNotNone(figure["reason"])
        self.assertEqual(found["sections"][0]["rows"][0][-1], "no valid reply")

    def test_repeats_are_averaged_within_a_pair(self) -> None:
        items = [pair("markdown", n, "A") for n in range(2)]
        rows = [row(item, "A", "B", 1) for item in items] + [row(items[0], "B", "A", 2)]
        self.assertEqual(shown(items, rows, "markdown")["effect"], 0.5)

    def test_nine_base_answers_that_move_are_put_into_words_and_eight_are_not(self) -> None:
        items = [pair(probe, n, "A") for probe in tables.PROBES if probe != "identical" for n in range(12)]
        items += [pair("identical", n, None) for n in range(12)]
        for moved, finding in ((8, "neither"), (9, "above")):
            rows = [
                row(item, *(("A", "B") if item["probe"] == "padding" and n < moved else ("equal", "equal")))
                for probe in tables.PROBES
                for n, item in enumerate(item for item in items if item["probe"] == probe)
            ]
            self.assertEqual(shown(items, rows, "padding")["finding"], finding, moved)
            self.assertEqual(shown(items, rows, "author")["finding"], "neither")

    def test_every_probe_has_its_own_words_for_every_finding(self) -> None:
        texts = [text for probe in tables.PROBES.values() for text in probe]
        self.assertEqual(len(set(texts)), 4 * len(tables.PROBES))


class Controls(unittest.TestCase):
    figures: Any
    printed: str
    errors: str

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as out:
            done = run(os.path.join(str(ROOT), "run_eval.py"), FOLDER, "--demo", "--out", out)
            if done.returncode:
                raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
            cls.printed, cls.errors = done.stdout, done.stderr
            found = [os.path.join(top, "summary.json") for top, _, names in os.walk(out) if "summary.json" in names]
            with open(found[0], encoding="utf-8") as stream:
                cls.figures = json.load(stream)["tables"]["figures"]["probes"]

    def findings(self, arm: str) -> dict[str, tuple[float, str]]:
        return {probe: (by_arm[arm]["effect"], by_arm[arm]["finding"]) for probe, by_arm in self.figures.items()}

    def test_the_longer_answer_lights_up_on_padding_and_nothing_else(self) -> None:
        wanted = dict.fromkeys(build.PROBES, (0.0, "neither"))
        self.assertEqual(self.findings("control-longer"), {**wanted, "padding": (1.0, "above")})

    def test_the_first_answer_lights_up_on_the_same_text_twice_and_nothing_else(self) -> None:
        wanted = dict.fromkeys(build.PROBES, (0.0, "neither"))
        self.assertEqual(self.findings("control-first"), {**wanted, "identical": (1.0, "above")})

    def test_a_coin_lights_up_nowhere(self) -> None:
        self.assertEqual({finding for _, finding in self.findings("control-random").values()}, {"neither"})

    def test_the_table_has_one_row_per_probe_and_judge_and_says_what_it_means(self) -> None:
        row = re.compile(rf"(?:{'|'.join(build.PROBES)}) .*control-")
        rows = [line for line in self.printed.split("\n") if row.match(line)]
        self.assertEqual(len(rows), 24)
        longer = next(line for line in rows if line.startswith("padding") and "control-longer" in line)
        self.assertIn("REWARDS length without content", longer)

    def test_equal_answers_that_are_meant_so_raise_no_warning(self) -> None:
        self.assertNotIn("same text", self.errors)


if __name__ == "__main__":
    unittest.main()
