"""inject: what the prompt hook adds to a turn. At most a few memories that clearly answer the prompt, or nothing.

The ranking chooses, among those whose relevance is above the floor. Passive in every sense: no count, no weight, no learning, no log of the prompt. What was shown in a session is not shown again
until twenty prompts later, or until it was confirmed or corrected. When its budget runs out it answers with what it can vouch for by
then: without sentences to judge by that is nothing, rather than a guess.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.deadline import Deadline
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.first import learned_first
from keymem_daemon.service.ranking import ranked, route
from keymem_daemon.service.retrieve import checked_range
from keymem_daemon.service.signals import query_grounds, sentence_cosines
from keymem_daemon.service.views import score, validity_view

TOP_K: Final = 2
TOP_K_MAX: Final = 20
BUDGET_MS: Final = 800
BUDGET_MS_MAX: Final = 60_000
CANDIDATES: Final = 20
# The share of the budget that is kept for what comes after the last thing that may be left out.
RESERVE: Final = 0.1

Result = dict[str, Any]


async def inject(
    engine: Engine,
    caller: Caller,
    prompt: str,
    session_id: str | None = None,
    namespace: str | None = None,
    top_k: int = TOP_K,
    budget_ms: int = BUDGET_MS,
) -> Result:
    """Memories for a prompt, most relevant first; ``{memories, searched, took_ms}``.

    Raises `InvalidArgument` for ``top_k`` outside 0–20 or ``budget_ms`` outside 1–60,000. An empty prompt finds nothing.
    """
    checked_range("top_k", top_k, 0, TOP_K_MAX)
    checked_range("budget_ms", budget_ms, 1, BUDGET_MS_MAX)
    began = engine.monotonic()
    scope = caller.scope(namespace)
    engine.now()
    engine.shown.begin(session_id)
    memories: list[Result] = []
    deadline = engine.deadline(budget_ms * (1 - RESERVE))
    if prompt.strip() and top_k and engine.graph.active_count(scope):
        try:
            memories = await _found(engine, prompt.strip(), session_id, scope, top_k, deadline)
        except InvalidArgument:
            memories = []  # a prompt is whatever the user typed: one that cannot be searched finds nothing
    return {
        "memories": memories,
        "searched": {"namespaces": caller.searched(namespace), "memory_count": engine.graph.active_count(scope)},
        "took_ms": round((engine.monotonic() - began) * 1000, 1),
        **({"partial": True} if deadline.skipped else {}),
    }


async def _found(engine: Engine, prompt: str, session_id: str | None, scope: Scope, top_k: int, deadline: Deadline) -> list[Result]:
    weights = engine.weights
    now = engine.now()
    found = await ranked(engine, prompt, scope, 2, weights, now, deadline)
    if found.signals.direction is None:
        return []  # without vectors there is no evidence to judge by
    pool = top(found.scores, CANDIDATES)
    cosines = await sentence_cosines(engine, pool, found.signals.direction, deadline)
    # What is pushed needs firmer ground than what is asked for: words near in meaning do not count as covered.
    grounds = query_grounds(engine, replace(found.signals, near={}), scope)
    grounds.load(pool)
    relevance = {m: grounds.evidence(m, cosines.get(m, 0.0), weights) for m in pool if engine.graph.in_scope(m, scope)}
    ranking = await learned_first(engine, found.signals, found.stage, [(m, found.scores[m]) for m in pool], weights, deadline)
    vouched = [m for m, _ in ranking if relevance.get(m, 0.0) >= engine.profile.hook_floor and engine.graph.in_scope(m, scope)]
    new = [m for m in vouched if engine.shown.is_new(session_id, engine.graph.memories[m])]
    memories: list[Result] = []
    for memory_id in sorted(new[:top_k], key=lambda m: -relevance[m]):
        memory = engine.graph.memories[memory_id]
        engine.shown.note(session_id, memory)
        memories.append(
            {
                "id": memory.id,
                "content": memory.content,
                "namespace": memory.namespace,
                "relevance": score(relevance[memory_id]),
                "matched_key": _matched_key(engine, memory_id, found.signals.key_similarities(), scope),
                "path": route(engine, memory_id, found, scope)["path"],
                "validity": validity_view(memory, now, engine.settings.half_lives),
            }
        )
    return memories


def _matched_key(engine: Engine, memory_id: str, similarities: dict[str, float], scope: Scope) -> Result | None:
    """The memory's key that the prompt names or means most, else the key it is about."""
    links = engine.graph.links_of(memory_id)
    if not links:
        return None
    best = max(links, key=lambda link: similarities.get(link.key_id, 0.0))
    return {"key_id": best.key_id, "concept": engine.graph.name_in(best.key_id, scope)}
