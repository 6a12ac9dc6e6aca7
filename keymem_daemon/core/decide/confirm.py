"""confirm: explicit evidence that a memory holds. The only thing that makes it fresher and deeper."""

from __future__ import annotations

from dataclasses import replace

from keymem_daemon.core.changes import MemoryChanged
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.errors import InvalidArgument, shortened
from keymem_daemon.core.freshness import deepened
from keymem_daemon.core.model import EVIDENCE_KINDS, Memory, Scope


def checked_evidence(evidence: str) -> str:
    """The kind of evidence; raises for any other word."""
    if evidence not in EVIDENCE_KINDS:
        raise InvalidArgument("evidence", f"one of {', '.join(EVIDENCE_KINDS)}", repr(shortened(evidence, 40)))
    return evidence


def decide_confirm(plan: Plan, memory_id: str, now: float, scope: Scope) -> Memory:
    """Decide the confirmation; returns the memory as it will be. Content and links stay as they are."""
    memory = plan.active_memory("memory_id", memory_id, scope)
    confirmed = replace(
        memory,
        last_confirmed_at=max(now, memory.last_confirmed_at),
        confirmation_count=memory.confirmation_count + 1,
        depth=deepened(memory.depth),
    )
    plan.make(MemoryChanged(confirmed))
    return confirmed
