"""Which key a string becomes: an existing one, a merged one, a promoted one or a new one.

One surface string is one key, whatever its type. A wrong merge loses meaning for good, a missed one costs a hint, so that
everything beyond equal spelling is decided by `core.merging` and anything in doubt stays apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from keymem_daemon.core.changes import KeyAdded, KeyChanged, KeyRemoved, LinkSet
from keymem_daemon.core.decide.limits import WantedKey
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.lexicon import Lexicon
from keymem_daemon.core.merging import Create, MergeInto, Neighbour, decide_by_similarity, merge_groups
from keymem_daemon.core.model import Key, Link
from keymem_daemon.core.profiles import Profile
from keymem_daemon.core.text import fold


class Similarity(Protocol):
    """Cosine between the surfaces of a request and everything they could be merged with; the vectors are the caller's."""

    def neighbours(self, surface: str) -> Sequence[Neighbour]:
        """Concept keys near the surface, best first, those decided earlier in the same plan included."""
        ...

    def lexicon(self, surface: str) -> Sequence[tuple[str, float]]:
        """Words of the lexicon near the surface, best first."""
        ...

    def mutual(self, surface: str, key_id: str) -> bool:
        """Whether no key in the surface's script is nearer to that key than the surface is."""
        ...

    def created(self, key_id: str, surface: str) -> None:
        """A key of that surface was decided: from here on it is a neighbour, too."""
        ...


@dataclass(frozen=True, slots=True)
class KeyRules:
    """What key decisions need beside the graph."""

    profile: Profile
    lexicon: Lexicon
    similarity: Similarity
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class NearKey:
    """A hint: a new key nearly duplicates an existing concept."""

    your_key: str
    existing_concept: str
    key_id: str
    similarity: float


def resolve(plan: Plan, wanted: WantedKey, rules: KeyRules) -> tuple[str, tuple[NearKey, ...]]:
    """The id of the key for ``wanted``, made or changed in the plan where needed, and hints on near duplicates."""
    existing = plan.graph.key_of_surface(wanted.surface)
    if existing is not None:
        if wanted.key_type != "concept" and existing.key_type == "concept":
            plan.make(KeyChanged(replace(existing, key_type=wanted.key_type)))
        return existing.id, ()
    near: tuple[NearKey, ...] = ()
    if wanted.key_type == "concept":
        grouped = next((k for g in merge_groups(wanted.surface, rules.lexicon) for k in concepts_in_group(plan, g)), None)
        if grouped is not None:
            return _joined(plan, grouped, wanted.surface), ()
        # What spelling and groups can tell the graph's tables have told.
        match decide_by_similarity(
            wanted.surface,
            rules.similarity.neighbours(wanted.surface),
            rules.profile,
            rules.lexicon,
            lambda: rules.similarity.lexicon(wanted.surface),
            lambda key_id: rules.similarity.mutual(wanted.surface, key_id),
        ):
            case MergeInto(key_id, _):
                return _joined(plan, key_id, wanted.surface), ()
            case Create(neighbours):
                near = tuple(NearKey(wanted.surface, n.concept, n.key_id, n.similarity) for n in neighbours)
    key = Key(id=rules.new_id(), concept=wanted.surface, key_type=wanted.key_type)
    plan.make(KeyAdded(key))
    if wanted.key_type == "concept":
        rules.similarity.created(key.id, wanted.surface)
    return key.id, near


def hints_within(plan: Plan, hints: Iterable[NearKey], scope: frozenset[str]) -> Iterator[NearKey]:
    """The hints on keys of the scope, in its own words: a concept of another namespace is none of this one's business."""
    for hint in hints:
        name = plan.graph.name_in(hint.key_id, scope)
        if name:
            yield replace(hint, existing_concept=name)


def concepts_in_group(plan: Plan, group: str) -> list[str]:
    """Ids of the concept keys that are one whatever their spelling, by the group's name."""
    return [key_id for key_id in plan.graph.keys_in_group(group) if plan.graph.keys[key_id].key_type == "concept"]


def _joined(plan: Plan, key_id: str, surface: str) -> str:
    """Merge: the surface becomes an alias of the key."""
    key = plan.graph.keys[key_id]
    plan.make(KeyChanged(replace(key, aliases=(*key.aliases, surface))))
    return key_id


def tie(plan: Plan, memory_id: str, named: Iterable[tuple[str, str]], weights: Mapping[str, float] | None = None) -> None:
    """Link the memory to each key, named (key id, surface), that it does not have yet, after those it has, in the words that it says."""
    position = max((link.position for link in plan.graph.links_of(memory_id)), default=-1) + 1
    said: dict[str, list[str]] = {}
    for key_id, surface in named:
        said.setdefault(key_id, []).append(surface)
    for key_id, surfaces in said.items():
        _lasting(plan, key_id, surfaces)
        concept = plan.graph.keys[key_id].concept
        link = plan.graph.link(key_id, memory_id)
        words = _worded(concept, [*(() if link is None else plan.graph.words_of(link)), *surfaces])
        if link is None:
            plan.make(LinkSet(Link(key_id, memory_id, (weights or {}).get(key_id, 1.0), position, words)))
            position += 1
        elif link.surfaces != words:
            plan.make(LinkSet(replace(link, surfaces=words)))


def _lasting(plan: Plan, key_id: str, surfaces: Sequence[str]) -> None:
    """What a memory is tied with is the key's for good: no alias that use has taught and want of use takes away."""
    key = plan.graph.keys[key_id]
    own = {fold(surface) for surface in (key.concept, *key.aliases)}
    new = {fold(surface): surface for surface in surfaces if fold(surface) not in own}
    if new:
        learned = tuple(alias for alias in key.learned if fold(alias.alias) not in new)
        plan.make(KeyChanged(replace(key, aliases=(*key.aliases, *new.values()), learned=learned)))


def _worded(concept: str, surfaces: Sequence[str]) -> tuple[str, ...]:
    """`Link.surfaces` of a link said in these words: each once, however it is written, and none where the concept is all there is."""
    said: dict[str, str] = {}
    for surface in surfaces:
        said.setdefault(fold(surface), surface)
    words = tuple(said.values())
    return () if words == (concept,) else words


def drop_if_orphaned(plan: Plan, key_id: str) -> None:
    """A key with no memory left is removed."""
    if not plan.graph.members(key_id):
        plan.make(KeyRemoved(key_id))
