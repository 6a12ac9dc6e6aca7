"""Engines over real parts, with their background running, for tests of the services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TypedDict, TypeVar, Unpack

from fixed_time import CountingIds, FixedClock
from hashing_words import HashingWords

from keymem_daemon.core.lexicon import Lexicon, load_lexicon
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.core.profiles import PROFILES
from keymem_daemon.ports import Clock, Encoder, NewId, Store
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.remember import remember
from keymem_daemon.service.requests import RememberItem
from keymem_daemon.settings import Settings, load_settings
from keymem_daemon.store.memory import MemoryStore

T = TypeVar("T")
PATIENCE_S = 60.0

Everything = tuple[dict[str, Memory], dict[str, Key], dict[tuple[str, str], Link]]


class ItemOptions(TypedDict, total=False):
    """What else a memory to save may have."""

    key_types: Mapping[str, str]
    namespace: str | None
    ttl_seconds: float | None
    decay_profile: str | None
    related_to: tuple[str, ...]
    source: Mapping[str, str] | None


class Parts(TypedDict, total=False):
    """What an engine may be made of instead of the usual."""

    store: Store
    clock: Clock
    new_id: NewId
    encoder: Encoder
    settings: Settings
    background: bool


@cache
def lexicon() -> Lexicon:
    """The shipped lexicon, read once."""
    return load_lexicon()


def caller(request_id: str | None = None, *, session: str = "session-1", namespaces: tuple[str, ...] | None = None) -> Caller:
    """A caller of that session."""
    return Caller(Actor(tool="test", session=session), request_id, namespaces)


def item(content: str, *keys: str, **more: Unpack[ItemOptions]) -> RememberItem:
    """A memory to save."""
    return RememberItem(content, keys, **more)


async def saved(engine: Engine, content: str, *keys: str, **more: Unpack[ItemOptions]) -> str:
    """Save a memory and return its id."""
    result = await remember(engine, caller(), item(content, *keys, **more))
    return str(result["saved"])


def key_id(engine: Engine, surface: str) -> str:
    """The id of the key that has this surface."""
    key = engine.graph.key_of_surface(surface)
    assert key is not None, f"no key {surface!r}"
    return key.id


def everything(engine: Engine) -> Everything:
    """All records of the graph, to compare by value."""
    graph = engine.graph
    return dict(graph.memories), dict(graph.keys), {(link.key_id, link.memory_id): link for link in graph.all_links()}


@asynccontextmanager
async def opened(
    store: Store | None = None,
    *,
    clock: Clock | None = None,
    new_id: NewId | None = None,
    encoder: Encoder | None = None,
    settings: Settings | None = None,
    background: bool = True,
) -> AsyncIterator[Engine]:
    """An open engine; on leaving it is closed and its background has ended."""
    model = encoder or HashingWords()
    engine = Engine(
        store=store or MemoryStore(),
        encoder=model,
        light_encoder=model,
        korean=None,
        lexicon=lexicon(),
        profile=PROFILES["builtin"],
        settings=settings or load_settings({}),
        clock=clock or FixedClock(),
        new_id=new_id or CountingIds(),
    )
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        await engine.open()
        if background:
            tasks.create_task(engine.background())
        try:
            yield engine
        finally:
            await engine.close()


def play(scene: Callable[[Engine], Coroutine[None, None, T]], **parts: Unpack[Parts]) -> T:
    """Run ``scene`` on an engine of its own, made of ``parts``."""

    async def run() -> T:
        async with opened(**parts) as engine:
            return await scene(engine)

    return asyncio.run(run())
