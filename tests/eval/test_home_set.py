"""The short form of the evaluation: our own set in this process, with floors far enough below what is measured to hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from comparison import BM25, FLAT, SetResult, compared
from honesty import Asked, coding_prompts, renamed, shares_shown, strangers_measured, swapped
from measures import auroc, difference, means, scored
from question_sets import QuestionSet, load_set
from run import HOME
from subjects import RememberingEncoder, engine_subject, import_set
from variants import OURS


def silent(_line: str) -> None:
    """Progress is for people."""


async def measured(questions: QuestionSet) -> tuple[SetResult, float]:
    """The set compared, and the share of coding prompts at which the hook adds something."""
    encoder = RememberingEncoder()
    async with engine_subject(encoder, korean=True) as subject:
        result = await compared(subject, questions, encoder, silent, ablate=False, strangers=False)
        prompts = [Asked(prompt, space.namespace) for space in questions.spaces for prompt in coding_prompts()]
        _, fired = await shares_shown(subject, prompts)
    return result, fired


@pytest.fixture(scope="module")
def home() -> tuple[SetResult, float]:
    return asyncio.run(measured(load_set(HOME)))


def r_at_5(result: SetResult, name: str) -> float:
    return means(result.rows[name])["R@5"]


def test_nearly_every_memory_that_answers_is_among_the_first_five(home: tuple[SetResult, float]) -> None:
    assert r_at_5(home[0], OURS) >= 0.90
    assert means(home[0].rows[OURS])["all@5"] >= 0.88


def test_keymem_finds_more_than_words_alone_and_no_less_than_vectors_alone(home: tuple[SetResult, float]) -> None:
    assert r_at_5(home[0], OURS) > r_at_5(home[0], BM25)
    assert r_at_5(home[0], OURS) >= r_at_5(home[0], FLAT)


def test_questions_in_the_other_language_are_answered_too(home: tuple[SetResult, float]) -> None:
    assert home[0].by_category()["cross-lingual"][OURS] >= 0.80


def test_both_hops_of_a_question_are_found(home: tuple[SetResult, float]) -> None:
    assert home[0].by_category()["two-hop"][OURS] >= 0.85


def test_no_coding_prompt_makes_the_hook_add_anything(home: tuple[SetResult, float]) -> None:
    assert home[1] == 0.0


def test_what_the_hook_adds_is_right(home: tuple[SetResult, float]) -> None:
    precision = home[0].hook["hook_precision"]
    assert precision is not None
    assert precision >= 0.65


def test_the_set_has_what_it_promises() -> None:
    questions = load_set(HOME)
    categories = {question.category for space in questions.spaces for question in space.questions}
    assert questions.size >= 80
    assert sum(len(space.questions) for space in questions.spaces) >= 80
    assert categories == {"direct", "two-hop", "comparison", "none", "cross-lingual", "paraphrase"}
    assert len(coding_prompts()) == 60


def test_swapping_names_changes_whom_a_question_is_about_and_nothing_else() -> None:
    assert renamed("Does Miranda know Mira?", {"Mira": "Nell"}) == "Does Miranda know Nell?"
    assert renamed("Mira가 Tobin에게", {"Mira": "Tobin", "Tobin": "Mira"}) == "Tobin가 Mira에게"
    originals, others = swapped(load_set(HOME))
    assert len(originals) == len(others) > 0
    assert all(a.namespace == b.namespace and a.query != b.query for a, b in zip(originals, others, strict=True))


def test_the_metrics_count_gold_by_rank() -> None:
    row = scored(["a", "x", "b"], {"a", "b"})
    assert (row["R@2"], row["R@5"], row["all@5"], row["MRR"], row["hit@1"]) == (0.5, 1.0, 1.0, 1.0, 1.0)
    assert scored(["x"], {"a"})["MRR"] == 0.0


@pytest.mark.parametrize(("a", "b", "clear"), [([1.0] * 40, [0.0] * 40, True), ([1.0, 0.0] * 20, [0.0, 1.0] * 20, False)])
def test_a_difference_is_clear_only_when_its_interval_leaves_zero_out(a: Sequence[float], b: Sequence[float], clear: bool) -> None:
    found = difference(a, b)
    assert found.low <= found.mean <= found.high
    assert found.is_clear is clear


def test_the_area_is_the_chance_that_a_right_one_scores_above_a_wrong_one() -> None:
    assert auroc([2.0, 3.0], [1.0]) == 1.0
    assert auroc([1.0], [1.0]) == 0.5
    assert auroc([], [1.0]) is None


def test_a_set_without_its_own_names_measures_no_strangers_by_name() -> None:
    async def asked() -> object:
        questions = load_set(HOME)
        alone = QuestionSet(questions.name, questions.dataset, questions.spaces[:1]).limited(2)
        async with engine_subject(RememberingEncoder(), korean=False) as subject:
            await import_set(subject, alone)
            measured_shares = await strangers_measured(subject, alone)
        return measured_shares["swapped_asked"], measured_shares["swapped_auroc"]

    assert asyncio.run(asked()) == (0, None)
