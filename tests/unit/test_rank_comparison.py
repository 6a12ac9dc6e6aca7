"""Comparison questions: which questions compare what, and how both sides get a memory into the selection."""

from __future__ import annotations

import asyncio

import pytest
from open_engines import caller, play, saved

from keymem_daemon.core.rank.comparison import comparison_in, with_both_sides
from keymem_daemon.core.rank.keymatch import LiteralMatch
from keymem_daemon.core.text import fold
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings


def named(*surfaces: str, weight: float = 1.0) -> dict[str, LiteralMatch]:
    """Keys named in a question, each its own id."""
    return {surface: LiteralMatch(surface, "concept", weight, fold(surface)) for surface in surfaces}


@pytest.mark.parametrize(
    ("question", "dimension"),
    [
        ("Which was founded first, Alpha or Beta?", "which was founded first, ?"),
        ("Is Alpha taller than the Beta?", "is taller the ?"),
        ("Are Alpha and Beta of the same age?", "are of the same age?"),
        ("Between “Alpha” and “Beta”, who won more?", "between “ ” “ ”, who won more?"),
        ("Alpha와 Beta 중 누가 더 커?", "중 누가 더 커?"),
        ("Alpha보다 Beta가 비싸?", "가 비싸?"),
        ("Alpha vs. Beta", "."),
    ],
)
def test_two_names_side_by_side_and_a_word_that_compares_make_a_comparison(question: str, dimension: str) -> None:
    found = comparison_in(question, named("Alpha", "Beta"))
    assert found is not None
    assert found.sides == ("Alpha", "Beta")
    assert found.dimension == dimension


@pytest.mark.parametrize(
    "question",
    [
        "When did Alpha and Beta go to the sea?",
        "What did Alpha give to Beta?",
        "Did Alpha see the film or did Beta?",
        "Alpha와 Beta는 어디에 살아?",
        "Is Alpha or Gamma older?",
        "",
    ],
)
def test_any_other_question_compares_nothing(question: str) -> None:
    assert comparison_in(question, named("Alpha", "Beta")) is None


def test_a_name_within_a_longer_one_is_no_side() -> None:
    question = "Which is older, New York or Boston?"
    assert comparison_in(question, named("Boston") | named("York", weight=0.5)) is None
    assert comparison_in(question, named("Boston", "New York") | named("York", weight=0.5)) is not None


def test_both_sides_stand_right_behind_the_best_and_no_score_changes() -> None:
    chosen = [("a1", 0.9), ("a2", 0.8), ("x", 0.7), ("b1", 0.1)]
    support = [{"a1": 0.9, "a2": 0.5}, {"b1": 0.4, "b2": 0.3}]
    arranged = with_both_sides(chosen, support, support, {})
    assert arranged == [("a1", 0.9), ("b1", 0.1), ("a2", 0.8), ("x", 0.7)]


def test_a_side_that_was_not_chosen_takes_the_last_place_with_its_own_score() -> None:
    chosen = [("x", 0.9), ("a1", 0.8), ("y", 0.7)]
    support = [{"a1": 0.9}, {"b1": 0.4}]
    assert with_both_sides(chosen, support, support, {"b1": 0.05}) == [("x", 0.9), ("a1", 0.8), ("b1", 0.05)]


def test_what_belongs_to_both_sides_stands_for_neither_that_has_a_memory_of_its_own() -> None:
    chosen = [("both", 0.9), ("x", 0.8), ("a", 0.2), ("b", 0.1)]
    support = [{"both": 1.0, "a": 0.1}, {"both": 1.0, "b": 0.1}]
    assert [m for m, _ in with_both_sides(chosen, support, support, {})] == ["both", "a", "b", "x"]
    alone = [{"both": 1.0}, {"both": 1.0, "b": 0.1}]
    assert [m for m, _ in with_both_sides(chosen, alone, alone, {})] == ["both", "b", "x", "a"]


def test_a_side_without_memories_changes_nothing() -> None:
    chosen = [("a", 0.9), ("x", 0.8)]
    assert with_both_sides(chosen, [{"a": 1.0}, {}], [{"a": 1.0}, {}], {}) == chosen
    assert with_both_sides([], [{"a": 1.0}, {}], [{"a": 1.0}, {}], {}) == []


async def roofs(engine: Engine) -> str:
    """Saved and read in full: one side of which much is said in the question's own words, and one of which little is: its memory."""
    await engine.light.load()
    await saved(engine, "The newer roof of the cottage was laid in 2021.", "cottage", "roof")
    barn = await saved(
        engine, "Two summers ago a carpenter from the village came with his son and put slates onto it, paid in apples and hay.", "barn", "slates"
    )
    for year in ("2001", "1987", "1960"):
        await saved(engine, f"A roof of the cottage that is newer than the barn dates from {year}.", "cottage", "roof", f"year {year}")
    while any(engine.catalog.backlog):  # noqa: ASYNC110 - an engine tells nobody that it has nothing left to do
        await asyncio.sleep(0.01)
    return barn


QUESTION = "Which roof is newer, the cottage or the barn?"


@pytest.mark.parametrize("selects", [True, False])
def test_a_comparison_brings_a_memory_of_each_side_unless_it_is_switched_off(selects: bool) -> None:
    async def scene(engine: Engine) -> None:
        barn = await roofs(engine)
        answer = await retrieve(engine, caller(), QUESTION, top_k=3, learn=False)
        assert (barn in {memory["id"] for memory in answer["memories"]}) is selects
        plain = await retrieve(engine, caller(), "Which roof is newer?", top_k=3, learn=False)
        assert barn not in {memory["id"] for memory in plain["memories"]}

    play(scene, encoder=BuiltinEncoder(), settings=load_settings({"KEYMEM_TASK_EVIDENCE_SELECTION": str(selects).lower()}))


def test_a_comparison_keeps_the_best_memory_and_every_score() -> None:
    async def both(engine: Engine, selects: str) -> list[tuple[str, float]]:
        engine.settings = load_settings({"KEYMEM_TASK_EVIDENCE_SELECTION": selects})
        answer = await retrieve(engine, caller(), QUESTION, learn=False)
        return [(memory["id"], memory["score"]) for memory in answer["memories"]]

    async def scene(engine: Engine) -> None:
        await roofs(engine)
        on, off = await both(engine, "true"), await both(engine, "false")
        assert on != off
        assert on[0] == off[0]
        assert dict(on) == dict(off)

    play(scene, encoder=BuiltinEncoder())
