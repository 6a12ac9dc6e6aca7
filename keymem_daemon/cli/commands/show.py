"""Show a memory or a key in full, active or not. Does not count as a read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.listing import key_line, trust
from keymem_daemon.cli.terminal import bold, clean, dim, print_json, say, wrapped, yellow

__all__ = ["configure", "run", "show_memory"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("id", metavar="ID", help="a memory's or a key's")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    found = call("show", {"id": given.id})
    if given.json:
        print_json(found)
    elif "memory" in found:
        show_memory(found)
    else:
        _show_key(found)
    return 0


def show_memory(found: Mapping[str, Any]) -> None:
    """Text, keys and facts."""
    memory = found["memory"]
    say(*wrapped(memory["content"]))
    say(dim(f"{memory['id']} · {clean(memory['namespace'])} · {trust(found['validity'])}"))
    if memory["superseded_by"]:
        say(yellow(f"superseded by {memory['superseded_by']}"))
    elif not found["active"]:
        say(yellow("not active any more"))
    if memory["supersedes"]:
        say(f"supersedes {memory['supersedes']}")
    say(f"saved {memory['created_at']}, read {memory['access_count']} times, depth {memory['depth']:g}")
    if memory["expires_at"]:
        say(f"will be deleted {memory['expires_at']}")
    source = ", ".join(f"{clean(name)} {clean(value)}" for name, value in memory["source"].items())
    if source:
        say(f"source: {source}")
    say(bold("keys"), *(f"  {key_line(key)}" for key in found["keys"]))


def _show_key(found: Mapping[str, Any]) -> None:
    key = found["key"]
    say(key_line(key), f"type {key['key_type']}")
    if key["aliases"]:
        say(f"also: {clean(', '.join(key['aliases']))}")
    say(bold("memories"))
    for memory in found["memories"]:
        state = "" if memory["active"] else ", not active"
        say(f"  {memory['memory_id']} (link {memory['link_weight']:g}{state})")
