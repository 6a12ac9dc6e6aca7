"""What only the store on a disk can show: file modes, full and read-only disks, schema versions, bytes that are gone."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from keymem_daemon.core.changes import (
    Change,
    Commit,
    KeyAdded,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.errors import ReadOnly, StorageFailed
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.store.files import BACKUPS_KEPT, automatic_backups
from keymem_daemon.store.migrate import NewerSchema, create, migrated
from keymem_daemon.store.opening import DIRECTORY_BYTES
from keymem_daemon.store.schema import VERSION
from keymem_daemon.store.sqlite import SqliteStore

ACTOR = Actor("remember")
KEY = Key("0200000000aa", "swordfish")
PATIENCE_S = 30.0


class CountingClock:
    """A clock that goes one second further each time it is asked."""

    def __init__(self) -> None:
        self._at = 1_700_000_000.0

    def now(self) -> float:
        self._at += 1
        return self._at


def memory(number: int, content: str = "a memory of something") -> Memory:
    return Memory(f"01{number:010x}", content, "default", float(number), float(number))


def commit_of(*changes: Change, at: float = 100.0) -> Commit:
    return Commit("remember", at, ACTOR, changes)


def opened(directory: Path) -> SqliteStore:
    return SqliteStore(directory / "keymem.db", CountingClock())


def remembered(store: SqliteStore) -> list[str]:
    return [change.memory.id for change in store.load() if isinstance(change, MemoryAdded)]


def forget(store: SqliteStore, gone: Memory) -> None:
    changes = (LinkRemoved(KEY.id, gone.id), KeyRemoved(KEY.id), MemoryRemoved(gone.id, purge=True))
    store.commit([Commit("forget", 200.0, ACTOR, changes)])
    store.purge([gone.id], list(KEY.surfaces))


def every_byte(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


@contextmanager
def umask(mask: int) -> Iterator[None]:
    previous = os.umask(mask)
    try:
        yield
    finally:
        os.umask(previous)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_every_file_is_the_users_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        store = opened(tmp_path / "data")
        store.commit([commit_of(MemoryAdded(memory(1)))])
        store.backup(str(tmp_path / "data" / "copy.db"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()}
        store.close()
    assert modes == dict.fromkeys(["keymem.db", "keymem.db-wal", "keymem.db-shm", "copy.db"], 0o600)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_files_that_were_open_to_others_are_closed_to_them(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "keymem.db").chmod(0o644)
    tmp_path.chmod(0o755)
    opened(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "keymem.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_the_database_is_set_up_as_the_promise_needs_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit([commit_of(MemoryAdded(memory(1)))])
    pragmas = {name: store._db.execute(f"PRAGMA {name}").fetchone()[0] for name in PROMISED}
    assert pragmas == PROMISED
    store.commit([commit_of(MemoryAdded(memory(2)))], durable=False)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (1,)
    store.close()


PROMISED = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "user_version": VERSION}


def test_a_full_disk_refuses_the_write_and_the_next_one_that_fits_succeeds(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit([commit_of(MemoryAdded(memory(1)))])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with pytest.raises(StorageFailed):
            store.commit([commit_of(*(MemoryAdded(memory(number, "x" * 20_000)) for number in range(2, 100)))])
        assert remembered(store) == [memory(1).id]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    store.commit([commit_of(MemoryAdded(memory(2)))])
    store.close()
    assert remembered(opened(tmp_path)) == [memory(1).id, memory(2).id]


def test_a_full_file_system_refuses_the_write_and_the_next_one_that_fits_succeeds(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=512k"):
        store = opened(tmp_path / "small")
        store.commit([commit_of(MemoryAdded(memory(1)))])
        with pytest.raises(StorageFailed):
            store.commit([commit_of(*(MemoryAdded(memory(number, "x" * 20_000)) for number in range(2, 100)))])
        store.commit([commit_of(MemoryAdded(memory(2)))])
        store.close()
        again = opened(tmp_path / "small")
        assert remembered(again) == [memory(1).id, memory(2).id]
        again.close()


def test_a_read_only_file_system_can_be_read_and_says_so_on_writing(tmp_path: Path) -> None:
    with mounted(tmp_path / "frozen", "size=2m"):
        store = opened(tmp_path / "frozen")
        store.commit([commit_of(MemoryAdded(memory(1)))])
        store.close()
        run("mount", "-o", "remount,ro", str(tmp_path / "frozen"))
        store = opened(tmp_path / "frozen")
        assert remembered(store) == [memory(1).id]
        assert store.report().integrity == "read-only"
        assert "cannot be written" in store.report().problems[0]
        with pytest.raises(ReadOnly):
            store.commit([commit_of(MemoryAdded(memory(2)))])
        with pytest.raises(ReadOnly):
            store.set_meta("name", "value")
        store.close()


@contextmanager
def mounted(path: Path, options: str) -> Iterator[None]:
    path.mkdir()
    if run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)) != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        run("umount", "-l", str(path))


def run(*command: str) -> int:
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=20).returncode
    except FileNotFoundError:
        return 127


def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with sqlite3.connect(tmp_path / "keymem.db") as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = (tmp_path / "keymem.db").read_bytes()
    with pytest.raises(
        StorageFailed, match=f"^the database has schema version {VERSION + 1}, and this keymem knows up to {VERSION}"
    ):
        opened(tmp_path)
    assert (tmp_path / "keymem.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keymem.db"]


def test_what_cannot_be_opened_is_told_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "keymem.db").mkdir()
    with pytest.raises(StorageFailed) as failure:
        opened(tmp_path)
    assert failure.value.message == f"{tmp_path / 'keymem.db'} is a directory"
    with pytest.raises(StorageFailed, match=f"{DIRECTORY_BYTES + 1} bytes long, and at most {DIRECTORY_BYTES}"):
        opened(deep(tmp_path, DIRECTORY_BYTES + 1))


def deep(base: Path, length: int) -> Path:
    """A path of that many bytes below ``base``."""
    path = str(base)
    while (missing := length - len(os.fsencode(path))) > 0:
        path += "/" + "d" * (missing - 1 if missing <= 200 else 150)
    return Path(path)


def test_the_longest_path_that_is_taken_has_room_for_every_file(tmp_path: Path) -> None:
    directory = deep(tmp_path, DIRECTORY_BYTES)
    store = opened(directory)
    store.commit([commit_of(MemoryAdded(memory(1)))])
    store.backup(str(directory / "keymem.db.bak.20250101T000000.000000Z-99"))
    store.close()
    content = (directory / "keymem.db").read_bytes()
    (directory / "keymem.db").write_bytes(b"\xa5" * 4096 + content[4096:])
    again = opened(directory)
    assert remembered(again) == [memory(1).id]
    again.close()


def test_a_database_that_another_process_has_locked_is_opened_once_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path)
    store.commit([commit_of(MemoryAdded(memory(1)))])
    store.close()
    with closing(sqlite3.connect(tmp_path / "keymem.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(opened, tmp_path)
            until(lambda: "locked by another process" in caplog.text)
            assert not opening.done()
            other.execute("ROLLBACK")
            again = opening.result(PATIENCE_S)
    assert remembered(again) == [memory(1).id]
    assert again.report().problems == ()
    again.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread."""
    give_up_at = monotonic() + PATIENCE_S
    turn = Event()
    while not condition():
        assert monotonic() < give_up_at
        turn.wait(0.01)


def test_saying_again_what_is_kept_already_needs_no_write(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.set_meta("name", "value")
    with closing(sqlite3.connect(tmp_path / "keymem.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.set_meta("name", "value")
        other.execute("ROLLBACK")
    store.close()


def test_a_purge_that_an_outside_reader_held_up_is_told_and_finished_later(tmp_path: Path) -> None:
    store = opened(tmp_path)
    gone = memory(1, "the harbour code is 4471")
    store.commit([commit_of(MemoryAdded(gone), KeyAdded(KEY), LinkSet(Link(KEY.id, gone.id)))])
    with closing(sqlite3.connect(tmp_path / "keymem.db", isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM memories").fetchall()
        with pytest.raises(StorageFailed):
            forget(store, gone)
        assert any("may still be in the files" in problem for problem in store.report().problems)
        other.execute("ROLLBACK")
    store.purge([], [])
    assert store.report().problems == ()
    assert b"4471" not in every_byte(tmp_path)
    store.close()


STEPS = {
    VERSION: ("ALTER TABLE memories ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'",),
    VERSION + 1: ("UPDATE memories SET colour = 'green'", "CREATE INDEX memories_by_colour ON memories (colour)"),
}


def test_an_older_schema_is_backed_up_and_brought_forward_step_by_step(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit([commit_of(MemoryAdded(memory(1)))])
    store.close()
    db = sqlite3.connect(tmp_path / "keymem.db", isolation_level=None)
    backup = migrated(db, tmp_path / "keymem.db", CountingClock(), STEPS, VERSION + 2)
    assert db.execute("SELECT id, colour FROM memories").fetchall() == [(memory(1).id, "green")]
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION + 2,)
    assert backup is not None
    assert migrated(db, tmp_path / "keymem.db", CountingClock(), STEPS, VERSION + 2) is None
    with pytest.raises(NewerSchema):
        migrated(db, tmp_path / "keymem.db", CountingClock())
    db.close()
    (tmp_path / "old").mkdir()
    backup.rename(tmp_path / "old" / "keymem.db")
    old = opened(tmp_path / "old")
    assert remembered(old) == [memory(1).id]
    old.close()


def test_a_migration_that_fails_leaves_the_version_it_had_reached(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "keymem.db", isolation_level=None)
    create(db)
    broken = {VERSION: STEPS[VERSION], VERSION + 1: ("CREATE TABLE extra (a)", "INSERT INTO nothing VALUES (1)")}
    with pytest.raises(sqlite3.OperationalError):
        migrated(db, tmp_path / "keymem.db", CountingClock(), broken, VERSION + 2)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    assert db.execute("SELECT name FROM sqlite_master WHERE name = 'extra'").fetchall() == []
    db.close()


def test_a_copy_that_a_killed_process_was_making_is_removed_at_the_next_start(tmp_path: Path) -> None:
    opened(tmp_path).close()
    left = ("keymem.db.bak.20250101T000000.000000Z.part", "keymem.db.bak.20250101T000000.000000Z.part-journal", "damaged-1.jsonl.part")
    for name in left:
        (tmp_path / name).write_bytes(b"the harbour code is 4471")
    (tmp_path / "keymem.db.bak.20240101T000000.000000Z").write_bytes(b"a backup")
    opened(tmp_path).close()
    assert b"4471" not in every_byte(tmp_path)
    assert (tmp_path / "keymem.db.bak.20240101T000000.000000Z").exists()


def test_only_the_last_backups_are_kept(tmp_path: Path) -> None:
    path, clock = tmp_path / "keymem.db", CountingClock()
    db = sqlite3.connect(path, isolation_level=None)
    create(db)
    made = [
        migrated(db, path, clock, {version: ()}, version + 1) for version in range(VERSION, VERSION + BACKUPS_KEPT + 3)
    ]
    db.close()
    assert automatic_backups(path) == made[-BACKUPS_KEPT:]


def test_a_backup_is_a_store_of_its_own_and_is_reported(tmp_path: Path) -> None:
    store = opened(tmp_path / "data")
    store.commit([commit_of(MemoryAdded(memory(1)), KeyAdded(KEY), LinkSet(Link(KEY.id, memory(1).id)))])
    (tmp_path / "backup").mkdir()
    store.backup(str(tmp_path / "backup" / "keymem.db"))
    store.commit([commit_of(MemoryAdded(memory(2)))])
    assert store.report().last_backup_at is not None
    copy = opened(tmp_path / "backup")
    assert remembered(copy) == [memory(1).id]
    for each in (copy, store):
        each.close()


def test_no_byte_of_a_forgotten_text_is_left_in_the_data_directory(tmp_path: Path) -> None:
    store = opened(tmp_path)
    gone = memory(1, "the harbour code is 4471 " * 300)
    done = commit_of(MemoryAdded(gone), KeyAdded(KEY), LinkSet(Link(KEY.id, gone.id)))
    store.commit([replace(done, request_id="r", response=f'{{"saved":"{gone.id}","text":"the harbour code is 4471"}}')])
    store.commit([commit_of(MemoryAdded(memory(number, f"another memory {number}"))) for number in range(2, 40)])
    assert b"4471" in every_byte(tmp_path)
    forget(store, gone)
    for secret in (b"4471", b"swordfish"):
        assert secret not in every_byte(tmp_path)
    assert b"another memory 2" in every_byte(tmp_path)
    store.close()
    assert b"4471" not in every_byte(tmp_path)


@pytest.mark.parametrize("seed", [39, 62, 79, 119, 126, 137])
def test_no_byte_is_left_where_rows_were_moved_from_page_to_page(tmp_path: Path, seed: int) -> None:
    """SQLite zeroes a row where it is deleted, but no copy it left where the row stood before its page was split.

    These are the seeds below 150 that left a text readable before slack was cleared (SQLite 3.40).
    """
    rng = random.Random(seed)  # noqa: S311 - seeded on purpose
    store, living, gone = opened(tmp_path), dict[str, Memory](), dict[str, Memory]()
    for step in range(200):
        verb = rng.choice(("remember", "remember", "touch", "touch", "forget"))
        mark = f"mark-{step:05d}."
        if verb == "remember" or not living:
            living[mark] = memory(step, mark * rng.choice((2, 10, 40, 150)))
            store.commit([commit_of(MemoryAdded(living[mark]))], durable=False)
            continue
        chosen = rng.choice(list(living))
        if verb == "touch":
            living[chosen] = replace(living[chosen], source={"h": "x" * rng.randrange(1500)})
            store.commit([replace(commit_of(MemoryChanged(living[chosen])), action="reinforce")], durable=False)
        else:
            gone[chosen] = living.pop(chosen)
            store.commit([Commit("forget", 200.0, ACTOR, (MemoryRemoved(gone[chosen].id, purge=True),))], durable=False)
    store.purge([each.id for each in gone.values()], [])
    content = every_byte(tmp_path)
    assert [mark for mark in gone if mark.encode() in content] == []
    assert [mark for mark in living if mark.encode() not in content] == []
    assert [change.memory for change in store.load() if isinstance(change, MemoryAdded)] == list(living.values())
    store.close()


def test_a_purge_that_was_interrupted_is_finished_on_opening(tmp_path: Path) -> None:
    store = opened(tmp_path)
    gone = memory(1, "the harbour code is 4471")
    store.commit([commit_of(MemoryAdded(gone))])
    store.commit([Commit("forget", 200.0, ACTOR, (MemoryRemoved(gone.id, purge=True),))])
    assert b"4471" in every_byte(tmp_path)
    left = tmp_path / "left"
    left.mkdir()
    for name in ("keymem.db", "keymem.db-wal"):  # as a kill at this moment would leave them
        (left / name).write_bytes((tmp_path / name).read_bytes())
    opened(left).close()
    assert b"4471" not in every_byte(left)
    store.close()


def test_forgetting_reaches_the_copies_that_the_store_made_by_itself_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "keymem.db"
    gone, kept = memory(1, "the harbour code is 4471"), memory(2, "the kitchen is yellow")
    store = opened(tmp_path)
    store.commit([commit_of(MemoryAdded(gone), KeyAdded(KEY), LinkSet(Link(KEY.id, gone.id)), MemoryAdded(kept))])
    (tmp_path / "mine").mkdir()
    store.backup(str(tmp_path / "mine" / "copy.db"))
    store.backup(f"{path}.bak.20250101T000000.000000Z")
    (tmp_path / "keymem.db.damaged-1").write_bytes(b"rubble " + gone.id.encode() + b" the harbour code is 4471")
    (tmp_path / "keymem.db.damaged-2").write_bytes(b"rubble of something else")
    (tmp_path / "damaged-1.jsonl").write_text(
        f'{{"id":"{gone.id}","content":"4471"}}\n{{"id":"other"}}\n', encoding="utf-8"
    )
    forget(store, gone)
    files = sorted(file.name for file in tmp_path.iterdir() if file.is_file())
    for name in files:
        assert b"4471" not in (tmp_path / name).read_bytes(), name
    assert "keymem.db.damaged-1" not in files
    assert "keymem.db.damaged-2" in files
    assert (tmp_path / "damaged-1.jsonl").read_text(encoding="utf-8") == '{"id":"other"}\n'
    assert b"yellow" in (tmp_path / "keymem.db.bak.20250101T000000.000000Z").read_bytes()
    assert b"4471" in (tmp_path / "mine" / "copy.db").read_bytes()
    assert any("damaged-1 was deleted" in problem for problem in store.report().problems)
    store.close()
