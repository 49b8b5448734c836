"""engine/evidence.py: files keep their bytes, a damaged one is named, a journal loses nothing, one process a run."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from rooms import ROOT, room

evidence = room("evidence")


class Bytes(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_rows_have_fixed_bytes_and_any_gzip_reads_them(self) -> None:
        rows = [{"n": n, "text": "é\u2028\x00"} for n in range(5000)]
        path = self.folder / "rows.jsonl.gz"
        digest = evidence.write_rows(str(path), rows)
        data = gzip.decompress(path.read_bytes())
        self.assertEqual(hashlib.sha256(data).hexdigest(), digest)
        self.assertEqual(rows, list(evidence.read_rows(str(path))))
        self.assertEqual(evidence.GZIP_HEADER, path.read_bytes()[:10])

    def test_nan_is_never_written(self) -> None:
        with self.assertRaises(ValueError):
            evidence.row_bytes({"x": float("nan")})

    def test_a_damaged_gzip_is_one_error_that_names_the_file(self) -> None:
        path = self.folder / "rows.jsonl.gz"
        evidence.write_rows(str(path), [{"n": n} for n in range(1000)])
        sound = path.read_bytes()
        for data in (sound[:-4], sound[:100], sound[:50] + b"\0" * 50 + sound[100:], b"no gzip", sound + b"x" * 20):
            path.write_bytes(data)
            with self.assertRaises(evidence.EvidenceError) as caught:
                list(evidence.read_rows(str(path)))
            self.assertIn("rows.jsonl.gz", str(caught.exception))

    def test_a_file_of_several_gzip_members_with_zeros_between_is_read_as_one(self) -> None:
        path, lines = self.folder / "rows.jsonl.gz", [b'{"n": %d}\n' % n for n in range(3000)]
        members = [gzip.compress(b"".join(lines[n : n + 512])) for n in range(0, 3000, 512)]
        for between in (b"", b"\0", b"\0" * 20_000):
            path.write_bytes(between.join([*members, gzip.compress(b""), b""]))
            self.assertEqual(lines, [line for _, line in evidence.read_lines(str(path))])
        path.write_bytes(b"")
        self.assertEqual([], list(evidence.read_lines(str(path))))

    def test_thousands_of_empty_gzip_members_are_refused_at_once(self) -> None:
        path, row = self.folder / "rows.jsonl.gz", gzip.compress(b'{"n": 1}\n')
        for trap in (gzip.compress(b"") * 300_000, row * 100_000):
            path.write_bytes(row + trap)
            began = time.monotonic()
            with self.assertRaisesRegex(
                evidence.EvidenceError, "rows.jsonl.gz: .*more than 10000 parts of the gzip file"
            ):
                list(evidence.read_rows(str(path)))
            self.assertLess(time.monotonic() - began, 3)

    def test_as_many_members_as_scored_rows_are_written_in_are_read(self) -> None:
        path, member = self.folder / "scored.jsonl.gz", evidence.gzip_member(b'{"n": "00000000"}\n' * 512)
        path.write_bytes(member * 12_000)
        self.assertEqual(512 * 12_000, sum(1 for _ in evidence.read_lines(str(path))))

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs named pipes")
    def test_a_pipe_in_place_of_rows_is_refused_and_not_waited_for(self) -> None:
        for name in ("rows.jsonl", "rows.jsonl.gz"):
            path = str(self.folder / name)
            os.mkfifo(path)
            with self.assertRaisesRegex(evidence.EvidenceError, f"{name}: cannot be read: expected a regular file"):
                list(evidence.read_lines(path))

    def test_a_write_that_fails_names_the_file_that_was_meant(self) -> None:
        (self.folder / "taken").mkdir()
        for path in (self.folder / "taken", self.folder / "missing" / "file"):
            with self.assertRaises(OSError) as caught:
                evidence.write_atomic(str(path), b"new")
            self.assertEqual(str(path), caught.exception.filename)
            self.assertNotIn(".tmp.", str(caught.exception))

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self) -> None:
        path = self.folder / "kept"
        evidence.write_atomic(str(path), b"old")

        def pieces() -> Any:
            yield b"new"
            raise RuntimeError

        with self.assertRaises(RuntimeError):
            evidence.write_atomic(str(path), pieces())
        self.assertEqual((b"old", ["kept"]), (path.read_bytes(), os.listdir(self.folder)))

    def test_only_our_own_leftovers_of_a_killed_write_are_removed(self) -> None:
        kept = ["manifest.json", "notes.tmp.1", "raw.jsonl.gz", "raw.jsonl.gz.tmp.x"]
        for name in [*kept, "manifest.json.tmp.41", "raw.jsonl.gz.tmp.7"]:
            (self.folder / name).touch()
        evidence.drop_leftovers(str(self.folder))
        self.assertEqual(kept, sorted(os.listdir(self.folder)))

    def test_new_runs_never_share_a_folder(self) -> None:
        folders = {evidence.new_run(str(self.folder), "slug", 1_800_000_000.0) for _ in range(5)}
        self.assertEqual(5, len(folders))
        for folder in folders:
            self.assertRegex(os.path.basename(folder), r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{6}Z$")

    def test_a_time_is_written_in_utc_with_microseconds(self) -> None:
        self.assertEqual("1970-01-01T00:00:00.000000Z", evidence.utc_stamp(0))
        self.assertEqual("2027-01-15T08:00:01.000000Z", evidence.utc_stamp(1_800_000_000.9999999))

    def test_what_is_no_run_is_said_to_be_none(self) -> None:
        (self.folder / "empty").mkdir()
        (self.folder / "other").mkdir()
        (self.folder / "other" / "manifest.json").write_text('{"format": "x"}', encoding="utf-8")
        for name, words in (("none", "no such run"), ("empty", "is missing"), ("other", "'format': expected")):
            with self.assertRaisesRegex(evidence.EvidenceError, words):
                evidence.read_manifest(str(self.folder / name))


class Journal(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = os.path.join(temporary.name, "journal.jsonl")

    def test_a_line_is_on_disk_when_append_returns(self) -> None:
        journal = evidence.Journal(self.path)
        for number in range(3):
            offset = journal.append(b"line %d\n" % number)
            self.assertEqual((7 * number, 7 * number + 7), (offset, os.path.getsize(self.path)))
        journal.close()

    def test_lines_of_many_threads_stand_whole_at_the_offsets_that_were_returned(self) -> None:
        journal, offsets = evidence.Journal(self.path), {}

        def work(name: int) -> None:
            for number in range(50):
                text = f"{name}-{number}-{'x' * (number % 7)}\n".encode()
                offsets[text] = journal.append(text)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        journal.close()
        data = Path(self.path).read_bytes()
        self.assertEqual(400, data.count(b"\n"))
        for text, offset in offsets.items():
            self.assertEqual(text, data[offset : offset + len(text)])

    def test_an_unfinished_last_line_is_dropped_and_no_other(self) -> None:
        for tail in (b'{"half', b'{"a": "' + b"x" * 200_000, b"", b"\0" * 4096, b'{"half\0\0\0', b'{"a": "}{'):
            Path(self.path).write_bytes(b'{"one": 1}\n{"two": 2}\n' + tail)
            self.assertEqual(len(tail), evidence.drop_torn_tail(self.path))
            self.assertEqual(b'{"one": 1}\n{"two": 2}\n', Path(self.path).read_bytes())
        Path(self.path).write_bytes(b'{"torn from the start')
        evidence.drop_torn_tail(self.path)
        self.assertEqual(b"", Path(self.path).read_bytes())

    def test_a_last_line_that_lacks_its_line_feed_only_is_kept(self) -> None:
        for tail, kept in ((b'{"a": 1}', True), (b'{"a": {"b": 1}', False)):
            for left in (b"", b"\0" * 512):
                Path(self.path).write_bytes(b'{"one": 1}\n' + tail + left)
                self.assertEqual(0 if kept else len(tail + left), evidence.drop_torn_tail(self.path))
                self.assertEqual(b'{"one": 1}\n' + (tail + b"\n") * kept, Path(self.path).read_bytes())

    def test_an_end_that_no_killed_process_leaves_is_refused_and_nothing_is_cut(self) -> None:
        entries = b'{"a": 1}\n{"b": "two"}\n{"c": 3}\n'
        for name, data in {
            "carriage returns": entries.replace(b"\n", b"\r"),
            "lines joined": entries.replace(b"\n", b""),
            "lines joined, the last one torn": entries.replace(b"\n", b"") + b'{"d',
            "packed in place": gzip.compress(entries),
            "UTF-16": entries.decode().encode("utf-16"),
            "another text": b"x" * 100,
            "a number": b"12",
            "a whole entry in another encoding": b'{"a": "\xff"}',
            "a hole in the middle": b'{"a": \0\0 1',
        }.items():
            with self.subTest(name):
                Path(self.path).write_bytes(data)
                with self.assertRaisesRegex(evidence.EvidenceError, "nothing is cut"):
                    evidence.drop_torn_tail(self.path)
                self.assertEqual(data, Path(self.path).read_bytes())

    @unittest.skipUnless(hasattr(os, "O_NOFOLLOW"), "links are followed on this system")
    def test_a_link_in_the_place_of_a_file_of_the_run_is_never_written_through(self) -> None:
        other = Path(self.path).with_name("somebody's own")
        other.write_bytes(b"precious\nand torn")
        os.symlink(other, self.path)
        for attempt in (evidence.drop_torn_tail, evidence.Journal):
            with (
                self.subTest(attempt.__name__),
                self.assertRaisesRegex((OSError, evidence.EvidenceError), "got a link"),
            ):
                attempt(self.path)
        lock = Path(self.path).with_name("lock")
        os.symlink(other, lock)
        with self.assertRaisesRegex(evidence.EvidenceError, "got a link"), evidence.Lock(str(lock.parent)):
            self.fail("a lock was taken through a link")
        self.assertEqual(b"precious\nand torn", other.read_bytes())

    @unittest.skipUnless(hasattr(os, "mkfifo"), "no pipes on this system")
    def test_a_pipe_in_the_place_of_a_file_of_the_run_is_not_waited_for(self) -> None:
        os.mkfifo(self.path)
        for attempt in (evidence.drop_torn_tail, evidence.Journal):
            with self.subTest(attempt.__name__), self.assertRaises((OSError, evidence.EvidenceError)):
                attempt(self.path)

    def test_after_a_failed_write_nothing_more_is_taken(self) -> None:
        journal = evidence.Journal(self.path)
        journal.append(b"one\n")
        write = journal.write

        def full(data: bytes) -> None:
            os.write(journal.descriptor, data[:2])
            raise OSError(errno.ENOSPC, "no space left")

        journal.write = full
        with self.assertRaises(OSError):
            journal.append(b"two\n")
        journal.write = write
        with self.assertRaises(OSError):
            journal.append(b"three\n")
        with self.assertRaises(OSError):
            journal.close()
        self.assertEqual(b"one\ntw", Path(self.path).read_bytes())

    def test_a_late_worker_cannot_write_into_a_file_that_took_the_closed_one_s_place(self) -> None:
        journal = evidence.Journal(self.path)
        journal.close()
        with open(self.path + ".other", "wb") as other:  # gets the number that was freed
            with self.assertRaises(OSError):
                journal.append(b"late\n")
            self.assertEqual(0, os.fstat(other.fileno()).st_size)


HOLD = """
import sys, types
module = types.ModuleType("evidence")
sys.modules["evidence"] = module
exec(compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec"), module.__dict__)
with module.Lock(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


class Locks(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def holder(self) -> subprocess.Popen[str]:
        """Another process that holds the lock until its input ends."""
        words = [sys.executable, "-I", "-c", HOLD, str(ROOT / "engine" / "evidence.py"), self.folder]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        assert process.stdout is not None
        self.assertEqual("held\n", process.stdout.readline())
        return process

    def test_a_second_process_is_refused_and_told_who_holds_the_run(self) -> None:
        process = self.holder()
        with self.assertRaises(evidence.InUse) as caught, evidence.Lock(self.folder):
            pass
        self.assertIn(f"in use by process {process.pid} on ", str(caught.exception))
        process.communicate("")
        with evidence.Lock(self.folder):
            self.assertTrue(re.match(rf"process {os.getpid()} on ", Path(self.folder, "lock").read_text("utf-8")))
        self.assertEqual([], os.listdir(self.folder))

    def test_a_lock_left_by_a_killed_process_does_not_block(self) -> None:
        process = self.holder()
        process.kill()
        process.communicate()
        self.assertTrue(os.path.exists(os.path.join(self.folder, "lock")))
        with evidence.Lock(self.folder):
            pass


if __name__ == "__main__":
    unittest.main()
