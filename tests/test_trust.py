"""A run's folder says how the run goes on, and never whom a key is sent to."""

from __future__ import annotations

import json
import shutil
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fault_server
import runner
from rooms import room

batch, evaluations, evidence, generate, trust = map(room, ("batch", "evaluation", "evidence", "generate", "trust"))
FAR = "https://judge.example/v1"


class Resumed(unittest.TestCase):
    """A run of one's own judge that stopped after two replies, its manifest changed before it goes on."""

    top: Path
    server: fault_server.FaultServer
    evaluation: Path
    good: Path

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.top = Path(temporary.name)
        cls.server = fault_server.FaultServer()
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)
        cls.evaluation = runner.make_evaluation(cls.top / "e", [runner.item(number) for number in range(3)])
        made = runner.cli(cls.evaluation, "--generate", *runner.judge_at(cls.server.base, max_requests=2), cwd=cls.top)
        assert (made.returncode, cls.server.count) == (3, 2), made.stderr
        cls.good = runner.run_folder(cls.top)

    def setUp(self) -> None:
        self.run_made = Path(tempfile.mkdtemp(dir=self.top)) / "run"
        shutil.copytree(self.good, self.run_made)

    def change(self, **fields: Any) -> None:
        text = json.dumps({**runner.manifest_of(self.run_made), **fields})
        (self.run_made / "manifest.json").write_text(text, encoding="utf-8")

    def settings(self, **changed: Any) -> dict[str, Any]:
        return {**runner.manifest_of(self.run_made)["arm_settings"]["custom"], **changed}

    def refused(self, *words: object) -> str:
        done = runner.cli(self.evaluation, "--resume", self.run_made, *words, cwd=self.top)
        self.assertEqual((3, 2), (done.returncode, self.server.count), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_another_address_is_noticed_before_anything_is_sent(self) -> None:
        self.change(arm_settings={"custom": self.settings(endpoint=self.server.base.replace("/v1", "/v2"))})
        self.assertIn("manifest.json: arm custom: config_hash expected ", self.refused())

    def test_an_arm_of_the_frozen_list_has_to_be_the_one_of_eval_json(self) -> None:
        named = {"arm_settings": {"baseline": self.settings()}, "provenance": {"baseline": "live"}}
        self.change(unlisted_arms=[], arms=["baseline"], config_hash={"baseline": "0" * 64}, **named)
        self.assertIn("manifest.json: arm baseline: expected the arm of eval.json, got another", self.refused())

    def test_settings_that_no_command_line_would_take_are_refused_as_there(self) -> None:
        for changed in ({"endpoint": "http://judge.example/v1"}, {"rename": [1]}, {"endpoint": 5}):
            with self.subTest(changed=changed):
                self.change(arm_settings={"custom": self.settings(**changed)})
                self.assertIn("manifest.json", self.refused())

    def runs(self) -> dict[str, Any]:
        """The state of the run, nothing done yet."""
        arm = evaluations.Arm("custom", self.settings(), frozen=False)
        found: dict[str, Any] = generate.arm_runs([arm], {"repeats": 1}, 3, 1)
        return found

    def test_batches_that_are_none_are_named(self) -> None:
        good = {"arm": "custom", "file": "f", "exported_at": "then", "tasks": "0-2,5"}
        for batches, place in (
            (5, "'batches'"),
            ([5], "'batches[0]'"),
            ([good, {**good, "arm": "nobody"}], "'batches[1].arm'"),
            ([{**good, "tasks": "0-9"}], "'batches[0].tasks'"),
            ([{**good, "tasks": "1,,2"}], "'batches[0].tasks'"),
            ([{**good, "file": None}], "'batches[0].file'"),
        ):
            with self.subTest(place), self.assertRaises(evidence.EvidenceError) as caught:
                batch.outstanding({"batches": batches}, self.runs())
            self.assertIn(f"manifest.json: field {place}: expected", str(caught.exception))
        self.change(batches=5)
        self.assertIn("manifest.json: field 'batches': expected", self.refused())

    def test_a_journal_line_of_another_kind_is_named(self) -> None:
        path = self.run_made / "journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        places = {runner.item(number)["item_id"]: number for number in range(3)}
        for number in (b"1.0", b"true", b'"1"', b"[1]", b"2"):
            path.write_bytes(lines[0] + lines[1].replace(b'"repeat":1', b'"repeat":' + number))
            with self.subTest(number), self.assertRaisesRegex(generate.JournalError, ":2: not a reply of this run: "):
                generate.read_journal(str(path), self.runs(), places)
        self.assertIn("journal.jsonl:2: not a reply of this run: ", self.refused())

    def test_a_key_goes_to_another_machine_only_when_both_are_said(self) -> None:
        settings = self.settings(endpoint=FAR, key_env="SECRET_OF_MINE")
        config = json.loads((self.evaluation / "eval.json").read_text(encoding="utf-8"))
        hashes = runner.manifest_of(self.run_made)["hashes"]
        made = SimpleNamespace(config=config, hashes=hashes)
        ids = [runner.item(number)["item_id"] for number in range(3)]
        arm = evaluations.Arm("custom", settings, frozen=False)
        self.change(
            arm_settings={"custom": settings}, config_hash={"custom": evaluations.config_hash(made, arm, "test", ids)}
        )
        said = self.refused()
        self.assertIn(f"would ask {FAR} with the key in SECRET_OF_MINE", said)
        self.assertIn(f"hint: if that is meant, say so: give --base-url {FAR} --key-env SECRET_OF_MINE", said)
        self.assertIn(f"would ask {FAR}", self.refused("--key-env", "SECRET_OF_MINE"))
        said = self.refused("--base-url", "https://mine.example/v1", "--key-env", "SECRET_OF_MINE")
        self.assertIn(f"--base-url https://mine.example/v1: the run asks {FAR}", said)

    def test_an_address_that_the_run_does_not_ask_is_no_flag_without_effect(self) -> None:
        said = self.refused("--base-url", "http://127.0.0.1:9/v1")
        self.assertIn("--base-url http://127.0.0.1:9/v1: the run asks http://127.0.0.1:", said)

    def test_a_list_of_judges_outside_the_frozen_list_that_names_others_is_refused(self) -> None:
        for given in (["custom", "zz"], [["zz"]], [None]):
            self.change(unlisted_arms=given)
            self.assertIn("field 'unlisted_arms': expected some of custom, got", self.refused())


class Said(unittest.TestCase):
    def options(self, **given: Any) -> SimpleNamespace:
        return SimpleNamespace(**{"base_url": None, "key_env": None, "key_file": None, **given})

    def test_what_was_said_is_taken(self) -> None:
        arm = evaluations.Arm("custom", {"endpoint": FAR, "key_env": "K", "model": "m"}, frozen=False)
        trust.refuse_unsaid("RUN", arm, self.options(base_url=FAR, key_env="K"))
        trust.refuse_unsaid("RUN", arm, self.options(base_url=FAR, key_file="f"))
        self.assertEqual(f" --base-url {FAR} --key-env K", trust.said_again(arm))
        keyless = evaluations.Arm("custom", {"endpoint": FAR}, frozen=False)
        self.assertEqual(f" --base-url {FAR}", trust.said_again(keyless, "kf"))

    def test_this_machine_no_key_and_the_frozen_list_need_no_word(self) -> None:
        for settings, frozen in (
            ({"endpoint": "http://127.0.0.1:9/v1", "key_env": "K"}, False),
            ({"endpoint": FAR}, False),
            ({"endpoint": FAR, "key_env": "K"}, True),
            ({"control": "longer"}, False),
        ):
            arm = evaluations.Arm("a", settings, frozen=frozen)
            trust.refuse_unsaid("RUN", arm, self.options())
            self.assertEqual("", trust.said_again(arm))

    def test_a_key_that_comes_with_the_resume_needs_the_address_too(self) -> None:
        arm = evaluations.Arm("custom", {"endpoint": FAR}, frozen=False)
        for given in ({"key_env": "K"}, {"key_file": "f"}):
            with self.assertRaisesRegex(evaluations.SettingError, "would ask https://judge.example/v1"):
                trust.refuse_unsaid("RUN", arm, self.options(**given))


if __name__ == "__main__":
    unittest.main()
