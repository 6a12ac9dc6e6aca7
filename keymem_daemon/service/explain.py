"""Why a memory is where it is: what each signal contributed, what it was multiplied with, and the way that led to it.

An explanation adds up: the sum of all ``amount`` times the product of all factors is the ``score`` that was ranked by (to a
millionth; a test holds that for random stores). Each contribution is ``value × weight``, and ``× lowered`` where a memory of somebody
else than the one who is named was lowered. Nothing here ranks: all numbers are those that the ranking used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose, prod
from typing import Any, Final

from keymem_daemon.core.freshness import depth_factor, freshness_factor
from keymem_daemon.core.model import Memory, Scope
from keymem_daemon.core.rank.bridge import Bridge
from keymem_daemon.core.rank.keymatch import inverse_frequency, top
from keymem_daemon.core.rank.textbook import HOP_FACTOR, RANK_CONSTANT
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.ranking import Ranked, found_by_itself
from keymem_daemon.service.signals import FirstStage, Signals

__all__ = ["explained", "explained_preview"]

KEYS_NAMED: Final = 6
TERMS_NAMED: Final = 16
EXCERPT: Final = 80
_DIGITS: Final = 9

Part = dict[str, Any]


def explained(
    engine: Engine, memory_id: str, found: Ranked, selected: float, final: float, scope: Scope, now: float
) -> Part:
    """Why direct retrieval gave the memory the score ``final``, having selected it with another, or the same."""
    memory = engine.graph.memories[memory_id]
    if found.score_kind == "rrf_fused_rank":
        contributions = _by_rank(engine, memory_id, found, scope)
    else:
        contributions = _first_stage(engine, memory_id, found.stage, found.signals, scope, engine.weights)
        bridge = found.bridges.get(memory_id)
        if bridge is not None:
            contributions.append(_over_bridge(engine, bridge, found, scope, engine.weights))
    factors = _time_factors(engine, memory, now)
    before = found.scores[memory_id]
    factors.append({"factor": "new_to_the_set", "value": selected / before if before else 1.0})
    factors += _by_place(final, selected)
    return {**_summed(contributions, factors), "path": _path(engine, memory_id, found.bridges, found.signals, scope)}


def explained_preview(
    engine: Engine,
    memory: Memory,
    key_id: str,
    support: float,
    scored: Mapping[str, float],
    stage: FirstStage,
    said: Signals,
    scope: Scope,
    now: float,
) -> Part:
    """Why recall previews the memory under the key; ``support`` is what its candidates were ordered by, ``scored`` are the memories' own.

    The contributions alone add up to its content_relevance.
    """
    contributions = _first_stage(engine, memory.id, stage, said, scope, engine.weights)
    factors = _time_factors(engine, memory, now)
    link = engine.graph.link(key_id, memory.id)
    found = stage.scores.get(memory.id, 0.0) * prod(factor["value"] for factor in factors)
    before = scored.get(memory.id, 0.0)
    factors += _by_place(before, found)
    by_link: Part = {"factor": "link", "value": support / before if before else 1.0}
    if link is not None:
        by_link["link_weight"] = _rounded(link.weight)
    factors.append(by_link)
    step = {**_key_step(engine, key_id, scope), "match": _match(key_id, said)}
    return {**_summed(contributions, factors), "path": [step, _memory_step(engine, memory.id)]}


def _by_place(final: float, before: float) -> list[Part]:
    """The factor of a memory that has another place among the first five than its score would have given it; else none."""
    return [{"factor": "among_the_first", "value": final / before}] if before and not isclose(final, before) else []


def _summed(contributions: Sequence[Part], factors: Sequence[Part]) -> Part:
    """The parts, rounded, with what they come to."""
    total = sum(part["amount"] for part in contributions)
    return {
        "score": _rounded(total * prod(factor["value"] for factor in factors)),
        "formula": "score = sum of the amounts × product of the factors",
        "sum": _rounded(total),
        "contributions": [_shown(part) for part in contributions],
        "factors": [_shown(factor) for factor in factors],
    }


def _first_stage(
    engine: Engine, memory_id: str, stage: FirstStage, signals: Signals, scope: Scope, weights: Weights
) -> list[Part]:
    """The signals of the memory's own text and keys, and what a neighbour gave."""
    stage.coverage.load([memory_id])
    lowered = stage.lowered.get(memory_id, 1.0)
    terms = sorted(stage.coverage.terms(memory_id))[:TERMS_NAMED]
    signal_parts: tuple[tuple[str, Mapping[str, float], float, Part], ...] = (
        ("lexical", stage.lexical, 1.0, {"terms": terms}),
        ("keys", stage.keys, weights.keys, {"keys": _keys(engine, memory_id, signals, scope)}),
        ("sentence", stage.near, weights.sentences, {}),
    )
    contributions: list[Part] = []
    for name, raw, weight, more in signal_parts:
        if (value := raw.get(memory_id, 0.0)) > 0.0 and memory_id in stage.alone:
            share = value / max(raw.values())
            part = {
                "signal": name,
                "value": share,
                "weight": weight / 2,
                "amount": share * weight / 2 * lowered,
                "raw": value,
                **more,
            }
            contributions.append(part if lowered == 1.0 else {**part, "lowered": lowered})
    gift = stage.gifts.get(memory_id)
    if gift is not None:
        given = gift.amount / gift.share
        contributions.append(
            {
                "signal": "neighbour",
                "value": given,
                "weight": gift.share,
                "amount": gift.amount,
                "memory_id": gift.giver,
            }
        )
    return contributions


def _keys(engine: Engine, memory_id: str, signals: Signals, scope: Scope) -> list[Part]:
    """The memory's keys that the query names or means, those that say most first."""
    similarities = signals.key_similarities()
    hub = engine.settings.key_hub_min_links
    worth = {
        key_id: similarities[key_id] * inverse_frequency(engine.graph, key_id, scope, hub)
        for key_id in engine.graph.key_ids_of(memory_id)
        if key_id in similarities
    }
    return [
        {
            **_key_step(engine, key_id, scope),
            "match": _match(key_id, signals),
            "similarity": _rounded(similarities[key_id]),
            "worth": _rounded(worth[key_id]),
        }
        for key_id in top(worth, KEYS_NAMED)
    ]


def _over_bridge(engine: Engine, bridge: Bridge, found: Ranked, scope: Scope, weights: Weights) -> Part:
    """What came over the best bridge: ``value`` is the product of its parts."""
    road = bridge.road
    return {
        "signal": "bridge",
        "value": bridge.value,
        "weight": weights.bridge,
        "amount": weights.bridge * bridge.value,
        "memory_id": road.hit,
        **({"related_to": True} if road.key_id is None else _key_step(engine, road.key_id, scope)),
        "parts": {
            "hit_score": _rounded(road.score),
            "specificity": _rounded(1 / road.count**weights.bridge_specificity),
            "key_in_query": _rounded(road.repeated),
            "link": _rounded(bridge.link),
            "text": _rounded(bridge.text),
        },
        "sentence_cosine": _rounded(found.stage.cosines.get(bridge.target, 0.0)),
    }


def _by_rank(engine: Engine, memory_id: str, found: Ranked, scope: Scope) -> list[Part]:
    """The textbook plan: a memory's places in both lists, or the step that reached it."""
    step = found.steps.get(memory_id)
    if step is not None:
        part = {
            "signal": "expansion",
            "value": step.score,
            "weight": HOP_FACTOR,
            "amount": HOP_FACTOR * step.score,
            "memory_id": step.parent,
        }
        return [{**part, **_key_step(engine, step.key_id, scope)}]
    contributions: list[Part] = []
    for name, signal in (("lexical_rank", found.stage.lexical), ("key_rank", found.stage.keys)):
        if memory_id in signal:
            rank = top(signal, len(signal)).index(memory_id) + 1
            value = 1 / (RANK_CONSTANT + rank)
            contributions.append({"signal": name, "value": value, "weight": 1.0, "amount": value, "rank": rank})
    return contributions


def _time_factors(engine: Engine, memory: Memory, now: float) -> list[Part]:
    return [
        {"factor": "depth", "value": depth_factor(memory)},
        {"factor": "freshness", "value": freshness_factor(memory, now, engine.settings.half_lives)},
    ]


def _path(engine: Engine, memory_id: str, bridges: Mapping[str, Bridge], signals: Signals, scope: Scope) -> list[Part]:
    """From the query to the memory: the key that it came in by (none when it came by its words), then memories and keys in turn.

    Before the last there are as many memories as its ``hop`` says.
    """
    steps: list[Part] = [_memory_step(engine, memory_id)]
    at, seen = memory_id, {memory_id}
    while (
        (bridge := bridges.get(at)) is not None and bridge.hit not in seen and not found_by_itself(at, engine, signals)
    ):
        over: Part = {"related_to": True} if bridge.key_id is None else _key_step(engine, bridge.key_id, scope)
        if bridge.key_id is not None and engine.graph.link(bridge.key_id, at) is None:
            over["mentioned"] = True
        steps += [over, _memory_step(engine, bridge.hit)]
        seen.add(bridge.hit)
        at = bridge.hit
    similarities = signals.key_similarities()
    own = {key_id: similarities[key_id] for key_id in engine.graph.key_ids_of(at) if key_id in similarities}
    if own:
        entry = top(own, 1)[0]
        steps.append({**_key_step(engine, entry, scope), "match": _match(entry, signals)})
    return steps[::-1]


def _match(key_id: str, signals: Signals) -> str:
    named = signals.named.get(key_id)
    return named.match_type if named is not None else "semantic" if key_id in signals.meant else "lexical"


def _key_step(engine: Engine, key_id: str, scope: Scope) -> Part:
    return {"key_id": key_id, "concept": engine.graph.name_in(key_id, scope) if key_id in engine.graph.keys else ""}


def _memory_step(engine: Engine, memory_id: str) -> Part:
    memory = engine.graph.memory(memory_id)
    text = "" if memory is None else " ".join(memory.content[: 2 * EXCERPT].split())
    return {"memory_id": memory_id, "text": text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"}


def _shown(part: Part) -> Part:
    return {name: _rounded(value) if isinstance(value, float) else value for name, value in part.items()}


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
