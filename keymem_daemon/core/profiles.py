"""The thresholds of similarity, one profile per embedding model.

Cosine scales differ between models, so no rule may carry a threshold of its own: it takes a `Profile`. The table here is the
only place with the numbers. Choosing a profile and overriding it are pure; who reads the environment is `settings`, and who
says in the log that a model was unknown is the caller, which is why `profile_for` reports it.

The floors of the not-found gate and of the hook are the same in every profile: they are read on the sentence cosine of the
builtin encoder, which orders candidates whatever model embeds the keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

__all__ = ["OVERRIDES", "PROFILES", "Profile", "profile_for", "with_overrides"]

ProfileName = Literal["openai", "bge-en", "e5-multilingual", "bge-m3", "minilm", "builtin"]


@dataclass(frozen=True, slots=True)
class Profile:
    """Thresholds for one cosine scale; every one is a cosine within [0, 1].

    ``key_recall``: query to key. ``key_merge``: a new concept key into an existing one of three words or more.
    ``short_key_merge``: the same for keys of one or two words; 0 means only equal spelling. ``alias_promotion``: a learned
    query becomes an alias. ``near``: from here on an existing key is worth a hint; measured for the builtin encoder, midway
    between recall and merge for the others. ``per_token``: recall embeds each token and noun phrase of the query instead of
    the whole. ``across_scripts_only``: no cosine within one script is safe, so that merging by similarity needs two scripts.
    ``gate_floor`` and ``hook_floor``: see the module.
    """

    name: ProfileName
    key_recall: float
    key_merge: float
    short_key_merge: float
    alias_promotion: float
    near: float
    per_token: bool = False
    across_scripts_only: bool = False
    gate_floor: float = 0.33
    hook_floor: float = 0.62


PROFILES: Final[Mapping[ProfileName, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("openai", 0.28, 0.85, 0.0, 0.50, near=0.57),
            Profile("bge-en", 0.60, 0.85, 0.0, 0.60, near=0.73),
            Profile("e5-multilingual", 0.85, 0.97, 0.0, 0.93, near=0.91),
            Profile("bge-m3", 0.62, 0.86, 0.90, 0.62, near=0.74),
            Profile("minilm", 0.50, 0.85, 0.0, 0.60, near=0.68),
            Profile("builtin", 0.50, 0.85, 0.85, 0.85, near=0.75, per_token=True, across_scripts_only=True),
        )
    }
)

OVERRIDES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "KEY_RECALL": "key_recall",
        "KEY_MERGE": "key_merge",
        "SHORT_KEY_MERGE": "short_key_merge",
        "KEY_AUTOLINK": "alias_promotion",
        "HOOK_MIN_REL": "hook_floor",
    }
)
"""Suffix of the setting to the field that it overrides."""

# Fragments of a local model's name, squeezed to letters and digits; the first that occurs decides.
_LOCAL: Final[tuple[tuple[str, ProfileName], ...]] = (
    ("bgem3", "bge-m3"),
    ("multilinguale5", "e5-multilingual"),
    ("bgebaseen", "bge-en"),
    ("bgesmallen", "bge-en"),
    ("bgelargeen", "bge-en"),
    ("minilm", "minilm"),
)
_OPENAI: Final = ("textembedding3small", "textembedding3large", "textembeddingada002")


def profile_for(backend: str, model: str) -> tuple[Profile, bool]:
    """The profile of ``model`` as served by ``backend`` (builtin, local, openai), and whether the model is a known one.

    An unknown model gets the BGE profile and ``False``; the caller says so where a person looks.
    """
    squeezed = "".join(filter(str.isalnum, model.casefold()))
    if backend == "builtin":
        return PROFILES["builtin"], True
    if backend == "openai":
        if any(known in squeezed for known in _OPENAI):
            return PROFILES["openai"], True
    else:
        for fragment, name in _LOCAL:
            if fragment in squeezed:
                return PROFILES[name], True
    return PROFILES["bge-en"], False


def with_overrides(profile: Profile, overrides: Mapping[str, str | float]) -> tuple[Profile, tuple[str, ...]]:
    """``profile`` with the overrides applied, and one sentence for each that was refused.

    ``overrides`` maps names of `OVERRIDES` to numbers or their text. What is no number within [0, 1] leaves the profile's own
    value in force. Raises `KeyError` for a name that overrides nothing: a defect of the caller.
    """
    refused: list[str] = []
    accepted: dict[str, float] = {}
    for name, raw in overrides.items():
        field = OVERRIDES[name]
        try:
            number = float(raw)
        except ValueError:
            number = math.nan
        if 0.0 <= number <= 1.0:
            accepted[field] = number
        else:
            refused.append(
                f"{name} is {raw!r}, not a number from 0 to 1; using {getattr(profile, field)} ({profile.name})"
            )
    return replace(profile, **accepted), tuple(refused)  # type: ignore[arg-type]
