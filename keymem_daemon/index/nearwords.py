"""Words of the vocabulary near the words of a query, remembered until the vocabulary changes: people ask in the same words.

A cache over `WordVectors` and nothing else: what it answers is what the vectors would, at any moment and for any scope.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from keymem_daemon.index.vectors import Matrix, WordVectors

Near = list[tuple[str, float]]

WORDS_KEPT: Final = 1_000
NEAR_KEPT: Final = 128


class NearWords:
    """The nearest words of each of the latest 1,000 words that were asked for, 128 at most of each."""

    def __init__(self, words: WordVectors) -> None:
        self._words = words
        self._made_for: tuple[int, float] = (-1, 0.0)
        self._kept: OrderedDict[str, Near] = OrderedDict()

    def expand(
        self, surfaces: Sequence[str], vectors: Matrix, limit: int, minimum: float, accept: Callable[[str], bool]
    ) -> list[Near]:
        """`WordVectors.expand` of ``vectors``, which are those of ``surfaces``."""
        made_for = (self._words.version, minimum)
        if made_for != self._made_for:
            self._made_for = made_for
            self._kept.clear()
        missing = [place for place, surface in enumerate(surfaces) if surface not in self._kept]
        if missing:
            found = self._words.expand(vectors[missing], NEAR_KEPT, minimum)
            self._kept.update(zip((surfaces[place] for place in missing), found, strict=True))
        rows: list[Near] = []
        for surface, vector in zip(surfaces, vectors, strict=True):
            near = self._kept[surface]
            self._kept.move_to_end(surface)
            passed: Near = []
            for pair in near:
                if len(passed) == limit:
                    break
                if accept(pair[0]):
                    passed.append(pair)
            if len(passed) < limit and len(near) == NEAR_KEPT:
                # What lies beyond those that were kept may be in the scope.
                passed = self._words.expand(vector, limit, minimum, accept)[0]
            rows.append(passed)
        while len(self._kept) > WORDS_KEPT:
            self._kept.popitem(last=False)
        return rows
