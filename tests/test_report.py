"""report.py end to end: the page of a demo run, what it holds, what it never holds, and the text forms."""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rooms import ROOT, room

tables = room("tables")
page_tables = room("page_tables")

VOID = {"meta", "link", "br", "hr", "input"}
DRAWN = {"rect", "circle", "line", "path"}


class Page(HTMLParser):
    """What a page is made of: attributes, scripts by id, table rows, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: list[tuple[str, str, str | None]] = []
        self.scripts: dict[str, str] = {}
        self.code = self.style = ""
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.stack: list[str] = []
        self.unbalanced: list[str] = []
        self.script_id = ""
        self.figures: dict[str, str] = {}
        self.figure: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "script":
            self.script_id = found.get("id") or ""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        self.figure = found.get("data-figure") or None

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value) for key, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        inside = self.stack[-1] if self.stack else ""
        if inside == "script":
            if self.script_id:
                self.scripts[self.script_id] = data
            else:
                self.code += data
        elif inside == "style":
            self.style += data
        else:
            self.words.append(data)
            if self.rows and self.rows[-1] and ("td" in self.stack or "th" in self.stack):
                self.rows[-1][-1] += data
            if self.figure:
                self.figures[self.figure] = data
                self.figure = None

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def policy(self) -> str:
        return next(
            value or "" for tag, key, value in self.attributes if key == "content" and "default-src" in str(value)
        )


def run(script: str, *arguments: str, cwd: str, **extra: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", str(ROOT / script), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, env={**os.environ, **extra}, check=False)


class Demo:
    """One small demo run, made once for all tests of this file."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp()
        options = ("--limit", "40", "--repeats", "2", "--bootstrap", "200", "--out", "runs")
        self.done = run("run_eval.py", "--demo", *options, cwd=self.folder)
        self.run_folder = str(next(Path(self.folder, "runs", "planted-faults").iterdir()))
        self.summary = json.loads(Path(self.run_folder, "summary.json").read_bytes())
        self.html = Path(self.run_folder, "report.html").read_text(encoding="utf-8")
        self.page = Page(self.html)


@functools.lru_cache(maxsize=1)
def demo_run() -> Demo:
    made = Demo()
    unittest.addModuleCleanup(shutil.rmtree, made.folder)
    return made


class ReportCase(unittest.TestCase):
    """Tests on that run; what a test changes, it changes in a copy."""

    folder: str
    run_folder: str
    demo: subprocess.CompletedProcess[bytes]
    summary: dict[str, Any]
    html: str
    page: Page

    @classmethod
    def setUpClass(cls) -> None:
        made = demo_run()
        cls.folder, cls.run_folder, cls.demo = made.folder, made.run_folder, made.done
        cls.summary, cls.html, cls.page = made.summary, made.html, made.page

    def copy(self) -> str:
        """The run once more, to be changed."""
        target = os.path.join(tempfile.mkdtemp(dir=self.folder), "runs", "planted-faults", "copy")
        shutil.copytree(self.run_folder, target)
        return target


class TheDemoMakesAPage(ReportCase):
    def test_the_demo_ends_well_and_names_the_page_it_wrote(self) -> None:
        self.assertEqual(self.demo.returncode, 0, self.demo.stderr)
        self.assertIn(b"report.html", self.demo.stdout)

    def test_rescoring_with_the_report_flag_writes_the_same_page(self) -> None:
        target = self.copy()
        os.remove(os.path.join(target, "report.html"))
        done = run("run_eval.py", "--rescore", target, "--report", "--bootstrap", "200", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = Path(target, "report.html").read_text(encoding="utf-8")
        self.assertEqual(made.replace("/copy", ""), self.html.replace(f"/{Path(self.run_folder).name}", ""))

    def test_the_report_flag_alone_is_a_usage_error(self) -> None:
        self.assertEqual(run("run_eval.py", "--plan", "--report", cwd=self.folder).returncode, 2)


class FiguresOfThePage(ReportCase):
    def test_the_big_figure_is_the_headline_of_the_summary(self) -> None:
        ((name, shown),) = self.page.figures.items()
        value: Any = self.summary
        for key in name.split("."):
            value = value[key]
        self.assertEqual(shown.replace("\u2212", "-"), f"{value:.3f}")

    def test_every_table_of_the_result_stands_in_the_page_cell_by_cell(self) -> None:
        for title, head, body, _ in page_tables.all_sections(self.summary):
            with self.subTest(title):
                if title.startswith("control-longer: right of all"):
                    continue  # the lead judge's is the shaded table, see below
                missing = [row for row in (head, *body) if list(row) not in self.page.rows]
                self.assertEqual(missing, [])

    def test_the_shaded_table_of_the_lead_holds_the_counts_of_the_summary(self) -> None:
        for row, cells in self.summary["cross"]["cells"].items():
            name = row.replace("_", " ")
            shown = next(found for found in self.page.rows if found[:1] == [name] and "%" in "".join(found))
            for cell in cells.values():
                lead = cell["control-longer"]
                self.assertIn(f"{lead['k']}/{lead['n']}", " ".join(shown))

    def test_counts_of_readings_are_those_of_the_summary(self) -> None:
        counts = self.summary["arms"]["control-longer"]["counts"]
        self.assertRegex(re.sub(r"\s+", " ", self.page.text), rf"{counts['ok']} ok {counts['invalid']} invalid")

    def test_decisions_of_the_items_agree_with_the_summarys_lists(self) -> None:
        data = json.loads(self.page.scripts["items"])
        for place, arm in enumerate(data["arms"]):
            for flag, key in (("wrong", "disagreements"), ("reversed", "confidently_wrong")):
                flagged = [item["id"] for item in data["items"] if flag in item["j"][place]["f"]]
                self.assertEqual(flagged, self.summary[key][arm["name"]], (arm, flag))

    def test_every_item_can_be_read_whole_from_the_page(self) -> None:
        data = json.loads(self.page.scripts["items"])
        texts = [text for n in range(len(data["starts"])) for text in json.loads(self.page.scripts[f"texts-{n}"])]
        fixture = Path(self.run_folder, "inputs", "fixture.jsonl").read_text(encoding="utf-8").strip().split("\n")
        by_id = {row["item_id"]: row for row in map(json.loads, fixture)}
        self.assertEqual(len(data["items"]), 40)
        for item in data["items"]:
            row = by_id[item["id"]]
            self.assertEqual([texts[item[key]] for key in "qab"], [row["text"], row["answer_a"], row["answer_b"]])


class SafetyOfThePage(ReportCase):
    def test_the_policy_names_the_hashes_of_the_very_script_and_style(self) -> None:
        for kind, text in (("script-src", self.page.code), ("style-src", self.page.style)):
            digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
            self.assertIn(f"{kind} 'sha256-{digest}'", self.page.policy())

    def test_the_policy_forbids_everything_else(self) -> None:
        for part in ("default-src 'none'", "base-uri 'none'", "form-action 'none'", "trusted-types 'none'"):
            self.assertIn(part, self.page.policy())
        self.assertNotIn("unsafe", self.page.policy())

    def test_the_policy_stands_before_script_and_style(self) -> None:
        self.assertLess(self.html.index("Content-Security-Policy"), self.html.index("<style"))

    def test_no_address_leads_out_of_the_page(self) -> None:
        addresses = [value for _, key, value in self.page.attributes if key in ("href", "src", "action", "xlink:href")]
        self.assertTrue(addresses)
        self.assertEqual([value for value in addresses if not str(value).startswith("#") and value != "data:,"], [])
        self.assertNotIn("http://", self.html)
        self.assertNotIn("https://", self.html)

    def test_no_inline_style_and_no_event_handler(self) -> None:
        keys = {key for _, key, _ in self.page.attributes}
        self.assertEqual({key for key in keys if key == "style" or key.startswith("on")}, set())

    def test_tags_are_balanced(self) -> None:
        self.assertEqual((self.page.unbalanced, self.page.stack), ([], []))

    def test_every_anchor_of_the_bar_exists(self) -> None:
        ids = {value for _, key, value in self.page.attributes if key == "id"}
        wanted = {str(value)[1:] for _, key, value in self.page.attributes if key == "href" and str(value)[:1] == "#"}
        self.assertEqual(wanted - ids, set())

    def test_no_path_of_the_machine_stands_in_the_page(self) -> None:
        self.assertNotIn(self.folder, self.html)

    def test_the_script_never_builds_markup_from_text(self) -> None:
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", 'setTimeout("'):
            self.assertNotIn(word, self.page.code)


class TheSameEvidenceGivesTheSamePage(ReportCase):
    def page_bytes(self, cwd: str, **extra: str) -> bytes:
        done = run("report.py", self.run_folder, "--out", "again.html", cwd=cwd, **extra)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Path(cwd, "again.html").read_bytes()

    def test_in_another_folder_locale_and_time_zone(self) -> None:
        made = self.page_bytes(tempfile.mkdtemp(dir=self.folder), LC_ALL="C", TZ="Asia/Kathmandu", PYTHONHASHSEED="7")
        self.assertEqual(made, self.html.encode("utf-8"))

    def test_needs_nothing_but_agreement_and_engine_beside_it(self) -> None:
        home = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(ROOT / "engine", home / "engine", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("agreement.py", "report.py"):
            shutil.copy(ROOT / name, home / name)
        command = [sys.executable, "-I", str(home / "report.py"), self.run_folder, "--out", str(home / "page.html")]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        self.assertEqual((home / "page.html").read_bytes(), self.html.encode("utf-8"))


class EvidenceThatDoesNotMatch(ReportCase):
    def page_of(self, target: str) -> str:
        done = run("report.py", target, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Path(target, "report.html").read_text(encoding="utf-8")

    def test_intact_evidence_raises_no_alarm(self) -> None:
        self.assertNotIn("does not match its manifest", self.html)
        self.assertIn("the raw replies are the manifest", self.html)

    def test_changed_raw_replies_are_told_on_the_first_screen(self) -> None:
        target = self.copy()
        with open(os.path.join(target, "raw.jsonl.gz"), "ab") as stream:
            stream.write(b"x")
        text = self.page_of(target)
        self.assertIn("does not match its manifest", text)
        self.assertIn("the raw replies are not the manifest", text)

    def test_a_changed_input_is_named(self) -> None:
        target = self.copy()
        Path(target, "inputs", "recipe.py").write_text("# other\n", encoding="utf-8")
        self.assertIn("inputs that are not the manifest&#39;s: recipe.py", self.page_of(target))

    def test_an_incomplete_run_says_so(self) -> None:
        target = self.copy()
        path = Path(target, "summary.json")
        path.write_text(json.dumps({**self.summary, "status": "incomplete"}), encoding="utf-8")
        self.assertIn("Incomplete run", self.page_of(target))


class TwoRunsOnOnePage(ReportCase):
    def setUp(self) -> None:
        done = run("report.py", self.run_folder, self.copy(), "--out", "two.html", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.two = Page(Path(self.folder, "two.html").read_text(encoding="utf-8"))

    def test_judges_of_one_name_are_told_apart(self) -> None:
        self.assertIn("control-longer (run A)", self.two.text)
        self.assertIn("control-longer (run B)", self.two.text)

    def test_equal_runs_are_called_a_reproduction_without_changed_decisions(self) -> None:
        self.assertIn("a reproduction", self.two.text)
        self.assertIn("control-random: 0 of 40 pairs are decided differently", self.two.text)

    def test_items_of_both_runs_are_one_list_with_all_judges(self) -> None:
        data = json.loads(self.two.scripts["items"])
        self.assertEqual((len(data["items"]), len(data["items"][0]["j"])), (40, 6))
        self.assertEqual(data["twins"], [[0, 3], [1, 4], [2, 5]])


class TextForms(ReportCase):
    def text(self, form: str) -> str:
        done = run("report.py", self.run_folder, "--format", form, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode("utf-8")

    def test_json_is_the_summary(self) -> None:
        self.assertEqual(json.loads(self.text("json")), self.summary)

    def test_csv_holds_every_metric_with_its_counts(self) -> None:
        rows = list(csv.DictReader(io.StringIO(self.text("csv"))))
        found = next(
            row for row in rows if (row["group"], row["judge"], row["metric"]) == ("all", "control-longer", "kappa")
        )
        self.assertEqual(float(found["value"]), self.summary["arms"]["control-longer"]["metrics"]["kappa"]["value"])

    def test_markdown_holds_every_table_of_the_page(self) -> None:
        text = self.text("markdown")
        for title, _, _, _ in page_tables.all_sections(self.summary):
            self.assertIn(f"## {title}", text)


class ARunAndAJudgedFile(ReportCase):
    """One page: how far to trust the judge, and what it said of your own answers."""

    judged: str

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.judged = os.path.join(cls.folder, "judged.json")
        if not os.path.exists(cls.judged):
            words = ("--results", str(ROOT / "examples" / "results-a.json"), "--judge-model", "control-longer")
            done = run("judge.py", "grade", *words, "--bootstrap", "200", "--out", cls.judged, cwd=cls.folder)
            assert done.returncode == 0, done.stderr

    def both(self, *more: str) -> bytes:
        out = os.path.join(self.folder, "both.html")
        done = run("report.py", self.run_folder, self.judged, *more, "--out", out, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Path(out).read_bytes()

    def test_the_page_holds_the_figures_of_both_and_every_pair_of_the_run(self) -> None:
        page, whole = Page(self.both().decode("utf-8")), json.loads(Path(self.judged).read_bytes())
        self.assertFalse(page.unbalanced)
        missing = [row for row in self.page.rows if row not in page.rows]
        self.assertEqual(missing, [])
        for row in whole["results"]:
            self.assertIn([row["id"], row["category"], str(row["judge"]["score"])], page.rows)
        self.assertIn("example-concise, graded by control-longer", page.text)
        self.assertIn(f"{whole['judge']['judge_mean']:.2f}", page.text)
        self.assertEqual(page.scripts["items"], self.page.scripts["items"])

    def test_no_anchor_stands_twice_and_every_link_of_the_bar_leads_somewhere(self) -> None:
        page = Page(self.both().decode("utf-8"))
        ids = [value for _, key, value in page.attributes if key == "id"]
        self.assertEqual(len(ids), len(set(ids)))
        links = [value[1:] for _, key, value in page.attributes if key == "href" and value and value[:1] == "#"]
        self.assertEqual([link for link in links if link not in ids], [])
        self.assertIn("own", links)

    def test_a_judge_that_the_run_does_not_measure_is_pointed_out(self) -> None:
        self.assertNotIn(b"not a judge of the run above", self.both())
        other = json.loads(Path(self.judged).read_bytes())
        other["judge"]["judge_model"] = "big"
        path = os.path.join(self.folder, "other-judged.json")
        Path(path).write_text(json.dumps(other), encoding="utf-8")
        done = run("report.py", path, self.run_folder, "--out", "other.html", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("big: not a judge of the run above", Path(self.folder, "other.html").read_text(encoding="utf-8"))

    def test_the_text_forms_hold_both_and_a_spreadsheet_is_refused(self) -> None:
        done = run("report.py", self.run_folder, self.judged, "--format", "markdown", cwd=self.folder)
        self.assertIn(b"How often each score was given", done.stdout)
        self.assertIn(b"Position and length", done.stdout)
        found = json.loads(run("report.py", self.judged, self.run_folder, "--format", "json", cwd=self.folder).stdout)
        self.assertEqual([self.summary["arms"], "grade"], [found[0]["arms"], found[1]["mode"]])
        done = run("report.py", self.run_folder, self.judged, "--format", "csv", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn(b"one call for each", done.stderr)


class WhatIsNotOverwritten(ReportCase):
    def test_only_a_page_of_ours_is_replaced_unasked(self) -> None:
        target = self.copy()
        other = Path(target).parent / "notes.html"
        for content in (b"PRECIOUS", b"<!doctype html><title>mine</title>"):
            other.write_bytes(content)
            done = run("report.py", target, "--out", str(other), cwd=self.folder)
            self.assertEqual((done.returncode, other.read_bytes()), (3, content), done.stderr)
        self.assertIn(b"--overwrite", done.stderr)
        for flags in (("--overwrite",), ()):  # the second time it is a page of ours
            done = run("report.py", target, "--out", str(other), *flags, cwd=self.folder)
            self.assertEqual((done.returncode, b"Judge report" in other.read_bytes()), (0, True), done.stderr)
        self.assertEqual(run("report.py", target, cwd=self.folder).returncode, 0)

    def test_nothing_that_is_read_is_replaced_even_when_told_to(self) -> None:
        target = self.copy()
        judged = Path(target).parent / "judged.json"
        judged.write_text("{}", encoding="utf-8")
        link = Path(target).parent / "link.html"
        link.symlink_to(judged)
        for given, out in (
            (target, Path(target, "manifest.json")),
            (target, Path(target, "inputs", "fixture.jsonl")),
            (str(judged), judged),
            (str(judged), link),
        ):
            for form in ("html", "json"):
                with self.subTest(out=out.name, form=form):
                    before = out.read_bytes()
                    words = (given, "--out", str(out), "--format", form, "--overwrite")
                    done = run("report.py", *words, cwd=self.folder)
                    self.assertEqual((done.returncode, out.read_bytes()), (3, before), done.stderr)
                    self.assertIn(b"which is read", done.stderr)

    @unittest.skipIf(os.name == "nt", "needs a POSIX shell")
    def test_closed_streams_hinder_no_page(self) -> None:
        for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                command = [sys.executable, "-I", str(ROOT / "report.py"), self.copy()]
                done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], capture_output=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_target_that_is_no_file(self) -> None:
        done = run("report.py", self.run_folder, "--out", self.folder, "--overwrite", cwd=self.folder)
        self.assertEqual(done.returncode, 3)


class WhatCannotBeShown(ReportCase):
    def refused(self, *paths: str) -> str:
        done = run("report.py", *paths, cwd=self.folder)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertNotIn(b"Traceback", done.stderr)
        return done.stderr.decode("utf-8")

    def test_a_run_that_is_not_scored_names_the_command_that_scores_it(self) -> None:
        target = self.copy()
        os.remove(os.path.join(target, "summary.json"))
        command = rf"hint: score the run first: python3 -I \S+run_eval.py --rescore {re.escape(str(target))}"
        self.assertRegex(self.refused(target), command)

    def test_a_summary_of_an_earlier_version_is_not_half_shown(self) -> None:
        target = self.copy()
        older = {key: value for key, value in self.summary.items() if key != "models"}
        Path(target, "summary.json").write_text(json.dumps(older), encoding="utf-8")
        self.assertIn("field 'models' is missing", self.refused(target))

    def test_a_folder_that_is_no_run(self) -> None:
        self.assertIn("manifest.json", self.refused(self.folder))

    def test_a_path_that_is_not_there(self) -> None:
        self.assertIn("cannot be read", self.refused(os.path.join(self.folder, "nothing.json")))

    def test_a_summary_with_a_text_for_a_number_is_refused_in_one_line(self) -> None:
        target, made = self.copy(), json.loads(json.dumps(self.summary))
        made["arms"]["control-first"]["metrics"]["kappa"]["value"] = "high"
        Path(target, "summary.json").write_text(json.dumps(made), encoding="utf-8")
        expected = "copy/summary.json: field 'arms.control-first.metrics.kappa.value': expected a number or null"
        self.assertIn(expected, self.refused(target))
        made["position"], made["arms"]["control-first"]["metrics"]["kappa"]["value"] = 5, 0.0
        Path(target, "summary.json").write_text(json.dumps(made), encoding="utf-8")
        self.assertIn("copy/summary.json: field 'position': expected an object, got a number", self.refused(target))
        made["position"] = {}
        Path(target, "summary.json").write_text(json.dumps(made), encoding="utf-8")
        said = self.refused(target)
        self.assertIn("not laid out as this toolkit writes it: field 'control-longer' is missing", said)

    def test_a_file_of_something_else(self) -> None:
        path = Path(self.folder, "other.json")
        path.write_text('{"hello": 1}', encoding="utf-8")
        self.assertIn("expected a file that judge.py", self.refused(str(path)))

    def test_a_run_and_a_file_of_something_else(self) -> None:
        text = self.refused(self.run_folder, os.path.join(self.run_folder, "summary.json"))
        self.assertIn("expected a file that judge.py", text)

    def test_a_link_out_of_the_run_is_not_followed(self) -> None:
        target, secret = self.copy(), Path(self.folder, "secret.json")
        secret.write_text("{}", encoding="utf-8")
        os.remove(os.path.join(target, "summary.json"))
        os.symlink(secret, os.path.join(target, "summary.json"))
        self.assertIn("summary.json: is missing", self.refused(target))


if __name__ == "__main__":
    unittest.main()
