"""Words between spaces: from one chunk of text to its terms.

A plain word gives its stem. An identifier gives a term for the whole and one for each part; versions, issue numbers, amounts,
times and hashes stay whole.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from typing import Final

from snowballstemmer.english_stemmer import EnglishStemmer

from keymem_daemon.core.text import fold
from keymem_daemon.index import stopwords
from keymem_daemon.index.pieces import LONGEST_TERM, QueryToken

CACHED_WORDS: Final = 20_000

_VERSION: Final = re.compile(r"[vV]?\d+(?:\.\d+)+(?:[-+.]?[0-9A-Za-z]+)*")
_AMOUNT: Final = re.compile(r"\d{1,3}(?:,\d{3})+")
_HASH: Final = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}", re.IGNORECASE)
_SPLIT: Final = re.compile(r"[./\\@&+:_-]+")
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_TIME: Final = re.compile(r"\d+(?::\d+)+")
CLITIC: Final = re.compile(r"(.+?)['’](?:s|re|ve|ll|d|m)", re.IGNORECASE)
_NEGATED: Final = re.compile(r".*n['’]t", re.IGNORECASE)
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_IS_CAMEL: Final = re.compile(r"(?=.*(?:[a-z][A-Z]|[A-Z]{2,}[a-z]{2}))[A-Za-z0-9]+")
_NUMBERED: Final = re.compile(r"([A-Za-z]{3,})\d+")


class WordReader:
    """Reads words, and remembers the latest. Thread-safe."""

    def __init__(self) -> None:
        self._stemmer = EnglishStemmer()
        self._stemming = threading.Lock()
        self._words: dict[str, tuple[QueryToken, ...]] = {}

    def tokens(self, chunk: str) -> tuple[QueryToken, ...]:
        """The tokens of a chunk without spaces, surfaces as written; none for a stop word."""
        known = self._words.get(chunk)
        if known is None:
            known = tuple(dict.fromkeys(self._expand(chunk)))
            if len(self._words) >= CACHED_WORDS:
                self._words.clear()
            self._words[chunk] = known
        return known

    def _expand(self, chunk: str) -> Iterator[QueryToken]:
        chunk = chunk.replace("’", "'")
        if _AMOUNT.fullmatch(chunk):
            chunk = chunk.replace(",", "")
        if chunk[0] == "#":
            yield QueryToken(chunk, chunk)
            yield QueryToken(chunk[1:], chunk[1:])
        elif _VERSION.fullmatch(chunk):
            whole = fold(chunk)[:LONGEST_TERM]
            yield QueryToken(chunk, whole)
            if whole[0] == "v":
                yield QueryToken(chunk[1:], whole[1:])
        elif chunk[-1] in "+#" or _TIME.fullmatch(chunk):
            yield QueryToken(chunk, fold(chunk))
        elif _INITIALS.fullmatch(chunk):
            yield from self._plain(chunk.replace(".", ""))
        elif _NEGATED.fullmatch(chunk):
            return
        else:
            clitic = CLITIC.fullmatch(chunk)
            yield from self._compound(clitic.group(1) if clitic else chunk)

    def _compound(self, chunk: str) -> Iterator[QueryToken]:
        """An identifier whole and in parts, or a plain word."""
        parts = [part for part in _SPLIT.split(chunk) if part]
        if "'" in chunk:
            # O'Brien is found as obrien too; what stands alone before an apostrophe says nothing.
            yield from self._plain(chunk.replace("'", ""))
            parts = [piece for part in parts for piece in part.split("'") if len(piece) > 1]
        elif len(parts) == 1:
            yield from self._simple(parts[0])
            return
        tokens = [token for part in parts for token in self._simple(part)]
        if tokens and "'" not in chunk:
            yield QueryToken(chunk, fold(chunk.strip("_"))[:LONGEST_TERM])
        yield from tokens

    def _simple(self, word: str) -> Iterator[QueryToken]:
        """A word without joints: plain, or camelCase, or letters with a number behind them."""
        if _HASH.fullmatch(word):
            yield QueryToken(word, fold(word)[:LONGEST_TERM])
            return
        yield from self._plain(word)
        if _IS_CAMEL.fullmatch(word):
            for part in _CAMEL.findall(word):
                if len(part) > 1:
                    yield from self._plain(part)
        elif numbered := _NUMBERED.fullmatch(word):
            yield from self._plain(numbered.group(1))

    def _plain(self, word: str) -> Iterator[QueryToken]:
        folded = fold(word)
        if folded in stopwords.ENGLISH and word not in stopwords.KEPT_IN_CAPITALS:
            return
        term = _without_accents(folded)[:LONGEST_TERM]
        if len(term) > 2 and term.isascii() and term.isalpha():
            with self._stemming:
                term = str(self._stemmer.stemWord(term))
        if term:
            yield QueryToken(word, term)


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    kept: list[str] = []
    latin = False
    for char in unicodedata.normalize("NFD", word):
        if "\u0300" <= char <= "\u036f":
            if latin:
                continue
        else:
            latin = char < "\u0250"
        kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))
