"""What use teaches, through the verbs and with the real encoder: words that kept leading to a memory come to mean it."""

from __future__ import annotations

from typing import Any

import pytest
from open_engines import caller, key_id, play, saved

from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.service.dismiss import dismiss
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.navigate import read_memory
from keymem_daemon.service.recall import recall

PRESENT = "The present that Nell liked best was the brass telescope"


@pytest.fixture(scope="module")
def encoder() -> BuiltinEncoder:
    """The model, loaded once."""
    return BuiltinEncoder()


async def present_among_others(engine: Engine) -> str:
    await engine.light.load()
    await saved(engine, "The chimney may only be swept when the swifts have left", "chimney")
    await saved(engine, "Pip saves her pocket money for a kayak", "kayak")
    return await saved(engine, PRESENT, "Nell", "presents", key_types={"Nell": "name"})


async def missed(engine: Engine, query: str) -> list[dict[str, Any]]:
    """What a recall that must find nothing offers instead."""
    answer = await recall(engine, caller(), query)
    assert (answer["status"], answer["memories"]) == ("no_match", [])
    offered: list[dict[str, Any]] = answer["nearest_keys"]
    return offered


def test_a_query_that_is_refused_is_found_once_the_key_offered_instead_has_led_to_the_memory_three_times(encoder: BuiltinEncoder) -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await present_among_others(engine)
        through = key_id(engine, "presents")
        for _ in range(3):
            assert through in {key["key_id"] for key in await missed(engine, "gift")}
            await read_memory(engine, caller(), memory_id, through)
        found = await recall(engine, caller(), "gift")
        assert (found["status"], found["keys"][0]["concept"]) == ("found", "gift")
        assert found["memories"][0]["id"] == memory_id

    play(scene, encoder=encoder)


def test_a_translation_that_merges_becomes_an_alias_and_leads_to_all_that_the_key_leads_to(encoder: BuiltinEncoder) -> None:
    async def scene(engine: Engine) -> None:
        await engine.light.load()
        memory_id = await saved(engine, "The demo uses made-up data of a seabird colony", "investors", "demo")
        through = key_id(engine, "investors")
        for _ in range(3):
            await recall(engine, caller(), "инвесторы")
            await read_memory(engine, caller(), memory_id, through)
        assert [(alias.alias, alias.hits) for alias in engine.graph.keys[through].learned] == [("инвесторы", 0)]
        later = await saved(engine, "The quarterly letter goes out in May", "investors")
        found = await recall(engine, caller(), "инвесторы", "The quarterly letter goes out in which month?")
        assert (found["keys"][0]["concept"], found["keys"][0]["match_type"]) == ("investors", "alias")
        assert found["memories"][0]["id"] == later
        await read_memory(engine, caller(), later, through)
        assert [alias.hits for alias in engine.graph.keys[through].learned] == [1]

    play(scene, encoder=encoder)


def test_a_name_that_is_offered_after_a_miss_learns_nothing(encoder: BuiltinEncoder) -> None:
    async def scene(engine: Engine) -> None:
        await engine.light.load()
        memory_id = await saved(engine, "She is on leave until August", "Gifts and Co", key_types={"Gifts and Co": "name"})
        through = key_id(engine, "Gifts and Co")
        for _ in range(3):
            offered = {key["key_id"]: key["similarity"] for key in await missed(engine, "presents")}
            assert offered[through] >= engine.settings.autokey_confirm_floor
            await read_memory(engine, caller(), memory_id, through)
        assert engine.graph.keys[through].candidates == ()
        assert len(engine.graph.keys) == 1

    play(scene, encoder=encoder)


def test_dismissing_the_key_that_was_offered_after_a_miss_ends_its_learning(encoder: BuiltinEncoder) -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await present_among_others(engine)
        through = key_id(engine, "presents")
        for _ in range(2):
            await missed(engine, "gift")
            await read_memory(engine, caller(), memory_id, through)
        await missed(engine, "gift")
        assert (await dismiss(engine, caller(), memory_id, through))["cancelled_learning"] == 1
        await read_memory(engine, caller(), memory_id, through)
        assert engine.graph.keys[through].candidates == ()
        assert engine.graph.key_of_surface("gift") is None

    play(scene, encoder=encoder)
