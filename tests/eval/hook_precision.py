"""How quiet the prompt hook is, through the hook's own process and a daemon of its own that holds all sets at once.

    python tests/eval/hook_precision.py SET.json … [--questions N]

Each space is a namespace and has a directory that stands for it. Prompts about coding are asked from a directory that stands for nothing,
so that everything is searched; the questions of another space from the directory of each; each in a session of its own. For comparison
some of a space's own questions are asked, where the hook should speak. Then a session of twenty prompts in each space asks ten of its
questions twice: no memory may come a second time, though it does for whoever asks in a new session.

Prints the figures against their goals and ends with 1 when one is missed.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).resolve().parent.parent / "e2e"))

from honesty import FOREIGN_QUESTIONS, coding_prompts
from hook_process import event_of, notes_within, run_hook
from question_sets import QuestionSet, Space, load_sets
from running_daemon import running
from subjects import daemon_subject, import_set

PROMPTS_A_SESSION: Final = 20
LEAST_SILENT: Final = 0.95
SILENT, SPOKE = "nothing", "injected"
_ID: Final = re.compile(r"- \(id ([^,)]+)")


@dataclass(slots=True)
class Asking:
    """The hook in front of the daemon of ``data``; ``outcomes`` counts what it logged."""

    data: Path
    outcomes: dict[str, int] = field(default_factory=dict)
    _sessions: Iterator[int] = field(default_factory=itertools.count)

    def ids(self, prompt: str, cwd: Path, session: str | None = None) -> list[str]:
        """The memories that a prompt brings, in a new session unless one is named."""
        named = session or f"session {next(self._sessions)}"
        ran = run_hook(self.data, event_of(prompt, cwd=str(cwd), session_id=named))
        outcome = str(ran.outcome)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if outcome not in (SILENT, SPOKE, "command", "short"):
            raise RuntimeError(f"the hook said {outcome!r} of {prompt[:60]!r}")
        return [found[1] for note in notes_within(ran.context) if (found := _ID.match(note))] if ran.output else []


async def loaded(data: Path, sets: list[QuestionSet]) -> int:
    """Save all sets; how many memories there are."""
    async with daemon_subject(data) as subject:
        return sum([len((await import_set(subject, questions)).ids) for questions in sets])


def repeats(asking: Asking, space: Space, cwd: Path) -> tuple[int, int, int]:
    """In one session of twenty prompts: memories shown, those shown again, and how many would come again in new sessions."""
    questions = [question.query for question in space.answerable[: PROMPTS_A_SESSION // 2]]
    shown = [asking.ids(query, cwd, f"the session of {space.namespace}") for query in (*questions, *questions)]
    seen = [memory_id for ids in shown for memory_id in ids]
    again = sum(len(asking.ids(query, cwd)) for query, before in zip(questions, shown, strict=False) if before)
    return len(seen), len(seen) - len(set(seen)), again


def measured(data: Path, places: dict[str, Path], spaces: list[Space], own: int) -> bool:
    """Ask, print, and tell whether every goal is met."""
    asking = Asking(data)
    nowhere = data.parent
    coding = coding_prompts()
    spoke = [prompt for prompt in coding if asking.ids(prompt, nowhere)]
    print(f"prompts about coding: {len(spoke)} of {len(coding)} get something (goal 0)", *spoke[:5], flush=True)

    asked, foreign = 0, []
    for space, following in zip(spaces, (*spaces[1:], *spaces[:1]), strict=True):
        for question in following.questions[:FOREIGN_QUESTIONS] if following is not space else ():
            asked += 1
            if asking.ids(question.query, places[space.namespace]):
                foreign.append(f"{space.namespace}: {question.query}")
    silent = 1 - len(foreign) / asked if asked else 1.0
    print(f"questions of another space: {silent:.1%} of {asked} get nothing (goal {LEAST_SILENT:.0%})", *foreign[:5], flush=True)

    fired = [
        bool(asking.ids(question.query, places[space.namespace]))
        for space in spaces
        for question in space.answerable[:: max(1, len(space.answerable) // own)]
    ]
    print(f"a space's own questions: {sum(fired)} of {len(fired)} get something (no goal; the hook is there)", flush=True)

    found = [repeats(asking, space, places[space.namespace]) for space in spaces]
    shown, twice, again = (sum(column) for column in zip(*found, strict=True))
    print(
        f"sessions of {PROMPTS_A_SESSION} prompts: {shown} memories shown in {len(spaces)}, {twice} of them twice (goal 0); "
        f"asked in new sessions the same questions bring {again} again"
    )
    print("what the hook logged:", json.dumps(asking.outcomes, sort_keys=True))
    return not spoke and silent >= LEAST_SILENT and not twice and any(fired) and again > 0


def main() -> int:
    """Parse, load, map, ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET.json")
    parser.add_argument("--questions", type=int, default=20, metavar="N", help="about so many of a space's own questions (20)")
    given = parser.parse_args()
    sets = load_sets(given.sets)
    spaces = [space for questions in sets for space in questions.spaces]
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        places = {space.namespace: Path(name) / "places" / space.namespace for space in spaces}
        for place in places.values():
            place.mkdir(parents=True)
        with running(data):
            (data / "namespaces.json").write_text(json.dumps({str(place): [space] for space, place in places.items()}), "utf-8")
            print(f"{asyncio.run(loaded(data, sets))} memories in {len(spaces)} namespaces", flush=True)
            return 0 if measured(data, places, spaces, given.questions) else 1


if __name__ == "__main__":
    sys.exit(main())
