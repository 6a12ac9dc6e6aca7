"""A store of every format version there has been still opens, with everything in it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from make_store_data import (
    ACTOR,
    CAFE,
    CURRENT,
    FRUIT,
    LINKS,
    NAME,
    OLD,
    PASSING,
    REQUEST,
    SPACE,
    VECTOR,
    FixedClock,
    written,
)

from keymem_daemon.core.changes import LinkSet
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Key, Link
from keymem_daemon.store.migrate import brought_forward_in_memory, incomplete_tables
from keymem_daemon.store.schema import TABLES, VERSION
from keymem_daemon.store.sqlite import SqliteStore

VERSIONS = sorted(Path(__file__).parent.glob("v*.sql"), key=lambda path: int(path.stem[1:]))


BOTH_NAMES = {FRUIT.id: ("딸기", "strawberry"), CAFE.id: ("harbour cafe", "café at the harbour")}


def keys_of(version: int) -> list[Key]:
    """Version 1 did not know where an alias was learned."""
    learned = tuple(replace(alias, namespaces=()) for alias in CAFE.learned)
    return [CAFE if version > 1 else replace(CAFE, learned=learned), NAME, FRUIT]


def links_of(version: int) -> set[Link]:
    """Version 1 did not know the words of a link: of a key that one namespace has, every link has them all."""
    return {link if version > 1 else replace(link, surfaces=BOTH_NAMES.get(link.key_id, ())) for link in LINKS}


@pytest.mark.parametrize("script", VERSIONS, ids=lambda path: path.stem)
def test_a_store_of_that_version_opens_with_everything_in_it(tmp_path: Path, script: Path) -> None:
    db = sqlite3.connect(tmp_path / "keymem.db")
    db.executescript(script.read_text(encoding="utf-8"))
    db.close()
    store = SqliteStore(tmp_path / "keymem.db", FixedClock())
    graph = Graph()
    for change in store.load():
        graph.apply(change)
    assert dict(graph.memories) == {memory.id: memory for memory in (OLD, CURRENT, PASSING)}
    version = int(script.stem[1:])
    assert dict(graph.keys) == {key.id: key for key in keys_of(version)}
    assert set(graph.all_links()) == links_of(version)
    assert store.response_to(REQUEST[0]) == REQUEST[1]
    assert store.load_vectors(SPACE, ["harbour cafe"]) == {"harbour cafe": VECTOR}
    assert store.meta("embedding_fingerprint") == SPACE
    correction = next(record for record in store.history(CURRENT.id, 10) if record.action == "correct")
    assert (correction.actor, correction.note, correction.before) == (ACTOR, "keys were inherited", None)
    assert [record.action for record in store.history(OLD.id, 10)] == ["correct", "remember"]
    assert store.report().schema_version == VERSION
    store.close()


def file_of_version_1(path: Path) -> None:
    """The data set in a file whose pages are laid out as version 1 did it: table by table, in the order of the schema."""
    db = sqlite3.connect(path)
    for statement in TABLES:
        db.execute(statement.replace("surfaces TEXT NOT NULL DEFAULT '[]',", ""))
    inserts = [line for line in VERSIONS[0].read_text(encoding="utf-8").split(";\n") if line.startswith("INSERT")]
    for statement in inserts:
        db.execute(statement)
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()


@pytest.mark.parametrize("lost", [None, "requests"], ids=["the first page", "the requests"])
def test_links_come_back_from_a_damaged_file_of_version_1(tmp_path: Path, lost: str | None) -> None:
    path = tmp_path / "keymem.db"
    file_of_version_1(path)
    db = sqlite3.connect(path)
    root = 1 if lost is None else db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (lost,)).fetchone()[0]
    db.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    store = SqliteStore(path, FixedClock())
    graph = Graph()
    for change in store.load():
        graph.apply(change)
    assert {(link.key_id, link.memory_id) for link in graph.all_links()} == {(link.key_id, link.memory_id) for link in LINKS}
    assert any("was damaged" in problem for problem in store.report().problems)
    store.close()


def test_a_key_that_namespaces_share_tells_none_of_them_its_older_aliases(tmp_path: Path) -> None:
    path = tmp_path / "keymem.db"
    file_of_version_1(path)
    db = sqlite3.connect(path)
    db.execute("INSERT INTO links (key_id, memory_id, weight, position) VALUES (?, ?, 1.0, 9)", (FRUIT.id, CURRENT.id))
    db.execute("UPDATE keys SET aliases = '[\"broken' WHERE id = ?", (CAFE.id,))
    db.commit()
    db.close()
    store = SqliteStore(path, FixedClock())
    links = [change.link for change in store.load() if isinstance(change, LinkSet)]
    assert {link.surfaces for link in links if link.key_id == FRUIT.id} == {()}
    store.close()


def test_a_file_of_version_1_that_cannot_be_written_is_read_as_the_present_version_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "keymem.db"
    file_of_version_1(path)
    before = path.read_bytes()
    db = brought_forward_in_memory(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None))
    assert incomplete_tables(db) == []
    assert db.execute("SELECT count(*) FROM links WHERE surfaces <> '[]'").fetchone() == (3,)
    db.close()
    assert path.read_bytes() == before


def test_there_is_a_data_set_of_the_present_version() -> None:
    assert VERSIONS[-1].stem == f"v{VERSION}"


def test_the_present_version_is_laid_out_as_its_data_set_says(tmp_path: Path) -> None:
    """A table that changes without a new version would make two formats of one number."""
    written(tmp_path / "new.db")
    new, old = sqlite3.connect(tmp_path / "new.db"), sqlite3.connect(":memory:")
    old.executescript(VERSIONS[-1].read_text(encoding="utf-8"))
    layout = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    assert new.execute(layout).fetchall() == old.execute(layout).fetchall()
    for db in (new, old):
        db.close()
