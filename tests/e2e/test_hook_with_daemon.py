"""The real hook in front of the real daemon: what a prompt brings, how much, how often, and from where."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hook_process import event_of, notes_within, run_hook
from keymemd_command import succeeds
from running_daemon import RunningDaemon, running, wait_until

FACT: Final = "The backup of the photo archive runs every Sunday night on the old laptop."
QUESTION: Final = "When does the backup of the photo archive run?"
KOREAN_FACT: Final = "막내딸은 매주 목요일 저녁에 시립 도서관에서 바이올린을 연습한다."
KOREAN_QUESTION: Final = "막내딸은 언제 시립 도서관에서 바이올린을 연습하니?"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon that can judge by meaning."""
    with running(tmp_path / "d") as started:
        ready(started)
        yield started


def ready(daemon: RunningDaemon) -> None:
    """Return when there is nothing left to embed or to load."""

    def settled() -> bool:
        with daemon.over_socket() as http:
            models = http.get("/status").json()["models"]
        return models is not None and models["semantic"] == "ready" and not any(models["backlog"].values())

    wait_until(settled, "an encoder with nothing to do")


def saved(daemon: RunningDaemon, content: str, *keys: str, **more: str) -> str:
    item: dict[str, Any] = {"content": content, "keys": list(keys), **more}
    memory_id = str(daemon.verb("remember", {"items": [item]})["results"][0]["saved"])
    ready(daemon)
    return memory_id


def shown(daemon: RunningDaemon, prompt: str, session: str, cwd: Path | str = "/", **settings: str) -> list[str]:
    """The notes that the hook adds to a prompt; it must have said that it added some, or that there was nothing."""
    ran = run_hook(daemon.directory, event_of(prompt, session_id=session, cwd=str(cwd)), **settings)
    if ran.output == b"":
        assert ran.outcome == "nothing"
        return []
    assert ran.outcome == "injected"
    return notes_within(ran.context)


def test_a_memory_comes_once_in_twenty_prompts_of_a_session_and_again_when_it_changed(daemon: RunningDaemon) -> None:
    memory_id = saved(daemon, FACT, "backup", "photo archive", "laptop")
    counts = [len(shown(daemon, QUESTION, "one")) for _prompt in range(21)]
    assert counts == [1, *[0] * 19, 1]
    assert len(shown(daemon, QUESTION, "another")) == 1
    corrected = daemon.verb(
        "correct", {"memory_id": memory_id, "content": FACT.replace("Sunday", "Monday"), "keys": ["backup"]}
    )
    ready(daemon)
    (note,) = shown(daemon, QUESTION, "one")
    assert corrected["new_id"] in note
    assert "Monday" in note


def test_forty_long_memories_that_match_stay_within_the_limit(daemon: RunningDaemon) -> None:
    texts = [f"{FACT} Copy {number} is kept in drawer {number * 7}. ".ljust(500, "x") for number in range(40)]
    items = [
        {"content": text, "keys": ["backup", "photo archive", f"drawer {number}"]} for number, text in enumerate(texts)
    ]
    assert all("saved" in result for result in daemon.verb("remember", {"items": items})["results"])
    ready(daemon)
    assert len(shown(daemon, QUESTION, "two")) == 2
    many = shown(daemon, QUESTION, "many", KEYMEM_HOOK_TOP_K="20")
    assert 5 < len(many) < 20
    assert sum(map(len, many)) < 4_000
    assert all(len(note) < 460 and note.endswith("…") for note in many)


@pytest.mark.parametrize("filler", ["lorem ipsum dolor ", "긴 문장 😀 ", "0123456789abcdef"])
def test_a_prompt_of_sixty_kilobytes_is_answered_rightly_or_not_at_all(daemon: RunningDaemon, filler: str) -> None:
    memory_id = saved(daemon, FACT, "backup", "photo archive", "laptop")
    for prompt in (f"{QUESTION}\n{filler * 4_000}"[:60_000], f"{filler * 4_000}"[:60_000] + QUESTION):
        assert all(memory_id in note for note in shown(daemon, prompt, prompt[:5]))


def test_hangul_and_emoji_are_understood_and_emoji_alone_bring_nothing(daemon: RunningDaemon) -> None:
    memory_id = saved(daemon, KOREAN_FACT, "막내딸", "바이올린", "도서관")
    (note,) = shown(daemon, f"🎻🎶 {KOREAN_QUESTION} 👩‍👩‍👧‍👦", "ko")
    assert memory_id in note
    assert "바이올린을 연습한다" in note
    for prompt in ("😀😀😀😀😀😀😀😀", "👩‍👩‍👧‍👦🇰🇷🏳️‍🌈 🎻🎻", "ㅋㅋㅋㅋㅋㅋㅋㅋ ㅠㅠㅠㅠ"):
        assert shown(daemon, prompt, "emoji") == []


@pytest.mark.parametrize("broken", ["\ud83d", "\0", "\ud83d\0\udc00"])
def test_a_prompt_of_broken_text_is_answered_for_what_is_whole_of_it(daemon: RunningDaemon, broken: str) -> None:
    memory_id = saved(daemon, FACT, "backup", "photo archive", "laptop")
    (note,) = shown(daemon, f"{QUESTION} {broken}", "broken")
    assert memory_id in note


def test_two_directories_of_one_base_name_never_share_and_a_linked_worktree_shares_with_its_repository(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    here, there, tree = tmp_path / "here" / "app", tmp_path / "there" / "app", tmp_path / "elsewhere" / "app"
    for place in (here, there):
        place.mkdir(parents=True)
    git = ["git", "-C", str(here), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", str(tree)]):
        subprocess.run(
            [*git, *words], check=True, capture_output=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )
    for place, name in ((here, "Here"), (there, "There")):
        succeeds(daemon.directory, "namespaces", "map", str(place), name)
    memory_id = saved(daemon, FACT, "backup", "photo archive", "laptop", namespace="here")

    assert shown(daemon, QUESTION, "1", there) == []
    for number, place in enumerate((here, tree, here / "src", tree / "src", tmp_path)):
        (note,) = shown(daemon, QUESTION, f"session {number}", place)
        assert memory_id in note, place
    searched = [
        daemon.post("/inject", {"prompt": QUESTION, "cwd": str(place)}).json()["searched"] for place in (there, tree)
    ]
    assert searched == [
        {"namespaces": ["There", "default"], "memory_count": 0},
        {"namespaces": ["Here", "default"], "memory_count": 1},
    ]
