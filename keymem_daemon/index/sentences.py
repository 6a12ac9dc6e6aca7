"""Where a text falls into sentences: English, Korean, Japanese, Chinese, lists and plain lines.

Used to give each sentence a vector of its own, so the aim is pieces that say one thing: never empty, never longer than
``MAX_CHARACTERS``, and not broken at an abbreviation, an initial, a decimal or a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_CHARACTERS: Final = 400
LONGEST_ABBREVIATION: Final = 64

_BULLET: Final = re.compile(r"^\s*(?:[-*+•‣▪·–—]|\(?\d{1,3}[.)](?=\s)|#{1,6}(?=\s)|>)\s*")
_BREAK: Final = re.compile(
    r"(?P<ideographic>[。！？｡]+[」』”’)\]）】]*)"
    r"|(?P<latin>[.!?…]+[\"'”’)\]»]*)(?=\s|$)"
    r"|(?P<hangul>(?<=[가-힣])[.!?]+)(?=[가-힣\"'“‘(])",
)
_ABBREVIATIONS: Final = frozenset(
    "mr mrs ms dr prof sr jr st mt rev gen sen rep gov capt lt col sgt hon fr "
    "vs etc al ca cf approx est inc ltd co corp dept no nos vol pp fig figs eq sec ch ed eds "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun ave blvd rd".split(),
)
# These end a sentence as often as not; what follows decides.
_OPEN: Final = frozenset("etc inc ltd co corp jr sr al st ave blvd rd no".split())
_LAST_WORD: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]?$|[^\W\d_]+$")
_NEXT: Final = re.compile(r"\S")
_SOFT: Final = re.compile(r"(?<=[;:,、，；：])\s*|\s+")


def sentences(text: str) -> list[str]:
    """The sentences of ``text`` in order, trimmed, without bullets; at most ``MAX_CHARACTERS`` each, none empty."""
    found: list[str] = []
    for line in text.splitlines():
        for sentence in _split(_BULLET.sub("", line, count=1)):
            found.extend(_bounded(sentence))
    return found


def _split(line: str) -> Iterator[str]:
    start = 0
    for mark in _BREAK.finditer(line):
        if mark.lastgroup == "latin" and _goes_on(line, mark):
            continue
        piece = line[start : mark.end()].strip()
        if _says_something(piece):
            yield piece
            start = mark.end()
    rest = line[start:].strip()
    if _says_something(rest):
        yield rest


def _goes_on(line: str, mark: re.Match[str]) -> bool:
    """Whether a dot followed by white space belongs to an abbreviation and not to the end of a sentence."""
    if mark.group() != ".":
        return False
    # Not from the beginning of the line, which would make a long one cost its square; no abbreviation is that long.
    before = _LAST_WORD.search(line, max(0, mark.start() - LONGEST_ABBREVIATION), mark.start())
    next_mark = _NEXT.search(line, mark.end())
    after = next_mark.group() if next_mark else ""
    if before is None or not after:
        return False
    word = before.group()
    if "." in word:
        # "U.S. troops", "e.g. apples", "J. R. R. Tolkien"; a capital after a two-letter country is left to chance: joined.
        return True
    if len(word) == 1 and word.isupper() and word != "I":
        return True
    folded = word.casefold()
    if folded not in _ABBREVIATIONS:
        return after.islower() and after.isascii()
    return folded not in _OPEN or not after.isupper()


def _says_something(piece: str) -> bool:
    return any(char.isalnum() for char in piece)


def _bounded(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_CHARACTERS:
        cut = max(
            (gap.end() for gap in _SOFT.finditer(sentence, MAX_CHARACTERS // 2, MAX_CHARACTERS)), default=MAX_CHARACTERS
        )
        piece, sentence = sentence[:cut].strip(), sentence[cut:].strip()
        if _says_something(piece):
            yield piece
    if _says_something(sentence):
        yield sentence
