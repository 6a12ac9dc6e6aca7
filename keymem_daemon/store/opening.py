"""Getting a sound, current, private database to work on, whatever lies at its path.

Absent or empty: it is made, and said if there has been one. Of an earlier schema: it is brought forward. Damaged, short of a
table, or no database at all: it is set aside and what can be read of it recovered. Not writable: it is opened for reading.
Locked by another process: that is waited for. Written by a newer keymem: that is refused.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from keymem_daemon.core.errors import KeymemError, StorageFailed
from keymem_daemon.ports import Clock
from keymem_daemon.store.files import (
    automatic_backups,
    damaged_databases,
    damaged_rows,
    database_files,
    private_directory,
    private_file,
    remove_unfinished,
)
from keymem_daemon.store.migrate import brought_forward_in_memory, create, incomplete_tables, migrated, version_of
from keymem_daemon.store.recover import finish_exchange, recovered

BUSY_TIMEOUT_S: Final = 5.0

LOCKED_RETRY_S: Final = 0.5
"""Between two tries to open a database that another process has locked."""

DIRECTORY_BYTES: Final = 448
"""The longest path of a data directory. SQLite takes 512 bytes for a file, and the longest name of a backup needs the rest."""

CHECKED_UP_TO_BYTES: Final = 256 << 20
"""A larger file is not checked as a whole when it is opened (0.2 s for 72 MB here); damage then shows when its rows are read."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_REFUSED: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})


T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A database ready for use. ``integrity`` is ``ok``, ``recovered``, ``not checked`` or ``read-only``."""

    db: sqlite3.Connection
    read_only: bool
    integrity: str
    problems: tuple[str, ...] = ()


class DamagedDatabase(Exception):
    """The file is a database no longer, or not a whole one."""


class CannotOpen(StorageFailed):
    """There is no database to work on, and why. Nothing was written."""

    def __init__(self, reason: str, hint: str) -> None:
        KeymemError.__init__(self, reason, hint)


def opened(path: Path, clock: Clock, on_wait: Callable[[str], None]) -> Opened:
    """Open or make the database at ``path``, once no other process has it locked; ``on_wait`` is told when that takes time.

    Raises `CannotOpen`, `sqlite3.Error`, `OSError` or `NewerSchema` when there can be none.
    """
    length = len(os.fsencode(path.parent.absolute()))
    if length > DIRECTORY_BYTES:
        raise CannotOpen(
            f"the path of the data directory is {length} bytes long, and at most {DIRECTORY_BYTES} leave room for SQLite's file names",
            "Choose a data directory with a shorter path.",
        )
    absent = not path.exists()
    lost = _lost(path)
    try:
        found = once_free(path, partial(_opened_now, path, clock), on_wait)
    except BaseException:
        if absent and path.is_file() and not path.stat().st_size:
            path.unlink()  # or the next start would take it for one that lost its content
        raise
    return found if lost is None else replace(found, problems=(lost, *found.problems))


def once_free(path: Path, attempt: Callable[[], T], on_wait: Callable[[str], None]) -> T:
    """What ``attempt`` returns, as soon as no other process has the database locked. ``on_wait`` is told once what for."""
    said = False
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in _LOCKED:
                raise
        if not said:
            what = f"{path} is locked by another process; waiting until it is free"
            logger.warning(what)
            on_wait(what)
            said = True
        time.sleep(LOCKED_RETRY_S)


def _lost(path: Path) -> str | None:
    """What to tell when there is no content where there has been some."""
    size = path.stat().st_size if path.is_file() else None
    if size or path.is_dir() or path.with_name(f"{path.name}.recovered").exists():
        return None
    beside = (*database_files(path)[1:2], *automatic_backups(path), *damaged_databases(path), *damaged_rows(path))
    traces = [other.name for other in beside if other.exists() and other.stat().st_size]
    if size is None and not traces:
        return None
    found = f"{path.name} was {'missing' if size is None else 'empty'}: a new one was begun"
    return (
        f"{found}. Beside it lay {', '.join(traces)}"
        if traces
        else f"{found}. Restore a backup if memories are missing"
    )


def _opened_now(path: Path, clock: Clock) -> Opened:
    try:
        private_directory(path.parent)
        finish_exchange(path)
        remove_unfinished(path)
        private_file(path)
    except OSError as error:
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM} and path.exists():
            return _opened_for_reading(path)
        raise
    try:
        return _opened_for_writing(path, clock)
    except DamagedDatabase as damage:
        return reopened_after_damage(path, clock, str(damage))
    except sqlite3.OperationalError as error:
        if primary_code(error) in _REFUSED and not os.access(path, os.W_OK):
            return _opened_for_reading(path)
        raise


def reopened_after_damage(path: Path, clock: Clock, reason: str) -> Opened:
    """Recover the database at ``path``, damaged in that way, which no one has open, and open what came of it."""
    problems = recovered(path, clock, reason)
    fresh = _opened_for_writing(path, clock)
    return Opened(fresh.db, read_only=False, integrity="recovered", problems=(*problems, *fresh.problems))


def connected(path: Path) -> sqlite3.Connection:
    """A connection with the settings that the store relies on."""
    db = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # checkpoint.py makes them
    except BaseException:
        db.close()
        raise
    return db


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's own number for what went wrong, without its refinement; ``None`` when Python raised it."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error says that the file is not what it was."""
    return primary_code(error) in _DAMAGED


def _opened_for_writing(path: Path, clock: Clock) -> Opened:
    log = database_files(path)[1]
    if not path.stat().st_size and log.exists() and log.stat().st_size:
        # SQLite would delete the log, and with it what a person might still read.
        raise DamagedDatabase("empty beside a write-ahead log")
    try:
        db = connected(path)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedDatabase(str(error)) from error
        raise
    try:
        integrity = _checked(db, path)
        problems = _made_current(db, path, clock)
        _require_unlocked(db)
    except sqlite3.DatabaseError as error:
        db.close()
        if is_damage(error):
            raise DamagedDatabase(str(error)) from error
        raise
    except BaseException:
        db.close()
        raise
    return Opened(db, read_only=False, integrity=integrity, problems=problems)


def _require_unlocked(db: sqlite3.Connection) -> None:
    """Raise now what would otherwise be raised by the first write."""
    db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")


def _checked(db: sqlite3.Connection, path: Path) -> str:
    if path.stat().st_size > CHECKED_UP_TO_BYTES:
        return "not checked"
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise DamagedDatabase(verdict)
    return "ok"


def _made_current(db: sqlite3.Connection, path: Path, clock: Clock) -> tuple[str, ...]:
    if version_of(db) == 0:
        if db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None:
            raise DamagedDatabase("the database is not one of keymem's")
        create(db)
        return ()
    backup = migrated(db, path, clock)
    if missing := incomplete_tables(db):
        raise DamagedDatabase(f"without a whole table {', '.join(missing)}")
    return (
        () if backup is None else (f"the database was brought to the present schema; as it was before: {backup.name}",)
    )


def _opened_for_reading(path: Path) -> Opened:
    """As it is, without leaving a trace. What only the write-ahead log holds cannot be seen where no file can be made."""
    problems = [f"{path.name} cannot be written: memories can be read, not changed"]
    if any(file.exists() and file.stat().st_size for file in database_files(path)[1:2]):
        problems.append("the latest changes are in a write-ahead log that cannot be read without writing")
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    return Opened(brought_forward_in_memory(db), read_only=True, integrity="read-only", problems=tuple(problems))
