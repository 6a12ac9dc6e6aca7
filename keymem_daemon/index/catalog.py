"""All indexes of the graph in one hand: they follow it change by change and can be rebuilt from it at any time.

`apply` is told what the graph has just become. Lexical postings, mention links and scope follow at once; vectors follow when
they are known (`put_vectors`), and what lacks one is listed in the backlog for whoever embeds in the background. An index
that followed every change equals one built anew from the graph (a test holds that).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from keymem_daemon.core.changes import (
    Change,
    KeyAdded,
    KeyChanged,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.model import Key
from keymem_daemon.core.text import fold
from keymem_daemon.index.directory import KeyDirectory
from keymem_daemon.index.lexical import LexicalIndex
from keymem_daemon.index.mentions import MentionIndex
from keymem_daemon.index.nearest import NearestCache
from keymem_daemon.index.sentences import sentences
from keymem_daemon.index.sequence import SaveSequence
from keymem_daemon.index.tokens import Tokenizer
from keymem_daemon.index.vectors import VectorIndex, WordVectors
from keymem_daemon.ports import Matrix

SENTENCES_PER_MEMORY = 64
MEMORIES_A_STEP = 8
CHARACTERS_A_STEP = 8_000


class Catalog:
    """The indexes. ``keys`` holds one vector per folded surface of a key, ``words`` one per distinct word of the texts."""

    def __init__(self, graph: Graph, tokenizer: Tokenizer, key_dimensions: int, word_dimensions: int) -> None:
        self._graph = graph
        self.tokenizer = tokenizer
        self.lexical = LexicalIndex()
        self.mentions = MentionIndex()
        self.directory = KeyDirectory(graph)
        self.sequence = SaveSequence()
        self.keys = VectorIndex(key_dimensions)
        self.words = WordVectors(word_dimensions)
        self.near_words = NearestCache(self.words)
        self.near_keys = NearestCache(self.keys)
        self._indexed: dict[str, int] = {}
        self._surfaces: dict[str, tuple[str, ...]] = {}
        self._wanted_keys: dict[str, str] = {}
        self._wanted_words: dict[str, None] = {}
        self._wanted_sentences: dict[str, None] = {}
        self._word_terms: dict[str, str] = {}

    # Following the graph.

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow changes that the graph has made."""
        for _ in self.steps(changes):
            pass

    def steps(self, changes: Sequence[Change]) -> Iterator[None]:
        """As `apply`, in steps of a few milliseconds; the graph must not change between them.

        Until the last step an index may still name a memory that the graph has no more, and not yet one that it has.
        """
        memories: dict[str, None] = {}
        keys: dict[str, None] = {}
        for change in changes:
            match change:
                case MemoryAdded(memory) | MemoryChanged(memory):
                    memories[memory.id] = None
                case MemoryRemoved(memory_id):
                    memories[memory_id] = None
                case KeyAdded(key) | KeyChanged(key):
                    self._follow_key(key)
                case KeyRemoved(key_id):
                    self._drop_key(key_id)
                    keys[key_id] = None
                case LinkSet(link):
                    # Most links that are set have only changed their weight, which no index knows.
                    if self._indexed.get(link.memory_id) != self._keys_hash(link.memory_id):
                        memories[link.memory_id] = None
                        keys[link.key_id] = None
                case LinkRemoved(key_id, memory_id):
                    memories[memory_id] = None
                    keys[key_id] = None
                case _:
                    assert_never(change)
        for memory_id in memories:
            keys.update(dict.fromkeys(self._graph.key_ids_of(memory_id)))
        self.directory.follow(keys)
        step: list[str] = []
        characters = 0
        for memory_id in memories:
            known = self._graph.memory(memory_id)
            step.append(memory_id)
            characters += 0 if known is None else len(known.content)
            if len(step) >= MEMORIES_A_STEP or characters >= CHARACTERS_A_STEP:
                yield from self._follow_steps(step)
                step, characters = [], 0
                yield
        yield from self._follow_steps(step)

    def settle(self, expired: Iterable[str]) -> None:
        """These memories have just expired: nothing finds them any more."""
        for memory_id in expired:
            self._drop_memory(memory_id)
            self.directory.follow(self._graph.key_ids_of(memory_id))
        self._follow_vocabulary()

    def reanalyze(self, limit: int) -> int:
        """Analyse again what was analysed before Kiwi was there, at most ``limit`` documents and few long ones; returns how many are left."""
        now: list[str] = []
        characters = 0
        for memory_id in self.lexical.stale_documents(limit):
            now.append(memory_id)
            known = self._graph.memory(memory_id)
            characters += 0 if known is None else len(known.content)
            if characters >= CHARACTERS_A_STEP:
                break
        for memory_id in now:
            self._indexed.pop(memory_id, None)
        self._follow_memories(now)
        return self.lexical.stale_count

    def _follow_memories(self, memory_ids: Iterable[str]) -> None:
        for _ in self._follow_steps(memory_ids):
            pass

    def _follow_steps(self, memory_ids: Iterable[str]) -> Iterator[None]:
        texts: list[tuple[str, str, str, int]] = []
        for memory_id in memory_ids:
            memory = self._graph.memory(memory_id)
            if memory is None or not self._graph.is_active(memory_id):
                self._drop_memory(memory_id)
                continue
            # The text of a memory never changes and neither does a key's concept: its links say whether the document has changed.
            keys = self._keys_hash(memory_id)
            if self._indexed.get(memory_id) == keys:
                continue
            self._indexed[memory_id] = keys
            texts.append((memory_id, fold(memory.namespace), self.document(memory_id), keys))
            self.mentions.put_memory(memory_id, memory.content)
            self.sequence.append(memory_id, fold(memory.namespace))
            self._wanted_sentences[memory_id] = None
            if len(memory.content) >= CHARACTERS_A_STEP:
                yield
        analyses = yield from self.tokenizer.analysis_steps([text for _, _, text, _ in texts])
        for (memory_id, namespace, text, keys), analysis in zip(texts, analyses, strict=True):
            if self._indexed.get(memory_id) != keys:
                continue  # it expired while it was being read
            self.lexical.add(memory_id, namespace, analysis)
            if len(text) >= CHARACTERS_A_STEP:
                yield
                self._follow_vocabulary()
                yield
        self._follow_vocabulary()

    def _keys_hash(self, memory_id: str) -> int:
        return hash(frozenset((link.key_id, link.surfaces) for link in self._graph.key_links(memory_id)))

    def _follow_vocabulary(self) -> None:
        vocabulary = self.lexical.vocabulary_changes()
        for word in vocabulary.removed:
            self._wanted_words.pop(word, None)
            self._word_terms.pop(word, None)
            self.words.remove(word)
        for word, term in vocabulary.added:
            self._word_terms[word] = term
            if word not in self.words:
                self._wanted_words[word] = None

    def _drop_memory(self, memory_id: str) -> None:
        self._indexed.pop(memory_id, None)
        self.sequence.remove(memory_id)
        self.lexical.remove(memory_id)
        self.mentions.remove_memory(memory_id)
        self._wanted_sentences.pop(memory_id, None)

    def _follow_key(self, key: Key) -> None:
        written = {fold(surface): surface for surface in reversed(key.surfaces)}
        surfaces = tuple(reversed(written))
        before = self._surfaces.get(key.id, ())
        if surfaces != before:
            for gone in set(before) - set(surfaces):
                self._drop_surface(gone)
            for new in surfaces:
                if new not in self.keys:
                    self._wanted_keys[new] = written[new]
            self._surfaces[key.id] = surfaces
            self.mentions.put_key(key.id, key.surfaces)

    def _drop_key(self, key_id: str) -> None:
        for surface in self._surfaces.pop(key_id, ()):
            self._drop_surface(surface)
        self.mentions.remove_key(key_id)

    def _drop_surface(self, surface: str) -> None:
        self._wanted_keys.pop(surface, None)
        self.keys.remove(surface)

    # Texts.

    def document(self, memory_id: str) -> str:
        """What the lexical index has of a memory: its content and its keys, in the words that it was saved with."""
        memory = self._graph.memories[memory_id]
        words = (word for link in self._graph.links_of(memory_id) for word in self._graph.words_of(link))
        return "\n".join((memory.content, *words))

    def knows(self, memory_id: str) -> bool:
        """Whether the memory is there, superseded or not."""
        return self._graph.memory(memory_id) is not None

    def sentences_of(self, memory_id: str) -> list[str]:
        """The memory's sentences as they are embedded: each prefixed by the key that it is about; none of a memory that is gone."""
        memory = self._graph.memory(memory_id)
        if memory is None:
            return []
        links = self._graph.links_of(memory_id)
        about = self._graph.words_of(links[0])[0] if links else ""
        found = sentences(memory.content)[:SENTENCES_PER_MEMORY] or [memory.content]
        return [f"{about}: {sentence}" if about else sentence for sentence in found]

    def term_of(self, word: str) -> str:
        """The term that a word of the texts leads to; the word itself when it is not one of them."""
        return self._word_terms.get(word, word)

    # Vectors.

    @property
    def backlog(self) -> tuple[int, int, int]:
        """How many key surfaces, words and memories still wait for vectors."""
        return len(self._wanted_keys), len(self._wanted_words), len(self._wanted_sentences)

    def wanted_keys(self, limit: int) -> dict[str, str]:
        """Surfaces of keys without a vector, folded and as written (what is embedded), oldest first."""
        return {folded: self._wanted_keys[folded] for folded in _first(self._wanted_keys, limit)}

    def wanted_words(self, limit: int) -> list[str]:
        """Words without a vector, oldest first."""
        return _first(self._wanted_words, limit)

    def wanted_sentences(self, limit: int) -> list[str]:
        """Ids of memories whose sentences were not embedded yet, oldest first."""
        return _first(self._wanted_sentences, limit)

    def put_keys(self, vectors: Mapping[str, Matrix]) -> None:
        """Vectors of folded surfaces; of surfaces that are gone or have theirs already they are left out.

        A surface has the vector of the spelling it was first written in, whoever writes it otherwise later.
        """
        for surface, vector in vectors.items():
            if surface in self._wanted_keys:
                del self._wanted_keys[surface]
                self.keys.upsert(surface, vector)

    def put_words(self, vectors: Mapping[str, Matrix]) -> None:
        """Vectors of words; those of words that are gone are left out."""
        for word, vector in vectors.items():
            if word in self._wanted_words:
                del self._wanted_words[word]
                self.words.upsert(word, vector)

    def put_sentences(self, memory_ids: Iterable[str]) -> None:
        """The sentences of these memories have been embedded and are in the vector cache."""
        for memory_id in memory_ids:
            self._wanted_sentences.pop(memory_id, None)

    # Rebuilding.

    @classmethod
    def of(cls, graph: Graph, tokenizer: Tokenizer, key_dimensions: int, word_dimensions: int) -> Catalog:
        """The catalog of a graph, built anew."""
        catalog = cls(graph, tokenizer, key_dimensions, word_dimensions)
        for key in graph.keys.values():
            catalog._follow_key(key)
        catalog._follow_memories(graph.memories)
        catalog.directory.follow(graph.keys)
        return catalog


def _first(wanted: Iterable[str], limit: int) -> list[str]:
    found: list[str] = []
    for name in wanted:
        if len(found) >= limit:
            break
        found.append(name)
    return found
