"""What the environment and the configuration file make of the settings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keymem_daemon.settings import (
    FRACTION,
    IGNORED,
    OPTIONS,
    Backend,
    Settings,
    backend_in_force,
    load_settings,
    reference_page,
)

ROOT = Path(__file__).resolve().parents[2]


def test_without_anything_set_every_value_is_the_default_and_nothing_leaves_the_machine() -> None:
    settings = load_settings({})
    assert set(settings.sources.values()) == {"default"}
    assert settings.warnings == ()
    assert settings.embedding_backend == "builtin"
    assert (settings.half_lives.transient, settings.half_lives.standard, settings.half_lives.stable) == (
        7.0,
        90.0,
        365.0,
    )
    assert settings.threshold_overrides == {}


def test_a_variable_of_the_earlier_name_counts_and_the_new_name_wins() -> None:
    assert load_settings({"SUPER_MEMORY_KEY_HUB_MIN_LINKS": "5"}).key_hub_min_links == 5
    both = load_settings({"SUPER_MEMORY_KEY_HUB_MIN_LINKS": "5", "KEYMEM_KEY_HUB_MIN_LINKS": "7"})
    assert both.key_hub_min_links == 7
    assert both.sources["key_hub_min_links"] == "environment"


def test_the_environment_wins_over_the_configuration_file() -> None:
    config = "key_hub_min_links = 4\nautokey = false\nretrieval = 'rrf'\n"
    settings = load_settings({"KEYMEM_KEY_HUB_MIN_LINKS": "9"}, config)
    assert settings.key_hub_min_links == 9
    assert settings.autokey is False
    assert settings.retrieval == "rrf"
    assert settings.sources["autokey"] == "config file"


@pytest.mark.parametrize("raw", ["0", "-3", "nan", "inf", "soon", "1e9", "0x10"])
def test_a_half_life_that_is_no_positive_number_of_days_is_replaced_and_named(raw: str) -> None:
    settings = load_settings({"KEYMEM_DECAY_STANDARD_DAYS": raw})
    assert settings.half_lives.standard == 90.0
    assert len(settings.warnings) == 1
    assert "KEYMEM_DECAY_STANDARD_DAYS" in settings.warnings[0]
    assert "90" in settings.warnings[0]


def test_thresholds_are_numbers_from_zero_to_one() -> None:
    settings = load_settings({"KEYMEM_KEY_RECALL": "0.4", "KEYMEM_KEY_MERGE": "1.2", "KEYMEM_SHORT_KEY_MERGE": "0"})
    assert settings.threshold_overrides == {"KEY_RECALL": 0.4, "SHORT_KEY_MERGE": 0.0}
    assert len(settings.warnings) == 1


def test_a_broken_configuration_file_is_left_out_and_said_so() -> None:
    settings = load_settings({}, "autokey = = 3")
    assert settings.autokey is True
    assert "config.toml" in settings.warnings[0]


def test_an_unknown_name_in_the_configuration_file_is_said() -> None:
    (warning,) = load_settings({}, "autokee = true").warnings
    assert "autokee" in warning


def test_settings_that_control_nothing_any_more_are_recognised_and_named() -> None:
    settings = load_settings({"KEYMEM_MIN_SCORE": "0.3", "SUPER_MEMORY_GATE_Z": "2"})
    assert settings.ignored == ("KEYMEM_MIN_SCORE", "SUPER_MEMORY_GATE_Z")
    assert settings.warnings == ()
    assert len(IGNORED) == 8


@pytest.mark.parametrize(
    ("given_", "backend"),
    [
        ((None, True, True, False), "openai"),
        ((None, True, False, False), "builtin"),
        ((None, True, False, True), "local"),
        ((None, False, True, True), "local"),
        (("local", True, True, False), "builtin"),
        (("builtin", True, True, True), "builtin"),
        (("openai", False, True, False), "builtin"),
        (("openai", True, False, False), "openai"),
    ],
)
def test_the_embedding_backend_follows_what_is_there(
    given_: tuple[Backend | None, bool, bool, bool], backend: Backend
) -> None:
    asked, has_key, allow_remote, has_model = given_
    for there in (("builtin",), ("builtin", "local", "openai")):
        found = backend_in_force(asked, has_key=has_key, allow_remote=allow_remote, has_model=has_model, there=there)
        assert found == (backend if backend in there else "builtin")


@pytest.mark.parametrize(
    ("environ", "config"),
    [
        ({"EMBEDDING_BACKEND": "openai", "OPENAI_API_KEY": "k"}, ""),
        ({"EMBEDDING_BACKEND": "local"}, ""),
        ({}, "embedding_backend = 'local'"),
        ({"LOCAL_EMBEDDING_MODEL": "bge-m3"}, ""),
        ({"KEYMEM_GRAPH_JSON": "true"}, ""),
        ({}, "openai_base_url = 'http://localhost'"),
    ],
)
def test_asking_for_what_is_not_there_yet_is_said(environ: dict[str, str], config: str) -> None:
    settings = load_settings(environ, config)
    assert settings.embedding_backend == "builtin"
    (warning,) = settings.warnings
    assert "not part of this version" in warning


@pytest.mark.parametrize(
    "environ",
    [
        {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://localhost", "HF_ENDPOINT": "http://localhost"},
        {"KEYMEM_GRAPH_JSON": "false", "KEYMEM_RERANK": "no", "KEYMEM_ALLOW_REMOTE": "0"},
    ],
)
def test_what_other_programs_use_and_what_switches_off_is_no_reason_to_say_anything(environ: dict[str, str]) -> None:
    settings = load_settings(environ)
    assert settings.embedding_backend == "builtin"
    assert settings.warnings == ()


def test_an_option_is_marked_as_not_yet_there_exactly_while_nothing_reads_it() -> None:
    left_out = {"keymem_daemon/settings.py", "keymem_daemon/cli/commands/config.py"}
    packages = ("keymem_daemon", "keymem_shim", "keymem_hook")
    paths = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    source = "\n".join(path.read_text() for path in paths if path.relative_to(ROOT).as_posix() not in left_out)
    # What is read under another name: several of these make one member of the settings, or the backend in force.
    elsewhere = {"embedding_backend": "backend", "autokey_prune_age": "autokey_prune_age_days"}
    for option in OPTIONS:
        name = elsewhere.get(option.name, option.name)
        if option.variable.startswith("KEYMEM_DECAY_"):
            name = "half_lives"
        elif option.default is None and option.kind is FRACTION:
            name = "threshold_overrides"
        words = (rf"\.{name}\b", rf'"{option.variable.removeprefix("KEYMEM_")}"')
        assert any(re.search(word, source) for word in words) != option.planned, option.variable


def test_a_secret_is_never_in_a_representation_or_a_warning() -> None:
    settings = load_settings({"OPENAI_API_KEY": "sk-secret-value", "EMBEDDING_BACKEND": "x"})
    assert "sk-secret-value" not in repr(settings)
    assert "sk-secret-value" not in "".join(settings.warnings)


@given(
    st.dictionaries(st.sampled_from([variable for option in OPTIONS for variable in option.variables]), st.text()),
    st.none() | st.text(),
)
def test_whatever_is_set_settings_can_be_made(environ: dict[str, str], config: str | None) -> None:
    settings = load_settings(environ, config)
    assert isinstance(settings, Settings)
    assert settings.half_lives.standard > 0
    assert settings.key_hub_min_links >= 2


def test_the_page_about_configuration_is_current() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == reference_page()


def test_the_module_prints_the_page() -> None:
    command = [sys.executable, "-m", "keymem_daemon.settings"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed == reference_page()
