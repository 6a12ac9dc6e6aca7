"""What the prompt hook costs: `python tests/bench/bench_hook.py [MEMORIES]` with a warm daemon and 10,000 memories by default.

Prints, for one run on one machine: memories saved a second, the hook's wall clock from start to exit against `python -c pass`
(medians of 41, in turns), and the same while an import of as many memories runs (median, p99). Goal: at most four times the
bare interpreter when idle, p99 below 800 ms under the import.
"""

# ruff: noqa: T201, S311
from __future__ import annotations

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

RUNS = 41
ITEMS = 100
SUBJECTS = ("the bakery", "our printer", "the staging server", "grandmother", "the cat", "the garden", "project Heron", "the bicycle")
VERBS = ("needs", "prefers", "was moved to", "starts with", "must not see", "is kept beside", "depends on", "remembers")
THINGS = ("rye flour", "blue ink", "port 8443", "chamomile tea", "the window sill", "old roses", "the Tuesday report", "a new chain")
PLACES = ("in the cellar", "on the third floor", "near the station", "by the river", "at the office", "in Busan", "in Ghent", "upstairs")


def ask(folder: Path, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """One POST to the daemon of ``folder``."""
    found = json.loads((folder / "daemon.json").read_text())
    data = json.dumps(body).encode()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(120)
        line.connect(found["socket"])
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
        line.sendall(head.encode() + data)
        raw = b"".join(iter(lambda: line.recv(65_536), b""))
    answer: dict[str, Any] = json.loads(raw.split(b"\r\n\r\n", 1)[1])
    return answer


def batches(count: int, seed: int) -> list[dict[str, Any]]:
    """Requests that save ``count`` invented memories."""
    dice = random.Random(seed)
    items = []
    for number in range(count):
        subject, verb, thing, place = (dice.choice(words) for words in (SUBJECTS, VERBS, THINGS, PLACES))
        note = f"Note {seed}-{number}: {subject} {verb} {thing} {place}, says entry {dice.randrange(10**6)}."
        items.append({"content": note, "keys": [subject, thing, f"entry {number % 997}"], "namespace": f"bench {seed}"})
    return [{"items": items[start : start + ITEMS]} for start in range(0, count, ITEMS)]


def timed(command: list[str], environment: dict[str, str], text: str = "") -> float:
    """Milliseconds from start to exit."""
    started = time.perf_counter()
    subprocess.run(command, input=text.encode(), env=environment, capture_output=True, check=True)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        environment = {"PATH": os.environ["PATH"], "HOME": name, "KEYMEM_DATA_DIR": str(folder), "PYTHONPATH": os.getcwd()}  # noqa: TID251, PTH109
        subprocess.run([sys.executable, "-m", "keymem_daemon", "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            measure(folder, environment, count)
        finally:
            subprocess.run([sys.executable, "-m", "keymem_daemon", "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)


def measure(folder: Path, environment: dict[str, str], count: int) -> None:
    """Print the figures."""
    started = time.perf_counter()
    for request in batches(count, 1):
        ask(folder, "/api/remember", request)
    print(f"{count} memories saved at {count / (time.perf_counter() - started):.0f} a second")
    hook, bare = [sys.executable, "-m", "keymem_hook"], [sys.executable, "-c", "pass"]
    prompt = json.dumps({"prompt": "What does grandmother keep beside the old roses in Busan?", "session_id": "bench", "cwd": "/"})
    timed(hook, environment, prompt)
    pairs = [(timed(bare, environment), timed(hook, environment, prompt)) for _ in range(RUNS)]
    alone, hooked = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"idle: python -c pass {alone:.0f} ms, hook {hooked:.0f} ms, ratio {hooked / alone:.2f} (medians of {RUNS})")
    importing = threading.Thread(target=lambda: [ask(folder, "/api/remember", request) for request in batches(count, 2)])
    importing.start()
    busy: list[float] = []
    while importing.is_alive() and len(busy) < 400:
        busy.append(timed(hook, environment, prompt))
    importing.join()
    busy.sort()
    print(f"under an import: median {statistics.median(busy):.0f} ms, p99 {busy[int(len(busy) * 0.99)]:.0f} ms ({len(busy)} prompts)")


if __name__ == "__main__":
    main()
