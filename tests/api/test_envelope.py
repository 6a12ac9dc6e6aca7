"""What is no JSON-RPC message is answered under the id of its sender, in plain words."""

from __future__ import annotations

import pytest

from keymem_daemon.api.envelope import refused


@pytest.mark.parametrize(
    ("body", "ident", "code"),
    [
        (b"{", None, -32700),
        (b"[" * 100_000, None, -32700),
        (b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"n":NaN}}', "a", -32700),
        (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"n":Infinity}}', 4, -32700),
        (b'{"jsonrpc":"2.0","id":4,"method":"x","params":{"n":"\xff"}}', 4, -32700),
        (b"[]", None, -32600),
        (b'{"id":1,"method":"ping"}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}', 1, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', 1, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}', 1, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":false}', 1, -32602),
    ],
)
def test_what_is_no_message_is_refused_under_its_id(body: bytes, ident: object, code: int) -> None:
    answer = refused(body)
    assert answer is not None
    assert answer["id"] == ident
    assert answer["error"]["code"] == code
    assert set(answer["error"]) == {"code", "message"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"x","method":"ping","params":null}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
    ],
)
def test_a_message_is_let_through(body: bytes) -> None:
    assert refused(body) is None
