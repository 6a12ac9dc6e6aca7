"""Which of the first five comes first, by what was learned from questions whose answers are known; the others keep their order.

``log(score) + 2.2 · apart − 1.4 · alike + 0.13 · pairs``: how much nearer the memory is to the query than to the middle of the candidates, how
much it resembles its nearest five among those, and how many pairs of the query's words stand side by side in it, too. What every
candidate is near to (the one person whom all of it is about, a way of putting things) speaks for none of them; words that stand
together as they were asked do. `tests/eval/fit.py` learned the three numbers and learns them again; docs/decisions/ranking.md has what they give.

The five scores are handed out anew, so that they still fall. Only the first place is given: with all five put in order the second memory of a
question over two hops, which resembles it little, goes down (HotpotQA's R@2 0.86 → 0.81), and hit@1 is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from keymem_daemon.core.rank.keymatch import LITERAL_CHARS
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.core.text import fold, words

FIRST: Final = 5


@dataclass(frozen=True, slots=True)
class Look:
    """What a second look at a memory shows. ``apart`` and ``alike`` are cosines or their difference, ``pairs`` a count."""

    apart: float
    alike: float
    pairs: int

    def worth(self, weights: Weights) -> float:
        """What is added to the logarithm of the score."""
        return weights.first_apart * self.apart - weights.first_alike * self.alike + weights.first_pairs * self.pairs


def word_pairs(text: str) -> list[str]:
    """The pairs of words that follow each other in the first 2,000 characters of ``text``, folded, with a space between."""
    return list(
        dict.fromkeys(" ".join(pair) for pair in pairwise(found.group() for found in words(fold(text[:LITERAL_CHARS]))))
    )


def pairs_in(pairs: Sequence[str], text: str) -> int:
    """How many of the ``pairs`` stand in the first 2,000 characters of ``text``, as whole words."""
    # Stored texts are composed already, and a whole fold costs ten times that.
    folded = " ".join(text[:LITERAL_CHARS].casefold().split())
    return sum(_stands_in(pair, folded) for pair in pairs)


def _stands_in(pair: str, folded: str) -> bool:
    start = folded.find(pair)
    while start >= 0:
        end = start + len(pair)
        if not (start and folded[start - 1].isalnum()) and not (end < len(folded) and folded[end].isalnum()):
            return True
        start = folded.find(pair, start + 1)
    return False


def with_learned_first(
    chosen: Sequence[tuple[str, float]], looks: Mapping[str, Look], weights: Weights
) -> list[tuple[str, float]]:
    """``chosen`` (memories with scores, best first) led by what is worth most of the first five; as it is where one was not looked at."""
    head = [(m, score) for m, score in chosen[:FIRST] if score > 0.0]
    if not head or any(m not in looks for m, _ in head):
        return list(chosen)
    first = max(head, key=lambda entry: math.log(entry[1]) + looks[entry[0]].worth(weights))[0]
    order = [first, *(m for m, _ in head if m != first)]
    return [*zip(order, (score for _, score in head), strict=True), *chosen[len(head) :]]
