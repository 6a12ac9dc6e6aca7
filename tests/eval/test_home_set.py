"""The short form of the evaluation: our own set in this process, with floors far enough below what is measured to hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from comparison import BM25, FLAT, SetResult, compared
from honesty import (
    Asked,
    Retries,
    coding_prompts,
    foreign,
    held_back_prompts,
    nearest_keys_measured,
    renamed,
    shares_shown,
    strangers_measured,
    swapped,
)
from measures import auroc, difference, means, scored
from question_sets import QuestionSet, load_set
from run import HOME
from subjects import RememberingEncoder, engine_subject, import_set
from variants import OURS


def silent(_line: str) -> None:
    """Progress is for people."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The set compared; the shares of coding prompts that are shown a preview or given something by the hook, and of others that are shown one."""

    result: SetResult
    prompts_shown: float
    prompts_fired: float
    foreign_shown: float
    swapped_shown: float
    retries: Retries


async def measured(questions: QuestionSet) -> Measured:
    """All of it on one import."""
    encoder = RememberingEncoder()
    async with engine_subject(encoder, korean=True) as subject:
        result = await compared(subject, questions, encoder, silent, ablate=False, strangers=False)
        prompts = [Asked(prompt, space.namespace) for space in questions.spaces for prompt in coding_prompts()]
        prompts_shown, fired = await shares_shown(subject, prompts)
        shown, _ = await shares_shown(subject, foreign(questions))
        swapped_shown, _ = await shares_shown(subject, swapped(questions)[1])
        imported = {(space.namespace, memory.ref): memory.content for space in questions.spaces for memory in space.memories}
        by_content = {(m.namespace, m.content): m.id for m in subject.engine.graph.memories.values()}
        ids = {(namespace, ref): by_content[(namespace, content)] for (namespace, ref), content in imported.items()}
        retries = await nearest_keys_measured(subject, questions, ids)
    return Measured(result, prompts_shown, fired, shown, swapped_shown, retries)


@pytest.fixture(scope="module")
def home() -> Measured:
    return asyncio.run(measured(load_set(HOME)))


def r_at_5(result: SetResult, name: str) -> float:
    return means(result.rows[name])["R@5"]


def test_nearly_every_memory_that_answers_is_among_the_first_five(home: Measured) -> None:
    assert r_at_5(home.result, OURS) >= 0.90
    assert means(home.result.rows[OURS])["all@5"] >= 0.88


def test_keymem_finds_more_than_words_alone_and_no_less_than_vectors_alone(home: Measured) -> None:
    assert r_at_5(home.result, OURS) > r_at_5(home.result, BM25)
    assert r_at_5(home.result, OURS) >= r_at_5(home.result, FLAT)


def test_questions_in_the_other_language_are_answered_too(home: Measured) -> None:
    assert home.result.by_category()["cross-lingual"][OURS] >= 0.80


def test_both_hops_of_a_question_are_found(home: Measured) -> None:
    assert home.result.by_category()["two-hop"][OURS] >= 0.85


def test_no_coding_prompt_is_shown_a_preview_or_makes_the_hook_add_anything(home: Measured) -> None:
    assert home.prompts_shown == home.prompts_fired == 0.0


def test_the_gate_lets_what_is_known_through_and_shows_nothing_to_questions_of_another_space(home: Measured) -> None:
    kept = home.result.previews["R@5_kept_by_gate"]
    assert kept is not None
    assert kept >= 0.95
    assert home.foreign_shown <= 0.05
    assert home.swapped_shown <= 0.20


def test_a_second_try_with_the_first_nearest_key_mends_at_least_half_of_the_misses(home: Measured) -> None:
    assert home.retries.preview >= 0.5 * home.retries.recoverable


def test_what_the_hook_adds_is_right(home: Measured) -> None:
    precision = home.result.hook["hook_precision"]
    assert precision is not None
    assert precision >= 0.65


def test_the_set_has_what_it_promises() -> None:
    questions = load_set(HOME)
    categories = {question.category for space in questions.spaces for question in space.questions}
    assert questions.size >= 80
    assert sum(len(space.questions) for space in questions.spaces) >= 80
    assert categories == {"direct", "two-hop", "comparison", "none", "cross-lingual", "paraphrase"}
    assert len(coding_prompts()) == 60
    assert len(held_back_prompts()) == 48
    assert not set(held_back_prompts()) & set(coding_prompts())


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
