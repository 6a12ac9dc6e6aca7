"""Files of the data directory: the user's alone, written whole or not at all, named by time where several are kept."""

from __future__ import annotations

import os
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
BACKUPS_KEPT: Final = 5

_COMPANIONS: Final = (".part", "-wal", "-shm", "-journal")


def private_directory(path: Path) -> None:
    """Make ``path`` if need be and close it to everybody else, whatever the umask. Leaves alone what is not ours to close."""
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    status = path.stat()
    if (
        status.st_uid == os.geteuid()
        and not status.st_mode & stat.S_ISVTX
        and stat.S_IMODE(status.st_mode) != DIRECTORY_MODE
    ):
        path.chmod(DIRECTORY_MODE)


def private_file(path: Path) -> None:
    """Make an empty ``path`` if there is none; either way only its owner can read it afterwards."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != FILE_MODE:
            os.fchmod(descriptor, FILE_MODE)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make renames and new names in ``path`` survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stamp(at: float) -> str:
    """``at`` (epoch seconds) as a part of a file name that sorts by time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def dated(path: Path, word: str, at: float) -> Path:
    """A name beside ``path`` that does not exist yet: ``path.word.<utc>``, counted up when that moment is taken."""
    base = f"{path.name}.{word}{stamp(at)}"
    candidate = path.with_name(base)
    number = 1
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{base}-{number}")
    return candidate


def database_files(database: Path) -> tuple[Path, Path, Path]:
    """The files a database in WAL mode consists of."""
    return (database, database.with_name(f"{database.name}-wal"), database.with_name(f"{database.name}-shm"))


def copy_database(db: sqlite3.Connection, path: Path) -> None:
    """Write a consistent copy of an open database to ``path``: complete under its name, or not there."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    private_file(part)
    copy = sqlite3.connect(part, isolation_level=None)
    try:
        db.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    except BaseException:
        copy.close()
        part.unlink(missing_ok=True)
        raise
    copy.close()
    part.replace(path)
    sync_directory(path.parent)


def automatic_backups(database: Path) -> list[Path]:
    """Backups that the store made by itself, oldest first."""
    return sorted(
        path for path in database.parent.glob(f"{database.name}.bak.*") if not path.name.endswith(_COMPANIONS)
    )


def damaged_databases(database: Path) -> list[Path]:
    """Databases that were found damaged and kept, oldest first."""
    return sorted(
        path for path in database.parent.glob(f"{database.name}.damaged-*") if not path.name.endswith(_COMPANIONS)
    )


def damaged_rows(database: Path) -> list[Path]:
    """Files of rows that were set aside, oldest first."""
    return sorted(database.parent.glob("damaged-*.jsonl"))


def remove_unfinished(database: Path) -> None:
    """Remove the copies of texts that a killed process was just writing: nothing else would ever name them."""
    for pattern in (f"{database.name}.bak.*.part*", "damaged-*.jsonl.part"):
        for path in database.parent.glob(pattern):
            path.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Give ``path`` other content, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    private_file(part)
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_directory(path.parent)


def prune_backups(database: Path) -> None:
    """Keep the last `BACKUPS_KEPT` automatic backups."""
    for path in automatic_backups(database)[:-BACKUPS_KEPT]:
        path.unlink(missing_ok=True)
