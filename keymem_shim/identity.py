"""Who this shim works for: the host agent, its session, the working directory, and the environment of the daemon.

Read from the environment once, at start. What is found here are claims that the daemon records as provenance; they
are never identity and give no rights. Only UUIDs are accepted as sessions, so that no text of unknown origin can travel
in a header.
"""

from __future__ import annotations

import os

__all__ = [
    "HostClaim",
    "daemon_environment",
    "host_claim",
    "host_homes",
    "is_uuid",
    "percent_encoded",
    "working_directory",
]

HOST_SESSIONS = (("claude", "CLAUDE_CODE_SESSION_ID"), ("codex", "CODEX_THREAD_ID"))
"""Agent name and the variable in which that agent names its session, in the order in which they are believed."""

HOST_HOMES = (("claude", "CLAUDE_CONFIG_DIR", "~/.claude"), ("codex", "CODEX_HOME", "~/.codex"))
"""Agent name, the variable that says where that agent keeps its files, and where they are without it."""

UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
"""Bytes of a path that need no escape in a header; the unreserved ones of RFC 3986, and the slash."""


class HostClaim:
    """The host agent (`claude` or `codex`) and the UUID of its session."""

    __slots__ = ("agent", "session")

    def __init__(self, agent: str, session: str) -> None:
        self.agent = agent
        self.session = session


def host_claim() -> HostClaim | None:
    """Return what the environment says about the host, or None when it names no session by a UUID."""
    environment = os.environ  # noqa: TID251 - this module is one of the places that read it
    for agent, variable in HOST_SESSIONS:
        session = environment.get(variable, "")
        if is_uuid(session):
            return HostClaim(agent, session.lower())
    return None


def host_homes() -> list[tuple[str, str]]:
    """Return for each agent where it keeps its files for this client: the daemon may have been started by another one."""
    environment = os.environ  # noqa: TID251 - this module is one of the places that read it
    return [
        (agent, os.path.abspath(os.path.expanduser(environment.get(name) or usual)))
        for agent, name, usual in HOST_HOMES
    ]


def working_directory() -> str:
    """Return the client's working directory, or "" when it no longer exists."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def daemon_environment() -> dict[str, str]:
    """Return this environment without the variables that name one host session: the daemon serves all of them."""
    environment = dict(os.environ)  # noqa: TID251 - as above
    for _agent, variable in HOST_SESSIONS:
        environment.pop(variable, None)
    return environment


def is_uuid(text: str) -> bool:
    """Tell whether `text` is a UUID in its usual form of 8-4-4-4-12 hexadecimal digits."""
    groups = text.split("-")
    return [len(group) for group in groups] == [8, 4, 4, 4, 12] and all(
        digit in "0123456789abcdefABCDEF" for group in groups for digit in group
    )


def percent_encoded(path: str) -> str:
    """Return `path` as printable ASCII: its UTF-8 (or undecodable) bytes, percent-encoded."""
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in os.fsencode(path))
