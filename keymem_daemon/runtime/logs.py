"""The daemon's log: rotating, private, and free of what it must not hold.

Nothing here or elsewhere logs the environment, a token, or the text of a memory; what a library says goes to the same file from
warnings up. A daemon that a shim starts has its output in the file already; `keymemd run` on a terminal shows it there as well.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from keymem_shim import rendezvous

__all__ = ["LOG_BYTES", "LOG_FILES", "cap_logs", "log_file", "set_up"]

LOG_BYTES: Final = 1024 * 1024
LOG_FILES: Final = 5
CAP_BYTES: Final = 200 * 1024 * 1024
SELDOM_S: Final = 60.0
KINDS: Final = 64
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _PrivateRotatingHandler(RotatingFileHandler):
    """Files of mode 0600, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        return open(descriptor, "a", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123 - of a descriptor; the handler closes it


class _Seldom(logging.Filter):
    """Lets each message of a library pass once a minute: strangers' connections must not fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether ``record`` is written."""
        now = time.monotonic()
        kind = str(record.msg)
        if record.levelno > logging.WARNING or now - self._last.get(kind, -SELDOM_S) >= SELDOM_S:
            if len(self._last) >= KINDS:
                self._last.clear()
            self._last[kind] = now
            return True
        return False


def log_file(data_dir: Path) -> Path:
    """Where the daemon writes."""
    return Path(rendezvous.log_dir(str(data_dir))) / "daemon.log"


def set_up(data_dir: Path, *, on_terminal: bool) -> None:
    """Send the log of this process to its file, and to stderr as well when ``on_terminal``."""
    handlers: list[logging.Handler] = [
        _PrivateRotatingHandler(log_file(data_dir), maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8")
    ]
    if on_terminal:
        handlers.append(logging.StreamHandler(sys.stderr))
    logging.basicConfig(level=logging.WARNING, format=_FORMAT, handlers=handlers, force=True)
    logging.getLogger("keymem_daemon").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").addFilter(_Seldom())
    # A log that cannot be written must not spoil stderr, which is the same file, nor by that the exit code.
    logging.raiseExceptions = False
    logging.captureWarnings(capture=True)


def cap_logs(data_dir: Path, cap_bytes: int = CAP_BYTES) -> int:
    """Delete the oldest rotated files until the log folder is within ``cap_bytes``; returns how many went."""
    folder = Path(rendezvous.log_dir(str(data_dir)))
    files = sorted((found for found in folder.iterdir() if found.is_file()), key=lambda found: found.stat().st_mtime)
    total = sum(found.stat().st_size for found in files)
    removed = 0
    for found in files:
        if total <= cap_bytes:
            break
        if found.suffix == ".log":
            continue
        total -= found.stat().st_size
        found.unlink(missing_ok=True)
        removed += 1
    return removed
