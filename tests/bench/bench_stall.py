"""What a bulk write costs everybody else: `python tests/bench/bench_stall.py` prints how long a real daemon kept `/health` waiting.

Batches of 200 memories of 19,000 characters are saved, one through HTTP, one as the MCP tool, one of texts with a fresh vocabulary, while
`/health` is asked every 20 ms. The gap is from the moment an answer was due to the moment it came; the same is printed for an idle
daemon, as what the machine itself adds. A gap above 300 ms in a batch fails.
"""

# ruff: noqa: T201
from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))

from running_daemon import RunningDaemon, running

from keymem_daemon.api.handshake_record import request_for

ITEMS = 200
CHARACTERS = 19_000
EVERY_S = 0.02
LIMIT_S = 0.3
SEED = 14
PATIENCE_S = 300.0


def worst_gap(daemon: RunningDaemon, action: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the longest wait for `/health` while ``action`` ran, and seconds that it took."""
    done = threading.Event()
    gaps: list[float] = []

    def poll() -> None:
        with daemon.over_socket(PATIENCE_S) as client:
            due = time.perf_counter()
            while not done.is_set():
                client.get("/health")
                gaps.append(time.perf_counter() - due)
                due = max(due + EVERY_S, time.perf_counter())
                done.wait(max(0.0, due - time.perf_counter()))

    thread = threading.Thread(target=poll)
    thread.start()
    started = time.perf_counter()
    try:
        action()
    finally:
        took = time.perf_counter() - started
        done.set()
        thread.join()
    return max(gaps), took


def batch(name: str, vocabulary: int) -> list[dict[str, Any]]:
    """Texts of words that are drawn from so many."""
    chance = random.Random(f"{SEED} {name}")  # noqa: S311 - reproducible, not secret
    words = [
        "".join(chance.choices("bcdfglmnprst", k=2)) + chance.choice("aeiou") + name + str(n) for n in range(vocabulary)
    ]
    items = []
    for number in range(ITEMS):
        text = f"{name} {number}"
        while len(text) < CHARACTERS:
            text += " " + " ".join(chance.choices(words, k=50)) + "."
        items.append(
            {"content": text[:CHARACTERS], "keys": [f"{name}{number} {key}" for key in ("one", "two", "three")]}
        )
    return items


def saved(daemon: RunningDaemon, items: list[dict[str, Any]]) -> None:
    with daemon.over_socket(PATIENCE_S) as client:
        client.post("/api/remember", json={"items": items}).raise_for_status()


def as_tool(daemon: RunningDaemon, items: list[dict[str, Any]]) -> None:
    headers, body = request_for("tools/call", "2025-06-18")
    body["params"] = {"name": "remember_batch", "arguments": {"items": items}}
    with daemon.over_socket(PATIENCE_S) as client:
        client.post("/mcp", json=body, headers=headers).raise_for_status()


def main() -> int:
    """Print one line a case; 1 when a batch kept `/health` waiting too long."""
    code = 0
    idle = threading.Event()
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "data") as daemon:
        daemon.verb("remember", {"items": [{"content": "warm", "keys": ["warm"]}]})
        common, tool, fresh = batch("common", 2_000), batch("tool", 2_000), batch("fresh", 60_000)
        cases: list[tuple[str, Callable[[], object]]] = [
            ("idle", lambda: idle.wait(5)),
            ("HTTP", lambda: saved(daemon, common)),
            ("tool", lambda: as_tool(daemon, tool)),
            ("fresh words", lambda: saved(daemon, fresh)),
        ]
        for case, action in cases:
            gap, took = worst_gap(daemon, action)
            print(f"{case:<12} worst gap {gap * 1000:6.0f} ms in {took:5.1f} s", flush=True)
            code |= case != "idle" and gap > LIMIT_S
    return code


if __name__ == "__main__":
    sys.exit(main())
