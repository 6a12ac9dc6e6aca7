"""A daemon that is given no time answers all the same, with what words find, and says that it is not all."""

from __future__ import annotations

from pathlib import Path

from running_daemon import running

QUESTION = "Which colour has the harbour lantern that Mira painted, and who keeps the boats by the old quay in the winter months?"


def test_with_a_millisecond_to_answer_in_retrieval_returns_what_the_words_find_and_says_so(tmp_path: Path) -> None:
    with running(tmp_path / "d", extra={"KEYMEM_RECALL_DEADLINE_MS": "1"}) as daemon:
        items = [{"content": "Mira painted the harbour lantern green", "keys": ["harbour", "lantern"]}]
        items += [{"content": f"Boat {n} is kept by the old quay", "keys": ["boats", f"berth {n}"]} for n in range(20)]
        results = daemon.verb("remember", {"items": items})["results"]
        found = daemon.verb("retrieve", {"query": QUESTION, "explain": True})
        assert found["partial"] is True
        assert "hop 2" in found["skipped"]
        assert results[0]["saved"] in {memory["id"] for memory in found["memories"]}
        preview = daemon.verb("recall", {"query": "harbour lantern", "context": QUESTION})
        assert preview["status"] == "found"
        single = daemon.verb("retrieve", {"query": "lantern", "hops": 1})
        assert single["memories"][0]["id"] == results[0]["saved"]


def test_a_hook_that_allows_a_millisecond_is_answered(tmp_path: Path) -> None:
    with running(tmp_path / "d") as daemon:
        daemon.verb("remember", {"items": [{"content": "Mira painted the harbour lantern green", "keys": ["harbour"]}]})
        answer = daemon.post("/inject", {"prompt": QUESTION, "budget_ms": 1}).json()
        assert answer["partial"] is True
        assert answer["memories"] == []
