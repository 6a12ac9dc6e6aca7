"""JSON as people keep it: one member or item put in, replaced or taken out, and every other character left where it is.

Comments and trailing commas are read as VS Code and opencode read them. Only the text of the change is written anew; so
the order, the indentation, the comments and the spelling of everything else survive. Whoever calls checks the result by its meaning.

A path is a tuple of member names and item positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["NotJson", "Step", "meaning", "with_value", "without"]

Step = str | int

BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
INDENT: Final = re.compile(r"\n([ \t]+)\S")
DEEPEST: Final = 200


class NotJson(ValueError):
    """The text is not JSON, not even with comments and trailing commas; says where."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(f"line {text.count(chr(10), 0, at) + 1} is not JSON")


@dataclass(slots=True)
class _Node:
    """A value at ``text[start:end]``; ``parts`` are the members or items of an object or an array."""

    start: int
    end: int = 0
    value: Any = None
    parts: list[_Part] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """A member or an item, from ``start`` (that of its name) on; ``comma`` is where the comma after it stands, if one does."""

    step: Step
    start: int
    node: _Node
    comma: int | None = None


def meaning(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value that ``text`` stands for; an empty text stands for an empty object. Raises `NotJson`."""
    return _parsed(text).value if text.strip() else {}


def with_value(text: str, path: Sequence[Step], value: object) -> str:
    """``text`` in which ``path`` leads to ``value``; objects on the way are made, and an item position just past the end appends.

    Raises `NotJson`, and `KeyError` when something on the way is neither object nor array.
    """
    if not text.strip():
        text = "{}" + _line_end(text)
    node = _parsed(text)
    for depth, step in enumerate(path):
        if not isinstance(node.value, dict | list):
            raise KeyError(step)
        part = _part(node, step)
        if part is None:
            return _inserted(text, node, step, _nested(path[depth + 1 :], value))
        node = part.node
    return text[: node.start] + _written(text, node.start, value) + text[node.end :]


def without(text: str, path: Sequence[Step]) -> str:
    """``text`` without what ``path`` leads to, and without the objects and arrays that this left empty. Raises `NotJson`, `KeyError`."""
    node = _parsed(text)
    way = [node]
    for step in path:
        part = _part(node, step)
        if part is None:
            raise KeyError(step)
        node = part.node
        way.append(node)
    depth = len(path) - 1
    while depth > 0 and len(way[depth].parts) == 1:
        depth -= 1
    return _removed(text, way[depth], path[depth])


def _nested(path: Sequence[Step], value: object) -> object:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _part(node: _Node, step: Step) -> _Part | None:
    # Of members with one name the last counts, as for every reader of JSON.
    return next((part for part in reversed(node.parts) if part.step == step), None)


def _inserted(text: str, node: _Node, step: Step, value: object) -> str:
    """``text`` with a part added at the end of the object or array ``node``."""
    unit, outer = _unit(text), _line_indent(text, node.start)
    inner = outer + unit
    name = f"{json.dumps(step, ensure_ascii=False)}: " if isinstance(node.value, dict) else ""
    line_end = _line_end(text)
    made = f"{line_end}{inner}{name}{_dumped(value, unit, inner, line_end)}"
    close = node.end - 1
    end = len(text[:close].rstrip())
    tail = text[end:close] if "\n" in text[end:close] else line_end + outer
    if not node.parts:
        return text[:end] + made + tail + text[close:]
    last = node.parts[-1]
    if last.comma is not None:
        return text[:end] + made + "," + tail + text[close:]
    return text[: last.node.end] + "," + text[last.node.end : end] + made + tail + text[close:]


def _removed(text: str, node: _Node, step: Step) -> str:
    """``text`` without that part of ``node``: its own line or lines, where it has them for itself."""
    at = next(index for index, part in reversed(list(enumerate(node.parts))) if part.step == step)
    part = node.parts[at]
    if len(node.parts) == 1:
        rest = text[node.start + 1 : part.start] + text[(part.comma or part.node.end - 1) + 1 : node.end - 1]
        return text[: node.start + 1] + (rest if rest.strip() else "") + text[node.end - 1 :]
    start, end = part.start, part.node.end if part.comma is None else part.comma + 1
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    line_start = text.rfind("\n", 0, start) + 1
    alone = not text[line_start:start].strip()
    if alone and text[end : end + 1] in ("\r", "\n"):
        start = line_start
        end = text.find("\n", end) + 1
    elif alone and part.comma is None:
        start = len(text[:start].rstrip())
        end = part.node.end
    kept = text[:start] + text[end:]
    if part.comma is None and at > 0 and (comma := node.parts[at - 1].comma) is not None:
        kept = kept[:comma] + kept[comma + 1 :]
    return kept


def _written(text: str, at: int, value: object) -> str:
    line_end = _line_end(text)
    return _dumped(value, _unit(text), _line_indent(text, at), line_end)


def _dumped(value: object, unit: str, indent: str, line_end: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (line_end + indent).join(lines)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    found = INDENT.search(text)
    return found[1] if found else "  "


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _parsed(text: str) -> _Node:
    start = 1 if text.startswith("\ufeff") else 0
    node = _value(text, _blank(text, start), 0)
    end = _blank(text, node.end)
    if end != len(text):
        raise NotJson(text, end)
    return node


def _value(text: str, at: int, depth: int) -> _Node:
    first = text[at : at + 1]
    if first in ("{", "[") and depth < DEEPEST:
        return _container(text, at, depth)
    found = STRING.match(text, at) or SCALAR.match(text, at)
    if found is None:
        raise NotJson(text, at)
    try:
        return _Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise NotJson(text, at) from None


def _container(text: str, start: int, depth: int) -> _Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    node = _Node(start, value={} if is_object else [])
    at = _blank(text, start + 1)
    while text[at : at + 1] != close:
        if node.parts and node.parts[-1].comma is None:
            raise NotJson(text, at)
        begin, step = at, len(node.parts)
        name: Step = step
        if is_object:
            found = STRING.match(text, at)
            if found is None:
                raise NotJson(text, at)
            try:
                name = str(json.loads(found[0]))
            except ValueError:
                raise NotJson(text, at) from None
            at = _blank(text, found.end())
            if text[at : at + 1] != ":":
                raise NotJson(text, at)
            at = _blank(text, at + 1)
        part = _Part(name, begin, _value(text, at, depth + 1))
        node.parts.append(part)
        if is_object:
            node.value[name] = part.node.value
        else:
            node.value.append(part.node.value)
        at = _blank(text, part.node.end)
        if text[at : at + 1] == ",":
            part.comma = at
            at = _blank(text, at + 1)
    node.end = at + 1
    return node


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    assert found is not None  # noqa: S101 - the pattern matches the empty text
    return found.end()
