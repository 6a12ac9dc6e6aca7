"""What agents ask for, derived from labelled sets by fixed rules: no judgement, no chance, nothing from what the engine finds.

Four kinds. A *question* comes with up to three telling words as the query and itself as the context. The others are short queries
without a context, as for a missing fact: the *rarest* one, two or three words of a question; its *other words*, those that no memory
which answers it has, after the first name that it shares with one; and *wordings*, which people wrote (`home_words.tsv`): synonyms,
paraphrases and translations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from question_sets import Question, QuestionSet, Space
from subjects import Ids

from keymem_daemon.core.decide.learn import ALIAS_CHARS, ALIAS_WORDS, learnable
from keymem_daemon.core.text import fold
from keymem_daemon.index.stopwords import ENGLISH
from keymem_daemon.index.tokens import QueryToken, Tokenizer

WORDINGS: Final = Path(__file__).with_name("home_words.tsv")
OTHER_WORDS: Final = 2

Kind = Literal["question", "rarest", "other words", "wording"]
KINDS: Final[tuple[Kind, ...]] = ("question", "rarest", "other words", "wording")
Frequencies = Callable[[Sequence[str]], Mapping[str, int]]
"""In how many memories of a space each term is."""


@dataclass(frozen=True, slots=True)
class Need:
    """What is asked, in which words, and the memories that answer it. ``context`` is the raw utterance, where the agent has one."""

    kind: Kind
    words: str
    context: str | None
    namespace: str
    gold: frozenset[str]

    @property
    def utterance(self) -> str:
        """What the memory's text is compared with."""
        return self.context or self.words


def questions_of(space: Space, ids: Ids) -> list[tuple[Question, Need]]:
    """Every answerable question of the space, and the need that it is."""
    return [(q, Need("question", telling_words(q.query), q.query, space.namespace, _gold(space, q.gold, ids))) for q in space.answerable]


def short_needs(space: Space, question: Question, place: int, need: Need, tokenizer: Tokenizer, frequencies: Frequencies) -> list[Need]:
    """The short needs of a question; ``place`` is its number within the space, which says how many of its rarest words are asked."""
    tokens = tokenizer.query_terms(question.query)
    counts = frequencies([token.term for token in tokens])
    rare = sorted(tokens, key=lambda token: (counts[token.term], tokens.index(token)))
    texts = {"rarest": _joined(tokens, rare[: 1 + place % ALIAS_WORDS])}
    answering = [memory for memory in space.memories if memory.ref in question.gold]
    has = {term for memory in answering for term in tokenizer.terms(" ".join((memory.content, *memory.keys)))}
    other = [token for token in rare if token.term not in has][:OTHER_WORDS]
    if other:
        names = {part for memory in answering for key, kind in memory.key_types.items() if kind == "name" for part in fold(key).split()}
        named = [token for token in tokens if token.term in has and fold(token.surface) in names][:1]
        texts["other words"] = _joined(tokens, [*named, *other])
    return [
        Need("rarest" if kind == "rarest" else "other words", text, None, need.namespace, need.gold)
        for kind, text in texts.items()
        if learnable(text)
    ]


def wordings(sets: Sequence[QuestionSet], ids: Ids) -> list[Need]:
    """The needs of `home_words.tsv` whose memories were saved; raises `ValueError` for one that is too long to be learned."""
    spaces = {space.namespace: space for questions in sets if questions.name == "home" for space in questions.spaces}
    found: list[Need] = []
    for line in WORDINGS.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            namespace, ref, words = line.split("\t")
            if not learnable(words):
                raise ValueError(f"{WORDINGS.name}: {words!r} is no short query")
            if namespace in spaces:
                found.append(Need("wording", words, None, namespace, _gold(spaces[namespace], frozenset({ref}), ids)))
    return found


def telling_words(query: str) -> str:
    """What an agent would look for: the longest words that are no stop words, as they follow each other."""
    words = [word for word in (w.strip(".,?!\"'()") for w in query.split()) if word and word.casefold() not in ENGLISH]
    telling = set(sorted(range(len(words)), key=lambda i: (-len(words[i]), i))[:ALIAS_WORDS])
    return " ".join(word for i, word in enumerate(words) if i in telling) or query


def _joined(tokens: Sequence[QueryToken], chosen: Sequence[QueryToken]) -> str:
    """The chosen tokens as they follow each other, the last ones left out until they are few enough characters."""
    kept = list(chosen)
    while len(kept) > 1 and sum(len(token.surface) + 1 for token in kept) > ALIAS_CHARS + 1:
        kept.pop()
    return " ".join(token.surface for token in tokens if token in kept)


def _gold(space: Space, refs: frozenset[str], ids: Ids) -> frozenset[str]:
    return frozenset(ids[(space.namespace, ref)] for ref in refs)
