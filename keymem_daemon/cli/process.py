"""The daemon as a process: whether it is there, starting it as a person does, stopping it and knowing that it is gone.

That a data directory is free is known from one thing only, the lock that a daemon holds for life.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

from keymem_daemon.cli.contact import SEE_LOG, ask_once
from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.cli.terminal import note
from keymem_shim import identity, rendezvous

__all__ = ["is_held", "started", "stopped"]

START_S: Final = 30.0
STOP_S: Final = 15.0
PAUSE_S: Final = 0.02


def started() -> rendezvous.Discovery:
    """A daemon of its own session that does not leave when idle, once it has opened its store. Raises `CommandFailed`."""
    directory = rendezvous.data_dir()
    try:
        rendezvous.prepare_data_dir(directory)
        log = _opened_log(directory)
    except OSError as problem:
        raise CommandFailed(f"the data directory cannot be used: {problem}", "Set KEYMEM_DATA_DIR to one.") from problem
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "keymem_daemon", "run", "--started-by", "person"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=identity.daemon_environment() | {"KEYMEM_DATA_DIR": directory},
            start_new_session=True,
        )
    except OSError as problem:
        raise CommandFailed(f"no process can be started: {problem}", "Free some processes or memory.") from problem
    finally:
        os.close(log)
    note("starting the daemon …")
    for _pause in _pauses(START_S):
        found = rendezvous.probe(directory)
        if not isinstance(found, rendezvous.Unreachable) and _is_open(found.discovery):
            return found.discovery
        if child.poll() is not None and isinstance(found, rendezvous.Unreachable):
            raise CommandFailed(f"the daemon ended with code {child.returncode} instead of starting", SEE_LOG)
    raise CommandFailed(f"the daemon has not answered for {START_S:.0f} s", SEE_LOG)


def stopped(discovery: rendezvous.Discovery) -> None:
    """Ask that daemon to stop; returns once the data directory is free or another daemon serves it."""
    directory = rendezvous.data_dir()
    try:
        ask_once(discovery, "POST", "/control/stop", {}, limit_s=STOP_S)
    except ConnectionError:
        note("the daemon was stopping already")
    note("stopping the daemon …")
    for _pause in _pauses(STOP_S):
        if not is_held(directory):
            return
        found = rendezvous.probe(directory)
        if not isinstance(found, rendezvous.Unreachable) and found.discovery.instance != discovery.instance:
            return
    raise CommandFailed(
        f"the daemon (pid {discovery.pid}) has not ended for {STOP_S:.0f} s", f"End it with `kill -9 {discovery.pid}`."
    )


def is_held(directory: str) -> bool:
    """Whether a process holds the data directory."""
    try:
        handle = os.open(rendezvous.lock_path(directory), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _is_open(discovery: rendezvous.Discovery) -> bool:
    """Whether it has opened its store. Raises `CommandFailed` when it could not."""
    try:
        report = ask_once(discovery, "GET", "/status", limit_s=START_S)
    except ConnectionError:
        return False
    if report["state"] != "opening" and report["counts"] is None:
        what = report["problems"][0]["problem"] if report["problems"] else "its store is not open"
        raise CommandFailed(f"the daemon (pid {discovery.pid}) runs, but {what}", SEE_LOG)
    return bool(report["state"] != "opening")


def _opened_log(directory: str) -> int:
    path = os.path.join(rendezvous.log_dir(directory), "daemon.log")  # noqa: PTH118 - rendezvous speaks in strings
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _pauses(limit_s: float) -> Iterator[None]:
    """Yield before each try, until ``limit_s`` seconds have passed."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        yield
        time.sleep(PAUSE_S)
