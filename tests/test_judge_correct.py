"""judge.py correct, and the figures of a judged file: means, families, panels, labels against verdicts."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import tempfile
import unittest
from pathlib import Path
from typing import Any

from rooms import room

agreement = room("agreement")
correcting = room("correcting")
judged = room("judged")
judge_modes = room("judge_modes")
build_parser = room("judge").build_parser


def label(item: str, value: Any, kind: str = "score", who: str = "ana") -> dict[str, Any]:
    shown = None if kind == "score" else "original"
    row = {"time": "2026-01-01T00:00:00.000000Z", "annotator": who, "kind": kind, "item": item, "label": value}
    return {**row, "shown": shown, "comment": "", "seconds": 1.0, "content": ""}


class CorrectCase(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def correct(self, whole: Any, labels: list[dict[str, Any]], *words: str, code: int = 0) -> tuple[Any, str]:
        """(the summary, what was said) of a correction."""
        (self.folder / "j.json").write_text(json.dumps(whole), encoding="utf-8")
        (self.folder / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels), encoding="utf-8")
        files = ["--labels", str(self.folder / "l.jsonl"), "--judged", str(self.folder / "j.json")]
        options = build_parser(None).parse_args(["correct", *files, "--format", "json", *words])
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            self.assertEqual(code, correcting.main_correct(options), said.getvalue())
        return json.loads(out.getvalue() or "null"), said.getvalue()

    def graded(self, scores: list[int | None]) -> dict[str, Any]:
        rows = [
            {"id": f"t{i}", "prompt": "p", "answer": "a", "judge": None if s is None else {"score": s, "why": ""}}
            for i, s in enumerate(scores)
        ]
        return {"run": {}, "judge": {"mode": "grade", "judge_model": "m"}, "results": rows}


class TheLabbook(CorrectCase):
    def test_one_that_is_also_read_is_refused_and_stays_as_it_is(self) -> None:
        for name in ("j.json", "l.jsonl"):
            book = self.folder / name
            words = ("--random-sample", "--labbook", str(book))
            _, said = self.correct(self.graded([1, 2]), [label("t0", 1)], *words, code=3)
            self.assertIn("--labbook: expected a file of its own", said)
            self.assertEqual(book.read_bytes().count(b"\n"), name == "l.jsonl")


class Scores(CorrectCase):
    def test_a_judge_one_point_too_kind_is_corrected_to_the_truth(self) -> None:
        rng = random.Random(5)
        truth = [rng.choice((1, 2, 3, 4)) for _ in range(400)]
        labels = [label(f"t{i}", truth[i]) for i in range(60)]
        found, _ = self.correct(self.graded([score + 1 for score in truth]), labels, "--random-sample")
        mean = sum(truth) / len(truth)
        self.assertAlmostEqual(mean + 1, found["judge_only"], 3)
        self.assertAlmostEqual(
            sum(truth[60:]) / 340 * found["ppi"]["lambda"] + (1 - found["ppi"]["lambda"]) * sum(truth[:60]) / 60,
            found["ppi"]["value"],
            3,
        )
        self.assertLess(abs(found["ppi"]["value"] - mean), 0.1)
        self.assertLess(
            found["ppi"]["high"] - found["ppi"]["low"], found["human_only"]["high"] - found["human_only"]["low"]
        )
        self.assertEqual((60, 340, 0), (found["n_labelled"], found["n_unlabelled"], found["no_verdict"]))

    def test_the_human_only_interval_is_the_plain_one(self) -> None:
        values = [1, 5, 3, 3, 4, 2]
        found, _ = self.correct(
            self.graded([3] * 12), [label(f"t{i}", v) for i, v in enumerate(values)], "--random-sample"
        )
        mean = sum(values) / 6
        half = 1.959964 * math.sqrt(sum((v - mean) ** 2 for v in values) / 6 / 6)
        self.assertAlmostEqual(mean - half, found["human_only"]["low"], 3)
        self.assertEqual(0, found["ppi"]["lambda"])

    def test_nothing_is_printed_without_the_statement_about_the_sample(self) -> None:
        found, said = self.correct(self.graded([3] * 4), [label("t0", 3)], code=3)
        self.assertIsNone(found)
        self.assertIn("--random-sample", said)

    def test_the_last_label_counts_skips_do_not_and_people_are_averaged(self) -> None:
        labels = [label("t0", 1), label("t0", 5), label("t0", 3, who="ben"), label("t1", None), label("t2", 2)]
        found, _ = self.correct(self.graded([3] * 9), labels, "--random-sample")
        self.assertEqual(2, found["n_labelled"])
        self.assertAlmostEqual((4 + 2) / 2, found["human_only"]["value"])

    def test_answers_without_a_verdict_are_counted_and_get_the_middle_of_the_scale(self) -> None:
        found, _ = self.correct(self.graded([5, None, 5, 5]), [label("t0", 5), label("t1", 5)], "--random-sample")
        self.assertEqual(1, found["no_verdict"])
        self.assertAlmostEqual((5 + 3 + 5 + 5) / 4, found["judge_only"])

    def test_labels_of_other_items_are_named_and_labels_of_another_kind_are_none(self) -> None:
        _, said = self.correct(self.graded([3] * 4), [label("t0", 3), label("zz", 3)], "--random-sample")
        self.assertIn("zz", said)
        _, said = self.correct(self.graded([3] * 4), [label("t0", "A", "pair")], "--random-sample", code=3)
        self.assertIn("holds no labels (scores)", said)

    def test_a_faulty_label_is_named_by_line_and_field(self) -> None:
        _, said = self.correct(self.graded([3] * 4), [label("t0", 3), label("t1", 9)], "--random-sample", code=3)
        self.assertIn("l.jsonl:2: field 'label'", said)

    def test_one_judge_of_a_panel_can_be_corrected(self) -> None:
        whole = self.graded([4] * 6)
        whole["judge"].update(judge_model="panel", judges={"kind": {}, "hard": {}})
        for row in whole["results"]:
            row["judges"] = {"kind": {"score": 5, "why": ""}, "hard": {"score": 1, "why": ""}}
        labels = [label("t0", 3), label("t1", 4)]
        for name, expected in ((None, 4), ("kind", 5), ("hard", 1)):
            words = ["--random-sample", *(["--judge-model", name] if name else [])]
            self.assertEqual(expected, self.correct(whole, labels, *words)[0]["judge_only"])
        self.assertIn("holds no judge 'other'", self.correct(whole, labels, "--judge-model", "other", code=3)[1])


class Pairs(CorrectCase):
    def test_a_win_rate_is_corrected_and_rogan_gladen_stands_beside_it(self) -> None:
        rng = random.Random(3)
        truth = [rng.random() < 0.4 for _ in range(500)]
        seen = [win if rng.random() < 0.85 else not win for win in truth]
        rows = [
            {"id": f"t{i}", "prompt": "p", "answer_a": "a", "answer_b": "b", "decision": "A" if win else "B"}
            for i, win in enumerate(seen)
        ]
        whole = {"judge": {"mode": "compare", "judge_model": "m"}, "pairs": rows}
        labels = [label(f"t{i}", "A" if truth[i] else "B", "pair") for i in range(100)]
        found, _ = self.correct(whole, labels, "--random-sample")
        rate = sum(truth) / len(truth)
        for name in ("ppi", "rogan_gladen", "human_only"):
            self.assertLess(found[name]["low"], rate, name)
            self.assertGreater(found[name]["high"], rate, name)
        matches = [seen[i] for i in range(100) if truth[i]]
        self.assertAlmostEqual(sum(matches) / len(matches), found["rogan_gladen"]["q1"], 4)


class Figures(unittest.TestCase):
    def test_the_bootstrap_of_a_mean_agrees_with_the_slow_one(self) -> None:
        rng = random.Random(1)
        scores = [rng.choice((1, 2, 2, 5)) for _ in range(200)]
        names = [f"q{i // 4}" for i in range(200)]
        fast = judged.mean_with_interval(scores, names, 1, 7, "x", 4000)
        slow = agreement.mean_estimate([float(s) for s in scores], names, seed=7, name="x", n_resamples=4000)
        self.assertAlmostEqual(slow.value, fast["value"], 3)
        width = slow.interval.high - slow.interval.low
        self.assertAlmostEqual(slow.interval.low, fast["low"], delta=0.08 * width)
        self.assertAlmostEqual(slow.interval.high, fast["high"], delta=0.08 * width)

    def test_undefined_means_have_a_reason(self) -> None:
        self.assertEqual((None, "no_items"), self.value_and_reason([]))
        self.assertEqual((3.0, "too_few_clusters"), self.value_and_reason([3]))
        self.assertEqual((4.0, "degenerate_resamples"), self.value_and_reason([4, 4, 4]))

    def value_and_reason(self, scores: list[int]) -> tuple[float | None, str | None]:
        found = judged.mean_with_interval(scores, range(len(scores)), 1, 7, "x", 200)
        return found["value"], found["reason"]

    def test_the_rank_correlation_interval_follows_its_formula(self) -> None:
        found = agreement.spearman_interval(0.5, 28)
        half = 1.959963984540054 * math.sqrt(1.125 / 25)
        self.assertAlmostEqual(math.tanh(math.atanh(0.5) - half), found.low)
        self.assertAlmostEqual(math.tanh(math.atanh(0.5) + half), found.high)
        self.assertEqual("no_items", agreement.spearman_interval(None, 28).reason)
        self.assertEqual("degenerate_resamples", agreement.spearman_interval(1.0, 28).reason)

    def test_a_judge_of_its_own_answers_is_known_under_other_spellings(self) -> None:
        same = [
            ("gpt-6.1-sol", "openai/gpt-6.1-sol"),
            ("M-1", "m-1"),
            ("gpt-6.1-sol", "gpt-6.1-sol-2026-05-04"),
            ("qwen3:8b", "qwen3"),
        ]
        for judge, model in same:
            self.assertTrue(judged.kinship(judge, model)["self_judged"], (judge, model))
        self.assertFalse(judged.kinship("gpt-6.1-sol", "gpt-6.1-luna")["self_judged"])

    def test_families_are_found_and_unknown_names_share_none(self) -> None:
        cases = {
            "openai/o4-mini": "openai",
            "claude-haiku-5-5": "anthropic",
            "google/gemma-3-27b": "google",
            "Phi-4": "microsoft",
        }
        for name, family in cases.items():
            self.assertEqual(family, judged.family_of(name), name)
        self.assertEqual({"self_judged": False, "same_family": None}, judged.kinship("house-model", "other-model"))

    def test_a_panels_score_is_the_most_given_else_the_lower_median(self) -> None:
        cases = [([5, 1, 5], 5), ([1, 2, 4], 2), ([2, 4], 2), ([3], 3), ([], None), ([1, 1, 5, 5], 1)]
        for scores, expected in cases:
            self.assertEqual(expected, judged.panel_score(scores), scores)

    def test_the_kind_of_a_pair_follows_from_both_orders(self) -> None:
        def reply(choice: str) -> dict[str, Any]:
            state = choice if choice in ("failed", "invalid") else "ok"
            return {"state": state, "choice": "invalid" if state != "ok" else choice}

        cases = [
            ("A", "B", "A"),
            ("B", "A", "B"),
            ("equal", "equal", "equal"),
            ("A", "A", "flip"),
            ("A", "equal", "flip"),
        ]
        cases += [("A", "invalid", "invalid"), ("invalid", "failed", "failed")]
        for original, swapped, kind in cases:
            both = {"original": reply(original), "swapped": reply(swapped)}
            self.assertEqual(kind, judged.pair_kind(both), (original, swapped))
        self.assertEqual("missing", judged.pair_kind({"original": reply("A")}))

    def test_runs_of_one_model_get_names_of_their_own(self) -> None:
        runs = [{"model": "m", "quant": "Q4"}, {"model": "m", "quant": "Q8"}]
        self.assertEqual(["m Q4", "m Q8"], judge_modes.labels_of(runs, ["a.json", "b.json"]))
        self.assertEqual(["m Q4 #1", "m Q4 #2"], judge_modes.labels_of([runs[0], runs[0]], ["a.json", "b.json"]))

    def test_a_run_that_names_no_model_is_called_by_its_file(self) -> None:
        runs = [{"model": None, "quant": None}, {"model": "m", "quant": None}]
        self.assertEqual(["a.json", "m"], judge_modes.labels_of(runs, ["x/a.json", "b.json"]))
        self.assertEqual({"self_judged": None, "same_family": None}, judged.kinship("gpt-x", None))

    def test_items_without_a_category_make_no_category_of_their_own_unless_others_have_one(self) -> None:
        items = [({"category": name}, None) for name in ("", "x", "")]
        self.assertEqual({"(none)": 2, "x": 1}, {key: len(group) for key, group in judged.by_category(items).items()})
        self.assertEqual({}, judged.by_category(items[:1]))

    def test_fifths_put_equal_lengths_together_and_use_the_whole_scale(self) -> None:
        self.assertEqual([1, 2, 3, 4, 5], judge_modes.fifths([10, 20, 30, 40, 50]))
        self.assertEqual([1, 1, 1], judge_modes.fifths([7, 7, 7]))


if __name__ == "__main__":
    unittest.main()
