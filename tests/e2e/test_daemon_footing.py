"""What becomes of a daemon whose files are taken away: it acknowledges nothing more, leaves, and takes nothing of another's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from running_daemon import WAIT_S, RunningDaemon, running, start, wait_until
from shim_session import ShimSession, end_daemon, environment

from keymem_shim import rendezvous

ONE = {"content": "the oven is broken", "keys": ["oven"]}
TWO = {"content": "the tap drips", "keys": ["tap"]}


def take(path: Path) -> None:
    """Delete a file, or a folder into which somebody may be writing at this moment."""
    if not path.is_dir():
        path.unlink()
        return

    def gone() -> bool:
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()

    wait_until(gone, f"{path} is gone")


@pytest.mark.parametrize("gone", ["", "keymem.db", "daemon.lock"])
def test_no_write_is_acknowledged_once_the_files_are_gone_and_the_daemon_leaves(tmp_path: Path, gone: str) -> None:
    directory = tmp_path / "d"
    with running(directory) as daemon:
        daemon.verb("remember", {"items": [ONE]})
        with daemon.over_socket() as client:
            assert client.get("/health").status_code == 200
            take(directory / gone)
            answer = client.post("/api/remember", json={"items": [TWO]})
        assert answer.status_code == 507
        error = answer.json()["error"]
        assert error["code"] == "storage"
        assert "was removed" in error["message"]
        assert daemon.process.wait(WAIT_S) == 0


def test_a_daemon_of_which_nobody_asks_anything_notices_by_itself(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    with running(directory) as daemon:
        take(directory)
        assert daemon.process.wait(WAIT_S) == 0


def test_a_daemon_whose_socket_was_removed_leaves_so_that_another_can_begin(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    with running(directory) as daemon:
        Path(rendezvous.socket_path(str(directory))).unlink()
        assert daemon.process.wait(WAIT_S) == 0


@pytest.mark.parametrize("left", [None, "{}", "another instance"])
def test_a_discovery_file_that_was_removed_or_replaced_is_written_again(tmp_path: Path, left: str | None) -> None:
    directory = tmp_path / "d"
    with running(directory) as daemon:
        published = Path(rendezvous.discovery_path(str(directory)))
        before = published.read_text()
        if left is None:
            published.unlink()
        else:
            other = json.dumps({**json.loads(before), "instance": "0" * 16})
            published.write_text(left if left == "{}" else other)
        wait_until(lambda: published.exists() and published.read_text() == before, "daemon.json is there again")
        assert daemon.process.poll() is None


def test_a_database_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    with running(directory) as daemon:
        daemon.verb("remember", {"items": [ONE]})
        database = directory / "keymem.db"
        other = directory / "other.db"
        shutil.copy(database, other)
        other.replace(database)
        answer = daemon.post("/api/remember", {"items": [TWO]})
        assert answer.status_code == 507
        assert "replaced" in answer.json()["error"]["message"]


def test_the_next_daemon_keeps_its_socket_when_the_one_whose_files_were_taken_ends(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    with running(directory) as first:
        take(directory)
        second: RunningDaemon = start(directory)
        try:
            second.wait_ready()
            first.stop()
            assert second.verb("remember", {"items": [TWO]})["results"][0]["saved"]
            assert Path(rendezvous.socket_path(str(directory))).is_socket()
        finally:
            second.stop()
            if second.process.stderr is not None:
                second.process.stderr.close()


def test_a_session_goes_on_with_a_new_daemon_after_its_directory_was_deleted(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    try:
        with ShimSession(environment(directory)) as session:
            session.initialize()
            session.call("remember", ONE)
            take(directory)
            refused = session.call("remember", TWO)
            assert refused["isError"]
            assert refused["structuredContent"]["error"]["code"] == "storage"
            saved = session.call("remember", TWO)["structuredContent"]["saved"]
            found = session.call("recall", {"query": "tap"})["structuredContent"]
            assert saved in [memory["id"] for memory in found["memories"]]
    finally:
        end_daemon(directory)
