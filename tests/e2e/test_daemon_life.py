"""The daemon as a process: one per directory, found when it answers, gone in time, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from keymemd_command import fails, keymemd
from running_daemon import WAIT_S, RunningDaemon, clean_environment, end, running, start, wait_until
from shim_session import ShimSession, end_daemon, environment

from keymem_shim import http1, rendezvous

SOON_S = 8.0
FACT = {"items": [{"content": "The user likes strawberries", "keys": ["strawberry", "fruit"]}]}


def attend(daemon: RunningDaemon, session: str) -> socket.socket:
    """Hold a session's connection open as a shim does; returns once it counts."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(WAIT_S)
    connection.connect(daemon.discovery.socket or "")
    connection.sendall(f"GET /session HTTP/1.1\r\nHost: localhost:1\r\nX-Keymem-Session: {session}\r\n\r\n".encode())
    assert connection.recv(4_096).startswith(b"HTTP/1.1 200")
    return connection


def test_everything_the_daemon_writes_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with running(tmp_path / "d") as daemon:
            daemon.verb("remember", FACT)
            assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
            for found in (tmp_path / "d").rglob("*"):
                expected = 0o700 if found.is_dir() else 0o600
                assert stat.S_IMODE(found.stat().st_mode) == expected, found
    finally:
        os.umask(before)


def test_a_term_signal_ends_the_daemon_within_two_seconds_and_it_leaves_nothing_behind(tmp_path: Path) -> None:
    with running(tmp_path / "d") as daemon:
        session = attend(daemon, "one")
        daemon.verb("remember", FACT)
        path = daemon.discovery.socket or ""
        took = daemon.stop(signal.SIGTERM)
        session.close()
        assert daemon.process.returncode == 0
        assert took < 4.0, "two seconds, and as much again for a loaded machine"
        assert not Path(rendezvous.discovery_path(str(tmp_path / "d"))).exists()
        assert not Path(path).exists()


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    with running(tmp_path / "d") as daemon:
        saved = daemon.verb("remember", FACT)["results"][0]["saved"]
        daemon.stop(signal.SIGKILL)
    with running(tmp_path / "d") as daemon:
        assert daemon.verb("show", {"id": saved})


def test_a_killed_daemons_socket_and_discovery_file_do_not_stop_the_next_one(tmp_path: Path) -> None:
    with running(tmp_path / "d") as daemon:
        before = daemon.discovery
        daemon.stop(signal.SIGKILL)
        assert Path(before.socket or "").exists()
    with running(tmp_path / "d") as daemon:
        assert daemon.discovery.instance != before.instance


def test_of_two_daemons_started_at_once_one_serves_and_the_other_says_so(tmp_path: Path) -> None:
    one, two = start(tmp_path / "d"), start(tmp_path / "d")
    try:
        wait_until(lambda: one.process.poll() is not None or two.process.poll() is not None, "one to give way")
        loser, winner = (one, two) if one.process.poll() is not None else (two, one)
        assert loser.process.returncode == 3
        assert b"already serves" in (loser.process.stderr.read() if loser.process.stderr else b"")
        winner.wait_ready()
        assert winner.discovery.pid == winner.process.pid
    finally:
        end(one)
        end(two)


def test_a_daemon_started_by_a_shim_leaves_when_nobody_is_there(tmp_path: Path) -> None:
    quick = {"KEYMEM_DAEMON_IDLE_MS": "3000", "KEYMEM_SESSION_REAP_GRACE_MS": "50"}
    with running(tmp_path / "d", "--started-by", "shim", extra=quick) as daemon:
        session = attend(daemon, "one")
        with daemon.over_socket() as client:
            (listed,) = client.get("/status").json()["sessions"]
        assert (listed["id"], listed["live"]) == ("one", True)
        assert daemon.process.poll() is None
        session.close()
        daemon.process.wait(WAIT_S)
        assert daemon.process.returncode == 0


def test_a_daemon_that_a_person_started_stays(tmp_path: Path) -> None:
    quick = {"KEYMEM_DAEMON_IDLE_MS": "100", "KEYMEM_SESSION_REAP_GRACE_MS": "0"}
    with running(tmp_path / "d", "--started-by", "person", extra=quick) as daemon:
        threading.Event().wait(0.6)
        assert daemon.process.poll() is None


def test_a_daemon_hands_over_to_a_newer_version_only_when_a_shim_started_it(tmp_path: Path) -> None:
    with running(tmp_path / "d", "--started-by", "person") as daemon:
        assert daemon.post("/control/handover", {"version": "99.0"}).status_code == 409
    with running(tmp_path / "d", "--started-by", "shim") as daemon:
        assert daemon.post("/control/handover", {"version": "0.0.1"}).status_code == 409
        assert daemon.post("/control/handover", {"version": "99.0"}).status_code == 202
        daemon.process.wait(WAIT_S)
        assert daemon.process.returncode == 0


def test_a_request_that_was_taken_is_answered_or_hung_up_on_and_never_half_done(tmp_path: Path) -> None:
    items = [{"content": f"Fact number {n}", "keys": [f"subject {n}", f"thing {n}"]} for n in range(20)]
    answered = False
    with running(tmp_path / "d") as daemon:
        daemon.verb("remember", FACT)
        deadline = time.monotonic() + WAIT_S
        with closing(http1.Connection(daemon.discovery.address, deadline)) as connection:
            body = json.dumps({"items": items}).encode()
            connection.send("POST", "/api/remember", [("Content-Type", "application/json")], body, deadline)
            daemon.stop(signal.SIGTERM)
            with suppress(OSError):
                answered = connection.receive(deadline).status == 200
        assert daemon.process.returncode == 0
    with running(tmp_path / "d") as daemon:
        total = daemon.verb("list", {"limit": 1})["total"]
    assert total in ((21,) if answered else (1, 21))


def test_the_discovery_file_names_the_daemon_and_the_log_does_not_name_the_token(tmp_path: Path) -> None:
    with running(tmp_path / "d") as daemon:
        daemon.verb("remember", FACT)
        said = json.loads(Path(rendezvous.discovery_path(str(tmp_path / "d"))).read_text())
        assert set(said) == {"pid", "started_at", "socket", "port", "token", "instance", "version", "protocol"}
        assert said["pid"] == daemon.process.pid
        assert len(bytes.fromhex(said["token"])) == 32
        daemon.stop()
    log = (tmp_path / "d" / "logs" / "daemon.log").read_text()
    assert "listening" in log
    assert said["token"] not in log
    assert "strawberries" not in log


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def tool_call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@contextmanager
def stdio_server(directory: Path, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """`keymemd stdio`, killed if it is still there afterwards."""
    with subprocess.Popen(
        [sys.executable, "-m", "keymem_daemon", "stdio"],
        env=clean_environment(directory, extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        killer = threading.Timer(WAIT_S, process.kill)
        killer.start()
        try:
            yield process
        finally:
            killer.cancel()
            process.kill()


def exchanged(process: subprocess.Popen[bytes], lines: list[bytes], answers: int) -> list[dict[str, Any]]:
    """Write the lines, read so many answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(line + b"\n" for line in lines))
    process.stdin.flush()
    found = []
    for _ in range(answers):
        line = process.stdout.readline()
        assert line, "the server ended early"
        found.append(json.loads(line))
        assert found[-1]["jsonrpc"] == "2.0"
    return found


def test_the_server_on_stdio_speaks_only_json_rpc_and_holds_the_same_lock(tmp_path: Path) -> None:
    requests = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        tool_call(2, "remember", FACT["items"][0]),
        tool_call(3, "recall", {"query": "fruit"}),
    ]
    with stdio_server(tmp_path / "d") as process:
        answers = {answer["id"]: answer for answer in exchanged(process, [json.dumps(r).encode() for r in requests], 3)}
        second = subprocess.run(
            [sys.executable, "-m", "keymem_daemon", "stdio"],
            env=clean_environment(tmp_path / "d"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        assert (second.returncode, second.stdout) == (3, b"")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(WAIT_S) == 0
    assert answers[3]["result"]["structuredContent"]["memories"][0]["content"] == FACT["items"][0]["content"]


LOUD = """
import importlib.abc, os, sys

class Loud(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"anyio", "mcp", "numpy", "pydantic"}:
            print("stray", name, flush=True)
            os.write(1, b"stray\\n")

sys.meta_path.insert(0, Loud())
"""


def test_what_libraries_print_while_they_load_is_not_for_the_client_on_stdio(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(LOUD)
    with stdio_server(tmp_path / "d", PYTHONPATH=str(tmp_path / "site")) as process:
        requests = [
            HELLO,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            tool_call(2, "recall", {"query": "a"}),
        ]
        answers = exchanged(process, [json.dumps(request).encode() for request in requests], 2)
        assert {answer["id"] for answer in answers} == {1, 2}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.stdout.read() == b""


def test_a_line_on_stdin_that_is_no_message_is_answered_and_the_next_one_is_served(tmp_path: Path) -> None:
    lone = json.dumps(tool_call(2, "recall", {"query": "a\ud800"})).encode()
    lines = [b"{broken", b"\xff\xfe", b"[]", b" " * (4 * 1024 * 1024) + b"{}", json.dumps(HELLO).encode(), lone]
    with stdio_server(tmp_path / "d") as process:
        answers = exchanged(process, lines, 6)
        assert [answer["error"]["code"] for answer in answers[:4]] == [-32700, -32700, -32600, -32600]
        assert answers[4]["id"] == 1
        assert answers[5]["result"]["structuredContent"]["error"]["code"] == "invalid_argument"
        process.terminate()
        assert process.wait(WAIT_S) == 0


def test_who_meets_a_directory_that_a_single_process_server_holds_is_told_soon_what_to_do(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    recall = {"name": "recall", "arguments": {"query": "x"}}
    with stdio_server(directory) as process:
        exchanged(process, [json.dumps(HELLO).encode()], 1)
        with ShimSession(environment(directory)) as shim:
            holder = f"`keymemd stdio` (process {process.pid}) holds {directory}"
            assert shim.initialize()["result"]
            error = shim.ask("tools/call", recall, limit_s=SOON_S)["error"]
            assert error["code"] == -32001
            assert holder in error["message"]
            assert "end that client" in error["message"]
            for words, code in ((("run",), 3), (("start",), 1), (("stop",), 1), (("recall", "x"), 1)):
                assert holder in fails(directory, *words, code=code)
            status = keymemd(directory, "status")
            assert (status.returncode, holder in status.stdout) == (2, True)
            exchanged(process, [json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}).encode()], 1)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(WAIT_S) == 0
            assert not (directory / "stdio.pid").exists()
            assert "result" in shim.ask("tools/call", recall)
    end_daemon(directory)


def test_what_a_killed_single_process_server_left_behind_keeps_nobody_out(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    with stdio_server(directory) as process:
        exchanged(process, [json.dumps(HELLO).encode()], 1)
        process.kill()
        process.wait(WAIT_S)
    assert (directory / "stdio.pid").exists()
    with running(directory) as daemon:
        assert daemon.verb("list", {})["total"] == 0
        assert not (directory / "stdio.pid").exists()
