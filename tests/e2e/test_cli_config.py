"""Settings from the command line: shown with their source, written without disturbing what is there."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keymemd_command import fails, json_of, keymemd, succeeds

from keymem_daemon.cli.config_file import changed
from keymem_daemon.cli.failure import CommandFailed

MINE = """\
# my notes
key_merge = 0.7  # chosen with care

[namespaces]
"~/work" = ["work"]
"""


def test_every_setting_is_listed_with_its_value_and_source(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("key_hub_min_links = 5\n")
    done = keymemd(tmp_path, "config", extra={"KEYMEM_RETRIEVAL": "rrf"})
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["key_hub_min_links"].endswith("5  (config file)")
    assert lines["retrieval"].endswith("rrf  (environment)")
    assert lines["autokey"].endswith("true  (default)")
    assert lines["graph_json"].endswith("true  (not yet)")
    assert lines["decay_standard_days"].split()[1] == "90.0"


def test_one_setting_is_found_by_either_of_its_names(tmp_path: Path) -> None:
    for name in ("key_merge", "key-merge", "KEYMEM_KEY_MERGE", "SUPER_MEMORY_KEY_MERGE"):
        assert json_of(tmp_path, "config", name)["name"] == "key_merge"


def test_setting_one_keeps_everything_else_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    succeeds(tmp_path, "config", "retrieval", "rrf")
    text = path.read_text()
    assert tomllib.loads(text) == {**tomllib.loads(MINE), "retrieval": "rrf"}
    assert "# my notes" in text
    assert "# chosen with care" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["config.toml"]


def test_setting_it_again_replaces_it_and_unsetting_takes_it_out(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    succeeds(tmp_path, "config", "key_merge", "0.9")
    assert tomllib.loads(path.read_text())["key_merge"] == 0.9
    succeeds(tmp_path, "config", "key_merge", "--unset")
    assert "key_merge" not in tomllib.loads(path.read_text())
    assert json_of(tmp_path, "config", "key_merge")["source"] == "default"


def test_a_value_that_cannot_be_used_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    assert "1 to 65,535" in fails(tmp_path, "config", "daemon_port", "none", code=64)
    assert "config.toml" in fails(tmp_path, "config", "openai_api_key", "x", code=64)
    assert "config.toml" in fails(tmp_path, "config", "hook_top_k", "3", code=64)
    assert "there is no setting" in fails(tmp_path, "config", "nonsense", code=64)
    assert not (tmp_path / "config.toml").exists()


def test_what_this_version_does_not_have_is_refused_with_the_reason_and_switching_it_off_is_not(tmp_path: Path) -> None:
    for name, value in (("embedding_backend", "local"), ("embedding_backend", "openai"), ("graph_json", "true")):
        assert "not part of this version" in fails(tmp_path, "config", name, value, code=64)
    assert not (tmp_path / "config.toml").exists()
    succeeds(tmp_path, "config", "embedding_backend", "builtin")
    succeeds(tmp_path, "config", "graph_json", "false")


def test_a_file_that_is_not_toml_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("this is = = not toml")
    assert "not valid TOML" in fails(tmp_path, "config", "autokey", "false")
    assert (tmp_path / "config.toml").read_text() == "this is = = not toml"


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("autokey = true\n")
    data = tmp_path / "data"
    data.mkdir()
    (data / "config.toml").symlink_to(real)
    succeeds(data, "config", "autokey", "false")
    assert (data / "config.toml").is_symlink()
    assert tomllib.loads(real.read_text()) == {"autokey": False}


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    done = keymemd(tmp_path, "config", "--json", extra={"OPENAI_API_KEY": "sk-very-secret"})
    assert "sk-very-secret" not in done.stdout + done.stderr


def test_the_environment_is_said_to_go_first(tmp_path: Path) -> None:
    said = succeeds(tmp_path, "config", "autokey", "false", extra={"KEYMEM_AUTOKEY": "true"})
    assert "environment" in said


NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
PLAIN = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
LINES = st.one_of(
    st.just("# a remark = with signs\n"),
    st.just("\n"),
    st.builds(lambda name, number: f"{name} = {number} # why\n", NAMES, st.integers(0, 9)),
    st.builds(lambda name: f'{name} = """\nother = 1\n"""\n', NAMES),
    st.builds(lambda name: f"{name} = [\n 1,\n [2],\n]\n", NAMES),
)


@given(
    st.lists(LINES, max_size=6),
    st.sampled_from(["", "[table]\nother = 2\n"]),
    NAMES,
    st.one_of(PLAIN, TEXTS, st.none()),
)
def test_a_change_means_that_change_and_no_other_or_is_refused(
    lines: list[str], tail: str, name: str, value: float | str | None
) -> None:
    text = "".join(lines) + tail
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(CommandFailed):
            changed(text, name, value)
        return
    expected = {key: found for key, found in before.items() if key != name}
    try:
        after = changed(text, name, value)
    except CommandFailed:
        return
    assert tomllib.loads(after) == (expected if value is None else {**expected, name: value})
    untouched = [line for line in text.splitlines() if not line.startswith((f"{name} ", f"{name}="))]
    assert set(untouched) <= set(after.splitlines())
