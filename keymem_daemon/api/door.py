"""The way to the engine, which opens after the daemon already listens.

Requests that need it wait here, for a bounded time; what can be said without it never does.
"""

from __future__ import annotations

import asyncio

from keymem_daemon.core.errors import Unavailable
from keymem_daemon.core.model import Scope
from keymem_daemon.service.engine import Engine

__all__ = ["Door"]


class Door:
    """Closed until `open` or `fail`, then for good. ``wait_s`` bounds what a request waits."""

    def __init__(self, wait_s: float = 25.0) -> None:
        self._wait_s = wait_s
        self._engine: Engine | None = None
        self._problem: str | None = None
        self._waiting_for: str | None = None
        self._decided = asyncio.Event()

    def open(self, engine: Engine) -> None:
        """The engine is ready."""
        self._engine = engine
        self._decided.set()

    def fail(self, problem: str) -> None:
        """There will be no engine, and why."""
        self._problem = problem
        self._decided.set()

    def wait_for(self, what: str) -> None:
        """Opening is held up by ``what``. May be called on any thread."""
        self._waiting_for = what

    @property
    def waiting_for(self) -> str | None:
        """What opening is held up by, if it is and has not ended."""
        return None if self._decided.is_set() else self._waiting_for

    @property
    def problem(self) -> str | None:
        """Why there is no engine, if there will be none."""
        return self._problem

    def opened(self) -> Engine | None:
        """The engine if it is ready now."""
        return self._engine

    def counts(self, scope: Scope = None) -> dict[str, int] | None:
        """How many keys, memories and links the scope has, or ``None`` while nobody can tell."""
        return None if self._engine is None else self._engine.counts(scope)

    async def engine(self) -> Engine:
        """The engine, once it is ready; raises `Unavailable`."""
        if self._engine is None:
            try:
                async with asyncio.timeout(self._wait_s):
                    await self._decided.wait()
            except TimeoutError:
                why = "" if self._waiting_for is None else f": {self._waiting_for}"
                raise Unavailable(f"the store is still being opened{why}", "Try again in a moment.") from None
        if self._engine is None:
            raise Unavailable(
                f"the store could not be opened: {self._problem}",
                "Mend that, then run `keymemd restart`; `keymemd logs` has more.",
            )
        return self._engine
