from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.core.closed_classes import closed_class, differ_only_in_qualifier, qualifiers
from keymem_daemon.core.lexicon import Lexicon, load_lexicon, spelling
from keymem_daemon.core.merging import Create, MergeInto, Neighbour, crosses_scripts, decide_merge, merge_groups
from keymem_daemon.core.plurals import singular, stem_key
from keymem_daemon.core.profiles import PROFILES, Profile
from keymem_daemon.core.text import fold

LEXICON = load_lexicon()
WORDS = [
    "apple",
    "사과",
    "Python",
    "파이썬",
    "Monday",
    "금요일",
    "Agent A",
    "Agent B",
    "2024",
    "meetings",
    "배",
    "猫",
    "gato",
]
SURFACES = st.one_of(
    st.sampled_from(WORDS), st.text(min_size=1, max_size=12), st.from_regex(r"[a-z]{2,9}s?", fullmatch=True)
)
COSINES = st.floats(min_value=-1.0, max_value=1.0)
TYPES = st.sampled_from(["concept", "name", "proper_noun"])
PROFILE = st.sampled_from(list(PROFILES.values()))


@st.composite
def neighbours(draw: Callable[[st.SearchStrategy[list[Neighbour]]], list[Neighbour]]) -> list[Neighbour]:
    rows = draw(
        st.lists(
            st.builds(
                Neighbour, st.uuids().map(str), SURFACES, st.lists(SURFACES, max_size=2).map(tuple), TYPES, COSINES
            ),
            max_size=5,
        )
    )
    return sorted(rows, key=lambda neighbour: -neighbour.similarity)


WORD_COSINES = st.lists(st.tuples(st.sampled_from(LEXICON.words), COSINES), max_size=4)


@given(SURFACES, TYPES, neighbours(), PROFILE, WORD_COSINES, st.booleans())
def test_every_decision_respects_the_guards_that_make_a_merge_safe(
    surface: str,
    key_type: str,
    keys: list[Neighbour],
    profile: Profile,
    words: list[tuple[str, float]],
    mutual: bool,
) -> None:
    decision = decide_merge(surface, key_type, keys, profile, LEXICON, lambda: words, lambda _key: mutual)
    if isinstance(decision, Create):
        assert set(decision.near) <= set(keys)
        assert all(near.key_type == "concept" for near in decision.near)
        return
    target = next(key for key in keys if key.key_id == decision.key_id)
    if decision.reason == "exact":
        assert fold(surface) in set(map(fold, target.surfaces))
        return
    assert key_type == target.key_type == "concept"
    if decision.reason == "stem":
        assert stem_key(surface) in set(map(stem_key, target.surfaces))
    elif decision.reason == "lexicon":
        assert LEXICON.group(surface) in set(map(LEXICON.group, target.surfaces))
    else:
        assert target.similarity >= min(profile.key_merge, profile.short_key_merge or profile.key_merge)
        assert closed_class(surface) is None
        assert not differ_only_in_qualifier(surface, target.concept)
        assert sorted(qualifiers(surface)) == sorted(qualifiers(target.concept))
        if profile.across_scripts_only:
            assert mutual
            assert all(crosses_scripts(surface, form) for form in target.surfaces)


@given(SURFACES, TYPES, neighbours(), WORD_COSINES)
def test_more_candidates_of_the_lexicon_never_make_a_merge_that_was_refused(
    surface: str, key_type: str, keys: list[Neighbour], words: list[tuple[str, float]]
) -> None:
    builtin = PROFILES["builtin"]
    without = decide_merge(surface, key_type, keys, builtin, LEXICON, list, lambda _key: True)
    with_words = decide_merge(surface, key_type, keys, builtin, LEXICON, lambda: words, lambda _key: True)
    if isinstance(with_words, MergeInto):
        assert without == with_words


@given(SURFACES)
def test_a_surface_never_fails_to_be_looked_up(surface: str) -> None:
    assert merge_groups(surface, LEXICON)
    assert not differ_only_in_qualifier(surface, surface)
    assert spelling(surface) == spelling(spelling(surface))


@given(st.from_regex(r"[a-z]{1,12}", fullmatch=True))
def test_the_singular_of_a_word_is_never_empty_and_never_grows_by_more_than_its_ending(word: str) -> None:
    result = singular(word)
    assert result
    assert len(result) <= len(word) + 1


@given(
    st.lists(
        st.lists(st.from_regex(r"[a-zㄱ-힣]{3,8}", fullmatch=True), min_size=2, max_size=4, unique=True), max_size=6
    )
)
def test_a_lexicon_is_refused_or_gives_every_form_back_to_its_group(groups: list[list[str]]) -> None:
    try:
        lexicon = Lexicon(groups)
    except ValueError:
        return
    assert all(lexicon.group(form) == group[0] for group in groups for form in group)
