"""A catalog that followed every change equals one built anew from the graph, whatever happened."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest
from command_scripts import CONTENTS, NAMESPACES, SURFACES, Command, attempted, commands
from hashing_words import HashingWords
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_book import RuleBook

from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.model import Scope
from keymem_daemon.core.text import fold
from keymem_daemon.index.catalog import Catalog
from keymem_daemon.index.tokens import Tokenizer
from keymem_daemon.ports import Matrix

DIMENSIONS = HashingWords.dimensions
EVERYTHING = 10_000
SCOPES: tuple[Scope, ...] = (None, *(frozenset({fold(name)}) for name in NAMESPACES))


def lexical_view(catalog: Catalog) -> object:
    """Every document's score for every query in every scope, and the statistics behind them."""
    found = []
    for scope in SCOPES:
        for text in (*CONTENTS, *SURFACES):
            terms = [token.term for token in catalog.tokenizer.query_terms(text)]
            hits = catalog.lexical.search(dict.fromkeys(terms, 1.0), scope, EVERYTHING)
            found.append(
                (
                    {m: pytest.approx(float(s), abs=1e-5) for m, s in zip(hits.doc_ids, hits.scores, strict=True)},
                    {term: (stat.df, pytest.approx(stat.idf)) for term, stat in catalog.lexical.term_statistics(terms, scope).items()},
                )
            )
    return found


def structure(catalog: Catalog, book: RuleBook) -> object:
    """Mentions, pages of the directory, and what waits for a vector or has one."""
    spaces = [None, *(fold(name) for name in NAMESPACES)]
    surfaces = {fold(s) for key in book.graph.keys.values() for s in key.surfaces} | set(map(fold, SURFACES))
    words = {fold(token.surface) for text in (*CONTENTS, *SURFACES) for token in catalog.tokenizer.query_terms(text)}
    return {
        "documents": {m for m in book.graph.memories if m in catalog.lexical},
        "vocabulary": sorted(catalog.lexical.vocabulary()),
        "mentions of": {k: set(catalog.mentions.mentions_of(k)) for k in book.graph.keys},
        "mentioned by": {m: set(catalog.mentions.mentioned_by(m)) for m in book.graph.memories},
        "pages": {s: list(catalog.directory.page(s, 0, EVERYTHING)) for s in spaces},
        "key counts": {s: catalog.directory.count(s) for s in spaces},
        "hubs": {(s, n): catalog.directory.hubs(s, n) for s in spaces for n in (1, 2, 3)},
        "keys": {s for s in surfaces if s in catalog.keys} | set(catalog.wanted_keys(EVERYTHING)),
        "words": {w for w in words if w in catalog.words} | set(catalog.wanted_words(EVERYTHING)),
        "key vectors": len(catalog.keys) + len(catalog.wanted_keys(EVERYTHING)),
        "word vectors": len(catalog.words) + len(catalog.wanted_words(EVERYTHING)),
    }


class FollowedBook(RuleBook):
    """A rule book with a catalog that is told of everything that happens, as the engine tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = HashingWords()
        self.catalog = Catalog(self.graph, Tokenizer(), DIMENSIONS, DIMENSIONS)

    def live(self, command: Command, *, embed: bool) -> None:
        self.clock.advance(seconds=command.seconds)
        self.catalog.settle(self.graph.settle(self.clock.now()))
        done = len(self.changes)
        self.carry_out(partial(self._attempt, command))
        self.catalog.apply(self.changes[done:])
        if embed:
            self.catalog.put_keys(self._embedded(self.catalog.wanted_keys(5)))
            self.catalog.put_words(self._embedded(self.catalog.wanted_words(5)))
            self.catalog.put_sentences(self.catalog.wanted_sentences(2))

    def _embedded(self, wanted: Iterable[str]) -> dict[str, Matrix]:
        texts = list(wanted)
        return dict(zip(texts, self.encoder.encode(texts), strict=True))

    def _attempt(self, command: Command, plan: Plan) -> bool:
        return attempted(self, plan, command)

    def rebuilt(self) -> Catalog:
        return Catalog.of(self.graph, Tokenizer(), DIMENSIONS, DIMENSIONS)


@given(st.lists(st.tuples(commands, st.booleans()), max_size=25))
@settings(max_examples=80, deadline=None)
def test_a_catalog_updated_change_by_change_equals_one_built_anew(script: list[tuple[Command, bool]]) -> None:
    book = FollowedBook()
    for command, embed in script:
        book.live(command, embed=embed)
    rebuilt = book.rebuilt()
    assert structure(book.catalog, book) == structure(rebuilt, book)
    assert lexical_view(book.catalog) == lexical_view(rebuilt)


@given(st.lists(commands, max_size=20))
@settings(max_examples=40, deadline=None)
def test_no_index_knows_of_what_is_not_active(script: list[Command]) -> None:
    book = FollowedBook()
    for command in script:
        book.live(command, embed=True)
        active = {m for m in book.graph.memories if book.graph.is_active(m)}
        assert len(book.catalog.lexical) == len(active)
        assert set(book.catalog.wanted_sentences(EVERYTHING)) <= active
        assert {m for k in book.graph.keys for m in book.catalog.mentions.mentions_of(k)} <= active
        assert set(book.catalog.directory.page(None, 0, EVERYTHING)) == {k for k in book.graph.keys if book.graph.memory_count(k, None)}
