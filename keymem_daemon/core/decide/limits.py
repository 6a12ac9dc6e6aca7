"""What a memory and its keys may be: the limits of the product, checked before anything is decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keymem_daemon.core.errors import InvalidArgument, TooLarge, shortened
from keymem_daemon.core.model import DECAY_PROFILES, DEFAULT_NAMESPACE, KEY_TYPES, DecayProfile, KeyType
from keymem_daemon.core.text import fold, is_blank, nfc, usable_key

CONTENT_CHARS: Final = 20_000
KEYS_PER_MEMORY: Final = 32
KEY_CHARS: Final = 128
BATCH_ITEMS: Final = 200
NAMESPACE_CHARS: Final = 128
RELATED_IDS: Final = 64
SOURCE_CHARS: Final = 2_000
TTL_SECONDS: Final = 3_155_760_000.0  # a hundred years: beyond it a date is no longer a date everywhere


@dataclass(frozen=True, slots=True)
class WantedKey:
    """One usable key of a request: as written (NFC, trimmed) and of which type."""

    surface: str
    key_type: KeyType


def checked_content(content: str) -> str:
    """The content as it is stored (NFC); raises for blank, oversized or unencodable text."""
    checked_text("content", content)
    text = nfc(content)
    if is_blank(text):
        raise InvalidArgument("content", "the text to remember", "nothing that can be seen" if content else "an empty string")
    if len(text) > CONTENT_CHARS:
        raise TooLarge("content", CONTENT_CHARS, len(text), "characters")
    return text


def checked_text(argument: str, text: str) -> str:
    """``text`` if it can be stored and shown: no lone surrogate and no NUL, which no file or client carries."""
    for position, char in enumerate(text) if not text.isascii() or "\0" in text else ():
        if "\ud800" <= char <= "\udfff":
            raise InvalidArgument(argument, "valid Unicode text", f"a lone surrogate U+{ord(char):04X} at character {position}")
        if char == "\0":
            raise InvalidArgument(argument, "text without NUL", f"a NUL at character {position}")
    return text


def checked_keys(keys: Sequence[str], key_types: Mapping[str, str]) -> tuple[tuple[WantedKey, ...], tuple[str, ...]]:
    """The usable keys, each once, and the ones that were unusable as they came.

    Raises for more than 32 keys, a key of more than 128 characters, an unknown key type, a type for a key that is not there,
    and when no key is usable.
    """
    if len(keys) > KEYS_PER_MEMORY:
        raise TooLarge("keys", KEYS_PER_MEMORY, len(keys), "keys")
    types: dict[str, KeyType] = {}
    given = {fold(key) for key in keys}
    for name, key_type in key_types.items():
        if key_type not in KEY_TYPES:
            raise InvalidArgument("key_types", f"one of {', '.join(KEY_TYPES)} for {shortened(name, 40)!r}", repr(shortened(str(key_type), 40)))
        if fold(name) not in given:
            raise InvalidArgument("key_types", "types for keys that are in keys", f"{shortened(name, 40)!r}, which is not")
        types[fold(name)] = key_type
    wanted: dict[str, WantedKey] = {}
    dropped: list[str] = []
    for key in keys:
        surface = " ".join(nfc(checked_text("keys", key)).split())
        if len(surface) > KEY_CHARS:
            raise TooLarge("keys", KEY_CHARS, len(surface), "characters a key")
        if usable_key(surface):
            wanted.setdefault(fold(surface), WantedKey(surface, types.get(fold(key), "concept")))
        else:
            dropped.append(key)
    if not wanted:
        raise InvalidArgument(
            "keys",
            "at least one usable key (two characters or more, or one CJK character)",
            "none" if not keys else ", ".join(repr(shortened(key, 20)) for key in keys[:4]),
            "A memory without keys can never be recalled; nothing was saved. Give 3–6 short, diverse noun keys.",
        )
    return tuple(wanted.values()), tuple(dropped)


def checked_namespace(namespace: str | None) -> str:
    """The namespace a write goes to: the given one, trimmed, or ``default``."""
    if namespace is None:
        return DEFAULT_NAMESPACE
    name = nfc(checked_text("namespace", namespace)).strip()
    if not name or name == "*":
        raise InvalidArgument("namespace", "a name", "a blank one" if not name else "'*', which stands for all of them in a read")
    if len(name) > NAMESPACE_CHARS:
        raise TooLarge("namespace", NAMESPACE_CHARS, len(name), "characters")
    return name


def checked_profile(profile: str | None) -> DecayProfile | None:
    """The decay profile, or ``None`` when none was given."""
    if profile is None or profile in DECAY_PROFILES:
        return profile
    raise InvalidArgument("decay_profile", f"one of {', '.join(DECAY_PROFILES)}", repr(shortened(profile, 40)))


def checked_expiry(ttl_seconds: float | None, now: float) -> float | None:
    """The moment of expiry for a time to live in seconds, or ``None`` for none."""
    if ttl_seconds is None:
        return None
    if not math.isfinite(ttl_seconds) or not 0 < ttl_seconds <= TTL_SECONDS:
        raise InvalidArgument("ttl_seconds", "a number of seconds greater than 0 (at most a hundred years)", f"{ttl_seconds:g}")
    return now + ttl_seconds


def checked_related(related_to: Iterable[str]) -> tuple[str, ...]:
    """The ids, each once; whether they exist is for the graph to say."""
    ids = tuple(dict.fromkeys(checked_text("related_to", related) for related in related_to))
    if len(ids) > RELATED_IDS:
        raise TooLarge("related_to", RELATED_IDS, len(ids), "ids")
    return ids


def checked_source(source: Mapping[str, str] | None) -> dict[str, str]:
    """The caller's provenance."""
    if source is None:
        return {}
    size = 0
    for name, value in source.items():
        size += len(checked_text("source", name)) + len(checked_text("source", value))
    if size > SOURCE_CHARS:
        raise TooLarge("source", SOURCE_CHARS, size, "characters")
    return dict(source)
