"""From arguments to the services: one small function a verb, with no rule of its own.

Each takes the engine, the caller and parsed arguments, and returns the JSON-ready result or raises `KeymemError`.
"""

from __future__ import annotations

from typing import Any

from keymem_daemon.api import arguments as a
from keymem_daemon.core.errors import KeymemError
from keymem_daemon.service import confirm as confirm_service
from keymem_daemon.service import correct as correct_service
from keymem_daemon.service import dismiss as dismiss_service
from keymem_daemon.service import forget as forget_service
from keymem_daemon.service import inject as inject_service
from keymem_daemon.service import inspection, maintenance, navigate
from keymem_daemon.service import recall as recall_service
from keymem_daemon.service import remember as remember_service
from keymem_daemon.service import retrieve as retrieve_service
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.requests import CorrectionRequest, RememberItem

Result = dict[str, Any]


async def recall(engine: Engine, caller: Caller, given: a.Recall) -> Result:
    return await recall_service.recall(
        engine, caller, given.query, given.context, given.namespace, given.top_k, given.explain, given.max_chars
    )


async def browse_keys(engine: Engine, caller: Caller, given: a.Browse) -> Result:
    return await navigate.browse_keys(engine, caller, given.namespace, given.hubs_only, given.limit, given.offset)


async def read_key(engine: Engine, caller: Caller, given: a.ReadKey) -> Result:
    return await navigate.read_key(
        engine, caller, given.key_id, given.query, given.namespace, given.limit, given.offset
    )


async def read_memory(engine: Engine, caller: Caller, given: a.ReadMemory) -> Result:
    return await navigate.read_memory(engine, caller, given.memory_id, given.via_key_id, given.namespace)


async def confirm_memory(engine: Engine, caller: Caller, given: a.Confirm) -> Result:
    return await confirm_service.confirm_memory(
        engine, caller, given.memory_id, given.evidence, given.namespace, given.source
    )


async def remember(engine: Engine, caller: Caller, given: a.Remember) -> Result:
    return await remember_service.remember(engine, caller, _item(given))


async def remember_batch(engine: Engine, caller: Caller, given: a.RememberBatch) -> Result:
    items: list[RememberItem | KeymemError] = []
    for raw in given.items:
        try:
            items.append(_item(a.parsed(a.Remember, a.decoded(raw))))
        except KeymemError as error:
            items.append(error)
    return await remember_service.remember_batch(engine, caller, items)


async def correct(engine: Engine, caller: Caller, given: a.Correct) -> Result:
    request = CorrectionRequest(
        memory_id=given.memory_id,
        content=given.content,
        keys=given.keys,
        key_types=given.key_types or {},
        ttl_seconds=given.ttl_seconds,
        decay_profile=given.decay_profile,
        related_to=given.related_to or (),
        source=given.source,
        namespace=given.namespace,
    )
    return await correct_service.correct(engine, caller, request)


async def dismiss(engine: Engine, caller: Caller, given: a.Dismiss) -> Result:
    return await dismiss_service.dismiss(engine, caller, given.memory_id, given.key_id, given.namespace)


async def forget(engine: Engine, caller: Caller, given: a.Forget) -> Result:
    return await forget_service.forget(engine, caller, given.memory_id, given.namespace)


async def retrieve(engine: Engine, caller: Caller, given: a.Retrieve) -> Result:
    return await retrieve_service.retrieve(
        engine, caller, given.query, given.context, given.namespace, given.top_k, given.hops, given.explain
    )


async def inject(engine: Engine, caller: Caller, given: a.Inject) -> Result:
    return await inject_service.inject(
        engine, caller, given.prompt, given.session_id, given.namespace, given.top_k, given.budget_ms
    )


async def recall_memories(engine: Engine, caller: Caller, given: a.RecallMemories) -> Result:
    hops = given.hops if given.expand else 1
    found = await retrieve_service.retrieve(
        engine, caller, given.query, None, given.namespace, given.top_k, hops, explain=False
    )
    kept = [
        memory
        for memory in found["memories"]
        if memory["score"] >= given.min_rel_score and memory.get("depth", 0.0) >= given.min_depth
    ]
    return {**found, "memories": kept}


async def list_memories(engine: Engine, caller: Caller, given: a.ListMemories) -> Result:
    return await inspection.list_memories(engine, caller, given.namespace, given.limit, given.offset)


async def stats(engine: Engine, caller: Caller, given: a.Scoped) -> Result:
    return await inspection.stats(engine, caller, given.namespace)


async def history(engine: Engine, caller: Caller, given: a.History) -> Result:
    return await inspection.history(engine, caller, given.id, given.limit)


async def show(engine: Engine, caller: Caller, given: a.Show) -> Result:
    return await inspection.show(engine, caller, given.id)


async def cleanup_expired(engine: Engine, caller: Caller, _given: a.Empty) -> Result:
    return await maintenance.sweep(engine, caller.scope(None))


def _item(given: a.Remember) -> RememberItem:
    return RememberItem(
        content=given.content,
        keys=given.keys,
        key_types=given.key_types or {},
        namespace=given.namespace,
        ttl_seconds=given.ttl_seconds,
        decay_profile=given.decay_profile,
        related_to=given.related_to or (),
        source=given.source,
    )
