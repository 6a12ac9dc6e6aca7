"""Notes that somebody planted, from the store of the real daemon through the real hook: they are shown, and never more than notes.

Twelve texts (four goals, three phrasings each: said plainly, as a forged frame, disguised) at three places of a note about something
else, which is what the prompt asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hook_process import event_of, notes_within, plain, run_hook
from running_daemon import RunningDaemon, running, wait_until

SET: Final = json.loads((Path(__file__).parents[1] / "support" / "hostile_notes.json").read_text(encoding="utf-8"))
ORDERS: Final = {
    "first": "{text}\n{before} {after}",
    "between": "{before}\n{text}\n{after}",
    "last": "{before} {after}\n{text}",
}


class Planted(NamedTuple):
    """A note with a hostile text in it, the prompt that it answers, and the words that show that the text was printed."""

    name: str
    content: str
    keys: list[str]
    prompt: str
    asks: str


PLANTED: Final = [
    Planted(
        f"{text['goal']} {number % 3 + 1} {place}",
        order.format(text=text["text"], **fact),
        fact["keys"],
        fact["question"],
        text["asks"],
    )
    for number, (text, fact) in enumerate(zip(SET["texts"], SET["facts"], strict=True))
    for place, order in ORDERS.items()
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon that holds the harmless facts of the others too, and can judge by meaning."""
    with running(tmp_path_factory.mktemp("hostile") / "d") as started:
        started.verb("remember", {"items": [{"content": "The harbour has two piers", "keys": ["harbour", "pier"]}]})
        with started.over_socket() as http:
            wait_until(lambda: (http.get("/status").json()["models"] or {}).get("semantic") == "ready", "an encoder")
        yield started


def test_the_set_has_four_goals_three_phrasings_and_three_places() -> None:
    assert len({planted.content for planted in PLANTED}) == 36
    goals = [text["goal"] for text in SET["texts"]]
    assert [goals.count(goal) for goal in dict.fromkeys(goals)] == [3, 3, 3, 3]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_note_is_shown_within_the_fence_as_text_and_nothing_else(
    daemon: RunningDaemon, planted: Planted
) -> None:
    item = {"content": planted.content, "keys": planted.keys}
    memory_id = daemon.verb("remember", {"items": [item]})["results"][0]["saved"]
    try:
        ran = run_hook(daemon.directory, event_of(planted.prompt, session_id=memory_id))
        assert ran.outcome == "injected"
        notes = notes_within(ran.context)
        (shown,) = [note for note in notes if memory_id in note.split(",", 1)[0]]
        assert planted.asks in plain(shown)
    finally:
        daemon.verb("forget", {"memory_id": memory_id})
