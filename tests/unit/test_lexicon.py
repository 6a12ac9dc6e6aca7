from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.closed_classes import AMBIGUOUS
from keymem_daemon.core.lexicon import Lexicon, load_lexicon, spelling
from keymem_daemon.core.text import scripts


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return load_lexicon()


def test_a_surface_form_of_the_shipped_lexicon_belongs_to_one_concept_only(lexicon: Lexicon) -> None:
    owners: dict[str, str] = {}
    for group in lexicon.groups:
        for form in lexicon.forms(group):
            assert owners.setdefault(spelling(form), group) == group, form


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_plain_text_is_spelled_as_it_is_beside_another_script(text: str) -> None:
    assert spelling(text + "梨") == spelling(text) + "梨"


def test_the_shipped_lexicon_has_the_korean_english_concepts_it_promises(lexicon: Lexicon) -> None:
    both = [
        group
        for group in lexicon.groups
        if {"hangul", "latin"} <= {script for form in lexicon.forms(group) for script in scripts(form)}
    ]
    assert len(both) >= 1_000


def test_every_form_of_the_shipped_lexicon_finds_its_own_concept(lexicon: Lexicon) -> None:
    assert all(lexicon.group(form) == group for group in lexicon.groups for form in lexicon.forms(group))


def test_no_word_of_two_meanings_is_in_the_shipped_lexicon(lexicon: Lexicon) -> None:
    assert [word for word in sorted(AMBIGUOUS) if lexicon.group(word) is not None] == []


def test_no_form_of_the_shipped_lexicon_has_stray_space_or_is_empty(lexicon: Lexicon) -> None:
    forms = [form for group in lexicon.groups for form in lexicon.forms(group)]
    assert [form for form in forms if not form or form != form.strip() or "  " in form or "|" in form] == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("파이썬", "Python"),
        ("리액트", "React"),
        ("쿠버네티스", "k8s"),
        ("데이터베이스", "DB"),
        ("지속적 통합", "CI"),
        ("사과", "apple"),
        ("タイプスクリプト", "TypeScript"),
        ("图书馆", "도서관"),
    ],
)
def test_a_loanword_and_its_original_are_one_concept(lexicon: Lexicon, a: str, b: str) -> None:
    assert lexicon.group(a) is not None
    assert lexicon.group(a) == lexicon.group(b)


@pytest.mark.parametrize("surface", ["DATABASE", "databases", "ＤＢ", "data-base", "데이터 베이스", "Data Base"])
def test_case_width_number_and_joints_do_not_hide_a_concept(lexicon: Lexicon, surface: str) -> None:
    assert lexicon.group(surface) == "database"


@pytest.mark.parametrize(
    "surface", ["배", "눈", "glass door", "library", "TypeScripty", "", "   ", "\ud800", "window manager"]
)
def test_a_stranger_or_a_word_of_two_meanings_has_no_concept(lexicon: Lexicon, surface: str) -> None:
    assert lexicon.group(surface) is None


def test_a_word_whose_plural_means_something_else_keeps_its_own_concept(lexicon: Lexicon) -> None:
    assert lexicon.group("glasses") == lexicon.group("안경")
    assert lexicon.group("glass") != lexicon.group("glasses")
    assert lexicon.group("window") != lexicon.group("Windows")
    assert lexicon.group("panda") != lexicon.group("pandas")


def test_the_words_to_embed_have_one_form_for_each_script_of_a_concept() -> None:
    lexicon = Lexicon([["apple", "사과", "manzana", "りんご", "苹果"], ["cat", "고양이"]])
    assert lexicon.words == ("apple", "사과", "りんご", "苹果", "cat", "고양이")


def test_a_form_in_two_concepts_is_refused() -> None:
    with pytest.raises(ValueError, match="two groups"):
        Lexicon([["pear", "배"], ["ship", "배"]])


def test_a_concept_with_a_single_form_is_refused() -> None:
    with pytest.raises(ValueError, match="two forms"):
        Lexicon([["pear"]])


def test_a_singular_that_two_concepts_share_belongs_to_neither() -> None:
    lexicon = Lexicon([["indexes", "색인"], ["indices", "지수"]])
    assert lexicon.group("index") is None
    assert lexicon.group("indices") == "indices"


def test_asking_for_the_forms_of_no_concept_is_an_error(lexicon: Lexicon) -> None:
    with pytest.raises(KeyError):
        lexicon.forms("no such concept")
