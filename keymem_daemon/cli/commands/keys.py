"""List keys: hubs first, then by the number of their memories, then by name.

In a directory that is mapped to namespaces, the keys of each of them.
"""

from __future__ import annotations

import argparse

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.listing import key_line
from keymem_daemon.cli.terminal import bold, clean, dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--namespace", metavar="NAME", help="only this namespace; * for all (else those of the working directory)")
    parser.add_argument("--hubs", action="store_true", help="only keys with many memories")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many (50; at most 100)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="how many to pass over")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    names = [given.namespace] if given.namespace else call("stats", {})["searched"]["namespaces"] or ["*"]
    page = {"hubs_only": given.hubs, "limit": given.limit, "offset": given.offset}
    found = [call("browse_keys", {**page, "namespace": name}) for name in names]
    if given.json:
        print_json(found[0] if len(found) == 1 else {"namespaces": found})
        return 0
    for one in found:
        if len(found) > 1:
            say(bold(clean(one["namespace"])))
        for key in one["keys"]:
            say(key_line(key) + dim(f"  {clean(', '.join(key['aliases']))}" if key["aliases"] else ""))
        more = "" if one["next_offset"] is None else f"; more with --offset {one['next_offset']}"
        say(dim(f"{one['key_count']:,} keys, {one['memory_count']:,} memories{more}"))
    return 0
