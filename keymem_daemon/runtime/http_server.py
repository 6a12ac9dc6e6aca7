"""uvicorn, made patient with sessions and impatient with everybody else.

What differs from its own behaviour: no polling (an idle daemon sleeps), signals are the runtime's, and a connection that does not
bring a whole request head within `HEAD_S` is closed, so that slow connections cannot use up the file descriptors.

Any process of the machine can connect over TCP and need not have the token: where there is a socket as well, only `TCP_CONNECTIONS`
may, and one that asks nothing for `TCP_HEAD_S`, or nothing more for `TCP_IDLE_S`, is closed, so that there is always room on the socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from keymem_daemon.runtime.publish import Listening

__all__ = ["HttpServer"]

HEAD_S: Final = 10.0
TCP_HEAD_S: Final = 3.0
TCP_IDLE_S: Final = 5
KEEP_ALIVE_S: Final = 75
CONNECTIONS: Final = 900
TCP_CONNECTIONS: Final = 64
GRACE_S: Final = 1


class _BoundedProtocol(H11Protocol):
    """Closes a connection on which a request head has begun, or is due first, and does not end in time."""

    _head_timer: asyncio.TimerHandle | None = None

    def __init__(self, *, tcp_limit: Callable[[], int], **given: Any) -> None:  # noqa: ANN401 - the base class's own
        super().__init__(**given)
        self._tcp_limit = tcp_limit

    @property
    def over_tcp(self) -> bool:
        """Whether it came in on the port."""
        return self.server is not None and self.server[1] is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        if self.over_tcp and self._tcp_count() > self._tcp_limit():
            self.logger.warning("More connections over TCP than there may be.")
            transport.close()
            return
        if self.over_tcp:
            self.timeout_keep_alive = TCP_IDLE_S
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self._expect_head()
        else:
            self._stop_expecting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_expecting()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(TCP_HEAD_S if self.over_tcp else HEAD_S, self._give_up)

    def _tcp_count(self) -> int:
        return sum(1 for other in self.connections if isinstance(other, _BoundedProtocol) and other.over_tcp)

    def _stop_expecting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()


class HttpServer(uvicorn.Server):
    """Serves ``app`` on sockets that are open already; ``on_listening`` is called once requests are answered."""

    def __init__(self, app: ASGIApp, on_listening: Callable[[], None]) -> None:
        self._tcp_limit = TCP_CONNECTIONS
        protocol = partial(_BoundedProtocol, tcp_limit=lambda: self._tcp_limit)
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", protocol),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._on_listening = on_listening
        self._stopping = asyncio.Event()

    @property
    def listening(self) -> bool:
        """Whether requests are answered, and will be."""
        return self.started and not self.should_exit

    def stop(self) -> None:
        """Stop accepting, finish what is in flight and return from `run_on`."""
        self.should_exit = True
        self._stopping.set()

    async def run_on(self, listening: Listening) -> None:
        """Serve until `stop`."""
        if listening.socket_path is None:
            self._tcp_limit = CONNECTIONS
        await self.serve(sockets=list(listening.sockets))

    async def startup(self, sockets: Any = None) -> None:  # noqa: ANN401 - as in the base class
        """Start, then say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._on_listening()

    async def main_loop(self) -> None:
        """Sleep until told to stop."""
        await self.on_tick(0)
        await self._stopping.wait()

    async def shutdown(self, sockets: Any = None) -> None:  # noqa: ANN401 - as in the base class
        """Finish what is in flight. What takes too long is hung up on, so that its client asks the next daemon."""
        hang_up = asyncio.get_running_loop().call_later(GRACE_S - 0.1, self._hang_up)
        try:
            await super().shutdown(sockets=sockets)
        finally:
            hang_up.cancel()

    def _hang_up(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the runtime."""
        yield
