"""confirm_memory: explicit evidence that a memory still holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keymem_daemon.core.decide.confirm import checked_evidence, decide_confirm
from keymem_daemon.core.decide.limits import checked_source
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.secrets import refuse_secrets_in
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.views import score, validity_view

Result = dict[str, Any]


async def confirm_memory(
    engine: Engine,
    caller: Caller,
    memory_id: str,
    evidence: str,
    namespace: str | None = None,
    source: Mapping[str, str] | None = None,
) -> Result:
    """Record the evidence; ``{memory_id, validity, depth, evidence}``. Neither content nor links change."""
    kind = checked_evidence(evidence)
    given = checked_source(source)
    if not engine.settings.allow_secrets:
        refuse_secrets_in(("source", text) for pair in given.items() for text in pair)
    scope = caller.scope(namespace)
    now = engine.now()

    def decide(plan: Plan) -> Result:
        memory = decide_confirm(plan, memory_id, now, scope)
        return {
            "memory_id": memory_id,
            "validity": validity_view(memory, now, engine.settings.half_lives),
            "depth": score(memory.depth),
            "evidence": kind,
        }

    note = kind if not given else f"{kind}: " + ", ".join(f"{name}={value}" for name, value in given.items())
    return await engine.writer.write("confirm", caller.actor, caller.request_id, decide, note=note)
