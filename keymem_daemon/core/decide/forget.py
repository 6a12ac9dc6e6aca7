"""forget: a memory, its links and every reference to it are gone; what it had superseded stays inactive.

TTL takes the same way, and so does what a second correction prunes: a text that can be reached no more is in no file either.
Nothing else ever deletes a memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from keymem_daemon.core.decide.correct import forget_references
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.model import Memory, Scope


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is gone: the memory as it was, and the strings of the keys that went with it; ``kept`` is what it had superseded and is still there."""

    memory: Memory
    surfaces: tuple[str, ...]
    kept: str | None


def decide_forget(plan: Plan, memory_id: str, scope: Scope) -> Forgotten:
    """Decide the removal of a memory, active or not; raises `NotFound`."""
    memory = plan.memory_in_scope("memory_id", memory_id, scope)
    forget_references(plan, memory_id)
    kept = memory.supersedes if memory.supersedes in plan.graph.memories else None
    return Forgotten(memory, tuple(plan.remove_memory(memory_id)), kept)


def decide_expire(plan: Plan, now: float) -> list[str]:
    """Decide the removal of everything whose time has passed; returns the ids."""
    ids = [memory.id for memory in plan.graph.due(now)]
    for memory_id in ids:
        forget_references(plan, memory_id)
        plan.remove_memory(memory_id)
    return ids
