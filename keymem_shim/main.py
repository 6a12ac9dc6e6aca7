"""The command `keymem-shim` (and `keymem`): one MCP server on standard input and output, for one agent session.

Here only the order of things at the start and at the end: claim the output, look for the daemon, then read. Input is not
touched before it is known that a daemon is there or on its way, because where there can be none this process replaces
itself by the single-process server, which must find its input whole.
"""

from __future__ import annotations

import os
import sys

from keymem_shim import VERSION, identity, output, rendezvous
from keymem_shim.bridge import Bridge
from keymem_shim.output import Output
from keymem_shim.pump import Pump

__all__ = ["main"]

FIRST_STEP_S = 0.2
USAGE = """\
usage: keymem-shim [--version | --help]

The MCP server of keymem on standard input and output, one JSON-RPC message a line. Agent clients start it; a person
wants `keymemd --help`. Settings: KEYMEM_DATA_DIR, KEYMEM_DAEMON_AUTOSTART.
"""


def main() -> None:
    """Serve one session and end the process with code 0 when its input ends."""
    if sys.argv[1:]:
        _options(sys.argv[1:])
    if os.isatty(0):
        sys.stderr.write(USAGE)
    private = output.claim()
    if not _has_sockets():
        _replace(private)
    directory = rendezvous.data_dir()
    bridge = Bridge(
        os.urandom(16).hex(),
        identity.host_claim(),
        identity.working_directory(),
        identity.host_homes(),
        hook_installed=rendezvous.flag("HOOK_INSTALLED", default=False),
    )
    lines = Output(private, on_broken=lambda: os._exit(0))
    pump = Pump(directory, bridge, lines, os.path.join(rendezvous.log_dir(directory), "daemon.log"))
    pump.link.start()
    if pump.link.first_step(FIRST_STEP_S) is not None:
        _replace(private)
    lines.start()
    pump.run()
    # Threads that wait for a daemon must not hold up the end.
    os._exit(0)


def _options(words: list[str]) -> None:
    if words == ["--version"]:
        sys.stdout.write(f"keymem-shim {VERSION}\n")
        sys.exit(0)
    if words in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        sys.exit(0)
    sys.stderr.write(USAGE)
    sys.exit(2)


def _has_sockets() -> bool:
    import socket  # noqa: PLC0415 - named where it is tried out; http1 has loaded it

    families = [socket.AF_UNIX, socket.AF_INET] if hasattr(socket, "AF_UNIX") else [socket.AF_INET]
    for family in families:
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
        except OSError:
            continue
        return True
    return False


def _replace(private: int) -> None:
    """Become the single-process server; does not return."""
    output.release(private)
    os.execv(sys.executable, [sys.executable, "-m", "keymem_daemon", "stdio"])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
