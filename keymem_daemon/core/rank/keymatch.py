"""Which keys a text names, from its words alone: literally, in either number, or by the lexicon's word for the same thing.

A literal match inside a longer literal match counts half ("York" in "New York"): it is there, but it is not what was said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from keymem_daemon.core.graph import Graph
from keymem_daemon.core.lexicon import Lexicon
from keymem_daemon.core.merging import merge_groups
from keymem_daemon.core.model import Scope
from keymem_daemon.core.text import candidate_spans, fold

MatchType = Literal["concept", "alias", "semantic", "lexical"]

LITERAL_CHARS: Final = 2_000
INSIDE_LONGER: Final = 0.5


@dataclass(frozen=True, slots=True)
class LiteralMatch:
    """A key that stands in the text. ``weight`` is 1, or a half inside a longer match; ``learned`` says that use taught it."""

    key_id: str
    match_type: Literal["concept", "alias"]
    weight: float
    surface: str


def literal_matches(graph: Graph, lexicon: Lexicon, text: str, scope: Scope = None) -> dict[str, LiteralMatch]:
    """The keys named by ``text`` (its first 2,000 characters), by key id; each with its best match.

    All words of a key name it, whoever said them; ``concept`` is the word that the scope's memories have for it. A longer match takes from a
    shorter one inside it only as a key of the scope: what is stored elsewhere changes nothing here.
    """
    folded = fold(text)[:LITERAL_CHARS]
    found: list[tuple[int, int, str, bool]] = []
    for start, end in candidate_spans(folded):
        surface = folded[start:end]
        key_id = graph.key_id_of_folded(surface)
        if key_id is not None:
            found.append((start, end, key_id, fold(graph.name_in(key_id, scope)) == surface))
            continue
        if not surface[-1].isascii() and not lexicon.may_know(surface):
            continue  # no plural and no word of the lexicon: every stretch of a text without spaces is asked for
        for group in merge_groups(surface, lexicon):
            concepts = [k for k in graph.keys_in_group(group) if graph.keys[k].key_type == "concept"]
            found.extend((start, end, k, False) for k in concepts)
    spans = [(start, end) for start, end, key_id, _ in found if graph.memory_count(key_id, scope)]
    matches: dict[str, LiteralMatch] = {}
    for start, end, key_id, is_concept in found:
        inside = any(s <= start and end <= e and (e - s) > (end - start) for s, e in spans)
        match = LiteralMatch(key_id, "concept" if is_concept else "alias", INSIDE_LONGER if inside else 1.0, folded[start:end])
        before = matches.get(key_id)
        if before is None or before.weight < match.weight:
            matches[key_id] = match
    return matches


def inverse_frequency(graph: Graph, key_id: str, scope: frozenset[str] | None, hub_min_links: int) -> float:
    """IDF of a key: one over the number of active memories it links in the scope, half of that for a hub that is a name."""
    count = graph.memory_count(key_id, scope)
    if not count:
        return 0.0
    hub_name = count >= hub_min_links and graph.keys[key_id].key_type != "concept"
    return (0.5 if hub_name else 1.0) / count


def normalised(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores divided by the best of them; empty for none above zero."""
    best = max(scores.values(), default=0.0)
    return {name: value / best for name, value in scores.items()} if best > 0 else {}


def top(scores: Mapping[str, float], limit: int) -> list[str]:
    """Names by score, best first, ties by name."""
    if 0 < limit < len(scores) // 2:
        # Numbers alone sort several times faster: they say who can be among the first at all.
        last = sorted(scores.values(), reverse=True)[limit - 1]
        contenders = [name for name, value in scores.items() if value >= last]
    else:
        contenders = list(scores)
    return sorted(contenders, key=lambda name: (-scores[name], name))[:limit]
