from __future__ import annotations

import pytest

from keymem_daemon.core.closed_classes import (
    AMBIGUOUS,
    CLASSES,
    closed_class,
    closed_member,
    differ_only_in_qualifier,
    is_ambiguous,
    qualifiers,
)
from keymem_daemon.core.text import fold


@pytest.mark.parametrize(
    ("surface", "name"),
    [
        ("Monday", "weekday"),
        ("금요일", "weekday"),
        ("月曜日", "weekday"),
        ("星期五", "weekday"),
        ("miércoles", "weekday"),
        ("1월", "month"),
        ("December", "month"),
        ("Q3", "quarter"),
        ("하반기", "quarter"),
        ("어머니", "kinship"),
        ("older sister", "kinship"),
        ("왼쪽", "direction"),
        ("파란색", "colour"),
        ("여름", "season"),
        ("2023", "number"),
        ("v1.2.3", "number"),
        ("3층", "number"),
        ("21st", "number"),
        ("셋째", "number"),
        ("VII", "number"),
        ("B", "letter"),
        ("XL", "size"),
    ],
)
def test_a_member_of_a_closed_set_is_known_in_every_language(surface: str, name: str) -> None:
    assert closed_class(surface) == name


@pytest.mark.parametrize("surface", ["apple", "고양이", "Python 3", "Monday meeting", "", "k8s", "red wine", "동건"])
def test_what_is_more_than_a_member_of_a_closed_set_belongs_to_none(surface: str) -> None:
    assert closed_class(surface) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [("Monday", "월요일"), ("Q1", "1분기"), ("둘", "two"), ("红色", "빨간색"), ("1月", "January"), ("北", "norte")],
)
def test_words_for_one_member_share_its_value_across_languages(a: str, b: str) -> None:
    assert closed_member(a) == closed_member(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Agent A", "Agent B"),
        ("Q1", "Q2"),
        ("2023", "2024"),
        ("Monday", "Friday"),
        ("v1", "v2"),
        ("1월", "2월"),
        ("Team Red", "Team Blue"),
        ("iPhone 14", "iPhone 15"),
        ("Python", "Python 3"),
        ("node-1", "node-2"),
        ("left knee", "right knee"),
        ("phase II", "phase III"),
        ("월요일 회의", "금요일 회의"),
        ("release 1.0", "release 1.1"),
    ],
)
def test_keys_that_differ_in_a_qualifier_are_siblings_both_ways(a: str, b: str) -> None:
    assert differ_only_in_qualifier(a, b)
    assert differ_only_in_qualifier(b, a)


@pytest.mark.parametrize(
    ("a", "b"), [("apple", "pear"), ("Q1", "1분기"), ("Agent A", "agent a"), ("Team Red", "Group Blue")]
)
def test_equal_keys_and_keys_that_differ_in_more_are_no_siblings(a: str, b: str) -> None:
    assert not differ_only_in_qualifier(a, b)


def test_qualifiers_are_listed_in_order_with_their_class() -> None:
    assert qualifiers("Team Red 2 plan") == (("colour", "red"), ("number", "2"))


def test_each_word_of_two_meanings_is_stored_folded() -> None:
    assert {word for word in AMBIGUOUS if word != fold(word)} == set()
    assert is_ambiguous("배")
    assert is_ambiguous("Spring")
    assert not is_ambiguous("apple")


def test_the_classes_that_the_merge_rule_is_specified_with_exist() -> None:
    assert {"weekday", "month", "kinship", "number", "direction", "colour"} <= CLASSES
