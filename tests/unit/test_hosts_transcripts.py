"""Which turn a call belongs to, from transcripts on disk; and what is never read."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from fixed_time import FixedClock
from transcripts import (
    CLAUDE_SESSION,
    CODEX_SESSION,
    claude_file,
    codex_file,
    codex_message,
    codex_turn,
    line,
    prompt,
    tool_result,
    tool_use,
)

from keymem_daemon.hosts.transcripts import GUESS_AGE_S, Transcripts
from keymem_daemon.ports import HostCall, HostTurn

CLAUDE = HostCall("claude", CLAUDE_SESSION)
CODEX = HostCall("codex", CODEX_SESSION)
NOTHING = HostTurn()
BRIEF_S = 1.0
"""What a test waits for a transcript that never reaches the call."""
OTHER_SESSION = "00000000-0000-4000-8000-000000000001"


class Ticks:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def reader(
    home: Path,
    access: bool | None = None,
    *,
    clock: FixedClock | None = None,
    guesses: bool = False,
    scan_bytes: int = 1 << 30,
    ticks: Ticks | None = None,
    deadline_s: float = 60.0,
) -> Transcripts:
    """A reader with patience: the tests are about what is found, and the machine may be busy."""
    return Transcripts(
        access,
        {"claude": home, "codex": home},
        clock or FixedClock(),
        guesses=guesses,
        deadline_s=deadline_s,
        scan_bytes=scan_bytes,
        monotonic=ticks or Ticks(),
    )


def asked(transcripts: Transcripts, call: HostCall) -> HostTurn:
    return asyncio.run(transcripts.turn(call))


def turn_and_prompt(found: HostTurn) -> tuple[int | None, str | None]:
    return found.turn, found.prompt


def test_the_turn_is_the_number_of_prompts_that_a_person_wrote(tmp_path: Path) -> None:
    claude_file(
        tmp_path,
        line({"type": "queue-operation", "content": "user"}),
        prompt("one"),
        tool_use("toolu_1"),
        tool_result("toolu_1"),
        prompt([{"type": "text", "text": "two"}, {"type": "image"}], "p-2"),
        prompt("a side chain", "p-9", isSidechain=True),
        prompt("Caveat: …", "p-2", isMeta=True),
        prompt("what went before", "p-2", isCompactSummary=True),
        prompt("<command-name>/model</command-name>", "p-2"),
        prompt("<local-command-stdout>set</local-command-stdout>", "p-2"),
        prompt([{"type": "text", "text": "[Request interrupted by user]"}], "p-2"),
        prompt("   ", "p-2"),
        line({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["user"]}}),
    )
    found = asked(reader(tmp_path), CLAUDE)
    assert found == HostTurn("claude", CLAUDE_SESSION, 2, "p-2")


def test_a_prompt_that_speaks_of_tool_results_is_still_a_prompt(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt('why does {"type":"tool_result"} say "user"?'))
    assert asked(reader(tmp_path), CLAUDE).turn == 1


def test_a_transcript_written_with_spaces_reads_the_same(tmp_path: Path) -> None:
    claude_file(tmp_path, b'{"type": "user", "promptId": "p-1", "message": {"role": "user", "content": "hi"}}\n')
    assert turn_and_prompt(asked(reader(tmp_path), CLAUDE)) == (1, "p-1")


def test_a_call_belongs_to_the_prompt_before_its_line_and_not_to_a_later_one(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one", "p-1"), tool_use("toolu_1"), prompt("two", "p-2"), tool_use("toolu_2"))
    transcripts = reader(tmp_path)
    calls = [HostCall("claude", CLAUDE_SESSION, tool_use_id=f"toolu_{number}") for number in (1, 2)]
    assert [asked(transcripts, call).prompt for call in calls] == ["p-1", "p-2"]


def test_a_transcript_that_does_not_reach_the_call_yet_says_neither_turn_nor_prompt(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one", "p-1"), tool_use("toolu_1"))
    codex_file(tmp_path, codex_turn("t-1"), codex_message("one"))
    for call in (
        HostCall("claude", CLAUDE_SESSION, tool_use_id="toolu_2"),
        HostCall("claude", CLAUDE_SESSION, tool_use_id="toolu_2", hook_prompt="p-2"),
        HostCall("codex", CODEX_SESSION, prompt="t-2"),
    ):
        assert turn_and_prompt(asked(reader(tmp_path, deadline_s=BRIEF_S), call)) == (None, None)


def test_the_hook_s_prompt_shows_that_the_transcript_is_there_before_the_line_of_the_call_is(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one", "p-1"), prompt("two", "p-2"))
    call = HostCall("claude", CLAUDE_SESSION, tool_use_id="toolu_2", hook_prompt="p-2")
    assert turn_and_prompt(asked(reader(tmp_path), call)) == (2, "p-2")


def test_a_line_that_is_written_late_is_waited_for(tmp_path: Path) -> None:
    path = claude_file(tmp_path, prompt("one", "p-1"))
    transcripts = reader(tmp_path)

    async def scene() -> HostTurn:
        asking = asyncio.ensure_future(transcripts.turn(HostCall("claude", CLAUDE_SESSION, tool_use_id="toolu_2")))
        await asyncio.sleep(0)
        assert not asking.done()
        with path.open("ab") as file:
            file.write(prompt("two", "p-2") + tool_use("toolu_2"))
        return await asking

    assert turn_and_prompt(asyncio.run(scene())) == (2, "p-2")


def test_a_session_that_was_waited_for_in_vain_is_not_waited_for_again_and_again(tmp_path: Path) -> None:
    transcripts = reader(tmp_path, deadline_s=BRIEF_S)
    for _save in range(3):
        assert asked(transcripts, CLAUDE) == NOTHING
    patient = reader(tmp_path, deadline_s=60.0)
    patient._in_vain = transcripts._in_vain
    assert asked(patient, CLAUDE) == NOTHING


def test_codex_counts_what_the_person_typed_and_knows_its_last_turn(tmp_path: Path) -> None:
    codex_file(
        tmp_path,
        codex_message("<environment_context>…", kinds=["environment.context"]),
        codex_turn("t-1"),
        codex_message("one"),
        codex_message("notes", "developer", ["hooks.additional_context"]),
        codex_message("answer", "assistant", ["unknown"]),
        codex_turn("t-2"),
        codex_message("two"),
    )
    transcripts = reader(tmp_path)
    assert asked(transcripts, CODEX) == HostTurn("codex", CODEX_SESSION, 2, "t-2")
    assert turn_and_prompt(asked(transcripts, HostCall("codex", CODEX_SESSION, prompt="t-1"))) == (2, "t-1")


def test_an_older_codex_that_writes_no_kinds_is_understood(tmp_path: Path) -> None:
    codex_file(
        tmp_path,
        codex_message("<user_instructions>…", kinds=None),
        codex_message("<environment_context>…", kinds=None),
        codex_message("one", kinds=None),
    )
    assert asked(reader(tmp_path), CODEX).turn == 1


@pytest.mark.parametrize("day", ["2026/11/29", "2026/11/30", "2026/12/01", "2025/01/07"])
def test_a_thread_is_found_in_whatever_day_its_file_lies(tmp_path: Path, day: str) -> None:
    codex_file(tmp_path, codex_message("one"), day=day)
    assert asked(reader(tmp_path), CODEX).turn == 1


def test_the_count_goes_on_with_the_file(tmp_path: Path) -> None:
    path = claude_file(tmp_path, prompt("one"))
    transcripts = reader(tmp_path)
    assert asked(transcripts, CLAUDE).turn == 1
    with path.open("ab") as file:
        file.write(prompt("two", "p-2"))
    assert turn_and_prompt(asked(transcripts, CLAUDE)) == (2, "p-2")


def test_malformed_lines_are_skipped(tmp_path: Path) -> None:
    claude_file(
        tmp_path,
        prompt("one"),
        b'{"type":"user"\n',
        b"\xff\xfe\n",
        b"\n",
        b"[1]\n",
        b"[" * 5_000 + b'"user"\n',
        prompt("two", "p-2"),
    )
    assert turn_and_prompt(asked(reader(tmp_path), CLAUDE)) == (2, "p-2")


def test_a_session_that_went_on_elsewhere_is_read_where_it_was_written_last(tmp_path: Path) -> None:
    old = claude_file(tmp_path, prompt("one"), folder="-a")
    new = claude_file(tmp_path, prompt("one"), prompt("two"), folder="-b")
    os.utime(old, (1_000, 1_000))
    os.utime(new, (2_000, 2_000))
    assert asked(reader(tmp_path), CLAUDE).turn == 2
    assert asked(reader(tmp_path), HostCall("claude", CLAUDE_SESSION, cwd="/a")).turn == 1


def test_a_deeper_transcript_is_found_too(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one"), folder="-a/inner")
    assert asked(reader(tmp_path), CLAUDE).turn == 1


def test_a_transcript_that_comes_later_is_found_later(tmp_path: Path) -> None:
    ticks = Ticks()
    transcripts = reader(tmp_path, ticks=ticks, deadline_s=BRIEF_S)
    assert asked(transcripts, CLAUDE) == NOTHING
    claude_file(tmp_path, prompt("one"))
    ticks.at += 10
    assert asked(transcripts, CLAUDE).turn == 1


def test_a_transcript_that_moved_is_found_again(tmp_path: Path) -> None:
    ticks = Ticks()
    transcripts = reader(tmp_path, ticks=ticks)
    old = claude_file(tmp_path, prompt("one"), folder="-a")
    assert asked(transcripts, CLAUDE).turn == 1
    old.unlink()
    claude_file(tmp_path, prompt("one"), prompt("two"), folder="-b")
    ticks.at += 10
    assert asked(transcripts, CLAUDE).turn == 2


def test_two_sessions_never_get_each_others_turn(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one", "a-1"))
    claude_file(tmp_path, prompt("one", "b-1"), prompt("two", "b-2"), session=OTHER_SESSION)
    transcripts = reader(tmp_path)

    async def both() -> Sequence[HostTurn]:
        return await asyncio.gather(
            *(transcripts.turn(HostCall("claude", s)) for s in (CLAUDE_SESSION, OTHER_SESSION) * 5)
        )

    assert {(found.session, found.turn, found.prompt) for found in asyncio.run(both())} == {
        (CLAUDE_SESSION, 1, "a-1"),
        (OTHER_SESSION, 2, "b-2"),
    }


def test_the_client_says_where_its_host_keeps_its_files(tmp_path: Path) -> None:
    claude_file(tmp_path / "here", prompt("one"))
    call = HostCall("claude", CLAUDE_SESSION, homes={"claude": str(tmp_path / "here")})
    assert asked(reader(tmp_path / "elsewhere"), call).turn == 1


# What is never read.


def test_access_is_refused_without_a_recognised_host_unless_it_is_granted(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one"))
    unnamed = HostCall(None, CLAUDE_SESSION)
    assert asked(reader(tmp_path, deadline_s=BRIEF_S), unnamed) == NOTHING
    assert asked(reader(tmp_path, access=True, deadline_s=BRIEF_S), unnamed).turn == 1
    assert asked(reader(tmp_path, access=False, deadline_s=BRIEF_S), CLAUDE) == NOTHING


@pytest.mark.parametrize(
    "session", ["", "../secret", "x" * 36, CLAUDE_SESSION + "\n", f"-a/{CLAUDE_SESSION}", "*" * 36]
)
def test_only_a_uuid_names_a_session(tmp_path: Path, session: str) -> None:
    claude_file(tmp_path, prompt("one"))
    (tmp_path / "projects" / "secret.jsonl").write_bytes(prompt("secret"))
    for agent in ("claude", "codex"):
        assert asked(reader(tmp_path, deadline_s=BRIEF_S), HostCall(agent, session)) == NOTHING


@pytest.mark.parametrize("planted", ["file", "folder", "projects"])
def test_no_link_below_the_root_is_followed(tmp_path: Path, planted: str) -> None:
    outside, home = tmp_path / "outside", tmp_path / "home"
    path = claude_file(outside, prompt("one"))
    link = {
        "file": home / "projects" / "-a" / path.name,
        "folder": home / "projects" / "-home-me-app",
        "projects": home / "projects",
    }[planted]
    link.parent.mkdir(parents=True)
    link.symlink_to({"file": path, "folder": path.parent, "projects": outside / "projects"}[planted])
    call = HostCall("claude", CLAUDE_SESSION, cwd="/home/me/app")
    assert asked(reader(home, deadline_s=BRIEF_S), call) == NOTHING


def test_a_link_planted_after_the_file_was_found_is_not_followed(tmp_path: Path) -> None:
    path = claude_file(tmp_path / "home", prompt("one"))
    transcripts = reader(tmp_path / "home", deadline_s=BRIEF_S)
    assert asked(transcripts, CLAUDE).turn == 1
    secret = claude_file(tmp_path / "outside", prompt("one"), prompt("two"))
    path.unlink()
    path.symlink_to(secret)
    assert asked(transcripts, CLAUDE) == NOTHING


def test_a_pipe_in_the_place_of_a_transcript_holds_nobody_up(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert asked(reader(tmp_path, deadline_s=BRIEF_S), CLAUDE) == NOTHING


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    claude_file(tmp_path / "dotfiles", prompt("one"))
    (tmp_path / "home").symlink_to(tmp_path / "dotfiles")
    assert asked(reader(tmp_path / "home"), CLAUDE).turn == 1


def test_a_session_is_guessed_only_in_a_process_of_one_client_and_only_from_a_recent_file(tmp_path: Path) -> None:
    clock = FixedClock()
    path = claude_file(tmp_path, prompt("one"))
    call = HostCall("claude", None, cwd="/home/me/app")
    os.utime(path, (clock.now(), clock.now() - GUESS_AGE_S + 10))
    assert asked(reader(tmp_path, clock=clock, deadline_s=BRIEF_S), call) == NOTHING
    assert asked(reader(tmp_path, clock=clock, guesses=True, deadline_s=BRIEF_S), call) == HostTurn(
        "claude", CLAUDE_SESSION, 1, "p-1"
    )
    os.utime(path, (clock.now(), clock.now() - GUESS_AGE_S - 10))
    assert asked(reader(tmp_path, clock=clock, guesses=True, deadline_s=BRIEF_S), call) == NOTHING


def test_codex_threads_are_guessed_alike(tmp_path: Path) -> None:
    clock = FixedClock()
    path = codex_file(tmp_path, codex_turn("t-1"), codex_message("one"))
    os.utime(path, (clock.now(), clock.now()))
    found = asked(reader(tmp_path, clock=clock, guesses=True), HostCall("codex", None))
    assert found == HostTurn("codex", CODEX_SESSION, 1, "t-1")


# What it costs.


def test_a_huge_transcript_is_read_from_its_end_and_its_turns_are_said_only_when_they_are_counted(
    tmp_path: Path,
) -> None:
    path = claude_file(tmp_path, prompt("one"), tool_use("toolu_1"))
    with path.open("r+b") as file:
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + prompt("last", "p-2") + tool_use("toolu_2"))
    transcripts = reader(tmp_path, scan_bytes=16 << 20)
    tracemalloc.start()
    try:
        found = asked(transcripts, HostCall("claude", CLAUDE_SESSION, tool_use_id="toolu_2"))
        assert turn_and_prompt(found) == (None, "p-2")
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_a_reader_that_takes_too_long_is_left_behind(tmp_path: Path) -> None:
    claude_file(tmp_path, prompt("one"))
    transcripts = Transcripts(None, {"claude": tmp_path, "codex": tmp_path}, FixedClock(), deadline_s=0.0)
    assert asked(transcripts, CLAUDE) == NOTHING
