"""The standard streams of a server on stdin and stdout, taken before anything else is loaded.

Nothing heavy is imported here: what libraries print while they load must already go to stderr.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import BinaryIO

from keymem_shim import output

__all__ = ["Streams", "claimed"]


@dataclass(frozen=True, slots=True)
class Streams:
    """Private copies of stdin and stdout."""

    source: BinaryIO
    out: BinaryIO


def claimed() -> Streams:
    """Take stdin and stdout; the process's own read nothing and write to stderr from now on."""
    source = os.fdopen(os.dup(0), "rb")
    out = os.fdopen(output.claim(), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Streams(source, out)
