"""Count memories, keys, hubs and links, and the memories of each namespace."""

from __future__ import annotations

import argparse

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.listing import key_line
from keymem_daemon.cli.terminal import bold, clean, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--namespace", metavar="NAME", help="only this namespace")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    found = call("stats", {"namespace": given.namespace})
    if given.json:
        print_json(found)
        return 0
    links = f", {found['link_count']:,} links" if "link_count" in found else ""
    say(f"{found['memory_count']:,} memories, {found['key_count']:,} keys ({found['hub_count']:,} hubs){links}")
    if found["namespaces"]:
        say(bold("namespaces"), *(f"  {clean(name)}: {count:,}" for name, count in found["namespaces"].items()))
    if found["top_keys"]:
        say(bold("most used keys"), *(f"  {key_line(key)}" for key in found["top_keys"]))
    return 0
