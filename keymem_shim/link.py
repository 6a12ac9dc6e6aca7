"""The daemon as one shim sees it: there or not, and the waiting in between.

One thread brings the daemon up through the `Launcher`; every other thread asks here for a daemon, waits here for one, and
reports here when it lost one. A report is only a suspicion: nothing is believed but a probe.

The daemon is started at once when the shim starts, and later only when a call needs it: a daemon that a person stopped
stays down until then.
"""

from __future__ import annotations

import os
import threading
import time

from keymem_shim import rendezvous
from keymem_shim.launcher import Failed, Forbidden, Impossible, Launcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from keymem_shim.rendezvous import Discovery

__all__ = ["GIVE_UP_S", "Gone", "Link"]

GIVE_UP_S = 30.0
"""How long a call waits without a daemon."""

RETURN_S = 8.0
"""How long a daemon that was there may be away, where starting one is forbidden, before calls fail at once."""

RETRY_PAUSE_S = 0.25
SILENCE_PROBE_S = 2.0
PROBE_AGE_S = 4.0


class Gone:
    """There is no daemon for a call; `reason` is for a person, `forbidden` says that none may be started."""

    __slots__ = ("forbidden", "reason")

    def __init__(self, reason: str, *, forbidden: bool) -> None:
        self.reason = reason
        self.forbidden = forbidden


class Link:
    """Availability of the daemon of one data directory."""

    def __init__(self, directory: str, greet: Callable[[Discovery], None]) -> None:
        """`greet` is called, on the link's thread, with each daemon before it is offered to anyone."""
        self._directory = directory
        self._greet = greet
        self._launcher = Launcher(directory, self._progress)
        self._changed = threading.Condition()
        self._ready: Discovery | None = None
        self._trouble: Forbidden | Failed | Impossible | None = None
        self._down_since = time.monotonic()
        self._lost_at: float | None = None
        self._wanted = True
        self._glance = False
        self._first_step = threading.Event()
        self._begun = 0
        self._ended = 0
        self._tried_at = 0.0
        self._checked_at = 0.0
        self._misses = 0
        self._seen: tuple[int, int] | None = None

    def start(self) -> None:
        """Begin looking for a daemon, and starting one, on a thread of its own."""
        threading.Thread(target=self._run, name="link", daemon=True).start()

    def first_step(self, limit_s: float) -> Impossible | None:
        """Wait until it is known that a daemon is there or on its way; `Impossible` when no process can be started."""
        self._first_step.wait(limit_s)
        with self._changed:
            return self._trouble if isinstance(self._trouble, Impossible) else None

    def current(self) -> Discovery | None:
        """Return the daemon that is there, if one is."""
        return self._ready

    def settled(self, limit_s: float) -> Discovery | None:
        """Return the daemon that is there; before anything is known, wait for that."""
        if not self._first_step.is_set():
            self._first_step.wait(limit_s)
        return self._ready

    def wait(self, arrived: float) -> Discovery | Gone:
        """Return a daemon for a call that arrived at that moment, starting one if need be, or say why there is none."""
        with self._changed:
            # Only an attempt that begins from here on can say anything about this call.
            asked = self._begun
            while self._ready is None:
                since = max(self._down_since, arrived)
                gone = self._verdict(asked, since)
                if gone is not None:
                    return gone
                if not self._wanted:
                    self._wanted = True
                    self._changed.notify_all()
                self._changed.wait(max(0.01, min(1.0, since + GIVE_UP_S - time.monotonic())))
            return self._ready

    def wait_idle(self, other_than: str) -> Discovery:
        """Return the next daemon whose instance differs from `other_than`, without asking for one to be started."""
        with self._changed:
            while self._ready is None or self._ready.instance == other_than:
                self._changed.wait()
            return self._ready

    def suspect(self, lost: Discovery) -> None:
        """Report that `lost` broke a connection: it counts as away until a probe says otherwise."""
        with self._changed:
            if self._ready is not None and self._ready.instance == lost.instance:
                self._ready = None
                self._trouble = None
                self._lost_at = self._down_since = time.monotonic()
                self._glance = True
                self._changed.notify_all()

    def still_there(self, discovery: Discovery) -> bool:
        """Ask a daemon that keeps a call waiting whether it is alive; one missed answer is forgiven."""
        with self._changed:
            if self._ready is None or self._ready.instance != discovery.instance:
                return False
            if time.monotonic() - self._checked_at < PROBE_AGE_S:
                return True
            self._checked_at = time.monotonic()
        found = rendezvous.probe(self._directory, SILENCE_PROBE_S)
        alive = not isinstance(found, rendezvous.Unreachable) and found.discovery.instance == discovery.instance
        with self._changed:
            self._misses = 0 if alive else self._misses + 1
            return self._misses < 2

    def glance(self) -> None:
        """Look whether a daemon has appeared, if its discovery file changed since the last look; cheap, never starts one."""
        with self._changed:
            if self._ready is not None:
                return
            signature = _signature(rendezvous.discovery_path(self._directory))
            if signature is not None and signature != self._seen:
                self._seen = signature
                self._glance = True
                self._changed.notify_all()

    def _verdict(self, asked: int, since: float) -> Gone | None:
        trouble, now = self._trouble, time.monotonic()
        if self._ended > asked and trouble is not None:
            if isinstance(trouble, Impossible) or (isinstance(trouble, Failed) and trouble.final):
                return Gone(trouble.reason, forbidden=False)
            away = self._lost_at is not None and now - self._lost_at < RETURN_S
            if isinstance(trouble, Forbidden) and not away:
                return Gone(trouble.reason, forbidden=True)
        if now - since >= GIVE_UP_S:
            return Gone(trouble.reason if trouble else "it does not answer", forbidden=False)
        return None

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._wanted and not self._glance:
                    self._changed.wait()
                start, self._wanted, self._glance = self._wanted, False, False
                pause = self._tried_at + RETRY_PAUSE_S - time.monotonic()
                self._begun += start
            if start:
                time.sleep(max(0.0, pause))
                outcome = self._launcher.ensure()
            else:
                found = rendezvous.probe(self._directory)
                if not isinstance(found, rendezvous.Ready):
                    continue
                outcome = found
            if isinstance(outcome, rendezvous.Ready):
                self._greet(outcome.discovery)
            self._conclude(outcome)

    def _conclude(self, outcome: rendezvous.Ready | Forbidden | Failed | Impossible) -> None:
        with self._changed:
            self._ended = self._begun
            if isinstance(outcome, rendezvous.Ready):
                self._ready = outcome.discovery
                self._trouble = None
                self._misses = 0
                self._checked_at = time.monotonic()
            else:
                self._trouble = outcome
                self._tried_at = time.monotonic()
            self._first_step.set()
            self._changed.notify_all()

    def _progress(self) -> None:
        self._first_step.set()


def _signature(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
