"""Reading the graph back from the tables, and setting aside what is no record.

A row that is unsound, that repeats a surface or whose ends are missing is written to ``damaged-<utc>.jsonl`` beside the database, then
deleted from its table, and reported; the rest is served. Texts are read as bytes, so that one row which is no UTF-8 does not
end the reading of the others.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from keymem_daemon.core.changes import Change, KeyAdded, LinkSet, MemoryAdded
from keymem_daemon.core.model import Key, Link, Memory
from keymem_daemon.core.text import fold
from keymem_daemon.ports import Clock
from keymem_daemon.store.files import FILE_MODE, stamp
from keymem_daemon.store.records import (
    KEY_COLUMNS,
    LINK_COLUMNS,
    MEMORY_COLUMNS,
    Cell,
    Row,
    UnsoundRow,
    key_of,
    link_of,
    memory_of,
    readable,
)

ROWS_AT_ONCE: Final = 1000

R = TypeVar("R", Memory, Key, Link)


class Loading:
    """One reading of a database. ``problems`` is complete when `changes` is exhausted; it can be resumed on another connection."""

    def __init__(self, db: sqlite3.Connection, path: Path, clock: Clock, *, read_only: bool) -> None:
        self.db = db
        self.problems: list[str] = []
        self._path = path
        self._clock = clock
        self._read_only = read_only
        self._seq = {"memories": -1, "keys": -1, "links": -1}
        # Each id by itself: links hold the objects that their ends have, not copies.
        self._memory_ids: dict[str, str] = {}
        self._key_ids: dict[str, str] = {}
        self._surfaces: dict[str, str] = {}
        self._aside: list[tuple[str, int, str, dict[str, Cell]]] = []

    def changes(self) -> Iterator[Change]:
        """Memories, keys, links, each in the order of their first writing."""
        for memory in self._records("memories", MEMORY_COLUMNS, memory_of):
            self._memory_ids[memory.id] = memory.id
            yield MemoryAdded(memory)
        for key in self._records("keys", KEY_COLUMNS, self._distinct_key):
            self._key_ids[key.id] = key.id
            yield KeyAdded(key)
        for link in self._records("links", LINK_COLUMNS, self._tied_link):
            yield LinkSet(link)
        self._set_aside()

    def _records(self, table: str, columns: Sequence[str], decode: Callable[[Row], R]) -> Iterator[R]:
        query = f"SELECT seq, {', '.join(columns)} FROM {table} WHERE seq > ? ORDER BY seq LIMIT {ROWS_AT_ONCE}"  # noqa: S608
        while rows := self._bytes(query, self._seq[table]):
            for row in rows:
                seq = int(row[0] or 0)
                self._seq[table] = seq
                try:
                    record = decode(row[1:])
                except UnsoundRow as error:
                    self._aside.append((table, seq, str(error), dict(zip(columns, row[1:], strict=True))))
                    continue
                yield record

    def _bytes(self, query: str, after: int) -> list[tuple[Cell, ...]]:
        cursor = self.db.cursor()
        previous = self.db.text_factory
        self.db.text_factory = bytes
        try:
            return cursor.execute(query, (after,)).fetchall()
        finally:
            self.db.text_factory = previous

    def _distinct_key(self, row: Row) -> Key:
        """The key, less aliases that another key has. Raises `UnsoundRow` when its concept is another key's."""
        key = key_of(row)
        if self._surfaces.setdefault(fold(key.concept), key.id) != key.id:
            raise UnsoundRow(f"concept is key {self._surfaces[fold(key.concept)]} already")
        aliases = tuple(alias for alias in key.aliases if self._claim(alias, key))
        learned = tuple(alias for alias in key.learned if self._claim(alias.alias, key))
        if len(aliases) != len(key.aliases) or len(learned) != len(key.learned):
            self.problems.append(f"key {key.id}: aliases that another key has were left out")
            return replace(key, aliases=aliases, learned=learned)
        return key

    def _claim(self, surface: str, key: Key) -> bool:
        return self._surfaces.setdefault(fold(surface), key.id) == key.id

    def _tied_link(self, row: Row) -> Link:
        """The link. Raises `UnsoundRow` when an end is missing."""
        link = link_of(row)
        key_id = self._key_ids.get(link.key_id)
        memory_id = self._memory_ids.get(link.memory_id)
        if key_id is None:
            raise UnsoundRow("key_id names no key")
        if memory_id is None:
            raise UnsoundRow("memory_id names no memory")
        return replace(link, key_id=key_id, memory_id=memory_id)

    def _set_aside(self) -> None:
        if not self._aside:
            return
        for table in dict.fromkeys(entry[0] for entry in self._aside):
            count = sum(entry[0] == table for entry in self._aside)
            self.problems.append(f"{count} damaged row(s) of {table} left out")
        if self._read_only:
            return
        try:
            path = self._write_aside()
            self._delete_aside()
        except (OSError, sqlite3.Error) as error:
            self.problems.append(f"damaged rows could not be set aside: {error}")
        else:
            self.problems.append(f"damaged rows are kept in {path.name}")

    def _write_aside(self) -> Path:
        path = self._path.with_name(f"damaged-{stamp(self._clock.now())}.jsonl")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), FILE_MODE)
            for table, seq, reason, cells in self._aside:
                line = {"table": table, "seq": seq, "reason": reason, "row": readable(cells)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return path

    def _delete_aside(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            for table, seq, _reason, _cells in reversed(self._aside):
                self.db.execute(f"DELETE FROM {table} WHERE seq = ?", (seq,))  # noqa: S608 - a table of schema.py
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
