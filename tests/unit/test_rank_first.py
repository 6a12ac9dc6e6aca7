"""The learned first place: what is looked at, what may change, and what must be left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from open_engines import caller, play, saved

from keymem_daemon.core.rank.first import Look, pairs_in, with_learned_first, word_pairs
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.retrieve import retrieve

WEIGHTS = Weights()
CHOSEN = [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5), ("f", 0.4)]
PLAIN = Look(0.0, 0.0, 0)


def test_pairs_are_neighbouring_words_whatever_their_case() -> None:
    assert word_pairs("Who joined the Book club, the book club?") == [
        "who joined",
        "joined the",
        "the book",
        "book club",
        "club the",
    ]
    assert word_pairs("alone") == word_pairs("") == []


def test_only_whole_words_side_by_side_count_and_each_pair_once() -> None:
    pairs = word_pairs("a book club")
    assert pairs_in(pairs, "Mira runs a Book Club; the book club meets here.") == 2
    assert pairs_in(pairs, "Notebook clubs") == pairs_in(pairs, "book the club") == 0
    assert pairs_in(pairs, "a notebook club, then a book club") == 2
    assert pairs_in(pairs, "a book\n  club") == 2


def test_one_of_the_first_five_comes_to_the_front_the_others_keep_their_order_and_the_scores_their_places() -> None:
    looks = {m: PLAIN for m, _ in CHOSEN} | {"c": Look(0.5, 0.0, 2)}
    ordered = with_learned_first(CHOSEN, looks, WEIGHTS)
    assert [m for m, _ in ordered] == ["c", "a", "b", "d", "e", "f"]
    assert [score for _, score in ordered] == [score for _, score in CHOSEN]


def test_none_joins_the_first_five_and_none_leaves() -> None:
    looks = {m: PLAIN for m, _ in CHOSEN} | {"a": Look(-9.0, 9.0, 0), "f": Look(9.0, 0.0, 9)}
    assert [m for m, _ in with_learned_first(CHOSEN, looks, WEIGHTS)] == ["b", "a", "c", "d", "e", "f"]


def test_what_is_like_all_the_others_comes_later_and_what_is_apart_earlier() -> None:
    two = [("a", 0.5), ("b", 0.5)]
    assert with_learned_first(two, {"a": Look(0.0, 0.5, 0), "b": PLAIN}, WEIGHTS)[0][0] == "b"
    assert with_learned_first(two, {"a": PLAIN, "b": Look(0.1, 0.0, 0)}, WEIGHTS)[0][0] == "b"


def test_without_a_look_at_each_of_them_the_order_stays() -> None:
    looks = {m: Look(float(place), 0.0, 0) for place, (m, _) in enumerate(CHOSEN)}
    del looks["d"]
    assert with_learned_first(CHOSEN, looks, WEIGHTS) == CHOSEN
    assert with_learned_first([], {}, WEIGHTS) == []


async def a_store(engine: Engine) -> list[str]:
    lines = (
        "The harbour lantern is red.",
        "The lantern of the harbour is old.",
        "A harbour lantern needs oil. It burns at night. Nobody watches it.",
        "The harbour has a lantern and a bell.",
        "Lantern and harbour were painted.",
        "The harbour master keeps the lantern book.",
        "Otters sleep near the harbour.",
    )
    return [await saved(engine, line, "harbour", f"note {number}") for number, line in enumerate(lines)]


def test_however_few_are_wanted_the_order_is_the_same() -> None:
    async def scene(engine: Engine) -> None:
        await a_store(engine)
        engine.weights = replace(engine.weights, first_pairs=9.0)  # not the one that it is without
        whole = [
            m["id"] for m in (await retrieve(engine, caller(), "a harbour lantern", top_k=7, learn=False))["memories"]
        ]
        for count in range(1, 7):
            found = await retrieve(engine, caller(), "a harbour lantern", top_k=count, learn=False)
            assert [m["id"] for m in found["memories"]] == whole[:count]

    play(scene)


def test_retrieval_shows_the_learned_first_place_and_says_so() -> None:
    async def scene(engine: Engine) -> None:
        ids = await a_store(engine)
        learned = engine.weights
        engine.weights = replace(learned, first_apart=0.0, first_alike=0.0, first_pairs=0.0)
        before = (await retrieve(engine, caller(), "a harbour lantern", learn=False))["memories"]
        engine.weights = replace(engine.weights, first_pairs=9.0)
        after = (await retrieve(engine, caller(), "a harbour lantern", explain=True, learn=False))["memories"]
        together = {ids[0], ids[2]}
        first = after[0]["id"]
        assert first in together
        assert before[0]["id"] not in together
        assert [m["id"] for m in after[1:]] == [m["id"] for m in before if m["id"] != first]
        assert [m["score"] for m in after] == [m["score"] for m in before]
        moved = [b["id"] != a["id"] for a, b in zip(after, before, strict=True)]
        assert [any(f["factor"] == "among_the_first" for f in m["why"]["factors"]) for m in after] == moved

    play(scene)


def test_a_memory_is_compared_with_the_others_never_with_itself() -> None:
    async def scene(engine: Engine) -> None:
        ids = await a_store(engine)
        await engine.sentences.load(ids)
        (query,) = await engine.light.encode(["harbour lantern"])
        rows = [await engine.light.encode(engine.catalog.sentences_of(m)) for m in ids]
        middles = np.stack([row.mean(axis=0) / np.linalg.norm(row.mean(axis=0)) for row in rows])
        pool = ids[:-1]
        for m, (apart, alike) in engine.sentences.among(ids, pool, query).items():
            own = middles[ids.index(m)]
            others = sorted((float(own @ middles[ids.index(other)]) for other in pool if other != m), reverse=True)[:5]
            assert apart == pytest.approx(float(own @ (query - middles[: len(pool)].mean(axis=0))), abs=2e-3)
            assert alike == pytest.approx(float(np.mean(others)), abs=2e-3)
        engine.sentences.drop(ids)
        assert engine.sentences.among(ids, pool, query) == {}

    play(scene)
