"""The bridge, as scripts: lines in, calls and lines out."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from keymem_shim.bridge import LINE_LIMIT, Bridge, Call, Cancelled, Reply
from keymem_shim.identity import HostClaim
from keymem_shim.record import Record

SESSION = "a" * 32
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
RECORD = Record(
    {
        "version": "1",
        "answers": {
            "initialize": {
                "default": {
                    "2025-11-25": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "keymem", "version": "1"}},
                    "2025-06-18": "2025-11-25",
                },
                "hook": "default",
            },
            "tools/list": {"default": {"2025-11-25": {"tools": []}, "2025-06-18": {"tools": [1]}}},
        },
    },
    {"initialize": "hook", "tools/list": "default"},
)


@pytest.fixture
def bridge() -> Bridge:
    return Bridge(SESSION, HostClaim("claude", "1" * 8), "/home/me/프로젝트 1")


def line(method: str, ident: object = 1, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()


def accept(bridge: Bridge, raw: bytes) -> Call:
    taken = bridge.accept(raw)
    assert isinstance(taken, Call), taken
    return taken


def error_of(taken: object) -> tuple[object, int]:
    assert isinstance(taken, Reply), taken
    message = json.loads(taken.line)
    assert taken.line.endswith(b"\n")
    return message["id"], message["error"]["code"]


def settled(raw: bytes | None) -> dict[str, Any]:
    assert raw is not None
    assert raw.count(b"\n") == 1
    message = json.loads(raw)
    assert isinstance(message, dict)
    return message


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"{", (None, -32700)),
        (b'{"a":"\xff"}', (None, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":NaN}}', (1, -32700)),
        (b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"n":-Infinity}}', ("a", -32700)),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"x"}', (None, -32700)),
        (b'{"jsonrpc":"2.0","id":2,"method":"x","params":{"n":"\xff"}}', (2, -32700)),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":5}', (3, -32602)),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":[]}', (3, -32602)),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":"y"}', (3, -32602)),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', (None, -32600)),
        (b"[" * 100_000, (None, -32700)),
        (b'{"n":' + b"9" * 5_000 + b"}", (None, -32700)),
        (b"[]", (None, -32600)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', (None, -32600)),
        (b'"text"', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":1}', (1, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', (1, -32600)),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', ("a", -32600)),
        (b'{"id":2,"method":"ping"}', (2, -32600)),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', (None, -32600)),
    ],
)
def test_a_line_that_is_no_request_is_answered_with_the_code_of_its_fault(
    bridge: Bridge, raw: bytes, expected: tuple[object, int]
) -> None:
    assert error_of(bridge.accept(raw)) == expected


def test_blank_lines_and_answers_of_the_client_ask_for_nothing(bridge: Bridge) -> None:
    assert bridge.accept(b" \r") is None
    assert bridge.accept(b'{"jsonrpc":"2.0","id":1,"result":{}}') is None


def test_a_message_over_the_limit_is_refused_under_its_own_id(bridge: Bridge) -> None:
    taken = bridge.accept(line("tools/call", 7, text="x" * LINE_LIMIT))
    assert error_of(taken) == (7, -32600)
    assert isinstance(taken, Reply)
    assert str(LINE_LIMIT).encode() in taken.line


def test_a_body_is_the_clients_own_bytes(bridge: Bridge) -> None:
    raw = b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"\\ud800","arguments":{"big":1e999999}}}'
    assert accept(bridge, raw).body is raw


def test_sequence_counts_calls_but_not_handshakes_and_the_floor_is_the_lowest_open_one(bridge: Bridge) -> None:
    accept(bridge, line("initialize", 0))
    calls = [accept(bridge, line("tools/call", ident)) for ident in (1, 2, 3)]
    accept(bridge, line("tools/list", 4))
    assert [call.seq for call in calls] == [1, 2, 3]
    assert bridge.floor() == 1
    bridge.settle(calls[1], 200, b'{"jsonrpc":"2.0","id":2,"result":{}}')
    assert bridge.floor() == 1
    bridge.settle(calls[0], 200, b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert bridge.floor() == 3
    bridge.fail(calls[2], -32001, "gone")
    assert bridge.floor() == 4


def test_a_new_daemon_is_given_what_is_open_without_gaps(bridge: Bridge) -> None:
    calls = [accept(bridge, line("tools/call", ident)) for ident in range(5)]
    for answered in (0, 2, 3):
        bridge.settle(calls[answered], 200, b'{"jsonrpc":"2.0","id":%d,"result":{}}' % answered)
    before = [call.request_id for call in calls]
    bridge.renumber()
    assert [calls[1].seq, calls[4].seq] == [1, 2]
    assert bridge.floor() == 1
    assert accept(bridge, line("tools/call", 9)).seq == 3
    assert [call.request_id for call in calls] == before


def test_request_ids_are_unique_and_stay_the_same_on_every_send(bridge: Bridge) -> None:
    calls = [accept(bridge, line("tools/call", 1)) for _ in range(50)]
    assert len({call.request_id for call in calls}) == 50
    first = dict(bridge.send_headers(calls[0]))
    again = dict(bridge.send_headers(calls[0]))
    assert first["X-Keymem-Request-Id"] == again["X-Keymem-Request-Id"] == f"{SESSION}-1"
    assert first["X-Keymem-Seq"] == again["X-Keymem-Seq"] == "1"


def test_headers_carry_provenance_in_ascii(bridge: Bridge) -> None:
    accept(bridge, line("initialize", clientInfo={"name": "클로드 code\r\nX: y", "version": "2.1"}))
    headers = dict(bridge.send_headers(accept(bridge, line("tools/call"))))
    assert headers["X-Keymem-Host-Agent"] == "claude"
    assert headers["X-Keymem-Session"] == SESSION
    assert headers["X-Keymem-Cwd"] == "/home/me/%ED%94%84%EB%A1%9C%EC%A0%9D%ED%8A%B8%201"
    assert headers["X-Keymem-Client"] == "____code__X__y/2.1"
    assert headers["X-Keymem-Hook-Installed"] == "false"


def test_a_session_whose_client_has_the_hook_says_so_with_every_message_and_in_its_introduction() -> None:
    bridge = Bridge(SESSION, None, "/", hook_installed=True)
    first = accept(bridge, line("initialize", clientInfo={"name": "x", "version": "1"}))
    again = bridge.replay()
    assert again is not None
    for headers in (first.headers, again.headers, accept(bridge, line("prompts/get")).headers, bridge.open_headers()):
        assert dict(headers)["X-Keymem-Hook-Installed"] == "true"


def test_a_request_with_an_envelope_names_revision_method_and_target_in_headers(bridge: Bridge) -> None:
    call = accept(bridge, line("tools/call", name="recall", _meta=ENVELOPE))
    headers = dict(call.headers)
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert headers["Mcp-Method"] == "tools/call"
    assert headers["Mcp-Name"] == "recall"


@pytest.mark.parametrize("name", ["도구", " recall", "a\nb", "=?base64?eA==?=", "\ud800"])
def test_a_name_that_no_header_can_carry_travels_in_its_base64_form(bridge: Bridge, name: str) -> None:
    call = accept(bridge, line("tools/call", name=name, _meta=ENVELOPE))
    value = dict(call.headers)["Mcp-Name"]
    assert value.startswith("=?base64?")
    assert base64.b64decode(value[9:-2]).decode("utf-8", "surrogatepass") == name


def test_requests_after_initialize_carry_the_revision_it_agreed_on(bridge: Bridge) -> None:
    call = accept(bridge, line("initialize", protocolVersion="1999-01-01"))
    assert "MCP-Protocol-Version" not in dict(call.headers)
    bridge.settle(call, 200, b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}')
    assert dict(accept(bridge, line("tools/list")).headers)["MCP-Protocol-Version"] == "2025-11-25"


def test_an_answer_is_passed_on_as_it_came_and_only_once(bridge: Bridge) -> None:
    call = accept(bridge, line("tools/call", "x"))
    body = '{"jsonrpc":"2.0","id":"x","result":{"text":"\\ud800 한"}}'.encode()
    assert bridge.settle(call, 200, body) == body + b"\n"
    assert bridge.settle(call, 200, body) is None


def test_an_answer_over_several_lines_becomes_one_line(bridge: Bridge) -> None:
    call = accept(bridge, line("tools/call"))
    assert settled(bridge.settle(call, 200, b'{\n"jsonrpc":"2.0",\r\n"id":1,"result":{}}'))["result"] == {}


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (500, b"Internal Server Error", "HTTP status 500: Internal Server Error"),
        (404, b'{"detail":"Not Found"}', "HTTP status 404"),
        (413, b"", str(LINE_LIMIT)),
        (200, b"", "HTTP status 200"),
        (200, b"\xff\xfe", "HTTP status 200"),
        (200, b'{"jsonrpc":"2.0","id":99,"result":{}}', "no answer to this"),
        (200, b'{"jsonrpc":"2.0","id":1}', "no answer to this"),
    ],
)
def test_an_http_answer_that_is_no_json_rpc_answer_becomes_an_error_under_the_callers_id(
    bridge: Bridge, status: int, body: bytes, words: str
) -> None:
    message = settled(bridge.settle(accept(bridge, line("tools/call")), status, body))
    assert message["id"] == 1
    assert message["error"]["code"] == -32603
    assert words in message["error"]["message"]


def test_an_error_without_an_id_is_given_the_callers(bridge: Bridge) -> None:
    call = accept(bridge, line("tools/call", 5))
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}'
    assert settled(bridge.settle(call, 400, body))["id"] == 5


def test_a_cancelled_call_is_never_answered(bridge: Bridge) -> None:
    call = accept(bridge, line("tools/call", "1"))
    other = accept(bridge, line("tools/call", 1))
    taken = bridge.accept(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}')
    assert isinstance(taken, Cancelled)
    assert taken.call is call
    assert bridge.settle(call, 200, b'{"jsonrpc":"2.0","id":"1","result":{}}') is None
    assert bridge.unanswered() == [other]


def test_cancelling_what_is_unknown_asks_for_nothing(bridge: Bridge) -> None:
    assert bridge.accept(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}') is None


def test_the_record_answers_a_handshake_in_the_revision_that_was_asked(bridge: Bridge) -> None:
    call = accept(bridge, line("initialize", protocolVersion="2025-06-18"))
    assert settled(bridge.from_record(call, RECORD))["result"]["protocolVersion"] == "2025-06-18"
    tools = accept(bridge, line("tools/list", 2))
    assert settled(bridge.from_record(tools, RECORD))["result"] == {"tools": [1]}


def test_the_record_answers_an_unknown_revision_with_the_latest_that_has_a_handshake(bridge: Bridge) -> None:
    call = accept(bridge, line("initialize", protocolVersion="2099-01-01"))
    assert settled(bridge.from_record(call, RECORD))["result"]["protocolVersion"] == "2025-11-25"


def test_what_the_record_does_not_hold_is_left_open_for_the_daemon(bridge: Bridge) -> None:
    call = accept(bridge, line("prompts/list"))
    assert bridge.from_record(call, RECORD) is None
    assert bridge.is_open(call)
    assert accept(bridge, line("tools/list", cursor="x")).kind == "call"


def test_ping_needs_no_record(bridge: Bridge) -> None:
    assert settled(bridge.from_record(accept(bridge, line("ping")), RECORD))["result"] == {}


def test_discovery_in_a_revision_that_is_not_served_names_the_one_that_is(bridge: Bridge) -> None:
    meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    error = settled(bridge.from_record(accept(bridge, line("server/discover", _meta=meta)), RECORD))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}


def test_a_replayed_handshake_has_a_private_id_and_no_answer_for_the_client(bridge: Bridge) -> None:
    assert bridge.replay() is None
    accept(bridge, line("initialize", protocolVersion="2025-06-18"))
    call = bridge.replay()
    assert call is not None
    message = json.loads(call.body)
    assert message["id"].startswith(SESSION)
    assert message["params"] == {"protocolVersion": "2025-06-18"}
    answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode()
    assert bridge.settle(call, 200, answer) is None


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        ({}, {}),
        ({"toolsListChanged": True, "promptsListChanged": False}, {"toolsListChanged": True}),
        ({"resourceSubscriptions": ["a"]}, None),
        ({"toolsListChanged": "yes"}, None),
        ({"toolsListChanged": True, "somethingNew": True}, None),
        (5, None),
        (None, None),
    ],
)
def test_a_subscription_to_lists_is_acknowledged_without_a_daemon_and_anything_else_is_not(
    bridge: Bridge, asked: object, granted: object
) -> None:
    call = accept(bridge, line("subscriptions/listen", "l:0", _meta=ENVELOPE, notifications=asked))
    said = bridge.acknowledgement(call)
    if granted is None:
        assert said is None
        return
    assert said is not None
    assert json.loads(said) == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "l:0"}, "notifications": granted},
    }
    assert bridge.is_open(call)


def test_only_a_subscription_that_is_open_and_of_its_revision_is_acknowledged(bridge: Bridge) -> None:
    assert bridge.acknowledgement(accept(bridge, line("subscriptions/listen", 1, notifications={}))) is None
    assert (
        bridge.acknowledgement(
            accept(bridge, b'{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":null}')
        )
        is None
    )
    call = accept(bridge, line("subscriptions/listen", 3, _meta=ENVELOPE, notifications={}))
    bridge.fail(call, -1, "x")
    assert bridge.acknowledgement(call) is None


def test_a_reopened_subscription_does_not_repeat_its_acknowledgement(bridge: Bridge) -> None:
    call = accept(bridge, line("subscriptions/listen", 3, _meta=ENVELOPE))
    acknowledged = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}'
    changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}'
    assert bridge.stream_line(call, acknowledged, again=False) == (acknowledged + b"\n", False)
    assert bridge.stream_line(call, acknowledged, again=True) == (None, False)
    assert bridge.stream_line(call, changed, again=True) == (changed + b"\n", False)
    assert bridge.stream_line(call, b"no json", again=True) == (None, False)
    result = b'{"jsonrpc":"2.0","id":3,"result":{}}'
    assert bridge.stream_line(call, result, again=True) == (result + b"\n", True)
