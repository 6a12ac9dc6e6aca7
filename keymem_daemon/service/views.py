"""The records in the words of the tools: JSON-ready views of memories, keys and validity.

Times are ISO 8601 UTC, scores are rounded to three decimals. A view shows nothing outside the scope it was made for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from keymem_daemon.core.errors import KeymemError
from keymem_daemon.core.freshness import HalfLives, validity
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Key, Memory, Scope
from keymem_daemon.core.text import fold

View = dict[str, Any]


def iso(at: float) -> str:
    """Epoch seconds as ISO 8601 UTC with whole seconds, or the edge of the calendar for a moment beyond it."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return "9999-12-31T23:59:59Z" if at > 0 else "0001-01-01T00:00:00Z"


def score(value: float) -> float:
    """A score as it is shown."""
    return round(float(value), 3)


def error_view(error: KeymemError) -> View:
    """The body of every error."""
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}


def validity_view(memory: Memory, now: float, half_lives: HalfLives) -> View:
    """How far to trust a memory."""
    state = validity(memory, now, half_lives)
    return {
        "freshness": score(state.freshness),
        "status": state.status,
        "age_days": round(state.age_days, 1),
        "last_confirmed_at": iso(state.last_confirmed_at),
        "confirmation_count": state.confirmation_count,
        "decay_profile": state.decay_profile,
        "verification_recommended": state.verification_recommended,
        "verification_required": state.verification_required,
    }


def memory_view(graph: Graph, memory: Memory, scope: Scope) -> View:
    """A memory in full, as stored; of the memories it names, those that the scope may see."""

    def seen(ids: Iterable[str]) -> list[str]:
        return [i for i in ids if scope is None or ((other := graph.memory(i)) is not None and fold(other.namespace) in scope)]

    view: View = {
        "id": memory.id,
        "content": memory.content,
        "namespace": memory.namespace,
        "created_at": iso(memory.created_at),
        "depth": score(memory.depth),
        "access_count": memory.access_count,
        "last_accessed": None if memory.last_accessed is None else iso(memory.last_accessed),
        "expires_at": None if memory.expires_at is None else iso(memory.expires_at),
        "related_to": seen(memory.links),
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "source": dict(memory.source),
    }
    if memory.contradicts:
        view["contradicts"] = seen(memory.contradicts)
    return view


def key_facts(graph: Graph, key: Key, scope: Scope, hub_min_links: int) -> View:
    """What every listing says of a key: its name in the scope and how many of its memories it leads to."""
    count = graph.memory_count(key.id, scope)
    return {"key_id": key.id, "concept": graph.name_in(key.id, scope), "memory_count": count, "is_hub": count >= hub_min_links}


def key_view(graph: Graph, key: Key, scope: Scope, hub_min_links: int) -> View:
    """A key with everything that is not a score."""
    facts = key_facts(graph, key, scope, hub_min_links)
    count = facts["memory_count"]
    return {
        "key_id": key.id,
        "concept": facts["concept"],
        "aliases": list(graph.surfaces_in(key.id, scope)[1:]),
        "key_type": key.key_type,
        "memory_count": count,
        "is_hub": facts["is_hub"],
        "specificity": score(1 / count) if count else 0.0,
    }
