"""Delete a memory for good, with every trace of its text, history included. Cannot be undone.

Shows the memory and asks first; --yes does not ask, and is needed where nobody can answer.
"""

from __future__ import annotations

import argparse
import sys

from keymem_daemon.cli.commands.show import show_memory
from keymem_daemon.cli.contact import call
from keymem_daemon.cli.failure import FAILED, USAGE, CommandFailed
from keymem_daemon.cli.terminal import bold, dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("id", metavar="ID", help="the memory's")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    if not given.yes and not _confirmed(given.id):
        say("nothing was deleted")
        return FAILED
    found = call("forget", {"memory_id": given.id, "namespace": "*"})
    if given.json:
        print_json(found)
    else:
        say(f"deleted: {found['deleted']}", dim(found.get("note", "")))
    return 0


def _confirmed(memory_id: str) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed("deleting for good needs a yes and nobody can be asked here", "Add --yes.", USAGE)
    found = call("show", {"id": memory_id})
    if "memory" not in found:
        raise CommandFailed(f"{memory_id} is a key, and only memories are deleted", "`keymemd list` shows their ids.")
    show_memory(found)
    try:
        answer = input(bold("Delete it for good? [y/N] "))
    except EOFError:
        say()
        return False
    return answer.strip().lower() in ("y", "yes")
