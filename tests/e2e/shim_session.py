"""A client of the real shim: starts the process, writes lines, reads lines, never waits without a bound."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from keymem_shim import rendezvous

WAIT_S = 30.0
LEGACY = "2025-06-18"
ENVELOPE = "2026-07-28"


def environment(directory: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a clean environment for a shim of this data directory."""
    inherited = os.environ.items()  # noqa: TID251
    kept = {name: value for name, value in inherited if not name.startswith(("KEYMEM_", "SUPER_MEMORY_"))}
    kept |= {"KEYMEM_DATA_DIR": str(directory), "HOME": str(directory.parent)}
    return kept | dict(extra or {})


def envelope(client: str = "tester") -> dict[str, Any]:
    """Return the `_meta` of a 2026-07-28 request."""
    return {
        "io.modelcontextprotocol/protocolVersion": ENVELOPE,
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }


class ShimSession:
    """One shim process and the conversation with it."""

    def __init__(self, env: Mapping[str, str], command: Sequence[str] | None = None, cwd: Path | None = None) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            list(command or [sys.executable, "-m", "keymem_shim.main"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
        )
        self._buffer = b""
        self._next = 0
        self._set_aside: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _t: TracebackType | None
    ) -> None:
        self.close()

    def write(self, raw: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": dict(params or {})}
        self.write(json.dumps(message).encode() + b"\n")
        return self._next

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": dict(params or {})}).encode() + b"\n")

    def line(self, limit_s: float = WAIT_S) -> dict[str, Any]:
        """Return the next line, which must be a JSON-RPC object."""
        raw = self.raw_line(limit_s)
        message = json.loads(raw)
        assert isinstance(message, dict), raw
        assert message["jsonrpc"] == "2.0", raw
        return message

    def raw_line(self, limit_s: float = WAIT_S) -> bytes:
        """Return the next line's bytes; fails when none comes in time or the output ends."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            readable = select.select([descriptor], [], [], max(0.0, left))[0]
            if not readable:
                raise AssertionError(f"no line within {limit_s} s")
            part = os.read(descriptor, 65_536)
            if not part:
                raise AssertionError(f"the output ended; stderr: {self.errors()}")
            self._buffer += part
        raw, _, self._buffer = self._buffer.partition(b"\n")
        return raw

    def answer(self, ident: object, limit_s: float = WAIT_S) -> dict[str, Any]:
        """Return the answer to that id; other messages are set aside for later questions."""
        for message in self._set_aside:
            if message.get("id") == ident and "method" not in message:
                self._set_aside.remove(message)
                return message
        deadline = time.monotonic() + limit_s
        while True:
            message = self.line(max(0.01, deadline - time.monotonic()))
            if message.get("id") == ident and "method" not in message:
                return message
            self._set_aside.append(message)

    def ask(self, method: str, params: Mapping[str, Any] | None = None, limit_s: float = WAIT_S) -> dict[str, Any]:
        """Send a request and return its answer."""
        return self.answer(self.send(method, params), limit_s)

    def initialize(self, revision: str = LEGACY, limit_s: float = WAIT_S) -> dict[str, Any]:
        """Do the handshake of the revisions that have one."""
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
        answer = self.ask("initialize", params, limit_s)
        self.notify("notifications/initialized")
        return answer

    def call(self, name: str, arguments: Mapping[str, Any], limit_s: float = WAIT_S) -> dict[str, Any]:
        """Call a tool and return its result; fails on a JSON-RPC error."""
        answer = self.ask("tools/call", {"name": name, "arguments": dict(arguments)}, limit_s)
        assert "result" in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def end_input(self) -> None:
        """Close the shim's input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def errors(self) -> str:
        """Return what the shim wrote to standard error so far, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode(errors="replace") if self.process.poll() is not None else ""

    def close(self) -> None:
        """End the process, whatever state it is in."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


def daemon_pid(directory: Path) -> int | None:
    """Return the pid of the daemon that answers, if one does."""
    found = rendezvous.probe(str(directory))
    return None if isinstance(found, rendezvous.Unreachable) else found.discovery.pid


def wait_for_daemon(directory: Path, limit_s: float = WAIT_S) -> int:
    """Return the pid of the daemon as soon as one answers."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        pid = daemon_pid(directory)
        if pid is not None:
            return pid
        select.select([], [], [], 0.02)
    raise AssertionError("no daemon came up")


def end_daemon(directory: Path) -> None:
    """Kill whatever daemon the data directory names, so that no test leaves one behind."""
    discovery = rendezvous.read_discovery(str(directory))
    if discovery is not None:
        try:
            os.kill(discovery.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
