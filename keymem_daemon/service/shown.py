"""What the prompt hook has shown, per session, so that it does not repeat itself. Not stored: a restart may repeat it once."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from keymem_daemon.core.model import Memory

REPEAT_AFTER: Final = 20
SESSIONS: Final = 512


@dataclass(slots=True)
class _Session:
    """How many prompts there were, and at which of them what was shown in which state."""

    prompts: int = 0
    shown: dict[str, tuple[int, float]] = field(default_factory=dict)


class ShownMemories:
    """What the hook has shown, per session; the latest 512 sessions. Not stored: after a restart a memory may come again."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def begin(self, session_id: str | None) -> None:
        """A prompt has come."""
        if session_id is None:
            return
        session = self._sessions.pop(session_id, None) or _Session()
        session.prompts += 1
        session.shown = {m: at for m, at in session.shown.items() if session.prompts - at[0] < REPEAT_AFTER}
        self._sessions[session_id] = session
        if len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)

    def is_new(self, session_id: str | None, memory: Memory) -> bool:
        """Whether the session has not seen the memory as it is now within its last twenty prompts."""
        session = None if session_id is None else self._sessions.get(session_id)
        return session is None or session.shown.get(memory.id, (0, -1.0))[1] != memory.last_confirmed_at

    def note(self, session_id: str | None, memory: Memory) -> None:
        """The memory is shown now."""
        session = None if session_id is None else self._sessions.get(session_id)
        if session is not None:
            session.shown[memory.id] = (session.prompts, memory.last_confirmed_at)
