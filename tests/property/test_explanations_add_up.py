"""An explanation is true: its amounts, summed and multiplied with its factors, are the score that is shown; its way leads to the memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import pytest
from fixed_time import FixedClock
from hypothesis import given, settings
from hypothesis import strategies as st
from open_engines import caller, play, saved

from keymem_daemon.core.model import KeyType
from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.navigate import read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings

WORDS = ("harbour", "lantern", "otter", "violin", "quarry", "meadow", "Mira", "Tomas")
SPACES = ("alpha", "beta")
MILLIONTH = 1e-6
ROUNDED = 1e-4
"""Parts are shown with nine digits; a product of several, or a quotient by a small one, is that much less exact."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory to save, a while after the one before; ``related`` picks one that is there already."""

    words: tuple[str, ...]
    keys: tuple[str, ...]
    space: str
    profile: str
    hours: float
    related: int | None
    confirmed: bool


facts = st.builds(
    Fact,
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(tuple),
    keys=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True).map(tuple),
    space=st.sampled_from(SPACES),
    profile=st.sampled_from(("transient", "standard", "permanent")),
    hours=st.floats(0.0, 2_000.0),
    related=st.none() | st.integers(0, 20),
    confirmed=st.booleans(),
)
questions = st.lists(st.sampled_from((*WORDS, "otters", "unknown")), min_size=1, max_size=4).map(" ".join)


async def save(engine: Engine, number: int, fact: Fact) -> None:
    ids = list(engine.graph.memories)
    types: dict[str, KeyType] = {name: "name" for name in fact.keys if name[0].isupper()}
    memory_id = await saved(
        engine,
        f"Note {number}: the {' and the '.join(fact.words)} were there.",
        *fact.keys,
        key_types=types,
        namespace=fact.space,
        decay_profile=fact.profile,
        related_to=(ids[fact.related % len(ids)],) if ids and fact.related is not None else (),
    )
    await read_memory(engine, caller(), memory_id, next(iter(engine.graph.key_ids_of(memory_id))))
    if fact.confirmed:
        await confirm_memory(engine, caller(), memory_id, "user")


def check_sum(why: dict[str, Any], shown: float) -> None:
    total = sum(part["amount"] for part in why["contributions"])
    product = prod(factor["value"] for factor in why["factors"])
    assert abs(total - why["sum"]) < MILLIONTH
    assert abs(total * product - why["score"]) < MILLIONTH
    assert abs(total * product - shown) < MILLIONTH
    for part in why["contributions"]:
        assert abs(part["value"] * part["weight"] * part.get("lowered", 1.0) - part["amount"]) < MILLIONTH
        if part["signal"] == "bridge":
            assert abs(prod(part["parts"].values()) - part["value"]) < ROUNDED
        if part["signal"] == "keys":
            assert len(part["keys"]) == 6 or abs(sum(key["worth"] for key in part["keys"]) - part["raw"]) < MILLIONTH


def check_path(engine: Engine, path: list[dict[str, Any]], memory_id: str) -> None:
    assert path[-1]["memory_id"] == memory_id
    for before, after in pairwise(path):
        assert ("memory_id" in before) != ("memory_id" in after), "keys and memories in turn"
        memory, step = (before, after) if "memory_id" in before else (after, before)
        if step.get("related_to"):
            continue
        key = engine.graph.keys[step["key_id"]]
        assert step["concept"] == key.concept
        tied = engine.graph.link(key.id, memory["memory_id"]) is not None
        assert tied or memory["memory_id"] in engine.catalog.mentions.mentions_of(key.id)


@pytest.mark.parametrize("plan", ["reference", "rrf"])
@given(st.lists(facts, min_size=1, max_size=9), questions, st.integers(1, 5), st.sampled_from((None, *SPACES)))
@settings(max_examples=25, deadline=None)
def test_the_amounts_of_every_retrieved_memory_add_up_to_its_score(
    plan: str, script: list[Fact], question: str, hops: int, space: str | None
) -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        for number, fact in enumerate(script):
            clock.advance(seconds=fact.hours * 3_600)
            await save(engine, number, fact)
        found = await retrieve(engine, caller(), question, None, space, 20, hops, explain=True, learn=False)
        plain = await retrieve(engine, caller(), question, None, space, 20, hops, learn=False)
        assert [(m["id"], m["score"]) for m in found["memories"]] == [(m["id"], m["score"]) for m in plain["memories"]]
        for memory in found["memories"]:
            check_sum(memory["why"], memory["score"])
            check_path(engine, memory["why"]["path"], memory["id"])
            assert sum("memory_id" in step for step in memory["why"]["path"]) == 1 + memory["hop"]

    play(scene, clock=clock, settings=load_settings({"KEYMEM_RETRIEVAL": plan}))


@given(st.lists(facts, min_size=1, max_size=9), questions, st.none() | questions, st.sampled_from((None, *SPACES)))
@settings(max_examples=25, deadline=None)
def test_the_amounts_of_a_preview_add_up_to_its_relevance_and_with_the_factors_to_its_score(
    script: list[Fact], question: str, context: str | None, space: str | None
) -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        for number, fact in enumerate(script):
            clock.advance(seconds=fact.hours * 3_600)
            await save(engine, number, fact)
        found = await recall(engine, caller(), question, context, space, explain=True)
        if found["status"] == "found":
            why = found["explain"]
            check_sum(why, why["score"])
            preview = found["memories"][0]
            assert round(why["sum"], 3) == pytest.approx(preview["content_relevance"], abs=0.0011)
            assert [factor["factor"] for factor in why["factors"] if factor["factor"] != "among_the_first"] == ["depth", "freshness", "link"]
            check_path(engine, why["path"], preview["id"])
            assert why["path"][0]["key_id"] == preview["matched_key"]["key_id"]
        else:
            assert "explain" not in found

    play(scene, clock=clock)
