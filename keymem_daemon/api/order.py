"""The order of one session's requests: writes as they were made, reads after the writes before them, nothing after reads.

A session's requests come over several connections and may overtake each other on the way. Each carries its number, and the
lowest number still unanswered. A request is admitted once every number from that floor up to its own has arrived; the wait is
bounded, since a number may never come (a request that was refused at the door, a client that gave up). Once admitted,

* a write waits for the earlier writes of its session,
* a read waits for the earlier writes of its session, and nothing ever waits for it.

Sessions do not know each other. A request without session or number is not ordered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

__all__ = ["SessionOrder"]


@dataclass(slots=True)
class _Session:
    """Numbers that have arrived at or above ``floor``, unfinished writes by number, and who waits for an arrival."""

    floor: int = 0
    arrived: set[int] = field(default_factory=set)
    writes: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    waiting: set[asyncio.Future[None]] = field(default_factory=set)

    def arrive(self, seq: int) -> None:
        if seq >= self.floor:
            self.arrived.add(seq)
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_result(None)
        self.waiting.clear()

    def raise_floor(self, floor: int) -> None:
        if floor > self.floor:
            self.floor = floor
            self.arrived = {seq for seq in self.arrived if seq >= floor}

    def complete_below(self, seq: int) -> bool:
        return all(number in self.arrived for number in range(self.floor, seq))


class SessionOrder:
    """Keeps the order. One event loop; ``wait_s`` bounds the wait for a number, ``sessions`` how many are remembered."""

    def __init__(self, wait_s: float = 2.0, sessions: int = 1_024) -> None:
        self._wait_s = wait_s
        self._limit = sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def arrived(self, session: str | None, seq: int | None) -> None:
        """Say that the number needs no turn, or has had it: nobody has to wait for it."""
        if session is not None and seq is not None:
            self._session(session).arrive(seq)

    @asynccontextmanager
    async def turn(
        self, session: str | None, seq: int | None, floor: int | None, *, writes: bool
    ) -> AsyncIterator[None]:
        """The time in which the request ``seq`` of ``session`` may act."""
        if session is None or seq is None:
            yield
            return
        state = self._session(session)
        state.raise_floor(min(seq, floor if floor is not None else seq))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s):
                await self._admitted(state, seq)
        earlier = [done for number, done in state.writes.items() if number < seq]
        finished = asyncio.get_running_loop().create_future()
        if writes:
            state.writes[seq] = finished
        state.arrive(seq)
        try:
            if earlier:
                await asyncio.wait(earlier)
            yield
        finally:
            finished.set_result(None)
            if state.writes.get(seq) is finished:
                del state.writes[seq]

    async def _admitted(self, state: _Session, seq: int) -> None:
        while not state.complete_below(seq):
            arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            state.waiting.add(arrival)
            try:
                await arrival
            finally:
                state.waiting.discard(arrival)

    def _session(self, name: str) -> _Session:
        state = self._sessions.get(name)
        if state is None:
            state = self._sessions[name] = _Session()
            self._forget_idle()
        else:
            self._sessions.move_to_end(name)
        return state

    def _forget_idle(self) -> None:
        """Drop the sessions unused for longest that are beyond the limit, as far as nothing of theirs is under way."""
        excess = len(self._sessions) - self._limit
        for name in (
            [name for name, state in self._sessions.items() if not state.writes and not state.waiting][:excess]
            if excess > 0
            else ()
        ):
            del self._sessions[name]
