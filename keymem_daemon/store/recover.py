"""A sound database out of a damaged one: row by row what can be read, the damaged file kept under another name.

Every table has an integer of its own to be read by: in order as long as that works, then from the other end, then one by one
across what lies between. When the first page, which says what the file is, is lost, the first page of a new
database takes its place for the reading: tables are made in one order, so they begin at the same pages.

Nothing is in danger at any moment. The new database is complete, on disk and named ``….recovered`` before the damaged one
moves; whoever opens next finishes the exchange if this process does not.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from keymem_daemon.ports import Clock
from keymem_daemon.store.files import database_files, dated, private_file, sync_directory
from keymem_daemon.store.migrate import create

SALVAGED: Final = ("memories", "keys", "links", "requests", "commits", "changes", "meta", "purges")
"""Tables whose rows are worth saving, each after those it refers to. Vectors can be computed again."""

_ROWS_AT_ONCE: Final = 200
_PATIENCE: Final = 5_000
"""How many rows without an answer end the search for further ones: more than a lost page of pointers covers in a small store."""

_MAX_SEQ: Final = 2**63 - 1
_PAGE_SIZE: Final = 4096

Cells = tuple[object, ...]


def recovered(path: Path, clock: Clock, reason: str) -> list[str]:
    """Put a sound database in the place of the damaged ``path``, which no one has open; returns what to tell the operator.

    ``reason`` says what is wrong with it.
    """
    kept = dated(path, "damaged-", clock.now())
    copies = _kept(path, kept)
    try:
        saved = _rebuilt(path)
    except BaseException:
        for copy in copies:
            copy.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    finish_exchange(path)
    return [f"the database was damaged ({reason}) and is kept as {kept.name}; recovered from it: {saved}"]


def _kept(path: Path, kept: Path) -> list[Path]:
    """Give the damaged files further names before anything opens them: SQLite deletes a log that it thinks has no use."""
    copies = []
    for source, target in zip(database_files(path), database_files(kept), strict=True):
        if source.exists() and not source.name.endswith("-shm"):
            _also_named(source, target)
            copies.append(target)
    return copies


def _rebuilt(path: Path) -> str:
    """Make ``….recovered`` from what can be read of ``path``; how much that was, for a person."""
    fresh = path.with_name(f"{path.name}.recovering")
    for leftover in database_files(fresh):
        leftover.unlink(missing_ok=True)
    private_file(fresh)
    new = sqlite3.connect(fresh, isolation_level=None)
    try:
        create(new)
        counts = _salvaged(path, new)
        if not any(counts.values()):
            counts = _salvaged_without_first_page(path, new)
    finally:
        new.close()
    fresh.replace(_complete(path))
    return ", ".join(f"{counts[table]} {table}" for table in ("memories", "keys", "links"))


def finish_exchange(path: Path) -> None:
    """Put a recovered database that is complete into its place."""
    complete = _complete(path)
    if not complete.exists():
        return
    for leftover in database_files(path)[1:]:
        leftover.unlink(missing_ok=True)
    complete.replace(path)
    sync_directory(path.parent)


def _complete(path: Path) -> Path:
    return path.with_name(f"{path.name}.recovered")


def _also_named(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        target.chmod(0o600)


def _salvaged(path: Path, new: sqlite3.Connection) -> dict[str, int]:
    """Copy what can be read of ``path`` into ``new``; rows saved by table."""
    counts = dict.fromkeys(SALVAGED, 0)
    old = sqlite3.connect(path, isolation_level=None)
    old.text_factory = bytes
    new.execute("PRAGMA foreign_keys = OFF")
    new.execute("BEGIN IMMEDIATE")
    try:
        for table in SALVAGED:
            columns = _common(_columns(new, table), _columns(old, table))
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
            for row in _rows(old, table, columns):
                counts[table] += new.execute(insert, [_as_text(cell) for cell in row]).rowcount
        new.execute("DELETE FROM changes WHERE commit_seq NOT IN (SELECT seq FROM commits)")
        new.execute("COMMIT")
    finally:
        old.close()
    return counts


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    try:
        return [str(_as_text(row[1])) for row in db.execute(f"PRAGMA table_info({table})")]
    except sqlite3.DatabaseError:
        return []


def _common(new: list[str], old: list[str]) -> list[str]:
    """The columns to read: those that a file of an earlier version has, or all where it cannot say."""
    return [column for column in new if column in old] or new


def _salvaged_without_first_page(path: Path, new: sqlite3.Connection) -> dict[str, int]:
    """As `_salvaged`, from a copy whose first page is that of a new database."""
    graft = path.with_name(f"{path.name}.graft")
    blank = path.with_name(f"{path.name}.blank")
    try:
        for file in (graft, blank):
            private_file(file)
        model = sqlite3.connect(blank, isolation_level=None)
        try:
            create(model)
        finally:
            model.close()
        first = blank.read_bytes()[:_PAGE_SIZE]
        shutil.copyfile(path, graft)
        pages = graft.stat().st_size // len(first)
        with graft.open("r+b") as opened:
            opened.write(first[:28] + pages.to_bytes(4, "big") + bytes(8) + first[40:])
        return _salvaged(graft, new)
    finally:
        for file in (graft, blank):
            for leftover in database_files(file):
                leftover.unlink(missing_ok=True)


def _rows(db: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[Cells]:
    """Every row of ``table`` that can be read."""
    select = f"SELECT {', '.join(columns)} FROM {table} WHERE seq"  # noqa: S608 - a table of schema.py
    complete, low = yield from _rows_forward(db, select)
    if complete:
        return
    complete, high = yield from _rows_backward(db, select, low)
    if not complete:
        yield from _rows_between(db, select, low, high)


def _rows_forward(db: sqlite3.Connection, select: str) -> Generator[Cells, None, tuple[bool, int]]:
    """Rows in order; whether that was all, and the last. Rubble can name rows in any order, and reading never goes back."""
    low = -1
    try:
        while rows := db.execute(f"{select} > ? ORDER BY seq LIMIT {_ROWS_AT_ONCE}", (low,)).fetchall():
            for row in rows:
                if row[0] <= low:
                    return False, low
                yield row
                low = row[0]
    except sqlite3.DatabaseError:
        return False, low
    return True, low


def _rows_backward(db: sqlite3.Connection, select: str, low: int) -> Generator[Cells, None, tuple[bool, int]]:
    """Rows beyond ``low`` from the last one down; whether that was all, and how far down it went."""
    high = _MAX_SEQ
    try:
        while (row := db.execute(f"{select} < ? ORDER BY seq DESC LIMIT 1", (high,)).fetchone()) and row[0] > low:
            if row[0] >= high:
                return False, high
            yield row
            high = row[0]
    except sqlite3.DatabaseError:
        return False, high
    return True, high


def _rows_between(db: sqlite3.Connection, select: str, low: int, high: int) -> Iterator[Cells]:
    """Rows beyond ``low`` and below ``high``, each asked for by itself, until too many in a row give no answer."""
    misses = 0
    patience = _PATIENCE if low >= 0 or high < _MAX_SEQ else _PATIENCE // 10
    for seq in range(low + 1, high):
        try:
            row = db.execute(f"{select} = ?", (seq,)).fetchone()
        except sqlite3.DatabaseError:
            row = None
        if row is not None and row[0] == seq:
            misses = 0
            yield row
        else:
            misses += 1
            if misses > patience:
                return


def _as_text(cell: object) -> object:
    """Bytes read from a text column as a text again; what is no UTF-8 stays as it is, for loading to set aside."""
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return cell
    return cell
