"""What is measured: an engine in this process, or a daemon that is running. Both answer the same few calls.

In the process the real parts are used (real encoder, real morphemes, the rules and indexes of the daemon) over the store that
keeps nothing, and direct retrieval does not learn, so that every question meets the same store and variants can be compared on
one import. A daemon learns from what it is asked, as it does for its users.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import httpx
import numpy as np
from question_sets import LabelledMemory, QuestionSet

from keymem_daemon.core.lexicon import load_lexicon
from keymem_daemon.core.model import Actor
from keymem_daemon.core.profiles import PROFILES
from keymem_daemon.embed.builtin import DIMENSIONS, BuiltinEncoder
from keymem_daemon.index.korean import KoreanAnalyzer
from keymem_daemon.ports import Matrix
from keymem_daemon.service.caller import Caller
from keymem_daemon.service.engine import Engine
from keymem_daemon.service.inject import inject
from keymem_daemon.service.recall import recall
from keymem_daemon.service.remember import remember_batch
from keymem_daemon.service.requests import RememberItem
from keymem_daemon.service.retrieve import retrieve
from keymem_daemon.settings import load_settings
from keymem_daemon.store.memory import MemoryStore

BATCH: Final = 100
SETTLED_WITHIN_S: Final = 900.0
_HANGUL: Final = re.compile("[가-힣]")

Result = dict[str, Any]
Ids = dict[tuple[str, str], str]
"""Memory ids by namespace and ref."""


class Subject(Protocol):
    """Something that remembers and finds."""

    async def remember(self, namespace: str, memories: Sequence[LabelledMemory]) -> list[str]:
        """Save; the ids in order."""
        ...

    async def settled(self) -> None:
        """Return when everything that was saved is embedded."""
        ...

    async def retrieve(self, query: str, namespace: str, top_k: int) -> list[str]:
        """Ids by direct retrieval, best first."""
        ...

    async def recall(self, query: str, context: str | None, namespace: str) -> Result:
        """The answer to an agent's recall."""
        ...

    async def inject(self, prompt: str, namespace: str) -> list[Result]:
        """The memories that the prompt hook would add."""
        ...


@dataclass(slots=True)
class RememberingEncoder:
    """The builtin encoder, which embeds a text once a run."""

    inner: BuiltinEncoder = field(default_factory=BuiltinEncoder)
    known: dict[str, Matrix] = field(default_factory=dict)
    backend: str = BuiltinEncoder.backend
    model: str = BuiltinEncoder.model
    fingerprint: str = BuiltinEncoder.fingerprint
    dimensions: int = DIMENSIONS

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return self.inner.ready

    def load(self) -> None:
        """Load the model."""
        self.inner.load()

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (n, 512), float32, each of length 1."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(fresh, self.inner.encode(fresh), strict=True))
        if not texts:
            return self.inner.encode([])
        found: Matrix = np.stack([self.known[text] for text in texts])
        return found


class StandingClock:
    """Stands until it is moved; a fixed beginning makes runs equal."""

    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def now(self) -> float:
        """Epoch seconds."""
        return self.at


class CountedIds:
    """000000000001, 000000000002, …"""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> str:
        self._last += 1
        return f"{self._last:012x}"


@dataclass(slots=True)
class EngineSubject:
    """An engine in this process. ``engine.weights`` and ``engine.settings`` may be changed between questions."""

    engine: Engine
    clock: StandingClock
    korean: KoreanAnalyzer | None
    session: str = "measuring"

    def caller(self) -> Caller:
        """Who asks."""
        return Caller(Actor(tool="measuring", session=self.session))

    async def remember(self, namespace: str, memories: Sequence[LabelledMemory]) -> list[str]:
        """Save as `POST /api/remember` does."""
        items = [RememberItem(m.content, m.keys, m.key_types, namespace) for m in memories]
        answer = await remember_batch(self.engine, self.caller(), items)
        return [_saved(result) for result in answer["results"]]

    async def settled(self) -> None:
        """Return when nothing is left to embed or to read again."""
        async with asyncio.timeout(SETTLED_WITHIN_S):
            while not self._is_settled():  # noqa: ASYNC110 - an engine tells nobody that it has nothing left to do
                await asyncio.sleep(0.02)

    def _is_settled(self) -> bool:
        catalog = self.engine.catalog
        korean = self.korean is None or self.korean.state in {"ready", "failed"}
        return korean and not catalog.lexical.stale_documents() and not any(catalog.backlog) and self.engine.light.ready

    async def retrieve(self, query: str, namespace: str, top_k: int) -> list[str]:
        """Direct retrieval that learns nothing."""
        answer = await retrieve(self.engine, self.caller(), query, namespace=namespace, top_k=top_k, learn=False)
        return [memory["id"] for memory in answer["memories"]]

    async def recall(self, query: str, context: str | None, namespace: str) -> Result:
        """As the tool."""
        return await recall(self.engine, self.caller(), query, context, namespace)

    async def inject(self, prompt: str, namespace: str) -> list[Result]:
        """As the hook, of a session that has seen nothing yet, with time enough."""
        answer = await inject(self.engine, self.caller(), prompt, None, namespace, budget_ms=60_000)
        memories: list[Result] = answer["memories"]
        return memories


@asynccontextmanager
async def engine_subject(encoder: RememberingEncoder, *, korean: bool) -> AsyncIterator[EngineSubject]:
    """An open engine over nothing, with its background running; ``korean`` starts the morphological analyser."""
    analyzer = KoreanAnalyzer() if korean else None
    if analyzer is not None:
        analyzer.load()
    clock = StandingClock()
    engine = Engine(
        store=MemoryStore(),
        encoder=encoder,
        light_encoder=encoder,
        korean=analyzer,
        lexicon=load_lexicon(),
        profile=PROFILES["builtin"],
        settings=load_settings({}),
        clock=clock,
        new_id=CountedIds(),
    )
    subject = EngineSubject(engine, clock, analyzer)
    async with asyncio.TaskGroup() as tasks:
        await engine.open()
        tasks.create_task(engine.background())
        try:
            yield subject
        finally:
            await engine.close()


@dataclass(slots=True)
class DaemonSubject:
    """A running daemon over its socket, or over loopback where it has none."""

    client: httpx.AsyncClient

    async def _post(self, path: str, body: Mapping[str, object]) -> Result:
        answer = await self.client.post(path, json=body)
        if answer.status_code != httpx.codes.OK:
            raise RuntimeError(f"{path}: HTTP {answer.status_code}: {answer.text[:300]}")
        result: Result = answer.json()
        return result

    async def remember(self, namespace: str, memories: Sequence[LabelledMemory]) -> list[str]:
        """Save a batch."""
        items = [{"content": m.content, "keys": list(m.keys), "key_types": dict(m.key_types), "namespace": namespace} for m in memories]
        return [_saved(result) for result in (await self._post("/api/remember", {"items": items}))["results"]]

    async def settled(self) -> None:
        """Return when the daemon has no backlog."""
        async with asyncio.timeout(SETTLED_WITHIN_S):
            while True:
                models = (await self.client.get("/status")).json()["models"]
                if not any(models["backlog"].values()) and models["semantic"] == "ready":
                    return
                await asyncio.sleep(0.1)

    async def retrieve(self, query: str, namespace: str, top_k: int) -> list[str]:
        """Direct retrieval, which learns."""
        answer = await self._post("/api/retrieve", {"query": query, "namespace": namespace, "top_k": top_k})
        return [memory["id"] for memory in answer["memories"]]

    async def recall(self, query: str, context: str | None, namespace: str) -> Result:
        """As the tool."""
        body = {"query": query, "namespace": namespace} | ({} if context is None else {"context": context})
        return await self._post("/api/recall", body)

    async def inject(self, prompt: str, namespace: str) -> list[Result]:
        """As the hook, of no session, with time enough."""
        answer = await self._post("/inject", {"prompt": prompt, "namespace": namespace, "budget_ms": 60_000})
        memories: list[Result] = answer["memories"]
        return memories


@asynccontextmanager
async def daemon_subject(data_dir: Path) -> AsyncIterator[DaemonSubject]:
    """The daemon that serves this directory; raises `OSError` when none has published itself there."""
    published = json.loads((data_dir / "daemon.json").read_text("utf-8"))
    socket, token = published.get("socket"), published.get("token")
    transport = httpx.AsyncHTTPTransport(uds=socket) if socket else httpx.AsyncHTTPTransport()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = "http://localhost" if socket else f"http://127.0.0.1:{published['port']}"
    async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=120.0, trust_env=False) as client:
        yield DaemonSubject(client)


@dataclass(frozen=True, slots=True)
class Imported:
    """The ids of a set's memories, and how many were saved a second."""

    ids: Ids
    memories_per_s: float


async def import_set(subject: Subject, questions: QuestionSet) -> Imported:
    """Save every memory of the set, in its order, a hundred at a time."""
    ids: Ids = {}
    began = time.perf_counter()
    for space in questions.spaces:
        for start in range(0, len(space.memories), BATCH):
            part = space.memories[start : start + BATCH]
            for memory, memory_id in zip(part, await subject.remember(space.namespace, part), strict=True):
                ids[(space.namespace, memory.ref)] = memory_id
    took = time.perf_counter() - began
    await subject.settled()
    return Imported(ids, len(ids) / max(took, 1e-9))


def has_korean(sets: Sequence[QuestionSet]) -> bool:
    """Whether any text of the sets is Korean."""
    return any(
        _HANGUL.search(text)
        for questions in sets
        for space in questions.spaces
        for text in (*(m.content for m in space.memories), *(q.query for q in space.questions))
    )


def _saved(result: Mapping[str, Any]) -> str:
    if "saved" not in result:
        raise RuntimeError(f"not saved: {result}")
    return str(result["saved"])
