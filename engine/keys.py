"""API keys: whether one can be used, and keeping it out of every text.

    keys.key_problem(key)                # None, or what is wrong with it, without showing it
    scrub = keys.Scrubber(key)
    scrub(text)                          # the text with the key taken out, in whatever form it was written
    keys.token_warnings(text)            # ["github"]: kinds of well-formed tokens in a text, never the tokens

Pure functions. Content that a judge wrote is left as it is but for the exact key in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

# === Constants ===

REMOVED = "[API key removed]"
MAX_PLACEHOLDER = 24
PLACEHOLDER = re.compile(r"[a-z]+([-_ ][a-z]+)*|[A-Z]+", re.ASCII)
MIN_SECRET = 8  # characters; a shorter "key" ("none", "EMPTY") is a word for a local server, not a secret
MAX_ESCAPES = 16  # backslashes in front of one character that are still read as its escape
ESCAPED = (b"\\u", b"\\/", b"\\\\", b'"text"', b"%", b"&")  # in a body that may hold the key in another spelling
MARKUP_NAMES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos", "/": "sol", "+": "plus", "=": "equals"}
PART = 10  # characters of a key's start or end that count as the key, in an error text; of a short key half of it
CUT_PART = 6  # the fewest that do, and enough of them where a text ends or was cut off
CUT = re.compile(r"[ \"'`]{0,3}(?:\.\.|\u2026|\*|\u2022|\Z)")  # what stands there, read away from the key
BETWEEN_BYTES = r"(?:[\s:.,_|;'\"-]|\\[nrt]){0,6}(?:\\{0,16}x|0x)?"  # of a key in hex, written byte by byte
# One character, as JSON, Python, URL or HTML text may spell it; a backslash before a sign stands for nothing.
ESCAPE = re.compile(
    rf"\\(?:\\|u005c){{0,{MAX_ESCAPES}}}(?:u([0-9a-f]{{4}})|x([0-9a-f]{{2}})|(?=[^\w\s]))"
    rf"|%(?:25){{0,{MAX_ESCAPES}}}([0-9a-f]{{2}})|&(?:amp;){{0,4}}(?:#x0{{0,6}}([0-9a-f]{{1,6}})|#0{{0,6}}([0-9]{{1,7}})|"
    rf"({'|'.join(MARKUP_NAMES.values())}));?",
    re.IGNORECASE,
)
MARKUP_SIGNS = {name: sign for sign, name in MARKUP_NAMES.items()}

# A variable's name in capitals with a value behind it; a key of base64 has = signs at its end only.
ASSIGNED = re.compile(r"[A-Z_][A-Z0-9_]*=+[^=]")

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
    if key[0] in "{[" and key[-1] in "}]":
        return "the key is an object or a list; give the key in it alone"
    if ASSIGNED.match(key):
        return "the key begins with a variable's name and =; give what stands behind it"
    return None


def is_placeholder(key: str) -> bool:
    """Whether a key is words of letters alone, such as lm-studio or sk-no-key-required: what servers without keys get.

    Such words stand in ordinary texts; a key that a provider gives out holds digits, or is far longer.
    """
    return len(key) < MAX_PLACEHOLDER and PLACEHOLDER.fullmatch(key) is not None


# === Taking it out of texts ===


class Scrubber:
    """Callable: a text without the key, in whatever letter case: plain, JSON-, URL- or HTML-escaped, base64 or 32, hex.

    mark: what stands in its place afterwards.
    """

    def __init__(self, key: str | None, mark: str = REMOVED) -> None:
        self.key = key or ""
        self.mark = mark
        self.others: re.Pattern[str] | None = None
        self.in_bytes: list[bytes] = []
        if not self.key:
            return
        if not self.secret:
            self.others = re.compile(rf"(?<![A-Za-z0-9_-]){re.escape(self.key)}(?![A-Za-z0-9_-])")
            return
        self.spelled = re.compile(escaped_form(self.key), re.IGNORECASE)
        self.start = re.compile(first_form(self.key), re.IGNORECASE)
        forms = sorted(written_forms(self.key), key=lambda form: (-len(form), form))
        self.others = re.compile("|".join([*map(re.escape, forms), byte_form(self.key)]), re.IGNORECASE)
        self.in_bytes = [form.lower().encode("utf-8") for form in (self.key, *forms)]
        self.byte_by_byte = re.compile(byte_form(self.key).encode("ascii"))
        self.pieces = Pieces(self.key, [self.key, *forms, *spaced_forms(self.key)])

    @property
    def secret(self) -> bool:
        """Whether the key is long enough to be one; content is left alone otherwise."""
        return len(self.key) >= MIN_SECRET and not is_placeholder(self.key)

    def __call__(self, text: str) -> str:
        """An error text or header without the key, and without a long enough piece of its start or end."""
        text = self.without(text)
        return self.pieces.taken_out(text, self.mark) if self.secret else text

    def without(self, text: str) -> str:
        """The text without the whole key, in any spelling."""
        if self.others is None:
            return text
        kept, end = [], 0
        for start, stop in self.spelled_places(text):
            kept += [text[end:start], self.mark]
            end = stop
        return self.others.sub(lambda _: self.mark, "".join([*kept, text[end:]]))

    def spelled_places(self, text: str) -> Iterator[tuple[int, int]]:
        """(start, end) of the key wherever it stands plain or with escapes."""
        end = 0
        for place in self.start.finditer(text) if self.secret else ():
            begin = max(place.start(), place.end() - MAX_ESCAPES - 1)  # of a long run of backslashes only the last
            found = self.spelled.match(text, begin) if begin >= end else None
            if found:
                yield found.span()
                end = found.end()

    def value(self, value: Any) -> Any:
        """A parsed reply with the key taken out of every string; the same object when it holds none."""
        if not self.secret:
            return value
        if isinstance(value, str):
            return self.without(value)
        if isinstance(value, dict):
            return {self.value(name): self.value(part) for name, part in value.items()}
        if isinstance(value, list):
            return self.parts([self.value(part) for part in value])
        return value

    def parts(self, parts: list[Any]) -> list[Any]:
        """Parts of a content, which are read as one text: when that text holds the key, it is left in the first."""
        texts = [part for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        joined = "".join(part["text"] for part in texts)
        clean = self.without(joined)
        if len(texts) < 2 or clean == joined:
            return parts
        for part in texts:
            part["text"] = ""
        texts[0]["text"] = clean
        return parts

    def holds(self, value: Any) -> bool:
        """Whether a parsed value holds the key."""
        return bool(self.value(value) != value)

    def line_in(self, data: bytes) -> int | None:
        """The number of a line of a file that holds the key in any spelling, the first as a rule; None for none."""
        if not self.secret:
            return None
        lower = data.lower()
        found = [at for at in map(lower.find, self.in_bytes) if at >= 0]
        found += [place.start() for place in self.byte_by_byte.finditer(lower)]
        if found:
            return data.count(b"\n", 0, min(found)) + 1
        text = data.decode("utf-8", "replace")
        start = next(self.spelled_places(text), (None, None))[0]
        return None if start is None else text.count("\n", 0, start) + 1

    def may_hold(self, body: bytes) -> bool:
        """Whether a body may hold the key: in one of its forms, behind escapes, or spread over parts."""
        if not self.secret:
            return False
        body = body.lower()
        return any(form in body for form in (*ESCAPED, *self.in_bytes)) or bool(self.byte_by_byte.search(body))


def escaped_form(key: str) -> str:
    """A pattern of the key as JSON, URL or HTML text may spell it: any character escaped, once or several times."""
    escape = rf"\\(?:\\|u005c){{0,{MAX_ESCAPES}}}"
    spelled = []
    for char in key:
        code = ord(char)
        percent = "".join(rf"%(?:25){{0,{MAX_ESCAPES}}}{byte:02x}" for byte in char.encode("utf-8"))
        ways = [
            f"{escape}u{code:04x}",
            *([f"{escape}x{code:02x}"] if code < 256 else []),
            percent,
            rf"&(?:amp;){{0,4}}#(?:0{{0,6}}{code}|x0{{0,6}}{code:x});?",
        ]
        if char in MARKUP_NAMES:
            ways.append(rf"&(?:amp;){{0,4}}{MARKUP_NAMES[char]};")
        ways.append(re.escape(char) if char.isalnum() else f"(?:{escape})?{re.escape(char)}")
        spelled.append(f"(?:{'|'.join(ways)})")
    return "".join(spelled)


def first_form(key: str) -> str:
    """A pattern of where the key may begin: at the start of an escape, or with its first two characters."""
    return rf"\\+|[%&]|{re.escape(key[0])}(?=[{re.escape(key[1])}\\%&])"


def written_forms(key: str) -> set[str]:
    """The ways in which a key may be written inside a text, beside those that `escaped_form` covers."""
    data = key.encode("utf-8")
    forms = {data.hex(), key[::-1]}
    for shift in range(3):
        forms |= base64_forms(data, shift)
    for shift in range(5):
        forms.add(base32_form(data, shift))
    return {form for form in forms if len(form) >= MIN_SECRET}


def byte_form(key: str) -> str:
    """A pattern of the key in hex, with or without signs between its bytes: 73:6b, 73 6b, \\x73\\x6b, 0x73, 0x6b."""
    return BETWEEN_BYTES.join(f"{byte:02x}" for byte in key.encode("utf-8"))


def spaced_forms(key: str) -> list[str]:
    """The key in hex as most programs write it byte by byte."""
    return [key.encode("utf-8").hex(sign) for sign in ": -"]


def base64_forms(data: bytes, shift: int) -> set[str]:
    """What base64 makes of a key that starts `shift` bytes after a multiple of three, less the mixed ends."""
    import base64

    padded = base64.b64encode(b"\0" * shift + data).decode("ascii")
    first = -(-shift * 8 // 6)
    last = (shift + len(data)) * 8 // 6
    core = padded[first:last]
    return {core, core.replace("+", "-").replace("/", "_")}


def base32_form(data: bytes, shift: int) -> str:
    """What base32 makes of a key that starts `shift` bytes after a multiple of five, less the mixed ends."""
    import base64

    padded = base64.b32encode(b"\0" * shift + data).decode("ascii")
    return padded[-(-shift * 8 // 5) : (shift + len(data)) * 8 // 5]


# === Pieces of it ===


class Form(NamedTuple):
    """One way to write the key, in lower case; how much of its start counts, in characters: anywhere, and at a cut."""

    text: str
    anywhere: int
    at_cut: int


class Pieces:
    """Starts and ends of a key in all its forms, long enough to give it away: what an echo that was cut off leaves."""

    def __init__(self, key: str, forms: Sequence[str]) -> None:
        anywhere = min(PART, max(CUT_PART, (len(key) + 1) // 2))
        sizes = [[-(-count * len(form) // len(key)) for count in (anywhere, CUT_PART)] for form in forms]
        self.starts = [Form(lowered(form), *size) for form, size in zip(forms, sizes)]
        self.ends = [Form(form.text[::-1], form.anywhere, form.at_cut) for form in self.starts]
        self.heads = [
            re.compile("|".join(sorted({re.escape(form.text[: form.at_cut]) for form in each})))
            for each in (self.starts, self.ends)
        ]

    def taken_out(self, text: str, mark: str) -> str:
        """The text without such pieces, in plain letters or escaped."""
        text = cut_out(text, list(range(len(text) + 1)), self.runs(text), mark)
        meant, places = unescaped(text)
        return text if meant == text else cut_out(text, places, self.runs(meant), mark)

    def runs(self, text: str) -> list[tuple[int, int]]:
        """(start, end) of every piece in a text, sorted; they may overlap."""
        size, text = len(text), lowered(text)
        found = list(runs_of(text, self.starts, self.heads[0]))
        backwards = runs_of(text[::-1], self.ends, self.heads[1])
        return sorted([*found, *((size - end, size - start) for start, end in backwards)])


def lowered(text: str) -> str:
    """The text in lower case, with as many characters."""
    return text.replace("\u0130", "i").lower()


def runs_of(text: str, forms: Sequence[Form], head: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """(start, end) of what agrees with the start of a form for long enough."""
    place = head.search(text)
    while place:
        start = place.start()
        lengths = [(agreement(text, start, form.text), form) for form in forms]
        long_enough = [
            length
            for length, form in lengths
            if length >= form.anywhere or (length >= form.at_cut and CUT.match(text, start + length))
        ]
        end = start + max(long_enough, default=1)
        if long_enough:
            yield start, end
        place = head.search(text, end)


def agreement(text: str, start: int, form: str) -> int:
    """How many characters from `start` on are those of the form."""
    length, most = 0, min(len(form), len(text) - start)
    while length < most and text[start + length] == form[length]:
        length += 1
    return length


def cut_out(text: str, places: Sequence[int], runs: Iterable[tuple[int, int]], mark: str) -> str:
    """The text with a mark for each of some sorted runs. places: where each character that a run counts begins."""
    kept, end = [], 0
    for start, stop in runs:
        if places[start] >= end:
            kept += [text[end : places[start]], mark]
        end = max(end, places[stop])
    return "".join([*kept, text[end:]])


def unescaped(text: str) -> tuple[str, list[int]]:
    """(the characters that a text with escapes means, where each of them and the end is in it)."""
    meant, places, end = [], [], 0
    for found in ESCAPE.finditer(text):
        char = meaning(found)
        meant += [text[end : found.start()], char]
        places += [*range(end, found.start()), *[found.start()] * len(char)]
        end = found.end()
    return "".join([*meant, text[end:]]), [*places, *range(end, len(text) + 1)]


def meaning(escape: re.Match[str]) -> str:
    """The character that an escape stands for; '' for a backslash before a sign."""
    unicode, byte, percent, markup_hex, markup, name = escape.groups()
    if name:
        return MARKUP_SIGNS[name.lower()]
    code = int(markup) if markup else int(unicode or byte or percent or markup_hex or "0", 16)
    return chr(min(code, 0x10FFFF)) if escape.group().strip("\\") else ""


# === Tokens of others ===


def token_warnings(text: str) -> list[str]:
    """Kinds of well-formed provider tokens in a text, sorted; [] for none. The tokens are not in the answer."""
    if not TOKEN_HINTS.search(text):
        return []
    return sorted(kind for kind, form in TOKENS.items() if form.search(text))
