"""What may become a receipt, what a receipt holds, and what runs may be joined into one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import receipt_folders as small
from rooms import room

receipts, foreign, evidence, verify = room("receipt"), room("foreign"), room("evidence"), room("verify")
NOW = small.START + 7200


class RunCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.evaluation = small.small_evaluation()

    def setUp(self) -> None:
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)

    evaluation: Any

    def run_of(self, name: str, *arms: str, **changes: Any) -> str:
        return small.write_run(os.path.join(self.top, name), self.evaluation, arms or ("pareto",), **changes)

    def publish(self, *runs: str, history: str | None = None, pending: bool = False) -> str:
        target = os.path.join(self.top, "receipt")
        receipts.publish(list(runs), target, self.evaluation, history, pending)
        return target

    def refused(self, run: str, history: str | None = None) -> str:
        with self.assertRaises(receipts.NotAReceipt) as caught:
            self.publish(run, history=history)
        self.assertFalse(os.path.exists(os.path.join(self.top, "receipt")))
        self.assertEqual([], [name for name in os.listdir(self.top) if ".tmp." in name])
        return str(caught.exception)


class Conditions(RunCase):
    def test_of_selection_are_reported_together_with_their_remedies(self) -> None:
        text = self.refused(self.run_of("run", split="dev", limit=1, repeats=3))
        for part in ("split: expected test", "--limit", "repeats: expected 2", "3 conditions are not met"):
            self.assertIn(part, text)

    def test_a_target_that_cannot_be_made_is_named_as_it_was_given(self) -> None:
        target = os.path.join(self.top, "receipt")
        refusal = PermissionError(13, "Permission denied", f"{target}.tmp.{os.getpid()}")
        with mock.patch("os.makedirs", side_effect=refusal), self.assertRaises(PermissionError) as caught:
            receipts.staging(target)
        self.assertEqual(target, caught.exception.filename)

    def test_refuse_a_shard_and_name_merge(self) -> None:
        self.assertIn("--merge", self.refused(self.run_of("run", shard="1/2")))

    def test_refuse_an_incomplete_run(self) -> None:
        run = self.run_of("run")
        small.edit_json(run, "manifest.json", lambda found: found.update(status="incomplete"))
        self.assertIn("the run is not complete", self.refused(run))

    def test_refuse_changed_inputs(self) -> None:
        run = self.run_of("run")
        Path(run, "inputs/check.py").write_bytes(b"# other\n")
        self.assertIn("inputs/check.py", self.refused(run))

    def test_refuse_one_response_id_twice(self) -> None:
        run = self.run_of("run")
        made = small.read_rows(run)
        made[1]["replies"]["original"]["id"] = made[0]["replies"]["original"]["id"]
        self.rewrite(run, made)
        self.assertIn("stands twice", self.refused(run))

    def rewrite(self, run: str, made: list[Any]) -> None:
        small.write_rows(run, made)
        sha = evidence.sha256_file(os.path.join(run, "raw.jsonl.gz"))
        small.edit_json(run, "manifest.json", lambda found: found.update(raw_sha256=sha))

    def test_refuse_a_second_served_model(self) -> None:
        run = self.run_of("run")
        made = small.read_rows(run)
        made[1]["replies"]["original"]["model"] = "pareto-26.9"
        self.rewrite(run, made)
        self.assertIn("expected one served model", self.refused(run))

    def test_refuse_a_failed_row(self) -> None:
        run = self.run_of("run")
        made = small.read_rows(run)
        kept = made[0]["replies"]["original"]
        kept.update(state="failed", code="timeout", error={"code": "timeout", "status": None, "text": "timed out"})
        self.rewrite(run, made)
        self.assertIn("--resume", self.refused(run))

    def test_refuse_a_row_from_before_the_freeze(self) -> None:
        history = self.history(small.START + 3000)
        self.assertIn("after the freeze", self.refused(self.run_of("run"), history))

    def test_accept_rows_from_after_the_freeze_and_name_its_commit(self) -> None:
        target = self.publish(self.run_of("run"), history=self.history(small.START - 10))
        made = json.loads(Path(target, "receipt.json").read_bytes())
        self.assertEqual(("a" * 40, "a" * 40), (made["eval"]["freeze_sha"], made["receipt"]["freeze"]["commit"]))

    def history(self, moment: float) -> str:
        data = self.evaluation.inputs["eval.json"]
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        later = f"commit {'b' * 40} {int(moment) + 50}\n\n:100644 100644 {blob} {'1' * 40} M\teval.json\n"
        return later + f"commit {'a' * 40} {int(moment)}\n\n:000000 100644 {'0' * 40} {blob} A\teval.json\n"

    def test_say_when_the_settings_are_in_no_commit(self) -> None:
        found = receipts.freeze_of("commit " + "a" * 40 + " 17\n\n:000000 100644 0 1 A\teval.json\n", b"{}")
        self.assertEqual("not_committed", found.reason)
        self.assertEqual("no_repository", receipts.freeze_of(None, b"{}").reason)

    def test_known_beforehand_are_told_before_a_run(self) -> None:
        options = small.options_of(limit=3, repeats=1)
        lines = receipts.planned_obstacles(options, self.evaluation.config, receipts.freeze_of("", b"{}"))
        self.assertEqual(3, len(lines), lines)
        whole = receipts.planned_obstacles(small.options_of(), self.evaluation.config, receipts.freeze_of(None, b"{}"))
        self.assertEqual([], whole)


class AReceipt(RunCase):
    def test_keeps_the_fields_of_schema_two_in_their_order(self) -> None:
        made = json.loads(Path(self.publish(self.run_of("run")), "receipt.json").read_bytes())
        fields = ["schema", "runner", "pareto_release", "fixture", "prompt_sha256", "recipe_sha256", "eval_json_sha256"]
        fields += [
            "freeze_sha",
            "repeats",
            "seed",
            "unit",
            "aggregation",
            "headline",
            "secondary",
            "arms",
            "variants",
            "raw",
        ]
        self.assertEqual(fields, list(made["eval"]))
        self.assertEqual(["date", "result", "eval", "receipt"], list(made))
        entry = made["eval"]["arms"]["pareto"]
        self.assertEqual(["model", "endpoint", "max_tokens", "runs", "response_model"], list(entry))
        wanted = {"input": 4800, "output": 320, "cached": 1600, "reasoning": 80}  # 8 pairs, both orders
        self.assertEqual(wanted, entry["runs"][0]["tokens"])

    def test_cannot_have_its_fixture_replaced_by_the_settings(self) -> None:
        self.evaluation = small.small_evaluation(fixture_source={"sha256": "0" * 64, "items": 999, "license": "CC0"})
        made = json.loads(Path(self.publish(self.run_of("run")), "receipt.json").read_bytes())
        found = made["eval"]["fixture"]
        self.assertEqual((8, 1, "CC0"), (found["items"], found["dev_items"], found["license"]))
        self.assertEqual(self.evaluation.hashes["fixture.jsonl"], found["sha256"])

    def test_of_equal_runs_has_equal_bytes(self) -> None:
        first = self.publish(self.run_of("one"))
        os.rename(first, first + "-1")
        second = self.publish(self.run_of("two"))
        for name in ("receipt.json", "raw.jsonl.gz", "scored.jsonl.gz", "summary.json", "SHA256SUMS"):
            self.assertEqual(Path(first + "-1", name).read_bytes(), Path(second, name).read_bytes(), name)

    @unittest.skipUnless(shutil.which("sha256sum"), "no sha256sum here")
    def test_is_checked_by_sha256sum_without_us(self) -> None:
        target = self.publish(self.run_of("run"))
        done = subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=target, capture_output=True)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_names_an_arm_outside_the_frozen_list(self) -> None:
        run = self.run_of("run")
        small.edit_json(run, "manifest.json", lambda found: found.update(unlisted_arms=["pareto"]))
        made = json.loads(Path(self.publish(run), "receipt.json").read_bytes())
        self.assertEqual(["pareto"], made["receipt"]["outside_the_frozen_list"])

    def test_is_never_written_over_another(self) -> None:
        run = self.run_of("run")
        self.publish(run)
        with self.assertRaises(receipts.NotAReceipt):
            self.publish(run)

    def test_leaves_the_run_as_it_was(self) -> None:
        run = self.run_of("run")
        before = dict(foreign.Folder(run).files)
        self.publish(run)
        self.assertEqual(before, foreign.Folder(run).files)


class Pending(RunCase):
    def test_says_so_as_the_last_key_and_verifies(self) -> None:
        target = self.publish(self.run_of("run"), pending=True)
        made = json.loads(Path(target, "receipt.json").read_bytes())
        self.assertEqual(("baseline_status", "pending"), list(made["eval"].items())[-1])
        self.assertEqual([], self.failing(target))

    def failing(self, target: str) -> list[str]:
        done = verify.verify(target, self.evaluation, NOW, []).done
        return [name for name, check in done.items() if check.status == verify.FAIL]

    def test_is_completed_by_the_other_arm_under_the_same_pins(self) -> None:
        first = self.publish(self.run_of("one"), pending=True)
        os.rename(first, first + "-pending")
        target = self.publish(first + "-pending", self.run_of("two", "control-first"))
        made = json.loads(Path(target, "receipt.json").read_bytes())
        self.assertNotIn("baseline_status", made["eval"])
        self.assertEqual(["control-first", "pareto"], list(made["eval"]["arms"]))
        self.assertEqual([], self.failing(target))

    def test_is_not_completed_by_a_run_on_other_pins(self) -> None:
        first = self.run_of("one")
        self.evaluation = small.small_evaluation(max_tokens=100)
        second = self.run_of("two", "control-first")
        with self.assertRaisesRegex(receipts.NotAReceipt, "pinned files differ: eval.json"):
            receipts.merge([first, second], self.top, NOW)


class Merge(RunCase):
    def test_of_shards_has_the_bytes_of_the_run_one_process_makes(self) -> None:
        whole = self.run_of("whole", "pareto", "control-first")
        parts = [self.run_of(f"part{n}", "pareto", "control-first", shard=f"{n}/3") for n in (1, 2, 3)]
        merged = receipts.merge(parts, self.top, NOW)
        for name in ("raw.jsonl.gz", "inputs/eval.json"):
            self.assertEqual(Path(whole, name).read_bytes(), Path(merged, name).read_bytes(), name)
        made, wanted = (json.loads(Path(each, "manifest.json").read_bytes()) for each in (merged, whole))
        self.assertEqual(3, len(made.pop("merged_from")))
        self.assertEqual(wanted, made)

    def test_of_arms_has_the_bytes_of_the_run_one_process_makes(self) -> None:
        whole = self.run_of("whole", "pareto", "control-first")
        merged = receipts.merge([self.run_of("a", "pareto"), self.run_of("b", "control-first")], self.top, NOW)
        self.assertEqual(Path(whole, "raw.jsonl.gz").read_bytes(), Path(merged, "raw.jsonl.gz").read_bytes())

    def test_of_merged_shards_becomes_a_receipt(self) -> None:
        parts = [self.run_of(f"part{n}", shard=f"{n}/2") for n in (1, 2)]
        target = self.publish(receipts.merge(parts, self.top, NOW))
        done = verify.verify(target, self.evaluation, NOW, []).done
        self.assertEqual([], [check for check in done.values() if check.status == verify.FAIL])

    def test_names_what_is_missing_or_there_twice(self) -> None:
        parts = {n: self.run_of(f"part{n}", shard=f"{n}/3") for n in (1, 2)}
        whole, again = self.run_of("whole"), self.run_of("again")
        for runs, text in (
            ([parts[1], parts[2]], "expected each of 1/3, 2/3, 3/3 once, got 1/3, 2/3"),
            ([whole, again], "expected each of the whole once, got the whole, the whole"),
            ([whole, parts[1]], "arm pareto"),
        ):
            with self.subTest(text), self.assertRaises(receipts.NotAReceipt) as caught:
                receipts.merge(runs, self.top, NOW)
            self.assertIn(text, str(caught.exception))

    def test_refuses_two_judges_under_one_name(self) -> None:
        first, second = self.run_of("one", shard="1/2"), self.run_of("two", shard="2/2")
        small.edit_json(second, "manifest.json", lambda v: v["arm_settings"]["pareto"].update(model="other"))
        with self.assertRaisesRegex(receipts.NotAReceipt, "another judge under the same name"):
            receipts.merge([first, second], self.top, NOW)

    def test_writes_nothing_when_it_refuses(self) -> None:
        first = self.run_of("one", shard="1/2")
        with self.assertRaises(receipts.NotAReceipt):
            receipts.merge([first, first], os.path.join(self.top, "out"), NOW)
        self.assertFalse(os.path.exists(os.path.join(self.top, "out")))


if __name__ == "__main__":
    unittest.main()
