"""A key is of all namespaces, its words are of those that said them."""

from __future__ import annotations

import pytest
from rule_book import RuleBook

from keymem_daemon.core.decide.learn import decide_alias_hit, decide_prune
from keymem_daemon.core.decide.reinforce import decide_dismiss
from keymem_daemon.core.errors import NotFound
from keymem_daemon.core.model import Scope

PUBLIC, PRIVATE = frozenset({"public"}), frozenset({"private"})


def words(book: RuleBook, surface: str, scope: Scope) -> tuple[str, ...]:
    return book.graph.surfaces_in(book.key(surface).id, scope)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("파이썬", "Python"), ("Python", "파이썬"), ("apples", "apple"), ("PYTHON", "python"), ("k8s", "Kubernetes")]
)
def test_a_namespace_knows_a_shared_key_by_its_own_word_only(theirs: str, ours: str) -> None:
    book = RuleBook()
    book.saved("Of others", theirs, namespace="private")
    book.saved("Of ours", ours, namespace="public")
    assert len(book.graph.keys) == 1
    assert words(book, ours, PUBLIC) == (ours,)
    assert words(book, ours, PRIVATE) == (theirs,)


def test_who_reads_both_namespaces_knows_the_words_of_both_and_the_whole_store_knows_all() -> None:
    book = RuleBook()
    book.saved("One", "파이썬", namespace="private")
    book.saved("Two", "Python", namespace="public")
    assert words(book, "Python", PRIVATE | PUBLIC) == ("파이썬", "Python")
    assert words(book, "Python", None) == ("파이썬", "Python")
    assert words(book, "Python", frozenset({"elsewhere"})) == ()


def test_one_memory_may_say_a_key_in_two_words_and_a_repeated_save_adds_its_own() -> None:
    book = RuleBook()
    both = book.saved("A fact", "Python", "파이썬")
    assert book.graph.words_of(book.graph.links_of(both)[0]) == ("Python", "파이썬")
    book.saved("Another fact", "DB", namespace="private")
    once = book.saved("Our fact", "database", namespace="public")
    assert book.saved("our fact!", "DB", "database", namespace="public") == once
    assert words(book, "DB", PUBLIC) == ("DB", "database")
    assert len(book.graph.links_of(once)) == 1


def test_a_correction_inherits_the_words_and_tells_of_no_others() -> None:
    book = RuleBook()
    book.saved("Of others", "파이썬", namespace="private")
    old = book.saved("Of ours", "Python", namespace="public")
    corrected = book.correct(old, "Of ours, mended")
    assert corrected.inherited == ("Python",)
    assert words(book, "Python", PUBLIC) == ("Python",)


def test_a_word_goes_with_the_last_memory_that_said_it() -> None:
    book = RuleBook()
    book.saved("One", "Python", namespace="public")
    said = book.saved("Two", "파이썬", namespace="public")
    assert words(book, "Python", PUBLIC) == ("Python", "파이썬")
    book.forget(said)
    assert words(book, "Python", PUBLIC) == ("Python",)


def test_a_hint_names_the_near_key_in_words_of_the_namespace() -> None:
    book = RuleBook({("stocks", "portfolios"): 0.9, ("stocks", "Portfolio"): 0.9})
    book.saved("Of others", "portfolios", namespace="private")
    book.saved("Of ours", "Portfolio", namespace="public")
    near = book.remember("New", "stocks", namespace="public").hints.near_keys
    assert [hint.existing_concept for hint in near] == ["Portfolio"]
    assert book.remember("New", "stocks", namespace="third").hints.near_keys == ()


def test_a_namespace_is_of_the_scripts_that_it_writes_whatever_others_call_its_keys() -> None:
    book = RuleBook()
    for number in range(5):
        book.saved(f"Of others {number}", "파이썬", "데이터베이스", namespace="private")
    book.saved("Of ours", "Python", "database", namespace="public")
    assert book.graph.scripts_in(PUBLIC) == {"latin": 2}
    assert book.remember("More of ours", "Newton", namespace="public").hints.language_note is None


def test_a_learned_alias_is_a_word_of_the_namespaces_in_which_it_led_somewhere() -> None:
    book = RuleBook({("프로브니케", "frobnication"): 0.9})
    memory_id = book.saved("A fact", "frobnication", namespace="private")
    ours = book.saved("A fact of ours", "frobnication", namespace="public")
    key_id = book.key("frobnication").id
    for _ in range(3):
        book.learn(key_id, memory_id, "프로브니케", 0.9)
    assert words(book, "frobnication", PRIVATE) == ("frobnication", "프로브니케")
    assert words(book, "frobnication", PUBLIC) == ("frobnication",)
    book.carry_out(lambda plan: decide_alias_hit(plan, key_id, ours, "프로브니케"))
    assert words(book, "frobnication", PUBLIC) == ("frobnication", "프로브니케")


def test_a_learned_alias_that_a_memory_is_then_saved_under_stays_when_use_does_not_keep_it() -> None:
    book = RuleBook({("프로브니케", "frobnication"): 0.9})
    memory_id = book.saved("A fact", "frobnication", namespace="private")
    key_id = book.key("frobnication").id
    for _ in range(3):
        book.learn(key_id, memory_id, "프로브니케", 0.9)
    book.saved("A fact of ours", "프로브니케", namespace="public")
    book.clock.advance(days=31)
    assert book.carry_out(lambda plan: decide_prune(plan, book.clock.now(), book.learning)) == 0
    assert words(book, "프로브니케", PUBLIC) == ("프로브니케",)
    assert book.key("프로브니케").aliases == ("프로브니케",)


def test_what_a_key_is_about_to_learn_is_counted_and_dropped_in_each_namespace_by_itself() -> None:
    book = RuleBook()
    theirs = book.saved("A fact", "frobnication", namespace="private")
    ours = book.saved("A fact of ours", "frobnication", namespace="public")
    key_id = book.key("frobnication").id
    assert [book.learn(key_id, memory_id, "twiddling") for memory_id in (theirs, theirs, ours)] == ["counted"] * 3
    assert book.dismiss(ours, key_id).cancelled_learning == 1
    assert [(c.namespace, c.count) for c in book.key("frobnication").candidates] == [("private", 2)]
    assert book.learn(key_id, theirs, "twiddling") == "key"
    assert words(book, "twiddling", PUBLIC) == ()


def test_a_key_of_another_namespace_is_as_unknown_as_one_that_does_not_exist() -> None:
    book = RuleBook()
    book.saved("A fact", "secret code name", namespace="private")
    ours = book.saved("A fact of ours", "garden", namespace="public")
    with pytest.raises(NotFound) as foreign:
        book.carry_out(lambda plan: decide_dismiss(plan, ours, book.key("secret code name").id, PUBLIC))
    with pytest.raises(NotFound) as unknown:
        book.carry_out(lambda plan: decide_dismiss(plan, ours, "ffffffffffff", PUBLIC))
    assert foreign.value.message.replace(book.key("secret code name").id, "ffffffffffff") == unknown.value.message
