"""What each verb costs at 100, 1,000 and 10,000 memories: `python tests/bench/bench_cost.py [SIZE …]`.

Starts one daemon a size, fills it with invented English sentences (three keys each: a person, a few of them on many memories and most on
few; a place, on fifty; a thing, on one or two; the same for the same size), waits until everything is embedded, and then measures in turns: each round has every verb once at every
size, so that what else the machine does falls on all sizes alike. A round begins and ends with as many memories as the size says, and
no call is made while the daemon still embeds what the one before has saved. Prints medians, their ratio to the smallest size, memory,
and the start of `keymemd status`. Ends with 1 when a limit is exceeded: the same cost at any size, within 1.5, for writes; three times
for recall and retrieve; six bare interpreters for `keymemd status`.
"""

# ruff: noqa: T201, S311
from __future__ import annotations

import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))

from running_daemon import RunningDaemon, clean_environment, running, wait_until

SIZES: Final = (100, 1_000, 10_000)
ROUNDS: Final = 41
BATCH: Final = 20
FILL: Final = 50
PATIENCE_S: Final = 600.0
WRITES: Final = ("remember", "remember 20", "correct", "confirm", "dismiss", "forget")
READS: Final = ("recall", "retrieve")
LIMITS: Final = {**dict.fromkeys(WRITES, 1.5), **dict.fromkeys(READS, 3.0)}
STATUS_LIMIT: Final = 6.0
RSS_LIMIT_MB: Final = 300

SYLLABLES: Final = (
    "ba",
    "den",
    "mur",
    "li",
    "sta",
    "ven",
    "ko",
    "ra",
    "tis",
    "hal",
    "wyn",
    "do",
    "far",
    "ne",
    "gus",
    "pel",
    "an",
    "mir",
)
DOINGS: Final = (
    "repairs",
    "ordered",
    "keeps",
    "lost",
    "painted",
    "cannot find",
    "sold",
    "borrowed",
    "measures",
    "will deliver",
    "dislikes",
)
MANNERS: Final = (
    "old",
    "green",
    "spare",
    "heavy",
    "folding",
    "second",
    "broken",
    "striped",
    "northern",
    "quiet",
    "copper",
    "rented",
)
THINGS: Final = (
    "ladder violin kettle lantern bicycle invoice printer curtain compass saddle telescope mattress umbrella carpet radiator passport"
    " aquarium blender calendar camera guitar helmet notebook oven piano quilt router scarf tractor wardrobe"
).split()
PLACES: Final = (
    "boathouse library cellar market orchard harbour chapel workshop greenhouse station museum bakery attic clinic"
    " kindergarten stadium laundry courthouse observatory ferry"
).split()


class World:
    """Invented facts about as many people as ``size`` calls for. A person's facts grow with their rank, as in life."""

    def __init__(self, size: int) -> None:
        self.dice = random.Random(size)
        self.names = list(dict.fromkeys(self._word() for _ in range(max(30, size // 3))))
        self.places = [f"{self._word()} {self.dice.choice(PLACES)}" for _ in range(max(10, size // 50))]
        self._told = 0

    def name(self) -> str:
        """A name; the first are on many memories, most on one or two."""
        return self.names[int(len(self.names) * self.dice.random() ** 2)]

    def _word(self) -> str:
        return "".join(self.dice.choices(SYLLABLES, k=3)).capitalize()

    def fact(self) -> dict[str, Any]:
        """Arguments of `remember` for a fact that was never told before."""
        self._told += 1
        who, other, place = self.name(), self.name(), self.dice.choice(self.places)
        what = f"{self._word()} {self.dice.choice(THINGS)}"
        hour = f"{self.dice.randrange(24)}:{self.dice.randrange(60):02}"
        content = f"{who} {self.dice.choice(DOINGS)} the {self.dice.choice(MANNERS)} {what} at the {place}, as {other} wrote at {hour} in letter {self._told}."
        return {"content": content, "keys": [who, what, place]}


class Line(http.client.HTTPConnection):
    """One connection to a daemon's socket, kept open."""

    def __init__(self, daemon: RunningDaemon) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = daemon.discovery.socket or ""
        self._asked = 0
        self._idle = False

    def connect(self) -> None:
        """Connect to the socket instead of a port."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self._path)

    def ask(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of one verb, asked as the shim asks it: with an id under which it is recorded."""
        self._asked += 1
        self._idle = False
        headers = {"Content-Type": "application/json", "X-Keymem-Request-Id": f"bench-{self._asked}"}
        return self._answer("POST", f"/api/{verb}", json.dumps(arguments).encode(), headers)

    def idle(self) -> bool:
        """Whether the daemon has nothing left to embed, and had nothing when it was asked before: what it does after that is done too."""
        models = self._answer("GET", "/status", b"", {})["models"]
        before, self._idle = self._idle, models["semantic"] == "ready" and not any(models["backlog"].values())
        return before and self._idle

    def health(self) -> dict[str, Any]:
        """The cheapest answer there is: what a round trip costs."""
        return self._answer("GET", "/health", b"", {})

    def _answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
        self.request(method, path, body, headers)
        answer = self.getresponse()
        raw = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}: {raw[:300]!r}")
        result: dict[str, Any] = json.loads(raw)
        return result


class Subject:
    """A daemon with ``size`` memories, and what its verbs took in milliseconds."""

    def __init__(self, daemon: RunningDaemon, size: int) -> None:
        self.size = size
        self.daemon = daemon
        self.line = Line(daemon)
        self.world = World(size)
        self.facts: dict[str, dict[str, Any]] = {}
        self.took: dict[str, list[float]] = {verb: [] for verb in LIMITS}

    def fill(self) -> None:
        """Save as many memories as there should be and wait for all that follows."""
        while missing := self.size - len(self.facts):
            batch = [self.world.fact() for _ in range(min(missing, FILL))]
            self._keep(batch, self.line.ask("remember", {"items": batch}))
        self.rest()

    def rest(self) -> None:
        """Return when the daemon has nothing more to do."""
        wait_until(self.line.idle, "a daemon that has embedded everything", PATIENCE_S)

    def round(self) -> None:
        """Every verb once, and then as many memories as before."""
        dice, world = self.world.dice, self.world
        self.line.close()  # the daemon has long closed a line that was silent while the others had their turn
        for verb, count in (("remember", 1), ("remember 20", BATCH)):
            batch = [world.fact() for _ in range(count)]
            self._keep(batch, self._timed(verb, "remember", {"items": batch}))
        old = self._some()
        new = self._timed("correct", "correct", {"memory_id": old, "content": world.fact()["content"]})["new_id"]
        self.facts[new] = self.facts.pop(old)
        sure = self._some()
        self._timed("confirm", "confirm", {"memory_id": sure, "evidence": "user"})
        wrong = self._some()
        key = dice.choice(self.line.ask("show", {"id": wrong})["keys"])["key_id"]
        self._timed("dismiss", "dismiss", {"memory_id": wrong, "key_id": key})
        sought = self.facts[self._some()]
        question = f"What did {sought['keys'][0]} do with the {sought['keys'][1]}?"
        self._timed("recall", "recall", {"query": " ".join(sought["keys"][:2]), "context": question})
        self._timed("retrieve", "retrieve", {"query": question})
        gone = self._some()
        self._timed("forget", "forget", {"memory_id": gone})
        del self.facts[gone]
        self.line.ask("forget", {"memory_id": old})
        while len(self.facts) > self.size:
            extra = self._some()
            self.line.ask("forget", {"memory_id": extra})
            del self.facts[extra]

    def rss_mb(self) -> float:
        """Memory of the daemon."""
        status = Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def _some(self) -> str:
        return self.world.dice.choice(list(self.facts))

    def _keep(self, batch: list[dict[str, Any]], result: dict[str, Any]) -> None:
        for fact, outcome in zip(batch, result["results"], strict=True):
            self.facts[outcome["saved"]] = fact

    def _timed(self, name: str, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.rest()
        started = time.perf_counter()
        result = self.line.ask(verb, arguments)
        self.took[name].append((time.perf_counter() - started) * 1000)
        return result


def table(subjects: list[Subject]) -> Iterator[tuple[str, bool]]:
    """Lines to print, each with whether what it says is within its limit."""
    first = subjects[0]
    yield "| verb | " + " | ".join(f"{s.size:,} ms" for s in subjects) + " | ratio | limit |", True
    yield "|---" * (len(subjects) + 3) + "|", True
    for verb, limit in LIMITS.items():
        medians = [statistics.median(subject.took[verb]) for subject in subjects]
        worst = max(median / medians[0] for median in medians)
        cells = [verb, *(f"{median:.1f}" for median in medians), f"{worst:.2f}", f"{limit:g}"]
        yield "| " + " | ".join(cells) + " |", worst <= limit
    yield f"medians of {len(first.took['forget'])}; ratio: the largest to {first.size:,} memories", True
    for subject in subjects:
        yield f"memory with {subject.size:,}: {subject.rss_mb():.0f} MB (goal: {RSS_LIMIT_MB} at 10,000)", True


def started_status(subject: Subject) -> tuple[str, bool]:
    """`keymemd status` against `python -c pass`, and whether that is within its limit."""
    environment = clean_environment(subject.daemon.directory)

    def took(*command: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - started) * 1000

    pairs = [(took("-c", "pass"), took("-m", "keymem_daemon", "status")) for _ in range(ROUNDS)]
    bare, status = (statistics.median(times) for times in zip(*pairs, strict=True))
    line = f"python -c pass {bare:.0f} ms, keymemd status {status:.0f} ms, ratio {status / bare:.2f} (limit {STATUS_LIMIT:g})"
    return line, status / bare <= STATUS_LIMIT


def main(sizes: list[int]) -> int:
    """Measure and print; 1 when a limit is exceeded."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        subjects = [Subject(stack.enter_context(running(Path(name) / str(size) / "data")), size) for size in sizes]
        for subject in subjects:
            subject.fill()
        dice = random.Random(1)
        for _ in range(ROUNDS):
            for subject in dice.sample(subjects, len(subjects)):
                subject.round()
        told = [*table(subjects), started_status(subjects[-1])]
        for line, _ in told:
            print(line)
        return 0 if all(within for _, within in told) else 1


if __name__ == "__main__":
    sys.exit(main([int(size) for size in sys.argv[1:]] or list(SIZES)))
