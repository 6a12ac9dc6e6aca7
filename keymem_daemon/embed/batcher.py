"""Embedding for many callers at once, without stopping the event loop.

Texts of requests that wait at the same time share a batch. One worker thread embeds; a few short texts of a loaded model are
embedded on the loop itself when the worker is idle, because a thread would cost more than it saves. Work is cut into chunks, and
a chunk is filled with foreground texts before background ones, so a foreground request never waits for more than one chunk that
was already under way.

An error of the encoder reaches every request that had a text in the chunk, and no other. A request whose caller went away
is dropped before its texts are embedded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from keymem_daemon.embed.cache import VectorCache, pack, unpack
from keymem_daemon.ports import Encoder

Matrix = npt.NDArray[np.float32]

CHUNK_TEXTS: Final = 64
CHUNK_CHARACTERS: Final = 16_000
# Together about 5 ms of the builtin encoder: less than a thread's turn costs on a busy machine.
INLINE_TEXTS: Final = 4
INLINE_CHARACTERS: Final = 200
_FLUSH_AT: Final = 256


@dataclass(slots=True, eq=False)
class _Request:
    """Texts that one caller waits for; ``asked`` of them have gone into a chunk so far."""

    texts: Sequence[str]
    done: asyncio.Future[dict[str, bytes]]
    asked: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)


class MicroBatcher:
    """Embeds through the cache. Belongs to one event loop; `close` it before the loop ends."""

    def __init__(self, encoder: Encoder, cache: VectorCache) -> None:
        self._encoder = encoder
        self._cache = cache
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._foreground: deque[_Request] = deque()
        self._background: deque[_Request] = deque()
        self._busy = False
        self._turn: asyncio.Handle | None = None
        self._closed = False
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why the last chunk could not be embedded, ``None`` from the first that was embedded after it."""
        return self._failure

    @property
    def fingerprint(self) -> str:
        """The vector space of what `encode` returns."""
        return self._encoder.fingerprint

    @property
    def backend(self) -> str:
        """Which kind of encoder it is, as `EMBEDDING_BACKEND` names it."""
        return self._encoder.backend

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return self._encoder.dimensions

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return self._encoder.ready

    @property
    def waiting(self) -> int:
        """Texts that are queued and not yet being embedded."""
        return sum(
            len(request.texts) - request.asked for queue in (self._foreground, self._background) for request in queue
        )

    async def load(self) -> None:
        """Load the model on the worker thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._encoder.load)

    async def encode(self, texts: Sequence[str], *, background: bool = False, keep: bool = True) -> Matrix:
        """Vectors of shape (n, dimensions), float32, each of length 1, as float16 holds them; (0, dimensions) for no text.

        ``background`` work yields to every other request. ``keep`` looks into the persistent cache and saves there (keys,
        words, sentences); a query is neither looked up nor saved. Raises what the encoder raises, and `RuntimeError` after `close`.
        """
        space, dimensions = self._encoder.fingerprint, self._encoder.dimensions
        found = self._cache.in_memory(space, dict.fromkeys(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing and keep:
            found.update(await self._cache.stored(space, missing, dimensions))
            missing = [text for text in missing if text not in found]
        if missing:
            fresh = await self._embed(missing, background=background)
            self._cache.put(space, fresh, keep=keep)
            found.update(fresh)
            if background and self._cache.unsaved >= _FLUSH_AT:
                await self._cache.flush()
        result = np.empty((len(texts), dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            vector = unpack(found[text], dimensions)
            if vector is None:
                self._failure = f"{space} returned no usable vector for a text of {len(text)} characters"
                raise ValueError(self._failure)
            result[row] = vector
        return result

    def close(self) -> None:
        """Cancel what waits; a chunk under way ends on its own."""
        self._closed = True
        if self._turn is not None:
            self._turn.cancel()
        for queue in (self._foreground, self._background):
            for request in queue:
                request.done.cancel()
            queue.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the encoder has been closed")

    async def _embed(self, texts: Sequence[str], *, background: bool) -> dict[str, bytes]:
        if self._closed:
            # Asked here, not at the door: `close` may have come while the cache was looked into.
            raise RuntimeError("the encoder has been closed")
        # Again: the cache was asked in between, and after `close` nobody would ever answer.
        self._check_open()
        loop = asyncio.get_running_loop()
        request = _Request(texts, loop.create_future())
        (self._background if background else self._foreground).append(request)
        if not self._busy and self._turn is None:
            # In this turn of the loop, together with what else arrives in it; what comes later shares the next chunk.
            self._turn = loop.call_soon(self._next_chunk)
        return await request.done

    def _is_small(self, texts: Sequence[str]) -> bool:
        return (
            self._encoder.ready and len(texts) <= INLINE_TEXTS and all(len(text) <= INLINE_CHARACTERS for text in texts)
        )

    def _next_chunk(self) -> None:
        self._turn = None
        if self._busy or self._closed:
            return
        chunk = self._fill()
        if not chunk:
            return
        texts = list(dict.fromkeys(text for _, part in chunk for text in part))
        if self._is_small(texts):
            try:
                vectors = self._encoder.encode(texts)
            except Exception as error:  # noqa: BLE001 - whatever it is belongs to those who wait
                self._fail(chunk, error)
            else:
                self._deliver(chunk, texts, vectors)
            if self._foreground or self._background:
                self._turn = asyncio.get_running_loop().call_soon(self._next_chunk)
            return
        self._busy = True
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._encoder.encode, texts)
        work.add_done_callback(lambda finished: self._finish(chunk, texts, finished))

    def _fill(self) -> list[tuple[_Request, Sequence[str]]]:
        """The next texts to embed, of whom, in the order of arrival; background only when no foreground waits."""
        chunk: list[tuple[_Request, Sequence[str]]] = []
        places, characters = CHUNK_TEXTS, CHUNK_CHARACTERS
        while self._foreground and self._foreground[0].done.done():
            self._foreground.popleft()
        queue = self._foreground or self._background
        while queue and places > 0 and characters > 0:
            request = queue[0]
            if request.done.done():
                queue.popleft()
                continue
            part: list[str] = []
            for text in request.texts[request.asked :]:
                if len(part) == places or characters <= 0:
                    break
                part.append(text)
                characters -= len(text)
            request.asked += len(part)
            places -= len(part)
            chunk.append((request, part))
            if request.asked == len(request.texts):
                queue.popleft()
        return chunk

    def _finish(
        self, chunk: Sequence[tuple[_Request, Sequence[str]]], texts: Sequence[str], work: asyncio.Future[Matrix]
    ) -> None:
        self._busy = False
        if work.cancelled():
            for request, _ in chunk:
                request.done.cancel()
            return
        error = work.exception()
        if error is None:
            self._deliver(chunk, texts, work.result())
        else:
            self._fail(chunk, error)
        self._next_chunk()

    def _deliver(self, chunk: Sequence[tuple[_Request, Sequence[str]]], texts: Sequence[str], vectors: Matrix) -> None:
        self._failure = None
        _deliver(chunk, texts, vectors)

    def _fail(self, chunk: Sequence[tuple[_Request, Sequence[str]]], error: BaseException) -> None:
        self._failure = str(error) or type(error).__name__
        _fail(chunk, error)


def _deliver(chunk: Sequence[tuple[_Request, Sequence[str]]], texts: Sequence[str], vectors: Matrix) -> None:
    packed = {text: pack(vector) for text, vector in zip(texts, vectors, strict=True)}
    for request, part in chunk:
        if request.done.done():
            continue
        request.answers.update((text, packed[text]) for text in part)
        if len(request.answers) == len(request.texts):
            request.done.set_result(request.answers)


def _fail(chunk: Sequence[tuple[_Request, Sequence[str]]], error: BaseException) -> None:
    for request, _ in chunk:
        if not request.done.done():
            request.done.set_exception(error)
