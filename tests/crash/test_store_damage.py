"""Damage of the file under a store: what is sound is served, what is not is set aside and told."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import pytest

from keymem_daemon.core.changes import Commit, KeyAdded, LinkSet, MemoryAdded
from keymem_daemon.core.errors import StorageFailed
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.store.sqlite import SqliteStore

COUNT = 300


class FixedClock:
    def now(self) -> float:
        return 1_700_000_000.0


def opened(directory: Path) -> SqliteStore:
    return SqliteStore(directory / "keymem.db", FixedClock())


def filled(directory: Path) -> None:
    store = opened(directory)
    commits = []
    for number in range(COUNT):
        memory = Memory(f"01{number:010x}", f"memory {number} of a long day " * 8, "default", 1.0, 1.0)
        key = Key(f"02{number:010x}", f"key {number}")
        changes = (MemoryAdded(memory), KeyAdded(key), LinkSet(Link(key.id, memory.id)))
        commits.append(Commit("remember", 1.0, Actor("t"), changes))
    store.commit(commits)
    store.close()


def loaded(store: SqliteStore) -> Graph:
    graph = Graph()
    for change in store.load():
        graph.apply(change)
    return graph


def execute(directory: Path, *statements: str) -> None:
    db = sqlite3.connect(directory / "keymem.db")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


ROWS = {
    "JSON that is none": "UPDATE memories SET links = '[1,' WHERE seq = 5",
    "a list of other things": "UPDATE memories SET contradicts = '[1]' WHERE seq = 5",
    "an unknown profile": "UPDATE memories SET decay_profile = 'eternal' WHERE seq = 5",
    "a depth beyond one": "UPDATE memories SET depth = 7 WHERE seq = 5",
    "a time that is a word": "UPDATE memories SET created_at = 'today' WHERE seq = 5",
    "bytes that are no text": "UPDATE memories SET content = CAST(x'ff00fe' AS TEXT) WHERE seq = 5",
    "a source that is a list": "UPDATE memories SET source = '[]' WHERE seq = 5",
    "no content": "UPDATE memories SET content = '' WHERE seq = 5",
    "an unknown key type": "UPDATE keys SET key_type = 'verb' WHERE seq = 5",
    "candidates cut short": "UPDATE keys SET candidates = '[[\"q\",1]]' WHERE seq = 5",
    "a concept another key has": "UPDATE keys SET concept = 'KEY 3' WHERE seq = 5",
    "a weight out of range": "UPDATE links SET weight = 9.5 WHERE seq = 5",
    "a key that is missing": "DELETE FROM keys WHERE seq = 5",
    "a memory that is missing": "DELETE FROM memories WHERE seq = 5",
}


@pytest.mark.parametrize("statement", ROWS.values(), ids=ROWS.keys())
def test_a_damaged_row_is_set_aside_and_the_rest_is_served(tmp_path: Path, statement: str) -> None:
    filled(tmp_path)
    execute(tmp_path, statement)
    store = opened(tmp_path)
    graph = loaded(store)
    assert len(graph.memories) >= COUNT - 1
    assert len(graph.keys) >= COUNT - 1
    assert graph.link_count == COUNT - 1
    assert any("left out" in problem for problem in store.report().problems)
    (side,) = tmp_path.glob("damaged-*.jsonl")
    lines = [json.loads(line) for line in side.read_text(encoding="utf-8").splitlines()]
    assert all(line["row"] and line["reason"] for line in lines)
    assert side.stat().st_mode & 0o777 == 0o600
    store.close()
    again = opened(tmp_path)
    assert list(loaded(again).memories.items()) == list(graph.memories.items())
    assert again.report().problems == ()
    again.close()


def test_an_alias_that_two_keys_have_stays_with_the_first(tmp_path: Path) -> None:
    filled(tmp_path)
    execute(tmp_path, 'UPDATE keys SET aliases = \'["Key 3","own"]\' WHERE seq = 5')
    store = opened(tmp_path)
    graph = loaded(store)
    key = graph.key_of_surface("key 4")
    assert key is not None
    assert key.aliases == ("own",)
    assert len(graph.keys) == COUNT
    assert any(key.id in problem for problem in store.report().problems)
    store.close()


@pytest.mark.parametrize("content", [b"this is no database" * 1000, b"\0" * 8192], ids=["text", "zeros"])
def test_a_file_that_is_no_database_is_kept_aside_and_a_new_one_serves(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keymem.db").write_bytes(content)
    store = opened(tmp_path)
    assert list(store.load()) == []
    (kept,) = tmp_path.glob("keymem.db.damaged-*")
    assert kept.read_bytes() == content
    assert kept.name in store.report().problems[0]
    assert store.report().integrity == "recovered"
    store.close()
    assert opened(tmp_path).report().integrity == "ok"


def test_another_programs_database_is_kept_aside(tmp_path: Path) -> None:
    execute(tmp_path, "CREATE TABLE theirs (a)", "INSERT INTO theirs VALUES (1)")
    store = opened(tmp_path)
    assert list(store.load()) == []
    assert len(list(tmp_path.glob("keymem.db.damaged-*"))) == 1
    store.close()


def test_all_rows_come_back_when_the_first_page_is_lost(tmp_path: Path) -> None:
    filled(tmp_path)
    content = bytearray((tmp_path / "keymem.db").read_bytes())
    content[:4096] = b"\xa5" * 4096
    (tmp_path / "keymem.db").write_bytes(content)
    store = opened(tmp_path)
    graph = loaded(store)
    assert (len(graph.memories), len(graph.keys), graph.link_count) == (COUNT, COUNT, COUNT)
    assert len(store.history(None, 10_000)) == 3 * COUNT
    assert not list(tmp_path.glob("*.graft*")) + list(tmp_path.glob("*.blank*")) + list(tmp_path.glob("*.recover*"))
    store.close()


def test_what_lies_before_the_cut_of_a_truncated_file_comes_back(tmp_path: Path) -> None:
    filled(tmp_path)
    content = (tmp_path / "keymem.db").read_bytes()
    (tmp_path / "keymem.db").write_bytes(content[: len(content) // 8192 * 4096 + 1000])
    store = opened(tmp_path)
    graph = loaded(store)
    assert len(graph.memories) > COUNT // 4
    assert store.report().integrity == "recovered"
    store.close()


@pytest.mark.parametrize("seed", range(12))
def test_any_pages_overwritten_leave_a_store_that_opens_and_serves_most(tmp_path: Path, seed: int) -> None:
    filled(tmp_path)
    rng = random.Random(seed)  # noqa: S311 - a seeded test
    content = bytearray((tmp_path / "keymem.db").read_bytes())
    pages = len(content) // 4096
    for page in rng.sample(range(1, pages), 3):
        start = page * 4096 + rng.randrange(2048)
        rubble = rng.randbytes(rng.randrange(16, 2048))
        content[start : start + len(rubble)] = rubble
    (tmp_path / "keymem.db").write_bytes(content[: pages * 4096])
    store = opened(tmp_path)
    graph = loaded(store)
    assert len(graph.memories) > COUNT // 2 or len(graph.keys) > COUNT // 2
    extra = Memory("01ffffffffff", "written afterwards", "default", 2.0, 2.0)
    store.commit([Commit("remember", 2.0, Actor("t"), (MemoryAdded(extra),))])
    store.close()
    again = opened(tmp_path)
    assert extra.id in loaded(again).memories
    assert again.report().problems == ()
    again.close()


def test_damage_found_while_reading_is_recovered_from_on_the_spot(tmp_path: Path) -> None:
    filled(tmp_path)
    store = opened(tmp_path)
    content = bytearray((tmp_path / "keymem.db").read_bytes())
    position = content.rindex(b"memory 150 of a long day memory 150")
    page = position // 4096 * 4096
    reading = store.load()
    first = next(reading)
    with (tmp_path / "keymem.db").open("r+b") as file:
        for start in range(page, page + 4096 * 2, 4096):
            file.seek(start)
            file.write(b"\xff" * 4096)
    graph = Graph()
    for change in (first, *reading):
        graph.apply(change)
    assert len(graph.memories) > COUNT // 2
    store.close()


def test_an_exchange_that_was_interrupted_is_finished_on_opening(tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    filled(tmp_path / "sound")
    (tmp_path / "keymem.db").write_bytes(b"rubble")
    (tmp_path / "keymem.db-wal").write_bytes(b"rubble")
    (tmp_path / "sound" / "keymem.db").rename(tmp_path / "keymem.db.recovered")
    store = opened(tmp_path)
    assert len(loaded(store).memories) == COUNT
    store.close()


LOSSES = {
    "a table": ("DROP TABLE links",),
    "a column": ("ALTER TABLE links DROP COLUMN position",),
    "a table of the past": ("DROP TABLE changes", "DROP TABLE commits"),
    "a cache": ("DROP TABLE vectors",),
}


@pytest.mark.parametrize("statements", LOSSES.values(), ids=LOSSES.keys())
def test_what_remains_is_served_when_a_table_is_gone_and_that_is_told(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    filled(tmp_path)
    execute(tmp_path, *statements)
    store = opened(tmp_path)
    graph = loaded(store)
    assert (len(graph.memories), len(graph.keys)) == (COUNT, COUNT)
    assert "without a whole table" in store.report().problems[0]
    assert store.report().integrity == "recovered"
    assert len(list(tmp_path.glob("keymem.db.damaged-*"))) == 1
    link = Link(next(iter(graph.keys)), next(iter(graph.memories)))
    store.commit([Commit("remember", 2.0, Actor("t"), (LinkSet(link),))])
    store.close()
    again = opened(tmp_path)
    assert loaded(again).link(link.key_id, link.memory_id) == link
    assert again.report().problems == ()
    again.close()


def test_a_database_that_became_empty_is_told_and_a_new_one_serves(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "keymem.db").write_bytes(b"")
    store = opened(tmp_path)
    assert list(store.load()) == []
    assert "keymem.db was empty" in store.report().problems[0]
    store.close()
    again = opened(tmp_path)
    assert again.report().problems == ()
    again.close()


def test_a_database_that_is_missing_beside_its_backups_is_told(tmp_path: Path) -> None:
    assert opened(tmp_path / "new").report().problems == ()
    filled(tmp_path)
    (tmp_path / "keymem.db").rename(tmp_path / "keymem.db.bak.20250101T000000.000000Z")
    store = opened(tmp_path)
    (problem,) = store.report().problems
    assert "keymem.db was missing" in problem
    assert "keymem.db.bak.20250101T000000.000000Z" in problem
    store.close()


def test_the_write_ahead_log_of_an_emptied_database_is_kept(tmp_path: Path) -> None:
    (tmp_path / "keymem.db").write_bytes(b"")
    (tmp_path / "keymem.db-wal").write_bytes(b"frames of the last changes" * 100)
    store = opened(tmp_path)
    assert list(store.load()) == []
    (kept,) = tmp_path.glob("keymem.db.damaged-*-wal")
    assert kept.read_bytes() == b"frames of the last changes" * 100
    assert any("keymem.db-wal" in problem for problem in store.report().problems)
    store.close()


def test_a_start_that_failed_leaves_no_empty_database_to_be_taken_for_a_loss(tmp_path: Path) -> None:
    (tmp_path / "keymem.db-wal").mkdir()
    with pytest.raises(StorageFailed):
        opened(tmp_path)
    assert not (tmp_path / "keymem.db").exists()
