"""The HTTP client against a real socket that says what each test wants said."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keymem_shim import http1

Peer = Callable[..., http1.Connection]


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    threads: list[threading.Thread] = []
    path = str(tmp_path / "s")

    def start(*said: bytes, close: bool = True) -> http1.Connection:
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(1)

        def serve() -> None:
            with server, server.accept()[0] as accepted:
                for piece in said:
                    if b"\r\n\r\n" not in accepted.recv(65_536):
                        break
                    accepted.sendall(piece)
                while not close and accepted.recv(65_536):
                    pass

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[0].start()
        return http1.Connection(http1.Address(path, None), soon())

    yield start
    for thread in threads:
        thread.join(5)


def soon() -> float:
    return time.monotonic() + 5


def ask(connection: http1.Connection) -> tuple[int, bytes]:
    connection.send("GET", "/", [], b"", soon())
    answer = connection.receive(soon())
    return answer.status, answer.read(soon())


def test_two_exchanges_share_one_connection(peer: Peer) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    connection = peer(answer, answer, close=False)
    assert ask(connection) == (200, b"hi")
    assert connection.reusable
    assert ask(connection) == (200, b"hi")
    connection.close()


def test_chunks_are_joined_and_trailers_passed_over(peer: Peer) -> None:
    said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n"
    connection = peer(said, close=False)
    assert ask(connection) == (200, b"abcde")
    assert connection.reusable
    connection.close()


def test_interim_answers_are_passed_over(peer: Peer) -> None:
    connection = peer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
    assert ask(connection) == (204, b"")
    connection.close()


def test_a_body_without_length_ends_with_the_connection(peer: Peer) -> None:
    connection = peer(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    assert ask(connection) == (200, b"all of it")
    assert not connection.reusable
    connection.close()


def test_a_connection_that_the_peer_closed_is_not_reusable(peer: Peer) -> None:
    connection = peer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    assert ask(connection) == (200, b"")
    assert not connection.reusable
    connection.close()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200",
        b"220 smtp ready\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc",
    ],
)
def test_a_broken_answer_is_a_lost_connection(peer: Peer, said: bytes) -> None:
    connection = peer(said)
    with pytest.raises(http1.ConnectionLost):
        ask(connection)
    connection.close()


def test_a_silent_peer_meets_the_deadline(peer: Peer) -> None:
    connection = peer(close=False)
    connection.send("GET", "/", [], b"", soon())
    with pytest.raises(TimeoutError):
        connection.receive(time.monotonic() + 0.05)
    connection.close()


def test_a_watched_wait_lasts_as_long_as_the_peer_is_said_to_be_there(peer: Peer) -> None:
    connection = peer(close=False)
    answers = [True, True, False]
    connection.watch = (0.01, lambda: answers.pop(0))
    connection.send("GET", "/", [], b"", soon())
    with pytest.raises(http1.ConnectionLost):
        connection.receive(http1.NEVER)
    assert answers == []
    connection.close()


def test_events_arrive_whole_whatever_the_pieces_were(peer: Peer) -> None:
    stream = b": ping\r\n\r\nevent: message\r\ndata: one\r\n\r\ndata: two\ndata:  three\n\n"
    said = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n" + stream
    connection = peer(said)
    connection.send("GET", "/", [], b"", soon())
    answer = connection.receive(soon())
    assert answer.content_type == "text/event-stream"
    assert list(answer.events(soon())) == [b"one", b"two\n three"]
    connection.close()


def test_a_wait_ends_when_another_thread_aborts_it(peer: Peer) -> None:
    connection = peer(close=False)
    connection.send("GET", "/", [], b"", soon())
    threading.Timer(0.02, connection.abort).start()
    with pytest.raises(http1.ConnectionLost):
        connection.receive(http1.NEVER)
    connection.close()


def test_a_header_cannot_smuggle_another_line(peer: Peer) -> None:
    connection = peer(close=False)
    with pytest.raises(ValueError, match="line break"):
        connection.send("GET", "/", [("X", "a\r\nY: b")], b"", soon())
    connection.close()


def test_a_port_on_this_machine_serves_as_well_as_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = http1.Address(None, server.getsockname()[1])
        connection = http1.Connection(address, soon())
        with server.accept()[0] as accepted:
            connection.send("GET", "/x", [], b"", soon())
            assert accepted.recv(65_536).startswith(f"GET /x HTTP/1.1\r\nHost: {address.host}\r\n".encode())
            accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            assert connection.receive(soon()).status == 200
        connection.close()
