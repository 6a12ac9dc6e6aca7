"""The real shim in front of the real daemon."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
import shim_session
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from shim_session import ENVELOPE, ShimSession, envelope

Start = Callable[..., ShimSession]
FACT = {"content": "The user likes strawberries", "keys": ["strawberry", "fruit", "food"]}


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data"
    yield directory
    if (directory / "start.lock").exists():
        shim_session.wait_for_daemon(directory)
        shim_session.end_daemon(directory)


@pytest.fixture
def shim(tmp_path: Path, data: Path) -> Iterator[Start]:
    sessions: list[ShimSession] = []

    def start(command: list[str] | None = None, **settings: str) -> ShimSession:
        sessions.append(ShimSession(shim_session.environment(data, settings), command, cwd=tmp_path))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


def structured(answer: dict[str, Any]) -> dict[str, Any]:
    content = answer["structuredContent"]
    assert isinstance(content, dict)
    return content


def test_a_fact_saved_in_one_session_is_recalled_in_another(shim: Start) -> None:
    first = shim()
    first.initialize()
    saved = structured(first.call("remember", FACT))["saved"]
    first.end_input()
    assert first.process.wait(3) == 0
    second = shim()
    second.initialize("2025-11-25")
    found = structured(second.call("recall", {"query": "fruit"}))
    assert found["status"] == "found"
    assert found["memories"][0]["id"] == saved


def test_twenty_shims_at_once_share_one_daemon(shim: Start, data: Path) -> None:
    sessions = [shim() for _ in range(20)]
    for number, session in enumerate(sessions):
        session.send("tools/call", {"name": "remember", "arguments": FACT | {"content": f"fact {number}"}})
    assert len({structured(session.answer(1, 60)["result"])["saved"] for session in sessions}) == 20
    pid = shim_session.daemon_pid(data)
    lines = (data / "logs" / "daemon.log").read_text().splitlines()
    assert sum("listening; process" in line for line in lines) == 1
    assert any(f"process {pid}," in line for line in lines)


def test_the_record_and_the_daemon_describe_the_same_server(shim: Start, data: Path) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("prompts/list", {}),
        ("tools/list", {"_meta": envelope()}),
        ("prompts/list", {"_meta": envelope()}),
    ]
    recorded = shim(KEYMEM_DAEMON_AUTOSTART="false")
    recorded.initialize()
    from_record = [recorded.ask(*request)["result"] for request in requests]
    live = shim()
    live.initialize()
    shim_session.wait_for_daemon(data)
    live.call("recall", {"query": "x"})
    assert [live.ask(*request)["result"] for request in requests] == from_record


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"toolsListChanged": True, "promptsListChanged": True},
        {"resourcesListChanged": True, "toolsListChanged": False},
    ],
)
def test_a_subscription_is_acknowledged_before_there_is_a_daemon_as_that_would_do_it(
    shim: Start, data: Path, asked: dict[str, bool]
) -> None:
    # Claude Code asks for the tools only when it has the acknowledgement, and sends its first request after about two seconds.
    request = ("subscriptions/listen", {"notifications": asked, "_meta": envelope()})
    early = shim(KEYMEM_DAEMON_AUTOSTART="false")
    early.send(*request)
    from_shim = early.line()
    assert shim_session.daemon_pid(data) is None
    live = shim()
    live.ask("tools/call", {"name": "recall", "arguments": {"query": "x"}, "_meta": envelope()})
    ident = live.send(*request)
    from_daemon = live.line()
    assert from_daemon["params"]["_meta"].popitem()[1] == ident
    assert from_shim["params"]["_meta"].popitem()[1] == 1
    assert from_shim == from_daemon
    live.notify("notifications/cancelled", {"requestId": ident})
    assert live.ask("tools/list", {"_meta": envelope()})["result"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_works_through_the_shim(data: Path, mode: Literal["legacy", "auto"]) -> None:
    async def drive() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "keymem_shim.main"], env=shim_session.environment(data)
        )
        async with Client(stdio_client(server), mode=mode) as client:
            assert len((await client.list_tools()).tools) == 10
            saved = await client.call_tool("remember", FACT)
            assert not saved.is_error
            found = await client.call_tool("recall", {"query": "food"})
            assert found.structured_content is not None
            assert found.structured_content["status"] == "found"
            prompt = await client.get_prompt("memory_system_prompt")
            assert prompt.messages

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(drive)


def test_a_daemon_that_is_told_to_stop_answers_what_it_has_and_the_next_call_starts_another(
    shim: Start, data: Path
) -> None:
    session = shim()
    session.initialize()
    session.call("remember", FACT)
    first = shim_session.wait_for_daemon(data)
    idents = [
        session.send("tools/call", {"name": "remember", "arguments": FACT | {"content": f"fact {number}"}})
        for number in range(30)
    ]
    os.kill(first, signal.SIGTERM)
    for ident in idents:
        result = session.answer(ident)["result"]
        assert not result["isError"], result
        assert "deduplicated" not in structured(result)
    found = structured(session.call("browse_keys", {"namespace": "default"}))
    assert found["memory_count"] == 31


def test_writes_of_a_session_happen_in_the_order_in_which_they_were_sent(shim: Start) -> None:
    session = shim()
    session.initialize()
    saved = structured(session.call("remember", FACT))["saved"]
    for round_number in range(10):
        text = f"The user likes strawberries, as of round {round_number}"
        correct = session.send("tools/call", {"name": "correct", "arguments": {"memory_id": saved, "content": text}})
        read = session.send("tools/call", {"name": "read_memory", "arguments": {"memory_id": saved}})
        assert "superseded" in str(session.answer(read)["result"])
        saved = structured(session.answer(correct)["result"])["new_id"]


def test_the_envelope_revision_needs_no_handshake(shim: Start) -> None:
    session = shim()
    meta = {"_meta": envelope()}
    discovered = session.ask("server/discover", meta)["result"]
    assert discovered["supportedVersions"] == [ENVELOPE]
    called = session.ask("tools/call", {"name": "remember", "arguments": FACT, **meta})["result"]
    assert structured(called)["saved"]


def test_bad_input_is_answered_and_the_session_goes_on(shim: Start) -> None:
    session = shim()
    session.initialize()
    session.write(b"\xff{}\n{\n[1]\n")
    assert [session.answer(None)["error"]["code"] for _ in range(3)] == [-32700, -32700, -32600]
    for text in ("\ud800", "a\0b"):
        result = session.ask("tools/call", {"name": "remember", "arguments": FACT | {"content": text}})["result"]
        assert result["isError"]
        assert structured(result)["error"]["code"] == "invalid_argument"
    assert structured(session.call("remember", FACT))["saved"]


@pytest.mark.parametrize("event", ["subprocess.Popen", "socket.__new__"])
def test_where_no_daemon_can_be_the_same_tools_are_served_by_one_process(shim: Start, data: Path, event: str) -> None:
    program = (
        "import sys\n"
        "import keymem_shim.main as main\n"
        "def refuse(event, arguments):\n"
        f"    if event == {event!r}: raise PermissionError(1, 'not here')\n"
        "sys.addaudithook(refuse)\n"
        "main.main()\n"
    )
    session = shim([sys.executable, "-c", program])
    session.initialize(limit_s=30)
    assert structured(session.call("remember", FACT))["saved"]
    assert shim_session.daemon_pid(data) is None
    session.end_input()
    assert session.process.wait(10) == 0
    (data / "start.lock").unlink(missing_ok=True)
