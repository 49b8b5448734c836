"""The files of a run: what is read, what is written, in which bytes.

Manifest, journal, raw and scored rows, summary. Nothing is ever deleted but
a journal whose rows stand in a finished raw file. Text is UTF-8, lines end in line feed only, a gzip file has a fixed
header, so that equal rows give equal bytes on every Python version. Loads nothing of the toolkit; no network.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import stat
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

# === Constants ===

RUN_FORMAT = "judge-run-v1"
TOOL_VERSION = "1.0"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")  # an evaluation's name; it becomes the name of a folder
GZIP_LEVEL = 6  # level 9 takes twice the time for 3% less
QUICK_LEVEL = 1  # for what can be made again from the raw rows at any time
BLOCK = 1 << 18  # bytes handed to the compressor and the hash at a time
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name, no time, unknown system: the same everywhere
MAX_LISTED = 20  # problems of one file shown at once
MAX_BLANK = 10_000  # blank lines of one file; more are no file of rows but a trap for its reader
MAX_LINE = 64 * 1024 * 1024  # bytes of one row; a longer one is no row of ours
PACKED_PIECE = 1 << 14  # packed bytes taken at a time: what stands behind a gzip member is copied once for each member
SMALL_MEMBER = 4096  # unpacked bytes; scored rows are written as members of 512 rows, which hold more
MAX_SMALL_MEMBERS = 10_000  # of one gzip file; more are no file of rows but a trap for its reader
SHA256_TEXT = re.compile(r"\b[0-9a-f]{64}\b")
LEFTOVER = re.compile(r"(manifest\.json|(raw|scored)\.jsonl\.gz|summary\.json)\.tmp\.\d+")
BLANKS = b" \t\r\n\xef\xbb\xbf\0"
CONTROL = re.compile(rb"[\x00-\x1f]")
EMPTY_MARKS = {0: "U+0000"}  # characters that servers tend to cut a text at


Row = TypeVar("Row")


class EvidenceError(Exception):
    """A file that is not what it has to be; the text names file, line, field, expected and got."""


class InUse(EvidenceError):
    """Another process works on the run."""


class TooManyMembers(EvidenceError):
    """A gzip file of thousands of parts that hold next to nothing."""


# === Bytes and JSON ===


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def open_file(path: str) -> BinaryIO:
    """A regular file open for reading; a pipe or device in its place is refused, not waited for. Raises: OSError."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "expected a regular file", path)
    return os.fdopen(descriptor, "rb")


def open_own(path: str, flags: int) -> int:
    """A descriptor of a run's own file, made if it is missing: never of what a link in its place leads to.

    flags: how it is opened, os.O_WRONLY or os.O_RDWR with os.O_APPEND or os.O_TRUNC. Raises: OSError.
    """
    kind = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags | os.O_CREAT | kind, 0o666)  # less the umask, as open() does
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "expected a file of the run, got a link", path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "expected a regular file", path)
    return descriptor


def sha256_file(path: str) -> str:
    """The sha256 of a file's bytes, read in pieces. Raises: OSError."""
    digest = hashlib.sha256()
    with open_file(path) as stream:
        for piece in iter(lambda: stream.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def encode(text: str) -> bytes:
    """UTF-8; JSON text with half a surrogate pair in it is written with escapes instead."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":")).encode("ascii")


COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
PLAIN = json.JSONDecoder()


def row_bytes(row: dict[str, Any]) -> bytes:
    """One line of a JSONL file, keys in the order given. Raises: ValueError for NaN or Infinity."""
    return encode(COMPACT.encode(row)) + b"\n"


def canonical(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no blanks. What hashes are taken of."""
    return encode(json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")))


def pretty(value: Any) -> bytes:
    """JSON for people: two blanks a level, a newline at the end."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, indent=2).encode("ascii") + b"\n"


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice")
    return found


STRICT = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=no_constant, parse_float=finite)


def parse_json(data: bytes, where: str) -> Any:
    """The value of strict JSON text. Raises: EvidenceError naming `where`."""
    try:
        return STRICT.decode(data.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise EvidenceError(f"{where}: not valid UTF-8 (byte 0x{byte:02x} at offset {error.start})") from None
    except RecursionError:
        raise EvidenceError(f"{where}: JSON is nested too deeply") from None
    except ValueError as error:
        raise EvidenceError(f"{where}: not JSON: {error}") from None


def read_object(path: str) -> dict[str, Any]:
    """The JSON object that a file holds. Raises: EvidenceError."""
    try:
        with open_file(path) as stream:
            data = stream.read(MAX_LINE)
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror}") from None
    value = parse_json(data, path)
    if not isinstance(value, dict):
        raise EvidenceError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def write_atomic(path: str, data: bytes | Iterable[bytes]) -> None:
    """Write a file by temporary name and rename: a reader sees the old bytes or the new ones, never half."""
    temporary = f"{path}.tmp.{os.getpid()}"
    try:
        with os.fdopen(open_own(temporary, os.O_WRONLY | os.O_TRUNC), "wb") as stream:
            for piece in (data,) if isinstance(data, bytes) else data:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (None, temporary):
            error.filename = path  # a failed write says of no file, or of a passing name
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


# === Rows, plain or gzipped ===


def blocks_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines joined to blocks, so that a row costs no call of its own."""
    block, size = [], 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= BLOCK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)


def gzip_pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The gzip file of some lines, piece by piece, with a fixed header.

    A block is packed in a second thread while the lines of the next one are made.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc = size = 0
    yield GZIP_HEADER
    with ThreadPoolExecutor(1) as second:
        waiting: list[Future[bytes]] = []
        for block in blocks_of(lines):
            crc, size = zlib.crc32(block, crc), size + len(block)
            waiting.append(second.submit(packer.compress, block))
            if len(waiting) > 1:
                yield waiting.pop(0).result()
        yield b"".join(future.result() for future in waiting) + packer.flush()
    yield struct.pack("<II", crc, size & 0xFFFFFFFF)


def gzip_member(data: bytes) -> bytes:
    """A gzip file of its own, packed quickly, with the fixed header; such files one after the other are one gzip file.

    For what can be made again at any time.
    """
    packer = zlib.compressobj(QUICK_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    return GZIP_HEADER + packed + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def write_rows(path: str, rows: Iterable[dict[str, Any]]) -> str:
    """Write rows as `.jsonl.gz`; returns the sha256 of the rows before compression."""
    return write_lines(path, map(row_bytes, rows))


def write_lines(path: str, lines: Iterable[bytes]) -> str:
    """The same for rows that are lines of bytes already."""
    digest = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for block in blocks_of(lines):
            digest.update(block)
            yield block

    write_atomic(path, gzip_pieces(hashed()))
    return digest.hexdigest()


class Unpacking(io.RawIOBase):
    """The content of a gzip file, one member after the other, in time that grows with its bytes alone.

    Zero bytes between members and at the end are passed over. Reading raises: EOFError for a file that is cut off,
    zlib.error for one that is damaged, TooManyMembers.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.packed = b""  # read, and not unpacked yet
        self.begun = False
        self.unpacker: Any = None  # of the member at hand
        self.size = 0  # unpacked bytes of that member
        self.small = 0  # members that held less than SMALL_MEMBER

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def piece(self, most: int) -> bytes:
        """The next unpacked bytes, b"" at the end."""
        while self.unpacker is not None or self.begin():
            piece: bytes = self.unpacker.decompress(self.packed, most)
            self.size += len(piece)
            ended = self.unpacker.eof
            self.packed = self.unpacker.unused_data if ended else self.unpacker.unconsumed_tail
            if ended:
                self.end()
            elif not piece and not self.packed:
                self.packed = self.file.read(PACKED_PIECE)
                if not self.packed:
                    raise EOFError("the file ends too early")
            if piece:
                return piece
        return b""

    def begin(self) -> bool:
        """Go to the next member; False at the end of the file."""
        while not self.packed:
            packed = self.file.read(PACKED_PIECE)
            if not packed:
                return False
            self.packed = packed.lstrip(b"\0") if self.begun else packed
        self.begun, self.unpacker, self.size = True, zlib.decompressobj(zlib.MAX_WBITS | 16), 0
        return True

    def end(self) -> None:
        """Leave a member that was read to its end. Raises: TooManyMembers."""
        self.unpacker, self.packed = None, self.packed.lstrip(b"\0")
        self.small += self.size < SMALL_MEMBER
        if self.small > MAX_SMALL_MEMBERS:
            raise TooManyMembers(
                f"more than {MAX_SMALL_MEMBERS} parts of the gzip file hold less than {SMALL_MEMBER} bytes each;"
                " unpack it and pack it anew as one"
            )


def read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Numbered non-blank lines, split on line feed only. Raises: EvidenceError for a damaged or unreadable file."""
    blank, packed = 0, path.endswith(".gz")
    try:
        with open_file(path) as file:
            stream = io.BufferedReader(Unpacking(file), BLOCK) if packed else file
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE + 1), b""), 1):
                if len(line) > MAX_LINE:
                    raise EvidenceError(f"{path}:{number}: line is longer than {MAX_LINE} bytes")
                if not line.isspace():
                    yield number, line
                    continue
                blank += 1
                if blank > MAX_BLANK:
                    raise EvidenceError(f"{path}:{number}: more than {MAX_BLANK} lines are blank")
    except (OSError, EOFError, zlib.error, TooManyMembers) as error:
        raise EvidenceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_rows(path: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a rows file, one at a time. Raises: EvidenceError naming file and line."""
    for number, line in read_lines(path):
        row = parse_json(line, f"{path}:{number}")
        if not isinstance(row, dict):
            raise EvidenceError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield row


def at_most(rows: Iterable[Row], most: int, path: str) -> Iterator[Row]:
    """The rows of a file that can hold no more than `most`. Raises: EvidenceError at the first that is too many."""
    for number, row in enumerate(rows, 1):
        if number > most:
            raise EvidenceError(f"{path}: expected at most {most} rows, got more")
        yield row


def plain_json(text: str) -> Any:
    """PLAIN's value of a text; one that nothing but its line's end stands around is not searched for blanks."""
    try:
        value, end = PLAIN.raw_decode(text)
    except ValueError:
        return PLAIN.decode(text)  # blanks before it, or the error in its own words
    return value if text[end:] in ("\n", "", "\r\n") else PLAIN.decode(text)


def read_own_rows(path: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """(row, its line) of a rows file that we wrote: the same without the search for doubled keys, for speed."""
    return ((own_row(line, f"{path}:{number}"), line) for number, line in read_lines(path))


def own_row(line: bytes, where: str) -> dict[str, Any]:
    """The row that a line of ours holds. Raises: EvidenceError."""
    try:
        row = plain_json(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{where}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise EvidenceError(f"{where}: expected a JSON object, got {type(row).__name__}")
    return row


# === Lock ===


class Lock:
    """Keeps two processes off one run: an operating system lock where there is one, and a file that says who."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "lock")
        self.stream: Any = None

    def __enter__(self) -> Lock:
        while not self.current():
            try:
                self.stream = os.fdopen(open_own(self.path, os.O_RDWR), "r+", encoding="utf-8", errors="replace")
            except OSError as error:
                raise EvidenceError(f"{self.path}: cannot be opened: {error.strerror}") from None
            try:
                self.take()
            except OSError:
                self.stream.seek(0)
                owner = self.stream.read(200).strip() or "an unnamed process"
                self.stream.close()
                raise InUse(f"{os.path.dirname(self.path)} is in use by {owner}") from None
        self.stream.seek(0)
        self.stream.truncate()
        self.stream.write(f"process {os.getpid()} on {host_name()}\n")
        self.stream.flush()
        return self

    def current(self) -> bool:
        """Whether the file we hold is still the one under the name: a finishing owner may have removed it meanwhile."""
        if self.stream is None:
            return False
        try:
            same = os.path.samestat(os.fstat(self.stream.fileno()), os.stat(self.path))
        except OSError:
            same = False
        if not same:
            self.stream.close()
        return same

    def take(self) -> None:
        """Ask the system for the lock; it is gone with the process, so a stale file never blocks a resume."""
        try:
            import fcntl
        except ImportError:
            import msvcrt

            msvcrt.locking(self.stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(self.stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self.stream.close()


def host_name() -> str:
    import platform

    return platform.node() or "this host"


# === Journal ===


class Journal:
    """One line per reply, appended as it arrives; what was paid for is on disk before `append` returns.

    Workers that append at the same time share one fsync: whoever comes first writes for all that wait.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
        self.lock = threading.Lock()
        self.flushing = threading.Lock()
        self.pending: list[bytes] = []
        self.taken = self.durable = 0  # how many lines were handed in, and are on disk
        self.position = os.fstat(self.descriptor).st_size  # where the next line will stand
        self.failed: OSError | None = None

    def append(self, line: bytes, durable: bool = True) -> int:
        """Add one line (with its line feed); returns its offset.

        durable: wait until it is on disk; False is for replies that cost nothing and can be made again.
        Raises: OSError when it cannot be kept, as with a full disk.
        """
        with self.lock:
            offset = self.position
            self.pending.append(line)
            self.position += len(line)
            self.taken += 1
            mine = self.taken
        if durable or mine % 512 == 0:
            self.flush(mine, durable)
        return offset

    def flush(self, upto: int | None = None, durable: bool = True) -> None:
        """Put every line handed in so far (at least the first `upto`) on disk."""
        with self.flushing:
            if upto is not None and self.durable >= upto:
                return
            if self.failed is not None:
                raise self.failed
            with self.lock:
                lines, self.pending, count = self.pending, [], self.taken
            try:
                self.write(b"".join(lines))
                if durable:
                    os.fsync(self.descriptor)
            except OSError as error:
                self.failed = error
                raise
            self.durable = count

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.descriptor, data) :]

    def close(self) -> None:
        """Put the rest on disk. A worker that is late gets an error instead of a file that is somebody else's now."""
        try:
            self.flush()
        finally:
            with self.flushing:
                self.failed = self.failed or OSError("the journal is closed")
                os.close(self.descriptor)


def journal_lines(path: str) -> Iterator[tuple[int, int, bytes]]:
    """(line number, offset, line) of every complete line of a journal."""
    with open_file(path) as stream:
        offset = 0
        for number, line in enumerate(stream, 1):
            if line.endswith(b"\n"):
                yield number, offset, line
            offset += len(line)


def drop_leftovers(folder: str) -> None:
    """Remove the temporary files of a process that was killed while it wrote them. Called with the run's lock."""
    for name in os.listdir(folder):
        if LEFTOVER.fullmatch(name):
            os.unlink(os.path.join(folder, name))


def drop_torn_tail(path: str) -> int:
    """Make a file of lines end in a whole one; returns the number of bytes dropped.

    A last line without its end is closed when it is a whole entry, else cut: what a killed process had not finished.
    Raises: EvidenceError, before anything is changed, for an end that no killed process leaves behind.
    """
    try:
        stream = os.fdopen(open_own(path, os.O_RDWR), "rb+")
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be opened: {error.strerror}") from None
    with stream:
        size = stream.seek(0, os.SEEK_END)
        end, position = 0, size
        while position > 0 and not end:
            start = max(0, position - 65536)
            stream.seek(start)
            found = stream.read(position - start).rfind(b"\n")
            end, position = (start + found + 1 if found >= 0 else 0), start
        stream.seek(end)
        tail = stream.read()
        whole = tail.rstrip(b"\0")  # what a power cut may have left instead of the line feed
        if whole and is_whole_entry(whole, path):
            stream.seek(end + len(whole))
            stream.truncate()
            stream.write(b"\n")
            return 0
        stream.seek(0)
        problem = tail_problem(tail) or ("" if stream.read(64).lstrip(BLANKS)[:1] in (b"{", b"") else "not our text")
        if tail and problem:
            text = f"{path}: the last {len(tail)} bytes are no unfinished line ({problem}); nothing is cut"
            raise EvidenceError(f"{text}; put the line feeds back, or move the file away to begin anew")
        stream.truncate(end)
    return size - end


def is_whole_entry(tail: bytes, path: str) -> bool:
    """Whether bytes are a complete JSON object."""
    try:
        return isinstance(parse_json(tail, path), dict)
    except EvidenceError:
        return False


def tail_problem(tail: bytes) -> str:
    """Why bytes cannot be the beginning of one line of ours, '' where they can.

    Such a line begins with a brace and holds no control character; NULs at its end are what a power cut leaves.
    """
    begun = tail.rstrip(b"\0").lstrip(b" ")
    if not begun:
        return ""
    if not begun.startswith(b"{"):
        return f"expected '{{' first, got byte 0x{begun[0]:02x}"
    control = CONTROL.search(begun)
    if control:
        return f"byte 0x{control[0][0]:02x} at offset {control.start()}"
    text = begun.decode("utf-8", "replace")
    try:
        _, end = PLAIN.raw_decode(text)
    except (ValueError, RecursionError):
        return ""
    return "no entry of ours, or not valid UTF-8" if end == len(text) else "several entries in one line"


# === Run folder ===


def utc_stamp(moment: float) -> str:
    """2026-10-27T08:15:30.123456Z of a POSIX time."""
    whole, fraction = divmod(round(moment * 1_000_000), 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{fraction:06d}Z"


def new_run(out: str, slug: str, moment: float) -> str:
    """Make the folder of a new run, named by its UTC start; nothing that exists is touched. Raises: EvidenceError."""
    if not SLUG.fullmatch(slug):
        raise EvidenceError(f"{out}: a slug of lower-case words joined by '-' is expected, got {ascii(slug)[:60]}")
    for step in range(1000):
        name = utc_stamp(moment + step / 1_000_000).replace(":", "-").replace(".", "-")
        folder = os.path.join(out, slug, name)
        try:
            os.makedirs(folder)
        except FileExistsError:
            continue
        return folder
    raise EvidenceError(f"{os.path.join(out, slug)}: no free name for a new run")


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a run. Raises: EvidenceError when the folder is no run of ours."""
    path = os.path.join(folder, "manifest.json")
    if not os.path.isdir(folder):
        raise EvidenceError(f"{folder}: no such run")
    if not os.path.exists(path):
        raise EvidenceError(f"{path}: is missing; {folder} is not a run")
    manifest = read_object(path)
    if manifest.get("format") != RUN_FORMAT:
        raise EvidenceError(f"{path}: field 'format': expected {RUN_FORMAT!r}, got {manifest.get('format')!r}")
    slug = manifest.get("slug")
    if not isinstance(slug, str) or not SLUG.fullmatch(slug):
        raise EvidenceError(f"{path}: field 'slug': expected lower-case words joined by '-', got {ascii(slug)[:60]}")
    return manifest


def write_manifest(folder: str, manifest: dict[str, Any]) -> None:
    write_atomic(os.path.join(folder, "manifest.json"), pretty(manifest))


def python_version() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])
