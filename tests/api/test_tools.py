"""What clients are told of the tools: complete, portable, and small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships none

import keymem_shim
from keymem_daemon.api.handshake_record import record_text
from keymem_daemon.api.mcp_server import tool_of
from keymem_daemon.api.tool_docs import reference_page
from keymem_daemon.api.tools import COMPAT_TOOLS, TOOLS, Surface, Verb, offered

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = {
    "recall": (["query"], ["context", "namespace", "top_k", "explain", "max_chars"]),
    "browse_keys": (["namespace"], ["hubs_only", "limit", "offset"]),
    "read_key": (["key_id"], ["query", "namespace", "limit", "offset"]),
    "read_memory": (["memory_id"], ["via_key_id", "namespace"]),
    "confirm_memory": (["memory_id", "evidence"], ["namespace", "source"]),
    "remember": (
        ["content", "keys"],
        ["key_types", "namespace", "ttl_seconds", "decay_profile", "related_to", "source"],
    ),
    "remember_batch": (["items"], []),
    "correct": (
        ["memory_id", "content"],
        ["keys", "key_types", "ttl_seconds", "decay_profile", "related_to", "source"],
    ),
    "dismiss": (["memory_id", "key_id"], ["namespace"]),
    "forget": (["memory_id"], []),
}


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def listed(verb: Verb) -> dict[str, Any]:
    return tool_of(verb).model_dump(by_alias=True, mode="json", exclude_none=True)


def nodes(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


def test_the_ten_tools_have_the_parameters_of_the_contract() -> None:
    found = {}
    for verb in TOOLS:
        schema = listed(verb)["inputSchema"]
        required = schema.get("required", [])
        found[verb.name] = (required, [name for name in schema["properties"] if name not in required])
    assert {name: (sorted(a), sorted(b)) for name, (a, b) in found.items()} == {
        name: (sorted(a), sorted(b)) for name, (a, b) in PARAMETERS.items()
    }


def test_what_a_model_reads_of_the_tools_stays_within_its_budget() -> None:
    read = sum(
        len(tool["name"]) + len(tool["description"]) + len(compact(tool["inputSchema"])) for tool in map(listed, TOOLS)
    )
    assert read <= 9_000
    assert len(compact({"tools": [listed(verb) for verb in TOOLS]})) <= 24_000


@pytest.mark.parametrize("verb", [*TOOLS, *COMPAT_TOOLS], ids=lambda verb: verb.name)
def test_every_tool_is_titled_annotated_and_described_down_to_its_parameters(verb: Verb) -> None:
    tool = listed(verb)
    assert tool["title"]
    assert set(tool["annotations"]) == {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert all(member["description"] for member in tool["inputSchema"]["properties"].values())
    assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"


@pytest.mark.parametrize("verb", [*TOOLS, *COMPAT_TOOLS], ids=lambda verb: verb.name)
def test_schemas_use_only_what_every_client_understands(verb: Verb) -> None:
    tool = listed(verb)
    for schema in (tool["inputSchema"], tool["outputSchema"]):
        for node in nodes(schema):
            assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf"} & node.keys()
    for node in nodes(tool["inputSchema"]):
        assert not isinstance(node.get("type"), list)


@pytest.mark.parametrize("verb", TOOLS, ids=lambda verb: verb.name)
def test_an_error_satisfies_every_output_schema(verb: Verb) -> None:
    error = {"error": {"code": "not_found", "message": "m", "hint": "h"}}
    assert Draft202012Validator(listed(verb)["outputSchema"]).is_valid(error)


def test_the_five_tools_of_every_turn_are_never_deferred() -> None:
    shown = {verb.name for verb in TOOLS if listed(verb).get("_meta") == {"anthropic/alwaysLoad": True}}
    assert shown == {"recall", "read_key", "read_memory", "remember", "correct"}


def test_tools_of_earlier_versions_are_offered_only_when_asked_for() -> None:
    names = [verb.name for verb in offered(Surface())]
    assert names == list(PARAMETERS)
    assert [verb.name for verb in offered(Surface(direct_recall=True))] == [*names, "recall_memories"]
    assert "memory_stats" in [verb.name for verb in offered(Surface(compat_tools=True))]


def test_the_page_about_the_tools_is_current() -> None:
    assert (ROOT / "docs" / "tools.md").read_text(encoding="utf-8") == reference_page()


def test_the_handshake_record_is_what_the_server_answers() -> None:
    shipped = Path(keymem_shim.__file__).with_name("handshake.json").read_text(encoding="utf-8")
    assert json.loads(shipped) == json.loads(record_text())
