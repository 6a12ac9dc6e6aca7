"""browse_keys, read_key, read_memory: the steps of a walk, each the agent's decision."""

from __future__ import annotations

from typing import Any, Final

from keymem_daemon.core.decide.learn import decide_alias_hit, decide_learn
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.reinforce import decide_read, linked
from keymem_daemon.core.errors import NotFound
from keymem_daemon.core.freshness import ranking_factor
from keymem_daemon.core.model import Link, Scope
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.text import fold
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.retrieve import checked_query, checked_range
from keymem_daemon.service.signals import read_query
from keymem_daemon.service.views import key_facts, key_view, memory_view, score, validity_view

BROWSE_LIMIT: Final = 20
BROWSE_LIMIT_MAX: Final = 100
READ_LIMIT: Final = 10
READ_LIMIT_MAX: Final = 50
OFFSET_MAX: Final = 10_000_000
HANDLE_KEYS: Final = 6

Result = dict[str, Any]


async def browse_keys(
    engine: Engine,
    caller: Caller,
    namespace: str,
    hubs_only: bool = False,
    limit: int = BROWSE_LIMIT,
    offset: int = 0,
) -> Result:
    """The keys of a namespace (``*``: of all): hubs first, then by memories, then by name."""
    checked_range("limit", limit, 1, BROWSE_LIMIT_MAX)
    checked_range("offset", offset, 0, OFFSET_MAX)
    scope = caller.scope(namespace)
    engine.now()
    graph, directory = engine.graph, engine.catalog.directory
    folded = None if scope is None else next(iter(scope))
    hub = engine.settings.key_hub_min_links
    total = directory.hubs(folded, hub) if hubs_only else directory.count(folded)
    page = list(directory.page(folded, offset, max(0, min(limit, total - offset))))
    count = graph.active_count(scope)
    return {
        "status": "found" if page else "empty_namespace" if not count else "no_match",
        "namespace": caller.described(namespace),
        "memory_count": count,
        "key_count": directory.count(folded),
        "keys": [key_view(graph, graph.keys[key_id], scope, hub) for key_id in page],
        "next_offset": offset + limit if offset + limit < total else None,
        "searched": {"namespaces": caller.searched(namespace), "memory_count": count},
    }


async def read_key(
    engine: Engine,
    caller: Caller,
    key_id: str,
    query: str | None = None,
    namespace: str | None = None,
    limit: int = READ_LIMIT,
    offset: int = 0,
) -> Result:
    """Handles of a key's memories, best first: by ``query`` where given, and by link weight, depth and freshness."""
    checked_range("limit", limit, 1, READ_LIMIT_MAX)
    checked_range("offset", offset, 0, OFFSET_MAX)
    question = None if query is None else checked_query(query)
    scope = caller.scope(namespace)
    now = engine.now()
    graph = engine.graph
    key = graph.key(key_id)
    links = {} if key is None else {link.memory_id: link for link in graph.active_members(key_id, scope)}
    if key is None or (not links and scope is not None and graph.members(key_id) and not graph.memory_count(key_id, scope)):
        raise NotFound("key_id", "key in this scope" if scope is not None else "key", key_id, "Use a key_id from recall, browse_keys or read_memory.")
    relevance, kind = await _relevance_within(engine, links, question, scope)
    links = {m: link for m, link in links.items() if graph.in_scope(m, scope)}
    scores = {
        m: relevance.get(m, 1.0) * link.weight * ranking_factor(graph.memories[m], now, engine.settings.half_lives)
        for m, link in links.items()
    }
    ranked = sorted(scores, key=lambda m: (-scores[m], -graph.memories[m].created_at, m))
    page = ranked[offset : offset + limit]
    return {
        "key": key_view(graph, key, scope, engine.settings.key_hub_min_links),
        "memories": [_handle(engine, links[m], scores[m], relevance.get(m), kind, scope, now) for m in page],
        "total": len(ranked),
        "next_offset": offset + limit if offset + limit < len(ranked) else None,
        "scoring": {
            "score_kind": kind,
            "formula": ("content_relevance × " if question else "") + "link_weight × depth factor × freshness factor",
        },
        "searched": {"namespaces": caller.searched(namespace), "memory_count": graph.active_count(scope)},
    }


async def _relevance_within(
    engine: Engine, links: dict[str, Link], question: str | None, scope: Scope
) -> tuple[dict[str, float], str]:
    """Relevance of each member's text to the question: bounded BM25 for all, with the sentence cosine for the best of them."""
    if question is None:
        return {}, "link_strength"
    weights = engine.weights
    signals = await read_query(engine, question, scope, weights)
    ids = list(links)
    bm25 = engine.catalog.lexical.score(ids, signals.weighted, scope)
    bounded = {m: float(value) / (1 + float(value)) for m, value in zip(ids, bm25, strict=True)}
    if signals.direction is None:
        return bounded, "bounded_bm25"
    strength = {m: (1 + bounded[m]) * links[m].weight for m in ids}
    pool = top(strength, weights.sentence_pool)
    await engine.sentences.load([m for m in pool if m in engine.graph.memories])
    cosines = engine.sentences.cosines(pool, signals.direction)
    return {m: (bounded[m] + cosines.get(m, 0.0)) / 2 for m in ids}, "within_key_rank"


def _handle(engine: Engine, link: Link, value: float, relevance: float | None, kind: str, scope: Scope, now: float) -> Result:
    """A memory without its content: what one needs to decide whether to read it."""
    graph = engine.graph
    memory = graph.memories[link.memory_id]
    handle: Result = {
        "memory_id": memory.id,
        "score": score(value),
        "score_kind": kind,
        "link_weight": score(link.weight),
        "depth": score(memory.depth),
        "namespace": memory.namespace,
        "keys": [graph.name_in(other.key_id, scope) for other in graph.links_of(memory.id)[:HANDLE_KEYS]],
        "validity": validity_view(memory, now, engine.settings.half_lives),
    }
    if relevance is not None:
        handle["content_relevance"] = score(relevance)
    return handle


async def read_memory(engine: Engine, caller: Caller, memory_id: str, via_key_id: str | None = None, namespace: str | None = None) -> Result:
    """A memory in full with every key it hangs on. Counts an access and strengthens the one link that was walked."""
    scope = caller.scope(namespace)
    now = engine.now()
    graph = engine.graph
    plan = Plan(graph)
    memory = plan.active_memory("memory_id", memory_id, scope)
    if via_key_id is not None:
        linked(plan, "via_key_id", via_key_id, memory_id, scope)
    hub = engine.settings.key_hub_min_links
    result: Result = {
        "memory": memory_view(graph, memory, scope),
        "validity": validity_view(memory, now, engine.settings.half_lives),
        "keys": [
            {
                **key_facts(graph, graph.keys[link.key_id], scope, hub),
                "key_type": graph.keys[link.key_id].key_type,
                "aliases": list(graph.surfaces_in(link.key_id, scope)[1:]),
                "link_weight": score(link.weight),
            }
            for link in graph.links_of(memory_id)
        ],
        "via_key_id": via_key_id,
        "searched": {"namespaces": caller.searched(namespace), "memory_count": graph.active_count(scope)},
    }
    if not await engine.writer.seen(caller.request_id):
        await _reinforce(engine, caller, memory_id, via_key_id, now)
    return result


async def _reinforce(engine: Engine, caller: Caller, memory_id: str, via_key_id: str | None, now: float) -> None:
    recent = None if via_key_id is None else engine.recent.leading_to(via_key_id, caller.actor.session, now)
    # A query is the caller's text: it becomes a word of its own namespaces, never of one that others read as well.
    memory = engine.graph.memory(memory_id)
    learns = recent is not None and engine.settings.autokey and memory is not None and caller.owns(memory.namespace)
    rules, vectors = await engine.key_rules([recent.query] if recent is not None and learns else [])

    def decide(plan: Plan) -> None:
        decide_read(plan, memory_id, via_key_id, now, None)
        if recent is None or via_key_id is None or not learns:
            return
        engine.within(rules, plan)
        if via_key_id in recent.learned:
            decide_alias_hit(plan, via_key_id, memory_id, recent.query)
        if via_key_id in recent.weak:
            decide_learn(plan, via_key_id, memory_id, recent.query, recent.weak[via_key_id], now, engine.learning, rules)

    engine.soften(caller.request_id, decide)
    engine.catalog.put_keys({surface: vector for surface, vector in vectors.items() if engine.graph.key_id_of_folded(fold(surface))})
