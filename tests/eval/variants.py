"""Our plan with one part taken out: what each part is worth. The parts are those of `Weights`; a variant changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from subjects import EngineSubject

from keymem_daemon.core.rank.weights import Weights

OURS: Final = "keymem"
TEXTBOOK: Final = "textbook plan (rrf)"

_FULL: Final = Weights()
ABLATIONS: Final = MappingProxyType(
    {
        "without the bridge": replace(_FULL, bridge_hits=0),
        "without mention links": replace(_FULL, mention_links=False),
        "without sentence cosine": replace(_FULL, sentences=0.0, bridge_sentence=0.0),
        "without dense candidates": replace(_FULL, compared_whole=0),
        "without vocabulary expansion": replace(_FULL, expansion=0.0),
        "without set selection": replace(_FULL, overlap_penalty=0.0),
        "without the learned first place": replace(_FULL, first_apart=0.0, first_alike=0.0, first_pairs=0.0),
        "without keys in the first stage": replace(_FULL, keys=0.0),
        "without neighbours": replace(_FULL, neighbour=0.0, lead_gift=0.0),
        "without the leader's gifts": replace(_FULL, lead_gift=0.0),
        "without the leader's roads": replace(_FULL, lead_road=0.0),
        "with dates that no memory knows": replace(_FULL, drop_unknown_dates=False),
        "without the named one's advantage": replace(_FULL, of_others=1.0),
    }
)


@contextmanager
def weighted(subject: EngineSubject, weights: Weights) -> Iterator[None]:
    """The engine with these weights for as long as the block runs."""
    engine = subject.engine
    before = engine.weights
    engine.weights = weights
    try:
        yield
    finally:
        engine.weights = before


@contextmanager
def textbook(subject: EngineSubject) -> Iterator[None]:
    """The engine with the textbook plan, as `KEYMEM_RETRIEVAL=rrf` sets it."""
    engine = subject.engine
    before = engine.settings
    engine.settings = replace(before, retrieval="rrf")
    try:
        yield
    finally:
        engine.settings = before
