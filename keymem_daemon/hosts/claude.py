"""Claude Code's transcripts: where a session's file is, which of its lines a person wrote, and which prompt a call belongs to.

A file is `projects/FOLDER/SESSION.jsonl`; the folder is named after the directory in which the session began. A prose turn is a line
of type `user` that carries text of the person: no tool result, no meta line or summary, nothing of a side chain, and not the traces that
commands of the client (`/model`, `!ls`) and interruptions leave. What hooks add stands in lines of another type. A prompt and all
tool results that follow from it carry one `promptId`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from keymem_daemon.hosts.lines import line_around, record_of
from keymem_daemon.hosts.rooted import Parts, folder, named, regular_file, subfolders
from keymem_daemon.ports import HostCall

__all__ = ["NEEDLE", "found", "is_prose", "prompt_in", "recent"]

NEEDLE: Final = b'"user"'
"""In every line that can be a prose turn."""

_PROJECTS: Final = "projects"
_FOLDERS: Final = 5_000
_DEEPER: Final = 500
_FOLDER_NAME_CHARS: Final = 200
_NOT_PROSE: Final = ("<command-", "<local-command-", "<bash-", "<task-notification>", "[Request interrupted by user")
_NOT_A_TURN: Final = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
_PROMPT: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def found(root: Path, session: str, cwd: str | None) -> Parts | None:
    """Where the transcript of ``session`` is below ``root``, ``None`` if nowhere. Raises `OSError` when there are none at all.

    The folder of ``cwd`` is looked at first. When several have the file (a session that went on elsewhere) the one written last is meant.
    """
    name = f"{session}.jsonl"
    with folder(root, (_PROJECTS,)) as projects:
        folders = subfolders(projects, _FOLDERS)
        here = _folder_of(cwd)
        if here in folders and regular_file(projects, f"{here}/{name}") is not None:
            return (_PROJECTS, here, name)
        written = [(status.st_mtime_ns, at) for at in folders if (status := regular_file(projects, f"{at}/{name}"))]
        if written:
            return (_PROJECTS, max(written)[1], name)
    return _deeper(root, folders, name)


def _deeper(root: Path, folders: Iterable[str], name: str) -> Parts | None:
    """The file two levels down, or beside the folders, where clients of other versions may put it."""
    looked = 0
    with folder(root, (_PROJECTS,)) as projects:
        if regular_file(projects, name) is not None:
            return (_PROJECTS, name)
    for outer in folders:
        with folder(root, (_PROJECTS, outer)) as project:
            for inner in subfolders(project, _DEEPER):
                looked += 1
                if looked > _DEEPER:
                    return None
                if regular_file(project, f"{inner}/{name}") is not None:
                    return (_PROJECTS, outer, inner, name)
    return None


def recent(root: Path, cwd: str | None) -> Iterator[tuple[float, Parts]]:
    """When the transcripts were last written (epoch seconds) of the folder of ``cwd``, or of all when it is not known."""
    with folder(root, (_PROJECTS,)) as projects:
        folders = subfolders(projects, _FOLDERS)
    here = _folder_of(cwd)
    looked = 0
    for at in [here] if here in folders else folders:
        with folder(root, (_PROJECTS, at)) as project:
            for name in named(project, "", ".jsonl", _FOLDERS):
                looked += 1
                if looked > _FOLDERS:
                    return
                if status := regular_file(project, name):
                    yield status.st_mtime, (_PROJECTS, at, name)


def is_prose(line: bytes) -> bool:
    """Whether ``line`` is a turn that a person wrote."""
    if b'"tool_result"' in line:
        return False
    record = record_of(line)
    if record is None or record.get("type") != "user" or any(record.get(name) for name in _NOT_A_TURN):
        return False
    message = record.get("message")
    return isinstance(message, dict) and any(
        text.strip() and not text.lstrip().startswith(_NOT_PROSE) for text in _texts(message.get("content"))
    )


def prompt_in(tails: Iterable[bytes], call: HostCall) -> tuple[str | None, bool]:
    """The id of the prompt that led to ``call``, from ever longer ends of the transcript, and whether they reach as far as the call.

    Lines are written about a tenth of a second late. The line of the call shows that all is there; so does a last prompt that is the
    one the hook named. Where nothing tells what to wait for, the last prompt is meant.
    """
    last: str | None = None
    for data in tails:
        at = data.rfind(f'"{call.tool_use_id}"'.encode()) if call.tool_use_id else -1
        if at >= 0:
            start, line = line_around(data, at)
            prompt = _prompt_before(data, start + len(line))
            if prompt is not None:
                return prompt, True
        last = last or _prompt_before(data, len(data))
        if last is not None and last == call.hook_prompt:
            return last, True
    return last, not call.tool_use_id and not call.hook_prompt


def _prompt_before(data: bytes, end: int) -> str | None:
    at = data.rfind(b'"promptId"', 0, end)
    while at >= 0:
        start, line = line_around(data, at)
        record = record_of(line)
        if record is not None and not record.get("isSidechain"):
            prompt = record.get("promptId")
            if isinstance(prompt, str) and _PROMPT.fullmatch(prompt):
                return prompt
        at = data.rfind(b'"promptId"', 0, start)
    return None


def _texts(content: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else ()
    return [str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") == "text"]


def _folder_of(cwd: str | None) -> str | None:
    """The folder that a session begun in ``cwd`` has, unless its name would be longer than the client lets it be."""
    name = re.sub(r"[^A-Za-z0-9]", "-", cwd or "")
    return name if 0 < len(name) <= _FOLDER_NAME_CHARS else None
