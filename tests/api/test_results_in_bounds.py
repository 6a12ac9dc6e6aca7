"""Real results through the size limit: what a page left out comes with the next one, a batch loses no item."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from open_engines import caller, item, opened

from keymem_daemon.api.calls import Calls
from keymem_daemon.api.door import Door
from keymem_daemon.api.identity import Claims
from keymem_daemon.api.limit import RESULT_BYTES
from keymem_daemon.api.metrics import Metrics
from keymem_daemon.api.order import SessionOrder
from keymem_daemon.api.tools import COMPAT_TOOLS, TOOLS, Verb
from keymem_daemon.api.work import SharedWork
from keymem_daemon.core.model import Actor
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.remember import remember_batch

VERBS = {verb.name: verb for verb in (*TOOLS, *COMPAT_TOOLS)}
COUNT = 500


def size(result: dict[str, Any]) -> int:
    return len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())


def calls_of(engine: Engine) -> Calls:
    door = Door()
    door.open(engine)
    return Calls(door, SessionOrder(), SharedWork(), Metrics())


async def stocked(engine: Engine, length: int) -> str:
    """Save `COUNT` memories of ``length`` characters under one key, each with long keys of its own; returns the key's id."""
    items = [
        item(f"{number:04} " + "가" * length, "shared", *(f"{number:04} {place} {'나' * 110}" for place in range(3)))
        for number in range(COUNT)
    ]
    for start in range(0, COUNT, 100):
        await remember_batch(engine, caller(), items[start : start + 100])
    key = engine.graph.key_of_surface("shared")
    assert key is not None
    return key.id


async def paged(engine: Engine, verb: Verb, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Every entry of every page of ``verb``, as an agent gets them by following `next_offset`."""
    calls = calls_of(engine)
    assert verb.paged is not None
    entries: list[dict[str, Any]] = []
    cut = 0
    offset = 0
    for _page in range(2 * COUNT):
        result = await calls.call(
            verb, {**arguments, "offset": offset}, Claims(), Actor(tool=verb.name), limit=RESULT_BYTES
        )
        assert size(result) <= RESULT_BYTES
        assert result[verb.paged]
        entries += result[verb.paged]
        cut += "truncated" in result
        if result["next_offset"] is None:
            assert cut
            return entries
        assert result["next_offset"] == offset + len(result[verb.paged])
        offset = result["next_offset"]
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("query", [None, "0007"])
def test_every_memory_of_a_key_comes_exactly_once(query: str | None) -> None:
    async def scene() -> None:
        async with opened() as engine:
            key_id = await stocked(engine, 20)
            asked = {"key_id": key_id, "limit": 50} | ({} if query is None else {"query": query})
            found = [handle["memory_id"] for handle in await paged(engine, VERBS["read_key"], asked)]
            assert len(found) == COUNT
            assert set(found) == set(engine.graph.memories)

    asyncio.run(scene())


def test_every_key_of_a_namespace_comes_exactly_once() -> None:
    async def scene() -> None:
        async with opened() as engine:
            await stocked(engine, 20)
            asked = {"namespace": "default", "limit": "100"}
            found = [key["key_id"] for key in await paged(engine, VERBS["browse_keys"], asked)]
            assert len(found) == len(engine.graph.keys)
            assert set(found) == set(engine.graph.keys)

    asyncio.run(scene())


def test_every_memory_of_a_list_comes_exactly_once_though_one_alone_is_too_large() -> None:
    async def scene() -> None:
        async with opened() as engine:
            await stocked(engine, 4_000)
            found = await paged(engine, VERBS["list_memories"], {"limit": 100})
            assert len(found) == COUNT
            assert {memory["id"] for memory in found} == set(engine.graph.memories)
            assert all(memory["content_truncated"] for memory in found)

    asyncio.run(scene())


def test_who_asks_for_the_whole_gets_the_whole_page() -> None:
    async def scene() -> None:
        async with opened() as engine:
            key_id = await stocked(engine, 20)
            result = await calls_of(engine).call(
                VERBS["read_key"], {"key_id": key_id, "limit": 50}, Claims(), Actor(tool="read_key")
            )
            assert (len(result["memories"]), result["next_offset"]) == (50, 50)
            assert "truncated" not in result

    asyncio.run(scene())


def test_a_batch_of_bad_and_good_items_fits_and_tells_of_each() -> None:
    async def scene() -> None:
        async with opened() as engine:
            calls = calls_of(engine)
            bad = [{"content": f"fact {number}", "keys": []} for number in range(199)]
            async with calls.work.open():
                result = await calls.call(
                    VERBS["remember_batch"],
                    {"items": [*bad, {"content": "good", "keys": ["key"]}]},
                    Claims(),
                    Actor(tool="remember_batch"),
                    limit=RESULT_BYTES,
                )
            assert size(result) <= RESULT_BYTES
            assert [item["error"]["code"] for item in result["results"][:199]] == ["invalid_argument"] * 199
            assert result["results"][199] == {"saved": next(iter(engine.graph.memories))}
            assert "items 0-198: keys: " in result["truncated"]

    asyncio.run(scene())
