"""What keymem has to beat: BM25 as the bm25s package does it, and a flat store of vectors of whole texts.

Each space is an index of its own. BM25 sees keys and content, as ours does: k1 1.5, b 0.75, English stemmed, English stop words
out, the package's own tokenizer. Flat vectors are the builtin encoder's over the whole content, which is how vector stores are
usually filled; the keys before it cost this encoder 0.01 to 0.03 of R@5, and the best sentence of each text would be another plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import bm25s
import numpy as np
from question_sets import Space
from snowballstemmer import stemmer
from subjects import Ids, RememberingEncoder

from keymem_daemon.ports import Matrix


class Baseline(Protocol):
    """Ranks the memories of a space for a query."""

    def ranking(self, query: str, namespace: str, top_k: int) -> list[str]:
        """Ids, best first."""
        ...


class PackagedBm25:
    """bm25s, an index a space."""

    def __init__(self, spaces: tuple[Space, ...], ids: Ids) -> None:
        self._stemmer = stemmer("english")
        self._ids = {space.namespace: [ids[(space.namespace, m.ref)] for m in space.memories] for space in spaces}
        self._indexes: Mapping[str, bm25s.BM25] = {space.namespace: self._indexed(space) for space in spaces}

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer.stemWords, return_ids=False, show_progress=False)
        return found

    def _indexed(self, space: Space) -> bm25s.BM25:
        index = bm25s.BM25(k1=1.5, b=0.75)
        index.index(self._tokens([f"{' '.join(m.keys)}\n{m.content}" for m in space.memories]), show_progress=False)
        return index

    def ranking(self, query: str, namespace: str, top_k: int) -> list[str]:
        """Ids with a score above zero, best first, ties in the order of saving."""
        tokens = self._tokens([query])[0]
        if not tokens:
            return []
        index, ids = self._indexes[namespace], self._ids[namespace]
        known = [token for token in tokens if token in index.vocab_dict]
        if not known:
            return []
        scores = index.get_scores(known)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [ids[int(i)] for i in order if scores[int(i)] > 0]


class FlatVectors:
    """One vector a memory, searched exactly."""

    def __init__(self, spaces: tuple[Space, ...], ids: Ids, encoder: RememberingEncoder) -> None:
        self._encoder = encoder
        self._ids = {space.namespace: [ids[(space.namespace, m.ref)] for m in space.memories] for space in spaces}
        self._vectors: dict[str, Matrix] = {
            space.namespace: encoder.encode([m.content for m in space.memories]) for space in spaces
        }

    def ranking(self, query: str, namespace: str, top_k: int) -> list[str]:
        """Ids by cosine, best first."""
        cosines = self._vectors[namespace] @ self._encoder.encode([query])[0]
        return [self._ids[namespace][int(i)] for i in np.argsort(-cosines, kind="stable")[:top_k]]
