"""What the client's surroundings say about a call: the namespaces of its directory, and the turn of its host's session.

The one place where claims meet the ports that look at files. A namespace is always waited for, since a call whose mapping is not known
must not see more than it would with it; a turn is only provenance and stays away when it cannot be had at once.

A host writes its transcript late: the first call of a session can arrive before there is a file. The prompt is then the one that the
hook named for that session.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from keymem_daemon.api.identity import Claims
from keymem_daemon.core.model import Actor
from keymem_daemon.ports import HostCall, HostTranscripts, NamespaceMap
from keymem_daemon.service.caller import Caller

__all__ = ["HookPrompts", "Surroundings"]

SESSIONS_KEPT: Final = 512


class HookPrompts:
    """The prompt that the hook named last, for each of the latest sessions. Not stored."""

    def __init__(self) -> None:
        self._latest: OrderedDict[tuple[str | None, str], str] = OrderedDict()

    def note(self, claims: Claims) -> None:
        """Remember what ``claims`` say, if they name a prompt."""
        if claims.host_session is None or claims.host_prompt is None:
            return
        key = (claims.host_agent, claims.host_session)
        self._latest[key] = claims.host_prompt
        self._latest.move_to_end(key)
        if len(self._latest) > SESSIONS_KEPT:
            self._latest.popitem(last=False)

    def latest(self, agent: str | None, session: str | None) -> str | None:
        """The last prompt of a session, ``None`` if no hook named one."""
        return None if session is None else self._latest.get((agent, session))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``None`` for what nobody looks at."""

    namespaces: NamespaceMap | None = None
    transcripts: HostTranscripts | None = None
    prompts: HookPrompts = field(default_factory=HookPrompts)

    async def caller(
        self, claims: Claims, actor: Actor, cwd: str | None, tool_use_id: str | None, *, writes: bool
    ) -> Caller:
        """Who calls from ``cwd``; what is written is to say in which turn."""
        self.prompts.note(claims)
        mapped = await self.mapped(cwd)
        if writes:
            actor = await self._with_turn(actor, claims, tool_use_id)
        return Caller(actor=actor, request_id=claims.request_id, namespaces=mapped)

    async def mapped(self, cwd: str | None) -> tuple[str, ...] | None:
        """The namespaces that the directory maps to, ``None`` for all."""
        if self.namespaces is None or cwd is None:
            return None
        return await asyncio.to_thread(self.namespaces.namespaces_for, cwd)

    async def _with_turn(self, actor: Actor, claims: Claims, tool_use_id: str | None) -> Actor:
        if self.transcripts is None:
            return replace(
                actor, host_prompt=actor.host_prompt or self.prompts.latest(actor.host_agent, actor.host_session)
            )
        call = HostCall(
            agent=actor.host_agent,
            session=actor.host_session,
            prompt=actor.host_prompt,
            hook_prompt=self.prompts.latest(actor.host_agent, actor.host_session),
            tool_use_id=tool_use_id,
            cwd=claims.cwd,
            homes=claims.homes,
        )
        found = await self.transcripts.turn(call)
        agent, session = actor.host_agent or found.agent, actor.host_session or found.session
        return replace(
            actor,
            host_agent=agent,
            host_session=session,
            host_turn=None if found.turn is None else str(found.turn),
            host_prompt=actor.host_prompt or found.prompt or self.prompts.latest(agent, session),
        )
