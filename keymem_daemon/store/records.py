"""How a record looks as a table row and as a JSON image, and what makes a stored one unsound.

Pure. Every record read from a file passes the checks here: what a disk gives back is not what was written until proven so.
An image is what history keeps: a JSON object with the fields of the record by name.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, cast

from keymem_daemon.core.model import (
    DECAY_PROFILES,
    KEY_TYPES,
    WEIGHT_MAX,
    WEIGHT_MIN,
    AliasCandidate,
    DecayProfile,
    Key,
    KeyType,
    LearnedAlias,
    Link,
    Memory,
)

Cell = str | bytes | int | float | None
Row = Sequence[Cell]
Record = Memory | Key | Link

MEMORY_COLUMNS: Final = (
    "id",
    "content",
    "namespace",
    "created_at",
    "last_confirmed_at",
    "depth",
    "access_count",
    "last_accessed",
    "confirmation_count",
    "decay_profile",
    "expires_at",
    "links",
    "contradicts",
    "supersedes",
    "superseded_by",
    "source",
)
KEY_COLUMNS: Final = ("id", "concept", "key_type", "aliases", "learned", "candidates")
LINK_COLUMNS: Final = ("key_id", "memory_id", "weight", "position", "surfaces")

PURGED_IMAGE: Final[Mapping[str, object]] = MappingProxyType({"purged": True})
"""The image of something whose text was forgotten."""


class UnsoundRow(ValueError):
    """A stored row is not a record: which column, and what is wrong with it."""


_encode: Final[Callable[[object], str]] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
).encode


def encoded(value: object) -> str:
    """Compact JSON. Raises `ValueError` for what JSON has no form for, such as NaN."""
    return _encode(value)


def _list(values: Sequence[object]) -> str:
    return _encode(values) if values else "[]"


def memory_row(memory: Memory) -> tuple[Cell, ...]:
    """Cells in the order of `MEMORY_COLUMNS`."""
    return (
        memory.id,
        memory.content,
        memory.namespace,
        memory.created_at,
        memory.last_confirmed_at,
        memory.depth,
        memory.access_count,
        memory.last_accessed,
        memory.confirmation_count,
        memory.decay_profile,
        memory.expires_at,
        _list(memory.links),
        _list(memory.contradicts),
        memory.supersedes,
        memory.superseded_by,
        _encode(memory.source) if memory.source else "{}",
    )


def key_row(key: Key) -> tuple[Cell, ...]:
    """Cells in the order of `KEY_COLUMNS`."""
    return (
        key.id,
        key.concept,
        key.key_type,
        _list(key.aliases),
        _list([(learned.alias, learned.added_at, learned.hits, learned.namespaces) for learned in key.learned]),
        _list([(candidate.query, candidate.count, candidate.last_seen, candidate.namespace) for candidate in key.candidates]),
    )


def link_row(link: Link) -> tuple[Cell, ...]:
    """Cells in the order of `LINK_COLUMNS`."""
    return (link.key_id, link.memory_id, link.weight, link.position, _list(link.surfaces))


def image(record: Record) -> dict[str, object]:
    """The record as a JSON object."""
    match record:
        case Memory():
            return {
                "id": record.id,
                "content": record.content,
                "namespace": record.namespace,
                "created_at": record.created_at,
                "last_confirmed_at": record.last_confirmed_at,
                "depth": record.depth,
                "access_count": record.access_count,
                "last_accessed": record.last_accessed,
                "confirmation_count": record.confirmation_count,
                "decay_profile": record.decay_profile,
                "expires_at": record.expires_at,
                "links": list(record.links),
                "contradicts": list(record.contradicts),
                "supersedes": record.supersedes,
                "superseded_by": record.superseded_by,
                "source": record.source,
            }
        case Key():
            return {
                "id": record.id,
                "concept": record.concept,
                "key_type": record.key_type,
                "aliases": list(record.aliases),
                "learned": [
                    {"alias": a.alias, "added_at": a.added_at, "hits": a.hits, "namespaces": list(a.namespaces)} for a in record.learned
                ],
                "candidates": [
                    {"query": c.query, "count": c.count, "last_seen": c.last_seen, "namespace": c.namespace} for c in record.candidates
                ],
            }
        case Link():
            # Its words are left out: they would be one more place from which a forgotten text has to go.
            return {
                "key_id": record.key_id,
                "memory_id": record.memory_id,
                "weight": record.weight,
                "position": record.position,
            }


def text_of(record: Record) -> str | None:
    """The string by which history can find everything that ever had this text; a link has none."""
    match record:
        case Memory():
            return record.content
        case Key():
            return record.concept
        case Link():
            return None


def trace_of(text: str) -> int:
    """64 bits that stand for a text in the history index. No text can be read from them; they go when the text goes."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def vector_key(text: str) -> bytes:
    """16 bytes that stand for a text in the vector cache."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# Reading back.


def _text(column: str, cell: Cell, *, empty: bool = False) -> str:
    if isinstance(cell, bytes):
        try:
            cell = cell.decode()
        except UnicodeDecodeError as error:
            raise UnsoundRow(f"{column} is not UTF-8") from error
    if not isinstance(cell, str) or not (cell or empty):
        raise UnsoundRow(f"{column} is not a text")
    return cell


def _optional_text(column: str, cell: Cell) -> str | None:
    return None if cell is None else _text(column, cell)


def _number(column: str, cell: object, low: float = -math.inf, high: float = math.inf) -> float:
    if (
        isinstance(cell, bool)
        or not isinstance(cell, int | float)
        or not math.isfinite(cell)
        or not low <= cell <= high
    ):
        raise UnsoundRow(f"{column} is not a number it can be")
    return float(cell)


def _optional_number(column: str, cell: Cell) -> float | None:
    return None if cell is None else _number(column, cell)


def _count(column: str, cell: object) -> int:
    if isinstance(cell, bool) or not isinstance(cell, int) or cell < 0:
        raise UnsoundRow(f"{column} is not a count")
    return cell


def _json(column: str, cell: Cell) -> object:
    try:
        return json.loads(_text(column, cell))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnsoundRow(f"{column} is not JSON") from error


def _texts(column: str, cell: Cell) -> tuple[str, ...]:
    if cell in {"[]", b"[]"}:
        return ()
    values = _json(column, cell)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise UnsoundRow(f"{column} is not a list of texts")
    return tuple(values)


def _entries(column: str, cell: Cell) -> list[tuple[str, list[object]]]:
    """What a key has learned: each text, and what is known of it."""
    if cell in {"[]", b"[]"}:
        return []
    values = _json(column, cell)
    if not isinstance(values, list) or not all(
        isinstance(value, list) and len(value) >= 3 and isinstance(value[0], str) and value[0] for value in values
    ):
        raise UnsoundRow(f"{column} is not a list of what was learned")
    return [(value[0], value[1:]) for value in values]


def _learned(alias: str, facts: Sequence[object]) -> LearnedAlias:
    """Entries of version 1 have no namespaces."""
    added_at, hits, *rest = facts
    namespaces = rest[0] if rest else []
    if not isinstance(namespaces, list) or not all(isinstance(name, str) for name in namespaces):
        raise UnsoundRow("learned has namespaces that are none")
    return LearnedAlias(alias, _number("learned", added_at), _count("learned", hits), tuple(namespaces))


def _candidate(query: str, facts: Sequence[object]) -> AliasCandidate:
    """As `_learned`."""
    count, last_seen, *rest = facts
    namespace = rest[0] if rest else ""
    if not isinstance(namespace, str):
        raise UnsoundRow("candidates has a namespace that is none")
    return AliasCandidate(query, _count("candidates", count), _number("candidates", last_seen), namespace)


def _source(cell: Cell) -> dict[str, str]:
    if cell in {"{}", b"{}"}:
        return {}
    values = _json("source", cell)
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise UnsoundRow("source is not an object of texts")
    # The same few clients and sessions save many memories.
    return {sys.intern(name): sys.intern(value) for name, value in values.items()}


def _one_of(column: str, cell: Cell, allowed: Sequence[str]) -> str:
    text = _text(column, cell)
    for name in allowed:
        if name == text:
            return name
    raise UnsoundRow(f"{column} is none of {', '.join(allowed)}")


def memory_of(row: Row) -> Memory:
    """The memory in cells ordered as `MEMORY_COLUMNS`, texts as `str` or UTF-8 `bytes`. Raises `UnsoundRow`."""
    return Memory(
        id=_text("id", row[0]),
        content=_text("content", row[1]),
        namespace=sys.intern(_text("namespace", row[2])),
        created_at=_number("created_at", row[3]),
        last_confirmed_at=_number("last_confirmed_at", row[4]),
        depth=_number("depth", row[5], 0, 1),
        access_count=_count("access_count", row[6]),
        last_accessed=_optional_number("last_accessed", row[7]),
        confirmation_count=_count("confirmation_count", row[8]),
        decay_profile=cast("DecayProfile", _one_of("decay_profile", row[9], DECAY_PROFILES)),
        expires_at=_optional_number("expires_at", row[10]),
        links=_texts("links", row[11]),
        contradicts=_texts("contradicts", row[12]),
        supersedes=_optional_text("supersedes", row[13]),
        superseded_by=_optional_text("superseded_by", row[14]),
        source=_source(row[15]),
    )


def key_of(row: Row) -> Key:
    """The key in cells ordered as `KEY_COLUMNS`, texts as `str` or UTF-8 `bytes`. Raises `UnsoundRow`."""
    return Key(
        id=_text("id", row[0]),
        concept=_text("concept", row[1]),
        key_type=cast("KeyType", _one_of("key_type", row[2], KEY_TYPES)),
        aliases=_texts("aliases", row[3]),
        learned=tuple(_learned(alias, facts) for alias, facts in _entries("learned", row[4])),
        candidates=tuple(_candidate(query, facts) for query, facts in _entries("candidates", row[5])),
    )


def link_of(row: Row) -> Link:
    """The link in cells ordered as `LINK_COLUMNS`, texts as `str` or UTF-8 `bytes`. Raises `UnsoundRow`."""
    return Link(
        key_id=_text("key_id", row[0]),
        memory_id=_text("memory_id", row[1]),
        weight=_number("weight", row[2], WEIGHT_MIN, WEIGHT_MAX),
        position=_count("position", row[3]),
        surfaces=tuple(map(sys.intern, _texts("surfaces", row[4]))),  # many links say the same word
    )


def readable(cells: Mapping[str, Cell]) -> dict[str, object]:
    """A damaged row as a JSON object that loses nothing: bytes that are no UTF-8 become ``{"hex": …}``."""
    return {name: _readable(cell) for name, cell in cells.items()}


def _readable(cell: Cell) -> object:
    match cell:
        case bytes():
            try:
                return cell.decode()
            except UnicodeDecodeError:
                return {"hex": cell.hex()}
        case float() if not math.isfinite(cell):
            return repr(cell)
        case _:
            return cell
