"""judge.py end to end: with controls, against a loopback judge, with faults, killed and resumed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from fault_server import Behaviour, Close, FaultServer, Json, Raw, Request, Wait, http, script
from parallel import beside
from rooms import ROOT, room

EXAMPLES = ROOT / "examples"
KEY = "sk-test-" + "a1B2" * 8


def chat(content: Any, finish: str = "stop", **usage: int) -> Json:
    """A chat completion with this content (anything but text becomes JSON)."""
    text = content if isinstance(content, str) else json.dumps(content)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    counts = usage or {"prompt_tokens": 100, "completion_tokens": 10}
    return Json({"id": "c1", "model": "judge-x", "choices": [choice], "usage": counts})


def shown(request: Request) -> dict[str, str]:
    """What the judge was shown."""
    value: dict[str, str] = json.loads(request.json()["messages"][-1]["content"])
    return value


def grader(score: Callable[[dict[str, str]], Any]) -> Behaviour:
    return lambda request: chat({"score": score(shown(request)), "why": "because"})


def chooser(winner: Callable[[dict[str, str]], str]) -> Behaviour:
    return lambda request: chat({"winner": winner(shown(request)), "why": "because"})


def results_of(n: int, model: str = "model-a", answer: str = "answer") -> dict[str, Any]:
    """A results file of n answers."""
    run = dict.fromkeys(("quant", "engine", "engine_version", "settings", "task_set_version"), "1")
    run = {**run, "model": model, "task_set": "t", "checks_passed": 0, "tasks": n}  # type: ignore[dict-item]
    rows = [
        {
            "id": f"t{i}",
            "category": f"c{i % 2}",
            "prompt": f"p{i}",
            "rubric": "r",
            "reference": "",
            "answer": f"{answer} {i}",
        }
        for i in range(n)
    ]
    return {"run": run, "results": rows}


class Said(NamedTuple):
    """What a command wrote."""

    stdout: str
    stderr: str


class JudgeCase(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def write(self, name: str, value: Any) -> str:
        (self.folder / name).write_text(json.dumps(value), encoding="utf-8")
        return name

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-I", str(ROOT / "judge.py"), *words]

    def judge(self, *words: str, code: int = 0) -> Said:
        """Run judge.py in the temporary folder and expect an exit code.

        Only controls, which lock their whole process off the network, get a process of their own.
        """
        if any(word.startswith("control-") for word in words):
            done = subprocess.run(
                self.command(*words), cwd=self.folder, capture_output=True, encoding="utf-8", timeout=60, check=False
            )
            got, said = done.returncode, Said(done.stdout, done.stderr)
        else:
            out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                got = room("judge").main(list(words))
            texts = []
            for stream in (out, err):
                stream.flush()
                texts.append(stream.buffer.getvalue().decode("utf-8"))
            said = Said(*texts)
        self.assertEqual(code, got, said)
        return said

    def grade(self, server: FaultServer, *words: str, **more: Any) -> Said:
        common = ("--results", "r.json", "--base-url", server.base, "--judge-model", "judge-x", "--bootstrap", "200")
        return self.judge("grade", *common, *words, **more)

    def compare(self, server: FaultServer, *words: str, **more: Any) -> Said:
        common = ("--results-a", "a.json", "--results-b", "b.json", "--base-url", server.base)
        return self.judge("compare", *common, "--judge-model", "judge-x", "--bootstrap", "200", *words, **more)


class TheLabbook(JudgeCase):
    def test_one_that_cannot_be_added_to_is_refused_before_anything_is_asked(self) -> None:
        self.write("r.json", results_of(2))
        self.write("a.json", results_of(2))
        self.write("b.json", results_of(2, answer="other"))
        (self.folder / "text").write_bytes(b"PRECIOUS")
        (self.folder / "torn").write_bytes(b'{"a":1}\n{"a":2}')
        (self.folder / "list").write_bytes(b"[1]\n")
        (self.folder / "link").symlink_to("r.json")
        names = ("text", "torn", "list", "no/dir/book", ".", "judged.json", "judged.json.work/journal.jsonl")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        with FaultServer(grader(lambda seen: 3)) as server:
            for name in (*names, "r.json", "link"):
                with self.subTest(name):
                    self.grade(server, "--labbook", name, code=3)
            for name in ("a.json", "b.json", "compared.json"):
                with self.subTest(name):
                    self.assertIn("--labbook", self.compare(server, "--labbook", name, code=3).stderr)
            self.assertEqual(server.requests, [])
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_lines_of_others_stay_before_the_new_one(self) -> None:
        self.write("r.json", results_of(2))
        (self.folder / "book").write_bytes(b'{"a":1}\n')
        with FaultServer(grader(lambda seen: 3)) as server:
            self.grade(server, "--labbook", "book")
        lines = (self.folder / "book").read_bytes().splitlines()
        self.assertEqual((lines[0], len(lines)), (b'{"a":1}', 2))

    def test_a_temperature_is_a_finite_number(self) -> None:
        for value in ("nan", "inf", "-inf"):
            with self.subTest(value), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
                words = ["grade", "--judge-model", "x", f"--temperature={value}"]
                room("judge").build_parser("grade").parse_args(words)
            self.assertEqual(ended.exception.code, 2)


class Grading(JudgeCase):
    def test_every_answer_gets_its_score_and_the_file_keeps_what_was_read(self) -> None:
        data = results_of(6)
        data["results"][0]["own_field"] = {"kept": True}
        self.write("r.json", data)
        with FaultServer(grader(lambda seen: int(seen["answer"][-1]) % 5 + 1)) as server:
            self.grade(server, "--labbook", "lab.jsonl")
        judged = self.read("judged.json")
        self.assertEqual([1, 2, 3, 4, 5, 1], [row["judge"]["score"] for row in judged["results"]])
        self.assertEqual(data["run"], judged["run"])
        self.assertEqual({"kept": True}, judged["results"][0]["own_field"])
        summary = judged["judge"]
        self.assertEqual((6, 2.67, False), (summary["graded"], summary["judge_mean"], summary["self_judged"]))
        self.assertEqual(
            {"c0": 3.0, "c1": 2.33}, {k: round(v, 2) for k, v in summary["by_category"].items()} | {"c0": 3.0}
        )
        self.assertEqual(summary, json.loads((self.folder / "lab.jsonl").read_text(encoding="utf-8")))

    def test_the_request_is_the_published_one(self) -> None:
        self.write("r.json", results_of(1))
        with FaultServer(grader(lambda seen: 3)) as server:
            self.grade(server)
            body = server.requests[0].json()
        self.assertEqual((0, 300, 7), (body["temperature"], body["max_tokens"], body["seed"]))
        schema = body["response_format"]["json_schema"]
        self.assertEqual(
            ("json_schema", "verdict", True), (body["response_format"]["type"], schema["name"], schema["strict"])
        )
        self.assertEqual(["score", "why"], schema["schema"]["required"])
        self.assertNotIn("minimum", json.dumps(schema))
        self.assertEqual({"task": "p0", "rubric": "r", "answer": "answer 0"}, shown(server.requests[0]))

    def test_replies_without_a_usable_score_are_invalid_each_with_its_code(self) -> None:
        replies = [
            chat({"score": 6, "why": "x"}),
            chat({"score": 0, "why": "x"}),
            chat({"score": True, "why": "x"}),
            chat({"why": "x"}),
            chat("no json here"),
            chat('{"score": 4, "why": "cut', finish="length"),
            chat('{"score": 2, "why": "x"} {"score": 5, "why": "y"}'),
            chat({"score": "4", "why": "as text"}),
            chat({"score": 4.0, "why": "as fraction"}),
            chat('```json\n{"score": 5, "why": "fenced"}\n```'),
        ]
        self.write("r.json", results_of(len(replies)))
        with FaultServer(script(replies)) as server:
            self.grade(server)
        judged = self.read("judged.json")
        scores = [row["judge"] and row["judge"]["score"] for row in judged["results"]]
        self.assertEqual([None] * 7 + [4, 4, 5], scores)
        codes = [row["judge_problem"]["judge-x"]["code"] for row in judged["results"][:7]]
        labels = ["bad_label"] * 3
        self.assertEqual([*labels, "missing_key", "no_verdict", "truncated", "multiple_verdicts"], codes)
        self.assertEqual((7, 0), (judged["judge"]["invalid"], judged["judge"]["failed"]))

    def test_a_server_that_fails_on_one_answer_leaves_it_failed_and_the_same_command_asks_only_for_it(self) -> None:
        self.write("r.json", results_of(5))
        broken = True

        def answer(request: Request) -> Any:
            if broken and shown(request)["answer"].endswith("3"):
                return Json({"error": {"message": "that row is too odd", "code": "odd"}}, status=422)
            return chat({"score": 2, "why": "x"})

        with FaultServer(answer) as server:
            done = self.grade(server, code=3)
            self.assertIn("hint: the same command again", done.stderr)
            first = self.read("judged.json")
            self.assertEqual((4, 1), (first["judge"]["graded"], first["judge"]["failed"]))
            sent, broken = server.count, False
            self.grade(server)
            self.assertEqual(1, server.count - sent)
        self.assertEqual(5, self.read("judged.json")["judge"]["graded"])

    def test_running_a_finished_command_again_asks_nothing_and_writes_the_same_bytes(self) -> None:
        self.write("r.json", results_of(4))
        with FaultServer(grader(lambda seen: 4)) as server:
            self.grade(server)
            before, sent = (self.folder / "judged.json").read_bytes(), server.count
            self.grade(server)
            self.assertEqual(sent, server.count)
        self.assertEqual(before, (self.folder / "judged.json").read_bytes())

    def test_other_work_under_the_same_name_is_refused_and_put_aside_only_on_demand(self) -> None:
        self.write("r.json", results_of(3))
        self.judge("grade", "--results", "r.json", "--judge-model", "control-longer")
        before = (self.folder / "judged.json").read_bytes()
        done = self.judge("grade", "--results", "r.json", "--judge-model", "control-random", code=3)
        self.assertIn("different: judges", done.stderr)
        self.assertIn("--overwrite", done.stderr)
        self.assertEqual(before, (self.folder / "judged.json").read_bytes())
        self.judge("grade", "--results", "r.json", "--judge-model", "control-random", "--overwrite")
        self.assertEqual(before, (self.folder / "judged.json.1").read_bytes())
        self.assertTrue((self.folder / "judged.json.1.work" / "journal.jsonl").exists())

    def test_what_a_command_reads_is_never_its_out_whatever_is_asked(self) -> None:
        tasks, other = {"tasks": [{"id": "a", "prompt": "p"}]}, results_of(3)
        other["results"][0]["answer"] += " And more."
        for name, value in (("r.json", results_of(3)), ("s.json", other), ("t.json", tasks)):
            self.write(name, value)
        os.symlink(self.folder / "s.json", self.folder / "link.json")
        before = {name: (self.folder / name).read_bytes() for name in ("r.json", "s.json", "t.json")}
        control, compare = ("--judge-model", "control-first"), ("compare", "--results-a", "r.json", "--results-b")
        for words in (
            ("grade", "--results", "r.json", *control, "--out", "r.json"),
            (*compare, "s.json", *control, "--out", "link.json"),
            ("answer", "--tasks", "t.json", "--model", "m", "--out", "./t.json"),
        ):
            done = self.judge(*words, "--overwrite", code=3)
            self.assertIn("--out: expected another file than", done.stderr)
        self.assertEqual(before, {name: (self.folder / name).read_bytes() for name in before})
        self.assertEqual(sorted((*before, "link.json")), sorted(path.name for path in self.folder.iterdir()))

    def test_the_same_work_begins_anew_on_demand_and_the_earlier_replies_stay(self) -> None:
        self.write("r.json", results_of(3))
        with FaultServer(grader(lambda seen: 4)) as server:
            self.grade(server)
            self.grade(server, "--overwrite")
            self.assertEqual(6, server.count)
            self.assertEqual(2, len(list(self.folder.glob("judged.json*.work"))))
            done = self.grade(server, "--overwrite", "--max-requests", "1", code=3)
            self.assertIn("hint: the same command again without --overwrite asks only what is missing", done.stderr)
            self.assertEqual(3, len(list(self.folder.glob("judged.json*.work"))))

    def test_a_file_that_was_edited_is_not_overwritten_by_the_same_command(self) -> None:
        self.write("r.json", results_of(3))
        words = ("grade", "--results", "r.json", "--judge-model", "control-longer")
        self.judge(*words)
        edited = (self.folder / "judged.json").read_bytes() + b"\n"
        (self.folder / "judged.json").write_bytes(edited)
        done = self.judge(*words, code=3)
        self.assertIn("judged.json: was changed since this command wrote it\nhint: move it away: ", done.stderr)
        self.assertEqual(edited, (self.folder / "judged.json").read_bytes())
        self.judge(*words, "--overwrite")
        self.assertEqual(edited, (self.folder / "judged.json.1").read_bytes())
        (self.folder / "judged.json").unlink()
        self.judge(*words)

    def test_a_file_of_unknown_origin_is_not_overwritten(self) -> None:
        self.write("r.json", results_of(3))
        (self.folder / "judged.json").write_text("precious", encoding="utf-8")
        self.judge("grade", "--results", "r.json", "--judge-model", "control-longer", code=3)
        self.assertEqual("precious", (self.folder / "judged.json").read_text(encoding="utf-8"))

    def test_refused_fields_are_named_with_the_flag_that_helps_after_one_request(self) -> None:
        cases = [
            ("temperature does not support 0", "--temperature none"),
            ("unknown field seed", "--omit seed"),
            ("'strict' is not permitted", "--no-strict"),
            ("schema keyword 'enum' is not supported", "--score-range none"),
            ("response_format is not supported", "--output-mode"),
            ("use max_completion_tokens instead of max_tokens", "--rename max_tokens=max_completion_tokens"),
        ]
        self.write("r.json", results_of(4))
        for words, flag in cases:
            with self.subTest(words):
                error = Json({"error": {"message": words, "type": "invalid_request_error"}}, status=400)
                with FaultServer(lambda request, error=error: error) as server:  # type: ignore[misc]
                    done = self.grade(server, code=3)
                    self.assertEqual(1, server.count)
                self.assertIn(flag, done.stderr)
                self.assertFalse((self.folder / "judged.json").exists())

    def test_a_field_named_only_by_the_servers_param_still_names_the_flag(self) -> None:
        self.write("r.json", results_of(2))
        error = Json({"error": {"message": "not for this model", "param": "seed"}}, status=400)
        with FaultServer(lambda request: error) as server:
            self.assertIn("--omit seed", self.grade(server, code=3).stderr)
            self.grade(server, "--omit", "seed", code=3)
            self.assertNotIn("seed", server.requests[-1].json())

    def test_the_flags_change_the_request(self) -> None:
        self.write("r.json", results_of(1))
        with FaultServer(grader(lambda seen: 3)) as server:
            words = ("--no-strict", "--score-range", "minmax", "--temperature", "none", "--omit", "seed")
            self.grade(server, *words, "--rename", "max_tokens=max_completion_tokens")
            body = server.requests[0].json()
        self.assertEqual({"model", "messages", "max_completion_tokens", "response_format"}, set(body))
        self.assertNotIn("strict", body["response_format"]["json_schema"])
        self.assertEqual(1, body["response_format"]["json_schema"]["schema"]["properties"]["score"]["minimum"])

    def test_every_output_mode_is_asked_for_and_read(self) -> None:
        self.write("r.json", results_of(1))
        arguments = json.dumps({"score": 4, "why": "x"})
        call = {"id": "1", "type": "function", "function": {"name": "verdict", "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        tool = Json({"id": "c", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})
        replies = {"tool": tool, "required": tool, "json_object": chat(arguments), "text": chat("Fine.\n\n[[4]]")}
        for mode, reply in replies.items():
            with self.subTest(mode), FaultServer(lambda request, reply=reply: reply) as server:  # type: ignore[misc]
                self.grade(server, "--output-mode", mode, "--out", f"{mode}.json")
                self.assertEqual(4, self.read(f"{mode}.json")["results"][0]["judge"]["score"])

    def test_the_key_goes_to_the_server_and_nowhere_else(self) -> None:
        self.write("r.json", results_of(2))

        def echo(request: Request) -> Any:
            return chat({"score": 3, "why": f"got {request.headers.get('authorization')}"})

        with FaultServer(echo) as server:
            with mock.patch.dict(os.environ, {"JUDGE_KEY": KEY}):
                done = self.grade(server, "--key-env", "JUDGE_KEY")
            self.assertEqual(f"Bearer {KEY}", server.requests[0].headers["authorization"])
        kept = b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())
        self.assertNotIn(KEY.encode(), kept)
        self.assertNotIn(KEY, done.stdout + done.stderr)

    def test_a_key_echoed_behind_escapes_is_not_stored(self) -> None:
        self.write("r.json", results_of(2))
        content = json.dumps({"score": 3, "why": f"got {KEY}"}).replace("sk-", "sk\\u002d")
        with FaultServer(lambda request: chat(content)) as server, mock.patch.dict(os.environ, {"JUDGE_KEY": KEY}):
            self.grade(server, "--key-env", "JUDGE_KEY")
        kept = b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())
        self.assertNotIn(KEY[3:].encode(), kept)
        self.assertIn(b"API key removed", kept)

    def test_a_key_that_stands_in_a_setting_is_refused_before_anything_is_written(self) -> None:
        self.write("r.json", results_of(2))
        body = json.dumps({"user": KEY})
        with FaultServer(grader(lambda seen: 3)) as server, mock.patch.dict(os.environ, {"JUDGE_KEY": KEY}):
            done = self.grade(server, "--key-env", "JUDGE_KEY", "--extra-body", body, code=3)
            self.assertEqual(0, server.count)
        self.assertIn("'extra_body': holds the API key", done.stderr)
        self.assertNotIn(KEY, done.stderr)
        self.assertEqual(["r.json"], os.listdir(self.folder))

    def test_a_key_in_a_flag_or_a_text_is_refused_before_anything_is_written(self) -> None:
        other, held = results_of(2, answer="other"), results_of(2)
        held["results"][1]["answer"] = f"{KEY} is it"
        self.write("a.json", results_of(2))
        self.write("b.json", other)
        self.write("held.json", held)
        self.write("t.json", {"tasks": [{"id": "t", "prompt": "p"}]})
        self.write("held-t.json", {"tasks": [{"id": "t", "prompt": "p", "note": KEY}]})
        text = (self.folder / "held.json").read_text(encoding="utf-8").replace(KEY, KEY.replace("-", "\\u002d"))
        (self.folder / "spelled.json").write_text(text, encoding="utf-8")
        before = sorted(os.listdir(self.folder))
        grade, answer = ("grade", "--judge-model", "m"), ("answer", "--model", "m")
        compare = ("compare", "--judge-model", "m", "--results-a", "a.json")
        cases = [
            ("held.json:1", (*grade, "--results", "held.json")),
            ("spelled.json:1", (*grade, "--results", "spelled.json")),
            ("held.json:1", (*compare, "--results-b", "held.json")),
            ("held.json:1", (*compare, "--results-b", "b.json", "--also", "held.json")),
            ("held-t.json:1", (*answer, "--tasks", "held-t.json")),
            ("--out", (*answer, "--tasks", "t.json", "--out", f"{KEY}.json")),
            ("--reasoning-effort", (*grade, "--results", "a.json", "--reasoning-effort", KEY)),
            *(
                (flag, (*answer, "--tasks", "t.json", flag, f"x {KEY}"))
                for flag in ("--system", "--settings", "--quant")
            ),
        ]
        with FaultServer(grader(lambda seen: 3)) as server, mock.patch.dict(os.environ, {"JUDGE_KEY": KEY}):
            for where, words in cases:
                out = () if "--out" in words else ("--out", "o.json")
                for given in (("--key-env", "JUDGE_KEY"), ("--api-key", KEY)):
                    with self.subTest(where, given=given[0]):
                        done = self.judge(*words, *out, "--base-url", server.base, "--quiet", *given, code=3)
                        self.assertIn(f"{where}: holds the API key of m", done.stderr)
                        self.assertNotIn(KEY, done.stdout + done.stderr)
            self.assertEqual(0, server.count)
        self.assertEqual(before, sorted(os.listdir(self.folder)))

    def test_a_missing_key_stops_before_anything_is_written(self) -> None:
        self.write("r.json", results_of(2))
        with FaultServer(grader(lambda seen: 3)) as server:
            done = self.grade(server, "--key-env", "NOT_SET_ANYWHERE", code=3)
            self.assertEqual(0, server.count)
        self.assertIn("NOT_SET_ANYWHERE", done.stderr)
        self.assertEqual(["r.json"], os.listdir(self.folder))

    def test_a_dropped_connection_is_tried_again(self) -> None:
        self.write("r.json", results_of(3))
        good = grader(lambda seen: 3)
        with FaultServer(script([chat({"score": 3, "why": "x"}), Close(b"HTTP/1.1 200 OK\r\n")], good)) as server:
            self.grade(server)
        self.assertEqual(3, self.read("judged.json")["judge"]["graded"])

    def test_a_wrong_key_costs_one_request(self) -> None:
        self.write("r.json", results_of(9))
        refusal = Raw(http("401 Unauthorized", b'{"error": {"message": "bad key"}}'))
        with FaultServer(lambda request: refusal) as server:
            done = self.grade(server, "--concurrency", "4", code=3)
            self.assertEqual(1, server.count)
        self.assertIn("--key-env", done.stderr)

    def test_the_reasons_of_failed_replies_are_told(self) -> None:
        self.write("r.json", results_of(2))
        down = Raw(http("400 Bad", b'{"error": {"message": "kaputt"}}'))
        good = grader(lambda seen: 3)
        with FaultServer(lambda request: good(request) if request.number == 1 else down) as server:
            done = self.grade(server, code=3)
        self.assertRegex(done.stderr, r"failed \(http_400 \d; the last: HTTP 400 Bad: kaputt\); not complete")

    def test_the_budget_in_dollars_and_in_requests_is_never_passed(self) -> None:
        self.write("r.json", results_of(9))
        with FaultServer(grader(lambda seen: 3)) as server:
            self.grade(server, "--max-requests", "4", code=3)
            self.assertEqual(4, server.count)
            done = self.grade(server, "--max-usd", "0.0001", "--price", "1000,1000,1000", code=3)
            self.assertEqual(4, server.count)
        self.assertIn("hint: the same command again with --max-usd ", done.stderr)

    def test_grading_ones_own_answers_or_those_of_the_family_is_said(self) -> None:
        self.write("r.json", results_of(2, model="judge-x"))
        with FaultServer(grader(lambda seen: 5)) as server:
            self.assertIn("judges its own answers", self.grade(server).stderr)
            self.write("q.json", results_of(2, model="Qwen2.5-7B-Instruct"))
            words = ("--base-url", server.base, "--judge-model", "qwen3-32b", "--out", "q-judged.json")
            done = self.judge("grade", "--results", "q.json", *words)
        self.assertIn("own family (qwen)", done.stderr)
        self.assertTrue(self.read("judged.json")["judge"]["self_judged"])
        self.assertEqual("qwen", self.read("q-judged.json")["judge"]["same_family"])


class KilledAndResumed(JudgeCase):
    def test_kill_minus_nine_loses_only_what_was_in_flight(self) -> None:
        self.write("r.json", results_of(12))
        slow = True

        def answer(request: Request) -> Any:
            reply = chat({"score": int(shown(request)["answer"].split()[-1]) % 5 + 1, "why": "x"})
            return Wait(30, reply) if slow and shown(request)["answer"].endswith(" 6") else reply

        with FaultServer(answer) as server:
            words = ("grade", "--results", "r.json", "--base-url", server.base, "--judge-model", "judge-x", "--quiet")
            process = subprocess.Popen(self.command(*words), cwd=self.folder, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 20
            while server.count < 7 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.kill()
            process.wait()
            journal = self.folder / "judged.json.work" / "journal.jsonl"
            self.assertEqual(6, journal.read_bytes().count(b"\n"))
            with journal.open("ab") as stream:
                stream.write(b'{"item_id": "t6", "arm')  # what a torn write leaves
            slow = False
            self.judge(*words)
            self.assertEqual(7 + 6, server.count)
        scores = [row["judge"]["score"] for row in self.read("judged.json")["results"]]
        self.assertEqual([i % 5 + 1 for i in range(12)], scores)

    @unittest.skipIf(os.name == "nt", "signals")
    def test_an_interrupt_ends_with_130_and_the_way_to_go_on(self) -> None:
        self.write("r.json", results_of(20))
        with FaultServer(grader(lambda seen: 3), delay_s=0.05) as server:
            words = ("grade", "--results", "r.json", "--base-url", server.base, "--judge-model", "judge-x", "--quiet")
            process = subprocess.Popen(
                self.command(*words),
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            deadline = time.monotonic() + 20
            while server.count < 3 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
            self.assertEqual(130, process.returncode, said)
            self.assertIn("same command again", said)
            asked = server.count
            self.judge(*words)
            self.assertEqual(20, server.count)
            self.assertLess(asked, 20)

    def test_two_processes_never_work_on_one_file(self) -> None:
        self.write("r.json", results_of(6))
        with FaultServer(grader(lambda seen: 3), delay_s=0.15) as server:
            words = ("grade", "--results", "r.json", "--base-url", server.base, "--judge-model", "judge-x", "--quiet")
            process = subprocess.Popen(self.command(*words), cwd=self.folder, stdout=subprocess.DEVNULL)
            while server.count < 1:
                time.sleep(0.02)
            done = self.judge(*words, code=3)
            self.assertIn("in use", done.stderr)
            self.assertEqual(0, process.wait(timeout=30))
            self.assertEqual(6, server.count)


class Comparing(JudgeCase):
    def write_two(self, n: int = 6) -> None:
        self.write("a.json", results_of(n, "model-a", "good"))
        self.write("b.json", results_of(n, "model-b", "poor"))

    def test_a_judge_that_sees_quality_wins_every_pair_for_a(self) -> None:
        self.write_two()
        with FaultServer(chooser(lambda seen: "first" if "good" in seen["first"] else "second")) as server:
            self.compare(server)
            self.assertEqual(12, server.count)
        found = self.read("compared.json")
        summary = found["judge"]
        self.assertEqual(
            (6, 6, 0, 0, 0), tuple(summary[k] for k in ("compared", "wins_a", "wins_b", "ties", "order_flips"))
        )
        self.assertEqual(
            ("A", "A", "B"),
            tuple(
                found["pairs"][0][k] if k == "decision" else found["pairs"][0][k]["choice"]
                for k in ("decision", "original", "swapped")
            ),
        )
        self.assertEqual("because", found["pairs"][0]["original"]["why"])
        self.assertEqual({"model": "model-a", "quant": "1", "settings": "1"}, summary["a"])
        self.assertAlmostEqual(0.0312, summary["sign_test_p"], 4)

    def test_flips_are_told_apart_by_direction(self) -> None:
        for place, word in (("first", "first"), ("second", "second")):
            with self.subTest(place), FaultServer(chooser(lambda seen, word=word: word)) as server:  # type: ignore[misc]
                self.write_two(4)
                self.compare(server, "--out", f"{place}.json")
                summary = self.read(f"{place}.json")["judge"]
                self.assertEqual((4, 1.0), (summary["order_flips"], summary["flip_rate"]))
                self.assertEqual(4, summary[f"flips_{place}"])
                self.assertEqual(0.5, summary["win_rate"]["value"])

    def test_a_judge_without_any_verdict_is_an_error_that_says_what_a_reply_holds(self) -> None:
        self.write_two(2)
        with FaultServer(lambda request: chat({"choice": "A", "reason": "words of another recipe"})) as server:
            said = self.compare(server, code=1)
        self.assertIn("no reply holds a usable verdict (missing_key 4)", said.stderr)
        self.assertIn("winner (first, second or tie) and why", said.stderr)

    def test_ties_invalid_and_failed_pairs_are_counted_apart(self) -> None:
        self.write_two(4)

        def answer(request: Request) -> Any:
            number = shown(request)["first"][-1]
            if number == "2":
                return chat({"winner": "neither", "why": "x"})
            if number == "3":
                return Json({"error": {"message": "odd row"}}, status=422)
            return chat({"winner": "tie", "why": "x"})

        with FaultServer(answer) as server:
            self.compare(server, code=3)
        summary = self.read("compared.json")["judge"]
        got = {key: summary[key] for key in ("compared", "ties", "invalid", "failed", "judge_failures")}
        self.assertEqual({"compared": 2, "ties": 2, "invalid": 1, "failed": 1, "judge_failures": 2}, got)

    def test_the_same_text_is_not_sent_and_ids_of_one_file_are_listed(self) -> None:
        self.write_two(4)
        a, b = self.read("a.json"), self.read("b.json")
        b["results"][1]["answer"] = a["results"][1]["answer"]
        b["results"][3]["id"] = "other"
        self.write("b.json", b)
        with FaultServer(chooser(lambda seen: "tie")) as server:
            done = self.compare(server)
            self.assertEqual(4, server.count)
        self.assertIn("only in model-a, so not compared: t3", done.stderr)
        self.assertIn("only in model-b, so not compared: other", done.stderr)
        found = self.read("compared.json")
        self.assertEqual(["t1"], [one["id"] for one in found["identical"]])
        self.assertEqual({"model-a": ["t3"], "model-b": ["other"]}, found["only_in"])
        self.assertEqual((2, 1), (found["judge"]["compared"], found["judge"]["identical"]))

    def test_different_prompts_under_one_id_are_refused(self) -> None:
        self.write_two(2)
        b = self.read("b.json")
        b["results"][0]["prompt"] = "another question"
        self.write("b.json", b)
        done = self.judge(
            "compare", "--results-a", "a.json", "--results-b", "b.json", "--judge-model", "control-first", code=3
        )
        self.assertIn("b.json: item 't0': field 'prompt'", done.stderr)

    def test_three_runs_are_ranked(self) -> None:
        self.write_two(5)
        self.write("c.json", results_of(5, "model-c", "middling and long"))
        words = ("--results-a", "a.json", "--results-b", "b.json", "--also", "c.json", "--bootstrap", "200")
        done = self.judge("compare", *words, "--judge-model", "control-random")
        found = self.read("compared.json")
        self.assertEqual(15, len(found["pairs"]))
        self.assertEqual(15, len({pair["id"] for pair in found["pairs"]}))
        strengths = found["strengths"]["control-random"]
        self.assertEqual({"model-a", "model-b", "model-c"}, set(strengths))
        self.assertAlmostEqual(0, sum(one["value"] for one in strengths.values()), 3)
        self.assertIn("Bradley-Terry", done.stdout)


class Panels(JudgeCase):
    def test_a_panel_gives_each_judge_their_majority_and_their_agreement(self) -> None:
        self.write("r.json", results_of(5))

        def answer(request: Request) -> Any:
            score = {"kind": 5, "strict": 1, "fair": 5}[request.json()["model"]]
            return chat({"score": score, "why": "x"})

        with FaultServer(answer) as server:
            judges = [word for name in ("kind", "strict", "fair") for word in ("--judge-model", name)]
            self.judge("grade", "--results", "r.json", "--base-url", server.base, *judges, "--labbook", "lab.jsonl")
        found = self.read("judged.json")
        self.assertEqual([5] * 5, [row["judge"]["score"] for row in found["results"]])
        self.assertEqual(
            {"kind": 5, "strict": 1, "fair": 5}, {k: v["score"] for k, v in found["results"][0]["judges"].items()}
        )
        self.assertEqual(
            {"kind": 5.0, "strict": 1.0, "fair": 5.0}, {k: v["judge_mean"] for k, v in found["judge"]["judges"].items()}
        )
        self.assertEqual(
            (5, 0),
            tuple(found["judge"]["panel_agreement"]["exact"][pair]["k"] for pair in ("kind / fair", "kind / strict")),
        )
        self.assertEqual(4, (self.folder / "lab.jsonl").read_bytes().count(b"\n"))

    def test_judges_may_have_an_address_each(self) -> None:
        self.write("r.json", results_of(2))
        with FaultServer(grader(lambda seen: 2)) as one, FaultServer(grader(lambda seen: 4)) as two:
            words = ("--judge-model", "m1", "--judge-model", "m2", "--base-url", one.base, "--base-url", two.base)
            self.judge("grade", "--results", "r.json", *words)
        each = self.read("judged.json")["results"][0]["judges"]
        self.assertEqual((2, 4), (each["m1"]["score"], each["m2"]["score"]))


class Controls(JudgeCase):
    def test_controls_open_no_connection_and_show_what_they_are(self) -> None:
        for name, flips in (("control-longer", 0), ("control-first", 13)):
            words = ("--results-a", str(EXAMPLES / "results-a.json"), "--results-b", str(EXAMPLES / "results-b.json"))
            self.judge(
                "compare", *words, "--judge-model", name, "--out", f"{name}.json", "--base-url", "http://127.0.0.1:1/v1"
            )
            self.assertEqual(flips, self.read(f"{name}.json")["judge"]["order_flips"], name)

    def test_the_length_control_is_caught_by_the_length_figures(self) -> None:
        self.judge("grade", "--results", str(EXAMPLES / "results-a.json"), "--judge-model", "control-longer")
        length = self.read("judged.json")["judge"]["length"]
        self.assertGreater(length["low"], 0.5)
        self.assertLess(length["low"], length["spearman"])
        self.assertLess(length["spearman"], length["high"])

    def test_an_unknown_control_and_a_control_that_answers_are_refused(self) -> None:
        self.assertIn(
            "control-longer",
            self.judge(
                "grade", "--results", str(EXAMPLES / "results-a.json"), "--judge-model", "control-tall", code=3
            ).stderr,
        )
        self.judge("answer", "--tasks", str(EXAMPLES / "tasks.json"), "--model", "control-first", code=3)


class Documented(JudgeCase):
    def test_the_offline_commands_of_the_manual_work_as_pasted_beside_nothing_but_the_files_it_names(self) -> None:
        for name in ("judge.py", "recipe.py", "agreement.py", "client.py"):
            shutil.copy(ROOT / name, self.folder)
        for name in ("engine", "examples"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        manual = (room("judge").__doc__ or "").replace("\\\n", " ").split("\n")
        lines = [line.split() for line in manual if line.strip().startswith("python3 -I judge.py")]
        offline = [words[1:] for words in lines if "--base-url" not in words and "human" not in words]
        self.assertEqual(["grade", "compare"], [words[2] for words in offline])
        for words in offline:
            done = subprocess.run(
                [sys.executable, *words],
                cwd=self.folder,
                capture_output=True,
                encoding="utf-8",
                timeout=60,
                check=False,
            )
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("written: ", done.stdout)

    def test_flags_that_do_not_go_together_are_a_usage_error(self) -> None:
        cases = [
            ("grade", "--judge-model", "m", "--judge-model", "m"),
            ("grade", "--judge-model", "m", "--base-url", "http://127.0.0.1:1", "--base-url", "http://127.0.0.1:2"),
            ("grade", "--judge-model", "m", "--max-usd", "1"),
            ("grade", "--judge-model", "m", "--api-key", "k", "--key-env", "K"),
            ("grade",),
            ("compare", "--results-a", "a", "--judge-model", "m"),
            ("import", "x", "--out", "y"),
        ]
        for words in cases:
            with self.subTest(words), contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())):
                with self.assertRaises(SystemExit) as ended:
                    room("judge").check_options(*self.parsed(words))
                self.assertEqual(2, ended.exception.code)

    def parsed(self, words: tuple[str, ...]) -> tuple[Any, Any]:
        parser = room("judge").build_parser(words[0])
        return parser, parser.parse_args(list(words))


class Answering(JudgeCase):
    def test_tasks_become_a_results_file_that_grade_reads(self) -> None:
        tasks = json.loads((EXAMPLES / "tasks.json").read_text(encoding="utf-8"))["tasks"]
        right = {task["prompt"]: task["reference"] for task in tasks}
        with FaultServer(lambda request: chat(right[request.json()["messages"][-1]["content"]] or "hm")) as server:
            words = ("--tasks", str(EXAMPLES / "tasks.json"), "--model", "solver", "--base-url", server.base)
            self.judge("answer", *words)
            self.assertEqual(len(tasks), server.count)
        found = self.read("results.json")
        by_id = {row["id"]: row for row in found["results"]}
        self.assertTrue(by_id["sum-01"]["checks"]["passed"])
        self.assertFalse(by_id["mail-01"]["checks"]["passed"])
        self.assertEqual(("solver", len(tasks)), (found["run"]["model"], found["run"]["tasks"]))
        self.judge("grade", "--results", "results.json", "--judge-model", "control-longer")

    def test_a_think_block_is_not_part_of_the_answer_and_silence_is_noted(self) -> None:
        tasks = [{"id": f"t{i}", "category": "c", "prompt": f"p{i}", "rubric": "", "reference": ""} for i in range(2)]
        self.write("t.json", {"task_set": "s", "task_set_version": "1", "tasks": tasks})
        with FaultServer(script([chat("<think>hmm</think>\nyes"), chat("")])) as server:
            done = self.judge("answer", "--tasks", "t.json", "--model", "m", "--base-url", server.base)
        rows = self.read("results.json")["results"]
        self.assertEqual(("yes", ""), (rows[0]["answer"], rows[1]["answer"]))
        self.assertEqual("no_verdict", rows[1]["answer_problem"])
        self.assertIn("without text: t1", done.stdout)


load_tests = beside("test_judge_run")


if __name__ == "__main__":
    unittest.main()
