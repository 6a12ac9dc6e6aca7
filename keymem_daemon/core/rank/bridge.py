"""The associative hop: from a memory that answers a part, over a key both share, to the one that answers the rest.

For each of the best hits h, each of its keys k that is specific enough, and each other memory c of k:

    s1(h) · IDF(k)^½ · link · (0.05 + residual(c | h) + 0.2 · sentence cosine(c))

``link`` is 1 when c is *about* k (its first key), else 0.6, × 0.3 when k is in the query already, × the learned link weight; a
mention link counts as not about. ``related_to`` is a bridge of IDF and link 1. Each memory keeps its best bridge, and gains
twice it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.firststage import Coverage, Mentions
from keymem_daemon.core.rank.weights import Weights, bridgeable


@dataclass(frozen=True, slots=True)
class Crossing:
    """One way from ``hit`` over ``key_id`` (``None`` for related_to) to ``target``; ``strength`` is all but the text's part."""

    hit: str
    key_id: str | None
    target: str
    strength: float


@dataclass(frozen=True, slots=True)
class Bridge:
    """The best crossing to a memory and what it is worth."""

    crossing: Crossing
    value: float


def crossings(
    graph: Graph, mentions: Mentions, hit: str, score: float, query_keys: Collection[str], scope: Scope, weights: Weights
) -> Iterator[Crossing]:
    """Every way out of ``hit``, whose score is ``score``; never back to itself."""
    active = graph.active_count(scope)
    explicit = [link.key_id for link in graph.links_of(hit)]
    mentioned = sorted(mentions.mentioned_by(hit)) if weights.mention_links else ()
    for key_id in dict.fromkeys((*explicit, *mentioned)):
        mentioning = mentions.mentions_of(key_id) if weights.mention_links else ()
        count = graph.memory_count(key_id, scope)
        # A key that only other namespaces hang on is no road of this one, though its name stands in the text.
        if not count or not bridgeable(count, active, weights) or len(mentioning) > 10 * weights.key_ceiling:
            continue
        ways = {
            link.memory_id: (1.0 if link.position == 0 else weights.not_about) * link.weight for link in graph.active_members(key_id, scope)
        }
        for memory_id in mentioning:
            if memory_id not in ways and graph.in_scope(memory_id, scope):
                ways[memory_id] = weights.not_about
        if not bridgeable(len(ways), active, weights):
            continue
        strength = score / count**weights.bridge_specificity * (weights.key_in_query if key_id in query_keys else 1.0)
        for target, way in ways.items():
            if target != hit:
                yield Crossing(hit, key_id, target, strength * way)
    for target in graph.neighbours(hit):
        if target != hit and graph.in_scope(target, scope):
            yield Crossing(hit, None, target, score)


def best_bridges(
    ways: Collection[Crossing], coverage: Coverage, cosines: Mapping[str, float], weights: Weights
) -> dict[str, Bridge]:
    """Per target its best bridge. ``coverage`` must know all hits and targets; a target without a cosine counts 0 for it."""
    best: dict[str, Bridge] = {}
    for way in ways:
        text = weights.bridge_base + coverage.residual(way.target, way.hit) + weights.bridge_sentence * cosines.get(way.target, 0.0)
        value = way.strength * text
        before = best.get(way.target)
        if before is None or value > before.value:
            best[way.target] = Bridge(way, value)
    return best
