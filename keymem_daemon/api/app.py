"""The HTTP application: every path, thin. What a path does is a verb, a report or a request to the runtime.

FastAPI inside, the guard around it. Bodies are read by our own parser, so that HTTP and tools accept and refuse the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from keymem_daemon.api.calls import Calls
from keymem_daemon.api.errors import defect, error_response
from keymem_daemon.api.identity import Claims, actor_of, claims_of
from keymem_daemon.api.mcp_server import McpEndpoint, MemoryServer
from keymem_daemon.api.openapi import described
from keymem_daemon.api.presence import Presence
from keymem_daemon.api.security import Guard
from keymem_daemon.api.tools import HTTP_VERBS, INJECT, Surface, Verb
from keymem_daemon.core.errors import InvalidArgument, KeymemError
from keymem_daemon.service.views import error_view

__all__ = ["Control", "DaemonIdentity", "create_app"]

HANDED_OVER = 202
CONFLICT = 409

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DaemonIdentity:
    """Which daemon this is: ``instance`` is new at each start, ``protocol`` the agreement with the shim."""

    instance: str
    version: str
    protocol: int
    token: str


class Control(Protocol):
    """What the runtime lets a caller ask of the process."""

    def stop(self) -> None:
        """Finish what is in flight, flush and exit."""
        ...

    def hand_over(self, version: str) -> bool:
        """Stop in favour of a daemon of ``version``, if this one may; tells whether it does."""
        ...

    async def status(self) -> dict[str, Any]:
        """What `keymemd status` shows."""
        ...


def create_app(identity: DaemonIdentity, calls: Calls, presence: Presence, surface: Surface, control: Control) -> Guard:
    """The guarded application. ``calls`` is opened and closed with it."""
    memory_server = MemoryServer(calls, surface, identity.version)
    endpoint = McpEndpoint(memory_server, calls)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with calls.work.open(), endpoint.manager.run():
            yield

    app = FastAPI(
        title="keymem",
        version=identity.version,
        description="Long-term memory that recalls by association. Local to one user of one machine.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_exception_handler(KeymemError, _keymem_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _defect)
    _add_verbs(app, calls, presence)
    _add_health(app, identity, control, calls, presence)
    _add_control(app, control)
    _add_session(app, presence)
    presence.when_closing(memory_server.close)
    app.router.routes.append(Route("/mcp", _Counted(endpoint, presence), methods=None))
    return Guard(app, identity.token)


def _add_verbs(app: FastAPI, calls: Calls, presence: Presence) -> None:
    paths = {f"/api/{name}": verb for name, verb in HTTP_VERBS.items()}
    for path, verb in {**paths, "/inject": INJECT}.items():
        app.add_api_route(
            path,
            _verb_endpoint(calls, presence, verb),
            methods=["POST"],
            name=verb.name,
            summary=verb.title,
            description=verb.description,
            openapi_extra=described(verb),
        )


def _verb_endpoint(calls: Calls, presence: Presence, verb: Verb) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        presence.seen()
        claims = claims_of(request.headers)
        raw = await _json_body(request)
        result = await calls.call(verb, raw, claims, actor_of(verb.name, claims))
        return JSONResponse(result)

    return endpoint


def _add_health(app: FastAPI, identity: DaemonIdentity, control: Control, calls: Calls, presence: Presence) -> None:
    @app.get("/health", summary="Whether this daemon is alive, and which one it is")
    async def health(request: Request) -> dict[str, Any]:
        if not request.scope["keymem.trusted"]:
            return {"ok": True}
        return {
            "ok": True,
            "instance": identity.instance,
            "version": identity.version,
            "protocol": identity.protocol,
        }

    @app.get("/status", summary="How everything is, for people and scripts")
    async def status() -> dict[str, Any]:
        return await control.status()

    @app.get("/metrics", summary="Counters as Prometheus text", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        counts = calls.door.counts() or {}
        gauges = {name: float(value) for name, value in counts.items()} | {"sessions": float(len(presence.sessions()))}
        return PlainTextResponse(calls.metrics.text(gauges))


def _add_control(app: FastAPI, control: Control) -> None:
    @app.post("/control/stop", summary="Finish what is in flight and exit")
    async def stop() -> dict[str, Any]:
        control.stop()
        return {"stopping": True}

    @app.post("/control/handover", summary="Exit in favour of a newer daemon, if a shim started this one")
    async def handover(request: Request) -> JSONResponse:
        raw = await _json_body(request)
        version = raw.get("version") if isinstance(raw, dict) else None
        if not isinstance(version, str):
            raise InvalidArgument("version", "the version of the daemon that is to take over")
        accepted = control.hand_over(version)
        return JSONResponse({"stopping": accepted}, HANDED_OVER if accepted else CONFLICT)


def _add_session(app: FastAPI, presence: Presence) -> None:
    @app.get("/session", summary="Stay counted as a live session for as long as the connection is open")
    async def session(request: Request) -> Response:
        claims = claims_of(request.headers)
        if claims.session is None:
            raise InvalidArgument("X-Keymem-Session", "the id of the session in this header")
        return _Attendance(presence, claims)


class _Attendance(Response):
    """An answer that ends with the daemon or the client, whichever is first; until then the session counts."""

    def __init__(self, presence: Presence, claims: Claims) -> None:
        super().__init__(media_type="text/plain")
        self._presence = presence
        self._claims = claims

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Hold the connection."""
        claims = self._claims
        async with self._presence.attending(claims.session or "", claims.client, claims.host_agent):
            headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"\n", "more_body": True})
            async with asyncio.TaskGroup() as group:
                gone = group.create_task(_disconnected(receive))
                stopping = group.create_task(self._presence.closing())
                await asyncio.wait((gone, stopping), return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                stopping.cancel()
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


class _Counted:
    """`/mcp`, each request of which is activity."""

    def __init__(self, endpoint: McpEndpoint, presence: Presence) -> None:
        self._endpoint = endpoint
        self._presence = presence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        self._presence.seen()
        await self._endpoint(scope, receive, send)


async def _json_body(request: Request) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError) as problem:
        raise InvalidArgument("the body", "JSON in UTF-8", hint=str(problem)[:120]) from None


async def _keymem_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, KeymemError):
        raise error
    return error_response(error)


async def _http_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    code = "not_found" if error.status_code == 404 else "invalid_argument"
    hint = "GET /openapi.json lists the paths and what they take."
    body = {"error": {"code": code, "message": str(error.detail), "hint": hint}}
    return JSONResponse(body, error.status_code, error.headers)


async def _defect(request: Request, error: Exception) -> JSONResponse:
    logger.error("%s failed", request.url.path, exc_info=error)
    return JSONResponse(error_view(defect()), 500)
