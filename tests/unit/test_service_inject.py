"""What the prompt hook is given: what clearly answers, never twice within twenty prompts, and nothing changed by it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from fixed_time import FixedClock
from open_engines import caller, everything, opened, play, saved

from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.inject import inject

FACT = "The backup of the photo archive runs every Sunday night on the old laptop."
WEIGHTS = Weights()
QUESTION = "When does the backup of the photo archive run?"


async def fact(engine: Engine) -> str:
    return await saved(engine, FACT, "backup", "photo archive", "laptop")


def test_a_memory_that_answers_comes_with_its_path_and_validity_and_changes_nothing() -> None:
    async def scene(engine: Engine) -> None:
        await engine.light.load()
        memory_id = await fact(engine)
        before = everything(engine)
        found = await inject(engine, caller(), QUESTION, "s")
        assert [memory["id"] for memory in found["memories"]] == [memory_id]
        assert set(found["memories"][0]) == {"id", "content", "namespace", "relevance", "matched_key", "path", "validity"}
        assert found["searched"] == {"namespaces": None, "memory_count": 1}
        await engine.writer.flush_soft()
        assert everything(engine) == before

    play(scene, encoder=BuiltinEncoder())


def test_a_session_sees_a_memory_again_after_twenty_prompts_or_when_it_was_confirmed() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        await engine.light.load()
        memory_id = await fact(engine)
        shown = [bool((await inject(engine, caller(), QUESTION, "s"))["memories"]) for _ in range(21)]
        assert shown == [True, *[False] * 19, True]
        assert (await inject(engine, caller(), QUESTION, "another"))["memories"]
        clock.advance(seconds=60)
        await confirm_memory(engine, caller(), memory_id, "user")
        assert (await inject(engine, caller(), QUESTION, "s"))["memories"]

    play(scene, encoder=BuiltinEncoder(), clock=clock)


def test_the_ranking_chooses_among_what_is_relevant_enough_and_the_most_relevant_comes_first() -> None:
    async def scene(engine: Engine) -> None:
        for number, line in enumerate(
            ("A lantern stands in the harbour.", "The harbour has a lantern and a bell.", "The red harbour lantern burns oil at night.", "Otters.")
        ):
            await saved(engine, line, "harbour", f"note {number}")
        engine.profile = replace(engine.profile, hook_floor=0.01)

        async def shown(top_k: int, pairs: float) -> list[dict[str, Any]]:
            engine.weights = replace(WEIGHTS, first_apart=0.0, first_alike=0.0, first_pairs=pairs)
            memories: list[dict[str, Any]] = (await inject(engine, caller(), "a harbour lantern", None, top_k=top_k))["memories"]
            return memories

        (ranked_first,), (learned_first,) = await shown(1, 0.0), await shown(1, 9.0)
        assert learned_first["content"].startswith("The red harbour lantern")
        assert ranked_first["id"] != learned_first["id"]
        all_of_them = [memory["relevance"] for memory in await shown(3, 9.0)]
        assert len(all_of_them) == 3
        assert all_of_them == sorted(all_of_them, reverse=True)
        engine.profile = replace(engine.profile, hook_floor=0.99)
        assert await shown(3, 9.0) == []

    play(scene)


@pytest.mark.parametrize("prompt", ["Refactor this function to use async await", "git rebase or merge?", "   ", "\N{GRINNING FACE} 한글 \N{ROCKET}"])
def test_a_prompt_about_something_else_gets_nothing(prompt: str) -> None:
    async def scene(engine: Engine) -> None:
        await engine.light.load()
        await fact(engine)
        assert (await inject(engine, caller(), prompt, "s"))["memories"] == []

    play(scene, encoder=BuiltinEncoder())


def test_a_question_about_a_stranger_gets_nothing_of_those_who_are_known() -> None:
    async def scene(engine: Engine) -> None:
        await engine.light.load()
        known = await saved(engine, "Melanie paints sunsets at the lake every summer.", "Melanie", "painting", "lake", key_types={"Melanie": "name"})
        asked = "Does {} paint sunsets at the lake every summer?"
        assert [m["id"] for m in (await inject(engine, caller(), asked.format("Melanie"), "s"))["memories"]] == [known]
        assert (await inject(engine, caller(), asked.format("Melinda"), "another"))["memories"] == []

    play(scene, encoder=BuiltinEncoder())


def test_without_vectors_there_is_no_evidence_and_nothing_is_added() -> None:
    async def scene() -> None:
        async with opened(encoder=BuiltinEncoder(), background=False) as engine:
            assert not engine.light.ready
            assert (await inject(engine, caller(), QUESTION, "s"))["memories"] == []

    asyncio.run(scene())


@pytest.mark.parametrize(("top_k", "budget_ms"), [(-1, 800), (21, 800), (2, 0), (2, 60_001)])
def test_numbers_out_of_range_are_refused(top_k: int, budget_ms: int) -> None:
    async def scene(engine: Engine) -> None:
        with pytest.raises(InvalidArgument):
            await inject(engine, caller(), QUESTION, "s", None, top_k, budget_ms)

    play(scene)
