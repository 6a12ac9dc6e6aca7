"""In a small scope a memory that neither a word nor a key leads to is found by its meaning, if there is time to look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fixed_time import FixedClock
from hashing_words import HashingWords
from open_engines import caller, play, saved

from keymem_daemon.ports import Matrix
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings

QUESTION = "Qui dirige notre chorale cette saison?"
ANSWER = "Hanbyeol conducts whatever the singers rehearse"
OTHER = "The bakery opens at seven except on Mondays"
A_SENTENCE = 4


class Meanings(HashingWords):
    """Sentences about conducting, in two languages, mean one thing and all other sentences another; words mean nothing in common."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        rows = super().encode(texts)
        for place, text in enumerate(texts):
            if len(text.split()) >= A_SENTENCE:
                rows[place] = np.eye(self.dimensions, dtype=np.float32)[0 if "dirige" in text or "conducts" in text else 1]
        return rows


class Ticking:
    """A clock that gains a second each time it is looked at."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        self.at += 1.0
        return self.at


async def found(engine: Engine, question: str = QUESTION, namespace: str | None = None) -> dict[str, dict[str, Any]]:
    """What direct retrieval finds, by id."""
    answer = await retrieve(engine, caller(), question, namespace=namespace, top_k=100, explain=True, learn=False)
    return {memory["id"]: memory for memory in answer["memories"]}


def test_a_memory_that_shares_no_word_and_no_key_with_the_question_is_found_by_its_meaning() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, OTHER, "bakery")
        answer = await saved(engine, ANSWER, "Hanbyeol")
        memories = await found(engine)
        assert set(memories) == {answer}, "what is far from the question in every way stays out"
        assert [part["signal"] for part in memories[answer]["why"]["contributions"]] == ["sentence"]
        engine.weights = replace(engine.weights, compared_whole=0)
        assert not await found(engine)

    play(scene, encoder=Meanings())


def test_only_memories_of_the_scope_are_found_by_their_meaning() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, OTHER, "bakery", namespace="alpha")
        answer = await saved(engine, ANSWER, "Hanbyeol", namespace="beta")
        assert not await found(engine, namespace="alpha")
        assert set(await found(engine, namespace="beta")) == {answer}

    play(scene, encoder=Meanings())


def test_memories_that_were_forgotten_or_have_expired_are_not_found_by_their_meaning() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        forgotten = await saved(engine, ANSWER, "Hanbyeol")
        brief = await saved(engine, f"{ANSWER} today", "Hanbyeol", ttl_seconds=60.0)
        assert set(await found(engine)) == {forgotten, brief}
        await forget(engine, caller(), forgotten)
        assert set(await found(engine)) == {brief}
        clock.advance(seconds=61.0)
        assert not await found(engine)

    play(scene, encoder=Meanings(), clock=clock)


@pytest.mark.parametrize(("others", "is_found"), [(49, True), (50, False)])
def test_a_scope_of_fifty_memories_is_compared_whole_and_a_larger_one_is_not(others: int, is_found: bool) -> None:
    async def scene(engine: Engine) -> None:
        answer = await saved(engine, ANSWER, "Hanbyeol")
        for number in range(others):
            await saved(engine, f"{OTHER} in winter {number}", f"winter{number}")
        assert (answer in await found(engine)) == is_found

    play(scene, encoder=Meanings())


def test_what_words_lead_to_is_looked_at_first_and_what_is_late_is_left_out() -> None:
    async def scene(engine: Engine) -> None:
        answer = await saved(engine, ANSWER, "Hanbyeol")
        by_words = {await saved(engine, f"La chorale numero {number} dirige tout", f"chorale{number}") for number in range(16)}
        assert set(await found(engine)) == {answer, *by_words}
        engine.sentences.drop([answer, *by_words])
        # Each look at the clock is a second: query vectors (two looks), the sixteen that words lead to (two looks), then no more.
        engine.monotonic = Ticking()
        engine.settings = load_settings({"KEYMEM_RECALL_DEADLINE_MS": "4500"})
        memories = await found(engine)
        assert set(memories) == by_words
        assert all("sentence" in {part["signal"] for part in memory["why"]["contributions"]} for memory in memories.values())

    play(scene, encoder=Meanings())
