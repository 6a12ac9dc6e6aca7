"""The command line's entry: names the commands, imports a command's module only when it runs, and turns every end into an exit code.

Nothing here imports more than the standard library's argument parser: `keymemd status` has milliseconds.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

from keymem_daemon.cli.failure import FAILED, INTERRUPTED, PIPE_CLOSED, USAGE, CommandFailed
from keymem_shim import VERSION

__all__ = ["COMMANDS", "main"]

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("run", "be the daemon, in the foreground"),
    "start": ("start", "start the daemon in the background and wait until it answers"),
    "stop": ("stop", "stop the daemon and wait until it is gone"),
    "restart": ("restart", "stop it, then start it"),
    "status": ("status", "how everything is; exit code 0 healthy, 1 degraded, 2 down"),
    "logs": ("logs", "show the daemon's log"),
    "demo": ("demo", "save three memories and walk from Newton to strawberries"),
    "stdio": ("stdio", "serve one client on stdin and stdout, without a daemon"),
    "remember": ("remember", "save a memory under its keys"),
    "recall": ("recall", "find memories by association"),
    "show": ("show", "show a memory or a key in full"),
    "keys": ("keys", "list keys, those with most memories first"),
    "list": ("listing", "list memories"),
    "forget": ("forget", "delete a memory for good"),
    "stats": ("stats", "count memories, keys and links"),
    "history": ("history", "who changed what, and when"),
    "install": ("install", "write the MCP server and the prompt hook into a client's configuration"),
    "uninstall": ("uninstall", "take them out again"),
    "namespaces": ("namespaces", "which directory stands for which namespaces; map or unmap one"),
    "config": ("config", "show the settings and where each comes from, or set one"),
}
"""Command to the module in `commands`, and its line in the help."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise CommandFailed(message, f"See `{self.prog} --help`.", USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except CommandFailed as failure:
        _complain(str(failure))
        return failure.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more when it ends, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PIPE_CLOSED
    except Exception as defect:  # noqa: BLE001 - the end of the process: a person is shown one line, whatever it was
        _complain(f"a defect of keymem: {type(defect).__name__}: {defect} ({_place(defect)}). Please report this line.")
        return FAILED
    return code


def _run(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        module, line = COMMANDS[words[0]]
        command = import_module(f"keymem_daemon.cli.commands.{module}")
        parser = _Parser(prog=f"keymemd {words[0]}", description=command.__doc__ or line, formatter_class=_Plain)
        command.configure(parser)
        code: int = command.run(parser.parse_args(words[1:]))
        return code
    if words and not words[0].startswith("-"):
        raise CommandFailed(f"there is no command {words[0]!r}", "See `keymemd --help`.", USAGE)
    listed = "\n".join(f"  {name:<12}{line}" for name, (_module, line) in COMMANDS.items())
    top = _Parser(
        prog="keymemd",
        usage="keymemd COMMAND [OPTIONS]",
        description="The memory daemon and its administration.",
        epilog=f"commands:\n{listed}\n\n`keymemd COMMAND --help` says more about one.",
        formatter_class=_Plain,
    )
    top.add_argument("--version", action="version", version=f"keymemd {VERSION}")
    top.add_argument("command", metavar="COMMAND", nargs="?", help=argparse.SUPPRESS)
    top.parse_known_args(words)
    raise CommandFailed("no command was given", "See `keymemd --help`.", USAGE)


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Help whose paragraphs stay as they are written."""


def _complain(line: str) -> None:
    print("keymemd:", " ".join(line.split()), file=sys.stderr)


def _place(defect: BaseException) -> str:
    trace = defect.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "nowhere" if trace is None else f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"  # noqa: PTH119 - no pathlib on the way to `status`


if __name__ == "__main__":
    sys.exit(main())
