"""Find memories by association: the keys that fit, and one memory as a preview with the keys that lead on from it.

This is what an agent sees. Changes nothing, except that a --context which repeats a memory word for word confirms it. With --direct
it takes the steps from key to key by itself, as the prompt hook does, and lists the best memories; that strengthens the links it used.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from keymem_daemon.cli.contact import call
from keymem_daemon.cli.explanation import explanation_lines
from keymem_daemon.cli.failure import USAGE, CommandFailed
from keymem_daemon.cli.listing import key_line, trust
from keymem_daemon.cli.terminal import bold, clean, dim, print_json, say, wrapped

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("query", metavar="QUERY", help="one to four short nouns")
    parser.add_argument("--context", metavar="TEXT", help="the situation in plain words; picks the preview")
    parser.add_argument("--namespace", metavar="NAME", help="only this namespace")
    parser.add_argument("--top-k", type=int, metavar="N", help="keys to show (8), or memories with --direct (10)")
    parser.add_argument("--direct", action="store_true", help="list the best memories, with the way to each")
    parser.add_argument("--hops", type=int, metavar="N", help="with --direct: how far to follow shared keys (2)")
    parser.add_argument(
        "--explain", action="store_true", help="also show how each score came about and what was searched"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    body = {
        "query": given.query,
        "context": given.context,
        "namespace": given.namespace,
        "top_k": given.top_k,
        "explain": given.explain or None,
    }
    if given.direct:
        found = call("retrieve", {**body, "hops": given.hops})
    elif given.hops is not None:
        raise CommandFailed("--hops says how far --direct goes", "Add --direct.", USAGE)
    else:
        found = call("recall", body)
    if given.json:
        print_json(found)
    elif given.direct:
        _show_direct(found, explain=given.explain)
    else:
        _show(found, explain=given.explain)
    return 0


def _show(found: Mapping[str, Any], *, explain: bool) -> None:
    if found["status"] == "empty_namespace":
        say("nothing is remembered here yet; `keymemd remember` saves something")
    elif found["status"] == "no_match":
        say("nothing fits")
        for key in found.get("nearest_keys", []):
            say(f"  nearest: {key_line(key)}")
        say(*(dim(line) for line in wrapped(found.get("next_step", ""))))
    for memory in found["memories"]:
        say(*wrapped(memory["content"]))
        say(dim(f"{memory['id']} · {clean(memory['namespace'])} · {trust(memory['validity'])}"))
        if memory.get("content_truncated"):
            say(dim(f"cut here; `keymemd show {memory['id']}` has all of it"))
        if memory.get("auto_confirmed"):
            say(dim("confirmed: the context repeats it"))
        on = [clean(key["concept"]) for key in memory["connected_keys"]]
        say(*wrapped(f"leads on to: {', '.join(on)}"))
        if "explain" in found:
            _show_why(found["explain"])
        say("")
    if found["keys"]:
        say(bold("keys"))
    for key in found["keys"]:
        how = f" · {key['match_type']} {key['score']:.3f}" if explain else ""
        say(f"  {key_line(key)}{dim(how)}")
    _show_limits(found, explain=explain)


def _show_direct(found: Mapping[str, Any], *, explain: bool) -> None:
    if not found["memories"]:
        say("nothing fits")
    for memory in found["memories"]:
        say(*wrapped(memory["content"]))
        over = "".join(f" · over {clean(step['concept'] or 'related memories')}" for step in memory["path"])
        say(dim(f"{memory['id']} · {memory['score']:.4f}{over} · {trust(memory['validity'])}"))
        if explain:
            _show_why(memory["why"])
        say("")
    _show_limits(found, explain=explain)


def _show_why(why: Mapping[str, Any]) -> None:
    for line in explanation_lines(why):
        say(*(dim(part) for part in wrapped(line, "  ")))


def _show_limits(found: Mapping[str, Any], *, explain: bool) -> None:
    if found.get("partial"):
        late = f": no time for {', '.join(found['skipped'])}" if found.get("skipped") else ""
        say(dim(f"the best that was found in time{late}; KEYMEM_RECALL_DEADLINE_MS sets how much there is"))
    if explain:
        searched = found["searched"]
        where = "all namespaces" if searched["namespaces"] is None else ", ".join(searched["namespaces"])
        meaning = f"; search by meaning is {found['semantic']}" if "semantic" in found else ""
        say(dim(f"searched {searched['memory_count']:,} memories of {clean(where)}{meaning}"))
