"""What a save says about where it comes from, held against the transcripts that the real clients wrote."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from model_api import Call, ModelApi
from real_clients import CODEX_DIRECT, CODEX_MODELS, ClaudeCode, Codex, Memory

PROMPT = "Please note where the lighthouse keeper lives."


def saving(content: str) -> Call:
    return Call("remember", {"content": content, "keys": ["lighthouse", "keeper"]})


def from_claude(claude: ClaudeCode, content: str, *more: str) -> tuple[str, str]:
    """Save through Claude Code; the session and the prompt as its transcript has them."""
    options = ("--output-format", "json", *more)
    with ModelApi(saving(content)) as model:
        ended = claude.prompt(PROMPT, model, *options)
    assert ended.code == 0, ended
    session = ended.json["session_id"]
    prompts = [
        line["promptId"]
        for line in claude.transcript(session)
        if line["type"] == "user" and line["message"]["content"] == PROMPT
    ]
    return session, prompts[-1]


def from_codex(codex: Codex, content: str, name: str = CODEX_DIRECT) -> tuple[str, str]:
    """Save through Codex; the thread and the turn as its rollout has them."""
    with ModelApi(saving(content)) as model:
        ended = codex.prompt(PROMPT, model, name)
    assert ended.code == 0, ended
    thread = next(event["thread_id"] for event in ended.events if event["type"] == "thread.started")
    turns = [line["payload"]["turn_id"] for line in codex.transcript(thread) if line["type"] == "turn_context"]
    return thread, turns[-1]


def named(source: dict[str, Any]) -> tuple[Any, Any, Any]:
    return source.get("host_agent"), source.get("host_session"), source.get("host_prompt")


def test_a_save_from_claude_code_names_its_session_prompt_and_turn(claude: ClaudeCode, memory: Memory) -> None:
    memory.start()
    claude.install()
    session, prompt = from_claude(claude, "The keeper lives on the cliff.")
    source = memory.source("The keeper lives on the cliff.")
    assert named(source) == ("claude", session, prompt)
    # A model that answers at once can be faster than Claude Code's first write of the transcript.
    assert source.get("host_turn") in {None, "1"}


def test_a_save_in_a_resumed_session_names_the_later_prompt(claude: ClaudeCode, memory: Memory) -> None:
    memory.start()
    claude.install()
    with ModelApi(None) as model:
        session = claude.prompt("Good morning to you.", model).json["session_id"]
    same, prompt = from_claude(claude, "The keeper lives on the cliff.", "--resume", session)
    source = memory.source("The keeper lives on the cliff.")
    assert (same, named(source)) == (session, ("claude", session, prompt))
    assert source.get("host_turn") in {None, "1", "2"}


@pytest.mark.parametrize("name", CODEX_MODELS)
def test_a_save_from_codex_names_its_session_prompt_and_turn(codex: Codex, memory: Memory, name: str) -> None:
    codex.install()
    thread, turn = from_codex(codex, "The keeper lives on the cliff.", name)
    source = memory.source("The keeper lives on the cliff.")
    assert named(source) == ("codex", thread, turn)
    assert source["host_turn"] == "1"


def test_clients_at_work_at_the_same_time_never_get_each_others_session(
    claude: ClaudeCode, codex: Codex, memory: Memory
) -> None:
    memory.start()
    claude.install()
    codex.install()
    codex.trust_hooks()
    with ThreadPoolExecutor(2) as pool:
        for number in range(3):
            ours, theirs = f"Note {number} of the first client.", f"Note {number} of the second client."
            one, two = pool.submit(from_claude, claude, ours), pool.submit(from_codex, codex, theirs)
            first, second = one.result(), two.result()
            assert named(memory.source(ours)) == ("claude", *first)
            assert named(memory.source(theirs)) == ("codex", *second)
