"""When an answer is due: a read that runs late returns the best it has so far, and says what it made do without.

Stages of unbounded or foreign cost (a model's answer, sentences that were never embedded, one more hop) ask before they begin
and are cut into pieces that are short each; what is left of an answer when time is up is cheap and always done. Time is counted
by a monotonic clock that is handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from keymem_daemon.ports import Monotonic

__all__ = ["Deadline"]

T = TypeVar("T")
_FOREVER: Final = float("inf")


class Deadline:
    """``budget_s`` seconds from now. One for each request; not shared."""

    __slots__ = ("_at", "_monotonic", "_skipped")

    def __init__(self, monotonic: Monotonic, budget_s: float = _FOREVER) -> None:
        self._monotonic = monotonic
        self._at = monotonic() + budget_s
        self._skipped: dict[str, None] = {}

    @property
    def skipped(self) -> tuple[str, ...]:
        """The stages that were left out or left early, in order; empty for an answer that is whole."""
        return tuple(self._skipped)

    def passed(self, stage: str) -> bool:
        """Whether it is too late to begin, or to go on with, ``stage``; if so it counts as skipped."""
        if self._monotonic() < self._at:
            return False
        self._skipped[stage] = None
        return True

    async def within(self, stage: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """What ``work`` comes to, or ``None`` when time is up before it does; then it is cancelled and counts as skipped."""
        if self.passed(stage):
            return None
        left = self._at - self._monotonic()
        try:
            async with asyncio.timeout(None if left == _FOREVER else max(0.0, left)):
                return await work()
        except TimeoutError:
            self._skipped[stage] = None
            return None
