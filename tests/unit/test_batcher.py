"""Many callers, one encoder: batches, priorities, errors, cancellation. Interleavings are made by gates, not by time."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence

import numpy as np
import pytest

from keymem_daemon.embed.batcher import CHUNK_TEXTS, MicroBatcher
from keymem_daemon.embed.cache import VectorCache
from keymem_daemon.ports import Matrix, VectorStore

PATIENCE_S = 20.0


class GatedEncoder:
    """Hashes; keeps the batches it was given; waits at a gate on the worker thread; refuses what contains "bad"."""

    backend: str = "gated"
    model: str = "hash"
    fingerprint: str = "gated:hash"
    dimensions: int = 32
    ready: bool = True

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def load(self) -> None:
        self.ready = True

    def encode(self, texts: Sequence[str]) -> Matrix:
        self.batches.append(list(texts))
        self.threads.append(threading.get_ident())
        self.entered.set()
        assert self.gate.wait(PATIENCE_S)
        if any("bad" in text for text in texts):
            raise ValueError("a bad text")
        rows = [list(hashlib.blake2b(text.encode(), digest_size=32).digest()) for text in texts]
        vectors = np.array(rows, dtype=np.float32) + 1
        unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


class DictStore:
    """A vector store in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        self.full = False

    def load_vectors(self, fingerprint: str, texts: Sequence[str]) -> dict[str, bytes]:
        return {text: self.kept[fingerprint, text] for text in texts if (fingerprint, text) in self.kept}

    def save_vectors(self, fingerprint: str, items: Mapping[str, bytes]) -> None:
        if self.full:
            raise OSError("no space left")
        self.kept.update({(fingerprint, text): packed for text, packed in items.items()})


Scene = Callable[[GatedEncoder, MicroBatcher], Coroutine[None, None, None]]


def _play(scene: Scene, store: VectorStore | None = None) -> GatedEncoder:
    encoder = GatedEncoder()

    async def run() -> None:
        batcher = MicroBatcher(encoder, VectorCache(store))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scene(encoder, batcher)
        finally:
            encoder.gate.set()
            batcher.close()

    asyncio.run(run())
    return encoder


async def _entered(encoder: GatedEncoder) -> None:
    await asyncio.to_thread(encoder.entered.wait, PATIENCE_S)
    encoder.entered.clear()


def test_each_caller_gets_its_own_rows_in_its_own_order() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        first, second = await asyncio.gather(batcher.encode(["a", "b", "a"]), batcher.encode(["b", "c"]))
        assert np.array_equal(first[0], first[2])
        assert np.array_equal(first[1], second[0])
        assert first == pytest.approx(encoder.encode(["a", "b", "a"]), abs=2e-3)
        assert (await batcher.encode([])).shape == (0, 32)

    _play(scene)


def test_requests_of_one_moment_share_a_batch_without_doubles() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        await asyncio.gather(*(batcher.encode([f"text {number % 7}"]) for number in range(10)))
        assert encoder.batches == [[f"text {number}" for number in range(7)]]

    _play(scene)


def test_a_few_short_texts_are_embedded_on_the_loop_and_many_are_not() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        await batcher.encode(["one", "two"])
        await batcher.encode([f"text {number}" for number in range(20)])
        await batcher.encode(["long " * 100])
        assert encoder.threads[0] == threading.get_ident()
        assert threading.get_ident() not in encoder.threads[1:]

    _play(scene)


def test_nothing_is_loaded_on_the_loop() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        encoder.ready = False
        await batcher.encode(["one"])
        assert encoder.threads[0] != threading.get_ident()

    _play(scene)


def test_loading_happens_on_the_worker_and_makes_it_ready() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        encoder.ready = False
        await batcher.load()
        assert batcher.ready
        assert (batcher.fingerprint, batcher.dimensions) == ("gated:hash", 32)

    _play(scene)


def test_background_work_saves_as_it_goes() -> None:
    store = DictStore()

    async def scene(_encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        await batcher.encode([f"text {number}" for number in range(1000)], background=True)

    _play(scene, store)
    assert len(store.kept) == 1000


def test_closing_at_once_cancels_what_has_not_begun() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        waiting = asyncio.ensure_future(batcher.encode([f"text {number}" for number in range(10)]))
        await asyncio.sleep(0)
        assert batcher.waiting == 10
        batcher.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert encoder.batches == []

    _play(scene)


def test_an_encoder_that_returns_no_direction_is_an_error() -> None:
    class Broken(GatedEncoder):
        def encode(self, texts: Sequence[str]) -> Matrix:
            return np.full((len(texts), self.dimensions), np.nan, dtype=np.float32)

    async def run() -> None:
        batcher = MicroBatcher(Broken(), VectorCache())
        with pytest.raises(ValueError, match="no usable vector"):
            await batcher.encode(["text"])
        batcher.close()

    asyncio.run(run())


def test_a_foreground_request_waits_for_no_more_than_the_chunk_under_way() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        encoder.gate.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(batcher.encode([f"bulk {number}" for number in range(5 * CHUNK_TEXTS)], background=True))
            await _entered(encoder)
            urgent = group.create_task(batcher.encode(["urgent"]))
            await asyncio.sleep(0)
            encoder.gate.set()
            await urgent
            assert ["urgent"] in encoder.batches[:2]
        assert max(map(len, encoder.batches)) == CHUNK_TEXTS
        assert len(encoder.batches) == 6

    _play(scene)


def test_an_error_reaches_every_waiter_of_the_batch_and_no_one_after() -> None:
    async def scene(_encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        results = await asyncio.gather(batcher.encode(["bad"]), batcher.encode(["good"]), return_exceptions=True)
        assert [str(result) for result in results] == ["a bad text"] * 2
        many = [f"bad {number}" for number in range(3 * CHUNK_TEXTS)]
        with pytest.raises(ValueError, match="a bad text"):
            await batcher.encode(many)
        assert (await batcher.encode(["good"])).shape == (1, 32)

    encoder = _play(scene)
    # What was left of the failed request was not embedded.
    assert sum(len(batch) for batch in encoder.batches if "bad 0" in batch or "bad 100" in batch) == CHUNK_TEXTS


def test_a_cancelled_waiter_harms_no_other_and_its_texts_are_not_embedded() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        encoder.gate.clear()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(batcher.encode([f"running {number}" for number in range(10)]))
            await _entered(encoder)
            waiting = group.create_task(batcher.encode([f"waiting {number}" for number in range(10)]))
            other = group.create_task(batcher.encode([f"other {number}" for number in range(10)]))
            await asyncio.sleep(0)
            running.cancel()
            waiting.cancel()
            await asyncio.sleep(0)
            encoder.gate.set()
            assert (await other).shape == (10, 32)
        assert batcher.waiting == 0

    encoder = _play(scene)
    assert not any(text.startswith("waiting") for batch in encoder.batches for text in batch)


def test_closing_cancels_what_waits_and_refuses_what_comes() -> None:
    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        encoder.gate.clear()
        first = asyncio.ensure_future(batcher.encode([f"first {number}" for number in range(10)]))
        await _entered(encoder)
        second = asyncio.ensure_future(batcher.encode([f"second {number}" for number in range(10)]))
        await asyncio.sleep(0)
        batcher.close()
        encoder.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await second
        await first
        with pytest.raises(RuntimeError, match="closed"):
            await batcher.encode(["late"])

    _play(scene)


def test_a_kept_text_is_embedded_once_in_the_life_of_the_store() -> None:
    store = DictStore()

    async def write(_encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        await batcher.encode(["key"])
        await batcher.encode(["question"], keep=False)
        await batcher._cache.flush()

    async def read(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        await batcher.encode(["key", "key"])
        assert encoder.batches == []

    _play(write, store)
    assert [text for _, text in store.kept] == ["key"]
    _play(read, store)


def test_a_vector_is_the_same_fresh_from_memory_and_from_the_store() -> None:
    store = DictStore()
    seen: list[Matrix] = []

    async def scene(_encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        seen.append(await batcher.encode(["key"]))
        seen.append(await batcher.encode(["key"]))
        await batcher._cache.flush()

    _play(scene, store)
    _play(scene, store)
    assert all(np.array_equal(vector, seen[0]) for vector in seen)


def test_a_damaged_stored_vector_is_computed_again() -> None:
    store = DictStore()
    store.kept["gated:hash", "short"] = b"123"
    store.kept["gated:hash", "zero"] = bytes(64)
    store.kept["gated:hash", "nan"] = b"\xff" * 64

    async def scene(encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        assert np.isfinite(await batcher.encode(["short", "zero", "nan"])).all()
        assert encoder.batches == [["short", "zero", "nan"]]

    _play(scene, store)


def test_vectors_that_could_not_be_saved_are_saved_later() -> None:
    store = DictStore()
    store.full = True

    async def scene(_encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        await batcher.encode(["key"])
        with pytest.raises(OSError, match="no space"):
            await batcher._cache.flush()
        store.full = False
        await batcher._cache.flush()
        assert batcher._cache.unsaved == 0

    _play(scene, store)
    assert list(store.kept) == [("gated:hash", "key")]


def test_the_memory_of_the_cache_is_bounded_and_the_oldest_goes_first() -> None:
    cache = VectorCache(memory_bytes=2_000)
    for number in range(50):
        cache.put("space", {f"text {number}": bytes(64)}, keep=True)
        cache.in_memory("space", ["text 0"])
    assert cache.memory_bytes <= 2_000
    assert set(cache.in_memory("space", ["text 0", "text 1", "text 49"])) == {"text 0", "text 49"}


def test_a_discarded_text_is_neither_held_nor_saved() -> None:
    store = DictStore()

    async def scene() -> None:
        cache = VectorCache(store)
        cache.put("space", {"secret": bytes(64), "plain": bytes(64)}, keep=True)
        cache.discard(["secret"])
        await cache.flush()
        assert set(cache.in_memory("space", ["secret", "plain"])) == {"plain"}

    asyncio.run(scene())
    assert list(store.kept) == [("space", "plain")]


def test_a_failure_is_told_until_something_can_be_embedded_again() -> None:
    told: list[str | None] = []

    async def scene(_encoder: GatedEncoder, batcher: MicroBatcher) -> None:
        told.append(batcher.failure)
        for texts in (["bad"], ["bad", *(f"text {number}" for number in range(20))]):
            with pytest.raises(ValueError, match="a bad text"):
                await batcher.encode(texts)
            told.append(batcher.failure)
            await batcher.encode([f"good after {len(texts)}"])
            told.append(batcher.failure)

    _play(scene)
    assert told == [None, "a bad text", None, "a bad text", None]
