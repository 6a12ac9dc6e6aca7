"""Direct retrieval: the memories that answer a query, and those that answer what is left of it. For the hook, scripts, people.

The plan: first stage → bridge (repeated for more hops) → depth and freshness → set selection. Every memory comes with the hop
and the path that led to it. Learning: the top result's matched links gain, links that were explored in vain lose a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keymem_daemon.core.decide.limits import checked_text
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.reinforce import READ_STEP, UNRETURNED_STEP, shift
from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.freshness import ranking_factor
from keymem_daemon.core.model import Link, Scope
from keymem_daemon.core.rank.bridge import Bridge, best_bridges, crossings
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.select import selected
from keymem_daemon.core.rank.textbook import fused
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.signals import FirstStage, Signals, first_stage, read_query
from keymem_daemon.service.views import memory_view, score, validity_view

TOP_K = 10
TOP_K_MAX = 100
HOPS = 2
HOPS_MAX = 5
BRIDGE_SENTENCES = 300
EXPLORED_LINKS = 64

Result = dict[str, Any]


async def retrieve(
    engine: Engine,
    caller: Caller,
    query: str,
    context: str | None = None,
    namespace: str | None = None,
    top_k: int = TOP_K,
    hops: int = HOPS,
    explain: bool = False,
    *,
    learn: bool = True,
) -> Result:
    """The best ``top_k`` memories of the scope. ``context`` is further text that the query stands in.

    Raises `InvalidArgument` for a blank query, ``top_k`` outside 1–100 or ``hops`` outside 1–5.
    """
    question = checked_query(query)
    checked_range("top_k", top_k, 1, TOP_K_MAX)
    checked_range("hops", hops, 1, HOPS_MAX)
    if context is not None and checked_text("context", context).strip() and context.strip() != question:
        question = f"{question}\n{context.strip()}"
    scope = caller.scope(namespace)
    now = engine.now()
    weights = Weights()
    signals = await read_query(engine, question, scope, weights)
    stage = await first_stage(engine, signals, scope, weights)
    if engine.settings.retrieval == "rrf":
        ranking, scores_kind = fused(engine.graph, stage.lexical, stage.keys, scope, hops), "rrf_fused_rank"
        bridges: dict[str, Bridge] = {}
        totals = dict(ranking)
    else:
        totals, bridges = await _with_bridges(engine, signals, stage, scope, hops, weights)
        scores_kind = "fused_rank"
    graph = engine.graph
    factors = {m: ranking_factor(graph.memories[m], now, engine.settings.half_lives) for m in totals if graph.in_scope(m, scope)}
    final = {m: totals[m] * factor for m, factor in factors.items()}
    if scores_kind == "fused_rank":
        chosen = selected(final, stage.coverage, top_k, weights)
    else:
        chosen = [(m, final[m]) for m in top(final, top_k)]
    memories = [
        {
            **memory_view(graph, graph.memories[m], scope),
            "score": round(value, 6),
            "score_kind": scores_kind,
            **_route(engine, m, bridges, signals),
            "validity": validity_view(graph.memories[m], now, engine.settings.half_lives),
            **({"why": _why(m, signals, stage, bridges, factors, value)} if explain else {}),
        }
        for m, value in chosen
    ]
    result = {
        "query": query,
        "namespace": caller.described(namespace),
        "memories": memories,
        "searched": {"namespaces": caller.searched(namespace), "memory_count": graph.active_count(scope)},
        "semantic": signals.semantic,
        "reranker": "sentence cosine" if signals.direction is not None else "none",
    }
    if learn and not await engine.writer.seen(caller.request_id):
        _learn(engine, caller, [m for m, _ in chosen], signals, bridges)
    return result


def checked_query(query: str, argument: str = "query") -> str:
    """The query without outer white space; raises when nothing is left."""
    text = checked_text(argument, query).strip()
    if not text:
        raise InvalidArgument(argument, "a question or keywords", "nothing but white space" if query else "an empty string")
    return text


def checked_range(argument: str, value: int, low: int, high: int) -> int:
    """``value`` if it lies within; raises `InvalidArgument` otherwise."""
    if not low <= value <= high:
        raise InvalidArgument(argument, f"a whole number from {low} to {high}", str(value))
    return value


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


def _route(engine: Engine, memory_id: str, bridges: Mapping[str, Bridge], signals: Signals) -> Result:
    """How retrieval came to the memory: hop 0 by itself, else the memories and keys on the way."""
    path: list[Result] = []
    at, seen = memory_id, {memory_id}
    while (bridge := bridges.get(at)) is not None and not _found_by_itself(at, engine, signals):
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


def _learn(engine: Engine, caller: Caller, chosen: list[str], signals: Signals, bridges: Mapping[str, Bridge]) -> None:
    """The top result's matched links +0.1; links of crossings to memories that were not returned −0.005."""
    if not chosen:
        return
    graph = engine.graph
    matched = {*signals.named, *signals.meant}
    used: list[tuple[str, str]] = [(key_id, chosen[0]) for key_id in graph.key_ids_of(chosen[0]) if key_id in matched]
    bridge = bridges.get(chosen[0])
    if bridge is not None and bridge.crossing.key_id is not None:
        used.append((bridge.crossing.key_id, chosen[0]))
    returned = set(chosen)
    vain = [(b.crossing.key_id, target) for target, b in bridges.items() if target not in returned and b.crossing.key_id is not None]

    def reinforce(plan: Plan) -> None:
        for pairs, step in ((dict.fromkeys(used), READ_STEP), (dict.fromkeys(sorted(vain)[:EXPLORED_LINKS]), UNRETURNED_STEP)):
            for key_id, memory_id in pairs:
                link: Link | None = plan.graph.link(key_id, memory_id)
                if link is not None:
                    shift(plan, link, step)

    engine.soften(caller.request_id, reinforce)


def _why(
    memory_id: str, signals: Signals, stage: FirstStage, bridges: Mapping[str, Bridge], factors: Mapping[str, float], final: float
) -> Result:
    """The signals behind a score."""
    bridge = bridges.get(memory_id)
    return {
        "first_stage": score(stage.scores.get(memory_id, 0.0)),
        "lexical": score(stage.lexical.get(memory_id, 0.0)),
        "keys": score(stage.keys.get(memory_id, 0.0)),
        "sentence_cosine": score(stage.cosines.get(memory_id, 0.0)),
        "terms": sorted(stage.coverage.terms(memory_id)),
        "bridge": 0.0 if bridge is None else score(bridge.value),
        "factor": score(factors[memory_id]),
        "final": score(final),
        "named_keys": sorted(signals.named),
    }
