"""Codex's transcripts: where a thread's file is, which of its lines a person wrote, and which turn was the last.

A file is `sessions/YYYY/MM/DD/rollout-TIME-THREAD.jsonl`, of the local day on which the thread began; a thread that is resumed goes on in
its file. A thread's id is a UUID of version 7, whose first 48 bits are that moment, so the day is known without searching. A prose turn is
a message of the role `user` whose kinds name `user.text`; versions that write no kinds mark what they put in by themselves with a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final

from keymem_daemon.hosts.lines import line_around, record_of
from keymem_daemon.hosts.rooted import Parts, folder, named, regular_file, subfolders
from keymem_daemon.ports import HostCall

__all__ = ["NEEDLE", "found", "is_prose", "recent", "turn_in"]

NEEDLE: Final = b'"user"'
"""In every line that can be a prose turn."""

_SESSIONS: Final = "sessions"
_ENTRIES: Final = 20_000
_DAYS: Final = 800
_RECENT_DAYS: Final = 2
_KINDS: Final = "content_item_kinds"
_NOT_PROSE: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "# AGENTS.md instructions",
)
_TURN: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def found(root: Path, session: str, _cwd: str | None) -> Parts | None:
    """Where the transcript of the thread ``session`` is below ``root``, ``None`` if nowhere. Raises `OSError` when there are none at all."""
    ending = f"-{session}.jsonl"
    seen = 0
    for day in chain(_days_of(session), _days(root), [(_SESSIONS,)]):
        for name in _rollouts(root, day):
            seen += 1
            if name.endswith(ending):
                return (*day, name)
        if seen > _ENTRIES:
            break
    return None


def recent(root: Path, _cwd: str | None) -> Iterator[tuple[float, Parts]]:
    """When the transcripts of the newest days were last written (epoch seconds)."""
    for number, day in enumerate(_days(root)):
        if number == _RECENT_DAYS:
            return
        with folder(root, day) as descriptor:
            for name in _rollouts(root, day):
                if status := regular_file(descriptor, name):
                    yield status.st_mtime, (*day, name)


def is_prose(line: bytes) -> bool:
    """Whether ``line`` is a turn that a person wrote."""
    if b'"response_item"' not in line:
        return False
    record = record_of(line)
    payload = None if record is None or record.get("type") != "response_item" else record.get("payload")
    if not isinstance(payload, dict) or payload.get("type") != "message" or payload.get("role") != "user":
        return False
    passed = payload.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get(_KINDS) if isinstance(passed, dict) else None
    if isinstance(kinds, list):
        return "user.text" in kinds
    return any(text.strip() and not text.lstrip().startswith(_NOT_PROSE) for text in _texts(payload.get("content")))


def turn_in(tails: Iterable[bytes], call: HostCall) -> tuple[str | None, bool]:
    """The id of the turn of ``call``, from ever longer ends of the transcript, and whether they reach as far as the call.

    A call names its turn, or comes from a version that does not; then the last turn that began is meant.
    """
    if call.prompt is not None:
        return call.prompt, any(f'"{call.prompt}"'.encode() in data for data in tails)
    return _last_turn(tails), True


def _last_turn(tails: Iterable[bytes]) -> str | None:
    for data in tails:
        at = data.rfind(b'"turn_context"')
        while at >= 0:
            start, line = line_around(data, at)
            record = record_of(line)
            payload = None if record is None or record.get("type") != "turn_context" else record.get("payload")
            turn = payload.get("turn_id") if isinstance(payload, dict) else None
            if isinstance(turn, str) and _TURN.fullmatch(turn):
                return turn
            at = data.rfind(b'"turn_context"', 0, start)
    return None


def _days_of(session: str) -> list[Parts]:
    """The days on which, somewhere on earth, the thread may have begun."""
    if session[14] != "7":
        return []
    try:
        began = datetime.fromtimestamp(int(session[:8] + session[9:13], 16) / 1_000, UTC)
        days = [began + timedelta(days=shift) for shift in (0, -1, 1)]
    except (OverflowError, ValueError, OSError):
        return []
    return [(_SESSIONS, f"{day.year:04d}", f"{day.month:02d}", f"{day.day:02d}") for day in days]


def _days(root: Path) -> Iterator[Parts]:
    """The folders of the days there are, the newest first."""
    left = _DAYS
    for year in _numbered(root, (_SESSIONS,)):
        for month in _numbered(root, (_SESSIONS, year)):
            for day in _numbered(root, (_SESSIONS, year, month)):
                yield (_SESSIONS, year, month, day)
                left -= 1
                if not left:
                    return


def _numbered(root: Path, parts: Parts) -> list[str]:
    with folder(root, parts) as descriptor:
        return sorted((name for name in subfolders(descriptor, _ENTRIES) if name.isdecimal()), reverse=True)


def _rollouts(root: Path, day: Parts) -> list[str]:
    try:
        with folder(root, day) as descriptor:
            return named(descriptor, "rollout-", ".jsonl", _ENTRIES)
    except FileNotFoundError:
        return []


def _texts(content: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    parts = content if isinstance(content, list) else ()
    return [str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") == "input_text"]
