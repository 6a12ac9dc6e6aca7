"""The engine: graph, indexes, models and writer of one store, held together. The verbs are functions over it.

Open it, run `background` for as long as it serves, close it. It owns the store's thread. It has no verbs of its own: what it
offers is what every verb needs, namely time, scope upkeep, vectors and the write path.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from keymem_daemon.core.changes import Change, MemoryRemoved
from keymem_daemon.core.decide.keys import KeyRules
from keymem_daemon.core.decide.learn import LearningRules
from keymem_daemon.core.decide.plan import Plan
from keymem_daemon.core.errors import KeymemError
from keymem_daemon.core.freshness import SECONDS_PER_DAY
from keymem_daemon.core.graph import Graph
from keymem_daemon.core.lexicon import Lexicon
from keymem_daemon.core.merging import MARGIN, merge_groups
from keymem_daemon.core.model import Scope
from keymem_daemon.core.profiles import Profile
from keymem_daemon.core.rank.weights import Weights
from keymem_daemon.core.text import fold, scripts
from keymem_daemon.embed.batcher import MicroBatcher
from keymem_daemon.embed.cache import VectorCache
from keymem_daemon.index.catalog import Catalog
from keymem_daemon.index.korean import KoreanAnalyzer
from keymem_daemon.index.tokens import Tokenizer
from keymem_daemon.index.vectors import VectorIndex
from keymem_daemon.ports import Clock, Encoder, Matrix, Monotonic, NewId, Store
from keymem_daemon.service.deadline import Deadline
from keymem_daemon.service.recent import RecentRecalls
from keymem_daemon.service.sentences import SentenceVectors
from keymem_daemon.service.shown import ShownMemories
from keymem_daemon.service.similarity import RequestSimilarity
from keymem_daemon.service.writer import Writer
from keymem_daemon.settings import Settings

T = TypeVar("T")

KEYS_A_STEP = 128
WORDS_A_STEP = 128
MEMORIES_A_STEP = 16
REANALYZED_A_STEP = 32
SOFT_STATE_S = 0.5
BACKLOG_LIMIT = 400
CATCH_UP_S = 3.0
MUCH_WORK = 32
# Once in a store's life, for the first keys in a second script; afterwards the vectors are in the store.
LEXICON_WAIT_S = 5.0


class Engine:
    """One open store. ``graph``, ``catalog``, ``sentences``, ``writer`` and ``recent`` are there once `open` has returned."""

    graph: Graph
    catalog: Catalog
    sentences: SentenceVectors
    writer: Writer

    def __init__(
        self,
        *,
        store: Store,
        encoder: Encoder,
        light_encoder: Encoder,
        korean: KoreanAnalyzer | None,
        lexicon: Lexicon,
        profile: Profile,
        settings: Settings,
        clock: Clock,
        new_id: NewId,
        weights: Weights | None = None,
        give_back: Callable[[], None] | None = None,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        """``give_back`` hands memory that is free in the process back to the system; called, on a thread, when much work is done."""
        self.store = store
        self.weights = weights or Weights()
        self.lexicon = lexicon
        self.profile = profile
        self.settings = settings
        self.clock = clock
        self.new_id = new_id
        self.monotonic = monotonic
        self.recent = RecentRecalls()
        self.shown = ShownMemories()
        self.problems: dict[str, str] = {}
        self.opened = False
        self._korean = korean
        self._store_thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._cache = VectorCache(store, self._store_thread)
        self.light = MicroBatcher(light_encoder, self._cache)
        self.encoder = self.light if encoder is light_encoder else MicroBatcher(encoder, self._cache)
        self._lexicon_vectors = VectorIndex(encoder.dimensions)
        self._lexicon_ready = asyncio.Event()
        self._lexicon_wanted = False
        self._work = asyncio.Event()
        self._soft = asyncio.Event()
        self._progress = asyncio.Condition()
        self._closing = False
        self._give_back = give_back
        self._warmed = False

    # Life.

    async def open(self) -> None:
        """Read the store, build graph and indexes. What takes a model comes afterwards, in `background`."""
        self.graph, self.catalog = await self.in_store(self._load)
        self.sentences = SentenceVectors(self.catalog, self.light)
        self.writer = Writer(self.graph, self, self.store, self.clock, self.in_store)
        if self._korean is not None:
            loop = asyncio.get_running_loop()
            self._korean.when_ready(partial(_wake, loop, self._work))
        self.opened = True
        self._work.set()

    def _load(self) -> tuple[Graph, Catalog]:
        graph = Graph(lambda surface: merge_groups(surface, self.lexicon))
        for change in self.store.load():
            graph.apply(change)
        graph.settle(self.clock.now())
        catalog = Catalog.of(graph, Tokenizer(self._korean), self.encoder.dimensions, self.light.dimensions)
        self.store.set_meta("embedding_fingerprint", self.encoder.fingerprint)
        return graph, catalog

    async def background(self) -> None:
        """What goes on while the engine serves: the writer, the backlog of vectors, the soft state. Ends with `close`."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.writer.run())
            tasks.create_task(self._work_off_backlog())
            tasks.create_task(self._write_soft_state())

    async def close(self) -> None:
        """Finish the writes that are waiting, write the soft state and the vectors, let go of the store."""
        self._closing = True
        self._work.set()
        self._soft.set()
        if self.opened:
            await self.writer.close()
        async with self._progress:
            self._progress.notify_all()
        try:
            await self._cache.flush()
        except KeymemError as failure:
            self.problems["vectors"] = failure.message
        self.light.close()
        self.encoder.close()
        if self._korean is not None:
            self._korean.close()
        await self.in_store(self.store.close)
        self._store_thread.shutdown(wait=False)

    def in_store(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Run a call of the store on its thread."""
        return asyncio.get_running_loop().run_in_executor(self._store_thread, call)

    # Time.

    def now(self) -> float:
        """The time of a request; what has expired by then is out of every index."""
        now = self.clock.now()
        due = self.graph.next_expiry()
        if due is not None and due <= now:
            gone = self.graph.settle(now)
            self.catalog.settle(gone)
            self.sentences.drop(gone)
        return now

    def deadline(self, budget_ms: float | None = None) -> Deadline:
        """When a read that begins now is due: after ``budget_ms``, else after what the settings allow."""
        return Deadline(self.monotonic, (self.settings.recall_deadline_ms if budget_ms is None else budget_ms) / 1000)

    def no_deadline(self) -> Deadline:
        """One that never comes."""
        return Deadline(self.monotonic)

    # Changes.

    def apply(self, changes: Sequence[Change]) -> None:
        """Indexes follow the graph; called by the writer."""
        self.catalog.apply(changes)
        self.sentences.drop(change.memory_id for change in changes if isinstance(change, MemoryRemoved))
        self._work.set()

    def steps(self, changes: Sequence[Change]) -> Iterator[None]:
        """As `apply`, in short steps."""
        self.sentences.drop(change.memory_id for change in changes if isinstance(change, MemoryRemoved))
        yield from self.catalog.steps(changes)
        self._work.set()

    def soften(self, request_id: str | None, decide: Callable[[Plan], None]) -> None:
        """Make soft changes; they reach the store within a second."""
        self.writer.soften(request_id, decide)
        self._soft.set()

    async def key_rules(self, surfaces: Sequence[str]) -> tuple[KeyRules, Mapping[str, Matrix]]:
        """Rules for deciding keys of a request with these surfaces, and the vectors of those that are new."""
        new = {folded: s for s in reversed(surfaces) if self.graph.key_id_of_folded(folded := fold(s)) is None}
        vectors: dict[str, Matrix] = {}
        crosses = self._crosses_scripts(tuple(new))
        if new:
            try:
                vectors = dict(zip(new, await self.encoder.encode(list(new.values())), strict=True))
                if not self._lexicon_ready.is_set() and crosses:
                    self._lexicon_wanted = True
                    self._work.set()
                    await asyncio.wait_for(self._lexicon_ready.wait(), LEXICON_WAIT_S)
            except TimeoutError:
                pass  # without the lexicon's words nothing merges across scripts by similarity: a hint missed, no meaning lost
            except (KeymemError, OSError, ValueError, RuntimeError):
                pass  # a write never waits for a model to be mended: keys stay apart and are embedded later
        lexicon = self._lexicon_vectors if self._lexicon_ready.is_set() else None
        # Where nothing can merge across scripts, synonyms are all that is looked for.
        apart = self.profile.across_scripts_only and not crosses
        minimum = self.profile.key_merge if apart else self.profile.near - MARGIN
        similarity = RequestSimilarity(self.catalog.keys, lexicon, vectors, minimum)
        return KeyRules(self.profile, self.lexicon, similarity, self.new_id), vectors

    def within(self, rules: KeyRules, plan: Plan) -> KeyRules:
        """``rules`` reading keys from the plan's draft: called as each plan is decided."""
        if isinstance(rules.similarity, RequestSimilarity):
            rules.similarity.within(plan.graph)
        return rules

    def discard_vectors(self, texts: Sequence[str]) -> None:
        """Forget the vectors of texts that were purged."""
        self._cache.discard((*texts, *map(fold, texts)))

    @property
    def learning(self) -> LearningRules:
        """The limits of learning that are in force."""
        s = self.settings
        return LearningRules(s.autokey_promote_n, s.autokey_max_aliases, s.autokey_prune_age_days * SECONDS_PER_DAY)

    def _crosses_scripts(self, surfaces: Sequence[str]) -> bool:
        """Whether any of these could merge with a key in another script: only then the lexicon's words are candidates."""
        if not self.profile.across_scripts_only:
            return False
        used = {script for surface in surfaces for script in scripts(surface)}
        return len(used | self.graph.scripts_in(None).keys()) > 1

    async def _embed_lexicon(self) -> None:
        if not self._lexicon_ready.is_set():
            words = list(dict.fromkeys(self.lexicon.words))
            for word, vector in zip(words, await self.encoder.encode(words, background=True), strict=True):
                self._lexicon_vectors.upsert(word, vector)
            self._lexicon_ready.set()

    async def caught_up(self) -> None:
        """Wait until what bulk writes left to embed is little again, a few seconds at most: they are not to outrun the model by far."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                while not self._closing and sum(self.catalog.backlog) > BACKLOG_LIMIT:
                    async with self._progress:
                        await self._progress.wait()

    # Background work.

    async def _work_off_backlog(self) -> None:
        while not self._closing:
            await self._work.wait()
            self._work.clear()
            # Building the indexes at the start is much work, too.
            steps = 0 if self._warmed else MUCH_WORK
            while not self._closing:
                steps += 1
                try:
                    more = await self._work_step()
                    self.problems.pop("background", None)
                except (KeymemError, OSError, ValueError, RuntimeError) as failure:
                    self.problems["background"] = str(failure)
                    more = False
                async with self._progress:
                    self._progress.notify_all()
                if not more:
                    break
            if self._give_back is not None and steps > MUCH_WORK and not self._closing:
                await asyncio.to_thread(self._give_back)
            self._warmed = True

    async def _work_step(self) -> bool:
        """One piece of the most urgent work there is; whether there was any."""
        catalog = self.catalog
        if self._lexicon_wanted and not self._lexicon_ready.is_set():
            await self._embed_lexicon()
            return True
        if surfaces := catalog.wanted_keys(KEYS_A_STEP):
            vectors = await self.encoder.encode(list(surfaces.values()), background=True)
            catalog.put_keys(dict(zip(surfaces, vectors, strict=True)))
            return True
        if self._korean is not None and self._korean.ready and catalog.lexical.stale_count:
            catalog.reanalyze(REANALYZED_A_STEP)
            return True
        # A question sees to the sentences of its candidates itself; a word without a vector it cannot find.
        if words := catalog.wanted_words(WORDS_A_STEP):
            catalog.put_words(dict(zip(words, await self.light.encode(words, background=True), strict=True)))
            return True
        if memory_ids := catalog.wanted_sentences(MEMORIES_A_STEP):
            await self.sentences.load(memory_ids, background=True)
            catalog.put_sentences(memory_ids)
            return True
        if not self.light.ready:
            await self.light.load()
        if self._crosses_scripts(()):
            await self._embed_lexicon()
        await self._cache.flush()
        await self.writer.tidy(idle=True)
        return False

    async def _write_soft_state(self) -> None:
        while not self._closing:
            await self._soft.wait()
            self._soft.clear()
            if not self._closing:
                # Reads come in bursts: gather what half a second brings. The wait is an interval, not a guess at readiness.
                await asyncio.sleep(SOFT_STATE_S)
            await self.writer.flush_soft()

    # Reports.

    def counts(self, scope: Scope = None) -> dict[str, int]:
        """Keys, active memories and links; a key that several namespaces of a scope share counts in each of them."""
        if scope is None:
            return {"keys": len(self.graph.keys), "memories": self.graph.active_count(None), "links": self.graph.link_count}
        keys = sum(self.catalog.directory.count(namespace) for namespace in scope)
        return {"keys": keys, "memories": self.graph.active_count(scope), "links": self.graph.active_links(scope)}

    @property
    def semantic(self) -> str:
        """``ready``, or ``warming`` while the model or vectors of keys are still to come."""
        return "ready" if self.light.ready and self.encoder.ready and not self.catalog.wanted_keys(1) else "warming"

    async def report(self) -> dict[str, Any]:
        """What `status` says of the engine."""
        stored = await self.in_store(self.store.report)
        keys, words, memories = self.catalog.backlog
        failures = {failure for failure in (self.encoder.failure, self.light.failure) if failure is not None}
        return {
            "counts": self.counts(),
            "namespaces": self.graph.namespaces(),
            "store": {
                "path": stored.path,
                "size_bytes": stored.size_bytes,
                "schema_version": stored.schema_version,
                "last_write_at": stored.last_write_at,
                "last_backup_at": stored.last_backup_at,
                "integrity": stored.integrity,
            },
            "models": {
                "encoder": {
                    "backend": self.encoder.backend,
                    "fingerprint": self.encoder.fingerprint,
                    "profile": self.profile.name,
                    "state": "ready" if self.encoder.ready else "warming",
                },
                "reranker": {"model": "sentence cosine (builtin)", "state": "ready" if self.light.ready else "warming"},
                "korean": None if self._korean is None else self._korean.state,
                "backlog": {"keys": keys, "words": words, "memories": memories},
                "semantic": self.semantic,
            },
            "problems": [
                *stored.problems,
                *(f"encoder: {failure}" for failure in sorted(failures)),
                *(f"{name}: {text}" for name, text in self.problems.items() if text not in failures),
                *((f"last write failed: {self.writer.last_failure}",) if self.writer.last_failure else ()),
            ],
        }


def _wake(loop: asyncio.AbstractEventLoop, work: asyncio.Event) -> None:
    """Set ``work`` from another thread."""
    loop.call_soon_threadsafe(work.set)
