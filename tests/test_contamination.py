"""The contamination probe: what is cut, shown and hidden, and how recall is told from chance."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from collections import Counter
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mtbench_release as made
from rooms import room

EVALS = os.path.join(made.ROOT, "evals")
room("agreement")
build = made.module(os.path.join(EVALS, "contamination", "build.py"), "contamination_build")
recipe = made.module(os.path.join(EVALS, "contamination", "recipe.py"), "contamination_recipe")
check = made.module(os.path.join(EVALS, "contamination", "check.py"), "contamination_check")
with open(os.path.join(EVALS, "contamination", "eval.json"), encoding="utf-8") as stream:
    CONFIG = json.load(stream)

ITEM: dict[str, Any] = {
    "item_id": "half-x",
    "kind": "half",
    "text": "Describe the old mill beside the river and",
    "answer_a": "explain in twelve lines why its wheel turned both ways after the flood of that year",
    "answer_b": "compare the two bridges by their age, their cost and the number of carts a day",
}


def arguments(guided: str | None, general: str | None) -> dict[str, Any]:
    def part(text: str | None) -> dict[str, Any]:
        return {"choice": "invalid", "reason": "refusal"} if text is None else {"choice": "text", "reason": text}

    return {"original": part(guided), "swapped": part(general)}


def value(item: dict[str, Any], guided: str | None, general: str | None, name: str) -> float:
    found: float = check.score(item, arguments(guided, general), CONFIG)["secondary"][name]["score"]
    return found


class Echo(unittest.TestCase):
    def test_a_repeated_shown_piece_gives_nothing(self) -> None:
        self.assertEqual(value(ITEM, ITEM["text"], "x", "f1_guided"), 0.0)

    def test_a_rest_behind_a_repetition_of_the_shown_piece_counts_in_full(self) -> None:
        for echo in (ITEM["text"] + " ", "beside the river and... ", ITEM["text"].upper() + "\n\n"):
            whole = echo + ITEM["answer_a"]
            self.assertEqual(value(ITEM, whole, "x", "f1_guided"), 1.0, echo)
            self.assertEqual(value(ITEM, whole, "x", "exact"), 1, echo)

    def test_two_words_at_the_seam_are_no_repetition(self) -> None:
        self.assertEqual(check.continuation("river and so on", ITEM["text"]), "river and so on")

    def test_a_run_that_stands_in_the_shown_piece_is_no_run(self) -> None:
        item = {**ITEM, "answer_a": "sketch the old mill beside the river from above"}
        self.assertEqual(value(item, "paint the old mill beside the river now", "x", "run_words"), 0)


class Scores(unittest.TestCase):
    def test_recall_is_flagged(self) -> None:
        for name in ("exact", "near_exact", "verbatim_run"):
            self.assertEqual(value(ITEM, ITEM["answer_a"].upper(), "x", name), 1, name)

    def test_a_near_miss_is_near_and_not_exact(self) -> None:
        near = ITEM["answer_a"].replace("twelve", "ten")
        found = {name: value(ITEM, near, "x", name) for name in ("exact", "near_exact", "verbatim_run", "run_words")}
        self.assertEqual(found, {"exact": 0, "near_exact": 1, "verbatim_run": 1, "run_words": 13})

    def test_chance_wording_is_taken_off(self) -> None:
        other = check.score(ITEM, arguments(ITEM["answer_b"], ""), CONFIG)
        self.assertLess(other["score"], -0.5)
        self.assertEqual(other["secondary"]["f1_mismatch"]["score"], 1.0)

    def test_a_refused_completion_is_an_empty_one_and_counted(self) -> None:
        found = check.score(ITEM, arguments(None, ITEM["answer_a"]), CONFIG)
        self.assertEqual(found["score"], 0.0)
        self.assertEqual(found["secondary"]["valid_output"]["score"], 0)
        self.assertEqual(found["secondary"]["gain_general"]["score"], -1.0)

    def test_the_secondary_scores_are_those_of_the_settings(self) -> None:
        declared = [entry["id"] for entry in CONFIG["secondary"]]
        self.assertEqual(list(check.score(ITEM, arguments("a", "b"), CONFIG)["secondary"]), declared)


class Requests(unittest.TestCase):
    def test_only_the_guided_request_names_the_data_set(self) -> None:
        for kind in ("half", "turn2"):
            guided, general = (
                request["messages"][1]["content"] for request in recipe.plan_requests({**ITEM, "kind": kind}, CONFIG)
            )
            self.assertEqual((guided.count("MT-Bench") > 0, general.count("MT-Bench")), (True, 0))
            self.assertIn(ITEM["text"], general)

    def test_the_hidden_rest_is_never_shown(self) -> None:
        text = json.dumps(recipe.plan_requests(ITEM, CONFIG))
        self.assertNotIn("wheel", text)
        self.assertNotIn("bridges", text)

    def test_a_completion_is_taken_whole_and_silence_has_a_reason(self) -> None:
        def parsed(content: Any, finish: str = "stop", **more: Any) -> Any:
            return recipe.parse({"choices": [{"message": {"content": content, **more}, "finish_reason": finish}]})

        self.assertEqual(parsed(" the rest \n")["reason"], "the rest")
        self.assertEqual(parsed("the re", "length")["state"], "ok")
        self.assertEqual(parsed("<think>no</think>yes")["reason"], "yes")
        cases = [
            (parsed(""), "no_verdict"),
            (parsed("", "length"), "truncated"),
            (parsed(None, refusal="no"), "refusal"),
            (parsed("", reasoning="hm"), "reasoning_only"),
            (recipe.parse(None), "no_verdict"),
        ]
        for found, code in cases:
            self.assertEqual((found["state"], found["code"]), ("invalid", code))


class Build(unittest.TestCase):
    def test_no_item_is_its_own_mismatch(self) -> None:
        items = [{"item_id": f"i{n}", "category": "ab"[n % 2], "answer_a": f"r{n}", "kind": "half"} for n in range(9)]
        build.add_mismatches(items)
        for item in items:
            other = next(one for one in items if one["item_id"] == item["mismatch"])
            self.assertNotEqual(item["item_id"], other["item_id"])
            self.assertEqual((item["category"], item["answer_b"]), (other["category"], other["answer_a"]))
        self.assertEqual(len({item["mismatch"] for item in items}), 9)

    def test_a_category_with_one_item_is_refused(self) -> None:
        items = [{"item_id": "i", "category": "a", "answer_a": "r", "kind": "half", "source": "fresh"}]
        with self.assertRaisesRegex(build.BuildError, "half, fresh, a: expected 2 or more items, got 1"):
            build.add_mismatches(items)

    def test_the_fresh_second_turns_are_long_enough_and_cover_every_category(self) -> None:
        rows = build.read_rows(os.path.join(EVALS, "contamination", "fresh_turns.jsonl"), ("category", "turns"))
        self.assertEqual(set(Counter(row["category"] for row in rows).values()), {4})
        self.assertGreaterEqual(len(rows), 30)
        self.assertTrue(all(len(row["turns"][1].split()) >= 8 for row in rows))

    def test_the_label_probe_hides_answers_and_balances_conditions(self) -> None:
        item = {
            "item_id": "q1-t1-a-b",
            "text": "Which?",
            "answer_a": "secret one",
            "answer_b": "secret two",
            "gold": "A",
            "category": "stem",
            "cluster": "q1",
            "model_a": "ash",
            "model_b": "oak",
        }
        others = [{**item, "item_id": f"q1-{n}"} for n in range(6)] + [{**item, "item_id": "tie", "gold": "equal"}]
        rows = build.label_probe([item, *others])
        self.assertEqual(Counter(row["condition"] for row in rows), {"named": 3, "names": 3, "masked": 3})
        self.assertNotIn("secret", json.dumps(rows))
        by_condition = {row["condition"]: row for row in rows}
        self.assertEqual(by_condition["names"]["text"], "(withheld)")
        self.assertEqual(by_condition["masked"]["answer_a"], by_condition["masked"]["answer_b"])

    def test_both_probes_are_built_the_same_twice(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            evals = made.copy_evaluations(folder)
            own = made.write_jsonl(
                os.path.join(folder, "own.jsonl"),
                [
                    {
                        "item_id": f"{name}-{n}",
                        "category": name,
                        "text": " ".join(f"{name}{n}{w}" for w in range(20 + n)),
                    }
                    for name in ("writing", "stem")
                    for n in range(12)
                ],
            )
            source = os.path.join(evals, "mt-bench")
            questions = [
                {"question_id": n, "category": "ab"[n % 2], "turns": [" ".join("wxyz" * (n + 5)), "v " * 9]}
                for n in range(6)
            ]
            made.write_jsonl(os.path.join(source, "questions.jsonl"), questions)
            made.write_jsonl(os.path.join(source, "fixture.jsonl"), [])
            script = made.module(os.path.join(evals, "contamination", "build.py"), "contamination_build_copy")
            for arguments in (["--pin"], []):
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    self.assertEqual(script.main(["--own", own, *arguments]), 0)
            self.assertIn("benchmark half 6  fresh half 20  benchmark turn2 6  fresh turn2 32", out.getvalue())
            made.write_jsonl(os.path.join(source, "questions.jsonl"), questions[:-1])
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                self.assertEqual(script.main(["--own", own]), 1)
            self.assertIn("fixture.jsonl: expected sha256", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
