"""An explanation of a score as lines for a person: what was added, what it was multiplied with, the way to the memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keymem_daemon.cli.terminal import clean

__all__ = ["explanation_lines"]

_NAMES = {
    "lexical": "words",
    "keys": "keys",
    "sentence": "nearest sentence",
    "neighbour": "saved beside",
    "bridge": "over a key",
    "expansion": "over a key",
    "lexical_rank": "place by words",
    "key_rank": "place by keys",
    "new_to_the_set": "new to the set",
    "among_the_first": "among the first",
}


def explanation_lines(why: Mapping[str, Any]) -> Iterator[str]:
    """The sum term by term, the factors, and the path, each on a line of its own."""
    if why["path"]:
        yield "way: " + " → ".join(_step(step) for step in why["path"])
    for part in why["contributions"]:
        lowered = f" × {part['lowered']:g} (of somebody else)" if "lowered" in part else ""
        name = _NAMES.get(part["signal"], part["signal"])
        said = "; ".join(_details(part))
        yield f"{name:<17}{part['value']:.3f} × {part['weight']:.2f}{lowered} = {part['amount']:.4f}" + (
            f"  ({said})" if said else ""
        )
    factors = "".join(f" × {_factor(factor)}" for factor in why["factors"])
    yield f"{'score':<17}{why['sum']:.4f}{factors} = {why['score']:.4f}"


def _details(part: Mapping[str, Any]) -> Iterator[str]:
    terms: Sequence[str] = part.get("terms", ())
    if terms:
        yield clean(", ".join(terms))
    for key in part.get("keys", ()):
        yield f"{clean(key['concept'])}, {key['match']} {key['similarity']:.2f}"
    if part["signal"] == "sentence":
        yield f"cosine {part['raw']:.2f}"
    if "rank" in part:
        yield f"rank {part['rank']}"
    if "memory_id" in part:
        yield f"from {part['memory_id']}" + (f" over {clean(part['concept'])}" if part.get("concept") else "")
    if "parts" in part:
        names = {
            "hit_score": "its score",
            "specificity": "key",
            "key_in_query": "asked",
            "link": "link",
            "text": "text",
        }
        yield " × ".join(f"{names.get(name, name)} {value:.2f}" for name, value in part["parts"].items())


def _factor(factor: Mapping[str, Any]) -> str:
    return f"{_NAMES.get(factor['factor'], factor['factor'])} {factor['value']:.3f}"


def _step(step: Mapping[str, Any]) -> str:
    if "memory_id" in step:
        return f"“{clean(step['text'])}”"
    if step.get("related_to"):
        return "related to"
    how = f" ({step['match']})" if "match" in step else " (mentioned)" if step.get("mentioned") else ""
    return f"{clean(step['concept'])}{how}"
