"""The shim's standard output: whole JSON-RPC lines and nothing else.

`claim` moves the real output to a descriptor that nothing else knows and points descriptor 1 at standard error, so that
whatever a library prints cannot reach the client. An `Output` writes from a thread of its own: a client that does not
read can hold up no other part of the shim.
"""

from __future__ import annotations

import collections
import os
import select
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Output", "claim", "release"]


def claim() -> int:
    """Return a private descriptor of the real output; descriptor 1 becomes standard error."""
    private = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    return private


def release(private: int) -> None:
    """Undo `claim`, for a program that is about to replace this one."""
    os.dup2(private, 1)


class Output:
    """Lines on their way to the client."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        """`on_broken` is called, on the writing thread, when the client no longer reads."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._lines: collections.deque[bytes] = collections.deque()
        self._changed = threading.Condition()
        self._idle = True

    def start(self) -> None:
        """Begin to write."""
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def put(self, line: bytes | None) -> None:
        """Queue a line; None is nothing."""
        if line is None:
            return
        with self._changed:
            self._lines.append(line)
            self._changed.notify_all()

    def flush(self, deadline: float) -> None:
        """Wait until everything is written, or the deadline."""
        with self._changed:
            while (self._lines or not self._idle) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                self._changed.notify_all()
                while not self._lines:
                    self._changed.wait()
                line = self._lines.popleft()
                self._idle = False
            try:
                self._write(line)
            except OSError:
                self._on_broken()
                return

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # Some clients hand over a descriptor in non-blocking mode.
                select.select([], [self._descriptor], [])
