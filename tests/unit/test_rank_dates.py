"""Dates that no memory knows are left out of a question; all others stay."""

from __future__ import annotations

import pytest
from open_engines import caller, play, saved

from keymem_daemon.core.rank.dates import without_unknown_dates
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.service.signals import read_query


def left(text: str) -> str:
    """What is left when no date is known, white space as it may be."""
    return " ".join(without_unknown_dates(text, lambda _: False).split())


@pytest.mark.parametrize(
    "date",
    [
        "on 7 February 2022",
        "on February 7th, 2022",
        "on the 7th of February",
        "on Feb 7",
        "on Sept. 7, 2022",
        "in May 2022",
        "in early May, 2022",
        "on 2022-02-07",
        "by 7/2/2022",
        "2022년 2월 7일에",
        "2월에",
    ],
)
def test_a_date_with_a_number_is_a_date(date: str) -> None:
    assert left(f"Which book did she like {date}?") in {"Which book did she like ?", "Which book did she like?"}


@pytest.mark.parametrize(
    "text",
    [
        "What happened in 2022?",
        "What did she do in May?",
        "May I ask you something?",
        "She has 7 marching bands and 2022 fans.",
        "Which release is 7.2.2022-rc1?",
        "Seven people augmented 3 machines",
        "무엇을 7개 샀어?",
        "",
    ],
)
def test_anything_else_stays(text: str) -> None:
    assert without_unknown_dates(text, lambda _: False) == text


def test_a_question_that_is_nothing_but_a_date_stays() -> None:
    assert without_unknown_dates("7 February 2022?", lambda _: False) == "7 February 2022?"


def test_known_dates_stay_where_others_go() -> None:
    text = "Between 7 May 2021 and 9 June 2022"
    assert " ".join(without_unknown_dates(text, lambda date: "2021" in date).split()) == "Between 7 May 2021 and"


def test_a_date_is_known_when_a_memory_of_the_scope_has_one_of_its_numbers() -> None:
    async def scene(engine: Engine) -> None:
        await saved(engine, "The roof was mended in 2021.", "roof")
        await saved(engine, "A feast was held on 7 May 2022.", "feast", namespace="elsewhere")

        async def terms(question: str, weights: Weights | None = None) -> set[str]:
            signals = await read_query(engine, question, caller().scope("default"), weights or engine.weights)
            return {token.term for token in signals.tokens}

        assert await terms("Who mended the roof on 7 May 2021?") >= {"2021", "7"}
        assert await terms("Who mended the roof on 7 May 2022?") == await terms("Who mended the roof?")
        assert "2022" in await terms("Who mended the roof on 7 May 2022?", Weights(drop_unknown_dates=False))

    play(scene)


def test_a_key_that_is_called_like_a_date_is_still_named() -> None:
    async def scene(engine: Engine) -> None:
        memory_id = await saved(engine, "We moved.", "May", "house")
        signals = await read_query(
            engine, "What was on 7 May 2022, about the house?", caller().scope(None), engine.weights
        )
        assert {engine.graph.keys[key_id].concept for key_id in signals.named} == {"May", "house"}
        answer = await retrieve(engine, caller(), "What was on 7 May 2022?", learn=False)
        assert [memory["id"] for memory in answer["memories"]] == [memory_id]

    play(scene)
