"""TOML as people keep it: one value put in, replaced or taken out, in the form that stands there: tables, or values between braces.

Whoever calls checks the result by its meaning. A path is a tuple of names and list positions; lines end in LF.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable

from keymem_daemon.cli.clients.json_text import Step

__all__ = ["with_tables_at_end", "with_value", "without"]


def with_value(text: str, path: Sequence[Step], value: object) -> str:
    """``text`` in which ``path`` leads to ``value``. Raises `ValueError`, `LookupError`, `TypeError`."""
    document = tomlkit.parse(text)
    place: Any = document
    try:
        for step, following in pairwise(path):
            if isinstance(step, str) and step not in place:
                place[step] = _empty(following, inline=isinstance(place, InlineTable))
            place = place[step]
        if isinstance(path[-1], int) and path[-1] == len(place):
            place.append(_inline(value) if isinstance(place, Array) else _spaced(value))
        else:
            _update(place, path[-1], value)
    except TOMLKitError as problem:
        raise ValueError(str(problem)) from problem
    return tomlkit.dumps(document)


def with_tables_at_end(text: str, path: Sequence[Step], value: object) -> str:
    """``text`` and after it the tables that make ``path`` lead to ``value``."""
    between = "" if not text or text.endswith("\n") else "\n"
    return text + between + with_value("", [0 if isinstance(step, int) else step for step in path], value)


def without(text: str, path: Sequence[Step]) -> str:
    """``text`` without what ``path`` leads to, and without the tables and lists that this left empty. Raises as `with_value` does."""
    document = tomlkit.parse(text)
    way: list[Any] = [document]
    try:
        for step in path[:-1]:
            way.append(way[-1][step])
        del way[-1][path[-1]]
        for depth in range(len(path) - 1, 0, -1):
            if len(way[depth]):
                break
            del way[depth - 1][path[depth - 1]]
    except TOMLKitError as problem:
        raise ValueError(str(problem)) from problem
    return tomlkit.dumps(document)


def _empty(following: Step, *, inline: bool) -> Any:  # noqa: ANN401 - tomlkit's tables have many types
    """What is to hold the ``following`` step: a list or a table."""
    if isinstance(following, int):
        return tomlkit.array() if inline else tomlkit.aot()
    return tomlkit.inline_table() if inline else tomlkit.table(is_super_table=True)


def _update(place: Any, name: Step, value: object) -> None:  # noqa: ANN401 - as above
    """Set a table member by member, so that what is equal keeps its place and its comments."""
    table = place[name] if isinstance(name, int) or name in place else None
    if not (isinstance(value, dict) and isinstance(table, dict)):
        inline = isinstance(place, InlineTable | Array)
        place[name] = _inline(value) if inline else _spaced(value) if isinstance(value, dict) else _plain(value)
        return
    for member in [member for member in table if member not in value]:
        del table[member]
    for member, wanted in value.items():
        if member not in table or table[member] != wanted:
            _update(table, member, wanted)


def _spaced(value: object) -> Any:  # noqa: ANN401 - as above
    """A new table with an empty line after it."""
    table = _table(value)
    table.add(tomlkit.nl())
    return table


def _table(value: object) -> Any:  # noqa: ANN401 - as above
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
    if isinstance(value, list) and len(value) > 3:
        array = tomlkit.array()
        array.extend(value)
        return array.multiline(multiline=True)
    return _inline(value)


def _inline(value: object) -> Any:  # noqa: ANN401 - as above
    """A value for one line."""
    match value:
        case dict():
            inline = tomlkit.inline_table()
            for name, member in value.items():
                inline[name] = _inline(member)
            return inline
        case list():
            array = tomlkit.array()
            for item in value:
                array.append(_inline(item))
            return array
        case _:
            return tomlkit.item(value)
