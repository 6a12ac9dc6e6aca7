"""Direct retrieval: the memories that answer a query, and those that answer what is left of it. For the hook, scripts, people.

The plan: first stage → bridge (repeated for more hops) → depth and freshness → set selection → the first place. Every memory comes with the hop
and the path that led to it. What is late is left out, and the answer marked ``partial``. Learning: the top result's matched links gain, links that were explored in vain lose a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest
from typing import Any

from keymem_daemon.core.decide.limits import checked_text
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.reinforce import READ_STEP, UNRETURNED_STEP, shift
from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.model import Link
from keymem_daemon.core.rank.bridge import Bridge
from keymem_daemon.core.rank.comparison import comparison_in
from keymem_daemon.core.rank.first import FIRST
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.select import selected
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.comparison import with_evidence_for_both
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.explain import explained
from keymem_daemon.service.first import learned_first
from keymem_daemon.service.ranking import ranked, route
from keymem_daemon.service.signals import Signals
from keymem_daemon.service.views import memory_view, validity_view

TOP_K = 10
TOP_K_MAX = 100
HOPS = 2
HOPS_MAX = 5
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
    weights = engine.weights
    deadline = engine.deadline()
    found = await ranked(engine, question, scope, hops, weights, now, deadline)
    graph = engine.graph
    if found.score_kind == "fused_rank":
        best = selected(found.scores, found.stage.coverage, max(top_k, FIRST), weights)
        as_selected = dict(best)
        if comparison_in(question, found.signals.named) is None:
            chosen = await learned_first(engine, found.signals, found.stage, best, weights, deadline)
        else:
            chosen = await with_evidence_for_both(engine, question, found, best, scope)
        # While vectors were awaited a memory may have gone.
        chosen = [(m, value) for m, value in chosen[:top_k] if graph.in_scope(m, scope)]
    else:
        chosen = [(m, found.scores[m]) for m in top(found.scores, top_k)]
        as_selected = dict(chosen)
    memories = [
        {
            **memory_view(graph, graph.memories[m], scope),
            "score": round(value, 6),
            "score_kind": found.score_kind,
            **route(engine, m, found, scope),
            "validity": validity_view(graph.memories[m], now, engine.settings.half_lives),
            **({"why": explained(engine, m, found, as_selected.get(m, value), value, scope, now)} if explain else {}),
        }
        for m, value in chosen
    ]
    result: Result = {
        "query": query,
        "namespace": caller.described(namespace),
        "memories": memories,
        "searched": {"namespaces": caller.searched(namespace), "memory_count": graph.active_count(scope)},
        "semantic": found.signals.semantic,
        "reranker": "sentence cosine" if found.signals.direction is not None else "none",
    }
    if deadline.skipped:
        result["partial"] = True
        if explain:
            result["skipped"] = list(deadline.skipped)
    if learn and not await engine.writer.seen(caller.request_id):
        _learn(engine, caller, [m for m, _ in chosen], found.signals, found.bridges)
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


def _learn(engine: Engine, caller: Caller, chosen: list[str], signals: Signals, bridges: Mapping[str, Bridge]) -> None:
    """The top result's matched links +0.1; links of crossings to memories that were not returned −0.005."""
    if not chosen:
        return
    graph = engine.graph
    matched = {*signals.named, *signals.meant}
    used: list[tuple[str, str]] = [(key_id, chosen[0]) for key_id in graph.key_ids_of(chosen[0]) if key_id in matched]
    bridge = bridges.get(chosen[0])
    if bridge is not None and bridge.key_id is not None:
        used.append((bridge.key_id, chosen[0]))
    returned = set(chosen)
    vain = nsmallest(EXPLORED_LINKS, ((b.key_id, target) for target, b in bridges.items() if target not in returned and b.key_id is not None))

    def reinforce(plan: Plan) -> None:
        for pairs, step in ((dict.fromkeys(used), READ_STEP), (dict.fromkeys(vain), UNRETURNED_STEP)):
            for key_id, memory_id in pairs:
                link: Link | None = plan.graph.link(key_id, memory_id)
                if link is not None:
                    shift(plan, link, step)

    engine.soften(caller.request_id, reinforce)
