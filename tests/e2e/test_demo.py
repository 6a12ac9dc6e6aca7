"""The demo: the main job, end to end, as a person sees it first."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keymemd_command import WAIT_S, fails, json_of, succeeds
from running_daemon import clean_environment, running
from shim_session import daemon_pid, end_daemon

from keymem_daemon.cli.commands.demo import APPLE, MEMORIES, NAMESPACE, NEWTON, STRAWBERRY


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "data"
    yield data
    end_daemon(data)


def test_the_demo_walks_from_newton_to_strawberries_and_leaves_a_running_daemon(directory: Path) -> None:
    shown = succeeds(directory, "demo")
    steps = [
        'recall("Newton")',
        NEWTON,
        'read_key("apple")',
        "read_memory(",
        APPLE,
        'read_key("fruit")',
        "read_memory(",
        STRAWBERRY,
    ]
    at = shown.index("the question is only")
    for step in steps:
        at = shown.index(step, at)
    assert "claude mcp add keymem" in shown[at:]
    assert daemon_pid(directory) is not None


def test_what_the_demo_tells_to_call_next_can_be_called_as_it_says(directory: Path, tmp_path: Path) -> None:
    shown = succeeds(directory, "demo", extra={"PATH": "/usr/bin:/bin"})
    (told,) = re.findall(r"with `(\S+) list`", shown)
    assert Path(told).is_file()
    named = tmp_path / "bin"
    named.mkdir()
    (named / "keymemd").symlink_to(told)
    assert "with `keymemd list`" in succeeds(directory, "demo", extra={"PATH": f"{named}:/usr/bin:/bin"})


def test_the_demo_works_twice_in_a_row_and_stores_nothing_twice(directory: Path) -> None:
    first = json_of(directory, "demo")
    second = json_of(directory, "demo")
    assert [hop["found"] for hop in second["hops"]] == [hop["found"] for hop in first["hops"]]
    assert json_of(directory, "stats")["namespaces"] == {NAMESPACE: len(MEMORIES)}


def test_the_demo_stays_in_its_namespace_and_cleans_up_after_itself_only(directory: Path) -> None:
    mine = json_of(directory, "remember", "My apple tree is old.", "-k", "apple", "-k", "tree")["saved"]
    near = json_of(directory, "remember", "A pear.", "-k", "pear", "--namespace", NAMESPACE)["saved"]
    json_of(directory, "demo")
    assert len(json_of(directory, "demo", "--clean")["deleted"]) == len(MEMORIES)
    assert {memory["id"] for memory in json_of(directory, "list")["memories"]} == {mine, near}


def test_the_memories_of_the_demo_delete_themselves_after_a_day(directory: Path) -> None:
    json_of(directory, "demo")
    for memory in json_of(directory, "list")["memories"]:
        assert memory["expires_at"] > memory["created_at"]


def test_a_chain_that_breaks_is_a_failure_in_one_line(directory: Path) -> None:
    with running(directory) as daemon:
        pie = {"content": "Apple pie needs butter.", "keys": ["apple", "butter"], "namespace": NAMESPACE}
        (saved,) = daemon.verb("remember", {"items": [pie]})["results"]
        daemon.verb("confirm", {"memory_id": saved["saved"], "evidence": "user"})
        assert "the key apple did not lead to the memory about apples" in fails(directory, "demo", "--json")


def test_the_walk_shares_no_key_and_no_word_between_its_ends() -> None:
    def words(text: str) -> set[str]:
        return {word.strip(".").lower() for word in text.split()}

    assert not words(NEWTON) & words(STRAWBERRY)
    assert not set(MEMORIES[NEWTON]) & set(MEMORIES[STRAWBERRY])


def test_a_demo_that_may_start_no_daemon_says_so(directory: Path) -> None:
    assert "keymemd start" in fails(directory, "demo", extra={"KEYMEM_DAEMON_AUTOSTART": "false"})


def test_a_shim_that_ends_at_once_is_a_failure_in_one_line(directory: Path, tmp_path: Path) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    (place / "keymem-shim").write_text("#!/bin/sh\nexit 1\n")
    (place / "keymem-shim").chmod(0o755)
    (place / "keymemd").write_text("import sys\nfrom keymem_daemon.cli.main import main\nsys.exit(main())\n")
    done = subprocess.run(
        [sys.executable, place / "keymemd", "demo", "--json"],
        env=clean_environment(directory),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "the chain was not found" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
