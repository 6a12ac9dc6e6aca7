"""Bringing a database of an earlier schema forward, one version at a time, after a backup.

A step never looks at the code of today: it is SQL from the schema as it was to the schema as it was next. Each happens in one
transaction together with its version number, so that a kill leaves a sound database of one version or the next.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from keymem_daemon.ports import Clock
from keymem_daemon.store.files import copy_database, dated, prune_backups
from keymem_daemon.store.schema import TABLES, VERSION

STEPS: Final[Mapping[int, Sequence[str]]] = {}
"""Statements that lead from a version to the next, by the version they start from. Version 1 is the first."""


class NewerSchema(Exception):
    """A later keymem has written this database."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database has schema version {found}, and this keymem knows up to {known}: "
            "start the newer keymem again, or restore a backup that this one has made"
        )


def version_of(db: sqlite3.Connection) -> int:
    """The schema version of an open database; 0 when it has never had one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def create(db: sqlite3.Connection) -> None:
    """Make the tables of the present schema in an empty database."""
    _in_one_transaction(db, TABLES, VERSION)


def incomplete_tables(db: sqlite3.Connection) -> list[str]:
    """Tables of the present schema that a database of that version lacks, wholly or in part."""
    model = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create(model)
        wanted = _columns(model)
    finally:
        model.close()
    there = _columns(db)
    return [table for table, columns in wanted.items() if not columns <= there.get(table, frozenset())]


def _columns(db: sqlite3.Connection) -> dict[str, frozenset[str]]:
    rows = db.execute(
        "SELECT t.name, c.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table'"
    )
    found: dict[str, frozenset[str]] = {}
    for table, column in rows:
        found[table] = found.get(table, frozenset()) | {column}
    return found


def migrated(
    db: sqlite3.Connection,
    path: Path,
    clock: Clock,
    steps: Mapping[int, Sequence[str]] = STEPS,
    target: int = VERSION,
) -> Path | None:
    """Bring the database to ``target``; returns the backup made before that, ``None`` when nothing had to be done.

    Raises `NewerSchema`, having changed nothing.
    """
    version = version_of(db)
    if version > target:
        raise NewerSchema(version, target)
    if version == target:
        return None
    backup = dated(path, "bak.", clock.now())
    copy_database(db, backup)
    for start in range(version, target):
        _in_one_transaction(db, steps[start], start + 1)
    prune_backups(path)
    return backup


def _in_one_transaction(db: sqlite3.Connection, statements: Sequence[str], version: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
