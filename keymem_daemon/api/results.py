"""What each verb returns, as types: the source of the output schemas and of the OpenAPI document.

The services build the values; nothing here computes. Every member may be absent, and a member that is not listed is allowed:
the schemas describe, they do not gate.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

__all__ = [
    "BatchResult",
    "BrowseResult",
    "ConfirmResult",
    "CorrectResult",
    "DismissResult",
    "ForgetResult",
    "InjectResult",
    "ListResult",
    "ReadKeyResult",
    "ReadMemoryResult",
    "RecallResult",
    "RememberResult",
    "RetrieveResult",
    "Unlisted",
]


class Searched(TypedDict, total=False):
    namespaces: list[str] | None
    memory_count: int


class Validity(TypedDict, total=False):
    freshness: float
    status: Literal["fresh", "aging", "stale"]
    age_days: float
    last_confirmed_at: str
    confirmation_count: int
    decay_profile: str
    verification_recommended: bool
    verification_required: bool


class KeyFacts(TypedDict, total=False):
    key_id: str
    concept: str
    memory_count: int
    is_hub: bool


class KeyView(KeyFacts, total=False):
    aliases: list[str]
    key_type: str
    specificity: float


class RecalledKey(KeyView, total=False):
    score: float
    score_kind: str
    match_type: str
    cluster_size: int


class NearestKey(KeyFacts, total=False):
    similarity: float


class ConnectedKey(KeyFacts, total=False):
    relevance: float | None


class Preview(TypedDict, total=False):
    id: str
    content: str
    content_truncated: bool
    namespace: str
    depth: float
    matched_key: KeyFacts
    validity: Validity
    content_relevance: float | None
    connected_keys: list[ConnectedKey]
    auto_confirmed: bool


class Explanation(TypedDict, total=False):
    score: float
    formula: str
    sum: float
    contributions: list[dict[str, Any]]
    factors: list[dict[str, Any]]
    path: list[dict[str, Any]]


class RecallResult(TypedDict, total=False):
    status: Literal["found", "no_match", "empty_namespace"]
    query: str
    namespace: str | None
    keys: list[RecalledKey]
    memories: list[Preview]
    nearest_keys: list[NearestKey]
    next_step: str
    searched: Searched
    namespace_memory_count: int
    semantic: str
    partial: bool
    explain: Explanation
    skipped: list[str]
    truncated: str


class BrowseResult(TypedDict, total=False):
    status: str
    namespace: str
    memory_count: int
    key_count: int
    keys: list[KeyView]
    next_offset: int | None
    searched: Searched
    truncated: str


class Handle(TypedDict, total=False):
    memory_id: str
    score: float
    score_kind: str
    content_relevance: float | None
    link_weight: float
    depth: float
    namespace: str
    keys: list[str]
    validity: Validity


class ReadKeyResult(TypedDict, total=False):
    key: KeyView
    memories: list[Handle]
    total: int
    next_offset: int | None
    scoring: dict[str, str]
    searched: Searched
    truncated: str


class FullMemory(TypedDict, total=False):
    id: str
    content: str
    namespace: str
    created_at: str
    depth: float
    access_count: int
    last_accessed: str | None
    expires_at: str | None
    related_to: list[str]
    supersedes: str | None
    superseded_by: str | None
    source: dict[str, str]


class ReadMemoryResult(TypedDict, total=False):
    memory: FullMemory
    validity: Validity
    keys: list[KeyView]
    via_key_id: str | None
    searched: Searched


class ConfirmResult(TypedDict, total=False):
    memory_id: str
    validity: Validity


class NearKey(TypedDict, total=False):
    your_key: str
    existing_concept: str
    key_id: str
    similarity: float


class Hints(TypedDict, total=False):
    near_keys: list[NearKey]
    phrase_keys: list[str]
    language_note: str
    dropped_keys: list[str]


class RememberResult(TypedDict, total=False):
    saved: str
    deduplicated: bool
    hints: Hints


class BatchResult(TypedDict, total=False):
    results: list[dict[str, Any]]
    truncated: str


class CorrectResult(TypedDict, total=False):
    new_id: str
    superseded: str
    note: str


class DismissResult(TypedDict, total=False):
    link_weight: float
    cancelled_learning: Any


class ForgetResult(TypedDict, total=False):
    deleted: Any
    note: str


class Found(TypedDict, total=False):
    id: str
    score: float
    score_kind: str
    hop: int
    path: list[Any]
    content: str
    namespace: str
    validity: Validity
    why: Explanation


class RetrieveResult(TypedDict, total=False):
    query: str
    namespace: str
    memories: list[Found]
    searched: Searched
    semantic: str
    reranker: str
    partial: bool
    skipped: list[str]
    truncated: str


class Injected(TypedDict, total=False):
    id: str
    content: str
    namespace: str
    relevance: float
    matched_key: KeyFacts | None
    path: list[Any]
    validity: Validity


class InjectResult(TypedDict, total=False):
    memories: list[Injected]
    searched: Searched
    took_ms: float
    partial: bool


class ListResult(TypedDict, total=False):
    memories: list[dict[str, Any]]
    total: int
    next_offset: int | None
    searched: Searched
    truncated: str


class Unlisted(TypedDict, total=False):
    """An object whose members the page about the verb names."""
