"""engine/fixtures.py: every row of a fixture is checked before anything is sent, and no text in it is changed."""

from __future__ import annotations

import json
import unittest
from typing import Any

from rooms import room

evidence, fixtures = room("evidence"), room("fixtures")
PAIR = {"item_id": "p1", "split": "test", "text": "Say hi", "answer_a": "Hi", "answer_b": "Hello", "gold": "A"}


def line(**changes: Any) -> bytes:
    return json.dumps({**PAIR, **changes}).encode() + b"\n"


def load(data: bytes) -> tuple[Any, list[str]]:
    """The items, and what is odd in them as text."""
    items, oddities = fixtures.load_items(data, "fixture.jsonl")
    return items, [" ".join(map(str, oddity)) for oddity in oddities]


class Fixture(unittest.TestCase):
    def refused(self, data: bytes, *words: str) -> str:
        with self.assertRaises(evidence.EvidenceError) as caught:
            load(data)
        for word in words:
            self.assertIn(word, str(caught.exception))
        return str(caught.exception)

    def test_half_a_surrogate_pair_is_taken_and_written_again(self) -> None:  # D01
        items, _ = load(line(answer_a="Hi \ud83d"))
        self.assertEqual("Hi \ud83d", items[0]["answer_a"])
        self.assertEqual("Hi \ud83d", json.loads(evidence.row_bytes(items[0]))["answer_a"])

    def test_a_nul_is_taken_with_a_warning_that_names_row_and_side(self) -> None:  # D02
        items, warnings = load(line(answer_a="$12\0 to $18"))
        self.assertEqual("$12\0 to $18", items[0]["answer_a"])
        self.assertRegex(warnings[0], "p1.*answer_a.*U[+]0000")

    def test_line_separators_inside_a_text_do_not_split_the_row(self) -> None:  # D03
        odd = "one\u2028two\u2029three\x85four\x0bfive\x0csix\x1cseven"
        data = (
            json.dumps({**PAIR, "answer_a": odd}, ensure_ascii=False).encode().replace(b"\\u000b", b"\\u000b") + b"\n"
        )
        items, _ = load(data)
        self.assertEqual((1, odd), (len(items), items[0]["answer_a"]))

    def test_carriage_returns_and_blank_lines_between_rows_are_passed_over(self) -> None:  # D04
        data = (
            line() + b"\r\n" + line(item_id="p2", answer_a="a\r\nb").replace(b"\n", b"\r\n") + line(item_id="p3")[:-1]
        )
        items, _ = load(data)
        self.assertEqual(["p1", "p2", "p3"], items.ids)
        self.assertEqual("a\r\nb", items[1]["answer_a"])

    def test_a_byte_order_mark_is_dropped_at_the_start_only(self) -> None:  # D05
        items, _ = load(b"\xef\xbb\xbf" + line(answer_b="\ufeffHello"))
        self.assertEqual("\ufeffHello", items[0]["answer_b"])

    def test_bytes_that_are_not_utf_8_are_refused_with_line_and_byte(self) -> None:  # D07
        self.refused(line() + line(item_id="p2").replace(b"Hi", b"it\x92s"), "line 2", "UTF-8", "0x92")

    def test_two_rows_with_one_id_are_refused_with_both_lines(self) -> None:  # D08
        self.refused(line() + b"\n" + line(), "'p1'", "line 1", "3")

    def test_all_faulty_lines_are_listed_with_id_and_field(self) -> None:  # D10
        data = line() + line(item_id="p2", answer_a=None) + line(item_id="p3").replace(b'"gold": "A"', b'"silver": 1')
        text = self.refused(
            data, "fixture.jsonl:2", "'p2'", "'answer_a'", "NoneType", "fixture.jsonl:3", "'gold' is missing"
        )
        self.assertEqual(2, len(text.split("\n")))

    def test_only_the_first_twenty_problems_are_shown_in_full(self) -> None:
        text = self.refused(b"".join(line(item_id=f"p{n}", gold="C") for n in range(30)))
        self.assertEqual("… and 10 more problems", text.split("\n")[-1])

    def test_an_empty_answer_is_taken_with_a_warning(self) -> None:  # D11
        self.assertRegex(load(line(answer_b=""))[1][0], "p1.*answer_b is empty")

    def test_a_text_that_looks_like_a_key_stays_as_it_is(self) -> None:  # D15
        text = "risk-adjusted; export OPENAI_API_KEY=sk-example0123456789abcdef"
        self.assertEqual(text, load(line(answer_a=text))[0][0]["answer_a"])

    def test_every_wrong_field_is_refused_by_name(self) -> None:
        cases = {
            "split": "train", "gold": "a", "item_id": "", "text": 7, "category": 3, "cluster": ["x"],
            "votes": "A", "model_a": 1,
        }  # fmt: skip
        for field, value in cases.items():
            with self.subTest(field):
                self.refused(line(**{field: value}), f"'{field}'")
        self.refused(line(votes=[{"judge": "ann", "label": "a"}]), "votes[0]")

    def test_what_is_no_strict_json_object_is_refused_with_its_line(self) -> None:
        cases = (
            b"[1]",
            b'{"a": NaN}',
            b'{"a": 1e999}',
            b"{'a': 1}",
            b'{"item_id": "a", "item_id": "b"}',
            b"[" * 100_000,
            b"text",
        )
        for data in cases:
            with self.subTest(data[:20]):
                self.refused(line() + data + b"\n", "fixture.jsonl:2")

    def test_an_empty_fixture_is_refused(self) -> None:
        for data in (b"", b"\n \r\n", b"\xef\xbb\xbf\n"):
            self.refused(data, "holds no items")

    def test_limit_comes_before_shard_and_the_shards_are_a_partition(self) -> None:
        data = b"".join(line(item_id=f"p{n}", split="dev" if n % 5 == 0 else "test") for n in range(50))
        items, _ = load(data)
        whole = fixtures.select(items, "test", 21, None).ids
        shards = [fixtures.select(items, "test", 21, f"{n}/4").ids for n in range(1, 5)]
        self.assertEqual(21, len(whole))
        self.assertEqual(sorted(whole), sorted(sum(shards, [])))
        self.assertEqual(whole[1::4], shards[1])


if __name__ == "__main__":
    unittest.main()
