"""The one vocabulary of change: everything that can ever happen to the graph.

A change carries the whole value after it, so that applying it twice is the same as applying it once and so that store,
graph and indexes need no knowledge of the rule that decided it. The union is closed; whoever handles it matches every case.
What a group of changes *means* (remember, correct, dismiss …) is the `action` of the commit that carries them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from keymem_daemon.core.model import Actor, Key, Link, Memory

Action = Literal["remember", "correct", "dismiss", "forget", "confirm", "expire", "learn", "reinforce", "prune", "import"]


@dataclass(frozen=True, slots=True)
class MemoryAdded:
    memory: Memory


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    memory: Memory


@dataclass(frozen=True, slots=True)
class MemoryRemoved:
    """The memory and its links go; ``purge`` says that its text must leave every file, history included."""

    memory_id: str
    purge: bool = False


@dataclass(frozen=True, slots=True)
class KeyAdded:
    key: Key


@dataclass(frozen=True, slots=True)
class KeyChanged:
    key: Key


@dataclass(frozen=True, slots=True)
class KeyRemoved:
    key_id: str


@dataclass(frozen=True, slots=True)
class LinkSet:
    """The link exists with this weight and position, whether it is new or not."""

    link: Link


@dataclass(frozen=True, slots=True)
class LinkRemoved:
    key_id: str
    memory_id: str


Change = MemoryAdded | MemoryChanged | MemoryRemoved | KeyAdded | KeyChanged | KeyRemoved | LinkSet | LinkRemoved


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes that happen together or not at all.

    ``request_id`` with ``response`` (JSON) make the request that asked for them answerable again without doing it again.
    ``actor`` and ``note`` (evidence, source …) are what history shows; both are recorded, never trusted.
    """

    action: Action
    at: float
    actor: Actor
    changes: tuple[Change, ...]
    request_id: str | None = None
    response: str | None = None
    note: str | None = None
