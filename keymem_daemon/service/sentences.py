"""Sentence vectors of memories: the light reranker's eyes. Never searched, only looked up for candidates.

A memory's matrix is derived from its text and the key it is about; the vector cache beneath keeps single sentences by text,
and this keeps whole matrices of the memories that were candidates lately.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from keymem_daemon.embed.batcher import MicroBatcher
from keymem_daemon.index.catalog import Catalog
from keymem_daemon.ports import Matrix

ROWS_KEPT = 12_000
NEAREST = 5


class SentenceVectors:
    """Matrices (sentences, dimensions) by memory, float16, the latest 12,000 rows of them (12 MiB)."""

    def __init__(self, catalog: Catalog, encoder: MicroBatcher) -> None:
        self._catalog = catalog
        self._encoder = encoder
        self._kept: OrderedDict[str, npt.NDArray[np.float16]] = OrderedDict()
        # Of memories of several sentences their mean direction, which is a row, too.
        self._middles: dict[str, npt.NDArray[np.float16]] = {}
        self._rows = 0

    async def load(self, memory_ids: Sequence[str], *, background: bool = False) -> None:
        """See to it that `cosines` will know these memories; embeds what was never embedded."""
        self.touch(memory_ids)
        unknown = [memory_id for memory_id in dict.fromkeys(memory_ids) if memory_id not in self._kept]
        texts: dict[str, list[str]] = {}
        for memory_id in unknown:
            if found := self._catalog.sentences_of(memory_id):
                texts[memory_id] = found
            if background:
                await asyncio.sleep(0)  # a long text takes milliseconds
        missing = list(texts)
        flat = [text for memory_id in missing for text in texts[memory_id]]
        if not flat:
            return
        vectors = (await self._encoder.encode(flat, background=background)).astype(np.float16)
        start = 0
        for memory_id in missing:
            stop = start + len(texts[memory_id])
            if self._catalog.knows(memory_id):  # it may have been forgotten meanwhile
                self._keep(memory_id, vectors[start:stop])
            start = stop

    def touch(self, memory_ids: Iterable[str]) -> None:
        """Count these memories among the latest: none of them gives way to another one of them."""
        for memory_id in memory_ids:
            if memory_id in self._kept:
                self._kept.move_to_end(memory_id)

    def lacks(self, memory_ids: Sequence[str]) -> bool:
        """Whether `load` would have anything to do."""
        return any(memory_id not in self._kept for memory_id in memory_ids)

    def cosines(self, memory_ids: Sequence[str], query: Matrix) -> dict[str, float]:
        """Cosine of the query with the best sentence of each memory, at least 0; memories that were not loaded are left out."""
        known = [memory_id for memory_id in memory_ids if memory_id in self._kept]
        if not known:
            return {}
        self.touch(known)
        matrices = [self._kept[memory_id] for memory_id in known]
        rows = np.concatenate(matrices).astype(np.float32) @ query
        starts = np.cumsum([0, *(len(matrix) for matrix in matrices[:-1])])
        best = np.maximum.reduceat(rows, starts)
        return {memory_id: max(0.0, float(cosine)) for memory_id, cosine in zip(known, best, strict=True)}

    def among(self, memory_ids: Sequence[str], pool: Sequence[str], query: Matrix) -> dict[str, tuple[float, float]]:
        """Of each memory that was loaded two numbers, each memory being the mean direction of its sentences.

        How much nearer it is to the query than to the middle of the pool, and its mean cosine with the five of the pool that are most like it.
        """
        candidates = [m for m in pool if m in self._kept]
        wanted = [m for m in memory_ids if m in self._kept]
        if len(candidates) < 2 or not wanted:
            return {}
        directions = self._directions([*candidates, *wanted])
        around, own = directions[: len(candidates)], directions[len(candidates) :]
        apart = own @ (query - around.mean(axis=0))
        alike = own @ around.T
        at = {m: place for place, m in enumerate(candidates)}
        for row, m in enumerate(wanted):
            if m in at:
                alike[row, at[m]] = -np.inf  # nobody is their own neighbour
        alike.sort(axis=1)
        nearest = alike[:, -min(NEAREST, len(candidates) - 1) :].mean(axis=1)
        return {m: (float(a), float(b)) for m, a, b in zip(wanted, apart, nearest, strict=True)}

    def _directions(self, memory_ids: Sequence[str]) -> Matrix:
        rows = [self._middles[m] if m in self._middles else self._kept[m][0] for m in memory_ids]
        return np.concatenate(rows).reshape(len(rows), -1).astype(np.float32)

    def drop(self, memory_ids: Iterable[str]) -> None:
        """Forget these memories."""
        for memory_id in memory_ids:
            matrix = self._kept.pop(memory_id, None)
            if matrix is not None:
                self._rows -= len(matrix) + (self._middles.pop(memory_id, None) is not None)

    def _keep(self, memory_id: str, matrix: npt.NDArray[np.float16]) -> None:
        self.drop([memory_id])
        # A copy: a slice would keep the whole batch alive.
        self._kept[memory_id] = matrix.copy()
        self._rows += len(matrix)
        if len(matrix) > 1:
            middle = matrix.astype(np.float32).mean(axis=0)
            self._middles[memory_id] = (middle / max(1e-9, float(np.linalg.norm(middle)))).astype(np.float16)
            self._rows += 1
        while self._rows > ROWS_KEPT and len(self._kept) > 1:
            self.drop([next(iter(self._kept))])
