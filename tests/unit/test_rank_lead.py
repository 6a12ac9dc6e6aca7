"""The lead: when one memory clearly answers, and what that is worth to what stands beside it and to what it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from open_engines import caller, play, saved

from keymem_daemon.core.rank.firststage import Coverage, Gift
from keymem_daemon.core.rank.lead import Leader, about_from, leader_of, with_leaders_gifts
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.index.sequence import SaveSequence
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.retrieve import retrieve

WEIGHTS = Weights()


def coverage(has: Mapping[str, int], unseen: float = 0.0) -> Coverage:
    """Of a query of two terms of equal weight, and ``unseen`` of further ones; ``has`` are sets of bits."""
    return Coverage({"one": 1.0, "two": 1.0}, unseen, lambda memory_ids: [has[memory_id] for memory_id in memory_ids])


def test_the_lead_is_the_distance_to_the_second_times_what_the_best_covers() -> None:
    for unseen, mask, lead in ((0.0, 0b11, 0.6), (0.0, 0b01, 0.3), (2.0, 0b11, 0.3)):
        leader = leader_of({"a": 1.0, "b": 0.4}, coverage({"a": mask}, unseen))
        assert leader is not None
        assert leader.memory_id == "a"
        assert leader.lead == pytest.approx(lead)


def test_nobody_leads_alone_or_level_or_without_a_word_of_the_query() -> None:
    assert leader_of({}, coverage({})) is None
    assert leader_of({"a": 1.0}, coverage({"a": 0b11})) is None
    assert leader_of({"a": 1.0, "b": 1.0}, coverage({"a": 0b11, "b": 0b11})) is None
    assert leader_of({"a": 1.0, "b": 0.4}, coverage({"a": 0})) is None


def test_only_roads_out_of_the_leader_count_more() -> None:
    assert about_from(Leader("a", 0.5), "a", WEIGHTS) == 1 + WEIGHTS.lead_road / 2
    assert about_from(Leader("a", 0.5), "b", WEIGHTS) == about_from(None, "a", WEIGHTS) == 1.0


async def five(engine: Engine) -> list[str]:
    """Five memories saved one after the other under one key, and one under another."""
    told = [
        await saved(engine, f"The {word} of the voyage.", "voyage")
        for word in ("dawn", "noon", "anchor", "dusk", "night")
    ]
    return [*told, await saved(engine, "A letter about taxes.", "taxes")]


def test_what_was_saved_beside_the_leader_gains_the_lead_and_the_rest_nothing() -> None:
    async def scene(engine: Engine) -> None:
        _, before, best, after, last, _ = await five(engine)
        sequence = engine.catalog.sequence
        gifts = with_leaders_gifts(engine.graph, sequence.neighbours, Leader(best, 0.2), {best: 1.0}, {}, None, WEIGHTS)
        share = WEIGHTS.neighbour + 0.2 * WEIGHTS.lead_gift
        assert gifts == dict.fromkeys((before, after), Gift(best, share, share))
        gifts = with_leaders_gifts(engine.graph, sequence.neighbours, Leader(last, 0.2), {last: 1.0}, {}, None, WEIGHTS)
        assert set(gifts) == {after}

    play(scene)


def test_a_gift_brings_nobody_past_its_giver_and_takes_nobody_a_better_one() -> None:
    async def scene(engine: Engine) -> None:
        first, before, best, after, last, _ = await five(engine)
        neighbours = engine.catalog.sequence.neighbours
        scores = {best: 0.8, before: 0.6, after: 0.8}
        gifts = with_leaders_gifts(engine.graph, neighbours, Leader(best, 1.0), scores, {}, None, WEIGHTS)
        assert scores[before] + gifts[before].amount == pytest.approx(scores[best])
        assert after not in gifts
        better, worse = Gift("another", 0.2, 0.79), Gift("another", 0.2, 0.01)
        given = {before: better, after: worse, first: worse, last: better}
        gifts = with_leaders_gifts(engine.graph, neighbours, Leader(best, 1.0), {best: 0.8}, given, None, WEIGHTS)
        assert gifts[before] == Gift(best, 1.0, 0.8)
        assert gifts[after].giver == best
        assert (gifts[first], gifts[last]) == (worse, better)

    play(scene)


def test_without_a_leader_gifts_are_what_they_were() -> None:
    gifts = {"a": Gift("b", 0.2, 0.1)}

    async def scene(engine: Engine) -> None:
        assert (
            with_leaders_gifts(engine.graph, SaveSequence().neighbours, None, {"b": 0.5}, gifts, None, WEIGHTS) == gifts
        )

    play(scene)


def test_what_was_said_beside_a_clear_answer_comes_before_what_resembles_the_question_a_little() -> None:
    async def scene(engine: Engine) -> None:
        best = await saved(
            engine, "The ferry to Heron Island leaves from pier nine at dawn.", "crossings", "Heron Island"
        )
        beside = await saved(engine, "It costs eleven crowns.", "crossings")
        await saved(engine, "Nothing.", "pause")
        little = [
            await saved(engine, f"The {word} leaves the island at dawn.", word) for word in ("guest", "bus", "train")
        ]

        async def order() -> list[str]:
            question = "When does the ferry to Heron Island leave from pier nine, at dawn?"
            return [memory["id"] for memory in (await retrieve(engine, caller(), question, learn=False))["memories"]]

        engine.weights = replace(WEIGHTS, bridge_hits=0)
        found = await order()
        assert found[:2] == [best, beside]
        engine.weights = replace(WEIGHTS, bridge_hits=0, lead_gift=0.0)
        found = await order()
        assert found[0] == best
        assert found.index(beside) > min(found.index(memory_id) for memory_id in little)

    play(scene)


def test_a_clear_answer_leads_further_to_what_is_about_the_thing_it_mentions() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "The ferry to Heron Island leaves from pier nine at dawn.", "ferry", "pier nine")
        for word in ("guest", "bus", "train"):
            await saved(engine, f"The {word} leaves the island at dawn.", word)
        pier = await saved(engine, "It was rebuilt after the flood.", "pier nine")
        engine.weights = replace(WEIGHTS, neighbour=0.0, lead_gift=0.0)

        async def worth() -> float:
            question = "When does the ferry to Heron Island leave at dawn?"
            answer = await retrieve(engine, caller(), question, explain=True, learn=False)
            (why,) = [memory["why"] for memory in answer["memories"] if memory["id"] == pier]
            (bridge,) = [part for part in why["contributions"] if part["signal"] == "bridge"]
            return float(bridge["parts"]["link"])

        assert 1.0 < await worth() <= 1 + WEIGHTS.lead_road
        engine.weights = replace(engine.weights, lead_road=0.0)
        assert await worth() == 1.0

    play(scene)
