"""What is no JSON-RPC message, and the answer to it: plain words, the right code, and the id of the request wherever there is one.

Checked before the SDK sees it, whose own answers to such input quote its validator and leave the id out, so that a client waits.
"""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

__all__ = ["refused"]

_NOT_JSON: Final = "the message is not JSON in UTF-8"


def refused(body: bytes) -> dict[str, Any] | None:
    """The answer to ``body``, or ``None`` when it is a request, a notification or a response."""
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _error(_id_within(body), PARSE_ERROR, _NOT_JSON)
    if not isinstance(message, dict):
        return _error(None, INVALID_REQUEST, "a message is one JSON object; there are no batches")
    ident = message.get("id")
    if message.get("jsonrpc") != "2.0":
        return _error(ident, INVALID_REQUEST, 'jsonrpc must be "2.0"')
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if not isinstance(message.get("method"), str):
        return _error(ident, INVALID_REQUEST, "method is missing or not a string")
    if "id" in message and not _is_id(ident):
        return _error(None, INVALID_REQUEST, "id must be a string or an integer")
    if not isinstance(message.get("params"), dict | None):
        return _error(ident, INVALID_PARAMS, "params must be an object")
    return None


def _error(ident: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident if _is_id(ident) else None, "error": {"code": code, "message": message}}


def _is_id(ident: object) -> bool:
    return isinstance(ident, str | int) and not isinstance(ident, bool)


def _id_within(body: bytes) -> object:
    """The id of what would be a message if it were read more leniently."""
    try:
        message = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _no_constant(word: str) -> object:
    raise ValueError(word)
