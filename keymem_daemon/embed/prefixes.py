"""A read-only table from strings to numbers in two arrays: a sixth of what a dictionary of short strings takes.

The encoder's tokenizer asks one dictionary of 250,000 prefixes for a number at every step. Here the strings themselves are not
kept: an entry is found by 64 bits that stand for its string, so that a string which is not there is taken for one that is once
in about 10^14 questions.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping


def _sign(text: str) -> int:
    # Python hashes the bytes of a string whatever their width: "ir" and "物" have the same ones, and not the same length.
    return hash(text) ^ len(text) or 1


class PrefixTable:
    """Open addressing with linear probing, at most half full."""

    __slots__ = ("_mask", "_signs", "_values")

    def __init__(self, entries: Mapping[str, int]) -> None:
        """``entries`` with values of 32 bits."""
        size = 2
        while size < 2 * len(entries):
            size *= 2
        self._mask = size - 1
        self._signs = array("q", bytes(8 * size))
        self._values = array("i", bytes(4 * size))
        for text, value in entries.items():
            sign = _sign(text)
            place = sign & self._mask
            while self._signs[place]:
                place = (place + 1) & self._mask
            self._signs[place] = sign
            self._values[place] = value

    def get(self, text: str) -> int | None:
        """The value of ``text``, or ``None``."""
        sign = hash(text) ^ len(text) or 1  # as `_sign`: a call of its own would cost as much as the rest
        signs = self._signs
        place = sign & self._mask
        while (found := signs[place]) != sign:
            if not found:
                return None
            place = (place + 1) & self._mask
        return self._values[place]
