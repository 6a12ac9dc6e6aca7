"""The daemon as a process: whether it is there, starting it as a person does, stopping it and knowing that it is gone.

That a data directory is free is known from one thing only, the lock that a daemon holds for life.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from keymem_daemon.cli.contact import SEE_LOG, ask_once
from keymem_daemon.cli.failure import CommandFailed
from keymem_daemon.cli.terminal import note
from keymem_shim import holder, identity, launcher, rendezvous
from keymem_shim.holder import is_held

__all__ = ["found_or_free", "hung_step", "started", "stopped"]

START_S: Final = 30.0
STOP_S: Final = 15.0
PAUSE_S: Final = 0.02


def started() -> rendezvous.Discovery:
    """A daemon of its own session that does not leave when idle, once it has opened its store. Raises `CommandFailed`."""
    directory = rendezvous.data_dir()
    child = _spawned(directory)
    note("starting the daemon …")
    waits: str | None = None
    for _pause in _pauses(START_S):
        found = rendezvous.probe(directory)
        if not isinstance(found, rendezvous.Unreachable):
            if (waits := _not_open(found.discovery)) is None:
                return found.discovery
        elif (code := child.process.poll()) in (0, launcher.ALREADY_RUNNING):
            # Another command or a session was quicker, with a start or a stop. What it started is waited for.
            _require_a_daemon(directory)
            if not is_held(directory):
                child = _spawned(directory)
        elif code is not None:
            why = launcher.failure_note(directory, code, child.log_before)
            raise CommandFailed(f"the daemon cannot start: {why}", SEE_LOG)
    if waits:
        raise CommandFailed(waits, "It goes on waiting; `keymemd status` tells when it is ready.")
    raise CommandFailed(f"no daemon has answered for {START_S:.0f} s{_held_note(directory)}", hung_step(directory))


@dataclass(frozen=True, slots=True)
class _Spawned:
    process: subprocess.Popen[bytes]
    log_before: int


def _spawned(directory: str) -> _Spawned:
    try:
        rendezvous.prepare_data_dir(directory)
        before = launcher.log_size(directory)
        log = _opened_log(directory)
    except OSError as problem:
        raise CommandFailed(f"the data directory cannot be used: {problem}", "Set KEYMEM_DATA_DIR to one.") from problem
    try:
        process = subprocess.Popen(
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
    return _Spawned(process, before)


def found_or_free(directory: str) -> rendezvous.Discovery | None:
    """The daemon that answers, or ``None`` when the data directory is free; one that starts or stops is waited for.

    Raises `CommandFailed` when a process holds the directory and does neither in time.
    """
    began = time.monotonic()
    for _pause in _pauses(STOP_S):
        found = rendezvous.probe(directory)
        if not isinstance(found, rendezvous.Unreachable):
            return found.discovery
        if not is_held(directory):
            return None
        if time.monotonic() - began >= holder.ALONE_S:
            _require_a_daemon(directory)
    raise CommandFailed(f"no daemon has answered for {STOP_S:.0f} s{_held_note(directory)}", hung_step(directory))


def _require_a_daemon(directory: str) -> None:
    """Raise `CommandFailed` when what holds ``directory`` is no daemon and will be none."""
    if (pid := holder.single_server(directory)) is not None:
        raise CommandFailed(f"there can be no daemon: {holder.said_of(directory, pid)}", "Then try again.")


def hung_step(directory: str) -> str:
    """What to do about a process that holds ``directory`` and does not answer."""
    pid = _holder(directory)
    if pid is None:
        return SEE_LOG
    return f"If it stays so, end it with `kill -9 {pid}`; what was acknowledged is on disk."


def _held_note(directory: str) -> str:
    pid = _holder(directory)
    return "" if pid is None else f"; process {pid} holds {directory}"


def _holder(directory: str) -> int | None:
    """The process that holds ``directory``, if it said who it is and is there."""
    discovery = rendezvous.read_discovery(directory)
    if discovery is None or not is_held(directory):
        return None
    try:
        os.kill(discovery.pid, 0)
    except OSError:
        return None
    return discovery.pid


def stopped(discovery: rendezvous.Discovery) -> None:
    """Ask that daemon to stop; returns once the data directory is free or another daemon serves it."""
    directory = rendezvous.data_dir()
    try:
        ask_once(discovery, "POST", "/control/stop", {}, limit_s=STOP_S)
    except ConnectionError:
        note("the daemon was stopping already")
    except CommandFailed:
        # Another daemon may be there by now, which refuses the token of this one.
        if _is_there(directory, discovery):
            raise
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


def _is_there(directory: str, discovery: rendezvous.Discovery) -> bool:
    found = rendezvous.probe(directory)
    return isinstance(found, rendezvous.Unreachable) or found.discovery.instance == discovery.instance


def _not_open(discovery: rendezvous.Discovery) -> str | None:
    """``None`` once it has opened its store, before that what it waits for, as far as it says. Raises `CommandFailed` when it could not."""
    try:
        report = ask_once(discovery, "GET", "/status", limit_s=START_S)
    except ConnectionError:
        return ""
    if report["state"] != "opening" and report["counts"] is None:
        what = report["problems"][0]["problem"] if report["problems"] else "its store is not open"
        raise CommandFailed(f"the daemon (pid {discovery.pid}) runs, but {what}", SEE_LOG)
    if report["state"] != "opening":
        return None
    return str(report["problems"][-1]["problem"]) if report["problems"] else ""


def _opened_log(directory: str) -> int:
    path = os.path.join(rendezvous.log_dir(directory), "daemon.log")  # noqa: PTH118 - rendezvous speaks in strings
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _pauses(limit_s: float) -> Iterator[None]:
    """Yield before each try, until ``limit_s`` seconds have passed."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        yield
        time.sleep(PAUSE_S)
