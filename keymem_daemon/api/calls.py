"""One call of a verb, whoever asked: parsed, in its session's order, once, within its time, counted.

The MCP server and the HTTP paths both end here; what differs between them is how a request is read and an answer written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from keymem_daemon.api.arguments import Arguments, Paged, parsed
from keymem_daemon.api.door import Door
from keymem_daemon.api.errors import defect
from keymem_daemon.api.identity import Claims, path_claimed
from keymem_daemon.api.limit import Page, fitted
from keymem_daemon.api.metrics import Metrics
from keymem_daemon.api.order import SessionOrder
from keymem_daemon.api.surroundings import Surroundings
from keymem_daemon.api.tools import Verb
from keymem_daemon.api.work import SharedWork
from keymem_daemon.core.errors import KeymemError, Unavailable
from keymem_daemon.core.model import Actor

__all__ = ["Calls"]

READ_DEADLINE_S: Final = 20.0

logger = logging.getLogger(__name__)


def _nothing_can_be_lost() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Calls:
    """Everything a call passes through. ``footing`` raises when the store is no longer where others look for it."""

    door: Door
    order: SessionOrder
    work: SharedWork
    metrics: Metrics
    surroundings: Surroundings = field(default_factory=Surroundings)
    footing: Callable[[], None] = _nothing_can_be_lost

    async def call(
        self,
        verb: Verb,
        raw: object,
        claims: Claims,
        actor: Actor,
        tool_use_id: str | None = None,
        *,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """The result of ``verb``, within ``limit`` bytes where it is not to come whole; raises `KeymemError` and nothing else."""
        started = time.perf_counter()
        outcome = "ok"
        try:
            given = parsed(verb.arguments, raw)
            result = await self._answered(verb, given, claims, actor, tool_use_id)
            return result if limit is None or verb.whole else fitted(result, limit, _page(verb, given))
        except KeymemError as error:
            outcome = error.code
            raise
        except Exception as problem:
            outcome = "defect"
            logger.exception("%s failed", verb.name)
            raise defect() from problem
        finally:
            self.metrics.count(verb.name, outcome, time.perf_counter() - started)

    async def _answered(
        self, verb: Verb, given: Arguments, claims: Claims, actor: Actor, tool_use_id: str | None
    ) -> dict[str, Any]:
        if verb.writes:
            return await self.work.run(
                claims.request_id, lambda: self._in_turn(verb, given, claims, actor, tool_use_id)
            )
        try:
            async with asyncio.timeout(READ_DEADLINE_S):
                return await self._in_turn(verb, given, claims, actor, tool_use_id)
        except TimeoutError:
            raise Unavailable(
                f"{verb.name} took longer than {READ_DEADLINE_S:.0f} seconds", "Try again, with a narrower query."
            ) from None

    async def _in_turn(
        self, verb: Verb, given: Arguments, claims: Claims, actor: Actor, tool_use_id: str | None
    ) -> dict[str, Any]:
        cwd = path_claimed(given.directory) or claims.cwd
        caller = await self.surroundings.caller(claims, actor, cwd, tool_use_id, writes=verb.writes)
        async with self.order.turn(claims.session, claims.seq, claims.floor, writes=verb.writes):
            engine = await self.door.engine()
            if not verb.writes:
                return await verb.handler(engine, caller, given)
            self.footing()
            result = await verb.handler(engine, caller, given)
            self.footing()
            return result


def _page(verb: Verb, given: Arguments) -> Page | None:
    return None if verb.paged is None else Page(verb.paged, given.offset if isinstance(given, Paged) else 0)
