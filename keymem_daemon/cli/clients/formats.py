"""The two languages of configuration files, behind one face: what a text means, and that text with one value set or taken out.

Each change is checked by meaning: the new text must say what the old one said but for the change, else it is refused.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol, assert_never

from keymem_daemon.cli.clients import json_text
from keymem_daemon.cli.clients.json_text import Step

__all__ = ["Format", "Json", "Refused", "Toml", "found", "with_value", "without"]


class Refused(ValueError):
    """The text cannot be read, or not be changed without touching the rest of it; says why."""


class Format(Protocol):
    """A language."""

    def meaning(self, text: str) -> dict[str, Any]:
        """What the text says. Raises `Refused`."""

    def with_value(self, text: str, path: Sequence[Step], value: object) -> str:
        """The text in which ``path`` leads to ``value``."""

    def without(self, text: str, path: Sequence[Step]) -> str:
        """The text without what ``path`` leads to."""

    def snippet(self, path: Sequence[Step], value: object) -> str:
        """What a person would paste."""


class Json:
    """JSON, with comments if it has any."""

    def meaning(self, text: str) -> dict[str, Any]:
        try:
            value = json_text.meaning(text)
        except json_text.NotJson as problem:
            raise Refused(str(problem)) from None
        if not isinstance(value, dict):
            raise Refused("it is not a JSON object")
        return value

    def with_value(self, text: str, path: Sequence[Step], value: object) -> str:
        return json_text.with_value(text, path, value)

    def without(self, text: str, path: Sequence[Step]) -> str:
        return json_text.without(text, path)

    def snippet(self, path: Sequence[Step], value: object) -> str:
        return json.dumps(_nested(path, value), ensure_ascii=False, indent=2) + "\n"


class Toml:
    """TOML."""

    def meaning(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise Refused(f"it is not TOML: {problem}") from None

    def with_value(self, text: str, path: Sequence[Step], value: object) -> str:
        import tomlkit  # noqa: PLC0415 - only one client needs it

        document = tomlkit.parse(text)
        place: Any = document
        for step in path[:-2]:
            if step not in place:
                place[step] = tomlkit.table(is_super_table=True)
            place = place[step]
        last_but_one, last = path[-2:]
        match last:
            case int():
                if last_but_one not in place:
                    place[last_but_one] = tomlkit.aot()
                items = place[last_but_one]
                if last < len(items):
                    _update(items, last, value)
                else:
                    items.append(_spaced(value))
            case str():
                if last_but_one not in place:
                    place[last_but_one] = tomlkit.table(is_super_table=True)
                _update(place[last_but_one], last, value)
            case _:
                assert_never(last)
        return tomlkit.dumps(document)

    def without(self, text: str, path: Sequence[Step]) -> str:
        import tomlkit  # noqa: PLC0415 - as above

        document = tomlkit.parse(text)
        way: list[Any] = [document]
        for step in path[:-1]:
            way.append(way[-1][step])
        del way[-1][path[-1]]
        for depth in range(len(path) - 1, 0, -1):
            if len(way[depth]):
                break
            del way[depth - 1][path[depth - 1]]
        return tomlkit.dumps(document)

    def snippet(self, path: Sequence[Step], value: object) -> str:
        return self.with_value("", path, value)


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
            raise Refused(f"{_named(path)} has no room: something else stands on the way")
    return _checked(form, lambda: form.with_value(text, path, value), expected)


def without(form: Format, text: str, path: Sequence[Step]) -> str:
    """``text`` without what ``path`` leads to, and without the tables and lists that this left empty. Raises `Refused`."""
    expected: Any = copy.deepcopy(form.meaning(text))
    depth = len(path) - 1
    while depth > 0 and len(_sized(found(expected, path[:depth]))) == 1:
        depth -= 1
    place: Any = found(expected, path[:depth])
    del place[path[depth]]
    return _checked(form, lambda: form.without(text, path), expected)


def _checked(form: Format, change: Any, expected: object) -> str:  # noqa: ANN401 - a callable of no arguments
    try:
        text = change()
        same = form.meaning(text) == expected
    except (Refused, ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise Refused(f"it cannot be changed without touching the rest ({type(problem).__name__})") from problem
    if not same:
        raise Refused("it cannot be changed without touching the rest")
    assert isinstance(text, str)  # noqa: S101 - what a change returns
    return text


def _sized(value: object) -> dict[str, Any] | list[Any]:
    return value if isinstance(value, dict | list) else []


def _nested(path: Sequence[Step], value: object) -> object:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _named(path: Sequence[Step]) -> str:
    return ".".join(str(step) for step in path)


def _update(place: Any, name: Step, value: object) -> None:  # noqa: ANN401 - tomlkit's tables have many types
    """Set a table member by member, so that what is equal keeps its place and its comments."""
    table = found(place, (name,))
    if not (isinstance(value, dict) and isinstance(table, dict)):
        place[name] = _spaced(value) if isinstance(value, dict) else _plain(value)
        return
    for member in [member for member in table if member not in value]:
        del table[member]
    for member, wanted in value.items():
        if member not in table or table[member] != wanted:
            _update(table, member, wanted)


def _spaced(value: object) -> Any:  # noqa: ANN401 - as above
    """A new table with an empty line after it."""
    import tomlkit  # noqa: PLC0415 - as above

    table = _table(value)
    table.add(tomlkit.nl())
    return table


def _table(value: object) -> Any:  # noqa: ANN401 - as above
    import tomlkit  # noqa: PLC0415 - as above

    table = tomlkit.table()
    assert isinstance(value, dict)  # noqa: S101 - only tables are written as tables
    for name, member in value.items():
        if isinstance(member, list) and member and all(isinstance(item, dict) for item in member):
            tables = tomlkit.aot()
            for item in member:
                tables.append(_table(item))
            table[name] = tables
        else:
            table[name] = _plain(member)
    return table


def _plain(value: object) -> Any:  # noqa: ANN401 - as above
    """A value for one line, or a list of a line an item where it is long."""
    import tomlkit  # noqa: PLC0415 - as above

    match value:
        case dict():
            inline = tomlkit.inline_table()
            inline.update(value)
            return inline
        case list() if len(value) > 3:
            array = tomlkit.array()
            array.extend(value)
            return array.multiline(multiline=True)
        case _:
            return tomlkit.item(value)
