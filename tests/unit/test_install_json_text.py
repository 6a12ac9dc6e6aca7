"""Changes in a JSON text: what was asked for changes, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.cli.clients.json_text import NotJson, meaning, with_value, without

COMMENTED = """\
{
    // the owner's remark
    "theme": "dark", /* chosen */
    "servers": {
        "other": {"command": "o"}, // keep me
    },
}
"""

NAMES = st.text(st.characters(codec="utf-8"), max_size=4)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), NAMES
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
LAYOUTS = st.sampled_from([None, 1, 2, 4, "\t"])


@given(OBJECTS, LAYOUTS, NAMES, NAMES, VALUES)
def test_setting_a_member_changes_the_meaning_by_that_member_only(
    before: dict[str, Any], layout: str | int | None, outer: str, name: str, value: object
) -> None:
    text = json.dumps(before, indent=layout, ensure_ascii=False)
    expected = json.loads(text)
    if outer in expected and not isinstance(expected[outer], dict):
        return
    expected.setdefault(outer, {})[name] = value
    after = with_value(text, (outer, name), value)
    assert json.loads(after) == expected
    assert meaning(after) == expected


@given(OBJECTS, LAYOUTS, NAMES, NAMES, VALUES)
def test_what_was_put_in_is_taken_out_without_a_trace(
    before: dict[str, Any], layout: str | int | None, outer: str, name: str, value: object
) -> None:
    text = json.dumps(before, indent=layout, ensure_ascii=False)
    there = before.get(outer)
    if outer in before and not (isinstance(there, dict) and there and name not in there):
        return
    assert json.loads(without(with_value(text, (outer, name), value), (outer, name))) == before


@given(st.text(alphabet='{}[]",:/* \n\\ab0-.tre', max_size=40))
def test_any_text_is_read_as_json_reads_it_or_refused(text: str) -> None:
    try:
        found = meaning(text)
    except NotJson:
        with pytest.raises(ValueError, match=r".*"):
            json.loads(text)
        return
    try:
        assert found == json.loads(text)
    except ValueError:
        assert "/" in text or "," in text or not text.strip()


@given(st.lists(SCALARS, min_size=1, max_size=5), st.integers(0, 4), LAYOUTS)
def test_an_item_is_taken_out_of_a_list(items: list[Any], at: int, layout: str | int | None) -> None:
    at %= len(items)
    text = json.dumps({"a": items, "b": 1}, indent=layout)
    left = items[:at] + items[at + 1 :]
    assert json.loads(without(text, ("a", at))) == ({"a": left, "b": 1} if left else {"b": 1})


def test_comments_commas_order_and_indentation_stay() -> None:
    after = with_value(COMMENTED, ("servers", "keymem"), {"command": "k"})
    assert after == COMMENTED.replace(
        "// keep me\n", '// keep me\n        "keymem": {\n            "command": "k"\n        },\n'
    )
    assert without(after, ("servers", "keymem")) == COMMENTED


def test_a_first_member_makes_room_for_itself() -> None:
    assert with_value("", ("a", "b"), 1) == '{\n  "a": {\n    "b": 1\n  }\n}\n'
    assert with_value("{}", ("a",), 1) == '{\n  "a": 1\n}'
    assert without('{\n  "a": {\n    "b": 1\n  }\n}\n', ("a", "b")) == "{}\n"


def test_line_ends_of_windows_and_a_byte_order_mark_stay() -> None:
    text = '\ufeff{\r\n  "a": 1\r\n}\r\n'
    after = with_value(text, ("b",), {"c": 2})
    assert after == '\ufeff{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n'
    assert without(after, ("b",)) == text


def test_of_members_with_one_name_the_last_counts() -> None:
    assert json.loads(with_value('{"a": 1, "a": 2}', ("a",), 3)) == {"a": 3}


@pytest.mark.parametrize(
    "text", ['{"a": }', "{'a': 1}", '{"a": 1 "b": 2}', "{", "[1,,2]", '{"a": 1} x', "[" * 5_000, '{"a": nul}']
)
def test_a_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        meaning(text)
