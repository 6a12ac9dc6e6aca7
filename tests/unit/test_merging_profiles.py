from __future__ import annotations

import dataclasses

import pytest

from keymem_daemon.core.profiles import OVERRIDES, PROFILES, Profile, profile_for, with_overrides


@pytest.mark.parametrize(
    ("backend", "model", "name"),
    [
        ("builtin", "use-multilingual-v3", "builtin"),
        ("openai", "text-embedding-3-small", "openai"),
        ("local", "bge-m3", "bge-m3"),
        ("local", "BAAI/bge-m3", "bge-m3"),
        ("local", "fast-bge-m3", "bge-m3"),
        ("local", "bgem3", "bge-m3"),
        ("local", "fast-multilingual-e5-large", "e5-multilingual"),
        ("local", "fast-bge-base-en-v1.5", "bge-en"),
        ("local", "fast-bge-small-en-v1.5", "bge-en"),
        ("local", "fast-all-MiniLM-L6-v2", "minilm"),
    ],
)
def test_each_shipped_model_has_its_own_profile(backend: str, model: str, name: str) -> None:
    profile, known = profile_for(backend, model)
    assert (profile.name, known) == (name, True)


@pytest.mark.parametrize(
    ("backend", "model"), [("local", "my-own-model"), ("openai", "some-compatible-model"), ("local", "")]
)
def test_an_unknown_model_gets_the_bge_profile_and_is_reported(backend: str, model: str) -> None:
    profile, known = profile_for(backend, model)
    assert (profile.name, known) == ("bge-en", False)


def test_every_threshold_of_every_profile_is_a_cosine_and_recall_is_below_merge() -> None:
    for profile in PROFILES.values():
        numbers = [value for value in dataclasses.astuple(profile) if isinstance(value, float)]
        assert all(0.0 <= number <= 1.0 for number in numbers)
        assert profile.key_recall < profile.near < profile.key_merge


def test_an_override_replaces_one_threshold_and_nothing_else() -> None:
    builtin = PROFILES["builtin"]
    changed, refused = with_overrides(builtin, {"KEY_RECALL": "0.4", "HOOK_MIN_REL": 0.5})
    assert refused == ()
    assert (changed.key_recall, changed.hook_floor) == (0.4, 0.5)
    assert dataclasses.replace(changed, key_recall=builtin.key_recall, hook_floor=builtin.hook_floor) == builtin


@pytest.mark.parametrize("raw", ["high", "", "-0.1", "1.01", "nan", "inf", -1.0])
def test_an_override_that_is_no_cosine_is_refused_by_name_and_the_default_stays(raw: str | float) -> None:
    profile, refused = with_overrides(PROFILES["openai"], {"KEY_MERGE": raw})
    assert profile == PROFILES["openai"]
    assert len(refused) == 1
    assert "KEY_MERGE" in refused[0]
    assert "0.85" in refused[0]


def test_every_override_names_a_field_of_the_profile() -> None:
    fields = {field.name for field in dataclasses.fields(Profile)}
    assert set(OVERRIDES.values()) <= fields


def test_an_override_of_nothing_is_a_defect_of_the_caller() -> None:
    with pytest.raises(KeyError):
        with_overrides(PROFILES["builtin"], {"NO_SUCH": 0.5})
