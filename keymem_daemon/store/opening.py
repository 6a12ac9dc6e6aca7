"""Getting a sound, current, private database to work on, whatever lies at its path.

Absent or empty: it is made. Of an earlier schema: it is brought forward. Damaged, or no database at all: it is set aside and what
can be read of it recovered. Not writable: it is opened for reading. Written by a newer keymem: that is refused.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keymem_daemon.ports import Clock
from keymem_daemon.store.files import database_files, private_directory, private_file
from keymem_daemon.store.migrate import create, migrated, version_of
from keymem_daemon.store.recover import finish_exchange, recovered

BUSY_TIMEOUT_S: Final = 5.0

CHECKED_UP_TO_BYTES: Final = 256 << 20
"""A larger file is not checked as a whole when it is opened (0.2 s for 72 MB here); damage then shows when its rows are read."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_REFUSED: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})


@dataclass(frozen=True, slots=True)
class Opened:
    """A database ready for use. ``integrity`` is ``ok``, ``recovered``, ``not checked`` or ``read-only``."""

    db: sqlite3.Connection
    read_only: bool
    integrity: str
    problems: tuple[str, ...] = ()


class DamagedDatabase(Exception):
    """The file is a database no longer."""


def opened(path: Path, clock: Clock) -> Opened:
    """Open or make the database at ``path``. Raises `sqlite3.Error`, `OSError` or `NewerSchema` when there can be none."""
    try:
        private_directory(path.parent)
        finish_exchange(path)
        private_file(path)
    except OSError as error:
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM} and path.exists():
            return _opened_for_reading(path)
        raise
    try:
        return _opened_for_writing(path, clock)
    except DamagedDatabase:
        return reopened_after_damage(path, clock)
    except sqlite3.OperationalError as error:
        if primary_code(error) in _REFUSED and not os.access(path, os.W_OK):
            return _opened_for_reading(path)
        raise


def reopened_after_damage(path: Path, clock: Clock) -> Opened:
    """Recover the damaged database at ``path``, which no one has open, and open what came of it."""
    problems = recovered(path, clock)
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
    try:
        db = connected(path)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedDatabase(str(error)) from error
        raise
    try:
        integrity = _checked(db, path)
        problems = _made_current(db, path, clock)
    except sqlite3.DatabaseError as error:
        db.close()
        if is_damage(error):
            raise DamagedDatabase(str(error)) from error
        raise
    except BaseException:
        db.close()
        raise
    return Opened(db, read_only=False, integrity=integrity, problems=problems)


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
    return Opened(db, read_only=True, integrity="read-only", problems=tuple(problems))
