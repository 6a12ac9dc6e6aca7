"""Full collections: what a long one left is not looked at again, and cycles that come later are still collected."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keymem_daemon.runtime.collector import keep_pauses_short


class Cycle:
    def __init__(self) -> None:
        self.me = self


@contextmanager
def collecting_with(seconds_a_step: float) -> Iterator[Callable[[], int]]:
    """A collector whose collections take so long by its clock; gives how many objects are frozen since."""
    before = gc.get_freeze_count()
    ticks = itertools.count()
    end = keep_pauses_short(0.5, lambda: next(ticks) * seconds_a_step)
    try:
        yield lambda: gc.get_freeze_count() - before
    finally:
        end()
        gc.unfreeze()


def test_what_a_long_full_collection_left_is_not_looked_at_again() -> None:
    kept = [[number] for number in range(1_000)]
    with collecting_with(1.0) as frozen:
        gc.collect(1)
        assert frozen() == 0
        gc.collect()
        assert frozen() >= len(kept)


def test_short_collections_freeze_nothing() -> None:
    with collecting_with(0.1) as frozen:
        gc.collect()
        assert frozen() == 0


def test_cycles_that_come_after_are_still_collected() -> None:
    with collecting_with(1.0):
        gc.collect()
        later = weakref.ref(Cycle())
        assert later() is not None
        gc.collect()
        assert later() is None
