"""Mention links: which memories speak of which keys, in either order of arrival.

A derived index for the bridge step of retrieval, never graph links: they are not shown as keys and not reinforced. A memory
mentions a key when one of the key's surfaces stands in its text as whole words, the last of them in either number ("apples"
mentions "apple"). Both directions cost the words of the text or the documents of one word, never all memories or all keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from keymem_daemon.core.plurals import singular
from keymem_daemon.core.text import fold, particle_forms, script_of_char
from keymem_daemon.index.packed import PackedSets

_WORD: Final = re.compile(r"[^\W_]+", re.UNICODE)
_LONGEST: Final = 5
_UNSPACED: Final = frozenset({"han", "kana"})


def mention_words(text: str) -> list[frozenset[str]]:
    """The words of a text in order, each as the set of forms by which a key may name it.

    Latin words in both numbers, Hangul words with and without what may be particles, Han and kana as single characters.
    """
    forms: list[frozenset[str]] = []
    for match in _WORD.finditer(fold(text)):
        word = match.group()
        if word.isascii():
            forms.append(frozenset({word, singular(word)}))
            continue
        for run in _runs(word):
            if script_of_char(run[0]) in _UNSPACED:
                forms.extend(frozenset({char}) for char in run)
            else:
                forms.append(frozenset(particle_forms(run)))
    return forms


def _runs(word: str) -> list[str]:
    """A word cut where its script changes."""
    runs: list[str] = []
    start = 0
    for index in range(1, len(word)):
        before, after = script_of_char(word[index - 1]), script_of_char(word[index])
        if before != after and before is not None and after is not None:
            runs.append(word[start:index])
            start = index
    runs.append(word[start:])
    return runs


def _name(surface: str) -> tuple[str, ...]:
    """The words of a key's surface, the last in the singular; empty for what is too long to be spoken of."""
    words: list[str] = []
    for match in _WORD.finditer(fold(surface)):
        for run in _runs(match.group()):
            words.extend(run if script_of_char(run[0]) in _UNSPACED else (run,))
    if words and words[-1].isascii():
        words[-1] = singular(words[-1])
    limit = _LONGEST if all(len(word) > 1 for word in words) else 2 * _LONGEST
    return tuple(words) if len(words) <= limit else ()


class MentionIndex:
    """Who mentions whom. Keys and memories come and go one at a time; the answer never depends on the order they came in."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], dict[str, None]] = {}
        self._key_names: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._openings: dict[str, int] = {}
        self._longest = 1
        self._texts: dict[str, tuple[frozenset[str], ...]] = {}
        self._postings = PackedSets()
        self._by_key = PackedSets()
        self._by_memory = PackedSets()
        # One object per distinct word, so that a text costs a pointer a word.
        self._interned: dict[frozenset[str], frozenset[str]] = {}

    def mentioned_by(self, memory_id: str) -> Collection[str]:
        """Ids of the keys that the memory speaks of."""
        return self._by_memory.get(memory_id)

    def mentions_of(self, key_id: str) -> Collection[str]:
        """Ids of the memories that speak of the key."""
        return self._by_key.get(key_id)

    def put_memory(self, memory_id: str, content: str) -> None:
        """Index a text; one that is there already is left as it is, for the text of a memory never changes."""
        if memory_id in self._texts:
            return
        words = tuple(self._interned.setdefault(forms, forms) for forms in mention_words(content))
        self._texts[memory_id] = words
        for form in frozenset().union(*words):
            self._postings.add(form, memory_id)
        for key_id in self._keys_in(words):
            self._tie(key_id, memory_id)

    def remove_memory(self, memory_id: str) -> None:
        """Take a text out."""
        for form in frozenset().union(*self._texts.pop(memory_id, ())):
            self._postings.discard(form, memory_id)
        for key_id in self._by_memory.pop(memory_id):
            self._by_key.discard(key_id, memory_id)

    def put_key(self, key_id: str, surfaces: Sequence[str]) -> None:
        """Index a key by all its surfaces, in place of those it had."""
        names = tuple(dict.fromkeys(name for surface in surfaces if (name := _name(surface))))
        if names == self._key_names.get(key_id):
            return
        self.remove_key(key_id)
        self._key_names[key_id] = names
        for name in names:
            self._names.setdefault(name, {})[key_id] = None
            self._longest = max(self._longest, len(name))
            self._openings[name[0]] = self._openings.get(name[0], 0) + 1
            for memory_id in self._holding(name):
                self._tie(key_id, memory_id)

    def remove_key(self, key_id: str) -> None:
        """Take a key out."""
        for name in self._key_names.pop(key_id, ()):
            holders = self._names[name]
            del holders[key_id]
            if not holders:
                del self._names[name]
            self._openings[name[0]] -= 1
            if not self._openings[name[0]]:
                del self._openings[name[0]]
        for memory_id in self._by_key.pop(key_id):
            self._by_memory.discard(memory_id, key_id)

    def _tie(self, key_id: str, memory_id: str) -> None:
        self._by_key.add(key_id, memory_id)
        self._by_memory.add(memory_id, key_id)

    def _keys_in(self, words: Sequence[frozenset[str]]) -> Iterable[str]:
        for start, forms in enumerate(words):
            pending: list[tuple[str, ...]] = [(form,) for form in forms if form in self._openings]
            for end in range(start + 1, min(start + self._longest, len(words)) + 1):
                for name in pending:
                    yield from self._names.get(name, ())
                if not pending or end == len(words):
                    break
                pending = [(*name, form) for name in pending for form in words[end]]

    def _holding(self, name: tuple[str, ...]) -> list[str]:
        postings = [self._postings.get(word) for word in name]
        if not all(postings):
            return []
        smallest = min(postings, key=len)
        return [memory_id for memory_id in smallest if _stands_in(name, self._texts[memory_id])]


def _stands_in(name: tuple[str, ...], words: Sequence[frozenset[str]]) -> bool:
    first, size = name[0], len(name)
    return any(
        first in words[start] and all(name[offset] in words[start + offset] for offset in range(1, size))
        for start in range(len(words) - size + 1)
    )
