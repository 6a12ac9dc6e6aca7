"""The plugin in the real Codex: installed from this checkout, run without a person, with a model of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Placed
from model_api import Call, ModelApi
from real_clients import CODEX_MODELS, PLUGIN, Codex, Memory

FERRY = "The ferry to Busan leaves at 07:40 from pier four."
QUESTION = "When does the ferry to Busan leave, and from which pier?"
TOOLS = frozenset(
    "recall browse_keys read_key read_memory confirm_memory remember remember_batch correct dismiss forget".split()
)
HOOK = f"{PLUGIN}:hooks/hooks.json:user_prompt_submit:0:0"


def test_the_hook_the_server_and_the_skill_are_found_without_a_warning(codex: Codex) -> None:
    codex.install()
    found = codex.hooks()
    assert [hook["key"] for hook in found["hooks"]] == [HOOK]
    assert (found["warnings"], found["errors"]) == ([], [])
    assert set(codex.servers()["keymem"]["tools"]) == TOOLS
    assert codex.skills() == {"keymem:keymem"}


def test_a_run_does_not_take_trust_from_the_hook(codex: Codex) -> None:
    codex.install()
    codex.trust_hooks()
    with ModelApi(Call("remember", {"content": FERRY, "keys": ["ferry", "Busan"]})) as model:
        codex.prompt(QUESTION, model)
    assert [hook["trustStatus"] for hook in codex.hooks()["hooks"]] == ["trusted"]


@pytest.mark.parametrize("name", CODEX_MODELS)
def test_a_prompt_brings_the_note_and_the_skill_and_a_recall_comes_back(
    codex: Codex, memory: Memory, name: str
) -> None:
    memory.holding(FERRY, "ferry", "Busan", "pier")
    codex.install()
    codex.trust_hooks()
    with ModelApi(Call("recall", {"query": "ferry"})) as model:
        ended = codex.prompt(QUESTION, model, name)
    assert ended.code == 0, ended
    assert FERRY in model.first
    assert "keymem:keymem" in model.first
    assert FERRY in model.results
    thread = next(event["thread_id"] for event in ended.events if event["type"] == "thread.started")
    items = [event["item"] for event in ended.events if event["type"] == "item.completed"]
    calls = [(item["server"], item["tool"], item["status"]) for item in items if item["type"] == "mcp_tool_call"]
    assert calls == [("keymem", "recall", "completed")]
    rollout = codex.transcript(thread)
    assert [line for line in rollout if line["type"] == "turn_context"]


@pytest.mark.parametrize("attempt", range(5))
def test_without_a_daemon_the_tools_are_there_in_the_first_turn_and_the_hook_is_silent(
    codex: Codex, memory: Memory, attempt: int
) -> None:
    codex.install()
    codex.trust_hooks()
    memory.stop()
    assert not memory.is_served(), attempt
    with ModelApi(Call("remember", {"content": FERRY, "keys": ["ferry", "Busan"]})) as model:
        ended = codex.prompt(QUESTION, model)
    assert ended.code == 0, ended
    assert "keymem-notes" not in model.first
    assert len(model.turns) == 2
    assert [found["content"] for found in memory.all()] == [FERRY]


def test_a_setting_of_the_persons_environment_reaches_the_server(codex: Codex, memory: Memory) -> None:
    codex.install()
    memory.stop()
    forbidden = Codex(codex.program, codex.place.with_variables(KEYMEM_DAEMON_AUTOSTART="false"))
    with ModelApi(Call("recall", {"query": "ferry"})) as model:
        forbidden.prompt(QUESTION, model)
    assert "keymemd start" in model.results
    assert not memory.is_served()


def test_where_the_program_is_missing_the_turn_goes_on(codex: Codex, placed: Placed, tmp_path: Path) -> None:
    bare = Codex(codex.program, placed("bare", tmp_path / "no-commands"))
    bare.install()
    bare.trust_hooks()
    with ModelApi(None) as model:
        ended = bare.prompt(QUESTION, model)
    assert ended.code == 0, ended
    assert [event["type"] for event in ended.events][-1] == "turn.completed"
