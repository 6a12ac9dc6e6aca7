"""What a command says when it cannot do what it was asked: one line with the next step, never a traceback."""

from __future__ import annotations

__all__ = ["FAILED", "INTERRUPTED", "PIPE_CLOSED", "USAGE", "CommandFailed"]

FAILED = 1
USAGE = 64
"""As in sysexits.h: 2, which argparse would use, means "down" in `keymemd status`."""
INTERRUPTED = 130
PIPE_CLOSED = 141


class CommandFailed(Exception):
    """``what`` went wrong, the ``step`` that mends it, and the exit code."""

    def __init__(self, what: str, step: str, code: int = FAILED) -> None:
        super().__init__(f"{what.rstrip('.')}. {step}")
        self.code = code
