"""When the next request of an arm may start: a pace shared by all its workers.

    pace = Pace(rpm=600, clock=time.monotonic)
    turn = pace.reserve(tokens=1200)     # Turn(at, round): start at that time …
    pace.holds(turn)                     # … unless a hold came meanwhile: then reserve again
    pace.hold(20.0, began)               # a server said "slow down": nobody starts for 20 s, then more slowly

Only arithmetic on times that are given: whoever calls does the sleeping. Safe to share between threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

# === Constants ===

FIRST_GAP_S = 0.05  # extra time between starts after a first "slow down"
MAX_GAP_S = 10.0
GAP_GROWTH = 2.0
GAP_DECAY = 0.95  # per good reply: after 60 of them 5% of the gap is left
GAP_GONE_S = 0.002


class Turn(NamedTuple):
    """When a request may start. round: how many holds there had been when it was given out."""

    at: float
    round: int


class Pace:
    """Start-to-start pacing by requests and tokens per minute, and one back-off for all workers."""

    def __init__(self, rpm: float | None = None, tpm: float | None = None, *, clock: Callable[[], float]) -> None:
        self.interval_s = 60.0 / rpm if rpm else 0.0
        self.token_s = 60.0 / tpm if tpm else 0.0
        self.clock = clock
        self.lock = threading.Lock()
        self.next_start = 0.0
        self.next_tokens = 0.0
        self.held_until = 0.0
        self.held_at = float("-inf")
        self.gap_s = 0.0
        self.round = 0

    def reserve(self, tokens: int = 0) -> Turn:
        """The next free start. A start that was missed is not made up for, so no burst ever breaks the pace."""
        with self.lock:
            at = max(self.clock(), self.next_start, self.held_until)
            if self.token_s:
                at = max(at, self.next_tokens)
                self.next_tokens = at + tokens * self.token_s
            self.next_start = at + self.interval_s + self.gap_s
            return Turn(at, self.round)

    def holds(self, turn: Turn) -> bool:
        """Whether a turn still stands: no hold has come since it was given out."""
        return turn.round == self.round

    def hold(self, seconds: float, began: float) -> None:
        """Nobody starts for `seconds`. Afterwards starts are spread out, the more the more often this happens.

        began: when the refused request started; requests already under way at the last hold do not count again.
        """
        with self.lock:
            now = self.clock()
            self.nobody_before(now + seconds)
            if began >= self.held_at:
                self.gap_s = min(MAX_GAP_S, max(FIRST_GAP_S, self.gap_s * GAP_GROWTH))
                self.held_at = now

    def wait_for_room(self, seconds: float) -> None:
        """Nobody starts for `seconds`, since the server's limits say that it would refuse; the pace stays."""
        with self.lock:
            self.nobody_before(self.clock() + seconds)

    def nobody_before(self, until: float) -> None:
        """Takes back the turns given out so far, unless a longer hold has done so already. Called with the lock."""
        if until > self.held_until:
            self.held_until = self.next_start = self.next_tokens = until
            self.round += 1

    def worked(self, planned: int = 0, used: int | None = None) -> None:
        """A good reply: starts move closer again, and the tokens really used replace those planned for."""
        with self.lock:
            self.gap_s = self.gap_s * GAP_DECAY if self.gap_s > GAP_GONE_S else 0.0
            if self.token_s and used is not None:
                self.next_tokens += (used - planned) * self.token_s
