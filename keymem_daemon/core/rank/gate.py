"""Whether anything answers at all: judged on raw signals, never on scores that were normalised among the candidates.

``evidence = best sentence cosine + 0.15 · share of the query's IDF mass that the memory covers − 0.25 for each sign that it does not``

Words that no memory has count with the IDF of a term in no document: a question about somebody unknown is mostly about what is not
there. A memory covers a word that it has, and in part one whose nearest words it has, in whatever language.

Signs say that a memory near the query does not answer it. The query names a stranger: a word written as a name or with a number
(otter-1) that no memory of the scope has and that names no key of it, or, in any writing, a name that the caller knows from another
scope only. Or it names somebody whom this memory does not: what it says is of another. Or it asks nothing: it tells or orders something
in a sentence.
Words alone, without a sentence around them, are a list of what to look for, where a stranger takes nothing from the others.

The floor grows with the store: among many memories that have nothing to do with a question, the best looks better than among few.

A key that the query names passes by itself when it is most of what was asked: a name always, other keys when they carry half of the
query's IDF mass. That one common concept of a long question ("family", "work") is stored says nothing about the question; nor is
anything that is stored about one person an answer when a stranger is named beside, nor a key that an order needs for what it orders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from keymem_daemon.core.closed_classes import closed_class
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.core.text import fold

NAMED_SHARE: Final = 0.5
STORE: Final = 1_000
"""The size of store for which a profile's floor is meant."""
SMALL: Final = 8
LARGE: Final = 32_000

_WORD: Final = re.compile(r"[A-Za-zÀ-ɏͰ-ӿ]+(?P<bound>['’]s\b|(?=[가-힣]))?")
_NUMBERED: Final = re.compile(r"(?<![\w-])[A-Za-z]+[-_]?\d[A-Za-z0-9_-]*")
_ENDS: Final = frozenset(".!?…:\n")


class Grounds:
    """What a query would need to be answered: how much of its mass a memory covers, in word or in meaning."""

    def __init__(
        self,
        idf: Mapping[str, float],
        near: Mapping[str, Mapping[str, float]],
        stranger: bool,
        matches: Callable[[list[str], list[str]], list[set[str]]],
        names: Collection[str],
        hangs: Callable[[str], bool],
    ) -> None:
        """Take the ``idf`` of every term of the query, also of those in no document; ``near`` has the worth, in (0, 1], of other terms.

        ``matches`` says which of the given terms each memory has. ``names`` are the terms that are written as names, and ``hangs`` says
        whether a memory hangs on the key of somebody who is named.
        """
        self._idf = idf
        self._near = near
        self._mass = sum(idf.values())
        self._matches = matches
        self._terms = list(dict.fromkeys([*idf, *(other for row in near.values() for other in row)]))
        self._covered: dict[str, float] = {}
        self.stranger = stranger
        self._names = frozenset(names)
        self._hangs = hangs
        self._of_another: dict[str, bool] = {}

    def load(self, memory_ids: Iterable[str]) -> None:
        """See to it that these memories can be asked about."""
        missing = [memory_id for memory_id in dict.fromkeys(memory_ids) if memory_id not in self._covered]
        for memory_id, has in zip(missing, self._matches(missing, self._terms), strict=True):
            self._covered[memory_id] = self._share(has)
            self._of_another[memory_id] = self._lacks_all_names(memory_id, has)

    def covered(self, memory_id: str) -> float:
        """The share of the query's mass that the memory covers; it must have been loaded."""
        return self._covered[memory_id]

    def named(self, terms: Collection[str]) -> float:
        """The share of the query's mass that these of its terms carry, stored or not."""
        return sum(self._idf.get(term, 0.0) for term in set(terms)) / self._mass if self._mass else 0.0

    def of_another(self, memory_id: str) -> bool:
        """Whether somebody is named and not by this memory; it must have been loaded. Where a stranger is named that alone counts."""
        return self._of_another[memory_id] and not self.stranger

    def evidence(self, memory_id: str, cosine: float, weights: Weights) -> float:
        """How well a memory answers, in absolute terms; it must have been loaded."""
        candidate = Candidate(cosine, self._covered[memory_id], self._of_another[memory_id] or self.stranger)
        return candidate.evidence(weights)

    def _lacks_all_names(self, memory_id: str, has: Collection[str]) -> bool:
        return bool(self._names) and not any(self._worth(name, has) for name in self._names) and not self._hangs(memory_id)

    def _share(self, has: Collection[str]) -> float:
        if not self._mass:
            return 0.0
        return sum(idf * self._worth(term, has) for term, idf in self._idf.items()) / self._mass

    def _worth(self, term: str, has: Collection[str]) -> float:
        if term in has:
            return 1.0
        return max((worth for other, worth in self._near.get(term, {}).items() if other in has), default=0.0)


class Candidate(NamedTuple):
    """What is judged of one memory: its best sentence cosine, its covered share, and whether it is of another than who is named."""

    cosine: float
    covered: float
    of_another: bool = False

    def evidence(self, weights: Weights) -> float:
        """How well it answers, before the signs that hold for all."""
        return self.cosine + weights.gate_coverage * self.covered - weights.gate_sign * self.of_another


@dataclass(frozen=True, slots=True)
class Case:
    """All that is judged of a recall, whatever the weights.

    ``named``: the keys that it names answer it by themselves. ``signs``: how many signs there are, for all
    candidates alike, that nothing answers. ``semantic``: whether there are cosines.
    """

    named: bool
    candidates: Sequence[Candidate]
    signs: int
    memories: int
    semantic: bool = True

    def evidence(self, weights: Weights) -> float:
        """That of the best candidate; 0 without any."""
        best = max((candidate.evidence(weights) for candidate in self.candidates), default=0.0)
        return best - weights.gate_sign * self.signs if self.candidates else 0.0

    def passes(self, base: float, weights: Weights) -> bool:
        """Whether something answers. Without vectors the words decide alone: a memory must cover half of the query's IDF mass."""
        if self.named:
            return True
        if not self.semantic:
            return any(candidate.covered >= NAMED_SHARE for candidate in self.candidates)
        return self.evidence(weights) >= floor_for(base, self.memories, weights)


def floor_for(base: float, memories: int, weights: Weights) -> float:
    """The floor of a store of so many active memories, ``base`` being that of a thousand; beyond 32,000 it grows no more."""
    return base + weights.gate_growth * math.log2(min(LARGE, max(SMALL, memories)) / STORE)


def named_enough(graph: Graph, named: Collection[str], share: float, *, stranger: bool = False, tells: bool = False) -> bool:
    """Whether the keys that the query names are what it asks about; ``share`` is what the words that name them carry of it."""
    there = [key_id for key_id in named if key_id in graph.keys]  # one may have been forgotten since it was read
    if stranger or not there:
        return False
    if any(map(graph.is_name, there)):
        return True
    return share >= NAMED_SHARE and not tells


def written_names(text: str) -> set[str]:
    """The words of ``text``, folded, that are written as names.

    Names are written with a capital within a sentence, or anywhere when "’s" or a Korean particle follows, or end in a number ("otter-1"); months
    and the like are none.
    """
    return {fold(found.group()) for found in _NUMBERED.finditer(text)} | {
        fold(word)
        for found in _WORD.finditer(text)
        for word in (found.group()[: -len(found["bound"])] if found["bound"] else found.group(),)
        if word[0].isupper() and not word.isupper() and closed_class(word) is None
        if found["bound"] is not None or not _begins_a_sentence(text, found.start())
    }


def _begins_a_sentence(text: str, at: int) -> bool:
    before = at
    while before and not text[before - 1].isalnum():
        before -= 1
    return before == 0 or not _ENDS.isdisjoint(text[before:at])
