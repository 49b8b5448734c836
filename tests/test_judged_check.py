"""Whether a judged file's summary is that of its items: files as made are whole, every change is found and shown."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from rooms import ROOT, room

page_judged = room("page_judged")
page_judged_tables = room("page_judged_tables")
page_source = room("page_source")
judged_check = room("judged_check")
evidence = room("evidence")
EXAMPLES = [ROOT / "examples" / f"results-{side}.json" for side in "ab"]
PANEL = ("control-longer", "control-first", "control-random")


@functools.cache
def folder_of_files() -> Path:
    """A folder that is gone with the tests of this file."""
    temporary = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(temporary.cleanup)
    return Path(temporary.name)


class MadeFiles(unittest.TestCase):
    """Graded and compared files of controls, made once for all classes."""

    folder: ClassVar[Path]
    files: ClassVar[dict[str, Any]] = {}

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = folder_of_files()
        if not MadeFiles.files:
            MadeFiles.files.update(cls.all_made())

    @classmethod
    def all_made(cls) -> dict[str, Any]:
        third = json.loads(EXAMPLES[1].read_text(encoding="utf-8"))
        third["run"]["model"] = "third"
        for number, item in enumerate(third["results"]):
            item["answer"] = f"{item['answer']} And more." if number % 2 else "No."
        Path(cls.folder, "third.json").write_text(json.dumps(third), encoding="utf-8")
        two = ("--results-a", str(EXAMPLES[0]), "--results-b", str(EXAMPLES[1]))
        grade, compare = ("grade", "--results", str(EXAMPLES[0])), ("compare", *two)
        also = (*compare, "--also", "third.json")
        return {
            f"{name}-{len(judges)}": cls.made(f"{name}-{len(judges)}.json", words, judges)
            for name, words in (("grade", grade), ("compare", compare), ("three", also))
            for judges in (PANEL[:1], PANEL)
        }

    @classmethod
    def made(cls, name: str, words: tuple[str, ...], judges: tuple[str, ...]) -> Any:
        given = [part for judge in judges for part in ("--judge-model", judge)]
        command = [sys.executable, "-I", str(ROOT / "judge.py"), *words, *given, "--out", name, "--bootstrap", "50"]
        subprocess.run([*command, "--quiet"], cwd=cls.folder, check=True, capture_output=True)
        return json.loads(Path(cls.folder, name).read_text(encoding="utf-8"))

    def figures(self, data: Any) -> list[str]:
        return [one.figure for one in judged_check.contradictions(data)]

    def report(self, data: Any, *words: str, code: int = 0) -> tuple[str, str]:
        """(stdout, stderr) of report.py on a file that holds `data`."""
        Path(self.folder, "x.json").write_text(json.dumps(data), encoding="utf-8")
        command = [sys.executable, "-I", str(ROOT / "report.py"), "x.json", *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


class Contradictions(MadeFiles):
    def test_files_as_they_were_made_have_none(self) -> None:
        for name, data in self.files.items():
            with self.subTest(name):
                self.assertEqual([], judged_check.contradictions(data))

    def test_a_verdict_that_was_changed_after_judging_is_found(self) -> None:
        for name in ("grade-1", "grade-3"):
            data = copy.deepcopy(self.files[name])
            for item in data["results"]:
                item["judge"] = {"score": 1, "why": "x"}
            with self.subTest(name):
                found = self.figures(data)
                label = "panel: " if name == "grade-3" else ""
                self.assertIn(f"{label}judge_mean", found)
                self.assertIn(f"{label}scores.1", found)
        data = copy.deepcopy(self.files["grade-3"])
        data["results"][0]["judges"]["control-first"]["score"] = 1
        self.assertIn("control-first: judge_mean", self.figures(data))

    def test_a_reply_or_decision_that_was_changed_after_judging_is_found(self) -> None:
        for name in ("compare-1", "compare-3", "three-1", "three-3"):
            data = copy.deepcopy(self.files[name])
            pair = next(pair for pair in data["pairs"] if pair["decision"] == "A")
            pair["decision"] = "B"
            with self.subTest(name):
                self.assertIn(f"{pair['id']}: decision", self.figures(data))
        data = copy.deepcopy(self.files["compare-1"])
        for pair in data["pairs"]:
            pair["original"]["choice"], pair["swapped"]["choice"] = "A", "B"
        self.assertLessEqual({"wins_a", "wins_b", "win_rate.value"}, set(self.figures(data)))

    def test_every_figure_that_is_counted_again_is_compared(self) -> None:
        changes: list[tuple[str, str, Callable[[Any], Any]]] = [
            ("grade-1", "judge_mean", lambda s: s.update(judge_mean=4.9)),
            ("grade-1", "judge_mean_interval.value", lambda s: s["judge_mean_interval"].update(value=4.9)),
            ("grade-1", "graded", lambda s: s.update(graded=3)),
            ("grade-1", "scores.5", lambda s: s["scores"].update({"5": 99})),
            ("grade-1", "mean_words_by_score.5", lambda s: s["mean_words_by_score"].update({"5": 1.0})),
            ("grade-1", "length.spearman", lambda s: s["length"].update(spearman=-1.0)),
            ("grade-1", "by_category.made up", lambda s: s["by_category"].update({"made up": 5.0})),
            ("grade-1", "invalid + failed + missing", lambda s: s.update(invalid=7)),
            ("grade-3", "panel: judge_mean", lambda s: s.update(judge_mean=4.9)),
            ("compare-1", "wins_a", lambda s: s.update(wins_a=s["wins_a"] + 1)),
            ("compare-1", "win_rate.value", lambda s: s["win_rate"].update(value=0.01)),
            ("compare-3", "panel: wins_b", lambda s: s.update(wins_b=99)),
            ("three-1", "wins_b", lambda s: s.update(wins_b=99)),
        ]
        for name, figure, change in changes:
            with self.subTest(name, figure=figure):
                data = copy.deepcopy(self.files[name])
                change(data["judge"])
                self.assertEqual([figure], self.figures(data))
        data = copy.deepcopy(self.files["three-1"])
        pairing = data["pairings"][2]
        pairing["judges"][PANEL[0]]["order_flips"] = 99
        self.assertEqual([f"{pairing['a']} / {pairing['b']}: order_flips"], self.figures(data))

    def test_what_a_summary_leaves_out_is_no_contradiction(self) -> None:
        for name, data in self.files.items():
            for key in list(data["judge"]):
                if key not in ("judge_model", "judges"):
                    less = {**data, "judge": {k: v for k, v in data["judge"].items() if k != key}}
                    self.assertEqual([], self.figures(less), f"{name} without {key}")

    def test_decisions_alone_are_held_against_wins(self) -> None:
        data = copy.deepcopy(self.files["compare-1"])
        for pair in data["pairs"]:
            pair.pop("original"), pair.pop("swapped")
        self.assertEqual([], self.figures(data))
        for pair in data["pairs"]:
            pair["decision"] = "A"
        self.assertIn("wins_a", self.figures(data))


class Shown(MadeFiles):
    def test_page_and_tables_say_it_first_and_stderr_names_the_file(self) -> None:
        data = copy.deepcopy(self.files["grade-1"])
        data["judge"]["judge_mean"] = 4.9
        text, said = self.report(data, "--format", "markdown")
        self.assertTrue(text.startswith(f"## {judged_check.TITLE}\n"), text[:200])
        self.assertRegex(text, r"\| judge_mean \| 4\.9 \| [\d.]+ \|")
        self.assertRegex(said, r"report: warning: x\.json: judge_mean: summary 4\.9, items [\d.]+\n")
        text, _ = self.report(data, "--format", "csv")
        self.assertIn(f"{judged_check.TITLE},judge_mean,the summary says,4.9", text)
        _, said = self.report(data, "--format", "json")
        self.assertIn("x.json: judge_mean: summary 4.9", said)
        self.report(data, "--overwrite")
        page = Path(self.folder, "x.html").read_text(encoding="utf-8")
        self.assertIn(f"{judged_check.TITLE}.</p>", page)
        compared = copy.deepcopy(self.files["compare-1"])
        compared["judge"]["wins_a"] = 99
        self.assertIn(judged_check.TITLE, page_judged.page_of([compared]).decode("utf-8"))

    def test_a_whole_file_is_shown_without_a_word_of_it(self) -> None:
        for name in ("grade-3", "three-3"):
            data = self.files[name]
            text, said = self.report(data, "--format", "markdown")
            self.assertNotIn(judged_check.TITLE, text + page_judged.page_of([data]).decode("utf-8"), name)
            self.assertEqual("", said)

    def test_what_could_draw_is_marked_for_people_and_whole_for_programs(self) -> None:
        data = copy.deepcopy(self.files["grade-1"])
        for key in ("by_category", "by_category_interval"):
            groups = data["judge"][key]
            groups["c\x1b[31m\u202e\x9b"] = groups.pop(next(iter(groups)))
        first = next(iter(self.files["grade-1"]["judge"]["by_category"]))
        for item in data["results"]:
            item["category"] = "c\x1b[31m\u202e\x9b" if item["category"] == first else item["category"]
        text, _ = self.report(data, "--format", "markdown")
        self.assertIn("c<U+001B>[31m<U+202E><U+009B>", text)
        self.report(data, "--format", "markdown", "--out", "x.md", "--overwrite")
        self.assertNotRegex(Path(self.folder, "x.md").read_text(encoding="utf-8"), "[\x1b\u202e\x9b]")
        text, _ = self.report(data, "--format", "json")
        self.assertNotRegex(text, "[\x1b\u202e\x9b]")
        self.assertEqual(data["judge"], json.loads(text))
        text, _ = self.report(data, "--format", "csv")
        self.assertIn("c\x1b[31m\u202e\x9b", text)

    def test_half_a_sign_in_a_category_hinders_no_form(self) -> None:
        data = copy.deepcopy(self.files["grade-1"])
        for item in data["results"]:
            item["category"] = "c\ud800"
        for form in ("html", "markdown", "csv", "json"):
            self.report(data, "--format", form, "--overwrite")


class Fields(MadeFiles):
    """A field that cannot be shown is named."""

    def refused(self, data: Any) -> str:
        Path(self.folder, "x.json").write_text(json.dumps(data), encoding="utf-8")
        with self.assertRaises(evidence.EvidenceError) as caught:
            page_source.read_judged([str(Path(self.folder, "x.json"))])
        return str(caught.exception)

    def test_each_field_of_another_kind_is_named_with_its_file(self) -> None:
        cases: list[tuple[str, str, Callable[[Any], Any]]] = [
            ("grade-1", "'judge.judge_mean': expected a number or null", lambda d: d["judge"].update(judge_mean="x")),
            ("grade-1", "'judge.scores.5': expected a number", lambda d: d["judge"]["scores"].update({"5": None})),
            ("grade-1", "'judge.by_category': expected an object", lambda d: d["judge"].update(by_category=5)),
            (
                "grade-1",
                "'judge.judge_mean_interval.low': expected a number or null, got a text",
                lambda d: d["judge"]["judge_mean_interval"].update(low="x"),
            ),
            ("grade-1", "'judge.length.high' is missing", lambda d: d["judge"]["length"].pop("high")),
            (
                "grade-3",
                "'judge.judges.control-first.graded': expected a number or null",
                lambda d: d["judge"]["judges"]["control-first"].update(graded=[]),
            ),
            ("grade-1", "'judge.score': expected a whole number", lambda d: d["results"][0]["judge"].update(score=9)),
            ("compare-1", "'original.choice': expected a text", lambda d: d["pairs"][0]["original"].update(choice=[])),
            ("three-1", "'pairings[1].judges': expected an object", lambda d: d["pairings"][1].update(judges=[])),
            ("three-1", "'pairings[1].b' is missing", lambda d: d["pairings"][1].pop("b")),
            ("three-3", "'strengths.control-first': expected", lambda d: d["strengths"].update({PANEL[1]: 5})),
        ]
        for name, expected, change in cases:
            with self.subTest(expected):
                data = copy.deepcopy(self.files[name])
                change(data)
                self.assertIn(f"field {expected}", self.refused(data))
                self.assertIn("x.json: ", self.refused(data))

    def test_peoples_labels_are_checked_too(self) -> None:
        figure = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 3}
        human: dict[str, Any] = {"mode": "human-agreement", "judges": {"j": {"exact": figure}}, "cells": []}
        human["disagreements"] = [{"id": "a", "human": 1, "judge": 2}]
        cases: list[tuple[str, dict[str, Any]]] = [
            ("'judges.j.exact.high': expected a number", {"judges": {"j": {"exact": {**figure, "high": "x"}}}}),
            ("'judges.j': expected an object", {"judges": {"j": 5}}),
            ("'cells[0]': expected an object", {"cells": [5]}),
            ("'cells[0].n' is missing", {"cells": [{"human": 1, "judge": 1}]}),
            ("'disagreements[0].judge' is missing", {"disagreements": [{"id": "a", "human": 1}]}),
            ("'disagreements': expected a list", {"disagreements": 5}),
        ]
        for expected, change in cases:
            with self.subTest(expected):
                self.assertIn(f"field {expected}", self.refused({**human, **change}))


if __name__ == "__main__":
    unittest.main()
