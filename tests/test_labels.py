"""Labels: the sample, the sides, the file and what a torn or foreign line does."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

from rooms import room

labels = room("labels")
evidence = room("evidence")


def task(number: int, **changed: Any) -> Any:
    given = {"item": f"item-{number:03d}", "kind": "pair", "panels": (("Question", f"q{number}"),)}
    return labels.Task(**{**given, "answers": (f"a{number}", f"b{number}"), **changed})


def graded(number: int) -> Any:
    """120 tasks: scores 1 to 5 in unequal shares, four categories."""
    score = (1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5)[number % 12]
    return task(number, kind="score", answers=(f"a{number}",), judge=score, category="abcd"[number // 12 % 4])


GOOD = {
    "time": "2026-01-02T03:04:05.000000Z",
    "annotator": "ana",
    "kind": "pair",
    "item": "item-001",
    "label": "A",
    "shown": "swapped",
    "comment": "",
    "seconds": 1.5,
    "content": "",
}


class TheSample(unittest.TestCase):
    tasks = [graded(number) for number in range(120)]

    def test_a_larger_sample_holds_the_smaller_one(self) -> None:
        order = labels.stratified(self.tasks, 7)
        self.assertEqual({one.item for one in order}, {one.item for one in self.tasks})
        small = labels.presentation(self.tasks, 8, 7, "ana")
        large = labels.presentation(self.tasks, 20, 7, "ana")
        self.assertLess({one.item for one in small}, {one.item for one in large})

    def test_every_score_gets_its_share_to_within_one_item(self) -> None:
        shares = Counter(one.judge for one in self.tasks)
        for seed in range(20):
            drawn = Counter(one.judge for one in labels.stratified(self.tasks, seed)[:24])
            for score, count in shares.items():
                self.assertLessEqual(abs(drawn[score] - count * 24 / 120), 2, (seed, score))

    def test_every_item_is_equally_likely_to_be_drawn(self) -> None:
        tasks = self.tasks[:30]
        drawn = Counter(one.item for seed in range(3000) for one in labels.stratified(tasks, seed)[:6])
        for one in tasks:  # 600 expected, standard deviation 22
            self.assertLess(abs(drawn[one.item] - 600), 110, one.item)

    def test_the_order_of_the_file_does_not_matter_and_the_seed_does(self) -> None:
        forward = [one.item for one in labels.stratified(self.tasks, 7)]
        self.assertEqual(forward, [one.item for one in labels.stratified(self.tasks[::-1], 7)])
        self.assertNotEqual(forward, [one.item for one in labels.stratified(self.tasks, 8)])

    def test_even_order_lists_each_place_once_for_any_size(self) -> None:
        for n in (0, 1, 2, 7, 1000):
            self.assertEqual(sorted(labels.even_order(n, 0.999999)), list(range(n)))

    def test_sides_are_shuffled_per_person_and_stay_when_asked_again(self) -> None:
        pairs = [task(number) for number in range(400)]
        ana = [labels.shown_order(one, 7, "ana") for one in pairs]
        self.assertEqual(ana, [labels.shown_order(one, 7, "ana") for one in pairs])
        self.assertNotEqual(ana, [labels.shown_order(one, 7, "ben") for one in pairs])
        self.assertTrue(150 < ana.count("swapped") < 250)
        self.assertIsNone(labels.shown_order(graded(1), 7, "ana"))


class TheFile(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = str(Path(temporary.name) / "labels.jsonl")

    def write(self, *rows: Any, end: str = "\n") -> None:
        Path(self.path).write_text("\n".join(json.dumps(row) for row in rows) + end, encoding="utf-8")

    def session(self, **more: Any) -> Any:
        book = labels.LabelBook(self.path)
        self.addCleanup(book.close)
        given = {"seed": 7, "clock": lambda: 1.0, **more}
        return labels.Session([task(number) for number in range(6)], "ana", book, **given)

    def test_a_label_is_on_disk_when_give_returns(self) -> None:
        synced = []
        real = os.fsync
        self.addCleanup(setattr, os, "fsync", real)

        def fsync(descriptor: int) -> None:
            synced.append(descriptor)
            real(descriptor)

        os.fsync = fsync  # type: ignore[assignment]
        session = self.session()
        session.give(0, "A", "why", 2.34)
        self.assertEqual(len(synced), 1)
        kept = labels.read_labels(self.path)
        self.assertEqual(
            [(one.annotator, one.item, one.comment, one.seconds) for one in kept], [("ana", "item-000", "why", 2.3)]
        )

    def test_a_label_is_kept_in_the_items_own_sides_and_read_back_as_shown(self) -> None:
        session = self.session()
        for place, shown in enumerate(session.shown):
            kept = session.give(place, "A")
            self.assertEqual(kept.label, "B" if shown == "swapped" else "A")
            self.assertEqual(session.choice(place), "A")
            own = session.tasks[place].answers
            self.assertEqual(session.answers(place)[0], own[1] if shown == "swapped" else own[0])
        self.assertEqual({"original", "swapped"}, set(session.shown))

    def test_a_later_line_supersedes_and_the_earlier_one_stays(self) -> None:
        session = self.session()
        session.give(0, "A")
        session.give(0, "equal")
        session.give(1, None)
        kept = labels.read_labels(self.path)
        self.assertEqual(len(kept), 3)
        self.assertEqual(labels.standing(kept)["ana", "item-000"].label, "equal")
        self.assertEqual(labels.revisions(kept), 1)
        self.assertEqual(session.counts(), {"labelled": 1, "skipped": 1, "open": 4})

    def test_another_session_goes_on_where_the_first_stopped(self) -> None:
        first = self.session()
        first.give(0, "A")
        first.give(1, None)
        first.book.close()
        self.assertEqual(self.session().next_open(), 2)

    def test_open_items_before_the_place_are_found_after_the_last(self) -> None:
        session = self.session()
        session.give(5, "B")
        self.assertEqual(session.next_open(5), 0)

    def test_labels_whose_line_feeds_are_lost_are_refused_and_stay(self) -> None:
        for instead in (b"\r", b""):
            self.write(GOOD, GOOD, GOOD)
            data = Path(self.path).read_bytes().replace(b"\n", instead)
            Path(self.path).write_bytes(data)
            with self.assertRaises((labels.LabelError, evidence.EvidenceError)):
                labels.LabelBook(str(self.path))
            self.assertEqual(data, Path(self.path).read_bytes())

    def test_a_torn_last_line_is_cut_and_a_whole_one_without_its_end_is_kept_when_a_label_is_added(self) -> None:
        for rows, torn, size in (([GOOD], '\n{"time": "2026-01-', 18), ([], '{"ti', 4), ([GOOD, GOOD], "", 0)):
            with self.subTest(torn):
                self.write(*rows, end=torn)
                before = Path(self.path).read_bytes()
                session = self.session()
                self.assertEqual((session.book.unfinished_bytes, len(session.book.labels)), (size, len(rows)))
                self.assertEqual(Path(self.path).read_bytes(), before)
                session.give(0, "A")
                self.assertEqual(len(labels.read_labels(self.path)), len(rows) + 1)

    def test_a_file_of_anything_else_is_refused_and_stays_as_it_is(self) -> None:
        good = json.dumps(GOOD).encode()
        for content in (
            b"PRECIOUS",
            b'{"a": 1}',
            b'{\n "a": 1\n}',
            b"1\n2",
            b"text\n" + good,
            good + b"\ntext\n" + good,
        ):
            with self.subTest(content):
                Path(self.path).write_bytes(content)
                with self.assertRaises((labels.LabelError, evidence.EvidenceError)):
                    labels.LabelBook(self.path)
                self.assertEqual(Path(self.path).read_bytes(), content)

    def test_a_file_that_became_another_one_meanwhile_is_not_cut(self) -> None:
        session = self.session()
        Path(self.path).write_bytes(b"PRECIOUS")
        with self.assertRaises(evidence.EvidenceError):
            session.give(0, "A")
        self.assertEqual(Path(self.path).read_bytes(), b"PRECIOUS")

    def test_seconds_beyond_every_float_are_no_number(self) -> None:
        self.write({**GOOD, "seconds": 10**400})
        self.assertIsNone(labels.read_labels(self.path)[0].seconds)

    def test_two_people_write_to_one_file(self) -> None:
        ana, ben = self.session(), self.session()
        ben.annotator = "ben"
        ana.give(0, "A")
        ben.give(0, "B")
        ana.give(1, "A")
        self.assertEqual([one.annotator for one in labels.read_labels(self.path)], ["ana", "ben", "ana"])

    def test_bad_lines_are_refused_with_file_line_field_expected_and_got(self) -> None:
        cases = (
            ({"label": "C"}, "field 'label': expected one of A, B, equal, null, got 'C'"),
            ({"label": 3}, "field 'label': expected one of A, B, equal, null, got 3"),
            ({"label": True}, "field 'label': expected int or str or null, got 'True'"),
            ({"kind": "score", "shown": None, "label": 6}, "field 'label': expected one of 1, 2, 3, 4, 5, null, got 6"),
            ({"kind": "score", "label": 3}, "field 'shown': expected one of null, got 'swapped'"),
            ({"kind": "other"}, "field 'kind': expected one of score, pair, got 'other'"),
            ({"annotator": None}, "field 'annotator': expected str, got 'None'"),
            ({"shown": "left"}, "field 'shown': expected one of original, swapped, got 'left'"),
        )
        for changed, message in cases:
            with self.subTest(changed):
                self.write(GOOD, {**GOOD, **changed})
                with self.assertRaises(labels.LabelError) as caught:
                    labels.read_labels(self.path)
                self.assertEqual(str(caught.exception), f"{self.path}:2: {message}")
        missing = {key: value for key, value in GOOD.items() if key != "label"}
        self.write(missing)
        with self.assertRaisesRegex(labels.LabelError, ":1: field 'label' is missing"):
            labels.read_labels(self.path)

    def test_a_separator_that_only_looks_like_a_line_end_stays_in_a_comment(self) -> None:
        self.session().give(0, "A", "one\u2028two\x85three")
        self.assertEqual(labels.read_labels(self.path)[0].comment, "one\u2028two\x85three")

    def test_half_a_surrogate_pair_in_a_comment_can_be_kept(self) -> None:
        self.session().give(0, "A", "\ud800")
        self.assertEqual(labels.read_labels(self.path)[0].comment, "\ud800")

    def test_labels_of_other_texts_under_the_same_id_are_refused(self) -> None:
        session = self.session()
        session.give(0, "A")
        changed = [task(0, answers=("another", "b0"))]
        with self.assertRaisesRegex(labels.LabelError, "was labelled with other texts"):
            labels.check_content(session.book.labels, changed, self.path, "pairs.jsonl")
        self.assertEqual(labels.check_content(session.book.labels, [task(9)], self.path, "p"), ["item-000"])

    def test_an_answer_that_the_task_does_not_allow_is_not_written(self) -> None:
        session = self.session()
        for choice in ("invalid", "C", 1, True):
            with self.assertRaises(labels.LabelError):
                session.give(0, choice)
        self.assertFalse(os.path.exists(self.path))


if __name__ == "__main__":
    unittest.main()
