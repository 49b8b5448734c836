"""Command lines of run_eval.py: what does not go together is one line and exit 2, and no flag is without effect."""

from __future__ import annotations

import contextlib
import io
import unittest

from rooms import options_of, room

CUSTOM = ("--arms", "custom", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")


class Refused(unittest.TestCase):
    def refused(self, words: str, *arguments: str) -> None:
        """The command line is refused: a short usage line, then one line that ends in `words`."""
        err = io.StringIO()
        with contextlib.redirect_stderr(err), self.assertRaises(SystemExit) as caught:
            options_of(*arguments)
        lines = err.getvalue().rstrip("\n").split("\n")
        self.assertEqual((2, 2), (caught.exception.code, len(lines)), err.getvalue())
        self.assertEqual("usage: run_eval.py [DIR] MODE [options]; --help lists them", lines[0])
        self.assertIn(words, lines[1])
        self.assertLess(len(lines[1]), 200)

    def test_a_mode_is_needed(self) -> None:
        self.refused("expected a mode", "--shard", "1/2")
        self.refused("expected a mode", "evals/mt-bench")

    def test_values_are_refused_in_words(self) -> None:
        for flag, value, words in (
            ("--limit", "0", "expected a whole number from 1, got '0'"),
            ("--concurrency", "1001", "expected a whole number from 1 to 1000, got '1001'"),
            ("--repeats", "1001", "expected a whole number from 1 to 1000, got '1001'"),
            ("--rpm", "nan", "expected a number above 0, got 'nan'"),
            ("--rpm", "fast", "expected a number above 0, got 'fast'"),
            ("--level", "100", "expected a percentage from 50 to 99.9999, such as 95, got '100'"),
            ("--level", "0.95", "expected a percentage from 50 to 99.9999, such as 95, got '0.95'"),
        ):
            self.refused(f"{flag}: {words}", "--plan", flag, value)

    def test_an_empty_name_of_a_judge_is_refused(self) -> None:
        for names in ("", "pareto,", ",", "pareto,,claude"):
            self.refused(f"--arms: expected names joined by commas, got {names!r}", "--plan", "--arms", names)

    def test_a_shard_is_written_in_plain_digits(self) -> None:
        self.refused("--shard: expected I/N", "--plan", "--shard", "\u0661/\u0662")

    def test_a_resume_refuses_what_was_settled_when_the_run_started(self) -> None:
        for words in (
            ("--limit", "3"),
            ("--arms", "pareto"),
            ("--repeats", "2"),
            ("--split", "test"),
            ("--shard", "1/2"),
            ("--model", "m"),
            ("--api-format", "openai"),
            ("--strict",),
            ("--arm-label", "x"),
            ("--out", "elsewhere"),
            ("--by", "category"),
            ("--gate", "kappa>0"),
        ):
            with self.subTest(words[0]):
                self.refused(f"{words[0]}: no effect with --resume", "--resume", "RUN", *words)

    def test_a_resume_takes_keys_prices_pace_and_limits(self) -> None:
        words = ("--key-env", "K", "--key-file", "f", "--price", "1,1,1", "--rpm", "3", "--concurrency", "2")
        options = options_of("--resume", "RUN", *words, "--max-usd", "1", "--max-minutes", "2", "--timeout", "9")
        self.assertEqual(("K", 3.0), (options.key_env, options.rpm))

    def test_flags_of_a_result_are_refused_where_none_is_shown(self) -> None:
        for words in (("--by", "category"), ("--bootstrap", "9"), ("--disagreements",), ("--report",)):
            words_of = f"{words[0]}: no effect with --generate; only with --rescore, --demo"
            self.refused(words_of, "--generate", *CUSTOM, *words)
        self.assertEqual("category", options_of("--rescore", "RUN", "--by", "category").by)

    def test_a_gate_is_refused_where_it_would_never_fail(self) -> None:
        gate = ("--gate", "kappa>=0.6")
        for mode in (("--generate",), ("--plan",), ("--diff", "A", "B"), ("--receipt", "R"), ("--freeze",)):
            self.refused(f"--gate: no effect with {mode[0]}; only with", *mode, *gate)
        for mode in (("--rescore", "R"), ("--demo",), ("--verify", "R")):
            self.assertEqual(["kappa>=0.6"], options_of(*mode, *gate).gate)

    def test_flags_of_another_mode_are_refused(self) -> None:
        for line in (
            "--rescore R --arms a", "--rescore R --split dev", "--rescore R --limit 1", "--rescore R --repeats 9",
            "--rescore R --shard 1/2", "--prune 0 --format csv", "--merge A B --limit 1",
            "--generate --format json", "--generate --calibrate R", "--plan --max-minutes 1", "--plan --key-file f",
            "--plan --force", "--demo --pending", "--demo --run-pinned-code", "--rescore R --expect kappa=1",
            "--verify R --out D", "--diff A B --limit 1", "--plan --all",
        ):  # fmt: skip
            mode, flag = line.split(" --")[0].split()[0], "--" + line.rpartition(" --")[2].split()[0]
            with self.subTest(line):
                self.refused(f"{flag}: no effect with {mode}; only with", *line.split())

    def test_what_a_run_has_settled_is_refused_beside_it(self) -> None:
        self.refused("--limit: no effect with --run", "--export-batch", "f", "--run", "R", "--limit", "1")
        self.assertEqual("a", options_of("--export-batch", "f", "--run", "R", "--arms", "a").arms)

    def test_flags_of_a_judge_of_ones_own_are_refused_for_the_others(self) -> None:
        for words in (("--key-env", "K"), ("--price", "1,1,1"), ("--omit", "seed"), ("--output-mode", "text")):
            self.refused(f"{words[0]}: only with --arms custom", "--generate", "--arms", "pareto", *words)
        self.assertEqual("K", options_of("--generate", *CUSTOM, "--key-env", "K").key_env)
        options = options_of("--import-replies", "f", "--arm-label", "x", "--output-mode", "text")
        self.assertEqual("text", options.output_mode)

    def test_a_label_goes_with_a_judge_that_has_no_name_yet(self) -> None:
        self.refused("--arm-label goes with", "--generate", "--arms", "pareto", "--arm-label", "x")
        self.refused("--import-replies FILE needs --arm-label", "--import-replies", "f")
        self.assertEqual("x", options_of("--generate", *CUSTOM, "--arm-label", "x").arm_label)

    def test_the_test_split_is_meant_unless_another_is_named(self) -> None:
        self.assertEqual("test", options_of("--plan").split)
        self.assertEqual("dev", options_of("--plan", "--split", "dev").split)

    def test_help_names_every_metric_of_a_gate(self) -> None:
        text = " ".join(room("run_eval").build_parser().format_help().split())
        for name in (*room("summary").metric_names({}), *room("gates").ALIASES):
            if name != "AC1" and not name.endswith("_both"):
                self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
