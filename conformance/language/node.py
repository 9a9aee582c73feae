"""The content of a YAML file, each value with its position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TypeAlias

from conformance.core.data import Json


@dataclass(frozen=True)
class SourceLocation:
    """A position in a file; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Scalar(SourceLocation):
    """A text, number, boolean or null, as the YAML 1.2 core schema reads it."""

    value: str | int | float | Decimal | bool | None
    indent: int | None = 0
    """Characters (an opening quote) before its text; None if offsets in it do not correspond to columns."""

    def plain(self) -> Json:
        return self.value

    def at(self, offset: int) -> SourceLocation:
        """The position of a character of its text, or of the whole scalar if unknown."""
        return self if self.indent is None else SourceLocation(self.line, self.column + self.indent + offset)


@dataclass(frozen=True, eq=False)
class Entry:
    """A key of a mapping and its value."""

    key: Scalar
    value: Node


@dataclass(frozen=True, eq=False)
class Entries(SourceLocation):
    """A mapping; keys are distinct."""

    entries: tuple[Entry, ...] = field(repr=False)

    @cached_property
    def _by_key(self) -> dict[Json, Entry]:
        return {entry.key.value: entry for entry in self.entries}

    def get(self, key: str) -> Node | None:
        """The value of the key; None if absent."""
        entry = self._by_key.get(key)
        return entry.value if entry else None

    def key(self, key: str) -> SourceLocation:
        """The position of the key, or of the mapping if absent."""
        entry = self._by_key.get(key)
        return entry.key if entry else self

    def plain(self) -> dict[Json, Json]:
        return {entry.key.value: entry.value.plain() for entry in self.entries}


@dataclass(frozen=True, eq=False)
class Items(SourceLocation):
    """A list."""

    items: tuple[Node, ...] = field(repr=False)

    def plain(self) -> list[Json]:
        return [item.plain() for item in self.items]


Node: TypeAlias = Scalar | Entries | Items


def items_of(node: Node | None) -> tuple[Node, ...]:
    """The items of a list; empty if it is not a list."""
    return node.items if isinstance(node, Items) else ()


def entries_of(node: Node | None) -> Iterator[Entry]:
    """The entries of a mapping; empty if it is not a mapping."""
    return iter(node.entries if isinstance(node, Entries) else ())


def child(node: Node | None, key: str) -> Node | None:
    """The value of a key of a mapping; None if the key is absent or the node is not a mapping."""
    return node.get(key) if isinstance(node, Entries) else None


def text_of(node: Node | None) -> str | None:
    """The text of a scalar; None if it is not text."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def changed(node: Node, changes: Mapping[str, Callable[[Node], Node]]) -> Node:
    """A mapping with the values of some keys changed; any other node as it is."""
    if not isinstance(node, Entries) or not any(node.get(key) is not None for key in changes):
        return node
    entries = (
        replace(entry, value=changes[str(entry.key.value)](entry.value)) if entry.key.value in changes else entry
        for entry in node.entries
    )
    return replace(node, entries=tuple(entries))


def inside(node: Node, path: tuple[str | int, ...]) -> Node:
    """The node at a path of keys and indices, or its nearest existing ancestor."""
    for step in path:
        below: Node | None = None
        if isinstance(node, Entries):
            below = node.get(step)  # type: ignore[arg-type]  # a key may be a number
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            below = node.items[step]
        if below is None:
            break
        node = below
    return node
