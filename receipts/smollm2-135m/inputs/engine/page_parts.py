"""The parts every page is made of: escaped tags, tables, embedded data, the frame with its content policy.

A text becomes part of a page only through `tag` or `embedded`, and both escape it; a picture or a paragraph that is
already made is a `Markup`. Nothing a stranger wrote can leave the box it is shown in. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import page_script
import page_style

# === Constants ===

VOID = ("meta", "link", "br", "hr", "input", "rect", "circle", "line", "path")  # tags without an end tag
# Characters that HTML cannot hold or that would turn the reading direction of what follows.
UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
SPECIAL = re.compile("[&<>\"']")
DATA_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
DATA_SPECIAL = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


# === Tags ===


def shown(text: str) -> str:
    """The text with what cannot be shown replaced by U+FFFD, and a mark in place of each direction control."""
    return TURNING.sub("\u2426", UNSHOWABLE.sub("\ufffd", text))


def escape(value: object) -> str:
    """A text for HTML content or a quoted attribute."""
    return SPECIAL.sub(lambda found: ESCAPES[found.group()], shown(str(value)))


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other: Markup as it is, all else escaped, None left out."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts if part is not None))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """One element. `class_` and the like lose the underscore at the end, others become '-'; None leaves one out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{written}{'/' if name in VOID[5:] else ''}>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def table(head: Sequence[object], body: Iterable[Sequence[object]], caption: str | None = None) -> Markup:
    """A table whose first column names its rows, in a box of its own that scrolls where it is too wide."""
    rows = [tag("tr", tag("th", row[0], scope="row"), *[tag("td", cell) for cell in row[1:]]) for row in body]
    top = tag("thead", tag("tr", *[tag("th", cell, scope="col") for cell in head]))
    label = caption or str(head[0])
    return tag(
        "div",
        tag("table", tag("caption", caption) if caption else None, top, tag("tbody", *rows)),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=f"table: {label}",
    )


def folded(summary: str, *children: object, open_: bool = False) -> Markup:
    return tag("details", tag("summary", summary), *children, open_=open_)


def listed(lines: Iterable[object]) -> Markup:
    return tag("ul", *[tag("li", line) for line in lines])


# === Embedded data ===


def data_escape(found: re.Match[str]) -> str:
    char = found.group()
    return DATA_ESCAPES.get(char) or f"\\u{ord(char):04x}"


def embedded(name: str, value: Any) -> Markup:
    """A data block: JSON in which no character can end the script element; read by JSON.parse, never executed."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = DATA_SPECIAL.sub(data_escape, text)
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>\n')


# === Frame ===

GENERATOR = '<meta name="generator" content="report.py">'  # by which a page is known as ours before it is replaced


def policy_hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") + "'"


def content_policy() -> str:
    """Nothing is loaded, nothing runs but our own script, nothing is sent, no text becomes markup by script."""
    return (
        f"default-src 'none'; script-src {policy_hash(page_script.SCRIPT)}; style-src {policy_hash(page_style.STYLE)}; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def document(title: str, nav: Sequence[tuple[str, str]], main: Iterable[object], foot: object, data: Any = "") -> bytes:
    """A whole page. nav: (anchor, label); data: embedded blocks, after all that is seen without them."""
    policy = tag("meta", http_equiv="Content-Security-Policy", content=content_policy())
    head = joined(
        (
            tag("meta", charset="utf-8"),
            Markup(GENERATOR),
            policy,
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("link", rel="icon", href="data:,"),
            tag("title", title),
            Markup(f"<style>{page_style.STYLE}</style>"),
        )
    )
    links = [tag("a", label, href=f"#{anchor}") for anchor, label in nav]
    name = tag("span", "Judge report", class_="name")
    body = joined(
        (
            tag("a", "Skip to the result", href="#result", class_="skip"),
            tag("header", tag("nav", name, *links, aria_label="Sections", tabindex="0"), class_="bar"),
            tag("main", *main, id="result"),
            tag("footer", tag("p", foot), class_="foot"),
            Markup(data),
            Markup(f"<script>{page_script.SCRIPT}</script>"),
        )
    )
    page = f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'
    return page.encode("utf-8")
