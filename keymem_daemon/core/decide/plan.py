"""A plan: a draft of the graph together with the changes that made it.

A rule changes the draft only through `make`, so that what it saw afterwards is exactly what will be committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from keymem_daemon.core.changes import Change, KeyRemoved, LinkRemoved, MemoryRemoved
from keymem_daemon.core.errors import NotFound, Superseded
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Memory, Scope
from keymem_daemon.core.text import fold

FIND_IT = "Recall the topic to find the id (12 hexadecimal characters); namespace '*' looks beyond the directory's own namespaces."


class Plan:
    """``graph`` is the draft to read; ``changes`` is what was decided so far, in order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph.draft()
        self.changes: list[Change] = []

    def make(self, change: Change) -> None:
        """Decide ``change``: it is applied to the draft and joins the plan."""
        self.graph.apply(change)
        self.changes.append(change)

    def memory_in_scope(self, argument: str, memory_id: str, scope: Scope) -> Memory:
        """The memory of that id if the caller may see its namespace, active or not; else `NotFound`."""
        memory = self.graph.memory(memory_id)
        if memory is None or (scope is not None and fold(memory.namespace) not in scope):
            raise NotFound(argument, "memory", memory_id, FIND_IT)
        return memory

    def active_memory(self, argument: str, memory_id: str, scope: Scope = None) -> Memory:
        """As `memory_in_scope`, and current: `Superseded` names the successor, an expired one is `NotFound`."""
        memory = self.memory_in_scope(argument, memory_id, scope)
        if memory.superseded_by is not None:
            exists = self.graph.memory(memory.superseded_by) is not None
            raise Superseded(argument, memory_id, memory.superseded_by, successor_exists=exists)
        if not self.graph.is_active(memory_id):
            raise NotFound(argument, "current memory", memory_id, "It has expired: its time to live is over. Remember it anew if it still holds.")
        return memory

    def remove_memory(self, memory_id: str) -> Sequence[str]:
        """Take a memory out with its links, and its keys where it was their last; returns surfaces that went with keys.

        Its text is to leave every file: nothing could name it any more to have it forgotten.
        """
        surfaces: list[str] = []
        for link in self.graph.links_of(memory_id):
            self.make(LinkRemoved(link.key_id, memory_id))
            if not self.graph.members(link.key_id):
                surfaces.extend(self.graph.keys[link.key_id].surfaces)
                self.make(KeyRemoved(link.key_id))
        self.make(MemoryRemoved(memory_id, purge=True))
        return surfaces
