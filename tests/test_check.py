"""check.py: the score of one pair, and a re-check that is strict where a weak one would be blind."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooms import ROOT, room

check = room("check")
Row = dict[str, Any]


def arguments(original: str, swapped: str) -> Row:
    return {"original": {"choice": original, "reason": ""}, "swapped": {"choice": swapped, "reason": ""}}


def slow_decision(original: str, swapped: str) -> str:
    """Who wins, by naming the answer that each order picked."""
    if original == "invalid" or swapped == "invalid":
        return "invalid"
    first = {"A": "answer_a", "B": "answer_b", "equal": "neither"}[original]
    second = {"A": "answer_b", "B": "answer_a", "equal": "neither"}[swapped]
    return {"answer_a": "A", "answer_b": "B"}.get(first, "equal") if first == second else "equal"


class Score(unittest.TestCase):
    def test_both_orders_decide_as_the_definition_says(self) -> None:
        for pair in itertools.product(check.LABELS, repeat=2):
            found = check.score({"gold": "A"}, arguments(*pair), {"decision": "both"})
            with self.subTest(pair):
                self.assertEqual(slow_decision(*pair), found["decision"])
                self.assertEqual(found["decision"], found["prediction"])

    def test_the_original_order_alone_decides_when_the_setting_says_so_or_is_missing(self) -> None:
        for config in ({"decision": "original"}, {}):
            for pair in itertools.product(check.LABELS, repeat=2):
                found = check.score({"gold": "B"}, arguments(*pair), config)
                self.assertEqual((pair[0], slow_decision(*pair)), (found["prediction"], found["decision"]))

    def test_consistency_needs_two_valid_choices_of_the_same_answer(self) -> None:
        consistent = {("A", "B"), ("B", "A"), ("equal", "equal")}
        for pair in itertools.product(check.LABELS, repeat=2):
            secondary = check.score({"gold": None}, arguments(*pair), {})["secondary"]
            self.assertEqual(int(pair in consistent), secondary["position_consistency"]["score"], pair)
            self.assertEqual(int("invalid" not in pair), secondary["valid_output"]["score"], pair)

    def test_an_item_without_consensus_keeps_gold_null(self) -> None:
        found = check.score({"gold": None}, arguments("A", "B"), {"decision": "both"})
        self.assertEqual((None, "A"), (found["gold"], found["prediction"]))
        self.assertIsNone(found["secondary"]["agreement"]["gold"])

    def test_whatever_stands_for_a_choice_is_invalid_unless_it_is_one(self) -> None:
        odd: list[Any] = [None, [], "A", {}, {"original": None}, {"original": {"choice": True}}]
        odd += [{"original": {"choice": "a"}}, {"original": {"choice": ["A"]}}]
        for given in odd:
            self.assertEqual("invalid", check.score({"gold": "A"}, given, {})["prediction"], given)


def change_first(change: Row, rows: list[Row]) -> None:
    rows[0].update(change)


class Files(unittest.TestCase):
    """The command line over small files; each test breaks one thing."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.items = [{"item_id": f"i{n}", "split": "test" if n < 4 else "dev", "gold": "AB"[n % 2]} for n in range(5)]
        (self.folder / "eval.json").write_text('{"decision": "both"}', encoding="utf-8")
        self.write("fixture.jsonl", self.items)
        self.rows = [self.row(item, repeat) for repeat in (1, 2) for item in self.items[:4]]

    def row(self, item: Row, repeat: int = 1) -> Row:
        said = arguments("A", "B")
        row = {"item_id": item["item_id"], "arm": "judge", "repeat": repeat, "tool_arguments": said}
        return {**row, **check.score(item, said, {"decision": "both"})}

    def write(self, name: str, rows: list[Row]) -> Path:
        path = self.folder / name
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    def run_check(self, path: Path, *options: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        words = [str(path), "--fixture", str(self.folder / "fixture.jsonl"), *options]
        out.reconfigure = err.reconfigure = lambda **_: None  # type: ignore[attr-defined]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = check.main(words)
        return code, out.getvalue(), err.getvalue()

    def refused(self, kind: str, change: Callable[[list[Row]], object]) -> str:
        """Change sound rows in one way; the check must fail with that kind of problem and no other."""
        change(self.rows)
        code, out, _ = self.run_check(self.write("scored.jsonl.gz", self.rows))
        kinds = {line.partition(":")[0] for line in out.split("\n")[:-2]}
        self.assertEqual((1, {kind}), (code, kinds), out)
        self.assertIn("FAIL", out)
        return out

    def test_sound_rows_pass_with_their_count(self) -> None:
        code, out, _ = self.run_check(self.write("scored.jsonl.gz", self.rows))
        self.assertEqual(0, code)
        self.assertIn("ok: ", out)
        self.assertIn("8 rows, 4 predictions differ from gold, 0 problems", out)

    def test_raw_rows_pass_without_scores_and_say_so(self) -> None:
        raw = [{key: value for key, value in row.items() if key not in check.SCORE_KEYS} for row in self.rows]
        code, out, _ = self.run_check(self.write("raw.jsonl.gz", raw))
        self.assertEqual(0, code)
        self.assertIn("nothing stored to compare", out)

    def test_a_manifest_that_says_nothing_sound_of_the_rows_is_refused(self) -> None:
        path = self.write("scored.jsonl.gz", self.rows[:2])
        good: Row = {"arms": ["judge"], "repeats": 2, "split": "test", "limit": None, "shard": None}
        for field, value in (
            *(
                ("split", "none"),
                ("split", None),
                ("repeats", 0),
                ("repeats", 10**9),
                ("repeats", True),
                ("repeats", "2"),
            ),
            *(("arms", 5), ("arms", []), ("arms", [1]), ("limit", 0), ("limit", "3"), ("shard", "0/2"), ("shard", 5)),
        ):
            with self.subTest(field=field, value=value):
                (self.folder / "manifest.json").write_text(json.dumps({**good, field: value}), encoding="utf-8")
                code, _, err = self.run_check(path)
                self.assertEqual(3, code)
                self.assertIn(f"manifest.json: field '{field}': expected ", err)
        (self.folder / "manifest.json").write_text(json.dumps(good), encoding="utf-8")
        code, out, _ = self.run_check(path)
        self.assertEqual((1, 6), (code, out.count("row is missing")))

    def test_what_a_terminal_would_act_on_is_shown_by_its_number(self) -> None:
        self.rows[0]["arm"] = "judge\x1b[2J\u202e"
        _, out, _ = self.run_check(self.write("scored.jsonl.gz", self.rows), "--disagreements")
        self.assertNotIn("\x1b", out)
        self.assertIn("judge<U+001B>[2J<U+202E>", out)

    def test_rows_of_other_pairs_come_with_the_way_to_name_theirs(self) -> None:
        for row in self.rows:
            row["item_id"] += "-else"
        path = self.write("scored.jsonl.gz", self.rows)
        self.assertIn("hint: these rows are of other pairs; name theirs with --fixture PATH\n", self.run_check(path)[1])
        (self.folder / "inputs").mkdir()
        self.write("inputs/fixture.jsonl", self.items)
        self.assertIn(f"--fixture {self.folder / 'inputs' / 'fixture.jsonl'}\n", self.run_check(path)[1])
        path = self.write("labels.jsonl", [{"annotator": "ana", "label": "A"}])
        self.assertIn("hint: these are no rows of a run; a labels file", self.run_check(path)[1])

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes on this system")
    def test_what_is_no_regular_file_is_not_waited_for(self) -> None:
        os.mkfifo(self.folder / "pipe")
        code, _, err = self.run_check(self.folder / "pipe")
        self.assertEqual((3, f"check: error: {self.folder / 'pipe'}: expected a regular file\n"), (code, err))

    def test_an_empty_file_fails(self) -> None:
        self.refused("empty", lambda rows: rows.clear())

    def test_a_row_that_stands_twice_fails(self) -> None:
        self.assertIn("i0 judge repeat 1", self.refused("duplicate", lambda rows: rows.append(rows[0])))

    def test_a_missing_row_fails(self) -> None:
        self.assertIn("i3 judge repeat 2", self.refused("missing", lambda rows: rows.pop()))

    def test_a_missing_repeat_fails_when_the_manifest_names_it(self) -> None:
        manifest = {"split": "test", "limit": None, "shard": None, "arms": ["judge"], "repeats": 3}
        (self.folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        out = self.refused("missing", lambda rows: None)
        self.assertEqual(4, out.count("missing: "))

    def test_a_shard_needs_its_own_rows_only(self) -> None:
        manifest = {"split": "test", "limit": None, "shard": "2/2", "arms": ["judge"], "repeats": 2}
        (self.folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        rows = [row for row in self.rows if row["item_id"] in ("i1", "i3")]
        self.assertEqual(0, self.run_check(self.write("scored.jsonl", rows))[0])

    def test_an_unknown_item_fails(self) -> None:
        self.assertIn("i9", self.refused("unknown", lambda rows: rows.append({**rows[0], "item_id": "i9"})))

    def test_an_unscored_row_among_scored_ones_fails(self) -> None:
        def strip(rows: list[Row]) -> None:
            for key in check.SCORE_KEYS:
                del rows[2][key]

        self.refused("unscored", strip)

    def test_a_single_missing_score_key_fails(self) -> None:
        self.refused("unscored", lambda rows: rows[1].pop("secondary"))

    def test_each_changed_score_fails_with_expected_and_got(self) -> None:
        changes: list[Row] = [{"gold": "B"}, {"prediction": "B"}, {"decision": "equal"}, {"secondary": {}}]
        for change in changes:
            self.setUp()
            (key,) = change
            with self.subTest(key):
                out = self.refused("differs", functools.partial(change_first, change))
                self.assertRegex(out, f"{key}: expected .*, got ")

    def test_a_changed_choice_fails(self) -> None:
        self.refused("differs", lambda rows: rows[0].update(tool_arguments=arguments("B", "A")))

    def test_a_row_without_its_key_fails(self) -> None:
        out = self.run_check(self.write("scored.jsonl", [*self.rows, {"arm": "judge", "repeat": 1}]))[1]
        self.assertIn("malformed", out)

    def test_a_repeat_that_is_true_is_no_repeat(self) -> None:
        out = self.run_check(self.write("scored.jsonl", [*self.rows, {**self.rows[0], "repeat": True}]))[1]
        self.assertIn("malformed", out)

    def test_disagreements_are_listed_on_request(self) -> None:
        out = self.run_check(self.write("scored.jsonl", self.rows), "--disagreements")[1]
        self.assertEqual(4, out.count("expected B got A"))

    def test_files_that_cannot_be_read_give_exit_3_and_one_line(self) -> None:
        sound = self.write("scored.jsonl.gz", self.rows).read_bytes()
        cases = {"absent.jsonl": None, "cut.jsonl.gz": sound[:-9], "not.jsonl.gz": b"text", "bad.jsonl": b"{\n"}
        cases["list.jsonl"] = b"[]\n"
        for name, data in cases.items():
            if data is not None:
                (self.folder / name).write_bytes(data)
            code, _, err = self.run_check(self.folder / name)
            with self.subTest(name):
                self.assertEqual((3, 1), (code, err.count("\n")), err)
                self.assertTrue(err.startswith("check: error: "), err)

    def test_a_line_separator_inside_a_text_does_not_split_a_row(self) -> None:
        self.rows[0]["tool_arguments"]["original"]["reason"] = "one\u2028two\x85three"
        path = self.folder / "scored.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows), encoding="utf-8")
        self.assertEqual(0, self.run_check(path)[0])

    def test_the_command_runs_alone_with_only_what_its_docstring_names(self) -> None:
        for name in ("check.py", "eval.json"):
            shutil.copy(ROOT / name, self.folder / name)
        path = self.write("scored.jsonl", self.rows)
        words = [sys.executable, "-I", str(self.folder / "check.py"), str(path)]
        done = subprocess.run(words, cwd="/", capture_output=True, encoding="utf-8", timeout=60, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)


if __name__ == "__main__":
    unittest.main()
