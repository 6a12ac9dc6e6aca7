"""Which of the two texts an agent is given follows its own client, not the daemon that several clients share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
import shim_session
from running_daemon import RunningDaemon, running
from shim_session import ENVELOPE, ShimSession, envelope

from keymem_daemon.api import prompts
from keymem_daemon.api.handshake_record import request_for

REVISIONS: Final = ("2025-06-18", "2025-11-25", ENVELOPE)
WITH, WITHOUT = True, False


@pytest.fixture(scope="module", params=["true", "false"])
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon whose own setting is the one, then the other: it is right for one of two sessions at most."""
    with running(tmp_path_factory.mktemp("variant") / "d", extra={"KEYMEM_HOOK_INSTALLED": request.param}) as started:
        started.verb("remember", {"items": [{"content": "The well is behind the mill", "keys": ["well", "mill"]}]})
        yield started


def session(directory: Path, *, hook: bool, **settings: str) -> ShimSession:
    """A session of a client that has the hook, as the plugin's entry says it, or has it not."""
    named = {"KEYMEM_HOOK_INSTALLED": "true"} if hook else {}
    return ShimSession(shim_session.environment(directory, named | settings), cwd=directory.parent)


def instructions(shim: ShimSession, revision: str) -> str:
    """What the server tells the agent at the handshake of ``revision``."""
    if revision == ENVELOPE:
        return str(shim.ask("server/discover", {"_meta": envelope()})["result"]["instructions"])
    return str(shim.initialize(revision)["result"]["instructions"])


def protocol(shim: ShimSession, revision: str) -> str:
    """The text of the prompt."""
    params: dict[str, Any] = {"name": prompts.PROMPT_NAME}
    if revision == ENVELOPE:
        params["_meta"] = envelope()
    return str(shim.ask("prompts/get", params)["result"]["messages"][0]["content"]["text"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_two_sessions_of_one_daemon_are_told_what_their_own_client_has(daemon: RunningDaemon, revision: str) -> None:
    with ExitStack() as stack:
        shims = {hook: stack.enter_context(session(daemon.directory, hook=hook)) for hook in (WITH, WITHOUT)}
        told = {hook: instructions(shim, revision) for hook, shim in shims.items()}
        for hook, shim in shims.items():
            assert told[hook].startswith(prompts.instructions(None, hook_installed=hook))
            assert protocol(shim, revision) == prompts.system_prompt(hook_installed=hook)


@pytest.mark.parametrize(("method", "revision"), [("initialize", "2025-11-25"), ("server/discover", ENVELOPE)])
@pytest.mark.parametrize("hook", [WITH, WITHOUT])
def test_the_daemon_itself_follows_what_a_request_says(
    daemon: RunningDaemon, *, hook: bool, method: str, revision: str
) -> None:
    told = told_directly(daemon, method, revision, {"x-keymem-hook-installed": str(hook).lower()})
    assert told == prompts.instructions({"memories": 1, "keys": 2, "links": 2}, hook_installed=hook)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("hook", [WITH, WITHOUT])
def test_the_record_says_the_same_when_no_daemon_can_answer(tmp_path: Path, *, hook: bool, revision: str) -> None:
    with session(tmp_path / "d", hook=hook, KEYMEM_DAEMON_AUTOSTART="false") as shim:
        assert instructions(shim, revision) == prompts.instructions(None, hook_installed=hook)


def test_the_daemon_that_a_session_starts_keeps_nothing_of_that_session_s_hook(tmp_path: Path) -> None:
    data = tmp_path / "d"
    try:
        with session(data, hook=WITH) as first, session(data, hook=WITHOUT) as second:
            for shim in (first, second):
                shim.initialize()
            shim_session.wait_for_daemon(data)
            first.call("recall", {"query": "well"})
            assert protocol(first, "2025-06-18") == prompts.system_prompt(hook_installed=True)
            assert protocol(second, "2025-06-18") == prompts.system_prompt(hook_installed=False)
            started = RunningDaemon(data, first.process)
            assert told_directly(started).startswith(prompts.instructions(None, hook_installed=False))
    finally:
        shim_session.end_daemon(data)


def test_a_client_without_a_shim_is_told_what_the_daemon_s_own_setting_says(tmp_path: Path) -> None:
    with running(tmp_path / "d", extra={"KEYMEM_HOOK_INSTALLED": "true"}) as daemon:
        assert told_directly(daemon).startswith(prompts.instructions(None, hook_installed=True))


def told_directly(
    daemon: RunningDaemon,
    method: str = "initialize",
    revision: str = "2025-06-18",
    said: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The instructions that a client on the socket gets, whose request has the headers ``said`` too."""
    headers, body = request_for(method, revision)
    with daemon.over_socket() as client:
        return str(client.post("/mcp", headers=headers | dict(said), json=body).json()["result"]["instructions"])
