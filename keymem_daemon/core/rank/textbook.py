"""The textbook plan, for comparison: reciprocal rank fusion (k = 60) of BM25 and the key path, then breadth-first expansion.

``score = Σ 1 / (60 + rank)``; each hop hands a memory's score on, × 0.3, over the keys it shares, the nearest way first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.keymatch import top

RANK_CONSTANT: Final = 60
HOP_FACTOR: Final = 0.3
EXPANDED: Final = 10
MEMBERS: Final = 200


@dataclass(frozen=True, slots=True)
class Step:
    """How expansion reached a memory: from ``parent`` with its score, over ``key_id``."""

    parent: str
    key_id: str
    score: float


def fused(
    graph: Graph, lexical: Mapping[str, float], keys: Mapping[str, float], scope: Scope, hops: int
) -> tuple[dict[str, float], dict[str, Step]]:
    """Scores of the memories found and of those reached from the best ten within ``hops`` − 1 further steps, and these steps."""
    scores: dict[str, float] = {}
    steps: dict[str, Step] = {}
    for signal in (lexical, keys):
        for rank, memory_id in enumerate(top(signal, len(signal)), start=1):
            scores[memory_id] = scores.get(memory_id, 0.0) + 1 / (RANK_CONSTANT + rank)
    frontier = top(scores, EXPANDED)
    seen = set(scores)
    for _ in range(hops - 1):
        reached: dict[str, float] = {}
        for parent in frontier:
            for key_id in graph.key_ids_of(parent):
                if graph.memory_count(key_id, scope) > MEMBERS:
                    continue
                for link in graph.active_members(key_id, scope):
                    value = HOP_FACTOR * scores[parent]
                    if link.memory_id not in seen and value > reached.get(link.memory_id, 0.0):
                        reached[link.memory_id] = value
                        steps[link.memory_id] = Step(parent, key_id, scores[parent])
        scores.update(reached)
        seen.update(reached)
        frontier = top(reached, EXPANDED)
    return {m: s for m, s in scores.items() if graph.in_scope(m, scope)}, steps
