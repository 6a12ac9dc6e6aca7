"""Which directory a path stands for: links resolved, and a linked git worktree taken for the repository it belongs to.

What git keeps is read from its files; no git is run. A directory that merely holds a copied or planted `.git` file is not believed: the
repository must name that worktree in turn.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["place_of", "worktree_root"]

_LINE_BYTES: Final = 8_192


def place_of(path: str) -> Path:
    """The directory that ``path`` (absolute) stands for, itself or in the main work tree of its repository. Need not exist."""
    real = Path(os.path.realpath(path))
    root = worktree_root(real)
    if root is None:
        return real
    main = _main_tree(root)
    return real if main is None else main / real.relative_to(root)


def worktree_root(real: Path) -> Path | None:
    """The nearest directory at or above ``real`` whose `.git` is a file, ``None`` if a repository of its own is nearer."""
    for directory in (real, *real.parents):
        git = str(directory / ".git")
        if os.path.isfile(git):  # noqa: PTH113 - a directory that may not be looked into has none
            return directory
        if os.path.isdir(git):  # noqa: PTH112 - as above
            return None
    return None


def _main_tree(root: Path) -> Path | None:
    """The main work tree of the repository of the linked worktree ``root``; a repository without one stands for itself."""
    said = _line(root / ".git")
    if said is None or not said.startswith("gitdir:"):
        return None
    kept = Path(os.path.realpath(root / said.removeprefix("gitdir:").strip()))
    common, back = _line(kept / "commondir"), _line(kept / "gitdir")
    if not common or not back or os.path.realpath(kept / back) != os.path.realpath(root / ".git"):
        return None
    repository = Path(os.path.realpath(kept / common))
    return repository.parent if repository.name == ".git" else repository


def _line(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            said = os.fsdecode(file.read(_LINE_BYTES)).split("\n", 1)[0].strip()
    except OSError:
        return None
    return None if "\0" in said else said
