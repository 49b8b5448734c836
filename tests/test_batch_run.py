"""--export-batch and --import-batch as commands: what comes back through a batch equals what was asked directly."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import batch_service as service
from fault_server import FaultServer, Json, Request, judge
from rooms import ROOT, options_of, room

run_eval, modes = room("run_eval"), room("modes")
for needed in ("recipe", "check", "batch_modes"):
    room(needed)
CONFIG, INPUTS = run_eval.verified(str(ROOT))
PRICES = "1,0.1,2"
CUSTOM = ("--arms", "custom", "--model", "judge-1", "--price", PRICES)
SMALL = ("--limit", "4", "--repeats", "2", "--quiet")
NOWHERE = "http://127.0.0.1:9/v1"  # export and import open no connection


class BatchTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_eval(self, *arguments: str, expect: int = 0) -> tuple[str, str]:
        """(last line of stdout, stderr) of a mode, run in this process from the scratch folder: it saves the start."""
        out, errors = io.StringIO(), io.StringIO()
        options = options_of(*arguments)
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                code = modes.main(options, str(ROOT), CONFIG, INPUTS)
        finally:
            os.chdir(before)
        self.assertEqual(code, expect, out.getvalue() + errors.getvalue())
        return (out.getvalue().strip().split("\n")[-1], errors.getvalue())

    def command(self, *arguments: str, expect: int = 0) -> tuple[str, str]:
        """The same as a process of its own, as people run it."""
        command = [sys.executable, "-I", str(ROOT / "run_eval.py"), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=60)
        out, errors = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        self.assertEqual(done.returncode, expect, out + errors)
        return (out.strip().split("\n")[-1], errors)

    def export(self, *arguments: str, base: str = NOWHERE) -> str:
        return self.run_eval("--export-batch", "batch.jsonl", *CUSTOM, "--base-url", base, *SMALL, *arguments)[0]

    def path(self, *parts: str) -> Path:
        return self.folder.joinpath(*parts)

    def answers(self, name: str = "batch.jsonl") -> list[dict[str, Any]]:
        return service.answer(self.path(name))

    def write(self, name: str, results: list[dict[str, Any]]) -> str:
        return service.write(self.path(name), results)

    def manifest(self, run: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path(run, "manifest.json").read_text(encoding="utf-8"))
        return found

    def rows(self, run: str) -> list[dict[str, Any]]:
        with gzip.open(self.path(run, "raw.jsonl.gz"), "rb") as stream:
            return [json.loads(line) for line in stream]

    def summary(self, run: str) -> dict[str, Any]:
        self.run_eval("--rescore", run, "--bootstrap", "100")
        found: dict[str, Any] = json.loads(self.path(run, "summary.json").read_text(encoding="utf-8"))
        return found


def verdicts(rows: list[dict[str, Any]]) -> list[Any]:
    """What of raw rows must not depend on the road the replies came by."""
    keys = ("item_id", "arm", "repeat", "request_model", "response_model", "tool_arguments", "finish_reason", "tokens")
    return [[row[key] for key in keys] + [row["response_id"], row["errors"]] for row in rows]


class Equal(BatchTest):
    def test_a_run_through_a_batch_equals_the_run_made_directly(self) -> None:
        with FaultServer(judge()) as server:
            direct = self.run_eval("--generate", *CUSTOM, "--base-url", server.base, *SMALL)[0]
            run = self.export(base=server.base)
        results = self.answers()
        random.Random(7).shuffle(results)
        self.write("out.jsonl", results)
        self.run_eval("--import-batch", "out.jsonl", "--run", run)
        self.assertEqual(verdicts(self.rows(run)), verdicts(self.rows(direct)))
        first, second = self.summary(direct), self.summary(run)
        same = ("config_hash", "position", "length", "repeats", "by", "baselines", "disagreements")
        self.assertEqual([first[key] for key in same], [second[key] for key in same])
        self.assertEqual(first["arms"]["custom"]["metrics"], second["arms"]["custom"]["metrics"])
        # The fake judge has one reply id for a request, however often it is asked; nothing else is found.
        self.assertIn(", 1 failed,", self.command("--verify", run, expect=1)[0])
        self.assertEqual(
            [first["usage"]["custom"]["batch_replies"], second["usage"]["custom"]["batch_replies"]], [0, 16]
        )

    def test_every_dialect_makes_the_round_trip(self) -> None:
        for form in ("anthropic", "responses"):
            with self.subTest(form):
                run = self.run_eval(
                    "--export-batch", f"{form}.jsonl", *CUSTOM, "--base-url", NOWHERE, "--api-format", form, *SMALL
                )[0]
                self.write("out.jsonl", self.answers(f"{form}.jsonl"))
                self.run_eval("--import-batch", "out.jsonl", "--run", run)
                self.assertEqual(self.summary(run)["arms"]["custom"]["counts"]["ok"], 8)

    def test_an_import_that_was_cut_off_by_a_crash_goes_on_where_it_was(self) -> None:
        run = self.export()
        results = self.answers()
        self.run_eval("--import-batch", self.write("one.jsonl", results[:9]), "--run", run, expect=3)
        with open(self.path(run, "journal.jsonl"), "rb+") as stream:
            stream.truncate(os.path.getsize(self.path(run, "journal.jsonl")) - 20)
        out, errors = self.run_eval("--import-batch", self.write("all.jsonl", results), "--run", run)
        self.assertIn("unfinished last line", errors)
        self.assertIn("8 results are of requests that have a reply already", errors)
        self.assertEqual(len(self.rows(run)), 8)


class Shards(BatchTest):
    def test_shards_judged_by_batches_of_their_own_are_joined_into_one_run(self) -> None:
        runs = []
        for shard in ("1/2", "2/2"):
            name = f"part-{shard[0]}.jsonl"
            given = (
                "--arms",
                "custom",
                "--model",
                "judge-1",
                "--base-url",
                NOWHERE,
                "--repeats",
                "1",
                "--shard",
                shard,
            )
            runs.append(self.run_eval("--export-batch", name, *given, "--limit", "4")[0])
            self.write("out.jsonl", self.answers(name))
            self.run_eval("--import-batch", "out.jsonl", "--run", runs[-1])
        whole = self.run_eval("--merge", *runs)[0]
        self.assertEqual(len(self.rows(whole)), 4)
        self.run_eval("--rescore", runs[0])
        self.run_eval("--verify", runs[0])
        self.assertEqual(self.manifest(whole)["provenance"], {"custom": "batch"})


class Mixing(BatchTest):
    def test_partial_results_a_resume_and_later_results_finish_one_run(self) -> None:
        with FaultServer(judge()) as server:
            run = self.export("--max-requests", "12", base=server.base)
            self.assertEqual(self.manifest(run)["batches"][0]["tasks"], "0-11")
            results = self.answers()
            gone = [service.expired(results[3]), service.vllm_failed(results[4], 400, {"error": {"message": "bad"}})]
            self.write("errors.jsonl", gone)
            self.write("out.jsonl", results[:3] + results[5:10])
            out, errors = self.run_eval("--import-batch", "out.jsonl", "errors.jsonl", "--run", run, expect=3)
            self.assertIn("imported 8 ok, 0 invalid, 2 failed", errors)
            self.assertIn("6 replies missing, 2 failed", errors)
            out, errors = self.run_eval("--resume", run, "--max-requests", "3", "--quiet", expect=3)
            self.assertIn("2 requests of arm custom were exported to batch.jsonl", errors)
            out, errors = self.run_eval("--import-batch", self.write("all.jsonl", results), "--run", run, expect=3)
            self.assertIn("results are of requests that have a reply already; the first is kept", errors)
            self.run_eval("--resume", run, "--quiet")
        rows = self.rows(run)
        roads = [kept.get("via") for row in rows for kept in row["replies"].values()]
        self.assertEqual((len(rows), len(roads)), (8, 16))
        self.assertEqual(self.manifest(run)["provenance"], {"custom": "batch"})
        self.assertGreaterEqual(roads.count("batch"), 9)
        self.assertGreaterEqual(roads.count(None), 4)

    def test_what_failed_can_be_exported_again_and_nothing_else_is(self) -> None:
        run = self.export()
        results = self.answers()
        failed = [service.expired(one) for one in results[:5]]
        self.run_eval("--import-batch", self.write("out.jsonl", failed + results[5:]), "--run", run, expect=3)
        again = self.run_eval("--export-batch", "rest.jsonl", "--run", run)[0]
        self.assertEqual(again, run)
        asked = [one["custom_id"] for one in service.requests_of(self.path("rest.jsonl"))]
        self.assertEqual(asked, [one["custom_id"] for one in results[:5]])
        self.run_eval("--import-batch", self.write("more.jsonl", self.answers("rest.jsonl")), "--run", run)
        self.assertEqual(self.manifest(run)["status"], "complete")

    def test_an_interrupted_direct_run_can_be_finished_by_a_batch(self) -> None:
        with FaultServer(judge()) as server:
            run = self.run_eval(
                "--generate", *CUSTOM, "--base-url", server.base, *SMALL, "--max-requests", "6", expect=3
            )[0]
        self.run_eval("--export-batch", "rest.jsonl", "--run", run)
        self.assertEqual(len(service.requests_of(self.path("rest.jsonl"))), 10)
        self.run_eval("--import-batch", self.write("out.jsonl", self.answers("rest.jsonl")), "--run", run)
        self.assertEqual(self.summary(run)["usage"]["custom"]["batch_replies"], 10)

    def test_several_arms_have_a_file_each_and_controls_need_none(self) -> None:
        run = self.run_eval(
            "--export-batch", "b.jsonl", "--arms", "baseline,claude,control-longer", "--limit", "2", "--repeats", "1"
        )[0]
        self.assertEqual(sorted(path.name for path in self.folder.glob("b*")), ["b-baseline.jsonl", "b-claude.jsonl"])
        self.assertEqual(service.requests_of(self.path("b-baseline.jsonl"))[0]["url"], "/v1/responses")
        results = self.answers("b-baseline.jsonl") + self.answers("b-claude.jsonl")
        self.write("out.jsonl", results)
        self.run_eval("--import-batch", "out.jsonl", "--run", run)
        counts = {name: arm["counts"]["ok"] for name, arm in self.summary(run)["arms"].items()}
        self.assertEqual(counts, {"baseline": 2, "claude": 2, "control-longer": 2})


class Costs(BatchTest):
    def test_batch_replies_cost_half_where_the_arm_says_so_and_the_rest_full(self) -> None:
        run = self.run_eval("--export-batch", "b.jsonl", "--arms", "claude", "--limit", "2", "--repeats", "1")[0]
        results = self.answers("b.jsonl")
        self.run_eval("--import-batch", self.write("out.jsonl", results), "--run", run)
        usages = [kept["usage"] for row in self.rows(run) for kept in row["replies"].values()]
        full = sum(usage["input"] * 0.1 + usage["output"] * 0.5 for usage in usages) / 1e6
        cost = self.summary(run)["cost_usd"]["claude"]
        self.assertAlmostEqual(cost["value"], full / 2, places=9)
        self.assertEqual(cost["replies_without"], 0)

    def test_without_a_stated_batch_price_the_cost_is_unknown_and_never_made_up(self) -> None:
        run = self.export()
        self.run_eval("--import-batch", self.write("out.jsonl", self.answers()), "--run", run)
        self.assertEqual(self.summary(run)["cost_usd"]["custom"], {"value": 0.0, "replies_without": 16})


class Refusals(BatchTest):
    def test_results_of_another_run_are_never_taken(self) -> None:
        first = self.export()
        self.write("out.jsonl", self.answers())
        os.rename(self.path("batch.jsonl"), self.path("first.jsonl"))
        second = self.export()
        self.assertNotEqual(first, second)
        out, errors = self.run_eval("--import-batch", "out.jsonl", "--run", second, expect=3)
        self.assertIn("all 16 results belong to another run", errors)
        mixed = self.answers("first.jsonl") + self.answers("batch.jsonl")
        out, errors = self.run_eval("--import-batch", self.write("both.jsonl", mixed), "--run", second)
        self.assertIn("16 results belong to another run and are passed over", errors)

    def test_lines_that_are_no_results_are_named_and_the_others_taken(self) -> None:
        run = self.export()
        results = "".join(json.dumps(one) + "\n" for one in self.answers())
        torn = results[: len(results) - 30]
        self.path("out.jsonl").write_text("\ufeff" + torn.replace("\n", "\r\n\r\n"), encoding="utf-8", newline="")
        out, errors = self.run_eval("--import-batch", "out.jsonl", "--run", run, expect=3)
        self.assertIn("out.jsonl:31: not JSON; the line is passed over", errors)
        self.assertIn("imported 15 ok", errors)

    def test_a_reply_of_another_model_stops_before_it_is_taken(self) -> None:
        run = self.run_eval("--export-batch", "b.jsonl", "--arms", "claude", "--limit", "2", "--repeats", "1")[0]
        results = self.answers("b.jsonl")
        results[2]["result"]["message"]["model"] = "another-9"
        out, errors = self.run_eval("--import-batch", self.write("out.jsonl", results), "--run", run, expect=3)
        self.assertIn("out.jsonl:3: arm claude: the reply came from model 'another-9'", errors)
        self.assertEqual(self.manifest(run)["totals"]["claude"]["ok"], 2)

    def test_what_cannot_work_is_said_before_anything_is_written(self) -> None:
        run = self.export()
        self.run_eval("--import-batch", self.write("out.jsonl", self.answers()), "--run", run)
        base = ("--base-url", NOWHERE)
        for arguments, said, code in (
            (("--export-batch", "batch.jsonl", *CUSTOM, *base), "exists already", 3),
            (("--export-batch", "no/where.jsonl", *CUSTOM, *base), "the folder does not exist", 3),
            (("--export-batch", "n.jsonl", "--arms", "control-first"), "controls need no batch", 3),
            (("--export-batch", "n.jsonl", "--run", run), "the run is complete", 3),
            (("--import-batch", "out.jsonl", "--run", run), "the run is complete", 3),
            (("--import-batch", "out.jsonl", "--run", "nothing"), "no such run", 3),
            (("--import-batch", "out.jsonl"), "needs --run", 2),
            (("--demo", "--run", run), "--run goes with", 2),
        ):
            with self.subTest(arguments=arguments):
                ask = self.command if code == 2 else self.run_eval
                out, errors = ask(*arguments, expect=code)
                self.assertIn(said, errors)
        self.assertEqual(sorted(path.name for path in self.folder.glob("n*")), [])

    def test_both_commands_work_as_processes_and_open_no_connection(self) -> None:
        asked: list[Request] = []

        def listening(request: Request) -> Any:
            asked.append(request)
            return Json({}, 500)

        with FaultServer(listening) as server:
            run = self.command("--export-batch", "batch.jsonl", *CUSTOM, "--base-url", server.base, *SMALL)[0]
            self.command("--import-batch", self.write("out.jsonl", self.answers()), "--run", run)
        self.assertEqual(asked, [])


if __name__ == "__main__":
    unittest.main()
