"""Vectors that were computed before: the latest in memory, all that are worth it in the store.

A vector is a pure function of (fingerprint, text), so nothing here is ever wrong, only absent. Every vector passes through
float16 on its way, also one that was just computed: a text has the same vector whether it was cached or not.

The store's methods block and belong to its own thread; what has to be saved is gathered and written by `flush`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Final

import numpy as np
import numpy.typing as npt

from keymem_daemon.ports import VectorStore

Matrix = npt.NDArray[np.float32]

MEMORY_BYTES: Final = 4 * 1024 * 1024
_STORED: Final = np.dtype("<f2")
# What a dictionary entry, its key and its bytes object take beside the characters and the vector.
_ENTRY_BYTES: Final = 300
_STORE_BATCH: Final = 500


def pack(vector: npt.ArrayLike) -> bytes:
    """A vector as float16, little endian."""
    return np.asarray(vector, dtype=_STORED).tobytes()


def unpack(packed: bytes, dimensions: int) -> Matrix | None:
    """The unit vector of what `pack` made; ``None`` when the bytes are damaged or of another size."""
    if len(packed) != dimensions * _STORED.itemsize:
        return None
    vector = np.frombuffer(packed, dtype=_STORED).astype(np.float32)
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm) or norm < 0.5:
        return None
    unit: Matrix = vector / np.float32(norm)
    return unit


class VectorCache:
    """Least recently used vectors in memory, bounded by bytes, before a persistent store. Used from the event loop only."""

    def __init__(
        self, store: VectorStore | None = None, store_thread: Executor | None = None, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        """``store_thread`` runs every call of ``store``; without it they run on the default executor."""
        self._store = store
        self._store_thread = store_thread
        self._limit = memory_bytes
        self._bytes = 0
        self._latest: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._unsaved: dict[tuple[str, str], bytes] = {}
        self._spaces: set[str] = set()

    @property
    def memory_bytes(self) -> int:
        """About how much memory the cached vectors and their texts take."""
        return self._bytes

    @property
    def unsaved(self) -> int:
        """Vectors that `flush` has yet to write."""
        return len(self._unsaved)

    def in_memory(self, fingerprint: str, texts: Iterable[str]) -> dict[str, bytes]:
        """Those that need no one else to be asked."""
        found: dict[str, bytes] = {}
        for text in texts:
            key = (fingerprint, text)
            packed = self._latest.get(key)
            if packed is not None:
                self._latest.move_to_end(key)
                found[text] = packed
            elif key in self._unsaved:
                found[text] = self._unsaved[key]
        return found

    async def stored(self, fingerprint: str, texts: Sequence[str], dimensions: int) -> dict[str, bytes]:
        """Those that the store has, sound ones only; they are in memory from now on."""
        if self._store is None or not texts:
            return {}
        loop = asyncio.get_running_loop()
        found: dict[str, bytes] = {}
        for start in range(0, len(texts), _STORE_BATCH):
            part = list(texts[start : start + _STORE_BATCH])
            answer = await loop.run_in_executor(self._store_thread, self._store.load_vectors, fingerprint, part)
            found.update((text, packed) for text, packed in answer.items() if unpack(packed, dimensions) is not None)
        self._hold(fingerprint, found)
        return found

    def put(self, fingerprint: str, vectors: Mapping[str, bytes], *, keep: bool) -> None:
        """Hold these in memory; with ``keep`` the next `flush` writes them to the store too."""
        self._hold(fingerprint, vectors)
        if keep and self._store is not None:
            self._unsaved.update(((fingerprint, text), packed) for text, packed in vectors.items())

    async def flush(self) -> None:
        """Write what `put` was asked to keep. What the store refuses stays for the next call, and the store's error is raised."""
        if self._store is None:
            return
        loop = asyncio.get_running_loop()
        for fingerprint in {key[0] for key in self._unsaved}:
            items = {text: packed for (space, text), packed in self._unsaved.items() if space == fingerprint}
            await loop.run_in_executor(self._store_thread, self._store.save_vectors, fingerprint, items)
            for text in items:
                self._unsaved.pop((fingerprint, text), None)

    def discard(self, texts: Iterable[str]) -> None:
        """Forget these texts in every vector space, here and before they are saved.

        A text that is being embedded at this moment comes back when that ends: whoever asked for it discards it again.
        """
        gone = frozenset(texts)
        for key in [(space, text) for space in self._spaces for text in gone]:
            packed = self._latest.pop(key, None)
            if packed is not None:
                self._bytes -= _size(key, packed)
            self._unsaved.pop(key, None)

    def _hold(self, fingerprint: str, vectors: Mapping[str, bytes]) -> None:
        self._spaces.add(fingerprint)
        for text, packed in vectors.items():
            key = (fingerprint, text)
            before = self._latest.pop(key, None)
            if before is not None:
                self._bytes -= _size(key, before)
            self._latest[key] = packed
            self._bytes += _size(key, packed)
        while self._bytes > self._limit and self._latest:
            key, packed = self._latest.popitem(last=False)
            self._bytes -= _size(key, packed)


def _size(key: tuple[str, str], packed: bytes) -> int:
    return sys.getsizeof(key[1]) + len(packed) + _ENTRY_BYTES
