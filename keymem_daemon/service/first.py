"""The second look at the first five, of direct retrieval and of recall's preview; what becomes of it is decided in core/rank/first.py."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from keymem_daemon.core.rank.first import FIRST, Look, pairs_in, with_learned_first, word_pairs
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.deadline import Deadline
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.signals import FirstStage, Signals, sentence_cosines

AMONG: Final = 20
"""Candidates that a memory is seen among: the first ones of the pool for the sentence cosine, which words and keys lead to most."""

Chosen = list[tuple[str, float]]


async def learned_first(
    engine: Engine,
    signals: Signals,
    stage: FirstStage,
    chosen: Sequence[tuple[str, float]],
    weights: Weights,
    due: Deadline,
) -> Chosen:
    """``chosen`` with the learned one of its first five in front; as it is without vectors or a second candidate."""
    looks = await first_looks(engine, signals, stage, [m for m, _ in chosen[:FIRST]], due)
    return with_learned_first(chosen, looks, weights)


async def first_looks(
    engine: Engine, signals: Signals, stage: FirstStage, first: Sequence[str], due: Deadline
) -> dict[str, Look]:
    """What a second look shows of each of these memories that has vectors in time; the candidates are those of the first stage."""
    if signals.direction is None or len(first) < 2:
        return {}
    if engine.sentences.lacks(first):
        await sentence_cosines(engine, first, signals.direction, due)
    asked = word_pairs(signals.text)
    return {
        m: Look(apart, alike, pairs_in(asked, engine.graph.memories[m].content))
        for m, (apart, alike) in engine.sentences.among(
            first, list(islice(stage.near, AMONG)), signals.direction
        ).items()
        if m in engine.graph.memories
    }
