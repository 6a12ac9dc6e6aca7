"""Runs of one script that are not words as they stand: Hangul, Han and kana, and scripts written without spaces.

Each becomes a `Piece`: its tokens, and the spans that a phrase may take of it. Words between spaces are read in words.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from keymem_daemon.core.text import fold
from keymem_daemon.index import scripts, stopwords
from keymem_daemon.index.korean import Morpheme
from keymem_daemon.index.particles import bare_noun, ends_closed, is_particle, is_verb_alone

LONGEST_TERM: Final = 128

_SUBRUN: Final = re.compile(
    rf"(?P<han>[{scripts.HAN}]+)|(?P<katakana>[{scripts.KATAKANA}]+)|(?P<hiragana>[{scripts.HIRAGANA}]+)"
)
_CLUSTER: Final = re.compile(
    rf".[{scripts.MARKS}\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]*",
    re.DOTALL,
)

# How many characters a run may have that looks like a word. Short hiragana is mostly particles; loanwords are long.
_WORD_SIZES: Final = {"han": (2, 8), "katakana": (2, 16), "hiragana": (3, 8)}

# Kiwi's parts of speech. A noun as written may be made of these …
_NOMINAL: Final = frozenset(
    {"NNG", "NNP", "NNB", "NR", "NP", "XPN", "XSN", "XR", "MM", "SL", "SH", "SN", "UN", "IC", "MAG"}
)
# … and these are terms of their own.
_CONTENT: Final = frozenset({"NNG", "NNP", "NR", "XR", "VV", "VA", "MAG", "UN", "SH", "SL", "SN"})


class QueryToken(NamedTuple):
    """One term and the words it came from; ``word`` is false for a pair of characters that is no word of its own."""

    surface: str
    term: str
    word: bool = True


class Piece(NamedTuple):
    """One run of a text and what became of it.

    ``nouns`` are the spans that a phrase may take, none when the run ends the phrase before it. ``opens``: a phrase may go on into
    this run; ``closes``: it may go on behind it.
    """

    start: int
    end: int
    tokens: tuple[QueryToken, ...]
    nouns: tuple[tuple[int, int], ...]
    opens: bool
    closes: bool


def unspaced(text: str, start: int, end: int) -> Piece:
    """A run of Thai, Lao, Myanmar or Khmer: pairs of letters, each with its marks."""
    clusters = _CLUSTER.findall(text, start, end)
    return Piece(start, end, tuple(_pairs(clusters)), ((start, end),), opens=True, closes=True)


def _pairs(units: Sequence[str]) -> Iterator[QueryToken]:
    if len(units) == 1:
        yield QueryToken(units[0], fold(units[0]))
    for left, right in pairwise(units):
        yield QueryToken(left + right, fold(left + right), len(units) == 2)


def ideographs(text: str, start: int, end: int) -> Piece:
    """A run of Han and kana: pairs of characters, and the parts of one script that look like words."""
    tokens: list[QueryToken] = []
    nouns: list[tuple[int, int]] = []
    for part in _SUBRUN.finditer(text, start, end):
        size = len(part.group())
        shortest, longest = _WORD_SIZES[part.lastgroup or "han"]
        if shortest <= size <= longest or end - start == 1:
            nouns.append(part.span())
            if size > 2:
                tokens.append(QueryToken(part.group(), fold(part.group())))
        elif part.lastgroup == "han" and size > longest:
            nouns.extend((at, at + 2) for at in range(part.start(), part.end() - 1))
    words = frozenset(nouns)
    if end - start == 1:
        tokens.append(QueryToken(text[start:end], fold(text[start:end])))
    tokens.extend(
        QueryToken(text[at : at + 2], fold(text[at : at + 2]), (at, at + 2) in words) for at in range(start, end - 1)
    )
    return Piece(start, end, tuple(tokens), tuple(nouns), opens=False, closes=False)


def hangul_by_particles(text: str, start: int, end: int) -> Piece:
    """Without Kiwi: the word as written, trailing particles and forms of 하다 and 되다 off."""
    noun = bare_noun(text[start:end])[:LONGEST_TERM]
    after_a_word = start > 0 and text[start - 1].isalnum()
    if noun in stopwords.KOREAN or is_verb_alone(text[start:end]) or (after_a_word and is_particle(text[start:end])):
        return Piece(start, end, (), (), opens=False, closes=False)
    stop = start + len(noun)
    return Piece(start, end, (QueryToken(noun, noun),), ((start, stop),), opens=True, closes=stop == end)


def hangul_by_morphemes(text: str, start: int, end: int, morphemes: Sequence[Morpheme]) -> Piece:
    """With Kiwi: the content morphemes, and the noun as written where it has several."""
    tokens: list[QueryToken] = []
    stop, count = start, 0
    for morpheme in morphemes:
        # A noun goes on as long as what follows is nominal and adjoins it.
        if morpheme.tag not in _NOMINAL or morpheme.start != stop:
            break
        stop, count = min(morpheme.start + morpheme.length, end), count + 1
    noun = text[start:stop]
    if count > 1 and any(morpheme.tag not in {"MAG", "IC", "NNB", "NP"} for morpheme in morphemes[:count]):
        tokens.append(QueryToken(noun, noun))
    if count == 1 and morphemes[0].tag == "NNP" and len(noun) > 2 and noun.endswith("이") and ends_closed(noun[:-1]):
        # The 이 that an informal name takes: 하은이 is 하은.
        tokens.append(QueryToken(noun[:-1], noun[:-1]))
    number = (
        re.search(r"\d+$", text[max(0, start - 8) : start]) if morphemes and morphemes[0].tag in {"NNB", "NR"} else None
    )
    if number is not None and count:
        counted = number.group() + morphemes[0].form
        tokens.append(QueryToken(counted, counted))
    content = (
        morpheme.form for morpheme in morphemes if morpheme.tag in _CONTENT and morpheme.form not in stopwords.KOREAN
    )
    tokens.extend(QueryToken(form, form) for form in content)
    nouns = ((start, stop),) if tokens and noun and noun not in stopwords.KOREAN else ()
    return Piece(start, end, tuple(dict.fromkeys(tokens)), nouns, opens=True, closes=stop == end)
