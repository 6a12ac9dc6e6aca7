"""Show who changed what and when, newest first: of one memory or key, or of everything."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.cli.listing import cut
from keymem_daemon.cli.terminal import bold, clean, columns, dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("id", metavar="ID", nargs="?", help="a memory's or a key's; all when left out")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many changes (50)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    found = call("history", {"id": given.id, "limit": given.limit})
    if given.id and not found["changes"]:
        raise CommandFailed(
            f"there is no memory or key {clean(given.id)[:60]!r}, and there was none",
            "`keymemd list` and `keymemd keys` show the ids.",
        )
    if given.json:
        print_json(found)
        return 0
    for (at, action, who), changes in groupby(found["changes"], _commit):
        say(f"{at}  {bold(action)} {dim(cut(who, 40))}")
        for change in changes:
            what = f"  {change['entity']} {change['entity_id']}"
            say(what + dim(cut(f"  {_said(change)}", columns() - len(what))))
    if not found["changes"]:
        say("no change is recorded")
    return 0


def _commit(change: Mapping[str, Any]) -> tuple[str, str, str]:
    """What changes have in common that happened together."""
    actor = change["actor"]
    agent = actor.get("host_agent")
    return change["at"], change["action"], f"by {agent}" if agent else f"through {actor.get('tool') or 'keymem itself'}"


def _said(change: Mapping[str, Any]) -> str:
    """The text that a change left, or what it took away."""
    after, before = change["after"] or {}, change["before"] or {}
    text = after.get("content") or after.get("concept") or before.get("content") or before.get("concept")
    return str(text or change["note"] or "")
