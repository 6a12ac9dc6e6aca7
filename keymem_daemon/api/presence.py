"""Who is there: a session is a shim that holds one connection open, and counts a little longer than that.

A connection ends with its process however that dies. A shim that only reconnects is back within the grace, so a session is
reaped when the grace has passed. Requests without such a connection are activity too: they put off the idle exit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

__all__ = ["Presence", "Session"]


@dataclass(slots=True)
class Session:
    """A session: its connections, and when the last of them ended (loop time; ``None`` while one is open)."""

    id: str
    client: str | None
    host_agent: str | None
    connections: int = 0
    left_at: float | None = None


class Presence:
    """The sessions, and how long there has been none. ``time`` is the loop's clock, in seconds."""

    def __init__(self, grace_s: float, time: Callable[[], float]) -> None:
        self._grace_s = grace_s
        self._time = time
        self._sessions: dict[str, Session] = {}
        self._active_at = time()
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._at_closing: list[Callable[[], None]] = []

    @asynccontextmanager
    async def attending(self, session_id: str, client: str | None, host_agent: str | None) -> AsyncIterator[None]:
        """The time for which a shim's connection is open."""
        session = self._sessions.setdefault(session_id, Session(session_id, client, host_agent))
        session.client, session.host_agent = client or session.client, host_agent or session.host_agent
        session.connections += 1
        session.left_at = None
        self._stir()
        try:
            yield
        finally:
            session.connections -= 1
            if session.connections == 0:
                session.left_at = self._time()
            self._stir()

    def seen(self) -> None:
        """Something was asked."""
        self._active_at = self._time()

    def sessions(self) -> tuple[Session, ...]:
        """Those that count now; the vanished are reaped first."""
        now = self._time()
        for session in list(self._sessions.values()):
            if session.left_at is not None and now >= session.left_at + self._grace_s:
                self._active_at = max(self._active_at, session.left_at + self._grace_s)
                del self._sessions[session.id]
        return tuple(self._sessions.values())

    def close(self) -> None:
        """The daemon stops: every open connection is let go."""
        self._closing.set()
        self._changed.set()
        for let_go in self._at_closing:
            let_go()

    def when_closing(self, let_go: Callable[[], None]) -> None:
        """Call ``let_go`` when the daemon stops."""
        self._at_closing.append(let_go)

    async def closing(self) -> None:
        """Returns when the daemon stops."""
        await self._closing.wait()

    async def idle_for(self, idle_s: float) -> None:
        """Returns when there has been no session and no request for ``idle_s``."""
        while True:
            self._changed.clear()
            sessions = self.sessions()
            if any(session.left_at is None for session in sessions):
                await self._changed.wait()
                continue
            vanished = [session.left_at + self._grace_s for session in sessions if session.left_at is not None]
            due = max([self._active_at + idle_s, *(moment + idle_s for moment in vanished)])
            if not vanished and due <= self._time():
                return
            try:
                async with asyncio.timeout(max(0.001, due - self._time())):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _stir(self) -> None:
        self._active_at = self._time()
        self._changed.set()
