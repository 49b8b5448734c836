"""API keys: whether one can be used, and keeping it out of every text.

    keys.key_problem(key)                # None, or what is wrong with it, without showing it
    scrub = keys.Scrubber(key)
    scrub(text)                          # the text with the key taken out, in whatever form it was written
    keys.token_warnings(text)            # ["github"]: kinds of well-formed tokens in a text, never the tokens

Pure functions. Content that a judge wrote is left as it is but for the exact key in use.
"""

from __future__ import annotations

import json
import re
from typing import Any

# === Constants ===

REMOVED = "[API key removed]"
MIN_SECRET = 8  # characters; a shorter "key" ("none", "EMPTY") is a word for a local server, not a secret
MAX_ESCAPES = 16  # backslashes in front of one character that are still read as its escape
PART = 10  # characters of a key's start or end that already count as the key where an error text was cut off

# Well-formed tokens of the big providers: prefix, alphabet and length as issued. Words such as
# "sk-learn-pipeline-example" or a made-up "sk-example0123456789abcdef" do not have that form.
EDGE, END = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
TOKEN_FORMS = {
    "anthropic": EDGE + r"sk-ant-(?:api|admin|oat)[0-9]{2}-[A-Za-z0-9_-]{80,120}" + END,
    "aws": r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])",
    "github": EDGE + r"(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})" + END,
    "gitlab": EDGE + r"glpat-[A-Za-z0-9_-]{20,}" + END,
    "google": EDGE + r"AIza[A-Za-z0-9_-]{35}" + END,
    "groq": EDGE + r"gsk_[A-Za-z0-9]{52}" + END,
    "huggingface": EDGE + r"hf_[A-Za-z]{34}" + END,
    "openai": EDGE
    + r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,200}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})"
    + END,
    "openrouter": EDGE + r"sk-or-v1-[0-9a-f]{64}" + END,
    "private_key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----",
    "slack": EDGE + r"xox[abceoprs]-(?:[0-9]-)?[0-9]{8,}-[A-Za-z0-9-]{8,}" + END,
    "stripe": EDGE + r"[sr]k_live_[A-Za-z0-9]{20,}" + END,
    "xai": EDGE + r"xai-[A-Za-z0-9]{70,90}" + END,
}
TOKENS = {kind: re.compile(form) for kind, form in TOKEN_FORMS.items()}
# One of these must be there before any of the forms is tried: most texts hold none, and the search is quick.
TOKEN_HINTS = re.compile(r"sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|AIza|gsk_|hf_|PRIVATE KEY|xox|k_live_|xai-")


# === Whether a key can be used ===


def key_problem(key: str) -> str | None:
    """What keeps a key from being sent in a header, None when nothing does; the key itself is never in the text."""
    if not key.strip():
        return "the key is empty"
    if "\n" in key or "\r" in key:
        return "the key holds a line break; copy it again as one line"
    if key != key.strip():
        return "the key begins or ends with a blank"
    if any(ord(char) < 32 or ord(char) == 127 for char in key):
        return "the key holds a control character"
    if any(ord(char) > 255 for char in key):
        return "the key holds a character that no header can carry, such as a curly quote; copy it again as plain text"
    if any(char.isspace() for char in key):
        return "the key holds a blank; write the key alone, without a word such as Bearer"
    if key[0] in "\"'`" and key[-1] == key[0]:
        return "the key stands in quotes; leave them out"
    return None


# === Taking it out of texts ===


class Scrubber:
    """Callable: a text without the key. Every form is covered: plain, JSON-, URL- and HTML-escaped, base64, hex."""

    def __init__(self, key: str | None) -> None:
        self.key = key or ""
        self.whole: re.Pattern[str] | None = None
        self.in_bytes: list[bytes] = []
        if not self.key:
            return
        if len(self.key) < MIN_SECRET:
            self.whole = re.compile(rf"(?<![A-Za-z0-9_-]){re.escape(self.key)}(?![A-Za-z0-9_-])")
            return
        forms = sorted(written_forms(self.key), key=lambda form: (-len(form), form))
        self.whole = re.compile("|".join([escaped_form(self.key), *map(re.escape, forms)]), re.IGNORECASE)
        self.in_bytes = [form.encode("utf-8") for form in forms]

    @property
    def secret(self) -> bool:
        """Whether the key is long enough to be one; content is left alone otherwise."""
        return len(self.key) >= MIN_SECRET

    def __call__(self, text: str) -> str:
        """An error text or header without the key, and without a long enough piece of it."""
        if self.whole is None:
            return text
        text = self.whole.sub(REMOVED, text)
        if len(self.key) >= 2 * PART:
            text = without_part(text, self.key)
            text = without_part(text[::-1], self.key[::-1], REMOVED[::-1])[::-1]
        return text

    def value(self, value: Any) -> Any:
        """A parsed reply with the key taken out of every string; the same object when it holds none."""
        if not self.secret or self.whole is None:
            return value
        if isinstance(value, str):
            return self.whole.sub(REMOVED, value)
        if isinstance(value, dict):
            return {self.value(name): self.value(part) for name, part in value.items()}
        if isinstance(value, list):
            return self.parts([self.value(part) for part in value])
        return value

    def parts(self, parts: list[Any]) -> list[Any]:
        """Parts of a content, which are read as one text: when that text holds the key, it is left in the first."""
        texts = [part for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        joined = "".join(part["text"] for part in texts)
        if len(texts) < 2 or self.whole is None or not self.whole.search(joined):
            return parts
        for part in texts:
            part["text"] = ""
        texts[0]["text"] = self.whole.sub(REMOVED, joined)
        return parts

    def holds(self, value: Any) -> bool:
        """Whether a parsed value holds the key."""
        return bool(self.value(value) != value)

    def may_hold(self, body: bytes) -> bool:
        """Whether a body may hold the key: in one of its forms, behind JSON escapes, or spread over parts."""
        hidden = (b"\\u", b"\\/", b"\\\\", b'"text"')
        return self.secret and any(form in body for form in (*hidden, *self.in_bytes))


def escaped_form(key: str) -> str:
    """A pattern of the key as JSON text may spell it: any of its characters escaped, once or several times over."""
    escape = rf"\\(?:\\|u005c){{0,{MAX_ESCAPES}}}"
    return "".join(
        f"(?:{escape}u{ord(char):04x}|{'' if char.isalnum() else f'(?:{escape})?'}{re.escape(char)})" for char in key
    )


def written_forms(key: str) -> set[str]:
    """The ways in which a key may be written inside a text."""
    from urllib.parse import quote, quote_plus

    data = key.encode("utf-8")
    escaped = json.dumps(key)[1:-1]
    forms = {key, escaped, escaped.replace("/", "\\/"), "".join(f"\\u{ord(char):04x}" for char in key)}
    forms |= {quote(key, safe=""), quote_plus(key), quote(quote(key, safe=""), safe=""), data.hex()}
    markup = key
    for char, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        markup = markup.replace(char, name)
    forms.add(markup)
    for shift in range(3):
        forms |= base64_forms(data, shift)
    return {form for form in forms if len(form) >= MIN_SECRET}


def base64_forms(data: bytes, shift: int) -> set[str]:
    """What base64 makes of a key that starts `shift` bytes after a multiple of three, less the mixed ends."""
    import base64

    padded = base64.b64encode(b"\0" * shift + data).decode("ascii")
    first = -(-shift * 8 // 6)
    last = (shift + len(data)) * 8 // 6
    core = padded[first:last]
    return {core, core.replace("+", "-").replace("/", "_")}


def without_part(text: str, key: str, mark: str = REMOVED) -> str:
    """A text without runs that match the key's beginning for at least PART characters (an echo that was cut off)."""
    start = text.find(key[:PART])
    while start >= 0:
        end = start + PART
        while end < len(text) and end - start < len(key) and text[end] == key[end - start]:
            end += 1
        text = text[:start] + mark + text[end:]
        start = text.find(key[:PART], start + len(mark))
    return text


# === Tokens of others ===


def token_warnings(text: str) -> list[str]:
    """Kinds of well-formed provider tokens in a text, sorted; [] for none. The tokens are not in the answer."""
    if not TOKEN_HINTS.search(text):
        return []
    return sorted(kind for kind, form in TOKENS.items() if form.search(text))
