"""Write the MCP server and, where the client has one, the prompt hook into a client's own configuration.

Everything else in its files stays as it is; a copy is kept beside each file that changes (NAME.bak.TIME). Doing it twice is the
same as doing it once. An entry that is not ours is never overwritten. --print only shows what would be written, and where.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli.clients.carry import carry_out, chosen, foreign, this_machine, unreadable
from keymem_daemon.cli.clients.entry import found_commands
from keymem_daemon.cli.clients.plan import Change, Foreign, Unreadable, installation, plugin_of
from keymem_daemon.cli.clients.table import CLIENTS, Client
from keymem_daemon.cli.terminal import bold, dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("client", metavar="CLIENT", help=", ".join(client.name for client in CLIENTS))
    parser.add_argument("--print", action="store_true", help="only show what would be written, and where")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    client, machine, commands = chosen(given.client), this_machine(), found_commands()
    if given.print:
        _show(client, [Change(piece, "added") for piece in client.pieces(machine, commands)], as_json=given.json)
        return 0
    plugin = plugin_of(client, machine)
    if plugin is not None:
        if given.json:
            print_json({"client": client.name, "plugin": plugin, "changes": [], "files": []})
        else:
            say(f"{client.title} has the plugin {plugin}, which brings the server and the hook; nothing was written")
        return 0
    try:
        plan = installation(client, machine, commands)
    except Unreadable as problem:
        if not given.json:
            say(problem.change.snippet.strip())
        raise unreadable(problem, client) from None
    except Foreign as problem:
        raise foreign(problem, client) from None
    carry_out(client, plan, as_json=given.json)
    if not given.json:
        say(dim(client.then))
    return 0


def _show(client: Client, changes: list[Change], *, as_json: bool) -> None:
    if as_json:
        pieces = [{"what": c.what, "path": str(c.piece.path), "snippet": c.snippet} for c in changes]
        print_json({"client": client.name, "pieces": pieces})
        return
    for change in changes:
        say(bold(f"{change.what}, in {change.piece.path}:"), change.snippet.strip(), "")
    say(dim("Nothing was written."))
