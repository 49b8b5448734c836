"""Tables of text with a header line: comma, semicolon or tab between the columns, UTF-8. Pure but for the one read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import NamedTuple

import results

# === Constants ===

MARKS = ",;\t"
ENDINGS = (".csv", ".tsv")


class Row(NamedTuple):
    """One row of a table: the line of the file it ends in, and column -> text."""

    line: int
    cells: dict[str, str]


# === Read ===


def is_sheet(path: str) -> bool:
    """Whether a file's name says that it is such a table."""
    return path.lower().endswith(ENDINGS)


def read_sheet(path: str) -> list[Row]:
    """All rows of a table, empty lines left out. Raises: FileProblem naming the file and the line."""
    text = decoded(results.read_bytes(path), path)
    if "\0" in text:
        raise results.FileProblem(f"{path}:{text.count(chr(10), 0, text.index(chr(0))) + 1}: holds U+0000")
    header = text.split("\n", 1)[0]
    csv.field_size_limit(1 << 27)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(MARKS, key=header.count), strict=True)
    try:
        names = next(reader, [])
        check_header(path, names)
        rows = list(rows_of(path, names, reader))
    except csv.Error as error:
        raise results.FileProblem(f"{path}:{reader.line_num}: not a csv file: {error}") from None
    if not rows:
        raise results.FileProblem(f"{path}: holds a header line and no rows")
    return rows


def check_header(path: str, names: list[str]) -> None:
    """Raises: FileProblem for a column that stands twice: one of the two would be lost."""
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise results.FileProblem(f"{path}:1: column {twice!r} stands twice")


def rows_of(path: str, names: list[str], reader: Iterator[list[str]]) -> Iterator[Row]:
    """The rows below a header. Raises: FileProblem for one with more or fewer columns."""
    for row in reader:
        line = getattr(reader, "line_num", 0)
        if row and len(row) != len(names):
            hint = "a text with the separator or a line break in it stands in double quotes"
            raise results.FileProblem(f"{path}:{line}: expected {len(names)} columns, got {len(row)}", hint)
        if row:
            yield Row(line, dict(zip(names, row)))


def decoded(data: bytes, path: str) -> str:
    """UTF-8 text without its byte order mark. Raises: FileProblem."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise results.FileProblem(f"{path}: not valid UTF-8 ({place})", "save the file as UTF-8") from None
