"""Where sentences end, by example."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.index.sentences import MAX_CHARACTERS, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met Mrs. Jones. They talked.", ["Dr. Smith met Mrs. Jones.", "They talked."]),
        ("The U.S. team won, e.g. in May. Good.", ["The U.S. team won, e.g. in May.", "Good."]),
        ("J. R. R. Tolkien wrote it. I read it.", ["J. R. R. Tolkien wrote it.", "I read it."]),
        ("It costs 3.50 in v1.2.3. Fine.", ["It costs 3.50 in v1.2.3.", "Fine."]),
        ("He works at Acme Inc. She does not.", ["He works at Acme Inc.", "She does not."]),
        ("He said “Go.” Then he went.", ["He said “Go.”", "Then he went."]),
        ("Wait... what? Yes", ["Wait...", "what?", "Yes"]),
        ("- milk\n- eggs and 2.5 l water\n\n3. bread", ["milk", "eggs and 2.5 l water", "bread"]),
        ("# Title\nText follows", ["Title", "Text follows"]),
        ("오늘은 맑다. 내일은 흐리다.", ["오늘은 맑다.", "내일은 흐리다."]),
        ("오늘은 맑다.내일은 흐리다.", ["오늘은 맑다.", "내일은 흐리다."]),
        ("今日は晴れ。明日は雨！本当？はい", ["今日は晴れ。", "明日は雨！", "本当？", "はい"]),
        ("他说：「走吧。」然后走了。", ["他说：「走吧。」", "然后走了。"]),
        ("node.js and end.Next stay", ["node.js and end.Next stay"]),
        ("", []),
        (" \n\t\n", []),
        ("--- *** ...", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_long_sentence_is_cut_at_a_space() -> None:
    text = " ".join(f"word{number}" for number in range(500))
    pieces = sentences(text)
    assert " ".join(pieces) == text
    assert all(len(piece) <= MAX_CHARACTERS for piece in pieces)


def test_an_unbroken_text_is_cut_all_the_same() -> None:
    assert [len(piece) for piece in sentences("가" * 1000)] == [400, 400, 200]


@given(st.text(max_size=2000))
def test_no_sentence_is_empty_or_too_long_and_no_letter_is_lost_or_doubled(text: str) -> None:
    pieces = sentences(text)
    assert all(piece.strip() == piece and piece and len(piece) <= MAX_CHARACTERS for piece in pieces)
    joined = "".join(char for char in "".join(pieces) if char.isalpha())
    assert joined == "".join(char for char in text if char.isalpha())
