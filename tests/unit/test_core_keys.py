"""Keys: one surface is one key; promotion, merging, aliases and their end. What merges is judged by the specification's examples."""

from __future__ import annotations

import pytest
from rule_book import RuleBook

from keymem_daemon.core.decide.limits import checked_keys
from keymem_daemon.core.errors import InvalidArgument, TooLarge


def test_one_surface_string_is_one_key_in_any_case_width_and_composition() -> None:
    book = RuleBook()
    book.saved("one", "Café")
    book.saved("two", "café")
    book.saved("three", "CAFÉ")
    book.saved("four", "cafe\u0301")
    book.saved("five", "Ｃａｆé")
    assert len(book.graph.keys) == 1
    assert book.key("café").concept == "Café"
    assert book.graph.memory_count(book.key("café").id, None) == 5


def test_asking_for_a_concept_that_is_a_name_joins_it() -> None:
    book = RuleBook()
    book.remember("one", "동건", types={"동건": "name"})
    book.remember("two", "동건")
    assert [key.key_type for key in book.graph.keys.values()] == ["name"]


@pytest.mark.parametrize("key_type", ["name", "proper_noun"])
def test_asking_for_a_name_that_is_a_concept_promotes_it_in_place(key_type: str) -> None:
    book = RuleBook()
    first = book.saved("one", "Paris")
    key_id = book.key("Paris").id
    book.remember("two", "paris", types={"paris": key_type})
    assert book.key("Paris").id == key_id
    assert book.key("Paris").key_type == key_type
    assert book.weight("Paris", first) == 1.0


def test_a_name_is_not_demoted_nor_changed_into_another_kind_of_name() -> None:
    book = RuleBook()
    book.remember("one", "Mercury", types={"Mercury": "proper_noun"})
    book.remember("two", "Mercury")
    book.remember("three", "Mercury", types={"Mercury": "name"})
    assert book.key("Mercury").key_type in {"proper_noun", "name"}
    assert len(book.graph.keys) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("Python", "파이썬"), ("React", "리액트"), ("Kubernetes", "쿠버네티스"), ("Kubernetes", "k8s"), ("database", "DB"), ("apple", "apples")],
)
def test_two_spellings_of_one_concept_are_one_key_with_an_alias_whichever_came_first(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        book = RuleBook()
        book.saved("one", first)
        book.saved("two", second)
        assert len(book.graph.keys) == 1, (first, second)
        key = book.key(first)
        assert key.concept == first
        assert key.aliases == (second,)
        assert book.key(second).id == key.id


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [
        ("Agent A", "Agent B", 0.857),
        ("Q1", "Q2", 0.95),
        ("2023", "2024", 0.939),
        ("Monday", "Friday", 0.974),
        ("월요일", "금요일", 0.974),
        ("월요일", "Friday", 0.97),
        ("1월", "2월", 0.908),
        ("김민수", "김민지", 0.881),
        ("buy", "sell", 0.71),
        ("apple", "orange", 0.99),
        ("red", "파란색", 0.95),
        ("mother", "아버지", 0.95),
        ("north", "남쪽", 0.95),
        ("version 2", "버전 3", 0.97),
    ],
)
def test_what_differs_in_a_qualifier_or_belongs_to_a_closed_class_stays_apart(one: str, other: str, cosine: float) -> None:
    for first, second in ((one, other), (other, one)):
        book = RuleBook({(one, other): cosine})
        book.saved("one", first)
        book.saved("two", second)
        assert len(book.graph.keys) == 2, (first, second)


def test_names_never_merge_however_alike_they_are() -> None:
    book = RuleBook({("마루", "Maru"): 0.99})
    book.remember("one", "마루", types={"마루": "name"})
    book.remember("two", "Maru")
    book.remember("three", "Maru", types={"Maru": "proper_noun"})
    assert len(book.graph.keys) == 2


def test_across_scripts_a_merge_needs_85_hundredths_and_a_lead_of_10() -> None:
    pair = ("frobnication", "프로브니케")
    assert _keys_after(pair, {pair: 0.85}) == 1
    assert _keys_after(pair, {pair: 0.849}) == 2
    rival = ("defrobbing", "프로브니케")
    assert _keys_after(pair, {pair: 0.90, rival: 0.79}, "defrobbing") == 2
    assert _keys_after(pair, {pair: 0.90, rival: 0.81}, "defrobbing") == 3


def _keys_after(pair: tuple[str, str], cosines: dict[tuple[str, str], float], *others: str) -> int:
    book = RuleBook(cosines)
    for other in others:
        book.saved(f"about {other}", other)
    book.saved("one", pair[0])
    book.saved("two", pair[1])
    return len(book.graph.keys)


def test_within_one_script_no_cosine_merges() -> None:
    assert _keys_after(("frobnication", "frobnicating"), {("frobnication", "frobnicating"): 0.999}) == 2


def test_what_nearly_merged_is_a_hint() -> None:
    pair = ("frobnication", "프로브니케")
    book = RuleBook({pair: 0.80})
    book.saved("one", pair[0])
    hints = book.remember("two", pair[1]).hints.near_keys
    assert [(hint.your_key, hint.existing_concept, hint.similarity) for hint in hints] == [(pair[1], pair[0], 0.80)]
    assert hints[0].key_id == book.key(pair[0]).id


def test_a_near_concept_of_another_namespace_is_no_hint() -> None:
    pair = ("frobnication", "프로브니케")
    book = RuleBook({pair: 0.80})
    book.saved("one", pair[0], namespace="secret")
    assert not book.remember("two", pair[1], namespace="open").hints.near_keys


def test_a_key_goes_with_its_last_memory_and_its_aliases_are_free_again() -> None:
    book = RuleBook()
    first = book.saved("one", "Python", "snake")
    second = book.saved("two", "파이썬")
    book.forget(first)
    assert book.key("Python").aliases == ("파이썬",)
    assert book.graph.key_of_surface("snake") is None
    book.forget(second)
    assert not book.graph.keys
    assert book.graph.keys_in_group("stem:python") == ()
    book.saved("three", "파이썬")
    assert book.key("파이썬").concept == "파이썬"


def test_exactly_32_keys_are_accepted_and_33_are_too_many() -> None:
    assert len(checked_keys([f"key {n}" for n in range(32)], {})[0]) == 32
    with pytest.raises(TooLarge):
        checked_keys([f"key {n}" for n in range(33)], {})


def test_a_key_of_128_characters_is_accepted_and_one_of_129_is_too_long() -> None:
    assert checked_keys(["사" * 128], {})[0][0].surface == "사" * 128
    with pytest.raises(TooLarge):
        checked_keys(["사" * 129], {})


def test_keys_are_trimmed_composed_and_named_once_and_keep_their_case() -> None:
    wanted, dropped = checked_keys(["  Café  au\tlait ", "CAFE\u0301 AU LAIT", "x", "梨"], {"café au lait": "proper_noun"})
    assert [(key.surface, key.key_type) for key in wanted] == [("Café au lait", "proper_noun"), ("梨", "concept")]
    assert dropped == ("x",)


@pytest.mark.parametrize("keys", [[], [""], ["a"], ["  ", "7"], ["\u200b"], ["-"]])
def test_no_usable_key_is_an_error_that_names_the_argument(keys: list[str]) -> None:
    with pytest.raises(InvalidArgument, match="keys"):
        checked_keys(keys, {})


@pytest.mark.parametrize("bad", ["lone \ud800 surrogate", "a NUL \0 here"])
def test_a_key_that_no_client_can_carry_is_refused(bad: str) -> None:
    with pytest.raises(InvalidArgument, match="keys"):
        checked_keys([bad], {})


def test_an_unknown_key_type_and_a_type_for_no_key_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="key_types"):
        checked_keys(["apple"], {"apple": "fruit"})
    with pytest.raises(InvalidArgument, match="key_types"):
        checked_keys(["apple"], {"pear": "name"})
