"""Sessions that come, go and come back, on a clock that the test moves."""

from __future__ import annotations

import asyncio

from keymem_daemon.api.presence import Presence


class Hands:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def time(self) -> float:
        return self.at


def test_a_session_counts_while_its_connection_is_open_and_for_the_grace_after_it() -> None:
    async def scenario() -> None:
        hands = Hands()
        presence = Presence(15.0, hands.time)
        async with presence.attending("one", "claude-code", "claude"):
            hands.at += 1_000
            assert [session.id for session in presence.sessions()] == ["one"]
        hands.at += 14.9
        assert len(presence.sessions()) == 1
        hands.at += 0.2
        assert presence.sessions() == ()

    asyncio.run(scenario())


def test_a_session_that_reconnects_within_the_grace_is_the_same_session() -> None:
    async def scenario() -> None:
        hands = Hands()
        presence = Presence(15.0, hands.time)
        async with presence.attending("one", "client", None):
            pass
        hands.at += 10
        async with presence.attending("one", None, None):
            hands.at += 100
            (session,) = presence.sessions()
            assert session.client == "client"

    asyncio.run(scenario())


def test_the_daemon_is_idle_when_nobody_was_there_and_nothing_was_asked_for_long_enough() -> None:
    async def scenario() -> None:
        hands = Hands()
        presence = Presence(0.0, hands.time)
        hands.at += 30
        presence.seen()
        idle = asyncio.ensure_future(presence.idle_for(60.0))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not idle.done()
        idle.cancel()
        hands.at += 61
        async with asyncio.timeout(5):
            await presence.idle_for(60.0)

    asyncio.run(scenario())


def test_the_daemon_is_not_idle_while_a_session_is_there() -> None:
    async def scenario() -> None:
        hands = Hands()
        presence = Presence(0.0, hands.time)
        async with presence.attending("one", None, None):
            hands.at += 10_000
            idle = asyncio.ensure_future(presence.idle_for(1.0))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not idle.done()
        hands.at += 2
        async with asyncio.timeout(5):
            await idle

    asyncio.run(scenario())


def test_closing_lets_everybody_go() -> None:
    async def scenario() -> None:
        presence = Presence(1.0, Hands().time)
        told: list[str] = []
        presence.when_closing(lambda: told.append("closed"))
        waiting = asyncio.ensure_future(presence.closing())
        presence.close()
        async with asyncio.timeout(5):
            await waiting
        assert told == ["closed"]

    asyncio.run(scenario())
