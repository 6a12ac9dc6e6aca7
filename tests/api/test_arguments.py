"""What agents really send is accepted where it is clear, and refused by name where it is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.api import arguments as a
from keymem_daemon.core.errors import InvalidArgument, KeymemError

FACT = {"content": "The apple is red", "keys": ["apple"]}


def refused(model: type[a.Arguments], raw: object) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        a.parsed(model, raw)
    return caught.value


def test_arrays_objects_numbers_and_booleans_may_come_as_json_strings() -> None:
    given = a.parsed(
        a.Remember,
        {
            "content": "x",
            "keys": '["apple", "fruit"]',
            "key_types": '{"apple": "name"}',
            "ttl_seconds": "3600",
            "related_to": "[]",
        },
    )
    assert given.keys == ("apple", "fruit")
    assert given.key_types == {"apple": "name"}
    assert given.ttl_seconds == 3600
    assert given.related_to == ()
    recall = a.parsed(a.Recall, {"query": "apple", "top_k": "5", "explain": "true"})
    assert (recall.top_k, recall.explain) == (5, True)


@pytest.mark.parametrize("value", [8, 8.0, "8", "8.0", " 8 "])
def test_a_whole_number_is_accepted_in_every_spelling(value: object) -> None:
    assert a.parsed(a.Recall, {"query": "apple", "top_k": value}).top_k == 8


@pytest.mark.parametrize(
    "value", [True, "many", 8.5, [8], {}, float("nan"), float("inf"), 10**400, "1e999", "NaN", -(2**60)]
)
def test_what_is_no_ordinary_whole_number_is_refused_by_name(value: object) -> None:
    assert refused(a.Recall, {"query": "apple", "top_k": value}).argument == "top_k"


def test_null_is_the_same_as_absent() -> None:
    given = a.parsed(a.Recall, {"query": "apple", "context": None, "top_k": None, "namespace": None})
    assert (given.context, given.top_k, given.namespace) == (None, 8, None)
    assert refused(a.Recall, {"query": None}).argument == "query"


def test_an_unknown_argument_is_refused_and_the_known_ones_are_named() -> None:
    error = refused(a.ReadMemory, {"memory_id": "x", "via_key": "y"})
    assert error.argument == "via_key"
    assert "via_key_id" in error.message


def test_keys_that_are_plain_text_are_refused_and_not_split_by_guess() -> None:
    error = refused(a.Remember, {"content": "x", "keys": "apple, fruit"})
    assert error.argument == "keys"
    assert "array of strings" in error.message
    assert refused(a.Remember, {"content": "x", "keys": ["apple", 3]}).argument == "keys[1]"


@pytest.mark.parametrize("code_point", [0, 0xD800, 0xDFFF])
@pytest.mark.parametrize("argument", ["content", "namespace"])
def test_text_with_a_nul_or_a_lone_surrogate_is_refused_with_its_position(code_point: int, argument: str) -> None:
    error = refused(a.Remember, {**FACT, argument: f"a{chr(code_point)}b"})
    assert error.argument == argument
    assert "position 1" in error.message
    error.message.encode("utf-8")


def test_a_surrogate_in_the_name_of_an_argument_does_not_break_the_error() -> None:
    error = refused(a.Recall, {"query": "x", "\ud800": 1})
    assert error.message.encode("utf-8").decode() == error.message
    assert error.hint.encode("utf-8").decode() == error.hint


def test_a_source_may_be_text_an_object_or_an_object_in_json() -> None:
    assert a.parsed(a.Remember, {**FACT, "source": "letter"}).source == {"note": "letter"}
    assert a.parsed(a.Remember, {**FACT, "source": {"page": 3}}).source == {"page": "3"}
    assert a.parsed(a.Remember, {**FACT, "source": '{"page": "3"}'}).source == {"page": "3"}


def test_arguments_that_are_no_object_are_refused() -> None:
    assert refused(a.Recall, ["query"]).argument == "arguments"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MODELS: list[type[a.Arguments]] = [
    a.Recall,
    a.Browse,
    a.ReadKey,
    a.ReadMemory,
    a.Confirm,
    a.Remember,
    a.RememberBatch,
    a.Correct,
    a.Dismiss,
    a.Forget,
    a.Retrieve,
    a.History,
    a.Show,
]


@given(st.sampled_from(MODELS), st.data())
def test_any_json_is_either_parsed_or_refused_with_an_error_that_can_be_sent(
    model: type[a.Arguments], data: st.DataObject
) -> None:
    names = st.sampled_from(sorted(model.model_fields)) | st.text(max_size=4)
    raw = data.draw(st.dictionaries(names, JSON, max_size=5) | JSON)
    said: list[str | None] = []
    try:
        a.parsed(model, raw)
    except KeymemError as error:
        said = [error.message, error.hint]
    assert json.loads(json.dumps(said, ensure_ascii=False).encode("utf-8")) == said
