"""An encoder whose vectors follow from words alone: texts that share words are near, and nothing else is promised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from keymem_daemon.core.text import fold
from keymem_daemon.ports import Matrix


class HashingWords:
    """Each word has a direction; a text is the sum of its words'. ``ready`` can be withheld to stand for a model that warms."""

    backend: str = "builtin"
    model: str = "hashed words"
    fingerprint: str = "builtin:hashed words"
    dimensions: int = 64

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready

    def load(self) -> None:
        """Nothing to load: readiness is the test's to give."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        rows = [sum((_direction(word) for word in fold(text).split()), start=_direction("") * 1e-3) for text in texts]
        vectors: Matrix = np.array(rows, dtype=np.float32).reshape(len(texts), self.dimensions)
        unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def _direction(word: str) -> Matrix:
    digest = hashlib.blake2b(word.strip(".,?!:").encode("utf-8", "surrogatepass"), digest_size=64).digest()
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - 127.5
