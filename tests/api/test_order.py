"""The order of a session's requests, proven by the order in which they act."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from hypothesis import given, settings
from hypothesis import strategies as st

from keymem_daemon.api.order import SessionOrder

BOUND_S = 10.0


class Script:
    """Requests of one session: each notes when it acts, and a write may be held until it is let go."""

    def __init__(self, order: SessionOrder, session: str = "s") -> None:
        self.order = order
        self.session = session
        self.acted: list[int] = []
        self.held: dict[int, asyncio.Event] = {}

    async def request(self, seq: int, *, writes: bool, floor: int = 1) -> None:
        async with self.order.turn(self.session, seq, floor, writes=writes):
            self.acted.append(seq)
            if seq in self.held:
                await self.held[seq].wait()

    def hold(self, seq: int) -> asyncio.Event:
        self.held[seq] = asyncio.Event()
        return self.held[seq]


async def settled() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(scenario: Coroutine[None, None, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(BOUND_S):
            await scenario

    asyncio.run(bounded())


def test_a_write_that_arrives_early_waits_for_the_one_before_it() -> None:
    async def scenario() -> None:
        script = Script(SessionOrder(wait_s=BOUND_S))
        async with asyncio.TaskGroup() as group:
            group.create_task(script.request(2, writes=True))
            await settled()
            assert script.acted == []
            group.create_task(script.request(1, writes=True))
        assert script.acted == [1, 2]

    run(scenario())


def test_a_read_waits_for_the_writes_before_it_and_nothing_waits_for_the_read() -> None:
    async def scenario() -> None:
        script = Script(SessionOrder(wait_s=BOUND_S))
        write, read = script.hold(1), script.hold(2)
        async with asyncio.TaskGroup() as group:
            group.create_task(script.request(1, writes=True))
            group.create_task(script.request(2, writes=False))
            group.create_task(script.request(3, writes=True))
            await settled()
            assert script.acted == [1]
            write.set()
            await settled()
            assert script.acted == [1, 2, 3]
            read.set()

    run(scenario())


def test_a_slow_read_does_not_hold_up_a_later_read() -> None:
    async def scenario() -> None:
        script = Script(SessionOrder(wait_s=BOUND_S))
        slow = script.hold(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(script.request(1, writes=False))
            group.create_task(script.request(2, writes=False))
            await settled()
            assert script.acted == [1, 2]
            slow.set()

    run(scenario())


def test_sessions_do_not_wait_for_each_other() -> None:
    async def scenario() -> None:
        order = SessionOrder(wait_s=BOUND_S)
        one, two = Script(order, "one"), Script(order, "two")
        held = one.hold(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(one.request(1, writes=True))
            group.create_task(two.request(1, writes=True))
            await settled()
            assert two.acted == [1]
            held.set()

    run(scenario())


def test_a_number_that_never_comes_is_waited_for_only_so_long() -> None:
    async def scenario() -> None:
        script = Script(SessionOrder(wait_s=0.05))
        await script.request(2, writes=True)
        assert script.acted == [2]

    run(scenario())


def test_a_number_below_the_floor_is_not_waited_for() -> None:
    async def scenario() -> None:
        script = Script(SessionOrder(wait_s=BOUND_S))
        await script.request(17, writes=True, floor=17)
        assert script.acted == [17]

    run(scenario())


def test_a_request_that_was_refused_at_the_door_lets_the_next_one_go() -> None:
    async def scenario() -> None:
        order = SessionOrder(wait_s=BOUND_S)
        script = Script(order)
        async with asyncio.TaskGroup() as group:
            group.create_task(script.request(2, writes=True))
            await settled()
            order.arrived("s", 1)
        assert script.acted == [2]

    run(scenario())


def test_a_write_that_fails_lets_the_next_one_go() -> None:
    async def scenario() -> None:
        order = SessionOrder(wait_s=BOUND_S)
        script = Script(order)
        failing = asyncio.ensure_future(script.request(1, writes=True))
        script.hold(1)
        await settled()
        failing.cancel()
        await script.request(2, writes=True)
        assert script.acted == [1, 2]

    run(scenario())


def test_only_so_many_sessions_are_remembered() -> None:
    async def scenario() -> None:
        order = SessionOrder(wait_s=BOUND_S, sessions=3)
        for number in range(50):
            await Script(order, f"session {number}").request(1, writes=True)
        assert len(order._sessions) <= 4

    run(scenario())


@settings(deadline=None, max_examples=60)
@given(st.permutations(range(1, 9)), st.lists(st.booleans(), min_size=8, max_size=8))
def test_however_requests_arrive_each_acts_after_the_writes_before_it(arrival: list[int], writes: list[bool]) -> None:
    async def scenario() -> None:
        script = Script(SessionOrder(wait_s=BOUND_S))
        async with asyncio.TaskGroup() as group:
            for seq in arrival:
                group.create_task(script.request(seq, writes=writes[seq - 1]))
                await asyncio.sleep(0)
        for seq in range(1, 9):
            earlier_writes = [number for number in range(1, seq) if writes[number - 1]]
            assert all(script.acted.index(number) < script.acted.index(seq) for number in earlier_writes)

    run(scenario())
