"""Help and mistakes: one clear line, the next step, a code of its own, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from keymemd_command import fails, succeeds

from keymem_daemon.cli.main import COMMANDS
from keymem_shim import VERSION


def test_help_names_every_command(tmp_path: Path) -> None:
    shown = succeeds(tmp_path, "--help")
    for name, (_module, line) in COMMANDS.items():
        assert f"  {name} " in shown
        assert line in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(tmp_path: Path, command: str) -> None:
    shown = succeeds(tmp_path, command, "--help")
    assert f"keymemd {command}" in shown
    assert len(shown) > 150


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"run", "stdio", "logs"}))
def test_every_command_that_prints_data_prints_json_too(tmp_path: Path, command: str) -> None:
    assert "--json" in succeeds(tmp_path, command, "--help")


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert succeeds(tmp_path, "--version") == f"keymemd {VERSION}\n"


@pytest.mark.parametrize(
    "words", [(), ("bogus",), ("--bogus",), ("status", "--bogus"), ("recall",), ("list", "--limit", "many")]
)
def test_a_mistake_is_one_line_that_names_the_help(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert "--help`" in fails(tmp_path, *words, code=64)


@pytest.mark.parametrize("command", ["hook", "doctor", "import", "export", "backup", "bogus"])
def test_help_for_a_command_that_is_not_there_fails_as_the_command_does(tmp_path: Path, command: str) -> None:
    assert command not in COMMANDS
    for words in ((command, "--help"), (command, "-h"), (command, "--version"), ("--", command)):
        said = fails(tmp_path, *words, code=64)
        assert command in said or words[0] == "--"


def test_a_mistake_creates_nothing(tmp_path: Path) -> None:
    fails(tmp_path / "data", "recall", code=64)
    assert not (tmp_path / "data").exists()
