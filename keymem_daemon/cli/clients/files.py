"""Other people's configuration files: read as they are, kept as a copy before a change, replaced whole or not at all.

A file that is a link stays a link: what it leads to is changed. The mode stays. A client may write its file at the same time;
so a file is only replaced while it still holds what the change was made from.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from keymem_daemon.cli.failure import CommandFailed

__all__ = ["copies", "read", "replace"]

NEW_FILE = 0o600
COPIES = 20


def read(path: Path) -> str | None:
    """The text of the file, ``None`` when there is none. Raises `CommandFailed`."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        if path.is_symlink():
            raise CommandFailed(f"{path} is a link that leads nowhere", "Mend or remove it, then try again.") from None
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandFailed(f"{path} cannot be read: {problem}", "Nothing was changed.") from problem


def copies(path: Path) -> list[str]:
    """The texts of the latest copies beside the file, the latest first; those that cannot be read are left out."""
    target = Path(os.path.realpath(path))
    texts: list[str] = []
    with suppress(OSError):
        beside = (found for found in target.parent.iterdir() if found.name.startswith(f"{target.name}.bak."))
        paths = [found for found in beside if found.is_file()]
        for found in sorted(paths, key=lambda found: found.stat().st_mtime_ns, reverse=True)[:COPIES]:
            with suppress(OSError, UnicodeDecodeError):
                texts.append(found.read_bytes().decode("utf-8"))
    return texts


def replace(path: Path, before: str | None, after: str | None, now: datetime) -> Path | None:
    """Make ``after`` the text of the file that held ``before``; the path of the copy of that, if there was anything to copy.

    Without an ``after`` the file is removed (what a link leads to is emptied), and not copied: all in it was ours. Raises `CommandFailed` when it cannot
    be done, or the file no longer holds ``before``; nothing has changed then.
    """
    target = Path(os.path.realpath(path))
    try:
        if after is None and path.is_symlink():
            after = ""
        if after is None:
            _check(path, before)
            target.unlink(missing_ok=True)
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = NEW_FILE if before is None else stat.S_IMODE(target.stat().st_mode)
        backup = _free(target.with_name(f"{target.name}.bak.{now:%Y%m%dT%H%M%SZ}"))
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        with _unless_done(temporary, backup):
            if before is not None:
                _write(backup, before, mode)
            _write(temporary, after, mode)
            _check(path, before)
            temporary.replace(target)
    except OSError as problem:
        raise CommandFailed(f"{path} cannot be written: {problem}", "Nothing in it was changed.") from problem
    return None if before is None else backup


def _check(path: Path, before: str | None) -> None:
    if read(path) != before:
        raise CommandFailed(f"{path} was changed by another program just now", "Try again.")


@contextmanager
def _unless_done(*made: Path) -> Iterator[None]:
    """Remove what was made when the rest fails."""
    try:
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise


def _free(path: Path) -> Path:
    """``path``, or the same with a number where that is taken."""
    free, number = path, 1
    while os.path.lexists(free):
        free, number = path.with_name(f"{path.name}.{number}"), number + 1
    return free


def _write(path: Path, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
