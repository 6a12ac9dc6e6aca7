"""The system of record: one SQLite file, in which a commit happens entirely or not at all.

What survives what: a durable commit survives a power cut once `commit` has returned (WAL, ``synchronous=FULL``); a soft one
survives a kill of the process (``synchronous=NORMAL``). Opening, checking and mending the file is opening.py's; reading it
back is loading.py's; what forgetting leaves is purge.py's, and where bytes of it can be is checkpoint.py's.

One connection, used by one thread at a time. Every error of SQLite leaves here as `StorageFailed` or `ReadOnly`, with the
transaction rolled back and the connection usable.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, assert_never

from keymem_daemon.core.changes import (
    Change,
    Commit,
    KeyAdded,
    KeyChanged,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.errors import ReadOnly, StorageFailed
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.ports import ChangeRecord, Clock, StoreReport
from keymem_daemon.store import purge
from keymem_daemon.store.answers import Answers
from keymem_daemon.store.checkpoint import IDLE_PAGES, LOG_PAGES, MOST_LOG_PAGES, Checkpoints
from keymem_daemon.store.files import copy_database, database_files
from keymem_daemon.store.loading import Loading
from keymem_daemon.store.migrate import NewerSchema
from keymem_daemon.store.opening import (
    CannotOpen,
    Opened,
    connected,
    is_damage,
    once_free,
    opened,
    primary_code,
    reopened_after_damage,
)
from keymem_daemon.store.records import (
    KEY_COLUMNS,
    LINK_COLUMNS,
    MEMORY_COLUMNS,
    Cell,
    Record,
    Row,
    UnsoundRow,
    encoded,
    image,
    key_of,
    key_row,
    link_of,
    link_row,
    memory_of,
    memory_row,
    text_of,
    trace_of,
    vector_key,
)
from keymem_daemon.store.schema import VERSION

VARIABLES_AT_ONCE: Final = 500
"""How many parameters one statement takes at most; SQLite promises 999."""

_MAX_SEQ: Final = 2**63 - 1
_LAST_BACKUP: Final = "last_backup_at"


R = TypeVar("R", Memory, Key, Link)
_Entry = tuple[str, str, Record | None, Record | None]
"""What history keeps of a change: entity, its id, before, after."""


def _select(table: str, columns: Sequence[str], where: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {where}"  # noqa: S608 - names from this module only


def _upsert(table: str, columns: Sequence[str], identity: Sequence[str]) -> str:
    """Insert, or change the row in its place: the order in which rows were first written is the order they are read in."""
    marks = ", ".join("?" * len(columns))
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in identity)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608 - names from this module only
        f"ON CONFLICT ({', '.join(identity)}) DO UPDATE SET {updates}"
    )


_MEMORY_BY_ID: Final = _select("memories", MEMORY_COLUMNS, "id = ?")
_KEY_BY_ID: Final = _select("keys", KEY_COLUMNS, "id = ?")
_LINK_BY_ENDS: Final = _select("links", LINK_COLUMNS, "key_id = ? AND memory_id = ?")
_PUT_MEMORY: Final = _upsert("memories", MEMORY_COLUMNS, ("id",))
_PUT_KEY: Final = _upsert("keys", KEY_COLUMNS, ("id",))
_PUT_LINK: Final = _upsert("links", LINK_COLUMNS, ("key_id", "memory_id"))
_ADD_COMMIT: Final = (
    "INSERT INTO commits (at, action, tool, session, host_agent, host_session, host_turn, host_prompt, note) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD_CHANGE: Final = (
    "INSERT INTO changes (commit_seq, entity, entity_id, before, after, trace) VALUES (?, ?, ?, ?, ?, ?)"
)
_HISTORY: Final = (
    "SELECT changes.seq, at, action, tool, session, host_agent, host_session, host_turn, host_prompt, "
    "entity, entity_id, before, after, note FROM changes JOIN commits ON commits.seq = commit_seq"
)


class SqliteStore:
    """Implements `keymem_daemon.ports.Store` on ``path`` (``DATA/keymem.db``), whose directory is the data directory.

    Opening makes the directory and the file when they are absent, private to the user; brings an older schema forward after
    a backup; and sets a damaged file aside, recovering what can be read. Waits for as long as another process has the file
    locked, and tells ``on_wait`` so. Raises `CannotOpen` when there can be no database there, or when a newer keymem wrote it.
    """

    def __init__(self, path: Path, clock: Clock, on_wait: Callable[[str], None] = lambda _what: None) -> None:
        self._path = path
        self._clock = clock
        self._on_wait = on_wait
        self._problems: list[str] = []
        self._unfinished: str | None = None
        self._checkpoints: Checkpoints | None = None
        with _opening_errors(path):
            self._use(opened(path, clock, on_wait))
            self._last_write_at = self._last_commit_at()
        if not self._file.read_only:
            with suppress(StorageFailed):  # told by `report`, and tried again by the next `purge`
                self._finish_purge()

    # The graph.

    def load(self) -> Iterator[Change]:
        loading = Loading(self._db, self._path, self._clock, read_only=self._file.read_only)
        with _storage_errors():
            try:
                yield from loading.changes()
            except sqlite3.DatabaseError as error:
                if not is_damage(error) or self._file.read_only:
                    raise
                self._recover()
                loading.db = self._db
                yield from loading.changes()
        self._problems.extend(loading.problems)

    def _recover(self) -> None:
        """Work on what can be read of a file that turned out to be damaged. Rows keep their numbers, so reading can go on."""
        self._let_go()
        self._use(reopened_after_damage(self._path, self._clock, "unreadable rows"))

    def _use(self, file: Opened) -> None:
        self._file = file
        self._db = file.db
        self._synchronous = ""
        self._problems.extend(file.problems)
        if file.read_only:
            return
        try:
            self._answers = Answers(purge.recorded_responses(self._db))
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._recover()
            return
        self._checkpoints = Checkpoints(self._db, self._path)
        with suppress(sqlite3.Error, OSError, ValueError):  # the next purge does it, or says why it cannot
            self._checkpoints.move()

    def _let_go(self) -> None:
        self._db.close()
        if self._checkpoints is not None:
            self._checkpoints.close()
            self._checkpoints = None

    def commit(self, commits: Sequence[Commit], *, durable: bool = True) -> None:
        if not commits:
            return
        with self._transaction(durable=durable):
            for commit in commits:
                self._carry_out(commit)
        self._last_write_at = commits[-1].at

    def _carry_out(self, commit: Commit) -> None:
        removed = purge.removed(self._db, commit)
        history: list[_Entry] = []
        for change in commit.changes:
            entry = self._apply(change, keep_before=commit.action != "reinforce")
            if entry is not None:
                history.append(entry)
        if history:
            self._record(commit, history)
        if removed is not None:
            purge.mark_pending(self._db, purge.scrub(self._db, removed, self._answers))
        if commit.request_id is not None:
            response = commit.response or "null"
            seq = self._db.execute(
                "INSERT INTO requests (id, at, response) VALUES (?, ?, ?)", (commit.request_id, commit.at, response)
            ).lastrowid
            self._answers.add(seq or 0, response)

    def _apply(self, change: Change, *, keep_before: bool) -> _Entry | None:
        """Carry out one change; the history entry of what it did, if it did something and history is kept."""
        db = self._db
        before: Record | None = None
        after: Record | None = None
        match change:
            case MemoryAdded(memory) | MemoryChanged(memory):
                entity, entity_id, after = "memory", memory.id, memory
                before = self._stored(_MEMORY_BY_ID, (memory.id,), memory_of) if keep_before else None
                if before != memory:
                    db.execute(_PUT_MEMORY, memory_row(memory))
            case MemoryRemoved(memory_id):
                entity, entity_id = "memory", memory_id
                before = self._stored(_MEMORY_BY_ID, (memory_id,), memory_of) if keep_before else None
                db.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
            case KeyAdded(key) | KeyChanged(key):
                entity, entity_id, after = "key", key.id, key
                before = self._stored(_KEY_BY_ID, (key.id,), key_of) if keep_before else None
                if before != key:
                    db.execute(_PUT_KEY, key_row(key))
            case KeyRemoved(key_id):
                entity, entity_id = "key", key_id
                before = self._stored(_KEY_BY_ID, (key_id,), key_of) if keep_before else None
                db.execute("DELETE FROM keys WHERE id = ?", (key_id,))
            case LinkSet(link):
                entity, entity_id, after = "link", f"{link.key_id}:{link.memory_id}", link
                before = self._stored(_LINK_BY_ENDS, (link.key_id, link.memory_id), link_of) if keep_before else None
                if before != link:
                    db.execute(_PUT_LINK, link_row(link))
            case LinkRemoved(key_id, memory_id):
                entity, entity_id = "link", f"{key_id}:{memory_id}"
                before = self._stored(_LINK_BY_ENDS, (key_id, memory_id), link_of) if keep_before else None
                db.execute("DELETE FROM links WHERE key_id = ? AND memory_id = ?", (key_id, memory_id))
            case _:
                assert_never(change)
        return (entity, entity_id, before, after) if keep_before and before != after else None

    def _stored(self, select: str, identity: tuple[str, ...], decode: Callable[[Row], R]) -> R | None:
        """The record as it stands in the table; one that is damaged counts as absent."""
        row = self._db.execute(select, identity).fetchone()
        try:
            return None if row is None else decode(row)
        except UnsoundRow:
            return None

    def _record(self, commit: Commit, history: Sequence[_Entry]) -> None:
        """Write the commit and what it did into history."""
        actor = commit.actor
        commit_seq = self._db.execute(
            _ADD_COMMIT,
            (
                commit.at,
                commit.action,
                actor.tool,
                actor.session,
                actor.host_agent,
                actor.host_session,
                actor.host_turn,
                actor.host_prompt,
                commit.note,
            ),
        ).lastrowid
        self._db.executemany(_ADD_CHANGE, [(commit_seq, *_change_cells(*entry)) for entry in history])

    # What has been asked and done.

    def response_to(self, request_id: str) -> str | None:
        with _storage_errors():
            row = self._db.execute("SELECT response FROM requests WHERE id = ?", (request_id,)).fetchone()
        return None if row is None else str(row[0])

    def forget_requests_before(self, at: float) -> int:
        with self._transaction(durable=False):
            forgotten = self._db.execute("DELETE FROM requests WHERE at < ?", (at,)).rowcount
            kept = self._db.execute("SELECT ifnull(min(seq), 1), ifnull(max(seq), 0) FROM requests").fetchone()
        self._answers.keep(*kept)
        return forgotten

    def history(self, entity_id: str | None, limit: int, before_seq: int | None = None) -> list[ChangeRecord]:
        conditions = ["changes.seq < ?"] if entity_id is None else ["changes.seq < ?", "entity_id = ?"]
        parameters: list[Cell] = [before_seq if before_seq is not None else _MAX_SEQ]
        if entity_id is not None:
            parameters.append(entity_id)
        query = f"{_HISTORY} WHERE {' AND '.join(conditions)} ORDER BY changes.seq DESC LIMIT ?"
        with _storage_errors():
            return [_change_record(row) for row in self._db.execute(query, (*parameters, max(limit, 0)))]

    def remembers(self, memory_id: str) -> bool:
        with _storage_errors():
            return purge.remembers(self._db, memory_id)

    def purge(self, memory_ids: Sequence[str], surfaces: Sequence[str]) -> None:
        if memory_ids or surfaces:
            with self._transaction(durable=True):
                # A response that was redacted is left as it is.
                done = set(memory_ids) <= set(purge.pending(self._db))
                past = purge.left_in_history(self._db, memory_ids)
                removed = purge.Removed((*memory_ids, *past.ids), (*surfaces, *past.texts))
                purge.mark_pending(self._db, purge.scrub(self._db, removed, None if done else self._answers))
        self._finish_purge()

    def _finish_purge(self) -> None:
        """Have the bytes of what was scrubbed leave every file, if there are any."""
        with _storage_errors():
            ids = purge.pending(self._db)
        if not ids:
            return
        try:
            self._clear_files(ids)
        except StorageFailed as error:
            self._unfinished = error.message
            raise
        self._unfinished = None

    def _clear_files(self, ids: Sequence[str]) -> None:
        if self._checkpoints is None:
            raise ReadOnly(f"{self._path} is open for reading only")
        with _storage_errors():
            self._checkpoints.clear()
            # Pages that the connection has in memory may still have those bytes: one that has none takes its place.
            fresh = once_free(self._path, partial(connected, self._path), self._on_wait)
            self._checkpoints.follow(fresh)
            self._db, self._synchronous = fresh, ""
            self._problems.extend(purge.purge_copies(self._path, ids))
        with self._transaction(durable=False):  # a note that comes back has the same done again, to nobody's harm
            purge.clear_pending(self._db)

    # Vectors.

    def load_vectors(self, fingerprint: str, texts: Sequence[str]) -> dict[str, bytes]:
        space = self._space(fingerprint)
        if space is None:
            return {}
        by_hash = {vector_key(text): text for text in texts}
        hashes = list(by_hash)
        found: dict[str, bytes] = {}
        with _storage_errors():
            for start in range(0, len(hashes), VARIABLES_AT_ONCE):
                some = hashes[start : start + VARIABLES_AT_ONCE]
                rows = self._db.execute(
                    "SELECT text_hash, vector FROM vectors "  # noqa: S608 - question marks only
                    f"WHERE space = ? AND text_hash IN ({', '.join('?' * len(some))})",
                    (space, *some),
                )
                found.update((by_hash[text_hash], vector) for text_hash, vector in rows)
        return found

    def save_vectors(self, fingerprint: str, items: Mapping[str, bytes]) -> None:
        if not items:
            return
        with self._transaction(durable=False):
            self._db.execute("INSERT OR IGNORE INTO spaces (fingerprint) VALUES (?)", (fingerprint,))
            space = self._space(fingerprint)
            self._db.executemany(
                "INSERT INTO vectors (space, text_hash, vector) VALUES (?, ?, ?) "
                "ON CONFLICT (space, text_hash) DO UPDATE SET vector = excluded.vector",
                [(space, vector_key(text), vector) for text, vector in items.items()],
            )

    def _space(self, fingerprint: str) -> int | None:
        with _storage_errors():
            row = self._db.execute("SELECT seq FROM spaces WHERE fingerprint = ?", (fingerprint,)).fetchone()
        return None if row is None else int(row[0])

    # The store itself.

    def meta(self, name: str) -> str | None:
        with _storage_errors():
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        if self.meta(name) == value:
            return
        with self._transaction(durable=True):
            self._put_meta(name, value)

    def _put_meta(self, name: str, value: str) -> None:
        self._db.execute(_upsert("meta", ("name", "value"), ("name",)), (name, value))

    def report(self) -> StoreReport:
        backup_at = self.meta(_LAST_BACKUP)
        return StoreReport(
            path=str(self._path),
            size_bytes=sum(path.stat().st_size for path in database_files(self._path) if path.exists()),
            schema_version=VERSION,
            last_write_at=self._last_write_at,
            last_backup_at=None if backup_at is None else float(backup_at),
            integrity=self._file.integrity,
            problems=(*self._problems, *self._pending_problems()),
        )

    def _pending_problems(self) -> tuple[str, ...]:
        if self._unfinished is None:
            return ()
        return (f"texts that were forgotten may still be in the files: {self._unfinished}; the next sweep tries again",)

    def _last_commit_at(self) -> float | None:
        row = self._db.execute("SELECT at FROM commits ORDER BY seq DESC LIMIT 1").fetchone()
        return None if row is None else float(row[0])

    def backup(self, path: str) -> None:
        with _storage_errors():
            copy_database(self._db, Path(path))
        if not self._file.read_only:
            self.set_meta(_LAST_BACKUP, repr(self._clock.now()))

    def tidy(self, *, idle: bool) -> None:
        if self._checkpoints is not None and self._checkpoints.longer_than(IDLE_PAGES if idle else LOG_PAGES):
            with _storage_errors():
                self._checkpoints.move()

    def close(self) -> None:
        with _storage_errors():
            self._let_go()

    # Transactions.

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[None]:
        """All that is executed inside happens on leaving, or nothing of it."""
        if self._file.read_only:
            raise ReadOnly(f"{self._path} is open for reading only")
        with _storage_errors():
            self._set_synchronous("FULL" if durable else "NORMAL")
            recorded = self._answers.last
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._answers.keep(1, recorded)
                raise
        self._committed()

    def _committed(self) -> None:
        """What is committed stands, whatever comes of the log: that is told by the next write or `tidy`, if it lasts."""
        if self._checkpoints is None:
            return
        with suppress(sqlite3.Error, OSError, ValueError):
            self._checkpoints.committed()
            if self._checkpoints.longer_than(MOST_LOG_PAGES):
                self._checkpoints.move()

    def _set_synchronous(self, level: str) -> None:
        if level != self._synchronous:
            self._db.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Turn what SQLite, the file system and the encoding of values raise into the errors of the port."""
    try:
        yield
    except sqlite3.Error as error:
        if primary_code(error) == sqlite3.SQLITE_READONLY:
            raise ReadOnly(str(error)) from error
        raise StorageFailed(str(error)) from error
    except (NewerSchema, OSError, ValueError, OverflowError) as error:
        raise StorageFailed(str(error)) from error


@contextmanager
def _opening_errors(path: Path) -> Iterator[None]:
    """Say of what keeps a database from being opened what it is: nothing was written, and nothing refused."""
    try:
        yield
    except NewerSchema as error:
        raise CannotOpen(
            str(error), "Install the newer keymem again, or restore a backup that this one has made."
        ) from error
    except (sqlite3.Error, OSError, ValueError) as error:
        what = f"{path} is a directory" if path.is_dir() else f"{path}: {getattr(error, 'strerror', None) or error}"
        raise CannotOpen(
            what, "Nothing was changed. Check what is there, free space and permissions, then start again."
        ) from error


def _change_cells(entity: str, entity_id: str, before: Record | None, after: Record | None) -> tuple[Cell, ...]:
    text = next((text_of(record) for record in (after, before) if record is not None), None)
    return (
        entity,
        entity_id,
        None if before is None else encoded(image(before)),
        None if after is None else encoded(image(after)),
        None if text is None else trace_of(text),
    )


def _change_record(row: tuple[Any, ...]) -> ChangeRecord:
    (
        seq,
        at,
        action,
        tool,
        session,
        host_agent,
        host_session,
        host_turn,
        host_prompt,
        entity,
        entity_id,
        before,
        after,
        note,
    ) = row
    return ChangeRecord(
        seq=seq,
        at=at,
        action=action,
        actor=Actor(tool, session, host_agent, host_session, host_turn, host_prompt),
        entity=entity,
        entity_id=entity_id,
        before=None if before is None else json.loads(before),
        after=None if after is None else json.loads(after),
        note=note,
    )
