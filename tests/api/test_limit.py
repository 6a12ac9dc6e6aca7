"""The last resort against large results: it fits, it says what is missing, it never loses an item of a batch."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.api.limit import RESULT_BYTES, fitted


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


def test_a_batch_keeps_every_item_and_loses_its_hints_from_the_end() -> None:
    hints = {"near_keys": [{"your_key": "a" * 60, "existing_concept": "b" * 60}]}
    result = {"results": [{"saved": f"{number:012}", "hints": hints} for number in range(200)]}
    small = fitted(result)
    assert [item["saved"] for item in small["results"]] == [f"{number:012}" for number in range(200)]
    assert size(small) <= RESULT_BYTES + 120
    assert "hints" in small["results"][0]
    assert "hints" not in small["results"][-1]
    assert "hints" in small["truncated"]
