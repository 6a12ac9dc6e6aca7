"""The last resort against a tool result that is too large for a context: what is least useful goes, and the result says so.

The services keep results small by themselves; this guarantees it. Lists are ordered by use, so the end of the longest one goes
first. Of a batch every item keeps its place: there the hints go, then the errors are shortened.
"""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["RESULT_BYTES", "fitted"]

RESULT_BYTES: Final = 8_192

_LISTS: Final = ("keys", "nearest_keys", "memories", "connected_keys", "related")
_ERROR_CHARS: Final = 60
_NOTE_BYTES: Final = 200


def fitted(result: dict[str, Any], limit: int = RESULT_BYTES) -> dict[str, Any]:
    """``result``, or a copy of it within ``limit`` bytes of JSON that says in ``truncated`` what is missing."""
    if _size(result) <= limit:
        return result
    result = json.loads(json.dumps(result))
    return _fitted_batch(result, limit) if isinstance(result.get("results"), list) else _fitted_lists(result, limit)


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _fitted_lists(result: dict[str, Any], limit: int) -> dict[str, Any]:
    """Whichever list is the largest at the moment loses its last entry, until the rest fits; nobody loses the first."""
    dropped: dict[str, int] = {}
    while (excess := _size(result) - (limit - _NOTE_BYTES)) > 0:
        places = [(entries, name, [_size(entry) + 1 for entry in entries]) for entries, name in _lists(result)]
        if not places:
            break
        while excess > 0:
            entries, name, sizes = max(places, key=lambda place: sum(place[2]) if len(place[0]) > 1 else 0)
            if len(entries) <= 1:
                break
            entries.pop()
            excess -= sizes.pop()
            dropped[name] = dropped.get(name, 0) + 1
    listed = ", ".join(f"{count} of {name}" for name, count in dropped.items())
    result["truncated"] = f"left out to keep this short: {listed or 'nothing could be'}; ask more narrowly or by pages"
    return result


def _lists(node: dict[str, Any]) -> list[tuple[list[Any], str]]:
    """Every list that may lose its end, with its name: those with more than one entry."""
    found: list[tuple[list[Any], str]] = []
    for name, value in node.items():
        if name in _LISTS and isinstance(value, list):
            if len(value) > 1:
                found.append((value, name))
            for item in value:
                if isinstance(item, dict):
                    found += _lists(item)
        elif isinstance(value, dict):
            found += _lists(value)
    return found


def _fitted_batch(result: dict[str, Any], limit: int) -> dict[str, Any]:
    hints = 0
    for item in reversed(result["results"]):
        if _size(result) <= limit:
            break
        if isinstance(item, dict) and item.pop("hints", None) is not None:
            hints += 1
            result["truncated"] = f"left out to keep this short: the hints of {hints} items"
    for item in reversed(result["results"]):
        if _size(result) <= limit:
            break
        error = item.get("error") if isinstance(item, dict) else None
        if isinstance(error, dict):
            error.pop("hint", None)
            error["message"] = str(error.get("message", ""))[:_ERROR_CHARS]
    return result
