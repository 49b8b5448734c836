"""Markdown for the labelling page: what is read, what stays text, and that no text is lost or slow."""

from __future__ import annotations

import unittest
from typing import Any

from rooms import room

markdown = room("label_markdown")


def texts(value: Any) -> str:
    """All text of a tree, in order."""
    if isinstance(value, dict):
        return "".join(texts(part) for key, part in value.items() if key not in ("kind", "language"))
    if isinstance(value, list):
        if len(value) == 2 and all(isinstance(part, str) for part in value):
            return str(value[1])
        return "".join(map(texts, value))
    return value if isinstance(value, str) else ""


class Spans(unittest.TestCase):
    cases: tuple[tuple[str, str, list[list[str]]], ...] = (
        ("plain", "a b", [["", "a b"]]),
        ("bold", "**a** b", [["b", "a"], ["", " b"]]),
        ("italic", "*a* _b_", [["i", "a"], ["", " "], ["i", "b"]]),
        ("both", "***a***", [["bi", "a"]]),
        ("nested", "**a *b* c**", [["b", "a "], ["bi", "b"], ["b", " c"]]),
        ("code", "`x_y_z` t", [["c", "x_y_z"], ["", " t"]]),
        ("code with ticks", "``a`b``", [["c", "a`b"]]),
        ("marks in code", "`**a**`", [["c", "**a**"]]),
        ("names with underscores", "snake_case_name", [["", "snake_case_name"]]),
        ("product", "2 * 3 * 4", [["", "2 * 3 * 4"]]),
        ("lone mark", "a ** b", [["", "a ** b"]]),
        ("unclosed", "**a", [["", "**a"]]),
        ("link", "[t](http://x)", [["", "t (http://x)"]]),
        ("html", "<b>x</b>", [["", "<b>x</b>"]]),
    )

    def test_each_mark_is_read_and_everything_else_is_text(self) -> None:
        for name, text, expected in self.cases:
            with self.subTest(name):
                self.assertEqual(markdown.spans(text), expected)


class Blocks(unittest.TestCase):
    cases: tuple[tuple[str, str, list[str]], ...] = (
        ("paragraph keeps its lines", "a\nb\n\nc", ["text", "text"]),
        ("heading", "# a #\nb", ["heading", "text"]),
        ("fence", "```py\n# x\n```\nafter", ["code", "text"]),
        ("open fence", "```\nx", ["code"]),
        ("fence in fence", "````\n```\n````", ["code"]),
        ("list", "- a\n- b", ["list"]),
        ("numbers after bullets", "- a\n\n1. b", ["list", "list"]),
        ("rule", "a\n\n---\nb", ["text", "rule", "text"]),
        ("star rule", "* * *", ["rule"]),
        ("quote", "> a\n> b\nc", ["quote", "text"]),
        ("table", "|a|b|\n|-|-|\n|1|2|\nc", ["table", "text"]),
        ("no table", "a | b\nc", ["text"]),
        ("indented code", "a\n\n    x = 1\n\n    y", ["text", "code"]),
        ("hash tag", "#tag", ["text"]),
        ("blank", " \n\t\n", []),
    )

    def test_each_block_is_recognised(self) -> None:
        for name, text, expected in self.cases:
            with self.subTest(name):
                self.assertEqual([block["kind"] for block in markdown.blocks(text)], expected)

    def test_lists_nest_and_hold_code(self) -> None:
        found = markdown.blocks("1. a\n   - b\n   - c\n\n   ```\n   x\n     y\n   ```\n2. d")
        self.assertEqual(len(found), 1)
        first, second = found[0]["items"]
        self.assertEqual([block["kind"] for block in first], ["text", "list", "code"])
        self.assertEqual(first[2]["text"], "x\n  y")
        self.assertEqual(texts(second), "d")

    def test_a_list_that_starts_at_seven_says_so(self) -> None:
        self.assertEqual(markdown.blocks("7. a")[0]["start"], 7)

    def test_code_keeps_every_blank(self) -> None:
        self.assertEqual(markdown.blocks("```\n  a\n\n\tb  \n```")[0]["text"], "  a\n\n\tb  ")

    def test_no_word_is_lost_in_awkward_texts(self) -> None:
        for text in (
            "> > > deep",
            "- - - x",
            "1) a\n1) b",
            "|a|\n|-|\n|b|c|",
            "* a\n\n\n  b\n c",
            "``` a ` b",
            "[x](y z)",
        ):
            with self.subTest(text):
                shown = texts(markdown.blocks(text))
                for char in text:
                    if char.isalnum() and char != "1":
                        self.assertIn(char, shown)

    def test_depth_is_bounded(self) -> None:
        text = "\n".join("  " * depth + "- x" for depth in range(200)) + "\n" + ">" * 500 + " y"
        self.assertIn("y", texts(markdown.blocks(text)))

    def test_hostile_texts_of_fifty_thousand_characters_are_read(self) -> None:
        # Each would take minutes if time grew with the square or worse; here the whole test takes a second.
        for piece in (
            "*",
            "`",
            "[",
            "> ",
            "- ",
            "|-",
            "_a",
            "**a",
            "`a",
            "[a](",
            "1. ",
            "\n    ",
            "|a\n",
            "\n|\n-",
            "- a\n\n",
        ):
            for before, after in (("", ""), ("- a\n", "\n  b")):
                with self.subTest(piece, before=before):
                    text = before + (piece * 50_000)[:50_000] + after
                    self.assertIsInstance(markdown.blocks(text), list)
        self.assertIn("b", texts(markdown.blocks("- a\n" + "\n" * 50_000 + "  b")))


if __name__ == "__main__":
    unittest.main()
