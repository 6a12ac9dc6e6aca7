"""JSON Schemas for tools: what pydantic makes of a model, reduced to what every client understands.

Clients disagree on `$ref`, `anyOf`, `title` and `default: null`, so none of them appears: definitions are put in place,
"or null" becomes an optional property (input) or a second type (output). Required properties stand in input schemas only: an
error result must satisfy the output schema too, because some clients check it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

__all__ = ["input_schema", "output_schema"]

Direction = Literal["input", "output"]

_NOISE = frozenset({"title", "$defs", "additionalProperties"})


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    raw = model.model_json_schema()
    schema = _reduced(raw, raw.get("$defs", {}), "input")
    required = schema.get("required", [])
    members = schema.get("properties", {})
    schema["properties"] = {name: members[name] for name in (*required, *(n for n in members if n not in required))}
    schema.pop("description", None)
    schema["additionalProperties"] = False
    return schema


def output_schema(result: type) -> dict[str, Any]:
    """The schema of a tool's structured result, an error included."""
    raw = TypeAdapter(result).json_schema()
    schema = _reduced(raw, raw.get("$defs", {}), "output")
    text = {"type": "string"}
    schema["properties"]["error"] = {"type": "object", "properties": {"code": text, "message": text, "hint": text}}
    return schema


def _reduced(node: dict[str, Any], definitions: dict[str, Any], direction: Direction) -> dict[str, Any]:
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        node = {**target, **{name: value for name, value in node.items() if name != "$ref"}}
    if "anyOf" in node:
        return _reduced(_without_null(node, definitions, direction), definitions, direction)
    kept: dict[str, Any] = {}
    for name, value in node.items():
        match name, value:
            case ("additionalProperties", dict()):
                kept[name] = _reduced(value, definitions, direction)
            case ("default", None) | ("const", _):
                if name == "const":
                    kept["enum"] = [value]
            case ("default" | "required", _) if direction == "output":
                pass
            case ("properties", dict()):
                kept[name] = {key: _reduced(item, definitions, direction) for key, item in value.items()}
            case ("items", dict()):
                kept[name] = _reduced(value, definitions, direction)
            case ("description", _) if direction == "output":
                pass
            case (name, _) if name in _NOISE:
                pass
            case _:
                kept[name] = value
    return kept


def _without_null(node: dict[str, Any], definitions: dict[str, Any], direction: Direction) -> dict[str, Any]:
    """``node`` with "one of these or null" resolved; there is one alternative beside null in all our models."""
    (alternative,) = (option for option in node["anyOf"] if option.get("type") != "null")
    if "$ref" in alternative:
        alternative = definitions[alternative["$ref"].rpartition("/")[2]]
    rest = {name: value for name, value in node.items() if name != "anyOf"}
    merged = {**alternative, **rest}
    if direction == "output" and isinstance(merged.get("type"), str):
        merged["type"] = [merged["type"], "null"]
        if "enum" in merged:
            merged["enum"] = [*merged["enum"], None]
    return merged
