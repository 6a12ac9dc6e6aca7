"""The live index against a rebuilt one and against bm25s, on arbitrary histories."""

from __future__ import annotations

import random
from collections.abc import Sequence

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from keymem_daemon.index.lexical import LexicalIndex, Scope
from keymem_daemon.index.tokens import Analysis, QueryToken

WORDS = ["w0", "w1", "w2", "w3", "w4", "w11"]
IDS = [f"{number:012x}" for number in range(16)]
SPACES = ["home", "work", "default"]
SCOPES: list[Scope] = [
    None,
    frozenset(SPACES),
    frozenset({"home"}),
    frozenset({"home", "work"}),
    frozenset({"nowhere"}),
    frozenset(),
]
Document = tuple[str, list[str]]


def _seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a corpus that can be made again, not a secret


def _analysis(words: Sequence[str]) -> Analysis:
    # Two surfaces of one term, and a token that is no word: what the tokenizer makes of plurals and of pairs of characters.
    tokens = [QueryToken(word + "s" if place % 2 else word, word, word != "w0") for place, word in enumerate(words)]
    return Analysis(tuple(tokens), provisional="w11" in words)


def _index(documents: dict[str, Document]) -> LexicalIndex:
    index = LexicalIndex()
    for doc_id, (space, words) in documents.items():
        index.add(doc_id, space, _analysis(words))
    return index


def _reference(documents: dict[str, Document], query: Sequence[str], scope: Scope) -> dict[str, float]:
    """The scores that bm25s gives, by document."""
    inside = {doc_id: words for doc_id, (space, words) in documents.items() if scope is None or space in scope}
    known = {word for words in inside.values() for word in words}
    asked = [word for word in query if word in known]
    if not asked:
        return {}
    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    model.index(list(inside.values()), show_progress=False)
    return {doc_id: float(score) for doc_id, score in zip(inside, model.get_scores(asked), strict=True)}


def _corpus(seed: int) -> dict[str, Document]:
    source = _seeded(seed)
    vocabulary = [f"term{number}" for number in range(source.randint(5, 300))]
    return {
        f"{source.getrandbits(48):012x}": (
            source.choice(SPACES),
            [vocabulary[min(int(source.expovariate(0.05)), len(vocabulary) - 1)] for _ in range(source.randint(1, 40))],
        )
        for _ in range(source.randint(2, 200))
    }


@pytest.mark.parametrize("seed", range(20))
def test_scores_equal_those_of_bm25s_in_every_scope(seed: int) -> None:
    documents = _corpus(seed)
    index = LexicalIndex()
    for doc_id, (space, words) in documents.items():
        index.add(doc_id, space, Analysis.of_terms(words))
    source = _seeded(seed)
    for scope in SCOPES:
        query = list(dict.fromkeys(source.choice(source.choice(list(documents.values()))[1]) for _ in range(4)))
        expected = _reference(documents, query, scope)
        found = index.search(dict.fromkeys(query, 1.0), scope, len(documents))
        assert set(found.doc_ids) == {doc_id for doc_id, score in expected.items() if score > 0}
        for doc_id, score in zip(found.doc_ids, found.scores.tolist(), strict=True):
            assert score == pytest.approx(expected[doc_id], abs=1e-5)


@given(st.integers(min_value=0, max_value=2**32), st.integers(min_value=1, max_value=30))
def test_a_short_list_is_the_beginning_of_the_long_one(seed: int, limit: int) -> None:
    documents = _corpus(seed)
    index = _index(documents)
    query = {f"term{number}": 1.0 / (1 + number) for number in range(6)}
    everything = index.search(query, None, len(documents))
    some = index.search(query, None, limit)
    assert some.doc_ids == everything.doc_ids[:limit]
    ranked = list(zip((-everything.scores).tolist(), everything.doc_ids, strict=True))
    assert ranked == sorted(ranked)


class LiveIndex(RuleBasedStateMachine):
    """Documents come, change and go; ids are used again."""

    @initialize()
    def start(self) -> None:
        self.documents: dict[str, Document] = {}
        self.index = LexicalIndex()
        self.followed: dict[str, str] = {}
        for number, doc_id in enumerate(IDS[:10]):
            self.put(doc_id, SPACES[number % 3], WORDS[: 2 + number % 4])

    @rule(
        doc_id=st.sampled_from(IDS),
        space=st.sampled_from(SPACES),
        words=st.lists(st.sampled_from(WORDS), max_size=8),
    )
    def put(self, doc_id: str, space: str, words: list[str]) -> None:
        self.documents.pop(doc_id, None)
        self.documents[doc_id] = (space, words)
        self.index.add(doc_id, space, _analysis(words))

    @rule(doc_id=st.sampled_from(IDS))
    def remove(self, doc_id: str) -> None:
        assert self.index.remove(doc_id) == (doc_id in self.documents)
        self.documents.pop(doc_id, None)

    @rule(
        query=st.dictionaries(st.sampled_from([*WORDS, "unknown"]), st.sampled_from([1.0, 0.5, 0.0]), max_size=4),
        scope=st.sampled_from(SCOPES),
        limit=st.integers(min_value=0, max_value=10),
    )
    def ask(self, query: dict[str, float], scope: Scope, limit: int) -> None:
        rebuilt = _index(self.documents)
        live, fresh = self.index.search(query, scope, limit), rebuilt.search(query, scope, limit)
        assert live.doc_ids == fresh.doc_ids
        assert np.array_equal(live.scores, fresh.scores)
        assert self.index.term_statistics(list(query), scope) == rebuilt.term_statistics(list(query), scope)
        assert set(live.doc_ids) <= {
            doc_id for doc_id, (space, _) in self.documents.items() if scope is None or space in scope
        }
        # A scope scores as if nothing outside it existed.
        alone = _index(
            {doc_id: entry for doc_id, entry in self.documents.items() if scope is None or entry[0] in scope}
        )
        only = alone.search(query, None, limit)
        assert live.doc_ids == only.doc_ids
        assert np.array_equal(live.scores, only.scores)
        assert self.index.score(live.doc_ids, query, scope).tolist() == live.scores.tolist()

    @rule(terms=st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=4), scope=st.sampled_from(SCOPES))
    def look(self, terms: list[str], scope: Scope) -> None:
        asked = [*self.documents, "missing"]
        expected = [
            set(terms) & set(self.documents[doc_id][1]) if doc_id in self.documents else set() for doc_id in asked
        ]
        assert self.index.matches(asked, terms) == expected
        distinct = list(dict.fromkeys(terms))
        masks = [sum(1 << place for place, term in enumerate(distinct) if term in found) for found in expected]
        assert self.index.masks(asked, distinct) == masks
        inside = [doc_id for doc_id, (space, _) in self.documents.items() if scope is None or space in scope]
        holders = [doc_id for doc_id in inside if terms and set(terms) <= set(self.documents[doc_id][1])]
        assert self.index.documents_with_all(terms, scope) == sorted(holders)
        for term in terms:
            assert self.index.in_scope(term, scope) == any(term in self.documents[doc_id][1] for doc_id in inside)

    @precondition(lambda self: self.documents)
    @rule()
    def follow_the_vocabulary(self) -> None:
        changes = self.index.vocabulary_changes()
        self.followed.update(changes.added)
        for word in changes.removed:
            self.followed.pop(word, None)
        assert self.followed == dict(_index(self.documents).vocabulary())

    @invariant()
    def counts_are_those_of_the_living(self) -> None:
        assert len(self.index) == len(self.documents)
        assert self.index.document_count() == len(self.documents)
        for scope in SCOPES:
            inside = [space for space, _ in self.documents.values() if scope is None or space in scope]
            assert self.index.document_count(scope) == len(inside)
        assert self.index.stale_documents() == sorted(
            doc_id for doc_id, (_, words) in self.documents.items() if "w11" in words
        )


TestLiveIndex = LiveIndex.TestCase
TestLiveIndex.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_churn_does_not_grow_the_index() -> None:
    index = LexicalIndex()
    source = _seeded(7)
    for turn in range(6000):
        words = [f"t{turn if place < 2 else int(source.expovariate(0.02))}" for place in range(12)]
        index.add(f"{turn % 100:012x}", "home", Analysis.of_terms(words))
    living = _index({f"{n:012x}": ("home", []) for n in range(100)})
    assert len(index) == len(living)
    assert len(index._ids) <= 200
    assert len(index._terms) <= 100 * 12 * 2
    assert len(index._vocabulary._words) <= 100 * 12 * 2
    assert sum(map(len, index._postings)) <= 100 * 12 * 4 // 3 + len(index._postings)
