"""A read that runs late returns the best it has so far and says so; one that is on time says nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from hashing_words import HashingWords
from open_engines import PATIENCE_S, caller, item, play, saved

from keymem_daemon.ports import Matrix
from keymem_daemon.service.deadline import Deadline
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.inject import inject
from keymem_daemon.service.recall import recall
from keymem_daemon.service.remember import remember_batch
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings


class Ticking:
    """A monotonic clock that gains ``step`` seconds each time it is looked at, and an hour when it was looked at ``looks`` times."""

    def __init__(self, step: float = 0.0, looks: int = -1) -> None:
        self.at = 100.0
        self.step = step
        self.looks = looks

    def __call__(self) -> float:
        self.at += self.step + (3_600.0 if self.looks == 0 else 0.0)
        self.looks -= 1
        return self.at


class Blockable(HashingWords):
    """Answers only while it is ``free``: a model that takes its time, on the encoder's own thread (texts of 200 characters go there)."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.free.set()

    def encode(self, texts: Sequence[str]) -> Matrix:
        assert self.free.wait(PATIENCE_S / 4)
        return super().encode(texts)


async def a_chain(engine: Engine) -> dict[str, str]:
    """Two memories that share a key beyond the question's, among others that share nothing."""
    for number in range(12):
        await saved(engine, f"The stone {number} lies in field {number}", f"stone{number}", f"field{number}")
    return {
        "first": await saved(engine, "Newton watched an apple fall", "Newton", "apple"),
        "second": await saved(engine, "The colour of the apple skin is crimson", "apple", "crimson"),
    }


def test_nothing_is_skipped_before_the_deadline_and_everything_after_it() -> None:
    clock = Ticking()
    deadline = Deadline(clock, 2.0)
    clock.at += 1.9
    assert not deadline.passed("one")
    assert not deadline.skipped
    clock.at += 0.2
    assert deadline.passed("two")
    assert deadline.passed("three")
    assert deadline.passed("two")
    assert list(deadline.skipped) == ["two", "three"]


def test_work_that_is_not_done_in_time_is_cancelled_and_counts_as_skipped() -> None:
    async def scene() -> None:
        cancelled = asyncio.Event()

        async def endless() -> str:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return "never"

        async def quick() -> str:
            return "done"

        clock = Ticking()
        deadline = Deadline(clock, 0.01)
        assert await deadline.within("quick", quick) == "done"
        async with asyncio.timeout(PATIENCE_S):
            assert await deadline.within("endless", endless) is None
        assert cancelled.is_set()
        assert list(deadline.skipped) == ["endless"]
        clock.at += 1
        assert await deadline.within("quick", quick) is None
        assert list(deadline.skipped) == ["endless", "quick"]

    asyncio.run(scene())


def test_a_retrieval_whose_time_is_up_before_the_second_hop_returns_its_first_stage() -> None:
    async def scene(engine: Engine) -> None:
        ids = await a_chain(engine)
        question = "What did Newton watch, and of which colour is its skin?"
        one_hop = await retrieve(engine, caller(), question, hops=1, learn=False)
        whole = await retrieve(engine, caller(), question, hops=2, explain=True, learn=False)
        assert "partial" not in whole
        assert "skipped" not in whole
        # One look when the request comes, two for its vectors: the next asks whether there is time to cross.
        engine.monotonic = Ticking(looks=3)
        cut = await retrieve(engine, caller(), question, hops=2, explain=True, learn=False)
        assert cut["partial"] is True
        assert cut["skipped"] == ["hop 2"], "the sentences are known and cost nothing"
        assert [(m["id"], m["score"]) for m in cut["memories"]] == [(m["id"], m["score"]) for m in one_hop["memories"]]
        assert ids["first"] in {m["id"] for m in cut["memories"]}
        assert [m["score"] for m in cut["memories"]] != [m["score"] for m in whole["memories"]]

    play(scene)


def test_however_slow_every_stage_is_recall_and_retrieval_answer_by_the_words() -> None:
    async def scene(engine: Engine) -> None:
        ids = await a_chain(engine)
        engine.monotonic = Ticking(step=5.0)
        found = await recall(engine, caller(), "Newton", "What did Newton watch?", explain=True)
        assert (found["status"], found["partial"]) == ("found", True)
        assert found["memories"][0]["id"] == ids["first"]
        assert found["skipped"]
        direct = await retrieve(engine, caller(), "What did Newton watch?", learn=False)
        assert direct["partial"] is True
        assert direct["memories"][0]["id"] == ids["first"]
        assert direct["semantic"] == "warming"

    play(scene)


def test_a_model_that_does_not_answer_in_time_costs_its_signals_and_nothing_else() -> None:
    model = Blockable()

    async def scene(engine: Engine) -> None:
        ids = await a_chain(engine)
        model.free.clear()
        question = "Newton watched an apple fall. " * 8
        try:
            found = await recall(engine, caller(), question)
            direct = await retrieve(engine, caller(), question, learn=False)
        finally:
            model.free.set()
        for answer in (found, direct):
            assert answer["partial"] is True
            assert answer["memories"][0]["id"] == ids["first"]
        again = await retrieve(engine, caller(), question, learn=False)
        assert again["semantic"] == "ready"

    play(scene, encoder=model, settings=load_settings({"KEYMEM_RECALL_DEADLINE_MS": "50"}))


def test_a_hook_whose_budget_is_over_gets_an_answer_that_says_so_and_only_what_can_be_vouched_for() -> None:
    async def scene(engine: Engine) -> None:
        await a_chain(engine)
        prompt = "Newton watched an apple fall"
        whole = await inject(engine, caller(), prompt)
        assert whole["memories"]
        assert "partial" not in whole
        engine.monotonic = Ticking(step=1.0)
        cut = await inject(engine, caller(), prompt, budget_ms=1)
        assert cut["partial"] is True
        assert cut["memories"] == [], "without vectors there is no evidence"

    play(scene)


def test_sentences_are_looked_at_in_pieces_so_that_those_looked_at_in_time_count() -> None:
    async def scene(engine: Engine) -> None:
        items = [item(f"A heron stood by pond {number} at dawn", "heron", f"pond{number}") for number in range(40)]
        await remember_batch(engine, caller(), list(items))
        whole = await retrieve(engine, caller(), "heron dawn", hops=1, top_k=40, explain=True, learn=False)
        near = [m for m in whole["memories"] if any(part["signal"] == "sentence" for part in m["why"]["contributions"])]
        assert len(near) == 40
        engine.sentences.drop([m["id"] for m in whole["memories"]])
        # Each look at the clock is a second: query vectors (two looks), then a piece of sentences (two looks), then no more.
        engine.monotonic = Ticking(step=1.0)
        engine.settings = load_settings({"KEYMEM_RECALL_DEADLINE_MS": "4500"})
        cut = await retrieve(engine, caller(), "heron dawn", hops=1, top_k=40, explain=True, learn=False)
        assert cut["skipped"] == ["sentences"]
        near = [m for m in cut["memories"] if any(part["signal"] == "sentence" for part in m["why"]["contributions"])]
        assert len(near) == 16

    play(scene, background=True)
