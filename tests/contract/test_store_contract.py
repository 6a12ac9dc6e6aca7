"""What every store promises, asked of both: the one on SQLite and the one in dictionaries."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_scripts import FixedClock, Step, carried_out, identifier, scripts, state

from keymem_daemon.core.changes import (
    Action,
    Change,
    Commit,
    KeyAdded,
    KeyChanged,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.errors import StorageFailed
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Actor, AliasCandidate, Key, Link, Memory
from keymem_daemon.ports import ChangeRecord, Store
from keymem_daemon.store.memory import MemoryStore
from keymem_daemon.store.records import image
from keymem_daemon.store.sqlite import SqliteStore

ACTOR = Actor("remember", "session", "claude", "host-session", "7", "prompt")
APPLE = Memory(identifier(1, 1), "Newton watched an apple fall", "default", 10.0, 11.0)
PEAR = Memory(identifier(2, 1), "Pears keep poorly", "default", 12.0, 12.0)
NEWTON = Key(identifier(1, 2), "Newton", "proper_noun", ("뉴턴",))
FRUIT = Key(identifier(2, 2), "fruit")


@dataclass
class Opened:
    """A store that can be let go of and opened again."""

    store: Store
    again: Callable[[], Store]

    def reopened(self) -> Store:
        self.store.close()
        self.store = self.again()
        return self.store


@contextmanager
def memory_store() -> Iterator[Opened]:
    store = MemoryStore()
    yield Opened(store, lambda: store)


@contextmanager
def sqlite_store() -> Iterator[Opened]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "keymem.db"
        opened = Opened(SqliteStore(path, FixedClock()), lambda: SqliteStore(path, FixedClock()))
        try:
            yield opened
        finally:
            opened.store.close()


Kind = Callable[[], AbstractContextManager[Opened]]
both = pytest.mark.parametrize("kind", [memory_store, sqlite_store])


def commit_of(*changes: Change, action: Action = "remember", at: float = 100.0) -> Commit:
    return Commit(action=action, at=at, actor=ACTOR, changes=changes)


def loaded(store: Store) -> Graph:
    graph = Graph()
    for change in store.load():
        graph.apply(change)
    return graph


@both
@given(script=scripts, sizes=st.lists(st.integers(1, 4), min_size=1))
@settings(max_examples=60, deadline=None)
def test_a_reloaded_store_gives_the_graph_that_was_in_memory(kind: Kind, script: list[Step], sizes: list[int]) -> None:
    graph = Graph()
    commits = carried_out(script, graph)
    with kind() as opened:
        rest = commits
        for number, size in enumerate(sizes * len(commits)):
            opened.store.commit(rest[:size], durable=number % 3 != 0)
            rest = rest[size:]
        assert state(loaded(opened.reopened())) == state(graph)


@both
@given(script=scripts)
@settings(max_examples=30, deadline=None)
def test_carrying_out_the_same_changes_again_changes_nothing(kind: Kind, script: list[Step]) -> None:
    commits = [replace(commit, request_id=None) for commit in carried_out(script, Graph())]
    with kind() as opened:
        for commit in commits:
            opened.store.commit([commit])
            before, history = state(loaded(opened.store)), opened.store.history(None, 1000)
            opened.store.commit([commit])
            assert state(loaded(opened.store)) == before
            assert opened.store.history(None, 1000) == history


@both
@given(script=scripts)
@settings(max_examples=30, deadline=None)
def test_a_refused_commit_leaves_no_trace_of_itself_or_its_neighbours(kind: Kind, script: list[Step]) -> None:
    commits = carried_out(script, Graph())
    impossible = commit_of(LinkSet(Link("dddddddddddd", "eeeeeeeeeeee")))
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE))])
        before, history = state(loaded(opened.store)), opened.store.history(None, 1000)
        with pytest.raises(StorageFailed):
            opened.store.commit([*commits, impossible])
        assert state(loaded(opened.reopened())) == before
        assert opened.store.history(None, 1000) == history
        assert opened.store.response_to("request-0") is None
        opened.store.commit(commits)


@both
@pytest.mark.parametrize(
    "bad",
    [
        MemoryAdded(replace(PEAR, content="lone \ud800 surrogate")),
        MemoryAdded(replace(PEAR, depth=float("nan"))),
        KeyAdded(replace(FRUIT, aliases=("\udfff",))),
        KeyAdded(replace(FRUIT, candidates=(AliasCandidate("q", 1, float("inf")),))),
    ],
)
def test_a_value_that_cannot_be_written_fails_the_whole_commit(kind: Kind, bad: Change) -> None:
    with kind() as opened:
        with pytest.raises(StorageFailed):
            opened.store.commit([commit_of(MemoryAdded(APPLE), bad)])
        assert list(opened.store.load()) == []
        opened.store.commit([commit_of(MemoryAdded(APPLE))])
        assert list(opened.reopened().load()) == [MemoryAdded(APPLE)]


@both
def test_the_response_to_a_request_is_kept_with_what_it_did(kind: Kind) -> None:
    with kind() as opened:
        done = replace(commit_of(MemoryAdded(APPLE)), request_id="r1", response='{"saved":"딸기"}')
        opened.store.commit([done, replace(commit_of(MemoryAdded(PEAR), at=200.0), request_id="r2")])
        store = opened.reopened()
        assert store.response_to("r1") == '{"saved":"딸기"}'
        assert store.response_to("r2") == "null"
        assert store.response_to("r3") is None
        assert store.forget_requests_before(150.0) == 1
        assert store.response_to("r1") is None
        assert store.response_to("r2") is not None


@both
def test_a_request_is_carried_out_once(kind: Kind) -> None:
    with kind() as opened:
        opened.store.commit([replace(commit_of(MemoryAdded(APPLE)), request_id="r1", response="1")])
        with pytest.raises(StorageFailed):
            opened.store.commit([replace(commit_of(MemoryAdded(PEAR)), request_id="r1", response="2")])
        assert list(loaded(opened.store).memories) == [APPLE.id]
        assert opened.store.response_to("r1") == "1"


def told(records: list[ChangeRecord]) -> list[tuple[str, str, str, object, object]]:
    return [(record.action, record.entity, record.entity_id, record.before, record.after) for record in records]


@both
def test_history_tells_every_change_with_its_images_newest_first(kind: Kind) -> None:
    link = Link(NEWTON.id, APPLE.id)
    confirmed = replace(APPLE, depth=0.05, confirmation_count=1, last_confirmed_at=120.0)
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE), KeyAdded(NEWTON), LinkSet(link))])
        opened.store.commit(
            [replace(commit_of(MemoryChanged(confirmed), action="confirm", at=120.0), note="user said so")]
        )
        opened.store.commit(
            [commit_of(LinkRemoved(NEWTON.id, APPLE.id), KeyRemoved(NEWTON.id), action="prune", at=130.0)]
        )
        store = opened.reopened()
        pair = f"{NEWTON.id}:{APPLE.id}"
        assert told(store.history(None, 100)) == [
            ("prune", "key", NEWTON.id, image(NEWTON), None),
            ("prune", "link", pair, image(link), None),
            ("confirm", "memory", APPLE.id, image(APPLE), image(confirmed)),
            ("remember", "link", pair, None, image(link)),
            ("remember", "key", NEWTON.id, None, image(NEWTON)),
            ("remember", "memory", APPLE.id, None, image(APPLE)),
        ]
        (confirmation, birth) = store.history(APPLE.id, 100)
        assert (confirmation.note, confirmation.at, confirmation.actor) == ("user said so", 120.0, ACTOR)
        assert (birth.note, birth.at) == (None, 100.0)


@both
def test_history_can_be_paged_without_a_gap_or_a_repeat(kind: Kind) -> None:
    with kind() as opened:
        for number in range(10):
            opened.store.commit([commit_of(MemoryAdded(replace(APPLE, id=identifier(number, 1))))])
        pages: list[ChangeRecord] = []
        before: int | None = None
        while page := opened.store.history(None, 3, before):
            pages.extend(page)
            before = page[-1].seq
        assert pages == opened.store.history(None, 100)
        assert [record.entity_id for record in pages] == [identifier(number, 1) for number in reversed(range(10))]
        assert opened.store.history(None, 0) == []
        assert opened.store.history("ffffffffffff", 5) == []


@both
def test_soft_state_is_kept_and_leaves_no_history(kind: Kind) -> None:
    read = replace(APPLE, access_count=3, last_accessed=140.0)
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE))])
        opened.store.commit([commit_of(MemoryChanged(read), action="reinforce", at=140.0)], durable=False)
        store = opened.reopened()
        assert list(store.load()) == [MemoryAdded(read)]
        assert [record.action for record in store.history(None, 10)] == ["remember"]


@both
def test_a_removed_memory_takes_its_links_with_it(kind: Kind) -> None:
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE), KeyAdded(NEWTON), LinkSet(Link(NEWTON.id, APPLE.id)))])
        opened.store.commit([commit_of(MemoryRemoved(APPLE.id), action="expire")])
        assert list(opened.reopened().load()) == [KeyAdded(NEWTON)]


def everything_told(store: Store, requests: list[str]) -> str:
    """All that a store will say of the past, as one text."""
    history = [(record.before, record.after, record.note) for record in store.history(None, 1000)]
    return repr((history, [store.response_to(request) for request in requests]))


@both
def test_what_was_forgotten_is_told_nowhere_and_that_it_was_is(kind: Kind) -> None:
    fruit_link, newton_link = Link(FRUIT.id, PEAR.id), Link(NEWTON.id, APPLE.id, position=0)
    saved = f'{{"saved":"{APPLE.id}","hints":{{"near_keys":[{{"your_key":"Newton","similarity":0.8}}]}}}}'
    with kind() as opened:
        store = opened.store
        store.commit(
            [
                replace(
                    commit_of(MemoryAdded(APPLE), KeyAdded(NEWTON), LinkSet(newton_link)),
                    request_id="r1",
                    response=saved,
                )
            ]
        )
        store.commit([commit_of(MemoryAdded(PEAR), KeyAdded(FRUIT), LinkSet(fruit_link))])
        store.commit(
            [
                replace(
                    commit_of(MemoryChanged(replace(APPLE, depth=0.1)), action="confirm"),
                    note=f"quoted: {APPLE.content}",
                    request_id="r2",
                    response=f'{{"id":"{APPLE.id}","content":"{APPLE.content}"}}',
                )
            ]
        )
        store.commit(
            [
                replace(
                    commit_of(
                        LinkRemoved(NEWTON.id, APPLE.id),
                        KeyRemoved(NEWTON.id),
                        MemoryRemoved(APPLE.id, purge=True),
                        action="forget",
                    ),
                    request_id="r3",
                    response=f'{{"deleted":"{APPLE.id}","note":"Gone for good."}}',
                )
            ]
        )
        store.purge([APPLE.id], list(NEWTON.surfaces))
        store = opened.reopened()
        past = everything_told(store, ["r1", "r2", "r3"])
        for text in ("watched", "Newton", "뉴턴"):
            assert text not in past
        assert PEAR.content in past
        assert store.response_to("r1") == (
            f'{{"saved":"{APPLE.id}","hints":{{"near_keys":[{{"your_key":"(forgotten)","similarity":0.8}}]}}}}'
        )
        assert store.response_to("r3") == f'{{"deleted":"{APPLE.id}","note":"Gone for good."}}'
        assert [(record.action, record.before, record.after) for record in store.history(APPLE.id, 10)] == [
            ("forget", {"purged": True}, None),
            ("confirm", {"purged": True}, {"purged": True}),
            ("remember", None, {"purged": True}),
        ]


@both
def test_forgetting_finds_the_same_text_under_an_id_it_had_before(kind: Kind) -> None:
    with kind() as opened:
        store = opened.store
        store.commit([commit_of(MemoryAdded(APPLE))])
        store.commit([commit_of(MemoryRemoved(APPLE.id), action="expire")])
        again = replace(APPLE, id=identifier(9, 1))
        elsewhere = replace(APPLE, id=identifier(10, 1), namespace="other")
        store.commit([commit_of(MemoryAdded(again)), commit_of(MemoryAdded(elsewhere))])
        store.commit([commit_of(MemoryRemoved(again.id, purge=True), action="forget")])
        store.purge([again.id], [])
        told_of = {
            record.entity_id for record in store.history(None, 100) if "watched" in repr((record.before, record.after))
        }
        assert told_of == {elsewhere.id}


@both
def test_a_purge_without_a_commit_before_it_takes_the_text_too(kind: Kind) -> None:
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE))])
        opened.store.commit([commit_of(MemoryRemoved(APPLE.id), action="expire")])
        opened.store.purge([APPLE.id], [])
        assert "watched" not in everything_told(opened.store, [])


def chain() -> tuple[list[Commit], Memory]:
    """A text that was corrected twice and pruned without a purge, as history may have it; and the memory that is left."""
    first = replace(APPLE, source={"origin": "a walnut notebook"})
    second = replace(PEAR, supersedes=first.id)
    third = Memory(identifier(3, 1), "Quinces keep well", "default", 13.0, 13.0, supersedes=second.id)
    link = Link(NEWTON.id, first.id)
    commits = [
        commit_of(MemoryAdded(first), KeyAdded(NEWTON), LinkSet(link)),
        commit_of(MemoryAdded(second), MemoryChanged(replace(first, superseded_by=second.id)), action="correct"),
        commit_of(
            MemoryAdded(third),
            MemoryChanged(replace(second, superseded_by=third.id, supersedes=None)),
            LinkRemoved(NEWTON.id, first.id),
            KeyRemoved(NEWTON.id),
            MemoryRemoved(first.id),
            action="correct",
        ),
    ]
    return commits, third


@both
def test_a_memory_that_only_history_knows_is_remembered_until_it_is_purged(kind: Kind) -> None:
    commits, third = chain()
    with kind() as opened:
        store = opened.store
        store.commit(commits)
        assert [store.remembers(each) for each in (APPLE.id, PEAR.id, third.id)] == [True, True, True]
        assert not store.remembers("ffffffffffff")
        assert not store.remembers(NEWTON.id)
        answer = f'{{"deleted":"{APPLE.id}","note":"Gone for good."}}'
        store.commit([replace(commit_of(action="forget"), request_id="r", response=answer)])
        store.purge([APPLE.id], [])
        store = opened.reopened()
        past = everything_told(store, ["r"])
        for text in ("watched", "walnut", "Newton", "뉴턴"):
            assert text not in past
        assert PEAR.content in past
        assert not store.remembers(APPLE.id)
        assert store.response_to("r") == answer


@both
def test_forgetting_takes_what_earlier_corrections_left_in_history_and_nothing_that_is_there(kind: Kind) -> None:
    commits, third = chain()
    with kind() as opened:
        store = opened.store
        store.commit(commits)
        store.commit([commit_of(MemoryRemoved(third.id, purge=True), action="forget")])
        past = everything_told(store, [])
        for text in ("watched", "walnut", "Newton", "Quinces"):
            assert text not in past
        assert store.remembers(PEAR.id)
        assert list(loaded(opened.reopened()).memories) == [PEAR.id]


@both
@given(vectors=st.dictionaries(st.text(st.characters(), max_size=8), st.binary(min_size=2, max_size=16), max_size=12))
@settings(max_examples=30, deadline=None)
def test_vectors_come_back_as_they_were_by_space_and_text(kind: Kind, vectors: dict[str, bytes]) -> None:
    with kind() as opened:
        opened.store.save_vectors("builtin:use3", vectors)
        opened.store.save_vectors("other:space", dict.fromkeys(vectors, b"\0\0"))
        store = opened.reopened()
        assert store.load_vectors("builtin:use3", [*vectors, "no such text"]) == vectors
        assert store.load_vectors("unknown:space", list(vectors)) == {}
        changed = {text: vector + b"!" for text, vector in vectors.items()}
        store.save_vectors("builtin:use3", changed)
        assert store.load_vectors("builtin:use3", list(vectors)) == changed


@both
def test_more_vectors_than_one_statement_takes_are_found(kind: Kind) -> None:
    vectors = {f"text {number}": number.to_bytes(2, "big") for number in range(2500)}
    with kind() as opened:
        opened.store.save_vectors("space", vectors)
        assert opened.store.load_vectors("space", list(vectors)) == vectors


@both
def test_a_purge_takes_the_vectors_of_the_texts_it_names(kind: Kind) -> None:
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE), KeyAdded(NEWTON), LinkSet(Link(NEWTON.id, APPLE.id)))])
        opened.store.save_vectors("space", dict.fromkeys([APPLE.content, "Newton", "a sentence", "other"], b"\1\2"))
        forget = (LinkRemoved(NEWTON.id, APPLE.id), KeyRemoved(NEWTON.id), MemoryRemoved(APPLE.id, purge=True))
        opened.store.commit([commit_of(*forget, action="forget")])
        opened.store.purge([APPLE.id], ["Newton", "a sentence"])
        left = opened.store.load_vectors("space", [APPLE.content, "Newton", "a sentence", "other"])
        assert left == {"other": b"\1\2"}


@both
def test_named_values_are_kept_and_replaced(kind: Kind) -> None:
    with kind() as opened:
        assert opened.store.meta("fingerprint") is None
        opened.store.set_meta("fingerprint", "one")
        opened.store.set_meta("fingerprint", "둘")
        assert opened.reopened().meta("fingerprint") == "둘"


@both
def test_the_report_tells_of_the_last_write_and_of_no_problem(kind: Kind) -> None:
    with kind() as opened:
        assert opened.store.report().last_write_at is None
        opened.store.commit([commit_of(MemoryAdded(APPLE), at=321.0)])
        report = opened.reopened().report()
        assert (report.last_write_at, report.integrity, report.problems) == (321.0, "ok", ())


@both
def test_an_empty_list_of_commits_is_no_write(kind: Kind) -> None:
    with kind() as opened:
        opened.store.commit([])
        assert opened.store.report().last_write_at is None


@both
def test_a_backup_is_written_where_it_was_asked_for(kind: Kind, tmp_path: Path) -> None:
    with kind() as opened:
        opened.store.commit([commit_of(MemoryAdded(APPLE), KeyAdded(NEWTON), LinkSet(Link(NEWTON.id, APPLE.id)))])
        opened.store.backup(str(tmp_path / "copy"))
        assert [path.name for path in tmp_path.iterdir()] == ["copy"]
        assert APPLE.content in (tmp_path / "copy").read_text(encoding="utf-8", errors="replace")


def test_a_changed_key_stays_the_key_it_was(tmp_path: Path) -> None:
    """SQLite's own part of order: a row that changes keeps its place."""
    store = SqliteStore(tmp_path / "keymem.db", FixedClock())
    store.commit([commit_of(KeyAdded(NEWTON), KeyAdded(FRUIT))])
    store.commit([commit_of(KeyChanged(replace(NEWTON, aliases=("a" * 500,))))])
    assert [change.key.id for change in store.load() if isinstance(change, KeyAdded)] == [NEWTON.id, FRUIT.id]
    store.close()
    with sqlite3.connect(tmp_path / "keymem.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
