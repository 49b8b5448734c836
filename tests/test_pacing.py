"""engine/pacing.py: when requests may start, on a clock that the test moves."""

from __future__ import annotations

import unittest
from typing import Any

from rooms import room

pacing = room("pacing")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def starts(pace: Any, clock: Clock, seconds: float, busy_s: float = 0.0) -> list[float]:
    """The start times of one worker that is busy for `busy_s` after each start."""
    found: list[float] = []
    end = clock.now + seconds
    while True:
        turn = pace.reserve()
        if turn.at >= end:
            return found
        clock.now = max(clock.now, turn.at)
        found.append(clock.now)
        clock.now += busy_s


class Requests(unittest.TestCase):
    def test_600_a_minute_are_600_in_a_minute(self) -> None:
        clock = Clock()
        self.assertAlmostEqual(len(starts(pacing.Pace(600, clock=clock), clock, 60.0)), 600, delta=1)

    def test_no_limit_means_no_wait(self) -> None:
        clock = Clock()
        pace = pacing.Pace(clock=clock)
        self.assertEqual([pace.reserve().at for _ in range(3)], [100.0] * 3)

    def test_a_slow_worker_gets_no_burst_afterwards(self) -> None:
        clock = Clock()
        pace = pacing.Pace(60, clock=clock)
        pace.reserve()
        clock.now += 30
        self.assertEqual([pace.reserve().at for _ in range(3)], [130.0, 131.0, 132.0])

    def test_many_workers_share_one_pace(self) -> None:
        pace = pacing.Pace(120, clock=Clock())
        self.assertEqual([pace.reserve().at for _ in range(5)], [100.0, 100.5, 101.0, 101.5, 102.0])


class Tokens(unittest.TestCase):
    def test_tokens_space_starts_and_what_was_not_used_is_given_back(self) -> None:
        pace = pacing.Pace(None, 60_000, clock=Clock())
        pace.reserve(3000)
        pace.worked(3000, 1000)
        self.assertEqual([pace.reserve(2000).at, pace.reserve(1000).at], [101.0, 103.0])

    def test_unknown_use_gives_nothing_back(self) -> None:
        pace = pacing.Pace(None, 60_000, clock=Clock())
        pace.reserve(3000)
        pace.worked(3000, None)
        self.assertEqual(pace.reserve(1).at, 103.0)

    def test_the_stricter_of_both_limits_rules(self) -> None:
        pace = pacing.Pace(60, 60_000, clock=Clock())
        self.assertEqual([pace.reserve(100).at, pace.reserve(5000).at, pace.reserve(0).at], [100.0, 101.0, 106.0])


class Holds(unittest.TestCase):
    def test_a_hold_takes_back_turns_already_given(self) -> None:
        clock = Clock()
        pace = pacing.Pace(60, clock=clock)
        turns = [pace.reserve() for _ in range(3)]
        pace.hold(20.0, clock.now)
        self.assertFalse(any(pace.holds(turn) for turn in turns))
        self.assertEqual(pace.reserve().at, 120.0)

    def test_after_a_hold_starts_are_spread_and_good_replies_close_the_gap(self) -> None:
        clock = Clock()
        pace = pacing.Pace(clock=clock)
        pace.hold(1.0, clock.now)
        first, second = pace.reserve().at, pace.reserve().at
        self.assertEqual(first, 101.0)
        self.assertAlmostEqual(second - first, pacing.FIRST_GAP_S)
        for _ in range(200):
            pace.worked()
        self.assertEqual(pace.gap_s, 0.0)

    def test_refusals_of_requests_already_under_way_count_once(self) -> None:
        clock = Clock()
        pace = pacing.Pace(clock=clock)
        for _ in range(50):
            pace.hold(1.0, 99.0)
        self.assertEqual(pace.gap_s, pacing.FIRST_GAP_S)
        clock.now = 105.0
        pace.hold(1.0, 104.0)
        self.assertEqual(pace.gap_s, pacing.FIRST_GAP_S * pacing.GAP_GROWTH)

    def test_a_shorter_hold_does_not_shorten_a_longer_one(self) -> None:
        clock = Clock()
        pace = pacing.Pace(clock=clock)
        pace.hold(20.0, clock.now)
        pace.hold(1.0, clock.now)
        self.assertEqual(pace.reserve().at, 120.0)

    def test_waiting_for_room_keeps_the_pace(self) -> None:
        clock = Clock()
        pace = pacing.Pace(60, clock=clock)
        pace.wait_for_room(5.0)
        self.assertEqual([pace.reserve().at, pace.reserve().at], [105.0, 106.0])
        self.assertEqual(pace.gap_s, 0.0)


if __name__ == "__main__":
    unittest.main()
