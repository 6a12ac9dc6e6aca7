"""Starting the daemon: once, detached, whoever else is starting it at the same moment.

A `Launcher` brings a data directory from whatever state it is in to a daemon that answers, or says why not. Its
outcomes are values: `rendezvous.Ready`, `Forbidden` (starting is switched off), `Failed` (it was tried in vain and may be
tried again) or `Impossible` (this machine lets us start no process at all).

The race is decided by `start.lock`: its holder asks once more, starts the daemon and waits until it answers; the others
wait for the same answer. The lock only saves work. That there are never two daemons is the business of the lock which
each daemon holds for life.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import threading
import time

from keymem_shim import VERSION, holder, http1, rendezvous
from keymem_shim.identity import daemon_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

__all__ = [
    "LAUNCHD_LABEL",
    "START_LIMIT_S",
    "SYSTEMD_UNIT",
    "Failed",
    "Forbidden",
    "Impossible",
    "Launcher",
    "failure_note",
    "log_size",
]

START_LIMIT_S = 8.0
"""How long one attempt waits for a daemon to answer."""

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.25
FIRST_RESPAWN_S = 0.2
LONGEST_RESPAWN_S = 5.0
FAILED_STARTS_LIMIT = 2
"""How many daemons one attempt starts that give up with an error."""

ALREADY_RUNNING = 3
"""The exit code of a daemon that met another one's lock."""

CAUSES = {4: "there is nowhere it can listen", 5: "the data directory cannot be written to"}
"""What those exit codes say where not even the log does; a second try would end the same."""

ONE_CLIENTS = ("KEYMEM_HOOK_INSTALLED", "SUPER_MEMORY_HOOK_INSTALLED")
"""Settings of the client that happens to start the daemon, which must not pass for those of all others."""

CAUSE_MARK = b"keymemd: "
CAUSE_LIMIT = 300
LOG_READ_LIMIT = 65_536
HANDOVER_LIMIT_S = 3.0
SERVICE_LIMIT_S = 3.0

SYSTEMD_UNIT = "keymemd.service"
LAUNCHD_LABEL = "org.keymem.keymemd"


class Forbidden:
    """There is no daemon and `KEYMEM_DAEMON_AUTOSTART=false` forbids starting one."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Failed:
    """A daemon was started or waited for, and none answered in time; `final` when trying again is of no use."""

    __slots__ = ("final", "reason")

    def __init__(self, reason: str, *, final: bool = False) -> None:
        self.reason = reason
        self.final = final


class Impossible:
    """No process can be started here."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Launcher:
    """Starts the daemon of one data directory; for use by one thread."""

    def __init__(self, directory: str, on_progress: Callable[[], None]) -> None:
        """`on_progress` is called once per attempt, when it is known that a daemon is there or on its way."""
        self._directory = directory
        self._on_progress = on_progress
        self._child: subprocess.Popen[bytes] | None = None
        self._spawns = 0
        self._spawn_after = 0.0
        self._log_before = 0

    def ensure(self) -> rendezvous.Ready | Forbidden | Failed | Impossible:
        """Return a daemon that answers, starting it if that is allowed; takes about `START_LIMIT_S` at most."""
        outcome = self._ensured()
        if isinstance(outcome, rendezvous.Ready):
            self._spawns, self._spawn_after = 0, 0.0
        return outcome

    def _ensured(self) -> rendezvous.Ready | Forbidden | Failed | Impossible:
        found = rendezvous.probe(self._directory)
        if isinstance(found, rendezvous.Ready):
            return found
        if isinstance(found, rendezvous.Unreachable) and (pid := self._held_alone()) is not None:
            return Failed(holder.said_of(self._directory, pid), final=True)
        if not rendezvous.flag("DAEMON_AUTOSTART", default=True):
            if isinstance(found, rendezvous.NeedsRestart):
                return rendezvous.Ready(found.discovery)
            return Forbidden(found.reason)
        try:
            rendezvous.prepare_data_dir(self._directory)
            return self._start(time.monotonic() + START_LIMIT_S)
        except OSError as problem:
            return Failed(f"the data directory cannot be used: {problem}", final=True)

    def _held_alone(self) -> int | None:
        """Return the single-process server that holds the directory and goes on doing so."""
        pid = None
        for _pause in _pauses(time.monotonic() + holder.ALONE_S):
            pid = holder.single_server(self._directory)
            if pid is None:
                break
        return pid

    def _start(self, deadline: float) -> rendezvous.Ready | Failed | Impossible:
        for _pause in _pauses(deadline):
            with _start_lock(self._directory) as ours:
                if ours:
                    return self._start_alone(deadline)
            self._on_progress()
            found = rendezvous.probe(self._directory)
            if isinstance(found, rendezvous.Ready):
                return found
        return Failed(f"another process is starting the daemon, which has not answered for {START_LIMIT_S:.0f} s")

    def _start_alone(self, deadline: float) -> rendezvous.Ready | Failed | Impossible:
        found = rendezvous.probe(self._directory)
        if isinstance(found, rendezvous.NeedsRestart):
            if not _handed_over(self._directory, found.discovery):
                return rendezvous.Ready(found.discovery)
        elif isinstance(found, rendezvous.Ready):
            return found
        service_deadline = time.monotonic() + SERVICE_LIMIT_S if _service_started(self._directory) else 0.0
        failures = 0
        if not self._running():
            self._child = None
        for _pause in _pauses(deadline):
            if (code := self._failed_with()) is not None:
                failures += 1
                if failures >= FAILED_STARTS_LIMIT or code in CAUSES:
                    note = failure_note(self._directory, code, self._log_before)
                    return Failed(f"the daemon cannot start: {note}", final=True)
                self._child = None
            if time.monotonic() >= max(service_deadline, self._spawn_after) and not self._running():
                # One that ended may have met the lock of a daemon that is just ending, or is broken: ever more time.
                self._spawn_after = time.monotonic() + min(FIRST_RESPAWN_S * 2**self._spawns, LONGEST_RESPAWN_S)
                self._spawns += 1
                self._log_before = log_size(self._directory)
                log = os.open(_log_path(self._directory), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                try:
                    self._child = _spawned(self._directory, log)
                except OSError as problem:
                    return Impossible(f"no process can be started: {problem}")
            self._on_progress()
            last = rendezvous.probe(self._directory)
            if isinstance(last, rendezvous.Ready):
                return last
        return Failed(f"the daemon did not answer within {START_LIMIT_S:.0f} s of its start" + self._exit_note())

    def _failed_with(self) -> int | None:
        """Return the code with which our daemon gave up; None when it did not, or only met another one or an end."""
        code = self._child.poll() if self._child is not None else None
        return None if code is None or code <= 0 or code == ALREADY_RUNNING else code

    def _running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def _exit_note(self) -> str:
        code = self._child.poll() if self._child is not None else None
        return f"; it ended with code {code}" if code is not None else ""


def log_size(directory: str) -> int:
    """Return the length of the daemon's log in bytes: what is behind it later was said since."""
    try:
        return os.stat(_log_path(directory)).st_size
    except OSError:
        return 0


def failure_note(directory: str, code: int, log_before: int) -> str:
    """Say why a daemon ended with `code`: in its own words where it left any, else as far as the code tells."""
    try:
        with open(_log_path(directory), "rb") as log:
            log.seek(log_before)
            said = [line for line in log.read(LOG_READ_LIMIT).splitlines() if line.startswith(CAUSE_MARK)]
    except OSError:
        said = []
    if said:
        return said[-1][len(CAUSE_MARK) :][:CAUSE_LIMIT].decode("utf-8", "replace").strip()
    return CAUSES.get(code, f"it ended with code {code}")


def _log_path(directory: str) -> str:
    return os.path.join(rendezvous.log_dir(directory), "daemon.log")


def _pauses(deadline: float) -> Iterator[None]:
    """Yield before each try and sleep after it, from 5 ms doubling, until the deadline."""
    pause = FIRST_PAUSE_S
    while True:
        yield
        left = deadline - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(pause * 2, LONGEST_PAUSE_S)


@contextlib.contextmanager
def _start_lock(directory: str) -> Iterator[bool]:
    """Hold the start lock if it is free; yields whether it is held."""
    handle = os.open(rendezvous.start_lock_path(directory), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _spawned(directory: str, log: int) -> subprocess.Popen[bytes]:
    """Start the daemon in a session of its own, its output in `log`, which is closed; raises `OSError`."""
    import subprocess  # noqa: PLC0415 - only the shim that starts a daemon pays for it

    environment = daemon_environment()
    environment["KEYMEM_DATA_DIR"] = directory
    for name in ONE_CLIENTS:
        environment.pop(name, None)
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "keymem_daemon", "run", "--started-by", "shim"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
            start_new_session=True,
            close_fds=True,
        )
    finally:
        os.close(log)
    # A daemon that dies while this shim lives must not stay behind as a zombie.
    threading.Thread(target=child.wait, name="reaper", daemon=True).start()
    return child


def _handed_over(directory: str, discovery: rendezvous.Discovery) -> bool:
    """Ask an older daemon to finish; True when it is gone, False when it declines or stays."""
    deadline = time.monotonic() + HANDOVER_LIMIT_S
    headers = [discovery.authorization(), ("Content-Type", "application/json")]
    try:
        connection = http1.Connection(discovery.address, deadline)
        with contextlib.closing(connection):
            body = json.dumps({"version": VERSION}).encode()
            connection.send("POST", "/control/handover", headers, body, deadline)
            if connection.receive(deadline).status not in (200, 202, 204):
                return False
    except OSError:
        pass
    for _pause in _pauses(deadline):
        found = rendezvous.probe(directory)
        if isinstance(found, rendezvous.Unreachable) or found.discovery.instance != discovery.instance:
            return True
    return False


def _service_started(directory: str) -> bool:
    """Ask an installed service unit to start the daemon; False when there is none for this directory or it fails."""
    if directory != rendezvous.default_data_dir():
        return False
    command = _service_command()
    if command is None:
        return False
    import subprocess  # noqa: PLC0415 - as in _spawned

    environment = daemon_environment()
    if "XDG_RUNTIME_DIR" not in environment and os.path.isdir(f"/run/user/{os.geteuid()}"):
        # Some clients hand on so little of the environment that systemctl would not find its manager.
        environment["XDG_RUNTIME_DIR"] = f"/run/user/{os.geteuid()}"
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, no input of others
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=SERVICE_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _service_command() -> list[str] | None:
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        if os.path.exists(os.path.join(home, "Library", "LaunchAgents", LAUNCHD_LABEL + ".plist")):
            return ["launchctl", "kickstart", f"gui/{os.geteuid()}/{LAUNCHD_LABEL}"]
        return None
    if os.path.exists(os.path.join(home, ".config", "systemd", "user", SYSTEMD_UNIT)):
        return ["systemctl", "--user", "start", SYSTEMD_UNIT]
    return None
