"""The real shim in front of a protocol peer that does what a daemon does only in bad moments."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shim_peer
import shim_session
from shim_session import ENVELOPE, ShimSession, envelope

import keymem_shim
from keymem_shim import rendezvous

Start = Callable[..., ShimSession]
TOOLS = {"tools": [{"name": "from_record", "inputSchema": {"type": "object"}}]}
RECORD = {
    "version": keymem_shim.VERSION,
    "answers": {
        "initialize": {
            "default": {
                "2025-11-25": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "record", "version": "1"},
                },
                "2025-06-18": "2025-11-25",
            }
        },
        "server/discover": {"default": {ENVELOPE: {"supportedVersions": [ENVELOPE], "capabilities": {}}}},
        "tools/list": {"default": {"2025-06-18": TOOLS, "2025-11-25": TOOLS, ENVELOPE: TOOLS}},
    },
}


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data"
    yield directory
    directory.mkdir(exist_ok=True)
    (directory / shim_peer.STOP).touch()
    shim_session.end_daemon(directory)


@pytest.fixture
def shim(tmp_path: Path, data: Path) -> Iterator[Start]:
    """Starts shims that find the peer as their daemon, and a record of this file's making."""
    packages = shim_peer.install(tmp_path / "packages")
    shutil.copytree(Path(keymem_shim.__file__).parent, packages / "keymem_shim")
    (packages / "keymem_shim" / "handshake.json").write_text(json.dumps(RECORD))
    sessions: list[ShimSession] = []

    def start(command: list[str] | None = None, **settings: str) -> ShimSession:
        env = shim_session.environment(data, {"PYTHONPATH": str(packages)} | settings)
        sessions.append(ShimSession(env, command, cwd=tmp_path))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


def seen(data: Path) -> list[dict[str, Any]]:
    """Return what the peer noted of its requests."""
    path = data / "peer.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def presences(data: Path) -> list[str]:
    """Return the sessions that the peer saw standing, one for each time one was."""
    return [entry["session"] for entry in seen(data) if "session" in entry]


def eventually(question: Callable[[], object], limit_s: float = 10.0) -> None:
    deadline = time.monotonic() + limit_s
    while not question():
        assert time.monotonic() < deadline, "it did not come to pass"
        select.select([], [], [], 0.02)


def ends(session: ShimSession, limit_s: float) -> int:
    return session.process.wait(limit_s)


def test_a_handshake_without_a_daemon_comes_from_the_record_and_calls_wait_for_the_daemon(
    shim: Start, data: Path
) -> None:
    session = shim()
    assert session.initialize()["result"]["serverInfo"]["name"] == "record"
    assert session.ask("tools/list")["result"] == TOOLS
    assert session.ask("ping")["result"] == {}
    assert session.call("echo", {"text": "한글"})["content"][0]["text"] == "한글"
    assert session.ask("tools/list")["result"] != TOOLS
    assert len((data / "peer.starts").read_text().split()) == 1


def test_the_client_is_introduced_to_a_daemon_that_came_later(shim: Start, data: Path) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "x"})
    replayed = [
        entry
        for entry in seen(data)
        if "-replay-" not in entry.get("x-keymem-request-id", "")
        and "mcp-protocol-version" not in entry
        and "session" not in entry
    ]
    assert len(replayed) == 1
    assert replayed[0]["x-keymem-client"] == "tester/1"


def test_every_revision_is_served(shim: Start) -> None:
    session = shim()
    meta = {"_meta": envelope()}
    assert session.ask("server/discover", meta)["result"]["supportedVersions"] == [ENVELOPE]
    assert session.ask("tools/call", {"name": "echo", "arguments": {"text": "a"}, **meta})["result"]["resultType"]
    for revision in ("2025-06-18", "2025-11-25"):
        assert session.initialize(revision)["result"]["protocolVersion"] == revision
        assert session.call("echo", {"text": "b"})["content"][0]["text"] == "b"


def test_bad_lines_are_answered_and_the_session_goes_on(shim: Start) -> None:
    session = shim()
    session.write(b"\xff\xfe\n{\n[]\n\n")
    assert [session.line()["error"]["code"] for _ in range(3)] == [-32700, -32700, -32600]
    session.write(b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"x":"' + b"y" * (5 << 20) + b'"}}\n')
    assert "4194304" in session.answer("big")["error"]["message"]
    session.write(b"z" * (17 << 20) + b"\n")
    assert session.answer(None)["error"]["code"] == -32600
    session.initialize()
    # The peer's parser refuses half a surrogate pair; what matters is that it is the peer that says so, under the id.
    assert session.ask("tools/call", {"name": "echo", "arguments": {"text": "\ud800"}})["error"]["code"] == -32700
    assert session.call("echo", {"text": "still here"})["content"][0]["text"] == "still here"


def test_a_slow_call_holds_up_no_later_one_and_seq_tells_their_order(shim: Start, data: Path) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    slow = session.send("tools/call", {"name": "slow", "arguments": {"seconds": 30}})
    for number in range(20):
        session.call("echo", {"text": str(number)}, limit_s=10)
    # Each call has a connection of its own: the peer may hear of the slow one after the first of the others.
    noted = sorted((entry for entry in seen(data) if "x-keymem-seq" in entry), key=lambda entry: int(entry["x-keymem-seq"]))
    assert [int(entry["x-keymem-seq"]) for entry in noted] == list(range(1, 23))
    assert {entry["x-keymem-seq-floor"] for entry in noted[1:]} == {"2"}
    session.notify("notifications/cancelled", {"requestId": slow})
    session.call("echo", {"text": "after"})
    assert int(seen(data)[-1]["x-keymem-seq-floor"]) == 23


def test_handshake_requests_do_not_wait_behind_calls(shim: Start) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    for _ in range(20):
        session.send("tools/call", {"name": "slow", "arguments": {"seconds": 30}})
    assert session.ask("ping", limit_s=10)["result"] == {}


def test_a_call_whose_daemon_died_of_it_is_sent_again_and_done_once(shim: Start, data: Path) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    assert "content" in session.call("die", {"mark": "first"})
    assert [line.split("\t")[1] for line in (data / "peer.store").read_text().splitlines()] == ["first"]
    assert len((data / "peer.starts").read_text().split()) == 2
    sent = [(entry["x-keymem-request-id"], entry["x-keymem-seq"]) for entry in seen(data) if "x-keymem-seq" in entry]
    assert sent[1][0] == sent[2][0]
    assert [seq for _request_id, seq in sent] == ["1", "2", "1"]


def test_the_presence_returns_after_a_restart(shim: Start, data: Path) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    eventually(lambda: presences(data))
    before = presences(data)
    session.call("die", {"mark": "first"})
    eventually(lambda: len(presences(data)) > len(before))
    assert len(set(presences(data))) == 1


def test_a_subscription_survives_the_daemon_and_ends_when_cancelled(shim: Start, data: Path) -> None:
    session = shim()
    meta = {"_meta": envelope()}
    ident = session.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}, **meta})
    assert session.line()["method"] == "notifications/subscriptions/acknowledged"
    eventually(lambda: sum(entry.get("mcp-method") == "subscriptions/listen" for entry in seen(data)) == 1)
    session.ask("tools/call", {"name": "die", "arguments": {"mark": "m"}, **meta})
    eventually(lambda: sum(entry.get("mcp-method") == "subscriptions/listen" for entry in seen(data)) >= 2)
    session.notify("notifications/cancelled", {"requestId": ident})
    assert session.ask("tools/call", {"name": "echo", "arguments": {"text": "a"}, **meta})["result"]
    session.end_input()
    assert session.process.stdout is not None
    assert session.process.stdout.read() == b""


def test_twenty_shims_at_once_start_one_daemon(shim: Start, data: Path) -> None:
    sessions = [shim() for _ in range(20)]
    for session in sessions:
        session.send("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    for session in sessions:
        assert "result" in session.answer(1, limit_s=60)
    assert len((data / "peer.starts").read_text().split()) == 1


def test_a_stale_discovery_file_and_a_silent_listener_end_in_a_working_daemon(shim: Start, data: Path) -> None:
    data.mkdir(mode=0o700)
    silent_path = str(data / "other.sock")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(silent_path)
        silent.listen(64)
        content = {"pid": os.getpid(), "started_at": "x", "socket": silent_path, "port": None, "token": "t"}
        content |= {"instance": "old", "version": keymem_shim.VERSION, "protocol": rendezvous.PROTOCOL}
        (data / "daemon.json").write_text(json.dumps(content))
        session = shim()
        assert session.initialize()["result"]["serverInfo"]["name"] == "record"
        assert session.call("echo", {"text": "x"})


def test_a_newer_shim_replaces_an_older_daemon(shim: Start, data: Path, tmp_path: Path) -> None:
    data.mkdir(mode=0o700)
    env = shim_session.environment(data)
    old = subprocess.Popen([sys.executable, shim_peer.PEER, str(data), "--version", "0.0.1"], env=env, cwd=tmp_path)
    try:
        shim_session.wait_for_daemon(data)
        session = shim()
        session.initialize()
        assert session.call("echo", {"text": "x"})
        assert old.wait(10) == 0
        assert shim_session.daemon_pid(data) != old.pid
    finally:
        old.kill()
        old.wait(5)


def test_where_starting_is_forbidden_calls_fail_at_once_and_say_what_to_do(shim: Start, data: Path) -> None:
    session = shim(KEYMEM_DAEMON_AUTOSTART="false")
    assert session.initialize()["result"]
    error = session.ask("tools/call", {"name": "echo", "arguments": {}}, limit_s=10)["error"]
    assert error["code"] == -32001
    assert "keymemd start" in error["message"]
    assert not (data / "peer.starts").exists()


def test_a_daemon_that_someone_else_starts_is_found(shim: Start, data: Path, tmp_path: Path) -> None:
    session = shim(KEYMEM_DAEMON_AUTOSTART="false")
    session.initialize()
    data.mkdir(mode=0o700, exist_ok=True)
    peer = subprocess.Popen(
        [sys.executable, shim_peer.PEER, str(data)], env=shim_session.environment(data), cwd=tmp_path
    )
    try:
        shim_session.wait_for_daemon(data)
        assert session.call("echo", {"text": "x"})
    finally:
        peer.kill()
        peer.wait(5)


def test_the_end_of_input_ends_the_shim_after_what_was_in_flight(shim: Start) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    ident = session.send("tools/call", {"name": "slow", "arguments": {"seconds": 0.5}})
    session.end_input()
    assert "result" in session.answer(ident)
    assert ends(session, 10) == 0


def test_the_end_of_input_does_not_wait_long_and_leaves_no_call_unanswered(shim: Start) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    ident = session.send("tools/call", {"name": "slow", "arguments": {"seconds": 30}})
    session.end_input()
    assert session.answer(ident, limit_s=10)["error"]["code"] == -32001
    assert ends(session, 10) == 0


def test_a_last_line_without_a_line_end_counts(shim: Start) -> None:
    session = shim()
    session.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    session.end_input()
    assert session.answer(1)["result"] == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_shim(shim: Start, number: signal.Signals) -> None:
    session = shim()
    session.initialize()
    session.process.send_signal(number)
    assert ends(session, 10) == 0


def test_a_client_that_stops_reading_ends_the_shim(shim: Start) -> None:
    session = shim()
    session.initialize()
    assert session.process.stdout is not None
    session.process.stdout.close()
    session.send("ping")
    assert ends(session, 10) == 0


def test_the_loss_of_the_parent_ends_the_shim(shim: Start) -> None:
    # The shim's input is this test's, so only the loss of its parent can end it.
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'keymem_shim.main'])\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "child.wait()\n"
    )
    session = shim([sys.executable, "-c", program])
    assert session.process.stderr is not None
    pid = int(session.process.stderr.readline())
    assert session.ask("ping")["result"] == {}
    session.process.kill()
    session.process.wait(5)
    eventually(lambda: not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text(), 5)


def test_nothing_that_a_library_prints_reaches_the_client(shim: Start) -> None:
    program = (
        "import os, subprocess, threading, keymem_shim.main as main, keymem_shim.bridge as bridge\n"
        "accept = bridge.Bridge.accept\n"
        "def loud(self, line):\n"
        "    print('stray'); os.write(1, b'stray\\n'); subprocess.run(['echo', 'stray'])\n"
        "    return accept(self, line)\n"
        "bridge.Bridge.accept = loud\n"
        "main.main()\n"
    )
    session = shim([sys.executable, "-c", program])
    session.initialize()
    for _ in range(5):
        assert session.ask("ping")["result"] == {}
    session.end_input()
    ends(session, 10)
    assert session.process.stdout is not None
    assert session.process.stdout.read() == b""
    assert "stray" in session.errors()


@pytest.mark.parametrize("event", ["subprocess.Popen", "socket.__new__"])
def test_where_no_daemon_can_be_the_shim_becomes_the_single_process_server(shim: Start, event: str) -> None:
    program = (
        "import sys\n"
        "import keymem_shim.main as main\n"
        "def refuse(event, arguments):\n"
        f"    if event == {event!r}: raise PermissionError(1, 'not here')\n"
        "    if event == 'os.exec': print('becomes', *arguments[1], file=sys.stderr, flush=True)\n"
        "sys.addaudithook(refuse)\n"
        "main.main()\n"
    )
    session = shim([sys.executable, "-c", program])
    session.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert session.process.stderr is not None
    assert session.process.stderr.readline().split()[-3:] == [b"-m", b"keymem_daemon", b"stdio"]


def test_the_hosts_session_is_claimed_to_the_daemon_but_not_inherited_by_it(shim: Start, data: Path) -> None:
    session = shim(CLAUDE_CODE_SESSION_ID="0197f2a0-0000-7000-8000-0123456789ab")
    session.initialize()
    session.call("echo", {"text": "x"})
    entry = next(entry for entry in seen(data) if "x-keymem-seq" in entry)
    assert entry["x-keymem-host-agent"] == "claude"
    assert entry["x-keymem-host-session"] == "0197f2a0-0000-7000-8000-0123456789ab"
    environ = Path(f"/proc/{entry['pid']}/environ")
    if environ.exists():
        assert b"CLAUDE_CODE_SESSION_ID" not in environ.read_bytes()


def test_a_daemon_that_hangs_does_not_hold_a_call_for_ever(shim: Start, data: Path) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "up"})
    pid = shim_session.wait_for_daemon(data)
    os.kill(pid, signal.SIGSTOP)
    try:
        ident = session.send("tools/call", {"name": "add", "arguments": {"text": "late"}})
        assert session.ask("ping", limit_s=10)["result"] == {}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "result" in session.answer(ident)


def test_files_that_the_shim_makes_are_private(shim: Start, data: Path) -> None:
    session = shim()
    session.initialize()
    session.call("echo", {"text": "x"})
    assert data.stat().st_mode & 0o777 == 0o700
    for name in ("start.lock", "logs/daemon.log"):
        assert (data / name).stat().st_mode & 0o777 == 0o600


def test_a_data_directory_that_cannot_be_used_is_named_at_once(shim: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    session = shim(KEYMEM_DATA_DIR=str(tmp_path / "file" / "data"))
    session.initialize()
    error = session.ask("tools/call", {"name": "echo", "arguments": {}}, limit_s=10)["error"]
    assert error["code"] == -32001
    assert "data directory" in error["message"]


@pytest.mark.parametrize("works", [True, False])
def test_an_installed_service_is_asked_to_start_the_daemon_and_need_not_manage(
    shim: Start, tmp_path: Path, *, works: bool
) -> None:
    home = tmp_path / "home"
    default = home / ".keymem"
    unit = home / ".config" / "systemd" / "user" / "keymemd.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    default.mkdir(mode=0o700)
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    start = f"{sys.executable} {shim_peer.PEER} {default} >/dev/null 2>&1 &" if works else "exit 1"
    systemctl.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/asked\n{start}\n")
    systemctl.chmod(0o755)
    path = f"{systemctl.parent}:/usr/bin:/bin"
    session = shim(HOME=str(home), KEYMEM_DATA_DIR=str(default), PATH=path)
    try:
        session.initialize()
        session.call("echo", {"text": "x"})
        assert (tmp_path / "asked").read_text() == "--user start keymemd.service\n"
        assert len((default / "peer.starts").read_text().split()) == 1
        assert ((default / "logs" / "daemon.log").exists()) == (not works)
    finally:
        session.close()
        (default / shim_peer.STOP).touch()
        shim_session.end_daemon(default)


def test_a_person_at_a_terminal_is_told_what_this_is(shim: Start) -> None:
    for option, code in (("--help", 0), ("--version", 0), ("serve", 2)):
        session = shim([sys.executable, "-m", "keymem_shim.main", option])
        session.end_input()
        assert ends(session, 10) == code
