"""At which turn of a host's session something is saved: policy, cache and deadline around what `claude.py` and `codex.py` know.

Reading happens on one thread of its own, never on the event loop, and is given up after a deadline; whatever goes wrong, the answer is
that the turn is not known. Nothing of a transcript's text leaves this folder: only a number and an identifier do.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from keymem_daemon.hosts import claude, codex
from keymem_daemon.hosts.lines import Count, advanced, tails
from keymem_daemon.hosts.rooted import Parts, opened_file
from keymem_daemon.ports import Clock, HostCall, HostTurn

__all__ = ["DEADLINE_S", "SCAN_BYTES", "Transcripts"]

DEADLINE_S: Final = 0.25
"""What a save waits at most. The work is bounded by bytes and takes about 20 ms; this is for storage that does not answer, and leaves
room for a machine that is busy, such as one on which daemon and client have just started."""

SCAN_BYTES: Final = 16 << 20
"""How much further a count goes each time it is asked. A first look at more says no turn; each save brings it nearer."""

GUESS_AGE_S: Final = 300.0
_LOOK_AGAIN_S: Final = 0.25
_SESSIONS_KEPT: Final = 256
_SESSION: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SESSION_IN_NAME: Final = re.compile(rf"(?:.*-)?({_SESSION.pattern})\.jsonl")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Host:
    """What is particular to one host."""

    needle: bytes
    found: Callable[[Path, str, str | None], Parts | None]
    recent: Callable[[Path, str | None], Iterator[tuple[float, Parts]]]
    is_prose: Callable[[bytes], bool]
    prompt: Callable[[Iterable[bytes], str | None], str | None]


_HOSTS: Final[Mapping[str, _Host]] = MappingProxyType(
    {
        "claude": _Host(claude.NEEDLE, claude.found, claude.recent, claude.is_prose, claude.prompt_in),
        "codex": _Host(
            codex.NEEDLE, codex.found, codex.recent, codex.is_prose, lambda ends, _tool_use_id: codex.turn_in(ends)
        ),
    }
)


@dataclass(slots=True)
class _Session:
    """Where a session's transcript is, once found, how far it is counted, and until when (monotonic) not to look again."""

    parts: Parts | None = None
    count: Count = field(default_factory=Count)
    look_again_at: float = 0.0


class Transcripts:
    """Implements the port `HostTranscripts`.

    ``access``: whether transcripts may be read; ``None`` for those of recognised hosts. ``homes``: where each host keeps its files,
    unless the call says it. ``guesses``: take the transcript written last for that of a call without a session, which is sound only
    where one client shares the process.
    """

    def __init__(
        self,
        access: bool | None,
        homes: Mapping[str, Path],
        clock: Clock,
        *,
        guesses: bool = False,
        deadline_s: float = DEADLINE_S,
        scan_bytes: int = SCAN_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._homes = homes
        self._clock = clock
        self._guesses = guesses
        self._deadline_s = deadline_s
        self._scan_bytes = scan_bytes
        self._monotonic = monotonic
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="transcripts")
        self._overdue: Future[HostTurn] | None = None
        self._sessions: OrderedDict[tuple[str, Path, str], _Session] = OrderedDict()

    async def turn(self, call: HostCall) -> HostTurn:
        """Where in its session ``call`` happens, as far as that can be found out in time. Raises nothing."""
        if self._access is False or (self._access is None and call.agent not in _HOSTS):
            return HostTurn()
        if self._overdue is not None and not self._overdue.done():
            return HostTurn()
        self._overdue = None
        looking = self._worker.submit(self._looked, call)
        try:
            async with asyncio.timeout(self._deadline_s):
                return await asyncio.wrap_future(looking)
        except TimeoutError:
            self._overdue = looking
            return HostTurn()

    def close(self) -> None:
        """Let go of the thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    # On the thread.

    def _looked(self, call: HostCall) -> HostTurn:
        try:
            for agent in (agent for agent in _HOSTS if call.agent in (agent, None)):
                root = Path(call.homes.get(agent) or self._homes[agent])
                turn = self._turn_in(agent, root, call)
                if turn is not None:
                    return turn
        except Exception:
            logger.exception("a transcript could not be read")  # a defect here must not cost a save
        return HostTurn()

    def _turn_in(self, agent: str, root: Path, call: HostCall) -> HostTurn | None:
        """What the transcript of ``agent`` says, ``None`` when there is none for this call."""
        try:
            session = call.session or (self._guessed(_HOSTS[agent], root, call.cwd) if self._guesses else None)
            if session is None or not _SESSION.fullmatch(session):
                return None
            known = self._known(agent, root, session)
            for _attempt in range(2):
                if not self._located(known, _HOSTS[agent], root, session, call.cwd) or known.parts is None:
                    return None
                try:
                    return replace(self._read(known, known.parts, agent, root, call), session=session)
                except FileNotFoundError:
                    known.parts = None
        except OSError:
            pass
        return None

    def _known(self, agent: str, root: Path, session: str) -> _Session:
        key = (agent, root, session)
        known = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        if len(self._sessions) > _SESSIONS_KEPT:
            self._sessions.popitem(last=False)
        return known

    def _located(self, known: _Session, host: _Host, root: Path, session: str, cwd: str | None) -> bool:
        if known.parts is None and self._monotonic() >= known.look_again_at:
            known.look_again_at = self._monotonic() + _LOOK_AGAIN_S
            known.parts = host.found(root, session, cwd)
        return known.parts is not None

    def _read(self, known: _Session, parts: Parts, agent: str, root: Path, call: HostCall) -> HostTurn:
        host = _HOSTS[agent]
        with opened_file(root, parts) as file:
            prompt = None if call.prompt else host.prompt(tails(file), call.tool_use_id)
            turns = advanced(file, known.count, host.needle, host.is_prose, self._scan_bytes)
        return HostTurn(agent=agent, turn=turns or None, prompt=prompt)

    def _guessed(self, host: _Host, root: Path, cwd: str | None) -> str | None:
        """The session whose transcript was written last, unless that is too long ago."""
        oldest = self._clock.now() - GUESS_AGE_S
        best = max((item for item in host.recent(root, cwd) if item[0] >= oldest), default=None)
        named = None if best is None else _SESSION_IN_NAME.fullmatch(best[1][-1])
        return None if named is None else named[1]
