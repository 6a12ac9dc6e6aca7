"""Which memories of a namespace were saved next to each other: what was said in one breath often belongs together.

A doubly linked list a namespace, in the order in which the graph got to know its memories (which is the store's own), so that
coming and going costs a constant and an index that followed equals one that was built anew.
"""

from __future__ import annotations

from collections.abc import Iterator


class SaveSequence:
    """Active memories in order of saving."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}
        self._last: dict[str, str | None] = {}
        self._space: dict[str, str] = {}

    def append(self, memory_id: str, namespace: str) -> None:
        """The memory was saved last; one that is there already stays where it is."""
        if memory_id in self._space:
            return
        last = self._last.get(namespace)
        self._space[memory_id] = namespace
        self._before[memory_id] = last
        self._after[memory_id] = None
        if last is not None:
            self._after[last] = memory_id
        self._last[namespace] = memory_id

    def remove(self, memory_id: str) -> None:
        """Take the memory out; its neighbours are neighbours now."""
        namespace = self._space.pop(memory_id, None)
        if namespace is None:
            return
        before, after = self._before.pop(memory_id), self._after.pop(memory_id)
        if before is not None:
            self._after[before] = after
        if after is not None:
            self._before[after] = before
        elif before is not None:
            self._last[namespace] = before
        else:
            del self._last[namespace]

    def neighbours(self, memory_id: str) -> Iterator[str]:
        """The one saved before and the one saved after, where there are any."""
        for side in (self._before, self._after):
            found = side.get(memory_id)
            if found is not None:
                yield found
