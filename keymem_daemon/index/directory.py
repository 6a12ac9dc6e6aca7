"""Keys of a namespace in browsing order: most memories first, then by the name that the namespace has for it. Kept in order, so that a page costs a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sortedcontainers import SortedList

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.text import fold

Entry = tuple[int, str, str]



class KeyDirectory:
    """One sorted list a namespace, and one for all of them together. ``follow`` it with every key whose links, or their words, changed."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._lists: dict[str | None, SortedList[Entry]] = {}
        self._entries: dict[str, dict[str | None, Entry]] = {}

    def follow(self, key_ids: Iterable[str]) -> None:
        """The memories of these keys have changed."""
        for key_id in key_ids:
            key = self._graph.key(key_id)
            new: dict[str | None, Entry] = {}
            if key is not None:
                for space, count in self._graph.namespaces_of(key_id).items():
                    new[space] = (-count, fold(self._graph.name_in(key_id, frozenset({space}))), key_id)
                total = self._graph.memory_count(key_id, None)
                if total:
                    new[None] = (-total, fold(key.concept), key_id)
            old = self._entries.get(key_id, {})
            for namespace in {*old, *new}:
                before, after = old.get(namespace), new.get(namespace)
                if before == after:
                    continue
                if before is not None:
                    self._lists[namespace].remove(before)
                    if not self._lists[namespace]:
                        del self._lists[namespace]
                if after is not None:
                    self._lists.setdefault(namespace, SortedList()).add(after)
            if new:
                self._entries[key_id] = new
            else:
                self._entries.pop(key_id, None)

    def count(self, namespace: str | None) -> int:
        """How many keys with active memories the namespace (``None``: all of them) has."""
        return len(self._lists.get(namespace, ()))

    def hubs(self, namespace: str | None, minimum: int) -> int:
        """How many of them have at least ``minimum`` memories; they are the first ones."""
        entries = self._lists.get(namespace)
        return 0 if entries is None else int(entries.bisect_left((-minimum + 1, "", "")))

    def page(self, namespace: str | None, offset: int, limit: int) -> Iterator[str]:
        """Key ids in browsing order."""
        entries = self._lists.get(namespace)
        if entries is not None:
            for _, _, key_id in entries.islice(offset, offset + limit):
                yield key_id
