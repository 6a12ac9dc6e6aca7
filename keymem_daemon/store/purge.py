"""Forgetting for good: where a text can still be after its record is gone, and how it goes from there.

In the transaction that removes a memory its text leaves history, recorded responses and the vector cache (`scrub`), and the
purge is noted as pending. What remains are bytes: older frames of the write-ahead log. `checkpoint` empties it;
only then is the note removed. A process killed in between finishes when the database is opened next.

The note holds ids and hashes, never a text.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from keymem_daemon.core.changes import Commit, KeyRemoved, MemoryRemoved
from keymem_daemon.store.records import (
    KEY_COLUMNS,
    UnsoundRow,
    encoded,
    key_of,
    trace_of,
    vector_key,
)
from keymem_daemon.store.redact import redacted, removed_ids

PURGED: str = '{"purged":true}'


@dataclass(frozen=True, slots=True)
class Removed:
    """What goes: ids of memories and keys, and texts that were theirs."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]


def removed(db: sqlite3.Connection, commit: Commit) -> Removed | None:
    """What a commit is about to remove for good, read while it is still there; ``None`` when it purges nothing."""
    ids = removed_ids(commit)
    if not ids:
        return None
    texts: list[str] = []
    for change in commit.changes:
        match change:
            case MemoryRemoved(memory_id, purge=True):
                row = db.execute("SELECT content FROM memories WHERE id = ?", (memory_id,)).fetchone()
                texts.extend(row or ())
            case KeyRemoved(key_id):
                row = db.execute(f"SELECT {', '.join(KEY_COLUMNS)} FROM keys WHERE id = ?", (key_id,)).fetchone()  # noqa: S608
                texts.extend(_surfaces(row))
            case _:
                pass
    return Removed(tuple(ids), tuple(texts))


def _surfaces(row: tuple[str, ...] | None) -> tuple[str, ...]:
    if row is None:
        return ()
    try:
        return key_of(row).surfaces
    except UnsoundRow:
        return (row[1],)


def scrub(db: sqlite3.Connection, what: Removed) -> None:
    """Take ``what`` out of history, recorded responses and the vector cache. Part of the caller's transaction.

    A text that another memory or key has in its own right stays in that one's history.
    """
    for identity in what.ids:
        _purge_changes(
            db, db.execute("SELECT seq, commit_seq FROM changes WHERE entity_id = ?", (identity,)).fetchall()
        )
    for text in what.texts:
        found = db.execute(
            "SELECT seq, commit_seq FROM changes WHERE trace = ? "
            "AND entity_id NOT IN (SELECT id FROM memories WHERE id = entity_id) "
            "AND entity_id NOT IN (SELECT id FROM keys WHERE id = entity_id)",
            (trace_of(text),),
        ).fetchall()
        _purge_changes(db, found)
    _redact_responses(db, what)
    spaces = [space for (space,) in db.execute("SELECT seq FROM spaces")]
    db.executemany(
        "DELETE FROM vectors WHERE space = ? AND text_hash = ?",
        [(space, vector_key(text)) for space in spaces for text in what.texts],
    )


def _purge_changes(db: sqlite3.Connection, found: list[tuple[int, int]]) -> None:
    db.executemany(
        "UPDATE changes SET trace = NULL, before = CASE WHEN before IS NULL THEN NULL ELSE ? END, "
        "after = CASE WHEN after IS NULL THEN NULL ELSE ? END WHERE seq = ?",
        [(PURGED, PURGED, seq) for seq, _commit_seq in found],
    )
    db.executemany(
        "UPDATE commits SET note = NULL WHERE seq = ? AND note IS NOT NULL", [(commit,) for _seq, commit in found]
    )


def _redact_responses(db: sqlite3.Connection, what: Removed) -> None:
    mentions = [*what.ids, *(encoded(text) for text in what.texts)]
    for seq, response in db.execute("SELECT seq, response FROM requests").fetchall():
        if any(mention in response for mention in mentions):
            db.execute("UPDATE requests SET response = ? WHERE seq = ?", (redacted(response, what.texts), seq))


def mark_pending(db: sqlite3.Connection, what: Removed) -> None:
    """Note, in the caller's transaction, that the bytes are still to go."""
    traces = [trace_of(text) for text in what.texts]
    db.execute("INSERT INTO purges (ids, traces) VALUES (?, ?)", (encoded(what.ids), encoded(traces)))


def is_pending(db: sqlite3.Connection) -> bool:
    """Whether a purge was begun and not finished."""
    return db.execute("SELECT 1 FROM purges LIMIT 1").fetchone() is not None


def checkpoint(db: sqlite3.Connection) -> None:
    """Bring the write-ahead log into the database and cut it to nothing. Raises `sqlite3.OperationalError` when a reader holds it."""
    busy, _frames, _moved = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("the write-ahead log is being read by another process")


def clear_pending(db: sqlite3.Connection) -> None:
    """The bytes are gone. Part of the caller's transaction."""
    db.execute("DELETE FROM purges")
