"""The start of the daemon: lock, log, listen; then, with what takes long to import, its life (`daemon.py`).

The lock comes first and is held for life; a lock that is taken is an outcome, not an error. Nothing heavy is imported before it is
held and the socket is bound, so that of two daemons that start at once the second knows within a moment.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from filelock import FileLock, Timeout

from keymem_daemon.runtime import logs
from keymem_daemon.runtime.collector import keep_pauses_short
from keymem_daemon.runtime.footing import Footing
from keymem_daemon.runtime.publish import listen, require_publishable
from keymem_daemon.settings import Settings
from keymem_shim import holder, rendezvous

__all__ = ["AlreadyRunning", "CouldNotListen", "CouldNotWrite", "StartedBy", "Stopped", "held_lock", "serve"]

StartedBy = Literal["shim", "person", "service"]

LOCK_TRY_S: Final = 0.05
HANDOVER_S: Final = 4.0
OPEN_FILES: Final = 4_096


@dataclass(frozen=True, slots=True)
class Stopped:
    """The daemon ran and has ended as it should."""


@dataclass(frozen=True, slots=True)
class AlreadyRunning:
    """Another process holds the data directory: a daemon, one that does not say who it is, or one that serves ``alone``."""

    data_dir: str
    pid: int | None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class CouldNotListen:
    """There is nowhere to listen, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class CouldNotWrite:
    """The data directory does not take what a daemon has to write there, and why."""

    reason: str


def held_lock(settings: Settings) -> FileLock | AlreadyRunning:
    """The lock on the data directory, taken; or who has it. Makes the directory.

    While a holder does not answer it is starting or stopping: a stopping one is waited for, since it is gone in a moment. What a
    single-process server that is gone has left behind is taken away.
    """
    directory = str(settings.data_dir)
    rendezvous.prepare_data_dir(directory)
    lock = FileLock(rendezvous.lock_path(directory), mode=0o600)
    began = time.monotonic()
    while True:
        try:
            lock.acquire(timeout=LOCK_TRY_S)
        except Timeout:
            found = rendezvous.probe(directory)
            if not isinstance(found, rendezvous.Unreachable):
                return AlreadyRunning(directory, found.discovery.pid)
            waited = time.monotonic() - began
            pid = holder.single_server(directory)
            if pid is not None and waited >= holder.ALONE_S:
                return AlreadyRunning(directory, pid, alone=True)
            if waited >= HANDOVER_S:
                return AlreadyRunning(directory, None)
        else:
            with suppress(OSError):
                Path(holder.note_path(directory)).unlink(missing_ok=True)
            return lock


def serve(
    settings: Settings, started_by: StartedBy, *, on_terminal: bool
) -> Stopped | AlreadyRunning | CouldNotListen | CouldNotWrite:
    """Be the daemon of the data directory until told to stop."""
    try:
        lock = held_lock(settings)
    except OSError as failure:
        return CouldNotWrite(str(failure))
    if isinstance(lock, AlreadyRunning):
        return lock
    footing = Footing()
    footing.rest_on(rendezvous.lock_path(str(settings.data_dir)))
    with ExitStack() as held:
        held.callback(lock.release)
        try:
            logs.set_up(settings.data_dir, on_terminal=on_terminal)
            require_publishable(settings.data_dir)
        except OSError as failure:
            return CouldNotWrite(str(failure))
        _allow_files()
        try:
            listening = listen(settings.data_dir, settings.daemon_port)
        except OSError as failure:
            return CouldNotListen(str(failure))
        held.callback(listening.close)
        # A second of imports makes objects that live as long as the process: the collector need not look at them, now or later.
        gc.disable()
        from keymem_daemon.runtime.daemon import live  # noqa: PLC0415 - see the module's rule

        gc.freeze()
        gc.enable()
        held.callback(keep_pauses_short())
        unpublished = asyncio.run(live(settings, started_by, listening, footing))
        return Stopped() if unpublished is None else CouldNotWrite(unpublished)


def _allow_files() -> None:
    """Raise the soft limit of open files: every session holds a connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
