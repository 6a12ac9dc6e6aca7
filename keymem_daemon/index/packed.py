"""Many sets of names, most of them small: those are tuples, a sixth of what a set takes. A set that grows becomes one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_SMALL: Final = 32


class PackedSets:
    """Sets of names by name; a name without a set has the empty one."""

    def __init__(self) -> None:
        self._sets: dict[str, tuple[str, ...] | set[str]] = {}

    def get(self, name: str) -> Collection[str]:
        """The set of this name, to be read before the next change and not to be changed."""
        return self._sets.get(name, ())

    def add(self, name: str, member: str) -> None:
        """Put ``member`` into the set of this name."""
        members = self._sets.get(name, ())
        if isinstance(members, set):
            members.add(member)
        elif member not in members:
            self._sets[name] = (*members, member) if len(members) < _SMALL else {*members, member}

    def discard(self, name: str, member: str) -> None:
        """Take ``member`` out of the set of this name, if it is there; a set without members is gone."""
        members = self._sets.get(name, ())
        if isinstance(members, set):
            members.discard(member)
            if len(members) <= _SMALL // 2:
                self._sets[name] = tuple(members)
        elif member in members:
            if len(members) == 1:
                del self._sets[name]
            else:
                self._sets[name] = tuple(other for other in members if other != member)

    def pop(self, name: str) -> Collection[str]:
        """Take the whole set of this name out."""
        return self._sets.pop(name, ())
