"""Nothing of another namespace appears in a read that names one: no id, count, key, neighbour, path, hint or error text."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from open_engines import caller, play, saved

from keymem_daemon.core.errors import KeymemError
from keymem_daemon.core.text import fold
from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.correct import correct
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.inspection import list_memories, stats
from keymem_daemon.service.navigate import browse_keys, read_key, read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.requests import CorrectionRequest
from keymem_daemon.service.retrieve import retrieve

MARKS = {"alpha": "quartz", "beta": "granite", "gamma": "marble"}
TOPICS = ("garden", "engine", "letter")
# Keys that all share, each in words of its own.
WORDS = {
    "alpha": ("Python", "database", "Cherry"),
    "beta": ("파이썬", "DB", "cherries"),
    "gamma": ("PYTHON", "데이터베이스", "CHERRY"),
}


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens in one namespace; ``pick`` chooses among all memories, whichever namespace they are of."""

    verb: Literal["remember", "relate", "correct", "forget", "read", "learn"]
    namespace: str
    topic: str
    pick: int


acts = st.builds(
    Act,
    verb=st.sampled_from(("remember", "remember", "relate", "correct", "forget", "read", "learn")),
    namespace=st.sampled_from(sorted(MARKS)),
    topic=st.sampled_from(TOPICS),
    pick=st.integers(0, 9),
)


async def perform(engine: Engine, act: Act, number: int) -> None:
    mark, ids = MARKS[act.namespace], list(engine.graph.memories)
    memory_id = ids[act.pick % len(ids)] if ids else "ffffffffffff"
    text = f"The {act.topic} of {mark} number {number} stands near the bridge of {mark}{act.pick}"
    keys = (f"{mark} {act.topic}", act.topic, f"{mark}{act.pick}", WORDS[act.namespace][act.pick % 3])
    match act.verb:
        case "remember":
            await saved(engine, text, *keys, namespace=act.namespace)
        case "relate":
            await saved(engine, text, *keys, namespace=act.namespace, related_to=(memory_id,))
        case "correct":
            own = MARKS[engine.graph.memories[memory_id].namespace] if ids else mark
            await correct(engine, caller(), CorrectionRequest(memory_id, f"The {act.topic} of {own} is corrected in {number}"))
        case "forget":
            await forget(engine, caller(), memory_id)
        case "read":
            via = next(iter(engine.graph.key_ids_of(memory_id)), None)
            await read_memory(engine, caller(), memory_id, via)
        case "learn":
            await recall(engine, caller(), f"{act.topic} bridge", text)


async def told(answer: Awaitable[dict[str, Any]]) -> str:
    """All that a caller hears: the result, or the error's words."""
    try:
        return json.dumps(await answer, ensure_ascii=False)
    except KeymemError as error:
        return f"{error.message} {error.hint}"


def answers(engine: Engine, namespace: str) -> Iterator[tuple[Awaitable[dict[str, Any]], str]]:
    """Every read of the namespace with every id there is, and the id that the caller gave itself."""
    who = caller(session="reader")
    for query in (*TOPICS, "bridge", "number of the garden"):
        yield recall(engine, who, query, f"what about the {query} near the bridge", namespace, 20, explain=True), ""
        yield retrieve(engine, who, query, None, namespace, 100, 5, explain=True, learn=False), ""
    for word in WORDS[namespace]:
        yield recall(engine, who, word, f"what about {word}", namespace, 20, explain=True), ""
    yield recall(engine, who, "zeppelin timetable", None, namespace), ""
    yield browse_keys(engine, who, namespace, limit=100), ""
    yield browse_keys(engine, who, namespace, hubs_only=True), ""
    yield list_memories(engine, who, namespace, 200), ""
    yield stats(engine, who, namespace), ""
    for key_id in list(engine.graph.keys):
        yield read_key(engine, who, key_id, "bridge", namespace), key_id
    for memory_id in list(engine.graph.memories):
        yield read_memory(engine, who, memory_id, None, namespace), memory_id
        yield confirm_memory(engine, who, memory_id, "guess", namespace), memory_id


@given(st.lists(acts, min_size=1, max_size=16), st.sampled_from(sorted(MARKS)))
@settings(max_examples=25, deadline=None)
def test_a_read_of_one_namespace_tells_nothing_of_the_others(script: list[Act], namespace: str) -> None:
    async def scene(engine: Engine) -> None:
        for number, act in enumerate(script):
            try:
                await perform(engine, act, number)
            except KeymemError:
                continue
        graph, scope = engine.graph, frozenset({fold(namespace)})
        inside = {m.id for m in graph.memories.values() if m.namespace == namespace}
        visible = {k for m in inside for k in graph.key_ids_of(m)}
        foreign = ({*graph.memories} - inside) | ({*graph.keys} - visible)
        marks = [mark for name, mark in MARKS.items() if name != namespace]
        marks += [word for name, words in WORDS.items() if name != namespace for word in words]
        names = [name for name in MARKS if name != namespace]
        for answer, given_id in answers(engine, namespace):
            text = await told(answer)
            assert not [i for i in foreign if i in text and i != given_id], text
            assert not [mark for mark in (*marks, *names) if mark in text], text
            for count in _counts(text):
                assert graph.memory_count(count[0], scope) == count[1]

    play(scene)


def _counts(text: str) -> Iterator[tuple[str, int]]:
    """Every (key_id, memory_count) of a result, wherever it stands."""
    if not text.startswith("{"):
        return
    waiting: list[Any] = [json.loads(text)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "key_id" in part and "memory_count" in part:
                yield part["key_id"], part["memory_count"]
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


@given(st.lists(acts, min_size=1, max_size=10))
@settings(max_examples=10, deadline=None)
def test_a_caller_whose_directory_maps_to_a_namespace_reads_that_and_the_default_only(script: list[Act]) -> None:
    async def scene(engine: Engine) -> None:
        for number, act in enumerate(script):
            try:
                await perform(engine, act, number)
            except KeymemError:
                continue
        await saved(engine, "The garden is everybody's", "garden", "everybody")
        who = caller(namespaces=("alpha",))
        for query in TOPICS:
            text = await told(recall(engine, who, query, "the bridge and the garden"))
            assert "granite" not in text
            assert "marble" not in text
        assert "everybody" in await told(recall(engine, who, "garden everybody"))

    play(scene)
