"""The one write path: groups, repeated requests, callers that go away, a store that fails, soft state. Interleavings by gates."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from faulty_store import FaultyStore
from fixed_time import CountingIds
from open_engines import caller, everything, item, key_id, opened, play, saved

from keymem_daemon.core.errors import KeymemError, NotFound, StorageFailed, Unavailable
from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.correct import correct
from keymem_daemon.service.dismiss import dismiss
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.navigate import read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.remember import remember
from keymem_daemon.service.requests import CorrectionRequest
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings
from keymem_daemon.store.memory import MemoryStore

PATIENCE_S = 30.0
WARM = ("first", "shared", "lonely", "zero", "one", "else", "way", "wait", "fact", "late", *(f"key {n}" for n in range(20)))


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is the product's own state, which has no event
            await asyncio.sleep(0.001)


async def held(store: FaultyStore) -> None:
    """Wait until a commit stands at the closed gate."""
    await until(store.entered.is_set)


async def close_gate(engine: Engine, store: FaultyStore, *surfaces: str) -> None:
    """Commits wait from now on. New keys would wait for the store, too, unless their vectors were known before."""
    await engine.encoder.encode(surfaces)
    await engine.writer.flush_soft()
    store.entered.clear()
    store.gate.clear()


def test_writes_that_wait_while_a_commit_is_under_way_are_committed_together() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        await close_gate(engine, store, *WARM)
        first = asyncio.ensure_future(remember(engine, caller(), item("Fact first", "first")))
        await held(store)
        others = [asyncio.ensure_future(remember(engine, caller(), item(f"Fact {n}", "shared", f"key {n}"))) for n in range(20)]
        await until(lambda: len(engine.writer._queue) == 20)
        store.gate.set()
        answers = [(await task)["saved"] for task in (first, *others)]
        assert len(set(answers)) == 21
        assert engine.graph.memory_count(key_id(engine, "shared"), None) == 20

    play(scene, store=store)
    assert [size for size in store.commits if size > 1] == [20]


def test_jobs_of_one_group_that_touch_the_same_key_and_memory_see_each_other() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        old = await saved(engine, "Old", "shared", "lonely")
        await saved(engine, "Stays", "shared")
        await close_gate(engine, store, *WARM)
        first = asyncio.ensure_future(saved(engine, "First", "first"))
        await held(store)
        group = [
            asyncio.ensure_future(remember(engine, caller(), item("Another", "shared", "lonely"))),
            asyncio.ensure_future(forget(engine, caller(), old)),
            asyncio.ensure_future(confirm_memory(engine, caller(), old, "user")),
            asyncio.ensure_future(remember(engine, caller(), item("another", "shared"))),
            asyncio.ensure_future(correct(engine, caller(), CorrectionRequest(old, "New"))),
        ]
        await until(lambda: len(engine.writer._queue) == len(group))
        store.gate.set()
        await first
        added, forgotten, confirmed, again, corrected = await asyncio.gather(*group, return_exceptions=True)
        assert isinstance(added, dict)
        assert isinstance(forgotten, dict)
        assert again == {"saved": added["saved"], "deduplicated": True}
        assert isinstance(confirmed, NotFound)
        assert isinstance(corrected, NotFound)
        assert engine.graph.memory_count(key_id(engine, "shared"), None) == 2
        assert engine.graph.memory_count(key_id(engine, "lonely"), None) == 1
        await _store_equals_graph(engine, store)

    play(scene, store=store)


async def _store_equals_graph(engine: Engine, store: FaultyStore) -> None:
    await engine.writer.flush_soft()
    async with opened(store, background=False) as again:
        assert everything(again) == everything(engine)


def test_a_repeated_request_id_gets_the_first_answer_and_changes_nothing() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        await close_gate(engine, store, *WARM)
        first = asyncio.ensure_future(remember(engine, caller("r-0"), item("Fact zero", "zero")))
        await held(store)
        same_group = [asyncio.ensure_future(remember(engine, caller("r-1"), item("Fact one", "one"))) for _ in range(3)]
        across = asyncio.ensure_future(remember(engine, caller("r-0"), item("Something else", "else")))
        await until(lambda: len(engine.writer._queue) == 4)
        store.gate.set()
        answers = await asyncio.gather(*same_group)
        assert answers[0] == answers[1] == answers[2]
        assert await across == await first
        before = everything(engine)
        assert await remember(engine, caller("r-1"), item("Fact one", "one")) == answers[0]
        assert everything(engine) == before
        assert len(engine.graph.memories) == 2

    play(scene, store=store)

    async def later(engine: Engine) -> None:
        before = everything(engine)
        answer = await remember(engine, caller("r-1"), item("Fact one", "one"))
        assert "deduplicated" not in answer
        assert everything(engine) == before

    play(later, store=store)


def test_every_writing_verb_answers_a_repeated_request_without_doing_it_again() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "one", "two")
        two = key_id(engine, "two")
        for _ in range(2):
            assert (await confirm_memory(engine, caller("c"), memory_id, "user"))["validity"]["confirmation_count"] == 1
            assert (await dismiss(engine, caller("d"), memory_id, two))["link_weight"] == 0.5
        corrections = [await correct(engine, caller("x"), CorrectionRequest(memory_id, "New")) for _ in range(2)]
        assert corrections[0] == corrections[1]
        new_id = corrections[0]["new_id"]
        assert [await forget(engine, caller("f"), new_id) for _ in range(2)][1]["deleted"] == new_id
        assert set(engine.graph.memories) == {memory_id}

    play(scene)


def test_a_request_that_failed_is_not_on_record_and_may_be_tried_again() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        store.failing = True
        with pytest.raises(StorageFailed):
            await remember(engine, caller("r"), item("A fact", "fact"))
        store.failing = False
        answer = await remember(engine, caller("r"), item("A fact", "fact"))
        assert answer["saved"] in engine.graph.memories

    play(scene, store=store)


def test_a_caller_that_goes_away_loses_nothing() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        await close_gate(engine, store, *WARM)
        first = asyncio.ensure_future(remember(engine, caller(), item("Under way", "way")))
        await held(store)
        second = asyncio.ensure_future(remember(engine, caller("r"), item("Waiting", "wait")))
        await until(lambda: len(engine.writer._queue) == 1)
        first.cancel()
        second.cancel()
        assert all(isinstance(o, asyncio.CancelledError) for o in await asyncio.gather(first, second, return_exceptions=True))
        store.gate.set()
        await engine.writer.drained()
        assert {m.content for m in engine.graph.memories.values()} == {"Under way", "Waiting"}
        again = await remember(engine, caller("r"), item("Waiting", "wait"))
        assert len(engine.graph.memories) == 2
        assert again["saved"] in engine.graph.memories
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_a_commit_that_fails_changes_nothing_and_every_caller_of_its_group_hears_of_it() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "Before", "before")
        before, counts = everything(engine), engine.counts()
        await close_gate(engine, store, *WARM)
        store.failing = True
        tasks = [asyncio.ensure_future(remember(engine, caller(f"r-{n}"), item(f"Fact {n}", "fact"))) for n in range(5)]
        tasks.append(asyncio.ensure_future(correct(engine, caller(), CorrectionRequest(memory_id, "After"))))
        tasks.append(asyncio.ensure_future(forget(engine, caller(), memory_id)))
        await held(store)
        store.gate.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, StorageFailed | NotFound | KeymemError) for outcome in outcomes)
        assert sum(isinstance(outcome, StorageFailed) for outcome in outcomes) >= 6
        assert everything(engine) == before
        assert engine.counts() == counts
        assert (await recall(engine, caller(), "fact"))["memories"] == []
        assert engine.writer.last_failure is not None
        store.failing = False
        await saved(engine, "After all", "fact")
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_an_error_of_one_job_is_its_callers_alone() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        await close_gate(engine, store, *WARM)
        first = asyncio.ensure_future(saved(engine, "First", "first"))
        await held(store)
        good = [asyncio.ensure_future(remember(engine, caller(), item(f"Fact {n}", "fact"))) for n in range(3)]
        bad = asyncio.ensure_future(confirm_memory(engine, caller(), "ffffffffffff", "user"))
        await until(lambda: len(engine.writer._queue) == 4)
        store.gate.set()
        await first
        outcomes = await asyncio.gather(*good, bad, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [dict, dict, dict, NotFound]
        assert len(engine.graph.memories) == 4

    play(scene, store=store)


def test_reading_reaches_the_store_within_a_second_and_does_not_wait_for_it() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        commits = len(store.commits)
        await read_memory(engine, caller(), memory_id, key_id(engine, "fact"))
        assert engine.graph.memories[memory_id].access_count == 1
        assert len(store.commits) == commits
        await until(lambda: len(store.commits) > commits)
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_soft_state_and_hard_changes_do_not_overwrite_each_other() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        fact = key_id(engine, "fact")
        await read_memory(engine, caller(), memory_id, fact)
        await close_gate(engine, store, *WARM)
        confirming = asyncio.ensure_future(confirm_memory(engine, caller(), memory_id, "user"))
        await held(store)
        reading = asyncio.ensure_future(read_memory(engine, caller(), memory_id, fact))
        flushing = asyncio.ensure_future(engine.writer.flush_soft())
        await reading
        store.gate.set()
        await confirming
        await flushing
        await engine.writer.drained()
        memory = engine.graph.memories[memory_id]
        link = engine.graph.link(fact, memory_id)
        assert (memory.access_count, memory.confirmation_count) == (2, 1)
        assert link is not None
        assert link.weight == pytest.approx(1.2)
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_soft_state_that_could_not_be_written_is_written_with_the_next_flush() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        store.failing = True
        await read_memory(engine, caller("r"), memory_id, key_id(engine, "fact"))
        assert await engine.writer.flush_soft() == 0
        store.failing = False
        assert await engine.writer.flush_soft() == 2
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_a_read_does_not_wait_for_a_commit_that_is_held_up_and_is_counted() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        await close_gate(engine, store, *WARM)
        writing = asyncio.ensure_future(saved(engine, "Something else", "else"))
        await held(store)
        found = await read_memory(engine, caller("r"), memory_id)
        assert not writing.done()
        assert found["memory"]["content"] == "A fact"
        store.gate.set()
        await writing
        assert engine.graph.memories[memory_id].access_count == 1
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_a_failure_is_told_until_the_next_attempt_succeeds() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        store.failing = True
        with pytest.raises(StorageFailed):
            await saved(engine, "Something else", "else")
        await read_memory(engine, caller(), memory_id)
        assert await engine.writer.flush_soft() == 0
        assert any("full" in problem for problem in (await engine.report())["problems"])
        store.failing = False
        await saved(engine, "Something else", "else")
        await engine.writer.flush_soft()
        assert (await engine.report())["problems"] == []
        await _store_equals_graph(engine, store)

    play(scene, store=store)


def test_soft_changes_to_what_was_forgotten_meanwhile_are_dropped() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        fact = key_id(engine, "fact")
        await close_gate(engine, store, *WARM)
        forgetting = asyncio.ensure_future(forget(engine, caller(), memory_id))
        await held(store)
        await read_memory(engine, caller(), memory_id, fact)
        store.gate.set()
        await forgetting
        await _store_equals_graph(engine, store)
        assert not engine.graph.memories

    play(scene, store=store)


def test_a_repeated_read_counts_once_also_after_the_store_was_reopened() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> str:
        memory_id = await saved(engine, "A fact", "fact")
        for _ in range(3):
            await read_memory(engine, caller("r"), memory_id, key_id(engine, "fact"))
        await asyncio.gather(*(read_memory(engine, caller("s"), memory_id) for _ in range(3)))
        assert engine.graph.memories[memory_id].access_count == 2
        return memory_id

    memory_id = play(scene, store=store)

    async def later(engine: Engine) -> None:
        await read_memory(engine, caller("r"), memory_id)
        assert engine.graph.memories[memory_id].access_count == 2

    play(later, store=store)


def test_a_repeated_retrieval_strengthens_once_and_never_blocks_later_flushes() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> str:
        memory_id = await saved(engine, "Newton saw an apple", "Newton")
        await retrieve(engine, caller("r"), "Newton")
        await retrieve(engine, caller("r"), "Newton")
        return memory_id

    memory_id = play(scene, store=store)

    async def later(engine: Engine) -> None:
        newton = key_id(engine, "Newton")
        await retrieve(engine, caller("r"), "Newton")
        await read_memory(engine, caller("q"), memory_id)
        await engine.writer.flush_soft()
        assert engine.writer.last_failure is None
        link = engine.graph.link(newton, memory_id)
        assert link is not None
        assert link.weight == pytest.approx(1.1)
        await _store_equals_graph(engine, store)

    play(later, store=store)


def test_a_key_that_use_has_just_taught_can_be_linked_before_it_was_flushed() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "Gravity is described by general relativity", "general relativity")
        through = key_id(engine, "general relativity")
        for _ in range(3):
            found = await recall(engine, caller(), "relativity")
            assert [key["key_id"] for key in found["keys"]] == [through]
            await read_memory(engine, caller(), memory_id, through)
        assert engine.graph.key_of_surface("relativity") is not None
        await saved(engine, "Another fact", "relativity")
        await _store_equals_graph(engine, store)

    play(scene, store=store, settings=replace(load_settings({}), autokey_confirm_floor=0.3))


def test_closing_drains_what_was_asked_for_and_takes_nothing_more() -> None:
    store = FaultyStore()

    async def run() -> None:
        async with opened(store) as engine:
            memory_id = await saved(engine, "A fact", "fact")
            await read_memory(engine, caller(), memory_id)
            await close_gate(engine, store, *WARM)
            waiting = [asyncio.ensure_future(remember(engine, caller(), item(f"Fact {n}", "fact"))) for n in range(100)]
            await held(store)
            closing = asyncio.ensure_future(engine.writer.close())
            await asyncio.sleep(0)
            with pytest.raises(Unavailable):
                await remember(engine, caller(), item("Too late", "late"))
            store.gate.set()
            await closing
            assert len([await task for task in waiting]) == 100
        async with opened(store, new_id=CountingIds()) as again:
            assert len(again.graph.memories) == 101
            assert again.graph.memories[memory_id].access_count == 1

    asyncio.run(run())


def test_a_writer_that_is_ended_from_outside_leaves_nobody_waiting() -> None:
    store = FaultyStore()

    async def run() -> None:
        async with opened(store, background=False) as engine:
            running = asyncio.ensure_future(engine.writer.run())
            await close_gate(engine, store, *WARM)
            under_way = asyncio.ensure_future(remember(engine, caller(), item("Under way", "way")))
            await held(store)
            waiting = asyncio.ensure_future(remember(engine, caller(), item("Waiting", "wait")))
            await until(lambda: len(engine.writer._queue) == 1)
            running.cancel()
            store.gate.set()
            outcomes = await asyncio.gather(under_way, waiting, return_exceptions=True)
            assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
            with pytest.raises(Unavailable):
                await remember(engine, caller(), item("Late", "late"))

    asyncio.run(run())


def test_the_store_in_memory_needs_no_gate() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        assert engine.graph.memories[memory_id].content == "A fact"

    play(scene, store=MemoryStore())


class TidiedStore(MemoryStore):
    """Tidies after an answer when the gate is open, and fails to when told."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.failing = False

    def tidy(self, *, idle: bool) -> None:
        if not idle and not self.gate.wait(PATIENCE_S):
            raise TimeoutError("nobody opened the gate")
        if self.failing:
            raise StorageFailed("the log cannot be moved")


def test_no_answer_waits_for_the_store_to_be_tidied() -> None:
    store = TidiedStore()

    async def scene(engine: Engine) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S / 2):
                first = await saved(engine, "A fact", "key")
            assert first in engine.graph.memories
        finally:
            store.gate.set()

    play(scene, store=store)


def test_a_store_that_cannot_be_tidied_is_told_of_and_written_to_all_the_same() -> None:
    store = TidiedStore()
    store.gate.set()

    async def scene(engine: Engine) -> None:
        store.failing = True
        await saved(engine, "A fact", "key")
        await until(lambda: "the log cannot be moved" in str(engine.writer.last_failure))
        store.failing = False
        await saved(engine, "Another", "key")
        await until(lambda: engine.writer.last_failure is None)

    play(scene, store=store)
