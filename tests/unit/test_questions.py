"""What is written as a question and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.questions import asks, names_something


@pytest.mark.parametrize(
    "text",
    [
        "Is it open?",
        "열려 있어?",
        "开着吗？",
        "where is the key",
        "What's due on Friday",
        "On which days is it open",
        "does the ferry run in June",
        "Can’t it wait",
        "doesn't it run in June",
        "dónde está la llave",
        "열쇠 어디 있어",
        "테너는 몇 명이 모자라",
        "보험은 언제까지 내",
        "왜 그런지 말고 언제 하는지가 아니라 뭐야",
        "Tell me the wifi password",
        "please remind us when the ferry runs",
        "와이파이 비밀번호 알려줘",
        "엄마 생신 좀 말해 줘",
        "鍵はどこ",
        "钥匙在哪里",
    ],
)
def test_a_mark_a_question_word_in_its_place_or_a_verb_in_front_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "Run it when the tests pass",
        "Fix whatever is broken",
        "The key lies where the pots are",
        "Let the button wait until it is valid",
        "테스트가 왜 실패하는지 찾아서 고쳐 줘",
        "어디서 멈췄는지 알려 줘",
        "이 함수를 나눠 줘",
        "Profile it and tell me where the time goes",
        "Doing it now",
        "Don't touch the key",
    ],
)
def test_orders_and_statements_ask_nothing_whatever_they_speak_of(text: str) -> None:
    assert not asks(text)


def test_a_long_text_in_korean_is_judged_in_one_pass() -> None:
    assert not asks("뭐 " * 30_000 + "지")
    assert asks("지 " * 30_000 + "뭐")


@given(st.text())
def test_any_text_with_a_question_mark_asks(text: str) -> None:
    assert asks(f"{text}?")


@pytest.mark.parametrize(
    "text",
    [
        "dates of our ferry passage in June",
        "yearly fee and its deadline",
        "page limit per chapter for the yearbook",
        "the port of the test database",
        "cost of a second no-show",
        "the keeper's birthday and address",
        "여객선 요금과 출발 시기",
        "Vercel 배포 방법",
    ],
)
def test_a_phrase_of_nouns_only_names_what_is_sought(text: str) -> None:
    assert names_something(text)
    assert not asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ferry",
        "ferry passage June",  # a list of words, which has a rule of its own
        "Put the labels into English",
        "Write docstrings for every method",
        "Rework the loop around the call",
        "The build fails with an error on Windows",
        "We pay the fee in June",
        "Paid the fee for the yearbook",
        "Moved page two to the front",
        "Doing page two of the yearbook",
        "Fee for the yearbook is paid",
        "Fee for the yearbook paid.",
        "Which fee of the two?",
        "a page about a boat that never sank",
        "don't pay the fee of June",
        "요금과 날짜를 바꿔 줘",
        "앱 배포 시작",
        "rotate keys in vault",
        "날짜를 6월로 바꿔",
        "fee of one and of two and of three and of four and of five and of six",
    ],
)
def test_what_says_orders_or_asks_something_names_more_than_a_thing(text: str) -> None:
    assert not names_something(text)


@given(st.text())
def test_any_text_can_be_judged(text: str) -> None:
    assert names_something(text) in {True, False}
