"""A model of our own on loopback, for clients that must have one: it calls one tool once, then ends the turn with a sentence.

It speaks the streaming form of the Anthropic Messages API (``/v1/messages``, Claude Code) and of the OpenAI Responses API
(``/v1/responses``, Codex). It keeps nothing between requests: whether the call was made is seen in the conversation that
the client sends. Clients offer tools in several ways, and the model reaches the wanted one through whichever it is shown:
directly, inside a namespace, after a search for it, or from a script.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

ANSWER = "That is all there is to say."

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """The tool to call, by the name the server gave it, and its arguments; ``None`` for no call at all."""

    tool: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ModelApi:
    """The server while it is entered. ``requests`` are the bodies it was sent, oldest first."""

    call: Call | None
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        model = self

        class Handler(_Handler):
            @property
            def api(self) -> ModelApi:
                return model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The requests that belong to the conversation; the clients ask for titles and the like beside it, without tools."""
        return [request for request in self.requests if request.get("tools") or request.get("input")]

    @property
    def results(self) -> str:
        """The tool results that the last request of the conversation holds, as one text."""
        last = self.turns[-1]
        found = [item for item in last.get("input") or [] if str(item.get("type")).endswith("call_output")]
        for message in last.get("messages") or []:
            if isinstance(message["content"], list):
                found += [block for block in message["content"] if block.get("type") == "tool_result"]
        return json.dumps(found, ensure_ascii=False)

    @property
    def first(self) -> str:
        """The conversation's first request, as one text."""
        return json.dumps(self.turns[0], ensure_ascii=False)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def api(self) -> ModelApi:
        """The server that this request came to."""
        raise NotImplementedError

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing: the tests look at what was asked."""

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json({"input_tokens": 1})
        elif path.endswith("/messages"):
            self.api.requests.append(body)
            block = anthropic_block(body, self.api.call)
            if body.get("stream"):
                self._stream(anthropic_events(block, body.get("model", "")))
            else:
                self._json(anthropic_message(block, body.get("model", "")))
        elif path.endswith("/responses"):
            self.api.requests.append(body)
            self._stream(openai_events(openai_item(body, self.api.call), body.get("model", "")))
        else:
            self._json({"error": {"message": "no such path"}}, 404)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _json(self, value: dict[str, Any], status: int = 200) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def _stream(self, events: Iterator[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
        except ConnectionError:
            return


def anthropic_block(request: dict[str, Any], call: Call | None) -> dict[str, Any]:
    """The one content block of the answer: a use of the tool where it is offered and was not used yet, else text."""
    offered = [str(tool.get("name", "")) for tool in request.get("tools") or []]
    used = [
        str(block.get("name"))
        for message in request.get("messages", [])
        if isinstance(message.get("content"), list)
        for block in message["content"]
        if block.get("type") == "tool_use"
    ]
    wanted = [name for name in offered if call is not None and name.endswith(f"__{call.tool}")]
    if call is None or not wanted or wanted[0] in used:
        return {"type": "text", "text": ANSWER}
    return {"type": "tool_use", "id": f"toolu_{len(used):024d}", "name": wanted[0], "input": call.arguments}


def anthropic_message(block: dict[str, Any], model: str) -> dict[str, Any]:
    """The whole answer, for a request that does not stream."""
    return {
        "id": "msg_000000000000000000000000",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": "end_turn" if block["type"] == "text" else "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "output_tokens": 1,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def anthropic_events(block: dict[str, Any], model: str) -> Iterator[Event]:
    """The same as a stream."""
    whole = anthropic_message(block, model)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": 1},
    }
    yield {"type": "message_stop"}


def openai_item(request: dict[str, Any], call: Call | None) -> dict[str, Any]:
    """The one output item: the call, or what leads to it, or a message when it has been made (or cannot be)."""
    items = [item for item in request.get("input") or [] if isinstance(item, dict)]
    kinds = {item.get("type") for item in items}
    said = {
        "type": "message",
        "id": "msg_0",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
    }
    if call is None or kinds & {"function_call", "custom_tool_call"}:
        return said
    tools = list(request.get("tools") or [])
    for item in items:
        tools += item.get("tools") or []
    identity = {"call_id": f"call_{len(items)}", "status": "completed"}
    for name, namespace in _functions(tools, "function"):
        if name == call.tool or name.endswith(f"__{call.tool}"):
            place = {} if namespace is None else {"namespace": namespace}
            arguments = json.dumps(call.arguments)
            return {"type": "function_call", "id": "fc_0", "name": name, "arguments": arguments, **place, **identity}
    if any(tool.get("type") == "tool_search" for tool in tools) and "tool_search_call" not in kinds:
        query = {"query": f"keymem {call.tool} memory", "limit": 10}
        return {"type": "tool_search_call", "id": "ts_0", "execution": "client", "arguments": query, **identity}
    if ("exec", None) in [(name, None) for name, _namespace in _functions(tools, "custom")]:
        script = f"text(JSON.stringify(await tools.mcp__keymem__{call.tool}({json.dumps(call.arguments)})));"
        return {"type": "custom_tool_call", "id": "ctc_0", "name": "exec", "input": script, **identity}
    return said


def _functions(tools: list[dict[str, Any]], kind: str) -> Iterator[tuple[str, str | None]]:
    """Name and namespace of the tools of that kind."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from ((str(inner["name"]), str(tool["name"])) for inner in tool["tools"] if inner.get("type") == kind)
        elif tool.get("type") == kind:
            yield str(tool["name"]), None


def openai_events(item: dict[str, Any], model: str) -> Iterator[Event]:
    """The answer as a stream."""
    response = {"id": "resp_0", "object": "response", "model": model, "status": "in_progress", "output": []}
    usage = {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": [item], "usage": usage},
    }
