"""The vector indexes against plain numpy, on arbitrary histories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keymem_daemon.index.nearest import NEAR_KEPT, NearestCache
from keymem_daemon.index.vectors import Matrix, VectorIndex, WordVectors

DIMENSIONS = 16
NAMES = [f"n{number}" for number in range(80)]
History = list[tuple[str, int | None]]
HISTORIES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.one_of(st.none(), st.integers(min_value=0, max_value=200))), max_size=150
)


def _vector(seed: int) -> Matrix:
    raw = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    unit: Matrix = raw / np.linalg.norm(raw)
    return unit


def _final(history: History) -> dict[str, int]:
    final: dict[str, int] = {}
    for name, seed in history:
        if seed is None:
            final.pop(name, None)
        else:
            final[name] = seed
    return final


def _rounded(rows: list[list[tuple[str, float]]]) -> list[list[tuple[str, float]]]:
    return [[(name, round(cosine, 5)) for name, cosine in row] for row in rows]


@settings(deadline=None)
@given(HISTORIES)
def test_a_vector_index_that_lived_equals_one_built_anew(history: History) -> None:
    live = VectorIndex(DIMENSIONS)
    for name, seed in history:
        if seed is None:
            live.remove(name)
        else:
            live.upsert(name, _vector(seed) * 3)
    final = _final(history)
    rebuilt = VectorIndex(DIMENSIONS)
    for name, seed in final.items():
        rebuilt.upsert(name, _vector(seed))
    queries = np.stack([_vector(seed) for seed in range(3)])
    assert len(live) == len(final)
    assert [[n for n, _ in row] for row in live.search(queries, 7, 0.1)] == [
        [n for n, _ in row] for row in rebuilt.search(queries, 7, 0.1)
    ]
    for row, query in zip(live.search(queries, 7, 0.1), queries, strict=True):
        exact = sorted((-round(float(_vector(seed) @ query), 5), name) for name, seed in final.items())
        assert [round(cosine, 5) for _, cosine in row] == pytest.approx(
            [-c for c, _ in exact if c <= -0.1][:7], abs=2e-5
        )
    assert live.similarities(["missing", *final], queries[0]).tolist() == pytest.approx(
        [0.0, *(float(_vector(seed) @ queries[0]) for seed in final.values())], abs=1e-5
    )


@settings(deadline=None)
@given(HISTORIES)
def test_word_vectors_that_lived_equal_those_built_anew(history: History) -> None:
    live = WordVectors(DIMENSIONS)
    for name, seed in history:
        if seed is None:
            live.remove(name)
        else:
            live.upsert(name, _vector(seed))
    rebuilt = WordVectors(DIMENSIONS)
    final = _final(history)
    rebuilt.upsert_many({name: _vector(seed) for name, seed in final.items()})
    queries = np.stack([_vector(seed) for seed in range(3)])
    assert _rounded(live.search(queries, 5, 0.2)) == _rounded(rebuilt.search(queries, 5, 0.2))
    assert live.missing(NAMES) == [name for name in NAMES if name not in final]


def test_word_cosines_are_within_half_a_hundredth_of_exact() -> None:
    source = np.random.default_rng(1)
    vectors = source.standard_normal((3000, 512)).astype(np.float32)
    vectors[1500:] += 2 * vectors[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    words = WordVectors(512)
    words.upsert_many({f"w{row}": vector for row, vector in enumerate(vectors)})
    for row, found in enumerate(words.search(vectors[:5], limit=3000, minimum=-1.0)):
        assert len(found) == 3000
        for name, cosine in found:
            assert cosine == pytest.approx(float(vectors[int(name[1:])] @ vectors[row]), abs=0.005)


def test_refused_words_do_not_take_the_place_of_others() -> None:
    words = WordVectors(DIMENSIONS)
    base = _vector(0)
    words.upsert_many({f"w{row:03}": base + 0.001 * row * _vector(row + 1) for row in range(500)})
    accepted = words.search(base, limit=8, minimum=0.5, accept=lambda word: int(word[1:]) % 100 == 99)
    assert {name for name, _ in accepted[0]} <= {"w099", "w199", "w299", "w399", "w499"}
    assert "w099" in {name for name, _ in accepted[0]}
    everything = words.search(base, limit=500, minimum=0.5)[0]
    assert accepted[0] == [pair for pair in everything if int(pair[0][1:]) % 100 == 99][:8]


@pytest.mark.parametrize("bad", [np.zeros(DIMENSIONS), np.full(DIMENSIONS, np.nan), np.ones(3)])
def test_a_vector_without_a_direction_is_refused_and_changes_nothing(bad: Matrix) -> None:
    index, words = VectorIndex(DIMENSIONS), WordVectors(DIMENSIONS)
    with pytest.raises(ValueError, match="vector"):
        index.upsert("a", bad)
    with pytest.raises(ValueError, match="vector"):
        words.upsert("a", bad)
    assert len(index) == len(words) == 0


def test_ties_are_ordered_by_name_and_limits_hold() -> None:
    index = VectorIndex(DIMENSIONS)
    for name in ("c", "a", "b"):
        index.upsert(name, _vector(1))
    assert [name for name, _ in index.search(_vector(1), 2)[0]] == ["a", "b"]
    assert index.search(_vector(1), 0) == [[]]
    assert VectorIndex(DIMENSIONS).search(_vector(1), 3) == [[]]
    assert index.search(np.empty((0, DIMENSIONS)), 3) == []
    with pytest.raises(ValueError, match="dimensions"):
        index.search(np.ones(3), 1)


def test_a_returned_vector_is_a_copy() -> None:
    index = VectorIndex(DIMENSIONS)
    index.upsert("a", _vector(1))
    vector = index.vector("a")
    assert vector is not None
    vector[:] = 0
    assert index.search(_vector(1), 1)[0][0][1] == pytest.approx(1.0)
    index.clear()
    assert index.vector("a") is None


def test_growth_moves_no_vector() -> None:
    index, words = VectorIndex(DIMENSIONS), WordVectors(DIMENSIONS)
    for number in range(700):
        index.upsert(f"n{number}", _vector(number))
        words.upsert(f"n{number}", _vector(number))
    for number in (0, 63, 64, 300, 699):
        assert _rounded(index.search(_vector(number), 1)) == [[(f"n{number}", 1.0)]]
        assert [name for name, _ in words.search(_vector(number), 1)[0]] == [f"n{number}"]
        assert f"n{number}" in index
        assert f"n{number}" in words
    index.clear()
    words.clear()
    assert len(index) == len(words) == 0
    assert words.search(_vector(0)) == [[]]


def test_acceptance_looks_as_far_as_it_has_to() -> None:
    words = WordVectors(DIMENSIONS)
    base = _vector(0)
    words.upsert_many({f"w{row:04}": base for row in range(3000)})
    found = words.search(base, limit=2, accept=lambda word: word >= "w2990")[0]
    assert [word for word, _ in found] == ["w2990", "w2991"]


@given(
    st.lists(st.tuples(st.sampled_from(("put", "drop", "ask")), st.integers(0, 30)), max_size=40),
    st.integers(1, 5),
    st.sampled_from((-1.0, 0.2, 0.5)),
)
@settings(max_examples=60, deadline=None)
def test_remembered_neighbours_are_what_the_vectors_would_say(
    script: list[tuple[str, int]], limit: int, minimum: float
) -> None:
    words = WordVectors(DIMENSIONS)
    near = NearestCache(words)
    for step, number in script:
        if step == "put":
            words.upsert(f"w{number}", _vector(number % 7) + 0.3 * _vector(number))
        elif step == "drop":
            words.remove(f"w{number}")
        asked = np.stack([_vector(number % 7), _vector(3), _vector(number % 7)])
        names = [f"q{number % 7}", "q3", f"q{number % 7}"]

        def accept(word: str, number: int = number) -> bool:
            return int(word[1:]) % 2 == number % 2

        found, expected = near.search(names, asked, limit, minimum, accept), words.search(asked, limit, minimum, accept)
        # Rounding depends on how many rows are multiplied at once.
        assert [[word for word, _ in row] for row in found] == [[word for word, _ in row] for row in expected]
        for row, other in zip(found, expected, strict=True):
            assert [cosine for _, cosine in row] == pytest.approx([cosine for _, cosine in other], abs=1e-5)


def test_beyond_the_neighbours_that_are_remembered_those_of_the_scope_are_still_found() -> None:
    words = WordVectors(DIMENSIONS)
    base = _vector(0)
    words.upsert_many({f"w{row:04}": base for row in range(3 * NEAR_KEPT)})
    last = f"w{3 * NEAR_KEPT - 1:04}"
    found = NearestCache(words).search(["q"], base.reshape(1, -1), 2, 0.5, lambda word: word == last)
    assert [[word for word, _ in row] for row in found] == [[last]]
