"""Scripts of commits for testing stores: what could happen, carried out on a real graph while it is written down.

A script is drawn by hypothesis as a list of `Step`s; `carried_out` turns it into commits of changes that fit the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from hypothesis import strategies as st

from keymem_daemon.core.changes import (
    Change,
    Commit,
    KeyAdded,
    KeyChanged,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import (
    DECAY_PROFILES,
    KEY_TYPES,
    Actor,
    AliasCandidate,
    Key,
    LearnedAlias,
    Link,
    Memory,
)

Verb = Literal["remember", "reinforce", "learn", "confirm", "correct", "dismiss", "forget", "expire"]
VERBS: Final[tuple[Verb, ...]] = get_args(Verb)

CONCEPTS: Final = (
    "Newton",
    "apple",
    "fruit",
    "딸기",
    "苹果",
    "naïve",
    "C++",
    "v1.2",
    "😀 key",
    'quote"d',
    "tab\tbed",
    "İstanbul",
)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that stands."""

    at: float = 1_700_000_000.25

    def now(self) -> float:
        return self.at


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: ``pick`` chooses among what is there, ``keys`` among `CONCEPTS`."""

    verb: Verb
    pick: int
    text: str
    keys: tuple[int, ...]
    number: float


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)
steps = st.builds(
    Step,
    verb=st.sampled_from(VERBS),
    pick=st.integers(0, 50),
    text=texts,
    keys=st.lists(st.integers(0, len(CONCEPTS) - 1), min_size=1, max_size=4, unique=True).map(tuple),
    number=st.floats(0, 1, allow_subnormal=False),
)
scripts = st.lists(steps, max_size=25)


def carried_out(script: Sequence[Step], graph: Graph) -> list[Commit]:
    """The commits of ``script``, applied to ``graph``; steps that find nothing to do are left out."""
    commits: list[Commit] = []
    for number, step in enumerate(script):
        changes = _RULES[step.verb](step, number, graph)
        if not changes:
            continue
        for change in changes:
            graph.apply(change)
        commits.append(
            Commit(
                action=step.verb,
                at=1000.0 + number,
                actor=Actor(tool=step.verb, session=f"session-{step.pick}", host_agent=None, host_turn=str(number)),
                changes=tuple(changes),
                request_id=None if step.pick % 2 else f"request-{number}",
                response=f'{{"saved":"{number:012x}","text":"…"}}',
                note=step.text if step.verb == "confirm" else None,
            )
        )
    return commits


def identifier(number: int, kind: int) -> str:
    return f"{kind:02x}{number:010x}"


def _remember(step: Step, number: int, graph: Graph) -> list[Change]:
    memory = Memory(
        id=identifier(number, 1),
        content=step.text,
        namespace=("default", "프로젝트", "Work")[step.pick % 3],
        created_at=float(number),
        last_confirmed_at=float(number),
        decay_profile=DECAY_PROFILES[step.pick % len(DECAY_PROFILES)],
        expires_at=None if step.pick % 3 else number + 100 * step.number,
        links=tuple(list(graph.memories)[: step.pick % 3]),
        contradicts=("ffffffffffff",) if step.pick % 5 == 0 else (),
        source={"tool": "remember", "메모": step.text} if step.pick % 2 else {},
    )
    return [MemoryAdded(memory), *_linked(step, number, graph, memory.id)]


def _linked(step: Step, number: int, graph: Graph, memory_id: str) -> list[Change]:
    changes: list[Change] = []
    for position, chosen in enumerate(step.keys):
        concept = CONCEPTS[chosen]
        key = graph.key_of_surface(concept)
        if key is None:
            key = Key(identifier(number * 100 + position, 2), concept, KEY_TYPES[step.pick % len(KEY_TYPES)])
            changes.append(KeyAdded(key))
        changes.append(LinkSet(Link(key.id, memory_id, position=position)))
    return changes


def _reinforce(step: Step, number: int, graph: Graph) -> list[Change]:
    memory = _picked(step, graph)
    if memory is None:
        return []
    seen = replace(memory, access_count=memory.access_count + 1, last_accessed=float(number))
    links = [LinkSet(replace(link, weight=0.1 + 2.9 * step.number)) for link in graph.links_of(memory.id)]
    return [MemoryChanged(seen), *links]


def _learn(step: Step, number: int, graph: Graph) -> list[Change]:
    if not graph.keys:
        return []
    key = list(graph.keys.values())[step.pick % len(graph.keys)]
    alias = f"alias {number}"
    return [
        KeyChanged(
            replace(
                key,
                aliases=(*key.aliases, f"{alias} x") if step.pick % 4 == 0 else key.aliases,
                learned=(*key.learned, LearnedAlias(alias, float(number), step.pick)),
                candidates=(*key.candidates[-2:], AliasCandidate(step.text, step.pick, float(number))),
            )
        )
    ]


def _confirm(step: Step, number: int, graph: Graph) -> list[Change]:
    memory = _picked(step, graph)
    if memory is None:
        return []
    confirmed = replace(
        memory,
        depth=min(1.0, memory.depth + step.number),
        last_confirmed_at=float(number),
        confirmation_count=memory.confirmation_count + 1,
    )
    return [MemoryChanged(confirmed)]


def _correct(step: Step, number: int, graph: Graph) -> list[Change]:
    memory = _picked(step, graph)
    if memory is None or memory.superseded_by is not None:
        return []
    successor = Memory(
        identifier(number, 1), step.text, memory.namespace, float(number), float(number), supersedes=memory.id
    )
    links = [LinkSet(replace(link, memory_id=successor.id)) for link in graph.links_of(memory.id)]
    return [
        MemoryChanged(replace(memory, superseded_by=successor.id, depth=memory.depth * 0.3)),
        MemoryAdded(successor),
        *links,
    ]


def _dismiss(step: Step, _number: int, graph: Graph) -> list[Change]:
    memory = _picked(step, graph)
    links = graph.links_of(memory.id) if memory else []
    if not links:
        return []
    link = links[step.pick % len(links)]
    return [LinkSet(replace(link, weight=max(0.1, link.weight / 2)))]


def _removed(step: Step, graph: Graph, *, purge: bool) -> list[Change]:
    memory = _picked(step, graph)
    if memory is None:
        return []
    changes: list[Change] = []
    for link in graph.links_of(memory.id):
        changes.append(LinkRemoved(link.key_id, memory.id))
        if len(graph.members(link.key_id)) == 1:
            changes.append(KeyRemoved(link.key_id))
    return [*changes, MemoryRemoved(memory.id, purge=purge)]


def _picked(step: Step, graph: Graph) -> Memory | None:
    memories = list(graph.memories.values())
    return memories[step.pick % len(memories)] if memories else None


_RULES: Final[dict[Verb, Callable[[Step, int, Graph], list[Change]]]] = {
    "remember": _remember,
    "reinforce": _reinforce,
    "learn": _learn,
    "confirm": _confirm,
    "correct": _correct,
    "dismiss": _dismiss,
    "forget": lambda step, _number, graph: _removed(step, graph, purge=True),
    "expire": lambda step, _number, graph: _removed(step, graph, purge=False),
}


def state(graph: Graph) -> dict[str, object]:
    """All that a graph holds, order included where order means something."""
    return {
        "memories": list(graph.memories.items()),
        "keys": list(graph.keys.items()),
        "members": {key_id: list(graph.members(key_id).items()) for key_id in graph.keys},
        "links": {memory_id: graph.links_of(memory_id) for memory_id in graph.memories},
        "active": sorted(memory_id for memory_id in graph.memories if graph.is_active(memory_id)),
    }
