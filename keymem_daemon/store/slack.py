"""Zeroing the bytes of a database file that belong to no row.

SQLite's ``secure_delete`` zeroes what it deletes, but not the copies it leaves behind when it moves rows from page to page to keep
its trees balanced: 5 of 899 forgotten texts stayed readable in the unused part of a page (docs/decisions/forgetting.md has the
measurement). So the unused parts of tree pages are zeroed in the file. This follows the published file format; no byte that
SQLite ever reads as content is touched. Nobody may write the file meanwhile: it is closed, or checkpoint.py holds it still.
Rebuilding the file (``VACUUM``) would do the same for fifteen times the cost and twice the space.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
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
        cleared = clear_pages(descriptor)
        if cleared:
            os.fsync(descriptor)
        return cleared
    finally:
        os.close(descriptor)


def clear_pages(descriptor: int, pages: Iterable[int] | None = None) -> int:
    """As `clear_slack`, of those pages (counted from 1) or of all, in an open file that nobody writes meanwhile; does not sync."""
    header = os.pread(descriptor, 100, 0)
    if len(header) < 100 or not header.startswith(_MAGIC):
        raise NotScrubbable("that is no SQLite database")
    page_size = struct.unpack_from(">H", header, 16)[0]
    page_size = 65536 if page_size == 1 else page_size
    usable = page_size - header[20]
    if os.fstat(descriptor).st_size // page_size >= _MOST_PAGES:
        raise NotScrubbable("the database is too large")
    cleared = 0
    for start, page in _pages(descriptor, page_size, pages):
        for low, high in _slack(page, usable, 100 if start == 0 else 0):
            dirty = high - low - page.count(0, low, high)
            if dirty:
                os.pwrite(descriptor, bytes(high - low), start + low)
                cleared += dirty
    return cleared


def _pages(descriptor: int, page_size: int, wanted: Iterable[int] | None) -> Iterator[tuple[int, bytes]]:
    """Where a page starts, and the page; only those that are there whole."""
    if wanted is not None:
        for number in sorted(wanted):
            page = os.pread(descriptor, page_size, (number - 1) * page_size)
            if len(page) == page_size:
                yield (number - 1) * page_size, page
        return
    offset = 0
    while block := os.pread(descriptor, page_size * _PAGES_AT_ONCE, offset):
        for start in range(0, len(block) - page_size + 1, page_size):
            yield offset + start, block[start : start + page_size]
        offset += len(block)


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
