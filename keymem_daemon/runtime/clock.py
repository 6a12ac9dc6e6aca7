"""The wall clock and fresh identifiers: the only place that reads the one and draws the other."""

from __future__ import annotations

import secrets
import time

__all__ = ["SystemClock", "new_id"]


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since the Unix epoch, UTC."""
        return time.time()  # noqa: TID251 - this is the clock


def new_id() -> str:
    """Twelve random hexadecimal characters."""
    return secrets.token_hex(6)
