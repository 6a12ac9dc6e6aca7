"""The shipped lexicon: which surface forms, in several languages, are one concept.

Its entries are statements, not similarities: two keys of one group are merged whatever any model thinks of them, which is
what loanwords (리액트, React) and abbreviations (k8s) need, whose vectors lie far apart. A form therefore belongs to one group
only, and a form with two common senses to none. The data is in ``lexicon.tsv`` beside this module: a line is a group, its
forms separated by tabs, the first of them its name; blank lines and lines that begin with ``#`` say nothing.

Nothing is read on import; `load_lexicon` is called once, by whoever puts the daemon together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from importlib import resources
from types import MappingProxyType
from typing import Final

from keymem_daemon.core.plurals import stem_key
from keymem_daemon.core.text import Script, fold, scripts

__all__ = ["Lexicon", "load_lexicon", "spelling"]

_JOINTS: Final = {ord(char): None for char in " -_‐‑–・·"}


def spelling(surface: str) -> str:
    """The form in which surfaces are looked up: folded, without spaces, hyphens and underscores ("front-end", "머신 러닝")."""
    if surface.isascii():
        return fold(surface).translate(_JOINTS)
    # Each step may make work for another (a compatibility form is a capital, marks meet when a hyphen goes): until nothing changes.
    plain = surface
    while (simpler := fold(unicodedata.normalize("NFKC", plain)).translate(_JOINTS)) != plain:
        plain = simpler
    return plain


def _one_of_each_script(group: Iterable[str]) -> Iterable[str]:
    first: dict[frozenset[Script], str] = {}
    for form in group:
        first.setdefault(scripts(form), form)
    return first.values()


class Lexicon:
    """Groups of surface forms. Immutable; compares by identity.

    Raises `ValueError` when a form is in two groups or a group has fewer than two forms.
    """

    def __init__(self, groups: Iterable[Sequence[str]]) -> None:
        forms: dict[str, tuple[str, ...]] = {}
        names: dict[str, str] = {}
        for group in groups:
            if len(group) < 2:
                raise ValueError(f"a group of the lexicon needs two forms: {group!r}")
            name = group[0]
            for form in group:
                if names.setdefault(spelling(form), name) != name:
                    raise ValueError(
                        f"{form!r} is in two groups of the lexicon: {names[spelling(form)]!r} and {name!r}"
                    )
            if name in forms:
                raise ValueError(f"two groups of the lexicon are named {name!r}")
            forms[name] = tuple(group)
        plurals: dict[str, str] = {}
        contested: set[str] = set()
        for name, group in forms.items():
            for form in group:
                stem = spelling(stem_key(form))
                if stem not in names and plurals.setdefault(stem, name) != name:
                    contested.add(stem)
        self._forms = MappingProxyType(forms)
        self._names = MappingProxyType(names)
        self._stems = MappingProxyType({stem: name for stem, name in plurals.items() if stem not in contested})
        reach: dict[str, int] = {}
        for spelled in names:
            reach[spelled[:1]] = max(len(spelled), reach.get(spelled[:1], 0))
        self._reach = MappingProxyType(reach)
        self._words = tuple(form for group in forms.values() for form in _one_of_each_script(group))

    def group(self, surface: str) -> str | None:
        """The name of the group that ``surface`` belongs to, as it stands or in the singular; ``None`` for a stranger."""
        spelled = spelling(surface)
        name = self._names.get(spelled)
        if name is not None:
            return name
        stem = stem_key(surface)
        spelled = spelled if stem == surface else spelling(stem)
        return self._names.get(spelled) or self._stems.get(spelled)

    def may_know(self, folded: str) -> bool:
        """Whether any form begins as this folded surface does and is not much shorter: what to ask first about many surfaces."""
        # Twice, for a form may be written with joints that its spelling is without ("머신 러닝").
        return len(folded) <= 2 * self._reach.get(folded[:1], 0)

    def forms(self, group: str) -> tuple[str, ...]:
        """Every form of a group, its name first. Raises `KeyError` for no group."""
        return self._forms[group]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all groups, in the order of the file."""
        return tuple(self._forms)

    @property
    def words(self) -> tuple[str, ...]:
        """The first form of each script of each group: what stands as a candidate beside the store's keys once embedded."""
        return self._words


def load_lexicon() -> Lexicon:
    """The lexicon that the package ships. Reads one packaged file; some milliseconds."""
    text = resources.files("keymem_daemon.core").joinpath("lexicon.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return Lexicon([form.strip() for form in line.split("\t") if form.strip()] for line in lines)
