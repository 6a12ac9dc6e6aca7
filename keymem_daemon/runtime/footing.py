"""Whether the files that this process opened are still the ones that their names lead to.

A lock on a file that was deleted keeps nobody out, and what is written to a deleted database is gone with the process. So whoever
holds them asks here: before a write is acknowledged, and now and then while nothing is asked.
"""

from __future__ import annotations

from pathlib import Path

from keymem_daemon.core.errors import StorageFailed

__all__ = ["Footing", "inode"]

Inode = tuple[int, int]


def inode(path: str | Path) -> Inode | None:
    """Device and number of the file that ``path`` leads to, ``None`` when there is none that can be seen."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Footing:
    """The files that must stay in their places."""

    def __init__(self) -> None:
        self._files: dict[str, Inode | None] = {}

    def rest_on(self, path: str | Path) -> None:
        """Hold the file that is at ``path`` now to be the one that was opened."""
        self._files[str(path)] = inode(path)

    def lost(self) -> str | None:
        """What happened to a file that is no longer in its place, for a person."""
        for path, opened in self._files.items():
            found = inode(path)
            if found is None or found != opened:
                what = "was removed" if found is None else "was replaced by another file"
                return f"{path} {what} while keymem was running"
        return None

    def require(self) -> None:
        """Raise `StorageFailed` when something is lost."""
        if (lost := self.lost()) is not None:
            raise StorageFailed(lost)
