"""judge.py import: logs that the real tools wrote, tables, what cannot be mapped, and the way back."""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rooms import ROOT, room

importers = room("importers")
results = room("results")
LOGS = ROOT / "tests" / "import_logs"
EXAMPLE = ROOT / "examples" / "results-a.json"


class ImportCase(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.out = self.folder / "r.json"

    def options(self, file: Path, **more: Any) -> SimpleNamespace:
        base: dict[str, Any] = {
            "source": None,
            "export": None,
            "out": str(self.out),
            "field": [],
            "rubric": "",
            "model": None,
        }
        return SimpleNamespace(**{**base, "task_set": None, "overwrite": True, "file": str(file), **more})

    def run_import(self, file: Path, source: str, code: int = 0, **more: Any) -> tuple[dict[str, Any], str]:
        """(the results file, what was said) of an import."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            got = importers.main_import(self.options(file, source=source, **more))
        self.assertEqual(code, got, said.getvalue())
        whole = results.read_results(str(self.out), results.GRADE) if got == 0 else {}
        return whole, said.getvalue()

    def write(self, name: str, data: bytes | str) -> Path:
        path = self.folder / name
        path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
        return path

    def answers(self, whole: dict[str, Any]) -> dict[str, tuple[str, str, bool | None]]:
        """id -> (reference, answer, checks passed)."""
        rows = whole["results"]
        return {row["id"]: (row["reference"], row["answer"], row.get("checks", {}).get("passed")) for row in rows}


class RealLogs(ImportCase):
    def test_inspect_gives_every_epoch_with_its_choices_and_score(self) -> None:
        whole, _ = self.run_import(LOGS / "inspect.json", "inspect")
        found = self.answers(whole)
        self.assertEqual(("Paris", "Paris.", True), found["fr"])
        self.assertEqual(("Tokyo or Tōkyō", "Kyoto, I think.", False), found["jp"])
        self.assertEqual(("B", "A", False), found["3#2"])
        rows = {row["id"]: row for row in whole["results"]}
        self.assertEqual("What is 2+2? A) 3 B) 4\n\nA) 3\nB) 4", rows["3"]["prompt"])
        self.assertEqual("europe", rows["fr#2"]["category"])
        self.assertEqual(("mockllm/model", "capitals", "0.3.285", 4, 6), self.head(whole))

    def test_inspects_packed_log_holds_the_same_answers_as_its_json(self) -> None:
        packed, _ = self.run_import(LOGS / "inspect.eval", "inspect")
        self.assertEqual(6, len(packed["results"]))
        plain, _ = self.run_import(LOGS / "inspect.json", "inspect")
        self.assertCountEqual(plain["results"], packed["results"])
        self.assertEqual(plain["run"], packed["run"])

    def head(self, whole: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(whole["run"][key] for key in ("model", "task_set", "engine_version", "checks_passed", "tasks"))

    def test_promptfoo_needs_one_of_its_providers_and_keeps_its_prompts_apart(self) -> None:
        _, said = self.run_import(LOGS / "promptfoo.json", "promptfoo", code=3)
        self.assertIn("choose one with --model: openai:chat:small-a, second", said)
        whole, said = self.run_import(LOGS / "promptfoo.json", "promptfoo", model="second")
        self.assertEqual(
            ["test-1-prompt-1", "test-1-prompt-2", "test-2-prompt-1", "test-2-prompt-2"], [*self.answers(whole)]
        )
        self.assertEqual(("Paris", "Paris", True), self.answers(whole)["test-1-prompt-1"])
        self.assertEqual(("Tokyo", "I do not know. é\n2nd line", False), self.answers(whole)["test-2-prompt-2"])
        prompts = {row["id"]: row["prompt"] for row in whole["results"]}
        self.assertEqual("[system] Be brief.\n\ncapital of France?", prompts["test-1-prompt-2"])
        self.assertIn("the file also holds openai:chat:small-a", said)

    def test_promptfoo_lines_hold_the_same_as_its_json(self) -> None:
        rows = json.loads((LOGS / "promptfoo.json").read_text(encoding="utf-8"))["results"]["results"]
        lines = self.write("out.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        as_lines, _ = self.run_import(lines, "promptfoo", model="second")
        as_json, _ = self.run_import(LOGS / "promptfoo.json", "promptfoo", model="second")
        self.assertEqual(as_json["results"], as_lines["results"])

    def test_deepeval_names_no_model_and_says_what_has_no_place(self) -> None:
        whole, said = self.run_import(LOGS / "deepeval_test_run.json", "deepeval")
        self.assertEqual(
            {"france": ("Paris", "Paris.", True), "test_case_1": ("Tokyo", "Kyoto", False)}, self.answers(whole)
        )
        self.assertEqual(["", "asia"], [row["category"] for row in whole["results"]])
        self.assertIn("not mapped: context", said)
        self.assertIn("give it with --model", said)
        self.assertEqual("unknown", whole["run"]["model"])

    def test_lm_eval_samples_find_their_model_in_the_results_file_beside(self) -> None:
        (samples,) = LOGS.glob("samples_caps_*.jsonl")
        whole, _ = self.run_import(samples, "lm-eval")
        self.assertEqual(
            {"0": ("Paris", "Paris", True), "1": ("Tokyo", "I do not know. é\n2nd line", False)}, self.answers(whole)
        )
        self.assertEqual(("tiny", "caps", "0.4.13", 1, 2), RealLogs.head(self, whole))
        self.assertEqual("Q: Capital of France?\nA:", whole["results"][0]["prompt"])
        folder, _ = self.run_import(LOGS, "lm-eval")
        self.assertEqual(whole, folder)

    def test_openai_evals_joins_samplings_and_matches(self) -> None:
        whole, said = self.run_import(LOGS / "openai_evals.jsonl", "openai-evals")
        found = self.answers(whole)
        self.assertEqual(("Paris", "Paris", True), found["caps.test.0"])
        self.assertEqual(("Tokyo or Tōkyō", "Kyoto", False), found["caps.test.1"])
        self.assertEqual("[system] Answer briefly.\n\nCapital of Japan?", whole["results"][1]["prompt"])
        self.assertEqual("tiny-model", whole["run"]["model"])
        self.assertIn("not mapped: event metrics", said)


class OddLogs(ImportCase):
    def test_an_inspect_sample_with_an_error_or_no_output_is_left_out_and_named(self) -> None:
        log = json.loads((LOGS / "inspect.json").read_text(encoding="utf-8"))
        log["samples"][0]["error"] = {"message": "it broke\nbadly"}
        log["samples"][1]["output"] = {"choices": []}
        whole, said = self.run_import(self.write("l.json", json.dumps(log)), "inspect")
        self.assertEqual(4, len(whole["results"]))
        self.assertIn("left out: 3: it broke\n", said)
        self.assertIn("left out: fr: no output", said)

    def test_inspects_long_texts_are_taken_from_the_attachments(self) -> None:
        log = json.loads((LOGS / "inspect.json").read_text(encoding="utf-8"))
        log["samples"][0].update(input="attachment://abc", attachments={"abc": "the long question"}, choices=None)
        whole, _ = self.run_import(self.write("l.json", json.dumps(log)), "inspect")
        self.assertEqual("the long question", whole["results"][0]["prompt"])

    def eval_file(self, method: int) -> Path:
        """The log as .eval file, its entries said to be packed with a method (they are stored)."""
        log = json.loads((LOGS / "inspect.json").read_text(encoding="utf-8"))
        samples = log.pop("samples")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as file:
            file.writestr("header.json", json.dumps(log))
            for sample in samples:
                file.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        data = bytearray(packed.getvalue())
        for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            at = data.find(signature)
            while at >= 0:
                data[at + offset : at + offset + 2] = struct.pack("<H", method)
                at = data.find(signature, at + 4)
        return self.write("log.eval", bytes(data))

    def test_an_eval_file_holds_the_same_as_the_json_log(self) -> None:
        whole, _ = self.run_import(self.eval_file(0), "inspect")
        expected, _ = self.run_import(LOGS / "inspect.json", "inspect")
        self.assertCountEqual(expected["results"], whole["results"])

    def test_an_eval_file_packed_with_an_unknown_method_names_the_command_that_helps(self) -> None:
        _, said = self.run_import(self.eval_file(98), "inspect", code=3)
        self.assertIn("inspect log convert", said)

    def test_an_eval_file_that_cannot_be_unpacked_is_refused(self) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("header.json", json.dumps({"eval": {"model": "m" * 5000}}))
        data = packed.getvalue()
        at, listed = 30 + len("header.json"), data.find(b"PK\x01\x02")
        broken = data[:at] + b"\xff" * 4 + data[at + 4 :]
        locked = data[:6] + b"\x01" + data[7 : listed + 8] + b"\x01" + data[listed + 9 :]
        for words, content in (("damaged", broken), ("header.json: is encrypted", locked)):
            with self.subTest(words):
                _, said = self.run_import(self.write("log.eval", content), "inspect", code=3)
                self.assertIn(words, said)

    def test_a_damaged_eval_file_is_refused(self) -> None:
        data = bytearray((LOGS / "inspect.eval").read_bytes())
        with zipfile.ZipFile(LOGS / "inspect.eval") as log:
            data[log.getinfo("header.json").header_offset + 300] ^= 1
        _, said = self.run_import(self.write("log.eval", bytes(data)), "inspect", code=3)
        self.assertIn("damaged", said)

    def test_an_entry_that_cannot_be_unpacked_is_named_with_the_reason(self) -> None:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("header.json", '{"eval": {}}')
            file.writestr("samples/a_epoch_1.json", json.dumps({"id": "a", "words": [f"{n:x}" for n in range(999)]}))
        whole = made.getvalue()
        listed = whole.find(b"PK\x01\x02", whole.find(b"PK\x01\x02") + 1)
        with zipfile.ZipFile(made) as log:
            start = log.getinfo("samples/a_epoch_1.json").header_offset
        cases = [
            ("damaged: Error -3", [(start + 70, 0xFF), (start + 71, 0xFF)]),
            ("is encrypted", [(start + 6, 1), (listed + 8, 1)]),
            ("got compression method 14", [(start + 8, 14), (listed + 10, 14)]),
            ("got compression method 12", [(start + 8, 12), (listed + 10, 12)]),
        ]
        for expected, changes in cases:
            with self.subTest(expected):
                data = bytearray(whole)
                for at, byte in changes:
                    data[at] = byte
                _, said = self.run_import(self.write("log.eval", bytes(data)), "inspect", code=3)
                self.assertIn("log.eval: samples/a_epoch_1.json: ", said)
                self.assertIn(expected, said)

    def test_an_archive_without_a_header_is_no_log(self) -> None:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as file:
            file.writestr("other.json", "{}")
        _, said = self.run_import(self.write("log.eval", made.getvalue()), "inspect", code=3)
        self.assertIn("log.eval: header.json: is missing", said)

    def test_a_result_whose_test_has_no_number_is_left_out_and_said(self) -> None:
        good = {"provider": "m", "prompt": {"raw": "p"}, "response": {"output": "a"}, "testIdx": 0}
        rows = [good, {**good, "testIdx": "x"}, {**good, "testIdx": [1]}, {**good, "testIdx": 1, "promptIdx": {}}]
        path = self.write("p.json", json.dumps({"results": {"results": rows}}))
        whole, said = self.run_import(path, "promptfoo")
        self.assertEqual(["test-1", "test-2"], [*self.answers(whole)])
        self.assertIn("""left out: result 2: field 'testIdx': expected a whole number, got "x"\n""", said)
        self.assertIn("left out: result 3: field 'testIdx': expected a whole number, got [1]\n", said)

    def test_odd_fields_that_name_something_cost_no_answer(self) -> None:
        metric = {"doc_id": 1, "resps": [["a"]], "metrics": [{"a": 1}], "arguments": {}}
        whole, _ = self.run_import(self.write("samples_y.jsonl", json.dumps(metric)), "lm-eval")
        self.assertEqual({"1": ("", "a", None)}, self.answers(whole))
        lines = [
            {"type": "match", "sample_id": [1], "data": {"correct": True}},
            {"type": "sampling", "sample_id": [1], "data": {"sampled": ["x"], "prompt": "p"}},
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        whole, _ = self.run_import(self.write("o.jsonl", text), "openai-evals")
        self.assertEqual({"[1]": ("", "x", True)}, self.answers(whole))
        log = {"eval": {"model": "m"}, "samples": [{"id": 1, "output": {"choices": {"a": 1}}}]}
        _, said = self.run_import(self.write("c.json", json.dumps(log)), "inspect", code=3)
        self.assertIn("left out: 1: no output", said)

    def test_what_is_nested_too_deep_is_refused_with_its_line(self) -> None:
        deep = '{"prompt": "p", "answer": ' + "[" * 600 + "]" * 600 + "}\n"
        _, said = self.run_import(self.write("d.jsonl", '{"prompt": "p", "answer": "a"}\n' + deep), "jsonl", code=3)
        self.assertIn("d.jsonl:2: JSON is nested more than 200 deep", said)
        _, said = self.run_import(self.write("d.json", '{"eval": {}, "samples": [' + deep + "]}"), "inspect", code=3)
        self.assertIn("d.json: JSON is nested more than 200 deep", said)

    def test_likelihood_tasks_have_no_answer_text(self) -> None:
        row = {"doc_id": 0, "target": 1, "arguments": [["q", " a"]], "resps": [[[-1.5, False]], [[-0.5, True]]]}
        path = self.write("samples_mc_2026-01-01T00-00-00.000000.jsonl", json.dumps(row) + "\n")
        _, said = self.run_import(path, "lm-eval", code=3)
        self.assertIn("left out: 0: a likelihood task, no answer text", said)

    def test_older_lm_eval_arguments_and_a_second_filter_are_read(self) -> None:
        row = {
            "doc_id": 4,
            "target": "5",
            "arguments": [["2+3=", {"until": ["x"]}]],
            "resps": [["5"]],
            "filter": "strict",
        }
        lines = "".join(json.dumps({**row, "filter": name}) + "\n" for name in ("strict", "loose"))
        whole, said = self.run_import(self.write("samples_sum.jsonl", lines), "lm-eval")
        self.assertEqual([("4", "2+3=", "5")], [(r["id"], r["prompt"], r["answer"]) for r in whole["results"]])
        self.assertIn("not mapped: filter loose", said)

    def test_whatever_a_log_holds_it_ends_in_a_message_not_in_a_traceback(self) -> None:
        values: list[Any] = [None, 7, "text", [], {}, [[]], {"a": None}]
        for source in ("inspect", "promptfoo", "deepeval", "lm-eval", "openai-evals", "jsonl"):
            for place, value in enumerate(values):
                shapes = [value, {"eval": value, "samples": [value]}, {"results": value}, {"results": [value]}]
                shapes += [{"testCases": [value]}, [{"input": value, "output": value}]]
                keys = (
                    "provider",
                    "prompt",
                    "response",
                    "testCase",
                    "vars",
                    "data",
                    "resps",
                    "arguments",
                    "metrics",
                    "spec",
                )
                shapes += [
                    {"results": [dict.fromkeys(keys, value)]},
                    {**dict.fromkeys(keys, value), "type": "sampling"},
                ]
                for number, shape in enumerate(shapes):
                    with self.subTest(source=source, value=place, shape=number):
                        path = self.write("x.json", json.dumps(shape))
                        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                            code = importers.main_import(self.options(path, source=source, model=None))
                        self.assertIn(code, (0, 3))


class Tables(ImportCase):
    def test_csv_keeps_line_breaks_commas_and_quotes(self) -> None:
        text = 'question,response,expected\r\n"a, ""b""\r\nc",x,y\r\nq2,"two\nlines",\r\n'
        whole, _ = self.run_import(self.write("t.csv", "\ufeff" + text), "csv", model="m")
        self.assertEqual('a, "b"\r\nc', whole["results"][0]["prompt"])
        self.assertEqual(("", "two\nlines", None), self.answers(whole)["2"])

    def test_semicolons_and_tabs_are_found_out(self) -> None:
        for mark in ";\t":
            text = f"id{mark}prompt{mark}answer\na{mark}p, q{mark}r\n"
            whole, _ = self.run_import(self.write("t.csv", text), "csv", model="m")
            self.assertEqual("p, q", whole["results"][0]["prompt"])

    def test_columns_are_named_by_flag_and_unknown_ones_are_told(self) -> None:
        lines = '{"k": "1", "req": {"text": "hi"}, "res": {"text": "ho"}, "cost": 3}\n'
        fields = ["id=k", "prompt=req.text", "answer=res.text"]
        whole, said = self.run_import(self.write("t.jsonl", lines), "jsonl", field=fields, model="m", rubric="be kind")
        self.assertEqual(
            [("1", "hi", "be kind", "ho")],
            [tuple(r[k] for k in ("id", "prompt", "rubric", "answer")) for r in whole["results"]],
        )
        self.assertIn("not mapped: cost", said)

    def test_what_is_missing_is_named(self) -> None:
        cases: list[tuple[bytes | str, str, str]] = [
            ("a,b\n1,2\n", "csv", "no column for 'prompt'"),
            ("prompt,answer\n", "csv", "no rows"),
            ("prompt,answer\nx\n", "csv", ":2: expected 2 columns, got 1"),
            ("", "jsonl", "is empty"),
            ('{"prompt": "p", "answer": "a", "id": "x"}\n' * 2, "jsonl", "stands twice"),
            ('{"prompt": "p", "answer": "a"}\nnot json\n', "jsonl", ":2: not JSON"),
            (b"prompt,answer\n\xe9,x\n", "csv", "not valid UTF-8"),
        ]
        for data, source, expected in cases:
            with self.subTest(expected):
                _, said = self.run_import(self.write("t", data), source, code=3, model="m")
                self.assertIn(expected, said)
                self.assertEqual(1, said.count("error:"))

    def test_an_existing_file_is_kept(self) -> None:
        self.out.write_text("mine", encoding="utf-8")
        path = self.write("t.csv", "prompt,answer\np,a\n")
        self.run_import(path, "csv", code=3, overwrite=False)
        self.assertEqual("mine", self.out.read_text(encoding="utf-8"))

    def test_what_is_read_is_not_replaced_even_when_told_to(self) -> None:
        row = json.dumps({"doc_id": 1, "resps": [["a"]], "arguments": [["p"]]})
        logs = self.folder / "logs"
        logs.mkdir()
        stamp = "2026-01-01T00-00-00.000000"
        (logs / f"samples_y_{stamp}.jsonl").write_text(row, encoding="utf-8")
        (logs / f"results_{stamp}.json").write_text("{}", encoding="utf-8")
        table = self.write("t.csv", "prompt,answer\np,a\n")
        os.link(table, self.folder / "same.csv")
        tries = [(table, "csv", table), (table, "csv", self.folder / "same.csv")]
        tries += [(logs, "lm-eval", path) for path in logs.iterdir()]
        for file, source, out in tries:
            with self.subTest(out=out.name):
                before = out.read_bytes()
                _, said = self.run_import(file, source, code=3, out=str(out))
                self.assertIn("which is read", said)
                self.assertEqual(before, out.read_bytes())
        whole = self.write("r.json", EXAMPLE.read_bytes())
        _, said = self.run_import(whole, "", code=3, export="csv", out=str(whole))
        self.assertIn("which is read", said)

    def test_the_name_of_a_model_draws_nothing_on_the_terminal(self) -> None:
        path, shown = self.write("t.csv", "model,prompt,answer\n\x1b[31mred\x07,p,a\n"), io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(shown):
            self.assertEqual(0, importers.main_import(self.options(path, source="csv")))
        self.assertIn("1 answers of <U+001B>[31mred<U+0007>, 0 left out\n", shown.getvalue())


class Export(ImportCase):
    def export(self, file: Path, form: str) -> Path:
        out = self.folder / f"out.{form}"
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(0, importers.main_import(self.options(file, export=form, out=str(out))))
        return out

    def test_csv_and_jsonl_come_back_as_the_same_answers(self) -> None:
        before = json.loads(EXAMPLE.read_text(encoding="utf-8"))
        keys = ("id", "category", "prompt", "rubric", "reference", "answer")
        for form in ("csv", "jsonl"):
            whole, _ = self.run_import(self.export(EXAMPLE, form), form)
            for ours, theirs in zip(whole["results"], before["results"], strict=True):
                self.assertEqual([theirs[key] for key in keys], [ours[key] for key in keys])
                self.assertEqual(theirs["checks"]["passed"], ours["checks"]["passed"])
            self.assertEqual(before["run"]["model"], whole["run"]["model"])

    def test_a_judged_file_has_score_and_reason_as_columns(self) -> None:
        whole = json.loads(EXAMPLE.read_text(encoding="utf-8"))
        rows = [{**row, "judge": {"score": 4, "why": "fine, really"}} for row in whole["results"]]
        rows[1]["judge"] = None
        judged = self.write("j.json", json.dumps({"run": whole["run"], "judge": {"mode": "grade"}, "results": rows}))
        lines = self.export(judged, "csv").read_text(encoding="utf-8").split("\n")
        self.assertIn("judge_score,judge_why", lines[0])
        self.assertIn('4,"fine, really"', lines[1])


class Help(ImportCase):
    def test_the_help_lists_every_column_name_that_is_understood(self) -> None:
        shown = importers.columns_help()
        for names in importers.ALIASES.values():
            self.assertIn(", ".join(names), shown)
        self.assertIn(shown.split("\n")[0], self.help())

    def help(self) -> str:
        command = [sys.executable, "-I", str(ROOT / "judge.py"), "import", "--help"]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout

    def test_the_example_of_the_help_is_read(self) -> None:
        lines = importers.columns_help().split("\n")
        place = next(number for number, line in enumerate(lines) if line.startswith("answers.csv:"))
        table = "\n".join(line[22:] for line in lines[place : place + 2]) + "\n"
        whole, said = self.run_import(self.write("answers.csv", table), "csv", model="my-model")
        self.assertEqual(
            "", said.replace("judge: note: 1 of 1 answers have no rubric; give one for all with --rubric\n", "")
        )
        self.assertEqual({"q1": ("Lima", "It is Lima.", None)}, self.answers(whole))


class CommandLine(ImportCase):
    def test_the_command_runs_from_another_folder_under_isolation(self) -> None:
        words = ["import", str(LOGS / "inspect.json"), "--from", "inspect", "--out", "r.json"]
        command = [sys.executable, "-I", str(ROOT / "judge.py"), *words]
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, encoding="utf-8", env=environment, check=False
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("6 answers of mockllm/model, 0 left out", done.stdout)


if __name__ == "__main__":
    unittest.main()
