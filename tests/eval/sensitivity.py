"""What becomes of R@5 and all@5 when one weight of the plan is halved or doubled, all else equal.

    python tests/eval/sensitivity.py [SET.json …] [--only WEIGHT …] [--json OUT] [--write-docs]

Sets as for run.py. A share or a factor that may not exceed 1 is doubled to at most 1. A change whose 95 % interval (paired
bootstrap over questions) leaves zero out is in bold.
"""

# ruff: noqa: T201 - a runner prints
from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from benchmark_page import replace_part, table
from comparison import Row, rows_of
from measures import Difference, difference, means
from question_sets import QuestionSet, load_sets
from run import chosen_sets
from subjects import EngineSubject, Ids, RememberingEncoder, engine_subject, has_korean, import_set
from variants import weighted

from keymem_daemon.core.rank.weights import Weights

METRICS: Final = ("R@5", "all@5")
AT_MOST: Final = MappingProxyType({"expansion_floor": 0.95, "not_of_named": 1.0, "not_about_named": 1.0, "not_about": 1.0, "overlap_penalty": 1.0, "lead_beyond": 1.0})
WITHOUT_EFFECT: Final = frozenset({"gate_coverage", "gate_stranger", "gate_growth", "link_use"})  # of recall, not of this order


@dataclass(frozen=True, slots=True)
class Change:
    """One weight at another value."""

    weight: str
    how: str
    value: float
    weights: Weights


@dataclass(frozen=True, slots=True)
class Loaded:
    """A set in an engine, with the rows that the shipped weights give."""

    questions: QuestionSet
    subject: EngineSubject
    ids: Ids
    rows: Sequence[Row]


def changes(only: Sequence[str] = ()) -> Iterator[Change]:
    """Each numeric weight halved and doubled; counts stay whole and at least 1."""
    shipped = Weights()
    for weight in fields(shipped):
        value = getattr(shipped, weight.name)
        if isinstance(value, bool) or weight.name in WITHOUT_EFFECT or (only and weight.name not in only):
            continue
        for how, factor in (("halved", 0.5), ("doubled", 2.0)):
            changed = min(value * factor, AT_MOST.get(weight.name, value * factor))
            exact = max(1, round(changed)) if isinstance(value, int) else changed
            if exact != value:
                yield Change(weight.name, how, exact, replace(shipped, **{weight.name: exact}))


async def measured(sets: Sequence[QuestionSet], only: Sequence[str]) -> dict[Change, dict[str, dict[str, Difference]]]:
    """Per change and set the difference of each metric to the shipped weights."""
    encoder = RememberingEncoder()
    found: dict[Change, dict[str, dict[str, Difference]]] = {}
    async with AsyncExitStack() as stack:
        loaded: list[Loaded] = []
        for questions in sets:
            subject = await stack.enter_async_context(engine_subject(encoder, korean=has_korean([questions])))
            ids = (await import_set(subject, questions)).ids
            rows = await rows_of(subject, questions, ids)
            loaded.append(Loaded(questions, subject, ids, rows))
            print(questions.name, *(f"{metric} {means(rows)[metric]:.4f}" for metric in METRICS), flush=True)
        for change in changes(only):
            found[change] = {}
            for one in loaded:
                with weighted(one.subject, change.weights):
                    rows = await rows_of(one.subject, one.questions, one.ids)
                found[change][one.questions.name] = {m: difference([r[m] for r in rows], [r[m] for r in one.rows]) for m in METRICS}
            told = "  ".join(f"{name} " + " ".join(f"{d.mean:+.4f}" for d in by.values()) for name, by in found[change].items())
            print(f"{change.weight:<20} {change.how:<8} {change.value:<8g} {told}", flush=True)
    return found


def as_table(found: dict[Change, dict[str, dict[str, Difference]]]) -> str:
    """A row a change; R@5 and all@5 of each set together."""
    names = list(next(iter(found.values())))
    shipped = Weights()
    rows = [
        [
            f"`{change.weight}` {getattr(shipped, change.weight):g} → {change.value:g}",
            *(" / ".join(f"**{d.mean:+.3f}**" if d.is_clear else f"{d.mean:+.3f}" for d in by[name].values()) for name in names),
        ]
        for change, by in found.items()
    ]
    return "Change of R@5 / all@5:\n\n" + table(["", *names], rows)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--only", nargs="+", default=(), metavar="WEIGHT", help="only these weights")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    parser.add_argument("--write-docs", action="store_true", help="write the table into docs/benchmarks.md")
    given = parser.parse_args()
    found = asyncio.run(measured(load_sets(chosen_sets(given.sets)), given.only))
    if given.json is not None:
        numbers = [
            {
                "weight": change.weight,
                "value": change.value,
                "sets": {name: {m: [round(d.mean, 4), round(d.low, 4), round(d.high, 4)] for m, d in by.items()} for name, by in sets.items()},
            }
            for change, sets in found.items()
        ]
        given.json.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    if given.write_docs:
        replace_part("sensitivity", as_table(found))


if __name__ == "__main__":
    main()
