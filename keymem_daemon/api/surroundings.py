"""What the client's surroundings say about a call: the namespaces of its directory, and the turn of its host's session.

The one place where claims meet the ports that look at files. A namespace is always waited for, since a call whose mapping is not known
must not see more than it would with it; a turn is only provenance and stays away when it cannot be had at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from keymem_daemon.api.identity import Claims
from keymem_daemon.core.model import Actor
from keymem_daemon.ports import HostCall, HostTranscripts, NamespaceMap
from keymem_daemon.service.caller import Caller

__all__ = ["Surroundings"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``None`` for what nobody looks at."""

    namespaces: NamespaceMap | None = None
    transcripts: HostTranscripts | None = None

    async def caller(
        self, claims: Claims, actor: Actor, cwd: str | None, tool_use_id: str | None, *, writes: bool
    ) -> Caller:
        """Who calls from ``cwd``; what is written is to say in which turn."""
        mapped = None
        if self.namespaces is not None and cwd is not None:
            mapped = await asyncio.to_thread(self.namespaces.namespaces_for, cwd)
        if writes:
            actor = await self._with_turn(actor, claims, tool_use_id)
        return Caller(actor=actor, request_id=claims.request_id, namespaces=mapped)

    async def _with_turn(self, actor: Actor, claims: Claims, tool_use_id: str | None) -> Actor:
        if self.transcripts is None:
            return actor
        call = HostCall(actor.host_agent, actor.host_session, actor.host_prompt, tool_use_id, claims.cwd, claims.homes)
        found = await self.transcripts.turn(call)
        return replace(
            actor,
            host_agent=actor.host_agent or found.agent,
            host_session=actor.host_session or found.session,
            host_turn=None if found.turn is None else str(found.turn),
            host_prompt=actor.host_prompt or found.prompt,
        )
