"""How long one `retrieve` takes with 2,000 memories: `python tests/bench/bench_retrieve.py [MEMORIES]`.

Starts a daemon, fills it with the invented sentences of `bench_cost.py`, waits until everything is embedded, and asks 200 questions over
the socket, each twice: for the first time, when the model reads it, and then with warm caches. Beside each question goes a bare `/health`
on the same connection and a fixed loop of Python in this process, so that a busy machine shows: all three wait for the same processors.
Prints median and 95th percentile of each. Ends with 1 when the warm questions take more than 15 ms in the median or 40 ms at the 95th
percentile.
"""

# ruff: noqa: T201
from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))

from bench_cost import Subject
from running_daemon import running

MEMORIES: Final = 2_000
QUESTIONS: Final = 200
MEDIAN_LIMIT_MS: Final = 15.0
P95_LIMIT_MS: Final = 40.0
LOOP: Final = 100_000

Times = dict[str, list[float]]


def timed(work: Callable[[], object]) -> float:
    """What ``work`` takes, in milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def at(times: Sequence[float], share: float) -> float:
    """The time that this share of the times does not exceed."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def fixed_loop() -> int:
    """Work that is the same on every machine and in every version."""
    total = 0
    for number in range(LOOP):
        total += number * number
    return total


def questions(subject: Subject) -> list[str]:
    """One question each about some of the facts, in four forms."""
    forms = (
        "What did {who} do with the {what}?",
        "Where is the {what} that {who} wrote about?",
        "Which things did {who} have at the {where}?",
        "Who was at the {where} with the {what}, and when?",
    )
    facts = subject.world.dice.sample(list(subject.facts.values()), min(QUESTIONS, len(subject.facts)))
    named = [dict(zip(("who", "what", "where"), fact["keys"], strict=True)) for fact in facts]
    return [forms[place % len(forms)].format(**names) for place, names in enumerate(named)]


def asked(subject: Subject, texts: Sequence[str]) -> Times:
    """Each question once, and beside it what it is compared with."""
    times: Times = {"retrieve": [], "health": [], "loop": []}
    for text in texts:
        times["retrieve"].append(timed(partial(subject.line.ask, "retrieve", {"query": text})))
        times["health"].append(timed(subject.line.health))
        times["loop"].append(timed(fixed_loop))
    return times


def told(name: str, times: Times) -> str:
    """A line of the result."""
    median = {what: at(took, 0.5) for what, took in times.items()}
    return (
        f"{name}: median {median['retrieve']:.1f} ms, 95th percentile {at(times['retrieve'], 0.95):.1f} ms; "
        f"{median['retrieve'] / median['health']:.1f} times /health ({median['health']:.2f} ms), "
        f"{median['retrieve'] / median['loop']:.1f} times the loop ({median['loop']:.2f} ms)"
    )


def main(memories: int) -> int:
    """Measure and print; 1 when a limit is exceeded."""
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "data") as daemon:
        subject = Subject(daemon, memories)
        subject.fill()
        texts = questions(subject)
        first = asked(subject, texts)
        subject.rest()
        warm = asked(subject, texts)
    print(f"{memories:,} memories, {len(texts)} questions")
    print(told("for the first time", first))
    print(told("warm", warm))
    over = at(warm["retrieve"], 0.5) > MEDIAN_LIMIT_MS or at(warm["retrieve"], 0.95) > P95_LIMIT_MS
    print(
        f"limits, warm: median {MEDIAN_LIMIT_MS:.0f} ms, 95th percentile {P95_LIMIT_MS:.0f} ms"
        + (", EXCEEDED" if over else "")
    )
    return int(over)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else MEMORIES))
