"""What no id names any more is in no file either: pruned predecessors and expired memories, in the real store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fixed_time import FixedClock
from open_engines import caller, play, saved

from keymem_daemon.core.changes import Commit, MemoryAdded, MemoryRemoved
from keymem_daemon.core.errors import NotFound
from keymem_daemon.core.model import Actor, Memory
from keymem_daemon.service.correct import correct
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.forget import forget
from keymem_daemon.service.maintenance import sweep
from keymem_daemon.service.requests import CorrectionRequest
from keymem_daemon.store.sqlite import SqliteStore


def files_with(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_second_correction_takes_the_first_text_out_of_every_file(tmp_path: Path) -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        first = await saved(engine, "The first wording walnut", "wording")
        second = (await correct(engine, caller(), CorrectionRequest(first, "The second wording hazel")))["new_id"]
        assert files_with(tmp_path, "walnut")
        await correct(engine, caller(), CorrectionRequest(second, "The third wording almond"))
        assert not files_with(tmp_path, "walnut")
        assert files_with(tmp_path, "hazel")

    play(scene, store=SqliteStore(tmp_path / "keymem.db", clock), clock=clock)
    assert not files_with(tmp_path, "walnut")


def test_an_expired_text_leaves_every_file_with_the_sweep(tmp_path: Path) -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        await saved(engine, "The passing remark about walnuts", "remark", ttl_seconds=10)
        clock.advance(seconds=11)
        assert (await sweep(engine))["expired"] == 1
        assert not files_with(tmp_path, "walnuts")

    play(scene, store=SqliteStore(tmp_path / "keymem.db", clock), clock=clock)


def test_forgetting_the_whole_of_a_chain_of_corrections_leaves_no_text_of_it(tmp_path: Path) -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        first = await saved(engine, "The first wording walnut", "wording", source={"origin": "a walnut notebook"})
        second = (await correct(engine, caller(), CorrectionRequest(first, "The second wording hazel")))["new_id"]
        third = (await correct(engine, caller(), CorrectionRequest(second, "The third wording almond")))["new_id"]
        told = await forget(engine, caller(), third)
        assert second in told["note"]
        assert files_with(tmp_path, "hazel")
        assert "is still there" not in (await forget(engine, caller(), second))["note"]
        for text in ("walnut", "hazel", "almond", "wording"):
            assert not files_with(tmp_path, text)
        with pytest.raises(NotFound):
            await forget(engine, caller(), first)

    play(scene, store=SqliteStore(tmp_path / "keymem.db", clock), clock=clock)


def test_an_id_of_which_only_history_knows_is_forgotten_once_and_answered_again(tmp_path: Path) -> None:
    clock = FixedClock()
    past = Memory("0123456789ab", "The old remark about walnuts", "default", 1.0, 1.0)
    store = SqliteStore(tmp_path / "keymem.db", clock)
    store.commit([Commit("remember", 1.0, Actor("t"), (MemoryAdded(past),))])
    store.commit([Commit("expire", 2.0, Actor("t"), (MemoryRemoved(past.id),))])

    async def scene(engine: Engine) -> None:
        told = await forget(engine, caller("r"), past.id)
        assert told["deleted"] == past.id
        assert not files_with(tmp_path, "walnuts")
        assert await forget(engine, caller("r"), past.id) == told
        with pytest.raises(NotFound):
            await forget(engine, caller(), past.id)

    play(scene, store=store, clock=clock)


def test_a_sweep_finishes_a_purge_that_was_held_up(tmp_path: Path) -> None:
    clock = FixedClock()

    async def scene(engine: Engine) -> None:
        gone = await saved(engine, "The passing remark about walnuts", "remark")
        with closing(sqlite3.connect(tmp_path / "keymem.db", isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM memories").fetchall()
            await forget(engine, caller(), gone)
            assert (await engine.report())["problems"]
            other.execute("ROLLBACK")
        await sweep(engine)
        assert (await engine.report())["problems"] == []
        assert not files_with(tmp_path, "walnuts")

    play(scene, store=SqliteStore(tmp_path / "keymem.db", clock), clock=clock)
