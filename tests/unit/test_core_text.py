"""When a key stands literally in a text, when two texts are one, and what may be a key at all."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.text import (
    candidate_spans,
    fold,
    is_blank,
    literal_spans,
    nfc,
    normalized,
    occurs_in,
    scripts,
    usable_key,
)


def stands(text: str, surface: str) -> bool:
    return occurs_in(fold(text), fold(surface))


@pytest.mark.parametrize("text", ["동건이는 어디 살아?", "동건이가 왔다", "동건아!", "동건은 학생", "동건 생일", "나는 동건이랑 놀았다", "동건한테까지도 말했다"])
def test_a_korean_name_is_named_whatever_particles_follow_it(text: str) -> None:
    assert stands(text, "동건")


@pytest.mark.parametrize("text", ["뉴턴은 사과를 봤다", "동건물 관리", "장동건의 영화", "활동건수", "동 건"])
def test_a_korean_name_is_not_found_inside_other_words(text: str) -> None:
    assert not stands(text, "동건")


def test_dong_geon_never_matches_newton() -> None:
    assert not stands("뉴턴", "동건")
    assert not stands("동건", "뉴턴")


@pytest.mark.parametrize(
    ("text", "surface"),
    [
        ("I write C++ every day.", "C++"),
        ("We moved to .NET last year", ".NET"),
        ("Node.js를 배우는 중", "Node.js"),
        ("React는 라이브러리다", "React"),
        ("REACT is a library", "react"),
        ("the naïve plan", "NAÏVE"),
        ("cafe\u0301 opens", "café"),
        ("ＰＹＴＨＯＮ 수업", "python"),
        ("New York is big", "new york"),
        ("New\n  York is big", "New York"),
        ("東京に住んでいます", "東京"),
        ("我喜欢苹果和梨", "苹果"),
        ("the key 🍎 apple stands", "🍎 apple"),
        ("STRASSE und Straße", "straße"),
        ("(apple)", "apple"),
        ("apple's colour", "apple"),
        ("v1.2 is out", "v1.2"),
        ("Привет, Мир!", "мир"),
    ],
)
def test_a_surface_is_found_at_unicode_word_boundaries_in_any_case(text: str, surface: str) -> None:
    assert stands(text, surface)


@pytest.mark.parametrize(
    ("text", "surface"),
    [
        ("pineapple", "apple"),
        ("apples", "apple"),
        ("Python3", "python"),
        ("asp.net", ".net"),
        ("catalogue", "cat"),
        ("Newtonian", "Newton"),
        ("해바라기", "바라"),
        ("cafe\u0301", "cafe"),
        ("हिन्दी", "हिन"),
        ("версия", "верс"),
    ],
)
def test_a_surface_is_not_found_within_a_word(text: str, surface: str) -> None:
    assert not stands(text, surface)


def test_a_single_ideograph_matches_only_where_it_stands_alone() -> None:
    assert stands("梨 と 林檎", "梨")
    assert not stands("山梨県", "梨")


def test_a_single_hangul_syllable_matches_with_its_particle() -> None:
    assert stands("물을 마신다", "물")
    assert not stands("물건을 산다", "물")


@given(st.text(max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=60))
def test_normalizing_twice_is_normalizing_once(text: str) -> None:
    assert normalized(normalized(text)) == normalized(text)


@given(st.text(max_size=60))
def test_composed_and_decomposed_text_is_the_same_text(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


_WORDS = st.sampled_from(["동건", "이는", "apple", "C++", ".NET", "東京", "梨", "에서", "é", " ", ",", "3", "🍎", "は", "New York"])


@given(st.lists(_WORDS, max_size=12).map("".join), st.lists(_WORDS, min_size=1, max_size=3).map("".join))
def test_looking_up_every_candidate_span_finds_what_searching_finds(text: str, surface: str) -> None:
    folded, wanted = fold(text), fold(surface)
    if not wanted or len(wanted.split()) > 6:
        return
    searched = set(literal_spans(folded, wanted))
    looked_up = {span for span in candidate_spans(folded) if folded[slice(*span)] == wanted}
    assert looked_up == searched


@given(st.text(st.characters(codec="ascii"), max_size=20), st.text(st.sampled_from("ab1 -.'_"), min_size=1, max_size=4))
def test_the_spans_of_a_plain_text_are_those_that_it_has_before_another_script(text: str, more: str) -> None:
    folded = fold(text + more)
    beside = fold(f"{folded} 梨")
    assert set(candidate_spans(folded)) == {span for span in candidate_spans(beside) if span[1] <= len(folded)}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["가나다라마바사" * 2_900, "天地玄黄" * 5_000, "a" * 20_000, "는" * 20_000, "word " * 4_000, "é" * 20_000])
def test_a_very_long_text_is_searched_in_linear_time(text: str) -> None:
    folded = fold(text)
    assert sum(1 for _ in literal_spans(folded, folded[:2])) <= len(folded)
    assert sum(1 for _ in candidate_spans(folded[:4_000], max_chars=16)) <= 16 * 4_000


@pytest.mark.parametrize("key", ["ab", "사", "梨", "の", "C#", "42", "v2", "é1", "😀😀", "👨\u200d👩"])
def test_two_characters_or_one_cjk_character_make_a_usable_key(key: str) -> None:
    assert usable_key(key)


@pytest.mark.parametrize("key", ["", "a", "7", "é", " ", "-", "!?"])
def test_less_is_no_usable_key(key: str) -> None:
    assert not usable_key(key)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user likes strawberries.", "the user likes  strawberries"),
        ("“Quoted.”", "quoted"),
        ("Line one\nline two", "line one line two"),
        ("딸기를 좋아한다!", "딸기를 좋아한다"),
        ("cafe\u0301", "CAFÉ"),
        ("**bold**", "bold"),
        ("¿Qué?", "qué"),
    ],
)
def test_case_space_and_outer_punctuation_do_not_make_another_memory(one: str, other: str) -> None:
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I know C++", "I know C"),
        ("I know C#", "I know C"),
        ("It costs 5 €", "It costs 5 $"),
        ("The battery is at 5%", "The battery is at 5"),
        ("I like it 😀", "I like it 😡"),
        ("Well-known", "Well known"),
        ("!!!", "???"),
        ("The user likes strawberries", "The user loves strawberries"),
    ],
)
def test_what_carries_meaning_makes_another_memory(one: str, other: str) -> None:
    assert normalized(one) != normalized(other)


def test_text_is_stored_composed() -> None:
    assert nfc("cafe\u0301") == "café"
    assert nfc("ㅎㅏㄴ") == "ㅎㅏㄴ"


def test_scripts_are_those_of_the_letters() -> None:
    assert scripts("React는 좋다") == {"latin", "hangul"}
    assert scripts("2024!") == frozenset()


def test_a_sign_before_a_number_is_part_of_what_is_said() -> None:
    assert normalized("-5 degrees") != normalized("5 degrees")
    assert normalized("- five degrees") == normalized("five degrees")


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\ufeff", "\u2060\u200d", " \u200b "])
def test_text_of_which_nothing_can_be_seen_is_blank(text: str) -> None:
    assert is_blank(text)


def test_text_with_one_visible_character_is_not_blank() -> None:
    assert not is_blank("\u200b!")
