"""Exact nearest neighbours by cosine over one contiguous matrix.

`VectorIndex` holds the key vectors; `WordVectors` the words of the store's vocabulary, one byte a dimension. Both are derived:
rows can be computed again from the store and the encoder, and an index updated step by step answers like one built at once.
Nothing here embeds, knows what an identifier means, or picks thresholds. Not thread-safe: the owner calls from one thread.

Cosines are rounded to six digits before they are ordered: the last bits of a matrix product depend on the place of a row, and
with them the order of equal vectors would depend on the history of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
_Indices = npt.NDArray[np.intp]

_FIRST_ROWS: Final = 64
_DIGITS: Final = 6
# Rows of the word matrix that are widened to float32 at a time: 2 MiB, which stays in the second-level cache.
_CHUNK: Final = 1024
_STEPS: Final = 127.0
_FEW: Final = 4


def _as_queries(query: npt.ArrayLike, dimensions: int) -> Matrix:
    rows = np.atleast_2d(np.asarray(query, dtype=np.float32))
    if rows.size == 0:
        return np.empty((0, dimensions), dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimensions:
        raise ValueError(f"expected query vectors of {dimensions} dimensions, got shape {rows.shape}")
    return rows


def _unit(vector: npt.ArrayLike, dimensions: int) -> Matrix:
    row = np.asarray(vector, dtype=np.float32)
    if row.shape != (dimensions,):
        raise ValueError(f"expected a vector of {dimensions} dimensions, got shape {row.shape}")
    norm = float(np.linalg.norm(row))
    if not np.isfinite(norm) or norm == 0.0:
        raise ValueError("a vector needs a finite length above zero")
    return row / np.float32(norm)


def _best(names: Sequence[str], cosines: Matrix, limit: int, minimum: float) -> list[tuple[str, float]]:
    """The best ``limit`` of one row of cosines that, rounded, reach ``minimum``: highest first, ties by name."""
    if limit <= 0:
        return []
    # Only what may reach the minimum is rounded: the whole row would cost as much as the product that made it.
    hits: _Indices = np.flatnonzero(cosines >= np.float32(minimum - 2 * 10.0**-_DIGITS))
    rounded = np.round(cosines[hits], _DIGITS)
    reached = rounded >= np.float32(minimum)
    hits, rounded = hits[reached], rounded[reached]
    if len(hits) > limit:
        # Whoever ties with the last place stays in the race until names decide it.
        last = np.partition(rounded, len(hits) - limit)[len(hits) - limit]
        hits, rounded = hits[rounded >= last], rounded[rounded >= last]
    ranked = sorted(zip((-rounded).tolist(), (names[row] for row in hits.tolist()), strict=True))
    return [(name, -negative) for negative, name in ranked[:limit]]


def _best_accepted(
    names: Sequence[str], cosines: Matrix, limit: int, minimum: float, accept: Callable[[str], bool] | None
) -> list[tuple[str, float]]:
    """As `_best`, of the names that ``accept`` lets pass; it is asked in order and no more often than that takes."""
    if accept is None:
        return _best(names, cosines, limit, minimum)
    asked = max(4 * limit, 32)
    while True:
        ranked = _best(names, cosines, asked, minimum)
        passed: list[tuple[str, float]] = []
        for pair in ranked:
            if len(passed) == limit:
                break
            if accept(pair[0]):
                passed.append(pair)
        if len(passed) == limit or len(ranked) < asked:
            return passed
        asked *= 8


class VectorIndex:
    """Identifiers with one unit vector each."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._version = 0
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._matrix: Matrix = np.empty((_FIRST_ROWS, dimensions), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    @property
    def version(self) -> int:
        """Another number after every change."""
        return self._version

    def upsert(self, name: str, vector: npt.ArrayLike) -> None:
        """Set the vector of ``name``; it is brought to length 1. `ValueError` for a zero, non-finite or misshapen one."""
        unit = _unit(vector, self.dimensions)
        self._version += 1
        row = self._rows.get(name)
        if row is None:
            row = len(self._names)
            if row == len(self._matrix):
                grown = np.empty((row * 2, self.dimensions), dtype=np.float32)
                grown[:row] = self._matrix
                self._matrix = grown
            self._names.append(name)
            self._rows[name] = row
        self._matrix[row] = unit

    def remove(self, name: str) -> bool:
        """Take ``name`` out; whether it was there. The last row takes its place, so the cost does not depend on the size."""
        row = self._rows.pop(name, None)
        if row is None:
            return False
        self._version += 1
        last_name = self._names.pop()
        last = len(self._names)
        if row != last:
            self._matrix[row] = self._matrix[last]
            self._names[row] = last_name
            self._rows[last_name] = row
        return True

    def clear(self) -> None:
        """Forget everything, as when the vector space changes."""
        self._version += 1
        self._names.clear()
        self._rows.clear()
        self._matrix = np.empty((_FIRST_ROWS, self.dimensions), dtype=np.float32)

    def vector(self, name: str) -> Matrix | None:
        """A copy of the unit vector of ``name``, or ``None``."""
        row = self._rows.get(name)
        return None if row is None else self._matrix[row].copy()

    def search(
        self, queries: npt.ArrayLike, limit: int, minimum: float = -1.0, accept: Callable[[str], bool] | None = None
    ) -> list[list[tuple[str, float]]]:
        """For each row of ``queries`` (m, d) or (d,): up to ``limit`` (name, cosine) with cosine ≥ ``minimum``, best first, ties by name.

        Query rows are expected to have length 1. ``accept`` is asked in order of cosine, and only until ``limit`` names have
        passed: what it refuses cannot crowd out what it would take.
        """
        rows = _as_queries(queries, self.dimensions)
        if not self._names:
            return [[] for _ in rows]
        matrix = self._matrix[: len(self._names)]
        # One by one each query streams the matrix once; together they pay for packing it, which is worth it from five on.
        cosines = [matrix @ row for row in rows] if len(rows) <= _FEW else rows @ matrix.T
        return [_best_accepted(self._names, row, limit, minimum, accept) for row in cosines]

    def similarities(self, names: Sequence[str], query: npt.ArrayLike) -> Matrix:
        """Cosines of one query (d,) with the named vectors, in their order; 0.0 for a name without a vector."""
        row = _as_queries(query, self.dimensions)[0]
        found = [(place, self._rows[name]) for place, name in enumerate(names) if name in self._rows]
        result = np.zeros(len(names), dtype=np.float32)
        if found:
            places, rows = (list(column) for column in zip(*found, strict=True))
            result[places] = np.round(self._matrix[rows] @ row, _DIGITS)
        return result


class WordVectors:
    """Words with one vector each, stored as int8 with a scale per row: 520 bytes a word, cosines within 0.005 of exact.

    One byte and not float16, because numpy widens float16 four times slower: 12 queries against 100,000 words of 512 dimensions
    take 20 ms so, 78 ms from float16 (2 shared cores, tests/bench/bench_lexical.py).
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._version = 0
        self._words: list[str] = []
        self._rows: dict[str, int] = {}
        self._codes: npt.NDArray[np.int8] = np.empty((_FIRST_ROWS, dimensions), dtype=np.int8)
        self._scales: Matrix = np.empty(_FIRST_ROWS, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @property
    def version(self) -> int:
        """Another number after every change."""
        return self._version

    def missing(self, words: Iterable[str]) -> list[str]:
        """Those of ``words`` that have no vector yet, in order, once each."""
        return [word for word in dict.fromkeys(words) if word not in self._rows]

    def upsert_many(self, vectors: Mapping[str, npt.ArrayLike]) -> None:
        """Set the vectors of these words."""
        for word, vector in vectors.items():
            self.upsert(word, vector)

    def upsert(self, word: str, vector: npt.ArrayLike) -> None:
        """Set the vector of ``word``; `ValueError` for a zero, non-finite or misshapen one."""
        unit = _unit(vector, self.dimensions)
        self._version += 1
        row = self._rows.get(word)
        if row is None:
            row = len(self._words)
            if row == len(self._codes):
                codes = np.empty((row * 2, self.dimensions), dtype=np.int8)
                codes[:row] = self._codes
                scales = np.empty(row * 2, dtype=np.float32)
                scales[:row] = self._scales
                self._codes, self._scales = codes, scales
            self._words.append(word)
            self._rows[word] = row
        peak = np.float32(np.abs(unit).max())
        codes_row = np.rint(unit * (np.float32(_STEPS) / peak))
        self._codes[row] = codes_row
        # Scaled so that the stored row has length 1 again: the error that is left is one of direction alone.
        self._scales[row] = np.float32(1.0) / np.float32(np.linalg.norm(codes_row))

    def remove(self, word: str) -> bool:
        """Take ``word`` out; whether it was there."""
        row = self._rows.pop(word, None)
        if row is None:
            return False
        self._version += 1
        last_word = self._words.pop()
        last = len(self._words)
        if row != last:
            self._codes[row] = self._codes[last]
            self._scales[row] = self._scales[last]
            self._words[row] = last_word
            self._rows[last_word] = row
        return True

    def clear(self) -> None:
        """Forget everything, as when the vector space changes."""
        self._version += 1
        self._words.clear()
        self._rows.clear()
        self._codes = np.empty((_FIRST_ROWS, self.dimensions), dtype=np.int8)
        self._scales = np.empty(_FIRST_ROWS, dtype=np.float32)

    def search(
        self,
        queries: npt.ArrayLike,
        limit: int = 8,
        minimum: float = 0.5,
        accept: Callable[[str], bool] | None = None,
    ) -> list[list[tuple[str, float]]]:
        """For each query row (m, d) the best ``limit`` words with cosine ≥ ``minimum`` that ``accept`` lets pass, best first, ties by word.

        ``accept`` is asked in order of cosine and only until ``limit`` words have passed: words outside the searched scope can
        be refused there without being able to crowd out the others.
        """
        rows = _as_queries(queries, self.dimensions)
        count = len(self._words)
        if not count or not len(rows):
            return [[] for _ in rows]
        cosines = np.empty((len(rows), count), dtype=np.float32)
        wide = np.empty((min(_CHUNK, count), self.dimensions), dtype=np.float32)
        for start in range(0, count, _CHUNK):
            stop = min(start + _CHUNK, count)
            chunk = wide[: stop - start]
            np.copyto(chunk, self._codes[start:stop])
            np.matmul(rows, chunk.T, out=cosines[:, start:stop])
        cosines *= self._scales[:count]
        return [_best_accepted(self._words, row, limit, minimum, accept) for row in cosines]
