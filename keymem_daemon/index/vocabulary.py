"""The words of the living documents, numbered: which term a word leads to, how many documents have it, what came and went.

Part of the lexical index and derived like it. A word that no document has any more is gone from here at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keymem_daemon.index.tokens import QueryToken

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class VocabularyChange:
    """Words that came into the index (with their terms) and words that left it, since the last call."""

    added: tuple[tuple[str, str], ...]
    removed: tuple[str, ...]


class Vocabulary:
    """Words (a surface and its term) with small numbers that are used again when a word is gone."""

    def __init__(self) -> None:
        self._number_of: dict[QueryToken, int] = {}
        self._words: list[QueryToken] = []
        self._documents: list[int] = []
        self._term: Numbers = np.zeros(64, dtype=np.int32)
        self._free: list[int] = []
        # Several tokens may share a surface; a surface is a word of the vocabulary while one of them is there.
        self._surfaces: Counter[str] = Counter()
        self._changed: dict[str, str | None] = {}
        self.version = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The distinct words, folded, each with its term."""
        return ((word.surface, word.term) for word in self._number_of if word.word)

    def number(self, word: QueryToken) -> int | None:
        """The number of a word that some document has."""
        return self._number_of.get(word)

    def enter(self, word: QueryToken, term: int) -> int:
        """Number a word that no document had until now; ``term`` is the number of its term."""
        if self._free:
            number = self._free.pop()
            self._words[number] = word
        else:
            number = len(self._words)
            self._words.append(word)
            self._documents.append(0)
            if number == len(self._term):
                self._term = np.concatenate([self._term, np.zeros_like(self._term)])
        self._number_of[word] = number
        self._term[number] = term
        if word.word:
            self._surfaces[word.surface] += 1
            self._note(word.surface, word.term)
        return number

    def hold(self, number: int) -> None:
        """One more document has this word."""
        self._documents[number] += 1

    def release(self, number: int) -> None:
        """One document less has this word."""
        self._documents[number] -= 1
        if self._documents[number]:
            return
        word = self._words[number]
        del self._number_of[word]
        self._free.append(number)
        if word.word:
            self._surfaces[word.surface] -= 1
            if not self._surfaces[word.surface]:
                del self._surfaces[word.surface]
                self._note(word.surface, None)

    def terms(self, numbers: Numbers) -> Numbers:
        """The term number of each word number."""
        return self._term[numbers]

    def changes(self) -> VocabularyChange:
        """What came and went since the last call; each word is in one list at most."""
        changed, self._changed = self._changed, {}
        added = tuple((word, term) for word, term in changed.items() if term is not None)
        return VocabularyChange(added, tuple(word for word, term in changed.items() if term is None))

    def _note(self, surface: str, term: str | None) -> None:
        self._changed[surface] = term
        self.version += 1
