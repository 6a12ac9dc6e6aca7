"""Cosines for key decisions: the vectors of a request's new surfaces against the index, the lexicon and each other.

Made before the writer's turn is taken (that is when texts are embedded), asked within it. A surface without a vector, because
the model failed or a key came meanwhile, has no neighbours: it stays a key of its own, which costs a hint and no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.merging import Neighbour
from keymem_daemon.core.text import fold, scripts
from keymem_daemon.index.vectors import VectorIndex
from keymem_daemon.ports import Matrix

NEIGHBOURS = 48
LEXICON_WORDS = 96
SURFACES_AT_ONCE = 32


class RequestSimilarity:
    """`core.decide.keys.Similarity` over one request. ``vectors`` maps folded surfaces to unit vectors."""

    def __init__(self, keys: VectorIndex, lexicon: VectorIndex | None, vectors: Mapping[str, Matrix], minimum: float) -> None:
        """``lexicon`` is ``None`` while its words have no vectors yet: then nothing merges by similarity across scripts.

        ``minimum`` is the least cosine that any decision looks at: that of a hint, less the margin.
        """
        self._minimum = minimum
        self._keys = keys
        self._lexicon = lexicon
        self._vectors = vectors
        self._created = VectorIndex(keys.dimensions)
        self._created_keys: dict[str, str] = {}
        self._graph: Graph | None = None
        self._existing: dict[str, list[tuple[str, float]]] = {}
        self._existing_at = keys.version

    def within(self, graph: Graph) -> RequestSimilarity:
        """Read keys from this draft from now on."""
        self._graph = graph
        return self

    def neighbours(self, surface: str) -> Sequence[Neighbour]:
        """Keys near the surface, best first, each once."""
        vector = self._vectors.get(fold(surface))
        if vector is None or self._graph is None:
            return ()
        best: dict[str, float] = {}
        for name, cosine in (*self._near_existing(fold(surface)), *self._created.search(vector, NEIGHBOURS, self._minimum)[0]):
            key_id = self._key_of(name)
            if key_id is not None and cosine > best.get(key_id, -1.0):
                best[key_id] = cosine
        keys = [(self._graph.keys[key_id], cosine) for key_id, cosine in best.items()]
        return sorted(
            (Neighbour(key.id, key.concept, key.surfaces[1:], key.key_type, cosine) for key, cosine in keys),
            key=lambda neighbour: (-neighbour.similarity, neighbour.key_id),
        )

    def _near_existing(self, folded: str) -> list[tuple[str, float]]:
        """Keys of the index near this surface; the next few surfaces of the request are looked up with it, at a fifth of the cost."""
        if self._existing_at != self._keys.version:
            self._existing.clear()
            self._existing_at = self._keys.version
        if folded not in self._existing:
            waiting = [folded, *(other for other in self._vectors if other != folded and other not in self._existing)]
            together = waiting[:SURFACES_AT_ONCE]
            rows = self._keys.search(np.stack([self._vectors[name] for name in together]), NEIGHBOURS, self._minimum)
            self._existing.update(zip(together, rows, strict=True))
        return self._existing[folded]

    def lexicon(self, surface: str) -> Sequence[tuple[str, float]]:
        """Words of the lexicon near the surface, best first."""
        vector = self._vectors.get(fold(surface))
        return () if vector is None or self._lexicon is None else self._lexicon.search(vector, LEXICON_WORDS, self._minimum)[0]

    def mutual(self, surface: str, key_id: str) -> bool:
        """Whether no key in the surface's script is nearer to that key than the surface is."""
        vector = self._vectors.get(fold(surface))
        if vector is None or self._graph is None or self._lexicon is None:
            return False
        concept = fold(self._graph.keys[key_id].concept)
        theirs = self._keys.vector(concept)
        if theirs is None:
            theirs = self._created.vector(concept)
        if theirs is None:
            return False
        own = float(theirs @ vector)
        for name, cosine in (*self._keys.search(theirs, NEIGHBOURS, own)[0], *self._created.search(theirs, NEIGHBOURS, own)[0]):
            other = self._key_of(name)
            if other is not None and other != key_id and scripts(name) & scripts(surface) and cosine > own:
                return False
        return True

    def created(self, key_id: str, surface: str) -> None:
        """A key of that surface was decided in this request."""
        vector = self._vectors.get(fold(surface))
        if vector is not None:
            self._created.upsert(fold(surface), vector)
            self._created_keys[fold(surface)] = key_id

    def _key_of(self, folded: str) -> str | None:
        if self._graph is None:
            return None
        key_id = self._graph.key_id_of_folded(folded)
        return key_id if key_id is not None and key_id in self._graph.keys else None
