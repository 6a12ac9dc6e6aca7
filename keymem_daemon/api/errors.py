"""How an error looks to a caller: one table from its code to the HTTP status, one shape of body.

A defect (any other exception) is logged with its traceback where it is caught and reaches the caller as `unavailable`
without one: what went wrong inside is no business of a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from starlette.responses import JSONResponse

from keymem_daemon.core.errors import ErrorCode, KeymemError, Unavailable
from keymem_daemon.service.views import error_view

__all__ = ["STATUS", "defect", "error_response", "refusal"]

STATUS: Final[Mapping[ErrorCode, int]] = MappingProxyType(
    {
        "invalid_argument": 400,
        "not_found": 404,
        "superseded": 409,
        "too_large": 413,
        "read_only": 403,
        "storage": 507,
        "unavailable": 503,
    }
)


def error_response(error: KeymemError) -> JSONResponse:
    """The HTTP answer for ``error``."""
    return JSONResponse(error_view(error), STATUS[error.code])


def defect() -> Unavailable:
    """What a caller is told of an exception that nobody foresaw."""
    return Unavailable(
        "keymem failed in a way it did not foresee; the details are in its log",
        "Try again once. If it fails again, run `keymemd status` and look at `keymemd logs`.",
    )


def refusal(status: int, message: str, hint: str, *, code: ErrorCode = "invalid_argument") -> JSONResponse:
    """An HTTP answer that refuses a request before any verb is reached, and closes the connection."""
    body = {"error": {"code": code, "message": message, "hint": hint}}
    return JSONResponse(body, status, {"Connection": "close"})
