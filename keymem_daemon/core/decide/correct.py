"""correct: a successor takes a memory's place, and provenance keeps one step.

The predecessor stays readable by id and in history, inactive and shallower; what *it* had superseded is pruned. Whoever
was related to the predecessor is related to the successor, so that no reference is left hanging.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from keymem_daemon.core.changes import MemoryAdded, MemoryChanged
from keymem_daemon.core.decide.keys import KeyRules, NearKey, hints_within, resolve, tie
from keymem_daemon.core.decide.limits import WantedKey
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.errors import InvalidArgument
from keymem_daemon.core.freshness import superseded_depth
from keymem_daemon.core.model import DecayProfile, Memory, Scope
from keymem_daemon.core.text import fold


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction that passed its limits; ``keys`` ``None`` inherits the predecessor's."""

    memory_id: str
    content: str
    keys: tuple[WantedKey, ...] | None
    dropped_keys: tuple[str, ...]
    expires_at: float | None
    decay_profile: DecayProfile | None
    related_to: tuple[str, ...]
    source: dict[str, str]


@dataclass(frozen=True, slots=True)
class Corrected:
    """``inherited`` names the keys that came along unasked, ``existing`` that the new text was known already."""

    new_id: str
    superseded: str
    inherited: tuple[str, ...]
    existing: bool
    near_keys: tuple[NearKey, ...] = ()


def decide_correct(plan: Plan, correction: Correction, stamp: Mapping[str, str], now: float, rules: KeyRules, scope: Scope) -> Corrected:
    """Decide what the correction changes; raises `NotFound`, `Superseded` or `InvalidArgument`, then the plan is void."""
    old = plan.active_memory("memory_id", correction.memory_id, scope)
    for related in correction.related_to:
        plan.active_memory("related_to", related, scope)
    if correction.content == old.content and correction.keys is None:
        raise InvalidArgument("content", "a text that differs from the memory's", "the same text", "To say that it still holds use confirm_memory.")
    known = plan.graph.same_text(old.namespace, correction.content)
    successor = known if known is not None and known.id != old.id else None
    new_id = successor.id if successor is not None else rules.new_id()
    inherited_links = plan.graph.links_of(old.id)
    _supersede(plan, old, new_id)
    links = tuple(dict.fromkeys(r for r in (*old.links, *correction.related_to) if r not in (old.id, new_id)))
    if successor is None:
        plan.make(
            MemoryAdded(
                Memory(
                    id=new_id,
                    content=correction.content,
                    namespace=old.namespace,
                    created_at=now,
                    last_confirmed_at=now,
                    decay_profile=correction.decay_profile or old.decay_profile,
                    expires_at=old.expires_at if correction.expires_at is None else correction.expires_at,
                    links=links,
                    contradicts=old.contradicts,
                    supersedes=old.id,
                    source={**stamp, **correction.source},
                )
            )
        )
    else:
        plan.make(
            MemoryChanged(
                replace(
                    successor,
                    links=tuple(dict.fromkeys((*successor.links, *links))),
                    decay_profile=correction.decay_profile or successor.decay_profile,
                    expires_at=successor.expires_at if correction.expires_at is None else correction.expires_at,
                    supersedes=old.id,
                )
            )
        )
        # Provenance is one step here, too: what the known text had replaced before gives way to what it replaces now.
        _prune(plan, successor.supersedes)
    near: list[NearKey] = []
    inherited: tuple[str, ...] = ()
    own = frozenset({fold(old.namespace)})
    weights = {link.key_id: link.weight for link in inherited_links}
    if correction.keys is None:
        tie(plan, new_id, [(link.key_id, word) for link in inherited_links for word in plan.graph.words_of(link)], weights)
        inherited = tuple(plan.graph.name_in(link.key_id, own) for link in inherited_links)
    else:
        named = []
        for wanted in correction.keys:
            key_id, hints = resolve(plan, wanted, rules)
            named.append((key_id, wanted.surface))
            near.extend(hints_within(plan, hints, own))
        tie(plan, new_id, named, weights)
    _refer_to_successor(plan, old.id, new_id)
    return Corrected(new_id, old.id, inherited, successor is not None, tuple(near))


def _supersede(plan: Plan, old: Memory, new_id: str) -> None:
    plan.make(MemoryChanged(replace(old, superseded_by=new_id, depth=superseded_depth(old.depth), supersedes=None)))
    _prune(plan, old.supersedes)


def _prune(plan: Plan, memory_id: str | None) -> None:
    if memory_id is not None and memory_id in plan.graph.memories:
        forget_references(plan, memory_id)
        plan.remove_memory(memory_id)


def _refer_to_successor(plan: Plan, old_id: str, new_id: str) -> None:
    for referrer in plan.graph.referrers(old_id):
        memory = plan.graph.memories[referrer]
        if old_id in memory.links and memory.superseded_by is None:
            links = dict.fromkeys(new_id if linked == old_id else linked for linked in memory.links)
            plan.make(MemoryChanged(replace(memory, links=tuple(linked for linked in links if linked != referrer))))


def forget_references(plan: Plan, memory_id: str) -> None:
    """No other memory names this one any more, as related, contradicted or superseded."""
    for referrer in plan.graph.referrers(memory_id):
        memory = plan.graph.memories[referrer]
        plan.make(
            MemoryChanged(
                replace(
                    memory,
                    links=tuple(linked for linked in memory.links if linked != memory_id),
                    contradicts=tuple(other for other in memory.contradicts if other != memory_id),
                    supersedes=None if memory.supersedes == memory_id else memory.supersedes,
                )
            )
        )
