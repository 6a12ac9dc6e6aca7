"""Forgetting for good: where a text can still be after its record is gone, and how it goes from there.

1. In the transaction that removes a memory its text leaves history, recorded responses and the vector cache (`scrub`), and the
   purge is noted as pending, by ids. So do texts of which nothing but history knows any more: what the memory had replaced, step
   by step, and their keys (`left_in_history`).
2. What remains are bytes: older frames of the write-ahead log and unused parts of pages. checkpoint.py clears both.
3. Copies that the store made by itself, before a migration or when something was damaged, are treated likewise (`purge_copies`).
4. Then the note is removed. A process killed in between finishes when the database is opened next.

Copies that a person made are theirs and stay as they are.
"""

from __future__ import annotations

import json
import mmap
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keymem_daemon.core.changes import Commit, KeyRemoved, MemoryRemoved
from keymem_daemon.store.answers import Answers
from keymem_daemon.store.files import automatic_backups, damaged_databases, damaged_rows, database_files, replace_file
from keymem_daemon.store.records import (
    KEY_COLUMNS,
    UnsoundRow,
    encoded,
    key_of,
    trace_of,
    vector_key,
)
from keymem_daemon.store.redact import redacted, removed_ids, surfaces_of_image, tells_of_forgetting
from keymem_daemon.store.slack import NotScrubbable, clear_slack

PURGED: Final = '{"purged":true}'


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
    left: list[str] = []
    for change in commit.changes:
        match change:
            case MemoryRemoved(memory_id, purge=True):
                left.extend(_replaced_by(db, memory_id))
                row = db.execute("SELECT content FROM memories WHERE id = ?", (memory_id,)).fetchone()
                texts.extend(row or ())
            case KeyRemoved(key_id):
                row = db.execute(f"SELECT {', '.join(KEY_COLUMNS)} FROM keys WHERE id = ?", (key_id,)).fetchone()  # noqa: S608
                texts.extend(_surfaces(row))
            case _:
                pass
    past = left_in_history(db, [memory_id for memory_id in left if memory_id not in ids])
    return Removed((*ids, *past.ids), (*texts, *past.texts))


def remembers(db: sqlite3.Connection, memory_id: str) -> bool:
    """Whether history has a text of the memory."""
    return any("content" in image for image in _images(db, "memory", memory_id))


def left_in_history(db: sqlite3.Connection, memory_ids: Collection[str]) -> Removed:
    """What history has of those memories that exist no more, of what they replaced and of the keys that only they had."""
    wanted = dict.fromkeys(memory_ids)
    for memory_id in memory_ids:
        wanted.update(dict.fromkeys(_replaced_by(db, memory_id)))
    ids: dict[str, None] = {}
    texts: dict[str, None] = {}
    for memory_id in wanted:
        if _exists(db, "memories", memory_id):
            continue
        contents = [str(image["content"]) for image in _images(db, "memory", memory_id) if "content" in image]
        if not contents:
            continue
        ids[memory_id] = None
        texts.update(dict.fromkeys(contents))
        for key_id in _keys_once_on(db, memory_id):
            ids[key_id] = None
            texts.update((text, None) for image in _images(db, "key", key_id) for text in surfaces_of_image(image))
    return Removed(tuple(ids), tuple(texts))


def _replaced_by(db: sqlite3.Connection, memory_id: str) -> list[str]:
    """What the memory superseded, and what that did, nearest first, as far as history tells; without the memory itself."""
    found = {memory_id: None}
    frontier = [memory_id]
    while frontier:
        for image in _images(db, "memory", frontier.pop(0)):
            older = image.get("supersedes")
            if isinstance(older, str) and older not in found:
                found[older] = None
                frontier.append(older)
    return list(found)[1:]


def _keys_once_on(db: sqlite3.Connection, memory_id: str) -> list[str]:
    """Keys that were linked to the memory and exist no more. Reads all of history: for the rare case only."""
    pairs = db.execute(
        "SELECT DISTINCT entity_id FROM changes WHERE entity = 'link' AND substr(entity_id, -?) = ?",
        (len(memory_id) + 1, f":{memory_id}"),
    ).fetchall()
    keys = [pair.removesuffix(f":{memory_id}") for (pair,) in pairs]
    return [key_id for key_id in keys if not _exists(db, "keys", key_id)]


def _images(db: sqlite3.Connection, entity: str, identity: str) -> list[dict[str, object]]:
    """Every image of a record in history, oldest first."""
    rows = db.execute(
        "SELECT before, after FROM changes WHERE entity_id = ? AND entity = ? ORDER BY seq", (identity, entity)
    ).fetchall()
    images = [json.loads(image) for row in rows for image in row if image is not None]
    return [image for image in images if isinstance(image, dict)]


def _exists(db: sqlite3.Connection, table: str, identity: str) -> bool:
    return db.execute(f"SELECT 1 FROM {table} WHERE id = ?", (identity,)).fetchone() is not None  # noqa: S608 - a table of schema.py


def _surfaces(row: tuple[str, ...] | None) -> tuple[str, ...]:
    if row is None:
        return ()
    try:
        return key_of(row).surfaces
    except UnsoundRow:
        return (row[1],)


def scrub(db: sqlite3.Connection, what: Removed, answers: Answers | None) -> list[str]:
    """Take ``what`` out of history, recorded responses (unless ``answers`` is ``None``) and the vector cache. Part of the caller's transaction.

    Returns the ids that the texts ever had. A text that another memory or key has in its own right stays in that one's history.
    """
    ids = dict.fromkeys(what.ids)
    for text in what.texts:
        found = db.execute(
            "SELECT DISTINCT entity_id FROM changes WHERE trace = ? "
            "AND NOT EXISTS (SELECT 1 FROM memories WHERE id = entity_id) "
            "AND NOT EXISTS (SELECT 1 FROM keys WHERE id = entity_id)",
            (trace_of(text),),
        )
        ids.update((identity, None) for (identity,) in found.fetchall())
    for identity in ids:
        _purge_changes(db, identity)
    if answers is not None:
        _redact_responses(db, answers, ids, what.texts)
    spaces = [space for (space,) in db.execute("SELECT seq FROM spaces")]
    db.executemany(
        "DELETE FROM vectors WHERE space = ? AND text_hash = ?",
        [(space, vector_key(text)) for space in spaces for text in what.texts],
    )
    return list(ids)


def _purge_changes(db: sqlite3.Connection, identity: str) -> None:
    db.execute(
        "UPDATE commits SET note = NULL WHERE note IS NOT NULL AND seq IN (SELECT commit_seq FROM changes WHERE entity_id = ?)",
        (identity,),
    )
    db.execute(
        "UPDATE changes SET trace = NULL, before = CASE WHEN before IS NULL THEN NULL ELSE ? END, "
        "after = CASE WHEN after IS NULL THEN NULL ELSE ? END WHERE entity_id = ?",
        (PURGED, PURGED, identity),
    )


def _redact_responses(db: sqlite3.Connection, answers: Answers, ids: Collection[str], texts: Collection[str]) -> None:
    strings = [encoded(text) for text in texts]
    mentions = [*ids, *strings]
    named = answers.naming(ids, strings)
    for seq, response in recorded_responses(db, named):
        if any(mention in response for mention in mentions) and not tells_of_forgetting(response, ids):
            db.execute("UPDATE requests SET response = ? WHERE seq = ?", (redacted(response, texts), seq))


def recorded_responses(db: sqlite3.Connection, numbers: Iterable[int] | None = None) -> Iterator[tuple[int, str]]:
    """Recorded responses of these numbers, or all, in their order. What is no UTF-8 in a damaged one becomes a sign of that."""
    select = "SELECT seq, CAST(response AS BLOB) FROM requests"
    if numbers is None:
        rows = db.execute(f"{select} ORDER BY seq").fetchall()
    else:
        rows = [row for number in numbers for row in db.execute(f"{select} WHERE seq = ?", (number,)).fetchall()]
    yield from ((seq, response.decode(errors="replace")) for seq, response in rows)


def mark_pending(db: sqlite3.Connection, ids: Collection[str]) -> None:
    """Note, in the caller's transaction, that the bytes are still to go."""
    db.execute("INSERT INTO purges (ids) VALUES (?)", (encoded(list(ids)),))


def pending(db: sqlite3.Connection) -> list[str]:
    """Ids of what is to go: a purge was begun and not finished."""
    return [identity for (ids,) in db.execute("SELECT ids FROM purges") for identity in json.loads(ids)]


def clear_pending(db: sqlite3.Connection) -> None:
    """The bytes are gone. Part of the caller's transaction."""
    db.execute("DELETE FROM purges")


def purge_copies(database: Path, ids: Collection[str]) -> list[str]:
    """Take what had these ids out of the copies that the store made by itself; returns what to tell the operator.

    A copy in which that cannot be done is deleted: a promise to forget comes before a copy that nobody asked for.
    """
    needles = [identity.encode() for identity in ids]
    problems: list[str] = []
    for path in damaged_rows(database):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not any(needle in line for needle in needles)]
        if len(kept) != len(lines):
            replace_file(path, b"".join(kept))
    for path in (*automatic_backups(database), *damaged_databases(database)):
        if not any(_holds(file, needles) for file in database_files(path)):
            continue
        try:
            _purge_copy(path, ids)
        except (sqlite3.Error, OSError, NotScrubbable) as error:
            for file in database_files(path):
                file.unlink(missing_ok=True)
            problems.append(f"{path.name} was deleted: what was forgotten could not be taken out of it ({error})")
    return problems


def _holds(path: Path, needles: Collection[bytes]) -> bool:
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(needle) >= 0 for needle in needles)


def _purge_copy(path: Path, ids: Collection[str]) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA journal_mode = DELETE")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        db.execute("BEGIN IMMEDIATE")
        for identity in ids:
            _purge_changes(db, identity)
            db.execute("DELETE FROM links WHERE memory_id = ? OR key_id = ?", (identity, identity))
            db.execute("DELETE FROM memories WHERE id = ?", (identity,))
            db.execute("DELETE FROM keys WHERE id = ?", (identity,))
            db.execute("UPDATE requests SET response = 'null' WHERE instr(response, ?)", (identity,))
        db.execute("COMMIT")
    finally:
        db.close()
    clear_slack(path)
