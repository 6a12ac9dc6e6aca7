"""Every test may import what stands in ``tests/support`` by its module's name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from fixed_time import CountingIds, FixedClock


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands until the test moves it."""
    return FixedClock()


@pytest.fixture
def new_id() -> CountingIds:
    """Identifiers that count up."""
    return CountingIds()
