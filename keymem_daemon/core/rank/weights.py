"""Every number of direct retrieval, in one place, with where it comes from.

Source of all defaults unless said otherwise: the reference design in the product's specification, measured on HotpotQA (100
questions over 994 paragraphs) and LoCoMo dev (631 questions, five conversations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """``keys`` and ``sentences`` weigh their normalised signals against the lexical one (1.0)."""

    keys: float = 0.3
    sentences: float = 0.7
    sentence_pool: int = 50
    lexical_pool: int = 300
    expansion: float = 0.6
    expansion_floor: float = 0.5
    expansion_words: int = 8
    keys_per_phrase: int = 3
    bridge: float = 1.5
    bridge_hits: int = 3
    bridge_base: float = 0.05
    bridge_sentence: float = 0.2
    not_about: float = 0.6
    key_in_query: float = 0.3
    key_share: float = 0.02
    key_floor: int = 20
    # The specification gives a share of the store only; beyond 200 members a key says too little to be worth its cost.
    key_ceiling: int = 200
    mention_links: bool = True
    overlap_penalty: float = 0.2
    selected: int = 10
    gate_coverage: float = 0.15


def bridgeable(members: int, active: int, weights: Weights) -> bool:
    """Whether a key is specific enough to be crossed: at most max(20, 2 % of the store), never more than 200."""
    return members <= max(weights.key_floor, min(weights.key_ceiling, int(weights.key_share * active)))
