"""A daemon that cannot start: whoever waits for it is told why, soon, and nothing is left lying about."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from keymemd_command import COMMAND, WAIT_S, fails, json_of, keymemd
from running_daemon import clean_environment, running
from shim_session import ShimSession, daemon_pid, end_daemon, environment

SOON_S = 8.0


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "data"
    yield data
    end_daemon(data)


def no_socket(directory: Path) -> None:
    (directory / "daemon.sock" / "occupied").mkdir(parents=True)


def no_discovery_file(directory: Path) -> None:
    (directory / "daemon.json" / "occupied").mkdir(parents=True)


OBSTACLES = pytest.mark.parametrize(
    ("obstruct", "cause"), [(no_socket, "daemon.sock"), (no_discovery_file, "daemon.json")]
)


@OBSTACLES
def test_a_call_is_told_soon_why_the_daemon_cannot_start_and_hardly_any_is_tried(
    directory: Path, obstruct: Callable[[Path], None], cause: str
) -> None:
    obstruct(directory)
    with ShimSession(environment(directory)) as session:
        session.initialize()
        arguments = {"name": "recall", "arguments": {"query": "x"}}
        error = session.ask("tools/call", arguments, limit_s=SOON_S)["error"]
    assert error["code"] == -32001
    assert cause in error["message"]
    log = (directory / "logs" / "daemon.log").read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert 1 <= log.count("keymemd: ") <= 2
    assert not [path for path in directory.glob("daemon.json*") if path.is_file()]


@OBSTACLES
def test_start_says_in_one_line_why_it_failed(directory: Path, obstruct: Callable[[Path], None], cause: str) -> None:
    obstruct(directory)
    assert cause in fails(directory, "start")


def test_a_session_whose_daemon_could_not_start_works_once_the_obstacle_is_gone(directory: Path) -> None:
    no_discovery_file(directory)
    with ShimSession(environment(directory)) as session:
        session.initialize()
        arguments = {"name": "recall", "arguments": {"query": "x"}}
        assert "error" in session.ask("tools/call", arguments, limit_s=SOON_S)
        (directory / "daemon.json" / "occupied").rmdir()
        (directory / "daemon.json").rmdir()
        assert "result" in session.ask("tools/call", arguments)


def test_a_daemon_that_hangs_is_named_with_the_step_that_works(directory: Path) -> None:
    with running(directory) as daemon:
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            done = keymemd(directory, "status")
            assert done.returncode == 2
            assert f"kill -9 {daemon.process.pid}" in done.stdout
            assert "keymemd start" not in done.stdout
            assert f"kill -9 {daemon.process.pid}" in fails(directory, "stop")
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)


def test_restarts_from_two_terminals_at_once_both_end_well_while_a_session_writes(directory: Path) -> None:
    json_of(directory, "start")
    with ShimSession(environment(directory)) as session:
        session.initialize()
        terminals = [
            subprocess.Popen(
                [*COMMAND, "restart"],
                env=clean_environment(directory),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        deadline = time.monotonic() + WAIT_S
        written = 0
        while any(terminal.poll() is None for terminal in terminals):
            assert time.monotonic() < deadline
            result = session.call("remember", {"content": f"fact number {written}", "keys": [f"number {written}"]})
            assert not result.get("isError"), result
            written += 1
        for terminal in terminals:
            said, complaint = terminal.communicate(timeout=WAIT_S)
            assert (terminal.returncode, complaint) == (0, ""), said
    assert daemon_pid(directory) is not None


def test_the_history_of_what_there_never_was_is_a_failure(directory: Path) -> None:
    assert "zzz" in fails(directory, "history", "zzz")
