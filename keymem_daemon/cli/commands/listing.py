"""List memories, a page of them, without counting as a read."""

from __future__ import annotations

import argparse

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.listing import memory_lines
from keymem_daemon.cli.terminal import dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--namespace", metavar="NAME", help="only this namespace")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (20; at most 100)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="how many to pass over")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    found = call("list", {"namespace": given.namespace, "limit": given.limit, "offset": given.offset})
    if given.json:
        print_json(found)
        return 0
    for memory in found["memories"]:
        say(*memory_lines(memory))
    more = "" if found["next_offset"] is None else f"; more with --offset {found['next_offset']}"
    say(dim(f"{found['total']:,} memories{more}"))
    return 0
