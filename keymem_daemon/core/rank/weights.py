"""Every number of direct retrieval, in one place, with where it comes from.

Gains are those of the prototype on which each was chosen, on the dev sets, all else equal; `tests/eval` measures the engine.

Source of all defaults unless said otherwise: the reference design in the product's specification, measured on HotpotQA (100
questions over 994 paragraphs) and LoCoMo dev (631 questions, five conversations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """``keys`` and ``sentences`` weigh their normalised signals against the lexical one (1.0)."""

    keys: float = 0.3
    # 1.0 instead of the reference design's 0.7: with neighbours in play it gives LoCoMo dev 0.005 and Korean dev 0.08 of R@5.
    sentences: float = 1.0
    # A memory that is about somebody else than the one who is named: × 0.85, and once more if it does not even speak of that one. Gives
    # LoCoMo dev 0.008 of R@5, the others nothing. 0.87 and 0.9 give it 0.003 and 0.006 less.
    of_others: float = 0.85
    # What was saved right before or after, under a shared key, gains this share: LoCoMo dev + 0.012 of R@5, HotpotQA unchanged.
    neighbour: float = 0.2
    neighbour_pool: int = 60
    neighbour_seconds: float = 600.0
    # What the lead of the best memory adds: lead.py says what that is, and what each of the two gives.
    lead_gift: float = 1.5
    lead_road: float = 3.0
    sentence_pool: int = 50
    # A scope of at most so many memories is compared with the query whole, not only what words and keys lead to: signals.py says why and what
    # it gives. At 200 Korean dev, a space of 184, loses 0.125 of R@5. 0 switches it off.
    compared_whole: int = 50
    lexical_pool: int = 300
    expansion: float = 0.6
    expansion_floor: float = 0.5
    expansion_words: int = 8
    keys_per_phrase: int = 3
    # 2.0 and, below, 0.25 instead of 1.5 and 0.2: with neighbours in the first stage HotpotQA needs more of the second hop (+ 0.015).
    bridge: float = 2.0
    bridge_hits: int = 3
    # Keys of a hit that are crossed: a memory has at most 32 of its own, but a long text may mention hundreds. A bound on the
    # cost; no question of the dev sets comes near it.
    bridge_roads: int = 96
    # The power of IDF(k): its square root instead of itself gives HotpotQA 0.01 of R@5 and 0.01 of MRR.
    bridge_specificity: float = 0.5
    bridge_base: float = 0.05
    bridge_sentence: float = 0.2
    not_about: float = 0.6
    key_in_query: float = 0.3
    key_share: float = 0.02
    key_floor: int = 20
    # The specification gives a share of the store only; beyond 200 members a key says too little to be worth its cost.
    key_ceiling: int = 200
    mention_links: bool = True
    # Dates of a question of which no memory has a number: dates.py says why, and what it gives.
    drop_unknown_dates: bool = True
    overlap_penalty: float = 0.25
    selected: int = 10
    # Which of the first five comes first: first.py says what each is, tests/eval/fit.py learns them. LoCoMo dev hit@1 + 0.02.
    first_apart: float = 2.2
    first_alike: float = 1.4
    first_pairs: float = 0.13
    # Below: what recall shows, never the order of direct retrieval.
    gate_coverage: float = 0.15
    # For each sign that nothing answers: a stranger is named, nothing is asked. LoCoMo dev, names swapped, shown something: 36 % with 0.15,
    # 12 % with 0.25, 6 % with 0.3, which costs 0.005 more of what passes, and HotpotQA 0.011.
    gate_sign: float = 0.25
    # Per doubling of the store. The best of n strangers' cosines grows so: 0.014 (LoCoMo dev) to 0.019 (HotpotQA), 10 to 990 memories.
    gate_growth: float = 0.016
    # The power of a link's weight when memories of different keys are compared; within a key it counts in full.
    link_use: float = 0.25


def bridgeable(members: int, active: int, weights: Weights) -> bool:
    """Whether a key is specific enough to be crossed: at most max(20, 2 % of the store), never more than 200."""
    return members <= max(weights.key_floor, min(weights.key_ceiling, int(weights.key_share * active)))
