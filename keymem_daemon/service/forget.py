"""forget: delete a memory for good, from the graph and from every file that keymem writes itself.

An id of which only history knows any more is forgotten likewise: whatever has a text can be named to have it removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keymem_daemon.core.decide.forget import decide_forget
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine

NOTE = (
    "Gone from the store, its history and its indexes, with what earlier versions of it had left in history. "
    "Backups and exports that you made yourself still have it."
)

Result = dict[str, Any]


async def forget(engine: Engine, caller: Caller, memory_id: str, namespace: str | None = None) -> Result:
    """Delete one memory, active, inactive or of the past; ``{deleted, note}``. Raises `NotFound`.

    What only history knows is of no namespace any more: to name it takes a scope of everything.
    """
    scope = caller.scope(namespace)
    engine.now()
    past = scope is None and memory_id not in engine.graph.memories and await engine.in_store(lambda: engine.store.remembers(memory_id))
    texts: list[str] = []

    def decide(plan: Plan) -> Result:
        if past and plan.graph.memory(memory_id) is None:
            return {"deleted": memory_id, "note": NOTE}
        sentences = engine.catalog.sentences_of(memory_id) if memory_id in engine.graph.memories else []
        forgotten = decide_forget(plan, memory_id, scope)
        texts.extend((forgotten.memory.content, *forgotten.surfaces, *sentences))
        return {
            "deleted": memory_id,
            "note": NOTE if forgotten.kept is None else f"{NOTE} {_still_there(forgotten.kept)}",
        }

    def after(_result: Result) -> Callable[[], None]:
        return lambda: engine.store.purge([memory_id], texts)

    result = await engine.writer.write("forget", caller.actor, caller.request_id, decide, after=after)
    engine.discard_vectors(texts)
    return result


def _still_there(memory_id: str) -> str:
    return f"What it had replaced, {memory_id}, is still there, inactive: forget that id too if its text is to go."
