"""Evidence in the published format verifies; tampered with in one thing, it does not."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import published_evidence as evidence
from rooms import room

published, verify, foreign = room("published"), room("verify"), room("foreign")
NOW = 1_900_000_000.0
OURS = SimpleNamespace(check=room("check"), recipe=room("recipe"), slug="planted-faults", hashes={})


def checks_of(folder: str, *expected: str) -> dict[str, Any]:
    return dict(published.verify(folder, OURS, NOW, verify.parse_expected(list(expected))).done)


def failing(folder: str, *expected: str) -> set[str]:
    return {name for name, check in checks_of(folder, *expected).items() if check.status == verify.FAIL}


class PublishedCase(unittest.TestCase):
    top: str
    good: str
    folder: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.top = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.good = evidence.write(os.path.join(cls.top, "good"))

    def setUp(self) -> None:
        self.folder = os.path.join(tempfile.mkdtemp(dir=self.top), "broken")
        shutil.copytree(self.good, self.folder)


class GoodEvidence(PublishedCase):
    def test_passes_with_what_it_cannot_show_not_checked(self) -> None:
        found = checks_of(self.good)
        missing = {name for name, check in found.items() if check.status == verify.NOT_CHECKED}
        self.assertEqual((set(), {"replies", "freeze", "pinned code", "labels"}), (failing(self.good), missing))

    def test_labels_are_compared_where_the_evaluation_is_known_here(self) -> None:
        folder = foreign.Folder(self.good)
        data = next(folder.read(name) for name in folder.files if "fixture" in name)
        items = foreign.load_fixture(data, "fixture.jsonl")
        known = SimpleNamespace(slug="theirs", hashes={"fixture.jsonl": "x"}, items=items)
        state = SimpleNamespace(config={"slug": "theirs"}, fixture=items, ours=known)
        self.assertEqual(verify.OK, published.check_labels(state).status)
        other = data.replace(b'"gold":"A"', b'"gold":"B"', 1).replace(b'"gold": "A"', b'"gold": "B"', 1)
        self.assertNotEqual(data, other)
        state.fixture = foreign.load_fixture(other, "fixture.jsonl")
        found = published.check_labels(state)
        self.assertEqual((verify.FAIL, 1), (found.status, len(found.lines)))
        self.assertIn("gold: expected A, got B", found.lines[0])

    def test_gives_the_figures_that_the_page_prints(self) -> None:
        quoted = ["pareto.kappa=0.6154", "baseline.kappa=0.5966", "pareto.agreement=0.80", "baseline.agreement=0.79"]
        quoted += [
            "human.kappa=0.7201",
            "human.agreement=0.86",
            "arms.pareto.per_gold.A.k=40",
            "arms.pareto.per_gold.B.k=40",
        ]
        self.assertEqual(set(), failing(self.good, *quoted))
        self.assertEqual({"figures"}, failing(self.good, "pareto.kappa=0.6155"))

    def test_may_hold_one_arm_after_the_other(self) -> None:
        self.assertEqual(set(), failing(evidence.write(os.path.join(self.folder, "merged"), arm_after_arm=True)))

    def test_may_be_pending_with_one_arm(self) -> None:
        self.assertEqual(
            set(), failing(evidence.write(os.path.join(self.folder, "pending"), ("pareto",)), "kappa=0.6154")
        )

    def test_is_told_from_our_own_receipts(self) -> None:
        self.assertTrue(published.is_published(foreign.Folder(self.good)))

    def test_has_its_checks_numbered_as_the_docstring_lists_them(self) -> None:
        listed = [line[:15].split(None, 1) for line in published.__doc__.split("\n") if line[:2].strip().isdigit()]
        named = [(str(number), name) for number, (name, _) in enumerate(published.CHECKS, 1)]
        self.assertEqual(named, [(number, name.strip()) for number, name in listed])


class TamperedEvidence(PublishedCase):
    def edit(self, change: Callable[[list[Any]], Any], refresh: bool = True) -> None:
        """Change the rows; refresh: have receipt.json made anew by the format's own rules for what is there now."""
        path = Path(self.folder, "runs/one/raw.jsonl.gz")
        made = [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n") if line]
        made = change(made) or made
        files = {
            name: Path(self.folder, f"scripts/{name}").read_bytes() for name in ("recipe.py", "check.py", "eval.json")
        }
        files["fixture.jsonl"] = Path(self.folder, "fixture.jsonl").read_bytes()
        receipt = Path(self.folder, "receipt.json").read_bytes()
        evidence.place(self.folder, files, made, ("pareto", "baseline"))
        if not refresh:
            Path(self.folder, "receipt.json").write_bytes(receipt)

    def edit_receipt(self, change: Callable[[Any], None]) -> None:
        path = Path(self.folder, "receipt.json")
        value = json.loads(path.read_bytes())
        change(value)
        path.write_bytes(evidence.pretty(value))

    def test_rows_behind_another_hash_fail_files(self) -> None:
        self.edit(lambda made: made[0].update(latency_ms=1), refresh=False)
        self.assertEqual({"files"}, failing(self.folder))

    def test_each_kind_of_row_tampering_fails_its_check(self) -> None:
        def swap(made: list[Any]) -> None:
            made[7], made[8] = made[8], made[7]

        def same(made: list[Any]) -> None:
            for row in made:
                row["tool_arguments"]["original"]["reason"] = "Always this."

        cases: list[tuple[str, Callable[[list[Any]], Any]]] = [
            ("rows", lambda made: made.pop(9) and None),
            ("rows", lambda made: made.insert(9, made[9])),
            ("rows", swap),
            ("rows", lambda made: made[9].update(note="x")),
            ("scores", lambda made: made[9].update(prediction="invalid")),
            ("scores", lambda made: made[9].update(gold="B")),
            ("scores", lambda made: made[9]["tool_arguments"]["original"].update(choice="invalid")),
            ("identity", lambda made: made[8].update(provider_served="OpenAI")),
            ("identity", lambda made: made[9].update(max_tokens=9)),
            ("identity", lambda made: made[9].update(errors=1)),
            ("identities", lambda made: made[9].update(response_id=made[11]["response_id"])),
            ("times", lambda made: made[9].update(started_at="2026-02-31T00:00:00.000000Z")),
            ("sameness", same),
        ]
        for number, (check, change) in enumerate(cases):
            with self.subTest(number=number, check=check):
                self.edit(change)
                self.assertEqual({check}, failing(self.folder))
                shutil.rmtree(self.folder)
                shutil.copytree(self.good, self.folder)

    def test_each_kind_of_receipt_tampering_fails_its_check(self) -> None:
        cases: list[tuple[str, Callable[[Any], Any]]] = [
            ("receipt", lambda v: v["eval"].update(schema=3)),
            ("receipt", lambda v: v.update(result="fail")),
            ("files", lambda v: v["eval"].update(recipe_sha256="0" * 64)),
            ("settings", lambda v: v["eval"].update(seed=8)),
            ("settings", lambda v: v["eval"]["fixture"].update(items=99)),
            ("settings", lambda v: v["eval"].update(prompt_sha256="0" * 64)),
            ("conditions", lambda v: v["eval"].update(baseline_status="pending")),
            ("totals", lambda v: v["eval"]["arms"]["pareto"]["runs"][0]["tokens"].update(input=1)),
            ("totals", lambda v: v["eval"]["arms"]["baseline"]["runs"][4].update(response_ids_sha="0" * 64)),
            ("identities", lambda v: v["eval"]["arms"]["pareto"].update(response_model="pareto-26.11")),
            ("identities", lambda v: v["eval"]["arms"]["baseline"].update(endpoint="https://other.example/v1")),
            ("times", lambda v: v.update(date="2026-10-01")),
        ]
        for number, (check, change) in enumerate(cases):
            with self.subTest(number=number, check=check):
                good = Path(self.folder, "receipt.json").read_bytes()
                self.edit_receipt(change)
                self.assertEqual({check}, failing(self.folder))
                Path(self.folder, "receipt.json").write_bytes(good)

    def test_gold_edited_with_all_hashes_refreshed_fails_scores(self) -> None:
        path = Path(self.folder, "fixture.jsonl")
        path.write_bytes(path.read_bytes().replace(b'"gold":"A"', b'"gold":"B"', 1))
        config = json.loads(Path(self.folder, "scripts/eval.json").read_bytes())
        config["fixture_sha256"] = evidence.sha(path.read_bytes())
        Path(self.folder, "scripts/eval.json").write_bytes(evidence.pretty(config))
        self.edit(lambda made: None)
        self.assertEqual({"scores"}, failing(self.folder))

    def test_a_path_in_the_receipt_is_never_opened(self) -> None:
        self.edit_receipt(lambda v: v["eval"]["raw"].update(path="/etc/passwd"))
        self.assertEqual(set(), failing(self.folder))


if __name__ == "__main__":
    unittest.main()
