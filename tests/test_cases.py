"""The table of collected cases is whole and true; here are the cases about figures, files and screens left over."""

from __future__ import annotations

import ast
import contextlib
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import cases_covered
from fault_server import FaultServer, Json, Request, judge
from rooms import ROOT, SHARED, options_of, room

agreement, evidence, generate, judged = room("agreement"), room("evidence"), room("generate"), room("judged")
recipe, run_eval, modes = room("recipe"), room("run_eval"), room("modes")
room("check")
CONFIG, INPUTS = run_eval.verified(str(ROOT))
CASES = SHARED / "cases" / "cases.jsonl"


# === The table ===


def test_names(path: Path) -> set[str]:
    """Class.method of every test in a file; a subclass of a class of the file has its tests too."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


class TheTable(unittest.TestCase):
    def test_every_test_that_is_named_exists_and_its_file_names_the_case(self) -> None:
        for case, tests in cases_covered.COVERED.items():
            for test in tests:
                with self.subTest(case=case, test=test):
                    module, _, name = test.partition(".")
                    path = ROOT / "tests" / f"{module}.py"
                    self.assertTrue(path.exists(), f"{path.name} is missing")
                    self.assertIn(name, test_names(path))
                    self.assertRegex(path.read_text(encoding="utf-8"), re.compile(rf"(?<![A-Za-z0-9]){case}", re.I))

    def test_every_decision_of_our_own_is_about_a_case_in_the_table(self) -> None:
        self.assertLessEqual(set(cases_covered.DECIDED), set(cases_covered.COVERED))

    @unittest.skipUnless(CASES.exists(), "no ../shared/cases/cases.jsonl here")
    def test_every_collected_case_is_in_the_table_and_no_other(self) -> None:
        lines = CASES.read_text(encoding="utf-8").split("\n")
        collected = {json.loads(line)["id"] for line in lines if line}
        self.assertEqual(collected - set(cases_covered.COVERED), set())
        self.assertEqual(set(cases_covered.COVERED) - collected, set())


# === Figures ===


def compared(kinds: dict[str, int]) -> dict[str, Any]:
    """judge.py's summary of a against b for so many pairs of each kind."""
    choices = {
        "A": ("A", "B"),
        "B": ("B", "A"),
        "equal": ("equal", "equal"),
        "flip": ("A", "A"),
        "invalid": ("A", None),
    }
    pairs: list[dict[str, Any]] = []
    verdicts: dict[str, Any] = {}
    for kind, count in kinds.items():
        for _ in range(count):
            name = f"p{len(pairs)}"
            pairs.append({"item_id": name, "task": name, "category": "c", "answer_a": "x", "answer_b": "yy"})
            states = [
                {"state": "ok", "choice": c} if c else {"state": "invalid", "choice": "invalid", "code": "bad_label"}
                for c in choices[kind]
            ]
            verdicts[name] = dict(zip(("original", "swapped"), states))
    runs = [{"model": name, "quant": "", "settings": ""} for name in ("one", "two")]
    options = type("Options", (), {"seed": 1, "bootstrap": 100})
    found: dict[str, Any] = judged.compare_summary(runs[0], runs[1], pairs, verdicts, "j", 0, options)
    return found


class Figures(unittest.TestCase):
    def test_s01_one_label_everywhere_leaves_kappa_undefined_with_a_reason(self) -> None:
        found = agreement.kappa(["B"] * 4, ["B"] * 4)
        self.assertEqual((found.value, found.reason, found.n), (None, "single_label", 4))
        self.assertEqual(agreement.raw_agreement(["B"] * 4, ["B"] * 4).value, 1.0)

    def test_s02_high_agreement_by_chance_is_kappa_zero_with_both_numbers(self) -> None:
        found = agreement.kappa(["A"] * 19 + ["B"], ["A"] * 20)
        self.assertEqual((found.value, found.po, found.pe), (0.0, 0.95, 0.95))
        self.assertEqual(found.constant_side, "judge")

    def test_s03_an_equal_pair_is_half_a_win(self) -> None:
        for kinds, rate in (({"A": 30, "B": 70}, 0.3), ({"A": 20, "equal": 60, "B": 20}, 0.5), ({"equal": 3}, 0.5)):
            with self.subTest(kinds=kinds):
                found = compared(kinds)
                self.assertAlmostEqual(found["win_rate"]["value"], rate)
                counts = (found["wins_a"], found["ties"], found["wins_b"])
                self.assertEqual(counts, tuple(kinds.get(kind, 0) for kind in ("A", "equal", "B")))

    def test_s04_s06_a_pair_without_a_verdict_is_neither_win_nor_loss_nor_tie(self) -> None:
        found = compared({"A": 3, "B": 5, "invalid": 2})
        self.assertEqual((found["compared"], found["invalid"], found["ties"]), (8, 2, 0))
        self.assertAlmostEqual(found["win_rate"]["value"], 3 / 8, places=4)

    def test_s05_invalid_verdicts_stay_in_the_denominator(self) -> None:
        gold = ["A"] * 6
        found = agreement.raw_agreement(gold, ["A"] * 4 + ["invalid"] * 2)
        self.assertEqual((found.k, found.n, found.n_invalid, found.value), (4, 6, 2, 4 / 6))
        self.assertEqual(agreement.raw_agreement(gold, ["A"] * 4 + [None] * 2).n, 4)

    def test_s07_s09_each_pair_of_choices_is_counted_as_what_it_is(self) -> None:
        for original, swapped, kind, decision in (
            ("A", "B", "A", "A"),
            ("B", "A", "B", "B"),
            ("equal", "equal", "equal", "equal"),
            ("A", "A", "flip", "equal"),
            ("B", "B", "flip", "equal"),
            ("A", "equal", "flip", "equal"),
            ("equal", "A", "flip", "equal"),
            ("A", "invalid", "invalid", "invalid"),
            ("invalid", "equal", "invalid", "invalid"),
            ("invalid", "invalid", "invalid", "invalid"),
        ):
            with self.subTest(original=original, swapped=swapped):
                found = {
                    order: {"state": "invalid" if choice == "invalid" else "ok", "choice": choice}
                    for order, choice in (("original", original), ("swapped", swapped))
                }
                self.assertEqual(judged.pair_kind(found), kind)
                self.assertEqual(agreement.resolve(original, swapped), decision)
        counted = agreement.position_bias([("A", "B"), ("A", "A"), ("A", "invalid")])
        self.assertEqual((counted.n, counted.invalid, counted.k_first), (3, 1, 1))

    def test_s10_choices_are_kept_as_shown_and_mapped_by_one_function(self) -> None:
        given = (("A", False), ("A", True), ("B", True), ("equal", False), ("equal", True))
        self.assertEqual([agreement.decision_from_choice(*one) for one in given], ["A", "B", "A", "equal", "equal"])

    def test_s11_votes_without_a_unique_plurality_are_no_consensus(self) -> None:
        for votes, gold in (
            (["B", "A"], None),
            (["A", "A", "B", "B"], None),
            (["B", "B", "A", None], "B"),
            (["equal", "B", "A"], None),
            ([None], None),
        ):
            with self.subTest(votes=votes):
                self.assertEqual(agreement.gold_from_votes(votes), gold)
                self.assertEqual(agreement.gold_from_votes(votes[::-1]), gold)

    def test_s12_items_with_fewer_than_two_ratings_leave_pairwise_agreement(self) -> None:
        found = agreement.fleiss_kappa([["B", None, None], ["A", None, "B"], ["A", "A", "A"], [None, None, None]])
        self.assertEqual((found.n_items, found.pa), (2, 0.5))

    def test_s14_agreement_by_vote_and_by_item_are_two_figures(self) -> None:
        people = {1: ["model_a", "model_a", "model_b"], 2: ["model_b"]}
        votes = [
            {"question_id": item, "model_a": "m", "model_b": "n", "turn": 1, "winner": winner, "judge": judge}
            for item, winners in people.items()
            for judge, winner in [(["gpt-4", "pair-v2"], "model_a")]
            + [(f"expert_{i}", w) for i, w in enumerate(winners)]
        ]
        self.assertEqual(agreement.mtbench_agreement(votes)[1, "with_tie", "gpt4-pair_human"], (2, 4))
        label = {"model_a": "A", "model_b": "B"}
        gold = [agreement.gold_from_votes(label[one] for one in winners) for winners in people.values()]
        self.assertEqual(agreement.raw_agreement(gold, ["A", "A"]).value, 0.5)

    def test_s15_files_without_a_common_item_are_refused(self) -> None:
        texts = ("category", "prompt", "rubric", "reference")
        with tempfile.TemporaryDirectory() as folder:
            for name, ids in (("a.json", ("p1", "p2")), ("b.json", ("q1", "q2"))):
                rows = [{**dict.fromkeys(texts, "x"), "id": one, "answer": f"an answer to {one}"} for one in ids]
                run = {"model": name[0], "quant": "", "settings": ""}
                whole = {"run": run, "results": rows}
                Path(folder, name).write_text(json.dumps(whole), encoding="utf-8")
            command = [sys.executable, "-I", str(ROOT / "judge.py"), "compare", "--results-a", "a.json"]
            command += ["--results-b", "b.json", "--judge-model", "control-first"]
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(b"the files share no id", done.stderr)
            self.assertIn(b"only in b, so not compared: q1, q2", done.stderr)

    def test_s16_a_difference_is_over_the_items_both_judges_have(self) -> None:
        found = agreement.paired(["A", "A", "A"], ["A", "A", "B"], ["A", None, "A"])
        self.assertEqual((found.n, found.n_missing, found.better, found.worse), (2, 1, 0, 1))


# === Requests and runs ===


class RunTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_mode(self, *arguments: str, expect: int = 0) -> tuple[str, str]:
        """(last line of stdout, stderr) of a mode, run in this process."""
        out, errors = io.StringIO(), io.StringIO()
        few = ("--bootstrap", "50") if "--rescore" in arguments else ()
        options = options_of(*arguments, "--out", str(self.folder), *few)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = modes.main(options, str(ROOT), CONFIG, INPUTS)
        self.assertEqual(code, expect, out.getvalue() + errors.getvalue())
        return out.getvalue().strip().split("\n")[-1], errors.getvalue()

    def generate(self, behaviour: Any, *more: str, expect: int = 0) -> tuple[str, str]:
        with FaultServer(behaviour) as server:
            base = ("--generate", "--arms", "custom", "--base-url", server.base, "--model", "m", "--quiet")
            return self.run_mode(*base, "--limit", "4", "--repeats", "1", *more, expect=expect)


def prose(request: Request) -> Json:
    choice = {"message": {"content": "Both have their merits."}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 200, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}}
    return Json({"model": "m", "choices": [choice], "usage": usage})


class Requests(RunTest):
    def test_q09_extra_fields_stand_in_the_manifest_and_prose_stays_invalid(self) -> None:
        run, _ = self.generate(prose, "--extra-body", '{"thinking": {"type": "disabled"}}')
        manifest = evidence.read_manifest(run)
        self.assertEqual(manifest["arm_settings"]["custom"]["extra_body"], {"thinking": {"type": "disabled"}})
        rows = list(evidence.read_rows(os.path.join(run, "raw.jsonl.gz")))
        kept = rows[0]["replies"]["original"]
        self.assertEqual((kept["state"], kept["code"], kept["usage"]["reasoning"]), ("invalid", "no_tool_call", 5))

    def test_q11_a_schema_that_is_ignored_is_invalid_and_warned_about_once(self) -> None:
        run, errors = self.generate(prose, "--output-mode", "json_schema")
        self.assertEqual(errors.count("replies in a row without a verdict (no_verdict)"), 1)
        self.assertEqual(evidence.read_manifest(run)["totals"]["custom"]["invalid"], 8)


class Kept(RunTest):
    def test_s17_a_stored_figure_or_choice_is_never_trusted(self) -> None:
        run, _ = self.generate(judge())
        self.run_mode("--rescore", run)
        path = Path(run, "summary.json")
        before = path.read_bytes()
        path.write_bytes(before.replace(b'"agreement"', b'"disagreement"'))
        self.run_mode("--rescore", run)
        self.assertEqual(path.read_bytes(), before)
        rows = list(evidence.read_rows(os.path.join(run, "raw.jsonl.gz")))
        said = rows[1]["tool_arguments"]["swapped"]
        said["choice"] = {"A": "B", "B": "equal", "equal": "A"}[said["choice"]]
        evidence.write_rows(os.path.join(run, "raw.jsonl.gz"), rows)
        _, errors = self.run_mode("--rescore", run, expect=1)
        self.assertIn("the kept reply says", errors)

    def test_c04_c05_a_cut_journal_loses_its_last_line_and_nothing_else(self) -> None:
        path = str(self.folder / "journal.jsonl")
        lines = [evidence.row_bytes({"item_id": f"p{number}", "text": "\u5317" * number}) for number in range(20)]
        whole = b"".join(lines)
        for size in (len(whole), len(whole) - 1, len(whole) - len(lines[-1]), len(lines[0]) + 3, 2, 0):
            with self.subTest(size=size):
                Path(path).write_bytes(whole[:size])
                dropped = evidence.drop_torn_tail(path)
                kept = [line for _, _, line in evidence.journal_lines(path)]
                self.assertEqual(kept, lines[: len(kept)])
                closed = size == len(whole) - 1  # only its line feed was missing: it is kept
                self.assertEqual(sum(map(len, kept)) + dropped, size + closed)
        damaged = self.folder / "raw.jsonl.gz"
        damaged.write_bytes(gzip.compress(whole)[:-40])
        with self.assertRaisesRegex(evidence.EvidenceError, "raw.jsonl.gz: cannot be read"):
            list(evidence.read_lines(str(damaged)))

    def test_c06_every_reply_is_on_disk_before_the_next_is_asked_for(self) -> None:
        standard, seen = judge(), []

        def watching(request: Request) -> Any:
            found = list(self.folder.glob("*/*/journal.jsonl"))
            seen.append(found[0].read_bytes().count(b"\n") if found else 0)
            return standard(request)

        self.generate(watching)
        self.assertEqual(seen, list(range(8)))


class Anywhere(unittest.TestCase):
    def small(self, folder: Path) -> None:
        """An evaluation of two pairs whose ids and texts are in no Latin script."""
        config = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))
        files = {"recipe": str(ROOT / "recipe.py"), "check": str(ROOT / "check.py")}
        config.update(slug="small", repeats=1, files=files, bootstrap={"resamples": 50, "level": 0.95})
        (folder / "eval.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        text = {
            "split": "test",
            "text": "\u9996\u90fd\u306f?",
            "answer_a": "\u5317\u4eac",
            "answer_b": "S\u00e3o \U0001f600 long",
        }
        rows = [{"item_id": f"\u5317\u4eac-{number}", "gold": "A", **text} for number in range(2)]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "fixture.jsonl").write_bytes(lines.encode("utf-8"))
        run_eval.freeze_config(str(folder))

    def test_d06_c08_ids_of_any_script_survive_a_plain_locale_and_a_foreign_code_page(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.small(folder)
            wide = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"}
            command = [sys.executable, str(ROOT / "run_eval.py"), str(folder), "--demo", "--disagreements"]
            with open(folder / "screen.txt", "wb") as screen:
                done = subprocess.run(
                    [*command, "--out", str(folder / "runs")],
                    stdout=screen,
                    stderr=subprocess.PIPE,
                    env=wide,
                    timeout=60,
                )
            self.assertEqual((done.returncode, b"Traceback" in done.stderr), (0, False), done.stderr)
            self.assertIn("\u5317\u4eac-0", (folder / "screen.txt").read_text(encoding="utf-8"))
            raw = next((folder / "runs").glob("*/*/raw.jsonl.gz"))
            self.assertIn("\u5317\u4eac-1", gzip.decompress(raw.read_bytes()).decode("utf-8"))

    def test_c09_a_reader_that_goes_away_is_no_error(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable,
                "-I",
                str(ROOT / "run_eval.py"),
                "--plan",
                "--arms",
                "pareto",
                "--format",
                "json",
            ]
            read_end, write_end = os.pipe()
            os.close(read_end)
            try:
                done = subprocess.run(command, cwd=folder, stdout=write_end, stderr=subprocess.PIPE, timeout=60)
            finally:
                os.close(write_end)
            self.assertIn(done.returncode, (0, 141))
            self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    unittest.main()
