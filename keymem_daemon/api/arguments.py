"""What each verb takes, and how what agents really send is read.

Agents send arrays, objects, numbers and booleans as JSON strings, whole numbers as `8.0` and absent values as `null`: all of
that is accepted. Text with a NUL or a lone surrogate is not: no file, log or peer could hold it. Nothing is guessed beyond
that. Here are types only; what a value may mean (lengths, ranges, ids) the services check.

Every parser raises `InvalidArgument`, which pydantic lets through; `parsed` turns pydantic's own findings into one as well.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from keymem_daemon.core.errors import InvalidArgument, shortened

__all__ = [
    "Arguments",
    "Browse",
    "Confirm",
    "Correct",
    "Dismiss",
    "Empty",
    "Forget",
    "History",
    "Inject",
    "ListMemories",
    "Paged",
    "ReadKey",
    "ReadMemory",
    "Recall",
    "RecallMemories",
    "Remember",
    "RememberBatch",
    "Retrieve",
    "Scoped",
    "Show",
    "decoded",
    "parsed",
]

_UNUSABLE: Final = re.compile("[\x00\ud800-\udfff]")
_LARGEST_WHOLE: Final = 2**53


def _text(value: object, argument: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(argument, "a string", _named_type(value))
    if found := _UNUSABLE.search(value):
        kind = "without NUL characters and lone surrogates"
        raise InvalidArgument(argument, f"text {kind}", f"one at position {found.start()}")
    return value


def _named_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return f"the text {shortened(value, 40)!r}"
        case Mapping():
            return "an object"
        case _:
            return "an array"


def decoded(value: object) -> object:
    """``value``, decoded when it is a string that holds JSON; else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _number(value: object, argument: str, expected: str = "a number") -> float | int:
    found = decoded(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InvalidArgument(argument, expected, _named_type(found))
    if abs(found) > _LARGEST_WHOLE or math.isnan(found):
        raise InvalidArgument(argument, f"{expected} of ordinary size", "one that is not finite or too large")
    return found


def _whole(value: object, argument: str) -> int:
    found = _number(value, argument, "a whole number")
    if found != int(found):
        raise InvalidArgument(argument, "a whole number", str(found))
    return int(found)


def _switch(value: object, argument: str) -> bool:
    found = decoded(value.strip().lower() if isinstance(value, str) else value)
    if not isinstance(found, bool):
        raise InvalidArgument(argument, "true or false", _named_type(found))
    return found


def _array(value: object, argument: str, expected: str) -> list[object]:
    found = decoded(value)
    if not isinstance(found, list | tuple):
        raise InvalidArgument(argument, expected, _named_type(found))
    return list(found)


def _texts(value: object, argument: str) -> tuple[str, ...]:
    items = _array(value, argument, "an array of strings")
    return tuple(_text(item, f"{argument}[{position}]") for position, item in enumerate(items))


def _object(value: object, argument: str, expected: str) -> dict[str, object]:
    found = decoded(value)
    if not isinstance(found, Mapping):
        raise InvalidArgument(argument, expected, _named_type(found))
    return {_text(name, argument): item for name, item in found.items()}


def _types(value: object, argument: str) -> dict[str, str]:
    found = _object(value, argument, "an object from key to key type")
    return {name: _text(item, f"{argument}.{shortened(name, 40)}") for name, item in found.items()}


def _source(value: object, argument: str) -> dict[str, str]:
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        return {"note": _text(value, argument)}
    found = _object(value, argument, "a string or an object")
    return {name: _text(item if isinstance(item, str) else json.dumps(item), argument) for name, item in found.items()}


def _items(value: object, argument: str) -> list[object]:
    return _array(value, argument, "an array of objects, each with content and keys")


def _field(info: ValidationInfo) -> str:
    return info.field_name or "arguments"


Text = Annotated[str, BeforeValidator(lambda value, info: _text(value, _field(info)))]
Whole = Annotated[int, BeforeValidator(lambda value, info: _whole(value, _field(info)))]
Number = Annotated[float, BeforeValidator(lambda value, info: _number(value, _field(info)))]
Switch = Annotated[bool, BeforeValidator(lambda value, info: _switch(value, _field(info)))]
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value, info: _texts(value, _field(info)))]
Types = Annotated[
    dict[str, str],
    BeforeValidator(lambda value, info: _types(value, _field(info))),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": "string", "enum": ["concept", "name", "proper_noun"]}}
    ),
]
Provenance = Annotated[
    dict[str, str],
    BeforeValidator(lambda value, info: _source(value, _field(info))),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]
_Profile = WithJsonSchema({"type": "string", "enum": ["transient", "standard", "stable", "permanent"]})
_EvidenceKind = WithJsonSchema({"type": "string", "enum": ["user", "authoritative_source", "observation"]})


def _range(low: int, high: int) -> dict[str, Any]:
    return {"minimum": low, "maximum": high}


class Arguments(BaseModel):
    """Base of what verbs take: a name that is not listed is an error, ``null`` is the same as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=False)

    @property
    def directory(self) -> str | None:
        """The working directory that the arguments themselves name."""
        return None


class Empty(Arguments):
    """No argument at all."""


class Scoped(Arguments):
    namespace: Text | None = Field(None, description="Only this namespace; omit for all you may see")


# Taken where an error's hint has named it, and not listed: an id is enough within the namespaces of the caller's directory.
_Unlisted = SkipJsonSchema[Text | None]


class Recall(Scoped):
    query: Text = Field(description="1-4 short noun keywords, not a sentence")
    context: Text | None = Field(None, description="The user's raw words: picks the preview")
    top_k: Whole = Field(8, description="Keys to return", json_schema_extra=_range(1, 20))
    explain: Switch = Field(False, description="Also return namespace_memory_count and how the score came about")
    max_chars: Whole | None = Field(
        None, description="Most characters of the preview's text", json_schema_extra=_range(80, 6_000)
    )


class Browse(Arguments):
    namespace: Text = Field(description="Namespace to survey")
    hubs_only: Switch = Field(False, description="Only keys with many memories")
    limit: Whole = Field(20, description="Page size", json_schema_extra=_range(1, 100))
    offset: Whole = Field(0, description="next_offset of the page before", json_schema_extra={"minimum": 0})


class ReadKey(Scoped):
    key_id: Text = Field(description="key_id from recall, browse_keys or read_memory")
    query: Text | None = Field(None, description="Ranks the memories by what you look for")
    limit: Whole = Field(10, description="Page size", json_schema_extra=_range(1, 50))
    offset: Whole = Field(0, description="next_offset of the page before", json_schema_extra={"minimum": 0})


class ReadMemory(Scoped):
    memory_id: Text = Field(description="Id from read_key or recall")
    via_key_id: Text | None = Field(None, description="The key you came through; that path is strengthened")


class Confirm(Scoped):
    memory_id: Text = Field(description="Memory that proved true")
    evidence: Annotated[Text, _EvidenceKind] = Field(description="Who or what showed it")
    source: Provenance | None = Field(None, description="Where: file, URL, message (string or object)")


class Remember(Arguments):
    content: Text = Field(description="One self-contained fact, up to 20,000 characters")
    keys: Texts = Field(description="3-6 diverse atomic nouns it should be found by, most central first")
    key_types: Types | None = Field(None, description="Type of a key: name and proper_noun match only literally")
    namespace: Text | None = Field(None, description="Project or context; default: default")
    ttl_seconds: Number | None = Field(None, description="Delete after this many seconds")
    decay_profile: Annotated[Text, _Profile] | None = Field(None, description="How fast it ages; default standard")
    related_to: Texts | None = Field(None, description="Ids of related memories")
    source: Provenance | None = Field(None, description="Where it comes from (string or object)")


class RememberBatch(Arguments):
    items: Annotated[
        list[Any],
        BeforeValidator(lambda value, info: _items(value, _field(info))),
        WithJsonSchema(
            {
                "type": "array",
                "maxItems": 200,
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string"},
                        "keys": {"type": "array", "items": {"type": "string"}},
                        "namespace": {"type": "string"},
                    },
                    "required": ["content", "keys"],
                },
            }
        ),
    ] = Field(description="Each with the parameters of remember")


class Correct(Arguments):
    memory_id: Text = Field(description="Memory that is no longer true")
    content: Text = Field(description="The whole fact as it is now")
    keys: Texts | None = Field(None, description="New keys when the topic changed; else inherited")
    key_types: Types | None = Field(None, description="As in remember")
    ttl_seconds: Number | None = Field(None, description="As in remember; else inherited")
    decay_profile: Annotated[Text, _Profile] | None = Field(None, description="As in remember; else inherited")
    related_to: Texts | None = Field(None, description="As in remember; else inherited")
    source: Provenance | None = Field(None, description="As in remember")
    namespace: _Unlisted = None


class Dismiss(Scoped):
    memory_id: Text = Field(description="Memory that did not belong")
    key_id: Text = Field(description="Key it was reached through")


class Forget(Arguments):
    memory_id: Text = Field(description="Memory to delete")
    namespace: _Unlisted = None


class Retrieve(Scoped):
    query: Text = Field(description="What to find, in plain words")
    context: Text | None = Field(None, description="More of the situation")
    top_k: Whole = Field(10, description="Memories to return", json_schema_extra=_range(1, 100))
    hops: Whole = Field(2, description="How far to follow shared keys", json_schema_extra=_range(1, 5))
    explain: Switch = Field(False, description="Also say how each score came about")


class Inject(Scoped):
    prompt: Text = Field(description="The user's prompt as it was typed")
    cwd: Text | None = Field(None, description="The client's working directory")
    session_id: Text | None = Field(None, description="The client's session: nothing is shown twice in it")
    top_k: Whole = Field(2, description="Memories to return at most", json_schema_extra=_range(0, 20))
    budget_ms: Whole = Field(800, description="Time to answer in", json_schema_extra=_range(1, 60_000))

    @property
    def directory(self) -> str | None:
        """The hook passes on what its client told it."""
        return self.cwd


class RecallMemories(Scoped):
    query: Text = Field(description="What to find, in plain words")
    top_k: Whole = Field(5, description="Memories to return", json_schema_extra=_range(1, 20))
    expand: Switch = Field(True, description="Follow shared keys; false searches directly only")
    hops: Whole = Field(2, description="How far to follow them", json_schema_extra=_range(1, 5))
    min_rel_score: Number = Field(0.0, description="Leave out lower scores")
    min_depth: Number = Field(0.0, description="Leave out memories of lower depth")


class ListMemories(Scoped):
    limit: Whole = Field(20, description="Page size", json_schema_extra=_range(1, 100))
    offset: Whole = Field(0, description="next_offset of the page before", json_schema_extra={"minimum": 0})


Paged = Browse | ReadKey | ListMemories


class History(Arguments):
    id: Text | None = Field(None, description="A memory or key; omit for everything")
    limit: Whole = Field(20, description="Changes to return", json_schema_extra=_range(1, 200))


class Show(Arguments):
    id: Text = Field(description="A memory or key")


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def parsed(model: type[ArgumentsT], raw: object) -> ArgumentsT:
    """The arguments in ``raw``, a decoded JSON value; raises `InvalidArgument` naming the argument and what was expected."""
    if not isinstance(raw, Mapping):
        raise InvalidArgument("arguments", "an object", _named_type(raw))
    known = model.model_fields
    for name in raw:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InvalidArgument(
                shortened(str(name), 60),
                f"one of the arguments there are ({listed})",
                hint=f"Leave it out. Known: {listed}.",
            )
    missing = [name for name, field in known.items() if field.is_required() and raw.get(name) is None]
    if missing:
        raise InvalidArgument(missing[0], "a value, it is required", "none")
    try:
        return model.model_validate({name: value for name, value in raw.items() if value is not None})
    except ValidationError as problem:
        first: Sequence[Any] = problem.errors(include_url=False, include_context=False, include_input=False)
        where = ".".join(str(part) for part in first[0]["loc"])
        raise InvalidArgument(shortened(where, 60) or "arguments", str(first[0]["msg"])) from None
