"""remember: what is one memory, what a second saving adds, what is refused, what is hinted."""

from __future__ import annotations

import math

import pytest
from rule_book import RuleBook

from keymem_daemon.core.decide.limits import (
    checked_content,
    checked_expiry,
    checked_namespace,
    checked_related,
    checked_source,
)
from keymem_daemon.core.decide.remember import Duplicate, Hints, Remembered
from keymem_daemon.core.errors import InvalidArgument, NotFound, Superseded, TooLarge


def test_a_new_memory_counts_as_confirmed_at_its_creation() -> None:
    book = RuleBook()
    memory = book.graph.memories[book.saved("Newton saw an apple fall", "Newton")]
    now = book.clock.now()
    assert (memory.created_at, memory.last_confirmed_at, memory.confirmation_count) == (now, now, 0)
    assert (memory.depth, memory.access_count, memory.last_accessed) == (0.0, 0, None)
    assert (memory.decay_profile, memory.expires_at, memory.namespace) == ("standard", None, "default")
    assert book.weight("Newton", memory.id) == 1.0


def test_the_first_key_is_what_the_memory_is_about() -> None:
    book = RuleBook()
    memory_id = book.saved("Newton saw an apple fall", "gravity", "Newton", "apple")
    assert book.concepts_of(memory_id) == ["gravity", "Newton", "apple"]


def test_the_same_text_again_adds_keys_related_ids_and_an_explicit_ttl_and_profile() -> None:
    book = RuleBook()
    other = book.saved("Another", "other")
    first = book.saved("The user likes strawberries.", "strawberry")
    again = book.remember("the user  likes strawberries", "fruit", related_to=[other], ttl=60, profile="stable")
    assert again == Duplicate(first, again.hints)
    memory = book.graph.memories[first]
    assert memory.content == "The user likes strawberries."
    assert book.concepts_of(first) == ["strawberry", "fruit"]
    assert memory.links == (other,)
    assert memory.expires_at == book.clock.now() + 60
    assert memory.decay_profile == "stable"
    assert book.graph.active_count(None) == 2


def test_the_same_text_again_without_ttl_or_profile_changes_neither_and_confirms_nothing() -> None:
    book = RuleBook()
    first = book.remember("A fact", "fact", ttl=600, profile="transient").memory_id
    before = book.graph.memories[first]
    book.clock.advance(seconds=30)
    assert isinstance(book.remember("a fact", "fact"), Duplicate)
    assert book.graph.memories[first] == before


def test_a_memory_related_to_itself_by_saying_it_twice_is_not() -> None:
    book = RuleBook()
    first = book.saved("A fact", "fact")
    book.remember("A fact", "fact", related_to=[first])
    assert book.graph.memories[first].links == ()


def test_the_same_text_in_another_namespace_is_another_memory_and_in_another_case_of_the_same_one_it_is_not() -> None:
    book = RuleBook()
    first = book.saved("A fact", "fact", namespace="Work")
    assert isinstance(book.remember("A fact", "fact", namespace="home"), Remembered)
    assert book.remember("A fact", "fact", namespace="work").memory_id == first


def test_a_paraphrase_is_another_memory() -> None:
    book = RuleBook()
    book.saved("The user likes strawberries", "strawberry")
    assert isinstance(book.remember("Strawberries are liked by the user", "strawberry"), Remembered)


@pytest.mark.parametrize("end", ["superseded", "expired", "forgotten"])
def test_a_text_that_is_not_active_any_more_can_be_remembered_anew(end: str) -> None:
    book = RuleBook()
    first = book.remember("A fact", "fact", ttl=60).memory_id
    if end == "superseded":
        book.correct(first, "Another fact")
    elif end == "expired":
        book.clock.advance(seconds=61)
    else:
        book.forget(first)
    again = book.remember("A fact", "fact")
    assert isinstance(again, Remembered)
    assert again.memory_id != first
    assert book.graph.is_active(again.memory_id)


def test_an_unknown_related_id_saves_nothing() -> None:
    book = RuleBook()
    before = book.records()
    with pytest.raises(NotFound, match="related_to"):
        book.remember("A fact", "fact", related_to=["ffffffffffff"])
    assert book.records() == before


def test_a_superseded_related_id_names_its_successor_and_saves_nothing() -> None:
    book = RuleBook()
    old = book.saved("Old", "fact")
    new = book.correct(old, "New").new_id
    before = book.records()
    with pytest.raises(Superseded, match=new):
        book.remember("A fact", "fact", related_to=[old])
    assert book.records() == before


def test_related_links_are_followed_both_ways() -> None:
    book = RuleBook()
    one = book.saved("One", "one")
    two = book.remember("Two", "two", related_to=[one]).memory_id
    assert book.graph.neighbours(one) == [two]
    assert book.graph.neighbours(two) == [one]


def test_phrase_keys_are_those_of_three_words_or_more() -> None:
    hints = RuleBook().remember("A fact", "two words", "three whole words", "one").hints
    assert hints.phrase_keys == ("three whole words",)


def test_unusable_keys_are_named_and_the_usable_ones_saved() -> None:
    book = RuleBook()
    outcome = book.remember("A fact", "x", "fact", "?")
    assert outcome.hints.dropped_keys == ("x", "?")
    assert book.concepts_of(outcome.memory_id) == ["fact"]


def test_keys_in_one_script_are_noted_where_the_namespace_is_used_in_more_than_one() -> None:
    book = RuleBook()
    for number in range(4):
        book.remember(f"사실 {number}", f"열쇠 {'가나다라'[number]}", f"word{number}x", namespace="both")
    assert book.remember("A fact", "plain", namespace="both").hints.language_note is not None
    assert book.remember("A fact of both", "plainer", "한국어", namespace="both").hints.language_note is None
    assert book.remember("A fact", "plain", namespace="english").hints.language_note is None


def test_a_small_namespace_is_noted_as_bilingual_as_soon_as_it_is() -> None:
    book = RuleBook()
    book.remember("서울에 산다", "서울")
    book.remember("부산에 간다", "부산")
    book.remember("Lives by the sea", "sea")
    note = book.remember("Likes tea", "tea", "drink").hints.language_note
    assert note is not None
    assert "hangul" in note


def test_a_stray_word_of_another_script_does_not_make_a_namespace_bilingual() -> None:
    book = RuleBook()
    book.remember("서울에 산다", "서울")
    for number in range(20):
        book.remember(f"A fact {number}", f"plain{number}q")
    assert book.remember("A fact", "plain").hints.language_note is None


def test_nothing_to_say_is_no_hint() -> None:
    hints = RuleBook().remember("A fact", "fact").hints
    assert hints == Hints()


def test_content_of_20000_characters_is_accepted_and_one_more_is_too_large() -> None:
    assert len(checked_content("사" * 20_000)) == 20_000
    with pytest.raises(TooLarge, match=r"20,000.*20,001"):
        checked_content("사" * 20_001)


@pytest.mark.parametrize("content", ["", " ", "\n\t ", "\u3000"])
def test_blank_content_is_refused(content: str) -> None:
    with pytest.raises(InvalidArgument, match="content"):
        checked_content(content)


@pytest.mark.parametrize("content", ["\ud800", "ok \udfff", "a\0b"])
def test_content_that_cannot_be_encoded_is_refused(content: str) -> None:
    with pytest.raises(InvalidArgument, match="content"):
        checked_content(content)


@pytest.mark.parametrize("ttl", [0, -1, -0.001, math.nan, math.inf, 1e300])
def test_a_ttl_must_be_a_positive_number(ttl: float) -> None:
    with pytest.raises(InvalidArgument, match="ttl_seconds"):
        checked_expiry(ttl, 0.0)


def test_a_namespace_is_trimmed_and_has_at_most_128_characters() -> None:
    assert checked_namespace(None) == "default"
    assert checked_namespace("  Work ") == "Work"
    assert checked_namespace("n" * 128) == "n" * 128
    with pytest.raises(TooLarge):
        checked_namespace("n" * 129)


@pytest.mark.parametrize("namespace", ["", "  ", "*", "\ud800", "\0"])
def test_a_namespace_that_names_nothing_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidArgument, match="namespace"):
        checked_namespace(namespace)


def test_at_most_64_related_ids_and_2000_characters_of_source() -> None:
    assert len(checked_related(f"{n:012x}" for n in range(64))) == 64
    with pytest.raises(TooLarge):
        checked_related(f"{n:012x}" for n in range(65))
    assert checked_source({"a": "x" * 1_999}) == {"a": "x" * 1_999}
    with pytest.raises(TooLarge):
        checked_source({"a": "x" * 2_000})
