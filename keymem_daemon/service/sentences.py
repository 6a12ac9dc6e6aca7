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


class SentenceVectors:
    """Matrices (sentences, dimensions) by memory, float16, the latest 12,000 rows of them (12 MiB)."""

    def __init__(self, catalog: Catalog, encoder: MicroBatcher) -> None:
        self._catalog = catalog
        self._encoder = encoder
        self._kept: OrderedDict[str, npt.NDArray[np.float16]] = OrderedDict()
        self._rows = 0

    async def load(self, memory_ids: Sequence[str], *, background: bool = False) -> None:
        """See to it that `cosines` will know these memories; embeds what was never embedded."""
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
            self._keep(memory_id, vectors[start:stop])
            start = stop

    def lacks(self, memory_ids: Sequence[str]) -> bool:
        """Whether `load` would have anything to do."""
        return any(memory_id not in self._kept for memory_id in memory_ids)

    def cosines(self, memory_ids: Sequence[str], query: Matrix) -> dict[str, float]:
        """Cosine of the query with the best sentence of each memory, at least 0; memories that were not loaded are left out."""
        known = [memory_id for memory_id in memory_ids if memory_id in self._kept]
        if not known:
            return {}
        matrices = [self._kept[memory_id] for memory_id in known]
        for memory_id in known:
            self._kept.move_to_end(memory_id)
        rows = np.concatenate(matrices).astype(np.float32) @ query
        starts = np.cumsum([0, *(len(matrix) for matrix in matrices[:-1])])
        best = np.maximum.reduceat(rows, starts)
        return {memory_id: max(0.0, float(cosine)) for memory_id, cosine in zip(known, best, strict=True)}

    def drop(self, memory_ids: Iterable[str]) -> None:
        """Forget these memories."""
        for memory_id in memory_ids:
            matrix = self._kept.pop(memory_id, None)
            if matrix is not None:
                self._rows -= len(matrix)

    def _keep(self, memory_id: str, matrix: npt.NDArray[np.float16]) -> None:
        self.drop([memory_id])
        # A copy: a slice would keep the whole batch alive.
        self._kept[memory_id] = matrix.copy()
        self._rows += len(matrix)
        while self._rows > ROWS_KEPT and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._rows -= len(oldest)
