"""The exit codes of a process that was, or was not to be, the server."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import assert_never

from keymem_daemon.runtime.serve import AlreadyRunning, CouldNotListen, CouldNotWrite, Stopped
from keymem_shim.holder import said_of

__all__ = ["ALREADY_RUNNING", "COULD_NOT_LISTEN", "COULD_NOT_WRITE", "exit_code"]

ALREADY_RUNNING = 3
COULD_NOT_LISTEN = 4
COULD_NOT_WRITE = 5


def exit_code(outcome: Stopped | AlreadyRunning | CouldNotListen | CouldNotWrite) -> int:
    """The code for ``outcome``, after one line on stderr where it is not the wanted one."""
    match outcome:
        case Stopped():
            return 0
        case AlreadyRunning(directory, int(pid), alone=True):
            _complain(f"{said_of(directory, pid)}; nothing was started")
            return ALREADY_RUNNING
        case AlreadyRunning(directory, pid):
            holder = "another process" if pid is None else f"the daemon with pid {pid}"
            _complain(f"{holder} already serves {directory}; nothing was started")
            return ALREADY_RUNNING
        case CouldNotListen(reason):
            _complain(f"cannot listen: {reason}")
            return COULD_NOT_LISTEN
        case CouldNotWrite(reason):
            _complain(f"the data directory cannot be written to: {reason}")
            return COULD_NOT_WRITE
        case _:
            assert_never(outcome)


def _complain(line: str) -> None:
    """Past the buffer of stderr: where that is a log on a full disk, what stays in it spoils the exit code."""
    with suppress(OSError):
        os.write(2, f"keymemd: {line}\n".encode("utf-8", "backslashreplace"))
