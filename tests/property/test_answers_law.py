"""Looking recorded responses up by what they name finds every one that reading them all would find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.store.answers import Answers
from keymem_daemon.store.records import encoded

IDS = ("0123456789ab", "ba9876543210", "00000000dead")
texts = st.text(st.sampled_from('ab" \\딸:,{é'), max_size=6)
strings = texts | st.sampled_from(IDS) | st.sampled_from([f"see {IDS[0]}{IDS[1]}, then ({IDS[2]})"])
responses = st.lists(
    st.recursive(strings, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)).map(
        encoded
    ),
    max_size=8,
)


def as_reading_finds(recorded: dict[int, str], ids: list[str], wanted: list[str]) -> set[int]:
    mentions = [*ids, *map(encoded, wanted)]
    return {number for number, response in recorded.items() if any(mention in response for mention in mentions)}


@given(responses, st.lists(st.sampled_from(IDS)), st.lists(texts, max_size=3), st.integers(0, 9), st.integers(0, 9))
def test_no_response_that_names_it_is_missed(
    given_responses: list[str], ids: list[str], wanted: list[str], first: int, last: int
) -> None:
    recorded = dict(enumerate(given_responses, 1))
    answers = Answers(recorded.items())
    found = answers.naming(ids, map(encoded, wanted))
    assert found is not None
    assert as_reading_finds(recorded, ids, wanted) <= set(found)
    assert found == sorted(found)
    last = min(last, len(recorded))
    answers.keep(first, last)
    answers.add(last + 1, encoded([IDS[0]]))
    kept = {number: response for number, response in recorded.items() if first <= number <= last}
    kept[last + 1] = encoded([IDS[0]])
    left = answers.naming(ids, map(encoded, wanted))
    assert left is not None
    assert as_reading_finds(kept, ids, wanted) <= set(left) <= set(kept)


def test_what_names_nothing_of_it_is_not_found() -> None:
    answers = Answers([(1, encoded({"saved": IDS[0]})), (2, encoded({"saved": IDS[1], "note": "harbour"}))])
    assert answers.naming([IDS[1]], []) == [2]
    assert answers.naming([], [encoded("harbour")]) == [2]
    assert answers.naming([IDS[2]], [encoded("harb")]) == []


def test_an_id_of_another_form_cannot_be_looked_up() -> None:
    assert Answers([]).naming([IDS[0], "m1"], []) is None
