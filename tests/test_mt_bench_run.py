"""The evaluations of evals/ through the runner: recorded replies, own tables, completions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made
from fault_server import FaultServer, Json, Request
from parallel import beside

TOOLKIT = ("run_eval.py", "recipe.py", "check.py", "agreement.py", "client.py", "eval.json", "fixture.jsonl")


def run(folder: str, *arguments: str, expect: int = 0) -> tuple[str, str]:
    """(stdout, stderr) of one command of the toolkit in `folder`, run from elsewhere."""
    command = [sys.executable, "-I", os.path.join(folder, arguments[0]), *arguments[1:]]
    done = subprocess.run(command, cwd=tempfile.gettempdir(), capture_output=True, timeout=120)
    out, errors = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(arguments)}: exit {done.returncode}, expected {expect}\n{out}\n{errors}")
    return out, errors


def copy_toolkit(folder: str) -> None:
    """The committed toolkit in a folder of its own, without built fixtures."""
    for name in TOOLKIT:
        shutil.copy(os.path.join(made.ROOT, name), folder)
    ignored = shutil.ignore_patterns("__pycache__", "runs", "download", "prompts.jsonl", "questions.jsonl")
    shutil.copytree(os.path.join(made.ROOT, "engine"), os.path.join(folder, "engine"), ignore=ignored)
    shutil.copytree(os.path.join(made.ROOT, "evals"), os.path.join(folder, "evals"), ignore=ignored)
    for name in os.listdir(os.path.join(folder, "evals")):
        built = os.path.join(folder, "evals", name, "fixture.jsonl")
        if os.path.exists(built) and name != "probes":  # the probes' fixture is committed, the others are built
            os.unlink(built)


def summary_of(folder: str) -> Any:
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as stream:
        return json.load(stream)


class MadeUp(unittest.TestCase):
    """A made-up release, built, pinned, judged by recorded replies that are made up too."""

    folder: str

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = scratch.name
        copy_toolkit(cls.folder)
        with open(os.path.join(cls.folder, "evals", "mt-bench", "release.json"), "w", encoding="utf-8") as stream:
            json.dump({"rows": len(made.release_rows())}, stream)
        rows = made.write_jsonl(os.path.join(cls.folder, "rows.jsonl"), made.release_rows())
        prompts = made.write_prompts(cls.folder)
        for turn in ("1", "2"):
            run(cls.folder, "evals/mt-bench/build.py", "--from", rows, "--prompts", *prompts, "--turn", turn, "--pin")
        run(cls.folder, "run_eval.py", "--freeze", "--all")

    def evaluation(self, name: str) -> str:
        return os.path.join(self.folder, "evals", name)

    def items(self, name: str = "mt-bench") -> list[dict[str, Any]]:
        with open(os.path.join(self.evaluation(name), "fixture.jsonl"), encoding="utf-8") as stream:
            return [json.loads(line) for line in stream.read().split("\n") if line]

    def replies(self, *lines: dict[str, Any]) -> str:
        return made.write_jsonl(os.path.join(self.folder, "replies.jsonl"), list(lines))

    def line(self, item: dict[str, Any], order: str, mark: str, **more: Any) -> dict[str, Any]:
        return {"item_id": item["item_id"], "order": order, "content": f"Because. [[{mark}]]", "model": "m-1", **more}

    def imported(self, path: str, expect: int = 0) -> tuple[str, str]:
        out, errors = run(
            self.folder,
            "run_eval.py",
            self.evaluation("mt-bench"),
            *("--import-replies", path, "--arm-label", "old-judge", "--out", os.path.join(self.folder, "runs")),
            expect=expect,
        )
        return out.strip(), errors

    def test_a_freeze_keeps_the_pin_of_a_fixture_that_is_not_built(self) -> None:
        with open(os.path.join(self.evaluation("mt-bench-100"), "eval.json"), encoding="utf-8") as stream:
            pinned = json.load(stream)["fixture_sha256"]
        self.assertRegex(pinned, "^[0-9a-f]{64}$")
        _, errors = run(self.folder, "run_eval.py", self.evaluation("mt-bench-100"), "--demo", expect=1)
        self.assertIn("hint: python3 -I evals/mt-bench-100/build.py --help", errors)

    def test_a_release_with_other_oddities_than_the_pinned_ones_warns(self) -> None:
        items = self.items()
        empty = sum(not item[side] for item in items for side in ("answer_a", "answer_b"))
        self.assertNotIn(empty, (0, 4))
        arguments = ["--generate", "--arms", "control-first", "--out", os.path.join(self.folder, "odd"), "--quiet"]
        _, errors = run(self.folder, "run_eval.py", self.evaluation("mt-bench"), *arguments)
        self.assertIn(f"run_eval: warning: known_oddities.empty_answer: expected 4, got {empty}\n", errors)

    def test_two_judge_configurations_of_the_same_pairs_are_compared_each_read_by_its_own_recipe(self) -> None:
        runs = []
        for name in ("mt-bench", "mt-bench-tool"):
            arguments = ["--generate", "--arms", "control-longer", "--out", os.path.join(self.folder, "two"), "--quiet"]
            runs.append(run(self.folder, "run_eval.py", self.evaluation(name), *arguments)[0].strip())
        for sides in (runs, [runs[1], runs[0]], [f"{runs[0]}@1", f"{runs[1]}@1"]):
            with self.subTest(sides):
                out, _ = run(self.folder, "run_eval.py", "--diff", *sides, "--format", "json")
                found = json.loads(out)
                (arm,) = found["arms"]
                self.assertEqual((found["warnings"], arm["changed"]["pair"]), ([], {"k": 0, "n": len(self.items())}))
                self.assertIn("file recipe.py", [entry["setting"] for entry in arm["settings"]])

    def test_recorded_replies_become_a_run_that_is_rescored(self) -> None:
        items = self.items()
        lines = [
            self.line(i, o, "C" if i["gold"] == "equal" else "AB"[(i["gold"] == "B") != (o == "swapped")])
            for i in items
            for o in ("original", "swapped")
        ]
        folder, errors = self.imported(self.replies(*lines))
        self.assertIn(f"--rescore {folder}", errors)
        run(self.folder, "run_eval.py", self.evaluation("mt-bench"), "--rescore", folder, "--bootstrap", "200")
        result = summary_of(folder)
        arm = result["arms"]["old-judge"]
        self.assertEqual((arm["provenance"], arm["model"], arm["listed"]), ("recorded", "m-1", False))
        with_gold = sum(item["gold"] is not None for item in items)
        self.assertEqual((arm["metrics"]["agreement"]["k"], arm["metrics"]["agreement"]["n"]), (with_gold, with_gold))
        self.assertEqual(result["tables"]["figures"]["contradictions"]["old-judge"]["contradicted"], 0)
        self.assertIsNone(result["cost_usd"]["old-judge"]["value"] or None)

    def test_a_pair_without_both_replies_is_missing_and_an_unmarked_one_invalid(self) -> None:
        first, second, third = self.items()[:3]
        unmarked = {**self.line(second, "swapped", "A"), "content": "I cannot say."}
        path = self.replies(
            self.line(first, "original", "A"),
            self.line(second, "original", "A"),
            unmarked,
            self.line(third, "original", "A"),
            self.line(third, "swapped", "A"),
        )
        folder, _ = self.imported(path)
        run(self.folder, "run_eval.py", self.evaluation("mt-bench"), "--rescore", folder, "--bootstrap", "200")
        counts = summary_of(folder)["arms"]["old-judge"]["counts"]
        self.assertEqual(counts, {"ok": 1, "invalid": 1, "failed": 0, "missing": len(self.items()) - 2})

    def test_lines_that_cannot_be_imported_are_named_and_nothing_is_written(self) -> None:
        item = self.items()[0]
        good = self.line(item, "original", "A")
        cases = [
            ([good, good], "replies.jsonl:2: " + item["item_id"] + " original 1 stands twice, first in line 1"),
            ([{**good, "item_id": "q9-t1-x-y"}], "replies.jsonl:1: item 'q9-t1-x-y' is not in the fixture"),
            ([{**good, "order": "first"}], "field 'order': expected original or swapped, got 'first'"),
            ([{**good, "repeat": 0}], "field 'repeat': expected a number from 1"),
            ([{**good, "content": 7}], "field 'content': expected a text or null, got '7'"),
            ([{**good, "content": None}], "expected content, tool_calls or refusal"),
            ([], "no reply to a pair of split 'test'"),
        ]
        before = (
            os.listdir(os.path.join(self.folder, "runs")) if os.path.isdir(os.path.join(self.folder, "runs")) else []
        )
        runs = [os.path.join(self.folder, "runs", name) for name in before]
        n_runs = sum(len(os.listdir(path)) for path in runs)
        for lines, part in cases:
            with self.subTest(part):
                _, errors = self.imported(self.replies(*lines), expect=3)
                self.assertIn(part, errors)
        self.assertEqual(sum(len(os.listdir(path)) for path in runs), n_runs)

    def test_the_second_turn_runs_with_the_files_of_the_first(self) -> None:
        folder = os.path.join(self.folder, "turn2")
        out, _ = run(
            self.folder,
            "run_eval.py",
            self.evaluation("mt-bench-turn2"),
            "--demo",
            "--bootstrap",
            "100",
            "--out",
            folder,
        )
        self.assertIn("S1 and S2, as the paper counts them", out)
        self.assertIn("control-longer", out)

    def test_a_model_that_knows_the_texts_is_found_out_and_another_is_not(self) -> None:
        made.write_jsonl(os.path.join(self.evaluation("mt-bench"), "questions.jsonl"), made.long_questions())
        run(self.folder, "evals/contamination/build.py", "--pin")
        run(self.folder, "run_eval.py", self.evaluation("contamination"), "--freeze")
        known = {
            item["text"]: item["answer_a"] for item in self.items("contamination") if item["source"] == "benchmark"
        }

        def recalls(request: Request) -> Json:
            user = request.json()["messages"][1]["content"]
            rest = next((rest for shown, rest in known.items() if f":\n{shown}\n" in user), None)
            return completion(rest if rest and "MT-Bench" in user else "and say why in a few words")

        def invents(request: Request) -> Json:
            return completion("and say why in a few words")

        for behave, expected in ((recalls, "recall"), (invents, "nothing")):
            with self.subTest(expected), FaultServer(behave) as server:
                folder = os.path.join(self.folder, f"runs-{expected}")
                arguments = ["--arms", "custom", "--base-url", server.base, "--model", "m", "--out", folder, "--quiet"]
                evaluation = self.evaluation("contamination")
                out, _ = run(self.folder, "run_eval.py", evaluation, "--generate", *arguments)
                text, _ = run(self.folder, "run_eval.py", evaluation, "--rescore", out.strip(), "--bootstrap", "200")
                figures = summary_of(out.strip())["tables"]["figures"]["custom"]
                self.assertEqual({found["finding"] for found in figures.values()}, {expected})
                self.assertIn("What may be said", text)


def completion(text: str) -> Json:
    message = {"role": "assistant", "content": text}
    return Json({"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})


load_tests = beside("test_mt_bench_run")


if __name__ == "__main__":
    unittest.main()
