"""What use changes: confirming, reading, dismissing, learning. And how sure a memory still is when nothing happens."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixed_time import DAY
from rule_book import RuleBook

from keymem_daemon.core.decide.confirm import checked_evidence
from keymem_daemon.core.decide.learn import LearningRules, decide_alias_hit, decide_prune
from keymem_daemon.core.errors import InvalidArgument, NotFound, Superseded
from keymem_daemon.core.freshness import HalfLives, freshness, ranking_factor, validity
from keymem_daemon.core.model import DecayProfile, Memory
from keymem_daemon.core.rank.keymatch import inverse_frequency


def aged(days: float, profile: DecayProfile, depth: float = 0.0) -> tuple[Memory, float]:
    return Memory("000000000001", "text", "default", 0.0, 0.0, depth=depth, decay_profile=profile), days * DAY


@pytest.mark.parametrize(("profile", "half_life"), [("transient", 7), ("standard", 90), ("stable", 365)])
def test_freshness_halves_with_the_half_life_of_the_profile(profile: DecayProfile, half_life: int) -> None:
    for halves, (expected, status) in enumerate([(1.0, "fresh"), (0.5, "fresh"), (0.25, "aging"), (0.125, "aging"), (0.0625, "stale")]):
        memory, now = aged(halves * half_life, profile)
        state = validity(memory, now, HalfLives())
        assert state.freshness == pytest.approx(expected)
        assert state.status == status
        assert state.verification_recommended == (status != "fresh")
        assert state.verification_required == (status == "stale")
        assert state.age_days == pytest.approx(halves * half_life)


def test_a_permanent_memory_never_decays() -> None:
    memory, now = aged(100_000, "permanent")
    assert freshness(memory, now, HalfLives()) == 1.0


def test_just_below_a_bound_is_the_next_status() -> None:
    assert validity(*aged(90.01, "standard"), HalfLives()).status == "aging"
    assert validity(*aged(270.01, "standard"), HalfLives()).status == "stale"


def test_a_clock_that_went_backwards_counts_as_no_time() -> None:
    memory, _ = aged(0, "standard")
    state = validity(memory, -5 * DAY, HalfLives())
    assert (state.freshness, state.age_days) == (1.0, 0.0)


def test_centuries_later_a_memory_is_stale_and_nothing_breaks() -> None:
    memory, now = aged(1e9, "transient")
    assert 0 < ranking_factor(memory, now, HalfLives()) <= 0.9 * 0.2 + 1e-9
    assert validity(memory, now, HalfLives()).status == "stale"


def test_ranking_takes_nine_tenths_and_a_tenth_of_depth_and_a_fifth_and_four_fifths_of_freshness() -> None:
    memory, now = aged(90, "standard", depth=0.5)
    assert ranking_factor(memory, now, HalfLives()) == pytest.approx((0.9 + 0.1 * 0.5) * (0.2 + 0.8 * 0.5))


def test_confirming_makes_it_fresh_deeper_by_a_twentieth_and_changes_neither_content_nor_links() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "fact")
    before, (_, keys, links) = book.graph.memories[memory_id], book.records()
    book.clock.advance(days=200)
    confirmed = book.confirm(memory_id)
    assert confirmed == replace(before, last_confirmed_at=book.clock.now(), confirmation_count=1, depth=0.05)
    assert book.graph.memories[memory_id] == confirmed
    assert book.records()[1:] == (keys, links)


def test_depth_is_at_most_one() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "fact")
    depths = [book.confirm(memory_id).depth for _ in range(25)]
    assert depths[:20] == pytest.approx([0.05 * n for n in range(1, 21)])
    assert depths[13] <= 0.7
    assert depths[20:] == [1.0] * 5


@pytest.mark.parametrize("evidence", ["user", "authoritative_source", "observation"])
def test_three_kinds_of_evidence_are_accepted(evidence: str) -> None:
    assert checked_evidence(evidence) == evidence


@pytest.mark.parametrize("evidence", ["", "User", "guess", "\ud800"])
def test_any_other_evidence_is_refused(evidence: str) -> None:
    with pytest.raises(InvalidArgument, match="evidence"):
        checked_evidence(evidence)


def test_what_is_superseded_can_be_neither_confirmed_nor_read_nor_dismissed() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    new = book.correct(old, "New").new_id
    key_id = book.key("city").id
    for command in (lambda: book.confirm(old), lambda: book.read(old), lambda: book.dismiss(old, key_id)):
        with pytest.raises(Superseded, match=new):
            command()


def test_reading_adds_one_access_and_a_tenth_to_the_one_link_and_confirms_nothing() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "one", "two")
    before = book.graph.memories[memory_id]
    book.clock.advance(days=3)
    book.read(memory_id, book.key("one").id)
    after = book.graph.memories[memory_id]
    assert after == replace(before, access_count=1, last_accessed=book.clock.now())
    assert book.weight("one", memory_id) == pytest.approx(1.1)
    assert book.weight("two", memory_id) == 1.0


def test_a_link_weighs_at_most_three_and_at_least_a_tenth() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "one", "two")
    one, two = book.key("one").id, book.key("two").id
    for _ in range(30):
        book.read(memory_id, one)
    weights = [book.dismiss(memory_id, two).link_weight for _ in range(6)]
    assert book.weight("one", memory_id) == 3.0
    assert weights == pytest.approx([0.5, 0.25, 0.125, 0.1, 0.1, 0.1])
    assert book.graph.link(two, memory_id) is not None


def test_reading_through_a_key_that_is_not_linked_or_not_there_is_an_error_and_changes_nothing() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "one")
    book.saved("Another", "other")
    before = book.records()
    with pytest.raises(InvalidArgument, match="via_key_id"):
        book.read(memory_id, book.key("other").id)
    with pytest.raises(NotFound, match="via_key_id"):
        book.read(memory_id, "ffffffffffff")
    assert book.records() == before


def test_dismissing_halves_that_one_link_and_cancels_what_the_key_was_learning() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "one", "two")
    other = book.saved("Another", "one")
    key_id = book.key("one").id
    book.learn(key_id, memory_id, "first way")
    book.learn(key_id, memory_id, "second way")
    dismissed = book.dismiss(memory_id, key_id)
    assert (dismissed.link_weight, dismissed.cancelled_learning) == (0.5, 2)
    assert book.key("one").candidates == ()
    assert book.weight("one", other) == book.weight("two", memory_id) == 1.0
    assert book.dismiss(memory_id, key_id).cancelled_learning == 0


def test_a_query_becomes_a_key_of_its_own_the_third_time_it_leads_through_a_key_it_does_not_merge_with() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "gravity")
    key_id = book.key("gravity").id
    assert [book.learn(key_id, memory_id, "Falling Things") for _ in range(2)] == ["counted", "counted"]
    assert book.key("gravity").candidates[0].count == 2
    assert book.learn(key_id, memory_id, "falling things") == "key"
    assert book.concepts_of(memory_id) == ["gravity", "falling things"]
    assert book.key("gravity").candidates == ()
    assert book.key("falling things").key_type == "concept"


def test_a_query_that_would_merge_becomes_an_alias_the_third_time() -> None:
    book = RuleBook({("프로브니케", "frobnication"): 0.9})
    memory_id = book.saved("A fact", "frobnication")
    key_id = book.key("frobnication").id
    assert [book.learn(key_id, memory_id, "프로브니케", 0.9) for _ in range(3)] == ["counted", "counted", "alias"]
    learned = book.key("frobnication").learned
    assert [(alias.alias, alias.hits) for alias in learned] == [("프로브니케", 0)]
    assert book.key("프로브니케").id == key_id
    assert len(book.graph.keys) == 1


def test_a_learned_plural_of_another_key_leads_to_that_key_and_makes_no_second_one() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "fruit")
    book.saved("Another", "apple")
    outcomes = [book.learn(book.key("fruit").id, memory_id, "apples") for _ in range(3)]
    assert outcomes == ["counted", "counted", "key"]
    assert book.concepts_of(memory_id) == ["fruit", "apple"]
    assert len(book.graph.keys) == 2


def test_no_more_aliases_are_learned_than_the_setting_allows() -> None:
    book = RuleBook({(form, "frobnication"): 0.9 for form in ("프로브니케", "фробник")})
    book.learning = LearningRules(max_aliases=1)
    memory_id = book.saved("A fact", "frobnication")
    key_id = book.key("frobnication").id
    outcomes = [book.learn(key_id, memory_id, form, 0.9) for form in ("프로브니케", "фробник") for _ in range(3)]
    assert outcomes == ["counted", "counted", "alias", "counted", "counted", "nothing"]
    assert [alias.alias for alias in book.key("frobnication").learned] == ["프로브니케"]
    assert LearningRules().max_aliases == 8


@pytest.mark.parametrize("query", ["one two three four", "x" * 41, "a", "?!", "gravity", "GRAVITY"])
def test_a_long_query_and_one_that_says_nothing_new_are_not_learned(query: str) -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "gravity")
    before = book.records()
    assert [book.learn(book.key("gravity").id, memory_id, query) for _ in range(4)] == ["nothing"] * 4
    assert book.records() == before


def test_learning_never_makes_a_memory_fresher() -> None:
    book = RuleBook()
    memory_id = book.saved("A fact", "gravity")
    before = book.graph.memories[memory_id]
    book.clock.advance(days=1)
    for _ in range(3):
        book.learn(book.key("gravity").id, memory_id, "falling")
    assert book.graph.memories[memory_id] == before


def test_pruning_drops_aliases_never_hit_in_30_days_and_stale_candidates_and_keeps_what_was_hit() -> None:
    book = RuleBook({("프로브니케", "frobnication"): 0.9, ("фробник", "frobnication"): 0.9})
    memory_id = book.saved("A fact", "frobnication")
    key_id = book.key("frobnication").id
    for query in ("프로브니케", "фробник"):
        for _ in range(3):
            book.learn(key_id, memory_id, query, 0.9)
    book.learn(key_id, memory_id, "once seen")
    book.carry_out(lambda plan: decide_alias_hit(plan, key_id, memory_id, "фробник"))
    book.clock.advance(days=30)
    assert book.carry_out(lambda plan: decide_prune(plan, book.clock.now(), LearningRules())) == 0
    book.clock.advance(seconds=1)
    assert book.carry_out(lambda plan: decide_prune(plan, book.clock.now(), LearningRules())) == 2
    key = book.key("frobnication")
    assert [(alias.alias, alias.hits) for alias in key.learned] == [("фробник", 1)]
    assert key.candidates == ()


def test_the_idf_of_a_key_is_one_over_its_active_memories_and_half_that_for_hubs_that_are_names() -> None:
    book = RuleBook()
    for number in range(3):
        book.remember(f"Fact {number}", "Ann", "topic", types={"Ann": "name"})
    gone = book.saved("Old", "topic")
    book.correct(gone, "New", "elsewhere")
    assert inverse_frequency(book.graph, book.key("topic").id, None, 3) == pytest.approx(1 / 3)
    assert inverse_frequency(book.graph, book.key("Ann").id, None, 3) == pytest.approx(0.5 / 3)
    assert inverse_frequency(book.graph, book.key("Ann").id, None, 4) == pytest.approx(1 / 3)


def test_use_does_not_make_a_memory_newer_than_it_is() -> None:
    book = RuleBook()
    old, new = book.saved("Old", "one"), book.saved("New", "two")
    book.read(old)
    book.confirm(old)
    assert list(book.graph.newest(None)) == [new, old]
    assert list(book.graph.newest(frozenset({"default"}))) == [new, old]
