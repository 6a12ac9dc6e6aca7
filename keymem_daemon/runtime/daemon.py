"""The life of the daemon that holds the lock: publish, open, serve, stop.

Listening comes before opening the store, so that whoever looks for the daemon finds it at once; what needs the engine waits at the
door. On the way out: stop accepting, finish what is in flight, flush, let go of the store, remove what was published.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import threading
import time
from contextlib import suppress
from typing import Any, Final

from keymem_daemon.api.app import DaemonIdentity, create_app
from keymem_daemon.api.calls import Calls
from keymem_daemon.api.door import Door
from keymem_daemon.api.metrics import Metrics
from keymem_daemon.api.order import SessionOrder
from keymem_daemon.api.presence import Presence
from keymem_daemon.api.tools import Surface
from keymem_daemon.api.work import SharedWork
from keymem_daemon.core.errors import KeymemError
from keymem_daemon.runtime import logs
from keymem_daemon.runtime.assemble import STORE_FILE, assemble, surroundings
from keymem_daemon.runtime.clock import SystemClock
from keymem_daemon.runtime.footing import Footing
from keymem_daemon.runtime.http_server import HttpServer
from keymem_daemon.runtime.publish import Listening, publish, unpublish
from keymem_daemon.runtime.scheduler import Job, Scheduler
from keymem_daemon.runtime.serve import StartedBy
from keymem_daemon.runtime.status import hook_summary, problem, resident_bytes
from keymem_daemon.service import maintenance
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.views import iso
from keymem_daemon.settings import Settings
from keymem_shim import VERSION, rendezvous

__all__ = ["STOP_S", "jobs", "live"]

STOP_S: Final = 1.8
WATCH_S: Final = 5.0
REMOTE_BACKENDS: Final = ("openai",)

logger = logging.getLogger(__name__)


async def live(settings: Settings, started_by: StartedBy, listening: Listening, footing: Footing) -> str | None:
    """Be the daemon until told to stop; returns why it could not say where it listens, if it could not.

    The caller holds the lock, on which ``footing`` rests, and closes what listens.
    """
    daemon = _Daemon(settings, started_by, listening, footing)
    await daemon.run()
    return daemon.unpublished


class _Daemon:
    """One run. Implements the application's `Control`."""

    def __init__(self, settings: Settings, started_by: StartedBy, listening: Listening, footing: Footing) -> None:
        self._settings = settings
        self._started_by = started_by
        self._listening = listening
        self._footing = footing
        self.unpublished: str | None = None
        self._clock = SystemClock()
        self._started_at = self._clock.now()
        self._identity = DaemonIdentity(secrets.token_hex(8), VERSION, rendezvous.PROTOCOL, secrets.token_hex(32))
        self._door = Door()
        self._metrics = Metrics()
        self._presence = Presence(settings.session_reap_grace_ms / 1_000, time.monotonic)
        self._stopping = asyncio.Event()
        self._drained = asyncio.Event()
        self._scheduler: Scheduler | None = None
        self._problems: tuple[str, ...] = ()
        self._calls = Calls(
            self._door,
            SessionOrder(),
            SharedWork(),
            self._metrics,
            surroundings(settings, self._clock, one_client=False),
            self._require_footing,
        )
        surface = Surface(settings.hook_installed, settings.compat_tools, settings.direct_recall)
        self._server = HttpServer(
            create_app(self._identity, self._calls, self._presence, surface, self), self._say_where
        )

    async def run(self) -> None:
        """Serve until stopped."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(self._server.run_on(self._listening))
                group.create_task(self._keep_engine())
                waiting = [group.create_task(self._leave_when_idle()), group.create_task(self._leave_when_lost())]
                await self._stopping.wait()
                for task in waiting:
                    task.cancel()
                await serving
                self._drained.set()
        finally:
            unpublish(self._settings.data_dir, self._identity.instance)
        logger.info("stopped")

    # What callers may ask.

    def stop(self) -> None:
        """Finish what is in flight, flush and exit."""
        if self._stopping.is_set():
            return
        logger.info("stopping")
        self._stopping.set()
        self._presence.close()
        self._server.stop()
        last_resort = threading.Timer(STOP_S, self._give_up)
        last_resort.daemon = True
        last_resort.start()

    def hand_over(self, version: str) -> bool:
        """Stop for a newer daemon, if a shim started this one."""
        if self._started_by != "shim" or not rendezvous.older(VERSION, version):
            return False
        self.stop()
        return True

    async def status(self) -> dict[str, Any]:
        """How everything is."""
        engine = self._door.opened()
        report = await engine.report() if engine is not None else None
        settings = self._settings
        found = [problem(text, "Set it right, then `keymemd restart`.") for text in settings.warnings]
        found += [problem(text, "See docs/configuration.md.") for text in self._problems]
        found += [problem(f"{name} controls nothing any more", "Remove it.") for name in settings.ignored]
        namespaces = self._calls.surroundings.namespaces
        if namespaces is not None:
            wrong = await asyncio.to_thread(namespaces.problems)
            found += [problem(text, "`keymemd namespaces` shows what is in force.") for text in wrong]
        if self._door.problem is not None:
            found.append(
                problem(
                    f"the store could not be opened: {self._door.problem}", "Mend that, then run `keymemd restart`."
                )
            )
        if engine is None and self._door.waiting_for is not None:
            found.append(
                problem(f"the store is not open yet: {self._door.waiting_for}", "End the process that has it open.")
            )
        if report is not None:
            found += [problem(text, "See `keymemd logs`.") for text in report["problems"]]
        state = "opening" if engine is None and self._door.problem is None else "degraded" if found else "healthy"
        return {
            "state": state,
            "daemon": {
                "pid": os.getpid(),
                "version": VERSION,
                "instance": self._identity.instance,
                "started_at": iso(self._started_at),
                "started_by": self._started_by,
                "uptime_s": round(self._clock.now() - self._started_at, 1),
                "memory_bytes": resident_bytes(),
                "socket": self._listening.socket_path,
                "port": self._listening.port,
                "data_dir": str(settings.data_dir),
            },
            "counts": None if report is None else report["counts"],
            "store": None if report is None else report["store"],
            "models": None if report is None else report["models"],
            "text_leaves_machine": None
            if report is None
            else report["models"]["encoder"]["backend"] in REMOTE_BACKENDS,
            "sessions": [
                {
                    "id": session.id,
                    "client": session.client,
                    "host_agent": session.host_agent,
                    "live": session.left_at is None,
                }
                for session in self._presence.sessions()
            ],
            "calls": self._metrics.calls(),
            "hook": hook_summary(settings.data_dir),
            "scheduler": {} if self._scheduler is None else self._scheduler.report(),
            "problems": found,
        }

    # What goes on.

    def _whereabouts(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "started_at": iso(self._started_at),
            "socket": self._listening.socket_path,
            "port": self._listening.port,
            "token": self._identity.token,
            "instance": self._identity.instance,
            "version": VERSION,
            "protocol": rendezvous.PROTOCOL,
        }

    def _say_where(self) -> None:
        try:
            publish(self._settings.data_dir, self._whereabouts())
        except OSError as failure:
            # Nobody could find this daemon.
            self.unpublished = str(failure)
            self.stop()
            return
        logger.info("listening; process %d, version %s, started by %s", os.getpid(), VERSION, self._started_by)

    async def _keep_engine(self) -> None:
        """Open the engine, keep it going, and close it once nothing is in flight any more."""
        try:
            assembled = await assemble(self._settings, self._clock, self._door.wait_for)
            self._problems = assembled.problems
            await assembled.engine.open()
            self._footing.rest_on(self._settings.data_dir / STORE_FILE)
        except (KeymemError, OSError) as failure:
            logger.error("the store could not be opened: %s", failure)  # noqa: TRY400 - what the disk or the settings say needs no traceback
            self._door.fail(failure.message if isinstance(failure, KeymemError) else str(failure))
            await self._drained.wait()
            return
        engine = assembled.engine
        self._scheduler = Scheduler(jobs(engine, self._settings), self._clock)
        async with asyncio.TaskGroup() as group:
            group.create_task(engine.background())
            self._scheduler.start()
            self._door.open(engine)
            logger.info("open: %s", engine.counts())
            await self._drained.wait()
            self._scheduler.stop()
            await engine.close()

    async def _leave_when_idle(self) -> None:
        if self._started_by == "shim":
            await self._presence.idle_for(self._settings.daemon_idle_ms / 1_000)
            logger.info("no session for %d ms", self._settings.daemon_idle_ms)
            self.stop()

    async def _leave_when_lost(self) -> None:
        """What stands on files that nobody finds any more, or cannot be reached, must end, so that another can begin."""
        while True:
            if self._footing.lost() is not None:
                self._leave_lost()
                return
            if not self._listening.reachable():
                logger.error("%s was removed while keymem was running; leaving", self._listening.socket_path)
                self.stop()
                return
            self._stay_published()
            await asyncio.sleep(WATCH_S)

    def _stay_published(self) -> None:
        """Write `daemon.json` again when it does not speak of this daemon: nobody else holds the lock, and nobody finds the one who does."""
        found = rendezvous.read_discovery(str(self._settings.data_dir))
        if not self._server.listening or (found is not None and found.instance == self._identity.instance):
            return
        with suppress(OSError):  # tried again at the next look
            publish(self._settings.data_dir, self._whereabouts())
            logger.warning("daemon.json was gone or not ours; written again")

    def _require_footing(self) -> None:
        try:
            self._footing.require()
        except KeymemError:
            self._leave_lost()
            raise

    def _leave_lost(self) -> None:
        logger.error("%s; leaving", self._footing.lost())
        self.stop()

    def _give_up(self) -> None:
        """Exit without waiting longer: what was acknowledged is on disk, and the system releases the lock."""
        unpublish(self._settings.data_dir, self._identity.instance)
        self._listening.close()
        logger.warning("something did not finish in time; leaving it")
        logging.shutdown()
        os._exit(0 if self.unpublished is None else 1)


def jobs(engine: Engine, settings: Settings) -> tuple[Job, ...]:
    """What the daemon does by itself."""

    async def sweep() -> None:
        await maintenance.sweep(engine)

    async def forget_requests() -> None:
        await maintenance.forget_requests(engine)

    async def cap_logs() -> None:
        await asyncio.to_thread(logs.cap_logs, settings.data_dir)

    interval_s = settings.cleanup_interval_ms / 1_000
    return (
        Job("sweep", interval_s, sweep, at_start=True),
        Job("forget requests", 3_600.0, forget_requests),
        Job("cap logs", 3_600.0, cap_logs, at_start=True),
    )
