"""Labelling in a terminal: one item at a time, its whole text with paging, one key per answer.

On a terminal single keys are read as they are pressed; from a pipe, or on a terminal that cannot move its cursor, a
line is one command and the text is printed as it is. What is shown is made harmless first: control characters of an
answer are written out, so that no text can move the cursor, hide itself or retitle the window. The drawing is pure
(`screen`); keys and writing come in as arguments. No network, no files but through the session.
"""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import labels

# === Constants ===

# The steps of the scale in few words, the same steps as a judge is told.
SCALE = (
    (1, "wrong, beside the task"),
    (2, "mostly wrong"),
    (3, "partly right"),
    (4, "right, small slip"),
    (5, "all right"),
)
PAIR_KEYS = {"a": "A", "1": "A", "b": "B", "2": "B", "=": "equal", "e": "equal", "0": "equal"}
PAIR_WORDS = ("a A is better", "b B is better", "= equally good")
KEY_WORDS = ("s skip", "p back", "n next", "c comment", "space/u page", "? help", "q quit")
LINE_WORDS = ("s skip", "p back", "n next", "c TEXT comment", "? help", "q quit")
LINE_PROMPT = "type one of these, then Enter (one a line) > "
SCORE_KEYS = {str(score): score for score in labels.SCORES}
SIDE_WORDS = {"A": "A (first) is better", "B": "B (second) is better", "equal": "equally good"}
MIN_WIDTH, MAX_WIDTH = 20, 110  # columns of text; longer lines are hard to read
PAGE_OVERLAP = 2  # lines of the last page that stay in view
ESCAPES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[5~": "pageup",
    "[6~": "pagedown",
    "[H": "home",
    "[F": "end",
    "[1~": "home",
    "[4~": "end",
}
NAMED = {"\r": "enter", "\n": "enter", " ": "space", "\x7f": "backspace", "\x08": "backspace", "\x04": "q"}
ESCAPE_WAIT_S = 0.05  # how long the rest of an arrow key may take; a lone Escape is answered after it
# Marks that reorder or hide text on screen: shown by their code point instead.
HIDDEN = {0x00AD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


class Style(NamedTuple):
    """How headings and dim lines are set off; both empty where colour is not wanted."""

    bold: str
    dim: str
    plain: str


COLOURED, UNCOLOURED = Style("\x1b[1m", "\x1b[2m", "\x1b[0m"), Style("", "", "")


# === Text ===


def harmless(text: str) -> str:
    """Text whose control, reordering and hidden characters are written out; line feeds and tabs are kept."""
    text = text.replace("\r\n", "\n").expandtabs(4)
    return "".join(char if char == "\n" or is_plain(char) else written_out(char) for char in text)


def is_plain(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") and ord(char) not in HIDDEN


def written_out(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def cell_width(char: str) -> int:
    """Columns of one character on a terminal."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def text_width(text: str) -> int:
    return sum(map(cell_width, text))


def wrap(line: str, width: int) -> list[str]:
    """One line broken at blanks to at most `width` columns, its indent repeated; a word too long is broken anywhere."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    indent = indent if len(indent) < width // 2 else ""
    found: list[str] = []
    current, columns, last_blank = "", 0, -1
    for char in line:
        size = cell_width(char)
        if columns + size > width:
            cut = last_blank if last_blank >= len(indent) else len(current)
            found.append(current[:cut].rstrip(" "))
            current = indent + current[cut:].lstrip(" ")
            columns, last_blank = text_width(current), -1
            if char == " " and not current.strip(" "):
                continue
        current += char
        columns += size
        if char == " " and current.strip(" "):
            last_blank = len(current)
    return [*found, current.rstrip(" ")]


def wrapped(text: str, width: int) -> list[str]:
    return [part for line in harmless(text).split("\n") for part in wrap(line, width)]


# === Screen ===


def body_lines(session: labels.Session, place: int, width: int, style: Style) -> list[str]:
    """Everything the person reads about one item, wrapped."""
    task = session.tasks[place]
    parts = [(title, text) for title, text in task.panels if text.strip()]
    names = ("Answer",) if task.kind == "score" else ("Answer A (first)", "Answer B (second)")
    parts += [(name, text if text.strip() else "(empty answer)") for name, text in zip(names, session.answers(place))]
    lines: list[str] = []
    for title, text in parts:
        rule = "─" * max(3, width - len(title) - 4)
        lines += [f"{style.bold}── {title} {rule}{style.plain}", *wrapped(text, width), ""]
    return lines


def head_line(session: labels.Session, place: int, width: int) -> str:
    """Where in the work this is; never the judge's verdict, and no model's name."""
    task = session.tasks[place]
    counts = session.counts()
    done = counts["labelled"] + counts["skipped"]
    text = f"Item {place + 1} of {len(session.tasks)} · {done} done · {harmless(task.title)}"
    if task.category:
        text += f" · {harmless(task.category)}"
    return cut(text.replace("\n", " "), width)


def cut(text: str, width: int) -> str:
    """The start of a line that fits the width; only for head and foot, never for what is judged."""
    columns, kept = 0, ""
    for char in text:
        columns += cell_width(char)
        if columns > width:
            return kept[:-1] + "…"
        kept += char
    return kept


def choice_word(kind: str, choice: int | str | None) -> str:
    if choice is None:
        return "skipped"
    return SIDE_WORDS[str(choice)] if kind == "pair" else f"{choice} ({dict(SCALE)[int(choice)]})"


def foot_lines(
    session: labels.Session, place: int, width: int, more: str, comment: str, note: str, keys: Sequence[str] = KEY_WORDS
) -> list[str]:
    """The keys, what stands for this item, and the latest message."""
    task = session.tasks[place]
    given = session.label(place)
    answers = [f"{score} {word}" for score, word in SCALE] if task.kind == "score" else PAIR_WORDS
    lines = [*in_lines(answers, width), *in_lines(keys, width)]
    status = [more] if more else []
    if given is not None:
        status.append(f"given: {choice_word(task.kind, session.choice(place))}")
    if comment or (given is not None and given.comment):
        status.append(f"comment: {harmless(comment or (given.comment if given else ''))}")
    lines.append(" · ".join([*status, note] if note else status))
    return [cut(line.replace("\n", " "), width) for line in lines]


def in_lines(parts: Sequence[str], width: int) -> list[str]:
    """Short parts side by side, in as many lines as the width asks for."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}   {part}" if lines[-1] else part
        if text_width(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


HELP = """Label what you see; no verdict or label that the file holds is shown before you are done.
Every label is on disk before the next item appears, so you may stop at any time and go on later with the same command.

1 to 5            the score of an answer
a, b, =           the better of two answers, or equally good (sides are shuffled)
s                 skip: no label for this item; it is not asked again, but you can come back to it
p, left           back to the item before; a new answer replaces the old one
n, right          on to the next item, without changing anything
c                 a comment on this item
space, down       next page      u, up   previous page
q, Ctrl-D         stop here and see the result so far
Ctrl-C            stop without the result

Any key goes on."""


# === Terminal ===


class Terminal(Protocol):
    """What the labelling needs of a terminal."""

    paged: bool
    style: Style

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        ...

    def key(self) -> str:
        """The next key or command: a character, a name such as 'left', 'comment …', or 'q' at the end of input."""
        ...

    def ask(self, prompt: str) -> str | None:
        """A line of text; None when it was given up."""
        ...

    def write(self, text: str) -> None: ...


class LineTerminal:
    """A line is a command: for pipes, plain terminals and screen readers. Nothing is cleared or paged."""

    paged = False
    style = UNCOLOURED

    def __init__(self, source: Any, target: Any) -> None:
        self.source, self.target = source, target

    def size(self) -> tuple[int, int]:
        import shutil

        return shutil.get_terminal_size((80, 24)).columns, 24

    def key(self) -> str:
        while True:
            line = self.source.readline()
            if not line:
                return "q"
            words = line.strip()
            if words:
                command, _, rest = words.partition(" ")
                return f"comment {rest.strip()}" if command == "c" and rest.strip() else command

    def ask(self, prompt: str) -> str | None:
        self.write(prompt)
        line = self.source.readline()
        return line.rstrip("\n") if line else None

    def write(self, text: str) -> None:
        self.target.write(text)
        self.target.flush()


class KeyTerminal:
    """Single keys on a real terminal, which is put back as it was at the end, whatever happens."""

    paged = True

    def __init__(self, descriptor: int, target: Any) -> None:
        self.descriptor, self.target = descriptor, target
        self.style = UNCOLOURED if os.environ.get("NO_COLOR") else COLOURED
        self.pending = b""

    def __enter__(self) -> KeyTerminal:
        import termios
        import tty

        self.saved = termios.tcgetattr(self.descriptor)
        tty.setcbreak(self.descriptor)
        self.write("\x1b[?1049h\x1b[?25l")
        return self

    def __exit__(self, *_: object) -> None:
        import termios

        self.write("\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self.saved)

    def size(self) -> tuple[int, int]:
        try:
            found = os.get_terminal_size(self.descriptor)
        except OSError:
            return 80, 24
        return (found.columns or 80), (found.lines or 24)

    def read(self, wait_s: float | None = None) -> bytes:
        """The next byte; b'' at the end of input or when nothing comes within wait_s."""
        import select

        if not self.pending:
            if wait_s is not None and not select.select([self.descriptor], [], [], wait_s)[0]:
                return b""
            try:
                self.pending = os.read(self.descriptor, 1024)
            except OSError:  # the terminal was closed
                return b""
        byte, self.pending = self.pending[:1], self.pending[1:]
        return byte

    def char(self) -> str:
        """The next character or escape sequence as text; '' at the end of input."""
        byte = self.read()
        if byte == b"\x1b":
            return "\x1b" + self.sequence()
        while byte and byte[0] >= 0xC0 and len(byte) < 4:
            try:
                return byte.decode("utf-8")
            except UnicodeDecodeError:
                more = self.read(ESCAPE_WAIT_S)
                if not more:
                    break
                byte += more
        return byte.decode("utf-8", "replace")

    def sequence(self) -> str:
        """What follows an Escape: '' for the key alone."""
        found = ""
        while len(found) < 8:
            byte = self.read(ESCAPE_WAIT_S).decode("latin-1")
            found += byte
            if not byte or (byte not in "[O" and (byte.isalpha() or byte == "~")):
                break
        return found

    def key(self) -> str:
        char = self.char()
        if not char:
            return "q"
        if char.startswith("\x1b"):
            return ESCAPES.get(char[1:], "escape")
        return NAMED.get(char, char)

    def ask(self, prompt: str) -> str | None:
        """A line typed at the foot of the screen; Escape gives up, Ctrl-U empties it."""
        typed = ""
        self.write("\x1b[?25h")
        while True:
            shown = typed
            while text_width(prompt + shown) > self.size()[0] - 1:
                shown = shown[1:]
            self.write(f"\r\x1b[K{prompt}{harmless(shown)}")
            char = self.char()
            if char in ("", "\x1b", "\x04") or NAMED.get(char) == "enter":
                self.write("\x1b[?25l")
                return typed if NAMED.get(char) == "enter" else None
            if NAMED.get(char) == "backspace":
                typed = typed[:-1]
            elif char == "\x15":
                typed = ""
            elif char.isprintable():
                typed += char

    def write(self, text: str) -> None:
        self.target.write(text)
        self.target.flush()


def can_page() -> bool:
    """Whether standard input and stderr are a terminal whose cursor can be moved and whose keys can be read."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        import termios  # noqa: F401
    except ImportError:  # on Windows lines are read instead
        return False
    return True


# === Labelling ===


class Labelling:
    """The conversation: what is on screen, and what a key does."""

    def __init__(self, session: labels.Session, terminal: Terminal, now: Callable[[], float] = time.monotonic) -> None:
        """now: a clock in seconds for how long an answer took."""
        self.session, self.terminal, self.now = session, terminal, now
        self.place, self.top, self.comment, self.note = 0, 0, "", ""
        self.since = now()

    def go(self, place: int, note: str = "") -> None:
        self.place, self.top, self.comment, self.note = place, 0, "", note
        self.since = self.now()

    def draw(self) -> None:
        """Put the item on screen, from the line that is on top."""
        columns, rows = self.terminal.size()
        width = max(MIN_WIDTH, min(columns - 1, MAX_WIDTH))
        body = body_lines(self.session, self.place, width, self.terminal.style)
        head = head_line(self.session, self.place, width)
        if not self.terminal.paged:
            foot = foot_lines(self.session, self.place, width, "", self.comment, self.note, LINE_WORDS)
            self.terminal.write("\n".join(["", head, "", *body, *foot]) + f"\n{LINE_PROMPT}")
            return
        style = self.terminal.style
        n_foot = len(foot_lines(self.session, self.place, width, "", self.comment, self.note))
        self.room = max(1, rows - n_foot - 3)
        self.end = max(0, len(body) - self.room)
        self.top = max(0, min(self.top, self.end))
        below = len(body) - self.top - self.room
        more = f"▼ {below} more lines (space)" if below > 0 else ("▲ end of text (u)" if self.top else "")
        foot = foot_lines(self.session, self.place, width, more, self.comment, self.note)
        page = body[self.top : self.top + self.room]
        page += [""] * (self.room - len(page))
        lines = [f"{style.bold}{head}{style.plain}", "", *page, *(f"{style.dim}{line}{style.plain}" for line in foot)]
        self.terminal.write("\x1b[H\x1b[2J" + "\n".join(lines))

    def run(self) -> bool:
        """Label until nothing is open and the person is done; False when they stopped before that."""
        first = self.session.next_open()
        if first is None:
            return True
        self.go(first)
        while True:
            self.draw()
            key = self.terminal.key()
            if key in ("q", "Q", "\x11"):
                return False
            if self.press(key) and self.session.next_open() is None and self.finished():
                return True

    def finished(self) -> bool:
        """Ask whether the work is done; going back is still possible, as the judge was not shown yet."""
        counts = self.session.counts()
        clear = "\x1b[H\x1b[2J" if self.terminal.paged else "\n"
        self.terminal.write(
            f"{clear}All {len(self.session.tasks)} items are done: {counts['labelled']} labelled, "
            f"{counts['skipped']} skipped.\nEnter shows the result.   p goes back to the last item.\n"
        )
        while True:
            key = self.terminal.key()
            if key in ("enter", "space", "q", "Q", "y", "n", "done"):
                return True
            if key in ("p", "left", "backspace"):
                return False

    def press(self, key: str) -> bool:
        """Do what a key says; True when it was an answer or a skip."""
        low = key.lower()
        task = self.session.tasks[self.place]
        self.note = ""
        answers: dict[str, Any] = dict(PAIR_KEYS if task.kind == "pair" else SCORE_KEYS)
        if low in answers or low == "s":
            self.answer(answers.get(low))
            return True
        if low in ("p", "left", "backspace"):
            self.step(-1)
        elif low in ("n", "right"):
            self.step(1)
        elif low in ("space", "pagedown", "down", "enter", "u", "up", "pageup", "home", "end"):
            self.scroll(low)
        elif low == "c" or low.startswith("comment "):
            self.remark(key[8:] if low.startswith("comment ") else self.terminal.ask("comment: "))
        elif low == "?":
            self.help()
        else:
            what = "key" if self.terminal.paged else "line"
            self.note = f"{what} {harmless(key)!r} does nothing here; ? lists the keys"
        return False

    def answer(self, choice: int | str | None) -> None:
        """Keep an answer and go to the next open item; where nothing is open, stay."""
        given = self.session.label(self.place)
        comment = self.comment or (given.comment if given else "")
        self.session.give(self.place, choice, comment, self.now() - self.since)
        word = choice_word(self.session.tasks[self.place].kind, choice)
        following = self.session.next_open(self.place)
        self.go(self.place if following is None else following, f"kept: item {self.place + 1}, {word}")

    def step(self, way: int) -> None:
        target = self.place + way
        if 0 <= target < len(self.session.tasks):
            self.go(target)
        else:
            self.note = "this is the first item" if way < 0 else "this is the last item"

    def scroll(self, key: str) -> None:
        if not self.terminal.paged:
            return
        page = max(1, self.room - PAGE_OVERLAP)
        moves = {"space": page, "pagedown": page, "enter": 1, "down": 1, "u": -page, "pageup": -page, "up": -1}
        self.top = {"home": 0, "end": self.end}.get(key, self.top + moves.get(key, 0))

    def remark(self, text: str | None) -> None:
        """Keep a comment with the item's answer, or for the answer to come."""
        if text is None:
            return
        given = self.session.label(self.place)
        if given is None:
            self.comment, self.note = text.strip(), "the comment is kept with your answer"
        else:
            self.session.give(self.place, self.session.choice(self.place), text, given.seconds)
            self.note = "comment kept"

    def help(self) -> None:
        clear = "\x1b[H\x1b[2J" if self.terminal.paged else "\n"
        self.terminal.write(clear + HELP + "\n")
        if self.terminal.paged:
            self.terminal.key()


def run(session: labels.Session) -> bool:
    """Label in this process's terminal; True when every item has an answer or was skipped.

    Everything is written to stderr, so that stdout holds the result alone.
    """
    if not can_page():
        done = Labelling(session, LineTerminal(sys.stdin, sys.stderr)).run()
        print(file=sys.stderr)  # what follows does not stand behind the prompt
        return done
    with KeyTerminal(sys.stdin.fileno(), sys.stderr) as terminal:
        return Labelling(session, terminal).run()
