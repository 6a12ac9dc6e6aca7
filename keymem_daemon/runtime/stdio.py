"""`keymemd stdio`: the same server in one process, on stdin and stdout, where there can be no daemon.

It holds the daemon's lock for life, so two writers on one store cannot happen, and leaves a note for whoever wants the directory
meanwhile. Nothing but JSON-RPC appears on stdout: the wire is a private copy of the descriptor (`streams.py`). A line that is no message
is answered with an error, since a client that gets none waits for ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from anyio import AsyncFile
from mcp.server.stdio import stdio_server
from mcp_types import INVALID_REQUEST

from keymem_daemon.api.calls import Calls
from keymem_daemon.api.door import Door
from keymem_daemon.api.envelope import refused
from keymem_daemon.api.identity import Claims
from keymem_daemon.api.mcp_server import MemoryServer
from keymem_daemon.api.metrics import Metrics
from keymem_daemon.api.order import SessionOrder
from keymem_daemon.api.security import BODY_BYTES, without_lone_surrogates
from keymem_daemon.api.tools import Surface
from keymem_daemon.api.work import SharedWork
from keymem_daemon.core.errors import KeymemError
from keymem_daemon.runtime import logs
from keymem_daemon.runtime.assemble import STORE_FILE, assemble, surroundings
from keymem_daemon.runtime.clock import SystemClock
from keymem_daemon.runtime.daemon import STOP_S, jobs
from keymem_daemon.runtime.footing import Footing
from keymem_daemon.runtime.scheduler import Scheduler
from keymem_daemon.runtime.serve import AlreadyRunning, CouldNotWrite, Stopped, held_lock
from keymem_daemon.runtime.streams import Streams
from keymem_daemon.settings import Settings
from keymem_shim import VERSION, holder, identity, rendezvous

__all__ = ["serve_stdio"]

logger = logging.getLogger(__name__)


class _Wire:
    """The output: whole lines, one at a time."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._turn = asyncio.Lock()

    async def write(self, text: str) -> None:
        """Write ``text``, which ends a line, and flush it."""
        async with self._turn:
            await asyncio.to_thread(self._put, text.encode("utf-8"))

    async def flush(self) -> None:
        """Nothing is left to flush."""

    def _put(self, line: bytes) -> None:
        self._out.write(line)
        self._out.flush()


class _Lines:
    """The input: lines that hold one JSON object; what else comes is answered on the wire."""

    def __init__(self, source: BinaryIO, wire: _Wire) -> None:
        self._source = source
        self._wire = wire

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        while line := await asyncio.to_thread(self._source.readline, BODY_BYTES + 1):
            refusal = _refusal(line)
            if refusal is None:
                return without_lone_surrogates(line).decode("utf-8")
            if len(line) > BODY_BYTES:
                await asyncio.to_thread(self._skip_line, line)
            await self._wire.write(refusal)
        raise StopAsyncIteration

    def _skip_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._source.readline(BODY_BYTES)


def _refusal(line: bytes) -> str | None:
    """The answer to a line that is no message, or ``None`` when it is one."""
    if len(line) > BODY_BYTES:
        error = {"code": INVALID_REQUEST, "message": f"the line is longer than {BODY_BYTES:,} bytes"}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}) + "\n"
    answer = refused(line)
    return None if answer is None else json.dumps(answer) + "\n"


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the engine's life and the server share."""

    door: Door
    ended: asyncio.Event
    footing: Footing


def serve_stdio(settings: Settings, streams: Streams) -> Stopped | AlreadyRunning | CouldNotWrite:
    """Serve one client until its stdin ends."""
    try:
        lock = held_lock(settings)
    except OSError as failure:
        return CouldNotWrite(str(failure))
    if isinstance(lock, AlreadyRunning):
        return lock
    footing = Footing()
    footing.rest_on(rendezvous.lock_path(str(settings.data_dir)))
    try:
        _leave_note(settings.data_dir)
        logs.set_up(settings.data_dir, on_terminal=False)
        asyncio.run(_life(settings, footing, streams))
        return Stopped()
    finally:
        _note(settings.data_dir).unlink(missing_ok=True)
        lock.release()


def _note(data_dir: Path) -> Path:
    return Path(holder.note_path(str(data_dir)))


def _leave_note(data_dir: Path) -> None:
    with suppress(OSError):  # without it others wait longer before they are told less
        descriptor = os.open(_note(data_dir), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"%d\n" % os.getpid())


async def _life(settings: Settings, footing: Footing, streams: Streams) -> None:
    parts = _Parts(Door(), asyncio.Event(), footing)
    calls = Calls(
        parts.door,
        SessionOrder(),
        SharedWork(),
        Metrics(),
        surroundings(settings, SystemClock(), one_client=True),
        footing.require,
    )
    surface = Surface(settings.hook_installed, settings.compat_tools, settings.direct_recall)
    host = identity.host_claim()
    local = Claims(
        session="local",
        host_agent=None if host is None else host.agent,
        host_session=None if host is None else host.session,
        cwd=identity.working_directory() or None,
        homes=dict(identity.host_homes()),
    )
    wire = _Wire(streams.out)
    # The transport only iterates over the one and writes to the other.
    lines, written = cast("AsyncFile[str]", _Lines(streams.source, wire)), cast("AsyncFile[str]", wire)
    memory_server = MemoryServer(calls, surface, VERSION, local)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(_keep_engine(settings, parts))
        leaving = group.create_task(_leave_on_signal(parts, keeping, settings.data_dir))
        async with calls.work.open(), stdio_server(lines, written) as (read_stream, write_stream):
            server = memory_server.server
            await server.run(read_stream, write_stream, server.create_initialization_options())
        leaving.cancel()
        parts.ended.set()


async def _leave_on_signal(parts: _Parts, keeping: asyncio.Task[None], data_dir: Path) -> None:
    """On SIGTERM or SIGINT close the store and exit: a thread that waits for input cannot be asked to stop."""
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    await signalled.wait()
    parts.ended.set()
    await asyncio.wait([keeping], timeout=STOP_S)
    _note(data_dir).unlink(missing_ok=True)
    logging.shutdown()
    os._exit(0)


async def _keep_engine(settings: Settings, parts: _Parts) -> None:
    clock = SystemClock()
    try:
        engine = (await assemble(settings, clock, parts.door.wait_for)).engine
        await engine.open()
        parts.footing.rest_on(settings.data_dir / STORE_FILE)
    except (KeymemError, OSError) as failure:
        logger.error("the store could not be opened: %s", failure)  # noqa: TRY400 - what the disk or the settings say needs no traceback
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
