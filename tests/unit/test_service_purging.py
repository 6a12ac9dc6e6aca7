"""What no id names any more is in no file either: pruned predecessors and expired memories, in the real store."""

from __future__ import annotations

from pathlib import Path

from fixed_time import FixedClock
from open_engines import caller, play, saved

from keymem_daemon.service.correct import correct
from keymem_daemon.service.engine import Engine
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
