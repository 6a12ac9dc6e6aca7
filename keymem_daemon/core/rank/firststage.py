"""The first stage: how well each memory answers by itself, from three signals of very different scale.

``s1 = (norm(lexical) + 0.3 · norm(keys) + 1.0 · norm(sentence cosine)) / 2``, each divided by its best, so that the magnitude
within a signal counts (rank fusion throws it away). The sentence cosine is known for the best candidates only. Then two
things that texts alone do not say: a memory of somebody else than the one who is named counts less, and what was saved in the
same breath as a good memory counts more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.keymatch import inverse_frequency, normalised, top
from keymem_daemon.core.rank.weights import Weights

KEY_MEMBERS = 2_000


class Mentions(Protocol):
    """The derived mention links."""

    def mentioned_by(self, memory_id: str) -> Collection[str]: ...

    def mentions_of(self, key_id: str) -> Collection[str]: ...


def key_scores(graph: Graph, similarities: Mapping[str, float], scope: Scope, hub_min_links: int) -> dict[str, float]:
    """Per memory: Σ similarity × IDF over its explicit keys. Keys of more than 2,000 memories say nothing and are left out."""
    scores: dict[str, float] = {}
    for key_id, similarity in similarities.items():
        count = graph.memory_count(key_id, scope)
        if not 0 < count <= KEY_MEMBERS:
            continue
        worth = similarity * inverse_frequency(graph, key_id, scope, hub_min_links)
        for link in graph.active_members(key_id, scope):
            scores[link.memory_id] = scores.get(link.memory_id, 0.0) + worth
    return scores


def without_sentences(lexical: Mapping[str, float], keys: Mapping[str, float], weights: Weights) -> dict[str, float]:
    """The two cheap signals, not yet halved: what the pool for the sentence cosine is chosen by."""
    lexical_part, key_part = normalised(lexical), normalised(keys)
    return {m: lexical_part.get(m, 0.0) + weights.keys * key_part.get(m, 0.0) for m in {*lexical_part, *key_part}}


def with_sentences(cheap: Mapping[str, float], cosines: Mapping[str, float], weights: Weights) -> dict[str, float]:
    """s1 of every candidate, in [0, 1]."""
    sentence_part = normalised(cosines)
    return {m: (value + weights.sentences * sentence_part.get(m, 0.0)) / 2 for m, value in cheap.items()}


def of_named(graph: Graph, mentions: Mentions, scores: Mapping[str, float], named: Collection[str], weights: Weights) -> dict[str, float]:
    """Scores with those of memories lowered that are not about whom the query names, and more of those that do not even mention them.

    ``named`` are keys matched as wholes. What a memory is about is its first key; where no candidate is about the named, mention is enough.
    """
    names = [key_id for key_id in named if graph.keys[key_id].key_type == "name"]
    if not names:
        return dict(scores)
    links = {m: [link for key_id in names if (link := graph.link(key_id, m)) is not None] for m in scores}
    theirs = {memory_id for key_id in names for memory_id in mentions.mentions_of(key_id)}
    about = {m for m, found in links.items() if any(link.position == 0 for link in found)}
    only_mentioned = weights.not_about_named if about else 1.0
    return {
        m: value * (1.0 if m in about else only_mentioned) * (1.0 if links[m] or m in theirs else weights.not_of_named)
        for m, value in scores.items()
    }


def with_neighbours(
    graph: Graph, neighbours: Callable[[str], Iterable[str]], scores: Mapping[str, float], scope: Scope, weights: Weights
) -> dict[str, float]:
    """Scores with a share of each good memory's handed to those saved right before and after it under one of its keys."""
    gained: dict[str, float] = {}
    for memory_id in top(scores, weights.neighbour_pool):
        keys = frozenset(graph.key_ids_of(memory_id))
        gain = scores[memory_id] * weights.neighbour
        for other in neighbours(memory_id):
            if gain <= gained.get(other, 0.0) or not graph.in_scope(other, scope):
                continue
            close = abs(graph.memories[other].created_at - graph.memories[memory_id].created_at) <= weights.neighbour_seconds
            if close and not keys.isdisjoint(graph.key_ids_of(other)):
                gained[other] = gain
    return {m: scores.get(m, 0.0) + gained.get(m, 0.0) for m in {*scores, *gained}}


def unseen_idf(documents: int) -> float:
    """The IDF of a term that no document has, by BM25's own formula."""
    return math.log1p((documents + 0.5) / 0.5)


class Coverage:
    """Which query terms each memory has, as shares of the query's IDF mass."""

    def __init__(self, idf: Mapping[str, float], unseen: float, matches: Callable[[list[str]], list[set[str]]]) -> None:
        """Take the ``idf`` of the query's own terms in the scope, 0 for a term that no memory has, and ask ``matches`` of the index.

        ``unseen`` is the mass of those terms, had each the IDF of a term in no document.
        """
        self._idf = idf
        self._mass = sum(idf.values())
        self._whole_mass = self._mass + unseen
        self._matches = matches
        self._known: dict[str, set[str]] = {}

    def load(self, memory_ids: Iterable[str]) -> None:
        """See to it that these memories can be asked about."""
        missing = [memory_id for memory_id in dict.fromkeys(memory_ids) if memory_id not in self._known]
        self._known.update(zip(missing, self._matches(missing), strict=True))

    def terms(self, memory_id: str) -> set[str]:
        """The query terms that the memory has."""
        return self._known[memory_id]

    def share(self, terms: Iterable[str]) -> float:
        """The share of the query's IDF mass that these terms carry."""
        return sum(self._idf[term] for term in terms) / self._mass if self._mass else 0.0

    def absolute(self, terms: Iterable[str]) -> float:
        """The same of the whole query, words that no memory has included: what an absolute judgement must use."""
        return sum(self._idf.get(term, 0.0) for term in terms) / self._whole_mass if self._whole_mass else 0.0

    def residual(self, memory_id: str, given: str) -> float:
        """The share that ``given`` leaves open and this memory has."""
        return self.share(self._known[memory_id] - self._known[given])

    def overlap(self, memory_id: str, covered: set[str]) -> float:
        """The share of what this memory covers that is covered already."""
        own = self._known[memory_id]
        mass = sum(self._idf[term] for term in own)
        return sum(self._idf[term] for term in own & covered) / mass if mass else 0.0
