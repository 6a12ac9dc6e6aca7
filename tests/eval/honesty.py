"""Whether nothing is found where nothing is: foreign questions, swapped names, questions without an answer, coding prompts.

And the price: how many answerable questions keep their preview, and how often the hook fires on them with a right memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from measures import auroc, mean
from question_sets import Question, QuestionSet, Space
from subjects import EngineSubject, Ids, Subject

from keymem_daemon.core.rank.gate import Case
from keymem_daemon.service.gate import gate_case
from keymem_daemon.service.signals import first_stage, read_query

FOREIGN_QUESTIONS: Final = 60
PROMPTS: Final = Path(__file__).with_name("coding_prompts.txt")
HELD_BACK: Final = Path(__file__).with_name("held_back_prompts.txt")

Shares = dict[str, float | int | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is put to a space that may know nothing of it."""

    query: str
    namespace: str


def coding_prompts() -> list[str]:
    """The prompts, one a line."""
    return _lines(PROMPTS)


def held_back_prompts() -> list[str]:
    """More of the kind, written before the gate was judged by any of them and used for no choice."""
    return _lines(HELD_BACK)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


def foreign(questions: QuestionSet) -> list[Asked]:
    """Each space is asked the first sixty questions of the next one."""
    spaces = questions.spaces
    if len(spaces) < 2:
        return []
    return [
        Asked(question.query, space.namespace)
        for space, following in zip(spaces, (*spaces[1:], spaces[0]), strict=True)
        for question in following.questions[:FOREIGN_QUESTIONS]
    ]


def swapped(questions: QuestionSet) -> tuple[list[Asked], list[Asked]]:
    """Questions that name whom their space is about, and the same with the names of the next space's main persons.

    Names that the space itself knows as keys are not swapped in.
    """
    originals, others = [], []
    spaces = questions.spaces
    for space, following in zip(spaces, (*spaces[1:], *spaces[:1]), strict=True):
        known = {key.casefold() for memory in space.memories for key in memory.keys}
        strangers = [name for name in following.main_names() if name.casefold() not in known]
        if following is space or not strangers:
            continue
        table = {name: strangers[i % len(strangers)] for i, name in enumerate(space.main_names())}
        for question in space.answerable:
            other = renamed(question.query, table)
            if other != question.query:
                originals.append(Asked(question.query, space.namespace))
                others.append(Asked(other, space.namespace))
    return originals, others


def renamed(text: str, table: Mapping[str, str]) -> str:
    """The text with whole names replaced, all at once; a Korean name may have a particle behind it."""
    if not table:
        return text
    # A Latin name ends where Latin letters end, so that a Korean particle may follow; Hangul is taken as it stands.
    names = "|".join(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])" for name in sorted(table, key=len, reverse=True))
    return re.sub(names, lambda found: table[found.group()], text)


async def shares_shown(subject: Subject, asked: Sequence[Asked]) -> tuple[float, float]:
    """The shares of these at which recall shows a preview, and at which the hook adds something."""
    shown = [bool((await subject.recall(a.query, a.query, a.namespace)).get("memories")) for a in asked]
    fired = [bool(await subject.inject(a.query, a.namespace)) for a in asked]
    return mean([float(x) for x in shown]), mean([float(x) for x in fired])


async def gate_evidence(subject: EngineSubject, asked: Asked) -> float:
    """What the not-found gate of recall judges by: the best evidence among its candidates."""
    return (await case_of(subject, asked)).evidence(subject.engine.weights)


async def case_of(subject: EngineSubject, asked: Asked) -> Case:
    """What the gate is given when recall is asked this, with its candidates also where a name is enough."""
    engine = subject.engine
    caller, weights = subject.caller(), engine.weights
    scope = caller.scope(asked.namespace)
    signals = await read_query(engine, asked.query, scope, weights)
    stage = await first_stage(engine, signals, scope, weights)
    return gate_case(engine, signals, signals, stage, scope, caller.scope(None), weights, whole=True)


async def hook_evidence(subject: EngineSubject, asked: Asked) -> float:
    """What the hook judges by: the relevance of its best memory, whatever the floor."""
    engine = subject.engine
    before = engine.profile
    engine.profile = replace(before, hook_floor=0.0)
    try:
        found = await subject.inject(asked.query, asked.namespace)
    finally:
        engine.profile = before
    return float(found[0]["relevance"]) if found else 0.0


async def strangers_measured(subject: Subject, questions: QuestionSet) -> Shares:
    """Questions that nothing answers, and prompts that are not about anything stored."""
    result: Shares = {}
    groups = {
        "foreign": foreign(questions),
        "unanswerable": [Asked(q.query, s.namespace) for s in questions.spaces for q in s.questions if not q.gold],
        "coding": [Asked(prompt, space.namespace) for space in questions.spaces for prompt in coding_prompts()],
        "held_back": [Asked(prompt, space.namespace) for space in questions.spaces for prompt in held_back_prompts()],
    }
    originals, others = swapped(questions)
    groups["swapped"] = others
    for name, asked in groups.items():
        result[f"{name}_asked"] = len(asked)
        preview, hook = await shares_shown(subject, asked) if asked else (None, None)
        result[f"{name}_preview"], result[f"{name}_hook"] = preview, hook
    if isinstance(subject, EngineSubject):
        own = [Asked(q.query, s.namespace) for s in questions.spaces for q in s.answerable]
        right = [await gate_evidence(subject, a) for a in own]
        for name in ("foreign", "unanswerable", "coding", "held_back"):
            result[f"{name}_auroc"] = auroc(right, [await gate_evidence(subject, a) for a in groups[name]])
        result["swapped_auroc"] = auroc([await gate_evidence(subject, a) for a in originals], [await gate_evidence(subject, a) for a in others])
        result["swapped_hook_auroc"] = auroc([await hook_evidence(subject, a) for a in originals], [await hook_evidence(subject, a) for a in others])
    return result


async def hook_measured(subject: Subject, questions: QuestionSet, ids: Ids) -> Shares:
    """On how many answerable questions the hook fires, how often its first memory is right, and the share of right ones among all."""
    fired, first, added, right = [], [], 0, 0
    for space in questions.spaces:
        for question in space.answerable:
            gold = gold_ids(question, space, ids)
            memories = [memory["id"] for memory in await subject.inject(question.query, space.namespace)]
            fired.append(float(bool(memories)))
            added += len(memories)
            right += len(gold.intersection(memories))
            if memories:
                first.append(float(memories[0] in gold))
    return {"hook_fires": mean(fired), "hook_first_right": mean(first), "hook_precision": right / added if added else None}


@dataclass(frozen=True, slots=True)
class Retries:
    """Misses of answerable questions: all, those that some key would have mended, and those that the first nearest key mended."""

    misses: int
    recoverable: int
    preview: int
    reachable: int


async def nearest_keys_measured(subject: Subject, questions: QuestionSet, ids: Ids) -> Retries:
    """After a refusal the agent recalls once more with the first of ``nearest_keys``; does it get to a gold memory?

    A miss is recoverable when recalling with one of the gold memories' own keys shows a gold memory. ``preview``: the retry shows one;
    ``reachable``: one hangs on the key that was proposed first, so that reading the key lists it.
    """
    misses = recoverable = preview = reachable = 0
    for space in questions.spaces:
        keys = {memory.ref: memory.keys for memory in space.memories}
        for question in space.answerable:
            gold = gold_ids(question, space, ids)
            answer = await subject.recall(question.query, question.query, space.namespace)
            if answer["status"] != "no_match":
                continue
            misses += 1
            own = [key for ref in sorted(question.gold) for key in keys[ref]]
            if not any([await _shows(subject, key, question.query, space, gold) for key in own]):
                continue
            recoverable += 1
            nearest = [near["concept"] for near in answer["nearest_keys"][:1]]
            preview += any([await _shows(subject, concept, question.query, space, gold) for concept in nearest])
            theirs = {key.casefold() for key in own}
            reachable += any(concept.casefold() in theirs for concept in nearest)
    return Retries(misses, recoverable, preview, reachable)


async def _shows(subject: Subject, query: str, context: str, space: Space, gold: frozenset[str]) -> bool:
    answer = await subject.recall(query, context, space.namespace)
    return any(memory["id"] in gold for memory in answer["memories"])


def gold_ids(question: Question, space: Space, ids: Ids) -> frozenset[str]:
    """The ids of the question's gold memories."""
    return frozenset(ids[(space.namespace, ref)] for ref in question.gold)
