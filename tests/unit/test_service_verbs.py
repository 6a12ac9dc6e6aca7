"""The writing verbs as the tools offer them: what comes back, batches, provenance, secrets, forgetting, sweeping, learning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from faulty_store import FaultyStore
from fixed_time import FixedClock
from hashing_words import HashingWords
from open_engines import caller, everything, item, key_id, play, saved

from keymem_daemon.core.changes import MemoryChanged
from keymem_daemon.core.errors import InvalidArgument, KeymemError, NotFound, TooLarge
from keymem_daemon.core.model import Actor
from keymem_daemon.ports import Matrix
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.correct import correct
from keymem_daemon.service.dismiss import dismiss
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.inspection import history, show
from keymem_daemon.service.maintenance import forget_requests, sweep
from keymem_daemon.service.navigate import read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.remember import remember, remember_batch
from keymem_daemon.service.requests import CorrectionRequest, RememberItem
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings


def test_remember_returns_the_id_and_nothing_else_when_there_is_nothing_to_say() -> None:
    async def scene(engine: Engine) -> None:
        first = await remember(engine, caller(), item("A fact", "fact"))
        assert first == {"saved": next(iter(engine.graph.memories))}
        assert await remember(engine, caller(), item("a fact.", "fact")) == {**first, "deduplicated": True}

    play(scene)


def test_hints_have_the_fields_of_the_contract() -> None:
    async def scene(engine: Engine) -> None:
        result = await remember(engine, caller(), item("A fact", "three whole words", "x", "fact"))
        assert result["hints"] == {"phrase_keys": ["three whole words"], "dropped_keys": ["x"]}

    play(scene)


def test_a_bad_item_in_the_middle_of_a_batch_is_reported_in_its_place_and_stops_no_other() -> None:
    async def scene(engine: Engine) -> None:
        known = await saved(engine, "Known", "known")
        items: list[RememberItem | KeymemError] = [
            item("Fact 1", "fact", "first"),
            item("", "fact"),
            item("Fact 3", "fact", related_to=("ffffffffffff",)),
            item("x" * 20_001, "fact"),
            item("Fact 5", *[f"key {n}" for n in range(33)]),
            item("Fact 6", "?"),
            InvalidArgument("content", "text", "a number"),
            item("Fact 8", "fact", ttl_seconds=-1),
            item("Fact 9", "fact", decay_profile="forever"),
            item("Fact 10", "fact", "last", related_to=(known,)),
        ]
        results = (await remember_batch(engine, caller(), items))["results"]
        codes = [result.get("error", {}).get("code") for result in results]
        bad = "invalid_argument"
        assert codes == [None, bad, "not_found", "too_large", "too_large", bad, bad, bad, bad, None]
        assert {m.content for m in engine.graph.memories.values()} == {"Known", "Fact 1", "Fact 10"}
        assert engine.graph.memory_count(key_id(engine, "fact"), None) == 2
        assert engine.graph.neighbours(known) == [results[-1]["saved"]]

    play(scene)


def test_duplicates_within_one_batch_are_one_memory_and_one_key() -> None:
    async def scene(engine: Engine) -> None:
        batch = [item("A fact", "Python", "one"), item("a fact!", "파이썬", "two"), item("Another", "python"), item("A fact", "three")]
        results = (await remember_batch(engine, caller(), batch))["results"]
        assert [r["saved"] == results[0]["saved"] for r in results] == [True, True, False, True]
        assert [r.get("deduplicated", False) for r in results] == [False, True, False, True]
        concepts = [engine.graph.keys[link.key_id].concept for link in engine.graph.links_of(results[0]["saved"])]
        assert concepts == ["Python", "one", "two", "three"]
        assert engine.graph.memory_count(key_id(engine, "python"), None) == 2

    play(scene)


def test_a_batch_holds_1_to_200_items() -> None:
    async def scene(engine: Engine) -> None:
        results = (await remember_batch(engine, caller(), [item(f"Fact {n}", "fact") for n in range(200)]))["results"]
        assert len({result["saved"] for result in results}) == 200
        with pytest.raises(TooLarge, match="items"):
            await remember_batch(engine, caller(), [item(f"Fact {n}", "fact") for n in range(201)])
        with pytest.raises(InvalidArgument, match="items"):
            await remember_batch(engine, caller(), [])
        assert len(engine.graph.memories) == 200

    play(scene)


def test_a_batch_is_one_commit_and_answers_a_repeated_request_as_the_first_time() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        items = [item("One", "one"), item("", "two"), item("Three", "three")]
        first = await remember_batch(engine, caller("r"), items)
        commits = len([size for size in store.commits if size])
        assert commits == 1
        before = everything(engine)
        assert await remember_batch(engine, caller("r"), items) == first
        assert everything(engine) == before

    play(scene, store=store)


def test_the_callers_source_wins_over_the_stamp() -> None:
    async def scene(engine: Engine) -> None:
        who = Caller(Actor("remember", "s-1", "claude-code", "h-1", "7"))
        answer = await remember(engine, who, item("A fact", "fact", source={"session": "mine", "page": "3"}))
        source = engine.graph.memories[answer["saved"]].source
        assert source == {
            "session": "mine",
            "page": "3",
            "tool": "remember",
            "saved_at": "2023-11-14T22:13:20Z",
            "host_agent": "claude-code",
            "host_session": "h-1",
            "host_turn": "7",
        }

    play(scene)


def test_a_write_goes_to_the_named_namespace_else_to_the_mapped_one_else_to_the_default() -> None:
    async def scene(engine: Engine) -> None:
        mapped = caller(namespaces=("project", "shared"))
        for who, namespace, expected in ((caller(), None, "default"), (mapped, None, "project"), (mapped, "other", "other")):
            answer = await remember(engine, who, item(f"Fact for {expected}", "fact", namespace=namespace))
            assert engine.graph.memories[answer["saved"]].namespace == expected

    play(scene)


def test_a_secret_is_refused_in_content_and_keys_of_every_writing_verb_unless_allowed() -> None:
    secret = "ghp" + "_" + "q7Rk2ZpX9vLm4TbN8wYd3HsJ6cGf1QaE5uVi"

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        before = everything(engine)
        with pytest.raises(InvalidArgument, match="content"):
            await remember(engine, caller(), item(f"The key is {secret}", "fact"))
        with pytest.raises(InvalidArgument, match="keys"):
            await remember(engine, caller(), item("A secret", secret))
        with pytest.raises(InvalidArgument, match="content"):
            await correct(engine, caller(), CorrectionRequest(memory_id, secret))
        with pytest.raises(InvalidArgument, match="keys"):
            await correct(engine, caller(), CorrectionRequest(memory_id, "New", (secret,)))
        assert everything(engine) == before

    play(scene)

    async def allowed(engine: Engine) -> None:
        await saved(engine, f"The key is {secret}", "fact")

    play(allowed, settings=replace(load_settings({}), allow_secrets=True))


def test_correct_names_the_inherited_keys_so_that_the_agent_can_retag() -> None:
    async def scene(engine: Engine) -> None:
        old = await saved(engine, "Old", "city", "user")
        result = await correct(engine, caller(), CorrectionRequest(old, "New"))
        assert set(result) == {"new_id", "superseded", "note"}
        assert result["superseded"] == old
        assert "city" in result["note"]
        assert "user" in result["note"]
        assert "note" not in await correct(engine, caller(), CorrectionRequest(result["new_id"], "Newer", ("town",)))

    play(scene)


@pytest.mark.parametrize("keys", [(), ("?",), ("x", " ")])
def test_a_correction_can_never_leave_a_memory_without_a_key(keys: tuple[str, ...]) -> None:
    async def scene(engine: Engine) -> None:
        old = await saved(engine, "Old", "city")
        before = everything(engine)
        with pytest.raises(InvalidArgument, match="keys"):
            await correct(engine, caller(), CorrectionRequest(old, "New", keys))
        assert everything(engine) == before

    play(scene)


def test_forgetting_leaves_no_trace_in_graph_indexes_history_or_recorded_answers() -> None:
    store = FaultyStore()

    async def scene(engine: Engine) -> None:
        kept = await saved(engine, "A harmless fact", "shared")
        gone = await saved(engine, "The zanzibarian parrot talks", "parrot", "shared")
        await recall(engine, caller(), "zanzibarian parrot")
        await correct(engine, caller("c"), CorrectionRequest(gone, "The zanzibarian parrot sleeps"))
        result = await forget(engine, caller(), gone)
        assert set(result) == {"deleted", "note"}
        newer = next(i for i in engine.graph.memories if i != kept)
        assert not engine.graph.is_active(gone)
        await forget(engine, caller(), newer)
        assert set(engine.graph.memories) == {kept}
        assert (await recall(engine, caller(), "zanzibarian parrot"))["memories"] == []
        assert {m["id"] for m in (await retrieve(engine, caller(), "zanzibarian parrot"))["memories"]} <= {kept}
        # Without what a small scope finds by resemblance alone, nothing is left to find.
        engine.weights = replace(engine.weights, compared_whole=0)
        assert (await retrieve(engine, caller(), "zanzibarian parrot"))["memories"] == []
        assert engine.graph.key_of_surface("parrot") is None
        assert "zanzibarian" not in repr(await history(engine, caller(), None, 1_000))
        assert "zanzibarian" not in repr(vars(store._tables)["requests"])
        with pytest.raises(NotFound):
            await forget(engine, caller(), gone)

    play(scene, store=store)


def test_what_a_forgotten_memory_replaced_stays_readable_to_a_person_and_inactive() -> None:
    async def scene(engine: Engine) -> None:
        old = await saved(engine, "Old", "city")
        new = (await correct(engine, caller(), CorrectionRequest(old, "New")))["new_id"]
        await forget(engine, caller(), new)
        shown = await show(engine, caller(), old)
        assert (shown["active"], shown["memory"]["content"]) == (False, "Old")
        assert (await recall(engine, caller(), "city"))["status"] == "empty_namespace"

    play(scene)


def test_confirming_records_the_evidence_and_source_in_history() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        result = await confirm_memory(engine, caller(), memory_id, "authoritative_source", source={"page": "3"})
        assert result["validity"]["confirmation_count"] == 1
        newest = (await history(engine, caller(), memory_id))["changes"][0]
        assert newest["action"] == "confirm"
        assert newest["note"] == "authoritative_source: page=3"
        with pytest.raises(NotFound):
            await confirm_memory(engine, caller(), memory_id, "user", "elsewhere")

    play(scene)


def test_dismissing_returns_the_weight_and_what_was_cancelled() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "A fact", "fact")
        assert await dismiss(engine, caller(), memory_id, key_id(engine, "fact")) == {"link_weight": 0.5, "cancelled_learning": 0}
        with pytest.raises(NotFound):
            await dismiss(engine, caller(), memory_id, key_id(engine, "fact"), "elsewhere")

    play(scene)


def test_what_expires_is_out_of_every_index_at_once_and_swept_for_good() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        short = await saved(engine, "The ephemeral comet passes", "comet", ttl_seconds=10)
        clock.advance(seconds=10)
        assert (await recall(engine, caller(), "ephemeral comet"))["status"] == "empty_namespace"
        assert (await retrieve(engine, caller(), "ephemeral comet"))["memories"] == []
        with pytest.raises(NotFound):
            await read_memory(engine, caller(), short)
        assert short not in engine.catalog.lexical
        assert await sweep(engine) == {"expired": 1, "pruned": 0}
        assert not engine.graph.memories
        assert not engine.graph.keys
        assert await sweep(engine) == {"expired": 0, "pruned": 0}

    play(scene, clock=clock)


def test_an_expired_memory_is_inactive_from_the_first_moment_after_a_restart() -> None:
    clock, store = FixedClock(), FaultyStore()

    async def scene(engine: Engine) -> None:
        await saved(engine, "The ephemeral comet passes", "comet", ttl_seconds=10)

    play(scene, clock=clock, store=store)
    clock.advance(days=1)

    async def later(engine: Engine) -> None:
        assert engine.counts()["memories"] == 0
        assert (await recall(engine, caller(), "comet"))["status"] == "empty_namespace"

    play(later, clock=clock, store=store)


def test_recorded_answers_are_kept_for_a_day() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        await remember(engine, caller("r"), item("A fact", "fact"))
        clock.advance(days=1)
        assert await forget_requests(engine) == 0
        clock.advance(seconds=1)
        assert await forget_requests(engine) == 1

    play(scene, clock=clock)


def test_hundreds_of_concurrent_writes_of_one_text_are_one_memory() -> None:
    async def scene(engine: Engine) -> None:
        answers = await asyncio.gather(*(remember(engine, caller(), item("A fact", "fact", f"key {n % 7}")) for n in range(200)))
        assert len({answer["saved"] for answer in answers}) == 1
        assert sum("deduplicated" not in answer for answer in answers) == 1
        assert len(engine.graph.keys) == 8

    play(scene)


def test_autokey_can_be_turned_off() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "Gravity is described by general relativity", "general relativity")
        for _ in range(4):
            await recall(engine, caller(), "relativity")
            await read_memory(engine, caller(), memory_id, key_id(engine, "general relativity"))
        assert len(engine.graph.keys) == 1
        assert engine.graph.keys[key_id(engine, "general relativity")].candidates == ()

    play(scene, settings=replace(load_settings({}), autokey=False))


class Breakable(HashingWords):
    """Refuses everything while it is broken."""

    broken = False

    def encode(self, texts: Sequence[str]) -> Matrix:
        if self.broken:
            raise RuntimeError("the model broke")
        return super().encode(texts)


def test_a_broken_encoder_is_a_problem_until_it_works_again() -> None:
    encoder = Breakable()

    async def scene(engine: Engine) -> None:
        encoder.broken = True
        await saved(engine, "Newton saw an apple", "Newton", "apple")
        assert (await recall(engine, caller(), "Newton"))["status"] == "found"
        assert "encoder: the model broke" in (await engine.report())["problems"]
        encoder.broken = False
        await saved(engine, "Strawberries are fruit", "strawberry", "fruit")
        async with engine._progress:
            await engine._progress.wait_for(lambda: not sum(engine.catalog.backlog))
        assert (await engine.report())["problems"] == []

    play(scene, encoder=encoder)


def test_a_memory_that_expires_while_it_is_being_indexed_is_in_no_index() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "Strawberries grow in rows. " * 400, "strawberry", ttl_seconds=10)
        catalog = engine.catalog
        catalog._drop_memory(memory_id)
        steps = catalog.steps([MemoryChanged(engine.graph.memories[memory_id])])
        next(steps)
        clock.advance(seconds=11)
        engine.now()
        assert sum(1 for _ in steps) > 1
        assert not catalog.lexical.remove(memory_id)
        assert list(catalog.mentions.mentioned_by(memory_id)) == []

    play(scene, clock=clock)


def test_words_get_their_vectors_before_the_sentences_that_a_question_loads_itself() -> None:
    async def scene(engine: Engine) -> None:
        seen: list[tuple[int, int]] = []
        items = [item(f"The lantern number{number} hangs in hall{number}.", "lantern") for number in range(100)]
        await remember_batch(engine, caller(), items)
        async with engine._progress:
            while sum(engine.catalog.backlog):
                seen.append(engine.catalog.backlog[1:])
                await engine._progress.wait()
        assert any(memories and not words for words, memories in seen)
        assert all(memories == before for (_, before), (words, memories) in pairwise(seen) if words)

    play(scene)
