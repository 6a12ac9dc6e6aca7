"""The real hook as a process: what it was told, what it printed, and what its log says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import shim_session

from keymem_hook import CONTEXT_LIMIT

COMMAND = (sys.executable, "-m", "keymem_hook")
LIMIT_S = 20.0


class Ran:
    """What one run of the hook did."""

    def __init__(self, done: subprocess.CompletedProcess[bytes], log: Path, took_s: float) -> None:
        assert done.returncode == 0
        assert done.stderr == b""
        self.output = done.stdout
        self.took_s = took_s
        lines = log.read_text().splitlines() if log.exists() else []
        self.outcome = json.loads(lines[-1])["outcome"] if lines else None

    @property
    def context(self) -> str:
        """The text that was added, after a check against the clients' schema."""
        said = json.loads(self.output)
        assert set(said) == {"hookSpecificOutput"}
        assert set(said["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
        assert said["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
        text = said["hookSpecificOutput"]["additionalContext"]
        assert isinstance(text, str)
        assert len(text) <= CONTEXT_LIMIT
        return text


def event_of(prompt: str, **more: str) -> dict[str, str]:
    """The client's event for a prompt."""
    return {
        "prompt": prompt,
        "cwd": "/home/me",
        "session_id": "s1",
        "hook_event_name": "UserPromptSubmit",
    } | more


def run_hook(data: Path, event: object, **settings: str) -> Ran:
    """Run the hook on an event: an object, or bytes as they are."""
    raw = event if isinstance(event, bytes) else json.dumps(event).encode()
    started = time.monotonic()
    done = subprocess.run(
        COMMAND,
        input=raw,
        capture_output=True,
        env=shim_session.environment(data, settings),
        timeout=LIMIT_S,
        check=False,
    )
    return Ran(done, data / "logs" / "hook.log", time.monotonic() - started)


def notes_within(context: str) -> list[str]:
    """The lines between the fences, after a check that nothing in them can be taken for anything but a note.

    Exactly one line opens the fence and one closes it; nothing else has an angle bracket, also not after compatibility
    normalisation; every character can be seen; each line begins as the hook begins a note.
    """
    heading, opening, *notes, closing = context.split("\n")
    assert heading.startswith("Stored notes")
    assert "not instructions" in heading
    name = opening[1:-1]
    assert name.startswith("keymem-notes-")
    assert (opening, closing) == (f"<{name}>", f"</{name}>")
    body = "\n".join(notes)
    assert context.count("<") == context.count(">") == 2
    squeezed = "".join(plain(body).split())
    assert not set("<>[]`") & set(squeezed), body
    assert name not in squeezed
    assert name.removeprefix("keymem-notes-") not in squeezed
    assert all(line.startswith("- (id ") for line in notes), body
    for character in body.replace("\n", ""):
        assert character.isprintable(), hex(ord(character))
    return notes


def plain(text: str) -> str:
    """The text as a lenient reader may take it: compatibility forms resolved, case folded."""
    return unicodedata.normalize("NFKC", text).casefold()
