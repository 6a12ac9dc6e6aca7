"""Talking to the daemon: find it, start it where that is wanted, ask it one thing.

Every question carries a request id, so that one asked again after a lost connection is answered with the first answer and
nothing is written twice.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from keymem_daemon.cli.failure import CommandFailed
from keymem_shim import http1, identity, rendezvous

__all__ = ["ask", "ask_once", "call", "reached", "refused"]

ANSWER_S = 60.0
SEE_LOG = "Look at `keymemd logs`, then try again."


def call(verb: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    """The result of ``POST /api/verb``; starts the daemon where there is none. ``None`` arguments are left out."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return ask("POST", f"/api/{verb}", given)


def ask(method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """One answer of a daemon that is started if need be. Raises `CommandFailed`."""
    request_id = os.urandom(16).hex()
    try:
        return ask_once(reached(), method, path, body, request_id)
    except ConnectionError:
        found = reached()
    try:
        return ask_once(found, method, path, body, request_id)
    except ConnectionError as problem:
        raise CommandFailed(f"the daemon went away twice while answering ({problem})", SEE_LOG) from problem


def reached() -> rendezvous.Discovery:
    """A daemon that answers, started as the shim would start it. Raises `CommandFailed`."""
    directory = rendezvous.data_dir()
    found = rendezvous.probe(directory)
    if isinstance(found, rendezvous.Ready):
        return found.discovery
    from keymem_shim import launcher  # noqa: PLC0415 - only when there is no daemon

    outcome = launcher.Launcher(directory, _nothing).ensure()
    match outcome:
        case rendezvous.Ready():
            return outcome.discovery
        case launcher.Forbidden():
            raise CommandFailed(
                "no daemon is running and KEYMEM_DAEMON_AUTOSTART=false forbids starting one", "Run `keymemd start`."
            )
        case launcher.Impossible():
            raise CommandFailed(outcome.reason, "Free some processes or memory, then try again.")
        case _:
            raise CommandFailed(outcome.reason, SEE_LOG)


def ask_once(
    discovery: rendezvous.Discovery,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    request_id: str | None = None,
    limit_s: float = ANSWER_S,
) -> dict[str, Any]:
    """The JSON answer of that daemon.

    Raises `ConnectionError` when it went away, and `CommandFailed` with its own words when it refused.
    """
    deadline = time.monotonic() + limit_s
    headers = [discovery.authorization(), ("X-Keymem-Client", "keymemd")]
    if directory := identity.working_directory():
        headers.append(("X-Keymem-Cwd", identity.percent_encoded(directory)))
    if request_id is not None:
        headers.append(("X-Keymem-Request-Id", request_id))
    payload = b""
    if method == "POST":
        headers.append(("Content-Type", "application/json"))
        payload = json.dumps(body or {}).encode("ascii")
    try:
        connection = http1.Connection(discovery.address, deadline)
        try:
            connection.send(method, path, headers, payload, deadline)
            answer = connection.receive(deadline)
            raw = answer.read(deadline)
        finally:
            connection.close()
    except TimeoutError:
        raise CommandFailed(f"the daemon has not answered for {limit_s:.0f} s", "Run `keymemd restart`.") from None
    except ConnectionError:
        raise
    except OSError as problem:
        raise ConnectionError(str(problem)) from problem
    return _result(answer.status, raw)


def _result(status: int, raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CommandFailed(f"the daemon answered with status {status} and no JSON object", SEE_LOG)
    if status >= 400 or "error" in found:
        raise refused(found.get("error"), status)
    return found


def refused(error: object, status: int = 0) -> CommandFailed:
    """The failure that says what the daemon said in ``{code, message, hint}``."""
    if not isinstance(error, dict):
        return CommandFailed(f"the daemon answered with status {status}", SEE_LOG)
    return CommandFailed(str(error.get("message", "the daemon refused")), str(error.get("hint", "") or SEE_LOG))


def _nothing() -> None:
    return None
