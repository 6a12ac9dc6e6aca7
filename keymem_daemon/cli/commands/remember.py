"""Save a memory: one self-contained fact, under 3 to 6 short and diverse keys by which it should be found.

Prints the memory's id, and hints about the keys where there are any. The text `-` is read from standard input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from keymem_daemon.cli.contact import call, refused
from keymem_daemon.cli.failure import USAGE, CommandFailed
from keymem_daemon.cli.terminal import clean, dim, print_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("text", metavar="TEXT", help="the fact; - reads it from standard input")
    parser.add_argument("-k", "--key", action="append", default=[], metavar="KEY", help="a key; repeat for each")
    parser.add_argument("--namespace", metavar="NAME", help="the project or context (default)")
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="KEY=TYPE",
        help="type of a key: concept, name or proper_noun; names match only literally",
    )
    parser.add_argument("--ttl", type=float, metavar="SECONDS", help="delete it after this long")
    parser.add_argument(
        "--profile", choices=("transient", "standard", "stable", "permanent"), help="how fast it ages (standard)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    item = {
        "content": sys.stdin.read() if given.text == "-" else given.text,
        "keys": given.key,
        "key_types": dict(_typed(word) for word in given.type) or None,
        "namespace": given.namespace,
        "ttl_seconds": given.ttl,
        "decay_profile": given.profile,
    }
    result = call("remember", {"items": [{name: value for name, value in item.items() if value is not None}]})
    (saved,) = result["results"]
    if "error" in saved:
        raise refused(saved["error"])
    if given.json:
        print_json(saved)
        return 0
    say(f"{'known already' if saved.get('deduplicated') else 'saved'}: {saved['saved']}")
    say(*(dim(line) for line in _hints(saved.get("hints", {}))))
    return 0


def _typed(word: str) -> tuple[str, str]:
    key, equals, kind = word.rpartition("=")
    if not equals or not key:
        raise CommandFailed(f"--type takes KEY=TYPE, not {word!r}", "For example --type 'Ada=name'.", USAGE)
    return key, kind


def _hints(hints: Mapping[str, Any]) -> list[str]:
    lines = [
        f"the key {clean(near['your_key'])} is close to the known key {clean(near['existing_concept'])}"
        for near in hints.get("near_keys", [])
    ]
    if phrases := hints.get("phrase_keys"):
        lines.append(f"long keys are hard to reach, shorter ones are better: {clean(', '.join(phrases))}")
    if dropped := hints.get("dropped_keys"):
        lines.append(f"unusable keys were left out: {clean(', '.join(map(repr, dropped)))}")
    if language := hints.get("language_note"):
        lines.append(clean(language))
    return lines
