"""The rules against a model in plain dictionaries that knows only the specification: what is there, active, linked and how strongly."""

from __future__ import annotations

from dataclasses import dataclass, field

from command_scripts import chosen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from rule_book import RuleBook

from keymem_daemon.core.decide.remember import Duplicate
from keymem_daemon.core.errors import KeymemError

# Every spelling of a concept, by the name that the model knows it by.
SPELLINGS = {
    "Newton": "newton", "NEWTON": "newton", "apple": "apple", "apples": "apple", "Python": "python", "파이썬": "python",
    "딸기": "berry", "Q1": "q1", "Q2": "q2",
}  # fmt: skip
TEXTS = {"A fact": 1, "a  FACT!": 1, "Another fact": 2, "사실": 3, "“사실”": 3}
PLACES = {"default": "default", "Work": "work", "WORK": "work"}

surfaces = st.lists(st.sampled_from(sorted(SPELLINGS)), min_size=1, max_size=4, unique=True)
texts = st.sampled_from(sorted(TEXTS))
picks = st.integers(0, 9)


@dataclass
class Known:
    """What the model knows of one memory; ``weights`` by concept, ``state`` active, superseded or expired."""

    text: int
    place: str
    weights: dict[str, float]
    expires_at: float | None
    state: str = "active"
    related: set[str] = field(default_factory=set)
    supersedes: str | None = None
    confirmations: int = 0
    reads: int = 0


class LifeOfAMemory(RuleBasedStateMachine):
    """Random commands to both; after each of them they say the same."""

    @initialize()
    def begin(self) -> None:
        self.book = RuleBook()
        self.model: dict[str, Known] = {}

    def pick(self, pick: int) -> str:
        return chosen(list(self.model), pick)

    def is_active(self, memory_id: str) -> bool:
        return memory_id in self.model and self.model[memory_id].state == "active"

    def drop(self, memory_id: str) -> None:
        del self.model[memory_id]
        for other in self.model.values():
            other.related.discard(memory_id)
            other.supersedes = None if other.supersedes == memory_id else other.supersedes

    def same_text(self, text: int, place: str) -> str | None:
        return next((i for i, k in self.model.items() if k.state == "active" and (k.text, k.place) == (text, place)), None)

    @rule(text=texts, keys=surfaces, place=st.sampled_from(sorted(PLACES)), ttl=st.sampled_from((None, 5.0)), pick=picks, relate=st.booleans())
    def remember(self, text: str, keys: list[str], place: str, ttl: float | None, pick: int, relate: bool) -> None:
        target = self.pick(pick)
        related = [target] if relate else []
        known = self.same_text(TEXTS[text], PLACES[place])
        try:
            outcome = self.book.remember(text, *keys, namespace=place, ttl=ttl, related_to=related)
        except KeymemError:
            assert relate
            assert not self.is_active(target)
            return
        assert isinstance(outcome, Duplicate) == (known is not None)
        expires_at = None if ttl is None else self.book.clock.now() + ttl
        if known is None:
            self.model[outcome.memory_id] = Known(TEXTS[text], PLACES[place], {}, expires_at)
        else:
            assert outcome.memory_id == known
        entry = self.model[outcome.memory_id]
        entry.expires_at = entry.expires_at if expires_at is None else expires_at
        entry.related |= {i for i in related if i != outcome.memory_id}
        for key in keys:
            entry.weights.setdefault(SPELLINGS[key], 1.0)

    @rule(pick=picks, text=texts, keys=st.none() | surfaces)
    def correct(self, pick: int, text: str, keys: list[str] | None) -> None:
        old_id = self.pick(pick)
        try:
            outcome = self.book.correct(old_id, text, *(keys or ()))
        except KeymemError:
            assert not self.is_active(old_id) or (keys is None and self.model[old_id].text == TEXTS[text])
            return
        old = self.model[old_id]
        known = self.same_text(TEXTS[text], old.place)
        existing = known is not None and known != old_id
        assert outcome.existing == existing
        if not existing:
            self.model[outcome.new_id] = Known(TEXTS[text], old.place, {}, old.expires_at)
        new = self.model[outcome.new_id]
        wanted = list(old.weights) if keys is None else [SPELLINGS[key] for key in keys]
        for concept in wanted:
            new.weights.setdefault(concept, old.weights.get(concept, 1.0))
        new.related |= old.related
        for pruned in {old.supersedes, new.supersedes} - {None}:
            assert pruned is not None
            self.drop(pruned)
        new.supersedes, old.supersedes, old.state = old_id, None, "superseded"
        for entry in self.model.values():
            if old_id in entry.related and entry.state != "superseded":
                entry.related = (entry.related - {old_id}) | {outcome.new_id}
        new.related -= {old_id, outcome.new_id}

    @rule(pick=picks)
    def forget(self, pick: int) -> None:
        memory_id = self.pick(pick)
        try:
            self.book.forget(memory_id)
        except KeymemError:
            assert memory_id not in self.model
            return
        self.drop(memory_id)

    @rule(pick=picks)
    def confirm(self, pick: int) -> None:
        memory_id = self.pick(pick)
        try:
            self.book.confirm(memory_id)
        except KeymemError:
            assert not self.is_active(memory_id)
            return
        self.model[memory_id].confirmations += 1

    @rule(pick=picks, key=st.sampled_from(sorted(SPELLINGS)), dismiss=st.booleans())
    def use(self, pick: int, key: str, dismiss: bool) -> None:
        memory_id, concept = self.pick(pick), SPELLINGS[key]
        found = self.book.graph.key_of_surface(key)
        key_id = "ffffffffffff" if found is None else found.id
        linked = self.is_active(memory_id) and concept in self.model[memory_id].weights
        try:
            if dismiss:
                self.book.dismiss(memory_id, key_id)
            else:
                self.book.read(memory_id, key_id)
        except KeymemError:
            assert found is None or not linked
            return
        entry = self.model[memory_id]
        weight = entry.weights[concept]
        entry.weights[concept] = max(0.1, weight / 2) if dismiss else min(3.0, weight + 0.1)
        entry.reads += not dismiss

    @rule(seconds=st.sampled_from((1.0, 3.0, 6.0)), sweep=st.booleans())
    def wait(self, seconds: float, sweep: bool) -> None:
        self.book.clock.advance(seconds=seconds)
        now = self.book.clock.now()
        due = [i for i, k in self.model.items() if k.expires_at is not None and k.expires_at <= now]
        for memory_id in due:
            if self.model[memory_id].state == "active":
                self.model[memory_id].state = "expired"
        if sweep:
            assert sorted(self.book.expire()) == sorted(due)
            for memory_id in due:
                self.drop(memory_id)
        else:
            self.book.graph.settle(now)

    @invariant()
    def they_say_the_same(self) -> None:
        graph = self.book.graph
        assert set(graph.memories) == set(self.model)
        concepts: dict[str, set[str]] = {}
        for memory_id, known in self.model.items():
            memory = graph.memories[memory_id]
            assert graph.is_active(memory_id) == (known.state == "active")
            assert memory.expires_at == known.expires_at
            assert set(memory.links) == known.related
            assert memory.supersedes == known.supersedes
            assert (memory.confirmation_count, memory.access_count) == (known.confirmations, known.reads)
            weights = {SPELLINGS[graph.keys[link.key_id].concept]: link.weight for link in graph.links_of(memory_id)}
            assert {name: round(weight, 6) for name, weight in weights.items()} == {n: round(w, 6) for n, w in known.weights.items()}
            for concept in known.weights:
                concepts.setdefault(concept, set()).add(memory_id)
        assert sorted(SPELLINGS[key.concept] for key in graph.keys.values()) == sorted(concepts)
        for key in graph.keys.values():
            active = {i for i in concepts[SPELLINGS[key.concept]] if self.is_active(i)}
            assert graph.memory_count(key.id, None) == len(active)


LifeOfAMemory.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestLifeOfAMemory = LifeOfAMemory.TestCase
