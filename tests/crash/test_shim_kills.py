"""Eight shims remember a hundred things each while the daemon is killed with -9: no call fails, each thing exists once.

The moment of the kill is a number of answers, plus a few milliseconds that differ from run to run, so that kills meet
requests before, inside and after their commit. Every shim keeps several calls in flight. The short form has three moments,
the long one (marked slow) fifty. The same script runs against the protocol peer, which shows that the shim's half of the
bargain holds on its own.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shim_peer
import shim_session
from shim_session import ShimSession

SHIMS = 8
CALLS = 100
IN_FLIGHT = 4
WAIT_S = 60.0

Arguments = Callable[[str], dict[str, Any]]
Stored = Callable[[Path], Counter[str]]


class Progress:
    """How many calls have been answered, over all shims."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answered = 0

    def answered(self) -> None:
        with self._changed:
            self._answered += 1
            self._changed.notify_all()

    def reach(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._answered >= number, WAIT_S), f"stuck at {self._answered}"


def words(shim: int, number: int) -> str:
    return f"fact {number} of agent {shim}"


def remember_all(session: ShimSession, shim: int, tool: str, arguments: Arguments, progress: Progress) -> list[str]:
    """Make all calls of one shim, a few at a time; return what went wrong."""
    wrong: list[str] = []
    pending: list[int] = []

    def settle() -> None:
        answer = session.answer(pending.pop(0), WAIT_S)
        if "result" not in answer or answer["result"].get("isError"):
            wrong.append(str(answer))
        progress.answered()

    session.initialize()
    for number in range(CALLS):
        pending.append(session.send("tools/call", {"name": tool, "arguments": arguments(words(shim, number))}))
        if len(pending) >= IN_FLIGHT:
            settle()
    while pending:
        settle()
    return wrong


def kill_at(kills: list[int], env: dict[str, str], data: Path, tool: str, arguments: Arguments) -> None:
    """Run all shims, killing the daemon after each of those numbers of answers; fails unless every call is answered well."""
    progress = Progress()
    sessions = [ShimSession(env, cwd=data.parent) for _ in range(SHIMS)]
    wrong: list[str] = []

    def serve(shim: int) -> None:
        try:
            wrong.extend(remember_all(sessions[shim], shim, tool, arguments, progress))
        except (AssertionError, OSError) as problem:
            wrong.append(f"shim {shim}: {problem}")

    threads = [threading.Thread(target=serve, args=(shim,), daemon=True) for shim in range(SHIMS)]
    try:
        for thread in threads:
            thread.start()
        for moment in kills:
            progress.reach(moment)
            victim = shim_session.wait_for_daemon(data)
            select.select([], [], [], random.Random(moment).uniform(0, 0.01))  # noqa: S311
            os.kill(victim, signal.SIGKILL)
        deadline = time.monotonic() + 2 * WAIT_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        assert not any(thread.is_alive() for thread in threads), "a shim is stuck"
    finally:
        for session in sessions:
            session.close()
        shim_session.end_daemon(data)
    assert wrong == []


def exactly_once(stored: Counter[str]) -> bool:
    return stored == Counter(words(shim, number) for shim in range(SHIMS) for number in range(CALLS))


def moments(count: int) -> list[int]:
    return [1 + round(step * (SHIMS * CALLS - 2) / max(1, count - 1)) for step in range(count)]


SOME_MOMENTS = [pytest.param(moment, id=f"after-{moment}") for moment in [*moments(3)[:2], 700]]
ALL_MOMENTS = [pytest.param(moment, marks=pytest.mark.slow, id=f"of-fifty-after-{moment}") for moment in moments(50)]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data"
    yield directory
    directory.mkdir(exist_ok=True)
    (directory / shim_peer.STOP).touch()
    shim_session.end_daemon(directory)


def remember(text: str) -> dict[str, Any]:
    agent = text.rpartition(" ")[2]
    return {"content": text, "keys": [f"agent {agent}", "fact"], "key_types": {f"agent {agent}": "name"}}


def committed(data: Path) -> Counter[str]:
    """Return each content with the number of commits that created it."""
    with sqlite3.connect(data / "keymem.db") as database:
        rows = database.execute(
            "SELECT memories.content FROM changes JOIN memories ON memories.id = changes.entity_id "
            "WHERE changes.entity = 'memory' AND changes.before IS NULL"
        ).fetchall()
        contents = database.execute("SELECT content FROM memories").fetchall()
    database.close()
    created = Counter(content for (content,) in rows)
    assert created == Counter(content for (content,) in contents)
    return created


@pytest.mark.timeout(240)
@pytest.mark.parametrize("moment", SOME_MOMENTS + ALL_MOMENTS)
def test_a_killed_daemon_loses_and_doubles_nothing(data: Path, moment: int) -> None:
    kill_at([moment], shim_session.environment(data), data, "remember", remember)
    assert exactly_once(committed(data))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_daemon_killed_again_and_again_loses_and_doubles_nothing(data: Path) -> None:
    kill_at(moments(20), shim_session.environment(data), data, "remember", remember)
    assert exactly_once(committed(data))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("moment", SOME_MOMENTS)
def test_the_shim_sends_again_what_a_killed_peer_left_open(data: Path, tmp_path: Path, moment: int) -> None:
    env = shim_session.environment(data, {"PYTHONPATH": str(shim_peer.install(tmp_path / "packages"))})
    kill_at([moment], env, data, "add", lambda text: {"text": text})
    lines = (data / "peer.store").read_text().splitlines()
    assert exactly_once(Counter(line.split("\t")[1] for line in lines))
