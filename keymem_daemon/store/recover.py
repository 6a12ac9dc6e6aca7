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
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from keymem_daemon.ports import Clock
from keymem_daemon.store.files import database_files, dated, private_file, sync_directory
from keymem_daemon.store.migrate import create

SALVAGED: Final = ("memories", "keys", "links", "requests", "commits", "changes", "meta", "purges")
"""Tables whose rows are worth saving, each after those it refers to. Vectors can be computed again."""

_ROWS_AT_ONCE: Final = 200
_BLIND_PROBES: Final = 20_000
"""How far to look for rows past the last readable one when the end of a table cannot be found from behind."""

Cells = tuple[object, ...]


def recovered(path: Path, clock: Clock) -> list[str]:
    """Put a sound database in the place of the damaged ``path``, which no one has open; returns what to tell the operator."""
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
    kept = dated(path, "damaged-", clock.now())
    for source, target in zip(database_files(path), database_files(kept), strict=True):
        if source.exists() and not source.name.endswith("-shm"):
            _also_named(source, target)
    fresh.replace(_complete(path))
    sync_directory(path.parent)
    finish_exchange(path)
    saved = ", ".join(f"{counts[table]} {table}" for table in ("memories", "keys", "links"))
    return [f"the database was damaged and is kept as {kept.name}; recovered from it: {saved}"]


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
            columns = [str(row[1]) for row in new.execute(f"PRAGMA table_info({table})")]
            insert = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
            for row in _rows(old, table, columns):
                counts[table] += new.execute(insert, [_as_text(cell) for cell in row]).rowcount
        new.execute("DELETE FROM changes WHERE commit_seq NOT IN (SELECT seq FROM commits)")
        new.execute("COMMIT")
    finally:
        old.close()
    return counts


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


_PAGE_SIZE: Final = 4096


def _rows(db: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[Cells]:
    """Every row of ``table`` that can be read, each once."""
    select = f"SELECT {', '.join(columns)} FROM {table} WHERE seq"  # noqa: S608 - a table of schema.py
    last = -1
    try:
        while rows := db.execute(f"{select} > ? ORDER BY seq LIMIT {_ROWS_AT_ONCE}", (last,)).fetchall():
            yield from rows
            last = rows[-1][0]
    except sqlite3.DatabaseError:
        pass
    else:
        return
    # From the other end, as far as that goes; then one by one what lies between.
    first = last + _BLIND_PROBES
    try:
        low = 2**63 - 1
        while (row := db.execute(f"{select} < ? ORDER BY seq DESC LIMIT 1", (low,)).fetchone()) and row[0] > last:
            yield row
            low = first = row[0]
    except sqlite3.DatabaseError:
        pass
    else:
        return
    for seq in range(last + 1, first):
        try:
            row = db.execute(f"{select} = ?", (seq,)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield row


def _as_text(cell: object) -> object:
    """Bytes read from a text column as a text again; what is no UTF-8 stays as it is, for loading to set aside."""
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return cell
    return cell
