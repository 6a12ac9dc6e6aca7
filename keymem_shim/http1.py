"""A small HTTP/1.1 client for one peer: the daemon, over a Unix socket or 127.0.0.1.

Shared by shim, hook and rendezvous. One `Connection` carries one exchange at a time and is kept alive between them.
Every wait has a deadline, given by the caller as a moment of `time.monotonic()`; nothing here reads the clock for any
other reason, retries, or knows what the bodies mean.

A caller that would rather wait for a slow answer than give up sets `watch`: whenever the peer has been silent for some
seconds, it is asked whether the peer is still there.

An exchange is `send`, then `receive` (the head), then either `read` (the whole body) or `events` (the `data` of each
server-sent event, as it arrives). Bodies may come with a length, in chunks or until the peer closes.

Errors say whose fault it was: `ConnectionLost` (an `OSError`) when the peer went away or broke the protocol, so that
the exchange may be repeated on a new connection; `TimeoutError` when the deadline passed.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["NEVER", "OK", "Address", "Answer", "Connection", "ConnectionLost"]

OK = 200
NEVER = float("inf")
"""The deadline of a wait that only its peer, `watch` or `abort` ends."""

HEAD_LIMIT = 65_536
BODY_LIMIT = 32 * 1024 * 1024
RECEIVE_SIZE = 65_536


class ConnectionLost(ConnectionError):
    """The peer closed, reset or broke the protocol before the answer was complete."""


class Address:
    """A Unix socket path, or a port on 127.0.0.1 when there is no path."""

    __slots__ = ("path", "port")

    def __init__(self, path: str | None, port: int | None) -> None:
        self.path = path
        self.port = port

    @property
    def host(self) -> str:
        """The Host header: over a socket a name with a port that the daemon's host check accepts."""
        return "localhost:1" if self.path else f"127.0.0.1:{self.port}"

    def connect(self, deadline: float) -> socket.socket:
        """Open a connection; raises `OSError`."""
        if self.path:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            target: str | tuple[str, int] = self.path
        else:
            opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            target = ("127.0.0.1", self.port or 0)
        try:
            opened.settimeout(_left(deadline))
            opened.connect(target)
            if not self.path:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            opened.close()
            raise
        return opened


class Answer:
    """The head of an answer, and the way to its body."""

    __slots__ = ("_connection", "_more", "headers", "status")

    def __init__(
        self, connection: Connection, status: int, headers: dict[str, str], more: Callable[[float], bytes]
    ) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection
        self._more = more

    @property
    def content_type(self) -> str:
        """The media type, lower case, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read(self, deadline: float) -> bytes:
        """Return the whole body."""
        parts: list[bytes] = []
        size = 0
        while part := self._more(deadline):
            size += len(part)
            if size > BODY_LIMIT:
                raise ConnectionLost(f"an answer of more than {BODY_LIMIT} bytes")
            parts.append(part)
        return b"".join(parts)

    def skip(self, deadline: float) -> None:
        """Wait for the end of the body and keep nothing of it."""
        while self._more(deadline):
            pass

    def events(self, deadline: float) -> Iterator[bytes]:
        """Yield the data of each event as it arrives, until the stream ends; comments and event names are left out."""
        buffer = b""
        data: list[bytes] = []
        while part := self._more(deadline):
            buffer += part
            if len(buffer) > BODY_LIMIT:
                raise ConnectionLost(f"an event of more than {BODY_LIMIT} bytes")
            *lines, buffer = buffer.split(b"\n")
            for raw in lines:
                line = raw.removesuffix(b"\r")
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    yield b"\n".join(data)
                    data = []


class Connection:
    """One kept-alive connection; not for use by two threads at once, except that any thread may `abort` it."""

    __slots__ = ("_address", "_buffer", "_reusable", "_socket", "used", "watch")

    def __init__(self, address: Address, deadline: float) -> None:
        self._address = address
        self._socket = address.connect(deadline)
        self._buffer = b""
        self._reusable = True
        self.used = 0
        """How many requests were sent over it."""
        self.watch: tuple[float, Callable[[], bool]] | None = None
        """Seconds of silence, and the question that is asked after them; False means `ConnectionLost`."""

    def send(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes, deadline: float) -> None:
        """Send one request. Header values must be printable Latin-1; a line break in one raises `ValueError`."""
        head = [f"{method} {path} HTTP/1.1", "Host: " + self._address.host]
        head.extend(f"{name}: {value}" for name, value in headers)
        if body or method == "POST":
            head.append(f"Content-Length: {len(body)}")
        for line in head:
            if "\r" in line or "\n" in line:
                raise ValueError("a line break in a header")
        self.used += 1
        self._reusable = False
        self._socket.settimeout(_left(deadline))
        try:
            self._socket.sendall("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        except TimeoutError:
            raise
        except OSError as problem:
            raise ConnectionLost(str(problem)) from problem

    def receive(self, deadline: float) -> Answer:
        """Wait for the head of the answer; interim answers (1xx) are passed over."""
        while True:
            status, headers = self._head(deadline)
            if status >= OK:
                break
        return Answer(self, status, headers, self._body(status, headers))

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow: the last one is complete and the peer has not closed."""
        if not self._reusable or self._buffer:
            return False
        try:
            readable, _, _ = select.select([self._socket], [], [], 0)
        except (OSError, ValueError):
            return False
        return not readable

    def abort(self) -> None:
        """End the exchange from another thread: whoever waits gets `ConnectionLost`."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close; may be repeated."""
        self._reusable = False
        self._socket.close()

    def _fill(self, deadline: float) -> bool:
        """Add what arrives to the buffer; False at the end of the stream."""
        while True:
            left = _left(deadline)
            if self.watch is not None:
                left = self.watch[0] if left is None else min(left, self.watch[0])
            try:
                self._socket.settimeout(left)
                part = self._socket.recv(RECEIVE_SIZE)
            except TimeoutError:
                if self.watch is None:
                    raise
                if not self.watch[1]():
                    raise ConnectionLost("the daemon has fallen silent") from None
            except OSError as problem:
                raise ConnectionLost(str(problem)) from problem
            else:
                self._buffer += part
                return bool(part)

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > HEAD_LIMIT:
                raise ConnectionLost("an answer whose head does not end")
            if not self._fill(deadline):
                raise ConnectionLost("the daemon closed the connection")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.removesuffix(b"\r")

    def _head(self, deadline: float) -> tuple[int, dict[str, str]]:
        version, _, rest = self._line(deadline).partition(b" ")
        code = rest[:3]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or len(code) != 3 or not code.isdigit():
            raise ConnectionLost("an answer that is not HTTP/1.1")
        headers: dict[str, str] = {}
        size = 0
        while line := self._line(deadline):
            size += len(line)
            name, colon, value = line.partition(b":")
            if not colon or size > HEAD_LIMIT:
                raise ConnectionLost("a malformed or oversized head")
            headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
        if version == b"HTTP/1.0":
            headers.setdefault("connection", "close")
        return int(code), headers

    def _body(self, status: int, headers: dict[str, str]) -> Callable[[float], bytes]:
        """Return a reader that gives the next piece of the body, and b"" at its end."""
        keep = headers.get("connection", "").lower() != "close"
        if status in (204, 304):
            self._reusable = keep
            return lambda _deadline: b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks(keep)
        length = headers.get("content-length")
        if length is None:
            return lambda deadline: self._piece(RECEIVE_SIZE, deadline, at_end_ok=True)
        if not length.isascii() or not length.isdigit() or int(length) > BODY_LIMIT:
            raise ConnectionLost("an unacceptable Content-Length")
        return self._counted(int(length), keep)

    def _counted(self, length: int, keep: bool) -> Callable[[float], bytes]:
        left = length
        if not left:
            self._reusable = keep

        def more(deadline: float) -> bytes:
            nonlocal left
            if not left:
                return b""
            part = self._piece(left, deadline, at_end_ok=False)
            left -= len(part)
            if not left:
                self._reusable = keep
            return part

        return more

    def _chunks(self, keep: bool) -> Callable[[float], bytes]:
        left = 0
        done = False

        def more(deadline: float) -> bytes:
            nonlocal left, done
            if done:
                return b""
            if not left:
                left = self._chunk_size(deadline)
                if not left:
                    while self._line(deadline):
                        pass
                    done = True
                    self._reusable = keep
                    return b""
            part = self._piece(left, deadline, at_end_ok=False)
            left -= len(part)
            if not left and self._line(deadline):
                raise ConnectionLost("a chunk longer than it said")
            return part

        return more

    def _chunk_size(self, deadline: float) -> int:
        text = self._line(deadline).partition(b";")[0].strip()
        try:
            size = int(text[:17], 16)
        except ValueError:
            raise ConnectionLost("a malformed chunk size") from None
        if not 0 <= size <= BODY_LIMIT:
            raise ConnectionLost("an oversized chunk")
        return size

    def _piece(self, limit: int, deadline: float, *, at_end_ok: bool) -> bytes:
        """Return up to `limit` bytes of the body; b"" only at the end of the stream, where that is allowed."""
        if not self._buffer and not self._fill(deadline) and not at_end_ok:
            raise ConnectionLost("the daemon closed the connection in the middle of an answer")
        part, self._buffer = self._buffer[:limit], self._buffer[limit:]
        return part


def _left(deadline: float) -> float | None:
    """Return the seconds until `deadline`, None for an infinite one; raises `TimeoutError` when there are none."""
    if deadline == NEVER:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
