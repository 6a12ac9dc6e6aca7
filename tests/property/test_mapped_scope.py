"""Callers whose directories map to namespaces: whatever they do, no answer tells them of a namespace that theirs do not name."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, assert_never

from fixed_time import FixedClock
from hypothesis import given, settings
from hypothesis import strategies as st
from open_engines import caller, item, play

from keymem_daemon.core.errors import KeymemError
from keymem_daemon.core.text import fold
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.confirm import confirm_memory
from keymem_daemon.service.correct import correct
from keymem_daemon.service.dismiss import dismiss
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.inject import inject
from keymem_daemon.service.inspection import list_memories, stats
from keymem_daemon.service.maintenance import sweep
from keymem_daemon.service.navigate import browse_keys, read_key, read_memory
from keymem_daemon.service.recall import recall
from keymem_daemon.service.recent import RecentRecall
from keymem_daemon.service.remember import remember
from keymem_daemon.service.requests import CorrectionRequest
from keymem_daemon.service.retrieve import retrieve

MARKS = {"alpha": "quartz", "beta": "granite", "gamma": "marble", "default": "chalk"}
TOPICS = ("garden", "engine", "letter")
# Keys that all share, each in words of its own.
WORDS = {
    "alpha": ("Python", "database", "Cherry"),
    "beta": ("파이썬", "DB", "cherries"),
    "gamma": ("PYTHON", "데이터베이스", "CHERRY"),
    "default": ("pYthon", "dAtabase", "chErry"),
}
REACHES: tuple[tuple[str, ...], ...] = (("alpha",), ("beta",), ("Gamma",), ("alpha", "beta"), ())

Verb = Literal["remember", "correct", "forget", "walk", "confirm", "dismiss"]


@dataclass(frozen=True, slots=True)
class Act:
    """What a caller of ``reach`` does, told no namespace; ``pick`` chooses among what it can see."""

    verb: Verb
    reach: tuple[str, ...]
    topic: str
    pick: int


ACTS = st.builds(
    Act,
    verb=st.sampled_from(("remember", "remember", "remember", "correct", "forget", "walk", "confirm", "dismiss")),
    reach=st.sampled_from(REACHES),
    topic=st.sampled_from(TOPICS),
    pick=st.integers(0, 9),
)


@dataclass(frozen=True, slots=True)
class View:
    """What a caller may see now, and must not: ids of both kinds."""

    who: Caller
    scope: frozenset[str]
    inside: list[str]
    foreign: frozenset[str]


def view_of(engine: Engine, reach: tuple[str, ...]) -> View:
    graph, scope = engine.graph, frozenset(map(fold, (*reach, "default")))
    inside = [memory.id for memory in graph.memories.values() if fold(memory.namespace) in scope]
    keys = {key for memory in inside for key in graph.key_ids_of(memory)}
    foreign = ({*graph.memories} - set(inside)) | ({*graph.keys} - keys)
    who = caller(session=f"session-{REACHES.index(reach)}", namespaces=reach)
    return View(who, scope, inside, frozenset(foreign))


def words_outside(scope: frozenset[str], text: str) -> list[str]:
    """What the text has of other namespaces: their names and marks in any case, and their words for shared keys as they write them."""
    others = [name for name in MARKS if name not in scope]
    found = [word for name in others for word in (name, MARKS[name]) if word in text.lower()]
    return found + [word for name in others for word in WORDS[name] if word in text]


async def told(answer: Awaitable[dict[str, Any]]) -> str:
    """All that a caller hears: the result, or the error's words."""
    try:
        return json.dumps(await answer, ensure_ascii=False)
    except KeymemError as error:
        return f"{error.message} {error.hint}"


def foreign_in(engine: Engine, view: View, text: str, given_id: str = "") -> list[object]:
    """All in the text that is not of the view's scope: ids, words, and counts and scopes that are not its own."""
    found: list[object] = [i for i in view.foreign if i in text and i != given_id]
    found += words_outside(view.scope, text)
    active = sum(1 for i in view.inside if engine.graph.is_active(i))
    for part in _objects(text):
        if "key_id" in part and "memory_count" in part and engine.graph.memory_count(part["key_id"], view.scope) != part["memory_count"]:
            found.append(part)
        searched = part.get("searched")
        if searched is not None and not ({fold(name) for name in searched["namespaces"]} <= view.scope and searched["memory_count"] == active):
            found.append(part)
    return found


async def performed(engine: Engine, act: Act, number: int) -> None:
    """Do it, and hold its own answer to the rule."""
    view = view_of(engine, act.reach)
    mark = MARKS[(*map(fold, act.reach), "default")[0]]
    memory_id = view.inside[act.pick % len(view.inside)] if view.inside else "ffffffffffff"
    text = f"The {act.topic} of {mark} number {number} stands near the bridge of {mark}{act.pick}"
    match act.verb:
        case "remember":
            own = WORDS[(*map(fold, act.reach), "default")[0]][act.pick % 3]
            keys = (f"{mark} {act.topic}", act.topic, f"{mark}{act.pick}", own)
            answer = remember(engine, view.who, item(text, *keys, related_to=tuple(view.inside[:1])))
        case "correct":
            own = MARKS[fold(engine.graph.memories[memory_id].namespace)] if view.inside else mark
            answer = correct(
                engine, view.who, CorrectionRequest(memory_id, f"The {act.topic} of {own} is now {number}")
            )
        case "forget":
            answer = forget(engine, view.who, memory_id)
        case "walk":
            await told(recall(engine, view.who, f"{act.topic} bridge"))
            via = next(iter(engine.graph.key_ids_of(memory_id)), None)
            answer = read_memory(engine, view.who, memory_id, via)
        case "confirm":
            answer = confirm_memory(engine, view.who, memory_id, "user_confirmed")
        case "dismiss":
            answer = dismiss(
                engine, view.who, memory_id, next(iter(engine.graph.key_ids_of(memory_id)), "ffffffffffff")
            )
        case _:
            assert_never(act.verb)
    heard = await told(answer)
    after = view_of(engine, act.reach)
    assert not [i for i in after.foreign & view.foreign if i in heard], heard
    assert words_outside(after.scope, heard) == [], heard


def reads(engine: Engine, who: Caller) -> Iterator[tuple[Awaitable[dict[str, Any]], str]]:
    """Every read without a namespace, with every id there is, and the id that the caller gave itself."""
    for topic in TOPICS:
        yield recall(engine, who, topic, None, None, 20, explain=True), ""
        yield retrieve(engine, who, f"{topic} near the bridge", None, None, 100, 5, explain=True, learn=False), ""
        yield inject(engine, who, f"Where does the {topic} near the bridge stand?", f"s-{topic}", None, 20, 5_000), ""
    yield recall(engine, who, "zeppelin timetable"), ""
    yield list_memories(engine, who, None, 200), ""
    yield stats(engine, who), ""
    for key_id in list(engine.graph.keys):
        yield read_key(engine, who, key_id, "bridge"), key_id
    for memory_id in list(engine.graph.memories):
        yield read_memory(engine, who, memory_id), memory_id


@given(st.lists(ACTS, min_size=1, max_size=14), st.sampled_from(REACHES))
@settings(max_examples=25, deadline=None)
def test_a_mapped_caller_hears_of_its_own_namespaces_and_the_default_only(
    script: list[Act], reach: tuple[str, ...]
) -> None:
    async def scene(engine: Engine) -> None:
        for number, act in enumerate(script):
            await performed(engine, act, number)
        for answer, given_id in reads(engine, view_of(engine, reach).who):
            heard = await told(answer)
            assert foreign_in(engine, view_of(engine, reach), heard, given_id) == [], heard
        for name in (*reach, "default"):
            view = view_of(engine, reach)
            heard = await told(browse_keys(engine, view.who, name, limit=100))
            inside = [i for i in view.inside if fold(engine.graph.memories[i].namespace) == fold(name)]
            assert foreign_in(engine, replace(view, scope=frozenset({fold(name)}), inside=inside), heard) == [], heard

    play(scene)


def test_a_key_of_two_mapped_namespaces_is_counted_once() -> None:
    async def scene(engine: Engine) -> None:
        for reach in (("alpha",), ("beta",), ("gamma",)):
            await remember(engine, caller(namespaces=reach), item(f"The garden is of {reach[0]}", "garden", reach[0]))
        both = await stats(engine, caller(namespaces=("alpha", "beta")))
        assert (both["memory_count"], both["key_count"]) == (2, 3)
        assert both["top_keys"][0]["concept"] == "garden"
        assert both["top_keys"][0]["memory_count"] == 2
        assert both["searched"] == {"namespaces": ["alpha", "beta", "default"], "memory_count": 2}

    play(scene)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every object of a result, wherever it stands."""
    waiting: list[Any] = [json.loads(text)] if text.startswith("{") else []
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def test_a_mapped_caller_corrects_forgets_and_relates_what_it_may_see_or_asks_for_all() -> None:
    async def scene(engine: Engine) -> None:
        ours, theirs = caller(namespaces=("alpha",)), caller(namespaces=("beta",))
        first = str((await remember(engine, theirs, item("The quagga is striped", "quagga")))["saved"])
        second = str((await correct(engine, theirs, CorrectionRequest(first, "The quagga was striped")))["new_id"])
        for foreign in (first, second):
            for attempt in (
                correct(engine, ours, CorrectionRequest(foreign, "Mine now")),
                forget(engine, ours, foreign),
                remember(engine, ours, item("Mine", "mine", related_to=(foreign,))),
            ):
                heard = await told(attempt)
                assert foreign in heard
                assert "quagga" not in heard
                assert ({first, second} - {foreign}).isdisjoint(heard.split())
        everywhere = CorrectionRequest(second, "The quagga was striped in front", namespace="*")
        third = str((await correct(engine, ours, everywhere))["new_id"])
        assert (await forget(engine, ours, third, "*"))["deleted"] == third

    play(scene)


def test_what_a_mapped_caller_asks_for_becomes_no_word_of_the_namespace_that_all_share() -> None:
    async def scene(engine: Engine) -> None:
        await remember(engine, caller(), item("The summit path is steep", "climbing"))
        who = caller(session="walker", namespaces=("beta",))
        shared = next(iter(engine.graph.memories))
        through = next(iter(engine.graph.key_ids_of(shared)))
        for own in (who, caller(session="walker")):
            for _ in range(3):
                engine.recent.note(RecentRecall(engine.now(), "walker", "ascending", {through: 0.6}, frozenset()))
                await read_memory(engine, own, shared, through)
            assert (engine.graph.key_of_surface("ascending") is None) is (own is who)

    play(scene)


def test_a_sweep_that_a_mapped_caller_asks_for_tells_how_many_of_its_own_expired() -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        for reach in (("alpha",), ("beta",), ("beta",)):
            await remember(engine, caller(namespaces=reach), item(f"Passing {len(engine.graph.memories)}", "passing", ttl_seconds=5.0))
        clock.advance(seconds=6.0)
        assert await sweep(engine, frozenset({"alpha", "default"})) == {"expired": 1}
        assert await sweep(engine) == {"expired": 0, "pruned": 0}
        assert not engine.graph.memories

    play(scene, clock=clock)
