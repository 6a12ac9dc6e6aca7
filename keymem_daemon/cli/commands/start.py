"""Start the daemon in the background and wait until it answers; prints its process id.

A daemon started like this stays until it is stopped; one that an agent's session started leaves when it is idle. Where one runs
already nothing is started.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli import process
from keymem_daemon.cli.terminal import print_json, say
from keymem_shim import rendezvous

__all__ = ["configure", "report", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    found = process.found_or_free(rendezvous.data_dir())
    if found is None:
        report(process.started(), given.json, "started")
    else:
        report(found, given.json, "already running")
    return 0


def report(discovery: rendezvous.Discovery, as_json: bool, what: str) -> None:
    """Say which daemon there is now."""
    if as_json:
        print_json({"pid": discovery.pid, "started": what == "started", "version": discovery.version})
    else:
        say(f"{what}: keymemd {discovery.version}, pid {discovery.pid}")
