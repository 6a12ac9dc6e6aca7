"""A small MCP server that stands where the daemon stands, for what the real one cannot be made to do on demand.

It is a protocol peer: the official SDK's server, stateless, on a Unix socket, with the discovery file, `/health`, `/session`
and `/control/handover`. It notes every request in `peer.log` (one JSON object a line) and answers these tools:

The big imports stand inside `serve`: of twenty processes that start at once, nineteen only meet the lock.

`echo {text}` · `slow {seconds}` · `add {text}` (appends to `peer.store`, exactly once per request id, then answers) ·
`die {mark}` (commits like `add`, then ends the process without an answer the first time a mark is seen) · `loud` (prints).

Asked for `stdio` it ends at once. Run as `python shim_peer.py DATA_DIR [--version V]`; `install` puts it where the shim looks for the daemon.
"""

# ruff: noqa: ANN401, PLC0415
from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from keymem_shim import VERSION, rendezvous

PEER = Path(__file__).resolve()
STOP = "peer.stop"
"""A file of this name in the data directory ends every peer of that directory, those that are still starting too."""


def install(folder: Path) -> Path:
    """Write a package `keymem_daemon` that runs this file; return the folder for PYTHONPATH."""
    package = folder / "keymem_daemon"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import os, runpy, sys\n"
        "sys.argv = ['shim_peer', os.environ['KEYMEM_DATA_DIR'], *sys.argv[1:]]\n"
        f"sys.path.insert(0, {str(PEER.parent)!r})\n"
        f"runpy.run_path({str(PEER)!r}, run_name='__main__')\n"
    )
    return folder


class Store:
    """What was added, with the request ids that added it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {line.split("\t", 1)[0] for line in path.read_text().splitlines()} if path.exists() else set()

    def add(self, request_id: str, text: str) -> None:
        if request_id in self._known:
            return
        with self._path.open("a") as file:
            file.write(f"{request_id}\t{text}\n")
            file.flush()
            os.fsync(file.fileno())
        self._known.add(request_id)


def serve(directory: Path, version: str) -> None:
    import mcp_types as types
    import uvicorn
    from mcp.server.lowlevel.server import Server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Mount, Route

    instance, token = uuid.uuid4().hex, uuid.uuid4().hex
    store = Store(directory / "peer.store")
    log = (directory / "peer.log").open("a")

    def note(**fields: object) -> None:
        log.write(json.dumps(fields | {"pid": os.getpid()}) + "\n")
        log.flush()

    async def list_tools(_ctx: Any, _params: Any) -> Any:
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in ("echo", "slow", "add", "die")]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: Any) -> Any:
        arguments = params.arguments or {}
        headers = ctx.request.headers
        request_id = headers.get("x-keymem-request-id", "")
        text = str(arguments.get("text", ""))
        match params.name:
            case "slow":
                await asyncio.sleep(float(arguments["seconds"]))
            case "add":
                store.add(request_id, text)
            case "die":
                store.add(request_id, str(arguments["mark"]))
                mark = directory / f"died-{arguments['mark']}"
                if not mark.exists():
                    mark.touch()
                    os._exit(9)
            case _:
                pass
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server: Server[Any] = Server(
        "peer",
        version=version,
        instructions="from the peer",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    app = server.streamable_http_app(stateless_http=True, json_response=True)

    async def health(_request: Request) -> Response:
        return JSONResponse({"ok": True, "instance": instance, "version": version, "protocol": rendezvous.PROTOCOL})

    async def session(request: Request) -> Response:
        note(session=request.headers.get("x-keymem-session"))

        async def forever() -> AsyncIterator[bytes]:
            yield b"\n"
            await asyncio.Event().wait()

        return StreamingResponse(forever())

    async def handover(_request: Request) -> Response:
        asyncio.get_running_loop().call_later(0.2, os._exit, 0)
        return JSONResponse({"ok": True})

    def leave_when_told() -> None:
        if (directory / STOP).exists():
            os._exit(0)
        asyncio.get_running_loop().call_later(0.2, leave_when_told)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        leave_when_told()
        async with server.session_manager.run():
            yield

    outer = Starlette(
        routes=[
            Route("/health", health),
            Route("/session", session),
            Route("/control/handover", handover, methods=["POST"]),
            Mount("/", app),
        ],
        lifespan=lifespan,
    )

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            if headers.get("authorization") != f"Bearer {token}":
                await JSONResponse({"detail": "no token"}, 401)(scope, receive, send)
                return
            if scope["path"] == "/mcp":
                note(**{name: value for name, value in headers.items() if name.startswith(("x-keymem", "mcp"))})
        await outer(scope, receive, send)

    socket_path = rendezvous.socket_path(str(directory))
    Path(socket_path).unlink(missing_ok=True)

    class Published(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            content = {
                "pid": os.getpid(),
                "started_at": "2026-01-01T00:00:00Z",
                "socket": socket_path,
                "port": None,
                "token": token,
                "instance": instance,
                "version": version,
                "protocol": rendezvous.PROTOCOL,
            }
            written = directory / "daemon.json.new"
            written.write_text(json.dumps(content))
            written.chmod(0o600)
            written.rename(rendezvous.discovery_path(str(directory)))

    Published(uvicorn.Config(guarded, uds=socket_path, log_level="warning", timeout_graceful_shutdown=1)).run()


def main() -> None:
    if "stdio" in sys.argv:
        return
    directory = Path(sys.argv[1])
    version = sys.argv[sys.argv.index("--version") + 1] if "--version" in sys.argv else VERSION
    lock = os.open(rendezvous.lock_path(str(directory)), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(3)
    with (directory / "peer.starts").open("a") as file:
        file.write(f"{os.getpid()}\n")
    serve(directory, version)


if __name__ == "__main__":
    main()
