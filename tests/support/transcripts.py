"""Transcripts as the two hosts write them, line by line, for tests of provenance."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

CLAUDE_SESSION = "d7daf818-5a84-4cbe-9614-1d7abc1a5b8e"
CODEX_SESSION = "01a22aae-c25d-7970-ab47-7fe5930c9580"
CODEX_DAY = "2026/11/30"


def line(record: object) -> bytes:
    """One line of a transcript."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def prompt(text: object, prompt_id: str = "p-1", **more: object) -> bytes:
    """What a person typed to Claude Code."""
    return line(
        {
            "isSidechain": False,
            "promptId": prompt_id,
            "type": "user",
            "message": {"role": "user", "content": text},
            **more,
        }
    )


def tool_use(tool_use_id: str) -> bytes:
    """Claude's call of a tool."""
    part = {"type": "tool_use", "id": tool_use_id, "name": "mcp__keymem__remember", "input": {}}
    return line({"type": "assistant", "message": {"role": "assistant", "content": [part]}})


def tool_result(tool_use_id: str, prompt_id: str = "p-1", text: str = "done") -> bytes:
    """The result of a tool, which Claude Code writes as a line of the user."""
    return prompt([{"tool_use_id": tool_use_id, "type": "tool_result", "content": text}], prompt_id)


def codex_message(text: str, role: str = "user", kinds: Iterable[str] | None = ("user.text",)) -> bytes:
    """A message in Codex's transcript; without ``kinds`` as older versions write it."""
    payload: dict[str, object] = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    if kinds is not None:
        payload["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": list(kinds)}
    return line({"type": "response_item", "payload": payload})


def codex_turn(turn_id: str) -> bytes:
    """The line with which a turn of Codex begins."""
    return line({"type": "turn_context", "payload": {"turn_id": turn_id}})


def claude_file(home: Path, *lines: bytes, folder: str = "-home-me-app", session: str = CLAUDE_SESSION) -> Path:
    """A transcript of Claude Code below ``home``."""
    path = home / "projects" / folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def codex_file(home: Path, *lines: bytes, day: str = CODEX_DAY, session: str = CODEX_SESSION) -> Path:
    """A transcript of Codex below ``home``."""
    path = home / "sessions" / day / f"rollout-{day.replace('/', '-')}T04-20-25-{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path
