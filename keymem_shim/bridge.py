"""What the shim knows of JSON-RPC and MCP, with no I/O: lines in, calls and lines out.

The client speaks newline-delimited JSON-RPC; the daemon takes one HTTP request per message. The bridge turns a line into
a `Call` that carries everything its HTTP request needs, and an HTTP answer into the line that answers it. It knows no
tools, no sockets and no clock; `pump` moves the bytes and holds the lock under which a bridge is used.

Laws:

* every request of the client is answered by exactly one line, whatever happens, unless the client cancels it;
* a call's body is the client's own bytes, so what JSON can carry passes through unharmed (lone surrogates, big numbers);
* a call keeps its `request_id` however often it is sent: the daemon answers a repeated id with the first answer;
* `seq` counts the requests of the session in the order in which they came, handshake requests left out, and
  `floor` is the lowest one still unanswered: below it the daemon need not wait for anything. A new daemon, which has seen
  none of them, is given what is left numbered from 1, so that it waits for no number that was answered by another.

Requests of a revision with its own envelope (2026-07-28) name the revision in `params._meta` and need it, the method and
the name of what they address in headers as well. All others follow the revision that `initialize` agreed on.
"""

from __future__ import annotations

import json

from keymem_shim.identity import percent_encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from keymem_shim.identity import HostClaim
    from keymem_shim.record import Record

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_REQUEST",
    "LINE_LIMIT",
    "PARSE_ERROR",
    "UNAVAILABLE",
    "Bridge",
    "Call",
    "Cancelled",
    "Reply",
    "error_line",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNAVAILABLE = -32001
UNSUPPORTED_REVISION = -32022

LINE_LIMIT = 4 * 1024 * 1024
"""Bytes of one message; the daemon's limit for a body is the same."""

HANDSHAKE_METHODS = ("initialize", "server/discover", "tools/list", "prompts/list", "ping")
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter of a method that the Mcp-Name header repeats (revision 2026-07-28)."""

ENVELOPE_REVISION = "2026-07-28"
LIST_CHANGES = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
"""What a subscription can ask for that any server of ours acknowledges as it stands."""

META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
META_REVISION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
CLIENT_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+"


class Reply:
    """A line for the client that needs no daemon."""

    __slots__ = ("line",)

    def __init__(self, line: bytes) -> None:
        self.line = line


class Cancelled:
    """The client no longer waits for `call`; nothing is to be written for it."""

    __slots__ = ("call",)

    def __init__(self, call: Call) -> None:
        self.call = call


class Call:
    """One message on its way to the daemon."""

    __slots__ = ("body", "headers", "id", "kind", "method", "request_id", "revision", "seq")

    def __init__(
        self, kind: str, ident: object, method: str, body: bytes, headers: list[tuple[str, str]], request_id: str
    ) -> None:
        self.kind = kind
        """`call`, `handshake` (answered from the record when need be), `listen`, or `note` (nothing answers it)."""
        self.id = ident
        """The JSON-RPC id; None for a note."""
        self.method = method
        self.body = body
        self.headers = headers
        self.request_id = request_id
        self.seq = 0
        """Position in the session's order; 0 for what has none."""
        self.revision = ""


class Bridge:
    """The JSON-RPC state of one session; not for use by two threads at once."""

    def __init__(
        self,
        session: str,
        host: HostClaim | None,
        cwd: str,
        homes: Iterable[tuple[str, str]] = (),
        *,
        hook_installed: bool = False,
    ) -> None:
        """`session` is this shim's own hexadecimal id, `host`, `cwd` and `homes` what its surroundings claim.

        `hook_installed` tells whether the client of this session has the prompt hook; other sessions of the daemon may not.
        """
        self._session = session
        self._base = [("X-Keymem-Session", session), ("X-Keymem-Cwd", percent_encoded(cwd))]
        self._base.append(("X-Keymem-Hook-Installed", "true" if hook_installed else "false"))
        if host is not None:
            self._base += [("X-Keymem-Host-Agent", host.agent), ("X-Keymem-Host-Session", host.session)]
        self._base += [(f"X-Keymem-{agent.capitalize()}-Home", percent_encoded(home)) for agent, home in homes]
        self._numbered = 0
        self._seq = 0
        self._open: dict[int, Call] = {}
        self._client = ""
        self._revision = ""
        self._initialize: bytes | None = None

    def accept(self, line: bytes) -> Reply | Call | Cancelled | None:
        """Take one line of the client; None when it asks for nothing."""
        if not line.strip():
            return None
        try:
            message = _decoded(line)
        except (ValueError, RecursionError):
            return Reply(error_line(_id_within(line), PARSE_ERROR, "the line is not JSON in UTF-8"))
        if not isinstance(message, dict):
            return Reply(error_line(None, INVALID_REQUEST, "one JSON-RPC object per line is expected; no batches"))
        ident = message.get("id")
        method = message.get("method")
        if not isinstance(method, str):
            if "method" not in message and ("result" in message or "error" in message):
                # The daemon asks nothing of clients, so an answer of theirs has no addressee.
                return None
            return Reply(error_line(ident, INVALID_REQUEST, "method is missing or not a string"))
        if message.get("jsonrpc") != "2.0":
            return Reply(error_line(ident, INVALID_REQUEST, 'jsonrpc must be "2.0"'))
        if "id" in message and not _is_id(ident):
            return Reply(error_line(None, INVALID_REQUEST, "id must be a string or an integer"))
        params = message.get("params")
        if params is None:
            params = {}
        elif not isinstance(params, dict):
            return Reply(error_line(ident, INVALID_PARAMS, "params must be an object")) if "id" in message else None
        if len(line) > LINE_LIMIT:
            return Reply(error_line(ident, INVALID_REQUEST, f"a message may have {LINE_LIMIT} bytes at most"))
        if "id" not in message:
            return self._note(method, params, line)
        return self._request(ident, method, params, line)

    def replay(self) -> Call | None:
        """Return the client's `initialize` under a private id, for a daemon that has not seen it; None before there is one."""
        if self._initialize is None:
            return None
        message = json.loads(self._initialize)
        message["id"] = self._next_id("replay")
        return self._call("handshake", message["id"], "initialize", json.dumps(message).encode(), {})

    def open_headers(self) -> list[tuple[str, str]]:
        """Return the headers that name this session, for the connection that stands for it."""
        return self._base + ([("X-Keymem-Client", self._client)] if self._client else [])

    def send_headers(self, call: Call) -> list[tuple[str, str]]:
        """Return all headers for sending `call` now, except the token."""
        headers = list(call.headers)
        if call.seq:
            headers += [("X-Keymem-Seq", str(call.seq)), ("X-Keymem-Seq-Floor", str(self.floor()))]
        return headers

    def floor(self) -> int:
        """Return the lowest `seq` that is still unanswered, or the next one when none is."""
        return min((call.seq for call in self._open.values() if call.seq), default=self._seq + 1)

    def renumber(self) -> None:
        """Number the unanswered calls anew, in their order, for a daemon that has seen none of this session."""
        self._seq = 0
        for call in self._open.values():
            if call.seq:
                self._seq += 1
                call.seq = self._seq

    def is_open(self, call: Call) -> bool:
        """Tell whether the client still waits for `call`."""
        return id(call) in self._open

    def unanswered(self) -> list[Call]:
        """Return the calls that the client still waits for, in the order in which they came."""
        return list(self._open.values())

    def settle(self, call: Call, status: int, body: bytes) -> bytes | None:
        """Return the line that answers `call`, given the daemon's HTTP answer; None when nobody waits for it."""
        if not self.is_open(call):
            return None
        message = _response(body)
        if message is None:
            return self.fail(call, INTERNAL_ERROR, _http_problem(status, body))
        return self._answer(call, message, body)

    def stream_line(self, call: Call, data: bytes, *, again: bool) -> tuple[bytes | None, bool]:
        """Take one event of a stream; return the line to write, if any, and whether it was the answer of `call`.

        A stream that was opened `again` repeats its acknowledgement, which the client has had.
        """
        message = _object(data)
        if message is None or not self.is_open(call):
            return None, False
        if "method" not in message:
            return self._answer(call, message, data), True
        if again and message.get("method") == ACKNOWLEDGED:
            return None, False
        return _line(message, data), False

    def acknowledgement(self, call: Call) -> bytes | None:
        """Return the line that acknowledges a subscription before there is a daemon, or None when only that can judge it.

        Claude Code lists no tools before it has this line. The daemon's own is passed over when the stream is opened.
        """
        asked = (json.loads(call.body).get("params") or {}).get("notifications")
        if not self.is_open(call) or call.revision != ENVELOPE_REVISION or not isinstance(asked, dict):
            return None
        if not all(name in LIST_CHANGES and isinstance(wanted, bool) for name, wanted in asked.items()):
            return None
        granted = {name: True for name, wanted in asked.items() if wanted}
        params = {"_meta": {META_SUBSCRIPTION: call.id}, "notifications": granted}
        return _line({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}, None)

    def from_record(self, call: Call, record: Record) -> bytes | None:
        """Return the line that answers a handshake request without a daemon, or None when only a daemon can."""
        if not self.is_open(call):
            return None
        if call.method == "ping":
            return self._answer(call, {"jsonrpc": "2.0", "id": call.id, "result": {}}, None)
        result = record.result(call.method, call.revision)
        if result is not None:
            return self._answer(call, {"jsonrpc": "2.0", "id": call.id, "result": result}, None)
        if call.method == "server/discover" and call.revision and call.revision != ENVELOPE_REVISION:
            data = {"supported": [ENVELOPE_REVISION], "requested": call.revision}
            return self.fail(call, UNSUPPORTED_REVISION, "Unsupported protocol version", data)
        return None

    def fail(self, call: Call, code: int, message: str, data: object = None) -> bytes | None:
        """Return the line that answers `call` with an error; None when nobody waits for it."""
        if self._open.pop(id(call), None) is None:
            return None
        return error_line(call.id, code, message, data)

    def _note(self, method: str, params: dict[str, object], line: bytes) -> Call | Cancelled | None:
        if method == "notifications/cancelled":
            target = params.get("requestId")
            for call in self._open.values():
                if _is_id(target) and type(call.id) is type(target) and call.id == target:
                    del self._open[id(call)]
                    return Cancelled(call)
            return None
        return self._call("note", None, method, line, params)

    def _request(self, ident: object, method: str, params: dict[str, object], line: bytes) -> Call:
        kind = "call"
        if method == LISTEN:
            kind = "listen"
        elif method in HANDSHAKE_METHODS and "cursor" not in params:
            kind = "handshake"
        if method == "initialize":
            self._initialize = line
            self._client = _client(params.get("clientInfo"))
        call = self._call(kind, ident, method, line, params)
        if kind == "call":
            self._seq += 1
            call.seq = self._seq
        self._open[id(call)] = call
        return call

    def _call(self, kind: str, ident: object, method: str, body: bytes, params: dict[str, object]) -> Call:
        meta = params.get("_meta")
        revision = meta.get(META_REVISION) if isinstance(meta, dict) else None
        if isinstance(meta, dict) and isinstance(meta.get(META_CLIENT), dict):
            self._client = _client(meta[META_CLIENT])
        headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
        request_id = self._next_id("")
        headers.append(("X-Keymem-Request-Id", request_id))
        headers += self.open_headers()
        call = Call(kind, ident, method, body, headers, request_id)
        if isinstance(revision, str) and revision:
            call.revision = _header_text(revision)
            headers += [("MCP-Protocol-Version", call.revision), ("Mcp-Method", _encoded(method))]
            name = params.get(NAMED.get(method, ""))
            if isinstance(name, str):
                headers.append(("Mcp-Name", _encoded(name)))
        elif method == "initialize":
            asked = params.get("protocolVersion")
            call.revision = asked if isinstance(asked, str) else ""
        elif self._revision:
            call.revision = self._revision
            headers.append(("MCP-Protocol-Version", self._revision))
        return call

    def _next_id(self, word: str) -> str:
        self._numbered += 1
        return "-".join(filter(None, (self._session, word, str(self._numbered))))

    def _answer(self, call: Call, message: dict[str, object], raw: bytes | None) -> bytes | None:
        if message.get("id") is None and "error" in message:
            message["id"], raw = call.id, None
        if message.get("id") != call.id or ("result" not in message and "error" not in message):
            return self.fail(call, INTERNAL_ERROR, "the daemon answered with something that is no answer to this")
        del self._open[id(call)]
        result = message.get("result")
        if call.method == "initialize" and isinstance(result, dict):
            self._revision = _header_text(str(result.get("protocolVersion", "")))
        return _line(message, raw)


def error_line(ident: object, code: int, message: str, data: object = None) -> bytes:
    """Return a JSON-RPC error as a line; an id that is none becomes null."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return _line({"jsonrpc": "2.0", "id": ident if _is_id(ident) else None, "error": error}, None)


def _line(message: object, raw: bytes | None) -> bytes:
    """Return `message` as one line: its original bytes where they are one, else encoded anew in ASCII."""
    if raw is not None and b"\n" not in raw and b"\r" not in raw:
        return raw + b"\n"
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def _decoded(line: bytes) -> object:
    return json.loads(line.decode("utf-8"), parse_constant=_no_constant)


def _no_constant(word: str) -> object:
    raise ValueError(word + " is not JSON")


def _object(body: bytes) -> dict[str, object] | None:
    try:
        message = _decoded(body)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def _response(body: bytes) -> dict[str, object] | None:
    message = _object(body)
    return None if message is None or "method" in message else message


def _http_problem(status: int, body: bytes) -> str:
    if status == 413:
        return f"a message may have {LINE_LIMIT} bytes at most"
    said = " ".join(body[:300].decode("utf-8", "replace").split())
    return f"the daemon answered with HTTP status {status}" + (f": {said}" if said else "")


def _is_id(ident: object) -> bool:
    return isinstance(ident, (str, int)) and not isinstance(ident, bool)


def _id_within(line: bytes) -> object:
    """Return the id of what would be a message if it were read more leniently, so that its sender does not wait for ever."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _client(info: object) -> str:
    """Return name and version of a client as one harmless word."""
    if not isinstance(info, dict):
        return ""
    parts = [_word(info.get("name")), _word(info.get("version"))]
    return "/".join(part for part in parts if part)


def _word(text: object) -> str:
    return "".join(c if c in CLIENT_WORD else "_" for c in text[:64]) if isinstance(text, str) else ""


def _header_text(text: str) -> str:
    return "".join(character if " " < character <= "~" else "?" for character in text[:64])


def _encoded(text: str) -> str:
    """Return `text` as a header value by the rule of 2026-07-28: plain where that is safe, else in its Base64 form."""
    plain = all(" " <= character <= "~" for character in text) and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    import binascii  # noqa: PLC0415 - rarely needed

    packed = binascii.b2a_base64(text.encode("utf-8", "surrogatepass"), newline=False)
    return f"=?base64?{packed.decode('ascii')}?="
