"""The daemon's own jobs: run at start and by interval, and a failing one takes nothing down."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from keymem_daemon.runtime.logs import cap_logs
from keymem_daemon.runtime.scheduler import Job, Scheduler


class FixedClock:
    """A clock that stands."""

    def now(self) -> float:
        return 1_750_000_000.0


def test_a_failing_job_is_logged_and_reported_and_the_others_run(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        ran = asyncio.Event()
        failed = asyncio.Event()

        async def good() -> None:
            ran.set()

        async def bad() -> None:
            failed.set()
            raise OSError("disk")

        jobs = (
            Job("bad", 3_600.0, bad, at_start=True),
            Job("good", 3_600.0, good, at_start=True),
            Job("later", 60.0, good),
        )
        scheduler = Scheduler(jobs, FixedClock())
        scheduler.start()
        async with asyncio.timeout(10):
            await failed.wait()
            await ran.wait()
            while None in ((report := scheduler.report())["bad"]["last_outcome"], report["good"]["last_outcome"]):  # noqa: ASYNC110 - it reports when asked
                await asyncio.sleep(0)
        scheduler.stop()
        assert report["bad"]["last_outcome"] == "failed: OSError"
        assert report["good"]["last_outcome"] == "ok"
        assert report["later"]["last_outcome"] is None
        assert report["later"]["next_at"] is not None

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "the job bad failed" in caplog.text


def test_rotated_logs_beyond_the_cap_go_oldest_first_and_live_ones_stay(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for age, name in enumerate(["daemon.log", "hook.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"]):
        (folder / name).write_bytes(b"x" * 100)
        os.utime(folder / name, (1_000 - age, 1_000 - age))
    assert cap_logs(tmp_path, cap_bytes=300) == 2
    assert sorted(found.name for found in folder.iterdir()) == ["daemon.log", "daemon.log.1", "hook.log"]
