"""The exit codes of a process that was, or was not to be, the server."""

from __future__ import annotations

import sys
from typing import assert_never

from keymem_daemon.runtime.serve import AlreadyRunning, CouldNotListen, Stopped

__all__ = ["ALREADY_RUNNING", "COULD_NOT_LISTEN", "exit_code"]

ALREADY_RUNNING = 3
COULD_NOT_LISTEN = 4


def exit_code(outcome: Stopped | AlreadyRunning | CouldNotListen) -> int:
    """The code for ``outcome``, after one line on stderr where it is not the wanted one."""
    match outcome:
        case Stopped():
            return 0
        case AlreadyRunning(directory, pid):
            holder = "another process" if pid is None else f"the daemon with pid {pid}"
            print(f"keymemd: {holder} already serves {directory}; nothing was started", file=sys.stderr)
            return ALREADY_RUNNING
        case CouldNotListen(reason):
            print(f"keymemd: cannot listen: {reason}", file=sys.stderr)
            return COULD_NOT_LISTEN
        case _:
            assert_never(outcome)
