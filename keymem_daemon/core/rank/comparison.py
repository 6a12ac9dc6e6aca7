"""Questions that compare two things by name, and what their answer needs: a memory of each.

A comparison names two keys side by side ("A or B", "A and B", "A와 B 중") and says that it compares: by "or" or "than" itself, else by
a word such as both, same, first, 중, 더. What it compares by is the question without the two names. Ranking has no part in
deciding this; what is chosen goes right behind the best memory, and no score changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from keymem_daemon.core.rank.keymatch import LITERAL_CHARS, LiteralMatch
from keymem_daemon.core.text import fold

_CHOOSING: Final = frozenset({"or", "than", "vs", "versus", "또는", "혹은", "아니면", "보다"})
_JOINT: Final = re.compile(
    r"[\s\"“”‘’',?:;()]*(?:이|가|은|는)?(?:(?:[a-z]+er|(?:more|less) [a-z]+) (?=than))?"
    r"(?P<word>or|and|than|vs|versus|또는|혹은|아니면|보다|와|과|랑|이랑|하고|이나|나|,)"
    r"[.\s\"“”‘’',?:;()]*(?:(?:the|a|an|that of the|that of) )?[\"“‘']*"
)
_COMPARES: Final = re.compile(
    r"\b(?:both|same|common|similar|different|differences?|differ|compared?|comparison|between|more|less|fewer|most|first|last|share"
    r"|(?:old|young|new|earli|lat|bigg|small|tall|long|short|high|low|fast|slow|cheap|near|furth|farth|great|heavi|light)(?:er|est)|larger|largest"
    r"|better|best|worse|worst|either|neither)\b"
    r"|중(?:에|에서)?(?=\s)|둘|더\s|같은|같이|다른|먼저|모두|차이|비교|공통|누가"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The keys compared, in the order of the question, and the question without their names."""

    sides: tuple[str, str]
    dimension: str


def comparison_in(text: str, named: Mapping[str, LiteralMatch]) -> Comparison | None:
    """The comparison that ``text`` makes between two of the keys it names, the first such pair; ``None`` for any other question."""
    folded = fold(text)[:LITERAL_CHARS]
    places = sorted(
        (at, at + len(match.surface), key_id)
        for key_id, match in named.items()
        if match.weight == 1.0 and (at := folded.find(match.surface)) >= 0
    )
    for (start, end, first), (after, stop, second) in combinations(places, 2):
        joint = _JOINT.fullmatch(folded[end:after]) if end <= after else None
        if joint is None:
            continue
        between = folded[end:after]
        rest = " ".join(f"{folded[:start]} {between[: joint.start('word')]} {between[joint.end('word') :]} {folded[stop:]}".split())
        if joint["word"] in _CHOOSING or _COMPARES.search(f"{rest} "):
            return Comparison((first, second), rest)
    return None


def with_both_sides(
    chosen: Sequence[tuple[str, float]],
    support: Sequence[Mapping[str, float]],
    theirs: Sequence[Collection[str]],
    scores: Mapping[str, float],
) -> list[tuple[str, float]]:
    """``chosen`` (memories with scores, best first) with the best memory of each side right behind the first; as many as before.

    ``support`` says per side how well each of its memories answers, ``theirs`` which memories are a side's at all: one side's
    memory that is the other's too is taken for a side only when that has no memory of its own.
    """
    if not chosen:
        return []
    wanted: list[str] = []
    for place, values in enumerate(support):
        others = {m for other, members in enumerate(theirs) if other != place for m in members}
        own = {m: value for m, value in values.items() if m not in others} or dict(values)
        if own:
            wanted.append(min(own, key=lambda m: (-own[m], m)))
    known = dict(chosen)
    first = chosen[0][0]
    front = [m for m in dict.fromkeys(wanted) if m != first]
    order = [first, *front, *(m for m, _ in chosen if m != first and m not in front)]
    return [(m, known.get(m, scores.get(m, 0.0))) for m in order[: len(chosen)]]
