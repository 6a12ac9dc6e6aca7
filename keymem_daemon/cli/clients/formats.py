"""The two languages of configuration files, behind one face: what a text means, and that text with one value set or taken out.

Each change is checked by meaning: the new text must say what the old one said but for the change, else it is refused. A byte order
mark stays, and lines that come in end as the lines of the file do.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, Protocol

from keymem_daemon.cli.clients import json_text
from keymem_daemon.cli.clients.json_text import Step

__all__ = ["Format", "Json", "Refused", "Toml", "found", "with_value", "without"]

MARK: Final = "\ufeff"
Edit = Callable[[str], str]


class Refused(ValueError):
    """The text cannot be read, or not be changed without touching the rest of it; says why."""


class Format(Protocol):
    """A language. The edits take and give texts without a byte order mark; the first whose result means the right thing counts."""

    def meaning(self, text: str) -> dict[str, Any]:
        """What the text says. Raises `Refused`."""

    def putting(self, path: Sequence[Step], value: object) -> Sequence[Edit]:
        """Ways to make ``path`` lead to ``value``."""

    def taking(self, path: Sequence[Step]) -> Sequence[Edit]:
        """Ways to take out what ``path`` leads to."""

    def snippet(self, path: Sequence[Step], value: object) -> str:
        """What a person would paste."""

    def is_empty(self, text: str) -> bool:
        """Whether nothing is written there, not even a remark."""


class Json:
    """JSON, with comments if it has any."""

    def meaning(self, text: str) -> dict[str, Any]:
        try:
            value = json_text.meaning(text.removeprefix(MARK))
        except json_text.NotJson as problem:
            raise Refused(str(problem)) from None
        if not isinstance(value, dict):
            raise Refused("it is not a JSON object")
        return value

    def putting(self, path: Sequence[Step], value: object) -> Sequence[Edit]:
        return (lambda text: json_text.with_value(text, path, value),)

    def taking(self, path: Sequence[Step]) -> Sequence[Edit]:
        return (lambda text: json_text.without(text, path),)

    def snippet(self, path: Sequence[Step], value: object) -> str:
        return json.dumps(_nested(path, value), ensure_ascii=False, indent=2) + "\n"

    def is_empty(self, text: str) -> bool:
        return text.removeprefix(MARK).strip() in ("", "{}")


class Toml:
    """TOML."""

    def meaning(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text.removeprefix(MARK))
        except tomllib.TOMLDecodeError as problem:
            raise Refused(f"it is not TOML: {problem}") from None

    def putting(self, path: Sequence[Step], value: object) -> Sequence[Edit]:
        from keymem_daemon.cli.clients import toml_text  # noqa: PLC0415 - only one client needs the library

        # A table that dotted keys made cannot be written anew, but more tables below it can stand at the end.
        edits = (toml_text.with_value, toml_text.with_tables_at_end)
        return [_with_own_line_ends(partial(edit, path=path, value=value)) for edit in edits]

    def taking(self, path: Sequence[Step]) -> Sequence[Edit]:
        from keymem_daemon.cli.clients import toml_text  # noqa: PLC0415 - as above

        return (_with_own_line_ends(partial(toml_text.without, path=path)),)

    def snippet(self, path: Sequence[Step], value: object) -> str:
        from keymem_daemon.cli.clients import toml_text  # noqa: PLC0415 - as above

        return toml_text.with_value("", path, value)

    def is_empty(self, text: str) -> bool:
        return not text.removeprefix(MARK).strip()


def found(meaning: object, path: Sequence[Step]) -> object:
    """What ``path`` leads to, ``None`` when to nothing."""
    for step in path:
        match meaning, step:
            case dict(), str() if step in meaning:
                meaning = meaning[step]
            case list(), int() if step < len(meaning):
                meaning = meaning[step]
            case _:
                return None
    return meaning


def with_value(form: Format, text: str, path: Sequence[Step], value: object) -> str:
    """``text`` in which ``path`` leads to ``value`` and all else is as before. Raises `Refused`."""
    expected: Any = copy.deepcopy(form.meaning(text))
    place = expected
    for step, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(place, list) and step == len(place):
            place.append(empty)
        elif isinstance(place, dict):
            place.setdefault(step, empty)
        place = found(place, (step,))
    match place, path[-1]:
        case list(), int() as last if last == len(place):
            place.append(value)
        case (list(), int()) | (dict(), str()):
            place[path[-1]] = value
        case _:
            raise Refused(_no_room(form.meaning(text), path))
    return _edited(form, text, form.putting(path, value), expected, path)


def without(form: Format, text: str, path: Sequence[Step]) -> str:
    """``text`` without what ``path`` leads to, and without the tables and lists that this left empty. Raises `Refused`."""
    expected: Any = copy.deepcopy(form.meaning(text))
    depth = len(path) - 1
    while depth > 0 and len(_sized(found(expected, path[:depth]))) == 1:
        depth -= 1
    place: Any = found(expected, path[:depth])
    del place[path[depth]]
    return _edited(form, text, form.taking(path), expected, path)


def _edited(form: Format, text: str, edits: Sequence[Edit], expected: object, path: Sequence[Step]) -> str:
    """What the first of ``edits`` makes of the text whose result means what is ``expected``. Raises `Refused`."""
    mark = MARK if text.startswith(MARK) else ""
    for edit in edits:
        try:
            after = edit(text.removeprefix(MARK))
            if form.meaning(after) == expected:
                return mark + after
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    around = [str(step) for step in path if isinstance(step, str)][:-1]
    raise Refused(
        f"{'.'.join(around)!r} in it is written in a way that cannot be changed without touching the rest; "
        "write it as a table of its own"
    )


def _with_own_line_ends(edit: Edit) -> Edit:
    """``edit`` for a text all of whose lines may end in CR and LF."""

    def edited(text: str) -> str:
        ends = text.count("\r\n")
        if not ends or ends != text.count("\n"):
            return edit(text)
        return edit(text.replace("\r\n", "\n")).replace("\n", "\r\n")

    return edited


def _sized(value: object) -> dict[str, Any] | list[Any]:
    return value if isinstance(value, dict | list) else []


def _nested(path: Sequence[Step], value: object) -> object:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _no_room(meaning: object, path: Sequence[Step]) -> str:
    """What stands in the way, and what should stand there."""
    depth = next(depth for depth in range(1, len(path)) if not _holds(found(meaning, path[:depth]), path[depth]))
    named = ".".join(str(step) for step in path[:depth])
    return f"{named!r} is no {'list' if isinstance(path[depth], int) else 'table'}; make it one, or remove it"


def _holds(value: object, step: Step) -> bool:
    return isinstance(value, list if isinstance(step, int) else dict)
