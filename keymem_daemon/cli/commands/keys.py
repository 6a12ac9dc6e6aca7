"""List keys: hubs first, then by the number of their memories, then by name."""

from __future__ import annotations

import argparse

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.listing import key_line
from keymem_daemon.cli.terminal import clean, dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--namespace", default="*", metavar="NAME", help="only this namespace (all)")
    parser.add_argument("--hubs", action="store_true", help="only keys with many memories")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many (50; at most 100)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="how many to pass over")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    found = call(
        "browse_keys",
        {"namespace": given.namespace, "hubs_only": given.hubs, "limit": given.limit, "offset": given.offset},
    )
    if given.json:
        print_json(found)
        return 0
    for key in found["keys"]:
        say(key_line(key) + dim(f"  {clean(', '.join(key['aliases']))}" if key["aliases"] else ""))
    more = "" if found["next_offset"] is None else f"; more with --offset {found['next_offset']}"
    say(dim(f"{found['key_count']:,} keys, {found['memory_count']:,} memories{more}"))
    return 0
