"""Moving the write-ahead log into the database, and keeping every byte that belongs to no row out of the file as that happens.

A page comes into the file through the log only, so the rule is: *a page of the file whose unused parts are not zero is in the
log, or is known here as unclear*. A checkpoint reads from the log which pages it is about to move, moves them, and clears those
(slack.py) while it holds the write lock over an empty log, when nobody can write the file. Hence what a checkpoint costs depends
on what has been written since the last one, never on the size of the file.

Whose work is not seen here breaks the rule, so then all pages count as unclear: of a file that was just opened; when another
connection has committed; when the log was begun anew by somebody else. SQLite is told to make no checkpoint by itself.

A page that the connection has in memory may still have what was cleared in the file. It comes back only with the page's next
change, and then through the log. Who must be sure that it does not, changes the connection (`follow`).
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from pathlib import Path
from typing import Final

from keymem_daemon.store.files import database_files
from keymem_daemon.store.slack import clear_pages

IDLE_PAGES: Final = 64
"""A log of more pages is moved when there is nothing else to do: who forgets then waits for little more than its own pages."""

LOG_PAGES: Final = 1_000
"""A log of more pages is moved as soon as nobody waits for an answer; SQLite would do it at as many."""

MOST_LOG_PAGES: Final = 8_000
"""A log of more pages is moved whoever waits."""

_LOG_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_SALTS: Final = slice(16, 24)


class Checkpoints:
    """Those of one database that ``db`` has open for writing. The file must not be replaced before `close`."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._log = database_files(path)[1]
        # Kept until the connection is closed: closing any descriptor of a file ends all locks that the process has on it.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._unclear: set[int] | None = None
        self._unsynced = False
        self._version = _data_version(db)
        self._salts = b""
        self._pages = 0
        self._held_at = 0

    def longer_than(self, pages: int) -> bool:
        """Whether the log is, not counting what it had when somebody else kept it from being moved."""
        return self._pages > self._held_at + pages

    def committed(self) -> None:
        """Take note of a transaction that has ended: how long the log is now, and whether it is still the same one."""
        header, size = self._log_header()
        self._see(header)
        self._pages = max(0, size - _LOG_HEADER) // (_FRAME_HEADER + _page_size(header)) if header else 0

    def move(self) -> bool:
        """Empty the log and clear what it had, unless another process uses it just now. Raises `sqlite3.Error`, `NotScrubbable`, `OSError`."""
        (patience,) = self._db.execute("PRAGMA busy_timeout").fetchone()
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            return self._move()
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {patience}")

    def clear(self) -> None:
        """Empty the log, clear what it had and have that on disk. Raises as `move` does, and when a reader holds the log for long."""
        if not self._move():
            raise sqlite3.OperationalError("the write-ahead log is being used by another process")
        if self._unsynced:
            os.fsync(self._descriptor)
            self._unsynced = False

    def follow(self, db: sqlite3.Connection) -> None:
        """From now on ``db`` is the connection; the one before, still open and idle, is closed."""
        version = _data_version(db)
        if _data_version(self._db) != self._version:
            self._unclear = None
        stale, self._db, self._version = self._db, db, version
        stale.close()

    def close(self) -> None:
        """Let go of the file, whose connection is closed."""
        os.close(self._descriptor)

    def _move(self) -> bool:
        self._gather()
        try:
            (busy, _frames, _moved) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                self._held_at = self._pages
                return False
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise
            self._held_at = self._pages
            return False
        try:
            version = _data_version(self._db)
            if version != self._version:
                self._unclear, self._version = None, version
            if self._log_header()[1]:
                return False  # another process has written in between: its pages are in the log, to be moved next time
            if clear_pages(self._descriptor, self._unclear):
                self._unsynced = True
        finally:
            self._db.execute("ROLLBACK")
        self._unclear = set()
        self._salts, self._pages, self._held_at = b"", 0, 0
        return True

    def _gather(self) -> None:
        """Note the pages that are in the log."""
        header, size = self._log_header()
        self._see(header)
        if not header or self._unclear is None:
            return
        step = _FRAME_HEADER + _page_size(header)
        with self._log.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as log:
            self._unclear.update(
                int.from_bytes(log[start : start + 4], "big") for start in range(_LOG_HEADER, size - step + 1, step)
            )

    def _see(self, header: bytes) -> None:
        """Find out whether somebody else has begun the log anew since it was seen last, over pages that nobody has noted."""
        salts = header[_SALTS]
        if self._salts and salts != self._salts:
            self._unclear = None
        self._salts = salts

    def _log_header(self) -> tuple[bytes, int]:
        """The first bytes of the log and its size, ``(b"", 0)`` when nothing is in it."""
        try:
            with self._log.open("rb", buffering=0) as file:
                header = file.read(_LOG_HEADER)
                size = os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return b"", 0
        return (header, size) if len(header) == _LOG_HEADER else (b"", 0)


def _data_version(db: sqlite3.Connection) -> int:
    """A number that changes when another connection has committed."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])


def _page_size(header: bytes) -> int:
    return int.from_bytes(header[8:12], "big")
