"""correct: put a successor in a memory's place."""

from __future__ import annotations

from typing import Any

from keymem_daemon.core.changes import MemoryRemoved
from keymem_daemon.core.decide.correct import Corrected, Correction, decide_correct
from keymem_daemon.core.decide.limits import (
    WantedKey,
    checked_content,
    checked_expiry,
    checked_keys,
    checked_profile,
    checked_related,
    checked_source,
)
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.secrets import refuse_secrets_in
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.maintenance import purging
from keymem_daemon.service.remember import stamp_of
from keymem_daemon.service.requests import CorrectionRequest
from keymem_daemon.service.views import score

Result = dict[str, Any]


async def correct(engine: Engine, caller: Caller, request: CorrectionRequest) -> Result:
    """Replace one memory; ``{new_id, superseded, note?}``. Raises what is wrong, and then nothing has changed."""
    now = engine.now()
    correction = _checked(engine, request, now)
    scope = caller.scope(request.namespace)
    rules, vectors = await engine.key_rules([key.surface for key in correction.keys or ()])
    stamp = stamp_of(caller, now)

    pruned: list[str] = []

    def decide(plan: Plan) -> Result:
        corrected = decide_correct(plan, correction, stamp, now, engine.within(rules, plan), scope)
        pruned.extend(change.memory_id for change in plan.changes if isinstance(change, MemoryRemoved))
        return _view(corrected, correction)

    result = await engine.writer.write(
        "correct", caller.actor, caller.request_id, decide, after=lambda _result: purging(engine, pruned)
    )
    engine.catalog.put_keys(vectors)
    return result


def _checked(engine: Engine, request: CorrectionRequest, now: float) -> Correction:
    content = checked_content(request.content)
    if not engine.settings.allow_secrets:
        refuse_secrets_in((("content", content), *(("source", text) for pair in (request.source or {}).items() for text in pair)))
    keys: tuple[WantedKey, ...] | None = None
    dropped: tuple[str, ...] = ()
    if request.keys is None:
        if request.key_types:
            raise InvalidArgument("key_types", "types for keys that are given in keys", "no keys")
    else:
        keys, dropped = checked_keys(request.keys, request.key_types)
        if not engine.settings.allow_secrets:
            refuse_secrets_in(("keys", key.surface) for key in keys)
    return Correction(
        memory_id=request.memory_id,
        content=content,
        keys=keys,
        dropped_keys=dropped,
        expires_at=checked_expiry(request.ttl_seconds, now),
        decay_profile=checked_profile(request.decay_profile),
        related_to=checked_related(request.related_to),
        source=checked_source(request.source),
    )


def _view(corrected: Corrected, correction: Correction) -> Result:
    result: Result = {"new_id": corrected.new_id, "superseded": corrected.superseded}
    notes: list[str] = []
    if corrected.inherited:
        notes.append(f"Inherited keys: {', '.join(corrected.inherited)}. If the topic changed, correct again with keys that fit.")
    if corrected.existing:
        notes.append("The new text was stored already; that memory is now the successor.")
    if correction.dropped_keys:
        notes.append(f"Unusable keys left out: {', '.join(map(repr, correction.dropped_keys))}.")
    notes.extend(
        f"Key {near.your_key!r} nearly duplicates {near.existing_concept!r} ({near.key_id}, {score(near.similarity)})."
        for near in corrected.near_keys
    )
    if notes:
        result["note"] = " ".join(notes)
    return result
