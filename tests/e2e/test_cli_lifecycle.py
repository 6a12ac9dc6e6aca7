"""Starting, stopping and looking at the daemon from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keymemd_command import COMMAND, WAIT_S, fails, json_of, keymemd, on_terminal, succeeds
from running_daemon import clean_environment, running
from shim_session import daemon_pid, end_daemon

from keymem_shim.holder import is_held

# What a shell runs in the background ignores interrupts, and so would all that it starts.
HEEDING_INTERRUPTS = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "data"
    yield data
    end_daemon(data)


def test_start_waits_until_the_daemon_has_opened_its_store_and_prints_its_pid(directory: Path) -> None:
    said = json_of(directory, "start")
    assert said["started"]
    assert said["pid"] == daemon_pid(directory)
    report = json_of(directory, "status")
    assert report["state"] == "healthy"
    assert report["daemon"]["started_by"] == "person"


def test_a_daemon_started_on_the_command_line_is_of_its_own_session(directory: Path) -> None:
    pid = json_of(directory, "start")["pid"]
    assert os.getsid(pid) == pid


def test_starting_again_leaves_the_daemon_there_is(directory: Path) -> None:
    first = json_of(directory, "start")
    again = json_of(directory, "start")
    assert again == {**first, "started": False}
    assert "already running" in succeeds(directory, "start")


def test_stop_returns_when_the_data_directory_is_free(directory: Path) -> None:
    pid = json_of(directory, "start")["pid"]
    assert json_of(directory, "stop") == {"stopped": True, "pid": pid}
    assert not is_held(str(directory))
    assert daemon_pid(directory) is None


def test_stop_where_nothing_runs_is_no_failure_and_starts_nothing(directory: Path) -> None:
    assert json_of(directory, "stop") == {"stopped": False, "pid": None}
    assert daemon_pid(directory) is None


def test_restart_brings_another_process_with_the_same_memories(directory: Path) -> None:
    saved = json_of(directory, "remember", "Ada wrote the first program.", "-k", "Ada", "-k", "program")["saved"]
    before = daemon_pid(directory)
    after = json_of(directory, "restart")["pid"]
    assert after == daemon_pid(directory) != before
    assert json_of(directory, "recall", "Ada")["memories"][0]["id"] == saved


def test_restart_where_nothing_runs_starts_a_daemon(directory: Path) -> None:
    assert json_of(directory, "restart")["pid"] == daemon_pid(directory)


def test_status_ends_with_2_where_no_daemon_runs_and_starts_none(directory: Path) -> None:
    done = keymemd(directory, "status")
    assert (done.returncode, done.stderr) == (2, "")
    assert "keymemd start" in done.stdout
    as_json = keymemd(directory, "status", "--json")
    assert as_json.returncode == 2
    assert json.loads(as_json.stdout)["state"] == "down"
    assert daemon_pid(directory) is None


def test_status_ends_with_1_and_names_the_step_when_a_setting_cannot_be_used(directory: Path) -> None:
    succeeds(directory, "start", extra={"KEYMEM_KEY_MERGE": "much"})
    done = keymemd(directory, "status")
    assert done.returncode == 1
    assert "KEYMEM_KEY_MERGE" in done.stdout
    assert "keymemd restart" in done.stdout


def test_a_killed_daemon_is_down_though_its_discovery_file_is_there(directory: Path) -> None:
    os.kill(json_of(directory, "start")["pid"], signal.SIGKILL)
    assert (directory / "daemon.json").exists()
    assert keymemd(directory, "status").returncode == 2
    assert json_of(directory, "start")["started"]


def test_run_says_who_serves_the_directory_already(directory: Path) -> None:
    with running(directory) as daemon:
        done = keymemd(directory, "run")
        assert done.returncode == 3
        assert str(daemon.process.pid) in done.stderr
        assert done.stderr.count("\n") == 1


def test_run_in_the_foreground_ends_well_on_an_interrupt(directory: Path) -> None:
    with running(directory) as daemon:
        daemon.stop(signal.SIGINT)
        assert daemon.process.returncode == 0


def test_a_command_that_needs_a_daemon_starts_one_that_leaves_when_idle(directory: Path) -> None:
    assert json_of(directory, "stats")["memory_count"] == 0
    assert json_of(directory, "status")["daemon"]["started_by"] == "shim"


def test_autostart_switched_off_is_respected_and_the_next_step_is_named(directory: Path) -> None:
    line = fails(directory, "stats", extra={"KEYMEM_DAEMON_AUTOSTART": "false"})
    assert "keymemd start" in line
    assert daemon_pid(directory) is None


def test_a_data_directory_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for command in ("start", "stats"):
        assert "data directory" in fails(tmp_path / "file" / "data", command)


def test_a_store_that_cannot_be_opened_is_reported_by_start_and_by_status(directory: Path) -> None:
    (directory / "keymem.db").mkdir(parents=True)
    assert "keymemd logs" in fails(directory, "start")
    done = keymemd(directory, "status")
    assert done.returncode == 1
    assert "problem" in done.stdout


def test_logs_show_the_last_lines(directory: Path) -> None:
    logs = directory / "logs"
    logs.mkdir(parents=True)
    (logs / "daemon.log").write_text("".join(f"line {number}\n" for number in range(100)))
    assert succeeds(directory, "logs", "-n", "2") == "line 98\nline 99\n"
    assert succeeds(directory, "logs", "-n", "0") == ""
    assert succeeds(directory, "logs").count("\n") == 50


def test_logs_without_a_log_say_where_it_would_be(directory: Path) -> None:
    assert str(directory / "logs" / "daemon.log") in fails(directory, "logs")


def test_following_the_log_goes_on_when_it_rotates_and_ends_quietly_on_an_interrupt(directory: Path) -> None:
    log = directory / "logs" / "daemon.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\n")
    process = subprocess.Popen(
        [sys.executable, "-c", HEEDING_INTERRUPTS, *COMMAND, "logs", "-f"],
        env=clean_environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        with log.open("a") as file:
            file.write("second\n")
        assert process.stdout.readline() == "second\n"
        with log.open("a") as file:
            file.write("last before\n")
        log.rename(log.with_suffix(".log.1"))
        log.write_text("first after\n")
        assert process.stdout.readline() == "last before\n"
        assert process.stdout.readline() == "first after\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)
        assert (process.returncode, out, err) == (130, "", "")
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def test_status_has_colours_on_a_terminal_unless_they_are_not_wanted(directory: Path) -> None:
    code, shown = on_terminal(directory, ["status"])
    assert code == 2
    assert "\033[31mdown" in shown
    for unwanted in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\033" not in on_terminal(directory, ["status"], extra=unwanted)[1]
    assert "\033" not in keymemd(directory, "status").stdout
