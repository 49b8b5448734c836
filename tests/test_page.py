"""The rooms of the page: escaping, data under a size, pictures, files of judge.py, runs of numbers, hostile texts."""

from __future__ import annotations

import copy
import dataclasses
import json
import unittest
from typing import Any

from rooms import ROOT, room
from test_report import Page

fixtures = room("fixtures")
page = room("page")
page_items = room("page_items")
page_judged = room("page_judged")
page_judged_tables = room("page_judged_tables")
page_parts = room("page_parts")
page_source = room("page_source")
page_tables = room("page_tables")
page_view = room("page_view")
pictures = room("pictures")
summary = room("summary")
verdicts = room("verdicts")

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "</script></style></textarea></title><!--<script>",
    "[x](javascript:alert(3)) <a href='javascript:alert(4)'>y</a>",
    "<div><table><tr><td><plaintext>unclosed",
    "\u202eright to left\u2066\u200f",
    "NUL\0 and \x01 and \ud800 alone and \ufffe",
    "\u2028\u2029 &lt; &#x3c; \" ' ` ${x} {{y}}",
    "",
    "w" * 300_000,
)


class Given:
    """Options of a summary."""

    seed = None
    bootstrap = 50
    by = None
    bca = False
    level = None


def items_of(rows: list[dict[str, Any]]) -> Any:
    data = b"".join(json.dumps(row).encode("ascii") + b"\n" for row in rows)
    items, _ = fixtures.load_items(data, "fixture.jsonl")
    return items


def row_of(item_id: str, arm: str, original: str, swapped: str, reason: str = "because") -> dict[str, Any]:
    """A scored row with just the keys that the page reads."""
    said = {"original": {"choice": original, "reason": reason}, "swapped": {"choice": swapped, "reason": reason}}
    states = {order: "invalid" if part["choice"] == "invalid" else "ok" for order, part in said.items()}
    replies = {
        order: {"state": states[order], "code": "no_verdict" if states[order] == "invalid" else None, "content": reason}
        for order in said
    }
    return {"item_id": item_id, "arm": arm, "repeat": 1, "tool_arguments": said, "replies": replies}


def source_of(rows: list[dict[str, Any]], said: list[tuple[str, str]], reason: str = "because") -> Any:
    """A run of one judge over some fixture rows; said: its choices in shown positions, original and swapped."""
    items = items_of(rows)
    table = verdicts.ArmTable(len(items), 1)
    for place, pair in enumerate(said):
        for order, choice in zip(("original", "swapped"), pair):
            table.set(1, place, order, choice)
            table.replies["invalid" if choice == "invalid" else "ok"] += 1
    manifest = {
        "slug": "made-up",
        "title": "A made-up evaluation",
        "status": "complete",
        "split": "test",
        "repeats": 1,
        "arm_settings": {"judge": {"model": "m"}},
        "provenance": {"judge": "live"},
        "hashes": {"fixture.jsonl": "0" * 64},
        "config_hash": {"judge": "1" * 64},
    }
    config = {"decision": "both", "labels": ["A", "B", "equal"], "seed": 1}
    result = summary.summarise(items, {"judge": table}, manifest, config, Given)
    kept = [row_of(row["item_id"], "judge", *pair, reason) for row, pair in zip(rows, said)]
    return page_source.Source("runs/made-up/now", result, manifest, list(items), kept, [], "verify")


def fixture_row(number: int, **more: Any) -> dict[str, Any]:
    plain = {"text": "Question?", "answer_a": "short", "answer_b": "a longer answer", "gold": "A", "category": "x"}
    return {"item_id": f"item-{number}", "split": "test", **plain, **more}


def data_of(made: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Page(made.decode("utf-8")).scripts["items"])
    return found


class Escaping(unittest.TestCase):
    def test_text_is_escaped_in_content_and_attributes(self) -> None:
        made = page_parts.tag("p", "<b>&\"'", title='"><script>')
        self.assertEqual(made, '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&quot;&#39;</p>')

    def test_what_turns_the_reading_direction_becomes_a_mark(self) -> None:
        self.assertEqual(page_parts.escape("a\u202eb\u2066c"), "a\u2426b\u2426c")

    def test_what_html_cannot_hold_becomes_a_replacement_character(self) -> None:
        self.assertEqual(page_parts.escape("a\0b\x1bc\ud800d"), "a\ufffdb\ufffdc\ufffdd")

    def test_embedded_data_comes_back_whole_and_never_closes_its_element(self) -> None:
        for text in HOSTILE:
            made = page_parts.embedded("d", [text])
            inner = made[made.index(">") + 1 : made.rindex("</script>")]
            self.assertEqual(json.loads(inner), [text])
            self.assertNotRegex(inner, "[<>&]")


class HostileTexts(unittest.TestCase):
    def setUp(self) -> None:
        rows = [
            fixture_row(
                n,
                item_id=f"{n}{text[:40] or 'empty'}",
                text=text or "-",
                answer_a=text,
                answer_b=HOSTILE[n - 1],
                gold=("A", "B", "equal", None)[n % 4],
                category=text[:30] or "none",
                fault="<svg/onload=alert(5)>",
                why=text[:80],
                model_a="<m>",
                model_b='m"',
                votes=[{"judge": "<u>", "label": "A"}, {"judge": "\u202ev", "label": "A"}],
            )
            for n, text in enumerate(HOSTILE)
        ]
        said = [("B", "A"), ("A", "A"), ("invalid", "B")] * 3
        self.made = page.page_of([source_of(rows, said, HOSTILE[0])])
        self.page = Page(self.made.decode("utf-8"))

    def test_no_element_comes_from_a_text(self) -> None:
        calm = Page(page.page_of([source_of([fixture_row(0), fixture_row(1)], [("A", "B")] * 2)]).decode("utf-8"))
        known = {tag for tag, _, _ in calm.attributes} | {"b", "details", "summary", "strong", "h3", "small", "circle"}
        self.assertEqual({tag for tag, _, _ in self.page.attributes} - known, set())
        self.assertNotIn("img", {tag for tag, _, _ in self.page.attributes})

    def test_tags_stay_balanced(self) -> None:
        self.assertEqual((self.page.unbalanced, self.page.stack), ([], []))

    def test_only_our_own_script_can_run(self) -> None:
        self.assertEqual(self.page.code, room("page_script").SCRIPT)

    def test_every_text_is_there_as_text(self) -> None:
        data = json.loads(self.page.scripts["items"])
        texts = [text for n in range(len(data["starts"])) for text in json.loads(self.page.scripts[f"texts-{n}"])]
        self.assertEqual([texts[item["a"]] for item in data["items"]], list(HOSTILE))


class ItemData(unittest.TestCase):
    def test_flags_name_what_is_wrong_with_each_item(self) -> None:
        votes = [{"judge": "a", "label": "A"}, {"judge": "b", "label": "A"}]
        rows = [fixture_row(n, votes=votes) for n in range(5)]
        said = [("A", "B"), ("B", "A"), ("A", "A"), ("invalid", "B"), ("equal", "equal")]
        items = data_of(page.page_of([source_of(rows, said)]))["items"]
        found = [set(item["j"][0]["f"]) for item in items]
        expected: list[set[str]] = [
            set(),
            {"wrong", "reversed", "unanimous", "longer"},
            {"wrong", "unanimous", "inconsistent"},
            {"wrong", "unanimous", "invalid"},
            {"wrong", "unanimous"},
        ]
        self.assertEqual(found, expected)

    def test_a_choice_is_shown_with_the_answer_it_picks(self) -> None:
        items = data_of(page.page_of([source_of([fixture_row(0)], [("A", "B")])]))["items"]
        self.assertEqual(items[0]["j"][0]["r"][0]["o"][:2], ["A", "A"])
        self.assertEqual(items[0]["j"][0]["r"][0]["s"][:2], ["B", "A"])

    def test_equal_texts_are_kept_once(self) -> None:
        rows = [fixture_row(n, answer_a="x" * 1000) for n in range(50)]
        made = page.page_of([source_of(rows, [("A", "B")] * 50)])
        self.assertLess(made.count(b"x" * 1000), 25)  # once in the data, the rest in the examples

    def test_long_reasons_are_cut_until_the_page_is_small_enough_and_the_page_says_so(self) -> None:
        rows = [fixture_row(n) for n in range(40)]
        source = source_of(rows, [("A", "B")] * 40)
        kept = [row_of(row["item_id"], "judge", "A", "B", f"{n} " + "r" * 400_000) for n, row in enumerate(rows)]
        made = page.page_of([dataclasses.replace(source, rows=kept)])
        self.assertLess(len(made), 15_000_000)
        self.assertIn(b"judges&#39; words are cut to 4,000 characters", made)

    def test_pairs_that_do_not_fit_are_counted(self) -> None:
        rows = [fixture_row(n, answer_a=f"{n} " + "a" * 900_000) for n in range(16)]
        made = page.page_of([source_of(rows, [("A", "B")] * 16)])
        self.assertLess(len(made), 15_000_000)
        self.assertRegex(made.decode("utf-8"), r"\d pairs are left out of this list for size")

    def test_earlier_turns_keep_question_and_both_answers(self) -> None:
        turn = {"text": "First?", "answer_a": "one", "answer_b": "two"}
        made = page.page_of([source_of([fixture_row(0, prior_turns=[turn])], [("A", "B")])])
        self.assertEqual(len(data_of(made)["items"][0]["p"][0]), 3)


class FiguresBehindPictures(unittest.TestCase):
    """What the summary adds for the page: counted by hand on four pairs."""

    def setUp(self) -> None:
        models = {"model_a": "m", "model_b": "n"}
        rows = [
            fixture_row(0, category="x", fault="f", **models),
            fixture_row(1, category="x", fault="g", gold="B", **models),
            fixture_row(2, category="y", fault="f", gold="equal", **models),
            fixture_row(3, category="y", fault="f", gold=None, **models),
        ]
        said = [("A", "B"), ("A", "B"), ("A", "A"), ("B", "A")]  # A, A, flip to first, B
        self.result = source_of(rows, said).summary

    def test_crossed_cells_count_right_and_all_with_gold(self) -> None:
        cross = self.result["cross"]
        self.assertEqual((cross["rows"], cross["columns"]), ("fault", "category"))
        counts = {(row, col): cell["judge"] for row, cells in cross["cells"].items() for col, cell in cells.items()}
        expected = {("f", "x"): {"k": 1, "n": 1}, ("g", "x"): {"k": 0, "n": 1}, ("f", "y"): {"k": 1, "n": 1}}
        self.assertEqual(counts, expected)

    def test_models_stand_by_gold_and_by_the_judge_on_the_same_pairs(self) -> None:
        found = self.result["models"]["m"]
        self.assertEqual(found["gold"], {"won": 1, "tied": 1, "lost": 1, "n": 3, "rate": 0.5})
        self.assertEqual(found["arms"]["judge"], {"won": 2, "tied": 1, "lost": 0, "n": 3, "rate": round(2.5 / 3, 10)})

    def test_confidently_wrong_needs_every_reply_on_the_worse_answer(self) -> None:
        self.assertEqual(self.result["confidently_wrong"], {"judge": ["item-1"]})

    def test_levels_count_what_the_order_did(self) -> None:
        found = self.result["by"]["category"]["y"]["judge"]["position"]
        self.assertEqual(found, {"n": 2, "first": 1, "consistent": 1, "second": 0, "invalid": 0})


class Pictures(unittest.TestCase):
    def test_places_are_shares_of_the_axis_and_never_outside(self) -> None:
        axis = pictures.Axis(-1.0, 1.0, (-1.0, 0.0, 1.0))
        self.assertEqual(
            [axis.place(v) for v in (-2, -1, 0, 1, 9)], ["0.000%", "0.000%", "50.000%", "100.000%", "100.000%"]
        )

    def test_the_kappa_axis_reaches_below_zero_only_where_a_figure_does(self) -> None:
        self.assertEqual(pictures.kappa_axis([0.3, None]).low, 0.0)
        self.assertEqual(pictures.kappa_axis([-0.05]).low, -0.2)
        self.assertEqual(pictures.kappa_axis([-0.7]).low, -1.0)

    def test_ticks_are_round_and_enclose_the_values(self) -> None:
        for low, high in ((0.0, 0.37), (0.0, 1234.0), (-0.4, 0.2), (0.0, 0.00012)):
            ticks = pictures.nice_ticks(low, high)
            self.assertLessEqual(ticks[0], low)
            self.assertGreaterEqual(ticks[-1], high)
            self.assertLess(len(ticks), 9)

    def test_parts_of_a_bar_fill_it_in_the_ratio_of_their_counts(self) -> None:
        made = pictures.bar([pictures.Part(1, "first", "one"), pictures.Part(3, "none", "three")])
        self.assertIn('x="0.000%" y="15%" width="25.000%"', made)
        self.assertIn('x="25.000%" y="15%" width="75.000%"', made)

    def test_an_undefined_figure_draws_no_mark(self) -> None:
        self.assertEqual(pictures.dot(pictures.SHARES, pictures.Dot(None, None, None, "judge", "t")), [])

    def test_shades_grow_with_the_share(self) -> None:
        self.assertEqual([pictures.shade(v) for v in (0, 0.2, 0.5, 1)], ["s0", "s1", "s3", "s5"])

    def test_negative_figures_have_a_true_minus(self) -> None:
        self.assertEqual(pictures.SHARES._replace(percent=False).text(-0.2), "\u22120.2")


def graded(**more: Any) -> dict[str, Any]:
    """A judged file in the published layout, without anything newer."""
    answers = [("a", "x", 2, "one two"), ("b", "x", 4, "one two three"), ("c", "y", 4, "one"), ("d", "y", None, "")]
    results = [
        {
            "id": name,
            "category": category,
            "prompt": f"Task {name}",
            "rubric": "r",
            "reference": "",
            "answer": answer,
            "checks": {"passed": name != "b"},
            "judge": None if score is None else {"score": score, "why": f"why {name}"},
        }
        for name, category, score, answer in answers
    ]
    judge = {
        "mode": "grade",
        "model": "small",
        "judge_model": "big",
        "graded": 3,
        "judge_mean": 3.33,
        "by_category": {"x": 3.0, "y": 4.0},
        "mean_words_by_score": {"2": 2.0, "4": 2.0},
        "self_judged": False,
    }
    run = {"model": "small", "quant": "q", "task_set": "tasks", "task_set_version": "1"}
    return {"run": run, "judge": {**judge, **more}, "results": results}


def human() -> dict[str, Any]:
    return {
        "mode": "human-agreement",
        "judge_model": "big",
        "model": "small",
        "scored": 3,
        "exact_agreement": 0.67,
        "within_one": 0.67,
        "mean_human": 2.67,
        "mean_judge": 3.33,
        "big_disagreements": [{"id": "b", "human": 1, "judge": 4}],
        "date": "2026-01-01",
    }


def compared() -> dict[str, Any]:
    reply = {"choice": "A", "why": "first", "state": "ok"}
    pair = {"id": "p", "task": "p", "category": "x", "prompt": "Q", "answer_a": "one", "answer_b": "two"}
    flip = {**pair, "decision": "equal", "kind": "flip", "original": reply, "swapped": reply}
    won = {**pair, "id": "w", "decision": "A", "kind": "A", "original": reply, "swapped": {**reply, "choice": "B"}}
    judge = {"mode": "compare", "judge_model": "big", "compared": 2, "wins_a": 1, "wins_b": 0, "ties": 0}
    judge.update(order_flips=1, flip_rate=0.5, judge_failures=0, by_category={"x": {"win_rate": 0.75, "n": 2}})
    judge.update(win_rate={"value": 0.75, "low": 0.5, "high": 1.0, "n": 2, "reason": None})
    return {"runs": {"one": {"model": "one"}, "two": {"model": "two"}}, "judge": judge, "pairs": [flip, won]}


class JudgedFiles(unittest.TestCase):
    def test_kinds_are_told_by_what_a_file_holds(self) -> None:
        found: tuple[Any, ...] = (graded(), compared(), human(), {"judge": {}}, [])
        kinds = [page_judged_tables.kind_of_file(data) for data in found]
        self.assertEqual(kinds, ["grade", "compare", "human", None, None])

    def test_a_file_of_the_published_layout_is_shown_with_what_it_has(self) -> None:
        shown = Page(page_judged.page_of([graded()]).decode("utf-8"))
        self.assertIn(["big", "0", "1", "0", "2", "0"], shown.rows)  # scores 1 to 5, counted
        self.assertIn(["big", "-", "2", "-", "2", "-"], shown.rows)  # words by score
        self.assertIn("3.33", shown.text)

    def test_a_newer_files_figures_stand_with_their_intervals(self) -> None:
        mean = {"value": 3.3333, "low": 2.0, "high": 4.0, "n": 3, "reason": None}
        shown = Page(page_judged.page_of([graded(judge_mean_interval=mean, invalid=1, failed=0, missing=0)]).decode())
        self.assertIn(["big", "3.33 [2.00, 4.00]", "3", "1", "0", "0", "-"], shown.rows)

    def test_a_judge_of_its_own_answers_is_announced(self) -> None:
        self.assertIn(b"grades its own answers", page_judged.page_of([graded(self_judged=True)]))

    def test_peoples_labels_stand_beside_the_scores(self) -> None:
        made = page_judged.page_of([graded(), human()])
        shown = Page(made.decode("utf-8"))
        self.assertIn(["b", "1", "4", "", ""], shown.rows)
        self.assertIn(["exact agreement", "0.67"], shown.rows)
        self.assertEqual(next(item["h"] for item in data_of(made)["items"] if item["id"] == "b"), {"l": 1, "t": ""})

    def test_compared_runs_show_wins_and_pairs_that_the_order_decides(self) -> None:
        made = page_judged.page_of([compared()])
        shown = Page(made.decode("utf-8"))
        self.assertIn(["big", "1", "0", "0", "1", "-/-", "0", "0.750 [0.500, 1.000]"], shown.rows)
        items = data_of(made)["items"]
        self.assertEqual([item["j"][0]["f"] for item in items], [["inconsistent"], []])

    def test_a_panel_shows_every_judge(self) -> None:
        one = graded()
        inner = {"p": one["judge"], "q": one["judge"]}
        one["judge"] = {**one["judge"], "judge_model": "panel", "judges": inner}
        for row in one["results"]:
            row["judges"] = {"p": row["judge"], "q": None}
        data = data_of(page_judged.page_of([one]))
        self.assertEqual([arm["name"] for arm in data["arms"]], ["panel", "p", "q"])
        self.assertEqual([judge["l"] for judge in data["items"][0]["j"]], [2, 2, None])

    def test_hostile_texts_stay_text(self) -> None:
        one, two = graded(), compared()
        for text in HOSTILE[:7]:
            for row in one["results"]:
                row.update(answer=text, prompt=text, category=text, rubric=text)
            for pair in two["pairs"]:
                pair.update(answer_a=text, prompt=text, category=text)
            two["judge"]["by_category"] = {text: {"win_rate": 0.5, "n": 1}}
            for data in (one, two):
                shown = Page(page_judged.page_of([data]).decode("utf-8"))
                self.assertEqual((shown.unbalanced, shown.stack), ([], []))
                self.assertEqual(shown.code, room("page_script").SCRIPT)

    def test_markdown_and_csv_hold_the_tables(self) -> None:
        files = [graded(), human()]
        self.assertIn("| big | 0 | 1 | 0 | 2 | 0 |", page_judged_tables.as_markdown(files))
        self.assertIn("How often each score was given,big,4,2", page_judged_tables.as_csv(files))


class RunsOfNumbers(unittest.TestCase):
    def setUp(self) -> None:
        figure = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 2, "reason": None}
        arm = {"model": "m", "provenance": "live", "listed": True, "metrics": {"mean": figure}}
        arm["counts"] = {"ok": 2, "invalid": 0, "failed": 0, "missing": 0}
        result: dict[str, Any] = {"slug": "numbers", "title": "Numbers", "status": "complete", "split": "test"}
        result.update(items=2, questions=2, repeats_run=1, headline="mean", seed=1, arms={"judge": arm}, by={})
        result.update(bootstrap={"resamples": 10, "level": 0.95, "unit": "question"}, usage={}, cost_usd={})
        result.update(usage={"judge": {}}, cost_usd={"judge": {}}, hashes={}, config_hash={"judge": "0"}, warnings=[])
        own = {"title": "A finding", "head": ["what", "how"], "rows": [["this", "much"]], "notes": ["note well"]}
        result["tables"] = {"sections": [own]}
        rows = [
            {**row_of(f"item-{n}", "judge", "text", "text", "said"), "score": 0.25 * n, "secondary": {}} for n in (0, 1)
        ]
        manifest = {"hashes": {}, "slug": "numbers"}
        items = [fixture_row(0, gold=None), fixture_row(1, gold=None)]
        self.source = page_source.Source("runs/numbers/now", result, manifest, items, rows, [], "verify")

    def test_means_and_the_evaluations_own_tables_are_shown(self) -> None:
        shown = Page(page.page_of([self.source]).decode("utf-8"))
        self.assertIn(["this", "much"], shown.rows)
        self.assertIn(["mean score", "0.400 [0.300, 0.500]"], shown.rows)
        self.assertNotIn("gold", shown.text)

    def test_every_item_has_its_score(self) -> None:
        data = data_of(page.page_of([self.source]))
        self.assertEqual([item["j"][0]["l"] for item in data["items"]], [0.0, 0.25])

    def test_runs_of_two_evaluations_are_refused(self) -> None:
        other = source_of([fixture_row(0)], [("A", "B")])
        with self.assertRaisesRegex(Exception, "runs of made-up, numbers"):
            page.page_of([self.source, other])


class TwoRuns(unittest.TestCase):
    def test_items_of_one_id_but_other_texts_stand_apart(self) -> None:
        one = source_of([fixture_row(0)], [("A", "B")])
        two = source_of([fixture_row(0, answer_a="changed")], [("A", "B")])
        ids = [item["id"] for item in data_of(page.page_of([one, two]))["items"]]
        self.assertEqual(ids, ["item-0", "item-0 (run B)"])

    def test_changed_decisions_are_counted(self) -> None:
        rows = [fixture_row(0), fixture_row(1)]
        one, two = source_of(rows, [("A", "B")] * 2), source_of(rows, [("A", "B"), ("B", "A")])
        self.assertIn(b"judge: 1 of 2 pairs are decided differently", page.page_of([one, two]))

    def test_a_view_changes_no_summary(self) -> None:
        one, two = source_of([fixture_row(0)], [("A", "B")]), source_of([fixture_row(0)], [("B", "A")])
        before = copy.deepcopy(one.summary)
        page.page_of([one, two])
        self.assertEqual(one.summary, before)


class TheLoader(unittest.TestCase):
    def test_report_loads_files_with_the_text_that_the_runner_loads_them_with(self) -> None:
        texts = []
        for name in ("report.py", "run_eval.py"):
            text = (ROOT / name).read_text(encoding="utf-8")
            start = text.index("def load(path")
            texts.append(text[start : text.index("\n\n\n", start)])
        self.assertEqual(texts[0], texts[1])


if __name__ == "__main__":
    unittest.main()
