"""What the use cases need from the outside, as protocols. The core decides, these carry it out.

Every implementation of a port passes the same contract tests; nothing above knows which one it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keymem_daemon.core.changes import Action, Change, Commit
from keymem_daemon.core.model import Actor, Key, Link, Memory

Matrix = npt.NDArray[np.float32]


class Clock(Protocol):
    """The wall clock."""

    def now(self) -> float:
        """Seconds since the Unix epoch, UTC."""
        ...


class Monotonic(Protocol):
    """A clock that never goes backwards, for measuring how long something takes."""

    def __call__(self) -> float:
        """Seconds since some moment of its own."""
        ...


class NewId(Protocol):
    """A source of identifiers."""

    def __call__(self) -> str:
        """A new identifier: 12 lower-case hexadecimal characters, never given before."""
        ...


class Encoder(Protocol):
    """An embedding model: blocking, thread-safe, deterministic."""

    backend: str
    model: str
    fingerprint: str
    dimensions: int

    @property
    def ready(self) -> bool:
        """Whether `encode` will answer without loading anything first."""
        ...

    def load(self) -> None:
        """Load now what the first `encode` would load."""
        ...

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (n, dimensions), float32, each of length 1; (0, dimensions) for no text."""
        ...


class VectorStore(Protocol):
    """The persistent cache of vectors by the space they belong to and the text they are of."""

    def load_vectors(self, fingerprint: str, texts: Sequence[str]) -> dict[str, bytes]:
        """The stored bytes (float16, little endian) of those texts that are there."""
        ...

    def save_vectors(self, fingerprint: str, items: Mapping[str, bytes]) -> None:
        """Keep these; durable at the store's leisure, since every vector can be computed again."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a store holds of the graph, in an order in which it can be applied: memories, keys, links."""

    memories: Iterable[Memory]
    keys: Iterable[Key]
    links: Iterable[Link]


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One line of history: what one change did to one memory or key, before and after, as JSON objects."""

    seq: int
    at: float
    action: Action
    actor: Actor
    entity: str
    entity_id: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    note: str | None


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What `status` tells of a store: sizes in bytes, times in epoch seconds."""

    path: str
    size_bytes: int
    schema_version: int
    last_write_at: float | None
    last_backup_at: float | None
    integrity: str
    problems: tuple[str, ...] = field(default=())


class Store(VectorStore, Protocol):
    """The system of record. All methods block; the daemon calls them from one worker thread, never two at once."""

    def load(self) -> Iterator[Change]:
        """Changes that build the whole graph from an empty one. What is damaged is set aside and reported, not raised."""
        ...

    def commit(self, commits: Sequence[Commit], *, durable: bool = True) -> None:
        """Make all of ``commits`` happen, in order, or none. On return they survive a kill; with ``durable`` also a power cut.

        Raises `StorageFailed` (disk full, I/O error) or `ReadOnly`; then nothing changed.
        """
        ...

    def response_to(self, request_id: str) -> str | None:
        """The recorded response (JSON) of a request that has been carried out, else ``None``."""
        ...

    def forget_requests_before(self, at: float) -> int:
        """Drop recorded responses older than ``at`` (epoch seconds); returns how many."""
        ...

    def history(self, entity_id: str | None, limit: int, before_seq: int | None = None) -> list[ChangeRecord]:
        """What happened, newest first, of one memory or key or of all."""
        ...

    def remembers(self, memory_id: str) -> bool:
        """Whether history still has a text of a memory of that id, be it there or not."""
        ...

    def purge(self, memory_ids: Sequence[str], surfaces: Sequence[str]) -> None:
        """Remove every trace of the text of these memories and of key strings that went with them: rows, history, vectors, free pages, WAL.

        Of a memory that exists no more, and of what it replaced that exists no more, history says what to remove. What an earlier
        call or commit left unfinished is finished, too; with nothing named that is all.
        """
        ...

    def meta(self, name: str) -> str | None:
        """A named value kept beside the graph (such as the embedding fingerprint)."""
        ...

    def set_meta(self, name: str, value: str) -> None:
        """Keep a named value."""
        ...

    def report(self) -> StoreReport:
        """Health and sizes, without walking the data."""
        ...

    def backup(self, path: str) -> None:
        """Write a consistent copy to ``path`` while the store is in use."""
        ...

    def tidy(self, *, idle: bool) -> None:
        """Do now what nobody waits for, if it should not be put off; ``idle``: if it is worth doing at all."""
        ...

    def close(self) -> None:
        """Flush and let go of the files."""
        ...


@dataclass(frozen=True, slots=True)
class HostCall:
    """What a call says of the host agent it comes from; all of it claims.

    ``session`` is a UUID in lower case, ``homes`` where the client's hosts keep their files, by agent; ``prompt`` is known already;
    ``hook_prompt`` is the last one of the session that a hook named, which this call most likely follows from.
    """

    agent: str | None = None
    session: str | None = None
    prompt: str | None = None
    hook_prompt: str | None = None
    tool_use_id: str | None = None
    cwd: str | None = None
    homes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostTurn:
    """Where in a host's session a call happened; ``None`` for what is not known. ``turn`` counts prose turns from 1."""

    agent: str | None = None
    session: str | None = None
    turn: int | None = None
    prompt: str | None = None


class HostTranscripts(Protocol):
    """The transcripts that host agents keep of their sessions."""

    async def turn(self, call: HostCall) -> HostTurn:
        """The turn in which ``call`` was made. Answers within a fraction of a second and never raises."""
        ...


class NamespaceMap(Protocol):
    """Which namespaces a working directory stands for."""

    def namespaces_for(self, cwd: str | None) -> tuple[str, ...] | None:
        """Those of ``cwd`` (absolute), the one to write to first; ``None`` when nothing maps it. Blocks for file access, never raises."""
        ...

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the mappings, as of the last look."""
        ...
