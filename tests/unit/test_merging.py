from __future__ import annotations

from collections.abc import Sequence

import pytest

from keymem_daemon.core.lexicon import Lexicon
from keymem_daemon.core.merging import Create, MergeInto, Neighbour, decide_merge, merge_groups
from keymem_daemon.core.plurals import stem_key
from keymem_daemon.core.profiles import PROFILES, Profile

LEXICON = Lexicon([["Python", "파이썬"], ["chair", "의자"], ["stool", "스툴"], ["kiwi", "키위"]])
BUILTIN = PROFILES["builtin"]
BGE_M3 = PROFILES["bge-m3"]


def key(concept: str, similarity: float, *aliases: str, key_type: str = "concept", key_id: str = "") -> Neighbour:
    return Neighbour(key_id or concept, concept, aliases, key_type, similarity)


def decide(
    surface: str,
    *neighbours: Neighbour,
    key_type: str = "concept",
    profile: Profile = BUILTIN,
    words: Sequence[tuple[str, float]] = (),
    mutual: bool = True,
) -> MergeInto | Create:
    return decide_merge(surface, key_type, neighbours, profile, LEXICON, lambda: words, lambda _key: mutual)


@pytest.mark.parametrize("key_type", ["concept", "name", "proper_noun"])
def test_equal_spelling_is_one_key_whatever_the_types(key_type: str) -> None:
    assert decide("ＮＥＷＴＯＮ", key("Newton", 1.0, key_type="name"), key_type=key_type) == MergeInto(
        "Newton", "exact"
    )


def test_an_alias_counts_as_spelling() -> None:
    assert decide("snake language", key("Python", 0.2, "Snake Language")) == MergeInto("Python", "exact")


def test_an_english_plural_is_its_singular() -> None:
    assert decide("meetings", key("meeting", 0.9)) == MergeInto("meeting", "stem")


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("apples", "apple"),
        ("queries", "query"),
        ("movies", "movie"),
        ("boxes", "box"),
        ("classes", "class"),
        ("databases", "database"),
        ("viruses", "virus"),
        ("caches", "cache"),
        ("tomatoes", "tomato"),
        ("shoes", "shoe"),
        ("children", "child"),
        ("React hooks", "react hook"),
        ("potatoes", "potato"),
        ("analyses", "analysis"),
        ("hypotheses", "hypothesis"),
    ],
)
def test_plurals_of_every_pattern_are_recognised(plural: str, singular: str) -> None:
    assert stem_key(plural) == stem_key(singular)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("university", "universe"),
        ("news", "new"),
        ("species", "specie"),
        ("physics", "physic"),
        ("glasses", "glass"),
        ("glass", "glas"),
        ("gas", "ga"),
        ("pandas", "panda"),
        ("windows", "window"),
        ("https", "http"),
        ("Adams", "Adam"),
        ("customs", "custom"),
        ("data", "datum"),
        ("running", "run"),
    ],
)
def test_words_that_only_look_like_plurals_stay_apart(a: str, b: str) -> None:
    assert stem_key(a) != stem_key(b)


def test_a_name_takes_part_in_no_step_but_equal_spelling() -> None:
    assert decide("파이썬", key("Python", 0.99, key_type="proper_noun")) == Create()
    assert decide("파이썬", key("Python", 0.99), key_type="name") == Create()
    assert decide("meetings", key("meeting", 0.99, key_type="name")) == Create()


def test_the_lexicon_merges_its_own_pair_however_far_the_vectors_are() -> None:
    assert decide("파이썬", key("고양이", 0.5), key("Python", 0.1)) == MergeInto("Python", "lexicon")


def test_two_scripts_merge_when_near_mutual_and_with_a_margin() -> None:
    assert decide("바늘", key("needle", 0.9), key("thread", 0.79)) == MergeInto("needle", "cross_script")


def test_the_threshold_itself_merges_and_anything_below_is_a_hint() -> None:
    assert decide("바늘", key("needle", 0.85)) == MergeInto("needle", "cross_script")
    near = key("needle", 0.84)
    assert decide("바늘", near) == Create((near,))
    assert decide("바늘", key("needle", 0.74)) == Create()


def test_a_close_rival_forbids_both_merge_and_hint() -> None:
    assert decide("바늘", key("needle", 0.9), key("pin", 0.81)) == Create()


def test_a_word_of_the_lexicon_is_a_rival_although_no_key_has_it() -> None:
    assert decide("바늘", key("needle", 0.9), words=[("chair", 0.85)]) == Create()


def test_words_of_the_lexicon_in_another_script_and_other_forms_of_the_key_are_no_rivals() -> None:
    words = [("의자", 0.95), ("needles", 0.95)]
    assert decide("바늘", key("needle", 0.9), words=words) == MergeInto("needle", "cross_script")


def test_a_translation_into_a_third_script_is_no_rival() -> None:
    assert decide("바늘", key("needle", 0.9), key("針", 0.88)) == MergeInto("needle", "cross_script")


def test_a_name_is_a_rival_although_nothing_merges_into_it() -> None:
    assert decide("바늘", key("needle", 0.9), key("Needles", 0.85, key_type="name")) == Create()
    assert decide("바늘", key("Needles", 0.95, key_type="name"), key("needle", 0.85)) == Create()


def test_a_key_whose_nearest_is_another_gets_a_hint_only() -> None:
    near = key("needle", 0.9)
    assert decide("바늘", near, mutual=False) == Create((near,))


@pytest.mark.parametrize(
    ("surface", "concept"),
    [
        ("월요일", "Friday"),
        ("삼촌", "aunt"),
        ("아이폰 14", "iPhone 15"),
        ("2분기 실적", "Q3 earnings"),
        ("왼쪽 무릎", "right knee"),
        ("파란 셔츠", "red shirt"),
        ("셋", "four"),
        ("바늘 2", "needle"),
    ],
)
def test_closed_classes_digits_and_qualifiers_stop_the_nearest_vectors(surface: str, concept: str) -> None:
    assert decide(surface, key(concept, 0.99)) == Create()


def test_two_concepts_of_the_lexicon_never_merge_by_similarity() -> None:
    assert decide("의자", key("stool", 0.99)) == Create()


def test_a_word_of_two_meanings_gets_a_hint_only() -> None:
    near = key("pear", 0.95)
    assert decide("배", near) == Create((near,))


def test_within_one_script_no_similarity_merges_but_a_synonym_is_a_hint() -> None:
    near = key("holiday", 0.99)
    assert decide("vacation", near) == Create((near,))
    assert decide("vacation", key("trip", 0.84)) == Create()
    assert decide("Agent A", key("Agent B", 0.99)) == Create()


def test_a_key_with_a_form_in_the_same_script_is_not_reached_across_scripts() -> None:
    near = key("Kim Minsu", 0.95, "김민수")
    assert decide("김민지", near) == Create((near,))


def test_the_similarity_to_the_lexicon_is_not_asked_for_without_need() -> None:
    def fail() -> Sequence[tuple[str, float]]:
        raise AssertionError

    assert decide_merge("바늘", "concept", [key("cloud", 0.3)], BUILTIN, LEXICON, fail, lambda _key: True) == Create()


def test_a_model_with_a_short_key_threshold_merges_short_keys_by_it() -> None:
    assert decide("holiday", key("vacation", 0.91), profile=BGE_M3) == MergeInto("vacation", "threshold")
    near = key("vacation", 0.89)
    assert decide("holiday", near, profile=BGE_M3) == Create((near,))


def test_a_long_key_merges_by_the_lower_threshold() -> None:
    long = key("plans for the summer trip", 0.87)
    assert decide("the plan for summer travel", long, profile=BGE_M3) == MergeInto(long.key_id, "threshold")


def test_a_model_without_a_short_key_threshold_merges_short_keys_by_spelling_only() -> None:
    near = key("vacation", 0.99)
    assert decide("holiday", near, profile=PROFILES["openai"]) == Create((near,))


@pytest.mark.parametrize("profile", list(PROFILES.values()), ids=list(PROFILES))
def test_siblings_that_differ_in_a_qualifier_never_merge_under_any_profile(profile: Profile) -> None:
    pairs = [("the plan of agent A", "the plan of agent B"), ("Q1", "Q2"), ("2023", "2024"), ("Monday", "Friday")]
    for a, b in pairs:
        assert not isinstance(decide(a, key(b, 1.0), profile=profile), MergeInto)


def test_merge_groups_name_the_plural_and_the_concept_and_never_collide() -> None:
    assert merge_groups("kiwis", LEXICON) == ("stem:kiwi", "lexicon:kiwi")
    assert merge_groups("needles", LEXICON) == ("stem:needle",)


def test_with_no_neighbour_a_key_of_its_own_is_made() -> None:
    assert decide("바늘") == Create()
