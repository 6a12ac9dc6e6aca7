"""What provenance costs on a transcript of a gigabyte: `python tests/bench/bench_transcript.py [MIB]`, 1,024 by default.

Writes transcripts of Claude Code and of Codex below a temporary directory (every byte of them, no holes; removed afterwards), of work (long
outputs of tools) and of talk (short lines), and asks for the turn and the prompt of a call as the daemon does, in a process of its own
for each: for the first save after a start, until the turn is known, and once more after a turn was added. Prints the median and the slowest
of each, how much of the slowest save of all the process was computing (the rest it waited for a processor, or for the disk where the system
holds less of the file than was written), and the process's extra memory at its peak. Limits: 50 ms for the slowest save and 20 MB. Ends
with 1 when one is exceeded, and with 2 when an answer is wrong.
"""

# ruff: noqa: T201
from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).resolve().parent.parent / "support"))

from transcripts import (
    CLAUDE_SESSION,
    CODEX_SESSION,
    claude_file,
    codex_file,
    codex_message,
    codex_turn,
    line,
    prompt,
    tool_result,
    tool_use,
)

from keymem_daemon.hosts.transcripts import DEADLINE_S, Transcripts
from keymem_daemon.ports import HostCall
from keymem_daemon.runtime.clock import SystemClock

LIMIT_MS: Final = 50.0
LIMIT_MB: Final = 20.0
MIB: Final = 1 << 20
BEGINNINGS: Final = 5
OUTPUT: Final = "def total(values):\n    return sum(value.amount for value in values)  # …\n" * 150
"""What a tool prints: most of a long transcript is such text."""


def claude_turn(number: int, calls: int) -> bytes:
    """A prompt, and the tool calls that follow from it."""
    names = [f"toolu_{number}_{call}" for call in range(calls)]
    output = OUTPUT if calls > 1 else "done"
    body = (tool_use(name) + tool_result(name, f"p-{number}", output) for name in names)
    return prompt(f"Request number {number}: mend the parser", f"p-{number}") + b"".join(body)


def codex_turns(number: int, calls: int) -> bytes:
    """The same as Codex writes it."""
    output = line(
        {
            "type": "response_item",
            "payload": {"type": "function_call_output", "output": OUTPUT if calls > 1 else "done"},
        }
    )
    reply = codex_message("It is mended.", "assistant", None)
    return (
        codex_turn(f"t-{number}")
        + codex_message(f"Request number {number}: mend the parser")
        + (output + reply) * calls
    )


TURN_OF: Final = {"claude": claude_turn, "codex": codex_turns}
CALLS: Final = {"work": 40, "talk": 1}
"""Calls a turn: long outputs between few prompts, or short lines of which every fourth is a prompt (the most there is to understand)."""


def write(agent: str, shape: str, root: Path, size: int) -> int:
    """Write a transcript of at least ``size`` bytes; how many turns it has."""
    path = claude_file(root) if agent == "claude" else codex_file(root)
    number = written = 0
    with path.open("wb") as file:
        while written < size:
            number += 1
            written += file.write(TURN_OF[agent](number, CALLS[shape]))
    if path.stat().st_blocks * 512 < written:
        raise RuntimeError("the file has holes")
    return number


def call_of(agent: str, shape: str, number: int) -> HostCall:
    """The last call of turn ``number``."""
    if agent == "claude":
        return HostCall(agent, CLAUDE_SESSION, tool_use_id=f"toolu_{number}_{CALLS[shape] - 1}")
    return HostCall(agent, CODEX_SESSION, prompt=f"t-{number}")


def memory_mb(name: str) -> float:
    """A line of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(said.split()[1]) for said in lines if said.startswith(name + ":")) * 1024 / 1e6


@dataclass(frozen=True, slots=True, order=True)
class Save:
    """What a save waited, how much of that its process computed, in milliseconds, and whether the turn is known."""

    took: float
    computed: float
    known: bool


def medians(saves: Sequence[Save]) -> str:
    """Their median and their slowest."""
    return f"median {statistics.median(save.took for save in saves):.1f} ms, slowest {max(saves).took:.1f}"


@dataclass(slots=True)
class Reading:
    """One daemon's reader, and what it has answered: milliseconds, turn, prompt."""

    agent: str
    shape: str
    root: Path
    runner: asyncio.Runner
    transcripts: Transcripts = field(init=False)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.transcripts = Transcripts(None, {"claude": self.root, "codex": self.root}, SystemClock())

    def save(self, number: int) -> Save:
        """A save in turn ``number``."""
        began, computed = time.perf_counter(), time.process_time()
        found = self.runner.run(self.transcripts.turn(call_of(self.agent, self.shape, number)))
        took, computed = (time.perf_counter() - began) * 1000, (time.process_time() - computed) * 1000
        named = f"{'p' if self.agent == 'claude' else 't'}-{number}"
        if found.prompt != named or found.turn not in (None, number):
            self.wrong.append(f"turn {found.turn}, prompt {found.prompt} instead of {number}, {named}")
        return Save(took, computed, found.turn is not None)


def measured(agent: str, shape: str, root: Path, number: int, runner: asyncio.Runner) -> int:
    """Measure in this process and print; the exit code."""
    path = next(root.rglob("*.jsonl"))
    size = path.stat().st_size
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins here
    before = memory_mb("VmRSS")
    readings = [Reading(agent, shape, root, runner) for _start in range(BEGINNINGS)]
    beginnings = [reading.save(number) for reading in readings]
    reading = readings[-1]
    saves = [beginnings[-1]]
    while not saves[-1].known and len(saves) < 4 * size // MIB:
        saves.append(reading.save(number))
    with path.open("ab") as file:
        file.write(TURN_OF[agent](number + 1, CALLS[shape]))
    after = reading.save(number + 1)
    extra = memory_mb("VmHWM") - before
    worst = max([*beginnings, *saves, after])
    wrong = reading.wrong or ([] if saves[-1].known and after.known else ["the turn never became known"])
    over = worst.took >= LIMIT_MS or extra >= LIMIT_MB
    print(f"{agent}, {shape}: {size / MIB:,.0f} MiB, {number:,} turns")
    print(f"  {BEGINNINGS} first saves: {medians(beginnings)}")
    print(f"  {len(saves)} saves until the turn is known: {medians(saves)}")
    print(f"  after one more turn {after.took:.1f} ms")
    print(f"  slowest of all {worst.took:.1f} ms, {worst.computed:.1f} of them computing; limit {LIMIT_MS:.0f} ms")
    print(f"  extra memory {extra:.1f} MB; limit {LIMIT_MB:.0f} MB")
    print(
        "  "
        + (f"{len(wrong)} wrong answers, the first: {wrong[0]}" if wrong else "answers right")
        + (", OVER A LIMIT" if over else ""),
        flush=True,
    )
    return 2 if wrong else int(over)


def main() -> int:
    """Write, measure, remove; the worst exit code."""
    if len(sys.argv) > 2:
        agent, shape, place, turns = sys.argv[1:]
        with asyncio.Runner() as runner:
            return measured(agent, shape, Path(place), int(turns), runner)
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 1024) * MIB
    worst = 0
    with tempfile.TemporaryDirectory(prefix="transcripts-") as name:
        if shutil.disk_usage(name).free < 2 * size:
            print(f"{name} has no room for {size / MIB:,.0f} MiB with as much to spare")
            return 2
        print(f"a save waits {DEADLINE_S * 1000:.0f} ms at most, whatever happens")
        for agent in TURN_OF:
            for shape in CALLS:
                root = Path(name) / agent
                number = write(agent, shape, root, size)
                done = subprocess.run([sys.executable, __file__, agent, shape, str(root), str(number)], check=False)
                worst = max(worst, done.returncode)
                shutil.rmtree(root)
    return worst


if __name__ == "__main__":
    sys.exit(main())
