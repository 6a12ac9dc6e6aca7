"""Where the daemon is, and whether that may be believed."""

from __future__ import annotations

import http.server
import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keymem_shim import VERSION, identity, rendezvous

Answering = Callable[..., None]
SETTINGS = ("KEYMEM_DATA_DIR", "SUPER_MEMORY_DATA_DIR", "XDG_RUNTIME_DIR")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def publish(directory: Path, **changed: object) -> dict[str, object]:
    content: dict[str, object] = {
        "pid": os.getpid(),
        "started_at": "2026-01-01T00:00:00Z",
        "socket": str(directory / "daemon.sock"),
        "port": None,
        "token": "t" * 64,
        "instance": "i1",
        "version": VERSION,
        "protocol": rendezvous.PROTOCOL,
    } | changed
    path = directory / "daemon.json"
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(content))
    path.chmod(0o600)
    return content


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Answering]:
    """A real HTTP server on the data directory's socket that answers /health with what it is given."""
    servers: list[socketserver.UnixStreamServer] = []

    def start(**health: object) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"ok": True} | health).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def address_string(self) -> str:
                return "socket"

            def log_message(self, *_: object) -> None:
                return

        server = socketserver.UnixStreamServer(str(tmp_path / "daemon.sock"), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_settings_decide_the_data_directory_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert rendezvous.data_dir() == str(tmp_path / ".keymem")
    (tmp_path / ".super-memory").mkdir()
    assert rendezvous.data_dir() == str(tmp_path / ".super-memory")
    (tmp_path / ".keymem").mkdir()
    assert rendezvous.data_dir() == str(tmp_path / ".keymem")
    monkeypatch.setenv("SUPER_MEMORY_DATA_DIR", "~/second")
    assert rendezvous.data_dir() == str(tmp_path / "second")
    monkeypatch.setenv("KEYMEM_DATA_DIR", str(tmp_path / "first"))
    assert rendezvous.data_dir() == str(tmp_path / "first")
    monkeypatch.setenv("KEYMEM_DATA_DIR", "")
    assert rendezvous.data_dir() == str(tmp_path / "second")


def test_a_switch_that_is_neither_yes_nor_no_keeps_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPER_MEMORY_X", "FALSE ")
    assert rendezvous.flag("X", default=True) is False
    monkeypatch.setenv("KEYMEM_X", "maybe")
    assert rendezvous.flag("X", default=True) is True


def test_directories_become_private_whatever_the_umask_and_the_past(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        rendezvous.prepare_data_dir(str(directory))
    finally:
        os.umask(before)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "logs").stat().st_mode & 0o777 == 0o700


def test_a_long_path_gets_a_short_socket_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert rendezvous.socket_path("/home/me/.keymem") == "/home/me/.keymem/daemon.sock"
    deep = tmp_path / ("가" * 40)
    other = tmp_path / ("나" * 40)
    runtime = Path("/tmp") / f"keymem-test-{os.getpid()}"  # noqa: S108
    runtime.mkdir(mode=0o700)
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        inside = rendezvous.socket_path(str(deep))
        assert inside.startswith(f"{runtime}/keymem-")
        assert inside != rendezvous.socket_path(str(other))
        runtime.chmod(0o755)
        shared = rendezvous.socket_path(str(deep))
    finally:
        runtime.rmdir()
    assert shared.startswith(f"/tmp/keymem-{os.geteuid()}/")  # noqa: S108
    assert Path(shared).parent.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(shared)) <= 100


@pytest.mark.parametrize(
    "changed",
    [
        {"pid": "1"},
        {"pid": 0},
        {"token": ""},
        {"token": "a\nb"},
        {"instance": None},
        {"socket": None},
        {"socket": "relative"},
        {"socket": None, "port": 70_000},
        {"protocol": True},
        {"version": 3},
    ],
)
def test_a_discovery_file_of_the_wrong_shape_is_no_discovery(tmp_path: Path, changed: dict[str, object]) -> None:
    publish(tmp_path, **changed)
    assert rendezvous.read_discovery(str(tmp_path)) is None


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"[" * 60_000, b"{}" * 40_000])
def test_a_damaged_discovery_file_is_no_discovery(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "daemon.json").write_bytes(raw)
    assert rendezvous.read_discovery(str(tmp_path)) is None


def test_a_discovery_file_that_others_could_write_is_not_believed(tmp_path: Path) -> None:
    publish(tmp_path)
    assert rendezvous.read_discovery(str(tmp_path)) is not None
    (tmp_path / "daemon.json").chmod(0o666)
    assert rendezvous.read_discovery(str(tmp_path)) is None
    (tmp_path / "daemon.json").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o600)
    (tmp_path / "daemon.json").symlink_to(tmp_path / "elsewhere")
    assert rendezvous.read_discovery(str(tmp_path)) is None


def test_a_pipe_in_the_place_of_the_discovery_file_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "daemon.json", 0o600)
    assert rendezvous.read_discovery(str(tmp_path)) is None


def test_a_daemon_is_ready_when_it_repeats_its_instance(tmp_path: Path, answering: Answering) -> None:
    publish(tmp_path)
    answering(instance="i1", version=VERSION, protocol=rendezvous.PROTOCOL)
    found = rendezvous.probe(str(tmp_path))
    assert isinstance(found, rendezvous.Ready)
    assert found.discovery.token == "t" * 64


def test_another_instance_behind_the_socket_is_not_the_daemon(tmp_path: Path, answering: Answering) -> None:
    publish(tmp_path)
    answering(instance="i2", version=VERSION, protocol=rendezvous.PROTOCOL)
    assert isinstance(rendezvous.probe(str(tmp_path)), rendezvous.Unreachable)


@pytest.mark.parametrize(
    ("version", "protocol", "outcome"),
    [
        ("0.0.1", rendezvous.PROTOCOL, rendezvous.NeedsRestart),
        (VERSION, rendezvous.PROTOCOL - 1, rendezvous.NeedsRestart),
        (VERSION, None, rendezvous.NeedsRestart),
        ("99.0", rendezvous.PROTOCOL + 1, rendezvous.Ready),
    ],
)
def test_only_an_older_daemon_needs_a_restart(
    tmp_path: Path, answering: Answering, version: str, protocol: int | None, outcome: type[object]
) -> None:
    publish(tmp_path, version=version)
    answering(instance="i1", version=version, protocol=protocol)
    assert isinstance(rendezvous.probe(str(tmp_path)), outcome)


def test_a_silent_listener_is_no_daemon(tmp_path: Path) -> None:
    publish(tmp_path)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "daemon.sock"))
        silent.listen(8)
        assert isinstance(rendezvous.probe(str(tmp_path), 0.05), rendezvous.Unreachable)


def test_nothing_behind_the_file_is_no_daemon(tmp_path: Path) -> None:
    assert isinstance(rendezvous.probe(str(tmp_path)), rendezvous.Unreachable)
    publish(tmp_path)
    assert isinstance(rendezvous.probe(str(tmp_path)), rendezvous.Unreachable)


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [("1.2", "1.10", True), ("1.2.0", "1.2", False), ("1.2", "1.2rc1", False), ("x", "0.1", True), ("2", "1.9", False)],
)
def test_versions_compare_by_their_leading_numbers(version: str, other: str, *, expected: bool) -> None:
    assert rendezvous.older(version, other) is expected


def test_only_a_uuid_is_taken_for_a_host_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "../../etc")
    monkeypatch.setenv("CODEX_THREAD_ID", "0197F2A0-0000-7000-8000-0123456789AB")
    claim = identity.host_claim()
    assert claim is not None
    assert (claim.agent, claim.session) == ("codex", "0197f2a0-0000-7000-8000-0123456789ab")
    assert {"CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"} & identity.daemon_environment().keys() == set()
    monkeypatch.delenv("CODEX_THREAD_ID")
    assert identity.host_claim() is None


def test_a_client_says_where_its_hosts_keep_their_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", "~/elsewhere")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert identity.host_homes() == [("claude", f"{tmp_path}/.claude"), ("codex", f"{tmp_path}/elsewhere")]
