"""From a question to scores of memories: first stage → bridge, repeated for more hops → depth and freshness.

What becomes of the scores (a set, a preview, a push) is the business of who asks. Nothing here learns or changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from keymem_daemon.core.freshness import ranking_factor
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.bridge import Bridge, Road, best_bridges, roads
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.lead import about_from
from keymem_daemon.core.rank.textbook import Step, fused
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.ports import Matrix
from keymem_daemon.service.deadline import Deadline
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.signals import FirstStage, Signals, first_stage, read_query, sentence_cosines

BRIDGE_SENTENCES: Final = 300

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Memories of a scope with their scores after factors, and everything that led to them.

    ``totals`` are the scores before depth and freshness; ``steps`` say how the textbook plan came to them.
    """

    signals: Signals
    stage: FirstStage
    bridges: Mapping[str, Bridge]
    totals: Mapping[str, float]
    scores: dict[str, float]
    score_kind: Literal["fused_rank", "rrf_fused_rank"]
    steps: Mapping[str, Step]


async def ranked(
    engine: Engine, question: str, scope: Scope, hops: int, weights: Weights, now: float, deadline: Deadline | None = None
) -> Ranked:
    """Scores of all candidates of the scope; ``hops`` − 1 crossings, or as many as there is time for."""
    due = deadline or engine.no_deadline()
    signals = await read_query(engine, question, scope, weights, due)
    stage = await first_stage(engine, signals, scope, weights, due)
    bridges: dict[str, Bridge] = {}
    steps: Mapping[str, Step] = {}
    kind: Literal["fused_rank", "rrf_fused_rank"] = "fused_rank"
    if engine.settings.retrieval == "rrf":
        totals, steps = fused(engine.graph, stage.lexical, stage.keys, scope, 1 if hops > 1 and due.passed("hop 2") else hops)
        kind = "rrf_fused_rank"
    else:
        totals, bridges = await _with_bridges(engine, signals, stage, scope, hops, weights, due)
    graph, half_lives = engine.graph, engine.settings.half_lives
    scores = {m: total * ranking_factor(graph.memories[m], now, half_lives) for m, total in totals.items() if graph.in_scope(m, scope)}
    return Ranked(signals, stage, bridges, totals, scores, kind, steps)


async def _with_bridges(
    engine: Engine, signals: Signals, stage: FirstStage, scope: Scope, hops: int, weights: Weights, due: Deadline
) -> tuple[dict[str, float], dict[str, Bridge]]:
    """Totals after ``hops`` − 1 rounds of crossing, each from the best three memories that were not crossed from before."""
    totals = dict(stage.scores)
    gains: dict[str, Bridge] = {}
    crossed: set[str] = set()
    for hop in range(2, hops + 1):
        hits = [m for m in top(totals, weights.bridge_hits + len(crossed)) if m not in crossed][: weights.bridge_hits]
        crossed.update(hits)
        ways: list[Road] = []
        for hit in hits:
            if due.passed(f"hop {hop}"):
                break
            about, score = about_from(stage.leader, hit, weights), min(1.0, totals[hit])
            ways.extend(roads(engine.graph, engine.catalog.mentions, hit, score, signals.named, scope, weights, about=about))
        if not ways:
            break
        stage.coverage.load([*hits, *(target for road in ways for target in road.targets)])
        if signals.direction is not None:
            await _load_cosines(engine, signals.direction, stage, best_bridges(ways, stage.coverage, stage.cosines, weights), due)
        for target, bridge in best_bridges(ways, stage.coverage, stage.cosines, weights).items():
            before = gains.get(target)
            # While sentences were awaited a target may have gone.
            if (before is None or bridge.value > before.value) and engine.graph.in_scope(target, scope):
                gains[target] = bridge
        totals = dict(stage.scores)
        for target, bridge in gains.items():
            totals[target] = totals.get(target, 0.0) + weights.bridge * bridge.value
    return totals, gains


async def _load_cosines(engine: Engine, direction: Matrix, stage: FirstStage, rough: Mapping[str, Bridge], due: Deadline) -> None:
    """Sentence cosines of the most promising targets; the others count without."""
    unknown = {target: bridge.value for target, bridge in rough.items() if target not in stage.cosines}
    stage.cosines.update(await sentence_cosines(engine, top(unknown, BRIDGE_SENTENCES), direction, due))


def route(engine: Engine, memory_id: str, found: Ranked, scope: Scope) -> Result:
    """How retrieval came to the memory: hop 0 by itself, else the memories and keys on the way, as the scope calls them."""
    path: list[Result] = []
    at, seen = memory_id, {memory_id}
    # Two memories may each gain most over the other: the way ends where it would turn back.
    while (bridge := found.bridges.get(at)) is not None and bridge.hit not in seen and not found_by_itself(at, engine, found.signals):
        known = bridge.key_id is not None and bridge.key_id in engine.graph.keys
        concept = engine.graph.name_in(bridge.key_id, scope) if known and bridge.key_id is not None else None
        path.append({"memory_id": bridge.hit, "key_id": bridge.key_id, "concept": concept})
        seen.add(bridge.hit)
        at = bridge.hit
    path.reverse()
    return {"hop": len(path), "path": path}


def found_by_itself(memory_id: str, engine: Engine, signals: Signals) -> bool:
    """Whether the query names or means one of the memory's own keys: then it takes no bridge to reach it."""
    return any(key_id in signals.named or key_id in signals.meant for key_id in engine.graph.key_ids_of(memory_id))
