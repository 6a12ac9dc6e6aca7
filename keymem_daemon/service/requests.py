"""What a write asks for, after its types and before its rules were checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RememberItem:
    """One memory to save. ``ttl_seconds`` is a time to live; ``source`` the caller's own provenance."""

    content: str
    keys: tuple[str, ...]
    key_types: Mapping[str, str] = field(default_factory=dict)
    namespace: str | None = None
    ttl_seconds: float | None = None
    decay_profile: str | None = None
    related_to: tuple[str, ...] = ()
    source: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """One memory to replace; ``keys`` ``None`` keeps the keys it has."""

    memory_id: str
    content: str
    keys: tuple[str, ...] | None = None
    key_types: Mapping[str, str] = field(default_factory=dict)
    ttl_seconds: float | None = None
    decay_profile: str | None = None
    related_to: tuple[str, ...] = ()
    source: Mapping[str, str] | None = None
    namespace: str | None = None
