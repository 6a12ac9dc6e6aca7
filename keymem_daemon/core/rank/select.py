"""Set selection: ten memories that say different things beat ten that say the same.

Greedy: the next memory is the one whose score × (1 − 0.25 · share of what it covers that is covered already) is best. What was
not chosen follows by its score so lowered: first the rest of those that could be chosen, then others, never above the one before. So the
scores of the whole list fall, and a shorter list is the beginning of a longer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from keymem_daemon.core.rank.firststage import Coverage
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.weights import Weights

LONGEST: Final = 140
"""So many memories are looked at for a list that is longer than what could be chosen; retrieval lists at most 100."""


def selected(scores: Mapping[str, float], coverage: Coverage, limit: int, weights: Weights) -> list[tuple[str, float]]:
    """Up to ``limit`` memories with their lowered scores, best first; ties by id. ``coverage`` must know the best 4 × selected."""
    pool = top(scores, 4 * weights.selected)
    choosable = set(pool)
    coverage.load(pool)
    covered = 0
    chosen: list[tuple[str, float]] = []
    while pool and len(chosen) < min(limit, weights.selected):
        lowered = {m: scores[m] * (1 - weights.overlap_penalty * coverage.overlap(m, covered)) for m in pool}
        best = top(lowered, 1)[0]
        chosen.append((best, lowered[best]))
        covered |= coverage.mask(best)
        pool.remove(best)
    for rest in (pool, [m for m in top(scores, LONGEST) if m not in choosable] if limit > len(choosable) else []):
        coverage.load(rest)
        lowered = {m: scores[m] * (1 - weights.overlap_penalty * coverage.overlap(m, covered)) for m in rest}
        for m in top(lowered, limit - len(chosen)) if len(chosen) < limit else ():
            chosen.append((m, min(lowered[m], chosen[-1][1])))
    return chosen
