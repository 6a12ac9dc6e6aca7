"""What becomes of what a weight is judged by when it is halved or doubled, all else equal.

    python tests/eval/sensitivity.py [SET.json …] [--only WEIGHT …] [--json OUT] [--write-docs]

Sets as for run.py. The ranking's weights are judged by R@5 and all@5, the gate's by the share of R@5 that passes and the mean share over the
groups of questions without an answer that are shown something, ``link_use`` by hit@1 of recall over the questions that were read for
before and over the others (`judged.py`). A share or a factor that may not exceed 1 is doubled to at most 1. A change whose
95 % interval (paired bootstrap over questions) leaves zero out is in bold. `choose.py` chooses.
"""

# ruff: noqa: T201 - a runner prints
from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Final

from benchmark_page import replace_part, table
from judged import FLOOR, MEASURED, Kind, LoadedSet, Setting, kind_of, loaded_sets
from measures import Difference, amount, grouped_difference
from question_sets import QuestionSet, load_sets
from run import chosen_sets

from keymem_daemon.core.rank.weights import Weights

AT_MOST: Final = MappingProxyType({"expansion_floor": 0.95, "of_others": 1.0, "not_about": 1.0, "overlap_penalty": 1.0})
KINDS: Final[tuple[Kind, ...]] = ("ranking", "gate", "use")

Found = dict["Change", dict[str, tuple[Difference, Difference]]]


@dataclass(frozen=True, slots=True)
class Change:
    """One weight at another value."""

    weight: str
    how: str
    value: float
    setting: Setting

    @property
    def kind(self) -> Kind:
        """What it has an effect on."""
        return kind_of(self.weight)


def changes(only: Sequence[str] = ()) -> Iterator[Change]:
    """Each number halved and doubled, the floor of the gate too; counts stay whole and at least 1."""
    shipped = Setting()
    numbers: Mapping[str, float] = {
        **{w.name: value for w in fields(Weights) if not isinstance(value := getattr(shipped.weights, w.name), bool)},
        FLOOR: shipped.floor,
    }
    for name, value in numbers.items():
        if only and name not in only:
            continue
        for how, factor in (("halved", 0.5), ("doubled", 2.0)):
            changed = min(value * factor, AT_MOST.get(name, value * factor))
            exact = max(1, round(changed)) if isinstance(value, int) else changed
            if exact != value:
                yield Change(name, how, exact, shipped.at(name, exact))


async def measured(loaded: Sequence[LoadedSet], wanted: Sequence[Change]) -> Found:
    """Per change and set the differences of the two figures of its kind to the shipped ones."""
    found: Found = {}
    for one in loaded:
        for kind in sorted({change.kind for change in wanted}, key=KINDS.index):
            figures = await one.figures(kind, Setting())
            told = (f"{name} {amount(groups):.4f}" for name, groups in zip(MEASURED[kind], figures, strict=True))
            print(one.questions.name, *told, flush=True)
    for change in wanted:
        found[change] = {one.questions.name: await _differences(one, change) for one in loaded}
        told = (f"{name} " + " ".join(f"{d.mean:+.4f}" for d in by) for name, by in found[change].items())
        print(f"{change.weight:<20} {change.how:<8} {change.value:<8g} {'  '.join(told)}", flush=True)
    return found


async def measured_on(sets: Sequence[QuestionSet], only: Sequence[str]) -> Found:
    """The same over these sets."""
    wanted = list(changes(only))
    async with loaded_sets(sets, frozenset(change.kind for change in wanted)) as loaded:
        return await measured(loaded, wanted)


async def _differences(one: LoadedSet, change: Change) -> tuple[Difference, Difference]:
    now, shipped = await one.figures(change.kind, change.setting), await one.figures(change.kind, Setting())
    return grouped_difference(now[0], shipped[0]), grouped_difference(now[1], shipped[1])


def as_tables(found: Found) -> dict[Kind, str]:
    """A table for each kind that was measured, a row a change; the two figures of each set together."""
    return {kind: _table(kind, part) for kind in KINDS if (part := {c: by for c, by in found.items() if c.kind == kind})}


def _table(kind: Kind, found: Found) -> str:
    names = list(next(iter(found.values())))
    shipped = Setting()
    rows = [
        [
            f"`{change.weight}` {shipped.value(change.weight):g} → {change.value:g}",
            *(" / ".join(f"**{d.mean:+.3f}**" if d.is_clear else f"{d.mean:+.3f}" for d in by[name]) for name in names),
        ]
        for change, by in found.items()
    ]
    return f"Change of {' / '.join(MEASURED[kind])}:\n\n" + table(["", *names], rows)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--only", nargs="+", default=(), metavar="WEIGHT", help="only these weights")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    parser.add_argument("--write-docs", action="store_true", help="write the tables of the kinds that were measured into docs/benchmarks.md")
    given = parser.parse_args()
    found = asyncio.run(measured_on(load_sets(chosen_sets(given.sets)), given.only))
    if given.json is not None:
        numbers = [
            {
                "weight": change.weight,
                "value": change.value,
                "sets": {
                    name: {m: [round(d.mean, 4), round(d.low, 4), round(d.high, 4)] for m, d in zip(MEASURED[change.kind], by, strict=True)}
                    for name, by in sets.items()
                },
            }
            for change, sets in found.items()
        ]
        given.json.write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    if given.write_docs:
        for kind, text in as_tables(found).items():
            replace_part(f"sensitivity of {kind}", text)


if __name__ == "__main__":
    main()
