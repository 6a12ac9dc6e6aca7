"""What the daemon does by itself, as a table of jobs.

The boundary of a job is one of the two places where an exception is logged and swallowed: a sweep that fails must not take the
daemon down, and is tried again at its next time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from keymem_daemon.ports import Clock
from keymem_daemon.service.views import iso

__all__ = ["Job", "Scheduler"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """A thing to do every ``every_s`` seconds; ``at_start`` also at once."""

    name: str
    every_s: float
    run: Callable[[], Awaitable[object]]
    at_start: bool = False


@dataclass(slots=True)
class _Record:
    last_at: float | None = None
    last_outcome: str | None = None


class Scheduler:
    """Runs the jobs, never one twice at once, and knows how each went."""

    def __init__(self, jobs: tuple[Job, ...], clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._records = {job.name: _Record() for job in jobs}
        self._scheduler: Any = AsyncIOScheduler(timezone=UTC)

    def start(self) -> None:
        """Begin; to be called within the running loop."""
        for job in self._jobs:
            when = {"next_run_time": datetime.fromtimestamp(self._clock.now(), UTC)} if job.at_start else {}
            self._scheduler.add_job(
                self._run,
                "interval",
                args=[job],
                id=job.name,
                seconds=job.every_s,
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
                **when,
            )
        self._scheduler.start()

    def stop(self) -> None:
        """Begin nothing more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def report(self) -> dict[str, dict[str, Any]]:
        """For each job when it last ran and how, and when it runs next; times in ISO 8601 UTC."""
        found: dict[str, dict[str, Any]] = {}
        for job in self._jobs:
            record = self._records[job.name]
            scheduled = self._scheduler.get_job(job.name)
            following = scheduled.next_run_time if scheduled is not None else None
            found[job.name] = {
                "last_at": None if record.last_at is None else iso(record.last_at),
                "last_outcome": record.last_outcome,
                "next_at": None if following is None else iso(following.timestamp()),
            }
        return found

    async def _run(self, job: Job) -> None:
        record = self._records[job.name]
        record.last_at = self._clock.now()
        try:
            await job.run()
        except Exception as problem:
            logger.exception("the job %s failed", job.name)
            record.last_outcome = f"failed: {type(problem).__name__}"
        else:
            record.last_outcome = "ok"
