"""Logs of other tools with something broken in them: an import ends in a result or in a message, never otherwise."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import tempfile
import unittest
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rooms import ROOT, room

importers = room("importers")
evidence = room("evidence")
LOGS = ROOT / "tests" / "import_logs"
SOURCES = {
    "inspect.json": "inspect",
    "inspect.eval": "inspect",
    "promptfoo.json": "promptfoo",
    "deepeval_test_run.json": "deepeval",
    "samples_*.jsonl": "lm-eval",
    "openai_evals.jsonl": "openai-evals",
}
ROUNDS = 25  # of each log and way to break it; the mends were found with 1,500
DEEP: Any = json.loads("[" * 199 + "]" * 199)
ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**300, "", "text", "\ud800", "\x1b[31m", "attachment://none"),
    *([], {}, [None], [[]], [{}], {"a": None}, [1, "a"], {"role": "user"}, [{"role": []}], [{"text": {}}], DEEP),
]

Place = tuple[Any, Any]  # a list or an object, and the index or key of one value in it


def places(value: Any) -> Iterator[Place]:
    """Where the values of a JSON value stand."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(parts):
        yield value, key
        yield from places(part)


def broken(value: Any, rng: random.Random) -> Any:
    """A copy in which one to three values are odd ones, are gone, or stand where another stood."""
    made = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        found = list(places(made))
        if not found:
            return rng.choice(ODD)
        holder, key = rng.choice(found)
        way = rng.randrange(4)
        if way == 0:
            del holder[key]
        elif way == 1:
            other, name = rng.choice(found)
            holder[key] = copy.deepcopy(other[name])
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD))
    return made


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes of which some are others, a stretch is gone, or the end is."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not made:
            break
        at = rng.randrange(len(made))
        way = rng.randrange(6)
        if way == 0:
            del made[at : at + rng.randint(1, 40)]
        elif way == 1 and at:
            del made[at:]
        else:
            made[at] = rng.randrange(256)
    return bytes(made)


def damaged_entry(data: bytes, rng: random.Random) -> bytes:
    """An archive with one byte of what describes an entry, or of the list of entries, changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as log:
        starts = [entry.header_offset for entry in log.infolist()]
    listed = data.find(b"PK\x01\x02")
    made = bytearray(data)
    at = rng.choice([rng.choice(starts) + rng.randrange(200), rng.randrange(listed, len(data))])
    made[at] = rng.choice([0, 1, 2, 8, 9, 14, 93, 127, 128, 255])
    return bytes(made)


def deflated(path: Path) -> bytes:
    """A log in JSON as an archive of the same, its entries deflated."""
    log = json.loads(path.read_text(encoding="utf-8"))
    samples, made = log.pop("samples"), io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps(log))
        for sample in samples:
            file.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return made.getvalue()


class Broken(unittest.TestCase):
    """Whatever is wrong with a log, `import` raises nothing but the errors that become a message."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def log(self, pattern: str) -> Path:
        (path,) = LOGS.glob(pattern)
        return path

    def read(self, name: str, data: bytes, source: str, model: str | None = None) -> str:
        """What is said of a log with these bytes; its name stands in every error."""
        path = self.folder / name
        path.write_bytes(data)
        options = SimpleNamespace(source=source, export=None, file=str(path), out=str(self.folder / "out.json"))
        options.__dict__.update(field=[], rubric="", model=model, task_set=None, overwrite=True)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = importers.main_import(options)
        self.assertIn(code, (0, 3))
        if code == 3:
            self.assertIn(f"{self.folder}", said.getvalue())
        return said.getvalue()

    def test_bytes_are_damaged(self) -> None:
        for pattern, source in SOURCES.items():
            path, rng = self.log(pattern), random.Random(f"bytes:{pattern}")
            for round_ in range(ROUNDS):
                with self.subTest(pattern, round=round_):
                    self.read(path.name, damaged(path.read_bytes(), rng), source)

    def test_entries_of_an_archive_are_misdescribed(self) -> None:
        packed = self.log("inspect.eval").read_bytes()
        for form, data in (("zstandard", packed), ("deflate", deflated(self.log("inspect.json")))):
            rng = random.Random(f"entries:{form}")
            for round_ in range(3 * ROUNDS):
                with self.subTest(form, round=round_):
                    self.read("log.eval", damaged_entry(data, rng), "inspect")

    def test_values_are_of_another_kind(self) -> None:
        for pattern, source in SOURCES.items():
            path, rng = self.log(pattern), random.Random(f"values:{pattern}")
            if path.suffix == ".eval":
                continue
            lines = path.suffix == ".jsonl"
            data = path.read_text(encoding="utf-8")
            value = [json.loads(line) for line in data.split("\n") if line] if lines else json.loads(data)
            for round_ in range(2 * ROUNDS):
                made = broken(value, rng)
                many = lines and isinstance(made, list)
                text = "".join(f"{json.dumps(one)}\n" for one in made) if many else json.dumps(made)
                model = "second" if source == "promptfoo" else None
                with self.subTest(pattern, round=round_):
                    self.read(path.name, text.encode("utf-8"), source, model)

    def test_a_table_of_lines_holds_anything(self) -> None:
        rng = random.Random("lines")
        row = {"id": "1", "prompt": "p", "answer": "a", "model": "m", "checks": {"passed": True}, "x": {"y": [1]}}
        rows = [{**row, "id": str(number)} for number in range(3)]
        for round_ in range(2 * ROUNDS):
            text = "".join(f"{json.dumps(row)}\n" for row in broken(rows, rng))
            with self.subTest(round=round_):
                self.read("t.jsonl", text.encode("utf-8"), "jsonl")


if __name__ == "__main__":
    unittest.main()
