"""Unpacking Zstandard: a real archive against its checksums, small frames by hand, limits, damage."""

from __future__ import annotations

import random
import unittest
import zipfile
import zlib
from pathlib import Path

from rooms import ROOT, room

zstd = room("zstd")
importers = room("importers")
ARCHIVE = Path(ROOT / "tests" / "import_logs" / "inspect.eval")
MAGIC = bytes.fromhex("28b52ffd")


def packed_entries() -> list[tuple[str, bytes, int, int]]:
    """(name, packed bytes, size, checksum) of every file of the archive."""
    found = []
    with zipfile.ZipFile(ARCHIVE) as log, ARCHIVE.open("rb") as stream:
        for entry in log.infolist():
            stream.seek(entry.header_offset + 26)
            head = stream.read(4)
            stream.seek(int.from_bytes(head[:2], "little") + int.from_bytes(head[2:], "little"), 1)
            found.append((entry.filename, stream.read(entry.compress_size), entry.file_size, entry.CRC))
    return found


def block(kind: int, size: int, data: bytes, last: bool = True) -> bytes:
    return ((size << 3) | (kind << 1) | last).to_bytes(3, "little") + data


class RealArchive(unittest.TestCase):
    def test_every_file_unpacks_to_its_size_and_checksum(self) -> None:
        entries = packed_entries()
        self.assertGreater(len(entries), 8)
        for name, data, size, checksum in entries:
            with self.subTest(name):
                content = zstd.unpacked(data, size)
                self.assertEqual((size, checksum), (len(content), zlib.crc32(content)))

    def test_two_frames_and_a_skippable_one_are_read_as_one(self) -> None:
        _, data, size, _ = packed_entries()[0]
        once = zstd.unpacked(data, size)
        skipped = (0x184D2A53).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
        self.assertEqual(once * 2, zstd.unpacked(data + skipped + data, 2 * size))

    def test_nothing_larger_than_announced_is_made(self) -> None:
        for _, data, size, _ in packed_entries():
            with self.assertRaises(zstd.BadData):
                zstd.unpacked(data, size - 1)

    def test_damage_ends_in_an_error_or_in_other_bytes_never_in_a_crash(self) -> None:
        rng = random.Random(4)
        entries = packed_entries()
        refused = 0
        for _ in range(200):
            _, data, size, checksum = rng.choice(entries)
            damaged = bytearray(data)
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            try:
                content = zstd.unpacked(bytes(damaged[: rng.choice((len(data), rng.randrange(1, len(data))))]), size)
                self.assertLessEqual(len(content), size)
            except zstd.BadData:
                refused += 1
        self.assertGreater(refused, 100)


class ByHand(unittest.TestCase):
    def test_raw_and_repeated_blocks(self) -> None:
        head = MAGIC + bytes([0x20, 7])  # one segment, content size 7
        frame = head + block(0, 3, b"abc", last=False) + block(1, 4, b"z")
        self.assertEqual(b"abczzzz", zstd.unpacked(frame, 7))

    def test_a_hundred_blocks_and_frames_of_next_to_nothing_are_the_most(self) -> None:
        empty, skipped = block(0, 0, b"", last=False), bytes.fromhex("502a4d1800000000")
        frame = MAGIC + bytes([0x20, 0]) + block(0, 0, b"")
        self.assertEqual(b"", zstd.unpacked(MAGIC + bytes([0x20, 0]) + empty * 99 + block(0, 0, b""), 10))
        for data in (MAGIC + bytes([0x20, 0]) + empty * 100 + block(0, 0, b""), frame * 101, skipped * 101 + frame):
            with self.assertRaisesRegex(zstd.BadData, "more than 100 blocks"):
                zstd.unpacked(data, 10)

    def test_no_data_is_no_content(self) -> None:
        self.assertEqual(b"", zstd.unpacked(b"", 10))

    def test_what_is_no_frame_is_refused(self) -> None:
        cases = {
            "another magic number": b"PK\x03\x04 and more",
            "cut in the magic number": MAGIC[:3],
            "a dictionary is needed": MAGIC + bytes([0x21, 5, 7]) + block(0, 0, b""),
            "a reserved block": MAGIC + bytes([0x20, 1]) + block(3, 1, b"a"),
            "a block that is cut off": MAGIC + bytes([0x20, 9]) + block(0, 9, b"abc"),
            "no last block": MAGIC + bytes([0x20, 1]) + block(0, 1, b"a", last=False),
        }
        for name, data in cases.items():
            with self.subTest(name), self.assertRaises(zstd.BadData):
                zstd.unpacked(data, 100)


if __name__ == "__main__":
    unittest.main()
