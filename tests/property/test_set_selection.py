"""Set selection: laws of the list that direct retrieval hands out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.rank.firststage import Coverage
from keymem_daemon.core.rank.select import selected
from keymem_daemon.core.rank.weights import Weights

WEIGHTS = Weights()
IDF = {"harbour": 2.0, "lantern": 1.0, "oil": 0.5}
# Scores so near that who is lowered most goes far back.
MEMORY = st.tuples(st.floats(0.8, 1.0), st.sampled_from([0, 7, 7, 3]))
MEMORIES = st.lists(MEMORY, min_size=1, max_size=60) | st.lists(MEMORY, min_size=40, max_size=60)


def chosen(memories: list[tuple[float, int]], limit: int) -> list[tuple[str, float]]:
    """Memories of these scores and covered terms (sets of bits), selected."""
    ids = [f"m{number:02}" for number in range(len(memories))]
    masks = dict(zip(ids, (mask for _, mask in memories), strict=True))
    coverage = Coverage(IDF, 0.0, lambda wanted: [masks[memory_id] for memory_id in wanted])
    return selected(dict(zip(ids, (score for score, _ in memories), strict=True)), coverage, limit, WEIGHTS)


@given(MEMORIES, st.integers(1, 20), st.integers(11, 60))
def test_a_shorter_list_is_the_beginning_of_a_longer_one(memories: list[tuple[float, int]], one: int, other: int) -> None:
    short, long = sorted((one, other))
    assert chosen(memories, short) == chosen(memories, long)[: min(short, len(memories))]


@given(MEMORIES, st.integers(1, 60))
def test_scores_fall_and_nobody_comes_twice(memories: list[tuple[float, int]], limit: int) -> None:
    found = chosen(memories, limit)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert len({memory_id for memory_id, _ in found}) == len(found) == min(limit, len(memories))
