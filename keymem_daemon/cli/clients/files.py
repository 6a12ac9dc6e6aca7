"""Other people's configuration files: read as they are, kept as a copy before a change, replaced whole or not at all.

A file that is a link stays a link: what it leads to is changed. The mode stays. A client may write its file at the same time;
so a file is only replaced while it still holds what the change was made from.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from keymem_daemon.cli.failure import CommandFailed

__all__ = ["read", "replace"]

NEW_FILE = 0o600


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


def replace(path: Path, before: str | None, after: str, now: datetime) -> Path | None:
    """Make ``after`` the text of the file that held ``before``; the path of the copy of that, if there was anything to copy.

    Raises `CommandFailed` when it cannot be done, or the file no longer holds ``before``; nothing has changed then.
    """
    try:
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = NEW_FILE if before is None else stat.S_IMODE(target.stat().st_mode)
        backup = None
        if before is not None:
            backup = _free(target.with_name(f"{target.name}.bak.{now:%Y%m%dT%H%M%SZ}"))
            _write(backup, before, mode)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        _write(temporary, after, mode)
        if read(path) != before:
            temporary.unlink()
            if backup is not None:
                backup.unlink()
            raise CommandFailed(f"{path} was changed by another program just now", "Try again.")
        temporary.replace(target)
    except OSError as problem:
        raise CommandFailed(f"{path} cannot be written: {problem}", "Nothing in it was changed.") from problem
    return backup


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
