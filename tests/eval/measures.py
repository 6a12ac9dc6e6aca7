"""Numbers from rankings: recall at k, all gold at 5, reciprocal rank; intervals by the paired bootstrap; AUROC.

The metrics are those of one question, in [0, 1]; a set's number is their mean over its questions. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

CUTS: Final = (2, 5, 10)
METRICS: Final = ("R@2", "R@5", "R@10", "all@5", "MRR", "hit@1")
RESAMPLES: Final = 4_000
SEED: Final = 20_240_229

Row = Mapping[str, float]


def scored(ranking: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """The metrics of one question with at least one gold memory."""
    wanted = set(gold)
    rank = next((i for i, memory_id in enumerate(ranking) if memory_id in wanted), None)
    return {
        **{f"R@{k}": len(wanted & set(ranking[:k])) / len(wanted) for k in CUTS},
        "all@5": float(wanted <= set(ranking[:5])),
        "MRR": 0.0 if rank is None else 1 / (1 + rank),
        "hit@1": float(rank == 0),
    }


def mean(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def means(rows: Sequence[Row]) -> dict[str, float]:
    """The mean of each metric."""
    return {name: mean([row[name] for row in rows]) for name in rows[0]} if rows else {}


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a − b over the same questions, with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether zero lies outside the interval."""
        return self.low > 0 or self.high < 0


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The paired bootstrap over questions, 4,000 resamples, the same ones for equal lengths."""
    deltas: npt.NDArray[np.float64] = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    if not len(deltas):
        return Difference(0.0, 0.0, 0.0)
    picks = np.random.default_rng(SEED).integers(0, len(deltas), size=(RESAMPLES, len(deltas)))
    low, high = np.percentile(deltas[picks].mean(axis=1), (2.5, 97.5))
    return Difference(float(deltas.mean()), float(low), float(high))


Groups = Sequence[npt.NDArray[np.float64]]
"""Values of one question each, in groups; what they amount to is the sum of the means of the groups."""


def amount(groups: Groups) -> float:
    """The sum of the means of the groups; an empty group counts 0."""
    return sum(float(group.mean()) for group in groups if len(group))


def grouped_difference(a: Groups, b: Groups) -> Difference:
    """`amount` of a − b with the interval of the paired bootstrap, each group drawn for itself."""
    chance = np.random.default_rng(SEED)
    drawn: npt.NDArray[np.float64] = np.zeros(RESAMPLES)
    for one, other in zip(a, b, strict=True):
        deltas = one - other
        if deltas.any():
            drawn += deltas[chance.integers(0, len(deltas), size=(RESAMPLES, len(deltas)))].mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Difference(amount(a) - amount(b), float(low), float(high))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The chance that a positive scores above a negative, ties half; ``None`` without either."""
    if not positive or not negative:
        return None
    above: npt.NDArray[np.float64] = np.asarray(positive, dtype=np.float64)[:, None] - np.asarray(negative, dtype=np.float64)[None, :]
    return float(((above > 0) + 0.5 * (above == 0)).mean())


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of the values lie below; 0 of nothing."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0
