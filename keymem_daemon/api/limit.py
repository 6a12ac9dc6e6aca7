"""The last resort against a tool result that is too large for a context: what is least useful goes, and the result says so.

The services keep results small by themselves; this guarantees it. Lists are ordered by use, so the end of the longest one goes
first, and a page that lost its end says where the next one begins: nothing is skipped. Texts are cut last. Of a batch every item keeps its
place and says whether it was saved and as what: there the hints go first, then what errors have to say is said once for all items
that share it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["RESULT_BYTES", "Page", "fitted"]

RESULT_BYTES: Final = 8_192

_LISTS: Final = (
    "keys",
    "nearest_keys",
    "memories",
    "connected_keys",
    "related",
    "related_to",
    "aliases",
    "path",
    "query_terms",
)
_TEXT_CHARS: Final = 80
_MESSAGE_CHARS: Final = 100
_NOTE_BYTES: Final = 240
_NOT_SAID: Final = "; not all is said"


@dataclass(frozen=True, slots=True)
class Page:
    """Which list of a result is a page of a longer one, and how many entries come before it."""

    name: str
    offset: int


def fitted(result: dict[str, Any], limit: int = RESULT_BYTES, page: Page | None = None) -> dict[str, Any]:
    """``result``, or a copy of it within ``limit`` bytes of JSON that says in ``truncated`` what is missing."""
    if _size(result) <= limit:
        return result
    result = json.loads(json.dumps(result))
    if isinstance(result.get("results"), list):
        return _fitted_batch(result, limit)
    return _fitted_lists(result, limit, page)


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _fitted_lists(result: dict[str, Any], limit: int, page: Page | None) -> dict[str, Any]:
    """Whichever list is the largest at the moment loses its last entry, until the rest fits; nobody loses the first."""
    dropped: dict[str, int] = {}
    room = limit - _NOTE_BYTES
    while (excess := _size(result) - room) > 0:
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
    lost = [f"{count} of {name}" for name, count in dropped.items()]
    if _cut_texts(result, room):
        lost.append("the ends of long texts")
    advice = "ask more narrowly or by pages"
    if page is not None and page.name in dropped:
        result["next_offset"] = page.offset + len(result[page.name])
        advice = "next_offset goes on where this ends"
    result["truncated"] = f"left out to keep this short: {', '.join(lost) or 'nothing could be'}; {advice}"
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


def _cut_texts(node: dict[str, Any], room: int) -> bool:
    """Cut the longest text in ``node``, then the next, until it fits ``room``; whether any was cut. What is cut says so."""
    cut = False
    while (excess := _size(node) - room) > 0:
        holder, name = max(_texts(node), key=lambda place: len(place[0][place[1]]), default=({}, ""))
        text = holder.get(name, "")
        if len(text) <= _TEXT_CHARS:
            break
        # A character has at most six bytes of JSON: what is cut this time is never too much by far.
        keep = max(_TEXT_CHARS, min(len(text) - 2, len(text) - excess // 6))
        holder[name] = text[: keep - 1].rstrip() + "…"
        if name == "content":
            holder["content_truncated"] = True
        cut = True
    return cut


def _texts(node: dict[str, Any]) -> Iterable[tuple[dict[str, Any], str]]:
    for name, value in node.items():
        if isinstance(value, str):
            yield node, name
        elif isinstance(value, dict):
            yield from _texts(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from _texts(item)


def _fitted_batch(result: dict[str, Any], limit: int) -> dict[str, Any]:
    items: list[dict[str, Any]] = result["results"]
    said: list[str] = []
    hints = 0
    excess = _size(result) - (limit - _NOTE_BYTES)
    for item in reversed(items):
        if excess <= 0:
            break
        if "hints" in item:
            excess -= _size(item["hints"]) + len('"hints":,')
            del item["hints"]
            hints += 1
    if hints:
        said.append(f"the hints of {hints} items")
    if excess <= 0:
        return _with_note(result, said, [], limit)
    groups = _grouped_errors(items)
    if groups:
        said.append("the errors of items, which come here")
    flagged = [number for number, item in enumerate(items) if "deduplicated" in item]
    unflagged: list[int] = []
    while flagged and _size(result) > limit - 2 * _NOTE_BYTES:
        unflagged.append(flagged.pop())
        del items[unflagged[-1]]["deduplicated"]
    if unflagged:
        said.append(f"that items {_ranges(sorted(unflagged))} were there already")
    return _with_note(result, said, groups, limit)


def _grouped_errors(items: list[dict[str, Any]]) -> list[str]:
    """Leave of every error its code; what they say comes back in sentences, those of most items first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, item in enumerate(items):
        error = item.get("error")
        if isinstance(error, dict):
            groups.setdefault((str(error.get("message", "")), str(error.get("hint", ""))), []).append(number)
            item["error"] = {"code": error.get("code")}
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[1]))
    return [
        f"items {_ranges(numbers)}: {_shortened(message)} ({_shortened(hint)})" for (message, hint), numbers in ordered
    ]


def _with_note(result: dict[str, Any], said: list[str], groups: list[str], limit: int) -> dict[str, Any]:
    """``result`` with a note of all that fits."""
    note = f"left out to keep this short: {', '.join(said) or 'nothing could be'}"
    result["truncated"] = note
    for number, group in enumerate(groups):
        longer = f"{result['truncated']}; {group}"
        last = number == len(groups) - 1
        if _size({**result, "truncated": longer if last else longer + _NOT_SAID}) > limit:
            result["truncated"] += _NOT_SAID
            break
        result["truncated"] = longer
    return result


def _ranges(numbers: list[int]) -> str:
    """``0-3, 7`` for 0, 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _shortened(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARS else text[: _MESSAGE_CHARS - 1] + "…"
