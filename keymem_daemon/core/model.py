"""The records of the memory: memories, keys, links and who said so.

Values only: frozen, compared by value, without behaviour beyond what a single record can say of itself.
Times are seconds since the Unix epoch, UTC. Identifiers are 12 lower-case hexadecimal characters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

KeyType = Literal["concept", "name", "proper_noun"]
DecayProfile = Literal["transient", "standard", "stable", "permanent"]
Evidence = Literal["user", "authoritative_source", "observation"]

KEY_TYPES: Final[tuple[KeyType, ...]] = get_args(KeyType)
DECAY_PROFILES: Final[tuple[DecayProfile, ...]] = get_args(DecayProfile)
EVIDENCE_KINDS: Final[tuple[Evidence, ...]] = get_args(Evidence)

DEFAULT_NAMESPACE: Final = "default"
WEIGHT_AT_BIRTH: Final = 1.0
WEIGHT_MIN: Final = 0.1
WEIGHT_MAX: Final = 3.0

Scope = frozenset[str] | None
"""The folded namespaces a read may see; ``None`` means all of them."""


@dataclass(frozen=True, slots=True)
class LearnedAlias:
    """An alias that use has taught: what it says, when it was learned (epoch seconds) and how often it was hit.

    ``namespaces``: folded, those in whose memories it has led somewhere; a read of others does not show it.
    """

    alias: str
    added_at: float
    hits: int = 0
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AliasCandidate:
    """A query that reached a key weakly: how often a memory of the (folded) namespace was then read through it, and when last."""

    query: str
    count: int
    last_seen: float
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A short concept. ``aliases`` are explicit or merged forms; ``learned`` came from use."""

    id: str
    concept: str
    key_type: KeyType = "concept"
    aliases: tuple[str, ...] = ()
    learned: tuple[LearnedAlias, ...] = ()
    candidates: tuple[AliasCandidate, ...] = ()

    @property
    def surfaces(self) -> tuple[str, ...]:
        """Every string that is this key, the concept first."""
        return (self.concept, *self.aliases, *(learned.alias for learned in self.learned))


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered text with all that is known about it except its keys, which are links.

    ``superseded_by`` may name a memory that is gone: what was corrected stays inactive when its successor is forgotten.
    """

    id: str
    content: str
    namespace: str
    created_at: float
    last_confirmed_at: float
    depth: float = 0.0
    access_count: int = 0
    last_accessed: float | None = None
    confirmation_count: int = 0
    decay_profile: DecayProfile = "standard"
    expires_at: float | None = None
    links: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    supersedes: str | None = None
    superseded_by: str | None = None
    source: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """The tie of a key to a memory. ``position`` orders a memory's keys; the first is what it is about.

    ``surfaces`` are the words with which the memory was tied to the key; none means: with the key's concept as it is written.
    A key is of all namespaces, its words are of those that said them.
    """

    key_id: str
    memory_id: str
    weight: float = WEIGHT_AT_BIRTH
    position: int = 0
    surfaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asked for a change, as claimed: recorded, never trusted."""

    tool: str
    session: str | None = None
    host_agent: str | None = None
    host_session: str | None = None
    host_turn: str | None = None
    host_prompt: str | None = None
