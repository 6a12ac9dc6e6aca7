"""What the not-found gate judges of one recall; the rule itself is core/rank/gate.py. Reading only."""

from __future__ import annotations

import re
from typing import Final

from keymem_daemon.core.model import Scope
from keymem_daemon.core.questions import asks
from keymem_daemon.core.rank.gate import Case, named_enough
from keymem_daemon.core.rank.keymatch import top
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.signals import FirstStage, Signals, query_grounds

# What is left of a text without its terms: "'s" is nothing, a Korean particle is something.
_BETWEEN: Final = re.compile(r"[^\W\d_]{2,}|[가-힣]")


def gate_case(
    engine: Engine, asked: Signals, said: Signals, stage: FirstStage, scope: Scope, weights: Weights, *, whole: bool = False
) -> Case:
    """The case of a query ``asked``, with the utterance ``said`` that ``stage`` was made for.

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
        tells = not listed and not asks(asked.text) and not asks(said.text)
        named = named_enough(graph, asked.named, grounds.named(naming), stranger=grounds.stranger and not listed, tells=tells)
    if named and not whole:
        return Case(named, (), 0, memories)
    if said is not asked:
        grounds = query_grounds(engine, said, scope)
    pool = top(stage.scores, weights.sentence_pool)
    grounds.load(pool)
    candidates = [(stage.cosines.get(memory_id, 0.0), grounds.covered(memory_id)) for memory_id in pool]
    return Case(named, candidates, grounds.stranger + tells, memories, said.direction is not None)


def _lists(signals: Signals) -> bool:
    """Whether the text is a list of words to look for, not a sentence: nothing but terms, two or more or one that names a key."""
    if not signals.named and len(signals.text.split()) < 2:
        return False
    rest = signals.text
    for surface in sorted((token.surface for token in signals.tokens), key=len, reverse=True):
        rest = rest.replace(surface, " ")
    return _BETWEEN.search(rest) is None
