"""Which recorded responses name an id or a text, found without reading them.

In memory only, made when the database is opened and kept up as responses are recorded: on disk it would cost every write
some pages more, and this costs 16 bytes a name. What is kept is a hash of each piece of a response between two quotation marks and
of each identifier, so what is found may be too much, never too little: whoever asks looks at the response itself.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

_IDENTIFIER: Final = re.compile(r"[0-9a-f]{12}")
_IDENTIFIERS: Final = re.compile(r"[0-9a-f]{12,}")
_SHELVES: Final = 1024
"""A name is looked for among those whose hashes end alike: a few hundred where there are 100,000."""


class Answers:
    """Recorded responses by what they name. Responses are numbered from 1, ascending."""

    def __init__(self, recorded: Iterable[tuple[int, str]]) -> None:
        self._shelves = [_Shelf() for _ in range(_SHELVES)]
        self.last = 0
        for number, response in recorded:
            self.add(number, response)

    def add(self, number: int, response: str) -> None:
        """Take in a response (JSON), whose number is greater than ``last``, the highest there is (0: none)."""
        for name in {*response.split('"'), *_identifiers(response)}:
            hashed = hash(name)
            shelf = self._shelves[hashed % _SHELVES]
            shelf.names.append(hashed)
            shelf.numbers.append(number)
        self.last = number

    def keep(self, first: int, last: int) -> None:
        """Drop the responses of numbers below ``first`` and above ``last``: they are not recorded, or no more."""
        for shelf in self._shelves:
            shelf.keep(first, last)
        self.last = last

    def naming(self, ids: Iterable[str], strings: Iterable[str]) -> list[int] | None:
        """Numbers of responses in which one of these may be, ascending: identifiers, and texts as JSON strings.

        ``None`` when one of ``ids`` is no identifier as keymem gives them, and so only the responses themselves can tell.
        """
        names = [*ids]
        if not all(map(_IDENTIFIER.fullmatch, names)):
            return None
        names.extend(string.split('"')[1] for string in strings)
        wanted = [hash(name) for name in names]
        return sorted({number for name in wanted for number in self._shelves[name % _SHELVES].numbers_of(name)})


def _identifiers(response: str) -> list[str]:
    runs = _IDENTIFIERS.findall(response)
    return [run[start : start + 12] for run in runs for start in range(len(run) - 11)]


class _Shelf:
    """Names, as hashes, and the number of the response each is in."""

    __slots__ = ("names", "numbers")

    def __init__(self) -> None:
        self.names = array("q")
        self.numbers = array("q")

    def keep(self, first: int, last: int) -> None:
        start, end = bisect_left(self.numbers, first), bisect_left(self.numbers, last + 1)
        for held in (self.names, self.numbers):
            del held[end:]
            del held[:start]

    def numbers_of(self, name: int) -> list[int]:
        return [number for held, number in zip(self.names, self.numbers, strict=True) if held == name]
