"""The last resort against large results: it fits, it says what is missing, it never loses an item of a batch."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.api.limit import RESULT_BYTES, Page, fitted


def size(result: dict[str, Any]) -> int:
    return len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_small_result_is_returned_as_it_is() -> None:
    result = {"keys": [{"concept": "apple"}]}
    assert fitted(result) is result


@given(st.integers(1, 300), st.integers(1, 300), st.text(st.characters(codec="utf-8"), max_size=40))
def test_lists_lose_their_ends_until_the_result_fits_and_it_says_so(keys: int, connected: int, concept: str) -> None:
    result = {
        "status": "found",
        "keys": [{"key_id": f"{number:012}", "concept": concept} for number in range(keys)],
        "memories": [{"id": "m", "connected_keys": [{"concept": concept, "key_id": str(n)} for n in range(connected)]}],
    }
    before = json.dumps(result)
    small = fitted(result)
    assert json.dumps(result) == before
    assert size(small) <= RESULT_BYTES
    assert small["keys"] == result["keys"][: len(small["keys"])]
    assert len(small["keys"]) >= 1
    assert ("truncated" in small) == (size(result) > RESULT_BYTES)


CODES = st.sampled_from(["invalid_argument", "not_found", "superseded", "too_large"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
ERRORS = st.builds(
    lambda code, message, hint: {"error": {"code": code, "message": message, "hint": hint}}, CODES, TEXTS, TEXTS
)
SAVED = st.builds(
    lambda number, old, hint: {"saved": f"{number:012x}"} | old | hint,
    st.integers(0, 2**48 - 1),
    st.sampled_from([{}, {"deduplicated": True}]),
    st.one_of(st.just({}), st.builds(lambda text: {"hints": {"phrase_keys": [text]}}, TEXTS)),
)


def test_a_batch_keeps_every_item_and_loses_its_hints_from_the_end() -> None:
    hints = {"near_keys": [{"your_key": "a" * 60, "existing_concept": "b" * 60}]}
    result = {"results": [{"saved": f"{number:012}", "hints": hints} for number in range(200)]}
    small = fitted(result)
    assert [item["saved"] for item in small["results"]] == [f"{number:012}" for number in range(200)]
    assert size(small) <= RESULT_BYTES
    assert "hints" in small["results"][0]
    assert "hints" not in small["results"][-1]
    assert "hints" in small["truncated"]


@given(st.lists(st.one_of(ERRORS, SAVED), min_size=1, max_size=20), st.sampled_from([1, 10]))
def test_a_batch_of_any_kind_fits_and_keeps_every_id_and_code_in_its_place(
    kinds: list[dict[str, Any]], times: int
) -> None:
    result = {"results": kinds * times}
    small = fitted(result)
    assert size(small) <= RESULT_BYTES
    assert [item.get("saved") for item in small["results"]] == [item.get("saved") for item in result["results"]]
    codes = [[item["error"]["code"] for item in batch["results"] if "error" in item] for batch in (small, result)]
    assert codes[0] == codes[1]
    assert ("truncated" in small) == (small != result)


def test_equal_errors_of_a_batch_are_said_once_with_the_items_they_belong_to() -> None:
    bad = {"error": {"code": "invalid_argument", "message": "keys: expected at least one", "hint": "Add keys."}}
    large = {"error": {"code": "too_large", "message": "content: at most 20,000", "hint": "Split it."}}
    small = fitted({"results": [large if number == 7 else bad for number in range(200)]})
    assert size(small) <= RESULT_BYTES
    assert small["results"][7] == {"error": {"code": "too_large"}}
    assert "items 0-6, 8-199: keys: expected at least one (Add keys.)" in small["truncated"]
    assert "items 7: content: at most 20,000 (Split it.)" in small["truncated"]


def test_two_hundred_duplicates_fit_and_it_says_which_are_not_marked_as_such() -> None:
    small = fitted({"results": [{"saved": f"{number:012}", "deduplicated": True} for number in range(200)]})
    assert size(small) <= RESULT_BYTES
    unmarked = [number for number, item in enumerate(small["results"]) if "deduplicated" not in item]
    assert f"items {unmarked[0]}-{unmarked[-1]} were there already" in small["truncated"]


def test_a_cut_page_says_where_the_next_one_begins_even_when_it_was_the_last() -> None:
    result = {"memories": [{"memory_id": str(number), "text": "x" * 500} for number in range(40)], "next_offset": None}
    small = fitted(result, page=Page("memories", 60))
    assert small["next_offset"] == 60 + len(small["memories"]) < 100
    assert "next_offset" in small["truncated"]


@given(st.integers(1, 4), st.text(st.characters(codec="utf-8"), min_size=1, max_size=10))
def test_what_no_list_can_give_up_is_cut_from_the_longest_texts(count: int, piece: str) -> None:
    result = {"memories": [{"id": str(number), "content": piece * 20_000} for number in range(count)]}
    small = fitted(result)
    assert size(small) <= RESULT_BYTES
    assert small["memories"][0]["content_truncated"] is True
    assert small["memories"][0]["content"].endswith("…")
