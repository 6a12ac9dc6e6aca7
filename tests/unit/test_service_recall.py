"""recall, browse_keys, read_key, read_memory: the contract of page one, field by field. Looking changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from fixed_time import FixedClock
from hashing_words import HashingWords
from open_engines import caller, everything, key_id, play, saved

from keymem_daemon.core.errors import InvalidArgument, NotFound, Superseded
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.service.correct import correct
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.navigate import browse_keys, read_key, read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.requests import CorrectionRequest

KEY_FIELDS = {
    "key_id", "concept", "aliases", "key_type", "score", "score_kind", "match_type", "memory_count", "is_hub", "specificity", "cluster_size",
}  # fmt: skip
PREVIEW_FIELDS = {"id", "content", "namespace", "depth", "matched_key", "validity", "content_relevance", "connected_keys"}
VALIDITY_FIELDS = {
    "freshness", "status", "age_days", "last_confirmed_at", "confirmation_count", "decay_profile", "verification_recommended",
    "verification_required",
}  # fmt: skip


async def orchard(engine: Engine) -> dict[str, str]:
    """Newton → apple → fruit → strawberry, with a few bystanders."""
    return {
        "newton": await saved(engine, "Newton saw an apple fall from a tree", "Newton", "apple", "gravity"),
        "apple": await saved(engine, "An apple is a fruit", "apple", "fruit"),
        "berry": await saved(engine, "The user likes strawberries, a red fruit", "strawberry", "fruit", "user"),
        "pear": await saved(engine, "A pear is a fruit that grows on trees", "pear", "fruit"),
        "name": await saved(engine, "동건이는 서울에 산다", "동건", "서울", key_types={"동건": "name"}),
    }


def size(result: dict[str, Any]) -> int:
    return len(json.dumps(result, ensure_ascii=False).encode())


def test_a_recall_that_finds_has_exactly_the_fields_of_the_contract() -> None:
    async def scene(engine: Engine) -> None:
        ids = await orchard(engine)
        result = await recall(engine, caller(), "Newton", "Who was Newton?")
        assert {"status", "query", "namespace", "keys", "memories"} <= set(result)
        assert (result["status"], result["query"]) == ("found", "Newton")
        assert "namespace_memory_count" not in result
        assert {"nearest_keys", "next_step"}.isdisjoint(result)
        for key in result["keys"]:
            assert set(key) == KEY_FIELDS
            assert key["score_kind"] == "key_relevance"
            assert key["match_type"] in {"concept", "alias", "semantic", "lexical"}
            assert key["score"] == round(key["score"], 3)
            assert key["specificity"] == round(1 / key["memory_count"], 3)
        first = result["keys"][0]
        assert (first["concept"], first["match_type"], first["score"]) == ("Newton", "concept", 1.0)
        (preview,) = result["memories"]
        assert set(preview) == PREVIEW_FIELDS
        assert set(preview["validity"]) == VALIDITY_FIELDS
        assert preview["id"] == ids["newton"]
        assert preview["matched_key"] == {"key_id": first["key_id"], "concept": "Newton"}
        relevances = [key["relevance"] for key in preview["connected_keys"]]
        assert relevances == sorted(relevances, reverse=True)
        assert {key["concept"] for key in preview["connected_keys"]} == {"Newton", "apple", "gravity"}
        for key in preview["connected_keys"]:
            assert set(key) == {"key_id", "concept", "relevance", "memory_count", "is_hub"}
        explained = await recall(engine, caller(), "Newton", explain=True)
        assert explained["namespace_memory_count"] == 5

    play(scene)


def test_a_question_in_korean_finds_the_name_within_its_word() -> None:
    async def scene(engine: Engine) -> None:
        ids = await orchard(engine)
        result = await recall(engine, caller(), "동건이는 어디 살아?")
        assert result["keys"][0]["concept"] == "동건"
        assert result["memories"][0]["id"] == ids["name"]
        assert "동건" not in {key["concept"] for key in (await recall(engine, caller(), "뉴턴"))["keys"]}

    play(scene)


def test_a_miss_says_so_shows_no_preview_and_names_the_nearest_keys_and_a_next_step() -> None:
    async def scene(engine: Engine) -> None:
        await orchard(engine)
        result = await recall(engine, caller(), "quarterly revenue forecast")
        assert result["status"] == "no_match"
        assert result["keys"] == result["memories"] == []
        assert isinstance(result["nearest_keys"], list)
        assert result["next_step"]

    play(scene)


def test_after_a_miss_the_first_nearest_key_leads_to_the_memory_that_came_closest() -> None:
    question = "What opens the place where common credentials live?"

    async def scene(engine: Engine) -> None:
        await engine.light.load()
        vault = await saved(engine, "Shared logins are in Burrow, which opens with a hardware key.", "Burrow", "shared logins", "hardware key")
        await saved(engine, "The place for invoices is the grey folder.", "invoices", "folder")
        for number in range(30):
            await saved(engine, f"Bystander {number} says nothing of that kind", f"bystander {number}", "noise")
        engine.profile = replace(engine.profile, gate_floor=0.99)
        missed = await recall(engine, caller(), question, question)
        assert missed["status"] == "no_match"
        nearest = [key["concept"] for key in missed["nearest_keys"]]
        assert nearest[0] in {"Burrow", "shared logins", "hardware key"}
        assert len(set(nearest)) == len(nearest) <= 5
        assert f'"{nearest[0]}"' in missed["next_step"]
        again = await recall(engine, caller(), nearest[0], question)
        assert again["memories"][0]["id"] == vault

    play(scene, encoder=BuiltinEncoder())


def test_what_was_often_read_for_something_else_does_not_outweigh_what_answers() -> None:
    async def scene(engine: Engine) -> None:
        worn = await saved(engine, "Mira types on a split keyboard", "Mira")
        asked = await saved(engine, "Mira works from home on Tuesdays", "Mira")
        query, context = "Mira", "On which days does Mira work from home?"
        assert (await recall(engine, caller(), query, context))["memories"][0]["id"] == asked
        for _ in range(40):
            await read_memory(engine, caller(), worn, key_id(engine, "Mira"))
        link = engine.graph.link(key_id(engine, "Mira"), worn)
        assert link is not None
        assert link.weight == 3.0
        assert (await recall(engine, caller(), query, context))["memories"][0]["id"] == asked
        assert (await recall(engine, caller(), query))["memories"][0]["id"] == worn

    play(scene)


def test_an_empty_namespace_says_so() -> None:
    async def scene(engine: Engine) -> None:
        assert (await recall(engine, caller(), "Newton"))["status"] == "empty_namespace"
        await orchard(engine)
        assert (await recall(engine, caller(), "Newton", namespace="nowhere"))["status"] == "empty_namespace"
        assert (await browse_keys(engine, caller(), "nowhere"))["status"] == "empty_namespace"

    play(scene)


def test_looking_changes_nothing() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        await orchard(engine)
        clock.advance(days=100)
        before, history = everything(engine), await engine.in_store(lambda: engine.store.history(None, 1_000))
        for query in ("Newton", "fruit", "apples", "동건이는", "nothing at all", "red strawberry"):
            await recall(engine, caller("same"), query, f"{query} and more", explain=True)
        await browse_keys(engine, caller(), "*")
        await read_key(engine, caller(), key_id(engine, "fruit"), "red")
        await engine.writer.flush_soft()
        assert everything(engine) == before
        assert await engine.in_store(lambda: engine.store.history(None, 1_000)) == history

    play(scene, clock=clock)


def test_restating_the_previewed_memory_in_full_confirms_it_once_a_request() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        ids = await orchard(engine)
        clock.advance(days=100)
        almost = await recall(engine, caller(), "Newton", "Newton saw an apple fall from a tall tree")
        assert "auto_confirmed" not in almost["memories"][0]
        for _ in range(2):
            result = await recall(engine, caller("r"), "Newton", "  newton saw an APPLE fall from a tree! ")
            assert result["memories"][0]["auto_confirmed"] is True
            assert result["memories"][0]["validity"]["status"] == "fresh"
        memory = engine.graph.memories[ids["newton"]]
        assert (memory.confirmation_count, memory.last_confirmed_at, memory.access_count) == (1, clock.now(), 0)

    play(scene, clock=clock)


def test_at_most_one_memory_is_previewed_and_superseded_and_expired_ones_never() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        old = await saved(engine, "The office is in Busan", "office")
        await saved(engine, "The office opens at nine", "office", ttl_seconds=10)
        new = (await correct(engine, caller(), CorrectionRequest(old, "The office is in Seoul")))["new_id"]
        clock.advance(seconds=10)
        for query in ("office", "Busan", "office opens at nine"):
            found = await recall(engine, caller(), query, f"where is the {query}")
            assert {memory["id"] for memory in found["memories"]} <= {new}
        assert (await read_key(engine, caller(), key_id(engine, "office")))["total"] == 1
        with pytest.raises(Superseded, match=new):
            await read_memory(engine, caller(), old)

    play(scene, clock=clock)


@pytest.mark.parametrize("top_k", [0, 21, -1])
def test_top_k_outside_1_to_20_is_refused(top_k: int) -> None:
    async def scene(engine: Engine) -> None:
        with pytest.raises(InvalidArgument, match="top_k"):
            await recall(engine, caller(), "Newton", top_k=top_k)

    play(scene)


@pytest.mark.parametrize("query", ["", "  \n", "\ud800", "a\0b"])
def test_a_query_that_says_nothing_is_refused(query: str) -> None:
    async def scene(engine: Engine) -> None:
        await orchard(engine)
        with pytest.raises(InvalidArgument, match="query"):
            await recall(engine, caller(), query)

    play(scene)


def test_no_more_keys_than_top_k_are_shown_and_a_result_stays_below_eight_kilobytes() -> None:
    async def scene(engine: Engine) -> None:
        words = [f"{'가나다라마바사아자차카타파하거너더러머버'[n]}" * 100 for n in range(20)]
        for n in range(20):
            await saved(engine, f"{words[n]} {'긴 글입니다 ' * 2_000} {n}", words[n], *words[:n][:12])
        query = " ".join(words[:18])
        for top_k in (1, 8, 20):
            result = await recall(engine, caller(), query, "긴 글 " * 5_000, top_k=top_k, max_chars=6_000, explain=True)
            assert 1 <= len(result["keys"]) <= top_k
            assert size(result) <= 8_000
            assert result["memories"][0]["content_truncated"] is True
        missed = await recall(engine, caller(), "zzz " * 5_000)
        assert size(missed) <= 8_000

    play(scene)


def test_a_preview_is_cut_to_max_chars_and_says_so() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "Newton " + "x" * 5_000, "Newton")
        for max_chars, longest in ((None, 1_500), (80, 80), (3_000, 3_000)):
            (preview,) = (await recall(engine, caller(), "Newton", max_chars=max_chars))["memories"]
            assert len(preview["content"]) <= longest
            assert preview["content_truncated"] is True

    play(scene)


def test_while_the_model_warms_words_and_names_still_answer() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "Newton saw an apple fall", "Newton")
        result = await recall(engine, caller(), "Newton")
        assert (result["status"], result["semantic"]) == ("found", "warming")
        result = await recall(engine, caller(), "apple fall")
        assert result["status"] == "found"
        assert (await read_key(engine, caller(), key_id(engine, "Newton"), "apple"))["total"] == 1

    class Cold(HashingWords):
        def load(self) -> None:
            raise OSError("the model's file is missing")

    play(scene, encoder=Cold(ready=False))


def test_keys_that_surface_only_through_one_memory_are_one_cluster() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "The kettle whistles at dawn", "alpha", "beta", "delta")
        result = await recall(engine, caller(), "kettle whistles")
        assert [key["cluster_size"] for key in result["keys"]] == [3]

    play(scene)


def test_browsing_shows_hubs_first_then_by_memories_then_by_name_in_pages() -> None:
    async def scene(engine: Engine) -> None:
        await orchard(engine)
        whole = await browse_keys(engine, caller(), "default")
        assert set(whole) == {"status", "namespace", "memory_count", "key_count", "keys", "next_offset"} | (set(whole) & {"searched"})
        concepts = [key["concept"] for key in whole["keys"]]
        assert concepts[:2] == ["fruit", "apple"]
        assert concepts[2:] == sorted(concepts[2:], key=str.casefold)
        assert (whole["memory_count"], whole["key_count"], whole["next_offset"]) == (5, len(concepts), None)
        paged: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = await browse_keys(engine, caller(), "default", limit=2, offset=offset)
            paged += [key["concept"] for key in page["keys"]]
            offset = page["next_offset"]
        assert paged == concepts
        hubs = await browse_keys(engine, caller(), "default", hubs_only=True)
        assert [(key["concept"], key["is_hub"], key["memory_count"]) for key in hubs["keys"]] == [("fruit", True, 3)]

    play(scene)


def test_handles_are_ranked_and_paged_and_never_show_content() -> None:
    async def scene(engine: Engine) -> None:
        ids = await orchard(engine)
        fruit = key_id(engine, "fruit")
        result = await read_key(engine, caller(), fruit, "strawberries")
        assert set(result) >= {"key", "memories", "total", "next_offset", "scoring"}
        assert result["memories"][0]["memory_id"] == ids["berry"]
        assert "strawberries" not in json.dumps(result["memories"])
        scores = [handle["score"] for handle in result["memories"]]
        assert scores == sorted(scores, reverse=True)
        assert result["total"] == 3
        page = await read_key(engine, caller(), fruit, limit=2)
        assert page["next_offset"] == 2
        assert (await read_key(engine, caller(), fruit, limit=2, offset=2))["next_offset"] is None
        for _ in range(5):
            await read_memory(engine, caller(), ids["pear"], fruit)
        assert (await read_key(engine, caller(), fruit))["memories"][0]["memory_id"] == ids["pear"]

    play(scene)


def test_equal_handles_come_newest_first() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        ids = []
        for number in range(3):
            ids.append(await saved(engine, f"Fact {number}", "topic", decay_profile="permanent"))
            clock.advance(seconds=1)
        handles = (await read_key(engine, caller(), key_id(engine, "topic")))["memories"]
        assert [handle["memory_id"] for handle in handles] == ids[::-1]

    play(scene, clock=clock)


def test_reading_a_memory_shows_it_in_full_with_every_key() -> None:
    async def scene(engine: Engine) -> None:
        ids = await orchard(engine)
        newton = key_id(engine, "Newton")
        result = await read_memory(engine, caller(), ids["newton"], newton)
        assert set(result) >= {"memory", "validity", "keys", "via_key_id"}
        assert result["memory"]["content"] == "Newton saw an apple fall from a tree"
        assert [key["concept"] for key in result["keys"]] == ["Newton", "apple", "gravity"]
        assert result["via_key_id"] == newton
        assert set(result["validity"]) == VALIDITY_FIELDS

    play(scene)


@pytest.mark.parametrize("memory_id", ["", "ffffffffffff", "not an id", "\ud800", "x" * 10_000])
def test_an_unknown_memory_is_not_found(memory_id: str) -> None:
    async def scene(engine: Engine) -> None:
        with pytest.raises(NotFound) as caught:
            await read_memory(engine, caller(), memory_id)
        assert len(caught.value.message) < 300
        caught.value.message.encode()

    play(scene)


def test_dismissing_a_key_makes_learning_forget_the_recalls_that_reached_it() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "Gravity is described by general relativity", "general relativity")
        through = key_id(engine, "general relativity")
        await recall(engine, caller(), "relativity")
        assert engine.recent.leading_to(through, "session-1", engine.now()) is not None
        assert engine.recent.leading_to(through, "another session", engine.now()) is None
        assert engine.recent.leading_to(through, "session-1", engine.now() + 301) is None
        engine.recent.forget(through)
        assert engine.recent.leading_to(through, "session-1", engine.now()) is None
        await read_memory(engine, caller(), memory_id, through)
        assert engine.graph.keys[through].candidates == ()

    play(scene)


def test_a_query_that_is_a_keys_whole_name_means_that_key() -> None:
    async def scene(engine: Engine) -> None:
        for number in range(5):
            await saved(engine, f"Entry {number} of the mega key", "mega key", f"detail {number}")
        await saved(engine, "All of the mega key stopping", "all stopping")
        assert (await recall(engine, caller(), "Mega Key"))["keys"][0]["concept"] == "mega key"

    play(scene)
