"""Laws of the store's parts: rows and images lose nothing, slack is nothing, redaction leaves no text, forgetting no byte."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keymem_daemon.core.changes import (
    Change,
    Commit,
    KeyAdded,
    KeyChanged,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.model import (
    DECAY_PROFILES,
    KEY_TYPES,
    Actor,
    AliasCandidate,
    Key,
    LearnedAlias,
    Link,
    Memory,
)
from keymem_daemon.store.records import (
    KEY_COLUMNS,
    LINK_COLUMNS,
    MEMORY_COLUMNS,
    Cell,
    encoded,
    image,
    key_of,
    key_row,
    link_of,
    link_row,
    memory_of,
    memory_row,
    readable,
)
from keymem_daemon.store.redact import FORGOTTEN, redacted
from keymem_daemon.store.slack import clear_slack
from keymem_daemon.store.sqlite import SqliteStore

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
named = texts.filter(bool)
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**62)

memories = st.builds(
    Memory,
    id=named,
    content=named,
    namespace=named,
    created_at=numbers,
    last_confirmed_at=numbers,
    depth=st.floats(0, 1),
    access_count=counts,
    last_accessed=st.none() | numbers,
    confirmation_count=counts,
    decay_profile=st.sampled_from(DECAY_PROFILES),
    expires_at=st.none() | numbers,
    links=st.lists(texts).map(tuple),
    contradicts=st.lists(texts).map(tuple),
    supersedes=st.none() | named,
    superseded_by=st.none() | named,
    source=st.dictionaries(texts, texts),
)
keys = st.builds(
    Key,
    id=named,
    concept=named,
    key_type=st.sampled_from(KEY_TYPES),
    aliases=st.lists(texts).map(tuple),
    learned=st.lists(st.builds(LearnedAlias, named, numbers, counts)).map(tuple),
    candidates=st.lists(st.builds(AliasCandidate, named, counts, numbers)).map(tuple),
)
links = st.builds(Link, key_id=named, memory_id=named, weight=st.floats(0.1, 3.0), position=counts)


def as_read(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Cells as loading reads them: texts as bytes."""
    return tuple(cell.encode() if isinstance(cell, str) else cell for cell in row)


@given(memory=memories, key=keys, link=links)
def test_a_row_is_the_record_it_was_made_of(memory: Memory, key: Key, link: Link) -> None:
    assert memory_of(memory_row(memory)) == memory_of(as_read(memory_row(memory))) == memory
    assert key_of(key_row(key)) == key_of(as_read(key_row(key))) == key
    assert link_of(link_row(link)) == link_of(as_read(link_row(link))) == link
    assert len(memory_row(memory)) == len(MEMORY_COLUMNS)
    assert len(key_row(key)) == len(KEY_COLUMNS)
    assert len(link_row(link)) == len(LINK_COLUMNS)


@given(record=memories | keys | links)
def test_an_image_says_all_that_a_record_says_but_for_the_words_of_a_link(record: Memory | Key | Link) -> None:
    told = json.loads(encoded(image(record)))
    assert told == image(record)
    assert set(told) == set(type(record).__dataclass_fields__) - {"surfaces"}


@given(st.dictionaries(texts, st.none() | texts | st.binary() | st.integers() | st.floats()))
def test_a_damaged_row_can_always_be_written_down(cells: dict[str, Cell]) -> None:
    written = json.dumps(readable(cells), ensure_ascii=False).encode()
    assert set(json.loads(written)) == set(cells)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(("id", "text", "keys")), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    value=json_values, secret=st.sampled_from(("swordfish", "code 4471", "딸기밭", "Newton's")), place=st.integers(0, 3)
)
def test_a_redacted_response_keeps_its_shape_and_none_of_the_text(value: object, secret: str, place: int) -> None:
    told = [value, secret, f"before {secret} after", {"keys": [secret]}]
    left = json.loads(redacted(encoded(told[place:]), [secret]))
    assert secret not in encoded(left)
    assert shape(left) == shape(told[place:])


def shape(value: object) -> object:
    match value:
        case str():
            return "text"
        case list():
            return [shape(item) for item in value]
        case dict():
            return {name: shape(item) for name, item in value.items()}
        case _:
            return value


def test_what_was_no_json_is_redacted_as_a_whole() -> None:
    assert redacted("{broken swordfish", ["swordfish"]) == encoded(FORGOTTEN)


operations = st.lists(
    st.tuples(st.sampled_from(("put", "put", "grow", "shrink", "delete")), st.integers(0, 60), st.integers(0, 5000)),
    max_size=120,
)


@given(operations)
@settings(max_examples=40, deadline=None)
def test_clearing_slack_changes_nothing_that_sqlite_can_read(script: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "x.db"
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT)")
        for number, (verb, chosen, size) in enumerate(script):
            match verb:
                case "put":
                    db.execute(
                        "INSERT OR REPLACE INTO t (id, body) VALUES (?, ?)", (f"id {chosen}", f"row {number} " * size)
                    )
                case "grow" | "shrink":
                    half = size // 2 if verb == "grow" else 0
                    db.execute(
                        "UPDATE t SET body = substr(body, 1, ?) || ? WHERE id = ?", (size, "y" * half, f"id {chosen}")
                    )
                case _:
                    db.execute("DELETE FROM t WHERE id = ?", (f"id {chosen}",))
        before = db.execute("SELECT * FROM t ORDER BY seq").fetchall()
        db.close()
        clear_slack(path)
        assert clear_slack(path) == 0
        db = sqlite3.connect(path, isolation_level=None)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT * FROM t ORDER BY seq").fetchall() == before
        db.execute("INSERT INTO t (body) VALUES (?)", ("after " * 2000,))
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.close()


class FixedClock:
    def now(self) -> float:
        return 1.0


lives = st.lists(
    st.tuples(
        st.sampled_from(("remember", "remember", "touch", "learn", "forget", "tidy")),
        st.integers(0, 40),
        st.integers(1, 900),
    ),
    min_size=20,
    max_size=150,
)


@given(lives)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_forgotten_text_is_ever_found_in_a_file_and_no_other_is_lost(script: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "keymem.db"
        store = SqliteStore(path, FixedClock())
        living: dict[str, tuple[Memory, Key]] = {}
        gone: list[str] = []

        def commit(*changes: Change) -> None:
            store.commit([Commit("remember", 1.0, Actor("t"), changes)], durable=False)

        for number, (verb, pick, size) in enumerate(script):
            mark = f"mark{number:05d}."
            if verb == "tidy":
                store.tidy(idle=True)
                continue
            if verb == "remember" or not living:
                memory = Memory(f"01{number:010x}", mark * (1 + size // 10), "default", 1.0, 1.0)
                key = Key(f"02{number:010x}", f"key of {mark}")
                living[mark] = (memory, key)
                commit(MemoryAdded(memory), KeyAdded(key), LinkSet(Link(key.id, memory.id)))
                continue
            chosen = list(living)[pick % len(living)]
            memory, key = living[chosen]
            match verb:
                case "touch":
                    memory = replace(memory, access_count=size**3, source={"host": "x" * size})
                    living[chosen] = (memory, key)
                    commit(MemoryChanged(memory))
                case "learn":
                    key = replace(key, candidates=(AliasCandidate("q" * size, 1, 1.0),))
                    living[chosen] = (memory, key)
                    commit(KeyChanged(key))
                case _:
                    del living[chosen]
                    gone.append(chosen)
                    commit(LinkRemoved(key.id, memory.id), KeyRemoved(key.id), MemoryRemoved(memory.id, purge=True))
                    store.purge([memory.id], [key.concept])
                    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
                    assert [text for text in gone if text.encode() in content] == []
        assert [change.memory for change in store.load() if isinstance(change, MemoryAdded)] == [
            memory for memory, _key in living.values()
        ]
        store.close()
