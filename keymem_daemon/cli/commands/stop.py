"""Stop the daemon: it finishes what is in flight, flushes and exits; returns when it is gone.

Where none runs there is nothing to do and that is no failure. An agent's session that is open starts it again with its next call.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli import process
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
    discovery = process.found_or_free(rendezvous.data_dir())
    if discovery is None:
        return None
    process.stopped(discovery)
    return discovery.pid
