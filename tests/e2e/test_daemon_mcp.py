"""The ten tools through the official client and by raw JSON-RPC, in every revision that is served."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from running_daemon import RunningDaemon, running

from keymem_daemon.api.handshake_record import LEGACY, MODERN, request_for

BOUND_S = 60.0
REVISIONS = [*LEGACY, *MODERN]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with running(tmp_path_factory.mktemp("mcp") / "d") as started:
        yield started


def call(daemon: RunningDaemon, revision: str, name: str, arguments: object, **headers: str) -> dict[str, Any]:
    """The `result` of a raw tools/call."""
    sent, body = request_for("tools/call", revision)
    body["params"] |= {"name": name, "arguments": arguments}
    if revision in MODERN:
        sent["mcp-name"] = name
    with daemon.over_socket() as client:
        sent |= {header.replace("_", "-"): value for header, value in headers.items()}
        answer = client.post("/mcp", headers=sent, content=json.dumps(body).encode())
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert isinstance(result, dict)
    return result


def value(result: dict[str, Any]) -> dict[str, Any]:
    """The structured result, which the text repeats."""
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    found = result["structuredContent"]
    assert isinstance(found, dict)
    return found


def error(result: dict[str, Any]) -> dict[str, str]:
    assert result["isError"] is True
    found = value(result)["error"]
    assert set(found) == {"code", "message", "hint"}
    return {str(name): str(text) for name, text in found.items()}


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_client_walks_from_newton_to_strawberries_with_all_ten_tools(
    daemon: RunningDaemon, mode: str
) -> None:
    space = f"walk {mode}"

    async def walk() -> None:
        transport = httpx2.AsyncHTTPTransport(uds=daemon.discovery.socket)
        async with (
            httpx2.AsyncClient(transport=transport, timeout=BOUND_S) as http,
            mcp.Client(streamable_http_client("http://localhost:1/mcp", http_client=http), mode=mode) as client,
        ):

            async def tool(name: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                return dict(result.structured_content or {})

            listed = {item.name for item in (await client.list_tools()).tools}
            assert len(listed) == 10
            apple = await tool(
                "remember",
                content="Newton saw an apple fall",
                keys=["Newton", "apple"],
                key_types={"Newton": "name"},
                namespace=space,
            )
            batch = await tool(
                "remember_batch",
                items=[
                    {"content": "An apple is a fruit", "keys": ["apple", "fruit"], "namespace": space},
                    {"content": "The user likes strawberries", "keys": ["strawberry", "fruit"], "namespace": space},
                    {"content": "", "keys": ["nothing"], "namespace": space},
                ],
            )
            assert "error" in batch["results"][2]
            found = await tool("recall", query="Newton", context="What does Newton make you think of?", namespace=space)
            assert found["status"] == "found"
            assert found["memories"][0]["id"] == apple["saved"]
            keys = {key["concept"]: key["key_id"] for key in found["memories"][0]["connected_keys"]}
            under_apple = await tool("read_key", key_id=keys["apple"], query="fruit", namespace=space)
            assert under_apple["total"] == 2
            fruit_memory = await tool("read_memory", memory_id=batch["results"][0]["saved"], via_key_id=keys["apple"])
            fruit = next(key["key_id"] for key in fruit_memory["keys"] if key["concept"] == "fruit")
            under_fruit = await tool("read_key", key_id=fruit)
            assert batch["results"][1]["saved"] in [handle["memory_id"] for handle in under_fruit["memories"]]
            last = await tool("read_memory", memory_id=batch["results"][1]["saved"], via_key_id=fruit)
            assert last["memory"]["content"] == "The user likes strawberries"
            browsed = await tool("browse_keys", namespace=space)
            assert browsed["memory_count"] == 3
            confirmed = await tool("confirm_memory", memory_id=last["memory"]["id"], evidence="user")
            assert confirmed["validity"]["confirmation_count"] == 1
            corrected = await tool("correct", memory_id=last["memory"]["id"], content="The user loves strawberries")
            assert corrected["superseded"] == last["memory"]["id"]
            dismissed = await tool("dismiss", memory_id=corrected["new_id"], key_id=fruit)
            assert 0.1 <= dismissed["link_weight"] < 1.0
            await tool("forget", memory_id=corrected["new_id"])
            gone = await client.call_tool("read_memory", {"memory_id": corrected["new_id"]})
            assert gone.is_error
            assert (gone.structured_content or {})["error"]["code"] == "not_found"
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["memory_system_prompt"]

    async def bounded() -> None:
        async with asyncio.timeout(BOUND_S):
            await walk()

    asyncio.run(bounded())


def test_the_counts_of_a_mapped_directory_are_those_of_what_it_may_see(tmp_path: Path) -> None:
    for name in ("d", "ours", "elsewhere"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "d" / "namespaces.json").write_text(json.dumps({str(tmp_path / "ours"): ["orchard"]}))
    with running(tmp_path / "d") as started:
        for space in ("orchard", "default", "cellar"):
            started.verb("remember", {"items": [{"content": f"A fact of the {space}", "keys": [space, "fact"], "namespace": space}]})
        told = {}
        for name in ("ours", "elsewhere"):
            headers, body = request_for("initialize", REVISIONS[0])
            with started.over_socket() as client:
                result = client.post("/mcp", headers={**headers, "x-keymem-cwd": str(tmp_path / name)}, json=body).json()["result"]
            told[name] = result["instructions"].partition("Now held: ")[2]
    assert told["ours"] == "2 memories under 4 keys by 4 links."
    assert told["elsewhere"] == "3 memories under 4 keys by 6 links."


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_handshake_agrees_on_the_revision_and_tells_the_live_counts(daemon: RunningDaemon, revision: str) -> None:
    method = "server/discover" if revision in MODERN else "initialize"
    headers, body = request_for(method, revision)
    daemon.verb("recall", {"query": "anything"})  # answered when the store has been read: before that nothing is counted
    with daemon.over_socket() as client:
        result = client.post("/mcp", headers=headers, json=body).json()["result"]
    assert "Now held:" in result["instructions"]
    if revision in MODERN:
        assert revision in result["supportedVersions"]
    else:
        assert result["protocolVersion"] == revision


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("name", "arguments", "code", "named"),
    [
        ("remember", {"content": "x", "keys": []}, "invalid_argument", "keys"),
        ("remember", {"content": "  ", "keys": ["a b"]}, "invalid_argument", "content"),
        ("remember", {"content": "x" * 20_001, "keys": ["apple"]}, "too_large", "content"),
        ("remember", {"content": "x", "keys": [f"key {n}" for n in range(33)]}, "too_large", "keys"),
        ("remember", {"content": 5, "keys": ["apple"]}, "invalid_argument", "content"),
        ("remember", {"content": "x", "keys": ["apple"], "ttl_seconds": -1}, "invalid_argument", "ttl_seconds"),
        ("remember", {"content": "x", "keys": ["apple"], "decay_profile": "soon"}, "invalid_argument", "decay_profile"),
        ("remember", {"content": "x", "keys": ["apple"], "key_types": {"apple": "?"}}, "invalid_argument", "key_types"),
        ("remember", {"content": "a\ud800b", "keys": ["apple"]}, "invalid_argument", "content"),
        ("remember", {"content": "a\x00b", "keys": ["apple"]}, "invalid_argument", "content"),
        ("remember", {"content": "x", "keys": ["apple"], "related_to": ["000000000000"]}, "not_found", "related_to"),
        ("read_memory", {"memory_id": "000000000000"}, "not_found", "memory_id"),
        ("read_key", {"key_id": "000000000000"}, "not_found", "key_id"),
        ("forget", {"memory_id": "000000000000"}, "not_found", "memory_id"),
        ("recall", {"query": "apple", "top_k": 21}, "invalid_argument", "top_k"),
        ("recall", {"query": "apple", "topk": 3}, "invalid_argument", "topk"),
    ],
)
def test_bad_input_is_an_error_that_names_the_argument_and_changes_nothing(
    daemon: RunningDaemon, revision: str, name: str, arguments: dict[str, Any], code: str, named: str
) -> None:
    before = daemon.verb("stats", {})
    found = error(call(daemon, revision, name, arguments))
    assert (found["code"], named in found["message"]) == (code, True), found
    assert "Traceback" not in found["message"]
    assert daemon.verb("stats", {}) == before


@pytest.mark.parametrize("revision", REVISIONS)
def test_keys_as_a_json_string_are_accepted(daemon: RunningDaemon, revision: str) -> None:
    given = {"content": f"Written in {revision}", "keys": '["revision", "string"]', "ttl_seconds": "1e6"}
    assert value(call(daemon, revision, "remember", given))["saved"]


def test_the_same_request_id_is_answered_once_and_done_once(daemon: RunningDaemon) -> None:
    given = {"content": "Only once", "keys": ["once"], "namespace": "exactly once"}
    first = call(daemon, "2025-06-18", "remember", given, X_Keymem_Request_Id="r-1")
    again = call(daemon, "2025-06-18", "remember", given, X_Keymem_Request_Id="r-1")
    assert value(first) == value(again)
    assert "deduplicated" not in value(again)
    other = call(daemon, "2025-06-18", "remember", given, X_Keymem_Request_Id="r-2")
    assert value(other)["deduplicated"] is True


def test_a_request_that_is_sent_again_while_it_runs_is_done_once(daemon: RunningDaemon) -> None:
    given = {"content": "Asked for eight times at once", "keys": ["eightfold"], "namespace": "at once"}

    def ask(_number: int) -> dict[str, Any]:
        return value(call(daemon, "2025-06-18", "remember", given, X_Keymem_Request_Id="r-at-once"))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert [answer["saved"] for answer in answers] == [answers[0]["saved"]] * 8
    assert not [answer for answer in answers if "deduplicated" in answer]


def test_the_writes_of_a_session_are_done_in_the_order_of_their_numbers_however_they_arrive(
    daemon: RunningDaemon,
) -> None:
    numbers = list(range(1, 13))
    session = "order-of-arrival"

    def save(number: int) -> str:
        given = {"content": f"Step {number}", "keys": [f"step {number}"], "namespace": session}
        named = {"X_Keymem_Session": session, "X_Keymem_Seq": str(number), "X_Keymem_Seq_Floor": "1"}
        return str(value(call(daemon, "2025-06-18", "remember", given, **named))["saved"])

    with ThreadPoolExecutor(len(numbers)) as threads:
        saved = dict(zip(reversed(numbers), threads.map(save, reversed(numbers)), strict=True))
    done = daemon.verb("history", {"limit": 200})["changes"]
    order = [
        change["entity_id"]
        for change in reversed(done)
        if change["entity_id"] in saved.values() and change["before"] is None
    ]
    assert order == [saved[number] for number in numbers]


def test_an_unknown_tool_is_a_protocol_error_and_not_a_crash(daemon: RunningDaemon) -> None:
    headers, body = request_for("tools/call", "2025-06-18")
    body["params"] = {"name": "nothing", "arguments": {}}
    with daemon.over_socket() as client:
        answer = client.post("/mcp", headers=headers, json=body).json()
    assert answer["error"]["code"] == -32602
    assert "nothing" in answer["error"]["message"]


def test_what_codex_says_of_its_turn_is_recorded_as_provenance(daemon: RunningDaemon) -> None:
    session, turn = "0b0e1f8a-2f65-4d29-9d9e-0c1c1b6f5b11", "1c0e1f8a-2f65-4d29-9d9e-0c1c1b6f5b22"
    headers, body = request_for("tools/call", "2025-06-18")
    body["params"] = {
        "name": "remember",
        "arguments": {"content": "Codex was here", "keys": ["codex"], "namespace": "provenance"},
        "_meta": {"threadId": session, "x-codex-turn-metadata": {"turn_id": turn}},
    }
    headers["x-keymem-client"] = "codex-mcp-client/0.171.0"
    with daemon.over_socket() as client:
        saved = client.post("/mcp", headers=headers, json=body).json()["result"]["structuredContent"]["saved"]
    (change,) = [change for change in daemon.verb("history", {"id": saved})["changes"] if change["entity"] == "memory"]
    actor = change["actor"]
    assert (actor["host_agent"], actor["host_session"], actor["host_prompt"]) == ("codex", session, turn)


def test_one_tool_result_stays_within_eight_kilobytes(daemon: RunningDaemon) -> None:
    long = "long word " * 1_500
    items = [
        {"content": f"{long} {n}", "keys": [f"{'k' * 100} {n} {m}" for m in range(30)], "namespace": "large"}
        for n in range(6)
    ]
    daemon.verb("remember", {"items": items})
    for name, arguments in (
        ("recall", {"query": "long word", "namespace": "large", "top_k": 20}),
        ("browse_keys", {"namespace": "large", "limit": 100}),
    ):
        result = call(daemon, "2025-06-18", name, arguments)
        assert len(result["content"][0]["text"].encode()) <= 8_192, name
    saved = daemon.verb("list", {"namespace": "large", "limit": 1})["memories"][0]["id"]
    whole = value(call(daemon, "2025-06-18", "read_memory", {"memory_id": saved}))
    assert len(whole["memory"]["content"]) > 10_000
