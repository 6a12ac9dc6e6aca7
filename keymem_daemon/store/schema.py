"""The tables of ``keymem.db``. What they mean is here and in docs/formats.md; how they change is in migrate.py.

Every table has an ascending integer of its own, so that what was linked first is read first and so that a damaged file can be
read row by row. Texts stand in as few places as possible: forgetting one must find them all. `changes.trace` finds
every image of a text; `vectors` knows texts by hash only. Columns that came later stand last in their table and have a default, so
that the rows of an older file whose first page is lost can still be read by the present layout.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 2
"""What `PRAGMA user_version` of a database of this build says."""

TABLES: Final = (
    """
    CREATE TABLE memories (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        content TEXT NOT NULL,
        namespace TEXT NOT NULL,
        created_at REAL NOT NULL,
        last_confirmed_at REAL NOT NULL,
        depth REAL NOT NULL,
        access_count INTEGER NOT NULL,
        last_accessed REAL,
        confirmation_count INTEGER NOT NULL,
        decay_profile TEXT NOT NULL,
        expires_at REAL,
        links TEXT NOT NULL,
        contradicts TEXT NOT NULL,
        supersedes TEXT,
        superseded_by TEXT,
        source TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE keys (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        concept TEXT NOT NULL,
        key_type TEXT NOT NULL,
        aliases TEXT NOT NULL,
        learned TEXT NOT NULL,
        candidates TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE links (
        seq INTEGER PRIMARY KEY,
        key_id TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
        memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
        weight REAL NOT NULL,
        position INTEGER NOT NULL,
        surfaces TEXT NOT NULL DEFAULT '[]',
        UNIQUE (key_id, memory_id)
    )
    """,
    "CREATE INDEX links_by_memory ON links (memory_id)",
    """
    CREATE TABLE requests (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        at REAL NOT NULL,
        response TEXT NOT NULL
    )
    """,
    "CREATE INDEX requests_by_time ON requests (at)",
    """
    CREATE TABLE commits (
        seq INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        action TEXT NOT NULL,
        tool TEXT NOT NULL,
        session TEXT,
        host_agent TEXT,
        host_session TEXT,
        host_turn TEXT,
        host_prompt TEXT,
        note TEXT
    )
    """,
    """
    CREATE TABLE changes (
        seq INTEGER PRIMARY KEY,
        commit_seq INTEGER NOT NULL REFERENCES commits (seq),
        entity TEXT NOT NULL,
        entity_id TEXT NOT NULL,
        before TEXT,
        after TEXT,
        trace INTEGER
    )
    """,
    "CREATE INDEX changes_by_entity ON changes (entity_id)",
    "CREATE INDEX changes_by_trace ON changes (trace) WHERE trace IS NOT NULL",
    """
    CREATE TABLE spaces (
        seq INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE
    )
    """,
    """
    CREATE TABLE vectors (
        seq INTEGER PRIMARY KEY,
        space INTEGER NOT NULL REFERENCES spaces (seq) ON DELETE CASCADE,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        UNIQUE (space, text_hash)
    )
    """,
    """
    CREATE TABLE purges (
        seq INTEGER PRIMARY KEY,
        ids TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE meta (
        seq INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        value TEXT NOT NULL
    )
    """,
)
