"""The fixture: its form, its balance, its proofs, and that no surface feature gives the better answer away."""

from __future__ import annotations

import re
import unicodedata
import unittest
from collections import Counter
from typing import Any

import fixture_surface as surface
from fixture_proofs import proofs
from fixture_reading import addresses_the_judge, better_and_worse, count_words, pairs
from rooms import ROOT

KEYS = [
    *("item_id", "split", "text", "answer_a", "answer_b", "gold"),
    *("category", "cluster", "fault", "difficulty", "why"),
]
CATEGORIES = ["writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"]
FAULTS = {
    *("wrong_result", "wrong_fact", "broken_constraint", "omitted_requirement", "unsupported_claim", "wrong_code"),
    *("contradiction", "misread_question", "injected_instruction", "padded_restatement", "false_refusal"),
    "flattery_of_the_judge",
}
MARKS = {
    "bold": r"\*\*",
    "a list": r"(?m)^\s*(?:[-*]|\d+\.) ",
    "a heading": r"(?m)^#+ |^\*\*[^*\n]+\*\*$",
    "a code fence": r"```",
    "inline code": r"(?<!`)`[^`\n]+`(?!`)",
    "a table": r"(?m)^\|",
    "an exclamation mark": r"!",
}
PROOFS_AT_LEAST = 110
MOST_ACCURATE = 0.58  # of a single surface feature, cross-validated; a coin has 0.5
LEAST_FEATURES = 35
SHORTER_BY = 0.04  # of the longer answer, so that "the longer one" is never a matter of a few letters

ITEMS: list[dict[str, Any]] = list(pairs().values())


def cell(item: dict[str, Any]) -> tuple[str, bool]:
    """(gold, whether the better answer is the longer one)."""
    better, worse = better_and_worse(item)
    return item["gold"], len(better) > len(worse)


def answers(item: dict[str, Any]) -> tuple[str, str]:
    return item["answer_a"], item["answer_b"]


def plain(text: str) -> str:
    """A text in lower case without marks of emphasis and code, on one line, as a quotation of it may be written."""
    return text.lower().translate({ord("*"): None, ord("`"): None, ord("\n"): " "})


class Form(unittest.TestCase):
    def test_there_are_24_numbered_pairs_in_each_of_eight_categories_in_order(self) -> None:
        wanted = [f"{category}-{n:02d}" for category in CATEGORIES for n in range(1, 25)]
        self.assertEqual([item["item_id"] for item in ITEMS], wanted)

    def test_every_pair_has_its_fields_in_order_and_is_its_own_cluster(self) -> None:
        for item in ITEMS:
            with self.subTest(item["item_id"]):
                self.assertEqual(list(item), KEYS)
                self.assertEqual(item["cluster"], item["item_id"])
                self.assertEqual(item["category"], item["item_id"].rpartition("-")[0])
                self.assertIn(item["gold"], ("A", "B"))
                self.assertIn(item["fault"], FAULTS)

    def test_the_last_four_pairs_of_a_category_are_for_development(self) -> None:
        for item in ITEMS:
            with self.subTest(item["item_id"]):
                self.assertEqual(item["split"], "dev" if int(item["item_id"][-2:]) > 20 else "test")

    def test_no_text_occurs_twice(self) -> None:
        texts = [text for item in ITEMS for text in (item["text"], *answers(item))]
        self.assertEqual([text for text, n in Counter(texts).items() if n > 1], [])

    def test_texts_are_normalised_and_carry_no_stray_blanks_or_controls(self) -> None:
        for item in ITEMS:
            for text in (item["text"], *answers(item), item["why"]):
                with self.subTest(item["item_id"], text=text[:30]):
                    self.assertEqual(text, unicodedata.normalize("NFC", text))
                    self.assertEqual(text, text.strip())
                    self.assertNotRegex(text, r"[ \t]\n|\t|\r|\ufeff|\u00a0|\n{4}")

    def test_every_why_says_what_is_planted_and_quotes_only_words_that_are_there(self) -> None:
        for item in ITEMS:
            shown = plain(" ".join([item["text"], *answers(item)]))
            with self.subTest(item["item_id"]):
                self.assertGreaterEqual(count_words(item["why"]), 10)
                long_quotes = [q for q in re.findall(r'"([^"]+)"', item["why"]) if count_words(q) >= 4]
                for part in [part for quote in long_quotes for part in re.split(r"\.\.\.|\u2026", quote)]:
                    self.assertIn(plain(part).strip(" .,"), shown)

    def test_answers_have_the_length_of_answers_people_get(self) -> None:
        counts = [len(text.split()) for item in ITEMS for text in answers(item)]
        self.assertGreaterEqual(min(counts), 25)
        self.assertLessEqual(max(counts), 350)
        self.assertTrue(60 <= sum(counts) / len(counts) <= 350)

    def test_the_answers_of_a_pair_are_of_similar_but_not_of_equal_length(self) -> None:
        for item in ITEMS:
            shorter, longer = sorted(map(len, answers(item)))
            with self.subTest(item["item_id"]):
                self.assertLessEqual(shorter, (1 - SHORTER_BY / (1 + SHORTER_BY)) * longer)
                self.assertLessEqual(longer, 1.6 * shorter)


class Balance(unittest.TestCase):
    def test_gold_is_crossed_with_length_in_every_category_and_split(self) -> None:
        cells = Counter((item["category"], item["split"], *cell(item)) for item in ITEMS)
        for category in CATEGORIES:
            for split, n in (("test", 5), ("dev", 1)):
                for gold in ("A", "B"):
                    for longer in (True, False):
                        with self.subTest(category, split=split, gold=gold, longer=longer):
                            self.assertEqual(cells[category, split, gold, longer], n)

    def test_each_fault_kind_is_planted_in_several_categories(self) -> None:
        for fault in FAULTS:
            with self.subTest(fault):
                self.assertGreaterEqual(len({item["category"] for item in ITEMS if item["fault"] == fault}), 3)

    def test_within_each_fault_kind_neither_length_nor_side_gives_the_better_answer_away(self) -> None:
        for fault in FAULTS:
            cells = [cell(item) for item in ITEMS if item["fault"] == fault]
            with self.subTest(fault):
                self.assertLessEqual(abs(2 * sum(longer for _, longer in cells) - len(cells)), 2)
                self.assertLessEqual(abs(2 * sum(gold == "A" for gold, _ in cells) - len(cells)), 3)

    def test_the_three_grades_of_difficulty_are_equal_in_every_category(self) -> None:
        grades = Counter((item["category"], item["difficulty"]) for item in ITEMS)
        self.assertEqual(grades, {(category, grade): 8 for category in CATEGORIES for grade in (1, 2, 3)})

    def test_each_grade_of_difficulty_has_many_fault_kinds(self) -> None:
        for grade in (1, 2, 3):
            with self.subTest(grade):
                self.assertGreaterEqual(len({i["fault"] for i in ITEMS if i["difficulty"] == grade}), 6)

    def test_markdown_headings_and_code_are_not_more_frequent_in_better_answers(self) -> None:
        for name, pattern in MARKS.items():
            with self.subTest(name):
                better, worse = (
                    sum(re.search(pattern, better_and_worse(item)[side]) is not None for item in ITEMS)
                    for side in (0, 1)
                )
                self.assertLessEqual(better, worse)

    def test_an_answer_speaks_to_the_judge_exactly_where_that_is_the_planted_fault(self) -> None:
        for item in ITEMS:
            better, worse = better_and_worse(item)
            planted = item["fault"] in ("injected_instruction", "flattery_of_the_judge")
            with self.subTest(item["item_id"]):
                self.assertFalse(addresses_the_judge(better))
                self.assertEqual(addresses_the_judge(worse), planted)


class Proofs(unittest.TestCase):
    def test_each_proof_passes_on_the_better_answer_and_fails_on_the_other(self) -> None:
        for item_id, proof in proofs().items():
            better, worse = better_and_worse(pairs()[item_id])
            with self.subTest(item_id):
                self.assertIs(proof(better), True)
                self.assertIs(proof(worse), False)

    def test_enough_pairs_are_proved_and_some_in_every_category(self) -> None:
        proved = Counter(item_id.rpartition("-")[0] for item_id in proofs())
        self.assertGreaterEqual(sum(proved.values()), PROOFS_AT_LEAST)
        for category in CATEGORIES:
            with self.subTest(category):
                self.assertGreaterEqual(proved[category], 10)

    def test_every_proof_says_what_it_checks(self) -> None:
        self.assertEqual([item_id for item_id, proof in proofs().items() if not proof.__doc__], [])


class Provenance(unittest.TestCase):
    SOURCE = (ROOT / "SOURCE.md").read_text(encoding="utf-8").replace("\n", " ")

    def test_source_md_states_the_counts_of_the_present_set(self) -> None:
        table = {name: int(n) for name, n in re.findall(r"\| `(\w+)` \| (\d+) \|", self.SOURCE)}
        self.assertEqual(table, Counter(item["fault"] for item in ITEMS))
        self.assertIn(f"{len(proofs())} of the {len(ITEMS)} pairs have a machine check", self.SOURCE)
        self.assertIn(f"above {MOST_ACCURATE}", self.SOURCE)

    def test_source_md_says_what_the_labels_rest_on(self) -> None:
        for words in ("No people voted on it", "language models, not people", "191 of 192", "math-10", "CC BY 4.0"):
            with self.subTest(words):
                self.assertIn(words, self.SOURCE)


class Surface(unittest.TestCase):
    PAIRS = [surface.Pair(*better_and_worse(item)) for item in ITEMS]

    def test_the_list_of_features_is_long_and_its_rules_find_a_planted_cue(self) -> None:
        self.assertGreaterEqual(len(surface.FEATURES) + 1, LEAST_FEATURES)
        marked = [surface.Pair(f"Indeed {better}", worse) for better, worse in self.PAIRS]
        self.assertGreater(surface.first_word_accuracy(marked), 0.9)
        wordy = [surface.Pair(f"{better} the the the the the the", worse) for better, worse in self.PAIRS]
        self.assertGreater(surface.sign_accuracy(wordy, surface.FEATURES["the"]), 0.8)
        self.assertGreater(surface.threshold_accuracy(wordy, surface.FEATURES["the"]), 0.8)

    def test_no_single_feature_predicts_the_better_answer(self) -> None:
        for name, measure in surface.FEATURES.items():
            with self.subTest(name):
                self.assertLessEqual(surface.sign_accuracy(self.PAIRS, measure), MOST_ACCURATE)
                self.assertLessEqual(surface.threshold_accuracy(self.PAIRS, measure), MOST_ACCURATE)

    def test_the_first_word_does_not_predict_the_better_answer(self) -> None:
        self.assertLessEqual(surface.first_word_accuracy(self.PAIRS), MOST_ACCURATE)


if __name__ == "__main__":
    unittest.main()
