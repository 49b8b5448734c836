"""engine/tables.py: the same result as text, markdown, CSV and JSON, every figure with its counts."""

from __future__ import annotations

import csv
import io
import json
import unittest
from typing import Any

import test_summary
from rooms import room

tables = room("tables")
PAIRS = [test_summary.RIGHT["A"], test_summary.RIGHT["B"], ("A", "A"), ("A", "invalid"), ("failed", "A")]


def result() -> dict[str, Any]:
    rows = test_summary.pairs(5)
    rows[0]["category"] = "a|b"
    return test_summary.judged({"judge": [PAIRS], "control-first": [[("A", "A")] * 5]}, rows, by="category")


def shown(form: str, **changes: Any) -> str:
    return str(tables.render(result(), test_summary.options(format=form, **changes)))


class Forms(unittest.TestCase):
    def test_json_is_the_result_itself(self) -> None:
        self.assertEqual(json.loads(json.dumps(result())), json.loads(shown("json")))

    def test_the_text_shows_states_counts_and_what_bounds_them(self) -> None:
        text = shown("table")
        for words in ("2/4 0.500", "3/1/1", "Judges against gold", "a judge that reads nothing", "first/second"):
            self.assertIn(words, text)
        self.assertIn("judge: replies 8 ok, 1 invalid, 1 failed, 0 missing", text)

    def test_csv_has_one_line_for_every_metric_with_its_figures(self) -> None:
        lines = list(csv.reader(io.StringIO(shown("csv"))))
        self.assertEqual(list(tables.CSV_HEAD), lines[0])
        (line,) = [each for each in lines if each[:3] == ["all", "judge", "agreement"]]
        self.assertEqual((0.5, "2", "4"), (float(line[3]), line[6], line[7]))

    def test_markdown_escapes_bars_and_has_equal_columns_in_a_table(self) -> None:
        text = shown("markdown", by="category")
        self.assertIn("a\\|b", text)
        for table in text.split("\n\n"):
            rows = [line.replace("\\|", "").count("|") for line in table.split("\n") if line.startswith("|")]
            self.assertLessEqual(len(set(rows)), 1)

    def test_disagreements_are_listed_on_request_only(self) -> None:
        self.assertNotIn("pairs decided other than gold", shown("table"))
        self.assertIn(
            "judge: 2 pairs decided other than gold: pair-00002 pair-00003", shown("table", disagreements=True)
        )

    def test_an_incomplete_run_says_so_first(self) -> None:
        found = {**result(), "status": "incomplete"}
        self.assertTrue(tables.render(found, test_summary.options()).startswith("INCOMPLETE RUN"))


class Figures(unittest.TestCase):
    def test_an_undefined_figure_shows_its_reason_and_never_a_number(self) -> None:
        self.assertEqual("undefined (single_label)", tables.number(None, 3, "single_label"))
        self.assertEqual("-", tables.number(None))

    def test_zero_has_no_sign(self) -> None:
        self.assertEqual("0.000", tables.number(-0.0001))
        self.assertEqual("-0.001", tables.number(-0.0006))

    def test_a_small_p_is_bounded_not_zero(self) -> None:
        self.assertEqual(["p <0.0001", "p 0.0499", "-"], [tables.p_value(p) for p in (1e-9, 0.0499, None)])

    def test_columns_are_as_wide_as_their_widest_cell(self) -> None:
        self.assertEqual(["a     b", "long  c"], tables.columns(("a", "b"), [("long", "c")]))


if __name__ == "__main__":
    unittest.main()
