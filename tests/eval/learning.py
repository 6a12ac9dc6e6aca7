"""What use teaches: thousands of recalls, each followed by reading what the agent was after, and what the store is like afterwards.

    python tests/eval/learning.py [SET.json …] [--cycles 2000] [--json OUT] [--write-docs]

Sets as for run.py, all in one store. Half of the questions are needs that come back, drawn by Zipf's law (1 / rank); the other half are never
asked. A cycle is what an agent does: recall with up to three telling words of the question and the question as context; when
the preview is not what answers, look through the listed keys, first those of the answer, then those of the preview, and take the
first that has the memory among its first five handles; read it through that key. An agent that does not find it reads nothing.
Ten minutes pass between two cycles. Nothing is told to the store but these calls.
"""

# ruff: noqa: T201 - a runner prints
from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmark_page import PAGE, replace_part, table
from comparison import TOP_K
from honesty import gold_ids
from learning_plot import Curve, drawn
from measures import Difference, difference, mean, scored
from question_sets import Question, QuestionSet, Space, load_sets
from run import chosen_sets
from subjects import EngineSubject, Ids, RememberingEncoder, engine_subject, has_korean, import_set

from keymem_daemon.core.model import WEIGHT_MAX, WEIGHT_MIN
from keymem_daemon.index.stopwords import ENGLISH
from keymem_daemon.service.navigate import read_key, read_memory

SEED: Final = 7
TELLING_WORDS: Final = 3
HANDLES: Final = 5
MINUTES_BETWEEN: Final = 10.0
CHECKPOINTS: Final = 10
PICTURE: Final = PAGE.with_name("learning.svg")


@dataclass(frozen=True, slots=True)
class Need:
    """A question of a space, and the memories that answer it."""

    question: Question
    space: Space
    gold: frozenset[str]

    @property
    def words(self) -> str:
        """What an agent would look for: the longest words that are no stop words, as they follow each other."""
        words = [word for word in (w.strip(".,?!\"'()") for w in self.question.query.split()) if word and word.casefold() not in ENGLISH]
        telling = set(sorted(range(len(words)), key=lambda i: (-len(words[i]), i))[:TELLING_WORDS])
        return " ".join(word for i, word in enumerate(words) if i in telling) or self.question.query


@dataclass(slots=True)
class Outcome:
    """Curves over cycles, the paired differences from first to last, and the bounds that must hold."""

    cycles: list[int] = field(default_factory=list)
    repeated_hit: list[list[float]] = field(default_factory=list)
    repeated_r5: list[list[float]] = field(default_factory=list)
    untouched_hit: list[list[float]] = field(default_factory=list)
    untouched_r5: list[list[float]] = field(default_factory=list)
    reads: int = 0
    weights: tuple[float, float] = (1.0, 1.0)
    aliases: int = 0
    most_aliases: int = 0
    keys_learned: int = 0

    def gains(self) -> dict[str, Difference]:
        """The last checkpoint minus the first."""
        curves = {
            "hit@1 of recall, repeated needs": self.repeated_hit,
            "R@5, repeated needs": self.repeated_r5,
            "hit@1 of recall, untouched questions": self.untouched_hit,
            "R@5, untouched questions": self.untouched_r5,
        }
        return {name: difference(curve[-1], curve[0]) for name, curve in curves.items()}

    def first_last(self) -> dict[str, tuple[float, float]]:
        """The means behind `gains`."""
        curves = (self.repeated_hit, self.repeated_r5, self.untouched_hit, self.untouched_r5)
        return {name: (mean(curve[0]), mean(curve[-1])) for name, curve in zip(self.gains(), curves, strict=True)}

    @property
    def bounded(self) -> bool:
        """Whether every weight and every number of aliases is within its limits."""
        return WEIGHT_MIN <= self.weights[0] <= self.weights[1] <= WEIGHT_MAX and self.most_aliases <= 8


def needs_of(sets: Sequence[QuestionSet], ids: Ids) -> list[Need]:
    """All answerable questions."""
    return [Need(q, space, gold_ids(q, space, ids)) for questions in sets for space in questions.spaces for q in space.answerable]


async def cycle(subject: EngineSubject, need: Need) -> bool:
    """Recall, look, read; whether the agent found what it was after."""
    engine, namespace = subject.engine, need.space.namespace
    answer = await subject.recall(need.words, need.question.query, namespace)
    memories = answer["memories"]
    if memories and memories[0]["id"] in need.gold:
        await read_memory(engine, subject.caller(), memories[0]["id"], memories[0]["matched_key"]["key_id"], namespace)
        return True
    listed = [key["key_id"] for key in (*answer["keys"], *(k for m in memories for k in m["connected_keys"]))]
    for key_id in dict.fromkeys(listed):
        handles = (await read_key(engine, subject.caller(), key_id, need.question.query, namespace, HANDLES))["memories"]
        found = next((handle["memory_id"] for handle in handles if handle["memory_id"] in need.gold), None)
        if found is not None:
            await read_memory(engine, subject.caller(), found, key_id, namespace)
            return True
    return False


async def simulated(sets: Sequence[QuestionSet], cycles: int) -> Outcome:
    """The whole simulation."""
    outcome = Outcome()
    chance = random.Random(SEED)  # noqa: S311 - repeatable, no secret
    async with engine_subject(RememberingEncoder(), korean=has_korean(sets)) as subject:
        ids: Ids = {}
        for questions in sets:
            ids |= (await import_set(subject, questions)).ids
        needs = needs_of(sets, ids)
        chance.shuffle(needs)
        asked, untouched = needs[: len(needs) // 2], needs[len(needs) // 2 :]
        sequence = chance.choices(range(len(asked)), [1 / (rank + 1) for rank in range(len(asked))], k=cycles)
        repeated = [asked[i] for i, count in sorted(Counter(sequence).items()) if count > 1]
        before = len(subject.engine.graph.keys)
        print(f"{len(ids)} memories, {len(repeated)} needs that come back, {len(untouched)} questions never asked", flush=True)
        await _look(subject, outcome, 0, repeated, untouched)
        for number, i in enumerate(sequence, start=1):
            subject.clock.at += 60 * MINUTES_BETWEEN
            outcome.reads += await cycle(subject, asked[i])
            if number % max(1, cycles // CHECKPOINTS) == 0:
                await _look(subject, outcome, number, repeated, untouched)
        outcome.keys_learned = len(subject.engine.graph.keys) - before
    return outcome


async def _look(subject: EngineSubject, outcome: Outcome, number: int, repeated: Sequence[Need], untouched: Sequence[Need]) -> None:
    """Measure without teaching: recall without a read changes nothing, and direct retrieval is told not to learn."""
    outcome.cycles.append(number)
    for needs, hits, recalls in (
        (repeated, outcome.repeated_hit, outcome.repeated_r5),
        (untouched, outcome.untouched_hit, outcome.untouched_r5),
    ):
        hits.append([await _hit(subject, need) for need in needs])
        recalls.append(
            [scored(await subject.retrieve(n.question.query, n.space.namespace, TOP_K), n.gold)["R@5"] for n in needs]
        )
    graph = subject.engine.graph
    weights = [link.weight for link in graph.all_links()]
    outcome.weights = (min(weights), max(weights))
    outcome.aliases = sum(len(key.learned) for key in graph.keys.values())
    outcome.most_aliases = max(len(key.learned) for key in graph.keys.values())
    print(
        f"{number:>6} cycles  repeated: hit@1 {mean(outcome.repeated_hit[-1]):.4f} R@5 {mean(outcome.repeated_r5[-1]):.4f}  "
        f"untouched: hit@1 {mean(outcome.untouched_hit[-1]):.4f} R@5 {mean(outcome.untouched_r5[-1]):.4f}  "
        f"weights {outcome.weights[0]:.2f}–{outcome.weights[1]:.2f}  aliases {outcome.aliases} (at most {outcome.most_aliases})",
        flush=True,
    )


async def _hit(subject: EngineSubject, need: Need) -> float:
    answer = await subject.recall(need.words, need.question.query, need.space.namespace)
    return float(bool(answer["memories"]) and answer["memories"][0]["id"] in need.gold)


def as_text(outcome: Outcome, sets: Sequence[QuestionSet]) -> str:
    """The part of the page."""
    rows = [
        [name, f"{first:.3f}", f"{last:.3f}", f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"]
        for (name, (first, last)), gain in zip(outcome.first_last().items(), outcome.gains().values(), strict=True)
    ]
    what = (
        f"{outcome.cycles[-1]:,} recalls over {', '.join(questions.name for questions in sets)} in one store, needs that come back by Zipf's law; "
        f"{outcome.reads:,} of them ended in a read. {len(outcome.repeated_hit[0])} needs came back, {len(outcome.untouched_r5[0])} questions "
        "were never asked."
    )
    bounds = (
        f"Link weights lie within [{outcome.weights[0]:.2f}, {outcome.weights[1]:.2f}]; {outcome.aliases} aliases were learned, at most "
        f"{outcome.most_aliases} by one key, and {outcome.keys_learned} new keys."
    )
    picture = f"![hit@1 and R@5 over the cycles]({PICTURE.name})"
    return "\n\n".join([what, picture, table(["", "before", "after", "change, 95 % interval"], rows), bounds])


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Numbers only."""
    return {
        "cycles": outcome.cycles,
        "curves": {
            "repeated_hit@1": [round(mean(x), 4) for x in outcome.repeated_hit],
            "repeated_R@5": [round(mean(x), 4) for x in outcome.repeated_r5],
            "untouched_hit@1": [round(mean(x), 4) for x in outcome.untouched_hit],
            "untouched_R@5": [round(mean(x), 4) for x in outcome.untouched_r5],
        },
        "gains": {name: [round(d.mean, 4), round(d.low, 4), round(d.high, 4)] for name, d in outcome.gains().items()},
        "reads": outcome.reads,
        "weights": outcome.weights,
        "aliases": outcome.aliases,
        "most_aliases": outcome.most_aliases,
        "keys_learned": outcome.keys_learned,
        "bounded": outcome.bounded,
    }


def curves(outcome: Outcome) -> list[Curve]:
    """What the picture shows."""
    return [
        Curve("hit@1, needs that come back", "#1f6f54", False, [mean(x) for x in outcome.repeated_hit]),
        Curve("R@5, needs that come back", "#1f6f54", True, [mean(x) for x in outcome.repeated_r5]),
        Curve("hit@1, never asked", "#a3541c", False, [mean(x) for x in outcome.untouched_hit]),
        Curve("R@5, never asked", "#a3541c", True, [mean(x) for x in outcome.untouched_r5]),
    ]


def main() -> None:
    """Parse, simulate, print, and write what was asked for. Exits with 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--cycles", type=int, default=2_000)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    parser.add_argument("--write-docs", action="store_true", help="write docs/learning.svg and the text beside it")
    given = parser.parse_args()
    sets = load_sets(chosen_sets(given.sets))
    outcome = asyncio.run(simulated(sets, given.cycles))
    for name, gain in outcome.gains().items():
        print(f"{name}: {gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]")
    if given.json is not None:
        given.json.write_text(json.dumps(as_json(outcome), indent=1) + "\n", "utf-8")
    if given.write_docs:
        PICTURE.write_text(drawn(outcome.cycles, curves(outcome)), "utf-8")
        replace_part("learning", as_text(outcome, sets))
    if not outcome.bounded:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
