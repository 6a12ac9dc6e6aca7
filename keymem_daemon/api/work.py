"""Work that outlives the connection that asked for it, and is done once however often it is asked for.

A client may vanish or send a request again while the first one still runs. A write is therefore run in a task of its own: who
asks again under the same name waits for the same task, and nobody's disappearance stops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from keymem_daemon.core.errors import Unavailable

__all__ = ["SharedWork"]

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class SharedWork:
    """Tasks by name, as long as they run."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[Result | _Failed]] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The time in which work is taken; leaving waits for what still runs."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None

    async def run(self, name: str | None, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of ``work``, or of the work that already runs under this ``name``."""
        task = self._running.get(name) if name is not None else None
        if task is None:
            if self._group is None:
                raise Unavailable("the daemon is stopping", "Send the request again; another daemon will answer it.")
            task = self._group.create_task(_outcome(work))
            if name is not None:
                self._running[name] = task
                task.add_done_callback(lambda _task: self._running.pop(name, None))
        outcome = await asyncio.shield(task)
        if isinstance(outcome, _Failed):
            raise outcome.error
        return outcome


async def _outcome(work: Callable[[], Awaitable[Result]]) -> Result | _Failed:
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - handed to everyone who waits for this work
        return _Failed(error)
