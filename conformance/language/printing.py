"""Formats a case as YAML in the style of hand-written ones; ``read_case`` reads back the same case."""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from conformance.core.data import Json
from conformance.language.source import resolve

WIDTH = 120
"""The longest line, in columns, for a list or a mapping on one line."""

_INDENT = "  "
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.()<>=+*/' -]*")
"""Text that needs no quotes, even inside brackets."""
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_,()<> ]*")
"""A DDL schema that needs none; schemas are never inside brackets."""


def printed(written: Mapping[str, Json]) -> str:
    """Return the YAML text of a case, which is given as a mapping."""
    return "".join(f"{line}\n" for line in _top(written))


def inline(value: Json) -> str:
    """Return a value on one line: ``{rows: [["12:00", 1]], watermark: "11:50"}``."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    return _scalar(value)


def _top(written: Mapping[str, Json]) -> Iterator[str]:
    for key, value in written.items():
        if key == "streams":
            yield f"{key}:"
            for name, declared in value.items():
                plain = isinstance(declared, str) and _SCHEMA.fullmatch(declared)
                yield f"{_INDENT}{name}: {declared if plain else inline(declared)}"
        elif key in ("query", "steps"):
            yield f"{key}:"
            yield from _items(value, _INDENT)
        elif isinstance(value, Mapping) and value:
            yield f"{key}:"
            yield from _entries(value, _INDENT)
        else:
            yield f"{key}: {inline(value)}"


def _items(items: list[Mapping[str, Json]], indent: str) -> Iterator[str]:
    """Yield mappings as the items of a list, each with its first key after the dash."""
    for entries in items:
        first, *others = _entries(entries, indent + _INDENT)
        yield f"{indent}- {first.removeprefix(indent + _INDENT)}"
        yield from others


def _entries(entries: Mapping[str, Json], indent: str) -> Iterator[str]:
    for key, value in entries.items():
        line = f"{indent}{_scalar(key)}: {inline(value)}"
        if value and isinstance(value, list) and isinstance(value[0], Mapping) and "from" in value[0]:  # a pipeline
            yield f"{indent}{_scalar(key)}:"
            yield from _items(value, indent + _INDENT)
        elif len(line) <= WIDTH or not value or not isinstance(value, Mapping | list):
            yield line
        elif isinstance(value, Mapping):
            yield f"{indent}{_scalar(key)}:"
            yield from _entries(value, indent + _INDENT)
        else:
            yield f"{indent}{_scalar(key)}:"
            for item in value:
                yield f"{indent}{_INDENT}- {inline(item)}"


def _scalar(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return str(value)
    text = str(value)
    plain = _PLAIN.fullmatch(text) and text == text.strip() and resolve(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)
