"""A person's look inside: lists, counts, one record in full, and who changed what. Nothing here changes anything."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from keymem_daemon.core.errors import NotFound
from keymem_daemon.core.text import fold
from keymem_daemon.ports import ChangeRecord
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.retrieve import checked_range
from keymem_daemon.service.views import iso, key_facts, key_view, memory_view, score, validity_view

LIST_LIMIT: Final = 20
LIST_LIMIT_MAX: Final = 200
OFFSET_MAX: Final = 10_000_000
HISTORY_LIMIT_MAX: Final = 1_000
TOP_KEYS: Final = 10
KEYS_UNITED: Final = 1_000

Result = dict[str, Any]


async def list_memories(engine: Engine, caller: Caller, namespace: str | None = None, limit: int = LIST_LIMIT, offset: int = 0) -> Result:
    """Active memories, the latest first, a page of them."""
    checked_range("limit", limit, 1, LIST_LIMIT_MAX)
    checked_range("offset", offset, 0, OFFSET_MAX)
    scope = caller.scope(namespace)
    now = engine.now()
    graph = engine.graph
    total = graph.active_count(scope)
    memories = [graph.memories[memory_id] for memory_id in islice(graph.newest(scope), offset, offset + limit)]
    return {
        "memories": [
            {
                **memory_view(graph, memory, scope),
                "keys": [graph.name_in(link.key_id, scope) for link in graph.links_of(memory.id)],
                "validity": validity_view(memory, now, engine.settings.half_lives),
            }
            for memory in memories
        ],
        "total": total,
        "next_offset": offset + limit if offset + limit < total else None,
        "searched": {"namespaces": caller.searched(namespace), "memory_count": total},
    }


async def stats(engine: Engine, caller: Caller, namespace: str | None = None) -> Result:
    """Counts of the scope: memories, keys, hubs, namespaces; and of the whole store when the scope is everything.

    In a scope of several namespaces with more than a thousand keys together, a key that they share counts in each of them.
    """
    scope = caller.scope(namespace)
    engine.now()
    graph, directory = engine.graph, engine.catalog.directory
    hub = engine.settings.key_hub_min_links
    count = graph.active_count(scope)
    result: Result = {"namespace": caller.described(namespace), "memory_count": count}
    if scope is None or len(scope) == 1:
        space = None if scope is None else next(iter(scope))
        result["key_count"], result["hub_count"] = directory.count(space), directory.hubs(space, hub)
        top = [key_facts(graph, graph.keys[key_id], scope, hub) for key_id in directory.page(space, 0, TOP_KEYS)]
    else:
        # A key of two namespaces is one key, and its memories in both of them count.
        sizes = {space: directory.count(space) for space in scope}
        few = sum(sizes.values()) <= KEYS_UNITED
        ids = {key_id for space, size in sizes.items() for key_id in directory.page(space, 0, size if few else TOP_KEYS)}
        facts = [key_facts(graph, graph.keys[key_id], scope, hub) for key_id in ids]
        result["key_count"] = len(facts) if few else sum(sizes.values())
        result["hub_count"] = sum(fact["is_hub"] for fact in facts) if few else sum(directory.hubs(space, hub) for space in scope)
        top = sorted(facts, key=lambda fact: (-fact["memory_count"], fact["concept"]))[:TOP_KEYS]
    result["top_keys"] = top
    names = graph.namespaces()
    result["namespaces"] = names if scope is None else {name: count for name, count in names.items() if fold(name) in scope}
    if scope is None:
        result["link_count"] = graph.link_count
    result["searched"] = {"namespaces": caller.searched(namespace), "memory_count": count}
    return result


async def show(engine: Engine, caller: Caller, entity_id: str) -> Result:
    """A memory or a key in full, active or not, without counting as a read."""
    scope = caller.scope("*")
    now = engine.now()
    graph = engine.graph
    hub = engine.settings.key_hub_min_links
    memory = graph.memory(entity_id)
    if memory is not None:
        return {
            "memory": memory_view(graph, memory, scope),
            "active": graph.is_active(entity_id),
            "validity": validity_view(memory, now, engine.settings.half_lives),
            "keys": [
                {**key_facts(graph, graph.keys[link.key_id], scope, hub), "link_weight": score(link.weight)} for link in graph.links_of(entity_id)
            ],
        }
    key = graph.key(entity_id)
    if key is None:
        raise NotFound("id", "memory or key", entity_id, "`keymemd list` and `keymemd keys` show the ids.")
    return {
        "key": {
            **key_view(graph, key, scope, hub),
            "learned": [{"alias": a.alias, "added_at": iso(a.added_at), "hits": a.hits} for a in key.learned],
            "candidates": [{"query": c.query, "count": c.count, "last_seen": iso(c.last_seen)} for c in key.candidates],
        },
        "memories": [
            {"memory_id": link.memory_id, "link_weight": score(link.weight), "active": graph.is_active(link.memory_id)}
            for link in islice(graph.members(entity_id).values(), LIST_LIMIT_MAX)
        ],
    }


async def history(engine: Engine, caller: Caller, entity_id: str | None = None, limit: int = 50) -> Result:  # noqa: ARG001 - every verb takes its caller
    """What happened, newest first, to one memory or key or to all."""
    checked_range("limit", limit, 1, HISTORY_LIMIT_MAX)
    records = await engine.in_store(lambda: engine.store.history(entity_id, limit))
    return {"changes": [_change_view(record) for record in records]}


def _change_view(record: ChangeRecord) -> Result:
    actor = record.actor
    who = {
        "tool": actor.tool,
        "session": actor.session,
        "host_agent": actor.host_agent,
        "host_session": actor.host_session,
        "host_turn": actor.host_turn,
        "host_prompt": actor.host_prompt,
    }
    return {
        "seq": record.seq,
        "at": iso(record.at),
        "action": record.action,
        "actor": {name: value for name, value in who.items() if value is not None},
        "entity": record.entity,
        "entity_id": record.entity_id,
        "before": None if record.before is None else dict(record.before),
        "after": None if record.after is None else dict(record.after),
        "note": record.note,
    }
