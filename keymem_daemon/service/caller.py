"""Who calls: the identity claims and the reach of one request, as the surface that took it understood them."""

from __future__ import annotations

from dataclasses import dataclass

from keymem_daemon.core.decide.limits import NAMESPACE_CHARS, checked_text
from keymem_daemon.core.errors import InvalidArgument, TooLarge
from keymem_daemon.core.model import DEFAULT_NAMESPACE, Actor, Scope
from keymem_daemon.core.text import fold, nfc


@dataclass(frozen=True, slots=True)
class Caller:
    """``namespaces``: those that the caller's working directory maps to, ``None`` for all."""

    actor: Actor
    request_id: str | None = None
    namespaces: tuple[str, ...] | None = None

    def scope(self, namespace: str | None) -> Scope:
        """What a read with this argument may see: the named namespace, ``*`` for all, else the mapping plus ``default``."""
        if namespace is None:
            return seen_by(self.namespaces)
        name = nfc(checked_text("namespace", namespace)).strip()
        if name == "*":
            return None
        if not name:
            raise InvalidArgument("namespace", "the name of a namespace, or '*' for all", "a blank one")
        if len(name) > NAMESPACE_CHARS:
            raise TooLarge("namespace", NAMESPACE_CHARS, len(name), "characters")
        return frozenset({fold(name)})

    def target(self, namespace: str | None) -> str | None:
        """Where a write with this argument goes: the named namespace, else the first one mapped, else the default."""
        if namespace is None and self.namespaces:
            return self.namespaces[0]
        return namespace

    def owns(self, namespace: str) -> bool:
        """Whether the namespace is one of those that the directory maps to; all are without a mapping."""
        return self.namespaces is None or fold(namespace) in map(fold, self.namespaces)

    def described(self, namespace: str | None) -> str:
        """The searched scope in a few words, for results: ``*`` stands for everything."""
        names = self.searched(namespace)
        return "*" if names is None else ", ".join(names)

    def searched(self, namespace: str | None) -> list[str] | None:
        """The namespaces that a read with this argument searches, ``None`` for all."""
        if namespace is not None:
            return None if namespace.strip() == "*" else [namespace.strip()]
        return None if self.namespaces is None else list(dict.fromkeys((*self.namespaces, DEFAULT_NAMESPACE)))


def seen_by(namespaces: tuple[str, ...] | None) -> Scope:
    """What a read may see from a directory that maps to these namespaces: them and ``default``; everything without a mapping."""
    return None if namespaces is None else frozenset(map(fold, (*namespaces, DEFAULT_NAMESPACE)))
