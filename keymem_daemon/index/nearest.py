"""What is near the words and phrases of a query, remembered until the index changes: people ask in the same words, and a recall twice.

A cache over an index of vectors and nothing else: what it answers is what the index would, at any moment and for any scope.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from keymem_daemon.index.vectors import Matrix

Near = list[tuple[str, float]]

TEXTS_KEPT: Final = 2_000
NEAR_KEPT: Final = 128


class Searched(Protocol):
    """An index of vectors, as `VectorIndex` and `WordVectors` are."""

    @property
    def version(self) -> int:
        """Another number after every change."""
        ...

    def search(
        self, queries: Matrix, limit: int, minimum: float, accept: Callable[[str], bool] | None = None
    ) -> list[Near]:
        """Of each query the best ``limit`` names with cosine ≥ ``minimum`` that ``accept`` lets pass, best first."""
        ...


class NearestCache:
    """What is nearest to each of the latest 2,000 texts that were asked for, 128 at most of each: 3 MB."""

    def __init__(self, index: Searched) -> None:
        self._index = index
        self._made_for: tuple[int, float] = (-1, 0.0)
        self._kept: OrderedDict[str, tuple[tuple[str, ...], array[float]]] = OrderedDict()

    def search(
        self, surfaces: Sequence[str], vectors: Matrix, limit: int, minimum: float, accept: Callable[[str], bool]
    ) -> list[Near]:
        """`Searched.search` of ``vectors``, which are those of ``surfaces``."""
        made_for = (self._index.version, minimum)
        if made_for != self._made_for:
            self._made_for = made_for
            self._kept.clear()
        missing = [place for place, surface in enumerate(surfaces) if surface not in self._kept]
        if missing:
            found = self._index.search(vectors[missing], NEAR_KEPT, minimum)
            for place, row in zip(missing, found, strict=True):
                # Cosines are those of a float32 index, so that four bytes hold them as they are.
                self._kept[surfaces[place]] = (tuple(name for name, _ in row), array("f", [cosine for _, cosine in row]))
        rows: list[Near] = []
        for surface, vector in zip(surfaces, vectors, strict=True):
            names, cosines = self._kept[surface]
            self._kept.move_to_end(surface)
            passed: Near = []
            for name, cosine in zip(names, cosines, strict=True):
                if len(passed) == limit:
                    break
                if accept(name):
                    passed.append((name, cosine))
            if len(passed) < limit and len(names) == NEAR_KEPT:
                # What lies beyond those that were kept may be in the scope.
                passed = self._index.search(vector, limit, minimum, accept)[0]
            rows.append(passed)
        while len(self._kept) > TEXTS_KEPT:
            self._kept.popitem(last=False)
        return rows
