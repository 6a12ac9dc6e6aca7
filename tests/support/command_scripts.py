"""Random lives of a memory: commands as hypothesis draws them, carried out by the real rules against any plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hypothesis import strategies as st
from rule_book import RuleBook

from keymem_daemon.core.decide.confirm import decide_confirm
from keymem_daemon.core.decide.correct import Correction, decide_correct
from keymem_daemon.core.decide.forget import decide_expire, decide_forget
from keymem_daemon.core.decide.learn import decide_learn
from keymem_daemon.core.decide.limits import checked_keys
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.decide.reinforce import decide_dismiss, decide_read
from keymem_daemon.core.decide.remember import checked_memory, decide_remember
from keymem_daemon.core.errors import KeymemError

Verb = Literal["remember", "correct", "forget", "confirm", "read", "dismiss", "learn", "expire"]
VERBS: Final[tuple[Verb, ...]] = get_args(Verb)
NAMESPACES: Final = ("default", "Work", "work", "개인")
SURFACES: Final = ("Newton", "apple", "apples", "Python", "파이썬", "동건", "딸기", "苹果", "C++", "New York", "York", "2023")
CONTENTS: Final = (
    "Newton saw an apple fall",
    "newton saw an apple fall!",
    "동건이는 뉴욕에 산다",
    "Python and C++ in New York",
    "苹果和딸기",
    "Two apples in 2023",
)


@dataclass(frozen=True, slots=True)
class Command:
    """``pick`` and ``other`` choose among the memories and keys that are there; what finds nothing is an error, as for a caller."""

    verb: Verb
    pick: int
    other: int
    content: str
    keys: tuple[str, ...]
    namespace: str
    ttl: float | None
    flag: bool
    seconds: float


commands = st.builds(
    Command,
    verb=st.sampled_from(("remember", "remember", "correct", *VERBS)),
    pick=st.integers(0, 11),
    other=st.integers(0, 11),
    content=st.sampled_from(CONTENTS),
    keys=st.lists(st.sampled_from(SURFACES), min_size=1, max_size=4, unique=True).map(tuple),
    namespace=st.sampled_from(NAMESPACES),
    ttl=st.sampled_from((None, None, 5.0, 50.0)),
    flag=st.booleans(),
    seconds=st.sampled_from((0.0, 1.0, 6.0, -3.0)),
)
scripts_of_commands = st.lists(commands, max_size=30)


def chosen(ids: Sequence[str], pick: int) -> str:
    """One of them, or an id that nothing has."""
    return ids[pick % len(ids)] if ids else "ffffffffffff"


def decide(book: RuleBook, plan: Plan, command: Command) -> None:
    """Carry out ``command`` on ``plan``; an error of the rules propagates and leaves the plan to be thrown away."""
    now = book.clock.now()
    memory_ids, key_ids = list(plan.graph.memories), list(plan.graph.keys)
    memory_id, key_id = chosen(memory_ids, command.pick), chosen(key_ids, command.other)
    links = plan.graph.links_of(memory_id)
    if links and command.flag:
        key_id = links[command.other % len(links)].key_id
    related = [chosen(memory_ids, command.other)] if memory_ids and command.flag else []
    rules = book.rules(plan)
    match command.verb:
        case "remember":
            types = {command.keys[0]: "name"} if command.other == 0 else {}
            new = checked_memory(command.content, command.keys, types, command.namespace, command.ttl, None, related, None, now)
            decide_remember(plan, new, {}, now, rules)
        case "correct":
            keys = checked_keys(command.keys, {})[0] if command.other % 2 else None
            expires_at = None if command.ttl is None else now + command.ttl
            correction = Correction(memory_id, command.content, keys, (), expires_at, None, tuple(related), {})
            decide_correct(plan, correction, {}, now, rules, None)
        case "forget":
            decide_forget(plan, memory_id, None)
        case "confirm":
            decide_confirm(plan, memory_id, now, None)
        case "read":
            decide_read(plan, memory_id, key_id if command.other % 3 else None, now, None)
        case "dismiss":
            decide_dismiss(plan, memory_id, key_id, None)
        case "learn":
            if plan.graph.link(key_id, memory_id) is not None:
                for _ in range(1 + 2 * command.flag):
                    decide_learn(plan, key_id, memory_id, command.keys[0], 0.5, now, book.learning, rules)
        case "expire":
            decide_expire(plan, now)


def attempted(book: RuleBook, outer: Plan, command: Command) -> bool:
    """``command`` on a plan of its own over ``outer``, and on ``outer`` if it succeeds; whether it did."""
    inner = Plan(outer.graph)
    try:
        decide(book, inner, command)
    except KeymemError:
        return False
    for change in inner.changes:
        outer.make(change)
    return True
