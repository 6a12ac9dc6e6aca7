"""`keymemd install` for the two clients that can be run: what it writes is what they read."""

from __future__ import annotations

import sys

from model_api import Call, ModelApi
from real_clients import ClaudeCode, Codex, Ended, Memory, Place

FERRY = "The ferry to Busan leaves at 07:40 from pier four."
QUESTION = "When does the ferry to Busan leave, and from which pier?"


def keymemd(place: Place, *words: str) -> Ended:
    ended = place.run([sys.executable, "-m", "keymem_daemon", *words])
    assert ended.code == 0, ended
    return ended


def test_claude_code_connects_to_the_server_and_runs_the_hook(claude: ClaudeCode, memory: Memory) -> None:
    memory.holding(FERRY, "ferry", "Busan", "pier")
    claude.run("mcp", "list")
    keymemd(claude.place, "install", "claude-code")
    assert "unchanged" in keymemd(claude.place, "install", "claude-code").out
    assert "✔ Connected" in claude.run("mcp", "list").out
    with ModelApi(Call("recall", {"query": "ferry"})) as model:
        ended = claude.prompt(QUESTION, model, tools="mcp__keymem")
    assert ended.code == 0, ended
    assert FERRY in model.first
    assert FERRY in model.results
    keymemd(claude.place, "uninstall", "claude-code")
    assert "keymem" not in claude.run("mcp", "list").out


def test_codex_connects_to_the_server_and_runs_the_hook(codex: Codex, memory: Memory) -> None:
    memory.holding(FERRY, "ferry", "Busan", "pier")
    keymemd(codex.place, "install", "codex")
    codex.trust_hooks()
    assert "unchanged" in keymemd(codex.place, "install", "codex").out
    with ModelApi(Call("recall", {"query": "ferry"})) as model:
        ended = codex.prompt(QUESTION, model)
    assert ended.code == 0, ended
    assert FERRY in model.first
    assert FERRY in model.results
    keymemd(codex.place, "uninstall", "codex")
    assert (codex.servers(), codex.hooks()["hooks"]) == ({}, [])


def test_codex_with_hooks_in_a_file_of_their_own_gets_ours_there_and_warns_of_nothing(codex: Codex) -> None:
    home = codex.place.home / ".codex"
    home.mkdir(parents=True)
    theirs = '{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "true"}]}]}}\n'
    (home / "hooks.json").write_text(theirs)
    keymemd(codex.place, "install", "codex")
    found = codex.hooks()
    assert (len(found["hooks"]), found["warnings"], found["errors"]) == (2, [], [])
    keymemd(codex.place, "uninstall", "codex")
    assert [hook["command"] for hook in codex.hooks()["hooks"]] == ["true"]


def test_an_installed_plugin_is_not_installed_a_second_time_by_command(claude: ClaudeCode, codex: Codex) -> None:
    claude.install()
    codex.install()
    for place, name in ((claude.place, "claude-code"), (codex.place, "codex")):
        assert "plugin keymem@keymem" in keymemd(place, "install", name).out
    assert "mcp_servers" not in (codex.place.home / ".codex" / "config.toml").read_text()
