"""Whether a new key is an existing one: the merge rule, pure.

A wrong merge loses meaning for good, a missed one costs a hint; every step here prefers the latter. In order:

1. equal spelling (folded), whatever the types: one surface string is one key;
2. equal but for an English plural (`plurals.stem_key`);
3. the same group of the shipped lexicon (`lexicon`);
4. similarity, by the rule of the model's profile. The builtin encoder's cosine is trusted across scripts only: at least the
   merge threshold, the two each other's nearest, the next candidate (among the keys and the lexicon's words) a margin away,
   equal qualifiers and digits, neither a member of a closed class nor a word of two meanings, and not known to the lexicon as
   two concepts. Other models'
   cosines are trusted above their thresholds under the same guards, without the margin.

Names and proper nouns take part in the first step only. What similarity nearly merged is returned as ``near``: it becomes a
hint. So does a key of the same script beyond the merge threshold: most such pairs are synonyms, but too many are not. The thresholds are in `profiles`; embedding, searching and the order of writes are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from keymem_daemon.core.closed_classes import closed_class, is_ambiguous, qualifiers
from keymem_daemon.core.lexicon import Lexicon
from keymem_daemon.core.plurals import stem_key
from keymem_daemon.core.profiles import Profile
from keymem_daemon.core.text import fold, scripts, word_count

__all__ = ["MARGIN", "Create", "MergeInto", "Neighbour", "crosses_scripts", "decide_by_similarity", "decide_merge", "merge_groups", "stem_key"]

MARGIN: Final = 0.10
"""Cosine by which the best candidate must lead the next one of its script. Source: the specification's 205 labelled pairs."""

_SHORT_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An existing key near a new surface; ``similarity`` is the best cosine of the new surface to any of its surfaces."""

    key_id: str
    concept: str
    aliases: tuple[str, ...]
    key_type: str
    similarity: float

    @property
    def surfaces(self) -> tuple[str, ...]:
        """Every string that is this key, the concept first."""
        return (self.concept, *self.aliases)


@dataclass(frozen=True, slots=True)
class MergeInto:
    """The surface is this existing key; it becomes an alias of it unless it is one already."""

    key_id: str
    reason: Literal["exact", "stem", "lexicon", "cross_script", "threshold"]


@dataclass(frozen=True, slots=True)
class Create:
    """The surface is a key of its own. ``near`` are existing keys that it may duplicate, best first: hints only."""

    near: tuple[Neighbour, ...] = ()


def merge_groups(surface: str, lexicon: Lexicon) -> tuple[str, ...]:
    """Names of the groups within which concept keys are one key whatever their vectors: its plural's, its lexicon entry's.

    The prefixes keep the two kinds apart, so that a table of groups can answer steps 2 and 3 without any neighbour.
    """
    group = lexicon.group(surface)
    stem = f"stem:{stem_key(surface)}"
    return (stem,) if group is None else (stem, f"lexicon:{group}")


def crosses_scripts(a: str, b: str) -> bool:
    """Whether two surfaces have letters and share no script: the only case in which the builtin cosine may merge."""
    return _apart(scripts(a), scripts(b))


def _apart(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    return bool(ours) and bool(theirs) and ours.isdisjoint(theirs)


def _groups(neighbour: Neighbour, lexicon: Lexicon) -> frozenset[str]:
    return frozenset(group for surface in neighbour.surfaces if (group := lexicon.group(surface)) is not None)


def _distinct(surface: str, neighbour: Neighbour, lexicon: Lexicon) -> bool:
    """Whether the two are known to be different things, whatever their similarity."""
    if any(closed_class(form) is not None for form in (surface, *neighbour.surfaces)):
        return True
    if sorted(qualifiers(surface)) != sorted(qualifiers(neighbour.concept)):
        return True
    group, groups = lexicon.group(surface), _groups(neighbour, lexicon)
    return group is not None and bool(groups) and group not in groups


def _rivals(
    best: Neighbour, others: Sequence[Neighbour], lexicon: Lexicon, words: Sequence[tuple[str, float]]
) -> Iterator[float]:
    """Similarities of the candidates beside ``best`` that share a script with it and are not another form of it."""
    script = scripts(best.concept)
    known, groups = {stem_key(surface) for surface in best.surfaces}, _groups(best, lexicon)
    yield from (other.similarity for other in others if any(scripts(form) & script for form in other.surfaces))
    for word, similarity in words:
        if scripts(word) & script and stem_key(word) not in known and lexicon.group(word) not in groups:
            yield similarity


def _across_scripts(
    surface: str,
    neighbours: Sequence[Neighbour],
    profile: Profile,
    lexicon: Lexicon,
    lexicon_similarities: Callable[[], Sequence[tuple[str, float]]],
    mutual_nearest: Callable[[str], bool],
) -> MergeInto | Create:
    # A key that has a form in the surface's script already may owe its similarity to that form: not across scripts.
    ours = scripts(surface)
    best = next((n for n in neighbours if all(_apart(ours, scripts(form)) for form in n.surfaces)), None)
    if best is None:
        return Create()
    others = [neighbour for neighbour in neighbours if neighbour is not best]
    if best.similarity < profile.near or best.key_type != "concept" or _distinct(surface, best, lexicon):
        return Create()
    runner_up = max(_rivals(best, others, lexicon, lexicon_similarities()), default=0.0)
    if best.similarity - runner_up < MARGIN:
        return Create()
    certain = not any(map(is_ambiguous, (surface, *best.surfaces)))
    if certain and best.similarity >= profile.key_merge and mutual_nearest(best.key_id):
        return MergeInto(best.key_id, "cross_script")
    return Create((best,))


def _synonym(surface: str, concepts: Sequence[Neighbour], profile: Profile, lexicon: Lexicon) -> Create:
    """The nearest key with a form in the surface's script, as a hint, when it is as near as a synonym is."""
    best = next((n for n in concepts if any(scripts(surface) & scripts(form) for form in n.surfaces)), None)
    if best is None or best.similarity < profile.key_merge or _distinct(surface, best, lexicon):
        return Create()
    return Create((best,))


def _by_threshold(
    surface: str, neighbours: Sequence[Neighbour], profile: Profile, lexicon: Lexicon
) -> MergeInto | Create:
    candidates = [
        neighbour
        for neighbour in neighbours
        if neighbour.key_type == "concept"
        and neighbour.similarity >= profile.near
        and not _distinct(surface, neighbour, lexicon)
    ]
    for neighbour in candidates:
        short = min(word_count(surface), word_count(neighbour.concept)) <= _SHORT_WORDS
        threshold = profile.short_key_merge if short else profile.key_merge
        if threshold > 0.0 and neighbour.similarity >= threshold:
            return MergeInto(neighbour.key_id, "threshold")
    return Create(tuple(candidates))


def decide_merge(
    surface: str,
    key_type: str,
    neighbours: Sequence[Neighbour],
    profile: Profile,
    lexicon: Lexicon,
    lexicon_similarities: Callable[[], Sequence[tuple[str, float]]],
    mutual_nearest: Callable[[str], bool],
) -> MergeInto | Create:
    """What becomes of a new ``surface`` among the existing keys nearest to it.

    ``neighbours``: best first; at least the few nearest of every script, names included (they count as candidates that a
    concept may be confused with). ``lexicon_similarities``: cosine of the surface to the lexicon's words, asked for at most
    once and only when a merge is in reach; an empty answer is sound for a full store only. ``mutual_nearest(key_id)``: whether
    no other key of the surface's script is nearer to that key than the surface is.
    """
    folded = fold(surface)
    for neighbour in neighbours:
        if any(fold(form) == folded for form in neighbour.surfaces):
            return MergeInto(neighbour.key_id, "exact")
    if key_type != "concept":
        return Create()
    concepts = [neighbour for neighbour in neighbours if neighbour.key_type == "concept"]
    stem = stem_key(surface)
    for neighbour in concepts:
        if any(stem_key(form) == stem for form in neighbour.surfaces):
            return MergeInto(neighbour.key_id, "stem")
    group = lexicon.group(surface)
    if group is not None:
        for neighbour in concepts:
            if group in _groups(neighbour, lexicon):
                return MergeInto(neighbour.key_id, "lexicon")
    return decide_by_similarity(surface, neighbours, profile, lexicon, lexicon_similarities, mutual_nearest)


def decide_by_similarity(
    surface: str,
    neighbours: Sequence[Neighbour],
    profile: Profile,
    lexicon: Lexicon,
    lexicon_similarities: Callable[[], Sequence[tuple[str, float]]],
    mutual_nearest: Callable[[str], bool],
) -> MergeInto | Create:
    """As `decide_merge`, for a concept that is known to share neither spelling nor group with any key: the last step alone."""
    if profile.across_scripts_only:
        decision = _across_scripts(surface, neighbours, profile, lexicon, lexicon_similarities, mutual_nearest)
        if decision != Create():
            return decision
        return _synonym(surface, [n for n in neighbours if n.key_type == "concept"], profile, lexicon)
    return _by_threshold(surface, neighbours, profile, lexicon)
