"""What the scheduler has done now and then: sweep what has expired, prune what was never used, forget old request ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from keymem_daemon.core.decide.forget import decide_expire
from keymem_daemon.core.decide.learn import decide_prune
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.model import Actor, Scope
from keymem_daemon.core.text import fold
from keymem_daemon.service.engine import Engine

REQUESTS_KEPT_S: Final = 86_400.0

Result = dict[str, Any]


async def sweep(engine: Engine, scope: Scope = None) -> Result:
    """Delete what has expired and what learning no longer needs; ``{expired, pruned}``, of a scope only how many of its own expired."""
    now = engine.now()
    actor = Actor(tool="sweep")
    texts: list[str] = []

    def decide(plan: Plan) -> Result:
        due = plan.graph.due(now)
        texts.extend(sentence for memory in due for sentence in engine.catalog.sentences_of(memory.id))
        own = sum(scope is None or fold(memory.namespace) in scope for memory in due)
        return {"ids": decide_expire(plan, now), "own": own}

    # With nothing expired, too: a purge that could not be finished when it was asked for is finished now.
    expired = await engine.writer.write("expire", actor, None, decide, after=lambda result: lambda: engine.store.purge(result["ids"], texts))
    engine.discard_vectors(texts)
    pruned = await engine.writer.write("prune", actor, None, lambda plan: _pruned(engine, plan, now))
    return {"expired": expired["own"], **(pruned if scope is None else {})}


def purging(engine: Engine, memory_ids: Sequence[str]) -> Callable[[], None] | None:
    """The store call that clears the bytes of these memories' texts, if there are any."""
    return (lambda: engine.store.purge(memory_ids, ())) if memory_ids else None


def _pruned(engine: Engine, plan: Plan, now: float) -> Result:
    return {"pruned": decide_prune(plan, now, engine.learning)}


async def forget_requests(engine: Engine) -> int:
    """Drop the recorded answers of requests older than a day; returns how many."""
    oldest = engine.clock.now() - REQUESTS_KEPT_S
    return await engine.in_store(lambda: engine.store.forget_requests_before(oldest))


async def flush(engine: Engine) -> int:
    """Write the soft state now; returns how many values."""
    return await engine.writer.flush_soft()
