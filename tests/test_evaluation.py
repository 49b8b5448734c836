"""engine/evaluation.py: settings are refused before money is spent, and what decides a request decides its hash."""

from __future__ import annotations

import dataclasses
import json
import unittest
from collections.abc import Callable
from typing import Any

from rooms import ROOT, room

evaluation, evidence, fixtures = room("evaluation"), room("evidence"), room("fixtures")
CONFIG: dict[str, Any] = json.loads((ROOT / "eval.json").read_text(encoding="utf-8"))
ARM = {"endpoint": "https://judge.example/v1", "model": "judge-1", "key_env": "JUDGE_KEY"}


def changed(**changes: Any) -> dict[str, Any]:
    return {**CONFIG, **changes}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in CONFIG.items() if name != key}


class Settings(unittest.TestCase):
    def refused(self, config: dict[str, Any], words: str) -> None:
        with self.assertRaisesRegex(evaluation.SettingError, words):
            evaluation.check_config(config, "eval.json")

    def test_the_frozen_settings_pass(self) -> None:
        evaluation.check_config(CONFIG, "eval.json")

    def test_every_missing_setting_is_named(self) -> None:
        for key in (
            "slug",
            "prompt",
            "max_tokens",
            "repeats",
            "aggregation",
            "headline",
            "tool_choice",
            "secondary",
            "arms",
        ):
            with self.subTest(key):
                self.refused(without(key), f"'{key}' is missing")

    def test_every_wrong_setting_is_named_with_what_was_expected(self) -> None:
        cases: list[tuple[str, Any]] = [
            ("slug", "Two Words"), ("slug", "a/../b"), ("prompt", None), ("max_tokens", 0), ("max_tokens", True),
            ("repeats", 1.5), ("decision", "swap"), ("aggregation", "mode"), ("headline", {"metric": "f1"}),
            ("headline", []), ("tool_choice", "auto"), ("tool_choice", {"type": "function"}),
            ("secondary", ["agreement"]), ("arms", []),
        ]  # fmt: skip
        for key, value in cases:
            with self.subTest(key, value=value):
                self.refused(changed(**{key: value}), key)

    def test_every_wrong_arm_is_named(self) -> None:
        cases: list[tuple[Any, str]] = [
            ("pareto", "expected an object"), ({**ARM, "temperature": 0}, "unknown key 'temperature'"),
            ({"control": "shortest"}, "control"), ({"model": "x"}, "endpoint"), ({**ARM, "model": ""}, "model"),
            ({**ARM, "output_mode": "xml"}, "output_mode"), ({**ARM, "rpm": 0}, "rpm"), ({**ARM, "tpm": True}, "tpm"),
            ({**ARM, "rpm": float("inf")}, "rpm"),
        ]  # fmt: skip
        for settings, words in cases:
            with self.subTest(words):
                self.refused(changed(arms={"judge": settings}), f"arms.judge.*{words}")


class Arms(unittest.TestCase):
    def test_arms_come_in_the_order_asked_for(self) -> None:
        found = evaluation.choose_arms(CONFIG, ["control-first", "pareto"], None)
        self.assertEqual(["control-first", "pareto"], [arm.name for arm in found])

    def test_an_unknown_arm_is_refused_with_the_known_ones(self) -> None:
        with self.assertRaisesRegex(evaluation.SettingError, "'nobody'.*pareto"):
            evaluation.choose_arms(CONFIG, ["nobody"], None)

    def test_an_arm_given_twice_is_refused(self) -> None:
        with self.assertRaisesRegex(evaluation.SettingError, "twice"):
            evaluation.choose_arms(CONFIG, ["pareto", "pareto"], None)

    def test_a_custom_arm_is_not_on_the_frozen_list(self) -> None:
        (arm,) = evaluation.choose_arms(CONFIG, ["custom"], ARM)
        self.assertEqual((False, "live"), (arm.frozen, arm.provenance))

    def test_a_control_and_a_recorded_judge_say_what_they_are(self) -> None:
        arms = [evaluation.Arm("c", {"control": "first"}), evaluation.Arm("r", {"recorded": True})]
        self.assertEqual(["control", "recorded"], [arm.provenance for arm in arms])

    def test_every_missing_key_is_one_line_that_names_the_variable(self) -> None:
        arms = [evaluation.Arm("judge", ARM), evaluation.Arm("c", {"control": "first"})]
        for environment in ({}, {"JUDGE_KEY": ""}):
            (line,) = evaluation.missing_keys(arms, environment)
            self.assertIn("JUDGE_KEY", line)
        self.assertEqual([], evaluation.missing_keys(arms, {"JUDGE_KEY": "k"}))


class Identity(unittest.TestCase):
    def setUp(self) -> None:
        items, _ = fixtures.load_items((ROOT / "fixture.jsonl").read_bytes(), "fixture.jsonl")
        hashes = dict.fromkeys(("fixture.jsonl", "recipe.py", "check.py", "engine/tables.py", "run_eval.py"), "0" * 64)
        self.base = evaluation.Evaluation(".", CONFIG, items, [], None, None, hashes, {})

    def digest(
        self, base: Any, arm: dict[str, Any] | None = None, split: str = "test", ids: tuple[str, ...] = ("a",)
    ) -> str:
        return str(evaluation.config_hash(base, evaluation.Arm("judge", arm or ARM), split, list(ids)))

    def with_config(self, **changes: Any) -> Any:
        return dataclasses.replace(self.base, config={**CONFIG, **changes})

    def with_hash(self, name: str) -> Any:
        return dataclasses.replace(self.base, hashes={**self.base.hashes, name: "1" * 64})

    def test_whatever_decides_a_request_changes_the_hash(self) -> None:
        plain = self.digest(self.base)
        different: dict[str, Callable[[], str]] = {
            "prompt": lambda: self.digest(self.with_config(prompt="Judge.")),
            "max_tokens": lambda: self.digest(self.with_config(max_tokens=1)),
            "reasoning_effort": lambda: self.digest(self.with_config(reasoning_effort="low")),
            "fixture": lambda: self.digest(self.with_hash("fixture.jsonl")),
            "recipe": lambda: self.digest(self.with_hash("recipe.py")),
            "model": lambda: self.digest(self.base, {**ARM, "model": "judge-2"}),
            "output mode": lambda: self.digest(self.base, {**ARM, "output_mode": "text"}),
            "extra body": lambda: self.digest(self.base, {**ARM, "extra_body": {"a": 1}}),
            "split": lambda: self.digest(self.base, split="dev"),
            "items": lambda: self.digest(self.base, ids=("a", "b")),
        }
        digests = {name: make() for name, make in different.items()}
        self.assertEqual(len(digests) + 1, len({plain, *digests.values()}), digests)

    def test_what_does_not_decide_a_request_leaves_the_hash(self) -> None:
        plain = self.digest(self.base)
        same = [
            self.digest(
                self.base, {**ARM, "key_env": "OTHER", "rpm": 3, "price_usd_per_mtok": {"input": 1, "output": 2}}
            ),
            self.digest(self.with_config(bootstrap={"resamples": 1}, repeats=9, decision="original")),
            self.digest(self.with_hash("check.py")),
            self.digest(self.with_hash("engine/tables.py")),
            self.digest(self.with_hash("run_eval.py")),
        ]
        self.assertEqual({plain}, set(same))

    def test_the_seed_decides_the_random_control_only(self) -> None:
        coin, first = {"control": "random"}, {"control": "first"}
        other = self.with_config(seed=1)
        self.assertNotEqual(self.digest(self.base, coin), self.digest(other, coin))
        self.assertEqual(self.digest(self.base, first), self.digest(other, first))


if __name__ == "__main__":
    unittest.main()
