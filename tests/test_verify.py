"""A good receipt verifies; with exactly one thing broken in it, exactly the check that is for it fails."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import random
import shutil
import tempfile
import time
import unittest
import unittest.mock
from collections.abc import Callable
from pathlib import Path
from typing import Any

import receipt_folders as small
from rooms import room

verify, receipts, foreign, evidence = room("verify"), room("receipt"), room("foreign"), room("evidence")
NOW = small.START + 7200


def checks_of(folder: str, evaluation: Any) -> dict[str, Any]:
    return dict(verify.verify(folder, evaluation, NOW, []).done)


def failing(folder: str, evaluation: Any) -> set[str]:
    return {name for name, check in checks_of(folder, evaluation).items() if check.status == verify.FAIL}


class ReceiptCase(unittest.TestCase):
    """A good receipt, and a copy of it for every test to break."""

    top: str
    evaluation: Any
    run_folder: str
    good: str
    folder: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.top = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.evaluation = small.small_evaluation()
        cls.run_folder = small.write_run(os.path.join(cls.top, "run"), cls.evaluation)
        cls.good = os.path.join(cls.top, "receipt")
        receipts.publish([cls.run_folder], cls.good, cls.evaluation, None, False)

    def setUp(self) -> None:
        self.folder = os.path.join(tempfile.mkdtemp(dir=self.top), "broken")
        shutil.copytree(self.good, self.folder)

    def path(self, name: str) -> Path:
        return Path(self.folder, name)

    def edit_rows(self, change: Callable[[list[Any]], Any], *names: str) -> None:
        """Change the rows of raw and scored file alike, or of the named one."""
        for name in names or ("raw.jsonl.gz", "scored.jsonl.gz"):
            made = small.read_rows(self.folder, name)
            small.write_rows(self.folder, change(made) or made, name)

    def fails(self, *names: str) -> None:
        found = failing(self.folder, self.evaluation)
        if found != set(names):
            self.fail(f"expected {set(names)}, got {found}: {self.report()}")

    def report(self) -> str:
        return str(verify.render("", list(checks_of(self.folder, self.evaluation).values()), []))


class AGoodReceipt(ReceiptCase):
    def test_passes_every_check_that_can_be_made(self) -> None:
        found = checks_of(self.good, self.evaluation)
        missing = {name for name, check in found.items() if check.status == verify.NOT_CHECKED}
        self.assertEqual(({"expected", "pinned code"}, set()), (missing, failing(self.good, self.evaluation)))

    def test_has_its_checks_numbered_as_the_docstring_lists_them(self) -> None:
        listed = [line[:14].split(None, 1) for line in verify.__doc__.split("\n") if line[:2].strip().isdigit()]
        named = [(str(number), name) for number, (name, _) in enumerate(verify.CHECKS, 1)]
        self.assertEqual(named, [(number, name.strip()) for number, name in listed])

    def test_verifies_when_our_code_has_moved_on_and_names_the_files(self) -> None:
        ours = small.small_evaluation()
        ours.hashes["engine/rows.py"] = "0" * 64
        found = checks_of(self.good, ours)
        self.assertEqual(verify.OK, found["figures"].status)
        self.assertIn("engine/rows.py", found["code"].text)

    def test_verifies_as_a_plain_run_too(self) -> None:
        self.assertEqual(set(), failing(self.run_folder, self.evaluation))

    def test_a_folder_of_too_many_files_is_told_once(self) -> None:
        foreign = room("foreign")
        for name in ("a", "b", "c"):
            os.makedirs(os.path.join(self.top, "many", name))
            for number in range(3):
                Path(self.top, "many", name, str(number)).write_bytes(b"")
        with unittest.mock.patch.object(foreign, "MAX_FILES", 4):
            found = foreign.Folder(os.path.join(self.top, "many"))
        self.assertEqual((["more than 4 files"], 4), (found.problems, len(found.files)))

    def test_says_of_an_incomplete_run_that_its_rows_are_not_checked(self) -> None:
        shutil.copytree(self.run_folder, self.folder + "-run")
        small.edit_json(self.folder + "-run", "manifest.json", lambda found: found.update(status="incomplete"))
        found = checks_of(self.folder + "-run", self.evaluation)
        self.assertEqual((verify.FAIL, verify.NOT_CHECKED), (found["conditions"].status, found["rows"].status))

    def test_reports_replies_that_are_the_same_in_all_repeats(self) -> None:
        lines = checks_of(self.good, self.evaluation)["sameness"].lines
        self.assertTrue(any("control-first" in line and "all 2 repeats" in line for line in lines), lines)
        self.assertFalse(any("pareto: every reply" in line for line in lines), lines)


class BrokenInOneThing(ReceiptCase):
    def test_one_byte_of_any_file_fails_hashes(self) -> None:
        for name in ("inputs/recipe.py", "inputs/agreement.py", "inputs/engine/rows.py"):
            with self.subTest(name):
                good = self.path(name).read_bytes()
                self.path(name).write_bytes(good.replace(b"#", b"-", 1) if b"#" in good else good + b" ")
                self.assertIn("hashes", failing(self.folder, self.evaluation))
                self.path(name).write_bytes(good)

    def test_one_byte_of_an_input_with_the_sums_refreshed_fails_pins(self) -> None:
        self.path("inputs/client.py").write_bytes(b"# other\n")
        sha = evidence.sha256(b"# other\n")
        small.edit_json(self.folder, "receipt.json", lambda v: v["receipt"]["files"].update({"inputs/client.py": sha}))
        small.sums(self.folder)
        self.fails("pins")

    def test_a_file_too_many_fails_hashes(self) -> None:
        self.path("extra.txt").write_bytes(b"x")
        self.fails("hashes")

    def test_a_missing_file_fails_hashes(self) -> None:
        self.path("inputs/engine/rows.py").unlink()
        self.fails("hashes", "pins")

    @unittest.skipUnless(hasattr(os, "symlink"), "no symbolic links here")
    def test_a_link_fails_folder(self) -> None:
        try:
            os.symlink("/etc/hostname", self.path("link"))
        except OSError as error:
            self.skipTest(f"no symbolic links here: {error}")
        self.fails("folder")

    def test_a_row_dropped_fails_rows(self) -> None:
        self.edit_rows(lambda made: made.pop(5) and None)
        small.refresh(self.folder)
        self.fails("rows")

    def test_a_row_doubled_fails_rows(self) -> None:
        self.edit_rows(lambda made: made.insert(5, made[5]))
        small.refresh(self.folder)
        self.fails("rows")

    def test_two_rows_swapped_fail_rows(self) -> None:
        def swap(made: list[Any]) -> None:
            made[3], made[4] = made[4], made[3]

        self.edit_rows(swap)
        small.refresh(self.folder)
        self.fails("rows")

    def test_a_row_in_another_form_fails_rows(self) -> None:
        made = small.read_rows(self.folder)
        lines = [
            json.dumps(row).encode() + b"\n" if place == 2 else evidence.row_bytes(row)
            for place, row in enumerate(made)
        ]
        evidence.write_lines(str(self.path("raw.jsonl.gz")), lines)
        small.refresh(self.folder)
        self.fails("rows")

    def test_an_unknown_key_in_a_row_fails_rows(self) -> None:
        self.edit_rows(lambda made: made[0].update(note="x"))
        small.refresh(self.folder)
        self.fails("rows")

    def test_another_token_limit_in_a_row_fails_settings(self) -> None:
        self.edit_rows(lambda made: made[2].update(max_tokens=99))
        small.refresh(self.folder)
        self.fails("settings")

    def test_another_endpoint_in_a_row_fails_settings(self) -> None:
        self.edit_rows(lambda made: made[2].update(endpoint="https://other.example/v1"))
        small.refresh(self.folder)
        self.fails("settings")

    def test_a_reply_that_contradicts_its_decision_fails_replies(self) -> None:
        def turn(made: list[Any]) -> None:
            call = made[0]["replies"]["original"]["tool_calls"][0]
            call["arguments"] = call["arguments"].replace('"A"', '"B"')

        self.edit_rows(turn)
        small.refresh(self.folder)
        self.fails("replies")

    def test_a_recorded_choice_that_its_reply_does_not_say_fails_replies(self) -> None:
        self.edit_rows(lambda made: made[0]["tool_arguments"]["original"].update(choice="equal"), "raw.jsonl.gz")
        small.remake(self.folder, self.evaluation)
        self.fails("replies")

    def test_a_reply_hidden_behind_an_error_fails_replies(self) -> None:
        def hide(made: list[Any]) -> None:
            made[0]["replies"]["original"]["error"] = {"code": "http_500", "status": 500, "text": None}

        self.edit_rows(hide)
        small.refresh(self.folder)
        self.fails("replies")

    def test_one_decision_fails_scores(self) -> None:
        self.edit_rows(lambda made: made[0].update(decision="equal"), "scored.jsonl.gz")
        small.refresh(self.folder)
        self.fails("scores")

    def test_one_score_fails_scores(self) -> None:
        self.edit_rows(lambda made: made[1]["secondary"]["position_consistency"].update(score=1), "scored.jsonl.gz")
        small.refresh(self.folder)
        self.fails("scores")

    def test_gold_edited_with_all_hashes_refreshed_fails_labels_and_scores(self) -> None:
        self.edit_gold()
        small.refresh(self.folder)
        self.assertLessEqual({"labels", "scores"}, failing(self.folder, self.evaluation))

    def test_gold_edited_with_everything_made_again_fails_labels(self) -> None:
        self.edit_gold()
        small.remake(self.folder, self.evaluation)
        self.fails("labels")

    def edit_gold(self) -> None:
        made = small.items()
        made[3]["gold"] = "A"
        self.path("inputs/fixture.jsonl").write_bytes(small.lines_of(made))

    def test_a_limit_with_rows_cut_to_match_fails_conditions(self) -> None:
        self.edit_rows(lambda made: [row for row in made if row["item_id"] < "pair-5"], "raw.jsonl.gz")
        small.edit_json(self.folder, "manifest.json", lambda found: found.update(limit=5))
        small.remake(self.folder, self.evaluation)
        self.fails("conditions")

    def test_figures_by_other_rules_than_those_here_fail_labels(self) -> None:
        config = self.evaluation.config
        for name, other in (("decision", "original"), ("bootstrap", {"resamples": 60, "level": 0.5})):
            with self.subTest(name):
                here = dataclasses.replace(self.evaluation, config={**config, name: other})
                self.assertEqual({"labels"}, failing(self.good, here))
                lines = checks_of(self.good, here)["labels"].lines
                self.assertIn(f"eval.json: field '{name}': expected", lines[0])

    def test_a_default_written_out_and_other_repeats_here_are_no_other_rules(self) -> None:
        config = self.evaluation.config
        written_out = {"labels": ["A", "B", "equal"], "headline": {"metric": "kappa"}, "repeats": 7}
        for other in ({**config, **written_out}, {key: config[key] for key in config if key != "labels"}):
            self.assertEqual(set(), failing(self.good, dataclasses.replace(self.evaluation, config=other)))

    def test_recorded_replies_under_the_name_of_a_frozen_judge_fail_config_hash(self) -> None:
        opened = foreign.open_folder(foreign.Folder(self.good))
        names = opened.manifest["arms"]
        forged = {"provenance": dict.fromkeys(names, "recorded"), "unlisted_arms": []}
        forged["arm_settings"] = dict.fromkeys(names, {"recorded": True, "model": "m"})
        found = verify.outside_problems(dataclasses.replace(opened, manifest={**opened.manifest, **forged}))
        self.assertEqual(len(names), len(found))

    def test_fewer_repeats_with_rows_cut_to_match_fail_conditions(self) -> None:
        self.edit_rows(lambda made: [row for row in made if row["repeat"] == 1], "raw.jsonl.gz")
        small.edit_json(self.folder, "manifest.json", lambda found: found.update(repeats=1))
        small.remake(self.folder, self.evaluation)
        self.fails("conditions")

    def test_rows_left_out_as_if_they_had_never_come_fail_conditions(self) -> None:
        self.edit_rows(lambda made: [row for row in made if row["item_id"] != "pair-3"], "raw.jsonl.gz")
        small.edit_json(self.folder, "manifest.json", lambda found: found.update(sparse=True))
        small.remake(self.folder, self.evaluation)
        self.fails("conditions")

    def test_totals_that_are_gone_or_not_whole_fail_sums(self) -> None:
        def drop_all(found: Any) -> None:
            del found["totals"]

        def drop_one(found: Any) -> None:
            del found["totals"]["pareto"]["ok"]

        for change in (drop_all, drop_one):
            with self.subTest(change.__name__):
                self.setUp()
                small.edit_json(self.folder, "manifest.json", change)
                self.sign_again()
                self.fails("sums")

    def test_a_control_that_did_not_follow_its_rule_fails_replies(self) -> None:
        def turn(made: list[Any]) -> None:
            row = next(row for row in made if row["arm"] == "control-first")
            said = {"choice": "B", "reason": row["tool_arguments"]["original"]["reason"]}
            row["tool_arguments"]["original"] = said
            row["replies"]["original"]["tool_calls"][0]["arguments"] = json.dumps(said)

        self.edit_rows(turn, "raw.jsonl.gz")
        small.remake(self.folder, self.evaluation)
        self.fails("replies")
        self.assertIn("the control 'first' says", self.report())

    def test_one_config_hash_fails_config_hash(self) -> None:
        small.edit_json(self.folder, "manifest.json", lambda v: v["config_hash"].update(pareto="0" * 64))
        self.follow_manifest()
        small.edit_json(self.folder, "summary.json", lambda v: v["config_hash"].update(pareto="0" * 64))
        self.sign_again()
        self.fails("config_hash")

    def follow_manifest(self) -> None:
        manifest = json.loads(self.path("manifest.json").read_bytes())
        small.edit_json(self.folder, "receipt.json", lambda v: v["receipt"].update(config_hash=manifest["config_hash"]))

    def sign_again(self) -> None:
        """Hashes of the documents made to fit; nothing else."""
        listed = foreign.Folder(self.folder)
        files = {name: listed.sha256(name) for name in listed.files if name not in ("receipt.json", receipts.SUMS)}
        small.edit_json(self.folder, "receipt.json", lambda v: v["receipt"].update(files=files))
        small.sums(self.folder)

    def test_an_arm_that_is_not_the_listed_one_fails_config_hash(self) -> None:
        small.edit_json(
            self.folder, "manifest.json", lambda v: v["arm_settings"]["pareto"].update(price_usd_per_mtok=None)
        )
        small.remake(self.folder, self.evaluation)
        self.fails("config_hash")

    def test_one_figure_in_its_last_digit_fails_figures(self) -> None:
        def nudge(summary: Any) -> None:
            figure = summary["arms"]["pareto"]["metrics"]["agreement"]
            figure["low"] = round(figure["low"] + 1e-10, 10)

        small.edit_json(self.folder, "summary.json", nudge)
        small.edit_json(self.folder, "receipt.json", lambda v: nudge(v["receipt"]["figures"]))
        self.sign_again()
        self.fails("figures")

    def test_a_figure_of_receipt_json_alone_fails_receipt(self) -> None:
        small.edit_json(
            self.folder, "receipt.json", lambda v: v["receipt"]["figures"]["arms"]["pareto"]["counts"].update(ok=15)
        )
        small.sums(self.folder)
        self.fails("receipt")

    def test_an_invented_figure_fails_figures(self) -> None:
        small.edit_json(self.folder, "summary.json", lambda v: v.update(superscore=1.0))
        small.edit_json(self.folder, "receipt.json", lambda v: v["receipt"]["figures"].update(superscore=1.0))
        self.sign_again()
        self.fails("figures")

    def test_what_another_version_of_our_code_would_explain_fails_figures_all_the_same(self) -> None:
        ours = small.small_evaluation()
        ours.hashes.update({"agreement.py": "0" * 64, "engine/summary.py": "0" * 64})

        def judge(found: Any) -> None:
            found["arms"]["invented"] = found["arms"]["pareto"]

        def praise(found: Any) -> None:
            found["warnings"] = ["certified"]

        for change in (judge, praise):
            with self.subTest(change.__name__):
                self.setUp()
                self.forge_figures(change)
                self.assertEqual({"figures"}, failing(self.folder, ours))

    def forge_figures(self, change: Callable[[Any], None]) -> None:
        """A change of the figures wherever they stand, with the sums made to fit."""
        small.edit_json(self.folder, "summary.json", change)
        small.edit_json(self.folder, "receipt.json", lambda v: change(v["receipt"]["figures"]))
        self.sign_again()

    def test_only_places_that_earlier_versions_are_known_to_lack_may_be_missing(self) -> None:
        ours = small.small_evaluation()
        ours.hashes.update({"agreement.py": "0" * 64})
        self.forge_figures(lambda found: found.pop("detectable"))
        self.assertEqual({"figures"}, failing(self.folder, ours))
        with unittest.mock.patch.object(verify, "EARLIER", ("detectable",)):
            self.assertEqual(set(), failing(self.folder, ours))
            self.assertEqual({"figures"}, failing(self.folder, self.evaluation))

    def test_one_cost_fails_sums(self) -> None:
        small.edit_json(self.folder, "summary.json", lambda v: v["cost_usd"]["pareto"].update(value=0.0))
        small.edit_json(
            self.folder, "receipt.json", lambda v: v["receipt"]["figures"]["cost_usd"]["pareto"].update(value=0.0)
        )
        self.sign_again()
        self.fails("sums")

    def test_row_tokens_that_are_not_its_replies_fail_sums(self) -> None:
        self.edit_rows(lambda made: made[0]["tokens"].update(input=1))
        small.refresh(self.folder)
        self.fails("sums")

    def test_one_response_id_twice_fails_identities(self) -> None:
        def double(made: list[Any]) -> None:
            for row in made[:1]:
                row["replies"]["swapped"]["id"] = row["replies"]["original"]["id"]
                row["response_id"] = ",".join([row["replies"]["original"]["id"]] * 2)

        self.edit_rows(double, "raw.jsonl.gz")
        small.remake(self.folder, self.evaluation)
        self.fails("identities")

    def test_a_second_served_model_fails_identities(self) -> None:
        def other(made: list[Any]) -> None:
            made[0]["replies"]["original"]["model"] = "pareto-26.11"

        self.edit_rows(other, "raw.jsonl.gz")
        small.remake(self.folder, self.evaluation)
        self.fails("identities")

    def test_a_reply_from_before_the_run_fails_times(self) -> None:
        def early(made: list[Any]) -> None:
            made[0]["replies"]["original"]["started_at"] = made[0]["started_at"] = evidence.utc_stamp(small.START - 60)

        self.edit_rows(early, "raw.jsonl.gz")
        small.remake(self.folder, self.evaluation)
        self.fails("times")

    def test_a_run_that_ends_in_the_future_fails_times(self) -> None:
        late = evidence.utc_stamp(NOW + 10 * 86_400)
        small.edit_json(self.folder, "manifest.json", lambda v: v.update(ended_at=late))
        small.remake(self.folder, self.evaluation)
        self.fails("times")

    def test_a_freeze_after_the_first_row_fails_times(self) -> None:
        late = {"commit": "c" * 40, "committed_at": evidence.utc_stamp(small.START + 3000), "reason": None}
        small.edit_json(self.folder, "receipt.json", lambda v: v["receipt"].update(freeze=late))
        small.edit_json(self.folder, "receipt.json", lambda v: v["eval"].update(freeze_sha="c" * 40))
        small.sums(self.folder)
        self.fails("times")

    def test_an_edited_field_of_schema_two_fails_receipt(self) -> None:
        for key, value in (("repeats", 9), ("prompt_sha256", "0" * 64), ("pareto_release", "pareto-99.9")):
            with self.subTest(key):
                good = self.path("receipt.json").read_bytes()
                small.edit_json(self.folder, "receipt.json", lambda v: v["eval"].update({key: value}))  # noqa: B023
                small.sums(self.folder)
                self.fails("receipt")
                self.path("receipt.json").write_bytes(good)


class HostileEvidence(ReceiptCase):
    """Bombs and malformed files end in a clear FAIL, not in a traceback or a full memory."""

    def told(self, check: str) -> str:
        found = checks_of(self.folder, self.evaluation)[check]
        self.assertEqual(verify.FAIL, found.status, found)
        return " ".join(found.lines)

    def test_a_file_of_very_many_gzip_members_is_refused(self) -> None:
        with open(self.path("raw.jsonl.gz"), "ab") as stream:
            stream.write(gzip.compress(b"") * 100_000)
        began = time.monotonic()
        found = checks_of(self.folder, self.evaluation)
        self.assertLess(time.monotonic() - began, 15)
        lines = [line for check in found.values() for line in check.lines]
        self.assertTrue(any("more than 10000 parts of the gzip file" in line for line in lines), found)

    def test_a_gzip_bomb_is_refused(self) -> None:
        for name, piece in (("long rows", b'{"a":"' + b"x" * (1 << 20) + b'"}\n'), ("blank lines", b"\n" * (1 << 20))):
            with self.subTest(name):
                with gzip.open(self.path("raw.jsonl.gz"), "wb", 9) as stream:
                    for _ in range(70):
                        stream.write(piece)
                found = checks_of(self.folder, self.evaluation)
                self.assertTrue(any("bomb" in line for check in found.values() for line in check.lines), found)

    def test_one_endless_line_is_refused(self) -> None:
        with gzip.open(self.path("raw.jsonl.gz"), "wb", 1) as stream:
            for _ in range(6):
                stream.write(b" " * (1 << 20))
        self.assertIn("longer than", self.told("rows"))

    def test_malformed_documents_are_refused(self) -> None:
        cases = {
            "deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
            "a little too deep": b'{"a":' * 80 + b"1" + b"}" * 80,
            "a huge number": b'{"format": ' + b"9" * 100_000 + b"}",
            "infinite": b'{"format": 1e999}',
            "not a number": b'{"format": NaN}',
            "a key twice": b'{"format": 1, "format": 2}',
            "a million keys": b"{" + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}",
            "no object": b"[]",
            "no text": b"\xff\xfe\x00",
            "empty": b"",
        }
        for name, data in cases.items():
            with self.subTest(name):
                self.path("manifest.json").write_bytes(data)
                self.assertIn("manifest.json", self.told("documents"))

    def test_settings_that_would_never_end_are_refused(self) -> None:
        small.edit_json(self.folder, "inputs/eval.json", lambda v: v.update(bootstrap={"resamples": 10**15}))
        self.assertIn("resamples", self.told("documents"))

    def test_repeats_without_end_are_refused(self) -> None:
        small.edit_json(self.folder, "manifest.json", lambda v: v.update(repeats=10**9))
        self.assertIn("repeats", self.told("documents"))

    def test_a_pattern_that_never_ends_is_not_tried(self) -> None:
        for hostile in ("(a+)+$", "(a|.)" * 40, "a?" * 40, ".*" * 9, ".{1,9}" * 9, "(x|(y|(z|(a|(b|(c|(d|e)))))))"):
            self.assertIsNone(room("audit").safe_pattern(hostile), hostile)
        for known in (r"openai/gpt-6\.1-sol(-\d{4}-?\d{2}-?\d{2})?", r"claude-haiku-5-5(-\d{8})?", "a{200}"):
            self.assertIsNotNone(room("audit").safe_pattern(known), known)
        self.assertIsNotNone(room("audit").safe_pattern(r"pareto-\d{2}\.\d{1,2}"))

    def test_a_path_in_a_document_is_never_opened(self) -> None:
        small.edit_json(
            self.folder, "receipt.json", lambda v: v["receipt"]["files"].update({"../../etc/passwd": "0" * 64})
        )
        small.sums(self.folder)
        found = checks_of(self.folder, self.evaluation)
        self.assertEqual(verify.FAIL, found["hashes"].status)
        with self.assertRaises(foreign.ForeignError):
            foreign.Folder(self.folder).read("../receipt/receipt.json")

    def test_text_that_steers_a_terminal_is_shown_escaped(self) -> None:
        small.edit_json(self.folder, "manifest.json", lambda v: v.update(split="\x1b[2Jtest"))
        report = self.report()
        self.assertNotIn("\x1b", report)
        self.assertIn("\\x1b", report)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One byte, or one JSON token, of some bytes changed."""
    at = rng.randrange(len(data))
    if rng.random() < 0.5:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    tokens = [b"null", b"0", b"-1", b"1e99", b'"x"', b"[]", b"{}", b"true", b"[[[[[[]]]]]]", b"\xff", b"", b'":']
    end = min(len(data), at + rng.randrange(1, 12))
    return data[:at] + rng.choice(tokens) + data[end:]


def mutate_folder(folder: str, rng: random.Random) -> tuple[str, bytes]:
    """Mutate one file, inside its packing or as it lies there; returns the file's name and its old bytes."""
    names = sorted(foreign.Folder(folder).files)
    weights = [6 if name.endswith((".json", ".gz")) else 1 for name in names]
    name = rng.choices(names, weights)[0]
    path = Path(folder, name)
    old = path.read_bytes()
    if name.endswith(".gz") and rng.random() < 0.7:
        lines = gzip.decompress(old)
        evidence.write_lines(str(path), [mutated(lines, rng)])
    else:
        path.write_bytes(mutated(old, rng))
    return name, old


def mutation_outcome(folder: str, evaluation: Any, rng: random.Random, forge: bool) -> str:
    """'found', 'no change', 'no value changed' or 'not found: …' for one random mutation, which is then undone.

    forge: SHA256SUMS and receipt.json's list are made to fit afterwards, so that only the other checks can find it.
    """
    before = {name: Path(folder, name).read_bytes() for name in ("receipt.json", receipts.SUMS)}
    name, old = mutate_folder(folder, rng)
    try:
        if Path(folder, name).read_bytes() == old:
            return "no change"
        if forge:
            forge_sums(folder)
        state = verify.verify(folder, evaluation, NOW, [])
        if any(check.status == verify.FAIL for check in state.done.values()):
            return "found"
        return "no value changed" if same_values(Path(folder, name), old) else f"not found: {name}"
    finally:
        Path(folder, name).write_bytes(old)
        for each, data in before.items():
            Path(folder, each).write_bytes(data)


def same_values(path: Path, old: bytes) -> bool:
    """Whether a file says what it said, if with other blanks or after a forger wrote its lists again."""
    new = path.read_bytes()
    return new == old or (path.name.endswith(".json") and json.loads(new) == json.loads(old))


def forge_sums(folder: str) -> None:
    """The hashes of the files made to fit, where receipt.json can still be read."""
    listed = foreign.Folder(folder)
    files = {name: listed.sha256(name) for name in listed.files if name not in ("receipt.json", receipts.SUMS)}
    try:
        value = foreign.parse_object(Path(folder, "receipt.json").read_bytes(), "receipt.json")
        value["receipt"]["files"] = files
        value["eval"]["raw"]["sha256"] = files["scored.jsonl.gz"]
        Path(folder, "receipt.json").write_bytes(evidence.pretty(value))
    except (evidence.EvidenceError, KeyError, TypeError):
        pass
    small.sums(folder)


class RandomMutations(ReceiptCase):
    def test_each_is_found_and_none_ends_in_a_traceback(self) -> None:
        rng = random.Random(5)
        outcomes = [mutation_outcome(self.folder, self.evaluation, rng, forge=False) for _ in range(60)]
        self.assertLessEqual(set(outcomes), {"found", "no change"})

    def test_each_with_the_sums_forged_is_found_or_changes_no_value(self) -> None:
        rng = random.Random(6)
        outcomes = [mutation_outcome(self.folder, self.evaluation, rng, forge=True) for _ in range(40)]
        self.assertLessEqual(set(outcomes), {"found", "no change", "no value changed"})


class ExpectedFigures(unittest.TestCase):
    RESULT = {
        "arms": {"judge": {"metrics": {"kappa": {"value": 0.61538}, "agreement": {"value": 0.8}}}},
        "repeats": {"judge": {"fleiss_kappa": {"value": 0.8728}}},
        "comparisons": [{"better": 4}],
    }

    def test_are_compared_at_their_printed_precision(self) -> None:
        for text, good in (
            ("kappa=0.6154", True),
            ("kappa=0.615", True),
            ("kappa=0.6155", False),
            ("judge.kappa=0.62", True),
            ("fleiss_kappa=0.8728", True),
            ("comparisons.0.better=4", True),
            ("comparisons.1.better=4", False),
            ("ac1=0.5", False),
        ):
            with self.subTest(text):
                lines = verify.expected_lines(self.RESULT, verify.parse_expected([text]))
                self.assertEqual(good, not lines, lines)

    def test_that_are_no_numbers_are_refused(self) -> None:
        for text in ("kappa", "kappa=", "kappa=high", "=0.5", "kappa=nan", "kappa=1e9"):
            with self.subTest(text), self.assertRaises(ValueError):
                verify.parse_expected([text])


if __name__ == "__main__":
    unittest.main()
