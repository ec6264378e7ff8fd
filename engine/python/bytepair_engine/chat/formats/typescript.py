"""Render JSON schemas as TypeScript types, as openai/harmony does for tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bytepair_engine.chat.json_text import dumps_compact


def type_of(schema: object, indent: str = "") -> str:
    """Return the type of a schema with its comments; keys keep their order.

    The result is byte for byte that of `json_schema_to_typescript` in openai/harmony
    src/encoding.rs @ec7606d. A schema that is not an object becomes `any`.
    """
    if not isinstance(schema, Mapping):
        return "any"
    variants = schema.get("oneOf")
    if isinstance(variants, list):
        return "".join(_top_variant(variant, indent) for variant in variants)
    kind = schema.get("type")
    if isinstance(kind, list):
        names = [_number(name) for name in kind if isinstance(name, str)]
        if names:
            return " | ".join(names)
        return "any"
    if kind == "object":
        return _object(schema, indent)
    if kind == "string":
        values = schema.get("enum")
        if isinstance(values, list):
            quoted = [f'"{value}"' for value in values if isinstance(value, str)]
            if quoted:
                return " | ".join(quoted)
        return "string"
    if kind in ("number", "integer"):
        return "number"
    if kind == "boolean":
        return "boolean"
    if kind == "array":
        return f"{type_of(schema['items'], indent)}[]" if "items" in schema else "Array<any>"
    return "any"


def _number(name: str) -> str:
    return "number" if name == "integer" else name


def _object(schema: Mapping[str, Any], indent: str) -> str:
    description = _string(schema, "description")
    lines = [] if description is None else [f"{indent}// {description}\n"]
    lines.append("{\n")
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        required = schema.get("required")
        names = set(filter(_is_string, required)) if isinstance(required, list) else set()
        for key, value in properties.items():
            mark = "" if key in names else "?"
            lines.append(_property(key + mark, value, indent))
    lines.append(f"{indent}}}")
    return "".join(lines)


def _property(name: str, value: object, indent: str) -> str:
    schema = value if isinstance(value, Mapping) else {}
    lines = []
    title, description = _string(schema, "title"), _string(schema, "description")
    if title is not None:
        lines.append(f"{indent}// {title}\n{indent}//\n")
    if description is not None and "oneOf" not in schema:
        lines.append(f"{indent}// {description}\n")
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        lines.append(f"{indent}// Examples:\n")
        lines += [f'{indent}// - "{text}"\n' for text in examples if isinstance(text, str)]
    variants = schema.get("oneOf")
    if isinstance(variants, list):
        lines.append(_choice(name, schema, variants, indent))
        return "".join(lines)
    lines.append(f"{indent}{name}: {_nullable(value, f'{indent}    ')},")
    if "default" in schema and "oneOf" not in schema:
        lines.append(f" // {_default(schema, bare_enum=True)}")
    lines.append("\n")
    return "".join(lines)


def _choice(name: str, schema: Mapping[str, Any], variants: list[Any], indent: str) -> str:
    """Return a property whose type is a union."""
    lines = []
    description = _string(schema, "description")
    first = _string(variants[0], "description") if variants else None
    is_above = description is not None and description != first
    if is_above:
        lines.append(f"{indent}// {description}\n")
    if "default" in schema:
        lines.append(f"{indent}// {_default(schema, bare_enum=True)}\n")
    lines.append(f"{indent}{name}:\n")
    for number, variant in enumerate(variants):
        comments = []
        text = _string(variant, "description")
        if text is not None and text != description and not (number == 0 and is_above):
            comments.append(text)
        if isinstance(variant, Mapping) and "default" in variant:
            comments.append(_default(variant, bare_enum=True))
        comment = f" // {' '.join(comments)}" if comments else ""
        lines.append(f"{indent} | {_nullable(variant, f'{indent}   ')}{comment}\n")
    lines.append(f"{indent},\n")
    return "".join(lines)


def _top_variant(variant: object, indent: str) -> str:
    comments = []
    text = _string(variant, "description")
    if text is not None:
        comments.append(text)
    if isinstance(variant, Mapping) and "default" in variant:
        # Unlike for a property, the default of an enumeration is quoted here.
        comments.append(_default(variant, bare_enum=False))
    comment = f" // {' '.join(comments)}" if comments else ""
    return f"\n{indent} | {_nullable(variant, f'{indent}   ')}{comment}"


def _nullable(schema: object, indent: str) -> str:
    kind = type_of(schema, indent)
    if isinstance(schema, Mapping) and schema.get("nullable") is True and "null" not in kind:
        return f"{kind} | null"
    return kind


def _default(schema: Mapping[str, Any], *, bare_enum: bool) -> str:
    value, values = schema["default"], schema.get("enum")
    if not isinstance(value, str):
        return f"default: {dumps_compact(value)}"
    if isinstance(values, list) and values:
        return f"default: {value if bare_enum else dumps_compact(value)}"
    return f'default: "{value}"'


def _string(schema: object, key: str) -> str | None:
    value = schema.get(key) if isinstance(schema, Mapping) else None
    return value if isinstance(value, str) else None


def _is_string(value: object) -> bool:
    return isinstance(value, str)
