"""Carrying out a plan for this machine, and saying what became of it."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from keymem_daemon.cli.clients import files
from keymem_daemon.cli.clients.plan import Foreign, Plan, Unreadable
from keymem_daemon.cli.clients.table import CLIENTS, Client, Machine
from keymem_daemon.cli.failure import USAGE, CommandFailed
from keymem_daemon.cli.terminal import dim, print_json, say
from keymem_daemon.runtime.clock import SystemClock
from keymem_shim.identity import daemon_environment

__all__ = ["carry_out", "chosen", "foreign", "this_machine", "unreadable"]


def chosen(name: str) -> Client:
    """The client of that name. Raises `CommandFailed`."""
    for client in CLIENTS:
        if client.name == name.strip().lower():
            return client
    known = ", ".join(client.name for client in CLIENTS)
    raise CommandFailed(f"there is no client {name!r}", f"Known are {known}.", USAGE)


def this_machine() -> Machine:
    """The machine and person that the command runs for."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - as the clients find it
    return Machine(home, daemon_environment(), sys.platform, files.read)


def carry_out(client: Client, plan: Plan, *, as_json: bool) -> None:
    """Write the files of ``plan`` and print what was done. Raises `CommandFailed`."""
    now = datetime.fromtimestamp(SystemClock().now(), UTC)
    copies = {path: files.replace(path, plan.before[path], plan.after[path], now) for path in plan.touched}
    if as_json:
        changes = [
            {"what": change.what, "outcome": change.outcome, "path": str(change.piece.path)} for change in plan.changes
        ]
        written = [{"path": str(path), "copy": copy and str(copy)} for path, copy in copies.items()]
        print_json({"client": client.name, "changes": changes, "files": written})
        return
    for change in plan.changes:
        where = "from" if change.outcome == "removed" else "in"
        say(f"{client.title}: {change.what} {change.outcome} {where} {change.piece.path}")
    for copy in copies.values():
        if copy is not None:
            say(dim(f"what was there before is in {copy}"))


def unreadable(problem: Unreadable, client: Client) -> CommandFailed:
    """The failure, with what a person can do by hand."""
    return CommandFailed(
        str(problem), f"Change it by hand: `keymemd install {client.name} --print` shows what belongs there."
    )


def foreign(problem: Foreign, client: Client) -> CommandFailed:
    """The failure, with the ways out."""
    step = f"Rename or remove that one, or compare it with `keymemd install {client.name} --print`."
    return CommandFailed(str(problem), step)
