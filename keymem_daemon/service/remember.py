"""remember and remember_batch: validate → embed new keys → decide in the writer's turn → one atomic change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from keymem_daemon.core.decide.keys import KeyRules
from keymem_daemon.core.decide.limits import BATCH_ITEMS
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.remember import Duplicate, Hints, NewMemory, Remembered, checked_memory, decide_remember
from keymem_daemon.core.errors import InvalidArgument, KeymemError, TooLarge
from keymem_daemon.core.secrets import refuse_secrets_in
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.requests import RememberItem
from keymem_daemon.service.views import error_view, iso, score

Result = dict[str, Any]


async def remember(engine: Engine, caller: Caller, item: RememberItem) -> Result:
    """Save one memory; ``{saved, deduplicated?, hints?}``. Raises what is wrong with it, and then nothing is saved."""
    now = engine.now()
    new = _checked(engine, caller, item, now)
    rules, vectors = await engine.key_rules([key.surface for key in new.keys])
    stamp = stamp_of(caller, now)

    def decide(plan: Plan) -> Result:
        return saved_view(decide_remember(plan, new, stamp, now, engine.within(rules, plan), caller.scope(None)))

    result = await engine.writer.write("remember", caller.actor, caller.request_id, decide)
    engine.catalog.put_keys(vectors)
    return result


async def remember_batch(engine: Engine, caller: Caller, items: Sequence[RememberItem | KeymemError]) -> Result:
    """Save up to 200 memories in one change; one result an item, in order, a bad one reported in its place.

    Waits until the model has nearly caught up with what was saved, so that bulk writes cannot outrun it.
    """
    if not items:
        raise InvalidArgument("items", "at least one item", "an empty list")
    if len(items) > BATCH_ITEMS:
        raise TooLarge("items", BATCH_ITEMS, len(items), "items a batch")
    now = engine.now()
    checked: list[NewMemory | KeymemError] = []
    for item in items:
        checked.append(item if isinstance(item, KeymemError) else _attempt(engine, caller, item, now))
        await asyncio.sleep(0)  # long texts take a millisecond each to look through
    surfaces = [key.surface for new in checked if isinstance(new, NewMemory) for key in new.keys]
    rules, vectors = await engine.key_rules(surfaces)
    stamp = stamp_of(caller, now)

    async def decide(plan: Plan) -> Result:
        results: list[Result] = []
        for new in checked:
            results.append(_decided(engine, caller, plan, new, stamp, now, rules))
            await asyncio.sleep(0)  # two hundred items are not to hold up every reader
        return {"results": results}

    result = await engine.writer.write("remember", caller.actor, caller.request_id, decide)
    engine.catalog.put_keys(vectors)
    await engine.caught_up()
    return result


def _decided(
    engine: Engine, caller: Caller, plan: Plan, new: NewMemory | KeymemError, stamp: Mapping[str, str], now: float, rules: KeyRules
) -> Result:
    """One item, decided on a plan of its own so that a failure leaves nothing of it."""
    if isinstance(new, KeymemError):
        return error_view(new)
    attempt = Plan(plan.graph)
    try:
        outcome = decide_remember(attempt, new, stamp, now, engine.within(rules, attempt), caller.scope(None))
    except KeymemError as error:
        return error_view(error)
    for change in attempt.changes:
        plan.make(change)
    return saved_view(outcome)


def _attempt(engine: Engine, caller: Caller, item: RememberItem, now: float) -> NewMemory | KeymemError:
    try:
        return _checked(engine, caller, item, now)
    except KeymemError as error:
        return error


def _checked(engine: Engine, caller: Caller, item: RememberItem, now: float) -> NewMemory:
    new = checked_memory(
        item.content,
        item.keys,
        item.key_types,
        caller.target(item.namespace),
        item.ttl_seconds,
        item.decay_profile,
        item.related_to,
        item.source,
        now,
    )
    if not engine.settings.allow_secrets:
        refuse_secrets_in(
            (
                ("content", new.content),
                *(("keys", key.surface) for key in new.keys),
                *(("source", text) for pair in new.source.items() for text in pair),
                ("namespace", new.namespace),
            )
        )
    return new


def stamp_of(caller: Caller, now: float) -> dict[str, str]:
    """The provenance of a write, as far as it is known: session, tool, time, host."""
    actor = caller.actor
    stamp = {
        "session": actor.session,
        "tool": actor.tool,
        "saved_at": iso(now),
        "host_agent": actor.host_agent,
        "host_session": actor.host_session,
        "host_turn": actor.host_turn,
        "host_prompt": actor.host_prompt,
    }
    return {name: value for name, value in stamp.items() if value is not None}


def saved_view(outcome: Remembered | Duplicate) -> Result:
    """What the agent is told of a save."""
    result: Result = {"saved": outcome.memory_id}
    if isinstance(outcome, Duplicate):
        result["deduplicated"] = True
    hints = hints_view(outcome.hints)
    if hints:
        result["hints"] = hints
    return result


def hints_view(hints: Hints) -> Result:
    """The hints that say something."""
    view: Result = {}
    if hints.near_keys:
        view["near_keys"] = [
            {"your_key": n.your_key, "existing_concept": n.existing_concept, "key_id": n.key_id, "similarity": score(n.similarity)}
            for n in hints.near_keys
        ]
    if hints.phrase_keys:
        view["phrase_keys"] = list(hints.phrase_keys)
    if hints.language_note is not None:
        view["language_note"] = hints.language_note
    if hints.dropped_keys:
        view["dropped_keys"] = list(hints.dropped_keys)
    return view
