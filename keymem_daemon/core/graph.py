"""The graph of keys and memories as it stands: the projection of the store that everything reads.

One mutator, `apply(change)`, exhaustive over the vocabulary of change. `settle(now)` is the only other thing that moves: it
takes memories whose time has come out of the active projection, and changes nothing that is stored.

A `draft()` is the same graph with every table laid over the original: rules decide against it, apply what they decided so
that the next rule sees it, and nothing reaches the original until the store has the changes. It costs what is touched.

No read here walks all memories or all keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import TypeVar, assert_never

from keymem_daemon.core.changes import (
    Change,
    KeyAdded,
    KeyChanged,
    KeyRemoved,
    LinkRemoved,
    LinkSet,
    MemoryAdded,
    MemoryChanged,
    MemoryRemoved,
)
from keymem_daemon.core.model import Key, Link, Memory, Scope
from keymem_daemon.core.overlay import Overlay
from keymem_daemon.core.text import Script, fold, normalized, scripts

K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")


class Graph:
    """Keys, memories and links, with the lookups that the rules and the ranking need.

    ``groups_of`` maps a surface to the merge groups it belongs to whatever its spelling (its stem, its lexicon entry); the
    keys of one group are found by `keys_in_group`. Raises `ValueError` where a change does not fit the graph:
    a defect, never a caller's mistake.
    """

    def __init__(self, groups_of: Callable[[str], Iterable[str]] | None = None) -> None:
        self._groups_of: Callable[[str], Iterable[str]] = groups_of or (lambda _surface: ())
        self._memories: MutableMapping[str, Memory] = {}
        self._keys: MutableMapping[str, Key] = {}
        self._members: MutableMapping[str, MutableMapping[str, Link]] = {}
        self._key_links: MutableMapping[str, MutableMapping[str, Link]] = {}
        self._surfaces: MutableMapping[str, str] = {}
        self._groups: MutableMapping[str, MutableMapping[str, None]] = {}
        self._texts: MutableMapping[tuple[str, str], MutableMapping[str, None]] = {}
        self._referrers: MutableMapping[str, MutableMapping[str, None]] = {}
        self._active: MutableMapping[str, str] = {}
        self._counts: MutableMapping[str, MutableMapping[str, int]] = {}
        self._totals: MutableMapping[str, int] = {}
        self._namespaces: MutableMapping[str, MutableMapping[str, None]] = {}
        self._names: MutableMapping[str, str] = {}
        self._scripts: MutableMapping[str, MutableMapping[Script, int]] = {}
        # Of links that have words of their own, per key and namespace: how many active ones say it in just these.
        self._worded: MutableMapping[tuple[str, str], MutableMapping[tuple[str, ...], int]] = {}
        self._sizes: MutableMapping[str, int] = {}
        self._ties: MutableMapping[str, int] = {}
        # A heap of (expiry, id) of what is to expire, and what has: entries that a change has overtaken are dropped as they come up.
        self._expiries: list[tuple[float, str]] = []
        self._expired: MutableMapping[str, None] = {}
        self._learners: MutableMapping[str, None] = {}
        self._drafted = False

    # Drafts.

    def draft(self) -> Graph:
        """A graph that starts as this one and whose changes leave this one alone. Valid until this one changes."""
        copy = Graph(self._groups_of)
        copy._drafted = True
        copy._memories = Overlay(self._memories)
        copy._keys = Overlay(self._keys)
        copy._members = Overlay(self._members)
        copy._key_links = Overlay(self._key_links)
        copy._surfaces = Overlay(self._surfaces)
        copy._groups = Overlay(self._groups)
        copy._texts = Overlay(self._texts)
        copy._referrers = Overlay(self._referrers)
        copy._active = Overlay(self._active)
        copy._counts = Overlay(self._counts)
        copy._totals = Overlay(self._totals)
        copy._namespaces = Overlay(self._namespaces)
        copy._names = Overlay(self._names)
        copy._scripts = Overlay(self._scripts)
        copy._worded = Overlay(self._worded)
        copy._sizes = Overlay(self._sizes)
        copy._ties = Overlay(self._ties)
        copy._expiries = self._expiries
        copy._expired = Overlay(self._expired)
        copy._learners = Overlay(self._learners)
        return copy

    def _row(self, table: MutableMapping[K, MutableMapping[L, V]], key: K) -> MutableMapping[L, V]:
        """The writable row of a table of tables: made when absent, laid over the original's in a draft."""
        row = table.get(key)
        if row is None:
            row = table[key] = {}
        elif isinstance(table, Overlay) and not table.owns(key):
            row = table[key] = Overlay(row)
        return row

    # Reading.

    @property
    def memories(self) -> Mapping[str, Memory]:
        """Every memory by id, active or not."""
        return self._memories

    @property
    def keys(self) -> Mapping[str, Key]:
        """Every key by id."""
        return self._keys

    def memory(self, memory_id: str) -> Memory | None:
        """The memory of that id, active or not."""
        return self._memories.get(memory_id)

    def is_name(self, key_id: str) -> bool:
        """Whether the key is that of a person, a place or the like; a key that is gone is none."""
        key = self._keys.get(key_id)
        return key is not None and key.key_type == "name"

    def key(self, key_id: str) -> Key | None:
        """The key of that id."""
        return self._keys.get(key_id)

    def key_of_surface(self, surface: str) -> Key | None:
        """The key that has this string as concept or alias, compared folded."""
        key_id = self._surfaces.get(fold(surface))
        return None if key_id is None else self._keys[key_id]

    def key_id_of_folded(self, folded: str) -> str | None:
        """As `key_of_surface`, for a string that is already folded."""
        return self._surfaces.get(folded)

    def keys_in_group(self, group: str) -> tuple[str, ...]:
        """Ids of the keys that have a surface in this merge group, oldest first."""
        return tuple(self._groups.get(group, ()))

    def members(self, key_id: str) -> Mapping[str, Link]:
        """Links of a key by memory id, active or not, in order of linking."""
        return self._members.get(key_id, {})

    def links_of(self, memory_id: str) -> list[Link]:
        """Links of a memory, the key it is about first."""
        return sorted(self._key_links.get(memory_id, {}).values(), key=lambda link: (link.position, link.key_id))

    def key_links(self, memory_id: str) -> Iterable[Link]:
        """A memory's links in no promised order, without the cost of one."""
        return self._key_links.get(memory_id, {}).values()

    def key_ids_of(self, memory_id: str) -> Iterable[str]:
        """Ids of a memory's keys in no promised order, without the cost of one."""
        return self._key_links.get(memory_id, {}).keys()

    def link(self, key_id: str, memory_id: str) -> Link | None:
        """The link of the pair, if there is one."""
        return self._members.get(key_id, {}).get(memory_id)

    def words_of(self, link: Link) -> tuple[str, ...]:
        """What the link's memory calls its key: the words that it was tied with."""
        return link.surfaces or (self._keys[link.key_id].concept,)

    def is_active(self, memory_id: str) -> bool:
        """Whether retrieval may see the memory: neither superseded nor, as of the last `settle`, expired."""
        return memory_id in self._active

    def in_scope(self, memory_id: str, scope: Scope) -> bool:
        """Whether the memory is active and its namespace is one the read may see."""
        namespace = self._active.get(memory_id)
        return namespace is not None and (scope is None or namespace in scope)

    def active_members(self, key_id: str, scope: Scope) -> Iterator[Link]:
        """Links of a key to the active memories of the scope."""
        for memory_id, link in self._members.get(key_id, {}).items():
            if self.in_scope(memory_id, scope):
                yield link

    def memory_count(self, key_id: str, scope: Scope) -> int:
        """How many active memories of the scope a key links, without walking them."""
        if scope is None:
            return self._totals.get(key_id, 0)
        counts = self._counts.get(key_id)
        return 0 if counts is None else sum(counts.get(namespace, 0) for namespace in scope)

    def surfaces_in(self, key_id: str, scope: Scope) -> tuple[str, ...]:
        """The key in the words of the scope's active memories, the concept first where they say it; none where none has the key.

        What others call it is not theirs to know. A scope of everything knows every word. A key that is gone has none.
        """
        key = self._keys.get(key_id)
        if key is None:
            return ()
        if scope is None:
            return key.surfaces
        counts = self._counts.get(key_id, {})
        words: set[str] = set()
        for namespace in scope.intersection(counts):
            worded = self._worded.get((key_id, namespace), {})
            words.update(*worded)
            if counts[namespace] > sum(worded.values()):
                words.add(key.concept)
        if words == {key.concept} and not key.learned:
            return (key.concept,)
        if words:
            words.update(learned.alias for learned in key.learned if not scope.isdisjoint(learned.namespaces))
        written = {fold(word): word for word in sorted(words, reverse=True)}
        known = tuple(s if s in words else written[fold(s)] for s in key.surfaces if fold(s) in written)
        return known or tuple(written.values())  # a key that has lost its words to another in a damaged file

    def name_in(self, key_id: str, scope: Scope) -> str:
        """What the scope's memories call the key: the first of `surfaces_in`, or nothing."""
        return next(iter(self.surfaces_in(key_id, scope)), "")

    def active_count(self, scope: Scope) -> int:
        """How many active memories the scope holds."""
        if scope is None:
            return len(self._active)
        return sum(len(self._namespaces.get(namespace, ())) for namespace in scope)

    def newest(self, scope: Scope) -> Iterator[str]:
        """Ids of the active memories of the scope, those that became active last first."""
        if scope is None:
            return _latest_first(self._active)
        rows = [_latest_first(self._namespaces.get(namespace, {})) for namespace in sorted(scope)]
        return heapq.merge(*rows, key=lambda memory_id: self._memories[memory_id].created_at, reverse=True)

    def namespaces(self) -> dict[str, int]:
        """Active memories per namespace, by the name it was first written with."""
        return {self._names[folded]: len(ids) for folded, ids in self._namespaces.items() if ids}

    def scripts_in(self, scope: Scope) -> dict[Script, int]:
        """How many links of the scope's active memories lead to keys in each script."""
        totals: dict[Script, int] = {}
        for namespace in self._scripts if scope is None else scope:
            for script, count in self._scripts.get(namespace, {}).items():
                if count:
                    totals[script] = totals.get(script, 0) + count
        return totals

    def namespaces_of(self, key_id: str) -> Mapping[str, int]:
        """Active memories of a key per folded namespace, those with none left out."""
        return self._counts.get(key_id, {})

    def same_text(self, namespace: str, content: str) -> Memory | None:
        """The active memory of the namespace whose normalized text equals this one's."""
        for memory_id in self._texts.get((fold(namespace), normalized(content)), ()):
            if memory_id in self._active:
                return self._memories[memory_id]
        return None

    def referrers(self, memory_id: str) -> tuple[str, ...]:
        """Ids of the memories that name this one as related, contradicted or superseded."""
        return tuple(self._referrers.get(memory_id, ()))

    def neighbours(self, memory_id: str) -> list[str]:
        """Ids tied to a memory by ``related_to``, whichever of the two named the other."""
        memory = self._memories.get(memory_id)
        linked = memory.links if memory else ()
        back = (r for r in self._referrers.get(memory_id, ()) if memory_id in self._memories[r].links)
        return list(dict.fromkeys((*linked, *back)))

    @property
    def link_count(self) -> int:
        """Number of links of all memories, active or not."""
        return self._sizes.get("links", 0)

    def active_links(self, scope: frozenset[str]) -> int:
        """Number of links of the active memories of these namespaces."""
        return sum(self._ties.get(namespace, 0) for namespace in scope)

    def all_links(self) -> Iterator[Link]:
        """Every link, for export and comparison."""
        for row in self._members.values():
            yield from row.values()

    # Time.

    def next_expiry(self) -> float | None:
        """The earliest moment at which `settle` will have something to do."""
        return self._expiries[0][0] if self._expiries else None

    def settle(self, now: float) -> list[str]:
        """Take what has expired by ``now`` out of the active projection; returns those ids. Costs what has expired."""
        gone: list[str] = []
        while self._expiries and self._expiries[0][0] <= now:
            expires_at, memory_id = heapq.heappop(self._expiries)
            memory = self._memories.get(memory_id)
            if memory is None or memory.expires_at != expires_at:
                continue
            self._expired[memory_id] = None
            if memory_id in self._active:
                self._deactivate(memory)
                gone.append(memory_id)
        return gone

    def due(self, now: float) -> list[Memory]:
        """Memories, active or not, whose time had passed by the last `settle` or passes by ``now``, for the sweep. Costs what is due."""
        ids = dict.fromkeys(self._expired)
        places = [0] if self._expiries else []
        while places:
            # Below an entry that is not due nothing is: the heap says so.
            place = places.pop()
            if place < len(self._expiries) and self._expiries[place][0] <= now:
                ids[self._expiries[place][1]] = None
                places += (2 * place + 1, 2 * place + 2)
        found = (self._memories.get(memory_id) for memory_id in ids)
        return [m for m in found if m is not None and m.expires_at is not None and m.expires_at <= now]

    def learners(self) -> list[Key]:
        """Keys that have learned aliases, or candidates for them."""
        return [self._keys[key_id] for key_id in self._learners]

    # Changing.

    def apply(self, change: Change) -> None:
        """Make one change. The only way in which anything here changes."""
        match change:
            case MemoryAdded(memory):
                if memory.id in self._memories:
                    raise ValueError(f"memory {memory.id} exists")
                self._put_memory(memory)
            case MemoryChanged(memory):
                before = self._memories[memory.id]
                was_active = before.id in self._active
                # What stays active keeps its place among the newest.
                stays = was_active and memory.superseded_by is None and fold(before.namespace) == fold(memory.namespace)
                if was_active and not stays:
                    self._deactivate(before)
                self._unindex_memory(before)
                same_expiry = before.expires_at == memory.expires_at
                self._put_memory(memory, scheduled=same_expiry, settled=same_expiry and not was_active)
            case MemoryRemoved(memory_id):
                self._remove_memory(memory_id)
            case KeyAdded(key):
                if key.id in self._keys:
                    raise ValueError(f"key {key.id} exists")
                self._put_key(key)
            case KeyChanged(key):
                self._unindex_key(self._keys[key.id])
                self._put_key(key)
            case KeyRemoved(key_id):
                if self._members.get(key_id):
                    raise ValueError(f"key {key_id} still has memories")
                self._unindex_key(self._keys.pop(key_id))
                for table in (self._members, self._counts, self._totals):
                    table.pop(key_id, None)
            case LinkSet(link):
                self._put_link(link)
            case LinkRemoved(key_id, memory_id):
                self._remove_link(key_id, memory_id)
            case _:
                assert_never(change)

    def _put_memory(self, memory: Memory, *, scheduled: bool = False, settled: bool = False) -> None:
        self._memories[memory.id] = memory
        self._names.setdefault(fold(memory.namespace), memory.namespace)
        self._row(self._texts, (fold(memory.namespace), normalized(memory.content)))[memory.id] = None
        for named in _named_by(memory):
            self._row(self._referrers, named)[memory.id] = None
        # What time has put aside stays aside when some other field changes, unless its expiry itself has moved.
        if memory.id not in self._active and memory.superseded_by is None and not (settled and memory.expires_at is not None):
            self._activate(memory)
        if not scheduled:
            self._expired.pop(memory.id, None)
            if memory.expires_at is not None and not self._drafted:
                heapq.heappush(self._expiries, (memory.expires_at, memory.id))

    def _unindex_memory(self, memory: Memory) -> None:
        self._drop(self._texts, (fold(memory.namespace), normalized(memory.content)), memory.id)
        for named in _named_by(memory):
            self._drop(self._referrers, named, memory.id)

    def _remove_memory(self, memory_id: str) -> None:
        memory = self._memories[memory_id]
        if self._key_links.get(memory_id):
            raise ValueError(f"memory {memory_id} still has links")
        if memory_id in self._active:
            self._deactivate(memory)
        self._unindex_memory(memory)
        self._key_links.pop(memory_id, None)
        self._expired.pop(memory_id, None)
        del self._memories[memory_id]

    def _activate(self, memory: Memory) -> None:
        namespace = fold(memory.namespace)
        self._active[memory.id] = namespace
        self._row(self._namespaces, namespace)[memory.id] = None
        for link in self._key_links.get(memory.id, {}).values():
            self._count(link, namespace, 1)

    def _deactivate(self, memory: Memory) -> None:
        namespace = fold(memory.namespace)
        del self._active[memory.id]
        self._drop(self._namespaces, namespace, memory.id)
        for link in self._key_links.get(memory.id, {}).values():
            self._count(link, namespace, -1)

    def _count(self, link: Link, namespace: str, step: int) -> None:
        key_id = link.key_id
        for script in scripts(" ".join(self.words_of(link))):
            uses = self._row(self._scripts, namespace)
            uses[script] = uses.get(script, 0) + step
        row = self._row(self._counts, key_id)
        row[namespace] = row.get(namespace, 0) + step
        if not row[namespace]:
            del row[namespace]
        self._totals[key_id] = self._totals.get(key_id, 0) + step
        self._ties[namespace] = self._ties.get(namespace, 0) + step
        if link.surfaces:
            worded = self._row(self._worded, (key_id, namespace))
            count = worded.get(link.surfaces, 0) + step
            if count:
                worded[link.surfaces] = count
            else:
                self._drop(self._worded, (key_id, namespace), link.surfaces)

    def _put_key(self, key: Key) -> None:
        self._keys[key.id] = key
        if key.learned or key.candidates:
            self._learners[key.id] = None
        for surface in key.surfaces:
            holder = self._surfaces.setdefault(fold(surface), key.id)
            if holder != key.id:
                raise ValueError(f"{surface!r} is key {holder} already")
            for group in self._groups_of(surface):
                self._row(self._groups, group)[key.id] = None

    def _unindex_key(self, key: Key) -> None:
        self._learners.pop(key.id, None)
        for surface in key.surfaces:
            self._surfaces.pop(fold(surface), None)
            for group in self._groups_of(surface):
                self._drop(self._groups, group, key.id)

    def _put_link(self, link: Link) -> None:
        if link.key_id not in self._keys or link.memory_id not in self._memories:
            raise ValueError(f"link {link.key_id}–{link.memory_id} has no end")
        row = self._row(self._members, link.key_id)
        before = row.get(link.memory_id)
        row[link.memory_id] = link
        self._row(self._key_links, link.memory_id)[link.key_id] = link
        self._sizes["links"] = self._sizes.get("links", 0) + (before is None)
        if link.memory_id in self._active and (before is None or before.surfaces != link.surfaces):
            namespace = self._active[link.memory_id]
            self._count(link, namespace, 1)
            if before is not None:
                self._count(before, namespace, -1)

    def _remove_link(self, key_id: str, memory_id: str) -> None:
        link = self._members.get(key_id, {}).get(memory_id)
        if link is None:
            raise ValueError(f"no link {key_id}–{memory_id}")
        self._drop(self._members, key_id, memory_id)
        self._drop(self._key_links, memory_id, key_id)
        self._sizes["links"] -= 1
        if memory_id in self._active:
            self._count(link, self._active[memory_id], -1)

    def _drop(self, table: MutableMapping[K, MutableMapping[L, V]], key: K, entry: L) -> None:
        if key not in table:
            return
        row = self._row(table, key)
        row.pop(entry, None)
        if not row:
            del table[key]


def _latest_first(table: Mapping[str, object]) -> Iterator[str]:
    return reversed(table) if isinstance(table, dict) else reversed(tuple(table))


def _named_by(memory: Memory) -> Iterator[str]:
    yield from memory.links
    yield from memory.contradicts
    if memory.supersedes is not None:
        yield memory.supersedes
