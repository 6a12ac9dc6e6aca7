"""The plugin in the real Claude Code: installed from this checkout, run without a person, with a model of our own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import Placed
from model_api import Call, ModelApi
from real_clients import CLAUDE_TOOL, PLUGIN, REPOSITORY, ClaudeCode, Memory

FERRY = "The ferry to Busan leaves at 07:40 from pier four."
QUESTION = "When does the ferry to Busan leave, and from which pier?"
TOOLS = frozenset({"recall", "read_key", "read_memory", "remember", "correct"})


def test_the_marketplace_and_the_plugin_pass_the_strict_check(claude: ClaudeCode) -> None:
    for directory in (REPOSITORY, REPOSITORY / "plugins" / "keymem"):
        checked = claude.run("plugin", "validate", directory, "--strict")
        assert checked.code == 0, checked


def test_the_installed_server_connects(claude: ClaudeCode) -> None:
    claude.install()
    listed = claude.run("mcp", "list")
    assert "plugin:keymem:keymem: keymem-shim  - ✔ Connected" in listed.out, listed


def test_a_prompt_brings_the_note_the_skill_and_the_tools_and_a_recall_comes_back(
    claude: ClaudeCode, memory: Memory
) -> None:
    memory.holding(FERRY, "ferry", "Busan", "pier")
    claude.install()
    with ModelApi(Call("recall", {"query": "ferry"})) as model:
        ended = claude.prompt(QUESTION, model)
    assert ended.code == 0, ended
    result = ended.json
    assert (result["is_error"], result["permission_denials"]) == (False, [])
    assert "UserPromptSubmit hook additional context" in model.first
    assert FERRY in model.first
    assert "keymem:keymem" in model.first
    assert "## plugin:keymem:keymem" in model.first
    assert {f"{CLAUDE_TOOL}{name}" for name in TOOLS} <= {tool["name"] for tool in model.turns[0]["tools"]}
    assert FERRY in model.results
    lines = claude.transcript(result["session_id"])
    assert [line["promptId"] for line in lines if line["type"] == "user" and line["message"]["content"] == QUESTION]
    uses = [
        block["name"]
        for line in lines
        if line["type"] == "assistant"
        for block in line["message"]["content"]
        if "name" in block
    ]
    assert uses == [f"{CLAUDE_TOOL}recall"]


def test_the_instructions_are_those_for_a_client_with_the_hook(claude: ClaudeCode) -> None:
    claude.install()
    with ModelApi(None) as model:
        claude.prompt(QUESTION, model)
    assert "The prompt hook may have put related memories before you" in model.first
    assert "three recalls" not in model.first


@pytest.mark.parametrize("attempt", range(5))
def test_without_a_daemon_the_tools_are_there_in_the_first_turn_and_the_hook_is_silent(
    claude: ClaudeCode, memory: Memory, attempt: int
) -> None:
    claude.install()
    assert not memory.is_served(), attempt
    with ModelApi(Call("remember", {"content": FERRY, "keys": ["ferry", "Busan"]})) as model:
        ended = claude.prompt(QUESTION, model)
    assert ended.code == 0, ended
    assert "hook additional context" not in model.first
    assert f"{CLAUDE_TOOL}remember" in {tool["name"] for tool in model.turns[0]["tools"]}
    assert [found["content"] for found in memory.all()] == [FERRY]


def test_where_the_program_is_missing_the_person_is_told_how_to_install_it_and_the_prompt_goes_on(
    claude: ClaudeCode, placed: Placed, tmp_path: Path
) -> None:
    bare = ClaudeCode(claude.program, placed("bare", tmp_path / "no-commands"))
    bare.install()
    with ModelApi(None) as model:
        ended = bare.prompt(QUESTION, model, "--output-format", "stream-json", "--verbose")
    assert ended.code == 0, ended
    notices = [event["content"] for event in ended.events if event.get("subtype") == "informational"]
    assert [notice for notice in notices if "pip install" in notice], ended.out
    assert len(model.turns) == 1


def test_nothing_is_written_into_the_plugin_and_uninstalling_it_leaves_the_memories(
    claude: ClaudeCode, memory: Memory, tmp_path: Path
) -> None:
    copy = tmp_path / "marketplace"
    for name in (".claude-plugin", "plugins"):
        shutil.copytree(REPOSITORY / name, copy / name)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    claude.install(copy)
    with ModelApi(Call("remember", {"content": FERRY, "keys": ["ferry", "Busan"]})) as model:
        claude.prompt(QUESTION, model)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    removed = claude.run("plugin", "uninstall", PLUGIN)
    assert removed.code == 0, removed
    assert [found["content"] for found in memory.all()] == [FERRY]
