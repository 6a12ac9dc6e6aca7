"""What people see: clean text, on a terminal wrapped to it and in colour; and JSON for programs.

Stored text is data: control characters in it never reach a terminal. Widths are columns, in which a Hangul syllable or an
ideograph takes two.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping

from keymem_shim.identity import daemon_environment

__all__ = ["bold", "clean", "columns", "dim", "green", "note", "print_json", "red", "say", "wrapped", "yellow"]

LONGEST_LINE = 100
ELSEWHERE = 100_000
"""Wider than any memory: what is piped on is not wrapped."""
NARROWEST = 20


def say(*lines: str) -> None:
    """Print lines to stdout."""
    for line in lines:
        print(line)


def note(line: str) -> None:
    """Tell a person at a terminal what goes on; nothing where stderr is not one."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON document."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def clean(text: str, *, lines: bool = False) -> str:
    """``text`` without what a terminal would obey; ``lines`` keeps line breaks, else they become spaces."""
    shown = []
    for character in text:
        if character.isprintable():
            shown.append(character)
        elif character == "\n" and lines:
            shown.append("\n")
        else:
            shown.append(" " if character.isspace() else "\N{REPLACEMENT CHARACTER}")
    return "".join(shown)


def columns() -> int:
    """The width to wrap to."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return ELSEWHERE
    return min(max(found, NARROWEST), LONGEST_LINE) if found else ELSEWHERE


def wrapped(text: str, indent: str = "") -> list[str]:
    """``text`` (its line breaks kept) in lines no wider than the terminal, each beginning with ``indent``."""
    room = max(NARROWEST, columns() - len(indent))
    return [indent + line for paragraph in clean(text, lines=True).split("\n") for line in _filled(paragraph, room)]


def _filled(paragraph: str, room: int) -> Iterable[str]:
    if _width(paragraph) <= room:
        yield paragraph
        return
    line, used = "", 0
    for word in paragraph.split():
        rest, width = word, _width(word)
        if line and used + 1 + width <= room:
            line, used = f"{line} {rest}", used + 1 + width
            continue
        if line:
            yield line
        while width > room:
            head = _head(rest, room)
            yield head
            rest = rest[len(head) :]
            width = _width(rest)
        line, used = rest, width
    if line:
        yield line


def _head(word: str, room: int) -> str:
    used = 0
    for position, character in enumerate(word):
        used += _width(character)
        if used > room:
            return word[: max(1, position)]
    return word


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415 - only other scripts need the table

    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def bold(text: str) -> str:
    """Prominent."""
    return _styled(text, "1")


def dim(text: str) -> str:
    """Secondary."""
    return _styled(text, "2")


def green(text: str) -> str:
    """Well."""
    return _styled(text, "32")


def yellow(text: str) -> str:
    """Not quite well."""
    return _styled(text, "33")


def red(text: str) -> str:
    """Not well."""
    return _styled(text, "31")


def _styled(text: str, code: str) -> str:
    if not sys.stdout.isatty():
        return text
    environment = daemon_environment()
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return text
    return f"\033[{code}m{text}\033[0m"
