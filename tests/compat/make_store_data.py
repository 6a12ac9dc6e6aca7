"""Writes the stored data set of the present format version: ``python tests/compat/make_store_data.py``.

Run it once when a version is new, and never again for a version that has been released: the file is what its users have.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from keymem_daemon.core.changes import Commit, KeyAdded, KeyChanged, LinkSet, MemoryAdded, MemoryChanged
from keymem_daemon.core.model import Actor, AliasCandidate, Key, LearnedAlias, Link, Memory
from keymem_daemon.store.schema import VERSION
from keymem_daemon.store.sqlite import SqliteStore

ACTOR = Actor("remember", "session-1", "claude", "0b9d1f4e-8a53-4a3c-9f0e-2f1f5f6d7a10", "3", "prompt-1")
OLD = Memory(
    "010000000001",
    "The harbour cafe closes at five",
    "default",
    1_700_000_000.5,
    1_700_000_000.5,
    depth=0.015,
    superseded_by="010000000002",
)
CURRENT = Memory(
    "010000000002",
    'The harbour café closes at six — 여섯 시\nand on Sundays at "four"',
    "default",
    1_700_086_400.25,
    1_700_172_800.0,
    depth=0.05,
    access_count=3,
    last_accessed=1_700_259_200.0,
    confirmation_count=1,
    decay_profile="stable",
    links=("010000000003",),
    contradicts=("00000000dead",),
    supersedes="010000000001",
    source={"tool": "correct", "host_agent": "claude", "메모": "said at lunch"},
)
PASSING = Memory(
    "010000000003",
    "동건이는 딸기를 좋아한다",
    "프로젝트",
    1_700_090_000.0,
    1_700_090_000.0,
    decay_profile="transient",
    expires_at=4_000_000_000.0,
)
CAFE = Key(
    "020000000001",
    "harbour cafe",
    aliases=("café at the harbour",),
    learned=(LearnedAlias("the place by the boats", 1_700_200_000.0, 2, ("default",)),),
    candidates=(AliasCandidate("where we had lunch", 2, 1_700_210_000.0),),
)
NAME = Key("020000000002", "동건", "name")
FRUIT = Key("020000000003", "딸기", aliases=("strawberry",))
LINKS = (
    Link(CAFE.id, OLD.id, 0.5),
    Link(CAFE.id, CURRENT.id, 1.1, surfaces=("café at the harbour",)),
    Link(NAME.id, PASSING.id, 1.0, 0),
    Link(FRUIT.id, PASSING.id, 0.1, 1, ("strawberry", "딸기")),
    Link(NAME.id, CURRENT.id, 3.0, 1),
)
REQUEST = ("request-1", '{"new_id":"010000000002","superseded":"010000000001"}')
VECTOR = bytes(range(16))
SPACE = "builtin:use-multilingual-v3"


class FixedClock:
    def now(self) -> float:
        return 1_700_300_000.0


def written(path: Path) -> None:
    """Make the data set as a database at ``path``."""
    store = SqliteStore(path, FixedClock())
    first = OLD.__class__(OLD.id, OLD.content, OLD.namespace, OLD.created_at, OLD.last_confirmed_at)
    plain = Key(CAFE.id, CAFE.concept)
    store.commit([Commit("remember", 1_700_000_000.5, ACTOR, (MemoryAdded(first), KeyAdded(plain), LinkSet(LINKS[0])))])
    birth = (MemoryAdded(PASSING), KeyAdded(NAME), KeyAdded(FRUIT), LinkSet(LINKS[2]), LinkSet(LINKS[3]))
    store.commit([Commit("remember", 1_700_090_000.0, ACTOR, birth)])
    correction = (MemoryChanged(OLD), MemoryAdded(CURRENT), LinkSet(LINKS[1]), LinkSet(LINKS[4]))
    store.commit([Commit("correct", 1_700_086_400.25, ACTOR, correction, *REQUEST, note="keys were inherited")])
    store.commit([Commit("learn", 1_700_210_000.0, Actor("read_memory"), (KeyChanged(CAFE),))])
    store.save_vectors(SPACE, {"harbour cafe": VECTOR})
    store.set_meta("embedding_fingerprint", SPACE)
    store.close()


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        written(Path(directory) / "keymem.db")
        db = sqlite3.connect(Path(directory) / "keymem.db")
        script = "\n".join([*db.iterdump(), f"PRAGMA user_version = {VERSION};"]) + "\n"
        db.close()
    Path(__file__).with_name(f"v{VERSION}.sql").write_text(script, encoding="utf-8")
