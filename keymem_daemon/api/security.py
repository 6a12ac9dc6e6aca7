"""The door guard: what may reach the application at all. Pure ASGI, outermost, knows no verbs.

Over the socket the file's mode is the guard, so no token is needed; a wrong one is refused all the same. Over TCP everything but
`/health` needs the token, because any process and any web page on the machine can connect. Against web pages besides:

* `Host` must name this machine and our port (DNS rebinding),
* `Origin`, where there is one, must be our own page's,
* `Sec-Fetch-Site` must not be another site's,
* a request with a method that changes things must be JSON, which no page can send elsewhere without a preflight, and no
  preflight is ever answered.

Bodies are read here, whole, up to their limit and within a time, so that nothing behind holds a slow connection.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from contextlib import suppress
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keymem_daemon.api.errors import refusal

__all__ = ["BODY_BYTES", "Guard", "replaying", "without_lone_surrogates"]

BODY_BYTES: Final = 4 * 1024 * 1024
BODY_S: Final = 10.0
DRAIN_S: Final = 2.0

_OPEN_PATH: Final = "/health"
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LOCAL_NAMES: Final = ("127.0.0.1", "[::1]", "localhost")
_HOST: Final = re.compile(r"(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?", re.IGNORECASE)
_ANSWER_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)

# A pair of surrogate escapes is one character and stays; a lone one is turned into a NUL escape of the same length, which the
# readers of arguments refuse by name and position. Some JSON parsers behind refuse the whole body instead. Any other escape
# is matched so that an escaped backslash is never taken for the start of one.
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


class _BodyTooLarge(Exception):
    pass


class Guard:
    """Lets through what is allowed; ``token`` is the secret of this start of the daemon."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        port = _tcp_port(scope)
        credentials = headers.getlist("authorization")
        bearer = len(credentials) == 1 and self._is_ours(credentials[0])
        if refused := self._refused(scope, headers, port, bearer=bearer, offered=bool(credentials)):
            await refused(scope, receive, send)
            return
        scope["keymem.trusted"] = bearer or port is None
        try:
            body = await self._body(headers, receive)
        except _BodyTooLarge:
            await _let_it_end(headers, receive)
            limit = BODY_BYTES // (1024 * 1024)
            await refusal(413, f"the body is larger than {limit} MiB", "Send less at a time.", code="too_large")(
                scope, receive, send
            )
            return
        except TimeoutError:
            await refusal(408, f"the body did not arrive within {BODY_S:.0f} seconds", "Send it again.")(
                scope, receive, send
            )
            return
        if body is not None:
            await self._app(scope, replaying(body, receive), _with_headers(send))

    def _is_ours(self, credential: str) -> bool:
        scheme, _, token = credential.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("utf-8"), self._token)

    def _refused(
        self, scope: Scope, headers: Headers, port: int | None, *, bearer: bool, offered: bool
    ) -> ASGIApp | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not _is_our_host(hosts[0], port):
            return refusal(403, "the Host header does not name this daemon", "Use 127.0.0.1 and the published port.")
        if origins and (port is None or len(origins) > 1 or origins[0] not in _own_origins(port)):
            return refusal(
                403,
                "requests of other origins are refused",
                "Call from this machine, with the token, and without Origin.",
            )
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return refusal(
                403,
                "requests of other sites are refused",
                "Call from this machine, with the token, and without Origin.",
            )
        if (offered and not bearer) or (port is not None and not bearer and scope["path"] != _OPEN_PATH):
            return refusal(
                401, "the token is missing or wrong", "Take the token from daemon.json in the data directory."
            )
        if scope["method"] in _CHANGING and _media_type(headers) != "application/json":
            return refusal(415, "the body must be JSON", "Send Content-Type: application/json.")
        return None

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body, or ``None`` when the client went away."""
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > BODY_BYTES:
            raise _BodyTooLarge
        parts: list[bytes] = []
        size = 0
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                part = message.get("body", b"")
                size += len(part)
                if size > BODY_BYTES:
                    raise _BodyTooLarge
                parts.append(part)
                if not message.get("more_body", False):
                    return without_lone_surrogates(b"".join(parts))


async def _let_it_end(headers: Headers, receive: Receive) -> None:
    """Take the rest of a body and keep nothing: who is hung up on while still sending never reads the answer."""
    if "expect" in headers:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                continue


def _tcp_port(scope: Scope) -> int | None:
    """The local port the connection came in on; ``None`` for the socket."""
    server = scope.get("server")
    return server[1] if server else None


def _is_our_host(host: str, port: int | None) -> bool:
    if port is None:
        return _HOST.fullmatch(host) is not None
    return host.lower() in [f"{name}:{port}" for name in _LOCAL_NAMES]


def _own_origins(port: int) -> list[str]:
    return [f"http://{name}:{port}" for name in _LOCAL_NAMES]


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def without_lone_surrogates(body: bytes) -> bytes:
    """JSON text in which every escaped lone surrogate has become an escaped NUL, at the same position."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _ESCAPES.sub(lambda found: rb"\u0000" if found[1] else found[0], body)


def replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives ``body`` once, then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", ())}
            added = [pair for pair in _ANSWER_HEADERS if pair[0] not in present]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return sending
