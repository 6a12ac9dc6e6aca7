"""From a question to scores of memories: first stage → bridge, repeated for more hops → depth and freshness.

What becomes of the scores (a set, a preview, a push) is the business of who asks. Nothing here learns or changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from keymem_daemon.core.freshness import ranking_factor
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.bridge import Bridge, best_bridges, crossings
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.textbook import fused
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.signals import FirstStage, Signals, first_stage, read_query

BRIDGE_SENTENCES: Final = 300

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Memories of a scope with their scores after factors, and everything that led to them."""

    signals: Signals
    stage: FirstStage
    bridges: Mapping[str, Bridge]
    factors: Mapping[str, float]
    scores: dict[str, float]
    score_kind: Literal["fused_rank", "rrf_fused_rank"]


async def ranked(engine: Engine, question: str, scope: Scope, hops: int, weights: Weights, now: float) -> Ranked:
    """Scores of all candidates of the scope; ``hops`` − 1 crossings."""
    signals = await read_query(engine, question, scope, weights)
    stage = await first_stage(engine, signals, scope, weights)
    bridges: dict[str, Bridge] = {}
    kind: Literal["fused_rank", "rrf_fused_rank"] = "fused_rank"
    if engine.settings.retrieval == "rrf":
        totals, kind = fused(engine.graph, stage.lexical, stage.keys, scope, hops), "rrf_fused_rank"
    else:
        totals, bridges = await _with_bridges(engine, signals, stage, scope, hops, weights)
    graph = engine.graph
    factors = {m: ranking_factor(graph.memories[m], now, engine.settings.half_lives) for m in totals if graph.in_scope(m, scope)}
    return Ranked(signals, stage, bridges, factors, {m: totals[m] * factor for m, factor in factors.items()}, kind)


async def _with_bridges(
    engine: Engine, signals: Signals, stage: FirstStage, scope: Scope, hops: int, weights: Weights
) -> tuple[dict[str, float], dict[str, Bridge]]:
    """Totals after ``hops`` − 1 rounds of crossing, each from the best three memories that were not crossed from before."""
    totals = dict(stage.scores)
    gains: dict[str, Bridge] = {}
    crossed: set[str] = set()
    for _ in range(hops - 1):
        hits = [m for m in top(totals, weights.bridge_hits + len(crossed)) if m not in crossed][: weights.bridge_hits]
        crossed.update(hits)
        ways = [
            way
            for hit in hits
            for way in crossings(engine.graph, engine.catalog.mentions, hit, min(1.0, totals[hit]), signals.named, scope, weights)
        ]
        if not ways:
            break
        targets = list(dict.fromkeys(way.target for way in ways))
        stage.coverage.load([*hits, *targets])
        if signals.direction is not None:
            await _load_cosines(engine, signals, stage, best_bridges(ways, stage.coverage, stage.cosines, weights))
        ways = [way for way in ways if engine.graph.in_scope(way.target, scope)]
        for target, bridge in best_bridges(ways, stage.coverage, stage.cosines, weights).items():
            before = gains.get(target)
            if before is None or bridge.value > before.value:
                gains[target] = bridge
        totals = {m: stage.scores.get(m, 0.0) + weights.bridge * (gains[m].value if m in gains else 0.0) for m in {*stage.scores, *gains}}
    return totals, gains


async def _load_cosines(engine: Engine, signals: Signals, stage: FirstStage, rough: Mapping[str, Bridge]) -> None:
    """Sentence cosines of the most promising targets; the others count without."""
    unknown = {target: bridge.value for target, bridge in rough.items() if target not in stage.cosines}
    pool = top(unknown, BRIDGE_SENTENCES)
    await engine.sentences.load([m for m in pool if m in engine.graph.memories])
    if signals.direction is not None:
        stage.cosines.update(engine.sentences.cosines(pool, signals.direction))


def route(engine: Engine, memory_id: str, found: Ranked) -> Result:
    """How retrieval came to the memory: hop 0 by itself, else the memories and keys on the way."""
    path: list[Result] = []
    at, seen = memory_id, {memory_id}
    while (bridge := found.bridges.get(at)) is not None and not _found_by_itself(at, engine, found.signals):
        way = bridge.crossing
        key = None if way.key_id is None else engine.graph.key(way.key_id)
        path.append({"memory_id": way.hit, "key_id": way.key_id, "concept": None if key is None else key.concept})
        if way.hit in seen:
            break
        seen.add(way.hit)
        at = way.hit
    path.reverse()
    return {"hop": len(path), "path": path}


def _found_by_itself(memory_id: str, engine: Engine, signals: Signals) -> bool:
    """Whether the query names or means one of the memory's own keys: then it takes no bridge to reach it."""
    return any(key_id in signals.named or key_id in signals.meant for key_id in engine.graph.key_ids_of(memory_id))
