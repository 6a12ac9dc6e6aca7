"""Who asks, by what the request says of itself: headers of the shim, and the `_meta` of Claude Code and Codex.

All of it is claims: recorded as provenance, used to keep a session's requests in order and to answer a repeated request
once; never identity, never a right. What does not look as it should is dropped, so that no text of unknown origin is stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from keymem_daemon.core.model import Actor

__all__ = ["Claims", "actor_of", "claims_of", "path_claimed", "tool_use_of"]

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_CLIENT: Final = re.compile(r"[A-Za-z0-9 ._/()+-]{1,128}")
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_HOSTS: Final = ("claude", "codex")
_YES_NO: Final[Mapping[str, bool]] = MappingProxyType({"true": True, "false": False})
_CLAUDE_TOOL_USE: Final = "claudecode/toolUseId"
_CODEX_TURN: Final = "x-codex-turn-metadata"
_CWD_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True)
class Claims:
    """What a request says of itself; ``None`` for what it does not say or says badly.

    ``seq`` numbers the requests of ``session`` in the order in which they were made; all below ``floor`` are answered.
    ``host_prompt`` comes from the hook alone, which knows the prompt before any call that follows from it.
    ``homes`` says where the client's hosts keep their files, by agent. ``hook_installed``: whether the client has the prompt hook.
    """

    request_id: str | None = None
    session: str | None = None
    seq: int | None = None
    floor: int | None = None
    host_agent: str | None = None
    host_session: str | None = None
    host_prompt: str | None = None
    client: str | None = None
    cwd: str | None = None
    homes: Mapping[str, str] = field(default_factory=dict)
    hook_installed: bool | None = None


def claims_of(headers: Mapping[str, str]) -> Claims:
    """The claims in HTTP ``headers`` (names in lower case)."""
    agent = headers.get("x-keymem-host-agent")
    return Claims(
        request_id=_matching(_TOKEN, headers.get("x-keymem-request-id")),
        session=_matching(_TOKEN, headers.get("x-keymem-session")),
        seq=_count(headers.get("x-keymem-seq")),
        floor=_count(headers.get("x-keymem-seq-floor")),
        host_agent=agent if agent in _HOSTS else None,
        host_session=_uuid(headers.get("x-keymem-host-session")),
        host_prompt=_uuid(headers.get("x-keymem-host-prompt")),
        client=_matching(_CLIENT, headers.get("x-keymem-client")),
        cwd=_path(headers.get("x-keymem-cwd")),
        homes={host: home for host in _HOSTS if (home := _path(headers.get(f"x-keymem-{host}-home"))) is not None},
        hook_installed=_YES_NO.get(headers.get("x-keymem-hook-installed", "")),
    )


def actor_of(tool: str, claims: Claims, meta: Mapping[str, Any] | None = None, client: str | None = None) -> Actor:
    """Who did it, for history: the headers' claims, completed by the call's ``meta`` and the MCP client's name.

    What Codex says of each call goes before a header, which can be left over from a host that started Codex.
    """
    meta = meta or {}
    turn = meta.get(_CODEX_TURN)
    thread = _uuid(meta.get("threadId"))
    prompt = _matching(_TOKEN, turn.get("turn_id")) if isinstance(turn, Mapping) else None
    if thread and prompt:
        return Actor(tool=tool, session=claims.session, host_agent="codex", host_session=thread, host_prompt=prompt)
    agent = claims.host_agent or _agent_named(claims.client or client)
    return Actor(
        tool=tool,
        session=claims.session,
        host_agent=agent,
        host_session=claims.host_session or (thread if agent == "codex" else None),
        host_prompt=prompt if agent == "codex" else None,
    )


def tool_use_of(meta: Mapping[str, Any]) -> str | None:
    """The id that Claude Code gave the tool call in its transcript."""
    return _matching(_TOKEN, meta.get(_CLAUDE_TOOL_USE))


def path_claimed(path: str | None) -> str | None:
    """``path`` if it is an absolute one."""
    return path if path and len(path) <= _CWD_BYTES and path.startswith("/") and "\0" not in path else None


def _agent_named(client: str | None) -> str | None:
    name = (client or "").lower()
    return next((host for host in _HOSTS if name.startswith(host)), None)


def _matching(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _uuid(value: object) -> str | None:
    return _matching(_UUID, value.lower()) if isinstance(value, str) else None


def _count(value: str | None) -> int | None:
    found = _matching(_COUNT, value)
    return None if found is None else int(found)


def _path(value: str | None) -> str | None:
    if not value or len(value) > 3 * _CWD_BYTES:
        return None
    try:
        path = unquote_to_bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return path_claimed(path)
