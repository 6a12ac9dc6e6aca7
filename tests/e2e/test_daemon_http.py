"""The door: who may come in over the socket and over TCP, and what happens to requests that are not as they should be."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from running_daemon import WAIT_S, RunningDaemon, running

MIB = 1024 * 1024
STATS = b"{}"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        directory = tmp_path_factory.mktemp("http") / "d"
        with running(directory, extra={"KEYMEM_DAEMON_PORT": port}) as started:
            assert started.discovery.port != int(port), "a taken port is replaced"
            yield started


def json_headers(**more: str) -> dict[str, str]:
    return {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in more.items()}


def test_over_tcp_everything_but_health_needs_the_token(daemon: RunningDaemon) -> None:
    with daemon.over_tcp(token=False) as stranger, daemon.over_tcp() as owner:
        assert stranger.get("/health").json() == {"ok": True}
        assert owner.get("/health").json()["instance"] == daemon.discovery.instance
        for path in ("/status", "/metrics", "/openapi.json", "/nothing"):
            assert stranger.get(path).status_code == 401
        for path in ("/api/stats", "/mcp", "/control/stop", "/control/handover"):
            assert stranger.post(path, content=STATS, headers=json_headers()).status_code == 401
        assert owner.get("/status").status_code == 200
        assert owner.post("/api/stats", content=STATS, headers=json_headers()).status_code == 200


@pytest.mark.parametrize(
    "authorization", ["Bearer wrong", "Bearer", "Basic abc", "Bearer \N{LATIN SMALL LETTER E WITH ACUTE}"]
)
def test_a_wrong_token_is_refused_everywhere_and_not_repeated(daemon: RunningDaemon, authorization: str) -> None:
    sent = {b"authorization": authorization.encode("latin-1")}
    with daemon.over_tcp(token=False) as stranger, daemon.over_socket() as near:
        for client in (stranger, near):
            answer = client.get("/health", headers=sent)
            assert answer.status_code == 401
            assert daemon.discovery.token not in answer.text


def test_a_host_that_is_not_this_machine_and_port_is_refused(daemon: RunningDaemon) -> None:
    port = daemon.discovery.port
    with daemon.over_tcp() as owner:
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            assert owner.get("/health", headers={"host": host}).status_code == 200
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1:1",
            "localhost",
            f"127.0.0.1.evil.example:{port}",
        ):
            assert owner.get("/health", headers={"host": host}).status_code == 403


def test_requests_of_other_origins_and_sites_are_refused_even_with_the_token(daemon: RunningDaemon) -> None:
    port = daemon.discovery.port
    with daemon.over_tcp() as owner, daemon.over_socket() as near:
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{port}"):
            assert owner.get("/status", headers={"origin": origin}).status_code == 403
            assert near.get("/status", headers={"origin": origin}).status_code == 403
        assert owner.get("/status", headers={"origin": f"http://127.0.0.1:{port}"}).status_code == 200
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
            assert owner.get("/status", headers={"sec-fetch-site": site}).status_code == status


def test_no_answer_ever_allows_another_origin(daemon: RunningDaemon) -> None:
    with daemon.over_tcp() as owner:
        for method, path in (("OPTIONS", "/api/stats"), ("GET", "/status"), ("GET", "/health")):
            answer = owner.request(method, path, headers={"access-control-request-method": "POST"})
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_post_that_is_not_json_is_refused(daemon: RunningDaemon, media_type: str) -> None:
    with daemon.over_socket() as client:
        for path in ("/api/stats", "/mcp", "/control/stop"):
            assert client.post(path, content=STATS, headers={"content-type": media_type}).status_code == 415


def test_a_body_over_four_mebibytes_is_refused_whether_its_length_is_said_or_not(daemon: RunningDaemon) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(5):
            yield b" " * MIB

    with daemon.over_socket() as client:
        for path in ("/api/remember", "/mcp"):
            for body in (b" " * (4 * MIB + 1), chunks()):
                answer = client.post(path, content=body, headers=json_headers())
                assert answer.status_code == 413
                assert answer.json()["error"]["code"] == "too_large"


@pytest.mark.parametrize(
    "body", [b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"5", b'{"query": 1e999}', b'{"query": "\\ud800"}']
)
def test_a_body_that_is_no_usable_json_is_an_error_in_the_common_shape(daemon: RunningDaemon, body: bytes) -> None:
    with daemon.over_socket() as client:
        answer = client.post("/api/recall", content=body, headers=json_headers())
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"code", "message", "hint"}
    assert answer.json()["error"]["code"] == "invalid_argument"
    assert "Traceback" not in answer.text


def test_paths_and_methods_that_do_not_exist_are_errors_in_the_common_shape(daemon: RunningDaemon) -> None:
    with daemon.over_socket() as client:
        assert client.get("/nothing").status_code == 404
        assert client.get("/api/recall").status_code == 405
        assert set(client.get("/api/recall").json()["error"]) == {"code", "message", "hint"}


def test_a_connection_that_never_finishes_its_head_does_not_keep_others_waiting(daemon: RunningDaemon) -> None:
    slow = []
    for _ in range(50):
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.settimeout(WAIT_S)
        opened.connect(daemon.discovery.socket or "")
        opened.sendall(b"GET /health HTTP/1.1\r\nHost: localh")
        slow.append(opened)
    try:
        with daemon.over_socket() as client:
            assert client.get("/health").status_code == 200
        assert slow[0].recv(1) == b"", "it is hung up on"
    finally:
        for opened in slow:
            opened.close()


def test_status_metrics_and_the_description_of_the_interface_are_there(daemon: RunningDaemon) -> None:
    daemon.verb("stats", {})
    with daemon.over_socket() as client:
        status = client.get("/status").json()
        assert status["state"] == "healthy", status["problems"]
        assert status["daemon"]["port"] == daemon.discovery.port
        assert status["text_leaves_machine"] is False
        assert "keymem_calls_total" in client.get("/metrics").text
        described = client.get("/openapi.json").json()
    assert {f"/api/{name}" for name in ("remember", "recall", "retrieve", "show", "history")} <= set(described["paths"])
    recall = described["paths"]["/api/recall"]["post"]
    assert "query" in recall["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert "searched" in json.dumps(recall["responses"]["200"])


def test_a_key_of_another_program_sends_nothing_anywhere_and_is_no_problem(tmp_path: Path) -> None:
    with running(tmp_path / "data", extra={"OPENAI_API_KEY": "k"}) as daemon:
        daemon.verb("stats", {})
        with daemon.over_socket() as client:
            status = client.get("/status").json()
        assert (status["state"], status["problems"]) == ("healthy", [])
        assert status["models"]["encoder"]["backend"] == "builtin"
        assert status["text_leaves_machine"] is False


def test_strangers_on_the_port_leave_room_on_the_socket_and_are_hung_up_on_soon(daemon: RunningDaemon) -> None:
    strangers = []
    for _ in range(300):
        opened = socket.socket()
        opened.settimeout(WAIT_S)
        opened.connect(("127.0.0.1", daemon.discovery.port or 0))
        strangers.append(opened)
    try:
        with daemon.over_socket() as client:
            for _ in range(10):
                assert client.get("/health").status_code == 200
        ended = [0 for opened in strangers if _is_hung_up_on(opened)]
        assert len(ended) == 300
        with daemon.over_tcp() as owner:
            assert owner.get("/status").status_code == 200
    finally:
        for opened in strangers:
            opened.close()
    log = (daemon.directory / "logs" / "daemon.log").read_text(encoding="utf-8")
    assert log.count("More connections over TCP") == 1


def _is_hung_up_on(opened: socket.socket) -> bool:
    try:
        return opened.recv(1) == b""
    except ConnectionError:
        return True


def test_who_sends_too_much_before_reading_reads_why_it_was_refused(daemon: RunningDaemon) -> None:
    chunk = b"%x\r\n%s\r\n" % (MIB, b" " * MIB)
    head = "POST /api/remember HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: application/json\r\n"
    bodies = {
        "Transfer-Encoding: chunked": chunk * 5 + b"0\r\n\r\n",
        f"Content-Length: {5 * MIB}": b" " * 5 * MIB,
    }
    for length, body in bodies.items():
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as opened:
            opened.settimeout(WAIT_S)
            opened.connect(daemon.discovery.socket or "")
            opened.sendall(f"{head}{length}\r\n\r\n".encode() + body)
            assert opened.recv(65_536).startswith(b"HTTP/1.1 413 ")
