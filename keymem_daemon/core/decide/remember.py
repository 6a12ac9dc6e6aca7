"""remember: a new memory, or the same one again.

A memory whose normalized text an active memory of the namespace already has is that memory: it gains the new keys, related
ids and an explicit TTL or profile, and nothing else changes. A paraphrase is another memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keymem_daemon.core.changes import MemoryAdded, MemoryChanged
from keymem_daemon.core.decide.keys import KeyRules, NearKey, hints_within, resolve, tie
from keymem_daemon.core.decide.limits import (
    WantedKey,
    checked_content,
    checked_expiry,
    checked_keys,
    checked_namespace,
    checked_profile,
    checked_related,
    checked_source,
)
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.model import DecayProfile, Memory, Scope
from keymem_daemon.core.text import Script, fold, scripts, word_count


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A request that passed its limits: what `decide_remember` takes."""

    content: str
    keys: tuple[WantedKey, ...]
    dropped_keys: tuple[str, ...]
    namespace: str
    expires_at: float | None
    decay_profile: DecayProfile | None
    related_to: tuple[str, ...]
    source: dict[str, str]


@dataclass(frozen=True, slots=True)
class Hints:
    """What the agent should know about the keys it chose; empty when there is nothing to say."""

    near_keys: tuple[NearKey, ...] = ()
    phrase_keys: tuple[str, ...] = ()
    language_note: str | None = None
    dropped_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """Saved as a new memory."""

    memory_id: str
    hints: Hints = field(default_factory=Hints)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """It was there already; what was new about the request was added to it."""

    memory_id: str
    hints: Hints = field(default_factory=Hints)


def checked_memory(
    content: str,
    keys: Sequence[str],
    key_types: Mapping[str, str],
    namespace: str | None,
    ttl_seconds: float | None,
    decay_profile: str | None,
    related_to: Sequence[str],
    source: Mapping[str, str] | None,
    now: float,
) -> NewMemory:
    """The request if everything about it is within limits; raises the error that names the first thing that is not."""
    text = checked_content(content)
    wanted, dropped = checked_keys(keys, key_types)
    return NewMemory(
        content=text,
        keys=wanted,
        dropped_keys=dropped,
        namespace=checked_namespace(namespace),
        expires_at=checked_expiry(ttl_seconds, now),
        decay_profile=checked_profile(decay_profile),
        related_to=checked_related(related_to),
        source=checked_source(source),
    )


def decide_remember(
    plan: Plan, new: NewMemory, stamp: Mapping[str, str], now: float, rules: KeyRules, reach: Scope = None
) -> Remembered | Duplicate:
    """Decide what saving ``new`` changes. ``stamp`` is the provenance that the caller's own ``source`` wins over.

    ``reach`` is what the caller may name as related, beside the memories of the new one's own namespace.
    """
    scope = frozenset({fold(new.namespace)})
    for related in new.related_to:
        plan.active_memory("related_to", related, None if reach is None else reach | scope)
    note = _language_note(plan, new, scope)
    same = plan.graph.same_text(new.namespace, new.content)
    memory_id = same.id if same is not None else rules.new_id()
    if same is None:
        memory = Memory(
            id=memory_id,
            content=new.content,
            namespace=new.namespace,
            created_at=now,
            last_confirmed_at=now,
            decay_profile=new.decay_profile or "standard",
            expires_at=new.expires_at,
            links=new.related_to,
            source={**stamp, **new.source},
        )
        plan.make(MemoryAdded(memory))
    else:
        _extend(plan, same, new)
    near: list[NearKey] = []
    named: list[tuple[str, str]] = []
    for wanted in new.keys:
        key_id, hints = resolve(plan, wanted, rules)
        named.append((key_id, wanted.surface))
        near.extend(hints_within(plan, hints, scope))
    tie(plan, memory_id, named)
    hints_ = Hints(tuple(near), tuple(k.surface for k in new.keys if word_count(k.surface) > 2), note, new.dropped_keys)
    return Remembered(memory_id, hints_) if same is None else Duplicate(memory_id, hints_)


def _extend(plan: Plan, same: Memory, new: NewMemory) -> None:
    extended = replace(
        same,
        links=tuple(dict.fromkeys((*same.links, *(r for r in new.related_to if r != same.id)))),
        expires_at=same.expires_at if new.expires_at is None else new.expires_at,
        decay_profile=new.decay_profile or same.decay_profile,
    )
    if extended != same:
        plan.make(MemoryChanged(extended))


def _language_note(plan: Plan, new: NewMemory, scope: frozenset[str]) -> str | None:
    """A note when every key is in one script although the namespace is used in another: at least a tenth of its keys are.

    A share and no count: a namespace is bilingual from its first memories on, and a stray name in a large one does not make it so.
    """
    used = {script for key in new.keys for script in scripts(key.surface)}
    if len(used) != 1:
        return None
    (own,) = used
    counts: dict[Script, int] = plan.graph.scripts_in(scope)
    total = sum(counts.values())
    others = [script for script, count in counts.items() if script != own and count * 10 >= total]
    if not others:
        return None
    return f"All keys are in {own} script, and this namespace is also used in {', '.join(sorted(others))}: add the same concepts in that language."
