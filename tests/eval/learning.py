"""What use teaches: thousands of recalls, each followed by reading what the agent was after, and what the store is like afterwards.

    python tests/eval/learning.py [SET.json …] [--cycles 2000] [--json OUT] [--write-docs] [--alone]

Sets as for run.py, all in one store. Half of the questions come back, the other half are never asked, in no words. Every second cycle
an agent comes with a question, the others with a short query; `needs.py` says how they are made. Within its kind a need is drawn by
Zipf's law (1 / rank).

A cycle is what an agent does: recall; when the preview is not what answers, look through the listed keys (after a miss those that
are offered instead), first those of the answer, then those of the preview, and take the first that has the memory among its first five
handles; read it through that key. An agent that does not find it reads nothing. Ten minutes pass between two cycles. Nothing is told to
the store but these calls. The same cycles are played with everything learned, with weights alone (``KEYMEM_AUTOKEY=false``), with
vocabulary alone (the weight that a read gave is taken back), and not at all: then only the time passes. ``--alone`` plays the first.
"""

# ruff: noqa: T201 - a runner prints
from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmark_page import PAGE, replace_part, table
from comparison import TOP_K
from learning_plot import Curve, drawn
from measures import Difference, difference, mean, scored
from needs import KINDS, Frequencies, Kind, Need, questions_of, short_needs, wordings
from question_sets import QuestionSet, load_sets
from run import HOME, chosen_sets
from subjects import EngineSubject, Ids, RememberingEncoder, engine_subject, has_korean, import_set

from keymem_daemon.core.changes import LinkSet
from keymem_daemon.core.decide.learn import CANDIDATES_PER_KEY
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import WEIGHT_MAX, WEIGHT_MIN
from keymem_daemon.core.text import fold
from keymem_daemon.service.navigate import read_key, read_memory

SEED: Final = 7
HANDLES: Final = 5
MINUTES_BETWEEN: Final = 10.0
CHECKPOINTS: Final = 8
SAMPLED: Final = 3
"""Of the short needs that are never asked every third is measured."""
PICTURE: Final = PAGE.with_name("learning.svg")
TURNS: Final[tuple[Kind, ...]] = ("question", "rarest", "question", "other words", "question", "wording")
"""The kinds of need, in turn."""

REPEATED: Final = "hit@1, questions that come back"
REPEATED_R5: Final = "R@5, questions that come back"
SHORT: Final = "hit@1, short needs that come back"
UNTOUCHED: Final = "hit@1, questions never asked"
UNTOUCHED_R5: Final = "R@5, questions never asked"
UNTOUCHED_SHORT: Final = "hit@1, short needs never asked"
MEASURES: Final = (REPEATED, REPEATED_R5, SHORT, UNTOUCHED, UNTOUCHED_R5, UNTOUCHED_SHORT)


@dataclass(frozen=True, slots=True)
class Teaching:
    """What the store may learn."""

    name: str
    weights: bool
    vocabulary: bool


EVERYTHING: Final = Teaching("both", weights=True, vocabulary=True)
NOTHING: Final = Teaching("nothing", weights=False, vocabulary=False)
TEACHINGS: Final = (NOTHING, Teaching("weights", weights=True, vocabulary=False), Teaching("vocabulary", weights=False, vocabulary=True), EVERYTHING)


@dataclass(frozen=True, slots=True)
class Script:
    """What is asked in which order, what of it more than once, and what never."""

    sequence: tuple[Need, ...]
    repeated: tuple[Need, ...]
    short: tuple[Need, ...]
    untouched: tuple[Need, ...]
    untouched_short: tuple[Need, ...]


Planned = Callable[[Ids, EngineSubject], Script]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest weight, and what of vocabulary there is: in all, and at most by one key."""

    weights: tuple[float, float]
    aliases: int
    most_aliases: int
    candidates: int
    most_candidates: int

    @property
    def hold(self) -> bool:
        """Whether nothing is beyond its limit."""
        low, high = self.weights
        return WEIGHT_MIN <= low <= high <= WEIGHT_MAX and self.most_aliases <= 8 and self.most_candidates <= CANDIDATES_PER_KEY

    @classmethod
    def of(cls, graph: Graph) -> Bounds:
        """Those of a store."""
        weights = [link.weight for link in graph.all_links()]
        aliases = [len(key.learned) for key in graph.keys.values()]
        candidates = [len(key.candidates) for key in graph.keys.values()]
        return cls((min(weights), max(weights)), sum(aliases), max(aliases), sum(candidates), max(candidates))


@dataclass(slots=True)
class Outcome:
    """Per measure a value for each need at each checkpoint; what was learned; and the bounds that must hold."""

    script: Script
    cycles: list[int] = field(default_factory=list)
    values: dict[str, list[list[float]]] = field(default_factory=lambda: {name: [] for name in MEASURES})
    bounds: list[Bounds] = field(default_factory=list)
    reads: int = 0
    keys_learned: int = 0
    taught: list[str] = field(default_factory=list)
    """What each short need that came back has become: "alias", "key" or "not learned"."""

    def last(self, name: str) -> list[float]:
        """A measure after all cycles."""
        return self.values[name][-1]

    def gain(self, name: str) -> Difference:
        """The last checkpoint minus the first."""
        return difference(self.values[name][-1], self.values[name][0])

    @property
    def bounded(self) -> bool:
        """Whether the bounds held whenever they were looked at."""
        return all(bounds.hold for bounds in self.bounds)

    def of_short(self, what: str) -> list[int]:
        """Places of the short needs that came back which are of this kind, or became this ("alias", "key", "not learned")."""
        return [i for i, need in enumerate(self.script.short) if what in {need.kind, self.taught[i]}]

    def change(self, name: str, places: Sequence[int]) -> tuple[float, float, Difference]:
        """The means before and after of some of a measure's needs, and the difference."""
        first, last = ([row[i] for i in places] for row in (self.values[name][0], self.values[name][-1]))
        return mean(first), mean(last), difference(last, first)


def zipf(sets: Sequence[QuestionSet], cycles: int, ids: Ids, subject: EngineSubject) -> Script:
    """The needs of the sets, divided and drawn: the same for the same sets, whatever the store learns."""
    chance = random.Random(SEED)  # noqa: S311 - repeatable, no secret
    asked: dict[Kind, list[Need]] = {kind: [] for kind in KINDS}
    untouched: list[Need] = []
    untouched_short: list[Need] = []
    found = [(space, place, *pair) for questions in sets for space in questions.spaces for place, pair in enumerate(questions_of(space, ids))]
    chance.shuffle(found)
    for number, (space, place, question, need) in enumerate(found):
        short = short_needs(space, question, place, need, subject.engine.catalog.tokenizer, _frequencies(subject, space.namespace))
        if number < len(found) // 2:
            for one in (need, *short):
                asked[one.kind].append(one)
        else:
            untouched.append(need)
            untouched_short.extend(short)
    asked["wording"] = wordings(sets, ids)
    chance.shuffle(asked["wording"])
    turns = [kind for kind in TURNS if asked[kind]]
    sequence = tuple(
        chance.choices(asked[kind], [1 / rank for rank in range(1, len(asked[kind]) + 1)])[0]
        for kind in (turns[number % len(turns)] for number in range(cycles))
    )
    again = [need for need, count in Counter(sequence).items() if count > 1]
    again.sort(key=lambda need: (KINDS.index(need.kind), asked[need.kind].index(need)))
    return Script(
        sequence,
        tuple(need for need in again if need.kind == "question"),
        tuple(need for need in again if need.kind != "question"),
        tuple(untouched),
        tuple(untouched_short[::SAMPLED]),
    )


def drill(sets: Sequence[QuestionSet], ids: Ids, subject: EngineSubject) -> Script:
    """Every wording, as often as it takes to learn one; questions are never asked."""
    words = tuple(wordings(sets, ids))
    untouched = tuple(need for questions in sets for space in questions.spaces for _, need in questions_of(space, ids))
    return Script(words * subject.engine.learning.promote_n, (), words, untouched, ())


def _frequencies(subject: EngineSubject, namespace: str) -> Frequencies:
    lexical, scope = subject.engine.catalog.lexical, subject.caller().scope(namespace)
    return lambda terms: {term: found.df for term, found in lexical.term_statistics(terms, scope).items()}


async def cycle(subject: EngineSubject, need: Need, teaching: Teaching) -> bool:
    """Recall, look, read; whether the agent found what it was after."""
    engine, namespace = subject.engine, need.namespace
    answer = await subject.recall(need.words, need.context, namespace)
    memories = answer["memories"]
    if memories and memories[0]["id"] in need.gold:
        await _read(subject, memories[0]["id"], memories[0]["matched_key"]["key_id"], namespace, teaching)
        return True
    views = (*answer["keys"], *answer.get("nearest_keys", ()), *(key for memory in memories for key in memory["connected_keys"]))
    for key_id in dict.fromkeys(view["key_id"] for view in views):
        handles = (await read_key(engine, subject.caller(), key_id, need.utterance, namespace, HANDLES))["memories"]
        found = next((handle["memory_id"] for handle in handles if handle["memory_id"] in need.gold), None)
        if found is not None:
            await _read(subject, found, key_id, namespace, teaching)
            return True
    return False


async def _read(subject: EngineSubject, memory_id: str, key_id: str, namespace: str, teaching: Teaching) -> None:
    engine = subject.engine
    before = engine.graph.link(key_id, memory_id)
    await read_memory(engine, subject.caller(), memory_id, key_id, namespace)

    def take_back(plan: Plan) -> None:
        link = plan.graph.link(key_id, memory_id)
        if before is not None and link is not None:
            plan.make(LinkSet(replace(link, weight=before.weight)))

    if not teaching.weights:
        engine.soften(None, take_back)


async def simulated(
    sets: Sequence[QuestionSet],
    plan: Planned,
    teaching: Teaching,
    encoder: RememberingEncoder,
    checkpoints: int = CHECKPOINTS,
    before: Outcome | None = None,
) -> Outcome:
    """The whole simulation. ``before``, of the same sets and plan, began with an equal store: it need not be measured again."""
    async with engine_subject(encoder, korean=has_korean(sets)) as subject:
        ids: Ids = {}
        for questions in sets:
            ids |= (await import_set(subject, questions)).ids
        script = plan(ids, subject)
        outcome, cycles = Outcome(script), len(script.sequence)
        graph = subject.engine.graph
        subject.engine.settings = replace(subject.engine.settings, autokey=teaching.vocabulary)
        known = {fold(surface) for key in graph.keys.values() for surface in key.surfaces}
        keys = len(graph.keys)
        print(
            f"learning {teaching.name}: {len(ids)} memories, {len(script.repeated)} questions and {len(script.short)} short needs come back, "
            f"{len(script.untouched)} questions and {len(script.untouched_short)} short needs are never asked",
            flush=True,
        )
        if before is None:
            await _look(subject, outcome, 0)
        else:
            outcome.cycles, outcome.bounds = [0], before.bounds[:1]
            outcome.values = {name: rows[:1] for name, rows in before.values.items()}
        for number, need in enumerate(script.sequence, start=1):
            subject.clock.at += 60 * MINUTES_BETWEEN
            if teaching != NOTHING:
                outcome.reads += await cycle(subject, need, teaching)
            if number % max(1, cycles // checkpoints) == 0:
                await _look(subject, outcome, number)
        outcome.keys_learned = len(graph.keys) - keys
        outcome.taught = [_become(subject, need, known) for need in script.short]
    return outcome


def _become(subject: EngineSubject, need: Need, known: set[str]) -> str:
    """What use made of the need's words; ``known`` are the surfaces that were there before."""
    graph, words = subject.engine.graph, fold(need.words)
    key = graph.key_of_surface(words)
    if key is None or words in known or not graph.memory_count(key.id, subject.caller().scope(need.namespace)):
        return "not learned"
    return "key" if fold(key.concept) == words else "alias"


async def _look(subject: EngineSubject, outcome: Outcome, number: int) -> None:
    """Measure without teaching: recall without a read changes nothing, and direct retrieval is told not to learn."""
    script, values = outcome.script, outcome.values
    outcome.cycles.append(number)
    for name, needs in ((REPEATED, script.repeated), (SHORT, script.short), (UNTOUCHED, script.untouched), (UNTOUCHED_SHORT, script.untouched_short)):
        values[name].append([await _hit(subject, need) for need in needs])
    for name, needs in ((REPEATED_R5, script.repeated), (UNTOUCHED_R5, script.untouched)):
        values[name].append([scored(await subject.retrieve(need.utterance, need.namespace, TOP_K), need.gold)["R@5"] for need in needs])
    bounds = Bounds.of(subject.engine.graph)
    outcome.bounds.append(bounds)
    means = "  ".join(f"{name} {mean(outcome.last(name)):.4f}" for name in MEASURES)
    low, high = bounds.weights
    print(f"{number:>6} cycles  {means}  weights {low:.2f}–{high:.2f}  aliases {bounds.aliases} (at most {bounds.most_aliases})", flush=True)


async def _hit(subject: EngineSubject, need: Need) -> float:
    answer = await subject.recall(need.words, need.context, need.namespace)
    return float(bool(answer["memories"]) and answer["memories"][0]["id"] in need.gold)


def change_row(name: str, first: float, last: float, gain: Difference, count: int) -> list[str]:
    """A line of a table."""
    return [name, str(count), f"{first:.3f}", f"{last:.3f}", f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"]


HEADS: Final = ("", "needs", "before", "after", "change, 95 % interval")


def as_text(outcomes: Sequence[Outcome], drilled: Outcome | None, sets: Sequence[QuestionSet]) -> str:
    """The part of the page; what everything taught comes last of the outcomes."""
    outcome = outcomes[-1]
    script = outcome.script
    rows = [change_row(name, *outcome.change(name, range(len(outcome.last(name)))), len(outcome.last(name))) for name in MEASURES]
    what = (
        f"{outcome.cycles[-1]:,} recalls over {', '.join(questions.name for questions in sets)} in one store, drawn by Zipf's law from half of the "
        "questions and, every second one, from short queries: the rarest one to three words of a question, its words that no answer has, or other "
        f"wordings of home's memories, translations among them. {outcome.reads:,} recalls ended in a read. {len(script.repeated)} questions and "
        f"{len(script.short)} short needs came back; {len(script.untouched)} questions were never asked in any words."
    )
    sections = [
        what,
        f"![hit@1 and R@5 over the cycles]({PICTURE.name})",
        table(HEADS, rows),
        "hit@1 of the short needs that came back, by what their words have become and by kind:",
        split(outcome),
        _bounds(outcome),
    ]
    if len(outcomes) > 1:
        sections += ["After the same cycles, by what the store may learn from them:", ablation(outcomes)]
    if drilled is not None:
        _, _, untouched = drilled.change(UNTOUCHED, range(len(drilled.script.untouched)))
        drawn_evenly = (
            f"Each of the {len(drilled.script.short)} wordings as often as it takes to learn one, over home alone. hit@1 of home's questions, none "
            f"of which was asked, changed by {untouched.mean:+.3f} [{untouched.low:+.3f}, {untouched.high:+.3f}]:"
        )
        sections += [drawn_evenly, split(drilled)]
    return "\n\n".join(sections)


def _bounds(outcome: Outcome) -> str:
    bounds = outcome.bounds[-1]
    return (
        f"Link weights lie within [{bounds.weights[0]:.2f}, {bounds.weights[1]:.2f}] (limits 0.1 and 3). Learned in all: {outcome.keys_learned} keys and "
        f"{bounds.aliases} aliases, at most {bounds.most_aliases} by one key (limit 8). Counted but not learned yet: {bounds.candidates} queries, at most "
        f"{bounds.most_candidates} by one key (limit {CANDIDATES_PER_KEY})."
    )


def split(outcome: Outcome) -> str:
    """hit@1 of the short needs, by what became of them and by kind."""
    parts = {"a key of its own": "key", "an alias": "alias", "not learned": "not learned", **{f"kind: {kind}": kind for kind in KINDS[1:]}}
    places = {name: outcome.of_short(what) for name, what in parts.items()}
    return table(HEADS, [change_row(name, *outcome.change(SHORT, found), len(found)) for name, found in places.items() if found])


def ablation(outcomes: Sequence[Outcome]) -> str:
    """Every measure after all cycles, by what could be learned."""
    rows = [[name, *(f"{mean(outcome.last(name)):.3f}" for outcome in outcomes)] for name in MEASURES]
    learned = [i for what in ("key", "alias") for i in outcomes[-1].of_short(what)]
    rows.append([f"of these the {len(learned)} learned with both", *(f"{mean([outcome.last(SHORT)[i] for i in learned]):.3f}" for outcome in outcomes)])
    rows.insert(MEASURES.index(SHORT) + 1, rows.pop())
    return table(["", *(teaching.name for teaching in TEACHINGS)], rows)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Numbers only."""
    bounds = outcome.bounds[-1]
    return {
        "cycles": outcome.cycles,
        "curves": {name: [round(mean(row), 4) for row in outcome.values[name]] for name in MEASURES},
        "gains": {name: [round(d.mean, 4), round(d.low, 4), round(d.high, 4)] for name in MEASURES for d in [outcome.gain(name)]},
        "reads": outcome.reads,
        "weights": bounds.weights,
        "aliases": bounds.aliases,
        "most_aliases": bounds.most_aliases,
        "candidates": bounds.candidates,
        "most_candidates": bounds.most_candidates,
        "keys_learned": outcome.keys_learned,
        "taught": [[need.words, became] for need, became in zip(outcome.script.short, outcome.taught, strict=True)],
        "bounded": outcome.bounded,
    }


def curves(outcome: Outcome) -> list[Curve]:
    """What the picture shows."""
    colours = {"green": "#1f6f54", "blue": "#2c5aa0", "brown": "#a3541c"}
    lines = (
        (REPEATED, "green", False), (SHORT, "blue", False), (UNTOUCHED, "brown", False), (UNTOUCHED_SHORT, "blue", True), (UNTOUCHED_R5, "brown", True),
    )  # fmt: skip
    return [Curve(name, colours[colour], dashed, [mean(row) for row in outcome.values[name]]) for name, colour, dashed in lines]


async def played(sets: Sequence[QuestionSet], cycles: int, encoder: RememberingEncoder, *, alone: bool) -> list[Outcome]:
    """One outcome for each way of learning, that of everything last; the ablations are looked at before and after only."""
    outcomes: list[Outcome] = []
    plan = partial(zipf, sets, cycles)
    for way in (EVERYTHING,) if alone else TEACHINGS:
        before = outcomes[0] if outcomes else None
        outcomes.append(await simulated(sets, plan, way, encoder, CHECKPOINTS if way == EVERYTHING else 1, before))
    return outcomes


def main() -> None:
    """Parse, simulate, print, and write what was asked for. Exits with 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--cycles", type=int, default=2_000)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    parser.add_argument("--write-docs", action="store_true", help="write docs/learning.svg and the text beside it")
    parser.add_argument("--alone", action="store_true", help="without the ablations")
    given = parser.parse_args()
    sets = load_sets(chosen_sets(given.sets))
    encoder = RememberingEncoder()
    outcomes = asyncio.run(played(sets, given.cycles, encoder, alone=given.alone))
    home = [questions for questions in sets if questions.name == HOME.stem]
    drilled = asyncio.run(simulated(home, partial(drill, home), EVERYTHING, encoder, 1)) if home else None
    text = as_text(outcomes, drilled, sets)
    print(text)
    if given.json is not None:
        given.json.write_text(json.dumps([as_json(outcome) for outcome in outcomes], indent=1, ensure_ascii=False) + "\n", "utf-8")
    if given.write_docs:
        PICTURE.write_text(drawn(outcomes[-1].cycles, curves(outcomes[-1])), "utf-8")
        replace_part("learning", text)
    if not all(outcome.bounded for outcome in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
