"""Zeroing the bytes of a database file that belong to no row.

SQLite's ``secure_delete`` zeroes what it deletes, but not the copies it leaves behind when it moves rows from page to page to keep
its trees balanced: 5 of 899 forgotten texts stayed readable in the unused part of a page (docs/decisions/forgetting.md has the
measurement). So after a purge the unused parts of all tree pages are zeroed in the file. This follows the published file
format; no byte that SQLite ever reads as content is touched. It needs the file to be closed, with an empty write-ahead log.
Rebuilding the file (``VACUUM``) would do the same for fifteen times the cost and twice the space.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_LENGTHS: Final = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}
"""Length of a page's header by the kind of tree page: interior or leaf, of an index or a table."""

_PAGES_AT_ONCE: Final = 256
_MOST_PAGES: Final = 1 << 24
"""Beyond this an overflow page, which starts with a page number, could be taken for a tree page."""


class NotScrubbable(ValueError):
    """The file is not one whose slack can be told from its content."""


def clear_slack(path: Path) -> int:
    """Zero what no row uses in the closed database ``path``; returns how many bytes were not zero. Raises `NotScrubbable`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        header = os.pread(descriptor, 100, 0)
        if len(header) < 100 or not header.startswith(_MAGIC):
            raise NotScrubbable(f"{path.name} is no SQLite database")
        page_size = struct.unpack_from(">H", header, 16)[0]
        page_size = 65536 if page_size == 1 else page_size
        usable = page_size - header[20]
        if os.fstat(descriptor).st_size // page_size >= _MOST_PAGES:
            raise NotScrubbable(f"{path.name} is too large")
        cleared = 0
        offset = 0
        while block := os.pread(descriptor, page_size * _PAGES_AT_ONCE, offset):
            for start in range(0, len(block) - page_size + 1, page_size):
                page = block[start : start + page_size]
                for low, high in _slack(page, usable, 100 if offset + start == 0 else 0):
                    dirty = high - low - page.count(0, low, high)
                    if dirty:
                        os.pwrite(descriptor, bytes(high - low), offset + start + low)
                        cleared += dirty
            offset += len(block)
        if cleared:
            os.fsync(descriptor)
        return cleared
    finally:
        os.close(descriptor)


def _slack(page: bytes, usable: int, base: int) -> Iterator[tuple[int, int]]:
    """Ranges of a tree page that hold nothing: between its pointers and its cells, and its free blocks. None of other pages."""
    header_length = _HEADER_LENGTHS.get(page[base])
    if header_length is None:
        return
    free, cells, content = struct.unpack_from(">HHH", page, base + 1)
    content = content or 65536
    pointers_end = base + header_length + 2 * cells
    if not pointers_end <= content <= usable:
        return
    yield pointers_end, content
    while free:
        if not content <= free <= usable - 4:
            return
        following, size = struct.unpack_from(">HH", page, free)
        if size < 4 or free + size > usable or (following and following < free + size):
            return
        yield free + 4, free + size
        free = following
