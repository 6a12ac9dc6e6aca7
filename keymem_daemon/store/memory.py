"""The store in plain dictionaries: the second implementation of the port, for tests and for trying things without a disk.

It keeps nothing across processes. In everything else it answers as the SQLite store does, and the contract test holds both
to it. Commits are carried out on a draft first; one that the draft refuses never reaches the tables.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import assert_never

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
from keymem_daemon.core.errors import StorageFailed
from keymem_daemon.core.model import Key, Link, Memory
from keymem_daemon.core.overlay import Overlay
from keymem_daemon.ports import ChangeRecord, StoreReport
from keymem_daemon.store.records import PURGED_IMAGE, Record, encoded, image
from keymem_daemon.store.redact import redacted, removed_ids, surfaces_of_image, tells_of_forgetting
from keymem_daemon.store.schema import VERSION


class MemoryStore:
    """Implements `keymem_daemon.ports.Store`. ``backup`` writes a JSON file of the graph, for want of a database to copy."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._vectors: dict[tuple[str, str], bytes] = {}
        self._meta: dict[str, str] = {}
        self._last_write_at: float | None = None
        self._last_backup_at: float | None = None

    def load(self) -> Iterator[Change]:
        tables = self._tables
        yield from [MemoryAdded(memory) for memory in tables.memories.values()]
        yield from [KeyAdded(key) for key in tables.keys.values()]
        yield from [LinkSet(link) for link in tables.links.values()]

    def commit(self, commits: Sequence[Commit], *, durable: bool = True) -> None:
        del durable
        draft = self._tables.draft()
        try:
            for commit in commits:
                draft.carry_out(commit)
        except (ValueError, TypeError, OverflowError) as error:
            raise StorageFailed(str(error)) from error
        for commit in commits:
            self._drop_vectors(self._tables.carry_out(commit))
            self._last_write_at = commit.at

    def response_to(self, request_id: str) -> str | None:
        recorded = self._tables.requests.get(request_id)
        return None if recorded is None else recorded[1]

    def forget_requests_before(self, at: float) -> int:
        requests = self._tables.requests
        old = [request_id for request_id, (when, _response) in requests.items() if when < at]
        for request_id in old:
            del requests[request_id]
        return len(old)

    def history(self, entity_id: str | None, limit: int, before_seq: int | None = None) -> list[ChangeRecord]:
        found = (
            record
            for record in reversed(self._tables.history)
            if (entity_id is None or record.entity_id == entity_id) and (before_seq is None or record.seq < before_seq)
        )
        return list(islice(found, limit))

    def remembers(self, memory_id: str) -> bool:
        return any("content" in image for image in self._tables.images("memory", memory_id))

    def purge(self, memory_ids: Sequence[str], surfaces: Sequence[str]) -> None:
        # A response that was redacted is left as it is.
        done = self._tables.purged.issuperset(memory_ids)
        ids, texts = self._tables.left_in_history(memory_ids)
        ids.update(memory_ids)
        texts.update(surfaces)
        self._tables.scrub(ids, texts, responses=not done)
        self._tables.purged.clear()
        self._drop_vectors(texts)

    def _drop_vectors(self, texts: Collection[str]) -> None:
        for space, text in [entry for entry in self._vectors if entry[1] in texts]:
            del self._vectors[space, text]

    def load_vectors(self, fingerprint: str, texts: Sequence[str]) -> dict[str, bytes]:
        return {text: self._vectors[fingerprint, text] for text in texts if (fingerprint, text) in self._vectors}

    def save_vectors(self, fingerprint: str, items: Mapping[str, bytes]) -> None:
        for text, vector in items.items():
            self._vectors[fingerprint, text] = vector

    def meta(self, name: str) -> str | None:
        return self._meta.get(name)

    def set_meta(self, name: str, value: str) -> None:
        self._meta[name] = value

    def report(self) -> StoreReport:
        return StoreReport(
            path=":memory:",
            size_bytes=0,
            schema_version=VERSION,
            last_write_at=self._last_write_at,
            last_backup_at=None,
            integrity="ok",
        )

    def backup(self, path: str) -> None:
        records: list[Record] = [
            *self._tables.memories.values(),
            *self._tables.keys.values(),
            *self._tables.links.values(),
        ]
        Path(path).write_text(encoded([image(record) for record in records]), encoding="utf-8")

    def tidy(self, *, idle: bool) -> None:
        """Nothing is put off."""

    def close(self) -> None:
        """There is nothing to let go of."""


class _Tables:
    """Records, history and recorded responses; a draft of it refuses what the store must refuse."""

    def __init__(self) -> None:
        self.memories: MutableMapping[str, Memory] = {}
        self.keys: MutableMapping[str, Key] = {}
        self.links: MutableMapping[tuple[str, str], Link] = {}
        self.requests: MutableMapping[str, tuple[float, str]] = {}
        self.history: list[ChangeRecord] = []
        self.purged: set[str] = set()

    def draft(self) -> _Tables:
        draft = _Tables()
        draft.memories = Overlay(self.memories)
        draft.keys = Overlay(self.keys)
        draft.links = Overlay(self.links)
        draft.requests = Overlay(self.requests)
        return draft

    def carry_out(self, commit: Commit) -> set[str]:
        """Make the commit happen; returns the texts that it purged."""
        ids, texts = self._purged_with(commit)
        for change in commit.changes:
            self._apply(change, commit)
        if texts:
            self.scrub(ids, texts)
        if commit.request_id is not None:
            if commit.request_id in self.requests:
                raise ValueError(f"request {commit.request_id} has been carried out already")
            self.requests[commit.request_id] = (commit.at, commit.response or "null")
        return texts

    def _purged_with(self, commit: Commit) -> tuple[set[str], set[str]]:
        """Ids and texts that a commit which purges takes along: the memories', their removed keys' and those of what they had replaced."""
        ids = set(removed_ids(commit))
        if not ids:
            return set(), set()
        replaced: set[str] = set()
        texts: set[str] = set()
        for change in commit.changes:
            match change:
                case MemoryRemoved(memory_id, purge=True) if memory_id in self.memories:
                    texts.add(self.memories[memory_id].content)
                    replaced.update(self._replaced_by(memory_id))
                case KeyRemoved(key_id) if key_id in self.keys:
                    texts.update(self.keys[key_id].surfaces)
                case _:
                    pass
        past_ids, past_texts = self.left_in_history(replaced - ids)
        return ids | past_ids, texts | past_texts

    def images(self, entity: str, identity: str) -> list[Mapping[str, object]]:
        """Every image of a record in history, oldest first."""
        records = [record for record in self.history if record.entity == entity and record.entity_id == identity]
        return [image for record in records for image in (record.before, record.after) if image is not None]

    def left_in_history(self, memory_ids: Collection[str]) -> tuple[set[str], set[str]]:
        """Ids and texts of those memories that exist no more, of what they replaced and of the keys that only they had."""
        ids: set[str] = set()
        texts: set[str] = set()
        for memory_id in {*memory_ids, *(older for given in memory_ids for older in self._replaced_by(given))}:
            contents = [str(image["content"]) for image in self.images("memory", memory_id) if "content" in image]
            if memory_id in self.memories or not contents:
                continue
            keys = {key_id for key_id in self._keys_once_on(memory_id) if key_id not in self.keys}
            ids |= {memory_id, *keys}
            texts.update(contents)
            texts.update(
                text for key_id in keys for image in self.images("key", key_id) for text in surfaces_of_image(image)
            )
        return ids, texts

    def _replaced_by(self, memory_id: str) -> list[str]:
        """What the memory superseded, and what that did, as far as history tells."""
        found = [memory_id]
        for each in found:
            older = (image.get("supersedes") for image in self.images("memory", each))
            found.extend(dict.fromkeys(name for name in older if isinstance(name, str) and name not in found))
        return found[1:]

    def _keys_once_on(self, memory_id: str) -> set[str]:
        pairs = [record.entity_id.split(":") for record in self.history if record.entity == "link"]
        return {key_id for key_id, linked in pairs if linked == memory_id}

    def _apply(self, change: Change, commit: Commit) -> None:
        match change:
            case MemoryAdded(memory) | MemoryChanged(memory):
                self._record(commit, "memory", memory.id, self.memories.get(memory.id), memory)
                self.memories[memory.id] = memory
            case MemoryRemoved(memory_id):
                self._record(commit, "memory", memory_id, self.memories.pop(memory_id, None), None)
                for pair in [pair for pair in self.links if pair[1] == memory_id]:
                    del self.links[pair]
            case KeyAdded(key) | KeyChanged(key):
                self._record(commit, "key", key.id, self.keys.get(key.id), key)
                self.keys[key.id] = key
            case KeyRemoved(key_id):
                self._record(commit, "key", key_id, self.keys.pop(key_id, None), None)
                for pair in [pair for pair in self.links if pair[0] == key_id]:
                    del self.links[pair]
            case LinkSet(link):
                pair = (link.key_id, link.memory_id)
                if link.key_id not in self.keys or link.memory_id not in self.memories:
                    raise ValueError(f"link {link.key_id}:{link.memory_id} has no end")
                self._record(commit, "link", ":".join(pair), self.links.get(pair), link)
                self.links[pair] = link
            case LinkRemoved(key_id, memory_id):
                pair = (key_id, memory_id)
                self._record(commit, "link", ":".join(pair), self.links.pop(pair, None), None)
            case _:
                assert_never(change)

    def _record(self, commit: Commit, entity: str, entity_id: str, before: Record | None, after: Record | None) -> None:
        after_image = None if after is None else encoded(image(after))
        if after_image is not None:
            after_image.encode()
        if before == after or commit.action == "reinforce":
            return
        self.history.append(
            ChangeRecord(
                seq=self.history[-1].seq + 1 if self.history else 1,
                at=commit.at,
                action=commit.action,
                actor=commit.actor,
                entity=entity,
                entity_id=entity_id,
                before=None if before is None else image(before),
                after=None if after_image is None else json.loads(after_image),
                note=commit.note,
            )
        )

    def scrub(self, ids: Collection[str], texts: Collection[str], *, responses: bool = True) -> None:
        """Take the texts of what had these ids, and these texts unless something that is there has them, out of the past."""
        living = {*self.memories, *self.keys}
        gone = set(texts)
        past = {
            record.entity_id for record in self.history if record.entity_id not in living and _texts_in(record) & gone
        }
        past.update(ids)
        notes = {(record.at, record.note) for record in self.history if record.entity_id in past}
        for index, record in enumerate(self.history):
            purged = record.entity_id in past
            if purged or (record.at, record.note) in notes:
                self.history[index] = replace(
                    record,
                    before=PURGED_IMAGE if purged and record.before is not None else record.before,
                    after=PURGED_IMAGE if purged and record.after is not None else record.after,
                    note=None,
                )
        self.purged.update(ids)
        if not responses:
            return
        mentions = [*past, *(encoded(text) for text in texts)]
        for request_id, (at, response) in list(self.requests.items()):
            if any(mention in response for mention in mentions) and not tells_of_forgetting(response, past):
                self.requests[request_id] = (at, redacted(response, texts))


def _texts_in(record: ChangeRecord) -> set[object]:
    images = [image for image in (record.before, record.after) if image is not None]
    return {image.get(name) for image in images for name in ("content", "concept")} - {None}
