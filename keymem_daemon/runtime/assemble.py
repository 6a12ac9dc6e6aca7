"""The composition root: the one place that names concrete classes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keymem_daemon.api.surroundings import Surroundings
from keymem_daemon.core.lexicon import load_lexicon
from keymem_daemon.core.profiles import profile_for, with_overrides
from keymem_daemon.embed.builtin import BuiltinEncoder
from keymem_daemon.hosts.namespaces import Namespaces
from keymem_daemon.hosts.transcripts import Transcripts
from keymem_daemon.index.korean import KoreanAnalyzer
from keymem_daemon.ports import Clock
from keymem_daemon.runtime.allocator import give_back_memory
from keymem_daemon.runtime.clock import new_id
from keymem_daemon.service.engine import Engine
from keymem_daemon.settings import Settings
from keymem_daemon.store.sqlite import SqliteStore

__all__ = ["STORE_FILE", "Assembled", "assemble", "surroundings"]

STORE_FILE: Final = "keymem.db"


@dataclass(frozen=True, slots=True)
class Assembled:
    """An engine that is not open yet, and what had to be said while putting it together."""

    engine: Engine
    problems: tuple[str, ...]


def surroundings(settings: Settings, clock: Clock, *, one_client: bool) -> Surroundings:
    """What looks at the clients' surroundings; ``one_client`` shares the process, so that a transcript may be guessed."""
    homes = {
        "claude": settings.claude_config_dir or Path("~/.claude").expanduser(),
        "codex": settings.codex_home or Path("~/.codex").expanduser(),
    }
    transcripts = Transcripts(settings.transcript_access, homes, clock, guesses=one_client)
    return Surroundings(Namespaces(settings.data_dir), transcripts)


async def assemble(settings: Settings, clock: Clock, on_wait: Callable[[str], None]) -> Assembled:
    """The engine that ``settings`` ask for. Opens the store's file; raises `StorageFailed` when that cannot be.

    ``on_wait`` is told, on another thread, when the file is held up and by what.
    """
    problems: list[str] = []
    encoder = BuiltinEncoder(Path(settings.data_dir))
    profile, known = profile_for(encoder.backend, encoder.model)
    if not known:
        problems.append(f"no thresholds are known for {encoder.model}; those of {profile.name} are in force")
    profile, refused = with_overrides(profile, settings.threshold_overrides)
    store = await asyncio.to_thread(SqliteStore, Path(settings.data_dir) / STORE_FILE, clock, on_wait)
    engine = Engine(
        store=store,
        encoder=encoder,
        light_encoder=encoder,
        korean=KoreanAnalyzer(),
        lexicon=await asyncio.to_thread(load_lexicon),
        profile=profile,
        settings=settings,
        clock=clock,
        new_id=new_id,
        give_back=give_back_memory,
    )
    return Assembled(engine, (*problems, *refused))
