"""forget: delete a memory for good, from the graph and from every file that keymem writes itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keymem_daemon.core.decide.forget import decide_forget
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine

NOTE = "Gone from the store, its history and its indexes. Backups and exports that you made yourself still have it."

Result = dict[str, Any]


async def forget(engine: Engine, caller: Caller, memory_id: str) -> Result:
    """Delete one memory, active or not; ``{deleted, note}``. Raises `NotFound`."""
    engine.now()
    texts: list[str] = []

    def decide(plan: Plan) -> Result:
        sentences = engine.catalog.sentences_of(memory_id) if memory_id in engine.graph.memories else []
        forgotten = decide_forget(plan, memory_id, None)
        texts.extend((forgotten.memory.content, *forgotten.surfaces, *sentences))
        return {"deleted": memory_id, "note": NOTE}

    def after(_result: Result) -> Callable[[], None]:
        return lambda: engine.store.purge([memory_id], texts)

    result = await engine.writer.write("forget", caller.actor, caller.request_id, decide, after=after)
    engine.discard_vectors(texts)
    return result
