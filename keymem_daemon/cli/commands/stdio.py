"""Serve one MCP client on stdin and stdout, in this one process.

`keymem-shim` becomes this where there can be no daemon. It holds the daemon's lock: while a daemon runs it says so and exits.
Exit codes as `keymemd run`.
"""

from __future__ import annotations

import argparse

__all__ = ["configure", "run"]


def configure(_parser: argparse.ArgumentParser) -> None:
    """There are no options."""


def run(_given: argparse.Namespace) -> int:
    """Run the command."""
    from keymem_daemon.runtime.streams import claimed  # noqa: PLC0415 - `keymemd stdio --help` needs none of it

    streams = claimed()
    from keymem_daemon.cli.outcome import exit_code  # noqa: PLC0415 - what libraries print while they load is not for the client
    from keymem_daemon.runtime.stdio import serve_stdio  # noqa: PLC0415 - as above
    from keymem_daemon.settings import current_settings  # noqa: PLC0415 - as above

    return exit_code(serve_stdio(current_settings(), streams))
