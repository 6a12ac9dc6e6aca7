"""The real clients where they are installed; everywhere else these tests are skipped and say how to get them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from install_clients import CLAUDE_CODE, CODEX, installed
from real_clients import ClaudeCode, Codex, Memory, Place

WHERE = "KEYMEM_TEST_CLIENTS"

Placed = Callable[..., Place]


def program(pattern: str, name: str) -> Path:
    directory = os.environ.get(WHERE)  # noqa: TID251 - the tester says where the clients are
    found = installed(Path(directory), pattern) if directory else None
    if found is None:
        pytest.skip(f"{name} is not installed: python tests/clients/install_clients.py DIR, then {WHERE}=DIR")
    return found


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """An empty data directory, whose daemon is stopped when the test ends."""
    memory = Memory(tmp_path / "data")
    yield memory
    memory.stop()


@pytest.fixture
def placed(tmp_path: Path, memory: Memory) -> Placed:
    """Makes a home of a given name that uses the test's memory."""

    def make(name: str, commands: Path = Path(sys.executable).parent) -> Place:
        place = Place(tmp_path / name, memory.directory, commands)
        place.root.mkdir()
        return place

    return make


@pytest.fixture
def claude(placed: Placed) -> ClaudeCode:
    """Claude Code in a home of its own."""
    return ClaudeCode(program(CLAUDE_CODE, "Claude Code"), placed("claude"))


@pytest.fixture
def codex(placed: Placed) -> Codex:
    """Codex in a home of its own."""
    return Codex(program(CODEX, "Codex"), placed("codex"))
