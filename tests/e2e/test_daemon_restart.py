"""A daemon that is asked to stop under busy shims: the agents never notice, and everything exists once."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import shim_session
from running_daemon import RunningDaemon, clean_environment, running
from shim_session import ShimSession

SHIMS = 4
CALLS = 40
IN_FLIGHT = 4
WAIT_S = 60.0


class Tally:
    """Answers so far, over all shims, and what went wrong."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answered = 0
        self.wrong: list[str] = []

    def add(self, answer: dict[str, object]) -> None:
        with self._changed:
            self._answered += 1
            result = answer.get("result")
            if not isinstance(result, dict) or result.get("isError"):
                self.wrong.append(str(answer))
            self._changed.notify_all()

    def reach(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._answered >= number, WAIT_S), f"stuck at {self._answered}"


def work(session: ShimSession, shim: int, tally: Tally) -> None:
    session.initialize()
    pending: list[int] = []
    for number in range(CALLS):
        fact = {
            "content": f"fact {number} of agent {shim}",
            "keys": [f"agent {shim}", f"fact {number}"],
            "namespace": "n",
        }
        pending.append(session.send("tools/call", {"name": "remember", "arguments": fact}))
        if len(pending) == IN_FLIGHT:
            tally.add(session.answer(pending.pop(0), WAIT_S))
    for ident in pending:
        tally.add(session.answer(ident, WAIT_S))


def test_no_call_fails_when_the_daemon_is_stopped_and_started_again_under_busy_shims(tmp_path: Path) -> None:
    data = tmp_path / "d"
    tally = Tally()
    sessions = [ShimSession(clean_environment(data), cwd=tmp_path) for _ in range(SHIMS)]
    threads = [
        threading.Thread(target=work, args=(session, n, tally), daemon=True) for n, session in enumerate(sessions)
    ]
    try:
        for thread in threads:
            thread.start()
        for moment in (10, 60, 110):
            tally.reach(moment)
            os.kill(shim_session.wait_for_daemon(data), signal.SIGTERM)
        for thread in threads:
            thread.join(2 * WAIT_S)
        tally.reach(SHIMS * CALLS)
    finally:
        for session in sessions:
            session.close()
    assert tally.wrong == []
    pid = shim_session.daemon_pid(data)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
    with running(data) as daemon:
        assert stored(daemon) == sorted(f"fact {n} of agent {shim}" for n in range(CALLS) for shim in range(SHIMS))


def stored(daemon: RunningDaemon) -> list[str]:
    texts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = daemon.verb("list", {"limit": 100, "offset": offset})
        texts += [memory["content"] for memory in page["memories"]]
        offset = page["next_offset"]
    return sorted(texts)
