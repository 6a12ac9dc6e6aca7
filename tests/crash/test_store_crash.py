"""A process that writes is killed at any moment: what it acknowledged is there, and nothing is there by half."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keymem_daemon.core.changes import KeyAdded, LinkSet, MemoryAdded
from keymem_daemon.store.sqlite import SqliteStore

KEYS = 4

WRITER = """
import sys
from pathlib import Path
from keymem_daemon.core.changes import Commit, KeyAdded, KeyRemoved, LinkRemoved, LinkSet, MemoryAdded, MemoryRemoved
from keymem_daemon.core.model import Actor, Key, Link, Memory
from keymem_daemon.store.sqlite import SqliteStore

class Clock:
    def now(self):
        return 1.0

store = SqliteStore(Path(sys.argv[1]), Clock())
start, keys, forgetting, durable = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "forget", sys.argv[5] == "durable"
print("ready", flush=True)
for number in range(start, 1_000_000):
    memory = Memory(f"01{number:010x}", f"secret-{number}-of-the-day " * 20, "default", 1.0, 1.0)
    named = [Key(f"02{number * keys + each:010x}", f"key-{number}-{each}") for each in range(keys)]
    links = [LinkSet(Link(key.id, memory.id, position=each)) for each, key in enumerate(named)]
    changes = (MemoryAdded(memory), *(KeyAdded(key) for key in named), *links)
    store.commit([Commit("remember", 1.0, Actor("t"), changes, f"r{number}", str(number))], durable=durable)
    print(number, flush=True)
    if forgetting and number % 2:
        gone = [change for key in named for change in (LinkRemoved(key.id, memory.id), KeyRemoved(key.id))]
        store.commit([Commit("forget", 2.0, Actor("t"), (*gone, MemoryRemoved(memory.id, purge=True)))])
        print(f"forgot {number}", flush=True)
        store.purge([memory.id], [key.concept for key in named])
"""


class FixedClock:
    def now(self) -> float:
        return 1.0


def number_of(identifier: str) -> int:
    return int(identifier, 16) % 16**10


def killed_writer(path: Path, start: int, lines: int, *, forgetting: bool, durable: bool) -> list[str]:
    """Run a writer from number ``start``, kill it when it has said ``lines`` lines; returns all that it said."""
    arguments = [str(path), str(start), str(KEYS), "forget" if forgetting else "keep", "durable" if durable else "soft"]
    with subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline().strip() for _ in range(lines + 1)]
        writer.send_signal(signal.SIGKILL)
        said.extend(line.strip() for line in writer.stdout if line.endswith("\n"))
        assert writer.wait(20) == -signal.SIGKILL
    assert said[0] == "ready"
    return said[1:]


def kill_moments(rounds: int) -> list[int]:
    return [random.Random(number).randrange(1, 60) for number in range(rounds)]  # noqa: S311 - seeded on purpose


def check_that_nothing_acknowledged_is_lost(tmp_path: Path, rounds: int, *, durable: bool) -> None:
    path, start = tmp_path / "keymem.db", 0
    for lines in kill_moments(rounds):
        said = killed_writer(path, start, lines, forgetting=False, durable=durable)
        acknowledged = int(said[-1])
        store = SqliteStore(path, FixedClock())
        changes = list(store.load())
        memories = {number_of(change.memory.id) for change in changes if isinstance(change, MemoryAdded)}
        keys = {number_of(change.key.id) // KEYS for change in changes if isinstance(change, KeyAdded)}
        assert memories == keys
        assert memories in (set(range(acknowledged + 1)), set(range(acknowledged + 2)))
        assert sum(isinstance(change, KeyAdded) for change in changes) == KEYS * len(memories)
        assert sum(isinstance(change, LinkSet) for change in changes) == KEYS * len(memories)
        assert len(store.history(None, 1_000_000)) == (1 + 2 * KEYS) * len(memories)
        assert [number for number in range(acknowledged + 2) if store.response_to(f"r{number}")] == sorted(memories)
        assert store.report().problems == ()
        store.close()
        start = len(memories)


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "soft"])
def test_a_kill_loses_nothing_acknowledged_and_leaves_nothing_half_done(tmp_path: Path, durable: bool) -> None:
    check_that_nothing_acknowledged_is_lost(tmp_path, 4, durable=durable)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    check_that_nothing_acknowledged_is_lost(tmp_path, 100, durable=True)


def check_that_what_was_forgotten_stays_forgotten(tmp_path: Path, rounds: int) -> None:
    path, start = tmp_path / "keymem.db", 0
    forgotten: set[int] = set()
    for lines in kill_moments(rounds):
        said = killed_writer(path, start, lines, forgetting=True, durable=True)
        store = SqliteStore(path, FixedClock())
        memories = {number_of(change.memory.id) for change in store.load() if isinstance(change, MemoryAdded)}
        every_byte = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        forgotten.update(int(line.removeprefix("forgot ")) for line in said if line.startswith("forgot "))
        for number in forgotten:
            assert number not in memories
            assert f"secret-{number}-".encode() not in every_byte
            assert f"key-{number}-".encode() not in every_byte
        start = max((int(line) for line in said if line.isdecimal()), default=start - 1) + 2
        store.close()


def test_a_kill_while_forgetting_leaves_no_byte_once_the_store_is_opened_again(tmp_path: Path) -> None:
    check_that_what_was_forgotten_stays_forgotten(tmp_path, 4)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_kills_while_forgetting_leave_no_byte(tmp_path: Path) -> None:
    check_that_what_was_forgotten_stays_forgotten(tmp_path, 50)
