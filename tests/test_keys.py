"""engine/keys.py: which keys can be sent, and that none is ever left in a text."""

from __future__ import annotations

import base64
import json
import time
import unittest
from urllib.parse import quote

from rooms import room

keys = room("keys")
KEY = "canary/Key+with=odd&signs<0123456789>"


class UsableKeys(unittest.TestCase):
    def test_ordinary_keys_are_usable(self) -> None:
        for key in ("sk-proj-abc123", "EMPTY", "a" * 400, "k\u00e9y-in-latin-1", "AB12CD34==", "ab=cd"):
            with self.subTest(key):
                self.assertIsNone(keys.key_problem(key))

    def test_keys_that_no_header_carries_are_named_without_being_shown(self) -> None:
        cases = {
            "": "empty",
            "  ": "empty",
            "sk-secret\nX-Evil: 1": "line break",
            "sk-secret\r": "line break",
            "\u201csk-secret\u201d": "curly quote",
            "sk-secret ": "blank",
            "Bearer sk-secret": "blank",
            "sk-sec\u00a0ret": "blank",
            "sk-sec\x00ret": "control",
            "'sk-secret'": "quotes",
            '{"KEY":"sk-secret"}': "object",
            '["sk-secret"]': "list",
            "OPENAI_API_KEY=sk-secret": "variable's name",
        }
        for key, word in cases.items():
            with self.subTest(repr(key)):
                problem = keys.key_problem(key)
                self.assertIn(word, problem)
                self.assertNotIn("secret", problem)


class Scrubbing(unittest.TestCase):
    def test_every_written_form_of_the_key_is_taken_out(self) -> None:
        scrub = keys.Scrubber(KEY)
        forms = {
            "plain": KEY,
            "lower case": KEY.lower(),
            "json": json.dumps({"k": KEY}),
            "json slashes": json.dumps(KEY).replace("/", "\\/"),
            "json codes": "".join(f"\\u{ord(char):04x}" for char in KEY),
            "url": quote(KEY, safe=""),
            "url in lower case": quote(KEY, safe="").lower(),
            "url twice": quote(quote(KEY, safe=""), safe=""),
            "url, every letter": "".join(f"%{ord(char):02x}" for char in KEY),
            "hex": KEY.encode().hex(),
            "hex in capitals": KEY.encode().hex().upper(),
            "html codes": "".join(f"&#{ord(char):03d};" for char in KEY),
            "html hex codes": "".join(f"&amp;#x{ord(char):X};" for char in KEY),
            "mixed": "".join(f"%{ord(char):02X}" if number % 3 else char for number, char in enumerate(KEY)),
            "html": KEY.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
            "hex with colons": KEY.encode().hex(":"),
            "hex with blanks, in capitals": KEY.encode().hex(" ").upper(),
            "hex over two lines": KEY.encode()[:16].hex(" ") + "\n" + KEY.encode()[16:].hex(" "),
            "bytes as Python has them": "".join(f"\\x{byte:02x}" for byte in KEY.encode()),
            "bytes as JSON of that has them": json.dumps("".join(f"\\x{byte:02X}" for byte in KEY.encode())),
            "bytes as C has them": ", ".join(f"0x{byte:02x}" for byte in KEY.encode()),
            "backwards": KEY[::-1],
        }
        for name, form in forms.items():
            with self.subTest(name):
                shown = scrub(f"Incorrect key: {form}.")
                self.assertLess(len(shown), 45)
                self.assertNotIn("0123456789", shown)
                self.assertNotIn("canary", shown.lower())
                self.assertIn(keys.REMOVED, shown)
                self.assertTrue(scrub.may_hold(form.encode()))

    def test_a_key_of_which_any_characters_are_escaped_is_taken_out_however_often_it_is_escaped(self) -> None:
        key = KEY + '"\\'
        scrub, codes = keys.Scrubber(key), [f"\\u{ord(char):04X}" for char in key]
        for chosen in (range(1), range(6, 7), range(0, len(key), 2), range(len(key))):
            text = "".join(codes[n] if n in chosen else json.dumps(char)[1:-1] for n, char in enumerate(key))
            for times in range(3):
                with self.subTest(text):
                    self.assertEqual(scrub.value({"arguments": f'{{"reason": "x{text}y"}}'}),
                                     {"arguments": f'{{"reason": "x{keys.REMOVED}y"}}'})  # fmt: skip
                    self.assertTrue(scrub.may_hold(json.dumps(text).encode()))
                text = json.dumps(text)[1:-1] if times else text.replace("\\", "\\u005c")

    def test_a_long_run_of_backslashes_costs_no_time(self) -> None:
        text = "\\" * 200_000
        began = time.monotonic()
        self.assertEqual(text, keys.Scrubber(KEY).value(text))
        self.assertLess(time.monotonic() - began, 5)

    def test_a_key_spread_over_the_parts_of_a_content_is_taken_out(self) -> None:
        scrub = keys.Scrubber(KEY)
        parts = [{"type": "text", "text": f"a {KEY[:9]}"}, {"type": "text", "text": f"{KEY[9:]} b"}]
        self.assertTrue(scrub.may_hold(json.dumps(parts).encode()))
        found = scrub.value({"content": parts})["content"]
        self.assertEqual([f"a {keys.REMOVED} b", ""], [part["text"] for part in found])

    def test_base64_is_found_whatever_stands_before_the_key(self) -> None:
        scrub = keys.Scrubber(KEY)
        for before in ("", "a", "ab", "Bearer ", "user:", ":", '{"key": "'):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                text = encode((before + KEY + "|rest").encode()).decode()
                with self.subTest(before, encode=encode.__name__):
                    self.assertIn(keys.REMOVED, scrub(text))

    def test_base32_is_found_whatever_stands_before_the_key(self) -> None:
        scrub = keys.Scrubber(KEY)
        for before in ("", "a", "ab", "abc", "abcd", "Bearer "):
            text = base64.b32encode((before + KEY + "|rest").encode()).decode()
            for form in (text, text.lower()):
                with self.subTest(form):
                    self.assertIn(keys.REMOVED, scrub(form))
                    self.assertTrue(scrub.may_hold(form.encode()))

    def test_half_of_a_short_key_is_taken_out_wherever_it_stands(self) -> None:
        key = "Zq8Rt5Yw2Lk9Mn3P"
        scrub, data = keys.Scrubber(key), key.encode()
        for form in (key, base64.b64encode(data).decode(), base64.b32encode(data).decode(), data.hex(), data.hex(":"),
                     quote(key, safe=""), "".join(f"%{byte:02x}" for byte in data),
                     "".join(f"\\u{byte:04x}" for byte in data), "".join(f"&#{byte};" for byte in data)):  # fmt: skip
            for piece in (form[: len(form) * 3 // 4], form[-len(form) * 3 // 4 :]):
                for text in (f"bad key {piece}... given", f"bad key {piece} given", piece, f"...{piece}"):
                    with self.subTest(text):
                        shown = scrub(text)
                        self.assertIn(keys.REMOVED, shown)
                        self.assertLess(len(shown), len(text) - len(piece) // 2 + len(keys.REMOVED))
        for text in ("bad key Zq8Rt...", "Mn3P", "Zq8Rt5Yx"):
            self.assertEqual(text, scrub(text))

    def test_a_few_characters_of_a_long_key_are_taken_out_where_the_text_ends_or_was_cut_off(self) -> None:
        scrub = keys.Scrubber(KEY)
        for text in ("got canary/K", "got 'canary/K...'", "got canary/K\u2026", "canary/K****", "...56789> is wrong"):
            with self.subTest(text):
                self.assertIn(keys.REMOVED, scrub(text))
        self.assertEqual("the canary/K is no key", scrub("the canary/K is no key"))

    def test_thousands_of_pieces_cost_no_time(self) -> None:
        scrub = keys.Scrubber("ab" * 100)
        for text in ("ababab " * 3000, "%61" * 7000, "\\" * 20_000, "abababab\u0130" * 2000):
            began = time.monotonic()
            scrub(text)
            self.assertLess(time.monotonic() - began, 5)

    def test_the_mark_can_be_another(self) -> None:
        self.assertEqual("a [login removed] b", keys.Scrubber(KEY, "[login removed]")(f"a {KEY} b"))

    def test_an_echo_that_was_cut_off_is_taken_out_too(self) -> None:
        scrub = keys.Scrubber(KEY)
        self.assertEqual(scrub("got " + KEY[:17] + "... instead"), f"got {keys.REMOVED}... instead")
        self.assertEqual(scrub("ends in ..." + KEY[-12:]), f"ends in ...{keys.REMOVED}")

    def test_other_texts_stay_as_they_are(self) -> None:
        scrub = keys.Scrubber(KEY)
        for text in ("", "risk-adjusted", "sk-learn-pipeline-example", "a canary sings", "key"):
            self.assertEqual(scrub(text), text)
        self.assertEqual(keys.Scrubber(None)("anything"), "anything")

    def test_a_word_in_place_of_a_key_is_taken_out_of_errors_as_a_word_only(self) -> None:
        scrub = keys.Scrubber("none")
        self.assertEqual(scrub("key none is wrong, nonetheless"), f"key {keys.REMOVED} is wrong, nonetheless")
        self.assertEqual(scrub.value({"content": "none of them"}), {"content": "none of them"})

    def test_values_keep_their_shape(self) -> None:
        scrub = keys.Scrubber(KEY)
        before = {"id": f"x{KEY}", "n": [1, None, True, {"a": KEY}], KEY: 2.5}
        after = scrub.value(before)
        self.assertEqual(
            after, {"id": f"x{keys.REMOVED}", "n": [1, None, True, {"a": keys.REMOVED}], keys.REMOVED: 2.5}
        )

    def test_a_body_is_searched_for_the_key_and_for_escapes_that_may_hide_it(self) -> None:
        scrub = keys.Scrubber(KEY)
        self.assertFalse(scrub.may_hold(b'{"choice": "A"}'))
        for body in (KEY.encode(), b'"' + KEY.replace("/", "\\/").encode(), b"\\u0063anary"):
            self.assertTrue(scrub.may_hold(body))


class TokensOfOthers(unittest.TestCase):
    GOOD = {
        "anthropic": "sk-ant-api03-" + "Ab1_-" * 19,
        "aws": "AKIA" + "ABCDEFGH234567JK",
        "github": "ghp_" + "a1B2" * 9,
        "gitlab": "glpat-" + "a1B2c3D4e5F6g7H8i9J0",
        "google": "AIza" + "Ab1_-" * 7,
        "groq": "gsk_" + "a1B2" * 13,
        "huggingface": "hf_" + "abCDefGHijKLmnOPqrSTuvWXyzABcdEFgh",
        "openai": "sk-proj-" + "Ab1_-" * 20,
        "openrouter": "sk-or-v1-" + "0af1" * 16,
        "private_key": "-----BEGIN RSA PRIVATE KEY-----",
        "slack": "xoxb-" + "123456789012-abcdefGHIJ",
        "stripe": "sk_live_" + "a1B2" * 6,
        "xai": "xai-" + "a1B2" * 20,
    }

    def test_well_formed_tokens_are_named_by_kind_and_never_repeated(self) -> None:
        self.assertEqual(sorted(self.GOOD), sorted(keys.TOKENS))
        for kind, token in self.GOOD.items():
            with self.subTest(kind):
                self.assertEqual(keys.token_warnings(f"export X='{token}' # mine"), [kind])
        self.assertEqual(keys.token_warnings(" ".join(self.GOOD.values())), sorted(self.GOOD))

    def test_d15_words_that_only_look_like_keys_are_no_tokens(self) -> None:
        for text in (
            "sk-learn-pipeline-example",
            "risk-adjusted return; export OPENAI_API_KEY=sk-example0123456789abcdef",
            "AKIAEXAMPLE",
            "ghp_short",
            "hf_hub_download and hf_transfer",
            "-----BEGIN PUBLIC KEY-----",
            "task-" + "a1B2" * 20,
            "xoxo-hugs-and-kisses-to-everyone-here!",
        ):
            with self.subTest(text):
                self.assertEqual(keys.token_warnings(text), [])


class Placeholders(unittest.TestCase):
    """What servers without keys are given stands in ordinary texts, and is no secret."""

    def test_words_are_left_where_they_stand(self) -> None:
        for word in ("lm-studio", "not-needed", "sk-no-key-required", "ollama-key", "PLACEHOLDER"):
            scrub = keys.Scrubber(word)
            self.assertFalse(scrub.secret, word)
            self.assertIsNone(scrub.line_in(f"is {word} any good?".encode()))
            self.assertEqual("no such model in LM Studio", scrub("no such model in LM Studio"))

    def test_what_a_provider_gives_out_is_a_secret(self) -> None:
        for key in ("sk-proj-a1b2c3d4", "AKIA1234", "x" * 40, "abcDEFghiJKL"):
            self.assertTrue(keys.Scrubber(key).secret, key)

    def test_python_and_c_escapes_are_a_spelling_too(self) -> None:
        key = "sk-proj-a1b2c3d4"
        spelled = "".join(f"\\x{ord(char):02x}" if char == "-" else char for char in key)
        scrub = keys.Scrubber(key)
        self.assertNotIn("a1b2c3d4", scrub.without(f"it said {spelled}!"))
        listed = ", ".join(f"'0x{ord(char):02x}'" for char in key)
        self.assertNotIn("0x6b", scrub.without(f"[{listed}]"))


if __name__ == "__main__":
    unittest.main()
