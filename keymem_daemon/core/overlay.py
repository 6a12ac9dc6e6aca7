"""A mapping laid over another: reads see both, writes stay above. What makes a draft of the graph cost only what it touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Overlay(MutableMapping[K, V]):
    """``base`` with changes; iteration gives the base's order, then what was added. The base must not change meanwhile."""

    __slots__ = ("_base", "_gone", "_own")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        self._own: dict[K, V] = {}
        self._gone: set[K] = set()

    def owns(self, key: K) -> bool:
        """Whether the value was written here and not taken from the base."""
        return key in self._own

    def __getitem__(self, key: K) -> V:
        if key in self._own:
            return self._own[key]
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._own or (key not in self._gone and key in self._base)

    def __setitem__(self, key: K, value: V) -> None:
        self._own[key] = value
        if key not in self._base:
            self._gone.discard(key)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._own.pop(key, None)
        if key in self._base:
            self._gone.add(key)

    def __iter__(self) -> Iterator[K]:
        for key in self._base:
            if key in self._own or key not in self._gone:
                yield key
        for key in self._own:
            if key not in self._base:
                yield key

    def __len__(self) -> int:
        added = sum(key not in self._base for key in self._own)
        hidden = sum(key not in self._own for key in self._gone)
        return len(self._base) + added - hidden
