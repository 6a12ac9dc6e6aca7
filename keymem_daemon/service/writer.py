"""The one write path: decide → commit → graph → indexes → answer.

Everything that waits while a commit is under way is decided together and committed in one transaction: each job against a
draft that already has the jobs before it, each with its own outcome. A job that fails leaves nothing; a commit that fails
fails every job of its group and changes nothing.

A request id makes a job answerable again: the first answer is stored in the same transaction, and a repeated id gets it.

Soft state (accesses, link weights, alias counts) is applied at once and written within a second: what is lost with a kill is
at most that second of it. It never waits for the store and no answer waits for it.

`run` is the only place that touches the store while the daemon serves; a cancelled caller cancels nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from keymem_daemon.core.changes import (
    Action,
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
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.errors import KeymemError, Unavailable
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Actor
from keymem_daemon.ports import Clock, Store

T = TypeVar("T")
_Part = Literal["commit", "after", "soft", "tidy"]
Result = dict[str, Any]
Decide = Callable[[Plan], Result | Awaitable[Result]]

GROUP_JOBS = 64
REMEMBERED_SOFT_REQUESTS = 4_096
SEEN_WAIT_S = 0.2


class Indexes(Protocol):
    """What must follow the graph change by change."""

    def apply(self, changes: Sequence[Change]) -> None:
        """The graph has changed so."""
        ...

    def steps(self, changes: Sequence[Change]) -> Iterator[None]:
        """As `apply`, in steps that are short each."""
        ...


class InStore(Protocol):
    """Runs a store call where it may block."""

    def __call__(self, call: Callable[[], T]) -> asyncio.Future[T]: ...


@dataclass(slots=True)
class _Job:
    action: Action
    actor: Actor
    request_id: str | None
    decide: Decide
    note: str | None
    after: Callable[[Result], Callable[[], None] | None] | None
    done: asyncio.Future[Result]


@dataclass(slots=True)
class _Dirty:
    """Entities whose soft state is ahead of the store, and the requests that made it so."""

    memories: dict[str, None] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    links: dict[tuple[str, str], None] = field(default_factory=dict)
    requests: dict[str, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.memories or self.keys or self.links or self.requests)


class Writer:
    """Serialises all changes of one store. Build it, keep `run` running, then `write` and `soften`."""

    def __init__(self, graph: Graph, indexes: Indexes, store: Store, clock: Clock, in_store: InStore) -> None:
        self._graph = graph
        self._indexes = indexes
        self._store = store
        self._clock = clock
        self._in_store = in_store
        self._queue: deque[_Job] = deque()
        self._wake = asyncio.Event()
        self._busy = False
        self._turn = asyncio.Lock()
        self._soft_queue: deque[tuple[str | None, Callable[[Plan], None]]] = deque()
        self._dirty = _Dirty()
        self._soft_requests: OrderedDict[str, None] = OrderedDict()
        self._closing = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._failures: dict[_Part, str] = {}

    @property
    def last_failure(self) -> str | None:
        """What the last attempt to write failed with, of the part that has not succeeded since; else ``None``."""
        return next(iter(self._failures.values()), None)

    async def write(
        self,
        action: Action,
        actor: Actor,
        request_id: str | None,
        decide: Decide,
        *,
        note: str | None = None,
        after: Callable[[Result], Callable[[], None] | None] | None = None,
    ) -> Result:
        """Carry out one change and return what ``decide`` returned, or what it returned when the request came first.

        ``decide`` runs on the event loop against a draft and may raise `KeymemError`; long work in it yields now and then, by
        awaiting nothing but `asyncio.sleep(0)`. ``after`` may name a store
        call to make once the change is committed and before anything else is (such as a purge).
        """
        if self._closing:
            raise _stopping()
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append(_Job(action, actor, request_id, decide, note, after, done))
        self._idle.clear()
        self._wake.set()
        return await done

    async def seen(self, request_id: str | None) -> bool:
        """Whether the soft changes of this request have been made already, as far as the store tells in a moment.

        A read waits for no store: one that is held up or broken has seen nothing, and a read that is asked again just then counts twice.
        """
        if request_id is None:
            return False
        if request_id in self._soft_requests:
            return True
        recorded = self._in_store(lambda: self._store.response_to(request_id))
        recorded.add_done_callback(_retrieved)
        await asyncio.wait((recorded,), timeout=SEEN_WAIT_S)
        return recorded.done() and recorded.exception() is None and recorded.result() is not None

    def soften(self, request_id: str | None, decide: Callable[[Plan], None]) -> None:
        """Make soft changes now, or right after the commit that is under way. ``decide`` that raises changes nothing."""
        if request_id is not None:
            if request_id in self._soft_requests:
                return
            self._soft_requests[request_id] = None
            if len(self._soft_requests) > REMEMBERED_SOFT_REQUESTS:
                self._soft_requests.popitem(last=False)
        self._soft_queue.append((request_id, decide))
        if not self._busy:
            self._drain_soft()

    async def run(self) -> None:
        """Serve the queue until `close`. However it ends, nobody is left waiting and nothing more is taken."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._queue:
                    await self._serve([self._queue.popleft() for _ in range(min(len(self._queue), GROUP_JOBS))])
                self._idle.set()
                if self._closing:
                    return
        finally:
            self._closing = True
            _fail(self._queue, _stopping())
            self._queue.clear()
            self._idle.set()

    async def _serve(self, group: Sequence[_Job]) -> None:
        try:
            async with self._turn:
                self._busy = True
                await self._carry_out(group)
        finally:
            self._busy = False
            _fail(group, _stopping())
        self._drain_soft()
        await self.tidy(idle=False)

    async def tidy(self, *, idle: bool) -> None:
        """Let the store do what no answer should wait for."""
        try:
            await self._in_store(lambda: self._store.tidy(idle=idle))
        except KeymemError as failure:
            self._failures["tidy"] = failure.message
        else:
            self._failures.pop("tidy", None)

    async def drained(self) -> None:
        """Wait until no write is waiting or under way."""
        await self._idle.wait()

    async def close(self) -> None:
        """Finish what was asked for, write the soft state, take nothing more. `run` ends."""
        self._closing = True
        self._wake.set()
        await self._idle.wait()
        await self.flush_soft()

    async def flush_soft(self) -> int:
        """Write the soft state; returns how many values. On failure it stays dirty and the next flush tries again."""
        # In the writer's turn: a value read from the graph while a commit is under way would overwrite that commit.
        async with self._turn:
            written = await self._write_dirty()
        if written:
            await self.tidy(idle=True)
        return written

    async def _write_dirty(self) -> int:
        if not self._dirty:
            return 0
        dirty, self._dirty = self._dirty, _Dirty()
        changes: list[Change] = [MemoryChanged(m) for i in dirty.memories if (m := self._graph.memory(i)) is not None]
        changes += [KeyChanged(k) for i in dirty.keys if (k := self._graph.key(i)) is not None]
        changes += [LinkSet(link) for pair in dirty.links if (link := self._graph.link(*pair)) is not None]
        now, actor = self._clock.now(), Actor(tool="soft state")

        def commit() -> None:
            # An id that is on record already would make the store refuse the whole flush, now and ever after.
            new = [request_id for request_id in dirty.requests if self._store.response_to(request_id) is None]
            recorded = [Commit("reinforce", now, actor, (), request_id, "{}") for request_id in new]
            self._store.commit([Commit("reinforce", now, actor, tuple(changes)), *recorded], durable=False)

        try:
            await self._in_store(commit)
        except KeymemError as failure:
            self._failures["soft"] = failure.message
            for mine, theirs in ((self._dirty.memories, dirty.memories), (self._dirty.keys, dirty.keys), (self._dirty.requests, dirty.requests)):
                mine.update(theirs)
            self._dirty.links.update(dirty.links)
            return 0
        self._failures.pop("soft", None)
        return len(changes)

    def _drain_soft(self) -> None:
        while self._soft_queue:
            request_id, decide = self._soft_queue.popleft()
            plan = Plan(self._graph)
            try:
                decide(plan)
            except KeymemError:
                continue  # what it was about has gone since: there is nothing left to reinforce
            self._apply(plan.changes)
            self._mark(plan.changes)
            if request_id is not None:
                self._dirty.requests[request_id] = None

    def _mark(self, changes: Sequence[Change]) -> None:
        for change in changes:
            match change:
                case MemoryAdded(memory) | MemoryChanged(memory):
                    self._dirty.memories[memory.id] = None
                case KeyAdded(key) | KeyChanged(key):
                    self._dirty.keys[key.id] = None
                case LinkSet(link):
                    self._dirty.links[link.key_id, link.memory_id] = None
                case MemoryRemoved() | KeyRemoved() | LinkRemoved():
                    raise ValueError("soft state never removes anything")

    def _apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._graph.apply(change)
        self._indexes.apply(changes)

    async def _carry_out(self, group: Sequence[_Job]) -> None:
        ids = [job.request_id for job in group if job.request_id is not None]
        try:
            answered = await self._in_store(lambda: {i: self._store.response_to(i) for i in ids}) if ids else {}
        except KeymemError as failure:
            _fail(group, failure)
            return
        if self._dirty.keys:
            # A learned key may not have reached the store yet: a link to it would have no end there.
            await self._write_dirty()
        whole = Plan(self._graph)
        now = self._clock.now()
        commits: list[Commit] = []
        carried: list[tuple[_Job, Result]] = []
        first: dict[str, Result] = {}
        for job in group:
            if job.request_id is not None:
                response = answered.get(job.request_id)
                known = first.get(job.request_id) if response is None else json.loads(response)
                if known is not None:
                    carried.append((job, known))
                    continue
            plan = Plan(whole.graph)
            try:
                decided = job.decide(plan)
                result = await decided if isinstance(decided, Awaitable) else decided
            except Exception as failure:  # noqa: BLE001 - whatever it is, it is this caller's answer and no one else's
                _settle(job, failure)
                continue
            for change in plan.changes:
                whole.make(change)
            response = None if job.request_id is None else json.dumps(result, ensure_ascii=False)
            commits.append(Commit(job.action, now, job.actor, tuple(plan.changes), job.request_id, response, job.note))
            carried.append((job, result))
            if job.request_id is not None:
                first[job.request_id] = result
            await asyncio.sleep(0)
        calls = [call for job, result in carried if job.after is not None and (call := job.after(result)) is not None]
        if commits:
            try:
                await self._in_store(lambda: self._store.commit(commits))
            except Exception as failure:  # noqa: BLE001 - nothing was committed, so every job of the group must hear of it
                self._failures["commit"] = str(failure)
                _fail([job for job, _ in carried], failure)
                return
            self._failures.pop("commit", None)
            for change in whole.changes:
                self._graph.apply(change)
            for _ in self._indexes.steps(whole.changes):
                await asyncio.sleep(0)
        for call in calls:
            try:
                await self._in_store(call)
            except KeymemError as failure:
                # The change stands and is recorded; the store finishes its own purge with the next one, at the latest when it opens.
                self._failures["after"] = failure.message
            else:
                self._failures.pop("after", None)
        for job, result in carried:
            _settle(job, result)
        if commits and "soft" in self._failures:
            await self._write_dirty()


def _retrieved(call: asyncio.Future[T]) -> None:
    """Nobody may be left to ask what went wrong with ``call``."""
    if not call.cancelled():
        call.exception()


def _settle(job: _Job, outcome: Result | Exception) -> None:
    if job.done.done():
        return
    if isinstance(outcome, Exception):
        job.done.set_exception(outcome)
    else:
        job.done.set_result(outcome)


def _stopping() -> Unavailable:
    return Unavailable("the daemon is stopping", "Try again; it will be started anew.")


def _fail(jobs: Iterable[_Job], failure: Exception) -> None:
    """``failure`` is the answer of those that have none yet."""
    for job in jobs:
        _settle(job, failure)
