"""What is written as a question and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.questions import asks


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


@given(st.text())
def test_any_text_with_a_question_mark_asks(text: str) -> None:
    assert asks(f"{text}?")
