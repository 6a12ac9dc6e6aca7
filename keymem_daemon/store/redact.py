"""What forgetting takes along, and what is left of a recorded response that tells of it.

The response must stay: without it a request that is sent again would be carried out again, and what was forgotten would be
back. Its texts must go. Identifiers, numbers and the plain lower-case words by which a result says what it is stay, so
that it can still be read by whoever reads responses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Final

from keymem_daemon.core.changes import Commit, KeyRemoved, MemoryRemoved
from keymem_daemon.store.records import encoded

FORGOTTEN: Final = "(forgotten)"

_IDENTIFIER: Final = re.compile(r"[0-9a-f]{12}")
_PLAIN_WORD: Final = re.compile(r"[a-z_]{1,32}")


def redacted(response: str, texts: Collection[str]) -> str:
    """``response`` (JSON) without its texts. ``texts`` are the forgotten ones: their words do not count as plain."""
    try:
        value = json.loads(response)
    except ValueError:
        return encoded(FORGOTTEN)
    words = frozenset(word for text in texts for word in re.findall(r"[a-z_]+", text.lower()))
    return encoded(_without_texts(value, words))


def _without_texts(value: object, words: frozenset[str]) -> object:
    match value:
        case str():
            plain = _IDENTIFIER.fullmatch(value) or (_PLAIN_WORD.fullmatch(value) and value not in words)
            return value if plain else FORGOTTEN
        case list():
            return [_without_texts(item, words) for item in value]
        case dict():
            return {str(name): _without_texts(item, words) for name, item in value.items()}
        case _:
            return value


def tells_of_forgetting(response: str, ids: Collection[str]) -> bool:
    """Whether this is the answer that one of these was deleted: it has no text of it, and its asker may ask again."""
    try:
        value = json.loads(response)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("deleted") in ids


def surfaces_of_image(image: Mapping[str, object]) -> list[str]:
    """The strings of a key as history has it; none where it was purged."""
    names: list[object] = [image.get("concept")]
    for field, part in (("aliases", None), ("learned", "alias"), ("candidates", "query")):
        held = image.get(field)
        entries: list[object] = held if isinstance(held, list) else []
        names += entries if part is None else [entry.get(part) for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str)]


def removed_ids(commit: Commit) -> list[str]:
    """Ids of what a commit removes when it purges: its memories and the keys that no memory needs any more; else nothing."""
    purged = [change.memory_id for change in commit.changes if isinstance(change, MemoryRemoved) and change.purge]
    return [*purged, *(change.key_id for change in commit.changes if isinstance(change, KeyRemoved))] if purged else []
