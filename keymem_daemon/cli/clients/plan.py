"""What installing into a client, or taking out of it, would do to its files: worked out whole before the first one is touched.

Ours is an MCP entry that runs the shim and a handler that runs the hook, whoever wrote them. What else a person added to an
entry of ours stays in it. An entry of our name that runs something else is not ours and is not touched.

Taking out gives back the very bytes that installing met: those of a copy beside the file, when putting the same into the copy makes what
the file now holds, or no file where installing made it. Otherwise, as after somebody's change, ours is cut out of the text that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from keymem_daemon.cli.clients.entry import SERVER, Commands, is_our_program, our_handlers, same_or
from keymem_daemon.cli.clients.formats import Refused, found, with_value, without
from keymem_daemon.cli.clients.table import Client, Entry, Hook, Machine

__all__ = ["Change", "Foreign", "Plan", "Unreadable", "installation", "plugin_of", "removal"]

Outcome = Literal["added", "updated", "unchanged", "removed", "absent"]


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one piece: the MCP server or the hook."""

    piece: Entry | Hook
    outcome: Outcome

    @property
    def what(self) -> str:
        """The piece in words."""
        return "MCP server" if isinstance(self.piece, Entry) else "prompt hook"

    @property
    def snippet(self) -> str:
        """The piece as a person would paste it."""
        place = self.piece.place if isinstance(self.piece, Entry) else (*self.piece.place, 0)
        return self.piece.form.snippet(place, self.piece.value)


class Unreadable(Exception):
    """A file cannot be understood, or not be changed without touching the rest; ``change`` is what should have come into it."""

    def __init__(self, change: Change, reason: str) -> None:
        super().__init__(f"{change.piece.path} is left as it is: {reason}")
        self.change = change


class Foreign(Exception):
    """The file has an entry of our name that is not ours."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} has an MCP server {SERVER!r} that is not this program; it is left as it is")


@dataclass(slots=True)
class Plan:
    """The changes, and each file's text before and after (``None``: no file)."""

    changes: list[Change] = field(default_factory=list)
    before: dict[Path, str | None] = field(default_factory=dict)
    after: dict[Path, str | None] = field(default_factory=dict)

    def text(self, machine: Machine, path: Path) -> str:
        """The file's text as it will be."""
        if path not in self.before:
            self.before[path] = machine.read(path)
            self.after[path] = self.before[path] or ""
        return self.after[path] or ""

    @property
    def touched(self) -> list[Path]:
        """The files whose text changes."""
        return [path for path, text in self.after.items() if text is None or text != (self.before[path] or "")]


def plugin_of(client: Client, machine: Machine) -> str | None:
    """The plugin of ours that the client has installed, by its id."""
    if client.plugin is None:
        return None
    where = client.plugin(machine)
    installed = found(machine.meaning(where.path, where.form), where.place)
    if not isinstance(installed, Mapping):
        return None
    for name, state in installed.items():
        on = state.get("enabled", True) if isinstance(state, Mapping) else state
        if name.partition("@")[0] == SERVER and on:
            return str(name)
    return None


def installation(client: Client, machine: Machine, commands: Commands) -> Plan:
    """Everything that ``client`` needs, put where it belongs. Raises `Foreign`, `Unreadable`."""
    plan = Plan()
    for piece in client.pieces(machine, commands):
        text = plan.text(machine, piece.path)
        try:
            outcome, after = _installed(piece, text)
        except Refused as problem:
            raise Unreadable(Change(piece, "added"), str(problem)) from None
        plan.after[piece.path] = after
        plan.changes.append(Change(piece, outcome))
    return plan


def removal(client: Client, machine: Machine, commands: Commands, copies: Callable[[Path], Sequence[str]]) -> Plan:
    """What is ours taken out, from every file where it may stand; nothing else.

    ``copies`` gives the texts of the copies beside a file, the latest first. Raises `Foreign`, `Unreadable`.
    """
    plan = Plan()
    for piece in client.pieces(machine, commands):
        text = plan.text(machine, piece.path)
        try:
            outcome, after = _removed(piece, text)
        except Refused as problem:
            raise Unreadable(Change(piece, "removed"), str(problem)) from None
        plan.after[piece.path] = after
        plan.changes.append(Change(piece, outcome))
    for path in plan.touched:
        pieces = [change.piece for change in plan.changes if change.piece.path == path]
        plan.after[path] = _as_it_was(pieces, plan.before[path] or "", plan.after[path] or "", copies(path))
    return plan


def _as_it_was(pieces: Sequence[Entry | Hook], text: str, cut: str, copies: Sequence[str]) -> str | None:
    """What the file of ``pieces`` held before they came in, ``None`` for no file. ``text`` is what it holds, ``cut`` that without them."""
    form = pieces[0].form
    others = [copy for copy in copies if not _has_any(pieces, copy)]
    for at, copy in enumerate(copies):
        if _put_again(pieces, text, copy) == text:
            # A copy that has ours is of what one `install` wrote and a later one brought up to date.
            return copy if copy in others else _as_it_was(pieces, copy, cut, copies[at + 1 :])
    made_by_us = form.is_empty(cut) and (not others or _put_again(pieces, text, "") == text)
    return None if made_by_us else cut


def _put_again(pieces: Sequence[Entry | Hook], source: str, text: str) -> str | None:
    """``text`` with the pieces as they stand in ``source``, ``None`` where that cannot be."""
    try:
        meaning = pieces[0].form.meaning(source)
        for piece in pieces:
            place, value = piece.place, found(meaning, piece.place)
            if isinstance(piece, Hook):
                there = our_handlers(value)
                groups = found(piece.form.meaning(text), place)
                known = our_handlers(groups)
                value = found(value, there[0] if known else there[0][:1]) if there else None
                place = (*place, *known[0]) if known else (*place, len(_list(groups)))
            if value is not None:
                text = with_value(piece.form, text, place, value)
    except Refused:
        return None
    return text


def _has_any(pieces: Sequence[Entry | Hook], text: str) -> bool:
    try:
        meaning = pieces[0].form.meaning(text)
    except Refused:
        return False
    places = ((piece, found(meaning, piece.place)) for piece in pieces)
    return any(_is_ours(there) if isinstance(piece, Entry) else bool(our_handlers(there)) for piece, there in places)


def _installed(piece: Entry | Hook, text: str) -> tuple[Outcome, str]:
    meaning = piece.form.meaning(text)
    place, wanted = piece.place, piece.value
    if isinstance(piece, Entry):
        present = found(meaning, place)
        if present is not None and not _is_ours(present):
            raise Foreign(piece.path)
    else:
        groups = found(meaning, place)
        known = our_handlers(groups)
        if known:
            place, wanted = (*place, *known[0]), piece.value["hooks"][0]
            present = found(meaning, place)
            wanted = {**wanted, "command": same_or(found(present, ("command",)), wanted["command"])}
        else:
            place, present = (*place, len(_list(groups))), None
    if present is None:
        return "added", with_value(piece.form, text, place, wanted)
    wanted = _merged(present, wanted)
    if present == wanted:
        return "unchanged", text
    return "updated", with_value(piece.form, text, place, wanted)


def _removed(piece: Entry | Hook, text: str) -> tuple[Outcome, str]:
    if isinstance(piece, Entry):
        present = found(piece.form.meaning(text), piece.place)
        if present is None:
            return "absent", text
        if not _is_ours(present):
            raise Foreign(piece.path)
        return "removed", without(piece.form, text, piece.place)
    outcome: Outcome = "absent"
    while known := our_handlers(found(piece.form.meaning(text), piece.place)):
        group = (*piece.place, known[0][0])
        alone = len(_list(found(piece.form.meaning(text), (*group, "hooks")))) == 1
        text = without(piece.form, text, group if alone else (*piece.place, *known[0]))
        outcome = "removed"
    return outcome, text


def _is_ours(entry: object) -> bool:
    return isinstance(entry, Mapping) and is_our_program(entry.get("command"))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _merged(present: object, wanted: dict[str, Any]) -> dict[str, Any]:
    """An entry of ours with what a person added to it: other members, other variables."""
    merged: dict[str, Any] = dict(present) if isinstance(present, Mapping) else {}
    for name, value in wanted.items():
        known = merged.get(name)
        match value:
            case dict():
                merged[name] = {**known, **value} if isinstance(known, Mapping) else value
            case list() if name == "env_vars":
                merged[name] = value + [variable for variable in _list(known) if variable not in value]
            case bool() if known is not None:
                pass
            case _:
                merged[name] = value
    return merged
