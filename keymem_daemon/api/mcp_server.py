"""The MCP server: the table of verbs as tools, through the official SDK's low-level server, over any transport.

Both clients show the model `structuredContent` and drop `content` where both exist, so a result stands whole in both: as an
object, and as its JSON text. An error is a result too, with `isError` and an object that satisfies the output schema. Instructions
carry the live counts of the moment in which a client asks, and never wait for the engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from keymem_daemon.api import prompts
from keymem_daemon.api.calls import Calls
from keymem_daemon.api.envelope import refused
from keymem_daemon.api.identity import Claims, actor_of, claims_of, tool_use_of
from keymem_daemon.api.limit import RESULT_BYTES
from keymem_daemon.api.schema import input_schema, output_schema
from keymem_daemon.api.security import replaying
from keymem_daemon.api.tools import Surface, Verb, offered
from keymem_daemon.core.errors import KeymemError
from keymem_daemon.service.caller import seen_by
from keymem_daemon.service.views import error_view

__all__ = ["McpEndpoint", "MemoryServer", "tool_of"]

ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
SERVER_NAME: Final = "keymem"

Context = ServerRequestContext[Any, Any]


def tool_of(verb: Verb) -> types.Tool:
    """The tool that ``verb`` is to a client."""
    return types.Tool(
        name=verb.name,
        title=verb.title,
        description=verb.description,
        input_schema=input_schema(verb.arguments),
        output_schema=output_schema(verb.result),
        annotations=types.ToolAnnotations(
            title=verb.title,
            read_only_hint=verb.read_only,
            destructive_hint=verb.destructive,
            idempotent_hint=verb.idempotent,
            open_world_hint=False,
        ),
        _meta={ALWAYS_LOAD: True} if verb.always_loaded else None,
    )


class MemoryServer:
    """The server and its handlers. ``local`` are the claims of a client that shares the process (stdio)."""

    def __init__(self, calls: Calls, surface: Surface, version: str, local: Claims | None = None) -> None:
        self._calls = calls
        self._surface = surface
        self._local = local or Claims()
        self._local_seq = 0
        self._verbs: Mapping[str, Verb] = {verb.name: verb for verb in offered(surface)}
        self._tools = [tool_of(verb) for verb in self._verbs.values()]
        self._schemas = {tool.name: tool.input_schema for tool in self._tools}
        self._listen = ListenHandler(InMemorySubscriptionBus())
        self.server: Server[Any] = Server(
            SERVER_NAME,
            title="keymem",
            version=version,
            description="Long-term memory that recalls by association.",
            instructions=prompts.instructions(None, hook_installed=surface.hook_installed),
            get_tool_input_schema=self._schemas.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listen,
        )
        self.server.middleware.clear()  # tracing is the only thing in it, and nothing here exports traces
        self.server.middleware.append(self._with_counts)

    def close(self) -> None:
        """End the streams that never end by themselves."""
        self._listen.close()

    def _hook_installed(self, ctx: Context) -> bool:
        """Whether the client of this request has the prompt hook: as its shim says, else as our own settings do."""
        claimed = self._claims(ctx).hook_installed
        return self._surface.hook_installed if claimed is None else claimed

    async def _with_counts(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: handshake answers carry live counts, and what is no tool call holds no other request up."""
        if ctx.method != "tools/call":
            claims = self._claims(ctx)
            self._calls.order.arrived(claims.session, claims.seq)
        try:
            result = await call_next(ctx)
        except ValidationError as problem:
            raise MCPError(types.INVALID_PARAMS, _unfit_params(ctx.method, problem)) from None
        except MCPError as error:
            if error.error.code == types.INVALID_PARAMS and error.error.data == "":
                raise MCPError(types.INVALID_PARAMS, "initialize comes before this") from None
            raise
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            mapped = await self._calls.surroundings.mapped(self._claims(ctx).cwd)
            counts = self._calls.door.counts(seen_by(mapped))
            result["instructions"] = prompts.instructions(counts, hook_installed=self._hook_installed(ctx))
        return result

    async def _list_tools(self, _ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        verb = self._verbs.get(params.name)
        if verb is None:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:60]!r}; tools/list names those there are"
            )
        claims = self._numbered(self._claims(ctx))
        meta: Mapping[str, Any] = (ctx.params or {}).get("_meta") or {}
        actor = actor_of(verb.name, claims, meta, self._client_name(ctx))
        try:
            result = await self._calls.call(
                verb, params.arguments or {}, claims, actor, tool_use_of(meta), limit=RESULT_BYTES
            )
        except KeymemError as error:
            return _tool_result(error_view(error), is_error=True)
        return _tool_result(result, is_error=False)

    async def _list_prompts(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        prompt = types.Prompt(
            name=prompts.PROMPT_NAME, title=prompts.PROMPT_TITLE, description=prompts.PROMPT_DESCRIPTION, arguments=[]
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != prompts.PROMPT_NAME:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no prompt {params.name[:60]!r}; there is {prompts.PROMPT_NAME}"
            )
        text = prompts.system_prompt(hook_installed=self._hook_installed(ctx))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompts.PROMPT_DESCRIPTION, messages=[message])

    def _claims(self, ctx: Context) -> Claims:
        return claims_of(ctx.request.headers) if isinstance(ctx.request, Request) else self._local

    def _numbered(self, claims: Claims) -> Claims:
        """``claims``, with a number of our own for a client that shares the process: its requests come in order."""
        if claims is not self._local:
            return claims
        self._local_seq += 1
        return replace(claims, session=claims.session or "local", seq=self._local_seq)

    def _client_name(self, ctx: Context) -> str | None:
        client = ctx.session.client_params
        return client.client_info.name if client is not None and client.client_info is not None else None


def _unfit_params(method: str, problem: ValidationError) -> str:
    """Which of the params of ``method`` are missing or of another kind than the protocol has them."""
    places = {".".join(str(part) for part in error["loc"]) for error in problem.errors(include_url=False)}
    return f"the params of {method} are not as the protocol has them: {', '.join(sorted(places))[:200]}"


def _tool_result(result: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=result, is_error=is_error
    )


class McpEndpoint:
    """`/mcp`: the server over stateless Streamable HTTP with JSON answers. The guard has checked host and origin before."""

    def __init__(self, memory_server: MemoryServer, calls: Calls) -> None:
        self._order = calls.order
        self.manager = StreamableHTTPSessionManager(
            memory_server.server, json_response=True, stateless=True, security_settings=None
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; afterwards nobody waits for its number, whatever became of it."""
        if scope["method"] != "POST":
            # A stateless server has nothing to say on a standing stream and no session to end.
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        claims = claims_of(Request(scope).headers)
        body = await Request(scope, receive).body()
        try:
            if (refusal := refused(body)) is not None:
                await JSONResponse(refusal, 400)(scope, receive, send)
                return
            await self.manager.handle_request(scope, replaying(body, receive), send)
        finally:
            self._order.arrived(claims.session, claims.seq)
