"""Whom the query names: memories about them before those that mention them, and those before all others."""

from __future__ import annotations

import pytest
from open_engines import key_id, play, saved

from keymem_daemon.core.rank.firststage import of_named
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine

WEIGHTS = Weights()


def lowered(engine: Engine, memories: list[str], *named: str) -> list[float]:
    """What is left of a score of 1 for each memory when these keys are named."""
    found = of_named(engine.graph, engine.catalog.mentions, dict.fromkeys(memories, 1.0), [key_id(engine, name) for name in named], WEIGHTS)
    return [found[m] for m in memories]


async def people(engine: Engine) -> list[str]:
    """About Mira, linked to her, mentioning her, and of somebody else."""
    mira, tobin = {"Mira": "name"}, {"Tobin": "name"}
    return [
        await saved(engine, "She works from home", "Mira", "remote work", key_types=mira),
        await saved(engine, "He lends her a tent", "Tobin", "Mira", "tent", key_types=mira | tobin),
        await saved(engine, "He reviews what Mira writes", "Tobin", "review", key_types=tobin),
        await saved(engine, "He sails", "Tobin", "sailing", key_types=tobin),
    ]


def test_about_comes_before_mentioned_and_mentioned_before_somebody_else() -> None:
    async def scene(engine: Engine) -> None:
        memories = await people(engine)
        once = WEIGHTS.of_others
        assert lowered(engine, memories, "Mira") == pytest.approx([1.0, once, once, once * once])
        assert lowered(engine, memories, "Mira", "Tobin") == [1.0] * 4

    play(scene)


def test_where_no_candidate_is_about_the_named_mention_is_enough() -> None:
    async def scene(engine: Engine) -> None:
        memories = (await people(engine))[1:]
        assert lowered(engine, memories, "Mira") == [1.0, 1.0, WEIGHTS.of_others]

    play(scene)


def test_without_a_named_person_nothing_changes() -> None:
    async def scene(engine: Engine) -> None:
        memories = await people(engine)
        assert lowered(engine, memories) == lowered(engine, memories, "sailing", "tent") == [1.0] * 4

    play(scene)
