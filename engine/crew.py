"""One stream of pieces made by several copies of this process at once.

    crew = Crew(2, share)              # share(k) makes the pieces k, k + 2, k + 4, … and returns its last words
    for piece in crew.pieces(): ...    # 0, 1, 2, … in order, whoever made them
    crew.last_words                    # of every copy, once all pieces are through

The copies are forks: they see what this process had in memory, under the same network lock, and start no program. They
only ever write to their own pipe, so nobody can wait for each other in a circle; a full pipe holds back who is ahead.
Where there is no fork, or one copy ends early for whatever reason, `CrewError` says so and the caller does the work
alone. Nothing a copy does is seen outside of its pipe.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO, NoReturn, TypeVar

# === Constants ===

Share = Callable[[int], Generator[bytes, None, bytes]]  # number of a copy -> its pieces, and its last words
Result = TypeVar("Result")
FRAME = struct.Struct("<cQ")  # what follows, and its length in bytes
PIECE, LAST = b"p", b"l"
MAX_COPIES = 4  # each reads the whole input, so more of them gain little


class CrewError(Exception):
    """The work has to be done alone: no copies here, or one of them ended before its last words."""


def copies_here() -> int:
    """How many copies this machine can run at once; 1 where forking is not known to be safe."""
    if not sys.platform.startswith("linux"):
        return 1
    return min(MAX_COPIES, len(os.sched_getaffinity(0)))


# === The crew ===


class Crew:
    """Some copies of this process, from their start to their end."""

    def __init__(self, copies: int, share: Share) -> None:
        """Raises: CrewError when this process may not fork."""
        self.pids: list[int] = []
        self.pipes: list[BinaryIO] = []
        self.last_words: list[bytes] = []
        try:
            for number in range(copies):
                self.start(number, share)
        except BaseException as error:
            self.dismiss()
            if isinstance(error, OSError):  # refused by the network lock, or the machine is full
                raise CrewError(str(error)) from None
            raise

    def start(self, number: int, share: Share) -> None:
        """Fork one copy with a pipe to here."""
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except BaseException:
            os.close(reading)
            os.close(writing)
            raise
        if pid == 0:
            os.close(reading)
            be_copy(share(number), writing)
        os.close(writing)
        self.pids.append(pid)
        self.pipes.append(os.fdopen(reading, "rb"))

    def pieces(self) -> Iterator[bytes]:
        """Every piece in order. Raises: CrewError as soon as a copy is found to have ended early."""
        try:
            while True:
                for pipe in self.pipes:
                    kind, content = read_frame(pipe)
                    if kind == LAST:
                        self.collect(pipe, content)
                        return
                    yield content
        finally:
            self.dismiss()

    def collect(self, first: BinaryIO, words: bytes) -> None:
        """The last words of all copies, when the one whose turn it is has no piece left: then nobody has."""
        self.last_words = []
        for pipe in self.pipes:
            kind, content = (LAST, words) if pipe is first else read_frame(pipe)
            if kind != LAST:
                raise CrewError("the copies disagree on how many pieces there are")
            self.last_words.append(content)

    def dismiss(self) -> None:
        """End every copy that is still there and forget it."""
        for pipe in self.pipes:
            pipe.close()
        for pid in self.pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
        self.pids, self.pipes = [], []


def aside(work: Callable[[], Result]) -> Callable[[], Result]:
    """Let a copy of this process work something out meanwhile; returns what gives its result.

    Where there can be no copy, or it ends early, the work is done here when the result is asked for.
    """

    def share(_: int) -> Generator[bytes, None, bytes]:
        yield from ()
        return pickle.dumps(work())

    try:
        team = Crew(1, share)
    except CrewError:
        return work

    def result() -> Result:
        try:
            for _ in team.pieces():
                pass
        except CrewError:
            return work()
        found: Result = pickle.loads(team.last_words[0])  # from a copy of this very process
        return found

    return result


def read_frame(pipe: BinaryIO) -> tuple[bytes, bytes]:
    """(kind, content) of what a copy says next. Raises: CrewError when it is gone."""
    head = pipe.read(FRAME.size)
    if len(head) == FRAME.size:
        kind, size = FRAME.unpack(head)
        content = pipe.read(size)
        if len(content) == size:
            return kind, content
    raise CrewError("a copy of this process ended before its work did")


# === One copy ===


def be_copy(pieces: Generator[bytes, None, bytes], writing: int) -> NoReturn:
    """Say the pieces, then the last words, and end without anything that a normal end would do (flush, clean up)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(BaseException), os.fdopen(writing, "wb") as pipe:
        while True:
            try:
                content = next(pieces)
            except StopIteration as end:
                pipe.write(FRAME.pack(LAST, len(end.value)) + end.value)
                break
            pipe.write(FRAME.pack(PIECE, len(content)))
            pipe.write(content)
    os._exit(0)
