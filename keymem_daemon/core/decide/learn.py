"""Learning missing vocabulary: a query that keeps leading through a weakly matched key becomes its alias, or a key itself.

It confirms routing only, never freshness. An alias is as dangerous as a merge, so the same rule decides: a query that would
merge into the key becomes its alias, any other becomes a key of its own beside it, tied to the memory that was read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from keymem_daemon.core.changes import KeyAdded, KeyChanged
from keymem_daemon.core.decide.keys import KeyRules, concepts_in_group, tie
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.merging import MergeInto, decide_by_similarity, merge_groups
from keymem_daemon.core.model import AliasCandidate, Key, LearnedAlias
from keymem_daemon.core.text import fold, usable_key, word_count

ALIAS_WORDS: Final = 3
ALIAS_CHARS: Final = 40
CANDIDATES_PER_KEY: Final = 16


@dataclass(frozen=True, slots=True)
class LearningRules:
    """How often a route must be taken and how much a key may learn (``KEYMEM_AUTOKEY_*``)."""

    promote_n: int = 3
    max_aliases: int = 8
    prune_age_s: float = 30 * 86_400.0


Learned = Literal["nothing", "counted", "alias", "key"]


def learnable(query: str) -> bool:
    """Whether a query is short enough to be a key: at most three words and forty characters."""
    return usable_key(query) and word_count(query) <= ALIAS_WORDS and len(query) <= ALIAS_CHARS


def decide_learn(
    plan: Plan, key_id: str, memory_id: str, query: str, similarity: float, now: float, learning: LearningRules, rules: KeyRules
) -> Learned:
    """Count that ``query`` led through the key to the memory, and promote it when it has done so often enough.

    ``similarity`` is the cosine of query and key, as recall saw it.
    """
    key = plan.graph.keys[key_id]
    folded = fold(query)
    if not learnable(folded) or folded in {fold(surface) for surface in key.surfaces}:
        return "nothing"
    space = fold(plan.graph.memories[memory_id].namespace)
    before = next((c for c in key.candidates if (c.query, c.namespace) == (folded, space)), None)
    count = 1 if before is None else before.count + 1
    others = tuple(c for c in key.candidates if c is not before)
    if count < learning.promote_n:
        kept = sorted(others, key=lambda c: c.last_seen)[-(CANDIDATES_PER_KEY - 1) :]
        plan.make(KeyChanged(replace(key, candidates=(*kept, AliasCandidate(folded, count, now, space)))))
        return "counted"
    plan.make(KeyChanged(replace(key, candidates=others)))
    return _promote(plan, plan.graph.keys[key_id], memory_id, folded, similarity, now, learning, rules)


def _promote(
    plan: Plan, key: Key, memory_id: str, query: str, similarity: float, now: float, learning: LearningRules, rules: KeyRules
) -> Learned:
    existing = plan.graph.key_of_surface(query)
    known = [] if existing is None else [existing.id]
    known += [other for group in merge_groups(query, rules.lexicon) for other in concepts_in_group(plan, group)]
    if known and known[0] != key.id:
        tie(plan, memory_id, [(known[0], query)])
        return "key"
    verdict = decide_by_similarity(
        query,
        rules.similarity.neighbours(query),
        rules.profile,
        rules.lexicon,
        lambda: rules.similarity.lexicon(query),
        lambda key_id: rules.similarity.mutual(query, key_id),
    )
    merges_here = bool(known) or (isinstance(verdict, MergeInto) and verdict.key_id == key.id)
    mergeable = merges_here or (not rules.profile.across_scripts_only and similarity >= rules.profile.alias_promotion)
    if mergeable and key.key_type == "concept":
        if len(key.learned) >= learning.max_aliases:
            return "nothing"
        space = fold(plan.graph.memories[memory_id].namespace)
        plan.make(KeyChanged(replace(key, learned=(*key.learned, LearnedAlias(query, now, namespaces=(space,))))))
        return "alias"
    new = Key(id=rules.new_id(), concept=query)
    plan.make(KeyAdded(new))
    rules.similarity.created(new.id, query)
    tie(plan, memory_id, [(new.id, query)])
    return "key"


def decide_alias_hit(plan: Plan, key_id: str, memory_id: str, query: str) -> None:
    """A learned alias led to the memory: it stays, and it is a word of that namespace, too."""
    key = plan.graph.keys[key_id]
    folded, space = fold(query), fold(plan.graph.memories[memory_id].namespace)
    hit = tuple(
        replace(a, hits=a.hits + 1, namespaces=tuple(dict.fromkeys((*a.namespaces, space)))) if fold(a.alias) == folded else a
        for a in key.learned
    )
    if hit != key.learned:
        plan.make(KeyChanged(replace(key, learned=hit)))


def decide_prune(plan: Plan, now: float, learning: LearningRules) -> int:
    """Drop learned aliases that were never hit in time and candidates that went stale; returns how many."""
    dropped = 0
    oldest = now - learning.prune_age_s
    for key in plan.graph.learners():
        learned = tuple(a for a in key.learned if a.hits or a.added_at >= oldest)
        candidates = tuple(c for c in key.candidates if c.last_seen >= oldest)
        gone = len(key.learned) - len(learned) + len(key.candidates) - len(candidates)
        if gone:
            plan.make(KeyChanged(replace(key, learned=learned, candidates=candidates)))
            dropped += gone
    return dropped
