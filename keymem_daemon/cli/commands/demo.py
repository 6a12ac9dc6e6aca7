"""See it work: save three memories through the real shim, then walk from Newton to strawberries over the keys they share.

Uses your own daemon and the namespace `demo`; the three memories delete themselves after a day, and --clean deletes them now.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from keymem_daemon.cli.contact import call, reached
from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.cli.terminal import bold, clean, dim, green, note, print_json, say, wrapped
from keymem_shim import identity, rendezvous

__all__ = ["MEMORIES", "NAMESPACE", "configure", "run"]

NAMESPACE: Final = "demo"
TTL_S: Final = 86_400
WAIT_S: Final = 30.0
NEWTON: Final = "Newton worked out gravity after he saw an apple fall."
APPLE: Final = "An apple is a fruit that keeps well over the winter."
STRAWBERRY: Final = "The user likes strawberries more than any other fruit."
MEMORIES: Final[Mapping[str, Sequence[str]]] = {
    NEWTON: ("Newton", "apple", "gravity"),
    APPLE: ("apple", "fruit", "winter"),
    STRAWBERRY: ("strawberry", "fruit", "preference"),
}
STEPS_ON: Final = """\
Connect your agent, once:
  claude mcp add keymem -- {shim}
  codex mcp add keymem -- {shim}
Then look at what it remembers with `{keymemd} list`, `{keymemd} recall QUERY` and `{keymemd} status`.
`{keymemd} demo --clean` deletes the three memories of this demo; a day from now they delete themselves."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--clean", action="store_true", help="delete the memories of the demo")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    if given.clean:
        return _clean(as_json=given.json)
    shim = _shim()
    note("starting the daemon where none runs …")
    pid = reached().pid
    if not given.json:
        say(f"The daemon answers (pid {pid}, data in {rendezvous.data_dir()}).")
        say(f"Three memories go in through {shim}, as an agent's would:")
        for content, keys in MEMORIES.items():
            say(*wrapped(content, "  "), dim(f"    keys: {', '.join(keys)}"))
    hops = asyncio.run(_walked(shim))
    if given.json:
        print_json({"pid": pid, "namespace": NAMESPACE, "hops": [hop.view() for hop in hops]})
        return 0
    say("", "Now the question is only “Newton”:")
    for number, hop in enumerate(hops, 1):
        say("", bold(f"{number}. {hop.call}"), *wrapped(hop.why, "   "))
        say(*(green(line) for line in wrapped(hop.found, "   → ")))
    say("", "No key and no word of the last memory is in the first: the shared keys are the road.")
    say(f"The daemon (pid {pid}) stays for your agents and leaves by itself when nobody uses it.", "")
    say(STEPS_ON.format(shim=shim, keymemd=_keymemd(shim)))
    return 0


@dataclass(frozen=True, slots=True)
class _Hop:
    """One call of a tool: what led to it and what came of it."""

    call: str
    why: str
    found: str

    def view(self) -> dict[str, str]:
        return {"call": self.call, "why": self.why, "found": self.found}


async def _walked(shim: str) -> list[_Hop]:
    """Save and walk over one MCP session. Raises `CommandFailed` at the first step that does not lead on."""
    from mcp import Client, MCPError, StdioServerParameters  # noqa: PLC0415 - most of a second, only here

    server = StdioServerParameters(command=shim, env=identity.daemon_environment())
    try:
        async with Client(server, read_timeout_seconds=WAIT_S) as client:
            return await _Walk(client).walk()
    except ExceptionGroup as group:
        problem = _innermost(group)
        if isinstance(problem, CommandFailed):
            raise problem from group
        raise _broken(f"the shim did not do its part ({problem})") from group
    except (MCPError, OSError, RuntimeError) as problem:
        raise _broken(f"the shim did not do its part ({problem})") from problem


class _Walk:
    """The agent's part. ``client`` is an MCP client that is connected."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - the SDK is not imported before it is needed
        self._client = client
        self._hops: list[_Hop] = []

    async def walk(self) -> list[_Hop]:
        """Every hop, from "Newton" to strawberries."""
        items = [
            {"content": content, "keys": keys, "namespace": NAMESPACE, "ttl_seconds": TTL_S}
            for content, keys in MEMORIES.items()
        ]
        saved = (await self._tool("remember_batch", items=items))["results"]
        _check(len(saved) == len(MEMORIES) and all("saved" in one for one in saved), f"not all was saved: {saved}")

        recalled = await self._tool("recall", query="Newton", namespace=NAMESPACE)
        preview: dict[str, Any] = next(iter(recalled["memories"]), {})
        _check(preview.get("content") == NEWTON, "recall(Newton) did not bring the memory about Newton")
        self._step('recall("Newton")', "The query fits the key Newton; one memory comes up.", preview["content"])

        apple = _key(preview["connected_keys"], "apple")
        second = await self._read(apple, [preview["id"]], "That memory also hangs on the key apple.")
        _check(second["memory"]["content"] == APPLE, "the key apple did not lead to the memory about apples")

        fruit = _key(second["keys"], "fruit")
        third = await self._read(fruit, [second["memory"]["id"]], "An apple is a fruit: the next key.")
        _check(third["memory"]["content"] == STRAWBERRY, "the key fruit did not lead to the strawberries")
        return self._hops

    async def _read(self, key: Mapping[str, Any], known: Sequence[str], why: str) -> dict[str, Any]:
        """Follow a key to the first memory that is not ``known``, and read it."""
        name = clean(key["concept"])
        listed = await self._tool("read_key", key_id=key["key_id"], namespace=NAMESPACE)
        handles = [handle for handle in listed["memories"] if handle["memory_id"] not in known]
        _check(bool(handles), f"the key {name} led to no other memory")
        total = listed["total"]
        self._step(
            f'read_key("{name}")',
            why,
            f"{total} memories hang on {name}; one of them is new: {handles[0]['memory_id']}",
        )
        memory = await self._tool(
            "read_memory", memory_id=handles[0]["memory_id"], via_key_id=key["key_id"], namespace=NAMESPACE
        )
        keys = ", ".join(clean(one["concept"]) for one in memory["keys"])
        self._step(
            f"read_memory({handles[0]['memory_id']})",
            f"Reached through {name}; its keys are {keys}.",
            memory["memory"]["content"],
        )
        return memory

    def _step(self, call: str, why: str, found: str) -> None:
        self._hops.append(_Hop(call, why, found))

    async def _tool(self, name: str, **arguments: object) -> dict[str, Any]:
        answer = await self._client.call_tool(name, arguments)
        result: dict[str, Any] = answer.structured_content or {}
        _check(not answer.is_error and "error" not in result, f"{name} failed: {result.get('error')}")
        return result


def _key(keys: Sequence[Mapping[str, Any]], concept: str) -> Mapping[str, Any]:
    found = next((key for key in keys if key["concept"].casefold() == concept), None)
    if found is None:
        raise _broken(f"the key {concept} is not among {[key['concept'] for key in keys]}")
    return found


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _broken(otherwise)


def _broken(what: str) -> CommandFailed:
    return CommandFailed(f"the chain was not found: {what}", "Look at `keymemd status` and `keymemd logs`.")


def _innermost(group: ExceptionGroup[Exception]) -> Exception:
    """The failure inside nested task groups."""
    inner = group.exceptions[0]
    return _innermost(inner) if isinstance(inner, ExceptionGroup) else inner


def _shim() -> str:
    """The path of the installed `keymem-shim`, beside this command where possible."""
    places = [Path(sys.argv[0]).absolute().parent, Path(sysconfig.get_path("scripts"))]
    for place in places:
        if (place / "keymem-shim").is_file():
            return str(place / "keymem-shim")
    found = shutil.which("keymem-shim")
    if found is None:
        raise CommandFailed("the command keymem-shim is not installed beside this one", "Run `pip install .` again.")
    return found


def _keymemd(shim: str) -> str:
    """How this person can call `keymemd`: by its name where that is on PATH, else by the path beside the shim."""
    return "keymemd" if shutil.which("keymemd") else str(Path(shim).with_name("keymemd"))


def _clean(*, as_json: bool) -> int:
    listed = call("list", {"namespace": NAMESPACE, "limit": 100})
    ours = [memory["id"] for memory in listed["memories"] if memory["content"] in MEMORIES]
    for memory_id in ours:
        call("forget", {"memory_id": memory_id, "namespace": "*"})
    if as_json:
        print_json({"deleted": ours})
    else:
        say(f"{len(ours)} memories of the demo were deleted")
    return 0
