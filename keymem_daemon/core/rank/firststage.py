"""The first stage: how well each memory answers by itself, from three signals of very different scale.

``s1 = (norm(lexical) + 0.3 · norm(keys) + 1.0 · norm(sentence cosine)) / 2``, each divided by its best, so that the magnitude
within a signal counts (rank fusion throws it away). The sentence cosine is known for the best candidates only. Then two
things that texts alone do not say: a memory of somebody else than the one who is named counts less, and what was saved in the
same breath as a good memory counts more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
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
    """Scores with those of memories lowered that are not about whom the query names, and twice those that do not even mention them.

    ``named`` are keys matched as wholes. What a memory is about is its first key; where no candidate is about the named, mention is enough.
    """
    names = [key_id for key_id in named if graph.is_name(key_id)]
    if not names:
        return dict(scores)
    links = {m: [link for key_id in names if (link := graph.link(key_id, m)) is not None] for m in scores}
    theirs = [mentions.mentions_of(key_id) for key_id in names]
    about = {m for m, found in links.items() if any(link.position == 0 for link in found)}
    of_others = weights.of_others
    only_mentioned = of_others if about else 1.0
    return {
        m: value * (1.0 if m in about else only_mentioned) * (1.0 if links[m] or any(m in ids for ids in theirs) else of_others)
        for m, value in scores.items()
    }


@dataclass(frozen=True, slots=True)
class Gift:
    """What a memory has from one saved right before or after it: ``amount`` is that ``share`` of the giver's score."""

    giver: str
    share: float
    amount: float


def in_one_breath(graph: Graph, memory_id: str, other: str, scope: Scope, weights: Weights) -> bool:
    """Whether the other is a memory of the scope that was saved at about the same time, under one of the first one's keys."""
    apart = abs(graph.memories[other].created_at - graph.memories[memory_id].created_at)
    if apart > weights.neighbour_seconds or not graph.in_scope(other, scope):
        return False
    return any(graph.link(key_id, other) is not None for key_id in graph.key_ids_of(memory_id))


def neighbour_gifts(
    graph: Graph, neighbours: Callable[[str], Iterable[str]], scores: Mapping[str, float], scope: Scope, weights: Weights
) -> dict[str, Gift]:
    """The share that each good memory hands to those saved right before and after it under one of its keys; each keeps its best."""
    gifts: dict[str, Gift] = {}
    for memory_id in top(scores, weights.neighbour_pool):
        amount = scores[memory_id] * weights.neighbour
        for other in neighbours(memory_id):
            before = gifts.get(other)
            more = amount > 0.0 and (before is None or amount > before.amount)
            if more and in_one_breath(graph, memory_id, other, scope, weights):
                gifts[other] = Gift(memory_id, weights.neighbour, amount)
    return gifts


def with_gifts(scores: Mapping[str, float], gifts: Mapping[str, Gift]) -> dict[str, float]:
    """Scores and what their neighbours gave."""
    total = dict(scores)
    for memory_id, gift in gifts.items():
        total[memory_id] = total.get(memory_id, 0.0) + gift.amount
    return total


def unseen_idf(documents: int) -> float:
    """The IDF of a term that no document has, by BM25's own formula."""
    return math.log1p((documents + 0.5) / 0.5)


class Coverage:
    """Which query terms each memory has, as shares of the query's IDF mass.

    A set of terms is a number, one bit a term, and the share of every set that turned up is computed once.
    """

    def __init__(self, idf: Mapping[str, float], unseen: float, masks: Callable[[list[str]], list[int]]) -> None:
        """Take the ``idf`` of the query's own terms in the scope, 0 for a term that no memory has, and ask ``masks`` of the index.

        ``masks`` says for each memory which of the terms it has: bit n stands for the nth term of ``idf``. ``unseen`` is the mass
        of those terms that no memory has, had each the IDF of a term in no document.
        """
        self._idf = idf
        self._terms = tuple(idf)
        self._mass = sum(idf.values())
        self._whole_mass = self._mass + unseen
        self._masks = masks
        self._known: dict[str, int] = {}
        self._shares: dict[int, float] = {0: 0.0}

    def load(self, memory_ids: Iterable[str]) -> None:
        """See to it that these memories can be asked about."""
        missing = [memory_id for memory_id in dict.fromkeys(memory_ids) if memory_id not in self._known]
        if missing:
            self._known.update(zip(missing, self._masks(missing), strict=True))

    def terms(self, memory_id: str) -> set[str]:
        """The query terms that the memory has."""
        mask = self._known[memory_id]
        return {term for place, term in enumerate(self._terms) if mask >> place & 1}

    def mask(self, memory_id: str) -> int:
        """The same as a set of bits, for `overlap`."""
        return self._known[memory_id]

    def share(self, terms: Iterable[str]) -> float:
        """The share of the query's IDF mass that these terms carry."""
        return sum(self._idf[term] for term in terms) / self._mass if self._mass else 0.0

    def absolute(self, terms: Iterable[str]) -> float:
        """The same of the whole query, words that no memory has included: what an absolute judgement must use."""
        return sum(self._idf.get(term, 0.0) for term in terms) / self._whole_mass if self._whole_mass else 0.0

    def residual(self, memory_id: str, given: str) -> float:
        """The share that ``given`` leaves open and this memory has."""
        return self._share_of(self._known[memory_id] & ~self._known[given])

    def residuals(self, given: str) -> Callable[[str], float]:
        """`residual` of one memory after the other, given the same."""
        known, shares, share_of, rest = self._known, self._shares, self._share_of, ~self._known[given]

        def residual(memory_id: str) -> float:
            mask = known[memory_id] & rest
            share = shares.get(mask)
            return share_of(mask) if share is None else share

        return residual

    def overlap(self, memory_id: str, covered: int) -> float:
        """The share of what this memory covers that is covered already; ``covered`` is a set of bits as from `mask`."""
        own = self._known[memory_id]
        mass = self._share_of(own)
        return self._share_of(own & covered) / mass if mass else 0.0

    def _share_of(self, mask: int) -> float:
        share = self._shares.get(mask)
        if share is None:
            share = self._shares[mask] = self.share(term for place, term in enumerate(self._terms) if mask >> place & 1)
        return share
