"""A person's access to the same memories as the agent's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
from keymemd_command import COMMAND, WAIT_S, fails, json_of, keymemd, on_terminal, succeeds
from running_daemon import RunningDaemon, clean_environment, running

KOREAN = "동건이는 서울에 살고 아침마다 한강을 따라 자전거를 타며 주말에는 부모님 댁에서 저녁을 먹는다."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with running(tmp_path_factory.mktemp("cli") / "data") as started:
        yield started


@pytest.fixture
def directory(daemon: RunningDaemon) -> Path:
    return daemon.directory


def saved(directory: Path, text: str, *words: str) -> str:
    return str(json_of(directory, "remember", text, *words)["saved"])


def test_a_memory_saved_by_a_person_is_recalled_by_its_keys(directory: Path) -> None:
    ident = saved(directory, "The lighthouse keeper is called Maren.", "-k", "lighthouse", "-k", "Maren")
    found = json_of(directory, "recall", "lighthouse")
    assert found["status"] == "found"
    assert found["memories"][0]["id"] == ident
    shown = succeeds(directory, "recall", "lighthouse")
    assert "The lighthouse keeper is called Maren." in shown
    assert ident in shown
    assert "Maren" in shown


def test_the_text_can_come_from_standard_input(directory: Path) -> None:
    succeeds(directory, "remember", "-", "-k", "standard input", stdin="Several lines\nof text.\n")
    assert json_of(directory, "recall", "standard input")["memories"][0]["content"].startswith("Several lines\nof text.")


def test_the_same_text_again_is_said_to_be_known(directory: Path) -> None:
    words = ("remember", "Heidi collects tin trains.", "-k", "Heidi", "-k", "trains")
    assert succeeds(directory, *words).startswith("saved: ")
    assert succeeds(directory, *words).startswith("known already: ")


def test_type_namespace_profile_and_time_to_live_reach_the_store(directory: Path) -> None:
    ident = saved(
        directory,
        "Quill moves to Oslo next week.",
        *("-k", "Quill", "-k", "Oslo", "--type", "Quill=name", "--namespace", "people", "--ttl", "3600"),
        *("--profile", "transient"),
    )
    found = json_of(directory, "show", ident)
    assert found["memory"]["namespace"] == "people"
    assert found["memory"]["expires_at"] is not None
    assert found["validity"]["decay_profile"] == "transient"
    quill = next(key["key_id"] for key in found["keys"] if key["concept"] == "Quill")
    assert json_of(directory, "show", quill)["key"]["key_type"] == "name"


def test_showing_a_memory_or_a_key_does_not_count_as_reading_it(directory: Path) -> None:
    ident = saved(directory, "The spare key hangs behind the clock.", "-k", "spare key", "-k", "clock")
    first = json_of(directory, "show", ident)
    key_id = first["keys"][0]["key_id"]
    succeeds(directory, "show", ident)
    assert json_of(directory, "show", ident)["memory"]["access_count"] == first["memory"]["access_count"] == 0
    assert "spare key" in succeeds(directory, "show", key_id) + succeeds(directory, "show", first["keys"][1]["key_id"])


def test_keys_list_stats_and_history_tell_of_what_was_saved(directory: Path) -> None:
    ident = saved(directory, "Basalt columns are hexagonal.", "-k", "basalt", "-k", "geology", "--namespace", "stones")
    assert {key["concept"] for key in json_of(directory, "keys", "--namespace", "stones")["keys"]} == {"basalt", "geology"}
    assert "basalt" in succeeds(directory, "keys", "--namespace", "stones")
    listed = json_of(directory, "list", "--namespace", "stones")
    assert [memory["id"] for memory in listed["memories"]] == [ident]
    assert "Basalt columns" in succeeds(directory, "list", "--namespace", "stones")
    assert json_of(directory, "stats", "--namespace", "stones")["memory_count"] == 1
    assert "stones" in succeeds(directory, "stats")
    changes = json_of(directory, "history", ident)["changes"]
    assert [change["action"] for change in changes] == ["remember"]
    assert "Basalt columns" in succeeds(directory, "history", ident)


def test_keys_in_a_mapped_directory_are_those_of_its_namespaces_in_their_words(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    data = tmp_path / "data"
    data.mkdir()
    (data / "namespaces.json").write_text(json.dumps({str(project): ["orchard"]}))
    with running(data):
        saved(data, "Of others", "-k", "cherries", "--namespace", "elsewhere")
        saved(data, "Of ours", "-k", "CHERRY", "--namespace", "orchard")
        saved(data, "Of all", "-k", "spade")
        shown = json_of(data, "keys", cwd=project)["namespaces"]
        assert [(one["namespace"], [key["concept"] for key in one["keys"]]) for one in shown] == [("orchard", ["CHERRY"]), ("default", ["spade"])]
        assert {key["concept"] for key in json_of(data, "keys", "--namespace", "*", cwd=project)["keys"]} == {"cherries", "spade"}
        assert "CHERRY" in succeeds(data, "keys", cwd=project)


def test_a_page_names_the_offset_of_the_next_one(directory: Path) -> None:
    for number in range(3):
        saved(directory, f"Page {number} of the ledger.", "-k", "ledger", "--namespace", "ledgers")
    assert "--offset 2" in succeeds(directory, "list", "--namespace", "ledgers", "--limit", "2")
    assert len(json_of(directory, "list", "--namespace", "ledgers", "--offset", "2")["memories"]) == 1


def test_a_query_that_fits_nothing_is_no_failure_and_says_what_is_near(directory: Path) -> None:
    saved(directory, "Tulips need cold winters.", "-k", "tulips", "--namespace", "garden")
    assert "nothing fits" in succeeds(directory, "recall", "zzzzqqq", "--namespace", "garden")
    assert "nothing is remembered here" in succeeds(directory, "recall", "tulips", "--namespace", "nowhere")


def test_explain_on_an_empty_store_says_nothing_that_is_not_there(tmp_path: Path) -> None:
    data = tmp_path / "empty"
    try:
        shown = succeeds(data, "recall", "otters", "--explain")
    finally:
        keymemd(data, "stop")
    assert "searched 0 memories of all namespaces" in shown
    assert "None" not in shown


def test_explain_shows_how_each_key_was_found(directory: Path) -> None:
    saved(directory, "Otters hold hands when they sleep.", "-k", "otters")
    shown = succeeds(directory, "recall", "otters", "--explain")
    assert "concept 1.000" in shown
    assert "searched" in shown


def test_explain_shows_what_the_score_is_made_of_and_the_way_that_led_there(directory: Path) -> None:
    here = ("--namespace", "hedge")
    first = saved(directory, "Hedgehogs curl up in the leaf pile.", "-k", "hedgehogs", "-k", "leaf pile", *here)
    second = saved(directory, "The leaf pile is behind the old shed.", "-k", "leaf pile", "-k", "shed", *here)
    preview = succeeds(directory, "recall", "hedgehogs", "--explain", *here)
    assert "way: hedgehogs (concept) → “Hedgehogs curl up in the leaf pile.”" in preview
    (line,) = [line for line in preview.splitlines() if line.strip().startswith("score ")]
    assert "× depth 0.900 × freshness" in line
    direct = succeeds(directory, "recall", "hedgehogs", "--direct", "--explain", *here)
    assert f"{second} · " in direct
    assert "→ leaf pile → “The leaf pile is behind the old shed.”" in direct
    assert "over leaf pile" in direct
    found = json_of(directory, "recall", "hedgehogs", "--direct", "--explain", "--hops", "3", *here)
    assert {first, second} <= {memory["id"] for memory in found["memories"]}
    for memory in found["memories"]:
        why = memory["why"]
        total = sum(part["amount"] for part in why["contributions"])
        assert abs(total * prod(factor["value"] for factor in why["factors"]) - memory["score"]) < 1e-6
    assert "--direct" in fails(directory, "recall", "hedgehogs", "--hops", "3", code=64)


def test_forgetting_needs_a_yes_where_nobody_can_be_asked(directory: Path) -> None:
    ident = saved(directory, "The old password hint is a bird.", "-k", "bird hint")
    assert "--yes" in fails(directory, "forget", ident, code=64)
    assert json_of(directory, "show", ident)["active"]
    assert json_of(directory, "forget", ident, "--yes")["deleted"] == ident
    assert ident in fails(directory, "show", ident)


@pytest.mark.parametrize(("answer", "kept"), [("y\n", False), ("n\n", True), ("\n", True), ("\x04", True)])
def test_on_a_terminal_the_memory_is_shown_and_only_a_yes_deletes_it(directory: Path, answer: str, kept: bool) -> None:
    ident = saved(directory, f"A note that may go: {answer!r}.", "-k", "passing note")
    code, shown = on_terminal(directory, ["forget", ident], answer)
    assert "A note that may go" in shown
    assert code == (1 if kept else 0)
    assert (keymemd(directory, "show", ident).returncode == 0) == kept


def test_what_the_daemon_refuses_is_one_line_with_the_next_step(directory: Path) -> None:
    assert "keys" in fails(directory, "remember", "No key at all.")
    assert "KEY=TYPE" in fails(directory, "remember", "x", "-k", "some key", "--type", "nonsense", code=64)
    assert "ttl_seconds" in fails(directory, "remember", "x", "-k", "some key", "--ttl", "-5")
    assert "000000000000" in fails(directory, "show", "000000000000")
    assert "top_k" in fails(directory, "recall", "x", "--top-k", "99")


def test_bytes_that_are_not_text_are_refused_and_store_nothing(directory: Path) -> None:
    before = json_of(directory, "stats")["memory_count"]
    done = subprocess.run(
        [*COMMAND, "remember", b"broken \xff byte", "-k", "bytes"],
        env=clean_environment(directory),
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert json_of(directory, "stats")["memory_count"] == before


def test_stored_control_characters_never_reach_the_output(directory: Path) -> None:
    ident = saved(directory, "red \033[31malert\033[0m and \a bell\r over", "-k", "escape")
    for words in (("show", ident), ("recall", "escape"), ("list",), ("history", ident)):
        shown = succeeds(directory, *words)
        assert not {"\033", "\a", "\r"} & set(shown)


def test_long_text_is_wrapped_to_the_terminal_hangul_counted_double(directory: Path) -> None:
    ident = saved(directory, KOREAN, "-k", "동건", "-k", "서울")
    _code, shown = on_terminal(directory, ["show", ident], width=40, extra={"NO_COLOR": "1", "PYTHONUTF8": "1"})
    text = shown.split(ident)[0].rstrip("\n").split("\n")
    assert " ".join(text) == KOREAN
    assert len(text) > 1
    assert all(sum(1 if character.isascii() else 2 for character in line) <= 40 for line in text)


def test_text_that_is_piped_on_is_not_wrapped_and_keeps_its_lines(directory: Path) -> None:
    text = f"def walk():\n    return {'far ' * 60}away"
    ident = saved(directory, text, "-k", "walk function")
    assert succeeds(directory, "show", ident).startswith(text + "\n")


def test_a_preview_that_was_cut_says_how_to_see_all_of_it(directory: Path) -> None:
    ident = saved(directory, "An endless tale. " * 500, "-k", "endless tale")
    assert f"keymemd show {ident}" in succeeds(directory, "recall", "endless tale")


def test_an_output_that_cannot_show_hangul_shows_escapes_and_does_not_fail(directory: Path) -> None:
    ident = saved(directory, "부산", "-k", "부산")
    assert "\\ubd80" in succeeds(directory, "show", ident, extra={"PYTHONIOENCODING": "ascii"})


def test_a_reader_that_goes_away_ends_a_command_quietly(directory: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, "keys", "--json"],
            env=clean_environment(directory),
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=WAIT_S,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_daemon_that_died_is_replaced_before_the_question_is_asked(tmp_path: Path) -> None:
    with running(tmp_path / "data") as first:
        ident = saved(first.directory, "Kept over a crash.", "-k", "crash")
        first.process.kill()
        first.process.wait(WAIT_S)
        assert json_of(first.directory, "recall", "crash")["memories"][0]["id"] == ident
        succeeds(first.directory, "stop")


def test_every_listing_is_json_for_programs(directory: Path) -> None:
    for words in (("keys",), ("list",), ("stats",), ("history",), ("config",), ("status",), ("recall", "x")):
        assert isinstance(json.loads(succeeds(directory, *words, "--json")), dict)
