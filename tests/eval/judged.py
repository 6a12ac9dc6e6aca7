"""A set in an engine, and what each weight is judged by there: the ranking, the not-found gate, or what use leaves behind.

A weight has an effect on one of the three only. Everything comes as groups of values, one a question (`measures.Groups`), so that two
settings are compared by the paired bootstrap whatever is measured. Choosing and printing are done by whoever asks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
from comparison import Row, rows_of
from honesty import Asked, case_of, coding_prompts, foreign, gold_ids, swapped
from measures import Groups, auroc
from question_sets import QuestionSet
from subjects import EngineSubject, Ids, RememberingEncoder, engine_subject, has_korean, import_set
from variants import weighted

from keymem_daemon.core.profiles import PROFILES
from keymem_daemon.core.rank.gate import Case
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.navigate import read_memory

Kind = Literal["ranking", "gate", "use"]
Values = npt.NDArray[np.float64]

FLOOR: Final = "gate_floor"
GATE: Final = frozenset({FLOOR, "gate_coverage", "gate_sign", "gate_growth"})
USE: Final = frozenset({"link_use"})
READS: Final = 5
MEASURED: Final[Mapping[Kind, tuple[str, str]]] = MappingProxyType(
    {"ranking": ("R@5", "all@5"), "gate": ("R@5 that passes", "strangers shown something"), "use": ("hit@1, read before", "hit@1, never read")}
)
"""The two figures of each kind."""

KEPT_AT_LEAST: Final = 0.95
FOREIGN_AT_MOST: Final = 0.05
SWAPPED_AUROC_AT_LEAST: Final = 0.92


def kind_of(weight: str) -> Kind:
    """What a weight has an effect on."""
    return "gate" if weight in GATE else "use" if weight in USE else "ranking"


@dataclass(frozen=True, slots=True)
class Setting:
    """Weights, and the floor of the gate, which is part of a profile."""

    weights: Weights = field(default_factory=Weights)
    floor: float = PROFILES["builtin"].gate_floor

    def value(self, name: str) -> float:
        """The value that this setting gives to a weight."""
        return self.floor if name == FLOOR else float(getattr(self.weights, name))

    def at(self, name: str, value: float) -> Setting:
        """With one weight at another value; counts stay whole."""
        if name == FLOOR:
            return replace(self, floor=value)
        exact: Any = round(value) if isinstance(getattr(self.weights, name), int) else value
        return replace(self, weights=replace(self.weights, **{name: exact}))


@dataclass(frozen=True, slots=True)
class Cases:
    """What the gate is given for each question that something answers, and for each group of those that nothing does."""

    own: Sequence[Case]
    strangers: Mapping[str, Sequence[Case]]
    originals: Sequence[Case]


class Judged(Protocol):
    """Something that says how good a setting is."""

    @property
    def spaces(self) -> list[int]:
        """Per answerable question the number of its space."""
        ...

    async def objective(self, kind: Kind, setting: Setting) -> Groups:
        """What a choice wants much of."""
        ...

    async def broken(self, setting: Setting) -> float:
        """By how much the limits of the gate are exceeded, all together; 0 when they hold."""
        ...


@dataclass(slots=True)
class LoadedSet:
    """A set in an engine. ``spaces`` says of each answerable question which space it is asked of."""

    questions: QuestionSet
    subject: EngineSubject
    ids: Ids
    used: EngineSubject | None = None
    cases: Cases | None = None
    rows: dict[Weights, list[Row]] = field(default_factory=dict)

    @property
    def spaces(self) -> list[int]:
        """Per answerable question the number of its space."""
        return [number for number, space in enumerate(self.questions.spaces) for _ in space.answerable]

    async def ranking(self, setting: Setting) -> list[Row]:
        """The metrics of each answerable question."""
        if setting.weights not in self.rows:
            with weighted(self.subject, setting.weights):
                self.rows[setting.weights] = await rows_of(self.subject, self.questions, self.ids)
        return self.rows[setting.weights]

    async def figures(self, kind: Kind, setting: Setting) -> tuple[Groups, Groups]:
        """The two figures of a kind, as `MEASURED` names them."""
        if kind == "ranking":
            rows = await self.ranking(setting)
            return [_values([row["R@5"] for row in rows])], [_values([row["all@5"] for row in rows])]
        if kind == "gate":
            return await self._gate(setting)
        return await self._use(setting)

    async def objective(self, kind: Kind, setting: Setting) -> Groups:
        """What a choice wants much of.

        Ranking: R@5 + all@5 + 0.5 · MRR. Gate: the share of R@5 that passes, less the mean share over the groups of questions without an
        answer that are shown something. Use: the mean of hit@1 over the questions that were read for and the others.
        """
        if kind == "ranking":
            return [_values([row["R@5"] + row["all@5"] + 0.5 * row["MRR"] for row in await self.ranking(setting)])]
        first, second = await self.figures(kind, setting)
        return [*first, *(-group for group in second)] if kind == "gate" else [group / 2 for group in (*first, *second)]

    async def broken(self, setting: Setting) -> float:
        """By how much the limits of the gate are exceeded, all together; 0 when they hold."""
        kept, shown = await self._gate(setting)
        cases = await self._cases()
        share = {name: len(shown) * float(group.mean()) for name, group in zip(cases.strangers, shown, strict=True)}
        weights = setting.weights
        area = auroc(*([case.evidence(weights) for case in group] for group in (cases.originals, cases.strangers.get("swapped", ()))))
        return (
            max(0.0, KEPT_AT_LEAST - float(kept[0].mean()))
            + share["coding"]
            + max(0.0, share.get("foreign", 0.0) - FOREIGN_AT_MOST)
            + max(0.0, SWAPPED_AUROC_AT_LEAST - (1.0 if area is None else area))
        )

    async def _gate(self, setting: Setting) -> tuple[Groups, Groups]:
        cases = await self._cases()
        found = _values([row["R@5"] for row in await self.ranking(Setting())])
        kept = _passed(cases.own, setting) * found / max(1e-9, float(found.mean()))
        return [kept], [_passed(group, setting) / len(cases.strangers) for group in cases.strangers.values()]

    async def _cases(self) -> Cases:
        if self.cases is None:
            questions = self.questions
            originals, others = swapped(questions)
            groups = {
                "coding": [Asked(prompt, space.namespace) for space in questions.spaces for prompt in coding_prompts()],
                "foreign": foreign(questions),
                "swapped": others,
                "unanswerable": [Asked(q.query, space.namespace) for space in questions.spaces for q in space.questions if not q.gold],
            }
            self.cases = Cases(
                [await case_of(self.subject, Asked(q.query, space.namespace)) for space in questions.spaces for q in space.answerable],
                {name: [await case_of(self.subject, asked) for asked in group] for name, group in groups.items() if group},
                [await case_of(self.subject, asked) for asked in originals],
            )
        return self.cases

    async def _use(self, setting: Setting) -> tuple[Groups, Groups]:
        if self.used is None:
            raise RuntimeError("loaded without use")
        hits: list[float] = []
        with weighted(self.used, setting.weights):
            for space in self.questions.spaces:
                for question in space.answerable:
                    memories = (await self.used.recall(question.query, question.query, space.namespace))["memories"]
                    hits.append(float(bool(memories) and memories[0]["id"] in gold_ids(question, space, self.ids)))
        return [_values(hits[::2])], [_values(hits[1::2])]


@asynccontextmanager
async def loaded_sets(sets: Sequence[QuestionSet], kinds: frozenset[Kind]) -> AsyncIterator[list[LoadedSet]]:
    """The sets, each in an engine of its own; for ``use`` in another one too, where every second question was read for."""
    encoder = RememberingEncoder()
    async with AsyncExitStack() as stack:
        loaded: list[LoadedSet] = []
        for questions in sets:
            korean = has_korean([questions])
            subject = await stack.enter_async_context(engine_subject(encoder, korean=korean))
            one = LoadedSet(questions, subject, (await import_set(subject, questions)).ids)
            if "use" in kinds:
                one.used = await stack.enter_async_context(engine_subject(encoder, korean=korean))
                if (await import_set(one.used, questions)).ids != one.ids:
                    raise RuntimeError(f"{questions.name}: two imports of one set differ")
                await _read_for_every_second(one.used, questions, one.ids)
            loaded.append(one)
        yield loaded


async def _read_for_every_second(subject: EngineSubject, questions: QuestionSet, ids: Ids) -> None:
    """Read what answers every second question, five times each, through the key that recall led to, else the memory's first."""
    asked = [(question, space) for space in questions.spaces for question in space.answerable][::2]
    for question, space in asked:
        gold = gold_ids(question, space, ids)
        memories = (await subject.recall(question.query, question.query, space.namespace))["memories"]
        if memories and memories[0]["id"] in gold:
            memory_id, key_id = memories[0]["id"], memories[0]["matched_key"]["key_id"]
        else:
            memory_id = min(gold)
            key_id = subject.engine.graph.links_of(memory_id)[0].key_id
        for _ in range(READS):
            await read_memory(subject.engine, subject.caller(), memory_id, key_id, space.namespace)


def _passed(cases: Sequence[Case], setting: Setting) -> Values:
    return _values([float(case.passes(setting.floor, setting.weights)) for case in cases])


def _values(values: Sequence[float]) -> Values:
    return np.asarray(values, dtype=np.float64)
