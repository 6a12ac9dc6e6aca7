"""A table of rows that stays on disk: what is used of it passes through the file cache, and none of it is held in memory.

The encoder's table has a row for every piece of sixteen languages, 65 MB; a text needs a few of them. A row read from the
file cache costs about a microsecond, and the system may take that memory back when others want it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

ROOM_LEFT: Final = 1 << 30
"""Bytes that must be free on the disk beside the table: nobody's last room is taken for it."""


class RowsOnDisk:
    """Rows of one table, read only, in a file without a name that goes with the process. Thread-safe."""

    def __init__(self, table: npt.NDArray[Any], directory: Path) -> None:
        """Write ``table`` (rows, columns) to ``directory``. Raises `OSError` when that cannot be, `ENOSPC` before the disk is full."""
        rows = np.ascontiguousarray(table)
        if shutil.disk_usage(directory).free < rows.nbytes + ROOM_LEFT:
            raise OSError(errno.ENOSPC, f"there is not enough room for {rows.nbytes} bytes", str(directory))
        self._columns = rows.shape[1]
        self._type = rows.dtype
        self._row_bytes = rows.shape[1] * rows.itemsize
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            left = rows.data.cast("B")
            while left:
                left = left[file.write(left) :]
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def __getitem__(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The rows of these numbers (n,), in their order: (n, columns). Raises `OSError` when the file cannot be read."""
        wanted, places = np.unique(numbers, return_inverse=True)
        found = np.empty((len(wanted), self._columns), dtype=self._type)
        for place, number in enumerate(wanted.tolist()):
            row = os.pread(self._descriptor, self._row_bytes, number * self._row_bytes)
            if len(row) != self._row_bytes:
                raise OSError("a row of the encoder's table could not be read")
            found[place] = np.frombuffer(row, dtype=self._type)
        return found[places]
