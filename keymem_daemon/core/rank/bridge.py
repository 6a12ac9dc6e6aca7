"""The associative hop: from a memory that answers a part, over a key both share, to the one that answers the rest.

For each of the best hits h, each of its keys k that is specific enough, and each other memory c of k:

    s1(h) · IDF(k)^½ · link · (0.05 + residual(c | h) + 0.2 · sentence cosine(c))

``link`` is 1 when c is *about* k (its first key; more from a best hit that is far ahead, see lead.py), else 0.6, × 0.3 when k is in the query already, × the learned link weight; a
mention link counts as not about. ``related_to`` is a bridge of IDF and link 1. Each memory keeps its best bridge, and gains
twice it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Scope
from keymem_daemon.core.rank.firststage import Coverage, Mentions
from keymem_daemon.core.rank.weights import Weights, bridgeable


@dataclass(frozen=True, slots=True)
class Road:
    """All ways out of ``hit`` over one key (``None`` for related_to): each target with what its link is worth.

    ``score`` is the hit's, ``count`` how many memories the key has, ``repeated`` what a key that is in the query already counts.
    """

    hit: str
    key_id: str | None
    score: float
    count: int
    repeated: float
    strength: float
    targets: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Bridge:
    """The best way to a memory and what it is worth: ``road.strength × link × text``."""

    road: Road
    target: str
    value: float

    @property
    def hit(self) -> str:
        """Where the way begins."""
        return self.road.hit

    @property
    def key_id(self) -> str | None:
        """The key that it leads over; ``None`` for related_to."""
        return self.road.key_id

    @property
    def link(self) -> float:
        """What the target's link to the key is worth."""
        return self.road.targets[self.target]

    @property
    def text(self) -> float:
        """What the target's text is worth: base, what it answers of the rest, and its nearness."""
        return self.value / (self.road.strength * self.link) if self.road.strength * self.link else 0.0


def roads(
    graph: Graph,
    mentions: Mentions,
    hit: str,
    score: float,
    query_keys: Collection[str],
    scope: Scope,
    weights: Weights,
    *,
    about: float = 1.0,
) -> Iterator[Road]:
    """Every way out of ``hit``, whose score is ``score``; never back to itself. ``about`` is what links count of memories about a key.

    At most ``weights.bridge_roads`` of its keys, the most specific ones: a long text may speak of hundreds.
    """
    active = graph.active_count(scope)
    explicit = [link.key_id for link in graph.links_of(hit)]
    mentioned = sorted(mentions.mentioned_by(hit)) if weights.mention_links else ()
    counts: dict[str, int] = {}
    for key_id in dict.fromkeys((*explicit, *mentioned)):
        count = graph.memory_count(key_id, scope)
        # A key that only other namespaces hang on is no road of this one, though its name stands in the text.
        if count and bridgeable(count, active, weights):
            counts[key_id] = count
    if len(counts) > weights.bridge_roads:
        counts = dict(sorted(counts.items(), key=lambda entry: (entry[1], entry[0]))[: weights.bridge_roads])
    for key_id, count in counts.items():
        mentioning = mentions.mentions_of(key_id) if weights.mention_links else ()
        if len(mentioning) > 10 * weights.key_ceiling:
            continue
        targets = {
            link.memory_id: (about if link.position == 0 else weights.not_about) * link.weight for link in graph.active_members(key_id, scope)
        }
        for memory_id in mentioning:
            if memory_id not in targets and graph.in_scope(memory_id, scope):
                targets[memory_id] = weights.not_about
        if not bridgeable(len(targets), active, weights):
            continue
        targets.pop(hit, None)
        repeated = weights.key_in_query if key_id in query_keys else 1.0
        yield Road(hit, key_id, score, count, repeated, score / count**weights.bridge_specificity * repeated, targets)
    related = {target: 1.0 for target in graph.neighbours(hit) if target != hit and graph.in_scope(target, scope)}
    if related:
        yield Road(hit, None, score, 1, 1.0, score, related)


def best_bridges(
    ways: Iterable[Road], coverage: Coverage, cosines: Mapping[str, float], weights: Weights
) -> dict[str, Bridge]:
    """Per target its best bridge. ``coverage`` must know all hits and targets; a target without a cosine counts 0 for it."""
    best: dict[str, tuple[float, Road]] = {}
    base, sentence = weights.bridge_base, weights.bridge_sentence
    for road in ways:
        residual = coverage.residuals(road.hit)
        strength = road.strength
        for target, link in road.targets.items():
            value = strength * link * (base + residual(target) + sentence * cosines.get(target, 0.0))
            before = best.get(target)
            if before is None or value > before[0]:
                best[target] = (value, road)
    return {target: Bridge(road, target, value) for target, (value, road) in best.items()}
