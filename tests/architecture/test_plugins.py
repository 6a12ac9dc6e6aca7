"""The plugin: two clients read it, it holds no logic, and what it repeats of the program is what the program says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from tree import ROOT

from keymem_daemon.api.prompts import system_prompt
from keymem_daemon.api.tools import TOOLS
from keymem_daemon.settings import OPTIONS

PLUGIN = ROOT / "plugins" / "keymem"


def read(path: str) -> dict[str, Any]:
    found = json.loads((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_the_mcp_entry_is_what_its_command_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "keymem_daemon.cli.clients.entry"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (PLUGIN / ".mcp.json").read_text(encoding="utf-8") == done.stdout


def test_the_mcp_entry_runs_the_shim_names_every_setting_and_requires_nothing() -> None:
    servers = read("plugins/keymem/.mcp.json")["mcpServers"]
    assert set(servers) == {"keymem"}
    entry = servers["keymem"]
    assert set(entry) == {"command", "args", "env", "env_vars"}
    assert (entry["command"], entry["args"], entry["env"]) == ("keymem-shim", [], {"KEYMEM_HOOK_INSTALLED": "true"})
    assert {variable for option in OPTIONS for variable in option.variables} <= set(entry["env_vars"])


def test_the_plugin_holds_nothing_that_runs() -> None:
    files = {file.relative_to(PLUGIN).as_posix() for file in PLUGIN.rglob("*") if file.is_file()}
    assert files == {
        ".claude-plugin/plugin.json",
        ".codex-plugin/plugin.json",
        ".mcp.json",
        "README.md",
        "hooks/hooks.json",
        "skills/keymem/SKILL.md",
    }
    assert [
        file for file in PLUGIN.rglob("*") if file.is_symlink() or (file.is_file() and file.stat().st_mode & 0o111)
    ] == []


def test_one_name_stands_everywhere() -> None:
    claude, codex = read(".claude-plugin/marketplace.json"), read(".agents/plugins/marketplace.json")
    for marketplace in (claude, codex):
        assert marketplace["name"] == "keymem"
        assert [plugin["name"] for plugin in marketplace["plugins"]] == ["keymem"]
    assert claude["plugins"][0]["source"] == codex["plugins"][0]["source"]["path"] == "./plugins/keymem"
    for manifest in (".claude-plugin", ".codex-plugin"):
        assert read(f"plugins/keymem/{manifest}/plugin.json")["name"] == "keymem"


def test_both_manifests_say_the_same_of_the_plugin() -> None:
    claude, codex = (read(f"plugins/keymem/{folder}/plugin.json") for folder in (".claude-plugin", ".codex-plugin"))
    assert [claude[name] for name in ("version", "description", "license")] == [
        codex[name] for name in ("version", "description", "license")
    ]
    assert {codex["skills"], codex["hooks"], codex["mcpServers"]} == {"./skills/", "./hooks/hooks.json", "./.mcp.json"}


def test_the_hook_file_has_only_what_codex_allows_and_runs_the_hook_within_five_seconds() -> None:
    hooks = read("plugins/keymem/hooks/hooks.json")
    assert set(hooks) == {"description", "hooks"}
    assert set(hooks["hooks"]) == {"UserPromptSubmit"}
    ((handler,),) = (group["hooks"] for group in hooks["hooks"]["UserPromptSubmit"])
    assert set(handler) == {"type", "command", "timeout"}
    assert (handler["type"], handler["timeout"]) == ("command", 5)
    assert "exec keymem-hook" in handler["command"]


def test_where_the_hook_is_missing_its_line_says_so_in_the_one_form_that_both_clients_show() -> None:
    ((handler,),) = (group["hooks"] for group in read("plugins/keymem/hooks/hooks.json")["hooks"]["UserPromptSubmit"])
    done = subprocess.run(
        ["/bin/sh", "-c", handler["command"]],
        env={"PATH": "/nonexistent"},
        input="{}",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert set(said) == {"systemMessage"}
    assert "pip install" in said["systemMessage"]


def test_the_skill_is_announced_and_names_only_tools_there_are() -> None:
    text = (PLUGIN / "skills" / "keymem" / "SKILL.md").read_text(encoding="utf-8")
    _empty, front, body = text.split("---\n", 2)
    assert "name: keymem\n" in front
    assert len(re.findall("^description: .+$", front, re.MULTILINE)) == 1
    assert len(body) < 3_000
    tools = {tool.name for tool in TOOLS}
    named = {word for word in re.findall(r"`([a-z_]+)`", body) if "_" in word or word in tools}
    assert named - tools <= {"no_match", "via_key_id"}
    assert {"recall", "read_key", "read_memory", "correct", "dismiss", "confirm_memory", "forget"} <= named


def test_the_skill_says_what_the_prompt_says() -> None:
    skill = (PLUGIN / "skills" / "keymem" / "SKILL.md").read_text(encoding="utf-8")
    prompt = system_prompt(hook_installed=True)
    for fact in (
        "3 to 6 diverse atomic",
        "both languages when the user is bilingual",
        "via_key_id",
        "no_match",
        "absolute dates",
    ):
        assert fact in " ".join(skill.split()), fact
    for word in ("aging", "stale", "evidence", "unconfirmed", "credentials", "never"):
        assert word in skill.lower(), word
        assert word in prompt.lower(), word
