"""A store that fails when it is told to, waits when it is told to, and is the in-memory store otherwise."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from keymem_daemon.core.changes import Commit
from keymem_daemon.core.errors import StorageFailed
from keymem_daemon.store.memory import MemoryStore

PATIENCE_S = 10.0


class FaultyStore(MemoryStore):
    """``failing`` refuses commits; a cleared ``gate`` holds them; ``commits`` counts those that succeeded, with their sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.commits: list[int] = []

    def commit(self, commits: Sequence[Commit], *, durable: bool = True) -> None:
        self.entered.set()
        if not self.gate.wait(PATIENCE_S):
            raise TimeoutError("nobody opened the gate")
        if self.failing:
            raise StorageFailed("database or disk is full")
        super().commit(commits, durable=durable)
        self.commits.append(len(commits))

    def close(self) -> None:
        """Stays readable, so that a test can open it again."""
