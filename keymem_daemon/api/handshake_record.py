"""The generator of the handshake record that ships with the shim (format: `keymem_shim.record`).

The record holds what the server itself answers, so it asks the server: every revision and variant through the real endpoint, on an
ASGI connection without a network, and with a door that never opens, so that no live counts are in it.

`python -m keymem_daemon.api.handshake_record` writes `keymem_shim/handshake.json`; a test compares the two.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

import keymem_shim
from keymem_daemon.api.calls import Calls
from keymem_daemon.api.door import Door
from keymem_daemon.api.mcp_server import McpEndpoint, MemoryServer
from keymem_daemon.api.metrics import Metrics
from keymem_daemon.api.order import SessionOrder
from keymem_daemon.api.tools import Surface
from keymem_daemon.api.work import SharedWork
from keymem_shim import VERSION
from keymem_shim.record import LATEST_LEGACY

__all__ = ["LEGACY", "MODERN", "handshake_record", "record_text", "request_for"]

LEGACY: Final = ("2025-06-18", LATEST_LEGACY)
MODERN: Final = ("2026-07-28",)
METHODS: Final = {
    "initialize": LEGACY,
    "server/discover": MODERN,
    "tools/list": (*LEGACY, *MODERN),
    "prompts/list": (*LEGACY, *MODERN),
}
TOOL_VARIANTS: Final = {
    "default": Surface(),
    "direct": Surface(direct_recall=True),
    "compat": Surface(compat_tools=True),
}
TEXT_VARIANTS: Final = {"default": Surface(), "hook": Surface(hook_installed=True)}

_META: Final = "io.modelcontextprotocol/"


def request_for(method: str, revision: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of the request ``method`` as a client of ``revision`` sends it."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    client = {"name": "keymem-record", "version": VERSION}
    params: dict[str, Any] = {}
    if revision in MODERN:
        headers |= {"mcp-protocol-version": revision, "mcp-method": method}
        params["_meta"] = {
            f"{_META}protocolVersion": revision,
            f"{_META}clientInfo": client,
            f"{_META}clientCapabilities": {},
        }
    elif method == "initialize":
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
    else:
        headers["mcp-protocol-version"] = revision
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def handshake_record() -> dict[str, Any]:
    """The record, from the server."""
    text = {name: await _answers(surface) for name, surface in TEXT_VARIANTS.items()}
    tools = {name: await _answers(surface) for name, surface in TOOL_VARIANTS.items()}
    answers = {
        method: _shortened(
            {name: by_method[method] for name, by_method in (tools if method == "tools/list" else text).items()}
        )
        for method in METHODS
    }
    return {"version": VERSION, "answers": answers}


async def _answers(surface: Surface) -> dict[str, dict[str, Any]]:
    """By method and revision what a server of ``surface`` answers."""
    calls = Calls(Door(), SessionOrder(), SharedWork(), Metrics())
    endpoint = McpEndpoint(MemoryServer(calls, surface, VERSION), calls)
    found: dict[str, dict[str, Any]] = {}
    async with (
        endpoint.manager.run(),
        httpx.AsyncClient(transport=httpx.ASGITransport(endpoint), base_url="http://localhost:1") as client,
    ):
        for method, revisions in METHODS.items():
            for revision in revisions:
                headers, body = request_for(method, revision)
                answer = await client.post("/mcp", headers=headers, json=body)
                found.setdefault(method, {})[revision] = answer.json()["result"]
    return found


def _shortened(variants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """``variants`` with repetitions replaced by the name of the sibling they equal."""
    short: dict[str, Any] = {}
    for name, revisions in variants.items():
        twin = _twin(revisions, {other: variants[other] for other in short}, lambda answers: answers)
        short[name] = twin or _shortened_revisions(revisions)
    return short


def _shortened_revisions(revisions: dict[str, Any]) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for revision, result in revisions.items():
        twin = _twin(
            result, {other: revisions[other] for other in short if isinstance(short[other], dict)}, _without_revision
        )
        short[revision] = twin or result
    return short


def _twin(value: Any, earlier: dict[str, Any], seen_as: Callable[[Any], Any]) -> str | None:  # noqa: ANN401 - JSON values
    return next((name for name, other in earlier.items() if seen_as(other) == seen_as(value)), None)


def _without_revision(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "protocolVersion"}


def record_text() -> str:
    """The file's content."""
    return json.dumps(asyncio.run(handshake_record()), ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    Path(keymem_shim.__file__).with_name("handshake.json").write_text(record_text(), encoding="utf-8")
