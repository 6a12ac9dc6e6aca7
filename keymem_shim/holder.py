"""Who holds a data directory without being a daemon: the single-process server, `keymemd stdio`.

It serves the client that started it and nobody else, so whoever else wants the directory is told at once instead of waiting for a
daemon that cannot start. The server leaves a note of its process id while it holds the lock; whoever takes the lock takes away what
an earlier holder left. The note is believed only while the lock is held and the process is there.
"""

from __future__ import annotations

import fcntl
import os

from keymem_shim import rendezvous

__all__ = ["ALONE_S", "is_held", "note_path", "said_of", "single_server"]

ALONE_S = 1.5
"""How long a single-process server may be just ending before it counts as staying."""

NOTE_LIMIT = 32


def note_path(directory: str) -> str:
    """Return the path of the note that a single-process server leaves."""
    return os.path.join(directory, "stdio.pid")


def is_held(directory: str) -> bool:
    """Tell whether a process holds the data directory."""
    try:
        handle = os.open(rendezvous.lock_path(directory), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def single_server(directory: str) -> int | None:
    """Return the process id of the single-process server that holds the directory; None when none does."""
    try:
        handle = os.open(note_path(directory), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        raw = os.read(handle, NOTE_LIMIT).strip()
    except OSError:
        return None
    finally:
        os.close(handle)
    if not raw.isdigit() or not is_held(directory):
        return None
    try:
        os.kill(int(raw), 0)
    except (OSError, OverflowError):
        return None
    return int(raw)


def said_of(directory: str, pid: int) -> str:
    """Return what to tell a person whom that server keeps out, and what to do."""
    return (
        f"`keymemd stdio` (process {pid}) holds {directory} and serves only the client that started it: "
        "end that client, or set KEYMEM_DATA_DIR to another directory"
    )
