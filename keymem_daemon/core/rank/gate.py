"""Whether anything answers at all: judged on raw signals, never on scores that were normalised among the candidates.

``evidence = best sentence cosine + 0.15 · share of the query's IDF mass that the memory covers``, where words that no memory
has count with the IDF of a term in no document: a question about somebody unknown is mostly about what is not there.

A key that the query names passes too, when it is most of what was said: a name always, other keys when they carry half of the
query's IDF mass. That one common concept of a long question ("family", "work") is stored says nothing about the question.

Floors are the profile's. Measured on LoCoMo dev (631 questions and 300 of another conversation each): AUROC 0.999; at 0.45, with
the rule for keys, 99.7 % of the answerable questions and 4 % of the foreign ones pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.rank.firststage import Coverage
from keymem_daemon.core.rank.weights import Weights

NAMED_SHARE: Final = 0.5


def evidence(memory_id: str, cosines: Mapping[str, float], coverage: Coverage, weights: Weights) -> float:
    """How well a memory answers, in absolute terms; ``coverage`` must know it."""
    return cosines.get(memory_id, 0.0) + weights.gate_coverage * coverage.absolute(coverage.terms(memory_id))


def named_enough(graph: Graph, named: Collection[str], terms: Collection[str], coverage: Coverage) -> bool:
    """Whether the keys that the query names are what it is about. ``terms`` are the query terms that name them."""
    if any(graph.keys[key_id].key_type == "name" for key_id in named):
        return True
    return bool(named) and coverage.absolute(terms) >= NAMED_SHARE
