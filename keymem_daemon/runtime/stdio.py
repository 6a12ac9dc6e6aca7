"""`keymemd stdio`: the same server in one process, on stdin and stdout, where there can be no daemon.

It holds the daemon's lock for life, so two writers on one store cannot happen. Nothing but JSON-RPC appears on stdout: the SDK takes
the descriptor for itself and points the process's own at stderr, so whatever prints, prints there.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from mcp.server.stdio import stdio_server

from keymem_daemon.api.calls import Calls
from keymem_daemon.api.door import Door
from keymem_daemon.api.identity import Claims
from keymem_daemon.api.mcp_server import MemoryServer
from keymem_daemon.api.metrics import Metrics
from keymem_daemon.api.order import SessionOrder
from keymem_daemon.api.tools import Surface
from keymem_daemon.api.work import SharedWork
from keymem_daemon.core.errors import KeymemError
from keymem_daemon.runtime import logs
from keymem_daemon.runtime.assemble import assemble
from keymem_daemon.runtime.clock import SystemClock
from keymem_daemon.runtime.daemon import jobs
from keymem_daemon.runtime.scheduler import Scheduler
from keymem_daemon.runtime.serve import AlreadyRunning, Stopped, held_lock
from keymem_daemon.settings import Settings
from keymem_shim import VERSION, identity

__all__ = ["serve_stdio"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the engine's life and the server share."""

    door: Door
    ended: asyncio.Event


def serve_stdio(settings: Settings) -> Stopped | AlreadyRunning:
    """Serve one client until its stdin ends."""
    lock = held_lock(settings)
    if isinstance(lock, AlreadyRunning):
        return lock
    try:
        logs.set_up(settings.data_dir, on_terminal=False)
        asyncio.run(_life(settings))
        return Stopped()
    finally:
        lock.release()


async def _life(settings: Settings) -> None:
    parts = _Parts(Door(), asyncio.Event())
    calls = Calls(parts.door, SessionOrder(), SharedWork(), Metrics())
    surface = Surface(settings.hook_installed, settings.compat_tools, settings.direct_recall)
    host = identity.host_claim()
    local = Claims(
        session="local",
        host_agent=None if host is None else host.agent,
        host_session=None if host is None else host.session,
        cwd=identity.working_directory() or None,
    )
    memory_server = MemoryServer(calls, surface, VERSION, local)
    async with asyncio.TaskGroup() as group:
        group.create_task(_keep_engine(settings, parts))
        async with calls.work.open(), stdio_server() as (read_stream, write_stream):
            server = memory_server.server
            await server.run(read_stream, write_stream, server.create_initialization_options())
        parts.ended.set()


async def _keep_engine(settings: Settings, parts: _Parts) -> None:
    clock = SystemClock()
    try:
        engine = (await assemble(settings, clock)).engine
        await engine.open()
    except (KeymemError, OSError) as failure:
        logger.exception("the store could not be opened")
        parts.door.fail(failure.message if isinstance(failure, KeymemError) else str(failure))
        return
    scheduler = Scheduler(jobs(engine, settings), clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.background())
        scheduler.start()
        parts.door.open(engine)
        await parts.ended.wait()
        scheduler.stop()
        await engine.close()
