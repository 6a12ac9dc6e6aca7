"""The write-ahead log is moved by the store itself, and what it brings into the file brings no bytes that belong to no row."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile

import pytest

from keymem_daemon.core.changes import Commit, KeyAdded, KeyRemoved, LinkRemoved, LinkSet, MemoryAdded, MemoryRemoved
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.store.checkpoint import LOG_PAGES, MOST_LOG_PAGES, Checkpoints
from keymem_daemon.store.opening import connected
from keymem_daemon.store.slack import clear_slack
from keymem_daemon.store.sqlite import SqliteStore

ACTOR = Actor("remember")


class FixedClock:
    def now(self) -> float:
        return 1.0


def opened(directory: Path) -> SqliteStore:
    return SqliteStore(directory / "keymem.db", FixedClock())


def memory(number: int) -> Memory:
    return Memory(f"01{number:010x}", f"memory {number} of a day that was long enough " * 4, "default", 1.0, 1.0)


def key(number: int) -> Key:
    return Key(f"02{number:010x}", f"key {number}")


def remember(store: SqliteStore, numbers: range) -> None:
    store.commit(
        [
            Commit(
                "remember",
                1.0,
                ACTOR,
                (MemoryAdded(memory(n)), KeyAdded(key(n)), LinkSet(Link(key(n).id, memory(n).id))),
                f"request {n}",
                f'{{"saved": "{memory(n).id}"}}',
            )
            for n in numbers
        ],
        durable=False,
    )


def forget(store: SqliteStore, number: int) -> None:
    gone, named = memory(number), key(number)
    changes = (LinkRemoved(named.id, gone.id), KeyRemoved(named.id), MemoryRemoved(gone.id, purge=True))
    store.commit([Commit("forget", 2.0, ACTOR, changes)], durable=False)
    store.purge([gone.id], list(named.surfaces))


def log_bytes(database: Path) -> int:
    return database.with_name(f"{database.name}-wal").stat().st_size


def unclear_bytes(database: Path) -> int:
    """How much of the file belongs to no row and is not zero; the file itself is left alone."""
    copy = database.with_name("examined")
    copyfile(database, copy)
    try:
        return clear_slack(copy)
    finally:
        copy.unlink()


@contextmanager
def balanced(path: Path) -> Iterator[tuple[sqlite3.Connection, Checkpoints]]:
    """A database whose trees have been rebalanced often, and the checkpoints of it, none made yet."""
    with closing(connected(path)) as db:
        db.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT)")
        live(db, 1, 400)
        checkpoints = Checkpoints(db, path)
        checkpoints.committed()
        yield db, checkpoints
    checkpoints.close()


def live(db: sqlite3.Connection, first: int, count: int) -> None:
    """Write rows in an order that splits pages, and let every third one grow."""
    for number in range(first, first + count):
        name = f"{number * 7919 % 10007:05d}"
        db.execute("INSERT INTO t (id, body) VALUES (?, ?)", (name * 8, name * (number % 90)))
        if number % 3 == 0:
            db.execute("UPDATE t SET body = body || body WHERE seq = ?", (number // 2,))


def test_a_log_that_has_grown_long_is_moved_when_the_store_is_tidied(tmp_path: Path) -> None:
    store = opened(tmp_path)
    remember(store, range(150))
    before = log_bytes(tmp_path / "keymem.db")
    store.tidy(idle=False)
    assert log_bytes(tmp_path / "keymem.db") == before > 0
    store.tidy(idle=True)
    assert log_bytes(tmp_path / "keymem.db") == 0
    for start in range(150, 2550, 20):
        remember(store, range(start, start + 20))
    assert 1.5 * LOG_PAGES * 4096 < log_bytes(tmp_path / "keymem.db") < MOST_LOG_PAGES * 4096
    store.tidy(idle=False)
    assert log_bytes(tmp_path / "keymem.db") == 0
    assert unclear_bytes(tmp_path / "keymem.db") == 0
    store.close()


def test_a_log_that_nobody_tidies_does_not_grow_without_end(tmp_path: Path) -> None:
    store = opened(tmp_path)
    longest = 0
    for number in range(80):
        store.save_vectors("space", {f"text {number} {each}": bytes(1024) for each in range(400)})
        longest = max(longest, log_bytes(tmp_path / "keymem.db"))
    assert LOG_PAGES * 4096 < longest < (MOST_LOG_PAGES + 1000) * 4160
    assert log_bytes(tmp_path / "keymem.db") < longest
    store.close()


def test_what_was_there_before_the_store_was_opened_is_cleared_on_opening(tmp_path: Path) -> None:
    path = tmp_path / "keymem.db"
    opened(tmp_path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT)")
        live(db, 1, 400)
        db.execute("DROP TABLE t")
        db.commit()
    assert unclear_bytes(path) > 0
    store = opened(tmp_path)
    assert unclear_bytes(path) == 0
    store.close()


def test_a_checkpoint_clears_the_pages_that_the_log_had(tmp_path: Path) -> None:
    with balanced(tmp_path / "x.db") as (db, checkpoints):
        assert checkpoints.move()
        for start in range(401, 1000, 100):
            live(db, start, 100)
            checkpoints.committed()
            assert checkpoints.move()
            assert unclear_bytes(tmp_path / "x.db") == 0
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_another_connection_brought_into_the_file_is_cleared_too(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with balanced(path) as (db, checkpoints), closing(sqlite3.connect(path, isolation_level=None)) as theirs:
        assert checkpoints.move()
        live(theirs, 401, 300)
        assert theirs.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        db.execute("DELETE FROM t WHERE seq = 1")
        checkpoints.committed()
        assert unclear_bytes(path) > 0
        assert checkpoints.move()
        assert unclear_bytes(path) == 0


def test_pages_of_a_log_that_another_connection_has_moved_are_cleared_too(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with balanced(path) as (db, checkpoints), closing(connected(path)) as theirs:
        assert checkpoints.move()
        live(db, 401, 60)
        checkpoints.committed()
        length = log_bytes(path)
        theirs.execute("PRAGMA wal_checkpoint(PASSIVE)")
        db.execute("CREATE TABLE u (x)")
        checkpoints.committed()
        for _ in range(length // 4096):  # each a frame at least: nothing is left of the log as it was
            db.execute("INSERT INTO u VALUES (1)")
        checkpoints.committed()
        assert unclear_bytes(path) > 0
        assert checkpoints.move()
        assert unclear_bytes(path) == 0


def test_a_page_in_memory_does_not_bring_back_what_was_cleared_once_the_connection_is_another(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with balanced(path) as (_db, checkpoints):
        checkpoints.clear()
        db = connected(path)
        checkpoints.follow(db)
        for seq in range(1, 401):
            db.execute("UPDATE t SET body = substr(body, 1, length(body)) WHERE seq = ?", (seq,))
        assert db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
        assert unclear_bytes(path) == 0
        db.close()


def test_a_reader_that_holds_the_log_delays_no_checkpoint_that_is_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with balanced(path) as (db, checkpoints), closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM t").fetchone()
        live(db, 401, 100)
        checkpoints.committed()
        assert not checkpoints.move()
        assert not checkpoints.longer_than(0)
        assert db.execute("PRAGMA busy_timeout").fetchone()[0] > 0
        reader.execute("COMMIT")
        assert checkpoints.move()
        assert unclear_bytes(path) == 0


def test_a_damaged_response_keeps_the_store_neither_from_opening_nor_from_forgetting(tmp_path: Path) -> None:
    store = opened(tmp_path)
    remember(store, range(2))
    store.close()
    with closing(sqlite3.connect(tmp_path / "keymem.db")) as db:
        db.execute("UPDATE requests SET response = CAST(x'ff' || CAST(response AS BLOB) AS TEXT) WHERE seq = 1")
        db.commit()
    store = opened(tmp_path)
    forget(store, 0)
    assert memory(0).id not in str(store.response_to("request 0"))
    assert memory(1).id in str(store.response_to("request 1"))
    store.close()


def test_forgetting_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    store = opened(tmp_path)
    remember(store, range(30))
    forget(store, 0)
    before = len(list(Path("/dev/fd").iterdir()))
    for number in range(1, 20):
        forget(store, number)
    assert len(list(Path("/dev/fd").iterdir())) == before
    store.close()


def test_the_locks_on_the_database_outlast_forgetting(tmp_path: Path) -> None:
    """Were they lost, whoever else closes the database would take himself for the last one, and delete the log."""
    store = opened(tmp_path)
    remember(store, range(3))
    forget(store, 0)
    visit = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT 1 FROM memories').fetchone(); db.close()"
    subprocess.run([sys.executable, "-c", visit, str(tmp_path / "keymem.db")], check=True, timeout=30)
    assert (tmp_path / "keymem.db-wal").exists()
    remember(store, range(3, 5))
    assert sum(isinstance(change, MemoryAdded) for change in store.load()) == 4
    store.close()


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts what the process has read as Linux does")
def test_forgetting_reads_no_more_of_a_large_store_than_of_a_small_one(tmp_path: Path) -> None:
    def read_by_forgetting(size: int) -> int:
        store = opened(tmp_path / str(size))
        for start in range(0, size, 50):
            remember(store, range(start, start + 50))
        store.tidy(idle=True)
        forget(store, 1)
        before = bytes_read()
        for number in range(10, 20):
            forget(store, number)
        read = bytes_read() - before
        store.close()
        return read

    assert read_by_forgetting(3000) < 2 * read_by_forgetting(100)


def bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])
