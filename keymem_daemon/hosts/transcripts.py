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
from dataclasses import dataclass, field
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

SCAN_S: Final = 0.01
"""And how long at most: short lines that all have to be understood take more time than bytes. On a busy machine a visit waits for its
processor several times over, so this is kept well below what a save may wait.
"""

GUESS_AGE_S: Final = 300.0
_LOOK_AGAIN_S: Final = 0.02
_PAUSE_S: Final = 0.03
_WAITED_IN_VAIN: Final = 3
"""A session whose transcript did not reach a call this often is not waited for any more."""

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
    prompt: Callable[[Iterable[bytes], HostCall], tuple[str | None, bool]]


_HOSTS: Final[Mapping[str, _Host]] = MappingProxyType(
    {
        "claude": _Host(claude.NEEDLE, claude.found, claude.recent, claude.is_prose, claude.prompt_in),
        "codex": _Host(codex.NEEDLE, codex.found, codex.recent, codex.is_prose, codex.turn_in),
    }
)


@dataclass(slots=True)
class _Session:
    """Where a session's transcript is, once found, how far it is counted, and until when (monotonic) not to look again."""

    parts: Parts | None = None
    count: Count = field(default_factory=Count)
    look_again_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look found, and whether a later one could find more."""

    turn: HostTurn = field(default_factory=HostTurn)
    behind: bool = False


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
        self._overdue: Future[_Look] | None = None
        self._in_vain: OrderedDict[str | None, int] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, Path, str], _Session] = OrderedDict()

    async def turn(self, call: HostCall) -> HostTurn:
        """Where in its session ``call`` happens, as far as that can be found out in time. Raises nothing."""
        if self._access is False or (self._access is None and call.agent not in _HOSTS):
            return HostTurn()
        if call.session is not None and not _SESSION.fullmatch(call.session):
            return HostTurn()
        if self._overdue is not None and not self._overdue.done():
            return HostTurn()
        self._overdue = None
        look, looking = _Look(), None
        patient = self._in_vain.get(call.session, 0) < _WAITED_IN_VAIN
        try:
            async with asyncio.timeout(self._deadline_s):
                while True:
                    looking = self._worker.submit(self._looked, call)
                    look = await asyncio.wrap_future(looking)
                    if not look.behind:
                        self._in_vain.pop(call.session, None)
                        return look.turn
                    if not patient:
                        return look.turn
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            self._overdue = looking
            if look.behind:
                self._count_in_vain(call.session)
            return look.turn

    def close(self) -> None:
        """Let go of the thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _count_in_vain(self, session: str | None) -> None:
        self._in_vain[session] = self._in_vain.get(session, 0) + 1
        if len(self._in_vain) > _SESSIONS_KEPT:
            self._in_vain.popitem(last=False)

    # On the thread.

    def _looked(self, call: HostCall) -> _Look:
        try:
            for agent in (agent for agent in _HOSTS if call.agent in (agent, None)):
                root = Path(call.homes.get(agent) or self._homes[agent])
                look = self._turn_in(agent, root, call)
                if look is not None:
                    return look
        except Exception:
            logger.exception("a transcript could not be read")  # a defect here must not cost a save
            return _Look()
        return _Look(behind=call.session is not None and call.agent in _HOSTS)

    def _turn_in(self, agent: str, root: Path, call: HostCall) -> _Look | None:
        """What the transcript of ``agent`` says, ``None`` when there is none for this call."""
        try:
            session = call.session or (self._guessed(_HOSTS[agent], root, call.cwd) if self._guesses else None)
            if session is None:
                return None
            known = self._known(agent, root, session)
            for _attempt in range(2):
                if not self._located(known, _HOSTS[agent], root, session, call.cwd) or known.parts is None:
                    return None
                try:
                    return self._read(known, known.parts, agent, session, root, call)
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

    def _read(self, known: _Session, parts: Parts, agent: str, session: str, root: Path, call: HostCall) -> _Look:
        host = _HOSTS[agent]
        with opened_file(root, parts) as file:
            prompt, reached = host.prompt(tails(file), call)
            if not reached:
                # What is there belongs to an earlier turn: neither its number nor its prompt are those of this call.
                return _Look(HostTurn(agent=agent, session=session), behind=True)
            until = self._monotonic() + SCAN_S
            turns = advanced(
                file,
                known.count,
                host.needle,
                host.is_prose,
                self._scan_bytes,
                lambda: self._monotonic() >= until,
            )
        return _Look(HostTurn(agent=agent, session=session, turn=turns or None, prompt=prompt))

    def _guessed(self, host: _Host, root: Path, cwd: str | None) -> str | None:
        """The session whose transcript was written last, unless that is too long ago."""
        oldest = self._clock.now() - GUESS_AGE_S
        best = max((item for item in host.recent(root, cwd) if item[0] >= oldest), default=None)
        named = None if best is None else _SESSION_IN_NAME.fullmatch(best[1][-1])
        return None if named is None else named[1]
