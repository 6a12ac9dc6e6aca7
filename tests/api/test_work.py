"""Shared work: done once under one name, and to its end, whoever leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keymem_daemon.api.work import SharedWork
from keymem_daemon.core.errors import NotFound, Unavailable

BOUND_S = 10.0


class Slow:
    """Work that ends when it is let go."""

    def __init__(self) -> None:
        self.times = 0
        self.finished = 0
        self.go = asyncio.Event()

    async def __call__(self) -> dict[str, Any]:
        self.times += 1
        await self.go.wait()
        self.finished += 1
        return {"saved": "x"}


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_who_asks_again_under_the_same_name_waits_for_the_same_work() -> None:
    async def scenario() -> None:
        shared, slow = SharedWork(), Slow()
        async with asyncio.timeout(BOUND_S), shared.open():
            asked = [asyncio.ensure_future(shared.run("r", slow)) for _ in range(3)]
            await settled()
            slow.go.set()
            assert [await one for one in asked] == [{"saved": "x"}] * 3
            assert slow.times == 1
            await shared.run("r", slow)
            assert slow.times == 2, "what has ended is asked of the store, not remembered here"

    asyncio.run(scenario())


def test_work_is_finished_when_everybody_who_asked_has_left() -> None:
    async def scenario() -> None:
        shared, slow = SharedWork(), Slow()
        async with asyncio.timeout(BOUND_S):
            async with shared.open():
                asked = asyncio.ensure_future(shared.run("r", slow))
                await settled()
                asked.cancel()
                slow.go.set()
            assert slow.finished == 1

    asyncio.run(scenario())


def test_a_failure_reaches_everyone_who_waits_and_nothing_else() -> None:
    async def failing() -> dict[str, Any]:
        await asyncio.sleep(0)
        raise NotFound("memory_id", "memory", "x", "hint")

    async def scenario() -> None:
        shared = SharedWork()
        async with asyncio.timeout(BOUND_S), shared.open():
            outcomes = await asyncio.gather(*(shared.run("r", failing) for _ in range(2)), return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [NotFound, NotFound]

    asyncio.run(scenario())


def test_nothing_is_taken_before_the_opening_and_after_the_end() -> None:
    async def scenario() -> None:
        shared = SharedWork()
        with pytest.raises(Unavailable):
            await shared.run(None, Slow())
        async with shared.open():
            pass
        with pytest.raises(Unavailable):
            await shared.run(None, Slow())

    asyncio.run(scenario())
