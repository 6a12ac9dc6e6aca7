"""From text to the terms of the lexical index, and to the phrases of a query that are worth a vector.

What is a term is decided here, in words.py and in pieces.py, and nowhere else; lexical.py only counts. The rules: words are
Unicode words, folded, accents of Latin letters taken off, English stemmed, stop words out. Identifiers (camelCase, snake_case,
kebab-case, dotted names, paths) give a term for the whole and one for each part; versions, issue numbers and hashes stay whole.
Runs of Han and kana, and of scripts written without spaces, give overlapping pairs of characters, plus the runs that look like
words. Hangul gives its content morphemes and, where Kiwi took a noun apart, the noun as written (동 + 건 + 이는 → 동건).

The answer depends on the text alone, except that Hangul is first read by a fallback while Kiwi loads: `Analysis.provisional` marks
that, and such a document has to be analysed again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from keymem_daemon.core.text import fold
from keymem_daemon.index import scripts
from keymem_daemon.index.korean import LONGEST_RUN, KoreanAnalyzer, Morpheme
from keymem_daemon.index.pieces import Piece, QueryToken, hangul_by_morphemes, hangul_by_particles, ideographs, unspaced
from keymem_daemon.index.sentences import sentences
from keymem_daemon.index.words import CACHED_WORDS, CLITIC, WordReader

__all__ = ["Analysis", "QueryToken", "Tokenizer", "sentences"]

_PHRASE_WORDS: Final = 4
CHARACTERS_A_STEP: Final = 2_000

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


class Tokenizer:
    """Analyses documents and queries. Thread-safe; one instance serves the daemon."""

    def __init__(self, korean: KoreanAnalyzer | None = None) -> None:
        self._korean = korean
        self._words = WordReader()
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
        found = self.analysis_steps(texts)
        while True:
            try:
                next(found)
            except StopIteration as end:
                analyses: list[Analysis] = end.value
                return analyses

    def analysis_steps(self, texts: Sequence[str]) -> Generator[None, None, list[Analysis]]:
        """As `analyze_many`, in steps of a few milliseconds; what it returns are the analyses."""
        analyses: list[Analysis] = []
        for pieces, provisional in self._read([_clean(text) for text in texts]):
            tokens: list[QueryToken] = []
            read = 0
            for piece in pieces:
                tokens.extend(map(self._fold, piece.tokens))
                if piece.end - read >= CHARACTERS_A_STEP:
                    read = piece.end
                    yield
            analyses.append(Analysis(tuple(tokens), provisional))
        return analyses

    def _fold(self, token: QueryToken) -> QueryToken:
        folded = self._folded.get(token)
        if folded is None:
            folded = QueryToken(fold(token.surface), token.term, token.word)
            if len(self._folded) >= CACHED_WORDS:
                self._folded.clear()
            self._folded[token] = folded
        return folded

    def terms(self, text: str) -> list[str]:
        """The terms of a document in order, with repetitions."""
        return self.analyze(text).terms

    def query_terms(self, text: str) -> list[QueryToken]:
        """The terms of a query in order, each once, with the words as the query has them."""
        ((pieces, _),) = self._read([_clean(text)])
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
        ((pieces, _),) = self._read([cleaned])
        found: dict[str, str] = {}
        runs = list(_noun_runs(cleaned, list(pieces)))
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

    def _read(self, texts: Sequence[str]) -> list[tuple[Iterator[Piece], bool]]:
        """The pieces of each cleaned text, read as they are asked for, and whether they are provisional."""
        hangul = [place for place, text in enumerate(texts) if _HANGUL.search(text)]
        answers: dict[int, list[Morpheme]] = {}
        provisional = False
        if hangul and self._korean is not None:
            morphemes = self._korean.analyse([texts[place] for place in hangul])
            provisional = morphemes is None
            answers = dict(zip(hangul, morphemes or (), strict=morphemes is not None))
        korean = frozenset(hangul)
        return [
            (self._pieces(text, answers.get(place)), provisional and place in korean)
            for place, text in enumerate(texts)
        ]

    def _pieces(self, text: str, morphemes: Sequence[Morpheme] | None) -> Iterator[Piece]:
        cursor = 0
        for run in _RUN.finditer(text):
            start, end = run.span()
            match run.lastgroup:
                case "hangul":
                    if morphemes is None or end - start > LONGEST_RUN:
                        yield hangul_by_particles(text, start, end)
                        continue
                    while cursor < len(morphemes) and morphemes[cursor].start < start:
                        cursor += 1
                    first = cursor
                    while cursor < len(morphemes) and morphemes[cursor].start < end:
                        cursor += 1
                    yield hangul_by_morphemes(text, start, end, morphemes[first:cursor])
                case "ideographs":
                    yield ideographs(text, start, end)
                case "unspaced":
                    yield unspaced(text, start, end)
                case _:
                    tokens = self._words.tokens(run.group())
                    clitic = CLITIC.fullmatch(run.group())
                    stop = start + clitic.end(1) if clitic else end
                    yield Piece(start, end, tokens, ((start, stop),) if tokens else (), opens=True, closes=stop == end)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", _NOT_TEXT.sub(" ", text))


def _noun_runs(text: str, pieces: Sequence[Piece]) -> Iterator[list[tuple[int, int, str | None]]]:
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
