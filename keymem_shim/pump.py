"""Moving the bytes: the client's lines in, calls to the daemon and back, answers out.

The main thread reads standard input and does nothing that can block; what is written goes through `Output`. Calls are
carried by up to `IN_FLIGHT` threads in the order in which they came, so the lowest unanswered `seq` is always among those
in flight; handshake requests have threads of their own, since they must not wait behind calls. Each subscription and the
session's presence have one more.

A call whose connection breaks is sent again, under the same request id, as soon as there is a daemon again. A call that
the client cancels is no longer answered; what the daemon has taken of it, it finishes.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import signal
import threading
import time

from keymem_shim import http1, record
from keymem_shim.bridge import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LINE_LIMIT,
    UNAVAILABLE,
    Bridge,
    Call,
    Cancelled,
    Reply,
    error_line,
)
from keymem_shim.link import Gone, Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from keymem_shim.output import Output
    from keymem_shim.rendezvous import Discovery

__all__ = ["Pump"]

IN_FLIGHT = 16
HANDSHAKES = 4
FORWARD_LIMIT_S = 0.6
"""How long a handshake request may take the daemon before the record answers it: clients wait about a second."""

FIRST_LOOK_S = 0.25
"""How long the first handshake request waits to learn whether there is a daemon."""

CONNECT_LIMIT_S = 5.0
SEND_LIMIT_S = 30.0
SILENCE_S = 5.0
TICK_S = 2.0
DRAIN_S = 1.5
FLUSH_S = 0.2
BUSY_PAUSE_S = 0.2
REOPEN_PAUSE_S = 0.5
SENDS_LIMIT = 20
"""How often one call may meet a daemon that dies of it, or is busy, before it is given up."""

KEEP_LIMIT = 4 * LINE_LIMIT
"""Bytes of an oversized line that are kept, to find the id that its error should name."""

BACKLOG_LIMIT = 32 * 1024 * 1024
READ_SIZE = 65_536


class Pump:
    """One session, from the first line to the end of input."""

    def __init__(self, directory: str, bridge: Bridge, output: Output, log_path: str) -> None:
        self._bridge = bridge
        self._output = output
        self._log_path = log_path
        self._link = Link(directory, self._greet)
        self._changed = threading.Condition()
        self._record: record.Record | None = None
        self._connections: list[tuple[str, http1.Connection]] = []
        self._greeted = ""
        self._numbered = ""
        self._listening: dict[int, http1.Connection] = {}
        self._calls = _Workers("call", IN_FLIGHT, self._carry)
        self._handshakes = _Workers("handshake", HANDSHAKES, self._handshake)
        self._wake_read, self._wake_write = os.pipe()
        self._parent = os.getppid()

    @property
    def link(self) -> Link:
        """The link to the daemon."""
        return self._link

    def run(self) -> None:
        """Serve until the end of input, a signal or the loss of the parent; answer what is in flight as far as time allows."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self._stop())
        threading.Thread(target=self._presence, name="presence", daemon=True).start()
        self._read_input()
        self._drain(time.monotonic() + DRAIN_S)
        self._output.flush(time.monotonic() + FLUSH_S)

    def _stop(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")

    def _read_input(self) -> None:
        lines = _Lines()
        while True:
            full = self._calls.backlog > BACKLOG_LIMIT
            watched = [self._wake_read] if full else [0, self._wake_read]
            try:
                readable, _, _ = select.select(watched, [], [], BUSY_PAUSE_S if full else TICK_S)
            except OSError:
                # Standard input was closed before we came.
                return
            if self._wake_read in readable:
                return
            if 0 not in readable:
                if os.getppid() != self._parent:
                    return
                self._link.glance()
                continue
            try:
                data = os.read(0, READ_SIZE)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            for line in lines.feed(data):
                self._take(line)
            if not data:
                return

    def _take(self, line: bytes | None) -> None:
        if line is None:
            self._output.put(error_line(None, INVALID_REQUEST, f"a message may have {LINE_LIMIT} bytes at most"))
            return
        with self._changed:
            taken = self._bridge.accept(line)
        if isinstance(taken, Reply):
            self._output.put(taken.line)
        elif isinstance(taken, Cancelled):
            self._cancel(taken.call)
        elif isinstance(taken, Call):
            if taken.kind == "listen":
                threading.Thread(target=self._listen, args=(taken,), name="listen", daemon=True).start()
            elif taken.kind == "call":
                self._calls.put(taken)
            else:
                self._handshakes.put(taken)

    def _cancel(self, call: Call) -> None:
        with self._changed:
            connection = self._listening.pop(id(call), None)
            self._changed.notify_all()
        if connection is not None:
            connection.abort()

    def _drain(self, deadline: float) -> None:
        """Wait for answers until the deadline; then tell what is left that there will be none."""
        with self._changed:
            while (left := deadline - time.monotonic()) > 0:
                if all(call.kind == "listen" for call in self._bridge.unanswered()):
                    return
                self._changed.wait(left)
            for call in self._bridge.unanswered():
                if call.kind != "listen":
                    text = "the input ended before the daemon answered; a write may still be carried out"
                    self._output.put(self._bridge.fail(call, UNAVAILABLE, text))

    # The threads that carry.

    def _carry(self, call: Call, arrived: float) -> None:
        """Bring a call to its answer, over as many daemons as that takes."""
        for _attempt in range(SENDS_LIMIT):
            if not self._is_open(call):
                return
            found = self._link.wait(arrived)
            if isinstance(found, Gone):
                self._fail(call, UNAVAILABLE, self._without_daemon(found))
                return
            try:
                again = self._exchange(call, found, http1.NEVER)
            except OSError:
                self._link.suspect(found)
                continue
            except ValueError:
                self._fail(call, INTERNAL_ERROR, "the message cannot be sent")
                return
            if not again:
                return
            # It is stopping, or has another token by now.
            time.sleep(BUSY_PAUSE_S)
            self._link.suspect(found)
        self._fail(call, INTERNAL_ERROR, f"the daemon broke off {SENDS_LIMIT} times; its log is {self._log_path}")

    def _handshake(self, call: Call, arrived: float) -> None:
        """Answer a handshake request in time, from the daemon if it is there, else from the record; pass on a note."""
        if call.kind == "note":
            found = self._link.current()
            if found is not None:
                with contextlib.suppress(OSError, ValueError):
                    self._exchange(call, found, time.monotonic() + FORWARD_LIMIT_S)
            return
        found = self._link.settled(FIRST_LOOK_S)
        if found is not None:
            with contextlib.suppress(OSError, ValueError):
                if not self._exchange(call, found, time.monotonic() + FORWARD_LIMIT_S):
                    if call.method == "initialize":
                        self._greeted = found.instance
                    return
        with self._changed:
            if self._record is None:
                self._record = record.load()
            line = self._bridge.from_record(call, self._record)
            self._output.put(line)
            self._changed.notify_all()
        if line is None:
            self._carry(call, arrived)

    def _listen(self, call: Call) -> None:
        """Relay a subscription, opened again with each new daemon, until it ends or is cancelled.

        Where there is no daemon yet it is acknowledged here: it is part of the handshake, and the client waits for it.
        """
        arrived = time.monotonic()
        again = acknowledged = False
        if self._link.settled(FIRST_LOOK_S) is None:
            with self._changed:
                line = self._bridge.acknowledgement(call)
                self._output.put(line)
            acknowledged = line is not None
        while self._is_open(call):
            found = self._link.wait_idle("") if again else self._link.wait(arrived)
            if isinstance(found, Gone):
                self._fail(call, UNAVAILABLE, self._without_daemon(found))
                return
            try:
                if self._stream(call, found, again=again or acknowledged):
                    return
            except OSError:
                self._link.suspect(found)
            except ValueError:
                self._fail(call, INTERNAL_ERROR, "the message cannot be sent")
                return
            time.sleep(REOPEN_PAUSE_S)
            again = True

    def _stream(self, call: Call, daemon: Discovery, *, again: bool) -> bool:
        """Relay one stream; True when it brought the answer. Raises `OSError` when it broke."""
        connection = http1.Connection(daemon.address, time.monotonic() + CONNECT_LIMIT_S)
        with contextlib.closing(connection):
            with self._changed:
                if not self._bridge.is_open(call):
                    return True
                self._listening[id(call)] = connection
            answer = self._opened(connection, call, daemon, http1.NEVER)
            if answer.content_type != "text/event-stream":
                self._settle(call, answer.status, answer.read(http1.NEVER))
                return True
            for data in answer.events(http1.NEVER):
                if self._relay(call, data, again=again):
                    return True
        raise http1.ConnectionLost("the stream ended without an answer")

    def _exchange(self, call: Call, daemon: Discovery, deadline: float) -> bool:
        """Send a call and settle it; True when the daemon wants it sent again. Raises `OSError` when it broke."""
        connection = self._connection(daemon, deadline)
        try:
            answer = self._opened(connection, call, daemon, deadline)
        except http1.ConnectionLost:
            connection.close()
            if connection.used == 1:
                raise
            # A kept connection may have been closed just now; that says nothing of the daemon.
            connection = self._fresh(daemon, deadline)
            answer = self._opened(connection, call, daemon, deadline)
        except BaseException:
            connection.close()
            raise
        with contextlib.ExitStack() as unless_kept:
            unless_kept.callback(connection.close)
            if answer.status in (401, 503):
                return True
            if answer.content_type == "text/event-stream":
                if not any(self._relay(call, data, again=False) for data in answer.events(deadline)):
                    raise http1.ConnectionLost("the stream ended without an answer")
            else:
                self._settle(call, answer.status, answer.read(deadline))
            if connection.reusable:
                unless_kept.pop_all()
                with self._changed:
                    self._connections.append((daemon.instance, connection))
        return False

    def _opened(self, connection: http1.Connection, call: Call, daemon: Discovery, deadline: float) -> http1.Answer:
        with self._changed:
            headers = self._bridge.send_headers(call)
        headers.append(daemon.authorization())
        if deadline == http1.NEVER:
            connection.watch = (SILENCE_S, lambda: self._link.still_there(daemon))
        else:
            connection.watch = None
        connection.send("POST", "/mcp", headers, call.body, min(deadline, time.monotonic() + SEND_LIMIT_S))
        return connection.receive(deadline)

    def _connection(self, daemon: Discovery, deadline: float) -> http1.Connection:
        """Return a kept connection to this daemon, or a new one."""
        while True:
            with self._changed:
                if not self._connections:
                    break
                instance, connection = self._connections.pop()
            if instance == daemon.instance and connection.reusable:
                return connection
            connection.close()
        return self._fresh(daemon, deadline)

    def _fresh(self, daemon: Discovery, deadline: float) -> http1.Connection:
        return http1.Connection(daemon.address, min(deadline, time.monotonic() + CONNECT_LIMIT_S))

    def _greet(self, daemon: Discovery) -> None:
        """Prepare for a daemon that has not seen this client: number what is open, and introduce the client.

        The introduction is the client's `initialize`; the answer is swallowed.
        """
        with self._changed:
            if self._numbered != daemon.instance:
                self._numbered = daemon.instance
                self._bridge.renumber()
            call = self._bridge.replay() if self._greeted != daemon.instance else None
        if call is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._exchange(call, daemon, time.monotonic() + FORWARD_LIMIT_S)
            self._greeted = daemon.instance

    def _presence(self) -> None:
        """Hold one idle connection open; the daemon counts the session by it, and its end tells that the daemon ended."""
        last = ""
        while True:
            daemon = self._link.wait_idle(last)
            last = ""
            try:
                connection = http1.Connection(daemon.address, time.monotonic() + CONNECT_LIMIT_S)
                with contextlib.closing(connection):
                    with self._changed:
                        headers = self._bridge.open_headers()
                    headers.append(daemon.authorization())
                    connection.send("GET", "/session", headers, b"", time.monotonic() + CONNECT_LIMIT_S)
                    connection.receive(http1.NEVER).skip(http1.NEVER)
                # It ended the connection properly: it is stopping, or keeps no sessions. The next one may.
                last = daemon.instance
            except OSError:
                pass
            self._link.suspect(daemon)
            time.sleep(REOPEN_PAUSE_S)

    # What the threads share.

    def _is_open(self, call: Call) -> bool:
        with self._changed:
            return self._bridge.is_open(call)

    def _settle(self, call: Call, status: int, body: bytes) -> None:
        with self._changed:
            self._output.put(self._bridge.settle(call, status, body))
            self._changed.notify_all()

    def _relay(self, call: Call, data: bytes, *, again: bool) -> bool:
        with self._changed:
            line, last = self._bridge.stream_line(call, data, again=again)
            self._output.put(line)
            self._changed.notify_all()
            return last

    def _fail(self, call: Call, code: int, message: str) -> None:
        with self._changed:
            self._output.put(self._bridge.fail(call, code, message))
            self._changed.notify_all()

    def _without_daemon(self, gone: Gone) -> str:
        if gone.forbidden:
            return f"the keymem daemon is not running ({gone.reason}); start it with: keymemd start"
        return f"the keymem daemon cannot be reached ({gone.reason}); see {self._log_path} and: keymemd status"


class _Workers:
    """A queue and the threads that work it off in order, started as they are needed."""

    def __init__(self, name: str, limit: int, work: Callable[[Call, float], None]) -> None:
        self._name = name
        self._limit = limit
        self._work = work
        self._queue: collections.deque[tuple[Call, float]] = collections.deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self.backlog = 0
        """Bytes that wait in the queue."""

    def put(self, call: Call) -> None:
        with self._changed:
            self._queue.append((call, time.monotonic()))
            self.backlog += len(call.body)
            if self._idle < len(self._queue) and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._queue:
                    self._changed.wait()
                self._idle -= 1
                call, arrived = self._queue.popleft()
                self.backlog -= len(call.body)
            self._work(call, arrived)


class _Lines:
    """Cuts input into lines; of one that is far too long only the fact remains."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._lost = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that `data` completes, None for one that was too long to keep; b"" ends the input."""
        if not data:
            return [self._ended()] if self._size else []
        *whole, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        for piece in whole:
            self._add(piece)
            lines.append(self._ended())
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > KEEP_LIMIT:
            self._lost = True
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _ended(self) -> bytes | None:
        line = None if self._lost else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._lost = False
        return line
