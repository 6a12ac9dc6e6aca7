"""Show the end of the daemon's log; with -f go on showing what is added, also when the log rotates, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO, Final

from keymem_daemon.cli.failure import USAGE, CommandFailed
from keymem_daemon.cli.terminal import clean
from keymem_shim import rendezvous

__all__ = ["configure", "run"]

PAUSE_S: Final = 0.2
TAIL_BYTES: Final = 1024 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-f", "--follow", action="store_true", help="go on until Ctrl-C")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="lines from the end (50)")


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    if given.lines < 0:
        raise CommandFailed("--lines takes a number from 0", "See `keymemd logs --help`.", USAGE)
    path = Path(rendezvous.log_dir(rendezvous.data_dir())) / "daemon.log"
    file = _opened(path)
    if file is None and not given.follow:
        raise CommandFailed(f"there is no log at {path}", "It is written once a daemon has run: `keymemd start`.")
    if file is not None:
        _show_tail(file, given.lines)
    while given.follow:
        file = _show_new(path, file)
        time.sleep(PAUSE_S)
    if file is not None:
        file.close()
    return 0


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise CommandFailed(f"the log cannot be read: {problem}", "Check who owns it.") from problem


def _show_tail(file: BinaryIO, count: int) -> None:
    """Show the last ``count`` lines, of the last MiB at most, and leave the position at the end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL_BYTES))
    lines = file.read().splitlines(keepends=True)
    _write(b"".join(lines[max(0, len(lines) - count) :]))


def _show_new(path: Path, file: BinaryIO | None) -> BinaryIO | None:
    """Show what was added to ``file``, and go over to the file that has taken its place at ``path``."""
    if file is not None:
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
        _write(file.read())
    try:
        now = path.stat()
    except FileNotFoundError:
        return file
    if file is not None:
        then = os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino):
            return file
        _write(file.read())
        file.close()
    fresh = _opened(path)
    if fresh is not None:
        _write(fresh.read())
    return fresh


def _write(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    sys.stdout.write(clean(text, lines=True) if sys.stdout.isatty() else text)
    sys.stdout.flush()
