"""Live BM25: documents come and go one at a time, and every score is what an index built at this moment would give.

Postings are append-only; IDF and the length norm are applied when a query is asked, from the statistics of the asked scope,
so an added document costs its own words and nothing else, and a scope scores exactly as if nothing outside it existed:

    score(d) = Σ weight(t) · idf(t) · tf / (tf + k1 · (1 − b + b · |d| / avg|d|)),   idf(t) = ln(1 + (N − df + ½) / (df + ½))

which is the method that bm25s calls "lucene" (a test compares the two). A removed document leaves its postings behind as
dead entries; each term sweeps its own list when more than a quarter of it is dead, so that no single write ever pays for
the whole index. Its slot is used again once no posting refers to it.

What a word is, is decided in tokens.py; what a score means, in the ranking. Not thread-safe: the owner calls from one thread.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from keymem_daemon.index.tokens import Analysis, QueryToken
from keymem_daemon.index.vocabulary import Vocabulary, VocabularyChange

Scope = frozenset[str] | None
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

K1: Final = 1.5
B: Final = 0.75
_DEAD_SHARE: Final = 4
# A posting is slot · 2^16 + term frequency in one 64-bit integer; a term more frequent than this in one text counts as this.
_TF_BITS: Final = 16
_TF_MAX: Final = (1 << _TF_BITS) - 1
_NOBODY: Final = 0


@dataclass(frozen=True, slots=True)
class Scores:
    """Documents with their BM25 scores: best first, ties by document id."""

    doc_ids: list[str]
    scores: npt.NDArray[np.float32]


class TermStatistics(NamedTuple):
    """Documents of the scope that have the term, and its inverse document frequency there."""

    df: int
    idf: float


def _id_prefix(doc_id: str) -> int:
    # The first eight bytes as a number sort like the string itself: they decide nearly every tie without leaving numpy.
    return int.from_bytes(doc_id.encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0"), "big")


_Number = TypeVar("_Number", bound=np.generic)


def _doubled(column: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    return np.concatenate([column, np.zeros_like(column)])


def _idf(documents: int, df: int) -> float:
    return math.log1p((documents - df + 0.5) / (df + 0.5))


class LexicalIndex:
    """BM25 over documents (id, namespace, words)."""

    def __init__(self, k1: float = K1, b: float = B) -> None:
        self._k1 = k1
        self._b = b
        # Documents live in slots.
        self._slot_of: dict[str, int] = {}
        self._ids: list[str] = []
        self._prefix: npt.NDArray[np.uint64] = np.zeros(64, dtype=np.uint64)
        self._length: _Ints = np.zeros(64, dtype=np.int64)
        self._space: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self._forward: list[bytes] = []
        self._stale_postings: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self._free_slots: list[int] = []
        self._provisional: set[str] = set()
        # Namespace 0 is that of slots without a living document.
        self._space_of: dict[str, int] = {}
        self._space_documents: list[int] = [0]
        self._space_length: list[int] = [0]
        # Terms have postings; words lead to terms, and the forward index keeps the words of each slot.
        self._term_of: dict[str, int] = {}
        self._terms: list[str] = []
        self._postings: list[array[int]] = []
        self._dead: list[int] = []
        self._free_terms: list[int] = []
        self._vocabulary = Vocabulary()

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._slot_of

    # Writing

    def add(self, doc_id: str, namespace: str, analysis: Analysis) -> None:
        """Index a document, or put it in the place of the one that has this id. ``namespace`` is already folded.

        Costs the document's own words: tens of microseconds for a sentence or two, at any size of the index.
        """
        self.remove(doc_id)
        slot = self._take_slot(doc_id)
        space = self._space_of.get(namespace)
        if space is None:
            space = self._space_of[namespace] = len(self._space_documents)
            self._space_documents.append(0)
            self._space_length.append(0)
        length = len(analysis.tokens)
        self._length[slot] = length
        self._space[slot] = space
        self._space_documents[space] += 1
        self._space_length[space] += length
        words = dict.fromkeys(analysis.tokens)
        self._forward[slot] = array("i", [self._take_word(word) for word in words]).tobytes()
        base = slot << _TF_BITS
        postings, term_of = self._postings, self._term_of
        for term, frequency in Counter([token.term for token in analysis.tokens]).items():
            postings[term_of[term]].append(base | min(frequency, _TF_MAX))
        if analysis.provisional:
            self._provisional.add(doc_id)

    def remove(self, doc_id: str) -> bool:
        """Take a document out of every result and every statistic at once; whether it was there."""
        slot = self._slot_of.pop(doc_id, None)
        if slot is None:
            return False
        self._provisional.discard(doc_id)
        space = int(self._space[slot])
        self._space_documents[space] -= 1
        self._space_length[space] -= int(self._length[slot])
        self._space[slot] = _NOBODY
        words = np.frombuffer(self._forward[slot], dtype=np.int32)
        terms: list[int] = np.unique(self._vocabulary.terms(words)).tolist()
        self._forward[slot] = b""
        self._ids[slot] = ""
        self._stale_postings[slot] = len(terms)
        if not terms:
            self._free_slots.append(slot)
        for word in words.tolist():
            self._vocabulary.release(word)
        for term in terms:
            self._dead[term] += 1
            if self._dead[term] * _DEAD_SHARE > len(self._postings[term]):
                self._sweep(term)
        return True

    def _take_slot(self, doc_id: str) -> int:
        if self._free_slots:
            slot = self._free_slots.pop()
            self._ids[slot] = doc_id
        else:
            slot = len(self._ids)
            self._ids.append(doc_id)
            self._forward.append(b"")
            if slot == len(self._space):
                self._prefix = _doubled(self._prefix)
                self._length = _doubled(self._length)
                self._space = _doubled(self._space)
                self._stale_postings = _doubled(self._stale_postings)
        self._prefix[slot] = _id_prefix(doc_id)
        self._slot_of[doc_id] = slot
        return slot

    def _take_term(self, term: str) -> int:
        number = self._term_of.get(term)
        if number is not None:
            return number
        if self._free_terms:
            number = self._free_terms.pop()
            self._terms[number] = term
        else:
            number = len(self._terms)
            self._terms.append(term)
            self._postings.append(array("q"))
            self._dead.append(0)
        self._term_of[term] = number
        return number

    def _take_word(self, word: QueryToken) -> int:
        number = self._vocabulary.number(word)
        if number is None:
            number = self._vocabulary.enter(word, self._take_term(word.term))
        self._vocabulary.hold(number)
        return number

    def _sweep(self, term: int) -> None:
        """Drop a term's dead postings; the term itself, and slots that nothing refers to any more, become free."""
        postings = np.array(self._postings[term], dtype=np.int64)
        slots = postings >> _TF_BITS
        alive = self._space[slots] != _NOBODY
        self._postings[term] = array("q", postings[alive].tobytes())
        self._dead[term] = 0
        dead = slots[~alive]
        self._stale_postings[dead] -= 1
        self._free_slots.extend(dead[self._stale_postings[dead] == 0].tolist())
        if alive.any():
            return
        del self._term_of[self._terms[term]]
        self._terms[term] = ""
        self._free_terms.append(term)

    # Statistics of a scope

    def document_count(self, scope: Scope = None) -> int:
        """Documents in the scope."""
        return self._totals(scope)[0]

    def term_statistics(self, terms: Sequence[str], scope: Scope = None) -> dict[str, TermStatistics]:
        """Document frequency and idf of each term within the scope. A term nobody has gets the highest idf; with no document it is 0."""
        documents, _ = self._totals(scope)
        allowed = self._allowed(scope)
        result: dict[str, TermStatistics] = {}
        for term in terms:
            df = self._df(term, allowed)
            result[term] = TermStatistics(df, _idf(documents, df) if documents else 0.0)
        return result

    def in_scope(self, term: str, scope: Scope = None) -> bool:
        """Whether any document of the scope has the term."""
        return self._df(term, self._allowed(scope)) > 0

    def _totals(self, scope: Scope) -> tuple[int, int]:
        if scope is None:
            return sum(self._space_documents), sum(self._space_length)
        spaces = [self._space_of[name] for name in scope if name in self._space_of]
        return sum(self._space_documents[space] for space in spaces), sum(self._space_length[space] for space in spaces)

    def _allowed(self, scope: Scope) -> npt.NDArray[np.bool_] | None:
        if scope is None:
            return None
        spaces = [self._space_of[name] for name in scope if name in self._space_of]
        if sum(self._space_documents[space] for space in spaces) == len(self):
            # Nothing lies outside, as in most stores: no posting need be looked at to know that.
            return None
        allowed = np.zeros(len(self._space_documents), dtype=np.bool_)
        allowed[spaces] = True
        return allowed

    def _df(self, term: str, allowed: npt.NDArray[np.bool_] | None) -> int:
        number = self._term_of.get(term)
        if number is None:
            return 0
        if allowed is None:
            return len(self._postings[number]) - self._dead[number]
        return len(self._slots_and_tf(number, allowed)[0])

    def _slots_and_tf(self, term: int, allowed: npt.NDArray[np.bool_] | None) -> tuple[_Ints, _Ints]:
        # The view must not outlive this call: an array that is looked at cannot grow.
        postings = np.frombuffer(self._postings[term], dtype=np.int64)
        if allowed is not None:
            postings = postings[allowed[self._space[postings >> _TF_BITS]]]
        elif self._dead[term]:
            postings = postings[self._space[postings >> _TF_BITS] != _NOBODY]
        return postings >> _TF_BITS, postings & _TF_MAX

    # Reading

    def search(self, weighted: Mapping[str, float], scope: Scope, limit: int) -> Scores:
        """The best ``limit`` documents of the scope for these terms, each counting by its weight (> 0; others are ignored)."""
        totals = self._accumulate(weighted, scope)
        slots = np.flatnonzero(totals > 0.0)
        scores = totals[slots].astype(np.float32)
        if limit <= 0:
            return Scores([], np.empty(0, dtype=np.float32))
        slots, scores = self._cut(slots, scores, limit)
        ranked = sorted(zip((-scores).tolist(), (self._ids[slot] for slot in slots.tolist()), strict=True))[:limit]
        return Scores([name for _, name in ranked], np.array([-score for score, _ in ranked], dtype=np.float32))

    def score(
        self, doc_ids: Sequence[str], weighted: Mapping[str, float], scope: Scope = None
    ) -> npt.NDArray[np.float32]:
        """The scores that `search` would give these documents, in their order; 0 for one that is not in the scope."""
        totals = self._accumulate(weighted, scope)
        slots = [self._slot_of.get(doc_id, -1) for doc_id in doc_ids]
        return np.array([totals[slot] if slot >= 0 else 0.0 for slot in slots], dtype=np.float32)

    def _accumulate(self, weighted: Mapping[str, float], scope: Scope) -> _Floats:
        totals = np.zeros(len(self._ids), dtype=np.float64)
        documents, length = self._totals(scope)
        if not documents or not length:
            return totals
        allowed = self._allowed(scope)
        flat = self._k1 * (1.0 - self._b)
        per_word = self._k1 * self._b * documents / length
        for term, weight in weighted.items():
            number = self._term_of.get(term)
            if number is None or weight <= 0.0:
                continue
            slots, frequency = self._slots_and_tf(number, allowed)
            if len(slots):
                norm = self._length[slots] * per_word + flat
                totals[slots] += (weight * _idf(documents, len(slots))) * frequency / (frequency + norm)
        return totals

    def _cut(
        self, slots: npt.NDArray[np.intp], scores: npt.NDArray[np.float32], limit: int
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Leave out what cannot be among the first ``limit``, by score and then by id, without looking at ids one by one."""
        if len(slots) <= limit:
            return slots, scores
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        above = scores > last
        level = np.flatnonzero(scores == last)
        places = limit - int(above.sum())
        if len(level) > places:
            prefixes = self._prefix[slots[level]]
            level = level[prefixes <= np.partition(prefixes, places - 1)[places - 1]]
        keep = np.concatenate([np.flatnonzero(above), level])
        return slots[keep], scores[keep]

    def coverage(self, doc_ids: Sequence[str], terms: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which document has which term, as a matrix (documents, terms); no document of that id, no term."""
        numbers = np.array([self._term_of.get(term, -1) for term in terms], dtype=np.int32)
        forwards = [self._forward[self._slot_of[doc_id]] if doc_id in self._slot_of else b"" for doc_id in doc_ids]
        result = np.zeros((len(doc_ids), len(terms)), dtype=np.bool_)
        held = self._vocabulary.terms(np.frombuffer(b"".join(forwards), dtype=np.int32))
        rows = np.repeat(np.arange(len(forwards)), [len(forward) // 4 for forward in forwards])
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        first = np.searchsorted(ordered, held, side="left")
        hit = np.flatnonzero(first < len(ordered))
        hit = hit[ordered[first[hit]] == held[hit]]
        result[rows[hit], order[first[hit]]] = True
        for place, number in enumerate(numbers.tolist()):
            # A term asked twice was found under its first place only.
            origin = int(order[np.searchsorted(ordered, number, side="left")])
            if number >= 0 and origin != place:
                result[:, place] = result[:, origin]
        return result

    def masks(self, doc_ids: Sequence[str], terms: Sequence[str]) -> list[int]:
        """As `matches`, each set as a number: bit n stands for the nth of ``terms``."""
        packed = np.packbits(self.coverage(doc_ids, terms), axis=1, bitorder="little")
        width, raw = packed.shape[1], packed.tobytes()
        return (
            [int.from_bytes(raw[at : at + width], "little") for at in range(0, len(raw), width)]
            if width
            else [0] * len(doc_ids)
        )

    def matches(self, doc_ids: Sequence[str], terms: Sequence[str]) -> list[set[str]]:
        """For each document the set of ``terms`` it has."""
        covered = self.coverage(doc_ids, terms)
        return [{terms[place] for place in np.flatnonzero(row).tolist()} for row in covered]

    def documents_with_all(self, terms: Sequence[str], scope: Scope = None) -> list[str]:
        """Documents of the scope that have every one of ``terms``, by id; none for no term."""
        numbers = [self._term_of.get(term) for term in dict.fromkeys(terms)]
        known = sorted(
            (number for number in numbers if number is not None), key=lambda number: len(self._postings[number])
        )
        if not known or len(known) < len(numbers):
            return []
        allowed = self._allowed(scope)
        slots, _ = self._slots_and_tf(known[0], allowed)
        for number in known[1:]:
            if not len(slots):
                break
            slots = np.intersect1d(slots, self._slots_and_tf(number, allowed)[0], assume_unique=True)
        return sorted(self._ids[slot] for slot in slots.tolist())

    @property
    def stale_count(self) -> int:
        """How many `stale_documents` there are."""
        return len(self._provisional)

    def stale_documents(self, limit: int | None = None) -> list[str]:
        """Documents whose words are provisional (see `Analysis`): analyse them again and `add` them, and none is left.

        ``limit`` of them, whichever; without it all, by id.
        """
        return sorted(self._provisional) if limit is None else list(islice(self._provisional, limit))

    # Vocabulary

    @property
    def vocabulary_version(self) -> int:
        """Grows with every word that comes or goes."""
        return self._vocabulary.version

    def vocabulary(self) -> Iterator[tuple[str, str]]:
        """The distinct words of the living documents, folded, each with its term."""
        return iter(self._vocabulary)

    def vocabulary_changes(self) -> VocabularyChange:
        """What came and went since the last call, for the one who keeps the words' vectors."""
        return self._vocabulary.changes()
