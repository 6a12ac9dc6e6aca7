"""A clock that stands until it is told, and identifiers that count: what makes a test repeatable."""

from __future__ import annotations

from itertools import count

DAY = 86_400.0


class FixedClock:
    """Stands at ``at`` (epoch seconds); a test moves it, in either direction."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def advance(self, *, days: float = 0.0, seconds: float = 0.0) -> None:
        self.at += days * DAY + seconds


class CountingIds:
    """000000000001, 000000000002, …"""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"{next(self._numbers):012x}"
