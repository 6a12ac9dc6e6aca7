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

STEPS: Final[Mapping[int, Sequence[str]]] = {
    # 1 → 2: a link knows the words it was made with. Of older ones nobody knows: a key that one namespace has to itself is called
    # there by all its names, as before; of a key that several share, each link says the concept.
    1: (
        "ALTER TABLE links ADD COLUMN surfaces TEXT NOT NULL DEFAULT '[]'",
        """
        UPDATE links SET surfaces = coalesce(
            (
                SELECT CASE WHEN json_valid(k.aliases) AND json_type(k.aliases) = 'array'
                    THEN '[' || json_quote(k.concept) || ',' || substr(k.aliases, 2) ELSE '[]' END
                FROM keys AS k WHERE k.id = links.key_id
            ),
            '[]'
        )
        WHERE key_id IN (
            SELECT l.key_id FROM links AS l JOIN keys AS k ON k.id = l.key_id JOIN memories AS m ON m.id = l.memory_id
            WHERE k.aliases <> '[]' GROUP BY l.key_id HAVING count(DISTINCT m.namespace) = 1
        )
        """,
    ),
}
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
    _brought(db, version, target, steps)
    prune_backups(path)
    return backup


def brought_forward_in_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    """``db``, which cannot be written, at the present version: itself, or a copy in memory when it is of an earlier one."""
    version = version_of(db)
    if version not in STEPS:
        return db
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.backup(copy)
    db.close()
    _brought(copy, version, VERSION, STEPS)
    return copy


def _brought(db: sqlite3.Connection, version: int, target: int, steps: Mapping[int, Sequence[str]]) -> None:
    for start in range(version, target):
        _in_one_transaction(db, steps[start], start + 1)


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
