"""How use changes links: reading through a link strengthens it, exploring in vain weakens it a little, dismissal halves it.

Hebbian, bounded to [0.1, 3], and never freshness: reading is not confirming. No link is ever severed by learning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from keymem_daemon.core.changes import KeyChanged, LinkSet, MemoryChanged
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.errors import InvalidArgument, NotFound
from keymem_daemon.core.model import WEIGHT_MAX, WEIGHT_MIN, Link, Memory, Scope
from keymem_daemon.core.text import fold

READ_STEP: Final = 0.1
UNRETURNED_STEP: Final = -0.005


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The link's new weight, and how many pending aliases of the key were cancelled."""

    link_weight: float
    cancelled_learning: int


def bounded(weight: float) -> float:
    """``weight`` within [0.1, 3]."""
    return min(WEIGHT_MAX, max(WEIGHT_MIN, weight))


def shift(plan: Plan, link: Link, step: float) -> None:
    """Move one link's weight by ``step``."""
    weight = bounded(link.weight + step)
    if weight != link.weight:
        plan.make(LinkSet(replace(link, weight=weight)))


def linked(plan: Plan, argument: str, key_id: str, memory_id: str, scope: Scope) -> Link:
    """The link of the pair; raises when the scope has no such key or it is not a key of the memory."""
    if plan.graph.key(key_id) is None or not plan.graph.memory_count(key_id, scope):
        raise NotFound(argument, "key", key_id, "Use a key_id from recall, browse_keys or read_memory.")
    link = plan.graph.link(key_id, memory_id)
    if link is None:
        raise InvalidArgument(argument, f"a key that memory {memory_id} is linked to", repr(key_id), "read_memory lists the keys of a memory.")
    return link


def decide_read(plan: Plan, memory_id: str, via_key_id: str | None, now: float, scope: Scope) -> Memory:
    """Decide what reading in full changes: one access, and +0.1 on the one link it came through. Returns the memory before."""
    memory = plan.active_memory("memory_id", memory_id, scope)
    link = None if via_key_id is None else linked(plan, "via_key_id", via_key_id, memory_id, scope)
    plan.make(MemoryChanged(replace(memory, access_count=memory.access_count + 1, last_accessed=now)))
    if link is not None:
        shift(plan, link, READ_STEP)
    return memory


def decide_dismiss(plan: Plan, memory_id: str, key_id: str, scope: Scope) -> Dismissed:
    """Decide a dismissal: that one link is halved, and what the key was about to learn in that namespace is dropped."""
    space = fold(plan.active_memory("memory_id", memory_id, scope).namespace)
    link = linked(plan, "key_id", key_id, memory_id, scope)
    weight = bounded(link.weight / 2)
    plan.make(LinkSet(replace(link, weight=weight)))
    key = plan.graph.keys[key_id]
    kept = tuple(candidate for candidate in key.candidates if candidate.namespace != space)
    if kept != key.candidates:
        plan.make(KeyChanged(replace(key, candidates=kept)))
    return Dismissed(weight, len(key.candidates) - len(kept))
