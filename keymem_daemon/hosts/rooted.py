"""Files below a root, opened without ever leaving it.

Every component is opened by its name in its parent, and a link is refused wherever it stands below the root: neither a name
nor a link that somebody planted leads to a file elsewhere. The root itself may be reached through links; it is the user's choice.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

__all__ = ["Parts", "folder", "named", "opened_file", "regular_file", "subfolders"]

Parts = tuple[str, ...]
"""The names that lead from a root to a file below it."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def folder(root: Path, parts: Sequence[str] = ()) -> Iterator[int]:
    """A descriptor of the directory at ``parts`` below ``root``. Raises `OSError`, also where a part is a link or no plain name."""
    descriptor = os.open(root, _FOLDER)
    try:
        for part in parts:
            below = os.open(_plain(part), _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(root: Path, parts: Parts) -> Iterator[int]:
    """A descriptor to read the regular file at ``parts`` below ``root``. Raises `OSError`, also for anything but such a file."""
    with folder(root, parts[:-1]) as parent:
        descriptor = os.open(_plain(parts[-1]), _FILE, dir_fd=parent)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PermissionError(f"{parts[-1]} is no regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def subfolders(descriptor: int, most: int) -> list[str]:
    """Names of the directories in an open directory, links left out, of its first ``most`` entries."""
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in islice(entries, most) if entry.is_dir(follow_symlinks=False)]


def named(descriptor: int, start: str, end: str, most: int) -> list[str]:
    """Names in an open directory, of its first ``most`` entries, that begin with ``start`` and end with ``end``."""
    with os.scandir(descriptor) as entries:
        names = [entry.name for entry in islice(entries, most)]
    return [name for name in names if name.startswith(start) and name.endswith(end)]


def regular_file(descriptor: int, name: str) -> os.stat_result | None:
    """What is known of the file ``name`` (at most one folder deeper) in an open directory; ``None`` unless it is a regular file."""
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _plain(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise PermissionError(f"{name!r} is not the name of one file")
    return name
