"""The `human` command as people run it: in a real terminal, through a pipe, its result, and fixtures made of it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from parallel import beside
from rooms import ROOT, room

evidence = room("evidence")
human = room("human")
label_terminal = room("label_terminal")
label_results = room("label_results")
label_sources = room("label_sources")
label_fixture = room("label_fixture")
labels = room("labels")
agreement = room("agreement")

try:
    import pty
except ImportError:  # no pseudo-terminals on this system
    pty = None  # type: ignore[assignment]

COMMAND = [sys.executable, "-I", str(ROOT / "judge.py"), "human"]
ENVIRONMENT = {**os.environ, "LC_ALL": "C", "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
ITEM = '{"id": "a", "prompt": "", "answer": ""'
RUN: dict[str, Any] = {
    **dict.fromkeys(("quant", "engine", "engine_version", "settings", "task_set", "task_set_version"), "x"),
    "model": "m1",
    "checks_passed": 0,
    "tasks": 0,
}


def graded(number: int, score: int | None, **more: Any) -> dict[str, Any]:
    item = {"id": f"task-{number:02d}", "category": ("x", "y")[number % 2], "prompt": f"Prompt {number}"}
    item |= {"rubric": "The rubric.", "reference": "", "answer": f"Answer {number}."}
    return {**item, "judge": None if score is None else {"score": score, "why": f"SECRET {number}"}, **more}


def pair(number: int, **more: Any) -> dict[str, Any]:
    row = {"item_id": f"pair-{number:02d}", "text": f"Question {number}?", "answer_a": f"own A {number}"}
    return {**row, "answer_b": f"own B {number}, longer", "category": "x", **more}


class CommandCase(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.judged([graded(number, number % 5 + 1) for number in range(10)])

    def judged(self, items: list[dict[str, Any]], **head: Any) -> None:
        value = {"run": RUN, "judge": {"mode": "grade", "judge_model": "j1", **head}, "results": items}
        (self.folder / "judged.json").write_text(json.dumps(value), encoding="utf-8")

    def pairs(self, rows: list[dict[str, Any]], name: str = "pairs.jsonl") -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def run_with(self, keys: str, *flags: str, code: int = 0) -> tuple[str, str]:
        """Run with one command a line on standard input; returns stdout and stderr."""
        typed = "".join(f"{key}\n" for key in keys.split("|"))
        done = subprocess.run(
            [*COMMAND, *flags], cwd=self.folder, env=ENVIRONMENT, input=typed, capture_output=True, encoding="utf-8"
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def result_of(self, keys: str, *flags: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run_with(keys, *flags, "--format", "json")[0])
        return found

    def lines(self, name: str = "judged.labels.jsonl") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text(encoding="utf-8").split("\n") if line]


class WhatIsOnlyRead(CommandCase):
    def test_a_result_changes_no_byte_of_the_labels(self) -> None:
        self.run_with("3|4|q", "--sample", "4")
        path = self.folder / "judged.labels.jsonl"
        whole = path.read_bytes()
        for content in (whole + b'{"time":"2026', whole[:-1]):
            with self.subTest(content[-9:]):
                path.write_bytes(content)
                self.run_with("", "--result", "--format", "json")
                self.assertEqual(path.read_bytes(), content)

    def test_labels_in_a_file_of_something_else_are_refused(self) -> None:
        path = self.folder / "judged.json"
        before = path.read_bytes()
        for flags in ((), ("--result",)):
            self.run_with("3", "--labels", "judged.json", *flags, code=3)
            self.assertEqual(path.read_bytes(), before)

    def test_a_labbook_that_is_also_read_is_refused_before_anything_is_asked(self) -> None:
        for name in ("judged.json", "judged.labels.jsonl", "no/dir/book.jsonl"):
            with self.subTest(name):
                said = self.run_with("3", "--labbook", name, code=3)[1]
                self.assertIn("--labbook: expected", said)
                self.assertNotIn("Item 1", said)

    @unittest.skipIf(os.name == "nt", "needs a POSIX shell")
    def test_closed_streams_are_empty_ones(self) -> None:
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                command = ["sh", "-c", f'"$@" {closed}', "sh", *COMMAND, "--sample", "2"]
                done = subprocess.run(
                    command, cwd=self.folder, env=ENVIRONMENT, input="3\n4\n", capture_output=True, encoding="utf-8"
                )
                self.assertEqual((done.returncode, "Traceback" in done.stderr), (0, False), done.stderr)


class ThroughAPipe(CommandCase):
    def test_scores_are_taken_one_a_line_and_the_published_fields_are_there(self) -> None:
        found = self.result_of("3|4|s|2|5|1|3|3", "--sample", "8", "--labbook", "book.jsonl")
        for field in ("lab", "mode", "judge_model", "model", "scored", "exact_agreement", "within_one", "mean_human"):
            self.assertIn(field, found)
        self.assertEqual((found["mode"], found["judge_model"], found["model"]), ("human-agreement", "j1", "m1"))
        lines = {line["item"]: line["label"] for line in self.lines() if line["label"] is not None}
        judge = {f"task-{number:02d}": number % 5 + 1 for number in range(10)}
        self.assertEqual(found["scored"], 7)
        exact = sum(judge[item] == label for item, label in lines.items()) / 7
        close = sum(abs(judge[item] - label) <= 1 for item, label in lines.items()) / 7
        self.assertEqual((found["exact_agreement"], found["within_one"]), (round(exact, 2), round(close, 2)))
        self.assertEqual(found["mean_human"], round(sum(lines.values()) / 7, 2))
        self.assertEqual(found["mean_judge"], round(sum(judge[item] for item in lines) / 7, 2))
        big = {one["id"]: (one["human"], one["judge"]) for one in found["big_disagreements"]}
        self.assertEqual(big, {i: (x, judge[i]) for i, x in lines.items() if abs(x - judge[i]) >= 2})
        self.assertEqual({one["id"] for one in found["disagreements"]}, {i for i, x in lines.items() if x != judge[i]})
        self.assertAlmostEqual(found["metrics"]["exact"]["value"], exact)
        self.assertLess(found["metrics"]["qwk"]["low"], found["metrics"]["qwk"]["high"])
        (entry,) = [json.loads(line) for line in (self.folder / "book.jsonl").read_text("utf-8").split("\n") if line]
        self.assertEqual(entry["scored"], 7)

    def test_the_judge_is_not_shown_before_the_end(self) -> None:
        out, shown = self.run_with("|".join("33333333"), "--sample", "8")
        self.assertNotIn("SECRET", shown)
        self.assertIn("SECRET", out)

    def test_the_same_command_goes_on_and_asks_only_what_is_open(self) -> None:
        self.run_with("3|4|q", "--sample", "5")
        _, shown = self.run_with("5|5|q", "--sample", "5")
        self.assertIn("Item 3 of 5", shown)
        self.assertNotIn("Item 2 of 5", shown)
        self.assertEqual([line["label"] for line in self.lines()], [3, 4, 5, 5])

    def test_back_and_a_correction_are_a_later_line(self) -> None:
        found = self.result_of("1|p|5|q", "--sample", "3")
        first, second = self.lines()
        self.assertEqual((first["item"], first["label"], second["label"]), (second["item"], 1, 5))
        self.assertEqual((found["scored"], found["revised"]), (1, 1))

    def test_a_comment_goes_with_the_next_answer_or_the_one_given(self) -> None:
        found = self.result_of("c too terse|2|p|c now longer|q", "--sample", "2")
        self.assertEqual([line["comment"] for line in self.lines()], ["too terse", "now longer"])
        self.assertEqual(found["revised"], 0)

    def test_items_without_a_score_of_the_judge_are_not_asked_and_this_is_said(self) -> None:
        self.judged([graded(0, 3), graded(1, None), graded(2, 5)])
        _, shown = self.run_with("3|3", "--sample", "8")
        self.assertIn("1 answers without a score of the judge are not asked", shown)
        self.assertEqual({line["item"] for line in self.lines()}, {"task-00", "task-02"})

    def test_a_look_without_a_label_is_no_error_but_a_result_of_none_is(self) -> None:
        out, shown = self.run_with("q")
        self.assertEqual(("", True), (out, shown.endswith("\nno labels yet in judged.labels.jsonl\n")), shown)
        self.assertNotIn("error", shown)
        self.assertIn("no labels yet in judged.labels.jsonl (1 skipped)", self.run_with("s|q", "--sample", "1")[1])
        self.assertIn("no labels yet", self.run_with("", "--result", code=3)[1])
        self.assertEqual("", self.run_with("q", "--format", "json", code=3)[0])

    def test_without_keys_the_screen_says_that_lines_are_read_and_how(self) -> None:
        shown = self.run_with("abab|q")[1]
        self.assertIn("type one of these, then Enter (one a line) > ", shown)
        self.assertIn("c TEXT comment", shown)
        self.assertNotIn("page", shown)
        self.assertIn("line 'abab' does nothing here", shown)

    def test_a_sample_is_called_random_as_correct_needs_it(self) -> None:
        out = self.run_with("3|3|3|q", "--sample", "4")[0]
        self.assertIn("3 of 10 items: a random sample, in which every item had the same chance", out)
        self.assertIn("over categories and the judge's labels", out)

    def test_no_judged_results_are_an_error(self) -> None:
        self.judged([graded(0, None)])
        self.assertIn("no judged results", self.run_with("q", code=3)[1])

    def test_a_panels_judges_stand_side_by_side(self) -> None:
        self.judged(
            [graded(n, 3, judges={"j1": {"score": 3, "why": ""}, "j2": {"score": 5, "why": ""}}) for n in range(4)]
        )
        found = self.result_of("3|3|3|3")
        self.assertEqual((found["judges"]["j1"]["bias"]["value"], found["judges"]["j2"]["bias"]["value"]), (0, 2))

    def test_several_people_make_a_mean_and_their_agreement(self) -> None:
        for who, keys in (("ana", "1|1|1|1"), ("ben", "2|2|2|2")):
            found = self.result_of(keys, "--annotator", who, "--sample", "4")
        self.assertEqual((found["mean_human"], found["people"]["within1"], found["people"]["exact"]), (1.5, 1.0, 0.0))
        self.assertEqual(set(found["annotators"]), {"ana", "ben"})

    def test_bad_files_are_refused_before_the_first_item(self) -> None:
        cases = {
            '{"run": {}, "results": []}': "field 'judge' is missing",
            '{"run": {}, "judge": {}, "results": [' + ITEM + ', "judge": {"score": 6}}]}': "judge.score",
            "": "is empty",
            "[]": "expected a judged file",
        }
        path = self.folder / "judged.json"
        for text, message in cases.items():
            with self.subTest(message):
                path.write_text(text, encoding="utf-8")
                with self.assertRaises(evidence.EvidenceError) as caught:
                    label_sources.from_judged(str(path))
                self.assertIn(message, str(caught.exception))
        _, shown = self.run_with("3", code=3)
        self.assertIn("judge: error: judged.json: expected a judged file", shown)
        self.assertNotIn("Item 1", shown)

    def test_flags_that_do_not_go_together_are_usage_errors(self) -> None:
        self.run_with("q", "--judged", "a", "--pairs", "b", code=2)
        self.run_with("q", "--make-fixture", "out", code=2)
        self.run_with("q", "--annotator", "a\tb", code=2)
        parser = argparse.ArgumentParser()
        human.add_human(parser.add_subparsers())
        for flags in (("--results-a", "a"), ("--port", "80"), ("--web", "--result"), ("--web", "--make-fixture", "x")):
            with self.subTest(flags):
                self.assertIsNotNone(human.usage_problem(parser.parse_args(["human", *flags])))
        self.assertIsNone(human.usage_problem(parser.parse_args(["human", "--web", "--port", "80"])))

    def test_labels_of_another_file_are_refused_with_a_way_out(self) -> None:
        self.run_with("3|3|3", "--sample", "3", "--labels", "l.jsonl")
        self.judged([graded(number, 3, answer="changed") for number in range(10)])
        _, shown = self.run_with("q", "--labels", "l.jsonl", code=3)
        self.assertIn("was labelled with other texts", shown)
        self.assertIn("hint: keep these labels", shown)

    def test_kill_at_any_moment_keeps_every_answer_given(self) -> None:
        process = subprocess.Popen(
            [*COMMAND, "--sample", "6"],
            cwd=self.folder,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write("3\n4\n")
        process.stdin.flush()
        while "Item 3 of 6" not in process.stderr.readline():
            pass
        process.kill()
        process.communicate()
        self.assertEqual([line["label"] for line in self.lines()], [3, 4])


class Tables(CommandCase):
    """Pairs from a table, under the names and spellings that people's files have."""

    def made(self, text: str, name: str = "pairs.csv") -> tuple[str, str]:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.run_with("", "--pairs", name, "--make-fixture", "out.jsonl")

    def test_a_table_of_labelled_pairs_becomes_a_fixture(self) -> None:
        text = "\ufeffid;question;response_a;response_b;winner;category\r\n"
        text += '7;"Is 91; prime?";Yes;"No,\n7 x 13";model_b;math\r\n8;Peru?;;Lima;tie;\r\n\r\n9;Oslo?;a;b;;\r\n'
        _, shown = self.made(text)
        self.assertIn("2 of 3 pairs: 2 with the gold they came with, 1 without any label left out", shown)
        rows = {row["item_id"]: row for row in self.lines("out.jsonl")}
        self.assertEqual({"7": "B", "8": "equal"}, {name: row["gold"] for name, row in rows.items()})
        self.assertEqual(("Is 91; prime?", "No,\n7 x 13"), (rows["7"]["text"], rows["7"]["answer_b"]))
        self.assertEqual("", rows["8"]["answer_a"])
        self.assertNotIn("category", rows["8"])

    def test_a_table_that_cannot_be_used_is_refused_by_line(self) -> None:
        head = "id,prompt,answer_a,answer_b,gold\n"
        for text, expected in (
            (head + "1,x,y\n", "pairs.csv:2: expected 5 columns, got 3"),
            (head + '1,"x,y,z,A\n', "pairs.csv:2: not a csv file"),
            (head + "1,x,y,z,maybe\n", "pairs.csv:2: field 'gold': expected A, B, equal or null, got 'maybe'"),
            (head + "1,x,y,z,A\n1,x,y,z,B\n", "pairs.csv:3: item_id '1' stands twice"),
            ("id,prompt,answer_a,gold\n1,x,y,A\n", "pairs.csv:2: field 'answer_b' is missing"),
            ("id,prompt,id,gold\n1,x,y,A\n", "pairs.csv:1: column 'id' stands twice"),
            (head, "holds a header line and no rows"),
            ("", "holds a header line and no rows"),
        ):
            with self.subTest(expected):
                (self.folder / "pairs.csv").write_text(text, encoding="utf-8")
                _, shown = self.run_with("", "--pairs", "pairs.csv", "--make-fixture", "out.jsonl", code=3)
                self.assertIn(expected, shown)

    def test_numbers_as_names_and_spellings_of_labels_are_taken_from_json_lines_too(self) -> None:
        lines = [{"id": 7, "prompt": "q", "answer_a": "x", "answer_b": "y", "winner": " A "}]
        self.made("".join(json.dumps(line) + "\n" for line in lines), "pairs.jsonl")
        self.assertEqual([("7", "A")], [(row["item_id"], row["gold"]) for row in self.lines("out.jsonl")])

    def test_a_second_name_of_a_field_counts_only_where_the_file_has_no_other(self) -> None:
        line = {"id": "1", "prompt": "the prompt", "question": "a title", "answer_a": "x", "answer_b": "y", "gold": "A"}
        self.made(json.dumps(line) + "\n", "pairs.jsonl")
        (row,) = self.lines("out.jsonl")
        self.assertEqual(("the prompt", "a title"), (row["text"], row["question"]))
        (self.folder / "out.jsonl").unlink()
        text = "id,prompt,answer_a,answer_b,gold,winner\n1,p,x,y,,model_b\n2,p,x,y,A,model_b\n"
        _, shown = self.made(text)
        self.assertIn("1 of 2 pairs: 1 with the gold they came with, 1 without any label left out", shown)

    def test_a_winner_that_is_a_model_is_no_label(self) -> None:
        line = {"id": "1", "prompt": "p", "answer_a": "x", "answer_b": "y", "winner": "gpt-4"}
        (self.folder / "pairs.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        self.run_with("a", "--pairs", "pairs.jsonl", "--annotator", "ana")

    def test_the_gold_of_votes_is_called_what_it_is(self) -> None:
        def voted(number: int, *votes: str) -> dict[str, Any]:
            given = [{"judge": f"person {place}", "label": vote} for place, vote in enumerate(votes)]
            return {**pair(number), "gold": None, "votes": given}

        lines = [voted(1, "A", "A", "B"), voted(2, "A", "B"), {**pair(3), "gold": "A"}]
        _, shown = self.made("".join(json.dumps(line) + "\n" for line in lines), "pairs.jsonl")
        self.assertIn(
            "3 of 3 pairs: 1 with the gold they came with, 1 with the plurality of the votes they came with, "
            "1 whose votes have no plurality (gold null)",
            shown,
        )


class Pairs(CommandCase):
    def test_votes_of_several_people_become_gold_and_a_fixture_that_run_eval_runs(self) -> None:
        self.pairs([pair(number, rubric="Be right.") for number in range(6)])
        for who, key in (("ana", "a"), ("ben", "a"), ("cem", "=")):
            self.run_with("|".join(key * 6), "--pairs", "pairs.jsonl", "--annotator", who)
        out, shown = self.run_with("", "--pairs", "pairs.jsonl", "--make-fixture", "my eval")
        self.assertRegex(shown, r"hint: python3 -I \S+run_eval.py 'my eval' --demo")
        rows = self.lines("my eval/fixture.jsonl")
        votes: dict[str, dict[str, str]] = {line["item"]: {} for line in self.lines("pairs.labels.jsonl")}
        for line in self.lines("pairs.labels.jsonl"):
            votes[line["item"]][line["annotator"]] = line["label"]
        for row in rows:
            self.assertEqual({vote["judge"]: vote["label"] for vote in row["votes"]}, votes[row["item_id"]])
            self.assertEqual(row["gold"], agreement.gold_from_votes(votes[row["item_id"]].values()))
            self.assertTrue(row["text"].endswith("Be right."))
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                str(ROOT / "run_eval.py"),
                "my eval",
                "--demo",
                "--bootstrap",
                "200",
                "--format",
                "json",
            ],
            cwd=self.folder,
            env=ENVIRONMENT,
            capture_output=True,
            encoding="utf-8",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        longer = sum(row["gold"] == "B" for row in rows) / sum(row["gold"] is not None for row in rows)
        self.assertAlmostEqual(found["arms"]["control-longer"]["metrics"]["agreement"]["value"], longer)
        self.assertEqual(found["human"]["votes"], 18)
        self.assertIn("exists and is not an empty folder", self.run_with("", *self.again("my eval"), code=3)[1])

    def test_half_a_sign_in_a_models_name_hinders_no_folder(self) -> None:
        self.pairs([pair(0, gold="A", model_a="m\ud800", model_b="n")])
        self.run_with("", *self.again("made"))
        text = (self.folder / "made" / "SOURCE.md").read_text(encoding="utf-8")
        self.assertIn(r"Answers by m\ud800, n.", text)

    def test_a_folder_that_cannot_be_finished_is_taken_back_and_can_be_tried_again(self) -> None:
        row = {**pair(0, gold="A"), "split": "test", "gold": "A"}
        found = {"source": "p.jsonl", "model": "", "annotators": {}, "seed": 7}

        class Runner:
            class PinError(Exception):
                pass

            @classmethod
            def freeze_config(cls, folder: str) -> None:
                raise cls.PinError("eval.json: a pin is missing")

        kept = self.folder / "kept"
        kept.mkdir()
        for target in (self.folder / "new", kept):
            with self.assertRaisesRegex(label_fixture.FixtureError, "a pin is missing"):
                label_fixture.make(str(target), [row], found, str(ROOT), Runner, 0)
        self.assertFalse((self.folder / "new").exists())
        self.assertEqual([], list(kept.iterdir()))

    @staticmethod
    def again(name: str) -> tuple[str, ...]:
        return ("--pairs", "pairs.jsonl", "--make-fixture", name)

    def test_a_fixture_alone_can_be_made_and_earlier_gold_and_votes_stay(self) -> None:
        earlier = [{"judge": "old", "label": "B"}]
        self.pairs([pair(0, gold="B", votes=earlier, split="dev"), pair(1)])
        self.run_with("=|=", "--pairs", "pairs.jsonl", "--annotator", "ana")
        self.run_with("", *self.again("out.jsonl"))
        first, second = self.lines("out.jsonl")
        self.assertEqual((first["earlier_gold"], first["split"], first["votes"][0]), ("B", "dev", earlier[0]))
        self.assertEqual((first["gold"], second["gold"], second["split"]), (None, "equal", "test"))
        self.assertIn("nothing is overwritten", self.run_with("", *self.again("out.jsonl"), code=3)[1])

    def test_pairs_with_gold_become_an_evaluation_in_one_command_without_a_label(self) -> None:
        rows: list[dict[str, Any]] = [pair(number, gold="AB"[number % 2]) for number in range(6)]
        rows[1].update(split="dev", cluster="question-1", extra={"kept": [1]})
        votes = [{"judge": who, "label": label} for who, label in (("x", "B"), ("y", "B"), ("z", "equal"))]
        rows += [pair(6, votes=votes), pair(7)]
        self.pairs(rows)
        out, shown = self.run_with("", *self.again("mine"))
        self.assertEqual("", out)
        gold = "6 with the gold they came with, 1 with the plurality of the votes they came with"
        self.assertIn(f"7 of 8 pairs: {gold}, 1 without any label left out", shown)
        made = self.lines("mine/fixture.jsonl")
        self.assertEqual([row["gold"] for row in made], [*"ABABAB", "B"])
        self.assertEqual([row["split"] for row in made], ["test", "dev", *["test"] * 5])
        self.assertEqual([row["cluster"] for row in made][:3], ["pair-00", "question-1", "pair-02"])
        self.assertEqual(made[1]["extra"], {"kept": [1]})
        self.assertFalse([row for row in made if "earlier_gold" in row])
        self.assertFalse((self.folder / "pairs.labels.jsonl").exists())
        source = (self.folder / "mine" / "SOURCE.md").read_text(encoding="utf-8")
        self.assertIn("0 labelled by people with `judge.py human`, 7 with the gold they\ncame with", source)
        self.assertNotIn("Sides were shuffled", source)
        command = [sys.executable, "-I", str(ROOT / "run_eval.py"), "mine", "--plan"]
        planned = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, capture_output=True, encoding="utf-8")
        self.assertEqual((planned.returncode, True), (0, "6 pairs of split test" in planned.stdout), planned.stderr)

    def test_votes_and_gold_that_pairs_came_with_stand_in_one_fixture_and_are_counted(self) -> None:
        self.pairs([pair(number, gold="B", rubric="Be right.") for number in range(4)])
        self.run_with("s|=|q", "--pairs", "pairs.jsonl")
        shown = self.run_with("", *self.again("mine"))[1]
        self.assertIn("4 of 4 pairs: 1 labelled here, 3 with the gold they came with", shown)
        made = self.lines("mine/fixture.jsonl")
        self.assertEqual(sorted(row["gold"] for row in made), ["B", "B", "B", "equal"])
        self.assertTrue(all(row["text"].endswith("Be right.") for row in made))
        config = json.loads((self.folder / "mine" / "eval.json").read_text(encoding="utf-8"))
        self.assertEqual(config["title"], "4 pairs with gold labels")

    def test_pairs_without_any_label_make_no_fixture(self) -> None:
        self.pairs([pair(0), pair(1)])
        shown = self.run_with("", *self.again("mine"), code=3)[1]
        self.assertIn("no pair has a label", shown)
        self.assertIn('"gold": "A", "B" or "equal"', shown)
        self.assertFalse((self.folder / "mine").exists())

    def test_where_no_judge_is_none_is_spoken_of(self) -> None:
        self.pairs([pair(number, gold="B") for number in range(6)])
        for who in ("ana", "ben"):
            out = self.run_with("a|b|=|q", "--pairs", "pairs.jsonl", "--annotator", who, "--labels", "l.jsonl")[0]
        self.assertIn("gold of the file against people", out)
        self.assertIn("over categories and the labels the file came with", out)
        self.assertNotIn("judge", out)
        page = self.page_of_labels("l.jsonl")
        self.assertEqual("the gold of the file", page["against"])
        self.assertEqual({"gold of the file"}, {one["against"] for one in page["disagreements"]})

    def page_of_labels(self, name: str) -> dict[str, Any]:
        """What the labelling page is given as the result of the labels of a file."""
        source = label_sources.from_pairs(str(self.folder / "pairs.jsonl"))
        book = labels.LabelBook(str(self.folder / name))
        setting = label_results.Setting("lab", source.judge, source.model, "2026-01-01", source.name, 7, 100)
        found = label_results.pair_result(source.tasks, book.labels, setting)
        made: dict[str, Any] = label_results.as_page(found, labels.Session(source.tasks, "ana", book, seed=7))
        return made

    def test_a_comparison_is_labelled_with_judge_and_models_hidden_and_measured_against_people(self) -> None:
        head = {"mode": "compare", "judge_model": "panel", "a": {"model": "m1"}, "b": {"model": "m2"}}
        texts = {"category": "x", "prompt": "p", "rubric": "r", "reference": "", "answer_a": "yes", "answer_b": "no"}
        said = {"decision": "A", "original": {"choice": "A", "why": "SECRET", "state": "ok"}, "swapped": None}
        judges = {"judges": {"j1": said, "j2": {**said, "decision": "B"}}}
        items = [{"id": f"t{n} [m1 / m3]", "task": f"t{n}", **texts, **said, **judges} for n in range(5)]
        runs = {"m1": RUN, "m2": RUN, "m3": RUN}
        text = json.dumps({"runs": runs, "judge": head, "pairs": items}, indent=2)
        (self.folder / "compared.json").write_text(text, encoding="utf-8")
        for flag in ("--pairs", "--judged"):
            with self.subTest(flag):
                shown = self.run_with("a|b|=|s|a", flag, "compared.json", "--labels", f"l{flag}.jsonl")[1]
                self.assertNotIn("SECRET", shown)
                self.assertNotRegex(shown, r"\bm[123]\b")
        found = self.result_of("", "--pairs", "compared.json", "--labels", "l--pairs.jsonl", "--result")
        own = [line["label"] for line in self.lines("l--pairs.jsonl") if line["label"]]
        self.assertEqual(found["metrics"]["agreement"]["value"], own.count("A") / 4)
        self.assertEqual(found["judges"]["j2"]["agreement"]["value"], own.count("B") / 4)
        self.run_with("", "--pairs", "compared.json", "--labels", "l--pairs.jsonl", "--make-fixture", "made.jsonl")
        self.assertEqual({(row["model_a"], row["model_b"]) for row in self.lines("made.jsonl")}, {("m1", "m3")})
        self.assertEqual((found["sides"]["first"], found["sides"]["second"], found["sides"]["equal"]), (2, 1, 1))

    def test_two_results_files_become_pairs_and_what_is_left_out_is_said(self) -> None:
        for name, ids in (("a", (0, 1, 2)), ("b", (1, 2, 3))):
            items = [{**graded(n, None), "answer": f"from {name}" if n != 2 else "same"} for n in ids]
            for item in items:
                del item["judge"]
            (self.folder / f"{name}.json").write_text(json.dumps({"run": RUN, "results": items}), encoding="utf-8")
        _, shown = self.run_with("a", "--results-a", "a.json", "--results-b", "b.json")
        for text in ("only in a.json, left out: task-00", "only in b.json, left out: task-03", "left out: task-02"):
            self.assertIn(text, shown)
        self.assertEqual([line["item"] for line in self.lines("a.labels.jsonl")], ["task-01"])

    def test_faulty_pairs_are_named_with_line_and_field(self) -> None:
        rows = [pair(0), {**pair(1), "answer_b": 3}, pair(0), {"id": "x", "prompt": "p"}, pair(4, prior_turns=[1])]
        self.pairs(rows)
        _, shown = self.run_with("a", "--pairs", "pairs.jsonl", code=3)
        for text in (
            "pairs.jsonl:2: field 'answer_b': expected a text, got int",
            "pairs.jsonl:3: item_id 'pair-00' stands twice",
            "pairs.jsonl:4: field 'answer_a' is missing",
            "pairs.jsonl:5: field 'prior_turns'",
        ):
            self.assertIn(text, shown)


class Offline(unittest.TestCase):
    def test_connections_look_ups_and_children_are_refused_and_only_a_page_may_listen_here(self) -> None:
        tried = """
import sys
sys.path.insert(0, sys.argv[1])
from rooms import room
import socket, subprocess
human = room("human")
human.lock_network(sys.argv[2] == "web")
here = socket.socket()
for name, act in (
    ("connect", lambda: socket.socket().connect(("127.0.0.1", 9))),
    ("look up", lambda: socket.getaddrinfo("localhost", 80)),
    ("child", lambda: subprocess.run(["true"])),
    ("all addresses", lambda: socket.socket().bind(("0.0.0.0", 0))),
    ("here", lambda: here.bind(("127.0.0.1", 0))),
):
    try:
        act()
        print(name, "done")
    except PermissionError:
        print(name, "refused")
"""
        for mode, here in (("terminal", "refused"), ("web", "done")):
            with self.subTest(mode):
                done = subprocess.run(
                    [sys.executable, "-c", tried, str(ROOT / "tests"), mode], capture_output=True, encoding="utf-8"
                )
                names = ("connect", "look up", "child", "all addresses")
                expected = [*(f"{name} refused" for name in names), f"here {here}"]
                self.assertEqual(done.stdout.split("\n")[:-1], expected, done.stderr)


@unittest.skipIf(pty is None, "no pseudo-terminals on this system")
class ThroughATerminal(CommandCase):
    def start(self, *flags: str, columns: int = 80, rows: int = 24) -> None:
        """The command on a pseudo-terminal of a given size, stdout kept apart."""
        import fcntl
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        out = os.open(self.folder / "out.txt", os.O_WRONLY | os.O_CREAT)
        self.addCleanup(os.close, out)
        self.process = subprocess.Popen(
            [*COMMAND, *flags],
            cwd=self.folder,
            env=ENVIRONMENT,
            stdin=slave,
            stdout=out,
            stderr=slave,
            preexec_fn=own_terminal,
        )
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        for descriptor in (self.master, slave):
            self.addCleanup(os.close, descriptor)
        self.seen, self.mark = "", 0

    def until(self, text: str, after: str = "") -> str:
        """Send keys, then read until a text has been drawn since the latest keys; returns what came since them."""
        if after:
            self.mark = len(self.seen)
            os.write(self.master, after.encode("utf-8"))
        deadline = time.monotonic() + 30
        while text not in self.seen[self.mark :]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{text!r} was never drawn; last: {self.seen[self.mark :][-1500:]!r}")
            if select.select([self.master], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
        return self.seen[self.mark :]

    def test_single_keys_label_page_go_back_comment_and_end_with_the_result(self) -> None:
        long = "\n".join(f"line {number} of the answer" for number in range(60))
        self.judged([graded(number, 3, answer=long) for number in range(4)])
        self.start("--sample", "4")
        first = self.until("more lines")
        self.assertIn("Item 1 of 4", first)
        self.assertNotIn("line 40", first)
        self.page_until("line 59 of the answer")
        self.until("line 0 of the answer", "\x1b[H")  # Home
        self.until("comment: ", "c")
        self.until("the comment is kept", "g\u00fct\r")
        self.until("Item 2 of 4", "4")
        self.until("Item 1 of 4", "\x1b[D")  # left arrow
        self.until("given: 4")
        self.until("Item 2 of 4", "\x1b[C")
        self.until("Item 3 of 4", "2")
        self.until("key 'x' does nothing here", "x")
        self.until("does nothing here", "\x1b")  # Escape alone
        self.until("Any key goes on", "?")
        self.until("Item 3 of 4", " ")
        self.until("Item 4 of 4", "s")
        self.until("All 4 items are done", "5")
        self.until("Item 4 of 4", "p")
        self.until("All 4 items are done", "1")
        os.write(self.master, b"\r")
        self.assertEqual(self.process.wait(20), 0)
        self.assertEqual([line["label"] for line in self.lines()], [4, 2, None, 5, 1])
        self.assertEqual(self.lines()[0]["comment"], "g\u00fct")
        self.assertIn("j1 against people, 3 scores", (self.folder / "out.txt").read_text("utf-8"))
        self.check_restored()

    def page_until(self, text: str) -> None:
        """Page down until a text has been drawn."""
        for _ in range(100):
            self.until("q quit", " ")
            if text in self.seen:
                return
        self.fail(f"{text!r} was never drawn")

    def check_restored(self) -> None:
        """The terminal is as it was, and the cursor is back."""
        import termios

        self.assertEqual(termios.tcgetattr(self.slave)[3], self.before[3])
        self.until("\x1b[?25h\x1b[?1049l")

    def test_ctrl_c_keeps_the_labels_restores_the_terminal_and_exits_130(self) -> None:
        self.start("--sample", "4")
        self.until("Item 1 of 4")
        self.until("Item 2 of 4", "3")
        self.until("the same command goes on", "\x03")
        self.assertEqual(self.process.wait(20), 130)
        self.assertEqual([line["label"] for line in self.lines()], [3])
        self.check_restored()

    def test_a_closed_terminal_ends_the_session(self) -> None:
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            self.skipTest("started with nohup, which has that signal ignored")
        self.start("--sample", "4")
        self.until("Item 1 of 4")
        self.until("Item 2 of 4", "3")
        self.process.send_signal(signal.SIGHUP)
        self.process.wait(20)
        self.assertEqual([line["label"] for line in self.lines()], [3])

    def test_an_answer_cannot_move_the_cursor_or_reorder_the_screen(self) -> None:
        evil = "\x1b[2J\x1b]0;title\x07 \u202e reversed \u200b\x9b31m \ud800 end-of-answer"
        self.judged([graded(0, 3, answer=evil)])
        self.start("--sample", "1")
        drawn = self.until("end-of-answer")
        self.assertEqual(set(re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]", drawn)) - set(OWN_SEQUENCES), set())
        for char in ("\x07", "\u202e", "\x9b", "\u200b"):
            self.assertNotIn(char, drawn)
        self.assertIn("<U+001B>[2J", drawn)

    def test_a_small_terminal_shows_everything_page_by_page(self) -> None:
        self.judged([graded(0, 3, answer="word " * 60 + "the-last-word")])
        self.start("--sample", "1", columns=30, rows=10)
        self.until("more lines")
        self.page_until("the-last-word")


OWN_SEQUENCES = ("\x1b[?1049h", "\x1b[?25l", "\x1b[H", "\x1b[2J", "\x1b[1m", "\x1b[2m", "\x1b[0m")


def own_terminal() -> None:
    """In the child: a session of its own whose controlling terminal is standard input, so that Ctrl-C reaches it."""
    import fcntl
    import signal
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # where the suite runs in the background it would be ignored
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Drawing(unittest.TestCase):
    def test_lines_are_broken_at_blanks_to_the_width_and_nothing_is_lost(self) -> None:
        cases = (
            "short",
            "",
            "   indented text that is long enough to be broken",
            "x" * 50,
            "漢字かな交じり文" * 5,
            "a  b   c    d",
            "é" * 30,
        )
        for text in cases:
            for width in (10, 17, 40):
                with self.subTest(text, width=width):
                    found = label_terminal.wrap(text, width)
                    self.assertTrue(all(label_terminal.text_width(line) <= width for line in found))
                    self.assertEqual("".join("".join(found).split()), "".join(text.split()))

    def test_wide_and_combining_characters_have_their_columns(self) -> None:
        self.assertEqual([label_terminal.text_width(text) for text in ("ab", "漢", "e\u0301", "\u200d")], [2, 2, 1, 0])


class Figures(unittest.TestCase):
    """The result against numbers worked out by hand."""

    setting = label_results.Setting("judge.py", "j1", "m", "2026-01-01", "f", 7, 500)

    def label(self, item: str, label: Any, who: str = "ana", **more: Any) -> Any:
        kind = "score" if isinstance(label, int) else "pair"
        given = {"shown": "original" if kind == "pair" else None, "comment": "", "seconds": 2.0, "content": ""}
        return labels.Label("t", who, kind, item, label, **{**given, **more})

    def test_scores(self) -> None:
        tasks = [labels.Task(f"i{n}", "score", (), ("a",), "", judge) for n, judge in enumerate((5, 4, 3, 1, 2))]
        given = [self.label(f"i{n}", x) for n, x in enumerate((4, 4, 5, 1, 2))]
        found = label_results.score_result(tasks, given, self.setting)
        self.assertEqual((found["exact_agreement"], found["within_one"]), (0.6, 0.8))
        self.assertEqual((found["mean_human"], found["mean_judge"]), (3.2, 3.0))
        self.assertAlmostEqual(found["metrics"]["bias"]["value"], -0.2)
        # 1 - mean (x - y)^2 / (var x + var y + (mean x - mean y)^2) = 1 - 1 / (2.16 + 2 + 0.04)
        self.assertAlmostEqual(found["metrics"]["qwk"]["value"], 1 - 1 / 4.2)
        wilson = agreement.wilson(3, 5)
        self.assertAlmostEqual(found["metrics"]["exact"]["low"], wilson.low, places=9)
        self.assertEqual(found["big_disagreements"], [{"id": "i2", "human": 5, "judge": 3}])
        self.assertEqual([one["id"] for one in found["disagreements"]], ["i2", "i0"])

    def test_pairs(self) -> None:
        tasks = [labels.Task(f"i{n}", "pair", (), ("a", "b"), "", judge) for n, judge in enumerate("AABB")]
        given = [self.label(f"i{n}", x) for n, x in enumerate(("A", "B", "B", "equal"))]
        found = label_results.pair_result(tasks, given, self.setting)
        self.assertEqual(found["metrics"]["agreement"]["value"], 0.5)
        # gold A B B equal, judge A A B B: n = 4, hits 2, E = 1*2 + 2*2 = 6, so (8 - 6) / (16 - 6)
        self.assertAlmostEqual(found["metrics"]["kappa"]["value"], 0.2)
        self.assertEqual([one["id"] for one in found["disagreements"]], ["i1", "i3"])

    def test_a_draw_of_two_people_is_no_consensus_and_leaves_the_measures(self) -> None:
        tasks = [labels.Task("i0", "pair", (), ("a", "b"), "", "A")]
        given = [self.label("i0", "A"), self.label("i0", "B", "ben")]
        found = label_results.pair_result(tasks, given, self.setting)
        self.assertEqual((found["no_consensus"], found["metrics"]["kappa"]["reason"]), (1, "no_items"))
        self.assertEqual(found["people"]["pairwise"], 0.0)

    def test_undefined_has_a_reason_and_is_printed_so(self) -> None:
        tasks = [labels.Task(f"i{n}", "score", (), ("a",), "", 3) for n in range(3)]
        found = label_results.score_result(tasks, [self.label(f"i{n}", 3) for n in range(3)], self.setting)
        self.assertEqual(
            (found["metrics"]["qwk"]["value"], found["metrics"]["qwk"]["reason"]), (None, "constant_scores")
        )
        self.assertIn("undefined (constant_scores)", "\n".join(label_results.as_text(found)))


load_tests = beside("test_human")


if __name__ == "__main__":
    unittest.main()
