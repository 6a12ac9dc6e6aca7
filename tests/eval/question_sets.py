"""A labelled set: spaces of memories, and questions with the memories that answer them. Reading only; nothing is measured here.

The format is one JSON object: ``dataset`` and ``spaces``, each with ``namespace``, ``memories`` (``ref``, ``content``, ``keys``,
``key_types``) and ``questions`` (``id``, ``query``, ``gold``: refs, ``category``). A question without gold has no answer in its
space: finding nothing is right.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LabelledMemory:
    """What is saved of a memory, and the name that questions know it by."""

    ref: str
    content: str
    keys: tuple[str, ...]
    key_types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """``gold`` are refs of its space; none means that nothing there answers it."""

    id: str
    query: str
    gold: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Space:
    """One namespace and what is asked of it."""

    namespace: str
    memories: tuple[LabelledMemory, ...]
    questions: tuple[Question, ...]

    @property
    def answerable(self) -> tuple[Question, ...]:
        """The questions that something answers."""
        return tuple(question for question in self.questions if question.gold)

    def main_names(self, limit: int = 2) -> list[str]:
        """The names that most memories hang on, in that order: whom the space is about."""
        counts = Counter(key for memory in self.memories for key in memory.keys if memory.key_types.get(key) == "name")
        return [name for name, _ in counts.most_common(limit)]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set and what it is called."""

    name: str
    dataset: str
    spaces: tuple[Space, ...]

    @property
    def answerable(self) -> int:
        """How many questions something answers."""
        return sum(len(space.answerable) for space in self.spaces)

    @property
    def size(self) -> int:
        """How many memories there are."""
        return sum(len(space.memories) for space in self.spaces)

    def limited(self, questions: int | None) -> QuestionSet:
        """With at most so many questions a space, spread evenly over it."""
        if questions is None:
            return self
        spaces = []
        for space in self.spaces:
            count = min(questions, len(space.questions))
            picked = tuple(space.questions[i * len(space.questions) // count] for i in range(count)) if count else ()
            spaces.append(replace(space, questions=picked))
        return replace(self, spaces=tuple(spaces))

    def shuffled(self, seed: int) -> QuestionSet:
        """With the memories of each space in another order: what a ranking owes to the order of saving is lost."""
        order = random.Random(seed)  # noqa: S311 - repeatable, no secret
        spaces = [replace(space, memories=tuple(order.sample(space.memories, len(space.memories)))) for space in self.spaces]
        return replace(self, spaces=tuple(spaces))


def load_set(path: Path) -> QuestionSet:
    """The set in that file. Raises `OSError`, or `ValueError` and `KeyError` for what is no such set."""
    raw = json.loads(path.read_text("utf-8"))
    spaces = tuple(
        Space(
            space["namespace"],
            tuple(LabelledMemory(m["ref"], m["content"], tuple(m["keys"]), dict(m["key_types"])) for m in space["memories"]),
            tuple(Question(q["id"], q["query"], frozenset(q["gold"]), str(q["category"])) for q in space["questions"]),
        )
        for space in raw["spaces"]
    )
    for space in spaces:
        unknown = {ref for q in space.questions for ref in q.gold} - {m.ref for m in space.memories}
        if unknown:
            raise ValueError(f"{path.name}: {space.namespace} has no memories {sorted(unknown)}")
    return QuestionSet(path.stem, str(raw["dataset"]), spaces)


def load_sets(paths: Sequence[Path]) -> list[QuestionSet]:
    """The sets in those files."""
    return [load_set(path) for path in paths]
