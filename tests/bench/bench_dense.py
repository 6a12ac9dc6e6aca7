"""What a dense graph costs: 2,000 memories, 76,000 links, five hub keys of more than 1,000 memories each.

Run it by hand: ``python tests/bench/bench_dense.py [questions] [--profile VERB]`` (default 60). It prints the median and the 95th
percentile of recall, retrieve, read_key and browse_keys in milliseconds, in one process, with the builtin encoder and warm vectors; the
processor's time beside the clock's, for machines that have other things to do.

A memory is saved under at most 32 keys; six more come to it as keys come to a memory by use. So the graph is made by the
writer from changes (`MemoryAdded`, `KeyAdded`, `LinkSet`), as learning makes them. Beside the hubs there are 2,400 keys of 29 memories
each, which is just specific enough for retrieval to cross every one of them; a text names twelve of its own keys and six others (mention
links). Every question names a hub and three other keys of one memory.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from threadpoolctl import threadpool_limits

from keymem_daemon.core.changes import KeyAdded, LinkSet, MemoryAdded
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.lexicon import load_lexicon
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.core.profiles import PROFILES
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.runtime.clock import SystemClock, new_id
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.navigate import browse_keys, read_key
from keymem_daemon.service.recall import recall
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings
from keymem_daemon.store.memory import MemoryStore

MEMORIES = 2_000
LINKS_EACH = 38
HUBS = ("project", "garden", "music", "travel", "family")
HUBS_EACH = 3
POOL = 2_400
OWN_WORDS = 12
OTHER_WORDS = 6
SETTLED_WITHIN_S = 600.0

_ONSETS = ("b", "br", "c", "cl", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v")
_NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "oo")
_CODAS = ("ck", "ld", "lt", "m", "n", "nd", "nt", "p", "rd", "rk", "rm", "rn", "sk", "st", "t")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _words() -> list[str]:
    """Words that no stemmer and no lexicon makes one of: a syllable each, some of them English."""
    return [onset + nucleus + coda for coda in _CODAS for nucleus in _NUCLEI for onset in _ONSETS][:POOL]


async def _saved(engine: Engine, chance: random.Random) -> list[tuple[str, ...]]:
    """Save everything; the keys of each memory."""
    words = _words()
    key_ids = {surface: f"{number:012x}" for number, surface in enumerate((*HUBS, *words))}
    memory_ids = (f"{number:012x}" for number in count(1_000_000))
    now = engine.now()
    hung: list[tuple[str, ...]] = []

    def keys(plan: Plan) -> dict[str, Any]:
        for surface, key_id in key_ids.items():
            plan.make(KeyAdded(Key(id=key_id, concept=surface)))
        return {}

    def hundred(plan: Plan) -> dict[str, Any]:
        for _ in range(100):
            own = (*chance.sample(words, LINKS_EACH - HUBS_EACH), *chance.sample(HUBS, HUBS_EACH))
            memory_id = next(memory_ids)
            text = f"The {' and '.join((*own[:OWN_WORDS], *chance.sample(words, OTHER_WORDS)))} were seen together."
            plan.make(MemoryAdded(Memory(memory_id, text, "default", now, now)))
            for position, surface in enumerate(own):
                plan.make(LinkSet(Link(key_ids[surface], memory_id, position=position)))
            hung.append(own)
        return {}

    await engine.writer.write("remember", Actor(tool="bench"), None, keys)
    for _ in range(MEMORIES // 100):
        await engine.writer.write("remember", Actor(tool="bench"), None, hundred)
    return hung


@asynccontextmanager
async def _opened() -> AsyncIterator[Engine]:
    model = BuiltinEncoder()
    model.load()
    engine = Engine(
        store=MemoryStore(),
        encoder=model,
        light_encoder=model,
        korean=None,
        lexicon=load_lexicon(),
        profile=PROFILES["builtin"],
        settings=load_settings({}),
        clock=SystemClock(),
        new_id=new_id,
    )
    async with asyncio.TaskGroup() as tasks:
        await engine.open()
        tasks.create_task(engine.background())
        try:
            yield engine
        finally:
            await engine.close()


async def _settled(engine: Engine) -> None:
    async with asyncio.timeout(SETTLED_WITHIN_S):
        while any(engine.catalog.backlog):  # noqa: ASYNC110 - an engine tells nobody that it has nothing left to do
            await asyncio.sleep(0.05)


def _questions(hung: Sequence[tuple[str, ...]], chance: random.Random, number: int) -> Iterator[str]:
    for own in chance.sample(hung, number):
        yield " ".join((own[-1], *chance.sample(own[:OWN_WORDS], 3)))


async def _measured(
    verbs: dict[str, Callable[[str], Awaitable[Any]]], questions: Sequence[str], profiled: str | None
) -> None:
    for name, verb in verbs.items():
        for question in questions:
            await verb(question)  # warm
        profile = cProfile.Profile()
        taken: list[float] = []
        worked: list[float] = []
        for question in questions:
            if name == profiled:
                profile.enable()
            began, busy = time.perf_counter(), time.process_time()
            await verb(question)
            taken.append((time.perf_counter() - began) * 1000)
            worked.append((time.process_time() - busy) * 1000)
            profile.disable()
        _say(
            f"{name:12} p50 {_at(taken, 0.5):6.1f}   p95 {_at(taken, 0.95):6.1f}   processor p50 {_at(worked, 0.5):6.1f}   p95 {_at(worked, 0.95):6.1f}   ms"
        )
        if name == profiled:
            pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def _at(times: Sequence[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]


async def _run(number: int, profiled: str | None) -> None:
    chance = random.Random(7)  # noqa: S311 - the same graph every time, no secret
    async with _opened() as engine:
        hung = await _saved(engine, chance)
        await _settled(engine)
        graph = engine.graph
        hubs = {hub: graph.memory_count(key.id, None) for hub in HUBS if (key := graph.key_of_surface(hub)) is not None}
        _say(
            f"{graph.active_count(None):,} memories, {graph.link_count:,} links, {len(graph.keys):,} keys, hubs {hubs}"
        )
        who = Caller(Actor(tool="bench", session="bench"))
        hub_ids = {hub: key.id for hub in HUBS if (key := graph.key_of_surface(hub)) is not None}

        await _measured(
            {
                "recall": lambda question: recall(engine, who, question, f"What of the {question} that were seen?"),
                "retrieve": lambda question: retrieve(engine, who, question, learn=False),
                "retrieve 5": lambda question: retrieve(engine, who, question, hops=5, learn=False),
                "learning": lambda question: retrieve(engine, who, question),
                "read_key": lambda question: read_key(engine, who, hub_ids[question.partition(" ")[0]], question),
                "browse_keys": lambda _question: browse_keys(engine, who, "default", limit=100),
            },
            list(_questions(hung, chance, number)),
            profiled,
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", nargs="?", type=int, default=60)
    parser.add_argument("--profile", metavar="VERB", help="print where this verb's time goes")
    given = parser.parse_args()
    with threadpool_limits(1):
        asyncio.run(_run(given.questions, given.profile))


if __name__ == "__main__":
    main()
