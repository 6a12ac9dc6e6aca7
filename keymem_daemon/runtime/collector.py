"""Short pauses of the garbage collector, however much is remembered.

A full collection looks at every object there is, with the interpreter's lock held: half a second for 200 long memories of ever new
words. What survives one belongs to graph and indexes, which hold no cycles and are freed by their counts. So whenever a full
collection took too long, what it left is taken out of the collector's sight, and the next one looks only at what came since.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final, Literal

__all__ = ["LONG_S", "keep_pauses_short"]

LONG_S: Final = 0.03


def keep_pauses_short(long_s: float = LONG_S, now: Callable[[], float] = time.perf_counter) -> Callable[[], None]:
    """Freeze what a full collection of more than ``long_s`` seconds left, from now on; returns what ends that."""
    started = now()

    def watch(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        nonlocal started
        if info["generation"] != 2:
            return
        if phase == "start":
            started = now()
        elif now() - started > long_s:
            gc.freeze()

    gc.callbacks.append(watch)
    return lambda: gc.callbacks.remove(watch)
