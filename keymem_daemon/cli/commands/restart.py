"""Stop the daemon where one runs, then start it in the background; prints its process id.

Open sessions of agents notice nothing but a pause. This is how changed settings come into force.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli import process
from keymem_daemon.cli.commands import start, stop

__all__ = ["configure", "run"]

configure = start.configure


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    stop.end()
    start.report(process.started(), given.json, "started")
    return 0
