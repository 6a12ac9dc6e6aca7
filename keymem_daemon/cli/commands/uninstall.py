"""Take the MCP server and the prompt hook out of a client's configuration again: what is ours and nothing else.

A file that nobody changed since gets back the bytes it had before `install`; one that `install` made and that holds nothing else is
removed. A copy is kept beside each other file that changes (NAME.bak.TIME). Memories stay where they are.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli.clients import files
from keymem_daemon.cli.clients.carry import carry_out, chosen, foreign, this_machine, unreadable
from keymem_daemon.cli.clients.entry import named_commands
from keymem_daemon.cli.clients.plan import Foreign, Unreadable, plugin_of, removal
from keymem_daemon.cli.clients.table import CLIENTS
from keymem_daemon.cli.terminal import say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("client", metavar="CLIENT", help=", ".join(client.name for client in CLIENTS))
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    client, machine = chosen(given.client), this_machine()
    try:
        plan = removal(client, machine, named_commands(), files.copies)
    except Unreadable as problem:
        raise unreadable(problem, client) from None
    except Foreign as problem:
        raise foreign(problem, client) from None
    carry_out(client, plan, as_json=given.json)
    plugin = plugin_of(client, machine)
    if plugin is not None and not given.json:
        say(f"{client.title} still has the plugin {plugin}; it takes that out itself")
    return 0
