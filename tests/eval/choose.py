"""Chooses every tunable weight on the given sets, one after the other, and says how sure that is.

    python tests/eval/choose.py [SET.json …] [--only WEIGHT …] [--rounds 2] [--json OUT] [--check] [--write-docs]

Sets as for run.py; give it dev sets only. For each weight the values of its grid are tried, all else as chosen so far. What is wanted is the
mean over the sets of: R@5 + all@5 + 0.5 · MRR for the ranking; for the gate the share of R@5 that passes less the mean share over
the groups of questions without an answer (coding prompts, another space's, swapped names, unanswerable) that are shown something; for
``link_use`` the mean hit@1 of recall over questions that were read for and others. A value of the gate at which more of its limits is
exceeded than at the present one is none: 95 % of R@5 passes, no coding prompt and at most 5 % of another space's questions are
shown something, AUROC against swapped names 0.92.

A weight moves only when the best value is better than the present one by more than the noise: the 95 % interval of the paired bootstrap
over questions, each set drawn for itself, lies above zero. Rounds are repeated until nothing moves. A weight could go when its simple
value (the one that switches it off) cannot be told from the best. The last column chooses the best value in all spaces of the sets that have
five or more (LoCoMo's conversations) but one, and says what it gains in that one, pooled over all of them.

``--check`` ends with 1 when a shipped value is not among those that cannot be told from the best.
"""

# ruff: noqa: T201 - a runner prints
from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from benchmark_page import replace_part, table
from judged import FLOOR, Judged, Kind, Setting, kind_of, loaded_sets
from measures import Difference, Groups, amount, difference, grouped_difference
from question_sets import QuestionSet, load_sets
from run import chosen_sets

from keymem_daemon.core.rank.weights import Weights

ROUNDS: Final = 2
SPACES_TO_LEAVE_OUT: Final = 5
GRIDS: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(
    {
        "keys": (0.0, 0.15, 0.3, 0.6),
        "sentences": (0.5, 0.7, 1.0, 1.5),
        "of_others": (1.0, 0.9, 0.85, 0.8, 0.7),
        "neighbour": (0.0, 0.1, 0.2, 0.3),
        "lead_gift": (0.0, 0.75, 1.5, 3.0),
        "lead_road": (0.0, 1.5, 3.0, 6.0),
        "expansion": (0.0, 0.3, 0.6, 0.9),
        "expansion_floor": (0.4, 0.5, 0.6, 0.7),
        "bridge": (0.0, 1.0, 1.5, 2.0, 3.0),
        "bridge_hits": (2.0, 3.0, 4.0),
        "bridge_specificity": (0.0, 0.25, 0.5, 1.0),
        "bridge_base": (0.0, 0.025, 0.05, 0.1),
        "bridge_sentence": (0.0, 0.1, 0.2, 0.4),
        "not_about": (1.0, 0.8, 0.6, 0.3),
        "key_in_query": (1.0, 0.6, 0.3, 0.15),
        "overlap_penalty": (0.0, 0.15, 0.25, 0.4),
        FLOOR: (0.27, 0.3, 0.33, 0.36, 0.39),
        "gate_coverage": (0.0, 0.1, 0.15, 0.2, 0.3),
        "gate_sign": (0.0, 0.15, 0.2, 0.25, 0.3),
        "gate_growth": (0.0, 0.008, 0.016, 0.024),
        "link_use": (0.0, 0.25, 0.5, 1.0),
    }
)
SIMPLE: Final[Mapping[str, float]] = MappingProxyType(
    dict.fromkeys(("of_others", "not_about", "key_in_query"), 1.0)
    | {name: 0.0 for name, grid in GRIDS.items() if 0.0 in grid}
)
"""The value that switches a weight off."""
REFERENCE: Final[Mapping[str, float]] = MappingProxyType(
    {
        "keys": 0.3,
        "sentences": 0.7,
        "expansion": 0.6,
        "expansion_floor": 0.5,
        "bridge": 1.5,
        "bridge_hits": 3.0,
        "bridge_base": 0.05,
        "bridge_sentence": 0.2,
        "not_about": 0.6,
        "key_in_query": 0.3,
        "overlap_penalty": 0.2,
        "bridge_specificity": 1.0,
        "link_use": 1.0,
    }
)
"""What the reference design gives, or its formula where it has no weight there: all others are our own."""
BOUNDS: Final = frozenset(
    {
        "neighbour_pool",
        "neighbour_seconds",
        "sentence_pool",
        "compared_whole",
        "lexical_pool",
        "expansion_words",
        "keys_per_phrase",
        "bridge_roads",
        "key_share",
        "key_floor",
        "key_ceiling",
        "selected",
        "mention_links",
        "drop_unknown_dates",
    }
)
"""Not chosen: bounds of the cost, and the switches that the ablations of run.py are for."""
LEARNED: Final = frozenset({"first_apart", "first_alike", "first_pairs"})
"""Not chosen either: fit.py learns them, with recall's previews in view, which are no part of what is wanted here."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What was found for one weight. ``gain``: the best value over the shipped one; ``off``: the simple value over the best.

    ``equal`` are the values that cannot be told from the best; ``left_out`` the values chosen without one space, and what they gain there.
    """

    name: str
    shipped: float
    chosen: float
    best: float
    gain: Difference
    off: Difference | None
    equal: tuple[float, ...]
    refused: tuple[float, ...]
    left_out: tuple[Mapping[float, int], Difference] | None

    @property
    def ships_well(self) -> bool:
        """Whether the shipped value is as good as the best, as far as can be told."""
        return self.shipped in self.equal

    @property
    def could_go(self) -> bool:
        """Whether the weight may be switched off as far as can be told."""
        return SIMPLE.get(self.name) in self.equal and SIMPLE.get(self.name) != self.shipped


async def objective(loaded: Sequence[Judged], kind: Kind, setting: Setting) -> Groups:
    """The mean over the sets, as groups whose amount it is."""
    return [group / len(loaded) for one in loaded for group in await one.objective(kind, setting)]


async def choice(loaded: Sequence[Judged], name: str, present: Setting) -> Choice:
    """Try every value of the grid and the shipped one, all else as in ``present``."""
    kind, shipped, now = kind_of(name), Setting().value(name), present.value(name)
    values = sorted({*GRIDS[name], shipped, now})
    found = {value: await objective(loaded, kind, present.at(name, value)) for value in values}
    refused: list[float] = []
    if kind == "gate":
        broken = {value: sum([await one.broken(present.at(name, value)) for one in loaded]) for value in values}
        refused = [value for value in values if broken[value] > broken[now] + 1e-9]
    allowed = [value for value in values if value not in refused]
    best = max(allowed, key=lambda value: (amount(found[value]), value == now, value == shipped))
    equal = tuple(value for value in allowed if grouped_difference(found[best], found[value]).low <= 0.0)
    simple = SIMPLE.get(name)
    return Choice(
        name,
        shipped,
        now if now in equal else best,
        best,
        grouped_difference(found[best], found[shipped]),
        None if simple is None else grouped_difference(found[simple], found[best]),
        equal,
        tuple(refused),
        await _left_out(loaded, name, present, values) if kind == "ranking" else None,
    )


async def _left_out(
    loaded: Sequence[Judged], name: str, present: Setting, values: Sequence[float]
) -> tuple[Mapping[float, int], Difference] | None:
    chosen: Counter[float] = Counter()
    gained: list[float] = []
    shipped: list[float] = []
    for one in loaded:
        spaces = np.asarray(one.spaces)
        if len(set(one.spaces)) < SPACES_TO_LEAVE_OUT:
            continue
        found = {value: (await one.objective("ranking", present.at(name, value)))[0] for value in values}
        before = found[present.value(name)]
        for space in sorted(set(one.spaces)):
            best = max(values, key=lambda value: (float(found[value][spaces != space].mean()), value == present.value(name)))
            chosen[best] += 1
            gained += found[best][spaces == space].tolist()
            shipped += before[spaces == space].tolist()
    return (dict(sorted(chosen.items())), difference(gained, shipped)) if chosen else None


async def chosen(loaded: Sequence[Judged], names: Sequence[str], rounds: int) -> list[Choice]:
    """A choice for each of these weights, of the last round that was needed."""
    print("not chosen (bounds of cost, switches):", ", ".join(sorted(BOUNDS)), flush=True)
    results: dict[str, Choice] = {}
    setting = Setting()
    for number in range(1, rounds + 1):
        moved = False
        for name in names:
            result = results[name] = await choice(loaded, name, setting)
            moved |= result.chosen != setting.value(name)
            setting = setting.at(name, result.chosen)
            print(f"round {number}  {_line(result)}", flush=True)
        if not moved:
            break
    return [results[name] for name in names]


async def chosen_on(sets: Sequence[QuestionSet], names: Sequence[str], rounds: int) -> list[Choice]:
    """The same over these sets."""
    async with loaded_sets(sets, frozenset(kind_of(name) for name in names)) as loaded:
        return await chosen(loaded, names, rounds)


def _line(found: Choice) -> str:
    grid = " ".join(f"{value:g}" for value in GRIDS[found.name])
    parts = [f"{found.name:<18} of {grid}: shipped {found.shipped:g}, best {found.best:g} {_told(found.gain)}, chosen {found.chosen:g}"]
    if found.refused:
        parts.append("beyond the limits " + " ".join(f"{value:g}" for value in found.refused))
    if found.off is not None:
        parts.append(f"off {_told(found.off)}" + (" (could go)" if found.could_go else ""))
    if found.left_out is not None:
        parts.append(f"left out {_folds(found.left_out[0])} {_told(found.left_out[1])}")
    return "; ".join(parts) + ("" if found.ships_well else "  <- the shipped value is worse")


def _folds(folds: Mapping[float, int]) -> str:
    return ", ".join(f"{value:g} × {count}" for value, count in folds.items())


def _told(found: Difference) -> str:
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def as_table(results: Sequence[Choice]) -> str:
    """A row a weight."""
    rows = [
        [
            f"`{found.name}`",
            f"{REFERENCE[found.name]:g}" if found.name in REFERENCE else "–",
            " ".join(f"({value:g})" if value in found.refused else f"{value:g}" for value in GRIDS[found.name]),
            f"{found.shipped:g}",
            f"{found.chosen:g}",
            f"{found.best:g}: {_told(found.gain)}" if found.best != found.shipped else "the shipped one",
            "–" if found.off is None else _told(found.off),
            "–" if found.left_out is None else f"{_folds(found.left_out[0])}: {_told(found.left_out[1])}",
        ]
        for found in results
    ]
    head = ["", "reference", "grid", "shipped", "chosen", "best over shipped", "off over best", "chosen without one space: gain in it"]
    off = [f"`{found.name}`" for found in results if found.could_go]
    names = ", ".join(f"`{name}`" for name in sorted(BOUNDS))
    return "\n\n".join(
        [
            table(head, rows),
            _origins(results),
            "In brackets: values beyond the limits of the gate. " + (f"Could go, by these sets: {', '.join(off)}." if off else "None could go."),
            f"Not chosen, being bounds of the cost or switches: {names}.",
            "Learned by `tests/eval/fit.py`: " + ", ".join(f"`{name}`" for name in sorted(LEARNED)) + ".",
        ]
    )


def _origins(results: Sequence[Choice]) -> str:
    kept = [found for found in results if REFERENCE.get(found.name) == found.shipped]
    moved = [found for found in results if found.name in REFERENCE and found not in kept]
    ours = len(results) - len(kept) - len(moved)
    return f"Weights: {len(results)}. As the reference design has them: {len(kept)}. Moved: {len(moved)}. Ours: {ours}."


def as_json(results: Sequence[Choice]) -> list[dict[str, Any]]:
    """Numbers only."""
    return [
        {
            "weight": found.name,
            "grid": GRIDS[found.name],
            "shipped": found.shipped,
            "chosen": found.chosen,
            "best": found.best,
            "best_over_shipped": _numbers(found.gain),
            "off_over_best": None if found.off is None else _numbers(found.off),
            "cannot_be_told_from_the_best": found.equal,
            "beyond_the_limits": found.refused,
            "left_out": None if found.left_out is None else [_folds(found.left_out[0]), _numbers(found.left_out[1])],
        }
        for found in results
    ]


def _numbers(found: Difference) -> list[float]:
    return [round(found.mean, 4), round(found.low, 4), round(found.high, 4)]


def unaccounted() -> set[str]:
    """Weights that are neither chosen nor learned nor named as bounds."""
    return {weight.name for weight in fields(Weights)} - {*GRIDS, *BOUNDS, *LEARNED}


def main() -> int:
    """Parse, choose, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET.json")
    parser.add_argument("--only", nargs="+", default=(), choices=tuple(GRIDS), metavar="WEIGHT", help="only these weights")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"at most so many rounds ({ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers there")
    parser.add_argument("--check", action="store_true", help="end with 1 when a shipped value is clearly not the best")
    parser.add_argument("--write-docs", action="store_true", help="write the table into docs/benchmarks.md")
    given = parser.parse_args()
    names = [name for name in GRIDS if not given.only or name in given.only]
    results = asyncio.run(chosen_on(load_sets(chosen_sets(given.sets)), names, given.rounds))
    if given.json is not None:
        given.json.write_text(json.dumps(as_json(results), indent=1) + "\n", "utf-8")
    if given.write_docs:
        replace_part("choice", as_table(results))
    worse = [found.name for found in results if not found.ships_well]
    print("shipped values that are clearly not the best:", ", ".join(worse) or "none")
    return 1 if given.check and worse else 0


if __name__ == "__main__":
    sys.exit(main())
