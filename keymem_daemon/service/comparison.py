"""Evidence for comparison questions: of each of the two things that a question compares, the memory that says most about it.

Only what is selected changes. A side's memories are those that hang on its key or mention it; how well one answers is its score, the
cosine of its best sentence to what is compared, and twice that share when it is about the side.
"""

from __future__ import annotations

from typing import Final

from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.comparison import Comparison, comparison_in, with_both_sides
from keymem_daemon.core.rank.keymatch import normalised, top
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.ranking import Ranked

SIDE_MEMORIES: Final = 50
NOT_ABOUT: Final = 0.5

Chosen = list[tuple[str, float]]


async def with_evidence_for_both(engine: Engine, question: str, found: Ranked, chosen: Chosen, scope: Scope) -> Chosen:
    """``chosen`` with support for both sides of a comparison; itself for any other question and for a single place."""
    comparison = comparison_in(question, found.signals.named)
    if comparison is None or len(chosen) < 2 or not engine.settings.task_evidence_selection:
        return chosen
    theirs = [_memories_of(engine, key_id, found, scope) for key_id in comparison.sides]
    support = await _support(engine, comparison, theirs, found)
    alive = [{m: value for m, value in values.items() if engine.graph.in_scope(m, scope)} for values in support]
    return with_both_sides(chosen, alive, theirs, found.scores)


def _memories_of(engine: Engine, key_id: str, found: Ranked, scope: Scope) -> dict[str, float]:
    """The side's memories by how much they are about it; of many those that were found, best first."""
    graph = engine.graph
    about: dict[str, float] = {}
    if graph.memory_count(key_id, scope) <= SIDE_MEMORIES:
        about = {link.memory_id: 1.0 if link.position == 0 else NOT_ABOUT for link in graph.active_members(key_id, scope)}
    mentioning = set(engine.catalog.mentions.mentions_of(key_id))
    for memory_id in top(found.scores, 2 * SIDE_MEMORIES):
        link = graph.link(key_id, memory_id)
        if link is not None:
            about.setdefault(memory_id, 1.0 if link.position == 0 else NOT_ABOUT)
        elif memory_id in mentioning:
            about.setdefault(memory_id, NOT_ABOUT)
    return about


async def _support(
    engine: Engine, comparison: Comparison, theirs: list[dict[str, float]], found: Ranked
) -> list[dict[str, float]]:
    relative = normalised(found.scores)
    cosines: dict[str, float] = {}
    if found.signals.direction is not None and comparison.dimension:
        pool = list(dict.fromkeys(memory_id for about in theirs for memory_id in about))
        await engine.sentences.load([m for m in pool if m in engine.graph.memories])
        (direction,) = await engine.light.encode([comparison.dimension], keep=False)
        cosines = engine.sentences.cosines(pool, direction)
    return [{m: share * (relative.get(m, 0.0) + cosines.get(m, 0.0)) for m, share in about.items()} for about in theirs]
