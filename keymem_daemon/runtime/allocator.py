"""Memory that the C allocator keeps for later: after much work has been done, none of it is needed soon."""

from __future__ import annotations

import ctypes

__all__ = ["give_back_memory"]


def give_back_memory() -> None:
    """Hand free memory back to the system; nothing where the C library has no call for it (only glibc does). Takes milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
