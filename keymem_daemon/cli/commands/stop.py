"""Stop the daemon: it finishes what is in flight, flushes and exits; returns when it is gone.

Where none runs there is nothing to do and that is no failure. An agent's session that is open starts it again with its next call.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli import process
from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.cli.terminal import print_json, say
from keymem_shim import rendezvous

__all__ = ["configure", "end", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    pid = end()
    if given.json:
        print_json({"stopped": pid is not None, "pid": pid})
    else:
        say("no daemon was running" if pid is None else f"stopped: pid {pid}")
    return 0


def end() -> int | None:
    """Stop the daemon there is; its process id, or ``None`` when there was none. Raises `CommandFailed`."""
    directory = rendezvous.data_dir()
    found = rendezvous.probe(directory)
    if not isinstance(found, rendezvous.Unreachable):
        process.stopped(found.discovery)
        return found.discovery.pid
    if process.is_held(directory):
        discovery = rendezvous.read_discovery(directory)
        who = "a process" if discovery is None else f"the process that was pid {discovery.pid}"
        raise CommandFailed(
            f"{who} holds {directory} and does not answer",
            "It may be starting or stopping: try again in some seconds, then end the process by hand.",
        )
    return None
