"""What the client's surroundings make of its calls, through the real shim and daemon: provenance, and namespaces by directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shim_session
from keymemd_command import fails, json_of, succeeds
from running_daemon import RunningDaemon, running
from shim_session import ShimSession
from transcripts import (
    CLAUDE_SESSION,
    CODEX_SESSION,
    claude_file,
    codex_file,
    codex_message,
    codex_turn,
    prompt,
    tool_use,
)

Source = dict[str, Any]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One daemon, started by nobody's client: its home holds no transcripts."""
    with running(tmp_path_factory.mktemp("surroundings") / "d") as started:
        yield started


def saved(shim: ShimSession, content: str, meta: dict[str, Any] | None = None) -> str:
    """Save a memory by a tool call that carries ``meta``; its id."""
    params = {
        "name": "remember",
        "arguments": {"content": content, "keys": ["place", content[:20]]},
        "_meta": meta or {},
    }
    answer = shim.ask("tools/call", params)
    return str(answer["result"]["structuredContent"]["saved"])


def source_of(daemon: RunningDaemon, memory_id: str) -> Source:
    source = daemon.verb("show", {"id": memory_id})["memory"]["source"]
    assert isinstance(source, dict)
    return {name: value for name, value in source.items() if name.startswith("host_")}


def client(daemon: RunningDaemon, cwd: Path, **settings: str) -> ShimSession:
    shim = ShimSession(shim_session.environment(daemon.directory, settings), cwd=cwd)
    shim.initialize()
    return shim


def test_a_save_says_session_turn_and_prompt_of_claude_code(daemon: RunningDaemon, tmp_path: Path) -> None:
    claude_file(
        tmp_path / ".claude", prompt("one", "p-1"), tool_use("toolu_1"), prompt("two", "p-2"), tool_use("toolu_2")
    )
    with client(daemon, tmp_path, HOME=str(tmp_path), CLAUDE_CODE_SESSION_ID=CLAUDE_SESSION) as shim:
        memory_id = saved(shim, "The well is behind the mill", {"claudecode/toolUseId": "toolu_2"})
    assert source_of(daemon, memory_id) == {
        "host_agent": "claude",
        "host_session": CLAUDE_SESSION,
        "host_turn": "2",
        "host_prompt": "p-2",
    }
    change = daemon.verb("history", {"id": memory_id})["changes"][0]
    assert change["actor"]["host_turn"] == "2"


def test_a_save_says_thread_turn_and_turn_id_of_codex(daemon: RunningDaemon, tmp_path: Path) -> None:
    codex_file(tmp_path / "codex", codex_turn("t-1"), codex_message("one"), codex_turn("t-2"), codex_message("two"))
    meta = {"threadId": CODEX_SESSION, "x-codex-turn-metadata": {"turn_id": "t-2"}}
    with client(daemon, tmp_path, CODEX_HOME=str(tmp_path / "codex")) as shim:
        memory_id = saved(shim, "The ferry leaves at noon", meta)
    assert source_of(daemon, memory_id) == {
        "host_agent": "codex",
        "host_session": CODEX_SESSION,
        "host_turn": "2",
        "host_prompt": "t-2",
    }


def test_no_answer_shows_text_of_a_transcript(daemon: RunningDaemon, tmp_path: Path) -> None:
    claude_file(tmp_path / ".claude", prompt("my secret is sesame", "p-1"))
    with client(daemon, tmp_path, HOME=str(tmp_path), CLAUDE_CODE_SESSION_ID=CLAUDE_SESSION) as shim:
        memory_id = saved(shim, "The cave opens at dawn")
        told = [shim.call("recall", {"query": "cave"}), shim.call("read_memory", {"memory_id": memory_id})]
    told += [daemon.verb("history", {"id": memory_id}), daemon.verb("show", {"id": memory_id})]
    assert "sesame" not in json.dumps(told)


def test_access_that_is_forbidden_leaves_the_claims_and_reads_nothing(tmp_path: Path) -> None:
    claude_file(tmp_path / ".claude", prompt("one", "p-1"))
    with (
        running(tmp_path / "d", extra={"KEYMEM_TRANSCRIPT_ACCESS": "false"}) as strict,
        client(strict, tmp_path, HOME=str(tmp_path), CLAUDE_CODE_SESSION_ID=CLAUDE_SESSION) as shim,
    ):
        memory_id = saved(shim, "The well is behind the mill")
        assert source_of(strict, memory_id) == {"host_agent": "claude", "host_session": CLAUDE_SESSION}


def test_a_directory_that_is_mapped_by_command_is_in_force_at_once(tmp_path: Path) -> None:
    data, mapped, other = tmp_path / "d", tmp_path / "one" / "app", tmp_path / "two" / "app"
    mapped.mkdir(parents=True)
    other.mkdir(parents=True)
    with running(data) as daemon, client(daemon, mapped) as inside, client(daemon, other) as outside:
        saved(outside, "The harbour is everybody's")
        succeeds(data, "namespaces", "map", str(mapped), "Project", "shared")
        memory_id = saved(inside, "The lighthouse is the project's")
        assert daemon.verb("show", {"id": memory_id})["memory"]["namespace"] == "Project"
        daemon.verb(
            "remember", {"items": [{"content": "The vault is private", "keys": ["vault"], "namespace": "private"}]}
        )

        found = inside.call("recall", {"query": "vault"})["structuredContent"]
        assert found["searched"] == {"namespaces": ["Project", "shared", "default"], "memory_count": 2}
        assert "vault" not in json.dumps(found["keys"])
        assert outside.call("recall", {"query": "vault"})["structuredContent"]["searched"]["namespaces"] is None
        assert (
            inside.call("recall", {"query": "vault", "namespace": "*"})["structuredContent"]["searched"]["memory_count"]
            == 3
        )

        asked = {"prompt": "Where is the private vault?", "cwd": str(mapped)}
        assert daemon.post("/inject", asked).json()["searched"]["namespaces"] == ["Project", "shared", "default"]
        assert daemon.post("/inject", asked | {"cwd": str(other)}).json()["searched"]["namespaces"] is None

        (data / "namespaces.json").write_text("{", encoding="utf-8")
        assert inside.call("recall", {"query": "vault"})["structuredContent"]["searched"]["memory_count"] == 2
        with daemon.over_socket() as http:
            assert "namespaces.json" in json.dumps(http.get("/status").json()["problems"])


def test_the_command_shows_maps_and_unmaps(tmp_path: Path) -> None:
    data, place = tmp_path / "d", tmp_path / "place"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)
    assert "No directory is mapped" in succeeds(data, "namespaces")
    assert "Alpha, beta" in succeeds(data, "namespaces", "map", str(place), "Alpha", "beta", "ALPHA")
    assert (data / "namespaces.json").stat().st_mode & 0o777 == 0o600
    succeeds(data, "namespaces", "map", str(tmp_path / "link"), "gamma")
    found = json_of(data, "namespaces")
    assert [(entry["place"], entry["namespaces"]) for entry in found["mappings"]] == [(str(place), ["gamma"])]
    assert "is no name" in fails(data, "namespaces", "map", str(place), "*", code=64)
    assert "needs a PATH" in fails(data, "namespaces", "map", str(place), code=64)
    succeeds(data, "namespaces", "unmap", str(place))
    assert json.loads((data / "namespaces.json").read_text(encoding="utf-8")) == {}
    assert "is not mapped" in fails(data, "namespaces", "unmap", str(place))


def test_the_command_never_overwrites_a_file_it_does_not_understand(tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.mkdir()
    (data / "namespaces.json").write_text("{", encoding="utf-8")
    fails(data, "namespaces", "map", str(tmp_path), "x")
    assert (data / "namespaces.json").read_text(encoding="utf-8") == "{"
