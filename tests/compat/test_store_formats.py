"""A store of every format version there has been still opens, with everything in it."""

from __future__ import annotations

import sqlite3
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

from keymem_daemon.core.graph import Graph
from keymem_daemon.store.schema import VERSION
from keymem_daemon.store.sqlite import SqliteStore

VERSIONS = sorted(Path(__file__).parent.glob("v*.sql"), key=lambda path: int(path.stem[1:]))


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
    assert dict(graph.keys) == {key.id: key for key in (CAFE, NAME, FRUIT)}
    assert set(graph.all_links()) == set(LINKS)
    assert store.response_to(REQUEST[0]) == REQUEST[1]
    assert store.load_vectors(SPACE, ["harbour cafe"]) == {"harbour cafe": VECTOR}
    assert store.meta("embedding_fingerprint") == SPACE
    correction = next(record for record in store.history(CURRENT.id, 10) if record.action == "correct")
    assert (correction.actor, correction.note, correction.before) == (ACTOR, "keys were inherited", None)
    assert [record.action for record in store.history(OLD.id, 10)] == ["correct", "remember"]
    assert store.report().schema_version == VERSION
    store.close()


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
