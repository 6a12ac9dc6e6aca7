"""`keymemd run` and `keymemd stdio`: be the server until told to stop."""

from __future__ import annotations

import sys
from typing import assert_never

from keymem_daemon.runtime.serve import AlreadyRunning, CouldNotListen, StartedBy, Stopped, serve
from keymem_daemon.settings import current_settings

__all__ = ["run", "stdio"]

ALREADY_RUNNING = 3
COULD_NOT_LISTEN = 4


def run(started_by: StartedBy) -> int:
    """Be the daemon; 0 when it ended as it should, 3 when another one runs, 4 when it can listen nowhere."""
    on_terminal = started_by == "person" and sys.stderr.isatty()
    return _exit_code(serve(current_settings(), started_by, on_terminal=on_terminal))


def stdio() -> int:
    """Serve one client on stdin and stdout; exit codes as `run`."""
    from keymem_daemon.runtime.stdio import serve_stdio  # noqa: PLC0415 - only this command needs the transport

    return _exit_code(serve_stdio(current_settings()))


def _exit_code(outcome: Stopped | AlreadyRunning | CouldNotListen) -> int:
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
