"""The command line's entry: names the commands, and imports a command's module only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from keymem_shim import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="keymemd", description="The memory daemon and its administration.")
    parser.add_argument("--version", action="version", version=f"keymemd {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="be the daemon, in the foreground")
    run.add_argument("--started-by", choices=("shim", "person", "service"), default="person", help=argparse.SUPPRESS)
    commands.add_parser("stdio", help="serve one client on stdin and stdout, without a daemon")
    given = parser.parse_args(arguments)
    from keymem_daemon.cli import running  # noqa: PLC0415 - a command's module is imported when it runs

    return running.stdio() if given.command == "stdio" else running.run(given.started_by)


if __name__ == "__main__":
    sys.exit(main())
