"""engine/plan.py: counts, costs and bounds of a plan against plain sums, and the progress line."""

from __future__ import annotations

import io
import json
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import receipt_folders
import runner
from rooms import ROOT, room

plan, evidence, evaluation, recipe = room("plan"), room("evidence"), room("evaluation"), room("recipe")
fixtures, generate, agreement = room("fixtures"), room("generate"), room("agreement")
CONFIG: dict[str, Any] = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))
PRICE = {"input": 2.0, "cached": 0.1, "output": 10.0}
ARM = {"endpoint": "https://judge.example/v1", "model": "judge-1", "rpm": 30, "price_usd_per_mtok": PRICE}


def options(**changes: Any) -> SimpleNamespace:
    base = {"repeats": 3, "rpm": None, "calibrate": None, "max_usd": None, "split": "test", "out": "runs"}
    return SimpleNamespace(**{**base, **changes})


def planned(arms: dict[str, Any], pairs: int = 20, **changes: Any) -> dict[str, Any]:
    items, _ = fixtures.load_items(b"".join(evidence.row_bytes(runner.item(n)) for n in range(pairs)), "f")
    frozen = evaluation.Evaluation(".", CONFIG, items, [], recipe, None, {}, {})
    listed = [evaluation.Arm(name, settings) for name, settings in arms.items()]
    found: dict[str, Any] = plan.estimate(frozen, listed, items, options(**changes))
    return found


class Estimate(unittest.TestCase):
    def test_requests_are_pairs_times_orders_times_repeats_of_every_arm(self) -> None:
        found = planned({"one": ARM, "two": ARM})
        self.assertEqual((120, 240), (found["arms"]["one"]["requests"], found["requests"]))

    def test_costs_follow_from_tokens_and_prices(self) -> None:
        arm = planned({"one": ARM})["arms"]["one"]
        for end in ("", "_at_most"):
            dollars = (arm["input_tokens" + end] * 2 + arm["output_tokens" + end] * 10) / 1e6
            self.assertAlmostEqual(dollars, arm["cost_usd" + end], 4)

    def test_the_bound_is_every_byte_in_and_the_whole_limit_out(self) -> None:
        arm = planned({"one": ARM}, pairs=2)["arms"]["one"]
        size = 0
        for number in range(2):
            for payload in recipe.plan_requests(runner.item(number), CONFIG):
                size += len(json.dumps(payload, ensure_ascii=False).encode())
        self.assertEqual(3 * size, arm["input_tokens_at_most"])
        self.assertEqual(12 * CONFIG["max_tokens"], arm["output_tokens_at_most"])

    def test_minutes_come_from_the_pace(self) -> None:
        self.assertEqual(4.0, planned({"one": ARM})["arms"]["one"]["minutes"])
        self.assertEqual(2.0, planned({"one": ARM}, rpm=60)["arms"]["one"]["minutes"])

    def test_an_arm_without_price_or_pace_has_unknown_cost_and_time(self) -> None:
        arm = planned({"one": {"endpoint": "http://127.0.0.1:1/v1", "model": "m"}})["arms"]["one"]
        self.assertEqual([None] * 3, [arm["cost_usd"], arm["cost_usd_at_most"], arm["minutes"]])
        self.assertIn("unknown", "\n".join(plan.arm_lines("one", arm)))

    def test_a_control_costs_nothing(self) -> None:
        arm = planned({"c": {"control": "first"}})["arms"]["c"]
        self.assertEqual((0, 0.0), (arm["input_tokens_at_most"], arm["cost_usd_at_most"]))

    def test_the_first_pairs_of_a_set_in_order_are_called_no_sample(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            rows = [{**runner.item(number), "category": f"c{number // 4}"} for number in range(12)]
            made = runner.make_evaluation(Path(folder) / "e", rows)
            for limit, words in ((5, "of 2 of 3 categories (c0, c1): no sample of the set"), (9, None)):
                done = runner.cli(made, "--plan", "--arms", "control-longer", "--limit", limit, cwd=Path(folder))
                self.assertEqual(words is not None, "no sample" in done.stderr, done.stderr)
                self.assertIn(words or "", done.stderr)

    def test_a_limit_on_money_is_set_against_the_most_that_it_can_cost(self) -> None:
        for limit, words in ((0.01, "may be reached before the end"), (1e6, "cannot be reached")):
            self.assertIn(
                f"--max-usd {limit:g} {words}", "\n".join(plan.limit_lines(planned({"one": ARM}, max_usd=limit)))
            )
        unpriced = {key: value for key, value in ARM.items() if key != "price_usd_per_mtok"}
        self.assertIn("needs a price", "\n".join(plan.limit_lines(planned({"one": unpriced}, max_usd=1.0))))
        self.assertEqual([], plan.limit_lines(planned({"one": ARM})))

    def test_the_plan_says_how_well_one_judge_will_be_known(self) -> None:
        found = planned({"one": ARM}, pairs=100)["precision"]
        self.assertEqual(100, found["pairs_with_gold"])
        self.assertAlmostEqual(1.96 * (0.8 * 0.2 / 100) ** 0.5, found["agreement"]["half_width"], places=3)
        self.assertEqual(agreement.sample_size_rate(0.8, 0.05), found["agreement"]["pairs"])
        lines = "\n".join(plan.precision_lines(found))
        self.assertIn("100 pairs tell one judge's agreement to about +-0.078", lines)

    def test_a_set_too_small_for_a_difference_says_how_many_pairs_would_do(self) -> None:
        lines = "\n".join(plan.detectable_lines(planned({"one": ARM})["detectable_difference"]))
        self.assertRegex(lines, r"20 pairs cannot show a difference .* differ on 15% of them; about \d+ pairs can")

    def test_the_weekly_share_is_of_the_arm_s_allowance(self) -> None:
        arm = planned({"one": {**ARM, "weekly_tokens": 1_000_000}})["arms"]["one"]
        self.assertAlmostEqual((arm["input_tokens"] + arm["output_tokens"]) / 1e6, arm["weekly_share"], 4)

    def test_the_detectable_difference_is_the_one_of_the_statistics(self) -> None:
        found = planned({"one": ARM}, pairs=100)["detectable_difference"]
        expected = agreement.detectable_difference(100, found["discordant_share"], power=found["power"])
        self.assertAlmostEqual(expected, found["agreement"], 4)
        self.assertAlmostEqual(expected / 0.5, found["kappa"], 3)  # half of the gold labels are A, half are B

    def test_measured_token_counts_replace_the_estimate(self) -> None:
        known: list[dict[str, int | None]] = [
            {"input": 100, "output": 20},
            {"input": 300, "output": 40},
            {"input": None, "output": 9},
        ]
        usages = [*({**dict.fromkeys(("cached", "reasoning")), **each} for each in known), None]
        with tempfile.TemporaryDirectory() as top:
            folder = receipt_folders.write_run(f"{top}/run", receipt_folders.small_evaluation(), ("pareto",))
            rows = receipt_folders.read_rows(folder)[:2]
            for kept, usage in zip([kept for row in rows for kept in row["replies"].values()], usages):
                kept["usage"] = usage
            receipt_folders.write_rows(folder, rows)
            arm = planned({"pareto": ARM}, calibrate=folder)["arms"]["pareto"]
        self.assertEqual((200 * 120, 30 * 120), (arm["input_tokens"], arm["output_tokens"]))
        self.assertIn("--calibrate", arm["output_basis"])


class Tokens(unittest.TestCase):
    def test_the_estimate_never_passes_the_bound_of_one_token_a_byte(self) -> None:
        for text in (
            "",
            "a",
            "Hello, world",
            "x" * 300,
            "1234567890",
            "北京欢迎你",
            "\n\n  \t",
            "🙂🙂",
            "__init__()",
            "é" * 50,
        ):
            with self.subTest(text[:10]):
                self.assertLessEqual(plan.estimate_tokens(text), len(text.encode()))

    def test_plain_english_comes_to_about_a_token_a_word(self) -> None:
        text = "The quick brown fox jumps over the lazy dog near the old river bank"
        self.assertAlmostEqual(14, plan.estimate_tokens(text), delta=2)

    def test_no_tokenizer_is_looked_for_unless_its_vocabulary_is_on_disk(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(plan.cached_tokenizer({"TIKTOKEN_CACHE_DIR": folder}))
        self.assertIsNone(plan.cached_tokenizer({}))


class Progress(unittest.TestCase):
    def setUp(self) -> None:
        self.now = 0.0
        run = generate.ArmRun(evaluation.Arm("one", ARM), CONFIG, 50, 1, ("original", "swapped"))
        self.run_, self.runs = run, {"one": run}

    def shown(self, stream: io.StringIO, quiet: bool = False) -> Any:
        return plan.ProgressLine(stream, lambda: self.now, quiet, before=plan.ProgressLine.done(self.runs))

    def test_it_shows_done_rate_states_retries_cost_and_time_left(self) -> None:
        for number in range(10):
            self.run_.record(number, generate.OK, 0)
        stream = io.StringIO()
        line = self.shown(stream)
        for number in range(10, 30):
            self.run_.record(number, generate.INVALID if number == 29 else generate.OK, 0)
        self.run_.progress.retries, self.run_.progress.maybe_billed, self.run_.progress.cost = 3, 2, 0.5
        self.now = 10.0
        line.update(self.runs, force=True)
        expected = (
            "30/100 replies, 2.0/s, 29 ok, 1 invalid, 0 failed, 70 missing, 3 retries (2 may have been billed twice)"
        )
        self.assertEqual(f"{expected}, $0.5000, 35s left\n", stream.getvalue())

    def test_it_is_a_line_now_and_then_where_there_is_no_terminal(self) -> None:
        stream = io.StringIO()
        line = self.shown(stream)
        for self.now in range(61):
            line.update(self.runs)
        self.assertEqual(2, stream.getvalue().count("\n"))
        self.assertNotIn("\r", stream.getvalue())

    def test_the_first_line_comes_soon(self) -> None:
        stream = io.StringIO()
        line = self.shown(stream)
        for self.now in range(4):
            line.update(self.runs)
        self.assertEqual(1, stream.getvalue().count("\n"))

    def test_its_rate_is_over_the_whole_run_whenever_it_was_first_shown(self) -> None:
        line = plan.ProgressLine(io.StringIO(), lambda: self.now, False, started=0.0, before=0)
        for number in range(100):
            self.run_.record(number, generate.OK, 0)
        self.now = 10.0
        self.assertIn("100/100 replies, 10.0/s,", line.text(self.runs))

    def test_a_slow_rate_still_has_digits(self) -> None:
        rates = (12.34, 1.0, 0.4, 1 / 60, 0.001)
        self.assertEqual(["12.3/s", "1.0/s", "24.0/min", "1.0/min", "0.06/min"], [plan.rate_text(r) for r in rates])

    def test_a_cost_that_is_not_known_is_not_shown(self) -> None:
        line = self.shown(io.StringIO())
        self.assertNotIn("$", line.text(self.runs))
        self.run_.progress.unpriced = 3
        self.assertNotIn("$", line.text(self.runs))

    def test_quiet_shows_nothing(self) -> None:
        stream = io.StringIO()
        line = self.shown(stream, quiet=True)
        self.now = 100.0
        line.update(self.runs)
        line.close(self.runs)
        self.assertEqual("", stream.getvalue())

    def test_times_are_short(self) -> None:
        self.assertEqual(["45s", "12m 05s", "3h 20m"], [plan.format_seconds(s) for s in (45, 725, 12_000)])


if __name__ == "__main__":
    unittest.main()
