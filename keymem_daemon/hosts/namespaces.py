"""Which namespaces a working directory stands for: `namespaces.json` and `[namespaces]` in `config.toml`, in the data directory.

Both map a directory to namespaces; the longest one that contains the working directory counts, compared component by component, so that
`/a/app` says nothing of `/a/app2`. Both sides are resolved first (`worktrees.py`). A file that cannot be understood is reported and the last
good state of it stays in force, since a directory that lost its mapping would read and show everything.
"""

from __future__ import annotations

import json
import os
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keymem_daemon.core.decide.limits import NAMESPACE_CHARS
from keymem_daemon.core.text import fold, nfc
from keymem_daemon.hosts.worktrees import place_of

__all__ = ["CONFIG_FILE", "MAPPING_FILE", "Mapped", "Namespaces", "checked_names"]

MAPPING_FILE: Final = "namespaces.json"
CONFIG_FILE: Final = "config.toml"
TABLE: Final = "namespaces"
FILE_BYTES: Final = 1 << 20
PLACES_LIFE_S: Final = 2.0
"""How long resolved directories are taken as they were: links and worktrees change, but not between two calls."""

Seen = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Mapped:
    """One mapping: the directory as written, what it stands for, its namespaces, and the file that says so."""

    written: str
    place: Path
    names: tuple[str, ...]
    file: str


@dataclass(frozen=True, slots=True)
class _File:
    """One of the two files as it was read last: what marks that state, its entries, and what was wrong with it."""

    seen: Seen = None
    entries: Mapping[str, object] | None = None
    problem: str | None = None


class Namespaces:
    """Implements the port `NamespaceMap`; safe to ask from several threads."""

    def __init__(self, data_dir: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._data_dir = data_dir
        self._monotonic = monotonic
        self._turn = threading.Lock()
        self._files = {MAPPING_FILE: _File(), CONFIG_FILE: _File()}
        self._mapped: tuple[Mapped, ...] = ()
        self._places: dict[str, Path] = {}
        self._problems: tuple[str, ...] = ()
        self._stale_at = 0.0

    def namespaces_for(self, cwd: str | None) -> tuple[str, ...] | None:
        """The namespaces of ``cwd``, ``None`` when nothing maps it."""
        found = self.mapping_of(cwd)
        return None if found is None else found.names

    def mapping_of(self, cwd: str | None) -> Mapped | None:
        """The mapping that counts for ``cwd``."""
        with self._turn:
            self._refresh()
            if cwd is None or not self._mapped:
                return None
            place = self._place(cwd)
            fitting = [mapped for mapped in self._mapped if place.is_relative_to(mapped.place)]
            return max(fitting, key=lambda mapped: len(mapped.place.parts), default=None)

    def mappings(self) -> tuple[Mapped, ...]:
        """All mappings in force, in the order of their files; of two for one directory the first."""
        with self._turn:
            self._refresh()
            return self._mapped

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the files."""
        with self._turn:
            self._refresh()
            return self._problems

    def _refresh(self) -> None:
        read = {name: self._read_again(name, known) for name, known in self._files.items()}
        if read == self._files and self._monotonic() < self._stale_at:
            return
        self._files = read
        self._places.clear()
        self._stale_at = self._monotonic() + PLACES_LIFE_S
        problems = [file.problem for file in read.values() if file.problem is not None]
        mapped: dict[Path, Mapped] = {}
        for name, file in read.items():
            for written, wanted in (file.entries or {}).items():
                found = self._entry(name, written, wanted, problems)
                if found is not None and mapped.setdefault(found.place, found) is not found:
                    problems.append(
                        f"{name}: {written!r} is the directory that {mapped[found.place].written!r} maps already"
                    )
        self._mapped, self._problems = tuple(mapped.values()), tuple(problems)

    def _read_again(self, name: str, known: _File) -> _File:
        path = self._data_dir / name
        try:
            status = path.stat()
        except FileNotFoundError:
            return _File()
        except OSError as failure:
            return _File(None, known.entries, f"{name} cannot be read: {failure.strerror}")
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen == known.seen:
            return known
        try:
            return _File(seen, _entries(path))
        except (OSError, ValueError, RecursionError) as failure:
            kept = "; what it said before stays in force" if known.entries else ""
            return _File(seen, known.entries, f"{name} cannot be understood{kept}: {failure}")

    def _entry(self, file: str, written: str, wanted: object, problems: list[str]) -> Mapped | None:
        try:
            path = os.path.expanduser(written)  # noqa: PTH111 - it says whether it could, by leaving the path relative
            if not Path(path).is_absolute() or "\0" in path:
                problems.append(f"{file}: {written!r} is no absolute path, so it maps nothing")
                return None
            names, refused = checked_names(wanted)
            place = self._place(path)
        except OSError as failure:
            problems.append(f"{file}: {written!r} cannot be resolved: {failure.strerror}")
            return None
        problems.extend(f"{file}: {written!r}: {what}" for what in refused)
        return Mapped(written, place, names, file)

    def _place(self, path: str) -> Path:
        if path not in self._places:
            self._places[path] = place_of(path)
        return self._places[path]


def checked_names(wanted: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The usable names in ``wanted`` (a list of texts, or one), each once, and sentences about the others.

    None that can be used means `default` alone: a mapping with a mistake must not show everything.
    """
    given = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(given, list):
        return (), ("namespaces are a list of names; only default is in force",)
    names: dict[str, str] = {}
    refused: list[str] = []
    for item in given:
        name = " ".join(nfc(item).split()) if isinstance(item, str) else ""
        if not name or name == "*" or len(name) > NAMESPACE_CHARS or not name.isprintable():
            refused.append(f"{item!r} is no name of a namespace")
        else:
            names.setdefault(fold(name), name)
    return tuple(names.values()), tuple(refused)


def _entries(path: Path) -> Mapping[str, object]:
    """The entries of one file. Raises `ValueError` when they are not there as they should be."""
    with path.open("rb") as file:
        raw = file.read(FILE_BYTES + 1)
    if len(raw) > FILE_BYTES:
        raise ValueError(f"it is larger than {FILE_BYTES:,} bytes")
    text = raw.decode("utf-8-sig")
    found = tomllib.loads(text).get(TABLE, {}) if path.name == CONFIG_FILE else json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it must map directories to lists of namespaces")  # noqa: TRY004 - the file's value, not an argument's type
    return found
