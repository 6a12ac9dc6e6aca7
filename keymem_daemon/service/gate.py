"""What the not-found gate judges of one recall; the rule itself is core/rank/gate.py. Reading only."""

from __future__ import annotations

import re
from typing import Final

from keymem_daemon.core.model import Scope
from keymem_daemon.core.questions import asks, names_something
from keymem_daemon.core.rank.gate import Candidate, Case, Grounds, named_enough
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.signals import FirstStage, Signals, query_grounds

# What is left of a text without its terms: "'s" is nothing, a Korean particle is something.
_BETWEEN: Final = re.compile(r"[^\W\d_]{2,}|[가-힣]")


def gate_case(
    engine: Engine, asked: Signals, said: Signals, stage: FirstStage, scope: Scope, reach: Scope, weights: Weights, *, whole: bool = False
) -> Case:
    """The case of a query ``asked``, with the utterance ``said`` that ``stage`` was made for; ``reach`` is all that the caller may read.

    Keys that are enough by themselves leave the candidates out, unless the ``whole`` case is wanted. Without a direction of what was
    said there are no cosines.
    """
    graph, memories = engine.graph, engine.graph.active_count(scope)
    listed, grounds = _lists(asked), query_grounds(engine, asked, scope)
    if asked.named and not asked.tokens:
        named, tells = True, False  # nothing but stop words, and a key is called so
    else:
        tokenizer = engine.catalog.tokenizer
        naming = {token.term for match in asked.named.values() for token in tokenizer.query_terms(match.surface)}
        tells = not listed and not names_something(asked.text) and not asks(asked.text) and not asks(said.text)
        stranger = _names_a_stranger(engine, asked, grounds, scope, reach)
        named = named_enough(graph, asked.named, grounds.named(naming), stranger=stranger and not listed, tells=tells)
    if named and not whole:
        return Case(named, (), 0, memories)
    if said is not asked:
        grounds = query_grounds(engine, said, scope)
    pool = top(stage.scores, weights.sentence_pool)
    grounds.load(pool)
    stranger = _names_a_stranger(engine, said, grounds, scope, reach)
    candidates = [Candidate(stage.cosines.get(m, 0.0), grounds.covered(m), grounds.of_another(m) and not stranger) for m in pool]
    return Case(named, candidates, stranger + tells, memories, said.direction is not None)


def _names_a_stranger(engine: Engine, signals: Signals, grounds: Grounds, scope: Scope, reach: Scope) -> bool:
    """Whether somebody is named of whom the scope knows nothing: in a word that it lacks, or by a name that the caller knows from elsewhere.

    Such a name needs no capital. One that stands in some memory of the scope is no stranger, though it be a key only elsewhere.
    """
    if grounds.stranger:
        return True
    graph, catalog = engine.graph, engine.catalog
    names = [
        match.surface
        for key_id, match in signals.elsewhere.items()
        if match.weight == 1.0 and graph.is_name(key_id) and graph.memory_count(key_id, reach)
    ]
    terms = [[token.term for token in catalog.tokenizer.query_terms(name)] for name in names]
    return any(own and not any(found.df for found in catalog.lexical.term_statistics(own, scope).values()) for own in terms)


def _lists(signals: Signals) -> bool:
    """Whether the text is a list of words to look for, not a sentence: nothing but terms, two or more or one that names a key."""
    if not signals.named and len(signals.text.split()) < 2:
        return False
    rest = signals.text
    for surface in sorted((token.surface for token in signals.tokens), key=len, reverse=True):
        rest = rest.replace(surface, " ")
    return _BETWEEN.search(rest) is None
