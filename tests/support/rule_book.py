"""A graph that changes by the real rules alone: what the services decide, without store, indexes or event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from fixed_time import CountingIds, FixedClock
from open_engines import lexicon

from keymem_daemon.core.changes import Change
from keymem_daemon.core.decide.confirm import decide_confirm
from keymem_daemon.core.decide.correct import Corrected, Correction, decide_correct
from keymem_daemon.core.decide.forget import Forgotten, decide_expire, decide_forget
from keymem_daemon.core.decide.keys import KeyRules
from keymem_daemon.core.decide.learn import Learned, LearningRules, decide_learn
from keymem_daemon.core.decide.limits import checked_content, checked_expiry, checked_keys, checked_profile
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.reinforce import Dismissed, decide_dismiss, decide_read
from keymem_daemon.core.decide.remember import Duplicate, Remembered, checked_memory, decide_remember
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.merging import Neighbour, merge_groups
from keymem_daemon.core.model import Key, Memory, Scope
from keymem_daemon.core.profiles import PROFILES
from keymem_daemon.core.text import fold, scripts

T = TypeVar("T")


class CosineTable:
    """Similarities that a test has written down; two strings that it has not are unlike."""

    def __init__(self, cosines: Mapping[tuple[str, str], float]) -> None:
        self._cosines = {frozenset(map(fold, pair)): cosine for pair, cosine in cosines.items()}
        self.graph = Graph()

    def _cosine(self, a: str, b: str) -> float:
        return self._cosines.get(frozenset((fold(a), fold(b))), 0.0)

    def neighbours(self, surface: str) -> Sequence[Neighbour]:
        found = [
            Neighbour(key.id, key.concept, key.surfaces[1:], key.key_type, max(self._cosine(surface, s) for s in key.surfaces))
            for key in self.graph.keys.values()
        ]
        return sorted((n for n in found if n.similarity > 0), key=lambda n: (-n.similarity, n.key_id))

    def lexicon(self, surface: str) -> Sequence[tuple[str, float]]:
        del surface
        return ()

    def mutual(self, surface: str, key_id: str) -> bool:
        concept = self.graph.keys[key_id].concept
        own = self._cosine(surface, concept)
        rivals = (s for k in self.graph.keys.values() if k.id != key_id for s in k.surfaces if scripts(s) & scripts(surface))
        return all(self._cosine(rival, concept) <= own for rival in rivals)

    def created(self, key_id: str, surface: str) -> None:
        """The graph that `neighbours` reads has the key already."""


class RuleBook:
    """One graph and the commands that change it. Every command is all or nothing and returns what its rule returned."""

    def __init__(self, cosines: Mapping[tuple[str, str], float] | None = None) -> None:
        self.graph = Graph(lambda surface: merge_groups(surface, lexicon()))
        self.clock = FixedClock()
        self.changes: list[Change] = []
        self.learning = LearningRules()
        self._table = CosineTable(cosines or {})
        self._ids = CountingIds()

    def carry_out(self, decide: Callable[[Plan], T]) -> T:
        """Decide on a draft, then apply what was decided."""
        self.graph.settle(self.clock.now())
        plan = Plan(self.graph)
        outcome = decide(plan)
        for change in plan.changes:
            self.graph.apply(change)
        self.changes.extend(plan.changes)
        return outcome

    def rules(self, plan: Plan) -> KeyRules:
        self._table.graph = plan.graph
        return KeyRules(PROFILES["builtin"], lexicon(), self._table, self._ids)

    def remember(
        self,
        content: str,
        *keys: str,
        types: Mapping[str, str] | None = None,
        namespace: str | None = None,
        ttl: float | None = None,
        profile: str | None = None,
        related_to: Sequence[str] = (),
    ) -> Remembered | Duplicate:
        now = self.clock.now()
        new = checked_memory(content, keys, types or {}, namespace, ttl, profile, related_to, None, now)
        return self.carry_out(lambda plan: decide_remember(plan, new, {"tool": "remember"}, now, self.rules(plan)))

    def saved(self, content: str, *keys: str, namespace: str | None = None) -> str:
        return self.remember(content, *keys, namespace=namespace).memory_id

    def correct(
        self,
        memory_id: str,
        content: str,
        *keys: str,
        ttl: float | None = None,
        profile: str | None = None,
        related_to: Sequence[str] = (),
        scope: Scope = None,
    ) -> Corrected:
        now = self.clock.now()
        wanted, dropped = checked_keys(keys, {}) if keys else (None, ())
        correction = Correction(
            memory_id, checked_content(content), wanted, dropped, checked_expiry(ttl, now), checked_profile(profile), tuple(related_to), {}
        )
        return self.carry_out(lambda plan: decide_correct(plan, correction, {"tool": "correct"}, now, self.rules(plan), scope))

    def forget(self, memory_id: str) -> Forgotten:
        return self.carry_out(lambda plan: decide_forget(plan, memory_id, None))

    def expire(self) -> list[str]:
        return self.carry_out(lambda plan: decide_expire(plan, self.clock.now()))

    def confirm(self, memory_id: str) -> Memory:
        return self.carry_out(lambda plan: decide_confirm(plan, memory_id, self.clock.now(), None))

    def read(self, memory_id: str, via: str | None = None) -> Memory:
        return self.carry_out(lambda plan: decide_read(plan, memory_id, via, self.clock.now(), None))

    def dismiss(self, memory_id: str, key_id: str) -> Dismissed:
        return self.carry_out(lambda plan: decide_dismiss(plan, memory_id, key_id, None))

    def learn(self, key_id: str, memory_id: str, query: str, similarity: float = 0.5) -> Learned:
        return self.carry_out(
            lambda plan: decide_learn(plan, key_id, memory_id, query, similarity, self.clock.now(), self.learning, self.rules(plan))
        )

    def key(self, surface: str) -> Key:
        key = self.graph.key_of_surface(surface)
        assert key is not None, f"no key {surface!r}"
        return key

    def concepts_of(self, memory_id: str) -> list[str]:
        return [self.graph.keys[link.key_id].concept for link in self.graph.links_of(memory_id)]

    def weight(self, surface: str, memory_id: str) -> float:
        link = self.graph.link(self.key(surface).id, memory_id)
        assert link is not None, f"{surface!r} is not linked to {memory_id}"
        return link.weight

    def records(self) -> tuple[object, object, object]:
        links = {(link.key_id, link.memory_id): link for link in self.graph.all_links()}
        return dict(self.graph.memories), dict(self.graph.keys), links
