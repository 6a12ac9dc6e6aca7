"""A real daemon process in a directory of its own, and ways to talk to it. Every wait is bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from keymem_shim import rendezvous

WAIT_S = 30.0


def clean_environment(directory: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a daemon of ``directory``: nothing of the tester's own settings."""
    inherited = os.environ.items()  # noqa: TID251 - a test starts processes
    ours = ("KEYMEM_", "SUPER_MEMORY_", "OPENAI_", "LOCAL_EMBEDDING", "EMBEDDING_", "CLAUDE_", "CODEX_")
    kept = {name: value for name, value in inherited if not name.startswith(ours)}
    return kept | {"KEYMEM_DATA_DIR": str(directory), "HOME": str(directory.parent)} | dict(extra or {})


def wait_until(holds: Callable[[], bool], what: str, within_s: float = WAIT_S) -> None:
    """Return when ``holds`` does; fails after the bound."""
    deadline = time.monotonic() + within_s
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        pause.wait(0.01)


class RunningDaemon:
    """A daemon that was started; not necessarily up yet."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes]) -> None:
        self.directory = directory
        self.process = process

    @property
    def discovery(self) -> rendezvous.Discovery:
        """What the daemon published, once it answers."""
        found = rendezvous.probe(str(self.directory))
        assert isinstance(found, rendezvous.Ready), found
        return found.discovery

    def wait_ready(self) -> None:
        """Return when it answers as it published."""
        wait_until(
            lambda: (
                self.process.poll() is not None or isinstance(rendezvous.probe(str(self.directory)), rendezvous.Ready)
            ),
            "a daemon that answers",
        )
        assert self.process.poll() is None, f"the daemon exited with {self.process.returncode}"

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send a signal and wait for the end; returns the seconds it took."""
        started = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(WAIT_S)
        return time.monotonic() - started

    def over_socket(self, timeout_s: float = WAIT_S) -> httpx.Client:
        """An HTTP client on the daemon's socket."""
        transport = httpx.HTTPTransport(uds=self.discovery.socket)
        return httpx.Client(transport=transport, base_url="http://localhost:1", timeout=timeout_s)

    def over_tcp(self, *, token: bool = True) -> httpx.Client:
        """An HTTP client on the daemon's port."""
        found = self.discovery
        headers = dict([found.authorization()]) if token else {}
        return httpx.Client(base_url=f"http://127.0.0.1:{found.port}", headers=headers, timeout=WAIT_S, trust_env=False)

    def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """One POST over the socket."""
        with self.over_socket() as client:
            return client.post(
                path, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
            )

    def verb(self, name: str, body: object, **headers: str) -> dict[str, Any]:
        """The result of one verb over the socket."""
        answer = self.post(f"/api/{name}", body, **headers)
        assert answer.status_code == 200, answer.text
        result = answer.json()
        assert isinstance(result, dict)
        return result


def start(directory: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> RunningDaemon:
    """Start `keymemd run` and return at once."""
    process = subprocess.Popen(
        [sys.executable, "-m", "keymem_daemon", "run", *arguments],
        env=clean_environment(directory, extra),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return RunningDaemon(directory, process)


@contextmanager
def running(directory: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> Iterator[RunningDaemon]:
    """A daemon that answers, for as long as the block runs."""
    daemon = start(directory, *arguments, extra=extra)
    try:
        daemon.wait_ready()
        yield daemon
    finally:
        end(daemon)


def end(daemon: RunningDaemon) -> None:
    """Whatever became of it, it is gone afterwards."""
    if daemon.process.poll() is None:
        daemon.process.terminate()
        try:
            daemon.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            daemon.process.kill()
            daemon.process.wait(WAIT_S)
    if daemon.process.stderr is not None:
        daemon.process.stderr.close()
