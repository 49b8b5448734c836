"""Markdown read into a tree of plain values, so that a page can show it without ever taking text for markup.

Covers what answers of language models use: headings, paragraphs, nested lists, block quotes, fenced and indented code,
tables, rules, and within a line bold, italic, code and links (shown as their text and address, never as something to
click). Everything else, HTML included, stays the text it is. No character is lost but the marks themselves, which the
raw view shows. Pure; time grows linearly with the text.
"""

from __future__ import annotations

import re
from typing import Any

# === Constants ===

Block = dict[str, Any]
Span = list[str]  # [style, text]; style holds the letters b (bold), i (italic), c (code), or is empty

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
BULLET = re.compile(r"([ \t]*)([-*+•])[ \t]+(?=\S)")
NUMBER = re.compile(r"([ \t]*)(\d{1,9})[.)][ \t]+(?=\S)")
QUOTE = re.compile(r" {0,3}> ?")
TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
# A code span, a link, or a run of emphasis marks; the text between is plain. Bounded, so that no text takes long.
INLINE = re.compile(
    r"(?P<code>(?P<ticks>`{1,4})(?!`)(?P<body>[^\n]{1,2000}?)(?<!`)(?P=ticks)(?!`))"
    r"|(?P<link>\[(?P<label>[^\[\]\n]{1,300})\]\((?P<url>[^()\s]{1,500})\))"
    r"|(?P<mark>\*\*\*|___|\*\*|__|\*|_)"
)
MAX_DEPTH = 8  # of lists and quotes inside each other; deeper text is shown as a paragraph


# === Within a line ===


def spans(text: str) -> list[Span]:
    """A line's or paragraph's text as styled pieces, in order."""
    pieces = tokens(text)
    pair_marks(pieces)
    found: list[Span] = []
    on = {"b": False, "i": False}
    for piece in pieces:
        if piece["opens"] or piece["closes"]:
            for letter in piece["letters"]:
                on[letter] = piece["opens"]
            continue
        style = "".join(letter for letter in "bi" if on[letter]) + piece["style"]
        if found and found[-1][0] == style and style != "c":
            found[-1][1] += piece["text"]
        else:
            found.append([style, piece["text"]])
    return found


def tokens(text: str) -> list[dict[str, Any]]:
    """Plain text, code, links and emphasis marks of a text, in order; the texts joined give back what is shown."""
    found, end = [], 0

    def add(shown: str, style: str = "", letters: str = "", before: str = "", after: str = "") -> None:
        if shown:
            found.append(
                {"text": shown, "style": style, "letters": letters, "before": before, "after": after}
                | {"opens": False, "closes": False}
            )

    for match in INLINE.finditer(text):
        add(text[end : match.start()])
        if match["code"]:
            body = match["body"]
            add(body[1:-1] if body.startswith(" ") and body.endswith(" ") and body.strip() else body, "c")
        elif match["link"]:
            add(match["label"] if match["label"] == match["url"] else f"{match['label']} ({match['url']})")
        else:
            letters = {1: "i", 2: "b", 3: "bi"}[len(match["mark"])]
            add(
                match["mark"], "", letters, text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
            )
        end = match.end()
    add(text[end:])
    return found


def pair_marks(pieces: list[dict[str, Any]]) -> None:
    """Mark the emphasis marks that open and close each other; a mark without a partner stays text."""
    waiting: dict[str, dict[str, Any]] = {}
    for piece in pieces:
        mark = piece["text"] if piece["letters"] else ""
        if not mark:
            continue
        inside_word = mark[0] == "_" and piece["before"].isalnum() and piece["after"].isalnum()
        can_close = bool(piece["before"].strip()) and not inside_word
        can_open = bool(piece["after"].strip()) and not inside_word
        if mark in waiting and can_close:
            waiting.pop(mark)["opens"] = True
            piece["closes"] = True
        elif can_open and not (mark[0] == "_" and piece["before"].isalnum()):
            waiting[mark] = piece


# === Blocks ===


def blocks(text: str, depth: int = 0) -> list[Block]:
    """The blocks of a text, top to bottom.

    kind 'heading' (level 1 to 6, spans), 'text' (spans; line breaks inside are kept), 'code' (language, text),
    'list' (ordered, start, items: list of lists of blocks), 'quote' (blocks), 'table' (head, rows: lists of spans),
    'rule'.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found: list[Block] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if not line.strip():
            place += 1
            continue
        for read in READERS:
            block, after = read(lines, place, depth)
            if block is not None:
                found.append(block)
                place = after
                break
    return found


def read_fence(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    """Code between fences; a fence that is never closed runs to the end, as a cut-off answer's does."""
    match = FENCE.match(lines[place])
    if not match:
        return None, place
    indent = len(lines[place]) - len(lines[place].lstrip(" "))
    mark, body, at = match[1], [], place + 1
    while at < len(lines):
        stripped = lines[at].strip()
        if stripped.startswith(mark) and not stripped.strip(mark[0]):
            break
        body.append(lines[at][indent:] if not lines[at][:indent].strip() else lines[at])
        at += 1
    return {"kind": "code", "language": match[2].strip()[:40], "text": "\n".join(body)}, at + 1


def read_heading(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    match = HEADING.match(lines[place])
    if not match:
        return None, place
    return {"kind": "heading", "level": len(match[1]), "spans": spans(match[2])}, place + 1


def read_rule(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    return ({"kind": "rule"}, place + 1) if RULE.match(lines[place]) else (None, place)


def read_quote(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    """Lines that start with '>', read as a text of their own."""
    if depth >= MAX_DEPTH or not QUOTE.match(lines[place]):
        return None, place
    at = place
    while at < len(lines) and QUOTE.match(lines[at]):
        at += 1
    inner = "\n".join(QUOTE.sub("", line, count=1) for line in lines[place:at])
    return {"kind": "quote", "blocks": blocks(inner, depth + 1)}, at


def cells(line: str) -> list[list[Span]]:
    """The cells of one table row."""
    inner = line.strip()
    inner = inner[1:] if inner.startswith("|") else inner
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [spans(cell.replace("\\|", "|").strip()) for cell in re.split(r"(?<!\\)\|", inner)]


def read_table(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    """A row with bars, a line of dashes below it, and the rows up to the first line without a bar."""
    under = lines[place + 1] if place + 1 < len(lines) else ""
    if "|" not in lines[place] or "-" not in under or not TABLE_RULE.match(under):
        return None, place
    head = cells(lines[place])
    if len(head) != len(cells(under)):
        return None, place
    at = place + 2
    while at < len(lines) and "|" in lines[at]:
        at += 1
    return {"kind": "table", "head": head, "rows": [cells(line) for line in lines[place + 2 : at]]}, at


def width(indent: str) -> int:
    """Columns of leading blanks, a tab reaching the next multiple of four."""
    return len(indent.expandtabs(4))


def marker(line: str) -> tuple[int, str, int] | None:
    """(indent, kind 'bullet' or 'number', columns up to the text) of a line that starts a list item."""
    for pattern, kind in ((BULLET, "bullet"), (NUMBER, "number")):
        match = pattern.match(line)
        if match:
            return width(match[1]), kind, width(match[0])
    return None


def read_list(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    """A list: items of one kind at one indent, each with the deeper lines that belong to it."""
    first = marker(lines[place])
    if first is None or depth >= MAX_DEPTH or RULE.match(lines[place]):
        return None, place
    number = NUMBER.match(lines[place])
    items: list[list[str]] = []
    at = place
    while at < len(lines):
        line, found = lines[at], marker(lines[at])
        indent = width(line[: len(line) - len(line.lstrip())])
        if found and found[0] <= first[0] + 1 and not RULE.match(line):
            if found[1] != first[1] or found[0] < first[0]:
                break
            items.append([line.expandtabs(4)[found[2] :]])
        elif not line.strip():
            after = next((later for later in range(at, len(lines)) if lines[later].strip()), at)
            if not (marker(lines[after]) or lines[after][:1] in (" ", "\t")) or after == at:
                break
            items[-1] += [""] * (after - at)
            at = after
            continue
        elif indent > first[0] or (lines[at - 1].strip() and not starts_block(line)):
            items[-1].append(line.expandtabs(4)[min(indent, first[2]) :])
        else:
            break
        at += 1
    inner = [blocks("\n".join(item), depth + 1) for item in items]
    return {"kind": "list", "ordered": number is not None, "start": int(number[2]) if number else 1, "items": inner}, at


def starts_block(line: str) -> bool:
    """Whether a line begins something that ends a paragraph."""
    return bool(FENCE.match(line) or HEADING.match(line) or RULE.match(line) or QUOTE.match(line) or marker(line))


def read_indented(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    """Code set apart by four blanks or a tab."""
    if not re.match(r"(?: {4}|\t)", lines[place]):
        return None, place
    at = place
    while at < len(lines) and (re.match(r"(?: {4}|\t)", lines[at]) or not lines[at].strip()):
        at += 1
    body = "\n".join(line.expandtabs(4)[4:] for line in lines[place:at]).rstrip("\n")
    return {"kind": "code", "language": "", "text": body}, at


def read_text(lines: list[str], place: int, depth: int) -> tuple[Block | None, int]:
    """A paragraph: up to a blank line or the start of another block. Line breaks are kept as they are."""
    at = place + 1
    while at < len(lines) and lines[at].strip() and not starts_block(lines[at]) and not is_table(lines, at):
        at += 1
    return {"kind": "text", "spans": spans("\n".join(line.strip() for line in lines[place:at]))}, at


def is_table(lines: list[str], place: int) -> bool:
    return read_table(lines, place, 0)[0] is not None


READERS = (read_fence, read_heading, read_rule, read_table, read_quote, read_list, read_indented, read_text)
