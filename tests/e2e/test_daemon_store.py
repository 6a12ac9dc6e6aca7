"""What the daemon does to its store: reads do nothing, one restatement confirms, and a store that cannot be opened is said."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from running_daemon import RunningDaemon, running, wait_until

from keymem_daemon.api.handshake_record import request_for

FACTS = [
    {"content": "Newton saw an apple fall", "keys": ["Newton", "apple"], "key_types": {"Newton": "name"}},
    {"content": "An apple is a fruit", "keys": ["apple", "fruit"]},
    {"content": "The user likes strawberries", "keys": ["strawberry", "fruit"]},
]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running(tmp_path / "d") as started:
        started.verb("remember", {"items": FACTS})
        yield started


TABLES = ("memories", "keys", "links", "commits", "changes", "requests")


def digest(daemon: RunningDaemon) -> str:
    """The hash of every row of the store's record; vectors are a cache and left out."""
    address = f"file:{daemon.directory / 'keymem.db'}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        rows = [repr(row) for table in TABLES for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608
    assert rows
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def test_recalling_browsing_and_reading_a_key_change_nothing(daemon: RunningDaemon) -> None:
    before, listed = digest(daemon), daemon.verb("list", {})
    found = daemon.verb("recall", {"query": "Newton", "context": "What is Newton known for?"})
    daemon.verb("recall", {"query": "nothing of the kind"})
    daemon.verb("browse_keys", {"namespace": "default"})
    for key in found["keys"]:
        daemon.verb("read_key", {"key_id": key["key_id"], "query": "apple"})
    daemon.verb("show", {"id": found["memories"][0]["id"]})
    assert digest(daemon) == before
    assert daemon.verb("list", {}) == listed
    daemon.stop()
    assert digest(daemon) == before


def test_a_restatement_word_for_word_confirms_and_a_paraphrase_does_not(daemon: RunningDaemon) -> None:
    paraphrase = daemon.verb("recall", {"query": "Newton", "context": "Newton saw how an apple fell"})["memories"][0]
    assert "auto_confirmed" not in paraphrase
    restated = daemon.verb("recall", {"query": "Newton", "context": "  newton SAW an apple fall. "})["memories"][0]
    assert restated["auto_confirmed"] is True
    assert restated["validity"]["confirmation_count"] == 1


def test_reading_a_memory_through_a_key_strengthens_that_link_and_confirms_nothing(daemon: RunningDaemon) -> None:
    memory = daemon.verb("recall", {"query": "Newton"})["memories"][0]
    via = memory["matched_key"]["key_id"]
    daemon.verb("read_memory", {"memory_id": memory["id"], "via_key_id": via})
    daemon.stop()
    with running(daemon.directory) as again:
        keys = again.verb("read_memory", {"memory_id": memory["id"]})
        weights = {key["key_id"]: key["link_weight"] for key in keys["keys"]}
        assert weights.pop(via) == pytest.approx(1.1)
        assert set(weights.values()) == {1.0}
        assert keys["validity"]["confirmation_count"] == 0


def test_a_store_that_cannot_be_opened_is_said_by_status_and_by_every_tool(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir(mode=0o700)
    with closing(sqlite3.connect(directory / "keymem.db")) as newer:
        newer.execute("PRAGMA user_version = 9999")
        newer.execute("CREATE TABLE memories (id TEXT)")
        newer.commit()
    with running(directory) as daemon:
        answer = daemon.post("/api/recall", {"query": "apple"})
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "unavailable"
        headers, body = request_for("tools/call", "2025-06-18")
        body["params"] = {"name": "recall", "arguments": {"query": "apple"}}
        result: dict[str, Any] = daemon.post("/mcp", body, **headers).json()["result"]
        assert json.loads(result["content"][0]["text"])["error"]["code"] == "unavailable"
        with daemon.over_socket() as client:
            status = client.get("/status").json()
        assert status["state"] == "degraded"
        assert any("could not be opened" in found["problem"] for found in status["problems"])
    log = (directory / "logs" / "daemon.log").read_text(encoding="utf-8")
    assert "could not be opened" in log
    assert "Traceback" not in log


def test_status_and_start_say_what_opening_the_store_waits_for_until_it_is_open(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    with running(directory) as daemon:
        daemon.verb("remember", {"items": FACTS})
    with closing(sqlite3.connect(directory / "keymem.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with running(directory) as daemon, daemon.over_socket() as client:

            def problems() -> list[str]:
                report = client.get("/status").json()
                assert report["state"] in {"opening", "healthy"}
                return [found["problem"] for found in report["problems"]]

            wait_until(lambda: bool(problems()), "a word about what it waits for")
            assert "keymem.db is locked by another process" in problems()[0]
            other.execute("ROLLBACK")
            wait_until(lambda: client.get("/status").json()["state"] == "healthy", "an open store")
            assert problems() == []


def test_wrong_settings_are_named_by_status_and_do_not_stop_the_daemon(tmp_path: Path) -> None:
    extra = {"KEYMEM_DECAY_STANDARD_DAYS": "soon", "SUPER_MEMORY_GATE_Z": "2"}
    with running(tmp_path / "d", extra=extra) as daemon, daemon.over_socket() as client:
        problems = " ".join(found["problem"] for found in client.get("/status").json()["problems"])
        assert "KEYMEM_DECAY_STANDARD_DAYS" in problems
        assert "SUPER_MEMORY_GATE_Z" in problems
