"""No verb walks all memories or all keys in Python: what it executes does not depend on how much else is stored.

Counted are the byte codes of the daemon's own modules while a verb runs, in a small store and in one five times as large, whose other
memories have keys and words of their own. numpy and the encoder are not counted: a product over all vectors is one step.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

import pytest
from fixed_time import FixedClock
from open_engines import caller, item, play, saved

from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.correct import correct
from keymem_daemon.service.dismiss import dismiss
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.inject import inject
from keymem_daemon.service.inspection import list_memories, show, stats
from keymem_daemon.service.maintenance import sweep
from keymem_daemon.service.navigate import browse_keys, read_key, read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.remember import remember, remember_batch
from keymem_daemon.service.requests import CorrectionRequest
from keymem_daemon.service.retrieve import retrieve

if TYPE_CHECKING:
    from _typeshed import TraceFunction

SMALL, LARGE = 500, 2_500
GROWTH = 1.25
"""Sorted lists and hash tables grow a little, and a tenth more is a question of where a word happens to lie."""
COUNTED = ("keymem_daemon/core", "keymem_daemon/index", "keymem_daemon/service", "keymem_daemon/store")

Verb = Callable[[Engine, str, str], Awaitable[Any]]

async def missed(engine: Engine) -> None:
    """A recall that has candidates and is refused: without any there is nothing to count."""
    shipped = engine.profile
    engine.profile = replace(shipped, gate_floor=2.0)
    try:
        found = await recall(engine, caller(), "zeppelin", "Who built the zeppelin by the river?")
    finally:
        engine.profile = shipped
    assert found["status"] == "no_match"


READS: dict[str, Verb] = {
    "recall": lambda engine, *_: recall(engine, caller(), "otter", "Where does the otter sleep?", explain=True),
    "recall that misses": lambda engine, *_: missed(engine),
    "retrieve": lambda engine, *_: retrieve(engine, caller(), "Where does the otter sleep?", hops=3, explain=True),
    "inject": lambda engine, *_: inject(engine, caller(), "Where does the otter sleep?"),
    "read_key": lambda engine, _memory, key: read_key(engine, caller(), key, "otter"),
    "read_memory": lambda engine, memory, key: read_memory(engine, caller(), memory, key),
    "browse_keys": lambda engine, *_: browse_keys(engine, caller(), "default"),
    "list": lambda engine, *_: list_memories(engine, caller()),
    "stats": lambda engine, *_: stats(engine, caller()),
    "show": lambda engine, memory, _key: show(engine, caller(), memory),
}
WRITES: dict[str, Verb] = {
    "remember": lambda engine, *_: remember(engine, caller(), item("The otter has a burrow", "otter", "burrow")),
    "remember again": lambda engine, *_: remember(engine, caller(), item("The otter sleeps by the river", "otter")),
    "correct": lambda engine, memory, _key: correct(
        engine, caller(), CorrectionRequest(memory, "The otter sleeps in the reeds")
    ),
    "confirm": lambda engine, memory, _key: confirm_memory(engine, caller(), memory, "user"),
    "dismiss": lambda engine, memory, key: dismiss(engine, caller(), memory, key),
    "forget": lambda engine, memory, _key: forget(engine, caller(), memory),
    "sweep": lambda engine, *_: sweep(engine),
}


class ByteCodes:
    """Counts what the counted modules execute between `__enter__` and `__exit__`, in every task of this thread."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, _event: str, _argument: object) -> TraceFunction | None:
        path = frame.f_code.co_filename.replace("\\", "/")
        if not any(part in path for part in COUNTED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._executed

    def _executed(self, _frame: FrameType, event: str, _argument: object) -> TraceFunction:
        if event == "opcode":
            self.count += 1
        return self._executed


async def settled(engine: Engine) -> None:
    while any(engine.catalog.backlog):  # noqa: ASYNC110 - an engine tells nobody that it has nothing left to do
        await asyncio.sleep(0)


async def executed(engine: Engine, verb: Verb, memory_id: str, key_id: str) -> int:
    await settled(engine)
    with ByteCodes() as counted:
        await verb(engine, memory_id, key_id)
    return counted.count


def costs(others: int, verbs: dict[str, Verb]) -> dict[str, int]:
    """Byte codes of each verb in a store of a dozen memories about otters and ``others`` about something else."""
    clock = FixedClock()

    async def scene(engine: Engine) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, others, 100):
            await remember_batch(
                engine,
                caller(),
                [item(f"w{n}a stands at w{n}b", f"w{n}a", f"w{n}b") for n in range(start, start + 100)],
            )
        for number in range(12):
            await saved(engine, f"The otter swims in river {number}", "otter", f"river{number}")
        memory_id = await saved(engine, "The otter sleeps by the river", "otter", "sleep", "river")
        key = engine.graph.key_of_surface("otter")
        assert key is not None
        await saved(engine, "The otter was hungry today", "otter", "hunger", ttl_seconds=60.0)
        clock.advance(seconds=61.0)
        for name, verb in verbs.items():
            # A rehearsal first: what is read for the first time is cached on the way.
            if verbs is READS:
                await verb(engine, memory_id, key.id)
            found[name] = await executed(engine, verb, memory_id, key.id)
            if name == "correct":
                memory_id = next(m for m in engine.graph.memories if engine.graph.memories[m].supersedes == memory_id)
        return found

    return play(scene, clock=clock)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("verbs", [READS, WRITES], ids=["reads", "writes"])
def test_what_a_verb_executes_does_not_depend_on_how_much_else_is_stored(verbs: dict[str, Verb]) -> None:
    small, large = costs(SMALL, verbs), costs(LARGE, verbs)
    grown = {name: (small[name], large[name]) for name in verbs if large[name] > GROWTH * small[name] + 200}
    assert not grown, "byte codes in the small store and in the large one"
    assert min(small.values()) > 50, "something is counted"


def test_a_walk_over_all_memories_would_be_seen() -> None:
    async def walking(engine: Engine, _memory_id: str, _key_id: str) -> int:
        return sum(link.weight > 0 for link in engine.graph.all_links())

    small, large = costs(SMALL, {"walk": walking}), costs(LARGE, {"walk": walking})
    assert large["walk"] > 4 * small["walk"]


def test_statistics_of_several_namespaces_look_at_no_more_than_a_page_of_each_beyond_a_thousand_keys() -> None:
    async def scene(engine: Engine) -> None:
        for space in ("alpha", "beta"):
            for number in range(0, 600, 20):
                names = [f"{space}{n}" for n in range(number, number + 20)]
                await saved(engine, f"what {space} knows of {number}", "shared", *names, namespace=space)
        both = await stats(engine, caller(namespaces=("alpha", "beta")))
        assert both["key_count"] == 1_202
        assert both["top_keys"][0]["concept"] == "shared"
        assert both["top_keys"][0]["memory_count"] == 60

    play(scene)
