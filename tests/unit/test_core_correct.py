"""correct, forget and expire: one step of provenance, no reference left hanging, no memory without a key."""

from __future__ import annotations

import pytest
from rule_book import RuleBook

from keymem_daemon.core.errors import InvalidArgument, NotFound, Superseded


def test_the_successor_inherits_namespace_keys_weights_links_ttl_and_profile() -> None:
    book = RuleBook()
    friend = book.saved("A friend", "friend")
    old = book.remember("Old", "city", "user", namespace="Work", ttl=600, profile="stable", related_to=[friend]).memory_id
    for _ in range(3):
        book.read(old, book.key("city").id)
    book.dismiss(old, book.key("user").id)
    expires_at = book.graph.memories[old].expires_at
    book.confirm(old)
    book.clock.advance(seconds=100)
    corrected = book.correct(old, "New")
    new = book.graph.memories[corrected.new_id]
    assert (new.namespace, new.decay_profile, new.expires_at) == ("Work", "stable", expires_at)
    assert (new.depth, new.confirmation_count, new.access_count) == (0.0, 0, 0)
    assert new.created_at == new.last_confirmed_at == book.clock.now()
    assert new.supersedes == old
    assert new.links == (friend,)
    assert book.concepts_of(new.id) == ["city", "user"]
    assert book.weight("city", new.id) == pytest.approx(1.3)
    assert book.weight("user", new.id) == pytest.approx(0.5)
    assert corrected.inherited == ("city", "user")


def test_given_keys_ttl_and_profile_replace_the_inherited_ones() -> None:
    book = RuleBook()
    old = book.remember("Old", "city", "user", ttl=600, profile="stable").memory_id
    book.read(old, book.key("user").id)
    corrected = book.correct(old, "New", "country", "user", ttl=60, profile="transient")
    new = book.graph.memories[corrected.new_id]
    assert book.concepts_of(new.id) == ["country", "user"]
    assert book.weight("user", new.id) == pytest.approx(1.1)
    assert (new.expires_at, new.decay_profile) == (book.clock.now() + 60, "transient")
    assert corrected.inherited == ()


def test_the_predecessor_stays_readable_inactive_and_shallower() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    for _ in range(10):
        book.confirm(old)
    new = book.correct(old, "New").new_id
    memory = book.graph.memories[old]
    assert memory.content == "Old"
    assert memory.superseded_by == new
    assert not book.graph.is_active(old)
    assert memory.depth == pytest.approx(0.5 * 0.3)


@pytest.mark.parametrize(("confirmations", "factor"), [(14, 0.3), (15, 0.8), (30, 0.8)])
def test_a_deep_predecessor_keeps_eight_tenths_of_its_depth_and_any_other_three(confirmations: int, factor: float) -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    for _ in range(confirmations):
        book.confirm(old)
    depth = min(1.0, 0.05 * confirmations)
    book.correct(old, "New")
    assert book.graph.memories[old].depth == pytest.approx(depth * factor)


def test_provenance_is_one_step_over_a_chain_of_five_corrections() -> None:
    book = RuleBook()
    ids = [book.saved("Version 0", "city")]
    for number in range(1, 6):
        ids.append(book.correct(ids[-1], f"Version {number}").new_id)
        assert set(book.graph.memories) == set(ids[-2:])
    assert book.graph.memories[ids[-1]].supersedes == ids[-2]
    assert book.graph.memories[ids[-2]].supersedes is None
    assert book.graph.memory_count(book.key("city").id, None) == 1
    assert len(list(book.graph.members(book.key("city").id))) == 2


def test_correcting_a_superseded_memory_names_the_successor() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    new = book.correct(old, "New").new_id
    before = book.records()
    with pytest.raises(Superseded) as caught:
        book.correct(old, "Newer")
    assert caught.value.successor == new
    assert new in caught.value.message
    assert book.records() == before


def test_correcting_an_expired_or_an_unknown_memory_is_not_found() -> None:
    book = RuleBook()
    old = book.remember("Old", "city", ttl=10).memory_id
    book.clock.advance(seconds=10)
    for memory_id in (old, "ffffffffffff", ""):
        with pytest.raises(NotFound, match="memory_id"):
            book.correct(memory_id, "New")


def test_a_correction_into_the_same_text_without_new_keys_is_refused_and_with_new_keys_retags() -> None:
    book = RuleBook()
    old = book.saved("Same", "city")
    with pytest.raises(InvalidArgument, match="content"):
        book.correct(old, "Same")
    new = book.correct(old, "Same", "town").new_id
    assert new != old
    assert book.concepts_of(new) == ["town"]
    assert not book.graph.is_active(old)


def test_a_correction_into_a_text_that_is_known_makes_that_memory_the_successor() -> None:
    book = RuleBook()
    known = book.saved("The user lives in Busan.", "Busan")
    old = book.saved("The user lives in Seoul", "Seoul", "home")
    corrected = book.correct(old, "the user lives in Busan")
    assert corrected.new_id == known
    assert corrected.existing
    assert book.graph.memories[old].superseded_by == known
    assert book.graph.memories[known].supersedes == old
    assert book.concepts_of(known) == ["Busan", "Seoul", "home"]
    assert book.graph.active_count(None) == 1


def test_a_known_successor_that_had_replaced_something_keeps_one_step_of_provenance() -> None:
    book = RuleBook()
    first = book.saved("The user lives in Jeju", "Jeju")
    known = book.correct(first, "The user lives in Busan").new_id
    old = book.saved("The user lives in Seoul", "Seoul")
    book.correct(old, "The user lives in Busan")
    assert book.graph.memories[known].supersedes == old
    assert first not in book.graph.memories
    newest = book.correct(known, "The user lives in Daegu").new_id
    assert set(book.graph.memories) == {known, newest}


def test_whoever_was_related_to_the_predecessor_is_related_to_the_successor() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    friend = book.remember("Friend", "friend", related_to=[old]).memory_id
    new = book.correct(old, "New").new_id
    assert book.graph.memories[friend].links == (new,)
    newest = book.correct(new, "Newest").new_id
    assert book.graph.memories[friend].links == (newest,)
    assert book.graph.neighbours(newest) == [friend]


def test_a_memory_related_to_both_ends_of_a_correction_is_related_once_and_never_to_itself() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    known = book.remember("Known", "town", related_to=[old]).memory_id
    friend = book.remember("Friend", "friend", related_to=[old, known]).memory_id
    book.correct(old, "Known")
    assert book.graph.memories[known].links == ()
    assert book.graph.memories[friend].links == (known,)


def test_a_correction_cannot_be_related_to_what_is_not_there() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    before = book.records()
    with pytest.raises(NotFound, match="related_to"):
        book.correct(old, "New", related_to=["ffffffffffff"])
    assert book.records() == before


def test_forgetting_removes_the_memory_its_links_its_orphan_keys_and_every_reference() -> None:
    book = RuleBook()
    gone = book.saved("Gone", "shared", "lonely")
    stays = book.remember("Stays", "shared", related_to=[gone]).memory_id
    forgotten = book.forget(gone)
    assert forgotten.memory.content == "Gone"
    assert forgotten.surfaces == ("lonely",)
    assert set(book.graph.memories) == {stays}
    assert book.graph.memories[stays].links == ()
    assert [key.concept for key in book.graph.keys.values()] == ["shared"]
    assert book.graph.link_count == 1


def test_what_a_forgotten_memory_had_superseded_stays_inactive() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    new = book.correct(old, "New").new_id
    book.forget(new)
    assert not book.graph.is_active(old)
    with pytest.raises(Superseded) as caught:
        book.confirm(old)
    assert caught.value.successor == new
    assert "forgotten" in caught.value.hint


def test_forgetting_an_inactive_memory_leaves_its_successor_whole() -> None:
    book = RuleBook()
    old = book.saved("Old", "city")
    new = book.correct(old, "New").new_id
    book.forget(old)
    assert book.graph.memories[new].supersedes is None
    assert book.concepts_of(new) == ["city"]


def test_forgetting_what_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match="memory_id"):
        RuleBook().forget("ffffffffffff")


def test_an_expired_memory_is_inactive_at_once_and_deleted_by_the_sweep() -> None:
    book = RuleBook()
    short = book.remember("Short", "brief", "shared", ttl=10).memory_id
    long = book.remember("Long", "shared", ttl=20, related_to=[short]).memory_id
    book.clock.advance(seconds=10)
    assert book.graph.settle(book.clock.now()) == [short]
    assert not book.graph.is_active(short)
    assert short in book.graph.memories
    assert book.graph.memory_count(book.key("shared").id, None) == 1
    assert book.expire() == [short]
    assert set(book.graph.memories) == {long}
    assert book.graph.memories[long].links == ()
    assert book.graph.key_of_surface("brief") is None


def test_a_clock_that_jumps_back_revives_nothing_and_deletes_nothing() -> None:
    book = RuleBook()
    memory_id = book.remember("Short", "brief", ttl=10).memory_id
    book.clock.advance(seconds=11)
    book.graph.settle(book.clock.now())
    book.clock.advance(days=-1)
    assert book.graph.settle(book.clock.now()) == []
    assert not book.graph.is_active(memory_id)
    assert book.expire() == []
    with pytest.raises(NotFound):
        book.read(memory_id)


def test_a_longer_ttl_given_in_time_keeps_the_memory() -> None:
    book = RuleBook()
    memory_id = book.remember("Fact", "fact", ttl=10).memory_id
    book.remember("Fact", "fact", ttl=100)
    book.clock.advance(seconds=50)
    assert book.graph.settle(book.clock.now()) == []
    assert book.expire() == []
    book.clock.advance(seconds=50)
    assert book.graph.settle(book.clock.now()) == [memory_id]


def test_a_corrected_memory_expires_when_its_predecessor_would_have() -> None:
    book = RuleBook()
    old = book.remember("Old", "city", ttl=10).memory_id
    book.clock.advance(seconds=5)
    new = book.correct(old, "New").new_id
    book.clock.advance(seconds=5)
    assert book.graph.settle(book.clock.now()) == [new]
    assert sorted(book.expire()) == sorted([old, new])
    assert not book.graph.memories
    assert not book.graph.keys
