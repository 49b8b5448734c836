"""What reaches a terminal: words from files are shown, never drawn."""

from __future__ import annotations

import contextlib
import io
import json
import unittest

from rooms import room

messages, tables = room("messages"), room("tables")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class PlainTest(unittest.TestCase):
    def test_controls_and_reordering_marks_are_written_out_and_line_feeds_kept(self) -> None:
        self.assertEqual("a<U+001B>[31m\nb\t<U+202E>c<U+009B>", messages.plain("a\x1b[31m\nb\t\u202ec\x9b"))

    def test_letters_of_every_script_stay_as_they_are(self) -> None:
        text = "é ß 北京 עברית … – 🙂\u200d"
        self.assertEqual(text, messages.plain(text))

    def test_messages_and_results_go_through_it(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()) as out:
            messages.Voice("x").warn(["item \x1b]0;title\x07"])
            messages.show("name \x1b[2J\n")
        self.assertNotIn("\x1b", err.getvalue() + out.getvalue())
        self.assertEqual("name <U+001B>[2J\n", out.getvalue())

    def test_a_form_for_programs_keeps_its_data_and_draws_nothing_on_a_terminal(self) -> None:
        text, value = "x\x1b[2J\u202e\x7f", '{"a": "\u202e\x9b\x7f é"}'
        for terminal in (False, True):
            out = Terminal() if terminal else io.StringIO()
            with contextlib.redirect_stdout(out):
                messages.show_form(value, "json")
                self.assertNotRegex(out.getvalue(), "[\x7f-\x9f\u202e]")
                self.assertEqual(json.loads(value), json.loads(out.getvalue()))
                out.truncate(out.seek(0))
                messages.show_form(text, "csv")
                self.assertEqual(messages.plain(text) if terminal else text, out.getvalue())
                out.truncate(out.seek(0))
                messages.show_form(text, "markdown")
                self.assertEqual("x<U+001B>[2J<U+202E><U+007F>", out.getvalue())

    def test_a_markdown_cell_holds_no_markup(self) -> None:
        lines = tables.markdown(("judge",), [("<img src=x onerror=alert(1)> a|b\nc",)])
        self.assertEqual("| &lt;img src=x onerror=alert(1)&gt; a\\|b c |", lines[-1])


if __name__ == "__main__":
    unittest.main()
