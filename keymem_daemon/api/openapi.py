"""The HTTP verbs in the words of OpenAPI: request and response schemas come from the same table as the tools."""

from __future__ import annotations

from typing import Any, Final

from keymem_daemon.api.errors import STATUS
from keymem_daemon.api.schema import input_schema, output_schema
from keymem_daemon.api.tools import Verb

__all__ = ["described"]

_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "enum": list(STATUS)},
                "message": {"type": "string"},
                "hint": {"type": "string"},
            },
            "required": ["code", "message", "hint"],
        }
    },
    "required": ["error"],
}

_REFUSALS: Final = {401: "token missing or wrong", 415: "not JSON", 500: "a defect; see the log"}


def described(verb: Verb) -> dict[str, Any]:
    """The OpenAPI members of the operation that is ``verb``."""
    codes = {status: code for code, status in STATUS.items()} | _REFUSALS
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": input_schema(verb.arguments)}}},
        "responses": {
            "200": {
                "description": verb.title,
                "content": {"application/json": {"schema": output_schema(verb.result)}},
            },
            **{
                str(status): {"description": said, "content": {"application/json": {"schema": _ERROR}}}
                for status, said in sorted(codes.items())
            },
        },
    }
