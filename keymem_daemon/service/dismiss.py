"""dismiss: this key should not have led to this memory."""

from __future__ import annotations

from typing import Any

from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.reinforce import decide_dismiss
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.views import score

Result = dict[str, Any]


async def dismiss(engine: Engine, caller: Caller, memory_id: str, key_id: str, namespace: str | None = None) -> Result:
    """Halve the link; ``{link_weight, cancelled_learning}``. The link is never severed."""
    scope = caller.scope(namespace)
    engine.now()

    def decide(plan: Plan) -> Result:
        outcome = decide_dismiss(plan, memory_id, key_id, scope)
        return {"link_weight": score(outcome.link_weight), "cancelled_learning": outcome.cancelled_learning}

    result = await engine.writer.write("dismiss", caller.actor, caller.request_id, decide)
    engine.recent.forget(key_id)
    return result
