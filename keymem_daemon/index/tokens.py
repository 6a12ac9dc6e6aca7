"""From text to the terms of the lexical index, and to the phrases of a query that are worth a vector.

What is a term is decided here and nowhere else; lexical.py only counts. The rules: words are Unicode words, folded, accents of
Latin letters taken off, English stemmed, stop words out. Identifiers (camelCase, snake_case, kebab-case, dotted names, paths)
give a term for the whole and one for each part; versions, issue numbers and hashes stay whole. Runs of Han and kana, and of
scripts written without spaces, give overlapping pairs of characters, plus the runs that look like words. Hangul gives its content
morphemes and, where Kiwi took a noun apart, the noun as written (동 + 건 + 이는 → 동건).

The answer depends on the text alone, except that Hangul is first read by a fallback while Kiwi loads: `Analysis.provisional` marks
that, and such a document has to be analysed again.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from snowballstemmer.english_stemmer import EnglishStemmer

from keymem_daemon.core.text import fold
from keymem_daemon.index import scripts, stopwords
from keymem_daemon.index.korean import LONGEST_RUN, KoreanAnalyzer, Morpheme
from keymem_daemon.index.particles import bare_noun, ends_closed, is_particle
from keymem_daemon.index.sentences import sentences

__all__ = ["Analysis", "QueryToken", "Tokenizer", "sentences"]

_CACHED_WORDS: Final = 20_000
_LONGEST_TERM: Final = 128
_PHRASE_WORDS: Final = 4

_NOT_TEXT: Final = re.compile(r"[\ud800-\udfff\x00]")
_APART: Final = f"{scripts.HANGUL}{scripts.HAN}{scripts.HIRAGANA}{scripts.KATAKANA}{scripts.UNSPACED}"
_CHAR: Final = rf"(?:[^\W{_APART}][{scripts.MARKS}]*)"
_JOINT: Final = r"(?:[.\-/\\@+'’&]|::|(?<=\d):(?=\d)|(?<=\d),(?=\d{3}(?!\d)))"
_RUN: Final = re.compile(
    rf"(?P<hangul>[{scripts.HANGUL}]+)"
    rf"|(?P<ideographs>[{scripts.HAN}{scripts.HIRAGANA}{scripts.KATAKANA}]+)"
    rf"|(?P<unspaced>[{scripts.UNSPACED}]+)"
    rf"|(?P<word>#\d+(?!\w)|[A-Za-z]\+\+(?!\w)|(?<![^\W_])[CFcf]#(?!\w)|{_CHAR}+(?:{_JOINT}{_CHAR}+)*)",
)
_HANGUL: Final = re.compile(f"[{scripts.HANGUL}]")
_SUBRUN: Final = re.compile(
    rf"(?P<han>[{scripts.HAN}]+)|(?P<katakana>[{scripts.KATAKANA}]+)|(?P<hiragana>[{scripts.HIRAGANA}]+)"
)
_CLUSTER: Final = re.compile(
    rf".[{scripts.MARKS}\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]*",
    re.DOTALL,
)

_VERSION: Final = re.compile(r"[vV]?\d+(?:\.\d+)+(?:[-+.]?[0-9A-Za-z]+)*")
_AMOUNT: Final = re.compile(r"\d{1,3}(?:,\d{3})+")
_HASH: Final = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}", re.IGNORECASE)
_SPLIT: Final = re.compile(r"[./\\@&+:_-]+")
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_TIME: Final = re.compile(r"\d+(?::\d+)+")
_CLITIC: Final = re.compile(r"(.+?)['’](?:s|re|ve|ll|d|m)", re.IGNORECASE)
_NEGATED: Final = re.compile(r".*n['’]t", re.IGNORECASE)
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_IS_CAMEL: Final = re.compile(r"(?=.*(?:[a-z][A-Z]|[A-Z]{2,}[a-z]{2}))[A-Za-z0-9]+")
_NUMBERED: Final = re.compile(r"([A-Za-z]{3,})\d+")

# How many characters a run may have that looks like a word. Short hiragana is mostly particles; loanwords are long.
_WORD_SIZES: Final = {"han": (2, 8), "katakana": (2, 16), "hiragana": (3, 8)}

# Kiwi's parts of speech. A noun as written may be made of these …
_NOMINAL: Final = frozenset(
    {"NNG", "NNP", "NNB", "NR", "NP", "XPN", "XSN", "XR", "MM", "SL", "SH", "SN", "UN", "IC", "MAG"}
)
# … and these are terms of their own.
_CONTENT: Final = frozenset({"NNG", "NNP", "NR", "XR", "VV", "VA", "MAG", "UN", "SH", "SL", "SN"})
_PREDICATE: Final = frozenset({"VV", "VA"})


class QueryToken(NamedTuple):
    """One term and the words it came from; ``word`` is false for a pair of characters that is no word of its own."""

    surface: str
    term: str
    word: bool = True


@dataclass(frozen=True, slots=True)
class Analysis:
    """The tokens of a document in order, with repetitions, surfaces folded. ``provisional``: Hangul was read without Kiwi."""

    tokens: tuple[QueryToken, ...]
    provisional: bool = False

    @classmethod
    def of_terms(cls, terms: Sequence[str]) -> Analysis:
        """Terms that are their own surfaces."""
        return cls(tuple(QueryToken(term, term) for term in terms))

    @property
    def terms(self) -> list[str]:
        """The terms alone."""
        return [token.term for token in self.tokens]


class _Piece(NamedTuple):
    """One run of the text: its tokens, and what a phrase may take of it (``None``: it ends the phrase before it)."""

    start: int
    end: int
    tokens: tuple[QueryToken, ...]
    nouns: tuple[tuple[int, int], ...]
    opens: bool
    closes: bool


class Tokenizer:
    """Analyses documents and queries. Thread-safe; one instance serves the daemon."""

    def __init__(self, korean: KoreanAnalyzer | None = None) -> None:
        self._korean = korean
        self._stemmer = EnglishStemmer()
        self._stemming = threading.Lock()
        self._words: dict[str, tuple[QueryToken, ...]] = {}
        self._folded: dict[QueryToken, QueryToken] = {}

    def ready_for(self, text: str) -> bool:
        """Whether this text would be analysed for good. If not, the analyser has now begun to load."""
        if self._korean is None or not _HANGUL.search(text) or self._korean.ready:
            return True
        self._korean.load()
        return False

    def analyze(self, text: str) -> Analysis:
        """The analysis of a document."""
        return self.analyze_many([text])[0]

    def analyze_many(self, texts: Sequence[str]) -> list[Analysis]:
        """The analyses of several documents, with one question to the Korean analyser for all of them."""
        cleaned = [_clean(text) for text in texts]
        return [
            Analysis(tuple(self._fold(token) for piece in pieces for token in piece.tokens), provisional)
            for pieces, provisional in self._read(cleaned)
        ]

    def _fold(self, token: QueryToken) -> QueryToken:
        folded = self._folded.get(token)
        if folded is None:
            folded = QueryToken(fold(token.surface), token.term, token.word)
            if len(self._folded) >= _CACHED_WORDS:
                self._folded.clear()
            self._folded[token] = folded
        return folded

    def terms(self, text: str) -> list[str]:
        """The terms of a document in order, with repetitions."""
        return self.analyze(text).terms

    def query_terms(self, text: str) -> list[QueryToken]:
        """The terms of a query in order, each once, with the words as the query has them."""
        pieces, _ = self._read([_clean(text)])[0]
        found: dict[str, QueryToken] = {}
        for piece in pieces:
            for token in piece.tokens:
                found.setdefault(token.term, token)
        return list(found.values())

    def phrases(self, text: str, limit: int = 96) -> list[str]:
        """Content words of a query as written, and runs of up to four of them with nothing between them; single words first.

        For vectors and key lookup: stop words, punctuation and Korean particles end a run and are in none. No two are equal when
        folded; at most ``limit``.
        """
        cleaned = _clean(text)
        pieces, _ = self._read([cleaned])[0]
        found: dict[str, str] = {}
        runs = list(_noun_runs(cleaned, pieces))
        for size in range(1, _PHRASE_WORDS + 1):
            for run in runs:
                for first in range(len(run) - size + 1):
                    phrase = cleaned[run[first][0] : run[first + size - 1][1]]
                    if size == 1:
                        phrase = run[first][2] or phrase
                    found.setdefault(fold(phrase), " ".join(phrase.split()))
                    if len(found) >= limit:
                        return list(found.values())
        return list(found.values())

    # Reading runs

    def _read(self, texts: Sequence[str]) -> list[tuple[list[_Piece], bool]]:
        """The pieces of each cleaned text, and whether they are provisional."""
        hangul = [place for place, text in enumerate(texts) if _HANGUL.search(text)]
        answers: dict[int, list[Morpheme]] = {}
        provisional = False
        if hangul and self._korean is not None:
            morphemes = self._korean.analyse([texts[place] for place in hangul])
            provisional = morphemes is None
            answers = dict(zip(hangul, morphemes or (), strict=morphemes is not None))
        korean = frozenset(hangul)
        return [
            (list(self._pieces(text, answers.get(place))), provisional and place in korean)
            for place, text in enumerate(texts)
        ]

    def _pieces(self, text: str, morphemes: Sequence[Morpheme] | None) -> Iterator[_Piece]:
        cursor = 0
        for run in _RUN.finditer(text):
            start, end = run.span()
            match run.lastgroup:
                case "hangul":
                    if morphemes is None or end - start > LONGEST_RUN:
                        yield _hangul_by_particles(text, start, end)
                        continue
                    while cursor < len(morphemes) and morphemes[cursor].start < start:
                        cursor += 1
                    first = cursor
                    while cursor < len(morphemes) and morphemes[cursor].start < end:
                        cursor += 1
                    yield _hangul_by_morphemes(text, start, end, morphemes[first:cursor])
                case "ideographs":
                    yield _ideographs(text, start, end)
                case "unspaced":
                    yield _Piece(
                        start,
                        end,
                        tuple(_pairs(_CLUSTER.findall(run.group()))),
                        ((start, end),),
                        opens=True,
                        closes=True,
                    )
                case _:
                    tokens = self._word(run.group())
                    clitic = _CLITIC.fullmatch(run.group())
                    stop = start + clitic.end(1) if clitic else end
                    yield _Piece(start, end, tokens, ((start, stop),) if tokens else (), opens=True, closes=stop == end)

    def _word(self, chunk: str) -> tuple[QueryToken, ...]:
        known = self._words.get(chunk)
        if known is None:
            known = tuple(dict.fromkeys(self._expand(chunk)))
            if len(self._words) >= _CACHED_WORDS:
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
            whole = fold(chunk)[:_LONGEST_TERM]
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
            clitic = _CLITIC.fullmatch(chunk)
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
            yield QueryToken(chunk, fold(chunk.strip("_"))[:_LONGEST_TERM])
        yield from tokens

    def _simple(self, word: str) -> Iterator[QueryToken]:
        """A word without joints: plain, or camelCase, or letters with a number behind them."""
        if _HASH.fullmatch(word):
            yield QueryToken(word, fold(word)[:_LONGEST_TERM])
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
        term = _without_accents(folded)[:_LONGEST_TERM]
        if len(term) > 2 and term.isascii() and term.isalpha():
            with self._stemming:
                term = str(self._stemmer.stemWord(term))
        if term:
            yield QueryToken(word, term)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", _NOT_TEXT.sub(" ", text))


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


def _pairs(units: Sequence[str]) -> Iterator[QueryToken]:
    if len(units) == 1:
        yield QueryToken(units[0], fold(units[0]))
    for left, right in pairwise(units):
        yield QueryToken(left + right, fold(left + right), len(units) == 2)


def _ideographs(text: str, start: int, end: int) -> _Piece:
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
    return _Piece(start, end, tuple(tokens), tuple(nouns), opens=False, closes=False)


def _hangul_by_particles(text: str, start: int, end: int) -> _Piece:
    """Without Kiwi: the word as written, trailing particles off."""
    noun = bare_noun(text[start:end])[:_LONGEST_TERM]
    after_a_word = start > 0 and text[start - 1].isalnum()
    if noun in stopwords.KOREAN or (after_a_word and is_particle(text[start:end])):
        return _Piece(start, end, (), (), opens=False, closes=False)
    stop = start + len(noun)
    return _Piece(start, end, (QueryToken(noun, noun),), ((start, stop),), opens=True, closes=stop == end)


def _hangul_by_morphemes(text: str, start: int, end: int, morphemes: Sequence[Morpheme]) -> _Piece:
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
    return _Piece(start, end, tuple(dict.fromkeys(tokens)), nouns, opens=True, closes=stop == end)


def _noun_runs(text: str, pieces: Sequence[_Piece]) -> Iterator[list[tuple[int, int, str | None]]]:
    run: list[tuple[int, int, str | None]] = []
    last_end = -1
    for piece in pieces:
        adjoins = last_end >= 0 and piece.opens and bool(piece.nouns) and text[last_end : piece.start].isspace()
        if run and not adjoins:
            yield run
            run = []
        run.extend((start, end, None) for start, end in piece.nouns[:1])
        for start, end in piece.nouns[1:]:
            yield [(start, end, None)]
        for token in piece.tokens:
            if token.term.endswith("다") and not piece.nouns:
                yield [(piece.start, piece.end, token.term)]
        last_end = piece.end if piece.closes and piece.nouns else -1
    if run:
        yield run
