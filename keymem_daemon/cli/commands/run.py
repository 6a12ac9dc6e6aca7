"""Be the daemon, in the foreground, until SIGTERM, SIGINT or `keymemd stop`.

Exit code 0 when it ended as it should, 3 when another process serves the data directory, 4 when it can listen
nowhere, 5 when the data directory takes no writes.
"""

from __future__ import annotations

import argparse
import sys

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--started-by", choices=("shim", "person", "service"), default="person", help=argparse.SUPPRESS)


def run(given: argparse.Namespace) -> int:
    """Run the command."""
    from keymem_daemon.cli.outcome import exit_code  # noqa: PLC0415 - `keymemd run --help` needs none of it
    from keymem_daemon.runtime.serve import serve  # noqa: PLC0415 - as above
    from keymem_daemon.settings import current_settings  # noqa: PLC0415 - as above

    shown = given.started_by == "person" and sys.stderr.isatty()
    return exit_code(serve(current_settings(), given.started_by, on_terminal=shown))
