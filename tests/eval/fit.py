"""Learns which of the first five comes first (core/rank/first.py) again from the given sets, and says what it gives where it was not learned.

    python tests/eval/fit.py [SET.json …] [--json OUT]

Sets as for run.py; give it dev sets only. Each question gives two cases: the first five of direct retrieval (unless it is a comparison) and those
of recall, both without what was learned. Learned is a pairwise logistic regression with a ridge: of two memories of one case the one that answers comes
first, each question counting the same, `HEAVY` a set twice. The weight of the logarithm of the score is then made 1.

Printed are the weights learned on all cases, then hit@1 in what was left out: a space at a time of sets with five or more (LoCoMo's
conversations), of the others every fifth question; and one whole set at a time. Differences are to the order without it, with the 95 %
interval of the paired bootstrap.
"""

# ruff: noqa: T201 - a runner prints
from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from honesty import gold_ids
from measures import Difference, difference
from question_sets import QuestionSet, Space, load_sets
from run import chosen_sets
from subjects import EngineSubject, RememberingEncoder, engine_subject, has_korean, import_set

from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.comparison import comparison_in
from keymem_daemon.core.rank.first import FIRST, Look
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.select import selected
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.first import first_looks
from keymem_daemon.service.ranking import ranked
from keymem_daemon.service.signals import FirstStage, Signals, first_stage

FEATURES: Final = ("log(score)", "apart", "alike", "pairs")
RIDGE: Final = 5.0
STEPS: Final = 30
FOLDS: Final = 5
HEAVY: Final = frozenset({"hotpotqa"})
"""Sets that count twice, since they are few questions of a kind that no other set asks: over two hops."""

Values = npt.NDArray[np.float64]
Kind = Literal["direct", "preview"]


@dataclass(frozen=True, slots=True)
class Case:
    """The first memories of one question in their present order: ``features`` of shape (n, 4), and which of them answer."""

    kind: Kind
    questions: str
    fold: int
    features: Values
    right: npt.NDArray[np.bool_]

    def hit(self, weights: Values | None) -> float:
        """Whether the first one answers, by these weights or as it is."""
        if not len(self.right):
            return 0.0
        return float(self.right[0 if weights is None else int(np.argmax(self.features @ weights))])

    def pairs(self) -> Values:
        """What each that answers has more than each that does not, shape (pairs, 4)."""
        return (self.features[self.right][:, None] - self.features[~self.right][None]).reshape(-1, len(FEATURES))


async def cases_of(sets: Sequence[QuestionSet]) -> list[Case]:
    """The cases of all answerable questions, each set in an engine of its own."""
    encoder = RememberingEncoder()
    cases: list[Case] = []
    for questions in sets:
        async with engine_subject(encoder, korean=has_korean([questions])) as subject:
            ids = (await import_set(subject, questions)).ids
            number = 0
            for place, space in enumerate(questions.spaces):
                for question in space.answerable:
                    fold = place if len(questions.spaces) >= FOLDS else number % FOLDS
                    number += 1
                    gold = gold_ids(question, space, ids)
                    for kind, features, first in await _firsts(subject, space, question.query):
                        cases.append(
                            Case(
                                kind,
                                questions.name,
                                fold,
                                features,
                                np.asarray([m in gold for m in first], dtype=np.bool_),
                            )
                        )
    return cases


async def _firsts(subject: EngineSubject, space: Space, query: str) -> list[tuple[Kind, Values, list[str]]]:
    engine = subject.engine
    scope: Scope = subject.caller().scope(space.namespace)
    weights = engine.weights
    found = await ranked(engine, query, scope, 2, weights, engine.now())
    stage = await first_stage(engine, found.signals, scope, replace(weights, lead_gift=0.0))
    preview = [(m, stage.scores[m]) for m in top(stage.scores, FIRST)]
    result: list[tuple[Kind, Values, list[str]]] = [
        ("preview", *await _looked_at(subject, found.signals, stage, preview))
    ]
    if comparison_in(query, found.signals.named) is None:
        chosen = selected(found.scores, found.stage.coverage, FIRST, weights)
        result.append(("direct", *await _looked_at(subject, found.signals, found.stage, chosen)))
    return result


async def _looked_at(
    subject: EngineSubject, signals: Signals, stage: FirstStage, first: Sequence[tuple[str, float]]
) -> tuple[Values, list[str]]:
    looks = await first_looks(subject.engine, signals, stage, [m for m, _ in first], subject.engine.no_deadline())
    # Where nothing was looked at (a single candidate) the order stays.
    nothing = Look(0.0, 0.0, 0)
    known = [(m, score) for m, score in first if score > 0.0 and (m in looks or not looks)]
    rows = [
        (np.log(score), look.apart, look.alike, look.pairs) for m, score in known for look in (looks.get(m, nothing),)
    ]
    return np.asarray(rows, dtype=np.float64).reshape(-1, len(FEATURES)), [m for m, _ in known]


def weights_from(cases: Sequence[Case]) -> Values:
    """The weights, that of the logarithm of the score made 1. Raises `ValueError` where nothing can be told apart."""
    usable = [case for case in cases if case.right.any() and not case.right.all()]
    if not usable:
        raise ValueError("no case with a memory that answers and one that does not")
    spread = np.concatenate([case.features for case in usable]).std(axis=0)
    spread[spread < 1e-9] = 1.0
    rows = np.concatenate([case.pairs() for case in usable]) / spread
    worth = np.concatenate(
        [np.full(n := len(case.pairs()), (2.0 if case.questions in HEAVY else 1.0) / n) for case in usable]
    )
    ridge = np.asarray([1e-3, *[RIDGE] * (len(FEATURES) - 1)])
    weights: Values = np.zeros(len(FEATURES))
    for _ in range(STEPS):
        wrong = 1.0 / (1.0 + np.exp(np.clip(rows @ weights, -40.0, 40.0)))
        slope = ridge * weights - rows.T @ (worth * wrong)
        bend = (rows * (worth * wrong * (1.0 - wrong))[:, None]).T @ rows + np.diag(ridge)
        weights = weights - np.linalg.solve(bend, slope)
    result: Values = weights / spread / (weights[0] / spread[0])
    return result


def left_out(cases: Sequence[Case], group: Callable[[Case], object]) -> dict[tuple[str, Kind], Difference]:
    """hit@1 with weights learned without the group that a case is of, less that without what was learned, by set and kind."""
    weights = {
        key: weights_from([case for case in cases if group(case) != key]) for key in {group(case) for case in cases}
    }
    result: dict[tuple[str, Kind], Difference] = {}
    for name, kind in dict.fromkeys((case.questions, case.kind) for case in cases):
        own = [case for case in cases if (case.questions, case.kind) == (name, kind)]
        result[name, kind] = difference(
            [case.hit(weights[group(case)]) for case in own], [case.hit(None) for case in own]
        )
    return result


async def fitted(sets: Sequence[QuestionSet]) -> dict[str, object]:
    """Learn, print, and return the numbers."""
    cases = await cases_of(sets)
    weights = weights_from(cases)
    shipped = Weights()
    print(
        "shipped ",
        f"apart {shipped.first_apart:.2f}  alike {-shipped.first_alike:.2f}  pairs {shipped.first_pairs:.2f}",
    )
    print("learned ", "  ".join(f"{name} {value:.2f}" for name, value in zip(FEATURES[1:], weights[1:], strict=True)))
    present = np.asarray([1.0, shipped.first_apart, -shipped.first_alike, shipped.first_pairs])
    tables: dict[str, dict[tuple[str, Kind], Difference]] = {
        "a fold left out": left_out(cases, lambda case: case.fold),
        "a set left out": left_out(cases, lambda case: case.questions) if len(sets) > 1 else {},
    }
    for name, kind in dict.fromkeys((case.questions, case.kind) for case in cases):
        own = [case for case in cases if (case.questions, case.kind) == (name, kind)]
        before, after = (float(np.mean([case.hit(w) for case in own])) for w in (None, present))
        others = "  ".join(f"{label} {_told(table[name, kind])}" for label, table in tables.items() if table)
        print(f"{name:<14} {kind:<8} hit@1 {before:.3f}, shipped {after:.3f}  {others}", flush=True)
    return {
        "learned": dict(zip(FEATURES, map(float, weights), strict=True)),
        **{
            label: {f"{name} {kind}": [d.mean, d.low, d.high] for (name, kind), d in table.items()}
            for label, table in tables.items()
        },
    }


def _told(found: Difference) -> str:
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def main() -> None:
    """Parse, learn, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    given = parser.parse_args()
    numbers = asyncio.run(fitted(load_sets(chosen_sets(given.sets))))
    if given.json is not None:
        given.json.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
