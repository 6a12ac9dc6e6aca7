"""Reading a file of JSON lines that another program appends to: counting forward from where one was, and looking back from the end.

Nothing here holds more than a block and one line. A transcript can have gigabytes, and a first reader must neither wait for all of
it nor say a number that is wrong: a count advances by a bounded number of bytes each time it is asked, keeps its place, and is told
only when it has reached the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["BLOCK_BYTES", "LINE_BYTES", "Count", "advanced", "line_around", "record_of", "tails"]

BLOCK_BYTES: Final = 1 << 17
LINE_BYTES: Final = 4 << 20
"""A longer line is skipped, as a malformed one is: it would have to be held whole to be understood."""

_TAIL_BYTES: Final = (1 << 16, 1 << 19, 1 << 22)


@dataclass(slots=True)
class Count:
    """How far a file has been counted: ``found`` in what lies before ``offset``, in the file that is ``file``."""

    file: tuple[int, int] | None = None
    offset: int = 0
    found: int = 0
    in_long_line: bool = False


def advanced(
    descriptor: int,
    count: Count,
    needle: bytes,
    wanted: Callable[[bytes], bool],
    most: int,
    enough: Callable[[], bool] = lambda: False,
) -> int | None:
    """How many lines of the file are ``wanted``, or ``None`` while its end is further than this visit goes.

    A visit goes ``most`` bytes, which must be more than the longest line has, or until ``enough`` says so after a block, but always past
    one line: otherwise a count would stand still. Only lines that contain ``needle`` are asked about. A file that was replaced or cut is
    counted anew. A last line that its writer has not ended yet counts when it is whole already, and is looked at again the next time.
    """
    status = os.fstat(descriptor)
    file = (status.st_dev, status.st_ino)
    if count.file != file or status.st_size < count.offset:
        count.file, count.offset, count.found, count.in_long_line = file, 0, 0, False
    stop = min(status.st_size, count.offset + most)
    position, begun, start = count.offset, b"", count.offset
    while position < stop:
        block = os.pread(descriptor, min(BLOCK_BYTES, stop - position), position)
        if not block:
            break
        position += len(block)
        if count.in_long_line:
            _, ended, block = block.partition(b"\n")
            count.in_long_line = not ended
        data = begun + block
        whole = data.rfind(b"\n") + 1
        count.found += sum(1 for line in _lines_with(needle, data, whole) if wanted(line))
        begun = data[whole:]
        if len(begun) > LINE_BYTES:
            begun, count.in_long_line = b"", True
        count.offset = position - len(begun)
        if count.offset > start and enough():
            break
    if position < status.st_size:
        return None
    return count.found + (1 if needle in begun and wanted(begun) else 0)


def _lines_with(needle: bytes, data: bytes, stop: int) -> Iterator[bytes]:
    at = data.find(needle, 0, stop)
    while at >= 0:
        end = data.find(b"\n", at, stop)
        yield data[data.rfind(b"\n", 0, at) + 1 : end]
        at = data.find(needle, end, stop)


def tails(descriptor: int) -> Iterator[bytes]:
    """Ever longer ends of the file, each beginning at a line's start; the last is the whole file or the longest looked at."""
    size = os.fstat(descriptor).st_size
    for length in _TAIL_BYTES:
        start = max(0, size - length)
        data = os.pread(descriptor, size - start, start)
        yield data if start == 0 else data.partition(b"\n")[2]
        if start == 0:
            return


def line_around(data: bytes, at: int) -> tuple[int, bytes]:
    """The line of ``data`` in which position ``at`` lies, and where it starts."""
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    return start, data[start : len(data) if end < 0 else end]


def record_of(line: bytes) -> dict[str, Any] | None:
    """The object that ``line`` is, ``None`` for anything else."""
    if len(line) > LINE_BYTES:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
