"""The MT-Bench build: same bytes from every source, and a named difference for everything else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made

FILES = ("items.jsonl", "questions.jsonl", "reference_answers_gpt4.jsonl", "judge_prompts.jsonl", "votes.jsonl")
HAVE_SHARED = all(os.path.exists(os.path.join(made.SHARED, name)) for name in FILES)


BUILD = made.module(os.path.join(made.ROOT, "evals", "mt-bench", "build.py"), "mtbench_build")


def read_rows(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8", newline="\n") as stream:
        return [json.loads(line) for line in stream.read().split("\n") if line]


class BuildCase(unittest.TestCase):
    """A pinned copy of the evaluations for a made-up release, in a folder of its own."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.evals = made.copy_evaluations(self.folder)
        self.here = os.path.join(self.evals, "mt-bench")
        self.build = BUILD
        self.build.HERE = self.here  # the script's own folder: pins, release facts and output
        self.prompts = made.write_prompts(self.folder)
        self.rows = made.release_rows()
        self.source = made.write_jsonl(os.path.join(self.folder, "rows.jsonl"), self.rows)
        for turn in ("1", "2"):
            self.assertEqual(self.run_build("--from", self.source, "--turn", turn, "--pin")[0], 0)
        self.pinned = self.fixture_bytes()

    def run_build(self, *arguments: str, prompts: list[str] | None = None) -> tuple[int, str]:
        """(exit code, what was written to stderr)."""
        errors = io.StringIO()
        given = [*arguments, "--prompts", *(self.prompts if prompts is None else prompts)]
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = self.build.main(given)
        return code, errors.getvalue()

    def fixture_bytes(self, folder: str = "mt-bench") -> bytes:
        with open(os.path.join(self.evals, folder, "fixture.jsonl"), "rb") as stream:
            return stream.read()

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return path


class Sources(BuildCase):
    def test_every_source_of_the_same_rows_gives_the_same_bytes(self) -> None:
        shuffled = list(self.rows)
        random.Random(3).shuffle(shuffled)
        service_pages = [
            {"rows": [{"row_idx": i, "row": row, "truncated_cells": []} for i, row in enumerate(self.rows)]}
        ]
        sources = {
            "one line per pair": made.write_jsonl(os.path.join(self.folder, "p.jsonl"), made.pair_rows(self.rows)),
            "a JSON array": self.write("array.json", json.dumps(self.rows, indent=1)),
            "rows in another order": made.write_jsonl(os.path.join(self.folder, "s.jsonl"), shuffled),
            "pages of the service": self.write("page.json", json.dumps(service_pages)),
            "carriage returns and a byte order mark": self.write(
                "crlf.jsonl", "\ufeff" + "\r\n".join(json.dumps(row) for row in self.rows) + "\r\n"
            ),
        }
        for name, path in sources.items():
            with self.subTest(name):
                os.remove(os.path.join(self.here, "fixture.jsonl"))
                self.assertEqual(self.run_build("--from", path), (0, ""))
                self.assertEqual(self.fixture_bytes(), self.pinned)

    def test_rows_may_come_in_several_files(self) -> None:
        first = made.write_jsonl(os.path.join(self.folder, "1.jsonl"), self.rows[:70])
        second = made.write_jsonl(os.path.join(self.folder, "2.jsonl"), self.rows[70:])
        self.assertEqual(self.run_build("--from", second, first), (0, ""))

    def test_the_prompt_files_may_lie_in_a_checkout(self) -> None:
        data = os.path.join(self.folder, "data")
        os.makedirs(os.path.join(data, "mt_bench", "reference_answer"))
        for path, name in zip(self.prompts, ("mt_bench/question.jsonl", "mt_bench/reference_answer/gpt-4.jsonl", "")):
            os.rename(path, os.path.join(data, *(name or "judge_prompts.jsonl").split("/")))
        self.assertEqual(self.run_build("--from", self.source, prompts=[data]), (0, ""))

    def test_the_command_runs_from_any_folder_in_any_locale(self) -> None:
        os.remove(os.path.join(self.here, "fixture.jsonl"))
        command = [sys.executable, "-I", os.path.join(self.here, "build.py"), "--from", self.source, "--prompts"]
        done = subprocess.run(
            [*command, *self.prompts], cwd="/", env={"LC_ALL": "C", "PATH": ""}, capture_output=True, timeout=60
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.fixture_bytes(), self.pinned)


class Content(BuildCase):
    def test_models_stand_in_alphabetical_order_and_votes_follow(self) -> None:
        rows = {row["item_id"]: row for row in read_rows(os.path.join(self.here, "fixture.jsonl"))}
        self.assertTrue(all(row["model_a"] < row["model_b"] for row in rows.values()))
        for row in self.rows:
            if row["turn"] != 1:
                continue
            names = sorted((row["model_a"], row["model_b"]))
            item = rows[f"q{row['question_id']}-t1-{names[0]}-{names[1]}"]
            winner = row.get(row["winner"])
            label = "equal" if winner is None else "A" if winner == names[0] else "B"
            self.assertIn({"judge": row["judge"], "label": label}, item["votes"])

    def test_oddities_of_a_release_are_kept(self) -> None:
        rows = {row["item_id"]: row for row in read_rows(os.path.join(self.here, "fixture.jsonl"))}
        twice = [vote for vote in rows["q82-t1-ash-1b-birch-2b"]["votes"] if vote["judge"] == "expert_30"]
        self.assertEqual([vote["label"] for vote in twice], ["A", "B"])
        self.assertEqual(rows["q127-t1-ash-1b-birch-2b"]["answer_b"], "")
        same = rows["q121-t1-ash-1b-birch-2b"]
        self.assertEqual(same["answer_a"], same["answer_b"])
        self.assertEqual(len(rows["q81-t1-ash-1b-birch-2b"]["votes"]), 1)

    def test_gold_is_the_unique_plurality_or_nothing(self) -> None:
        golds = set()
        for row in read_rows(os.path.join(self.here, "fixture.jsonl")):
            labels = [vote["label"] for vote in row["votes"]]
            most = max(labels.count(label) for label in labels)
            top = {label for label in labels if labels.count(label) == most}
            self.assertEqual(row["gold"], top.pop() if len(top) == 1 else None, row["item_id"])
            golds.add(row["gold"])
        self.assertEqual(golds, {"A", "B", "equal", None})

    def test_references_go_with_the_categories_that_need_them(self) -> None:
        for row in read_rows(os.path.join(self.here, "fixture.jsonl")):
            expected = row["category"] in ("math", "reasoning", "coding")
            self.assertEqual("reference" in row, expected, row["item_id"])

    def test_the_second_turn_has_a_folder_and_the_first_turn_before_it(self) -> None:
        rows = read_rows(os.path.join(self.evals, "mt-bench-turn2", "fixture.jsonl"))
        for row in rows:
            question = int(row["cluster"][1:])
            self.assertEqual(row["text"], made.question_turns(question)[1])
            self.assertEqual(row["prior_turns"][0]["answer_b"], made.answer(question, row["model_b"], 1))
            self.assertEqual(row["answer_a"], made.answer(question, row["model_a"], 2))
        math = next(row for row in rows if row["category"] == "math")
        self.assertEqual(math["reference"], ["key 111 one", "key 111 two"])

    def test_prompts_are_kept_word_for_word(self) -> None:
        self.assertEqual(read_rows(os.path.join(self.here, "prompts.jsonl")), made.prompt_rows()[:4])


class Refusals(BuildCase):
    def refused(self, code: int, *parts: str, rows: list[Any] | None = None, prompts: list[str] | None = None) -> None:
        """The build must end with `code`, name every part, and leave the fixture alone."""
        path = self.source if rows is None else made.write_jsonl(os.path.join(self.folder, "bad.jsonl"), rows)
        got, errors = self.run_build("--from", path, prompts=prompts)
        self.assertEqual(got, code, errors)
        for part in parts:
            self.assertIn(part, errors)
        self.assertEqual(self.fixture_bytes(), self.pinned)

    def test_missing_rows_are_named_in_numbers_and_by_question(self) -> None:
        lacking = [row for row in self.rows if row["question_id"] != 127]
        n_votes = sum(row["turn"] == 1 for row in self.rows)
        n_left = sum(row["turn"] == 1 for row in lacking)
        self.refused(
            1, f"votes: expected {n_votes}, got {n_left}", "questions: expected 6, got 5", "q127", rows=lacking
        )

    def test_a_changed_answer_is_named_by_question(self) -> None:
        rows = json.loads(json.dumps(self.rows))
        for row in rows:
            for side, model in (("conversation_a", row["model_a"]), ("conversation_b", row["model_b"])):
                if (row["question_id"], model) == (81, "oak-3b"):
                    row[side][1]["content"] += "."
        self.refused(1, "fixture.jsonl: expected sha256", "q81: expected", rows=rows)

    def test_two_rows_that_contradict_each_other_are_refused(self) -> None:
        rows = json.loads(json.dumps(self.rows))
        rows[40]["conversation_a"][1]["content"] += " or not"
        self.refused(1, "bad.jsonl:", "two rows hold different texts", rows=rows)

    def test_one_broken_field_at_a_time_is_named(self) -> None:
        breaks: dict[str, tuple[str, Any]] = {
            "field 'winner': expected model_a, model_b or tie, got 'model_c'": ("winner", "model_c"),
            "field 'question_id': expected int, got str": ("question_id", "81"),
            "field 'judge': expected str, got nothing": ("judge", None),
            "(the split 'human'), got a vote by 'gpt4_pair'": ("judge", "gpt4_pair"),
            "expected 2 or more messages in pairs, got 1": ("conversation_a", self.rows[0]["conversation_a"][:1]),
            "unexpected role 'system'": ("conversation_b", [{"role": "system", "content": ""}] * 2),
            "expected turn 1 or 2": ("turn", 3),
            "expected a row with conversation_a": ("", None),
        }
        for part, (key, value) in breaks.items():
            with self.subTest(part):
                row = {"id": 1} if not key else {**self.rows[0], key: value}
                self.refused(1, "bad.jsonl:1", part, rows=[row, *self.rows[1:]])

    def test_a_file_cut_in_the_middle_of_a_line_is_refused(self) -> None:
        with open(self.source, encoding="utf-8") as stream:
            text = stream.read()
        path = self.write("cut.jsonl", text[: len(text) * 2 // 3])
        code, errors = self.run_build("--from", path)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"cut\.jsonl:\d+: not JSON, cut off")

    def test_an_absent_and_an_empty_file_are_told_apart(self) -> None:
        self.assertEqual(self.run_build("--from", os.path.join(self.folder, "none.jsonl"))[0], 3)
        code, errors = self.run_build("--from", self.write("empty.jsonl", ""))
        self.assertEqual(code, 1)
        self.assertIn("empty.jsonl: expected rows of the release, got an empty file", errors)

    def test_another_prompt_file_is_refused_with_both_hashes(self) -> None:
        rows = made.prompt_rows()
        rows[0]["prompt_template"] += " "
        made.write_jsonl(self.prompts[2], rows)
        self.refused(1, "judge_prompts.jsonl: not the pinned prompts file: expected sha256", "got", "a text differs")

    def test_a_question_file_that_lacks_lines_is_refused_in_numbers(self) -> None:
        made.write_jsonl(self.prompts[0], read_rows(self.prompts[0])[:-1])
        self.refused(1, "not the pinned questions file", "6 entries, got 5")

    def test_the_same_texts_in_another_layout_are_accepted(self) -> None:
        rows = [{**row, "extra": 1} for row in read_rows(self.prompts[0])]
        made.write_jsonl(self.prompts[0], list(reversed(rows)))
        self.assertEqual(self.run_build("--from", self.source), (0, ""))

    def test_a_missing_prompt_file_is_named(self) -> None:
        self.refused(2, "missing: references", prompts=[self.prompts[0], self.prompts[2]])

    def test_another_parquet_file_is_refused_before_pyarrow_is_needed(self) -> None:
        path = self.write("human.parquet", "PAR1 and more")
        facts = os.path.join(self.here, "release.json")
        with open(facts, encoding="utf-8") as stream:
            known = json.load(stream)
        with open(facts, "w", encoding="utf-8") as stream:
            json.dump({**known, "parquet_sha256": "0" * 64}, stream)
        code, errors = self.run_build("--from", path)
        self.assertEqual(code, 1)
        self.assertIn(f"human.parquet: sha256: expected {'0' * 64}", errors)

    def test_unpinned_builds_another_release_on_purpose(self) -> None:
        rows = [row for row in self.rows if row["question_id"] != 127]
        path = made.write_jsonl(os.path.join(self.folder, "other.jsonl"), rows)
        self.assertEqual(self.run_build("--from", path, "--unpinned"), (0, ""))
        self.assertNotEqual(self.fixture_bytes(), self.pinned)


class Download(BuildCase):
    def service(self, faults: list[Any] | None = None, rows: list[dict[str, Any]] | None = None) -> made.RowsService:
        service = made.RowsService(self.rows if rows is None else rows, faults)
        self.addCleanup(service.close)
        return service

    def fetch(self, service: made.RowsService) -> tuple[int, str]:
        cache = os.path.join(self.folder, "pages")
        return self.run_build("--download", "--rows-url", service.url, "--cache", cache, "--retry-wait", "0.001")

    def test_pages_are_fetched_and_give_the_pinned_bytes(self) -> None:
        service = self.service()
        os.remove(os.path.join(self.here, "fixture.jsonl"))
        code, errors = self.fetch(service)
        self.assertEqual(code, 0, errors)
        self.assertEqual(service.asked, list(range(0, len(self.rows), 100)))
        self.assertEqual(self.fixture_bytes(), self.pinned)
        self.assertIn(f"of {len(self.rows)}", errors)

    def test_a_service_that_fails_midway_is_asked_again(self) -> None:
        faults = [None, made.status(503), made.cut, made.half_json, made.status(429, {"Retry-After": "0"})]
        service = self.service(faults)
        self.assertEqual(self.fetch(service)[0], 0)
        self.assertEqual(service.asked, [0, 100, 100, 100, 100, 100])

    def test_a_stopped_download_goes_on_where_it_stopped(self) -> None:
        service = self.service([None] + [made.cut] * 6)
        code, errors = self.fetch(service)
        self.assertEqual(code, 3)
        self.assertIn("rows from 100: no sound page in 6 attempts", errors)
        self.assertIn("hint: run the same command again", errors)
        service.asked.clear()
        code, errors = self.fetch(service)
        self.assertEqual((code, service.asked), (0, [100]))
        self.assertIn("kept rows 1 to 100", errors)
        self.assertEqual(self.fixture_bytes(), self.pinned)

    def test_a_damaged_kept_page_is_fetched_again(self) -> None:
        service = self.service()
        self.fetch(service)
        with open(os.path.join(self.folder, "pages", "rows-000100.json"), "w", encoding="utf-8") as stream:
            stream.write('{"rows": [')
        service.asked.clear()
        self.assertEqual(self.fetch(service)[0], 0)
        self.assertEqual(service.asked, [100])

    def test_what_is_sound_but_wrong_is_refused_without_asking_again(self) -> None:
        def cut_cell(page: dict[str, Any]) -> None:
            page["rows"][2]["truncated_cells"] = ["conversation_a"]

        def partial(page: dict[str, Any]) -> None:
            page["partial"] = True

        cases = {
            "got cut ones: conversation_a": made.changed(cut_cell),
            "part of it only": made.changed(partial),
            "302 Found": made.status(302, {"Location": "http://127.0.0.1:9/"}),
            "404 Not Found": made.status(404),
        }
        for part, fault in cases.items():
            with self.subTest(part):
                service = self.service([fault])
                code, errors = self.fetch(service)
                self.assertIn(code, (1, 3))
                self.assertIn(part, errors)
                self.assertEqual(service.asked, [0])

    def test_a_page_with_the_wrong_rows_is_never_kept(self) -> None:
        def shifted(page: dict[str, Any]) -> None:
            for row in page["rows"]:
                row["row_idx"] += 1

        service = self.service([made.changed(shifted)] * 6)
        code, errors = self.fetch(service)
        self.assertEqual(code, 3)
        self.assertIn("expected rows 0 to 99", errors)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "pages", "rows-000000.json")))

    def test_another_number_of_rows_is_refused_at_the_first_page(self) -> None:
        service = self.service(rows=self.rows[:-1])
        code, errors = self.fetch(service)
        self.assertEqual((code, service.asked), (1, [0]))
        self.assertIn(f"expected {len(self.rows)} rows in the split, got {len(self.rows) - 1}", errors)

    def test_plain_http_to_another_machine_is_refused(self) -> None:
        code, errors = self.run_build("--download", "--rows-url", "http://rows.example/rows?x=1")
        self.assertEqual(code, 2)
        self.assertIn("expected https", errors)


class Hundred(unittest.TestCase):
    """The rule of the 100-pair evaluation, on made-up pairs."""

    def setUp(self) -> None:
        self.build = made.module(os.path.join(made.ROOT, "evals", "mt-bench-100", "build.py"), "mtbench_100_build")

    def pairs(self, n: int) -> list[dict[str, Any]]:
        return [
            {
                "item_id": f"p{i}",
                "text": "t",
                "answer_a": "a",
                "answer_b": "b",
                "category": "writing",
                "cluster": f"q{i % 9}",
                "turn": 1,
                "model_a": "m",
                "model_b": "n",
                "votes": [{"judge": "expert_1", "label": "AB"[i % 2]}, {"judge": "expert_2", "label": "AB"[i % 2]}],
            }
            for i in range(n)
        ]

    def test_gold_is_balanced_and_the_order_of_the_file_is_kept(self) -> None:
        rows = self.build.choose(self.pairs(150))
        test = [row for row in rows if row["split"] == "test"]
        self.assertEqual([sum(row["gold"] == gold for row in test) for gold in "AB"], [50, 50])
        self.assertEqual(len(rows) - len(test), 10)
        places = [int(row["item_id"][1:]) for row in rows]
        self.assertEqual(places, sorted(places))

    def test_only_two_different_people_with_clear_labels_count(self) -> None:
        def labels(*votes: tuple[str, str]) -> Any:
            votes_of = [{"judge": judge, "label": label} for judge, label in votes]
            return self.build.two_annotators({"item_id": "x", "votes": votes_of})

        self.assertIsNone(labels(("e1", "A")))
        self.assertIsNone(labels(("e1", "A"), ("e1", "B")))
        self.assertIsNone(labels(("e1", "A"), ("e2", "equal")))
        self.assertIsNone(labels(("e1", "A"), ("e2", "A"), ("e3", "A")))
        self.assertEqual(sorted(labels(("e1", "A"), ("e2", "B"))), ["A", "B"])

    def test_who_is_first_does_not_depend_on_labels_or_the_order_of_votes(self) -> None:
        first = {"item_id": "x", "votes": [{"judge": "e1", "label": "A"}, {"judge": "e2", "label": "B"}]}
        turned = {"item_id": "x", "votes": list(reversed(first["votes"]))}
        exchanged = {"item_id": "x", "votes": [{"judge": "e1", "label": "B"}, {"judge": "e2", "label": "A"}]}
        self.assertEqual(self.build.two_annotators(first), self.build.two_annotators(turned))
        self.assertEqual(self.build.two_annotators(first), self.build.two_annotators(exchanged)[::-1])

    def test_too_few_pairs_are_named(self) -> None:
        with self.assertRaisesRegex(self.build.BuildError, "gold A: expected 55 or more"):
            self.build.choose(self.pairs(20))


@unittest.skipUnless(HAVE_SHARED, "the public release is not there: ../shared/data/mt_bench")
class PublicRelease(unittest.TestCase):
    """The real release: pins, counts and the chosen hundred."""

    scratch: tempfile.TemporaryDirectory[str]
    build: Any
    items: dict[int, list[dict[str, Any]]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.build = made.module(os.path.join(made.ROOT, "evals", "mt-bench", "build.py"), "mtbench_build_real")
        prompts = [os.path.join(made.SHARED, name) for name in FILES[1:4]]
        cls.items = {}
        for turn in (1, 2):
            out = os.path.join(cls.scratch.name, str(turn))
            given = ["--from", os.path.join(made.SHARED, FILES[0]), "--turn", str(turn), "--out", out]
            with contextlib.redirect_stdout(io.StringIO()):
                code = cls.build.main([*given, "--prompts", *prompts])
            assert code == 0, "the release does not give the pinned fixture"
            cls.items[turn] = read_rows(os.path.join(out, "fixture.jsonl"))

    def test_the_release_holds_what_is_known_of_it(self) -> None:
        first, second = (self.build.counts_of(self.items[turn]) for turn in (1, 2))
        expected = {"pairs": 910, "votes": 1689, "judges": 65, "questions": 80, "without_consensus": 105}
        self.assertEqual(first, expected)
        self.assertEqual(first["pairs"] + second["pairs"], 1814)
        self.assertEqual(first["votes"] + second["votes"], 3355)

    def test_gold_and_the_longer_answer_come_out_as_known(self) -> None:
        gold = [row["gold"] for row in self.items[1]]
        self.assertEqual((gold.count("A") + gold.count("B"), gold.count("equal"), gold.count(None)), (621, 184, 105))
        decisive = [row for row in self.items[1] if row["gold"] in ("A", "B")]
        sizes = [(len(row["answer_a"]), len(row["answer_b"]), row["gold"]) for row in decisive]
        self.assertEqual(sum(("A" if a > b else "B") == label for a, b, label in sizes), 436)
        self.assertEqual(sum(a == b for a, b, _ in sizes), 6)

    def test_the_oddities_of_the_notes_are_there(self) -> None:
        empty = [row["item_id"] for row in self.items[1] if "" in (row["answer_a"], row["answer_b"])]
        self.assertEqual({key.split("-")[0] for key in empty}, {"q127"})
        self.assertTrue(all("llama-13b" in key for key in empty))
        twice = [row for row in self.items[1] if len({v["judge"] for v in row["votes"]}) < len(row["votes"])]
        self.assertEqual([row["item_id"] for row in twice], ["q128-t1-claude-v1-gpt-3.5-turbo"])
        same = {turn: sum(row["answer_a"] == row["answer_b"] for row in self.items[turn]) for turn in (1, 2)}
        self.assertEqual(sum(same.values()), 14)
        self.assertEqual(sum(len(row["votes"]) == 1 for row in self.items[1]), 425)

    def test_the_hundred_pairs_are_the_pinned_ones(self) -> None:
        hundred = made.module(os.path.join(made.ROOT, "evals", "mt-bench-100", "build.py"), "mtbench_100_real")
        rows = hundred.choose(self.items[1])
        test = [row for row in rows if row["split"] == "test"]
        self.assertEqual((len(test), sum(row["gold"] == row["second_label"] for row in test)), (100, 87))
        data = b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n" for row in rows)
        _, pinned = hundred.pinned_hash(os.path.join(made.ROOT, "evals", "mt-bench-100", "eval.json"))
        self.assertEqual(self.build.sha256(data), pinned)


if __name__ == "__main__":
    unittest.main()
