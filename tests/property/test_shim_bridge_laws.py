"""Whatever a client writes and a daemon answers: one line for each request, and every line is one JSON-RPC object."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from keymem_shim.bridge import Bridge, Call, Cancelled, Reply

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(categories=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/cancelled", "prompts/get"]
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": st.integers(0, 3) | st.sampled_from(["0", "1"]) | VALUES,
        "method": METHODS | VALUES,
        "params": st.fixed_dictionaries({}, optional={"requestId": st.integers(0, 3), "_meta": VALUES}) | VALUES,
        "result": VALUES,
    },
)
LINES = st.binary(max_size=60) | MESSAGES.map(lambda message: json.dumps(message).encode())
BODIES = st.binary(max_size=40) | MESSAGES.map(lambda message: json.dumps(message).encode())


def is_one_answer(line: bytes) -> bool:
    message = json.loads(line)
    return (
        line.endswith(b"\n")
        and line.count(b"\n") == 1
        and message["jsonrpc"] == "2.0"
        and "id" in message
        and ("result" in message) != ("error" in message)
    )


@given(st.lists(LINES, max_size=12))
def test_any_input_is_answered_forwarded_or_ignored(lines: list[bytes]) -> None:
    bridge = Bridge("s", None, "/")
    for line in lines:
        taken = bridge.accept(line)
        assert taken is None or isinstance(taken, (Reply, Call, Cancelled))
        if isinstance(taken, Reply):
            assert is_one_answer(taken.line)
        if isinstance(taken, Call):
            for name, value in bridge.send_headers(taken):
                assert (name + value).isprintable()
                assert (name + value).isascii()


@given(st.integers() | st.text(max_size=5), st.integers(200, 599), st.lists(BODIES, min_size=1, max_size=3))
def test_any_answer_settles_a_call_exactly_once_under_its_id(
    ident: int | str, status: int, bodies: list[bytes]
) -> None:
    bridge = Bridge("s", None, "/")
    call = bridge.accept(json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call"}).encode())
    assert isinstance(call, Call)
    lines = [bridge.settle(call, status, body) for body in bodies]
    assert lines[0] is not None
    assert is_one_answer(lines[0])
    assert json.loads(lines[0])["id"] == ident
    assert lines[1:] == [None] * (len(bodies) - 1)


@given(st.lists(st.booleans(), max_size=30))
def test_the_floor_is_never_above_an_open_call_and_renumbering_leaves_no_gap(answered: list[bool]) -> None:
    bridge = Bridge("s", None, "/")
    opened: list[Call] = []
    for ident, settle in enumerate(answered):
        call = bridge.accept(json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call"}).encode())
        assert isinstance(call, Call)
        opened.append(call)
        if settle:
            bridge.fail(call, -1, "x")
        assert all(bridge.floor() <= call.seq for call in bridge.unanswered())
    bridge.renumber()
    assert [call.seq for call in bridge.unanswered()] == list(range(1, len(bridge.unanswered()) + 1))
