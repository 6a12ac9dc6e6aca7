"""Laws of the graph under random lives: what it counts is what is there, drafts are apart, stores give it back."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from command_scripts import NAMESPACES, Command, attempted, commands, scripts_of_commands
from fixed_time import FixedClock
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_book import RuleBook

from keymem_daemon.core.changes import Change, Commit, KeyChanged, LinkSet, MemoryChanged
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Actor, Link, Scope
from keymem_daemon.core.text import fold, normalized, scripts
from keymem_daemon.ports import Store
from keymem_daemon.store.memory import MemoryStore
from keymem_daemon.store.sqlite import SqliteStore

SCOPES: tuple[Scope, ...] = (None, *(frozenset({fold(name)}) for name in NAMESPACES), frozenset(map(fold, NAMESPACES[:2])))


def view(graph: Graph) -> object:
    """Everything that can be read of a graph, without order."""
    names = set(graph.memories)
    return {
        "memories": dict(graph.memories),
        "keys": dict(graph.keys),
        "links": {(link.key_id, link.memory_id): link for link in graph.all_links()},
        "link_count": graph.link_count,
        "active": {m for m in names if graph.is_active(m)},
        "counts": {(k, s): graph.memory_count(k, s) for k in graph.keys for s in SCOPES},
        "active_counts": [graph.active_count(s) for s in SCOPES],
        "active_in": {n: set(graph.newest(frozenset({fold(n)}))) for n in NAMESPACES},
        "namespaces": {fold(name): count for name, count in graph.namespaces().items()},
        "namespaces_of": {k: dict(graph.namespaces_of(k)) for k in graph.keys},
        "scripts": [graph.scripts_in(s) for s in SCOPES],
        "referrers": {m: set(graph.referrers(m)) for m in names},
        "neighbours": {m: set(graph.neighbours(m)) for m in names},
        "key_ids": {m: set(graph.key_ids_of(m)) for m in names},
        "surfaces_in": {k: [graph.surfaces_in(k, s) for s in SCOPES] for k in graph.keys},
        "links_of": {m: graph.links_of(m) for m in names},
        "members": {k: dict(graph.members(k)) for k in graph.keys},
    }


def check_against_recount(graph: Graph) -> None:
    """The invariants, each from the plain records."""
    memories, keys, links = dict(graph.memories), dict(graph.keys), list(graph.all_links())
    active = {m for m in memories if graph.is_active(m)}
    assert len(links) == graph.link_count
    for link in links:
        assert link.key_id in keys
        assert link.memory_id in memories
        assert 0.1 <= link.weight <= 3.0
        assert graph.link(link.key_id, link.memory_id) == link
    linked_keys = {link.key_id for link in links}
    assert linked_keys == set(keys), "a key with no memory left is removed"
    assert {link.memory_id for link in links} >= active, "every active memory has a key"
    surfaces = Counter(fold(s) for key in keys.values() for s in key.surfaces)
    assert all(count == 1 for count in surfaces.values()), "no surface is on two keys"
    for surface in surfaces:
        assert (key := graph.key_of_surface(surface)) is not None
        assert surface in {fold(s) for s in key.surfaces}
    for memory in memories.values():
        named = {*memory.links, *memory.contradicts, *([memory.supersedes] if memory.supersedes else [])}
        assert named <= set(memories), "no dangling reference"
        assert memory.id not in named
        if memory.id in active:
            assert all(memories[linked].superseded_by is None for linked in memory.links), "references lead to what is current"
        if memory.superseded_by is not None:
            assert memory.id not in active
            assert memory.supersedes is None, "provenance is one step"
            successor = memories.get(memory.superseded_by)
            assert successor is None or successor.supersedes == memory.id
        assert set(graph.referrers(memory.id)) == {
            other.id for other in memories.values() if memory.id in (*other.links, *other.contradicts, other.supersedes)
        }
    for scope in SCOPES:
        inside = {m for m in active if scope is None or fold(memories[m].namespace) in scope}
        assert graph.active_count(scope) == len(inside)
        assert scope is None or graph.active_links(scope) == sum(link.memory_id in inside for link in links)
        for key_id in keys:
            members = {link.memory_id for link in links if link.key_id == key_id and link.memory_id in inside}
            assert graph.memory_count(key_id, scope) == len(members)
            assert {link.memory_id for link in graph.active_members(key_id, scope)} == members
            check_words(graph, key_id, scope, [link for link in links if link.key_id == key_id and link.memory_id in inside])
        used = Counter(s for link in links if link.memory_id in inside for s in scripts(" ".join(graph.words_of(link))))
        assert graph.scripts_in(scope) == dict(used)
    texts = Counter((fold(memories[m].namespace), normalized(memories[m].content)) for m in active)
    assert all(count == 1 for count in texts.values()), "one text is one active memory"
    for m in active:
        assert graph.same_text(memories[m].namespace, memories[m].content) == memories[m]


def check_words(graph: Graph, key_id: str, scope: Scope, links: list[Link]) -> None:
    """A scope knows of a key what its own memories call it, in the order of the key's own surfaces."""
    key, known = graph.keys[key_id], graph.surfaces_in(key_id, scope)
    if scope is None:
        assert known == key.surfaces
        return
    said = {word for link in links for word in graph.words_of(link)}
    said |= {learned.alias for learned in key.learned if not scope.isdisjoint(learned.namespaces)} if links else set()
    assert set(known) <= said
    order = [fold(surface) for surface in key.surfaces]
    assert [fold(word) for word in known] == [surface for surface in order if surface in set(map(fold, said))]


def _attempt(book: RuleBook, command: Command, plan: Plan) -> bool:
    return attempted(book, plan, command)


def live(book: RuleBook, script: list[Command]) -> None:
    for command in script:
        book.clock.advance(seconds=command.seconds)
        book.carry_out(partial(_attempt, book, command))


@given(scripts_of_commands)
@settings(max_examples=150, deadline=None)
def test_after_any_commands_the_graph_counts_what_is_there_and_keeps_its_invariants(script: list[Command]) -> None:
    book = RuleBook()
    for command in script:
        live(book, [command])
        check_against_recount(book.graph)


@given(scripts_of_commands, st.lists(commands, min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_a_draft_leaves_its_base_untouched_and_equals_applying_directly(script: list[Command], group: list[Command]) -> None:
    book = RuleBook()
    live(book, script)
    before = view(book.graph)
    outer = Plan(book.graph)
    for command in group:
        expected = view(outer.graph)
        inner = Plan(outer.graph)
        attempted(book, inner, command)
        assert view(outer.graph) == expected, "a draft of a draft is apart, too"
        expected = view(inner.graph)
        for change in inner.changes:
            outer.make(change)
        assert view(outer.graph) == expected
    assert view(book.graph) == before
    drafted = view(outer.graph)
    for change in outer.changes:
        book.graph.apply(change)
    assert view(book.graph) == drafted
    check_against_recount(book.graph)


@given(scripts_of_commands, st.floats(0.0, 2_000_000.0))
@settings(max_examples=100, deadline=None)
def test_what_is_due_and_what_has_learned_is_known_without_a_walk(script: list[Command], ahead: float) -> None:
    book = RuleBook()
    for command in script:
        live(book, [command])
        now = book.clock.now()
        for moment in (now, now + ahead):
            due = {m.id for m in book.graph.memories.values() if m.expires_at is not None and m.expires_at <= moment}
            assert {m.id for m in book.graph.due(moment)} == due
            assert {m.id for m in book.graph.draft().due(moment)} == due
        learners = {key.id for key in book.graph.keys.values() if key.learned or key.candidates}
        assert {key.id for key in book.graph.learners()} == learners


@given(scripts_of_commands)
@settings(max_examples=60, deadline=None)
def test_applying_a_change_twice_is_applying_it_once(script: list[Command]) -> None:
    book = RuleBook()
    live(book, script)
    before = view(book.graph)
    again: list[Change] = [MemoryChanged(memory) for memory in book.graph.memories.values()]
    again += [KeyChanged(key) for key in book.graph.keys.values()]
    again += [LinkSet(link) for link in book.graph.all_links()]
    for change in again:
        book.graph.apply(change)
    assert view(book.graph) == before


def _reloaded(store: Store) -> Graph:
    graph = Graph()
    for change in store.load():
        graph.apply(change)
    return graph


def _stored(store: Store, script: list[Command]) -> RuleBook:
    book = RuleBook()
    for number, command in enumerate(script):
        done = len(book.changes)
        live(book, [command])
        store.commit([Commit("remember", float(number), Actor("test"), tuple(book.changes[done:]))])
    return book


def _records(graph: Graph) -> object:
    return dict(graph.memories), dict(graph.keys), {(link.key_id, link.memory_id): link for link in graph.all_links()}


@given(scripts_of_commands)
@settings(max_examples=60, deadline=None)
def test_reloading_the_store_in_memory_gives_the_graph(script: list[Command]) -> None:
    store = MemoryStore()
    book = _stored(store, script)
    assert _records(_reloaded(store)) == _records(book.graph)


@given(scripts_of_commands)
@settings(max_examples=20, deadline=None)
def test_reloading_the_store_in_sqlite_gives_the_graph(script: list[Command]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "keymem.db"
        store = SqliteStore(path, FixedClock())
        book = _stored(store, script)
        store.close()
        again = SqliteStore(path, FixedClock())
        assert _records(_reloaded(again)) == _records(book.graph)
        again.close()
